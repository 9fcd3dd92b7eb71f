/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pack.c - a call of several segments as one schedule.
 *
 * Why     A message has a price of its own, so small segments share messages; a large one is cheaper to
 *         send from where it lies than to copy. All of a call's parts move at once: its time is that of
 *         one operation's steps, however many segments it has.
 * How     The segments of up to PACK_MAX bytes are one part, packed in scratch memory in their order;
 *         each larger one is a part. Every part is planned by itself, by the same plan, and phase k of
 *         the call is phase k of all parts, one part's messages after the other's.
 * True    Counts are compared by the control word, so that all ranks pack alike. Parts that have
 *         elements have equally many phases, because the plan is one. Within a phase and a pair of ranks
 *         both sides go through the parts in one order, so messages meet their places.
 *         PREMUL_SUM packs everything: the elements are scaled into memory of ours anyway. */
#include "coll/net/pack.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

enum { PACK_MAX = 64 * 1024, PART_MIN_ROOM = 16 };

void tti_pack_release(tti_pack *pack)
{
    int i;

    for (i = 0; i < pack->parts_room; i++)
        tti_schedule_release(&pack->plans[i]);
    free(pack->plans);
    free(pack->bounds);
    free(pack->lanes);
    *pack = (tti_pack){ .call = NULL };
}

static size_t bytes_of(const tti_pack *pack, int64_t count)
{
    return (size_t)count * tutti_dtype_size(pack->call->dtype);
}

static bool scales(const tti_pack *pack)
{
    return pack->call->kind != TUTTI_CALL_ALL_GATHER && pack->call->op.kind == TUTTI_OP_PREMUL_SUM;
}

static bool is_packed(const tti_pack *pack, int segment)
{
    return scales(pack) || bytes_of(pack, pack->call->segments[segment].count) <= PACK_MAX;
}

/* ---- parts ---- */

static tutti_status grow(tti_pack *pack)
{
    const int     room = pack->parts_room > 0 ? 2 * pack->parts_room : PART_MIN_ROOM;
    tti_schedule *plans = realloc(pack->plans, (size_t)room * sizeof *plans);
    tti_bound    *bounds;

    if (plans != NULL)
        pack->plans = plans;
    bounds = plans != NULL ? realloc(pack->bounds, (size_t)room * sizeof *bounds) : NULL;
    if (bounds == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a collective of %d segments",
                        pack->call->n_segments);
    pack->bounds = bounds;
    memset(plans + pack->parts_room, 0, (size_t)(room - pack->parts_room) * sizeof *plans);
    pack->parts_room = room;
    return TUTTI_OK;
}

static tutti_status add_part(tti_pack *pack, const tti_plan_input *input, tti_plan *plan,
                             int64_t count, tti_bound bound)
{
    tti_plan_input part = *input;
    tutti_status   st = pack->n_parts == pack->parts_room ? grow(pack) : TUTTI_OK;

    if (st != TUTTI_OK)
        return st;
    part.count = count;
    pack->bounds[pack->n_parts] = bound;
    tti_schedule_clear(&pack->plans[pack->n_parts]);
    plan(&part, &pack->plans[pack->n_parts++]);
    return TUTTI_OK;
}

static tti_bound bound_of(const tti_pack *pack, int segment)
{
    const tutti_segment *s = &pack->call->segments[segment];

    return (tti_bound){ .in = s->in, .out = s->out,
                        .list = pack->call->list != NULL
                                    ? pack->call->list + (size_t)segment * (size_t)pack->n_ranks
                                    : NULL };
}

static tutti_status make_parts(tti_pack *pack, const tti_plan_input *input, tti_plan *plan)
{
    const tutti_call *call = pack->call;
    tutti_status      st = TUTTI_OK;
    int               i;

    pack->packed = 0;
    pack->n_parts = 0;
    for (i = 0; i < call->n_segments; i++)
        if (is_packed(pack, i))
            pack->packed += call->segments[i].count;
    if (pack->packed > 0) /* bound by tti_pack_fill() */
        st = add_part(pack, input, plan, pack->packed, (tti_bound){ .in = NULL });
    for (i = 0; i < call->n_segments && st == TUTTI_OK; i++)
        if (!is_packed(pack, i))
            st = add_part(pack, input, plan, call->segments[i].count, bound_of(pack, i));
    return st;
}

static tutti_status make_lanes(tti_pack *pack)
{
    void **lanes;

    if (pack->lanes_room >= pack->n_ranks)
        return TUTTI_OK;
    lanes = realloc(pack->lanes, (size_t)pack->n_ranks * sizeof *lanes);
    if (lanes == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a list of %d buffers", pack->n_ranks);
    pack->lanes = lanes;
    pack->lanes_room = pack->n_ranks;
    return TUTTI_OK;
}

static void join_phases(const tti_pack *pack, tti_schedule *schedule)
{
    const int n_phases = pack->n_parts > 0 ? pack->plans[0].phases.n : 0;
    int       k, i;

    for (k = 0; k < n_phases; k++) {
        int64_t scratch_at = 0;

        tti_schedule_phase(schedule);
        for (i = 0; i < pack->n_parts; i++) {
            tti_schedule_join(schedule, &pack->plans[i], k, i, scratch_at);
            scratch_at += pack->plans[i].scratch_bytes;
        }
    }
    for (i = 0; i < pack->n_parts; i++) {
        assert(pack->plans[i].full || pack->plans[i].phases.n == n_phases);
        schedule->scratch_bytes += pack->plans[i].scratch_bytes;
    }
}

tutti_status tti_pack_plan(tti_pack *pack, const tutti_call *call, const tti_plan_input *input,
                           tti_plan *plan, tti_schedule *schedule)
{
    tutti_status st;
    int          i;

    pack->call = call;
    pack->n_ranks = input->n_ranks;
    pack->rank = input->rank;
    st = make_lanes(pack);
    if (st == TUTTI_OK)
        st = make_parts(pack, input, plan);
    for (i = 0; i < pack->n_parts && st == TUTTI_OK; i++)
        schedule->full |= pack->plans[i].full;
    if (st == TUTTI_OK && !schedule->full)
        join_phases(pack, schedule);
    return st;
}

/* ---- the packed part ---- */

static size_t lane_bytes(const tti_pack *pack)
{
    return (bytes_of(pack, pack->packed) + 63) & ~(size_t)63;
}

size_t tti_pack_bytes(const tti_pack *pack)
{
    return lane_bytes(pack) * (pack->call->kind == TUTTI_CALL_ALL_REDUCE ? 1 : (size_t)pack->n_ranks);
}

static void put(const tti_pack *pack, void *to, const void *from, int64_t count)
{
    if (scales(pack))
        tti_scale(to, from, count, pack->call->op.factor, pack->call->dtype);
    else
        memcpy(to, from, bytes_of(pack, count));
}

/* A segment's elements to their place `at` in the lanes. */
static void fill_segment(const tti_pack *pack, int segment, size_t at)
{
    const tutti_segment *s = &pack->call->segments[segment];
    const tti_bound      bound = bound_of(pack, segment);
    int                  r;

    if (pack->call->kind == TUTTI_CALL_ALL_REDUCE)
        put(pack, pack->room + at, s->in, s->count);
    else if (pack->call->kind == TUTTI_CALL_ALL_GATHER)
        put(pack, (char *)pack->lanes[pack->rank] + at, s->in, s->count);
    else
        for (r = 0; r < pack->n_ranks; r++)
            put(pack, (char *)pack->lanes[r] + at, bound.list[r], s->count);
}

static void empty_segment(const tti_pack *pack, int segment, size_t at)
{
    const tutti_segment *s = &pack->call->segments[segment];
    const size_t         bytes = bytes_of(pack, s->count);
    const tti_bound      bound = bound_of(pack, segment);
    int                  r;

    if (pack->call->kind == TUTTI_CALL_ALL_REDUCE)
        memcpy(s->out, pack->room + at, bytes);
    else if (pack->call->kind == TUTTI_CALL_REDUCE_SCATTER)
        memcpy(s->out, (char *)pack->lanes[pack->rank] + at, bytes);
    else
        for (r = 0; r < pack->n_ranks; r++)
            memcpy(bound.list[r], (char *)pack->lanes[r] + at, bytes);
}

typedef void segment_fn(const tti_pack *pack, int segment, size_t at);

static void for_packed(const tti_pack *pack, segment_fn *fn)
{
    size_t at = 0;
    int    i;

    for (i = 0; i < pack->call->n_segments; i++) {
        const int64_t count = pack->call->segments[i].count;

        if (!is_packed(pack, i) || count == 0)
            continue;
        fn(pack, i, at);
        at += bytes_of(pack, count);
    }
}

void tti_pack_fill(tti_pack *pack, char *room)
{
    const size_t lane = lane_bytes(pack);
    int          r;

    if (pack->packed == 0)
        return;
    pack->room = room;
    if (pack->call->kind == TUTTI_CALL_ALL_REDUCE) {
        pack->bounds[0] = (tti_bound){ .in = room, .out = room };
    } else {
        for (r = 0; r < pack->n_ranks; r++)
            pack->lanes[r] = room + lane * (size_t)r;
        pack->bounds[0] = (tti_bound){ .in = pack->lanes[pack->rank],
                                       .out = pack->lanes[pack->rank], .list = pack->lanes };
    }
    for_packed(pack, fill_segment);
}

void tti_pack_empty(const tti_pack *pack)
{
    for_packed(pack, empty_segment);
}

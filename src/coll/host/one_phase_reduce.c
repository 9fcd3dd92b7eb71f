/* SPDX-License-Identifier: BSD-3-Clause
 *
 * one_phase_reduce.c - all_reduce, reduce and reduce_scatter in one phase.
 *
 * True    Whoever combines, combines the contributions of ranks 0..P-1 in this order with one kernel call, as
 *         staged_reduce.c does: the same bits. A contribution is in its place before anything is written to the
 *         caller's buffers, and an element is read there before it is written, so in and out may be one. */
#include <string.h>
#include "coll/host/lines.h"
#include "coll/host/one_phase.h"
#include "coll/segments.h"
#include "kernel/kernel.h"

typedef struct reduction {
    tti_host_channel        *channel;
    const tutti_call        *call;
    const tti_reduce_kernel *kernel;
    size_t                   element;
    size_t                   bytes; /* of what each member gives */
} reduction;

static reduction reduction_of(tti_host_channel *channel, const tutti_call *call)
{
    const size_t element = tti_dtype_bytes(call->dtype);

    return (reduction){ .channel = channel, .call = call, .element = element,
                        .kernel = tti_reduce_kernel_for(call->op.kind, call->dtype),
                        .bytes = (size_t)call->count * element };
}

/* On its way into the place a contribution is scaled where the operation says so. */
static void put(const reduction *r, char *to, const void *from, int64_t count)
{
    if (r->call->op.kind == TUTTI_OP_PREMUL_SUM)
        tti_scale(to, from, count, r->call->op.factor, r->call->dtype);
    else
        memcpy(to, from, (size_t)count * r->element);
}

/* Combine count elements that lie `at` elements into everybody's contribution. own: where this rank has them, which
 * need not come back from its place: what was just stored there is slow to load in other pieces. */
static void combine(const reduction *r, void *out, int64_t at, int64_t count, const void *own)
{
    tti_host_channel *channel = r->channel;
    const int         n_ranks = channel->team->n_ranks;
    int               q;

    for (q = 0; q < n_ranks; q++)
        channel->reads[q] = tti_lines_at(channel, q, r->bytes) + (size_t)at * r->element;
    if (r->call->op.kind != TUTTI_OP_PREMUL_SUM)
        channel->reads[channel->team->rank] = own;
    tti_reduce(r->kernel, out, channel->reads, n_ranks, count, n_ranks);
}

/* ---- all_reduce and reduce ---- */

static tutti_status give(const reduction *r)
{
    char              *place = NULL;
    const tutti_status st = tti_lines_to_give(r->channel, r->bytes, &place);
    tti_segments       segments;

    if (st != TUTTI_OK)
        return st;
    if (r->call->n_segments == 0) {
        put(r, place, r->call->in, r->call->count);
    } else {
        tti_segments_init(&segments, r->call);
        TTI_EACH_STRETCH (s, &segments, 0, r->call->count)
            put(r, place + (size_t)s.at * r->element, segments.all[s.segment].in, s.count);
    }
    tti_lines_post(r->channel);
    return TUTTI_OK;
}

static tutti_status take(const reduction *r)
{
    tutti_status st = tti_lines_await_all(r->channel);
    tti_segments segments;

    if (st != TUTTI_OK)
        return st;
    if (r->call->n_segments == 0) {
        combine(r, r->call->out, 0, r->call->count, r->call->in);
        return TUTTI_OK;
    }
    tti_segments_init(&segments, r->call);
    TTI_EACH_STRETCH (s, &segments, 0, r->call->count)
        combine(r, segments.all[s.segment].out, s.at, s.count, segments.all[s.segment].in);
    return TUTTI_OK;
}

tutti_status tti_one_phase_all_reduce(tti_host_channel *channel, const tutti_call *call)
{
    const reduction r = reduction_of(channel, call);
    tutti_status    st;

    if (r.bytes > TTI_LINES_BYTES)
        return tti_staged_all_reduce_sliced(channel, call);
    if (call->count == 0)
        return TUTTI_OK;
    st = tti_lines_given(channel) ? TUTTI_OK : give(&r);
    return st == TUTTI_OK ? take(&r) : st;
}

tutti_status tti_one_phase_reduce(tti_host_channel *channel, const tutti_call *call)
{
    const reduction r = reduction_of(channel, call);
    tutti_status    st;

    if (r.bytes > TTI_LINES_BYTES)
        return tti_staged_reduce_sliced(channel, call);
    if (call->count == 0)
        return TUTTI_OK;
    st = tti_lines_given(channel) ? TUTTI_OK : give(&r);
    return st == TUTTI_OK && call->root == channel->team->rank ? take(&r) : st;
}

/* ---- reduce_scatter ---- */

/* Where owner's part begins in what each member gives, in elements. */
static int64_t begin_of(const tutti_call *call, int owner)
{
    int64_t begin = 0;
    int     q;

    if (call->n_parts == 0)
        return call->count * owner;
    for (q = 0; q < owner; q++)
        begin += call->list_counts[q];
    return begin;
}

static void give_part(const reduction *r, const tti_segments *segments, char *to, int owner)
{
    TTI_EACH_STRETCH (s, segments, 0, tti_part_count(r->call, owner))
        put(r, to + (size_t)s.at * r->element,
            tti_entry_at(r->call, r->channel->team->n_ranks, owner, s), s.count);
}

/* combine() has the own part from where it is. */
static bool is_given(const reduction *r, int owner)
{
    return owner != r->channel->team->rank || r->call->op.kind == TUTTI_OP_PREMUL_SUM;
}

static tutti_status give_parts(const reduction *r, const tti_segments *segments)
{
    const tti_team *team = r->channel->team;
    char           *to = NULL;
    tutti_status    st = tti_lines_to_give(r->channel, r->bytes, &to);
    int             q;

    if (st != TUTTI_OK)
        return st;
    for (q = 0; q < team->n_ranks; q++) {
        if (is_given(r, q))
            give_part(r, segments, to, q);
        to += (size_t)tti_part_count(r->call, q) * r->element;
    }
    tti_lines_post(r->channel);
    return TUTTI_OK;
}

/* Nearly all calls: one segment, and parts of one size, that fit. */
static tutti_status scatter_equal(reduction *r)
{
    const tutti_call *call = r->call;
    const tti_team   *team = r->channel->team;
    const size_t      part = r->bytes;
    char             *to = NULL;
    tutti_status      st;
    int               q;

    r->bytes = part * (size_t)team->n_ranks;
    if (!tti_lines_given(r->channel)) {
        st = tti_lines_to_give(r->channel, r->bytes, &to);
        if (st != TUTTI_OK)
            return st;
        for (q = 0; q < team->n_ranks; q++, to += part)
            if (is_given(r, q))
                put(r, to, call->list[q], call->count);
        tti_lines_post(r->channel);
    }
    st = tti_lines_await_all(r->channel);
    if (st == TUTTI_OK)
        combine(r, call->out, call->count * team->rank, call->count, call->list[team->rank]);
    return st;
}

tutti_status tti_one_phase_reduce_scatter(tti_host_channel *channel, const tutti_call *call)
{
    const tti_team *team = channel->team;
    const int64_t   own = tti_part_count(call, team->rank), begin = begin_of(call, team->rank);
    reduction       r = reduction_of(channel, call);
    tti_segments    segments;
    tutti_status    st;

    if (call->count == 0)
        return TUTTI_OK;
    if (r.bytes > TTI_LINES_BYTES || begin_of(call, team->n_ranks) > (int64_t)(TTI_LINES_BYTES / r.element))
        return tti_staged_reduce_scatter(channel, call);
    if (call->n_parts == 0 && call->n_segments == 0)
        return scatter_equal(&r);
    r.bytes = (size_t)begin_of(call, team->n_ranks) * r.element;
    tti_segments_init(&segments, call);
    st = tti_lines_given(channel) ? TUTTI_OK : give_parts(&r, &segments);
    if (st != TUTTI_OK || own == 0)
        return st;
    st = tti_lines_await_all(channel);
    if (st == TUTTI_OK)
        TTI_EACH_STRETCH (s, &segments, 0, own)
            combine(&r, (char *)segments.all[s.segment].out + (size_t)s.first * r.element, begin + s.at, s.count,
                    tti_entry_at(call, team->n_ranks, team->rank, s));
    return st;
}

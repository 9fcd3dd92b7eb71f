/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plan_reduce.c - plans that combine: all_reduce, reduce and reduce_scatter.
 *
 * True    Whoever combines a slice has the contributions of all ranks unchanged, and combines them
 *         from rank 0 to rank P-1 in one go: the same bits whichever plan is taken and whoever owns
 *         the slice. IN and OUT may be one buffer: nothing is received into OUT in the phase in
 *         which IN is sent; contributions land in scratch memory, and a phase ends when its
 *         messages have left. */
#include "coll/net/plan.h"
#include "coll/pattern.h"

static tti_block whole(tti_place place, const tti_plan_input *p)
{
    return (tti_block){ .place = place, .bytes = p->count * (int64_t)p->element };
}

static tti_block slice(tti_place place, const tti_plan_input *p, int owner)
{
    const tti_slice own = tti_slice_of(p->count, p->element, p->n_ranks, owner);

    return (tti_block){ .place = place, .offset = own.begin * (int64_t)p->element,
                        .bytes = (own.end - own.begin) * (int64_t)p->element };
}

/* Where rank's contribution waits: one lane of scratch memory for each, the own one unused. */
static tti_block lane(tti_block lanes, int64_t lane_bytes, int64_t bytes, int rank)
{
    lanes.offset += lane_bytes * rank;
    lanes.bytes = bytes;
    return lanes;
}

/* Receive everybody's contribution to own, in shifted order, and combine them with the own one to
 * `to`. */
static void combine(const tti_plan_input *p, tti_schedule *schedule, tti_block own, tti_block to)
{
    const int64_t   lane_bytes = (own.bytes + TTI_SLICE_ALIGN - 1) & ~INT64_C(63);
    const tti_block lanes = tti_schedule_scratch(schedule, lane_bytes * p->n_ranks);
    int             i;

    if (own.bytes == 0)
        return;
    for (i = 1; i < p->n_ranks; i++) {
        const int from = tti_shifted(p->rank, -i, p->n_ranks);

        tti_schedule_recv(schedule, from, lane(lanes, lane_bytes, own.bytes, from));
    }
    tti_schedule_reduce(schedule, to);
    for (i = 0; i < p->n_ranks; i++)
        tti_schedule_input(schedule, i == p->rank ? own : lane(lanes, lane_bytes, own.bytes, i));
}

/* First half of the direct plans: each slice to its owner, who combines it to `to`. */
static void slices_to_owners(const tti_plan_input *p, tti_schedule *schedule, tti_block to)
{
    int i;

    tti_schedule_phase(schedule);
    for (i = 1; i < p->n_ranks; i++) {
        const int       owner = tti_shifted(p->rank, i, p->n_ranks);
        const tti_block theirs = slice(TTI_PLACE_IN, p, owner);

        if (theirs.bytes > 0)
            tti_schedule_send(schedule, owner, theirs);
    }
    combine(p, schedule, slice(TTI_PLACE_IN, p, p->rank), to);
}

void tti_plan_all_reduce_one_shot(const tti_plan_input *p, tti_schedule *schedule)
{
    int i;

    if (p->count == 0)
        return;
    tti_schedule_phase(schedule);
    for (i = 1; i < p->n_ranks; i++)
        tti_schedule_send(schedule, tti_shifted(p->rank, i, p->n_ranks), whole(TTI_PLACE_IN, p));
    combine(p, schedule, whole(TTI_PLACE_IN, p), whole(TTI_PLACE_OUT, p));
}

void tti_plan_all_reduce_direct(const tti_plan_input *p, tti_schedule *schedule)
{
    const tti_block own = slice(TTI_PLACE_OUT, p, p->rank);
    int             i;

    if (p->count == 0)
        return;
    slices_to_owners(p, schedule, own);
    tti_schedule_phase(schedule);
    for (i = 1; i < p->n_ranks; i++) {
        const int       to = tti_shifted(p->rank, i, p->n_ranks);
        const int       from = tti_shifted(p->rank, -i, p->n_ranks);
        const tti_block theirs = slice(TTI_PLACE_OUT, p, from);

        if (own.bytes > 0)
            tti_schedule_send(schedule, to, own);
        if (theirs.bytes > 0)
            tti_schedule_recv(schedule, from, theirs);
    }
}

void tti_plan_reduce_to_root(const tti_plan_input *p, tti_schedule *schedule)
{
    if (p->count == 0)
        return;
    tti_schedule_phase(schedule);
    if (p->rank == p->root)
        combine(p, schedule, whole(TTI_PLACE_IN, p), whole(TTI_PLACE_OUT, p));
    else
        tti_schedule_send(schedule, p->root, whole(TTI_PLACE_IN, p));
}

/* Only the root has an OUT: the others' results wait in scratch memory. */
void tti_plan_reduce_direct(const tti_plan_input *p, tti_schedule *schedule)
{
    tti_block result = slice(TTI_PLACE_OUT, p, p->rank);
    int       i;

    if (p->count == 0)
        return;
    if (p->rank != p->root)
        result = tti_schedule_scratch(schedule, result.bytes);
    slices_to_owners(p, schedule, result);
    tti_schedule_phase(schedule);
    if (p->rank != p->root && result.bytes > 0)
        tti_schedule_send(schedule, p->root, result);
    for (i = 1; p->rank == p->root && i < p->n_ranks; i++) {
        const int       from = tti_shifted(p->rank, i, p->n_ranks);
        const tti_block theirs = slice(TTI_PLACE_OUT, p, from);

        if (theirs.bytes > 0)
            tti_schedule_recv(schedule, from, theirs);
    }
}

static tti_block part(const tti_plan_input *p, int owner)
{
    const int64_t count = p->list_counts != NULL ? p->list_counts[owner] : p->count;

    return (tti_block){ .place = TTI_PLACE_LIST, .index = owner,
                        .bytes = count * (int64_t)p->element };
}

/* Every rank knows all sizes, so empty parts are not sent. */
void tti_plan_reduce_scatter_direct(const tti_plan_input *p, tti_schedule *schedule)
{
    const tti_block own = part(p, p->rank);
    int             i;

    if (p->count == 0)
        return;
    tti_schedule_phase(schedule);
    for (i = 1; i < p->n_ranks; i++) {
        const int       owner = tti_shifted(p->rank, i, p->n_ranks);
        const tti_block theirs = part(p, owner);

        if (theirs.bytes > 0)
            tti_schedule_send(schedule, owner, theirs);
    }
    combine(p, schedule, own, (tti_block){ .place = TTI_PLACE_OUT, .bytes = own.bytes });
}

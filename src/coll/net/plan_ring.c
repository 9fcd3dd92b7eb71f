/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plan_ring.c - plans along the circle of ranks, in which each talks to its two neighbours only.
 *
 * Why     Two connections a rank, and never two that send to one at the same time: for very many ranks and bytes, or
 *         where many senders make a switch drop. P - 1 phases, or twice as many: in a call that is cut into
 *         pieces (run.c) those of several pieces are under way at once.
 * True    A part is combined from its owner's right neighbour on, around the circle to the owner: then all ranks get the
 *         owner's bits. In a reduction all of the buffer is the root's. Numbers of 16 bits are rounded at each hop.
 *         IN and OUT may be one buffer: a slice of IN is read once, for the sum that is then written to that slice of OUT. */
#include "coll/net/blocks.h"

static int right_of(const tti_plan_input *p)
{
    return tti_shifted(p->rank, 1, p->n_ranks);
}

static int left_of(const tti_plan_input *p)
{
    return tti_shifted(p->rank, -1, p->n_ranks);
}

/* to = what has come around the circle, and the own part; the owner finishes. */
static void add_own(tti_schedule *schedule, tti_block to, tti_block came, tti_block own, bool last)
{
    if (own.bytes == 0)
        return;
    if (last)
        tti_schedule_reduce(schedule, to);
    else
        tti_schedule_partial(schedule, to);
    tti_schedule_input(schedule, came);
    tti_schedule_input(schedule, own);
}

static void only_own(tti_schedule *schedule, tti_block to, tti_block own)
{
    tti_schedule_phase(schedule);
    tti_schedule_reduce(schedule, to);
    tti_schedule_input(schedule, own);
}

/* ---- all_reduce -------------------------------------------------------------------------------- */

static tti_block slice(tti_place place, const tti_plan_input *p, int owner)
{
    return tti_slices(place, p, p->n_ranks, owner, 1);
}

/* Slice r begins at rank r + 1 and is finished by rank r. */
static void combine_slices(const tti_plan_input *p, tti_schedule *schedule)
{
    const tti_block lane = tti_schedule_scratch(schedule, slice(TTI_PLACE_IN, p, 0).bytes); /* none is longer */
    int             k;

    for (k = 0; k < p->n_ranks - 1; k++) {
        const int       gives = tti_shifted(p->rank, -1 - k, p->n_ranks);
        const int       gets = tti_shifted(p->rank, -2 - k, p->n_ranks);
        const tti_block own = slice(TTI_PLACE_IN, p, gets);
        const tti_block came = tti_within(lane, 0, own.bytes);

        tti_schedule_phase(schedule);
        tti_send_some(schedule, right_of(p), slice(k == 0 ? TTI_PLACE_IN : TTI_PLACE_OUT, p, gives));
        tti_recv_some(schedule, left_of(p), came);
        add_own(schedule, slice(TTI_PLACE_OUT, p, gets), came, own, k == p->n_ranks - 2);
    }
}

static void spread_slices(const tti_plan_input *p, tti_schedule *schedule)
{
    int k;

    for (k = 0; k < p->n_ranks - 1; k++) {
        tti_schedule_phase(schedule);
        tti_send_some(schedule, right_of(p), slice(TTI_PLACE_OUT, p, tti_shifted(p->rank, -k, p->n_ranks)));
        tti_recv_some(schedule, left_of(p), slice(TTI_PLACE_OUT, p, tti_shifted(p->rank, -1 - k, p->n_ranks)));
    }
}

void tti_plan_all_reduce_ring(const tti_plan_input *p, tti_schedule *schedule)
{
    if (p->count == 0)
        return;
    if (p->n_ranks == 1) {
        only_own(schedule, tti_whole(TTI_PLACE_OUT, p), tti_whole(TTI_PLACE_IN, p));
        return;
    }
    combine_slices(p, schedule);
    spread_slices(p, schedule);
}

/* ---- reduce_scatter ---------------------------------------------------------------------------- */

static int64_t longest_part(const tti_plan_input *p)
{
    int64_t longest = 0;
    int     r;

    for (r = 0; r < p->n_ranks; r++)
        longest = tti_part(r, p).bytes > longest ? tti_part(r, p).bytes : longest;
    return longest;
}

/* The list is only read, so sums grow in two lanes: one is on its way to the right while the other is received. */
static void combine_parts(const tti_plan_input *p, tti_schedule *schedule)
{
    const int64_t longest = longest_part(p);
    tti_block     lanes[2], sum = { .bytes = 0 };
    int           k;

    lanes[0] = tti_schedule_scratch(schedule, longest);
    lanes[1] = tti_schedule_scratch(schedule, longest);
    for (k = 0; k < p->n_ranks - 1; k++) {
        const bool      last = k == p->n_ranks - 2;
        const tti_block own = tti_part(tti_shifted(p->rank, -2 - k, p->n_ranks), p);
        const tti_block came = tti_within(lanes[k % 2], 0, own.bytes);

        tti_schedule_phase(schedule);
        tti_send_some(schedule, right_of(p), k == 0 ? tti_part(left_of(p), p) : sum);
        tti_recv_some(schedule, left_of(p), came);
        sum = last ? (tti_block){ .place = TTI_PLACE_OUT, .bytes = own.bytes } : came;
        add_own(schedule, sum, came, own, last);
    }
}

void tti_plan_reduce_scatter_ring(const tti_plan_input *p, tti_schedule *schedule)
{
    const tti_block own = tti_part(p->rank, p);

    if (p->count == 0)
        return;
    if (p->n_ranks == 1)
        only_own(schedule, (tti_block){ .place = TTI_PLACE_OUT, .bytes = own.bytes }, own);
    else
        combine_parts(p, schedule);
}

/* ---- all_gather -------------------------------------------------------------------------------- */

/* Empty parts go, too, as in the direct plan: every rank hears of every part, and finds out if its list is another. */
void tti_plan_all_gather_ring(const tti_plan_input *p, tti_schedule *schedule)
{
    const tti_block own = { .place = TTI_PLACE_IN, .bytes = tti_part(p->rank, p).bytes };
    int             k;

    if (p->count == 0)
        return;
    for (k = 0; k < p->n_ranks - 1 || k == 0; k++) {
        tti_schedule_phase(schedule);
        if (k == 0)
            tti_schedule_copy(schedule, tti_part(p->rank, p), own);
        if (p->n_ranks == 1)
            return;
        tti_send_told(p, schedule, right_of(p), k == 0 ? own : tti_part(tti_shifted(p->rank, -k, p->n_ranks), p));
        tti_recv_told(p, schedule, left_of(p), tti_part(tti_shifted(p->rank, -1 - k, p->n_ranks), p));
    }
}

/* ---- chains ------------------------------------------------------------------------------------ */

void tti_plan_broadcast_chain(const tti_plan_input *p, tti_schedule *schedule)
{
    const int away = tti_shifted(p->rank, -p->root, p->n_ranks);
    int       k;

    for (k = 0; k < p->n_ranks - 1 && p->count > 0; k++) {
        tti_schedule_phase(schedule);
        if (k == away)
            tti_schedule_send(schedule, right_of(p), tti_whole(away == 0 ? TTI_PLACE_IN : TTI_PLACE_OUT, p));
        if (k == away - 1)
            tti_schedule_recv(schedule, left_of(p), tti_whole(TTI_PLACE_OUT, p));
    }
}

/* Its place in the chain from the root's right neighbour, 0, to the root. */
static int place_in_chain(const tti_plan_input *p)
{
    return tti_shifted(p->rank, -p->root - 1, p->n_ranks);
}

void tti_plan_reduce_chain(const tti_plan_input *p, tti_schedule *schedule)
{
    const int       place = place_in_chain(p);
    const bool      last = place == p->n_ranks - 1;
    const tti_block own = tti_whole(TTI_PLACE_IN, p);
    tti_block       came = { .bytes = 0 };
    int             k;

    if (p->count == 0)
        return;
    if (p->n_ranks == 1) {
        only_own(schedule, tti_whole(TTI_PLACE_OUT, p), own);
        return;
    }
    if (place > 0)
        came = tti_schedule_scratch(schedule, own.bytes);
    for (k = 0; k < p->n_ranks - 1; k++) {
        tti_schedule_phase(schedule);
        if (k == place)
            tti_schedule_send(schedule, right_of(p), place == 0 ? own : came);
        if (k != place - 1)
            continue;
        tti_schedule_recv(schedule, left_of(p), came);
        add_own(schedule, last ? tti_whole(TTI_PLACE_OUT, p) : came, came, own, last);
    }
}

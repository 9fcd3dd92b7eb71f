/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plan_reduce.c - plans that combine contributions as they are: all_reduce, reduce and reduce_scatter by
 * direct messages.
 *
 * True    Whoever combines a slice has the contributions of all ranks unchanged. In rank order it combines them
 *         from rank 0 to rank P-1 in one go; in the order of a tree (choose.h) two by two, as plan_tree.c
 *         does on the way. So the bits are the same whichever plan of an order is taken and whoever owns
 *         the slice. IN and OUT may be one buffer: nothing is received into OUT in the phase in
 *         which IN is sent; contributions land in scratch memory, and a phase ends when its
 *         messages have left. */
#include "coll/net/blocks.h"

typedef enum order { IN_A_ROW, IN_A_TREE } order;

/* The contributions of all ranks to what one rank combines: the own one where it lies, and a lane of scratch memory
 * for each rank. */
typedef struct given {
    int       n_ranks;
    int       rank;
    tti_block own;
    tti_block lanes;
    int64_t   lane_bytes;
} given;

static tti_block lane(const given *g, int rank)
{
    return tti_within(g->lanes, g->lane_bytes * rank, g->own.bytes);
}

static tti_block contribution(const given *g, int rank)
{
    return rank == g->rank ? g->own : lane(g, rank);
}

static void combine_two(tti_schedule *schedule, tti_block left, tti_block right)
{
    tti_schedule_input(schedule, left);
    tti_schedule_input(schedule, right);
}

/* What the n seats behind seat have come to: in the lane of the first rank, but for a contribution that nothing was
 * combined with yet. */
static tti_block subtotal(const given *g, const tti_seats *seats, int seat, int n)
{
    const int rank = tti_sitting(seats, seat);

    return n == 1 && seat >= seats->n_pairs ? contribution(g, rank) : lane(g, rank);
}

static void combine_in_a_tree(tti_schedule *schedule, const given *g, tti_block to)
{
    const tti_seats seats = tti_seats_of(g->n_ranks);
    int             seat, n;

    for (seat = 0; seat < seats.n_pairs; seat++) {
        tti_schedule_partial(schedule, lane(g, 2 * seat));
        combine_two(schedule, contribution(g, 2 * seat), contribution(g, 2 * seat + 1));
    }
    for (n = 1; n < seats.n; n *= 2)
        for (seat = 0; seat < seats.n; seat += 2 * n) {
            if (2 * n == seats.n)
                tti_schedule_reduce(schedule, to);
            else
                tti_schedule_partial(schedule, lane(g, tti_sitting(&seats, seat)));
            combine_two(schedule, subtotal(g, &seats, seat, n), subtotal(g, &seats, seat + n, n));
        }
}

static void combine_in_a_row(tti_schedule *schedule, const given *g, tti_block to)
{
    int i;

    tti_schedule_reduce(schedule, to);
    for (i = 0; i < g->n_ranks; i++)
        tti_schedule_input(schedule, contribution(g, i));
}

/* Receive everybody's contribution to own, in shifted order, and combine them with the own one to
 * `to`. */
static void combine(const tti_plan_input *p, tti_schedule *schedule, tti_block own, tti_block to, order how)
{
    given g = { .n_ranks = p->n_ranks, .rank = p->rank, .own = own,
                .lane_bytes = (own.bytes + TTI_SLICE_ALIGN - 1) & ~INT64_C(63) };
    int   i;

    if (own.bytes == 0)
        return;
    g.lanes = tti_schedule_scratch(schedule, g.lane_bytes * p->n_ranks);
    for (i = 1; i < p->n_ranks; i++) {
        const int from = tti_shifted(p->rank, -i, p->n_ranks);

        tti_schedule_recv(schedule, from, lane(&g, from));
    }
    if (how == IN_A_TREE && p->n_ranks > 1)
        combine_in_a_tree(schedule, &g, to);
    else
        combine_in_a_row(schedule, &g, to);
}

/* ---- all_reduce -------------------------------------------------------------------------------- */

static tti_block slice(tti_place place, const tti_plan_input *p, int owner)
{
    return tti_slices(place, p, p->n_ranks, owner, 1);
}

static void one_shot(const tti_plan_input *p, tti_schedule *schedule, order how)
{
    int i;

    if (p->count == 0)
        return;
    tti_schedule_phase(schedule);
    for (i = 1; i < p->n_ranks; i++)
        tti_schedule_send(schedule, tti_shifted(p->rank, i, p->n_ranks), tti_whole(TTI_PLACE_IN, p));
    combine(p, schedule, tti_whole(TTI_PLACE_IN, p), tti_whole(TTI_PLACE_OUT, p), how);
}

void tti_plan_all_reduce_one_shot(const tti_plan_input *p, tti_schedule *schedule)
{
    one_shot(p, schedule, IN_A_ROW);
}

void tti_plan_all_reduce_one_shot_tree(const tti_plan_input *p, tti_schedule *schedule)
{
    one_shot(p, schedule, IN_A_TREE);
}

/* Each slice to its owner, who combines it; then back from it to all. */
static void all_reduce_direct(const tti_plan_input *p, tti_schedule *schedule, order how)
{
    const tti_block own = slice(TTI_PLACE_OUT, p, p->rank);
    int             i;

    if (p->count == 0)
        return;
    tti_schedule_phase(schedule);
    for (i = 1; i < p->n_ranks; i++) {
        const int owner = tti_shifted(p->rank, i, p->n_ranks);

        tti_send_among(p, schedule, owner, slice(TTI_PLACE_IN, p, owner));
    }
    combine(p, schedule, slice(TTI_PLACE_IN, p, p->rank), own, how);
    tti_schedule_phase(schedule);
    for (i = 1; i < p->n_ranks; i++) {
        const int from = tti_shifted(p->rank, -i, p->n_ranks);

        tti_send_among(p, schedule, tti_shifted(p->rank, i, p->n_ranks), own);
        tti_recv_some(schedule, from, slice(TTI_PLACE_OUT, p, from));
    }
}

void tti_plan_all_reduce_direct(const tti_plan_input *p, tti_schedule *schedule)
{
    all_reduce_direct(p, schedule, IN_A_ROW);
}

void tti_plan_all_reduce_direct_tree(const tti_plan_input *p, tti_schedule *schedule)
{
    all_reduce_direct(p, schedule, IN_A_TREE);
}

/* ---- reduce ------------------------------------------------------------------------------------ */

void tti_plan_reduce_to_root(const tti_plan_input *p, tti_schedule *schedule)
{
    if (p->count == 0)
        return;
    tti_schedule_phase(schedule);
    if (p->rank == p->root)
        combine(p, schedule, tti_whole(TTI_PLACE_IN, p), tti_whole(TTI_PLACE_OUT, p), IN_A_ROW);
    else
        tti_schedule_send(schedule, p->root, tti_whole(TTI_PLACE_IN, p));
}

/* The root receives everything in the end, so that it owns no slice: the others have one each. */
static tti_block slice_beside_root(tti_place place, const tti_plan_input *p, int owner)
{
    return tti_slices(place, p, p->n_ranks - 1, tti_shifted(owner, -p->root, p->n_ranks) - 1, 1);
}

static void slices_to_others(const tti_plan_input *p, tti_schedule *schedule)
{
    int i;

    for (i = 1; i < p->n_ranks; i++) {
        const int owner = tti_shifted(p->rank, i, p->n_ranks);

        if (owner != p->root)
            tti_send_among(p, schedule, owner, slice_beside_root(TTI_PLACE_IN, p, owner));
    }
}

/* Only the root has an OUT: the others' results wait in scratch memory. */
static void reduce_direct(const tti_plan_input *p, tti_schedule *schedule, order how)
{
    tti_block own = { .bytes = 0 }, result = { .bytes = 0 };
    int       i;

    if (p->count == 0)
        return;
    tti_schedule_phase(schedule);
    slices_to_others(p, schedule);
    if (p->rank != p->root) {
        own = slice_beside_root(TTI_PLACE_IN, p, p->rank);
        result = tti_schedule_scratch(schedule, own.bytes);
        combine(p, schedule, own, result, how);
    }
    tti_schedule_phase(schedule);
    tti_send_among(p, schedule, p->root, result);
    for (i = 1; p->rank == p->root && i < p->n_ranks; i++) {
        const int from = tti_shifted(p->rank, i, p->n_ranks);

        tti_recv_some(schedule, from, slice_beside_root(TTI_PLACE_OUT, p, from));
    }
}

void tti_plan_reduce_direct(const tti_plan_input *p, tti_schedule *schedule)
{
    if (p->n_ranks == 1)
        tti_plan_reduce_to_root(p, schedule);
    else
        reduce_direct(p, schedule, IN_A_ROW);
}

void tti_plan_reduce_direct_tree(const tti_plan_input *p, tti_schedule *schedule)
{
    if (p->n_ranks == 1)
        tti_plan_reduce_to_root(p, schedule);
    else
        reduce_direct(p, schedule, IN_A_TREE);
}

/* ---- reduce_scatter ---------------------------------------------------------------------------- */

/* Every rank knows all sizes, so empty parts are not sent. */
static void reduce_scatter_direct(const tti_plan_input *p, tti_schedule *schedule, order how)
{
    const tti_block own = tti_part(p->rank, p);
    int             i;

    if (p->count == 0)
        return;
    tti_schedule_phase(schedule);
    for (i = 1; i < p->n_ranks; i++) {
        const int owner = tti_shifted(p->rank, i, p->n_ranks);

        tti_send_among(p, schedule, owner, tti_part(owner, p));
    }
    combine(p, schedule, own, (tti_block){ .place = TTI_PLACE_OUT, .bytes = own.bytes }, how);
}

void tti_plan_reduce_scatter_direct(const tti_plan_input *p, tti_schedule *schedule)
{
    reduce_scatter_direct(p, schedule, IN_A_ROW);
}

void tti_plan_reduce_scatter_direct_tree(const tti_plan_input *p, tti_schedule *schedule)
{
    reduce_scatter_direct(p, schedule, IN_A_TREE);
}

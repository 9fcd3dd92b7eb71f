/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plan_move.c - plans that only move data: broadcast, all_gather, gather, scatter, all_to_all and
 * its rooted forms, barrier. */
#include "coll/net/plan.h"
#include "coll/pattern.h"

static tti_block whole(tti_place place, const tti_plan_input *p)
{
    return (tti_block){ .place = place, .bytes = p->count * (int64_t)p->element };
}

static tti_block entry(int index, const tti_plan_input *p)
{
    return (tti_block){ .place = TTI_PLACE_LIST, .index = index,
                        .bytes = p->count * (int64_t)p->element };
}

static tti_block block(tti_place place, int index, const int64_t *counts, const tti_plan_input *p)
{
    return (tti_block){ .place = place, .index = index,
                        .bytes = counts[index] * (int64_t)p->element };
}

void tti_plan_broadcast_binomial(const tti_plan_input *p, tti_schedule *schedule)
{
    const int steps = tti_doubling_steps(p->n_ranks);
    int       heard_in = -1;
    const int parent = tti_tree_parent(p->rank, p->root, p->n_ranks, &heard_in);
    const int is_root = p->rank == p->root;
    int       step, child;

    for (step = 0; step < steps && p->count > 0; step++) {
        tti_schedule_phase(schedule);
        if (step == heard_in)
            tti_schedule_recv(schedule, parent, whole(TTI_PLACE_OUT, p));
        child = tti_tree_child(p->rank, p->root, p->n_ranks, step);
        if (child >= 0)
            tti_schedule_send(schedule, child, whole(is_root ? TTI_PLACE_IN : TTI_PLACE_OUT, p));
    }
}

/* Rank's part, where all ranks know all sizes. */
static tti_block part(int rank, const tti_plan_input *p)
{
    return p->list_counts != NULL ? block(TTI_PLACE_LIST, rank, p->list_counts, p) : entry(rank, p);
}

/* Whether a part is sent: empty ones are once, so that ranks with other lists of counts find out. */
static bool is_told(const tti_plan_input *p, tti_block block)
{
    return block.bytes > 0 || p->chunk == 0;
}

void tti_plan_all_gather_direct(const tti_plan_input *p, tti_schedule *schedule)
{
    const tti_block own = { .place = TTI_PLACE_IN, .bytes = part(p->rank, p).bytes };
    int             i;

    if (p->count == 0)
        return;
    tti_schedule_phase(schedule);
    for (i = 1; i < p->n_ranks; i++) {
        const int from = tti_shifted(p->rank, -i, p->n_ranks);

        if (is_told(p, own))
            tti_schedule_send(schedule, tti_shifted(p->rank, i, p->n_ranks), own);
        if (is_told(p, part(from, p)))
            tti_schedule_recv(schedule, from, part(from, p));
    }
    tti_schedule_copy(schedule, part(p->rank, p), own);
}

void tti_plan_gather_direct(const tti_plan_input *p, tti_schedule *schedule)
{
    int i;

    if (p->count == 0)
        return;
    tti_schedule_phase(schedule);
    if (p->rank != p->root) {
        tti_schedule_send(schedule, p->root, whole(TTI_PLACE_IN, p));
        return;
    }
    for (i = 1; i < p->n_ranks; i++) {
        const int from = tti_shifted(p->rank, i, p->n_ranks);

        tti_schedule_recv(schedule, from, entry(from, p));
    }
    tti_schedule_copy(schedule, entry(p->rank, p), whole(TTI_PLACE_IN, p));
}

void tti_plan_scatter_direct(const tti_plan_input *p, tti_schedule *schedule)
{
    int i;

    if (p->count == 0)
        return;
    tti_schedule_phase(schedule);
    if (p->rank != p->root) {
        tti_schedule_recv(schedule, p->root, whole(TTI_PLACE_OUT, p));
        return;
    }
    for (i = 1; i < p->n_ranks; i++) {
        const int to = tti_shifted(p->rank, i, p->n_ranks);

        tti_schedule_send(schedule, to, entry(to, p));
    }
    tti_schedule_copy(schedule, whole(TTI_PLACE_OUT, p), entry(p->rank, p));
}

static tti_block sizes(int row)
{
    const int64_t bytes = sizeof(tti_block_sizes);

    return (tti_block){ .place = TTI_PLACE_SIZES, .offset = row * bytes, .bytes = bytes };
}

/* Whether this rank and peer may have anything for each other: where there is a root, it is one of
 * them. */
static bool is_pair(const tti_plan_input *p, int peer)
{
    return p->root < 0 || p->rank == p->root || peer == p->root;
}

static void all_to_all_sizes(const tti_plan_input *p, tti_schedule *schedule)
{
    int i;

    tti_schedule_phase(schedule);
    for (i = 1; i < p->n_ranks && p->chunk == 0; i++) {
        const int to = tti_shifted(p->rank, i, p->n_ranks);
        const int from = tti_shifted(p->rank, -i, p->n_ranks);

        if (is_pair(p, to))
            tti_schedule_send(schedule, to, sizes(to));
        if (is_pair(p, from))
            tti_schedule_recv(schedule, from, sizes(p->n_ranks + from));
    }
}

void tti_plan_all_to_all_direct(const tti_plan_input *p, tti_schedule *schedule)
{
    int i;

    all_to_all_sizes(p, schedule);
    tti_schedule_phase(schedule);
    for (i = 1; i < p->n_ranks; i++) {
        const int       to = tti_shifted(p->rank, i, p->n_ranks);
        const int       from = tti_shifted(p->rank, -i, p->n_ranks);
        const tti_block given = block(TTI_PLACE_INS, to, p->in_counts, p);
        const tti_block taken = block(TTI_PLACE_LIST, from, p->list_counts, p);

        if (given.bytes > 0)
            tti_schedule_send(schedule, to, given);
        if (taken.bytes > 0)
            tti_schedule_recv(schedule, from, taken);
    }
    tti_schedule_copy(schedule, block(TTI_PLACE_LIST, p->rank, p->list_counts, p),
                      block(TTI_PLACE_INS, p->rank, p->in_counts, p));
}

void tti_plan_barrier_dissemination(const tti_plan_input *p, tti_schedule *schedule)
{
    const tti_block token = { .place = TTI_PLACE_SCRATCH };
    int             step;

    for (step = 0; step < tti_doubling_steps(p->n_ranks); step++) {
        tti_schedule_phase(schedule);
        tti_schedule_send(schedule, tti_shifted(p->rank, 1 << step, p->n_ranks), token);
        tti_schedule_recv(schedule, tti_shifted(p->rank, -(1 << step), p->n_ranks), token);
    }
}

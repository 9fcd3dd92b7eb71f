/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plan_move.c - plans that only move data: broadcast; all_gather, gather and scatter by direct messages; barrier. */
#include "coll/net/blocks.h"

/* ---- broadcast --------------------------------------------------------------------------------- */

/* What a rank hands on. */
static tti_block sent_on(const tti_plan_input *p)
{
    return tti_whole(p->rank == p->root ? TTI_PLACE_IN : TTI_PLACE_OUT, p);
}

static void broadcast_by(const tti_plan_input *p, tti_schedule *schedule, int radix)
{
    const int steps = tti_radix_steps(p->n_ranks, radix);
    int       heard_in = -1;
    const int parent = tti_radix_parent(p->rank, p->root, p->n_ranks, radix, &heard_in);
    int       step, i;

    for (step = 0; step < steps && p->count > 0; step++) {
        tti_schedule_phase(schedule);
        if (step == heard_in)
            tti_schedule_recv(schedule, parent, tti_whole(TTI_PLACE_OUT, p));
        for (i = 1; i < radix; i++) {
            const int child = tti_radix_child(p->rank, p->root, p->n_ranks, radix, step, i);

            if (child >= 0)
                tti_schedule_send(schedule, child, sent_on(p));
        }
    }
}

void tti_plan_broadcast_binomial(const tti_plan_input *p, tti_schedule *schedule)
{
    broadcast_by(p, schedule, 2);
}

void tti_plan_broadcast_knomial4(const tti_plan_input *p, tti_schedule *schedule)
{
    broadcast_by(p, schedule, 4);
}

void tti_plan_broadcast_flat(const tti_plan_input *p, tti_schedule *schedule)
{
    int i;

    if (p->count == 0)
        return;
    tti_schedule_phase(schedule);
    if (p->rank != p->root)
        tti_schedule_recv(schedule, p->root, tti_whole(TTI_PLACE_OUT, p));
    for (i = 1; p->rank == p->root && i < p->n_ranks; i++)
        tti_schedule_send(schedule, tti_shifted(p->rank, i, p->n_ranks), tti_whole(TTI_PLACE_IN, p));
}

/* The root, which has everything, owns no slice: the others have one each. */
static tti_block slice_beside_root(tti_place place, const tti_plan_input *p, int owner)
{
    return tti_slices(place, p, p->n_ranks - 1, tti_shifted(owner, -p->root, p->n_ranks) - 1, 1);
}

/* The own slice to the others but the root, and theirs. */
static void swap_slices(const tti_plan_input *p, tti_schedule *schedule)
{
    int i;

    for (i = 1; i < p->n_ranks; i++) {
        const int to = tti_shifted(p->rank, i, p->n_ranks);
        const int from = tti_shifted(p->rank, -i, p->n_ranks);

        if (to != p->root)
            tti_send_some(schedule, to, slice_beside_root(TTI_PLACE_OUT, p, p->rank));
        if (from != p->root)
            tti_recv_some(schedule, from, slice_beside_root(TTI_PLACE_OUT, p, from));
    }
}

void tti_plan_broadcast_sliced(const tti_plan_input *p, tti_schedule *schedule)
{
    int i;

    if (p->count == 0 || p->n_ranks == 1)
        return;
    tti_schedule_phase(schedule);
    if (p->rank != p->root)
        tti_recv_some(schedule, p->root, slice_beside_root(TTI_PLACE_OUT, p, p->rank));
    for (i = 1; p->rank == p->root && i < p->n_ranks; i++) {
        const int to = tti_shifted(p->rank, i, p->n_ranks);

        tti_send_some(schedule, to, slice_beside_root(TTI_PLACE_IN, p, to));
    }
    tti_schedule_phase(schedule);
    if (p->rank != p->root)
        swap_slices(p, schedule);
}

/* ---- all_gather, gather, scatter --------------------------------------------------------------- */

/* The own part, in a buffer that has nothing else. */
static tti_block own_part(tti_place place, const tti_plan_input *p)
{
    return (tti_block){ .place = place, .bytes = tti_part(p->rank, p).bytes };
}

static void copy_some(tti_schedule *schedule, tti_block to, tti_block from)
{
    if (from.bytes > 0)
        tti_schedule_copy(schedule, to, from);
}

void tti_plan_all_gather_direct(const tti_plan_input *p, tti_schedule *schedule)
{
    const tti_block own = own_part(TTI_PLACE_IN, p);
    int             i;

    if (p->count == 0)
        return;
    tti_schedule_phase(schedule);
    for (i = 1; i < p->n_ranks; i++) {
        const int from = tti_shifted(p->rank, -i, p->n_ranks);

        tti_send_told(p, schedule, tti_shifted(p->rank, i, p->n_ranks), own);
        tti_recv_told(p, schedule, from, tti_part(from, p));
    }
    tti_schedule_copy(schedule, tti_part(p->rank, p), own);
}

void tti_plan_gather_direct(const tti_plan_input *p, tti_schedule *schedule)
{
    int i;

    if (p->count == 0)
        return;
    tti_schedule_phase(schedule);
    if (p->rank != p->root) {
        tti_schedule_send(schedule, p->root, own_part(TTI_PLACE_IN, p));
        return;
    }
    for (i = 1; i < p->n_ranks; i++) {
        const int from = tti_shifted(p->rank, i, p->n_ranks);

        tti_schedule_recv(schedule, from, tti_part(from, p));
    }
    copy_some(schedule, tti_part(p->rank, p), own_part(TTI_PLACE_IN, p));
}

void tti_plan_scatter_direct(const tti_plan_input *p, tti_schedule *schedule)
{
    int i;

    if (p->count == 0)
        return;
    tti_schedule_phase(schedule);
    if (p->rank != p->root) {
        tti_schedule_recv(schedule, p->root, own_part(TTI_PLACE_OUT, p));
        return;
    }
    for (i = 1; i < p->n_ranks; i++) {
        const int to = tti_shifted(p->rank, i, p->n_ranks);

        tti_schedule_send(schedule, to, tti_part(to, p));
    }
    copy_some(schedule, own_part(TTI_PLACE_OUT, p), tti_part(p->rank, p));
}

/* ---- barrier ----------------------------------------------------------------------------------- */

void tti_plan_barrier_flat(const tti_plan_input *p, tti_schedule *schedule)
{
    const tti_block token = { .place = TTI_PLACE_SCRATCH };
    int             i;

    tti_schedule_phase(schedule);
    for (i = 1; i < p->n_ranks; i++) {
        tti_schedule_send(schedule, tti_shifted(p->rank, i, p->n_ranks), token);
        tti_schedule_recv(schedule, tti_shifted(p->rank, -i, p->n_ranks), token);
    }
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

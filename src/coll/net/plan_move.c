/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plan_move.c - plans that only move data: broadcast; all_gather, gather and scatter by direct messages; barrier. */
#include "coll/net/blocks.h"
#include "coll/net/turns.h"

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
            tti_send_among(p, schedule, to, slice_beside_root(TTI_PLACE_OUT, p, p->rank));
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

        tti_send_among(p, schedule, to, slice_beside_root(TTI_PLACE_IN, p, to));
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

        if (tti_is_told(p, own))
            tti_schedule_send_beside(schedule, tti_shifted(p->rank, i, p->n_ranks), own, tti_among(p, own.bytes));
        tti_recv_told(p, schedule, from, tti_part(from, p));
    }
    tti_schedule_copy(schedule, tti_part(p->rank, p), own);
}

/* ---- gather in turns (turns.h); scatter ---- */

/* A rank that is walked past, from the root's right neighbour on. */
typedef struct passer {
    const tti_plan_input *p;
    int                   i;       /* so far to the right of the root */
    int64_t               taken;   /* of turns, by those before */
    bool                  at_once; /* all fit */
} passer;

static int rank_at(const passer *at)
{
    return tti_shifted(at->p->root, at->i, at->p->n_ranks);
}

static bool is_past(const passer *at)
{
    return at->i == at->p->n_ranks;
}

static int turn_at(const passer *at)
{
    return at->at_once ? 0 : tti_turn_behind(at->taken);
}

static void pass(passer *at)
{
    at->taken += tti_of_a_turn(tti_part(rank_at(at), at->p).bytes);
    at->i++;
}

static passer first_passer(const tti_plan_input *p)
{
    passer  at = { .p = p, .i = 1, .at_once = true };
    int64_t bytes = 0;

    for (; at.i < p->n_ranks && bytes <= TTI_AT_ONCE_BYTES; at.i++)
        bytes += tti_part(rank_at(&at), p).bytes;
    return (passer){ .p = p, .i = 1, .at_once = bytes <= TTI_AT_ONCE_BYTES };
}

/* This rank's turn, and the last one's. */
static int turn_of_this(const tti_plan_input *p, int *last_out)
{
    passer at;
    int    mine = 0;

    *last_out = 0;
    for (at = first_passer(p); !is_past(&at); pass(&at)) {
        *last_out = turn_at(&at);
        if (rank_at(&at) == p->rank)
            mine = turn_at(&at);
    }
    return mine;
}

/* "Begin": a message of nothing. */
static tti_block word(void)
{
    return (tti_block){ .place = TTI_PLACE_SCRATCH };
}

/* The root: what a turn brings, once the next one was told to begin. */
static void gather_here(const tti_plan_input *p, tti_schedule *schedule)
{
    passer at = first_passer(p), next = at;
    int    turn;

    for (turn = 0; turn == 0 || !is_past(&at); turn++) {
        tti_schedule_phase(schedule);
        for (; !is_past(&next) && turn_at(&next) <= turn + 1; pass(&next))
            if (turn_at(&next) == turn + 1)
                tti_schedule_send(schedule, rank_at(&next), word());
        for (; !is_past(&at) && turn_at(&at) == turn; pass(&at))
            tti_schedule_recv(schedule, rank_at(&at), tti_part(rank_at(&at), p));
        if (turn == 0)
            copy_some(schedule, tti_part(p->rank, p), own_part(TTI_PLACE_IN, p));
    }
}

void tti_plan_gather_direct(const tti_plan_input *p, tti_schedule *schedule)
{
    const tti_block own = own_part(TTI_PLACE_IN, p);
    int             turn, mine, last;

    if (p->count == 0)
        return;
    if (p->rank == p->root) {
        gather_here(p, schedule);
        return;
    }
    mine = turn_of_this(p, &last);
    for (turn = 0; turn <= last; turn++) {
        tti_schedule_phase(schedule);
        if (turn == mine - 1)
            tti_schedule_recv(schedule, p->root, word());
        if (turn == mine)
            tti_schedule_send_beside(schedule, p->root, own, tti_beside(p->n_ranks, own.bytes, 1));
    }
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
        const int       to = tti_shifted(p->rank, i, p->n_ranks);
        const tti_block part = tti_part(to, p);

        tti_schedule_send_beside(schedule, to, part, tti_beside(p->n_ranks, part.bytes, 1));
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

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ops_move.c - collectives that only move. */
#include "ops.h"

static int global_root(const tt_try *t)
{
    return tutti_get_global_rank(t->group, t->root);
}

static bool is_root(const tt_try *t)
{
    return t->rank == t->root;
}

static tutti_work **work(tt_try *t)
{
    return &t->works[t->n_works];
}

static tutti_status begun(tt_try *t, tutti_status st)
{
    t->n_works += st == TUTTI_OK;
    return st;
}

/* ---- broadcast ---- */

void tt_broadcast_prepare(tt_try *t)
{
    t->outs[0] = tt_make(t, t->count, is_root(t) ? tt_part(t->root, 0) : tt_blank(), tt_part(t->root, 0));
}

tutti_status tt_broadcast_block(tt_try *t)
{
    return tutti_broadcast(t->outs[0], global_root(t), t->group);
}

tutti_status tt_broadcast_start(tt_try *t)
{
    return begun(t, tutti_broadcast_async(t->outs[0], global_root(t), t->group, work(t)));
}

/* ---- all_gather, gather ---- */

static void gather_lists(tt_try *t, bool receives)
{
    int r;

    t->ins[0] = tt_make(t, t->count, tt_part(t->rank, 0), tt_part(t->rank, 0));
    for (r = 0; receives && r < t->size; r++)
        t->outs[r] = tt_make(t, t->count, tt_blank(), tt_part(r, 0));
}

void tt_all_gather_prepare(tt_try *t)
{
    gather_lists(t, true);
}

tutti_status tt_all_gather_block(tt_try *t)
{
    return tutti_all_gather(t->outs, t->size, t->ins[0], t->group);
}

tutti_status tt_all_gather_start(tt_try *t)
{
    return begun(t, tutti_all_gather_async(t->outs, t->size, t->ins[0], t->group, work(t)));
}

void tt_all_gather_into_tensor_prepare(tt_try *t)
{
    tt_buf *out = tt_buf_new(t, t->count * t->size);
    int     r;

    t->outs[0] = out->span;
    for (r = 0; r < t->size; r++) {
        const bool mine = t->in_place && r == t->rank;
        tutti_span piece =
            tt_buf_piece(out, r * t->count, t->count, mine ? tt_part(r, 0) : tt_blank(), tt_part(r, 0));

        if (mine)
            t->ins[0] = piece;
    }
    if (!t->in_place)
        t->ins[0] = tt_make(t, t->count, tt_part(t->rank, 0), tt_part(t->rank, 0));
}

tutti_status tt_all_gather_into_tensor_block(tt_try *t)
{
    return tutti_all_gather_into_tensor(t->outs[0], t->ins[0], t->group);
}

tutti_status tt_all_gather_into_tensor_start(tt_try *t)
{
    return begun(t, tutti_all_gather_into_tensor_async(t->outs[0], t->ins[0], t->group, work(t)));
}

void tt_gather_prepare(tt_try *t)
{
    gather_lists(t, is_root(t));
}

tutti_status tt_gather_block(tt_try *t)
{
    return tutti_gather(is_root(t) ? t->outs : NULL, is_root(t) ? t->size : 0, t->ins[0], global_root(t),
                        t->group);
}

tutti_status tt_gather_start(tt_try *t)
{
    return begun(t, tutti_gather_async(is_root(t) ? t->outs : NULL, is_root(t) ? t->size : 0, t->ins[0],
                                       global_root(t), t->group, work(t)));
}

/* ---- scatter ---- */

void tt_scatter_prepare(tt_try *t)
{
    int r;

    for (r = 0; is_root(t) && r < t->size; r++)
        t->ins[r] = tt_make(t, t->count, tt_part(t->root, r), tt_part(t->root, r));
    t->outs[0] = tt_make(t, t->count, tt_blank(), tt_part(t->root, t->rank));
}

tutti_status tt_scatter_block(tt_try *t)
{
    return tutti_scatter(t->outs[0], is_root(t) ? t->ins : NULL, is_root(t) ? t->size : 0, global_root(t),
                         t->group);
}

tutti_status tt_scatter_start(tt_try *t)
{
    return begun(t, tutti_scatter_async(t->outs[0], is_root(t) ? t->ins : NULL, is_root(t) ? t->size : 0,
                                        global_root(t), t->group, work(t)));
}

/* ---- all_to_all ---- */

/* What one rank gives another: any number of elements, no relation to what it gets back. */
static int64_t block_count(const tt_try *t, int from, int to)
{
    const int64_t about = t->count * tt_roll(t, 20, from, to, 5) / 2;

    return t->count > 3 ? about + tt_roll(t, 21, from, to, 4) : about;
}

void tt_all_to_all_prepare(tt_try *t)
{
    int r;

    for (r = 0; r < t->size; r++) {
        t->ins[r] = tt_make(t, block_count(t, t->rank, r), tt_part(t->rank, r), tt_part(t->rank, r));
        t->outs[r] = t->in_place && r == t->rank
                         ? t->ins[r]
                         : tt_make(t, block_count(t, r, t->rank), tt_blank(), tt_part(r, t->rank));
    }
}

tutti_status tt_all_to_all_block(tt_try *t)
{
    return tutti_all_to_all(t->outs, t->size, t->ins, t->size, t->group);
}

tutti_status tt_all_to_all_start(tt_try *t)
{
    return begun(t, tutti_all_to_all_async(t->outs, t->size, t->ins, t->size, t->group, work(t)));
}

/* Equal blocks without splits, or any. */
static bool even(const tt_try *t)
{
    return tt_roll(t, 22, 0, 0, 3) == 0;
}

static int64_t single_block(const tt_try *t, int from, int to)
{
    return even(t) ? t->count : block_count(t, from, to);
}

void tt_all_to_all_single_prepare(tt_try *t)
{
    int64_t given = 0, taken = 0;
    tt_buf *in, *out;
    int     r;

    for (r = 0; r < t->size; r++) {
        given += t->in_splits[r] = single_block(t, t->rank, r);
        taken += t->out_splits[r] = single_block(t, r, t->rank);
    }
    in = tt_buf_new(t, given);
    out = tt_buf_new(t, taken);
    t->ins[0] = in->span;
    t->outs[0] = out->span;
    for (r = 0, given = 0, taken = 0; r < t->size; r++) {
        tt_buf_piece(in, given, t->in_splits[r], tt_part(t->rank, r), tt_part(t->rank, r));
        tt_buf_piece(out, taken, t->out_splits[r], tt_blank(), tt_part(r, t->rank));
        given += t->in_splits[r];
        taken += t->out_splits[r];
    }
}

/* Splits of equal blocks may be said or not, each for itself. */
static const int64_t *out_splits(const tt_try *t)
{
    return even(t) && tt_roll_own(t, 23, 2) == 0 ? NULL : t->out_splits;
}

static const int64_t *in_splits(const tt_try *t)
{
    return even(t) && tt_roll_own(t, 24, 2) == 0 ? NULL : t->in_splits;
}

tutti_status tt_all_to_all_single_block(tt_try *t)
{
    return tutti_all_to_all_single(t->outs[0], t->ins[0], out_splits(t), in_splits(t), t->group);
}

tutti_status tt_all_to_all_single_start(tt_try *t)
{
    return begun(t, tutti_all_to_all_single_async(t->outs[0], t->ins[0], out_splits(t), in_splits(t), t->group,
                                                  work(t)));
}

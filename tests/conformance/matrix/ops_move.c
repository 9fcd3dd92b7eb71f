/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ops_move.c - collectives that only move. */
#include "ops.h"

/* ---- broadcast ---- */

void tt_broadcast_prepare(tt_try *t)
{
    t->outs[0] =
        tt_make(t, t->count, tt_is_root(t) ? tt_part(t->root, 0) : tt_blank(), tt_part(t->root, 0));
}

tutti_status tt_broadcast_block(tt_try *t)
{
    return tutti_broadcast(t->outs[0], tt_global(t, t->root), t->group);
}

tutti_status tt_broadcast_start(tt_try *t)
{
    return tt_begun(t,
                    tutti_broadcast_async(t->outs[0], tt_global(t, t->root), t->group, tt_work(t)));
}

/* ---- all_gather, gather ---- */

/* Elements of each rank's part, in out_splits: all equal, or any. */
static void set_counts(tt_try *t, bool equal)
{
    int r;

    for (r = 0; r < t->size; r++)
        t->out_splits[r] = equal ? t->count : tt_any_count(t, 25, r, 0);
}

static void gather_lists(tt_try *t, bool receives)
{
    int r;

    t->ins[0] = tt_make(t, t->out_splits[t->rank], tt_part(t->rank, 0), tt_part(t->rank, 0));
    for (r = 0; receives && r < t->size; r++)
        t->outs[r] = tt_make(t, t->out_splits[r], tt_blank(), tt_part(r, 0));
}

void tt_all_gather_prepare(tt_try *t)
{
    set_counts(t, true);
    gather_lists(t, true);
}

void tt_all_gather_uneven_prepare(tt_try *t)
{
    set_counts(t, false);
    gather_lists(t, true);
}

tutti_status tt_all_gather_block(tt_try *t)
{
    return tutti_all_gather(t->outs, t->size, t->ins[0], t->group);
}

tutti_status tt_all_gather_start(tt_try *t)
{
    return tt_begun(t, tutti_all_gather_async(t->outs, t->size, t->ins[0], t->group, tt_work(t)));
}

static void gather_flat(tt_try *t)
{
    int64_t all = 0;
    tt_buf *out;
    int r;

    for (r = 0; r < t->size; r++)
        all += t->out_splits[r];
    out = tt_buf_new(t, all);
    t->outs[0] = out->span;
    for (r = 0, all = 0; r < t->size; all += t->out_splits[r++]) {
        const bool mine = t->in_place && r == t->rank;
        tutti_span piece = tt_buf_piece(out, all, t->out_splits[r],
                                        mine ? tt_part(r, 0) : tt_blank(), tt_part(r, 0));

        if (mine)
            t->ins[0] = piece;
    }
    if (!t->in_place)
        t->ins[0] = tt_make(t, t->out_splits[t->rank], tt_part(t->rank, 0), tt_part(t->rank, 0));
}

void tt_all_gather_into_tensor_prepare(tt_try *t)
{
    set_counts(t, true);
    gather_flat(t);
}

tutti_status tt_all_gather_into_tensor_block(tt_try *t)
{
    return tutti_all_gather_into_tensor(t->outs[0], t->ins[0], t->group);
}

tutti_status tt_all_gather_into_tensor_start(tt_try *t)
{
    return tt_begun(
        t, tutti_all_gather_into_tensor_async(t->outs[0], t->ins[0], t->group, tt_work(t)));
}

void tt_all_gather_into_tensor_v_prepare(tt_try *t)
{
    set_counts(t, false);
    gather_flat(t);
}

tutti_status tt_all_gather_into_tensor_v_block(tt_try *t)
{
    return tutti_all_gather_into_tensor_v(t->outs[0], t->ins[0], t->out_splits, t->group);
}

tutti_status tt_all_gather_into_tensor_v_start(tt_try *t)
{
    return tt_begun(t, tutti_all_gather_into_tensor_v_async(t->outs[0], t->ins[0], t->out_splits,
                                                            t->group, tt_work(t)));
}

void tt_gather_prepare(tt_try *t)
{
    set_counts(t, true);
    gather_lists(t, tt_is_root(t));
}

tutti_status tt_gather_block(tt_try *t)
{
    return tutti_gather(tt_is_root(t) ? t->outs : NULL, tt_is_root(t) ? t->size : 0, t->ins[0],
                        tt_global(t, t->root), t->group);
}

tutti_status tt_gather_start(tt_try *t)
{
    return tt_begun(t,
                    tutti_gather_async(tt_is_root(t) ? t->outs : NULL, tt_is_root(t) ? t->size : 0,
                                       t->ins[0], tt_global(t, t->root), t->group, tt_work(t)));
}

void tt_gather_v_prepare(tt_try *t)
{
    set_counts(t, false);
    gather_lists(t, tt_is_root(t));
}

tutti_status tt_gather_v_block(tt_try *t)
{
    return tutti_gather_v(tt_is_root(t) ? t->outs : NULL, tt_is_root(t) ? t->size : 0, t->ins[0],
                          tt_global(t, t->root), t->group);
}

tutti_status tt_gather_v_start(tt_try *t)
{
    return tt_begun(t, tutti_gather_v_async(tt_is_root(t) ? t->outs : NULL,
                                            tt_is_root(t) ? t->size : 0, t->ins[0],
                                            tt_global(t, t->root), t->group, tt_work(t)));
}

/* ---- scatter ---- */

static void scatter_lists(tt_try *t)
{
    int r;

    for (r = 0; tt_is_root(t) && r < t->size; r++)
        t->ins[r] = tt_make(t, t->out_splits[r], tt_part(t->root, r), tt_part(t->root, r));
    t->outs[0] = tt_make(t, t->out_splits[t->rank], tt_blank(), tt_part(t->root, t->rank));
}

void tt_scatter_prepare(tt_try *t)
{
    set_counts(t, true);
    scatter_lists(t);
}

tutti_status tt_scatter_block(tt_try *t)
{
    return tutti_scatter(t->outs[0], tt_is_root(t) ? t->ins : NULL, tt_is_root(t) ? t->size : 0,
                         tt_global(t, t->root), t->group);
}

tutti_status tt_scatter_start(tt_try *t)
{
    return tt_begun(t, tutti_scatter_async(t->outs[0], tt_is_root(t) ? t->ins : NULL,
                                           tt_is_root(t) ? t->size : 0, tt_global(t, t->root),
                                           t->group, tt_work(t)));
}

void tt_scatter_v_prepare(tt_try *t)
{
    set_counts(t, false);
    scatter_lists(t);
}

tutti_status tt_scatter_v_block(tt_try *t)
{
    return tutti_scatter_v(t->outs[0], tt_is_root(t) ? t->ins : NULL, tt_is_root(t) ? t->size : 0,
                           tt_global(t, t->root), t->group);
}

tutti_status tt_scatter_v_start(tt_try *t)
{
    return tt_begun(t, tutti_scatter_v_async(t->outs[0], tt_is_root(t) ? t->ins : NULL,
                                             tt_is_root(t) ? t->size : 0, tt_global(t, t->root),
                                             t->group, tt_work(t)));
}

/* ---- all_to_all ---- */

/* What one rank gives another: any number of elements, no relation to what it gets back. */
static int64_t block_count(const tt_try *t, int from, int to)
{
    return tt_any_count(t, 20, from, to);
}

void tt_all_to_all_prepare(tt_try *t)
{
    int r;

    for (r = 0; r < t->size; r++) {
        t->ins[r] =
            tt_make(t, block_count(t, t->rank, r), tt_part(t->rank, r), tt_part(t->rank, r));
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
    return tt_begun(
        t, tutti_all_to_all_async(t->outs, t->size, t->ins, t->size, t->group, tt_work(t)));
}

/* Equal blocks without splits, or any. */
static bool even(const tt_try *t)
{
    return !t->in_place && tt_roll(t, 22, 0, 0, 3) == 0;
}

/* In place ranks give to themselves and to later ones only: see below. */
static int64_t single_block(const tt_try *t, int from, int to)
{
    if (t->in_place && from > to)
        return 0;
    return even(t) ? t->count : block_count(t, from, to);
}

/* out and in share the own block and nothing else. So it is out's last and in's first that is not empty: one
 * buffer has what comes from earlier ranks, the own block, what goes to later ones. */
static void single_in_place(tt_try *t, int64_t given, int64_t taken)
{
    const int64_t own = t->in_splits[t->rank];
    tt_buf *both = tt_buf_new(t, taken - own + given);
    int64_t at = 0;
    int r;

    for (r = 0; r < t->rank; at += t->out_splits[r++])
        tt_buf_piece(both, at, t->out_splits[r], tt_blank(), tt_part(r, t->rank));
    for (; r < t->size; at += t->in_splits[r++])
        tt_buf_piece(both, at, t->in_splits[r], tt_part(t->rank, r), tt_part(t->rank, r));
    t->outs[0] = tt_slice(both->span, 0, taken);
    t->ins[0] = tt_slice(both->span, taken - own, given);
}

void tt_all_to_all_single_prepare(tt_try *t)
{
    int64_t given = 0, taken = 0;
    tt_buf *in, *out;
    int r;

    for (r = 0; r < t->size; r++) {
        given += t->in_splits[r] = single_block(t, t->rank, r);
        taken += t->out_splits[r] = single_block(t, r, t->rank);
    }
    if (t->in_place) {
        single_in_place(t, given, taken);
        return;
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
    return tt_begun(t, tutti_all_to_all_single_async(t->outs[0], t->ins[0], out_splits(t),
                                                     in_splits(t), t->group, tt_work(t)));
}

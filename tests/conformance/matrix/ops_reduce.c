/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ops_reduce.c - operations that combine, and the barrier. */
#include "ops.h"

/* ---- all_reduce, reduce ---- */

void tt_all_reduce_prepare(tt_try *t)
{
    t->outs[0] = tt_make(t, t->count, tt_part(t->rank, 0), tt_folded(0));
}

tutti_status tt_all_reduce_block(tt_try *t)
{
    return tutti_all_reduce(t->outs[0], t->op, t->group);
}

tutti_status tt_all_reduce_start(tt_try *t)
{
    return tt_begun(t, tutti_all_reduce_async(t->outs[0], t->op, t->group, tt_work(t)));
}

void tt_reduce_prepare(tt_try *t)
{
    t->outs[0] = tt_make(t, t->count, tt_part(t->rank, 0),
                         t->rank == t->root ? tt_folded(0) : tt_part(t->rank, 0));
}

tutti_status tt_reduce_block(tt_try *t)
{
    return tutti_reduce(t->outs[0], tt_global(t, t->root), t->op, t->group);
}

tutti_status tt_reduce_start(tt_try *t)
{
    return tt_begun(
        t, tutti_reduce_async(t->outs[0], tt_global(t, t->root), t->op, t->group, tt_work(t)));
}

/* ---- reduce_scatter ---- */

/* Part r has any number of elements, none included, the same on all ranks. */
static int64_t part_count(const tt_try *t, int r)
{
    return tt_any_count(t, 10, r, 0);
}

void tt_reduce_scatter_prepare(tt_try *t)
{
    int r;

    for (r = 0; r < t->size; r++)
        t->ins[r] = tt_make(t, part_count(t, r), tt_part(t->rank, r),
                            t->in_place && r == t->rank ? tt_folded(r) : tt_part(t->rank, r));
    t->outs[0] = t->in_place ? t->ins[t->rank]
                             : tt_make(t, part_count(t, t->rank), tt_blank(), tt_folded(t->rank));
}

tutti_status tt_reduce_scatter_block(tt_try *t)
{
    return tutti_reduce_scatter(t->outs[0], t->ins, t->size, t->op, t->group);
}

tutti_status tt_reduce_scatter_start(tt_try *t)
{
    return tt_begun(
        t, tutti_reduce_scatter_async(t->outs[0], t->ins, t->size, t->op, t->group, tt_work(t)));
}

/* One buffer of all parts; their sizes are in in_splits. */
static void scatter_flat(tt_try *t)
{
    int64_t all = 0;
    tt_buf *in;
    int r;

    for (r = 0; r < t->size; r++)
        all += t->in_splits[r];
    in = tt_buf_new(t, all);
    t->ins[0] = in->span;
    for (r = 0, all = 0; r < t->size; all += t->in_splits[r++]) {
        const bool mine = t->in_place && r == t->rank;
        tutti_span piece = tt_buf_piece(in, all, t->in_splits[r], tt_part(t->rank, r),
                                        mine ? tt_folded(r) : tt_part(t->rank, r));

        if (mine)
            t->outs[0] = piece;
    }
    if (!t->in_place)
        t->outs[0] = tt_make(t, t->in_splits[t->rank], tt_blank(), tt_folded(t->rank));
}

void tt_reduce_scatter_tensor_prepare(tt_try *t)
{
    int r;

    for (r = 0; r < t->size; r++)
        t->in_splits[r] = t->count;
    scatter_flat(t);
}

tutti_status tt_reduce_scatter_tensor_block(tt_try *t)
{
    return tutti_reduce_scatter_tensor(t->outs[0], t->ins[0], t->op, t->group);
}

tutti_status tt_reduce_scatter_tensor_start(tt_try *t)
{
    return tt_begun(
        t, tutti_reduce_scatter_tensor_async(t->outs[0], t->ins[0], t->op, t->group, tt_work(t)));
}

void tt_reduce_scatter_tensor_v_prepare(tt_try *t)
{
    int r;

    for (r = 0; r < t->size; r++)
        t->in_splits[r] = part_count(t, r);
    scatter_flat(t);
}

tutti_status tt_reduce_scatter_tensor_v_block(tt_try *t)
{
    return tutti_reduce_scatter_tensor_v(t->outs[0], t->ins[0], t->in_splits, t->op, t->group);
}

tutti_status tt_reduce_scatter_tensor_v_start(tt_try *t)
{
    return tt_begun(t, tutti_reduce_scatter_tensor_v_async(t->outs[0], t->ins[0], t->in_splits,
                                                           t->op, t->group, tt_work(t)));
}

/* ---- barrier: nobody is through before all have come ---- */

void tt_barrier_prepare(tt_try *t)
{
    (void)t;
}

static void arrive(tt_try *t)
{
    if (t->arrivals != NULL)
        atomic_fetch_add(t->arrivals, 1);
}

tutti_status tt_barrier_block(tt_try *t)
{
    arrive(t);
    return tutti_barrier(t->group);
}

tutti_status tt_barrier_start(tt_try *t)
{
    arrive(t);
    return tt_begun(t, tutti_barrier_async(t->group, tt_work(t)));
}

bool tt_barrier_settle(tt_try *t)
{
    const uint32_t come = t->arrivals != NULL ? atomic_load(t->arrivals) : t->arrivals_due;

    return come >= t->arrivals_due ||
           tt_wrong(t, "through the barrier after %u arrivals of %u", come, t->arrivals_due);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ops_coalesce.c - several buffers in one operation: as lists, and recorded in a scope. Entry i of rank r is
 * that rank's part i; where an entry has a part for each rank, part i * TT_WORLD_MAX + r is rank r's. */
#include "ops.h"

/* Sizes that meet: none, small ones that travel together, large ones that go from where they lie. */
static int64_t entry_count(const tt_try *t, int i)
{
    const int64_t counts[] = { t->count, 0, 1, t->count / 3, 7 };

    return counts[i == 0 ? 0 : tt_roll(t, 40, i, 0, t->count > 0 ? 5 : 2)];
}

static void set_entries(tt_try *t)
{
    t->n_entries = 1 + tt_roll(t, 41, 0, 0, TT_ENTRIES_MAX);
}

/* ---- all_reduce ---- */

void tt_all_reduce_coalesced_prepare(tt_try *t)
{
    int i;

    set_entries(t);
    for (i = 0; i < t->n_entries; i++)
        t->outs[i] = tt_make(t, entry_count(t, i), tt_part(t->rank, i), tt_folded(i));
}

tutti_status tt_all_reduce_coalesced_block(tt_try *t)
{
    return tutti_all_reduce_coalesced(t->outs, t->n_entries, t->op, t->group);
}

tutti_status tt_all_reduce_coalesced_start(tt_try *t)
{
    return tt_begun(
        t, tutti_all_reduce_coalesced_async(t->outs, t->n_entries, t->op, t->group, tt_work(t)));
}

/* ---- all_gather ---- */

void tt_all_gather_coalesced_prepare(tt_try *t)
{
    int i, r;

    set_entries(t);
    for (i = 0; i < t->n_entries; i++)
        t->ins[i] = tt_make(t, entry_count(t, i), tt_part(t->rank, i), tt_part(t->rank, i));
    for (r = 0; r < t->size; r++)
        for (i = 0; i < t->n_entries; i++)
            t->outs[r * t->n_entries + i] =
                tt_make(t, entry_count(t, i), tt_blank(), tt_part(r, i));
}

static void out_lists(const tt_try *t, const tutti_span *lists[TT_WORLD_MAX])
{
    int r;

    for (r = 0; r < t->size; r++)
        lists[r] = &t->outs[r * t->n_entries];
}

tutti_status tt_all_gather_coalesced_block(tt_try *t)
{
    const tutti_span *lists[TT_WORLD_MAX];

    out_lists(t, lists);
    return tutti_all_gather_coalesced(lists, t->size, t->ins, t->n_entries, t->group);
}

tutti_status tt_all_gather_coalesced_start(tt_try *t)
{
    const tutti_span *lists[TT_WORLD_MAX];

    out_lists(t, lists);
    return tt_begun(t, tutti_all_gather_coalesced_async(lists, t->size, t->ins, t->n_entries,
                                                        t->group, tt_work(t)));
}

/* ---- all_gather_into_tensor ---- */

/* Entry by entry in place or not. */
static bool entry_in_place(const tt_try *t, int i)
{
    return tt_roll(t, 42, i, 0, 2) == 0;
}

static void gather_entry(tt_try *t, int i)
{
    const int64_t n = entry_count(t, i);
    const bool in_place = entry_in_place(t, i);
    tt_buf *out = tt_buf_new(t, n * t->size);
    int r;

    t->outs[i] = out->span;
    for (r = 0; r < t->size; r++) {
        const bool mine = in_place && r == t->rank;
        tutti_span piece =
            tt_buf_piece(out, r * n, n, mine ? tt_part(r, i) : tt_blank(), tt_part(r, i));

        if (mine)
            t->ins[i] = piece;
    }
    if (!in_place)
        t->ins[i] = tt_make(t, n, tt_part(t->rank, i), tt_part(t->rank, i));
}

void tt_all_gather_into_tensor_coalesced_prepare(tt_try *t)
{
    int i;

    set_entries(t);
    for (i = 0; i < t->n_entries; i++)
        gather_entry(t, i);
}

tutti_status tt_all_gather_into_tensor_coalesced_block(tt_try *t)
{
    return tutti_all_gather_into_tensor_coalesced(t->outs, t->ins, t->n_entries, t->group);
}

tutti_status tt_all_gather_into_tensor_coalesced_start(tt_try *t)
{
    return tt_begun(t, tutti_all_gather_into_tensor_coalesced_async(t->outs, t->ins, t->n_entries,
                                                                    t->group, tt_work(t)));
}

/* ---- reduce_scatter_tensor ---- */

static void scatter_entry(tt_try *t, int i)
{
    const int64_t n = entry_count(t, i);
    const bool in_place = entry_in_place(t, i);
    tt_buf *in = tt_buf_new(t, n * t->size);
    int r;

    t->ins[i] = in->span;
    for (r = 0; r < t->size; r++) {
        const bool mine = in_place && r == t->rank;
        const int part = i * TT_WORLD_MAX + r;
        tutti_span piece = tt_buf_piece(in, r * n, n, tt_part(t->rank, part),
                                        mine ? tt_folded(part) : tt_part(t->rank, part));

        if (mine)
            t->outs[i] = piece;
    }
    if (!in_place)
        t->outs[i] = tt_make(t, n, tt_blank(), tt_folded(i * TT_WORLD_MAX + t->rank));
}

void tt_reduce_scatter_tensor_coalesced_prepare(tt_try *t)
{
    int i;

    set_entries(t);
    for (i = 0; i < t->n_entries; i++)
        scatter_entry(t, i);
}

tutti_status tt_reduce_scatter_tensor_coalesced_block(tt_try *t)
{
    return tutti_reduce_scatter_tensor_coalesced(t->outs, t->ins, t->n_entries, t->op, t->group);
}

tutti_status tt_reduce_scatter_tensor_coalesced_start(tt_try *t)
{
    return tt_begun(t, tutti_reduce_scatter_tensor_coalesced_async(t->outs, t->ins, t->n_entries,
                                                                   t->op, t->group, tt_work(t)));
}

/* ---- the scope: each call is recorded; blocking and not are mixed where works are wanted ---- */

typedef tutti_status record_fn(tt_try *t, int i, bool async);

static tutti_status record_all_reduce(tt_try *t, int i, bool async)
{
    return async ? tt_begun(t, tutti_all_reduce_async(t->outs[i], t->op, t->group, tt_work(t)))
                 : tutti_all_reduce(t->outs[i], t->op, t->group);
}

static tutti_status record_all_gather(tt_try *t, int i, bool async)
{
    return async ? tt_begun(t, tutti_all_gather_into_tensor_async(t->outs[i], t->ins[i], t->group,
                                                                  tt_work(t)))
                 : tutti_all_gather_into_tensor(t->outs[i], t->ins[i], t->group);
}

static tutti_status record_reduce_scatter(tt_try *t, int i, bool async)
{
    return async ? tt_begun(t, tutti_reduce_scatter_tensor_async(t->outs[i], t->ins[i], t->op,
                                                                 t->group, tt_work(t)))
                 : tutti_reduce_scatter_tensor(t->outs[i], t->ins[i], t->op, t->group);
}

static tutti_status record(tt_try *t, record_fn *fn, bool works)
{
    tutti_status st = tutti_coalescing_begin(t->group);
    int i;

    for (i = 0; i < t->n_entries && st == TUTTI_OK; i++)
        st = fn(t, i, works && tt_roll_own(t, 43 + i, 2) == 0);
    if (st != TUTTI_OK)
        return st;
    return works ? tt_begun(t, tutti_coalescing_end(t->group, tt_work(t)))
                 : tutti_coalescing_end(t->group, NULL);
}

tutti_status tt_all_reduce_scope_block(tt_try *t)
{
    return record(t, record_all_reduce, false);
}

tutti_status tt_all_reduce_scope_start(tt_try *t)
{
    return record(t, record_all_reduce, true);
}

tutti_status tt_all_gather_scope_block(tt_try *t)
{
    return record(t, record_all_gather, false);
}

tutti_status tt_all_gather_scope_start(tt_try *t)
{
    return record(t, record_all_gather, true);
}

tutti_status tt_reduce_scatter_scope_block(tt_try *t)
{
    return record(t, record_reduce_scatter, false);
}

tutti_status tt_reduce_scatter_scope_start(tt_try *t)
{
    return record(t, record_reduce_scatter, true);
}

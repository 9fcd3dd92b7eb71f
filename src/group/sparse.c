/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sparse.c - the sum of sparse tensors over a group.
 *
 * How     Each rank coalesces its own tensor. Then three collectives, in turns that follow each other
 *         (tti_turns): a record of fixed size says what each rank has; indices and values follow as parts of
 *         different sizes; every rank merges all of them (coo.c), which adds what has one place in rank order.
 * True    The record is compared on all ranks alike, so they agree whether to go on: ranks with other
 *         dimensions are an error on all, and the group goes on. What other ranks send is checked like what
 *         the caller gives before any of it is used as an index.
 * Fails   Who has no memory for what the others have finishes the group: they are in the middle of the
 *         operation, and would wait for its part. */
#include "group/collective.h"
#include "group/coo.h"
#include "group/hooks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

enum { N_TURNS = 3 };

static const char WHAT[] = "sparse_all_reduce";

/* What a rank has. 64-bit numbers only: it is gathered as i64. */
typedef struct record {
    int64_t sparse_dim;
    int64_t dense_dim;
    int64_t sizes[2 * TUTTI_SPARSE_DIMS_MAX];
    int64_t dtype;
    int64_t nnz;
} record;

enum { RECORD_NUMBERS = sizeof(record) / sizeof(int64_t) };

_Static_assert(sizeof(record) == 12 * sizeof(int64_t), "a record has no gaps");

/* All ranks' tensors on their way here. */
typedef struct gathering {
    tutti_group      *group;
    tti_turns         turns;
    tutti_sparse_coo  mine; /* coalesced */
    record           *records;
    int64_t          *counts;
    int64_t          *indices;
    char             *values;
    tutti_sparse_coo *all;
} gathering;

static tutti_status fail_memory(const gathering *g)
{
    return tti_fail(TUTTI_E_NOMEM, "%s on group '%s': no memory for the tensors of %d ranks", WHAT,
                    g->group->name, g->group->size);
}

static record record_of(const tutti_sparse_coo *t)
{
    record r = { .sparse_dim = t->sparse_dim, .dense_dim = t->dense_dim,
                 .dtype = (int64_t)t->values.dtype, .nnz = t->nnz };

    memcpy(r.sizes, t->sizes, (size_t)(t->sparse_dim + t->dense_dim) * sizeof r.sizes[0]);
    return r;
}

/* All but the number of blocks. */
static bool is_alike(const record *a, const record *b)
{
    return memcmp(a, b, offsetof(record, nnz)) == 0;
}

static tutti_status compare_records(const gathering *g)
{
    char   list[200] = "";
    size_t used = 0;
    int    n = 0, r;

    for (r = 1; r < g->group->size; r++) {
        if (is_alike(&g->records[r], &g->records[0]))
            continue;
        if (used + 16 < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%d", n > 0 ? ", " : "",
                                     g->group->ranks[r]);
        n++;
    }
    if (n == 0)
        return TUTTI_OK;
    return tti_fail(TUTTI_E_MISMATCH,
                    "%s on group '%s': %d ranks have other dimensions, sizes or dtypes than "
                    "rank %d: %s\n  next: give all ranks tensors of one shape and type",
                    WHAT, g->group->name, n, g->group->ranks[0], list);
}

static tutti_status gathering_init(gathering *g, tutti_group *group, const tutti_sparse_coo *in)
{
    const size_t n = (size_t)group->size;

    *g = (gathering){ .group = group };
    g->records = calloc(n, sizeof *g->records);
    g->counts = calloc(n, sizeof *g->counts);
    g->all = calloc(n, sizeof *g->all);
    if (g->records == NULL || g->counts == NULL || g->all == NULL)
        return fail_memory(g);
    return tti_coo_merge(in, 1, &g->mine);
}

static void gathering_release(gathering *g)
{
    tutti_sparse_free(&g->mine);
    free(g->records);
    free(g->counts);
    free(g->indices);
    free(g->values);
    free(g->all);
}

static tutti_status gather_records(gathering *g)
{
    const record mine = record_of(&g->mine);
    const int    n = g->group->size;
    tutti_status st =
        tti_all_gather_into_span(WHAT, g->group, tutti_span_of(g->records, (int64_t)n * RECORD_NUMBERS, TUTTI_I64),
                                 tutti_span_of(&mine, RECORD_NUMBERS, TUTTI_I64), tti_in_turns(&g->turns));

    return st == TUTTI_OK ? compare_records(g) : st;
}

/* Elements of each rank's part, per_block for each of its blocks; the sum, or -1 if it is beyond memory. */
static int64_t count_parts(const gathering *g, int64_t per_block, size_t element)
{
    const int64_t room = PTRDIFF_MAX / 2 / (int64_t)element;
    int64_t       sum = 0;
    int           r;

    for (r = 0; r < g->group->size; r++) {
        const int64_t nnz = g->records[r].nnz;

        if (nnz < 0 || (per_block > 0 && nnz > (room - sum) / per_block))
            return -1;
        sum += g->counts[r] = nnz * per_block;
    }
    return sum;
}

static tutti_status gather_part(gathering *g, tutti_span mine, int64_t per_block, char **all_out)
{
    const size_t  element = tutti_dtype_size(mine.dtype);
    const int64_t sum = count_parts(g, per_block, element);
    char         *all = sum >= 0 ? malloc((size_t)sum * element + 1) : NULL;

    if (all == NULL)
        return fail_memory(g);
    *all_out = all;
    return tti_all_gather_into_v_span(WHAT, g->group, tutti_span_of(all, sum, mine.dtype), mine, g->counts,
                                      tti_in_turns(&g->turns));
}

/* The tensors as they came; each is checked like one that a caller gives. */
static tutti_status read_tensors(gathering *g)
{
    const int64_t  block = tti_coo_block(&g->mine);
    const size_t   element = tutti_dtype_size(g->mine.values.dtype);
    const int64_t *indices = g->indices;
    const char    *values = g->values;
    tutti_status   st = TUTTI_OK;
    int            r;

    for (r = 0; r < g->group->size && st == TUTTI_OK; r++) {
        tutti_sparse_coo *t = &g->all[r];

        *t = g->mine;
        t->nnz = g->records[r].nnz;
        t->indices = indices;
        t->values = tutti_span_of(values, t->nnz * block, g->mine.values.dtype);
        indices += t->nnz * t->sparse_dim;
        values += (size_t)(t->nnz * block) * element;
        st = tti_coo_check(WHAT, t);
    }
    return st;
}

static tutti_status gather_parts(gathering *g)
{
    const tutti_sparse_coo *mine = &g->mine;
    char                   *indices = NULL;
    tutti_status            st = gather_records(g);

    if (st == TUTTI_OK)
        st = gather_part(g, tutti_span_of(mine->indices, mine->nnz * mine->sparse_dim, TUTTI_I64),
                         mine->sparse_dim, &indices);
    g->indices = (int64_t *)(void *)indices;
    if (st == TUTTI_OK)
        st = gather_part(g, mine->values, tti_coo_block(mine), &g->values);
    return st;
}

/* All that needs the others. Of other failures they know: all have compared, or a collective has failed. */
static tutti_status exchange(gathering *g)
{
    tutti_status st = tti_turns_take(g->group, N_TURNS, &g->turns);

    if (st != TUTTI_OK)
        return st;
    g->turns.whole = TUTTI_WHOLE_SPARSE;
    st = gather_parts(g);
    tti_turns_give(&g->turns, WHAT, st == TUTTI_E_NOMEM ? TUTTI_E_BACKEND : TUTTI_OK);
    return st;
}

static tutti_status exchange_observed(gathering *g, tutti_op op)
{
    tti_observation *seen = NULL;
    tutti_status     st = tti_observe_whole(g->group, WHAT, op, g->mine.values, false, false, &seen);

    if (st == TUTTI_OK)
        st = exchange(g);
    tti_observe_end(seen, st, g->turns.first, NULL);
    return st;
}

static tutti_status all_reduce(tutti_group *group, const tutti_sparse_coo *in, tutti_op op, tutti_sparse_coo *out)
{
    gathering    g;
    tutti_status st = gathering_init(&g, group, in);

    if (st == TUTTI_OK)
        st = exchange_observed(&g, op);
    if (st == TUTTI_OK)
        st = read_tensors(&g);
    if (st == TUTTI_OK)
        st = tti_coo_merge(g.all, group->size, out);
    gathering_release(&g);
    return st;
}

/* ---- public ---- */

void tutti_sparse_free(tutti_sparse_coo *tensor)
{
    if (tensor == NULL)
        return;
    free(tensor->owned);
    *tensor = (tutti_sparse_coo){ .owned = NULL };
}

tutti_status tutti_sparse_coalesce(const tutti_sparse_coo *in, tutti_sparse_coo *out)
{
    tutti_status st = tti_coo_check("sparse_coalesce", in);

    if (st == TUTTI_OK && out == NULL)
        st = tti_fail(TUTTI_E_ARG, "sparse_coalesce: out is NULL");
    return st == TUTTI_OK ? tti_coo_merge(in, 1, out) : st;
}

static tutti_status check_all_reduce(const tutti_sparse_coo *in, tutti_op op, const tutti_sparse_coo *out)
{
    if (op.kind != TUTTI_OP_SUM)
        return tti_fail(TUTTI_E_ARG, "%s: op is '%s'\n  next: TUTTI_SUM is the only one", WHAT,
                        tutti_op_name(op.kind));
    if (out == NULL)
        return tti_fail(TUTTI_E_ARG, "%s: out is NULL", WHAT);
    return tti_coo_check(WHAT, in);
}

tutti_status tutti_sparse_all_reduce(const tutti_sparse_coo *in, tutti_op op, tutti_group *group,
                                     tutti_sparse_coo *out)
{
    tutti_group *g = NULL;
    tutti_status st = tti_group_resolve(group, WHAT, &g);

    if (st == TUTTI_OK && g == NULL && out != NULL)
        *out = (tutti_sparse_coo){ .owned = NULL };
    if (st != TUTTI_OK || g == NULL)
        return st;
    st = check_all_reduce(in, op, out);
    return st == TUTTI_OK ? all_reduce(g, in, op, out) : st;
}

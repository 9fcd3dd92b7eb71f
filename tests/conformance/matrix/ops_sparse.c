/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ops_sparse.c - sums of sparse tensors.
 *
 * How     Part 0 of a rank are its blocks' values; each block's place is drawn from few enough for blocks of
 *         a rank, and of several, to meet. The reference is dense: for each place the sum of the rank's
 *         blocks as they stand, then the sum of those sums in rank order, each rounded once (tt_fold). */
#include "ops.h"

#include <stdlib.h>

enum { SAME_PLACE_MAX = 256, DENSE_MAX = 3, ELEMENT_MAX = 16 };

/* ---- the tensor ---- */

static int64_t dense(const tt_try *t)
{
    return 1 + tt_roll(t, 60, 0, 0, 2) * (DENSE_MAX - 1);
}

static int64_t n_blocks(const tt_try *t, int rank)
{
    return tt_any_count(t, 61, rank, 0) / dense(t);
}

static int64_t columns(const tt_try *t)
{
    return 1 + tt_roll(t, 63, 0, 0, 7);
}

static int64_t n_places(const tt_try *t)
{
    return (t->count / 2 / columns(t) + 1) * columns(t);
}

static int64_t place_of(const tt_try *t, int rank, int64_t block)
{
    return (int64_t)(tt_mix(t->seed ^ tt_mix((uint64_t)rank << 40 | (uint64_t)block)) %
                     (uint64_t)n_places(t));
}

/* Two sparse dimensions, or one that is as long as both. */
static bool two_dims(const tt_try *t)
{
    return tt_roll(t, 64, 0, 0, 2) == 0;
}

static void set_indices(const tt_try *t, tutti_sparse_coo *coo, int64_t *indices)
{
    int64_t k;

    for (k = 0; k < coo->nnz; k++) {
        const int64_t place = place_of(t, t->rank, k);

        indices[k] = two_dims(t) ? place / columns(t) : place;
        if (two_dims(t))
            indices[coo->nnz + k] = place % columns(t);
    }
}

void tt_sparse_all_reduce_prepare(tt_try *t)
{
    tutti_sparse_coo *coo = &t->given;
    int n = 0;

    coo->sizes[n++] = two_dims(t) ? n_places(t) / columns(t) : n_places(t);
    if (two_dims(t))
        coo->sizes[n++] = columns(t);
    coo->sparse_dim = n;
    coo->dense_dim = dense(t) > 1;
    coo->sizes[n] = coo->dense_dim > 0 ? dense(t) : 0;
    coo->nnz = n_blocks(t, t->rank);
    coo->values = tt_make(t, coo->nnz * dense(t), tt_part(t->rank, 0), tt_part(t->rank, 0));
    t->indices = malloc((size_t)(2 * coo->nnz + 1) * sizeof *t->indices);
    if (t->indices == NULL) {
        tt_wrong(t, "no memory for the indices of %lld blocks", (long long)coo->nnz);
        return;
    }
    set_indices(t, coo, t->indices);
    coo->indices = t->indices;
}

tutti_status tt_sparse_all_reduce_block(tt_try *t)
{
    return tutti_sparse_all_reduce(&t->given, t->op, t->group, &t->summed);
}

/* ---- the reference ---- */

/* Sums of one rank, dense, and which places have one. */
typedef struct sums {
    unsigned char *values;
    bool *present;
} sums;

static const double no_factors[SAME_PLACE_MAX];
/* Sums of sparse tensors are made in rank order, wherever ranks are. */
static const int no_hosts[SAME_PLACE_MAX];

/* Blocks of one rank by place: chains through next, in order, that begin at first; -1 ends them. */
static void chain(const tt_try *t, int rank, int64_t *first, int64_t *next)
{
    int64_t k;

    for (k = 0; k < n_places(t); k++)
        first[k] = -1;
    for (k = n_blocks(t, rank); k-- > 0;) {
        next[k] = first[place_of(t, rank, k)];
        first[place_of(t, rank, k)] = k;
    }
}

static bool sum_place(tt_try *t, const unsigned char *values, int64_t block, const int64_t *next,
                      void *out)
{
    const size_t bytes = (size_t)dense(t) * tutti_dtype_size(t->dtype);
    const void *rows[SAME_PLACE_MAX];
    int n = 0;

    for (; block >= 0; block = next[block]) {
        if (n == SAME_PLACE_MAX)
            return tt_wrong(t, "more blocks on one place than SAME_PLACE_MAX");
        rows[n++] = values + (size_t)block * bytes;
    }
    tt_fold(out, t->dtype, TUTTI_OP_SUM, rows, no_factors, no_hosts, n, dense(t));
    return true;
}

static bool sum_rank(tt_try *t, int rank, sums *out)
{
    const size_t bytes = (size_t)dense(t) * tutti_dtype_size(t->dtype);
    const int64_t n = n_blocks(t, rank);
    int64_t *first = malloc((size_t)n_places(t) * sizeof *first);
    int64_t *next = malloc((size_t)(n + 1) * sizeof *next);
    unsigned char *values = malloc((size_t)(n + 1) * bytes);
    bool ok = true;
    int64_t p;

    out->values = malloc((size_t)n_places(t) * bytes);
    out->present = calloc((size_t)n_places(t), sizeof *out->present);
    if (first == NULL || next == NULL || values == NULL || out->values == NULL ||
        out->present == NULL) {
        ok = tt_wrong(t, "no memory for the reference");
        goto out;
    }
    tt_part_elements(t, tt_part(rank, 0), 0, n * dense(t), values);
    chain(t, rank, first, next);
    for (p = 0; p < n_places(t) && ok; p++) {
        out->present[p] = first[p] >= 0;
        if (out->present[p])
            ok = sum_place(t, values, first[p], next, out->values + (size_t)p * bytes);
    }
out:
    free(first);
    free(next);
    free(values);
    return ok;
}

/* ---- comparing ---- */

static bool check_block(tt_try *t, int64_t place, int64_t at, const void *want)
{
    const tutti_sparse_coo *got = &t->summed;
    const tutti_span values = tt_slice(got->values, at * dense(t), dense(t));
    const int64_t index = got->indices[at] * (two_dims(t) ? columns(t) : 1) +
                          (two_dims(t) ? got->indices[got->nnz + at] : 0);
    int64_t wrong;
    char is[80], must[80];

    if (index != place)
        return tt_wrong(t, "block %lld is of place %lld, not %lld", (long long)at, (long long)index,
                        (long long)place);
    wrong = tt_first_wrong(values.data, want, t->dtype, TUTTI_OP_SUM, false, dense(t));
    if (wrong < 0)
        return true;
    tt_element_text(is, sizeof is, t->dtype, tt_slice(values, wrong, 1).data);
    tt_element_text(must, sizeof must, t->dtype,
                    (const char *)want + (size_t)wrong * tutti_dtype_size(t->dtype));
    return tt_wrong(t, "place %lld, element %lld is %s, not %s", (long long)place, (long long)wrong,
                    is, must);
}

static bool check_all(tt_try *t, const sums *of)
{
    _Alignas(16) unsigned char want[DENSE_MAX * ELEMENT_MAX];
    const size_t bytes = (size_t)dense(t) * tutti_dtype_size(t->dtype);
    const void *rows[TT_WORLD_MAX];
    int64_t at = 0;
    int64_t p;

    for (p = 0; p < n_places(t); p++) {
        int n = 0;
        int r;

        for (r = 0; r < t->size; r++)
            if (of[r].present[p])
                rows[n++] = of[r].values + (size_t)p * bytes;
        if (n == 0)
            continue;
        if (at == t->summed.nnz)
            return tt_wrong(t, "%lld blocks came; place %lld has none", (long long)at,
                            (long long)p);
        tt_fold(want, t->dtype, TUTTI_OP_SUM, rows, no_factors, no_hosts, n, dense(t));
        if (!check_block(t, p, at++, want))
            return false;
    }
    return at == t->summed.nnz ||
           tt_wrong(t, "%lld blocks came, not %lld", (long long)t->summed.nnz, (long long)at);
}

bool tt_sparse_all_reduce_settle(tt_try *t)
{
    const tutti_sparse_coo *got = &t->summed;
    sums of[TT_WORLD_MAX] = { { NULL, NULL } };
    bool ok = true;
    int r;

    if (got->sparse_dim != t->given.sparse_dim || got->dense_dim != t->given.dense_dim ||
        got->sizes[0] != t->given.sizes[0] || got->values.dtype != t->dtype ||
        got->values.count != got->nnz * dense(t))
        return tt_wrong(t, "the sum has other dimensions, or another dtype");
    for (r = 0; r < t->size && ok; r++)
        ok = sum_rank(t, r, &of[r]);
    ok = ok && check_all(t, of);
    if (ok)
        t->bits = tt_mix_bytes(t->bits, got->values.data,
                               (size_t)got->values.count * tutti_dtype_size(t->dtype));
    for (r = 0; r < t->size; r++) {
        free(of[r].values);
        free(of[r].present);
    }
    return ok;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coo.c - sparse tensors without a group: checks, sorting, merging.
 *
 * How     All blocks of all tensors become entries: the place as one number, counted with the last sparse
 *         dimension fastest, and the block's address. Entries are sorted by place, then by tensor, then by
 *         position; each run of one place is one kernel call, which adds its blocks from left to right and
 *         rounds once.
 * True    tti_coo_check() has seen to it that the product of the sparse sizes is a number, so that a place
 *         is one, and that all indices are inside. Sorting is by a total order: the result does not depend
 *         on the algorithm of qsort. */
#include "group/coo.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "kernel/kernel.h"

/* ---- checks ---- */

/* a * b, or -1 if it is no number. */
static int64_t times(int64_t a, int64_t b)
{
    int64_t product;

    return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product) ? -1 : product;
}

static int64_t product(const int64_t *sizes, int n)
{
    int64_t all = 1;
    int     i;

    for (i = 0; i < n; i++)
        all = times(all, sizes[i]);
    return all;
}

int64_t tti_coo_block(const tutti_sparse_coo *tensor)
{
    return product(tensor->sizes + tensor->sparse_dim, tensor->dense_dim);
}

static tutti_status check_dims(const char *what, const tutti_sparse_coo *t)
{
    if (t->sparse_dim < 1 || t->sparse_dim > TUTTI_SPARSE_DIMS_MAX || t->dense_dim < 0 ||
        t->dense_dim > TUTTI_SPARSE_DIMS_MAX)
        return tti_fail(TUTTI_E_ARG,
                        "%s: the tensor has %d sparse and %d dense dimensions\n"
                        "  next: 1 to %d sparse ones, and up to as many dense ones",
                        what, t->sparse_dim, t->dense_dim, TUTTI_SPARSE_DIMS_MAX);
    if (product(t->sizes, t->sparse_dim) < 0 || tti_coo_block(t) < 0)
        return tti_fail(TUTTI_E_ARG, "%s: a size is negative, or their product is beyond 63 bits", what);
    return TUTTI_OK;
}

static tutti_status check_values(const char *what, const tutti_sparse_coo *t)
{
    const size_t  element = tutti_dtype_size(t->values.dtype);
    const int64_t want = times(t->nnz, tti_coo_block(t));
    tutti_status  st = tutti_op_check(TUTTI_SUM, t->values.dtype);

    if (st != TUTTI_OK)
        return st;
    if (t->values.device.type != TUTTI_CPU)
        return tti_fail(TUTTI_E_UNSUPPORTED, "%s: the values are memory of a device", what);
    if (t->nnz < 0 || want < 0 || t->values.count != want ||
        times(want, (int64_t)element) < 0 || times(t->nnz, 64) < 0)
        return tti_fail(TUTTI_E_ARG, "%s: %lld blocks of %lld elements, but values has %lld", what,
                        (long long)t->nnz, (long long)tti_coo_block(t), (long long)t->values.count);
    if ((t->nnz > 0 && t->indices == NULL) || (want > 0 && t->values.data == NULL))
        return tti_fail(TUTTI_E_ARG, "%s: no %s for %lld blocks", what,
                        t->indices == NULL ? "indices" : "values", (long long)t->nnz);
    return TUTTI_OK;
}

int64_t tti_coo_find_bad(const tutti_sparse_coo *t)
{
    int64_t k;
    int     d;

    for (d = 0; d < t->sparse_dim; d++)
        for (k = 0; k < t->nnz; k++)
            if (t->indices[d * t->nnz + k] < 0 || t->indices[d * t->nnz + k] >= t->sizes[d])
                return k;
    return -1;
}

tutti_status tti_coo_check(const char *what, const tutti_sparse_coo *tensor)
{
    tutti_status st;
    int64_t      bad;

    if (tensor == NULL)
        return tti_fail(TUTTI_E_ARG, "%s: the tensor is NULL", what);
    st = check_dims(what, tensor);
    if (st == TUTTI_OK)
        st = check_values(what, tensor);
    if (st != TUTTI_OK)
        return st;
    bad = tti_coo_find_bad(tensor);
    if (bad >= 0)
        return tti_fail(TUTTI_E_ARG, "%s: block %lld has an index outside of its dimension", what,
                        (long long)bad);
    return TUTTI_OK;
}

/* ---- merging ---- */

typedef struct entry {
    int64_t     place;
    int         tensor;
    int64_t     position;
    const void *block;
} entry;

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_entries(const void *a, const void *b)
{
    const entry *x = a, *y = b;

    if (x->place != y->place)
        return compare_numbers(x->place, y->place);
    if (x->tensor != y->tensor)
        return compare_numbers(x->tensor, y->tensor);
    return compare_numbers(x->position, y->position);
}

static int64_t place_of(const tutti_sparse_coo *t, int64_t k)
{
    int64_t place = 0;
    int     d;

    for (d = 0; d < t->sparse_dim; d++)
        place = place * t->sizes[d] + t->indices[d * t->nnz + k];
    return place;
}

/* All blocks of all tensors, sorted; n_out of them. */
static entry *list_entries(const tutti_sparse_coo *tensors, int n, int64_t *n_out)
{
    const size_t bytes = (size_t)tti_coo_block(&tensors[0]) * tutti_dtype_size(tensors[0].values.dtype);
    int64_t      total = 0, at = 0, k;
    entry       *entries;
    int          i;

    for (i = 0; i < n; i++)
        total += tensors[i].nnz;
    entries = calloc((size_t)total + 1, sizeof *entries);
    if (entries == NULL)
        return NULL;
    for (i = 0; i < n; i++)
        for (k = 0; k < tensors[i].nnz; k++)
            entries[at++] = (entry){ .place = place_of(&tensors[i], k), .tensor = i, .position = k,
                                     .block = bytes > 0 ? (const char *)tensors[i].values.data +
                                                              (size_t)k * bytes
                                                        : NULL };
    qsort(entries, (size_t)total, sizeof *entries, compare_entries);
    *n_out = total;
    return entries;
}

/* Entries from first on that have its place. */
static int64_t run_length(const entry *entries, int64_t n, int64_t first)
{
    int64_t k = first + 1;

    while (k < n && entries[k].place == entries[first].place)
        k++;
    return k - first;
}

/* out with room for nnz blocks, like `like` otherwise. */
static tutti_status make_out(const tutti_sparse_coo *like, int64_t nnz, tutti_sparse_coo *out)
{
    const int64_t count = nnz * tti_coo_block(like);
    const size_t  index_bytes = (size_t)nnz * (size_t)like->sparse_dim * sizeof(int64_t);
    const size_t  lines = (index_bytes + 63) & ~(size_t)63;
    char         *memory = aligned_alloc(64, (lines + (size_t)count * tutti_dtype_size(like->values.dtype) + 64) &
                                                 ~(size_t)63);

    if (memory == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a sparse tensor of %lld blocks", (long long)nnz);
    *out = *like;
    out->nnz = nnz;
    out->owned = memory;
    out->indices = (const int64_t *)(const void *)memory;
    out->values = tutti_span_of(memory + lines, count, like->values.dtype);
    return TUTTI_OK;
}

static void write_place(tutti_sparse_coo *out, int64_t k, int64_t place)
{
    int64_t *indices = out->owned;
    int      d;

    for (d = out->sparse_dim - 1; d >= 0; d--) {
        indices[d * out->nnz + k] = place % out->sizes[d];
        place /= out->sizes[d];
    }
}

/* reads has room for the longest run. */
static void add_runs(const entry *entries, int64_t n, const void **reads, tutti_sparse_coo *out)
{
    const tti_reduce_kernel *kernel = tti_reduce_kernel_for(TUTTI_OP_SUM, out->values.dtype);
    const int64_t            block = tti_coo_block(out);
    const size_t             bytes = (size_t)block * tutti_dtype_size(out->values.dtype);
    int64_t                  at, length, k, i;

    for (at = 0, k = 0; at < n; at += length, k++) {
        length = run_length(entries, n, at);
        for (i = 0; i < length; i++)
            reads[i] = entries[at + i].block;
        write_place(out, k, entries[at].place);
        if (block > 0)
            tti_reduce(kernel, (char *)out->values.data + (size_t)k * bytes, reads, (int)length, block, 1);
    }
}

static int64_t count_runs(const entry *entries, int64_t n, int64_t *longest_out)
{
    int64_t at, length, runs = 0;

    *longest_out = 1;
    for (at = 0; at < n; at += length, runs++) {
        length = run_length(entries, n, at);
        if (length > *longest_out)
            *longest_out = length;
    }
    return runs;
}

tutti_status tti_coo_merge(const tutti_sparse_coo *tensors, int n, tutti_sparse_coo *out)
{
    int64_t      total = 0, longest = 1, runs = 0;
    entry       *entries = list_entries(tensors, n, &total);
    const void **reads = NULL;
    tutti_status st = TUTTI_OK;

    if (entries != NULL) {
        runs = count_runs(entries, total, &longest);
        reads = longest <= INT32_MAX ? calloc((size_t)longest, sizeof *reads) : NULL;
    }
    if (reads == NULL)
        st = tti_fail(TUTTI_E_NOMEM, "no memory to merge %d sparse tensors", n);
    if (st == TUTTI_OK)
        st = make_out(&tensors[0], runs, out);
    if (st == TUTTI_OK)
        add_runs(entries, total, reads, out);
    free(reads);
    free(entries);
    return st;
}

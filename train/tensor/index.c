/* SPDX-License-Identifier: BSD-3-Clause
 *
 * index.c - elements taken by number and put back, pieces joined, triangles.
 *
 * How     A contiguous tensor seen from dimension dim is a block [A, R, B]: index_select takes whole runs
 *         of B elements, gather one element for each number. Elements are only moved: their size is all
 *         that counts. On the way back they are added up in the order of the numbers.
 * True    Numbers are i64 and checked before anything is moved: the text says which and where. */
#include "tensor/tensor.h"

#include <string.h>

typedef struct block3 {
    int64_t a, r, b;
} block3;

static block3 block_around(int nd, const int64_t *shape, int dim)
{
    block3 s = { 1, 1, 1 };

    for (int d = 0; d < nd; d++)
        *(d < dim ? &s.a : d == dim ? &s.r : &s.b) *= shape[d];
    return s;
}

tutti_status tti_index_check(const char *op, const tutti_tensor *index, int64_t n)
{
    const int64_t *at = tti_at(index);

    if (tti_ready(index) != TUTTI_OK)
        return tti_refused();
    for (int64_t i = 0; i < index->numel; i++)
        if (at[i] < 0 || at[i] >= n)
            return tti_refuse(TUTTI_E_ARG, op, "index %lld at %lld is not within 0 .. %lld",
                              (long long)at[i], (long long)i, (long long)n - 1);
    return TUTTI_OK;
}

/* ---- index_select ----------------------------------------------------------------------------- */

/* to[a, i, :] = from[a, index[i], :] */
static void take_runs(block3 s, int64_t n, const int64_t *index, size_t run, const char *from,
                      char *to)
{
    for (int64_t a = 0; a < s.a; a++, from += (size_t)s.r * run)
        for (int64_t i = 0; i < n; i++, to += run)
            memcpy(to, from + (size_t)index[i] * run, run);
}

#define ADD_RUNS(T)                                                                           \
    static void T##_add_runs(block3 s, int64_t n, const int64_t *index, const T *from, T *to) \
    {                                                                                         \
        for (int64_t a = 0; a < s.a; a++, to += s.r * s.b)                                    \
            for (int64_t i = 0; i < n; i++, from += s.b)                                      \
                for (int64_t b = 0; b < s.b; b++)                                             \
                    to[index[i] * s.b + b] += from[b];                                        \
    }

ADD_RUNS(float)
ADD_RUNS(double)

/* Inside of a scope: x is contiguous, index contiguous and checked. */
static tutti_tensor *select_runs(const tutti_tensor *x, int dim, const tutti_tensor *index)
{
    const block3 s = block_around(x->nd, x->shape, dim);
    int64_t shape[TUTTI_MAX_DIMS];
    tutti_tensor *y;

    memcpy(shape, x->shape, sizeof shape);
    shape[dim] = index->numel;
    y = tti_raw_empty(x->dtype, x->nd, shape);
    if (y != NULL && y->numel > 0)
        take_runs(s, index->numel, tti_at(index), (size_t)s.b * tutti_dtype_size(x->dtype),
                  tti_at(x), tti_at(y));
    return y;
}

tutti_tensor *tti_raw_index_select(const char *op, const tutti_tensor *x, int dim,
                                   const tutti_tensor *index)
{
    tutti_tensor *y = NULL;

    if (x == NULL || index == NULL)
        return tti_poisoned(op);
    dim = tti_dim_check(op, dim, x->nd);
    if (dim < 0)
        return NULL;
    if (index->dtype != TUTTI_I64 || index->nd > 1)
        return tti_poison(TUTTI_E_ARG, op, "an index of %s, shape %s: a vector of i64 is needed",
                          tutti_dtype_name(index->dtype), tti_shape_str(index->nd, index->shape).s);
    tutti_scope_begin();
    x = tti_temp(tti_raw_contiguous(x));
    index = tti_temp(tti_raw_contiguous(index));
    if (x != NULL && index != NULL && tti_index_check(op, index, x->shape[dim]) == TUTTI_OK)
        y = select_runs(x, dim, index);
    tutti_scope_end();
    return y;
}

/* What is added up of halves is added up in f32 and rounded once. */
static tutti_tensor *
add_halves(const tutti_tensor *g, int dim, const tutti_tensor *index, int nd, const int64_t *shape,
           tutti_tensor *(*add)(const tutti_tensor *g, int dim, const tutti_tensor *index, int nd,
                                const int64_t *shape))
{
    tutti_tensor *wide = tti_raw_to(g, TUTTI_F32), *sums, *y;

    if (wide == NULL)
        return NULL;
    sums = add(wide, dim, index, nd, shape);
    y = sums != NULL ? tti_raw_to(sums, g->dtype) : NULL;
    tutti_tensor_release(wide);
    tutti_tensor_release(sums);
    return y;
}

tutti_tensor *tti_raw_index_add(const tutti_tensor *g, int dim, const tutti_tensor *index, int nd,
                                const int64_t *shape)
{
    const block3 s = block_around(nd, shape, dim);
    tutti_tensor *from, *y;

    if (g != NULL && tti_is_half(g->dtype))
        return add_halves(g, dim, index, nd, shape, tti_raw_index_add);
    from = tti_raw_contiguous(g);
    y = from != NULL ? tti_raw_zeros(g->dtype, nd, shape) : NULL;
    if (y != NULL && from->numel > 0 && y->dtype == TUTTI_F32)
        float_add_runs(s, index->numel, tti_at(index), tti_at(from), tti_at(y));
    else if (y != NULL && from->numel > 0)
        double_add_runs(s, index->numel, tti_at(index), tti_at(from), tti_at(y));
    tutti_tensor_release(from);
    return y;
}

/* ---- gather ----------------------------------------------------------------------------------- */

/* s of x; n numbers along dim for each a and b. */
#define TAKE(T)                                                                           \
    static void T##_take(block3 s, int64_t n, const int64_t *index, const T *from, T *to) \
    {                                                                                     \
        for (int64_t a = 0; a < s.a; a++, from += s.r * s.b)                              \
            for (int64_t i = 0; i < n; i++)                                               \
                for (int64_t b = 0; b < s.b; b++)                                         \
                    *to++ = from[*index++ * s.b + b];                                     \
    }

#define GIVE(T)                                                                           \
    static void T##_give(block3 s, int64_t n, const int64_t *index, const T *from, T *to) \
    {                                                                                     \
        for (int64_t a = 0; a < s.a; a++, to += s.r * s.b)                                \
            for (int64_t i = 0; i < n; i++)                                               \
                for (int64_t b = 0; b < s.b; b++)                                         \
                    to[*index++ * s.b + b] += *from++;                                    \
    }

TAKE(uint8_t)
TAKE(uint16_t)
TAKE(uint32_t)
TAKE(uint64_t)
GIVE(float)
GIVE(double)

/* A view of x that has index's sizes but along dim. The scope's. */
static tutti_tensor *within(tutti_tensor *x, int dim, const tutti_tensor *index)
{
    for (int d = 0; d < index->nd; d++)
        if (d != dim && x != NULL && x->shape[d] != index->shape[d])
            x = tti_temp(tti_raw_narrow(x, d, 0, index->shape[d]));
    return x;
}

static tutti_status gather_check(const tutti_tensor *x, int dim, const tutti_tensor *index)
{
    bool fits = index->dtype == TUTTI_I64 && index->nd == x->nd;

    for (int d = 0; d < x->nd && fits; d++)
        fits = d == dim || index->shape[d] <= x->shape[d];
    if (fits)
        return TUTTI_OK;
    return tti_refuse(TUTTI_E_ARG, "gather", "an index of %s, shape %s, does not fit to shape %s",
                      tutti_dtype_name(index->dtype), tti_shape_str(index->nd, index->shape).s,
                      tti_shape_str(x->nd, x->shape).s);
}

/* Inside of a scope. */
static tutti_tensor *gathered(const tutti_tensor *x, int dim, const tutti_tensor *index)
{
    const size_t size = tutti_dtype_size(x->dtype);
    const int64_t *at;
    tutti_tensor *y;
    block3 s;

    x = tti_temp(tti_raw_contiguous(within(tti_temp(tti_raw_detach(x)), dim, index)));
    index = tti_temp(tti_raw_contiguous(index));
    if (x == NULL || index == NULL || tti_index_check("gather", index, x->shape[dim]) != TUTTI_OK)
        return NULL;
    y = tti_raw_empty(x->dtype, index->nd, index->shape);
    if (y == NULL || y->numel == 0)
        return y;
    s = block_around(x->nd, x->shape, dim);
    at = tti_at(index);
    if (size == 1)
        uint8_t_take(s, index->shape[dim], at, tti_at(x), tti_at(y));
    else if (size == 2)
        uint16_t_take(s, index->shape[dim], at, tti_at(x), tti_at(y));
    else if (size == 4)
        uint32_t_take(s, index->shape[dim], at, tti_at(x), tti_at(y));
    else
        uint64_t_take(s, index->shape[dim], at, tti_at(x), tti_at(y));
    return y;
}

tutti_tensor *tti_raw_index_gather(const tutti_tensor *x, int dim, const tutti_tensor *index)
{
    tutti_tensor *y = NULL;

    if (x == NULL || index == NULL)
        return tti_poisoned("gather");
    dim = tti_dim_check("gather", dim, x->nd);
    if (dim < 0 || gather_check(x, dim, index) != TUTTI_OK)
        return NULL;
    tutti_scope_begin();
    y = gathered(x, dim, index);
    tutti_scope_end();
    return y;
}

tutti_tensor *tti_raw_scatter_add(const tutti_tensor *g, int dim, const tutti_tensor *index, int nd,
                                  const int64_t *shape)
{
    tutti_tensor *whole, *part, *sums;
    block3 s;

    if (tti_is_half(g->dtype))
        return add_halves(g, dim, index, nd, shape, tti_raw_scatter_add);
    whole = tti_raw_zeros(g->dtype, nd, shape);
    tutti_scope_begin();
    g = tti_temp(tti_raw_contiguous(g));
    index = tti_temp(tti_raw_contiguous(index));
    part = whole != NULL && index != NULL ? within(whole, dim, index) : NULL;
    sums = part == whole ? whole : tti_temp(tti_raw_clone(part)); /* zeros of its own, row-major */
    if (g != NULL && sums != NULL && g->numel > 0) {
        s = block_around(sums->nd, sums->shape, dim);
        if (g->dtype == TUTTI_F32)
            float_give(s, index->shape[dim], tti_at(index), tti_at(g), tti_at(sums));
        else
            double_give(s, index->shape[dim], tti_at(index), tti_at(g), tti_at(sums));
        if (sums != whole)
            (void)tti_raw_copy_(part, sums);
    }
    tutti_scope_end();
    return whole;
}

/* ---- cat -------------------------------------------------------------------------------------- */

static tutti_status cat_check(int n, tutti_tensor *const *xs, int dim)
{
    for (int i = 1; i < n; i++) {
        bool fits = xs[i]->nd == xs[0]->nd;

        for (int d = 0; d < xs[0]->nd && fits; d++)
            fits = d == dim || xs[i]->shape[d] == xs[0]->shape[d];
        if (!fits)
            return tti_refuse(TUTTI_E_ARG, "cat",
                              "shapes %s and %s differ not only in dimension %d",
                              tti_shape_str(xs[0]->nd, xs[0]->shape).s,
                              tti_shape_str(xs[i]->nd, xs[i]->shape).s, dim);
    }
    return TUTTI_OK;
}

tutti_tensor *tti_raw_cat(int n, tutti_tensor *const *xs, int dim)
{
    int64_t shape[TUTTI_MAX_DIMS], at = 0;
    tutti_dtype dtype;
    tutti_tensor *y;

    for (int i = 0; i < n; i++)
        if (xs[i] == NULL)
            return tti_poisoned("cat");
    if (n < 1)
        return tti_poison(TUTTI_E_ARG, "cat", "no tensors");
    dim = tti_dim_check("cat", dim, xs[0]->nd);
    if (dim < 0 || cat_check(n, xs, dim) != TUTTI_OK)
        return NULL;
    memcpy(shape, xs[0]->shape, sizeof shape);
    dtype = xs[0]->dtype;
    for (int i = 1; i < n; i++) {
        const bool halves = tti_is_half(dtype) && tti_is_half(xs[i]->dtype);

        shape[dim] += xs[i]->shape[dim];
        dtype = halves && xs[i]->dtype != dtype ? TUTTI_F32
                : xs[i]->dtype > dtype          ? xs[i]->dtype
                                                : dtype;
    }
    y = tti_raw_empty(dtype, xs[0]->nd, shape);
    for (int i = 0; i < n && y != NULL; i++) {
        tutti_tensor *part = tti_raw_narrow(y, dim, at, xs[i]->shape[dim]);

        (void)tti_raw_copy_(part, xs[i]);
        at += xs[i]->shape[dim];
        tutti_tensor_release(part);
    }
    return y;
}

/* ---- triangles -------------------------------------------------------------------------------- */

tutti_tensor *tti_raw_triangle(const char *op, const tutti_tensor *x, int64_t diagonal, bool upper)
{
    tutti_tensor *y;
    int64_t rows, cols;
    size_t size;
    char *at;

    if (x == NULL)
        return tti_poisoned(op);
    if (x->nd < 2)
        return tti_poison(TUTTI_E_ARG, op, "shape %s is no matrix",
                          tti_shape_str(x->nd, x->shape).s);
    y = tti_raw_clone(x);
    if (y == NULL || y->numel == 0)
        return y;
    rows = x->shape[x->nd - 2];
    cols = x->shape[x->nd - 1];
    size = tutti_dtype_size(x->dtype);
    at = tti_at(y);
    for (int64_t i = 0; i < y->numel / cols; i++, at += (size_t)cols * size) {
        int64_t below = i % rows + diagonal + !upper; /* columns left of the cut */

        below = below < 0 ? 0 : below > cols ? cols : below;
        if (upper)
            memset(at, 0, (size_t)below * size);
        else
            memset(at + (size_t)below * size, 0, (size_t)(cols - below) * size);
    }
    return y;
}

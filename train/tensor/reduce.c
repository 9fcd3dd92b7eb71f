/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reduce.c - sums, and where the largest and the smallest stand.
 *
 * How     A contiguous tensor seen from one run of neighbouring dimensions is a block [A, R, B];
 *         the run R is summed away. Several runs are summed one after another, the last one first.
 *         B = 1: numbers side by side, eight partial sums in blocks of BLOCK, blocks joined
 *         pairwise. B > 1: whole rows, in groups of ROWS, groups joined pairwise, a tile of
 *         columns at a time.
 * True    The order of additions depends on the shape alone. The error grows with log(n), not n.
 *         Whole numbers and bool add up in i64 and wrap. */
#include "tensor/tensor.h"

#include <string.h>

enum { BLOCK = 256, ROWS = 16, TILE = 512, LANES = 8 };

/* The block [A, R, B] of a reduction. */
typedef struct block3 {
    int64_t a, r, b;
} block3;

#define SUMS(word, T, SUM)                                                                        \
    static T word##_run(const T *x, int64_t n)                                                    \
    {                                                                                             \
        T lane[LANES] = { 0 };                                                                    \
        int64_t i = 0;                                                                            \
                                                                                                  \
        if (n > BLOCK) {                                                                          \
            const int64_t half = (n / 2 + BLOCK - 1) / BLOCK * BLOCK;                             \
                                                                                                  \
            return SUM(word##_run(x, half), word##_run(x + half, n - half));                      \
        }                                                                                         \
        for (; i + LANES <= n; i += LANES)                                                        \
            for (int k = 0; k < LANES; k++)                                                       \
                lane[k] = SUM(lane[k], x[i + k]);                                                 \
        for (int k = 0; i < n; i++, k++)                                                          \
            lane[k] = SUM(lane[k], x[i]);                                                         \
        for (int k = 0; k < LANES / 2; k++)                                                       \
            lane[k] = SUM(lane[k], lane[k + 4]);                                                  \
        return SUM(SUM(lane[0], lane[2]), SUM(lane[1], lane[3]));                                 \
    }                                                                                             \
                                                                                                  \
    /* out[m] = the sum of r rows of m numbers, ld apart; spare has room for the upper halves. */ \
    static void word##_rows(const T *x, int64_t r, int64_t m, int64_t ld, T *out, T *spare)       \
    {                                                                                             \
        const int64_t half = (r / 2 + ROWS - 1) / ROWS * ROWS;                                    \
                                                                                                  \
        if (r > ROWS) {                                                                           \
            word##_rows(x, half, m, ld, out, spare);                                              \
            word##_rows(x + half * ld, r - half, m, ld, spare, spare + TILE);                     \
            for (int64_t j = 0; j < m; j++)                                                       \
                out[j] = SUM(out[j], spare[j]);                                                   \
            return;                                                                               \
        }                                                                                         \
        memcpy(out, x, (size_t)m * sizeof *out);                                                  \
        for (int64_t i = 1; i < r; i++)                                                           \
            for (int64_t j = 0; j < m; j++)                                                       \
                out[j] = SUM(out[j], x[i * ld + j]);                                              \
    }                                                                                             \
                                                                                                  \
    static void word##_block(block3 s, const void *vx, void *vout, void *spare)                   \
    {                                                                                             \
        const T *x = vx;                                                                          \
        T *out = vout;                                                                            \
                                                                                                  \
        for (int64_t i = 0; i < s.a; i++, x += s.r * s.b, out += s.b) {                           \
            if (s.b == 1) {                                                                       \
                *out = word##_run(x, s.r);                                                        \
                continue;                                                                         \
            }                                                                                     \
            for (int64_t j = 0; j < s.b; j += TILE) {                                             \
                const int64_t m = s.b - j < TILE ? s.b - j : TILE;                                \
                                                                                                  \
                word##_rows(x + j, s.r, m, s.b, out + j, spare);                                  \
            }                                                                                     \
        }                                                                                         \
    }

#define SUM_REAL(x, y)  ((x) + (y))
#define SUM_WHOLE(x, y) ((int64_t)((uint64_t)(x) + (uint64_t)(y)))

SUMS(f32, float, SUM_REAL)
SUMS(f64, double, SUM_REAL)
SUMS(i64, int64_t, SUM_WHOLE)

/* x as [A, R, B] around the dimensions first..last. */
static block3 block_around(const tutti_tensor *x, int first, int last)
{
    block3 s = { 1, 1, 1 };

    for (int d = 0; d < x->nd; d++)
        *(d < first ? &s.a : d <= last ? &s.r : &s.b) *= x->shape[d];
    return s;
}

/* Sum the dimensions first..last of a contiguous x of f32, f64 or i64; they stay with size 1. */
static tutti_tensor *sum_run(const tutti_tensor *x, int first, int last)
{
    const block3 s = block_around(x, first, last);
    const size_t spare_bytes = (size_t)TILE * 64 * sizeof(double);
    int64_t shape[TUTTI_MAX_DIMS];
    tutti_tensor *y;
    void *spare;

    for (int d = 0; d < x->nd; d++)
        shape[d] = d >= first && d <= last ? 1 : x->shape[d];
    if (s.r == 0 || s.a == 0 || s.b == 0)
        return tti_raw_zeros(x->dtype, x->nd, shape);
    y = tti_raw_empty(x->dtype, x->nd, shape);
    spare = tti_mem_alloc(spare_bytes);
    if (y == NULL || spare == NULL) {
        tti_mem_free(spare, spare_bytes);
        tutti_tensor_release(y);
        return tti_poison(TUTTI_E_NOMEM, "sum", "no memory for partial sums");
    }
    if (x->dtype == TUTTI_F32)
        f32_block(s, tti_at(x), tti_at(y), spare);
    else if (x->dtype == TUTTI_F64)
        f64_block(s, tti_at(x), tti_at(y), spare);
    else
        i64_block(s, tti_at(x), tti_at(y), spare);
    tti_mem_free(spare, spare_bytes);
    return y;
}

tutti_status tti_dims_mask(const char *op, const int *dims, int n_dims, int nd, unsigned *mask_out)
{
    unsigned mask = 0;

    if (n_dims < 0 || (n_dims > 0 && dims == NULL))
        return tti_refuse(TUTTI_E_ARG, op, "the list of dimensions is NULL");
    for (int i = 0; i < n_dims; i++) {
        const int d = tti_dim_check(op, dims[i], nd);

        if (d < 0)
            return TUTTI_E_ARG;
        if (mask & 1u << d)
            return tti_refuse(TUTTI_E_ARG, op, "dimension %d is named twice", dims[i]);
        mask |= 1u << d;
    }
    *mask_out = n_dims == 0 ? (1u << nd) - 1 : mask;
    return TUTTI_OK;
}

tutti_tensor *tti_raw_without_dims(const tutti_tensor *x, unsigned mask)
{
    int64_t shape[TUTTI_MAX_DIMS];
    int nd = 0;

    for (int d = 0; d < x->nd; d++)
        if (!(mask & 1u << d))
            shape[nd++] = x->shape[d];
    return tti_raw_view(x, nd, shape);
}

/* The last run of neighbouring dimensions of mask, ending before `end`; false if there is none. */
static bool last_run(unsigned mask, int end, int *first_out, int *last_out)
{
    int last = end - 1, first;

    while (last >= 0 && !(mask & 1u << last))
        last--;
    for (first = last; first > 0 && (mask & 1u << (first - 1));)
        first--;
    *first_out = first;
    *last_out = last;
    return last >= 0;
}

tutti_tensor *tti_raw_sum(const tutti_tensor *x, const int *dims, int n_dims, bool keepdim)
{
    tutti_tensor *y, *to;
    unsigned mask;
    int first, last;

    if (x == NULL)
        return tti_poisoned("sum");
    if (tti_dims_mask("sum", dims, n_dims, x->nd, &mask) != TUTTI_OK)
        return NULL;
    to = tti_raw_to(x, tti_is_real(x->dtype)   ? x->dtype
                       : tti_is_half(x->dtype) ? TUTTI_F32
                                               : TUTTI_I64);
    y = tti_raw_contiguous(to);
    tutti_tensor_release(to);
    for (int end = x->nd; y != NULL && last_run(mask, end, &first, &last); end = first) {
        tutti_tensor *next = sum_run(y, first, last);

        tutti_tensor_release(y);
        y = next;
    }
    if (y != NULL && y == x) { /* nothing to add up: still a tensor of its own */
        tutti_tensor_release(y);
        y = tti_raw_clone(x);
    }
    if (y != NULL && tti_is_half(x->dtype)) {
        tutti_tensor *half = tti_raw_to(y, x->dtype);

        tutti_tensor_release(y);
        y = half;
    }
    if (y != NULL && !keepdim && mask != 0) {
        tutti_tensor *next = tti_raw_without_dims(y, mask);

        tutti_tensor_release(y);
        y = next;
    }
    return y;
}

tutti_tensor *tti_raw_reduce_to(const tutti_tensor *g, int nd, const int64_t *shape)
{
    int dims[TUTTI_MAX_DIMS];
    tutti_tensor *sum, *y;
    int n = 0, lead;
    bool fits;

    if (g == NULL)
        return tti_poisoned("reduce_to");
    lead = g->nd - nd;
    fits = lead >= 0;
    for (int d = 0; d < g->nd && fits; d++) {
        if (d < lead || (shape[d - lead] == 1 && g->shape[d] != 1))
            dims[n++] = d;
        else
            fits = shape[d - lead] == g->shape[d];
    }
    if (!fits)
        return tti_poison(TUTTI_E_ARG, "reduce_to", "a gradient of shape %s does not fit into %s",
                          tti_shape_str(g->nd, g->shape).s, tti_shape_str(nd, shape).s);
    if (n == 0)
        return tutti_tensor_retain((tutti_tensor *)(uintptr_t)g);
    sum = tti_raw_sum(g, dims, n, true);
    y = tti_raw_view(sum, nd, shape);
    tutti_tensor_release(sum);
    return y;
}

/* ---- the largest and the smallest
 * ----------------------------------------------------------------- */

/* The first of equals; a NaN beats everything. */
#define EXTREME(word, T, BEATS)                                  \
    static void word(block3 s, const void *vx, int64_t *out)     \
    {                                                            \
        const T *x = vx;                                         \
                                                                 \
        for (int64_t i = 0; i < s.a * s.b; i++) {                \
            const T *col = x + i / s.b * s.r * s.b + i % s.b;    \
            int64_t best = 0;                                    \
                                                                 \
            for (int64_t k = 1; k < s.r; k++) {                  \
                const T v = col[k * s.b], top = col[best * s.b]; \
                                                                 \
                if (BEATS(v, top) || (v != v && top == top))     \
                    best = k;                                    \
            }                                                    \
            out[i] = best;                                       \
        }                                                        \
    }

#define ABOVE(x, y) ((x) > (y))
#define BELOW(x, y) ((x) < (y))

EXTREME(f32_argmax, float, ABOVE)
EXTREME(f64_argmax, double, ABOVE)
EXTREME(i64_argmax, int64_t, ABOVE)
EXTREME(f32_argmin, float, BELOW)
EXTREME(f64_argmin, double, BELOW)
EXTREME(i64_argmin, int64_t, BELOW)

typedef void (*extreme_loop)(block3 s, const void *x, int64_t *out);

/* x is contiguous and f32, f64 or i64. */
static tutti_tensor *extreme_of(const tutti_tensor *x, int dim, bool smallest)
{
    static const extreme_loop loops[2][3] = { { f32_argmax, f64_argmax, i64_argmax },
                                              { f32_argmin, f64_argmin, i64_argmin } };
    const int type = x->dtype == TUTTI_F32 ? 0 : x->dtype == TUTTI_F64 ? 1 : 2;
    int64_t shape[TUTTI_MAX_DIMS];
    tutti_tensor *y;

    memcpy(shape, x->shape, sizeof shape);
    shape[dim] = 1;
    y = tti_raw_empty(TUTTI_I64, x->nd, shape);
    if (y != NULL)
        loops[smallest][type](block_around(x, dim, dim), tti_at(x), tti_at(y));
    return y;
}

tutti_tensor *tti_raw_argextreme(const char *op, const tutti_tensor *t, int dim, bool smallest)
{
    tutti_tensor *x, *y;

    if (t == NULL)
        return tti_poisoned(op);
    dim = tti_dim_check(op, dim, t->nd);
    if (dim < 0)
        return NULL;
    if (t->shape[dim] == 0)
        return tti_poison(TUTTI_E_ARG, op, "dimension %d has no elements", dim);
    tutti_scope_begin();
    x = tti_temp(tti_raw_to(t, tti_is_real(t->dtype)   ? t->dtype
                               : tti_is_half(t->dtype) ? TUTTI_F32
                                                       : TUTTI_I64));
    x = tti_temp(tti_raw_contiguous(x));
    y = x == NULL ? NULL : extreme_of(x, dim, smallest);
    tutti_scope_end();
    return y;
}

static tutti_tensor *argextreme(const char *op, const tutti_tensor *t, int dim, bool keepdim,
                                bool smallest)
{
    tutti_tensor *y = tti_raw_argextreme(op, t, dim, smallest), *view = NULL;

    if (y == NULL || keepdim)
        return tti_temp(y);
    view = tti_raw_without_dims(y, 1u << (dim < 0 ? dim + t->nd : dim));
    tutti_tensor_release(y);
    return tti_temp(view);
}

tutti_tensor *tutti_tensor_argmax(const tutti_tensor *t, int dim, bool keepdim)
{
    return argextreme("argmax", t, dim, keepdim, false);
}

tutti_tensor *tutti_tensor_argmin(const tutti_tensor *t, int dim, bool keepdim)
{
    return argextreme("argmin", t, dim, keepdim, true);
}

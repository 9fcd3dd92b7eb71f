/* SPDX-License-Identifier: BSD-3-Clause
 *
 * product.c - matrix products, through CBLAS.
 *
 * True    beta = 0 does not read C, whatever garbage is there. Sizes of 0 never reach the library,
 *         nor sizes beyond an int, which is what it counts with: operations refuse them.
 * A matrix whose rows or columns lie side by side is handed over as it is, others are copied. */
#include "tensor/tensor.h"

#include <assert.h>
#include <cblas.h>
#include <limits.h>
#include <string.h>

static CBLAS_TRANSPOSE trans(bool t)
{
    return t ? CblasTrans : CblasNoTrans;
}

/* C = beta C, for products over nothing. */
static void scale(tutti_dtype dtype, const tti_gemm_shape *s, double beta, void *c)
{
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++) {
            if (dtype == TUTTI_F32) {
                float *at = (float *)c + i * s->ldc + j;

                *at = beta == 0.0 ? 0.0f : (float)beta * *at;
            } else {
                double *at = (double *)c + i * s->ldc + j;

                *at = beta == 0.0 ? 0.0 : beta * *at;
            }
        }
}

void tti_gemm(tutti_dtype dtype, const tti_gemm_shape *s, double alpha, const void *a,
              const void *b, double beta, void *c)
{
    if (s->m == 0 || s->n == 0)
        return;
    assert(s->m <= INT_MAX && s->n <= INT_MAX && s->k <= INT_MAX);
    assert(s->lda <= INT_MAX && s->ldb <= INT_MAX && s->ldc <= INT_MAX);
    tti_blas_look();
    if (s->k == 0)
        scale(dtype, s, beta, c);
    else if (dtype == TUTTI_F32)
        cblas_sgemm(CblasRowMajor, trans(s->ta), trans(s->tb), (blasint)s->m, (blasint)s->n,
                    (blasint)s->k, (float)alpha, a, (blasint)s->lda, b, (blasint)s->ldb,
                    (float)beta, c, (blasint)s->ldc);
    else
        cblas_dgemm(CblasRowMajor, trans(s->ta), trans(s->tb), (blasint)s->m, (blasint)s->n,
                    (blasint)s->k, alpha, a, (blasint)s->lda, b, (blasint)s->ldb, beta, c,
                    (blasint)s->ldc);
}

/* CBLAS takes a distance between rows that is at least their length, and an int. */
static bool fits_ld(int64_t ld, int64_t length)
{
    return ld >= length && ld >= 1 && ld <= INT_MAX;
}

tutti_tensor *tti_raw_matrices(const tutti_tensor *x, bool *t_out, int64_t *ld_out)
{
    const int64_t *shape = x->shape + x->nd - 2, *stride = x->stride + x->nd - 2;
    const int64_t rows = shape[0], cols = shape[1];
    const bool by_row = cols <= 1 || stride[1] == 1;
    const bool by_col = rows <= 1 || stride[0] == 1;

    *t_out = false;
    *ld_out = cols > 1 ? cols : 1;
    if (by_row && (rows <= 1 || fits_ld(stride[0], *ld_out))) {
        *ld_out = rows <= 1 ? *ld_out : stride[0];
        return tutti_tensor_retain((tutti_tensor *)(uintptr_t)x);
    }
    if (by_col && (cols <= 1 || fits_ld(stride[1], rows))) {
        *t_out = true;
        *ld_out = cols <= 1 ? (rows > 1 ? rows : 1) : stride[1];
        return tutti_tensor_retain((tutti_tensor *)(uintptr_t)x);
    }
    return tti_raw_clone(x);
}

static tutti_status check_factors(const char *op, const tutti_tensor *a, const tutti_tensor *b)
{
    if (a->dtype != b->dtype || !tti_is_floating(a->dtype))
        return tti_refuse(TUTTI_E_UNSUPPORTED, op,
                          "%s times %s: both must be f32, or both f64, or both the same half",
                          tutti_dtype_name(a->dtype), tutti_dtype_name(b->dtype));
    if (a->nd < 2 || b->nd < 2 || a->shape[a->nd - 1] != b->shape[b->nd - 2])
        return tti_refuse(TUTTI_E_ARG, op, "%s times %s is no product of matrices",
                          tti_shape_str(a->nd, a->shape).s, tti_shape_str(b->nd, b->shape).s);
    for (int d = 1; d <= 2; d++)
        if (a->shape[a->nd - d] > INT_MAX || b->shape[b->nd - d] > INT_MAX)
            return tti_refuse(TUTTI_E_UNSUPPORTED, op, "sizes above %d are not offered", INT_MAX);
    return TUTTI_OK;
}

/* The shape of the products: that of the leading dimensions, broadcast, then rows and columns. */
static tutti_status product_shape(const char *op, const tutti_tensor *a, const tutti_tensor *b,
                                  int *nd_out, int64_t *shape_out)
{
    tutti_tensor x = { .nd = a->nd - 2 }, y = { .nd = b->nd - 2 };

    memcpy(x.shape, a->shape, sizeof x.shape);
    memcpy(y.shape, b->shape, sizeof y.shape);
    if (tti_broadcast_shape(op, &x, &y, nd_out, shape_out) != TUTTI_OK)
        return TUTTI_E_ARG;
    shape_out[*nd_out] = a->shape[a->nd - 2];
    shape_out[*nd_out + 1] = b->shape[b->nd - 1];
    *nd_out += 2;
    return TUTTI_OK;
}

int64_t tti_matrix_at(int nd, const int64_t *lead, const tutti_tensor *x, int64_t i)
{
    int64_t at = 0;

    for (int d = nd - 1; d >= 0; d--) {
        const int xd = d - (nd - (x->nd - 2));

        if (xd >= 0 && x->shape[xd] > 1)
            at += i % lead[d] * x->stride[xd];
        i /= lead[d];
    }
    return at;
}

static void multiply_all(const tutti_tensor *a, const tutti_tensor *b, const tti_gemm_shape *s,
                         tutti_tensor *y)
{
    const size_t size = tutti_dtype_size(y->dtype);
    const int64_t n = s->m * s->n == 0 ? 0 : y->numel / (s->m * s->n);
    const char *at_a = tti_at(a), *at_b = tti_at(b);
    char *to = tti_at(y);

    for (int64_t i = 0; i < n; i++, to += (size_t)(s->m * s->n) * size)
        tti_gemm(y->dtype, s, 1.0, at_a + tti_matrix_at(y->nd - 2, y->shape, a, i) * (int64_t)size,
                 at_b + tti_matrix_at(y->nd - 2, y->shape, b, i) * (int64_t)size, 0.0, to);
}

/* Many matrices times one are one product, where their rows follow one another. */
static bool is_one_product(const tutti_tensor *a, const tutti_tensor *b, int64_t rows)
{
    return b->nd == 2 && rows <= INT_MAX && tutti_tensor_is_contiguous(a);
}

/* In f32, rounded once. */
static tutti_tensor *product_of_halves(const char *op, const tutti_tensor *a, const tutti_tensor *b)
{
    tutti_tensor *wide_a = tti_raw_to(a, TUTTI_F32), *wide_b = tti_raw_to(b, TUTTI_F32), *y = NULL;
    tutti_tensor *wide = NULL;

    if (wide_a != NULL && wide_b != NULL)
        wide = tti_raw_bmm(op, wide_a, wide_b);
    if (wide != NULL)
        y = tti_raw_to(wide, a->dtype);
    tutti_tensor_release(wide_a);
    tutti_tensor_release(wide_b);
    tutti_tensor_release(wide);
    return y;
}

tutti_tensor *tti_raw_bmm(const char *op, const tutti_tensor *a, const tutti_tensor *b)
{
    int64_t shape[TUTTI_MAX_DIMS + 2];
    tutti_tensor *ma, *mb, *y = NULL;
    tti_gemm_shape s = { 0 };
    int nd;

    if (a == NULL || b == NULL)
        return tti_poisoned(op);
    if (check_factors(op, a, b) != TUTTI_OK || product_shape(op, a, b, &nd, shape) != TUTTI_OK)
        return NULL;
    if (tti_is_half(a->dtype))
        return product_of_halves(op, a, b);
    s.m = a->shape[a->nd - 2];
    s.k = a->shape[a->nd - 1];
    s.n = s.ldc = b->shape[b->nd - 1];
    ma = tti_raw_matrices(a, &s.ta, &s.lda);
    mb = tti_raw_matrices(b, &s.tb, &s.ldb);
    if (ma != NULL && mb != NULL)
        y = tti_raw_empty(a->dtype, nd, shape);
    if (y != NULL && s.n > 0 && is_one_product(ma, mb, y->numel / s.n)) {
        s.m = y->numel / s.n;
        s.ta = false;
        s.lda = s.k > 1 ? s.k : 1;
        tti_gemm(y->dtype, &s, 1.0, tti_at(ma), tti_at(mb), 0.0, tti_at(y));
    } else if (y != NULL) {
        multiply_all(ma, mb, &s, y);
    }
    tutti_tensor_release(ma);
    tutti_tensor_release(mb);
    return y;
}

tutti_tensor *tti_raw_mm(const char *op, const tutti_tensor *a, const tutti_tensor *b)
{
    if (a != NULL && b != NULL && (a->nd != 2 || b->nd != 2))
        return tti_poison(TUTTI_E_ARG, op, "%s times %s is no product of matrices",
                          tti_shape_str(a->nd, a->shape).s, tti_shape_str(b->nd, b->shape).s);
    return tti_raw_bmm(op, a, b);
}

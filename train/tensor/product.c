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

void tti_gemm(tutti_dtype dtype, const tti_gemm_shape *s, const void *a, const void *b, double beta,
              void *c)
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
                    (blasint)s->k, 1.0f, a, (blasint)s->lda, b, (blasint)s->ldb, (float)beta, c,
                    (blasint)s->ldc);
    else
        cblas_dgemm(CblasRowMajor, trans(s->ta), trans(s->tb), (blasint)s->m, (blasint)s->n,
                    (blasint)s->k, 1.0, a, (blasint)s->lda, b, (blasint)s->ldb, beta, c,
                    (blasint)s->ldc);
}

/* CBLAS takes a distance between rows that is at least their length, and an int. */
static bool fits_ld(int64_t ld, int64_t length)
{
    return ld >= length && ld >= 1 && ld <= INT_MAX;
}

/* x as CBLAS takes it: rows side by side (t false) or columns side by side (t true). Owned. */
static tutti_tensor *matrix_of(const tutti_tensor *x, bool *t_out, int64_t *ld_out)
{
    const int64_t rows = x->shape[0], cols = x->shape[1];
    const bool by_row = cols <= 1 || x->stride[1] == 1;
    const bool by_col = rows <= 1 || x->stride[0] == 1;

    *t_out = false;
    *ld_out = cols > 1 ? cols : 1;
    if (by_row && (rows <= 1 || fits_ld(x->stride[0], *ld_out))) {
        *ld_out = rows <= 1 ? *ld_out : x->stride[0];
        return tutti_tensor_retain((tutti_tensor *)(uintptr_t)x);
    }
    if (by_col && (cols <= 1 || fits_ld(x->stride[1], rows))) {
        *t_out = true;
        *ld_out = cols <= 1 ? (rows > 1 ? rows : 1) : x->stride[1];
        return tutti_tensor_retain((tutti_tensor *)(uintptr_t)x);
    }
    return tti_raw_clone(x);
}

static tutti_status check_factors(const char *op, const tutti_tensor *a, const tutti_tensor *b)
{
    if (a->dtype != b->dtype || !tti_is_real(a->dtype))
        return tti_refuse(TUTTI_E_UNSUPPORTED, op, "%s times %s: both must be f32, or both f64",
                          tutti_dtype_name(a->dtype), tutti_dtype_name(b->dtype));
    if (a->nd != 2 || b->nd != 2 || a->shape[1] != b->shape[0])
        return tti_refuse(TUTTI_E_ARG, op, "%s times %s is no product of matrices",
                          tti_shape_str(a->nd, a->shape).s, tti_shape_str(b->nd, b->shape).s);
    for (int d = 0; d < 2; d++)
        if (a->shape[d] > INT_MAX || b->shape[d] > INT_MAX)
            return tti_refuse(TUTTI_E_UNSUPPORTED, op, "sizes above %d are not offered", INT_MAX);
    return TUTTI_OK;
}

tutti_tensor *tti_raw_mm(const char *op, const tutti_tensor *a, const tutti_tensor *b)
{
    tti_gemm_shape s = { 0 };
    tutti_tensor *ma, *mb, *y = NULL;

    if (a == NULL || b == NULL)
        return tti_poisoned(op);
    if (check_factors(op, a, b) != TUTTI_OK)
        return NULL;
    s.m = a->shape[0];
    s.k = a->shape[1];
    s.n = s.ldc = b->shape[1];
    ma = matrix_of(a, &s.ta, &s.lda);
    mb = matrix_of(b, &s.tb, &s.ldb);
    if (ma != NULL && mb != NULL)
        y = tti_raw_empty(a->dtype, 2, (const int64_t[]){ s.m, s.n });
    if (y != NULL)
        tti_gemm(a->dtype, &s, tti_at(ma), tti_at(mb), 0.0, tti_at(y));
    tutti_tensor_release(ma);
    tutti_tensor_release(mb);
    return y;
}

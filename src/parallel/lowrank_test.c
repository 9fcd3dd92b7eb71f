/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lowrank_test.c
 * Goal    products with thin matrices are what three plain loops say, for every size beside the blocks; columns become
 *         orthonormal, also nearly dependent ones, and zero where they depend; random numbers are spread as told, and are
 *         those of every machine.
 * Method  f64 loops beside f32 and f64; an even spectrum, a single direction, and none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "parallel/lowrank.h"

enum { MAX = 45, K = 5 };

static const tutti_dtype dtypes[] = { TUTTI_F32, TUTTI_F64 };

static double get(tutti_dtype dtype, const void *x, int64_t i)
{
    return dtype == TUTTI_F32 ? (double)((const float *)x)[i] : ((const double *)x)[i];
}

static void put(tutti_dtype dtype, void *x, int64_t i, double value)
{
    if (dtype == TUTTI_F32)
        ((float *)x)[i] = (float)value;
    else
        ((double *)x)[i] = value;
}

static double precision(tutti_dtype dtype)
{
    return dtype == TUTTI_F32 ? 1e-6 : 1e-14;
}

static void expect(tutti_dtype dtype, const void *x, int64_t i, double want, double scale)
{
    if (!(fabs(get(dtype, x, i) - want) <= precision(dtype) * scale))
        fail_msg("element %lld is %.17g, not %.17g", (long long)i, get(dtype, x, i), want);
}

static void expect_products(const tti_matrix *of)
{
    static double m[MAX * MAX], p[K * MAX], q[K * MAX], out[K * MAX];
    int64_t       i, j;
    int           c;
    double        want;

    tti_lowrank_draw(of->dtype, m, of->rows * of->cols, tti_lowrank_key(1, 2, 3), 0);
    tti_lowrank_draw(of->dtype, q, of->k * of->cols, tti_lowrank_key(4, 5, 6), 0);
    tti_lowrank_left(of, m, q, p);
    for (i = 0; i < of->rows; i++)
        for (c = 0; c < of->k; c++) {
            for (want = 0.0, j = 0; j < of->cols; j++)
                want += get(of->dtype, m, i * of->cols + j) * get(of->dtype, q, c * of->cols + j);
            expect(of->dtype, p, c * of->rows + i, want, 30.0);
        }
    tti_lowrank_right(of, m, p, out);
    for (j = 0; j < of->cols; j++)
        for (c = 0; c < of->k; c++) {
            for (want = 0.0, i = 0; i < of->rows; i++)
                want += get(of->dtype, m, i * of->cols + j) * get(of->dtype, p, c * of->rows + i);
            expect(of->dtype, out, c * of->cols + j, want, 300.0);
        }
    for (i = 0; i < of->rows; i++) {
        tti_lowrank_row(of, p, q, i, out);
        for (j = 0; j < of->cols; j++) {
            for (want = 0.0, c = 0; c < of->k; c++)
                want += get(of->dtype, p, c * of->rows + i) * get(of->dtype, q, c * of->cols + j);
            expect(of->dtype, out, j, want, 100.0);
        }
    }
}

static void products_of_every_size(void **state)
{
    size_t  d;
    int64_t rows, cols;
    int     k;

    (void)state;
    for (d = 0; d < 2; d++)
        for (rows = 1; rows <= 9; rows++)
            for (cols = 1; cols <= MAX; cols += 1 + cols % 3)
                for (k = 1; k <= K; k++) {
                    expect_products(&(tti_matrix){ dtypes[d], rows, cols, k });
                    expect_products(&(tti_matrix){ dtypes[d], cols, rows, k });
                }
}

/* Whether what a row gives depends on its place among others: it must not, or buckets would change bits. */
static void a_row_is_its_own(void **state)
{
    enum { ROWS = 7, COLS = 29 };
    float      m[ROWS * COLS], q[COLS], p[ROWS], one;
    tti_matrix of = { TUTTI_F32, ROWS, COLS, 1 };
    int        i;

    (void)state;
    tti_lowrank_draw(TUTTI_F32, m, ROWS * COLS, 7, 0);
    tti_lowrank_draw(TUTTI_F32, q, COLS, 8, 0);
    tti_lowrank_left(&of, m, q, p);
    of.rows = 1;
    for (i = 0; i < ROWS; i++) {
        tti_lowrank_left(&of, m + i * COLS, q, &one);
        assert_memory_equal(&one, &p[i], sizeof one);
    }
}

/* ---- columns ---- */

static double dot(tutti_dtype dtype, const void *a, int64_t n, int c, int d)
{
    double  sum = 0.0;
    int64_t j;

    for (j = 0; j < n; j++)
        sum += get(dtype, a, c * n + j) * get(dtype, a, d * n + j);
    return sum;
}

static void expect_orthonormal(tutti_dtype dtype, const void *a, int64_t n, int k)
{
    int c, d;

    for (c = 0; c < k; c++)
        for (d = 0; d <= c; d++)
            if (!(fabs(dot(dtype, a, n, c, d) - (c == d)) <= 4 * precision(dtype)))
                fail_msg("columns %d and %d of %lld: %.17g", c, d, (long long)n, dot(dtype, a, n, c, d));
}

static void columns_become_orthonormal(void **state)
{
    double a[K * MAX];
    size_t d;
    int    n, k;

    (void)state;
    for (d = 0; d < 2; d++)
        for (n = 1; n <= MAX; n++)
            for (k = 1; k <= K && k <= n; k++) {
                tti_lowrank_draw(dtypes[d], a, k * n, tti_lowrank_key(1, (uint64_t)n, (uint64_t)k), 0);
                tti_lowrank_orthogonalise(dtypes[d], a, n, k, 0.0);
                expect_orthonormal(dtypes[d], a, n, k);
            }
}

/* All columns the first one, but for a small part each: one pass would leave them far from right angles. */
static void nearly_dependent_columns(void **state)
{
    double a[K * MAX], part[MAX];
    size_t d;
    int    c, j;

    (void)state;
    for (d = 0; d < 2; d++) {
        tti_lowrank_draw(dtypes[d], a, MAX, 1, 0);
        for (c = 1; c < K; c++) {
            tti_lowrank_draw(dtypes[d], part, MAX, (uint64_t)c + 1, 0);
            for (j = 0; j < MAX; j++)
                put(dtypes[d], a, c * MAX + j, get(dtypes[d], a, j) + 1e-3 * get(dtypes[d], part, j));
        }
        tti_lowrank_orthogonalise(dtypes[d], a, MAX, K, 0.0);
        expect_orthonormal(dtypes[d], a, MAX, K);
    }
}

static void dependent_columns_are_zero(void **state)
{
    double a[4 * MAX];
    size_t d;
    int    j;

    (void)state;
    for (d = 0; d < 2; d++) {
        tti_lowrank_draw(dtypes[d], a, MAX, 1, 0);
        for (j = 0; j < MAX; j++) {
            put(dtypes[d], a, MAX + j, 3.7 * get(dtypes[d], a, j)); /* rounded: not exactly on a line */
            put(dtypes[d], a, 2 * MAX + j, 0.0);
            put(dtypes[d], a, 3 * MAX + j, j);
        }
        tti_lowrank_orthogonalise(dtypes[d], a, MAX, 4, 0.0);
        assert_true(tti_lowrank_is_zero(dtypes[d], (char *)a + MAX * tutti_dtype_size(dtypes[d]), 2 * MAX));
        assert_true(fabs(dot(dtypes[d], a, MAX, 0, 0) - 1.0) <= precision(dtypes[d]));
        assert_true(fabs(dot(dtypes[d], a, MAX, 3, 3) - 1.0) <= precision(dtypes[d]));
        assert_true(fabs(dot(dtypes[d], a, MAX, 0, 3)) <= precision(dtypes[d]));
    }
}

static void epsilon_shortens_columns(void **state)
{
    float x[2] = { 3.0f, 4.0f };

    (void)state;
    tti_lowrank_orthogonalise(TUTTI_F32, x, 2, 1, 5.0);
    assert_true(x[0] == 0.3f && x[1] == 0.4f);
    x[0] = NAN;
    tti_lowrank_orthogonalise(TUTTI_F32, x, 2, 1, 0.0);
    assert_false(tti_lowrank_is_finite(TUTTI_F32, x, 2)); /* nothing is hidden */
}

/* ---- random numbers ---- */

static void numbers_are_nearly_normal(void **state)
{
    enum { N = 40000 };
    static float x[N];
    double       moments[5] = { 0.0 };
    int          i, m;

    (void)state;
    tti_lowrank_draw(TUTTI_F32, x, N, tti_lowrank_key(0, 0, 0), 0);
    for (i = 0; i < N; i++)
        for (m = 1; m <= 4; m++)
            moments[m] += pow((double)x[i], m) / N;
    assert_true(fabs(moments[1]) < 0.02); /* 4 standard deviations, and so below */
    assert_true(fabs(moments[2] - 1.0) < 0.03);
    assert_true(fabs(moments[3]) < 0.08);
    assert_true(fabs(moments[4] - 2.9) < 0.2); /* of twelve: 3 - 6 / (5 * 12) */
}

static void numbers_are_those_of_every_machine(void **state)
{
    double x[3], y[3];
    float  narrow[3];

    (void)state;
    tti_lowrank_draw(TUTTI_F64, x, 3, tti_lowrank_key(1, 2, 3), 0);
    tti_lowrank_draw(TUTTI_F64, y, 2, tti_lowrank_key(1, 2, 3), 1);
    tti_lowrank_draw(TUTTI_F32, narrow, 3, tti_lowrank_key(1, 2, 3), 0);
    assert_true(x[1] == y[0] && x[2] == y[1]); /* each by its number */
    assert_true((double)narrow[0] == x[0]);
    assert_true(x[0] * 65536.0 == floor(x[0] * 65536.0));
    tti_lowrank_draw(TUTTI_F64, y, 3, tti_lowrank_key(1, 3, 2), 0);
    assert_true(x[0] != y[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_every_size),
        cmocka_unit_test(a_row_is_its_own),
        cmocka_unit_test(columns_become_orthonormal),
        cmocka_unit_test(nearly_dependent_columns),
        cmocka_unit_test(dependent_columns_are_zero),
        cmocka_unit_test(epsilon_shortens_columns),
        cmocka_unit_test(numbers_are_nearly_normal),
        cmocka_unit_test(numbers_are_those_of_every_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

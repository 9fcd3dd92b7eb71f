/* SPDX-License-Identifier: BSD-3-Clause
 *
 * math_test.c
 * Goal    the f32 functions keep their bounds over all of f32, and every set of instructions gives the
 *         same bits.
 * Method  bit patterns at a fixed distance, which is prime, against libm in f64; with an argument of 1
 *         all of them. Rows of all lengths up to a few blocks, through every table there is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/level.h"
#include "tensor/math_f32.h"

enum { CHUNK = 4096 };

static uint64_t distance = 1511;

typedef struct bound {
    tti_op1 op;
    double (*exact)(double x);
    double ulps;
} bound;

static double exact_sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static double exact_rsqrt(double x)
{
    return 1.0 / sqrt(x);
}

/* How far got is from want, in units of the last place that want has in f32. */
static double ulps_between(float got, double want)
{
    int e;

    if (isnan(want))
        return isnan(got) ? 0.0 : INFINITY;
    if (isinf((float)want) || isinf(got))
        return got == (float)want ? 0.0 : INFINITY;
    (void)frexp(fabs(want), &e);
    return fabs((double)got - want) / ldexp(1.0, (e < -125 ? -125 : e) - 24);
}

static void check_chunk(const bound *b, const float *x, int n)
{
    const double none[2] = { 0.0, 0.0 };
    float y[CHUNK];

    tti_math_now()->op1[b->op].loop[0](n, y, 1, x, 1, NULL, 0, none);
    for (int i = 0; i < n; i++) {
        const double off = ulps_between(y[i], b->exact((double)x[i]));

        if (!(off <= b->ulps))
            fail_msg("%s of %.9g is %.9g, %.2f units from %.9g", tti_math_now()->op1[b->op].name,
                     (double)x[i], (double)y[i], off, b->exact((double)x[i]));
    }
}

static void functions_keep_their_bounds(void **state)
{
    const bound bounds[] = { { TTI_EXP, exp, 2.0 },          { TTI_LOG, log, 2.0 },
                             { TTI_TANH, tanh, 2.0 },        { TTI_SIGMOID, exact_sigmoid, 3.0 },
                             { TTI_ERF, erf, 2.0 },          { TTI_SQRT, sqrt, 0.5 },
                             { TTI_RSQRT, exact_rsqrt, 2.0 } };

    (void)state;
    for (size_t k = 0; k < sizeof bounds / sizeof bounds[0]; k++) {
        uint64_t bits = 0;

        while (bits <= UINT32_MAX) {
            float x[CHUNK];
            int n = 0;

            for (; n < CHUNK && bits <= UINT32_MAX; n++, bits += distance)
                x[n] = tti_f32_of((uint32_t)bits);
            check_chunk(&bounds[k], x, n);
        }
    }
}

/* gelu = x Phi(x): as close as promised, and its tail is neither cut off nor negative zero. */
static void gelu_keeps_its_tail(void **state)
{
    const double none[2] = { 0.0, 0.0 };

    (void)state;
    for (int i = -90000; i <= 90000; i++) {
        const float x = (float)i * 1e-4f;
        const double want = 0.5 * (double)x * erfc(-(double)x * M_SQRT1_2);
        float y;

        tti_math_now()->op1[TTI_GELU].loop[0](1, &y, 1, &x, 1, NULL, 0, none);
        assert_true(fabs((double)y - want) <= 2e-7 * fabs((double)x));
        assert_true(fabs((double)y - want) <= 0x1p-18 * fabs(want));
    }
}

/* ---- levels ----------------------------------------------------------------------------------- */

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed;
}

/* Numbers of all sizes, some of them special. */
static void fill(float *x, int n, uint32_t seed)
{
    const float special[] = { 0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-40f, -1e-40f, 88.7f };

    for (int i = 0; i < n; i++) {
        const uint32_t r = next_random(&seed);

        if (r >> 27 == 0)
            x[i] = special[r >> 8 & 7];
        else if (r >> 30 == 1)
            x[i] = tti_f32_of(next_random(&seed));
        else
            x[i] = ((float)(r & 0xffff) - 32768.0f) * 0x1p-12f;
    }
}

/* Equal bits, or both NaN: which NaN comes out is not part of the promise. */
static void same_bits(const char *what, const float *a, const float *b, int n)
{
    for (int i = 0; i < n; i++)
        if (tti_bits_of(a[i]) != tti_bits_of(b[i]) && !(isnan(a[i]) && isnan(b[i])))
            fail_msg("%s: element %d of %d: %.9g and %.9g", what, i, n, (double)a[i], (double)b[i]);
}

static void compare_element_loops(const tti_math *one, const tti_math *two, const float *a,
                                  const float *b, int n)
{
    const double c[2] = { -1.25, 2.5 };
    float y[2][CHUNK];

    for (int op = 0; op < TTI_OP1_COUNT; op++) {
        if (op == TTI_POW) /* libm's */
            continue;
        one->op1[op].loop[0](n, y[0], 1, a, 1, NULL, 0, c);
        two->op1[op].loop[0](n, y[1], 1, a, 1, NULL, 0, c);
        same_bits(one->op1[op].name, y[0], y[1], n);
        two->op1[op].loop[0]((n + 1) / 2, y[1], 2, a, 2, NULL, 0, c); /* every other one */
        for (int i = 0; i < n; i += 2)
            same_bits(one->op1[op].name, &y[0][i], &y[1][i], 1);
    }
    for (int op = 0; op < TTI_EQ; op++)
        for (int step = 0; step < 2; step++) {
            one->op2[op].loop[0](n, y[0], 1, a, 1, b, step, c);
            two->op2[op].loop[0](n, y[1], 1, a, 1, b, step, c);
            same_bits(one->op2[op].name, y[0], y[1], n);
        }
    for (int op = 0; op < TTI_OP3_COUNT; op++) {
        one->op3[op].loop[0](n, y[0], 1, a, 1, b, 1, a, 1, c);
        two->op3[op].loop[0](n, y[1], 1, a, 1, b, 1, a, 1, c);
        same_bits(one->op3[op].name, y[0], y[1], n);
    }
}

static void same_number(double a, double b)
{
    assert_true(memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b)));
}

static void compare_row_loops(const tti_row_ops *one, const tti_row_ops *two, const float *a,
                              const float *b, int n)
{
    const tti_row_ops *of[2] = { one, two };
    float y[2][CHUNK];
    double dw[2][CHUNK], sums[2][2];

    same_number(one->max(n, a), two->max(n, a));
    same_number(one->sum(n, a), two->sum(n, a));
    same_number(one->dot(n, a, b), two->dot(n, a, b));
    same_number(one->spread(n, a, 0.5), two->spread(n, a, 0.5));
    same_number(one->exp_sum(n, a, 2.0, NULL), two->exp_sum(n, a, 2.0, y[1]));
    for (int k = 0; k < 2; k++)
        (void)of[k]->exp_sum(n, a, 2.0, y[k]);
    same_bits("exp_sum", y[0], y[1], n);
    for (int k = 0; k < 2; k++)
        of[k]->softmax_back(n, a, b, 0.3, y[k]);
    same_bits("softmax_back", y[0], y[1], n);
    for (int k = 0; k < 2; k++)
        of[k]->log_softmax_back(n, a, b, 0.3, y[k]);
    same_bits("log_softmax_back", y[0], y[1], n);
    for (int k = 0; k < 2; k++)
        of[k]->norm(n, a, 0.2, 1.7, b, a, y[k]);
    same_bits("norm", y[0], y[1], n);
    for (int k = 0; k < 2; k++)
        of[k]->norm_back(n, a, b, 0.2, 1.7, b, 0.1, 0.3, y[k]);
    same_bits("norm_back", y[0], y[1], n);
    for (int k = 0; k < 2; k++)
        of[k]->norm_sums(n, a, b, 0.2, 1.7, b, &sums[k][0], &sums[k][1]);
    same_number(sums[0][0], sums[1][0]);
    same_number(sums[0][1], sums[1][1]);
    memset(dw, 0, sizeof dw);
    for (int k = 0; k < 2; k++)
        of[k]->norm_params(n, a, b, 0.2, 1.7, dw[k], NULL);
    for (int i = 0; i < n; i++)
        same_number(dw[0][i], dw[1][i]);
}

static void levels_give_the_same_bits(void **state)
{
    const tti_math *base = tti_math_of(TTI_MATH_BASE);
    float a[CHUNK], b[CHUNK];

    (void)state;
    assert_non_null(base);
    for (int level = TTI_MATH_AVX2; level < TTI_MATH_COUNT; level++) {
        const tti_math *math = tti_math_of((tti_math_level)level);

        for (int n = 0; n <= 1600 && math != NULL; n += n < 70 ? 1 : 61) {
            fill(a, n, (uint32_t)n + 1);
            fill(b, n, (uint32_t)n + 100000);
            compare_element_loops(base, math, a, b, n);
            compare_row_loops(&base->rows[0], &math->rows[0], a, b, n);
        }
    }
}

/* Sums against f64, for lengths around those of lanes and blocks. */
static void rows_add_up(void **state)
{
    float a[CHUNK];
    double d[CHUNK];

    (void)state;
    for (int n = 0; n < 1300; n += n < 70 ? 1 : 37) {
        double sum = 0.0, squares = 0.0, exps = 0.0, max = -INFINITY;

        for (int i = 0; i < n; i++) {
            a[i] = sinf((float)i) + 0.25f;
            d[i] = (double)a[i];
            sum += d[i];
            squares += d[i] * d[i];
            exps += exp(d[i] - 1.0);
            max = fmax(max, d[i]);
        }
        for (int k = 0; k < 2; k++) {
            const tti_row_ops *rows = &tti_math_now()->rows[k];
            const void *x = k == 0 ? (const void *)a : d;
            const double near = (k == 0 ? 1e-6 : 1e-14) * (n + 1);

            assert_true(rows->max(n, x) == max);
            assert_true(fabs(rows->sum(n, x) - sum) <= near);
            assert_true(fabs(rows->dot(n, x, x) - squares) <= near);
            assert_true(fabs(rows->spread(n, x, 0.0) - squares) <= near);
            assert_true(fabs(rows->exp_sum(n, x, 1.0, NULL) - exps) <= near);
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_keep_their_bounds),
        cmocka_unit_test(gelu_keeps_its_tail),
        cmocka_unit_test(levels_give_the_same_bits),
        cmocka_unit_test(rows_add_up),
    };

    if (argc > 1 && atoi(argv[1]) > 0)
        distance = (uint64_t)atoi(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conv_planes_test.c
 * Goal    convolution without columns computes what convolution does, in every shape and at every level.
 * Method  each shape in f32, which goes by planes, against f64, which goes by columns and matrix products: result and
 *         all three gradients to 1e-5 of the largest. Then the loops of each level this processor has, against plain
 *         ones, in sizes around those of their tiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "nn/conv.h"
#include "nn/planes.h"
#include "tensor/level.h"

typedef struct shape {
    int64_t n, c, h, w, o;
    int kh, kw, stride_w, pad_h, pad_w, dil_h, dil_w, groups;
} shape;

static const shape shapes[] = {
    { 3, 1, 28, 28, 10, 5, 5, 1, 0, 0, 1, 1, 1 },  /* the tutorial's first */
    { 9, 10, 12, 12, 20, 5, 5, 1, 0, 0, 1, 1, 1 }, /* and second */
    { 2, 3, 9, 7, 7, 3, 3, 1, 1, 1, 1, 1, 1 },     /* rests of vectors; padding */
    { 1, 2, 11, 13, 3, 2, 4, 2, 1, 2, 1, 1, 1 },   /* columns skipped */
    { 2, 4, 15, 12, 6, 3, 3, 1, 2, 1, 2, 3, 2 },   /* dilation, groups */
    { 2, 2, 8, 9, 13, 7, 1, 3, 3, 0, 1, 1, 1 },    /* more taps than a tile */
    { 40, 1, 6, 6, 1, 2, 2, 1, 0, 0, 1, 1, 1 },    /* one of everything */
    { 2, 2, 5, 4, 2, 3, 4, 1, 2, 7, 1, 1, 1 },     /* columns that see padding alone */
};

enum { RESULT, OF_X, OF_W, OF_B, PARTS };

/* Numbers between -1 and 1, the same in both types; owned. */
static tutti_tensor *numbers(tutti_dtype dtype, int nd, const int64_t *size, int seed)
{
    tutti_tensor *t = tutti_tensor_empty(TUTTI_F32, nd, size);
    float *x = tutti_tensor_data(t);

    for (int64_t i = 0; i < tutti_tensor_numel(t); i++)
        x[i] = (float)sin(0.7 * (double)i + seed);
    return tutti_tensor_retain(tutti_tensor_requires_grad_(tutti_tensor_detach(tutti_tensor_to(t, dtype)), true));
}

static void convolve(const shape *s, tutti_dtype dtype, tutti_tensor **out)
{
    tutti_conv2d_options opts = TUTTI_CONV2D_OPTIONS;
    tutti_tensor *x = numbers(dtype, 4, (const int64_t[]){ s->n, s->c, s->h, s->w }, 1);
    tutti_tensor *w = numbers(dtype, 4, (const int64_t[]){ s->o, s->c / s->groups, s->kh, s->kw }, 2);
    tutti_tensor *b = numbers(dtype, 1, &s->o, 3), *y, *g;

    opts.stride[1] = s->stride_w;
    opts.padding[0] = s->pad_h;
    opts.padding[1] = s->pad_w;
    opts.dilation[0] = s->dil_h;
    opts.dilation[1] = s->dil_w;
    opts.groups = s->groups;
    y = tutti_tensor_conv2d(x, w, b, &opts);
    assert_non_null(y);
    g = numbers(dtype, 4, y->shape, 4);
    assert_int_equal(tutti_backward(&y, &g, 1, 0), TUTTI_OK);
    out[RESULT] = tutti_tensor_retain(y);
    out[OF_X] = tutti_tensor_retain(tutti_tensor_grad(x));
    out[OF_W] = tutti_tensor_retain(tutti_tensor_grad(w));
    out[OF_B] = tutti_tensor_retain(tutti_tensor_grad(b));
    tutti_tensor_release(x);
    tutti_tensor_release(w);
    tutti_tensor_release(b);
    tutti_tensor_release(g);
}

static void compare(size_t number, int part, const tutti_tensor *got, const tutti_tensor *want)
{
    const float *a = tutti_tensor_data(got);
    const double *b = tutti_tensor_data(want);
    double most = 0.0;

    assert_int_equal(tutti_tensor_numel(got), tutti_tensor_numel(want));
    for (int64_t i = 0; i < tutti_tensor_numel(want); i++)
        most = fmax(most, fabs(b[i]));
    for (int64_t i = 0; i < tutti_tensor_numel(want); i++)
        if (!(fabs((double)a[i] - b[i]) <= 1e-5 * most))
            fail_msg("shape %zu, part %d, element %lld: %g instead of %g", number, part, (long long)i, (double)a[i], b[i]);
}

static void planes_are_columns(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        tutti_tensor *narrow[PARTS], *wide[PARTS];

        tutti_scope_begin();
        convolve(&shapes[i], TUTTI_F32, narrow);
        convolve(&shapes[i], TUTTI_F64, wide);
        for (int part = 0; part < PARTS; part++) {
            compare(i, part, narrow[part], wide[part]);
            tutti_tensor_release(narrow[part]);
            tutti_tensor_release(wide[part]);
        }
        tutti_scope_end();
    }
    assert_int_equal(tutti_tensor_check(), TUTTI_OK);
}

/* Which way is taken. */
static void they_go_by_planes(void **state)
{
    tti_convolution g = { .n = 1, .o = 20, .og = 20, .kh = 5, .kw = 5, .sh = 1, .rows = 250, .cols = 64 };

    (void)state;
    assert_true(tti_conv_planes_fit(&g, TUTTI_F32));
    assert_false(tti_conv_planes_fit(&g, TUTTI_F64));
    g.sh = 2;
    assert_false(tti_conv_planes_fit(&g, TUTTI_F32));
    g.sh = 1;
    g.cols = 15;
    assert_false(tti_conv_planes_fit(&g, TUTTI_F32));
}

/* ---- the loops of a level --------------------------------------------------------------------- */

enum { OUTS = 13, TERMS = 3, N = 150, IMAGES = 2, TAPS = 11, ROOM = 8192 };

static float a[ROOM], b[ROOM], packed[OUTS * TERMS], y[OUTS * N];
static float lanes[OUTS * TAPS * TTI_PLANES_LANES];

static void check_sums(const tti_plane_ops *ops, int64_t outs, int64_t n)
{
    const int64_t at[TERMS] = { 3, 0, 171 };
    const tti_plane_sums s = { outs, TERMS, n, packed, at, b, outs % 2 ? a + 100 : NULL, y, n };

    for (int64_t i = 0; i < OUTS * N; i++)
        y[i] = -7.0f;
    ops->pack(outs, TERMS, a, packed);
    ops->sums(&s);
    for (int64_t i = 0; i < outs * n; i++) {
        double want = s.bias != NULL ? (double)s.bias[i / n] : 0.0;

        for (int k = 0; k < TERMS; k++)
            want += (double)a[i / n * TERMS + k] * (double)b[at[k] + i % n];
        assert_true(fabs((double)y[i] - want) < 1e-5);
    }
    for (int64_t i = outs * n; i < OUTS * N; i++)
        assert_true(y[i] == -7.0f); /* nothing behind the last plane */
}

static double sum_of(const float *x)
{
    double sum = 0.0;

    for (int l = 0; l < TTI_PLANES_LANES; l++)
        sum += (double)x[l];
    return sum;
}

static void check_slopes(const tti_plane_ops *ops, int64_t outs, int64_t taps, int64_t n)
{
    const int64_t ld = taps * TTI_PLANES_LANES;
    const tti_plane_slopes s = { outs, taps, IMAGES, n, a, n, outs * n, b, 9, 501, lanes, ld };

    for (int64_t i = 0; i < outs * ld; i++)
        lanes[i] = 1.0f; /* is added to */
    b[IMAGES * 501 - 1] = NAN; /* is not read */
    ops->slopes(&s);
    b[IMAGES * 501 - 1] = 0.0f;
    for (int64_t o = 0; o < outs; o++)
        for (int64_t i = 0; i < taps; i++) {
            double want = TTI_PLANES_LANES;

            for (int64_t m = 0; m < IMAGES; m++)
                for (int64_t p = 0; p < n; p++)
                    want += (double)a[(m * outs + o) * n + p] * (double)b[m * 501 + i * 9 + p];
            assert_true(fabs(sum_of(lanes + o * ld + i * TTI_PLANES_LANES) - want) < 1e-4);
        }
}

static void check_level(const tti_plane_ops *ops)
{
    static const int64_t sizes[] = { 1, 15, 16, 17, 40, 64, 96, 150 };

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int64_t outs = 1; outs <= OUTS; outs++) {
            check_sums(ops, outs, sizes[i]);
            check_slopes(ops, outs, 1 + outs % TAPS, sizes[i]);
        }
}

static void every_level_sums(void **state)
{
    (void)state;
    for (int i = 0; i < ROOM; i++) {
        a[i] = (float)((i * 37) % 101 - 50) / 50.0f;
        b[i] = (float)((i * 53) % 97 - 48) / 48.0f;
    }
    check_level(&tti_planes_base);
#if defined(__x86_64__)
    if (tti_math_of(TTI_MATH_AVX2) != NULL && __builtin_cpu_supports("fma"))
        check_level(&tti_planes_avx2);
    if (tti_math_of(TTI_MATH_AVX512) != NULL)
        check_level(&tti_planes_avx512);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planes_are_columns),
        cmocka_unit_test(they_go_by_planes),
        cmocka_unit_test(every_level_sums),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

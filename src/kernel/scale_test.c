/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scale_test.c
 * Goal    scaling multiplies each component once and rounds once, in place too; PREMUL_SUM made of
 *         it and of reduce is the sum of the products; zero means zero in every dtype.
 * Method  numbers whose products are known or come from the scalar functions of base/half.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <fenv.h>
#include <math.h>
#include <cmocka.h>
#include "base/half.h"
#include "kernel/kernel.h"

enum { COUNT = 1100 }; /* two blocks of the small formats and a remainder */

static void reals_are_multiplied(void **state)
{
    static float x[COUNT], y[COUNT];
    static double u[COUNT], v[COUNT];

    (void)state;
    for (int i = 0; i < COUNT; i++)
        u[i] = x[i] = (float)i * 0.37f - 100.0f;
    tti_scale(y, x, COUNT, 0.1, TUTTI_F32);
    tti_scale(v, u, COUNT, 0.1, TUTTI_F64);
    for (int i = 0; i < COUNT; i++) {
        assert_true(y[i] == x[i] * 0.1f);
        assert_true(v[i] == u[i] * 0.1);
    }
}

static void complex_numbers_are_scaled_in_both_components(void **state)
{
    float pair[6] = { 1, 2, 3, 4, 5, 6 };
    double wide[6] = { 1, 2, 3, 4, 5, 6 };

    (void)state;
    tti_scale(pair, pair, 2, -0.5, TUTTI_C64); /* in place; the third number is not ours */
    tti_scale(wide, wide, 2, -0.5, TUTTI_C128);
    for (int i = 0; i < 6; i++) {
        assert_true(pair[i] == (i < 4 ? -0.5f : 1.0f) * (float)(i + 1));
        assert_true(wide[i] == (i < 4 ? -0.5 : 1.0) * (i + 1));
    }
}

static void f16_and_bf16_round_once(void **state)
{
    static uint16_t in[COUNT], out[COUNT];

    (void)state;
    for (int i = 0; i < COUNT; i++)
        in[i] = (uint16_t)(0x3000 + 7 * i);
    tti_scale(out, in, COUNT, 1.0 / 3, TUTTI_F16);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(out[i], tti_f16_from_f32(tti_f32_from_f16(in[i]) * (float)(1.0 / 3)));
    memcpy(out, in, sizeof out);
    tti_scale(out, out, COUNT, 1.0 / 3, TUTTI_BF16);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(out[i], tti_bf16_from_f32(tti_f32_from_bf16(in[i]) * (float)(1.0 / 3)));
}

/* The one NaN that comes out of kernels. */
static float one_nan(float x)
{
    return isnan(x) ? NAN : x;
}

static void f8_rounds_once(void **state)
{
    uint8_t in[256], out[256];

    (void)state;
    for (int i = 0; i < 256; i++)
        in[i] = (uint8_t)i;
    tti_scale(out, in, 256, 1.5, TUTTI_F8E4M3FN);
    for (int i = 0; i < 256; i++)
        assert_int_equal(out[i],
                         tti_f8e4m3fn_from_f32(one_nan(tti_f32_from_f8e4m3fn(in[i]) * 1.5f)));
    tti_scale(out, in, 256, 1.5, TUTTI_F8E5M2);
    for (int i = 0; i < 256; i++)
        assert_int_equal(out[i], tti_f8e5m2_from_f32(one_nan(tti_f32_from_f8e5m2(in[i]) * 1.5f)));
}

/* What two ranks with factors 2 and 0.5 do. */
static void premul_sum_is_scale_then_sum(void **state)
{
    float a[3] = { 1, 2, 3 }, b[3] = { 4, 8, 12 };
    const void *in[] = { a, b };

    (void)state;
    tti_scale(a, a, 3, 2.0, TUTTI_F32);
    tti_scale(b, b, 3, 0.5, TUTTI_F32);
    tti_reduce(tti_reduce_kernel_for(TUTTI_OP_PREMUL_SUM, TUTTI_F32), a, in, 2, 3, 2);
    assert_true(a[0] == 4 && a[1] == 8 && a[2] == 12);
}

static void the_callers_rounding_mode_does_not_matter(void **state)
{
    const int before = fegetround();
    const float x[2] = { 1.0f, 1.5f };
    float y[2];

    (void)state;
    assert_int_equal(fesetround(FE_UPWARD), 0);
    tti_scale(y, x, 2, 1.0 + 0x1p-30, TUTTI_F32); /* factor is 1 when rounded to nearest */
    fesetround(before);
    assert_true(y[0] == 1.0f && y[1] == 1.5f);
}

static void nothing_is_touched_when_there_is_nothing(void **state)
{
    (void)state;
    tti_scale(NULL, NULL, 0, 2.0, TUTTI_F16);
    tti_fill_zero(NULL, 0, TUTTI_F64);
}

static void zero_fills_count_elements(void **state)
{
    unsigned char bytes[4 * 16];

    (void)state;
    for (int dtype = 0; dtype < TUTTI_DTYPE_COUNT; dtype++) {
        const size_t end = 3 * tutti_dtype_size((tutti_dtype)dtype);

        memset(bytes, 0xa5, sizeof bytes);
        tti_fill_zero(bytes, 3, (tutti_dtype)dtype);
        for (size_t k = 0; k < sizeof bytes; k++)
            assert_int_equal(bytes[k], k < end ? 0 : 0xa5);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(reals_are_multiplied),
        cmocka_unit_test(complex_numbers_are_scaled_in_both_components),
        cmocka_unit_test(f16_and_bf16_round_once),
        cmocka_unit_test(f8_rounds_once),
        cmocka_unit_test(premul_sum_is_scale_then_sum),
        cmocka_unit_test(the_callers_rounding_mode_does_not_matter),
        cmocka_unit_test(nothing_is_touched_when_there_is_nothing),
        cmocka_unit_test(zero_fills_count_elements),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * half_test.c
 * Goal    every code of f16, bf16, f8e4m3fn and f8e5m2 has the right value, and every f32 goes to
 *         the nearest code.
 * Method  Values are compared with the textbook formula in double. Rounding is monotonic, so it is
 *         right everywhere if it is right around each border between two neighbouring codes: their
 *         midpoint (exact in f32) goes to the even code, the f32 below it and above it to either
 *         side. A sweep over f32 patterns against a search in double, against the compiler's
 *         _Float16 and the processor's F16C, where there are any, sees the same from outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <math.h>
#include <cmocka.h>
#include "base/half.h"
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

/* Prime steps through all f32 patterns: about a million, and about four million of them. */
enum { SWEEP_STEP = 4093, FAST_SWEEP_STEP = 1021 };

typedef struct format {
    const char *name;
    tutti_dtype dtype;
    int mantissa_bits;
    int bias;
    uint32_t sign;     /* mask of the sign bit */
    uint32_t max;      /* code of the largest finite number */
    uint32_t overflow; /* code of what is larger */
} format;

static const format formats[] = {
    { "f16", TUTTI_F16, 10, 15, 0x8000, 0x7bff, 0x7c00 },
    { "bf16", TUTTI_BF16, 7, 127, 0x8000, 0x7f7f, 0x7f80 },
    { "f8e4m3fn", TUTTI_F8E4M3FN, 3, 7, 0x80, 0x7e, 0x7f },
    { "f8e5m2", TUTTI_F8E5M2, 2, 15, 0x80, 0x7b, 0x7c },
};

static float read_code(const format *f, uint32_t code)
{
    switch (f->dtype) {
    case TUTTI_F16: return tti_f32_from_f16((uint16_t)code);
    case TUTTI_BF16: return tti_f32_from_bf16((uint16_t)code);
    case TUTTI_F8E4M3FN: return tti_f32_from_f8e4m3fn((uint8_t)code);
    default: return tti_f32_from_f8e5m2((uint8_t)code);
    }
}

static uint32_t write_code(const format *f, float x)
{
    switch (f->dtype) {
    case TUTTI_F16: return tti_f16_from_f32(x);
    case TUTTI_BF16: return tti_bf16_from_f32(x);
    case TUTTI_F8E4M3FN: return tti_f8e4m3fn_from_f32(x);
    default: return tti_f8e5m2_from_f32(x);
    }
}

/* The value of a code up to one beyond the largest, sign left out, by the textbook. */
static double value_of(const format *f, uint32_t code)
{
    const int exponent = (int)(code >> f->mantissa_bits);
    const double fraction =
        ldexp((double)(code & ((1u << f->mantissa_bits) - 1u)), -f->mantissa_bits);

    if (exponent == 0)
        return ldexp(fraction, 1 - f->bias);
    return ldexp(1.0 + fraction, exponent - f->bias);
}

/* Nearest code of a non-negative number, by bisection over the codes; max + 1 stands for all that
 * is beyond the last border. */
static uint32_t nearest(const format *f, double x)
{
    uint32_t low = 0;
    uint32_t high = f->max + 1;
    double middle;

    if (x >= value_of(f, high))
        return f->overflow;
    while (high - low > 1) {
        const uint32_t mid = (low + high) / 2;

        if (value_of(f, mid) <= x)
            low = mid;
        else
            high = mid;
    }
    middle = (value_of(f, low) + value_of(f, high)) / 2;
    if (x > middle || (x == middle && (low & 1u)))
        low = high;
    return low > f->max ? f->overflow : low;
}

static void check_write(const format *f, float x, uint32_t want)
{
    const uint32_t plus = write_code(f, x);
    const uint32_t minus = write_code(f, -x);

    if (plus != want || minus != (want | f->sign))
        fail_msg("%s of %a is 0x%x and of -x 0x%x, expected 0x%x", f->name, (double)x, plus, minus,
                 want);
}

static void values_are_the_textbook_ones(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
        const format *f = &formats[k];

        for (uint32_t code = 0; code <= f->max; code++) {
            const double want = value_of(f, code);

            if ((double)read_code(f, code) != want ||
                (double)read_code(f, code | f->sign) != -want ||
                !signbit(read_code(f, code | f->sign)))
                fail_msg("%s 0x%x reads as %a, expected %a", f->name, code,
                         (double)read_code(f, code), want);
        }
    }
}

static void every_code_survives_a_round_trip(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
        const format *f = &formats[k];

        for (uint32_t code = 0; code < 2 * f->sign; code++) {
            const float x = read_code(f, code);
            const uint32_t back = write_code(f, x);

            if (isnan(x) ? !isnan(read_code(f, back)) || (back & f->sign) != (code & f->sign)
                         : back != code)
                fail_msg("%s 0x%x came back as 0x%x", f->name, code, back);
        }
    }
}

static void what_is_past_the_largest_is_special(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
        const format *f = &formats[k];
        const int has_inf = f->dtype != TUTTI_F8E4M3FN;

        for (uint32_t code = f->max + 1; code < f->sign; code++) {
            const float x = read_code(f, code);

            assert_true(has_inf && code == f->overflow ? isinf(x) && x > 0 : isnan(x));
            assert_true(!isnan(x) || (tti_f32_bits(x) & 0x00400000u) != 0); /* quiet */
        }
        check_write(f, INFINITY, f->overflow);
        check_write(f, 3.402823466e38f, f->overflow);
    }
}

static void nan_stays_nan(void **state)
{
    static const uint32_t nans[] = { 0x7fc00000, 0x7f800001, 0x7fffffff, 0x7f802000, 0x7fbfffff };

    (void)state;
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++)
        for (size_t i = 0; i < sizeof nans / sizeof *nans; i++) {
            const uint32_t plus = write_code(&formats[k], tti_f32_of_bits(nans[i]));
            const uint32_t minus = write_code(&formats[k], tti_f32_of_bits(nans[i] | 0x80000000u));

            assert_true(isnan(read_code(&formats[k], plus)));
            assert_int_equal(plus & formats[k].sign, 0);
            assert_int_equal(minus, plus | formats[k].sign);
        }
    assert_int_equal(tti_f16_from_f32(tti_f32_of_bits(0x7f802000)), 0x7e01); /* payload kept */
    assert_int_equal(tti_bf16_from_f32(tti_f32_of_bits(0x7f810000)), 0x7fc1);
}

static void borders_between_codes_round_to_even(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
        const format *f = &formats[k];

        for (uint32_t code = 0; code <= f->max; code++) {
            const float middle = (float)((value_of(f, code) + value_of(f, code + 1)) / 2);
            const uint32_t above = code == f->max ? f->overflow : code + 1;

            check_write(f, nextafterf(middle, 0.0f), code);
            check_write(f, middle, (code & 1u) ? above : code);
            check_write(f, nextafterf(middle, INFINITY), above);
        }
    }
}

static void a_sweep_agrees_with_the_search(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++)
        for (uint32_t bits = 0; bits < 0x7f800000u; bits += SWEEP_STEP) {
            const float x = tti_f32_of_bits(bits);

            check_write(&formats[k], x, nearest(&formats[k], (double)x));
        }
}

static void f16_agrees_with_the_compiler(void **state)
{
    (void)state;
#if defined(__FLT16_MAX__)
    for (uint32_t bits = 0; bits < 0x7f800000u; bits += FAST_SWEEP_STEP) {
        const float x = tti_f32_of_bits(bits);
        const _Float16 half = (_Float16)x;
        uint16_t want;

        memcpy(&want, &half, sizeof want);
        check_write(&formats[0], x, want);
        assert_true((float)half == read_code(&formats[0], want));
    }
#else
    skip(); /* this compiler has no _Float16 */
#endif
}

#if defined(__x86_64__)
__attribute__((target("f16c"))) static uint16_t f16c_write(float x)
{
    return (uint16_t)_mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(x), _MM_FROUND_TO_NEAREST_INT), 0);
}

__attribute__((target("f16c"))) static float f16c_read(uint16_t code)
{
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(code)));
}

/* Not __builtin_cpu_supports(), which clang 14 cannot ask for this. */
static bool has_f16c(void)
{
    enum { LEAF1_ECX_F16C = 1 << 29 };

    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & LEAF1_ECX_F16C) != 0;
}

/* Bit by bit, NaN payloads included. */
static void f16_agrees_with_f16c(void **state)
{
    (void)state;
    if (!has_f16c())
        skip();
    for (uint32_t code = 0; code <= 0xffffu; code++)
        assert_int_equal(tti_f32_bits(tti_f32_from_f16((uint16_t)code)),
                         tti_f32_bits(f16c_read((uint16_t)code)));
    for (uint32_t bits = 0; bits < 0x80000000u; bits += FAST_SWEEP_STEP)
        check_write(&formats[0], tti_f32_of_bits(bits), f16c_write(tti_f32_of_bits(bits)));
}
#endif

static void known_values(void **state)
{
    (void)state;
    assert_int_equal(tti_f16_from_f32(65504.0f), 0x7bff);
    assert_int_equal(tti_f16_from_f32(65519.996f), 0x7bff);
    assert_int_equal(tti_f16_from_f32(65520.0f), 0x7c00);
    assert_int_equal(tti_f16_from_f32(5.9604645e-8f), 0x0001);
    assert_int_equal(tti_f16_from_f32(2.9802322e-8f), 0x0000); /* half of the smallest: to even */
    assert_int_equal(tti_f16_from_f32(-0.0f), 0x8000);
    assert_int_equal(tti_bf16_from_f32(1.00390625f), 0x3f80);
    assert_int_equal(tti_bf16_from_f32(tti_f32_of_bits(0x00000001)), 0x0000);
    assert_int_equal(tti_bf16_from_f32(tti_f32_of_bits(0x00018000)), 0x0002);
    assert_int_equal(tti_f8e4m3fn_from_f32(448.0f), 0x7e);
    assert_int_equal(tti_f8e4m3fn_from_f32(464.0f), 0x7e);
    assert_int_equal(tti_f8e4m3fn_from_f32(464.00003f), 0x7f);
    assert_int_equal(tti_f8e4m3fn_from_f32(-INFINITY), 0xff);
    assert_int_equal(tti_f8e5m2_from_f32(57344.0f), 0x7b);
    assert_int_equal(tti_f8e5m2_from_f32(61439.996f), 0x7b);
    assert_int_equal(tti_f8e5m2_from_f32(61440.0f), 0x7c);
}

/* The vector loops and their remainders do what the scalar functions do. */
static void runs_agree_with_single_numbers(void **state)
{
    enum { COUNT = 1003 };
    static float x[COUNT], wide[COUNT];
    static uint8_t codes[COUNT * 2];

    (void)state;
    for (int i = 0; i < COUNT; i++)
        x[i] = tti_f32_of_bits((uint32_t)i * 0x00418937u);
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
        const format *f = &formats[k];

        tti_narrow_for(f->dtype)(codes, x, COUNT);
        tti_widen_for(f->dtype)(wide, codes, COUNT);
        for (int i = 0; i < COUNT; i++) {
            const uint32_t want = write_code(f, x[i]);
            uint32_t got = codes[i];

            if (tutti_dtype_size(f->dtype) == 2) {
                uint16_t pair;

                memcpy(&pair, codes + 2 * i, sizeof pair);
                got = pair;
            }
            assert_int_equal(got, want);
            assert_int_equal(tti_f32_bits(wide[i]), tti_f32_bits(read_code(f, want)));
        }
    }
    assert_null(tti_widen_for(TUTTI_F32));
    assert_null(tti_narrow_for(TUTTI_C64));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_the_textbook_ones),
        cmocka_unit_test(every_code_survives_a_round_trip),
        cmocka_unit_test(what_is_past_the_largest_is_special),
        cmocka_unit_test(nan_stays_nan),
        cmocka_unit_test(borders_between_codes_round_to_even),
        cmocka_unit_test(a_sweep_agrees_with_the_search),
        cmocka_unit_test(f16_agrees_with_the_compiler),
#if defined(__x86_64__)
        cmocka_unit_test(f16_agrees_with_f16c),
#endif
        cmocka_unit_test(known_values),
        cmocka_unit_test(runs_agree_with_single_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

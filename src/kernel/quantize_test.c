/* SPDX-License-Identifier: BSD-3-Clause
 *
 * quantize_test.c
 * Goal    codes and scales are what quantize.h says, with every set of instructions, of all formats, wherever blocks
 *         begin and end; what is not finite makes its block NaN and no other; errors that are kept are what was left
 *         out; sums are made in order and rounded once more.
 * Method  drawn numbers, over many powers of two, against scalar code of another shape, bit by bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>
#include "base/half.h"
#include "kernel/level.h"
#include "kernel/quantize.h"

enum { COUNT = 1500, RANKS = 3 };

static const int blocks[] = { 128, 256, 512, 1024, 64 };
static const tutti_dtype dtypes[] = { TUTTI_F32, TUTTI_F16, TUTTI_BF16 };

static uint32_t state_of_draw = 7;

static float draw(void)
{
    state_of_draw = state_of_draw * 1664525u + 1013904223u;
    return ldexpf((float)((int)(state_of_draw >> 8 & 0xffff) - 0x8000), (int)(state_of_draw >> 28) - 20);
}

static float read_number(const void *p, tutti_dtype dtype, int64_t i)
{
    switch (dtype) {
    case TUTTI_F16: return tti_f32_from_f16(((const uint16_t *)p)[i]);
    case TUTTI_BF16: return tti_f32_from_bf16(((const uint16_t *)p)[i]);
    default: return ((const float *)p)[i];
    }
}

static void write_number(void *p, tutti_dtype dtype, int64_t i, float x)
{
    switch (dtype) {
    case TUTTI_F16: ((uint16_t *)p)[i] = tti_f16_from_f32(x); break;
    case TUTTI_BF16: ((uint16_t *)p)[i] = tti_bf16_from_f32(x); break;
    default: ((float *)p)[i] = x;
    }
}

/* The scale of n numbers, and their codes, as the header says it. */
static float code_slowly(const float *x, int64_t n, int8_t *codes)
{
    float   m = 0.0f;
    bool    broken = false;
    int64_t i;

    for (i = 0; i < n; i++) {
        broken |= !isfinite(x[i]);
        m = fmaxf(m, fabsf(x[i]));
    }
    for (i = 0; i < n; i++)
        codes[i] = broken || m < 0x1p-119f ? 0 : (int8_t)lrintf(x[i] * (127.0f / m));
    return broken ? NAN : m < 0x1p-119f ? 0.0f : fminf(m / 127.0f, 0x1.020406p+121f);
}

static void for_all_levels(void (*check)(void))
{
    const tti_level before = tti_level_now();
    int             level;

    for (level = 0; level < TTI_LEVEL_COUNT; level++)
        if (tti_level_works((tti_level)level)) {
            tti_level_use((tti_level)level);
            check();
        }
    tti_level_use(before);
}

static bool same_bits(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* ---- there and back ---- */

static void check_numbers(tutti_dtype dtype, int block, int64_t count, size_t at)
{
    static float   room[COUNT + 8], out[COUNT + 8], x[COUNT];
    static int8_t  codes[COUNT + 8], want[COUNT];
    float          scales[COUNT / 64 + 2];
    const size_t   size = tutti_dtype_size(dtype);
    char          *in = (char *)room + at * size, *back = (char *)out + at * size;
    int64_t        i, from, n;

    for (i = 0; i < count; i++) {
        write_number(in, dtype, i, draw());
        x[i] = read_number(in, dtype, i);
    }
    memset(out, 0x5a, sizeof out);
    memset(codes, 0x5a, sizeof codes);
    tti_quantize(codes + at, scales, in, dtype, count, block, NULL);
    tti_dequantize(back, dtype, codes + at, scales, count, block);
    for (from = 0; from < count; from += n) {
        const float got = scales[from / block];

        n = count - from < block ? count - from : block;
        assert_true(same_bits(got, code_slowly(x + from, n, want + from)));
        for (i = from; i < from + n; i++) {
            float rounded;

            assert_int_equal(codes[at + (size_t)i], want[i]);
            assert_true(fabsf((float)want[i] * got - x[i]) <= got * 0.5001f);
            write_number(&rounded, dtype, 0, (float)want[i] * got);
            assert_memory_equal(back + (size_t)i * size, &rounded, size);
        }
    }
    assert_int_equal(codes[at + (size_t)count], 0x5a);
    assert_int_equal((unsigned char)back[(size_t)count * size], 0x5a);
}

static void check_all_numbers(void)
{
    static const int64_t counts[] = { 0, 1, 5, 16, 17, 63, 128, 300, 1024, 1499 };
    size_t               d, b, c;

    for (d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (b = 0; b < sizeof blocks / sizeof *blocks; b++)
            for (c = 0; c < sizeof counts / sizeof *counts; c++)
                check_numbers(dtypes[d], blocks[b], counts[c], c % 4);
}

static void numbers_become_codes_and_come_back(void **state)
{
    (void)state;
    for_all_levels(check_all_numbers);
}

/* ---- what is no number, and what is next to none ---- */

static void check_broken(void)
{
    static const float broken[] = { NAN, -NAN, INFINITY, -INFINITY };
    float              x[4 * 64], back[4 * 64], scales[4];
    int8_t             codes[4 * 64];
    size_t             k;
    int                i;

    for (k = 0; k < sizeof broken / sizeof *broken; k++) {
        const uint32_t nan_bits = 0x7fc00000u;

        for (i = 0; i < 4 * 64; i++)
            x[i] = 1.0f + (float)i;
        x[64 + 7] = broken[k];
        tti_quantize(codes, scales, x, TUTTI_F32, 4 * 64, 64, NULL);
        tti_dequantize(back, TUTTI_F32, codes, scales, 4 * 64, 64);
        for (i = 0; i < 4 * 64; i++)
            if (i / 64 == 1)
                assert_memory_equal(&back[i], &nan_bits, sizeof nan_bits);
            else
                assert_true(isfinite(back[i]));
    }
}

static void what_is_not_finite_makes_its_block_nan(void **state)
{
    (void)state;
    for_all_levels(check_broken);
}

static void check_tiny(void)
{
    static const float most[] = { 0.0f, -0.0f, 0x1p-149f, 0x1p-120f, 0x1p-119f, 0x1.fffffep127f };
    float              x[64], back[64], scale;
    int8_t             codes[64];
    size_t             k;
    int                i;

    for (k = 0; k < sizeof most / sizeof *most; k++) {
        for (i = 0; i < 64; i++)
            x[i] = i % 2 != 0 ? most[k] : -most[k] / 2;
        tti_quantize(codes, &scale, x, TUTTI_F32, 64, 64, NULL);
        tti_dequantize(back, TUTTI_F32, codes, &scale, 64, 64);
        for (i = 0; i < 64; i++)
            assert_true(most[k] < 0x1p-119f ? back[i] == 0.0f : fabsf(back[i] - x[i]) <= most[k] / 253);
    }
}

static void tiny_blocks_are_zeros_and_large_ones_fit(void **state)
{
    (void)state;
    for_all_levels(check_tiny);
}

/* ---- errors ---- */

static void check_errors(void)
{
    static float  x[COUNT], error[COUNT], before[COUNT], back[COUNT], scales[COUNT / 256 + 1];
    static int8_t codes[COUNT];
    int           i;

    for (i = 0; i < COUNT; i++) {
        x[i] = draw();
        before[i] = error[i] = draw() * 0.125f;
    }
    x[700] = NAN;
    tti_quantize(codes, scales, x, TUTTI_F32, COUNT, 256, error);
    tti_dequantize(back, TUTTI_F32, codes, scales, COUNT, 256);
    for (i = 0; i < COUNT; i++)
        if (i / 256 == 700 / 256)
            assert_true(error[i] == 0.0f && isnan(back[i]));
        else
            assert_true(same_bits(error[i], ((x[i] + before[i]) - back[i]) * 1.0f));
}

static void errors_are_what_was_left_out(void **state)
{
    (void)state;
    for_all_levels(check_errors);
}

/* ---- sums ---- */

/* Rank `own` has numbers, the others codes. */
static void check_sum(tutti_dtype dtype, int own, float by, bool with_error)
{
    static float   numbers[COUNT], kept[COUNT], x[RANKS][COUNT], sum[COUNT], error[COUNT], before[COUNT];
    static int8_t  codes[RANKS][COUNT], got[COUNT], want[COUNT];
    static float   scales[RANKS][COUNT / 128 + 1], got_scales[COUNT / 128 + 1];
    tti_quantized  in[RANKS];
    int            r, i, from, n;

    for (i = 0; i < COUNT; i++)
        before[i] = error[i] = draw() * 0.0625f;
    for (r = 0; r < RANKS; r++) {
        for (i = 0; i < COUNT; i++) {
            write_number(numbers, dtype, i, draw());
            x[r][i] = read_number(numbers, dtype, i);
            if (r == own && with_error)
                x[r][i] += error[i];
        }
        if (r != own) {
            tti_quantize(codes[r], scales[r], numbers, dtype, COUNT, 128, NULL);
            tti_dequantize(x[r], TUTTI_F32, codes[r], scales[r], COUNT, 128);
        }
        in[r] = (tti_quantized){ .codes = codes[r], .scales = scales[r] };
        if (r == own)
            in[r] = (tti_quantized){ .numbers = memcpy(kept, numbers, sizeof kept) };
    }
    for (i = 0; i < COUNT; i++) {
        for (sum[i] = x[0][i], r = 1; r < RANKS; r++)
            sum[i] += x[r][i];
        sum[i] /= by;
    }
    tti_quantize_sum(got, got_scales, in, RANKS, dtype, COUNT, 128, by, with_error ? error : NULL);
    for (from = 0; from < COUNT; from += n) {
        n = COUNT - from < 128 ? COUNT - from : 128;
        assert_true(same_bits(got_scales[from / 128], code_slowly(sum + from, n, want + from)));
        for (i = from; i < from + n; i++) {
            assert_int_equal(got[i], want[i]);
            assert_true(same_bits(error[i], with_error ? (sum[i] - (float)got[i] * got_scales[i / 128]) * by : before[i]));
        }
    }
}

static void check_sums(void)
{
    size_t d;
    int    own;

    for (d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (own = 0; own <= RANKS; own++) { /* RANKS: nobody */
            check_sum(dtypes[d], own, 1.0f, false);
            check_sum(dtypes[d], own, 3.0f, own < RANKS);
        }
}

static void sums_are_made_in_order_and_rounded_once(void **state)
{
    (void)state;
    for_all_levels(check_sums);
}

static void three_formats_are_taken(void **state)
{
    int dtype;

    (void)state;
    for (dtype = 0; dtype < TUTTI_DTYPE_COUNT; dtype++)
        assert_int_equal(tti_quantize_takes((tutti_dtype)dtype),
                         dtype == TUTTI_F32 || dtype == TUTTI_F16 || dtype == TUTTI_BF16);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_become_codes_and_come_back),
        cmocka_unit_test(what_is_not_finite_makes_its_block_nan),
        cmocka_unit_test(tiny_blocks_are_zeros_and_large_ones_fit),
        cmocka_unit_test(errors_are_what_was_left_out),
        cmocka_unit_test(sums_are_made_in_order_and_rounded_once),
        cmocka_unit_test(three_formats_are_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reduce_test.c
 * Goal    every operation on every dtype gives, bit by bit, what adding up one element after the
 *         other gives, for any number of inputs and elements, also in place.
 * Method  A reference that does one element at a time with a switch per family: integers in 64 bits
 *         cut to size, f16, bf16 and f8 through the scalar functions of base/half.h. All sets of
 *         instructions that this machine has are compared with it, so with each other. Inputs have
 *         infinities, NaN with payloads, zeros of both signs, subnormals and random bits among ordinary
 *         numbers, begin at addresses aligned to one element only, and a guard behind out must stay as
 *         it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <fenv.h>
#include <math.h>
#include <cmocka.h>
#include "base/half.h"
#include "kernel/kernel.h"
#include "kernel/level.h"

enum { COUNT_MAX = 2100, N_IN_MAX = 17, ELEMENT_MAX = 16, GUARD = 64, N_RANKS = 19 };

/* One element more than COUNT_MAX, so that a buffer can begin at the second. */
typedef struct buffer {
    _Alignas(64) unsigned char bytes[(COUNT_MAX + 1) * ELEMENT_MAX + GUARD];
} buffer;

static buffer inputs[N_IN_MAX], output;
static uint32_t random_state = 20240607;

static uint32_t draw(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

static int is_real(tutti_dtype dtype)
{
    return dtype == TUTTI_F32 || dtype == TUTTI_F64 || tti_widen_for(dtype) != NULL;
}

static int is_signed(tutti_dtype dtype)
{
    return dtype == TUTTI_I8 || dtype == TUTTI_I16 || dtype == TUTTI_I32 || dtype == TUTTI_I64;
}

static tutti_dtype component_of(tutti_dtype dtype)
{
    return dtype == TUTTI_C64 ? TUTTI_F32 : dtype == TUTTI_C128 ? TUTTI_F64 : dtype;
}

/* Reals are exchanged as double, which holds each of them exactly. */
static double load_real(const unsigned char *p, tutti_dtype dtype)
{
    uint16_t half = 0;
    float f32;
    double f64;

    memcpy(&half, p, tutti_dtype_size(dtype) == 2 ? sizeof half : 0);
    switch (dtype) {
    case TUTTI_F16: return (double)tti_f32_from_f16(half);
    case TUTTI_BF16: return (double)tti_f32_from_bf16(half);
    case TUTTI_F8E4M3FN: return (double)tti_f32_from_f8e4m3fn(*p);
    case TUTTI_F8E5M2: return (double)tti_f32_from_f8e5m2(*p);
    case TUTTI_F32: memcpy(&f32, p, sizeof f32); return (double)f32;
    default: memcpy(&f64, p, sizeof f64); return f64;
    }
}

static void store_real(unsigned char *p, double x, tutti_dtype dtype)
{
    const float f32 = (float)x;
    uint16_t half;

    switch (dtype) {
    case TUTTI_F16:
        half = tti_f16_from_f32(f32);
        memcpy(p, &half, sizeof half);
        break;
    case TUTTI_BF16:
        half = tti_bf16_from_f32(f32);
        memcpy(p, &half, sizeof half);
        break;
    case TUTTI_F8E4M3FN: *p = tti_f8e4m3fn_from_f32(f32); break;
    case TUTTI_F8E5M2: *p = tti_f8e5m2_from_f32(f32); break;
    case TUTTI_F32: memcpy(p, &f32, sizeof f32); break;
    default: memcpy(p, &x, sizeof x); break;
    }
}

static uint64_t load_int(const unsigned char *p, tutti_dtype dtype)
{
    const size_t size = tutti_dtype_size(dtype);
    uint64_t x = 0;

    for (size_t k = 0; k < size; k++)
        x |= (uint64_t)p[k] << (8 * k);
    if (is_signed(dtype) && size < 8 && (x >> (8 * size - 1)))
        x |= ~UINT64_C(0) << (8 * size);
    return x;
}

static uint64_t combine_ints(tutti_op_kind kind, int with_sign, uint64_t a, uint64_t b)
{
    const int less = with_sign ? (int64_t)a < (int64_t)b : a < b;

    switch (kind) {
    case TUTTI_OP_SUM: return a + b;
    case TUTTI_OP_PRODUCT: return a * b;
    case TUTTI_OP_MIN: return less ? a : b;
    case TUTTI_OP_MAX: return less ? b : a;
    case TUTTI_OP_BAND: return a & b;
    case TUTTI_OP_BOR: return a | b;
    default: return a ^ b;
    }
}

static uint64_t combine_bools(tutti_op_kind kind, uint64_t a, uint64_t b)
{
    switch (kind) {
    case TUTTI_OP_SUM:
    case TUTTI_OP_MAX:
    case TUTTI_OP_BOR: return a != 0 || b != 0;
    case TUTTI_OP_BXOR: return (a != 0) != (b != 0);
    default: return a != 0 && b != 0;
    }
}

/* In the precision the dtype computes in: f64 for f64, f32 for the others. */
static double combine_reals(tutti_op_kind kind, int in_f64, double a, double b)
{
    double wide;

    switch (kind) {
    case TUTTI_OP_MIN: return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
    case TUTTI_OP_MAX: return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
    case TUTTI_OP_PRODUCT: wide = in_f64 ? a * b : (double)((float)a * (float)b); break;
    default: wide = in_f64 ? a + b : (double)((float)a + (float)b); break;
    }
    return wide;
}

static void expect_real(unsigned char *want, const void *const *in, int n_in, int64_t at,
                        tutti_op_kind kind, tutti_dtype dtype)
{
    const int in_f64 = dtype == TUTTI_F64;
    double x = load_real((const unsigned char *)in[0] + at, dtype);

    for (int k = 1; k < n_in; k++)
        x = combine_reals(kind, in_f64, x, load_real((const unsigned char *)in[k] + at, dtype));
    if (kind == TUTTI_OP_AVG)
        x = in_f64 ? x / N_RANKS : (double)((float)x / (float)N_RANKS);
    store_real(want, isnan(x) ? NAN : x, dtype); /* one NaN for all */
}

static void expect_int(unsigned char *want, const void *const *in, int n_in, int64_t at,
                       tutti_op_kind kind, tutti_dtype dtype)
{
    uint64_t x = load_int((const unsigned char *)in[0] + at, dtype);

    if (dtype == TUTTI_BOOL)
        x = x != 0;
    for (int k = 1; k < n_in; k++) {
        const uint64_t y = load_int((const unsigned char *)in[k] + at, dtype);

        x = dtype == TUTTI_BOOL ? combine_bools(kind, x, y)
                                : combine_ints(kind, is_signed(dtype), x, y);
    }
    for (size_t k = 0; k < tutti_dtype_size(dtype); k++)
        want[k] = (unsigned char)(x >> (8 * k));
}

/* Random components: a twentieth of the reals are special, a twentieth any bits; bool bytes may be any. */
static void fill(void *data, int64_t components, tutti_dtype dtype)
{
    static const double special[] = { 0.0, -0.0, INFINITY, -INFINITY, NAN, 1e-40, -1e-7, 3e38 };
    const size_t size = tutti_dtype_size(dtype);
    unsigned char *p = data;

    for (int64_t i = 0; i < components; i++, p += size)
        if (!is_real(dtype) || draw() % 20 == 0)
            for (size_t k = 0; k < size; k++)
                p[k] = (unsigned char)(dtype == TUTTI_BOOL && draw() % 2 ? 0 : draw());
        else if (draw() % 20 == 0)
            store_real(p, special[draw() % 8], dtype);
        else
            store_real(p, ((double)draw() - 8388608.0) / 2097152.0, dtype);
}

static void check_component(const unsigned char *got, const unsigned char *want, tutti_op_kind kind,
                            tutti_dtype dtype, int n_in, int64_t count, int64_t i)
{
    if (memcmp(got, want, tutti_dtype_size(dtype)) == 0)
        return;
    fail_msg("%s of %d x %s, element %d of %d differs from the reference (%s)", tutti_op_name(kind),
             n_in, tutti_dtype_name(dtype), (int)i, (int)count, tti_level_name(tti_level_now()));
}

/* One call of the kernel, out apart from the inputs (alias < 0) or in place of inputs[alias]. */
static void check_call(tutti_op_kind kind, tutti_dtype dtype, int n_in, int64_t count, int alias)
{
    static buffer want;
    const size_t size = tutti_dtype_size(dtype);
    const tutti_dtype part = component_of(dtype);
    const size_t step = tutti_dtype_size(part);
    const int64_t components = count * (int64_t)(size / step);
    const void *in[N_IN_MAX];
    unsigned char *out = (alias < 0 ? output.bytes : inputs[alias].bytes) + size;

    for (int k = 0; k < n_in; k++)
        in[k] = inputs[k].bytes + size;
    if (alias >= 0)
        fill(out, components, part); /* the call before has overwritten it */
    for (int64_t i = 0; i < components; i++)
        (is_real(part) ? expect_real : expect_int)(want.bytes + (size_t)i * step, in, n_in,
                                                   i * (int64_t)step, kind, part);
    memset(out + (size_t)count * size, 0xa5, GUARD);

    tti_reduce(tti_reduce_kernel_for(kind, dtype), out, in, n_in, count, N_RANKS);

    for (int64_t i = 0; i < components; i++)
        check_component(out + (size_t)i * step, want.bytes + (size_t)i * step, kind, part, n_in,
                        count, i);
    for (int k = 0; k < GUARD; k++)
        assert_int_equal(out[(size_t)count * size + (size_t)k], 0xa5);
}

static void check_pair(tutti_op_kind kind, tutti_dtype dtype)
{
    static const int n_ins[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17 };
    static const int64_t counts[] = { 0, 1, 3, 7, 15, 31, 63, 64, 65, 127, 300 };
    const size_t size = tutti_dtype_size(dtype);
    const tutti_dtype part = component_of(dtype);

    for (int k = 0; k < N_IN_MAX; k++)
        fill(inputs[k].bytes + size, COUNT_MAX * (int64_t)(size / tutti_dtype_size(part)), part);
    for (size_t n = 0; n < sizeof n_ins / sizeof *n_ins; n++) {
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            check_call(kind, dtype, n_ins[n], counts[c], -1);
        check_call(kind, dtype, n_ins[n], 65, 0);
        check_call(kind, dtype, n_ins[n], COUNT_MAX, n_ins[n] / 2);
        check_call(kind, dtype, n_ins[n], COUNT_MAX, n_ins[n] - 1);
    }
}

static void check_every_pair(void)
{
    int defined = 0;

    for (int kind = 0; kind < TUTTI_OP_COUNT; kind++)
        for (int dtype = 0; dtype < TUTTI_DTYPE_COUNT; dtype++)
            if (tti_reduce_kernel_for((tutti_op_kind)kind, (tutti_dtype)dtype) != NULL) {
                check_pair((tutti_op_kind)kind, (tutti_dtype)dtype);
                defined++;
            }
    assert_int_equal(defined, 17 + 8 + 15 + 15 + 15 + 9 + 9 + 9 + 8);
}

static void every_op_on_every_dtype_by_all_instructions(void **state)
{
    const tti_level level = tti_level_now();

    (void)state;
    for (int l = 0; l < TTI_LEVEL_COUNT; l++)
        if (tti_level_works((tti_level)l)) {
            tti_level_use((tti_level)l);
            check_every_pair();
        }
    tti_level_use(level);
}

/* outs[1] is an input, the others are apart; all must have what one call of tti_reduce() gives. */
static void check_many_outs(tutti_op_kind kind, tutti_dtype dtype, int n_in, int64_t count,
                            int past)
{
    static buffer spare[2], want;
    const size_t size = tutti_dtype_size(dtype);
    const tti_reduce_kernel *kernel = tti_reduce_kernel_for(kind, dtype);
    void *outs[] = { spare[0].bytes + size, inputs[n_in - 1].bytes + size, spare[1].bytes };
    const void *in[N_IN_MAX];

    for (int k = 0; k < n_in; k++)
        in[k] = inputs[k].bytes + size;
    fill(inputs[n_in - 1].bytes + size,
         count * (int64_t)(size / tutti_dtype_size(component_of(dtype))), component_of(dtype));
    tti_reduce(kernel, want.bytes, in, n_in, count, N_RANKS);
    memset(spare, 0xa5, sizeof spare);
    (past ? tti_reduce_to_nt : tti_reduce_to)(kernel, outs, 3, in, n_in, count, N_RANKS);
    for (int m = 0; m < 3; m++)
        assert_memory_equal(outs[m], want.bytes, (size_t)count * size);
    for (int k = 0; k < GUARD; k++) {
        assert_int_equal(spare[0].bytes[size + (size_t)count * size + (size_t)k], 0xa5);
        assert_int_equal(spare[1].bytes[(size_t)count * size + (size_t)k], 0xa5);
    }
}

static void check_many_outputs(void)
{
    static const int n_ins[] = { 1, 2, 5, 8, 17 };
    static const int64_t counts[] = { 0, 1, 7, 65, 1000, COUNT_MAX - GUARD };

    for (int dtype = 0; dtype < TUTTI_DTYPE_COUNT; dtype++)
        for (int kind = 0; kind < TUTTI_OP_COUNT; kind++)
            for (size_t n = 0; n < sizeof n_ins / sizeof *n_ins; n++)
                for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
                    if (tti_reduce_kernel_for((tutti_op_kind)kind, (tutti_dtype)dtype) != NULL) {
                        check_many_outs((tutti_op_kind)kind, (tutti_dtype)dtype, n_ins[n],
                                        counts[c], 0);
                        check_many_outs((tutti_op_kind)kind, (tutti_dtype)dtype, n_ins[n],
                                        counts[c], 1);
                    }
}

static void many_outputs_get_what_one_gets(void **state)
{
    const tti_level level = tti_level_now();

    (void)state;
    for (int l = 0; l < TTI_LEVEL_COUNT; l++)
        if (tti_level_works((tti_level)l)) {
            tti_level_use((tti_level)l);
            check_many_outputs();
        }
    tti_level_use(level);
}

static void kernels_exist_where_op_check_allows(void **state)
{
    (void)state;
    for (int kind = 0; kind < TUTTI_OP_COUNT; kind++)
        for (int dtype = 0; dtype < TUTTI_DTYPE_COUNT; dtype++) {
            const tutti_op op = { .kind = (tutti_op_kind)kind };

            assert_int_equal(tti_reduce_kernel_for(op.kind, (tutti_dtype)dtype) != NULL,
                             tutti_op_check(op, (tutti_dtype)dtype) == TUTTI_OK);
        }
    assert_null(tti_reduce_kernel_for(TUTTI_OP_COUNT, TUTTI_F32));
    assert_null(tti_reduce_kernel_for(TUTTI_OP_SUM, TUTTI_DTYPE_COUNT));
}

/* The first number, then the same addend again and again: n_in inputs of one element. */
static double sum_of(tutti_op_kind kind, tutti_dtype dtype, double first, double addend, int n_in)
{
    _Alignas(8) unsigned char cells[N_IN_MAX][8], out[8];
    const void *in[N_IN_MAX];

    for (int k = 0; k < n_in; k++) {
        store_real(cells[k], k == 0 ? first : addend, dtype);
        in[k] = cells[k];
    }
    tti_reduce(tti_reduce_kernel_for(kind, dtype), out, in, n_in, 1, n_in);
    return load_real(out, dtype);
}

/* Each addend alone is half a step, a tie that goes back to the even neighbour; two are a step. */
static void small_formats_round_once(void **state)
{
    (void)state;
    assert_true(sum_of(TUTTI_OP_SUM, TUTTI_F16, 2048, 1, 3) == 2050);
    assert_true(sum_of(TUTTI_OP_SUM, TUTTI_F16, 2048, 1, 9) == 2056);
    assert_true(sum_of(TUTTI_OP_SUM, TUTTI_F16, 2048, 1, 17) == 2064);
    assert_true(sum_of(TUTTI_OP_SUM, TUTTI_BF16, 256, 1, 3) == 258);
    assert_true(sum_of(TUTTI_OP_SUM, TUTTI_F8E4M3FN, 16, 1, 3) == 18);
    assert_true(sum_of(TUTTI_OP_SUM, TUTTI_F8E5M2, 8, 1, 3) == 10);
    assert_true(sum_of(TUTTI_OP_AVG, TUTTI_F16, 2048, 1, 3) == 683.5); /* 682.5 by steps */
    assert_true(sum_of(TUTTI_OP_SUM, TUTTI_F16, 65504, 65504, 2) == INFINITY);
    assert_true(isnan(sum_of(TUTTI_OP_SUM, TUTTI_F8E4M3FN, 448, 448, 2)));
    assert_true(sum_of(TUTTI_OP_AVG, TUTTI_F8E4M3FN, 448, 448, 2) == 448); /* f32 holds the sum */
}

/* 1e16 + 1 + 1 is 1e16 from the left, 1e16 + 2 from the right. */
static void sums_run_from_left_to_right(void **state)
{
    (void)state;
    for (int n_in = 2; n_in <= N_IN_MAX; n_in++)
        assert_true(sum_of(TUTTI_OP_SUM, TUTTI_F64, 1e16, 1, n_in) == 1e16);
    assert_true(sum_of(TUTTI_OP_AVG, TUTTI_F32, 1, 0, 3) == (double)(1.0f / 3.0f));
}

static void nan_of_any_input_wins(void **state)
{
    static const tutti_dtype dtypes[] = { TUTTI_F16, TUTTI_BF16,     TUTTI_F32,
                                          TUTTI_F64, TUTTI_F8E4M3FN, TUTTI_F8E5M2 };
    _Alignas(8) unsigned char cells[9][8], out[8];
    const void *in[9];

    (void)state;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (int where = 0; where < 9; where++) {
            for (int k = 0; k < 9; k++) {
                store_real(cells[k], k == where ? NAN : k - 4.0, dtypes[d]);
                in[k] = cells[k];
            }
            tti_reduce(tti_reduce_kernel_for(TUTTI_OP_MIN, dtypes[d]), out, in, 9, 1, 9);
            assert_true(isnan(load_real(out, dtypes[d])));
            tti_reduce(tti_reduce_kernel_for(TUTTI_OP_MAX, dtypes[d]), out, in, 9, 1, 9);
            assert_true(isnan(load_real(out, dtypes[d])));
        }
}

static void integers_wrap(void **state)
{
    const int16_t a = INT16_MAX, b = 1;
    const uint16_t c = UINT16_MAX;
    const int64_t d = INT64_MIN;
    const void *up[] = { &a, &b }, *squared[] = { &c, &c }, *twice[] = { &d, &d };
    int16_t low;
    uint16_t one;
    int64_t zero;

    (void)state;
    tti_reduce(tti_reduce_kernel_for(TUTTI_OP_SUM, TUTTI_I16), &low, up, 2, 1, 2);
    assert_int_equal(low, INT16_MIN);
    tti_reduce(tti_reduce_kernel_for(TUTTI_OP_PRODUCT, TUTTI_U16), &one, squared, 2, 1, 2);
    assert_int_equal(one, 1);
    tti_reduce(tti_reduce_kernel_for(TUTTI_OP_SUM, TUTTI_I64), &zero, twice, 2, 1, 2);
    assert_true(zero == 0);
}

static void the_callers_rounding_mode_does_not_matter(void **state)
{
    const int before = fegetround();
    double sum;
    double third;
    int during;

    (void)state;
    assert_int_equal(fesetround(FE_UPWARD), 0);
    sum = sum_of(TUTTI_OP_SUM, TUTTI_F32, 1, 0x1p-30, 2);
    third = sum_of(TUTTI_OP_AVG, TUTTI_F64, 1, 0, 3);
    during = fegetround();
    fesetround(before);
    assert_int_equal(during, FE_UPWARD); /* it is given back */
    assert_true(sum == 1);
    assert_true(third == 0x1.5555555555555p-2);
}

#if defined(__x86_64__)
static void subnormals_survive_a_caller_that_flushes_them(void **state)
{
    const unsigned before = __builtin_ia32_stmxcsr();
    const unsigned flushing = before | 0x8040u;
    const float tiny = 0x1p-140f;
    const void *in[] = { &tiny, &tiny };
    float sum;
    unsigned after;

    (void)state;
    __builtin_ia32_ldmxcsr(flushing);
    tti_reduce(tti_reduce_kernel_for(TUTTI_OP_SUM, TUTTI_F32), &sum, in, 2, 1, 2);
    after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before);
    assert_int_equal(after & ~0x3fu, flushing & ~0x3fu);
    assert_true(sum == 0x1p-139f);
}
#endif

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op_on_every_dtype_by_all_instructions),
        cmocka_unit_test(many_outputs_get_what_one_gets),
        cmocka_unit_test(kernels_exist_where_op_check_allows),
        cmocka_unit_test(small_formats_round_once),
        cmocka_unit_test(sums_run_from_left_to_right),
        cmocka_unit_test(nan_of_any_input_wins),
        cmocka_unit_test(integers_wrap),
        cmocka_unit_test(the_callers_rounding_mode_does_not_matter),
#if defined(__x86_64__)
        cmocka_unit_test(subnormals_survive_a_caller_that_flushes_them),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

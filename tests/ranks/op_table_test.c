/* SPDX-License-Identifier: BSD-3-Clause
 *
 * op_table_test.c
 * Goal    every pair of dtype and op of the table in tutti/dtype.h gives what a plain loop in rank order
 *         gives, for the blocking reductions of every algorithm's size; every other pair is refused by every
 *         reduction before anything is sent; every dtype, complex ones included, can be moved.
 * Method  the table stands here once more, in words of the specification: integers of every width wrap, bool
 *         is 0 or 1 whatever non-zero bytes stand for true, halves and f8 add in f32 and are rounded once, a
 *         NaN of any rank wins in MIN and MAX. Inputs are random bits, so that NaN, infinities and subnormals
 *         are among them; reals are compared as numbers, through a decoder of their bits. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

enum { RANKS = 3, MAX_BYTES = 16 };

typedef enum family { BOOLS, UNSIGNED, SIGNED, REALS, COMPLEX } family;

static family family_of(tutti_dtype dtype)
{
    switch (dtype) {
    case TUTTI_BOOL: return BOOLS;
    case TUTTI_U8:
    case TUTTI_U16:
    case TUTTI_U32:
    case TUTTI_U64: return UNSIGNED;
    case TUTTI_I8:
    case TUTTI_I16:
    case TUTTI_I32:
    case TUTTI_I64: return SIGNED;
    case TUTTI_C64:
    case TUTTI_C128: return COMPLEX;
    default: return REALS;
    }
}

static bool is_defined(tutti_op_kind op, tutti_dtype dtype)
{
    const family of = family_of(dtype);

    switch (op) {
    case TUTTI_OP_SUM: return true;
    case TUTTI_OP_AVG:
    case TUTTI_OP_PREMUL_SUM: return of == REALS || of == COMPLEX;
    case TUTTI_OP_BAND:
    case TUTTI_OP_BOR:
    case TUTTI_OP_BXOR: return of != REALS && of != COMPLEX;
    default: return of != COMPLEX;
    }
}

/* ---- inputs ---- */

static uint32_t mix(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}

static uint64_t bits_of(int64_t i, int rank)
{
    const uint32_t seed = (uint32_t)i * 31u + (uint32_t)rank * 1000003u;

    return (uint64_t)mix(seed) << 32 | mix(seed + 77u);
}

/* Wide reals: mostly numbers of all sizes, every 16th one NaN or infinite. */
static double wide_real(int64_t i, int rank)
{
    const uint64_t bits = bits_of(i, rank);
    const double   number = ((double)(bits >> 40) - 8388608.0) * ldexp(1.0, (int)(bits % 41) - 30);

    if ((i + 5 * rank) % 16 == 3)
        return bits % 2 ? NAN : bits % 4 ? INFINITY : -INFINITY;
    return number;
}

static void put(void *data, tutti_dtype dtype, int64_t i, int rank)
{
    const size_t   size = tutti_dtype_size(dtype);
    const uint64_t bits = bits_of(i, rank);
    float         *f = data;
    double        *d = data;

    switch (dtype) {
    case TUTTI_F32: f[i] = (float)wide_real(i, rank); break;
    case TUTTI_F64: d[i] = wide_real(i, rank); break;
    case TUTTI_C64:
        f[2 * i] = (float)wide_real(2 * i, rank);
        f[2 * i + 1] = (float)wide_real(2 * i + 1, rank);
        break;
    case TUTTI_C128:
        d[2 * i] = wide_real(2 * i, rank);
        d[2 * i + 1] = wide_real(2 * i + 1, rank);
        break;
    case TUTTI_BOOL: ((uint8_t *)data)[i] = bits % 3 ? (uint8_t)(bits >> 8) : 0; break;
    default: memcpy((char *)data + (size_t)i * size, &bits, size);
    }
}

/* ---- numbers of formats below f32 ---- */

typedef struct format {
    int    exponent_bits;
    int    mantissa_bits;
    bool   has_infinity;
    double largest;
} format;

static format format_of(tutti_dtype dtype)
{
    switch (dtype) {
    case TUTTI_F16: return (format){ 5, 10, true, 65504.0 };
    case TUTTI_BF16: return (format){ 8, 7, true, ldexp(255.0, 120) };
    case TUTTI_F8E4M3FN: return (format){ 4, 3, false, 448.0 };
    default: return (format){ 5, 2, true, 57344.0 };
    }
}

static double decode(tutti_dtype dtype, uint32_t bits)
{
    const format f = format_of(dtype);
    const int    all = (1 << f.exponent_bits) - 1, bias = all >> 1;
    const int    mantissa = (int)(bits & ((1u << f.mantissa_bits) - 1));
    const int    exponent = (int)(bits >> f.mantissa_bits) & all;
    const double sign = bits >> (f.exponent_bits + f.mantissa_bits) & 1 ? -1.0 : 1.0;

    if (exponent == all && f.has_infinity)
        return mantissa ? NAN : sign * INFINITY;
    if (exponent == all && mantissa == (1 << f.mantissa_bits) - 1)
        return NAN;
    if (exponent == 0)
        return sign * ldexp(mantissa, 1 - bias - f.mantissa_bits);
    return sign * ldexp((1 << f.mantissa_bits) + mantissa, exponent - bias - f.mantissa_bits);
}

/* x as the format has it: to nearest, ties to even. */
static double rounded(tutti_dtype dtype, double x)
{
    const format f = format_of(dtype);
    const int    least = 2 - (1 << (f.exponent_bits - 1)); /* exponent of the smallest normal number */
    int          exponent;
    double       unit, r;

    if (dtype == TUTTI_F64 || dtype == TUTTI_C128 || isnan(x) || isinf(x))
        return isinf(x) && dtype == TUTTI_F8E4M3FN ? NAN : x;
    if (dtype == TUTTI_F32 || dtype == TUTTI_C64)
        return (float)x;
    frexp(x, &exponent);
    exponent = exponent - 1 < least ? least : exponent - 1;
    unit = ldexp(1.0, exponent - f.mantissa_bits);
    r = nearbyint(x / unit) * unit;
    if (fabs(r) > f.largest)
        return f.has_infinity ? copysign(INFINITY, r) : NAN;
    return r;
}

/* Component number i, as a number. */
static double real_at(const void *data, tutti_dtype dtype, int64_t i)
{
    switch (dtype) {
    case TUTTI_F32:
    case TUTTI_C64: return ((const float *)data)[i];
    case TUTTI_F64:
    case TUTTI_C128: return ((const double *)data)[i];
    case TUTTI_F16:
    case TUTTI_BF16: return decode(dtype, ((const uint16_t *)data)[i]);
    default: return decode(dtype, ((const uint8_t *)data)[i]);
    }
}

/* ---- the plain loops ---- */

static bool is_wide(tutti_dtype dtype)
{
    return dtype == TUTTI_F64 || dtype == TUTTI_C128;
}

/* One step, rounded to the type that adds: f64 for f64, f32 for all others. */
static double step(tutti_op_kind op, tutti_dtype dtype, double a, double b)
{
    double r;

    if ((op == TUTTI_OP_MIN || op == TUTTI_OP_MAX) && (isnan(a) || isnan(b)))
        return NAN;
    if (op == TUTTI_OP_MIN)
        return b < a ? b : a;
    if (op == TUTTI_OP_MAX)
        return b > a ? b : a;
    r = op == TUTTI_OP_PRODUCT ? a * b : a + b; /* of two f32 a double has it exactly enough to round once */
    return is_wide(dtype) ? r : (float)r;
}

static double factor_of(int rank)
{
    return 0.75 + rank;
}

static double expect_real(tutti_op_kind op, tutti_dtype dtype, void *const *inputs, int n, int64_t i)
{
    double sum = 0.0;
    int    r;

    for (r = 0; r < n; r++) {
        double x = real_at(inputs[r], dtype, i);

        if (op == TUTTI_OP_PREMUL_SUM)
            x = rounded(dtype, is_wide(dtype) ? x * factor_of(r) : (float)(x * factor_of(r)));
        sum = r == 0 ? x : step(op, dtype, sum, x);
    }
    if (op == TUTTI_OP_AVG)
        sum = is_wide(dtype) ? sum / n : (float)(sum / n);
    return rounded(dtype, sum);
}

static uint64_t whole_at(const void *data, size_t size, int64_t i)
{
    uint64_t x = 0;

    memcpy(&x, (const char *)data + (size_t)i * size, size);
    return x;
}

static int64_t extended(uint64_t x, size_t size)
{
    const int shift = 64 - 8 * (int)size;

    return (int64_t)(x << shift) >> shift;
}

static bool is_less(uint64_t a, uint64_t b, size_t size, bool is_signed)
{
    return is_signed ? extended(a, size) < extended(b, size) : a < b;
}

static uint64_t whole_step(tutti_op_kind op, uint64_t a, uint64_t b, size_t size, bool is_signed)
{
    switch (op) {
    case TUTTI_OP_SUM: return a + b;
    case TUTTI_OP_PRODUCT: return a * b;
    case TUTTI_OP_MIN: return is_less(b, a, size, is_signed) ? b : a;
    case TUTTI_OP_MAX: return is_less(a, b, size, is_signed) ? b : a;
    case TUTTI_OP_BAND: return a & b;
    case TUTTI_OP_BOR: return a | b;
    default: return a ^ b;
    }
}

static uint64_t bool_step(tutti_op_kind op, uint64_t a, uint64_t b)
{
    switch (op) {
    case TUTTI_OP_PRODUCT:
    case TUTTI_OP_MIN:
    case TUTTI_OP_BAND: return a & b;
    case TUTTI_OP_BXOR: return a ^ b;
    default: return a | b;
    }
}

static uint64_t expect_whole(tutti_op_kind op, tutti_dtype dtype, void *const *inputs, int n, int64_t i)
{
    const size_t   size = tutti_dtype_size(dtype);
    const uint64_t mask = size == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * size) - 1;
    const bool     bools = dtype == TUTTI_BOOL;
    uint64_t       all = 0;
    int            r;

    for (r = 0; r < n; r++) {
        uint64_t x = whole_at(inputs[r], size, i);

        x = bools ? x != 0 : x;
        if (r == 0)
            all = x;
        else
            all = bools ? bool_step(op, all, x) : whole_step(op, all, x, size, family_of(dtype) == SIGNED) & mask;
    }
    return all;
}

static void check(tutti_op_kind op, tutti_dtype dtype, void *const *inputs, int n, const void *got, int64_t count)
{
    const bool    real = family_of(dtype) == REALS || family_of(dtype) == COMPLEX;
    const int64_t units = family_of(dtype) == COMPLEX ? 2 * count : count;
    int64_t       i;

    for (i = 0; i < units; i++) {
        const double   want = real ? expect_real(op, dtype, inputs, n, i) : 0.0;
        const double   have = real ? real_at(got, dtype, i) : 0.0;
        const uint64_t want_bits = real ? 0 : expect_whole(op, dtype, inputs, n, i);
        const uint64_t have_bits = real ? 0 : whole_at(got, tutti_dtype_size(dtype), i);
        const bool     same = isnan(want) ? isnan(have) : !(have < want) && !(have > want) && !isnan(have);

        if (!same || want_bits != have_bits)
            fail_msg("%s of %s, %d ranks, element %lld: %.17g (%llx), not %.17g (%llx)", tutti_op_name(op),
                     tutti_dtype_name(dtype), n, (long long)i, have, (unsigned long long)have_bits, want,
                     (unsigned long long)want_bits);
    }
}

/* ---- the table ---- */

typedef struct room {
    void *inputs[RANKS];
    void *mine;
    void *flat;
} room;

static void reduce_every_way(tt_ctx *t, const room *m, tutti_op op, tutti_dtype dtype, int64_t count)
{
    const size_t bytes = (size_t)count * tutti_dtype_size(dtype);
    tutti_span   mine = tutti_span_of(m->mine, count, dtype);
    int          r;

    memcpy(m->mine, m->inputs[t->rank], bytes);
    OK(tutti_all_reduce(mine, op, t->group));
    check(op.kind, dtype, m->inputs, t->size, m->mine, count);
    memcpy(m->mine, m->inputs[t->rank], bytes);
    OK(tutti_reduce(mine, t->size - 1, op, t->group));
    if (t->rank == t->size - 1)
        check(op.kind, dtype, m->inputs, t->size, m->mine, count);
    else
        assert_memory_equal(m->mine, m->inputs[t->rank], bytes); /* only read */
    for (r = 0; r < t->size; r++)
        memcpy((char *)m->flat + (size_t)r * bytes, m->inputs[t->rank], bytes);
    OK(tutti_reduce_scatter_tensor(mine, tutti_span_of(m->flat, count * t->size, dtype), op, t->group));
    check(op.kind, dtype, m->inputs, t->size, m->mine, count);
}

static void refuse_every_way(tt_ctx *t, const room *m, tutti_op op, tutti_dtype dtype)
{
    tutti_span  one = tutti_span_of(m->mine, 1, dtype), all = tutti_span_of(m->flat, t->size, dtype);
    tutti_work *work = NULL;

    assert_int_equal(tutti_op_check(op, dtype), TUTTI_E_ARG);
    assert_int_equal(tutti_all_reduce(one, op, t->group), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), tutti_op_name(op.kind)));
    assert_non_null(strstr(tutti_last_error(), tutti_dtype_name(dtype)));
    assert_int_equal(tutti_all_reduce_async(one, op, t->group, &work), TUTTI_E_ARG);
    assert_int_equal(tutti_reduce(one, 0, op, t->group), TUTTI_E_ARG);
    assert_int_equal(tutti_reduce_scatter_tensor(one, all, op, t->group), TUTTI_E_ARG);
    assert_int_equal(tutti_all_reduce_coalesced(&one, 1, op, t->group), TUTTI_E_ARG);
    assert_null(work);
}

static room make_room(tt_ctx *t, int64_t count)
{
    const size_t bytes = (size_t)count * MAX_BYTES;
    room         m;
    int          r;

    for (r = 0; r < t->size; r++)
        m.inputs[r] = tt_alloc(t, bytes);
    m.mine = tt_alloc(t, bytes);
    m.flat = tt_alloc(t, bytes * (size_t)t->size);
    return m;
}

static void every_pair(tt_ctx *t)
{
    static const int64_t counts[] = { 67, 9001 };
    int                  c, dtype, kind, r;
    int64_t              i;

    for (c = 0; c < 2; c++) {
        const room m = make_room(t, counts[c]);

        for (dtype = 0; dtype < TUTTI_DTYPE_COUNT; dtype++) {
            for (r = 0; r < t->size; r++)
                for (i = 0; i < counts[c]; i++)
                    put(m.inputs[r], (tutti_dtype)dtype, i, r);
            for (kind = 0; kind < TUTTI_OP_COUNT; kind++) {
                const tutti_op op = { (tutti_op_kind)kind, factor_of(t->rank) };

                if (is_defined(op.kind, (tutti_dtype)dtype))
                    reduce_every_way(t, &m, op, (tutti_dtype)dtype, counts[c]);
                else
                    refuse_every_way(t, &m, op, (tutti_dtype)dtype);
            }
        }
    }
    OK(tutti_barrier(t->group)); /* what was refused has sent nothing */
}

/* Bits of every dtype arrive as they are: payloads of NaN, bytes that stand for true. */
static void every_dtype_moves(tt_ctx *t)
{
    enum { COUNT = 5003 };
    const room m = make_room(t, COUNT);
    int        dtype, r;
    int64_t    i;

    for (dtype = 0; dtype < TUTTI_DTYPE_COUNT; dtype++) {
        const size_t     bytes = COUNT * tutti_dtype_size((tutti_dtype)dtype);
        const tutti_span mine = tutti_span_of(m.mine, COUNT, (tutti_dtype)dtype);
        const tutti_span flat = tutti_span_of(m.flat, COUNT * t->size, (tutti_dtype)dtype);

        for (r = 0; r < t->size; r++)
            for (i = 0; i < (int64_t)bytes; i++)
                ((uint8_t *)m.inputs[r])[i] = (uint8_t)bits_of(i, r);
        memcpy(m.mine, m.inputs[t->rank], bytes);
        OK(tutti_all_gather_into_tensor(flat, mine, t->group));
        for (r = 0; r < t->size; r++)
            assert_memory_equal((char *)m.flat + (size_t)r * bytes, m.inputs[r], bytes);
        OK(tutti_broadcast(mine, 1, t->group));
        assert_memory_equal(m.mine, m.inputs[1], bytes);
    }
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(every_pair, .ranks = 2, .transports = "shm,tcp", .limit_ms = 120000),
        TT_TEST(every_pair, .ranks = 3, .transports = "shm,tcp,threads", .limit_ms = 120000),
        TT_TEST(every_dtype_moves, .ranks = 3, .transports = "shm,tcp", .limit_ms = 60000),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}

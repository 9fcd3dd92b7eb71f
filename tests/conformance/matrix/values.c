/* SPDX-License-Identifier: BSD-3-Clause */
#include "values.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

_Static_assert(FLT_EVAL_METHOD == 0, "the reference rounds every float to float");

/* A format below f32: fields, and the code above which there is no number. */
typedef struct small_format {
    int      mantissa_bits, bias;
    uint32_t sign;     /* bit */
    uint32_t overflow; /* the code that too large a number becomes */
    uint32_t nan;
} small_format;

static const small_format formats[TUTTI_DTYPE_COUNT] = {
    [TUTTI_F16] = { 10, 15, 0x8000, 0x7c00, 0x7e00 },
    [TUTTI_BF16] = { 7, 127, 0x8000, 0x7f80, 0x7fc0 },
    [TUTTI_F8E4M3FN] = { 3, 7, 0x80, 0x7f, 0x7f },
    [TUTTI_F8E5M2] = { 2, 15, 0x80, 0x7c, 0x7f },
};

/* Written once by tt_values_init(), before any other thread; only read after. */
static float table_f16[65536], table_bf16[65536], table_e4m3[256], table_e5m2[256];

static bool is_small(tutti_dtype dtype)
{
    return formats[dtype].sign != 0;
}

uint64_t tt_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t tt_mix_text(uint64_t seed, const char *text)
{
    for (; *text != '\0'; text++)
        seed = tt_mix(seed ^ (unsigned char)*text);
    return tt_mix(seed);
}

uint64_t tt_mix_bytes(uint64_t seed, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    size_t               i;

    for (i = 0; i < bytes; i++)
        seed = seed * 0x100000001b3u + at[i];
    return seed;
}

/* ---- formats below f32 -------------------------------------------------------------------------- */

static float decode(const small_format *f, uint32_t code)
{
    const uint32_t body = code & (f->sign - 1);
    const int      field = (int)(body >> f->mantissa_bits);
    const uint32_t fraction = body & ((1u << f->mantissa_bits) - 1);
    const uint32_t one = 1u << f->mantissa_bits;
    double         x;

    if (body > f->overflow || body == f->nan)
        return NAN;
    if (body == f->overflow)
        x = INFINITY;
    else if (field == 0)
        x = ldexp(fraction, 1 - f->bias - f->mantissa_bits);
    else
        x = ldexp(one + fraction, field - f->bias - f->mantissa_bits);
    return (float)((code & f->sign) != 0 ? -x : x);
}

/* 2 to the power of e, as the bits of a double. */
static double power(int e)
{
    const uint64_t bits = (uint64_t)(1023 + e) << 52;
    double         x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* How many steps of the format's grid, to nearest, ties to even; counted from the code of the smallest
 * number with this exponent, so that a carry goes where it belongs. */
static uint32_t encode(const small_format *f, float x)
{
    const int e_min = 1 - f->bias;
    uint32_t  bits, sign, code;
    int       e;

    memcpy(&bits, &x, sizeof bits);
    sign = (bits >> 31) != 0 ? f->sign : 0;
    if (x != x)
        return sign | f->nan;
    e = (int)((bits >> 23) & 0xff) - 127;
    if (e == 128)
        return sign | f->overflow;
    if (e < e_min)
        e = e_min;
    code = ((uint32_t)(e - e_min) << f->mantissa_bits) +
           (uint32_t)rint(fabs((double)x) * power(f->mantissa_bits - e));
    return sign | (code > f->overflow ? f->overflow : code);
}

uint32_t tt_small_code(tutti_dtype dtype, float x)
{
    return encode(&formats[dtype], x);
}

float tt_small_value(tutti_dtype dtype, uint32_t code)
{
    switch (dtype) {
    case TUTTI_F16: return table_f16[code];
    case TUTTI_BF16: return table_bf16[code];
    case TUTTI_F8E4M3FN: return table_e4m3[code];
    default: return table_e5m2[code];
    }
}

void tt_values_init(void)
{
    uint32_t code;

    for (code = 0; code < 65536; code++) {
        table_f16[code] = decode(&formats[TUTTI_F16], code);
        table_bf16[code] = decode(&formats[TUTTI_BF16], code);
    }
    for (code = 0; code < 256; code++) {
        table_e4m3[code] = decode(&formats[TUTTI_F8E4M3FN], code);
        table_e5m2[code] = decode(&formats[TUTTI_F8E5M2], code);
    }
}

/* ---- elements ----------------------------------------------------------------------------------- */

static const uint32_t odd_f32[] = { 0x7fc00000, 0x7f800000, 0x00000000, 0x00000001,
                                    0x7f7fffff, 0x3f800000, 0x00800000, 0x007fffff };
static const uint64_t odd_f64[] = { 0x7ff8000000000000, 0x7ff0000000000000, 0,
                                    1,                  0x7fefffffffffffff, 0x3ff0000000000000,
                                    0x0010000000000000, 0x000fffffffffffff };

static uint32_t f32_of(uint64_t h)
{
    const uint32_t sign = (uint32_t)(h >> 63) << 31;

    if ((h & 0xff) == 0)
        return sign | odd_f32[(h >> 8) & 7];
    return sign | (112u + (uint32_t)((h >> 32) & 31)) << 23 | (uint32_t)((h >> 9) & 0x7fffff);
}

static uint64_t f64_of(uint64_t h)
{
    const uint64_t sign = h >> 63 << 63;

    if ((h & 0xff) == 0)
        return sign | odd_f64[(h >> 8) & 7];
    return sign | (1008 + ((h >> 58) & 31)) << 52 | (tt_mix(h) >> 12);
}

/* Every exponent; those of NaN and infinity rarely. */
static uint16_t f16_of(uint64_t h)
{
    const uint16_t code = (uint16_t)(h >> 16);

    return (code & 0x7c00) == 0x7c00 && (h & 7) != 0 ? code ^ 0x4000 : code;
}

static uint8_t bool_of(uint64_t h, int64_t i)
{
    const bool yes = i % 2 == 0 ? (h & 1) != 0 : (h & 15) != 0; /* for "or", and for "and" */

    return !yes ? 0 : (h & 0xf00) == 0 ? (uint8_t)(h >> 32) | 1 : 1;
}

static uint64_t draw(uint64_t seed, int64_t i)
{
    return tt_mix(seed + (uint64_t)i * 0xd1342543de82ef95u);
}

#define EACH(type, expression)                                                                         \
    do {                                                                                               \
        type *to = out;                                                                                \
        for (i = 0; i < n; i++) {                                                                      \
            const uint64_t h = draw(seed, first + i);                                                  \
            to[i] = (type)(expression);                                                                \
        }                                                                                              \
    } while (0)

void tt_elements(void *out, tutti_dtype dtype, uint64_t seed, int64_t first, int64_t n)
{
    uint64_t *pairs = out;
    int64_t   i;

    switch (dtype) {
    case TUTTI_BOOL: EACH(uint8_t, bool_of(h, first + i)); break;
    case TUTTI_U8:
    case TUTTI_I8:
    case TUTTI_F8E4M3FN:
    case TUTTI_F8E5M2: EACH(uint8_t, h >> 24); break;
    case TUTTI_U16:
    case TUTTI_I16: EACH(uint16_t, h >> 24); break;
    case TUTTI_U32:
    case TUTTI_I32: EACH(uint32_t, h >> 24); break;
    case TUTTI_U64:
    case TUTTI_I64: EACH(uint64_t, h); break;
    case TUTTI_F16: EACH(uint16_t, f16_of(h)); break;
    case TUTTI_BF16: EACH(uint16_t, f32_of(h) >> 16); break;
    case TUTTI_F32: EACH(uint32_t, f32_of(h)); break;
    case TUTTI_F64: EACH(uint64_t, f64_of(h)); break;
    case TUTTI_C64: EACH(uint64_t, (uint64_t)f32_of(h) << 32 | f32_of(tt_mix(h))); break;
    case TUTTI_C128:
        for (i = 0; i < n; i++) {
            pairs[2 * i] = f64_of(draw(seed, first + i));
            pairs[2 * i + 1] = f64_of(draw(~seed, first + i));
        }
        break;
    case TUTTI_DTYPE_COUNT: break;
    }
}

/* ---- the reference ------------------------------------------------------------------------------ */

static bool is_signed(tutti_dtype dtype)
{
    return dtype == TUTTI_I8 || dtype == TUTTI_I16 || dtype == TUTTI_I32 || dtype == TUTTI_I64;
}

/* A whole number, its sign spread over all 64 bits; of a bool, whether it is true. */
static uint64_t whole(const void *row, tutti_dtype dtype, int64_t i)
{
    switch (dtype) {
    case TUTTI_BOOL: return ((const uint8_t *)row)[i] != 0;
    case TUTTI_U8: return ((const uint8_t *)row)[i];
    case TUTTI_I8: return (uint64_t)((const int8_t *)row)[i];
    case TUTTI_U16: return ((const uint16_t *)row)[i];
    case TUTTI_I16: return (uint64_t)((const int16_t *)row)[i];
    case TUTTI_U32: return ((const uint32_t *)row)[i];
    case TUTTI_I32: return (uint64_t)((const int32_t *)row)[i];
    default: return ((const uint64_t *)row)[i];
    }
}

static void put_whole(void *out, tutti_dtype dtype, int64_t i, uint64_t x)
{
    switch (tutti_dtype_size(dtype)) {
    case 1: ((uint8_t *)out)[i] = (uint8_t)x; break;
    case 2: ((uint16_t *)out)[i] = (uint16_t)x; break;
    case 4: ((uint32_t *)out)[i] = (uint32_t)x; break;
    default: ((uint64_t *)out)[i] = x; break;
    }
}

static uint64_t combine_whole(tutti_op_kind op, bool with_sign, bool truth, uint64_t a, uint64_t b)
{
    const bool less = with_sign ? (int64_t)a < (int64_t)b : a < b;

    switch (op) {
    case TUTTI_OP_SUM: return truth ? a | b : a + b;
    case TUTTI_OP_PRODUCT: return a * b;
    case TUTTI_OP_MIN: return less ? a : b;
    case TUTTI_OP_MAX: return less ? b : a;
    case TUTTI_OP_BAND: return a & b;
    case TUTTI_OP_BOR: return a | b;
    default: return a ^ b;
    }
}

static double combine_real(tutti_op_kind op, double a, double b)
{
    switch (op) {
    case TUTTI_OP_PRODUCT: return a * b;
    case TUTTI_OP_MIN: return a != a || a < b ? a : b;
    case TUTTI_OP_MAX: return a != a || a > b ? a : b;
    default: return a + b;
    }
}

/* A component as f32, multiplied by its rank's factor where the operation says so: as the dtype has it. */
static float real_f32(const void *row, tutti_dtype dtype, tutti_op_kind op, double factor, int64_t i)
{
    float x;

    if (!is_small(dtype)) {
        x = ((const float *)row)[i];
        return op == TUTTI_OP_PREMUL_SUM ? x * (float)factor : x;
    }
    x = tt_small_value(dtype, tutti_dtype_size(dtype) == 1 ? ((const uint8_t *)row)[i]
                                                           : ((const uint16_t *)row)[i]);
    if (op == TUTTI_OP_PREMUL_SUM)
        x = tt_small_value(dtype, tt_small_code(dtype, x * (float)factor));
    return x;
}

static double real_f64(const void *row, tutti_op_kind op, double factor, int64_t i)
{
    const double x = ((const double *)row)[i];

    return op == TUTTI_OP_PREMUL_SUM ? x * factor : x;
}

static bool is_double(tutti_dtype dtype)
{
    return dtype == TUTTI_F64 || dtype == TUTTI_C128;
}

static bool is_complex(tutti_dtype dtype)
{
    return dtype == TUTTI_C64 || dtype == TUTTI_C128;
}

static bool is_real(tutti_dtype dtype)
{
    return dtype >= TUTTI_F16;
}

/* What is combined: rows, and whose they are. */
typedef struct fold {
    tutti_dtype        dtype;
    tutti_op_kind      op;
    const void *const *rows;
    const double      *factors;
    const int         *host_of;
    int                n_rows;
} fold;

/* A host's sum of these may be too large where the average of all is not. */
static bool has_small_range(tutti_dtype dtype)
{
    return is_small(dtype) && dtype != TUTTI_BF16;
}

static bool is_host_by_host(const fold *f)
{
    int r;

    for (r = 1; r < f->n_rows; r++)
        if (f->host_of[r] != f->host_of[0])
            return f->op != TUTTI_OP_AVG || !has_small_range(f->dtype);
    return false;
}

static bool is_first_of_host(const fold *f, int r)
{
    int k;

    for (k = 0; k < r; k++)
        if (f->host_of[k] == f->host_of[r])
            return false;
    return true;
}

/* Two f32 added, multiplied or divided in f64 and rounded once more to f32 have the bits of the f32
 * operation: 53 bits are more than twice 24 and two. So one combine_real() serves both. */
static float host_f32(const fold *f, int first, int64_t i)
{
    float x = real_f32(f->rows[first], f->dtype, f->op, f->factors[first], i);
    int   r;

    for (r = first + 1; r < f->n_rows; r++)
        if (f->host_of[r] == f->host_of[first])
            x = (float)combine_real(f->op, x, real_f32(f->rows[r], f->dtype, f->op, f->factors[r], i));
    return is_small(f->dtype) ? tt_small_value(f->dtype, tt_small_code(f->dtype, x)) : x;
}

static double host_f64(const fold *f, int first, int64_t i)
{
    double x = real_f64(f->rows[first], f->op, f->factors[first], i);
    int    r;

    for (r = first + 1; r < f->n_rows; r++)
        if (f->host_of[r] == f->host_of[first])
            x = combine_real(f->op, x, real_f64(f->rows[r], f->op, f->factors[r], i));
    return x;
}

static void fold_f32(void *out, const fold *f, int64_t i)
{
    const bool hosts = is_host_by_host(f);
    float      x = hosts ? host_f32(f, 0, i) : real_f32(f->rows[0], f->dtype, f->op, f->factors[0], i);
    int        r;

    for (r = 1; r < f->n_rows; r++)
        if (!hosts)
            x = (float)combine_real(f->op, x, real_f32(f->rows[r], f->dtype, f->op, f->factors[r], i));
        else if (is_first_of_host(f, r))
            x = (float)combine_real(f->op, x, host_f32(f, r, i));
    if (f->op == TUTTI_OP_AVG)
        x /= (float)f->n_rows;
    if (is_small(f->dtype))
        put_whole(out, f->dtype, i, tt_small_code(f->dtype, x));
    else
        ((float *)out)[i] = x;
}

static void fold_f64(double *out, const fold *f, int64_t i)
{
    double x = host_f64(f, 0, i);
    int    r;

    for (r = 1; r < f->n_rows; r++)
        if (is_first_of_host(f, r))
            x = combine_real(f->op, x, host_f64(f, r, i));
    out[i] = f->op == TUTTI_OP_AVG ? x / f->n_rows : x;
}

static void fold_whole(void *out, tutti_dtype dtype, tutti_op_kind op, const void *const *rows,
                       int n_rows, int64_t i)
{
    uint64_t x = whole(rows[0], dtype, i);
    int      r;

    for (r = 1; r < n_rows; r++)
        x = combine_whole(op, is_signed(dtype), dtype == TUTTI_BOOL, x, whole(rows[r], dtype, i));
    put_whole(out, dtype, i, x);
}

void tt_fold(void *out, tutti_dtype dtype, tutti_op_kind op, const void *const *rows,
             const double *factors, const int *host_of, int n_rows, int64_t n)
{
    const fold    f = { .dtype = dtype, .op = op, .rows = rows, .factors = factors, .host_of = host_of,
                        .n_rows = n_rows };
    const int64_t numbers = is_complex(dtype) ? 2 * n : n;
    int64_t       i;

    for (i = 0; i < numbers; i++)
        if (is_double(dtype))
            fold_f64(out, &f, i);
        else if (is_real(dtype))
            fold_f32(out, &f, i);
        else
            fold_whole(out, dtype, op, rows, n_rows, i);
}

/* ---- comparing ---------------------------------------------------------------------------------- */

static double number(const void *row, tutti_dtype dtype, int64_t i)
{
    return is_double(dtype) ? ((const double *)row)[i]
                            : (double)real_f32(row, dtype, TUTTI_OP_SUM, 1.0, i);
}

/* What the contract leaves open; i counts components. */
static bool as_good(const void *got, const void *want, tutti_dtype dtype, tutti_op_kind op, int64_t i)
{
    const double a = number(got, dtype, i);
    const double b = number(want, dtype, i);

    if (a != a || b != b)
        return a != a && b != b;
    return (op == TUTTI_OP_MIN || op == TUTTI_OP_MAX) && a == 0 && b == 0;
}

int64_t tt_first_wrong(const void *got, const void *want, tutti_dtype dtype, tutti_op_kind op,
                       bool exact, int64_t n)
{
    const int64_t per = is_complex(dtype) ? 2 : 1;
    const size_t  bytes = tutti_dtype_size(dtype) / (size_t)per;
    int64_t       i;

    if (memcmp(got, want, (size_t)n * tutti_dtype_size(dtype)) == 0)
        return -1;
    for (i = 0; i < n * per; i++) {
        const size_t at = (size_t)i * bytes;

        if (memcmp((const char *)got + at, (const char *)want + at, bytes) == 0)
            continue;
        if (exact || !is_real(dtype) || !as_good(got, want, dtype, op, i))
            return i / per;
    }
    return -1;
}

void tt_element_text(char *out, size_t bytes, tutti_dtype dtype, const void *element)
{
    const unsigned char *at = element;
    size_t               used = 0;
    size_t               i;

    for (i = tutti_dtype_size(dtype); i-- > 0 && used + 3 < bytes;)
        used += (size_t)snprintf(out + used, bytes - used, "%02x", at[i]);
    if (is_real(dtype))
        snprintf(out + used, bytes - used, " (%.9g)", number(element, dtype, 0));
}

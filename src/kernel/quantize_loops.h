/* SPDX-License-Identifier: BSD-3-Clause
 *
 * quantize_loops.h - the loops of quantize.h, written once and compiled once for each set of instructions, behind
 * loops.h, whose vectors and formats they use.
 *
 * How     A vector of f32 at a time, the last one in parts. A number is rounded to a whole one by adding 1.5 * 2^23:
 *         what is behind the point falls off, to the nearest, ties to even, and the lowest byte of the sum is the
 *         code in two's complement. Magnitudes are compared as bits: those of a NaN are above infinity's, those above all.
 *         The including file defines QUANTIZE_TABLE (a name). */
#ifndef TTI_KERNEL_QUANTIZE_LOOPS_H
#define TTI_KERNEL_QUANTIZE_LOOPS_H

#include "kernel/quantize.h"

enum { Q_LANES = RAW / (int)sizeof(float) };

/* The codes of a vector, as they are in memory. */
INLINE v_f32 f32_of_codes(raw_4 raw)
{
    return __builtin_convertvector((v_i32)(lanes_of_4(raw) << 24) >> 24, v_f32);
}

INLINE raw_4 codes_of_f32(v_f32 x, float by)
{
    return codes_4((v_u32)(x * by + 0x1.8p23f) & 0xffu);
}

/* Do whole for every vector from i on, then, with left numbers of it, part. */
#define EACH(n, whole, part)                          \
    do {                                              \
        int64_t i = 0;                                \
        size_t  left;                                 \
                                                      \
        for (; (n) - i >= Q_LANES; i += Q_LANES) {    \
            whole;                                    \
        }                                             \
        left = (size_t)((n) - i);                     \
        if (left > 0) {                               \
            part;                                     \
        }                                             \
    } while (0)

#define F32(p)       get_f32((const byte *)((p) + i))
#define F32_PART(p)  get_part_f32((const byte *)((p) + i), left * sizeof(float))
#define CODES(p)     f32_of_codes(load_4((const byte *)((p) + i)))
#define CODES_PART(p) f32_of_codes(load_part_4((const byte *)((p) + i), left))
#define PUT(p, x)    put_f32((byte *)((p) + i), x, false)
#define PUT_PART(p, x) put_part_f32((byte *)((p) + i), x, left * sizeof(float))

static uint32_t q_most(const float *x, int64_t n)
{
    v_u32    most = { 0 }, bits;
    uint32_t all = 0;
    int      k;

    EACH(n, bits = (v_u32)F32(x) & 0x7fffffffu; most = SELECT(v_u32, (v_i32)bits > (v_i32)most, bits, most),
         bits = (v_u32)F32_PART(x) & 0x7fffffffu; most = SELECT(v_u32, (v_i32)bits > (v_i32)most, bits, most));
    for (k = 0; k < Q_LANES; k++)
        all = most[k] > all ? most[k] : all;
    return all;
}

static void q_encode(int8_t *codes, const float *x, int64_t n, float by)
{
    EACH(n, store_4((byte *)codes + i, codes_of_f32(F32(x), by)),
         store_part_4((byte *)codes + i, codes_of_f32(F32_PART(x), by), left));
}

static void q_decode(float *out, const int8_t *codes, int64_t n, float scale)
{
    EACH(n, PUT(out, CODES(codes) * scale), PUT_PART(out, CODES_PART(codes) * scale));
}

static void q_add_decoded(float *sum, const int8_t *codes, int64_t n, float scale)
{
    EACH(n, PUT(sum, F32(sum) + CODES(codes) * scale), PUT_PART(sum, F32_PART(sum) + CODES_PART(codes) * scale));
}

static void q_add(float *sum, const float *x, int64_t n)
{
    EACH(n, PUT(sum, F32(sum) + F32(x)), PUT_PART(sum, F32_PART(sum) + F32_PART(x)));
}

static void q_divide(float *x, int64_t n, float by)
{
    EACH(n, PUT(x, F32(x) / by), PUT_PART(x, F32_PART(x) / by));
}

static void q_rest(float *rest, const float *x, const int8_t *codes, int64_t n, float scale, float by)
{
    EACH(n, PUT(rest, (F32(x) - CODES(codes) * scale) * by),
         PUT_PART(rest, (F32_PART(x) - CODES_PART(codes) * scale) * by));
}

#define Q_FORMAT(format)                                                                                       \
    static void q_load_##format(float *out, const void *in, int64_t n)                                         \
    {                                                                                                          \
        const byte *p = in;                                                                                    \
                                                                                                               \
        EACH(n, PUT(out, get_##format(p + i * BYTES_##format)),                                                \
             PUT_PART(out, get_part_##format(p + i * BYTES_##format, left * BYTES_##format)));                 \
    }                                                                                                          \
    static void q_store_##format(void *out, const float *in, int64_t n)                                        \
    {                                                                                                          \
        byte *p = out;                                                                                         \
                                                                                                               \
        EACH(n, put_##format(p + i * BYTES_##format, CANON_f32(F32(in)), false),                               \
             put_part_##format(p + i * BYTES_##format, CANON_f32(F32_PART(in)), left * BYTES_##format));       \
    }

Q_FORMAT(f32)
Q_FORMAT(f16)
Q_FORMAT(bf16)

const tti_quantize_loops QUANTIZE_TABLE = {
    .most = q_most,
    .encode = q_encode,
    .decode = q_decode,
    .add_decoded = q_add_decoded,
    .add = q_add,
    .divide = q_divide,
    .rest = q_rest,
    .load = { [TUTTI_F32] = q_load_f32, [TUTTI_F16] = q_load_f16, [TUTTI_BF16] = q_load_bf16 },
    .store = { [TUTTI_F32] = q_store_f32, [TUTTI_F16] = q_store_f16, [TUTTI_BF16] = q_store_bf16 },
};

#endif

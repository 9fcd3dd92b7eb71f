/* SPDX-License-Identifier: BSD-3-Clause
 *
 * half.h - the number formats below f32: f16, bf16, f8e4m3fn, f8e5m2, to and from f32.
 *
 * Why     C11 has no such types, and results must have the same bits on every machine, so the
 *         conversions are written once, in plain C that a compiler turns into vector code.
 * How     A code is sign, exponent (bias B), M mantissa bits; f32 has bias 127 and 23 bits.
 *           normal     move the fields by 23 - M bits and shift the exponent by 127 - B
 *           subnormal  let one f32 operation do it: reading, put the mantissa under 2^(1-B) and
 *                      take that away again; writing, add 2^(24-B-M), whose last bit is a step
 *         Both are computed always and one is selected, so there is no branch.
 * True    Reading is exact. Writing rounds to nearest, ties to even, and keeps subnormals. Modes
 *         that flush f32 subnormals change nothing; another rounding mode does, where the result
 *         is a subnormal, so kernels enter the usual one (kernel/fp_mode.h).
 *         Overflow gives infinity, in f8e4m3fn, which has none, NaN.
 *         NaN stays NaN with its sign: f16 and bf16 keep the upper bits of the payload and set the
 *         quiet bit (as F16C does), both f8 write their last code, 0x7f (as PyTorch does).
 * Source  IEEE 754-2019 3.4; Micikevicius et al. 2022, "FP8 formats for deep learning". */
#ifndef TTI_BASE_HALF_H
#define TTI_BASE_HALF_H

#include <stdint.h>
#include <string.h>
#include <tutti/dtype.h>

static inline uint32_t tti_f32_bits(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float tti_f32_of_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* a where flag is 1, b where it is 0; a mask, so that it stays free of branches. */
static inline uint32_t tti_select(uint32_t flag, uint32_t a, uint32_t b)
{
    const uint32_t mask = 0u - flag;

    return (a & mask) | (b & ~mask);
}

/* The f32 bits of a code without its sign, whose exponent is neither Inf nor NaN. */
static inline uint32_t tti_small_read(uint32_t code, int mantissa_bits, int bias)
{
    const uint32_t fields = code << (23 - mantissa_bits);
    const uint32_t one_step = 1u << mantissa_bits; /* the smallest normal code */
    const uint32_t lowest = (uint32_t)(128 - bias) << 23;
    const uint32_t normal = fields + ((uint32_t)(127 - bias) << 23);
    const uint32_t tiny = tti_f32_bits(tti_f32_of_bits(fields + lowest) - tti_f32_of_bits(lowest));

    return tti_select(code < one_step, tiny, normal);
}

/* The code, without sign, of a non-negative f32 given as bits. Not bounded above: the caller cuts
 * what is too large, infinity and NaN included. */
static inline uint32_t tti_small_write(uint32_t bits, int mantissa_bits, int bias)
{
    const int drop = 23 - mantissa_bits;
    const uint32_t lowest = (uint32_t)(128 - bias) << 23; /* smallest normal of the format */
    const uint32_t magic = (uint32_t)(127 + 24 - bias - mantissa_bits) << 23;
    const uint32_t rounded = bits + ((1u << (drop - 1)) - 1u) + ((bits >> drop) & 1u);
    const uint32_t normal = (rounded >> drop) - ((uint32_t)(127 - bias) << mantissa_bits);
    /* Only a number below the smallest normal takes the addition; the others would round there too,
     * raising flags for nothing. */
    const uint32_t small = tti_select(bits < lowest, bits, 0u);
    const uint32_t tiny = tti_f32_bits(tti_f32_of_bits(small) + tti_f32_of_bits(magic)) - magic;

    return tti_select(bits < lowest, tiny, normal);
}

/** f32 of an f16 code; exact. */
static inline float tti_f32_from_f16(uint16_t code)
{
    const uint32_t sign = (uint32_t)(code & 0x8000u) << 16;
    const uint32_t body = code & 0x7fffu;
    const uint32_t special = 0x7f800000u | (body << 13) | ((uint32_t)(body > 0x7c00u) << 22);

    return tti_f32_of_bits(sign |
                           tti_select(body >= 0x7c00u, special, tti_small_read(body, 10, 15)));
}

/** Nearest f16; 65520 and above is infinity. */
static inline uint16_t tti_f16_from_f32(float x)
{
    const uint32_t bits = tti_f32_bits(x);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t body = bits & 0x7fffffffu;
    const uint32_t number = tti_small_write(body, 10, 15);
    const uint32_t finite = tti_select(number > 0x7c00u, 0x7c00u, number);
    const uint32_t nan = 0x7e00u | ((body >> 13) & 0x3ffu);

    return (uint16_t)(sign | tti_select(body > 0x7f800000u, nan, finite));
}

/** f32 of a bf16 code: its upper half; exact. */
static inline float tti_f32_from_bf16(uint16_t code)
{
    const uint32_t is_nan = (code & 0x7fffu) > 0x7f80u;

    return tti_f32_of_bits(((uint32_t)code << 16) | (is_nan << 22));
}

/** Nearest bf16. It has the exponents of f32, subnormals too, so one addition rounds everything. */
static inline uint16_t tti_bf16_from_f32(float x)
{
    const uint32_t bits = tti_f32_bits(x);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const uint32_t nan = (bits >> 16) | 0x40u;

    return (uint16_t)tti_select((bits & 0x7fffffffu) > 0x7f800000u, nan, rounded);
}

/** f32 of an f8e4m3fn code; exact. */
static inline float tti_f32_from_f8e4m3fn(uint8_t code)
{
    const uint32_t sign = (uint32_t)(code & 0x80u) << 24;
    const uint32_t body = code & 0x7fu;

    return tti_f32_of_bits(sign |
                           tti_select(body == 0x7fu, 0x7fc00000u, tti_small_read(body, 3, 7)));
}

/** Nearest f8e4m3fn; above 464 there is no number, and NaN is the answer. */
static inline uint8_t tti_f8e4m3fn_from_f32(float x)
{
    const uint32_t bits = tti_f32_bits(x);
    const uint32_t sign = (bits >> 24) & 0x80u;
    const uint32_t number = tti_small_write(bits & 0x7fffffffu, 3, 7);

    return (uint8_t)(sign | tti_select(number > 0x7fu, 0x7fu, number));
}

/** f32 of an f8e5m2 code, which is the upper half of an f16; exact. */
static inline float tti_f32_from_f8e5m2(uint8_t code)
{
    return tti_f32_from_f16((uint16_t)(code << 8));
}

/** Nearest f8e5m2; 61440 and above is infinity. Not by way of f16: that would round twice. */
static inline uint8_t tti_f8e5m2_from_f32(float x)
{
    const uint32_t bits = tti_f32_bits(x);
    const uint32_t sign = (bits >> 24) & 0x80u;
    const uint32_t body = bits & 0x7fffffffu;
    const uint32_t number = tti_small_write(body, 2, 15);
    const uint32_t finite = tti_select(number > 0x7cu, 0x7cu, number);

    return (uint8_t)(sign | tti_select(body > 0x7f800000u, 0x7fu, finite));
}

/* Runs of them. in is read and out written once, front to back; they may not overlap. */
typedef void tti_widen_fn(float *out, const void *in, int64_t count);
typedef void tti_narrow_fn(void *out, const float *in, int64_t count);

tti_widen_fn tti_widen_f16, tti_widen_bf16, tti_widen_f8e4m3fn, tti_widen_f8e5m2;
tti_narrow_fn tti_narrow_f16, tti_narrow_bf16, tti_narrow_f8e4m3fn, tti_narrow_f8e5m2;

/** The run functions of a dtype below f32; NULL for any other dtype. */
tti_widen_fn *tti_widen_for(tutti_dtype dtype);
tti_narrow_fn *tti_narrow_for(tutti_dtype dtype);

#endif

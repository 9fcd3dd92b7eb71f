/* SPDX-License-Identifier: BSD-3-Clause
 *
 * half.h - the two formats of 16 bits, to and from f32, for loops that the compiler vectorises.
 *
 * How     bf16 is the upper half of an f32. f16 has 5 exponent bits with bias 15 and 10 bits of mantissa:
 *         moved to their place in an f32 and multiplied by 2^112 they are read, subnormals too. Written,
 *         normal numbers are rounded in their bits; subnormal ones by adding 0.5, whose last bit is 2^-24.
 * True    Reading is exact; writing rounds once, to nearest, ties to even. Too large becomes infinity, NaN
 *         stays NaN, with its sign. */
#ifndef TTI_TRAIN_TENSOR_HALF_H
#define TTI_TRAIN_TENSOR_HALF_H

#include "tensor/math_f32.h"

static inline float tti_bf16_read(uint16_t code)
{
    return tti_f32_of((uint32_t)code << 16);
}

static inline uint16_t tti_bf16_write(float x)
{
    const uint32_t u = tti_bits_of(x), rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;

    return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? u >> 16 | 0x40u : rounded);
}

static inline float tti_f16_read(uint16_t code)
{
    const uint32_t sign = (uint32_t)(code & 0x8000u) << 16, fields = (uint32_t)(code & 0x7fffu)
                                                                     << 13;
    const uint32_t scaled = tti_bits_of(tti_f32_of(fields) * 0x1p112f);

    return tti_f32_of(sign | (fields >= 0x0f800000u ? fields | 0x7f800000u : scaled));
}

static inline uint16_t tti_f16_write(float x)
{
    const uint32_t u = tti_bits_of(x), a = u & 0x7fffffffu;
    const uint32_t tiny = tti_bits_of(tti_f32_of(a) + 0.5f) - 0x3f000000u;
    const uint32_t normal = (a + 0xfffu + (a >> 13 & 1u) - 0x38000000u) >> 13;
    uint32_t code = a < 0x38800000u ? tiny : normal;

    code = a >= 0x477ff000u ? 0x7c00u : code;                     /* 65520 and above */
    code = a > 0x7f800000u ? 0x7e00u | (a >> 13 & 0x3ffu) : code; /* NaN */
    return (uint16_t)(u >> 16 & 0x8000u) | (uint16_t)code;
}

#endif

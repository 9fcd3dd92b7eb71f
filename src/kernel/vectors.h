/* SPDX-License-Identifier: BSD-3-Clause
 *
 * vectors.h - vectors as wide as the including file says in RAW (bytes), and on them what base/half.h
 * says of single numbers, in the same steps.
 *
 * How     The compiler's own vector types: + and * and < work on them, on every machine. A comparison
 *         gives lanes of all ones or zeros. */
#ifndef TTI_KERNEL_VECTORS_H
#define TTI_KERNEL_VECTORS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline, unused))

typedef uint8_t v_u8 __attribute__((vector_size(RAW)));
typedef int8_t v_i8 __attribute__((vector_size(RAW)));
typedef uint16_t v_u16 __attribute__((vector_size(RAW)));
typedef int16_t v_i16 __attribute__((vector_size(RAW)));
typedef uint32_t v_u32 __attribute__((vector_size(RAW)));
typedef int32_t v_i32 __attribute__((vector_size(RAW)));
typedef uint64_t v_u64 __attribute__((vector_size(RAW)));
typedef int64_t v_i64 __attribute__((vector_size(RAW)));
typedef float v_f32 __attribute__((vector_size(RAW)));
typedef double v_f64 __attribute__((vector_size(RAW)));

/* Lanes of a where mask is all ones, of b where it is zero. */
#define SELECT(type, mask, a, b) \
    ((type)(((v_u64)(mask) & (v_u64)(a)) | (~(v_u64)(mask) & (v_u64)(b))))

#define NAN_F32 0x7fc00000u
#define NAN_F64 UINT64_C(0x7ff8000000000000)

/* The first n of 8 bytes, in registers: what is stored in pieces is slow to load as a whole. */
INLINE uint64_t load_part_8(const unsigned char *p, size_t n)
{
    uint64_t whole;
    uint32_t low, high;
    uint16_t two;

    if (n >= 8) {
        memcpy(&whole, p, 8);
        return whole;
    }
    if (n >= 4) {
        memcpy(&low, p, 4);
        memcpy(&high, p + n - 4, 4);
        return low | (uint64_t)high << (8 * (n - 4));
    }
    whole = 0;
    if (n >= 2) {
        memcpy(&two, p, 2);
        whole = two;
    }
    return n % 2 != 0 ? whole | (uint64_t)p[n - 1] << (8 * (n - 1)) : whole;
}

INLINE void store_part_8(unsigned char *p, uint64_t whole, size_t n)
{
    const uint32_t low = (uint32_t)whole;
    const uint16_t two = (uint16_t)whole;

    if (n >= 8) {
        memcpy(p, &whole, 8);
    } else if (n >= 4) {
        const uint32_t high = (uint32_t)(whole >> (8 * (n - 4)));

        memcpy(p, &low, 4);
        memcpy(p + n - 4, &high, 4);
    } else {
        if (n >= 2)
            memcpy(p, &two, 2);
        if (n % 2 != 0)
            p[n - 1] = (unsigned char)(whole >> (8 * (n - 1)));
    }
}

/* tti_small_read() in lanes. */
INLINE v_u32 small_read(v_u32 code, int mantissa_bits, int bias)
{
    const uint32_t lowest = (uint32_t)(128 - bias) << 23;
    const v_u32 fields = code << (23 - mantissa_bits);
    const v_u32 normal = fields + ((uint32_t)(127 - bias) << 23);
    const v_f32 under = (v_f32)((v_u32){ 0 } + lowest);
    const v_u32 tiny = (v_u32)((v_f32)(fields + lowest) - under);

    return SELECT(v_u32, code < (1u << mantissa_bits), tiny, normal);
}

/* tti_small_write() in lanes. */
INLINE v_u32 small_write(v_u32 bits, int mantissa_bits, int bias)
{
    const int drop = 23 - mantissa_bits;
    const uint32_t lowest = (uint32_t)(128 - bias) << 23;
    const v_u32 magic = (v_u32){ 0 } + ((uint32_t)(127 + 24 - bias - mantissa_bits) << 23);
    const v_u32 rounded = bits + ((1u << (drop - 1)) - 1u) + ((bits >> drop) & 1u);
    const v_u32 normal = (rounded >> drop) - ((uint32_t)(127 - bias) << mantissa_bits);
    const v_u32 is_small = (v_u32)(bits < lowest);
    const v_u32 tiny = (v_u32)((v_f32)(bits & is_small) + (v_f32)magic) - magic;

    return SELECT(v_u32, is_small, tiny, normal);
}

INLINE v_f32 f32_of_bf16(v_u32 code)
{
    return (v_f32)(code << 16);
}

/* NaN of x is the one that CANON leaves, which no rounding carries beyond the exponent. */
INLINE v_u32 bf16_of_f32(v_f32 x)
{
    const v_u32 bits = (v_u32)x;

    return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

INLINE v_f32 f32_of_f16_in_lanes(v_u32 code)
{
    const v_u32 body = code & 0x7fffu;
    const v_u32 special = (body << 13) | 0x7f800000u;

    return (v_f32)(((code & 0x8000u) << 16) |
                   SELECT(v_u32, body >= 0x7c00u, special, small_read(body, 10, 15)));
}

INLINE v_u32 f16_of_f32_in_lanes(v_f32 x)
{
    const v_u32 bits = (v_u32)x;
    const v_u32 body = bits & 0x7fffffffu;
    const v_u32 number = small_write(body, 10, 15);
    const v_u32 finite = SELECT(v_u32, number > 0x7c00u, (v_u32){ 0 } + 0x7c00u, number);

    return ((bits >> 16) & 0x8000u) |
           SELECT(v_u32, body > 0x7f800000u, (v_u32){ 0 } + 0x7e00u, finite);
}

INLINE v_f32 f32_of_f8e4m3fn(v_u32 code)
{
    const v_u32 body = code & 0x7fu;

    return (v_f32)(((code & 0x80u) << 24) |
                   SELECT(v_u32, body == 0x7fu, (v_u32){ 0 } + NAN_F32, small_read(body, 3, 7)));
}

INLINE v_u32 f8e4m3fn_of_f32(v_f32 x)
{
    const v_u32 bits = (v_u32)x;
    const v_u32 number = small_write(bits & 0x7fffffffu, 3, 7);

    return ((bits >> 24) & 0x80u) | SELECT(v_u32, number > 0x7fu, (v_u32){ 0 } + 0x7fu, number);
}

INLINE v_u32 f8e5m2_of_f32(v_f32 x)
{
    const v_u32 bits = (v_u32)x;
    const v_u32 body = bits & 0x7fffffffu;
    const v_u32 number = small_write(body, 2, 15);
    const v_u32 finite = SELECT(v_u32, number > 0x7cu, (v_u32){ 0 } + 0x7cu, number);

    return ((bits >> 24) & 0x80u) | SELECT(v_u32, body > 0x7f800000u, (v_u32){ 0 } + 0x7fu, finite);
}

#endif

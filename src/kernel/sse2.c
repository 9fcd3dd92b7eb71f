/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sse2.c - the loops for every x86-64. It has no conversion of f16, and compares few kinds of integers. */
#include <emmintrin.h>

enum { RAW = 16 };

#include "kernel/vectors.h"

typedef __m128i raw_1;
typedef uint64_t raw_2;
typedef uint32_t raw_4;

INLINE void stream_1(void *p, raw_1 raw)
{
    _mm_stream_si128(p, raw);
}

INLINE void stream_2(void *p, raw_2 raw)
{
    _mm_stream_si64(p, (long long)raw);
}

INLINE void stream_4(void *p, raw_4 raw)
{
    _mm_stream_si32(p, (int)raw);
}

INLINE raw_1 load_part_1(const unsigned char *p, size_t n)
{
    return (raw_1)(v_u64){ load_part_8(p, n), n > 8 ? load_part_8(p + 8, n - 8) : 0 };
}

INLINE void store_part_1(unsigned char *p, raw_1 raw, size_t n)
{
    store_part_8(p, ((v_u64)raw)[0], n);
    if (n > 8)
        store_part_8(p + 8, ((v_u64)raw)[1], n - 8);
}

INLINE raw_2 load_part_2(const unsigned char *p, size_t n)
{
    return load_part_8(p, n);
}

INLINE void store_part_2(unsigned char *p, raw_2 raw, size_t n)
{
    store_part_8(p, raw, n);
}

INLINE raw_4 load_part_4(const unsigned char *p, size_t n)
{
    return (raw_4)load_part_8(p, n);
}

INLINE void store_part_4(unsigned char *p, raw_4 raw, size_t n)
{
    store_part_8(p, raw, n);
}

INLINE v_u32 lanes_of_2(raw_2 raw)
{
    return (v_u32)_mm_unpacklo_epi16(_mm_cvtsi64_si128((long long)raw), _mm_setzero_si128());
}

INLINE v_u32 lanes_of_4(raw_4 raw)
{
    const __m128i zero = _mm_setzero_si128();
    const __m128i pairs = _mm_unpacklo_epi8(_mm_cvtsi32_si128((int)raw), zero);

    return (v_u32)_mm_unpacklo_epi16(pairs, zero);
}

/* Packing takes lanes for signed numbers; moved up and down again, 16 bits are one. */
INLINE raw_2 codes_2(v_u32 codes)
{
    const __m128i lanes = _mm_srai_epi32(_mm_slli_epi32((__m128i)codes, 16), 16);

    return (raw_2)_mm_cvtsi128_si64(_mm_packs_epi32(lanes, lanes));
}

INLINE raw_4 codes_4(v_u32 codes)
{
    const __m128i pairs = _mm_packs_epi32((__m128i)codes, (__m128i)codes);

    return (raw_4)_mm_cvtsi128_si32(_mm_packus_epi16(pairs, pairs));
}

INLINE v_f32 f32_of_f16(raw_2 raw)
{
    return f32_of_f16_in_lanes(lanes_of_2(raw));
}

INLINE raw_2 f16_of_f32(v_f32 x)
{
    return codes_2(f16_of_f32_in_lanes(x));
}

INLINE v_f32 f32_of_f8e5m2(raw_4 raw)
{
    return f32_of_f16_in_lanes(lanes_of_4(raw) << 8);
}

#define MIN_u8(x, y)  ((v_u8)_mm_min_epu8((__m128i)(x), (__m128i)(y)))
#define MAX_u8(x, y)  ((v_u8)_mm_max_epu8((__m128i)(x), (__m128i)(y)))
#define MIN_i16(x, y) ((v_i16)_mm_min_epi16((__m128i)(x), (__m128i)(y)))
#define MAX_i16(x, y) ((v_i16)_mm_max_epi16((__m128i)(x), (__m128i)(y)))

/* A comparison for order looks at both of its sides. */
#define ANY_NAN_f32(a, b, c, d)                                           \
    (_mm_movemask_ps(_mm_or_ps(_mm_cmpunord_ps((__m128)(a), (__m128)(b)), \
                               _mm_cmpunord_ps((__m128)(c), (__m128)(d)))) != 0)
#define ANY_NAN_f64(a, b, c, d)                                             \
    (_mm_movemask_pd(_mm_or_pd(_mm_cmpunord_pd((__m128d)(a), (__m128d)(b)), \
                               _mm_cmpunord_pd((__m128d)(c), (__m128d)(d)))) != 0)

#define LOOP_TABLE tti_loops_sse2
#include "kernel/loops.h"
#define QUANTIZE_TABLE tti_quantize_sse2
#include "kernel/quantize_loops.h"

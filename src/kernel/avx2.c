/* SPDX-License-Identifier: BSD-3-Clause
 *
 * avx2.c - the loops for AVX2 with F16C, whose conversions of f16 keep subnormals whatever the mode. */
#include <immintrin.h>
#include <stdbool.h>

enum { RAW = 32 };

#include "kernel/vectors.h"

typedef __m256i raw_1;
typedef __m128i raw_2;
typedef uint64_t raw_4;

INLINE void stream_1(void *p, raw_1 raw)
{
    _mm256_stream_si256(p, raw);
}

INLINE void stream_2(void *p, raw_2 raw)
{
    _mm_stream_si128(p, raw);
}

INLINE void stream_4(void *p, raw_4 raw)
{
    _mm_stream_si64(p, (long long)raw);
}

INLINE raw_2 load_part_2(const unsigned char *p, size_t n)
{
    const uint64_t high = n > 8 ? load_part_8(p + 8, n - 8) : 0;

    return _mm_set_epi64x((long long)high, (long long)load_part_8(p, n));
}

INLINE void store_part_2(unsigned char *p, raw_2 raw, size_t n)
{
    store_part_8(p, (uint64_t)_mm_cvtsi128_si64(raw), n);
    if (n > 8)
        store_part_8(p + 8, (uint64_t)_mm_extract_epi64(raw, 1), n - 8);
}

INLINE raw_1 load_part_1(const unsigned char *p, size_t n)
{
    const raw_2 none = _mm_setzero_si128();

    if (n < 16)
        return _mm256_set_m128i(none, load_part_2(p, n));
    return _mm256_set_m128i(load_part_2(p + 16, n - 16), _mm_loadu_si128((const void *)p));
}

INLINE void store_part_1(unsigned char *p, raw_1 raw, size_t n)
{
    const raw_2 low = _mm256_castsi256_si128(raw);

    if (n < 16) {
        store_part_2(p, low, n);
    } else {
        _mm_storeu_si128((void *)p, low);
        store_part_2(p + 16, _mm256_extracti128_si256(raw, 1), n - 16);
    }
}

INLINE raw_4 load_part_4(const unsigned char *p, size_t n)
{
    return load_part_8(p, n);
}

INLINE void store_part_4(unsigned char *p, raw_4 raw, size_t n)
{
    store_part_8(p, raw, n);
}

INLINE v_u32 lanes_of_2(raw_2 raw)
{
    return (v_u32)_mm256_cvtepu16_epi32(raw);
}

INLINE v_u32 lanes_of_4(raw_4 raw)
{
    return (v_u32)_mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)raw));
}

/* Packing works in halves of the register, whose results are brought together afterwards. */
INLINE raw_2 codes_2(v_u32 codes)
{
    const __m256i packed = _mm256_packus_epi32((__m256i)codes, (__m256i)codes);

    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08));
}

INLINE raw_4 codes_4(v_u32 codes)
{
    const __m128i pairs = codes_2(codes);

    return (raw_4)_mm_cvtsi128_si64(_mm_packus_epi16(pairs, pairs));
}

INLINE v_f32 f32_of_f16(raw_2 raw)
{
    return (v_f32)_mm256_cvtph_ps(raw);
}

INLINE raw_2 f16_of_f32(v_f32 x)
{
    return _mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* An f8e5m2 is the upper byte of an f16. */
INLINE v_f32 f32_of_f8e5m2(raw_4 raw)
{
    return f32_of_f16(_mm_unpacklo_epi8(_mm_setzero_si128(), _mm_cvtsi64_si128((long long)raw)));
}

#define MIN_u8(x, y)  ((v_u8)_mm256_min_epu8((__m256i)(x), (__m256i)(y)))
#define MAX_u8(x, y)  ((v_u8)_mm256_max_epu8((__m256i)(x), (__m256i)(y)))
#define MIN_i8(x, y)  ((v_i8)_mm256_min_epi8((__m256i)(x), (__m256i)(y)))
#define MAX_i8(x, y)  ((v_i8)_mm256_max_epi8((__m256i)(x), (__m256i)(y)))
#define MIN_u16(x, y) ((v_u16)_mm256_min_epu16((__m256i)(x), (__m256i)(y)))
#define MAX_u16(x, y) ((v_u16)_mm256_max_epu16((__m256i)(x), (__m256i)(y)))
#define MIN_i16(x, y) ((v_i16)_mm256_min_epi16((__m256i)(x), (__m256i)(y)))
#define MAX_i16(x, y) ((v_i16)_mm256_max_epi16((__m256i)(x), (__m256i)(y)))
#define MIN_u32(x, y) ((v_u32)_mm256_min_epu32((__m256i)(x), (__m256i)(y)))
#define MAX_u32(x, y) ((v_u32)_mm256_max_epu32((__m256i)(x), (__m256i)(y)))
#define MIN_i32(x, y) ((v_i32)_mm256_min_epi32((__m256i)(x), (__m256i)(y)))
#define MAX_i32(x, y) ((v_i32)_mm256_max_epi32((__m256i)(x), (__m256i)(y)))

/* The instruction gives its right side if they are equal or either is NaN; a NaN on the left is put back. */
INLINE v_f32 keep_nan_f32(v_f32 x, __m256 least)
{
    return (v_f32)_mm256_blendv_ps(least, (__m256)x,
                                   _mm256_cmp_ps((__m256)x, (__m256)x, _CMP_UNORD_Q));
}

INLINE v_f64 keep_nan_f64(v_f64 x, __m256d least)
{
    return (v_f64)_mm256_blendv_pd(least, (__m256d)x,
                                   _mm256_cmp_pd((__m256d)x, (__m256d)x, _CMP_UNORD_Q));
}

#define MIN_f32(x, y) keep_nan_f32(x, _mm256_min_ps((__m256)(x), (__m256)(y)))
#define MAX_f32(x, y) keep_nan_f32(x, _mm256_max_ps((__m256)(x), (__m256)(y)))
#define MIN_f64(x, y) keep_nan_f64(x, _mm256_min_pd((__m256d)(x), (__m256d)(y)))
#define MAX_f64(x, y) keep_nan_f64(x, _mm256_max_pd((__m256d)(x), (__m256d)(y)))
#define CANON_f32(x)  keep_number_f32(x)
#define CANON_f64(x)  keep_number_f64(x)

INLINE v_f32 keep_number_f32(v_f32 x)
{
    return (v_f32)_mm256_blendv_ps((__m256)x, (__m256)_mm256_set1_epi32(NAN_F32),
                                   _mm256_cmp_ps((__m256)x, (__m256)x, _CMP_UNORD_Q));
}

INLINE v_f64 keep_number_f64(v_f64 x)
{
    return (v_f64)_mm256_blendv_pd((__m256d)x, (__m256d)_mm256_set1_epi64x((long long)NAN_F64),
                                   _mm256_cmp_pd((__m256d)x, (__m256d)x, _CMP_UNORD_Q));
}

/* A comparison for order looks at both of its sides. */
INLINE bool any_nan_f32(v_f32 a, v_f32 b, v_f32 c, v_f32 d)
{
    const __m256 ab = _mm256_cmp_ps((__m256)a, (__m256)b, _CMP_UNORD_Q);
    const __m256 cd = _mm256_cmp_ps((__m256)c, (__m256)d, _CMP_UNORD_Q);

    return _mm256_movemask_ps(_mm256_or_ps(ab, cd)) != 0;
}

INLINE bool any_nan_f64(v_f64 a, v_f64 b, v_f64 c, v_f64 d)
{
    const __m256d ab = _mm256_cmp_pd((__m256d)a, (__m256d)b, _CMP_UNORD_Q);
    const __m256d cd = _mm256_cmp_pd((__m256d)c, (__m256d)d, _CMP_UNORD_Q);

    return _mm256_movemask_pd(_mm256_or_pd(ab, cd)) != 0;
}

#define ANY_NAN_f32(a, b, c, d) any_nan_f32(a, b, c, d)
#define ANY_NAN_f64(a, b, c, d) any_nan_f64(a, b, c, d)

#define LOOP_TABLE tti_loops_avx2
#include "kernel/loops.h"
#define QUANTIZE_TABLE tti_quantize_avx2
#include "kernel/quantize_loops.h"

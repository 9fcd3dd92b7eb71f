/* SPDX-License-Identifier: BSD-3-Clause
 *
 * avx512.c - the loops for AVX-512 (F, BW, DQ, VL): masks select lanes, and the bytes of a part.
 *
 * The instructions of AVX512_BF16 are not used: VCVTNEPS2BF16 flushes subnormals, whatever the mode is,
 * and so has other bits than every other machine (docs/decisions/0006-kernels.md). */
#include <immintrin.h>
#include <stdbool.h>

enum { RAW = 64 };

#include "kernel/vectors.h"

typedef __m512i raw_1;
typedef __m256i raw_2;
typedef __m128i raw_4;

INLINE void stream_1(void *p, raw_1 raw)
{
    _mm512_stream_si512(p, raw);
}

INLINE void stream_2(void *p, raw_2 raw)
{
    _mm256_stream_si256(p, raw);
}

INLINE void stream_4(void *p, raw_4 raw)
{
    _mm_stream_si128(p, raw);
}

/* bytes is less than those of the register. */
#define PARTS(share, prefix, mask)                                               \
    INLINE raw_##share load_part_##share(const void *p, size_t bytes)            \
    {                                                                            \
        return prefix##_maskz_loadu_epi8((mask)((UINT64_C(1) << bytes) - 1), p); \
    }                                                                            \
    INLINE void store_part_##share(void *p, raw_##share raw, size_t bytes)       \
    {                                                                            \
        prefix##_mask_storeu_epi8(p, (mask)((UINT64_C(1) << bytes) - 1), raw);   \
    }

PARTS(1, _mm512, __mmask64)
PARTS(2, _mm256, __mmask32)
PARTS(4, _mm, __mmask16)

INLINE v_u32 lanes_of_2(raw_2 raw)
{
    return (v_u32)_mm512_cvtepu16_epi32(raw);
}

INLINE v_u32 lanes_of_4(raw_4 raw)
{
    return (v_u32)_mm512_cvtepu8_epi32(raw);
}

INLINE raw_2 codes_2(v_u32 codes)
{
    return _mm512_cvtepi32_epi16((__m512i)codes);
}

INLINE raw_4 codes_4(v_u32 codes)
{
    return _mm512_cvtepi32_epi8((__m512i)codes);
}

INLINE v_f32 f32_of_f16(raw_2 raw)
{
    return (v_f32)_mm512_cvtph_ps(raw);
}

INLINE raw_2 f16_of_f32(v_f32 x)
{
    return _mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* An f8e5m2 is the upper byte of an f16. */
INLINE v_f32 f32_of_f8e5m2(raw_4 raw)
{
    return f32_of_f16(_mm256_slli_epi16(_mm256_cvtepu8_epi16(raw), 8));
}

#define PICK(name, one, x, y) ((v_##name)_mm512_##one((__m512i)(x), (__m512i)(y)))

#define MIN_u8(x, y)  PICK(u8, min_epu8, x, y)
#define MAX_u8(x, y)  PICK(u8, max_epu8, x, y)
#define MIN_i8(x, y)  PICK(i8, min_epi8, x, y)
#define MAX_i8(x, y)  PICK(i8, max_epi8, x, y)
#define MIN_u16(x, y) PICK(u16, min_epu16, x, y)
#define MAX_u16(x, y) PICK(u16, max_epu16, x, y)
#define MIN_i16(x, y) PICK(i16, min_epi16, x, y)
#define MAX_i16(x, y) PICK(i16, max_epi16, x, y)
#define MIN_u32(x, y) PICK(u32, min_epu32, x, y)
#define MAX_u32(x, y) PICK(u32, max_epu32, x, y)
#define MIN_i32(x, y) PICK(i32, min_epi32, x, y)
#define MAX_i32(x, y) PICK(i32, max_epi32, x, y)
#define MIN_u64(x, y) PICK(u64, min_epu64, x, y)
#define MAX_u64(x, y) PICK(u64, max_epu64, x, y)
#define MIN_i64(x, y) PICK(i64, min_epi64, x, y)
#define MAX_i64(x, y) PICK(i64, max_epi64, x, y)

/* The instruction gives its right side if they are equal or either is NaN; where the left is a NaN it is not
 * done, and the left stays. */
INLINE __mmask16 number_f32(v_f32 x)
{
    return _mm512_cmp_ps_mask((__m512)x, (__m512)x, _CMP_ORD_Q);
}

INLINE __mmask8 number_f64(v_f64 x)
{
    return _mm512_cmp_pd_mask((__m512d)x, (__m512d)x, _CMP_ORD_Q);
}

#define PICK_f32(one, x, y) \
    ((v_f32)_mm512_mask_##one((__m512)(x), number_f32(x), (__m512)(x), (__m512)(y)))
#define PICK_f64(one, x, y) \
    ((v_f64)_mm512_mask_##one((__m512d)(x), number_f64(x), (__m512d)(x), (__m512d)(y)))

#define MIN_f32(x, y) PICK_f32(min_ps, x, y)
#define MAX_f32(x, y) PICK_f32(max_ps, x, y)
#define MIN_f64(x, y) PICK_f64(min_pd, x, y)
#define MAX_f64(x, y) PICK_f64(max_pd, x, y)

#define CANON_f32(x) \
    ((v_f32)_mm512_mask_blend_ps(number_f32(x), (__m512)_mm512_set1_epi32(NAN_F32), (__m512)(x)))
#define CANON_f64(x)                                                                            \
    ((v_f64)_mm512_mask_blend_pd(number_f64(x), (__m512d)_mm512_set1_epi64((long long)NAN_F64), \
                                 (__m512d)(x)))

/* A comparison for order looks at both of its sides. */
INLINE bool any_nan_f32(v_f32 a, v_f32 b, v_f32 c, v_f32 d)
{
    return (_mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_UNORD_Q) |
            _mm512_cmp_ps_mask((__m512)c, (__m512)d, _CMP_UNORD_Q)) != 0;
}

INLINE bool any_nan_f64(v_f64 a, v_f64 b, v_f64 c, v_f64 d)
{
    return (_mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_UNORD_Q) |
            _mm512_cmp_pd_mask((__m512d)c, (__m512d)d, _CMP_UNORD_Q)) != 0;
}

#define ANY_NAN_f32(a, b, c, d) any_nan_f32(a, b, c, d)
#define ANY_NAN_f64(a, b, c, d) any_nan_f64(a, b, c, d)

#define LOOP_TABLE tti_loops_avx512
#include "kernel/loops.h"
#define QUANTIZE_TABLE tti_quantize_avx512
#include "kernel/quantize_loops.h"

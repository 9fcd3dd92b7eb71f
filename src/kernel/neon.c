/* SPDX-License-Identifier: BSD-3-Clause
 *
 * neon.c - the loops for every aarch64. Its own min and max order zeros by sign, so those of reals are made
 * of comparisons. It has no stores past the caches worth the name: those are ordinary ones. */
#include <arm_neon.h>

enum { RAW = 16 };

#include "kernel/vectors.h"

typedef uint8x16_t raw_1;
typedef uint64_t raw_2;
typedef uint32_t raw_4;

#define stream_1 store_1
#define stream_2 store_2
#define stream_4 store_4

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
    return (v_u32)vmovl_u16(vcreate_u16(raw));
}

INLINE v_u32 lanes_of_4(raw_4 raw)
{
    return (v_u32)vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(raw))));
}

INLINE raw_2 codes_2(v_u32 codes)
{
    return vget_lane_u64(vreinterpret_u64_u16(vmovn_u32((uint32x4_t)codes)), 0);
}

INLINE raw_4 codes_4(v_u32 codes)
{
    const uint16x4_t pairs = vmovn_u32((uint32x4_t)codes);

    return vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(pairs, pairs))), 0);
}

INLINE v_f32 f32_of_f16(raw_2 raw)
{
    return (v_f32)vcvt_f32_f16(vreinterpret_f16_u64(vcreate_u64(raw)));
}

INLINE raw_2 f16_of_f32(v_f32 x)
{
    return vget_lane_u64(vreinterpret_u64_f16(vcvt_f16_f32((float32x4_t)x)), 0);
}

/* An f8e5m2 is the upper byte of an f16. */
INLINE v_f32 f32_of_f8e5m2(raw_4 raw)
{
    const uint16x8_t codes = vshll_n_u8(vcreate_u8(raw), 8);

    return (v_f32)vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(codes)));
}

#define MIN_u8(x, y)  ((v_u8)vminq_u8((uint8x16_t)(x), (uint8x16_t)(y)))
#define MAX_u8(x, y)  ((v_u8)vmaxq_u8((uint8x16_t)(x), (uint8x16_t)(y)))
#define MIN_i8(x, y)  ((v_i8)vminq_s8((int8x16_t)(x), (int8x16_t)(y)))
#define MAX_i8(x, y)  ((v_i8)vmaxq_s8((int8x16_t)(x), (int8x16_t)(y)))
#define MIN_u16(x, y) ((v_u16)vminq_u16((uint16x8_t)(x), (uint16x8_t)(y)))
#define MAX_u16(x, y) ((v_u16)vmaxq_u16((uint16x8_t)(x), (uint16x8_t)(y)))
#define MIN_i16(x, y) ((v_i16)vminq_s16((int16x8_t)(x), (int16x8_t)(y)))
#define MAX_i16(x, y) ((v_i16)vmaxq_s16((int16x8_t)(x), (int16x8_t)(y)))
#define MIN_u32(x, y) ((v_u32)vminq_u32((uint32x4_t)(x), (uint32x4_t)(y)))
#define MAX_u32(x, y) ((v_u32)vmaxq_u32((uint32x4_t)(x), (uint32x4_t)(y)))
#define MIN_i32(x, y) ((v_i32)vminq_s32((int32x4_t)(x), (int32x4_t)(y)))
#define MAX_i32(x, y) ((v_i32)vmaxq_s32((int32x4_t)(x), (int32x4_t)(y)))

#define LOOP_TABLE tti_loops_neon
#include "kernel/loops.h"
#define QUANTIZE_TABLE tti_quantize_neon
#include "kernel/quantize_loops.h"

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * quantize.c - blocks of 8-bit numbers, by the loops of the instructions that there are.
 *
 * How     A block is taken through all its steps while it is in the nearest cache, in f32 on the stack; f32 without an
 *         error is read where it lies. The two 8-bit hooks of tutti/parallel.h round between the extremes of
 *         what they are given, zero point included, as torch does: other numbers, and none of these loops. */
#include "kernel/quantize.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include "kernel/fp_mode.h"
#include "kernel/level.h"

static const uint32_t INFINITE_BITS = 0x7f800000u;
static const float    LEAST = 0x1p-119f; /* 127 over something smaller may be infinite */
static const float    SCALE_MAX = 0x1.020406p+121f; /* 127 times a larger one is */

#if defined(__x86_64__)
static const tti_quantize_loops *const tables[TTI_LEVEL_COUNT] = { &tti_quantize_sse2, &tti_quantize_avx2,
                                                                   &tti_quantize_avx512 };
#else
static const tti_quantize_loops *const tables[TTI_LEVEL_COUNT] = { &tti_quantize_neon };
#endif

static const tti_quantize_loops *loops(void)
{
    return tables[tti_level_now()];
}

bool tti_quantize_takes(tutti_dtype dtype)
{
    return dtype == TUTTI_F32 || dtype == TUTTI_F16 || dtype == TUTTI_BF16;
}

static float scale_of(uint32_t most, float *by_out)
{
    float m;

    memcpy(&m, &most, sizeof m);
    *by_out = 0.0f;
    if (most >= INFINITE_BITS)
        return NAN;
    if (m < LEAST)
        return 0.0f;
    *by_out = 127.0f / m;
    return m / 127.0f < SCALE_MAX ? m / 127.0f : SCALE_MAX;
}

/* One block of f32. Of a scale that is NaN all codes are 0. */
static float encode(const tti_quantize_loops *l, int8_t *codes, const float *x, int64_t n)
{
    float       by;
    const float scale = scale_of(l->most(x, n), &by);

    if (by > 0.0f)
        l->encode(codes, x, n, by);
    else
        memset(codes, 0, (size_t)n);
    return scale;
}

/* What encode() has left out of x, times by; nothing of what is no number. */
static void keep_rest(const tti_quantize_loops *l, float *rest, const float *x, const int8_t *codes, int64_t n,
                      float scale, float by)
{
    if (isnan(scale))
        memset(rest, 0, (size_t)n * sizeof *rest);
    else
        l->rest(rest, x, codes, n, scale, by);
}

/* Numbers as f32, with their error: where they lie, or in room. */
static const float *read_block(const tti_quantize_loops *l, float *room, const void *in, tutti_dtype dtype, int64_t at,
                               int64_t n, const float *error)
{
    const char *from = (const char *)in + (size_t)at * tutti_dtype_size(dtype);

    if (dtype == TUTTI_F32 && error == NULL)
        return (const float *)(const void *)from;
    l->load[dtype](room, from, n);
    if (error != NULL)
        l->add(room, error + at, n);
    return room;
}

static int64_t block_at(int64_t at, int64_t count, int block)
{
    return count - at < block ? count - at : block;
}

void tti_quantize(int8_t *codes, float *scales, const void *in, tutti_dtype dtype, int64_t count, int block,
                  float *error)
{
    const tti_quantize_loops *l = loops();
    const uint64_t            mode = tti_fp_enter();
    _Alignas(64) float        room[TTI_QUANTIZE_BLOCK_MAX];
    int64_t                   at, n;

    assert(block > 0 && block <= TTI_QUANTIZE_BLOCK_MAX);
    for (at = 0; at < count; at += n, scales++) {
        const float *x;

        n = block_at(at, count, block);
        x = read_block(l, room, in, dtype, at, n, error);
        *scales = encode(l, codes + at, x, n);
        if (error != NULL)
            keep_rest(l, error + at, x, codes + at, n, *scales, 1.0f);
    }
    tti_fp_leave(mode);
}

void tti_dequantize(void *out, tutti_dtype dtype, const int8_t *codes, const float *scales, int64_t count, int block)
{
    const tti_quantize_loops *l = loops();
    const uint64_t            mode = tti_fp_enter();
    const size_t              size = tutti_dtype_size(dtype);
    _Alignas(64) float        room[TTI_QUANTIZE_BLOCK_MAX];
    int64_t                   at, n;

    assert(block > 0 && block <= TTI_QUANTIZE_BLOCK_MAX);
    for (at = 0; at < count; at += n, scales++) {
        char *to = (char *)out + (size_t)at * size;

        n = block_at(at, count, block);
        if (dtype == TUTTI_F32 && !isnan(*scales)) {
            l->decode((float *)(void *)to, codes + at, n, *scales);
        } else {
            l->decode(room, codes + at, n, *scales);
            l->store[dtype](to, room, n);
        }
    }
    tti_fp_leave(mode);
}

/* Bring in one rank's part of a block: the first one begins the sum. */
static void add_block(const tti_quantize_loops *l, float *sum, const tti_quantized *in, tutti_dtype dtype, int64_t at,
                      int64_t n, int block, const float *error, bool is_first)
{
    float        room[TTI_QUANTIZE_BLOCK_MAX];
    const float *x;

    if (in->codes != NULL) {
        (is_first ? l->decode : l->add_decoded)(sum, in->codes + at, n, in->scales[at / block]);
        return;
    }
    x = read_block(l, is_first ? sum : room, in->numbers, dtype, at, n, error);
    if (!is_first)
        l->add(sum, x, n);
    else if (x != sum)
        memcpy(sum, x, (size_t)n * sizeof *sum);
}

void tti_quantize_sum(int8_t *codes, float *scales, const tti_quantized *in, int n_in, tutti_dtype dtype, int64_t count,
                      int block, float by, float *error)
{
    const tti_quantize_loops *l = loops();
    const uint64_t            mode = tti_fp_enter();
    _Alignas(64) float        sum[TTI_QUANTIZE_BLOCK_MAX];
    int64_t                   at, n;
    int                       k;

    assert(block > 0 && block <= TTI_QUANTIZE_BLOCK_MAX && n_in > 0 && by >= 1.0f);
    for (at = 0; at < count; at += n, scales++) {
        n = block_at(at, count, block);
        for (k = 0; k < n_in; k++)
            add_block(l, sum, &in[k], dtype, at, n, block, error, k == 0);
        if (by != 1.0f)
            l->divide(sum, n, by);
        *scales = encode(l, codes + at, sum, n);
        if (error != NULL)
            keep_rest(l, error + at, sum, codes + at, n, *scales, by);
    }
    tti_fp_leave(mode);
}

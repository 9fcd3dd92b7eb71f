/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scale.c - one buffer times a number, and zeros.
 *
 * f16, bf16 and f8 go block by block through f32, as in reduce.c: the product is rounded once. */
#include <assert.h>
#include <stddef.h>
#include <string.h>
#include "base/half.h"
#include "kernel/fp_mode.h"
#include "kernel/kernel.h"
#include "kernel/step.h"

enum { BLOCK = 512 };

static void scale_f32(float *out, const float *in, int64_t count, float factor)
{
    TTI_INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        out[i] = in[i] * factor;
}

static void scale_f64(double *out, const double *in, int64_t count, double factor)
{
    TTI_INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        out[i] = in[i] * factor;
}

static void scale_small(void *out, const void *in, int64_t count, float factor, tutti_dtype dtype)
{
    const int64_t size = (int64_t)tutti_dtype_size(dtype);
    tti_widen_fn *widen = tti_widen_for(dtype);
    tti_narrow_fn *narrow = tti_narrow_for(dtype);
    float block[BLOCK];

    assert(widen != NULL && narrow != NULL); /* tutti_op_check() let nothing else through */
    for (int64_t first = 0; first < count; first += BLOCK) {
        const int64_t n = count - first < BLOCK ? count - first : BLOCK;

        widen(block, (const unsigned char *)in + first * size, n);
        scale_f32(block, block, n, factor);
        narrow((unsigned char *)out + first * size, block, n);
    }
}

/* Not inlined: no rounding of factor may move out of the mode that the caller enters. */
__attribute__((noinline)) static void scale_any(void *out, const void *in, int64_t count,
                                                double factor, tutti_dtype dtype)
{
    switch (dtype) {
    case TUTTI_F32: scale_f32(out, in, count, (float)factor); break;
    case TUTTI_C64: scale_f32(out, in, 2 * count, (float)factor); break;
    case TUTTI_F64: scale_f64(out, in, count, factor); break;
    case TUTTI_C128: scale_f64(out, in, 2 * count, factor); break;
    default: scale_small(out, in, count, (float)factor, dtype); break;
    }
}

void tti_scale(void *out, const void *in, int64_t count, double factor, tutti_dtype dtype)
{
    uint64_t mode;

    assert(count >= 0);
    if (count == 0)
        return;
    mode = tti_fp_enter();
    scale_any(out, in, count, factor, dtype);
    tti_fp_leave(mode);
}

void tti_fill_zero(void *out, int64_t count, tutti_dtype dtype)
{
    if (count > 0)
        memset(out, 0, (size_t)count * tutti_dtype_size(dtype)); /* zero bits are zero everywhere */
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * half.c - runs of f16, bf16 and f8 to and from f32: the scalar functions of half.h in loops that
 * the compiler turns into vector code. */
#include <stddef.h>
#include "base/half.h"

#define RUNS(name, code)                                                                \
    void tti_widen_##name(float *restrict out, const void *restrict in, int64_t count)  \
    {                                                                                   \
        const code *restrict src = in;                                                  \
                                                                                        \
        for (int64_t i = 0; i < count; i++)                                             \
            out[i] = tti_f32_from_##name(src[i]);                                       \
    }                                                                                   \
                                                                                        \
    void tti_narrow_##name(void *restrict out, const float *restrict in, int64_t count) \
    {                                                                                   \
        code *restrict dst = out;                                                       \
                                                                                        \
        for (int64_t i = 0; i < count; i++)                                             \
            dst[i] = tti_##name##_from_f32(in[i]);                                      \
    }

RUNS(f16, uint16_t)
RUNS(bf16, uint16_t)
RUNS(f8e4m3fn, uint8_t)
RUNS(f8e5m2, uint8_t)

tti_widen_fn *tti_widen_for(tutti_dtype dtype)
{
    switch (dtype) {
    case TUTTI_F16: return tti_widen_f16;
    case TUTTI_BF16: return tti_widen_bf16;
    case TUTTI_F8E4M3FN: return tti_widen_f8e4m3fn;
    case TUTTI_F8E5M2: return tti_widen_f8e5m2;
    default: return NULL;
    }
}

tti_narrow_fn *tti_narrow_for(tutti_dtype dtype)
{
    switch (dtype) {
    case TUTTI_F16: return tti_narrow_f16;
    case TUTTI_BF16: return tti_narrow_bf16;
    case TUTTI_F8E4M3FN: return tti_narrow_f8e4m3fn;
    case TUTTI_F8E5M2: return tti_narrow_f8e5m2;
    default: return NULL;
    }
}

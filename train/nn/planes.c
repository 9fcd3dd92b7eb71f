/* SPDX-License-Identifier: BSD-3-Clause
 *
 * planes.c - which table of plane loops is taken: that of the level of the other loops. */
#include "nn/planes.h"

#include "tensor/level.h"

const tti_plane_ops *tti_planes_now(void)
{
#if defined(__x86_64__)
    const tti_math *math = tti_math_now();

    if (math == tti_math_of(TTI_MATH_AVX512))
        return &tti_planes_avx512;
    if (math == tti_math_of(TTI_MATH_AVX2) && __builtin_cpu_supports("fma"))
        return &tti_planes_avx2;
#endif
    return &tti_planes_base;
}

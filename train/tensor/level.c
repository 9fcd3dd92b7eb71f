/* SPDX-License-Identifier: BSD-3-Clause
 *
 * level.c - which set of instructions the loops take.
 *
 * Shared  One pointer for the process, NULL until somebody asks. Two that ask at once find the same table,
 *         which is constant, so no order is needed. */
#include "tensor/level.h"

#include <string.h>
#include <tutti/private.h>

#if defined(__x86_64__)

const tti_math *tti_math_of(tti_math_level level)
{
    __builtin_cpu_init();
    if (level == TTI_MATH_AVX512 && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        return &tti_math_avx512;
    if (level == TTI_MATH_AVX2 && __builtin_cpu_supports("avx2"))
        return &tti_math_avx2;
    return level == TTI_MATH_BASE ? &tti_math_base : NULL;
}

#else

const tti_math *tti_math_of(tti_math_level level)
{
    return level == TTI_MATH_BASE ? &tti_math_base : NULL;
}

#endif

/* The highest level that may be taken; words that are no level are logged by the kernels of collectives,
 * which read the same variable. */
static tti_math_level wanted(void)
{
    const char *word = tti_env("TUTTI_ISA");

    if (word != NULL && (strcmp(word, "portable") == 0 || strcmp(word, "sse2") == 0 ||
                         strcmp(word, "neon") == 0))
        return TTI_MATH_BASE;
    return word != NULL && strcmp(word, "avx2") == 0 ? TTI_MATH_AVX2 : TTI_MATH_AVX512;
}

const tti_math *tti_math_now(void)
{
    static _Atomic(const tti_math *) chosen;
    const tti_math *math = atomic_load_explicit(&chosen, memory_order_relaxed);

    if (math != NULL)
        return math;
    for (int level = (int)wanted(); math == NULL; level--)
        math = tti_math_of((tti_math_level)level);
    atomic_store_explicit(&chosen, math, memory_order_relaxed);
    return math;
}

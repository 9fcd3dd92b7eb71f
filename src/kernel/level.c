/* SPDX-License-Identifier: BSD-3-Clause
 *
 * level.c - which set of instructions the kernels take.
 *
 * How     At the first call: what processor and kernel can do (the kernel has to save the wide registers,
 *         too), or less, if TUTTI_ISA asks for less. A level that this machine lacks is logged and the best
 *         one taken instead: all of them give the same bits, so nothing is lost but an experiment.
 * Shared  One number for the process: 0 for not decided, else level + 1. Whoever comes first decides; two
 *         that come at once decide the same. Nothing but constants hangs on it, so no order is needed. */
#include "kernel/level.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>
#include <tutti/private.h>
#include "base/env.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static _Atomic int decided;

#if defined(__x86_64__)

enum { LEAF1_ECX_F16C = 1 << 29 };

static const tti_loop_table *const tables[TTI_LEVEL_COUNT] = { &tti_loops_sse2, &tti_loops_avx2,
                                                               &tti_loops_avx512 };
static const char *const names[TTI_LEVEL_COUNT] = { "sse2", "avx2", "avx512" };

static bool has_f16c(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & LEAF1_ECX_F16C) != 0;
}

/* The built-in functions ask XGETBV as well as CPUID. */
bool tti_level_works(tti_level level)
{
    __builtin_cpu_init();
    switch (level) {
    case TTI_LEVEL_BASE: return true;
    case TTI_LEVEL_AVX2: return __builtin_cpu_supports("avx2") && has_f16c();
    case TTI_LEVEL_AVX512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
               tti_level_works(TTI_LEVEL_AVX2);
    default: return false;
    }
}

#else

static const tti_loop_table *const tables[TTI_LEVEL_COUNT] = { &tti_loops_neon };
static const char *const names[TTI_LEVEL_COUNT] = { "neon", "avx2", "avx512" };

bool tti_level_works(tti_level level)
{
    return level == TTI_LEVEL_BASE;
}

#endif

const char *tti_level_name(tti_level level)
{
    return names[level];
}

static tti_level best(void)
{
    int level = TTI_LEVEL_COUNT - 1;

    while (!tti_level_works((tti_level)level))
        level--;
    return (tti_level)level;
}

/* The level of a word of TUTTI_ISA; TTI_LEVEL_COUNT if it is none. */
static int named(const char *word)
{
    int level = 0;

    if (strcmp(word, "portable") == 0)
        return TTI_LEVEL_BASE;
    while (level < TTI_LEVEL_COUNT && strcmp(word, names[level]) != 0)
        level++;
    return level;
}

static tti_level decide(void)
{
    const char *word = tti_env("TUTTI_ISA");
    const tti_level most = best();
    int wanted;

    if (strcmp(word, "auto") == 0)
        return most;
    wanted = named(word);
    if (wanted < TTI_LEVEL_COUNT && tti_level_works((tti_level)wanted))
        return (tti_level)wanted;
    tti_log(TTI_LOG_WARN, "TUTTI_ISA is '%s', which %s; taking %s", word,
            wanted < TTI_LEVEL_COUNT ? "this machine cannot do"
                                     : "is none of auto, portable, sse2, avx2, avx512, neon",
            names[most]);
    return most;
}

void tti_level_use(tti_level level)
{
    assert(tti_level_works(level));
    atomic_store_explicit(&decided, (int)level + 1, memory_order_relaxed);
}

tti_level tti_level_now(void)
{
    const int known = atomic_load_explicit(&decided, memory_order_relaxed);

    if (__builtin_expect(known == 0, 0))
        tti_level_use(decide());
    return (tti_level)(atomic_load_explicit(&decided, memory_order_relaxed) - 1);
}

const tti_loop_table *tti_loops(void)
{
    return tables[tti_level_now()];
}

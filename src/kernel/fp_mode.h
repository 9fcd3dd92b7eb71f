/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fp_mode.h - the floating-point mode that kernels run in, whatever the thread has set.
 *
 * Why     A program may flush subnormals to zero, round otherwise or unmask traps on the thread
 *         that calls us; the thread that finishes the same operation may not. Then the same call
 *         has other bits on another rank.
 * How     Read the control register; only if it differs from the mode that C starts in is it
 *         written, and put back at the end. The usual case costs one register read. */
#ifndef TTI_KERNEL_FP_MODE_H
#define TTI_KERNEL_FP_MODE_H

#include <stdint.h>

#if defined(__x86_64__)

enum { TTI_MXCSR_FLAGS = 0x3f, TTI_MXCSR_START = 0x1f80 };

static inline uint64_t tti_fp_read(void)
{
    return __builtin_ia32_stmxcsr() & ~(uint32_t)TTI_MXCSR_FLAGS;
}

static inline void tti_fp_write(uint64_t mode)
{
    __builtin_ia32_ldmxcsr((uint32_t)mode);
}

static inline uint64_t tti_fp_start_mode(void)
{
    return TTI_MXCSR_START;
}

#elif defined(__aarch64__)

static inline uint64_t tti_fp_read(void)
{
    uint64_t mode;

    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}

static inline void tti_fp_write(uint64_t mode)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
}

static inline uint64_t tti_fp_start_mode(void)
{
    return 0;
}

#else
#error "tell fp_mode.h how this processor keeps its rounding mode"
#endif

/* Enter the kernels' mode; what comes back is for tti_fp_leave(). */
static inline uint64_t tti_fp_enter(void)
{
    const uint64_t mode = tti_fp_read();

    if (mode != tti_fp_start_mode())
        tti_fp_write(tti_fp_start_mode());
    return mode;
}

static inline void tti_fp_leave(uint64_t mode)
{
    if (mode != tti_fp_start_mode())
        tti_fp_write(mode);
}

#endif

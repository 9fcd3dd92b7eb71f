/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recorder/clock.h - the stamp of a record: the processor's counter where it never stops or changes its pace, for a call
 * of the clock costs as much as the whole record may.
 *
 * It is not a time of the port: nothing is decided by it, and groups whose port is not the machine's are not recorded. */
#ifndef TTI_RECORDER_CLOCK_H
#define TTI_RECORDER_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline int64_t tti_clock_read(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/** The counter; unserialised: it may be read some instructions early or late. */
static inline uint64_t tti_counter_read(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return 0;
#endif
}

/** Whether the counter goes at one pace, on all cores, whatever they do. */
bool tti_counter_is_steady(void);

static inline uint64_t tti_ticks(bool counter)
{
    return counter ? tti_counter_read() : (uint64_t)tti_clock_read(CLOCK_MONOTONIC);
}

#endif

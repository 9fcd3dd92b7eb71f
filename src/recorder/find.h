/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recorder/find.h - what /proc tells of processes and of the memory that they hold. */
#ifndef TTI_RECORDER_FIND_H
#define TTI_RECORDER_FIND_H

#include <stdbool.h>
#include <stdint.h>

/** When a process began, in the kernel's ticks since boot: with its number it names one process. 0: there is none. */
uint64_t tti_process_began(int64_t pid);

/** Whether an open descriptor is a recorder's memory: by its name, and that nobody can change its size. */
bool tti_recorder_is_memory(int fd);

#endif

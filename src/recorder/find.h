/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recorder/find.h - what /proc tells of processes and of the memory that they hold. */
#ifndef TTI_RECORDER_FIND_H
#define TTI_RECORDER_FIND_H

#include <stdbool.h>
#include <stdint.h>

/** When a process began, in the kernel's ticks since boot: with its number it names one process. 0: there is none.
 * @param pid  0: this one */
uint64_t tti_process_began(int64_t pid);

/** What it is at, as /proc/PID/stat has it: 'T' is stopped by a signal; '\0': there is none. */
char tti_process_letter(int64_t pid);

/** The number that a process has here which sees itself as inner, in a container maybe, and began then; 0: it is gone, or
 * nowhere to be seen.
 * @param state_out  as /proc/PID/stat has it */
int64_t tti_process_seen_here(int64_t inner, uint64_t began, char *state_out);

/** Whether an open descriptor can be a recorder's memory, and may be mapped: nobody can make it shorter. */
bool tti_recorder_is_memory(int fd);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recorder/memory.h - what those share who make, take and find the memory of recorders. */
#ifndef TTI_RECORDER_MEMORY_H
#define TTI_RECORDER_MEMORY_H

#include "recorder/recorder.h"

#define TTI_RECORDER_NAME "tutti-recorder" /* what a memfd is called in /proc/PID/fd */

/** Memory for a process that is going to be started; its descriptor is closed on exec, and the caller's. -1: no
 * recorder is wanted.
 * @errors TUTTI_E_ARG  a variable is wrong; TUTTI_E_NOMEM, TUTTI_E_IO */
tutti_status tti_recorder_prepare(int *fd_out);

/** Note two clocks at one moment, for readers who cannot ask this machine. Now and then; any thread. */
void tti_recorder_note_clock(tti_ring *ring);

#endif

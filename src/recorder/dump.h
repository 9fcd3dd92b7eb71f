/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recorder/dump.h - names of dumps, and who writes them. */
#ifndef TTI_RECORDER_DUMP_H
#define TTI_RECORDER_DUMP_H

#include "recorder/recorder.h"

/* Of one process, after failures. */
enum { TTI_DUMPS_MAX = 8 };

/** What dumps are called up to the rank; NULL: none were asked for. */
const char *tti_trace_prefix(void);
/** The name of rank's n-th, from 1 on; false: none were asked for, or it is too long. */
bool tti_trace_path(int rank, uint64_t n, const char *suffix, char *path, size_t bytes);

/** In a child of fork(): nothing was dumped by it. */
void tti_dump_begin_anew(void);

/** Write a recorder that was read, of any process, as JSON to its rank's n-th name, and as it is to that name with ".rec" behind
 * it. path_out: the first. The second is a gift: without it there is a warning, and the dump has not failed.
 * @errors TUTTI_E_ARG (no name), TUTTI_E_IO, TUTTI_E_NOMEM */
tutti_status tti_recorder_dump_of(const tutti_recorder *recorder, uint64_t n, char *path_out, size_t bytes);

/** Have the signal of TUTTI_TRACE_SIGNAL, if any, save the ring of this process.
 * @errors TUTTI_E_ARG  a variable is wrong */
tutti_status tti_recorder_listen(int rank);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * base/log.h - what the log and the debug level say to the rest of the library (tti_log() itself stands in
 * tutti/private.h). */
#ifndef TTI_BASE_LOG_H
#define TTI_BASE_LOG_H

#include <stdbool.h>
#include "base/fork.h"
#include <tutti/debug.h>
#include <tutti/private.h>

/** Whether a line of that level would be logged: for lines that cost something to make. */
bool tti_log_wanted(tti_log_level level);

/** Read the variables for threads of ours, which never do; nothing on one of them. */
void tti_log_keep_env(void);

/** Whether the variables of log and debug level have values that are known.
 * @errors TUTTI_E_ARG  one has not; the text names it and what it may be */
tutti_status tti_log_check_env(void);

/** The same of one of TUTTI_LOG and TORCH_CPP_LOG_LEVEL, also where the other goes before it. */
tutti_status tti_log_check(const char *name);

/** Read the debug level from the environment.
 * @errors TUTTI_E_ARG  the variable says nothing known */
tutti_status tti_debug_level_read(tutti_debug_level *level_out);

/** Hand a line to every sink. */
void tti_log_deliver(tti_log_level level, const char *line);

/** The table of sinks around a fork. */
tti_fork_part *tti_log_fork_part(void);

#endif

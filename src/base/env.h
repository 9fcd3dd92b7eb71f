/* SPDX-License-Identifier: BSD-3-Clause
 *
 * base/env.h - the table of environment variables (tti_env() itself stands in tutti/private.h). */
#ifndef TTI_BASE_ENV_H
#define TTI_BASE_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tutti/status.h>

typedef struct tti_env_entry {
    const char *name;
    const char *value; /* when unset or empty; NULL: none */
    const char *what;
} tti_env_entry;

const tti_env_entry *tti_env_table(size_t *n_out);

/** A whole number within [min, max]; TUTTI_E_ARG names the variable when unset or anything else. */
tutti_status tti_env_int(const char *name, int64_t min, int64_t max, int64_t *value_out);

/** What time-out 0 of groups and futures means: TUTTI_TIMEOUT_MS, -1 for none.
 * @errors TUTTI_E_ARG  the variable is no time-out */
tutti_status tti_env_timeout(int64_t *timeout_ms_out);

/** A yes (1, true, yes, t, y) or a no (0, false, no, f, n), in any case; unset without a default is a no.
 * @errors TUTTI_E_ARG  anything else */
tutti_status tti_env_flag(const char *name, bool *value_out);

/** The number of a signal that a program has to spare: USR1, USR2, HUP, QUIT or PROF; 0: it is not set.
 * @errors TUTTI_E_ARG  anything else */
tutti_status tti_env_signal(const char *name, int *number_out);

/** Whether "NAME=value" has a name of ours, TUTTI_..., that is not in the table; then near_out is the one that was
 * probably meant, or NULL. Names TUTTI_TEST_... are free. */
bool tti_env_is_unknown(const char *entry, const char **near_out);

/** Log a warning for each such variable, once in a process. */
void tti_env_tell_unknown(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/private.h - the part of src/base that libtutti_train shares with libtutti.
 *
 * Not for applications: these symbols carry the version node TUTTI_PRIVATE_1 and change without
 * notice. They are exported so that a process has one copy of base, and one last error. */
#ifndef TUTTI_PRIVATE_H
#define TUTTI_PRIVATE_H

#include <stdint.h>
#include <tutti/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Keep the words of a failure as this thread's last error and return status.
 * Whoever first sees a failure calls this, once; everybody above only passes the status on.
 * Lower case, quoted names, units, no full stop; "\n  next: ..." for one next step.
 * @threads any */
TUTTI_API tutti_status tti_fail(tutti_status status, const char *fmt, ...) TUTTI_PRINTF(2, 3);

/** The same for a failed system call: appends ": " and the text of err. The status is
 * TUTTI_E_NOMEM for ENOMEM, EMFILE, ENFILE, ENOSPC, EAGAIN; TUTTI_E_NETWORK for errors that only
 * sockets have; TUTTI_E_IO for everything else.
 * @threads any */
TUTTI_API tutti_status tti_fail_errno(int err, const char *fmt, ...) TUTTI_PRINTF(2, 3);

/** The same with a status of the caller's choosing.
 * @threads any */
TUTTI_API tutti_status tti_fail_errno_as(tutti_status status, int err, const char *fmt, ...)
    TUTTI_PRINTF(3, 4);

/** How often this thread has worded a failure so far: asked before code is called that is not ours, it tells afterwards whether
 * that has.
 * @threads any */
TUTTI_API uint32_t tti_words_said(void);

/** Log levels, most urgent first. */
typedef enum tti_log_level {
    TTI_LOG_ERROR,
    TTI_LOG_WARN,
    TTI_LOG_INFO,
    TTI_LOG_DEBUG,
    TTI_LOG_TRACE
} tti_log_level;

/** Log one line: time, rank, level, message; dropped when the level is above what tutti/debug.h says. It
 * goes to standard error, one write call a line, unless the program has set other sinks.
 * @threads any */
TUTTI_API void tti_log(tti_log_level level, const char *fmt, ...) TUTTI_PRINTF(2, 3);

/** The value of a variable of the table in src/base/env.c: the environment's, else the default,
 * else NULL. An empty variable counts as unset. A name outside of the table is a bug (assert).
 * @threads any, if nobody calls setenv meanwhile */
TUTTI_API const char *tti_env(const char *name);

/** Monotonic time in ns.
 * @threads any */
TUTTI_API int64_t tti_now_ns(void);

#ifdef __cplusplus
}
#endif
#endif

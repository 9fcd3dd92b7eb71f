/* SPDX-License-Identifier: BSD-3-Clause
 *
 * elastic/signals.h - the signals that end a job, as bytes in a pipe while a launch runs. */
#ifndef TTI_ELASTIC_SIGNALS_H
#define TTI_ELASTIC_SIGNALS_H

#include <tutti/status.h>

/** Take SIGINT, SIGTERM, SIGHUP and SIGQUIT; also ignore SIGPIPE, and let children be waited for. One
 * that the process was told to ignore stays ignored, but for SIGTERM: so nohup works.
 * @param fd_out  readable when a signal has come
 * @errors TUTTI_E_STATE  a launch runs in this process already; TUTTI_E_NOMEM */
tutti_status tti_signals_take(int *fd_out);

/** The next signal that has come, or 0. */
int tti_signals_next(int fd);

/** Put everything back as it was. */
void tti_signals_give_back(int fd);

/** In a child between fork() and exec, with all signals blocked: forget the handlers, and unblock
 * everything, so that a rank can be ended by a signal whoever started it. Async-signal-safe. */
void tti_signals_in_child(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * future/future.h - futures for those who make them. */
#ifndef TTI_FUTURE_FUTURE_H
#define TTI_FUTURE_FUTURE_H

#include "base/port.h"
#include <tutti/future.h>

typedef struct tti_future_call tti_future_call;

/** A function that may be attached later without anything that can fail.
 * @errors TUTTI_E_NOMEM */
tutti_status tti_future_call_create(tutti_future_done_fn fn, void *ctx, tti_future_call **call_out);
void         tti_future_call_free(tti_future_call *call);
/** tutti_future_add_done_callback(), which takes call over. */
void tti_future_attach(tutti_future *future, tti_future_call *call);

/** tutti_future_create() with a port to wait through. */
tutti_status tti_future_create_on(tti_port *port, tutti_future **future_out);
/** Whether it is complete at deadline_ns. */
bool tti_future_await(tutti_future *future, int64_t deadline_ns);
/** What a complete future was completed with, worded again for this thread. */
tutti_status tti_future_outcome(const tutti_future *future);
/** How long a wait of timeout_ms of the caller's may be: TUTTI_TIMEOUT_MS for 0.
 * @errors TUTTI_E_ARG */
tutti_status tti_future_deadline(tutti_future *future, int64_t timeout_ms, int64_t *deadline_ns_out);

/** Whether future is this process's own, and not its parent's from before a fork.
 * @errors TUTTI_E_STATE  it is not; what is for words */
tutti_status tti_future_check_own(const tutti_future *future, const char *what);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * base/doubt.h - waits that may come to be in vain before their time is up.
 *
 * Why     Who meets others in a store waits for what any of them has still to do, in many places: for a connection, a hello,
 *         a reply, a piece of memory. A process that is stopped ends none of these waits. What tells of that lies elsewhere,
 *         with whoever knows the members from before.
 * How     That one says, for the calling thread, how it is found out. The waits of the rooms above poll by tti_doubt_poll(),
 *         which asks a few times in a heartbeat, and fail by tti_doubt_fail() when it is so: not as time-outs, which are
 *         waited for again. Nobody else pays more for it than a look at a variable of the thread.
 * True    Of the thread, as the waits are: whoever asks is the one who has said what to ask. Fibers have their own
 *         (rehearse/fiber.c). */
#ifndef TTI_BASE_DOUBT_H
#define TTI_BASE_DOUBT_H

#include <stdbool.h>
#include "base/port.h"
#include <tutti/status.h>

typedef struct tti_doubt {
    bool (*is_vain)(void *context); /* may not wait or fail; once true it stays true */
    void *context;
} tti_doubt;

/** Waits of this thread may be in vain from here on; NULL: not any more. Borrowed until then. */
void tti_doubt_waits(const tti_doubt *doubt);
/** Whether what this thread waits for will not come. False without a doubt. */
bool tti_doubt_is_vain(void);
/** The port's poll, which also ends, with nothing got, when the wait is in vain. */
int tti_doubt_poll(tti_port *port, tti_poll *set, int n, int64_t until_ns);
/** Fail because it is: TUTTI_E_NETWORK. who: what was waited for, "store 127.0.0.1:4711". */
tutti_status tti_doubt_fail(const char *who);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group/streamed.h - calls that a backend begins in the order of a device's streams (tutti/stream.h). */
#ifndef TTI_GROUP_STREAMED_H
#define TTI_GROUP_STREAMED_H

#include "group/group.h"

/** The ticket of an asynchronous call, held by all its works. */
typedef struct tti_streamed tti_streamed;

/** Whether calls of a device kind go by streams in this group. */
static inline bool tti_is_streamed(const tutti_group *group, tutti_device_type device)
{
    return device != TUTTI_CPU && group->routes[device].ops->streams != NULL;
}

/** tti_queue_run() for such a call: issued, begun, and followed by this thread's stream. */
tutti_status tti_streamed_run(tutti_group *group, tutti_call *call);

/** A work of such a call is issued on this thread: mark its place. Nobody else knows the work yet. */
tutti_status tti_streamed_issue(tutti_group *group, tutti_work *work);

/** One more work that ends with it; NULL gives NULL. */
tti_streamed *tti_streamed_retain(tti_streamed *s);
void          tti_streamed_drop(tti_streamed *s);

/** Whether the device is through. */
bool tti_streamed_ended(const tti_streamed *s);
/** What tutti_work_wait_for() does once the device has been told: 0 lets this thread's stream wait, but for a barrier.
 * TUTTI_E_TIMEOUT while the device is not through: this wait's own time is up. No lock held. */
tutti_status tti_streamed_wait(const tti_streamed *s, int64_t timeout_ms);
/** What it came to, once it has ended. */
tutti_status tti_streamed_outcome(const tti_streamed *s);

#endif

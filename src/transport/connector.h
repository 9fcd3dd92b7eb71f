/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/connector.h - the thread that makes and takes the TCP connections of a messenger. */
#ifndef TTI_TRANSPORT_CONNECTOR_H
#define TTI_TRANSPORT_CONNECTOR_H

#include "transport/messenger_core.h"

/** How long a receiver waits for the sender to connect before it does so itself. */
#define TTI_HEAD_START_NS (20 * TTI_MS)

/** Make the messenger's connector, which uses its lanes and lock until tti_connector_close(); that is due
 * after a failure, too. */
tutti_status tti_connector_open(tti_messenger *m);
/** End it, and every connection that is not made yet. Without the lock; NULL is fine. */
void tti_connector_close(tti_connector *connector);

/* With the messenger's lock held: */

/** Something needs the way to lane's peer: let it be made, if it is not, by in_ns from now. */
void tti_want_lane(tti_messenger *m, tti_lane *lane, int64_t in_ns);
/** The same for whomever a receive waits for. */
void tti_want_sender(tti_messenger *m, const tti_request *receive);
/** Whether rank may send what a receive waits for. */
bool tti_may_send(const tti_messenger *m, const tti_request *receive, int rank);
/** Requests were ended: attempts that nothing needs any more may go. */
void tti_want_less(tti_messenger *m);

#endif

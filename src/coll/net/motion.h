/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/net/motion.h - the messages of a chunk, and the words of what goes wrong with them. Between run.c, motion.c and
 * words.c. */
#ifndef TTI_COLL_NET_MOTION_H
#define TTI_COLL_NET_MOTION_H

#include "coll/net/run.h"

/** Set a chunk that was made into motion: ask for what it needs first. */
tutti_status tti_motion_begin(const tti_net *net, tti_chunk *chunk);
/** Go on with a chunk as far as that waits for nobody. */
tutti_status tti_motion_go_on(const tti_net *net, tti_chunk *chunk);
/** Whether all its phases are over; and all its messages posted, and its sends ended. */
bool tti_motion_is_over(const tti_chunk *chunk);
bool tti_motion_has_given(const tti_chunk *chunk);
/** What the chunk needs next: a receive or a send that has not ended. NULL: nothing. */
tti_request *tti_motion_pending(const tti_chunk *chunk);
/** Whose message that is, a group rank; -1: it is a send, which may end although nobody comes. */
int tti_motion_awaited(const tti_chunk *chunk);
/** Wait until none of its messages is under way, and drop them. */
void tti_motion_let_go(tti_chunk *chunk);

/** The receives and sends that the chunk's phase still needs are [n_received, end) and [n_sent, n_sending). */
int tti_motion_recvs_end(const tti_chunk *chunk);

/** The call has timed out. */
tutti_status tti_net_fail_timeout(const tti_net *net);
/** A message of the chunk to or from a group rank has ended with st, whose words are this thread's last error. */
tutti_status tti_net_fail_message(const tti_net *net, const tti_request *request, int peer, tutti_status st);

#endif

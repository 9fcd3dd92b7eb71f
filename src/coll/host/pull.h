/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/host/pull.h - reading another member's memory through the kernel: one copy instead of two.
 *
 * An operation is of two rounds. In the first each member shows where its buffers are and reads what it needs
 * of the others'; in the second all say that they have read, and whoever was read from waits for that. */
#ifndef TTI_COLL_HOST_PULL_H
#define TTI_COLL_HOST_PULL_H

#include "coll/host/channel.h"

enum { TTI_HOST_PULL_ROUNDS = 2 };

/** When the channel is connected: see which members' memory this rank can read, and tell. */
void tti_host_pull_probe(tti_host_channel *channel, const tti_join *joins);
/** Whether every member can read the memory of every other, which is the same on all of them. Once it waits until
 * all have told. */
tutti_status tti_host_pull_ready(tti_host_channel *channel, bool *ready_out);

/** Show the others n addresses, at most one for each member. Room for them is made before. */
tutti_status tti_host_pull_show(tti_host_channel *channel, const void *const *addresses, int n);
/** The i-th address that rank shows, once it does. */
tutti_status tti_host_pull_shown(tti_host_channel *channel, int rank, int i, uint64_t *address_out);
/** Copy bytes at an address of rank's memory. */
tutti_status tti_host_pull(tti_host_channel *channel, int rank, uint64_t from, void *to, size_t bytes);

/** This rank has read all it needs. Until all others have (reader -1), or reader has, or without waiting if nobody
 * reads from this rank (reader is itself). Fails if a member has failed before this rank had read. */
tutti_status tti_host_pull_end(tti_host_channel *channel, int reader);

#endif

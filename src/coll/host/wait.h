/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/host/wait.h - waiting for a word of another member, and what is looked at meanwhile. */
#ifndef TTI_COLL_HOST_WAIT_H
#define TTI_COLL_HOST_WAIT_H

#include "coll/host/channel.h"

/** How to wait if the host's ranks are more than its cores, and if not. */
tti_host_patience tti_host_patience_of(bool crowded);
/** How to wait in the calls that follow: beside what the program computes, or as settled for its own threads. */
void tti_host_wait_in_background(tti_host_channel *channel, bool in_background);

/** Until rank's counter is at least value, or the word of its place is value. */
tutti_status tti_host_wait(tti_host_channel *channel, int rank, tti_counter_kind kind,
                           uint64_t value);

/** Store value, with release order, in a word of this rank's own, and wake whoever sleeps on it. */
void tti_host_store(const tti_host_channel *channel, tti_host_word *word, _Atomic uint32_t *waiters,
                    uint64_t value);
/** Wake whoever waits for rank, to look around. Any thread. */
void tti_host_wake(tti_host_channel *channel, int rank);

/** Whether rank's counter is at least value, or the word of its place is value. */
bool tti_host_has_come(const tti_host_channel *channel, int rank, tti_counter_kind kind, uint64_t value);

/** While rank's counter is awaited: whether the wait makes sense any longer. TUTTI_OK, or why not,
 * in words, the others told. */
tutti_status tti_host_look(tti_host_channel *channel, int rank, tti_counter_kind kind,
                           uint64_t value);
/** A wait that was looked around in has ended, one way or the other. */
void tti_host_end_wait(tti_host_channel *channel);
/** When a call is entered: TUTTI_OK, or what a member has failed with that has not gone beyond it. */
tutti_status tti_host_look_back(tti_host_channel *channel);
/** Whether rank has entered the call of number seq. */
bool tti_host_entered(const tti_host_channel *channel, int rank, uint64_t seq);
/** TUTTI_E_MISMATCH in words, the others told, if rank has called something else in a call that this rank has entered,
 * and in which it is not known yet to have called the same. */
tutti_status tti_host_compare(tti_host_channel *channel, int rank);

#endif

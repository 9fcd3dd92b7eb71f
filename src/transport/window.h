/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/window.h - memory of one member that the others of a group may read and write, and signals.
 *
 * Peers are mesh ranks, this member itself included. A window is opened by each member, cards are exchanged,
 * and it is attached; peers that have attached may use it from then on. What begins here ends as a request of
 * the messenger; request_out gets NULL where it is done already. One lock-free path inside a host, messages
 * between hosts; window.c has the rules. */
#ifndef TTI_TRANSPORT_WINDOW_H
#define TTI_TRANSPORT_WINDOW_H

#include "transport/messenger.h"

/** What the others need to know. Crosses processes and hosts. */
typedef struct tti_window_card {
    uint64_t bytes;
    uint64_t offset;  /* in the registered memory of the member's process */
    uint64_t control; /* offset of the window's control block in the member's heap */
    uint64_t zero;
} tti_window_card;

_Static_assert(sizeof(tti_window_card) == 32, "the card crosses processes and hosts");

/** Open this member's part of window id of a group that it has entered. data is registered memory, and borrowed
 * until the window is closed; bytes may be 0.
 * @errors TUTTI_E_ARG, TUTTI_E_STATE  as tti_registered_lend()
 *         TUTTI_E_NOMEM */
tutti_status tti_window_open(tti_messenger *messenger, uint32_t group, uint32_t id, const int *ranks, int n_ranks,
                             void *data, size_t bytes, tti_window_card *card_out, tti_window **window_out);
/** cards[n_ranks], in the order of open's ranks. Every member has opened.
 * @errors TUTTI_E_AUTH  a card of a member of this host points outside of its memory */
tutti_status tti_window_attach(tti_window *window, const tti_window_card *cards);
/** agreed: every member has ended what it does with the window. Else the memory is cut off from the others
 * first. Requests that wait for signals end with TUTTI_E_STATE. NULL is fine. Not while a thread is inside
 * another call on the window. */
void tti_window_close(tti_window *window, bool agreed);

/** The caller has checked offset and bytes against what the peer's card says. data is borrowed until the request
 * has ended.
 * @errors what finished the group */
tutti_status tti_window_put(tti_window *window, int peer, uint64_t offset, const void *data, size_t bytes,
                            tti_request **request_out);
tutti_status tti_window_get(tti_window *window, int peer, uint64_t offset, void *data, size_t bytes,
                            tti_request **request_out);
/** Count one up at peer, after every put of this member to it. */
tutti_status tti_window_signal(tti_window *window, int peer);
/** Take one of peer's signals, waiting for it. Those who wait are served in order. */
tutti_status tti_window_wait_signal(tti_window *window, int peer, tti_request **request_out);
/** Give up a request that waits for a signal: true, and none was taken; or it has ended. */
bool tti_window_cancel(tti_window *window, tti_request *request);
/** Ends when every put of this member to peer is in the peer's memory. */
tutti_status tti_window_flush(tti_window *window, int peer, tti_request **request_out);

/** Whether the peer is on this host. */
bool tti_window_is_direct(const tti_window *window, int peer);
/** How many bytes the peer's card says that it has; on this host they are there. */
size_t tti_window_bytes(const tti_window *window, int peer);
/** The peer's memory; NULL unless it is on this host, and has bytes. Valid until the window is closed. */
void *tti_window_memory(tti_window *window, int peer);

#endif

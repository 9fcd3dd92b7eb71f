/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/window.h - one-sided access: a rank reads and writes memory of others, who make no call for it.
 *
 * A window is made by all members of a group. Each may register a piece of tutti_alloc()'s memory in it, and the
 * others put into it and get from it by element offsets. Inside a host that is a copy by the one who calls; between
 * hosts the target's library serves it while the target computes.
 *
 * What is visible when
 *
 * - A put that has returned, or whose work is complete, has read its buffer: it may be reused. The target has it
 *   when one of the following says so.
 * - tutti_window_signal(): whoever takes the signal sees what the same rank put to it before. Signals are counted,
 *   and each wait takes one.
 * - tutti_window_flush(): when it returns, the target's memory has what this rank put there before. Needed before
 *   a third rank is told, by whatever means, a barrier of the group included.
 * - A get sees what the target's own program stored before it told this rank so, for example by a signal, and what
 *   this rank put before.
 * - Puts and gets of several ranks, or of the target's program, that touch the same elements at the same time
 *   without such an order are a race, as between threads: any bytes may result.
 *
 * Peers are global ranks, this rank itself included. Offsets and counts are elements of the window's dtype. Calls
 * wait at most the group's time-out; a put, get or flush that runs into it ends the group, because memory would
 * stay in use. When the group fails or is destroyed, its windows are finished, and this rank's memory is cut off
 * from the others before the call that reports it returns: what a stopped process writes later goes nowhere.
 * That memory keeps address and contents as they were then, and is ordinary from there on (tutti/memory.h). */
#ifndef TUTTI_WINDOW_H
#define TUTTI_WINDOW_H

#include <tutti/group.h>
#include <tutti/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One rank's handle of a window. */
typedef struct tutti_window tutti_window;

/** How a peer's memory is reached. */
typedef enum tutti_window_access {
    TUTTI_WINDOW_UNIFIED = 0, /* directly: it is on this host; tutti_window_map_remote() gives a pointer */
    TUTTI_WINDOW_SEPARATE = 1 /* by messages */
} tutti_window_access;

/** What a peer has registered. */
typedef struct tutti_window_attr {
    tutti_window_access access;
    int64_t             count;
    tutti_dtype         dtype;
} tutti_window_attr;

/** Make a window. Collective.
 *
 * @param buf         this rank's part, as in tutti_window_register(). NULL, on all ranks: nothing is registered yet
 * @param window_out  to be freed by tutti_window_free(); NULL for a rank that is no member
 *
 * @errors   TUTTI_E_UNSUPPORTED  the group's backend has no windows
 *           else as tutti_window_register()
 * @threads  any; not while another thread issues collectives on the group
 * @source   torch.distributed.ProcessGroup.new_window */
TUTTI_API tutti_status tutti_window_create(const tutti_span *buf, tutti_group *group, tutti_window **window_out);

/** Register this rank's part. Collective: when it returns, all members' parts can be reached.
 *
 * @param buf  memory of tutti_alloc(), or part of it, that stands in no other window; borrowed until
 *             tutti_window_deregister(). Counts may differ between ranks, 0 is legal; one dtype on all ranks
 *
 * @shapes   [count of this rank]
 * @errors   TUTTI_E_ARG       not registered memory: ordinary buffers are refused, and not copied
 *           TUTTI_E_STATE     it, or the rest of what tutti_alloc() gave with it, stands in a window already; or
 *                             this window has memory already
 *           TUTTI_E_MISMATCH  dtypes differ between ranks
 *           If one rank fails so, all ranks get that status, with its words, and nothing is registered; the group
 *           goes on. Else as a collective's.
 * @threads  one at a time per window; not while another thread issues collectives on the group
 * @cost     two small all_gathers
 * @source   window.tensor_register of torch.distributed.ProcessGroup.new_window (owning=False) */
TUTTI_API tutti_status tutti_window_register(tutti_window *window, tutti_span buf);

/** Take this rank's part back. Collective: when it returns, nobody reaches it any more. Works on the window have
 * been waited for; pointers of tutti_window_map_remote() must not be used from the call on.
 *
 * @errors   TUTTI_E_STATE  nothing is registered
 *           else as a collective's: then the memory is cut off from the others, see above
 * @threads  one at a time per window, while nobody uses it; not while another thread issues collectives on the group
 * @cost     a flush to each rank that this one has put to, and a barrier
 * @source   window.tensor_deregister of torch.distributed.ProcessGroup.new_window */
TUTTI_API tutti_status tutti_window_deregister(tutti_window *window);

/** Copy buf into a peer's part.
 *
 * @param buf     any memory, also not registered; of the window's dtype
 * @param peer    global rank
 * @param offset  element of the peer's part that buf[0] goes to
 *
 * @shapes   [n] -> peer's [offset, offset + n)
 * @errors   TUTTI_E_ARG    the peer is no member; [offset, offset + n) is not inside of what it registered; another
 *                          dtype
 *           TUTTI_E_STATE  nothing is registered, or the group was destroyed
 *           TUTTI_E_PEER   the peer is gone; inside a host it is not asked for signs of life: tutti_window_flush() does
 * @threads  any, several at once
 * @cost     inside a host one copy by the caller; between hosts one message
 * @source   window.put of torch.distributed.ProcessGroup.new_window */
TUTTI_API tutti_status tutti_window_put(tutti_window *window, tutti_span buf, int peer, int64_t offset);
/** tutti_window_put, not waited for. The work is complete when buf may be reused, inside a host at once.
 * @source window.put(async_op=True) of torch.distributed.ProcessGroup.new_window */
TUTTI_API tutti_status tutti_window_put_async(tutti_window *window, tutti_span buf, int peer, int64_t offset,
                                              tutti_work **work_out);

/** Copy from a peer's part into buf. Arguments, errors and cost as tutti_window_put(); between hosts one message each
 * way, and a copy on the peer.
 * @threads any, several at once
 * @source  ours */
TUTTI_API tutti_status tutti_window_get(tutti_window *window, tutti_span buf, int peer, int64_t offset);
/** tutti_window_get, not waited for; buf is borrowed until the work is complete, and its result.
 * @source ours */
TUTTI_API tutti_status tutti_window_get_async(tutti_window *window, tutti_span buf, int peer, int64_t offset,
                                              tutti_work **work_out);

/** Count one signal up at a peer, behind this rank's puts to it. Waits for nobody.
 *
 * @errors   as tutti_window_put()
 * @threads  any, several at once
 * @source   window.signal of torch.distributed.ProcessGroup.new_window (which returns a work) */
TUTTI_API tutti_status tutti_window_signal(tutti_window *window, int peer);

/** Take one of a peer's signals, waiting for it.
 *
 * @param timeout_ms  0: the group's; TUTTI_INFINITE: no limit, but a peer's death ends it
 *
 * @errors   TUTTI_E_TIMEOUT  none came; none is taken, and the group goes on
 *           TUTTI_E_PEER     the peer is gone, and all signals that it sent were taken
 *           TUTTI_E_ARG, TUTTI_E_STATE as tutti_window_put()
 * @threads  any, several at once: they are served in order
 * @source   window.wait_signal of torch.distributed.ProcessGroup.new_window */
TUTTI_API tutti_status tutti_window_wait_signal(tutti_window *window, int peer, int64_t timeout_ms);
/** tutti_window_wait_signal, not waited for: the work is complete when a signal was taken. A wait for the work that
 * runs out of time leaves it under way.
 * @source window.wait_signal(async_op=True) of torch.distributed.ProcessGroup.new_window */
TUTTI_API tutti_status tutti_window_wait_signal_async(tutti_window *window, int peer, tutti_work **work_out);

/** Wait until what this rank has put to a peer is in its memory.
 *
 * @param peer  global rank; -1: all members
 *
 * @errors   TUTTI_E_PEER  the peer is gone
 *           else as tutti_window_put()
 * @threads  any, several at once
 * @cost     inside a host one system call; between hosts, if this rank has put or signalled, a message each way
 * @source   ours */
TUTTI_API tutti_status tutti_window_flush(tutti_window *window, int peer);

/** A pointer to a peer's part, to load and store directly.
 *
 * @param span_out  valid until this rank calls tutti_window_deregister() or tutti_window_free(), or the group ends. If the group
 *                  fails on the peer, it leads to memory that nobody reads any more
 *
 * @errors   TUTTI_E_UNSUPPORTED  the peer is on another host
 *           else as tutti_window_put()
 * @threads  any; ordering loads and stores is the program's, with atomics or tutti_window_signal()
 * @source   window.map_remote_tensor of torch.distributed.ProcessGroup.new_window */
TUTTI_API tutti_status tutti_window_map_remote(tutti_window *window, int peer, tutti_span *span_out);

/** What a peer has registered, and how it is reached.
 * @errors  TUTTI_E_ARG, TUTTI_E_STATE as tutti_window_put()
 * @threads any
 * @source  window.get_attr of torch.distributed.ProcessGroup.new_window */
TUTTI_API tutti_status tutti_window_get_attr(tutti_window *window, int peer, tutti_window_attr *attr_out);

/** End a window. Collective while something is registered and the group is alive: then it deregisters first. A local
 * call else. The handle is gone whatever this returns. NULL is fine.
 *
 * @errors   as tutti_window_deregister()
 * @threads  once; nobody uses the window any more
 * @source   ours: torch's object ends with its last reference */
TUTTI_API tutti_status tutti_window_free(tutti_window *window);

#ifdef __cplusplus
}
#endif
#endif

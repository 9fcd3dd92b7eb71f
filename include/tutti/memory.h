/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/memory.h - registered memory: buffers that other ranks may be given access to.
 *
 * It comes out of one heap of this process, which the processes of this host can map. It is memory like any
 * other until it stands in a window (tutti/window.h), or a collective is under way on it; no other rank writes into
 * ordinary buffers, ever.
 *
 * Collectives are fastest on it. Where all members of a group are on one host, and the buffers of all of them lie in
 * registered memory, members read and write each other's buffers directly, and each byte goes through the cores once
 * instead of through shared slots: from 64 KiB on, reductions and broadcasts of two ranks were measured to take a sixth
 * to two thirds of the time that they take on ordinary memory. Nothing has to be said: a group looks for it from its second call on after each of
 * its ranks has taken some, in calls of more than a few KiB. A buffer may begin anywhere, and several may lie in one
 * piece. What must lie there, of each rank:
 *
 *     all_reduce                  buf
 *     reduce, broadcast           buf, of all ranks
 *     all_gather                  in
 *     gather, scatter             the root's list
 *     reduce_scatter, all_to_all  in
 *
 * The results have the same bits as on ordinary memory. Premultiplied sums, several buffers at once, and memory that
 * stands in a window go through slots all the same. If a collective fails, the ranks that could have written into
 * this rank's buffers are cut off from them before it returns: they are ordinary memory from then on. That is done in
 * whole pages: what another thread stores at that moment into a neighbour on the first or last page may be lost. */
#ifndef TUTTI_MEMORY_H
#define TUTTI_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <tutti/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Take bytes of registered memory, zeroed. A local call: no world is needed, and other ranks do not notice.
 *
 * Memory is taken from the system now: a shortage is an error here, not a killed process later. After fork()
 * parent and child see the same memory; only the parent can free it.
 *
 * @param bytes    1 or more
 * @param ptr_out  aligned to a page (4096), from 2 MiB on to 2 MiB; to be freed by tutti_free()
 *
 * @units    bytes
 * @errors   TUTTI_E_ARG    bytes is 0, or ptr_out is NULL
 *           TUTTI_E_NOMEM  the system, or the heap, has no room; the text says how much is in use
 * @threads  any
 * @cost     whole pages and a few system calls, one more for every 2 MiB: for buffers, not for small objects
 * @source   torch.distributed._symmetric_memory.empty (a collective there) */
TUTTI_API tutti_status tutti_alloc(size_t bytes, void **ptr_out);

/** Give registered memory back. NULL is fine. As with any buffer, not before the works that were given it are complete:
 * what other ranks are just reading or writing is noticed and refused, what a work has still to do with it is not.
 *
 * @param ptr  what tutti_alloc() gave
 *
 * @errors   TUTTI_E_ARG    ptr is nothing that tutti_alloc() gave to this process, or it was freed already
 *           TUTTI_E_STATE  it stands in a window: tutti_window_deregister() first; or ranks are at work on it
 * @threads  any
 * @source   ours */
TUTTI_API tutti_status tutti_free(void *ptr);

/** Whether [ptr, ptr + bytes) lies inside one piece of registered memory. Memory that other ranks could
 * have written to when its group failed, in a window or a collective, is not registered any more: it keeps its contents
 * and its address, but other ranks are cut off from it.
 * @threads  any
 * @source   ours */
TUTTI_API bool tutti_is_registered(const void *ptr, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/memory.h - registered memory: buffers that other ranks may be given access to.
 *
 * It comes out of one heap of this process, which the processes of this host can map. It is memory like any
 * other until it stands in a window (tutti/window.h); no other rank writes into ordinary buffers, ever. */
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
 * @cost     whole pages and two system calls: for buffers, not for small objects
 * @source   torch.distributed._symmetric_memory.empty (a collective there) */
TUTTI_API tutti_status tutti_alloc(size_t bytes, void **ptr_out);

/** Give registered memory back. NULL is fine.
 *
 * @param ptr  what tutti_alloc() gave
 *
 * @errors   TUTTI_E_ARG    ptr is nothing that tutti_alloc() gave to this process, or it was freed already
 *           TUTTI_E_STATE  it stands in a window: tutti_window_deregister() first
 * @threads  any
 * @source   ours */
TUTTI_API tutti_status tutti_free(void *ptr);

/** Whether [ptr, ptr + bytes) lies inside one piece of registered memory. Memory that stood in a window when
 * its group failed is not registered any more: it keeps its contents and its address, but other ranks are cut
 * off from it.
 * @threads  any
 * @source   ours */
TUTTI_API bool tutti_is_registered(const void *ptr, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif

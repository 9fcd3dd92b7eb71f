/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/shm/bulk_ring.h - the bytes of large payloads, from one member to another of its host.
 *
 * One writer, one reader, both copying at the same time. bulk_ring.c has the memory order. */
#ifndef TTI_TRANSPORT_SHM_BULK_RING_H
#define TTI_TRANSPORT_SHM_BULK_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include "transport/heap.h"

/** In the writer's heap. */
typedef struct tti_bulk_ring {
    _Alignas(TTI_LINE) _Atomic uint64_t tail; /* written by the writer */
    _Alignas(TTI_LINE) _Atomic uint64_t head; /* written by the reader */
    _Alignas(TTI_LINE) uint8_t data[];
} tti_bulk_ring;

/** One end of it. */
typedef struct tti_bulk_end {
    tti_bulk_ring *ring; /* NULL: not made, or not found yet */
    size_t         size; /* of data, a power of two; the same at both ends */
    uint64_t       own;  /* tail of the writer, head of the reader: shared memory is not read back */
    bool           fenced; /* publish.h */
} tti_bulk_end;

/** How large the rings between n members of a host are. */
size_t tti_bulk_size(int n);

/** Write as much as fits, but no more than there is room for when it begins, and tell(ctx) after each piece: how
 * many bytes, -EAGAIN, or -EPROTO if the reader's word is impossible. */
int64_t tti_bulk_put(tti_bulk_end *writer, const void *data, size_t bytes, void (*tell)(void *ctx), void *ctx);
/** Take what is there, at most bytes. As above. */
int64_t tti_bulk_take(tti_bulk_end *reader, void *out, size_t bytes, void (*tell)(void *ctx), void *ctx);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bulk_ring.c - the bytes of large payloads, from one member to another of its host.
 *
 * Why     Two cores that each make one copy through memory that stays in their caches are faster than one that
 *         makes one from memory that does not; both must be at work all the time.
 * How     A ring of bytes, in pieces: the writer tells of each when it is written, the reader gives each back when
 *         it is read. Pieces of short payloads are shorter, so that the reader begins before the writer is done.
 * Order   Writer: bytes, then tail. Reader: tail, bytes, then head. Writer: head before it writes over what was
 *         read. Each word has one writer; both only grow, and tail - head bytes are in the ring.
 * Trust   The other's word is checked: never more than the ring holds. */
#include "transport/shm/bulk_ring.h"

#include <errno.h>
#include <string.h>
#include "transport/shm/publish.h"

enum { PIECE_MIN = 4096, PIECE_MAX = 32 * 1024 };

#define SIZE_MAX_ONE ((size_t)512 << 10)
#define SIZE_MIN_ONE ((size_t)64 << 10)
#define SIZE_ALL ((size_t)16 << 20) /* of what a member writes to all others */

size_t tti_bulk_size(int n)
{
    size_t size = SIZE_MAX_ONE;

    while (size > SIZE_MIN_ONE && size * (size_t)n > SIZE_ALL)
        size /= 2;
    return size;
}

/* A quarter of what is left to do, so that both ends have something to do. */
static size_t piece_of(const tti_bulk_end *e, size_t bytes)
{
    const size_t to_end = e->size - (e->own & (e->size - 1));
    size_t       piece = bytes / 4 / PIECE_MIN * PIECE_MIN;

    piece = piece < PIECE_MIN ? PIECE_MIN : piece > PIECE_MAX ? PIECE_MAX : piece;
    piece = piece < bytes ? piece : bytes;
    return piece < to_end ? piece : to_end;
}

int64_t tti_bulk_put(tti_bulk_end *w, const void *data, size_t bytes, void (*tell)(void *ctx), void *ctx)
{
    const uint64_t used = w->own - atomic_load_explicit(&w->ring->head, memory_order_acquire);
    const uint8_t *from = data;
    size_t         left;

    if (used > w->size)
        return -EPROTO;
    if (bytes > w->size - used)
        bytes = w->size - used;
    for (left = bytes; left > 0;) {
        const size_t piece = piece_of(w, left);

        memcpy(w->ring->data + (w->own & (w->size - 1)), from, piece);
        w->own += piece;
        tti_publish(&w->ring->tail, w->own, w->fenced);
        tell(ctx);
        from += piece;
        left -= piece;
    }
    return bytes > 0 ? (int64_t)bytes : -EAGAIN;
}

int64_t tti_bulk_take(tti_bulk_end *r, void *out, size_t bytes, void (*tell)(void *ctx), void *ctx)
{
    const uint64_t there = atomic_load_explicit(&r->ring->tail, memory_order_acquire) - r->own;
    uint8_t       *to = out;
    size_t         left;

    if (there > r->size)
        return -EPROTO;
    if (bytes > there)
        bytes = (size_t)there;
    for (left = bytes; left > 0;) {
        const size_t piece = piece_of(r, left);

        memcpy(to, r->ring->data + (r->own & (r->size - 1)), piece);
        r->own += piece;
        tti_publish(&r->ring->head, r->own, r->fenced);
        tell(ctx);
        to += piece;
        left -= piece;
    }
    return bytes > 0 ? (int64_t)bytes : -EAGAIN;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ring_link.c - bytes between two processes of one host, through rings in shared memory.
 *
 * How     The ring from rank a to rank b lies in a's heap. a makes it with its first byte to b and
 *         publishes its offset in word b of its heap's directory; b looks there until it is not zero. The
 *         writer owns `tail`, the reader owns `head`; both only grow, and tail - head bytes are in it.
 * Order   Writer: copy bytes, then store tail. Reader: load tail, copy bytes out, then store head.
 *         Writer: load head before it writes over what was read. Each word has one writer, so no
 *         read-modify-write is needed.
 * Sleep   Whoever sleeps sets `sleeping` in its heap's head, then looks once more at all its links, then
 *         polls its bell. Whoever moved a word looks at the other's `sleeping` afterwards and rings. All
 *         these loads and stores are sequentially consistent, so one of the two sees the other's store:
 *         no lost wake-up.
 * Trust   A peer's tail, head and offset are checked (never more than the ring holds, inside its heap)
 *         before they are used; sizes come from constants, never from shared memory.
 * End     A member that leaves sets `closed` in its heap's head. A reader reports the end only after it
 *         has seen closed and then found the ring empty. */
#include "transport/shm/ring_link.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

enum { RING_BYTES = 256 * 1024 };

_Static_assert((RING_BYTES & (RING_BYTES - 1)) == 0, "wrapping an index is a mask");

typedef struct ring {
    _Alignas(TTI_LINE) _Atomic uint64_t tail; /* written by the writer */
    _Alignas(TTI_LINE) _Atomic uint64_t head; /* written by the reader */
    _Alignas(TTI_LINE) uint8_t data[RING_BYTES];
} ring;

typedef struct ring_link {
    tti_link   base;
    tti_port  *port;
    tti_heap  *own, *peer;
    int        own_rank, peer_rank;
    tti_handle peer_bell;
    ring      *out; /* NULL: nothing sent yet */
    ring      *in;  /* NULL: nothing received yet */
    uint64_t   out_at;
    uint64_t   out_tail; /* the writer's own copy: shared memory is not read back */
    uint64_t   in_head;
} ring_link;

static void wake_peer(ring_link *link)
{
    if (atomic_load(&tti_heap_head_of(link->peer)->sleeping) != 0)
        link->port->ops->bell_ring(link->port, link->peer_bell);
}

static int make_out_ring(ring_link *link)
{
    tutti_status st = tti_heap_alloc(link->own, sizeof(ring), &link->out_at);

    if (st != TUTTI_OK)
        return -ENOMEM;
    link->out = tti_heap_at(link->own, link->out_at, sizeof(ring));
    assert(link->out != NULL);
    atomic_store_explicit(&tti_heap_directory(link->own)[link->peer_rank], link->out_at,
                          memory_order_release);
    return 0;
}

/* Copy into the ring at position at, in two pieces where it wraps. */
static void copy_in(ring *r, uint64_t at, const uint8_t *from, size_t bytes)
{
    const size_t start = at & (RING_BYTES - 1);
    const size_t first = bytes < RING_BYTES - start ? bytes : RING_BYTES - start;

    memcpy(r->data + start, from, first);
    memcpy(r->data, from + first, bytes - first);
}

static void copy_out(const ring *r, uint64_t at, uint8_t *to, size_t bytes)
{
    const size_t start = at & (RING_BYTES - 1);
    const size_t first = bytes < RING_BYTES - start ? bytes : RING_BYTES - start;

    memcpy(to, r->data + start, first);
    memcpy(to + first, r->data, bytes - first);
}

static int64_t ring_send(tti_link *base, const tti_part *parts, int n_parts)
{
    ring_link *link = (ring_link *)base;
    uint64_t   used, room;
    int64_t    taken = 0;
    int        i;

    if (link->out == NULL && make_out_ring(link) != 0)
        return -ENOMEM;
    if (atomic_load_explicit(&tti_heap_head_of(link->peer)->closed, memory_order_acquire) != 0)
        return -EPIPE;
    used = link->out_tail - atomic_load(&link->out->head);
    if (used > RING_BYTES)
        return -EPROTO;
    room = RING_BYTES - used;
    for (i = 0; i < n_parts && room > 0; i++) {
        const size_t bytes = parts[i].size < room ? parts[i].size : (size_t)room;

        copy_in(link->out, link->out_tail, parts[i].data, bytes);
        link->out_tail += bytes;
        room -= bytes;
        taken += (int64_t)bytes;
    }
    if (taken == 0)
        return -EAGAIN;
    atomic_store(&link->out->tail, link->out_tail);
    wake_peer(link);
    return taken;
}

/* The peer's ring to this member, once it is there. 0, -EAGAIN, or -EPROTO for an impossible offset. */
static int find_in_ring(ring_link *link)
{
    const uint64_t offset = atomic_load(&tti_heap_directory(link->peer)[link->own_rank]);

    if (offset == 0)
        return -EAGAIN;
    link->in = tti_heap_at(link->peer, offset, sizeof(ring));
    return link->in != NULL ? 0 : -EPROTO;
}

static int64_t take_bytes(ring_link *link, void *out, size_t bytes)
{
    uint64_t there;
    int      err;

    if (link->in == NULL && (err = find_in_ring(link)) != 0)
        return err;
    there = atomic_load(&link->in->tail) - link->in_head;
    if (there > RING_BYTES)
        return -EPROTO;
    if (there == 0)
        return -EAGAIN;
    if (bytes > there)
        bytes = (size_t)there;
    copy_out(link->in, link->in_head, out, bytes);
    link->in_head += bytes;
    atomic_store(&link->in->head, link->in_head);
    wake_peer(link);
    return (int64_t)bytes;
}

static int64_t ring_recv(tti_link *base, void *out, size_t bytes)
{
    ring_link *link = (ring_link *)base;
    int64_t    got = take_bytes(link, out, bytes);

    if (got != -EAGAIN ||
        atomic_load_explicit(&tti_heap_head_of(link->peer)->closed, memory_order_acquire) == 0)
        return got;
    got = take_bytes(link, out, bytes); /* what it wrote before it left */
    return got == -EAGAIN ? 0 : got;
}

static tti_handle ring_handle(const tti_link *base)
{
    (void)base;
    return TTI_NO_HANDLE;
}

static void ring_close(tti_link *base)
{
    free(base); /* the rings go with the heaps: the peer may still be reading */
}

static const tti_link_ops ring_ops = {
    .name = "shm", .send = ring_send, .recv = ring_recv, .handle = ring_handle, .close = ring_close,
};

tutti_status tti_ring_link_open(tti_port *port, tti_heap *own, int own_rank, tti_heap *peer, int peer_rank,
                                tti_handle peer_bell, tti_link **link_out)
{
    ring_link *link = calloc(1, sizeof *link);

    if (link == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the link to rank %d", peer_rank);
    *link = (ring_link){ .base = { .ops = &ring_ops }, .port = port, .own = own, .own_rank = own_rank,
                         .peer = peer, .peer_rank = peer_rank, .peer_bell = peer_bell };
    *link_out = &link->base;
    return TUTTI_OK;
}

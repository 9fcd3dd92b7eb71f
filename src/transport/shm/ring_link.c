/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ring_link.c - frames and payloads between two processes of one host, through rings in shared memory.
 *
 * How     What rank a sends to b lies in two rings in a's heap: frames, with payloads that are small, in one of
 *         lines (line_ring.c), larger payloads in one of bytes (bulk_ring.c). a makes the first with its first
 *         message to b and publishes its offset in word b of its heap's directory; b looks there until it is not
 *         zero. It makes the second with its first large payload, and publishes its offset in the first.
 *         Payloads of some sizes are left where they are, and the receiver is told where (pull.c): what it does not
 *         take there goes through the ring of bytes.
 * Order   A far frame is in the ring of lines before its payload is in the other, and bulk_at is published
 *         before that frame. Payloads follow one another as their frames do.
 * Sleep   Whoever sleeps sets `sleeping` in its heap's head, then looks once more at all its links, then
 *         polls its bell. Whoever moved a word looks at the other's `sleeping` afterwards and rings: no wake-up is
 *         lost (publish.h).
 * Trust   A peer's words and offsets are checked (never more than the ring holds, inside its heap)
 *         before they are used; sizes come from constants, never from shared memory.
 * End     A member that leaves sets `closed` in its heap's head. A reader reports the end only after it
 *         has seen closed and then found the rings empty. */
#include "transport/shm/ring_link.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "transport/shm/bulk_ring.h"
#include "transport/shm/line_ring.h"

typedef struct ring_link {
    tti_link   base;
    tti_port  *port;
    tti_heap  *own, *peer;
    tti_heap_head *peer_head;
    int        own_rank, peer_rank;
    tti_handle peer_bell;
    tti_pull_sizes pulled;
    /* Out; the rings are NULL until something was sent. */
    tti_line_writer out;
    tti_bulk_end    out_bulk;
    tti_offerer     out_offer;
    uint64_t        out_left; /* of a far payload */
    /* In; NULL until something was received. */
    tti_line_reader in;
    tti_bulk_end    in_bulk;
    tti_puller      in_pull;
    tti_frame       in_frame;
    size_t          in_frame_left; /* of in_frame, to hand over */
    uint64_t        in_left;       /* of a far payload */
} ring_link;

static void wake_peer(void *ctx)
{
    ring_link *link = ctx;

    if (atomic_load(&link->peer_head->sleeping) != 0)
        link->port->ops->bell_ring(link->port, link->peer_bell);
}

static bool peer_has_left(const ring_link *link)
{
    return atomic_load_explicit(&link->peer_head->closed, memory_order_acquire) != 0;
}

/* ---- sending --------------------------------------------------------------------------------------- */

static int make_lines(ring_link *link)
{
    uint64_t     at;
    tutti_status st = tti_heap_alloc(link->own, sizeof(tti_line_ring), &at);

    if (st != TUTTI_OK)
        return -ENOMEM;
    link->out.ring = tti_heap_at(link->own, at, sizeof(tti_line_ring));
    assert(link->out.ring != NULL);
    link->out.ring->proof_at = (uint64_t)(uintptr_t)tti_heap_head_of(link->own)->token;
    link->out_offer.word = &link->out.ring->offer;
    atomic_store_explicit(&tti_heap_directory(link->own)[link->peer_rank], at, memory_order_release);
    return 0;
}

static int make_bulk(ring_link *link)
{
    const size_t bytes = sizeof(tti_bulk_ring) + link->out_bulk.size;
    uint64_t     at;
    tutti_status st = tti_heap_alloc(link->own, bytes, &at);

    if (st != TUTTI_OK)
        return -ENOMEM;
    link->out_bulk.ring = tti_heap_at(link->own, at, bytes);
    assert(link->out_bulk.ring != NULL);
    atomic_store_explicit(&link->out.ring->bulk_at, at, memory_order_release);
    return 0;
}

/* What the receiver is told of a payload: where it is, 0 if it comes through the ring. */
static uint64_t offer(ring_link *link, const tti_frame *frame, const tti_part *payload)
{
    if (frame->bytes < link->pulled.min || frame->bytes > link->pulled.max || link->out_offer.refused)
        return 0;
    tti_offer_begin(&link->out_offer, frame->bytes);
    return (uint64_t)(uintptr_t)payload->data;
}

/* A whole frame, and its payload if that is near: bytes, or -errno. */
static int64_t send_frame(ring_link *link, const tti_part *parts, int n_parts)
{
    const tti_frame *frame = parts[0].data;
    const bool       far = !tti_frame_is_near(frame);
    int              err = 0;

    assert(parts[0].size == sizeof *frame);
    if (link->out.ring == NULL)
        err = make_lines(link);
    if (err == 0 && far && link->out_bulk.ring == NULL)
        err = make_bulk(link);
    if (err == 0)
        err = tti_lines_put(&link->out, frame, n_parts > 1 ? parts[1].data : NULL,
                            far ? offer(link, frame, &parts[1]) : 0);
    if (err != 0) {
        tti_offer_undo(&link->out_offer);
        return err;
    }
    wake_peer(link);
    if (!far)
        return (int64_t)(sizeof *frame + frame->bytes);
    link->out_left = frame->bytes;
    return sizeof *frame;
}

/* What the receiver has taken by itself. */
static int64_t look_at_offer(ring_link *link)
{
    const uint64_t more = tti_offer_progress(&link->out_offer);

    link->out_left -= more;
    return more > 0 ? (int64_t)more : -EAGAIN;
}

static int64_t send_bulk(ring_link *link, const tti_part *part)
{
    int64_t taken = look_at_offer(link);

    if (taken > 0 || link->out_offer.open)
        return taken;
    taken = tti_bulk_put(&link->out_bulk, part->data, part->size, wake_peer, link);
    if (taken > 0)
        link->out_left -= (uint64_t)taken;
    return taken;
}

static int64_t ring_send(tti_link *base, const tti_part *parts, int n_parts)
{
    ring_link *link = (ring_link *)base;
    const bool left = peer_has_left(link);
    int64_t    first = 0, more;

    if (left) {
        more = look_at_offer(link); /* it may have taken all there is before it left */
        return more > 0 ? more : -EPIPE;
    }
    if (link->out_left == 0) {
        first = send_frame(link, parts, n_parts);
        if (first < 0 || link->out_left == 0)
            return first;
        parts++;
    }
    more = send_bulk(link, parts);
    if (more >= 0)
        return first + more;
    return first > 0 && more == -EAGAIN ? first : more;
}

static void ring_retract(tti_link *base)
{
    tti_offer_retract(&((ring_link *)base)->out_offer);
}

/* ---- receiving ------------------------------------------------------------------------------------- */

/* The peer's lines to this member, once they are there. 0, -EAGAIN, or -EPROTO for an impossible offset. */
static int find_lines(ring_link *link)
{
    const uint64_t at = atomic_load(&tti_heap_directory(link->peer)[link->own_rank]);

    if (at == 0)
        return -EAGAIN;
    link->in.ring = tti_heap_at(link->peer, at, sizeof(tti_line_ring));
    if (link->in.ring == NULL)
        return -EPROTO;
    link->in_pull.word = &link->in.ring->offer;
    return 0;
}

static int find_bulk(ring_link *link)
{
    const uint64_t at = atomic_load_explicit(&link->in.ring->bulk_at, memory_order_acquire);

    link->in_bulk.ring = tti_heap_at(link->peer, at, sizeof(tti_bulk_ring) + link->in_bulk.size);
    return link->in_bulk.ring != NULL ? 0 : -EPROTO;
}

static void begin_pull(ring_link *link)
{
    const tti_proof proof = { .address = link->in.ring->proof_at, .expected = link->peer_head->token,
                              .bytes = TTI_TOKEN_BYTES };

    tti_pull_begin(&link->in_pull, link->in.address, &proof);
    if (!link->in_pull.open)
        wake_peer(link); /* it was refused */
}

static int next_frame(ring_link *link)
{
    int err = link->in.ring == NULL ? find_lines(link) : 0;

    if (err == 0)
        err = tti_lines_frame(&link->in, &link->in_frame);
    if (err != 0)
        return err;
    link->in_frame_left = sizeof link->in_frame;
    if (tti_frame_is_near(&link->in_frame))
        return 0;
    link->in_left = link->in_frame.bytes;
    link->in_pull.open = false;
    if (link->in.address != 0)
        begin_pull(link);
    return link->in_bulk.ring == NULL ? find_bulk(link) : 0;
}

static int64_t take_frame(ring_link *link, void *out, size_t bytes)
{
    const uint8_t *from = (const uint8_t *)&link->in_frame + sizeof link->in_frame - link->in_frame_left;

    if (bytes > link->in_frame_left)
        bytes = link->in_frame_left;
    memcpy(out, from, bytes);
    link->in_frame_left -= bytes;
    return (int64_t)bytes;
}

static int64_t take_bulk(ring_link *link, void *out, size_t bytes)
{
    int64_t got = 0;

    if (bytes > link->in_left)
        bytes = (size_t)link->in_left;
    if (link->in_pull.open) {
        got = tti_pull(&link->in_pull, out, bytes);
        if (!link->in_pull.open || got == (int64_t)link->in_left)
            wake_peer(link); /* the sender has nothing to do before */
    }
    if (got == 0)
        got = tti_bulk_take(&link->in_bulk, out, bytes, wake_peer, link);
    if (got > 0)
        link->in_left -= (uint64_t)got;
    return got;
}

static int64_t take_near(ring_link *link, void *out, size_t bytes)
{
    const uint64_t told = link->in.told;
    const size_t   got = tti_lines_take(&link->in, out, bytes);

    if (link->in.told != told)
        wake_peer(link);
    return (int64_t)got;
}

static int64_t take_bytes(ring_link *link, void *out, size_t bytes)
{
    uint64_t told;
    int      err;

    if (link->in_frame_left == 0 && link->in.open)
        return take_near(link, out, bytes);
    if (link->in_frame_left == 0 && link->in_left > 0)
        return take_bulk(link, out, bytes);
    if (link->in_frame_left == 0) {
        told = link->in.told;
        err = next_frame(link);
        if (err != 0)
            return err;
        if (link->in.told != told)
            wake_peer(link);
    }
    return take_frame(link, out, bytes);
}

static const tti_frame *ring_next(tti_link *base)
{
    ring_link *link = (ring_link *)base;
    uint64_t   told;

    if (link->in_frame_left == 0 && !link->in.open && link->in_left == 0) {
        told = link->in.told;
        if (next_frame(link) != 0)
            return NULL;
        if (link->in.told != told)
            wake_peer(link);
    }
    return link->in_frame_left == sizeof link->in_frame ? &link->in_frame : NULL;
}

static int64_t ring_body(tti_link *base, void *out, size_t bytes)
{
    ring_link *link = (ring_link *)base;

    link->in_frame_left = 0;
    return link->in.open ? take_near(link, out, bytes) : bytes > 0 ? take_bulk(link, out, bytes) : 0;
}

static int64_t ring_recv(tti_link *base, void *out, size_t bytes)
{
    ring_link *link = (ring_link *)base;
    int64_t    got = take_bytes(link, out, bytes);

    if (got != -EAGAIN || !peer_has_left(link))
        return got;
    got = take_bytes(link, out, bytes); /* what it wrote before it left */
    return got == -EAGAIN ? 0 : got;
}

/* ---- the rest -------------------------------------------------------------------------------------- */

static tti_handle ring_handle(const tti_link *base)
{
    (void)base;
    return TTI_NO_HANDLE;
}

static void ring_close(tti_link *base)
{
    ring_retract(base);
    free(base); /* the rings go with the heaps: the peer may still be reading */
}

/* Seen is what the word said when this end had nothing to do: a change since then is not missed. */
static const _Atomic uint64_t *watch_sending(const ring_link *link, uint64_t *seen_out)
{
    if (link->out.ring == NULL)
        return NULL;
    if (link->out_left > 0 && link->out_offer.open) {
        *seen_out = link->out_offer.seen;
        return link->out_offer.word;
    }
    if (link->out_left > 0) {
        *seen_out = link->out_bulk.own - link->out_bulk.size;
        return &link->out_bulk.ring->head;
    }
    *seen_out = link->out.head;
    return &link->out.ring->head;
}

static const _Atomic uint64_t *watch_receiving(const ring_link *link, uint64_t *seen_out)
{
    *seen_out = 0;
    if (link->in.ring == NULL)
        return &tti_heap_directory(link->peer)[link->own_rank];
    if (link->in_left > 0 && link->in_pull.open) {
        *seen_out = link->in_pull.seen;
        return link->in_pull.word;
    }
    if (link->in_left > 0) {
        *seen_out = link->in_bulk.own;
        return &link->in_bulk.ring->tail;
    }
    *seen_out = link->in.seen;
    return tti_lines_next(&link->in);
}

static const _Atomic uint64_t *ring_watch(tti_link *base, bool for_send, uint64_t *seen_out)
{
    const ring_link *link = (ring_link *)base;

    return for_send ? watch_sending(link, seen_out) : watch_receiving(link, seen_out);
}

static const tti_link_ops ring_ops = {
    .name = "shm", .whole_max = TTI_NEAR_MAX, .send = ring_send, .recv = ring_recv, .handle = ring_handle, .close = ring_close,
    .watch = ring_watch, .retract = ring_retract, .next = ring_next, .body = ring_body,
};

tutti_status tti_ring_link_open(const tti_ring_ends *ends, tti_link **link_out)
{
    ring_link *link = calloc(1, sizeof *link);
    bool       fenced;

    if (link == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the link to rank %d", ends->peer_rank);
    fenced = tti_heap_head_of(ends->own)->fenced != 0 && tti_heap_head_of(ends->peer)->fenced != 0;
    *link = (ring_link){ .base = { .ops = &ring_ops }, .port = ends->port, .own = ends->own,
                         .own_rank = ends->own_rank, .peer = ends->peer,
                         .peer_head = tti_heap_head_of(ends->peer), .peer_rank = ends->peer_rank,
                         .peer_bell = ends->peer_bell, .pulled = ends->pulled,
                         .out = { .fenced = fenced }, .in = { .fenced = fenced },
                         .out_bulk = { .size = ends->bulk_size, .fenced = fenced },
                         .in_bulk = { .size = ends->bulk_size, .fenced = fenced },
                         .in_pull = { .pidfd = ends->peer_pidfd } };
    *link_out = &link->base;
    return TUTTI_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * carried.c - a link of parcels: a stream of bytes over a transport that knows no order and holds nobody back.
 *
 *   parcel  token of the receiver 16, sender's rank 4, version 2, kind 2, number 8, bytes taken so far 8, then bytes
 *   DATA    number n = 0, 1, ...; at least one byte
 *   TELL    no bytes, no number: only what was taken
 *
 * How     What is sent is cut into parcels as it comes; a small message is one, with its frame. Those that come are kept by
 *         number until they are read in their turn: large ones in the transport's own memory where it lends that, small ones
 *         in a copy, as what is lent may be a buffer of many times their size.
 * Window  At most WINDOW bytes of parcels with their heads are sent and not told as taken. So a receiver that computes keeps
 *         so much, and a note of about a head's size for each parcel, and no more, as a socket would. What was taken
 *         stands in every parcel, and in one of its own after TELL bytes. It only grows, so that parcels which overtake each other do no harm.
 * Token   A parcel is a stranger's unless it has the token that this end drew for this peer (pact.c); all 16 bytes are
 *         compared, whatever the first ones are, before anything else is read. Then it is the peer's, and a number or a count
 *         that cannot be breaks the link.
 * Sleep   Who sleeps on the link polls its bell. It is rung by whoever has moved the transport, when there is something to
 *         read, or room for somebody who was refused: once after each time that somebody asked for the bell.
 * End     0 once the peer has said how many parcels there are and all were read. Else the connection tells of its death, and
 *         after GRACE_MS, in which parcels may still come, it is the end: what was sent before a death, a notice above all,
 *         counts. Where the transport is the first to tell, the connection gets as long to say that it is a death: then that
 *         is what is said. A link that is closed says how many it has sent, and stays until the peer has them (carrier.c). */
#include "transport/carried/carried.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "wire/bytes.h"

enum { PARCEL_VERSION = 1, DATA = 1, TELL = 2, MOST = TTI_PARCEL_BYTES - TTI_PARCEL_HEAD };

_Static_assert((int)TTI_CARRIED_WINDOW > (int)TTI_PARCEL_BYTES, "a parcel fits into the window");
_Static_assert(TTI_CARRIED_WINDOW - TTI_CARRIED_TELL > TTI_PARCEL_HEAD, "who waits for room is told before all of it was read");
_Static_assert(sizeof(tti_arrival) <= TTI_PARCEL_HEAD, "the window bounds the notes of what has come, too");

/* ---- those who sleep ---- */

static bool has_data(const tti_carried *link)
{
    return link->first != NULL && link->first->number == link->next;
}

static bool is_over(const tti_carried *link, int64_t since_ns)
{
    return tti_port_now(link->carrier->port) >= since_ns + TTI_CARRIED_GRACE_MS * TTI_MS;
}

/* What recv says when there is nothing to read. */
static int64_t end_of(const tti_carried *link)
{
    if (link->has_end && link->next == link->end)
        return 0;
    if (link->err != 0 && !link->may_be_dead)
        return -link->err;
    if (link->is_cut && (link->err != 0 || is_over(link, link->cut_ns)))
        return link->has_end ? -ECONNRESET : 0;
    return link->err != 0 && is_over(link, link->err_ns) ? -link->err : -EAGAIN;
}

/* Bytes that a parcel may have now, behind its head. */
static uint64_t room(const tti_carried *link)
{
    const uint64_t left = TTI_CARRIED_WINDOW - (link->bytes_sent - link->bytes_taken);

    return left > TTI_PARCEL_HEAD ? left - TTI_PARCEL_HEAD : 0;
}

/* For recv. */
static bool has_news(const tti_carried *link)
{
    return has_data(link) || end_of(link) != -EAGAIN;
}

/* For whoever was refused. */
static bool has_room(const tti_carried *link)
{
    return link->blocked && link->state == TTI_CARRIED_OPEN && room(link) > 0;
}

void tti_carried_tell(tti_carried *link)
{
    if (!link->watched || link->rung || (!has_news(link) && !has_room(link)))
        return;
    link->watched = false;
    link->rung = true;
    link->blocked = false; /* told once: what was to be sent may have been given up */
    link->carrier->port->ops->bell_ring(link->carrier->port, link->bell);
}

void tti_carried_break(tti_carried *link, int err, const char *words)
{
    char reason[64];

    if (link->err != 0)
        return;
    link->err = err;
    link->err_ns = tti_port_now(link->carrier->port);
    snprintf(link->words, sizeof link->words, "%s", words);
    tti_log(link->state == TTI_CARRIED_PARTS ? TTI_LOG_DEBUG : TTI_LOG_INFO, "the way by '%s' to rank %d is broken: %.*s (%s)",
            link->carrier->ops->name, link->peer, (int)strcspn(words, "\n"), words, strerror_r(err, reason, sizeof reason));
    tti_carried_tell(link);
}

/* ---- out ---- */

static void write_head(const tti_carried *link, uint16_t kind, uint64_t number, uint8_t out[TTI_PARCEL_HEAD])
{
    uint8_t *at = out + TTI_CARRIED_TOKEN;

    memcpy(out, link->token_out, TTI_CARRIED_TOKEN);
    at = tti_put_u32(at, (uint32_t)link->carrier->rank);
    at = tti_put_u16(at, PARCEL_VERSION);
    at = tti_put_u16(at, kind);
    at = tti_put_u64(at, number);
    tti_put_u64(at, link->got);
}

/* Bytes of parts from skip on. */
static void gather(const tti_part *parts, int n_parts, size_t skip, uint8_t *out, size_t bytes)
{
    int i;

    for (i = 0; i < n_parts && bytes > 0; i++) {
        const size_t begin = skip < parts[i].size ? skip : parts[i].size;
        const size_t left = parts[i].size - begin;
        const size_t n = left < bytes ? left : bytes;

        if (n > 0)
            memcpy(out, (const uint8_t *)parts[i].data + begin, n);
        out += n;
        bytes -= n;
        skip -= begin;
    }
}

/* 0, or -errno. The parcel is freed when the transport has read it: by the hook, or here. */
static int send_parcel(tti_carried *link, uint16_t kind, const tti_part *parts, int n_parts, size_t skip, size_t bytes)
{
    tti_carrier *c = link->carrier;
    uint8_t     *parcel = malloc(TTI_PARCEL_HEAD + bytes);
    int          sent;

    if (parcel == NULL)
        return -ENOMEM;
    write_head(link, kind, kind == DATA ? link->n_sent : 0, parcel);
    gather(parts, n_parts, skip, parcel + TTI_PARCEL_HEAD, bytes);
    c->n_flying++;
    sent = c->ops->send(link->way, parcel, TTI_PARCEL_HEAD + bytes, parcel);
    if (sent == 0)
        return 0;
    c->n_flying--;
    free(parcel);
    if (sent == 1)
        return 0;
    if (sent != -EAGAIN && link->err == 0) {
        link->may_be_dead = true;
        tti_carried_break(link, sent < 0 ? -sent : EIO,
                          sent < 0 ? "a parcel could not be sent" : "the transport is broken: its 'send' gives neither 1, 0 nor -errno");
    }
    return -EAGAIN; /* what has become of the link is told in its time */
}

/* This thread may not come back for long. The carrier's looks soon; unless it sleeps, it does so anyhow. At once would be a bell
 * for each parcel of many. */
static void leave_flying(tti_carrier *c)
{
    if (c->n_flying > 0 && c->armed)
        tti_carrier_call(c);
}

static size_t bytes_of(const tti_part *parts, int n_parts)
{
    size_t bytes = 0;
    int    i;

    for (i = 0; i < n_parts; i++)
        bytes += parts[i].size;
    return bytes;
}

static int64_t send_parts(tti_carried *link, const tti_part *parts, int n_parts)
{
    const size_t whole = bytes_of(parts, n_parts);
    size_t       done = 0, n;
    int          err = 0;

    while (done < whole && err == 0) {
        n = whole - done < MOST ? whole - done : MOST;
        n = room(link) < n ? (size_t)room(link) : n;
        if (n == 0)
            break;
        err = send_parcel(link, DATA, parts, n_parts, done, n);
        if (err != 0)
            break;
        link->n_sent++;
        link->bytes_sent += TTI_PARCEL_HEAD + n;
        done += n;
    }
    return done > 0 ? (int64_t)done : err != 0 ? err : -EAGAIN;
}

static int64_t carried_send(tti_link *base, const tti_part *parts, int n_parts)
{
    tti_carried *link = (tti_carried *)base;
    tti_carrier *c = link->carrier;
    int64_t      sent;

    tti_lock(&c->lock);
    c->uses++;
    if (link->state == TTI_CARRIED_OPEN && link->err == 0 && room(link) == 0)
        tti_carrier_move(c);
    sent = end_of(link);
    if (sent == 0)
        sent = -EPIPE;
    else if (sent == -EAGAIN && link->state == TTI_CARRIED_OPEN && link->err == 0)
        sent = send_parts(link, parts, n_parts);
    link->blocked = sent < 0 || (size_t)sent < bytes_of(parts, n_parts);
    leave_flying(c);
    tti_unlock(&c->lock);
    return sent;
}

/* ---- in ---- */

static void give_back(tti_carried *link, tti_arrival *arrival)
{
    if (arrival->loan != NULL)
        link->carrier->ops->give_back(link->carrier->transport, arrival->loan);
    free(arrival);
}

void tti_carried_drop_arrivals(tti_carried *link)
{
    tti_arrival *arrival;

    while ((arrival = link->first) != NULL) {
        link->first = arrival->next;
        give_back(link, arrival);
    }
    link->last = NULL;
    link->at = 0;
}

/* In the order of numbers; NULL in place of what stands before it: it is the first. False: there is one of that number. */
static bool insert(tti_carried *link, tti_arrival *arrival)
{
    tti_arrival *before = NULL, *after = link->first;

    if (link->last != NULL && link->last->number < arrival->number) { /* as a rule */
        before = link->last;
        after = NULL;
    }
    while (after != NULL && after->number < arrival->number) {
        before = after;
        after = after->next;
    }
    if (after != NULL && after->number == arrival->number)
        return false;
    arrival->next = after;
    *(before != NULL ? &before->next : &link->first) = arrival;
    if (after == NULL)
        link->last = arrival;
    return true;
}

/* Memory for what has come: the transport's, or a copy. */
static tti_arrival *make_arrival(const uint8_t *data, size_t bytes, uint64_t number, void *loan)
{
    tti_arrival *arrival = malloc(sizeof *arrival + (loan != NULL ? 0 : bytes));

    if (arrival == NULL)
        return NULL;
    *arrival = (tti_arrival){ .number = number, .data = loan != NULL ? data : arrival->copy, .bytes = bytes, .loan = loan };
    if (loan == NULL)
        memcpy(arrival->copy, data, bytes);
    return arrival;
}

/* Every parcel has a head, and a byte at least, so that the window bounds their numbers, too. */
static bool can_be(const tti_carried *link, uint64_t number, size_t bytes)
{
    return bytes > 0 && number >= link->next && number - link->next < TTI_CARRIED_WINDOW / (TTI_PARCEL_HEAD + 1) &&
           link->bytes_arrived + TTI_PARCEL_HEAD + bytes - link->got <= TTI_CARRIED_WINDOW && (!link->has_end || number < link->end);
}

static bool take_data(tti_carried *link, uint64_t number, const uint8_t *data, size_t bytes, void *offered)
{
    void        *loan = bytes >= TTI_CARRIED_LENT_LEAST ? offered : NULL;
    tti_arrival *arrival;

    if (link->state == TTI_CARRIED_PARTS) { /* nobody reads it; but the peer is to know that it is here */
        link->n_arrived++;
        return false;
    }
    if (!can_be(link, number, bytes)) {
        tti_carried_break(link, EPROTO, "a parcel has a number or a length that cannot be");
        return false;
    }
    arrival = make_arrival(data, bytes, number, loan);
    if (arrival == NULL) {
        tti_carried_break(link, ENOMEM, "no memory for a parcel");
        return false;
    }
    if (!insert(link, arrival)) {
        free(arrival);
        tti_carried_break(link, EPROTO, "two parcels have one number");
        return false;
    }
    link->n_arrived++;
    link->bytes_arrived += TTI_PARCEL_HEAD + bytes;
    return loan != NULL;
}

bool tti_carried_take(tti_carried *link, const uint8_t *parcel, size_t bytes, void *loan)
{
    const uint8_t *at = parcel + TTI_CARRIED_TOKEN + 4;
    const uint16_t version = tti_get_u16(at), kind = tti_get_u16(at + 2);
    const uint64_t number = tti_get_u64(at + 4), taken = tti_get_u64(at + 12);
    bool           keeps = false;

    if (link->err != 0)
        return false;
    if (version != PARCEL_VERSION || (kind != DATA && kind != TELL) || taken > link->bytes_sent) {
        tti_carried_break(link, EPROTO, "a parcel says what it cannot mean");
        return false;
    }
    if (taken > link->bytes_taken)
        link->bytes_taken = taken;
    if (kind == DATA)
        keeps = take_data(link, number, parcel + TTI_PARCEL_HEAD, bytes - TTI_PARCEL_HEAD, loan);
    tti_pact_say_taken(link);
    tti_carried_tell(link);
    return keeps;
}

/* Hand out what has come, in order. */
static size_t hand_out(tti_carried *link, uint8_t *out, size_t bytes)
{
    size_t done = 0, n;

    while (done < bytes && has_data(link)) {
        tti_arrival *arrival = link->first;

        n = arrival->bytes - link->at < bytes - done ? arrival->bytes - link->at : bytes - done;
        if (out != NULL)
            memcpy(out + done, arrival->data + link->at, n);
        done += n;
        link->at += n;
        if (link->at < arrival->bytes)
            continue;
        link->first = arrival->next;
        if (link->first == NULL)
            link->last = NULL;
        link->at = 0;
        link->next++;
        link->got += TTI_PARCEL_HEAD;
        give_back(link, arrival);
    }
    link->got += done;
    return done;
}

void tti_carried_tell_taken(tti_carried *link)
{
    if (link->got - link->told < TTI_CARRIED_TELL || link->state != TTI_CARRIED_OPEN || link->err != 0)
        return;
    if (send_parcel(link, TELL, NULL, 0, 0, 0) != 0)
        return;
    link->told = link->got;
    leave_flying(link->carrier);
}

/* Lock held. */
static int64_t take_out(tti_carried *link, void *out, size_t bytes)
{
    size_t got;

    if (!has_data(link))
        tti_carrier_move(link->carrier);
    got = hand_out(link, out, bytes);
    tti_carried_tell_taken(link);
    return got > 0 ? (int64_t)got : end_of(link);
}

static int64_t carried_recv(tti_link *base, void *out, size_t bytes)
{
    tti_carried *link = (tti_carried *)base;
    tti_carrier *c = link->carrier;
    int64_t      got;

    tti_lock(&c->lock);
    c->uses++;
    got = take_out(link, out, bytes);
    tti_unlock(&c->lock);
    return got;
}

static const tti_frame *carried_next(tti_link *base)
{
    tti_carried     *link = (tti_carried *)base;
    tti_carrier     *c = link->carrier;
    const tti_frame *frame = NULL;

    tti_lock(&c->lock);
    c->uses++;
    if (!has_data(link))
        tti_carrier_move(c);
    if (has_data(link) && link->first->bytes - link->at >= sizeof link->frame) {
        memcpy(&link->frame, link->first->data + link->at, sizeof link->frame);
        frame = &link->frame;
    }
    tti_unlock(&c->lock);
    return frame;
}

static int64_t carried_body(tti_link *base, void *out, size_t bytes)
{
    tti_carried *link = (tti_carried *)base;
    tti_carrier *c = link->carrier;
    int64_t      got;

    tti_lock(&c->lock);
    c->uses++;
    (void)hand_out(link, NULL, sizeof link->frame);
    got = bytes > 0 ? take_out(link, out, bytes) : 0;
    tti_carried_tell_taken(link);
    tti_unlock(&c->lock);
    return got;
}

/* ---- the rest ---- */

/* Somebody is about to sleep on it. */
static tti_handle carried_handle(const tti_link *base)
{
    tti_carried *link = (tti_carried *)(uintptr_t)base;
    tti_carrier *c = link->carrier;

    tti_lock(&c->lock);
    if (link->rung && !has_news(link) && !has_room(link)) {
        c->port->ops->bell_clear(c->port, link->bell);
        link->rung = false;
    }
    link->watched = true;
    tti_carried_tell(link);
    c->wanted = true; /* if the thread sleeps already: when it wakes up */
    if (!c->armed)
        tti_carrier_call(c);
    tti_unlock(&c->lock);
    return link->bell;
}

/* The bell is rung for room, too. */
static tti_handle carried_out_handle(const tti_link *base)
{
    (void)base;
    return TTI_NO_HANDLE;
}

static bool carried_is_ahead(const tti_link *base)
{
    const tti_carried *link = (const tti_carried *)base;
    bool               ahead;

    tti_lock(&link->carrier->lock);
    ahead = has_news(link);
    tti_unlock(&link->carrier->lock);
    return ahead;
}

static void carried_describe(const tti_link *base, char *out, size_t bytes)
{
    const tti_carried *link = (const tti_carried *)base;

    tti_lock(&link->carrier->lock);
    if (link->err != 0)
        snprintf(out, bytes, "by '%s': %s", link->carrier->ops->name, link->words);
    else
        snprintf(out, bytes, "by '%s', %llu bytes of %llu that were sent in parcels are known to be taken%s", link->carrier->ops->name,
                 (unsigned long long)link->bytes_taken, (unsigned long long)link->bytes_sent,
                 link->state == TTI_CARRIED_MEETS ? "; its card has not come" : "");
    tti_unlock(&link->carrier->lock);
}

static void carried_close(tti_link *base)
{
    tti_carried *link = (tti_carried *)base;
    tti_carrier *c = link->carrier;

    tti_lock(&c->lock);
    assert(link->state != TTI_CARRIED_PARTS);
    if (link->state == TTI_CARRIED_OPEN && link->n_sent > 0 && link->err == 0)
        tti_pact_say_end(link);
    link->state = TTI_CARRIED_PARTS;
    link->part_ns = tti_port_now(c->port);
    link->watched = false;
    tti_carried_drop_arrivals(link);
    tti_carrier_call(c);
    tti_unlock(&c->lock); /* from here on the thread may free it */
}

const tti_link_ops tti_carried_ops = {
    .send = carried_send, .recv = carried_recv, .handle = carried_handle, .out_handle = carried_out_handle, .close = carried_close,
    .next = carried_next, .body = carried_body, .is_ahead = carried_is_ahead, .describe = carried_describe,
};

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tcp_link.c - connected sockets, as a link that reads ahead.
 *
 * Why     A small message is a frame and a few bytes: asked for one by one they cost a system call each, and one more to
 *         learn that there is nothing else.
 * How     What is asked for in small pieces is read into a buffer, with as much behind it as is there: a frame comes
 *         with its payload, and with the messages that follow. A piece from STRAIGHT_MIN on goes where it belongs,
 *         without a copy. Between large messages little is read ahead (a copy costs more than a call then), after
 *         SMALL_ROW small pieces in a row all that the buffer can hold.
 *         A look that got less than it asked for has emptied the socket: the next one, which the drain of a lane always
 *         makes, is answered without a system call.
 * Stripes A link may have several sockets, where one cannot fill the way. Its stream is dealt to them by its position, a
 *         piece of STRIPE_BYTES to each in turn; so both ends know without a word which socket has the next byte, and
 *         the order stays what it is. What is not read yet waits in the sockets, each of which has a window, and
 *         buffers, of its own: that is what more than one is good for.
 *         Where hosts have rails (wire/rails.h) the sockets are dealt to them in turn, so pieces that follow each other go by
 *         different ones: the stream is as fast as the slowest of them, times their number, and what is said of a socket
 *         names its rail.
 * Room    The kernel takes more than is on the way, so that the link has something to do while its sender is not on a core: ROOM_BYTES.
 * Shared  Who sends with many others to one has less than that on the way, SHARED_BYTES of all together: more is dropped in front of the
 *         receiver's link. So has who sends to many, on each of their ways: more is dropped in front of his own. Only on short ways, of
 *         less than NEAR_US: on a long one that would be less than the way holds.
 * Loss    What is dropped at the end of a message nobody misses but a timer, of 200 ms in the kernel: as long as 25 MB take at 1 Gb/s.
 *         Where it lets us, ours is of RESEND_MS, beyond what a round trip takes. Only on short ways, too: for each such time that
 *         a connection rests the kernel halves what it lets be on the way (net.ipv4.tcp_slow_start_after_idle). On a short way
 *         it has that again in a moment; a long one would lose it by every pause in which a program computes.
 * True    What was read and not handed out is bounded by the buffer, and handed out before the socket is looked at again.
 *         Where it is not empty recv has something, so a drain leaves nothing in it but what it was told to leave.
 *         A look that is only answered changes nothing for those who sleep: poll tells what a socket has, not what is
 *         new.
 * Fails   The end of a stream, and an error, which the kernel tells once, stay: every later look says the same. */
#include "transport/tcp/tcp_link.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

enum {
    STRIPE_BYTES = TTI_TCP_STRIPE_BYTES,
    AHEAD_BYTES = 64 << 10,
    STRAIGHT_MIN = 8 << 10,
    LITTLE_AHEAD = 2 << 10, /* between large messages */
    SMALL_ROW = 4,          /* a frame and a payload are two pieces */
    ROOM_BYTES = 1 << 20,   /* some milliseconds of a link of 1 Gb/s: a turn of whoever has the core */
    SHARED_BYTES = 384 << 10, /* which the kernel counts twice, for what it needs besides, and needs but little: so it may be 768 KiB */
    SHARED_LEAST = 32 << 10,
    NEAR_US = 500,          /* a round trip: in less than that 768 KiB are more than 10 Gb/s */
    FEW_SEGMENTS = 4,       /* that the answer to may be held back */
    SHUT_MS = 50,           /* between two answers on the way, at most: what many share is slow, and they are held back for 40 ms */
    RESEND_MS = 20,         /* more than a full queue of 1 MiB takes at 1 Gb/s, and some turns of a core */
};

typedef struct tcp_link {
    tti_link   base;
    tti_port  *port;
    int        n_streams;
    tti_handle streams[TTI_TCP_STRIPES_MAX];
    const tti_rails *rails; /* NULL: there are none */
    int        failed; /* the stream that a send or a recv failed on; -1: none did */
    uint64_t   sent, got; /* bytes of the whole stream */
    int        n_senders; /* as share() was told last */
    bool       is_near;
    bool       dry;  /* the socket was empty after the last look, of which nobody has been told */
    bool       over; /* it will always say what the last look said */
    int64_t    said;
    int        row;     /* small pieces since the last large one */
    size_t     at, end; /* what was read ahead: ahead[at] to ahead[end - 1] */
    tti_frame  frame;   /* a copy of that which lies there, aligned */
    uint8_t    ahead[AHEAD_BYTES];
} tcp_link;

/* Which socket has the byte at a position of the stream. */
static int stripe_at(const tcp_link *link, uint64_t at)
{
    return (int)(at / STRIPE_BYTES % (uint64_t)link->n_streams);
}

static tti_handle stream_at(const tcp_link *link, uint64_t at)
{
    return link->streams[stripe_at(link, at)];
}

/* How much of the stream goes by the same socket from there on. */
static size_t stripe_left(const tcp_link *link, uint64_t at)
{
    return link->n_streams > 1 ? STRIPE_BYTES - (size_t)(at % STRIPE_BYTES) : SIZE_MAX;
}

/* The first bytes of a frame and its payload that are left after skip, at most most of them: how many, in how many
 * parts. */
static size_t cut_parts(const tti_part *parts, int n_parts, size_t skip, size_t most, tti_part out[2], int *n_out)
{
    size_t total = 0;
    int    i, n = 0;

    for (i = 0; i < n_parts && total < most; i++) {
        const size_t begin = skip < parts[i].size ? skip : parts[i].size;
        const size_t left = parts[i].size - begin;
        const size_t size = left < most - total ? left : most - total;

        skip -= begin;
        if (size > 0)
            out[n++] = (tti_part){ (const uint8_t *)parts[i].data + begin, size };
        total += size;
    }
    *n_out = n;
    return total;
}

static int64_t send_striped(tcp_link *link, const tti_part *parts, int n_parts)
{
    tti_part piece[2];
    size_t   total = 0, size;
    int64_t  taken = -EAGAIN;
    int      n;

    while ((size = cut_parts(parts, n_parts, total, stripe_left(link, link->sent), piece, &n)) > 0) {
        taken = link->port->ops->send(link->port, stream_at(link, link->sent), piece, n);
        if (taken <= 0) {
            link->failed = taken != -EAGAIN ? stripe_at(link, link->sent) : link->failed;
            break;
        }
        link->sent += (uint64_t)taken;
        total += (size_t)taken;
        if ((size_t)taken < size)
            break;
    }
    return total > 0 ? (int64_t)total : taken; /* a failure is found again by the next send */
}

static int64_t tcp_send(tti_link *base, const tti_part *parts, int n_parts)
{
    tcp_link *link = (tcp_link *)base;

    assert(n_parts <= 2);
    if (link->n_streams > 1)
        return send_striped(link, parts, n_parts);
    return link->port->ops->send(link->port, link->streams[0], parts, n_parts);
}

static int64_t look(tcp_link *link, void *out, size_t bytes)
{
    const size_t left = stripe_left(link, link->got);

    if (link->over)
        return link->said;
    if (bytes > left)
        bytes = left;
    link->said = link->port->ops->recv(link->port, stream_at(link, link->got), out, bytes);
    if (link->said > 0)
        link->got += (uint64_t)link->said;
    link->dry = link->said > 0 && (size_t)link->said < bytes;
    link->over = link->said <= 0 && link->said != -EAGAIN;
    if (link->over)
        link->failed = stripe_at(link, link->got);
    return link->said;
}

/* Have bytes in the buffer, which holds fewer, and what is there behind them: as look(). */
static int64_t read_ahead(tcp_link *link, size_t bytes)
{
    const size_t have = link->end - link->at;
    size_t       want = link->row < SMALL_ROW ? bytes - have + LITTLE_AHEAD : AHEAD_BYTES;
    int64_t      got;

    if (link->at > 0)
        memmove(link->ahead, link->ahead + link->at, have);
    link->at = 0;
    link->end = have;
    if (want > AHEAD_BYTES - have)
        want = AHEAD_BYTES - have;
    got = look(link, link->ahead + have, want);
    if (got > 0)
        link->end += (size_t)got;
    return got;
}

/* Hand out what was read ahead. */
static size_t hand_out(tcp_link *link, void *out, size_t bytes)
{
    const size_t have = link->end - link->at;
    const size_t n = bytes < have ? bytes : have;

    if (n > 0)
        memcpy(out, link->ahead + link->at, n);
    link->at += n;
    return n;
}

static int64_t tcp_recv(tti_link *base, void *out, size_t bytes)
{
    tcp_link *link = (tcp_link *)base;
    int64_t   got;

    if (link->at == link->end) {
        if (link->dry) {
            link->dry = false;
            return -EAGAIN;
        }
        if (bytes >= STRAIGHT_MIN) {
            link->row = 0;
            return look(link, out, bytes);
        }
        got = read_ahead(link, bytes);
        if (got <= 0)
            return got;
    }
    link->row++;
    return (int64_t)hand_out(link, out, bytes);
}

static const tti_frame *tcp_next(tti_link *base)
{
    tcp_link *link = (tcp_link *)base;

    if (link->end - link->at < sizeof link->frame)
        (void)read_ahead(link, sizeof link->frame);
    if (link->end - link->at < sizeof link->frame)
        return NULL;
    memcpy(&link->frame, link->ahead + link->at, sizeof link->frame);
    return &link->frame;
}

static int64_t tcp_body(tti_link *base, void *out, size_t bytes)
{
    tcp_link *link = (tcp_link *)base;
    size_t    have;
    int64_t   got;

    link->at += sizeof link->frame;
    link->row += 2;
    have = hand_out(link, out, bytes);
    if (have == bytes)
        return (int64_t)have;
    got = tcp_recv(base, (uint8_t *)out + have, bytes - have);
    return got > 0 ? (int64_t)have + got : have > 0 ? (int64_t)have : got;
}

static bool tcp_is_ahead(const tti_link *base)
{
    const tcp_link *link = (const tcp_link *)base;

    return link->at != link->end;
}

/* Whether nothing was heard by a stream for so long, though segments were sent again, and keepalives are due in between. Where the
 * interface was down before anything was on the way there is nothing to be sent again: the kernel goes on trying to send the first. */
static bool is_unheard(const tcp_link *link, int stripe)
{
    enum { ROW = 3, UNHEARD_MS = 20000 };
    tti_stream_facts facts;

    return link->port->ops->stream_facts != NULL && link->port->ops->stream_facts(link->port, link->streams[stripe], &facts) == 0 &&
           facts.in_a_row + facts.probes >= ROW && facts.heard_ms >= UNHEARD_MS;
}

static bool tcp_is_cut(const tti_link *base)
{
    const tcp_link *link = (const tcp_link *)base;
    int             i = 0;

    while (i < link->n_streams && !is_unheard(link, i))
        i++;
    return i < link->n_streams;
}

/* The stream that was not heard of for longest, if that is for longer than a peer that lives is silent: its kernel answers
 * keepalives. -1: there is none, or there is only one stream, of which everything tells. */
static int quiet_stripe(const tcp_link *link)
{
    enum { QUIET_MS = 10000 }; /* two keepalives: what it is good for is a text */
    tti_stream_facts facts;
    uint32_t         most = QUIET_MS;
    int              i, quiet = -1;

    for (i = 0; i < link->n_streams && link->n_streams > 1 && link->port->ops->stream_facts != NULL; i++)
        if (link->port->ops->stream_facts(link->port, link->streams[i], &facts) == 0 && facts.heard_ms >= most) {
            most = facts.heard_ms;
            quiet = i;
        }
    return quiet;
}

static bool tcp_is_quiet(const tti_link *base)
{
    return quiet_stripe((const tcp_link *)base) >= 0;
}

/* The stream that there is most to say of: a quiet one, one that failed, or the one that is to be read. */
static int notable_stripe(const tcp_link *link)
{
    const int quiet = quiet_stripe(link);

    if (quiet >= 0)
        return quiet;
    return link->failed >= 0 ? link->failed : stripe_at(link, link->got);
}

/* "by interface 'eth1' (10.0.0.7), ", or "". */
static void describe_rail(const tcp_link *link, int stripe, char *out, size_t bytes)
{
    char            text[TTI_ADDR_TEXT_MAX];
    const tti_rail *rail;

    out[0] = '\0';
    if (link->rails == NULL || link->rails->n == 0)
        return;
    rail = &link->rails->rail[stripe % link->rails->n];
    tti_addr_format(&rail->addr, text, sizeof text);
    snprintf(out, bytes, "by interface '%s' (%s here), ", rail->name, text);
}

static void tcp_describe(const tti_link *base, char *out, size_t bytes)
{
    const tcp_link  *link = (const tcp_link *)base;
    const int        stripe = notable_stripe(link);
    tti_stream_facts facts;
    char             row[48] = "", rail[TTI_INTERFACE_NAME_MAX + TTI_ADDR_TEXT_MAX + 32];

    out[0] = '\0';
    if (link->port->ops->stream_facts == NULL || link->port->ops->stream_facts(link->port, link->streams[stripe], &facts) != 0)
        return;
    if (facts.in_a_row > 0)
        snprintf(row, sizeof row, " (%u in a row)", facts.in_a_row);
    describe_rail(link, stripe, rail, sizeof rail);
    snprintf(out, bytes,
             "%s%u retransmissions%s, %u segments unacknowledged, round trip %.2f ms, last heard of %u ms ago, %s", rail,
             facts.retransmits, row, facts.unheard, facts.round_trip_us / 1e3, facts.heard_ms,
             facts.congestion[0] != '\0' ? facts.congestion : "congestion control unknown");
}

static uint32_t tcp_data_ms(const tti_link *base)
{
    const tcp_link  *link = (const tcp_link *)base;
    uint32_t         least = UINT32_MAX;
    tti_stream_facts facts;
    int              i;

    for (i = 0; i < link->n_streams && link->port->ops->stream_facts != NULL; i++)
        if (link->port->ops->stream_facts(link->port, link->streams[i], &facts) == 0 && facts.data_ms < least)
            least = facts.data_ms;
    return least;
}

/* Answers to a few segments may be held back for a while, though these have arrived. Where all that was sent has, and there is more,
 * its peer's window is shut: who computes may leave it so for long. */
static bool is_delivering(const tti_stream_facts *facts, uint32_t heard_ms)
{
    if (facts->in_a_row > 0 || facts->unheard > FEW_SEGMENTS)
        return facts->heard_ms < heard_ms;
    return facts->unsent_bytes > 0 && facts->heard_ms < SHUT_MS;
}

static bool tcp_is_delivering(const tti_link *base, uint32_t heard_ms)
{
    const tcp_link  *link = (const tcp_link *)base;
    tti_stream_facts facts;
    int              i;

    for (i = 0; i < link->n_streams && link->port->ops->stream_facts != NULL; i++)
        if (link->port->ops->stream_facts(link->port, link->streams[i], &facts) == 0 && is_delivering(&facts, heard_ms))
            return true;
    return false;
}

static tti_handle tcp_handle(const tti_link *base)
{
    const tcp_link *link = (const tcp_link *)base;

    return stream_at(link, link->got);
}

static tti_handle tcp_out_handle(const tti_link *base)
{
    const tcp_link *link = (const tcp_link *)base;

    return stream_at(link, link->sent);
}

static void tcp_share(tti_link *base, int n_senders)
{
    tcp_link             *link = (tcp_link *)base;
    const tti_port_ops   *ops = link->port->ops;
    int                   each, i;

    if (n_senders == link->n_senders || !link->is_near || ops->bound_room == NULL || ops->make_room == NULL)
        return;
    each = SHARED_BYTES / n_senders / link->n_streams;
    each = each > SHARED_LEAST ? each : SHARED_LEAST;
    for (i = 0; i < link->n_streams; i++)
        if (n_senders > 1)
            ops->bound_room(link->port, link->streams[i], each);
        else
            ops->make_room(link->port, link->streams[i], ROOM_BYTES);
    link->n_senders = n_senders;
}

/* Of a connection that has been made and is idle. What was measured while its ends agreed on it has in it how long a process took to
 * come to its core; the shortest has not: that is what two kernels took. */
static bool read_trip(tti_port *port, tti_handle stream, uint32_t *us_out)
{
    tti_stream_facts facts;

    if (port->ops->stream_facts == NULL || port->ops->stream_facts(port, stream, &facts) != 0)
        return false;
    *us_out = facts.least_trip_us > 0 ? facts.least_trip_us : facts.round_trip_us;
    return true;
}

bool tti_tcp_is_near(tti_port *port, tti_handle stream)
{
    uint32_t us;

    return read_trip(port, stream, &us) && us < NEAR_US;
}

/* All of a member's connections go one way. */
static uint32_t tcp_trip_us(const tti_link *base)
{
    const tcp_link *link = (const tcp_link *)base;
    uint32_t        us;

    return read_trip(link->port, link->streams[0], &us) ? us : 0;
}

static void tcp_close(tti_link *base)
{
    tcp_link *link = (tcp_link *)base;
    int       i;

    for (i = 0; i < link->n_streams; i++)
        link->port->ops->close(link->port, link->streams[i]);
    free(link);
}

static const tti_link_ops tcp_ops = {
    .name = "tcp", .send = tcp_send, .recv = tcp_recv, .handle = tcp_handle, .out_handle = tcp_out_handle, .close = tcp_close,
    .next = tcp_next, .body = tcp_body, .is_ahead = tcp_is_ahead, .describe = tcp_describe,
    .is_cut = tcp_is_cut, .is_quiet = tcp_is_quiet, .is_delivering = tcp_is_delivering, .share = tcp_share, .data_ms = tcp_data_ms,
    .trip_us = tcp_trip_us,
};

/* Who computes reads nothing for long, and sends nothing until he has had his turn of the core. */
static void let_rest(tti_port *port, tti_handle stream, bool is_near)
{
    if (port->ops->let_wait != NULL)
        port->ops->let_wait(port, stream);
    if (port->ops->make_room != NULL)
        port->ops->make_room(port, stream, ROOM_BYTES);
    if (is_near && port->ops->resend_after != NULL)
        port->ops->resend_after(port, stream, RESEND_MS);
}

tutti_status tti_tcp_link_open(tti_port *port, const tti_handle *streams, int n_streams, int peer_rank, const tti_rails *rails,
                               tti_link **link_out)
{
    tcp_link *link = malloc(sizeof *link); /* pages of the buffer that nothing is read into are never touched */
    int       i;

    assert(n_streams >= 1 && n_streams <= TTI_TCP_STRIPES_MAX);
    if (link == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the link to rank %d", peer_rank);
    memset(link, 0, offsetof(tcp_link, ahead));
    link->base.ops = &tcp_ops;
    link->port = port;
    link->n_streams = n_streams;
    link->rails = rails;
    link->failed = -1;
    memcpy(link->streams, streams, (size_t)n_streams * sizeof *streams);
    link->n_senders = 1;
    link->is_near = tti_tcp_is_near(port, streams[0]);
    for (i = 0; i < n_streams; i++)
        let_rest(port, streams[i], link->is_near);
    *link_out = &link->base;
    return TUTTI_OK;
}

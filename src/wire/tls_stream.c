/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tls_stream.c - a filter of the port (base/port_filter.h) that encrypts.
 *
 *   send --> records of at most 16 KiB --> out --> socket
 *   recv <-- records <-- what was read ahead <-- socket
 *
 * Out     Several records are encrypted before the socket is written to, so that it costs fewer calls; never more than
 *         BATCH_BYTES, and none while anything is left in out.
 * Taken   A record cannot be taken back, and the user must not be told that all is sent before the socket has it: nobody
 *         would ask for room again. So as long as something of out is left one byte of what it holds is not counted. The
 *         user then waits for room and sends the rest, whose first byte is passed over. A byte that comes alone cannot be
 *         told of in part: so it is taken only where the socket says that it has room.
 * More    What was read ahead makes the handle ready without a poll. It is known after every recv: one that was not
 *         filled has emptied the socket, too.
 * Lock    One per stream: poll, on one thread, and send or recv, on another, may come at once. What is under it never
 *         waits. A stream that has ended touches the socket no more, whose number may be another's by then.
 * Fails   A failure to send stays. What OpenSSL writes when it refuses something (an alert) is sent as far as it fits. */
#include "wire/tls_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <openssl/crypto.h>
#include <tutti/private.h>
#include "base/doubt.h"
#include "base/port_filter.h"
#include "base/thread.h"
#include "wire/buffer.h"

enum { BATCH_BYTES = 3 * TTI_TLS_RECORD_BYTES, TURN_BYTES = 1 << 20 };

typedef struct stream {
    tti_filter base; /* first: the two pointers convert both ways */
    tti_port  *port;
    tti_mutex  lock; /* guards what follows */
    tti_tls   *tls;
    tti_buffer out;    /* encrypted, for the socket */
    int64_t    broken; /* 0, or the -errno that sending ended with */
    size_t     held;   /* 0 or 1 bytes that out has and the user was not told of */
    bool       open;   /* the handshake is done */
    bool       ended;
    bool       more;   /* to be received, without the socket */
    uint8_t    record[TTI_TLS_RECORD_BYTES]; /* where small parts come together */
} stream;

/* ---- the socket ---- */

static bool keep_out(void *context, const void *data, size_t bytes)
{
    stream *s = context;

    return tti_buffer_append(&s->out, data, bytes) == TUTTI_OK;
}

static int64_t read_socket(void *context, void *out, size_t bytes)
{
    stream *s = context;

    return s->base.raw_recv(s->port, s->base.handle, out, bytes);
}

/* As far as the socket takes it. False: it has failed. */
static bool flush(stream *s)
{
    while (s->out.size > 0 && s->broken == 0) {
        const tti_part part = { .data = tti_buffer_data(&s->out), .size = s->out.size };
        const int64_t  n = s->base.raw_send(s->port, s->base.handle, &part, 1);

        if (n == -EAGAIN)
            break;
        if (n < 0)
            s->broken = n;
        else
            tti_buffer_consume(&s->out, (size_t)n);
    }
    return s->broken == 0;
}

/* ---- send ---- */

/* Where a send is in its parts. */
typedef struct cursor {
    const tti_part *parts;
    int             n, i;
    size_t          at; /* in parts[i] */
} cursor;

static void skip_done(cursor *c)
{
    while (c->i < c->n && c->at == c->parts[c->i].size) {
        c->i++;
        c->at = 0;
    }
}

static void skip(cursor *c, size_t bytes)
{
    for (skip_done(c); bytes > 0 && c->i < c->n; skip_done(c)) {
        const size_t left = c->parts[c->i].size - c->at;
        const size_t step = left < bytes ? left : bytes;

        c->at += step;
        bytes -= step;
    }
}

/* The next record's text: where it lies, or together in s->record. NULL: there is no more. */
static const uint8_t *next_text(stream *s, cursor *c, size_t *bytes_out)
{
    const uint8_t *text;
    size_t         have = 0;

    skip_done(c);
    if (c->i == c->n)
        return NULL;
    if (c->parts[c->i].size - c->at >= sizeof s->record) {
        text = (const uint8_t *)c->parts[c->i].data + c->at;
        *bytes_out = sizeof s->record;
        c->at += sizeof s->record;
        return text;
    }
    for (; c->i < c->n && have < sizeof s->record; skip_done(c)) {
        const size_t left = c->parts[c->i].size - c->at;
        const size_t step = left < sizeof s->record - have ? left : sizeof s->record - have;

        memcpy(s->record + have, (const uint8_t *)c->parts[c->i].data + c->at, step);
        c->at += step;
        have += step;
    }
    *bytes_out = have;
    return s->record;
}

/* Encrypt up to a batch: how much, or -errno. */
static int64_t encrypt(stream *s, cursor *c)
{
    const uint8_t *text;
    size_t         total = 0, bytes;
    int64_t        n;

    while (total < BATCH_BYTES && (text = next_text(s, c, &bytes)) != NULL) {
        n = tti_tls_write(s->tls, text, bytes);
        if (n < 0)
            return n;
        total += bytes;
    }
    return (int64_t)total;
}

/* Lock held, out is empty. */
static int64_t send_parts(stream *s, const tti_part *parts, int n_parts)
{
    cursor        c = { .parts = parts, .n = n_parts };
    const int64_t held = (int64_t)s->held;
    int64_t       total = held, n;

    skip(&c, s->held);
    s->held = 0;
    do {
        n = encrypt(s, &c);
        if (n < 0) {
            s->broken = n;
            return n;
        }
        total += n;
        if (!flush(s))
            return s->broken;
    } while (n > 0 && s->out.size == 0 && total < TURN_BYTES);
    if (s->out.size > 0 && total > 1) {
        s->held = 1;
        total--;
    }
    return total;
}

static bool is_lone_byte(const tti_part *parts, int n_parts)
{
    size_t total = 0;
    int    i;

    for (i = 0; i < n_parts && total <= 1; i++)
        total += parts[i].size;
    return total == 1;
}

/* A socket that says so takes a small record as a whole. */
static bool has_room(const stream *s)
{
    tti_poll set = { .handle = s->base.handle, .want = TTI_WRITE };

    return s->base.raw_poll(s->port, &set, 1, 0) == 1;
}

static int64_t stream_send(tti_filter *base, const tti_part *parts, int n_parts)
{
    stream *s = (stream *)base;
    int64_t sent = -EAGAIN;

    tti_lock(&s->lock);
    if (s->ended || !s->open)
        sent = -ENOTCONN;
    else if (!flush(s))
        sent = s->broken;
    else if (s->out.size == 0 && (s->held > 0 || !is_lone_byte(parts, n_parts) || has_room(s)))
        sent = send_parts(s, parts, n_parts);
    tti_unlock(&s->lock);
    return sent;
}

/* ---- recv and poll ---- */

static int64_t stream_recv(tti_filter *base, void *out, size_t bytes)
{
    stream *s = (stream *)base;
    int64_t got;

    tti_lock(&s->lock);
    if (s->ended || !s->open) {
        got = -ENOTCONN;
    } else {
        got = tti_tls_read(s->tls, out, bytes);
        s->more = (got == (int64_t)bytes || tti_tls_is_over(s->tls)) && tti_tls_has_more(s->tls);
        if (got == -EBADMSG)
            (void)flush(s);
    }
    tti_unlock(&s->lock);
    return got;
}

static uint8_t stream_before_poll(tti_filter *base, uint8_t want, uint8_t *ready_out)
{
    stream *s = (stream *)base;

    *ready_out = 0;
    tti_lock(&s->lock);
    if (!s->open)
        want = TTI_READ;
    else if (s->more)
        *ready_out = want & TTI_READ;
    if (s->out.size > 0 && s->broken == 0)
        want |= TTI_WRITE;
    tti_unlock(&s->lock);
    return want;
}

static uint8_t stream_after_poll(tti_filter *base, uint8_t want, uint8_t got)
{
    stream *s = (stream *)base;

    tti_lock(&s->lock);
    if (s->ended) {
        got = 0;
    } else if (!s->open) {
        got |= want; /* the handshake goes on, whatever it was that came */
    } else if ((got & TTI_WRITE) != 0 && flush(s) && (s->out.size > 0 || (want & TTI_WRITE) == 0)) {
        got &= (uint8_t)~TTI_WRITE;
    }
    tti_unlock(&s->lock);
    return got;
}

/* ---- the object ---- */

static void stream_end(tti_filter *base)
{
    stream *s = (stream *)base;

    tti_lock(&s->lock);
    if (s->open && s->broken == 0 && s->out.size == 0)
        tti_tls_say_end(s->tls);
    if (s->out.size > 0)
        (void)flush(s);
    s->ended = true;
    tti_unlock(&s->lock);
}

static void stream_free(tti_filter *base)
{
    stream *s = (stream *)base;

    tti_tls_free(s->tls);
    tti_buffer_release(&s->out);
    OPENSSL_cleanse(s->record, sizeof s->record);
    tti_mutex_release(&s->lock);
    free(s);
}

static const tti_filter_ops stream_ops = {
    .send = stream_send, .recv = stream_recv, .before_poll = stream_before_poll, .after_poll = stream_after_poll,
    .end = stream_end, .free = stream_free,
};

tutti_status tti_tls_attach(tti_port *port, tti_handle handle, const tti_hello *hello)
{
    stream      *s = calloc(1, sizeof *s);
    tti_tls_io   io = { .context = s, .write = keep_out, .read = read_socket };
    tutti_status st;
    int          err;

    if (s == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for TLS");
    s->base.ops = &stream_ops;
    s->port = port;
    tti_mutex_init(&s->lock);
    st = port->ops->attach_filter == NULL ? tti_fail(TUTTI_E_UNSUPPORTED, "there is no TLS on port '%s'", port->ops->name)
                                          : tti_tls_create(hello, &io, &s->tls);
    if (st == TUTTI_OK) {
        err = port->ops->attach_filter(port, handle, &s->base);
        if (err == 0)
            return TUTTI_OK;
        st = tti_fail_errno(-err, "cannot encrypt a connection");
    }
    stream_free(&s->base);
    return st;
}

tutti_status tti_tls_shake_on(tti_handle handle, bool *done_out)
{
    tti_filter  *base = tti_filter_take(handle);
    stream      *s = (stream *)base;
    tutti_status st;
    bool         done = false;

    *done_out = false;
    if (base == NULL)
        return tti_fail(TUTTI_E_NETWORK, "the connection was closed during its TLS handshake");
    tti_lock(&s->lock);
    st = tti_tls_shake(s->tls, &done);
    if (done && !s->open) {
        s->open = true;
        s->more = tti_tls_has_more(s->tls);
    }
    if (!flush(s) && st == TUTTI_OK)
        st = tti_fail_errno_as(TUTTI_E_NETWORK, (int)-s->broken, "a connection failed during its TLS handshake");
    *done_out = st == TUTTI_OK && done; /* what is left of it goes with the next send or poll */
    tti_unlock(&s->lock);
    tti_filter_drop(base);
    return st;
}

tutti_status tti_tls_run(tti_port *port, tti_handle handle, const tti_hello *hello, int64_t deadline_ns)
{
    const char  *who = hello->config.peer != NULL ? hello->config.peer : "the peer";
    tutti_status st = tti_tls_attach(port, handle, hello);
    bool         done = false;

    while (st == TUTTI_OK) {
        tti_poll set = { .handle = handle, .want = TTI_READ };

        st = tti_tls_shake_on(handle, &done);
        if (st != TUTTI_OK || done)
            return st;
        tti_doubt_poll(port, &set, 1, deadline_ns);
        if (set.got == 0 && tti_doubt_is_vain())
            st = tti_doubt_fail(who);
        else if (set.got == 0 && tti_port_now(port) >= deadline_ns)
            st = tti_fail(TUTTI_E_TIMEOUT, "%s did not finish its TLS handshake in time", who);
    }
    return st;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hello.c - the hello, and the word behind it on connections of members.
 *
 * How     Either one end is fed the input as it is, in pieces; or two honest ends talk, and the input says which bytes on the way
 *         are changed, which are held back, and how the stream is cut.
 * Holds   Who is fed garbage is never done: it cannot know the proof. Of two ends between which something was changed the one that was lied
 *         to is not done; if nothing was, both are, and each knows the other's rank. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <tutti/status.h>
#include "transport/tcp/handshake.h"

enum { CLIENT_RANK = 3, SERVER_RANK = 5 };

static tti_secret secret = { .present = true, .padded = { 1, 2, 3 } };

static void begin(tti_handshake *shake, bool client)
{
    const tti_hello_config config = { .client = client, .purpose = TTI_PURPOSE_PEER, .generation = 7, .scope = { 9 },
                                      .rank = client ? CLIENT_RANK : SERVER_RANK, .secret = &secret };

    tti_handshake_begin(shake, tt_still_port(), &config);
}

/* What it says is taken, whatever that is. */
static void say_all(tti_handshake *shake)
{
    size_t bytes;

    while (tti_handshake_output(shake, &bytes) != NULL)
        tti_handshake_sent(shake, bytes);
}

static void feed_raw(tt_input *in, bool client)
{
    tti_handshake shake;
    tutti_status  st = TUTTI_OK;

    begin(&shake, client);
    say_all(&shake);
    while (in->left > 0 && st == TUTTI_OK && tti_handshake_wants(&shake) > 0) {
        const size_t   most = 1 + (size_t)tt_take(in, 1);
        const size_t   wants = tti_handshake_wants(&shake);
        const tt_input part = tt_take_part(in, most < wants ? most : wants);
        uint8_t       *copy = tt_copy(part.at, part.left);

        st = tti_handshake_feed(&shake, copy, part.left);
        free(copy);
        say_all(&shake);
    }
    TT_MUST(!tti_handshake_done(&shake) && !tti_handshake_asks(&shake));
    if (st != TUTTI_OK) {
        size_t bytes;

        TT_MUST(tti_handshake_wants(&shake) == 0 && tti_handshake_output(&shake, &bytes) == NULL);
    }
    tti_handshake_release(&shake);
}

typedef struct talk {
    tti_handshake ends[2]; /* client, server */
    bool          lied[2]; /* something that it was fed was changed */
    tutti_status  st[2];
} talk;

/* Carry some bytes from one end to the other: whether any went. */
static bool carry(talk *t, int from, tt_input *in)
{
    tti_handshake *source = &t->ends[from], *sink = &t->ends[1 - from];
    size_t         bytes = 0, most = 1 + (size_t)tt_take(in, 1);
    const void    *data = tti_handshake_output(source, &bytes);
    const uint8_t  change = (uint8_t)tt_take(in, 1);
    uint8_t       *copy;

    if (tti_handshake_asks(source)) {
        tti_handshake_welcome(source);
        return true;
    }
    if (data == NULL || t->st[1 - from] != TUTTI_OK)
        return false;
    bytes = bytes < most ? bytes : most;
    bytes = bytes < tti_handshake_wants(sink) ? bytes : tti_handshake_wants(sink);
    if (bytes == 0)
        return false;
    copy = tt_copy(data, bytes);
    tti_handshake_sent(source, bytes);
    if (change != 0) {
        copy[change % bytes] ^= change;
        t->lied[1 - from] = true;
    }
    t->st[1 - from] = tti_handshake_feed(sink, copy, bytes);
    free(copy);
    return true;
}

/* Who is between two ends knows no secret: what it has changed is found out by who was told it, or by who is told of it. */
static void relay(tt_input *in)
{
    talk t = { .st = { TUTTI_OK, TUTTI_OK } };
    bool moved = true;

    begin(&t.ends[0], true);
    begin(&t.ends[1], false);
    while (moved) {
        moved = carry(&t, 0, in);
        moved = carry(&t, 1, in) || moved;
    }
    if (!t.lied[0] && !t.lied[1]) {
        TT_MUST(tti_handshake_done(&t.ends[0]) && tti_handshake_done(&t.ends[1]));
        TT_MUST(tti_handshake_peer_rank(&t.ends[0]) == SERVER_RANK && tti_handshake_peer_rank(&t.ends[1]) == CLIENT_RANK);
    }
    TT_MUST(!t.lied[0] || !tti_handshake_done(&t.ends[0]));
    TT_MUST(!t.lied[1] || !tti_handshake_done(&t.ends[1]));
    tti_handshake_release(&t.ends[0]);
    tti_handshake_release(&t.ends[1]);
}

/* ---- over a stream ---- */

typedef struct stream {
    tti_port  port; /* first */
    tt_input  in;
    tti_hello other; /* an honest end; what it is told and says is kept here, and changed as the input says */
    uint8_t   said[2 * TTI_HELLO_SERVER_BYTES];
    size_t    n_said, n_read;
    int64_t   now_ns;
    bool      lied;
} stream;

static int64_t stream_now(tti_port *port)
{
    return ((stream *)port)->now_ns;
}

static void stream_random(tti_port *port, void *out, size_t bytes)
{
    (void)port;
    memset(out, 0, bytes);
}

static void hear_other(stream *s)
{
    size_t      bytes = 0;
    const void *data = tti_hello_output(&s->other, &bytes);

    if (data == NULL)
        return;
    TT_MUST(bytes <= sizeof s->said - s->n_said);
    memcpy(s->said + s->n_said, data, bytes);
    s->n_said += bytes;
    tti_hello_sent(&s->other, bytes);
}

/* As much as the input says, or not now, or never again. */
static int64_t stream_send(tti_port *port, tti_handle handle, const tti_part *parts, int n_parts)
{
    stream      *s = (stream *)port;
    const size_t most = (size_t)tt_take(&s->in, 1), wants = tti_hello_wants(&s->other);
    size_t       n = parts[0].size < most ? parts[0].size : most;

    (void)handle;
    TT_MUST(n_parts == 1);
    if (most == 0 && s->in.left > 0)
        return -EAGAIN;
    if (n == 0)
        return -EPIPE;
    n = n < wants ? n : wants;
    if (n == 0 || tti_hello_feed(&s->other, parts[0].data, n) != TUTTI_OK)
        return -ECONNRESET;
    hear_other(s);
    return (int64_t)n;
}

static int64_t stream_recv(tti_port *port, tti_handle handle, void *out, size_t bytes)
{
    stream       *s = (stream *)port;
    const size_t  most = (size_t)tt_take(&s->in, 1);
    const uint8_t change = (uint8_t)tt_take(&s->in, 1);
    size_t        n = s->n_said - s->n_read;

    (void)handle;
    n = n < bytes ? n : bytes;
    n = n < most ? n : most;
    if (n == 0)
        return s->in.left > 0 ? -EAGAIN : 0;
    memcpy(out, s->said + s->n_read, n);
    s->n_read += n;
    if (change != 0) {
        ((uint8_t *)out)[change % n] ^= change;
        s->lied = true;
    }
    return (int64_t)n;
}

static int stream_poll(tti_port *port, tti_poll *set, int n, int64_t deadline_ns)
{
    stream *s = (stream *)port;

    (void)deadline_ns;
    TT_MUST(n == 1);
    s->now_ns += TTI_SECOND / 4;
    set->got = s->in.left % 3 == 0 ? 0 : set->want;
    return set->got != 0;
}

static const tti_port_ops stream_ops = { .name = "stream", .now_ns = stream_now, .random = stream_random, .send = stream_send,
                                         .recv = stream_recv, .poll = stream_poll };

static void over_a_stream(tt_input *in, bool client)
{
    const tti_hello_config mine = { .client = client, .purpose = TTI_PURPOSE_STORE, .rank = 1, .secret = &secret };
    const tti_hello_config theirs = { .client = !client, .purpose = TTI_PURPOSE_STORE, .rank = 2, .secret = &secret };
    stream                 s = { .port = { &stream_ops }, .in = *in };
    uint32_t               rank = 0;

    tti_hello_begin(&s.other, tt_still_port(), &theirs);
    hear_other(&s);
    if (tti_hello_run(&s.port, 7, &mine, 10 * TTI_SECOND, &rank) == TUTTI_OK)
        TT_MUST(!s.lied && rank == 2);
    else
        TT_MUST(strlen(tutti_last_error()) > 0);
    tti_hello_release(&s.other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_input      in = tt_input_of(data, size);
    const uint8_t what = (uint8_t)tt_take(&in, 1);

    if (what < 2)
        feed_raw(&in, what == 1);
    else if (what < 0xf0)
        relay(&in);
    else
        over_a_stream(&in, (what & 1) != 0);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tls_stream_test.c - TLS on sockets of the system port, under those who send, receive and poll.
 *
 * Goal    what a user of the port relies on holds: what is taken arrives, once and in order, however little room there is;
 *         poll tells of all that can be had, and of nothing else; both ends say what is wrong when they would not do
 *         the same; a child of fork() has nothing of it.
 * Method  connections over loopback with small buffers, one end on a thread of its own. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/port_filter.h"
#include "wire/tls_stream.h"

enum { LIMIT_MS = 30000, SMALL_BUFFER = 16 << 10 /* less than a batch */, MUCH = 6 << 20, PIECE_MAX = 100000 };

static const tti_secret sealed = { .present = true, .seal = TTI_SEAL_KEY, .padded = { 1, 2, 3 } };
static const tti_secret plain = { .present = true, .padded = { 1, 2, 3 } };

typedef struct ends {
    tti_handle        client, server;
    const tti_secret *secret; /* of the client */
    tutti_status      status; /* how the client's hello went */
    char              words[512];
} ends;

static int64_t in_ms(int64_t ms)
{
    return tti_deadline(tti_port_system(), ms, 0);
}

static void connect_ends(ends *e)
{
    tti_port  *port = tti_port_system();
    tti_addr   at = { .family = TTI_ADDR_IP4, .ip = { 127, 0, 0, 1 } };
    tti_addr   bound;
    tti_handle listener;
    tti_poll   set;

    assert_int_equal(port->ops->listen(port, &at, 4, &bound, &listener), 0);
    assert_int_equal(port->ops->connect(port, &bound, &e->client), 0);
    set = (tti_poll){ .handle = listener, .want = TTI_READ };
    assert_int_equal(port->ops->poll(port, &set, 1, in_ms(LIMIT_MS)), 1);
    e->server = port->ops->accept(port, listener, NULL);
    assert_true(e->server >= 0);
    port->ops->close(port, listener);
}

static tutti_status greet(tti_handle handle, bool client, const tti_secret *secret)
{
    const tti_hello_config config = { .client = client, .purpose = TTI_PURPOSE_PEER, .secret = secret, .rank = 4,
                                      .peer = client ? "the server" : "the client" };

    return tti_hello_run(tti_port_system(), handle, &config, in_ms(LIMIT_MS), NULL);
}

static void *greet_as_client(void *arg)
{
    ends *e = arg;

    e->status = greet(e->client, true, e->secret);
    snprintf(e->words, sizeof e->words, "%s", e->status != TUTTI_OK ? tutti_last_error() : "");
    return NULL;
}

/* How it went for the server. */
static tutti_status meet(ends *e, const tti_secret *client, const tti_secret *server)
{
    pthread_t    thread;
    tutti_status st;

    connect_ends(e);
    e->secret = client;
    assert_int_equal(pthread_create(&thread, NULL, greet_as_client, e), 0);
    st = greet(e->server, false, server);
    pthread_join(thread, NULL);
    return st;
}

static void close_ends(ends *e)
{
    tti_port *port = tti_port_system();

    port->ops->close(port, e->client);
    port->ops->close(port, e->server);
}

static void narrow(tti_handle handle)
{
    const int bytes = SMALL_BUFFER;

    assert_int_equal(setsockopt(handle, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes), 0);
}

static uint8_t byte_at(size_t at)
{
    return (uint8_t)(at * 2654435761u >> 13);
}

/* ---- much, both ways ---- */

typedef struct flow {
    tti_handle handle;
    size_t     sent, got;
    uint32_t   dice;
    bool       failed;
    uint8_t    out[PIECE_MAX], in[PIECE_MAX];
    size_t     piece, at; /* of what is being sent */
} flow;

static uint32_t throw_dice(flow *f)
{
    f->dice = f->dice * 1664525u + 1013904223u;
    return f->dice >> 8;
}

/* As a frame and its payload, the rest of which follows when there is room. */
static bool send_some(flow *f)
{
    tti_part parts[2];
    size_t   i;
    int64_t  n;

    if (f->at == f->piece && f->sent < MUCH) {
        f->piece = 1 + throw_dice(f) % (throw_dice(f) % 3 == 0 ? PIECE_MAX : 200);
        if (f->piece > MUCH - f->sent)
            f->piece = MUCH - f->sent;
        f->at = 0;
        for (i = 0; i < f->piece; i++)
            f->out[i] = byte_at(f->sent + i);
    }
    if (f->at == f->piece)
        return false;
    i = (f->piece - f->at) / 3;
    parts[0] = (tti_part){ f->out + f->at, i };
    parts[1] = (tti_part){ f->out + f->at + i, f->piece - f->at - i };
    n = tti_port_system()->ops->send(tti_port_system(), f->handle, parts, 2);
    if (n > 0) {
        assert_true((size_t)n <= f->piece - f->at);
        f->at += (size_t)n;
        f->sent += (size_t)n;
    } else if (n != -EAGAIN) {
        f->failed = true;
    }
    return n > 0;
}

static bool receive_some(flow *f)
{
    const size_t  bytes = 1 + throw_dice(f) % (throw_dice(f) % 2 == 0 ? PIECE_MAX : 64);
    const int64_t n = tti_port_system()->ops->recv(tti_port_system(), f->handle, f->in, bytes);
    int64_t       i;

    f->failed = f->failed || (n <= 0 && n != -EAGAIN);
    for (i = 0; i < n; i++)
        f->failed = f->failed || f->in[i] != byte_at(f->got + (size_t)i);
    f->got += n > 0 ? (size_t)n : 0;
    return n > 0;
}

static void *flow_main(void *arg)
{
    flow   *f = arg;
    int64_t until = in_ms(LIMIT_MS);

    while (!f->failed && (f->sent < MUCH || f->got < MUCH)) {
        tti_poll set = { .handle = f->handle, .want = f->sent < MUCH ? TTI_READ | TTI_WRITE : TTI_READ };

        if (tti_port_system()->ops->poll(tti_port_system(), &set, 1, until) == 0) {
            f->failed = true;
            break;
        }
        if ((set.got & TTI_WRITE) != 0)
            while (throw_dice(f) % 5 != 0 && send_some(f))
                continue;
        if ((set.got & TTI_READ) != 0 && f->got < MUCH)
            (void)receive_some(f);
    }
    return NULL;
}

static void much_passes_through_little_room(void **state)
{
    flow     *a = calloc(1, sizeof *a), *b = calloc(1, sizeof *b);
    ends      e = { 0 };
    pthread_t thread;

    (void)state;
    assert_true(a != NULL && b != NULL);
    assert_int_equal(meet(&e, &sealed, &sealed), TUTTI_OK);
    assert_int_equal(e.status, TUTTI_OK);
    narrow(e.client);
    narrow(e.server);
    a->handle = e.client;
    b->handle = e.server;
    a->dice = 1;
    b->dice = 2;
    assert_int_equal(pthread_create(&thread, NULL, flow_main, a), 0);
    flow_main(b);
    pthread_join(thread, NULL);
    if (a->failed || b->failed)
        fail_msg("client sent %zu and got %zu, server sent %zu and got %zu", a->sent, a->got, b->sent, b->got);
    assert_int_equal(a->got, MUCH);
    assert_int_equal(b->got, MUCH);
    close_ends(&e);
    free(a);
    free(b);
}

/* ---- poll ---- */

/* What was sent on this machine may still be on its way to the socket when the call that sent it has returned. */
static void receive_all(tti_handle handle, char *out, size_t bytes)
{
    tti_port *port = tti_port_system();
    tti_poll  set = { .handle = handle, .want = TTI_READ };
    size_t    have = 0;
    int64_t   n;

    while (have < bytes) {
        assert_int_equal(port->ops->poll(port, &set, 1, in_ms(LIMIT_MS)), 1);
        n = port->ops->recv(port, handle, out + have, bytes - have);
        assert_true(n > 0 || n == -EAGAIN);
        have += n > 0 ? (size_t)n : 0;
    }
}

static int look(tti_handle handle, uint8_t want)
{
    tti_poll set = { .handle = handle, .want = want };

    tti_port_system()->ops->poll(tti_port_system(), &set, 1, 0);
    return set.got;
}

static void poll_tells_of_what_was_read_ahead(void **state)
{
    tti_port      *port = tti_port_system();
    const tti_part part = { "0123456789", 10 };
    char           in[16];
    tti_poll       set;
    ends           e = { 0 };

    (void)state;
    assert_int_equal(meet(&e, &sealed, &sealed), TUTTI_OK);
    assert_int_equal(look(e.client, TTI_READ), 0);
    assert_int_equal(look(e.client, TTI_READ | TTI_WRITE), TTI_WRITE);
    assert_int_equal(port->ops->recv(port, e.client, in, sizeof in), -EAGAIN);
    assert_int_equal(port->ops->send(port, e.server, &part, 1), 10);
    assert_int_equal(port->ops->send(port, e.server, &part, 1), 10);
    set = (tti_poll){ .handle = e.client, .want = TTI_READ };
    assert_int_equal(port->ops->poll(port, &set, 1, in_ms(LIMIT_MS)), 1);
    assert_int_equal(port->ops->recv(port, e.client, in, 4), 4);
    assert_memory_equal(in, "0123", 4);
    assert_int_equal(look(e.client, TTI_READ), TTI_READ);  /* nothing of it is in the socket any more */
    assert_int_equal(look(e.client, TTI_WRITE), TTI_WRITE);
    receive_all(e.client, in, 16);
    assert_memory_equal(in, "4567890123456789", 16);
    assert_int_equal(look(e.client, TTI_READ), 0);
    assert_int_equal(port->ops->recv(port, e.client, in, 1), -EAGAIN);
    port->ops->close(port, e.server);
    set.got = 0;
    assert_int_equal(port->ops->poll(port, &set, 1, in_ms(LIMIT_MS)), 1);
    assert_int_equal(port->ops->recv(port, e.client, in, 1), 0);
    assert_int_equal(port->ops->recv(port, e.client, in, 1), 0);
    port->ops->close(port, e.client);
}

/* What the socket has not taken is not told as sent: not even a single byte, as stands at the end of a stripe. */
static void a_lone_byte_waits_for_room(void **state)
{
    static char    junk[1 << 16];
    tti_port      *port = tti_port_system();
    const tti_part byte = { "!", 1 };
    tti_poll       set;
    ends           e = { 0 };
    int64_t        took;
    int            tries = 1000;

    (void)state;
    assert_int_equal(meet(&e, &sealed, &sealed), TUTTI_OK);
    narrow(e.client);
    assert_int_equal(port->ops->send(port, e.client, &byte, 1), 1);
    do { /* past the filter, until nothing fits any more; what is on its way to the other end may make room yet */
        while (send(e.client, junk, sizeof junk, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
            continue;
        assert_int_equal(errno, EAGAIN);
        took = port->ops->send(port, e.client, &byte, 1);
        assert_true(took == 1 || took == -EAGAIN);
    } while (took == 1 && --tries > 0);
    assert_int_equal(took, -EAGAIN);
    assert_int_equal(port->ops->send(port, e.client, &(tti_part){ "", 0 }, 1), 0);
    set = (tti_poll){ .handle = e.client, .want = TTI_WRITE };
    while (port->ops->poll(port, &set, 1, 0) == 0)
        assert_true(recv(e.server, junk, sizeof junk, 0) > 0);
    assert_int_equal(port->ops->send(port, e.client, &byte, 1), 1);
    close_ends(&e);
}

/* A peer that is gone without a word, as after kill -9. */
static void an_end_is_an_end(void **state)
{
    tti_port *port = tti_port_system();
    char      in[4];
    tti_poll  set;
    ends      e = { 0 };

    (void)state;
    assert_int_equal(meet(&e, &sealed, &sealed), TUTTI_OK);
    assert_int_equal(shutdown(e.server, SHUT_RDWR), 0);
    set = (tti_poll){ .handle = e.client, .want = TTI_READ };
    assert_int_equal(port->ops->poll(port, &set, 1, in_ms(LIMIT_MS)), 1);
    assert_int_equal(port->ops->recv(port, e.client, in, 4), 0);
    close_ends(&e);
}

/* Somebody who gets at the stream below. */
static void what_is_slipped_in_is_found(void **state)
{
    static const char forged[] = "\x17\x03\x03\x00\x14" "some bytes of a forger";
    const tti_part    good = { "good", 4 };
    tti_port         *port = tti_port_system();
    char              in[64];
    tti_poll          set;
    ends              e = { 0 };
    size_t            have;
    int64_t           n;

    (void)state;
    assert_int_equal(meet(&e, &sealed, &sealed), TUTTI_OK);
    assert_int_equal(send(e.server, forged, 25, MSG_NOSIGNAL), 25);
    set = (tti_poll){ .handle = e.client, .want = TTI_READ };
    assert_int_equal(port->ops->poll(port, &set, 1, in_ms(LIMIT_MS)), 1);
    assert_int_equal(port->ops->recv(port, e.client, in, sizeof in), -EBADMSG);
    assert_int_equal(port->ops->recv(port, e.client, in, sizeof in), -EBADMSG);
    close_ends(&e);

    /* Behind something good: that is handed out, and poll tells that there is something to be said. */
    assert_int_equal(meet(&e, &sealed, &sealed), TUTTI_OK);
    assert_int_equal(port->ops->send(port, e.server, &good, 1), 4);
    assert_int_equal(send(e.server, forged, 25, MSG_NOSIGNAL), 25);
    set = (tti_poll){ .handle = e.client, .want = TTI_READ };
    assert_int_equal(port->ops->poll(port, &set, 1, in_ms(LIMIT_MS)), 1);
    for (have = 0; have < 4; have += (size_t)n) {
        n = port->ops->recv(port, e.client, in + have, sizeof in - have);
        assert_true(n > 0);
    }
    assert_memory_equal(in, "good", 4);
    assert_int_equal(port->ops->poll(port, &set, 1, in_ms(LIMIT_MS)), 1);
    assert_int_equal(port->ops->recv(port, e.client, in, sizeof in), -EBADMSG);
    assert_int_equal(look(e.client, TTI_READ), TTI_READ);
    close_ends(&e);
}

/* ---- both ends or none ---- */

static void differ(const tti_secret *client, const tti_secret *server, const char *client_says, const char *server_says)
{
    ends e = { 0 };

    assert_int_equal(meet(&e, client, server), TUTTI_E_MISMATCH);
    if (strstr(tutti_last_error(), server_says) == NULL)
        fail_msg("server: %s", tutti_last_error());
    assert_int_equal(e.status, TUTTI_E_MISMATCH);
    if (strstr(e.words, client_says) == NULL)
        fail_msg("client: %s", e.words);
    close_ends(&e);
}

static void ends_that_differ_both_say_so(void **state)
{
    tti_secret certs = sealed;

    (void)state;
    certs.seal = TTI_SEAL_CERT;
    differ(&plain, &sealed, "the server goes on with TLS with the job's secret, this process with plain TCP",
           "the client goes on with plain TCP, this process with TLS with the job's secret");
    differ(&sealed, &plain, "the server goes on with plain TCP, this process with TLS with the job's secret",
           "the client goes on with TLS with the job's secret, this process with plain TCP");
    differ(&sealed, &certs, "the server goes on with TLS with certificates", "the client goes on with TLS with the job's secret");
}

/* A stranger learns nothing about TLS: its secret is wrong before. */
static void strangers_get_no_answer(void **state)
{
    tti_secret other = plain;
    ends       e = { 0 };

    (void)state;
    other.padded[0]++;
    assert_int_not_equal(meet(&e, &other, &sealed), TUTTI_OK);
    assert_int_equal(e.status, TUTTI_E_AUTH);
    assert_non_null(strstr(e.words, "does not know this job's secret"));
    close_ends(&e);
}

/* ---- fork ---- */

/* In the child: the number is another stream's, which is plain. 0: as it should be. */
static int look_in_child(tti_handle was)
{
    tti_port *port = tti_port_system();
    tti_part  part = { "plain", 5 };
    char      in[8];
    int       pair[2], i;

    for (i = 0; i < 16; i++) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0)
            return 1;
        if (pair[0] != was && pair[1] != was)
            continue;
        if (port->ops->send(port, was, &part, 1) != 5)
            return 2;
        if (read(pair[0] == was ? pair[1] : pair[0], in, sizeof in) != 5 || memcmp(in, "plain", 5) != 0)
            return 3;
        return 0;
    }
    return 4;
}

static void children_have_nothing_of_it(void **state)
{
    const tti_part part = { "parent", 6 };
    tti_port      *port = tti_port_system();
    tti_poll       set;
    char           in[8];
    int            status;
    pid_t          pid;
    ends           e = { 0 };

    (void)state;
    assert_int_equal(meet(&e, &sealed, &sealed), TUTTI_OK);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(look_in_child(e.client));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(port->ops->send(port, e.client, &part, 1), 6); /* and the parent goes on */
    set = (tti_poll){ .handle = e.server, .want = TTI_READ };
    assert_int_equal(port->ops->poll(port, &set, 1, in_ms(LIMIT_MS)), 1);
    assert_int_equal(port->ops->recv(port, e.server, in, sizeof in), 6);
    close_ends(&e);
}

static void nothing_is_left(void **state)
{
    (void)state;
    assert_int_equal(tti_filter_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(much_passes_through_little_room),
        cmocka_unit_test(poll_tells_of_what_was_read_ahead),
        cmocka_unit_test(a_lone_byte_waits_for_room),
        cmocka_unit_test(an_end_is_an_end),
        cmocka_unit_test(what_is_slipped_in_is_found),
        cmocka_unit_test(ends_that_differ_both_say_so),
        cmocka_unit_test(strangers_get_no_answer),
        cmocka_unit_test(children_have_nothing_of_it),
        cmocka_unit_test(nothing_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

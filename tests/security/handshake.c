/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handshake.c - what getting in costs, and what it costs afterwards: connections through loopback, between two threads.
 *
 *   handshake [N]     default 2000 connections of each kind; by hand
 *
 * Kinds   without a secret, as with TUTTI_AUTH=none; with one; with one, and TLS behind it. They take turns, connection by connection, so
 *         that whatever else the machine does meets all of them.
 * Times   of each connection: until it is there; from then to the end of the hello at the client; and of TRIPS round trips of a byte
 *         behind it, which tell what a connection that has proved itself costs from then on. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "wire/addr.h"
#include "wire/hello.h"

enum { LIMIT_MS = 20000, KINDS = 3, TRIPS = 16 };

typedef struct kind {
    const char *name;
    tti_secret  secret;
    int64_t    *connect_ns, *hello_ns; /* [n] */
    int64_t    *trip_ns;               /* [n * TRIPS] */
} kind;

typedef struct bench {
    tti_port  *port;
    tti_addr   at;
    tti_handle listener;
    int        n; /* connections of each kind */
    kind       kinds[KINDS];
} bench;

static int64_t limit(const bench *b)
{
    return tti_deadline(b->port, LIMIT_MS, 0);
}

/* Of the i-th connection. */
static tti_hello_config config_of(const bench *b, int i, bool client)
{
    return (tti_hello_config){ .client = client, .purpose = TTI_PURPOSE_STORE, .rank = TTI_HELLO_NO_RANK,
                               .secret = &b->kinds[i % KINDS].secret };
}

static tti_handle take(const bench *b)
{
    tti_poll   poll = { .handle = b->listener, .want = TTI_READ };
    tti_handle stream;

    while ((stream = b->port->ops->accept(b->port, b->listener, NULL)) < 0)
        if (b->port->ops->poll(b->port, &poll, 1, limit(b)) == 0)
            return TTI_NO_HANDLE;
    return stream;
}

static bool answer(const bench *b, tti_handle stream)
{
    char byte;

    return tti_io_recv_all(b->port, stream, &byte, 1, "the client", limit(b)) == TUTTI_OK &&
           tti_io_send_all(b->port, stream, &byte, 1, "the client", limit(b)) == TUTTI_OK;
}

static void *serve(void *arg)
{
    bench *b = arg;
    int    i, k;

    for (i = 0; i < b->n * KINDS; i++) {
        const tti_hello_config config = config_of(b, i, false);
        const tti_handle       stream = take(b);
        bool                   ok = tti_hello_run(b->port, stream, &config, limit(b), NULL) == TUTTI_OK;

        for (k = 0; k < TRIPS && ok; k++)
            ok = answer(b, stream);
        if (!ok)
            fprintf(stderr, "server: %s\n", tutti_last_error());
        b->port->ops->close(b->port, stream);
    }
    return NULL;
}

static bool trips(const bench *b, tti_handle stream, int64_t ns[TRIPS])
{
    char    byte = 0;
    int64_t start;
    int     k;

    for (k = 0; k < TRIPS; k++) {
        start = tti_port_now(b->port);
        if (tti_io_send_all(b->port, stream, &byte, 1, "the server", limit(b)) != TUTTI_OK ||
            tti_io_recv_all(b->port, stream, &byte, 1, "the server", limit(b)) != TUTTI_OK)
            return false;
        ns[k] = tti_port_now(b->port) - start;
    }
    return true;
}

static bool one(bench *b, int i)
{
    const tti_hello_config config = config_of(b, i, true);
    kind                  *k = &b->kinds[i % KINDS];
    const int64_t          start = tti_port_now(b->port);
    tti_handle             stream = TTI_NO_HANDLE;
    tti_poll               poll = { .want = TTI_WRITE };
    int64_t                connected;
    bool                   ok = b->port->ops->connect(b->port, &b->at, &stream) == 0;

    poll.handle = stream;
    ok = ok && b->port->ops->poll(b->port, &poll, 1, limit(b)) == 1;
    connected = tti_port_now(b->port);
    ok = ok && tti_hello_run(b->port, stream, &config, limit(b), NULL) == TUTTI_OK;
    k->connect_ns[i / KINDS] = connected - start;
    k->hello_ns[i / KINDS] = tti_port_now(b->port) - connected;
    ok = ok && trips(b, stream, &k->trip_ns[(size_t)(i / KINDS) * TRIPS]);
    b->port->ops->close(b->port, stream);
    return ok;
}

static int by_size(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void print(const char *kind_name, const char *what, int64_t *ns, int n)
{
    qsort(ns, (size_t)n, sizeof *ns, by_size);
    printf("%-12s %-11s median %7.1f us   90 %% %7.1f us   99 %% %7.1f us\n", kind_name, what, (double)ns[n / 2] / 1e3,
           (double)ns[(size_t)n * 9 / 10] / 1e3, (double)ns[(size_t)n * 99 / 100] / 1e3);
}

static bool make_kinds(bench *b)
{
    static const struct {
        const char *name;
        bool        has_secret;
        tti_seal    seal;
    } rows[KINDS] = { { "no secret", false, TTI_SEAL_NONE }, { "secret", true, TTI_SEAL_NONE }, { "secret, TLS", true, TTI_SEAL_KEY } };
    uint8_t key[TTI_SECRET_BYTES] = { 7 };
    bool    made = true;
    int     i;

    for (i = 0; i < KINDS && made; i++) {
        kind *k = &b->kinds[i];

        k->name = rows[i].name;
        made = !rows[i].has_secret || tti_secret_make(key, &k->secret) == TUTTI_OK;
        k->secret.seal = rows[i].seal;
        k->connect_ns = calloc((size_t)b->n, sizeof *k->connect_ns);
        k->hello_ns = calloc((size_t)b->n, sizeof *k->hello_ns);
        k->trip_ns = calloc((size_t)b->n * TRIPS, sizeof *k->trip_ns);
        made = made && k->connect_ns != NULL && k->hello_ns != NULL && k->trip_ns != NULL;
    }
    return made;
}

static void print_and_free(kind *k, int n)
{
    print(k->name, "connect", k->connect_ns, n);
    print(k->name, "hello", k->hello_ns, n);
    print(k->name, "round trip", k->trip_ns, n * TRIPS);
    free(k->connect_ns);
    free(k->hello_ns);
    free(k->trip_ns);
    tti_secret_release(&k->secret);
}

int main(int argc, char **argv)
{
    const tti_addr loopback = { .family = TTI_ADDR_IP4, .ip = { 127, 0, 0, 1 } };
    const int      n = argc > 1 ? atoi(argv[1]) : 2000;
    bench          b = { .port = tti_port_system(), .n = n > 0 ? n : 1 };
    pthread_t      server;
    int            i;

    if (!make_kinds(&b) || b.port->ops->listen(b.port, &loopback, 16, &b.at, &b.listener) != 0 ||
        pthread_create(&server, NULL, serve, &b) != 0)
        return 1;
    for (i = 0; i < b.n * KINDS; i++)
        if (!one(&b, i)) {
            fprintf(stderr, "connection %d: %s\n", i, tutti_last_error());
            return 1;
        }
    pthread_join(server, NULL);
    b.port->ops->close(b.port, b.listener);
    for (i = 0; i < KINDS; i++)
        print_and_free(&b.kinds[i], b.n);
    return 0;
}

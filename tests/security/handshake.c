/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handshake.c - what the hello costs: connections through loopback, with a secret, between two threads.
 *
 *   handshake [N]     default 2000 connections; by hand
 *
 * Of each the time from the connection to the end of the hello at the client, and beside it that of one round trip of a
 * byte and of the connection itself, which it would take anyway. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "wire/addr.h"
#include "wire/hello.h"

enum { LIMIT_MS = 20000 };

typedef struct bench {
    tti_port  *port;
    tti_secret secret;
    tti_addr   at;
    tti_handle listener;
    int        n;
    int64_t   *connect_ns, *hello_ns, *trip_ns; /* [n] */
} bench;

static int64_t limit(const bench *b)
{
    return tti_deadline(b->port, LIMIT_MS, 0);
}

static tti_hello_config config_of(const bench *b, bool client)
{
    return (tti_hello_config){ .client = client, .purpose = TTI_PURPOSE_STORE, .rank = TTI_HELLO_NO_RANK, .secret = &b->secret };
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

static void *serve(void *arg)
{
    bench                 *b = arg;
    const tti_hello_config config = config_of(b, false);
    char                   byte;
    int                    i;

    for (i = 0; i < b->n; i++) {
        const tti_handle stream = take(b);

        if (tti_hello_run(b->port, stream, &config, limit(b), NULL) != TUTTI_OK ||
            tti_io_recv_all(b->port, stream, &byte, 1, "the client", limit(b)) != TUTTI_OK ||
            tti_io_send_all(b->port, stream, &byte, 1, "the client", limit(b)) != TUTTI_OK)
            fprintf(stderr, "server: %s\n", tutti_last_error());
        b->port->ops->close(b->port, stream);
    }
    return NULL;
}

static bool one(bench *b, int i)
{
    const tti_hello_config config = config_of(b, true);
    const int64_t          start = tti_port_now(b->port);
    tti_handle             stream = TTI_NO_HANDLE;
    tti_poll               poll = { .want = TTI_WRITE };
    char                   byte = 0;
    int64_t                connected, greeted = 0;
    bool                   ok = b->port->ops->connect(b->port, &b->at, &stream) == 0;

    poll.handle = stream;
    ok = ok && b->port->ops->poll(b->port, &poll, 1, limit(b)) == 1;
    connected = tti_port_now(b->port);
    ok = ok && tti_hello_run(b->port, stream, &config, limit(b), NULL) == TUTTI_OK;
    greeted = tti_port_now(b->port);
    ok = ok && tti_io_send_all(b->port, stream, &byte, 1, "the server", limit(b)) == TUTTI_OK &&
         tti_io_recv_all(b->port, stream, &byte, 1, "the server", limit(b)) == TUTTI_OK;
    b->connect_ns[i] = connected - start;
    b->hello_ns[i] = greeted - connected;
    b->trip_ns[i] = tti_port_now(b->port) - greeted;
    b->port->ops->close(b->port, stream);
    return ok;
}

static int by_size(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void print(const char *what, int64_t *ns, int n)
{
    qsort(ns, (size_t)n, sizeof *ns, by_size);
    printf("%-12s median %7.1f us   90 %% %7.1f us   99 %% %7.1f us\n", what, (double)ns[n / 2] / 1e3, (double)ns[n * 9 / 10] / 1e3,
           (double)ns[n * 99 / 100] / 1e3);
}

int main(int argc, char **argv)
{
    const tti_addr loopback = { .family = TTI_ADDR_IP4, .ip = { 127, 0, 0, 1 } };
    uint8_t        key[TTI_SECRET_BYTES] = { 7 };
    bench          b = { .port = tti_port_system(), .n = argc > 1 ? atoi(argv[1]) : 2000 };
    pthread_t      server;
    int            i;

    b.n = b.n > 0 ? b.n : 1;
    b.connect_ns = calloc((size_t)b.n, sizeof *b.connect_ns);
    b.hello_ns = calloc((size_t)b.n, sizeof *b.hello_ns);
    b.trip_ns = calloc((size_t)b.n, sizeof *b.trip_ns);
    if (b.connect_ns == NULL || b.hello_ns == NULL || b.trip_ns == NULL || tti_secret_make(key, &b.secret) != TUTTI_OK ||
        b.port->ops->listen(b.port, &loopback, 16, &b.at, &b.listener) != 0 || pthread_create(&server, NULL, serve, &b) != 0)
        return 1;
    for (i = 0; i < b.n; i++)
        if (!one(&b, i)) {
            fprintf(stderr, "connection %d: %s\n", i, tutti_last_error());
            return 1;
        }
    pthread_join(server, NULL);
    b.port->ops->close(b.port, b.listener);
    print("connect", b.connect_ns, b.n);
    print("hello", b.hello_ns, b.n);
    print("round trip", b.trip_ns, b.n);
    free(b.connect_ns);
    free(b.hello_ns);
    free(b.trip_ns);
    return 0;
}

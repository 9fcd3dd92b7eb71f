/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_clients.c - a server, and threads that count. */
#include "bench_clients.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STACK_BYTES = 256 * 1024 };

typedef struct client {
    const bench_clients *all;
    pthread_t thread;
    tutti_store *store;
    bool ok;
} client;

static void say(const char *word)
{
    printf("%s\n", word);
    fflush(stdout);
}

/* Wait for a line, or with `end` for the end, of standard input. */
static void await_input(bool end)
{
    char c;

    while (read(STDIN_FILENO, &c, 1) == 1)
        if (c == '\n' && !end)
            return;
}

int bench_serve(void *arg)
{
    tutti_store_server *server = NULL;
    char text[16];

    (void)arg;
    if (tutti_store_server_start(NULL, &server) != TUTTI_OK) {
        fprintf(stderr, "tutti bench: %s\n", tutti_last_error());
        return EXIT_FAILURE;
    }
    snprintf(text, sizeof text, "%d", tutti_store_server_port(server));
    say(text);
    await_input(true);
    tutti_store_server_stop(server);
    return EXIT_SUCCESS;
}

tutti_status bench_open(const bench_clients *clients, tutti_store **store_out)
{
    tutti_tcp_store_options tcp = TUTTI_TCP_STORE_OPTIONS;
    tutti_torch_store_options torch = TUTTI_TORCH_STORE_OPTIONS;

    tcp.host = torch.host = "127.0.0.1";
    tcp.port = torch.port = clients->port;
    return clients->torch ? tutti_torch_store_open(&torch, store_out)
                          : tutti_tcp_store_open(&tcp, store_out);
}

/* The first failure of a process; a thousand others mostly say the same. */
static void complain(void)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&said))
        fprintf(stderr, "tutti bench: %s\n", tutti_last_error());
}

static void *connect_one(void *arg)
{
    client *c = arg;

    c->ok = bench_open(c->all, &c->store) == TUTTI_OK;
    if (!c->ok)
        complain();
    return NULL;
}

static void *count_one(void *arg)
{
    client *c = arg;
    int i;

    for (i = 0; i < c->all->adds && c->ok; i++)
        c->ok = tutti_store_add(c->store, BENCH_COUNTER, 1, NULL) == TUTTI_OK;
    if (!c->ok)
        complain();
    return NULL;
}

static bool in_threads(client *clients, int n, void *(*body)(void *arg))
{
    pthread_attr_t attr;
    bool ok = true;
    int started, i;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    for (started = 0; started < n && ok; started++)
        ok = pthread_create(&clients[started].thread, &attr, body, &clients[started]) == 0;
    if (!ok)
        fprintf(stderr, "tutti bench: cannot start %d threads\n  next: fewer --clients\n", n);
    started -= !ok;
    for (i = 0; i < started; i++) {
        pthread_join(clients[i].thread, NULL);
        ok = ok && clients[i].ok;
    }
    pthread_attr_destroy(&attr);
    return ok;
}

int bench_count(void *arg)
{
    const bench_clients *all = arg;
    client *clients = calloc((size_t)all->n, sizeof *clients);
    bool ok = clients != NULL;
    int i;

    for (i = 0; ok && i < all->n; i++)
        clients[i].all = all;
    say("ready");
    await_input(false);
    ok = ok && in_threads(clients, all->n, connect_one);
    if (ok)
        say("connected");
    await_input(false);
    ok = ok && in_threads(clients, all->n, count_one);
    if (ok)
        say("done");
    await_input(true);
    for (i = 0; clients != NULL && i < all->n; i++)
        tutti_store_close(clients[i].store);
    free(clients);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

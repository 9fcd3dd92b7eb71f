/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_clients.h - one process of `tutti bench store`: the server, or many clients. */
#ifndef TUTTI_BENCH_CLIENTS_H
#define TUTTI_BENCH_CLIENTS_H

#include <stdbool.h>
#include <tutti/store.h>

#define BENCH_COUNTER "counter"

typedef struct bench_clients {
    bool torch; /* the server is PyTorch's */
    int port;
    int n;
    int adds; /* of each */
} bench_clients;

/** Connect to the server of these clients. */
tutti_status bench_open(const bench_clients *clients, tutti_store **store_out);

/** Bodies for bench_fork(). The server says its port and serves until its input ends; arg is not
 * used. Clients (arg: bench_clients) say "ready", "connected" and "done", and wait for a line in
 * between: each is a thread with a store, and so a connection, of its own. */
int bench_serve(void *arg);
int bench_count(void *arg);

#endif

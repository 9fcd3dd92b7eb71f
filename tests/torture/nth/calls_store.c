/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calls_store.c - stores, and collectives over them. */
#include "scenarios.h"

#include <stdio.h>
#include <string.h>
#include "fails.h"
#include "harness/torch_server.h"



/* ---- every call of a store ---- */

static void values(tt_actor *a, tutti_store *store)
{
    const char *keys[] = { "a", "b" };
    tutti_bytes got = { NULL, 0 };
    int64_t     sum = 0;
    bool        there = false;

    if (THEN(tutti_store_set(store, "a", "1", 1)) && TRY(tutti_store_get(store, "a", a->timeout_ms, &got)))
        tt_must_be(a, got.size == 1 && memcmp(got.data, "1", 1) == 0, "a wrong value");
    tutti_bytes_free(&got);
    if (THEN(tutti_store_add(store, "b", 2, &sum)))
        tt_must_be(a, sum == 2, "a wrong counter");
    (void)THEN(tutti_store_wait(store, keys, 2, a->timeout_ms));
    if (THEN(tutti_store_check(store, keys, 2, &there)))
        tt_must_be(a, there, "keys that are there are not");
    (void)THEN(tutti_store_append(store, "a", "23", 2));
    (void)THEN(tutti_store_compare_set(store, "a", "123", 3, "4", 1, &got));
    tutti_bytes_free(&got);
    (void)THEN(tutti_store_barrier(store, "c", 1, a->timeout_ms));
    if (THEN(tutti_store_delete_key(store, "b", &there)))
        tt_must_be(a, there, "a key that was there was not deleted");
}

static void several(tt_actor *a, tutti_store *store)
{
    const char       *keys[] = { "d", "e" };
    const tutti_bytes given[2] = { tutti_bytes_of("1", 1), tutti_bytes_of("2", 1) };
    tutti_bytes       got[2] = { { NULL, 0 }, { NULL, 0 } };
    tutti_store_keys  names = { .names = NULL };
    int64_t           n = 0;

    (void)THEN(tutti_store_multi_set(store, keys, given, 2));
    if (THEN(tutti_store_multi_get(store, keys, 2, a->timeout_ms, got)))
        tt_must_be(a, got[1].size == 1 && memcmp(got[1].data, "2", 1) == 0, "a wrong value of several");
    tutti_bytes_free(&got[0]);
    tutti_bytes_free(&got[1]);
    if (THEN(tutti_store_num_keys(store, &n)))
        tt_must_be(a, n >= 2, "too few keys");
    if (THEN(tutti_store_list_keys(store, &names)))
        tt_must_be(a, names.n >= 2, "too few names of keys");
    tutti_store_keys_free(&names);
}

static void queues(tt_actor *a, tutti_store *store)
{
    tutti_bytes got = { NULL, 0 };
    int64_t     n = 0;

    (void)THEN(tutti_store_queue_push(store, "q", "1", 1));
    if (THEN(tutti_store_queue_len(store, "q", &n)))
        tt_must_be(a, n == 1, "a wrong length of a queue");
    if (THEN(tutti_store_queue_pop(store, "q", true, a->timeout_ms, &got)))
        tt_must_be(a, got.size == 1, "a wrong value of a queue");
    tutti_bytes_free(&got);
}

static void use_store(tt_actor *a, tutti_store *store, bool has_queues)
{
    tutti_store *part = NULL, *clone = NULL;

    if (TRY(tutti_prefix_store_open("part", store, &part)) && TRY(tutti_store_clone(part, &clone))) {
        values(a, part);
        several(a, clone);
        if (has_queues)
            queues(a, clone);
    }
    tutti_store_close(clone);
    tutti_store_close(part);
}

static void hash_store(tt_actor *a)
{
    tutti_store *store = NULL;

    if (TRY(tutti_hash_store_open(&store)))
        use_store(a, store, true);
    tutti_store_close(store);
}

static void file_store(tt_actor *a)
{
    tutti_store *store = NULL;
    char         path[256];

    snprintf(path, sizeof path, "%s/store", a->dir);
    remove(path);
    if (TRY(tutti_file_store_open(path, 1, &store)))
        use_store(a, store, false);
    tutti_store_close(store);
    remove(path);
}

static void tcp_store(tt_actor *a)
{
    tutti_tcp_store_options opts = TUTTI_TCP_STORE_OPTIONS;
    tutti_store            *store = NULL;

    opts.host = "127.0.0.1";
    opts.is_master = true;
    opts.timeout_ms = a->timeout_ms;
    if (TRY(tutti_tcp_store_open(&opts, &store)))
        use_store(a, store, true);
    tutti_store_close(store);
}

/* The server alone, and a client of it. */
static void store_server(tt_actor *a)
{
    tutti_store_server_options how = TUTTI_STORE_SERVER_OPTIONS;
    tutti_tcp_store_options    opts = TUTTI_TCP_STORE_OPTIONS;
    tutti_store_server        *server = NULL;
    tutti_store               *store = NULL;

    if (!TRY(tutti_store_server_start(&how, &server)))
        return;
    opts.host = "127.0.0.1";
    opts.port = tutti_store_server_port(server);
    opts.timeout_ms = a->timeout_ms;
    if (TRY(tutti_tcp_store_open(&opts, &store)))
        values(a, store);
    tutti_store_close(store);
    tutti_store_server_stop(server);
}

/* A server of PyTorch's protocol, which is on nobody's side: what it calls does not fail. */
static void torch_store(tt_actor *a)
{
    tutti_torch_store_options opts = TUTTI_TORCH_STORE_OPTIONS;
    tt_torch_server          *server;
    tutti_store              *store = NULL;

    tt_be_side(TT_NOBODY);
    server = tt_torch_server_start(NULL);
    tt_be_side(a->rank);
    tt_must_be(a, server != NULL, "there is no server of PyTorch's protocol");
    if (server != NULL) {
        opts.host = "127.0.0.1";
        opts.port = tt_torch_server_port(server);
        opts.timeout_ms = a->timeout_ms;
        if (TRY(tutti_torch_store_open(&opts, &store)))
            use_store(a, store, true);
        tutti_store_close(store);
    }
    tt_be_side(TT_NOBODY);
    tt_torch_server_stop(server);
    tt_be_side(a->rank);
}

/* ---- collectives over a store ---- */

/* The collective's call of rank 0, and that of the others. */
#define BY_RANK(first, others) (a->rank == 0 ? THEN(first) : THEN(others))

static void drop(tutti_bytes *got, int n)
{
    int i;

    for (i = 0; i < n; i++)
        tutti_bytes_free(&got[i]);
}

static void over_a_store(tt_actor *a)
{
    const tutti_bytes        given[2] = { tutti_bytes_of("v", 1), tutti_bytes_of("w", 1) };
    const int64_t            ms = a->timeout_ms;
    tutti_store_collectives *sc = NULL;
    tutti_bytes              got[2] = { { NULL, 0 }, { NULL, 0 } };
    int64_t                  sum = 0;

    (void)THEN(tutti_store_collectives_create(a->store, a->rank, a->size, &sc));
    (void)THEN(tutti_store_collectives_barrier(sc, "a", ms, true));
    if (BY_RANK(tutti_store_collectives_broadcast_send(sc, "b", "v", 1, ms),
                tutti_store_collectives_broadcast_recv(sc, "b", ms, &got[0])))
        tt_must_be(a, a->rank == 0 || got[0].size == 1, "a wrong broadcast over a store");
    drop(got, 2);
    if (BY_RANK(tutti_store_collectives_gather_recv(sc, "c", "v", 1, ms, got),
                tutti_store_collectives_gather_send(sc, "c", "w", 1, ms)))
        tt_must_be(a, a->rank != 0 || memcmp(got[1].data, "w", 1) == 0, "a wrong gathering over a store");
    drop(got, 2);
    if (BY_RANK(tutti_store_collectives_scatter_send(sc, "d", given, ms),
                tutti_store_collectives_scatter_recv(sc, "d", ms, &got[0])))
        tt_must_be(a, a->rank == 0 || memcmp(got[0].data, "w", 1) == 0, "a wrong part over a store");
    drop(got, 2);
    if (THEN(tutti_store_collectives_all_gather(sc, "e", "v", 1, ms, got)))
        tt_must_be(a, got[1].size == 1, "a wrong gathering of all over a store");
    drop(got, 2);
    if (THEN(tutti_store_collectives_all_sum(sc, "f", a->rank + 1, ms, &sum)))
        tt_must_be(a, sum == (int64_t)tt_sum_of(a), "a wrong sum over a store");
    tutti_store_collectives_free(sc);
}

static const tt_scenario scenarios[] = {
    TT_PLAY("hash store", 1, hash_store),
    TT_PLAY("file store", 1, file_store),
    TT_PLAY("tcp store", 1, tcp_store),
    TT_PLAY("store server", 1, store_server),
    TT_PLAY("torch store", 1, torch_store),
    TT_PLAY("over a store", 2, over_a_store, .own = true),
};

TT_FAMILY(tt_store_calls, "stores", scenarios);

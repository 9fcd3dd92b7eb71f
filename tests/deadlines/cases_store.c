/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cases_store.c - stores whose server is the peer, and calls over them that wait for the peer itself. Words can name
 * the store, not a rank. */
#include "deadlines.h"

#include <stdio.h>

#define STORE(name, ...) TT_CASE(tutti_store_##name, .on = TT_ON_STORE, .names_nobody = true, ##__VA_ARGS__)

static const char *const absent_key = "absent";

/* ---- what waits for a key ---- */

STORE(get)
{
    tutti_bytes value = { .data = NULL };

    return tutti_store_get(c->store, absent_key, 0, &value);
}

STORE(wait)
{
    return tutti_store_wait(c->store, &absent_key, 1, 0);
}

STORE(multi_get)
{
    tutti_bytes value = { .data = NULL };

    return tutti_store_multi_get(c->store, &absent_key, 1, 0, &value);
}

STORE(queue_pop)
{
    tutti_bytes value = { .data = NULL };

    return tutti_store_queue_pop(c->store, absent_key, true, 0, &value);
}

enum { KEY_MAX_BYTES = 48 };

/* The store stays from pass to pass, and who has come to a barrier of it has been counted: each pass has a key of its own. */
static const char *key_of(const tt_cell *c, const char *name, char out[KEY_MAX_BYTES])
{
    snprintf(out, KEY_MAX_BYTES, "%s %d", name, c->pass);
    return out;
}

STORE(barrier)
{
    char name[KEY_MAX_BYTES];

    return tutti_store_barrier(c->store, key_of(c, "barrier", name), 2, 0);
}

/* ---- what waits for the server alone ---- */

STORE(set, .needs_stop = true)
{
    return tutti_store_set(c->store, "k", "v", 1);
}

STORE(add, .needs_stop = true)
{
    return tutti_store_add(c->store, "n", 1, NULL);
}

STORE(check, .needs_stop = true)
{
    bool all = false;

    return tutti_store_check(c->store, &absent_key, 1, &all);
}

STORE(compare_set, .needs_stop = true)
{
    tutti_bytes        value = { .data = NULL };
    const tutti_status st = tutti_store_compare_set(c->store, "c", "", 0, "v", 1, &value);

    tutti_bytes_free(&value);
    return st;
}

STORE(delete_key, .needs_stop = true)
{
    return tutti_store_delete_key(c->store, "k", NULL);
}

STORE(num_keys, .needs_stop = true)
{
    int64_t n = 0;

    return tutti_store_num_keys(c->store, &n);
}

STORE(append, .needs_stop = true)
{
    return tutti_store_append(c->store, "a", "v", 1);
}

STORE(multi_set, .needs_stop = true)
{
    static const char *const key = "m";
    const tutti_bytes        value = { .data = (char *)(uintptr_t) "v", .size = 1 };

    return tutti_store_multi_set(c->store, &key, &value, 1);
}

STORE(queue_push, .needs_stop = true)
{
    return tutti_store_queue_push(c->store, "q", "v", 1);
}

STORE(queue_len, .needs_stop = true)
{
    int64_t n = 0;

    return tutti_store_queue_len(c->store, "q", &n);
}

STORE(list_keys, .needs_stop = true)
{
    tutti_store_keys   keys = { .names = NULL };
    const tutti_status st = tutti_store_list_keys(c->store, &keys);

    tutti_store_keys_free(&keys);
    return st;
}

STORE(clone, .needs_stop = true)
{
    tutti_store       *clone = NULL;
    const tutti_status st = tutti_store_clone(c->store, &clone);

    if (st == TUTTI_OK)
        tutti_store_close(clone);
    return st;
}

TT_CASE(tutti_tcp_store_open, .on = TT_ON_STORE, .names_nobody = true, .needs_stop = true)
{
    tutti_tcp_store_options opts = TUTTI_TCP_STORE_OPTIONS;
    tutti_store            *store = NULL;
    tutti_status            st;

    opts.host = tutti_tcp_store_host(c->store);
    opts.port = tutti_tcp_store_port(c->store);
    opts.timeout_ms = TT_DEADLINE_MS;
    st = tutti_tcp_store_open(&opts, &store);
    if (st == TUTTI_OK)
        tutti_store_close(store);
    return st;
}

/* ---- collectives over a store: for two, of which one comes ---- */

static tutti_status over_store(tt_cell *c, int rank, tutti_store_collectives **out)
{
    return tutti_store_collectives_create(c->store, rank, 2, out);
}

#define COLLECTIVE(name, my_rank, call, ...)                                                           \
    TT_CASE(tutti_store_collectives_##name, .on = TT_ON_STORE, .names_nobody = true, ##__VA_ARGS__)    \
    {                                                                                                  \
        tutti_store_collectives *sc = NULL;                                                            \
        char                     room[KEY_MAX_BYTES];                                                  \
        const char              *key = key_of(c, #name, room);                                         \
        tutti_status             st = over_store(c, my_rank, &sc);                                     \
                                                                                                       \
        if (st == TUTTI_OK)                                                                            \
            st = tutti_store_collectives_##name call;                                                  \
        tutti_store_collectives_free(sc);                                                              \
        return st;                                                                                     \
    }

static tutti_bytes        got[2];
static const tutti_bytes  given[2] = { { (char *)(uintptr_t) "v", 1 }, { (char *)(uintptr_t) "w", 1 } };
static int64_t            sum;

COLLECTIVE(barrier, 0, (sc, key, TT_DEADLINE_MS, true))
COLLECTIVE(broadcast_recv, 1, (sc, key, TT_DEADLINE_MS, &got[0]))
COLLECTIVE(gather_recv, 0, (sc, key, "v", 1, TT_DEADLINE_MS, got))
COLLECTIVE(scatter_recv, 1, (sc, key, TT_DEADLINE_MS, &got[0]))
COLLECTIVE(all_gather, 0, (sc, key, "v", 1, TT_DEADLINE_MS, got))
COLLECTIVE(all_sum, 0, (sc, key, 1, TT_DEADLINE_MS, &sum))
COLLECTIVE(broadcast_send, 0, (sc, key, "v", 1, TT_DEADLINE_MS), .needs_stop = true)
COLLECTIVE(gather_send, 1, (sc, key, "v", 1, TT_DEADLINE_MS), .needs_stop = true)
COLLECTIVE(scatter_send, 0, (sc, key, given, TT_DEADLINE_MS), .needs_stop = true)

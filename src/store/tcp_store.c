/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tcp_store.c - the tcp store: its operations as calls, opening, serving, joining.
 *
 * How     User keys go over the wire with a '/' in front; "init/", where those who join are
 *         counted, has none. Calls and connections stand in tcp_call.h. */
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "store/tcp_call.h"

#define JOIN_KEY     "init/"
#define JOIN_POLL_NS (10 * TTI_MS)

typedef struct tcp_store {
    tutti_store         base; /* first: the two pointers convert both ways */
    tti_tcp_pool        pool;
    tutti_store_server *server; /* is_master; else NULL */
} tcp_store;

static tti_tcp_pool *pool_of(tutti_store *store)
{
    return &((tcp_store *)store)->pool;
}

static tutti_status tcp_set(tutti_store *store, const char *key, const void *val, size_t len,
                            int64_t deadline_ns)
{
    tti_tcp_call call;
    tti_tcp_key  room;

    tti_tcp_call_begin(&call, pool_of(store), TTI_STORE_SET, key, deadline_ns);
    tti_tcp_call_key(&call, key, &room);
    call.request.value = (tti_slice){ .data = val, .size = len };
    return tti_tcp_call_number(&call, 0, NULL);
}

static tutti_status tcp_get(tutti_store *store, const char *key, int64_t deadline_ns,
                            tutti_bytes *val_out)
{
    tti_tcp_call call;
    tti_tcp_key  room;
    tutti_status st;

    tti_tcp_call_begin(&call, pool_of(store), TTI_STORE_GET, key, deadline_ns);
    tti_tcp_call_key(&call, key, &room);
    st = tti_tcp_call_run(&call);
    if (st == TUTTI_OK)
        *val_out = call.body;
    return st;
}

/* WAIT or CHECK of at most TTI_STORE_KEYS_MAX keys. */
static tutti_status ask_some(tti_tcp_pool *pool, tti_store_op op, const char *const *keys,
                             size_t n_keys, int64_t deadline_ns, int64_t *out)
{
    tti_tcp_key *rooms = malloc(n_keys * sizeof *rooms);
    tti_tcp_call call;
    tutti_status st;
    size_t       i;

    if (rooms == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for %zu store keys", n_keys);
    tti_tcp_call_begin(&call, pool, op, keys[0], deadline_ns);
    for (i = 0; i < n_keys; i++)
        tti_tcp_call_key(&call, keys[i], &rooms[i]);
    st = tti_tcp_call_number(&call, op == TTI_STORE_CHECK ? 1 : 0, out);
    free(rooms);
    return st;
}

/* In portions; *all_out false: one was missing at a CHECK. */
static tutti_status ask_all(tti_tcp_pool *pool, tti_store_op op, const char *const *keys,
                            size_t n_keys, int64_t deadline_ns, bool *all_out)
{
    tutti_status st = TUTTI_OK;
    int64_t      yes = 1;
    size_t       at, n;

    for (at = 0; at < n_keys && st == TUTTI_OK && yes != 0; at += n) {
        n = n_keys - at < TTI_STORE_KEYS_MAX ? n_keys - at : TTI_STORE_KEYS_MAX;
        st = ask_some(pool, op, keys + at, n, deadline_ns, op == TTI_STORE_CHECK ? &yes : NULL);
    }
    if (st == TUTTI_OK && all_out != NULL)
        *all_out = yes != 0;
    return st;
}

/* After a time-out of several keys: name one that is missing, if the server still answers. */
static void name_missing(tti_tcp_pool *pool, const char *const *keys, size_t n_keys,
                         int64_t start_ns)
{
    const int64_t until = tti_port_now(pool->port) + TTI_TCP_ANSWER_MS * TTI_MS;
    bool          there = true;
    size_t        i;

    for (i = 0; i < n_keys; i++)
        if (ask_all(pool, TTI_STORE_CHECK, keys + i, 1, until, &there) != TUTTI_OK || !there)
            break;
    tti_fail(TUTTI_E_TIMEOUT, "key '%s' did not come within %" PRId64 " ms (%s)",
             keys[i < n_keys ? i : 0], (until - TTI_TCP_ANSWER_MS * TTI_MS - start_ns) / TTI_MS,
             pool->who);
}

static tutti_status tcp_wait_all(tutti_store *store, const char *const *keys, size_t n_keys,
                                 int64_t deadline_ns)
{
    tti_tcp_pool *pool = pool_of(store);
    const int64_t start = tti_port_now(pool->port);
    tutti_status  st = ask_all(pool, TTI_STORE_WAIT, keys, n_keys, deadline_ns, NULL);

    if (st == TUTTI_E_TIMEOUT && n_keys > 1)
        name_missing(pool, keys, n_keys, start);
    return st;
}

static tutti_status tcp_check(tutti_store *store, const char *const *keys, size_t n_keys,
                              int64_t deadline_ns, bool *all_out)
{
    return ask_all(pool_of(store), TTI_STORE_CHECK, keys, n_keys, deadline_ns, all_out);
}

static tutti_status tcp_compare_set(tutti_store *store, const char *key, const void *expected,
                                    size_t expected_len, const void *desired, size_t desired_len,
                                    int64_t deadline_ns, tutti_bytes *val_out)
{
    tti_tcp_call call;
    tti_tcp_key  room;
    tutti_status st;

    tti_tcp_call_begin(&call, pool_of(store), TTI_STORE_COMPARE_SET, key, deadline_ns);
    tti_tcp_call_key(&call, key, &room);
    call.request.expected = (tti_slice){ .data = expected, .size = expected_len };
    call.request.value = (tti_slice){ .data = desired, .size = desired_len };
    st = tti_tcp_call_run(&call);
    if (st == TUTTI_OK)
        *val_out = call.body;
    return st;
}

static tutti_status tcp_add(tutti_store *store, const char *key, int64_t delta, int64_t deadline_ns,
                            int64_t *sum_out)
{
    tti_tcp_call call;
    tti_tcp_key  room;

    tti_tcp_call_begin(&call, pool_of(store), TTI_STORE_ADD, key, deadline_ns);
    tti_tcp_call_key(&call, key, &room);
    call.request.delta = delta;
    return tti_tcp_call_number(&call, 8, sum_out);
}

static tutti_status tcp_delete_key(tutti_store *store, const char *key, int64_t deadline_ns,
                                   bool *deleted_out)
{
    tti_tcp_call call;
    tti_tcp_key  room;
    int64_t      deleted = 0;
    tutti_status st;

    tti_tcp_call_begin(&call, pool_of(store), TTI_STORE_DELETE, key, deadline_ns);
    tti_tcp_call_key(&call, key, &room);
    st = tti_tcp_call_number(&call, 1, &deleted);
    if (st == TUTTI_OK)
        *deleted_out = deleted != 0;
    return st;
}

static tutti_status tcp_num_keys(tutti_store *store, int64_t deadline_ns, int64_t *n_out)
{
    tti_tcp_call call;

    tti_tcp_call_begin(&call, pool_of(store), TTI_STORE_NUM_KEYS, NULL, deadline_ns);
    return tti_tcp_call_number(&call, 8, n_out);
}

static void tcp_close(tutti_store *store)
{
    tcp_store *ts = (tcp_store *)store;

    tti_tcp_pool_close(&ts->pool);
    tutti_store_server_stop(ts->server);
    tti_mutex_release(&ts->pool.lock);
    tti_secret_release(&ts->pool.secret);
    free(ts);
}

static const tutti_store_ops tcp_ops = {
    .api = TUTTI_STORE_API,
    .size = sizeof(tutti_store_ops),
    .scheme = "tcp",
    .set = tcp_set,
    .get = tcp_get,
    .close = tcp_close,
    .wait_all = tcp_wait_all,
    .check = tcp_check,
    .compare_set = tcp_compare_set,
    .add = tcp_add,
    .delete_key = tcp_delete_key,
    .num_keys = tcp_num_keys,
};

static tutti_status join_count(tcp_store *ts, int64_t delta, int64_t deadline_ns, int64_t *n_out)
{
    tti_tcp_call call;

    tti_tcp_call_begin(&call, &ts->pool, TTI_STORE_ADD, JOIN_KEY, deadline_ns);
    call.request.keys[call.request.n_keys++] =
        (tti_slice){ .data = JOIN_KEY, .size = sizeof JOIN_KEY - 1 };
    call.request.delta = delta;
    return tti_tcp_call_number(&call, 8, n_out);
}

/* Count ourselves; the master then looks until everybody has. */
static tutti_status join(tcp_store *ts, const tutti_tcp_store_options *opts, int64_t deadline_ns)
{
    const int64_t start = tti_port_now(ts->pool.port);
    int64_t       joined = 0;
    tutti_status  st = join_count(ts, 1, deadline_ns, &joined);

    while (st == TUTTI_OK && opts->is_master && joined < opts->world_size) {
        const int64_t now = tti_port_now(ts->pool.port);

        if (now >= deadline_ns)
            return tti_fail(TUTTI_E_TIMEOUT,
                            "%s: %" PRId64 " of %d processes joined within %" PRId64 " ms",
                            ts->pool.who, joined, opts->world_size, (now - start) / TTI_MS);
        ts->pool.port->ops->sleep_until(ts->pool.port, now + JOIN_POLL_NS);
        st = join_count(ts, 0, tti_deadline(ts->pool.port, TTI_TCP_ANSWER_MS, 0), &joined);
    }
    return st;
}

static tutti_status check_options(const tutti_tcp_store_options *opts)
{
    if (opts->host == NULL || opts->host[0] == '\0')
        return tti_fail(TUTTI_E_ARG, "a tcp store needs a host");
    if (strlen(opts->host) >= TTI_HOST_MAX)
        return tti_fail(TUTTI_E_ARG, "a host name of %zu bytes is too long, %d is the most",
                        strlen(opts->host), TTI_HOST_MAX - 1);
    if (opts->port < 0 || opts->port > 65535 || (opts->port == 0 && !opts->is_master))
        return tti_fail(TUTTI_E_ARG, "a tcp store's port is %d, not between 1 and 65535",
                        opts->port);
    if (opts->world_size < 0)
        return tti_fail(TUTTI_E_ARG, "a tcp store's world_size is %d", opts->world_size);
    if (opts->timeout_ms < TUTTI_INFINITE)
        return tti_fail(TUTTI_E_ARG, "a tcp store's timeout_ms is %" PRId64, opts->timeout_ms);
    return TUTTI_OK;
}

static tutti_status serve_here(tcp_store *ts, const tutti_tcp_store_options *opts)
{
    tutti_store_server_options server = TUTTI_STORE_SERVER_OPTIONS;
    tutti_status               st;

    if (ts->pool.port != tti_port_system())
        return tti_fail(TUTTI_E_UNSUPPORTED,
                        "a tcp store is served on the machine's own sockets only");
    server.host = opts->listen != NULL ? opts->listen : opts->host;
    server.port = opts->port;
    server.secret_file = opts->secret_file;
    st = tutti_store_server_start(&server, &ts->server);
    if (st == TUTTI_OK)
        ts->pool.tcp_port = (uint16_t)tutti_store_server_port(ts->server);
    return st;
}

/* Serve, connect, join. */
static tutti_status go_online(tcp_store *ts, const tutti_tcp_store_options *opts)
{
    const int64_t deadline = tti_deadline(ts->pool.port, opts->timeout_ms, TUTTI_STORE_TIMEOUT_MS);
    tutti_status  st = tti_secret_load(opts->secret_file, &ts->pool.secret);

    if (st == TUTTI_OK && opts->is_master)
        st = serve_here(ts, opts);
    if (st != TUTTI_OK)
        return st;
    snprintf(ts->pool.who, sizeof ts->pool.who, "store %s:%u", ts->pool.host, ts->pool.tcp_port);
    st = tti_tcp_pool_connect(&ts->pool, deadline);
    if (st == TUTTI_OK && opts->wait_for_workers && opts->world_size > 0)
        st = join(ts, opts, deadline);
    return st;
}

tutti_status tti_tcp_store_open_on(tti_port *port, const tutti_tcp_store_options *options,
                                   tutti_store **store_out)
{
    tutti_tcp_store_options opts = TUTTI_TCP_STORE_OPTIONS;
    tcp_store              *ts;
    tutti_status            st;

    if (options == NULL || store_out == NULL)
        return tti_fail(TUTTI_E_ARG, "a tcp store needs options and store_out");
    memcpy(&opts, options, options->size < sizeof opts ? options->size : sizeof opts);
    st = check_options(&opts);
    if (st != TUTTI_OK)
        return st;
    ts = calloc(1, sizeof *ts);
    if (ts == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a tcp store");
    ts->base.ops = &tcp_ops;
    ts->pool.port = port;
    ts->pool.tcp_port = (uint16_t)opts.port;
    snprintf(ts->pool.host, sizeof ts->pool.host, "%s", opts.host);
    tti_mutex_init(&ts->pool.lock);
    st = tti_store_init(&ts->base, port, opts.timeout_ms, NULL);
    if (st == TUTTI_OK)
        st = go_online(ts, &opts);
    if (st != TUTTI_OK) {
        tti_store_uninit(&ts->base);
        tcp_close(&ts->base);
        return st;
    }
    *store_out = &ts->base;
    return TUTTI_OK;
}

tutti_status tutti_tcp_store_open(const tutti_tcp_store_options *options, tutti_store **store_out)
{
    return tti_tcp_store_open_on(tti_port_system(), options, store_out);
}

int tutti_tcp_store_port(const tutti_store *store)
{
    return store != NULL && store->ops == &tcp_ops ? ((const tcp_store *)store)->pool.tcp_port : 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tcp_store.c - the tcp store: its operations as calls, opening, serving, joining.
 *
 * How     User keys go over the wire with a '/' in front; "init/", where those who join are
 *         counted, has none. Calls and connections stand in tcp_call.h, operations on several keys
 *         in tcp_lists.c. */
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "store/store_tenants.h"
#include "store/tcp_lists.h"
#include "store/tcp_store.h"
#include "wire/ports.h"

#define JOIN_KEY     "init/"
#define JOIN_POLL_NS (10 * TTI_MS)
#define NEAR_GRACE_NS (40 * TTI_MS)

/* Of who still makes a group when whoever serves the store ends it: closing one is to return soon. */
enum { LAST_ANSWERS_MS = 40 };

typedef struct tcp_store {
    tutti_store         base; /* first: the two pointers convert both ways */
    tti_tcp_pool        pool;
    tutti_store_server *server; /* is_master; else NULL */
    tti_tenancy        *shared; /* is_master and multi_tenant: instead of server */
    tti_store_teller   *teller; /* tells another one that this one has taken its place; NULL */
    tti_store_place     first;  /* where it led to at first; host "": it was not led elsewhere. Guarded by the pool's lock */
} tcp_store;

static tti_tcp_pool *pool_of(tutti_store *store)
{
    return &((tcp_store *)store)->pool;
}

/* SET, APPEND and QUEUE_PUSH. */
static tutti_status give(tutti_store *store, tti_store_op op, const char *key, const void *val,
                         size_t len, int64_t deadline_ns)
{
    tti_tcp_call call;
    tti_tcp_key  room;

    tti_tcp_call_begin(&call, pool_of(store), op, key, deadline_ns);
    tti_tcp_call_key(&call, key, &room);
    call.request.value = (tti_slice){ .data = val, .size = len };
    return tti_tcp_call_number(&call, 0, NULL);
}

static tutti_status tcp_set(tutti_store *store, const char *key, const void *val, size_t len,
                            int64_t deadline_ns)
{
    return give(store, TTI_STORE_SET, key, val, len, deadline_ns);
}

static tutti_status tcp_append(tutti_store *store, const char *key, const void *val, size_t len,
                               int64_t deadline_ns)
{
    return give(store, TTI_STORE_APPEND, key, val, len, deadline_ns);
}

static tutti_status tcp_queue_push(tutti_store *store, const char *key, const void *val, size_t len,
                                   int64_t deadline_ns)
{
    return give(store, TTI_STORE_QUEUE_PUSH, key, val, len, deadline_ns);
}

static tutti_status tcp_queue_pop(tutti_store *store, const char *key, bool block,
                                  int64_t deadline_ns, tutti_bytes *val_out)
{
    tti_tcp_call call;
    tti_tcp_key  room;

    tti_tcp_call_begin(&call, pool_of(store), TTI_STORE_QUEUE_POP, key, deadline_ns);
    tti_tcp_call_key(&call, key, &room);
    call.request.number = block;
    return tti_tcp_call_value(&call, val_out);
}

static tutti_status tcp_queue_len(tutti_store *store, const char *key, int64_t deadline_ns,
                                  int64_t *n_out)
{
    tti_tcp_call call;
    tti_tcp_key  room;

    tti_tcp_call_begin(&call, pool_of(store), TTI_STORE_QUEUE_LEN, key, deadline_ns);
    tti_tcp_call_key(&call, key, &room);
    return tti_tcp_call_number(&call, 8, n_out);
}

static tutti_status tcp_get(tutti_store *store, const char *key, int64_t deadline_ns,
                            tutti_bytes *val_out)
{
    tti_tcp_call call;
    tti_tcp_key  room;

    tti_tcp_call_begin(&call, pool_of(store), TTI_STORE_GET, key, deadline_ns);
    tti_tcp_call_key(&call, key, &room);
    return tti_tcp_call_value(&call, val_out);
}

static tutti_status tcp_wait_all(tutti_store *store, const char *const *keys, size_t n_keys,
                                 int64_t deadline_ns)
{
    return tti_tcp_wait_all(pool_of(store), keys, n_keys, deadline_ns);
}

static tutti_status tcp_check(tutti_store *store, const char *const *keys, size_t n_keys,
                              int64_t deadline_ns, bool *all_out)
{
    return tti_tcp_check(pool_of(store), keys, n_keys, deadline_ns, all_out);
}

static tutti_status tcp_multi_get(tutti_store *store, const char *const *keys, size_t n_keys,
                                  int64_t deadline_ns, tutti_bytes *vals_out)
{
    return tti_tcp_multi_get(pool_of(store), keys, n_keys, deadline_ns, vals_out);
}

static tutti_status tcp_multi_set(tutti_store *store, const char *const *keys,
                                  const tutti_bytes *vals, size_t n_keys, int64_t deadline_ns)
{
    return tti_tcp_multi_set(pool_of(store), keys, vals, n_keys, deadline_ns);
}

static tutti_status tcp_list_keys(tutti_store *store, const char *prefix, int64_t deadline_ns,
                                  tutti_store_keys *keys_out)
{
    return tti_tcp_list_keys(pool_of(store), prefix, deadline_ns, keys_out);
}

static tutti_status tcp_compare_set(tutti_store *store, const char *key, const void *expected,
                                    size_t expected_len, const void *desired, size_t desired_len,
                                    int64_t deadline_ns, tutti_bytes *val_out)
{
    tti_tcp_call call;
    tti_tcp_key  room;

    tti_tcp_call_begin(&call, pool_of(store), TTI_STORE_COMPARE_SET, key, deadline_ns);
    tti_tcp_call_key(&call, key, &room);
    call.request.expected = (tti_slice){ .data = expected, .size = expected_len };
    call.request.value = (tti_slice){ .data = desired, .size = desired_len };
    return tti_tcp_call_value(&call, val_out);
}

static tutti_status tcp_add(tutti_store *store, const char *key, int64_t delta, int64_t deadline_ns,
                            int64_t *sum_out)
{
    tti_tcp_call call;
    tti_tcp_key  room;

    tti_tcp_call_begin(&call, pool_of(store), TTI_STORE_ADD, key, deadline_ns);
    tti_tcp_call_key(&call, key, &room);
    call.request.number = delta;
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

static tutti_status tcp_clone(tutti_store *store, int64_t deadline_ns, tutti_store **store_out);

static void tcp_close(tutti_store *store)
{
    tcp_store *ts = (tcp_store *)store;

    tti_store_teller_end(ts->teller);
    tti_tcp_pool_close(&ts->pool);
    tti_store_server_stop_in_time(ts->server, LAST_ANSWERS_MS);
    tti_tenancy_leave(ts->shared, LAST_ANSWERS_MS);
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
    .append = tcp_append,
    .multi_get = tcp_multi_get,
    .multi_set = tcp_multi_set,
    .queue_push = tcp_queue_push,
    .queue_pop = tcp_queue_pop,
    .queue_len = tcp_queue_len,
    .list_keys = tcp_list_keys,
    .clone = tcp_clone,
};

/* A store that is connected to nothing yet. */
static tutti_status make(tti_port *port, const char *host, uint16_t tcp_port, int64_t timeout_ms,
                         tcp_store **out)
{
    tcp_store   *ts = calloc(1, sizeof *ts);
    tutti_status st;

    if (ts == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a tcp store");
    ts->base.ops = &tcp_ops;
    tti_tcp_pool_init(&ts->pool, port, host, tcp_port);
    ts->pool.greet = tti_tcp_greet;
    st = tti_store_init(&ts->base, port, timeout_ms, NULL);
    if (st != TUTTI_OK) {
        free(ts);
        return st;
    }
    *out = ts;
    return TUTTI_OK;
}

/* Undo make(), and whatever has been opened since. */
static void unmake(tcp_store *ts)
{
    tti_store_uninit(&ts->base);
    tcp_close(&ts->base);
}

static void name_server(tcp_store *ts)
{
    snprintf(ts->pool.who, sizeof ts->pool.who, "store %s:%u", ts->pool.host, ts->pool.tcp_port);
}

static tutti_status tcp_clone(tutti_store *store, int64_t deadline_ns, tutti_store **store_out)
{
    const tti_tcp_pool *from = pool_of(store);
    tcp_store          *ts = NULL;
    tti_handle          handle = TTI_NO_HANDLE;
    tutti_status        st;

    st = make(from->port, from->host, from->tcp_port, tutti_store_timeout(store), &ts);
    if (st != TUTTI_OK)
        return st;
    ts->pool.secret = from->secret;
    name_server(ts);
    st = tti_tcp_pool_open(&ts->pool, deadline_ns, &handle); /* it was there a moment ago */
    if (st == TUTTI_OK)
        tti_tcp_pool_put(&ts->pool, handle);
    if (st != TUTTI_OK) {
        unmake(ts);
        return st;
    }
    *store_out = &ts->base;
    return TUTTI_OK;
}

static tutti_status join_count(tcp_store *ts, int64_t delta, int64_t deadline_ns, int64_t *n_out)
{
    tti_tcp_call call;

    tti_tcp_call_begin(&call, &ts->pool, TTI_STORE_ADD, JOIN_KEY, deadline_ns);
    call.request.keys[call.request.n_keys++] =
        (tti_slice){ .data = JOIN_KEY, .size = sizeof JOIN_KEY - 1 };
    call.request.number = delta;
    return tti_tcp_call_number(&call, 8, n_out);
}

/* Count ourselves; the master then looks until everybody has. A server that is shared may have been
 * joined before: each world_size that come are a round, and the master waits for the end of his. One
 * that gives up takes himself out of the count. */
static tutti_status join(tcp_store *ts, const tutti_tcp_store_options *opts, int64_t deadline_ns)
{
    const int64_t start = tti_port_now(ts->pool.port);
    int64_t       joined = 0, before;
    tutti_status  st = join_count(ts, 1, deadline_ns, &joined);

    before = (joined - 1) / opts->world_size * opts->world_size;
    while (st == TUTTI_OK && opts->is_master && joined - before < opts->world_size) {
        const int64_t now = tti_port_now(ts->pool.port);

        if (now >= deadline_ns) {
            join_count(ts, -1, now + tti_tcp_pool_grace_ns(&ts->pool), NULL);
            return tti_fail(TUTTI_E_TIMEOUT,
                            "%s: %" PRId64 " of %d processes joined within %" PRId64 " ms",
                            ts->pool.who, joined - before, opts->world_size,
                            (now - start) / TTI_MS);
        }
        ts->pool.port->ops->sleep_until(ts->pool.port, now + JOIN_POLL_NS);
        st = join_count(ts, 0, tti_deadline(ts->pool.port, TTI_TCP_ANSWER_MS, 0), &joined);
    }
    return st;
}

static tutti_status check_options(const tutti_tcp_store_options *opts)
{
    if (opts->host == NULL || opts->host[0] == '\0')
        return tti_fail(TUTTI_E_ARG, "a tcp store needs a host\n  next: set options.host to that of the master, by name or address");
    if (strlen(opts->host) >= TTI_HOST_MAX)
        return tti_fail(TUTTI_E_ARG, "a host name of %zu bytes is too long, %d is the most",
                        strlen(opts->host), TTI_HOST_MAX - 1);
    if (!opts->is_master && (opts->multi_tenant || opts->listen_fd != 0))
        return tti_fail(TUTTI_E_ARG, "%s is for the master of a tcp store, and is_master is not set\n"
                                     "  next: set is_master in one process, and this one only there",
                        opts->multi_tenant ? "multi_tenant" : "listen_fd");
    if (opts->port < 0 || opts->port > 65535 || (opts->port == 0 && !opts->is_master))
        return tti_fail(TUTTI_E_ARG, "a tcp store's port is %d, not between 1 and 65535\n"
                                     "  next: give all processes the port of the master, who alone may take 0 for a free one",
                        opts->port);
    if (opts->world_size < 0)
        return tti_fail(TUTTI_E_ARG, "a tcp store's world_size is %d\n  next: pass how many processes use it, or 0 where that is not known",
                        opts->world_size);
    if (opts->timeout_ms < TUTTI_INFINITE)
        return tti_fail(TUTTI_E_ARG, "a tcp store's timeout_ms is %" PRId64 "\n  next: 0 for the default, -1 for none", opts->timeout_ms);
    return TUTTI_OK;
}

static tutti_status serve_here(tcp_store *ts, const tutti_tcp_store_options *opts,
                               int64_t deadline_ns)
{
    tutti_store_server_options server = TUTTI_STORE_SERVER_OPTIONS;
    bool                       any = false;
    tutti_status               st;

    if (ts->pool.port != tti_port_system())
        return tti_fail(TUTTI_E_UNSUPPORTED,
                        "a tcp store is served on the machine's own sockets only");
    server.host = opts->listen != NULL ? opts->listen : opts->host;
    server.port = opts->port;
    server.secret_file = opts->secret_file;
    server.listen_fd = opts->listen_fd;
    if (opts->multi_tenant)
        st = tti_tenancy_join(&server, &ts->pool.secret, deadline_ns, &ts->shared);
    else
        st = tutti_store_server_start(&server, &ts->server);
    if (st == TUTTI_OK)
        st = tti_listens_any(&any);
    if (st != TUTTI_OK)
        return st;
    tti_listen_check_queue(opts->world_size);
    ts->pool.tcp_port = (uint16_t)(ts->shared != NULL ? tti_tenancy_port(ts->shared)
                                                      : tutti_store_server_port(ts->server));
    if (any && opts->listen_fd == 0) /* the address of a service may not lead from here to here */
        snprintf(ts->pool.host, sizeof ts->pool.host, "127.0.0.1");
    return TUTTI_OK;
}

/* Serve, connect, join. */
static tutti_status go_online(tcp_store *ts, const tutti_tcp_store_options *opts)
{
    const int64_t deadline = tti_deadline(ts->pool.port, opts->timeout_ms, TUTTI_STORE_TIMEOUT_MS);
    tutti_status  st = tti_secret_load(opts->secret_file, &ts->pool.secret);

    if (st == TUTTI_OK && opts->is_master)
        st = serve_here(ts, opts, deadline);
    if (st != TUTTI_OK)
        return st;
    name_server(ts);
    st = tti_tcp_may_greet(&ts->pool);
    if (st == TUTTI_OK)
        st = tti_tcp_pool_connect(&ts->pool, deadline);
    if (st == TUTTI_OK && opts->wait_for_workers && opts->world_size > 0)
        st = join(ts, opts, deadline);
    return st;
}

tutti_status tti_tcp_store_open_on(tti_port *port, const tutti_tcp_store_options *options,
                                   tutti_store **store_out)
{
    tutti_tcp_store_options opts = TUTTI_TCP_STORE_OPTIONS;
    tcp_store              *ts = NULL;
    tutti_status            st;

    if (options == NULL || store_out == NULL)
        return tti_fail(TUTTI_E_ARG, "a tcp store needs options and store_out\n"
                                     "  next: begin with TUTTI_TCP_STORE_OPTIONS, set host and port, and pass where to put the store");
    memcpy(&opts, options, options->size < sizeof opts ? options->size : sizeof opts);
    st = check_options(&opts);
    if (st != TUTTI_OK)
        return st;
    st = make(port, opts.host, (uint16_t)opts.port, opts.timeout_ms, &ts);
    if (st != TUTTI_OK)
        return st;
    st = go_online(ts, &opts);
    if (st != TUTTI_OK) {
        unmake(ts);
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

const char *tutti_tcp_store_host(const tutti_store *store)
{
    return store != NULL && store->ops == &tcp_ops ? ((const tcp_store *)store)->pool.host : NULL;
}

tutti_status tti_tcp_store_reach(tti_port *port, const char *host, uint16_t tcp_port, int64_t timeout_ms,
                                 int64_t deadline_ns, tutti_store **store_out)
{
    tcp_store   *ts = NULL;
    tti_handle   handle = TTI_NO_HANDLE;
    tutti_status st = make(port, host, tcp_port, timeout_ms, &ts);

    if (st != TUTTI_OK)
        return st;
    name_server(ts);
    st = tti_secret_load(NULL, &ts->pool.secret);
    if (st == TUTTI_OK)
        st = tti_tcp_pool_open(&ts->pool, deadline_ns, &handle);
    if (st == TUTTI_OK)
        tti_tcp_pool_put(&ts->pool, handle);
    if (st != TUTTI_OK) {
        unmake(ts);
        return st;
    }
    *store_out = &ts->base;
    return TUTTI_OK;
}

tutti_store_server *tti_tcp_store_server(tutti_store *store)
{
    const tcp_store *ts = (const tcp_store *)store;

    if (store->ops != &tcp_ops)
        return NULL;
    return ts->shared != NULL ? tti_tenancy_server(ts->shared) : ts->server;
}

tti_tcp_pool *tti_tcp_store_pool(tutti_store *store)
{
    return store->ops == &tcp_ops ? pool_of(store) : NULL;
}

void tti_tcp_store_stop_serving(tutti_store *store)
{
    tcp_store *ts = (tcp_store *)store;

    if (store->ops != &tcp_ops)
        return;
    tutti_store_server_stop(ts->server);
    ts->server = NULL; /* written by who stops it, read by who closes the store afterwards */
}

/* Where it leads to; the caller has the pool's lock. */
static tti_store_place place_of(const tcp_store *ts)
{
    tti_store_place place = { .tcp_port = ts->pool.tcp_port };

    memcpy(place.host, ts->pool.host, sizeof place.host);
    return place;
}

bool tti_tcp_store_places(tutti_store *store, tti_store_place *now_out, tti_store_place *first_out)
{
    tcp_store *ts = (tcp_store *)store;

    if (store->ops != &tcp_ops)
        return false;
    tti_lock(&ts->pool.lock);
    *now_out = place_of(ts);
    *first_out = ts->first.host[0] != '\0' ? ts->first : *now_out;
    tti_unlock(&ts->pool.lock);
    return true;
}

void tti_tcp_store_has_teller(tutti_store *store, tti_store_teller *teller)
{
    tcp_store *ts = (tcp_store *)store;

    tti_store_teller_end(ts->teller);
    ts->teller = teller;
}

bool tti_tcp_store_redirect(tutti_store *store, const char *host, uint16_t tcp_port)
{
    tcp_store *ts = (tcp_store *)store;
    tti_handle idle[TTI_TCP_IDLE_MAX];
    int        n;

    if (store->ops != &tcp_ops)
        return false;
    tti_lock(&ts->pool.lock);
    if (ts->first.host[0] == '\0')
        ts->first = place_of(ts);
    snprintf(ts->pool.host, sizeof ts->pool.host, "%s", host);
    ts->pool.tcp_port = tcp_port;
    /* From here on no call gives a connection back that it took before. And none that begins from here on finds one of the
     * old server: it looks under the lock, and by then they are all out. */
    atomic_fetch_add(&ts->pool.led, 1);
    n = tti_tcp_pool_take_all(&ts->pool, idle);
    name_server(ts);
    tti_unlock(&ts->pool.lock);
    tti_tcp_pool_close_all(&ts->pool, idle, n);
    return true;
}

int64_t tti_store_grace(const tutti_store *store)
{
    const tutti_store *keeper = tutti_store_underlying_non_prefix((tutti_store *)(uintptr_t)store);
    const bool         is_tcp = keeper->ops == &tcp_ops;

    return tti_port_now(tti_store_port(store)) +
           (is_tcp ? tti_tcp_pool_grace_ns(&((const tcp_store *)keeper)->pool) : NEAR_GRACE_NS);
}

bool tti_tcp_store_way(const tutti_store *store, tti_addr *local_out)
{
    tti_tcp_pool *pool;
    bool          known = false;

    if (store->ops != &tcp_ops)
        return false;
    pool = &((tcp_store *)(uintptr_t)store)->pool;
    tti_lock(&pool->lock);
    if (pool->n_idle > 0)
        known = pool->port->ops->local_addr(pool->port, pool->idle[0], local_out) == 0;
    tti_unlock(&pool->lock);
    local_out->port = 0;
    return known;
}

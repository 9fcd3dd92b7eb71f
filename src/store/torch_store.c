/* SPDX-License-Identifier: BSD-3-Clause
 *
 * torch_store.c - a client of PyTorch's own TCPStore: a store like the others, on a server that is not
 * ours.
 *
 * Why     Where PyTorch's launcher, or a PyTorch program, serves the store of a job, this is the way
 *         in. The server is as it is: what it does not promise is made here, of what it does.
 * How     look    a COMPARE_SET that expects, and would set, a nonce. A key that is missing stays so
 *                 and the nonce comes back; else its value does. So one round trip tells missing
 *                 from empty, which GET does not.
 *         get     look, else WAIT and look again, until the deadline. pop: the same with QUEUE_POP.
 *         set     a PING behind it acknowledges it (torch_call.h).
 * True    The server wakes those who wait for a key when a queue of that name gets an element, and
 *         those who wait for a queue when a key of that name comes. Whoever looks and finds that it
 *         was the other kind pauses before it waits again, or it would spin. Some wake-ups never
 *         come: the server without libuv forgets them at a compare_set, the other one wakes a single
 *         client for an element of a queue, which may just have died. So a wait asks anew each second.
 * Fails   The server closes the connection over what it does not know (queues, the list of keys, on
 *         older ones) or does not like (adding to a word). Requests it may not know are tried once
 *         per handle on a connection of their own; if the server still answers on another one, it
 *         is TUTTI_E_UNSUPPORTED from then on. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "store/store_value.h"
#include "store/torch_store_core.h"

#define JOIN_KEY "init/"

enum {
    BATCH_KEYS = 256,
    LIST_BYTES_MAX = TUTTI_STORE_VALUE_MAX /* of the values of one MULTI_SET */
};

static tutti_status check_value(const tti_tcp_pool *pool, const char *key, size_t size)
{
    if (size <= TTI_TORCH_VALUE_MAX)
        return TUTTI_OK;
    return tti_fail(TUTTI_E_ARG,
                    "a value of %zu bytes for key '%s' is too large for %s, %d is the most", size,
                    key, pool->who, TTI_TORCH_VALUE_MAX);
}

tutti_status tti_torch_run_number(tti_tcp_pool *pool, const tti_torch_request *request,
                                  int64_t deadline_ns, int64_t *out)
{
    tti_torch_reader reader;
    const tutti_status st = tti_torch_run(pool, request, NULL, deadline_ns, &reader);

    if (st == TUTTI_OK && out != NULL)
        *out = reader.number;
    return st;
}

tutti_status tti_torch_give(tti_tcp_pool *pool, tti_torch_op op, const char *key, const void *val,
                            size_t len, int64_t deadline_ns)
{
    const tti_torch_request request = {
        .op = op, .keys = &key, .n_keys = 1, .value = { .data = val, .size = len }
    };
    const tutti_status st = check_value(pool, key, len);

    return st != TUTTI_OK ? st : tti_torch_run_number(pool, &request, deadline_ns, NULL);
}

static tutti_status torch_set(tutti_store *store, const char *key, const void *val, size_t len,
                              int64_t deadline_ns)
{
    return tti_torch_give(tti_torch_pool(store), TTI_TORCH_SET, key, val, len, deadline_ns);
}

static tutti_status torch_append(tutti_store *store, const char *key, const void *val, size_t len,
                                 int64_t deadline_ns)
{
    return tti_torch_give(tti_torch_pool(store), TTI_TORCH_APPEND, key, val, len, deadline_ns);
}

/* ---- single keys ---- */

static tutti_status torch_compare_set(tutti_store *store, const char *key, const void *expected,
                                      size_t expected_len, const void *desired, size_t desired_len,
                                      int64_t deadline_ns, tutti_bytes *val_out)
{
    tti_tcp_pool *pool = tti_torch_pool(store);
    const tti_torch_request request = { .op = TTI_TORCH_COMPARE_SET,
                                        .keys = &key,
                                        .n_keys = 1,
                                        .expected = { .data = expected, .size = expected_len },
                                        .value = { .data = desired, .size = desired_len } };
    tti_torch_reader reader;
    tutti_status st = check_value(pool, key, expected_len);

    if (st == TUTTI_OK)
        st = check_value(pool, key, desired_len);
    if (st == TUTTI_OK)
        st = tti_torch_run(pool, &request, NULL, deadline_ns, &reader);
    if (st == TUTTI_OK)
        *val_out = reader.value;
    return st;
}

/* The connection was lost over an ADD. The server does that to a value that is no number. */
static tutti_status explain_add(tti_torch_store *ts, const char *key)
{
    tutti_bytes value = { .data = NULL };
    int64_t number;
    bool there = false, is_number;

    if (!tti_torch_alive(&ts->pool) || tti_torch_look(ts, key, &there, &value) != TUTTI_OK ||
        !there)
        return tti_fail(TUTTI_E_NETWORK, "lost the connection to %s while adding to key '%s'",
                        ts->pool.who, key);
    is_number = tti_store_number(value.data, value.size, &number);
    tutti_bytes_free(&value);
    if (is_number)
        return tti_fail(TUTTI_E_NETWORK, "lost the connection to %s while adding to key '%s'",
                        ts->pool.who, key);
    return tti_fail(TUTTI_E_STORE, "the value of key '%s' is not a number (%s)", key, ts->pool.who);
}

static tutti_status torch_add(tutti_store *store, const char *key, int64_t delta,
                              int64_t deadline_ns, int64_t *sum_out)
{
    const tti_torch_request request = {
        .op = TTI_TORCH_ADD, .keys = &key, .n_keys = 1, .number = delta
    };
    const tutti_status st =
        tti_torch_run_number(tti_torch_pool(store), &request, deadline_ns, sum_out);

    return st == TUTTI_E_NETWORK ? explain_add((tti_torch_store *)store, key) : st;
}

static tutti_status torch_delete_key(tutti_store *store, const char *key, int64_t deadline_ns,
                                     bool *deleted_out)
{
    const tti_torch_request request = { .op = TTI_TORCH_DELETE, .keys = &key, .n_keys = 1 };
    int64_t n = 0;
    const tutti_status st = tti_torch_run_number(tti_torch_pool(store), &request, deadline_ns, &n);

    if (st == TUTTI_OK)
        *deleted_out = n > 0;
    return st;
}

static tutti_status torch_num_keys(tutti_store *store, int64_t deadline_ns, int64_t *n_out)
{
    const tti_torch_request request = { .op = TTI_TORCH_NUM_KEYS };

    return tti_torch_run_number(tti_torch_pool(store), &request, deadline_ns, n_out);
}

/* ---- several keys ---- */

/* How many of the first keys are looked for in one go. */
static size_t keys_that_fit(const char *const *keys, size_t n_keys)
{
    size_t n, bytes = 0;

    for (n = 0; n < n_keys && n < BATCH_KEYS; n++) {
        bytes += 1 + 3 * 8 + 1 + strlen(keys[n]) + 2 * TTI_TORCH_NONCE_BYTES;
        if (bytes > TTI_TORCH_BATCH_BYTES)
            break;
    }
    return n; /* at least one: a key has at most 4096 bytes */
}

/* Look for n keys; those that are missing then are waited for one by one. */
static tutti_status get_some(tti_torch_store *ts, const char *const *keys, size_t n,
                             int64_t deadline_ns, tutti_bytes *vals_out)
{
    tti_torch_request requests[BATCH_KEYS];
    tutti_status st;
    size_t i;

    for (i = 0; i < n; i++)
        requests[i] = tti_torch_look_request(ts, &keys[i]);
    st = tti_torch_run_batch(&ts->pool, requests, n, tti_torch_overdue(&ts->pool), vals_out);
    for (i = 0; i < n && st == TUTTI_OK; i++) {
        if (!tti_torch_is_missing(ts, &vals_out[i]))
            continue;
        tutti_bytes_free(&vals_out[i]);
        st = tti_torch_get(&ts->base, keys[i], deadline_ns, &vals_out[i]);
    }
    return st;
}

static tutti_status torch_multi_get(tutti_store *store, const char *const *keys, size_t n_keys,
                                    int64_t deadline_ns, tutti_bytes *vals_out)
{
    tutti_status st = TUTTI_OK;
    size_t at, n;

    for (at = 0; at < n_keys && st == TUTTI_OK; at += n) {
        n = keys_that_fit(keys + at, n_keys - at);
        st = get_some((tti_torch_store *)store, keys + at, n, deadline_ns, vals_out + at);
    }
    return st;
}

static size_t pairs_that_fit(const tutti_bytes *vals, size_t n_keys)
{
    size_t n, bytes = 0;

    for (n = 0; n < tti_torch_portion(n_keys); n++) {
        bytes += vals[n].size;
        if (n > 0 && bytes > LIST_BYTES_MAX)
            break;
    }
    return n;
}

static tutti_status torch_multi_set(tutti_store *store, const char *const *keys,
                                    const tutti_bytes *vals, size_t n_keys, int64_t deadline_ns)
{
    tti_torch_request request = { .op = TTI_TORCH_MULTI_SET };
    tutti_status st = TUTTI_OK;
    size_t at;

    for (at = 0; at < n_keys && st == TUTTI_OK; at++)
        st = check_value(tti_torch_pool(store), keys[at], vals[at].size);
    for (at = 0; at < n_keys && st == TUTTI_OK; at += request.n_keys) {
        request.keys = keys + at;
        request.values = vals + at;
        request.n_keys = pairs_that_fit(vals + at, n_keys - at);
        st = tti_torch_run_number(tti_torch_pool(store), &request, deadline_ns, NULL);
    }
    return st;
}

/* ---- opening and closing ---- */

static tutti_status torch_clone(tutti_store *store, int64_t deadline_ns, tutti_store **store_out);

static void torch_close(tutti_store *store)
{
    tti_torch_store *ts = (tti_torch_store *)store;

    tti_tcp_pool_close(&ts->pool);
    tti_mutex_release(&ts->pool.lock);
    free(ts);
}

static const tutti_store_ops torch_ops = {
    .api = TUTTI_STORE_API,
    .size = sizeof(tutti_store_ops),
    .scheme = "torch-tcp",
    .set = torch_set,
    .get = tti_torch_get,
    .close = torch_close,
    .wait_all = tti_torch_wait_all,
    .check = tti_torch_check,
    .compare_set = torch_compare_set,
    .add = torch_add,
    .delete_key = torch_delete_key,
    .num_keys = torch_num_keys,
    .append = torch_append,
    .multi_get = torch_multi_get,
    .multi_set = torch_multi_set,
    .queue_push = tti_torch_queue_push,
    .queue_pop = tti_torch_queue_pop,
    .queue_len = tti_torch_queue_len,
    .list_keys = tti_torch_list_keys,
    .clone = torch_clone,
};

/* A store that is connected to nothing yet. */
static tutti_status make(tti_port *port, const char *host, uint16_t tcp_port, int64_t timeout_ms,
                         tti_torch_store **out)
{
    tti_torch_store *ts = calloc(1, sizeof *ts);
    tutti_status st;

    if (ts == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a torch-tcp store");
    ts->base.ops = &torch_ops;
    tti_tcp_pool_init(&ts->pool, port, host, tcp_port);
    ts->pool.greet = tti_torch_greet;
    snprintf(ts->pool.who, sizeof ts->pool.who, "PyTorch's store %s:%u", ts->pool.host, tcp_port);
    port->ops->random(port, ts->nonce, sizeof ts->nonce);
    st = tti_store_init(&ts->base, port, timeout_ms, NULL);
    if (st != TUTTI_OK) {
        free(ts);
        return st;
    }
    *out = ts;
    return TUTTI_OK;
}

/* Undo make(), and whatever has been opened since. */
static void unmake(tti_torch_store *ts)
{
    tti_store_uninit(&ts->base);
    torch_close(&ts->base);
}

static tutti_status torch_clone(tutti_store *store, int64_t deadline_ns, tutti_store **store_out)
{
    const tti_tcp_pool *from = tti_torch_pool(store);
    tti_torch_store *ts = NULL;
    tti_handle handle = TTI_NO_HANDLE;
    tutti_status st;

    st = make(from->port, from->host, from->tcp_port, tutti_store_timeout(store), &ts);
    if (st != TUTTI_OK)
        return st;
    st = tti_tcp_pool_open(&ts->pool, deadline_ns, &handle); /* it was there a moment ago */
    if (st != TUTTI_OK) {
        unmake(ts);
        return st;
    }
    tti_tcp_pool_put(&ts->pool, handle);
    *store_out = &ts->base;
    return TUTTI_OK;
}

static tutti_status check_options(const tutti_torch_store_options *opts)
{
    if (opts->host == NULL || opts->host[0] == '\0')
        return tti_fail(TUTTI_E_ARG, "a torch-tcp store needs a host\n  next: set options.host to that of the server, by name or address");
    if (strlen(opts->host) >= TTI_HOST_MAX)
        return tti_fail(TUTTI_E_ARG, "a host name of %zu bytes is too long, %d is the most",
                        strlen(opts->host), TTI_HOST_MAX - 1);
    if (opts->port < 1 || opts->port > 65535)
        return tti_fail(TUTTI_E_ARG, "a torch-tcp store's port is %d, not between 1 and 65535\n"
                                     "  next: set options.port to that of the server, as in MASTER_PORT",
                        opts->port);
    if (opts->timeout_ms < TUTTI_INFINITE)
        return tti_fail(TUTTI_E_ARG, "a torch-tcp store's timeout_ms is %" PRId64 "\n  next: 0 for the default, -1 for none",
                        opts->timeout_ms);
    return TUTTI_OK;
}

/* The owner of the server may be waiting for so many to count themselves here. */
static tutti_status join(tti_torch_store *ts, int64_t deadline_ns)
{
    static const char *const key = JOIN_KEY;
    const tti_torch_request request = {
        .op = TTI_TORCH_ADD, .keys = &key, .n_keys = 1, .own_key = true, .number = 1
    };

    return tti_torch_run_number(&ts->pool, &request, deadline_ns, NULL);
}

/* That store has no TLS: what goes to it would go in plain, the peers' secret included. */
static tutti_status check_seal(const tutti_torch_store_options *opts)
{
    tti_seal     seal = TTI_SEAL_NONE;
    tutti_status st = tti_seal_wanted(&seal);

    if (st == TUTTI_OK && seal != TTI_SEAL_NONE)
        st = tti_fail(TUTTI_E_UNSUPPORTED,
                      "TUTTI_TLS is 1, but PyTorch's store at %s port %d speaks plain TCP only\n"
                      "  next: start the job with tutti run, which serves a store with TLS, or meet by tcp:// or file://",
                      opts->host, opts->port);
    return st;
}

tutti_status tti_torch_store_open_on(tti_port *port, const tutti_torch_store_options *options,
                                     tutti_store **store_out)
{
    tutti_torch_store_options opts = TUTTI_TORCH_STORE_OPTIONS;
    tti_torch_store *ts = NULL;
    int64_t deadline;
    tutti_status st;

    if (options == NULL || store_out == NULL)
        return tti_fail(TUTTI_E_ARG, "a torch-tcp store needs options and store_out\n"
                                     "  next: set host and port in the options, and pass where to put the store");
    memcpy(&opts, options, options->size < sizeof opts ? options->size : sizeof opts);
    st = check_options(&opts);
    if (st == TUTTI_OK)
        st = check_seal(&opts);
    if (st != TUTTI_OK)
        return st;
    deadline = tti_deadline(port, opts.timeout_ms, TUTTI_STORE_TIMEOUT_MS);
    st = make(port, opts.host, (uint16_t)opts.port, opts.timeout_ms, &ts);
    if (st != TUTTI_OK)
        return st;
    st = tti_tcp_pool_connect(&ts->pool, deadline);
    if (st == TUTTI_OK && opts.join)
        st = join(ts, deadline);
    if (st != TUTTI_OK) {
        unmake(ts);
        return st;
    }
    *store_out = &ts->base;
    return TUTTI_OK;
}

tutti_status tutti_torch_store_open(const tutti_torch_store_options *options,
                                    tutti_store **store_out)
{
    static atomic_bool warned; /* of the process: one warning, not one a store */
    const tutti_status st = tti_torch_store_open_on(tti_port_system(), options, store_out);

    if (st == TUTTI_OK && !atomic_exchange(&warned, true))
        tti_log(
            TTI_LOG_WARN,
            "PyTorch's store at %s port %d asks nobody for a secret: whoever reaches it reads and "
            "writes this job's keys",
            options->host, options->port);
    return st;
}

/* A program's own store, too: nothing says that it asks for our secret. */
bool tti_store_is_foreign(tutti_store *store)
{
    static const char *const own[] = { "hash", "file", "tcp" };
    const char *const        scheme = tutti_store_underlying_non_prefix(store)->ops->scheme;
    size_t                   i;

    for (i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strcmp(scheme, own[i]) == 0)
            return false;
    return true;
}

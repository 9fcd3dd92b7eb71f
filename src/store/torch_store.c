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
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "store/store_value.h"
#include "store/torch_call.h"

#define JOIN_KEY            "init/"
#define WRONG_KIND_PAUSE_NS (10 * TTI_MS)
#define WAIT_SLICE_NS       TTI_SECOND

enum {
    NONCE_BYTES = 32,
    BATCH_KEYS = 256,
    LIST_KEYS_MAX = 4096,                 /* of one CHECK, WAIT or MULTI_SET */
    LIST_BYTES_MAX = TUTTI_STORE_VALUE_MAX /* of the values of one MULTI_SET */
};

/* Whether the server knows a request that older ones do not. */
enum { UNTRIED, KNOWN, UNKNOWN };

typedef struct torch_store {
    tutti_store  base; /* first: the two pointers convert both ways */
    tti_tcp_pool pool;
    uint8_t      nonce[NONCE_BYTES]; /* nobody's value */
    _Atomic int  queues, names;      /* UNTRIED, KNOWN, UNKNOWN; never leaves the last two */
} torch_store;

static tti_tcp_pool *pool_of(tutti_store *store)
{
    return &((torch_store *)store)->pool;
}

/* When an answer that nobody waits for is overdue. */
static int64_t answer_deadline(const tti_tcp_pool *pool)
{
    return tti_port_now(pool->port) + TTI_TORCH_ANSWER_NS;
}

static tutti_status check_value(const tti_tcp_pool *pool, const char *key, size_t size)
{
    if (size <= TTI_TORCH_VALUE_MAX)
        return TUTTI_OK;
    return tti_fail(TUTTI_E_ARG, "a value of %zu bytes for key '%s' is too large for %s, %d is the most",
                    size, key, pool->who, TTI_TORCH_VALUE_MAX);
}

/* A request whose reply is a number, or nothing: out may be NULL. */
static tutti_status run_number(tti_tcp_pool *pool, const tti_torch_request *request,
                               int64_t deadline_ns, int64_t *out)
{
    tti_torch_reader reader;
    const tutti_status st = tti_torch_run(pool, request, NULL, deadline_ns, &reader);

    if (st == TUTTI_OK && out != NULL)
        *out = reader.number;
    return st;
}

/* SET, APPEND and QUEUE_PUSH. */
static tutti_status give(tti_tcp_pool *pool, tti_torch_op op, const char *key, const void *val,
                         size_t len, int64_t deadline_ns)
{
    const tti_torch_request request = {
        .op = op, .keys = &key, .n_keys = 1, .value = { .data = val, .size = len }
    };
    const tutti_status st = check_value(pool, key, len);

    return st != TUTTI_OK ? st : run_number(pool, &request, deadline_ns, NULL);
}

static tutti_status torch_set(tutti_store *store, const char *key, const void *val, size_t len,
                              int64_t deadline_ns)
{
    return give(pool_of(store), TTI_TORCH_SET, key, val, len, deadline_ns);
}

static tutti_status torch_append(tutti_store *store, const char *key, const void *val, size_t len,
                                 int64_t deadline_ns)
{
    return give(pool_of(store), TTI_TORCH_APPEND, key, val, len, deadline_ns);
}

/* ---- looking ---- */

static tti_torch_request look_request(const torch_store *ts, const char *const *key)
{
    const tti_slice nonce = { .data = ts->nonce, .size = NONCE_BYTES };

    return (tti_torch_request){
        .op = TTI_TORCH_COMPARE_SET, .keys = key, .n_keys = 1, .expected = nonce, .value = nonce
    };
}

static bool is_missing(const torch_store *ts, const tutti_bytes *value)
{
    return value->size == NONCE_BYTES && memcmp(value->data, ts->nonce, NONCE_BYTES) == 0;
}

/* The value of key, if it is there now. */
static tutti_status look(torch_store *ts, const char *key, bool *there_out, tutti_bytes *val_out)
{
    const tti_torch_request request = look_request(ts, &key);
    tti_torch_reader        reader;
    tutti_status            st;

    st = tti_torch_run(&ts->pool, &request, NULL, answer_deadline(&ts->pool), &reader);
    if (st != TUTTI_OK)
        return st;
    *there_out = !is_missing(ts, &reader.value);
    if (*there_out)
        *val_out = reader.value;
    else
        tutti_bytes_free(&reader.value);
    return TUTTI_OK;
}

/* ---- waiting ---- */

/* WAIT for keys; a time-out has no words yet. Each WAIT begins with a look at the keys. */
static tutti_status wait_some(tti_tcp_pool *pool, const char *const *keys, size_t n_keys,
                              int64_t deadline_ns, bool *late_out)
{
    const tti_torch_request request = { .op = TTI_TORCH_WAIT, .keys = keys, .n_keys = n_keys };
    tutti_status            st;
    int64_t                 slice;

    do {
        slice = tti_port_now(pool->port) + WAIT_SLICE_NS;
        slice = slice < deadline_ns ? slice : deadline_ns;
        st = tti_torch_run_wait(pool, &request, slice, late_out);
    } while (*late_out && slice < deadline_ns);
    return st;
}

/* A loop of looking and waiting: how often something else than what was wanted has come. */
typedef struct patience {
    int64_t start_ns, deadline_ns;
    int     rounds;
} patience;

/* Looking found nothing: wait until it is worth to look again. False in *again_out: the time is up. */
static tutti_status wait_more(torch_store *ts, const char *key, patience *p, bool *again_out)
{
    tti_port    *port = ts->pool.port;
    bool         late = false;
    tutti_status st;

    *again_out = false;
    if (p->rounds++ > 0) {
        const int64_t pause = tti_port_now(port) + WRONG_KIND_PAUSE_NS;

        port->ops->sleep_until(port, pause < p->deadline_ns ? pause : p->deadline_ns);
    }
    if (tti_port_now(port) >= p->deadline_ns)
        return TUTTI_OK;
    st = wait_some(&ts->pool, &key, 1, p->deadline_ns, &late);
    *again_out = st == TUTTI_OK;
    return late ? TUTTI_OK : st;
}

static tutti_status torch_get(tutti_store *store, const char *key, int64_t deadline_ns,
                              tutti_bytes *val_out)
{
    torch_store *ts = (torch_store *)store;
    patience     p = { .start_ns = tti_port_now(ts->pool.port), .deadline_ns = deadline_ns };
    bool         there = false, again = true;
    tutti_status st;

    while (again) {
        st = look(ts, key, &there, val_out);
        if (st != TUTTI_OK || there)
            return st;
        st = wait_more(ts, key, &p, &again);
        if (st != TUTTI_OK)
            return st;
    }
    return tti_store_timed_out(ts->pool.port, key, p.start_ns);
}

static size_t portion(size_t n_keys)
{
    return n_keys < LIST_KEYS_MAX ? n_keys : LIST_KEYS_MAX;
}

static tutti_status torch_check(tutti_store *store, const char *const *keys, size_t n_keys,
                                int64_t deadline_ns, bool *all_out)
{
    tti_torch_request request = { .op = TTI_TORCH_CHECK };
    int64_t           missing = 0;
    tutti_status      st = TUTTI_OK;
    size_t            at;

    for (at = 0; at < n_keys && st == TUTTI_OK && missing == 0; at += request.n_keys) {
        request.keys = keys + at;
        request.n_keys = portion(n_keys - at);
        st = run_number(pool_of(store), &request, deadline_ns, &missing);
    }
    if (st == TUTTI_OK)
        *all_out = missing == 0;
    return st;
}

/* The first of keys that is missing; the first of all if the server does not say. */
static const char *missing_key(tutti_store *store, const char *const *keys, size_t n_keys)
{
    const int64_t until = answer_deadline(pool_of(store));
    bool          there = true;
    size_t        i;

    for (i = 0; i < n_keys && there; i++)
        if (torch_check(store, keys + i, 1, until, &there) != TUTTI_OK)
            return keys[0];
    return there ? keys[0] : keys[i - 1];
}

static tutti_status torch_wait_all(tutti_store *store, const char *const *keys, size_t n_keys,
                                   int64_t deadline_ns)
{
    tti_tcp_pool *pool = pool_of(store);
    const int64_t start = tti_port_now(pool->port);
    tutti_status  st = TUTTI_OK;
    bool          late = false;
    size_t        at, n;

    for (at = 0; at < n_keys && st == TUTTI_OK; at += n) {
        n = portion(n_keys - at);
        st = wait_some(pool, keys + at, n, deadline_ns, &late);
    }
    if (late)
        return tti_store_timed_out(pool->port, missing_key(store, keys, n_keys), start);
    return st;
}

/* ---- single keys ---- */

static tutti_status torch_compare_set(tutti_store *store, const char *key, const void *expected,
                                      size_t expected_len, const void *desired, size_t desired_len,
                                      int64_t deadline_ns, tutti_bytes *val_out)
{
    tti_tcp_pool           *pool = pool_of(store);
    const tti_torch_request request = { .op = TTI_TORCH_COMPARE_SET,
                                        .keys = &key,
                                        .n_keys = 1,
                                        .expected = { .data = expected, .size = expected_len },
                                        .value = { .data = desired, .size = desired_len } };
    tti_torch_reader        reader;
    tutti_status            st = check_value(pool, key, expected_len);

    if (st == TUTTI_OK)
        st = check_value(pool, key, desired_len);
    if (st == TUTTI_OK)
        st = tti_torch_run(pool, &request, NULL, deadline_ns, &reader);
    if (st == TUTTI_OK)
        *val_out = reader.value;
    return st;
}

/* The connection was lost over an ADD. The server does that to a value that is no number. */
static tutti_status explain_add(torch_store *ts, const char *key)
{
    tutti_bytes value = { .data = NULL };
    int64_t     number;
    bool        there = false, is_number;

    if (!tti_torch_alive(&ts->pool) || look(ts, key, &there, &value) != TUTTI_OK || !there)
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
    const tutti_status st = run_number(pool_of(store), &request, deadline_ns, sum_out);

    return st == TUTTI_E_NETWORK ? explain_add((torch_store *)store, key) : st;
}

static tutti_status torch_delete_key(tutti_store *store, const char *key, int64_t deadline_ns,
                                     bool *deleted_out)
{
    const tti_torch_request request = { .op = TTI_TORCH_DELETE, .keys = &key, .n_keys = 1 };
    int64_t                 n = 0;
    const tutti_status      st = run_number(pool_of(store), &request, deadline_ns, &n);

    if (st == TUTTI_OK)
        *deleted_out = n > 0;
    return st;
}

static tutti_status torch_num_keys(tutti_store *store, int64_t deadline_ns, int64_t *n_out)
{
    const tti_torch_request request = { .op = TTI_TORCH_NUM_KEYS };

    return run_number(pool_of(store), &request, deadline_ns, n_out);
}

/* ---- several keys ---- */

/* How many of the first keys are looked for in one go. */
static size_t keys_that_fit(const char *const *keys, size_t n_keys)
{
    size_t n, bytes = 0;

    for (n = 0; n < n_keys && n < BATCH_KEYS; n++) {
        bytes += 1 + 3 * 8 + 1 + strlen(keys[n]) + 2 * NONCE_BYTES;
        if (bytes > TTI_TORCH_BATCH_BYTES)
            break;
    }
    return n; /* at least one: a key has at most 4096 bytes */
}

/* Look for n keys; those that are missing then are waited for one by one. */
static tutti_status get_some(torch_store *ts, const char *const *keys, size_t n,
                             int64_t deadline_ns, tutti_bytes *vals_out)
{
    tti_torch_request requests[BATCH_KEYS];
    tutti_status      st;
    size_t            i;

    for (i = 0; i < n; i++)
        requests[i] = look_request(ts, &keys[i]);
    st = tti_torch_run_batch(&ts->pool, requests, n, answer_deadline(&ts->pool), vals_out);
    for (i = 0; i < n && st == TUTTI_OK; i++) {
        if (!is_missing(ts, &vals_out[i]))
            continue;
        tutti_bytes_free(&vals_out[i]);
        st = torch_get(&ts->base, keys[i], deadline_ns, &vals_out[i]);
    }
    return st;
}

static tutti_status torch_multi_get(tutti_store *store, const char *const *keys, size_t n_keys,
                                    int64_t deadline_ns, tutti_bytes *vals_out)
{
    tutti_status st = TUTTI_OK;
    size_t       at, n;

    for (at = 0; at < n_keys && st == TUTTI_OK; at += n) {
        n = keys_that_fit(keys + at, n_keys - at);
        st = get_some((torch_store *)store, keys + at, n, deadline_ns, vals_out + at);
    }
    return st;
}

static size_t pairs_that_fit(const tutti_bytes *vals, size_t n_keys)
{
    size_t n, bytes = 0;

    for (n = 0; n < portion(n_keys); n++) {
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
    tutti_status      st = TUTTI_OK;
    size_t            at;

    for (at = 0; at < n_keys && st == TUTTI_OK; at++)
        st = check_value(pool_of(store), keys[at], vals[at].size);
    for (at = 0; at < n_keys && st == TUTTI_OK; at += request.n_keys) {
        request.keys = keys + at;
        request.values = vals + at;
        request.n_keys = pairs_that_fit(vals + at, n_keys - at);
        st = run_number(pool_of(store), &request, deadline_ns, NULL);
    }
    return st;
}

/* ---- what older servers do not know ---- */

static tutti_status not_known(const torch_store *ts, const char *what)
{
    return tti_fail(TUTTI_E_UNSUPPORTED,
                    "%s has no %s: it closes connections that ask for them\n"
                    "  next: a current PyTorch, with use_libuv, has them",
                    ts->pool.who, what);
}

/* Find out, with a request that changes nothing, whether the server knows `what`. */
static tutti_status try_out(torch_store *ts, _Atomic int *known, const tti_torch_request *request,
                            const char *what)
{
    tti_torch_reader reader;
    tutti_status     st;

    if (atomic_load(known) == UNTRIED) {
        st = tti_torch_run_apart(&ts->pool, request, "", answer_deadline(&ts->pool), &reader);
        if (st == TUTTI_OK)
            tti_torch_reader_release(&reader);
        if (st == TUTTI_OK)
            atomic_store(known, KNOWN);
        else if (st == TUTTI_E_NETWORK && tti_torch_alive(&ts->pool))
            atomic_store(known, UNKNOWN);
        else
            return st;
    }
    return atomic_load(known) == KNOWN ? TUTTI_OK : not_known(ts, what);
}

static tutti_status try_queues(torch_store *ts)
{
    static const char *const any = "tutti";
    const tti_torch_request  request = { .op = TTI_TORCH_QUEUE_LEN, .keys = &any, .n_keys = 1 };

    return try_out(ts, &ts->queues, &request, "queues");
}

static tutti_status torch_queue_push(tutti_store *store, const char *key, const void *val,
                                     size_t len, int64_t deadline_ns)
{
    const tutti_status st = try_queues((torch_store *)store);

    return st != TUTTI_OK
               ? st
               : give(pool_of(store), TTI_TORCH_QUEUE_PUSH, key, val, len, deadline_ns);
}

static tutti_status torch_queue_len(tutti_store *store, const char *key, int64_t deadline_ns,
                                    int64_t *n_out)
{
    const tti_torch_request request = { .op = TTI_TORCH_QUEUE_LEN, .keys = &key, .n_keys = 1 };
    const tutti_status      st = try_queues((torch_store *)store);

    return st != TUTTI_OK ? st : run_number(pool_of(store), &request, deadline_ns, n_out);
}

static tutti_status pop_now(torch_store *ts, const char *key, bool *there_out, tutti_bytes *val_out)
{
    const tti_torch_request request = { .op = TTI_TORCH_QUEUE_POP, .keys = &key, .n_keys = 1 };
    tti_torch_reader        reader;
    tutti_status            st;

    st = tti_torch_run(&ts->pool, &request, NULL, answer_deadline(&ts->pool), &reader);
    if (st != TUTTI_OK)
        return st;
    *there_out = reader.has_value;
    if (reader.has_value)
        *val_out = reader.value;
    return TUTTI_OK;
}

static tutti_status torch_queue_pop(tutti_store *store, const char *key, bool block,
                                    int64_t deadline_ns, tutti_bytes *val_out)
{
    torch_store *ts = (torch_store *)store;
    patience     p = { .start_ns = tti_port_now(ts->pool.port), .deadline_ns = deadline_ns };
    bool         there = false, again = true;
    tutti_status st = try_queues(ts);

    if (st != TUTTI_OK)
        return st;
    while (again) {
        st = pop_now(ts, key, &there, val_out);
        if (st != TUTTI_OK || there)
            return st;
        if (!block)
            return tti_store_queue_empty(key);
        st = wait_more(ts, key, &p, &again);
        if (st != TUTTI_OK)
            return st;
    }
    return tti_store_pop_timed_out(ts->pool.port, key, p.start_ns);
}

static tutti_status copy_names(const tti_torch_reader *reader, tutti_store_keys *keys_out)
{
    const char    *name = (const char *)tti_buffer_data(&reader->names);
    tti_key_filler filler;
    tutti_status   st;
    size_t         i, size;

    st = tti_key_filler_begin(&filler, reader->n_names, reader->names.size - reader->n_names);
    if (st != TUTTI_OK)
        return st;
    for (i = 0; i < reader->n_names; i++, name += size + 1) {
        size = strlen(name);
        tti_key_filler_add(&filler, name, size);
    }
    *keys_out = filler.keys;
    return TUTTI_OK;
}

static tutti_status torch_list_keys(tutti_store *store, const char *prefix, int64_t deadline_ns,
                                    tutti_store_keys *keys_out)
{
    static const tti_torch_request request = { .op = TTI_TORCH_LIST_KEYS };
    torch_store                   *ts = (torch_store *)store;
    tti_torch_reader               reader;
    tutti_status                   st = try_out(ts, &ts->names, &request, "list of keys");

    if (st == TUTTI_OK)
        st = tti_torch_run(&ts->pool, &request, prefix, deadline_ns, &reader);
    if (st != TUTTI_OK)
        return st;
    st = copy_names(&reader, keys_out);
    tti_torch_reader_release(&reader);
    return st;
}

/* ---- opening and closing ---- */

static tutti_status torch_clone(tutti_store *store, int64_t deadline_ns, tutti_store **store_out);

static void torch_close(tutti_store *store)
{
    torch_store *ts = (torch_store *)store;

    tti_tcp_pool_close(&ts->pool);
    tti_mutex_release(&ts->pool.lock);
    free(ts);
}

static const tutti_store_ops torch_ops = {
    .api = TUTTI_STORE_API,
    .size = sizeof(tutti_store_ops),
    .scheme = "torch-tcp",
    .set = torch_set,
    .get = torch_get,
    .close = torch_close,
    .wait_all = torch_wait_all,
    .check = torch_check,
    .compare_set = torch_compare_set,
    .add = torch_add,
    .delete_key = torch_delete_key,
    .num_keys = torch_num_keys,
    .append = torch_append,
    .multi_get = torch_multi_get,
    .multi_set = torch_multi_set,
    .queue_push = torch_queue_push,
    .queue_pop = torch_queue_pop,
    .queue_len = torch_queue_len,
    .list_keys = torch_list_keys,
    .clone = torch_clone,
};

/* A store that is connected to nothing yet. */
static tutti_status make(tti_port *port, const char *host, uint16_t tcp_port, int64_t timeout_ms,
                         torch_store **out)
{
    torch_store *ts = calloc(1, sizeof *ts);
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
static void unmake(torch_store *ts)
{
    tti_store_uninit(&ts->base);
    torch_close(&ts->base);
}

static tutti_status torch_clone(tutti_store *store, int64_t deadline_ns, tutti_store **store_out)
{
    const tti_tcp_pool *from = pool_of(store);
    torch_store        *ts = NULL;
    tti_handle          handle = TTI_NO_HANDLE;
    tutti_status        st;

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
        return tti_fail(TUTTI_E_ARG, "a torch-tcp store needs a host");
    if (strlen(opts->host) >= TTI_HOST_MAX)
        return tti_fail(TUTTI_E_ARG, "a host name of %zu bytes is too long, %d is the most",
                        strlen(opts->host), TTI_HOST_MAX - 1);
    if (opts->port < 1 || opts->port > 65535)
        return tti_fail(TUTTI_E_ARG, "a torch-tcp store's port is %d, not between 1 and 65535",
                        opts->port);
    if (opts->timeout_ms < TUTTI_INFINITE)
        return tti_fail(TUTTI_E_ARG, "a torch-tcp store's timeout_ms is %" PRId64, opts->timeout_ms);
    return TUTTI_OK;
}

/* The owner of the server may be waiting for so many to count themselves here. */
static tutti_status join(torch_store *ts, int64_t deadline_ns)
{
    static const char *const key = JOIN_KEY;
    const tti_torch_request  request = {
         .op = TTI_TORCH_ADD, .keys = &key, .n_keys = 1, .own_key = true, .number = 1
    };

    return run_number(&ts->pool, &request, deadline_ns, NULL);
}

tutti_status tti_torch_store_open_on(tti_port *port, const tutti_torch_store_options *options,
                                     tutti_store **store_out)
{
    tutti_torch_store_options opts = TUTTI_TORCH_STORE_OPTIONS;
    torch_store              *ts = NULL;
    int64_t                   deadline;
    tutti_status              st;

    if (options == NULL || store_out == NULL)
        return tti_fail(TUTTI_E_ARG, "a torch-tcp store needs options and store_out");
    memcpy(&opts, options, options->size < sizeof opts ? options->size : sizeof opts);
    st = check_options(&opts);
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
        tti_log(TTI_LOG_WARN,
                "PyTorch's store at %s port %d asks nobody for a secret: whoever reaches it reads and "
                "writes this job's keys",
                options->host, options->port);
    return st;
}

bool tti_store_is_foreign(tutti_store *store)
{
    return strcmp(tutti_store_underlying_non_prefix(store)->ops->scheme, torch_ops.scheme) == 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * torch_wait.c - looking for keys on PyTorch's server, and waiting until they are there. */
#include <string.h>
#include "store/store_value.h"
#include "store/torch_store_core.h"

#define WRONG_KIND_PAUSE_NS (10 * TTI_MS)
#define WAIT_SLICE_NS       TTI_SECOND

tti_torch_request tti_torch_look_request(const tti_torch_store *ts, const char *const *key)
{
    const tti_slice nonce = { .data = ts->nonce, .size = TTI_TORCH_NONCE_BYTES };

    return (tti_torch_request){
        .op = TTI_TORCH_COMPARE_SET, .keys = key, .n_keys = 1, .expected = nonce, .value = nonce
    };
}

bool tti_torch_is_missing(const tti_torch_store *ts, const tutti_bytes *value)
{
    return value->size == TTI_TORCH_NONCE_BYTES &&
           memcmp(value->data, ts->nonce, TTI_TORCH_NONCE_BYTES) == 0;
}

tutti_status tti_torch_look(tti_torch_store *ts, const char *key, bool *there_out,
                            tutti_bytes *val_out)
{
    const tti_torch_request request = tti_torch_look_request(ts, &key);
    tti_torch_reader reader;
    tutti_status st;

    st = tti_torch_run(&ts->pool, &request, NULL, tti_torch_overdue(&ts->pool), &reader);
    if (st != TUTTI_OK)
        return st;
    *there_out = !tti_torch_is_missing(ts, &reader.value);
    if (*there_out)
        *val_out = reader.value;
    else
        tutti_bytes_free(&reader.value);
    return TUTTI_OK;
}

/* WAIT for keys; a time-out has no words yet, and one that is to end early is one. Each WAIT begins with a look at the keys. */
static tutti_status wait_some(tti_tcp_pool *pool, const char *const *keys, size_t n_keys,
                              int64_t deadline_ns, bool *late_out)
{
    const tti_torch_request request = { .op = TTI_TORCH_WAIT, .keys = keys, .n_keys = n_keys };
    tutti_status st;
    int64_t slice;

    do {
        slice = tti_port_now(pool->port) + WAIT_SLICE_NS;
        slice = slice < deadline_ns ? slice : deadline_ns;
        st = tti_torch_run_wait(pool, &request, slice, late_out);
    } while (*late_out && slice < deadline_ns && !tti_store_stops());
    return st;
}

tutti_status tti_torch_wait_more(tti_torch_store *ts, const char *key, tti_torch_patience *p,
                                 bool *again_out)
{
    tti_port *port = ts->pool.port;
    bool late = false;
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

tutti_status tti_torch_get(tutti_store *store, const char *key, int64_t deadline_ns,
                           tutti_bytes *val_out)
{
    tti_torch_store *ts = (tti_torch_store *)store;
    tti_torch_patience p = { .start_ns = tti_port_now(ts->pool.port), .deadline_ns = deadline_ns };
    bool there = false, again = true;
    tutti_status st;

    while (again) {
        st = tti_torch_look(ts, key, &there, val_out);
        if (st != TUTTI_OK || there)
            return st;
        st = tti_torch_wait_more(ts, key, &p, &again);
        if (st != TUTTI_OK)
            return st;
    }
    return tti_store_timed_out(ts->pool.port, key, p.start_ns);
}

tutti_status tti_torch_check(tutti_store *store, const char *const *keys, size_t n_keys,
                             int64_t deadline_ns, bool *all_out)
{
    tti_torch_request request = { .op = TTI_TORCH_CHECK };
    int64_t missing = 0;
    tutti_status st = TUTTI_OK;
    size_t at;

    for (at = 0; at < n_keys && st == TUTTI_OK && missing == 0; at += request.n_keys) {
        request.keys = keys + at;
        request.n_keys = tti_torch_portion(n_keys - at);
        st = tti_torch_run_number(tti_torch_pool(store), &request, deadline_ns, &missing);
    }
    if (st == TUTTI_OK)
        *all_out = missing == 0;
    return st;
}

/* The first of keys that is missing; the first of all if the server does not say. */
static const char *missing_key(tutti_store *store, const char *const *keys, size_t n_keys)
{
    const int64_t until = tti_torch_overdue(tti_torch_pool(store));
    bool there = true;
    size_t i;

    for (i = 0; i < n_keys && there; i++)
        if (tti_torch_check(store, keys + i, 1, until, &there) != TUTTI_OK)
            return keys[0];
    return there ? keys[0] : keys[i - 1];
}

tutti_status tti_torch_wait_all(tutti_store *store, const char *const *keys, size_t n_keys,
                                int64_t deadline_ns)
{
    tti_tcp_pool *pool = tti_torch_pool(store);
    const int64_t start = tti_port_now(pool->port);
    tutti_status st = TUTTI_OK;
    bool late = false;
    size_t at, n;

    for (at = 0; at < n_keys && st == TUTTI_OK; at += n) {
        n = tti_torch_portion(n_keys - at);
        st = wait_some(pool, keys + at, n, deadline_ns, &late);
    }
    if (late)
        return tti_store_timed_out(pool->port, missing_key(store, keys, n_keys), start);
    return st;
}

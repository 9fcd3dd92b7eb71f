/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tcp_lists.c - the tcp store's operations on several keys, in portions that a frame can carry. */
#include "store/tcp_lists.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "store/store_value.h"

/* Give a call its keys, each behind the byte that users' keys begin with: in a block of just their size, which the caller
 * frees after the call. NULL: no memory (worded). */
static char *give_keys(tti_tcp_call *call, const char *const *keys, size_t n_keys)
{
    size_t bytes = 0, size, i;
    char  *block, *at;

    for (i = 0; i < n_keys; i++)
        bytes += 1 + strlen(keys[i]);
    block = at = malloc(bytes);
    if (block == NULL) {
        tti_fail(TUTTI_E_NOMEM, "no memory for %zu store keys", n_keys);
        return NULL;
    }
    for (i = 0; i < n_keys; i++) {
        size = strlen(keys[i]);
        *at = '/';
        memcpy(at + 1, keys[i], size);
        call->request.keys[call->request.n_keys++] = (tti_slice){ .data = at, .size = size + 1 };
        at += size + 1;
    }
    return block;
}

static size_t portion(size_t n_keys)
{
    return n_keys < TTI_STORE_KEYS_MAX ? n_keys : TTI_STORE_KEYS_MAX;
}

/* WAIT or CHECK of at most TTI_STORE_KEYS_MAX keys. */
static tutti_status ask_some(tti_tcp_pool *pool, tti_store_op op, const char *const *keys,
                             size_t n_keys, int64_t deadline_ns, int64_t *out)
{
    tti_tcp_call call;
    tutti_status st;
    char        *block;

    tti_tcp_call_begin(&call, pool, op, keys[0], deadline_ns);
    block = give_keys(&call, keys, n_keys);
    if (block == NULL)
        return TUTTI_E_NOMEM;
    st = tti_tcp_call_number(&call, op == TTI_STORE_CHECK ? 1 : 0, out);
    free(block);
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
        n = portion(n_keys - at);
        st = ask_some(pool, op, keys + at, n, deadline_ns, op == TTI_STORE_CHECK ? &yes : NULL);
    }
    if (st == TUTTI_OK && all_out != NULL)
        *all_out = yes != 0;
    return st;
}

tutti_status tti_tcp_check(tti_tcp_pool *pool, const char *const *keys, size_t n_keys,
                           int64_t deadline_ns, bool *all_out)
{
    return ask_all(pool, TTI_STORE_CHECK, keys, n_keys, deadline_ns, all_out);
}

/* The first of keys that is missing, as far as the server still answers: by halves. */
static size_t first_missing(tti_tcp_pool *pool, const char *const *keys, size_t n_keys, int64_t until)
{
    size_t at = 0, end = n_keys; /* those before at are there; one before end is not */
    bool   there = true;

    while (end - at > 1) {
        const size_t half = at + (end - at) / 2;

        if (tti_tcp_check(pool, keys + at, half - at, until, &there) != TUTTI_OK)
            break;
        if (there)
            at = half;
        else
            end = half;
    }
    return at;
}

/* After a time-out of several keys: name one that is missing. A server that is stopped is not waited for again: the caller's
 * time is over, or it was told to wait no longer. */
static void name_missing(tti_tcp_pool *pool, const char *const *keys, size_t n_keys,
                         int64_t start_ns, int64_t deadline_ns)
{
    const int64_t now_ns = tti_port_now(pool->port);
    const size_t  i = first_missing(pool, keys, n_keys, tti_tcp_pool_late_ns(pool, deadline_ns));

    tti_fail(TUTTI_E_TIMEOUT, "key '%s' did not come within %" PRId64 " ms (%s)", keys[i],
             (now_ns - start_ns) / TTI_MS, pool->who);
}

tutti_status tti_tcp_wait_all(tti_tcp_pool *pool, const char *const *keys, size_t n_keys,
                              int64_t deadline_ns)
{
    const int64_t start = tti_port_now(pool->port);
    tutti_status  st = ask_all(pool, TTI_STORE_WAIT, keys, n_keys, deadline_ns, NULL);

    if (st == TUTTI_E_TIMEOUT && n_keys > 1)
        name_missing(pool, keys, n_keys, start, deadline_ns);
    return st;
}

/* The answer to MULTI_GET: copies of its *n_out values. */
static tutti_status copy_values(const tutti_bytes *body, size_t n_keys, tutti_bytes *vals_out,
                                size_t *n_out)
{
    tti_slice    slices[TTI_STORE_KEYS_MAX];
    uint32_t     n = 0, i;
    tutti_status st;

    st = tti_store_values_read(body->data, body->size, (uint32_t)n_keys, slices, &n);
    for (i = 0; i < n && st == TUTTI_OK; i++)
        st = tti_bytes_copy(slices[i].data, slices[i].size, &vals_out[i]);
    *n_out = n;
    return st;
}

/* One MULTI_GET: how many of the first values came is in *n_out. */
static tutti_status get_some(tti_tcp_pool *pool, const char *const *keys, size_t n_keys,
                             int64_t deadline_ns, tutti_bytes *vals_out, size_t *n_out)
{
    tti_tcp_call call;
    tutti_status st;
    char        *block;

    tti_tcp_call_begin(&call, pool, TTI_STORE_MULTI_GET, keys[0], deadline_ns);
    block = give_keys(&call, keys, n_keys);
    if (block == NULL)
        return TUTTI_E_NOMEM;
    st = tti_tcp_call_run(&call);
    free(block);
    if (st != TUTTI_OK)
        return st;
    st = copy_values(&call.body, n_keys, vals_out, n_out);
    tutti_bytes_free(&call.body);
    return st;
}

tutti_status tti_tcp_multi_get(tti_tcp_pool *pool, const char *const *keys, size_t n_keys,
                               int64_t deadline_ns, tutti_bytes *vals_out)
{
    const int64_t start = tti_port_now(pool->port);
    tutti_status  st = TUTTI_OK;
    size_t        at, n = 0;

    for (at = 0; at < n_keys && st == TUTTI_OK; at += n)
        st = get_some(pool, keys + at, portion(n_keys - at), deadline_ns, vals_out + at, &n);
    if (st == TUTTI_E_TIMEOUT && n_keys > 1)
        name_missing(pool, keys, n_keys, start, deadline_ns);
    return st;
}

/* How many of the first pairs one MULTI_SET takes. */
static size_t pairs_that_fit(const tutti_bytes *vals, size_t n_keys)
{
    size_t n, bytes = 0;

    for (n = 0; n < portion(n_keys); n++) {
        bytes += vals[n].size;
        if (n > 0 && bytes > TUTTI_STORE_VALUE_MAX)
            break;
    }
    return n;
}

static tutti_status set_some(tti_tcp_pool *pool, const char *const *keys, const tutti_bytes *vals,
                             size_t n_keys, int64_t deadline_ns)
{
    tti_tcp_call call;
    tutti_status st;
    char        *block;
    size_t       i;

    tti_tcp_call_begin(&call, pool, TTI_STORE_MULTI_SET, keys[0], deadline_ns);
    block = give_keys(&call, keys, n_keys);
    if (block == NULL)
        return TUTTI_E_NOMEM;
    for (i = 0; i < n_keys; i++)
        call.request.values[i] = (tti_slice){ .data = vals[i].data, .size = vals[i].size };
    st = tti_tcp_call_number(&call, 0, NULL);
    free(block);
    return st;
}

tutti_status tti_tcp_multi_set(tti_tcp_pool *pool, const char *const *keys, const tutti_bytes *vals,
                               size_t n_keys, int64_t deadline_ns)
{
    tutti_status st = TUTTI_OK;
    size_t       at, n;

    for (at = 0; at < n_keys && st == TUTTI_OK; at += n) {
        n = pairs_that_fit(vals + at, n_keys - at);
        st = set_some(pool, keys + at, vals + at, n, deadline_ns);
    }
    return st;
}

/* The answer to LIST_KEYS, without the byte before each user key. */
static tutti_status copy_names(const tutti_bytes *body, tutti_store_keys *keys_out)
{
    tti_slice     *slices = NULL;
    tti_key_filler filler;
    uint32_t       n = 0, i;
    tutti_status   st = tti_store_names_read(body->data, body->size, NULL, &n);

    if (st != TUTTI_OK)
        return st;
    slices = malloc((n > 0 ? n : 1) * sizeof *slices);
    if (slices == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the names of %u keys", n);
    st = tti_store_names_read(body->data, body->size, slices, &n);
    if (st == TUTTI_OK)
        st = tti_key_filler_begin(&filler, n, body->size);
    if (st == TUTTI_OK) {
        for (i = 0; i < n; i++)
            tti_key_filler_add(&filler, (const char *)slices[i].data + 1, slices[i].size - 1);
        *keys_out = filler.keys;
    }
    free(slices);
    return st;
}

tutti_status tti_tcp_list_keys(tti_tcp_pool *pool, const char *prefix, int64_t deadline_ns,
                               tutti_store_keys *keys_out)
{
    tti_tcp_call call;
    tti_tcp_key  room;
    tutti_status st;

    tti_tcp_call_begin(&call, pool, TTI_STORE_LIST_KEYS, prefix, deadline_ns);
    tti_tcp_call_key(&call, prefix, &room);
    st = tti_tcp_call_run(&call);
    if (st != TUTTI_OK)
        return st;
    st = copy_names(&call.body, keys_out);
    tutti_bytes_free(&call.body);
    return st;
}

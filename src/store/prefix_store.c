/* SPDX-License-Identifier: BSD-3-Clause
 *
 * prefix_store.c - a view of another store in which every key begins with "prefix/".
 *
 * True    The key sent down is prefix + "/" + key. The outermost view adds its prefix first, so it
 *         ends up innermost: prefix "a" over prefix "b" maps k to b/a/k. The limit on keys is
 *         checked again below, on the whole key. */
#include "store/store.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

typedef struct prefix_store {
    tutti_store  base; /* first: the two pointers convert both ways */
    tutti_store *inner;
    size_t       prefix_size; /* with the slash */
    char         prefix[];    /* with the slash */
} prefix_store;

typedef struct full_key {
    char text[2 * (TUTTI_STORE_KEY_MAX + 1)]; /* both halves are within the limit */
} full_key;

static tutti_status open_view(const char *prefix, size_t size, tutti_store *inner,
                              tutti_store **store_out);

static const char *full(const prefix_store *ps, const char *key, full_key *out)
{
    memcpy(out->text, ps->prefix, ps->prefix_size);
    memcpy(out->text + ps->prefix_size, key, strlen(key) + 1);
    return out->text;
}

static tutti_status prefix_set(tutti_store *store, const char *key, const void *val, size_t len,
                               int64_t deadline_ns)
{
    prefix_store *ps = (prefix_store *)store;
    full_key      fk;

    return tti_store_set_until(ps->inner, full(ps, key, &fk), val, len, deadline_ns);
}

static tutti_status prefix_get(tutti_store *store, const char *key, int64_t deadline_ns,
                               tutti_bytes *val_out)
{
    prefix_store *ps = (prefix_store *)store;
    full_key      fk;

    return tti_store_get_until(ps->inner, full(ps, key, &fk), deadline_ns, val_out);
}

static tutti_status prefix_add(tutti_store *store, const char *key, int64_t delta,
                               int64_t deadline_ns, int64_t *sum_out)
{
    prefix_store *ps = (prefix_store *)store;
    full_key      fk;

    return tti_store_add_until(ps->inner, full(ps, key, &fk), delta, deadline_ns, sum_out);
}

/* All keys with their prefix: one block, pointers first, the caller frees it. NULL: no memory
 * (worded). */
static const char **full_keys(const prefix_store *ps, const char *const *keys, size_t n_keys)
{
    size_t       bytes = n_keys * sizeof(char *);
    const char **block;
    char        *at;
    size_t       i;

    for (i = 0; i < n_keys; i++)
        bytes += ps->prefix_size + strlen(keys[i]) + 1;
    block = malloc(bytes);
    if (block == NULL) {
        tti_fail(TUTTI_E_NOMEM, "no memory for %zu store keys", n_keys);
        return NULL;
    }
    at = (char *)(block + n_keys);
    for (i = 0; i < n_keys; i++) {
        const size_t size = strlen(keys[i]) + 1;

        block[i] = at;
        memcpy(at, ps->prefix, ps->prefix_size);
        memcpy(at + ps->prefix_size, keys[i], size);
        at += ps->prefix_size + size;
    }
    return block;
}

static tutti_status prefix_wait_all(tutti_store *store, const char *const *keys, size_t n_keys,
                                    int64_t deadline_ns)
{
    prefix_store *ps = (prefix_store *)store;
    const char  **longer = full_keys(ps, keys, n_keys);
    tutti_status  st;

    if (longer == NULL)
        return TUTTI_E_NOMEM;
    st = tti_store_wait_until(ps->inner, longer, n_keys, deadline_ns);
    free(longer);
    return st;
}

static tutti_status prefix_check(tutti_store *store, const char *const *keys, size_t n_keys,
                                 int64_t deadline_ns, bool *all_out)
{
    prefix_store *ps = (prefix_store *)store;
    const char  **longer = full_keys(ps, keys, n_keys);
    tutti_status  st;

    if (longer == NULL)
        return TUTTI_E_NOMEM;
    st = tti_store_check_until(ps->inner, longer, n_keys, deadline_ns, all_out);
    free(longer);
    return st;
}

static tutti_status prefix_compare_set(tutti_store *store, const char *key, const void *expected,
                                       size_t expected_len, const void *desired, size_t desired_len,
                                       int64_t deadline_ns, tutti_bytes *val_out)
{
    prefix_store *ps = (prefix_store *)store;
    full_key      fk;

    return tti_store_compare_set_until(ps->inner, full(ps, key, &fk), expected, expected_len,
                                       desired, desired_len, deadline_ns, val_out);
}

static tutti_status prefix_delete_key(tutti_store *store, const char *key, int64_t deadline_ns,
                                      bool *deleted_out)
{
    prefix_store *ps = (prefix_store *)store;
    full_key      fk;

    return tti_store_delete_key_until(ps->inner, full(ps, key, &fk), deadline_ns, deleted_out);
}

static tutti_status prefix_num_keys(tutti_store *store, int64_t deadline_ns, int64_t *n_out)
{
    return tti_store_num_keys_until(((prefix_store *)store)->inner, deadline_ns, n_out);
}

static tutti_status prefix_append(tutti_store *store, const char *key, const void *val, size_t len,
                                  int64_t deadline_ns)
{
    prefix_store *ps = (prefix_store *)store;
    full_key      fk;

    return tti_store_append_until(ps->inner, full(ps, key, &fk), val, len, deadline_ns);
}

static tutti_status prefix_multi_get(tutti_store *store, const char *const *keys, size_t n_keys,
                                     int64_t deadline_ns, tutti_bytes *vals_out)
{
    prefix_store *ps = (prefix_store *)store;
    const char  **longer = full_keys(ps, keys, n_keys);
    tutti_status  st;

    if (longer == NULL)
        return TUTTI_E_NOMEM;
    st = tti_store_multi_get_until(ps->inner, longer, n_keys, deadline_ns, vals_out);
    free(longer);
    return st;
}

static tutti_status prefix_multi_set(tutti_store *store, const char *const *keys,
                                     const tutti_bytes *vals, size_t n_keys, int64_t deadline_ns)
{
    prefix_store *ps = (prefix_store *)store;
    const char  **longer = full_keys(ps, keys, n_keys);
    tutti_status  st;

    if (longer == NULL)
        return TUTTI_E_NOMEM;
    st = tti_store_multi_set_until(ps->inner, longer, vals, n_keys, deadline_ns);
    free(longer);
    return st;
}

static tutti_status prefix_queue_push(tutti_store *store, const char *key, const void *val,
                                      size_t len, int64_t deadline_ns)
{
    prefix_store *ps = (prefix_store *)store;
    full_key      fk;

    return tti_store_queue_push_until(ps->inner, full(ps, key, &fk), val, len, deadline_ns);
}

static tutti_status prefix_queue_pop(tutti_store *store, const char *key, bool block,
                                     int64_t deadline_ns, tutti_bytes *val_out)
{
    prefix_store *ps = (prefix_store *)store;
    full_key      fk;

    return tti_store_queue_pop_until(ps->inner, full(ps, key, &fk), block, deadline_ns, val_out);
}

static tutti_status prefix_queue_len(tutti_store *store, const char *key, int64_t deadline_ns,
                                     int64_t *n_out)
{
    prefix_store *ps = (prefix_store *)store;
    full_key      fk;

    return tti_store_queue_len_until(ps->inner, full(ps, key, &fk), deadline_ns, n_out);
}

static tutti_status prefix_list_keys(tutti_store *store, const char *prefix, int64_t deadline_ns,
                                     tutti_store_keys *keys_out)
{
    prefix_store    *ps = (prefix_store *)store;
    full_key         fk;
    tutti_store_keys keys;
    tutti_status     st;
    size_t           i;

    st = tti_store_list_keys_until(ps->inner, full(ps, prefix, &fk), deadline_ns, &keys);
    if (st != TUTTI_OK)
        return st;
    for (i = 0; i < keys.n; i++)
        keys.names[i] += ps->prefix_size;
    *keys_out = keys;
    return TUTTI_OK;
}

static tutti_status prefix_clone(tutti_store *store, int64_t deadline_ns, tutti_store **store_out)
{
    prefix_store *ps = (prefix_store *)store;
    tutti_store  *inner = NULL;
    tutti_status  st = tti_store_clone_until(ps->inner, deadline_ns, &inner);

    if (st == TUTTI_OK)
        st = open_view(ps->prefix, ps->prefix_size - 1, inner, store_out);
    tutti_store_close(inner); /* the view has a reference of its own */
    return st;
}

static void prefix_close(tutti_store *store)
{
    prefix_store *ps = (prefix_store *)store;

    tutti_store_close(ps->inner);
    free(ps);
}

static const tutti_store_ops prefix_ops = {
    .api = TUTTI_STORE_API,
    .size = sizeof(tutti_store_ops),
    .scheme = "prefix",
    .set = prefix_set,
    .get = prefix_get,
    .close = prefix_close,
    .wait_all = prefix_wait_all,
    .check = prefix_check,
    .compare_set = prefix_compare_set,
    .add = prefix_add,
    .delete_key = prefix_delete_key,
    .num_keys = prefix_num_keys,
    .append = prefix_append,
    .multi_get = prefix_multi_get,
    .multi_set = prefix_multi_set,
    .queue_push = prefix_queue_push,
    .queue_pop = prefix_queue_pop,
    .queue_len = prefix_queue_len,
    .list_keys = prefix_list_keys,
    .clone = prefix_clone,
};

bool tti_prefix_store_key(tutti_store *store, const char *key, char *out, size_t bytes, tutti_store **inner_out)
{
    const prefix_store *ps = (prefix_store *)store;

    if (store->ops != &prefix_ops || ps->prefix_size + strlen(key) >= bytes)
        return false;
    memmove(out + ps->prefix_size, key, strlen(key) + 1); /* out may be key */
    memcpy(out, ps->prefix, ps->prefix_size);
    *inner_out = ps->inner;
    return true;
}

static tutti_status open_view(const char *prefix, size_t size, tutti_store *inner,
                              tutti_store **store_out)
{
    prefix_store *ps = calloc(1, sizeof *ps + size + 1);
    tutti_status  st;

    if (ps == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a prefix store");
    ps->base.ops = &prefix_ops;
    ps->prefix_size = size + 1;
    memcpy(ps->prefix, prefix, size);
    ps->prefix[size] = '/';
    st = tti_store_init(&ps->base, tti_store_port(inner), 0, inner);
    if (st != TUTTI_OK) {
        free(ps);
        return st;
    }
    ps->inner = tutti_store_retain(inner);
    *store_out = &ps->base;
    return TUTTI_OK;
}

tutti_status tutti_prefix_store_open(const char *prefix, tutti_store *inner,
                                     tutti_store **store_out)
{
    size_t       size;
    tutti_status st;

    if (prefix == NULL || prefix[0] == '\0' || inner == NULL || store_out == NULL)
        return tti_fail(TUTTI_E_ARG, "a prefix store needs a prefix, a store and store_out\n  next: let none of them be NULL");
    st = tti_store_check_own(inner);
    if (st != TUTTI_OK)
        return st;
    size = strlen(prefix);
    if (size > TUTTI_STORE_KEY_MAX - 2)
        return tti_fail(TUTTI_E_ARG, "a prefix of %zu bytes leaves no room for a key, which has at most %d with it\n"
                                     "  next: use a shorter prefix",
                        size, TUTTI_STORE_KEY_MAX);
    return open_view(prefix, size, inner, store_out);
}

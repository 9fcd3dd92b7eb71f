/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hash_store.c - a store inside this process: a map, a lock, and an event that every change
 * signals. */
#include "store/store.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "base/thread.h"
#include "store/store_value.h"

typedef struct hash_store {
    tutti_store base; /* first: the two pointers convert both ways */
    tti_mutex   lock; /* guards map */
    tti_event   changed;
    tti_map     map;
} hash_store;

static tti_port *port_of(hash_store *hs)
{
    return tti_store_port(&hs->base);
}

static tutti_status hash_set(tutti_store *store, const char *key, const void *val, size_t len,
                             int64_t deadline_ns)
{
    hash_store  *hs = (hash_store *)store;
    tutti_status st;

    (void)deadline_ns;
    tti_lock(&hs->lock);
    st = tti_map_put(&hs->map, key, strlen(key), val, len);
    tti_unlock(&hs->lock);
    if (st == TUTTI_OK)
        tti_event_signal(port_of(hs), &hs->changed);
    return st;
}

/* The value of key, if it is there now. */
static bool look(hash_store *hs, const char *key, tutti_bytes *val_out, tutti_status *st)
{
    const void *val;
    size_t      size;
    bool        found;

    tti_lock(&hs->lock);
    found = tti_map_get(&hs->map, key, strlen(key), &val, &size);
    if (found)
        *st = tti_bytes_copy(val, size, val_out);
    tti_unlock(&hs->lock);
    return found;
}

static tutti_status hash_get(tutti_store *store, const char *key, int64_t deadline_ns,
                             tutti_bytes *val_out)
{
    hash_store   *hs = (hash_store *)store;
    tti_port     *port = port_of(hs);
    const int64_t start = tti_port_now(port);
    tutti_status  st = TUTTI_OK;

    for (;;) {
        const uint32_t seen = tti_event_now(&hs->changed);

        if (look(hs, key, val_out, &st))
            return st;
        if (tti_port_now(port) >= deadline_ns)
            return tti_store_timed_out(port, key, start);
        tti_event_wait(port, &hs->changed, seen, deadline_ns);
    }
}

/* The first of keys that is not there; NULL: all are. */
static const char *first_missing(hash_store *hs, const char *const *keys, size_t n_keys)
{
    const char *missing = NULL;
    size_t      i;

    tti_lock(&hs->lock);
    for (i = 0; i < n_keys && missing == NULL; i++)
        if (!tti_map_get(&hs->map, keys[i], strlen(keys[i]), NULL, NULL))
            missing = keys[i];
    tti_unlock(&hs->lock);
    return missing;
}

static tutti_status hash_wait_all(tutti_store *store, const char *const *keys, size_t n_keys,
                                  int64_t deadline_ns)
{
    hash_store   *hs = (hash_store *)store;
    tti_port     *port = port_of(hs);
    const int64_t start = tti_port_now(port);

    for (;;) {
        const uint32_t seen = tti_event_now(&hs->changed);
        const char    *missing = first_missing(hs, keys, n_keys);

        if (missing == NULL)
            return TUTTI_OK;
        if (tti_port_now(port) >= deadline_ns)
            return tti_store_timed_out(port, missing, start);
        tti_event_wait(port, &hs->changed, seen, deadline_ns);
    }
}

static tutti_status hash_check(tutti_store *store, const char *const *keys, size_t n_keys,
                               int64_t deadline_ns, bool *all_out)
{
    (void)deadline_ns;
    *all_out = first_missing((hash_store *)store, keys, n_keys) == NULL;
    return TUTTI_OK;
}

static tutti_status hash_compare_set(tutti_store *store, const char *key, const void *expected,
                                     size_t expected_len, const void *desired, size_t desired_len,
                                     int64_t deadline_ns, tutti_bytes *val_out)
{
    hash_store  *hs = (hash_store *)store;
    const void  *val = NULL;
    size_t       size = 0;
    bool         changed = false;
    tutti_bytes  copy = { .data = NULL };
    tutti_status st;

    (void)deadline_ns;
    tti_lock(&hs->lock);
    st = tti_store_map_compare_set(&hs->map, key, strlen(key), expected, expected_len, desired,
                                   desired_len, &val, &size, &changed);
    if (st == TUTTI_OK)
        st = tti_bytes_copy(val, size, &copy);
    tti_unlock(&hs->lock);
    if (changed)
        tti_event_signal(port_of(hs), &hs->changed);
    if (st == TUTTI_OK)
        *val_out = copy;
    return st;
}

static tutti_status hash_add(tutti_store *store, const char *key, int64_t delta,
                             int64_t deadline_ns, int64_t *sum_out)
{
    hash_store  *hs = (hash_store *)store;
    tutti_status st;

    (void)deadline_ns;
    tti_lock(&hs->lock);
    st = tti_store_map_add(&hs->map, key, strlen(key), delta, key, sum_out);
    tti_unlock(&hs->lock);
    if (st == TUTTI_OK)
        tti_event_signal(port_of(hs), &hs->changed);
    return st;
}

static tutti_status hash_delete_key(tutti_store *store, const char *key, int64_t deadline_ns,
                                    bool *deleted_out)
{
    hash_store *hs = (hash_store *)store;

    (void)deadline_ns;
    tti_lock(&hs->lock);
    *deleted_out = tti_map_delete(&hs->map, key, strlen(key));
    tti_unlock(&hs->lock);
    return TUTTI_OK;
}

static tutti_status hash_num_keys(tutti_store *store, int64_t deadline_ns, int64_t *n_out)
{
    hash_store *hs = (hash_store *)store;

    (void)deadline_ns;
    tti_lock(&hs->lock);
    *n_out = (int64_t)hs->map.count;
    tti_unlock(&hs->lock);
    return TUTTI_OK;
}

static void hash_close(tutti_store *store)
{
    hash_store *hs = (hash_store *)store;

    tti_map_release(&hs->map);
    tti_mutex_release(&hs->lock);
    free(hs);
}

static const tutti_store_ops hash_ops = {
    .api = TUTTI_STORE_API,
    .size = sizeof(tutti_store_ops),
    .scheme = "hash",
    .set = hash_set,
    .get = hash_get,
    .close = hash_close,
    .wait_all = hash_wait_all,
    .check = hash_check,
    .compare_set = hash_compare_set,
    .add = hash_add,
    .delete_key = hash_delete_key,
    .num_keys = hash_num_keys,
};

tutti_status tti_hash_store_open_on(tti_port *port, tutti_store **store_out)
{
    hash_store  *hs = calloc(1, sizeof *hs);
    tutti_status st;

    if (hs == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a hash store");
    hs->base.ops = &hash_ops;
    st = tti_store_init(&hs->base, port, 0, NULL);
    if (st != TUTTI_OK) {
        free(hs);
        return st;
    }
    tti_mutex_init(&hs->lock);
    tti_map_init(&hs->map, port);
    *store_out = &hs->base;
    return TUTTI_OK;
}

tutti_status tutti_hash_store_open(tutti_store **store_out)
{
    if (store_out == NULL)
        return tti_fail(TUTTI_E_ARG, "store_out is NULL");
    return tti_hash_store_open_on(tti_port_system(), store_out);
}

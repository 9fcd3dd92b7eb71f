/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hash_store.c - a store inside this process: a map, queues, a lock, and an event that every change
 * signals. */
#include "store/store.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "base/thread.h"
#include "store/store_queue.h"
#include "store/store_value.h"

typedef struct hash_store {
    tutti_store      base; /* first: the two pointers convert both ways */
    tti_mutex        lock; /* guards map and queues */
    tti_event        changed;
    tti_map          map;
    tti_store_queues queues;
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

static bool exists(hash_store *hs, const char *key, bool queues_count)
{
    const size_t size = strlen(key);

    return tti_map_get(&hs->map, key, size, NULL, NULL) ||
           (queues_count && tti_store_queues_len(&hs->queues, key, size) > 0);
}

/* The first of keys that is not there; NULL: all are. Under the lock. */
static const char *first_missing(hash_store *hs, const char *const *keys, size_t n_keys,
                                 bool queues_count)
{
    size_t i;

    for (i = 0; i < n_keys; i++)
        if (!exists(hs, keys[i], queues_count))
            return keys[i];
    return NULL;
}

/* Wait until all keys are there; on TUTTI_OK the lock is held, so that the caller can read. */
static tutti_status lock_when_there(hash_store *hs, const char *const *keys, size_t n_keys,
                                    bool queues_count, int64_t deadline_ns)
{
    tti_port     *port = port_of(hs);
    const int64_t start = tti_port_now(port);

    for (;;) {
        const uint32_t seen = tti_event_now(&hs->changed);
        const char    *missing;

        tti_lock(&hs->lock);
        missing = first_missing(hs, keys, n_keys, queues_count);
        if (missing == NULL)
            return TUTTI_OK;
        tti_unlock(&hs->lock);
        if (tti_port_now(port) >= deadline_ns || tti_store_stops())
            return tti_store_timed_out(port, missing, start);
        tti_event_wait(port, &hs->changed, seen, tti_store_slice(port, deadline_ns));
    }
}

/* Copies of values that are there. */
static tutti_status copy_values(hash_store *hs, const char *const *keys, size_t n_keys,
                                tutti_bytes *vals_out)
{
    tutti_status st = TUTTI_OK;
    const void  *val = NULL;
    size_t       size = 0, i;

    for (i = 0; i < n_keys && st == TUTTI_OK; i++) {
        tti_map_get(&hs->map, keys[i], strlen(keys[i]), &val, &size);
        st = tti_bytes_copy(val, size, &vals_out[i]);
    }
    return st;
}

static tutti_status hash_multi_get(tutti_store *store, const char *const *keys, size_t n_keys,
                                   int64_t deadline_ns, tutti_bytes *vals_out)
{
    hash_store  *hs = (hash_store *)store;
    tutti_status st = lock_when_there(hs, keys, n_keys, false, deadline_ns);

    if (st != TUTTI_OK)
        return st;
    st = copy_values(hs, keys, n_keys, vals_out);
    tti_unlock(&hs->lock);
    return st;
}

static tutti_status hash_get(tutti_store *store, const char *key, int64_t deadline_ns,
                             tutti_bytes *val_out)
{
    return hash_multi_get(store, &key, 1, deadline_ns, val_out);
}

static tutti_status hash_wait_all(tutti_store *store, const char *const *keys, size_t n_keys,
                                  int64_t deadline_ns)
{
    hash_store  *hs = (hash_store *)store;
    tutti_status st = lock_when_there(hs, keys, n_keys, true, deadline_ns);

    if (st == TUTTI_OK)
        tti_unlock(&hs->lock);
    return st;
}

static tutti_status hash_check(tutti_store *store, const char *const *keys, size_t n_keys,
                               int64_t deadline_ns, bool *all_out)
{
    hash_store *hs = (hash_store *)store;

    (void)deadline_ns;
    tti_lock(&hs->lock);
    *all_out = first_missing(hs, keys, n_keys, true) == NULL;
    tti_unlock(&hs->lock);
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

static tutti_status hash_append(tutti_store *store, const char *key, const void *val, size_t len,
                                int64_t deadline_ns)
{
    hash_store  *hs = (hash_store *)store;
    tutti_status st;

    (void)deadline_ns;
    tti_lock(&hs->lock);
    st = tti_store_map_append(&hs->map, key, strlen(key), val, len, key);
    tti_unlock(&hs->lock);
    if (st == TUTTI_OK)
        tti_event_signal(port_of(hs), &hs->changed);
    return st;
}

static tutti_status hash_multi_set(tutti_store *store, const char *const *keys,
                                   const tutti_bytes *vals, size_t n_keys, int64_t deadline_ns)
{
    hash_store  *hs = (hash_store *)store;
    tutti_status st = TUTTI_OK;
    size_t       i;

    (void)deadline_ns;
    tti_lock(&hs->lock);
    for (i = 0; i < n_keys && st == TUTTI_OK; i++)
        st = tti_map_put(&hs->map, keys[i], strlen(keys[i]), vals[i].data, vals[i].size);
    tti_unlock(&hs->lock);
    tti_event_signal(port_of(hs), &hs->changed); /* also after a failure: some are set */
    return st;
}

static tutti_status hash_queue_push(tutti_store *store, const char *key, const void *val,
                                    size_t len, int64_t deadline_ns)
{
    hash_store  *hs = (hash_store *)store;
    tutti_status st;

    (void)deadline_ns;
    tti_lock(&hs->lock);
    st = tti_store_queues_push(&hs->queues, key, strlen(key), val, len);
    tti_unlock(&hs->lock);
    if (st == TUTTI_OK)
        tti_event_signal(port_of(hs), &hs->changed);
    return st;
}

/* Take the front of a queue; false: there is none. The value leaves the queue only with its copy. */
static bool take_front(hash_store *hs, const char *key, tutti_bytes *val_out, tutti_status *st)
{
    const size_t key_size = strlen(key);
    const void  *val;
    size_t       size;
    bool         found;

    tti_lock(&hs->lock);
    found = tti_store_queues_front(&hs->queues, key, key_size, &val, &size);
    if (found)
        *st = tti_bytes_copy(val, size, val_out);
    if (found && *st == TUTTI_OK)
        tti_store_queues_drop(&hs->queues, key, key_size);
    tti_unlock(&hs->lock);
    return found;
}

static tutti_status hash_queue_pop(tutti_store *store, const char *key, bool block,
                                   int64_t deadline_ns, tutti_bytes *val_out)
{
    hash_store   *hs = (hash_store *)store;
    tti_port     *port = port_of(hs);
    const int64_t start = tti_port_now(port);
    tutti_status  st = TUTTI_OK;

    for (;;) {
        const uint32_t seen = tti_event_now(&hs->changed);

        if (take_front(hs, key, val_out, &st))
            return st;
        if (!block)
            return tti_store_queue_empty(key);
        if (tti_port_now(port) >= deadline_ns)
            return tti_store_pop_timed_out(port, key, start);
        tti_event_wait(port, &hs->changed, seen, deadline_ns);
    }
}

static tutti_status hash_queue_len(tutti_store *store, const char *key, int64_t deadline_ns,
                                   int64_t *n_out)
{
    hash_store *hs = (hash_store *)store;

    (void)deadline_ns;
    tti_lock(&hs->lock);
    *n_out = tti_store_queues_len(&hs->queues, key, strlen(key));
    tti_unlock(&hs->lock);
    return TUTTI_OK;
}

static tutti_status hash_list_keys(tutti_store *store, const char *prefix, int64_t deadline_ns,
                                   tutti_store_keys *keys_out)
{
    hash_store  *hs = (hash_store *)store;
    tutti_status st;

    (void)deadline_ns;
    tti_lock(&hs->lock);
    st = tti_store_map_list(&hs->map, prefix, 0, keys_out);
    tti_unlock(&hs->lock);
    return st;
}

static void hash_close(tutti_store *store)
{
    hash_store *hs = (hash_store *)store;

    tti_map_release(&hs->map);
    tti_store_queues_release(&hs->queues);
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
    .append = hash_append,
    .multi_get = hash_multi_get,
    .multi_set = hash_multi_set,
    .queue_push = hash_queue_push,
    .queue_pop = hash_queue_pop,
    .queue_len = hash_queue_len,
    .list_keys = hash_list_keys,
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
    tti_store_queues_init(&hs->queues, port);
    *store_out = &hs->base;
    return TUTTI_OK;
}

tutti_status tutti_hash_store_open(tutti_store **store_out)
{
    if (store_out == NULL)
        return tti_fail(TUTTI_E_ARG, "a hash store needs store_out\n  next: pass where to put the store");
    return tti_hash_store_open_on(tti_port_system(), store_out);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_extended.c - the front, continued: several keys at once, append, queues, names, barriers,
 * clones.
 *
 * How     What a store lacks is made of what it has where that is exact: multi_get and multi_set are
 *         loops, a barrier is a counter and a key on every store, a clone is a reference. append,
 *         queues and the list of names cannot be made so, and are TUTTI_E_UNSUPPORTED. */
#include "store/store_front.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

#define COUNTER_SUFFIX "/num_members"
#define RELEASE_SUFFIX "/last_member"

void tutti_store_keys_free(tutti_store_keys *keys)
{
    if (keys == NULL)
        return;
    free(keys->names);
    *keys = (tutti_store_keys){ .names = NULL };
}

/* ---- append, several keys ---- */

tutti_status tti_store_append_until(tutti_store *store, const char *key, const void *data,
                                    size_t size, int64_t deadline_ns)
{
    tutti_status st = tti_store_check_key(key);

    if (st == TUTTI_OK)
        st = tti_store_check_value(key, data, size);
    if (st != TUTTI_OK)
        return st;
    if (store->front->ops.append == NULL)
        return tti_store_lacks(store, "append");
    return store->front->ops.append(store, key, data, size, deadline_ns);
}

static tutti_status get_each(tutti_store *store, const char *const *keys, size_t n,
                             int64_t deadline_ns, tutti_bytes *values_out)
{
    tutti_status st = TUTTI_OK;
    size_t       i;

    for (i = 0; i < n && st == TUTTI_OK; i++)
        st = store->front->ops.get(store, keys[i], deadline_ns, &values_out[i]);
    return st;
}

tutti_status tti_store_multi_get_until(tutti_store *store, const char *const *keys, size_t n,
                                       int64_t deadline_ns, tutti_bytes *values_out)
{
    const tutti_store_ops *ops = &store->front->ops;
    tutti_bytes           *values;
    tutti_status           st = tti_store_check_list(keys, n);
    size_t                 i;

    if (st != TUTTI_OK || n == 0)
        return st;
    values = calloc(n, sizeof *values);
    if (values == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for %zu values", n);
    st = ops->multi_get != NULL ? ops->multi_get(store, keys, n, deadline_ns, values)
                                : get_each(store, keys, n, deadline_ns, values);
    if (st == TUTTI_OK)
        memcpy(values_out, values, n * sizeof *values);
    else
        for (i = 0; i < n; i++)
            tutti_bytes_free(&values[i]);
    free(values);
    return st;
}

tutti_status tti_store_multi_set_until(tutti_store *store, const char *const *keys,
                                       const tutti_bytes *values, size_t n, int64_t deadline_ns)
{
    const tutti_store_ops *ops = &store->front->ops;
    tutti_status           st = tti_store_check_list(keys, n);
    size_t                 i;

    if (st == TUTTI_OK && n > 0 && values == NULL)
        return tti_fail(TUTTI_E_ARG, "a list of %zu values is NULL\n  next: pass a value for each key", n);
    for (i = 0; i < n && st == TUTTI_OK; i++)
        st = tti_store_check_value(keys[i], values[i].data, values[i].size);
    if (st != TUTTI_OK || n == 0)
        return st;
    if (ops->multi_set != NULL)
        return ops->multi_set(store, keys, values, n, deadline_ns);
    for (i = 0; i < n && st == TUTTI_OK; i++)
        st = ops->set(store, keys[i], values[i].data, values[i].size, deadline_ns);
    return st;
}

bool tutti_store_has_extended_api(const tutti_store *store)
{
    const tutti_store_ops *ops;

    if (store == NULL)
        return false;
    while (store->front->inner != NULL)
        store = store->front->inner;
    ops = &store->front->ops;
    return ops->append != NULL && ops->multi_get != NULL && ops->multi_set != NULL;
}

/* ---- queues ---- */

/* Whether there are queues, and key may name one. */
static tutti_status check_queue(const tutti_store *store, const char *key)
{
    const tutti_status st = tti_store_check_key(key);

    return st != TUTTI_OK || store->front->ops.queue_push != NULL
               ? st
               : tti_store_lacks(store, "queues");
}

tutti_status tti_store_queue_push_until(tutti_store *store, const char *key, const void *data,
                                        size_t size, int64_t deadline_ns)
{
    tutti_status st = check_queue(store, key);

    if (st == TUTTI_OK)
        st = tti_store_check_value(key, data, size);
    return st != TUTTI_OK ? st : store->front->ops.queue_push(store, key, data, size, deadline_ns);
}

tutti_status tti_store_queue_pop_until(tutti_store *store, const char *key, bool block,
                                       int64_t deadline_ns, tutti_bytes *value_out)
{
    const tutti_status st = check_queue(store, key);

    return st != TUTTI_OK ? st
                          : store->front->ops.queue_pop(store, key, block, deadline_ns, value_out);
}

tutti_status tti_store_queue_len_until(tutti_store *store, const char *key, int64_t deadline_ns,
                                       int64_t *n_out)
{
    const tutti_status st = check_queue(store, key);

    return st != TUTTI_OK ? st : store->front->ops.queue_len(store, key, deadline_ns, n_out);
}

/* ---- names, barriers, clones ---- */

tutti_status tti_store_list_keys_until(tutti_store *store, const char *prefix, int64_t deadline_ns,
                                       tutti_store_keys *keys_out)
{
    const tutti_status st = prefix[0] != '\0' ? tti_store_check_key(prefix) : TUTTI_OK;

    if (st != TUTTI_OK)
        return st;
    if (store->front->ops.list_keys == NULL)
        return tti_store_lacks(store, "list_keys");
    return store->front->ops.list_keys(store, prefix, deadline_ns, keys_out);
}

/* The time is up: say how many came, if the store still answers. */
static tutti_status barrier_late(tutti_store *store, const char *key, const char *counter,
                                 int world_size, int64_t start_ns)
{
    tti_port     *port = store->front->port;
    const int64_t now = tti_port_now(port);
    const int64_t ms = (now - start_ns) / TTI_MS;
    int64_t       came;

    if (tti_store_add_until(store, counter, 0, tti_store_grace(store), &came) != TUTTI_OK)
        return tti_fail(TUTTI_E_TIMEOUT, "barrier '%s' timed out after %" PRId64 " ms", key, ms);
    return tti_fail(TUTTI_E_TIMEOUT, "barrier '%s': %" PRId64 " of %d came within %" PRId64 " ms",
                    key, came, world_size, ms);
}

tutti_status tti_store_barrier_until(tutti_store *store, const char *key, int world_size,
                                     int64_t deadline_ns)
{
    const int64_t start = tti_port_now(store->front->port);
    char          counter[TUTTI_STORE_KEY_MAX + sizeof COUNTER_SUFFIX];
    char          release[TUTTI_STORE_KEY_MAX + sizeof RELEASE_SUFFIX];
    const char   *released = release;
    int64_t       came = 0;
    tutti_status  st = tti_store_check_key(key);

    if (st == TUTTI_OK && world_size < 1)
        st = tti_fail(TUTTI_E_ARG, "barrier '%s' is for %d callers\n  next: pass how many call it, 1 or more", key, world_size);
    if (st != TUTTI_OK)
        return st;
    snprintf(counter, sizeof counter, "%s%s", key, COUNTER_SUFFIX);
    snprintf(release, sizeof release, "%s%s", key, RELEASE_SUFFIX);
    st = tti_store_add_until(store, counter, 1, deadline_ns, &came);
    if (st == TUTTI_OK && came == world_size)
        st = tti_store_set_until(store, release, "", 0, deadline_ns);
    if (st != TUTTI_OK)
        return st;
    st = tti_store_wait_until(store, &released, 1, deadline_ns);
    return st == TUTTI_E_TIMEOUT ? barrier_late(store, key, counter, world_size, start) : st;
}

tutti_status tti_store_clone_until(tutti_store *store, int64_t deadline_ns, tutti_store **store_out)
{
    if (store->front->ops.clone != NULL)
        return store->front->ops.clone(store, deadline_ns, store_out);
    *store_out = tutti_store_retain(store);
    return TUTTI_OK;
}

/* ---- the same by time-out ---- */

tutti_status tutti_store_append(tutti_store *store, const char *key, const void *data, size_t size)
{
    int64_t      deadline = 0;
    tutti_status st = tti_store_enter(store, true, 0, &deadline);

    return st != TUTTI_OK ? st : tti_store_append_until(store, key, data, size, deadline);
}

tutti_status tutti_store_multi_get(tutti_store *store, const char *const *keys, size_t n,
                                   int64_t timeout_ms, tutti_bytes *values_out)
{
    int64_t      deadline = 0;
    tutti_status st = tti_store_enter(store, n == 0 || values_out != NULL, timeout_ms, &deadline);

    return st != TUTTI_OK ? st : tti_store_multi_get_until(store, keys, n, deadline, values_out);
}

tutti_status tutti_store_multi_set(tutti_store *store, const char *const *keys,
                                   const tutti_bytes *values, size_t n)
{
    int64_t      deadline = 0;
    tutti_status st = tti_store_enter(store, true, 0, &deadline);

    return st != TUTTI_OK ? st : tti_store_multi_set_until(store, keys, values, n, deadline);
}

tutti_status tutti_store_queue_push(tutti_store *store, const char *key, const void *data,
                                    size_t size)
{
    int64_t      deadline = 0;
    tutti_status st = tti_store_enter(store, true, 0, &deadline);

    return st != TUTTI_OK ? st : tti_store_queue_push_until(store, key, data, size, deadline);
}

tutti_status tutti_store_queue_pop(tutti_store *store, const char *key, bool block,
                                   int64_t timeout_ms, tutti_bytes *value_out)
{
    int64_t      deadline = 0;
    tutti_status st = tti_store_enter(store, value_out != NULL, block ? timeout_ms : 0, &deadline);

    return st != TUTTI_OK ? st : tti_store_queue_pop_until(store, key, block, deadline, value_out);
}

tutti_status tutti_store_queue_len(tutti_store *store, const char *key, int64_t *n_out)
{
    int64_t      deadline = 0;
    tutti_status st = tti_store_enter(store, n_out != NULL, 0, &deadline);

    return st != TUTTI_OK ? st : tti_store_queue_len_until(store, key, deadline, n_out);
}

tutti_status tutti_store_list_keys(tutti_store *store, tutti_store_keys *keys_out)
{
    int64_t      deadline = 0;
    tutti_status st = tti_store_enter(store, keys_out != NULL, 0, &deadline);

    return st != TUTTI_OK ? st : tti_store_list_keys_until(store, "", deadline, keys_out);
}

tutti_status tutti_store_barrier(tutti_store *store, const char *key, int world_size,
                                 int64_t timeout_ms)
{
    int64_t      deadline = 0;
    tutti_status st = tti_store_enter(store, true, timeout_ms, &deadline);

    return st != TUTTI_OK ? st : tti_store_barrier_until(store, key, world_size, deadline);
}

tutti_status tutti_store_clone(tutti_store *store, tutti_store **store_out)
{
    int64_t      deadline = 0;
    tutti_status st = tti_store_enter(store, store_out != NULL, 0, &deadline);

    return st != TUTTI_OK ? st : tti_store_clone_until(store, deadline, store_out);
}

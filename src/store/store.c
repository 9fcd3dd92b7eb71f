/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store.c - the front of every store: arguments, limits, time-outs, references, emulation.
 *
 * How     A handle is the implementation's struct; its front, ours, holds a copy of the table in
 *         which entries that an older plug-in does not know are NULL, the reference count and the
 *         default time-out. A view of another store (prefix) borrows that store's time-out and
 *         port. What goes beyond single keys and values stands in store_extended.c.
 * True    An implementation sees only keys and values within the limits. */
#include "store/store_front.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "store/store_value.h"

static const int64_t HEED_NS = 20 * TTI_MS;
static const int64_t NEWS_NS = 100 * TTI_MS; /* many ranks look for them at once, which need not know within 20 ms */

/* The first required entry that the table lacks. NULL: none. */
static const char *missing_entry(const tutti_store_ops *ops)
{
    const bool queues = ops->queue_push != NULL || ops->queue_pop != NULL || ops->queue_len != NULL;

    if (queues)
        return ops->queue_push == NULL  ? "queue_push"
               : ops->queue_pop == NULL ? "queue_pop"
               : ops->queue_len == NULL ? "queue_len"
               : ops->wait_all == NULL  ? "wait_all"
               : ops->check == NULL     ? "check"
                                        : NULL;
    return ops->set == NULL     ? "set"
           : ops->get == NULL   ? "get"
           : ops->add == NULL   ? "add"
           : ops->close == NULL ? "close"
                                : NULL;
}

/* Copy the table of an implementation; entries that its build did not know are NULL. */
static tutti_status take_table(const tutti_store_ops *ops, tutti_store_ops *out)
{
    const char *missing;

    if (ops->api != TUTTI_STORE_API)
        return tti_fail(TUTTI_E_UNSUPPORTED,
                        "store '%s' is built for api %u, this library has api %d", ops->scheme,
                        ops->api, TUTTI_STORE_API);
    if (ops->size < offsetof(tutti_store_ops, wait_all) || ops->scheme == NULL)
        return tti_fail(TUTTI_E_ARG, "the table of a store is too short: %u bytes", ops->size);
    memcpy(out, ops, ops->size < sizeof *out ? ops->size : sizeof *out);
    missing = missing_entry(out);
    if (missing != NULL)
        return tti_fail(TUTTI_E_ARG, "store '%s' lacks the required entry '%s'", ops->scheme,
                        missing);
    return TUTTI_OK;
}

tutti_status tti_store_init(tutti_store *store, tti_port *port, int64_t timeout_ms,
                            tutti_store *inner)
{
    struct tutti_store_front *front = calloc(1, sizeof *front);
    tutti_status              st;

    if (front == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a store");
    st = take_table(store->ops, &front->ops);
    if (st != TUTTI_OK) {
        free(front);
        return st;
    }
    tti_fork_watch();
    front->age = tti_fork_age();
    front->port = port;
    front->inner = inner;
    atomic_init(&front->timeout_ms, timeout_ms != 0 ? timeout_ms : TUTTI_STORE_TIMEOUT_MS);
    atomic_init(&front->references, 1);
    store->front = front;
    return TUTTI_OK;
}

void tti_store_uninit(tutti_store *store)
{
    free(store->front);
    store->front = NULL;
}

tutti_status tutti_store_adopt(tutti_store *store)
{
    if (store == NULL || store->ops == NULL)
        return tti_fail(TUTTI_E_ARG, "a store without a table");
    return tti_store_init(store, tti_port_system(), 0, NULL);
}

tutti_status tutti_store_fail(tutti_status status, const char *words)
{
    return tti_fail(status == TUTTI_OK ? TUTTI_E_STORE : status, "%s", words != NULL ? words : "a store failed without a word");
}

tutti_status tti_store_check_own(const tutti_store *store)
{
    const struct tutti_store_front *front = store->front;

    return tti_is_inherited(front->age) ? tti_fail_inherited("a call on a store", "store", front->ops.scheme) : TUTTI_OK;
}

/* Of the thread, because a wait is: whoever ends it has no handle of it. */
static _Thread_local const _Atomic bool *heeded;

void tti_store_heed(const _Atomic bool *stop)
{
    heeded = stop;
}

static _Thread_local struct {
    const _Atomic uint32_t *count;
    uint32_t                seen;
} news;

void tti_store_heed_news(const _Atomic uint32_t *count)
{
    news.count = count;
    news.seen = 0;
}

uint32_t tti_store_catch_up(void)
{
    news.seen = news.count != NULL ? atomic_load_explicit(news.count, memory_order_acquire) : 0;
    return news.seen;
}

bool tti_store_stops(void)
{
    return (heeded != NULL && atomic_load_explicit(heeded, memory_order_acquire)) ||
           (news.count != NULL && atomic_load_explicit(news.count, memory_order_acquire) != news.seen);
}

int64_t tti_store_slice(tti_port *port, int64_t deadline_ns)
{
    const int64_t look_ns = heeded != NULL ? HEED_NS : NEWS_NS;
    const int64_t slice_ns = heeded != NULL || news.count != NULL ? tti_port_now(port) + look_ns : deadline_ns;

    return slice_ns < deadline_ns ? slice_ns : deadline_ns;
}

int64_t tutti_store_slice(int64_t deadline_ns)
{
    return tti_store_slice(tti_port_system(), deadline_ns);
}

bool tutti_store_stops(void)
{
    return tti_store_stops();
}

tti_port *tti_store_port(const tutti_store *store)
{
    return store->front->port;
}

tutti_store *tutti_store_retain(tutti_store *store)
{
    if (store != NULL)
        atomic_fetch_add(&store->front->references, 1);
    return store;
}

void tutti_store_close(tutti_store *store)
{
    struct tutti_store_front *front;

    if (store == NULL || tti_is_inherited(store->front->age) || atomic_fetch_sub(&store->front->references, 1) != 1)
        return; /* what a parent opened a child leaves alone */
    front = store->front;
    front->ops.close(store);
    free(front);
}

void tutti_bytes_free(tutti_bytes *bytes)
{
    if (bytes == NULL)
        return;
    free(bytes->data);
    *bytes = (tutti_bytes){ .data = NULL };
}

tutti_status tti_store_check_key(const char *key)
{
    size_t size;

    if (key == NULL || key[0] == '\0')
        return tti_fail(TUTTI_E_ARG, "a store key is %s\n  next: give it 1 .. %d bytes", key == NULL ? "NULL" : "empty",
                        TUTTI_STORE_KEY_MAX);
    size = strnlen(key, TUTTI_STORE_KEY_MAX + 1);
    if (size > TUTTI_STORE_KEY_MAX)
        return tti_fail(TUTTI_E_ARG, "a store key is longer than %d bytes: '%.32s...'\n  next: use a shorter one, or its digest",
                        TUTTI_STORE_KEY_MAX, key);
    return TUTTI_OK;
}

tutti_status tti_store_check_list(const char *const *keys, size_t n)
{
    tutti_status st = TUTTI_OK;
    size_t       i;

    if (n > 0 && keys == NULL)
        return tti_fail(TUTTI_E_ARG, "a list of %zu store keys is NULL\n  next: pass the keys, or 0 for none", n);
    for (i = 0; i < n && st == TUTTI_OK; i++)
        st = tti_store_check_key(keys[i]);
    return st;
}

tutti_status tti_store_check_value(const char *key, const void *data, size_t size)
{
    if (size > TUTTI_STORE_VALUE_MAX)
        return tti_fail(TUTTI_E_ARG,
                        "a value of %zu bytes for key '%s' is too large, %d is the most\n"
                        "  next: divide it among several keys, or send it as a message",
                        size, key, TUTTI_STORE_VALUE_MAX);
    if (size > 0 && data == NULL)
        return tti_fail(TUTTI_E_ARG, "a value of %zu bytes for key '%s' is NULL\n  next: pass its data, or 0 bytes", size, key);
    return TUTTI_OK;
}

tutti_status tti_store_lacks(const tutti_store *store, const char *what)
{
    return tti_fail(TUTTI_E_UNSUPPORTED, "store '%s' has no %s", store->front->ops.scheme, what);
}

tutti_status tti_store_set_until(tutti_store *store, const char *key, const void *data, size_t size,
                                 int64_t deadline_ns)
{
    tutti_status st = tti_store_check_key(key);

    if (st == TUTTI_OK)
        st = tti_store_check_value(key, data, size);
    return st != TUTTI_OK ? st : store->front->ops.set(store, key, data, size, deadline_ns);
}

tutti_status tti_store_get_until(tutti_store *store, const char *key, int64_t deadline_ns,
                                 tutti_bytes *value_out)
{
    tutti_status st = tti_store_check_key(key);

    return st != TUTTI_OK ? st : store->front->ops.get(store, key, deadline_ns, value_out);
}

tutti_status tti_store_wait_until(tutti_store *store, const char *const *keys, size_t n,
                                  int64_t deadline_ns)
{
    const tutti_store_ops *ops = &store->front->ops;
    tutti_status           st = tti_store_check_list(keys, n);
    size_t                 i;

    if (st != TUTTI_OK || n == 0)
        return st;
    if (ops->wait_all != NULL)
        return ops->wait_all(store, keys, n, deadline_ns);
    for (i = 0; i < n && st == TUTTI_OK; i++) {
        tutti_bytes value = { .data = NULL };

        st = ops->get(store, keys[i], deadline_ns, &value);
        tutti_bytes_free(&value);
    }
    return st;
}

/* A get that looks once, for each key. */
static tutti_status check_by_get(tutti_store *store, const char *const *keys, size_t n,
                                 bool *all_out)
{
    const int64_t now = tti_port_now(store->front->port);
    tutti_status  st = TUTTI_OK;
    size_t        i;

    for (i = 0; i < n && st == TUTTI_OK; i++) {
        tutti_bytes value = { .data = NULL };

        st = store->front->ops.get(store, keys[i], now, &value);
        tutti_bytes_free(&value);
    }
    if (st != TUTTI_OK && st != TUTTI_E_TIMEOUT)
        return st;
    *all_out = st == TUTTI_OK;
    return TUTTI_OK;
}

tutti_status tti_store_check_until(tutti_store *store, const char *const *keys, size_t n,
                                   int64_t deadline_ns, bool *all_out)
{
    tutti_status st = tti_store_check_list(keys, n);

    if (st != TUTTI_OK)
        return st;
    if (n == 0) {
        *all_out = true;
        return TUTTI_OK;
    }
    if (store->front->ops.check == NULL)
        return check_by_get(store, keys, n, all_out);
    return store->front->ops.check(store, keys, n, deadline_ns, all_out);
}

tutti_status tti_store_compare_set_until(tutti_store *store, const char *key, const void *expected,
                                         size_t expected_size, const void *desired,
                                         size_t desired_size, int64_t deadline_ns,
                                         tutti_bytes *value_out)
{
    tutti_status st = tti_store_check_key(key);

    if (st == TUTTI_OK)
        st = tti_store_check_value(key, expected, expected_size);
    if (st == TUTTI_OK)
        st = tti_store_check_value(key, desired, desired_size);
    if (st != TUTTI_OK)
        return st;
    if (store->front->ops.compare_set == NULL)
        return tti_store_lacks(store, "compare_set");
    return store->front->ops.compare_set(store, key, expected, expected_size, desired, desired_size,
                                         deadline_ns, value_out);
}

tutti_status tti_store_add_until(tutti_store *store, const char *key, int64_t delta,
                                 int64_t deadline_ns, int64_t *sum_out)
{
    tutti_status st = tti_store_check_key(key);
    int64_t      sum = 0;

    if (st == TUTTI_OK)
        st = store->front->ops.add(store, key, delta, deadline_ns, &sum);
    if (st == TUTTI_OK && sum_out != NULL)
        *sum_out = sum;
    return st;
}

tutti_status tti_store_delete_key_until(tutti_store *store, const char *key, int64_t deadline_ns,
                                        bool *deleted_out)
{
    tutti_status st = tti_store_check_key(key);
    bool         deleted = false;

    if (st != TUTTI_OK)
        return st;
    if (store->front->ops.delete_key == NULL)
        return tti_store_lacks(store, "delete_key");
    st = store->front->ops.delete_key(store, key, deadline_ns, &deleted);
    if (st == TUTTI_OK && deleted_out != NULL)
        *deleted_out = deleted;
    return st;
}

tutti_status tti_store_num_keys_until(tutti_store *store, int64_t deadline_ns, int64_t *n_out)
{
    if (store->front->ops.num_keys == NULL)
        return tti_store_lacks(store, "num_keys");
    return store->front->ops.num_keys(store, deadline_ns, n_out);
}

/* The store whose time-out counts: below all views. */
static struct tutti_store_front *keeper(const tutti_store *store)
{
    while (store->front->inner != NULL)
        store = store->front->inner;
    return store->front;
}

tutti_status tti_store_enter(const tutti_store *store, bool output_given, int64_t timeout_ms,
                             int64_t *deadline_ns_out)
{
    if (store == NULL)
        return tti_fail(TUTTI_E_ARG, "store is NULL\n"
                                     "  next: pass what a call such as tutti_tcp_store_open() gave, after it returned TUTTI_OK");
    if (tti_is_inherited(store->front->age))
        return tti_store_check_own(store);
    if (!output_given)
        return tti_fail(TUTTI_E_ARG, "the output of a call on store '%s' is NULL\n  next: pass where to put what it gives",
                        store->front->ops.scheme);
    if (timeout_ms < TUTTI_INFINITE)
        return tti_fail(TUTTI_E_ARG, "a time-out of %lld ms\n  next: 0 for the store's, -1 for none", (long long)timeout_ms);
    *deadline_ns_out =
        tti_deadline(store->front->port, timeout_ms, atomic_load(&keeper(store)->timeout_ms));
    return TUTTI_OK;
}

tutti_status tutti_store_set(tutti_store *store, const char *key, const void *data, size_t size)
{
    int64_t      deadline = 0;
    tutti_status st = tti_store_enter(store, true, 0, &deadline);

    return st != TUTTI_OK ? st : tti_store_set_until(store, key, data, size, deadline);
}

tutti_status tutti_store_get(tutti_store *store, const char *key, int64_t timeout_ms,
                             tutti_bytes *value_out)
{
    int64_t      deadline = 0;
    tutti_status st = tti_store_enter(store, value_out != NULL, timeout_ms, &deadline);

    return st != TUTTI_OK ? st : tti_store_get_until(store, key, deadline, value_out);
}

tutti_status tti_store_look(tutti_store *store, const char *key, int64_t timeout_ms, tutti_bytes *value_out)
{
    char         why[512];
    int64_t      deadline = 0;
    tutti_status st = tti_store_enter(store, value_out != NULL, timeout_ms, &deadline);

    if (st != TUTTI_OK)
        return st;
    st = tti_store_get_until(store, key, deadline, value_out);
    if (st != TUTTI_E_NETWORK || tti_port_now(tti_store_port(store)) < deadline)
        return st;
    snprintf(why, sizeof why, "%s", tutti_last_error());
    return tti_fail(TUTTI_E_TIMEOUT, "%s", why);
}

tutti_status tutti_store_add(tutti_store *store, const char *key, int64_t delta, int64_t *sum_out)
{
    int64_t      deadline = 0;
    tutti_status st = tti_store_enter(store, true, 0, &deadline);

    return st != TUTTI_OK ? st : tti_store_add_until(store, key, delta, deadline, sum_out);
}

tutti_status tutti_store_wait(tutti_store *store, const char *const *keys, size_t n,
                              int64_t timeout_ms)
{
    int64_t      deadline = 0;
    tutti_status st = tti_store_enter(store, true, timeout_ms, &deadline);

    return st != TUTTI_OK ? st : tti_store_wait_until(store, keys, n, deadline);
}

tutti_status tutti_store_check(tutti_store *store, const char *const *keys, size_t n, bool *all_out)
{
    int64_t      deadline = 0;
    tutti_status st = tti_store_enter(store, all_out != NULL, 0, &deadline);

    return st != TUTTI_OK ? st : tti_store_check_until(store, keys, n, deadline, all_out);
}

tutti_status tutti_store_compare_set(tutti_store *store, const char *key, const void *expected,
                                     size_t expected_size, const void *desired, size_t desired_size,
                                     tutti_bytes *value_out)
{
    int64_t      deadline = 0;
    tutti_status st = tti_store_enter(store, value_out != NULL, 0, &deadline);

    return st != TUTTI_OK ? st
                          : tti_store_compare_set_until(store, key, expected, expected_size,
                                                        desired, desired_size, deadline, value_out);
}

tutti_status tutti_store_delete_key(tutti_store *store, const char *key, bool *deleted_out)
{
    int64_t      deadline = 0;
    tutti_status st = tti_store_enter(store, true, 0, &deadline);

    return st != TUTTI_OK ? st : tti_store_delete_key_until(store, key, deadline, deleted_out);
}

tutti_status tutti_store_num_keys(tutti_store *store, int64_t *n_out)
{
    int64_t      deadline = 0;
    tutti_status st = tti_store_enter(store, n_out != NULL, 0, &deadline);

    return st != TUTTI_OK ? st : tti_store_num_keys_until(store, deadline, n_out);
}

tutti_status tutti_store_set_timeout(tutti_store *store, int64_t timeout_ms)
{
    int64_t      unused;
    tutti_status st = tti_store_enter(store, true, timeout_ms, &unused);

    if (st != TUTTI_OK)
        return st;
    atomic_store(&keeper(store)->timeout_ms, timeout_ms != 0 ? timeout_ms : TUTTI_STORE_TIMEOUT_MS);
    return TUTTI_OK;
}

int64_t tutti_store_timeout(const tutti_store *store)
{
    return store != NULL ? atomic_load(&keeper(store)->timeout_ms) : 0;
}

tutti_status tutti_store_timeout_guard_begin(tutti_store *store, int64_t timeout_ms,
                                             tutti_store_timeout_guard *guard_out)
{
    int64_t      unused;
    tutti_status st;

    if (guard_out == NULL)
        return tti_fail(TUTTI_E_ARG, "guard_out is NULL");
    *guard_out = (tutti_store_timeout_guard){ .store = NULL };
    st = tti_store_enter(store, true, timeout_ms, &unused);
    if (st != TUTTI_OK)
        return st;
    guard_out->before_ms =
        atomic_exchange(&keeper(store)->timeout_ms,
                        timeout_ms != 0 ? timeout_ms : TUTTI_STORE_TIMEOUT_MS);
    guard_out->store = tutti_store_retain(store);
    return TUTTI_OK;
}

void tutti_store_timeout_guard_end(tutti_store_timeout_guard *guard)
{
    if (guard == NULL || guard->store == NULL)
        return;
    atomic_store(&keeper(guard->store)->timeout_ms, guard->before_ms);
    tutti_store_close(guard->store);
    guard->store = NULL;
}

tutti_store *tutti_store_underlying(tutti_store *store)
{
    return store != NULL ? store->front->inner : NULL;
}

tutti_store *tutti_store_underlying_non_prefix(tutti_store *store)
{
    while (store != NULL && store->front->inner != NULL)
        store = store->front->inner;
    return store;
}

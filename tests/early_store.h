/* SPDX-License-Identifier: BSD-3-Clause
 *
 * early_store.h - for programs of ranks: a store of the program's own, around another one, each wait of which ends EARLY_MS before its
 * time. That is allowed, and says nothing against anybody: whoever looks again and again has to look again. */
#ifndef TUTTI_TESTS_EARLY_STORE_H
#define TUTTI_TESTS_EARLY_STORE_H

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <tutti/plugin/store.h>

enum { EARLY_MS = 100 };

typedef struct early_store {
    tutti_store  base;
    tutti_store *inner;
} early_store;

/* When so many waits of this process have ended early, a key is set, which others wait for. Threads of the library wait, too. */
static struct {
    tutti_store *at;
    const char  *key;
    _Atomic int  left; /* 0: they are not counted */
} early_told;

static inline tutti_store *early_inner(tutti_store *store)
{
    return ((early_store *)store)->inner;
}

static inline int64_t early_left_ms(int64_t deadline_ns)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (deadline_ns - (int64_t)now.tv_sec * 1000000000 - now.tv_nsec) / 1000000;
}

/* By who makes the last of them. */
static inline void early_count(void)
{
    int left = atomic_load(&early_told.left);

    while (left > 0 && !atomic_compare_exchange_weak(&early_told.left, &left, left - 1))
        ;
    if (left == 1)
        (void)tutti_store_set(early_told.at, early_told.key, "1", 1);
}

static inline tutti_status early_put(tutti_store *store, const char *key, const void *val, size_t len, int64_t deadline_ns)
{
    (void)deadline_ns;
    return tutti_store_set(early_inner(store), key, val, len);
}

static inline tutti_status early_get(tutti_store *store, const char *key, int64_t deadline_ns, tutti_bytes *val_out)
{
    const int64_t      ms = early_left_ms(deadline_ns) - EARLY_MS;
    const tutti_status st = tutti_store_get(early_inner(store), key, ms > 0 ? ms : 1, val_out); /* 0 is a time of its own */

    if (st == TUTTI_E_TIMEOUT && ms > 0)
        early_count();
    return st;
}

static inline tutti_status early_add(tutti_store *store, const char *key, int64_t delta, int64_t deadline_ns, int64_t *sum_out)
{
    (void)deadline_ns;
    return tutti_store_add(early_inner(store), key, delta, sum_out);
}

static inline tutti_status early_compare_set(tutti_store *store, const char *key, const void *expected, size_t expected_len,
                                             const void *desired, size_t desired_len, int64_t deadline_ns, tutti_bytes *val_out)
{
    (void)deadline_ns;
    return tutti_store_compare_set(early_inner(store), key, expected, expected_len, desired, desired_len, val_out);
}

static inline void early_close(tutti_store *store)
{
    tutti_store_close(early_inner(store));
    free(store);
}

/* inner is this store's from then on. NULL: it cannot be. */
static inline tutti_store *early_store_around(tutti_store *inner)
{
    static const tutti_store_ops ops = {
        .api = TUTTI_STORE_API, .size = sizeof(tutti_store_ops), .scheme = "early", .set = early_put, .get = early_get,
        .add = early_add, .compare_set = early_compare_set, .close = early_close,
    };
    early_store *store = calloc(1, sizeof *store);

    if (store == NULL)
        return NULL;
    store->base.ops = &ops;
    store->inner = inner;
    return tutti_store_adopt(&store->base) == TUTTI_OK ? &store->base : NULL;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/plugin/store.h - for authors of stores: the table that one fills.
 *
 * An implementation is a const table and a struct whose first member is a tutti_store. Its
 * constructor sets base.ops and calls tutti_store_adopt(); from then on the handle is used through
 * the functions of tutti/store.h, which check arguments and limits, count references, turn
 * time-outs into deadlines, and emulate the optional entries that are NULL. A store is done when it
 * passes the conformance suite (tests/conformance/store_conformance.c). */
#ifndef TUTTI_PLUGIN_STORE_H
#define TUTTI_PLUGIN_STORE_H

#include <tutti/store.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TUTTI_STORE_API = 1 };

/** What a key-value store provides. Tables are const and shared by all instances. Every entry but
 * close may run on several threads at once, must not call into groups, and may block until its
 * deadline: CLOCK_MONOTONIC in ns, INT64_MAX for never, then it returns TUTTI_E_TIMEOUT. An entry
 * that does not wait for other processes may disregard the deadline. Keys have been
 * checked: 1..4096 bytes without NUL; values too: up to 16 MiB. Outputs are written only on
 * TUTTI_OK; byte strings come from malloc(size + 1) with a NUL behind. */
typedef struct tutti_store_ops {
    uint32_t    api;    /* TUTTI_STORE_API of the build that made this table */
    uint32_t    size;   /* sizeof(tutti_store_ops) of that build */
    const char *scheme; /* "hash", "file", "tcp": the word before "://" */

    /* Required. Keep a copy of val[len], replacing an older value; wake waiters. */
    tutti_status (*set)(tutti_store *store, const char *key, const void *val, size_t len,
                        int64_t deadline_ns);
    /* Required. Wait for key, then fill val_out. A deadline in the past looks once. */
    tutti_status (*get)(tutti_store *store, const char *key, int64_t deadline_ns,
                        tutti_bytes *val_out);
    /* Required; atomic; wakes waiters. It cannot be made of compare_set, whose answer does not tell
     * success from somebody else's equal value. */
    tutti_status (*add)(tutti_store *store, const char *key, int64_t delta, int64_t deadline_ns,
                        int64_t *sum_out);
    /* Required. Free everything, also on a half-open store. Never fails or waits. The last call. */
    void (*close)(tutti_store *store);

    /* Optional. NULL: waiting for many keys becomes one get after another. */
    tutti_status (*wait_all)(tutti_store *store, const char *const *keys, size_t n_keys,
                             int64_t deadline_ns);
    /* Optional. NULL: a get with a deadline in the past for each key. */
    tutti_status (*check)(tutti_store *store, const char *const *keys, size_t n_keys,
                          int64_t deadline_ns, bool *all_out);
    /* Optional, by the table of tutti_store_compare_set(). NULL: TUTTI_E_UNSUPPORTED. */
    tutti_status (*compare_set)(tutti_store *store, const char *key, const void *expected,
                                size_t expected_len, const void *desired, size_t desired_len,
                                int64_t deadline_ns, tutti_bytes *val_out);
    /* Optional. NULL: TUTTI_E_UNSUPPORTED. */
    tutti_status (*delete_key)(tutti_store *store, const char *key, int64_t deadline_ns,
                               bool *deleted_out);
    /* Optional. NULL: TUTTI_E_UNSUPPORTED. */
    tutti_status (*num_keys)(tutti_store *store, int64_t deadline_ns, int64_t *n_out);

    /* Optional; atomic; wakes waiters. TUTTI_E_STORE when the value would become larger than 16 MiB.
     * NULL: TUTTI_E_UNSUPPORTED, since it cannot be made of compare_set either. */
    tutti_status (*append)(tutti_store *store, const char *key, const void *val, size_t len,
                           int64_t deadline_ns);
    /* Optional. Wait for all keys, then fill n_keys values, which come zeroed; after a failure the
     * front frees what they hold. NULL: one get after another. */
    tutti_status (*multi_get)(tutti_store *store, const char *const *keys, size_t n_keys,
                              int64_t deadline_ns, tutti_bytes *vals_out);
    /* Optional. NULL: one set after another. */
    tutti_status (*multi_set)(tutti_store *store, const char *const *keys, const tutti_bytes *vals,
                              size_t n_keys, int64_t deadline_ns);
    /* Optional: queues, all three or none, and then wait_all and check too, which take a queue that
     * is not empty for a key that exists. A pop with a deadline in the past looks once; nothing
     * there is TUTTI_E_EMPTY unless block, TUTTI_E_TIMEOUT if block. NULL: TUTTI_E_UNSUPPORTED. */
    tutti_status (*queue_push)(tutti_store *store, const char *key, const void *val, size_t len,
                               int64_t deadline_ns);
    tutti_status (*queue_pop)(tutti_store *store, const char *key, bool block, int64_t deadline_ns,
                              tutti_bytes *val_out);
    tutti_status (*queue_len)(tutti_store *store, const char *key, int64_t deadline_ns,
                              int64_t *n_out);
    /* Optional. The names of the user keys that begin with prefix ("": all), whole. names comes
     * from one malloc. NULL: TUTTI_E_UNSUPPORTED. */
    tutti_status (*list_keys)(tutti_store *store, const char *prefix, int64_t deadline_ns,
                              tutti_store_keys *keys_out);
    /* Optional. A new handle with one reference, already adopted. NULL: one more reference. */
    tutti_status (*clone)(tutti_store *store, int64_t deadline_ns, tutti_store **store_out);
} tutti_store_ops;

/** First member of every implementation. front belongs to the library. */
struct tutti_store {
    const tutti_store_ops    *ops;
    struct tutti_store_front *front;
};

/** Make a handle of an implementation whose base.ops is set: one reference, the default time-out.
 * On failure the caller still owns the memory; on success tutti_store_close() ends in ops->close.
 *
 * @errors  TUTTI_E_UNSUPPORTED  the table's api is not this library's
 *          TUTTI_E_ARG          a required entry is missing; the text names it
 *          TUTTI_E_NOMEM
 * @threads any
 * @source  ours */
TUTTI_API tutti_status tutti_store_adopt(tutti_store *store);

/** Word the failure of an entry: whoever calls the store reads words in tutti_last_error().
 *
 * @param status  what the entry will return
 * @param words   what failed, on which key, and why; lower case, no full stop; copied as it is. NULL counts as none
 *
 * @errors  returns status, so that an entry can end by it; TUTTI_OK is TUTTI_E_STORE: a failure is none
 * @threads any
 * @source  ours */
TUTTI_API tutti_status tutti_store_fail(tutti_status status, const char *words);

/** Until when an entry that waits may sleep before it looks at tutti_store_stops() again: the deadline, or sooner where the
 * library may want the thread back.
 * @units   CLOCK_MONOTONIC in ns; INT64_MAX is never
 * @threads any; it answers for the calling one
 * @source  ours */
TUTTI_API int64_t tutti_store_slice(int64_t deadline_ns);

/** Whether the wait that the calling thread is in is to end now, as if its time were up: a group is being left, or a rank that
 * it waits for is gone; in a backend's create, a member has refused the group. An entry that does not look holds the thread up.
 * @threads any; it answers for the calling one
 * @source  ours */
TUTTI_API bool tutti_store_stops(void);

#ifdef __cplusplus
}
#endif
#endif

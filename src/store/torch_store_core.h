/* SPDX-License-Identifier: BSD-3-Clause
 *
 * torch_store_core.h - what the files of the torch-tcp store share; torch_store.c tells the design. */
#ifndef TTI_STORE_TORCH_STORE_CORE_H
#define TTI_STORE_TORCH_STORE_CORE_H

#include <stdatomic.h>
#include "store/store.h"
#include "store/torch_call.h"

enum {
    TTI_TORCH_NONCE_BYTES = 32,
    TTI_TORCH_LIST_KEYS_MAX = 4096 /* of one CHECK, WAIT or MULTI_SET */
};

/* Whether the server knows a request that older ones do not. */
enum { TTI_TORCH_UNTRIED, TTI_TORCH_KNOWN, TTI_TORCH_UNKNOWN };

typedef struct tti_torch_store {
    tutti_store base; /* first: the two pointers convert both ways */
    tti_tcp_pool pool;
    uint8_t nonce[TTI_TORCH_NONCE_BYTES]; /* nobody's value */
    _Atomic int queues, names;            /* TTI_TORCH_UNTRIED, ...; never leaves the last two */
} tti_torch_store;

static inline tti_tcp_pool *tti_torch_pool(tutti_store *store)
{
    return &((tti_torch_store *)store)->pool;
}

/** When an answer that nobody waits for is overdue. */
static inline int64_t tti_torch_overdue(const tti_tcp_pool *pool)
{
    return tti_port_now(pool->port) + TTI_TORCH_ANSWER_NS;
}

/** How many of n_keys go into one request. */
static inline size_t tti_torch_portion(size_t n_keys)
{
    return n_keys < TTI_TORCH_LIST_KEYS_MAX ? n_keys : TTI_TORCH_LIST_KEYS_MAX;
}

/* ---- torch_store.c */

/** A request whose reply is a number, or nothing: out may be NULL. */
tutti_status tti_torch_run_number(tti_tcp_pool *pool, const tti_torch_request *request,
                                  int64_t deadline_ns, int64_t *out);

/** SET, APPEND and QUEUE_PUSH. */
tutti_status tti_torch_give(tti_tcp_pool *pool, tti_torch_op op, const char *key, const void *val,
                            size_t len, int64_t deadline_ns);

/* ---- torch_wait.c */

/** The request that tells whether key is there, and whether its reply says that it is not. */
tti_torch_request tti_torch_look_request(const tti_torch_store *ts, const char *const *key);
bool tti_torch_is_missing(const tti_torch_store *ts, const tutti_bytes *value);

/** The value of key, if it is there now. */
tutti_status tti_torch_look(tti_torch_store *ts, const char *key, bool *there_out,
                            tutti_bytes *val_out);

/** A loop of looking and waiting: how often something else than what was wanted has come. */
typedef struct tti_torch_patience {
    int64_t start_ns, deadline_ns;
    int rounds;
} tti_torch_patience;

/** Looking found nothing: wait until it is worth to look again. False in *again_out: the time is up. */
tutti_status tti_torch_wait_more(tti_torch_store *ts, const char *key, tti_torch_patience *p,
                                 bool *again_out);

/* What the table of the store names. */
tutti_status tti_torch_get(tutti_store *store, const char *key, int64_t deadline_ns,
                           tutti_bytes *val_out);
tutti_status tti_torch_check(tutti_store *store, const char *const *keys, size_t n_keys,
                             int64_t deadline_ns, bool *all_out);
tutti_status tti_torch_wait_all(tutti_store *store, const char *const *keys, size_t n_keys,
                                int64_t deadline_ns);

/* ---- torch_newer.c, as well */
tutti_status tti_torch_queue_push(tutti_store *store, const char *key, const void *val, size_t len,
                                  int64_t deadline_ns);
tutti_status tti_torch_queue_len(tutti_store *store, const char *key, int64_t deadline_ns,
                                 int64_t *n_out);
tutti_status tti_torch_queue_pop(tutti_store *store, const char *key, bool block,
                                 int64_t deadline_ns, tutti_bytes *val_out);
tutti_status tti_torch_list_keys(tutti_store *store, const char *prefix, int64_t deadline_ns,
                                 tutti_store_keys *keys_out);

#endif

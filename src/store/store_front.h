/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/store_front.h - the insides of the front, shared by store.c and store_extended.c. */
#ifndef TTI_STORE_STORE_FRONT_H
#define TTI_STORE_STORE_FRONT_H

#include <stdatomic.h>
#include "base/fork.h"
#include "store/store.h"

struct tutti_store_front {
    tutti_store_ops  ops; /* complete: what the table lacks is NULL */
    tti_port        *port;
    tutti_store     *inner; /* of a view; NULL: none */
    _Atomic int64_t  timeout_ms;
    _Atomic uint32_t references;
    uint32_t         age; /* of the process that made it (base/fork.h) */
};

/** Check the handle, an output and the time-out; turn that into a deadline. */
tutti_status tti_store_enter(const tutti_store *store, bool output_given, int64_t timeout_ms,
                             int64_t *deadline_ns_out);

/** The limits of tutti/store.h: TUTTI_E_ARG. */
tutti_status tti_store_check_key(const char *key);
tutti_status tti_store_check_list(const char *const *keys, size_t n);
tutti_status tti_store_check_value(const char *key, const void *data, size_t size);

/** "store 'file' has no queues": TUTTI_E_UNSUPPORTED. */
tutti_status tti_store_lacks(const tutti_store *store, const char *what);

#endif

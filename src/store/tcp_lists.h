/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/tcp_lists.h - what a tcp store's client asks about several keys. */
#ifndef TTI_STORE_TCP_LISTS_H
#define TTI_STORE_TCP_LISTS_H

#include "store/tcp_call.h"

/** The entries of the table, on a pool. n_keys is at least 1. */
tutti_status tti_tcp_wait_all(tti_tcp_pool *pool, const char *const *keys, size_t n_keys,
                              int64_t deadline_ns);
tutti_status tti_tcp_check(tti_tcp_pool *pool, const char *const *keys, size_t n_keys,
                           int64_t deadline_ns, bool *all_out);
tutti_status tti_tcp_multi_get(tti_tcp_pool *pool, const char *const *keys, size_t n_keys,
                               int64_t deadline_ns, tutti_bytes *vals_out);
tutti_status tti_tcp_multi_set(tti_tcp_pool *pool, const char *const *keys, const tutti_bytes *vals,
                               size_t n_keys, int64_t deadline_ns);
tutti_status tti_tcp_list_keys(tti_tcp_pool *pool, const char *prefix, int64_t deadline_ns,
                               tutti_store_keys *keys_out);

#endif

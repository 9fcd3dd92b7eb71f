/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/store.h - what other rooms, and the stores here, use beyond the public interface: stores
 * over any port, and every operation with a deadline instead of a time-out. */
#ifndef TTI_STORE_STORE_H
#define TTI_STORE_STORE_H

#include "base/port.h"
#include <tutti/plugin/store.h>

/** A store whose clock and sockets are those of port. */
tutti_status tti_hash_store_open_on(tti_port *port, tutti_store **store_out);
tutti_status tti_file_store_open_on(tti_port *port, const char *path, int world_size,
                                    tutti_store **store_out);
/** is_master needs the system port: the server runs on libuv. */
tutti_status tti_tcp_store_open_on(tti_port *port, const tutti_tcp_store_options *options,
                                   tutti_store **store_out);

/** The address of this host that the way to a tcp store's server begins at, as its connection has it.
 * false: another kind of store, or just then no connection is idle. */
bool tti_tcp_store_way(const tutti_store *store, tti_addr *local_out);

/** Connect to a tcp store that is known to be served: who finds nobody there does not try again.
 * @errors as tutti_tcp_store_open() */
tutti_status tti_tcp_store_reach(tti_port *port, const char *host, uint16_t tcp_port, int64_t timeout_ms,
                                 int64_t deadline_ns, tutti_store **store_out);
/** A tcp store that serves: stop the server, so that every call on it ends, from any thread, on this process and others.
 * The store stays, to be closed. Once; does nothing for others. */
void tti_tcp_store_stop_serving(tutti_store *store);
/** A tcp store whose server is dead, or does not answer: have it, and every view of it, speak to the one at host from now on, which has
 * the same secret. Calls of other threads that are under way go on with the old one. False: another kind of store. */
bool tti_tcp_store_redirect(tutti_store *store, const char *host, uint16_t tcp_port);
/** What a tcp store does when this process ends without a further word: of so many bytes at most. */
typedef struct tti_store_will tti_store_will;
enum { TTI_STORE_WILL_BYTES = 512 };

/** Have the store append value to key as soon as its connection to this process ends, whatever ends it: it has one of its own
 * for that. A child of fork() keeps it open. The value is not empty.
 * @errors TUTTI_E_UNSUPPORTED  another kind of store
 *         as tutti_store_append() */
tutti_status tti_store_will_leave(tutti_store *store, const char *key, const void *value, size_t size, int64_t deadline_ns,
                                  tti_store_will **will_out);
/** It is not wanted any more, as far as the store still answers until then. NULL is fine. */
void tti_store_will_take_back(tti_store_will *will, int64_t deadline_ns);

/** Something that this thread makes with others: it asks a store until it has what they leave there. */
typedef struct tti_store_need tti_store_need;

/** Whoever serves the store is to stay until the end of this. key is this process's own for it. Is said with the next request that
 * this thread makes, and costs no round trip. One at a time on a thread. NULL: nobody is told, as it is another kind of store,
 * or is served by this handle, or there is no memory. */
tti_store_need *tti_store_need_begin(tutti_store *store, const char *key);
/** This thread has all that it needs. Waits for no answer; says nothing of a store that is gone. NULL is fine. */
void tti_store_need_end(tti_store_need *need);
/** If this handle of a tcp store serves it, or server does (NULL: nobody else), which another handle leads to: wait until no process
 * needs it under a key of store's that begins with below, or until_ns. False: one still does. */
bool tti_store_await_unneeded(tutti_store *store, tutti_store *server, const char *below, int64_t until_ns);

/** The connections of a tcp store, and the server of one that serves; NULL: another kind. */
struct tti_tcp_pool *tti_tcp_store_pool(tutti_store *store);
tutti_store_server  *tti_tcp_store_server(tutti_store *store);
/** A key of a view as the store below it has it; false: store is no view, or the key would be too long. */
bool tti_prefix_store_key(tutti_store *store, const char *key, char *out, size_t bytes, tutti_store **inner_out);

/** Have waits of the calling thread, in any store, end early, as time-outs, soon after *stop has become true; NULL: they
 * last as they were told to. */
void tti_store_heed(const _Atomic bool *stop);
/** The same when *news is another number than the latest tti_store_catch_up() has returned, at first 0. Both may be heeded
 * at once. NULL: not any more. */
void     tti_store_heed_news(const _Atomic uint32_t *news);
uint32_t tti_store_catch_up(void);
/** For stores: how long to sleep before looking at tti_store_stops() again, of a wait until deadline_ns. */
int64_t tti_store_slice(tti_port *port, int64_t deadline_ns);
bool    tti_store_stops(void);

/** When the time of a call is up: until when a store that lives has answered what still has to be asked, as who is
 * missing. 40 ms from now, and more where it is far. */
int64_t tti_store_grace(const tutti_store *store);

/** No warning about the server, which asks nobody for a secret. */
tutti_status tti_torch_store_open_on(tti_port *port, const tutti_torch_store_options *options,
                                     tutti_store **store_out);

/** Whether the store below all views is served by a program that asks nobody for the job's secret. */
bool tti_store_is_foreign(tutti_store *store);

/** Whether the store below all views is a file that nobody but this user can read: a place for a secret. */
bool tti_store_is_private_file(tutti_store *store);

/** tutti_store_adopt() with a port, a default time-out in ms (0: the library's), and, for a view of
 * another store, that store, which then keeps the time-out. The reference to inner stays the
 * caller's. */
tutti_status tti_store_init(tutti_store *store, tti_port *port, int64_t timeout_ms,
                            tutti_store *inner);
/** Whether store is this process's own, and not its parent's from before a fork.
 * @errors TUTTI_E_STATE  it is not */
tutti_status tti_store_check_own(const tutti_store *store);

/** Undo it when the rest of a constructor fails: frees the front, calls nothing. */
void tti_store_uninit(tutti_store *store);

/** tutti_store_get() for who looks for a moment, again and again: a store that was not reached in that time is
 * TUTTI_E_TIMEOUT, too, as it may be reached the next time. One that refuses, or is lost, is TUTTI_E_NETWORK, at once. */
tutti_status tti_store_look(tutti_store *store, const char *key, int64_t timeout_ms, tutti_bytes *value_out);

/** The port whose clock deadlines of this store refer to. */
tti_port *tti_store_port(const tutti_store *store);

/** The operations of tutti/store.h by deadline on that clock: checked, emulated where missing. */
tutti_status tti_store_set_until(tutti_store *store, const char *key, const void *data, size_t size,
                                 int64_t deadline_ns);
tutti_status tti_store_get_until(tutti_store *store, const char *key, int64_t deadline_ns,
                                 tutti_bytes *value_out);
tutti_status tti_store_add_until(tutti_store *store, const char *key, int64_t delta,
                                 int64_t deadline_ns, int64_t *sum_out);
tutti_status tti_store_wait_until(tutti_store *store, const char *const *keys, size_t n,
                                  int64_t deadline_ns);
tutti_status tti_store_check_until(tutti_store *store, const char *const *keys, size_t n,
                                   int64_t deadline_ns, bool *all_out);
tutti_status tti_store_compare_set_until(tutti_store *store, const char *key, const void *expected,
                                         size_t expected_size, const void *desired,
                                         size_t desired_size, int64_t deadline_ns,
                                         tutti_bytes *value_out);
tutti_status tti_store_delete_key_until(tutti_store *store, const char *key, int64_t deadline_ns,
                                        bool *deleted_out);
tutti_status tti_store_num_keys_until(tutti_store *store, int64_t deadline_ns, int64_t *n_out);
tutti_status tti_store_append_until(tutti_store *store, const char *key, const void *data,
                                    size_t size, int64_t deadline_ns);
tutti_status tti_store_multi_get_until(tutti_store *store, const char *const *keys, size_t n,
                                       int64_t deadline_ns, tutti_bytes *values_out);
tutti_status tti_store_multi_set_until(tutti_store *store, const char *const *keys,
                                       const tutti_bytes *values, size_t n, int64_t deadline_ns);
tutti_status tti_store_queue_push_until(tutti_store *store, const char *key, const void *data,
                                        size_t size, int64_t deadline_ns);
tutti_status tti_store_queue_pop_until(tutti_store *store, const char *key, bool block,
                                       int64_t deadline_ns, tutti_bytes *value_out);
tutti_status tti_store_queue_len_until(tutti_store *store, const char *key, int64_t deadline_ns,
                                       int64_t *n_out);
/** Those that begin with prefix ("": all). */
tutti_status tti_store_list_keys_until(tutti_store *store, const char *prefix, int64_t deadline_ns,
                                       tutti_store_keys *keys_out);
tutti_status tti_store_barrier_until(tutti_store *store, const char *key, int world_size,
                                     int64_t deadline_ns);
tutti_status tti_store_clone_until(tutti_store *store, int64_t deadline_ns,
                                   tutti_store **store_out);

#endif

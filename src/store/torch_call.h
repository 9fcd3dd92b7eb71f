/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/torch_call.h - calls on PyTorch's TCPStore; their connections stand in tcp_pool.h.
 *
 * How     One request under way per connection. What the server does not answer (SET, APPEND,
 *         MULTI_SET, QUEUE_PUSH) has a PING behind it, whose answer is the acknowledgement: the
 *         server takes the requests of a connection in turn. A wait whose time is up is cancelled,
 *         and both bytes that may come then are read, so the connection stays usable.
 * Fails   Closed or reset: TUTTI_E_NETWORK, at once, whatever the deadline. It may mean that the
 *         server is gone, and may also be its way to say that it does not know, or does not like, a
 *         request: tti_torch_alive() tells them apart. */
#ifndef TTI_STORE_TORCH_CALL_H
#define TTI_STORE_TORCH_CALL_H

#include "store/tcp_pool.h"
#include "store/torch_proto.h"

/** A live server answers what does not wait within this, whatever the caller's time-out. */
#define TTI_TORCH_ANSWER_NS (10 * TTI_SECOND)

/** The greeting of these connections: VALIDATE, and a PING to know that it was taken. */
tutti_status tti_torch_greet(tti_tcp_pool *pool, tti_handle handle, int64_t deadline_ns);

/** Send a request that does not wait and take its reply into *reader, which the caller releases on
 * TUTTI_OK. prefix is for LIST_KEYS, else NULL. */
tutti_status tti_torch_run(tti_tcp_pool *pool, const tti_torch_request *request, const char *prefix,
                           int64_t deadline_ns, tti_torch_reader *reader);
/** The same on a connection of its own, for a request that the server may close it over. */
tutti_status tti_torch_run_apart(tti_tcp_pool *pool, const tti_torch_request *request,
                                 const char *prefix, int64_t deadline_ns, tti_torch_reader *reader);

/** WAIT, until the deadline; one in the past looks once.
 * @errors TUTTI_E_TIMEOUT  *late_out: the time is up (no words), and the server is fine; else it
 *                          stopped answering */
tutti_status tti_torch_run_wait(tti_tcp_pool *pool, const tti_torch_request *request,
                                int64_t deadline_ns, bool *late_out);

/** Send n requests that reply with a value in one go; the values come in their order, and are the
 * caller's on TUTTI_OK. Together the requests have at most TTI_TORCH_BATCH_BYTES. */
tutti_status tti_torch_run_batch(tti_tcp_pool *pool, const tti_torch_request *requests, size_t n,
                                 int64_t deadline_ns, tutti_bytes *values_out);

/** What the kernels take of us while a server that writes does not read: a server that answers one
 * request before it reads the next must not find us still sending. */
enum { TTI_TORCH_BATCH_BYTES = 32 * 1024 };

/** Whether the server answers on a fresh connection. Leaves this thread's last error alone. */
bool tti_torch_alive(tti_tcp_pool *pool);

#endif

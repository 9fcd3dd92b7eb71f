/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/tcp_call.h - calls of a tcp store's client; their connections stand in tcp_pool.h.
 *
 * How     One request, one reply, per connection at a time (store_proto.h). A wait whose time is up
 *         sends CANCEL and then still reads one reply: either the cancelled one or the real one,
 *         which crossed it and counts. So the connection stays usable. That, and a reply that has begun,
 *         has a grace beyond the call's time: 40 ms and four round trips. A server that is slower loses
 *         the connection, and what a queue gave meanwhile is lost with it.
 * Fails   Closed or reset: TUTTI_E_NETWORK naming host and port, at once, whatever the deadline;
 *         all idle connections are then closed too, they lead to the same server. A call may have
 *         been carried out although it failed: it is not tried again. */
#ifndef TTI_STORE_TCP_CALL_H
#define TTI_STORE_TCP_CALL_H

#include "store/store_proto.h"
#include "store/tcp_pool.h"

enum { TTI_TCP_ANSWER_MS = 10000 /* a live server answers within */ };

/** The greeting of these connections: the hello, with the pool's secret, and the server's word that it took the proof.
 * @errors as tti_hello_run(); TUTTI_E_NETWORK: it may be tried again, nothing was asked for */
tutti_status tti_tcp_greet(tti_tcp_pool *pool, tti_handle handle, int64_t deadline_ns);
/** Before any connection: whether one may be greeted, for those who would otherwise try until their time is up to reach a server
 * that they will not speak to. What is not plain yet is seen when there is a connection.
 * @errors TUTTI_E_AUTH  there is no secret, and every way to the server leads beyond loopback */
tutti_status tti_tcp_may_greet(const tti_tcp_pool *pool);

/** One call: what is asked, until when, and where the reply goes. */
typedef struct tti_tcp_call {
    tti_tcp_pool     *pool;
    tti_handle        handle;
    uint32_t          led; /* as the pool's, when the call began: handle leads where that led */
    tti_store_request request;
    const char       *key; /* for words; NULL: none */
    int64_t           start_ns;
    int64_t           deadline_ns;
    tti_store_head    head; /* of the reply */
    tutti_bytes       body; /* of the reply */
} tti_tcp_call;

/** A key as it goes over the wire. */
typedef struct tti_tcp_key {
    char text[TTI_STORE_WIRE_KEY_MAX];
} tti_tcp_key;

/** Start filling in a call; key is for words, NULL: none. */
void tti_tcp_call_begin(tti_tcp_call *call, tti_tcp_pool *pool, tti_store_op op, const char *key,
                        int64_t deadline_ns);
/** Add a user key; room must last as long as the call. */
void tti_tcp_call_key(tti_tcp_call *call, const char *key, tti_tcp_key *room);

/** Send it and take its reply. On TUTTI_OK the caller frees call->body. */
tutti_status tti_tcp_call_run(tti_tcp_call *call);
/** Send it, for what has no reply. On failure the connection is gone. */
tutti_status tti_tcp_call_say(tti_tcp_call *call);
/** Say NEED of key, which is borrowed, in front of the next request that this thread sends over pool. */
void tti_tcp_call_need(const tti_tcp_pool *pool, const char *key);
/** Not any more. False: it was said. */
bool tti_tcp_call_need_not(void);
/** tti_tcp_call_run() on call->handle, or, where there is none, on one of the pool, which then is the caller's. On failure it is gone. */
tutti_status tti_tcp_call_keep(tti_tcp_call *call);
/** tti_tcp_call_run() for a reply whose body is a value. */
tutti_status tti_tcp_call_value(tti_tcp_call *call, tutti_bytes *val_out);
/** The same for a reply of exactly bytes (0 to 8) that are a number; out may be NULL. */
tutti_status tti_tcp_call_number(tti_tcp_call *call, size_t bytes, int64_t *out);

#endif

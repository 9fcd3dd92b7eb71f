/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/tcp_call.h - calls of a tcp store's client, and the connections that they share.
 *
 * Why     A thread that waits for a key must not hold up another's set on the same handle, so a
 *         handle is a small pool of connections: a call takes an idle one, or opens one more, and
 *         puts it back when its reply has come.
 * How     One request, one reply, per connection at a time (store_proto.h). A wait whose time is up
 *         sends CANCEL and then still reads one reply: either the cancelled one or the real one,
 *         which crossed it and counts. So the connection stays usable.
 * True    Opening retries only while the handle is being made. Later a server that refuses is dead.
 * Fails   Closed or reset: TUTTI_E_NETWORK naming host and port, at once, whatever the deadline;
 *         all idle connections are then closed too, they lead to the same server. A call may have
 *         been carried out although it failed: it is not tried again. */
#ifndef TTI_STORE_TCP_CALL_H
#define TTI_STORE_TCP_CALL_H

#include "base/thread.h"
#include "store/store_proto.h"
#include "wire/addr.h"
#include "wire/secret.h"

enum { TTI_TCP_IDLE_MAX = 8, TTI_TCP_ANSWER_MS = 10000 /* a live server answers within */ };

typedef struct tti_tcp_pool {
    tti_port  *port;
    char       host[TTI_HOST_MAX];
    uint16_t   tcp_port;
    char       who[TTI_HOST_MAX + 32]; /* "store host:port", for words */
    tti_secret secret;
    tti_mutex  lock; /* guards what follows */
    tti_handle idle[TTI_TCP_IDLE_MAX];
    int        n_idle;
    uint32_t   next_id;
} tti_tcp_pool;

/** The first connection: patient, until the deadline; it is idle afterwards. */
tutti_status tti_tcp_pool_connect(tti_tcp_pool *pool, int64_t deadline_ns);
/** Close all idle connections. */
void tti_tcp_pool_close(tti_tcp_pool *pool);

/** One call: what is asked, until when, and where the reply goes. */
typedef struct tti_tcp_call {
    tti_tcp_pool     *pool;
    tti_handle        handle;
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
/** The same for a reply whose body is a value. */
tutti_status tti_tcp_call_value(tti_tcp_call *call, tutti_bytes *val_out);
/** The same for a reply of exactly bytes (0 to 8) that are a number; out may be NULL. */
tutti_status tti_tcp_call_number(tti_tcp_call *call, size_t bytes, int64_t *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/tcp_pool.h - the connections that the calls of a tcp or torch-tcp store share.
 *
 * Why     A thread that waits for a key must not hold up another's set on the same handle, so a
 *         handle is a small pool of connections: a call takes an idle one, or opens one more, and
 *         puts it back when its reply has come.
 * True    Opening retries only while the handle is being made. Later a server that refuses is dead; one that takes a
 *         connection and drops it in its greeting is tried a few times more.
 *         Every connection that leaves the pool has been greeted. */
#ifndef TTI_STORE_TCP_POOL_H
#define TTI_STORE_TCP_POOL_H

#include "base/thread.h"
#include "wire/addr.h"
#include "wire/secret.h"

enum { TTI_TCP_IDLE_MAX = 8 };

typedef struct tti_tcp_pool tti_tcp_pool;

struct tti_tcp_pool {
    tti_port  *port;
    char       host[TTI_HOST_MAX];
    uint16_t   tcp_port;
    char       who[TTI_HOST_MAX + 32]; /* "store host:port", for words */
    tti_secret secret;
    /* What goes first over a fresh connection, which stays the pool's on failure. */
    tutti_status (*greet)(tti_tcp_pool *pool, tti_handle handle, int64_t deadline_ns);
    _Atomic uint32_t next_id;       /* of requests, where the protocol numbers them */
    _Atomic uint32_t round_trip_us; /* of the latest connection that was opened; 0: not known */
    _Atomic uint32_t led;           /* how many times it was led elsewhere; written under the lock */
    tti_mutex        lock;    /* guards what follows, and host and tcp_port once it is used */
    tti_handle       idle[TTI_TCP_IDLE_MAX];
    int              n_idle;
};

/** Fill a zeroed pool that is connected to nothing yet; greet and who are the caller's to set. */
void tti_tcp_pool_init(tti_tcp_pool *pool, tti_port *port, const char *host, uint16_t tcp_port);
/** The first connection: patient, until the deadline; it is idle afterwards. */
tutti_status tti_tcp_pool_connect(tti_tcp_pool *pool, int64_t deadline_ns);
/** An idle connection that has not ended, or a fresh one; the second never takes an idle one. */
tutti_status tti_tcp_pool_take(tti_tcp_pool *pool, int64_t deadline_ns, tti_handle *handle_out);
tutti_status tti_tcp_pool_open(tti_tcp_pool *pool, int64_t deadline_ns, tti_handle *handle_out);
/** Give a connection back on which nothing is under way. */
void tti_tcp_pool_put(tti_tcp_pool *pool, tti_handle handle);
/** The same of one that was taken when pool->led was led: where the pool leads elsewhere since, it is closed. */
void tti_tcp_pool_put_back(tti_tcp_pool *pool, tti_handle handle, uint32_t led);
/** How long a server that lives takes to answer, for what is asked when a call's time is up: half a second at most. */
int64_t tti_tcp_pool_grace_ns(const tti_tcp_pool *pool);
/** Until when the answers to all of that are waited for, in a call until deadline_ns: one grace from then on, or from now on, where it
 * ends before; for who comes to ask later than that, the grace of a server that is near. */
int64_t tti_tcp_pool_late_ns(const tti_tcp_pool *pool, int64_t deadline_ns);
/** Close all idle connections. */
void tti_tcp_pool_close(tti_tcp_pool *pool);
/** Take all idle connections out, for whoever has the lock and closes them when it has let go of it. How many. */
int tti_tcp_pool_take_all(tti_tcp_pool *pool, tti_handle handles_out[TTI_TCP_IDLE_MAX]);
/** Close n of them. */
void tti_tcp_pool_close_all(const tti_tcp_pool *pool, const tti_handle *handles, int n);

#endif

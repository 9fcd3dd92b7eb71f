/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tcp_pool.c - opening, lending and closing the connections of a handle. */
#include "store/tcp_pool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <tutti/private.h>
#include "base/doubt.h"

/* Between greetings that were lost: the first pause, and the longest. */
#define FIRST_PAUSE_NS   (100 * TTI_MS)
#define LONGEST_PAUSE_NS (2 * TTI_SECOND)
#define WORD_NS          (10 * TTI_SECOND)
#define GRACE_NS         (40 * TTI_MS)
#define GRACE_MOST_NS    (500 * TTI_MS) /* however far it is: a call's time-out is a promise */

#define AGAIN_NS         (20 * TTI_MS)

enum { GRACE_TRIPS = 4, GREETINGS_MAX = 6 };

/* How far the server is: as the kernel says, or else as the greeting took. */
static void note_way(tti_tcp_pool *pool, tti_handle handle, int64_t greeting_ns)
{
    tti_stream_facts facts = { .round_trip_us = (uint32_t)(greeting_ns / 1000) };

    if (pool->port->ops->stream_facts == NULL || pool->port->ops->stream_facts(pool->port, handle, &facts) == 0)
        atomic_store_explicit(&pool->round_trip_us, facts.round_trip_us, memory_order_relaxed);
}

/* The greeting on a fresh connection, which is closed on failure. */
static tutti_status greet(tti_tcp_pool *pool, tti_handle handle, int64_t deadline_ns)
{
    const int64_t      start_ns = tti_port_now(pool->port);
    const tutti_status st = pool->greet(pool, handle, deadline_ns);

    if (st == TUTTI_OK)
        note_way(pool, handle, tti_port_now(pool->port) - start_ns);
    else
        pool->port->ops->close(pool->port, handle);
    return st;
}

int64_t tti_tcp_pool_grace_ns(const tti_tcp_pool *pool)
{
    const int64_t trips_ns = GRACE_TRIPS * 1000 * (int64_t)atomic_load_explicit(&pool->round_trip_us, memory_order_relaxed);

    return GRACE_NS + trips_ns < GRACE_MOST_NS ? GRACE_NS + trips_ns : GRACE_MOST_NS;
}

int64_t tti_tcp_pool_late_ns(const tti_tcp_pool *pool, int64_t deadline_ns)
{
    const int64_t now_ns = tti_port_now(pool->port);
    const int64_t ended_ns = now_ns < deadline_ns ? now_ns : deadline_ns;
    const int64_t late_ns = ended_ns + tti_tcp_pool_grace_ns(pool);

    return late_ns > now_ns + GRACE_NS ? late_ns : now_ns + GRACE_NS;
}

void tti_tcp_pool_init(tti_tcp_pool *pool, tti_port *port, const char *host, uint16_t tcp_port)
{
    pool->port = port;
    pool->tcp_port = tcp_port;
    snprintf(pool->host, sizeof pool->host, "%s", host);
    tti_mutex_init(&pool->lock);
}

/* Sleep for 0.5 to 1.5 times pause; never past the deadline. */
static void rest(tti_port *port, int64_t pause_ns, int64_t deadline_ns)
{
    const int64_t now = tti_port_now(port);
    uint32_t      dice;
    int64_t       ns;

    port->ops->random(port, &dice, sizeof dice);
    ns = pause_ns / 2 + (int64_t)((double)pause_ns * (double)dice / 4294967296.0);
    port->ops->sleep_until(port, ns < deadline_ns - now ? now + ns : deadline_ns);
}

tutti_status tti_tcp_pool_open(tti_tcp_pool *pool, int64_t deadline_ns, tti_handle *handle_out)
{
    tti_handle   handle = TTI_NO_HANDLE;
    char         host[sizeof pool->host];
    uint16_t     tcp_port;
    int          tries = 0;
    tutti_status st;

    tti_lock(&pool->lock); /* it may be led elsewhere */
    memcpy(host, pool->host, sizeof host);
    tcp_port = pool->tcp_port;
    tti_unlock(&pool->lock);
    for (;;) {
        st = tti_connect_once(pool->port, host, tcp_port, deadline_ns, &handle);
        if (st != TUTTI_OK)
            return st;
        st = greet(pool, handle, deadline_ns);
        if (st != TUTTI_E_NETWORK || ++tries == GREETINGS_MAX || tti_port_now(pool->port) >= deadline_ns || tti_doubt_is_vain())
            break;
        rest(pool->port, tries * AGAIN_NS, deadline_ns); /* a crowd of strangers may have pushed it out */
    }
    if (st == TUTTI_OK)
        *handle_out = handle;
    return st;
}

static tti_handle take_idle(tti_tcp_pool *pool)
{
    tti_handle handle = TTI_NO_HANDLE;

    tti_lock(&pool->lock);
    if (pool->n_idle > 0)
        handle = pool->idle[--pool->n_idle];
    tti_unlock(&pool->lock);
    return handle;
}

/* A server says nothing unasked: what there is to read is the end, or nonsense. */
static bool has_ended(tti_tcp_pool *pool, tti_handle handle)
{
    char byte;

    return pool->port->ops->recv(pool->port, handle, &byte, sizeof byte) != -EAGAIN;
}

/* One that was lost while nothing was under way, as something on the way forgets connections that say nothing, is no failure of
 * a call that has not begun. */
tutti_status tti_tcp_pool_take(tti_tcp_pool *pool, int64_t deadline_ns, tti_handle *handle_out)
{
    tti_handle handle;

    if (tti_doubt_is_vain())
        return tti_doubt_fail(pool->who);
    while ((handle = take_idle(pool)) != TTI_NO_HANDLE && has_ended(pool, handle))
        pool->port->ops->close(pool->port, handle);
    if (handle == TTI_NO_HANDLE)
        return tti_tcp_pool_open(pool, deadline_ns, handle_out);
    *handle_out = handle;
    return TUTTI_OK;
}

void tti_tcp_pool_put(tti_tcp_pool *pool, tti_handle handle)
{
    tti_tcp_pool_put_back(pool, handle, atomic_load(&pool->led));
}

void tti_tcp_pool_put_back(tti_tcp_pool *pool, tti_handle handle, uint32_t led)
{
    tti_lock(&pool->lock);
    if (pool->n_idle < TTI_TCP_IDLE_MAX && led == atomic_load(&pool->led)) {
        pool->idle[pool->n_idle++] = handle;
        handle = TTI_NO_HANDLE;
    }
    tti_unlock(&pool->lock);
    pool->port->ops->close(pool->port, handle);
}

/* Time is up for a server that takes connections and loses them. */
static tutti_status greetings_failed(const tti_tcp_pool *pool, int tries, int64_t start_ns)
{
    char cause[256];

    snprintf(cause, sizeof cause, "%s", tutti_last_error());
    return tti_fail(TUTTI_E_NETWORK,
                    "no store at %s port %u: %d connections were lost in their greeting in %" PRId64
                    " ms, last: %s",
                    pool->host, pool->tcp_port, tries,
                    (tti_port_now(pool->port) - start_ns) / TTI_MS, cause);
}

/* A connection that is lost during its greeting may have met a server that was just ending, or somebody
 * who forwards to one that is not there yet: again, until the deadline. */
tutti_status tti_tcp_pool_connect(tti_tcp_pool *pool, int64_t deadline_ns)
{
    tti_port     *port = pool->port;
    const int64_t start = tti_port_now(port);
    int64_t       pause_ns = FIRST_PAUSE_NS, said_ns = start;
    tti_handle    handle = TTI_NO_HANDLE;
    tutti_status  st;
    int           tries;

    for (tries = 1;; tries++) {
        st = tti_connect(port, pool->host, pool->tcp_port, deadline_ns, &handle);
        if (st != TUTTI_OK)
            return st;
        st = greet(pool, handle, deadline_ns);
        if (st != TUTTI_E_NETWORK)
            break;
        if (tti_port_now(port) - said_ns >= WORD_NS) {
            said_ns = tti_port_now(port);
            tti_log(TTI_LOG_WARN, "still trying: %s", tutti_last_error());
        }
        rest(port, pause_ns, deadline_ns);
        if (tti_port_now(port) >= deadline_ns)
            return greetings_failed(pool, tries, start);
        pause_ns = pause_ns * 3 / 2 < LONGEST_PAUSE_NS ? pause_ns * 3 / 2 : LONGEST_PAUSE_NS;
    }
    if (st == TUTTI_OK)
        tti_tcp_pool_put(pool, handle);
    return st;
}

int tti_tcp_pool_take_all(tti_tcp_pool *pool, tti_handle handles_out[TTI_TCP_IDLE_MAX])
{
    const int n = pool->n_idle;

    memcpy(handles_out, pool->idle, sizeof pool->idle);
    pool->n_idle = 0;
    return n;
}

void tti_tcp_pool_close_all(const tti_tcp_pool *pool, const tti_handle *handles, int n)
{
    while (n-- > 0)
        pool->port->ops->close(pool->port, handles[n]);
}

void tti_tcp_pool_close(tti_tcp_pool *pool)
{
    tti_handle handles[TTI_TCP_IDLE_MAX];
    int        n;

    tti_lock(&pool->lock);
    n = tti_tcp_pool_take_all(pool, handles);
    tti_unlock(&pool->lock);
    tti_tcp_pool_close_all(pool, handles, n);
}

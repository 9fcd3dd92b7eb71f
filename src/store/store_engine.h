/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/store_engine.h - the tcp store's server without sockets, threads or clock.
 *
 * How     The driver reports: a connection came, these bytes came, these went, it is gone, it is
 *         now that late. After each report it asks for the connections that need it
 *         (tti_engine_next) and sends their output, then closes those that shall be closed. Nothing
 *         is served before the hello is done, and TLS where the secret asks for it.
 *
 *           input --> hello --> frames --> map, queues --> replies --> output
 *                                 |            |
 *                                 +-- waiting circles, one per missing key
 * True    One thread at a time. A connection that waits holds one place: in the circle of the first
 *         key that it misses. A change of a key moves all who wait for it, a push one of those who
 *         wait for the queue; they are served from a list, so nothing here recurses.
 * Limits  tti_engine_limits. A connection that breaks the protocol, or leaves its hello undone for
 *         too long, is closed; one that does not read its replies is not read from. With too many connections the newcomer is
 *         taken, and one goes that has not proved itself (store_half_open.c). What does not fit into the store is refused,
 *         and the connection goes on. */
#ifndef TTI_STORE_STORE_ENGINE_H
#define TTI_STORE_STORE_ENGINE_H

#include "base/port.h"
#include "wire/secret.h"

typedef struct tti_engine      tti_engine;
typedef struct tti_engine_conn tti_engine_conn;

/** Zero fields mean the default in brackets. */
typedef struct tti_engine_limits {
    size_t  conns_max;        /* connections (16384) */
    size_t  unproven_max;     /* of them, that have not proved themselves: silent or not (12288) */
    size_t  stored_bytes_max; /* keys and values (4 GiB) */
    size_t  input_bytes_max;  /* of requests that are not complete yet, all connections (1 GiB) */
    int64_t hello_ns;         /* from the connection to the end of its hello (10 s) */
    size_t  stored_keys_max;  /* keys and queues (4194304) */
    size_t  client_bytes_max; /* by which the store grows by requests of one connection (1 GiB) */
    size_t  client_keys_max;  /* the same, keys and queues (1048576) */
    size_t  output_bytes_max; /* of replies that are not sent yet, all connections (1 GiB) */
    size_t  strangers_tls_max; /* connections in TLS's handshake where nothing was proved before: certificates, no secret (256) */
} tti_engine_limits;

/** port gives nonces, the keys of maps, and the wake-up of who looks at needs, nothing else. secret is copied; limits may be NULL.
 * @errors TUTTI_E_NOMEM */
tutti_status tti_engine_create(tti_port *port, const tti_secret *secret,
                               const tti_engine_limits *limits, tti_engine **engine_out);
/** Every connection must have been dropped. NULL is fine. */
void tti_engine_destroy(tti_engine *engine);

/** What connections have to prove; for drivers, who can look at sockets. */
const tti_secret *tti_engine_secret(const tti_engine *engine);

/** A connection came from `from` (words for the log, copied), which is at that address: its source has a part of all.
 * owner comes back from tti_engine_owner(). NULL: refused, close it. */
tti_engine_conn *tti_engine_accept(tti_engine *engine, int64_t now_ns, const char *from, const tti_addr *at,
                                   void *owner);
/** The driver's means run short (descriptors): of more than unproven_max connections that have not proved themselves end one,
 * but not the newest. False: there are no more, or no other. */
bool tti_engine_relieve(tti_engine *engine, int64_t now_ns, size_t unproven_max);
/** Bytes came. */
void tti_engine_input(tti_engine *engine, tti_engine_conn *conn, const void *data, size_t bytes);
/** Which of the clients still need it; any thread may look, for as long as the engine is there. */
struct tti_store_needs *tti_engine_needs(tti_engine *engine);
/** The driver closes all connections from here on, whatever they are at. */
void tti_engine_ends(tti_engine *engine);
/** The connection is closed; conn is gone, and its will is done, which others may have waited for. */
void tti_engine_drop(tti_engine *engine, tti_engine_conn *conn);
/** Have dropped() called for each connection that is dropped while it waits for a key, with the one that it misses first. It
 * must not call the engine. */
void tti_engine_tell_dropped(tti_engine *engine, void (*dropped)(void *context, const void *key, size_t bytes), void *context);
/** It is now: closes those whose hello took too long. */
void tti_engine_tick(tti_engine *engine, int64_t now_ns);
/** When the next tick is due; TTI_FOREVER: none. */
int64_t tti_engine_deadline(const tti_engine *engine);

/** The next connection with output or the wish to be closed, each once; NULL: no more. */
tti_engine_conn *tti_engine_next(tti_engine *engine);
void            *tti_engine_owner(const tti_engine_conn *conn);
/** Bytes to be sent, valid until the next call on the engine. Of one that is closing: as far as they fit at once. */
const void *tti_engine_output(const tti_engine_conn *conn, size_t *bytes_out);
/** So many of them have gone. */
void tti_engine_sent(tti_engine *engine, tti_engine_conn *conn, size_t bytes);
/** Close it now, then tti_engine_drop(). */
bool tti_engine_closing(const tti_engine_conn *conn);
/** Whether the driver shall read from it: not while it closes or leaves much unread. */
bool tti_engine_reads(const tti_engine_conn *conn);

/** What it has done since it was made. */
typedef struct tti_engine_counts {
    uint64_t conns;    /* connections that came */
    uint64_t requests; /* complete ones, of all of them */
    uint64_t came;     /* bytes */
    uint64_t went;
} tti_engine_counts;

/** Facts for tests and status pages. */
tti_engine_counts tti_engine_counted(const tti_engine *engine);
size_t tti_engine_n_conns(const tti_engine *engine);
size_t tti_engine_n_unproven(const tti_engine *engine);
size_t tti_engine_n_keys(const tti_engine *engine);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/store_engine_conn.h - the insides of the engine, shared by store_engine.c, store_serve.c
 * and store_wait.c. */
#ifndef TTI_STORE_STORE_ENGINE_CONN_H
#define TTI_STORE_STORE_ENGINE_CONN_H

#include "base/addr_source.h"
#include "base/map.h"
#include "store/store_engine.h"
#include "store/store_needs.h"
#include "store/store_proto.h"
#include "store/store_queue.h"
#include "wire/tls.h"

enum { QUEUE_READY, QUEUE_DIRTY, QUEUE_COUNT, FROM_MAX = 96 };

/* The GET, WAIT, MULTI_GET or QUEUE_POP that a connection is in. */
typedef struct conn_wait {
    bool         active;
    tti_store_op op;
    uint32_t     id;
    uint32_t     n_keys;
    uint32_t     at;    /* the key whose list we stand in */
    uint8_t     *block; /* all keys, copied */
    tti_slice   *keys;  /* into block */
    /* neighbours in the circle of keys[at] */
    struct tti_engine_conn *prev, *next;
} conn_wait;

/** Those of one source in a crowd: store_half_open.c. */
typedef struct tti_half_open_share tti_half_open_share;

/** Connections that have not proved themselves, of one kind: in the order of coming to it, and each source's. */
typedef struct tti_half_open_crowd {
    tti_engine_conn *first, *last;
    tti_map          shares; /* source -> its share */
    size_t           n;
} tti_half_open_crowd;

struct tti_engine_conn {
    tti_half_open_crowd *crowd; /* NULL: it has proved itself, or is closing */
    tti_half_open_share *share; /* its source's, there */
    tti_engine_conn *prev, *next; /* in the crowd */
    tti_engine_conn *share_prev, *share_next;
    tti_addr_source  source;
    tti_engine_conn *queue_next[QUEUE_COUNT];
    bool             queued[QUEUE_COUNT];
    void            *owner;
    char             from[FROM_MAX];
    bool             open;      /* the hello is done */
    bool             closing;   /* the driver shall close it; serves nothing any more */
    int64_t          hello_until_ns;
    tti_hello        hello;
    tti_buffer       in;
    tti_buffer       out;
    tti_tls         *tls;              /* NULL: in and out are what the driver brings and takes */
    tti_buffer       wire_in, wire_out; /* with TLS these are */
    bool             has_last_words;   /* closing: the peer is to have what is left, if it fits */
    size_t           out_counted; /* of out's and wire_out's bytes, in the engine's output_bytes */
    int64_t          stored_bytes; /* by how much the store has grown by its requests */
    int64_t          stored_keys;
    conn_wait        wait;
    uint8_t         *will; /* its key, and its value behind that; NULL: none */
    size_t           will_key, will_value; /* bytes */
    uint32_t         n_needs; /* in the engine's list */
};

typedef struct conn_queue {
    tti_engine_conn *first, *last;
} conn_queue;

struct tti_engine {
    tti_port         *port;
    tti_secret        secret;
    tti_engine_limits limits;
    tti_map           values;
    tti_store_queues  queues;
    tti_map           waiters; /* key -> first connection of its circle, for a value */
    tti_map           poppers; /* the same, for the next value of a queue */
    tti_store_needs   needs;
    tti_half_open_crowd silent; /* that have said nothing yet */
    tti_half_open_crowd spoken; /* that have said hello, and are to prove it */
    conn_queue        ready; /* may have input to serve */
    conn_queue        dirty; /* for tti_engine_next() */
    size_t            n_conns;
    size_t            input_bytes; /* of all conn->in */
    size_t            output_bytes; /* of all conn->out and wire_out */
    int64_t           warn_ns;      /* of dropped unproven ones: not before */
    uint64_t          n_unsaid;     /* of them since the last warning */
    int64_t           warn_proof_ns; /* of those that do not know the secret: not before */
    uint64_t          n_proofs_unsaid;
    tti_engine_counts counts;
    bool              has_warned; /* of a client that does not agree on TLS */
    bool              ends;       /* connections are dropped for that */
    void (*dropped)(void *context, const void *key, size_t bytes); /* NULL: nobody is told */
    void             *context; /* of that */
};

void tti_engine_conn_ready(tti_engine *engine, tti_engine_conn *conn);
void tti_engine_conn_dirty(tti_engine *engine, tti_engine_conn *conn);
/** After every change of conn->out. */
void tti_engine_count_output(tti_engine *engine, tti_engine_conn *conn);
/** Close it, for the reason that is this thread's last error. */
void tti_engine_conn_end(tti_engine *engine, tti_engine_conn *conn);

/** Do what a request asks and append its reply, or begin to wait. A failure ends the connection. */
tutti_status tti_engine_serve(tti_engine *engine, tti_engine_conn *conn,
                              const tti_store_request *request);
/** Append a reply; a failed request's has its status and this thread's words, and the connection
 * goes on. */
tutti_status tti_engine_reply(tti_engine *engine, tti_engine_conn *conn, tti_store_op op,
                              uint32_t id, const void *body, size_t size);
tutti_status tti_engine_reply_failure(tti_engine *engine, tti_engine_conn *conn, tti_store_op op,
                                      uint32_t id, tutti_status status);

/** With TLS: its hello is done; what came is to be read (open: the handshake is done, too); what is to go is to be
 * encrypted. A failure ends the connection. */
tutti_status tti_engine_tls_begin(tti_engine_conn *conn);
tutti_status tti_engine_tls_input(tti_engine *engine, tti_engine_conn *conn, bool *open_out);
tutti_status tti_engine_tls_output(tti_engine_conn *conn);

/** The connection has ended: do what its will says, and forget that. False: it has none. */
bool tti_engine_carry_out(tti_engine *engine, tti_engine_conn *conn);

/** GET, WAIT and MULTI_GET; QUEUE_POP; CANCEL. */
tutti_status tti_engine_serve_wait(tti_engine *engine, tti_engine_conn *conn,
                                   const tti_store_request *request);
tutti_status tti_engine_serve_pop(tti_engine *engine, tti_engine_conn *conn,
                                  const tti_store_request *request);
tutti_status tti_engine_serve_cancel(tti_engine *engine, tti_engine_conn *conn, uint32_t id);
/** The first key that is missing, looked for from `at` on, then from the start; n: none. */
uint32_t tti_engine_missing(const tti_engine *engine, tti_store_op op, const tti_slice *keys,
                            uint32_t n, uint32_t at);
/** key has come: everybody in its circle goes on. */
void tti_engine_wake(tti_engine *engine, tti_slice key);
/** Give value to the one that has waited longest for the queue; false: nobody waits. */
bool tti_engine_hand_over(tti_engine *engine, tti_slice key, tti_slice value);
/** Leave the circle, if it is in one. */
void tti_engine_wait_end(tti_engine *engine, tti_engine_conn *conn);

#endif

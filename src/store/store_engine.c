/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_engine.c - connections of the engine: hello, frames in, replies out, queues. What requests
 * do to the map stands in store_serve.c, who waits for which key in store_wait.c, who has not proved itself in
 * store_half_open.c, TLS in store_engine_tls.c. */
#include "store/store_engine_conn.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "store/store_half_open.h"
#include "store/store_turned.h"

enum {
    OUT_HIGH = 64 * 1024,  /* unsent bytes from which on a connection is not served */
    FAIR_INPUT = 64 * 1024 /* of an incomplete request, which is always taken */
};

#define WARN_NS (10 * TTI_SECOND)

static tti_engine_limits limits_or_defaults(const tti_engine_limits *given)
{
    tti_engine_limits limits = given != NULL ? *given : (tti_engine_limits){ .conns_max = 0 };

    if (limits.conns_max == 0)
        limits.conns_max = 16384;
    if (limits.unproven_max == 0)
        limits.unproven_max = 12288;
    if (limits.stored_bytes_max == 0)
        limits.stored_bytes_max = (size_t)4 << 30;
    if (limits.input_bytes_max == 0)
        limits.input_bytes_max = (size_t)1 << 30;
    if (limits.hello_ns == 0)
        limits.hello_ns = 10 * TTI_SECOND;
    if (limits.stored_keys_max == 0)
        limits.stored_keys_max = (size_t)4 << 20;
    if (limits.client_bytes_max == 0)
        limits.client_bytes_max = (size_t)1 << 30;
    if (limits.client_keys_max == 0)
        limits.client_keys_max = (size_t)1 << 20;
    if (limits.output_bytes_max == 0)
        limits.output_bytes_max = (size_t)1 << 30;
    if (limits.strangers_tls_max == 0)
        limits.strangers_tls_max = 256;
    return limits;
}

tutti_status tti_engine_create(tti_port *port, const tti_secret *secret,
                               const tti_engine_limits *limits, tti_engine **engine_out)
{
    tti_engine *engine = calloc(1, sizeof *engine);

    if (engine == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a store server");
    engine->port = port;
    engine->limits = limits_or_defaults(limits);
    if (secret != NULL)
        engine->secret = *secret;
    tti_map_init(&engine->values, port);
    tti_store_queues_init(&engine->queues, port);
    tti_map_init(&engine->waiters, port);
    tti_map_init(&engine->poppers, port);
    tti_store_needs_init(&engine->needs, port);
    tti_half_open_init(engine);
    *engine_out = engine;
    return TUTTI_OK;
}

const tti_secret *tti_engine_secret(const tti_engine *engine)
{
    return &engine->secret;
}

void tti_engine_destroy(tti_engine *engine)
{
    if (engine == NULL)
        return;
    assert(engine->n_conns == 0);
    tti_map_release(&engine->values);
    tti_store_queues_release(&engine->queues);
    tti_map_release(&engine->waiters);
    tti_map_release(&engine->poppers);
    tti_store_needs_release(&engine->needs);
    tti_half_open_release(engine);
    tti_secret_release(&engine->secret);
    free(engine);
}

/* A crowd must not fill the log. */
static void tell_of_dropped(tti_engine *engine, const tti_engine_conn *conn, int64_t now_ns)
{
    if (now_ns < engine->warn_ns) {
        engine->n_unsaid++;
        return;
    }
    tti_log(TTI_LOG_WARN,
            "store: %s has not proved that it belongs to the job, and makes room for another one (%" PRIu64
            " more before; %zu connections, %zu of them not proved)",
            conn->from, engine->n_unsaid, engine->n_conns, tti_half_open_count(engine));
    engine->n_unsaid = 0;
    engine->warn_ns = now_ns + WARN_NS;
}

/* Perhaps a member that was given another secret, which somebody waits for; strangers can do as much. Which of the two sees that
 * secrets differ is a matter of turns: a client that is shown a proof it cannot confirm leaves, and says nothing. */
static void tell_of_unproven(tti_engine *engine, const tti_engine_conn *conn, const char *what)
{
    const int64_t now_ns = tti_port_now(engine->port);

    tti_store_turned_note(engine->port, conn->from, what);
    if (now_ns < engine->warn_proof_ns) {
        engine->n_proofs_unsaid++;
        return;
    }
    tti_log(TTI_LOG_WARN,
            "store: turned away %s, which %s (%" PRIu64 " more before)\n"
            "  next: if it is of this job, give all processes the same TUTTI_SECRET_FILE%s",
            conn->from, what, engine->n_proofs_unsaid, engine->secret.present ? "" : ", or none");
    engine->n_proofs_unsaid = 0;
    engine->warn_proof_ns = now_ns + WARN_NS;
}

/* Shown what this store proves with, conn has left without a proof of its own. Where there is no secret nothing tells one that has one
 * from one that ended just then; but who has none goes on at once, so it is one of the two. */
static void tell_of_leaving(tti_engine *engine, const tti_engine_conn *conn)
{
    tell_of_unproven(engine, conn,
                     engine->secret.present ? "was shown this store's proof of the secret, and left without one of its own: it has another "
                                              "secret, or ended just then"
                                            : "left when it saw that there is no secret here: it has one, or ended just then");
}

/* False: there is none to drop. */
static bool drop_stranger(tti_engine *engine, int64_t now_ns, tti_engine_conn *victim)
{
    if (victim == NULL)
        return false;
    tell_of_dropped(engine, victim, now_ns);
    tti_fail(TUTTI_E_AUTH, "it has not proved itself, and others wait");
    tti_engine_conn_end(engine, victim);
    return true;
}

bool tti_engine_relieve(tti_engine *engine, int64_t now_ns, size_t unproven_max)
{
    tti_engine_conn *newest = engine->silent.last, *victim;

    if (tti_half_open_count(engine) <= unproven_max || newest == NULL)
        return false;
    victim = tti_half_open_victim(engine, &newest->source);
    if (victim == newest)
        victim = engine->silent.first != newest ? engine->silent.first : engine->spoken.first;
    return drop_stranger(engine, now_ns, victim);
}

tti_engine_conn *tti_engine_accept(tti_engine *engine, int64_t now_ns, const char *from, const tti_addr *at,
                                   void *owner)
{
    const tti_addr_source source = tti_addr_source_of(at);
    tti_hello_config config = { .client = false,
                                .purpose = TTI_PURPOSE_STORE,
                                .rank = TTI_HELLO_NO_RANK,
                                .secret = &engine->secret };
    tti_engine_conn *conn;

    if ((engine->n_conns >= engine->limits.conns_max || tti_half_open_count(engine) >= engine->limits.unproven_max) &&
        !drop_stranger(engine, now_ns, tti_half_open_victim(engine, &source))) {
        tti_log(TTI_LOG_INFO, "store: refused %s: %zu connections, all of them of the job", from, engine->n_conns);
        return NULL;
    }
    conn = calloc(1, sizeof *conn);
    if (conn == NULL)
        return NULL;
    snprintf(conn->from, sizeof conn->from, "%s", from);
    conn->source = source;
    conn->owner = owner;
    conn->hello_until_ns = now_ns + engine->limits.hello_ns;
    config.peer = conn->from;
    if (tti_half_open_enter(engine, conn) != TUTTI_OK) {
        free(conn);
        return NULL;
    }
    tti_hello_begin(&conn->hello, engine->port, &config);
    engine->n_conns++;
    engine->counts.conns++;
    return conn;
}

/* Put conn at the end of a queue unless it stands there. */
static void enqueue(conn_queue *queue, tti_engine_conn *conn, int which)
{
    if (conn->queued[which])
        return;
    conn->queued[which] = true;
    conn->queue_next[which] = NULL;
    *(queue->last != NULL ? &queue->last->queue_next[which] : &queue->first) = conn;
    queue->last = conn;
}

static tti_engine_conn *dequeue(conn_queue *queue, int which)
{
    tti_engine_conn *conn = queue->first;

    if (conn == NULL)
        return NULL;
    queue->first = conn->queue_next[which];
    if (queue->first == NULL)
        queue->last = NULL;
    conn->queued[which] = false;
    return conn;
}

static void queue_remove(conn_queue *queue, tti_engine_conn *conn, int which)
{
    tti_engine_conn *at, *before = NULL;

    if (!conn->queued[which])
        return;
    for (at = queue->first; at != conn; at = at->queue_next[which])
        before = at;
    *(before != NULL ? &before->queue_next[which] : &queue->first) = conn->queue_next[which];
    if (queue->last == conn)
        queue->last = before;
    conn->queued[which] = false;
}

void tti_engine_conn_ready(tti_engine *engine, tti_engine_conn *conn)
{
    enqueue(&engine->ready, conn, QUEUE_READY);
}

void tti_engine_conn_dirty(tti_engine *engine, tti_engine_conn *conn)
{
    enqueue(&engine->dirty, conn, QUEUE_DIRTY);
}

void tti_engine_conn_end(tti_engine *engine, tti_engine_conn *conn)
{
    tti_log(TTI_LOG_INFO, "store: closing %s: %s", conn->from, tutti_last_error());
    conn->closing = true;
    tti_engine_wait_end(engine, conn); /* nothing shall be handed to it any more */
    tti_half_open_leave(conn);
    tti_engine_conn_dirty(engine, conn);
}

void tti_engine_count_output(tti_engine *engine, tti_engine_conn *conn)
{
    const size_t size = conn->out.size + conn->wire_out.size;

    engine->output_bytes += size - conn->out_counted;
    conn->out_counted = size;
}

/* Bytes at the front of conn->in are done with. */
static void consume(tti_engine *engine, tti_engine_conn *conn, size_t bytes)
{
    tti_buffer_consume(&conn->in, bytes);
    engine->input_bytes -= bytes;
}

/* What the peer may still have is all that is left in out. */
static void end_hello(tti_engine *engine, tti_engine_conn *conn, bool was_awaited)
{
    size_t      bytes;
    const void *words = tti_hello_last_words(&conn->hello, &bytes);

    tti_buffer_consume(&conn->out, conn->out.size);
    conn->has_last_words = bytes > 0 && tti_buffer_append(&conn->out, words, bytes) == TUTTI_OK;
    if (bytes > 0) { /* perhaps a member that was set up otherwise, which somebody waits for; strangers can say as much */
        tti_store_turned_note(engine->port, conn->from, "is set up for TLS in another way than this process");
        tti_log(engine->has_warned ? TTI_LOG_DEBUG : TTI_LOG_WARN, "store: %s", tutti_last_error());
        engine->has_warned = true;
    } else if (was_awaited) {
        tell_of_unproven(engine, conn, "does not know the job's secret");
    }
    tti_engine_conn_end(engine, conn);
}

static void open_conn(tti_engine_conn *conn)
{
    tti_half_open_leave(conn);
    conn->open = true;
    tti_hello_release(&conn->hello);
}

/* With certificates and no secret a hello proves nothing: what follows costs this process a signature, and memory for whatever
 * the other end says of itself. So few are in it at once, and
 * somebody goes as in store_half_open.c. */
static void bound_handshakes(tti_engine *engine, const tti_engine_conn *newest)
{
    if (engine->secret.present || engine->spoken.n <= engine->limits.strangers_tls_max)
        return;
    tti_fail(TUTTI_E_AUTH, "it has shown no certificate yet, and %zu others are about to", engine->spoken.n - 1);
    tti_engine_conn_end(engine, tti_half_open_victim_in(&engine->spoken, &newest->source));
}

static void serve_hello(tti_engine *engine, tti_engine_conn *conn)
{
    const bool  awaited = tti_hello_awaits_proof(&conn->hello);
    size_t      bytes = tti_hello_wants(&conn->hello);
    const void *data;

    if (bytes > conn->in.size)
        bytes = conn->in.size;
    if (tti_hello_feed(&conn->hello, tti_buffer_data(&conn->in), bytes) != TUTTI_OK) {
        end_hello(engine, conn, awaited);
        return;
    }
    consume(engine, conn, bytes);
    data = tti_hello_output(&conn->hello, &bytes);
    if (bytes > 0) {
        if (tti_half_open_spoke(engine, conn) != TUTTI_OK || tti_buffer_append(&conn->out, data, bytes) != TUTTI_OK) {
            tti_engine_conn_end(engine, conn);
            return;
        }
        tti_engine_count_output(engine, conn);
        tti_hello_sent(&conn->hello, bytes);
        tti_engine_conn_dirty(engine, conn);
    }
    if (!tti_hello_done(&conn->hello))
        return;
    if (tti_hello_seal(&conn->hello) == TTI_SEAL_NONE)
        open_conn(conn);
    else if (tti_engine_tls_begin(conn) != TUTTI_OK)
        tti_engine_conn_end(engine, conn);
    else
        bound_handshakes(engine, conn);
}

/* Go on with TLS as far as what has come allows. */
static void serve_tls(tti_engine *engine, tti_engine_conn *conn)
{
    bool open = false;

    if (tti_engine_tls_input(engine, conn, &open) != TUTTI_OK)
        tti_engine_conn_end(engine, conn);
    else if (open && !conn->open)
        open_conn(conn);
}

/* Bytes that the driver has not sent yet. */
static size_t unsent(const tti_engine_conn *conn)
{
    return conn->out.size + conn->wire_out.size;
}

/* One complete frame at the front of conn->in. False: there is none yet, or the connection ends. */
static bool serve_frame(tti_engine *engine, tti_engine_conn *conn)
{
    const uint8_t    *data = tti_buffer_data(&conn->in);
    tti_store_head    head;
    tti_store_request request;
    tutti_status      st;

    if (conn->in.size < TTI_STORE_HEAD_BYTES)
        return false;
    st = tti_store_head_read(data, true, &head);
    if (st == TUTTI_OK && conn->in.size - TTI_STORE_HEAD_BYTES < head.size)
        return false;
    if (st == TUTTI_OK)
        st = tti_store_request_read(&head, data + TTI_STORE_HEAD_BYTES, &request);
    engine->counts.requests += st == TUTTI_OK;
    if (st == TUTTI_OK)
        st = tti_engine_serve(engine, conn, &request);
    if (st != TUTTI_OK) {
        tti_engine_conn_end(engine, conn);
        return false;
    }
    consume(engine, conn, TTI_STORE_HEAD_BYTES + head.size);
    return true;
}

static void serve_conn(tti_engine *engine, tti_engine_conn *conn)
{
    while (!conn->closing && !conn->open && conn->in.size > 0 && tti_hello_wants(&conn->hello) > 0)
        serve_hello(engine, conn);
    if (!conn->closing && conn->tls != NULL)
        serve_tls(engine, conn);
    while (!conn->closing && conn->open && unsent(conn) < OUT_HIGH && serve_frame(engine, conn))
        continue;
}

/* Serve everybody who can go on; serving one may make others ready. */
static void serve_ready(tti_engine *engine)
{
    tti_engine_conn *conn;

    while ((conn = dequeue(&engine->ready, QUEUE_READY)) != NULL)
        serve_conn(engine, conn);
}

void tti_engine_tell_dropped(tti_engine *engine, void (*dropped)(void *context, const void *key, size_t bytes), void *context)
{
    engine->dropped = dropped;
    engine->context = context;
}

tti_store_needs *tti_engine_needs(tti_engine *engine)
{
    return &engine->needs;
}

void tti_engine_ends(tti_engine *engine)
{
    engine->ends = true;
}

void tti_engine_drop(tti_engine *engine, tti_engine_conn *conn)
{
    const tti_slice *key = conn->wait.active ? &conn->wait.keys[conn->wait.at] : NULL;
    bool             has_more;

    if (!engine->ends && !conn->open && !conn->closing && tti_hello_awaits_proof(&conn->hello))
        tell_of_leaving(engine, conn);
    if (key != NULL && engine->dropped != NULL)
        engine->dropped(engine->context, key->data, key->size);
    tti_engine_wait_end(engine, conn);
    tti_store_needs_drop(&engine->needs, &conn->n_needs);
    has_more = tti_engine_carry_out(engine, conn);
    queue_remove(&engine->ready, conn, QUEUE_READY);
    queue_remove(&engine->dirty, conn, QUEUE_DIRTY);
    tti_half_open_leave(conn);
    engine->n_conns--;
    engine->input_bytes -= conn->in.size + conn->wire_in.size;
    engine->output_bytes -= conn->out_counted;
    tti_tls_free(conn->tls);
    tti_buffer_release(&conn->in);
    tti_buffer_release(&conn->out);
    tti_buffer_release(&conn->wire_in);
    tti_buffer_release(&conn->wire_out);
    tti_hello_release(&conn->hello);
    free(conn);
    if (has_more) /* who waited for what the will said may have asked more */
        serve_ready(engine);
}

/* Whoever has no more than that is not to blame for a lack of room. */
static size_t fair_input(const tti_engine *engine)
{
    const size_t part = engine->limits.input_bytes_max / 16;

    return part < FAIR_INPUT ? part : FAIR_INPUT;
}

void tti_engine_input(tti_engine *engine, tti_engine_conn *conn, const void *data, size_t bytes)
{
    tutti_status st = TUTTI_OK;

    if (conn->closing)
        return;
    if (engine->input_bytes + bytes > engine->limits.input_bytes_max && conn->in.size + bytes > fair_input(engine))
        st = tti_fail(TUTTI_E_NOMEM, "%zu bytes of incomplete requests, %zu are the most",
                      engine->input_bytes + bytes, engine->limits.input_bytes_max);
    if (st == TUTTI_OK)
        st = tti_buffer_append(conn->tls != NULL ? &conn->wire_in : &conn->in, data, bytes);
    if (st != TUTTI_OK) {
        tti_engine_conn_end(engine, conn);
        return;
    }
    engine->input_bytes += bytes;
    engine->counts.came += bytes;
    tti_engine_conn_ready(engine, conn);
    serve_ready(engine);
}

int64_t tti_engine_deadline(const tti_engine *engine)
{
    const int64_t silent = engine->silent.first != NULL ? engine->silent.first->hello_until_ns : TTI_FOREVER;
    const int64_t spoken = engine->spoken.first != NULL ? engine->spoken.first->hello_until_ns : TTI_FOREVER;

    return silent < spoken ? silent : spoken;
}

static void end_late(tti_engine *engine, int64_t now_ns, const tti_half_open_crowd *crowd)
{
    while (crowd->first != NULL && crowd->first->hello_until_ns <= now_ns) {
        tti_fail(TUTTI_E_TIMEOUT, "no hello within %lld ms",
                 (long long)(engine->limits.hello_ns / TTI_MS));
        tti_engine_conn_end(engine, crowd->first);
    }
}

void tti_engine_tick(tti_engine *engine, int64_t now_ns)
{
    end_late(engine, now_ns, &engine->silent);
    end_late(engine, now_ns, &engine->spoken);
}

tti_engine_conn *tti_engine_next(tti_engine *engine)
{
    tti_engine_conn *conn;

    while ((conn = dequeue(&engine->dirty, QUEUE_DIRTY)) != NULL && conn->tls != NULL && !conn->closing &&
           tti_engine_tls_output(conn) != TUTTI_OK)
        tti_engine_conn_end(engine, conn); /* it comes again, as one that is closing; others first */
    return conn;
}

void *tti_engine_owner(const tti_engine_conn *conn)
{
    return conn->owner;
}

const void *tti_engine_output(const tti_engine_conn *conn, size_t *bytes_out)
{
    const tti_buffer *out = conn->tls != NULL ? &conn->wire_out : &conn->out;

    *bytes_out = conn->closing && !conn->has_last_words ? 0 : out->size;
    return tti_buffer_data(out);
}

void tti_engine_sent(tti_engine *engine, tti_engine_conn *conn, size_t bytes)
{
    const bool was_high = unsent(conn) >= OUT_HIGH;

    tti_buffer_consume(conn->tls != NULL ? &conn->wire_out : &conn->out, bytes);
    tti_engine_count_output(engine, conn);
    engine->counts.went += bytes;
    if (was_high || unsent(conn) > 0)
        tti_engine_conn_dirty(engine, conn);
    if (was_high && unsent(conn) < OUT_HIGH && conn->in.size > 0) {
        tti_engine_conn_ready(engine, conn);
        serve_ready(engine);
    }
}

bool tti_engine_closing(const tti_engine_conn *conn)
{
    return conn->closing;
}

bool tti_engine_reads(const tti_engine_conn *conn)
{
    return !conn->closing && unsent(conn) < OUT_HIGH;
}

tti_engine_counts tti_engine_counted(const tti_engine *engine)
{
    return engine->counts;
}

size_t tti_engine_n_conns(const tti_engine *engine)
{
    return engine->n_conns;
}

size_t tti_engine_n_unproven(const tti_engine *engine)
{
    return tti_half_open_count(engine);
}

size_t tti_engine_n_keys(const tti_engine *engine)
{
    return engine->values.count;
}

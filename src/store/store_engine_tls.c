/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_engine_tls.c - connections of the engine that go through TLS (wire/tls.h).
 *
 *   driver --> wire_in --> TLS --> in --> frames ... replies --> out --> TLS --> wire_out --> driver
 *
 * True    Until its handshake is done such a connection is unproven: it has the time and the number of those without
 *         a hello. What it sends is counted in wire_in and in as in alone without TLS; out is encrypted when the driver
 *         asks for it, so that many replies share a record. */
#include "store/store_engine_conn.h"

#include <errno.h>
#include <string.h>
#include <tutti/private.h>

static bool keep_out(void *context, const void *data, size_t bytes)
{
    tti_engine_conn *conn = context;

    return tti_buffer_append(&conn->wire_out, data, bytes) == TUTTI_OK;
}

static int64_t read_in(void *context, void *out, size_t bytes)
{
    tti_engine_conn *conn = context;

    if (bytes > conn->wire_in.size)
        bytes = conn->wire_in.size;
    if (bytes == 0)
        return -EAGAIN;
    memcpy(out, tti_buffer_data(&conn->wire_in), bytes);
    tti_buffer_consume(&conn->wire_in, bytes);
    return (int64_t)bytes;
}

/* All of one buffer behind another. */
static tutti_status move_all(tti_buffer *from, tti_buffer *to)
{
    const tutti_status st = from->size > 0 ? tti_buffer_append(to, tti_buffer_data(from), from->size) : TUTTI_OK;

    if (st == TUTTI_OK)
        tti_buffer_consume(from, from->size);
    return st;
}

tutti_status tti_engine_tls_begin(tti_engine_conn *conn)
{
    const tti_tls_io io = { .context = conn, .write = keep_out, .read = read_in };
    tutti_status     st = move_all(&conn->in, &conn->wire_in); /* a client does not wait between its hello and this */

    if (st == TUTTI_OK)
        st = move_all(&conn->out, &conn->wire_out); /* what the driver has not counted as gone of the hello */
    if (st == TUTTI_OK)
        st = tti_tls_create(&conn->hello, &io, &conn->tls);
    return st;
}

static tutti_status decrypt(tti_engine_conn *conn)
{
    uint8_t *room;
    int64_t  got;

    for (;;) {
        room = tti_buffer_reserve(&conn->in, TTI_TLS_RECORD_BYTES);
        if (room == NULL)
            return TUTTI_E_NOMEM;
        got = tti_tls_read(conn->tls, room, TTI_TLS_RECORD_BYTES);
        if (got == -EAGAIN)
            return TUTTI_OK;
        if (got == 0)
            return tti_fail(TUTTI_E_NETWORK, "it has nothing more to say");
        if (got < 0)
            return tti_fail_errno_as(TUTTI_E_AUTH, (int)-got, "cannot decrypt what it sent");
        tti_buffer_commit(&conn->in, (size_t)got);
    }
}

tutti_status tti_engine_tls_input(tti_engine *engine, tti_engine_conn *conn, bool *open_out)
{
    const size_t before = conn->wire_in.size + conn->in.size;
    tutti_status st = TUTTI_OK;
    bool         done = conn->open;

    if (!conn->open)
        st = tti_tls_shake(conn->tls, &done);
    conn->has_last_words = st != TUTTI_OK;
    if (conn->wire_out.size > 0)
        tti_engine_conn_dirty(engine, conn);
    if (st == TUTTI_OK && done)
        st = decrypt(conn);
    engine->input_bytes -= before - conn->wire_in.size - conn->in.size; /* what only TLS was for */
    *open_out = st == TUTTI_OK && done;
    return st;
}

tutti_status tti_engine_tls_output(tti_engine_conn *conn)
{
    while (conn->out.size > 0) {
        const size_t  bytes = conn->out.size < TTI_TLS_RECORD_BYTES ? conn->out.size : TTI_TLS_RECORD_BYTES;
        const int64_t n = tti_tls_write(conn->tls, tti_buffer_data(&conn->out), bytes);

        if (n < 0)
            return tti_fail_errno((int)-n, "cannot encrypt %zu bytes", bytes);
        tti_buffer_consume(&conn->out, bytes);
    }
    return TUTTI_OK;
}

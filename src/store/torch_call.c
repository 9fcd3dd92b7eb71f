/* SPDX-License-Identifier: BSD-3-Clause
 *
 * torch_call.c - driving torch_proto.h over the connections of a pool. */
#include "store/torch_call.h"

#include <stdio.h>
#include <string.h>
#include <tutti/private.h>
#include "base/doubt.h"
#include "store/store.h"

/* For the answer to a CANCEL_WAIT: a server that is slower hangs. */

static tutti_status read_reply(tti_tcp_pool *pool, tti_handle handle, tti_torch_reader *reader,
                               int64_t deadline_ns)
{
    tutti_status st = TUTTI_OK;
    size_t       bytes;
    void        *room;

    while (st == TUTTI_OK && (room = tti_torch_reader_room(reader, &bytes)) != NULL) {
        st = tti_io_recv_all(pool->port, handle, room, bytes, pool->who, deadline_ns);
        if (st == TUTTI_OK)
            st = tti_torch_reader_take(reader, bytes);
    }
    return st;
}

/* A PING as the last of the requests in frame; its nonce. */
static tutti_status add_ping(tti_tcp_pool *pool, tti_buffer *frame, uint32_t *nonce_out)
{
    tti_torch_request ping = { .op = TTI_TORCH_PING };

    pool->port->ops->random(pool->port, nonce_out, sizeof *nonce_out);
    ping.number = *nonce_out;
    return tti_torch_request_write(&ping, frame);
}

static tutti_status read_pong(tti_tcp_pool *pool, tti_handle handle, uint32_t nonce,
                              int64_t deadline_ns)
{
    tti_torch_reader reader;
    tutti_status     st;

    tti_torch_reader_begin(&reader, TTI_TORCH_PING, pool->who, NULL);
    st = read_reply(pool, handle, &reader, deadline_ns);
    if (st == TUTTI_OK && reader.number != (int64_t)nonce)
        st = tti_fail(TUTTI_E_STORE, "%s answered the ping %08x with %08x", pool->who, nonce,
                      (uint32_t)reader.number);
    return st;
}

static tutti_status send_frame(tti_tcp_pool *pool, tti_handle handle, const tti_buffer *frame,
                               int64_t deadline_ns)
{
    return tti_io_send_all(pool->port, handle, tti_buffer_data(frame), frame->size, pool->who,
                           deadline_ns);
}

/* Until the caller's deadline: the server looks up the name of each client that it accepts, one after
 * another, and where no name server answers a thousand clients take minutes. */
tutti_status tti_torch_greet(tti_tcp_pool *pool, tti_handle handle, int64_t deadline_ns)
{
    const tti_torch_request validate = { .op = TTI_TORCH_VALIDATE, .number = TTI_TORCH_MAGIC };
    tti_buffer              frame = { .memory = NULL };
    uint32_t                nonce = 0;
    tutti_status            st = tti_torch_request_write(&validate, &frame);

    if (st == TUTTI_OK)
        st = add_ping(pool, &frame, &nonce);
    if (st == TUTTI_OK)
        st = send_frame(pool, handle, &frame, deadline_ns);
    if (st == TUTTI_OK)
        st = read_pong(pool, handle, nonce, deadline_ns);
    tti_buffer_release(&frame);
    if (st == TUTTI_E_NETWORK)
        return tti_fail(st,
                        "%s closed the connection over our greeting\n"
                        "  next: check that the TCPStore of a current PyTorch listens there",
                        pool->who);
    return st;
}

/* The request, with a PING behind it if nothing would come back. */
static tutti_status write_answered(tti_tcp_pool *pool, const tti_torch_request *request,
                                   tti_torch_reader *reader, tti_buffer *frame, uint32_t *nonce_out,
                                   bool *pinged_out)
{
    size_t       bytes;
    tutti_status st = tti_torch_request_write(request, frame);

    *pinged_out = tti_torch_reader_room(reader, &bytes) == NULL;
    return st == TUTTI_OK && *pinged_out ? add_ping(pool, frame, nonce_out) : st;
}

static tutti_status exchange(tti_tcp_pool *pool, tti_handle handle, const tti_torch_request *request,
                             const char *prefix, int64_t deadline_ns, tti_torch_reader *reader)
{
    tti_buffer   frame = { .memory = NULL };
    uint32_t     nonce = 0;
    bool         pinged = false;
    tutti_status st;

    tti_torch_reader_begin(reader, request->op, pool->who, prefix);
    st = write_answered(pool, request, reader, &frame, &nonce, &pinged);
    if (st == TUTTI_OK)
        st = send_frame(pool, handle, &frame, deadline_ns);
    if (st == TUTTI_OK)
        st = pinged ? read_pong(pool, handle, nonce, deadline_ns)
                    : read_reply(pool, handle, reader, deadline_ns);
    if (st != TUTTI_OK)
        tti_torch_reader_release(reader);
    tti_buffer_release(&frame);
    return st;
}

/* Nothing is under way on a connection that did well; all idle ones lead where a lost one led. */
static void give_back(tti_tcp_pool *pool, tti_handle handle, tutti_status st)
{
    if (st == TUTTI_OK) {
        tti_tcp_pool_put(pool, handle);
        return;
    }
    pool->port->ops->close(pool->port, handle);
    if (st == TUTTI_E_NETWORK)
        tti_tcp_pool_close(pool);
}

tutti_status tti_torch_run(tti_tcp_pool *pool, const tti_torch_request *request, const char *prefix,
                           int64_t deadline_ns, tti_torch_reader *reader)
{
    tti_handle   handle = TTI_NO_HANDLE;
    tutti_status st = tti_tcp_pool_take(pool, deadline_ns, &handle);

    if (st != TUTTI_OK)
        return st;
    st = exchange(pool, handle, request, prefix, deadline_ns, reader);
    give_back(pool, handle, st);
    return st;
}

tutti_status tti_torch_run_apart(tti_tcp_pool *pool, const tti_torch_request *request,
                                 const char *prefix, int64_t deadline_ns, tti_torch_reader *reader)
{
    tti_handle   handle = TTI_NO_HANDLE;
    tutti_status st = tti_tcp_pool_open(pool, deadline_ns, &handle);

    if (st != TUTTI_OK)
        return st;
    st = exchange(pool, handle, request, prefix, deadline_ns, reader);
    if (st == TUTTI_OK)
        tti_tcp_pool_put(pool, handle);
    else
        pool->port->ops->close(pool->port, handle);
    return st;
}

/* ---- waiting ---- */

/* Wait for a byte, or the end of the stream. False: neither came in time, or will come, or the wait is to end early. */
static bool byte_comes(tti_tcp_pool *pool, tti_handle handle, int64_t deadline_ns)
{
    tti_poll set = { .handle = handle, .want = TTI_READ };

    while (tti_doubt_poll(pool->port, &set, 1, tti_store_slice(pool->port, deadline_ns)) == 0)
        if (tti_port_now(pool->port) >= deadline_ns || tti_store_stops() || tti_doubt_is_vain())
            return false;
    return true;
}

static tutti_status feed_byte(tti_tcp_pool *pool, tti_handle handle, tti_torch_wait *wait,
                              int64_t deadline_ns)
{
    uint8_t      byte = 0;
    tutti_status st = tti_io_recv_all(pool->port, handle, &byte, 1, pool->who, deadline_ns);

    if (st == TUTTI_OK && !tti_torch_wait_feed(wait, byte))
        st = tti_fail(TUTTI_E_STORE, "%s answered a wait with the byte %u", pool->who, byte);
    return st;
}

static tutti_status send_one(tti_tcp_pool *pool, tti_handle handle, const tti_torch_request *request,
                             int64_t deadline_ns)
{
    tti_buffer   frame = { .memory = NULL };
    tutti_status st = tti_torch_request_write(request, &frame);

    if (st == TUTTI_OK)
        st = send_frame(pool, handle, &frame, deadline_ns);
    tti_buffer_release(&frame);
    return st;
}

/* The time is up: afterwards *wait is over, one way or the other. */
static tutti_status cancel(tti_tcp_pool *pool, tti_handle handle, int64_t deadline_ns, tti_torch_wait *wait)
{
    const tti_torch_request request = { .op = TTI_TORCH_CANCEL_WAIT };
    const int64_t           until = tti_tcp_pool_late_ns(pool, deadline_ns);
    tutti_status            st = send_one(pool, handle, &request, until);

    *wait = TTI_TORCH_CANCELLED;
    while (st == TUTTI_OK && *wait != TTI_TORCH_READY && *wait != TTI_TORCH_LATE)
        st = feed_byte(pool, handle, wait, until);
    return st;
}

static tutti_status wait_on(tti_tcp_pool *pool, tti_handle handle, const tti_torch_request *request,
                            int64_t deadline_ns, bool *late_out)
{
    const int64_t  until = tti_port_now(pool->port) + TTI_TORCH_ANSWER_NS;
    tti_torch_wait wait = TTI_TORCH_WAITING;
    tutti_status   st = send_one(pool, handle, request, until);

    if (st == TUTTI_OK && byte_comes(pool, handle, deadline_ns))
        st = feed_byte(pool, handle, &wait, TTI_FOREVER);
    else if (st == TUTTI_OK)
        st = tti_doubt_is_vain() ? tti_doubt_fail(pool->who) : cancel(pool, handle, deadline_ns, &wait);
    *late_out = st == TUTTI_OK && wait == TTI_TORCH_LATE;
    return st;
}

tutti_status tti_torch_run_wait(tti_tcp_pool *pool, const tti_torch_request *request,
                                int64_t deadline_ns, bool *late_out)
{
    const int64_t until = tti_port_now(pool->port) + TTI_TORCH_ANSWER_NS;
    tti_handle    handle = TTI_NO_HANDLE;
    tutti_status  st = tti_tcp_pool_take(pool, until, &handle);

    *late_out = false;
    if (st != TUTTI_OK)
        return st;
    st = wait_on(pool, handle, request, deadline_ns, late_out);
    give_back(pool, handle, st);
    return *late_out ? TUTTI_E_TIMEOUT : st;
}

/* ---- several at once ---- */

static tutti_status read_values(tti_tcp_pool *pool, tti_handle handle,
                                const tti_torch_request *requests, size_t n, int64_t deadline_ns,
                                tutti_bytes *values_out)
{
    tti_torch_reader reader;
    tutti_status     st = TUTTI_OK;
    size_t           i, got;

    for (got = 0; got < n && st == TUTTI_OK; got++) {
        tti_torch_reader_begin(&reader, requests[got].op, pool->who, NULL);
        st = read_reply(pool, handle, &reader, deadline_ns);
        values_out[got] = reader.value;
    }
    for (i = 0; i < got && st != TUTTI_OK; i++)
        tutti_bytes_free(&values_out[i]);
    return st;
}

tutti_status tti_torch_run_batch(tti_tcp_pool *pool, const tti_torch_request *requests, size_t n,
                                 int64_t deadline_ns, tutti_bytes *values_out)
{
    tti_handle   handle = TTI_NO_HANDLE;
    tti_buffer   frame = { .memory = NULL };
    tutti_status st = tti_tcp_pool_take(pool, deadline_ns, &handle);
    size_t       i;

    if (st != TUTTI_OK)
        return st;
    for (i = 0; i < n && st == TUTTI_OK; i++)
        st = tti_torch_request_write(&requests[i], &frame);
    if (st == TUTTI_OK)
        st = send_frame(pool, handle, &frame, deadline_ns);
    if (st == TUTTI_OK)
        st = read_values(pool, handle, requests, n, deadline_ns, values_out);
    tti_buffer_release(&frame);
    give_back(pool, handle, st);
    return st;
}

/* ---- is it there? ---- */

/* The greeting is a question with an answer. Its words, if it fails, must not cover those of the
 * failure that made the caller ask. */
bool tti_torch_alive(tti_tcp_pool *pool)
{
    const int64_t until = tti_port_now(pool->port) + TTI_TORCH_ANSWER_NS;
    tti_handle    handle = TTI_NO_HANDLE;
    char          words[1024];
    tutti_status  st;

    snprintf(words, sizeof words, "%s", tutti_last_error());
    st = tti_tcp_pool_open(pool, until, &handle);
    if (st == TUTTI_OK)
        tti_tcp_pool_put(pool, handle);
    else
        tti_fail(TUTTI_E_NETWORK, "%s", words);
    return st == TUTTI_OK;
}

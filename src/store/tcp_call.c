/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tcp_call.c - greetings, requests and replies of the client; the design stands in tcp_call.h. */
#include "store/tcp_call.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "base/doubt.h"
#include "store/store.h"
#include "store/store_value.h"
#include "wire/bytes.h"
#include "wire/hello.h"
#include "wire/ports.h"

enum { ADDRS_MAX = 16, WHAT_MAX = sizeof((tti_tcp_pool *)NULL)->who + 16 };

static tutti_status suffices(const tti_tcp_pool *pool, const tti_addr *here)
{
    char what[WHAT_MAX];

    snprintf(what, sizeof what, "speak to %s", pool->who);
    return tti_secret_suffices(&pool->secret, here, what);
}

/* Both ends of a connection are loopback, or neither is. */
static tutti_status check_secret(const tti_tcp_pool *pool, tti_handle handle)
{
    tti_addr here;
    int      err;

    if (pool->secret.present)
        return TUTTI_OK;
    err = pool->port->ops->local_addr(pool->port, handle, &here);
    if (err != 0)
        return tti_fail_errno(-err, "cannot tell through which address %s is reached", pool->who);
    return suffices(pool, &here);
}

/* From where one would be reached; false: perhaps from loopback, or nobody knows. */
static bool is_far(tti_port *port, const tti_addr *addr, tti_addr *here_out)
{
    return !tti_addr_is_loopback(addr) && port->ops->route != NULL && port->ops->route(port, addr, here_out) == 0 &&
           !tti_addr_is_loopback(here_out);
}

tutti_status tti_tcp_may_greet(const tti_tcp_pool *pool)
{
    tti_port *port = pool->port;
    tti_addr  addrs[ADDRS_MAX], here;
    bool      any = false;
    int       n = 0, i;

    if (pool->secret.present || tti_listens_any(&any) != TUTTI_OK || any || /* then it is looked for on loopback, too */
        port->ops->resolve(port, pool->host, pool->tcp_port, addrs, ADDRS_MAX, &n) != TUTTI_OK)
        return TUTTI_OK;
    for (i = 0; i < n; i++)
        if (!is_far(port, &addrs[i], &here))
            return TUTTI_OK;
    return n > 0 ? suffices(pool, &here) : TUTTI_OK;
}

static tutti_status hear_answer(tti_tcp_pool *pool, tti_handle handle, int64_t deadline_ns);

tutti_status tti_tcp_greet(tti_tcp_pool *pool, tti_handle handle, int64_t deadline_ns)
{
    const tti_hello_config config = { .client = true,
                                      .purpose = TTI_PURPOSE_STORE,
                                      .rank = TTI_HELLO_NO_RANK,
                                      .secret = &pool->secret,
                                      .peer = pool->who };
    const int64_t          most = tti_deadline(pool->port, TTI_TCP_ANSWER_MS, 0);
    const int64_t          until = most < deadline_ns ? most : deadline_ns;
    tutti_status           st = check_secret(pool, handle);

    if (st == TUTTI_OK)
        st = tti_hello_run(pool->port, handle, &config, until, NULL);
    if (st == TUTTI_OK && pool->secret.seal == TTI_SEAL_NONE)
        st = hear_answer(pool, handle, until);
    if (st == TUTTI_OK) /* it has accepted by now, so that the kernel knows whose it is */
        st = tti_secret_check_user(&pool->secret, pool->port, handle, pool->who);
    return st;
}

/* What this thread needs the store for, and has not said yet. It goes in front of the next request, on that one's connection: so
 * the server has it before anything of that is asked, and before it can hear that it is over. */
static _Thread_local struct {
    const tti_tcp_pool *pool;
    const char         *key; /* NULL: nothing */
} needed;

void tti_tcp_call_need(const tti_tcp_pool *pool, const char *key)
{
    needed.pool = pool;
    needed.key = key;
}

bool tti_tcp_call_need_not(void)
{
    const bool was_there = needed.key != NULL;

    needed.key = NULL;
    return was_there;
}

static tutti_status write_need(tti_tcp_pool *pool, const char *key, tti_buffer *frame)
{
    tti_tcp_call call;
    tti_tcp_key  room;

    tti_tcp_call_begin(&call, pool, TTI_STORE_NEED, key, TTI_FOREVER);
    tti_tcp_call_key(&call, key, &room);
    call.request.id = atomic_fetch_add(&pool->next_id, 1) + 1;
    call.request.number = 1;
    return tti_store_request_write(&call.request, frame);
}

/* Send a request, or the CANCEL of one. */
static tutti_status send_request(tti_tcp_call *call, const tti_store_request *request,
                                 int64_t deadline_ns)
{
    tti_buffer   frame = { .memory = NULL };
    tutti_status st = TUTTI_OK;

    if (needed.key != NULL && needed.pool == call->pool) {
        st = write_need(call->pool, needed.key, &frame);
        needed.key = NULL;
    }
    if (st == TUTTI_OK)
        st = tti_store_request_write(request, &frame);
    if (st == TUTTI_OK)
        st = tti_io_send_all(call->pool->port, call->handle, tti_buffer_data(&frame), frame.size,
                             call->pool->who, deadline_ns);
    tti_buffer_release(&frame);
    return st;
}

static bool waits(const tti_tcp_call *call)
{
    const tti_store_op op = call->request.op;

    return op == TTI_STORE_GET || op == TTI_STORE_WAIT || op == TTI_STORE_MULTI_GET ||
           op == TTI_STORE_QUEUE_POP;
}

/* Wait for the first byte of the reply, or the end of the stream. False: neither came in time, or will come, or the wait, if
 * it heeds that, is to end early. */
static bool reply_begins(tti_tcp_call *call, int64_t deadline_ns, bool heeds)
{
    tti_port *port = call->pool->port;
    tti_poll  set = { .handle = call->handle, .want = TTI_READ };

    while (tti_doubt_poll(port, &set, 1, tti_store_slice(port, deadline_ns)) == 0)
        if (tti_port_now(port) >= deadline_ns || (heeds && tti_store_stops()) || tti_doubt_is_vain())
            return false;
    return true;
}

static bool fits(const tti_tcp_call *call)
{
    return call->head.op == call->request.op && call->head.id == call->request.id;
}

static tutti_status read_reply(tti_tcp_call *call, int64_t deadline_ns)
{
    tti_tcp_pool *pool = call->pool;
    uint8_t       head[TTI_STORE_HEAD_BYTES];
    char         *body;
    tutti_status  st;

    st = tti_io_recv_all(pool->port, call->handle, head, sizeof head, pool->who, deadline_ns);
    if (st == TUTTI_OK)
        st = tti_store_head_read(head, false, &call->head);
    if (st == TUTTI_OK && !fits(call))
        st = tti_fail(TUTTI_E_STORE, "%s answered '%s' #%u with '%s' #%u", pool->who,
                      tti_store_op_name(call->request.op), call->request.id,
                      tti_store_op_name(call->head.op), call->head.id);
    if (st != TUTTI_OK)
        return st;
    body = malloc((size_t)call->head.size + 1);
    if (body == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a reply of %u bytes", call->head.size);
    st = tti_io_recv_all(pool->port, call->handle, body, call->head.size, pool->who, deadline_ns);
    if (st != TUTTI_OK) {
        free(body);
        return st;
    }
    body[call->head.size] = '\0';
    call->body = (tutti_bytes){ .data = body, .size = call->head.size };
    return TUTTI_OK;
}

/* A client is done with its hello when its proof is sent, and may be pushed out by a flood before that is read. The answer to a
 * question that changes nothing shows that it was: until then a connection that is lost is one that was never made, and
 * may be tried again. With TLS the server has said so already (wire/tls.h). */
static tutti_status hear_answer(tti_tcp_pool *pool, tti_handle handle, int64_t deadline_ns)
{
    tti_tcp_call call;
    tutti_status st;

    tti_tcp_call_begin(&call, pool, TTI_STORE_NUM_KEYS, NULL, deadline_ns);
    call.handle = handle;
    call.request.id = atomic_fetch_add(&pool->next_id, 1) + 1;
    st = send_request(&call, &call.request, deadline_ns);
    if (st == TUTTI_OK)
        st = read_reply(&call, deadline_ns);
    tutti_bytes_free(&call.body);
    return st;
}

/* The time of a request that waits is up. Afterwards call has the one reply that comes in any case. */
static tutti_status cancel(tti_tcp_call *call)
{
    const tti_store_request request = { .op = TTI_STORE_CANCEL, .id = call->request.id };
    const int64_t           until = tti_tcp_pool_late_ns(call->pool, call->deadline_ns);
    tutti_status            st = send_request(call, &request, until);

    if (st != TUTTI_OK)
        return st;
    if (!reply_begins(call, until, false))
        return tti_fail(TUTTI_E_TIMEOUT, "%s stopped answering during '%s'", call->pool->who,
                        tti_store_op_name(call->request.op));
    return read_reply(call, until);
}

static int64_t ms_since_start(const tti_tcp_call *call)
{
    return (tti_port_now(call->pool->port) - call->start_ns) / TTI_MS;
}

/* A reply that has begun comes whole, or the connection is lost. */
static int64_t rest_deadline(const tti_tcp_call *call)
{
    const int64_t most = tti_deadline(call->pool->port, TUTTI_STORE_TIMEOUT_MS, 0);
    const int64_t grace_ns = tti_tcp_pool_grace_ns(call->pool);

    return call->deadline_ns < most - grace_ns ? call->deadline_ns + grace_ns : most;
}

static tutti_status exchange(tti_tcp_call *call)
{
    tutti_status st = send_request(call, &call->request, call->deadline_ns);

    if (st != TUTTI_OK)
        return st;
    if (!reply_begins(call, call->deadline_ns, waits(call))) {
        if (tti_doubt_is_vain())
            return tti_doubt_fail(call->pool->who);
        if (waits(call))
            return cancel(call);
        return tti_fail(TUTTI_E_TIMEOUT, "%s did not answer '%s' within %" PRId64 " ms",
                        call->pool->who, tti_store_op_name(call->request.op), ms_since_start(call));
    }
    return read_reply(call, rest_deadline(call));
}

/* What the server said went wrong, on a connection that is fine. */
static tutti_status refused(const tti_tcp_call *call)
{
    const tutti_status st = (tutti_status)call->head.status;

    if (st == TUTTI_E_EMPTY)
        return tti_store_queue_empty(call->key);
    if (st == TUTTI_E_TIMEOUT && call->request.op == TTI_STORE_QUEUE_POP)
        return tti_store_pop_timed_out(call->pool->port, call->key, call->start_ns);
    if (st == TUTTI_E_TIMEOUT)
        return tti_fail(st, "key '%s' did not come within %" PRId64 " ms (%s)", call->key,
                        ms_since_start(call), call->pool->who);
    return tti_fail(st == TUTTI_E_NOMEM ? st : TUTTI_E_STORE, "%s: %s", call->pool->who,
                    (const char *)call->body.data);
}

/* On the call's connection, which is closed if that fails. */
static tutti_status run_on(tti_tcp_call *call)
{
    tti_tcp_pool *pool = call->pool;
    tutti_status  st;

    call->request.id = atomic_fetch_add(&pool->next_id, 1) + 1;
    st = exchange(call);
    if (st == TUTTI_OK)
        return st;
    pool->port->ops->close(pool->port, call->handle);
    tti_tcp_pool_close(pool);
    return st;
}

tutti_status tti_tcp_call_say(tti_tcp_call *call)
{
    tti_tcp_pool *pool = call->pool;
    tutti_status  st = tti_tcp_pool_take(pool, call->deadline_ns, &call->handle);

    if (st != TUTTI_OK)
        return st;
    st = send_request(call, &call->request, call->deadline_ns);
    if (st == TUTTI_OK) {
        tti_tcp_pool_put_back(pool, call->handle, call->led);
        return TUTTI_OK;
    }
    pool->port->ops->close(pool->port, call->handle);
    tti_tcp_pool_close(pool);
    return st;
}

static tutti_status take_status(tti_tcp_call *call)
{
    tutti_status st;

    if (call->head.status == TUTTI_OK)
        return TUTTI_OK;
    st = refused(call);
    tutti_bytes_free(&call->body);
    return st;
}

tutti_status tti_tcp_call_run(tti_tcp_call *call)
{
    tutti_status st = tti_tcp_pool_take(call->pool, call->deadline_ns, &call->handle);

    if (st == TUTTI_OK)
        st = run_on(call);
    if (st != TUTTI_OK)
        return st;
    tti_tcp_pool_put_back(call->pool, call->handle, call->led);
    return take_status(call);
}

tutti_status tti_tcp_call_keep(tti_tcp_call *call)
{
    tutti_status st = TUTTI_OK;

    if (call->handle == TTI_NO_HANDLE)
        st = tti_tcp_pool_take(call->pool, call->deadline_ns, &call->handle);
    if (st == TUTTI_OK)
        st = run_on(call);
    if (st != TUTTI_OK)
        return st;
    st = take_status(call);
    if (st != TUTTI_OK)
        tti_tcp_pool_put_back(call->pool, call->handle, call->led);
    return st;
}

void tti_tcp_call_begin(tti_tcp_call *call, tti_tcp_pool *pool, tti_store_op op, const char *key,
                        int64_t deadline_ns)
{
    call->pool = pool;
    call->handle = TTI_NO_HANDLE;
    call->led = atomic_load(&pool->led);
    call->key = key;
    call->start_ns = tti_port_now(pool->port);
    call->deadline_ns = deadline_ns;
    call->body = (tutti_bytes){ .data = NULL };
    call->request.op = op;
    call->request.n_keys = 0;
    call->request.number = 0;
    call->request.value = call->request.expected = (tti_slice){ .size = 0 };
}

void tti_tcp_call_key(tti_tcp_call *call, const char *key, tti_tcp_key *room)
{
    const size_t size = strlen(key);

    room->text[0] = '/';
    memcpy(room->text + 1, key, size);
    call->request.keys[call->request.n_keys++] =
        (tti_slice){ .data = room->text, .size = size + 1 };
}

tutti_status tti_tcp_call_value(tti_tcp_call *call, tutti_bytes *val_out)
{
    const tutti_status st = tti_tcp_call_run(call);

    if (st == TUTTI_OK)
        *val_out = call->body;
    return st;
}

tutti_status tti_tcp_call_number(tti_tcp_call *call, size_t bytes, int64_t *out)
{
    tutti_status st = tti_tcp_call_run(call);

    if (st != TUTTI_OK)
        return st;
    if (call->body.size != bytes)
        st = tti_fail(TUTTI_E_STORE, "%s answered '%s' with %zu bytes instead of %zu",
                      call->pool->who, tti_store_op_name(call->request.op), call->body.size, bytes);
    else if (out != NULL)
        *out = (int64_t)tti_get_uint(call->body.data, bytes);
    tutti_bytes_free(&call->body);
    return st;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_serve.c - what requests do to the engine's map, and the lists of those who wait for keys.
 *
 * How     `waiters` has, for each key that somebody misses, the first connection of a doubly linked
 *         list. A connection waits for one key at a time: when that comes it goes on to the next
 *         one it misses, and once past the last it looks at all of them again, because an earlier
 *         one may have been deleted meanwhile. */
#include "store/store_engine_conn.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "store/store_value.h"
#include "wire/bytes.h"

static tutti_status reply(tti_engine *engine, tti_engine_conn *conn, tti_store_op op, uint32_t id,
                          const void *body, size_t size)
{
    tti_engine_conn_dirty(engine, conn);
    return tti_store_reply_write(op, id, TUTTI_OK, body, size, &conn->out);
}

/* The request failed, the connection goes on: its status and this thread's words are the answer. */
static tutti_status reply_failure(tti_engine *engine, tti_engine_conn *conn, tti_store_op op,
                                  uint32_t id, tutti_status status)
{
    const char *words = tutti_last_error();

    tti_engine_conn_dirty(engine, conn);
    return tti_store_reply_write(op, id, status, words, strnlen(words, TTI_STORE_WORDS_MAX),
                                 &conn->out);
}

static void wait_link(tti_engine_conn *conn, tti_engine_conn *first)
{
    conn->wait.prev = NULL;
    conn->wait.next = first;
    if (first != NULL)
        first->wait.prev = conn;
}

/* Take conn out of the list of the key it waits for. Cannot fail: the map entry keeps its size. */
static void wait_unlink(tti_engine *engine, tti_engine_conn *conn)
{
    const tti_slice key = conn->wait.keys[conn->wait.at];

    if (conn->wait.next != NULL)
        conn->wait.next->wait.prev = conn->wait.prev;
    if (conn->wait.prev != NULL)
        conn->wait.prev->wait.next = conn->wait.next;
    else if (conn->wait.next != NULL)
        tti_map_put_ptr(&engine->waiters, key.data, key.size, conn->wait.next);
    else
        tti_map_delete(&engine->waiters, key.data, key.size);
}

static void wait_clear(tti_engine_conn *conn)
{
    free(conn->wait.block);
    conn->wait = (conn_wait){ .active = false };
}

void tti_engine_wait_end(tti_engine *engine, tti_engine_conn *conn)
{
    if (!conn->wait.active)
        return;
    wait_unlink(engine, conn);
    wait_clear(conn);
}

static bool has(const tti_engine *engine, tti_slice key)
{
    return tti_map_get(&engine->values, key.data, key.size, NULL, NULL);
}

/* The first key that is missing, looked for from `at` on, then from the start; n: none. */
static uint32_t missing_from(const tti_engine *engine, const tti_slice *keys, uint32_t n,
                             uint32_t at)
{
    uint32_t i;

    for (i = at; i < n; i++)
        if (!has(engine, keys[i]))
            return i;
    for (i = 0; i < at; i++)
        if (!has(engine, keys[i]))
            return i;
    return n;
}

static tutti_status reply_value(tti_engine *engine, tti_engine_conn *conn, tti_store_op op,
                                uint32_t id, tti_slice key)
{
    const void *val = NULL;
    size_t      size = 0;

    if (op == TTI_STORE_GET)
        tti_map_get(&engine->values, key.data, key.size, &val, &size);
    return reply(engine, conn, op, id, val, size);
}

/* conn is in no list; go on with its wait: stand in the next list, or answer. */
static tutti_status wait_advance(tti_engine *engine, tti_engine_conn *conn)
{
    conn_wait      *wait = &conn->wait;
    const uint32_t  at = missing_from(engine, wait->keys, wait->n_keys, wait->at);
    const tti_slice key = wait->keys[at < wait->n_keys ? at : 0];
    tutti_status    st;

    if (at < wait->n_keys) {
        tti_engine_conn *first = tti_map_get_ptr(&engine->waiters, key.data, key.size);

        st = tti_map_put_ptr(&engine->waiters, key.data, key.size, conn);
        if (st != TUTTI_OK) {
            wait_clear(conn);
            return st;
        }
        wait->at = at;
        wait_link(conn, first);
        return TUTTI_OK;
    }
    st = reply_value(engine, conn, wait->op, wait->id, key);
    wait_clear(conn);
    tti_engine_conn_ready(engine, conn); /* there may be input behind the wait */
    return st;
}

/* key has come: everybody in its list goes on. None of them can come back to it. */
static void wake(tti_engine *engine, tti_slice key)
{
    tti_engine_conn *conn = tti_map_get_ptr(&engine->waiters, key.data, key.size);

    tti_map_delete(&engine->waiters, key.data, key.size);
    while (conn != NULL) {
        tti_engine_conn *next = conn->wait.next;

        if (wait_advance(engine, conn) != TUTTI_OK)
            tti_engine_conn_end(engine, conn);
        conn = next;
    }
}

/* Copy the keys of a request that has to wait. */
static tutti_status wait_begin(tti_engine_conn *conn, const tti_store_request *request)
{
    const size_t table = request->n_keys * sizeof(tti_slice);
    size_t       bytes = table;
    uint8_t     *at;
    uint32_t     i;

    for (i = 0; i < request->n_keys; i++)
        bytes += request->keys[i].size;
    at = malloc(bytes);
    if (at == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to wait for %u keys", request->n_keys);
    conn->wait = (conn_wait){ .active = true,
                              .op = request->op,
                              .id = request->id,
                              .n_keys = request->n_keys,
                              .block = at,
                              .keys = (tti_slice *)at };
    at += table;
    for (i = 0; i < request->n_keys; i++) {
        memcpy(at, request->keys[i].data, request->keys[i].size);
        conn->wait.keys[i] = (tti_slice){ .data = at, .size = request->keys[i].size };
        at += request->keys[i].size;
    }
    return TUTTI_OK;
}

static tutti_status serve_wait(tti_engine *engine, tti_engine_conn *conn,
                               const tti_store_request *request)
{
    tutti_status st;

    if (missing_from(engine, request->keys, request->n_keys, 0) == request->n_keys)
        return reply_value(engine, conn, request->op, request->id, request->keys[0]);
    st = wait_begin(conn, request);
    return st == TUTTI_OK ? wait_advance(engine, conn) : st;
}

static tutti_status serve_cancel(tti_engine *engine, tti_engine_conn *conn, uint32_t id)
{
    const tti_store_op op = conn->wait.op;

    if (!conn->wait.active || conn->wait.id != id)
        return TUTTI_OK; /* its reply crossed the CANCEL */
    tti_engine_wait_end(engine, conn);
    return reply_failure(engine, conn, op, id,
                         tti_fail(TUTTI_E_TIMEOUT, "cancelled by the client"));
}

/* Whether so many bytes more fit; deleting makes room again. */
static tutti_status check_room(const tti_engine *engine, tti_slice key, size_t bytes)
{
    if (engine->values.bytes + key.size + bytes > engine->limits.stored_bytes_max)
        return tti_fail(TUTTI_E_STORE, "the store is full: %zu of %zu bytes are in use",
                        engine->values.bytes, engine->limits.stored_bytes_max);
    return TUTTI_OK;
}

static tutti_status serve_set(tti_engine *engine, tti_engine_conn *conn,
                              const tti_store_request *request)
{
    const tti_slice key = request->keys[0];
    tutti_status    st = check_room(engine, key, request->value.size);

    if (st == TUTTI_OK)
        st = tti_map_put(&engine->values, key.data, key.size, request->value.data,
                         request->value.size);
    if (st != TUTTI_OK)
        return reply_failure(engine, conn, request->op, request->id, st);
    wake(engine, key);
    return reply(engine, conn, request->op, request->id, NULL, 0);
}

static tutti_status serve_add(tti_engine *engine, tti_engine_conn *conn,
                              const tti_store_request *request)
{
    const tti_slice key = request->keys[0];
    char            shown[64];
    uint8_t         body[8];
    int64_t         sum = 0;
    tutti_status    st = check_room(engine, key, TTI_STORE_NUMBER_MAX);
    const size_t    skip =
        key.size > 1 ? 1 : 0; /* the byte that the client put before the user's key */
    const size_t n = key.size - skip < sizeof shown ? key.size - skip : sizeof shown - 1;

    memcpy(shown, (const char *)key.data + skip, n);
    shown[n] = '\0';
    if (st == TUTTI_OK)
        st = tti_store_map_add(&engine->values, key.data, key.size, request->delta, shown, &sum);
    if (st != TUTTI_OK)
        return reply_failure(engine, conn, request->op, request->id, st);
    wake(engine, key);
    tti_put_u64(body, (uint64_t)sum);
    return reply(engine, conn, request->op, request->id, body, sizeof body);
}

static tutti_status serve_compare_set(tti_engine *engine, tti_engine_conn *conn,
                                      const tti_store_request *request)
{
    const tti_slice key = request->keys[0];
    const void     *val = NULL;
    size_t          size = 0;
    bool            changed = false;
    tutti_status    st = check_room(engine, key, request->value.size);

    if (st == TUTTI_OK)
        st = tti_store_map_compare_set(&engine->values, key.data, key.size, request->expected.data,
                                       request->expected.size, request->value.data,
                                       request->value.size, &val, &size, &changed);
    if (st != TUTTI_OK)
        return reply_failure(engine, conn, request->op, request->id, st);
    st = reply(engine, conn, request->op, request->id, val, size);
    if (changed)
        wake(engine, key);
    return st;
}

static tutti_status reply_u8(tti_engine *engine, tti_engine_conn *conn,
                             const tti_store_request *request, bool yes)
{
    const uint8_t body = yes;

    return reply(engine, conn, request->op, request->id, &body, sizeof body);
}

static tutti_status serve_num_keys(tti_engine *engine, tti_engine_conn *conn,
                                   const tti_store_request *request)
{
    uint8_t body[8];

    tti_put_u64(body, engine->values.count);
    return reply(engine, conn, request->op, request->id, body, sizeof body);
}

tutti_status tti_engine_serve(tti_engine *engine, tti_engine_conn *conn,
                              const tti_store_request *request)
{
    const tti_slice key = request->keys[0];

    if (conn->wait.active && request->op != TTI_STORE_CANCEL)
        return tti_fail(TUTTI_E_STORE, "'%s' came while '%s' was waiting",
                        tti_store_op_name(request->op), tti_store_op_name(conn->wait.op));
    switch (request->op) {
    case TTI_STORE_SET: return serve_set(engine, conn, request);
    case TTI_STORE_GET:
    case TTI_STORE_WAIT: return serve_wait(engine, conn, request);
    case TTI_STORE_ADD: return serve_add(engine, conn, request);
    case TTI_STORE_CHECK:
        return reply_u8(engine, conn, request,
                        missing_from(engine, request->keys, request->n_keys, 0) == request->n_keys);
    case TTI_STORE_COMPARE_SET: return serve_compare_set(engine, conn, request);
    case TTI_STORE_DELETE:
        return reply_u8(engine, conn, request, tti_map_delete(&engine->values, key.data, key.size));
    case TTI_STORE_NUM_KEYS: return serve_num_keys(engine, conn, request);
    case TTI_STORE_CANCEL: return serve_cancel(engine, conn, request->id);
    case TTI_STORE_OP_END: break;
    }
    return tti_fail(TUTTI_E_STORE, "unknown operation %d", (int)request->op);
}

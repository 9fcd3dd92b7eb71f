/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_wait.c - the connections that wait, and what ends their wait.
 *
 * How     Two maps have, for each key that somebody misses, the first connection of a circle, the
 *         one that has waited longest: `waiters` for GET, WAIT and MULTI_GET, `poppers` for
 *         QUEUE_POP. A connection waits for one key at a time: when that comes it goes on to the
 *         next one it misses, and once past the last it looks at all of them again, because an
 *         earlier one may have been deleted meanwhile.
 * True    Where a connection stands in `poppers` the queue of that key is empty: a value that is
 *         pushed goes straight to the first of them. */
#include "store/store_engine_conn.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "wire/bytes.h"

static tti_map *list_of(tti_engine *engine, const tti_engine_conn *conn)
{
    return conn->wait.op == TTI_STORE_QUEUE_POP ? &engine->poppers : &engine->waiters;
}

/* Put conn at the end of the circle of the key it waits for. */
static tutti_status wait_link(tti_engine *engine, tti_engine_conn *conn)
{
    const tti_slice  key = conn->wait.keys[conn->wait.at];
    tti_map         *list = list_of(engine, conn);
    tti_engine_conn *first = tti_map_get_ptr(list, key.data, key.size);

    if (first == NULL) {
        conn->wait.prev = conn->wait.next = conn;
        return tti_map_put_ptr(list, key.data, key.size, conn);
    }
    conn->wait.next = first;
    conn->wait.prev = first->wait.prev;
    conn->wait.prev->wait.next = first->wait.prev = conn;
    return TUTTI_OK;
}

/* Take conn out of it. Cannot fail: the map entry keeps its size. */
static void wait_unlink(tti_engine *engine, tti_engine_conn *conn)
{
    const tti_slice key = conn->wait.keys[conn->wait.at];
    tti_map        *list = list_of(engine, conn);

    if (conn->wait.next == conn) {
        tti_map_delete(list, key.data, key.size);
        return;
    }
    conn->wait.next->wait.prev = conn->wait.prev;
    conn->wait.prev->wait.next = conn->wait.next;
    if (tti_map_get_ptr(list, key.data, key.size) == conn)
        tti_map_put_ptr(list, key.data, key.size, conn->wait.next);
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

/* Whether key ends a wait of kind op: a value, or, where none is asked for, also a queue. */
static bool has(const tti_engine *engine, tti_store_op op, tti_slice key)
{
    return tti_map_get(&engine->values, key.data, key.size, NULL, NULL) ||
           ((op == TTI_STORE_WAIT || op == TTI_STORE_CHECK) &&
            tti_store_queues_len(&engine->queues, key.data, key.size) > 0);
}

uint32_t tti_engine_missing(const tti_engine *engine, tti_store_op op, const tti_slice *keys,
                            uint32_t n, uint32_t at)
{
    uint32_t i;

    for (i = at; i < n; i++)
        if (!has(engine, op, keys[i]))
            return i;
    for (i = 0; i < at; i++)
        if (!has(engine, op, keys[i]))
            return i;
    return n;
}

/* As many values as fit, at least one. */
static tutti_status reply_values(tti_engine *engine, tti_engine_conn *conn, uint32_t id,
                                 const tti_slice *keys, uint32_t n_keys)
{
    tti_buffer   body = { .memory = NULL };
    uint8_t      word[4] = { 0 };
    const void  *val = NULL;
    size_t       size = 0, total = 0;
    uint32_t     m = 0;
    tutti_status st = tti_buffer_append(&body, word, sizeof word);

    for (; st == TUTTI_OK && m < n_keys; m++) {
        tti_map_get(&engine->values, keys[m].data, keys[m].size, &val, &size);
        total += size;
        if (m > 0 && total > TUTTI_STORE_VALUE_MAX)
            break;
        tti_put_u32(word, (uint32_t)size);
        st = tti_buffer_append(&body, word, sizeof word);
        if (st == TUTTI_OK)
            st = tti_buffer_append(&body, val, size);
    }
    if (st == TUTTI_OK) {
        tti_put_u32(body.memory + body.start, m);
        st = tti_engine_reply(engine, conn, TTI_STORE_MULTI_GET, id, tti_buffer_data(&body),
                              body.size);
    }
    tti_buffer_release(&body);
    return st;
}

/* The answer to a wait whose keys are all there. */
static tutti_status reply_found(tti_engine *engine, tti_engine_conn *conn, tti_store_op op,
                                uint32_t id, const tti_slice *keys, uint32_t n_keys)
{
    const void *val = NULL;
    size_t      size = 0;

    if (op == TTI_STORE_MULTI_GET)
        return reply_values(engine, conn, id, keys, n_keys);
    if (op == TTI_STORE_GET)
        tti_map_get(&engine->values, keys[0].data, keys[0].size, &val, &size);
    return tti_engine_reply(engine, conn, op, id, val, size);
}

/* conn is in no list; go on with its wait: stand in the next list, or answer. */
static tutti_status wait_advance(tti_engine *engine, tti_engine_conn *conn)
{
    conn_wait     *wait = &conn->wait;
    const uint32_t at = tti_engine_missing(engine, wait->op, wait->keys, wait->n_keys, wait->at);
    tutti_status   st;

    if (at < wait->n_keys) {
        wait->at = at;
        st = wait_link(engine, conn);
        if (st != TUTTI_OK)
            wait_clear(conn);
        return st;
    }
    st = reply_found(engine, conn, wait->op, wait->id, wait->keys, wait->n_keys);
    wait_clear(conn);
    tti_engine_conn_ready(engine, conn); /* there may be input behind the wait */
    return st;
}

void tti_engine_wake(tti_engine *engine, tti_slice key)
{
    tti_engine_conn *conn = tti_map_get_ptr(&engine->waiters, key.data, key.size);

    if (conn == NULL)
        return;
    /* Those who still miss it, a value where a queue came, stand in a new circle afterwards. */
    tti_map_delete(&engine->waiters, key.data, key.size);
    conn->wait.prev->wait.next = NULL;
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

tutti_status tti_engine_serve_wait(tti_engine *engine, tti_engine_conn *conn,
                                   const tti_store_request *request)
{
    tutti_status st;

    if (tti_engine_missing(engine, request->op, request->keys, request->n_keys, 0) ==
        request->n_keys)
        return reply_found(engine, conn, request->op, request->id, request->keys, request->n_keys);
    st = wait_begin(conn, request);
    return st == TUTTI_OK ? wait_advance(engine, conn) : st;
}

tutti_status tti_engine_serve_pop(tti_engine *engine, tti_engine_conn *conn,
                                  const tti_store_request *request)
{
    const tti_slice key = request->keys[0];
    const void     *val;
    size_t          size;
    tutti_status    st;

    if (tti_store_queues_front(&engine->queues, key.data, key.size, &val, &size)) {
        st = tti_engine_reply(engine, conn, request->op, request->id, val, size);
        if (st == TUTTI_OK)
            tti_store_queues_drop(&engine->queues, key.data, key.size);
        return st;
    }
    if (request->number == 0)
        return tti_engine_reply_failure(engine, conn, request->op, request->id,
                                        tti_fail(TUTTI_E_EMPTY, "the queue is empty"));
    st = wait_begin(conn, request);
    if (st != TUTTI_OK)
        return st;
    st = wait_link(engine, conn);
    if (st != TUTTI_OK)
        wait_clear(conn);
    return st;
}

bool tti_engine_hand_over(tti_engine *engine, tti_slice key, tti_slice value)
{
    tti_engine_conn *conn;

    while ((conn = tti_map_get_ptr(&engine->poppers, key.data, key.size)) != NULL) {
        const uint32_t id = conn->wait.id;

        tti_engine_wait_end(engine, conn);
        if (tti_engine_reply(engine, conn, TTI_STORE_QUEUE_POP, id, value.data, value.size) ==
            TUTTI_OK) {
            tti_engine_conn_ready(engine, conn); /* there may be input behind the wait */
            return true;
        }
        tti_engine_conn_end(engine, conn);
    }
    return false;
}

tutti_status tti_engine_serve_cancel(tti_engine *engine, tti_engine_conn *conn, uint32_t id)
{
    const tti_store_op op = conn->wait.op;

    if (!conn->wait.active || conn->wait.id != id)
        return TUTTI_OK; /* its reply crossed the CANCEL */
    tti_engine_wait_end(engine, conn);
    return tti_engine_reply_failure(engine, conn, op, id,
                                    tti_fail(TUTTI_E_TIMEOUT, "cancelled by the client"));
}

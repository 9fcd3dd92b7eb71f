/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_serve.c - what requests do to the engine's map and queues. Those that wait stand in
 * store_wait.c. */
#include "store/store_engine_conn.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "store/store_value.h"
#include "wire/bytes.h"

tutti_status tti_engine_reply(tti_engine *engine, tti_engine_conn *conn, tti_store_op op,
                              uint32_t id, const void *body, size_t size)
{
    tutti_status st;

    if (engine->output_bytes + size > engine->limits.output_bytes_max)
        return tti_fail(TUTTI_E_NOMEM, "%zu bytes of replies that nobody reads, %zu are the most", engine->output_bytes,
                        engine->limits.output_bytes_max);
    tti_engine_conn_dirty(engine, conn);
    st = tti_store_reply_write(op, id, TUTTI_OK, body, size, &conn->out);
    tti_engine_count_output(engine, conn);
    return st;
}

tutti_status tti_engine_reply_failure(tti_engine *engine, tti_engine_conn *conn, tti_store_op op,
                                      uint32_t id, tutti_status status)
{
    const char  *words = tutti_last_error();
    tutti_status st;

    tti_engine_conn_dirty(engine, conn);
    st = tti_store_reply_write(op, id, status, words, strnlen(words, TTI_STORE_WORDS_MAX), &conn->out);
    tti_engine_count_output(engine, conn);
    return st;
}

static size_t bytes_stored(const tti_engine *engine)
{
    return engine->values.bytes + engine->queues.bytes + engine->queues.map.bytes;
}

static size_t keys_stored(const tti_engine *engine)
{
    return engine->values.count + engine->queues.map.count;
}

/* What of the store a connection has made, by what one of its requests has changed. */
static void count_stored(const tti_engine *engine, tti_engine_conn *conn, size_t bytes_before, size_t keys_before)
{
    conn->stored_bytes += (int64_t)(bytes_stored(engine) - bytes_before);
    conn->stored_keys += (int64_t)(keys_stored(engine) - keys_before);
}

static bool has_key(const tti_engine *engine, tti_slice key)
{
    return tti_map_get(&engine->values, key.data, key.size, NULL, NULL) ||
           tti_store_queues_len(&engine->queues, key.data, key.size) > 0;
}

/* Whether so many bytes more fit; deleting makes room again. */
static tutti_status check_room(const tti_engine *engine, const tti_engine_conn *conn, tti_slice key, size_t bytes)
{
    const tti_engine_limits *limits = &engine->limits;
    const size_t             used = bytes_stored(engine), keys = keys_stored(engine), more = key.size + bytes;

    if (used + more > limits->stored_bytes_max)
        return tti_fail(TUTTI_E_STORE, "the store is full: %zu of %zu bytes are in use", used, limits->stored_bytes_max);
    if (keys >= limits->stored_keys_max && !has_key(engine, key))
        return tti_fail(TUTTI_E_STORE, "the store is full: it has %zu keys, %zu are the most", keys,
                        limits->stored_keys_max);
    if (conn->stored_bytes + (int64_t)more > (int64_t)limits->client_bytes_max)
        return tti_fail(TUTTI_E_STORE, "this client has filled its part of the store: %lld of %zu bytes",
                        (long long)conn->stored_bytes, limits->client_bytes_max);
    if (conn->stored_keys >= (int64_t)limits->client_keys_max && !has_key(engine, key))
        return tti_fail(TUTTI_E_STORE, "this client has filled its part of the store: %lld keys, %zu are the most",
                        (long long)conn->stored_keys, limits->client_keys_max);
    return TUTTI_OK;
}

static tutti_status serve_set(tti_engine *engine, tti_engine_conn *conn,
                              const tti_store_request *request)
{
    const tti_slice key = request->keys[0];
    tutti_status    st = check_room(engine, conn, key, request->value.size);

    if (st == TUTTI_OK)
        st = tti_map_put(&engine->values, key.data, key.size, request->value.data,
                         request->value.size);
    if (st != TUTTI_OK)
        return tti_engine_reply_failure(engine, conn, request->op, request->id, st);
    tti_engine_wake(engine, key);
    return tti_engine_reply(engine, conn, request->op, request->id, NULL, 0);
}

/* A key for words: what the user gave, without the byte that the client put before it. */
typedef struct shown_key {
    char text[64];
} shown_key;

static const char *shown(tti_slice key, shown_key *room)
{
    const size_t skip = key.size > 1 ? 1 : 0;
    const size_t n = key.size - skip < sizeof room->text ? key.size - skip : sizeof room->text - 1;

    memcpy(room->text, (const char *)key.data + skip, n);
    room->text[n] = '\0';
    return room->text;
}

static tutti_status reply_i64(tti_engine *engine, tti_engine_conn *conn,
                              const tti_store_request *request, int64_t number)
{
    uint8_t body[8];

    tti_put_u64(body, (uint64_t)number);
    return tti_engine_reply(engine, conn, request->op, request->id, body, sizeof body);
}

static tutti_status serve_add(tti_engine *engine, tti_engine_conn *conn,
                              const tti_store_request *request)
{
    const tti_slice key = request->keys[0];
    shown_key       room;
    int64_t         sum = 0;
    tutti_status    st = check_room(engine, conn, key, TTI_STORE_NUMBER_MAX);

    if (st == TUTTI_OK)
        st = tti_store_map_add(&engine->values, key.data, key.size, request->number,
                               shown(key, &room), &sum);
    if (st != TUTTI_OK)
        return tti_engine_reply_failure(engine, conn, request->op, request->id, st);
    tti_engine_wake(engine, key);
    return reply_i64(engine, conn, request, sum);
}

static tutti_status serve_append(tti_engine *engine, tti_engine_conn *conn,
                                 const tti_store_request *request)
{
    const tti_slice key = request->keys[0];
    shown_key       room;
    tutti_status    st = check_room(engine, conn, key, request->value.size);

    if (st == TUTTI_OK)
        st = tti_store_map_append(&engine->values, key.data, key.size, request->value.data,
                                  request->value.size, shown(key, &room));
    if (st != TUTTI_OK)
        return tti_engine_reply_failure(engine, conn, request->op, request->id, st);
    tti_engine_wake(engine, key);
    return tti_engine_reply(engine, conn, request->op, request->id, NULL, 0);
}

/* Those that were set before a failure stay. */
static tutti_status serve_multi_set(tti_engine *engine, tti_engine_conn *conn,
                                    const tti_store_request *request)
{
    tutti_status st = TUTTI_OK;
    uint32_t     i;

    for (i = 0; i < request->n_keys && st == TUTTI_OK; i++) {
        const tti_slice key = request->keys[i], value = request->values[i];

        st = check_room(engine, conn, key, value.size);
        if (st == TUTTI_OK)
            st = tti_map_put(&engine->values, key.data, key.size, value.data, value.size);
        if (st == TUTTI_OK)
            tti_engine_wake(engine, key);
    }
    if (st != TUTTI_OK)
        return tti_engine_reply_failure(engine, conn, request->op, request->id, st);
    return tti_engine_reply(engine, conn, request->op, request->id, NULL, 0);
}

/* To the first who waits for it, or to the end of the queue. */
static tutti_status serve_push(tti_engine *engine, tti_engine_conn *conn,
                               const tti_store_request *request)
{
    const tti_slice key = request->keys[0];
    tutti_status    st;

    if (!tti_engine_hand_over(engine, key, request->value)) {
        st = check_room(engine, conn, key, request->value.size);
        if (st == TUTTI_OK)
            st = tti_store_queues_push(&engine->queues, key.data, key.size, request->value.data,
                                       request->value.size);
        if (st != TUTTI_OK)
            return tti_engine_reply_failure(engine, conn, request->op, request->id, st);
        tti_engine_wake(engine, key);
    }
    return tti_engine_reply(engine, conn, request->op, request->id, NULL, 0);
}

typedef struct names {
    tti_slice    prefix;
    tti_buffer   body;
    uint32_t     n;
    tutti_status st;
} names;

static bool add_name(void *arg, const void *key, size_t key_size, const void *val, size_t val_size)
{
    names   *list = arg;
    uint8_t *at;

    (void)val;
    (void)val_size;
    if (key_size < list->prefix.size || memcmp(key, list->prefix.data, list->prefix.size) != 0)
        return true;
    if (list->body.size + 2 + key_size > TTI_STORE_NAMES_MAX) {
        list->st = tti_fail(TUTTI_E_STORE, "the names of all keys have more than %d bytes",
                            TTI_STORE_NAMES_MAX);
        return false;
    }
    at = tti_buffer_reserve(&list->body, 2 + key_size);
    if (at == NULL) {
        list->st = TUTTI_E_NOMEM;
        return false;
    }
    memcpy(tti_put_u16(at, (uint16_t)key_size), key, key_size);
    tti_buffer_commit(&list->body, 2 + key_size);
    list->n++;
    return true;
}

static tutti_status serve_list_keys(tti_engine *engine, tti_engine_conn *conn,
                                    const tti_store_request *request)
{
    const uint8_t none[4] = { 0 };
    names         list = { .prefix = request->keys[0] };

    list.st = tti_buffer_append(&list.body, none, sizeof none); /* for the count */
    if (list.st == TUTTI_OK)
        tti_map_each(&engine->values, add_name, &list);
    if (list.st == TUTTI_OK) {
        tti_put_u32(list.body.memory + list.body.start, list.n);
        list.st = tti_engine_reply(engine, conn, request->op, request->id,
                                   tti_buffer_data(&list.body), list.body.size);
    } else {
        list.st = tti_engine_reply_failure(engine, conn, request->op, request->id, list.st);
    }
    tti_buffer_release(&list.body);
    return list.st;
}

static tutti_status serve_compare_set(tti_engine *engine, tti_engine_conn *conn,
                                      const tti_store_request *request)
{
    const tti_slice key = request->keys[0];
    const void     *val = NULL;
    size_t          size = 0;
    bool            changed = false;
    tutti_status    st = check_room(engine, conn, key, request->value.size);

    if (st == TUTTI_OK)
        st = tti_store_map_compare_set(&engine->values, key.data, key.size, request->expected.data,
                                       request->expected.size, request->value.data,
                                       request->value.size, &val, &size, &changed);
    if (st != TUTTI_OK)
        return tti_engine_reply_failure(engine, conn, request->op, request->id, st);
    st = tti_engine_reply(engine, conn, request->op, request->id, val, size);
    if (changed)
        tti_engine_wake(engine, key);
    return st;
}

static void forget_will(tti_engine_conn *conn)
{
    free(conn->will);
    conn->will = NULL;
    conn->will_key = conn->will_value = 0;
}

/* A connection has one will, the latest. */
static tutti_status serve_will(tti_engine *engine, tti_engine_conn *conn, const tti_store_request *request)
{
    const tti_slice key = request->keys[0], value = request->value;
    uint8_t        *will = NULL;

    if (value.size > 0 && (will = malloc(key.size + value.size)) == NULL)
        return tti_engine_reply_failure(engine, conn, request->op, request->id,
                                        tti_fail(TUTTI_E_NOMEM, "no memory for a will of %zu bytes", value.size));
    forget_will(conn);
    if (will != NULL) {
        memcpy(will, key.data, key.size);
        memcpy(will + key.size, value.data, value.size);
        conn->will = will;
        conn->will_key = key.size;
        conn->will_value = value.size;
    }
    return tti_engine_reply(engine, conn, request->op, request->id, NULL, 0);
}

bool tti_engine_carry_out(tti_engine *engine, tti_engine_conn *conn)
{
    const tti_slice key = { .data = conn->will, .size = conn->will_key };
    shown_key       room;

    if (conn->will == NULL)
        return false;
    if (check_room(engine, conn, key, conn->will_value) == TUTTI_OK &&
        tti_store_map_append(&engine->values, key.data, key.size, conn->will + conn->will_key, conn->will_value,
                             shown(key, &room)) == TUTTI_OK)
        tti_engine_wake(engine, key);
    else
        tti_log(TTI_LOG_WARN, "store: the will of %s is lost: %s", conn->from, tutti_last_error());
    forget_will(conn);
    return true;
}

static tutti_status reply_u8(tti_engine *engine, tti_engine_conn *conn,
                             const tti_store_request *request, bool yes)
{
    const uint8_t body = yes;

    return tti_engine_reply(engine, conn, request->op, request->id, &body, sizeof body);
}

/* No reply. */
static tutti_status serve_need(tti_engine *engine, tti_engine_conn *conn, const tti_store_request *request)
{
    const tti_slice key = request->keys[0];

    if (request->number != 0)
        tti_store_needs_begin(&engine->needs, key.data, key.size, &conn->n_needs);
    else
        tti_store_needs_end(&engine->needs, key.data, key.size);
    return TUTTI_OK;
}

static tutti_status serve(tti_engine *engine, tti_engine_conn *conn, const tti_store_request *request)
{
    const tti_slice key = request->keys[0];

    switch (request->op) {
    case TTI_STORE_SET: return serve_set(engine, conn, request);
    case TTI_STORE_GET:
    case TTI_STORE_WAIT:
    case TTI_STORE_MULTI_GET: return tti_engine_serve_wait(engine, conn, request);
    case TTI_STORE_ADD: return serve_add(engine, conn, request);
    case TTI_STORE_CHECK:
        return reply_u8(engine, conn, request,
                        tti_engine_missing(engine, request->op, request->keys, request->n_keys,
                                           0) == request->n_keys);
    case TTI_STORE_COMPARE_SET: return serve_compare_set(engine, conn, request);
    case TTI_STORE_DELETE:
        return reply_u8(engine, conn, request, tti_map_delete(&engine->values, key.data, key.size));
    case TTI_STORE_NUM_KEYS: return reply_i64(engine, conn, request, (int64_t)engine->values.count);
    case TTI_STORE_CANCEL: return tti_engine_serve_cancel(engine, conn, request->id);
    case TTI_STORE_APPEND: return serve_append(engine, conn, request);
    case TTI_STORE_MULTI_SET: return serve_multi_set(engine, conn, request);
    case TTI_STORE_QUEUE_PUSH: return serve_push(engine, conn, request);
    case TTI_STORE_QUEUE_POP: return tti_engine_serve_pop(engine, conn, request);
    case TTI_STORE_QUEUE_LEN:
        return reply_i64(engine, conn, request,
                         tti_store_queues_len(&engine->queues, key.data, key.size));
    case TTI_STORE_LIST_KEYS: return serve_list_keys(engine, conn, request);
    case TTI_STORE_WILL: return serve_will(engine, conn, request);
    case TTI_STORE_NEED: return serve_need(engine, conn, request);
    case TTI_STORE_OP_END: break;
    }
    return tti_fail(TUTTI_E_STORE, "unknown operation %d", (int)request->op);
}

tutti_status tti_engine_serve(tti_engine *engine, tti_engine_conn *conn,
                              const tti_store_request *request)
{
    const size_t bytes = bytes_stored(engine), keys = keys_stored(engine);
    tutti_status st;

    if (conn->wait.active && request->op != TTI_STORE_CANCEL)
        return tti_fail(TUTTI_E_STORE, "'%s' came while '%s' was waiting",
                        tti_store_op_name(request->op), tti_store_op_name(conn->wait.op));
    st = serve(engine, conn, request);
    count_stored(engine, conn, bytes, keys);
    return st;
}

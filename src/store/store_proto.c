/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_proto.c - encoding and decoding of the store's frames: bounds first. */
#include "store/store_proto.h"

#include <assert.h>
#include <string.h>
#include <tutti/private.h>
#include "wire/bytes.h"

enum { KEY_BYTES_MAX = 2 + TTI_STORE_WIRE_KEY_MAX, VALUE_BYTES_MAX = 4 + TUTTI_STORE_VALUE_MAX };

static const struct {
    const char *name;
    uint32_t    request_max; /* bytes of a body */
    uint32_t    reply_max;
} ops[TTI_STORE_OP_END] = {
    [TTI_STORE_SET] = { "set", KEY_BYTES_MAX + VALUE_BYTES_MAX, 0 },
    [TTI_STORE_GET] = { "get", KEY_BYTES_MAX, TUTTI_STORE_VALUE_MAX },
    [TTI_STORE_ADD] = { "add", KEY_BYTES_MAX + 8, 8 },
    [TTI_STORE_WAIT] = { "wait", 4 + TTI_STORE_KEYS_MAX *KEY_BYTES_MAX, 0 },
    [TTI_STORE_CHECK] = { "check", 4 + TTI_STORE_KEYS_MAX *KEY_BYTES_MAX, 1 },
    [TTI_STORE_COMPARE_SET] = { "compare_set", KEY_BYTES_MAX + 2 * VALUE_BYTES_MAX,
                                TUTTI_STORE_VALUE_MAX },
    [TTI_STORE_DELETE] = { "delete_key", KEY_BYTES_MAX, 1 },
    [TTI_STORE_NUM_KEYS] = { "num_keys", 0, 8 },
    [TTI_STORE_CANCEL] = { "cancel", 0, 0 },
};

const char *tti_store_op_name(tti_store_op op)
{
    return op >= TTI_STORE_SET && op < TTI_STORE_OP_END ? ops[op].name : "?";
}

static void write_head(uint8_t *at, uint32_t size, tti_store_op op, tutti_status status,
                       uint32_t id)
{
    at = tti_put_u32(at, size);
    *at++ = TTI_STORE_VERSION;
    *at++ = (uint8_t)op;
    at = tti_put_u16(at, (uint16_t)status);
    tti_put_u32(at, id);
}

tutti_status tti_store_head_read(const uint8_t *data, bool request, tti_store_head *out)
{
    const uint32_t size = tti_get_u32(data);
    const unsigned version = data[4];
    const unsigned op = data[5];
    const uint16_t status = tti_get_u16(data + 6);
    uint32_t       max;

    if (version != TTI_STORE_VERSION)
        return tti_fail(TUTTI_E_STORE, "a store frame has version %u, we speak %d", version,
                        TTI_STORE_VERSION);
    if (op < TTI_STORE_SET || op >= TTI_STORE_OP_END || (request && status != 0))
        return tti_fail(TUTTI_E_STORE, "a store frame has op %u and status %u", op, status);
    max = request ? ops[op].request_max : status != 0 ? TTI_STORE_WORDS_MAX : ops[op].reply_max;
    if (size > max)
        return tti_fail(TUTTI_E_STORE, "a store frame '%s' of %u bytes, %u is the most",
                        ops[op].name, size, max);
    *out = (tti_store_head){
        .size = size, .op = (tti_store_op)op, .status = status, .id = tti_get_u32(data + 8)
    };
    return TUTTI_OK;
}

/* What is left of a body. `bad` stays set once something did not fit. */
typedef struct reader {
    const uint8_t *at;
    size_t         left;
    bool           bad;
} reader;

static const uint8_t *take(reader *r, size_t bytes)
{
    const uint8_t *at = r->at;

    if (r->bad || bytes > r->left) {
        r->bad = true;
        return NULL;
    }
    r->at += bytes;
    r->left -= bytes;
    return at;
}

static uint64_t take_uint(reader *r, size_t bytes)
{
    const uint8_t *at = take(r, bytes);

    return at != NULL ? tti_get_uint(at, bytes) : 0;
}

static tti_slice take_key(reader *r)
{
    tti_slice key = { .size = (size_t)take_uint(r, 2) };

    key.data = take(r, key.size);
    if (key.size == 0 || key.size > TTI_STORE_WIRE_KEY_MAX ||
        (key.data != NULL && memchr(key.data, '\0', key.size) != NULL))
        r->bad = true;
    return key;
}

static tti_slice take_value(reader *r)
{
    tti_slice value = { .size = (size_t)take_uint(r, 4) };

    value.data = take(r, value.size);
    if (value.size > TUTTI_STORE_VALUE_MAX)
        r->bad = true;
    return value;
}

static void take_keys(reader *r, tti_store_request *out)
{
    uint32_t i;

    out->n_keys = (uint32_t)take_uint(r, 4);
    if (out->n_keys == 0 || out->n_keys > TTI_STORE_KEYS_MAX)
        r->bad = true;
    for (i = 0; !r->bad && i < out->n_keys; i++)
        out->keys[i] = take_key(r);
}

static void take_fields(reader *r, tti_store_request *out)
{
    switch (out->op) {
    case TTI_STORE_WAIT:
    case TTI_STORE_CHECK: take_keys(r, out); return;
    case TTI_STORE_NUM_KEYS:
    case TTI_STORE_CANCEL: out->n_keys = 0; return;
    default: break;
    }
    out->n_keys = 1;
    out->keys[0] = take_key(r);
    if (out->op == TTI_STORE_COMPARE_SET)
        out->expected = take_value(r);
    if (out->op == TTI_STORE_COMPARE_SET || out->op == TTI_STORE_SET)
        out->value = take_value(r);
    if (out->op == TTI_STORE_ADD)
        out->delta = (int64_t)take_uint(r, 8);
}

tutti_status tti_store_request_read(const tti_store_head *head, const uint8_t *body,
                                    tti_store_request *out)
{
    reader r = { .at = body, .left = head->size };

    out->op = head->op;
    out->id = head->id;
    out->delta = 0;
    out->expected = out->value = (tti_slice){ .size = 0 };
    take_fields(&r, out);
    if (r.bad || r.left > 0)
        return tti_fail(TUTTI_E_STORE, "a store frame '%s' of %u bytes is malformed",
                        tti_store_op_name(head->op), head->size);
    return TUTTI_OK;
}

static size_t body_bytes(const tti_store_request *request)
{
    const bool list = request->op == TTI_STORE_WAIT || request->op == TTI_STORE_CHECK;
    size_t     bytes = list ? 4 : 0;
    uint32_t   i;

    for (i = 0; i < request->n_keys; i++)
        bytes += 2 + request->keys[i].size;
    if (request->op == TTI_STORE_COMPARE_SET)
        bytes += 4 + request->expected.size;
    if (request->op == TTI_STORE_COMPARE_SET || request->op == TTI_STORE_SET)
        bytes += 4 + request->value.size;
    return bytes + (request->op == TTI_STORE_ADD ? 8 : 0);
}

static uint8_t *put_bytes(uint8_t *at, tti_slice slice)
{
    if (slice.size > 0)
        memcpy(at, slice.data, slice.size);
    return at + slice.size;
}

static uint8_t *put_value(uint8_t *at, tti_slice value)
{
    return put_bytes(tti_put_u32(at, (uint32_t)value.size), value);
}

tutti_status tti_store_request_write(const tti_store_request *request, tti_buffer *out)
{
    const size_t   bytes = body_bytes(request);
    uint8_t *const start = tti_buffer_reserve(out, TTI_STORE_HEAD_BYTES + bytes);
    uint8_t       *at = start;
    uint32_t       i;

    assert(bytes <= ops[request->op].request_max);
    if (start == NULL)
        return TUTTI_E_NOMEM;
    write_head(at, (uint32_t)bytes, request->op, TUTTI_OK, request->id);
    at += TTI_STORE_HEAD_BYTES;
    if (request->op == TTI_STORE_WAIT || request->op == TTI_STORE_CHECK)
        at = tti_put_u32(at, request->n_keys);
    for (i = 0; i < request->n_keys; i++)
        at = put_bytes(tti_put_u16(at, (uint16_t)request->keys[i].size), request->keys[i]);
    if (request->op == TTI_STORE_COMPARE_SET)
        at = put_value(at, request->expected);
    if (request->op == TTI_STORE_COMPARE_SET || request->op == TTI_STORE_SET)
        at = put_value(at, request->value);
    if (request->op == TTI_STORE_ADD)
        at = tti_put_u64(at, (uint64_t)request->delta);
    assert((size_t)(at - start) == TTI_STORE_HEAD_BYTES + bytes);
    tti_buffer_commit(out, TTI_STORE_HEAD_BYTES + bytes);
    return TUTTI_OK;
}

tutti_status tti_store_reply_write(tti_store_op op, uint32_t id, tutti_status status,
                                   const void *body, size_t size, tti_buffer *out)
{
    uint8_t *at = tti_buffer_reserve(out, TTI_STORE_HEAD_BYTES + size);

    assert(size <= (status != TUTTI_OK ? TTI_STORE_WORDS_MAX : ops[op].reply_max));
    if (at == NULL)
        return TUTTI_E_NOMEM;
    write_head(at, (uint32_t)size, op, status, id);
    if (size > 0)
        memcpy(at + TTI_STORE_HEAD_BYTES, body, size);
    tti_buffer_commit(out, TTI_STORE_HEAD_BYTES + size);
    return TUTTI_OK;
}

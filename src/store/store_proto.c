/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_proto.c - encoding and decoding of the store's frames: bounds first. */
#include "store/store_proto.h"

#include <assert.h>
#include <string.h>
#include <tutti/private.h>
#include "wire/bytes.h"

enum {
    KEY_BYTES_MAX = 2 + TTI_STORE_WIRE_KEY_MAX,
    VALUE_BYTES_MAX = 4 + TUTTI_STORE_VALUE_MAX,
    LIST_BYTES_MAX = 4 + TTI_STORE_KEYS_MAX * KEY_BYTES_MAX,
    /* values of a list: 16 MiB in all */
    VALUES_BYTES_MAX = 4 * TTI_STORE_KEYS_MAX + TUTTI_STORE_VALUE_MAX
};

/* What the body of a request has, in this order. */
enum { KEY = 1, KEYS = 2, PAIRS = 4, EXPECTED = 8, VALUE = 16, NUMBER = 32 };

static const struct {
    const char *name;
    uint32_t    fields;
    uint32_t    request_max; /* bytes of a body */
    uint32_t    reply_max;
} ops[TTI_STORE_OP_END] = {
    [TTI_STORE_SET] = { "set", KEY | VALUE, KEY_BYTES_MAX + VALUE_BYTES_MAX, 0 },
    [TTI_STORE_GET] = { "get", KEY, KEY_BYTES_MAX, TUTTI_STORE_VALUE_MAX },
    [TTI_STORE_ADD] = { "add", KEY | NUMBER, KEY_BYTES_MAX + 8, 8 },
    [TTI_STORE_WAIT] = { "wait", KEYS, LIST_BYTES_MAX, 0 },
    [TTI_STORE_CHECK] = { "check", KEYS, LIST_BYTES_MAX, 1 },
    [TTI_STORE_COMPARE_SET] = { "compare_set", KEY | EXPECTED | VALUE,
                                KEY_BYTES_MAX + 2 * VALUE_BYTES_MAX, TUTTI_STORE_VALUE_MAX },
    [TTI_STORE_DELETE] = { "delete_key", KEY, KEY_BYTES_MAX, 1 },
    [TTI_STORE_NUM_KEYS] = { "num_keys", 0, 0, 8 },
    [TTI_STORE_CANCEL] = { "cancel", 0, 0, 0 },
    [TTI_STORE_APPEND] = { "append", KEY | VALUE, KEY_BYTES_MAX + VALUE_BYTES_MAX, 0 },
    [TTI_STORE_MULTI_GET] = { "multi_get", KEYS, LIST_BYTES_MAX, 4 + VALUES_BYTES_MAX },
    [TTI_STORE_MULTI_SET] = { "multi_set", PAIRS, LIST_BYTES_MAX + VALUES_BYTES_MAX, 0 },
    [TTI_STORE_QUEUE_PUSH] = { "queue_push", KEY | VALUE, KEY_BYTES_MAX + VALUE_BYTES_MAX, 0 },
    [TTI_STORE_QUEUE_POP] = { "queue_pop", KEY | NUMBER, KEY_BYTES_MAX + 8, TUTTI_STORE_VALUE_MAX },
    [TTI_STORE_QUEUE_LEN] = { "queue_len", KEY, KEY_BYTES_MAX, 8 },
    [TTI_STORE_LIST_KEYS] = { "list_keys", KEY, KEY_BYTES_MAX, 4 + TTI_STORE_NAMES_MAX },
    [TTI_STORE_WILL] = { "will", KEY | VALUE, KEY_BYTES_MAX + 4 + TTI_STORE_WILL_MAX, 0 },
    [TTI_STORE_NEED] = { "need", KEY | NUMBER, KEY_BYTES_MAX + 8, 0 },
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

static void take_list(reader *r, bool pairs, tti_store_request *out)
{
    uint32_t i;

    out->n_keys = (uint32_t)take_uint(r, 4);
    if (out->n_keys == 0 || out->n_keys > TTI_STORE_KEYS_MAX)
        r->bad = true;
    for (i = 0; !r->bad && i < out->n_keys; i++) {
        out->keys[i] = take_key(r);
        if (pairs)
            out->values[i] = take_value(r);
    }
}

static void take_fields(reader *r, uint32_t fields, tti_store_request *out)
{
    out->n_keys = 0;
    if (fields & (KEYS | PAIRS))
        take_list(r, fields & PAIRS, out);
    if (fields & KEY) {
        out->n_keys = 1;
        out->keys[0] = take_key(r);
    }
    if (fields & EXPECTED)
        out->expected = take_value(r);
    if (fields & VALUE)
        out->value = take_value(r);
    if (fields & NUMBER)
        out->number = (int64_t)take_uint(r, 8);
}

tutti_status tti_store_request_read(const tti_store_head *head, const uint8_t *body,
                                    tti_store_request *out)
{
    reader r = { .at = body, .left = head->size };

    out->op = head->op;
    out->id = head->id;
    out->number = 0;
    out->expected = out->value = (tti_slice){ .size = 0 };
    take_fields(&r, ops[head->op].fields, out);
    if (r.bad || r.left > 0)
        return tti_fail(TUTTI_E_STORE, "a store frame '%s' of %u bytes is malformed",
                        tti_store_op_name(head->op), head->size);
    return TUTTI_OK;
}

tutti_status tti_store_values_read(const void *body, size_t size, uint32_t n, tti_slice *values_out,
                                   uint32_t *n_out)
{
    reader         r = { .at = body, .left = size };
    const uint32_t m = (uint32_t)take_uint(&r, 4);
    uint32_t       i;

    if (m == 0 || m > n)
        r.bad = true;
    for (i = 0; !r.bad && i < m; i++)
        values_out[i] = take_value(&r);
    if (r.bad || r.left > 0)
        return tti_fail(TUTTI_E_STORE, "an answer of %zu bytes to 'multi_get' is malformed", size);
    *n_out = m;
    return TUTTI_OK;
}

tutti_status tti_store_names_read(const void *body, size_t size, tti_slice *names_out,
                                  uint32_t *n_out)
{
    reader         r = { .at = body, .left = size };
    const uint32_t n = (uint32_t)take_uint(&r, 4);
    uint32_t       i;

    for (i = 0; !r.bad && i < n; i++) {
        const tti_slice name = take_key(&r);

        if (names_out != NULL)
            names_out[i] = name;
    }
    if (r.bad || r.left > 0)
        return tti_fail(TUTTI_E_STORE, "an answer of %zu bytes to 'list_keys' is malformed", size);
    *n_out = n;
    return TUTTI_OK;
}

static size_t body_bytes(const tti_store_request *request)
{
    const uint32_t fields = ops[request->op].fields;
    size_t         bytes = fields & (KEYS | PAIRS) ? 4 : 0;
    uint32_t       i;

    for (i = 0; i < request->n_keys; i++)
        bytes += 2 + request->keys[i].size + (fields & PAIRS ? 4 + request->values[i].size : 0);
    if (fields & EXPECTED)
        bytes += 4 + request->expected.size;
    if (fields & VALUE)
        bytes += 4 + request->value.size;
    return bytes + (fields & NUMBER ? 8 : 0);
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

static uint8_t *put_keys(uint8_t *at, uint32_t fields, const tti_store_request *request)
{
    uint32_t i;

    if (fields & (KEYS | PAIRS))
        at = tti_put_u32(at, request->n_keys);
    for (i = 0; i < request->n_keys; i++) {
        at = put_bytes(tti_put_u16(at, (uint16_t)request->keys[i].size), request->keys[i]);
        if (fields & PAIRS)
            at = put_value(at, request->values[i]);
    }
    return at;
}

tutti_status tti_store_request_write(const tti_store_request *request, tti_buffer *out)
{
    const uint32_t fields = ops[request->op].fields;
    const size_t   bytes = body_bytes(request);
    uint8_t *const start = tti_buffer_reserve(out, TTI_STORE_HEAD_BYTES + bytes);
    uint8_t       *at = start;

    assert(bytes <= ops[request->op].request_max);
    if (start == NULL)
        return TUTTI_E_NOMEM;
    write_head(at, (uint32_t)bytes, request->op, TUTTI_OK, request->id);
    at = put_keys(at + TTI_STORE_HEAD_BYTES, fields, request);
    if (fields & EXPECTED)
        at = put_value(at, request->expected);
    if (fields & VALUE)
        at = put_value(at, request->value);
    if (fields & NUMBER)
        at = tti_put_u64(at, (uint64_t)request->number);
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

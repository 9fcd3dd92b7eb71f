/* SPDX-License-Identifier: BSD-3-Clause
 *
 * torch_proto.c - requests to bytes, and a state machine for replies. */
#include "store/torch_proto.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "wire/bytes.h"

/* What stands in a request behind its byte, in this order, and what comes back. */
enum {
    KEY = 1,        /* one str */
    KEYS = 2,       /* count and str... */
    PAIRS = 4,      /* count and (str, bytes)... */
    EXPECTED = 8,   /* bytes */
    VALUE = 16,     /* bytes */
    NUMBER32 = 32,  /* u32 */
    NUMBER64 = 64   /* i64 */
};

enum { BYTES = -1, POP = -2, LIST = -3 }; /* replies that are no plain number */

static const struct op_facts {
    const char *name;
    int         request;
    int         reply; /* bytes of a number, 0: none; or one of the above */
} ops[TTI_TORCH_OP_END] = {
    [TTI_TORCH_VALIDATE] = { "validate", NUMBER32, 0 },
    [TTI_TORCH_SET] = { "set", KEY | VALUE, 0 },
    [TTI_TORCH_COMPARE_SET] = { "compare_set", KEY | EXPECTED | VALUE, BYTES },
    [TTI_TORCH_ADD] = { "add", KEY | NUMBER64, 8 },
    [TTI_TORCH_CHECK] = { "check", KEYS, 1 },
    [TTI_TORCH_WAIT] = { "wait", KEYS, 1 },
    [TTI_TORCH_NUM_KEYS] = { "num_keys", 0, 8 },
    [TTI_TORCH_DELETE] = { "delete_key", KEY, 8 },
    [TTI_TORCH_APPEND] = { "append", KEY | VALUE, 0 },
    [TTI_TORCH_MULTI_SET] = { "multi_set", PAIRS, 0 },
    [TTI_TORCH_CANCEL_WAIT] = { "cancel_wait", 0, 1 },
    [TTI_TORCH_PING] = { "ping", NUMBER32, 4 },
    [TTI_TORCH_QUEUE_PUSH] = { "queue_push", KEY | VALUE, 0 },
    [TTI_TORCH_QUEUE_POP] = { "queue_pop", KEY, POP },
    [TTI_TORCH_QUEUE_LEN] = { "queue_len", KEY, 8 },
    [TTI_TORCH_LIST_KEYS] = { "list_keys", 0, LIST },
};

const char *tti_torch_op_name(tti_torch_op op)
{
    return (unsigned)op < TTI_TORCH_OP_END && ops[op].name != NULL ? ops[op].name : "?";
}

static tutti_status put_number(tti_buffer *out, uint64_t number, size_t bytes)
{
    uint8_t text[8];

    tti_put_uint(text, number, bytes);
    return tti_buffer_append(out, text, bytes);
}

static tutti_status put_bytes(tti_buffer *out, const void *data, size_t size)
{
    const tutti_status st = put_number(out, size, 8);

    return st != TUTTI_OK || size == 0 ? st : tti_buffer_append(out, data, size);
}

static tutti_status put_key(const tti_torch_request *request, size_t i, tti_buffer *out)
{
    const char  *key = request->keys[i];
    const size_t size = strlen(key);
    const size_t slash = request->own_key ? 0 : 1;
    tutti_status st = put_number(out, size + slash, 8);

    if (st == TUTTI_OK)
        st = tti_buffer_append(out, "/", slash);
    return st == TUTTI_OK ? tti_buffer_append(out, key, size) : st;
}

static tutti_status put_list(const tti_torch_request *request, bool pairs, tti_buffer *out)
{
    tutti_status st = put_number(out, request->n_keys, 8);
    size_t       i;

    for (i = 0; i < request->n_keys && st == TUTTI_OK; i++) {
        st = put_key(request, i, out);
        if (st == TUTTI_OK && pairs)
            st = put_bytes(out, request->values[i].data, request->values[i].size);
    }
    return st;
}

tutti_status tti_torch_request_write(const tti_torch_request *request, tti_buffer *out)
{
    const int    what = ops[request->op].request;
    tutti_status st = put_number(out, (uint64_t)request->op, 1);

    if (st == TUTTI_OK && (what & KEY) != 0)
        st = put_key(request, 0, out);
    if (st == TUTTI_OK && (what & (KEYS | PAIRS)) != 0)
        st = put_list(request, (what & PAIRS) != 0, out);
    if (st == TUTTI_OK && (what & EXPECTED) != 0)
        st = put_bytes(out, request->expected.data, request->expected.size);
    if (st == TUTTI_OK && (what & VALUE) != 0)
        st = put_bytes(out, request->value.data, request->value.size);
    if (st == TUTTI_OK && (what & NUMBER32) != 0)
        st = put_number(out, (uint64_t)request->number, 4);
    if (st == TUTTI_OK && (what & NUMBER64) != 0)
        st = put_number(out, (uint64_t)request->number, 8);
    return st;
}

/* ---- replies ---- */

enum { AT_NUMBER, AT_SIZE, AT_DATA, AT_NAME_SIZE, AT_NAME, AT_END };

static void expect(tti_torch_reader *reader, int step, size_t bytes)
{
    reader->step = step;
    reader->want = bytes;
    reader->got = 0;
}

void tti_torch_reader_begin(tti_torch_reader *reader, tti_torch_op op, const char *who,
                            const char *prefix)
{
    const int reply = ops[op].reply;

    *reader = (tti_torch_reader){ .op = op, .who = who, .prefix = prefix };
    if (reply == 0)
        expect(reader, AT_END, 0);
    else if (reply == BYTES)
        expect(reader, AT_SIZE, 8);
    else
        expect(reader, AT_NUMBER, reply > 0 ? (size_t)reply : 8);
}

void tti_torch_reader_release(tti_torch_reader *reader)
{
    tutti_bytes_free(&reader->value);
    tti_buffer_release(&reader->names);
}

/* A step whose bytes have all come is left at once, so something is wanted unless it is the end. */
void *tti_torch_reader_room(tti_torch_reader *reader, size_t *bytes_out)
{
    *bytes_out = reader->want - reader->got;
    switch (reader->step) {
    case AT_END: return NULL;
    case AT_DATA: return (char *)reader->value.data + reader->got;
    case AT_NAME:
        return (char *)reader->names.memory + reader->names.start + reader->names.size + reader->got;
    default: return reader->field + reader->got;
    }
}

static tutti_status nonsense(const tti_torch_reader *reader, const char *what, int64_t number)
{
    return tti_fail(TUTTI_E_STORE, "%s answered '%s' with %s %" PRId64, reader->who,
                    tti_torch_op_name(reader->op), what, number);
}

static tutti_status next_name(tti_torch_reader *reader)
{
    if (reader->left-- > 0) {
        expect(reader, AT_NAME_SIZE, 8);
        return TUTTI_OK;
    }
    expect(reader, AT_END, 0);
    return TUTTI_OK;
}

static tutti_status got_number(tti_torch_reader *reader)
{
    const int64_t number = (int64_t)tti_get_uint(reader->field, reader->want);
    const int     reply = ops[reader->op].reply;

    if (reply < 0 && number < 0)
        return nonsense(reader, "the number", number);
    if (reader->op == TTI_TORCH_CHECK && number > 1)
        return nonsense(reader, "the byte", number);
    reader->number = number;
    if (reply == LIST) {
        reader->left = (uint64_t)number;
        return next_name(reader);
    }
    if (reply == POP && number > 0)
        expect(reader, AT_SIZE, 8);
    else
        expect(reader, AT_END, 0);
    return TUTTI_OK;
}

static tutti_status got_size(tti_torch_reader *reader)
{
    const uint64_t size = tti_get_u64(reader->field);

    if (size > TUTTI_STORE_VALUE_MAX)
        return tti_fail(TUTTI_E_STORE,
                        "%s answered '%s' with a value of %" PRIu64 " bytes, %d is the most here",
                        reader->who, tti_torch_op_name(reader->op), size, TUTTI_STORE_VALUE_MAX);
    reader->value.data = malloc((size_t)size + 1);
    if (reader->value.data == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a value of %" PRIu64 " bytes", size);
    reader->value.size = (size_t)size;
    ((char *)reader->value.data)[size] = '\0';
    reader->has_value = true;
    expect(reader, size > 0 ? AT_DATA : AT_END, (size_t)size);
    return TUTTI_OK;
}

static tutti_status got_name_size(tti_torch_reader *reader)
{
    const uint64_t size = tti_get_u64(reader->field);

    if (size > TTI_TORCH_KEY_MAX)
        return tti_fail(TUTTI_E_STORE, "%s has a key of %" PRIu64 " bytes, %d is the most",
                        reader->who, size, TTI_TORCH_KEY_MAX);
    reader->list_size += 8 + (size_t)size;
    if (reader->list_size > TTI_STORE_NAMES_MAX)
        return tti_fail(TUTTI_E_STORE, "the keys of %s have more than %d bytes", reader->who,
                        TTI_STORE_NAMES_MAX);
    if (size == 0)
        return next_name(reader);
    if (tti_buffer_reserve(&reader->names, (size_t)size + 1) == NULL)
        return TUTTI_E_NOMEM;
    expect(reader, AT_NAME, (size_t)size);
    return TUTTI_OK;
}

/* Keep the name if it is a user's key that begins with the prefix; its slash is cut off. */
static tutti_status got_name(tti_torch_reader *reader)
{
    const size_t prefix_size = strlen(reader->prefix);
    const size_t size = reader->want - 1;
    char        *name = (char *)reader->names.memory + reader->names.start + reader->names.size;

    if (name[0] == '/' && size > 0 && size <= TUTTI_STORE_KEY_MAX && size >= prefix_size &&
        memcmp(name + 1, reader->prefix, prefix_size) == 0 && memchr(name + 1, '\0', size) == NULL) {
        memmove(name, name + 1, size);
        name[size] = '\0';
        tti_buffer_commit(&reader->names, size + 1);
        reader->n_names++;
    }
    return next_name(reader);
}

tutti_status tti_torch_reader_take(tti_torch_reader *reader, size_t bytes)
{
    assert(bytes <= reader->want - reader->got);
    reader->got += bytes;
    if (reader->got < reader->want)
        return TUTTI_OK;
    switch (reader->step) {
    case AT_NUMBER: return got_number(reader);
    case AT_SIZE: return got_size(reader);
    case AT_NAME_SIZE: return got_name_size(reader);
    case AT_NAME: return got_name(reader);
    default: expect(reader, AT_END, 0); return TUTTI_OK;
    }
}

/* 0 ends a wait, 1 answers CANCEL_WAIT. */
bool tti_torch_wait_feed(tti_torch_wait *wait, uint8_t byte)
{
    if (*wait == TTI_TORCH_WAITING && byte == 0)
        *wait = TTI_TORCH_READY;
    else if (*wait == TTI_TORCH_CANCELLED && byte == 0)
        *wait = TTI_TORCH_CROSSED;
    else if (*wait == TTI_TORCH_CANCELLED && byte == 1)
        *wait = TTI_TORCH_LATE;
    else if (*wait == TTI_TORCH_CROSSED && byte == 1)
        *wait = TTI_TORCH_READY;
    else
        return false;
    return true;
}

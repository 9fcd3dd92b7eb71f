/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_proto_test.c - frames go both ways, and hostile ones go nowhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/port.h"
#include "store/store_proto.h"
#include "wire/bytes.h"

static tti_slice slice(const char *text)
{
    return (tti_slice){ .data = text, .size = strlen(text) };
}

/* Decode a frame from a copy of exactly its size, so that asan sees every step too far. */
static tutti_status decode(const uint8_t *frame, size_t bytes, tti_store_request *out)
{
    uint8_t       *copy = test_malloc(bytes > 0 ? bytes : 1);
    tti_store_head head;
    tutti_status   st = TUTTI_E_STORE;

    memcpy(copy, frame, bytes);
    if (bytes >= TTI_STORE_HEAD_BYTES)
        st = tti_store_head_read(copy, true, &head);
    if (st == TUTTI_OK && head.size != bytes - TTI_STORE_HEAD_BYTES)
        st = TUTTI_E_STORE;
    if (st == TUTTI_OK)
        st = tti_store_request_read(&head, copy + TTI_STORE_HEAD_BYTES, out);
    test_free(copy);
    return st;
}

static void same_slice(tti_slice a, tti_slice b)
{
    assert_int_equal(a.size, b.size);
    if (a.size > 0)
        assert_memory_equal(a.data, b.data, a.size);
}

enum { NO_KEYS, ONE_KEY, MANY_KEYS };

/* What a request of this operation has, told apart from the table that is tested. */
static int keys_of(int op)
{
    switch (op) {
    case TTI_STORE_NUM_KEYS:
    case TTI_STORE_CANCEL: return NO_KEYS;
    case TTI_STORE_WAIT:
    case TTI_STORE_CHECK:
    case TTI_STORE_MULTI_GET:
    case TTI_STORE_MULTI_SET: return MANY_KEYS;
    default: return ONE_KEY;
    }
}

static bool has_value(int op)
{
    return op == TTI_STORE_SET || op == TTI_STORE_COMPARE_SET || op == TTI_STORE_APPEND ||
           op == TTI_STORE_QUEUE_PUSH || op == TTI_STORE_WILL;
}

static bool has_number(int op)
{
    return op == TTI_STORE_ADD || op == TTI_STORE_QUEUE_POP || op == TTI_STORE_NEED;
}

static void fill_request(int op, tti_store_request *in)
{
    const bool pairs = op == TTI_STORE_MULTI_SET;

    *in = (tti_store_request){ .op = (tti_store_op)op, .id = 0xdeadbeef };
    in->n_keys = keys_of(op) == NO_KEYS ? 0 : keys_of(op) == ONE_KEY ? 1 : 3;
    in->keys[0] = slice("first");
    in->keys[1] = slice("x");
    in->keys[2] = slice("third key");
    in->values[0] = slice(pairs ? "v" : "");
    in->values[2] = slice(pairs ? "longer value" : "");
    in->expected = slice(op == TTI_STORE_COMPARE_SET ? "old" : "");
    in->value = slice(has_value(op) ? "value" : "");
    in->number = has_number(op) ? -7 : 0;
}

static void requests_survive_the_wire(void **state)
{
    tti_store_request *in = test_calloc(1, sizeof *in), *out = test_calloc(1, sizeof *out);
    tti_buffer         frame = { .memory = NULL };
    tti_store_head     read;
    uint32_t           i;
    int                op;

    (void)state;
    for (op = TTI_STORE_SET; op < TTI_STORE_OP_END; op++) {
        fill_request(op, in);
        *out = (tti_store_request){ .n_keys = 77 };
        assert_int_equal(tti_store_request_write(in, &frame), TUTTI_OK);
        assert_int_equal(tti_store_head_read(tti_buffer_data(&frame), true, &read), TUTTI_OK);
        assert_int_equal(read.size, frame.size - TTI_STORE_HEAD_BYTES);
        assert_int_equal(
            tti_store_request_read(&read, tti_buffer_data(&frame) + TTI_STORE_HEAD_BYTES, out),
            TUTTI_OK);
        assert_int_equal(out->op, op);
        assert_int_equal(out->id, 0xdeadbeef);
        assert_int_equal(out->n_keys, in->n_keys);
        for (i = 0; i < in->n_keys; i++) {
            same_slice(out->keys[i], in->keys[i]);
            same_slice(out->values[i], in->values[i]);
        }
        same_slice(out->expected, in->expected);
        same_slice(out->value, in->value);
        assert_true(out->number == in->number);
        tti_buffer_consume(&frame, frame.size);
    }
    tti_buffer_release(&frame);
    test_free(in);
    test_free(out);
}

static void cut_and_padded_frames_are_refused(void **state)
{
    tti_store_request *request = test_calloc(1, sizeof *request);
    tti_buffer         frame = { .memory = NULL };
    uint8_t            copy[256] = { 0 };
    size_t             n;
    int                op;

    (void)state;
    for (op = TTI_STORE_SET; op < TTI_STORE_OP_END; op++) {
        if (keys_of(op) == NO_KEYS)
            continue;
        *request = (tti_store_request){ .op = (tti_store_op)op, .n_keys = 1 };
        request->keys[0] = slice("some key");
        assert_int_equal(tti_store_request_write(request, &frame), TUTTI_OK);
        memcpy(copy, tti_buffer_data(&frame), frame.size);
        for (n = TTI_STORE_HEAD_BYTES; n < frame.size + 4; n++) {
            tti_put_u32(copy,
                        (uint32_t)(n - TTI_STORE_HEAD_BYTES)); /* the head tells the cut size */
            assert_int_equal(decode(copy, n, request), n == frame.size ? TUTTI_OK : TUTTI_E_STORE);
        }
        tti_buffer_consume(&frame, frame.size);
    }
    tti_buffer_release(&frame);
    test_free(request);
}

static tutti_status head(uint32_t size, unsigned version, unsigned op, unsigned status,
                         bool request)
{
    uint8_t        bytes[TTI_STORE_HEAD_BYTES];
    tti_store_head out;

    tti_put_u32(bytes, size);
    bytes[4] = (uint8_t)version;
    bytes[5] = (uint8_t)op;
    tti_put_u16(bytes + 6, (uint16_t)status);
    tti_put_u32(bytes + 8, 1);
    return tti_store_head_read(bytes, request, &out);
}

static void heads_are_judged_before_bodies(void **state)
{
    enum { V = TTI_STORE_VERSION };

    (void)state;
    assert_int_equal(head(0, V - 1, TTI_STORE_NUM_KEYS, 0, true), TUTTI_E_STORE);
    assert_int_equal(head(0, V, TTI_STORE_NUM_KEYS, 0, true), TUTTI_OK);
    assert_int_equal(head(0, V + 1, TTI_STORE_NUM_KEYS, 0, true), TUTTI_E_STORE);
    assert_int_equal(head(0, V, 0, 0, true), TUTTI_E_STORE);
    assert_int_equal(head(0, V, TTI_STORE_OP_END, 0, true), TUTTI_E_STORE);
    assert_int_equal(head(0, V, TTI_STORE_GET, 5, true), TUTTI_E_STORE);
    assert_int_equal(head(1, V, TTI_STORE_NUM_KEYS, 0, true), TUTTI_E_STORE);
    assert_int_equal(head(UINT32_MAX, V, TTI_STORE_SET, 0, true), TUTTI_E_STORE);
    assert_int_equal(head(TUTTI_STORE_VALUE_MAX, V, TTI_STORE_GET, 0, false), TUTTI_OK);
    assert_int_equal(head(TUTTI_STORE_VALUE_MAX + 1, V, TTI_STORE_GET, 0, false), TUTTI_E_STORE);
    assert_int_equal(head(TTI_STORE_WORDS_MAX, V, TTI_STORE_SET, 5, false), TUTTI_OK);
    assert_int_equal(head(TTI_STORE_WORDS_MAX + 1, V, TTI_STORE_GET, 5, false), TUTTI_E_STORE);
}

static tutti_status body(tti_store_op op, const void *bytes, size_t size)
{
    uint8_t            frame[128] = { 0 };
    tti_store_request *request = test_calloc(1, sizeof *request);
    tutti_status       st;

    tti_put_u32(frame, (uint32_t)size);
    frame[4] = TTI_STORE_VERSION;
    frame[5] = (uint8_t)op;
    memcpy(frame + TTI_STORE_HEAD_BYTES, bytes, size);
    st = decode(frame, TTI_STORE_HEAD_BYTES + size, request);
    test_free(request);
    return st;
}

static void hostile_bodies_are_refused(void **state)
{
    (void)state;
    assert_int_equal(body(TTI_STORE_GET, "\x01\x00k", 3), TUTTI_OK);
    assert_int_equal(body(TTI_STORE_GET, "\x00\x00", 2), TUTTI_E_STORE);      /* empty key */
    assert_int_equal(body(TTI_STORE_GET, "\x02\x00k\x00", 4), TUTTI_E_STORE); /* NUL in it */
    assert_int_equal(body(TTI_STORE_GET, "\xff\xffk", 3), TUTTI_E_STORE);     /* longer than sent */
    assert_int_equal(body(TTI_STORE_WAIT, "\x00\x00\x00\x00", 4), TUTTI_E_STORE); /* no keys */
    assert_int_equal(body(TTI_STORE_WAIT, "\xff\xff\xff\xff", 4), TUTTI_E_STORE); /* 4 billion */
    assert_int_equal(body(TTI_STORE_WAIT, "\x01\x01\x00\x00", 4), TUTTI_E_STORE); /* 257 */
    assert_int_equal(body(TTI_STORE_SET, "\x01\x00k\xff\xff\xff\xff", 7), TUTTI_E_STORE);
    assert_int_equal(body(TTI_STORE_SET, "\x01\x00k\x00\x00\x00\x00", 7), TUTTI_OK);
    assert_int_equal(body(TTI_STORE_SET, "\x01\x00k\x00\x00\x00\x00z", 8), TUTTI_E_STORE);
    assert_int_equal(body(TTI_STORE_MULTI_SET, "\x01\0\0\0\x01\0k\x01\0\0\0v", 12), TUTTI_OK);
    assert_int_equal(body(TTI_STORE_MULTI_SET, "\x02\0\0\0\x01\0k\x01\0\0\0v", 12),
                     TUTTI_E_STORE);                                          /* one pair of two */
    assert_int_equal(body(TTI_STORE_QUEUE_POP, "\x01\0k", 3), TUTTI_E_STORE); /* block or not? */
}

/* Answers with lists come from a server that may be anybody's, too. */
static void hostile_answers_are_refused(void **state)
{
    tti_slice slices[4];
    uint32_t  n = 99;

    (void)state;
    assert_int_equal(tti_store_values_read("\x02\0\0\0\x01\0\0\0a\0\0\0\0", 13, 2, slices, &n),
                     TUTTI_OK);
    assert_int_equal(n, 2);
    same_slice(slices[0], slice("a"));
    same_slice(slices[1], slice(""));
    n = 99;
    assert_int_equal(tti_store_values_read("\x02\0\0\0\x01\0\0\0a\0\0\0\0", 13, 1, slices, &n),
                     TUTTI_E_STORE); /* more than were asked for */
    assert_int_equal(tti_store_values_read("\0\0\0\0", 4, 2, slices, &n), TUTTI_E_STORE);
    assert_int_equal(tti_store_values_read("\x01\0\0\0\x02\0\0\0a", 9, 2, slices, &n),
                     TUTTI_E_STORE);
    assert_int_equal(tti_store_values_read("\x01\0\0", 3, 2, slices, &n), TUTTI_E_STORE);
    assert_int_equal(tti_store_names_read("\xff\xff\xff\xff\x01\0k", 7, NULL, &n), TUTTI_E_STORE);
    assert_int_equal(tti_store_names_read("\x01\0\0\0\0\0", 6, NULL, &n), TUTTI_E_STORE);
    assert_int_equal(tti_store_names_read("", 0, NULL, &n), TUTTI_E_STORE);
    assert_int_equal(n, 99);
    assert_int_equal(tti_store_names_read("\0\0\0\0", 4, NULL, &n), TUTTI_OK);
    assert_int_equal(n, 0);
    assert_int_equal(tti_store_names_read("\x01\0\0\0\x02\0/k", 8, slices, &n), TUTTI_OK);
    assert_int_equal(n, 1);
    same_slice(slices[0], slice("/k"));
}

/* Random bytes behind a good head: whatever they are, nothing is read that is not there. */
static void random_bodies_do_no_harm(void **state)
{
    uint64_t dice = 12345;
    uint8_t  bytes[96];
    int      round, refused = 0;
    size_t   i;

    (void)state;
    for (round = 0; round < 20000; round++) {
        const size_t size = (size_t)round % sizeof bytes;

        for (i = 0; i < size; i++) {
            dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            bytes[i] = (uint8_t)(i % 3 == 0 ? dice >> 60 : dice >> 56);
        }
        refused +=
            body((tti_store_op)(1 + round % (TTI_STORE_OP_END - 1)), bytes, size) != TUTTI_OK;
    }
    assert_true(refused > 15000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_survive_the_wire),
        cmocka_unit_test(cut_and_padded_frames_are_refused),
        cmocka_unit_test(heads_are_judged_before_bodies),
        cmocka_unit_test(hostile_bodies_are_refused),
        cmocka_unit_test(hostile_answers_are_refused),
        cmocka_unit_test(random_bodies_do_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * torch_proto_test.c
 * Goal    requests are the bytes that PyTorch's server reads, replies are read however they are cut,
 *         and hostile ones go nowhere.
 * Method  golden bytes, written down by hand from the protocol; replies are fed byte by byte from
 *         memory of exactly their size. */
#include "store/torch_proto.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/store.h>

static const char *const two_keys[] = { "a", "bc" };

static void is_written(const tti_torch_request *request, const char *bytes, size_t n)
{
    tti_buffer out = { .memory = NULL };

    assert_int_equal(tti_torch_request_write(request, &out), TUTTI_OK);
    assert_int_equal(out.size, n);
    assert_memory_equal(tti_buffer_data(&out), bytes, n);
    tti_buffer_release(&out);
}

#define WRITTEN(bytes, ...) \
    is_written(&(const tti_torch_request){ __VA_ARGS__ }, bytes, sizeof(bytes) - 1)

#define KEY_A  "\2\0\0\0\0\0\0\0/a"
#define KEY_BC "\3\0\0\0\0\0\0\0/bc"

static void requests_are_golden(void **state)
{
    const tti_slice   xy = { .data = "xy", .size = 2 };
    const tutti_bytes values[] = { { .data = (char[]){ "v" }, .size = 1 }, { .data = NULL } };

    (void)state;
    WRITTEN("\0\xce\xf7\x85\x3c", .op = TTI_TORCH_VALIDATE, .number = TTI_TORCH_MAGIC);
    WRITTEN("\1" KEY_A "\2\0\0\0\0\0\0\0xy", .op = TTI_TORCH_SET, .keys = two_keys, .n_keys = 1,
            .value = xy);
    WRITTEN("\2" KEY_A "\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0xy", .op = TTI_TORCH_COMPARE_SET,
            .keys = two_keys, .n_keys = 1, .value = xy);
    WRITTEN("\4" KEY_A "\xfe\xff\xff\xff\xff\xff\xff\xff", .op = TTI_TORCH_ADD, .keys = two_keys,
            .n_keys = 1, .number = -2);
    WRITTEN("\4\1\0\0\0\0\0\0\0a\1\0\0\0\0\0\0\0", .op = TTI_TORCH_ADD, .keys = two_keys,
            .n_keys = 1, .own_key = true, .number = 1);
    WRITTEN("\5\2\0\0\0\0\0\0\0" KEY_A KEY_BC, .op = TTI_TORCH_CHECK, .keys = two_keys, .n_keys = 2);
    WRITTEN("\6\0\0\0\0\0\0\0\0", .op = TTI_TORCH_WAIT);
    WRITTEN("\7", .op = TTI_TORCH_NUM_KEYS);
    WRITTEN("\10" KEY_A, .op = TTI_TORCH_DELETE, .keys = two_keys, .n_keys = 1);
    WRITTEN("\11" KEY_A "\2\0\0\0\0\0\0\0xy", .op = TTI_TORCH_APPEND, .keys = two_keys,
            .n_keys = 1, .value = xy);
    WRITTEN("\13\2\0\0\0\0\0\0\0" KEY_A "\1\0\0\0\0\0\0\0v" KEY_BC "\0\0\0\0\0\0\0\0",
            .op = TTI_TORCH_MULTI_SET, .keys = two_keys, .n_keys = 2, .values = values);
    WRITTEN("\14", .op = TTI_TORCH_CANCEL_WAIT);
    WRITTEN("\15\x78\x56\x34\xf2", .op = TTI_TORCH_PING, .number = 0xf2345678);
    WRITTEN("\16" KEY_A "\2\0\0\0\0\0\0\0xy", .op = TTI_TORCH_QUEUE_PUSH, .keys = two_keys,
            .n_keys = 1, .value = xy);
    WRITTEN("\17" KEY_A, .op = TTI_TORCH_QUEUE_POP, .keys = two_keys, .n_keys = 1);
    WRITTEN("\20" KEY_A, .op = TTI_TORCH_QUEUE_LEN, .keys = two_keys, .n_keys = 1);
    WRITTEN("\21", .op = TTI_TORCH_LIST_KEYS);
}

/* Feed a reply in steps of at most `step` bytes; *used_out: how many of them the reader took. */
static tutti_status feed(tti_torch_reader *reader, tti_torch_op op, const char *prefix,
                         const char *bytes, size_t n, size_t step, size_t *used_out)
{
    char        *copy = test_malloc(n > 0 ? n : 1);
    tutti_status st = TUTTI_OK;
    size_t       at = 0, want;
    void        *room;

    memcpy(copy, bytes, n);
    tti_torch_reader_begin(reader, op, "the store", prefix);
    while (st == TUTTI_OK && (room = tti_torch_reader_room(reader, &want)) != NULL && at < n) {
        want = want < step ? want : step;
        want = want < n - at ? want : n - at;
        memcpy(room, copy + at, want);
        at += want;
        st = tti_torch_reader_take(reader, want);
    }
    *used_out = at;
    test_free(copy);
    return st;
}

static bool complete(tti_torch_reader *reader)
{
    size_t bytes;

    return tti_torch_reader_room(reader, &bytes) == NULL && bytes == 0;
}

/* Whole, byte by byte, with something behind it, which is not taken, and with its last byte missing. */
static void is_read(tti_torch_op op, const char *bytes, size_t n, int64_t number, const char *value)
{
    static const size_t steps[] = { 1, 3, 4096 };
    tti_torch_reader    reader;
    char                more[256];
    size_t              used, i;

    memcpy(more, bytes, n);
    more[n] = 'x';
    for (i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        assert_int_equal(feed(&reader, op, "", more, n + 1, steps[i], &used), TUTTI_OK);
        assert_int_equal(used, n);
        assert_true(complete(&reader));
        assert_true(reader.number == number);
        assert_int_equal(reader.has_value, value != NULL);
        if (value != NULL)
            assert_string_equal(reader.value.data, value);
        tti_torch_reader_release(&reader);
        if (n == 0)
            continue;
        assert_int_equal(feed(&reader, op, "", bytes, n - 1, steps[i], &used), TUTTI_OK);
        assert_false(complete(&reader));
        tti_torch_reader_release(&reader);
    }
}

#define READ(op, bytes, number, value) is_read(op, bytes, sizeof(bytes) - 1, number, value)

static void replies_are_read_however_they_are_cut(void **state)
{
    (void)state;
    READ(TTI_TORCH_VALIDATE, "", 0, NULL);
    READ(TTI_TORCH_SET, "", 0, NULL);
    READ(TTI_TORCH_COMPARE_SET, "\5\0\0\0\0\0\0\0hello", 0, "hello");
    READ(TTI_TORCH_COMPARE_SET, "\0\0\0\0\0\0\0\0", 0, "");
    READ(TTI_TORCH_ADD, "\xf7\xff\xff\xff\xff\xff\xff\xff", -9, NULL);
    READ(TTI_TORCH_CHECK, "\1", 1, NULL);
    READ(TTI_TORCH_NUM_KEYS, "\2\0\0\0\0\0\0\0", 2, NULL);
    READ(TTI_TORCH_PING, "\xff\xff\xff\xff", 0xffffffff, NULL);
    READ(TTI_TORCH_QUEUE_POP, "\0\0\0\0\0\0\0\0", 0, NULL);
    READ(TTI_TORCH_QUEUE_POP, "\3\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0hi", 3, "hi");
    READ(TTI_TORCH_QUEUE_POP, "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 1, "");
    READ(TTI_TORCH_LIST_KEYS, "\0\0\0\0\0\0\0\0", 0, NULL);
}

/* The slash goes, and so do keys of the store itself, other prefixes, and what is no text. */
static void names_are_sorted_out(void **state)
{
    static const char list[] = "\6\0\0\0\0\0\0\0"
                               "\3\0\0\0\0\0\0\0/p1"
                               "\5\0\0\0\0\0\0\0init/"
                               "\2\0\0\0\0\0\0\0/q"
                               "\0\0\0\0\0\0\0\0"
                               "\4\0\0\0\0\0\0\0/p\0x"
                               "\4\0\0\0\0\0\0\0/pp2";
    tti_torch_reader  reader;
    size_t            used;

    (void)state;
    assert_int_equal(feed(&reader, TTI_TORCH_LIST_KEYS, "p", list, sizeof list - 1, 1, &used),
                     TUTTI_OK);
    assert_true(complete(&reader));
    assert_int_equal(reader.n_names, 2);
    assert_int_equal(reader.names.size, sizeof "p1" + sizeof "pp2");
    assert_memory_equal(tti_buffer_data(&reader.names), "p1\0pp2", sizeof "p1" + sizeof "pp2");
    tti_torch_reader_release(&reader);
}

static void is_refused(tti_torch_op op, const char *bytes, size_t n, const char *words)
{
    tti_torch_reader reader;
    size_t           used;

    assert_int_equal(feed(&reader, op, "", bytes, n, 4096, &used), TUTTI_E_STORE);
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, tutti_last_error());
    assert_non_null(strstr(tutti_last_error(), "the store"));
    tti_torch_reader_release(&reader);
}

#define REFUSED(op, bytes, words) is_refused(op, bytes, sizeof(bytes) - 1, words)

static void hostile_replies_are_refused(void **state)
{
    enum { NAMES = (TTI_STORE_NAMES_MAX / (8 + TTI_TORCH_KEY_MAX)) + 1 };
    char  *list = test_calloc(1, 8 + (size_t)NAMES * (8 + TTI_TORCH_KEY_MAX));
    size_t i;

    (void)state;
    REFUSED(TTI_TORCH_COMPARE_SET, "\1\0\0\1\0\0\0\0", "a value of 16777217 bytes");
    REFUSED(TTI_TORCH_COMPARE_SET, "\xff\xff\xff\xff\xff\xff\xff\xff", "bytes");
    REFUSED(TTI_TORCH_CHECK, "\2", "2");
    REFUSED(TTI_TORCH_QUEUE_POP, "\xff\xff\xff\xff\xff\xff\xff\xff", "-1");
    REFUSED(TTI_TORCH_LIST_KEYS, "\0\0\0\0\0\0\0\x80", "-9223372036854775808");
    REFUSED(TTI_TORCH_LIST_KEYS, "\1\0\0\0\0\0\0\0\1\x20\0\0\0\0\0\0", "a key of 8193 bytes");
    memset(list, 0x7f, 7); /* very many */
    for (i = 0; i < NAMES; i++)
        list[8 + i * (8 + TTI_TORCH_KEY_MAX) + 1] = 0x20;
    is_refused(TTI_TORCH_LIST_KEYS, list, 8 + (size_t)NAMES * (8 + TTI_TORCH_KEY_MAX),
               "more than 16777216 bytes");
    test_free(list);
}

static void a_wait(const char *events, tti_torch_wait end)
{
    tti_torch_wait wait = TTI_TORCH_WAITING;

    for (; *events != '\0'; events++) {
        if (*events == 'c')
            wait = TTI_TORCH_CANCELLED;
        else
            assert_true(tti_torch_wait_feed(&wait, (uint8_t)(*events - '0')));
    }
    assert_int_equal(wait, end);
    assert_false(tti_torch_wait_feed(&wait, 2));
    assert_int_equal(wait, end);
}

/* Digits are bytes that come, c is the cancelling. */
static void crossing_bytes_are_told_apart(void **state)
{
    tti_torch_wait wait = TTI_TORCH_WAITING;

    (void)state;
    a_wait("", TTI_TORCH_WAITING);
    a_wait("0", TTI_TORCH_READY);
    a_wait("c1", TTI_TORCH_LATE);
    a_wait("c0", TTI_TORCH_CROSSED);
    a_wait("c01", TTI_TORCH_READY);
    assert_false(tti_torch_wait_feed(&wait, 1)); /* nobody cancelled */
    wait = TTI_TORCH_CROSSED;
    assert_false(tti_torch_wait_feed(&wait, 0)); /* twice */
    wait = TTI_TORCH_READY;
    assert_false(tti_torch_wait_feed(&wait, 0));
    assert_string_equal(tti_torch_op_name(TTI_TORCH_WAIT), "wait");
    assert_string_equal(tti_torch_op_name((tti_torch_op)3), "?");
    assert_string_equal(tti_torch_op_name(TTI_TORCH_OP_END), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_golden),
        cmocka_unit_test(replies_are_read_however_they_are_cut),
        cmocka_unit_test(names_are_sorted_out),
        cmocka_unit_test(hostile_replies_are_refused),
        cmocka_unit_test(crossing_bytes_are_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_engine_test.c - the server's state machine, fed by hand.
 *
 * Goal    waiting lists, limits and rudeness: what a well-behaved client never does. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "store/store_engine_conn.h"
#include "store/store_proto.h"
#include "store/store_turned.h"
#include <tutti/private.h>
#include "wire/addr.h"
#include "wire/bytes.h"
#include "wire/hello.h"

static tti_engine *engine;

static int setup_with(const tti_engine_limits *limits)
{
    return tti_engine_create(tti_port_system(), NULL, limits, &engine) == TUTTI_OK ? 0 : -1;
}

static int setup(void **state)
{
    (void)state;
    return setup_with(NULL);
}

static int setup_tight(void **state)
{
    const tti_engine_limits limits = { .conns_max = 3,
                                       .unproven_max = 2,
                                       .stored_bytes_max = 1000,
                                       .input_bytes_max = 2000,
                                       .hello_ns = TTI_SECOND };

    (void)state;
    return setup_with(&limits);
}

static int teardown(void **state)
{
    (void)state;
    tti_engine_destroy(engine);
    return 0;
}

/* A connection from an address, or from nowhere. */
static tti_engine_conn *come(int64_t now_ns, const char *from)
{
    tti_addr at;

    if (tti_addr_parse(from, 0, &at) != TUTTI_OK)
        at = (tti_addr){ .family = TTI_ADDR_NONE };
    return tti_engine_accept(engine, now_ns, from, &at, NULL);
}

/* A connection whose hello is done. secret NULL: there is none. */
static tti_engine_conn *join_with(const tti_secret *secret)
{
    const tti_hello_config config = { .client = true,
                                      .purpose = TTI_PURPOSE_STORE,
                                      .rank = TTI_HELLO_NO_RANK,
                                      .secret = secret };
    tti_engine_conn       *conn = come(0, "a test");
    tti_hello              hello;
    const void            *data;
    size_t                 bytes;

    assert_non_null(conn);
    tti_hello_begin(&hello, tti_port_system(), &config);
    data = tti_hello_output(&hello, &bytes);
    tti_engine_input(engine, conn, data, bytes);
    tti_hello_sent(&hello, bytes);
    data = tti_engine_output(conn, &bytes);
    assert_int_equal(bytes, TTI_HELLO_SERVER_BYTES);
    assert_int_equal(tti_hello_feed(&hello, data, bytes), TUTTI_OK);
    tti_engine_sent(engine, conn, bytes);
    data = tti_hello_output(&hello, &bytes);
    tti_engine_input(engine, conn, data, bytes);
    tti_hello_release(&hello);
    assert_false(tti_engine_closing(conn));
    return conn;
}

static tti_engine_conn *join(void)
{
    return join_with(NULL);
}

static void send_request(tti_engine_conn *conn, const tti_store_request *request)
{
    tti_buffer frame = { .memory = NULL };

    assert_int_equal(tti_store_request_write(request, &frame), TUTTI_OK);
    tti_engine_input(engine, conn, tti_buffer_data(&frame), frame.size);
    tti_buffer_release(&frame);
}

/* An operation on keys given as one text with blanks between; a pop blocks. */
static void ask(tti_engine_conn *conn, tti_store_op op, uint32_t id, const char *keys,
                const char *value)
{
    tti_store_request *request = test_calloc(1, sizeof *request);
    uint32_t           i;

    *request = (tti_store_request){ .op = op, .id = id, .number = 1 };
    while (keys != NULL && *keys != '\0') {
        const size_t n = strcspn(keys, " ");

        request->keys[request->n_keys++] = (tti_slice){ .data = keys, .size = n };
        keys += n + (keys[n] == ' ');
    }
    if (value != NULL)
        request->value = (tti_slice){ .data = value, .size = strlen(value) };
    for (i = 0; value != NULL && i < request->n_keys; i++)
        request->values[i] = request->value;
    send_request(conn, request);
    test_free(request);
}

static bool silent(const tti_engine_conn *conn)
{
    size_t bytes;

    tti_engine_output(conn, &bytes);
    return bytes == 0;
}

/* Take the reply to id: its status; its body is `text` unless that is NULL. */
static int answer(tti_engine_conn *conn, uint32_t id, const char *text)
{
    tti_store_head head;
    size_t         bytes;
    const uint8_t *data = tti_engine_output(conn, &bytes);

    assert_true(bytes >= TTI_STORE_HEAD_BYTES);
    assert_int_equal(tti_store_head_read(data, false, &head), TUTTI_OK);
    assert_int_equal(head.id, id);
    assert_true(bytes >= TTI_STORE_HEAD_BYTES + head.size);
    if (text != NULL) {
        assert_int_equal(head.size, strlen(text));
        assert_memory_equal(data + TTI_STORE_HEAD_BYTES, text, head.size);
    }
    tti_engine_sent(engine, conn, TTI_STORE_HEAD_BYTES + head.size);
    return head.status;
}

static void waits_end_when_the_last_key_comes(void **state)
{
    tti_engine_conn *a = join(), *b = join(), *c = join();

    (void)state;
    ask(a, TTI_STORE_WAIT, 1, "x y z", NULL);
    ask(b, TTI_STORE_GET, 2, "y", NULL);
    ask(c, TTI_STORE_SET, 3, "y", "why");
    assert_int_equal(answer(c, 3, ""), TUTTI_OK);
    assert_int_equal(answer(b, 2, "why"), TUTTI_OK);
    assert_true(silent(a));
    ask(c, TTI_STORE_ADD, 4, "x", NULL);
    assert_true(silent(a));
    ask(c, TTI_STORE_DELETE, 5, "y", NULL); /* it was there, but not with the others */
    ask(c, TTI_STORE_SET, 6, "z", "");
    assert_true(silent(a));
    ask(c, TTI_STORE_SET, 7, "y", "");
    assert_int_equal(answer(a, 1, ""), TUTTI_OK);
    tti_engine_drop(engine, a);
    tti_engine_drop(engine, b);
    tti_engine_drop(engine, c);
}

static void note_key(void *context, const void *key, size_t bytes)
{
    snprintf(context, 16, "%.*s", (int)bytes, (const char *)key);
}

/* Who is dropped in a wait is told of, with what it misses; who has been answered, or has stopped waiting, is not. */
static void a_waiter_that_is_dropped_is_missed(void **state)
{
    tti_engine_conn *a = join(), *b = join(), *c = join();
    char             key[16] = "";

    (void)state;
    tti_engine_tell_dropped(engine, note_key, key);
    ask(a, TTI_STORE_GET, 1, "x", NULL);
    ask(b, TTI_STORE_GET, 2, "y", NULL);
    ask(b, TTI_STORE_CANCEL, 2, NULL, NULL);
    ask(c, TTI_STORE_SET, 3, "z", "");
    tti_engine_drop(engine, b);
    tti_engine_drop(engine, c);
    assert_string_equal(key, "");
    tti_engine_drop(engine, a);
    assert_string_equal(key, "x");
    tti_engine_tell_dropped(engine, NULL, NULL);
}

static void waiters_leave_lists_in_any_order(void **state)
{
    static const int orders[4][3] = { { 0, 1, 2 }, { 2, 1, 0 }, { 1, 0, 2 }, { 1, 2, 0 } };
    tti_engine_conn *conns[3], *setter = join();
    size_t           o;
    int              i;

    (void)state;
    for (o = 0; o < 4; o++) {
        for (i = 0; i < 3; i++) {
            conns[i] = join();
            ask(conns[i], TTI_STORE_GET, 1, "key", NULL);
        }
        tti_engine_drop(engine, conns[orders[o][0]]);
        ask(conns[orders[o][1]], TTI_STORE_CANCEL, 1, NULL, NULL);
        assert_int_equal(answer(conns[orders[o][1]], 1, NULL), TUTTI_E_TIMEOUT);
        ask(setter, TTI_STORE_SET, 2, "key", "v");
        assert_int_equal(answer(setter, 2, ""), TUTTI_OK);
        assert_int_equal(answer(conns[orders[o][2]], 1, "v"), TUTTI_OK);
        assert_true(silent(conns[orders[o][1]]));
        tti_engine_drop(engine, conns[orders[o][1]]);
        tti_engine_drop(engine, conns[orders[o][2]]);
        ask(setter, TTI_STORE_DELETE, 3, "key", NULL);
        assert_int_equal(answer(setter, 3, "\x01"), TUTTI_OK);
    }
    tti_engine_drop(engine, setter);
}

static void answer_i64(tti_engine_conn *conn, uint32_t id, int64_t number)
{
    uint8_t     want[8];
    size_t      bytes;
    const void *data = tti_engine_output(conn, &bytes);

    assert_int_equal(bytes, TTI_STORE_HEAD_BYTES + sizeof want);
    tti_put_u64(want, (uint64_t)number);
    assert_memory_equal((const char *)data + TTI_STORE_HEAD_BYTES, want, sizeof want);
    assert_int_equal(answer(conn, id, NULL), TUTTI_OK);
}

/* Each push ends one pop, in the order in which they began; nobody's leaving upsets the others. */
static void a_push_ends_the_oldest_pop(void **state)
{
    tti_engine_conn *pop[4], *pusher = join();
    int              i;

    (void)state;
    for (i = 0; i < 4; i++) {
        pop[i] = join();
        ask(pop[i], TTI_STORE_QUEUE_POP, 1, "q", NULL);
        assert_true(silent(pop[i]));
    }
    tti_engine_drop(engine, pop[0]); /* the oldest, and one in the middle */
    ask(pop[2], TTI_STORE_CANCEL, 1, NULL, NULL);
    assert_int_equal(answer(pop[2], 1, NULL), TUTTI_E_TIMEOUT);
    ask(pusher, TTI_STORE_QUEUE_PUSH, 2, "q", "one");
    assert_int_equal(answer(pusher, 2, ""), TUTTI_OK);
    assert_int_equal(answer(pop[1], 1, "one"), TUTTI_OK);
    assert_true(silent(pop[3]));
    ask(pusher, TTI_STORE_QUEUE_LEN, 3, "q", NULL);
    answer_i64(pusher, 3, 0);
    ask(pusher, TTI_STORE_QUEUE_PUSH, 4, "q", "");
    assert_int_equal(answer(pusher, 4, ""), TUTTI_OK);
    assert_int_equal(answer(pop[3], 1, ""), TUTTI_OK);
    ask(pusher, TTI_STORE_QUEUE_PUSH, 5, "q", "kept");
    assert_int_equal(answer(pusher, 5, ""), TUTTI_OK);
    ask(pop[3], TTI_STORE_QUEUE_POP, 6, "q", NULL);
    assert_int_equal(answer(pop[3], 6, "kept"), TUTTI_OK);
    for (i = 1; i < 4; i++)
        tti_engine_drop(engine, pop[i]);
    tti_engine_drop(engine, pusher);
}

/* One that broke the protocol while it waited, and is not dropped yet, gets nothing. */
static void nothing_is_handed_to_a_closing_connection(void **state)
{
    tti_engine_conn *rude = join(), *honest = join(), *pusher = join();

    (void)state;
    ask(rude, TTI_STORE_QUEUE_POP, 1, "q", NULL);
    ask(honest, TTI_STORE_QUEUE_POP, 1, "q", NULL);
    ask(rude, TTI_STORE_NUM_KEYS, 2, NULL, NULL);
    assert_true(tti_engine_closing(rude));
    ask(pusher, TTI_STORE_QUEUE_PUSH, 1, "q", "v");
    assert_int_equal(answer(honest, 1, "v"), TUTTI_OK);
    tti_engine_drop(engine, rude);
    tti_engine_drop(engine, honest);
    tti_engine_drop(engine, pusher);
}

/* A queue that is not empty ends WAIT and satisfies CHECK, but is no value for GET. */
static void queues_count_as_keys_for_waits_only(void **state)
{
    tti_engine_conn *waiter = join(), *getter = join(), *pusher = join();

    (void)state;
    ask(waiter, TTI_STORE_WAIT, 1, "q k", NULL);
    ask(getter, TTI_STORE_GET, 1, "q", NULL);
    ask(pusher, TTI_STORE_SET, 1, "k", "v");
    assert_int_equal(answer(pusher, 1, ""), TUTTI_OK);
    assert_true(silent(waiter));
    ask(pusher, TTI_STORE_QUEUE_PUSH, 2, "q", "in the queue");
    assert_int_equal(answer(pusher, 2, ""), TUTTI_OK);
    assert_int_equal(answer(waiter, 1, ""), TUTTI_OK);
    assert_true(silent(getter));
    ask(pusher, TTI_STORE_CHECK, 3, "q k", NULL);
    assert_int_equal(answer(pusher, 3, "\x01"), TUTTI_OK);
    ask(pusher, TTI_STORE_QUEUE_POP, 4, "q", NULL);
    assert_int_equal(answer(pusher, 4, "in the queue"), TUTTI_OK);
    ask(waiter, TTI_STORE_WAIT, 5, "q", NULL);
    assert_true(silent(waiter));
    ask(pusher, TTI_STORE_SET, 6, "q", "value");
    assert_int_equal(answer(pusher, 6, ""), TUTTI_OK);
    assert_int_equal(answer(waiter, 5, ""), TUTTI_OK);
    assert_int_equal(answer(getter, 1, "value"), TUTTI_OK);
    assert_int_equal(tti_engine_n_keys(engine), 2); /* queues are not counted */
    tti_engine_drop(engine, waiter);
    tti_engine_drop(engine, getter);
    tti_engine_drop(engine, pusher);
}

static void lists_of_values_wait_and_wake(void **state)
{
    tti_engine_conn *getter = join(), *setter = join();
    const char       want[] = "\x02\0\0\0\x02\0\0\0vv\x02\0\0\0vv";
    size_t           bytes;

    (void)state;
    ask(getter, TTI_STORE_MULTI_GET, 1, "a b", NULL);
    ask(setter, TTI_STORE_MULTI_SET, 1, "b a", "v");
    assert_int_equal(answer(setter, 1, ""), TUTTI_OK);
    assert_int_equal(answer(getter, 1, NULL), TUTTI_OK);
    ask(setter, TTI_STORE_APPEND, 2, "a", "v");
    assert_int_equal(answer(setter, 2, ""), TUTTI_OK);
    ask(setter, TTI_STORE_APPEND, 3, "b", "v");
    assert_int_equal(answer(setter, 3, ""), TUTTI_OK);
    ask(getter, TTI_STORE_MULTI_GET, 4, "b a", NULL);
    assert_memory_equal((const char *)tti_engine_output(getter, &bytes) + TTI_STORE_HEAD_BYTES,
                        want, sizeof want - 1);
    assert_int_equal(answer(getter, 4, NULL), TUTTI_OK);
    ask(getter, TTI_STORE_LIST_KEYS, 5, "a", NULL);
    tti_engine_output(getter, &bytes);
    assert_int_equal(bytes, TTI_STORE_HEAD_BYTES + 4 + 2 + 1);
    assert_int_equal(answer(getter, 5, NULL), TUTTI_OK);
    tti_engine_drop(engine, getter);
    tti_engine_drop(engine, setter);
}

/* Values in queues count against the limit, and stop to count when they are taken. */
static void full_queues_are_refused(void **state)
{
    char             big[601];
    tti_engine_conn *a = join();

    (void)state;
    memset(big, 'b', 600);
    big[600] = '\0';
    ask(a, TTI_STORE_QUEUE_PUSH, 1, "q", big);
    assert_int_equal(answer(a, 1, ""), TUTTI_OK);
    ask(a, TTI_STORE_QUEUE_PUSH, 2, "q", big);
    assert_int_equal(answer(a, 2, NULL), TUTTI_E_STORE);
    ask(a, TTI_STORE_SET, 3, "k", big);
    assert_int_equal(answer(a, 3, NULL), TUTTI_E_STORE);
    ask(a, TTI_STORE_QUEUE_POP, 4, "q", NULL);
    assert_int_equal(answer(a, 4, big), TUTTI_OK);
    ask(a, TTI_STORE_SET, 5, "k", big);
    assert_int_equal(answer(a, 5, ""), TUTTI_OK);
    ask(a, TTI_STORE_APPEND, 6, "k", big);
    assert_int_equal(answer(a, 6, NULL), TUTTI_E_STORE);
    ask(a, TTI_STORE_MULTI_SET, 7, "l m", big);
    assert_int_equal(answer(a, 7, NULL), TUTTI_E_STORE);
    tti_engine_drop(engine, a);
}

/* What connections leave is said when they end, in that order, and wakes who waits for it; a later will is in the place of an
 * earlier one, and one without a value in the place of none. */
static void wills_are_carried_out_when_connections_end(void **state)
{
    tti_engine_conn *a = join(), *b = join(), *c = join(), *getter = join();

    (void)state;
    ask(getter, TTI_STORE_GET, 1, "gone", NULL);
    ask(a, TTI_STORE_WILL, 1, "gone", "earlier");
    assert_int_equal(answer(a, 1, ""), TUTTI_OK);
    ask(a, TTI_STORE_WILL, 2, "gone", "a.");
    assert_int_equal(answer(a, 2, ""), TUTTI_OK);
    ask(b, TTI_STORE_WILL, 1, "gone", "b.");
    assert_int_equal(answer(b, 1, ""), TUTTI_OK);
    ask(c, TTI_STORE_WILL, 1, "gone", "c.");
    assert_int_equal(answer(c, 1, ""), TUTTI_OK);
    ask(c, TTI_STORE_WILL, 2, "gone", "");
    assert_int_equal(answer(c, 2, ""), TUTTI_OK);
    assert_true(silent(getter));
    assert_int_equal(tti_engine_n_keys(engine), 0);
    tti_engine_drop(engine, c);
    assert_true(silent(getter));
    tti_engine_drop(engine, b);
    assert_int_equal(answer(getter, 1, "b."), TUTTI_OK);
    tti_engine_drop(engine, a);
    ask(getter, TTI_STORE_GET, 2, "gone", NULL);
    assert_int_equal(answer(getter, 2, "b.a."), TUTTI_OK);
    tti_engine_drop(engine, getter);
}

static bool is_needed(const char *below)
{
    return !tti_store_needs_await(tti_engine_needs(engine), below, strlen(below), 0);
}

static void ask_need(tti_engine_conn *conn, const char *key, int64_t number)
{
    tti_store_request *request = test_calloc(1, sizeof *request);

    *request = (tti_store_request){ .op = TTI_STORE_NEED, .n_keys = 1, .number = number };
    request->keys[0] = (tti_slice){ .data = key, .size = strlen(key) };
    send_request(conn, request);
    test_free(request);
    assert_true(silent(conn));
}

/* Until who has told of one takes it back, on any connection, or is gone. */
static void needs_are_known_until_they_are_over(void **state)
{
    tti_engine_conn *a = join(), *b = join(), *c = join();

    (void)state;
    assert_false(is_needed(""));
    ask_need(a, "g1/0", 1);
    ask_need(b, "g1/1", 1);
    ask_need(c, "g2/2", 1);
    assert_true(is_needed("g1/") && is_needed("g2/") && !is_needed("g3/"));
    ask_need(a, "g1/1", 0);
    assert_true(is_needed("g1/"));
    ask_need(a, "g1/0", 0);
    assert_false(is_needed("g1/"));
    ask_need(a, "g1/0", 0); /* nobody has told of it */
    tti_engine_drop(engine, c);
    assert_false(is_needed(""));
    ask_need(a, "g1/0", 1);
    ask_need(b, "g1/0", 1); /* from here on it is b's */
    tti_engine_drop(engine, a);
    assert_true(is_needed("g1/"));
    tti_engine_drop(engine, b);
    assert_false(is_needed(""));
}

/* Of more than one client may tell of nothing is known, and nothing else is wrong. */
static void needs_of_a_client_are_bounded(void **state)
{
    tti_engine_conn *a = join();
    char             key[16];
    int              i;

    (void)state;
    for (i = 0; i <= TTI_STORE_NEEDS_MAX; i++) {
        snprintf(key, sizeof key, "%05d", i);
        ask_need(a, key, 1);
        assert_int_equal(is_needed(key), i < TTI_STORE_NEEDS_MAX);
    }
    ask_need(a, "00000", 0);
    ask_need(a, key, 1);
    assert_true(is_needed(key));
    ask(a, TTI_STORE_SET, 1, "k", "v");
    assert_int_equal(answer(a, 1, ""), TUTTI_OK);
    tti_engine_drop(engine, a);
    assert_false(is_needed(""));
}

/* A will that does not fit when its time comes is lost, and nothing else is. */
static void a_will_has_to_fit(void **state)
{
    char             big[601];
    tti_engine_conn *a = join(), *b = join();

    (void)state;
    memset(big, 'b', 600);
    big[600] = '\0';
    ask(b, TTI_STORE_WILL, 1, "gone", "b.");
    assert_int_equal(answer(b, 1, ""), TUTTI_OK);
    ask(a, TTI_STORE_SET, 1, "k", big);
    assert_int_equal(answer(a, 1, ""), TUTTI_OK);
    big[397] = '\0'; /* nearly all that is left */
    ask(a, TTI_STORE_SET, 2, "l", big);
    assert_int_equal(answer(a, 2, ""), TUTTI_OK);
    tti_engine_drop(engine, b);
    assert_int_equal(tti_engine_n_keys(engine), 2);
    tti_engine_drop(engine, a);
}

static void late_cancels_are_ignored(void **state)
{
    tti_engine_conn *a = join();

    (void)state;
    ask(a, TTI_STORE_SET, 1, "k", "v");
    assert_int_equal(answer(a, 1, ""), TUTTI_OK);
    ask(a, TTI_STORE_GET, 2, "k", NULL);
    ask(a, TTI_STORE_CANCEL, 2, NULL, NULL);
    assert_int_equal(answer(a, 2, "v"), TUTTI_OK);
    assert_true(silent(a));
    ask(a, TTI_STORE_GET, 3, "other", NULL);
    ask(a, TTI_STORE_CANCEL, 2, NULL, NULL); /* of an older wait */
    assert_true(silent(a));
    ask(a, TTI_STORE_CANCEL, 3, NULL, NULL);
    assert_int_equal(answer(a, 3, NULL), TUTTI_E_TIMEOUT);
    tti_engine_drop(engine, a);
}

static void talking_while_waiting_ends_the_connection(void **state)
{
    tti_engine_conn *a = join();

    (void)state;
    ask(a, TTI_STORE_GET, 1, "k", NULL);
    ask(a, TTI_STORE_SET, 2, "k", "v");
    assert_true(tti_engine_closing(a));
    assert_int_equal(tti_engine_n_keys(engine), 0);
    tti_engine_drop(engine, a);
}

/* Requests in one go, and one byte at a time: the same replies in order. */
static void pieces_do_not_matter(void **state)
{
    tti_store_request *request = test_calloc(1, sizeof *request);
    tti_engine_conn   *a = join(), *b = join();
    tti_buffer         frames = { .memory = NULL };
    size_t             i;
    uint32_t           id;

    (void)state;
    for (id = 1; id <= 5; id++) {
        *request = (tti_store_request){ .op = TTI_STORE_ADD, .id = id, .n_keys = 1, .number = 1 };
        request->keys[0] = (tti_slice){ .data = "n", .size = 1 };
        assert_int_equal(tti_store_request_write(request, &frames), TUTTI_OK);
    }
    tti_engine_input(engine, a, tti_buffer_data(&frames), frames.size);
    for (i = 0; i < frames.size; i++)
        tti_engine_input(engine, b, tti_buffer_data(&frames) + i, 1);
    for (id = 1; id <= 5; id++) {
        const char sums[2][8] = { { (char)id }, { (char)(id + 5) } };
        size_t     bytes;

        assert_memory_equal((const char *)tti_engine_output(a, &bytes) + TTI_STORE_HEAD_BYTES,
                            sums[0], 8);
        assert_int_equal(answer(a, id, NULL), TUTTI_OK);
        assert_memory_equal((const char *)tti_engine_output(b, &bytes) + TTI_STORE_HEAD_BYTES,
                            sums[1], 8);
        assert_int_equal(answer(b, id, NULL), TUTTI_OK);
    }
    tti_buffer_release(&frames);
    test_free(request);
    tti_engine_drop(engine, a);
    tti_engine_drop(engine, b);
}

/* A client that never reads: served until 64 KiB are unsent, then not, then again. */
static void unread_replies_hold_the_reader_up(void **state)
{
    char            *value = test_malloc(40001);
    tti_engine_conn *a = join();
    uint32_t         id, answered = 0;
    size_t           bytes;

    (void)state;
    memset(value, 'v', 40000);
    value[40000] = '\0';
    ask(a, TTI_STORE_SET, 0, "k", value);
    assert_int_equal(answer(a, 0, ""), TUTTI_OK);
    for (id = 1; id <= 6; id++)
        ask(a, TTI_STORE_GET, id, "k", NULL);
    assert_false(tti_engine_reads(a));
    tti_engine_output(a, &bytes);
    assert_true(bytes < 3 * 40000);
    while (!silent(a))
        assert_int_equal(answer(a, ++answered, value), TUTTI_OK);
    assert_int_equal(answered, 6);
    assert_true(tti_engine_reads(a));
    tti_engine_drop(engine, a);
    test_free(value);
}

static void limits_hold(void **state)
{
    char             big[1001];
    tti_engine_conn *a = join(), *b, *c, *d;

    (void)state;
    memset(big, 'b', 1000);
    big[1000] = '\0';
    ask(a, TTI_STORE_SET, 1, "k", big);
    assert_int_equal(answer(a, 1, NULL), TUTTI_E_STORE); /* full; the connection goes on */
    big[900] = '\0';
    ask(a, TTI_STORE_SET, 2, "k", big);
    assert_int_equal(answer(a, 2, ""), TUTTI_OK);
    ask(a, TTI_STORE_ADD, 3,
        "another-key-that-does-not-fit-any-more-because-of-its-own-length-which-counts", NULL);
    assert_int_equal(answer(a, 3, NULL), TUTTI_E_STORE);

    b = come(0, "b");
    c = come(0, "c");
    assert_non_null(b);
    assert_non_null(c);
    d = come(0, "d"); /* three are the most: the oldest stranger goes */
    assert_non_null(d);
    assert_true(tti_engine_closing(b));
    assert_false(tti_engine_closing(c));
    tti_engine_drop(engine, b);
    tti_engine_drop(engine, c);
    tti_engine_drop(engine, d);
    b = join();
    c = join();
    assert_null(come(0, "e")); /* all of them are of the job */
    tti_engine_drop(engine, a);
    tti_engine_drop(engine, b);
    tti_engine_drop(engine, c);
    assert_int_equal(tti_engine_n_conns(engine), 0);
}

/* 20,000 connections that say nothing, from one address: somebody else's hello is not disturbed, and of the flood the
 * oldest go. */
static void a_flood_drops_its_own(void **state)
{
    enum { FLOOD = 20000 };
    tti_engine_conn *other = come(0, "10.0.0.2"), *conn, *proved;
    int              i;

    (void)state;
    for (i = 0; i < FLOOD; i++) {
        conn = come(i, "10.0.0.1");
        assert_non_null(conn);
        while ((conn = tti_engine_next(engine)) != NULL)
            tti_engine_drop(engine, conn);
        if (i % 1000 == 0) {
            proved = join();
            tti_engine_drop(engine, proved);
        }
    }
    assert_false(tti_engine_closing(other));
    assert_int_equal(tti_engine_n_unproven(engine), 12288);
    assert_true(tti_engine_relieve(engine, 0, 100));
    assert_false(tti_engine_closing(other));
    assert_int_equal(tti_engine_n_unproven(engine), 12287);
    tti_engine_tick(engine, 20 * TTI_SECOND);
    while ((conn = tti_engine_next(engine)) != NULL)
        tti_engine_drop(engine, conn);
    assert_int_equal(tti_engine_n_conns(engine), 0);
    assert_false(tti_engine_relieve(engine, 0, 0));
}

/* Neither of those may be among them; NULL: anybody may. */
static void drop_all_that_close(const tti_engine_conn *one, const tti_engine_conn *other)
{
    tti_engine_conn *conn;

    while ((conn = tti_engine_next(engine)) != NULL) {
        if (!tti_engine_closing(conn))
            continue;
        assert_ptr_not_equal(conn, one);
        assert_ptr_not_equal(conn, other);
        tti_engine_drop(engine, conn);
    }
}

static void say_hello(tti_engine_conn *conn)
{
    const tti_hello_config config = { .client = true, .purpose = TTI_PURPOSE_STORE, .rank = TTI_HELLO_NO_RANK };
    tti_hello              hello;
    const void            *data;
    size_t                 bytes;

    tti_hello_begin(&hello, tti_port_system(), &config);
    data = tti_hello_output(&hello, &bytes);
    tti_engine_input(engine, conn, data, bytes);
    tti_hello_release(&hello);
}

/* Everybody can say hello: a flood that does, and proves nothing, drops its own as well. */
static void a_flood_that_speaks_drops_its_own(void **state)
{
    tti_engine_conn *member = come(0, "10.0.0.2"), *late = come(0, "10.0.0.2"), *conn;
    int              i;

    (void)state;
    say_hello(member); /* first of all, and so the oldest */
    for (i = 0; i < 20000; i++) {
        conn = come(i, "10.0.0.1");
        assert_non_null(conn);
        say_hello(conn);
        drop_all_that_close(member, late); /* who has said hello, and who has said nothing yet */
    }
    assert_int_equal(tti_engine_n_unproven(engine), 12288);
    tti_engine_tick(engine, 20 * TTI_SECOND);
    drop_all_that_close(NULL, NULL);
    assert_int_equal(tti_engine_n_conns(engine), 0);
}

/* One that has as many addresses as it likes is one all the same: a process on this host, a host of a net of IPv6. */
static void many_addresses_of_one_are_one(void **state)
{
    static const char *const nets[] = { "127.", "::ffff:127.", "2001:db8::" };
    tti_engine_conn         *member;
    char                     from[64];
    size_t                   f;
    int                      i;

    (void)state;
    for (f = 0; f < sizeof nets / sizeof nets[0]; f++) {
        member = come(0, "10.0.0.2");
        for (i = 0; i < 20000; i++) {
            snprintf(from, sizeof from, f < 2 ? "%s%d.%d.9" : "%s%d:%d", nets[f], i / 250, i % 250);
            assert_non_null(come(i, from));
            drop_all_that_close(member, NULL);
        }
        tti_engine_tick(engine, 20 * TTI_SECOND);
        drop_all_that_close(NULL, NULL);
    }
}

/* Where files are few members that come together do not push each other out: there are not many of them. */
static void few_are_not_relieved_of(void **state)
{
    enum { MEMBERS = 8 };
    tti_engine_conn *members[MEMBERS];
    int              i;

    (void)state;
    for (i = 0; i < MEMBERS; i++) {
        members[i] = come(0, "10.0.0.2");
        assert_false(tti_engine_relieve(engine, 0, MEMBERS));
    }
    assert_non_null(come(0, "10.0.0.3"));
    assert_true(tti_engine_relieve(engine, 0, MEMBERS));
    assert_true(tti_engine_closing(members[0]));
    tti_engine_tick(engine, 20 * TTI_SECOND);
    drop_all_that_close(NULL, NULL);
    assert_int_equal(tti_engine_n_conns(engine), 0);
}

/* Somebody who has said hello, and is waited for to prove it, outlives a flood from its own address. */
static void who_has_said_hello_outlives_the_silent(void **state)
{
    const tti_hello_config config = { .client = true, .purpose = TTI_PURPOSE_STORE, .rank = TTI_HELLO_NO_RANK };
    tti_engine_conn       *member = come(0, "10.0.0.1"), *conn;
    tti_hello              hello;
    const void            *data;
    size_t                 bytes;
    int                    i;

    (void)state;
    tti_hello_begin(&hello, tti_port_system(), &config);
    data = tti_hello_output(&hello, &bytes);
    tti_engine_input(engine, member, data, bytes);
    for (i = 0; i < 20000; i++) {
        conn = come(i, "10.0.0.1");
        assert_non_null(conn);
        while ((conn = tti_engine_next(engine)) != NULL)
            if (tti_engine_closing(conn))
                tti_engine_drop(engine, conn);
    }
    assert_false(tti_engine_closing(member));
    tti_engine_tick(engine, 20 * TTI_SECOND);
    assert_true(tti_engine_closing(member)); /* but not its own time */
    while ((conn = tti_engine_next(engine)) != NULL)
        tti_engine_drop(engine, conn);
    tti_hello_release(&hello);
    assert_int_equal(tti_engine_n_conns(engine), 0);
}

/* Several addresses that flood at once, and one member of each: who has more than its part loses its oldest. */
static void floods_from_several_addresses_share(void **state)
{
    enum { HOSTS = 8, EACH = 2000 };
    tti_engine_conn *conn, *last = NULL;
    char             from[16];
    int              i;

    (void)state;
    for (i = 0; i < HOSTS * EACH; i++) {
        snprintf(from, sizeof from, "10.0.1.%d", i % HOSTS);
        last = come(i, from);
        assert_non_null(last);
        while ((conn = tti_engine_next(engine)) != NULL) {
            assert_ptr_not_equal(conn, last);
            tti_engine_drop(engine, conn);
        }
    }
    assert_false(tti_engine_closing(last));
    assert_int_equal(tti_engine_n_unproven(engine), 12288);
    tti_engine_tick(engine, 20 * TTI_SECOND);
    while ((conn = tti_engine_next(engine)) != NULL)
        tti_engine_drop(engine, conn);
}

/* ---- certificates without a secret ---- */

enum { SHAKING = 4 };

static char tls_dir[64];

/* An authority that is a member, too. */
static int issue(void)
{
    char command[512];

    snprintf(tls_dir, sizeof tls_dir, "/tmp/tutti-engine-XXXXXX");
    if (mkdtemp(tls_dir) == NULL)
        return -1;
    snprintf(command, sizeof command,
             "cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out cert -subj /CN=job -days 2 "
             "2>/dev/null && chmod 600 key", tls_dir);
    return system(command);
}

static void show_certificates(bool on)
{
    static const char *const names[][2] = { { "TUTTI_TLS_CERT", "cert" }, { "TUTTI_TLS_KEY", "key" }, { "TUTTI_TLS_CA", "cert" } };
    char                     path[96];
    size_t                   i;

    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", tls_dir, names[i][1]);
        (void)(on ? setenv(names[i][0], path, 1) : unsetenv(names[i][0]));
        if (!on)
            (void)unlink(path);
    }
    if (!on)
        (void)rmdir(tls_dir);
}

/* Whoever has said hello, and shows no certificate after it, is one of few. */
static void handshakes_that_prove_nothing_are_few(void **state)
{
    const tti_secret        secret = { .seal = TTI_SEAL_CERT };
    const tti_engine_limits limits = { .strangers_tls_max = SHAKING };
    tti_engine_conn        *conns[SHAKING + 2];
    int                     i, made = issue();

    (void)state;
    show_certificates(made == 0);
    if (made != 0)
        skip();
    assert_int_equal(tti_engine_create(tti_port_system(), &secret, &limits, &engine), TUTTI_OK);
    for (i = 0; i < SHAKING + 2; i++) {
        conns[i] = join_with(&secret);
        assert_int_equal(tti_engine_n_unproven(engine), i < SHAKING ? i + 1 : SHAKING);
    }
    for (i = 0; i < SHAKING + 2; i++) {
        assert_int_equal(tti_engine_closing(conns[i]), i < 2); /* the oldest two */
        tti_engine_drop(engine, conns[i]);
    }
    tti_engine_destroy(engine);
    show_certificates(false);
}

static int setup_quotas(void **state)
{
    const tti_engine_limits limits = { .stored_keys_max = 4, .client_keys_max = 3, .client_bytes_max = 100,
                                       .output_bytes_max = 300 };

    (void)state;
    return setup_with(&limits);
}

static void clients_have_quotas(void **state)
{
    tti_engine_conn *a = join(), *b = join();
    char             big[91];

    (void)state;
    memset(big, 'b', 90);
    big[90] = '\0';
    ask(a, TTI_STORE_SET, 1, "k", big);
    assert_int_equal(answer(a, 1, ""), TUTTI_OK);
    ask(a, TTI_STORE_SET, 2, "second", "0123456789");
    assert_int_equal(answer(a, 2, NULL), TUTTI_E_STORE); /* its bytes */
    ask(b, TTI_STORE_SET, 1, "second", "0123456789");
    assert_int_equal(answer(b, 1, ""), TUTTI_OK); /* the other's are not touched */
    ask(a, TTI_STORE_DELETE, 3, "k", NULL);
    assert_int_equal(answer(a, 3, NULL), TUTTI_OK);
    ask(a, TTI_STORE_MULTI_SET, 4, "1 2 3", "x");
    assert_int_equal(answer(a, 4, ""), TUTTI_OK); /* what was deleted counts no more */
    ask(a, TTI_STORE_SET, 5, "4", "x");
    assert_int_equal(answer(a, 5, NULL), TUTTI_E_STORE); /* keys */
    ask(a, TTI_STORE_SET, 6, "3", "another");
    assert_int_equal(answer(a, 6, ""), TUTTI_OK); /* one that is there */
    ask(b, TTI_STORE_QUEUE_PUSH, 2, "q", "x");
    assert_int_equal(answer(b, 2, NULL), TUTTI_E_STORE); /* of all clients */
    assert_int_equal(tti_engine_n_keys(engine), 4);
    tti_engine_drop(engine, a);
    tti_engine_drop(engine, b);
}

/* Who asks for much and reads nothing loses its connection, not the others theirs. */
static void unread_replies_are_bounded(void **state)
{
    tti_engine_conn *a = join(), *b = join();
    char             big[81];
    uint32_t         id;

    (void)state;
    memset(big, 'b', 80);
    big[80] = '\0';
    ask(a, TTI_STORE_SET, 0, "k", big);
    assert_int_equal(answer(a, 0, ""), TUTTI_OK);
    for (id = 1; id <= 8 && !tti_engine_closing(b); id++)
        ask(b, TTI_STORE_GET, id, "k", NULL);
    assert_true(tti_engine_closing(b));
    tti_engine_drop(engine, b);
    ask(a, TTI_STORE_GET, 1, "k", NULL);
    assert_int_equal(answer(a, 1, big), TUTTI_OK);
    tti_engine_drop(engine, a);
}

static void slow_hellos_and_slow_requests_are_ended(void **state)
{
    uint8_t          part[2100] = { 0 };
    tti_engine_conn *a = join(), *b;

    (void)state;
    assert_true(tti_engine_deadline(engine) == TTI_FOREVER);
    b = come(5 * TTI_SECOND, "b");
    assert_true(tti_engine_deadline(engine) == 6 * TTI_SECOND);
    tti_engine_input(engine, b, "TUT", 3);
    tti_engine_tick(engine, 6 * TTI_SECOND - 1);
    assert_false(tti_engine_closing(b));
    tti_engine_tick(engine, 6 * TTI_SECOND);
    assert_true(tti_engine_closing(b));
    assert_false(tti_engine_reads(b));
    assert_true(tti_engine_deadline(engine) == TTI_FOREVER);
    tti_engine_drop(engine, b);

    /* A frame that claims 16 MiB and dribbles: ended when all input beyond the limit is in hand. */
    tti_put_u32(part, 16000000);
    part[4] = TTI_STORE_VERSION;
    part[5] = TTI_STORE_SET;
    tti_engine_input(engine, a, part, 1500);
    assert_false(tti_engine_closing(a));
    tti_engine_input(engine, a, part + 100, 600);
    assert_true(tti_engine_closing(a));
    tti_engine_drop(engine, a);
}

/* Requests before the hello are a foreign hello. */
static void nothing_is_served_before_the_hello(void **state)
{
    tti_engine_conn *a = come(0, "a");

    (void)state;
    ask(a, TTI_STORE_SET, 1, "k", "v");
    assert_true(tti_engine_closing(a));
    assert_true(silent(a));
    assert_int_equal(tti_engine_n_keys(engine), 0);
    assert_ptr_equal(tti_engine_next(engine), a);
    assert_null(tti_engine_next(engine));
    tti_engine_drop(engine, a);
}

/* ---- with TLS ---- */

static const tti_secret sealed = { .present = true, .seal = TTI_SEAL_KEY, .padded = { 1, 2, 3 } };

static int setup_sealed(void **state)
{
    (void)state;
    return tti_engine_create(tti_port_system(), &sealed, NULL, &engine) == TUTTI_OK ? 0 : -1;
}

static bool to_engine(void *context, const void *data, size_t bytes)
{
    tti_engine_input(engine, context, data, bytes);
    return true;
}

static int64_t from_engine(void *context, void *out, size_t bytes)
{
    size_t      have;
    const void *data = tti_engine_output(context, &have);

    if (have == 0)
        return -EAGAIN;
    if (bytes > have)
        bytes = have;
    memcpy(out, data, bytes);
    tti_engine_sent(engine, context, bytes);
    return (int64_t)bytes;
}

static tti_engine_conn *join_sealed(tti_tls **tls_out)
{
    const tti_hello_config config = { .client = true, .purpose = TTI_PURPOSE_STORE, .rank = TTI_HELLO_NO_RANK, .secret = &sealed };
    tti_engine_conn       *conn = come(0, "10.0.0.2");
    tti_tls_io             io = { .context = conn, .write = to_engine, .read = from_engine };
    uint8_t                in[TTI_HELLO_SERVER_BYTES];
    tti_hello              hello;
    const void            *data;
    size_t                 bytes;
    bool                   done = false;
    int                    i;

    tti_hello_begin(&hello, tti_port_system(), &config);
    data = tti_hello_output(&hello, &bytes);
    tti_engine_input(engine, conn, data, bytes);
    tti_hello_sent(&hello, bytes);
    assert_int_equal(from_engine(conn, in, sizeof in), sizeof in);
    assert_int_equal(tti_hello_feed(&hello, in, sizeof in), TUTTI_OK);
    data = tti_hello_output(&hello, &bytes);
    tti_engine_input(engine, conn, data, bytes);
    tti_hello_sent(&hello, bytes);
    assert_int_equal(tti_tls_create(&hello, &io, tls_out), TUTTI_OK);
    for (i = 0; i < 10 && !done; i++)
        assert_int_equal(tti_tls_shake(*tls_out, &done), TUTTI_OK);
    assert_true(done && conn->open);
    tti_hello_release(&hello);
    return conn;
}

static void count_keys(tti_tls *tls)
{
    const tti_store_request request = { .op = TTI_STORE_NUM_KEYS, .id = 1 };
    tti_buffer              frame = { .memory = NULL };

    assert_int_equal(tti_store_request_write(&request, &frame), TUTTI_OK);
    assert_int_equal(tti_tls_write(tls, tti_buffer_data(&frame), frame.size), frame.size);
    tti_buffer_release(&frame);
}

/* What goes wrong with one connection's encryption is not another's: that has its reply. */
static void one_that_cannot_be_encrypted_harms_no_other(void **state)
{
    tti_tls         *tls[3];
    tti_engine_conn *conns[3];
    uint8_t          reply[TTI_STORE_HEAD_BYTES + 8];
    int              i;

    (void)state;
    for (i = 0; i < 3; i++)
        conns[i] = join_sealed(&tls[i]);
    while (tti_engine_next(engine) != NULL)
        continue;
    for (i = 0; i < 3; i++)
        count_keys(tls[i]);
    tti_tls_say_end(conns[0]->tls); /* nothing can be written behind that */
    tti_tls_say_end(conns[1]->tls);
    assert_ptr_equal(tti_engine_next(engine), conns[2]);
    assert_int_equal(tti_tls_read(tls[2], reply, sizeof reply), sizeof reply);
    for (i = 0; i < 2; i++) {
        assert_ptr_equal(tti_engine_next(engine), conns[i]);
        assert_true(tti_engine_closing(conns[i]));
    }
    assert_null(tti_engine_next(engine));
    for (i = 0; i < 3; i++) {
        tti_tls_free(tls[i]);
        tti_engine_drop(engine, conns[i]);
    }
}

/* What the log says meanwhile. */
static FILE *log_begins(int *before_out)
{
    FILE *file = tmpfile();

    assert_non_null(file);
    fflush(stderr);
    *before_out = dup(STDERR_FILENO);
    assert_true(*before_out >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    return file;
}

static void log_ends(FILE *file, int before, char *text_out, size_t bytes)
{
    fflush(stderr);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    close(before);
    rewind(file);
    text_out[fread(text_out, 1, bytes - 1, file)] = '\0';
    fclose(file);
}

static int times(const char *text, const char *words)
{
    int n = 0;

    while ((text = strstr(text, words)) != NULL) {
        text += strlen(words);
        n++;
    }
    return n;
}

/* Comes with another secret, and leaves as a client does, which cannot confirm what it is shown; or goes on in spite of it. */
static void come_with(const tti_secret *secret, bool goes_on)
{
    const tti_hello_config config = { .client = true, .purpose = TTI_PURPOSE_STORE, .rank = TTI_HELLO_NO_RANK, .secret = secret };
    static const uint8_t   proof[TTI_HELLO_FINISH_BYTES] = { 1, 2, 3 };
    tti_engine_conn       *conn = come(0, "192.0.2.7");
    tti_hello              hello;
    const void            *data;
    size_t                 bytes;

    assert_non_null(conn);
    tti_hello_begin(&hello, tti_port_system(), &config);
    data = tti_hello_output(&hello, &bytes);
    tti_engine_input(engine, conn, data, bytes);
    tti_hello_sent(&hello, bytes);
    data = tti_engine_output(conn, &bytes);
    assert_int_equal(tti_hello_feed(&hello, data, bytes), TUTTI_E_AUTH);
    tti_engine_sent(engine, conn, bytes);
    if (goes_on) { /* in two pieces */
        tti_engine_input(engine, conn, proof, 1);
        tti_engine_input(engine, conn, proof + 1, sizeof proof - 1);
        assert_true(tti_engine_closing(conn));
    }
    tti_hello_release(&hello);
    tti_engine_drop(engine, conn);
}

static int setup_secret(void **state)
{
    static const uint8_t key[TTI_SECRET_BYTES] = { 5 };
    tti_secret           secret;
    int                  rc;

    (void)state;
    assert_int_equal(tti_secret_make(key, &secret), TUTTI_OK);
    rc = tti_engine_create(tti_port_system(), &secret, NULL, &engine) == TUTTI_OK ? 0 : -1;
    tti_secret_release(&secret);
    return rc;
}

/* The launcher that serves the store says that somebody has another secret, whichever end has seen it first; once, of many. */
static void another_secret_is_told_here_too(void **state)
{
    static const uint8_t other[TTI_SECRET_BYTES] = { 6 };
    char                 text[4096];
    tti_secret           secret;
    FILE                *file;
    int                  before, i;

    assert_int_equal(tti_secret_make(other, &secret), TUTTI_OK);
    file = log_begins(&before);
    (void)state;
    come_with(&secret, false);
    for (i = 0; i < 20; i++)
        come_with(&secret, i % 2 == 0);
    log_ends(file, before, text, sizeof text);
    if (times(text, "store: turned away 192.0.2.7") != 1 || strstr(text, "secret") == NULL ||
        strstr(text, "\n  next: if it is of this job, give all processes the same TUTTI_SECRET_FILE") == NULL)
        fail_msg("it says '%s'", text);
    tti_secret_release(&secret);
}

/* Also where there is no secret: at once, once, and whoever waits in vain for that one is to hear of it. */
static void who_has_a_secret_where_there_is_none_is_kept_in_mind(void **state)
{
    static const uint8_t other[TTI_SECRET_BYTES] = { 6 };
    char                 who[TTI_TURNED_TEXT_MAX], text[4096];
    tti_secret           secret;
    FILE                *file;
    int                  before;

    (void)state;
    (void)tti_store_turned_take(0, who);
    assert_int_equal(tti_secret_make(other, &secret), TUTTI_OK);
    file = log_begins(&before);
    come_with(&secret, false);
    come_with(&secret, false);
    log_ends(file, before, text, sizeof text);
    if (times(text, "store: turned away 192.0.2.7") != 1 || strstr(text, "which left when it saw that there is no secret here") == NULL ||
        strstr(text, "\n  next: if it is of this job, give all processes the same TUTTI_SECRET_FILE, or none") == NULL)
        fail_msg("it says '%s'", text);
    tti_fail(TUTTI_E_TIMEOUT, "rank 1 did not come\n  next: wait");
    assert_int_equal(tti_store_turned_add(TUTTI_E_TIMEOUT, 0), TUTTI_E_TIMEOUT);
    if (strstr(tutti_last_error(), "rank 1 did not come; the store here has turned away 192.0.2.7") == NULL ||
        strstr(tutti_last_error(), "there is no secret here") == NULL ||
        strstr(tutti_last_error(), "\n  next: wait; if that is of this job, give all processes the same TUTTI_SECRET_FILE") == NULL)
        fail_msg("it says '%s'", tutti_last_error());
    assert_false(tti_store_turned_take(0, who));
    come_with(&secret, false);
    assert_false(tti_store_turned_take(INT64_MAX, who)); /* it is older than that wait, and of none that comes later */
    assert_false(tti_store_turned_take(0, who));
    tti_secret_release(&secret);
}

static void who_proves_itself_is_not_told_of(void **state)
{
    static const uint8_t key[TTI_SECRET_BYTES] = { 5 };
    char                 text[4096];
    tti_secret           secret;
    FILE                *file;
    int                  before;

    (void)state;
    assert_int_equal(tti_secret_make(key, &secret), TUTTI_OK);
    file = log_begins(&before);
    tti_engine_drop(engine, join_with(&secret)); /* a member, and somebody who says nothing */
    tti_engine_drop(engine, come(0, "192.0.2.7"));
    log_ends(file, before, text, sizeof text);
    if (strstr(text, "turned away") != NULL)
        fail_msg("it says '%s'", text);
    tti_secret_release(&secret);
}

/* Whoever is in the middle of its hello when the server ends. */
static void leave_at_the_end(const tti_secret *secret)
{
    const tti_hello_config config = { .client = true, .purpose = TTI_PURPOSE_STORE, .rank = TTI_HELLO_NO_RANK, .secret = secret };
    tti_engine_conn       *conn = come(0, "192.0.2.7");
    tti_hello              hello;
    const void            *data;
    char                   text[4096];
    size_t                 bytes;
    int                    before;
    FILE                  *file = log_begins(&before);

    assert_non_null(conn);
    tti_hello_begin(&hello, tti_port_system(), &config);
    data = tti_hello_output(&hello, &bytes);
    tti_engine_input(engine, conn, data, bytes);
    data = tti_engine_output(conn, &bytes);
    assert_int_equal(bytes, TTI_HELLO_SERVER_BYTES);
    tti_engine_sent(engine, conn, bytes);
    tti_engine_ends(engine);
    tti_engine_drop(engine, conn);
    tti_hello_release(&hello);
    log_ends(file, before, text, sizeof text);
    if (strstr(text, "turned away") != NULL)
        fail_msg("it says '%s'", text);
}

static void who_is_dropped_at_the_end_is_not_told_of(void **state)
{
    static const uint8_t key[TTI_SECRET_BYTES] = { 5 };
    tti_secret           secret;

    (void)state;
    assert_int_equal(tti_secret_make(key, &secret), TUTTI_OK);
    leave_at_the_end(&secret);
    tti_secret_release(&secret);
}

static void nor_without_a_secret(void **state)
{
    (void)state;
    leave_at_the_end(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(waits_end_when_the_last_key_comes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_waiter_that_is_dropped_is_missed, setup, teardown),
        cmocka_unit_test_setup_teardown(waiters_leave_lists_in_any_order, setup, teardown),
        cmocka_unit_test_setup_teardown(a_push_ends_the_oldest_pop, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_is_handed_to_a_closing_connection, setup, teardown),
        cmocka_unit_test_setup_teardown(queues_count_as_keys_for_waits_only, setup, teardown),
        cmocka_unit_test_setup_teardown(lists_of_values_wait_and_wake, setup, teardown),
        cmocka_unit_test_setup_teardown(full_queues_are_refused, setup_tight, teardown),
        cmocka_unit_test_setup_teardown(wills_are_carried_out_when_connections_end, setup, teardown),
        cmocka_unit_test_setup_teardown(a_will_has_to_fit, setup_tight, teardown),
        cmocka_unit_test_setup_teardown(needs_are_known_until_they_are_over, setup, teardown),
        cmocka_unit_test_setup_teardown(needs_of_a_client_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(late_cancels_are_ignored, setup, teardown),
        cmocka_unit_test_setup_teardown(talking_while_waiting_ends_the_connection, setup, teardown),
        cmocka_unit_test_setup_teardown(pieces_do_not_matter, setup, teardown),
        cmocka_unit_test_setup_teardown(unread_replies_hold_the_reader_up, setup, teardown),
        cmocka_unit_test_setup_teardown(limits_hold, setup_tight, teardown),
        cmocka_unit_test_setup_teardown(a_flood_drops_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(a_flood_that_speaks_drops_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(many_addresses_of_one_are_one, setup, teardown),
        cmocka_unit_test_setup_teardown(few_are_not_relieved_of, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_cannot_be_encrypted_harms_no_other, setup_sealed, teardown),
        cmocka_unit_test_setup_teardown(who_has_said_hello_outlives_the_silent, setup, teardown),
        cmocka_unit_test_setup_teardown(another_secret_is_told_here_too, setup_secret, teardown),
        cmocka_unit_test_setup_teardown(who_has_a_secret_where_there_is_none_is_kept_in_mind, setup, teardown),
        cmocka_unit_test_setup_teardown(who_is_dropped_at_the_end_is_not_told_of, setup_secret, teardown),
        cmocka_unit_test_setup_teardown(nor_without_a_secret, setup, teardown),
        cmocka_unit_test_setup_teardown(who_proves_itself_is_not_told_of, setup_secret, teardown),
        cmocka_unit_test_setup_teardown(floods_from_several_addresses_share, setup, teardown),
        cmocka_unit_test(handshakes_that_prove_nothing_are_few),
        cmocka_unit_test_setup_teardown(clients_have_quotas, setup_quotas, teardown),
        cmocka_unit_test_setup_teardown(unread_replies_are_bounded, setup_quotas, teardown),
        cmocka_unit_test_setup_teardown(slow_hellos_and_slow_requests_are_ended, setup_tight,
                                        teardown),
        cmocka_unit_test_setup_teardown(nothing_is_served_before_the_hello, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

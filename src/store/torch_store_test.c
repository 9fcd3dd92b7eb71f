/* SPDX-License-Identifier: BSD-3-Clause
 *
 * torch_store_test.c
 * Goal    a torch-tcp store gets along with every server it may meet: one that is no TCPStore, that is
 *         silent, that answers nonsense, that is old, or whose answer crosses the end of a wait.
 * Method  the tests' own server (harness/torch_server.h) misbehaves on request. What a proper one
 *         does is tested in tests/conformance, the real one in tests/interop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/doubt.h"
#include "base/port.h"
#include "harness/torch_server.h"
#include "store/store.h"

/* Codes of the protocol. */
enum { COMPARE_SET = 2, ADD = 4, CHECK = 5, CANCEL = 12, PING = 13, LIST_KEYS = 17 };

enum { EXPIRES_MS = 50 }; /* the wait has been begun by then */

static tt_torch_server *server;
static tutti_store     *store;

static void says(const char *words)
{
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, tutti_last_error());
}

static tutti_status open_at(int port, bool join, int64_t timeout_ms)
{
    tutti_torch_store_options options = TUTTI_TORCH_STORE_OPTIONS;

    options.host = "127.0.0.1";
    options.port = port;
    options.join = join;
    options.timeout_ms = timeout_ms;
    return tti_torch_store_open_on(tti_port_system(), &options, &store);
}

static void serve(const tt_torch_behaviour *how)
{
    server = tt_torch_server_start(how);
    assert_non_null(server);
}

static void open_with(const tt_torch_behaviour *how)
{
    serve(how);
    assert_int_equal(open_at(tt_torch_server_port(server), false, 0), TUTTI_OK);
}

static int clean_up(void **state)
{
    (void)state;
    tutti_store_close(store);
    tt_torch_server_stop(server);
    store = NULL;
    server = NULL;
    return 0;
}

static void wrong_options_are_named(void **state)
{
    tutti_torch_store_options options = TUTTI_TORCH_STORE_OPTIONS;

    (void)state;
    assert_int_equal(tutti_torch_store_open(NULL, &store), TUTTI_E_ARG);
    assert_int_equal(tutti_torch_store_open(&options, &store), TUTTI_E_ARG);
    says("needs a host");
    options.host = "127.0.0.1";
    assert_int_equal(tutti_torch_store_open(&options, &store), TUTTI_E_ARG);
    says("port is 0");
    options.port = 65536;
    assert_int_equal(tutti_torch_store_open(&options, &store), TUTTI_E_ARG);
    options.port = 1;
    options.timeout_ms = -2;
    assert_int_equal(tutti_torch_store_open(&options, &store), TUTTI_E_ARG);
    assert_null(store);
}

/* A store of ours closes over the greeting of a stranger. */
static void another_kind_of_server_is_noticed(void **state)
{
    tutti_store_server *other = NULL;

    (void)state;
    assert_int_equal(tutti_store_server_start(NULL, &other), TUTTI_OK);
    assert_int_equal(open_at(tutti_store_server_port(other), false, 2000), TUTTI_E_NETWORK);
    says("closed the connection over our greeting");
    assert_null(store);
    tutti_store_server_stop(other);
}

static void a_wrong_pong_is_noticed(void **state)
{
    const tt_torch_behaviour how = { .say[PING] = { "nope", 4 } };

    (void)state;
    serve(&how);
    assert_int_equal(open_at(tt_torch_server_port(server), false, 20000), TUTTI_E_STORE);
    says("answered the ping");
}

static void a_silent_server_is_not_waited_for(void **state)
{
    const tt_torch_behaviour how = { .say[PING] = { "", 0 } };

    (void)state;
    serve(&how);
    assert_int_equal(open_at(tt_torch_server_port(server), false, 1000), TUTTI_E_TIMEOUT);
    says("took too long");
}

static void joining_is_counted(void **state)
{
    int64_t n = 0;

    (void)state;
    serve(NULL);
    assert_int_equal(open_at(tt_torch_server_port(server), true, 0), TUTTI_OK);
    assert_int_equal(tutti_store_num_keys(store, &n), TUTTI_OK);
    assert_int_equal(n, 1); /* the server's own key */
    assert_true(tti_store_is_foreign(store));
}

/* The connection of a wait that expired is used again, also when its end crossed the cancelling. */
static void expired_waits_keep_their_connection(void **state)
{
    tutti_bytes value = { .data = NULL };
    int         i;

    (void)state;
    open_with(NULL);
    for (i = 0; i < 3; i++) {
        assert_int_equal(tutti_store_get(store, "never", EXPIRES_MS, &value), TUTTI_E_TIMEOUT);
        says("key 'never' did not come within");
        assert_int_equal(tutti_store_set(store, "k", "v", 1), TUTTI_OK);
    }
    assert_int_equal(tt_torch_server_accepted(server), 1);
}

static bool asked_often(void *context)
{
    int *asked = context;

    return ++*asked > 5;
}

/* Who knows from elsewhere that the key will not come does not wait for it, however much time there is. */
static void a_wait_in_vain_is_ended(void **state)
{
    int               asked = 0;
    const tti_doubt   doubt = { .is_vain = asked_often, .context = &asked };
    const char *const key = "never";
    tutti_bytes       value = { .data = NULL };

    (void)state;
    open_with(NULL);
    tti_doubt_waits(&doubt);
    assert_int_equal(tutti_store_get(store, key, 60000, &value), TUTTI_E_NETWORK);
    says("not waited for any more");
    asked = 0;
    assert_int_equal(tutti_store_wait(store, &key, 1, 60000), TUTTI_E_NETWORK);
    tti_doubt_waits(NULL);
    assert_int_equal(tutti_store_set(store, "k", "v", 1), TUTTI_OK); /* over another connection */
}

/* Nor is a wait that is to end early, and its connection is kept. */
static void a_wait_that_is_to_end_is_ended(void **state)
{
    const _Atomic bool stops = true;
    const int64_t      began_ns = tti_port_now(tti_port_system());
    const char *const  key = "never";
    tutti_bytes        value = { .data = NULL };

    (void)state;
    open_with(NULL);
    tti_store_heed(&stops);
    assert_int_equal(tutti_store_get(store, key, 60000, &value), TUTTI_E_TIMEOUT);
    assert_int_equal(tutti_store_wait(store, &key, 1, 60000), TUTTI_E_TIMEOUT);
    tti_store_heed(NULL);
    assert_true(tti_port_now(tti_port_system()) - began_ns < 30 * TTI_SECOND);
    assert_int_equal(tutti_store_set(store, "k", "v", 1), TUTTI_OK);
    assert_int_equal(tt_torch_server_accepted(server), 1);
}

static void crossing_answers_count(void **state)
{
    const tt_torch_behaviour how = { .crosses = true };
    const char *const        key = "crossing";
    int                      i;

    (void)state;
    open_with(&how);
    for (i = 0; i < 3; i++) {
        assert_int_equal(tutti_store_wait(store, &key, 1, EXPIRES_MS), TUTTI_OK);
        assert_int_equal(tutti_store_set(store, "k", "v", 1), TUTTI_OK);
    }
    assert_int_equal(tt_torch_server_accepted(server), 1);
}

static void nonsense_ends_a_wait(void **state)
{
    const tt_torch_behaviour how = { .say[CANCEL] = { "\7", 1 } };
    const char *const        key = "k";

    (void)state;
    open_with(&how);
    assert_int_equal(tutti_store_wait(store, &key, 1, EXPIRES_MS), TUTTI_E_STORE);
    says("answered a wait with the byte 7");
}

static void hostile_answers_are_refused(void **state)
{
    const tt_torch_behaviour how = {
        .say[COMPARE_SET] = { "\xff\xff\xff\xff\xff\xff\xff\x7f", 8 },
        .say[CHECK] = { "\x2a", 1 },
        .say[LIST_KEYS] = { "\xff\xff\xff\xff\xff\xff\xff\xff", 8 },
    };
    const char *const key = "k";
    tutti_store_keys  keys = { .names = NULL };
    tutti_bytes       value = { .data = NULL };
    bool              all = false;

    (void)state;
    open_with(&how);
    assert_int_equal(tutti_store_get(store, key, 20000, &value), TUTTI_E_STORE);
    says("9223372036854775807 bytes");
    assert_int_equal(tutti_store_check(store, &key, 1, &all), TUTTI_E_STORE);
    assert_int_equal(tutti_store_list_keys(store, &keys), TUTTI_E_STORE);
    assert_int_equal(tutti_store_multi_get(store, &key, 1, 20000, &value), TUTTI_E_STORE);
    assert_null(value.data);
    assert_int_equal(tutti_store_set(store, key, "v", 1), TUTTI_OK); /* on a fresh connection */
}

/* Once, on a connection of its own; the others go on. */
static void old_servers_are_asked_once(void **state)
{
    const tt_torch_behaviour how = { .old = true };
    tutti_store_keys         keys = { .names = NULL };
    int64_t                  n = 0;
    int                      accepted;

    (void)state;
    open_with(&how);
    assert_int_equal(tutti_store_queue_len(store, "q", &n), TUTTI_E_UNSUPPORTED);
    says("has no queues");
    assert_int_equal(tutti_store_list_keys(store, &keys), TUTTI_E_UNSUPPORTED);
    says("has no list of keys");
    accepted = tt_torch_server_accepted(server);
    assert_int_equal(tutti_store_queue_push(store, "q", "x", 1), TUTTI_E_UNSUPPORTED);
    assert_int_equal(tutti_store_list_keys(store, &keys), TUTTI_E_UNSUPPORTED);
    assert_int_equal(tutti_store_set(store, "k", "v", 1), TUTTI_OK);
    assert_int_equal(tt_torch_server_accepted(server), accepted);
}

/* The server was there a moment ago: one that refuses now is dead, and not waited for. */
static void a_dead_server_is_not_cloned_from(void **state)
{
    tutti_store *twin = NULL;

    (void)state;
    serve(NULL);
    assert_int_equal(open_at(tt_torch_server_port(server), false, 20000), TUTTI_OK);
    tt_torch_server_stop(server);
    server = NULL;
    assert_int_equal(tutti_store_clone(store, &twin), TUTTI_E_NETWORK);
    says("tried 1 time in ");
    assert_null(twin);
}

/* Every call ends at once, whatever the limit, and says where the server was. */
static void a_dead_server_ends_calls(void **state)
{
    const char *const key = "k";
    tutti_bytes       value = { .data = NULL };
    int64_t           n = 0;

    (void)state;
    open_with(NULL);
    tt_torch_server_stop(server);
    server = NULL;
    assert_int_equal(tutti_store_wait(store, &key, 1, TUTTI_INFINITE), TUTTI_E_NETWORK);
    assert_int_equal(tutti_store_get(store, key, TUTTI_INFINITE, &value), TUTTI_E_NETWORK);
    assert_int_equal(tutti_store_add(store, key, 1, &n), TUTTI_E_NETWORK);
    says("127.0.0.1");
    assert_int_equal(tutti_store_queue_len(store, key, &n), TUTTI_E_NETWORK);
    assert_int_equal(tutti_store_set(store, key, "v", 1), TUTTI_E_NETWORK);
    says("127.0.0.1");
}

/* ---- a program's own store ---- */

static tutti_status own_set(tutti_store *own, const char *key, const void *val, size_t len, int64_t deadline_ns)
{
    (void)own, (void)key, (void)val, (void)len, (void)deadline_ns;
    return tutti_store_fail(TUTTI_E_NETWORK, "the way to 100% of them is gone");
}

static tutti_status own_get(tutti_store *own, const char *key, int64_t deadline_ns, tutti_bytes *val_out)
{
    (void)own, (void)key, (void)deadline_ns, (void)val_out;
    return tutti_store_fail(TUTTI_OK, NULL);
}

static tutti_status own_add(tutti_store *own, const char *key, int64_t delta, int64_t deadline_ns, int64_t *sum_out)
{
    (void)own, (void)key, (void)deadline_ns;
    *sum_out = delta;
    return TUTTI_OK;
}

static void own_close(tutti_store *own)
{
    free(own);
}

static void a_programs_own_store_is_foreign_and_has_words(void **state)
{
    static const tutti_store_ops ops = { .api = TUTTI_STORE_API, .size = sizeof ops, .scheme = "own", .set = own_set,
                                         .get = own_get, .add = own_add, .close = own_close };
    const _Atomic bool           stop = true;
    tutti_store                 *hash = NULL;
    tutti_bytes                  value = { .data = NULL };
    int64_t                      slice_ns;

    (void)state;
    store = calloc(1, sizeof *store);
    assert_non_null(store);
    store->ops = &ops;
    assert_int_equal(tutti_store_adopt(store), TUTTI_OK);
    assert_true(tti_store_is_foreign(store));
    assert_int_equal(tutti_store_set(store, "k", "v", 1), TUTTI_E_NETWORK);
    assert_string_equal(tutti_last_error(), "the way to 100% of them is gone");
    assert_int_equal(tutti_store_get(store, "k", 1, &value), TUTTI_E_STORE); /* a failure is never TUTTI_OK */
    says("without a word");
    assert_false(tutti_store_stops());
    assert_int_equal(tutti_store_slice(INT64_MAX), INT64_MAX);
    tti_store_heed(&stop);
    assert_true(tutti_store_stops());
    slice_ns = tutti_store_slice(INT64_MAX); /* before the clock is read */
    assert_true(slice_ns < tti_port_now(tti_port_system()) + 1000 * TTI_MS);
    tti_store_heed(NULL);
    assert_int_equal(tutti_hash_store_open(&hash), TUTTI_OK);
    assert_false(tti_store_is_foreign(hash));
    tutti_store_close(hash);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_teardown(test, clean_up)
    const struct CMUnitTest tests[] = {
        TEST(wrong_options_are_named),
        TEST(another_kind_of_server_is_noticed),
        TEST(a_wrong_pong_is_noticed),
        TEST(a_silent_server_is_not_waited_for),
        TEST(joining_is_counted),
        TEST(expired_waits_keep_their_connection),
        TEST(a_wait_in_vain_is_ended),
        TEST(a_wait_that_is_to_end_is_ended),
        TEST(crossing_answers_count),
        TEST(nonsense_ends_a_wait),
        TEST(hostile_answers_are_refused),
        TEST(old_servers_are_asked_once),
        TEST(a_dead_server_is_not_cloned_from),
        TEST(a_dead_server_ends_calls),
        TEST(a_programs_own_store_is_foreign_and_has_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

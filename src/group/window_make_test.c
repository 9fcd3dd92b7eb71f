/* SPDX-License-Identifier: BSD-3-Clause
 *
 * window_make_test.c
 * Goal    a window's end that fails is told to the backend before the part is closed: what other members still send there would
 *         be for a window that there is not.
 * Method  a world of one, over a table whose windows write down what they are asked for. */
#include "fake_backend.h"
#include "group/one_sided.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/private.h>

enum { COUNT = 4, TIMEOUT_MS = 30000 };

/* What the backend was asked for, in order: "F" fail, "c" close, "a" close as agreed. */
static char         asked[8];
static tutti_status flush_status;
static size_t       opened_bytes;

static void ask(char what)
{
    const size_t n = strlen(asked);

    if (n + 1 < sizeof asked)
        asked[n] = what;
}

struct tutti_backend_window {
    int unused;
};

static tutti_status open_part(tutti_backend *backend, uint32_t id, void *data, size_t bytes,
                              uint8_t card_out[TUTTI_WINDOW_CARD_BYTES], tutti_backend_window **window_out)
{
    static tutti_backend_window window;

    (void)backend;
    (void)id;
    (void)data;
    memset(card_out, 0, TUTTI_WINDOW_CARD_BYTES);
    opened_bytes = bytes;
    *window_out = &window;
    return TUTTI_OK;
}

static tutti_status attach(tutti_backend_window *window, const uint8_t (*cards)[TUTTI_WINDOW_CARD_BYTES])
{
    (void)window;
    (void)cards;
    return TUTTI_OK;
}

static size_t bytes_of(tutti_backend_window *window, int peer)
{
    (void)window;
    (void)peer;
    return opened_bytes;
}

static tutti_status flush(tutti_backend_window *window, int peer, tutti_request **request_out)
{
    (void)window;
    *request_out = NULL;
    return flush_status == TUTTI_OK ? TUTTI_OK : tti_fail(flush_status, "what was put to rank %d is lost", peer);
}

static void close_part(tutti_backend_window *window, bool agreed)
{
    (void)window;
    ask(agreed ? 'a' : 'c');
}

static void note_failure(tutti_backend *backend, tutti_status st)
{
    CHECK(st == flush_status);
    CHECK(strstr(tutti_last_error(), "is lost") != NULL); /* what others are told */
    ask('F');
    fake_ops.abort(backend);
}

static const tutti_window_ops windows = { .size = sizeof windows, .open = open_part, .attach = attach, .flush = flush,
                                          .close = close_part, .bytes = bytes_of };

/* Make a window in a world of one, and end it. */
static void end_a_window(tutti_status flushed, tutti_status expected)
{
    tutti_backend_ops table = fake_ops;
    tutti_store      *store = NULL;
    tutti_group      *world = NULL;
    tutti_window     *window = NULL;
    tti_join          join = { .user_store = true, .world_size = 1, .timeout_ms = TIMEOUT_MS, .deadline_ns = TTI_FOREVER,
                               .listen_host = "127.0.0.1" };
    int32_t           part[COUNT] = { 0 };
    const tutti_span  buf = TUTTI_SPAN(part, COUNT);

    table.windows = &windows;
    table.fail = note_failure;
    memset(asked, 0, sizeof asked);
    flush_status = flushed;
    assert_int_equal(tutti_hash_store_open(&store), TUTTI_OK);
    join.store = store;
    assert_int_equal(tti_world_create(tti_port_system(), &(tti_backing){ .ops = &table }, &join, &world), TUTTI_OK);
    assert_int_equal(tutti_window_create(&buf, world, &window), TUTTI_OK);
    assert_int_equal(tutti_window_free(window), expected);
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
    tutti_store_close(store);
}

static void who_cannot_flush_tells_first(void **state)
{
    (void)state;
    end_a_window(TUTTI_E_PEER, TUTTI_E_PEER);
    assert_string_equal(asked, "Fc");
}

static void who_has_met_all_closes_as_agreed(void **state)
{
    (void)state;
    end_a_window(TUTTI_OK, TUTTI_OK);
    assert_string_equal(asked, "a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_cannot_flush_tells_first, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(who_has_met_all_closes_as_agreed, fake_setup, fake_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * registry_test.c
 * Goal    unknown names are answered with those there are, and where plug-ins were looked for; tables that cannot be driven are
 *         refused; a program's own table is found, and completed. */
#include "backend/registry.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/backends.h>
#include "backend/plugin/plugin.h"
#include "backend/plugin/table.h"
#include "base/last.h"

static tutti_status create(const tutti_backend_config *config, tutti_backend **backend_out)
{
    (void)config;
    (void)backend_out;
    return TUTTI_E_UNSUPPORTED;
}

static tutti_status run(tutti_backend *backend, const tutti_call *call)
{
    (void)backend;
    (void)call;
    return TUTTI_E_UNSUPPORTED;
}

static tutti_status post(tutti_backend *backend, const tutti_message *message,
                         tutti_request **request_out)
{
    (void)backend;
    (void)message;
    (void)request_out;
    return TUTTI_E_UNSUPPORTED;
}

static tutti_status wait_for(tutti_request *request, int64_t deadline_ns)
{
    (void)request;
    (void)deadline_ns;
    return TUTTI_E_UNSUPPORTED;
}

static bool test(tutti_request *request)
{
    (void)request;
    return true;
}

static int source(const tutti_request *request)
{
    (void)request;
    return -1;
}

static void release(tutti_request *request)
{
    (void)request;
}

static void drop(tutti_backend *backend)
{
    (void)backend;
}

static const tutti_backend_ops whole = {
    .api = TUTTI_BACKEND_API,
    .size = sizeof(tutti_backend_ops),
    .name = "whole",
    .create = create,
    .run = run,
    .post = post,
    .wait = wait_for,
    .test = test,
    .source = source,
    .release = release,
    .abort = drop,
    .destroy = drop,
};

static tutti_status advance(tutti_backend *backend, const tutti_call *call, tutti_progress *progress_out)
{
    (void)backend;
    (void)call;
    (void)progress_out;
    return TUTTI_E_UNSUPPORTED;
}

static tutti_backend_ops without_messages(const tutti_backend_ops *ops)
{
    tutti_backend_ops mute = *ops;

    mute.post = NULL;
    mute.wait = NULL;
    mute.test = NULL;
    mute.source = NULL;
    mute.release = NULL;
    return mute;
}

static void assert_refused(const tutti_backend_ops *ops, tutti_status status, const char *word)
{
    assert_int_equal(tti_backend_check("backend 'x'", ops), status);
    assert_non_null(strstr(tutti_last_error(), word));
}

static void test_check(void **state)
{
    tutti_backend_ops ops = whole;

    (void)state;
    assert_int_equal(tti_backend_check("backend 'x'", &whole), TUTTI_OK);
    ops.api = TUTTI_BACKEND_API + 1;
    assert_refused(&ops, TUTTI_E_UNSUPPORTED, "version 5, which is too new");
    ops.api = 0;
    assert_refused(&ops, TUTTI_E_UNSUPPORTED, "version 0, which is too old");
    ops = whole;
    ops.size -= 8; /* no release had such a table */
    assert_refused(&ops, TUTTI_E_ARG, "bytes");
    ops = whole;
    ops.name = "";
    assert_refused(&ops, TUTTI_E_ARG, "no name");
    ops = whole;
    ops.post = NULL;
    assert_refused(&ops, TUTTI_E_ARG, "'post'");
    ops = whole;
    ops.destroy = NULL;
    assert_refused(&ops, TUTTI_E_ARG, "'destroy'");
    ops = whole;
    ops.windows = &(tutti_window_ops){ .size = sizeof(tutti_window_ops), .open = NULL };
    assert_refused(&ops, TUTTI_E_ARG, "'open'");
    ops.windows = &(tutti_window_ops){ .size = 8 };
    assert_refused(&ops, TUTTI_E_ARG, "the table of windows of backend 'x' has 8 bytes");
    ops = without_messages(&whole);
    assert_int_equal(tti_backend_check("backend 'x'", &ops), TUTTI_OK);
    ops.advance = advance;
    assert_refused(&ops, TUTTI_E_ARG, "does not take segments");
}

/* ---- windows of older tables ---- */

static tutti_status open_part(tutti_backend *backend, uint32_t id, void *data, size_t bytes,
                              uint8_t card_out[TUTTI_WINDOW_CARD_BYTES], tutti_backend_window **window_out)
{
    (void)backend;
    (void)id;
    (void)data;
    (void)bytes;
    (void)card_out;
    (void)window_out;
    return TUTTI_E_UNSUPPORTED;
}

static tutti_status attach(tutti_backend_window *window, const uint8_t (*cards)[TUTTI_WINDOW_CARD_BYTES])
{
    (void)window;
    (void)cards;
    return TUTTI_E_UNSUPPORTED;
}

static tutti_status put(tutti_backend_window *window, int peer, uint64_t offset, const void *data, size_t bytes,
                        tutti_request **request_out)
{
    (void)window;
    (void)peer;
    (void)offset;
    (void)data;
    (void)bytes;
    (void)request_out;
    return TUTTI_E_UNSUPPORTED;
}

static tutti_status get(tutti_backend_window *window, int peer, uint64_t offset, void *data, size_t bytes,
                        tutti_request **request_out)
{
    return put(window, peer, offset, data, bytes, request_out);
}

static tutti_status at_peer(tutti_backend_window *window, int peer)
{
    (void)window;
    (void)peer;
    return TUTTI_E_UNSUPPORTED;
}

static tutti_status begin_at_peer(tutti_backend_window *window, int peer, tutti_request **request_out)
{
    (void)request_out;
    return at_peer(window, peer);
}

static bool cancel(tutti_backend_window *window, tutti_request *request)
{
    (void)window;
    (void)request;
    return false;
}

static bool is_direct(tutti_backend_window *window, int peer)
{
    return at_peer(window, peer) == TUTTI_OK;
}

static void *memory_of(tutti_backend_window *window, int peer)
{
    (void)at_peer(window, peer);
    return NULL;
}

static void close_part(tutti_backend_window *window, bool agreed)
{
    (void)window;
    (void)agreed;
}

static size_t bytes_of(tutti_backend_window *window, int peer)
{
    (void)at_peer(window, peer);
    return 0;
}

/* What stands behind the size, in our table: the whole of one of version 2. */
enum { WINDOW_HEAD = offsetof(tutti_window_ops, open), OLD_WINDOW_BYTES = sizeof(tutti_window_ops) - WINDOW_HEAD };

static const tutti_window_ops whole_windows = {
    .size = sizeof(tutti_window_ops), .open = open_part, .attach = attach, .put = put, .get = get, .signal = at_peer,
    .wait_signal = begin_at_peer, .cancel = cancel, .flush = begin_at_peer, .is_direct = is_direct, .memory = memory_of,
    .close = close_part, .bytes = bytes_of,
};

static void assert_whole(const tutti_window_ops *ops)
{
    assert_int_equal(ops->size, sizeof whole_windows);
    assert_memory_equal((const char *)ops + WINDOW_HEAD, (const char *)&whole_windows + WINDOW_HEAD, OLD_WINDOW_BYTES);
}

/* A table of version 2 whose windows have no size: they lie at the very end of memory that may be read (a sanitizer sees
 * whoever reads more), and are known as a table of ours. */
static void test_windows_without_size(void **state)
{
    const tutti_backend_ops *found = NULL;
    tutti_backend_ops        ops = whole;
    void                    *old = malloc(OLD_WINDOW_BYTES);

    (void)state;
    assert_non_null(old);
    memcpy(old, (const char *)&whole_windows + WINDOW_HEAD, OLD_WINDOW_BYTES);
    ops.api = 2;
    ops.size = offsetof(tutti_backend_ops, usable);
    ops.windows = old;
    assert_int_equal(tutti_register_backend("older", &ops, 1u << TUTTI_CPU), TUTTI_OK);
    free(old); /* it was copied */
    assert_int_equal(tti_backend_find("older", &found), TUTTI_OK);
    assert_whole(found->windows);
    assert_int_equal(tti_backend_find("debug-older", &found), TUTTI_OK); /* and may be wrapped */
    assert_int_equal(found->windows->size, sizeof whole_windows);
    assert_ptr_equal(found->windows->bytes, bytes_of);
}

/* One of a later library, whose table of windows has more: what this one knows of it. */
static void test_windows_of_later(void **state)
{
    struct {
        tutti_window_ops ops;
        void           (*more)(void);
    } later = { .ops = whole_windows };
    const tutti_backend_ops *found = NULL;
    tutti_backend_ops        ops = whole;

    (void)state;
    later.ops.size = sizeof later;
    ops.windows = &later.ops;
    assert_int_equal(tutti_register_backend("later", &ops, 1u << TUTTI_CPU), TUTTI_OK);
    assert_int_equal(tti_backend_find("later", &found), TUTTI_OK);
    assert_whole(found->windows);
}

static void assert_not_registered(const char *name, const tutti_backend_ops *ops, unsigned devices, tutti_status status,
                                  const char *word)
{
    assert_int_equal(tutti_register_backend(name, ops, devices), status);
    assert_non_null(strstr(tutti_last_error(), word));
}

static void test_register(void **state)
{
    const tutti_backend_ops *ops = NULL;
    tutti_backend_ops        table = whole;
    unsigned                 devices = 0;

    (void)state;
    assert_not_registered(NULL, &whole, 1, TUTTI_E_ARG, "name is NULL");
    assert_not_registered("mine", NULL, 1, TUTTI_E_ARG, "table is NULL");
    assert_not_registered("my/own", &whole, 1, TUTTI_E_ARG, "'my/own'");
    assert_not_registered("Mine", &whole, 1, TUTTI_E_ARG, "'Mine'");
    assert_not_registered("a-name-of-thirty-two-bytes-is-1-2", &whole, 1, TUTTI_E_ARG, "no name");
    assert_not_registered("fake", &whole, 1, TUTTI_E_STATE, "taken");
    assert_not_registered("xccl", &whole, 1, TUTTI_E_STATE, "kept for a plug-in");
    assert_not_registered("mine", &whole, 0, TUTTI_E_ARG, "devices 0x0");
    assert_not_registered("mine", &whole, 4, TUTTI_E_ARG, "devices 0x4");
    table.run = NULL;
    assert_not_registered("mine", &table, 1, TUTTI_E_ARG, "'run'");

    table = without_messages(&whole);
    assert_int_equal(tutti_register_backend("mine", &table, 1u << TUTTI_CUDA), TUTTI_OK);
    memset(&table, 0, sizeof table); /* it was copied */
    assert_not_registered("mine", &whole, 1, TUTTI_E_STATE, "'mine' already");
    assert_true(tutti_is_backend_available("MINE"));
    assert_int_equal(tti_backend_find("mine", &ops), TUTTI_OK);
    assert_string_equal(ops->name, "mine");
    assert_ptr_equal(ops->run, run);
    assert_int_equal(tti_backend_devices("mine", &devices), TUTTI_OK);
    assert_int_equal(devices, 1u << TUTTI_CUDA);
    assert_int_equal(tti_backend_find("gloop", &ops), TUTTI_E_ARG); /* the words know of it */
    assert_non_null(strstr(tutti_last_error(), "'mine'"));
}

/* Every backend has one that looks first. */
static void test_wrapped(void **state)
{
    const tutti_backend_ops *ops = NULL, *again = NULL;
    unsigned                 devices = 0;

    (void)state;
    assert_int_equal(tti_backend_find("Debug-Native", &ops), TUTTI_OK);
    assert_string_equal(ops->name, "debug-native");
    assert_int_equal(tti_backend_check("backend 'debug-native'", ops), TUTTI_OK);
    assert_int_equal(tti_backend_find("debug-native", &again), TUTTI_OK);
    assert_ptr_equal(ops, again);
    assert_true(tti_backend_has_messages(ops));
    assert_int_equal(tti_backend_devices("debug-fake", &devices), TUTTI_OK);
    assert_int_equal(devices, 1u << TUTTI_CPU | 1u << TUTTI_CUDA);
    assert_int_equal(tti_backend_find("debug-gloop", &ops), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "no backend 'gloop'"));
    assert_not_registered("debug-mine", &whole, 1, TUTTI_E_STATE, "wrappers");
}

/* Messages that are not there are refused, by whoever is asked. */
static void test_no_messages(void **state)
{
    const tutti_backend_ops *ops = NULL;
    const tutti_backend_ops  mute = without_messages(&whole);
    tutti_backend            backend = { &mute };
    tutti_request           *request = NULL;

    (void)state;
    assert_int_equal(tutti_register_backend("mute", &mute, 1u << TUTTI_CPU), TUTTI_OK);
    assert_int_equal(tti_backend_find("mute", &ops), TUTTI_OK);
    assert_false(tti_backend_has_messages(ops));
    assert_int_equal(tti_backend_find("debug-mute", &ops), TUTTI_OK); /* nor do they come of being wrapped */
    assert_false(tti_backend_has_messages(ops));
    assert_int_equal(tti_backend_find("mute", &ops), TUTTI_OK);
    assert_int_equal(ops->post(&backend, &(tutti_message){ .is_send = true, .peer = 3 }, &request), TUTTI_E_UNSUPPORTED);
    assert_non_null(strstr(tutti_last_error(), "to rank 3"));
    assert_null(request);
    assert_int_equal(tti_backend_find("native", &ops), TUTTI_OK);
    assert_true(tti_backend_has_messages(ops));
}

static void test_unknown_name(void **state)
{
    const tutti_backend_ops *ops = &whole;

    (void)state;
    assert_int_equal(tti_backend_find("gloop", &ops), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "'gloop'"));
    assert_non_null(strstr(tutti_last_error(), "one of this build"));
    assert_non_null(strstr(tutti_last_error(), "'tutti-backend-gloop.so' is not in '/"));
    assert_ptr_equal(ops, &whole); /* untouched */
}

/* Names that are kept for plug-ins are no mistakes where there is none; what takes which memory is known but of one. */
static void test_reserved_names(void **state)
{
    const tutti_backend_ops *ops = &whole;
    unsigned                 devices = 0;

    (void)state;
    assert_int_equal(tti_backend_find("NCCL", &ops), TUTTI_E_UNSUPPORTED);
    assert_non_null(strstr(tutti_last_error(), "'tutti-backend-nccl.so'"));
    assert_non_null(strstr(tutti_last_error(), "TUTTI_PLUGIN_PATH"));
    assert_int_equal(tti_backend_devices("nccl", &devices), TUTTI_OK);
    assert_int_equal(devices, 1u << TUTTI_CUDA);
    assert_int_equal(tti_backend_devices("xccl", &devices), TUTTI_E_UNSUPPORTED);
    assert_non_null(strstr(tutti_last_error(), "'tutti-backend-xccl.so'"));
    assert_false(tutti_is_xccl_available());
    assert_ptr_equal(ops, &whole);
}

/* ---- threads of plug-ins ---- */

typedef struct guest {
    tutti_word may_go, is_there;
    char       name[16];
    bool       all_blocked;
} guest;

static void stay(void *arg)
{
    guest   *g = arg;
    sigset_t mask;

    pthread_getname_np(pthread_self(), g->name, sizeof g->name);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    g->all_blocked = sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGUSR1) == 1;
    atomic_store(&g->is_there, 1);
    tti_plugin_host.wake_word(&g->is_there);
    while (atomic_load(&g->may_go) == 0)
        tti_plugin_host.wait_word(&g->may_go, 0, INT64_MAX);
}

/* One that the host has started is one of ours: no signal of the program's comes to it, it has a name, and is none of the
 * program's threads. */
static void test_threads_of_plugins(void **state)
{
    tutti_plugin_thread *thread = NULL;
    guest                g = { .may_go = 0 };

    (void)state;
    assert_true(tti_is_only_thread());
    assert_int_equal(tti_plugin_host.thread_start("tutti-guest", stay, &g, &thread), TUTTI_OK);
    while (atomic_load(&g.is_there) == 0)
        tti_plugin_host.wait_word(&g.is_there, 0, INT64_MAX);
    assert_true(tti_is_only_thread());
    atomic_store(&g.may_go, 1);
    tti_plugin_host.wake_word(&g.may_go);
    tti_plugin_host.thread_join(thread);
    assert_true(g.all_blocked);
    assert_string_equal(g.name, "tutti-guest");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_of_plugins),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_windows_without_size),
        cmocka_unit_test(test_windows_of_later),
        cmocka_unit_test(test_unknown_name),
        cmocka_unit_test(test_reserved_names),
        cmocka_unit_test(test_register),
        cmocka_unit_test(test_no_messages),
        cmocka_unit_test(test_wrapped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

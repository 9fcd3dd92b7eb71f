/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_conformance.c - what every store does.
 *
 * Goal    each store built in keeps the contract of tutti/store.h, to the letter of its edge cases.
 * Method  the same tests run on hash, file, tcp (server in this process, a second client beside
 *         it; in plain, and with TLS), prefix over tcp, torch-tcp on a server of the tests', and a store that has only what its table requires, so that the
 *         emulation of the front is tested too (store_kinds.c). `a` and `b` are two handles of one
 *         store. What goes beyond single keys stands in store_extended_suite.c. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/port.h"
#include "base/thread.h"
#include "store_suite.h"

static void values_are_kept_and_replaced(void **state)
{
    static const char bytes[] = { 0, 1, '\n', 0, (char)0xff };
    tutti_bytes       value = { .data = NULL };

    (void)state;
    set_text(current.a, "k", "one");
    has_text(current.b, "k", "one");
    set_text(current.b, "k", "a longer one");
    has_text(current.a, "k", "a longer one");
    assert_int_equal(tutti_store_set(current.a, "empty", NULL, 0), TUTTI_OK);
    has_text(current.b, "empty", "");
    assert_int_equal(tutti_store_set(current.a, "k", bytes, sizeof bytes), TUTTI_OK);
    assert_int_equal(tutti_store_get(current.b, "k", 0, &value), TUTTI_OK);
    assert_int_equal(value.size, sizeof bytes);
    assert_memory_equal(value.data, bytes, sizeof bytes);
    tutti_bytes_free(&value);
}

static void sums_are_decimal_text(void **state)
{
    int64_t sum = 0;

    (void)state;
    assert_int_equal(tutti_store_add(current.a, "n", 0, &sum), TUTTI_OK);
    assert_int_equal(sum, 0);
    has_text(current.b, "n", "0");
    assert_int_equal(tutti_store_add(current.b, "n", 41, NULL), TUTTI_OK);
    assert_int_equal(tutti_store_add(current.a, "n", -50, &sum), TUTTI_OK);
    assert_int_equal(sum, -9);
    has_text(current.a, "n", "-9");
    set_text(current.a, "n", " \t+12 apples");
    assert_int_equal(tutti_store_add(current.b, "n", 1, &sum), TUTTI_OK);
    assert_int_equal(sum, 13);
    set_text(current.a, "n", "9223372036854775807");
    assert_int_equal(tutti_store_add(current.b, "n", 1, &sum), TUTTI_OK);
    assert_true(sum == INT64_MIN);
    has_text(current.a, "n", "-9223372036854775808");
}

static void adding_to_words_is_refused_and_harmless(void **state)
{
    int64_t sum = 77;

    (void)state;
    set_text(current.a, "word", "apples");
    assert_int_equal(tutti_store_add(current.b, "word", 1, &sum), TUTTI_E_STORE);
    assert_non_null(strstr(tutti_last_error(), "word'"));
    assert_non_null(strstr(tutti_last_error(), "is not a number"));
    assert_int_equal(sum, 77);
    has_text(current.b, "word", "apples"); /* the same handle goes on */
}

static void compare(const char *expected, const char *desired, const char *answer)
{
    tutti_bytes value = { .data = NULL };

    assert_int_equal(tutti_store_compare_set(current.a, "cs", expected, strlen(expected), desired,
                                             strlen(desired), &value),
                     TUTTI_OK);
    assert_string_equal(value.data, answer);
    tutti_bytes_free(&value);
}

static void compare_set_follows_its_table(void **state)
{
    tutti_bytes value;

    (void)state;
    if (strcmp(current.name, "bare") == 0) {
        assert_int_equal(tutti_store_compare_set(current.a, "cs", NULL, 0, "x", 1, &value),
                         TUTTI_E_UNSUPPORTED);
        return;
    }
    compare("x", "y",
            "x"); /* missing, not empty: nothing happens, and the expectation comes back */
    assert_false(there(current.b, "cs"));
    compare("", "one", "one");
    has_text(current.b, "cs", "one");
    compare("two", "three", "one");
    compare("", "three", "one");
    has_text(current.b, "cs", "one");
    compare("one", "", "");
    has_text(current.b, "cs", "");
    compare("", "again", "again"); /* present and empty equals an empty expectation */
    has_text(current.b, "cs", "again");
}

static void check_is_about_all_keys(void **state)
{
    static const char *const keys[] = { "c1", "c2" };
    bool                     all = false;

    (void)state;
    assert_int_equal(tutti_store_check(current.a, NULL, 0, &all), TUTTI_OK);
    assert_true(all);
    set_text(current.a, "c1", "");
    assert_int_equal(tutti_store_check(current.b, keys, 2, &all), TUTTI_OK);
    assert_false(all);
    assert_int_equal(tutti_store_check(current.b, keys, 1, &all), TUTTI_OK);
    assert_true(all);
    set_text(current.a, "c2", "");
    assert_int_equal(tutti_store_check(current.b, keys, 2, &all), TUTTI_OK);
    assert_true(all);
}

static void deleted_keys_are_gone(void **state)
{
    int64_t      before = 0, after = 0;
    bool         deleted = true;
    tutti_bytes  value = { .data = NULL };
    tutti_status st = tutti_store_num_keys(current.a, &before);

    (void)state;
    if (strcmp(current.name, "bare") == 0) {
        assert_int_equal(st, TUTTI_E_UNSUPPORTED);
        assert_int_equal(tutti_store_delete_key(current.a, "d", NULL), TUTTI_E_UNSUPPORTED);
        return;
    }
    assert_int_equal(st, TUTTI_OK);
    assert_int_equal(tutti_store_delete_key(current.a, "d", &deleted), TUTTI_OK);
    assert_false(deleted);
    set_text(current.a, "d", "x");
    assert_int_equal(tutti_store_num_keys(current.b, &after), TUTTI_OK);
    assert_int_equal(after, before + 1);
    assert_int_equal(tutti_store_delete_key(current.b, "d", &deleted), TUTTI_OK);
    assert_true(deleted);
    assert_false(there(current.a, "d"));
    assert_int_equal(tutti_store_get(current.a, "d", 1, &value), TUTTI_E_TIMEOUT);
    assert_int_equal(tutti_store_num_keys(current.a, &after), TUTTI_OK);
    assert_int_equal(after, before);
    set_text(current.a, "d", "y");
    has_text(current.b, "d", "y");
}

static void waits_end_at_their_time(void **state)
{
    static const char *const keys[] = { "here", "never", "neither" };
    tti_port                *port = tti_port_system();
    const int64_t            start = tti_port_now(port);
    tutti_bytes              value = { .data = NULL };

    (void)state;
    set_text(current.a, "here", "x");
    assert_int_equal(tutti_store_get(current.a, "never", SHORT_MS, &value), TUTTI_E_TIMEOUT);
    assert_null(value.data);
    assert_non_null(strstr(tutti_last_error(), "never'"));
    assert_non_null(strstr(tutti_last_error(), " ms"));
    assert_int_equal(tutti_store_wait(current.a, keys, 3, SHORT_MS), TUTTI_E_TIMEOUT);
    assert_non_null(strstr(tutti_last_error(), "never'"));
    assert_true(tti_port_now(port) - start >= 2 * SHORT_MS * TTI_MS);
    assert_true(tti_port_now(port) - start < 20 * TTI_SECOND);
    /* The default counts when none is given, and the handle goes on. */
    assert_int_equal(tutti_store_set_timeout(current.a, 20), TUTTI_OK);
    assert_int_equal(tutti_store_timeout(current.a), 20);
    assert_int_equal(tutti_store_get(current.a, "never", 0, &value), TUTTI_E_TIMEOUT);
    assert_int_equal(tutti_store_set_timeout(current.a, 0), TUTTI_OK);
    assert_int_equal(tutti_store_timeout(current.a), TUTTI_STORE_TIMEOUT_MS);
    assert_int_equal(tutti_store_wait(current.a, keys, 1, TUTTI_INFINITE), TUTTI_OK);
    assert_int_equal(tutti_store_wait(current.a, NULL, 0, 1), TUTTI_OK);
    has_text(current.a, "here", "x");
}

/* A thread that waits on `a` for w1, w2, w3, and what it saw. */
typedef struct waiter {
    tti_thread       thread;
    _Atomic uint32_t asked; /* the thread runs */
    tutti_status     st;
    tutti_bytes      value;
} waiter;

static void wait_then_get(void *arg)
{
    static const char *const keys[] = { "w1", "w2", "w3" };
    waiter                  *w = arg;

    atomic_store(&w->asked, 1);
    w->st = tutti_store_wait(current.a, keys, 3, 20000);
    if (w->st == TUTTI_OK)
        w->st = tutti_store_get(current.a, "w-reply", 20000, &w->value);
}

/* set, add and compare_set all wake; a handle on which a thread waits serves others meanwhile. */
static void changes_wake_waiters(void **state)
{
    waiter      w = { .st = TUTTI_E_STATE };
    tutti_bytes value = { .data = NULL };

    (void)state;
    assert_int_equal(tti_thread_start(&w.thread, "waiter", wait_then_get, &w), TUTTI_OK);
    while (atomic_load(&w.asked) == 0)
        tti_port_system()->ops->yield(tti_port_system());
    assert_int_equal(tutti_store_add(current.b, "w2", 5, NULL), TUTTI_OK);
    set_text(current.a, "w1", "x");
    if (tutti_store_compare_set(current.b, "w3", NULL, 0, "y", 1, &value) == TUTTI_E_UNSUPPORTED)
        set_text(current.b, "w3", "y");
    tutti_bytes_free(&value);
    set_text(current.a, "w-reply", "awake");
    tti_thread_join(&w.thread);
    assert_int_equal(w.st, TUTTI_OK);
    assert_string_equal(w.value.data, "awake");
    tutti_bytes_free(&w.value);
}

enum { FLIPS = 150 };

typedef struct flipper {
    tti_thread   thread;
    _Atomic bool done;
    tutti_status st;
} flipper;

/* Set and delete a key, over and over. */
static void flip_key(void *arg)
{
    flipper *f = arg;

    while (!atomic_load(&f->done) && f->st == TUTTI_OK) {
        f->st = tutti_store_set(current.b, "flip", "whole", 5);
        if (f->st == TUTTI_OK)
            f->st = tutti_store_delete_key(current.b, "flip", NULL);
    }
    if (f->st == TUTTI_OK)
        f->st = tutti_store_set(current.b, "flip", "whole", 5);
}

/* A get never comes back with less than a value, however the key comes and goes: it waits again. */
static void a_get_that_races_a_delete_waits_again(void **state)
{
    static const char *const keys[] = { "stays", "flip" };
    flipper                  f = { .st = TUTTI_OK };
    tutti_bytes              values[2] = { { .data = NULL } };
    int                      i;

    (void)state;
    if (strcmp(current.name, "bare") == 0)
        return; /* cannot delete */
    set_text(current.a, "stays", "x");
    assert_int_equal(tti_thread_start(&f.thread, "flipper", flip_key, &f), TUTTI_OK);
    for (i = 0; i < FLIPS; i++) {
        if (i == FLIPS - 20)
            atomic_store(&f.done, true); /* at last it is there for good */
        has_text(current.a, "flip", "whole");
        assert_int_equal(tutti_store_multi_get(current.a, keys, 2, 20000, values), TUTTI_OK);
        assert_string_equal(values[1].data, "whole");
        tutti_bytes_free(&values[0]);
        tutti_bytes_free(&values[1]);
    }
    tti_thread_join(&f.thread);
    assert_int_equal(f.st, TUTTI_OK);
}

enum { THREADS = 6, ROUNDS = 40 };

typedef struct counter {
    tti_thread   thread;
    tutti_store *store;
    int          id;
    tutti_status st;
    int64_t      last;
} counter;

static void count_up(void *arg)
{
    counter *c = arg;
    char     key[32];
    int      i;

    for (i = 0; i < ROUNDS && c->st == TUTTI_OK; i++) {
        tutti_bytes value = { .data = NULL };

        c->st = tutti_store_add(c->store, "sum", 1, &c->last);
        snprintf(key, sizeof key, "ring/%d/%d", c->id, i);
        if (c->st == TUTTI_OK)
            c->st = tutti_store_set(c->store, key, key, strlen(key));
        snprintf(key, sizeof key, "ring/%d/%d", (c->id + 1) % THREADS, i);
        if (c->st == TUTTI_OK)
            c->st = tutti_store_get(c->store, key, 30000, &value);
        tutti_bytes_free(&value);
    }
}

/* Every thread waits for its neighbour in every round: no wait may hold up a set. */
static void threads_share_a_handle(void **state)
{
    counter counters[THREADS];
    int64_t sum = 0;
    int     i;

    (void)state;
    memset(counters, 0, sizeof counters);
    for (i = 0; i < THREADS; i++) {
        counters[i].store = i % 2 == 0 ? current.a : current.b;
        counters[i].id = i;
        assert_int_equal(tti_thread_start(&counters[i].thread, "counter", count_up, &counters[i]),
                         TUTTI_OK);
    }
    for (i = 0; i < THREADS; i++) {
        tti_thread_join(&counters[i].thread);
        assert_int_equal(counters[i].st, TUTTI_OK);
    }
    assert_int_equal(tutti_store_add(current.a, "sum", 0, &sum), TUTTI_OK);
    assert_int_equal(sum, THREADS * ROUNDS);
}

static void limits_are_exact(void **state)
{
    const size_t prefix = current.below != NULL ? 2 : 0; /* "p/" counts */
    char        *key = test_malloc(TUTTI_STORE_KEY_MAX + 2);
    char        *big = test_calloc(1, (size_t)TUTTI_STORE_VALUE_MAX + 1);
    tutti_bytes  value = { .data = NULL };

    (void)state;
    memset(key, 'k', TUTTI_STORE_KEY_MAX + 1);
    key[TUTTI_STORE_KEY_MAX - prefix] = '\0';
    set_text(current.a, key, "x");
    has_text(current.b, key, "x");
    key[TUTTI_STORE_KEY_MAX - prefix] = 'k';
    key[TUTTI_STORE_KEY_MAX - prefix + 1] = '\0';
    assert_int_equal(tutti_store_set(current.a, key, "x", 1), TUTTI_E_ARG);
    assert_int_equal(tutti_store_get(current.a, key, 1, &value), TUTTI_E_ARG);
    assert_int_equal(tutti_store_set(current.a, "", "x", 1), TUTTI_E_ARG);
    assert_int_equal(tutti_store_set(current.a, NULL, "x", 1), TUTTI_E_ARG);
    assert_int_equal(tutti_store_set(current.a, "k", NULL, 1), TUTTI_E_ARG);
    assert_int_equal(tutti_store_set(NULL, "k", "x", 1), TUTTI_E_ARG);
    assert_int_equal(tutti_store_get(current.a, "k", -2, &value), TUTTI_E_ARG);
    assert_int_equal(tutti_store_get(current.a, "k", 1, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_store_set_timeout(current.a, -2), TUTTI_E_ARG);

    big[value_max() - 1] = 'z';
    assert_int_equal(tutti_store_set(current.a, "big", big, value_max()), TUTTI_OK);
    assert_int_equal(tutti_store_get(current.b, "big", 0, &value), TUTTI_OK);
    assert_int_equal(value.size, value_max());
    assert_memory_equal(value.data, big, value_max());
    tutti_bytes_free(&value);
    assert_int_equal(tutti_store_set(current.a, "big", big, value_max() + 1), TUTTI_E_ARG);
    test_free(big);
    test_free(key);
}

/* A key of a byte too many, and a value of a byte too many, are refused before anything happens. */
static void limits_hold_in_every_call(void **state)
{
    char             *key = test_malloc(TUTTI_STORE_KEY_MAX + 2);
    const size_t      too_large = (size_t)TUTTI_STORE_VALUE_MAX + 1;
    char             *big = test_calloc(1, too_large);
    const char *const long_keys[] = { "k", key }, *const good_keys[] = { "k", "k2" };
    const tutti_bytes small[] = { { .data = big, .size = 1 }, { .data = big, .size = 1 } };
    const tutti_bytes large[] = { { .data = big, .size = 1 }, { .data = big, .size = too_large } };
    tutti_bytes       values[2] = { { .data = NULL } };
    bool              all = false;
    int64_t           n = 7;

    (void)state;
    memset(key, 'k', TUTTI_STORE_KEY_MAX + 1);
    key[TUTTI_STORE_KEY_MAX + 1] = '\0';
    assert_int_equal(tutti_store_add(current.a, key, 1, &n), TUTTI_E_ARG);
    assert_int_equal(tutti_store_wait(current.a, long_keys, 2, 1), TUTTI_E_ARG);
    assert_int_equal(tutti_store_check(current.a, long_keys, 2, &all), TUTTI_E_ARG);
    assert_int_equal(tutti_store_compare_set(current.a, key, "", 0, "", 0, values), TUTTI_E_ARG);
    assert_int_equal(tutti_store_delete_key(current.a, key, &all), TUTTI_E_ARG);
    assert_int_equal(tutti_store_append(current.a, key, "x", 1), TUTTI_E_ARG);
    assert_int_equal(tutti_store_multi_get(current.a, long_keys, 2, 1, values), TUTTI_E_ARG);
    assert_int_equal(tutti_store_multi_set(current.a, long_keys, small, 2), TUTTI_E_ARG);
    assert_int_equal(tutti_store_queue_push(current.a, key, "x", 1), TUTTI_E_ARG);
    assert_int_equal(tutti_store_queue_pop(current.a, key, false, 0, values), TUTTI_E_ARG);
    assert_int_equal(tutti_store_queue_len(current.a, key, &n), TUTTI_E_ARG);
    assert_int_equal(tutti_store_barrier(current.a, key, 1, 1), TUTTI_E_ARG);
    assert_int_equal(tutti_store_append(current.a, "k", big, too_large), TUTTI_E_ARG);
    assert_int_equal(tutti_store_compare_set(current.a, "k", "", 0, big, too_large, values),
                     TUTTI_E_ARG);
    assert_int_equal(tutti_store_multi_set(current.a, good_keys, large, 2), TUTTI_E_ARG);
    assert_false(there(current.a, "k")); /* not even the first of them */
    assert_int_equal(n, 7);
    assert_null(values[0].data);
    test_free(big);
    test_free(key);
}

enum { MANY = 600 };

static void long_lists_work(void **state)
{
    static char names[MANY][24];
    const char *keys[MANY];
    bool        all = true;
    int         i;

    (void)state;
    for (i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "many/%d", i);
        keys[i] = names[i];
        if (i < MANY - 1)
            set_text(current.a, keys[i], "x");
    }
    assert_int_equal(tutti_store_check(current.b, keys, MANY, &all), TUTTI_OK);
    assert_false(all);
    assert_int_equal(tutti_store_wait(current.b, keys, MANY, 5), TUTTI_E_TIMEOUT);
    set_text(current.a, keys[MANY - 1], "x");
    assert_int_equal(tutti_store_wait(current.b, keys, MANY, 0), TUTTI_OK);
    assert_int_equal(tutti_store_check(current.b, keys, MANY, &all), TUTTI_OK);
    assert_true(all);
}

/* Prefix "a" over prefix "b" puts k at b/a/k. */
static void prefixes_nest_inwards(void **state)
{
    tutti_store *b = NULL, *a = NULL;
    int64_t      n = -1, below = -1;

    (void)state;
    assert_int_equal(tutti_prefix_store_open("b", current.a, &b), TUTTI_OK);
    assert_int_equal(tutti_prefix_store_open("a", b, &a), TUTTI_OK);
    tutti_store_close(b); /* a keeps it */
    set_text(a, "k", "v");
    has_text(current.b, "b/a/k", "v");
    assert_int_equal(tutti_store_num_keys(a, &n), tutti_store_num_keys(current.a, &below));
    assert_int_equal(n, below); /* not filtered */
    assert_int_equal(tutti_store_set_timeout(a, 1234), TUTTI_OK);
    assert_int_equal(tutti_store_timeout(current.a), 1234);
    tutti_store_close(a);
    assert_int_equal(tutti_prefix_store_open("", current.a, &a), TUTTI_E_ARG);
}

static void layers_are_found(void **state)
{
    tutti_store *b = NULL, *a = NULL;
    tutti_store *bottom = tutti_store_underlying_non_prefix(current.a);

    (void)state;
    assert_int_equal(tutti_prefix_store_open("b", current.a, &b), TUTTI_OK);
    assert_int_equal(tutti_prefix_store_open("a", b, &a), TUTTI_OK);
    assert_ptr_equal(tutti_store_underlying(a), b);
    assert_ptr_equal(tutti_store_underlying(b), current.a);
    assert_ptr_equal(tutti_store_underlying_non_prefix(a), bottom);
    assert_ptr_equal(bottom, current.below != NULL ? current.below : current.a);
    assert_null(tutti_store_underlying(bottom));
    tutti_store_close(a);
    tutti_store_close(b);
}

/* Inner guards end first; afterwards everything is as it was, also when beginning failed. */
static void guards_put_the_time_out_back(void **state)
{
    tutti_store_timeout_guard outer, inner, bad;
    tutti_bytes               value = { .data = NULL };

    (void)state;
    assert_int_equal(tutti_store_set_timeout(current.a, 4321), TUTTI_OK);
    assert_int_equal(tutti_store_timeout_guard_begin(current.a, 20, &outer), TUTTI_OK);
    assert_int_equal(tutti_store_get(current.a, "never", 0, &value), TUTTI_E_TIMEOUT);
    assert_int_equal(tutti_store_timeout_guard_begin(current.a, TUTTI_INFINITE, &inner), TUTTI_OK);
    assert_int_equal(tutti_store_timeout(current.a), TUTTI_INFINITE);
    tutti_store_timeout_guard_end(&inner);
    assert_int_equal(tutti_store_timeout(current.a), 20);
    assert_int_equal(tutti_store_timeout_guard_begin(current.a, -2, &bad), TUTTI_E_ARG);
    tutti_store_timeout_guard_end(&bad);
    tutti_store_timeout_guard_end(&inner);
    assert_int_equal(tutti_store_timeout(current.a), 20);
    tutti_store_timeout_guard_end(&outer);
    assert_int_equal(tutti_store_timeout(current.a), 4321);
    assert_int_equal(tutti_store_timeout_guard_begin(NULL, 1, &bad), TUTTI_E_ARG);
    assert_int_equal(tutti_store_timeout_guard_begin(current.a, 1, NULL), TUTTI_E_ARG);
}

static void names_tell_where_a_store_is(void **state)
{
    const bool tcp = strncmp(current.name, "tcp", strlen("tcp")) == 0, file = strcmp(current.name, "file") == 0;

    (void)state;
    if (tcp)
        assert_string_equal(tutti_tcp_store_host(current.a), "127.0.0.1");
    else
        assert_null(tutti_tcp_store_host(current.a));
    if (file)
        assert_string_equal(tutti_file_store_path(current.b), current.path);
    else
        assert_null(tutti_file_store_path(current.b));
}

static void null_is_harmless(void **state)
{
    (void)state;
    tutti_store_timeout_guard_end(NULL);
    assert_null(tutti_store_underlying(NULL));
    assert_null(tutti_store_underlying_non_prefix(NULL));
    assert_null(tutti_tcp_store_host(NULL));
    assert_null(tutti_file_store_path(NULL));
    tutti_store_close(NULL);
    assert_null(tutti_store_retain(NULL));
    tutti_bytes_free(NULL);
    tutti_store_keys_free(NULL);
    tutti_store_server_stop(NULL);
}

static const one_test basic_tests[] = {
    ONE(values_are_kept_and_replaced),
    ONE(sums_are_decimal_text),
    ONE(adding_to_words_is_refused_and_harmless),
    ONE(compare_set_follows_its_table),
    ONE(check_is_about_all_keys),
    ONE(deleted_keys_are_gone),
    ONE(waits_end_at_their_time),
    ONE(changes_wake_waiters),
    ONE(a_get_that_races_a_delete_waits_again),
    ONE(threads_share_a_handle),
    ONE(limits_hold_in_every_call),
    ONE(limits_are_exact),
    ONE(long_lists_work),
    ONE(prefixes_nest_inwards),
    ONE(layers_are_found),
    ONE(guards_put_the_time_out_back),
    ONE(names_tell_where_a_store_is),
    ONE(null_is_harmless),
};

/* With --torch ASK ANSWER [old]: see use_torch(). */
int main(int argc, char **argv)
{
    enum { BASICS = sizeof basic_tests / sizeof basic_tests[0], TESTS_MAX = 256 };
    static char       names[TESTS_MAX][96];
    struct CMUnitTest tests[TESTS_MAX];
    size_t            n = 0, i, k;

    unsetenv("TUTTI_SECRET_FILE");
    if (argc > 3 && strcmp(argv[1], "--torch") == 0)
        use_torch(atoi(argv[2]), atoi(argv[3]), argc > 4);
    for (k = 0; k < n_store_kinds; k++)
        for (i = 0; i < BASICS + n_extended_tests; i++) {
            const one_test *test = i < BASICS ? &basic_tests[i] : &extended_tests[i - BASICS];

            assert_true(n < TESTS_MAX);
            snprintf(names[n], sizeof names[n], "%s: %s", store_kinds[k], test->name);
            tests[n] = (struct CMUnitTest){ .name = names[n],
                                            .test_func = test->run,
                                            .setup_func = store_setup,
                                            .teardown_func = store_teardown,
                                            .initial_state = (void *)(uintptr_t)k };
            n++;
        }
    return _cmocka_run_group_tests("stores", tests, n, NULL, NULL);
}

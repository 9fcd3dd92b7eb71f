/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_extended_suite.c - what every store does with several keys, queues, names, barriers and
 * clones, or that it says so where it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/thread.h"
#include "store_suite.h"

static bool is(const char *kind)
{
    return strcmp(current.name, kind) == 0;
}

static void appended_values_grow(void **state)
{
    char *big = test_calloc(1, TUTTI_STORE_VALUE_MAX + 1);

    (void)state;
    assert_int_equal(tutti_store_has_extended_api(current.a), !is("file") && !is("bare"));
    assert_false(tutti_store_has_extended_api(NULL));
    if (is("bare")) {
        assert_int_equal(tutti_store_append(current.a, "log", "x", 1), TUTTI_E_UNSUPPORTED);
        assert_non_null(strstr(tutti_last_error(), "has no append"));
        test_free(big);
        return;
    }
    assert_int_equal(tutti_store_append(current.a, "log", "one", 3), TUTTI_OK);
    assert_int_equal(tutti_store_append(current.b, "log", NULL, 0), TUTTI_OK);
    assert_int_equal(tutti_store_append(current.b, "log", " two", 4), TUTTI_OK);
    has_text(current.a, "log", "one two");
    if (value_max() == TUTTI_STORE_VALUE_MAX) { /* PyTorch's server lets values grow */
        assert_int_equal(tutti_store_append(current.a, "log", big, TUTTI_STORE_VALUE_MAX),
                         TUTTI_E_STORE);
        assert_non_null(strstr(tutti_last_error(), "log'"));
        has_text(current.b, "log", "one two");
    }
    assert_int_equal(tutti_store_append(current.a, "log", big, value_max() + 1), TUTTI_E_ARG);
    test_free(big);
}

static tutti_bytes text_value(const char *text)
{
    return (tutti_bytes){ .data = (void *)(uintptr_t)text, .size = strlen(text) };
}

static void several_values_go_and_come_in_order(void **state)
{
    static const char *const keys[] = { "m1", "m2", "m3", "m1" };
    const tutti_bytes        values[] = { text_value("one"), text_value(""), text_value("three"),
                                          text_value("again") };
    tutti_bytes              got[4] = { { .data = NULL } };
    int                      i;

    (void)state;
    assert_int_equal(tutti_store_multi_set(current.a, keys, values, 4), TUTTI_OK);
    assert_int_equal(tutti_store_multi_get(current.b, keys, 3, 5000, got), TUTTI_OK);
    assert_string_equal(got[0].data, "again"); /* the later of the same key */
    assert_string_equal(got[1].data, "");
    assert_string_equal(got[2].data, "three");
    assert_null(got[3].data);
    for (i = 0; i < 3; i++)
        tutti_bytes_free(&got[i]);
    assert_int_equal(tutti_store_multi_set(current.a, NULL, NULL, 0), TUTTI_OK);
    assert_int_equal(tutti_store_multi_get(current.a, NULL, 0, 0, NULL), TUTTI_OK);
    assert_int_equal(tutti_store_multi_set(current.a, keys, NULL, 1), TUTTI_E_ARG);
    assert_int_equal(tutti_store_multi_get(current.a, keys, 1, 0, NULL), TUTTI_E_ARG);
}

/* One time-out for all, nothing is given out, and the missing key is named. */
static void several_values_come_all_or_none(void **state)
{
    static const char *const keys[] = { "here", "never", "neither" };
    tutti_bytes              got[3] = { { .data = NULL } };

    (void)state;
    set_text(current.a, "here", "x");
    assert_int_equal(tutti_store_multi_get(current.b, keys, 3, SHORT_MS, got), TUTTI_E_TIMEOUT);
    assert_non_null(strstr(tutti_last_error(), "never'"));
    assert_null(got[0].data);
}

/* More than one frame takes, by number and by size. */
static void many_and_large_values_go_in_portions(void **state)
{
    enum { N = 300, LARGE = 3, LARGE_BYTES = 7 << 20 };
    static char        names[N][24];
    static const char *keys[N];
    static tutti_bytes values[N], got[N];
    char              *large = test_calloc(1, LARGE_BYTES);
    size_t             i;

    (void)state;
    for (i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "portion/%zu", i);
        keys[i] = names[i];
        values[i] = text_value(names[i]);
    }
    for (i = 0; i < LARGE; i++) /* 21 MiB beside each other */
        values[100 + i] = (tutti_bytes){ .data = large, .size = LARGE_BYTES };
    assert_int_equal(tutti_store_multi_set(current.a, keys, values, N), TUTTI_OK);
    assert_int_equal(tutti_store_multi_get(current.b, keys, N, 20000, got), TUTTI_OK);
    for (i = 0; i < N; i++) {
        assert_int_equal(got[i].size, values[i].size);
        assert_memory_equal(got[i].data, values[i].data, values[i].size);
        tutti_bytes_free(&got[i]);
    }
    test_free(large);
}

static void push_text(tutti_store *store, const char *key, const char *text)
{
    assert_int_equal(tutti_store_queue_push(store, key, text, strlen(text)), TUTTI_OK);
}

static void pops_text(tutti_store *store, const char *key, bool block, const char *text)
{
    tutti_bytes value = { .data = NULL };

    assert_int_equal(tutti_store_queue_pop(store, key, block, 5000, &value), TUTTI_OK);
    assert_string_equal(value.data, text);
    tutti_bytes_free(&value);
}

static void queues_are_refused_where_there_are_none(void)
{
    tutti_bytes value = { .data = NULL };
    int64_t     n = 7;

    assert_int_equal(tutti_store_queue_push(current.a, "q", "x", 1), TUTTI_E_UNSUPPORTED);
    assert_int_equal(tutti_store_queue_pop(current.a, "q", true, 0, &value), TUTTI_E_UNSUPPORTED);
    assert_non_null(strstr(tutti_last_error(), "has no queues"));
    assert_int_equal(tutti_store_queue_len(current.a, "q", &n), TUTTI_E_UNSUPPORTED);
    assert_int_equal(n, 7);
}

static void queues_are_first_in_first_out(void **state)
{
    tutti_bytes value = { .data = NULL };
    int64_t     n = -1, keys = 0, keys_after = 0;

    (void)state;
    if (!has_queues()) {
        queues_are_refused_where_there_are_none();
        return;
    }
    assert_int_equal(tutti_store_num_keys(current.a, &keys), TUTTI_OK);
    assert_int_equal(tutti_store_queue_len(current.a, "q", &n), TUTTI_OK);
    assert_int_equal(n, 0);
    assert_int_equal(tutti_store_queue_pop(current.a, "q", false, 0, &value), TUTTI_E_EMPTY);
    assert_non_null(strstr(tutti_last_error(), "q' is empty"));
    assert_int_equal(tutti_store_queue_pop(current.a, "q", true, SHORT_MS, &value), TUTTI_E_TIMEOUT);
    assert_non_null(strstr(tutti_last_error(), "q' within"));
    assert_null(value.data);
    push_text(current.a, "q", "one");
    push_text(current.b, "q", "");
    push_text(current.a, "q", "three");
    push_text(current.a, "another", "x");
    assert_int_equal(tutti_store_queue_len(current.b, "q", &n), TUTTI_OK);
    assert_int_equal(n, 3);
    assert_int_equal(tutti_store_num_keys(current.a, &keys_after), TUTTI_OK);
    assert_int_equal(keys_after, keys);
    assert_true(there(current.b, "q"));
    pops_text(current.b, "q", true, "one");
    pops_text(current.a, "q", false, "");
    pops_text(current.a, "q", false, "three");
    assert_false(there(current.b, "q"));
    assert_int_equal(tutti_store_queue_pop(current.b, "q", false, 0, &value), TUTTI_E_EMPTY);
    pops_text(current.b, "another", false, "x");
}

/* A key and a queue of one name: two things. */
static void queues_and_keys_do_not_touch(void **state)
{
    tutti_bytes value = { .data = NULL };
    bool        deleted = true;

    (void)state;
    if (!has_queues())
        return; /* the test above says so */
    push_text(current.a, "both", "queued");
    assert_int_equal(tutti_store_get(current.b, "both", 5, &value), TUTTI_E_TIMEOUT);
    assert_int_equal(tutti_store_delete_key(current.b, "both", &deleted), TUTTI_OK);
    assert_false(deleted);
    set_text(current.b, "both", "kept");
    pops_text(current.b, "both", true, "queued");
    has_text(current.a, "both", "kept");
}

enum { POPPERS = 4, ELEMENTS = 60 };

typedef struct popper {
    tti_thread   thread;
    tutti_store *store;
    tutti_status st;
    int64_t      n, sum;
} popper;

/* Take numbers until the one that says "enough". */
static void pop_all(void *arg)
{
    popper *p = arg;
    int     number = 0;

    while (number >= 0) {
        tutti_bytes value = { .data = NULL };

        p->st = tutti_store_queue_pop(p->store, "work", true, 30000, &value);
        if (p->st != TUTTI_OK)
            return;
        number = atoi(value.data);
        tutti_bytes_free(&value);
        p->n += number >= 0;
        p->sum += number >= 0 ? number : 0;
    }
}

static void each_element_goes_to_one_popper(void **state)
{
    popper  poppers[POPPERS];
    char    text[24];
    int64_t n = 0, sum = 0;
    int     i;

    (void)state;
    if (!has_queues())
        return;
    memset(poppers, 0, sizeof poppers);
    for (i = 0; i < POPPERS; i++) {
        poppers[i].store = i % 2 == 0 ? current.a : current.b;
        assert_int_equal(tti_thread_start(&poppers[i].thread, "popper", pop_all, &poppers[i]),
                         TUTTI_OK);
    }
    for (i = 0; i < ELEMENTS + POPPERS; i++) {
        snprintf(text, sizeof text, "%d", i < ELEMENTS ? i : -1);
        push_text(i % 3 == 0 ? current.a : current.b, "work", text);
    }
    for (i = 0; i < POPPERS; i++) {
        tti_thread_join(&poppers[i].thread);
        assert_int_equal(poppers[i].st, TUTTI_OK);
        n += poppers[i].n;
        sum += poppers[i].sum;
    }
    assert_int_equal(n, ELEMENTS);
    assert_int_equal(sum, ELEMENTS * (ELEMENTS - 1) / 2);
}

static bool listed(const tutti_store_keys *keys, const char *name)
{
    size_t i;

    for (i = 0; i < keys->n; i++)
        if (strcmp(keys->names[i], name) == 0)
            return true;
    return false;
}

static void names_are_listed(void **state)
{
    tutti_store_keys keys = { .names = NULL };
    tutti_store     *view = NULL;

    (void)state;
    if (!has_names()) {
        assert_int_equal(tutti_store_list_keys(current.a, &keys), TUTTI_E_UNSUPPORTED);
        return;
    }
    assert_int_equal(tutti_store_list_keys(current.a, &keys), TUTTI_OK);
    assert_int_equal(keys.n, 0); /* no bookkeeping */
    tutti_store_keys_free(&keys);
    set_text(current.a, "l1", "x");
    set_text(current.b, "v/in", "x");
    set_text(current.a, "gone", "x");
    assert_int_equal(tutti_store_delete_key(current.a, "gone", NULL), TUTTI_OK);
    if (has_queues())
        push_text(current.a, "queue", "x");
    assert_int_equal(tutti_store_list_keys(current.b, &keys), TUTTI_OK);
    assert_int_equal(keys.n, 2);
    assert_true(listed(&keys, "l1") && listed(&keys, "v/in"));
    tutti_store_keys_free(&keys);
    assert_int_equal(tutti_prefix_store_open("v", current.a, &view), TUTTI_OK);
    assert_int_equal(tutti_store_list_keys(view, &keys), TUTTI_OK);
    assert_int_equal(keys.n, 1);
    assert_string_equal(keys.names[0], "in");
    tutti_store_keys_free(&keys);
    assert_null(keys.names);
    tutti_store_close(view);
    assert_int_equal(tutti_store_list_keys(current.a, NULL), TUTTI_E_ARG);
}

enum { COMERS = 6 };

typedef struct arrival {
    tti_thread   thread;
    tutti_store *store;
    tutti_status st;
} arrival;

static void arrive(void *arg)
{
    arrival *a = arg;

    a->st = tutti_store_barrier(a->store, "gate", COMERS, 30000);
}

static void barriers_hold_until_all_have_come(void **state)
{
    arrival arrivals[COMERS];
    int     i;

    (void)state;
    assert_int_equal(tutti_store_barrier(current.a, "short", 2, SHORT_MS), TUTTI_E_TIMEOUT);
    assert_non_null(strstr(tutti_last_error(), "'short': 1 of 2 came"));
    assert_int_equal(tutti_store_barrier(current.b, "short", 2, 5000),
                     TUTTI_OK); /* it was counted */
    assert_int_equal(tutti_store_barrier(current.a, "short", 2, 5000),
                     TUTTI_OK); /* passes at once */
    assert_int_equal(tutti_store_barrier(current.a, "one", 1, 5000), TUTTI_OK);
    assert_int_equal(tutti_store_barrier(current.a, "none", 0, 5000), TUTTI_E_ARG);
    memset(arrivals, 0, sizeof arrivals);
    for (i = 0; i < COMERS; i++) {
        arrivals[i].store = i % 2 == 0 ? current.a : current.b;
        assert_int_equal(tti_thread_start(&arrivals[i].thread, "arrival", arrive, &arrivals[i]),
                         TUTTI_OK);
    }
    for (i = 0; i < COMERS; i++) {
        tti_thread_join(&arrivals[i].thread);
        assert_int_equal(arrivals[i].st, TUTTI_OK);
    }
}

static void clones_share_the_data(void **state)
{
    tutti_store *twin = NULL;

    (void)state;
    assert_int_equal(tutti_store_set_timeout(current.a, 21234), TUTTI_OK);
    assert_int_equal(tutti_store_clone(current.a, &twin), TUTTI_OK);
    assert_int_equal(tutti_store_timeout(twin), 21234);
    set_text(twin, "from the twin", "x");
    has_text(current.b, "from the twin", "x");
    set_text(current.b, "to the twin", "y");
    has_text(twin, "to the twin", "y");
    assert_int_equal(tutti_store_set_timeout(twin, 20099), TUTTI_OK);
    assert_int_equal(tutti_store_timeout(current.a), is("hash") || is("bare") ? 20099 : 21234);
    tutti_store_close(twin);
    set_text(current.a, "afterwards", "z");
    has_text(current.b, "afterwards", "z");
    assert_int_equal(tutti_store_clone(current.a, NULL), TUTTI_E_ARG);
}

const one_test extended_tests[] = {
    ONE(appended_values_grow),
    ONE(several_values_go_and_come_in_order),
    ONE(several_values_come_all_or_none),
    ONE(many_and_large_values_go_in_portions),
    ONE(queues_are_first_in_first_out),
    ONE(queues_and_keys_do_not_touch),
    ONE(each_element_goes_to_one_popper),
    ONE(names_are_listed),
    ONE(barriers_hold_until_all_have_come),
    ONE(clones_share_the_data),
};
const size_t n_extended_tests = sizeof extended_tests / sizeof extended_tests[0];

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_conformance.c - what every store does.
 *
 * Goal    each store built in keeps the contract of tutti/store.h, to the letter of its edge cases.
 * Method  the same tests run on hash, file, tcp (server in this process, a second client beside
 *         it), prefix over tcp, and a store that has only what its table requires, so that the
 *         emulation of the front is tested too. `a` and `b` are two handles of one store. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/plugin/store.h>
#include "base/port.h"
#include "base/thread.h"
#include "store/store.h"

typedef struct fixture {
    const char  *name;
    tutti_store *a, *b;
    tutti_store *below; /* of a prefix store; else NULL */
    char         dir[40];
    char         path[64];
} fixture;

/* A store with the required entries only: it hands on to a hash store. */
typedef struct bare_store {
    tutti_store  base;
    tutti_store *hash;
} bare_store;

static tutti_status bare_set(tutti_store *store, const char *key, const void *val, size_t len,
                             int64_t deadline_ns)
{
    return tti_store_set_until(((bare_store *)store)->hash, key, val, len, deadline_ns);
}

static tutti_status bare_get(tutti_store *store, const char *key, int64_t deadline_ns,
                             tutti_bytes *val_out)
{
    return tti_store_get_until(((bare_store *)store)->hash, key, deadline_ns, val_out);
}

static tutti_status bare_add(tutti_store *store, const char *key, int64_t delta,
                             int64_t deadline_ns, int64_t *sum_out)
{
    return tti_store_add_until(((bare_store *)store)->hash, key, delta, deadline_ns, sum_out);
}

static void bare_close(tutti_store *store)
{
    tutti_store_close(((bare_store *)store)->hash);
    free(store);
}

static const tutti_store_ops bare_ops = { .api = TUTTI_STORE_API,
                                          .size = sizeof(tutti_store_ops),
                                          .scheme = "bare",
                                          .set = bare_set,
                                          .get = bare_get,
                                          .close = bare_close,
                                          .add = bare_add };

static int open_bare(fixture *f)
{
    bare_store *bare = calloc(1, sizeof *bare);

    if (bare == NULL || tutti_hash_store_open(&bare->hash) != TUTTI_OK)
        return -1;
    bare->base.ops = &bare_ops;
    if (tutti_store_adopt(&bare->base) != TUTTI_OK)
        return -1;
    f->a = &bare->base;
    f->b = tutti_store_retain(f->a);
    return 0;
}

static int open_hash(fixture *f)
{
    if (tutti_hash_store_open(&f->a) != TUTTI_OK)
        return -1;
    f->b = tutti_store_retain(f->a);
    return 0;
}

static int open_file(fixture *f)
{
    snprintf(f->dir, sizeof f->dir, "/tmp/tutti-store-XXXXXX");
    if (mkdtemp(f->dir) == NULL)
        return -1;
    snprintf(f->path, sizeof f->path, "%s/log", f->dir);
    return tutti_file_store_open(f->path, 2, &f->a) == TUTTI_OK &&
                   tutti_file_store_open(f->path, 2, &f->b) == TUTTI_OK
               ? 0
               : -1;
}

static int open_tcp(fixture *f)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;

    options.host = "127.0.0.1";
    options.is_master = true;
    if (tutti_tcp_store_open(&options, &f->a) != TUTTI_OK)
        return -1;
    options.is_master = false;
    options.port = tutti_tcp_store_port(f->a);
    return tutti_tcp_store_open(&options, &f->b) == TUTTI_OK ? 0 : -1;
}

static int open_prefix(fixture *f)
{
    fixture tcp = { .name = "tcp" };
    int     err = open_tcp(&tcp);

    if (err != 0)
        return err;
    if (tutti_prefix_store_open("p", tcp.a, &f->a) != TUTTI_OK ||
        tutti_prefix_store_open("p", tcp.b, &f->b) != TUTTI_OK)
        return -1;
    f->below = tcp.a;
    tutti_store_close(tcp.b);
    return 0;
}

static const struct {
    const char *name;
    int (*open)(fixture *f);
} kinds[] = {
    { "hash", open_hash },     { "file", open_file }, { "tcp", open_tcp },
    { "prefix", open_prefix }, { "bare", open_bare },
};

static fixture current;

static int setup(void **state)
{
    const size_t kind = (size_t)(uintptr_t)*state;

    current = (fixture){ .name = kinds[kind].name };
    return kinds[kind].open(&current);
}

static int teardown(void **state)
{
    int err = 0;

    (void)state;
    tutti_store_close(current.b);
    tutti_store_close(current.a);
    tutti_store_close(current.below);
    if (current.dir[0] != '\0') {
        /* Both handles are closed: the last one has removed the file. */
        err = access(current.path, F_OK) == 0 ? -1 : 0;
        unlink(current.path);
        err |= rmdir(current.dir);
    }
    return err;
}

static void set_text(tutti_store *store, const char *key, const char *text)
{
    assert_int_equal(tutti_store_set(store, key, text, strlen(text)), TUTTI_OK);
}

static void has_text(tutti_store *store, const char *key, const char *text)
{
    tutti_bytes value = { .data = NULL };

    assert_int_equal(tutti_store_get(store, key, 5000, &value), TUTTI_OK);
    assert_int_equal(value.size, strlen(text));
    assert_string_equal(value.data, text); /* a NUL stands behind it */
    tutti_bytes_free(&value);
    assert_null(value.data);
}

static bool there(tutti_store *store, const char *key)
{
    bool all = false;

    assert_int_equal(tutti_store_check(store, &key, 1, &all), TUTTI_OK);
    return all;
}

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
    assert_int_equal(tutti_store_get(current.a, "never", 30, &value), TUTTI_E_TIMEOUT);
    assert_null(value.data);
    assert_non_null(strstr(tutti_last_error(), "never'"));
    assert_non_null(strstr(tutti_last_error(), " ms"));
    assert_int_equal(tutti_store_wait(current.a, keys, 3, 30), TUTTI_E_TIMEOUT);
    assert_non_null(strstr(tutti_last_error(), "never'"));
    assert_true(tti_port_now(port) - start >= 60 * TTI_MS);
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

    big[TUTTI_STORE_VALUE_MAX - 1] = 'z';
    assert_int_equal(tutti_store_set(current.a, "big", big, TUTTI_STORE_VALUE_MAX), TUTTI_OK);
    assert_int_equal(tutti_store_get(current.b, "big", 0, &value), TUTTI_OK);
    assert_int_equal(value.size, TUTTI_STORE_VALUE_MAX);
    assert_memory_equal(value.data, big, TUTTI_STORE_VALUE_MAX);
    tutti_bytes_free(&value);
    assert_int_equal(tutti_store_set(current.a, "big", big, (size_t)TUTTI_STORE_VALUE_MAX + 1),
                     TUTTI_E_ARG);
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

/* ---- append, several keys, queues, names, barriers, clones ---- */

static bool is(const char *kind)
{
    return strcmp(current.name, kind) == 0;
}

static bool has_queues(void)
{
    return !is("file") && !is("bare");
}

static void appended_values_grow(void **state)
{
    char *big = test_calloc(1, TUTTI_STORE_VALUE_MAX);

    (void)state;
    assert_int_equal(tutti_store_has_extended_api(current.a), has_queues());
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
    assert_int_equal(tutti_store_append(current.a, "log", big, TUTTI_STORE_VALUE_MAX),
                     TUTTI_E_STORE);
    assert_non_null(strstr(tutti_last_error(), "log'"));
    has_text(current.b, "log", "one two");
    assert_int_equal(tutti_store_append(current.a, "log", big, TUTTI_STORE_VALUE_MAX + 1),
                     TUTTI_E_ARG);
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
    assert_int_equal(tutti_store_multi_get(current.b, keys, 3, 20, got), TUTTI_E_TIMEOUT);
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
    assert_int_equal(tutti_store_queue_pop(current.a, "q", true, 20, &value), TUTTI_E_TIMEOUT);
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
    if (is("bare")) {
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

typedef struct arrival {
    tti_thread   thread;
    tutti_store *store;
    tutti_status st;
} arrival;

static void arrive(void *arg)
{
    arrival *a = arg;

    a->st = tutti_store_barrier(a->store, "gate", THREADS, 30000);
}

static void barriers_hold_until_all_have_come(void **state)
{
    arrival arrivals[THREADS];
    int     i;

    (void)state;
    assert_int_equal(tutti_store_barrier(current.a, "short", 2, 20), TUTTI_E_TIMEOUT);
    assert_non_null(strstr(tutti_last_error(), "'short': 1 of 2 came"));
    assert_int_equal(tutti_store_barrier(current.b, "short", 2, 5000),
                     TUTTI_OK); /* it was counted */
    assert_int_equal(tutti_store_barrier(current.a, "short", 2, 5000),
                     TUTTI_OK); /* passes at once */
    assert_int_equal(tutti_store_barrier(current.a, "one", 1, 5000), TUTTI_OK);
    assert_int_equal(tutti_store_barrier(current.a, "none", 0, 5000), TUTTI_E_ARG);
    memset(arrivals, 0, sizeof arrivals);
    for (i = 0; i < THREADS; i++) {
        arrivals[i].store = i % 2 == 0 ? current.a : current.b;
        assert_int_equal(tti_thread_start(&arrivals[i].thread, "arrival", arrive, &arrivals[i]),
                         TUTTI_OK);
    }
    for (i = 0; i < THREADS; i++) {
        tti_thread_join(&arrivals[i].thread);
        assert_int_equal(arrivals[i].st, TUTTI_OK);
    }
}

static void clones_share_the_data(void **state)
{
    tutti_store *twin = NULL;

    (void)state;
    assert_int_equal(tutti_store_set_timeout(current.a, 1234), TUTTI_OK);
    assert_int_equal(tutti_store_clone(current.a, &twin), TUTTI_OK);
    assert_int_equal(tutti_store_timeout(twin), 1234);
    set_text(twin, "from the twin", "x");
    has_text(current.b, "from the twin", "x");
    set_text(current.b, "to the twin", "y");
    has_text(twin, "to the twin", "y");
    assert_int_equal(tutti_store_set_timeout(twin, 99), TUTTI_OK);
    assert_int_equal(tutti_store_timeout(current.a), is("hash") || is("bare") ? 99 : 1234);
    tutti_store_close(twin);
    set_text(current.a, "afterwards", "z");
    has_text(current.b, "afterwards", "z");
    assert_int_equal(tutti_store_clone(current.a, NULL), TUTTI_E_ARG);
}

static void null_is_harmless(void **state)
{
    (void)state;
    tutti_store_close(NULL);
    assert_null(tutti_store_retain(NULL));
    tutti_bytes_free(NULL);
    tutti_store_keys_free(NULL);
    tutti_store_server_stop(NULL);
}

typedef struct one_test {
    const char *name;
    void (*run)(void **state);
} one_test;

#define ONE(test)   \
    {               \
#test, test \
    }

static const one_test suite[] = {
    ONE(values_are_kept_and_replaced),
    ONE(sums_are_decimal_text),
    ONE(adding_to_words_is_refused_and_harmless),
    ONE(compare_set_follows_its_table),
    ONE(check_is_about_all_keys),
    ONE(deleted_keys_are_gone),
    ONE(waits_end_at_their_time),
    ONE(changes_wake_waiters),
    ONE(threads_share_a_handle),
    ONE(limits_are_exact),
    ONE(long_lists_work),
    ONE(prefixes_nest_inwards),
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
    ONE(null_is_harmless),
};

int main(void)
{
    enum { TESTS = sizeof suite / sizeof suite[0], KINDS = sizeof kinds / sizeof kinds[0] };
    struct CMUnitTest tests[TESTS * KINDS];
    static char       names[TESTS * KINDS][96];
    size_t            i, k;

    unsetenv("TUTTI_SECRET_FILE");
    for (k = 0; k < KINDS; k++)
        for (i = 0; i < TESTS; i++) {
            char *name = names[k * TESTS + i];

            snprintf(name, sizeof names[0], "%s: %s", kinds[k].name, suite[i].name);
            tests[k * TESTS + i] = (struct CMUnitTest){ .name = name,
                                                        .test_func = suite[i].run,
                                                        .setup_func = setup,
                                                        .teardown_func = teardown,
                                                        .initial_state = (void *)(uintptr_t)k };
        }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

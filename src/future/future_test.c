/* SPDX-License-Identifier: BSD-3-Clause
 *
 * future_test.c
 * Goal    a future is completed once, by one of many; everybody who waits or has attached a function hears of
 *         it, once and in order, outside of all locks; chains and collections of them pass on values and
 *         failures; nothing leaks, whoever leaves first.
 * Method  on one thread for the rules, with several threads for the races (for the thread sanitizer). */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/future.h>

#define OK(call) assert_int_equal((call), TUTTI_OK)
#define SAYS(word) assert_non_null(strstr(tutti_last_error(), (word)))

static tutti_future *fresh(void)
{
    tutti_future *future = NULL;

    OK(tutti_future_create(&future));
    return future;
}

static _Atomic int n_freed;

static void count_free(void *value)
{
    atomic_fetch_add(&n_freed, 1);
    free(value);
}

static int *boxed(int number)
{
    int *box = malloc(sizeof *box);

    assert_non_null(box);
    *box = number;
    return box;
}

static int number_in(tutti_future *future)
{
    void *value = NULL;

    OK(tutti_future_value(future, &value));
    return *(int *)value;
}

/* ---- one future ---- */

static void a_future_completes_once(void **state)
{
    tutti_future *future = fresh();
    void         *value = NULL;
    int          *second = boxed(2);

    (void)state;
    atomic_store(&n_freed, 0);
    assert_false(tutti_future_is_done(future));
    assert_int_equal(tutti_future_value(future, &value), TUTTI_E_STATE);
    assert_int_equal(tutti_future_wait(future, 1), TUTTI_E_TIMEOUT);
    OK(tutti_future_set_result(future, boxed(1), count_free));
    assert_true(tutti_future_is_done(future));
    assert_int_equal(tutti_future_set_result(future, second, count_free), TUTTI_E_STATE);
    assert_int_equal(tutti_future_set_error(future, TUTTI_E_IO, "late"), TUTTI_E_STATE);
    free(second);
    OK(tutti_future_wait(future, TUTTI_INFINITE));
    OK(tutti_future_wait(future, 0));
    assert_int_equal(number_in(future), 1);
    assert_int_equal(atomic_load(&n_freed), 0);
    tutti_future_free(future);
    assert_int_equal(atomic_load(&n_freed), 1);
    tutti_future_free(NULL);
}

static void failures_keep_their_words(void **state)
{
    tutti_future *future = fresh();
    void         *value = &n_freed;
    int           i;

    (void)state;
    assert_int_equal(tutti_future_set_error(future, TUTTI_OK, "no"), TUTTI_E_ARG);
    OK(tutti_future_set_error(future, TUTTI_E_IO, "the disk of 'n2' is full"));
    for (i = 0; i < 2; i++) {
        assert_int_equal(tutti_future_wait(future, 0), TUTTI_E_IO);
        SAYS("the disk of 'n2' is full");
        assert_int_equal(tutti_future_value(future, &value), TUTTI_E_IO);
    }
    assert_ptr_equal(value, &n_freed);
    tutti_future_free(future);
    assert_int_equal(tutti_future_wait(NULL, 0), TUTTI_E_ARG);
    assert_int_equal(tutti_future_create(NULL), TUTTI_E_ARG);
    assert_false(tutti_future_is_done(NULL));
    future = fresh();
    assert_int_equal(tutti_future_wait(future, -2), TUTTI_E_ARG);
    tutti_future_free(future);
}

/* ---- functions ---- */

static char   heard[64];
static size_t n_heard;

/* What hear() is told: a place in the alphabet. */
static void *letter(char of)
{
    static char letters[256];

    letters[(unsigned char)of] = of;
    return &letters[(unsigned char)of];
}

static void hear(tutti_future *future, void *ctx)
{
    assert_true(tutti_future_is_done(future));
    heard[n_heard++] = *(const char *)ctx;
}

static void functions_run_once_in_order(void **state)
{
    tutti_future *future = fresh();

    (void)state;
    memset(heard, 0, sizeof heard);
    n_heard = 0;
    OK(tutti_future_add_done_callback(future, hear, letter('a')));
    OK(tutti_future_add_done_callback(future, hear, letter('b')));
    assert_int_equal(n_heard, 0);
    OK(tutti_future_set_error(future, TUTTI_E_IO, NULL));
    assert_string_equal(heard, "ab");
    OK(tutti_future_add_done_callback(future, hear, letter('c'))); /* complete: at once */
    assert_string_equal(heard, "abc");
    assert_int_equal(tutti_future_wait(future, 0), TUTTI_E_IO);
    SAYS("TUTTI_E_IO");
    assert_int_equal(tutti_future_add_done_callback(future, NULL, NULL), TUTTI_E_ARG);
    tutti_future_free(future);
}

static void who_attached_hears_of_a_future_that_was_dropped(void **state)
{
    tutti_future *future = fresh();

    (void)state;
    memset(heard, 0, sizeof heard);
    n_heard = 0;
    OK(tutti_future_add_done_callback(future, hear, letter('x')));
    tutti_future_free(future);
    assert_string_equal(heard, "x");
}

/* ---- chains ---- */

static tutti_status add_one(tutti_future *future, void *ctx, void **value_out, tutti_value_free_fn *free_out)
{
    _Atomic int *calls = ctx;

    atomic_fetch_add(calls, 1);
    *value_out = boxed(number_in(future) + 1);
    *free_out = count_free;
    return TUTTI_OK;
}

static tutti_status refuse(tutti_future *future, void *ctx, void **value_out, tutti_value_free_fn *free_out)
{
    (void)future;
    (void)ctx;
    (void)value_out;
    (void)free_out;
    return tutti_future_set_error(NULL, TUTTI_E_IO, NULL); /* words of its own: "the future is NULL" */
}

/* Longer than any stack would bear if each function ran inside the one before. */
static void long_chains_need_little_stack(void **state)
{
    enum { LINKS = 50000 };
    tutti_future *first = fresh();
    tutti_future *last = tutti_future_retain(first);
    tutti_future *next = NULL;
    _Atomic int   calls = 0;
    int           i;

    (void)state;
    atomic_store(&n_freed, 0);
    for (i = 0; i < LINKS; i++) {
        OK(tutti_future_then(last, add_one, &calls, &next));
        tutti_future_free(last);
        last = next;
    }
    OK(tutti_future_set_result(first, boxed(0), count_free));
    assert_int_equal(number_in(last), LINKS);
    assert_int_equal(atomic_load(&calls), LINKS);
    tutti_future_free(first);
    tutti_future_free(last);
    assert_int_equal(atomic_load(&n_freed), LINKS + 1);
}

static void failures_pass_by_functions(void **state)
{
    tutti_future *first = fresh(), *second = NULL, *third = NULL, *fourth = NULL;
    _Atomic int   calls = 0;

    (void)state;
    OK(tutti_future_then(first, add_one, &calls, &second));
    OK(tutti_future_then(second, refuse, NULL, &third));
    OK(tutti_future_then(third, add_one, &calls, &fourth));
    OK(tutti_future_set_result(first, boxed(1), count_free));
    assert_int_equal(number_in(second), 2);
    assert_int_equal(tutti_future_wait(third, 0), TUTTI_E_ARG);
    SAYS("the future is NULL");
    assert_int_equal(tutti_future_wait(fourth, 0), TUTTI_E_ARG);
    SAYS("the future is NULL");
    assert_int_equal(atomic_load(&calls), 1);
    tutti_future_free(first);
    tutti_future_free(second);
    tutti_future_free(third);
    tutti_future_free(fourth);

    first = fresh();
    OK(tutti_future_then(first, add_one, &calls, &second));
    tutti_future_free(first); /* nobody can complete it any more */
    assert_int_equal(tutti_future_wait(second, TUTTI_INFINITE), TUTTI_E_ABORTED);
    SAYS("dropped");
    assert_int_equal(tutti_future_then(second, add_one, &calls, NULL), TUTTI_E_ARG);
    tutti_future_free(second);
}

/* A function waits for what is due behind itself. */
static void wait_for_ctx(tutti_future *future, void *ctx)
{
    (void)future;
    OK(tutti_future_wait(ctx, 20000));
    heard[n_heard++] = 'w';
}

static void a_function_may_wait_for_what_is_behind_it(void **state)
{
    tutti_future *first = fresh(), *second = fresh(), *third = NULL;
    _Atomic int   calls = 0;

    (void)state;
    memset(heard, 0, sizeof heard);
    n_heard = 0;
    OK(tutti_future_then(second, add_one, &calls, &third));
    OK(tutti_future_add_done_callback(first, wait_for_ctx, third));
    OK(tutti_future_add_done_callback(first, hear, letter('b')));
    OK(tutti_future_set_result(second, boxed(0), count_free));
    OK(tutti_future_set_result(first, NULL, NULL));
    assert_int_equal(strlen(heard), 2);
    tutti_future_free(first);
    tutti_future_free(second);
    tutti_future_free(third);
}

/* ---- several ---- */

static void all_of_several(void **state)
{
    tutti_future        *futures[3] = { fresh(), fresh(), fresh() };
    tutti_future        *all = NULL;
    const tutti_futures *got;
    void                *value = NULL;
    int                  i;

    (void)state;
    OK(tutti_collect_all(futures, 3, &all));
    OK(tutti_future_set_result(futures[1], boxed(1), count_free));
    OK(tutti_future_set_error(futures[2], TUTTI_E_IO, "two"));
    assert_false(tutti_future_is_done(all));
    assert_int_equal(tutti_future_wait_all(futures, 3, 1), TUTTI_E_TIMEOUT);
    SAYS("future 0 of 3");
    OK(tutti_future_set_error(futures[0], TUTTI_E_STORE, "zero"));
    OK(tutti_future_wait(all, 0)); /* well or not */
    OK(tutti_future_value(all, &value));
    got = value;
    assert_int_equal(got->n, 3);
    assert_int_equal(tutti_future_wait_all(futures, 3, 0), TUTTI_E_STORE);
    SAYS("zero");
    for (i = 0; i < 3; i++)
        assert_ptr_equal(got->at[i], futures[i]);
    for (i = 0; i < 3; i++)
        tutti_future_free(futures[i]);
    assert_int_equal(number_in(got->at[1]), 1); /* the value has references */
    tutti_future_free(all);
    OK(tutti_collect_all(NULL, 0, &all));
    assert_true(tutti_future_is_done(all));
    tutti_future_free(all);
    OK(tutti_future_wait_all(NULL, 0, 0));
}

static void any_of_several(void **state)
{
    tutti_future *futures[3] = { fresh(), fresh(), fresh() };
    tutti_future *any = NULL;
    int           i;

    (void)state;
    OK(tutti_collect_any(futures, 3, &any));
    assert_false(tutti_future_is_done(any));
    OK(tutti_future_set_error(futures[2], TUTTI_E_IO, NULL));
    assert_int_equal(number_in(any), 2);
    OK(tutti_future_set_result(futures[0], NULL, NULL));
    assert_int_equal(number_in(any), 2);
    tutti_future_free(any);
    for (i = 0; i < 3; i++)
        tutti_future_free(futures[i]); /* one of them never complete: the collection goes with it */
    assert_int_equal(tutti_collect_any(NULL, 0, &any), TUTTI_E_ARG);
    assert_int_equal(tutti_collect_any((tutti_future *[]){ NULL }, 1, &any), TUTTI_E_ARG);
}

static void members_that_nobody_holds_end_their_collection(void **state)
{
    tutti_future *futures[2] = { fresh(), fresh() };
    tutti_future *all = NULL;

    (void)state;
    OK(tutti_collect_all(futures, 2, &all));
    OK(tutti_future_set_result(futures[0], NULL, NULL));
    tutti_future_free(futures[0]);
    tutti_future_free(futures[1]);
    assert_true(tutti_future_is_done(all));
    tutti_future_free(all);
}

/* ---- races ---- */

enum { THREADS = 4, ROUNDS = 300 };

typedef struct race {
    tutti_future *shared;
    _Atomic int   winners;
    _Atomic int   calls;
    _Atomic int   ready;
} race;

static void count_call(tutti_future *future, void *ctx)
{
    race *r = ctx;

    (void)future;
    atomic_fetch_add(&r->calls, 1);
}

/* All attach, chain, complete and wait at once. */
static void *racer(void *arg)
{
    race         *r = arg;
    tutti_future *next = NULL, *all = NULL;
    int          *box = malloc(sizeof *box);
    tutti_status  st = TUTTI_E_NOMEM;

    atomic_fetch_add(&r->ready, 1);
    while (atomic_load(&r->ready) < THREADS)
        sched_yield();
    if (box != NULL) {
        *box = 7;
        st = tutti_future_add_done_callback(r->shared, count_call, r);
    }
    if (st == TUTTI_OK)
        st = tutti_future_then(r->shared, add_one, &r->calls, &next);
    if (st == TUTTI_OK)
        st = tutti_collect_all((tutti_future *[]){ r->shared, next }, 2, &all);
    if (st == TUTTI_OK && tutti_future_set_result(r->shared, box, count_free) == TUTTI_OK)
        atomic_fetch_add(&r->winners, 1);
    else
        free(box);
    if (st == TUTTI_OK)
        st = tutti_future_wait(all, 30000);
    tutti_future_free(all);
    tutti_future_free(next);
    tutti_future_free(r->shared);
    return st == TUTTI_OK ? NULL : r;
}

static void one_of_many_completes(void **state)
{
    pthread_t threads[THREADS];
    race      r;
    void     *bad;
    int       round, i;

    (void)state;
    for (round = 0; round < ROUNDS; round++) {
        memset(&r, 0, sizeof r);
        r.shared = fresh();
        for (i = 0; i < THREADS; i++) {
            tutti_future_retain(r.shared);
            assert_int_equal(pthread_create(&threads[i], NULL, racer, &r), 0);
        }
        tutti_future_free(r.shared);
        for (i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(threads[i], &bad), 0);
            assert_null(bad);
        }
        assert_int_equal(atomic_load(&r.winners), 1);
        assert_int_equal(atomic_load(&r.calls), 2 * THREADS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_future_completes_once),
        cmocka_unit_test(failures_keep_their_words),
        cmocka_unit_test(functions_run_once_in_order),
        cmocka_unit_test(who_attached_hears_of_a_future_that_was_dropped),
        cmocka_unit_test(long_chains_need_little_stack),
        cmocka_unit_test(failures_pass_by_functions),
        cmocka_unit_test(a_function_may_wait_for_what_is_behind_it),
        cmocka_unit_test(all_of_several),
        cmocka_unit_test(any_of_several),
        cmocka_unit_test(members_that_nobody_holds_end_their_collection),
        cmocka_unit_test(one_of_many_completes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * last_test.c - whether a thread is all of the program that runs: threads of the library's are none of it, others are, and so is
 * whatever the program has given to be called. The end of processes is tests/ranks/exit_test.c's. */
#include "base/last.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "base/thread.h"

enum { LIMIT_MS = 20000, ROUNDS = 200, LEAVING = 24, QUESTIONS = 24 };

static tti_event    moves, leaves;
static _Atomic bool is_there, may_go, may_leave;

static void stay(void *arg)
{
    tti_port *port = tti_port_system();

    (void)arg;
    atomic_store(&is_there, true);
    tti_event_signal(port, &moves);
    while (!atomic_load(&may_go)) {
        const uint32_t seen = tti_event_now(&moves);

        if (!atomic_load(&may_go))
            tti_event_wait(port, &moves, seen, TTI_FOREVER);
    }
}

static void *stay_too(void *arg)
{
    stay(arg);
    return NULL;
}

static void *leave(void *arg)
{
    tti_port *port = tti_port_system();

    while (!atomic_load(&may_leave)) {
        const uint32_t seen = tti_event_now(&leaves);

        if (!atomic_load(&may_leave))
            tti_event_wait(port, &leaves, seen, TTI_FOREVER);
    }
    return arg;
}

static void await_it(void)
{
    tti_port *port = tti_port_system();

    while (!atomic_load(&is_there)) {
        const uint32_t seen = tti_event_now(&moves);

        if (!atomic_load(&is_there))
            tti_event_wait(port, &moves, seen, TTI_FOREVER);
    }
}

static void let_it_go(void)
{
    atomic_store(&may_go, true);
    tti_event_signal(tti_port_system(), &moves);
}

/* The kernel lists a thread for a moment after it was joined. */
static bool is_alone_soon(void)
{
    const int64_t until_ns = tti_deadline(tti_port_system(), LIMIT_MS, 0);

    while (!tti_is_only_thread() && tti_port_now(tti_port_system()) < until_ns)
        tti_port_system()->ops->yield(tti_port_system());
    return tti_is_only_thread();
}

static int begin(void **state)
{
    (void)state;
    atomic_store(&is_there, false);
    atomic_store(&may_go, false);
    return 0;
}

static void own_threads_do_not_count(void **state)
{
    tti_thread thread = { .running = false };

    (void)state;
    assert_true(is_alone_soon());
    assert_int_equal(tti_thread_start(&thread, "tutti-test", stay, NULL), TUTTI_OK);
    await_it();
    assert_true(tti_is_only_thread());
    let_it_go();
    tti_thread_join(&thread);
    assert_true(is_alone_soon());
}

static void other_threads_count(void **state)
{
    pthread_t thread;

    (void)state;
    assert_true(is_alone_soon());
    assert_int_equal(pthread_create(&thread, NULL, stay_too, NULL), 0);
    assert_false(tti_is_only_thread()); /* also if it has not run yet */
    await_it();
    assert_false(tti_is_only_thread());
    let_it_go();
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(is_alone_soon());
}

static void what_may_be_called_counts(void **state)
{
    (void)state;
    assert_true(is_alone_soon());
    tti_lending_begins();
    tti_lending_begins();
    assert_false(tti_is_only_thread());
    tti_lending_ends();
    assert_false(tti_is_only_thread());
    tti_lending_ends();
    assert_true(tti_is_only_thread());
}

/* Threads that were there before it end while it is looked for. */
static void one_is_seen_while_others_end(void **state)
{
    tti_thread ours = { .running = false };
    pthread_t  other, leaving[LEAVING];
    int        round, i;

    (void)state;
    for (round = 0; round < ROUNDS; round++) {
        atomic_store(&may_leave, false);
        atomic_store(&may_go, false);
        for (i = 0; i < LEAVING; i++)
            assert_int_equal(pthread_create(&leaving[i], NULL, leave, NULL), 0);
        assert_int_equal(tti_thread_start(&ours, "tutti-test", stay, NULL), TUTTI_OK);
        assert_int_equal(pthread_create(&other, NULL, stay_too, NULL), 0);
        atomic_store(&may_leave, true);
        tti_event_signal(tti_port_system(), &leaves);
        for (i = 0; i < QUESTIONS; i++)
            assert_false(tti_is_only_thread());
        let_it_go();
        for (i = 0; i < LEAVING; i++)
            assert_int_equal(pthread_join(leaving[i], NULL), 0);
        assert_int_equal(pthread_join(other, NULL), 0);
        tti_thread_join(&ours);
    }
    assert_true(is_alone_soon());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(own_threads_do_not_count, begin),
        cmocka_unit_test_setup(other_threads_count, begin),
        cmocka_unit_test_setup(what_may_be_called_counts, begin),
        cmocka_unit_test_setup(one_is_seen_while_others_end, begin),
    };

#ifdef __SANITIZE_THREAD__ /* it has a thread in every process, which is not ours */
    (void)tests;
    puts("SKIP: ThreadSanitizer starts a thread of its own in every process");
    return 77;
#else
    return cmocka_run_group_tests_name("last", tests, NULL, NULL);
#endif
}

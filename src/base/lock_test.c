/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Goal    A mutex that favours a thread is a mutex: nobody meets anybody inside, all are let in, and the favoured
 *         thread gets its place back.
 * Method  Threads count in plain memory; looks at the words of the mutex say which way was taken, so that no test
 *         passes because nobody was favoured. Ports without a barrier, or with one that fails, are made of the real. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/thread.h"
#include <tutti/private.h>

enum { MANY = 5000, ROUNDS = 200, OTHERS = 3 };

typedef struct shared {
    tti_mutex   lock;
    long        count; /* under it */
    _Atomic int stage;
} shared;

/* A port like the system's, whose tables a test may change. */
typedef struct fake_port {
    tti_port     base;
    tti_port_ops ops;
    int          barriers;
} fake_port;

static bool refuse(tti_port *port)
{
    ((fake_port *)port)->barriers++;
    return false;
}

static tti_port *fake(fake_port *fake)
{
    fake->ops = *tti_port_system()->ops;
    fake->ops.fence_own = refuse;
    fake->base.ops = &fake->ops;
    fake->barriers = 0;
    return &fake->base;
}

static void begin(shared *s, tti_port *port)
{
    s->count = 0;
    atomic_init(&s->stage, 0);
    tti_mutex_init(&s->lock);
    tti_mutex_favour(&s->lock, port);
}

static bool is_open(shared *s)
{
    return atomic_load(&s->lock.open) != 0;
}

static void add(shared *s, int times)
{
    int i;

    for (i = 0; i < times; i++) {
        tti_lock(&s->lock);
        s->count++;
        tti_unlock(&s->lock);
    }
}

static bool machine_can(void)
{
    tti_port *port = tti_port_system();

    return port->ops->fence_own != NULL && port->ops->fence_join(port);
}

/* ---- the favoured thread --------------------------------------------------------------------------- */

static void test_who_comes_most_is_favoured(void **state)
{
    shared s;

    (void)state;
    if (!machine_can())
        skip();
    begin(&s, tti_port_system());
    assert_false(is_open(&s));
    add(&s, MANY);
    assert_true(is_open(&s));
    tti_lock(&s.lock);
    assert_int_equal(atomic_load(&s.lock.inside), 1);
    tti_unlock(&s.lock);
    assert_int_equal(atomic_load(&s.lock.inside), 0);
    assert_int_equal(s.count, MANY);
    tti_mutex_release(&s.lock);
}

static void test_without_a_barrier_nobody_is(void **state)
{
    fake_port port;
    shared    s;

    (void)state;
    fake(&port);
    port.ops.fence_own = NULL;
    begin(&s, &port.base);
    add(&s, MANY);
    assert_false(is_open(&s));
    assert_int_equal(s.count, MANY);
    tti_mutex_release(&s.lock);
}

/* ---- others ---------------------------------------------------------------------------------------- */

static void take_once(void *ctx)
{
    shared *s = ctx;

    tti_lock(&s->lock);
    s->count += MANY;
    tti_unlock(&s->lock);
    atomic_store(&s->stage, 1);
}

/* The favoured thread is inside until the other one waits for it. */
static void let_another_in(shared *s)
{
    tti_thread thread = { .running = false };

    tti_lock(&s->lock);
    assert_int_equal(tti_thread_start(&thread, "other", take_once, s), TUTTI_OK);
    while (is_open(s))
        sched_yield();
    s->count++;
    assert_int_equal(atomic_load(&s->stage), 0);
    tti_unlock(&s->lock);
    tti_thread_join(&thread);
    assert_int_equal(atomic_load(&s->stage), 1);
}

static void test_another_waits_for_who_is_inside(void **state)
{
    shared s;

    (void)state;
    if (!machine_can())
        skip();
    begin(&s, tti_port_system());
    add(&s, MANY);
    let_another_in(&s);
    assert_int_equal(s.count, 2 * MANY + 1);
    assert_false(is_open(&s));
    add(&s, 1);
    assert_int_equal(atomic_load(&s.lock.inside), 0);
    add(&s, MANY);
    assert_true(is_open(&s)); /* it has its place back */
    tti_mutex_release(&s.lock);
}

static void test_a_barrier_that_fails(void **state)
{
    fake_port port;
    shared    s;

    (void)state;
    if (!machine_can())
        skip();
    begin(&s, fake(&port));
    add(&s, MANY);
    assert_true(is_open(&s));
    let_another_in(&s);
    assert_int_equal(s.count, 2 * MANY + 1);
    assert_int_equal(port.barriers, 1);
    add(&s, MANY);
    assert_false(is_open(&s)); /* nor ever again */
    tti_mutex_release(&s.lock);
}

static void add_rounds(void *ctx)
{
    shared *s = ctx;
    int     i;

    for (i = 0; i < ROUNDS; i++) {
        add(s, 1);
        sched_yield();
    }
}

/* Doors open and close all the time: rows of the favoured thread, and others in between. */
static void test_all_count(void **state)
{
    tti_thread threads[OTHERS] = { { .running = false } };
    shared     s;
    int        i;

    (void)state;
    begin(&s, tti_port_system());
    add(&s, MANY);
    for (i = 0; i < OTHERS; i++)
        assert_int_equal(tti_thread_start(&threads[i], "other", add_rounds, &s), TUTTI_OK);
    add(&s, 20 * MANY);
    for (i = 0; i < OTHERS; i++)
        tti_thread_join(&threads[i]);
    assert_int_equal(s.count, 21 * MANY + OTHERS * ROUNDS);
    tti_mutex_release(&s.lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_comes_most_is_favoured),
        cmocka_unit_test(test_without_a_barrier_nobody_is),
        cmocka_unit_test(test_another_waits_for_who_is_inside),
        cmocka_unit_test(test_a_barrier_that_fails),
        cmocka_unit_test(test_all_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * callback_test.c
 * Goal    what is attached to a work is called once, after the work is complete, on a thread of the
 *         world's own; also after failures, at the end of the world and after it.
 * Method  ranks as threads; a log that callbacks write and the test waits for. */
#include "fake_backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/private.h>

enum { LONG_MS = 30000, CALLS_MAX = 8 };

/* What callbacks of one rank did. */
typedef struct call_log {
    tti_mutex    lock;
    tti_event    changed;
    int          n;
    int          who[CALLS_MAX];
    tutti_status status[CALLS_MAX];
    pthread_t    thread;
} call_log;

typedef struct note {
    call_log *log;
    int       who;
} note;

static void write_note(tutti_work *work, void *ctx)
{
    note     *told = ctx;
    call_log *log = told->log;

    CHECK(tutti_work_is_completed(work));
    tti_lock(&log->lock);
    if (CHECK(log->n < CALLS_MAX)) {
        log->status[log->n] = tutti_work_wait(work); /* returns at once */
        log->who[log->n++] = told->who;
    }
    log->thread = pthread_self();
    tti_event_signal(tti_port_system(), &log->changed);
    tti_unlock(&log->lock);
}

static void await_notes(call_log *log, int n)
{
    const int64_t deadline_ns = tti_now_ns() + LONG_MS * TTI_MS;
    uint32_t      seen;

    tti_lock(&log->lock);
    while (log->n < n && tti_now_ns() < deadline_ns) {
        seen = tti_event_now(&log->changed);
        tti_unlock(&log->lock);
        tti_event_wait(tti_port_system(), &log->changed, seen, deadline_ns);
        tti_lock(&log->lock);
    }
    CHECK(log->n == n);
    tti_unlock(&log->lock);
}

static bool is_other_thread(const call_log *log)
{
    return !pthread_equal(log->thread, pthread_self());
}

/* Attached before the end, and after it: both are called, elsewhere, in order. */
static void collective(fake_rank *r)
{
    call_log    log = { .n = 0 };
    note        notes[3] = { { &log, 0 }, { &log, 1 }, { &log, 2 } };
    int32_t     x = 1;
    tutti_work *work = NULL;

    tti_mutex_init(&log.lock);
    CHECK(tutti_all_reduce_async(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL, &work) == TUTTI_OK);
    CHECK(tutti_work_then(work, write_note, &notes[0]) == TUTTI_OK);
    CHECK(tutti_work_then(work, write_note, &notes[1]) == TUTTI_OK);
    if (r->rank == 0) {
        CHECK(log.n == 0); /* nothing ends before this rank lets it */
        fake_await_running(r->size);
        fake_hold(false);
    }
    await_notes(&log, 2);
    CHECK(x == r->size && is_other_thread(&log));
    CHECK(tutti_work_then(work, write_note, &notes[2]) == TUTTI_OK);
    await_notes(&log, 3);
    CHECK(is_other_thread(&log));
    CHECK(log.who[0] == 0 && log.who[1] == 1 && log.who[2] == 2);
    CHECK(log.status[0] == TUTTI_OK && log.status[2] == TUTTI_OK);
    tutti_work_free(work);
    tti_mutex_release(&log.lock);
}

static void test_collective(void **state)
{
    (void)state;
    fake_hold(true);
    assert_int_equal(fake_ranks(2, collective, NULL), 0);
}

/* A receive that nobody waits for, and whose work nobody holds, is still told of. */
static void message(fake_rank *r)
{
    call_log    log = { .n = 0 };
    note        told = { &log, 4 };
    int32_t     x = 7;
    tutti_work *work = NULL;

    tti_mutex_init(&log.lock);
    if (r->rank == 1) {
        x = 0;
        CHECK(tutti_irecv(TUTTI_SPAN(&x, 1), 0, 0, NULL, &work) == TUTTI_OK);
        CHECK(tutti_work_then(work, write_note, &told) == TUTTI_OK);
        tutti_work_free(work);
    }
    CHECK(tutti_barrier(NULL) == TUTTI_OK);
    if (r->rank == 0)
        CHECK(tutti_send(TUTTI_SPAN(&x, 1), 1, 0, NULL) == TUTTI_OK);
    else
        await_notes(&log, 1);
    CHECK(x == 7);
    tti_mutex_release(&log.lock);
}

static void test_message(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(2, message, NULL), 0);
}

static void failure(fake_rank *r)
{
    call_log    log = { .n = 0 };
    note        told = { &log, 0 };
    int32_t     x = 1;
    tutti_work *work = NULL;

    (void)r;
    tti_mutex_init(&log.lock);
    CHECK(tutti_all_reduce_async(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL, &work) == TUTTI_OK);
    CHECK(tutti_work_then(work, write_note, &told) == TUTTI_OK);
    await_notes(&log, 1);
    CHECK(log.status[0] == TUTTI_E_BACKEND);
    tutti_work_free(work);
    tti_mutex_release(&log.lock);
}

static void test_failure(void **state)
{
    (void)state;
    fake_fail_at(1, TUTTI_E_BACKEND);
    assert_int_equal(fake_ranks(2, failure, NULL), 0);
}

/* ---- chains ---- */

typedef struct chain {
    call_log     log;
    note         told;
    tutti_group *group;
    int32_t      x;
} chain;

/* The callback of the first operation issues a second one and waits for a third. */
static void go_on(tutti_work *work, void *ctx)
{
    chain      *c = ctx;
    tutti_work *next = NULL;

    CHECK(tutti_work_status(work) == TUTTI_OK);
    CHECK(tutti_all_reduce(TUTTI_SPAN(&c->x, 1), TUTTI_SUM, c->group) == TUTTI_OK);
    CHECK(tutti_all_reduce_async(TUTTI_SPAN(&c->x, 1), TUTTI_SUM, c->group, &next) == TUTTI_OK);
    CHECK(tutti_work_then(next, write_note, &c->told) == TUTTI_OK);
    tutti_work_free(next);
}

static void chained(fake_rank *r)
{
    chain       c = { .group = r->world, .x = 1 };
    tutti_work *work = NULL;

    tti_mutex_init(&c.log.lock);
    c.told.log = &c.log;
    CHECK(tutti_all_reduce_async(TUTTI_SPAN(&c.x, 1), TUTTI_SUM, NULL, &work) == TUTTI_OK);
    CHECK(tutti_work_then(work, go_on, &c) == TUTTI_OK);
    tutti_work_free(work);
    await_notes(&c.log, 1);
    CHECK(c.x == r->size * r->size * r->size);
    tti_mutex_release(&c.log.lock);
}

static void test_chained(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(2, chained, NULL), 0);
}

/* ---- the end of the world ---- */

static void try_to_destroy(tutti_work *work, void *ctx)
{
    chain *c = ctx;

    CHECK(tutti_destroy_process_group(c->group) == TUTTI_E_STATE);
    CHECK(strstr(tutti_last_error(), "callback of the same world") != NULL);
    write_note(work, &c->told);
}

static void test_destroyed_by_a_callback(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    chain        c = { .group = world, .x = 1 };
    tutti_work  *work = NULL;

    (void)state;
    tti_mutex_init(&c.log.lock);
    c.told.log = &c.log;
    assert_int_equal(tutti_barrier_async(world, &work), TUTTI_OK);
    assert_int_equal(tutti_work_then(work, try_to_destroy, &c), TUTTI_OK);
    await_notes(&c.log, 1);
    assert_int_equal(tutti_barrier(world), TUTTI_OK); /* it is as it was */
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
    tutti_work_free(work);
    tti_mutex_release(&c.log.lock);
}

/* Collectives that are held end with their world, and are told of before it is gone; what is attached later is
 * called on the spot. */
static void test_end_of_the_world(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    call_log     log = { .n = 0 };
    note         told = { &log, 0 };
    tutti_work  *works[2] = { NULL, NULL };
    int          i;

    (void)state;
    tti_mutex_init(&log.lock);
    fake_hold(true);
    assert_int_equal(tutti_barrier_async(world, &works[0]), TUTTI_OK);
    assert_int_equal(tutti_barrier_async(world, &works[1]), TUTTI_OK);
    fake_await_running(1);
    for (i = 0; i < 2; i++)
        assert_int_equal(tutti_work_then(works[i], write_note, &told), TUTTI_OK);
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
    assert_int_equal(log.n, 2);
    assert_true(is_other_thread(&log));
    for (i = 0; i < 2; i++)
        assert_int_equal(log.status[i], TUTTI_E_ABORTED);

    assert_int_equal(tutti_work_then(works[1], write_note, &told), TUTTI_OK);
    assert_int_equal(log.n, 3);
    assert_false(is_other_thread(&log));
    for (i = 0; i < 2; i++)
        tutti_work_free(works[i]);
    tti_mutex_release(&log.lock);
}

/* The same of a message under way and its group. */
static void end_of_a_group(fake_rank *r)
{
    const int    both[] = { 0, 1 };
    call_log     log = { .n = 0 };
    note         told = { &log, 0 };
    tutti_group *group = NULL;
    tutti_work  *work = NULL;
    int32_t      x = 0;

    tti_mutex_init(&log.lock);
    CHECK(tutti_new_group(both, 2, NULL, &group) == TUTTI_OK);
    CHECK(tutti_irecv(TUTTI_SPAN(&x, 1), 1 - r->rank, 0, group, &work) == TUTTI_OK);
    CHECK(tutti_work_then(work, write_note, &told) == TUTTI_OK);
    CHECK(tutti_destroy_process_group(group) == TUTTI_OK);
    await_notes(&log, 1);
    CHECK(is_other_thread(&log) && log.status[0] == TUTTI_E_ABORTED);
    tutti_work_free(work);
    tti_mutex_release(&log.lock);
}

static void test_end_of_a_group(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(2, end_of_a_group, NULL), 0);
}

static void test_wrong_arguments(void **state)
{
    call_log    log = { .n = 0 };
    note        told = { &log, 0 };
    tutti_work *work = NULL;

    (void)state;
    tti_mutex_init(&log.lock);
    assert_int_equal(tutti_work_then(NULL, write_note, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_barrier_async(TUTTI_NON_MEMBER, &work), TUTTI_OK);
    assert_int_equal(tutti_work_then(work, NULL, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_work_then(work, write_note, &told), TUTTI_OK);
    assert_int_equal(log.n, 1);
    assert_false(is_other_thread(&log));
    tti_mutex_release(&log.lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_collective, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_message, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_failure, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_chained, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_destroyed_by_a_callback, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_end_of_the_world, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_end_of_a_group, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_wrong_arguments, fake_setup, fake_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

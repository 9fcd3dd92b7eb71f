/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gate_test.c
 * Goal    calls that take their turn at the gate and calls that take it under the lock have one order, run
 *         one at a time, and hand over what they wrote; a group ends while calls are under way.
 * Method  a world of one whose backend writes plain memory in every call: numbers that skip or repeat are
 *         counted, and what is not handed over is a race for the thread sanitizer. */
#include "fake_backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>
#include <tutti/private.h>

enum { LONG_MS = 30000, THREADS = 4, CALLS = 400, ROUNDS = 200 };

/* Whose turn it is writes this, and nobody else. */
static struct {
    uint64_t last; /* number of the latest call */
    uint64_t calls;
} turn;

static _Atomic uint64_t runs; /* as turn.calls, for others to see */
static _Atomic bool     late; /* a call came without a deadline, as the table says */
static _Atomic bool     in_background; /* of the latest call */

static tutti_status run_plain(tutti_backend *backend, const tutti_call *call)
{
    (void)backend;
    CHECK(call->seq > turn.last);
    CHECK(call->timeout_ms == LONG_MS);
    turn.last = call->seq;
    turn.calls++;
    if (call->deadline_ns == 0)
        atomic_store_explicit(&late, true, memory_order_relaxed);
    atomic_store_explicit(&in_background, call->in_background, memory_order_relaxed);
    atomic_fetch_add_explicit(&runs, 1, memory_order_relaxed);
    return TUTTI_OK;
}

static tutti_backend_ops ops;

static tutti_group *plain_world(void)
{
    tti_port    *port = tti_port_system();
    tutti_group *world = NULL;
    tutti_store *store = NULL;
    tti_join     join = { .user_store = true, .world_size = 1, .timeout_ms = LONG_MS,
                          .deadline_ns = tti_deadline(port, LONG_MS, LONG_MS), .listen_host = "127.0.0.1" };

    ops = fake_ops;
    ops.run = run_plain;
    ops.late_deadlines = true;
    turn.last = turn.calls = 0;
    atomic_store(&runs, 0);
    if (!CHECK(tutti_hash_store_open(&store) == TUTTI_OK))
        return NULL;
    join.store = store;
    CHECK(tti_world_create(port, &(tti_backing){ .ops = &ops }, &join, &world) == TUTTI_OK);
    tutti_store_close(store);
    return world;
}

/* Until so many calls have run. */
static void await_runs(uint64_t n)
{
    const int64_t deadline_ns = tti_now_ns() + LONG_MS * TTI_MS;

    while (atomic_load_explicit(&runs, memory_order_relaxed) < n && tti_now_ns() < deadline_ns)
        tti_port_system()->ops->yield(tti_port_system());
    assert_true(atomic_load_explicit(&runs, memory_order_relaxed) >= n);
}

static void start_all(tti_thread threads[THREADS], void (*body)(void *arg), void *arg)
{
    int i;

    for (i = 0; i < THREADS; i++)
        assert_int_equal(tti_thread_start(&threads[i], "caller", body, arg), TUTTI_OK);
}

static void join_all(tti_thread threads[THREADS])
{
    int i;

    for (i = 0; i < THREADS; i++)
        tti_thread_join(&threads[i]);
}

/* ---- one order ---- */

static void call_blocking(void *arg)
{
    int i;

    for (i = 0; i < CALLS; i++)
        CHECK(tutti_barrier(arg) == TUTTI_OK);
}

static void test_blocking_threads(void **state)
{
    tti_thread   threads[THREADS] = { 0 };
    tutti_group *world = plain_world();

    (void)state;
    start_all(threads, call_blocking, world);
    join_all(threads);
    assert_int_equal(turn.calls, THREADS * CALLS);
    assert_int_equal(turn.last, THREADS * CALLS); /* no number was skipped */
    assert_int_equal(tutti_get_sequence_number(world), THREADS * CALLS);
    assert_true(atomic_load(&late));
    assert_false(world->held); /* nothing is left to order: the next one goes by the gate */
    tutti_destroy_process_group(world);
    assert_int_equal(fake_aborts(), 0);
}

/* A backend is told whose thread it is on: the queue's, or one of the program's. */
static void test_background_is_told(void **state)
{
    tutti_group *world = plain_world();
    tutti_work  *work = NULL;

    (void)state;
    assert_int_equal(tutti_barrier(world), TUTTI_OK);
    assert_false(atomic_load(&in_background));
    assert_int_equal(tutti_barrier_async(world, &work), TUTTI_OK);
    await_runs(2); /* nobody helps */
    assert_true(atomic_load(&in_background));
    assert_int_equal(tutti_work_wait(work), TUTTI_OK);
    assert_int_equal(tutti_barrier(world), TUTTI_OK);
    assert_false(atomic_load(&in_background));
    tutti_work_free(work);
    tutti_destroy_process_group(world);
}

static void one_async(tutti_group *world, bool wait)
{
    tutti_work *work = NULL;

    if (!CHECK(tutti_barrier_async(world, &work) == TUTTI_OK))
        return;
    if (wait)
        CHECK(tutti_work_wait(work) == TUTTI_OK);
    tutti_work_free(work);
}

/* Three numbers, of which some are used: the others count as run. */
static void some_turns(tutti_group *world, int used)
{
    tti_turns turns;
    int       i;

    if (!CHECK(tti_turns_take(world, 3, &turns) == TUTTI_OK))
        return;
    for (i = 0; i < used; i++) {
        tutti_call call = { .kind = TUTTI_CALL_BARRIER, .root = -1 };

        CHECK(tti_turns_run(&turns, &call) == TUTTI_OK);
    }
    tti_turns_give(&turns, "some turns", TUTTI_OK);
}

static void look_at(tutti_group *world)
{
    tti_group_is_busy(world);
    CHECK(tutti_get_sequence_number(world) <= (uint64_t)THREADS * CALLS * 3);
    if (CHECK(tti_group_enter(world) == TUTTI_OK))
        tti_group_leave(world, "nothing", TUTTI_OK);
}

static void call_all_ways(void *arg)
{
    uint64_t dice = (uint64_t)(uintptr_t)&dice;
    int      i;

    for (i = 0; i < CALLS; i++) {
        dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        switch (dice >> 61) {
        case 0: one_async(arg, true); break;
        case 1: one_async(arg, false); break;
        case 2: some_turns(arg, (int)(dice >> 32) % 4); break;
        case 3: look_at(arg); break;
        default: CHECK(tutti_barrier(arg) == TUTTI_OK);
        }
    }
}

static void test_all_ways_at_once(void **state)
{
    tti_thread   threads[THREADS] = { 0 };
    tutti_group *world = plain_world();

    (void)state;
    start_all(threads, call_all_ways, world);
    join_all(threads);
    assert_int_equal(tutti_barrier(world), TUTTI_OK); /* behind whatever nobody waited for */
    assert_int_equal(turn.last, tutti_get_sequence_number(world));
    assert_int_equal(turn.calls, atomic_load(&runs));
    tutti_destroy_process_group(world);
    assert_int_equal(fake_aborts(), 0);
}

/* ---- the end ---- */

static void call_until_refused(void *arg)
{
    tutti_status st = TUTTI_OK;

    while (st == TUTTI_OK)
        st = tutti_barrier(arg);
    CHECK(st == TUTTI_E_ABORTED);
}

static void test_abort_refuses_all(void **state)
{
    tti_thread   threads[THREADS] = { 0 };
    tutti_group *world = plain_world();
    uint64_t     calls;

    (void)state;
    start_all(threads, call_until_refused, world);
    await_runs(CALLS);
    assert_int_equal(tutti_abort_process_group(world), TUTTI_OK);
    join_all(threads);
    calls = atomic_load(&runs);
    assert_int_equal(tutti_barrier(world), TUTTI_E_ABORTED);
    assert_int_equal(atomic_load(&runs), calls);
    tutti_destroy_process_group(world);
}

static void call_once(void *arg)
{
    CHECK(tutti_barrier(arg) == TUTTI_OK);
}

/* The group may be gone while the thread whose call has run is still on its way out. */
static void test_destroy_behind_a_call(void **state)
{
    int i;

    (void)state;
    for (i = 0; i < ROUNDS; i++) {
        tti_thread   thread = { 0 };
        tutti_group *world = plain_world();

        assert_int_equal(tti_thread_start(&thread, "caller", call_once, world), TUTTI_OK);
        await_runs(1);
        assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
        tti_thread_join(&thread);
    }
}

static void call_aborted(void *arg)
{
    CHECK(tutti_barrier(arg) == TUTTI_E_ABORTED);
}

/* One thread is inside by the gate; with others behind it, or alone. */
static void end_under_callers(int n_callers)
{
    tti_thread   threads[THREADS] = { 0 };
    tutti_group *world = fake_world_of_one(LONG_MS);
    int          i;

    fake_hold(true);
    for (i = 0; i < n_callers; i++) {
        assert_int_equal(tti_thread_start(&threads[i], "caller", call_aborted, world), TUTTI_OK);
        fake_await_running(1);
        while (tutti_get_sequence_number(world) <= (uint64_t)i)
            tti_port_system()->ops->yield(tti_port_system());
    }
    assert_true(tti_group_is_busy(world));
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
    for (i = 0; i < n_callers; i++)
        tti_thread_join(&threads[i]);
    assert_int_equal(fake_aborts(), 1);
}

static void test_destroy_under_a_caller(void **state)
{
    (void)state;
    end_under_callers(1);
}

static void test_destroy_under_callers(void **state)
{
    (void)state;
    end_under_callers(THREADS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_blocking_threads),      TEST(test_all_ways_at_once),       TEST(test_abort_refuses_all),
        TEST(test_background_is_told),
        TEST(test_destroy_behind_a_call), TEST(test_destroy_under_a_caller), TEST(test_destroy_under_callers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

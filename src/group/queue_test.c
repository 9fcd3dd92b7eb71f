/* SPDX-License-Identifier: BSD-3-Clause
 *
 * queue_test.c
 * Goal    a group's collectives run one at a time, in order of issue, on the right thread; works
 *         wait, time out, fail and outlive their group as promised.
 * Method  a world of one over a backend that can be held, told to fail, and tells what it ran. */
#include "fake_backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/coalesce.h>
#include <tutti/debug.h>
#include <tutti/private.h>
#include <tutti/sparse.h>

enum { LONG_MS = 30000, SHORT_MS = 20 };

static tutti_work *start(tutti_group *group, int32_t *x)
{
    tutti_work *work = NULL;

    assert_int_equal(tutti_all_reduce_async(TUTTI_SPAN(x, 1), TUTTI_SUM, group, &work), TUTTI_OK);
    assert_non_null(work);
    return work;
}

/* At most n workers, which end when they have had nothing to do for idle_ns. */
static void set_workers(tutti_group *world, int n, int64_t idle_ns)
{
    tti_lock(&world->runner->lock);
    world->runner->workers_max = n;
    world->runner->idle_ns = idle_ns;
    tti_unlock(&world->runner->lock);
}

static int n_workers(tutti_group *world)
{
    int n;

    tti_lock(&world->runner->lock);
    n = world->runner->n_workers;
    tti_unlock(&world->runner->lock);
    return n;
}

static void assert_runs(const int *wanted, int n)
{
    int runs[16];
    int i;

    assert_int_equal(fake_runs(runs, 16), n);
    for (i = 0; i < n; i++)
        assert_int_equal(runs[i], wanted[i]);
}

static void assert_said(const char *word)
{
    if (strstr(tutti_last_error(), word) == NULL)
        fail_msg("'%s' is not in: %s", word, tutti_last_error());
}

static void test_blocking_runs_on_caller(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    int32_t      x = 7;

    (void)state;
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, world), TUTTI_OK);
    assert_int_equal(x, 7);
    assert_true(pthread_equal(fake_runner(), pthread_self()));
    assert_null(world->runner->workers); /* nothing asynchronous: no thread */
    tutti_destroy_process_group(world);
    assert_int_equal(fake_aborts(), 0); /* idle: it left quietly */
}

static void test_worker_runs_without_wait(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    tutti_work  *work;
    int32_t      x = 7;

    (void)state;
    fake_hold(true);
    work = start(world, &x);
    fake_await_running(1);
    assert_false(tutti_work_is_completed(work));
    fake_hold(false);
    assert_int_equal(tutti_work_wait(work), TUTTI_OK);
    assert_true(tutti_work_is_completed(work));
    assert_false(pthread_equal(fake_runner(), pthread_self()));
    assert_int_equal(tutti_work_source_rank(work), -1);
    tutti_work_free(work);
    tutti_destroy_process_group(world);
}

/* The only worker is held inside the first group's operation, so the second group's is this thread's. */
static void test_wait_takes_over(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    tutti_group *other = NULL;
    tutti_work  *first;
    tutti_work  *second;
    int32_t      x = 1;
    int32_t      y = 2;
    const int    order[] = { 1, 1001 };

    (void)state;
    set_workers(world, 1, LONG_MS * TTI_MS);
    assert_int_equal(tti_group_create(world, NULL, 0, NULL, &other), TUTTI_OK);
    fake_hold(true);
    first = start(world, &x);
    fake_await_running(1);
    second = start(other, &y);
    assert_int_equal(tutti_work_wait_for(second, SHORT_MS), TUTTI_E_TIMEOUT);
    fake_await_running(1);                /* a short wait did not begin it */
    tutti_work_wait_for(first, SHORT_MS); /* nor end the first one */
    assert_false(tutti_work_is_completed(first));
    fake_hold(false);
    assert_int_equal(tutti_work_wait(second), TUTTI_OK);
    assert_int_equal(tutti_work_wait(first), TUTTI_OK);
    assert_runs(order, 2);
    tutti_work_free(first);
    tutti_work_free(second);
    tutti_destroy_process_group(world);
}

static void run_wait(void *arg)
{
    CHECK(tutti_work_wait(arg) == TUTTI_OK);
}

/* As above, but the wait comes while everything is held: the waiting thread itself must be seen
 * inside the backend. */
static void test_wait_runs_it_itself(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    tutti_group *other = NULL;
    tti_thread   waiter = { 0 };
    tutti_work  *first;
    tutti_work  *second;
    int32_t      x = 1;
    int32_t      y = 2;

    (void)state;
    set_workers(world, 1, LONG_MS * TTI_MS);
    assert_int_equal(tti_group_create(world, NULL, 0, NULL, &other), TUTTI_OK);
    fake_hold(true);
    first = start(world, &x);
    fake_await_running(1);
    second = start(other, &y);
    assert_int_equal(tti_thread_start(&waiter, "waiter", run_wait, second), TUTTI_OK);
    fake_await_running(2); /* the worker in the first, the waiter in the second */
    assert_true(pthread_equal(fake_runner(), waiter.id));
    fake_hold(false);
    tti_thread_join(&waiter);
    assert_int_equal(tutti_work_wait(first), TUTTI_OK);
    tutti_work_free(first);
    tutti_work_free(second);
    tutti_destroy_process_group(world);
}

/* Works of three groups are inside the backend at once, though none of them ends and nobody waits. */
static void test_stuck_group_holds_up_nobody(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    tutti_group *groups[3] = { world };
    tutti_work  *works[4];
    int32_t      x[4] = { 1, 2, 3, 4 };
    int          i;

    (void)state;
    set_workers(world, 8, LONG_MS * TTI_MS); /* none of them ends meanwhile */
    assert_int_equal(tti_group_create(world, NULL, 0, NULL, &groups[1]), TUTTI_OK);
    assert_int_equal(tti_group_create(world, NULL, 0, NULL, &groups[2]), TUTTI_OK);
    fake_hold(true);
    for (i = 0; i < 3; i++)
        works[i] = start(groups[i], &x[i]);
    works[3] = start(groups[0], &x[3]); /* behind the first: no worker is needed for it */
    fake_await_running(3);
    assert_int_equal(n_workers(world), 3);
    fake_hold(false);
    for (i = 0; i < 4; i++) {
        assert_int_equal(tutti_work_wait_for(works[i], LONG_MS / 2), TUTTI_OK); /* it helps nobody */
        tutti_work_free(works[i]);
    }
    assert_int_equal(n_workers(world), 3);
    tutti_destroy_process_group(world);
}

/* Workers that have nothing to do end, and the next work finds one all the same. */
static void test_idle_workers_end(void **state)
{
    tutti_group  *world = fake_world_of_one(LONG_MS);
    const int64_t deadline_ns = tti_now_ns() + LONG_MS * TTI_MS;
    tutti_work   *work;
    int32_t       x = 1;
    int           i;

    (void)state;
    set_workers(world, 4, SHORT_MS * TTI_MS);
    for (i = 0; i < 2; i++) {
        work = start(world, &x);
        assert_int_equal(tutti_work_wait_for(work, LONG_MS / 2), TUTTI_OK);
        tutti_work_free(work);
        while (n_workers(world) > 0 && tti_now_ns() < deadline_ns)
            tti_port_system()->ops->yield(tti_port_system());
        assert_int_equal(n_workers(world), 0);
    }
    tutti_destroy_process_group(world);
}

static void run_release(void *arg)
{
    (void)arg;
    fake_await_running(1);
    fake_hold(false);
}

static void test_blocking_waits_its_turn(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    tti_thread   releaser = { 0 };
    tutti_work  *works[3];
    int32_t      x[4] = { 1, 2, 3, 4 };
    const int    order[] = { 1, 2, 3, 4, 5 };
    int          i;

    (void)state;
    fake_hold(true);
    for (i = 0; i < 3; i++)
        works[i] = start(world, &x[i]);
    assert_int_equal(tti_thread_start(&releaser, "releaser", run_release, NULL), TUTTI_OK);
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x[3], 1), TUTTI_SUM, world), TUTTI_OK);
    for (i = 0; i < 3; i++)
        assert_true(tutti_work_is_completed(works[i]));
    assert_int_equal(tutti_barrier(world), TUTTI_OK);
    assert_runs(order, 5);
    tti_thread_join(&releaser);
    for (i = 0; i < 3; i++) {
        assert_int_equal(tutti_work_wait(works[i]), TUTTI_OK);
        tutti_work_free(works[i]);
    }
    tutti_destroy_process_group(world);
}

static void test_async_barrier_after_earlier(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    tutti_work  *work;
    tutti_work  *barrier = NULL;
    int32_t      x = 1;

    (void)state;
    work = start(world, &x);
    assert_int_equal(tutti_barrier_async(world, &barrier), TUTTI_OK);
    assert_int_equal(tutti_work_wait(barrier), TUTTI_OK);
    assert_true(tutti_work_is_completed(work));
    tutti_work_free(work);
    tutti_work_free(barrier);
    tutti_destroy_process_group(world);
}

static void test_wait_for_times_out_then_succeeds(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    tutti_work  *work;
    int32_t      x = 5;

    (void)state;
    fake_hold(true);
    work = start(world, &x);
    assert_int_equal(tutti_work_wait_for(work, SHORT_MS), TUTTI_E_TIMEOUT);
    assert_said("all_reduce #1 on group '0'");
    assert_said("it goes on");
    fake_hold(false);
    assert_int_equal(tutti_work_wait_for(work, TUTTI_INFINITE), TUTTI_OK);
    assert_int_equal(tutti_work_wait_for(work, -2), TUTTI_E_ARG);
    tutti_work_free(work);
    tutti_destroy_process_group(world);
}

/* Waits, for a while longer than the group's time-out, and then lets go what is held. */
static void *let_go(void *work)
{
    const tutti_status st = tutti_work_wait_for(work, 10 * SHORT_MS);

    fake_hold(false);
    return st == TUTTI_E_TIMEOUT ? NULL : work;
}

/* What stands before a work may use its own time up, on another thread: who waits for it with its own has it back when it
 * has ended, and not before. */
static void test_wait_outlasts_what_runs_ahead(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    tutti_work  *first, *second;
    int32_t      x = 5, y = 6;
    pthread_t    other;
    void        *failed = NULL;

    (void)state;
    fake_hold(true);
    first = start(world, &x);
    fake_await_running(1);
    assert_int_equal(tutti_set_timeout(world, SHORT_MS), TUTTI_OK); /* the first one has what it began with */
    second = start(world, &y);
    assert_int_equal(tutti_set_timeout(world, LONG_MS), TUTTI_OK);
    assert_int_equal(pthread_create(&other, NULL, let_go, second), 0);
    assert_int_equal(tutti_work_wait(second), TUTTI_OK);
    assert_int_equal(pthread_join(other, &failed), 0);
    assert_null(failed);
    assert_int_equal(tutti_work_wait(first), TUTTI_OK);
    tutti_work_free(first);
    tutti_work_free(second);
    tutti_destroy_process_group(world);
}

static void test_group_time_out_ends_it(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    tutti_work  *work;
    int32_t      x = 5;

    (void)state;
    assert_int_equal(tutti_set_timeout(world, SHORT_MS), TUTTI_OK);
    fake_hold(true);
    work = start(world, &x);
    assert_int_equal(tutti_work_wait_for(work, TUTTI_INFINITE), TUTTI_E_TIMEOUT);
    assert_said("held for too long");
    fake_hold(false);
    assert_int_equal(tutti_barrier(world), TUTTI_E_TIMEOUT);
    assert_said("all_reduce #1");
    tutti_work_free(work);
    tutti_destroy_process_group(world);
}

static void test_failure_finishes_the_group(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    tutti_work  *works[3];
    int32_t      x[3] = { 1, 2, 3 };
    int32_t      y = 9;
    int          i;

    (void)state;
    fake_fail_at(2, TUTTI_E_PEER);
    fake_hold(true);
    for (i = 0; i < 3; i++)
        works[i] = start(world, &x[i]);
    fake_hold(false);
    assert_int_equal(tutti_work_wait(works[2]), TUTTI_E_PEER);
    assert_said("group '0' is finished since all_reduce #2");
    assert_int_equal(tutti_work_wait(works[0]), TUTTI_OK);
    for (i = 0; i < 2; i++) { /* each wait words it again */
        assert_int_equal(tutti_work_wait(works[1]), TUTTI_E_PEER);
        assert_said("fake: told to fail at 2");
        assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&y, -1), TUTTI_SUM, world), TUTTI_E_ARG);
    }
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&y, 1), TUTTI_SUM, world), TUTTI_E_PEER);
    assert_said("all_reduce #2");
    assert_said("told to fail");
    assert_int_equal(tutti_barrier_async(world, &works[0]), TUTTI_E_PEER);
    assert_int_equal(tutti_send(TUTTI_SPAN(&y, 1), 0, 0, world), TUTTI_E_ARG);
    for (i = 0; i < 3; i++)
        tutti_work_free(works[i]);
    tutti_destroy_process_group(world);
}

/* A call that the backend does not offer ends itself alone, blocking or not. */
static void test_a_refusal_leaves_the_group(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    tutti_work  *works[3];
    int32_t      x[3] = { 1, 2, 3 };
    int          i;

    (void)state;
    fake_fail_at(2, TUTTI_E_UNSUPPORTED);
    fake_hold(true);
    for (i = 0; i < 3; i++)
        works[i] = start(world, &x[i]);
    fake_hold(false);
    for (i = 0; i < 3; i++) {
        assert_int_equal(tutti_work_wait(works[i]), i == 1 ? TUTTI_E_UNSUPPORTED : TUTTI_OK);
        tutti_work_free(works[i]);
    }
    fake_fail_at(4, TUTTI_E_UNSUPPORTED);
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(x, 1), TUTTI_SUM, world), TUTTI_E_UNSUPPORTED);
    assert_said("told to fail at 4");
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(x, 1), TUTTI_SUM, world), TUTTI_OK);
    assert_int_equal(tutti_barrier(world), TUTTI_OK);
    tutti_destroy_process_group(world);
}

/* A backend that does not take segments has one buffer at a time, all under the number of the call. */
static void test_segments_one_by_one(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    int32_t      x = 1, y = 2, z = 3;
    tutti_span   bufs[] = { TUTTI_SPAN(&x, 1), TUTTI_SPAN(&y, 1), TUTTI_SPAN(&z, 1) };
    const int    order[] = { 1, 1, 1, 2 };

    (void)state;
    assert_int_equal(tutti_all_reduce_coalesced(bufs, 3, TUTTI_SUM, world), TUTTI_OK);
    assert_int_equal(tutti_barrier(world), TUTTI_OK);
    assert_runs(order, 4);
    tutti_destroy_process_group(world);
}

static void test_words_reach_other_threads(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    tutti_work  *work;
    int32_t      x = 1;

    (void)state;
    fake_fail_at(1, TUTTI_E_BACKEND);
    fake_hold(true);
    work = start(world, &x);
    fake_await_running(1); /* the worker has it: the words begin in its thread */
    fake_hold(false);
    assert_int_equal(tutti_work_wait(work), TUTTI_E_BACKEND);
    assert_said("told to fail at 1");
    tutti_destroy_process_group(world);
    assert_int_equal(tutti_work_wait(work), TUTTI_E_BACKEND); /* and outlive the group */
    assert_said("told to fail at 1");
    tutti_work_free(work);
}

static void test_destroy_with_pending(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    tutti_work  *works[3];
    int32_t      x[3] = { 1, 2, 3 };
    int          i;

    (void)state;
    fake_hold(true);
    for (i = 0; i < 3; i++)
        works[i] = start(world, &x[i]);
    fake_await_running(1);
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
    assert_int_equal(fake_aborts(), 1);
    for (i = 0; i < 3; i++) {
        assert_true(tutti_work_is_completed(works[i]));
        assert_int_equal(tutti_work_wait(works[i]), TUTTI_E_ABORTED);
        assert_said(i == 0 ? "aborted while held" : "was not begun");
        tutti_work_free(works[i]);
    }
}

static void run_wait_aborted(void *arg)
{
    CHECK(tutti_work_wait(arg) == TUTTI_E_ABORTED);
}

/* A thread that waits, and by that runs the operation, while another ends the group. */
static void test_destroy_under_a_waiter(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    tutti_group *other = NULL;
    tti_thread   waiter = { 0 };
    tutti_work  *first;
    tutti_work  *second;
    int32_t      x[2] = { 1, 2 };

    (void)state;
    assert_int_equal(tti_group_create(world, NULL, 0, NULL, &other), TUTTI_OK);
    fake_hold(true);
    first = start(world, &x[0]);
    fake_await_running(1);
    second = start(other, &x[1]);
    assert_int_equal(tti_thread_start(&waiter, "waiter", run_wait_aborted, second), TUTTI_OK);
    fake_await_running(2);
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
    tti_thread_join(&waiter);
    assert_int_equal(tutti_work_wait(first), TUTTI_E_ABORTED);
    tutti_work_free(first);
    tutti_work_free(second);
}

static void run_barrier_aborted(void *arg)
{
    CHECK(tutti_barrier(arg) == TUTTI_E_ABORTED);
}

static void run_sparse_aborted(void *arg)
{
    tti_turns turns;

    CHECK(tti_turns_take(arg, 3, &turns) == TUTTI_E_ABORTED);
}

/* Until the next collective of world has number seq. */
static void await_number(tutti_group *world, uint64_t seq)
{
    const int64_t deadline_ns = tti_now_ns() + LONG_MS * TTI_MS;
    uint64_t      next = 0;

    while (next < seq && tti_now_ns() < deadline_ns) {
        tti_port_system()->ops->yield(tti_port_system());
        tti_lock(&world->runner->lock);
        next = tti_queue_next(world);
        tti_unlock(&world->runner->lock);
    }
    assert_int_equal(next, seq);
}

/* Threads that wait for their turn behind a work that was not begun: an abort takes that out, and ends their waits. */
static void test_abort_ends_waits_for_turns(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    tti_thread   threads[2] = { 0 };
    tutti_work  *works[2];
    int32_t      x[2] = { 1, 2 };
    int          i;

    (void)state;
    fake_hold(true);
    works[0] = start(world, &x[0]);
    fake_await_running(1);
    works[1] = start(world, &x[1]);
    assert_int_equal(tti_thread_start(&threads[0], "barrier", run_barrier_aborted, world), TUTTI_OK);
    await_number(world, 4);
    assert_int_equal(tti_thread_start(&threads[1], "turns", run_sparse_aborted, world), TUTTI_OK);
    await_number(world, 7);
    assert_int_equal(tutti_abort_process_group(world), TUTTI_OK);
    for (i = 0; i < 2; i++)
        tti_thread_join(&threads[i]);
    for (i = 0; i < 2; i++) {
        assert_int_equal(tutti_work_wait(works[i]), TUTTI_E_ABORTED);
        tutti_work_free(works[i]);
    }
    tutti_destroy_process_group(world);
}

static void test_free_before_completion(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    int32_t      x = 1;
    int32_t      y = 2;
    const int    order[] = { 1, 2 };

    (void)state;
    tutti_work_free(start(world, &x));
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&y, 1), TUTTI_SUM, world), TUTTI_OK);
    assert_runs(order, 2); /* dropped, not cancelled */
    tutti_work_free(NULL);
    tutti_destroy_process_group(world);
}

/* Write over what calls have left on this thread's stack. */
static __attribute__((noinline)) void scrub_stack(void)
{
    volatile char room[8192];
    size_t        i;

    for (i = 0; i < sizeof room; i++)
        room[i] = (char)0xff;
}

/* A list of an asynchronous call may go when the call returns. */
static void test_list_is_copied(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    tutti_work  *work = NULL;
    int32_t      in = 3;
    int32_t      out = 0;
    tutti_span  *outs = malloc(sizeof *outs);

    (void)state;
    assert_non_null(outs);
    outs[0] = TUTTI_SPAN(&out, 1);
    fake_hold(true);
    assert_int_equal(tutti_all_gather_async(outs, 1, TUTTI_SPAN(&in, 1), world, &work), TUTTI_OK);
    memset(outs, 0xff, sizeof *outs);
    free(outs);
    scrub_stack();
    fake_hold(false);
    assert_int_equal(tutti_work_wait(work), TUTTI_OK);
    assert_int_equal(out, 3);
    tutti_work_free(work);
    tutti_destroy_process_group(world);
}

enum { CALLERS = 4, CALLS = 50 };

static void run_calls(void *arg)
{
    int32_t     x = 1;
    tutti_work *work = NULL;
    int         i;

    for (i = 0; i < CALLS; i++) {
        CHECK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, arg) == TUTTI_OK);
        CHECK(tutti_all_reduce_async(TUTTI_SPAN(&x, 1), TUTTI_SUM, arg, &work) == TUTTI_OK);
        CHECK(tutti_work_wait(work) == TUTTI_OK);
        tutti_work_free(work);
    }
}

/* Numbers are handed out and run without a gap, whoever calls. */
static void test_many_threads(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    tti_thread   threads[CALLERS] = { 0 };
    int          runs[64];
    int          i;

    (void)state;
    for (i = 0; i < CALLERS; i++)
        assert_int_equal(tti_thread_start(&threads[i], "caller", run_calls, world), TUTTI_OK);
    for (i = 0; i < CALLERS; i++)
        tti_thread_join(&threads[i]);
    assert_int_equal(fake_runs(runs, 64), 2 * CALLERS * CALLS);
    for (i = 0; i < 64; i++)
        assert_int_equal(runs[i], i + 1);
    tutti_destroy_process_group(world);
}

static void sum_sparse(void *arg)
{
    const int64_t          place = 3;
    int32_t                value = 5;
    const tutti_sparse_coo mine = { .sparse_dim = 1, .sizes = { 4 }, .nnz = 1, .indices = &place,
                                    .values = TUTTI_SPAN(&value, 1) };
    tutti_sparse_coo       sum;

    if (CHECK(tutti_sparse_all_reduce(&mine, TUTTI_SUM, arg, &sum) == TUTTI_OK))
        tutti_sparse_free(&sum);
}

/* A sum of sparse tensors is three collectives; what others issue meanwhile comes after all of them. */
static void test_sparse_sum_is_not_divided(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    tti_thread   thread = { 0 };
    tutti_work  *work;
    int32_t      x = 1;
    const int    order[] = { 1, 2, 3, 4 };

    (void)state;
    fake_hold(true);
    assert_int_equal(tti_thread_start(&thread, "sum", sum_sparse, world), TUTTI_OK);
    fake_await_running(1); /* it is in the first one */
    work = start(world, &x);
    fake_hold(false);
    tti_thread_join(&thread);
    assert_int_equal(tutti_work_wait(work), TUTTI_OK);
    assert_int_equal(tutti_work_sequence(work), 4);
    tutti_work_free(work);
    assert_runs(order, 4);
    tutti_destroy_process_group(world);
}

/* Turns that were not needed are skipped; a failure of this rank alone finishes the group. */
static void test_turns_are_given_back(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    tutti_call   barrier = { .kind = TUTTI_CALL_BARRIER, .root = -1 };
    tti_turns    turns;
    const int    order[] = { 1, 4 };

    (void)state;
    assert_int_equal(tti_turns_take(world, 3, &turns), TUTTI_OK);
    assert_int_equal(tti_turns_run(&turns, &barrier), TUTTI_OK);
    tti_turns_give(&turns, "three", TUTTI_OK);
    assert_int_equal(tutti_barrier(world), TUTTI_OK);
    assert_runs(order, 2);
    assert_int_equal(tti_turns_take(world, 3, &turns), TUTTI_OK);
    tti_fail(TUTTI_E_NOMEM, "no memory for three");
    tti_turns_give(&turns, "three", TUTTI_E_BACKEND);
    assert_int_equal(fake_aborts(), 1); /* others are told */
    assert_int_equal(tutti_barrier(world), TUTTI_E_BACKEND);
    assert_said("finished since three: no memory for three");
    assert_int_equal(tti_turns_take(world, 3, &turns), TUTTI_E_BACKEND);
    tutti_destroy_process_group(world);
}

static void test_null_work(void **state)
{
    (void)state;
    assert_int_equal(tutti_work_wait(NULL), TUTTI_E_ARG);
    assert_true(tutti_work_is_completed(NULL));
    assert_int_equal(tutti_work_source_rank(NULL), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_blocking_runs_on_caller),
        TEST(test_worker_runs_without_wait),
        TEST(test_wait_takes_over),
        TEST(test_wait_runs_it_itself),
        TEST(test_stuck_group_holds_up_nobody),
        TEST(test_idle_workers_end),
        TEST(test_blocking_waits_its_turn),
        TEST(test_async_barrier_after_earlier),
        TEST(test_wait_for_times_out_then_succeeds),
        TEST(test_wait_outlasts_what_runs_ahead),
        TEST(test_group_time_out_ends_it),
        TEST(test_failure_finishes_the_group),
        TEST(test_a_refusal_leaves_the_group),
        TEST(test_segments_one_by_one),
        TEST(test_words_reach_other_threads),
        TEST(test_destroy_with_pending),
        TEST(test_destroy_under_a_waiter),
        TEST(test_abort_ends_waits_for_turns),
        TEST(test_free_before_completion),
        TEST(test_list_is_copied),
        TEST(test_many_threads),
        TEST(test_sparse_sum_is_not_divided),
        TEST(test_turns_are_given_back),
        TEST(test_null_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

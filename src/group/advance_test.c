/* SPDX-License-Identifier: BSD-3-Clause
 *
 * advance_test.c
 * Goal    an asynchronous call begins on the caller's thread; what has given all is run by whoever asks for its end, and
 *         by a worker only for those who cannot; order, failures and the end of the group are as ever.
 * Method  a world of one whose backend says how far a call has come as it is told to, and writes plain memory in
 *         every call: numbers that skip or repeat are counted, what is not handed over is a race for the
 *         thread sanitizer. */
#include "fake_backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/private.h>

enum { LONG_MS = 30000, THREADS = 4, CALLS = 400 };

/* Whose turn it is writes this, and nobody else. */
static struct {
    uint64_t last;  /* number of the latest call that has ended */
    uint64_t begun; /* and of the latest that was begun */
} turn;

static _Atomic int      says;     /* tutti_progress, or BY_NUMBER */
static _Atomic int      fails;    /* what advance fails with, */
static _Atomic uint64_t fails_at; /* in this call */
static _Atomic uint64_t advances, runs;
static _Atomic bool     runs_in_background; /* the latest */
static _Atomic bool     holds_advance, holds_run; /* whoever comes in stays there */
static _Atomic uint64_t in_advance, in_run;

enum { BY_NUMBER = -1 };

static void stay(const _Atomic bool *while_so)
{
    while (atomic_load(while_so))
        tti_port_system()->ops->yield(tti_port_system());
}

static tutti_status advance(tutti_backend *backend, const tutti_call *call, tutti_progress *progress_out)
{
    const int told = atomic_load(&says);

    (void)backend;
    atomic_fetch_add(&in_advance, 1);
    stay(&holds_advance);
    atomic_fetch_sub(&in_advance, 1);
    CHECK(call->seq > turn.last);
    CHECK(call->timeout_ms == LONG_MS);
    turn.begun = call->seq;
    atomic_fetch_add(&advances, 1);
    if (atomic_load(&fails) != TUTTI_OK && call->seq == atomic_load(&fails_at))
        return tti_fail((tutti_status)atomic_load(&fails), "told to fail at %llu", (unsigned long long)call->seq);
    *progress_out = told == BY_NUMBER ? (tutti_progress)(call->seq % 4) : (tutti_progress)told;
    if (*progress_out == TUTTI_PROGRESS_DONE && call->seq != turn.last + 1)
        *progress_out = TUTTI_PROGRESS_GIVEN;
    if (*progress_out == TUTTI_PROGRESS_DONE)
        turn.last = call->seq;
    return TUTTI_OK;
}

static _Atomic bool     wants_haste; /* run waits until it is hastened */
static _Atomic uint64_t hastened;    /* the call that was */

static void hasten(tutti_backend *backend, uint64_t seq)
{
    (void)backend;
    atomic_store(&hastened, seq);
}

static tutti_status run(tutti_backend *backend, const tutti_call *call)
{
    const int64_t deadline_ns = tti_now_ns() + LONG_MS * TTI_MS;

    (void)backend;
    while (atomic_load(&wants_haste) && atomic_load(&hastened) < call->seq && tti_now_ns() < deadline_ns)
        tti_port_system()->ops->yield(tti_port_system());
    CHECK(atomic_fetch_add(&in_run, 1) == 0);
    CHECK(call->seq == turn.last + 1);
    stay(&holds_run);
    turn.last = call->seq;
    atomic_fetch_sub(&in_run, 1);
    atomic_store(&runs_in_background, call->in_background);
    atomic_fetch_add(&runs, 1);
    return TUTTI_OK;
}

static tutti_backend_ops ops;

static tutti_group *new_world(int progress, bool timed)
{
    tti_port    *port = tti_port_system();
    tutti_group *world = NULL;
    tutti_store *store = NULL;
    tti_join     join = { .user_store = true, .world_size = 1, .timeout_ms = LONG_MS,
                          .deadline_ns = tti_deadline(port, LONG_MS, LONG_MS), .listen_host = "127.0.0.1" };

    ops = fake_ops;
    ops.run = run;
    ops.advance = advance;
    ops.hasten = hasten;
    atomic_store(&wants_haste, false);
    atomic_store(&hastened, 0);
    ops.late_deadlines = true;
    turn.last = turn.begun = 0;
    atomic_store(&says, progress);
    atomic_store(&fails, TUTTI_OK);
    atomic_store(&fails_at, 1);
    atomic_store(&advances, 0);
    atomic_store(&runs, 0);
    assert_int_equal(atomic_load(&in_advance) + atomic_load(&in_run), 0);
    assert_int_equal(tutti_hash_store_open(&store), TUTTI_OK);
    join.store = store;
    assert_int_equal(tti_world_create(port, &(tti_backing){ .ops = &ops }, &join, &world), TUTTI_OK);
    tutti_store_close(store);
    world->timed = timed;
    return world;
}

static tutti_work *start(tutti_group *group)
{
    tutti_work *work = NULL;

    assert_int_equal(tutti_barrier_async(group, &work), TUTTI_OK);
    return work;
}

static void await(_Atomic uint64_t *count, uint64_t n)
{
    const int64_t deadline_ns = tti_now_ns() + LONG_MS * TTI_MS;

    while (atomic_load(count) < n && tti_now_ns() < deadline_ns)
        tti_port_system()->ops->yield(tti_port_system());
    assert_int_equal(atomic_load(count), n);
}

/* A worker has come by: it has done a work of another group, which was queued later than all others. */
static void let_a_worker_look(tutti_group *world)
{
    tutti_group *other = NULL;
    tutti_work  *work;
    const int    told = atomic_load(&says);

    assert_int_equal(tti_group_create(world, NULL, 0, NULL, &other), TUTTI_OK);
    turn.last = turn.begun = 0; /* it counts for itself; nothing runs in the other one meanwhile */
    atomic_store(&says, TUTTI_PROGRESS_NONE);
    work = start(other);
    await(&runs, 1);
    assert_true(atomic_load(&runs_in_background));
    assert_int_equal(tutti_work_wait(work), TUTTI_OK);
    tutti_work_free(work);
    tti_group_destroy(other);
    atomic_store(&says, told);
    atomic_store(&runs, 0);
    turn.last = 0;
    turn.begun = 1;
}

static void test_it_may_end_at_once(void **state)
{
    tutti_group *world = new_world(TUTTI_PROGRESS_DONE, false);
    tutti_work  *work = start(world);

    (void)state;
    assert_false(world->held); /* nothing is left to order: the next one goes by the gate */
    assert_int_equal(tutti_work_wait(work), TUTTI_OK);
    assert_int_equal(atomic_load(&advances), 1);
    assert_int_equal(tutti_barrier(world), TUTTI_OK);
    assert_int_equal(atomic_load(&runs), 1); /* the blocking one */
    tutti_work_free(work);
    tutti_destroy_process_group(world);
    assert_int_equal(fake_aborts(), 0);
}

/* What has given all is left by workers, and run by the thread that waits for it. */
static void test_who_waits_runs_it(void **state)
{
    tutti_group *world = new_world(TUTTI_PROGRESS_GIVEN, false);
    tutti_work  *work = start(world);

    (void)state;
    let_a_worker_look(world);
    assert_int_equal(atomic_load(&runs), 0);
    assert_int_equal(tutti_work_wait(work), TUTTI_OK);
    assert_int_equal(atomic_load(&runs), 1);
    assert_false(atomic_load(&runs_in_background));
    tutti_work_free(work);
    tutti_destroy_process_group(world);
}

static void test_who_looks_brings_it_on(void **state)
{
    tutti_group *world = new_world(TUTTI_PROGRESS_GIVEN, false);
    tutti_work  *work = start(world);

    (void)state;
    assert_false(tutti_work_is_completed(work));
    assert_int_equal(tutti_work_status(work), TUTTI_E_STATE);
    assert_int_equal(atomic_load(&advances), 3);
    atomic_store(&says, TUTTI_PROGRESS_DONE);
    assert_true(tutti_work_is_completed(work));
    assert_int_equal(tutti_work_status(work), TUTTI_OK);
    assert_int_equal(atomic_load(&advances), 4);
    assert_int_equal(atomic_load(&runs), 0);
    tutti_work_free(work);
    tutti_destroy_process_group(world);
    assert_int_equal(fake_aborts(), 0);
}

static void count_one(tutti_work *work, void *ctx)
{
    CHECK(tutti_work_status(work) == TUTTI_OK);
    atomic_fetch_add((_Atomic uint64_t *)ctx, 1);
}

/* Whoever cannot run it has a worker do so: callbacks, short waits, waits for any, times, works behind it. */
static void test_workers_come_for_the_others(void **state)
{
    static _Atomic uint64_t called;
    tutti_group            *world = new_world(TUTTI_PROGRESS_GIVEN, false);
    tutti_work             *works[2];
    int                     index;

    (void)state;
    atomic_store(&called, 0);
    works[0] = start(world);
    assert_int_equal(tutti_work_then(works[0], count_one, &called), TUTTI_OK);
    await(&called, 1);
    tutti_work_free(works[0]);

    works[0] = start(world);
    assert_int_equal(tutti_work_wait_for(works[0], LONG_MS / 2), TUTTI_OK); /* shorter than the group's */
    assert_true(atomic_load(&runs_in_background));
    tutti_work_free(works[0]);

    works[0] = start(world);
    assert_int_equal(tutti_wait_any(works, 1, 0, &index), TUTTI_OK);
    assert_true(atomic_load(&runs_in_background));
    tutti_work_free(works[0]);

    works[0] = start(world);
    atomic_store(&says, TUTTI_PROGRESS_NONE); /* the second one cannot begin */
    works[1] = start(world);
    await(&runs, 5);
    atomic_store(&says, TUTTI_PROGRESS_GIVEN);
    assert_int_equal(tutti_wait_all(works, 2, 0), TUTTI_OK);
    tutti_work_free(works[0]);
    tutti_work_free(works[1]);

    world->timed = true;
    works[0] = start(world);
    await(&runs, 6);
    assert_int_equal(tutti_work_wait(works[0]), TUTTI_OK);
    tutti_work_free(works[0]);
    tutti_destroy_process_group(world);
}

/* Works behind one that can end meanwhile begin at once, too. */
static void test_what_has_come_makes_room(void **state)
{
    tutti_group *world = new_world(TUTTI_PROGRESS_GIVEN, false);
    tutti_work  *works[2];

    (void)state;
    works[0] = start(world);
    atomic_store(&says, TUTTI_PROGRESS_DONE);
    works[1] = start(world);
    assert_false(world->held);
    assert_int_equal(atomic_load(&runs), 0);
    assert_int_equal(tutti_wait_all(works, 2, 0), TUTTI_OK);
    tutti_work_free(works[0]);
    tutti_work_free(works[1]);
    tutti_destroy_process_group(world);
}

/* Works behind those that have given all give, too; they end in their order, whichever is waited for. */
static void test_several_have_given(void **state)
{
    tutti_group *world = new_world(TUTTI_PROGRESS_GIVEN, false);
    tutti_work  *works[3];
    int          i;

    (void)state;
    for (i = 0; i < 3; i++)
        works[i] = start(world);
    assert_int_equal(turn.begun, 3);
    assert_int_equal(atomic_load(&runs), 0);
    assert_int_equal(tutti_work_wait(works[2]), TUTTI_OK);
    assert_int_equal(atomic_load(&runs), 3);
    for (i = 0; i < 3; i++) {
        assert_true(tutti_work_is_completed(works[i]));
        tutti_work_free(works[i]);
    }
    tutti_destroy_process_group(world);
    assert_int_equal(fake_aborts(), 0);
}

/* One of them fails before its turn: it is told when it comes, as the group's failure. */
static void test_a_later_one_fails(void **state)
{
    tutti_group *world = new_world(TUTTI_PROGRESS_GIVEN, false);
    tutti_work  *works[2];

    (void)state;
    works[0] = start(world);
    atomic_store(&fails, TUTTI_E_PEER);
    atomic_store(&fails_at, 2);
    works[1] = start(world);
    assert_int_equal(tutti_work_wait(works[1]), TUTTI_E_PEER);
    assert_non_null(strstr(tutti_last_error(), "barrier #2"));
    assert_int_equal(tutti_work_wait(works[0]), TUTTI_E_PEER);
    assert_int_equal(atomic_load(&runs), 1); /* the first has its buffers back, the second had not begun */
    tutti_work_free(works[0]);
    tutti_work_free(works[1]);
    tutti_destroy_process_group(world);
}

/* A worker that runs what a thread has come to wait for is told so. */
static void test_who_waits_hastens(void **state)
{
    tutti_group *world = new_world(TUTTI_PROGRESS_NONE, false);
    tutti_work  *work;

    (void)state;
    atomic_store(&wants_haste, true);
    work = start(world);
    assert_false(tutti_work_is_completed(work)); /* looking does not */
    assert_int_equal(atomic_load(&hastened), 0);
    assert_int_equal(tutti_work_wait_for(work, LONG_MS / 2), TUTTI_OK); /* shorter than the group's: it does not help */
    assert_int_equal(atomic_load(&hastened), 1);
    assert_true(atomic_load(&runs_in_background));
    tutti_work_free(work);
    tutti_destroy_process_group(world);
}

/* Works that are waited for at once, until one is put off; soon_from_out: how many of them are asked for then. */
static tutti_work *start_one_put_off(tutti_group *world, int *soon_from_out)
{
    const int64_t deadline_ns = tti_now_ns() + LONG_MS * TTI_MS;
    tutti_work   *work;
    bool          is_put_off;

    for (;;) {
        work = start(world);
        tti_lock(&world->runner->lock);
        is_put_off = work->put_off;
        *soon_from_out = world->soon_from;
        tti_unlock(&world->runner->lock);
        if (is_put_off)
            return work;
        assert_true(tti_now_ns() < deadline_ns);
        assert_int_equal(tutti_work_wait(work), TUTTI_OK);
        tutti_work_free(work);
    }
}

/* A worker comes for one that was put off in vain, and the next one is not. */
static void test_nobody_comes_for_it(void **state)
{
    tutti_group *world = new_world(TUTTI_PROGRESS_BEGUN, false);
    tutti_work  *works[2];
    int          soon_from;

    (void)state;
    works[0] = start_one_put_off(world, &soon_from);
    await(&runs, works[0]->seq);
    assert_true(atomic_load(&runs_in_background));
    works[1] = start(world);
    tti_lock(&world->runner->lock);
    assert_int_equal(world->soon, 0);
    assert_int_equal(world->soon_from, soon_from * 2); /* once bitten */
    assert_false(works[1]->put_off);
    tti_unlock(&world->runner->lock);
    assert_int_equal(tutti_wait_all(works, 2, 0), TUTTI_OK);
    tutti_work_free(works[0]);
    tutti_work_free(works[1]);
    tutti_destroy_process_group(world);
}

/* Nor does it matter that a thread is inside the group: it may wait there for a message whose sender waits for the work. */
static void test_nobody_comes_but_one_is_inside(void **state)
{
    tutti_group *world = new_world(TUTTI_PROGRESS_BEGUN, false);
    tutti_work  *work;
    int          soon_from;

    (void)state;
    assert_int_equal(tti_group_enter(world), TUTTI_OK);
    work = start_one_put_off(world, &soon_from);
    await(&runs, work->seq);
    assert_true(atomic_load(&runs_in_background));
    tti_group_leave(world, "a receive", TUTTI_OK);
    assert_int_equal(tutti_work_wait(work), TUTTI_OK);
    tutti_work_free(work);
    tutti_destroy_process_group(world);
}

/* Whoever asks for the end of one, and does not run it, has a worker come. */
static void test_who_asks_wants_it(void **state)
{
    tutti_group *world = new_world(TUTTI_PROGRESS_BEGUN, false);
    tutti_work  *works[2];
    int          soon_from;

    (void)state;
    works[0] = start_one_put_off(world, &soon_from);
    works[1] = start(world);
    tutti_work_is_completed(works[0]);
    tti_lock(&world->runner->lock);
    assert_true(works[0]->done || works[0]->wanted || works[0]->call.in_background); /* or one has come by itself */
    assert_false(works[0]->put_off);
    tti_unlock(&world->runner->lock);
    assert_int_equal(tutti_wait_all(works, 2, 0), TUTTI_OK);
    tutti_work_free(works[0]);
    tutti_work_free(works[1]);

    works[0] = start_one_put_off(world, &soon_from);
    assert_int_equal(tutti_work_wait_for(works[0], LONG_MS / 2), TUTTI_OK); /* too short to help */
    assert_true(atomic_load(&runs_in_background));
    tutti_work_free(works[0]);
    tutti_destroy_process_group(world);
}

/* The end of a group does not wait for naps. Where this thread has no core for as long as one, a worker comes first, and the work ends
 * well. */
static void test_the_end_of_one_put_off(void **state)
{
    enum { ROUNDS = 20 };
    tutti_status st = TUTTI_OK;
    int          soon_from, round;

    (void)state;
    for (round = 0; round < ROUNDS && st == TUTTI_OK; round++) {
        tutti_group *world = new_world(TUTTI_PROGRESS_BEGUN, false);
        tutti_work  *work = start_one_put_off(world, &soon_from);

        assert_int_equal(tutti_abort_process_group(world), TUTTI_OK);
        st = tutti_work_wait(work);
        assert_false(work->put_off); /* it has ended */
        tutti_work_free(work);
        tutti_destroy_process_group(world);
    }
    assert_int_equal(st, TUTTI_E_ABORTED);
}

static void test_a_failure_finishes_the_group(void **state)
{
    tutti_group *world = new_world(TUTTI_PROGRESS_GIVEN, false);
    tutti_work  *work;

    (void)state;
    atomic_store(&fails, TUTTI_E_PEER);
    work = start(world);
    assert_true(tutti_work_is_completed(work));
    assert_int_equal(tutti_work_wait(work), TUTTI_E_PEER);
    assert_non_null(strstr(tutti_last_error(), "told to fail at 1"));
    assert_int_equal(tutti_barrier(world), TUTTI_E_PEER);
    assert_non_null(strstr(tutti_last_error(), "barrier #1"));
    tutti_work_free(work);
    tutti_destroy_process_group(world);
}

static void end_with_one_left(bool can_end)
{
    tutti_group *world = new_world(TUTTI_PROGRESS_GIVEN, false);
    tutti_work  *work = start(world);

    atomic_store(&says, can_end ? TUTTI_PROGRESS_DONE : TUTTI_PROGRESS_GIVEN);
    tutti_destroy_process_group(world);
    assert_int_equal(atomic_load(&runs), can_end ? 0 : 1); /* so the backend has given its buffers back */
    assert_int_equal(fake_aborts(), can_end ? 0 : 1);
    assert_int_equal(tutti_work_wait(work), can_end ? TUTTI_OK : TUTTI_E_ABORTED);
    if (!can_end)
        assert_non_null(strstr(tutti_last_error(), "being destroyed"));
    tutti_work_free(work);
}

static void test_the_end_of_the_group(void **state)
{
    (void)state;
    end_with_one_left(true);
    end_with_one_left(false);
}

static void test_an_abort_ends_it(void **state)
{
    tutti_group *world = new_world(TUTTI_PROGRESS_GIVEN, false);
    tutti_work  *work = start(world);

    (void)state;
    assert_int_equal(tutti_abort_process_group(world), TUTTI_OK);
    assert_int_equal(tutti_work_wait(work), TUTTI_E_ABORTED);
    assert_int_equal(atomic_load(&runs), 1);
    tutti_work_free(work);
    tutti_destroy_process_group(world);
}

static void look_once(void *arg)
{
    CHECK(!tutti_work_is_completed(arg));
}

/* What the lock guards, to look at. */
static uint64_t read_guarded(tutti_group *group, uint64_t (*what)(const tutti_group *group))
{
    uint64_t value;

    tti_lock(&group->runner->lock);
    value = what(group);
    tti_unlock(&group->runner->lock);
    return value;
}

static void await_guarded(tutti_group *group, uint64_t (*what)(const tutti_group *group), uint64_t wanted)
{
    const int64_t deadline_ns = tti_now_ns() + LONG_MS * TTI_MS;

    while (read_guarded(group, what) != wanted && tti_now_ns() < deadline_ns)
        tti_port_system()->ops->yield(tti_port_system());
    assert_int_equal(read_guarded(group, what), wanted);
}

static uint64_t idle_workers(const tutti_group *group)
{
    return (uint64_t)group->runner->n_idle;
}

/* The only worker looks for works while another thread has the backend begin the one there is, and finds none: it is
 * told again when that has not ended. */
static void test_a_worker_that_looked_meanwhile(void **state)
{
    tutti_group *world = new_world(TUTTI_PROGRESS_NONE, false);
    tutti_group *other = NULL;
    tutti_work  *works[2];
    tti_thread   looker = { 0 };

    (void)state;
    world->runner->workers_max = 1;
    world->runner->idle_ns = 2 * LONG_MS * TTI_MS;
    assert_int_equal(tti_group_create(world, NULL, 0, NULL, &other), TUTTI_OK);
    tti_gate_open(&other->gate, 2); /* numbers of both groups are counted as one's */
    atomic_store(&holds_run, true);
    works[0] = start(world);
    await(&in_run, 1);
    works[1] = start(other);
    atomic_store(&holds_advance, true);
    assert_int_equal(tti_thread_start(&looker, "looker", look_once, works[1]), TUTTI_OK);
    await(&in_advance, 1);
    atomic_store(&holds_run, false);
    await_guarded(world, idle_workers, 1);
    atomic_store(&holds_advance, false);
    tti_thread_join(&looker);
    await(&runs, 2);
    assert_true(atomic_load(&runs_in_background));
    assert_int_equal(tutti_wait_all(works, 2, 0), TUTTI_OK);
    tutti_work_free(works[0]);
    tutti_work_free(works[1]);
    tutti_destroy_process_group(world);
}

static uint64_t next_number(const tutti_group *group)
{
    return tti_queue_next(group);
}

static void call_aborted(void *arg)
{
    CHECK(tutti_barrier(arg) == TUTTI_E_ABORTED);
}

static void destroy(void *arg)
{
    CHECK(tutti_destroy_process_group(arg) == TUTTI_OK);
}

/* The group ends while one thread runs a work, on its way to its own call, and another one waits behind: works that
 * were begun are still run one after another. */
static void test_the_end_under_several_callers(void **state)
{
    tutti_group *world = new_world(TUTTI_PROGRESS_GIVEN, false);
    tti_thread   callers[2] = { 0 }, destroyer = { 0 };
    tutti_work  *works[2];
    int          i;

    (void)state;
    for (i = 0; i < 2; i++)
        works[i] = start(world);
    atomic_store(&holds_run, true);
    assert_int_equal(tti_thread_start(&callers[0], "runner", call_aborted, world), TUTTI_OK);
    await(&in_run, 1);
    assert_int_equal(tti_thread_start(&callers[1], "behind", call_aborted, world), TUTTI_OK);
    await_guarded(world, next_number, 5);
    assert_int_equal(tti_thread_start(&destroyer, "destroyer", destroy, world), TUTTI_OK);
    tti_thread_join(&callers[1]);
    atomic_store(&holds_run, false);
    tti_thread_join(&callers[0]);
    tti_thread_join(&destroyer);
    assert_int_equal(atomic_load(&runs), 2);
    for (i = 0; i < 2; i++) {
        tutti_work_wait(works[i]); /* the first one has ended in time, or not */
        tutti_work_free(works[i]);
    }
}

static void call_all_ways(void *arg)
{
    uint64_t    dice = (uint64_t)(uintptr_t)&dice;
    tutti_work *work = NULL;
    int         i;

    for (i = 0; i < CALLS; i++) {
        dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        if (dice >> 62 == 0) {
            CHECK(tutti_barrier(arg) == TUTTI_OK);
            continue;
        }
        if (!CHECK(tutti_barrier_async(arg, &work) == TUTTI_OK))
            return;
        if (dice >> 62 == 1 || i / 32 % 2 == 1) /* for a while all are waited for, so that some are put off */
            CHECK(tutti_work_wait(work) == TUTTI_OK);
        else if (dice >> 62 == 2)
            tutti_work_is_completed(work);
        tutti_work_free(work);
    }
}

static void test_all_ways_at_once(void **state)
{
    tti_thread   threads[THREADS] = { 0 };
    tutti_group *world = new_world(BY_NUMBER, false);
    int          i;

    (void)state;
    for (i = 0; i < THREADS; i++)
        assert_int_equal(tti_thread_start(&threads[i], "caller", call_all_ways, world), TUTTI_OK);
    for (i = 0; i < THREADS; i++)
        tti_thread_join(&threads[i]);
    assert_int_equal(tutti_barrier(world), TUTTI_OK); /* behind whatever nobody waited for */
    assert_int_equal(turn.last, THREADS * CALLS + 1);
    assert_int_equal(turn.last, tutti_get_sequence_number(world));
    tutti_destroy_process_group(world);
    assert_int_equal(fake_aborts(), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_it_may_end_at_once),
        TEST(test_who_waits_runs_it),
        TEST(test_who_looks_brings_it_on),
        TEST(test_workers_come_for_the_others),
        TEST(test_what_has_come_makes_room),
        TEST(test_several_have_given),
        TEST(test_a_later_one_fails),
        TEST(test_who_waits_hastens),
        TEST(test_nobody_comes_for_it),
        TEST(test_nobody_comes_but_one_is_inside),
        TEST(test_who_asks_wants_it),
        TEST(test_the_end_of_one_put_off),
        TEST(test_a_failure_finishes_the_group),
        TEST(test_the_end_of_the_group),
        TEST(test_an_abort_ends_it),
        TEST(test_a_worker_that_looked_meanwhile),
        TEST(test_the_end_under_several_callers),
        TEST(test_all_ways_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shrink_test.c
 * Goal    a world or a subgroup goes on without members that have died, that were stopped, or that merely
 *         leave; what the excluded still do reaches nobody; a failed attempt can be repeated.
 * Method  processes and threads over shared memory and TCP, on one host and two; ranks that end by
 *         _exit() or SIGKILL between operations, or inside of one. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

enum { VICTIM = 1, TIMEOUT_MS = 1500, BEGUN = 0, STOPPED = 1, SHRUNK = 2, MADE = 3 };
enum { SHORT_MS = 400, BOUND_MS = 100, TRIES = 5 };

static bool said(const char *word)
{
    return strstr(tutti_last_error(), word) != NULL;
}

static void must(tutti_status st)
{
    if (st != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
}

static void expect_sum(tutti_group *group, int32_t mine, int32_t sum)
{
    must(tutti_all_reduce(TUTTI_SPAN(&mine, 1), TUTTI_SUM, group));
    assert_int_equal(mine, sum);
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* All have come, and nobody is inside the barrier any more. */
static void all_have_begun(tt_ctx *t)
{
    must(tutti_barrier(t->group));
    tt_post(t, BEGUN);
    tt_await(t, BEGUN, (uint32_t)t->size);
}

static tutti_group *shrink(tutti_group *group, int excluded, unsigned flags)
{
    tutti_group *left = NULL;

    must(tutti_shrink_group(&excluded, 1, group, flags, NULL, &left));
    return left;
}

/* ---- a world ---- */

static void check_shrunk_world(tt_ctx *t, tutti_group *world)
{
    const int    rank = t->rank - (t->rank > VICTIM);
    const int    ends[] = { 0, t->size - 2 };
    tutti_group *pair = NULL;
    int32_t      x = rank, got = -1;

    assert_ptr_equal(tutti_find_group("0:shrink"), world); /* it is what NULL means */
    assert_int_equal(tutti_get_world_size(NULL), t->size - 1);
    assert_int_equal(tutti_get_rank(NULL), rank);
    assert_int_equal(tutti_get_global_rank(NULL, rank), rank);
    assert_int_equal(tutti_get_former_rank(NULL, rank), t->rank);
    assert_int_equal(tutti_get_former_rank(NULL, t->size - 1), -1);
    assert_int_equal(tutti_get_pg_count(), 1); /* its groups are counted anew */
    expect_sum(NULL, t->rank, t->size * (t->size - 1) / 2 - VICTIM);
    must(tutti_new_group(ends, 2, NULL, &pair));
    if (rank == 0)
        must(tutti_send(TUTTI_SPAN(&x, 1), t->size - 2, 3, pair));
    if (rank == t->size - 2) {
        must(tutti_recv(TUTTI_SPAN(&got, 1), 0, 3, pair, NULL));
        assert_int_equal(got, 0);
    }
    must(tutti_barrier(NULL));
}

static void the_world_goes_on_after_a_death(tt_ctx *t)
{
    tutti_group *pair = NULL, *world;
    tutti_status st;

    must(tutti_new_group((const int[]){ 0, 2 }, 2, NULL, &pair));
    all_have_begun(t);
    if (t->rank == VICTIM)
        kill(getpid(), SIGKILL);
    st = tutti_barrier(t->group);
    assert_true(st == TUTTI_E_PEER || st == TUTTI_E_ABORTED);
    world = shrink(t->group, VICTIM, TUTTI_SHRINK_DEFAULT);
    t->group = t->group != NULL ? world : NULL;
    check_shrunk_world(t, world);
}

/* Nobody has died: one leaves, the others shrink, also as threads. */
static void the_world_goes_on_when_one_leaves(tt_ctx *t)
{
    tutti_group *world;

    all_have_begun(t);
    if (t->rank == VICTIM)
        return;
    world = shrink(t->group, VICTIM, TUTTI_SHRINK_DEFAULT);
    t->group = t->group != NULL ? world : NULL;
    check_shrunk_world(t, world);
}

/* Twice in a row: first rank 3 of 4, then rank 1 of the three that were left. */
static void a_shrunk_world_shrinks(tt_ctx *t)
{
    tutti_group *world;

    all_have_begun(t);
    if (t->rank == 3)
        return;
    world = shrink(t->group, 3, TUTTI_SHRINK_DEFAULT);
    expect_sum(world, 1, 3);
    if (t->rank == 1) {
        t->group = t->group != NULL ? world : NULL;
        return;
    }
    world = shrink(world, 1, TUTTI_SHRINK_DEFAULT);
    t->group = t->group != NULL ? world : NULL;
    assert_string_equal(tutti_get_group_name(world), "0:shrink:shrink");
    assert_int_equal(tutti_get_rank(world), t->rank / 2);
    expect_sum(world, t->rank, 2);
}

/* Excluded, stopped in the middle of a collective, and going on later: it meets an error, not the others. */
static void a_zombie_disturbs_nobody(tt_ctx *t)
{
    const int64_t count = 1 << 20;
    float        *x = tt_floats(t, (size_t)count, 1.0f), *y = tt_floats(t, (size_t)count, 2.0f);
    int           i;

    must(tutti_set_timeout(t->group, TIMEOUT_MS)); /* making the world may take longer */
    all_have_begun(t);
    if (t->rank == VICTIM) {
        tt_post(t, STOPPED);
        tt_await(t, SHRUNK, 2); /* as good as stopped: it comes to the call when the others have gone on */
        assert_int_not_equal(tutti_all_reduce(TUTTI_SPAN(x, count), TUTTI_SUM, t->group), TUTTI_OK);
        return;
    }
    tt_await(t, STOPPED, 1);
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(x, count), TUTTI_SUM, t->group), TUTTI_E_TIMEOUT);
    shrink(t->group, VICTIM, TUTTI_SHRINK_DEFAULT);
    must(tutti_barrier(NULL));
    tt_post(t, SHRUNK);
    for (i = 0; i < 20; i++)
        must(tutti_all_reduce(TUTTI_SPAN(y, count), TUTTI_AVG, NULL));
    for (i = 0; i < count; i += 4099)
        assert_true(y[i] == 2.0f);
}

/* ---- a subgroup ---- */

static void a_subgroup_goes_on(tt_ctx *t)
{
    const int    evens[] = { 0, 2, 4, 6 };
    tutti_group *group = NULL, *part = NULL;
    int32_t      x = t->rank, got = -1;

    must(tutti_new_group(evens, 4, NULL, &group));
    all_have_begun(t);
    if (t->rank == 2)
        kill(getpid(), SIGKILL);
    if (group != TUTTI_NON_MEMBER) {
        group = shrink(group, 1, TUTTI_SHRINK_DEFAULT); /* group rank 1 is rank 2 */
        assert_int_equal(tutti_get_world_size(group), 3);
        assert_int_equal(tutti_get_process_group_ranks(group)[1], 4); /* global ranks stay */
        assert_int_equal(tutti_get_former_rank(group, 1), 2);
        assert_int_equal(tutti_get_world_size(NULL), t->size); /* and so does the world */
        expect_sum(group, t->rank, 10);
        if (t->rank == 4)
            must(tutti_send(TUTTI_SPAN(&x, 1), 6, 0, group));
        if (t->rank == 6)
            must(tutti_recv(TUTTI_SPAN(&got, 1), 4, 0, group, NULL));
        must(tutti_split_group_by_color(group, t->rank == 4, NULL, &part)); /* over its connections */
        expect_sum(part, t->rank, t->rank == 4 ? 4 : 6);
        assert_ptr_equal(tutti_find_group(t->rank == 4 ? "1:shrink:split:1.1" : "1:shrink:split:1.0"), part);
        must(tutti_destroy_process_group(group)); /* takes its parts along */
        assert_ptr_equal(tutti_find_group(t->rank == 4 ? "1:shrink:split:1.1" : "1:shrink:split:1.0"),
                         TUTTI_NO_GROUP);
        tt_post(t, MADE);
    }
    if (t->rank == 0) /* it serves the store in which the others make their part */
        tt_await(t, MADE, 3);
}

/* Who serves its store is done with it, and destroys it, before the others have made their parts. */
static void a_subgroup_is_left_first_by_who_serves_it(tt_ctx *t)
{
    const int        evens[] = { 0, 2, 4, 6 }, parts[] = { 0, 1, 2 };
    const int *const lists[] = { &parts[0], &parts[1], &parts[2] };
    const int        ones[] = { 1, 1, 1 };
    tutti_group     *group = NULL, *part = NULL;

    must(tutti_new_group(evens, 4, NULL, &group));
    all_have_begun(t);
    if (t->rank == 2)
        kill(getpid(), SIGKILL);
    if (group == TUTTI_NON_MEMBER)
        return;
    group = shrink(group, 1, TUTTI_SHRINK_DEFAULT);
    if (t->rank != 0)
        tt_await(t, MADE, 1);
    must(tutti_split_group(group, lists, ones, 3, NULL, &part));
    assert_int_equal(tutti_get_world_size(part), 1);
    must(tutti_destroy_process_group(group));
    tt_post(t, MADE);
    if (t->rank == 0)
        tt_await(t, MADE, 3); /* it goes with the world */
}

/* Works of the new group take times if those of the old one did, or if the options say so. */
static void timing_goes_on(tt_ctx *t)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *timed = NULL, *left = NULL;
    tutti_work         *work = NULL;
    double              ms = -1;

    opts.enable_timing = true;
    must(tutti_new_group(NULL, 0, &opts, &timed));
    all_have_begun(t);
    if (t->rank == VICTIM)
        return;
    timed = shrink(timed, VICTIM, TUTTI_SHRINK_DEFAULT);
    must(tutti_barrier_async(timed, &work));
    must(tutti_work_wait(work));
    must(tutti_work_duration(work, &ms));
    tutti_work_free(work);
    must(tutti_shrink_group((const int[]){ VICTIM }, 1, t->group, 0, &opts, &left));
    t->group = t->group != NULL ? left : NULL;
    must(tutti_barrier_async(left, &work));
    must(tutti_work_wait(work));
    must(tutti_work_duration(work, &ms));
    tutti_work_free(work);
}

/* ---- what fails ---- */

static tutti_status try_shrink(tt_ctx *t, const int *ranks, int n, unsigned flags)
{
    tutti_group       *left = NULL;
    const tutti_status st = tutti_shrink_group(ranks, n, t->group, flags, NULL, &left);

    assert_ptr_equal(left, TUTTI_NO_GROUP);
    return st;
}

static void wrong_calls(tt_ctx *t)
{
    const int    others[] = { 1 - t->rank }, outside[] = { 2 }, twice[] = { 1, 1 }, all[] = { 0, 1 };
    tutti_work  *work = NULL;
    tutti_group *left = NULL;
    int32_t      x = 0;

    tutti_group_options opts = TUTTI_GROUP_OPTIONS;

    assert_int_equal(try_shrink(t, NULL, 1, 0), TUTTI_E_ARG);
    assert_int_equal(try_shrink(t, outside, 0, 0), TUTTI_E_ARG);
    assert_int_equal(try_shrink(t, outside, 1, 0), TUTTI_E_ARG);
    assert_true(said("rank 2 is outside of 0 .. 1"));
    assert_int_equal(try_shrink(t, others, 1, 4), TUTTI_E_ARG);
    assert_true(said("flags are 0x4"));
    assert_int_equal(try_shrink(t, all, 2, 0), TUTTI_E_ARG);
    assert_true(said("leave nobody"));
    assert_int_equal(try_shrink(t, twice, 2, 0), TUTTI_E_ARG);
    opts.backend = "cpu:nosuch";
    assert_int_not_equal(tutti_shrink_group(others, 1, t->group, 0, &opts, &left), TUTTI_OK);
    assert_true(said("nosuch"));
    assert_int_equal(try_shrink(t, (const int[]){ t->rank }, 1, 0), TUTTI_E_STATE);
    assert_true(said("only those call it that go on"));
    assert_int_equal(tutti_shrink_group(others, 1, TUTTI_NON_MEMBER, 0, NULL, &left), TUTTI_OK);
    assert_ptr_equal(left, TUTTI_NON_MEMBER);
    must(tutti_irecv(TUTTI_SPAN(&x, 1), 1 - t->rank, 0, t->group, &work));
    assert_int_equal(try_shrink(t, others, 1, 0), TUTTI_E_STATE);
    assert_true(said("operations are under way"));
    must(tutti_barrier(t->group)); /* all this left the world as it was */
    if (t->rank == 0) {
        left = shrink(t->group, 1, TUTTI_SHRINK_ABORT);
        t->group = t->group != NULL ? left : NULL;
        assert_int_equal(tutti_work_status(work), TUTTI_E_ABORTED);
        assert_int_equal(tutti_get_world_size(NULL), 1);
        assert_int_equal(try_shrink(t, (const int[]){ 0 }, 1, 0), TUTTI_E_ARG);
        assert_true(said("has one member"));
        tt_post(t, SHRUNK);
    } else {
        tt_await(t, SHRUNK, 1); /* else rank 0's receive could end because this rank has left */
    }
    tutti_work_free(work);
}

/* One that was to stay is dead, too: the attempt names it, and the next one does without it. */
static void a_second_attempt(tt_ctx *t)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *world = NULL;

    all_have_begun(t);
    if (t->rank == 1 || t->rank == 3)
        return;
    opts.timeout_ms = TIMEOUT_MS;
    assert_int_equal(tutti_shrink_group((const int[]){ 1 }, 1, t->group, 0, &opts, &world), TUTTI_E_PEER);
    assert_true(said("shrink_group on group '0': rank 3 is gone")); /* which is 2 of those that are left */
    assert_true(said("exclude it as well"));
    assert_int_equal(tutti_get_world_size(t->group), t->size);
    must(tutti_shrink_group((const int[]){ 3, 1 }, 2, t->group, 0, NULL, &world));
    t->group = t->group != NULL ? world : NULL;
    expect_sum(world, t->rank, 2);
}

/* One that is to stay has operations under way and is refused: the others are told why, and need not wait for it. Later it comes. */
static void a_refusal_is_told(tt_ctx *t)
{
    enum { LONG_MS = 30000 };
    const int64_t       began_ms = now_ms();
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *world = NULL;
    tutti_work         *work = NULL;
    int32_t             x = 5;

    all_have_begun(t);
    if (t->rank == VICTIM)
        return;
    opts.timeout_ms = LONG_MS;
    if (t->rank == 3) {
        must(tutti_irecv(TUTTI_SPAN(&x, 1), 0, 9, t->group, &work));
        assert_int_equal(tutti_shrink_group((const int[]){ VICTIM }, 1, t->group, 0, &opts, &world), TUTTI_E_STATE);
        assert_true(said("operations are under way"));
        tt_await(t, SHRUNK, 2);
        must(tutti_work_wait(work));
        tutti_work_free(work);
    } else {
        assert_int_equal(tutti_shrink_group((const int[]){ VICTIM }, 1, t->group, 0, &opts, &world), TUTTI_E_REMOTE);
        if (!said("rank 3, which is to stay, refuses it") || !said("operations are under way"))
            fail_msg("%s", tutti_last_error());
        assert_in_range(now_ms() - began_ms, 0, LONG_MS / 2);
        tt_post(t, SHRUNK);
        if (t->rank == 0)
            must(tutti_send(TUTTI_SPAN(&x, 1), 3, 9, t->group));
    }
    tt_post(t, MADE); /* nobody calls it again before all have read what was refused */
    tt_await(t, MADE, 3);
    world = shrink(t->group, VICTIM, TUTTI_SHRINK_DEFAULT);
    t->group = t->group != NULL ? world : NULL;
    expect_sum(world, t->rank, 5);
}

/* One that is to stay does not come: the call is back within its time and 100 ms. A machine that gives its cores to others is late
 * now and then, a late call each time. */
static void a_call_in_time(tt_ctx *t)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *world = NULL;
    int64_t             late_ms = BOUND_MS + 1;
    int                 tries;

    all_have_begun(t);
    opts.timeout_ms = SHORT_MS;
    for (tries = 0; t->rank == 0 && tries < TRIES && late_ms > BOUND_MS; tries++) {
        const int64_t began_ms = now_ms();

        assert_int_equal(tutti_shrink_group((const int[]){ 1 }, 1, t->group, 0, &opts, &world), TUTTI_E_TIMEOUT);
        assert_true(said("rank 2"));
        late_ms = now_ms() - began_ms - SHORT_MS;
    }
    if (t->rank == 0) {
        assert_in_range(late_ms, 0, BOUND_MS);
        tt_post(t, SHRUNK);
    }
    tt_await(t, SHRUNK, 1);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(the_world_goes_on_after_a_death, .ranks = 4, .transports = "shm,tcp", .dies = VICTIM),
        TT_TEST(the_world_goes_on_after_a_death, .ranks = 4, .dies = VICTIM, .hosts = 2),
        TT_TEST(the_world_goes_on_when_one_leaves, .ranks = 4, .transports = "shm,tcp,threads,threads-tcp"),
        TT_TEST(a_shrunk_world_shrinks, .ranks = 4, .transports = "shm,tcp,threads"),
        TT_TEST(a_zombie_disturbs_nobody, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(a_subgroup_goes_on, .ranks = 7, .transports = "shm,tcp", .dies = 2),
        TT_TEST(a_subgroup_is_left_first_by_who_serves_it, .ranks = 7, .transports = "shm,tcp", .dies = 2),
        TT_TEST(timing_goes_on, .ranks = 3, .transports = "shm,threads"),
        TT_TEST(wrong_calls, .transports = "shm,tcp,threads"),
        TT_TEST(a_call_in_time, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(a_refusal_is_told, .ranks = 4, .transports = "shm,tcp,threads"),
        TT_TEST(a_refusal_is_told, .ranks = 4, .hosts = 2),
        TT_TEST(a_second_attempt, .ranks = 4, .transports = "shm,tcp"),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}

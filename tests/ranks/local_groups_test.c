/* SPDX-License-Identifier: BSD-3-Clause
 *
 * local_groups_test.c
 * Goal    groups that only their members make: in any order, with names and numbers that agree, and with
 *         an error in time when a member does not come.
 * Method  processes and threads over shared memory and TCP; groups that overlap in a circle. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

/* COME_MS is for who comes, also where it gets no core for a second. */
enum { TIMEOUT_MS = 700, COME_MS = 2000, LATER_MS = 5000, NAME_MAX_BYTES = 64 };
enum { DONE, BEGUN }; /* marks */

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static tutti_group *make_local(const int *ranks, int n, int64_t timeout_ms)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;

    opts.use_local_synchronization = true;
    opts.timeout_ms = timeout_ms;
    if (tutti_new_group(ranks, n, &opts, &group) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    return group;
}

static void expect_sum(tutti_group *group, int32_t mine, int32_t sum)
{
    tutti_span x = TUTTI_SPAN(&mine, 1);

    if (tutti_all_reduce(x, TUTTI_SUM, group) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    assert_int_equal(mine, sum);
}

static void members_alone_make_a_group(tt_ctx *t)
{
    const int    ranks[] = { 2, 0 };
    tutti_group *group, *again;
    char         first[NAME_MAX_BYTES];

    if (t->rank == 1) {
        assert_ptr_equal(make_local(ranks, 2, 0), TUTTI_NON_MEMBER); /* may call, and waits for nobody */
        assert_int_equal(tutti_get_pg_count(), 1);
        assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
        return;
    }
    group = make_local(ranks, 2, 0);
    assert_int_equal(tutti_get_pg_count(), 1); /* nobody counts it */
    assert_string_equal(tutti_get_group_name(group), "e141ae2001c03c612892ea28caa026adcef1316b");
    assert_int_equal(tutti_get_rank(group), t->rank / 2);
    assert_ptr_equal(tutti_find_group(tutti_get_group_name(group)), group);
    expect_sum(group, t->rank + 1, 4);
    strcpy(first, tutti_get_group_name(group));
    assert_int_equal(tutti_destroy_process_group(group), TUTTI_OK);
    assert_ptr_equal(tutti_find_group(first), TUTTI_NO_GROUP);
    again = make_local(ranks, 2, 0);
    assert_string_not_equal(tutti_get_group_name(again), first); /* keys of the first are not met */
    expect_sum(again, t->rank + 1, 4);
    assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
}

/* Each rank makes its two groups in an order such that each would wait for the next one. */
static void a_circle_does_not_deadlock(tt_ctx *t)
{
    const int    n = t->size;
    const int    next = (t->rank + 1) % n;
    const int    before = (t->rank + n - 1) % n;
    tutti_group *with_next = make_local((const int[]){ t->rank, next }, 2, 0);
    tutti_group *with_before = make_local((const int[]){ t->rank, before }, 2, 0);
    tutti_work  *work = NULL;
    int32_t      token = t->rank, got = -1;

    /* messages go at once, before anybody has met anybody in these groups */
    assert_int_equal(tutti_isend(TUTTI_SPAN(&token, 1), next, 0, with_next, &work), TUTTI_OK);
    assert_int_equal(tutti_recv(TUTTI_SPAN(&got, 1), before, 0, with_before, NULL), TUTTI_OK);
    assert_int_equal(got, before);
    assert_int_equal(tutti_work_wait(work), TUTTI_OK);
    tutti_work_free(work);
    /* collectives in an order that has no circle: the group of the last and the first rank comes first */
    if (t->rank == 0 || t->rank == n - 1)
        expect_sum(t->rank == 0 ? with_before : with_next, 1, 2);
    if (t->rank > 0)
        expect_sum(with_before, t->rank, before + t->rank);
    if (t->rank < n - 1)
        expect_sum(with_next, t->rank, t->rank + next);
}

static void who_does_not_come_is_named(tt_ctx *t)
{
    tutti_group *group;
    int64_t      start;

    if (t->rank != 1) {
        group = make_local((const int[]){ 0, 1, 2 }, 3, 0);
        assert_int_equal(tutti_set_timeout(group, COME_MS), TUTTI_OK); /* making the group may take longer */
        tt_post(t, BEGUN);
        tt_await(t, BEGUN, 2);
        start = now_ms();
        assert_int_equal(tutti_barrier(group), TUTTI_E_TIMEOUT);
        assert_true(now_ms() - start < 4 * COME_MS);
        assert_non_null(strstr(tutti_last_error(), "not joined: rank 1"));
        assert_int_equal(tutti_barrier(group), TUTTI_E_TIMEOUT); /* and the group is finished */
    }
    assert_int_equal(tutti_barrier(t->group), TUTTI_OK); /* the world is not */
}

/* Rank 0 has a shorter list than the others, which is another group: who is waited for does not come, and the words tell of which members
 * this rank has it, and of lists. */
static void who_has_another_list_is_waited_for(tt_ctx *t)
{
    tutti_group *group = make_local((const int[]){ 0, 1, 2 }, t->rank == 0 ? 2 : 3, 0);

    if (t->rank == 2) {
        assert_int_equal(tutti_set_timeout(group, COME_MS), TUTTI_OK);
        assert_int_equal(tutti_barrier(group), TUTTI_E_TIMEOUT);
        assert_non_null(strstr(tutti_last_error(), "\n  not joined: rank"));
        assert_non_null(strstr(tutti_last_error(), "\n  its members, as rank 2 has them: ranks 0, 1, 2\n"));
        assert_non_null(strstr(tutti_last_error(), "and of the same lists of members"));
    }
    tt_post(t, DONE);
    tt_await(t, DONE, (uint32_t)t->size);
    assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
}

/* Rank 0 gives up first, for rank 2, and leaves the world: for rank 1, whose time is up later, that is no reason. */
static void who_gave_up_before_is_not_named(tt_ctx *t)
{
    tutti_group *group;

    if (t->rank == 2) {
        tt_await(t, DONE, 1);
        return;
    }
    group = make_local((const int[]){ 0, 1, 2 }, 3, 0);
    assert_int_equal(tutti_set_timeout(group, t->rank == 0 ? COME_MS : LATER_MS), TUTTI_OK);
    tt_post(t, BEGUN);
    tt_await(t, BEGUN, 2);
    assert_int_equal(tutti_barrier(group), TUTTI_E_TIMEOUT);
    assert_non_null(strstr(tutti_last_error(), "not joined: rank 2"));
    assert_null(strstr(tutti_last_error(), "has left"));
    if (t->rank == 0)
        assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_OK);
    else
        tt_post(t, DONE);
}

/* The members of a group of ranks 1 and 2 are numbered as the world numbers them. */
static void texts_have_ranks_of_the_world(tt_ctx *t)
{
    const int    ranks[] = { 1, 2 };
    tutti_group *group;
    int32_t      x = 0;

    if (t->rank != 0) {
        group = make_local(ranks, 2, 0);
        assert_int_equal(tutti_barrier(group), TUTTI_OK); /* which makes its memory: on a busy machine not in a moment */
        tt_post(t, BEGUN);
        tt_await(t, BEGUN, 2); /* nobody is inside the barrier any more */
        if (t->rank == 2) {
            assert_int_equal(tutti_set_timeout(group, TIMEOUT_MS), TUTTI_OK);
            assert_int_equal(tutti_broadcast(TUTTI_SPAN(&x, 1), 1, group), TUTTI_E_TIMEOUT);
            assert_non_null(strstr(tutti_last_error(), "(1 i32, root 1) on group '"));
            assert_non_null(strstr(tutti_last_error(), " on rank 2 of 2 members\n"));
            assert_non_null(strstr(tutti_last_error(), " rank 1"));
            assert_null(strstr(tutti_last_error(), "rank 0"));
        }
    }
    tt_post(t, DONE);
    tt_await(t, DONE, (uint32_t)t->size); /* outside of tutti: in the barrier rank 1 would wait for rank 2, which waits for it */
    assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
}

/* Destroying a group ends a collective that waits for members to come. */
static void destroy_ends_the_meeting(tt_ctx *t)
{
    tutti_group *group;
    tutti_work  *work = NULL;
    int64_t      start = now_ms();

    if (t->rank == 0) {
        group = make_local((const int[]){ 0, 1 }, 2, TUTTI_INFINITE);
        assert_int_equal(tutti_barrier_async(group, &work), TUTTI_OK);
        assert_int_equal(tutti_work_wait_for(work, 50), TUTTI_E_TIMEOUT);
        assert_int_equal(tutti_destroy_process_group(group), TUTTI_OK);
        assert_int_equal(tutti_work_status(work), TUTTI_E_ABORTED);
        tutti_work_free(work);
        assert_true(now_ms() - start < 10000);
    }
    assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
}

/* A member of this host that dies before it has come is noticed long before the time-out. */
static void a_member_that_died_is_named(tt_ctx *t)
{
    tutti_group *group;
    int64_t      start;

    assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
    tt_post(t, BEGUN);
    tt_await(t, BEGUN, (uint32_t)t->size);
    if (t->rank == 2)
        tt_die();
    group = make_local((const int[]){ 0, 1, 2 }, 3, 0);
    start = now_ms();
    assert_int_equal(tutti_barrier(group), TUTTI_E_PEER);
    assert_true(now_ms() - start < 5000);
    assert_non_null(strstr(tutti_last_error(), "rank 2"));
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(members_alone_make_a_group, .ranks = 3, .transports = "shm,tcp,threads,threads-tcp"),
        TT_TEST(a_circle_does_not_deadlock, .ranks = 5, .transports = "shm,tcp,threads,threads-tcp"),
        TT_TEST(who_does_not_come_is_named, .ranks = 3, .transports = "shm,tcp", .limit_ms = 30000, .waits = true),
        TT_TEST(who_has_another_list_is_waited_for, .ranks = 3, .transports = "shm,tcp", .limit_ms = 30000, .waits = true),
        TT_TEST(who_gave_up_before_is_not_named, .ranks = 3, .transports = "shm,tcp", .limit_ms = 30000, .waits = true),
        TT_TEST(texts_have_ranks_of_the_world, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(destroy_ends_the_meeting, .transports = "shm,tcp,threads", .limit_ms = 30000),
        TT_TEST(a_member_that_died_is_named, .ranks = 3, .dies = 2),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}

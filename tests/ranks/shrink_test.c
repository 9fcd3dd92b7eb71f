/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shrink_test.c
 * Goal    a world or a subgroup goes on without members that have died, that were stopped, or that merely
 *         leave; what the excluded still do reaches nobody; a failed attempt can be repeated.
 * Method  processes and threads over shared memory and TCP, on one host and two; ranks that end by
 *         _exit() or SIGKILL between operations, or inside of one. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "gone.h"
#include "harness/harness.h"
#include <tutti/tutti.h>

enum { VICTIM = 1, TIMEOUT_MS = 1500, BEGUN = 0, STOPPED = 1, SHRUNK = 2, MADE = 3, TOLD = 8, OVER = 32 };
enum { SHORT_MS = 400, BOUND_MS = 100, TRIES = 5, PATIENT_MS = 10000 /* of what ends sooner */ };

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
    const int64_t       count = 1 << 20;
    float              *x = tt_floats(t, (size_t)count, 1.0f), *y = tt_floats(t, (size_t)count, 2.0f);
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *left = NULL;
    int                 i;

    all_have_begun(t);
    must(tutti_set_timeout(t->group, TIMEOUT_MS)); /* making the world, and coming together, may take longer */
    if (t->rank == VICTIM) {
        tt_post(t, STOPPED);
        tt_await(t, SHRUNK, 2); /* as good as stopped: it comes to the call when the others have gone on */
        assert_int_not_equal(tutti_all_reduce(TUTTI_SPAN(x, count), TUTTI_SUM, t->group), TUTTI_OK);
        return;
    }
    tt_await(t, STOPPED, 1);
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(x, count), TUTTI_SUM, t->group), TUTTI_E_TIMEOUT);
    opts.timeout_ms = PATIENT_MS; /* of the new world, too */
    must(tutti_shrink_group((const int[]){ VICTIM }, 1, t->group, TUTTI_SHRINK_DEFAULT, &opts, &left));
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
    all_have_begun(t); /* all this left the world as it was; what rank 0 aborts has nobody of the barrier in it */
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

/* Ranks 1 and 3 are no more, and rank 3 was to stay: the attempt names it, and the next one does without it. */
static void attempt_twice(tt_ctx *t, tutti_status st, const char *what, const char *next)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *world = NULL;

    opts.timeout_ms = PATIENT_MS;
    assert_int_equal(tutti_shrink_group((const int[]){ 1 }, 1, t->group, 0, &opts, &world), st);
    if (!said(what) || !said(next))
        fail_msg("%s", tutti_last_error());
    assert_int_equal(tutti_get_world_size(t->group), t->size);
    must(tutti_shrink_group((const int[]){ 3, 1 }, 2, t->group, 0, NULL, &world));
    t->group = t->group != NULL ? world : NULL;
    expect_sum(world, t->rank, 2);
}

/* Rank 3 is dead, which is 2 of those that are left. */
static void a_second_attempt(tt_ctx *t)
{
    all_have_begun(t);
    if (t->rank == 3)
        kill(getpid(), SIGKILL);
    if (t->rank != 1)
        attempt_twice(t, TUTTI_E_PEER, "shrink_group on group '0': rank 3 is gone", "exclude it as well");
}

/* Nobody has destroyed the group: what the attempt failed of is what its later calls fail of. */
static void expect_told_later(tt_ctx *t)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *world = NULL;
    int32_t             x = 1;

    opts.timeout_ms = PATIENT_MS;
    assert_int_equal(tutti_shrink_group((const int[]){ 1 }, 1, t->group, TUTTI_SHRINK_ABORT, &opts, &world), TUTTI_E_PEER);
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, t->group), TUTTI_E_ABORTED);
    if (!said("is finished since tutti_shrink_group: with TUTTI_SHRINK_ABORT it ended what was under way") || !said("rank 3 is gone"))
        fail_msg("%s", tutti_last_error());
    must(tutti_shrink_group((const int[]){ 3, 1 }, 2, t->group, 0, NULL, &world));
    t->group = t->group != NULL ? world : NULL;
    expect_sum(world, t->rank, 2);
}

/* Rank 3 is dead, which ranks 0 and 2 do not know when they abort what is under way. */
static void later_calls_are_told_of_a_failed_attempt(tt_ctx *t)
{
    all_have_begun(t);
    if (t->rank == 3)
        kill(getpid(), SIGKILL);
    if (t->rank != 1)
        expect_told_later(t);
}

/* Rank 3 has ended in order: it cannot be told from one that has gone on. */
static void a_second_attempt_without_one_that_left(tt_ctx *t)
{
    all_have_begun(t);
    if (t->rank == 1 || t->rank == 3)
        return;
    tt_await_goodbye(t, 3);
    attempt_twice(t, TUTTI_E_STATE, "shrink_group on group '0': rank 3 left the group before this call",
                  "exclude it as well only where it has ended");
}

/* Ranks 0 and 1 have gone on without 2, which has not heard of that and means to go on with them. */
static void who_was_left_out_is_told_so(tt_ctx *t)
{
    tutti_group *world = NULL;

    all_have_begun(t);
    if (t->rank == 3)
        return;
    if (t->rank == 2) {
        tt_await(t, SHRUNK, 2);
        tt_await_goodbye(t, 0);
        assert_int_equal(tutti_shrink_group((const int[]){ 3 }, 1, t->group, 0, NULL, &world), TUTTI_E_STATE);
        if (!said("left the group before this call") || !said("gone on without") || !said("tutti_join_group()") ||
            said("exclude it as well, on all"))
            fail_msg("%s", tutti_last_error());
        tt_post(t, TOLD);
        return;
    }
    must(tutti_shrink_group((const int[]){ 3, 2 }, 2, t->group, 0, NULL, &world));
    t->group = t->group != NULL ? world : NULL;
    tt_post(t, SHRUNK);
    tt_await(t, TOLD, 1);
    expect_sum(world, t->rank, 1);
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

enum { NO_CALL = -1, NO_LIST = -2 };

/* Which rank is on each rank's list, if it has one and calls; and who comes when others have been told, below 0: nobody. */
typedef struct lists_case {
    int list[4];
    int last;
} lists_case;

static const lists_case lists_cases[] = {
    { { 3, 2, 3, -1 }, -1 }, { { 3, 2, 3, -1 }, 0 }, { { 3, 2, 3, -1 }, 2 }, { { 3, 3, 1, -1 }, -1 },
    { { 3, 3, 1, -1 }, 0 },  { { 3, 3, 1, -1 }, 1 }, { { 3, 2, 1, 2 }, -1 }, { { 3, 2, 1, 2 }, 0 },
    { { 3, 2, 1, 2 }, 3 },
};

/* Some have none. Two of them do without who comes last. */
static const lists_case cases_without_lists[] = {
    { { NO_LIST, NO_LIST, 3, NO_CALL }, -1 }, { { NO_LIST, NO_LIST, 3, NO_CALL }, 0 }, { { NO_LIST, NO_LIST, 3, NO_CALL }, 1 },
    { { 3, NO_LIST, 3, NO_CALL }, -1 },       { { NO_LIST, 3, NO_LIST, NO_CALL }, 2 },
};

static void be_told(tt_ctx *t, const lists_case *c, int64_t timeout_ms)
{
    const int64_t       began_ms = now_ms();
    const int           list = c->list[t->rank];
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *world = NULL;

    opts.timeout_ms = timeout_ms;
    if (tutti_shrink_group(list == NO_LIST ? NULL : &list, list != NO_LIST, t->group, 0, &opts, &world) != TUTTI_E_MISMATCH ||
        !said("the members passed different ranks to exclude: rank ") || said("come"))
        fail_msg("without %d: %s", list, tutti_last_error());
    assert_in_range(now_ms() - began_ms, 0, timeout_ms / 2);
}

/* Lists that differ: whoever calls it is told so, also who comes when others have been told. Then all pass the same, and one of them
 * comes late: what was said before counts no more. */
static void tell_of_lists(tt_ctx *t, const lists_case *cases, int n, uint32_t before_last)
{
    enum { LONG_MS = 30000 };
    const struct timespec late = { 0, 700000000 };
    tutti_group          *world;
    int                   i;

    all_have_begun(t);
    for (i = 0; i < n; i++) {
        const lists_case *c = &cases[i];

        if (c->last == t->rank)
            tt_await(t, TOLD + i, before_last);
        if (c->list[t->rank] != NO_CALL)
            be_told(t, c, LONG_MS);
        tt_post(t, TOLD + i);
        tt_post(t, OVER + i);
        tt_await(t, OVER + i, (uint32_t)t->size);
    }
    must(tutti_barrier(t->group)); /* all this left it as it was */
    if (t->rank == 3)
        return;
    if (t->rank == 1)
        nanosleep(&late, NULL); /* so that the others look for refusals meanwhile */
    world = shrink(t->group, 3, TUTTI_SHRINK_DEFAULT);
    t->group = t->group != NULL ? world : NULL;
    expect_sum(world, 1, 3);
}

static void lists_that_differ_are_told(tt_ctx *t)
{
    tell_of_lists(t, lists_cases, sizeof lists_cases / sizeof lists_cases[0], 1);
}

static void a_list_beside_none_is_told(tt_ctx *t)
{
    tell_of_lists(t, cases_without_lists, sizeof cases_without_lists / sizeof cases_without_lists[0], 3);
}

/* Lists differ, and who was told calls it again at once, with another list: without rank 2, and with rank 3, which was to be left out
 * before. That one may read what was told the others before; they wait until it has called again. */
static void who_was_told_calls_again_at_once(tt_ctx *t)
{
    enum { LONG_MS = 30000, TIMES = 6 };
    const int64_t       began_ms = now_ms();
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *world = NULL;
    tutti_status        st = TUTTI_E_MISMATCH;
    int                 i, list = t->rank == 2 ? 1 : 3;

    all_have_begun(t);
    if (t->rank == 3)
        tt_await(t, TOLD, 1);
    else
        be_told(t, &(lists_case){ { list, list, list, list }, -1 }, LONG_MS);
    tt_post(t, TOLD);
    if (t->rank == 2) {
        tt_await(t, SHRUNK, 3);
        return;
    }
    opts.timeout_ms = LONG_MS;
    list = 2;
    for (i = 0; i < TIMES && st == TUTTI_E_MISMATCH; i++)
        st = tutti_shrink_group(&list, 1, t->group, 0, &opts, &world);
    must(st);
    assert_in_range(now_ms() - began_ms, 0, LONG_MS / 2);
    tt_post(t, SHRUNK);
    t->group = t->group != NULL ? world : NULL;
    expect_sum(world, 1, 3);
}

/* Without ports that members could talk by. */
static void by_the_store(tt_ctx *t, void (*test)(tt_ctx *))
{
    tutti_init_options init = TUTTI_INIT_OPTIONS;
    char               url[128];

    assert_int_equal(setenv("TUTTI_PORT_RANGE", "21000-21011", 1), 0);
    snprintf(url, sizeof url, "tcp://%s:%d?rank=%d&world_size=%d", t->addr, t->port, t->rank, t->size);
    init.init_method = url;
    must(tutti_init_process_group(&init));
    test(t);
    tt_post(t, MADE);
    tt_await(t, MADE, (uint32_t)t->size); /* rank 0 serves the store */
    must(tutti_destroy_process_group(NULL));
}

/* The same where members have no ports to talk by, and the store alone tells. */
static void lists_that_differ_are_told_by_the_store(tt_ctx *t)
{
    by_the_store(t, lists_that_differ_are_told);
}

static void who_was_told_by_the_store_calls_again_at_once(tt_ctx *t)
{
    by_the_store(t, who_was_told_calls_again_at_once);
}

/* One that is to stay does not come, and the others' time is up at once: they name that one, and nobody else, in time. They have more
 * time than a busy machine takes a core away for, or one of them would not have come. */
static void only_who_does_not_come_is_named(tt_ctx *t)
{
    enum { LATE = 2, EXCLUDED = 4, OFTEN = 3, WAIT_MS = 3000 };
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *world = NULL;
    int64_t             best_ms = INT64_MAX;
    int                 i;

    opts.timeout_ms = WAIT_MS;
    all_have_begun(t);
    for (i = 0; i < OFTEN; i++) {
        const int64_t began_ms = now_ms();

        if (t->rank != LATE && t->rank != EXCLUDED) {
            assert_int_equal(tutti_shrink_group((const int[]){ EXCLUDED }, 1, t->group, 0, &opts, &world), TUTTI_E_TIMEOUT);
            if (!said("shrink_group on group '0': rank 2 did not come to go on with"))
                fail_msg("rank %d: %s", t->rank, tutti_last_error());
            best_ms = now_ms() - began_ms < best_ms ? now_ms() - began_ms : best_ms;
        }
        tt_post(t, OVER + i);
        tt_await(t, OVER + i, (uint32_t)t->size);
    }
    if (t->rank != LATE && t->rank != EXCLUDED)
        assert_in_range(best_ms, 0, WAIT_MS + BOUND_MS);
}

/* Ranks 0 and 2 exclude each other, and both need others, which do not come: each is told of the other one's list, too. */
static void who_excludes_each_other_is_told(tt_ctx *t)
{
    enum { WAIT_MS = 5000 };
    const int           other = 2 - t->rank;
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *world = NULL;
    char                words[128];

    opts.timeout_ms = WAIT_MS;
    all_have_begun(t);
    if (t->rank % 2 == 0) {
        assert_int_equal(tutti_shrink_group(&other, 1, t->group, 0, &opts, &world), TUTTI_E_TIMEOUT);
        snprintf(words, sizeof words, "; rank %d, which this one excludes, excludes this one: it passed {%d}\n  next: check ", other, t->rank);
        if (!said(words) || !said("did not come to go on with"))
            fail_msg("%s", tutti_last_error());
    }
    tt_post(t, SHRUNK);
    tt_await(t, SHRUNK, (uint32_t)t->size);
    if (t->rank == 3)
        return;
    world = shrink(t->group, 3, TUTTI_SHRINK_DEFAULT); /* what was passed before counts no more */
    t->group = t->group != NULL ? world : NULL;
    expect_sum(world, 1, 3);
}

/* One that is to stay is in a collective instead: both sides are told of both calls, also who comes later, and may shrink then. */
static void another_call(tt_ctx *t)
{
    enum { LONG_MS = 30000, TIMES = 4 };
    const int64_t       began_ms = now_ms();
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *world = NULL;
    tutti_status        st;
    int32_t             x = 1;
    int                 i;

    opts.timeout_ms = LONG_MS;
    must(tutti_set_timeout(t->group, LONG_MS));
    all_have_begun(t);
    if (t->rank == VICTIM) {
        tt_await(t, SHRUNK, 3);
        return;
    }
    if (t->rank == 3)
        tt_await(t, TOLD, 1);
    st = t->rank == 2 ? tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, t->group)
                      : tutti_shrink_group((const int[]){ VICTIM }, 1, t->group, 0, &opts, &world);
    if (st != TUTTI_E_MISMATCH || !said("rank 2: all_reduce #") || !said("tutti_shrink_group() without rank 1"))
        fail_msg("rank %d: %s: %s", t->rank, tutti_status_name(st), tutti_last_error());
    assert_in_range(now_ms() - began_ms, 0, LONG_MS / 2);
    tt_post(t, TOLD);
    tt_await(t, TOLD, 3);
    for (i = 0; i < TIMES && st == TUTTI_E_MISMATCH; i++) /* who calls it for the first time may read what was told the others before */
        st = tutti_shrink_group((const int[]){ VICTIM }, 1, t->group, 0, &opts, &world);
    must(st);
    tt_post(t, SHRUNK);
    t->group = t->group != NULL ? world : NULL;
    expect_sum(world, 1, 3);
}

/* The others look for words meanwhile, for more than a second. */
static void come_late(void)
{
    const struct timespec late = { 2, 500000000 };

    nanosleep(&late, NULL);
}

/* Without a list, and waiting for whoever is late. */
static void go_on_together(tt_ctx *t, int32_t sum)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *world = NULL;

    opts.timeout_ms = 60000;
    must(tutti_shrink_group(NULL, 0, t->group, 0, &opts, &world));
    t->group = t->group != NULL ? world : NULL;
    expect_sum(world, 1, sum);
}

/* Rank 0's list met a collective of rank 1's: what rank 0 has said of that is nothing to those that go on without a list. */
static void words_of_calls_are_nothing_without_a_list(tt_ctx *t)
{
    enum { LONG_MS = 30000 };
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *world = NULL;
    tutti_status        st = TUTTI_E_MISMATCH;
    int32_t             x = 1;

    opts.timeout_ms = LONG_MS;
    must(tutti_set_timeout(t->group, LONG_MS));
    all_have_begun(t);
    if (t->rank == 0)
        st = tutti_shrink_group((const int[]){ 3 }, 1, t->group, 0, &opts, &world);
    else if (t->rank == 1)
        st = tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, t->group);
    assert_int_equal(st, TUTTI_E_MISMATCH);
    tt_post(t, TOLD);
    tt_await(t, TOLD, (uint32_t)t->size);
    if (t->rank == 0)
        come_late();
    go_on_together(t, t->size);
}

/* The lists of ranks 0 and 1 differ, and rank 1 dies; rank 0 takes back what it has said, and is late. The others have no list, and call
 * it for the first time: what rank 1 has said is over. */
static void words_of_the_dead_are_nothing_without_a_list(tt_ctx *t)
{
    enum { LONG_MS = 30000 };
    const lists_case    lists = { { 4, 3, NO_CALL, NO_CALL }, -1 };
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *world = NULL;

    opts.timeout_ms = SHORT_MS;
    all_have_begun(t);
    if (t->rank <= VICTIM) {
        be_told(t, &lists, LONG_MS);
        tt_post(t, MADE);
        tt_await(t, MADE, VICTIM + 1); /* rank 0 is told of the lists, and not of the death */
    }
    tt_post(t, TOLD);
    if (t->rank == VICTIM)
        kill(getpid(), SIGKILL);
    if (t->rank == 0) {
        tt_await(t, TOLD, (uint32_t)t->size);
        assert_int_not_equal(tutti_shrink_group(NULL, 0, t->group, 0, &opts, &world), TUTTI_OK);
    }
    tt_post(t, SHRUNK);
    tt_await(t, SHRUNK, (uint32_t)t->size - 1);
    if (t->rank == 0)
        come_late();
    go_on_together(t, t->size - 1);
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
        TT_TEST(a_second_attempt, .ranks = 4, .transports = "shm,tcp", .dies = 3),
        TT_TEST(later_calls_are_told_of_a_failed_attempt, .ranks = 4, .transports = "shm,tcp", .dies = 3),
        TT_TEST(a_second_attempt_without_one_that_left, .ranks = 4, .transports = "shm,tcp"),
        TT_TEST(who_was_left_out_is_told_so, .ranks = 4, .transports = "shm,tcp"),
        TT_TEST(who_was_left_out_is_told_so, .ranks = 4, .hosts = 2),
        TT_TEST(lists_that_differ_are_told, .ranks = 4, .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(lists_that_differ_are_told, .ranks = 4, .hosts = 2, .limit_ms = 60000),
        TT_TEST(a_list_beside_none_is_told, .ranks = 4, .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(a_list_beside_none_is_told, .ranks = 4, .hosts = 2, .limit_ms = 60000),
        TT_TEST(lists_that_differ_are_told_by_the_store, .ranks = 4, .hosts = 2, .limit_ms = 60000, .init = TT_INIT_NONE),
        TT_TEST(who_was_told_calls_again_at_once, .ranks = 4, .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(who_was_told_calls_again_at_once, .ranks = 4, .hosts = 2, .limit_ms = 60000),
        TT_TEST(who_was_told_by_the_store_calls_again_at_once, .ranks = 4, .hosts = 2, .limit_ms = 60000, .init = TT_INIT_NONE),
        TT_TEST(only_who_does_not_come_is_named, .ranks = 5, .transports = "shm,tcp", .limit_ms = 40000),
        TT_TEST(who_excludes_each_other_is_told, .ranks = 4, .transports = "shm,tcp,threads", .limit_ms = 60000, .waits = true),
        TT_TEST(who_excludes_each_other_is_told, .ranks = 4, .hosts = 2, .limit_ms = 60000, .waits = true),
        TT_TEST(another_call, .ranks = 4, .transports = "shm,tcp,threads"),
        TT_TEST(another_call, .ranks = 4, .hosts = 2),
        TT_TEST(words_of_calls_are_nothing_without_a_list, .ranks = 4, .transports = "shm,tcp", .limit_ms = 90000, .waits = true),
        TT_TEST(words_of_calls_are_nothing_without_a_list, .ranks = 4, .hosts = 2, .limit_ms = 90000, .waits = true),
        TT_TEST(words_of_the_dead_are_nothing_without_a_list, .ranks = 5, .transports = "shm,tcp", .dies = VICTIM, .limit_ms = 90000, .waits = true),
        TT_TEST(words_of_the_dead_are_nothing_without_a_list, .ranks = 5, .hosts = 2, .dies = VICTIM, .limit_ms = 90000, .waits = true),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}

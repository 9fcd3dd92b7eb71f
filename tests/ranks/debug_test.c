/* SPDX-License-Identifier: BSD-3-Clause
 *
 * debug_test.c
 * Goal    a monitored barrier names who has not come, to everybody; ranks that call different things are
 *         told so on all ranks, over every way of transport, without any debug level; a time-out that is
 *         changed counts from the next operation on.
 * Method  ranks that are to be missing wait for a mark that the others set when they have been told. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

/* Long enough for who comes to have come, also where it gets no core for a second. */
enum { SHORT_MS = 1500, LONG_MS = 4000, TOLD = 0, BEGUN = 1, GROUPS = 2, COMES = 3, OVER = 4 };

static void expect_words(const char *words)
{
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, tutti_last_error());
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* So many are outside of all calls, and have done what stands before. */
static void n_have_begun(tt_ctx *t, int n)
{
    tt_post(t, BEGUN);
    tt_await(t, BEGUN, (uint32_t)n);
}

/* ---- monitored_barrier ---- */

/* Over and over, with messages of the program's own around it: they never meet. */
static void all_come(tt_ctx *t)
{
    int32_t x = t->rank, y = -1;
    int     i;

    for (i = 0; i < 5; i++) {
        if (t->rank == 0)
            OK(tutti_send(TUTTI_SPAN(&x, 1), t->size - 1, 0, t->group));
        OK(tutti_monitored_barrier(t->group, 0, i % 2 == 0));
        if (t->rank == t->size - 1)
            OK(tutti_recv(TUTTI_SPAN(&y, 1), TUTTI_ANY_SOURCE, 0, t->group, NULL));
    }
    assert_int_equal(tutti_monitored_barrier(t->group, -2, false), TUTTI_E_ARG);
    OK(tutti_barrier(t->group));
}

static void assert_finished(tt_ctx *t)
{
    assert_int_equal(tutti_barrier(t->group), TUTTI_E_TIMEOUT);
    expect_words("monitored_barrier");
}

/* Who comes late learns what the others have been told. */
static void come_late(tt_ctx *t, const char *words)
{
    tt_await(t, TOLD, 2);
    assert_int_equal(tutti_monitored_barrier(t->group, 0, true), TUTTI_E_TIMEOUT);
    expect_words(words);
    assert_int_equal(tutti_barrier(t->group), TUTTI_E_TIMEOUT);
}

/* Ranks 1 and 3 of 4 are missing, and named, on rank 0 and on rank 2, and even on themselves. */
static void all_missing_are_named(tt_ctx *t)
{
    if (t->rank % 2 == 1) {
        come_late(t, "not arrived: ranks 1, 3");
        return;
    }
    n_have_begun(t, 2);
    assert_int_equal(tutti_monitored_barrier(t->group, SHORT_MS, true), TUTTI_E_TIMEOUT);
    expect_words("not arrived: ranks 1, 3, on rank 0 after ");
    assert_null(strstr(tutti_last_error(), "tag"));
    if (t->rank == 2) {
        expect_words("rank 2 reached it, and rank 0 did not let it go on");
        expect_words("see what rank 0 reports");
    }
    assert_finished(t);
    tt_post(t, TOLD);
}

/* Without wait_all_ranks the first one in order is named, and who was heard before. */
static void the_first_missing_is_named(tt_ctx *t)
{
    if (t->rank >= 2) {
        come_late(t, "rank 2 did not come");
        return;
    }
    n_have_begun(t, 2);
    assert_int_equal(tutti_monitored_barrier(t->group, SHORT_MS, false), TUTTI_E_TIMEOUT);
    expect_words("rank 2 did not come, on rank 0 after ");
    expect_words("of 1500; heard before it: rank 1; later ranks were not waited for");
    tt_post(t, TOLD);
}

/* Rank 2 is not late, but in another call: all are told so, it too. */
static void who_waits_in_another_call_is_told(tt_ctx *t)
{
    float x = 1.0f;

    n_have_begun(t, 3);
    assert_int_equal(t->rank == 2 ? tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, t->group)
                                  : tutti_monitored_barrier(t->group, LONG_MS, t->rank == 0),
                     TUTTI_E_TIMEOUT);
    expect_words("monitored_barrier on group '");
    expect_words("; it waits in all_reduce #1 (sum, 1 f32) on group '");
    tt_post(t, TOLD);
    tt_await(t, TOLD, 3);
}

/* Rank 2 ends the group while rank 0 waits for rank 1, which is late and nothing else. */
static void end_in(tutti_group *group, int ms, bool by_abort)
{
    const struct timespec pause = { .tv_nsec = ms * 1000000L };
    float                 x = 0.0f;

    if (by_abort) {
        nanosleep(&pause, NULL);
        OK(tutti_abort_process_group(group));
    } else {
        OK(tutti_set_timeout(group, ms));
        assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), 1, 3, group, NULL), TUTTI_E_TIMEOUT);
    }
}

/* By an abort, or a time-out of its own. Where rank 0 gets no core for long it has not come to wait by then: so there are several
 * groups. */
static void who_is_late_is_not_the_cause(tt_ctx *t)
{
    enum { TRIES = 10, PAUSE_MS = 40 };
    const int    ranks[] = { 0, 1, 2 };
    tutti_group *group = NULL;
    int          told[2] = { 0, 0 }, i;

    for (i = 0; i < TRIES; i++) {
        const bool by_abort = i % 2 == 0;

        OK(tutti_new_group(ranks, 3, NULL, &group));
        tt_post(t, GROUPS);
        tt_await(t, GROUPS, 3 * (uint32_t)(i + 1));
        if (t->rank == 0) {
            tt_post(t, COMES);
            assert_int_equal(tutti_monitored_barrier(group, 0, true), by_abort ? TUTTI_E_ABORTED : TUTTI_E_TIMEOUT);
            assert_null(strstr(tutti_last_error(), "not arrived"));
            told[by_abort] += strstr(tutti_last_error(), ", while it waited for ranks 1, 2: ") != NULL;
        } else if (t->rank == 2) {
            tt_await(t, COMES, (uint32_t)(i + 1));
            end_in(group, PAUSE_MS * (i + 1), by_abort);
        }
        tt_post(t, OVER); /* outside of tutti: who waited for rank 0 in it would make a circle */
        tt_await(t, OVER, 3 * (uint32_t)(i + 1));
        OK(tutti_destroy_process_group(group));
    }
    assert_true(t->rank != 0 || (told[0] > 0 && told[1] > 0));
}

/* 0 is the group's time-out. */
static void the_default_is_the_groups(tt_ctx *t)
{
    const int64_t began = now_ms();

    if (t->rank == 1) {
        tt_await(t, TOLD, 1);
        return;
    }
    assert_int_equal(tutti_set_timeout(t->group, 1000), TUTTI_OK); /* making the world may take longer */
    assert_int_equal(tutti_monitored_barrier(t->group, 0, false), TUTTI_E_TIMEOUT);
    assert_true(now_ms() - began >= 900);
    expect_words("of 1000; heard before it: none");
    tt_post(t, TOLD);
}

/* Rank 2's time began before rank 0's, and is up before: rank 0 tells of all that are missing then, too. */
static void who_came_first_gives_up_first(tt_ctx *t)
{
    const struct timespec pause = { .tv_sec = SHORT_MS / 1000, .tv_nsec = SHORT_MS % 1000 * 1000000L };

    if (t->rank % 2 == 1) {
        tt_await(t, TOLD, 2);
        return;
    }
    OK(tutti_set_timeout(t->group, 2 * SHORT_MS));
    n_have_begun(t, 2);
    if (t->rank == 0)
        nanosleep(&pause, NULL);
    assert_int_equal(tutti_monitored_barrier(t->group, 0, true), TUTTI_E_TIMEOUT);
    if (t->rank == 0) {
        expect_words(" of 3000, while it waited for ranks 1, 3: rank 2 reported: ");
        expect_words("rank 2 reached it, and rank 0 did not let it go on");
    }
    tt_post(t, TOLD);
    tt_await(t, TOLD, 2); /* who leaves before the other has heard would be what it hears of */
}

/* ---- what ranks disagree about ---- */

/* Every rank hears of it, from this call or, if it had its part already, from the next. */
static void expect_mismatch(tt_ctx *t, tutti_status st)
{
    if (st == TUTTI_OK)
        st = tutti_barrier(t->group);
    if (st != TUTTI_E_MISMATCH)
        fail_msg("%s: %s", tutti_status_name(st), tutti_last_error());
    expect_words("rank 1");
    assert_int_equal(tutti_barrier(t->group), TUTTI_E_MISMATCH);
    tt_post(t, TOLD);
    tt_await(t, TOLD, (uint32_t)t->size); /* nobody leaves before all have heard of it */
}

static void another_op_is_told(tt_ctx *t)
{
    float x = 1.0f;

    expect_mismatch(t, t->rank == 1 ? tutti_broadcast(TUTTI_SPAN(&x, 1), 1, t->group)
                                    : tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, t->group));
}

static void another_shape_is_told(tt_ctx *t)
{
    float x[8] = { 0 };

    expect_mismatch(t, tutti_all_reduce(TUTTI_SPAN(x, t->rank == 1 ? 8 : 7), TUTTI_SUM, t->group));
}

static void another_dtype_is_told(tt_ctx *t)
{
    float   x = 1.0f;
    int32_t y = 1;

    expect_mismatch(t, tutti_all_reduce(t->rank == 1 ? TUTTI_SPAN(&y, 1) : TUTTI_SPAN(&x, 1), TUTTI_SUM,
                                        t->group));
}

static void a_missing_rank_is_told(tt_ctx *t)
{
    float x = 1.0f;

    if (t->rank == 1) {
        tt_await(t, TOLD, 1);
        return;
    }
    assert_int_equal(tutti_set_timeout(t->group, SHORT_MS), TUTTI_OK); /* making the world may take longer */
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, t->group), TUTTI_E_TIMEOUT);
    expect_words("all_reduce #1");
    expect_words("1");
    tt_post(t, TOLD);
}

/* ---- time-outs, waiting ---- */

static void a_time_out_can_be_changed(tt_ctx *t)
{
    const int64_t began = now_ms();

    OK(tutti_barrier(t->group));
    assert_int_equal(tutti_set_timeout(t->group, -2), TUTTI_E_ARG);
    OK(tutti_set_timeout(t->group, SHORT_MS));
    n_have_begun(t, t->size); /* nobody is inside the barrier any more */
    if (t->rank == 1) {
        tt_await(t, TOLD, 1);
        return;
    }
    assert_int_equal(tutti_barrier(t->group), TUTTI_E_TIMEOUT);
    assert_true(now_ms() - began < 15000); /* not the 20 s that the group was made with */
    tt_post(t, TOLD);
}

/* A wait that runs out of time ends nothing: it can be repeated until the others have come. */
static void a_wait_can_be_repeated(tt_ctx *t)
{
    float       x = 1.0f;
    tutti_work *work = NULL;

    if (t->rank == 1)
        tt_await(t, TOLD, 1);
    OK(tutti_all_reduce_async(TUTTI_SPAN(&x, 1), TUTTI_SUM, t->group, &work));
    if (t->rank == 0) {
        assert_int_equal(tutti_work_wait_for(work, 50), TUTTI_E_TIMEOUT);
        assert_int_equal(tutti_work_wait_for(work, 50), TUTTI_E_TIMEOUT);
        expect_words("it goes on");
        tt_post(t, TOLD);
    }
    OK(tutti_work_wait(work));
    OK(tutti_work_wait(work));
    assert_true(x == (float)t->size);
    tutti_work_free(work);
}

/* Every earlier operation of the group is complete when a barrier returns. */
static void a_barrier_waits_for_earlier_works(tt_ctx *t)
{
    enum { N = 4, COUNT = 1 << 16 };
    tutti_work *works[N] = { NULL };
    float      *x[N];
    int         i;

    for (i = 0; i < N; i++) {
        x[i] = tt_floats(t, COUNT, 1.0f);
        OK(tutti_all_reduce_async(TUTTI_SPAN(x[i], COUNT), TUTTI_SUM, t->group, &works[i]));
    }
    OK(tutti_barrier(t->group));
    for (i = 0; i < N; i++) {
        assert_true(tutti_work_is_completed(works[i]));
        assert_true(x[i][COUNT - 1] == (float)t->size);
        tutti_work_free(works[i]);
    }
}

#define EVERYWHERE(body, ...)                                                                          \
    TT_TEST(body, .transports = "shm,tcp,threads", __VA_ARGS__), TT_TEST(body, .hosts = 2, __VA_ARGS__)

int main(void)
{
    static const tt_test tests[] = {
        EVERYWHERE(all_come, .ranks = 4),
        EVERYWHERE(all_missing_are_named, .ranks = 4, .waits = true),
        EVERYWHERE(the_first_missing_is_named, .ranks = 4, .waits = true),
        EVERYWHERE(who_waits_in_another_call_is_told, .ranks = 3, .waits = true),
        EVERYWHERE(who_is_late_is_not_the_cause, .ranks = 3, .waits = true),
        TT_TEST(the_default_is_the_groups, .transports = "shm,tcp", .waits = true),
        TT_TEST(who_came_first_gives_up_first, .ranks = 4, .transports = "shm,tcp", .waits = true),
        EVERYWHERE(another_op_is_told, .ranks = 4),
        EVERYWHERE(another_shape_is_told, .ranks = 4),
        EVERYWHERE(another_dtype_is_told, .ranks = 4),
        EVERYWHERE(a_missing_rank_is_told, .ranks = 2, .waits = true),
        EVERYWHERE(a_time_out_can_be_changed, .ranks = 2, .limit_ms = 40000, .waits = true),
        EVERYWHERE(a_wait_can_be_repeated, .ranks = 4, .waits = true),
        EVERYWHERE(a_barrier_waits_for_earlier_works, .ranks = 4),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}

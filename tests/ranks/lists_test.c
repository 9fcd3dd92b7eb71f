/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lists_test.c
 * Goal    ranks that make a group of different lists are told so, all of them and soon, in words that have the lists;
 *         the world goes on.
 * Method  real processes with a time-out that is much longer than the test's limit on the wait. */
#include <string.h>
#include <time.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

enum { SOON_MS = 10000 };

static int64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void expect_mismatch(const int *ranks, int n, const char *members)
{
    const int64_t began = now_ms();
    tutti_group  *group = NULL;

    assert_int_equal(tutti_new_group(ranks, n, NULL, &group), TUTTI_E_MISMATCH);
    assert_ptr_equal(group, TUTTI_NO_GROUP);
    if (strstr(tutti_last_error(), members) == NULL)
        fail_msg("'%s' is not in: %s", members, tutti_last_error());
    assert_non_null(strstr(tutti_last_error(), "next: give all ranks the same lists"));
    assert_true(now_ms() - began < SOON_MS);
}

static void expect_world_that_works(tt_ctx *t)
{
    float x[2] = { 1.0f, (float)t->rank };

    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(x, 2), TUTTI_SUM, NULL), TUTTI_OK);
    assert_true(x[0] == (float)tutti_get_world_size(NULL));
}

static void one_has_a_shorter_list(tt_ctx *t)
{
    const int all[] = { 0, 1, 2 };

    expect_mismatch(all, t->rank == 1 ? 2 : 3, t->rank == 1 ? "of ranks 0, 1 on rank 1" : "of ranks 0, 1, 2 on rank");
    expect_world_that_works(t);
}

/* Ranks 0 and 1 both take themselves for the first member: one of them finds the other's card in its place, and
 * the other waits for somebody who does not come. */
static void two_in_one_place(tt_ctx *t)
{
    const int of_0[] = { 0, 1 }, of_1[] = { 1, 2 };

    if (t->rank < 2)
        expect_mismatch(t->rank == 0 ? of_0 : of_1, 2, "ranks ");
    expect_world_that_works(t);
}

/* Who makes a group of itself alone waits for nobody: it hears of longer lists at once if they have come, otherwise in
 * its first collective. Those with a longer list hear of it in any order. */
static void one_is_alone_and_first(tt_ctx *t)
{
    const int    all[] = { 0, 1, 2 };
    tutti_group *group = NULL;
    float        x = 1.0f;

    if (t->rank == 0)
        assert_int_equal(tutti_new_group(all, 1, NULL, &group), TUTTI_OK);
    assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
    if (t->rank != 0)
        expect_mismatch(all, 3, "ranks 0, 1, 2 on rank");
    assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
    if (t->rank == 0) {
        assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, group), TUTTI_E_MISMATCH);
        assert_non_null(strstr(tutti_last_error(), "next: give all ranks the same lists"));
        assert_int_equal(tutti_barrier(group), TUTTI_E_MISMATCH); /* it is finished */
        assert_int_equal(tutti_destroy_process_group(group), TUTTI_OK);
    }
    expect_world_that_works(t);
}

/* Ranks 1 and 2 wait for rank 0 as long as the list of all three lasts; their card may be there already or not. */
static void one_is_alone(tt_ctx *t)
{
    const int    all[] = { 0, 1, 2 };
    tutti_group *group = NULL;
    tutti_status st;

    if (t->rank != 0) {
        expect_mismatch(all, 3, "ranks 0, 1, 2 on rank");
    } else {
        st = tutti_new_group(all, 1, NULL, &group);
        assert_true(st == TUTTI_OK || st == TUTTI_E_MISMATCH);
    }
    expect_world_that_works(t);
    if (t->rank == 0 && group != TUTTI_NO_GROUP)
        assert_int_equal(tutti_barrier(group), TUTTI_E_MISMATCH);
}

static void each_is_alone(tt_ctx *t)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL, *mine = NULL;

    for (int r = 0; r < t->size; r++) {
        assert_int_equal(tutti_new_group(&r, 1, NULL, &group), TUTTI_OK);
        mine = r == t->rank ? group : mine;
    }
    assert_int_equal(tutti_barrier(mine), TUTTI_OK);
    opts.use_local_synchronization = true;
    assert_int_equal(tutti_new_group(&t->rank, 1, &opts, &mine), TUTTI_OK);
    assert_int_equal(tutti_barrier(mine), TUTTI_OK);
    expect_world_that_works(t);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(one_has_a_shorter_list, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(two_in_one_place, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(two_in_one_place, .ranks = 4, .hosts = 2),
        TT_TEST(one_is_alone_and_first, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(one_is_alone, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(each_is_alone, .ranks = 3, .transports = "shm,tcp,threads"),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * split_test.c
 * Goal    a group is divided into groups by its members alone, also one that is itself a part; what is wrong
 *         is found before anything is made.
 * Method  processes and threads over shared memory and TCP; sums tell who is in a group. */
#include <string.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

static void expect_sum(tutti_group *group, int32_t mine, int32_t sum)
{
    if (tutti_all_reduce(TUTTI_SPAN(&mine, 1), TUTTI_SUM, group) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    assert_int_equal(mine, sum);
}

static bool said(const char *word)
{
    return strstr(tutti_last_error(), word) != NULL;
}

/* Six ranks in two halves, one half in two again, whose ranks are ranks of the half. */
static void parts_of_parts(tt_ctx *t)
{
    const int        low[] = { 2, 0, 1 }, high[] = { 3, 4, 5 }, ends[] = { 2, 0 };
    const int *const halves[] = { high, low };
    const int *const outer[] = { ends };
    tutti_group     *half = NULL, *part = NULL;

    assert_int_equal(tutti_split_group(t->group, halves, (const int[]){ 3, 3 }, 2, NULL, &half), TUTTI_OK);
    assert_int_equal(tutti_get_rank(half), t->rank % 3);
    assert_string_equal(tutti_get_group_name(half), t->rank < 3 ? "0:split:1.1" : "0:split:1.0");
    assert_string_equal(tutti_get_group_desc(half), "0:split:1");
    assert_int_equal(tutti_get_pg_count(), 1);
    expect_sum(half, t->rank, t->rank < 3 ? 3 : 12);
    if (t->rank < 3) { /* the others do not take part, and are not waited for */
        assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
        return;
    }
    assert_int_equal(tutti_split_group(half, outer, (const int[]){ 2 }, 1, NULL, &part), TUTTI_OK);
    if (t->rank == 4) {
        assert_ptr_equal(part, TUTTI_NON_MEMBER);
    } else {
        assert_string_equal(tutti_get_group_name(part), "0:split:1.0:split:1.0");
        assert_int_equal(tutti_get_process_group_ranks(part)[1], 5);
        expect_sum(part, t->rank, 8);
        assert_int_equal(tutti_destroy_process_group(half), TUTTI_OK); /* a part outlives its parent */
        expect_sum(part, 1, 2);
    }
    assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
}

static void colors(tt_ctx *t)
{
    tutti_group *parity = NULL, *none = NULL, *deeper = NULL;

    assert_int_equal(tutti_split_group_by_color(t->group, t->rank % 2, NULL, &parity), TUTTI_OK);
    expect_sum(parity, t->rank, t->rank % 2 == 0 ? 6 : 4);
    assert_int_equal(tutti_split_group_by_color(parity, t->rank == 4 ? -1 : 7, NULL, &deeper), TUTTI_OK);
    if (t->rank == 4)
        assert_ptr_equal(deeper, TUTTI_NON_MEMBER);
    else
        expect_sum(deeper, t->rank, t->rank % 2 == 0 ? 2 : 4);
    assert_int_equal(tutti_split_group_by_color(t->group, -1, NULL, &none), TUTTI_OK);
    assert_ptr_equal(none, TUTTI_NON_MEMBER);
    assert_int_equal(tutti_split_group_by_color(none, 0, NULL, &deeper), TUTTI_OK); /* warns */
    assert_ptr_equal(deeper, TUTTI_NON_MEMBER);
}

static tutti_status try_split(tt_ctx *t, const int *const *lists, const int *n, int n_lists)
{
    tutti_group       *group = NULL;
    const tutti_status st = tutti_split_group(t->group, lists, n, n_lists, NULL, &group);

    assert_ptr_equal(group, TUTTI_NO_GROUP);
    return st;
}

/* Every list is checked on every rank, also those behind its own. What is refused counts. */
static void what_is_wrong_is_found_first(tt_ctx *t)
{
    const int        mine[] = { t->rank }, outside[] = { t->size }, twice[] = { 0, 0 };
    const int        zero[] = { 0 }, one[] = { 1 };
    const int *const a[] = { mine, outside }, *const b[] = { zero, one, zero }, *const c[] = { twice };
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group     *group = NULL;

    assert_int_equal(try_split(t, NULL, NULL, 0), TUTTI_E_ARG);
    assert_true(said("there are no lists"));
    assert_int_equal(try_split(t, a, (const int[]){ 1, 1 }, 2), TUTTI_E_ARG);
    assert_true(said("rank 2 in list 1 is outside of 0 .. 1"));
    assert_int_equal(try_split(t, b, (const int[]){ 1, 1, 1 }, 3), TUTTI_E_ARG);
    assert_true(said("rank 0 is in list 0 and in list 2"));
    assert_int_equal(try_split(t, c, (const int[]){ 2 }, 1), TUTTI_E_ARG);
    assert_true(said("twice"));
    assert_int_equal(try_split(t, b, (const int[]){ 1, 0 }, 2), TUTTI_E_ARG);
    assert_true(said("list 1 is empty"));
    opts.use_local_synchronization = true;
    assert_int_equal(tutti_split_group(t->group, b, (const int[]){ 1, 1 }, 2, &opts, &group), TUTTI_E_ARG);
    assert_int_equal(tutti_split_group(t->group, b, (const int[]){ 1, 1 }, 2, NULL, &group), TUTTI_OK);
    assert_string_equal(tutti_get_group_name(group), t->rank == 0 ? "0:split:7.0" : "0:split:7.1");
}

/* Ranks that put others into the part of one name are told so. */
static void different_lists(tt_ctx *t)
{
    const int        pair[] = { 0, 1 }, solo[] = { 2 }, other[] = { 1, 2 };
    const int *const good[] = { pair, solo }, *const bad[] = { other };
    tutti_group     *group = NULL;
    tutti_status     st;

    if (t->rank == 0)
        assert_int_equal(tutti_split_group(t->group, good, (const int[]){ 1, 1 }, 1, NULL, &group), TUTTI_OK);
    tutti_barrier(t->group);
    if (t->rank != 1)
        return;
    st = tutti_split_group(t->group, bad, (const int[]){ 2 }, 1, NULL, &group);
    assert_int_equal(st, TUTTI_E_MISMATCH);
    assert_true(said("rank 0 made it of rank 0, and rank 1 makes it of ranks 1, 2\n"));
}

/* A name that grows too long becomes a digest, and works. */
static void deep_splits(tt_ctx *t)
{
    tutti_group *group = t->group;
    int          depth;

    for (depth = 0; depth < 9; depth++)
        assert_int_equal(tutti_split_group_by_color(group, 0, NULL, &group), TUTTI_OK);
    assert_true(strlen(tutti_get_group_name(group)) < 64);
    expect_sum(group, t->rank, 1);
    assert_ptr_equal(tutti_find_group(tutti_get_group_name(group)), group);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(parts_of_parts, .ranks = 6, .transports = "shm,tcp,threads,threads-tcp"),
        TT_TEST(colors, .ranks = 5, .transports = "shm,tcp,threads"),
        TT_TEST(what_is_wrong_is_found_first, .threads = true),
        TT_TEST(different_lists, .ranks = 3),
        TT_TEST(deep_splits, .transports = "shm,tcp,threads"),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}

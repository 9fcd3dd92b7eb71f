/* SPDX-License-Identifier: BSD-3-Clause
 *
 * subgroups_test.c
 * Goal    several groups in one call have the members, numbers and failures that are promised; groups
 *         tell their names and members; peers as ranks of the group mean the right rank.
 * Method  ranks as threads. */
#include "fake_backend.h"
#include "group/make.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/private.h>

enum { SHORT_MS = 50 };

static bool said(const char *word)
{
    return strstr(tutti_last_error(), word) != NULL;
}

/* ---- new_subgroups ---- */

static void blocks(fake_rank *r)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *mine = NULL;
    int32_t             x = r->rank;

    opts.desc = "pair";
    CHECK(tutti_new_subgroups(2, &opts, &mine) == TUTTI_OK);
    CHECK(tutti_get_pg_count() == 4); /* the world and three pairs */
    CHECK(tutti_get_world_size(mine) == 2 && tutti_get_rank(mine) == r->rank % 2);
    CHECK(tutti_get_global_rank(mine, 0) == r->rank / 2 * 2);
    CHECK(mine->id == (uint32_t)r->rank / 2 + 1);
    CHECK(strcmp(tutti_get_group_desc(mine), "pair") == 0);
    CHECK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, mine) == TUTTI_OK);
    CHECK(x == r->rank / 2 * 4 + 1);
}

static void test_blocks(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(6, blocks, NULL), 0);
}

static void blocks_refused(fake_rank *r)
{
    tutti_group_options late = TUTTI_GROUP_OPTIONS;
    tutti_group        *mine = NULL;

    CHECK(tutti_new_subgroups(3, NULL, &mine) == TUTTI_E_ARG && said("does not divide"));
    CHECK(mine == TUTTI_NO_GROUP);
    CHECK(tutti_new_subgroups(0, NULL, &mine) == TUTTI_E_ARG && said("group_size is 0"));
    CHECK(tutti_new_subgroups(8, NULL, &mine) == TUTTI_E_ARG && said("world of 4"));
    CHECK(tutti_new_subgroups(2, NULL, NULL) == TUTTI_E_ARG && said("group_out"));
    late.timeout_ms = -2;
    CHECK(tutti_new_subgroups(2, &late, &mine) == TUTTI_E_ARG && said("new_subgroups: timeout_ms"));
    CHECK(tutti_get_pg_count() == 1);
    CHECK(tutti_new_subgroups(1, NULL, &mine) == TUTTI_OK && tutti_get_world_size(mine) == 1);
    CHECK(mine->id == (uint32_t)(4 * 4 + 1 + r->rank)); /* four calls have kept their numbers */
    CHECK(tutti_new_subgroups(4, NULL, &mine) == TUTTI_OK && tutti_get_world_size(mine) == 4);
    tutti_use_group(TUTTI_NON_MEMBER);
    CHECK(tutti_new_subgroups(2, NULL, &mine) == TUTTI_E_STATE && said("TUTTI_NON_MEMBER"));
    CHECK(tutti_get_pg_count() == -1);
}

static void test_blocks_refused(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(4, blocks_refused, NULL), 0);
}

/* The group of 0 and 1 fails, that of 2 and 3 does not, and the world goes on counting alike: ranks
 * 0, 2 and 3 make another group after it. */
static void one_fails(fake_rank *r)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    const int           others[] = { 0, 2, 3 };
    tutti_group        *mine = NULL;
    tutti_group        *after = NULL;

    if (r->rank == 1)
        return;
    opts.timeout_ms = SHORT_MS;
    if (r->rank == 0) {
        CHECK(tutti_new_subgroups(2, &opts, &mine) == TUTTI_E_TIMEOUT && said("did not come"));
        CHECK(mine == TUTTI_NO_GROUP && r->world->children == NULL);
    } else {
        CHECK(tutti_new_subgroups(2, NULL, &mine) == TUTTI_OK);
    }
    CHECK(tutti_get_pg_count() == 3);
    CHECK(tutti_new_group(others, 3, NULL, &after) == TUTTI_OK);
    CHECK(tutti_barrier(after) == TUTTI_OK);
}

/* Whether those who wait for this rank in group number id are told. */
static bool tells(const fake_rank *r, int id)
{
    char              key[64];
    const char *const keys[] = { key };
    bool              there = false;

    snprintf(key, sizeof key, "%d//cpu//refused/%d", id, r->rank);
    return tutti_store_check(r->world->store, keys, 1, &there) == TUTTI_OK && there;
}

/* What comes behind a failure takes its number, and tells those who wait for this rank. */
static void the_next_ones_are_told(fake_rank *r)
{
    const int    with[] = { 0, 1 }, without[] = { 2, 3 };
    tutti_group *mine = NULL;
    tutti_status st = tti_fail(TUTTI_E_NOMEM, "no memory for a test");

    if (r->rank != 1)
        return;
    tti_group_create_next(r->world, with, 2, NULL, &st, &mine);
    tti_group_create_next(r->world, without, 2, NULL, &st, &mine);
    tti_group_create_next(r->world, NULL, 0, NULL, &st, &mine);
    CHECK(st == TUTTI_E_NOMEM && mine == NULL && tutti_get_pg_count() == 4);
    CHECK(said("no memory for a test"));
    CHECK(tells(r, 1) && !tells(r, 2) && tells(r, 3));
}

static void test_the_next_ones_are_told(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(4, the_next_ones_are_told, NULL), 0);
}

/* Rank 1 alone refuses. In whichever of the ways to cut the world in equal parts the others have cut it, they wait for it in group 1 or
 * in group 2, with one rank in each. */
static void one_refuses_blocks(fake_rank *r)
{
    const int    others[] = { 0, 2, 3 };
    tutti_group *mine = NULL, *after = NULL;

    CHECK(tutti_new_subgroups(r->rank == 1 ? 3 : 1, NULL, &mine) == (r->rank == 1 ? TUTTI_E_ARG : TUTTI_OK));
    if (r->rank == 1) {
        CHECK(said("does not divide") && mine == TUTTI_NO_GROUP);
        CHECK(tells(r, 1) && tells(r, 2) && !tells(r, 3) && !tells(r, 4));
    }
    CHECK(tutti_new_group(others, 3, NULL, &after) == TUTTI_OK && r->world->numbers == 6);
    CHECK(r->rank == 1 ? after == TUTTI_NON_MEMBER : tutti_barrier(after) == TUTTI_OK && strcmp(tutti_get_group_name(after), "5") == 0);
}

static void test_one_refuses_blocks(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(4, one_refuses_blocks, NULL), 0);
}

/* The same with lists. Who knows of one that it is in tells those of that one, else all. */
static void one_refuses_lists(fake_rank *r)
{
    const int        a[] = { 0 }, b[] = { 1, 4 }, good[] = { 2 }, others[] = { 0, 2, 3 };
    const int *const bad_lists[] = { a, b }, *const good_lists[] = { a, good };
    const int        n_bad[] = { 1, 2 }, n_good[] = { 1, 1 };
    tutti_group     *mine = NULL, *after = NULL;

    if (r->rank == 1) {
        CHECK(tutti_new_subgroups_by_enumeration(bad_lists, n_bad, 2, NULL, &mine) == TUTTI_E_ARG && said("outside"));
        CHECK(!tells(r, 1) && tells(r, 2) && !tells(r, 3));
        CHECK(tutti_new_subgroups_by_enumeration(NULL, NULL, 0, NULL, &mine) == TUTTI_E_ARG && said("no lists"));
        CHECK(!tells(r, 4) && tells(r, 5) && tells(r, 8) && !tells(r, 9));
    } else {
        CHECK(tutti_new_subgroups_by_enumeration(good_lists, n_good, 2, NULL, &mine) == TUTTI_OK);
        CHECK(tutti_new_subgroups_by_enumeration(good_lists, n_good, 2, NULL, &mine) == TUTTI_OK);
    }
    CHECK(tutti_new_group(others, 3, NULL, &after) == TUTTI_OK && r->world->numbers == 10);
    CHECK(r->rank == 1 || tutti_barrier(after) == TUTTI_OK);
}

static void test_one_refuses_lists(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(4, one_refuses_lists, NULL), 0);
}

static void test_numbers_end(void **state)
{
    tutti_group *world = fake_world_of_one(0), *mine = NULL;
    uint32_t     first = 0;

    (void)state;
    world->numbers = TTI_AGREED_FIRST - 3;
    assert_int_equal(tti_group_take_numbers(world, 4, &first), TUTTI_E_STATE);
    assert_int_equal(tti_group_take_numbers(world, 3, &first), TUTTI_OK);
    assert_true(first == TTI_AGREED_FIRST - 3);
    tutti_use_group(world);
    assert_int_equal(tutti_new_subgroups(1, NULL, &mine), TUTTI_E_STATE);
    assert_true(said("numbers of all groups"));
    tutti_use_group(NULL);
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
}

static void test_one_fails(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(4, one_fails, NULL), 0);
}

/* ---- new_subgroups_by_enumeration ---- */

static void lists(fake_rank *r)
{
    const int        a[] = { 3, 0 };
    const int        b[] = { 1 };
    const int *const both[] = { a, b };
    const int        n[] = { 2, 1 };
    tutti_group     *mine = NULL;

    CHECK(tutti_new_subgroups_by_enumeration(both, n, 2, NULL, &mine) == TUTTI_OK);
    CHECK(tutti_get_pg_count() == 3);
    if (r->rank == 2) {
        CHECK(mine == TUTTI_NON_MEMBER); /* in no list */
    } else {
        CHECK(tutti_get_world_size(mine) == (r->rank == 1 ? 1 : 2));
        CHECK(tutti_get_rank(mine) == (r->rank == 3)); /* sorted */
        CHECK(strcmp(tutti_get_group_name(mine), r->rank == 1 ? "2" : "1") == 0);
    }
}

static void test_lists(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(4, lists, NULL), 0);
}

static tutti_status enumerate(const int *a, int n_a, const int *b, int n_b)
{
    const int *const both[] = { a, b };
    const int        n[] = { n_a, n_b };
    tutti_group     *mine = NULL;
    tutti_status     st = tutti_new_subgroups_by_enumeration(both, n, 2, NULL, &mine);

    CHECK(st == TUTTI_OK || mine == TUTTI_NO_GROUP);
    return st;
}

static void lists_refused(fake_rank *r)
{
    const int    good[] = { 0, 1 };
    const int    shared[] = { 2, 1 };
    const int    twice[] = { 2, 2 };
    const int    outside[] = { 2, 3 };
    tutti_group *mine = NULL;

    (void)r;
    CHECK(enumerate(good, 2, shared, 2) == TUTTI_E_ARG);
    CHECK(said("rank 1 is in list 0 and in list 1"));
    CHECK(enumerate(good, 2, twice, 2) == TUTTI_E_ARG && said("rank 2 is in list 1 twice"));
    CHECK(enumerate(good, 2, outside, 2) == TUTTI_E_ARG && said("rank 3 in list 1 is outside"));
    CHECK(enumerate(good, 2, outside, 0) == TUTTI_E_ARG && said("list 1 is empty"));
    CHECK(enumerate(good, 2, NULL, 1) == TUTTI_E_ARG && said("list 1 is empty"));
    CHECK(tutti_new_subgroups_by_enumeration(NULL, NULL, 0, NULL, &mine) == TUTTI_E_ARG);
    CHECK(said("no lists") && mine == TUTTI_NO_GROUP);
    CHECK(tutti_new_subgroups_by_enumeration(NULL, NULL, 0, NULL, NULL) == TUTTI_E_ARG);
    CHECK(tutti_get_pg_count() == 1); /* nothing was made, also not the good list */
}

static void test_lists_refused(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(3, lists_refused, NULL), 0);
}

/* ---- queries ---- */

static void queries(fake_rank *r)
{
    const int    pair_ranks[] = { 2, 0 };
    tutti_group *pair = NULL;
    const int   *members;

    CHECK(strcmp(tutti_get_group_name(NULL), "0") == 0 && tutti_get_group_desc(NULL)[0] == '\0');
    members = tutti_get_process_group_ranks(NULL);
    CHECK(members != NULL && members[0] == 0 && members[2] == 2);
    CHECK(tutti_new_group(pair_ranks, 2, NULL, &pair) == TUTTI_OK);
    members = tutti_get_process_group_ranks(pair);
    if (r->rank == 1)
        CHECK(members == NULL && tutti_get_group_name(pair) == NULL);
    else
        CHECK(members[0] == 0 && members[1] == 2 && strcmp(tutti_get_group_name(pair), "1") == 0);
    CHECK(tutti_get_group_desc(TUTTI_NO_GROUP) == NULL);
}

static void test_queries(void **state)
{
    (void)state;
    assert_null(tutti_get_process_group_ranks(NULL)); /* no world */
    assert_null(tutti_get_group_name(NULL));
    assert_int_equal(tutti_get_pg_count(), -1);
    assert_int_equal(fake_ranks(3, queries, NULL), 0);
}

/* ---- peers as ranks of the group ---- */

/* Group ranks 0 and 1 of this group are the global ranks 1 and 3. */
static tutti_group *odd_ranks(void)
{
    const int    odd[] = { 1, 3 };
    tutti_group *group = NULL;

    CHECK(tutti_new_group(odd, 2, NULL, &group) == TUTTI_OK);
    return group;
}

static void collectives_blocking(fake_rank *r, tutti_group *odd)
{
    const int  me = tutti_get_rank(odd);
    int32_t    x = r->rank;
    int32_t    all[2] = { -1, -1 };
    tutti_span parts[2] = { TUTTI_SPAN(&all[0], 1), TUTTI_SPAN(&all[1], 1) };

    CHECK(tutti_broadcast_in_group(TUTTI_SPAN(&x, 1), 1, odd) == TUTTI_OK && x == 3);
    x = r->rank;
    CHECK(tutti_reduce_in_group(TUTTI_SPAN(&x, 1), 1, TUTTI_SUM, odd) == TUTTI_OK);
    CHECK(x == (me == 1 ? 4 : 1));
    x = r->rank * 10;
    CHECK(tutti_gather_in_group(me == 1 ? parts : NULL, me == 1 ? 2 : 0, TUTTI_SPAN(&x, 1), 1,
                                odd) == TUTTI_OK);
    CHECK(all[0] == (me == 1 ? 10 : -1) && all[1] == (me == 1 ? 30 : -1));
    CHECK(tutti_scatter_in_group(TUTTI_SPAN(&x, 1), me == 1 ? parts : NULL, me == 1 ? 2 : 0, 1,
                                 odd) == TUTTI_OK);
    CHECK(x == r->rank * 10);
}

/* Rank r of the group has r + 1 elements. */
static void uneven_blocking(fake_rank *r, tutti_group *odd)
{
    const int  me = tutti_get_rank(odd);
    const int  n = me == 1 ? 2 : 0;
    int32_t    mine[2] = { r->rank, -r->rank };
    int32_t    all[3] = { 0 };
    tutti_span parts[2] = { TUTTI_SPAN(&all[0], 1), TUTTI_SPAN(&all[1], 2) };
    tutti_span own = TUTTI_SPAN(mine, me + 1);

    CHECK(tutti_gather_v_in_group(me == 1 ? parts : NULL, n, own, 1, odd) == TUTTI_OK);
    CHECK(all[0] == (me == 1 ? 1 : 0) && all[1] == (me == 1 ? 3 : 0) && all[2] == (me == 1 ? -3 : 0));
    all[0] = 7;
    all[2] = 9;
    CHECK(tutti_scatter_v_in_group(own, me == 1 ? parts : NULL, n, 1, odd) == TUTTI_OK);
    CHECK(mine[0] == (me == 1 ? 3 : 7) && mine[1] == (me == 1 ? 9 : -1));
}

static void complete(tutti_status st, tutti_work *work)
{
    CHECK(st == TUTTI_OK && tutti_work_wait(work) == TUTTI_OK);
    tutti_work_free(work);
}

static void collectives_async(fake_rank *r, tutti_group *odd)
{
    const int    me = tutti_get_rank(odd);
    const int    n = me == 1 ? 2 : 0;
    int32_t      x = r->rank;
    int32_t      all[2] = { -1, -1 };
    tutti_span   span = TUTTI_SPAN(&x, 1);
    tutti_span   parts[2] = { TUTTI_SPAN(&all[0], 1), TUTTI_SPAN(&all[1], 1) };
    tutti_work  *work = NULL;
    tutti_status st;

    st = tutti_reduce_in_group_async(span, 1, TUTTI_SUM, odd, &work);
    complete(st, work);
    CHECK(x == (me == 1 ? 4 : 1));
    st = tutti_gather_in_group_async(me == 1 ? parts : NULL, n, span, 1, odd, &work);
    complete(st, work);
    CHECK(all[0] == (me == 1 ? 1 : -1) && all[1] == (me == 1 ? 4 : -1));
    x = 0;
    st = tutti_scatter_in_group_async(span, me == 1 ? parts : NULL, n, 1, odd, &work);
    complete(st, work);
    CHECK(x == (me == 1 ? 4 : 1));
    st = tutti_broadcast_in_group_async(span, 1, odd, &work);
    complete(st, work);
    CHECK(x == 4);
}

static void uneven_async(fake_rank *r, tutti_group *odd)
{
    const int    me = tutti_get_rank(odd);
    const int    n = me == 1 ? 2 : 0;
    int32_t      mine[2] = { r->rank, -r->rank };
    int32_t      all[3] = { 0 };
    tutti_span   parts[2] = { TUTTI_SPAN(&all[0], 1), TUTTI_SPAN(&all[1], 2) };
    tutti_work  *work = NULL;
    tutti_status st;

    st = tutti_gather_v_in_group_async(me == 1 ? parts : NULL, n, TUTTI_SPAN(mine, me + 1), 1, odd, &work);
    complete(st, work);
    CHECK(all[2] == (me == 1 ? -3 : 0));
    mine[0] = 0;
    st = tutti_scatter_v_in_group_async(TUTTI_SPAN(mine, me + 1), me == 1 ? parts : NULL, n, 1, odd, &work);
    complete(st, work);
    CHECK(mine[0] == r->rank && mine[1] == -r->rank);
    CHECK(tutti_gather_v_in_group(NULL, 0, TUTTI_SPAN(mine, 1), 2, odd) == TUTTI_E_ARG);
    CHECK(tutti_gather_v_in_group_async(NULL, 0, TUTTI_SPAN(mine, 1), -1, odd, &work) == TUTTI_E_ARG);
    CHECK(tutti_scatter_v_in_group(TUTTI_SPAN(mine, 1), NULL, 0, 2, odd) == TUTTI_E_ARG);
    CHECK(tutti_scatter_v_in_group_async(TUTTI_SPAN(mine, 1), NULL, 0, 2, odd, &work) == TUTTI_E_ARG &&
          said("scatter_v_in_group_async on"));
}

static void messages(fake_rank *r, tutti_group *odd)
{
    int32_t      x = r->rank;
    int32_t      y = -1;
    int          src = -5;
    tutti_work  *work = NULL;
    tutti_status st;

    if (tutti_get_rank(odd) == 0) {
        CHECK(tutti_send_in_group(TUTTI_SPAN(&x, 1), 1, 4, odd) == TUTTI_OK);
        st = tutti_isend_in_group(TUTTI_SPAN(&x, 1), 1, 4, odd, &work);
        complete(st, work);
        CHECK(tutti_send_in_group(TUTTI_SPAN(&x, 1), 1, 5, odd) == TUTTI_OK);
        return;
    }
    CHECK(tutti_recv_in_group(TUTTI_SPAN(&y, 1), 0, 4, odd, &src) == TUTTI_OK);
    CHECK(y == 1 && src == 1); /* a global rank */
    st = tutti_irecv_in_group(TUTTI_SPAN(&y, 1), 0, 4, odd, &work);
    CHECK(st == TUTTI_OK && tutti_work_wait(work) == TUTTI_OK && tutti_work_source_rank(work) == 1);
    tutti_work_free(work);
    CHECK(tutti_recv_in_group(TUTTI_SPAN(&y, 1), TUTTI_ANY_SOURCE, 5, odd, &src) == TUTTI_OK);
    CHECK(src == 1);
}

static void out_of_range(tutti_group *odd)
{
    int32_t     x = 0;
    tutti_span  span = TUTTI_SPAN(&x, 1);
    tutti_work *work = NULL;

    CHECK(tutti_broadcast_in_group(span, 2, odd) == TUTTI_E_ARG && said("broadcast_in_group on"));
    CHECK(said("group rank 2 is outside of 0 .. 1"));
    CHECK(tutti_broadcast_in_group_async(span, -1, odd, &work) == TUTTI_E_ARG);
    CHECK(tutti_reduce_in_group(span, 3, TUTTI_SUM, odd) == TUTTI_E_ARG);
    CHECK(tutti_reduce_in_group_async(span, 3, TUTTI_SUM, odd, &work) == TUTTI_E_ARG);
    CHECK(tutti_gather_in_group(NULL, 0, span, 2, odd) == TUTTI_E_ARG);
    CHECK(tutti_gather_in_group_async(NULL, 0, span, 2, odd, &work) == TUTTI_E_ARG);
    CHECK(tutti_scatter_in_group(span, NULL, 0, 2, odd) == TUTTI_E_ARG);
    CHECK(tutti_scatter_in_group_async(span, NULL, 0, 2, odd, &work) == TUTTI_E_ARG);
    CHECK(tutti_send_in_group(span, TUTTI_ANY_SOURCE, 0, odd) == TUTTI_E_ARG);
    CHECK(tutti_isend_in_group(span, 2, 0, odd, &work) == TUTTI_E_ARG);
    CHECK(tutti_recv_in_group(span, 2, 0, odd, NULL) == TUTTI_E_ARG);
    CHECK(tutti_irecv_in_group(span, -2, 0, odd, &work) == TUTTI_E_ARG && work == NULL);
    CHECK(tutti_broadcast_in_group(span, 0, TUTTI_NO_GROUP) == TUTTI_E_STATE);
}

static void in_group(fake_rank *r)
{
    tutti_group *odd = odd_ranks();
    int32_t      x = 7;
    int          src = 0;
    tutti_work  *work = NULL;

    if (r->rank % 2 == 1) {
        collectives_blocking(r, odd);
        collectives_async(r, odd);
        uneven_blocking(r, odd);
        uneven_async(r, odd);
        messages(r, odd);
        out_of_range(odd);
        return;
    }
    CHECK(tutti_broadcast_in_group(TUTTI_SPAN(&x, 1), 1, odd) == TUTTI_OK && x == 7);
    CHECK(tutti_recv_in_group(TUTTI_SPAN(&x, 1), 0, 4, odd, &src) == TUTTI_OK && src == -1);
    CHECK(tutti_irecv_in_group(TUTTI_SPAN(&x, 1), 0, 4, odd, &work) == TUTTI_OK);
    CHECK(tutti_work_is_completed(work));
    tutti_work_free(work);
}

static void test_in_group(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(4, in_group, NULL), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_blocks),        TEST(test_blocks_refused), TEST(test_one_fails), TEST(test_lists), TEST(test_the_next_ones_are_told),
        TEST(test_one_refuses_blocks), TEST(test_one_refuses_lists), TEST(test_numbers_end),
        TEST(test_lists_refused), TEST(test_queries),        TEST(test_in_group),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

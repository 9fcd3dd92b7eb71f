/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll_agree_test.c
 * Goal    calls that wait for nobody, or have no elements, are compared all the same: a mismatch is an
 *         error on all members, some calls later at the latest (TTI_HOST_AHEAD). And members who come and go give all
 *         shared memory back, also where a group could not be made.
 * Method  Ranks are threads on one host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "coll/coll_ranks.h"
#include "coll/host/channel.h"
#include "watch/control.h"

/* ---- calls that differ ----------------------------------------------------------------------- */

enum { BIG = 100 * 1000 }; /* elements: several rounds */

/* Of rooted_call(); set while no ranks run. */
static tutti_call_kind rooted_kind;
static int64_t         rooted_count;

static tutti_status rooted_call(tt_rank *t, int root)
{
    int32_t     *data = calloc(BIG * (size_t)(TT_RANKS_MAX + 2), sizeof *data);
    void        *list[TT_RANKS_MAX];
    tutti_call   call = tt_call(t, rooted_kind, TUTTI_I32, rooted_count);
    tutti_status st;
    int          r;

    if (data == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the test's elements");
    for (r = 0; r < TT_RANKS_MAX; r++)
        list[r] = data + BIG * (size_t)(r + 2);
    call.root = root;
    call.in = data;
    call.out = data + BIG;
    call.list = root == t->rank ? list : NULL;
    st = tti_coll_run(t->coll, &call);
    free(data);
    return st;
}

static void check_mismatch(tt_rank *t, tutti_status st)
{
    TT_CHECK(t, st == TUTTI_E_MISMATCH);
    snprintf(t->said, sizeof t->said, "%s", tutti_last_error());
    tt_all_here(t);
}

/* What the last rank believes to be the root. */
static int root_of(const tt_rank *t)
{
    return t->rank == t->size - 1 ? t->rank : 0;
}

/* The calls that follow are more of them: whoever waits for nobody in it gets no further ahead than so many. */
static void roots_differ(tt_rank *t)
{
    tutti_status st = rooted_call(t, 0);
    int          n;

    TT_CHECK(t, st == TUTTI_OK);
    tt_all_here(t); /* whoever were still in it would hear of the next one's end there */
    for (n = 0; n <= TTI_HOST_AHEAD && st == TUTTI_OK; n++)
        st = rooted_call(t, root_of(t));
    check_mismatch(t, st);
}

static void roots_differ_before_a_barrier(tt_rank *t)
{
    const tutti_status st = rooted_call(t, root_of(t));

    check_mismatch(t, st == TUTTI_OK ? tt_barrier(t) : st);
}

/* Whether text quotes call number seq with both roots. */
static bool quotes(const char *text, int size, unsigned seq)
{
    char call[64], other[64];

    snprintf(call, sizeof call, ": %s #%u (", tti_call_kind_name(rooted_kind), seq);
    snprintf(other, sizeof other, "i32, root %d)\n", size - 1);
    return strstr(text, "called different things") != NULL && strstr(text, call) != NULL &&
           strstr(text, "i32, root 0)\n") != NULL && strstr(text, other) != NULL;
}

static void expect_quotes(const tt_rank *ranks, int size, unsigned seq)
{
    int n = 0, r;

    for (r = 0; r < size; r++)
        n += quotes(ranks[r].said, size, seq);
    if (n == 0)
        fail_msg("%s of %lld, %d ranks: nobody quotes both calls: %s", tti_call_kind_name(rooted_kind),
                 (long long)rooted_count, size, ranks[0].said);
}

static void two_roots(tutti_call_kind kind)
{
    static const int64_t counts[] = { 0, 1, BIG };
    tt_rank              ranks[TT_RANKS_MAX];
    size_t               c;
    int                  size;

    rooted_kind = kind;
    for (c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        rooted_count = counts[c];
        for (size = 2; size <= 3; size++) {
            tt_run(size, false, roots_differ, ranks);
            expect_quotes(ranks, size, 2);
            tt_run(size, false, roots_differ_before_a_barrier, ranks);
            expect_quotes(ranks, size, 1);
        }
    }
}

static void two_roots_of_a_broadcast(void **state)
{
    (void)state;
    two_roots(TUTTI_CALL_BROADCAST);
}

static void two_roots_of_a_scatter(void **state)
{
    (void)state;
    two_roots(TUTTI_CALL_SCATTER);
}

static void two_roots_of_a_gather(void **state)
{
    (void)state;
    two_roots(TUTTI_CALL_GATHER);
}

static void two_roots_of_a_reduce(void **state)
{
    (void)state;
    two_roots(TUTTI_CALL_REDUCE);
}

/* More calls without elements than a board remembers; the third is not the same. */
static void many_calls_without_elements(tt_rank *t)
{
    tutti_status st = TUTTI_OK;
    int          n = 0;

    while (n < 3 * TTI_CALL_RING && st == TUTTI_OK) {
        st = rooted_call(t, n == 2 ? root_of(t) : 0);
        n += st == TUTTI_OK;
    }
    TT_CHECK(t, n <= 2 + TTI_HOST_AHEAD);
    check_mismatch(t, st);
}

static void calls_without_elements_are_compared(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    rooted_kind = TUTTI_CALL_BROADCAST;
    rooted_count = 0;
    tt_run(3, false, many_calls_without_elements, ranks);
    expect_quotes(ranks, 3, 3);
}

/* Rank 0 has nothing to give where rank 1 has. */
static void one_has_no_elements(tt_rank *t)
{
    float        data[4] = { 0 };
    tutti_call   call = tt_call(t, TUTTI_CALL_ALL_REDUCE, TUTTI_F32, t->rank == 0 ? 0 : 4);
    tutti_status st;

    call.in = call.out = data;
    st = tti_coll_run(t->coll, &call);
    check_mismatch(t, st == TUTTI_OK ? tt_barrier(t) : st);
}

static void nothing_is_not_something(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(2, false, one_has_no_elements, ranks);
    assert_non_null(strstr(ranks[0].said, "all_reduce #1 (sum, 0 f32)"));
}

/* A root may end calls before the others come, and waits at last. */
static void the_others_do_not_come(tt_rank *t)
{
    int n;

    if (t->rank == 0) {
        for (n = 0; n < TTI_HOST_AHEAD; n++)
            TT_CHECK(t, rooted_call(t, 0) == TUTTI_OK);
        t->deadline_ns = tt_in_ms(100);
        TT_CHECK(t, rooted_call(t, 0) == TUTTI_E_TIMEOUT);
        snprintf(t->said, sizeof t->said, "%s", tutti_last_error());
    }
    tt_all_here(t);
}

static void who_has_not_entered_is_named(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];
    char    call[96];

    (void)state;
    rooted_kind = TUTTI_CALL_BROADCAST;
    rooted_count = 1;
    tt_run(2, false, the_others_do_not_come, ranks);
    snprintf(call, sizeof call, "broadcast #%d (1 i32, root 0) on group 'test' timed out", TTI_HOST_AHEAD + 1);
    assert_non_null(strstr(ranks[0].said, call));
    assert_non_null(strstr(ranks[0].said, "not arrived: rank 1; rank 1 ("));
    assert_non_null(strstr(ranks[0].said, "has entered no call yet"));
}

/* ---- members who come and go ----------------------------------------------------------------- */

enum { ROUNDS = 3000, ALONE = 1000, SPARE_MAX = 8 };

static size_t regions_of(const tt_rank *t)
{
    return tti_heap_regions(tti_mesh_heap(t->mesh, t->rank));
}

static tutti_status sum_on(tt_rank *t, tti_coll *coll)
{
    float      data[1] = { 1.0f };
    tutti_call call = tt_call(t, TUTTI_CALL_ALL_REDUCE, TUTTI_F32, 1);

    call.seq = 1;
    call.in = call.out = data;
    return tti_coll_run(coll, &call);
}

/* Many more than a heap has room for, and nobody waits for the others to close their ends. */
static void make_and_destroy(tt_rank *t)
{
    const size_t before = regions_of(t);
    tti_coll    *group;
    uint32_t     i;

    for (i = 1; i <= ROUNDS && t->failure[0] == '\0'; i++) {
        group = NULL;
        TT_CHECK(t, tt_open(t, i, tt_in_ms(TT_LIMIT_MS), &group) == TUTTI_OK);
        if (group != NULL && i % 3 != 0)
            TT_CHECK(t, sum_on(t, group) == TUTTI_OK);
        tti_coll_close(group);
        TT_CHECK(t, regions_of(t) <= before + SPARE_MAX);
    }
    tt_all_here(t);
}

static void groups_that_are_destroyed_leave_nothing(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(2, false, make_and_destroy, ranks);
}

/* Rank 1 does not come. */
static void make_alone(tt_rank *t)
{
    const size_t before = regions_of(t);
    tti_coll    *group = NULL;
    uint32_t     i;

    for (i = 1; t->rank == 0 && i <= ALONE; i++) {
        TT_CHECK(t, tt_open(t, i, tt_in_ms(-1), &group) == TUTTI_E_TIMEOUT);
        TT_CHECK(t, regions_of(t) == before);
    }
    tt_all_here(t);
    if (t->rank == 1) { /* long after rank 0 has given up */
        TT_CHECK(t, tt_open(t, ALONE, t->deadline_ns, &group) == TUTTI_E_PEER);
        TT_CHECK(t, strstr(tutti_last_error(), "rank 0 (") != NULL);
        TT_CHECK(t, strstr(tutti_last_error(), "gave up while the group was made\n") != NULL);
        TT_CHECK(t, regions_of(t) == before);
    }
    tt_all_here(t);
}

static void groups_that_were_not_made_leave_nothing(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(2, false, make_alone, ranks);
}

/* Ranks 0 and 1 give up, and rank 2 comes after that: it would find all there. */
static void come_late(tt_rank *t)
{
    tti_coll *group = NULL;

    if (t->rank != 2)
        TT_CHECK(t, tt_open(t, 1, tt_in_ms(-1), &group) == TUTTI_E_TIMEOUT);
    tt_all_here(t);
    if (t->rank == 2) {
        TT_CHECK(t, tt_open(t, 1, t->deadline_ns, &group) == TUTTI_E_PEER);
        TT_CHECK(t, strstr(tutti_last_error(), " gave up while the group was made\n") != NULL);
    }
    tt_all_here(t);
    TT_CHECK(t, tt_open(t, 2, t->deadline_ns, &group) == TUTTI_OK); /* the next one is another */
    tt_all_here(t);
    tti_coll_close(group);
}

static void who_comes_late_hears_who_gave_up(void **state)
{
    static const int two_hosts[] = { 0, 0, 1 };
    const tt_setting setting = { .machine = &tti_machine_default, .hosts = two_hosts };
    tt_rank          ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(3, false, come_late, ranks);
    tt_run(3, true, come_late, ranks);
    tt_run_in(&setting, 3, false, come_late, ranks);
}

/* Rank 0 destroys a group that rank 1 still uses: what rank 1 looks at stays what it was. */
static void destroyed_under_a_member(tt_rank *t)
{
    const size_t before = regions_of(t);
    tti_coll    *old = NULL, *fresh = NULL;

    TT_CHECK(t, tt_open(t, 1, t->deadline_ns, &old) == TUTTI_OK);
    TT_CHECK(t, old != NULL && sum_on(t, old) == TUTTI_OK);
    if (t->rank == 0)
        tti_coll_close(old);
    tt_all_here(t);
    TT_CHECK(t, regions_of(t) == before + 1);
    TT_CHECK(t, tt_open(t, 2, t->deadline_ns, &fresh) == TUTTI_OK);
    TT_CHECK(t, fresh != NULL && sum_on(t, fresh) == TUTTI_OK);
    if (t->rank == 1) {
        tutti_call call = tt_call(t, TUTTI_CALL_BARRIER, TUTTI_U8, 0);

        call.seq = 2;
        call.deadline_ns = tt_in_ms(50);
        TT_CHECK(t, tti_coll_run(old, &call) == TUTTI_E_TIMEOUT);
        tti_coll_close(old);
    }
    tt_all_here(t);
    tti_coll_close(fresh);
    tt_all_here(t);
    TT_CHECK(t, tt_open(t, 3, t->deadline_ns, &fresh) == TUTTI_OK);
    TT_CHECK(t, regions_of(t) == before + 1);
    tti_coll_close(fresh);
    tt_all_here(t);
}

static void a_region_stays_while_it_is_read(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(2, false, destroyed_under_a_member, ranks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_roots_of_a_broadcast),
        cmocka_unit_test(two_roots_of_a_scatter),
        cmocka_unit_test(two_roots_of_a_gather),
        cmocka_unit_test(two_roots_of_a_reduce),
        cmocka_unit_test(calls_without_elements_are_compared),
        cmocka_unit_test(nothing_is_not_something),
        cmocka_unit_test(who_has_not_entered_is_named),
        cmocka_unit_test(groups_that_are_destroyed_leave_nothing),
        cmocka_unit_test(groups_that_were_not_made_leave_nothing),
        cmocka_unit_test(who_comes_late_hears_who_gave_up),
        cmocka_unit_test(a_region_stays_while_it_is_read),
    };

    return cmocka_run_group_tests_name("coll_agree", tests, NULL, NULL);
}

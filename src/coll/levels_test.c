/* SPDX-License-Identifier: BSD-3-Clause
 *
 * levels_test.c
 * Goal    Which members share a host is told right for groups of any ranks. A call in two levels that cannot go on ends
 *         soon, on all members of all hosts, with a status and words of the call itself: another call on one member, a
 *         member that does not come, or goes, an abort, a failure of a message. What goes between hosts with equally many
 *         members is told as parts of one size.
 * Method  The layout, and what goes between hosts, are arithmetic. Ranks are threads that take themselves for members of several hosts, over sockets;
 *         deadlines are minutes where the test asks that a call ends long before. Values are coll_values_test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "coll/coll_ranks.h"
#include "coll/level/levels.h"
#include "coll/level/shapes.h"

/* ---- layouts --------------------------------------------------------------------------------------- */

static void hosts_are_numbered_as_they_come(void **state)
{
    static const int marks[] = { 7, 3, 7, 7, 0, 3 };
    tti_hosts       layout;

    (void)state;
    assert_int_equal(tti_hosts_make(marks, 8, 6, &layout), TUTTI_OK);
    assert_int_equal(layout.n_hosts, 3);
    assert_int_equal(layout.least, 1);
    assert_int_equal(layout.most, 3);
    assert_int_equal(layout.host[4], 2);
    assert_int_equal(layout.place[3], 2);
    assert_int_equal(layout.place[5], 1);
    assert_int_equal(tti_hosts_local(&layout, 0), 3);
    assert_int_equal(tti_hosts_rank(&layout, 0, 1), 2);
    assert_int_equal(tti_hosts_rank(&layout, 1, 1), 5);
    assert_int_equal(tti_hosts_rank(&layout, 2, 0), 4);
    assert_true(tti_hosts_has_levels(&layout));
    tti_hosts_release(&layout);
}

/* Drawn: every rank is found where its numbers say, and members of a host are in rank order. */
static void every_rank_has_its_place(void **state)
{
    uint32_t seed = 3;
    int      marks[40], round, r, n_ranks;

    (void)state;
    for (round = 0; round < 300; round++) {
        tti_hosts layout;

        n_ranks = 1 + round % 40;
        for (r = 0; r < n_ranks; r++) {
            seed = seed * 1664525u + 1013904223u;
            marks[r] = (int)(seed >> 8) % (1 + round % 9);
        }
        assert_int_equal(tti_hosts_make(marks, 9, n_ranks, &layout), TUTTI_OK);
        for (r = 0; r < n_ranks; r++) {
            assert_int_equal(tti_hosts_rank(&layout, layout.host[r], layout.place[r]), r);
            assert_int_equal(marks[tti_hosts_rank(&layout, layout.host[r], 0)], marks[r]);
            assert_true(tti_hosts_rank(&layout, layout.host[r], 0) <= r);
            assert_true(layout.place[r] < layout.most);
        }
        for (r = 1; r < layout.n_hosts; r++)
            assert_true(tti_hosts_rank(&layout, r - 1, 0) < tti_hosts_rank(&layout, r, 0));
        assert_int_equal(tti_hosts_has_levels(&layout), layout.n_hosts > 1 && layout.n_hosts < n_ranks);
        tti_hosts_release(&layout);
    }
}

/* ---- what goes across ------------------------------------------------------------------------------ */

enum { PART = 5 };

/* The call between the leaders of hosts, of one whose parts have PART elements each. */
static tutti_call led_across(const int *marks, int n_hosts, int n_ranks, const int64_t *list_counts)
{
    tutti_call call = { .kind = TUTTI_CALL_REDUCE_SCATTER, .dtype = TUTTI_F32, .op = TUTTI_SUM, .root = -1, .count = PART };
    tutti_call across = { .kind = TUTTI_CALL_REDUCE_SCATTER, .dtype = TUTTI_F32 };
    tti_levels levels = { .host = 0 };
    int64_t    counts[TT_RANKS_MOST];
    void      *list[TT_RANKS_MOST];
    float      scratch[TT_RANKS_MOST * PART];
    tti_flow   flow = { .levels = &levels, .call = &call, .carriers = 1, .root_host = -1, .element = sizeof(float) };
    tti_flight flight = { .count = PART, .scratch = (char *)scratch, .counts = counts, .list = list };
    tti_piece  piece = { &flow, &flight };

    call.n_parts = list_counts != NULL ? n_ranks : 0;
    call.list_counts = list_counts;
    assert_int_equal(tti_hosts_make(marks, n_hosts, n_ranks, &levels.layout), TUTTI_OK);
    tti_shape_of(call.kind)->across(&piece, &across);
    tti_hosts_release(&levels.layout);
    assert_true((across.list_counts == NULL) == (across.n_parts == 0));
    across.list = NULL; /* they were this function's */
    across.list_counts = NULL;
    return across;
}

/* Hosts with as many members each have parts of one size: plans that need that are chosen for it, and may be taken. */
static void even_hosts_have_even_parts_across(void **state)
{
    static const int     even[] = { 0, 0, 1, 1, 2, 2 }, uneven[] = { 0, 0, 1 };
    static const int64_t listed[] = { PART, PART, PART, PART, PART, PART };
    tutti_call           across = led_across(even, 3, 6, NULL);

    (void)state;
    assert_int_equal(across.n_parts, 0);
    assert_int_equal(across.count, 2 * PART);
    across = led_across(uneven, 2, 3, NULL);
    assert_int_equal(across.n_parts, 2);
    assert_int_equal(across.count, 3 * PART);
    across = led_across(even, 3, 6, listed);
    assert_int_equal(across.n_parts, 3);
    assert_int_equal(across.count, 6 * PART);
}

/* ---- failures -------------------------------------------------------------------------------------- */

enum { SMALL = 1000, LARGE = 3000000, SOON_MS = 20000 };

static int64_t count_of_all;
static int     culprit; /* the rank that does something else */

static bool has_root(tutti_call_kind kind)
{
    return kind == TUTTI_CALL_BROADCAST || kind == TUTTI_CALL_REDUCE || kind == TUTTI_CALL_GATHER ||
           kind == TUTTI_CALL_SCATTER;
}

/* A block of as many elements for each rank. */
typedef struct block_row {
    const void *ins[TT_RANKS_MOST];
    int64_t     gives[TT_RANKS_MOST], wants[TT_RANKS_MOST];
} block_row;

static void as_blocks(tutti_call *call, block_row *row, const float *from, int size, int64_t count)
{
    int r;

    for (r = 0; r < size; r++) {
        row->ins[r] = from;
        row->gives[r] = row->wants[r] = count;
    }
    call->count = 0;
    call->n_parts = size;
    call->ins = row->ins;
    call->in_counts = row->gives;
    call->list_counts = row->wants;
}

/* One buffer to write; what blocks are read from is beside it. odd: whom this rank gives one element more in all_to_all than
 * that one expects; -1: nobody. */
static tutti_status do_call_with(tt_rank *t, tutti_call_kind kind, int64_t count, int64_t deadline_ns, int odd)
{
    float       *data = calloc(2 * (size_t)count + 2, sizeof *data), *from = data + count + 1;
    void        *list[TT_RANKS_MOST];
    tutti_call   call = tt_call(t, kind, TUTTI_F32, count);
    block_row    row;
    tutti_status st;
    int          r;

    if (data == NULL)
        return TUTTI_E_NOMEM;
    for (r = 0; r < t->size; r++)
        list[r] = data;
    if (has_root(kind))
        call.root = t->size - 1;
    call.list = list;
    call.in = call.out = data;
    call.deadline_ns = deadline_ns;
    if (kind == TUTTI_CALL_ALL_TO_ALL)
        as_blocks(&call, &row, from, t->size, count);
    if (odd >= 0)
        row.gives[odd]++;
    st = tti_coll_run(t->coll, &call);
    snprintf(t->said, sizeof t->said, "%s", st == TUTTI_OK ? "" : tutti_last_error());
    free(data);
    return st;
}

static tutti_status do_call(tt_rank *t, tutti_call_kind kind, int64_t count, int64_t deadline_ns)
{
    return do_call_with(t, kind, count, deadline_ns, -1);
}

static void check_ended(tt_rank *t, tutti_status st, tutti_status want, int64_t begin_ns)
{
    char first[sizeof t->said];

    TT_CHECK(t, st == want);
    TT_CHECK(t, tti_port_now(tti_port_system()) < begin_ns + SOON_MS * TTI_MS);
    snprintf(first, sizeof first, "%s", tutti_last_error());
    TT_CHECK(t, tt_barrier(t) == want);
    TT_CHECK(t, strcmp(first, tutti_last_error()) == 0);
}

typedef struct where {
    int size;
    int hosts[TT_RANKS_MOST];
} where;

static const where layouts[] = {
    { 4, { 0, 0, 1, 1 } },
    { 5, { 0, 1, 0, 1, 0 } },
    { 6, { 0, 1, 1, 2, 2, 2 } },
};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

static void run_in(const where *at, tt_body *body, tt_rank *ranks)
{
    const tt_setting setting = { .machine = &tti_machine_default, .cores = 64, .hosts = at->hosts };

    tt_run_in(&setting, at->size, false, body, ranks);
}

/* Every member of every layout once. */
static void by_every_culprit(int64_t count, tt_body *body, const char *says)
{
    tt_rank ranks[TT_RANKS_MOST];
    int     i, r;

    count_of_all = count;
    for (i = 0; i < LAYOUTS; i++)
        for (culprit = 0; culprit < layouts[i].size; culprit++) {
            run_in(&layouts[i], body, ranks);
            for (r = 0; r < layouts[i].size && says != NULL; r++)
                if (r != culprit && strstr(ranks[r].said, says) == NULL)
                    fail_msg("'%s' is not in what rank %d of layout %d says, culprit %d: %s", says, r, i, culprit,
                             ranks[r].said);
        }
}

/* Everything works, and nobody is inside the barrier any more that showed it: a failure of the next call would end it. */
static void all_begin(tt_rank *t)
{
    TT_CHECK(t, tt_barrier(t) == TUTTI_OK);
    tt_all_here(t);
}

static void another_count(tt_rank *t)
{
    const int64_t begin_ns = tt_in_ms(0);

    all_begin(t);
    check_ended(t, do_call(t, TUTTI_CALL_ALL_REDUCE, count_of_all + (t->rank == culprit), t->deadline_ns), TUTTI_E_MISMATCH,
                begin_ns);
    tt_all_here(t);
}

static void another_kind(tt_rank *t)
{
    const int64_t   begin_ns = tt_in_ms(0);
    tutti_call_kind kind = t->rank == culprit ? TUTTI_CALL_ALL_GATHER : TUTTI_CALL_ALL_REDUCE;

    check_ended(t, do_call(t, kind, count_of_all, t->deadline_ns), TUTTI_E_MISMATCH, begin_ns);
    tt_all_here(t);
}

static void different_calls_are_told_on_all_hosts(void **state)
{
    (void)state;
    by_every_culprit(SMALL, another_count, "all_reduce #2 (sum, ");
    by_every_culprit(LARGE, another_count, "all_reduce #2 (sum, ");
    by_every_culprit(SMALL, another_kind, "all_reduce #1 (sum, ");
}

static void culprit_stays_away(tt_rank *t)
{
    all_begin(t);
    if (t->rank != culprit)
        check_ended(t, do_call(t, TUTTI_CALL_ALL_REDUCE, count_of_all, tt_in_ms(300)), TUTTI_E_TIMEOUT, tt_in_ms(0));
    tt_all_here(t);
}

/* Who has left is seen, whatever the others wait for. */
static void culprit_leaves(tt_rank *t)
{
    const int64_t begin_ns = tt_in_ms(0);

    all_begin(t);
    if (t->rank == culprit)
        tt_leave(t);
    else
        check_ended(t, do_call(t, TUTTI_CALL_ALL_REDUCE, count_of_all, t->deadline_ns), TUTTI_E_PEER, begin_ns);
}

static void who_does_not_come_is_named(void **state)
{
    (void)state;
    by_every_culprit(SMALL, culprit_stays_away, "all_reduce #2 (sum, 1000 f32)");
    by_every_culprit(LARGE, culprit_stays_away, "all_reduce #2 (sum, 3000000 f32)");
}

static void who_left_is_named(void **state)
{
    (void)state;
    by_every_culprit(SMALL, culprit_leaves, "all_reduce #2 (sum, 1000 f32)");
    by_every_culprit(LARGE, culprit_leaves, "all_reduce #2 (sum, 3000000 f32)");
}

static void culprit_fails(tt_rank *t)
{
    const int64_t begin_ns = tt_in_ms(0);

    all_begin(t);
    if (t->rank == culprit) {
        tti_fail(TUTTI_E_NETWORK, "a message of rank %d went wrong", t->rank);
        tti_coll_fail(t->coll, TUTTI_E_NETWORK);
    }
    check_ended(t, do_call(t, TUTTI_CALL_ALL_REDUCE, count_of_all, t->deadline_ns), TUTTI_E_NETWORK, begin_ns);
    tt_all_here(t);
}

static void a_failed_message_ends_calls_on_all_hosts(void **state)
{
    (void)state;
    by_every_culprit(SMALL, culprit_fails, "went wrong");
    by_every_culprit(LARGE, culprit_fails, "went wrong");
}

/* The other members of its host tell those of the others; a member that is alone on its host tells nobody. */
static void culprit_aborts(tt_rank *t)
{
    const int64_t begin_ns = tt_in_ms(0);

    all_begin(t);
    if (t->rank == culprit)
        tti_coll_abort(t->coll);
    check_ended(t, do_call(t, TUTTI_CALL_ALL_REDUCE, count_of_all, t->deadline_ns), TUTTI_E_ABORTED, begin_ns);
    tt_all_here(t);
}

static void *abort_it(void *coll)
{
    tti_coll_abort(coll);
    return NULL;
}

/* A thread of the culprit's ends its own call, in whichever part it is; the last rank does not come. */
static void own_thread_aborts(tt_rank *t)
{
    const int64_t begin_ns = tt_in_ms(0);
    pthread_t     thread;

    all_begin(t);
    if (t->rank == culprit) {
        TT_CHECK(t, pthread_create(&thread, NULL, abort_it, t->coll) == 0);
        check_ended(t, do_call(t, TUTTI_CALL_ALL_REDUCE, count_of_all, t->deadline_ns), TUTTI_E_ABORTED, begin_ns);
        pthread_join(thread, NULL);
    }
    tt_all_here(t);
}

static void an_abort_ends_calls(void **state)
{
    tt_rank ranks[TT_RANKS_MOST];

    (void)state;
    count_of_all = LARGE;
    for (culprit = 0; culprit < layouts[0].size; culprit++)
        run_in(&layouts[0], culprit_aborts, ranks);
    by_every_culprit(LARGE, own_thread_aborts, NULL);
}

/* Whatever a member waits for: to collect, to spread, for another host, for the root. */
static void culprit_leaves_other_kinds(tt_rank *t)
{
    static const tutti_call_kind kinds[] = { TUTTI_CALL_BROADCAST, TUTTI_CALL_REDUCE, TUTTI_CALL_ALL_GATHER,
                                             TUTTI_CALL_REDUCE_SCATTER };
    const int64_t                begin_ns = tt_in_ms(0);
    tutti_status                 st;

    all_begin(t);
    if (t->rank == culprit) {
        tt_leave(t);
        return;
    }
    st = do_call(t, kinds[(culprit + t->size) % 4], count_of_all, t->deadline_ns);
    if (st == TUTTI_OK) /* it needed nothing of who is gone */
        st = tt_barrier(t);
    check_ended(t, st, TUTTI_E_PEER, begin_ns);
}

static void other_kinds_end_too(void **state)
{
    (void)state;
    by_every_culprit(LARGE / 4, culprit_leaves_other_kinds, NULL);
}

/* ---- to and from a root, and blocks ---------------------------------------------------------------- */

static void ask_for(const char *name)
{
    char wish[200];

    snprintf(wish, sizeof wish, "gather=%s,scatter=%s,all_to_all=%s", name, name, name);
    assert_int_equal(setenv("TUTTI_ALGO", wish, 1), 0);
}

static const char *const forms[] = { "two_level", "leaders" };
static tutti_call_kind    kind_of_all;

enum { FROM_EACH = 3000 }; /* elements of a block that goes by itself */

/* All are connected: who leaves is seen to go, and is not somebody who does not answer a hello. */
static void culprit_leaves_moves(tt_rank *t)
{
    const int64_t begin_ns = tt_in_ms(0);
    tutti_status  st;

    TT_CHECK(t, do_call(t, TUTTI_CALL_ALL_TO_ALL, FROM_EACH, t->deadline_ns) == TUTTI_OK);
    all_begin(t);
    if (t->rank == culprit) {
        tt_leave(t);
        return;
    }
    st = do_call(t, kind_of_all, count_of_all, t->deadline_ns);
    if (st == TUTTI_OK) /* it needed nothing of who is gone */
        st = tt_barrier(t);
    check_ended(t, st, TUTTI_E_PEER, begin_ns);
}

static void moves_of_who_has_left_end(void **state)
{
    static const tutti_call_kind kinds[] = { TUTTI_CALL_GATHER, TUTTI_CALL_SCATTER, TUTTI_CALL_ALL_TO_ALL };
    int                          i, k;

    (void)state;
    for (i = 0; i < 2; i++)
        for (k = 0; k < 3; k++) {
            ask_for(forms[i]);
            kind_of_all = kinds[k];
            by_every_culprit(i == 0 ? SMALL : LARGE / 4, culprit_leaves_moves, NULL);
            assert_int_equal(unsetenv("TUTTI_ALGO"), 0);
        }
}

/* What it gives the next rank is one more than that expects: both say so. Others may have all they need by then. */
static void culprit_gives_more(tt_rank *t)
{
    const int64_t begin_ns = tt_in_ms(0);
    const int     taker = (culprit + 1) % t->size;
    char          words[80];
    tutti_status  st;

    all_begin(t);
    snprintf(words, sizeof words, "rank %d gives rank %d %lld elements, which expects %lld", culprit, taker,
             (long long)count_of_all + 1, (long long)count_of_all);
    st = do_call_with(t, TUTTI_CALL_ALL_TO_ALL, count_of_all, t->deadline_ns, t->rank == culprit ? taker : -1);
    TT_CHECK(t, st != TUTTI_OK || (t->rank != culprit && t->rank != taker));
    TT_CHECK(t, st == TUTTI_OK || strstr(t->said, words) != NULL);
    if (st == TUTTI_OK)
        st = tt_barrier(t);
    check_ended(t, st, TUTTI_E_MISMATCH, begin_ns);
    tt_all_here(t);
}

/* On one host, and on two; short blocks and long ones; by whoever carries them. */
static void blocks_that_do_not_fit_are_told_on_all_hosts(void **state)
{
    int i;

    (void)state;
    for (i = 0; i < 2; i++) {
        ask_for(forms[i]);
        by_every_culprit(SMALL, culprit_gives_more, NULL);
        by_every_culprit(LARGE / 100, culprit_gives_more, NULL);
        assert_int_equal(unsetenv("TUTTI_ALGO"), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_are_numbered_as_they_come),
        cmocka_unit_test(every_rank_has_its_place),
        cmocka_unit_test(even_hosts_have_even_parts_across),
        cmocka_unit_test(different_calls_are_told_on_all_hosts),
        cmocka_unit_test(who_does_not_come_is_named),
        cmocka_unit_test(who_left_is_named),
        cmocka_unit_test(a_failed_message_ends_calls_on_all_hosts),
        cmocka_unit_test(an_abort_ends_calls),
        cmocka_unit_test(other_kinds_end_too),
        cmocka_unit_test(moves_of_who_has_left_end),
        cmocka_unit_test(blocks_that_do_not_fit_are_told_on_all_hosts),
    };

    return cmocka_run_group_tests_name("levels", tests, NULL, NULL);
}

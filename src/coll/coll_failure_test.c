/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll_failure_test.c
 * Goal    a collective that cannot go on ends soon, on all members, with a status and a text that
 *         say why: different calls, a rank that does not come, an abort, a member that left, a member that tells. Later
 *         calls fail the same way. A member that left after its part was done harms nobody.
 * Method  Ranks are threads. Where a member must be inside of a call, the call's deadline is a
 *         minute, and the test asks that it ends long before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "coll/coll_ranks.h"

/* IN_VAIN_MS: what those have who wait for one that does not come. Every other one has to be in the call by then, or is named, too. */
enum { COUNT = 1000, SOON_MS = 10000, IN_VAIN_MS = 600 };

static tutti_status all_reduce(tt_rank *t, int64_t count, int64_t deadline_ns)
{
    float       *data = calloc((size_t)count + 1, sizeof *data);
    tutti_call   call = tt_call(t, TUTTI_CALL_ALL_REDUCE, TUTTI_F32, count);
    tutti_status st;

    call.in = call.out = data;
    call.deadline_ns = deadline_ns;
    st = data == NULL ? TUTTI_E_NOMEM : tti_coll_run(t->coll, &call);
    snprintf(t->said, sizeof t->said, "%s", st == TUTTI_OK ? "" : tutti_last_error());
    free(data);
    return st;
}

static void check_stays_failed(tt_rank *t, tutti_status st)
{
    char first[sizeof t->said];

    snprintf(first, sizeof first, "%s", tutti_last_error());
    TT_CHECK(t, tt_barrier(t) == st);
    TT_CHECK(t, strcmp(first, tutti_last_error()) == 0);
}

static bool soon(const tt_rank *t, int64_t since_ns)
{
    (void)t;
    return tti_port_now(tti_port_system()) < since_ns + SOON_MS * TTI_MS;
}

static bool either_says(const tt_rank *ranks, const char *text)
{
    return strstr(ranks[0].said, text) != NULL || strstr(ranks[1].said, text) != NULL;
}

/* Everybody is connected, and nobody is inside the barrier any more that showed it: a failure of the next call would end it. */
static void all_begin(tt_rank *t)
{
    TT_CHECK(t, tt_barrier(t) == TUTTI_OK);
    tt_all_here(t);
}

/* ---- different calls ------------------------------------------------------------------------- */

static void different_counts(tt_rank *t)
{
    const int64_t begin_ns = tt_in_ms(0);

    all_begin(t);
    TT_CHECK(t, all_reduce(t, COUNT + (t->rank == 2), t->deadline_ns) == TUTTI_E_MISMATCH);
    TT_CHECK(t, soon(t, begin_ns));
    check_stays_failed(t, TUTTI_E_MISMATCH);
    tt_all_here(t);
}

static void different_kinds(tt_rank *t)
{
    const tutti_status st = t->rank == 1 ? tt_barrier(t) : all_reduce(t, COUNT, t->deadline_ns);

    TT_CHECK(t, st == TUTTI_E_MISMATCH);
    snprintf(t->said, sizeof t->said, "%s", tutti_last_error());
    tt_all_here(t);
}

/* Rank 0 gives a broadcast and goes on; rank 1 takes what it believes to be its all_reduce, when rank 0 is out of the broadcast, which
 * would end with the group. */
static void an_eager_root(tt_rank *t)
{
    float      data[COUNT] = { 0 };
    tutti_call call = tt_call(t, TUTTI_CALL_BROADCAST, TUTTI_F32, COUNT);

    call.root = 0;
    call.in = data;
    if (t->rank == 0) {
        TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
        tt_all_here(t);
        TT_CHECK(t, tt_barrier(t) == TUTTI_E_MISMATCH);
    } else {
        tt_all_here(t);
        t->seq = 0;
        TT_CHECK(t, all_reduce(t, COUNT, t->deadline_ns) == TUTTI_E_MISMATCH);
    }
    tt_all_here(t);
}

static void both_calls_are_quoted(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(3, false, different_counts, ranks);
    assert_non_null(strstr(ranks[2].said, "rank 2: all_reduce #2 (sum, 1001 f32)"));
    assert_non_null(strstr(ranks[2].said, ": all_reduce #2 (sum, 1000 f32)")); /* rank 0 or 1 */
    assert_non_null(strstr(ranks[2].said, "next: "));
    tt_run(2, false, different_kinds, ranks);
    assert_non_null(strstr(ranks[0].said, "rank 1: barrier #1"));
    assert_non_null(strstr(ranks[1].said, "rank 0: all_reduce #1 (sum, 1000 f32)"));
    tt_run(2, false, an_eager_root, ranks);
    assert_non_null(strstr(ranks[1].said, "rank 0: broadcast #1 (1000 f32, root 0)"));
}

/* Ranks 0 and 1 have told it when rank 2 comes. */
static void rank_2_comes_to_different_calls(tt_rank *t)
{
    all_begin(t);
    if (t->rank == 2)
        tt_all_here(t);
    TT_CHECK(t, all_reduce(t, COUNT + (t->rank == 1), t->deadline_ns) == TUTTI_E_MISMATCH);
    if (t->rank != 2)
        tt_all_here(t);
    tt_all_here(t);
}

static void nobody_is_accused_of_another_call(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];
    int     r;

    (void)state;
    tt_run(3, false, rank_2_comes_to_different_calls, ranks);
    assert_non_null(strstr(ranks[2].said, "reported TUTTI_E_MISMATCH; "));
    for (r = 0; r < 3; r++) {
        assert_non_null(strstr(ranks[r].said, "rank 1: all_reduce #2 (sum, 1001 f32)"));
        assert_non_null(strstr(ranks[r].said, "rank 0: all_reduce #2 (sum, 1000 f32)"));
        assert_null(strstr(ranks[r].said, " about rank "));
    }
}

/* Both ranks get a message of the other's call. */
static void different_counts_of_two(tt_rank *t)
{
    TT_CHECK(t, all_reduce(t, COUNT + (t->rank == 1), t->deadline_ns) == TUTTI_E_MISMATCH);
    check_stays_failed(t, TUTTI_E_MISMATCH);
    tt_all_here(t);
}

static void a_message_of_another_call_is_refused(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(2, true, different_counts_of_two, ranks);
    /* Who sees it first tells the other. */
    assert_true(
        either_says(ranks, "rank 0: all_reduce #1 (sum, 1000 f32)\n  rank 1: all_reduce #1 (sum, 1001 f32)\n"));
}

/* Each of two ranks gives a broadcast of its own, which waits for nobody; a barrier finds them. */
static void two_roots_meet_later(tt_rank *t)
{
    float      data[COUNT] = { 0 };
    tutti_call call = tt_call(t, TUTTI_CALL_BROADCAST, TUTTI_F32, COUNT);

    call.root = t->rank;
    call.in = data;
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    tt_all_here(t); /* the barrier of the first would end the broadcast of the last */
    TT_CHECK(t, tt_barrier(t) == TUTTI_E_MISMATCH);
    snprintf(t->said, sizeof t->said, "%s", tutti_last_error());
    tt_all_here(t);
}

/* Each waits for the other's part, and no message comes. */
static void wait_as_root(tt_rank *t, int64_t in_ms, tutti_status expected)
{
    float      data[2][COUNT] = { { 0 } };
    void      *list[] = { data[0], data[1] };
    tutti_call call;

    all_begin(t);
    call = tt_call(t, TUTTI_CALL_GATHER, TUTTI_F32, COUNT);
    call.root = t->rank;
    call.in = data[t->rank];
    call.list = list;
    call.deadline_ns = in_ms < 0 ? t->deadline_ns : tt_in_ms(in_ms);
    TT_CHECK(t, tti_coll_run(t->coll, &call) == expected);
    snprintf(t->said, sizeof t->said, "%s", tutti_last_error());
    tt_all_here(t);
}

/* Whoever waits for long tells the other in what. */
static void two_roots_wait_for_long(tt_rank *t)
{
    wait_as_root(t, -1, TUTTI_E_MISMATCH);
}

static void two_roots_wait(tt_rank *t)
{
    wait_as_root(t, 20, TUTTI_E_TIMEOUT);
}

static void messages_of_two_roots_are_told_apart(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(2, true, two_roots_meet_later, ranks);
    assert_true(either_says(ranks, "  rank 0: broadcast #1 (1000 f32, root 0)\n  rank 1: broadcast #1 (1000 f32, root 1)\n"));
    tt_run(2, true, two_roots_wait_for_long, ranks);
    assert_true(either_says(ranks, "  rank 0: gather #2 (1000 f32, root 0)\n  rank 1: gather #2 (1000 f32, root 1)\n  what differs: the roots\n"));
    tt_run(2, true, two_roots_wait, ranks);
    assert_non_null(strstr(ranks[0].said, "gather #2 (1000 f32, root 0) on "));
    assert_non_null(strstr(ranks[1].said, "gather #2 (1000 f32, root 1) on "));
    assert_true(either_says(ranks, "whether all name the same root"));
}

/* ---- sizes that do not fit ------------------------------------------------------------------- */

enum { BLOCK_MAX = 4096 };

/* Everybody gives everybody 8 elements, but rank 0 gives rank 1 `gives`, which expects `wants`. Its place
 * ends there: an overrun is seen by asan. */
static tutti_status all_to_all(tt_rank *t, int64_t gives, int64_t wants, int64_t deadline_ns)
{
    int64_t      in_counts[TT_RANKS_MAX], out_counts[TT_RANKS_MAX];
    static const int32_t data[BLOCK_MAX];
    int32_t     *places[TT_RANKS_MAX];
    const void  *ins[TT_RANKS_MAX];
    tutti_call   call = tt_call(t, TUTTI_CALL_ALL_TO_ALL, TUTTI_I32, 0);
    tutti_status st;
    int          r;

    for (r = 0; r < t->size; r++) {
        in_counts[r] = t->rank == 0 && r == 1 ? gives : 8;
        out_counts[r] = t->rank == 1 && r == 0 ? wants : 8;
        ins[r] = data;
        places[r] = malloc((size_t)out_counts[r] * sizeof *places[r] + (out_counts[r] == 0));
        TT_CHECK(t, places[r] != NULL);
    }
    call.deadline_ns = deadline_ns;
    call.n_parts = t->size;
    call.ins = ins;
    call.list = (void *const *)(void *)places;
    call.in_counts = in_counts;
    call.list_counts = out_counts;
    st = tti_coll_run(t->coll, &call);
    snprintf(t->said, sizeof t->said, "%s", st == TUTTI_OK ? "" : tutti_last_error());
    for (r = 0; r < t->size; r++)
        free(places[r]);
    return st;
}

static int64_t unfit_gives, unfit_wants;

/* Rank 2 has nothing to do with it, and may have all it needs before it hears of it. */
static void blocks_do_not_fit(tt_rank *t)
{
    const int64_t begin_ns = tt_in_ms(0);
    tutti_status  st = all_to_all(t, 8, 8, t->deadline_ns);

    TT_CHECK(t, st == TUTTI_OK);
    tt_all_here(t); /* rank 2 is out of that one, too */
    st = all_to_all(t, unfit_gives, unfit_wants, t->deadline_ns);
    if (t->rank == 2 && st == TUTTI_OK)
        st = tt_barrier(t);
    TT_CHECK(t, st == TUTTI_E_MISMATCH);
    TT_CHECK(t, soon(t, begin_ns));
    check_stays_failed(t, TUTTI_E_MISMATCH);
    tt_all_here(t);
}

static void blocks_that_do_not_fit_are_an_error(void **state)
{
    /* By messages those go with their sizes, or behind them: each way for both, or one for each. */
    static const int64_t pairs[][2] = { { 10, 12 },   { 12, 10 },   { 0, 5 },         { 5, 0 },         { 64, 1 },
                                        { 100, 2000 }, { 2000, 100 }, { BLOCK_MAX, 1 }, { 1, BLOCK_MAX }, { 3000, BLOCK_MAX } };
    tt_rank              ranks[TT_RANKS_MAX];
    char                 said[128];
    size_t               i;

    (void)state;
    for (i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        unfit_gives = pairs[i][0];
        unfit_wants = pairs[i][1];
        tt_run(3, false, blocks_do_not_fit, ranks);
        snprintf(said, sizeof said,
                 "all_to_all #2 (i32) on group 'test': rank 0 gives rank 1 %d elements, which expects %d",
                 (int)unfit_gives, (int)unfit_wants);
        assert_true(either_says(ranks, said));
        tt_run(3, true, blocks_do_not_fit, ranks);
        assert_true(either_says(ranks, said));
    }
}

/* The same sum in other parts. */
static void parts_differ(tt_rank *t)
{
    const int64_t parts[] = { 3, 5 }, others[] = { 5, 3 };
    float         a[8] = { 0 }, b[8] = { 0 }, out[8];
    void         *list[] = { a, b };
    tutti_call    call = tt_call(t, TUTTI_CALL_REDUCE_SCATTER, TUTTI_F32, 8);

    call.n_parts = 2;
    call.list_counts = t->rank == 0 ? parts : others;
    call.list = list;
    call.out = out;
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_E_MISMATCH);
    snprintf(t->said, sizeof t->said, "%s", tutti_last_error());
    tt_all_here(t);
}

static void parts_that_differ_are_an_error(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(2, false, parts_differ, ranks);
    assert_non_null(strstr(ranks[0].said, "rank 0: reduce_scatter #1 (sum, 8 f32 in parts that differ from rank to rank, list of counts"));
    assert_non_null(strstr(ranks[0].said, "rank 1: reduce_scatter #1 (sum, 8 f32 in parts that differ from rank to rank, list of counts"));
    tt_run(2, true, parts_differ, ranks);
    assert_true(either_says(ranks, "rank 1: reduce_scatter #1 (sum, 8 f32 in parts that differ"));
    assert_true(either_says(ranks, "rank 0: reduce_scatter #1 (sum, 8 f32 in parts that differ"));
}

static void rank_2_does_not_exchange(tt_rank *t)
{
    all_begin(t);
    if (t->rank != 2)
        TT_CHECK(t, all_to_all(t, 8, 8, tt_in_ms(IN_VAIN_MS)) == TUTTI_E_TIMEOUT);
    tt_all_here(t);
}

static void an_exchange_names_who_is_missing(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(3, false, rank_2_does_not_exchange, ranks);
    assert_true(either_says(ranks, "not arrived: rank 2; rank 2 ("));
    tt_run(3, true, rank_2_does_not_exchange, ranks);
    assert_true(either_says(ranks, "no message from rank 2"));
}

/* ---- a rank without memory ------------------------------------------------------------------- */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* which have their own */
static _Thread_local bool has_no_memory;

/* In place of the C library's: what a collective works in comes from here. */
void *aligned_alloc(size_t alignment, size_t bytes)
{
    void *memory = NULL;

    return !has_no_memory && posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

/* The root of a reduction needs room for what the others have. */
static void root_has_no_memory(tt_rank *t)
{
    const int64_t begin_ns = tt_in_ms(0);
    tutti_call    call = tt_call(t, TUTTI_CALL_REDUCE, TUTTI_F32, COUNT);
    float        *zeros = calloc(COUNT, sizeof *zeros);
    tutti_status  st;

    call.root = 0;
    call.in = zeros;
    call.out = t->rank == 0 ? zeros : NULL;
    has_no_memory = t->rank == 0;
    st = zeros != NULL ? tti_coll_run(t->coll, &call) : TUTTI_E_NOMEM;
    if (t->rank != 0 && st == TUTTI_OK) /* its part was done */
        st = tt_barrier(t);
    has_no_memory = false;
    TT_CHECK(t, st == TUTTI_E_NOMEM);
    TT_CHECK(t, strstr(tutti_last_error(), "no memory for the ") != NULL);
    TT_CHECK(t, soon(t, begin_ns));
    tt_all_here(t);
    free(zeros);
}

static void a_rank_without_memory_tells_the_others(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    assert_int_equal(setenv("TUTTI_ALGO", "reduce=to_root", 1), 0);
    tt_run(3, true, root_has_no_memory, ranks);
    assert_int_equal(unsetenv("TUTTI_ALGO"), 0);
}
#endif

/* ---- a rank that does not come --------------------------------------------------------------- */

static void rank_2_stays_away(tt_rank *t)
{
    all_begin(t);
    if (t->rank != 2) {
        TT_CHECK(t, all_reduce(t, COUNT, tt_in_ms(IN_VAIN_MS)) == TUTTI_E_TIMEOUT);
        check_stays_failed(t, TUTTI_E_TIMEOUT);
    }
    tt_all_here(t); /* rank 2 is alive all the time */
}

static void a_time_out_names_who_is_missing(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(3, false, rank_2_stays_away, ranks);
    assert_non_null(strstr(ranks[0].said, "rank 2"));
    assert_non_null(strstr(ranks[1].said, "rank 2"));
    /* Who is first says it all; the other may have been told. */
    assert_true(
        either_says(ranks, "all_reduce #2 (sum, 1000 f32) on group 'test' timed out after"));
    assert_true(either_says(ranks, "not arrived: rank 2; rank 2 ("));
    assert_true(either_says(ranks, "last entered barrier #1"));
}

static void a_time_out_names_silent_peers(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(3, true, rank_2_stays_away, ranks);
    assert_true(
        either_says(ranks, "all_reduce #2 (sum, 1000 f32) on group 'test' timed out after"));
    assert_non_null(strstr(ranks[0].said, "no message from rank 2"));
    assert_non_null(strstr(ranks[1].said, "no message from rank 2"));
}

/* Rank 2 comes when the others have given up, and their parts lie ready. */
static void rank_2_comes_late(tt_rank *t)
{
    if (t->rank == 2)
        tt_all_here(t);
    TT_CHECK(t, all_reduce(t, COUNT, t->rank == 2 ? t->deadline_ns : tt_in_ms(IN_VAIN_MS)) == TUTTI_E_TIMEOUT);
    check_stays_failed(t, TUTTI_E_TIMEOUT);
    if (t->rank != 2)
        tt_all_here(t);
    tt_all_here(t);
}

/* The same of a barrier, where who gave up has gone. */
static void rank_2_comes_to_nobody(tt_rank *t)
{
    if (t->rank == 2)
        tt_all_here(t);
    if (t->rank != 2) {
        tutti_call call = tt_call(t, TUTTI_CALL_BARRIER, TUTTI_U8, 0);

        call.deadline_ns = tt_in_ms(IN_VAIN_MS);
        TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_E_TIMEOUT);
        tti_coll_close(t->coll);
        t->coll = NULL;
        tt_all_here(t);
    } else {
        TT_CHECK(t, tt_barrier(t) == TUTTI_E_TIMEOUT);
        snprintf(t->said, sizeof t->said, "%s", tutti_last_error());
    }
    tt_all_here(t);
}

static void who_comes_late_hears_of_it(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(3, false, rank_2_comes_late, ranks);
    assert_non_null(strstr(ranks[2].said, "all_reduce #1 (sum, 1000 f32): rank 0 ("));
    assert_non_null(strstr(ranks[2].said, "reported TUTTI_E_TIMEOUT about rank 2"));
    assert_non_null(strstr(ranks[2].said, "all_reduce #1 (sum, 1000 f32) on group 'test' timed out after"));
    assert_non_null(strstr(ranks[2].said, "not arrived: rank 2"));
    tt_run(3, true, rank_2_comes_late, ranks);
    tt_run(3, false, rank_2_comes_to_nobody, ranks);
    assert_non_null(strstr(ranks[2].said, "barrier #1 on group 'test' timed out after"));
}

static void a_passed_deadline_is_a_time_out(tt_rank *t)
{
    if (t->rank == 0)
        TT_CHECK(t, all_reduce(t, COUNT, tt_in_ms(-5)) == TUTTI_E_TIMEOUT);
    tt_all_here(t);
}

static void deadlines_may_have_passed(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(2, false, a_passed_deadline_is_a_time_out, ranks);
    tt_run(2, true, a_passed_deadline_is_a_time_out, ranks);
}

static void group_without_rank_1(tt_rank *t)
{
    tti_coll *group = NULL;

    if (t->rank != 1) {
        TT_CHECK(t, tt_open(t, 7, tt_in_ms(IN_VAIN_MS), &group) == TUTTI_E_TIMEOUT);
        TT_CHECK(t, group == NULL);
        TT_CHECK(t, strstr(tutti_last_error(), "not joined: rank 1\n") != NULL);
    }
    tt_all_here(t);
}

static void a_group_names_who_has_not_joined(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(3, false, group_without_rank_1, ranks);
    tt_run(3, true, group_without_rank_1, ranks);
}

static _Atomic int  n_made;
static _Atomic bool is_lost;

/* Rank 2 has left its piece, and loses the board when the others have the group: they wait for it in their first call. */
static void group_that_rank_2_cannot_make(tt_rank *t)
{
    tti_coll *whole = t->coll, *group = NULL;
    int64_t   begin_ns;

    t->board_lost = t->rank == 2 ? &is_lost : NULL;
    if (t->rank == 2) {
        TT_CHECK(t, tt_open(t, 7, t->deadline_ns, &group) == TUTTI_E_NETWORK);
        TT_CHECK(t, strstr(tutti_last_error(), "the board is lost") != NULL);
    } else {
        TT_CHECK(t, tt_open(t, 7, t->deadline_ns, &group) == TUTTI_OK);
        begin_ns = tt_in_ms(0);
        if (atomic_fetch_add(&n_made, 1) == 1)
            atomic_store(&is_lost, true);
        t->coll = group;
        TT_CHECK(t, group != NULL && all_reduce(t, COUNT, t->deadline_ns) == TUTTI_E_REMOTE);
        TT_CHECK(t, soon(t, begin_ns));
        t->coll = whole;
    }
    tt_all_here(t);
    tti_coll_close(group);
}

static void who_alone_cannot_make_a_group_tells_those_who_have_it(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];
    int     tcp, r;

    (void)state;
    for (tcp = 0; tcp <= 1; tcp++) {
        atomic_store(&n_made, 0);
        atomic_store(&is_lost, false);
        tt_run(3, tcp, group_that_rank_2_cannot_make, ranks);
        for (r = 0; r < 2; r++)
            if (strstr(ranks[r].said, "it cannot make group 'test': the board is lost") == NULL || strstr(ranks[r].said, "rank 2") == NULL)
                fail_msg("rank %d: %s", r, ranks[r].said);
    }
}

/* ---- abort ----------------------------------------------------------------------------------- */

/* Rank 1 aborts its end while rank 0 waits in a call, or is about to. */
static void rank_1_aborts(tt_rank *t)
{
    const int64_t begin_ns = tt_in_ms(0);

    if (t->rank == 1) {
        tti_coll_abort(t->coll);
        TT_CHECK(t, all_reduce(t, COUNT, t->deadline_ns) == TUTTI_E_ABORTED);
    } else {
        TT_CHECK(t, all_reduce(t, COUNT, t->deadline_ns) == TUTTI_E_ABORTED);
        check_stays_failed(t, TUTTI_E_ABORTED);
    }
    TT_CHECK(t, soon(t, begin_ns));
    tt_all_here(t);
}

static void *abort_it(void *coll)
{
    tti_coll_abort(coll);
    return NULL;
}

/* Another thread of rank 0 ends its call; rank 1 is alive and does not come. */
static void own_thread_aborts(tt_rank *t)
{
    const int64_t begin_ns = tt_in_ms(0);
    pthread_t     thread;

    if (t->rank == 0) {
        TT_CHECK(t, pthread_create(&thread, NULL, abort_it, t->coll) == 0);
        TT_CHECK(t, all_reduce(t, COUNT, t->deadline_ns) == TUTTI_E_ABORTED);
        TT_CHECK(t, soon(t, begin_ns));
        pthread_join(thread, NULL);
    }
    tt_all_here(t);
}

static void an_abort_ends_calls(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];
    int     i;

    (void)state;
    tt_run(2, false, rank_1_aborts, ranks);
    assert_non_null(strstr(ranks[0].said, "rank 1"));
    for (i = 0; i < 10; i++) {
        tt_run(2, false, own_thread_aborts, ranks);
        tt_run(2, true, own_thread_aborts, ranks);
    }
}

/* ---- members that leave ---------------------------------------------------------------------- */

static void rank_1_leaves(tt_rank *t)
{
    const int64_t begin_ns = tt_in_ms(0);

    all_begin(t);
    if (t->rank == 1) {
        tt_leave(t);
    } else {
        TT_CHECK(t, all_reduce(t, COUNT, t->deadline_ns) == TUTTI_E_PEER);
        TT_CHECK(t, soon(t, begin_ns));
        check_stays_failed(t, TUTTI_E_PEER);
    }
}

static void who_left_is_named(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(3, false, rank_1_leaves, ranks);
    assert_non_null(strstr(ranks[0].said, "rank 1"));
    assert_non_null(strstr(ranks[2].said, "rank 1"));
    assert_non_null(strstr(ranks[0].said, "all_reduce #2 (sum, 1000 f32)"));
    assert_non_null(strstr(ranks[0].said, "group 'test'"));
    assert_non_null(strstr(ranks[0].said, "\n  next: "));
    tt_run(2, true, rank_1_leaves, ranks);
    assert_non_null(strstr(ranks[0].said, "all_reduce #2 (sum, 1000 f32) on group 'test' failed on rank 0 of 2 members"));
    assert_non_null(strstr(ranks[0].said, "rank 1"));
    assert_non_null(strstr(ranks[0].said, "\n  next: see why that rank ended"));
}

/* Rank 1 gives its part to the root and leaves before the root looks; rank 2 comes when the
 * root, which waits for it, has asked at least once more who is alive. */
static void done_and_gone(tt_rank *t)
{
    int        parts[3] = { -1, -1, -1 };
    void      *list[3] = { &parts[0], &parts[1], &parts[2] };
    const int  mine = 100 + t->rank;
    tutti_call call = tt_call(t, TUTTI_CALL_GATHER, TUTTI_I32, 1);

    call.root = 0;
    call.in = &mine;
    call.list = t->rank == 0 ? list : NULL;
    if (t->rank != 1)
        tt_all_here(t);
    if (t->rank == 2)
        tt_await_looks(t, 0, 2);
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    if (t->rank == 0)
        TT_CHECK(t, parts[0] == 100 && parts[1] == 101 && parts[2] == 102);
    if (t->rank == 1) {
        tt_leave(t);
        tt_all_here(t);
    }
}

static void who_has_done_its_part_may_go(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(3, false, done_and_gone, ranks);
}

/* ---- members that are told ------------------------------------------------------------------- */

enum { GROUP = 0 }; /* the number of every rank's first group */

/* Rank 1 is in no call: what has come is looked at here. */
static tutti_status hear(tt_rank *t)
{
    tutti_status st;

    while ((st = tti_messenger_listen(t->messenger, GROUP)) == TUTTI_OK && tti_port_now(&t->port.base) < t->deadline_ns)
        t->port.base.ops->yield(&t->port.base);
    return st;
}

/* Rank 2 has failed, and its words reach rank 1 alone, between two calls; rank 0 waits for rank 1. */
static void told_between_calls(tt_rank *t)
{
    static const int who_is_told[] = { 1 };

    TT_CHECK(t, tt_barrier(t) == TUTTI_OK); /* everybody is connected to everybody */
    t->deadline_ns = tt_in_ms(2 * SOON_MS);
    tt_all_here(t);
    if (t->rank == 2) {
        tti_fail(TUTTI_E_PEER, "rank 9 (host 'n9', pid 4719) is gone");
        tti_messenger_fail(t->messenger, GROUP, TUTTI_E_PEER, who_is_told, 1);
    } else {
        if (t->rank == 1)
            TT_CHECK(t, hear(t) == TUTTI_E_PEER);
        TT_CHECK(t, all_reduce(t, COUNT, t->deadline_ns) == TUTTI_E_PEER);
        check_stays_failed(t, TUTTI_E_PEER);
    }
    tt_all_here(t);
}

static void who_is_told_between_calls_tells_others(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];
    int     r;

    (void)state;
    tt_run(3, true, told_between_calls, ranks);
    for (r = 0; r < 2; r++)
        if (strstr(ranks[r].said, "rank 2 reported: rank 9 (host 'n9', pid 4719) is gone") == NULL)
            fail_msg("rank %d: %s", r, ranks[r].said);
}

/* The same, and rank 1 makes no call at all: it computes. */
static void told_while_it_computes(tt_rank *t)
{
    static const int who_is_told[] = { 1 };

    TT_CHECK(t, tt_barrier(t) == TUTTI_OK);
    t->deadline_ns = tt_in_ms(2 * SOON_MS);
    tt_all_here(t);
    if (t->rank == 2) {
        tti_fail(TUTTI_E_PEER, "rank 9 (host 'n9', pid 4719) is gone");
        tti_messenger_fail(t->messenger, GROUP, TUTTI_E_PEER, who_is_told, 1);
    }
    if (t->rank == 0)
        TT_CHECK(t, all_reduce(t, COUNT, t->deadline_ns) == TUTTI_E_PEER);
    tt_all_here(t);
}

static void who_is_told_while_it_computes_tells_others(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(3, true, told_while_it_computes, ranks);
    if (strstr(ranks[0].said, "rank 2 reported: rank 9 (host 'n9', pid 4719) is gone") == NULL)
        fail_msg("rank 0: %s", ranks[0].said);
}

/* Rank 2 has failed for the sake of another, rank 1 hears it, and rank 0 hears it of rank 1. */
static void told_by_who_was_told(tt_rank *t)
{
    int turn;

    TT_CHECK(t, tt_barrier(t) == TUTTI_OK);
    for (turn = 2; turn >= 0; turn--) {
        tt_all_here(t);
        if (turn == t->rank && turn == 2) {
            tti_fail(TUTTI_E_PEER, "rank 9 (host 'n9', pid 4719) is gone");
            tti_coll_fail(t->coll, TUTTI_E_PEER);
        }
        if (turn == t->rank)
            TT_CHECK(t, all_reduce(t, COUNT, t->deadline_ns) == TUTTI_E_PEER);
    }
    tt_all_here(t);
}

static void who_tells_is_not_accused(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(3, false, told_by_who_was_told, ranks);
    if (strstr(ranks[0].said, "rank 1 (") == NULL || strstr(ranks[0].said, "reported TUTTI_E_PEER; ") == NULL ||
        strstr(ranks[0].said, "rank 9 (host 'n9', pid 4719) is gone") == NULL)
        fail_msg("%s", ranks[0].said);
}

/* ---- while the group is made ------------------------------------------------------------------- */

/* Rank 0 has found a death, and closes its door: those on other hosts find nobody there. */
static void who_gave_up_is_not_accused(void **state)
{
    const tt_setting setting = { .machine = &tti_machine_default, .given_up_for = "rank 9 (host 'n9', pid 4719) is gone" };
    tt_rank          ranks[TT_RANKS_MAX];
    int              tcp, rank;

    (void)state;
    for (tcp = 0; tcp < 2; tcp++) {
        tt_run_in(&setting, 3, tcp == 1, NULL, ranks);
        for (rank = 1; rank < 3; rank++)
            if (strstr(ranks[rank].said, "reported: rank 9 (host 'n9', pid 4719) is gone") == NULL)
                fail_msg("rank %d: %s", rank, ranks[rank].said);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_calls_are_quoted),
        cmocka_unit_test(nobody_is_accused_of_another_call),
        cmocka_unit_test(a_message_of_another_call_is_refused),
        cmocka_unit_test(messages_of_two_roots_are_told_apart),
        cmocka_unit_test(blocks_that_do_not_fit_are_an_error),
        cmocka_unit_test(parts_that_differ_are_an_error),
        cmocka_unit_test(an_exchange_names_who_is_missing),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        cmocka_unit_test(a_rank_without_memory_tells_the_others),
#endif
        cmocka_unit_test(a_time_out_names_who_is_missing),
        cmocka_unit_test(a_time_out_names_silent_peers),
        cmocka_unit_test(who_comes_late_hears_of_it),
        cmocka_unit_test(deadlines_may_have_passed),
        cmocka_unit_test(a_group_names_who_has_not_joined),
        cmocka_unit_test(who_alone_cannot_make_a_group_tells_those_who_have_it),
        cmocka_unit_test(an_abort_ends_calls),
        cmocka_unit_test(who_left_is_named),
        cmocka_unit_test(who_has_done_its_part_may_go),
        cmocka_unit_test(who_is_told_between_calls_tells_others),
        cmocka_unit_test(who_is_told_while_it_computes_tells_others),
        cmocka_unit_test(who_tells_is_not_accused),
        cmocka_unit_test(who_gave_up_is_not_accused),
    };

    return cmocka_run_group_tests_name("coll_failure", tests, NULL, NULL);
}

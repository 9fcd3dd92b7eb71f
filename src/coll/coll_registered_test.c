/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll_registered_test.c
 * Goal    a call on registered memory that fails leaves nobody who writes to it; memory that others may not reach
 *         goes through slots, with the same result. Small blocks of an all_to_all go without cards.
 * Method  Ranks are threads, which a race detector sees: a rank whose call has failed writes to its buffer at once.
 *         What went which way is counted. Processes are stopped in tests/ranks/one_pass_test.c. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/memory.h>
#include "coll/coll_ranks.h"
#include "transport/registered.h"

enum { COUNT = 20000, LARGE = 1 << 20, N_RANKS = 3, GROUPS = 20, GATHERS = 500 };

static float *take(int64_t count)
{
    void *p = NULL;

    if (tutti_alloc((size_t)count * sizeof(float), &p) != TUTTI_OK)
        abort();
    return p;
}

static void fill(float *data, int64_t count, float value)
{
    int64_t i;

    for (i = 0; i < count; i++)
        data[i] = value;
}

static bool holds(const float *data, int64_t count, float value)
{
    int64_t i = 0;

    while (i < count && data[i] == value)
        i++;
    return i == count;
}

static tutti_status all_reduce(tt_rank *t, tti_coll *coll, uint64_t seq, float *data, int64_t count, int64_t deadline_ns)
{
    tutti_call call = tt_call(t, TUTTI_CALL_ALL_REDUCE, TUTTI_F32, count);

    if (coll != t->coll)
        t->seq--;
    call.seq = coll != t->coll ? seq : call.seq;
    call.in = call.out = data;
    call.deadline_ns = deadline_ns;
    return tti_coll_run(coll, &call);
}

/* Every rank has 1, and all get N_RANKS; whether it took this way. */
static bool sums_registered(tt_rank *t, float *data, int64_t count)
{
    const uint64_t before = tti_coll_count_registered(t->coll);

    fill(data, count, 1.0f);
    TT_CHECK(t, all_reduce(t, t->coll, 0, data, count, t->deadline_ns) == TUTTI_OK);
    TT_CHECK(t, holds(data, count, (float)t->size));
    return tti_coll_count_registered(t->coll) > before;
}

/* ---- which way ----------------------------------------------------------------------------------- */

static void asked_from_the_second_call_on(tt_rank *t)
{
    float *data = take(COUNT);

    sums_registered(t, data, COUNT); /* in this one it is told, unless it was at an earlier time */
    TT_CHECK(t, sums_registered(t, data, COUNT));
    TT_CHECK(t, sums_registered(t, data + 1, COUNT - 1));
    TT_CHECK(t, !sums_registered(t, data, 8)); /* a line is faster */
    TT_CHECK(t, tutti_free(data) == TUTTI_OK);
}

static void two_tensors_of_one_piece(tt_rank *t)
{
    float *data = take(2 * COUNT);

    sums_registered(t, data, COUNT);
    fill(data + COUNT, COUNT, 5.0f);
    TT_CHECK(t, sums_registered(t, data, COUNT));
    TT_CHECK(t, holds(data + COUNT, COUNT, 5.0f));
    TT_CHECK(t, sums_registered(t, data + COUNT, COUNT));
    TT_CHECK(t, holds(data, COUNT, (float)t->size));
    TT_CHECK(t, tutti_free(data) == TUTTI_OK);
}

static void one_rank_has_ordinary_memory(tt_rank *t)
{
    float *data = take(COUNT), *ordinary = malloc(COUNT * sizeof *ordinary);

    sums_registered(t, data, COUNT);
    TT_CHECK(t, !sums_registered(t, t->rank == 1 ? ordinary : data, COUNT));
    TT_CHECK(t, sums_registered(t, data, COUNT));
    free(ordinary);
    TT_CHECK(t, tutti_free(data) == TUTTI_OK);
}

static void memory_that_stands_in_a_window(tt_rank *t)
{
    float   *data = take(COUNT);
    uint64_t offset;

    sums_registered(t, data, COUNT);
    if (t->rank == 1)
        TT_CHECK(t, tti_registered_lend(data, 4, &offset) == TUTTI_OK);
    TT_CHECK(t, !sums_registered(t, data, COUNT));
    if (t->rank == 1)
        tti_registered_take_back(data, true);
    TT_CHECK(t, sums_registered(t, data, COUNT));
    TT_CHECK(t, tutti_free(data) == TUTTI_OK);
}

static void all_must_be_able_to_reach_it(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(N_RANKS, false, asked_from_the_second_call_on, ranks);
    tt_run(2, false, asked_from_the_second_call_on, ranks);
    tt_run(N_RANKS, false, two_tensors_of_one_piece, ranks);
    tt_run(N_RANKS, false, one_rank_has_ordinary_memory, ranks);
    tt_run(N_RANKS, false, memory_that_stands_in_a_window, ranks);
}

/* ---- failures ------------------------------------------------------------------------------------ */

static void rank_1_does_not_come(tt_rank *t)
{
    float *data = take(COUNT);

    sums_registered(t, data, COUNT);
    TT_CHECK(t, sums_registered(t, data, COUNT));
    fill(data, COUNT, 7.0f);
    tt_all_here(t); /* nobody is in that call any more; and who comes to the next one when it has failed shows nothing there */
    if (t->rank != 1) {
        TT_CHECK(t, all_reduce(t, t->coll, 0, data, COUNT, tt_in_ms(600)) == TUTTI_E_TIMEOUT);
        snprintf(t->said, sizeof t->said, "%s", tutti_last_error());
        TT_CHECK(t, !tutti_is_registered(data, 1)); /* another rank might yet write to it */
        TT_CHECK(t, holds(data, COUNT, 7.0f));
    } else {
        TT_CHECK(t, tutti_is_registered(data, 1));
    }
    tt_all_here(t);
    TT_CHECK(t, tutti_free(data) == TUTTI_OK);
}

static void who_does_not_come_is_named(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(2, false, rank_1_does_not_come, ranks);
    assert_non_null(strstr(ranks[0].said, "not arrived: rank 1"));
    tt_run(N_RANKS, false, rank_1_does_not_come, ranks);
}

static void *abort_it(void *coll)
{
    tti_coll_abort(coll);
    return NULL;
}

/* Group after group is aborted somewhere in its first calls, by a thread that nothing holds back. */
static void aborts_at_any_time(tt_rank *t)
{
    float     *data = take(LARGE);
    uint32_t   group;
    pthread_t  thread;
    int        n_failed = 0;

    for (group = 1; group <= GROUPS; group++) {
        tti_coll    *coll = NULL;
        tutti_status st;
        uint64_t     seq;

        if (!tutti_is_registered(data, 1)) {
            TT_CHECK(t, tutti_free(data) == TUTTI_OK);
            data = take(LARGE);
        }
        TT_CHECK(t, tt_open(t, group, t->deadline_ns, &coll) == TUTTI_OK);
        st = all_reduce(t, coll, 1, data, LARGE, t->deadline_ns);
        if (t->rank == (int)group % t->size)
            TT_CHECK(t, pthread_create(&thread, NULL, abort_it, coll) == 0);
        for (seq = 2; st == TUTTI_OK; seq++)
            st = all_reduce(t, coll, seq, data, LARGE, t->deadline_ns);
        fill(data, LARGE, (float)t->rank); /* nobody else writes to it any more, wherever it lies now */
        TT_CHECK(t, holds(data, LARGE, (float)t->rank));
        TT_CHECK(t, st == TUTTI_E_ABORTED);
        n_failed += !tutti_is_registered(data, 1);
        if (t->rank == (int)group % t->size)
            pthread_join(thread, NULL);
        tti_coll_close(coll);
        tt_all_here(t);
    }
    TT_CHECK(t, n_failed > 0); /* not all of them between two calls */
    TT_CHECK(t, tutti_free(data) == TUTTI_OK);
}

static void nobody_writes_after_a_failure(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    assert_int_equal(setenv("TUTTI_ALGO", "all_reduce=fused", 1), 0);
    tt_run(2, false, aborts_at_any_time, ranks);
    tt_run(N_RANKS, false, aborts_at_any_time, ranks);
    assert_int_equal(unsetenv("TUTTI_ALGO"), 0);
}

/* A call of another group, that nobody else comes to. */
typedef struct beside {
    tti_coll *coll;
    float    *data;
} beside;

static _Atomic bool cut; /* it has failed */

static void *fail_beside(void *arg)
{
    const beside *b = arg;
    tutti_call    call = { .kind = TUTTI_CALL_ALL_REDUCE, .seq = 2, .dtype = TUTTI_F32, .op = TUTTI_SUM, .root = -1,
                           .count = COUNT / 2, .in = b->data, .out = b->data, .deadline_ns = tt_in_ms(100) };

    if (tti_coll_run(b->coll, &call) != TUTTI_E_TIMEOUT)
        abort();
    atomic_store(&cut, true);
    return NULL;
}

/* What one group's failure has cut off is ordinary memory to another. */
static void after_another_groups_failure(tt_rank *t)
{
    float    *data = take(COUNT);
    tti_coll *coll = NULL;

    sums_registered(t, data, COUNT);
    TT_CHECK(t, sums_registered(t, data, COUNT));
    TT_CHECK(t, tt_open(t, 3, t->deadline_ns, &coll) == TUTTI_OK);
    fill(data, COUNT, 1.0f);
    TT_CHECK(t, all_reduce(t, coll, 1, data, COUNT, t->deadline_ns) == TUTTI_OK);
    tt_all_here(t); /* the end of the next one would be the end of this one */
    if (t->rank == 0)
        TT_CHECK(t, all_reduce(t, coll, 2, data, COUNT, tt_in_ms(50)) == TUTTI_E_TIMEOUT);
    tt_all_here(t);
    TT_CHECK(t, tutti_is_registered(data, 1) == (t->rank != 0));
    TT_CHECK(t, !sums_registered(t, data, COUNT));
    tti_coll_close(coll);
    TT_CHECK(t, tutti_free(data) == TUTTI_OK);
    data = take(COUNT);
    TT_CHECK(t, sums_registered(t, data, COUNT));
    TT_CHECK(t, tutti_free(data) == TUTTI_OK);
}

/* While one call waits for rank 2, a call of another group fails on rank 0, whose output lies on the same page as
 * the first one's input. */
static void beside_what_is_read(tt_rank *t)
{
    float     *data = take(COUNT);
    tti_coll  *coll = NULL;
    tutti_call call = tt_call(t, TUTTI_CALL_REDUCE, TUTTI_F32, COUNT / 2);
    pthread_t  thread;
    beside     other;

    call.root = 1;
    call.in = call.out = data;
    fill(data, COUNT, 1.0f);
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK); /* in this one it is told */
    TT_CHECK(t, tt_open(t, 4, t->deadline_ns, &coll) == TUTTI_OK);
    other = (beside){ coll, data + COUNT / 2 };
    TT_CHECK(t, all_reduce(t, coll, 1, data + COUNT / 2, COUNT / 2, t->deadline_ns) == TUTTI_OK);
    fill(data, COUNT / 2, 1.0f);
    tt_all_here(t);
    if (t->rank == 0)
        TT_CHECK(t, pthread_create(&thread, NULL, fail_beside, &other) == 0);
    while (t->rank == 2 && !atomic_load(&cut))
        sched_yield();
    call.seq = ++t->seq;
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    TT_CHECK(t, t->rank != call.root || holds(data, COUNT / 2, N_RANKS));
    if (t->rank == 0)
        pthread_join(thread, NULL);
    TT_CHECK(t, tutti_is_registered(data, 1) == (t->rank != 0));
    tt_all_here(t);
    tti_coll_close(coll);
    TT_CHECK(t, tutti_free(data) == TUTTI_OK);
}

static void other_groups_go_on(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    assert_int_equal(setenv("TUTTI_ALGO", "reduce=fused,all_reduce=fused", 1), 0);
    tt_run(N_RANKS, false, beside_what_is_read, ranks);
    assert_int_equal(unsetenv("TUTTI_ALGO"), 0);
    tt_run(N_RANKS, false, after_another_groups_failure, ranks);
}

/* Turns that were given back, or went to another backend of the group: all numbers that are left are odd. Who only
 * gives runs ahead of the root. */
static void gathers_of_every_other_number(tt_rank *t)
{
    float     *data = take((N_RANKS + 1) * COUNT);
    void      *list[N_RANKS] = { data, data + COUNT, data + 2 * COUNT };
    tutti_call call = tt_call(t, TUTTI_CALL_GATHER, TUTTI_F32, COUNT);
    int        i;

    call.root = 1;
    call.in = data + N_RANKS * COUNT;
    call.list = t->rank == call.root ? list : NULL;
    fill(data + N_RANKS * COUNT, COUNT, (float)t->rank);
    for (i = 0; i < GATHERS && t->failure[0] == '\0'; i++, call.seq += 2)
        TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    t->seq = call.seq;
    TT_CHECK(t, tti_coll_count_registered(t->coll) == GATHERS);
    for (i = 0; i < t->size && t->rank == call.root; i++)
        TT_CHECK(t, holds(list[i], COUNT, (float)i));
    tt_all_here(t);
    TT_CHECK(t, tutti_free(data) == TUTTI_OK);
}

static void numbers_may_have_gaps(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    assert_int_equal(setenv("TUTTI_ALGO", "gather=fused", 1), 0);
    tt_run(N_RANKS, false, gathers_of_every_other_number, ranks);
    assert_int_equal(unsetenv("TUTTI_ALGO"), 0);
}

/* What all_to_all is to move is compared as it is without registered memory. */
static void blocks_that_differ(tt_rank *t)
{
    float       *data = take(4 * COUNT);
    const void  *ins[2] = { data, data + COUNT };
    void        *list[2] = { data + 2 * COUNT, data + 3 * COUNT };
    int64_t      gives[2] = { COUNT, COUNT }, gets[2] = { COUNT, COUNT };
    tutti_call   call = tt_call(t, TUTTI_CALL_ALL_TO_ALL, TUTTI_F32, 0);

    call.ins = ins;
    call.list = list;
    call.in_counts = gives;
    call.list_counts = gets;
    call.n_parts = 2;
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    TT_CHECK(t, tti_coll_count_registered(t->coll) == 1);
    call.seq = ++t->seq;
    gives[1] -= t->rank == 0;
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_E_MISMATCH);
    snprintf(t->said, sizeof t->said, "%s", tutti_last_error());
    tt_all_here(t);
    TT_CHECK(t, tutti_free(data) == TUTTI_OK);
}

static void blocks_are_compared(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    assert_int_equal(setenv("TUTTI_ALGO", "all_to_all=fused", 1), 0);
    tt_run(2, false, blocks_that_differ, ranks);
    assert_int_equal(unsetenv("TUTTI_ALGO"), 0);
    assert_non_null(strstr(ranks[1].said, "rank 0 gives rank 1 19999 elements, which expects 20000"));
}

/* Nobody knows all sizes before a call: after a small one nobody shows cards until sizes have grown again. */
static void sizes_come_and_go(tt_rank *t)
{
    static const int64_t counts[] = { COUNT, 1, 1, COUNT, COUNT };
    static const int     done[] = { 1, 1, 1, 1, 2 };
    float               *data = take(4 * COUNT);
    const void          *ins[2] = { data, data + COUNT };
    void                *list[2] = { data + 2 * COUNT, data + 3 * COUNT };
    size_t               i;
    int                  r;

    TT_CHECK(t, tt_barrier(t) == TUTTI_OK); /* all have said that they have registered memory */
    for (i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        int64_t    each[2] = { counts[i], counts[i] };
        tutti_call call = tt_call(t, TUTTI_CALL_ALL_TO_ALL, TUTTI_F32, 0);

        for (r = 0; r < 2; r++)
            fill(data + r * COUNT, counts[i], (float)(t->rank * 10 + r) + (float)i);
        call.ins = ins;
        call.list = list;
        call.in_counts = call.list_counts = each;
        call.n_parts = 2;
        TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
        TT_CHECK(t, tti_coll_count_registered(t->coll) == (uint64_t)done[i]);
        for (r = 0; r < 2; r++)
            TT_CHECK(t, holds(list[r], counts[i], (float)(r * 10 + t->rank) + (float)i));
    }
    tt_all_here(t);
    TT_CHECK(t, tutti_free(data) == TUTTI_OK);
}

static void small_blocks_need_no_cards(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(2, false, sizes_come_and_go, ranks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_must_be_able_to_reach_it),  cmocka_unit_test(who_does_not_come_is_named),
        cmocka_unit_test(nobody_writes_after_a_failure), cmocka_unit_test(other_groups_go_on),
        cmocka_unit_test(blocks_are_compared),           cmocka_unit_test(numbers_may_have_gaps),
        cmocka_unit_test(small_blocks_need_no_cards),
    };

    return cmocka_run_group_tests_name("coll_registered", tests, NULL, NULL);
}

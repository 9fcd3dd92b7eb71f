/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lines_test.c
 * Goal    small calls through lines: givers that do not wait for takers overwrite nothing, and get as far as they may
 *         before anybody takes; blocks of all sizes arrive whichever way they go; sleepers are woken,
 *         with a barrier that one executes for all and without, and numbers of calls may wrap and have gaps.
 * Method  Ranks are threads on one host. Where sleepers are what is asked about, nobody looks twice before it
 *         sleeps, and a sleep that nobody ends lasts long, and is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "coll/coll_ranks.h"
#include "coll/cost.h"
#include "coll/host/channel.h"

enum { CALLS = 4000, COUNT_MAX = 600, SOON_MS = 20000 };

static int32_t value_of(int rank, int64_t i, uint64_t seq)
{
    return (int32_t)(rank * 1000003 + i * 31 + (int64_t)(seq % 100003));
}

static void fill(int32_t *data, int64_t count, int rank, uint64_t seq)
{
    int64_t i;

    for (i = 0; i < count; i++)
        data[i] = value_of(rank, i, seq);
}

static bool is_of(const int32_t *data, int64_t count, int rank, uint64_t seq)
{
    int64_t i;

    for (i = 0; i < count && data[i] == value_of(rank, i, seq); i++)
        continue;
    return i == count;
}

/* Sizes in a line, in a packet, and of more. */
static int64_t count_of(uint64_t seq)
{
    static const int64_t counts[] = { 1, 14, 3, 15, 200, 2, COUNT_MAX };

    return counts[seq % (sizeof counts / sizeof counts[0])];
}

static void broadcast(tt_rank *t, int root)
{
    int32_t    data[COUNT_MAX];
    tutti_call call = tt_call(t, TUTTI_CALL_BROADCAST, TUTTI_I32, 0);

    call.count = count_of(call.seq);
    call.root = root;
    memset(data, 0, sizeof data);
    if (t->rank == root)
        fill(data, call.count, root, call.seq);
    call.in = data;
    call.out = data;
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    TT_CHECK(t, is_of(data, call.count, root, call.seq));
    memset(data, 0x55, sizeof data); /* what was given is elsewhere by now */
}

static void gather(tt_rank *t, int root)
{
    int32_t    mine[COUNT_MAX], all[TT_RANKS_MAX][COUNT_MAX];
    void      *list[TT_RANKS_MAX];
    tutti_call call = tt_call(t, TUTTI_CALL_GATHER, TUTTI_I32, 0);
    int        r;

    for (r = 0; r < TT_RANKS_MAX; r++)
        list[r] = all[r];
    call.count = count_of(call.seq);
    call.root = root;
    call.in = mine;
    call.list = t->rank == root ? list : NULL;
    fill(mine, call.count, t->rank, call.seq);
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    for (r = 0; r < t->size && t->rank == root; r++)
        TT_CHECK(t, is_of(all[r], call.count, r, call.seq));
}

static void all_reduce(tt_rank *t)
{
    int32_t    data[COUNT_MAX];
    tutti_call call = tt_call(t, TUTTI_CALL_ALL_REDUCE, TUTTI_I32, 0);
    int64_t    i, sum;
    int        r;

    call.count = count_of(call.seq);
    call.in = call.out = data;
    fill(data, call.count, t->rank, call.seq);
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    for (i = 0; i < call.count; i++) {
        for (r = 0, sum = 0; r < t->size; r++)
            sum += value_of(r, i, call.seq);
        TT_CHECK(t, data[i] == (int32_t)sum);
    }
}

static void all_to_all(tt_rank *t)
{
    int32_t     given[TT_RANKS_MAX][COUNT_MAX], got[TT_RANKS_MAX][COUNT_MAX];
    const void *ins[TT_RANKS_MAX];
    void       *list[TT_RANKS_MAX];
    int64_t     in_counts[TT_RANKS_MAX], out_counts[TT_RANKS_MAX];
    tutti_call  call = tt_call(t, TUTTI_CALL_ALL_TO_ALL, TUTTI_I32, 0);
    int         r;

    for (r = 0; r < t->size; r++) {
        ins[r] = given[r];
        list[r] = got[r];
        in_counts[r] = count_of(call.seq + (uint64_t)(t->rank + 2 * r));
        out_counts[r] = count_of(call.seq + (uint64_t)(r + 2 * t->rank));
        fill(given[r], in_counts[r], t->rank, call.seq + (uint64_t)r);
    }
    call.n_parts = t->size;
    call.ins = ins;
    call.list = list;
    call.in_counts = in_counts;
    call.list_counts = out_counts;
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    for (r = 0; r < t->size; r++)
        TT_CHECK(t, is_of(got[r], out_counts[r], r, call.seq + (uint64_t)t->rank));
}

/* ---- a root that runs ahead ------------------------------------------------------------------ */

static void one_root_gives(tt_rank *t)
{
    int i;

    for (i = 0; i < CALLS && t->failure[0] == '\0'; i++)
        broadcast(t, 1);
    tt_all_here(t);
}

/* Everybody is ahead of somebody. */
static void roots_take_turns(tt_rank *t)
{
    int i;

    for (i = 0; i < CALLS && t->failure[0] == '\0'; i++) {
        if (i % 3 == 2)
            gather(t, i / 3 % t->size);
        else
            broadcast(t, i / 7 % t->size);
    }
    tt_all_here(t);
}

static void nothing_is_overwritten_before_it_is_read(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];
    int     size;

    (void)state;
    for (size = 2; size <= 4; size++) {
        tt_run(size, false, one_root_gives, ranks);
        tt_run(size, false, roots_take_turns, ranks);
    }
}

static void some_values(tt_rank *t, int root, int64_t count)
{
    int32_t    data[COUNT_MAX];
    tutti_call call = tt_call(t, TUTTI_CALL_BROADCAST, TUTTI_I32, count);

    call.root = root;
    call.in = call.out = data;
    fill(data, count, t->rank, call.seq);
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    TT_CHECK(t, is_of(data, count, root, call.seq));
}

/* The others come when the root is as far ahead as it may be. */
static void given_before_any_is_taken(tt_rank *t, int64_t count)
{
    int i;

    for (i = 0; i < TTI_HOST_AHEAD && t->rank == 1; i++)
        some_values(t, 1, count);
    tt_all_here(t);
    for (i = 0; i < TTI_HOST_AHEAD && t->rank != 1; i++)
        some_values(t, 1, count);
    all_reduce(t);
    tt_all_here(t);
}

static void all_is_given_before_any_is_taken(tt_rank *t)
{
    given_before_any_is_taken(t, 1);
    given_before_any_is_taken(t, TTI_LINES_SHORT / 4 + 1);
    given_before_any_is_taken(t, TTI_LINES_MIDDLE / 4);
}

static void a_root_does_not_wait_for_the_others(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(2, false, all_is_given_before_any_is_taken, ranks);
    tt_run(4, false, all_is_given_before_any_is_taken, ranks);
}

/* ---- blocks of all sizes --------------------------------------------------------------------- */

enum { LONG = 12000 }; /* elements: beyond a block, and enough to be read from the owner */

/* Elements that giver gives taker: all the same and few, some, or many; one member even and the others not; one
 * that gives much, others little; all much, and not the same. */
static int64_t block_count(int way, int giver, int taker)
{
    switch (way) {
    case 0: return 2;
    case 1: return 40;
    case 2: return LONG;
    case 3: return giver == 0 || taker == 0 ? 3 : 3 + giver;
    case 4: return giver == 0 ? LONG : 1;
    default: return LONG + giver;
    }
}

static void blocks_of(tt_rank *t, int way)
{
    int32_t    *data = calloc(2 * TT_RANKS_MAX * (LONG + TT_RANKS_MAX), sizeof *data);
    const void *ins[TT_RANKS_MAX];
    void       *list[TT_RANKS_MAX];
    int64_t     in_counts[TT_RANKS_MAX], out_counts[TT_RANKS_MAX];
    tutti_call  call = tt_call(t, TUTTI_CALL_ALL_TO_ALL, TUTTI_I32, 0);
    int         r;

    TT_CHECK(t, data != NULL);
    for (r = 0; r < t->size && data != NULL; r++) {
        int32_t *given = data + 2 * r * (LONG + TT_RANKS_MAX);

        ins[r] = given;
        list[r] = given + LONG + TT_RANKS_MAX;
        in_counts[r] = block_count(way, t->rank, r);
        out_counts[r] = block_count(way, r, t->rank);
        fill(given, in_counts[r], t->rank, call.seq + (uint64_t)r);
    }
    call.n_parts = t->size;
    call.ins = ins;
    call.list = list;
    call.in_counts = in_counts;
    call.list_counts = out_counts;
    if (data != NULL)
        TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    for (r = 0; r < t->size && data != NULL; r++)
        TT_CHECK(t, is_of(list[r], out_counts[r], r, call.seq + (uint64_t)t->rank));
    free(data);
}

static void all_ways(tt_rank *t)
{
    int i;

    for (i = 0; i < 60 && t->failure[0] == '\0'; i++)
        blocks_of(t, (i + i / 6) % 6);
    tt_all_here(t);
}

static void blocks_arrive_whichever_way_they_go(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];
    int     size;

    (void)state;
    for (size = 2; size <= 4; size++)
        tt_run(size, false, all_ways, ranks);
}

/* ---- sleepers -------------------------------------------------------------------------------- */

static void calls_of_all_kinds(tt_rank *t, int calls)
{
    int i;

    for (i = 0; i < calls && t->failure[0] == '\0'; i++)
        switch (i % 6) {
        case 0:
            broadcast(t, i / 6 % t->size);
            break;
        case 1:
            gather(t, i / 5 % t->size);
            break;
        case 2:
            TT_CHECK(t, tt_barrier(t) == TUTTI_OK);
            break;
        case 3:
            all_to_all(t);
            break;
        default:
            all_reduce(t);
        }
}

static void everybody_sleeps(tt_rank *t)
{
    calls_of_all_kinds(t, CALLS);
    TT_CHECK(t, atomic_load(&t->port.n_unended) == 0);
    tt_all_here(t);
}

static void sleep_at_once(bool fenceless, const char *algorithms)
{
    static const tti_host_patience none = { .checks = 1 };
    const tt_setting setting = { .machine = &tti_machine_default, .patience = &none,
                                 .fenceless = fenceless, .long_sleeps = true };
    tt_rank          ranks[TT_RANKS_MAX];
    int              size;

    if (algorithms != NULL)
        assert_int_equal(setenv("TUTTI_ALGO", algorithms, 1), 0);
    for (size = 2; size <= TT_RANKS_MAX; size++)
        tt_run_in(&setting, size, false, everybody_sleeps, ranks);
    assert_int_equal(unsetenv("TUTTI_ALGO"), 0);
}

static const char in_rounds[] = "barrier=flags,all_reduce=sliced,broadcast=staged,gather=staged,all_to_all=staged";

static void no_wake_up_is_lost(void **state)
{
    (void)state;
    sleep_at_once(false, NULL);
    sleep_at_once(false, in_rounds);
}

static void nor_without_a_barrier_for_all(void **state)
{
    (void)state;
    sleep_at_once(true, NULL);
    sleep_at_once(true, in_rounds);
}

/* ---- beside one who keeps the core ---- */

enum { KEPT_CALLS = 40 };

static _Atomic(tt_port *) kept_port; /* rank 0's */
static _Atomic int        n_met; /* barriers that it has come back from */

/* Rank 1 comes to a barrier when rank 0 waits there. */
static void waits_in_company(tt_rank *t)
{
    tt_port *waiter;
    int      i;

    if (t->rank == 0)
        atomic_store(&kept_port, &t->port);
    tt_all_here(t);
    waiter = atomic_load(&kept_port);
    for (i = 0; i < KEPT_CALLS; i++) {
        while (t->rank == 1 && (atomic_load(&n_met) < i || atomic_load(&waiter->n_idle) == 0) && tt_in_ms(0) < t->deadline_ns)
            sched_yield();
        TT_CHECK(t, tt_barrier(t) == TUTTI_OK);
        if (t->rank == 0) {
            atomic_store(&waiter->n_idle, 0);
            atomic_store(&n_met, i + 1);
        }
        tt_all_here(t);
    }
    if (t->rank == 0)
        TT_CHECK(t, atomic_load(&waiter->n_given) >= 1 && atomic_load(&waiter->n_given) <= KEPT_CALLS / 2);
    tt_all_here(t);
}

/* Every wait gives the core away if it does not know better; one that does tries again now and then. */
static void who_keeps_the_core_is_not_given_it_again(void **state)
{
    static const tti_host_patience patience = { .checks = 1, .yields = 32 };
    const tt_setting setting = { .machine = &tti_machine_default, .patience = &patience, .kept = true };
    tt_rank          ranks[TT_RANKS_MAX];

    (void)state;
    atomic_store(&n_met, 0);
    tt_run_in(&setting, 2, false, waits_in_company, ranks);
}

/* ---- numbers that wrap ----------------------------------------------------------------------- */

static void around_the_wrap(tt_rank *t)
{
    t->seq = (UINT64_C(1) << 40) - 20;
    calls_of_all_kinds(t, 60);
    tt_all_here(t);
}

static void who_differs_after_the_wrap(tt_rank *t)
{
    t->seq = (UINT64_C(1) << 40) - 2;
    TT_CHECK(t, tt_barrier(t) == TUTTI_OK);
    TT_CHECK(t, tt_barrier(t) == TUTTI_OK);
    if (t->rank == 0) {
        TT_CHECK(t, tt_barrier(t) == TUTTI_E_MISMATCH);
    } else {
        int32_t    data[1] = { 0 };
        tutti_call call = tt_call(t, TUTTI_CALL_ALL_REDUCE, TUTTI_I32, 1);

        call.in = call.out = data;
        TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_E_MISMATCH);
    }
    tt_all_here(t);
}

static void numbers_may_wrap(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(3, false, around_the_wrap, ranks);
    tt_run(2, false, who_differs_after_the_wrap, ranks);
}

/* ---- numbers with gaps ----------------------------------------------------------------------- */

/* Turns that were given back, or went to another backend of the group: all numbers that are left are odd. */
static void every_other_number(tt_rank *t)
{
    int i;

    for (i = 0; i < CALLS && t->failure[0] == '\0'; i++, t->seq++)
        broadcast(t, 1);
    for (i = 0; i < CALLS && t->failure[0] == '\0'; i++, t->seq++)
        gather(t, i / 3 % t->size);
    tt_all_here(t);
}

/* However far apart: a root that has gone on is still found to have called something else. */
static void who_differs_before_a_gap(tt_rank *t)
{
    int32_t    data[2] = { 0 };
    tutti_call call;
    int        i;

    t->deadline_ns = tt_in_ms(SOON_MS);
    for (i = 0; i < TTI_HOST_AHEAD && t->rank == 0; i++, t->seq += TTI_CALL_RING - 1) {
        call = tt_call(t, TUTTI_CALL_BROADCAST, TUTTI_I32, 1);
        call.root = 0;
        call.in = data;
        TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    }
    tt_all_here(t);
    call = tt_call(t, TUTTI_CALL_BROADCAST, TUTTI_I32, 2);
    call.root = 0;
    call.in = call.out = data;
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_E_MISMATCH);
    tt_all_here(t);
}

static void numbers_may_have_gaps(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(2, false, who_differs_before_a_gap, ranks);
    tt_run(2, false, every_other_number, ranks);
    tt_run(3, false, every_other_number, ranks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_overwritten_before_it_is_read),
        cmocka_unit_test(a_root_does_not_wait_for_the_others),
        cmocka_unit_test(blocks_arrive_whichever_way_they_go),
        cmocka_unit_test(no_wake_up_is_lost),
        cmocka_unit_test(nor_without_a_barrier_for_all),
        cmocka_unit_test(who_keeps_the_core_is_not_given_it_again),
        cmocka_unit_test(numbers_may_wrap),
        cmocka_unit_test(numbers_may_have_gaps),
    };

    return cmocka_run_group_tests_name("lines", tests, NULL, NULL);
}

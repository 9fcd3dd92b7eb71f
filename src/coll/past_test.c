/* SPDX-License-Identifier: BSD-3-Clause
 *
 * past_test.c
 * Goal    results that go past the caches are the same, on every way that a call can take; and they do so where they
 *         do not fit into the caches, not before.
 * Method  The decision on calls made by hand. Then ranks as threads on a machine whose caches are said to be tiny, with
 *         parts of sizes, and at addresses, that are no multiples of a line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/memory.h>
#include "coll/coll_ranks.h"
#include "coll/host/past.h"

enum { MIB = 1 << 20, N_RANKS = 3, COUNT = 30011, AROUND = 17 };

/* ---- the decision -------------------------------------------------------------------------------- */

static bool past(tutti_call_kind kind, int64_t floats, int turns, int n_ranks)
{
    const tti_machine machine = { .near_bytes = 2 * MIB, .last_bytes = 4 * MIB };
    const tutti_call  call = { .kind = kind, .dtype = TUTTI_F32, .count = floats };

    return tti_past_caches(&machine, turns, &call, 0, n_ranks);
}

static void what_fits_the_caches_stays_there(void **state)
{
    const int64_t mib = MIB / (int64_t)sizeof(float);

    (void)state;
    assert_false(past(TUTTI_CALL_ALL_GATHER, mib / 2, 1, 2));
    assert_true(past(TUTTI_CALL_ALL_GATHER, mib, 1, 2)); /* 1 in, 2 out */
    assert_true(past(TUTTI_CALL_ALL_GATHER, mib / 8, 4, 8));
    assert_false(past(TUTTI_CALL_REDUCE_SCATTER, mib / 2, 1, 2));
    assert_true(past(TUTTI_CALL_REDUCE_SCATTER, mib, 1, 2));
    assert_false(past(TUTTI_CALL_SCATTER, mib, 1, 2));
    assert_true(past(TUTTI_CALL_SCATTER, mib, 2, 2));
    /* Of a broadcast only what is larger than all caches. */
    assert_false(past(TUTTI_CALL_BROADCAST, 32 * mib, 1, 2));
    assert_true(past(TUTTI_CALL_BROADCAST, 32 * mib, 2, 4));
    /* Sums in place have read where they write. */
    assert_false(past(TUTTI_CALL_ALL_REDUCE, 1000 * mib, 4, 8));
    assert_false(past(TUTTI_CALL_REDUCE, 1000 * mib, 4, 8));
    assert_false(past(TUTTI_CALL_BARRIER, 0, 4, 8));
}

static void blocks_of_all_sizes_are_added_up(void **state)
{
    const tti_machine machine = { .near_bytes = 4000, .last_bytes = 1 };
    const int64_t     gives[] = { 100, 200, 300 }, takes[] = { 100, 0, 301 };
    tutti_call        call = { .kind = TUTTI_CALL_ALL_TO_ALL, .dtype = TUTTI_F32, .n_parts = 3, .in_counts = gives,
                               .list_counts = takes };

    (void)state;
    assert_true(tti_past_caches(&machine, 1, &call, 0, 3));
    call.in_counts = takes;
    assert_false(tti_past_caches(&machine, 1, &call, 0, 3));
}

/* ---- the results --------------------------------------------------------------------------------- */

/* Every buffer of a rank, with room around. */
typedef struct buffers {
    float       *all;
    float       *part;
    void        *list[N_RANKS];
    const void  *ins[N_RANKS];
    int64_t      counts[N_RANKS];
} buffers;

static float value(int rank, int part, int64_t i)
{
    return (float)(rank * 7 + part * 3 + (int)(i % 5));
}

static void take_buffers(buffers *b, bool registered)
{
    const size_t bytes = (size_t)(2 * N_RANKS + 1) * (COUNT + AROUND) * sizeof(float);
    void        *at = NULL;
    int          r;

    if (registered ? tutti_alloc(bytes, &at) != TUTTI_OK : (at = malloc(bytes)) == NULL)
        abort();
    b->all = at;
    memset(b->all, 0xff, bytes);
    for (r = 0; r < N_RANKS; r++) {
        b->list[r] = b->all + 1 + r * (COUNT + AROUND);
        b->ins[r] = b->all + 1 + (N_RANKS + r) * (COUNT + AROUND);
        b->counts[r] = COUNT;
    }
    b->part = b->all + 1 + 2 * N_RANKS * (COUNT + AROUND);
}

static void give_buffers(const buffers *b, bool registered)
{
    if (registered)
        tutti_free(b->all);
    else
        free(b->all);
}

static void set(const void *at, int rank, int part)
{
    float  *to = (float *)(uintptr_t)at;
    int64_t i;

    for (i = 0; i < COUNT; i++)
        to[i] = value(rank, part, i);
}

/* Whether part of what rank gave, or the sum of all ranks (-1), is there, and nothing behind it was touched. */
static bool has(const void *at, int rank, int part)
{
    const float *from = at;
    uint32_t     behind;
    int64_t      i;
    int          r;

    for (i = 0; i < COUNT; i++) {
        float sum = 0;

        for (r = 0; r < N_RANKS; r++)
            sum += rank < 0 || r == rank ? value(r, part, i) : 0;
        if (from[i] != sum)
            return false;
    }
    memcpy(&behind, from + COUNT, sizeof behind);
    return behind == UINT32_MAX;
}

static void gathers(tt_rank *t, buffers *b, tutti_call_kind kind)
{
    tutti_call call = tt_call(t, kind, TUTTI_F32, COUNT);
    int        r;

    call.in = b->part;
    call.list = b->list;
    call.root = kind == TUTTI_CALL_GATHER ? 1 : -1;
    set(b->part, t->rank, 0);
    memset(b->list[0], 0xff, N_RANKS * (COUNT + AROUND) * sizeof(float));
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    for (r = 0; r < N_RANKS && (kind != TUTTI_CALL_GATHER || t->rank == 1); r++)
        TT_CHECK(t, has(b->list[r], r, 0));
}

static void scatters(tt_rank *t, buffers *b, tutti_call_kind kind)
{
    const bool scatter = kind == TUTTI_CALL_SCATTER;
    tutti_call call = tt_call(t, kind, TUTTI_F32, COUNT);
    int        r;

    call.list = (void *const *)(uintptr_t)b->ins;
    call.out = b->part;
    call.root = scatter ? 2 : -1;
    for (r = 0; r < N_RANKS; r++)
        set(b->ins[r], t->rank, r);
    memset(b->part, 0xff, COUNT * sizeof(float));
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    TT_CHECK(t, has(b->part, scatter ? 2 : -1, t->rank));
    if (scatter)
        return;
    call = tt_call(t, kind, TUTTI_F32, COUNT); /* and into the own entry */
    call.list = (void *const *)(uintptr_t)b->ins;
    call.out = call.list[t->rank];
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    TT_CHECK(t, has(call.out, -1, t->rank));
}

static void swaps(tt_rank *t, buffers *b)
{
    tutti_call call = tt_call(t, TUTTI_CALL_ALL_TO_ALL, TUTTI_F32, 0);
    int        r;

    call.n_parts = N_RANKS;
    call.ins = b->ins;
    call.list = b->list;
    call.in_counts = call.list_counts = b->counts;
    for (r = 0; r < N_RANKS; r++)
        set(b->ins[r], t->rank, r);
    memset(b->list[0], 0xff, N_RANKS * (COUNT + AROUND) * sizeof(float));
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    for (r = 0; r < N_RANKS; r++)
        TT_CHECK(t, has(b->list[r], r, t->rank));
}

static void broadcasts(tt_rank *t, buffers *b)
{
    tutti_call call = tt_call(t, TUTTI_CALL_BROADCAST, TUTTI_F32, COUNT);

    call.root = 1;
    call.in = call.out = b->part;
    memset(b->part, 0xff, COUNT * sizeof(float));
    if (t->rank == 1)
        set(b->part, 1, 4);
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    TT_CHECK(t, has(b->part, 1, 4));
}

static void all_kinds(tt_rank *t, bool registered)
{
    buffers b;
    int     turn;

    take_buffers(&b, registered);
    for (turn = 0; turn < 3; turn++) { /* registered memory is looked for from the second call on */
        gathers(t, &b, TUTTI_CALL_ALL_GATHER);
        gathers(t, &b, TUTTI_CALL_GATHER);
        scatters(t, &b, TUTTI_CALL_SCATTER);
        scatters(t, &b, TUTTI_CALL_REDUCE_SCATTER);
        swaps(t, &b);
        broadcasts(t, &b);
    }
    TT_CHECK(t, registered == (tti_coll_count_registered(t->coll) > 0));
    tt_all_here(t);
    give_buffers(&b, registered);
}

static void on_ordinary(tt_rank *t)
{
    all_kinds(t, false);
}

static void on_registered(tt_rank *t)
{
    all_kinds(t, true);
}

static void run_on_tiny_caches(const char *algorithms, tt_body *body)
{
    tti_machine machine = tti_machine_default;
    tt_rank     ranks[TT_RANKS_MAX];

    machine.near_bytes = machine.last_bytes = 64;
    assert_int_equal(setenv("TUTTI_ALGO", algorithms, 1), 0);
    tt_run_on(&machine, N_RANKS, false, body, ranks);
    assert_int_equal(unsetenv("TUTTI_ALGO"), 0);
}

static void through_slots(void **state)
{
    (void)state;
    run_on_tiny_caches("all_gather=staged,gather=staged,scatter=staged,reduce_scatter=staged,all_to_all=staged,"
                       "broadcast=staged", on_ordinary);
}

static void out_of_their_owners(void **state)
{
    (void)state;
    run_on_tiny_caches("all_gather=pull,gather=pull,scatter=pull,reduce_scatter=pull,all_to_all=pull", on_ordinary);
}

static void on_registered_memory(void **state)
{
    (void)state;
    run_on_tiny_caches("all_gather=fused,gather=fused,scatter=fused,reduce_scatter=fused,all_to_all=fused,"
                       "broadcast=fused", on_registered);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_the_caches_stays_there),
        cmocka_unit_test(blocks_of_all_sizes_are_added_up),
        cmocka_unit_test(through_slots),
        cmocka_unit_test(out_of_their_owners),
        cmocka_unit_test(on_registered_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

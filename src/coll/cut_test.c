/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cut_test.c
 * Goal    chunks cover every element once, begin on lines, and differ little; how a call is cut is a matter of what all
 *         ranks share; memory stays bounded, and small calls stay whole; a broadcast ends soon behind its root,
 *         and a root of a reduce begins soon; where bytes are dear, sooner.
 * Method  Arithmetic, over all plans, many sizes and numbers of ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "coll/choose.h"
#include "coll/net/cut.h"
#include "coll/pattern.h"

enum { MIB = 1024 * 1024 };

static const tutti_dtype dtypes[] = { TUTTI_U8, TUTTI_BF16, TUTTI_F32, TUTTI_C128 };
static const int         ranks[] = { 1, 2, 3, 8, 64, 1000 };
static const double      wires[] = { 0, 1, 1.99, 2, 3.2, 8, 80, 1e6 }; /* ns of a byte */
enum { WIRES = sizeof wires / sizeof wires[0], DEAR_ONES = 3 };

static void check_cover(const tti_cut *cut, int64_t count, size_t element)
{
    int64_t sum = 0;
    int     k;

    assert_true(cut->n_chunks >= 1 && cut->window >= 1 && cut->window <= 16 && cut->sends >= 1);
    for (k = 0; k < cut->n_chunks; k++) {
        const int64_t n = tti_cut_count(cut, count, k);

        assert_true(n > 0 || count == 0);
        assert_true(k == cut->n_chunks - 1 || n == cut->elements);
        assert_true(cut->n_chunks == 1 || k * cut->elements * (int64_t)element % TTI_SLICE_ALIGN == 0);
        sum += n;
    }
    assert_int_equal(sum, count);
    assert_int_equal(tti_cut_count(cut, count, cut->n_chunks), 0);
}

static void chunks_cover_everything_once(void **state)
{
    static const int64_t bytes[] = { 0, 1, 100, 65536, MIB, 4 * MIB + 16, 64 * MIB - 48, (int64_t)1024 * MIB };
    int                  n, i;
    const tti_algorithm *rows = tti_algorithms(&n);
    size_t               d, r, b, w;

    (void)state;
    for (i = 0; i < n; i++)
        for (d = 0; d < 4; d++)
            for (r = 0; r < sizeof ranks / sizeof ranks[0] && rows[i].plan != NULL; r++)
                for (b = 0; b < sizeof bytes / sizeof bytes[0]; b++) {
                    const size_t     element = tutti_dtype_size(dtypes[d]);
                    const tutti_call call = { .kind = rows[i].kind, .dtype = dtypes[d], .op = TUTTI_SUM, .root = -1,
                                              .count = bytes[b] / (int64_t)element };

                    for (w = 0; w < WIRES; w++) {
                        const tti_cut cut = tti_cut_of(rows[i].plan, &call, ranks[r], wires[w]);

                        check_cover(&cut, call.count, element);
                        if (bytes[b] <= 65536)
                            assert_int_equal(cut.n_chunks, 1);
                    }
                }
}

static void check_memory(tti_plan *plan, tutti_call_kind kind, size_t first)
{
    const tutti_call call = { .kind = kind, .dtype = TUTTI_F32, .op = TUTTI_SUM, .count = 256 * MIB };
    size_t           r, w;

    for (r = first; r < sizeof ranks / sizeof ranks[0]; r++)
        for (w = 0; w < WIRES; w++) {
            const tti_cut cut = tti_cut_of(plan, &call, ranks[r], wires[w]);

            assert_in_range((uint64_t)cut.elements * 4 * (uint64_t)cut.window, 1, 16 * MIB + (uint64_t)ranks[r] * 300 * 1024);
            assert_true(cut.n_chunks > cut.window);
        }
}

/* What a call works in does not grow with it, but with the ranks, where slices would become too short. A reduce of one rank
 * works in nothing; of two, one rank works in all that the call has. */
static void memory_is_bounded(void **state)
{
    (void)state;
    check_memory(tti_plan_all_reduce_direct, TUTTI_CALL_ALL_REDUCE, 0);
    assert_int_equal(ranks[1], 2);
    check_memory(tti_plan_reduce_direct, TUTTI_CALL_REDUCE, 1);
    check_memory(tti_plan_reduce_direct_tree, TUTTI_CALL_REDUCE, 1);
}

/* Nobody hands anything on there. */
static void a_broadcast_of_two_stays_whole(void **state)
{
    const tutti_call call = { .kind = TUTTI_CALL_BROADCAST, .dtype = TUTTI_F32, .root = 0, .count = 256 * MIB };

    (void)state;
    assert_int_equal(tti_cut_of(tti_plan_broadcast_sliced, &call, 2, 1).n_chunks, 1);
    assert_int_equal(tti_cut_of(tti_plan_broadcast_chain, &call, 2, 1).n_chunks, 1);
}

/* When the root has dealt out the last chunk the others still have it to pass on, but for their own slices: no more than
 * an eighth of the call, or the shortest messages. */
static void the_end_of_a_broadcast_is_short(void **state)
{
    static const int64_t bytes[] = { 512 * 1024, 4 * MIB, 16 * MIB, 64 * MIB };
    size_t               b, r;

    (void)state;
    for (b = 0; b < sizeof bytes / sizeof bytes[0]; b++)
        for (r = 2; r < sizeof ranks / sizeof ranks[0]; r++) {
            const tutti_call call = { .kind = TUTTI_CALL_BROADCAST, .dtype = TUTTI_U8, .root = 0, .count = bytes[b] };
            const tti_cut    cut = tti_cut_of(tti_plan_broadcast_sliced, &call, ranks[r], 1);
            const int64_t    slice = cut.elements / (ranks[r] - 1);

            if (slice > 128 * 1024)
                assert_in_range((uint64_t)(cut.elements - slice), 0, (uint64_t)bytes[b] / 8);
        }
}

/* The root has nothing to receive until the owners of the first chunk have it all: the same the other way round. Of 1 MiB among
 * four there were no chunks once, and a link took it twice. */
static void the_beginning_of_a_reduce_is_short(void **state)
{
    tti_plan *const plans[] = { tti_plan_reduce_direct, tti_plan_reduce_direct_tree };
    tutti_call      call = { .kind = TUTTI_CALL_REDUCE, .dtype = TUTTI_U8, .op = TUTTI_SUM, .root = 0, .count = MIB };
    size_t          p;

    (void)state;
    for (p = 0; p < 2; p++) {
        const tti_cut cut = tti_cut_of(plans[p], &call, 4, 1);
        tti_cut       same;

        assert_in_range(cut.n_chunks, 5, 8);
        assert_true(cut.elements / 3 >= 64 * 1024); /* messages are not short for that */
        call.kind = TUTTI_CALL_BROADCAST;
        same = tti_cut_of(tti_plan_broadcast_sliced, &call, 4, 1);
        call.kind = TUTTI_CALL_REDUCE;
        assert_int_equal(same.elements, cut.elements);
    }
}

static bool is_cut_alike(tti_plan *plan, const tutti_call *call, int n_ranks, double wire, double other)
{
    const tti_cut a = tti_cut_of(plan, call, n_ranks, wire), b = tti_cut_of(plan, call, n_ranks, other);

    return a.elements == b.elements && a.n_chunks == b.n_chunks && a.window == b.window && a.sends == b.sends;
}

/* Where a byte is cheap, or nobody knows, and of a ring of all_reduce, whose bits chunks are a matter of, calls are cut the same way. */
static void cheap_links_and_rings_are_cut_as_always(void **state)
{
    int                  n, i;
    const tti_algorithm *rows = tti_algorithms(&n);
    size_t               w, r;
    int64_t              bytes;

    (void)state;
    for (i = 0; i < n; i++)
        for (r = 0; r < sizeof ranks / sizeof ranks[0] && rows[i].plan != NULL; r++)
            for (bytes = 1; bytes <= 256 * MIB; bytes *= 4)
                for (w = 0; w < (rows[i].plan == tti_plan_all_reduce_ring ? WIRES : DEAR_ONES); w++) {
                    const tutti_call call = { .kind = rows[i].kind, .dtype = TUTTI_U8, .op = TUTTI_SUM, .root = -1, .count = bytes };

                    assert_true(is_cut_alike(rows[i].plan, &call, ranks[r], 0, wires[w]));
                }
}

/* At 1 Gb/s: behind the last byte that a root has sent a chain has a twentieth of 16 MiB to hand on, and a root of a reduce waits
 * for a twelfth at most, what is under way included. */
static void dear_links_wait_for_little(void **state)
{
    tutti_call call = { .kind = TUTTI_CALL_BROADCAST, .dtype = TUTTI_U8, .op = TUTTI_SUM, .root = 0, .count = 16 * MIB };
    tti_cut    cut;
    int        n;

    (void)state;
    for (n = 3; n <= 8; n++) {
        call.kind = TUTTI_CALL_BROADCAST;
        cut = tti_cut_of(tti_plan_broadcast_chain, &call, n, 8);
        assert_true(cut.elements * (n - 2) <= 16 * MIB / 20 && cut.elements >= 64 * 1024);
        call.kind = TUTTI_CALL_REDUCE;
        cut = tti_cut_of(tti_plan_reduce_direct, &call, n, 8);
        assert_true(cut.window >= 4 && cut.elements * (cut.window + 1) <= 16 * MIB / 12);
        assert_true(cut.elements / (n - 1) >= 32 * 1024);
        call.kind = TUTTI_CALL_ALL_REDUCE;
        call.count = 4 * MIB;
        cut = tti_cut_of(tti_plan_all_reduce_direct, &call, n, 8);
        assert_true(cut.n_chunks >= 4);
        call.count = 16 * MIB;
    }
}

static void check_way(tti_plan *plan, tutti_call_kind kind, int64_t bytes, int n_ranks, double trip_ns)
{
    const tutti_call call = { .kind = kind, .dtype = TUTTI_U8, .op = TUTTI_SUM, .root = 0, .count = bytes };
    const tti_cut    near = tti_cut_of(plan, &call, n_ranks, 8), far = tti_cut_over(plan, &call, n_ranks, 8, trip_ns);
    const int64_t    under_way = far.window * far.elements;

    assert_true(far.elements == near.elements && far.n_chunks == near.n_chunks && far.sends == near.sends);
    assert_true(far.window >= near.window && far.window <= 128);
    if (far.n_chunks == 1)
        return;
    assert_true(under_way <= 8 * MIB + 2 * far.elements || far.window == near.window);
    assert_true((double)under_way >= 2 * trip_ns / 8 || under_way >= 7 * MIB);
    if (trip_ns <= 1e5)
        assert_int_equal(far.window, near.window);
}

/* As much is under way as 1 Gb/s carry in two round trips, as far as memory goes; chunks are the same, on which ranks agree, and so is
 * what is under way over a short way, and on a quicker link. */
static void a_long_way_is_filled(void **state)
{
    static const double  trips_ns[] = { 0, 1e5, 2e6, 2e7, 1e9, 1e15 };
    static const int64_t bytes[] = { MIB, 2 * MIB, 16 * MIB, 64 * MIB };
    const tutti_call     call = { .kind = TUTTI_CALL_REDUCE, .dtype = TUTTI_U8, .op = TUTTI_SUM, .root = 0, .count = 64 * MIB };
    size_t               t, b;
    int                  n;

    (void)state;
    for (n = 3; n <= 8; n++)
        for (t = 0; t < sizeof trips_ns / sizeof trips_ns[0]; t++)
            for (b = 0; b < sizeof bytes / sizeof bytes[0]; b++) {
                check_way(tti_plan_reduce_direct, TUTTI_CALL_REDUCE, bytes[b], n, trips_ns[t]);
                check_way(tti_plan_broadcast_chain, TUTTI_CALL_BROADCAST, bytes[b], n, trips_ns[t]);
                check_way(tti_plan_all_reduce_direct, TUTTI_CALL_ALL_REDUCE, bytes[b], n, trips_ns[t]);
            }
    assert_int_equal(tti_cut_over(tti_plan_reduce_direct, &call, 4, 1, 2e7).window, tti_cut_of(tti_plan_reduce_direct, &call, 4, 1).window);
}

/* Blocks of which only two ranks know the sizes: both find the same chunks in them. */
static void both_ends_of_a_block_cut_alike(void **state)
{
    const int64_t    few[] = { 10, 0 }, many[] = { 5 * MIB, 10 };
    const tutti_call giver = { .kind = TUTTI_CALL_ALL_TO_ALL, .dtype = TUTTI_F32, .root = -1, .n_parts = 2,
                               .in_counts = many, .list_counts = few };
    const tutti_call taker = { .kind = TUTTI_CALL_ALL_TO_ALL, .dtype = TUTTI_F32, .root = -1, .n_parts = 2,
                               .in_counts = few, .list_counts = few };
    const tti_cut    a = tti_cut_into(&giver, 2, 1000, 2), b = tti_cut_into(&taker, 2, 1000, 2);
    int              k;

    (void)state;
    assert_int_equal(a.n_chunks, (5 * MIB + 999) / 1000);
    assert_int_equal(b.n_chunks, 1);
    for (k = 0; k < 3; k++)
        assert_int_equal(tti_cut_count(&a, 10, k), tti_cut_count(&b, 10, k));
}

/* What the last chunk of the longest part takes, from rank to rank, is half of that part at most, or the shortest messages;
 * parts of one length, of which none waits for another, stay whole. */
static void long_parts_go_around_in_chunks(void **state)
{
    static const int64_t bytes[] = { 256 * 1024, MIB, 6 * MIB, 64 * MIB };
    int64_t              counts[64];
    size_t               b, r;
    int                  i;

    (void)state;
    for (b = 0; b < sizeof bytes / sizeof bytes[0]; b++)
        for (r = 2; ranks[r] <= 64; r++) {
            tutti_call call = { .kind = TUTTI_CALL_ALL_GATHER, .dtype = TUTTI_U8, .root = -1, .count = bytes[b] };
            tti_cut    cut = tti_cut_of(tti_plan_all_gather_ring, &call, ranks[r], 1);

            assert_int_equal(cut.n_chunks, 1);
            for (i = 0; i < ranks[r]; i++)
                counts[i] = i == 1 ? bytes[b] : 1000;
            call.list_counts = counts;
            call.n_parts = ranks[r];
            call.count += (ranks[r] - 1) * 1000;
            cut = tti_cut_of(tti_plan_all_gather_ring, &call, ranks[r], 1);
            assert_true(cut.n_chunks > 1 && cut.elements >= 64 * 1024 && cut.elements <= 1024 * 1024);
            assert_true(cut.elements <= 128 * 1024 || cut.elements * (ranks[r] - 2) <= bytes[b] / 2);
            assert_int_equal(tti_cut_of(tti_plan_all_gather_direct, &call, ranks[r], 1).n_chunks, 1);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_cover_everything_once),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(a_broadcast_of_two_stays_whole),
        cmocka_unit_test(the_end_of_a_broadcast_is_short),
        cmocka_unit_test(the_beginning_of_a_reduce_is_short),
        cmocka_unit_test(cheap_links_and_rings_are_cut_as_always),
        cmocka_unit_test(dear_links_wait_for_little),
        cmocka_unit_test(a_long_way_is_filled),
        cmocka_unit_test(both_ends_of_a_block_cut_alike),
        cmocka_unit_test(long_parts_go_around_in_chunks),
    };

    return cmocka_run_group_tests_name("cut", tests, NULL, NULL);
}

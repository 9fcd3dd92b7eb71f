/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pattern_test.c
 * Goal    slices cover a buffer exactly, trees and circles reach everybody exactly once.
 * Method  every number of ranks from 1 to 64, every root, counts around the edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "coll/pattern.h"

enum { RANKS_MAX = 64 };

static void check_slices(int64_t count, size_t element, int parts)
{
    int64_t   next = 0, longest = 0, shortest = INT64_MAX;
    const int64_t per_line = (int64_t)(TTI_SLICE_ALIGN / element);
    int       part;

    for (part = 0; part < parts; part++) {
        const tti_slice slice = tti_slice_of(count, element, parts, part);
        const int64_t   length = slice.end - slice.begin;

        assert_int_equal(slice.begin, next);
        assert_true(length >= 0);
        assert_true(length == 0 || slice.begin % per_line == 0);
        longest = length > longest ? length : longest;
        shortest = length < shortest ? length : shortest;
        next = slice.end;
    }
    assert_int_equal(next, count);
    assert_true(longest - shortest <= 2 * per_line - 1); /* a line, and the last one may be cut */
}

static void every_element_has_one_owner(void **state)
{
    static const int64_t counts[] = { 0, 1, 3, 15, 16, 17, 1000, 65537, 200001,
                                      INT64_C(1) << 40, INT64_MAX / 16 };
    static const size_t  elements[] = { 1, 2, 4, 8, 16 };
    size_t               c, e;
    int                  parts;

    (void)state;
    for (c = 0; c < sizeof counts / sizeof counts[0]; c++)
        for (e = 0; e < sizeof elements / sizeof elements[0]; e++)
            for (parts = 1; parts <= RANKS_MAX; parts++)
                check_slices(counts[c], elements[e], parts);
}

static void doubling_reaches_all(void **state)
{
    int n;

    (void)state;
    for (n = 1; n <= RANKS_MAX; n++) {
        const int steps = tti_doubling_steps(n);

        assert_true(1 << steps >= n);
        assert_true(steps == 0 || 1 << (steps - 1) < n);
    }
}

static void shifts_visit_everybody_once(void **state)
{
    int n, rank, by;

    (void)state;
    for (n = 1; n <= RANKS_MAX; n++)
        for (rank = 0; rank < n; rank++) {
            char seen[RANKS_MAX] = { 0 };

            for (by = 0; by < n; by++) {
                const int peer = tti_shifted(rank, by, n);

                assert_in_range(peer, 0, n - 1);
                assert_int_equal(seen[peer]++, 0);
                assert_int_equal(tti_shifted(peer, -by, n), rank);
            }
        }
}

/* One rank hands on to its children of a step: how many. */
static int hand_on(int rank, int root, int n, int radix, int step, const int *has, int *fresh)
{
    int i, n_children = 0, heard_in = -1;

    for (i = 1; i < radix; i++) {
        const int child = tti_radix_child(rank, root, n, radix, step, i);

        if (child < 0)
            continue;
        assert_true(has[rank]);
        assert_false(has[child] || fresh[child]);
        assert_int_equal(tti_radix_parent(child, root, n, radix, &heard_in), rank);
        assert_int_equal(heard_in, step);
        fresh[child] = 1;
        n_children++;
    }
    return n_children;
}

/* Play the tree: who has it after each step, by the parents' view and by the children's. */
static void check_tree(int n, int root, int radix)
{
    int has[RANKS_MAX] = { 0 };
    int step, rank, reached = 1, heard_in = -1;

    has[root] = 1;
    assert_int_equal(tti_radix_parent(root, root, n, radix, &heard_in), -1);
    for (step = 0; step < tti_radix_steps(n, radix); step++) {
        int fresh[RANKS_MAX] = { 0 };

        for (rank = 0; rank < n; rank++)
            reached += hand_on(rank, root, n, radix, step, has, fresh);
        for (rank = 0; rank < n; rank++)
            has[rank] |= fresh[rank];
    }
    assert_int_equal(reached, n);
}

static void trees_span(void **state)
{
    int n, root, radix;

    (void)state;
    for (n = 1; n <= RANKS_MAX; n++)
        for (root = 0; root < n; root++)
            for (radix = 2; radix <= 5; radix++)
                check_tree(n, root, radix);
}

static void radix_two_doubles(void **state)
{
    int n;

    (void)state;
    for (n = 1; n <= RANKS_MAX; n++)
        assert_int_equal(tti_radix_steps(n, 2), tti_doubling_steps(n));
}

/* Seats are a power of two, in the order of ranks, with one rank or two neighbours each. */
static void every_rank_has_a_seat(void **state)
{
    int n, rank, seat;

    (void)state;
    for (n = 1; n <= RANKS_MAX; n++) {
        const tti_seats seats = tti_seats_of(n);
        int             next = 0;

        assert_int_equal(seats.n, 1 << seats.steps);
        assert_true(seats.n <= n && n < 2 * seats.n);
        for (seat = 0; seat < seats.n; seat++) {
            assert_int_equal(tti_sitting(&seats, seat), next);
            for (rank = next; rank < n && tti_seat_of(&seats, rank) == seat; rank++)
                assert_int_equal(tti_pair_of(&seats, rank), seat < seats.n_pairs ? 4 * seat + 1 - rank : -1);
            assert_int_equal(rank - next, seat < seats.n_pairs ? 2 : 1);
            next = rank;
        }
        assert_int_equal(next, n);
    }
}

static void reversing_twice_changes_nothing(void **state)
{
    int bits, x;

    (void)state;
    for (bits = 0; bits <= 10; bits++)
        for (x = 0; x < 1 << bits; x++)
            assert_int_equal(tti_reversed(tti_reversed(x, bits), bits), x);
    assert_int_equal(tti_reversed(6, 3), 3);
    assert_int_equal(tti_reversed(1, 6), 32);
}

/* After the rounds of dissemination everybody has heard, over some way, of everybody. */
static void dissemination_tells_all(void **state)
{
    int n, step, rank;

    (void)state;
    for (n = 1; n <= RANKS_MAX; n++) {
        uint64_t knows[RANKS_MAX], next[RANKS_MAX];

        for (rank = 0; rank < n; rank++)
            knows[rank] = UINT64_C(1) << rank;
        for (step = 0; step < tti_doubling_steps(n); step++) {
            for (rank = 0; rank < n; rank++)
                next[rank] = knows[rank] | knows[tti_shifted(rank, -(1 << step), n)];
            memcpy(knows, next, sizeof knows);
        }
        for (rank = 0; rank < n; rank++)
            assert_true(knows[rank] == UINT64_MAX >> (64 - n));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_has_one_owner), cmocka_unit_test(doubling_reaches_all),
        cmocka_unit_test(shifts_visit_everybody_once), cmocka_unit_test(trees_span),
        cmocka_unit_test(radix_two_doubles), cmocka_unit_test(every_rank_has_a_seat),
        cmocka_unit_test(reversing_twice_changes_nothing),
        cmocka_unit_test(dissemination_tells_all),
    };

    return cmocka_run_group_tests_name("pattern", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * slices_test.c
 * Goal    every number is in one piece of one owner, whole blocks together; pieces are as many as said and fit.
 * Method  all group sizes up to 64, counts around the boundaries of blocks, slices and pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "compress/slices.h"

static void check(int64_t count, int block, int n_ranks)
{
    const tti_slices s = tti_slices_of(count, block, n_ranks);
    int64_t          next = 0, blocks = 0, least = INT64_MAX, most = 0, k;
    int              r;

    for (r = 0; r < n_ranks; r++) {
        int64_t own = 0;

        for (k = 0; k < s.n_pieces; k++) {
            const tti_stretch p = tti_slices_part(&s, r, k);

            assert_int_equal(p.count == 0, p.n_blocks == 0);
            if (p.count == 0)
                continue;
            assert_int_equal(p.from, next);
            assert_int_equal(p.from % block, 0);
            assert_int_equal(p.n_blocks, (p.count + block - 1) / block);
            assert_true(tti_stretch_bytes(&p) <= tti_slices_room(&s));
            next += p.count;
            own += p.n_blocks;
        }
        assert_int_equal(tti_slices_part(&s, r, s.n_pieces).count, 0);
        least = own < least ? own : least;
        most = own > most ? own : most;
        blocks += own;
    }
    assert_int_equal(next, count);
    assert_int_equal(blocks, s.n_blocks);
    assert_true(most - least <= 1);
}

static void every_number_has_one_owner_and_one_piece(void **state)
{
    static const int     blocks[] = { 64, 256, 1024 };
    static const int64_t counts[] = { 0, 1, 63, 64, 65, 255, 256, 257, 4096, 100003, 1 << 20, (1 << 22) + 1 };
    size_t               b, c;
    int                  n;

    (void)state;
    for (b = 0; b < sizeof blocks / sizeof *blocks; b++)
        for (c = 0; c < sizeof counts / sizeof *counts; c++)
            for (n = 1; n <= 64; n++)
                check(counts[c], blocks[b], n);
}

static void counts_beyond_memory_do_not_overflow(void **state)
{
    const tti_slices s = tti_slices_of(INT64_C(1) << 60, 64, 10000);
    const tti_stretch   last = tti_slices_part(&s, 9999, s.n_pieces - 1);

    (void)state;
    assert_int_equal(last.from + last.count, INT64_C(1) << 60);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_has_one_owner_and_one_piece),
        cmocka_unit_test(counts_beyond_memory_do_not_overflow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

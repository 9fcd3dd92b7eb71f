/* SPDX-License-Identifier: BSD-3-Clause
 *
 * partition_test.c
 * Goal    parameters are given away as torch's ZeroRedundancyOptimizer gives them, group after group.
 * Method  tables: sizes, and which rank gets them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "zero/zero.h"

static void expect(const int64_t *numel, int n, int size, int64_t *load, const int *want)
{
    int owner[16];

    assert_true(tti_zero_partition(numel, n, size, load, owner));
    assert_memory_equal(owner, want, (size_t)n * sizeof *want);
}

static void the_largest_first_to_who_has_least(void **unused)
{
    const int64_t sizes[] = { 10, 7, 7, 3, 2, 2, 1 };
    const int64_t mixed[] = { 2, 7, 1, 10, 3, 2, 7 };
    int64_t load[2] = { 0 }, again[2] = { 0 };

    (void)unused;
    expect(sizes, 7, 2, load, (const int[]){ 0, 1, 1, 0, 0, 1, 0 }); /* [10, 3, 2, 1], [7, 7, 2] */
    assert_int_equal(load[0], 16);
    assert_int_equal(load[1], 16);
    /* In another order: equal sizes are taken in theirs. */
    expect(mixed, 7, 2, again, (const int[]){ 0, 1, 0, 0, 0, 1, 1 });
}

static void groups_count_on(void **unused)
{
    int64_t load[3] = { 0 };

    (void)unused;
    expect((const int64_t[]){ 5, 4, 4 }, 3, 3, load, (const int[]){ 0, 1, 2 });
    expect((const int64_t[]){ 1, 1, 6 }, 3, 3, load, (const int[]){ 2, 0, 1 });
    expect((const int64_t[]){ 1 }, 1, 3, load, (const int[]){ 2 });
}

static void more_ranks_than_parameters(void **unused)
{
    int64_t load[4] = { 0 };

    (void)unused;
    expect((const int64_t[]){ 0, 3 }, 2, 4, load, (const int[]){ 1, 0 });
    expect((const int64_t[]){ 0 }, 0, 4, load, (const int[]){ 0 });
    assert_int_equal(load[0], 3);
    assert_int_equal(load[3], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_first_to_who_has_least),
        cmocka_unit_test(groups_count_on),
        cmocka_unit_test(more_ranks_than_parameters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * owners_test.c
 * Goal    parameters of buckets are given away as torch's ZeroRedundancyOptimizer with overlap_with_ddp gives them: whole
 *         buckets in turn, or runs of about the same size.
 * Method  tables that torch 2 made; and one where it gives up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "zero/zero.h"

enum { MOST = 16 };

typedef struct row {
    int64_t numel[MOST];
    int n, ends[MOST], n_buckets, size;
    int whole[MOST], runs[MOST];
} row;

static const row rows[] = {
    { .numel = { 1, 2, 3, 10, 5, 4, 4, 4, 4 }, .n = 9, .ends = { 3, 5, 9 }, .n_buckets = 3, .size = 2,
      .whole = { 0, 0, 0, 1, 1, 0, 0, 0, 0 }, .runs = { 0, 0, 0, 1, 1, 0, 0, 0, 0 } },
    { .numel = { 1, 2, 3, 10, 5, 4, 4, 4, 4 }, .n = 9, .ends = { 3, 5, 9 }, .n_buckets = 3, .size = 3,
      .whole = { 0, 0, 0, 1, 1, 2, 2, 2, 2 }, .runs = { 0, 0, 0, 1, 2, 2, 2, 2, 0 } },
    { .numel = { 100, 1, 1, 1, 1, 30, 30, 30 }, .n = 8, .ends = { 1, 5, 8 }, .n_buckets = 3, .size = 2,
      .whole = { 0, 1, 1, 1, 1, 0, 0, 0 }, .runs = { 0, 0, 0, 0, 0, 1, 1, 1 } },
    { .numel = { 7, 1, 9, 2, 2, 8, 3, 3, 3, 3 }, .n = 10, .ends = { 3, 5, 10 }, .n_buckets = 3, .size = 4,
      .whole = { 0, 0, 0, 1, 1, 2, 2, 2, 2, 2 }, .runs = { 1, 1, 2, 0, 0, 3, 0, 0, 0, 1 } },
};

static void buckets_have_torchs_owners(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        const row *r = &rows[k];
        int owner[MOST];

        assert_true(tti_zero_assign(r->numel, r->ends, r->n_buckets, r->size, false, owner));
        assert_memory_equal(owner, r->whole, (size_t)r->n * sizeof *owner);
        assert_true(tti_zero_assign(r->numel, r->ends, r->n_buckets, r->size, true, owner));
        assert_memory_equal(owner, r->runs, (size_t)r->n * sizeof *owner);
    }
}

/* A bucket has more runs than there are ranks: whoever has least gets one more. */
static void more_runs_than_ranks(void **unused)
{
    const int64_t numel[] = { 5, 5, 5, 5, 5, 5, 5, 5 };
    const int want[] = { 0, 1, 2, 3, 0, 1, 2, 3 };
    int owner[8];

    (void)unused;
    assert_true(tti_zero_assign(numel, (const int[]){ 8 }, 1, 4, true, owner));
    assert_memory_equal(owner, want, sizeof want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_have_torchs_owners),
        cmocka_unit_test(more_runs_than_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

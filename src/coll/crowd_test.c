/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Goal    ranks that share cores are told from ranks that have one each, alike by all members.
 * Method  what members may have told each other, pinned and not, of groups of all and of a few. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "coll/host/crowd.h"

enum { RANKS_MAX = 8 };

/* Member r may run on n cores from first + r * step on. */
static int cores_of(int n_members, int n_on_host, int first, int step, int n, int running)
{
    tti_join joins[RANKS_MAX];
    int      r, c;

    memset(joins, 0, sizeof joins);
    for (r = 0; r < n_members; r++) {
        joins[r].cores = (uint64_t)running;
        for (c = first + r * step; c < first + r * step + n; c++)
            joins[r].cpus[c / 64 % TTI_CPU_WORDS] |= UINT64_C(1) << c % 64;
    }
    return tti_crowd_cores(joins, n_members, n_on_host);
}

static void unpinned_ranks_share_what_each_may_use(void **state)
{
    (void)state;
    assert_int_equal(cores_of(8, 8, 0, 0, 2, 2), 2);
    assert_int_equal(cores_of(2, 8, 0, 0, 2, 64), 2); /* of a container */
    assert_int_equal(cores_of(4, 4, 60, 0, 16, 128), 16);
}

static void pinned_ranks_have_a_core_each(void **state)
{
    (void)state;
    assert_int_equal(cores_of(2, 2, 0, 1, 1, 2), 2);
    assert_int_equal(cores_of(8, 8, 0, 1, 1, 8), 8);
    assert_int_equal(cores_of(2, 8, 3, 1, 1, 8), 8);  /* the others are pinned, too */
    assert_int_equal(cores_of(2, 8, 0, 1, 1, 2), 2);  /* but there are no more cores */
    assert_int_equal(cores_of(4, 4, 0, 16, 16, 64), 64);
}

static void pinned_to_one_core_is_one_core(void **state)
{
    (void)state;
    assert_int_equal(cores_of(4, 4, 1, 0, 1, 2), 1);
}

static void nothing_told_is_one_core(void **state)
{
    (void)state;
    assert_int_equal(cores_of(2, 2, 0, 0, 0, 0), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unpinned_ranks_share_what_each_may_use),
        cmocka_unit_test(pinned_ranks_have_a_core_each),
        cmocka_unit_test(pinned_to_one_core_is_one_core),
        cmocka_unit_test(nothing_told_is_one_core),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * straggler_test.c
 * Goal    Who is the last in most of the calls for half a second, and costs a fifth of the time, is named once, until it comes in time
 *         again; who is late now and then is not.
 * Method  Waits are told one by one, with a clock of numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include "base/port.h"
#include "group/straggler.h"

enum { SIZE = 4, CALL_MS = 10 };

static tti_straggler *fresh(void)
{
    tti_straggler *s = calloc(1, sizeof *s + SIZE * sizeof s->late[0]);

    assert_non_null(s);
    s->named = s->suspect = -1;
    return s;
}

/* Calls first .. first+n-1, in which rank was waited for waited_ms; every `step`-th: how often somebody was named. */
static int play(tti_straggler *s, uint64_t first, int n, int step, int rank, int64_t waited_ms)
{
    uint64_t seq;
    int      named = 0, who;
    uint32_t calls;
    int64_t  waited_ns, window_ns;

    for (seq = first; seq < first + (uint64_t)n; seq += (uint64_t)step)
        if (tti_straggler_note(s, SIZE, seq, rank, waited_ms * TTI_MS, (int64_t)seq * CALL_MS * TTI_MS, &who, &calls,
                               &waited_ns, &window_ns)) {
            named++;
            assert_int_equal(who, rank);
            assert_true(calls >= TTI_STRAGGLER_CALLS * 3 / 4 && calls <= TTI_STRAGGLER_CALLS);
            assert_int_equal(waited_ns, calls * waited_ms * TTI_MS);
            assert_true(waited_ns <= window_ns);
        }
    return named;
}

static void named_once(void **state)
{
    tti_straggler *s = fresh();

    (void)state;
    assert_int_equal(play(s, 1, 64, 1, 2, 5), 0);   /* not before the calls are over */
    assert_int_equal(play(s, 65, 640, 1, 2, 5), 1); /* and not again */
    assert_int_equal(play(s, 705, 128, 1, 3, 5), 1); /* somebody else is */
    free(s);
}

static void in_time_again(void **state)
{
    tti_straggler *s = fresh();

    (void)state;
    assert_int_equal(play(s, 1, 129, 1, 1, 5), 1);
    assert_int_equal(play(s, 130, 256, 8, 1, 5), 0); /* an eighth of the calls: no more */
    assert_int_equal(play(s, 400, 130, 1, 1, 5), 1);
    assert_int_equal(play(s, 5000, 130, 1, 1, 5), 1); /* after thousands of calls without a wait */
    free(s);
}

static void in_between_nothing_changes(void **state)
{
    tti_straggler *s = fresh();

    (void)state;
    assert_int_equal(play(s, 1, 65, 1, 1, 5), 1);
    assert_int_equal(play(s, 66, 640, 3, 1, 5), 0); /* a third: it stays one */
    assert_int_equal(play(s, 706, 200, 1, 1, 5), 0);
    free(s);
}

static void not_named(void **state)
{
    tti_straggler *s = fresh();

    (void)state;
    assert_int_equal(play(s, 1, 640, 3, 1, 9), 0);      /* seldom */
    assert_int_equal(play(s, 4001, 640, 2, 1, 9), 0);   /* every other time, as two that share a core */
    assert_int_equal(play(s, 1001, 640, 1, 1, 1), 0);   /* a tenth of the time */
    assert_int_equal(play(s, 2001, 640, 1, -1, 9), 0);  /* nobody knows who */
    assert_int_equal(play(s, 3001, 640, 1, 99, 9), 0);  /* nobody */
    free(s);
}

/* One for a while, then the other: nobody long enough. */
static void not_long_enough(void **state)
{
    tti_straggler *s = fresh();
    uint64_t       seq;
    int            named = 0, who;
    uint32_t       calls;
    int64_t        waited_ns, window_ns;

    (void)state;
    for (seq = 1; seq <= 64 * 40; seq++) /* of 1 ms: windows of 64 ms */
        named += tti_straggler_note(s, SIZE, seq, (int)(seq / 256 % 2), TTI_MS / 2, (int64_t)seq * TTI_MS, &who, &calls,
                                    &waited_ns, &window_ns);
    assert_int_equal(named, 0);
    for (; seq <= 64 * 60; seq++)
        named += tti_straggler_note(s, SIZE, seq, 3, TTI_MS / 2, (int64_t)seq * TTI_MS, &who, &calls, &waited_ns,
                                    &window_ns);
    assert_int_equal(named, 1);
    assert_int_equal(who, 3);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(named_once), cmocka_unit_test(in_time_again),
                                        cmocka_unit_test(in_between_nothing_changes), cmocka_unit_test(not_named),
                                        cmocka_unit_test(not_long_enough) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trace_clock_test.c
 * Goal    two hosts' clocks are put together by the operations that they share, as well as these allow; where they say
 *         nothing the guess stays.
 * Method  operations made up on one clock, told on two that are apart. */
#include "trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum { N = 200 };

#define APART INT64_C(123456789012)

static int64_t begin[N][2], end[N][2];

/* An operation of two hosts, one of which begins first; both end a little after the last has begun. */
static void make(int i, int64_t at, int64_t later, int late, int64_t way)
{
    begin[i][late] = at + later;
    begin[i][1 - late] = at;
    end[i][late] = at + later + way;
    end[i][1 - late] = at + later + 2 * way;
    begin[i][1] -= APART;
    end[i][1] -= APART;
}

static void shared_operations_bound_the_difference(void **state)
{
    int64_t least, most, offset;
    int     i;

    (void)state;
    for (i = 0; i < N; i++)
        make(i, i * 1000000, 1000 + i * 37 % 5000, i % 2, 20000 + i * 7919 % 90000);
    trace_bounds((const int64_t(*)[2])begin, (const int64_t(*)[2])end, N, &least, &most);
    assert_true(least <= APART && APART <= most);
    offset = trace_offset(least, most, 0);
    assert_true(llabs(offset - APART) <= 20000 + 1000);
    for (i = 0; i < N; i++) { /* nobody ends before the other has begun */
        assert_true(end[i][0] >= begin[i][1] + offset);
        assert_true(end[i][1] + offset >= begin[i][0]);
    }
}

static void one_side_bounds_the_guess(void **state)
{
    int64_t least, most;

    (void)state;
    make(0, 0, 1000, 1, 20000);
    end[0][1] = INT64_MIN; /* the other host's end is not known: only how late its clock can be */
    trace_bounds((const int64_t(*)[2])begin, (const int64_t(*)[2])end, 1, &least, &most);
    assert_true(least == INT64_MIN && most == end[0][0] - begin[0][1]);
    assert_true(trace_offset(least, most, most - 5) == most - 5);
    assert_true(trace_offset(least, most, most + 5) == most);
    begin[0][1] = INT64_MIN;
    trace_bounds((const int64_t(*)[2])begin, (const int64_t(*)[2])end, 1, &least, &most);
    assert_true(least == INT64_MIN && most == INT64_MAX);
    assert_true(trace_offset(least, most, 77) == 77);
    assert_true(trace_offset(10, INT64_MAX, 3) == 10);
    assert_true(trace_offset(-4, 8, 1000) == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_operations_bound_the_difference),
        cmocka_unit_test(one_side_bounds_the_guess),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * advice_test.c - one that has left is not taken for one that has died, and who was stopped and goes on is not told how to be let
 * go on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "watch/advice.h"

static void who_has_left_has_not_died(void **state)
{
    (void)state;
    assert_non_null(strstr(tti_advice_of_loss("rank 3 (host 'n1', pid 7) has left"), "see why that rank destroyed its group"));
    assert_non_null(strstr(tti_advice_of_loss("rank 3 (host 'n1', pid 7) has left the world"), "destroyed its group"));
    assert_non_null(strstr(tti_advice_of_loss("rank 3 (host 'n1', pid 7) has left"), "or whether it went on without this one"));
    assert_non_null(strstr(tti_advice_of_loss("rank 3 (host 'n1', pid 7) is gone: its process has ended"), "why that rank ended"));
    assert_non_null(strstr(tti_advice_of_loss("rank 3 (n1) has left or died: nobody listens"), "why that rank ended"));
    assert_non_null(strstr(tti_advice_of_loss("rank 3 (n1) has left or died; rank 3 (n1) has left"), "destroyed its group"));
}

static void who_was_silent_too_long_may_be_stopped(void **state)
{
    static const char stopped[] = "rank 3 (host 'n1', pid 7) has been stopped by a signal for 3.0 s; kill -CONT lets it go on; it last "
                                  "entered all_reduce #2 of the group called '0'";
    char              told[640];

    (void)state;
    assert_non_null(strstr(tti_advice_of_loss(stopped), "\n  next: let that rank go on: kill -CONT; "));
    assert_non_null(strstr(tti_advice_of_loss(stopped), "tutti_shrink_group()"));
    snprintf(told, sizeof told, "%s%s", stopped, tti_advice_of_loss(stopped)); /* as the others read it, and it, woken */
    tti_advice_for_oneself(2, told, sizeof told);
    assert_non_null(strstr(told, "\n  next: let that rank go on"));
    tti_advice_for_oneself(3, told, sizeof told);
    assert_non_null(strstr(told, "\n  next: this rank had been stopped, and goes on"));
    assert_null(strstr(told, "kill -CONT"));
    snprintf(told, sizeof told, "%s", stopped);
    tti_advice_for_oneself(3, told, sizeof told);
    assert_non_null(strstr(tti_advice_of_loss(told), "\n  next: this rank had been stopped, and goes on"));
    assert_non_null(strstr(tti_advice_of_loss("rank 3 (n1) has given no sign of life for 3.0 s, though its host answers"),
                           "see what holds that rank up, or cuts it off"));
    assert_non_null(strstr(tti_advice_of_loss("rank 3 (n1) is unreachable: nothing comes from its host"), "or cuts it off"));
    assert_non_null(strstr(tti_advice_of_loss("rank 3 (n1) is gone: its process has ended (signal 9 (Killed))"), "why that rank ended"));
}

#define TOLD "rank 0 reported: all_reduce #2 timed out\n  rank 1 (host 'vm', pid 41) has been stopped by a signal for 3.0 s"

static void who_goes_on_is_not_told_how(void **state)
{
    static const char words[] = TOLD "; kill -CONT lets it go on\n  rank 2 (host 'vm', pid 42) is stopped by a signal"
                                "; kill -CONT lets it go on\n  next: let rank 1 (host 'vm', pid 41) go on: kill -CONT";
    char              mine[512], others[512], small[64];

    (void)state;
    snprintf(mine, sizeof mine, "%s", words);
    tti_advice_for_oneself(1, mine, sizeof mine);
    assert_string_equal(mine, TOLD "\n  rank 2 (host 'vm', pid 42) is stopped by a signal; kill -CONT lets it go on\n"
                              "  next: this rank had been stopped, and goes on: see who stops it, or give the group a longer time-out");
    snprintf(others, sizeof others, "%s", words); /* of another rank it stands as it is */
    tti_advice_for_oneself(0, others, sizeof others);
    assert_string_equal(others, words);
    snprintf(others, sizeof others, TOLD "; kill -CONT lets it go on\n  next: let rank 11 (n1) go on: kill -CONT");
    tti_advice_for_oneself(11, others, sizeof others); /* what is said of rank 1 is not said of rank 11 */
    assert_non_null(strstr(others, "for 3.0 s; kill -CONT lets it go on\n  next: this rank had been stopped"));
    snprintf(small, sizeof small, "\n  next: let rank 1 (n1) go on: kill -CONT");
    tti_advice_for_oneself(1, small, 24); /* cut where there is no room */
    assert_string_equal(small, "\n  next: this rank had ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_left_has_not_died),
        cmocka_unit_test(who_was_silent_too_long_may_be_stopped),
        cmocka_unit_test(who_goes_on_is_not_told_how),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * env_unknown_test.c
 * Goal    a misspelt variable is named once, with the one that was meant; what is known, or of others, is not.
 * Method  a sink of the test's own takes the lines. */
#include "base/env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/debug.h>

static char said[1024];
static int  lines;

static void note(tutti_log_level level, const char *line, void *ctx)
{
    const size_t used = strlen(said);

    (void)level;
    (void)ctx;
    lines++;
    snprintf(said + used, sizeof said - used, "%s\n", line);
}

static void expect_near(const char *entry, const char *want)
{
    const char *near = "not said";

    assert_true(tti_env_is_unknown(entry, &near));
    if (want == NULL)
        assert_null(near);
    else
        assert_string_equal(near, want);
}

static void slips_are_recognised(void **state)
{
    (void)state;
    expect_near("TUTTI_TRANSPROT=tcp", "TUTTI_TRANSPORT");
    expect_near("TUTTI_TIMEOUT=1", "TUTTI_TIMEOUT_MS");
    expect_near("TUTTI_Algo=x", "TUTTI_ALGO");
    expect_near("TUTTI_SOCKET_IFNAMES=", "TUTTI_SOCKET_IFNAME");
    expect_near("TUTTI_LOGG", "TUTTI_LOG");
    expect_near("TUTTI_SOMETHING_ELSE=1", NULL);
    expect_near("TUTTI_A_NAME_THAT_IS_FAR_TOO_LONG_TO_BE_NEAR_TO_ANY_OTHER_NAME=1", NULL);
}

static void others_are_left_alone(void **state)
{
    static const char *const entries[] = { "TUTTI_TEST_MINE=1", "TUTTI=1", "TUT", "", "OTHER_TUTTI_X=1", "=x" };
    const char              *near = NULL;
    const tti_env_entry     *table;
    char                     entry[96];
    size_t                   n, i;

    (void)state;
    table = tti_env_table(&n);
    for (i = 0; i < n; i++) {
        snprintf(entry, sizeof entry, "%s=1", table[i].name);
        assert_false(tti_env_is_unknown(entry, &near));
    }
    for (i = 0; i < sizeof entries / sizeof entries[0]; i++)
        assert_false(tti_env_is_unknown(entries[i], &near));
}

static void it_is_said_once(void **state)
{
    (void)state;
    assert_int_equal(setenv("TUTTI_TRANSPROT", "tcp", 1), 0);
    assert_int_equal(setenv("TUTTI_SOMETHING_ELSE", "1", 1), 0);
    assert_int_equal(setenv("TUTTI_TEST_MINE", "1", 1), 0);
    assert_int_equal(unsetenv("TUTTI_LOG"), 0);
    assert_int_equal(tutti_log_set_sink("stderr", NULL, NULL), TUTTI_OK);
    assert_int_equal(tutti_log_set_sink("test", note, NULL), TUTTI_OK);
    tti_env_tell_unknown();
    tti_env_tell_unknown();
    assert_int_equal(tutti_log_set_sink("test", NULL, NULL), TUTTI_OK);
    assert_int_equal(lines, 2);
    assert_non_null(strstr(said, " warn"));
    assert_non_null(strstr(said, "TUTTI_TRANSPROT is unknown and changes nothing; did you mean TUTTI_TRANSPORT?\n"));
    assert_non_null(strstr(said, "TUTTI_SOMETHING_ELSE is unknown and changes nothing\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slips_are_recognised),
        cmocka_unit_test(others_are_left_alone),
        cmocka_unit_test(it_is_said_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

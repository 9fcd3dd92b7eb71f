/* SPDX-License-Identifier: BSD-3-Clause
 *
 * log_test.c
 * Goal    the two variables, and their names in torch, decide what is logged as the table of tutti/debug.h
 *         says; unknown values are named; sinks come, go and may log. Threads of ours leave the environment alone.
 * Method  a sink of the test's own counts lines; "stderr" is silent. */
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/thread.h"

static int  lines;
static char last[256];
static char plain[] = "", marked[] = ">";

static void count(tutti_log_level level, const char *line, void *ctx)
{
    (void)level;
    lines++;
    snprintf(last, sizeof last, "%s%s", (const char *)ctx, line);
}

static int set_up(void **state)
{
    (void)state;
    unsetenv("TUTTI_LOG");
    unsetenv("TORCH_CPP_LOG_LEVEL");
    unsetenv("TUTTI_DEBUG");
    unsetenv("TORCH_DISTRIBUTED_DEBUG");
    lines = 0;
    return tutti_set_debug_level(TUTTI_DEBUG_OFF) != TUTTI_OK ||
           tutti_log_set_sink("stderr", NULL, NULL) != TUTTI_OK ||
           tutti_log_set_sink("test", count, plain) != TUTTI_OK;
}

static int tear_down(void **state)
{
    (void)state;
    return tutti_log_set_sink("test", NULL, NULL) != TUTTI_OK ||
           tutti_log_restore_stderr() != TUTTI_OK;
}

static void test_table(void **state)
{
    static const struct {
        const char       *log;
        const char       *torch_log;
        tutti_debug_level debug;
        int               most;
    } rows[] = {
        { NULL, NULL, TUTTI_DEBUG_OFF, TTI_LOG_WARN },
        { NULL, NULL, TUTTI_DEBUG_DETAIL, TTI_LOG_WARN },
        { "error", NULL, TUTTI_DEBUG_DETAIL, TTI_LOG_ERROR },
        { "WARN", NULL, TUTTI_DEBUG_DETAIL, TTI_LOG_WARN },
        { "info", NULL, TUTTI_DEBUG_OFF, TTI_LOG_INFO },
        { "info", NULL, TUTTI_DEBUG_INFO, TTI_LOG_DEBUG },
        { "info", NULL, TUTTI_DEBUG_DETAIL, TTI_LOG_TRACE },
        { "debug", NULL, TUTTI_DEBUG_OFF, TTI_LOG_DEBUG },
        { "debug", NULL, TUTTI_DEBUG_DETAIL, TTI_LOG_DEBUG },
        { "trace", NULL, TUTTI_DEBUG_OFF, TTI_LOG_TRACE },
        { NULL, "INFO", TUTTI_DEBUG_OFF, TTI_LOG_INFO },
        { NULL, "INFO", TUTTI_DEBUG_DETAIL, TTI_LOG_TRACE },
        { NULL, "WARNING", TUTTI_DEBUG_DETAIL, TTI_LOG_WARN },
        { NULL, "ERROR", TUTTI_DEBUG_INFO, TTI_LOG_ERROR },
        { "error", "INFO", TUTTI_DEBUG_DETAIL, TTI_LOG_ERROR },
    };
    size_t i;
    int    level;

    (void)state;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsetenv("TUTTI_LOG");
        unsetenv("TORCH_CPP_LOG_LEVEL");
        if (rows[i].log != NULL)
            setenv("TUTTI_LOG", rows[i].log, 1);
        if (rows[i].torch_log != NULL)
            setenv("TORCH_CPP_LOG_LEVEL", rows[i].torch_log, 1);
        assert_int_equal(tutti_set_debug_level(rows[i].debug), TUTTI_OK);
        assert_int_equal(tti_log_check_env(), TUTTI_OK);
        lines = 0;
        for (level = TTI_LOG_ERROR; level <= TTI_LOG_TRACE; level++)
            tti_log((tti_log_level)level, "row %zu", i);
        assert_int_equal(lines, rows[i].most + 1);
    }
}

static void test_debug_level_from_env(void **state)
{
    (void)state;
    setenv("TORCH_DISTRIBUTED_DEBUG", "Detail", 1);
    assert_int_equal(tutti_get_debug_level(), TUTTI_DEBUG_OFF); /* what was set stays */
    assert_int_equal(tutti_set_debug_level_from_env(), TUTTI_OK);
    assert_int_equal(tutti_get_debug_level(), TUTTI_DEBUG_DETAIL);
    setenv("TUTTI_DEBUG", "info", 1); /* the own name wins */
    assert_int_equal(tutti_set_debug_level_from_env(), TUTTI_OK);
    assert_int_equal(tutti_get_debug_level(), TUTTI_DEBUG_INFO);
    assert_int_equal(tutti_set_debug_level((tutti_debug_level)3), TUTTI_E_ARG);
    assert_int_equal(tutti_get_debug_level(), TUTTI_DEBUG_INFO);
}

static void assert_named(const char *name, const char *value, const char *words)
{
    setenv(name, value, 1);
    assert_int_equal(tti_log_check_env(), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), name));
    assert_non_null(strstr(tutti_last_error(), value));
    assert_non_null(strstr(tutti_last_error(), words));
    unsetenv(name);
}

static void test_unknown_values(void **state)
{
    (void)state;
    assert_named("TUTTI_LOG", "loud", "'error', 'warn', 'info', 'debug' or 'trace'");
    assert_named("TORCH_CPP_LOG_LEVEL", "LOUD", "'ERROR', 'WARNING' or 'INFO'");
    assert_named("TUTTI_DEBUG", "on", "'off', 'info' or 'detail'");
    assert_named("TORCH_DISTRIBUTED_DEBUG", "1", "'off', 'info' or 'detail'");
    setenv("TUTTI_DEBUG", "on", 1);
    assert_int_equal(tutti_set_debug_level_from_env(), TUTTI_E_ARG);
    assert_int_equal(tutti_get_debug_level(), TUTTI_DEBUG_OFF);
}

/* What a thread of ours takes the variables for, and its line. */
static void log_as_ours(void *arg)
{
    *(bool *)arg = tti_log_wanted(TTI_LOG_INFO);
    tti_log(TTI_LOG_ERROR, "ours");
}

static bool is_wanted_by_ours(const char *level, const char *rank, bool kept)
{
    tti_thread thread = { .running = false };
    bool       wanted = false;

    assert_int_equal(tti_thread_start(&thread, "tutti-test", log_as_ours, &wanted), TUTTI_OK);
    tti_thread_join(&thread);
    setenv("TUTTI_LOG", level, 1);
    setenv("RANK", rank, 1);
    if (kept)
        tti_log_keep_env();
    return wanted;
}

/* A thread of ours that starts another one, as the environment has changed and no thread of the program's has read it since. */
static void start_from_ours(void *arg)
{
    setenv("TUTTI_LOG", "trace", 1); /* nobody else runs */
    setenv("RANK", "5", 1);
    *(bool *)arg = is_wanted_by_ours("trace", "5", true);
}

static void test_ours_read_no_environment(void **state)
{
    tti_thread thread = { .running = false };
    bool       wanted = true;

    (void)state;
    setenv("RANK", "1048575", 1);
    assert_false(is_wanted_by_ours("info", "17", false)); /* "warn", as nothing is said */
    assert_non_null(strstr(last, " tutti rank 1048575 error: ours"));
    assert_true(is_wanted_by_ours("error", "3", true)); /* read when it was started */
    assert_non_null(strstr(last, " tutti rank 17 error: ours"));
    assert_int_equal(tti_thread_start(&thread, "tutti-test", start_from_ours, &wanted), TUTTI_OK);
    tti_thread_join(&thread);
    assert_false(wanted);
    assert_non_null(strstr(last, " tutti rank 3 error: ours"));
    unsetenv("RANK");
}

static void log_again(tutti_log_level level, const char *line, void *ctx)
{
    (void)level;
    (void)line;
    *(tutti_status *)ctx = tutti_log_set_sink("another", count, plain);
    tti_log(TTI_LOG_ERROR, "from a sink");
}

static void test_sinks(void **state)
{
    tutti_status inside = TUTTI_OK;
    char         name[16];
    int          i;

    (void)state;
    assert_int_equal(tutti_log_set_sink(NULL, count, plain), TUTTI_E_ARG);
    assert_int_equal(tutti_log_set_sink("", count, plain), TUTTI_E_ARG);
    assert_int_equal(tutti_log_set_sink("a name that is longer than there is room for", count, plain),
                     TUTTI_E_ARG);
    assert_int_equal(tutti_log_set_sink("test", count, marked), TUTTI_OK); /* replaced, not added */
    assert_int_equal(tutti_log_set_sink("again", log_again, &inside), TUTTI_OK);
    tti_log(TTI_LOG_WARN, "%s", "words");
    assert_int_equal(lines, 1);
    assert_int_equal(last[0], '>');
    assert_non_null(strstr(last, "warn: words"));
    assert_int_equal(inside, TUTTI_E_STATE);
    assert_int_equal(tutti_log_set_sink("again", NULL, NULL), TUTTI_OK);
    assert_int_equal(tutti_log_set_sink("again", NULL, NULL), TUTTI_OK);
    for (i = 1; i < TUTTI_LOG_SINKS_MAX; i++) {
        snprintf(name, sizeof name, "s%d", i);
        assert_int_equal(tutti_log_set_sink(name, count, plain), TUTTI_OK);
    }
    assert_int_equal(tutti_log_set_sink("one more", count, plain), TUTTI_E_NOMEM);
    for (i = 1; i < TUTTI_LOG_SINKS_MAX; i++) {
        snprintf(name, sizeof name, "s%d", i);
        assert_int_equal(tutti_log_set_sink(name, NULL, NULL), TUTTI_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_table, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_debug_level_from_env, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unknown_values, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ours_read_no_environment, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sinks, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

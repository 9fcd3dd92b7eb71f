/* SPDX-License-Identifier: BSD-3-Clause
 *
 * spawn_test.c
 * Goal    a function runs in new processes that are a job, and its failure is told with its index.
 * Method  this program spawns itself; the functions say who they are on standard output. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/launch.h>
#include "elastic/testing.h"

static int say(int index, const char *arg)
{
    printf("index %d arg '%s' rank %s of %s store %s left %s\n", index, arg, getenv("RANK"),
           getenv("WORLD_SIZE"), getenv("TUTTI_AGENT_STORE"),
           getenv("TUTTI_SPAWN_NAME") != NULL ? "something" : "nothing");
    return 0;
}

static int fail_as_told(int index, const char *arg)
{
    if (index != 1)
        for (;;)
            pause();
    if (strcmp(arg, "abort") == 0)
        abort();
    return atoi(arg);
}

static int nest(int index, const char *arg)
{
    return tutti_spawn("say", 2, arg) == TUTTI_OK ? index : 9;
}

static tutti_status spawn(const char *name, int n, const char *arg, tt_capture *text)
{
    tutti_status st;

    tt_capture_begin(text);
    st = tutti_spawn(name, n, arg);
    tt_capture_end(text);
    return st;
}

static void all_indices_run(void **state)
{
    tt_capture text;

    (void)state;
    assert_int_equal(spawn("say", 3, "a b", &text), TUTTI_OK);
    assert_int_equal(
        tt_count_lines(text.out, "index 0 arg 'a b' rank 0 of 3 store 1 left nothing\n"), 1);
    assert_int_equal(
        tt_count_lines(text.out, "index 1 arg 'a b' rank 1 of 3 store 1 left nothing\n"), 1);
    assert_int_equal(
        tt_count_lines(text.out, "index 2 arg 'a b' rank 2 of 3 store 1 left nothing\n"), 1);
    assert_int_equal(tt_count_lines(text.out, ""), 3);
    tt_capture_free(&text);
    assert_int_equal(spawn("say", 1, NULL, &text), TUTTI_OK);
    assert_int_equal(tt_count_lines(text.out, "index 0 arg '' rank 0 of 1"), 1);
    tt_capture_free(&text);
}

static void a_failure_names_its_index(void **state)
{
    tt_capture text;

    (void)state;
    assert_int_equal(spawn("fail_as_told", 3, "5", &text), TUTTI_E_REMOTE);
    assert_non_null(strstr(tutti_last_error(), "process 1 of 3 (pid "));
    assert_non_null(strstr(tutti_last_error(), "exit code 5"));
    tt_capture_free(&text);
    assert_int_equal(spawn("fail_as_told", 2, "abort", &text), TUTTI_E_REMOTE);
    assert_non_null(strstr(tutti_last_error(), "process 1 of 2 (pid "));
    assert_non_null(strstr(tutti_last_error(), "signal SIGABRT (6)"));
    tt_capture_free(&text);
}

static void spawned_processes_may_spawn(void **state)
{
    tt_capture text;

    (void)state;
    assert_int_equal(spawn("nest", 1, "in", &text), TUTTI_OK);
    assert_int_equal(tt_count_lines(text.out, "index 1 arg 'in' rank 1 of 2"), 1);
    tt_capture_free(&text);
}

static void bad_calls_are_refused(void **state)
{
    const tutti_spawn_entry here_only = { "here_only", say };
    tt_capture text;
    int code;

    (void)state;
    assert_int_equal(tutti_spawn("nobody", 1, ""), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "no function is registered under 'nobody'"));
    /* only children know too little: this name is here, and not there */
    assert_false(tutti_spawn_enter(&here_only, 1, &code));
    assert_int_equal(spawn("here_only", 1, "", &text), TUTTI_E_REMOTE);
    assert_non_null(strstr(tutti_last_error(), "exit code 127"));
    assert_non_null(strstr(text.err, "no function is registered under 'here_only'"));
    tt_capture_free(&text);
    assert_int_equal(tutti_spawn("say", 0, ""), TUTTI_E_ARG);
    assert_int_equal(tutti_spawn(NULL, 1, ""), TUTTI_E_ARG);
    setenv("TUTTI_SPAWN_NAME", "say", 1);
    assert_int_equal(tutti_spawn("say", 1, ""), TUTTI_E_STATE);
    assert_non_null(strstr(tutti_last_error(), "tutti_spawn_enter"));
    unsetenv("TUTTI_SPAWN_NAME");
}

int main(void)
{
    static const tutti_spawn_entry entries[] = { { "say", say },
                                                 { "fail_as_told", fail_as_told },
                                                 { "nest", nest } };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_indices_run),
        cmocka_unit_test(a_failure_names_its_index),
        cmocka_unit_test(spawned_processes_may_spawn),
        cmocka_unit_test(bad_calls_are_refused),
    };
    int code;

    if (tutti_spawn_enter(entries, 3, &code))
        return code;
    return cmocka_run_group_tests_name("spawn", tests, NULL, NULL);
}

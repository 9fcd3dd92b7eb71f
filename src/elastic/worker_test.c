/* SPDX-License-Identifier: BSD-3-Clause
 *
 * worker_test.c
 * Goal    each rank is told all there is to know, once, whatever the launcher itself was told.
 * Method  host 1 of 3 with 4 ranks each; the launcher's own environment has other values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "elastic/worker.h"

static const tti_place place = { .nproc = 4,
                                 .nnodes = 3,
                                 .node_rank = 1,
                                 .master_addr = "10.1.2.3",
                                 .master_port = 2345,
                                 .run_id = "job7",
                                 .secret_file = "/x/secret" };

/* The one value of a variable, or NULL; more than one is a failure. */
static const char *value(char **envp, const char *name)
{
    size_t len = strlen(name);
    const char *found = NULL;

    for (; *envp != NULL; envp++) {
        if (strncmp(*envp, name, len) != 0 || (*envp)[len] != '=')
            continue;
        assert_null(found);
        found = *envp + len + 1;
    }
    return found;
}

static void the_table_is_complete(void **state)
{
    static const char *const expected[][2] = {
        { "RANK", "6" },
        { "WORLD_SIZE", "12" },
        { "LOCAL_RANK", "2" },
        { "LOCAL_WORLD_SIZE", "4" },
        { "GROUP_RANK", "1" },
        { "GROUP_WORLD_SIZE", "3" },
        { "ROLE_RANK", "6" },
        { "ROLE_NAME", "default" },
        { "ROLE_WORLD_SIZE", "12" },
        { "MASTER_ADDR", "10.1.2.3" },
        { "MASTER_PORT", "2345" },
        { "TORCHELASTIC_RESTART_COUNT", "0" },
        { "TORCHELASTIC_MAX_RESTARTS", "0" },
        { "TORCHELASTIC_RUN_ID", "job7" },
        { "TORCHELASTIC_USE_AGENT_STORE", "True" },
        { "TORCHELASTIC_ERROR_FILE", "" },
        { "TUTTI_AGENT_STORE", "1" },
        { "TUTTI_SECRET_FILE", "/x/secret" },
        { "OMP_NUM_THREADS", "1" },
        { "TT_KEPT", "yes" },
    };
    char **envp = NULL;
    size_t i;

    (void)state;
    setenv("RANK", "99", 1);
    setenv("TUTTI_SECRET_FILE", "/other", 1);
    setenv("TUTTI_SPAWN_NAME", "outer", 1);
    setenv("TT_KEPT", "yes", 1);
    unsetenv("OMP_NUM_THREADS");
    assert_int_equal(tti_worker_env(&place, 2, &envp), TUTTI_OK);
    for (i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_non_null(value(envp, expected[i][0]));
        assert_string_equal(value(envp, expected[i][0]), expected[i][1]);
    }
    assert_null(value(envp, "TUTTI_SPAWN_NAME"));
    tti_strings_free(envp);
    unsetenv("RANK");
    unsetenv("TUTTI_SECRET_FILE");
    unsetenv("TUTTI_SPAWN_NAME");
    unsetenv("TT_KEPT");
}

static void threads_are_left_alone(void **state)
{
    tti_place one = place;
    char **envp = NULL;

    (void)state;
    setenv("OMP_NUM_THREADS", "3", 1);
    assert_int_equal(tti_worker_env(&place, 0, &envp), TUTTI_OK);
    assert_string_equal(value(envp, "OMP_NUM_THREADS"), "3");
    tti_strings_free(envp);
    unsetenv("OMP_NUM_THREADS");
    one.nproc = 1;
    one.secret_file = NULL;
    one.spawn_name = "f";
    one.spawn_arg = "";
    assert_int_equal(tti_worker_env(&one, 0, &envp), TUTTI_OK);
    assert_null(value(envp, "OMP_NUM_THREADS"));
    assert_null(value(envp, "TUTTI_SECRET_FILE"));
    assert_string_equal(value(envp, "TUTTI_SPAWN_NAME"), "f");
    assert_string_equal(value(envp, "TUTTI_SPAWN_ARG"), "");
    tti_strings_free(envp);
}

static void check_arg(const char *in, const char *out)
{
    char first[] = "${local_rank}";
    char *copy = strdup(in);
    char *argv[] = { first, copy, NULL };
    char **made = NULL;

    assert_int_equal(tti_worker_args(argv, 13, &made), TUTTI_OK);
    assert_string_equal(made[0], "${local_rank}"); /* the program's own name is not touched */
    assert_string_equal(made[1], out);
    assert_null(made[2]);
    tti_strings_free(made);
    free(copy);
}

static void local_rank_is_put_in(void **state)
{
    (void)state;
    check_arg("--dev=${local_rank}", "--dev=13");
    check_arg("$local_rank/x$local_rank", "13/x13");
    check_arg("$local_rank_x", "$local_rank_x");
    check_arg("${local_rank", "${local_rank");
    check_arg("$$local_rank $$", "$local_rank $");
    check_arg("$other ${other} $", "$other ${other} $");
    check_arg("", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_complete),
        cmocka_unit_test(threads_are_left_alone),
        cmocka_unit_test(local_rank_is_put_in),
    };

    return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * launched_test.c
 * Goal    a process learns its local rank from LOCAL_RANK, a scheduler or the fallback, in that order, and
 *         whether a launcher of torch's kind started it.
 * Method  variables set by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/init.h>

static int clean(void **state)
{
    (void)state;
    clearenv();
    return 0;
}

static void local_rank(void **state)
{
    (void)state;
    assert_int_equal(tutti_get_node_local_rank(-1), -1);
    assert_non_null(strstr(tutti_last_error(), "LOCAL_RANK is not set"));
    assert_int_equal(tutti_get_node_local_rank(5), 5);
    setenv("OMPI_COMM_WORLD_RANK", "3", 1);
    assert_int_equal(tutti_get_node_local_rank(5), -1); /* half of a job is no job to guess about */
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    assert_int_equal(tutti_get_node_local_rank(5), 5); /* Open MPI did not say */
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
    assert_int_equal(tutti_get_node_local_rank(5), 1);
    setenv("RANK", "3", 1);
    assert_int_equal(tutti_get_node_local_rank(5), 5); /* who sets RANK sets LOCAL_RANK */
    setenv("LOCAL_RANK", "2", 1);
    assert_int_equal(tutti_get_node_local_rank(-1), 2);
    setenv("LOCAL_RANK", "two", 1);
    assert_int_equal(tutti_get_node_local_rank(5), -1);
    assert_non_null(strstr(tutti_last_error(), "LOCAL_RANK is 'two'"));
}

/* A job that meets elsewhere than on Slurm's first host asks for its place all the same. */
static void rank_0_is_elsewhere(void **state)
{
    (void)state;
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_PROCID", "2", 1);
    setenv("SLURM_NTASKS", "4", 1);
    setenv("SLURM_LOCALID", "1", 1);
    setenv("SLURM_STEP_NUM_NODES", "2", 1);
    setenv("SLURM_STEP_NODELIST", "n[1-2]", 1);
    setenv("SLURM_NODEID", "1", 1);
    setenv("SLURMD_NODENAME", "n2", 1);
    setenv("SLURM_GTIDS", "0,2", 1);
    assert_int_equal(tutti_get_node_local_rank(5), 1);
}

static void launched(void **state)
{
    (void)state;
    assert_false(tutti_is_torchelastic_launched());
    setenv("TORCHELASTIC_RUN_ID", "x", 1);
    assert_true(tutti_is_torchelastic_launched());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(local_rank, clean, clean),
        cmocka_unit_test_setup_teardown(rank_0_is_elsewhere, clean, clean),
        cmocka_unit_test_setup_teardown(launched, clean, clean),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

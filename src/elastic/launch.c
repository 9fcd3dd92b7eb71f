/* SPDX-License-Identifier: BSD-3-Clause
 *
 * launch.c - tutti_launch: a program as a job, and a report if it fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <tutti/launch.h>
#include <tutti/private.h>
#include "base/thread.h"
#include "elastic/child.h"
#include "elastic/job.h"
#include "elastic/report.h"

enum { NOT_FOUND = 127, MANY_A_CORE = 64 };

/* As a shell does: a program that cannot be run is a command that failed, with 127. */
static void say_not_found(void)
{
    dprintf(STDERR_FILENO, "tutti: %s\n", tutti_last_error());
}

/* Set in worker.c. Said because it makes a program slower that meant to use threads. */
static void say_threads(const tutti_launch_options *o)
{
    if (o->nproc > 1 && tti_env("OMP_NUM_THREADS") == NULL)
        dprintf(
            STDERR_FILENO,
            "tutti: OMP_NUM_THREADS is not set: 1 for each of the %d ranks, so that they do not "
            "compete for cores\n",
            o->nproc);
}

/* They work, one after the other; whoever meant it knows. */
static void say_many(const tutti_launch_options *o)
{
    const int n_cores = tti_running_cores();

    if (o->nproc > MANY_A_CORE * n_cores)
        dprintf(STDERR_FILENO, "tutti: %d ranks share %d core%s of this host, %d each: they mostly wait for each other\n", o->nproc,
                n_cores, n_cores == 1 ? "" : "s", o->nproc / n_cores);
}

tutti_status tutti_launch(const tutti_launch_options *opts, int *exit_code_out)
{
    tutti_launch_options o;
    tti_job_result result;
    tti_job_program program = { .path = NULL };
    char *path = NULL;
    tutti_status st = tti_job_options(opts, &o);

    if (st != TUTTI_OK)
        return st;
    st = tti_find_program(o.argv[0], &path);
    if (st == TUTTI_E_IO) {
        say_not_found();
        *exit_code_out = NOT_FOUND;
        return TUTTI_OK;
    }
    if (st != TUTTI_OK)
        return st;
    say_threads(&o);
    say_many(&o);
    program.path = path;
    program.argv = o.argv;
    st = tti_job_run(&program, &o, &result);
    if (st == TUTTI_OK) {
        tti_report(&result, o.argv[0], o.node_rank * o.nproc);
        *exit_code_out = result.exit_code;
        free(result.ends);
        free(result.gone);
    }
    free(path);
    return st;
}

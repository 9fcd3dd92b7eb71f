/* SPDX-License-Identifier: BSD-3-Clause
 *
 * elastic/job.h - a job from its store to its last process; what tutti_launch and tutti_spawn share. */
#ifndef TTI_ELASTIC_JOB_H
#define TTI_ELASTIC_JOB_H

#include <tutti/launch.h>
#include "elastic/supervisor.h"

/** What to run, besides the options of the caller. Borrowed. */
typedef struct tti_job_program {
    const char *path; /* what execve takes */
    char *const *argv;
    const char *spawn_name; /* NULL: a program; else the function it is to run */
    const char *spawn_arg;
} tti_job_program;

/** Check the options and fill in defaults.
 * @errors TUTTI_E_ARG  the text names the option */
tutti_status tti_job_options(const tutti_launch_options *opts, tutti_launch_options *out);

/** Serve the store if this is host 0, make the secret, run the ranks, take everything away.
 * @param opts  checked by tti_job_options()
 * @errors as tutti_launch() */
tutti_status tti_job_run(const tti_job_program *program, const tutti_launch_options *opts,
                         tti_job_result *result_out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * spawn.c - run a function of this program in new processes.
 *
 * How     tutti_spawn() runs /proc/self/exe as a job, with the function's name and the argument in two
 *         variables; the new process's main() calls tutti_spawn_enter(), which finds the function.
 * State   The names that tutti_spawn_enter() was given, kept so that tutti_spawn() can refuse any other
 *         before it starts processes. They describe the program, which is one per process, and are set
 *         before there are threads.
 * True    Both variables are taken out of the environment before the function runs, so that programs
 *         it starts, and jobs it spawns, are not mistaken for it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <tutti/launch.h>
#include <tutti/private.h>
#include "base/env.h"
#include "elastic/job.h"
#include "elastic/report.h"
#include "elastic/worker.h"

enum { NO_SUCH_FUNCTION = 127 };

static char *
    *known_names; /* NULL at the end; NULL: tutti_spawn_enter() was not called, or no memory */

static void keep_names(const tutti_spawn_entry *entries, int n)
{
    char **names = calloc((size_t)n + 1, sizeof *names);
    int i;

    for (i = 0; names != NULL && i < n; i++) {
        names[i] = strdup(entries[i].name);
        if (names[i] == NULL) {
            tti_strings_free(names);
            names = NULL;
        }
    }
    tti_strings_free(known_names);
    known_names = names;
}

static bool is_known(const char *name)
{
    char **known = known_names;

    while (known != NULL && *known != NULL && strcmp(*known, name) != 0)
        known++;
    return known == NULL || *known != NULL;
}

static const tutti_spawn_entry *find(const tutti_spawn_entry *entries, int n, const char *name)
{
    int i;

    for (i = 0; i < n; i++)
        if (strcmp(entries[i].name, name) == 0)
            return &entries[i];
    return NULL;
}

static int run_entry(const tutti_spawn_entry *entry, const char *name, const char *arg)
{
    int64_t index;

    if (entry == NULL) {
        tti_log(TTI_LOG_ERROR, "no function is registered under '%s'", name);
        return NO_SUCH_FUNCTION;
    }
    if (tti_env_int("LOCAL_RANK", 0, INT32_MAX, &index) != TUTTI_OK) {
        tti_log(TTI_LOG_ERROR, "%s", tutti_last_error());
        return EXIT_FAILURE;
    }
    return entry->fn((int)index, arg);
}

bool tutti_spawn_enter(const tutti_spawn_entry *entries, int n_entries, int *exit_code_out)
{
    char *name;
    char *arg;

    keep_names(entries, n_entries);
    if (tti_env("TUTTI_SPAWN_NAME") == NULL)
        return false;
    name = strdup(tti_env("TUTTI_SPAWN_NAME"));
    arg = strdup(tti_env("TUTTI_SPAWN_ARG"));
    unsetenv("TUTTI_SPAWN_NAME");
    unsetenv("TUTTI_SPAWN_ARG");
    if (name != NULL && arg != NULL) {
        *exit_code_out = run_entry(find(entries, n_entries, name), name, arg);
    } else {
        tti_log(TTI_LOG_ERROR, "no memory to enter a spawned function");
        *exit_code_out = EXIT_FAILURE;
    }
    free(name);
    free(arg);
    return true;
}

static tutti_status judge(const tti_job_result *result, const char *name)
{
    char text[TTI_END_TEXT_MAX];
    const tti_rank_end *end;

    if (result->first < 0 && result->signal == 0)
        return !result->lost ? TUTTI_OK
                             : tti_fail(TUTTI_E_IO, "output of the %d processes of '%s' was lost",
                                        result->n_ranks, name);
    if (result->first < 0)
        return tti_fail(TUTTI_E_ABORTED,
                        "the %d processes of '%s' were ended by signal %d that "
                        "came to process %ld",
                        result->n_ranks, name, result->signal, (long)getpid());
    end = &result->ends[result->first];
    return tti_fail(TUTTI_E_REMOTE,
                    "spawned process %d of %d (pid %ld, function '%s') ended with %s",
                    result->first, result->n_ranks, (long)end->pid, name, tti_end_text(end, text));
}

tutti_status tutti_spawn(const char *name, int nprocs, const char *arg)
{
    char *argv[] = { program_invocation_name, NULL };
    tutti_launch_options opts = { .size = sizeof opts, .argv = argv, .plain_output = true };
    tti_job_program program = { "/proc/self/exe", argv, name, arg != NULL ? arg : "" };
    tti_job_result result;
    tutti_status st;

    if (name == NULL || name[0] == '\0')
        return tti_fail(TUTTI_E_ARG, "spawn needs the name of a function");
    if (nprocs < 1)
        return tti_fail(TUTTI_E_ARG, "spawn of '%s' as %d processes: at least 1", name, nprocs);
    if (tti_env("TUTTI_SPAWN_NAME") != NULL)
        return tti_fail(TUTTI_E_STATE,
                        "spawn of '%s' inside a spawned process\n  next: call tutti_spawn_enter() "
                        "first thing in main()",
                        name);
    if (!is_known(name))
        return tti_fail(TUTTI_E_ARG,
                        "no function is registered under '%s'\n  next: add it to the entries of "
                        "tutti_spawn_enter()",
                        name);
    opts.nproc = nprocs;
    st = tti_job_options(&opts, &opts);
    if (st == TUTTI_OK)
        st = tti_job_run(&program, &opts, &result);
    if (st != TUTTI_OK)
        return st;
    st = judge(&result, name);
    free(result.ends);
    free(result.gone);
    return st;
}

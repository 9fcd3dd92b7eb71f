/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/launch.h - start the processes of a job: what `tutti run` does, for programs. */
#ifndef TUTTI_LAUNCH_H
#define TUTTI_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tutti/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A job, or this host's part of one. Initialise with TUTTI_LAUNCH_OPTIONS; zero means the default. */
typedef struct tutti_launch_options {
    size_t      size;
    char *const *argv;        /* required: program and arguments, NULL at the end; found through PATH */
    int         nproc;        /* processes on this host, as many on every host of the job; 0: 1 */
    int         nnodes;       /* hosts of the job; 0: 1 */
    int         node_rank;    /* this host, 0 .. nnodes-1; host 0 serves the store */
    const char *master_addr;  /* NULL: 127.0.0.1 */
    int         master_port;  /* 0: any free one, with one host only */
    const char *run_id;       /* NULL: a random one, on each host another */
    bool        plain_output; /* do not put "[default0]:" before the ranks' lines */
    int64_t     shutdown_ms;  /* between SIGTERM and SIGKILL when a rank has failed; 0: 30 s */
    bool        keep;         /* when a rank fails, let the others go on: tutti_shrink_group() */
    int         replacements; /* with keep: start so many processes, one for each rank that fails: tutti_join_group() */
} tutti_launch_options;

#define TUTTI_LAUNCH_OPTIONS                                                                           \
    {                                                                                                  \
        sizeof(tutti_launch_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                      \
    }

/** Run a job to its end: serve the store, make the secret, start the ranks, pass on their output and
 * the signals that come, and end the others when one fails.
 *
 * The ranks get torchrun's variables; in their arguments "${local_rank}" becomes the local rank and "$$"
 * becomes "$". What they write comes out in whole lines; one above 16 KiB is cut. They share standard input.
 * A job that fails is reported on standard error. With several ranks and no OMP_NUM_THREADS they get 1,
 * which is said there, too.
 *
 * With keep a rank that fails does not end the others, and the job has done its work if all survivors end with 0, one at
 * least: the report tells of those that failed. No survivor is who failed first, who was ended by a signal, who was replaced, and a
 * replacement that was not let in before all ranks had ended. A replacement has no RANK; TUTTI_REPLACEMENT is its number,
 * from 1. When all that are left of a job are stopped by a signal, which is said every 10 s, with keep they are ended after
 * shutdown_ms: the others have gone on without them.
 *
 * Ranks are told of each other's ends. Who waits, in tutti_init_process_group(), for a rank that ended before it came fails
 * at once, on every host; and where the launcher ends ranks because of another one, that one is named as the cause. A host
 * that fails before there is a store stays 3 s longer to tell.
 *
 * @param exit_code_out  0 when all ranks ended with 0, with keep all survivors; else the first failure's exit code, 128 plus the
 *                       signal's number if one ended it, 127 if the program cannot be run;
 *                       128 plus the signal's number if one came from outside first; 1 when all went
 *                       well but output was lost (a full disk)
 *
 * @errors   TUTTI_E_ARG      a bad option; TUTTI_E_NETWORK: the port is taken; TUTTI_E_NOMEM, TUTTI_E_IO;
 *           TUTTI_E_AUTH     several hosts, and no TUTTI_SECRET_FILE, unless TUTTI_AUTH is none; or one that others could have read
 *           TUTTI_E_STATE    a launch runs in this process already
 *           A rank that fails is no error of this call.
 * @threads  one call at a time per process: it takes SIGINT, SIGTERM, SIGHUP and SIGQUIT while it runs
 * @source   torch.distributed.run */
TUTTI_API tutti_status tutti_launch(const tutti_launch_options *opts, int *exit_code_out);

/** What a spawned process runs: its index 0 .. nprocs-1 and the argument given; returns the exit code. */
typedef int (*tutti_spawn_fn)(int index, const char *arg);

/** One function that tutti_spawn may run, by name. */
typedef struct tutti_spawn_entry {
    const char    *name;
    tutti_spawn_fn fn;
} tutti_spawn_entry;

/** The first line of a main() that uses tutti_spawn: in a spawned process, run the function it was
 * made for.
 *
 *     int code;
 *     if (tutti_spawn_enter(entries, 1, &code))
 *         return code;
 *
 * @param entries        the functions, by name; borrowed for the call, the names are copied
 * @param exit_code_out  what the function returned; 127 when no entry has the name asked for
 * @errors   none: false means that this process was not spawned; then only the names are kept
 * @threads  before any other thread
 * @source   ours: C has no __main__ to re-import */
TUTTI_API bool tutti_spawn_enter(const tutti_spawn_entry *entries, int n_entries, int *exit_code_out);

/** Start nprocs copies of the running program, each of which runs the function registered under name,
 * as a job of its own (env:// works in them), and wait for all.
 *
 * @param arg     handed to each; NULL: ""
 * @errors   TUTTI_E_REMOTE  a process failed; the text names its index, pid and exit code or signal. The
 *                           others were ended.
 *           TUTTI_E_IO      all ended well, but output of theirs could not be written
 *           TUTTI_E_ABORTED a signal to this process ended them
 *           TUTTI_E_ARG     nprocs < 1, no name, or one that tutti_spawn_enter() was not given
 *           TUTTI_E_STATE   called inside a spawned process before tutti_spawn_enter
 * @threads  as tutti_launch
 * @source   torch.multiprocessing.spawn */
TUTTI_API tutti_status tutti_spawn(const char *name, int nprocs, const char *arg);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * elastic/supervisor.h - run the ranks of this host to their end. */
#ifndef TTI_ELASTIC_SUPERVISOR_H
#define TTI_ELASTIC_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <time.h>
#include <tutti/status.h>
#include "elastic/keeper.h"
#include "watch/bulletin.h"

/** What to run. Everything is borrowed. */
typedef struct tti_job {
    int n_ranks;                /* on this host, >= 1 */
    int n_spares;               /* behind them in argvs and envps: started when ranks fail; with keep */
    bool keep;                  /* a rank that fails does not end the others */
    const char *path;           /* what execve takes */
    char *const *const *argvs;  /* for each rank */
    char *const *const *envps;  /* for each rank */
    bool plain_output;          /* no prefixes */
    int64_t shutdown_ns;        /* between the first signal and SIGKILL */
    int signal_fd;              /* of tti_signals_take() */
    const struct rlimit *files; /* the ranks' limit of open files */
    const tti_keeper *keeper;   /* ends the ranks, should this process be killed */
    const int *recorders;       /* for each, as argvs: descriptors that it inherits; -1: none */
    struct tti_sight *sights;   /* for each, as argvs, zeroed: what it is at is noted here before it is ended; NULL: not wanted */
    int first_rank;             /* of this host, for words */
    struct tti_herald *herald;  /* is told of every end, and why others are ended; NULL: nobody is */
} tti_job;

/** How one rank ended. */
typedef struct tti_rank_end {
    pid_t pid;      /* 0: never started */
    int exit_code;  /* 128 + signal, if a signal ended it; 127, if it could not be executed */
    int signal;     /* that ended it, or 0 */
    int exec_errno; /* why it could not be executed, or 0 */
    bool stopped;   /* it ended after the launcher had begun to stop the job */
    bool killed;    /* by the launcher's SIGKILL */
    bool lost;      /* with keep: its failure is one that others go on after, as the first is; they, or who comes in its place */
    time_t when;
} tti_rank_end;

typedef struct tti_job_result {
    int exit_code; /* of the job: 0, the first failure's, or 128 + signal; 1 if output was lost */
    int first;     /* local rank of the first failure; -1: none */
    int signal;    /* that came from outside and ended the job, or 0 */
    bool kept;     /* others went on when ranks had failed, and ended well */
    bool lost;     /* output could not be written, for another reason than that nobody reads it */
    bool elsewhere;     /* what failed first in the whole job was on another host: */
    tti_ending origin;
    int n_gone;         /* with keep: launchers of other hosts that are gone without a word */
    tti_ending *gone;   /* [n_gone]; free() it */
    int n_ranks;        /* and spares that were started */
    tti_rank_end *ends; /* of each; free() it */
} tti_job_result;

/** Start the ranks, pass on their output and incoming signals, and end the others when one fails, unless they are kept.
 * When it returns, the ranks are collected and whatever was left of their process groups is killed.
 * @errors TUTTI_E_NOMEM, TUTTI_E_IO  ranks could not be started or watched; none is left */
tutti_status tti_supervise(const tti_job *job, tti_job_result *result_out);

#endif

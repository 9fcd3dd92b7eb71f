/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calm.h - ranks that are stopped again and again, for less than the limit: nobody may be accused.
 *
 * How     A world of more ranks than cores makes calls, one after the other, and looks at their results. The runner stops
 *         some of its processes, one or several at a time, or a whole host, and lets them go on again before TUTTI_SILENT_MS
 *         is over. Nothing dies, and no time-out is near: an error that any rank gets is a false accusation, and so is a
 *         line of its log that gives somebody up, or says that a host is out of reach.
 *             rank.c   what a rank does
 *             calm.c   the runner: who is stopped and when, and the row that comes of it
 * True    Who is stopped is drawn from the seed; when that meets which call is the machine's. */
#ifndef TT_TORTURE_CALM_H
#define TT_TORTURE_CALM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "harness/hosts.h"

enum {
    CALM_RANKS_MAX = 16,
    CALM_WORDS_MAX = 600,
    CALM_TIMEOUT_MS = 120000, /* of calls: far off */
    CALM_BEAT_MS = 500,
    CALM_SILENT_MS = 6000,    /* who is silent for longer is given up */
    CALM_STOP_MS = 3000,      /* and nobody is stopped for longer than that */
    CALM_VOID_MS = 5000,      /* unless the runner itself got no core for so long: then the run counts for nothing */
};

/** What the processes share. */
typedef struct calm_board {
    _Atomic bool    ready[CALM_RANKS_MAX];
    _Atomic bool    enough; /* the runner has, and the ranks leave with their next round */
    _Atomic int64_t calls;  /* of rank 0 */
    _Atomic int     accusations;
    char            words[CALM_RANKS_MAX][CALM_WORDS_MAX]; /* "": none */
} calm_board;

typedef struct calm_job {
    int             n_ranks;
    int             n_hosts; /* 1, or 2: ranks take turns */
    char            dir[160];
    const char     *store_host;
    int             store_port;
    const tt_hosts *hosts; /* NULL: one host */
    calm_board     *board;
} calm_job;

/** The host of a rank. */
static inline int calm_host(const calm_job *job, int rank)
{
    return rank % job->n_hosts;
}

/** A rank's log. */
void calm_log_path(const calm_job *job, int rank, char *out, size_t bytes);

_Noreturn void calm_rank(const calm_job *job, int rank);

#endif

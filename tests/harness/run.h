/* SPDX-License-Identifier: BSD-3-Clause
 *
 * run.h - what the files of the harness share; tests include harness.h. */
#ifndef TT_RUN_H
#define TT_RUN_H

#include "harness/harness.h"
#include "harness/hosts.h"

#include <sys/types.h>

enum { TT_DIR_MAX = 160, TT_PATH_MAX = TT_DIR_MAX + 32 };

/** How ranks join and leave. Tests of tt_main_bare() have none. */
typedef struct tt_world_ops {
    tutti_status (*join)(tt_ctx *t, int64_t timeout_ms, void *store);
    void (*leave)(tt_ctx *t);
    /* A store that the threads of one process share, NULL if there is none; and its end. */
    void *(*store_open)(void);
    void (*store_close)(void *store);
} tt_world_ops;

/** One test with one transport. */
typedef struct tt_run {
    const tt_test      *test;
    const tt_world_ops *world;     /* NULL: the harness joins nobody */
    char                word[24];  /* of the transport */
    char                dir[TT_DIR_MAX];
    int                 port;
    pid_t               parent;    /* the harness */
    tt_hosts            hosts;
    _Atomic uint32_t   *marks;
} tt_run;

/** What has come of several runs. */
typedef struct tt_verdicts {
    bool failed;
    bool skipped;
} tt_verdicts;

static inline void tt_verdicts_add(tt_verdicts *all, int verdict)
{
    all->skipped = all->skipped || verdict == TT_SKIPPED;
    all->failed = all->failed || (verdict != TT_PASSED && verdict != TT_SKIPPED);
}

/** Do one run, and print what came of it: TT_PASSED, TT_FAILED or TT_SKIPPED. run->parent is this process. */
int tt_run_and_say(tt_run *run);

/** Runs that are under way beside each other: under tsan, which computes where others wait, two. */
#ifdef __SANITIZE_THREAD__
enum { TT_BESIDE_MAX = 2 };
#else
enum { TT_BESIDE_MAX = 8 };
#endif

typedef struct tt_runner {
    pid_t  pid; /* 0: none */
    int    words;
    tt_run run;
} tt_runner;

typedef struct tt_beside {
    tt_runner   runners[TT_BESIDE_MAX];
    int         n;
    tt_verdicts verdicts;
} tt_beside;

/** Begin a run beside those that are under way, as soon as there is room for it; then wait for all. */
void tt_beside_start(tt_beside *b, const tt_run *run);
void tt_beside_end(tt_beside *b);

/** Run all tests with these worlds; the exit code. */
int tt_run_all(const tt_test *tests, size_t n, const tt_world_ops *world);

/** Whether the ranks of a run are threads: then one process holds all of them. */
bool tt_run_threads(const tt_run *run);
int tt_run_processes(const tt_run *run);
/** The plug-in that carries what would go by TCP; NULL: TCP does. */
const char *tt_run_carried(const tt_run *run);
/** Whether two interfaces join the hosts, and ranks are told both. */
bool tt_run_rails(const tt_run *run);

/** In a forked process: be rank, or all ranks as threads. Does not return. */
_Noreturn void tt_rank_main(const tt_run *run, int rank);

/** The name of the file with a process's output. */
void tt_rank_log(const tt_run *run, int rank, char path_out[TT_PATH_MAX]);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * seeds.c - running seeds.
 *
 * They run in processes of some hundred each, so that one that crashes, does not end or leaves things behind is one seed's
 * matter. Each is run once; of 64 one twice, and both runs must be the same. */
#include "simulation/seeds.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SEEDS_IN_A_PROCESS = 200, AGAIN_ONE_IN = 64, SEED_LIMIT_S = 60, WRONG_SHOWN = 20 };

tt_tally *tt_tally_make(uint64_t from)
{
    tt_tally *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (t == MAP_FAILED) {
        perror("simulation: no memory for a tally");
        exit(2);
    }
    t->next = from;
    return t;
}

void tt_tally_free(tt_tally *t)
{
    munmap(t, sizeof *t);
}

double tt_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void note_wrong(uint64_t seed, const char *words, const tt_options *o, tt_tally *t)
{
    const uint64_t before = t->wrong++;

    if (before < TT_WRONG_KEPT)
        t->wrong_seeds[before] = seed;
    if (before >= WRONG_SHOWN || o->must_fail)
        return;
    printf("seed %" PRIu64 ": %s\n  replay: %s --seed %" PRIu64 "%s --trace\n", seed, words, o->self, seed,
           o->agreements ? " --agreements" : "");
    fflush(stdout);
}

static void count(tt_tally *t, const tt_verdict *v)
{
    int i;

    t->results += (uint64_t)v->n_results;
    t->errors += (uint64_t)v->n_errors;
    t->shrunk += (uint64_t)v->n_shrunk;
    t->turns += (uint64_t)v->report.turns;
    t->virtual_ms += (uint64_t)v->report.virtual_ms;
    t->harmless += v->harmless;
    for (i = 0; i < TUTTI_FAULT_KINDS; i++)
        t->faults[i] += (uint64_t)v->report.faults[i];
}

bool tt_run_one(uint64_t seed, const tt_options *o, tt_tally *t)
{
    tt_verdict v, again;

    alarm(SEED_LIMIT_S);
    tt_seed_run(seed, o->agreements, o->trace, &v);
    if (!v.wrong && seed % AGAIN_ONE_IN == 0) {
        tt_seed_run(seed, o->agreements, false, &again);
        if (again.report.trace != v.report.trace) {
            v.wrong = true;
            snprintf(v.words, sizeof v.words, "two runs differ: after %" PRId64 " and %" PRId64 " turns", v.report.turns,
                     again.report.turns);
        }
    }
    count(t, &v);
    if (v.wrong)
        note_wrong(seed, v.words, o, t);
    return !v.wrong;
}

static bool is_over(uint64_t to, double until, const tt_options *o, const tt_tally *t)
{
    return t->next > to || (o->must_fail && t->wrong > 0) || (until > 0 && tt_seconds() > until);
}

/* Whoever was wrong may have left something behind: the next ones get another process. */
static void run_some(uint64_t to, double until, const tt_options *o, tt_tally *t)
{
    bool good = true;
    int  n;

    for (n = 0; n < SEEDS_IN_A_PROCESS && good && !is_over(to, until, o, t); n++) {
        good = tt_run_one(t->next, o, t);
        t->next++;
    }
}

/* A process that did not end by itself: that is the fault of the seed that it was at. */
static void note_end(int status, const tt_options *o, tt_tally *t)
{
    char words[96];

    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(words, sizeof words, "liveness: it takes more than %d s", SEED_LIMIT_S);
    else if (WIFSIGNALED(status))
        snprintf(words, sizeof words, "safety: it ended with signal %d", WTERMSIG(status));
    else
        snprintf(words, sizeof words, "safety: the process ended with code %d", WEXITSTATUS(status));
    note_wrong(t->next, words, o, t);
    t->next++;
}

void tt_run_seeds(uint64_t to, double until, const tt_options *o, tt_tally *t)
{
    int   status;
    pid_t pid;

    fflush(stdout);
    while (!is_over(to, until, o, t)) {
        pid = fork();
        if (pid == 0) {
            run_some(to, until, o, t);
            exit(0); /* sanitizers look for what is left */
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid) {
            perror("simulation");
            exit(2);
        }
        note_end(status, o, t);
    }
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * simulation.c - many rehearsals: seed after seed, what is wrong with any of them, and how to see it again.
 *
 *   simulation --seeds 1..2000          run them; exits with 1 if one is wrong
 *   simulation --seed 17 --trace        one, with all that happens
 *   simulation --seeds 1..10000 --must-fail   succeeds if one is wrong: for mutants
 *
 * Seeds run in processes of a few hundred each, so that one that crashes, does not end or leaves things behind is one seed's
 * matter. Every seed is run once; each 64th twice, and both runs must be the same. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "simulation/program.h"

enum { SEEDS_IN_A_PROCESS = 200, AGAIN_ONE_IN = 64, SEED_LIMIT_S = 60, WRONG_SHOWN = 20 };

typedef struct options {
    uint64_t from, to;
    bool     trace, must_fail, quiet;
    int64_t  for_s; /* stop after so long; 0: not */
} options;

/* Shared with the processes; each number is written by one process at a time, the next one begins after its end. */
typedef struct tally {
    _Atomic uint64_t next; /* the seed that runs, or is to */
    _Atomic uint64_t wrong;
    _Atomic uint64_t results, errors, shrunk, turns, harmless;
    _Atomic uint64_t faults[TUTTI_FAULT_KINDS];
} tally;

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void show_wrong(uint64_t seed, const char *words, const char *self)
{
    printf("seed %" PRIu64 ": %s\n  replay: %s --seed %" PRIu64 " --trace\n", seed, words, self, seed);
    fflush(stdout);
}

static void count(tally *t, const tt_verdict *v)
{
    int i;

    t->results += (uint64_t)v->n_results;
    t->errors += (uint64_t)v->n_errors;
    t->shrunk += (uint64_t)v->n_shrunk;
    t->turns += (uint64_t)v->report.turns;
    t->harmless += v->harmless;
    for (i = 0; i < TUTTI_FAULT_KINDS; i++)
        t->faults[i] += (uint64_t)v->report.faults[i];
}

/* False: this process had better end. */
static bool run_seed(uint64_t seed, const options *o, tally *t, const char *self)
{
    tt_verdict v, again;

    alarm(SEED_LIMIT_S);
    tt_seed_run(seed, o->trace, &v);
    if (!v.wrong && seed % AGAIN_ONE_IN == 0) {
        tt_seed_run(seed, false, &again);
        if (again.report.trace != v.report.trace) {
            v.wrong = true;
            snprintf(v.words, sizeof v.words, "two runs differ: after %" PRId64 " and %" PRId64 " turns", v.report.turns,
                     again.report.turns);
        }
    }
    count(t, &v);
    if (v.wrong && t->wrong++ < WRONG_SHOWN && !o->quiet)
        show_wrong(seed, v.words, self);
    return !v.wrong;
}

static bool is_over(const options *o, const tally *t, double began)
{
    return t->next > o->to || (o->must_fail && t->wrong > 0) || (o->for_s > 0 && seconds() - began > (double)o->for_s);
}

static void run_some(const options *o, tally *t, double began, const char *self)
{
    int n;

    for (n = 0; n < SEEDS_IN_A_PROCESS && !is_over(o, t, began); n++) {
        const bool good = run_seed(t->next, o, t, self);

        t->next++;
        if (!good)
            return;
    }
}

/* One process after the other; what ends badly is the fault of the seed that it was at. */
static void run_all(const options *o, tally *t, double began, const char *self)
{
    char  words[96];
    int   status;
    pid_t pid;

    while (!is_over(o, t, began)) {
        pid = fork();
        if (pid == 0) {
            run_some(o, t, began, self);
            exit(0); /* sanitizers look for what is left */
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid) {
            perror("simulation");
            exit(2);
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
            snprintf(words, sizeof words, "liveness: it takes more than %d s", SEED_LIMIT_S);
        else if (WIFSIGNALED(status))
            snprintf(words, sizeof words, "safety: it ended with signal %d", WTERMSIG(status));
        else
            snprintf(words, sizeof words, "safety: the process ended with code %d", WEXITSTATUS(status));
        if (t->wrong++ < WRONG_SHOWN && !o->quiet)
            show_wrong(t->next, words, self);
        t->next++;
    }
}

static void summarise(const options *o, const tally *t, double took_s)
{
    const uint64_t n = t->next - o->from;
    int            i;

    printf("%" PRIu64 " seeds from %" PRIu64 " in %.1f s: %.0f a second, %" PRIu64 " turns each\n", n, o->from, took_s,
           (double)n / took_s, n > 0 ? t->turns / n : 0);
    printf("faults:");
    for (i = 0; i < TUTTI_FAULT_KINDS; i++)
        printf(" %" PRIu64 " %s", t->faults[i], tutti_fault_name((tutti_fault_kind)i));
    printf("; %" PRIu64 " seeds had nothing that may make a call fail\n", t->harmless);
    printf("%" PRIu64 " calls with the right result, %" PRIu64 " ranks with an error, %" PRIu64 " went on in a smaller world; wrong: %" PRIu64
           " seeds\n", t->results, t->errors, t->shrunk, t->wrong);
}

static int usage(void)
{
    fprintf(stderr, "simulation --seeds FROM..TO | --seed N  [--trace] [--must-fail] [--for SECONDS]\n");
    return 2;
}

static bool read_options(int argc, char **argv, options *o)
{
    int i;

    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seeds") == 0 && i + 1 < argc) {
            if (sscanf(argv[++i], "%" SCNu64 "..%" SCNu64, &o->from, &o->to) != 2)
                return false;
        } else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
            if (sscanf(argv[++i], "%" SCNu64, &o->from) != 1)
                return false;
            o->to = o->from;
        } else if (strcmp(argv[i], "--for") == 0 && i + 1 < argc) {
            o->for_s = strtoll(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--trace") == 0) {
            o->trace = true;
        } else if (strcmp(argv[i], "--must-fail") == 0) {
            o->must_fail = o->quiet = true;
        } else {
            return false;
        }
    }
    return o->from > 0 && o->to >= o->from;
}

int main(int argc, char **argv)
{
    options o = { .from = 0 };
    tally  *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double  began = seconds();
    bool    found;

    if (!read_options(argc, argv, &o))
        return usage();
    if (t == MAP_FAILED)
        return 2;
    t->next = o.from;
    if (!o.trace)
        tutti_log_set_sink("stderr", NULL, NULL);
    if (o.trace)
        (void)run_seed(o.from, &o, t, argv[0]);
    else
        run_all(&o, t, began, argv[0]);
    t->next += o.trace;
    summarise(&o, t, seconds() - began);
    found = t->wrong > 0;
    return found == o.must_fail ? 0 : 1;
}

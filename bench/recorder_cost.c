/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recorder_cost.c - what the flight recorder, or the comparing of calls, costs an operation: with it against without it, by turns.
 *
 *     recorder_cost [--of recorder|checks] [--ranks N] [--starts N] [--rounds N] [--ms N]   rows on standard output, goals
 *                                                                                           beside them
 *
 * How     Two jobs of N processes each are there at the same time, one with TUTTI_RECORDER=0; or, as nothing switches the
 *         comparing off, one with a library in which it is left out (unchecked.c), and both without a recorder. A round asks one
 *         of them for a block of calls of some ms while the other sleeps in a read(), then the other; which one is first changes
 *         from round to round. The cost is the median of the rounds' differences, with their quartiles: what the machine
 *         does meanwhile meets both. With one rank nothing but the library's own instructions is left.
 * Starts  Where a process's code and memory come to lie is worth some ns either way, for as long as it lives: as much as what is
 *         measured. So both jobs are started anew, N times, and a row is of the rounds of all of them.
 * Reads   ns of a call without, ns that it adds, and these in percent. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <tutti/tutti.h>

enum { JOBS = 2, RANKS_MAX = 8, STARTS_MAX = 20, ROUNDS_MAX = 20000 /* of all starts */ };

/* What is measured: bytes of an all_reduce, or a message there and back. */
static const struct {
    const char *what;
    int64_t     bytes;
    bool        is_message;
} cells[] = {
    { "all_reduce", 4, false },     { "all_reduce", 1024, false },    { "all_reduce", 65536, false },
    { "all_reduce", 1048576, false }, { "send + recv", 4, true },
};

enum { CELLS = sizeof cells / sizeof cells[0] };

/* One line to a rank: do so many calls of a cell. 0 calls: leave. */
typedef struct order {
    int     cell;
    int64_t calls;
} order;

typedef struct job {
    int ask[RANKS_MAX]; /* writing ends */
    int told;           /* reading end, of rank 0: a double, ns per call */
} job;

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "recorder_cost: %s\n", what);
    exit(1);
}

/* ---- a rank ---- */

static tutti_status one_call(const order *o, float *x, int rank)
{
    const tutti_span span = TUTTI_SPAN(x, cells[o->cell].bytes / 4);
    tutti_status     st;

    if (!cells[o->cell].is_message)
        return tutti_all_reduce(span, TUTTI_MAX, NULL);
    if (rank > 1)
        return TUTTI_OK;
    st = rank == 0 ? tutti_send(span, 1, 0, NULL) : tutti_recv(span, 0, 0, NULL, NULL);
    if (st != TUTTI_OK)
        return st;
    return rank == 0 ? tutti_recv(span, 1, 0, NULL, NULL) : tutti_send(span, 0, 0, NULL);
}

static double run_calls(const order *o, float *x, int rank)
{
    double  began;
    int64_t i;

    if (tutti_barrier(NULL) != TUTTI_OK)
        give_up(tutti_last_error());
    began = now_ns();
    for (i = 0; i < o->calls; i++)
        if (one_call(o, x, rank) != TUTTI_OK)
            give_up(tutti_last_error());
    return (now_ns() - began) / (double)o->calls;
}

/* argv: "rank", URL, rank, ranks, two descriptors; the environment says the rest. */
static int be_rank(char **argv)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    float             *x = calloc(1048576, 1);
    const int          asked = atoi(argv[5]), tell = atoi(argv[6]);
    order              o;
    double             ns;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    opts.init_method = argv[2];
    opts.rank = atoi(argv[3]);
    opts.world_size = atoi(argv[4]);
    if (x == NULL || tutti_init_process_group(&opts) != TUTTI_OK)
        give_up(x == NULL ? "no memory" : tutti_last_error());
    while (read(asked, &o, sizeof o) == (ssize_t)sizeof o && o.calls > 0) {
        ns = run_calls(&o, x, opts.rank);
        if (opts.rank == 0 && write(tell, &ns, sizeof ns) != (ssize_t)sizeof ns)
            give_up("nobody listens");
    }
    tutti_destroy_process_group(NULL);
    return 0;
}

/* In a child: this program again, with or without what is measured. */
static _Noreturn void exec_rank(const char *url, bool with, bool checks, int rank, int ranks, int asked, int tell)
{
    char  numbers[4][16], program[] = "/proc/self/exe", word[] = "rank", path[256];
    char *argv[] = { program, word, path, numbers[0], numbers[1], numbers[2], numbers[3], NULL };

    snprintf(path, sizeof path, "%s", url);
    snprintf(numbers[0], sizeof numbers[0], "%d", rank);
    snprintf(numbers[1], sizeof numbers[1], "%d", ranks);
    snprintf(numbers[2], sizeof numbers[2], "%d", asked);
    snprintf(numbers[3], sizeof numbers[3], "%d", tell);
    setenv("TUTTI_RECORDER", with && !checks ? "1" : "0", 1);
    if (checks && !with)
        setenv("LD_LIBRARY_PATH", UNCHECKED_DIR, 1);
    execv(program, argv);
    give_up(strerror(errno));
}

/* ---- who asks ---- */

static job start(const char *folder, bool with, bool checks, int ranks)
{
    char url[256];
    int  ask[2], told[2], rank;
    job  j;

    snprintf(url, sizeof url, "file://%s/%s", folder, with ? "with" : "without");
    if (pipe(told) != 0)
        give_up(strerror(errno));
    for (rank = 0; rank < ranks; rank++) {
        if (pipe2(ask, O_CLOEXEC) != 0)
            give_up(strerror(errno));
        if (fork() == 0) {
            fcntl(ask[0], F_SETFD, 0);
            exec_rank(url, with, checks, rank, ranks, ask[0], told[1]);
        }
        close(ask[0]);
        j.ask[rank] = ask[1];
    }
    close(told[1]);
    fcntl(told[0], F_SETFD, FD_CLOEXEC);
    j.told = told[0];
    return j;
}

/* ns of one call, of so many. */
static double ask(const job *j, int ranks, int cell, int64_t calls)
{
    const order o = { .cell = cell, .calls = calls };
    double      ns;
    int         rank;

    for (rank = 0; rank < ranks; rank++)
        if (write(j->ask[rank], &o, sizeof o) != (ssize_t)sizeof o)
            give_up("a rank is gone");
    if (calls == 0)
        return 0;
    if (read(j->told, &ns, sizeof ns) != (ssize_t)sizeof ns)
        give_up("a rank is gone");
    return ns;
}

/* It leaves, and so does everybody who waits to be asked. */
static void end(const job *j, int ranks)
{
    int rank;

    ask(j, ranks, 0, 0);
    for (rank = 0; rank < ranks; rank++)
        close(j->ask[rank]);
    close(j->told);
}

static double quantile(double *sorted, int n, double q)
{
    const double at = q * (n - 1);
    const int    i = (int)at;

    return i + 1 < n ? sorted[i] + (at - i) * (sorted[i + 1] - sorted[i]) : sorted[i];
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The rounds of a cell, of all starts: ns of a call without, and what it takes more. */
typedef struct tally {
    double off[ROUNDS_MAX], more[ROUNDS_MAX];
    int    n;
} tally;

static void measure(const job jobs[JOBS], int ranks, int cell, int rounds, double block_ns, tally *sum)
{
    const double  one = ask(&jobs[0], ranks, cell, 100);
    const int64_t calls = (int64_t)(block_ns / one) + 1;
    double        ns[JOBS];
    int           r, k;

    ask(&jobs[1], ranks, cell, 100);
    for (r = 0; r < rounds; r++) {
        for (k = 0; k < JOBS; k++)
            ns[(r + k) % JOBS] = ask(&jobs[(r + k) % JOBS], ranks, cell, calls);
        sum->off[sum->n] = ns[0];
        sum->more[sum->n++] = ns[1] - ns[0];
    }
}

static void print_row(int ranks, int cell, tally *sum)
{
    double base, cost;

    qsort(sum->off, (size_t)sum->n, sizeof *sum->off, by_value);
    qsort(sum->more, (size_t)sum->n, sizeof *sum->more, by_value);
    base = quantile(sum->off, sum->n, 0.5);
    cost = quantile(sum->more, sum->n, 0.5);
    printf("%d\t%s\t%lld\t%.1f\t%.1f\t%.1f\t%.1f\t%.2f\t%s\n", ranks, cells[cell].what, (long long)cells[cell].bytes, base,
           cost, quantile(sum->more, sum->n, 0.25), quantile(sum->more, sum->n, 0.75), 100 * cost / base,
           cells[cell].is_message ? "50 ns" : cells[cell].bytes <= 1024 ? "25 ns" : "0.5 %");
}

static long number(const char *text, long most)
{
    char      *end;
    const long n = strtol(text, &end, 10);

    if (end == text || *end != '\0' || n < 1 || n > most)
        give_up("usage: recorder_cost [--of recorder|checks] [--ranks N] [--starts N] [--rounds N] [--ms N]");
    return n;
}

/* Both jobs from their beginning to their end. */
static void measure_once(int ranks, bool checks, int rounds, double block_ns, tally *sums)
{
    char folder[] = "/tmp/tutti-recorder-cost-XXXXXX", path[64];
    job  jobs[JOBS];
    int  i;

    if (mkdtemp(folder) == NULL)
        give_up(strerror(errno));
    for (i = 0; i < JOBS; i++)
        jobs[i] = start(folder, i == 1, checks, ranks);
    for (i = 0; i < (int)CELLS; i++)
        if (!cells[i].is_message || ranks > 1)
            measure(jobs, ranks, i, rounds, block_ns, &sums[i]);
    for (i = 0; i < JOBS; i++)
        end(&jobs[i], ranks);
    for (i = 0; i < JOBS * ranks; i++)
        wait(NULL);
    for (i = 0; i < JOBS; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, i == 1 ? "with" : "without");
        unlink(path);
    }
    rmdir(folder);
}

int main(int argc, char **argv)
{
    static tally sums[CELLS];
    long         ranks = 1, starts = 1, rounds = 41, ms = 5;
    bool         checks = false;
    int          i;

    if (argc == 7 && strcmp(argv[1], "rank") == 0)
        return be_rank(argv);
    for (i = 1; i < argc; i += 2) {
        if (i + 1 < argc && strcmp(argv[i], "--ranks") == 0)
            ranks = number(argv[i + 1], RANKS_MAX);
        else if (i + 1 < argc && strcmp(argv[i], "--starts") == 0)
            starts = number(argv[i + 1], STARTS_MAX);
        else if (i + 1 < argc && strcmp(argv[i], "--rounds") == 0)
            rounds = number(argv[i + 1], ROUNDS_MAX / STARTS_MAX);
        else if (i + 1 < argc && strcmp(argv[i], "--of") == 0)
            checks = strcmp(argv[i + 1], "checks") == 0;
        else
            ms = number(i + 1 < argc && strcmp(argv[i], "--ms") == 0 ? argv[i + 1] : "", 1000);
    }
    signal(SIGPIPE, SIG_IGN);
    if (checks && access(UNCHECKED_DIR "/libtutti.so.0", R_OK) != 0)
        give_up("there is no library without checks\n  next: build the target tutti_unchecked");
    printf("ranks\tcall\tbytes\twithout ns\tmore ns\tquarter\tthree quarters\tmore %%\tgoal\n");
    fflush(stdout); /* children would have it, too */
    for (i = 0; i < starts; i++)
        measure_once((int)ranks, checks, (int)rounds, (double)ms * 1e6, sums);
    for (i = 0; i < (int)CELLS; i++)
        if (sums[i].n > 0)
            print_row((int)ranks, i, &sums[i]);
    return 0;
}

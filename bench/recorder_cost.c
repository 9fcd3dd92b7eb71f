/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recorder_cost.c - what the flight recorder and the comparing of calls cost an operation: with them against without them, by turns.
 *
 *     recorder_cost [--of both|recorder|checks] [--ranks N] [--starts N] [--rounds N] [--ms N]   rows on standard output, goals
 *                                                                                                beside them
 *
 * How     A job of N processes, each with a library in which both can be switched off (switched.c). A round is a block of calls of
 *         some ms, in bursts of some us: without, with, with, without, and so on, all ranks alike. So both have the same processes,
 *         the same memory, and the same moments, and what the machine does meanwhile meets both. The cost is the median of the
 *         rounds' differences, with its 95 % interval (of the order statistics: nothing is assumed of the rounds). With one rank
 *         nothing but the library's own instructions is left.
 * Starts  Where a process's code and memory come to lie is worth some ns either way, for as long as it lives. Within one process that
 *         meets both, but what is switched may gain or lose by it: so jobs may be started anew, N times. A row is of the rounds
 *         of all of them; rounds of one start are alike, so that only the medians of starts say how sure it is.
 * Reads   ns of a call without, ns that it adds, in what interval its median lies, the least and the largest median of a start,
 *         and the cost in percent. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
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

enum { RANKS_MAX = 8, STARTS_MAX = 20, ROUNDS_MAX = 20000 /* of all starts */, SWITCHES = 4 /* a pattern of bursts */ };

static const double BURST_NS = 10000;

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

/* What is measured: a set of these. */
typedef enum part {
    RECORDER = 1,
    CHECKS = 2
} part;

/* One line to a rank: so many bursts of so many calls of a cell, half of them with what is measured. 0 bursts: leave. */
typedef struct order {
    int     cell, parts;
    int64_t bursts, calls;
} order;

/* ns of a call in them. */
typedef struct answer {
    double without, with;
} answer;

typedef struct job {
    int ask[RANKS_MAX]; /* writing ends */
    int told;           /* reading end, of rank 0: an answer */
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

typedef void switcher(bool recorder, bool checks);

/* What is not measured is off. */
static void set(switcher *to, const order *o, bool with)
{
    to(with && (o->parts & RECORDER) != 0, with && (o->parts & CHECKS) != 0);
}

/* Without, with, with, without: what becomes slower or faster meanwhile does so for both. */
static bool is_with(int64_t burst)
{
    return burst % SWITCHES == 1 || burst % SWITCHES == 2;
}

static answer run_bursts(switcher *to, const order *o, float *x, int rank)
{
    const double calls = (double)o->calls * (double)o->bursts / 2;
    double       ns[2] = { 0, 0 }, began;
    int64_t      b, i;

    for (b = 0; b < o->bursts; b++) {
        set(to, o, is_with(b));
        if (b == 0 && tutti_barrier(NULL) != TUTTI_OK)
            give_up(tutti_last_error());
        began = now_ns();
        for (i = 0; i < o->calls; i++)
            if (one_call(o, x, rank) != TUTTI_OK)
                give_up(tutti_last_error());
        ns[is_with(b)] += now_ns() - began;
    }
    return (answer){ .without = ns[0] / calls, .with = ns[1] / calls };
}

/* The library that this program was started with is not the one that it was linked with: exec_rank(). */
static switcher *find_switch(void)
{
    union {
        void     *object;
        switcher *function;
    } found = { .object = dlsym(RTLD_DEFAULT, "tutti_switch") };

    if (found.object == NULL)
        give_up("the library cannot be switched\n  next: build the target tutti_switched");
    return found.function;
}

/* argv: "rank", URL, rank, ranks, two descriptors; the environment says the rest. */
static int be_rank(char **argv)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    float             *x = calloc(1048576, 1);
    const int          asked = atoi(argv[5]), tell = atoi(argv[6]);
    order              o;
    answer             ns;
    switcher          *to = find_switch();

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    opts.init_method = argv[2];
    opts.rank = atoi(argv[3]);
    opts.world_size = atoi(argv[4]);
    if (x == NULL || tutti_init_process_group(&opts) != TUTTI_OK)
        give_up(x == NULL ? "no memory" : tutti_last_error());
    while (read(asked, &o, sizeof o) == (ssize_t)sizeof o && o.bursts > 0) {
        ns = run_bursts(to, &o, x, opts.rank);
        to(true, true);
        if (opts.rank == 0 && write(tell, &ns, sizeof ns) != (ssize_t)sizeof ns)
            give_up("nobody listens");
    }
    tutti_destroy_process_group(NULL);
    return 0;
}

/* In a child: this program again, with a library that can be switched. */
static _Noreturn void exec_rank(const char *url, int rank, int ranks, int asked, int tell)
{
    char  numbers[4][16], program[] = "/proc/self/exe", word[] = "rank", path[256];
    char *argv[] = { program, word, path, numbers[0], numbers[1], numbers[2], numbers[3], NULL };

    snprintf(path, sizeof path, "%s", url);
    snprintf(numbers[0], sizeof numbers[0], "%d", rank);
    snprintf(numbers[1], sizeof numbers[1], "%d", ranks);
    snprintf(numbers[2], sizeof numbers[2], "%d", asked);
    snprintf(numbers[3], sizeof numbers[3], "%d", tell);
    setenv("TUTTI_RECORDER", "1", 1);
    setenv("LD_LIBRARY_PATH", SWITCHED_DIR, 1);
    execv(program, argv);
    give_up(strerror(errno));
}

/* ---- who asks ---- */

static job start(const char *folder, int ranks)
{
    char url[256];
    int  ask[2], told[2], rank;
    job  j;

    snprintf(url, sizeof url, "file://%s/store", folder);
    if (pipe(told) != 0)
        give_up(strerror(errno));
    for (rank = 0; rank < ranks; rank++) {
        if (pipe2(ask, O_CLOEXEC) != 0)
            give_up(strerror(errno));
        if (fork() == 0) {
            fcntl(ask[0], F_SETFD, 0);
            exec_rank(url, rank, ranks, ask[0], told[1]);
        }
        close(ask[0]);
        j.ask[rank] = ask[1];
    }
    close(told[1]);
    fcntl(told[0], F_SETFD, FD_CLOEXEC);
    j.told = told[0];
    return j;
}

static answer ask(const job *j, int ranks, order o)
{
    answer ns = { 0, 0 };
    int    rank;

    for (rank = 0; rank < ranks; rank++)
        if (write(j->ask[rank], &o, sizeof o) != (ssize_t)sizeof o)
            give_up("a rank is gone");
    if (o.bursts > 0 && read(j->told, &ns, sizeof ns) != (ssize_t)sizeof ns)
        give_up("a rank is gone");
    return ns;
}

/* It leaves, and so does everybody who waits to be asked. */
static void end(const job *j, int ranks)
{
    int rank;

    ask(j, ranks, (order){ .bursts = 0 });
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
    double off[ROUNDS_MAX], more[ROUNDS_MAX], starts[STARTS_MAX] /* their medians of more */;
    int    n, n_starts;
} tally;

static void measure(const job *j, int ranks, int cell, int parts, int rounds, double block_ns, tally *sum)
{
    order  o = { .cell = cell, .parts = parts, .bursts = SWITCHES, .calls = 100 };
    double one;
    int    r;

    one = ask(j, ranks, o).without;
    o.calls = (int64_t)(BURST_NS / one) + 1;
    o.bursts = ((int64_t)(block_ns / (one * (double)o.calls)) / SWITCHES + 1) * SWITCHES;
    for (r = 0; r < rounds; r++) {
        const answer ns = ask(j, ranks, o);

        sum->off[sum->n] = ns.without;
        sum->more[sum->n++] = ns.with - ns.without;
    }
    qsort(&sum->more[sum->n - rounds], (size_t)rounds, sizeof *sum->more, by_value);
    sum->starts[sum->n_starts++] = quantile(&sum->more[sum->n - rounds], rounds, 0.5);
}

/* The end of the interval in which the median lies with 95 %: that many rounds are below it by chance. */
static double end_of_interval(double *sorted, int n, int side)
{
    const double at = 0.5 + side * 0.98 / sqrt(n);

    return quantile(sorted, n, at < 0 ? 0 : at > 1 ? 1 : at);
}

static void print_row(int ranks, int cell, tally *sum)
{
    double base, cost;

    qsort(sum->off, (size_t)sum->n, sizeof *sum->off, by_value);
    qsort(sum->more, (size_t)sum->n, sizeof *sum->more, by_value);
    qsort(sum->starts, (size_t)sum->n_starts, sizeof *sum->starts, by_value);
    base = quantile(sum->off, sum->n, 0.5);
    cost = quantile(sum->more, sum->n, 0.5);
    printf("%d\t%s\t%lld\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.2f\t%s\n", ranks, cells[cell].what, (long long)cells[cell].bytes, base,
           cost, end_of_interval(sum->more, sum->n, -1), end_of_interval(sum->more, sum->n, 1), sum->starts[0],
           sum->starts[sum->n_starts - 1], 100 * cost / base,
           cells[cell].is_message ? "50 ns" : cells[cell].bytes <= 1024 ? "25 ns" : "0.5 %");
}

static long number(const char *text, long most)
{
    char      *end;
    const long n = strtol(text, &end, 10);

    if (end == text || *end != '\0' || n < 1 || n > most)
        give_up("usage: recorder_cost [--of both|recorder|checks] [--ranks N] [--starts N] [--rounds N] [--ms N]");
    return n;
}

static int parts_of(const char *word)
{
    if (strcmp(word, "both") == 0)
        return RECORDER | CHECKS;
    if (strcmp(word, "recorder") != 0 && strcmp(word, "checks") != 0)
        give_up("--of is both, recorder or checks");
    return strcmp(word, "recorder") == 0 ? RECORDER : CHECKS;
}

/* A job from its beginning to its end. */
static void measure_once(int ranks, int parts, int rounds, double block_ns, tally *sums)
{
    char folder[] = "/tmp/tutti-recorder-cost-XXXXXX", path[64];
    job  j;
    int  i;

    if (mkdtemp(folder) == NULL)
        give_up(strerror(errno));
    j = start(folder, ranks);
    for (i = 0; i < (int)CELLS; i++)
        if (!cells[i].is_message || ranks > 1)
            measure(&j, ranks, i, parts, rounds, block_ns, &sums[i]);
    end(&j, ranks);
    for (i = 0; i < ranks; i++)
        wait(NULL);
    snprintf(path, sizeof path, "%s/store", folder);
    unlink(path);
    rmdir(folder);
}

int main(int argc, char **argv)
{
    static tally sums[CELLS];
    long         ranks = 1, starts = 1, rounds = 41, ms = 5;
    int          parts = RECORDER | CHECKS, i;

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
            parts = parts_of(argv[i + 1]);
        else
            ms = number(i + 1 < argc && strcmp(argv[i], "--ms") == 0 ? argv[i + 1] : "", 1000);
    }
    signal(SIGPIPE, SIG_IGN);
    printf("ranks\tcall\tbytes\twithout ns\tmore ns\tfrom\tto\tleast start\tlargest start\tmore %%\tgoal\n");
    fflush(stdout); /* children would have it, too */
    for (i = 0; i < starts; i++)
        measure_once((int)ranks, parts, (int)rounds, (double)ms * 1e6, sums);
    for (i = 0; i < (int)CELLS; i++)
        if (sums[i].n > 0)
            print_row((int)ranks, i, &sums[i]);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_store.c - `tutti bench store`: many clients of one tcp store raise one counter.
 *
 * How     A server in a process of its own and clients in a few more, each client a thread with a
 *         connection: all connect, then all add, and the counter must be exact. With --peer the same
 *         runs with PyTorch's server and Python's clients, in as many processes, and with our clients
 *         on PyTorch's server, so that server and client can be told apart. Rounds of the sides are
 *         interleaved; every round has fresh processes, whose start is not timed.
 * True    Both times run from telling all processes to having heard all of them. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include "bench.h"
#include "bench_line.h"
#include "bench_clients.h"
#include "bench_process.h"
#include "tool.h"

enum { PROCESSES_MAX = 64, ROUNDS_MAX = 1000, CLIENTS_MAX = 100000, ADDS_MAX = 1000000, SPARE_FILES = 64 };

typedef enum side { TUTTI, PYTORCH, MIXED, N_SIDES } side;

static const char *const side_names[] = { "tutti", "pytorch", "tutti on pytorch" };

typedef struct options {
    int clients, adds, processes, rounds;
    char *peer;   /* Python with PyTorch; NULL: only our side */
    char *script; /* what it runs */
    const char *tsv;
} options;

typedef struct result {
    double connect_s, adds_s;
} result;

/* The processes of one round. */
typedef struct crew {
    bench_process server;
    bench_process clients[PROCESSES_MAX];
    bench_clients parts[PROCESSES_MAX];
} crew;

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- one round --------------------------------------------------------------------------------- */

static bool start_server(const options *o, side s, crew *c, int *port_out)
{
    char word[] = "serve";
    char *argv[] = { o->peer, o->script, word, NULL };
    char line[BENCH_LINE_MAX];
    const bool ok = s == TUTTI ? bench_fork(&c->server, bench_serve, NULL)
                               : bench_exec(&c->server, argv);

    if (!ok || !bench_hear(&c->server, line))
        return false;
    *port_out = atoi(line);
    return true;
}

static bool start_python_clients(const options *o, bench_process *p, const bench_clients *part)
{
    char word[] = "clients", port[16], n[16], adds[16];
    char *argv[] = { o->peer, o->script, word, port, n, adds, NULL };

    snprintf(port, sizeof port, "%d", part->port);
    snprintf(n, sizeof n, "%d", part->n);
    snprintf(adds, sizeof adds, "%d", part->adds);
    return bench_exec(p, argv);
}

static bool start_clients(const options *o, side s, crew *c, int port)
{
    bool ok = true;
    int i;

    for (i = 0; i < o->processes && ok; i++) {
        c->parts[i] = (bench_clients){ .torch = s != TUTTI, .port = port, .adds = o->adds };
        c->parts[i].n = o->clients / o->processes + (i < o->clients % o->processes);
        ok = s == PYTORCH ? start_python_clients(o, &c->clients[i], &c->parts[i])
                          : bench_fork(&c->clients[i], bench_count, &c->parts[i]);
    }
    return ok;
}

static bool tell_all(const options *o, const crew *c)
{
    bool ok = true;
    int i;

    for (i = 0; i < o->processes && ok; i++)
        ok = bench_tell(&c->clients[i], "go");
    return ok;
}

static bool hear_all(const options *o, const crew *c, const char *word)
{
    char line[BENCH_LINE_MAX];
    bool ok = true;
    int i;

    for (i = 0; i < o->processes && ok; i++)
        ok = bench_hear(&c->clients[i], line) && strcmp(line, word) == 0;
    return ok;
}

/* One step of all clients. */
static bool timed(const options *o, const crew *c, const char *word, double *seconds_out)
{
    const double start = now_s();
    const bool ok = tell_all(o, c) && hear_all(o, c, word);

    *seconds_out = now_s() - start;
    return ok;
}

/* The counter, asked for by one client more. */
static bool count_is_right(const options *o, const crew *c)
{
    const int64_t wanted = (int64_t)o->clients * o->adds;
    tutti_store *store = NULL;
    int64_t sum = 0;
    tutti_status st = bench_open(&c->parts[0], &store);

    if (st == TUTTI_OK)
        st = tutti_store_add(store, BENCH_COUNTER, 0, &sum);
    tutti_store_close(store);
    if (st != TUTTI_OK)
        fprintf(stderr, "tutti bench: %s\n", tutti_last_error());
    else if (sum != wanted)
        fprintf(stderr, "tutti bench: the counter is %" PRId64 " instead of %" PRId64 "\n", sum, wanted);
    return st == TUTTI_OK && sum == wanted;
}

static bool run_round(const options *o, side s, result *out)
{
    crew c = { .server = { .pid = 0 } };
    int port = 0, i;
    bool ok = start_server(o, s, &c, &port) && start_clients(o, s, &c, port) &&
              hear_all(o, &c, "ready") && timed(o, &c, "connected", &out->connect_s) &&
              timed(o, &c, "done", &out->adds_s) && count_is_right(o, &c);

    if (!ok)
        fprintf(stderr, "tutti bench: a round of %s failed\n", side_names[s]);
    for (i = 0; i < o->processes; i++)
        bench_end(&c.clients[i]);
    bench_end(&c.server);
    return ok;
}

/* ---- figures ----------------------------------------------------------------------------------- */

static double adds_per_s(const options *o, const result *r)
{
    return (double)o->clients * o->adds / r->adds_s;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

typedef struct medians {
    double connect_s, rate;
} medians;

static medians medians_of(const options *o, const result *results)
{
    double connect_s[ROUNDS_MAX], rate[ROUNDS_MAX];
    int i;

    for (i = 0; i < o->rounds; i++) {
        connect_s[i] = results[i].connect_s;
        rate[i] = adds_per_s(o, &results[i]);
    }
    return (medians){ .connect_s = median(connect_s, o->rounds), .rate = median(rate, o->rounds) };
}

/* The table; rows of a side behind the first have how many times ours is faster. */
static void print_table(const options *o, const result (*results)[ROUNDS_MAX], int n_sides)
{
    medians ours = { .rate = 0 };
    int s;

    printf("%d clients in %d processes, %d adds each, one server; medians of %d rounds\n", o->clients,
           o->processes, o->adds, o->rounds);
    printf("%-18s %12s %12s %20s\n", "side", "connect s", "adds/s", "tutti is faster by");
    for (s = 0; s < n_sides; s++) {
        const medians m = medians_of(o, results[s]);

        if (s == TUTTI)
            ours = m;
        printf("%-18s %12.3f %12.0f", side_names[s], m.connect_s, m.rate);
        if (s != TUTTI)
            printf(" %19.2fx", ours.rate / m.rate);
        printf("\n");
    }
}

static void print_row(FILE *tsv, const options *o, side s, int round, const result *r)
{
    if (tsv == NULL)
        return;
    fprintf(tsv, "%s\t%d\t%d\t%d\t%d\t%.6f\t%.6f\t%.1f\n", side_names[s], round, o->clients, o->processes,
            o->adds, r->connect_s, r->adds_s, adds_per_s(o, r));
    fflush(tsv);
}

static void print_head(FILE *tsv)
{
    const time_t now = time(NULL);
    struct utsname machine;
    char day[32] = "";

    if (tsv == NULL || uname(&machine) != 0)
        return;
    strftime(day, sizeof day, "%Y-%m-%d", gmtime(&now));
    fprintf(tsv, "# tutti bench store, tutti %s, %s, %s %s, %ld cores\n", TUTTI_VERSION, day,
            machine.sysname, machine.release, sysconf(_SC_NPROCESSORS_ONLN));
    fprintf(tsv, "side\tround\tclients\tprocesses\tadds_each\tconnect_s\tadds_s\tadds_per_s\n");
}

/* ---- the command ------------------------------------------------------------------------------- */

/* The server has a descriptor for each client. */
static bool raise_files(int clients)
{
    const rlim_t wanted = (rlim_t)clients + SPARE_FILES;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return true;
    if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < wanted) {
        fprintf(stderr,
                "tutti bench: %d clients need %llu open files, the hard limit is %llu\n"
                "  next: --clients %lld, or as root: ulimit -Hn %llu\n",
                clients, (unsigned long long)wanted, (unsigned long long)limit.rlim_max,
                (long long)limit.rlim_max - SPARE_FILES, (unsigned long long)wanted);
        return false;
    }
    limit.rlim_cur = wanted;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

static int run_rounds(const options *o, FILE *tsv)
{
    static result results[N_SIDES][ROUNDS_MAX]; /* of the one command that this process is */
    const int n_sides = o->peer != NULL ? N_SIDES : 1;
    int round, s;

    print_head(tsv);
    for (round = 0; round < o->rounds; round++)
        for (s = 0; s < n_sides; s++) {
            if (!run_round(o, (side)s, &results[s][round]))
                return EXIT_FAILURE;
            print_row(tsv, o, (side)s, round, &results[s][round]);
        }
    print_table(o, (const result(*)[ROUNDS_MAX])results, n_sides);
    return EXIT_SUCCESS;
}

/* An installed command has no source beside it. */
static bool has_source(void)
{
    return access(BENCH_SCRIPT, R_OK) == 0;
}

static int print_help(FILE *out, int code)
{
    fprintf(out,
            "usage: tutti bench store [options]\n\n"
            "  --clients N    clients, each with a connection (1000)\n"
            "  --adds N       how often each of them adds (100)\n"
            "  --processes N  that the clients are spread over (4)\n"
            "  --rounds N     (3)\n"
            "  --peer PYTHON  the same with PyTorch's TCPStore, by this Python\n"
            "  --script FILE  what that runs%s%s%s\n"
            "  --tsv FILE     append the rows of all rounds\n",
            has_source() ? " (" : ": bench/store_peer.py of tutti's source, which is not installed",
            has_source() ? BENCH_SCRIPT : "", has_source() ? ")" : "");
    return code;
}

static bool read_count(const char *text, const char *option, int max, int *out)
{
    char *end = NULL;
    const long value = strtol(text, &end, 10);

    if (end == text || *end != '\0' || value < 1 || value > max) {
        fprintf(stderr, "tutti bench store: --%s '%.40s' is not a number between 1 and %d\n", option, text,
                max);
        return false;
    }
    *out = (int)value;
    return true;
}

static bool read_options(int argc, char **argv, options *o, bool *help_out)
{
    static const struct option names[] = {
        { "clients", required_argument, NULL, 'c' }, { "adds", required_argument, NULL, 'a' },
        { "processes", required_argument, NULL, 'p' }, { "rounds", required_argument, NULL, 'r' },
        { "peer", required_argument, NULL, 'y' }, { "script", required_argument, NULL, 's' },
        { "tsv", required_argument, NULL, 't' }, { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    bool ok = true;
    int option;

    while (ok && (option = bench_next_option(argc, argv, names)) >= 0) {
        switch (option) {
        case 'c': ok = read_count(optarg, "clients", CLIENTS_MAX, &o->clients); break;
        case 'a': ok = read_count(optarg, "adds", ADDS_MAX, &o->adds); break;
        case 'p': ok = read_count(optarg, "processes", PROCESSES_MAX, &o->processes); break;
        case 'r': ok = read_count(optarg, "rounds", ROUNDS_MAX, &o->rounds); break;
        case 'y': o->peer = optarg; break;
        case 's': o->script = optarg; break;
        case 't': o->tsv = optarg; break;
        case 'h': *help_out = true; break;
        default: ok = false;
        }
    }
    if (ok && optind < argc)
        fprintf(stderr, "tutti bench store: '%.200s' is no option\n", argv[optind]);
    return ok && optind == argc;
}

int bench_store(int argc, char **argv)
{
    static char script[] = BENCH_SCRIPT;
    options o = { .clients = 1000, .adds = 100, .processes = 4, .rounds = 3, .script = script };
    bool help = false;
    FILE *tsv = NULL;
    int code;

    if (!read_options(argc, argv, &o, &help))
        return bench_see_help(argv[0]);
    if (help)
        return print_help(stdout, EXIT_SUCCESS);
    if (o.peer != NULL && o.script == script && !has_source()) {
        fprintf(stderr, "tutti bench: there is no script for --peer here\n"
                        "  next: --script FILE, with bench/store_peer.py of tutti's source\n");
        return EXIT_FAILURE;
    }
    if (o.processes > o.clients)
        o.processes = o.clients;
    if (!raise_files(o.clients))
        return EXIT_FAILURE;
    signal(SIGPIPE, SIG_IGN); /* a helper that died is noticed by what it does not say */
    if (o.tsv != NULL && (tsv = fopen(o.tsv, "ae")) == NULL) {
        fprintf(stderr, "tutti bench: cannot write '%s': %s\n", o.tsv, strerror(errno));
        return EXIT_FAILURE;
    }
    code = run_rounds(&o, tsv);
    if (tsv != NULL)
        fclose(tsv);
    return code;
}

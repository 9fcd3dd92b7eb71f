/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calm.c - a world that is stopped in parts, for a while, and a row of what came of it.
 *
 *     calm [--seconds N] [--seed S] [--ranks N] [--hosts 1|2] [--rows FILE] [--commit WORD]
 *
 * Exit code: 0 nobody was accused, 1 somebody was, 77 the machine refuses two hosts, or stopped the ranks by itself. */
#include "calm.h"

#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/port.h"
#include "harness/scratch.h"
#include <tutti/private.h>
#include <tutti/tutti.h>

enum { JOIN_MS = 60000, LEAVE_MS = 60000, CALM_LINE_MAX = 1024 };

typedef struct options {
    int64_t     seconds;
    uint64_t    seed;
    int         ranks, hosts;
    const char *rows, *commit;
} options;

typedef struct tally {
    int64_t stops, stopped_ms, longest_ms;
    int     given_up;    /* lines of logs that say somebody is gone, or was given up */
    int     unreachable; /* and that a host is out of reach */
    int     silent;      /* and, rightly, that somebody does not run */
} tally;

static uint64_t dice(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void sleep_ms(int64_t ms)
{
    const struct timespec t = { .tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000L };

    nanosleep(&t, NULL);
}

void calm_log_path(const calm_job *job, int rank, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s/rank-%d.log", job->dir, rank);
}

/* ---- the processes ---- */

static _Noreturn void keep_store(const calm_job *job, int port_fd)
{
    tutti_store_server_options opts = TUTTI_STORE_SERVER_OPTIONS;
    tutti_store_server        *server = NULL;
    char                       path[200];
    int                        port;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (job->hosts != NULL && !tt_hosts_enter(job->hosts, 0))
        _exit(1);
    snprintf(path, sizeof path, "%s/secret", job->dir);
    opts.host = job->store_host;
    opts.secret_file = path;
    if (tutti_store_server_start(&opts, &server) != TUTTI_OK) {
        fprintf(stderr, "no store: %s\n", tutti_last_error());
        _exit(1);
    }
    port = tutti_store_server_port(server);
    if (write(port_fd, &port, sizeof port) != sizeof port)
        _exit(1);
    for (;;)
        pause();
}

static pid_t start_store(calm_job *job)
{
    int   ends[2];
    pid_t pid;
    bool  there;

    if (pipe(ends) != 0)
        return -1;
    pid = fork();
    if (pid == 0)
        keep_store(job, ends[1]);
    close(ends[1]);
    there = pid > 0 && read(ends[0], &job->store_port, sizeof job->store_port) == sizeof job->store_port;
    close(ends[0]);
    return there ? pid : -1;
}

static void start_ranks(const calm_job *job, pid_t *pids)
{
    int r;

    for (r = 0; r < job->n_ranks; r++) {
        pids[r] = fork();
        if (pids[r] == 0)
            calm_rank(job, r);
    }
}

static bool all_are_ready(const calm_job *job)
{
    int r;

    for (r = 0; r < job->n_ranks; r++)
        if (!atomic_load(&job->board->ready[r]))
            return false;
    return true;
}

/* Whether all ended with 0 before that. The rest are ended. */
static bool take_ends(const calm_job *job, const pid_t *pids, int64_t until_ns)
{
    bool well = true;
    int  r, status;

    for (r = 0; r < job->n_ranks; r++) {
        pid_t got;

        while ((got = waitpid(pids[r], &status, WNOHANG)) == 0 && tti_now_ns() < until_ns)
            sleep_ms(5);
        if (got == 0) {
            snprintf(job->board->words[r], CALM_WORDS_MAX, "did not leave in time");
            kill(pids[r], SIGKILL);
            waitpid(pids[r], &status, 0);
        }
        well = well && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    return well;
}

/* ---- stopping ---- */

/* Which ranks: one as a rule, some, or all of a host. */
static uint32_t draw_ranks(const calm_job *job, uint64_t *state)
{
    const int how = (int)(dice(state) % 10), host = (int)(dice(state) % (uint64_t)job->n_hosts);
    uint32_t  set = 1u << dice(state) % (uint64_t)job->n_ranks;
    int       r;

    if (how < 6)
        return set;
    for (r = 0; r < job->n_ranks; r++)
        if (how < 8 ? dice(state) % 3 == 0 : calm_host(job, r) == host)
            set |= 1u << r;
    return set;
}

static void signal_all(const calm_job *job, const pid_t *pids, uint32_t set, int what)
{
    int r;

    for (r = 0; r < job->n_ranks; r++)
        if ((set & 1u << r) != 0)
            kill(pids[r], what);
}

/* The runner needs next to nothing, but when it wants it: whatever it was started with, which the ranks keep. */
static void want_a_core(void)
{
    const struct sched_param none = { .sched_priority = 0 };

    (void)sched_setscheduler(0, SCHED_OTHER, &none);
}

/* Mostly short, now and then nearly as long as may be. */
static int64_t draw_ms(uint64_t *state)
{
    const int64_t most = (int64_t)1 << dice(state) % 12;

    return 1 + (int64_t)(dice(state) % (uint64_t)(most < CALM_STOP_MS ? most : CALM_STOP_MS));
}

/* The machine may give the runner no core for a while, and the time that somebody is stopped lasts longer than was drawn:
 * what was measured is what counts. */
static void stop_some(const calm_job *job, const pid_t *pids, uint64_t *state, tally *sum)
{
    const uint32_t set = draw_ranks(job, state);
    const int64_t  ms = draw_ms(state), begun = tti_now_ns();
    int64_t        took;

    signal_all(job, pids, set, SIGSTOP);
    sleep_ms(ms);
    signal_all(job, pids, set, SIGCONT);
    took = (tti_now_ns() - begun) / TTI_MS;
    sum->stops += __builtin_popcount(set);
    sum->stopped_ms += took * __builtin_popcount(set);
    sum->longest_ms = took > sum->longest_ms ? took : sum->longest_ms;
    sleep_ms(1 + (int64_t)(dice(state) % 200));
}

/* ---- what came of it ---- */

static bool has(const char *line, const char *words)
{
    return strstr(line, words) != NULL;
}

static void read_log(const calm_job *job, int rank, tally *sum)
{
    char  path[224], line[CALM_LINE_MAX];
    FILE *log;

    calm_log_path(job, rank, path, sizeof path);
    log = fopen(path, "r");
    while (log != NULL && fgets(line, sizeof line, log) != NULL) {
        sum->given_up += has(line, "is gone") || has(line, "given up") || has(line, "ACCUSES");
        sum->unreachable += has(line, "is unreachable");
        sum->silent += has(line, "stopped by a signal") || has(line, "no sign of life");
    }
    if (log != NULL)
        fclose(log);
}

static void print_row(const options *o, const calm_job *job, int64_t seconds, const tally *sum)
{
    FILE *rows = o->rows != NULL ? fopen(o->rows, "a") : NULL;

    if (rows != NULL && fseek(rows, 0, SEEK_END) == 0 && ftell(rows) == 0)
        fprintf(rows, "seed\tcommit\tranks\thosts\tseconds\tcalls\tstops\tstopped_ms\tlongest_ms\taccusations\tgiven_up"
                      "\tunreachable\tsilent\n");
    if (rows != NULL)
        fprintf(rows, "%" PRIu64 "\t%s\t%d\t%d\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64
                      "\t%d\t%d\t%d\t%d\n",
                o->seed, o->commit, job->n_ranks, job->n_hosts, seconds, atomic_load(&job->board->calls), sum->stops,
                sum->stopped_ms, sum->longest_ms, atomic_load(&job->board->accusations), sum->given_up, sum->unreachable,
                sum->silent);
    if (rows != NULL)
        fclose(rows);
    printf("%d ranks on %d hosts for %" PRId64 " s: %" PRId64 " calls, %" PRId64 " stops, the longest %" PRId64
           " ms; %d accusations, %d given up, %d called unreachable, %d called silent\n",
           job->n_ranks, job->n_hosts, seconds, atomic_load(&job->board->calls), sum->stops, sum->longest_ms,
           atomic_load(&job->board->accusations), sum->given_up, sum->unreachable, sum->silent);
}

static void print_failures(const calm_job *job)
{
    char path[224], prefix[32];
    int  r;

    for (r = 0; r < job->n_ranks; r++) {
        fprintf(stderr, "---- rank %d: %s\n", r, job->board->words[r]);
        calm_log_path(job, r, path, sizeof path);
        snprintf(prefix, sizeof prefix, "  %d | ", r);
        tt_tail(path, prefix, 12);
    }
}

/* ---- a run ---- */

static bool run(const options *o, calm_job *job, const pid_t *pids, tally *sum)
{
    const int64_t join_ns = tti_now_ns() + JOIN_MS * TTI_MS;
    uint64_t      state = o->seed;
    int64_t       begun, end_ns, seconds;
    bool          well;
    int           r;

    while (!all_are_ready(job) && atomic_load(&job->board->accusations) == 0 && tti_now_ns() < join_ns)
        sleep_ms(5);
    begun = tti_now_ns();
    end_ns = begun + o->seconds * TTI_SECOND;
    want_a_core();
    while (atomic_load(&job->board->accusations) == 0 && tti_now_ns() < end_ns)
        stop_some(job, pids, &state, sum);
    seconds = (tti_now_ns() - begun) / TTI_SECOND;
    atomic_store(&job->board->enough, true);
    well = take_ends(job, pids, tti_now_ns() + LEAVE_MS * TTI_MS);
    for (r = 0; r < job->n_ranks; r++)
        read_log(job, r, sum);
    if (sum->longest_ms < CALM_VOID_MS)
        print_row(o, job, seconds, sum);
    return well && sum->given_up == 0 && sum->unreachable == 0;
}

static bool prepare(calm_job *job)
{
    char secret[200];

    setvbuf(stdout, NULL, _IOLBF, 0);
    tt_env_clear();
    job->board = mmap(NULL, sizeof *job->board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (job->board == MAP_FAILED || !tt_dir_make(job->dir, sizeof job->dir))
        return false;
    snprintf(secret, sizeof secret, "%s/secret", job->dir);
    return tt_secret_write(secret);
}

static int run_all(const options *o, calm_job *job)
{
    pid_t pids[CALM_RANKS_MAX] = { 0 }, store;
    tally sum = { 0 };
    bool  well;

    if (!prepare(job))
        return 1;
    store = start_store(job);
    if (store < 0)
        return 1;
    start_ranks(job, pids);
    well = run(o, job, pids, &sum);
    if (sum.longest_ms >= CALM_VOID_MS)
        printf("SKIP: the runner got no core for %" PRId64 " ms\n", sum.longest_ms);
    else if (!well)
        print_failures(job);
    kill(store, SIGKILL);
    waitpid(store, NULL, 0);
    tt_dir_remove(job->dir);
    return sum.longest_ms >= CALM_VOID_MS ? 77 : well ? 0 : 1;
}

static bool read_options(int argc, char **argv, options *out)
{
    options o = { .seconds = 10, .seed = 1, .ranks = 8, .hosts = 1, .commit = "-" };
    int     i;

    for (i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];

        if (strcmp(name, "--seconds") == 0)
            o.seconds = strtoll(value, NULL, 10);
        else if (strcmp(name, "--seed") == 0)
            o.seed = strtoull(value, NULL, 10);
        else if (strcmp(name, "--ranks") == 0)
            o.ranks = atoi(value);
        else if (strcmp(name, "--hosts") == 0)
            o.hosts = atoi(value);
        else if (strcmp(name, "--rows") == 0)
            o.rows = value;
        else if (strcmp(name, "--commit") == 0)
            o.commit = value;
        else
            return false;
    }
    *out = o;
    return i == argc && o.ranks >= 2 && o.ranks <= CALM_RANKS_MAX && (o.hosts == 1 || o.hosts == 2) && o.seconds > 0;
}

int main(int argc, char **argv)
{
    static calm_job job;
    tt_hosts        hosts = { .n = 0 };
    char            reason[256];
    options         o;
    int             code;

    if (!read_options(argc, argv, &o)) {
        fprintf(stderr, "calm [--seconds N] [--seed S] [--ranks 2..%d] [--hosts 1|2] [--rows FILE] [--commit WORD]\n",
                CALM_RANKS_MAX);
        return 2;
    }
    if (o.hosts == 2 && !tt_hosts_open(&hosts, reason, sizeof reason)) {
        printf("SKIP: %s\n", reason);
        return 77;
    }
    job.n_ranks = o.ranks;
    job.n_hosts = o.hosts;
    job.hosts = o.hosts == 2 ? &hosts : NULL;
    job.store_host = o.hosts == 2 ? tt_hosts_addr(0) : "127.0.0.1";
    code = run_all(&o, &job);
    if (o.hosts == 2)
        tt_hosts_close(&hosts);
    return code;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * main.c - jobs with faults until the time is up, and a row for each fault.
 *
 *     faults [--seconds N] [--jobs N] [--seed S] [--lanes N] [--layout shm|tcp|two-level] [--faults SIGKILL,RST,...]
 *            [--phases connect,handshake,...] [--no-launcher] [--every] [--lenient] [--rows FILE] [--commit WORD]
 *
 * Seeds count up from S, or from behind the last one in FILE; one seed is one job, so that `--seed S --jobs 1 --layout L`
 * plays a row again, as far as its draws go: the machine draws, too. Without --layout the layouts take turns. Jobs run
 * side by side in lanes: those in which a silent rank is waited for leave the cores to the others. With --every nothing is drawn: ranks die
 * at each store to shared memory of each small call, one after the other. With --phases only those are drawn, and jobs have one
 * round where all of them are of joining. With --no-launcher nobody tells the ranks who has ended.
 * Exit code: 0 all well, 1 something hung, broke or had wrong values, was late or accused the wrong rank (these two not
 * with --lenient: the machine is busy), 77 the machine refuses. */
#include "faults.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness/scratch.h"
#include <tutti/private.h>

enum { DEAD_MS = 1000, GRACE_MS = 1000, LANES_MAX = 32, LINE_MAX_BYTES = 512 };

typedef struct options {
    int64_t     seconds; /* 0: no limit */
    int64_t     jobs;    /* 0: no limit */
    uint64_t    seed;
    bool        has_seed;
    int         lanes, lane; /* this one takes every lanes-th seed */
    int         layout;  /* -1: by turns */
    bool        every, lenient, no_launcher;
    unsigned    phases; /* bits; 0: all */
    const char *rows;
    const char *commit;
    int         faults[FAULTS];
} options;

typedef struct totals {
    int64_t injected, hung, broken, late, unnamed, accused, unsaid, wrong, kept, left_out, worst_dead_ms;
} totals;

/* ---- options ---- */

static bool read_faults(char *text, int *weights)
{
    char *word;
    int   i;

    memset(weights, 0, FAULTS * sizeof *weights);
    while ((word = strsep(&text, ",")) != NULL) {
        for (i = 0; i < FAULTS && strcmp(word, tt_fault_name((tt_fault)i)) != 0; i++)
            continue;
        if (i == FAULTS)
            return false;
        weights[i] = 1;
    }
    return true;
}

static bool read_phases(char *text, unsigned *bits)
{
    char *word;
    int   i;

    while ((word = strsep(&text, ",")) != NULL) {
        for (i = 0; i < PHASES && strcmp(word, tt_phase_name((tt_phase)i)) != 0; i++)
            continue;
        if (i == PHASES)
            return false;
        *bits |= 1u << i;
    }
    return true;
}

static bool read_layout(const char *text, int *out)
{
    for (*out = 0; *out < LAYOUTS; (*out)++)
        if (strcmp(text, tt_layout_name((tt_layout)*out)) == 0)
            return true;
    return false;
}

static bool read_option(options *o, const char *name, char *value)
{
    if (strcmp(name, "--seconds") == 0)
        o->seconds = strtoll(value, NULL, 10);
    else if (strcmp(name, "--jobs") == 0)
        o->jobs = strtoll(value, NULL, 10);
    else if (strcmp(name, "--seed") == 0)
        o->seed = strtoull(value, NULL, 10), o->has_seed = true;
    else if (strcmp(name, "--lanes") == 0)
        o->lanes = atoi(value);
    else if (strcmp(name, "--rows") == 0)
        o->rows = value;
    else if (strcmp(name, "--commit") == 0)
        o->commit = value;
    else if (strcmp(name, "--layout") == 0)
        return read_layout(value, &o->layout);
    else if (strcmp(name, "--faults") == 0)
        return read_faults(value, o->faults);
    else if (strcmp(name, "--phases") == 0)
        return read_phases(value, &o->phases);
    else
        return false;
    return true;
}

static bool read_options(int argc, char **argv, options *out)
{
    /* Those that are silent take seconds each: the others come more often. */
    options o = { .jobs = 0, .seed = 1, .lanes = 1, .layout = -1, .commit = "-",
                  .faults = { [F_KILL] = 10, [F_STOP] = 3, [F_EXIT] = 10, [F_SEGV] = 10, [F_ABORT] = 10,
                              [F_RESET] = 10, [F_HOLE] = 3, [F_HALF] = 10 } };
    int     i;

    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--every") == 0)
            o.every = true;
        else if (strcmp(argv[i], "--lenient") == 0)
            o.lenient = true;
        else if (strcmp(argv[i], "--no-launcher") == 0)
            o.no_launcher = true;
        else if (i + 1 >= argc || !read_option(&o, argv[i], argv[i + 1]))
            return false;
        else
            i++;
    }
    if (o.seconds == 0 && o.jobs == 0)
        o.jobs = 10;
    *out = o;
    return o.lanes >= 1 && o.lanes <= LANES_MAX;
}

/* ---- rows ---- */

static bool is_kept(const round_page *p)
{
    return tt_is_cut(p) && tt_cut_outcome(p) == CUT_KEPT;
}

static bool is_gone(const tt_job *job, const round_page *p, int rank)
{
    return (rank == p->plan.victim && !is_kept(p)) || rank == p->plan.leaves ||
           (p->plan.what == F_HOLE &&
            tt_host_of_slot(job, p->slots[rank]) == tt_host_of_slot(job, p->slots[p->plan.victim]));
}

/* What the survivors of a round made of it. */
typedef struct judged {
    int64_t     found_ms; /* until the last one had its error */
    int64_t     on_ms;    /* until the last one had a right sum; -1: none was made */
    bool        unnamed, accused, said, wrong; /* by one of them or more */
    bool        is_wrong;
    const char *result;
} judged;

static int64_t allowed_ms(const tt_draw *d)
{
    if (!tt_fault_is_silent(d->what))
        return DEAD_MS;
    return (d->when == P_ALGORITHM || d->when == P_P2P ? TIMEOUT_MS : JOIN_FAULT_MS) + GRACE_MS;
}

static judged judge(const tt_job *job, const round_page *p)
{
    static const char *const names[] = { "ok", "left-out", "kept" };
    const int64_t hit = atomic_load(&p->hit_ns);
    const bool    is_cut = tt_is_cut(p);
    judged        j = { .said = true, .on_ms = -1 };
    int           r;

    for (r = 0; r < p->size; r++) {
        const seen   *s = &p->by[r];
        const int64_t found = (s->ended_ns - hit) / TTI_MS, on = (s->on_ns - hit) / TTI_MS;

        if (is_gone(job, p, r))
            continue;
        j.found_ms = found > j.found_ms ? found : j.found_ms;
        j.on_ms = s->on_ns != 0 && on > j.on_ms ? on : j.on_ms;
        j.unnamed = j.unnamed || s->verdict == TT_ACCUSES_NOBODY;
        j.accused = j.accused || s->verdict == TT_ACCUSES_ANOTHER;
        j.said = j.said && s->said;
        j.wrong = j.wrong || s->wrong;
    }
    j.result = j.wrong                                            ? "wrong-values"
               : is_cut && tt_cut_outcome(p) == CUT_TWO_WORLDS    ? "two-worlds"
               : j.accused                                        ? "accused"
               : j.unnamed                                        ? "unnamed"
               : j.found_ms > allowed_ms(&p->plan)                ? "late"
               : tt_fault_is_silent(p->plan.what) && !j.said      ? "unsaid"
                                                                  : NULL;
    j.is_wrong = j.result != NULL;
    if (!j.is_wrong)
        j.result = is_cut ? names[tt_cut_outcome(p)] : "ok";
    return j;
}

static void print_row(FILE *to, const options *o, const tt_job *job, int round, const judged *j)
{
    const round_page *p = &job->board->rounds[round];
    const int         at = atomic_load(&p->hit_at);

    fprintf(to, "%" PRIu64 "\t%d\t%s\t%s\t%s\t%s\t%s\t%" PRId64 "\t%" PRId64 "\t%s\t%d\t%" PRId64 "\t%" PRId64
                "\t%s\t%d\t%s\n",
            job->seed, round, o->commit, tt_fault_name(p->plan.what), tt_phase_name(p->plan.when), p->call,
            at < TT_POINTS ? tt_point_name((tt_point)at) : "after", atomic_load(&p->nth), atomic_load(&p->points),
            tt_layout_name(job->layout), p->size, j->found_ms, j->on_ms, j->unnamed || j->accused ? "no" : "yes",
            strcmp(j->result, "hang") == 0, j->result);
    fflush(to);
}

/* The words of those that accused nobody, or the wrong one. */
static void print_words(const tt_job *job, int round)
{
    static const char *const verdicts[] = { "", "UNNAMED ", "ANOTHER " };
    const round_page        *p = &job->board->rounds[round];
    int                      r;

    fprintf(stderr, "seed %" PRIu64 " round %d: %s of rank %d of %d at %s %s\n", job->seed, round,
            tt_fault_name(p->plan.what), p->plan.victim, p->size, tt_phase_name(p->plan.when), p->call);
    for (r = 0; r < p->size; r++)
        if (!is_gone(job, p, r))
            fprintf(stderr, "  rank %d, %" PRId64 " ms after, %s%s: %s\n", r,
                    (p->by[r].ended_ns - atomic_load(&p->hit_ns)) / TTI_MS, verdicts[p->by[r].verdict],
                    tutti_status_name(p->by[r].status), p->by[r].words);
}

static void take_round(FILE *rows, const options *o, const tt_job *job, int round, totals *sum)
{
    const round_page *p = &job->board->rounds[round];
    const judged      j = judge(job, p);

    sum->injected++;
    sum->late += strcmp(j.result, "late") == 0;
    sum->unnamed += strcmp(j.result, "unnamed") == 0;
    sum->accused += strcmp(j.result, "accused") == 0;
    sum->kept += strcmp(j.result, "kept") == 0;
    sum->left_out += strcmp(j.result, "left-out") == 0;
    sum->unsaid += strcmp(j.result, "unsaid") == 0;
    sum->wrong += j.wrong || strcmp(j.result, "two-worlds") == 0;
    if (!tt_fault_is_silent(p->plan.what) && j.found_ms > sum->worst_dead_ms)
        sum->worst_dead_ms = j.found_ms;
    if (rows != NULL)
        print_row(rows, o, job, round, &j);
    if (j.is_wrong)
        print_words(job, round);
}

static void take_job(FILE *rows, const options *o, const tt_job *job, job_end end, const char *words, totals *sum)
{
    const int over = atomic_load(&job->board->round);
    int       round;

    for (round = 0; round < over; round++)
        take_round(rows, o, job, round, sum);
    if (end == JOB_OVER)
        return;
    fprintf(stderr, "seed %" PRIu64 ", %s, %d ranks, round %d %s: %s\n", job->seed, tt_layout_name(job->layout),
            job->size, over, end == JOB_HUNG ? "HANGS" : "IS BROKEN", words);
    sum->injected++;
    sum->hung += end == JOB_HUNG;
    sum->broken += end == JOB_BROKEN;
    if (rows != NULL && over < ROUNDS_MAX)
        print_row(rows, o, job, over, &(judged){ .found_ms = -1, .on_ms = -1, .unnamed = true,
                                                 .result = end == JOB_HUNG ? "hang" : "broken" });
}

/* ---- jobs ---- */

static void one_job(const options *o, const tt_net *net, uint64_t seed, tt_job *job, FILE *rows, totals *sum)
{
    char    words[WORDS_MAX + 64] = "";
    job_end end;

    job->layout = o->every ? L_SHM : o->layout >= 0 ? (tt_layout)o->layout : (tt_layout)(seed % LAYOUTS);
    memcpy(job->faults, o->faults, sizeof job->faults);
    tt_draw_job(seed, job);
    job->net = net != NULL && job->layout != L_SHM ? (tt_hosts *)(uintptr_t)&net->hosts : NULL;
    job->switch_fd = net != NULL ? net->switch_fd : -1;
    job->store_host = job->net != NULL ? tt_net_store_host() : "127.0.0.1";
    end = tt_job_run(job, words, sizeof words);
    take_job(rows, o, job, end, words, sum);
}

/* The head, if there is no row yet; and where the seeds go on. */
static bool begin_rows(options *o)
{
    FILE    *rows = o->rows != NULL ? fopen(o->rows, "a+") : NULL;
    char     line[LINE_MAX_BYTES];
    uint64_t last = 0, seed;

    if (rows == NULL)
        return o->rows == NULL;
    if (fseek(rows, 0, SEEK_END) == 0 && ftell(rows) == 0)
        fprintf(rows, "seed\tround\tcommit\tfault\tphase\tcall\tpoint\tn\tof\ttransport\tranks\tfound_ms\ton_ms"
                      "\tnamed\thang\tresult\n");
    rewind(rows);
    while (fgets(line, sizeof line, rows) != NULL) {
        seed = strtoull(line, NULL, 10);
        last = seed > last ? seed : last;
    }
    if (!o->has_seed)
        o->seed = last + 1;
    return fclose(rows) == 0;
}

/* What a fault takes of a core, by all processes of its job. */
static int64_t cpu_ms(void)
{
    struct rusage used;

    getrusage(RUSAGE_CHILDREN, &used);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
}

static void print_totals(const options *o, int64_t n, const totals *sum)
{
    printf("%" PRId64 " jobs from seed %" PRIu64 ", %" PRId64 " faults: %" PRId64 " hung, %" PRId64 " broken, %" PRId64
           " late, %" PRId64 " accused nobody, %" PRId64 " another, %" PRId64 " did not say that it is silent, %" PRId64
           " wrong values or worlds; cut off while they shrank: %" PRId64 " kept, %" PRId64 " left out; dead found within %" PRId64
           " ms; %" PRId64 " ms of a core for each\n",
           n, o->seed + (uint64_t)o->lane, sum->injected, sum->hung, sum->broken, sum->late, sum->unnamed, sum->accused, sum->unsaid,
           sum->wrong, sum->kept, sum->left_out, sum->worst_dead_ms, sum->injected > 0 ? cpu_ms() / sum->injected : 0);
}

static void run_jobs(const options *o, const tt_net *net, tt_job *job, totals *sum)
{
    const int64_t end_ns = o->seconds > 0 ? tti_now_ns() + o->seconds * TTI_SECOND : TTI_FOREVER;
    FILE         *rows = o->rows != NULL ? fopen(o->rows, "a") : NULL; /* a row is one write: lanes share the file */
    int64_t       n, mine = 0;

    for (n = o->lane; (o->jobs == 0 || n < o->jobs) && tti_now_ns() < end_ns; n += o->lanes, mine++)
        one_job(o, net, o->seed + (uint64_t)n, job, rows, sum);
    print_totals(o, mine, sum);
    if (rows != NULL)
        fclose(rows);
}

static bool prepare(tt_job *job)
{
    const struct rlimit none = { 0, 0 };
    sigset_t            chld;
    char                secret[200];

    setvbuf(stdout, NULL, _IOLBF, 0);
    tt_env_clear();
    setrlimit(RLIMIT_CORE, &none);
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    sigprocmask(SIG_BLOCK, &chld, NULL);
    job->board = mmap(NULL, sizeof *job->board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (job->board == MAP_FAILED || !tt_dir_make(job->dir, sizeof job->dir))
        return false;
    snprintf(secret, sizeof secret, "%s/secret", job->dir);
    return tt_secret_write(secret);
}

static int run_lane(const options *o)
{
    static tt_job job;
    char          reason[256];
    totals        sum = { 0 };
    tt_net        net = { .switch_fd = -1 };
    const bool    wants_net = !o->every && o->layout != L_SHM;
    bool          has_net = false;

    if (!prepare(&job))
        return 1;
    if (wants_net) {
        has_net = tt_net_open(&net, reason, sizeof reason);
        if (!has_net)
            printf("SKIP: %s\n", reason);
    }
    job.every = o->every;
    job.lenient = o->lenient;
    job.phases = o->phases;
    job.no_launcher = o->no_launcher;
    if (has_net || !wants_net)
        run_jobs(o, has_net ? &net : NULL, &job, &sum);
    if (has_net)
        tt_net_close(&net);
    tt_dir_remove(job.dir);
    if (!has_net && wants_net)
        return 77;
    return sum.hung + sum.broken + sum.wrong + (o->lenient ? 0 : sum.late + sum.unnamed + sum.accused + sum.unsaid) > 0;
}

/* The worst of their exit codes; those that were refused count only if all were. */
static int run_lanes(options *o)
{
    pid_t pids[LANES_MAX] = { 0 };
    int   code = 77, status, i;

    for (i = 0; i < o->lanes; i++) {
        o->lane = i;
        pids[i] = fork();
        if (pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            exit(run_lane(o));
        }
    }
    for (i = 0; i < o->lanes; i++) {
        if (pids[i] < 0 || waitpid(pids[i], &status, 0) != pids[i] || !WIFEXITED(status))
            code = 1;
        else if (WEXITSTATUS(status) != 77 && code != 1)
            code = WEXITSTATUS(status);
    }
    return code;
}

int main(int argc, char **argv)
{
    options o;

    if (!read_options(argc, argv, &o)) {
        fprintf(stderr, "faults [--seconds N] [--jobs N] [--seed S] [--lanes N, at most %d] [--layout shm|tcp|two-level]\n"
                        "       [--faults SIGKILL,RST,...] [--phases connect,handshake,...] [--no-launcher] [--every] [--lenient]\n"
                        "       [--rows FILE] [--commit WORD]\n", LANES_MAX);
        return 2;
    }
    if (!begin_rows(&o)) {
        fprintf(stderr, "cannot open '%s': %s\n", o.rows, strerror(errno));
        return 1;
    }
    return o.lanes == 1 ? run_lane(&o) : run_lanes(&o);
}

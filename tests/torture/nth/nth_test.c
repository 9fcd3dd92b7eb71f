/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nth_test.c
 * Goal    the n-th call for memory, to the port or to the system fails, in every family of public calls: no crash, no
 *         leak, no hang; a call says TUTTI_OK and has done its work, or fails with words; a world can be ended then.
 * Method  ranks are threads of a process that is forked for each row of calls; one of them, the victim, meets the
 *         failure: at the n-th such call only, or at it and all later ones. After each n blocks, mappings, descriptors
 *         and threads must be as many as before. A process that crashes or makes no progress is a finding, and the
 *         next one goes on behind it.
 *         By itself the program takes some n of each row; with --all, every n, in minutes. --only NAME takes one
 *         scenario, --n N one n of it; with --seconds N no row begins later. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/port.h"
#include "fails.h"
#include "harness/scratch.h"
#include "scenarios.h"
#include <tutti/private.h>

enum { WARM = 2, FEW = 3, STUCK_MS = 20000, SETTLE_TRIES = 2000, WORDS = 500, ENDS = TT_SCENARIO_RANKS };

/* One row: everything but n. */
typedef struct row {
    const tt_scenario *scenario;
    const char        *transport; /* of TUTTI_TRANSPORT */
    tt_resource        what;
    int                victim;
    bool               on;
} row;

/* What the forked process tells. */
typedef struct page {
    _Atomic int64_t n;      /* at work on it */
    _Atomic int64_t calls;  /* that the row has when nothing fails */
    _Atomic int64_t tried, hit, bad;
    _Atomic bool    over;
} page;

typedef struct options {
    bool        all;
    const char *only;
    int64_t     n;
    int64_t     end_ns; /* rows that would begin later are left out; 0: none */
    int         turn; /* other n of those that are not all */
} options;

typedef struct world {
    const row   *row;
    tutti_store *store;
    tt_actor     actors[ENDS];
    int64_t      n;
    int          variant;
    pthread_barrier_t ready;
} world;

typedef struct thread_arg {
    world *w;
    int    rank;
} thread_arg;

static page *shared;

/* ---- a rank ---- */

static void arm(const world *w, int rank)
{
    if (rank == w->row->victim)
        tt_fail_at(w->row->what, rank, w->n, w->variant, w->row->on);
}

static void disarm(const world *w, int rank, int64_t *calls)
{
    if (rank == w->row->victim)
        *calls = tt_fail_end();
}

static tutti_status make_world(const world *w, tt_actor *a)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    opts.store = w->store;
    opts.rank = a->rank;
    opts.world_size = a->size;
    opts.timeout_ms = TT_SCENARIO_TIMEOUT_MS;
    return tutti_create_process_group(&opts, &a->group);
}

static void play(world *w, tt_actor *a)
{
    const tt_scenario *s = w->row->scenario;
    int64_t            calls = 0;
    bool               there = s->ranks == 1;

    if (s->when == TT_IN_ALL)
        arm(w, a->rank);
    if (!there)
        there = tt_went_well(a, make_world(w, a), "tutti_create_process_group");
    if (!there)
        a->group = NULL;
    if (s->when != TT_IN_ALL)
        pthread_barrier_wait(&w->ready);
    if (s->when == TT_IN_BODY)
        arm(w, a->rank);
    if (there)
        s->body(a);
    if (s->when == TT_IN_END)
        arm(w, a->rank);
    else
        disarm(w, a->rank, &calls);
    if (a->group != NULL && tutti_destroy_process_group(a->group) != TUTTI_OK && a->wrong == NULL)
        a->wrong = "a world could not be destroyed";
    if (s->when == TT_IN_END)
        disarm(w, a->rank, &calls);
    if (a->rank == w->row->victim && w->n == 0)
        atomic_store(&shared->calls, calls);
}

static void *rank_main(void *arg)
{
    const thread_arg *t = arg;

    tt_be_side(t->rank);
    play(t->w, &t->w->actors[t->rank]);
    return NULL;
}

/* All ranks once, with that n; 0: nothing fails. */
static void play_all(world *w, const char *dir)
{
    const int  ranks = w->row->scenario->ranks;
    pthread_t  ids[ENDS];
    thread_arg args[ENDS];
    int        r;

    memset(w->actors, 0, sizeof w->actors);
    if (tutti_hash_store_open(&w->store) != TUTTI_OK)
        abort();
    pthread_barrier_init(&w->ready, NULL, (unsigned)ranks);
    for (r = 0; r < ranks; r++) {
        w->actors[r] = (tt_actor){ .rank = r, .size = ranks, .dir = dir };
        args[r] = (thread_arg){ w, r };
        if (pthread_create(&ids[r], NULL, rank_main, &args[r]) != 0)
            abort();
    }
    for (r = 0; r < ranks; r++)
        pthread_join(ids[r], NULL);
    pthread_barrier_destroy(&w->ready);
    tutti_store_close(w->store);
}

/* ---- what is left ---- */

static bool as_before(const tt_held *now, const tt_held *before)
{
    return now->blocks <= before->blocks && now->maps <= before->maps && now->descriptors <= before->descriptors &&
           now->threads <= before->threads;
}

/* A thread that was joined may be seen for a moment. */
static tt_held settled(const tt_held *before)
{
    tt_held now = tt_holds();
    int     i;

    for (i = 0; i < SETTLE_TRIES && !as_before(&now, before); i++) {
        sched_yield();
        now = tt_holds();
    }
    return now;
}

static void complain(const world *w, const char *what)
{
    const row *r = w->row;
    int        i;

    atomic_fetch_add(&shared->bad, 1);
    fprintf(stderr, "%s, %s, %s call %lld%s of rank %d: %s\n", r->scenario->name, r->transport,
            tt_resource_name(r->what), (long long)w->n, r->on ? " and later ones" : "", r->victim, what);
    for (i = 0; i < r->scenario->ranks; i++)
        if (w->actors[i].failed)
            fprintf(stderr, "    rank %d: %s: %s\n", i, w->actors[i].call, tutti_status_name(w->actors[i].st));
}

static void judge(const world *w, const tt_held *before, uint64_t mark)
{
    const tt_held now = settled(before);
    char          words[WORDS];
    int           i;

    for (i = 0; i < w->row->scenario->ranks; i++)
        if (w->actors[i].wrong != NULL)
            complain(w, w->actors[i].wrong);
        else if (w->actors[i].failed && !tt_has_failed())
            complain(w, "an error though nothing has failed");
    if (as_before(&now, before))
        return;
    snprintf(words, sizeof words, "left behind: %lld blocks, %lld mappings, %lld descriptors, %lld threads",
             (long long)(now.blocks - before->blocks), (long long)(now.maps - before->maps),
             (long long)(now.descriptors - before->descriptors), (long long)(now.threads - before->threads));
    complain(w, words);
    tt_print_blocks_since(mark);
}

/* ---- the forked process ---- */

static void play_one(world *w, const char *dir, int64_t n)
{
    const uint64_t mark = tt_block_mark();
    const tt_held  before = tt_holds();

    w->n = n;
    w->variant = (int)(n * 7);
    atomic_store(&shared->n, n);
    play_all(w, dir);
    atomic_fetch_add(&shared->tried, 1);
    if (tt_has_failed())
        atomic_fetch_add(&shared->hit, 1);
    judge(w, &before, mark);
}

static int64_t step_of(const options *o, int64_t calls)
{
    return o->all || calls <= FEW ? 1 : calls / FEW;
}

static _Noreturn void row_main(const row *r, const options *o, const char *dir, int64_t first)
{
    world   w = { .row = r };
    int64_t calls, step, n;
    int     i;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("TUTTI_TRANSPORT", r->transport, 1);
    for (i = 0; i < WARM; i++) {
        play_all(&w, dir);
        judge(&w, &(tt_held){ INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX }, 0);
    }
    calls = atomic_load(&shared->calls);
    step = step_of(o, calls);
    if (o->n > 0)
        play_one(&w, dir, o->n);
    else
        for (n = first > 0 ? first : 1 + o->turn % step; n <= calls; n += step)
            play_one(&w, dir, n);
    atomic_store(&shared->over, true);
    fflush(NULL);
    _exit(0);
}

/* ---- the runner ---- */

static void print_stacks(pid_t pid)
{
    char command[160];

    snprintf(command, sizeof command, "timeout 60 gdb -p %d -batch -ex 'thread apply all bt 16' 2>/dev/null | grep '^[#T]' >&2",
             (int)pid);
    if (system(command) != 0)
        fprintf(stderr, "    (no stacks: is there a gdb?)\n");
}

/* Wait for the process; true: it has ended by itself. */
static bool wait_for(pid_t pid, int *status_out)
{
    const struct timespec a_little = { .tv_nsec = 20000000 };
    sigset_t              chld;
    int64_t               since = tti_now_ns(), n = -1;

    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    while (waitpid(pid, status_out, WNOHANG) == 0) {
        if (atomic_load(&shared->n) != n) {
            n = atomic_load(&shared->n);
            since = tti_now_ns();
        }
        if (tti_now_ns() - since > STUCK_MS * TTI_MS)
            return false;
        sigtimedwait(&chld, NULL, &a_little);
    }
    return true;
}

/* From n first on; true: it got to the end of the row. */
static bool play_from(const row *r, const options *o, const char *dir, int64_t first)
{
    int   status = 0;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0)
        row_main(r, o, dir, first);
    if (pid < 0)
        abort();
    if (!wait_for(pid, &status)) {
        fprintf(stderr, "%s, %s, %s call %lld%s of rank %d: HANGS\n", r->scenario->name, r->transport,
                tt_resource_name(r->what), (long long)atomic_load(&shared->n), r->on ? " and later ones" : "", r->victim);
        print_stacks(pid);
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        return false;
    }
    if (!atomic_load(&shared->over))
        fprintf(stderr, "%s, %s, %s call %lld%s of rank %d: ends the process, signal %d, exit code %d\n",
                r->scenario->name, r->transport, tt_resource_name(r->what), (long long)atomic_load(&shared->n),
                r->on ? " and later ones" : "", r->victim, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                WIFEXITED(status) ? WEXITSTATUS(status) : 0);
    return atomic_load(&shared->over);
}

static void play_row(const row *r, const options *o, const char *dir, page *sum)
{
    int64_t first = 0;
    int     ends = 0;

    memset(shared, 0, sizeof *shared);
    while (!play_from(r, o, dir, first)) {
        atomic_fetch_add(&shared->bad, 1);
        first = atomic_load(&shared->n) + step_of(o, atomic_load(&shared->calls));
        if (o->n > 0 || ++ends == 3 || first > atomic_load(&shared->calls))
            break;
    }
    sum->calls += shared->calls;
    sum->tried += shared->tried;
    sum->hit += shared->hit;
    sum->bad += shared->bad;
}

/* All rows of a scenario; of a short run every other one, by turns. */
static void play_scenario(const tt_scenario *s, const options *o, const char *dir, page *sum)
{
    const int transports = s->ranks == 1 ? 1 : 2, victims = s->ranks == 1 ? 1 : 2;
    page      mine = { 0 };
    int       t, what, victim, on, i = o->turn;

    for (what = 0; what < TT_RESOURCES; what++)
        for (t = 0; t < transports; t++)
            for (victim = 0; victim < victims; victim++)
                for (on = 0; on < 2; on++)
                    if ((o->all || o->n > 0 || i++ % 5 == 0) && (o->end_ns == 0 || tti_now_ns() < o->end_ns))
                        play_row(&(row){ s, t == 0 ? "auto" : "tcp", (tt_resource)what, victim, on != 0 }, o, dir, &mine);
    printf("%-16s %6lld calls, %6lld failures, %6lld met, %lld bad\n", s->name, (long long)mine.calls,
           (long long)mine.tried, (long long)mine.hit, (long long)mine.bad);
    sum->calls += mine.calls;
    sum->tried += mine.tried;
    sum->hit += mine.hit;
    sum->bad += mine.bad;
}

static bool read_options(int argc, char **argv, options *o)
{
    int i;

    *o = (options){ .turn = (int)(tti_now_ns() / TTI_SECOND % 1000) };
    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--all") == 0)
            o->all = true;
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            o->only = argv[++i];
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            o->end_ns = tti_now_ns() + strtoll(argv[++i], NULL, 10) * TTI_SECOND;
        else if (strcmp(argv[i], "--n") == 0 && i + 1 < argc)
            o->n = strtoll(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--turn") == 0 && i + 1 < argc)
            o->turn = (int)strtol(argv[++i], NULL, 10);
        else
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    char               dir[160];
    page               sum = { 0 };
    options            o;
    sigset_t           chld;
    int                n, i;
    const tt_scenario *all = tt_scenarios(&n);

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!read_options(argc, argv, &o)) {
        fprintf(stderr, "nth_test [--all] [--turn N] [--only SCENARIO] [--n N] [--seconds N]\n");
        return 2;
    }
    tt_env_clear();
    setenv("TUTTI_LOG", "error", 0);
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    sigprocmask(SIG_BLOCK, &chld, NULL);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || !tt_dir_make(dir, sizeof dir))
        return 1;
    for (i = 0; i < n; i++)
        if (o.only == NULL || strcmp(o.only, all[i].name) == 0)
            play_scenario(&all[i], &o, dir, &sum);
    printf("%-16s %6lld calls, %6lld failures, %6lld met, %lld bad (turn %d)\n", "all", (long long)sum.calls,
           (long long)sum.tried, (long long)sum.hit, (long long)sum.bad, o.turn);
    tt_dir_remove(dir);
    return sum.bad > 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nth_test.c
 * Goal    the n-th call for memory, to the port or to the system fails, in every family of public calls: no crash, no
 *         leak, no hang; a call says TUTTI_OK and has done its work, or fails with words; a world can be ended then.
 * Method  ranks are threads of a process that is forked for each row of calls; one of them, the victim, meets the
 *         failure: at the n-th such call only, or at it and all later ones. After each n blocks, mappings, descriptors
 *         and threads must be as many as before. A process that crashes or makes no progress is a finding, and the
 *         next one goes on behind it.
 *         By itself the program takes some n of each row; with --all, every n, in hours; with --every N each N-th one,
 *         of which --turn says the first, so that N turns are all. --family NAME takes the scenarios of one file, --only NAME
 *         one of them, --n N one n of it. With --timeout MS time-outs are that long at first, with --seconds N no row begins
 *         later.
 * Waits   time-outs of the scenarios are short, as a failure on one rank is often a time-out on the others. Where one passes
 *         though nothing has failed the machine is slow: that n is played again with twice the time, and so are those
 *         behind it. Only what still runs out of time at the longest is a finding. */
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

enum { WARM = 2, FEW = 3, SETTLE_MS = 3000, WORDS = 500, ENDS = TT_SCENARIO_RANKS };
enum { TIMEOUT_MS_MIN = 500, TIMEOUT_MS_MAX = 16000 };
/* Of a single play: time-outs behind each other, and what a machine that has other work adds to them. */
enum { STUCK_TIMEOUTS = 6, STUCK_MS = 30000 };

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
    _Atomic int64_t plays;  /* of all n, again and again */
    _Atomic int64_t timeout_ms;
    _Atomic int64_t calls;  /* that the row has when nothing fails */
    _Atomic int64_t tried, hit, bad;
    _Atomic bool    over;
} page;

typedef struct options {
    int64_t     every; /* of all rows every so many-th n; 0: some n of some rows */
    const char *only;
    const char *family;
    int64_t     n;
    int64_t     timeout_ms; /* that scenarios begin with */
    int64_t     end_ns; /* rows that would begin later are left out; 0: none */
    int         turn; /* other n of those that are not all */
} options;

typedef struct world {
    const row   *row;
    tutti_store *store;
    tt_actor     actors[ENDS];
    int64_t      n;
    int          variant;
    const char  *dir;
    pthread_barrier_t ready;
} world;

typedef struct thread_arg {
    world *w;
    int    rank;
} thread_arg;

static page *shared;
static int   port; /* nobody else's, for worlds that meet there */

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

/* Each play has a file of its own, as a world that could not be made may leave it. */
static void file_of(const world *w, char *path, size_t bytes)
{
    snprintf(path, bytes, "%s/world%lld", w->dir, (long long)atomic_load(&shared->plays));
}

static tutti_status make_world(const world *w, tt_actor *a)
{
    const tt_scenario *s = w->row->scenario;
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    char               file[200], url[256];

    file_of(w, file, sizeof file);
    if (s->found == TT_BY_FILE)
        snprintf(url, sizeof url, "file://%s", file);
    else
        snprintf(url, sizeof url, "tcp://127.0.0.1:%d", port);
    if (s->found == TT_BY_STORE)
        opts.store = a->store;
    else
        opts.init_method = url;
    opts.rank = a->rank;
    opts.world_size = s->ranks - s->late;
    opts.timeout_ms = a->timeout_ms;
    return tutti_create_process_group(&opts, &a->group);
}

static bool has_world(const tt_scenario *s, int rank)
{
    return s->ranks > 1 && !s->own && rank < s->ranks - s->late;
}

static void play(world *w, tt_actor *a)
{
    const tt_scenario *s = w->row->scenario;
    int64_t            calls = 0;
    bool               there = true;

    if (s->when == TT_IN_ALL)
        arm(w, a->rank);
    if (has_world(s, a->rank))
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

static void begin_actor(world *w, int rank)
{
    tt_actor *a = &w->actors[rank];

    memset(a, 0, sizeof *a);
    a->rank = rank;
    a->size = w->row->scenario->ranks;
    a->store = w->store;
    a->dir = w->dir;
    a->port = port;
    a->timeout_ms = atomic_load(&shared->timeout_ms);
    a->meeting = &w->ready;
    a->all = w->actors;
}

/* All ranks once, with that n; 0: nothing fails. */
static void play_all(world *w)
{
    const int  ranks = w->row->scenario->ranks;
    pthread_t  ids[ENDS];
    thread_arg args[ENDS];
    char       file[200];
    int        r;

    atomic_fetch_add(&shared->plays, 1);
    if (tutti_hash_store_open(&w->store) != TUTTI_OK)
        abort();
    pthread_barrier_init(&w->ready, NULL, (unsigned)ranks);
    for (r = 0; r < ranks; r++)
        begin_actor(w, r);
    for (r = 0; r < ranks; r++) {
        args[r] = (thread_arg){ w, r };
        if (pthread_create(&ids[r], NULL, rank_main, &args[r]) != 0)
            abort();
    }
    for (r = 0; r < ranks; r++)
        pthread_join(ids[r], NULL);
    pthread_barrier_destroy(&w->ready);
    tutti_store_close(w->store);
    file_of(w, file, sizeof file);
    remove(file);
}

/* Whether a time-out has passed though nothing has failed; from then on they are longer. Who meets one leaves, so that it is a
 * lost peer for another rank. */
static bool was_too_slow(const world *w)
{
    const int64_t ms = atomic_load(&shared->timeout_ms);
    bool          late = false;
    int           r;

    for (r = 0; r < w->row->scenario->ranks; r++)
        late = late || (w->actors[r].failed && (w->actors[r].st == TUTTI_E_TIMEOUT || w->actors[r].st == TUTTI_E_PEER));
    if (!late || tt_has_failed() || ms >= TIMEOUT_MS_MAX)
        return false;
    atomic_store(&shared->timeout_ms, 2 * ms);
    printf("%s: %lld ms are too short here, %lld from now on\n", w->row->scenario->name, (long long)ms, (long long)(2 * ms));
    return true;
}

/* ---- what is left ---- */

static bool as_before(const tt_held *now, const tt_held *before)
{
    return now->blocks <= before->blocks && now->maps <= before->maps && now->descriptors <= before->descriptors &&
           now->threads <= before->threads;
}

/* A thread that was joined may be seen until it gets a core once more. */
static tt_held settled(const tt_held *before)
{
    const int64_t end_ns = tti_now_ns() + SETTLE_MS * TTI_MS;
    tt_held       now = tt_holds();

    while (!as_before(&now, before) && tti_now_ns() < end_ns) {
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
            fprintf(stderr, "    rank %d: %.*s: %s: %s\n", i, (int)strcspn(w->actors[i].call, "("), w->actors[i].call,
                    tutti_status_name(w->actors[i].st), w->actors[i].words);
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

/* With that n, and judged. */
static void play_one(world *w, int64_t n, bool warm)
{
    static const tt_held any = { INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX };
    uint64_t             mark;
    tt_held              before;

    w->n = n;
    w->variant = (int)(n * 7);
    atomic_store(&shared->n, n);
    do {
        mark = tt_block_mark();
        before = warm ? any : tt_holds();
        play_all(w);
    } while (was_too_slow(w));
    judge(w, &before, mark);
    if (warm)
        return;
    atomic_fetch_add(&shared->tried, 1);
    if (tt_has_failed())
        atomic_fetch_add(&shared->hit, 1);
}

static int64_t step_of(const options *o, int64_t calls)
{
    return o->every > 0 ? o->every : calls <= FEW ? 1 : calls / FEW;
}

static _Noreturn void row_main(const row *r, const options *o, const char *dir, int64_t first)
{
    static world w; /* it has room for all that ranks give and get */
    int64_t      calls, step, n;
    int          i;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("TUTTI_TRANSPORT", r->transport, 1);
    w.row = r;
    w.dir = dir;
    for (i = 0; i < WARM; i++)
        play_one(&w, 0, true);
    calls = atomic_load(&shared->calls);
    step = step_of(o, calls);
    if (o->n > 0)
        play_one(&w, o->n, false);
    else
        for (n = first > 0 ? first : 1 + o->turn % step; n <= calls; n += step)
            play_one(&w, n, false);
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
    int64_t               since = tti_now_ns(), plays = -1;

    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    while (waitpid(pid, status_out, WNOHANG) == 0) {
        if (atomic_load(&shared->plays) != plays) {
            plays = atomic_load(&shared->plays);
            since = tti_now_ns();
        }
        if (tti_now_ns() - since > (STUCK_MS + STUCK_TIMEOUTS * atomic_load(&shared->timeout_ms)) * TTI_MS)
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
    atomic_store(&shared->timeout_ms, o->timeout_ms);
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

static void add(page *sum, const page *more)
{
    sum->calls += more->calls;
    sum->tried += more->tried;
    sum->hit += more->hit;
    sum->bad += more->bad;
}

static void print_sum(const char *name, const page *p, const char *more)
{
    printf("%-20s %6lld calls, %6lld failures, %6lld met, %lld bad%s\n", name, (long long)p->calls, (long long)p->tried,
           (long long)p->hit, (long long)p->bad, more);
}

/* Ranks that fail: of two kinds, all where ranks differ more than that. */
static int victims_of(const tt_scenario *s)
{
    return s->ranks == 1 ? 1 : s->late > 0 ? s->ranks : 2;
}

/* All rows of a scenario; of a short run every seventh, by turns. */
static void play_scenario(const tt_scenario *s, const options *o, const char *dir, page *sum)
{
    const int transports = s->ranks == 1 ? 1 : 2;
    page      mine = { 0 };
    int       t, what, victim, on, i = o->turn;

    for (what = 0; what < TT_RESOURCES; what++)
        for (t = 0; t < transports; t++)
            for (victim = 0; victim < victims_of(s); victim++)
                for (on = 0; on < 2; on++)
                    if ((o->every > 0 || o->n > 0 || i++ % 7 == 0) && (o->end_ns == 0 || tti_now_ns() < o->end_ns))
                        play_row(&(row){ s, t == 0 ? "auto" : "tcp", (tt_resource)what, victim, on != 0 }, o, dir, &mine);
    print_sum(s->name, &mine, "");
    add(sum, &mine);
}

static void play_family(const tt_family *family, const options *o, const char *dir, page *sum)
{
    page mine = { 0 };
    char words[80];
    int  i;

    snprintf(words, sizeof words, " (%s, turn %d)", family->name, o->turn);
    for (i = 0; i < family->n; i++)
        if (o->only == NULL || strcmp(o->only, family->at[i].name) == 0)
            play_scenario(&family->at[i], o, dir, &mine);
    if (o->only == NULL)
        print_sum("all", &mine, words);
    add(sum, &mine);
}

static bool read_options(int argc, char **argv, options *o)
{
    int i;

    *o = (options){ .turn = (int)(tti_now_ns() / TTI_SECOND % 1000), .timeout_ms = TIMEOUT_MS_MIN };
    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--all") == 0)
            o->every = 1;
        else if (strcmp(argv[i], "--every") == 0 && i + 1 < argc)
            o->every = strtoll(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            o->only = argv[++i];
        else if (strcmp(argv[i], "--family") == 0 && i + 1 < argc)
            o->family = argv[++i];
        else if (strcmp(argv[i], "--timeout") == 0 && i + 1 < argc)
            o->timeout_ms = strtoll(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            o->end_ns = tti_now_ns() + strtoll(argv[++i], NULL, 10) * TTI_SECOND;
        else if (strcmp(argv[i], "--n") == 0 && i + 1 < argc)
            o->n = strtoll(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--turn") == 0 && i + 1 < argc)
            o->turn = (int)strtol(argv[++i], NULL, 10);
        else
            return false;
    }
    return o->timeout_ms > 0;
}

/* What a scenario finds: no variables of a job, a port, quiet logs. */
static bool prepare(char *dir, size_t bytes, int *lock_out)
{
    sigset_t chld;

    tt_env_clear();
    setenv("TUTTI_LOG", "error", 0);
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    sigprocmask(SIG_BLOCK, &chld, NULL);
    port = tt_port_take(lock_out);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return port != 0 && shared != MAP_FAILED && tt_dir_make(dir, bytes);
}

int main(int argc, char **argv)
{
    char             dir[160];
    page             sum = { 0 };
    options          o;
    int              n, i, lock;
    const tt_family *all = tt_families(&n);

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!read_options(argc, argv, &o)) {
        fprintf(stderr, "nth_test [--all | --every N] [--turn N] [--family NAME] [--only SCENARIO] [--n N] [--timeout MS] [--seconds N]\n");
        return 2;
    }
    if (!prepare(dir, sizeof dir, &lock))
        return 1;
    for (i = 0; i < n; i++)
        if (o.family == NULL || strcmp(o.family, all[i].name) == 0)
            play_family(&all[i], &o, dir, &sum);
    tt_dir_remove(dir);
    tt_port_give_back(lock);
    if (sum.tried == 0)
        fprintf(stderr, "nothing was played: there is no such family or scenario, or no time\n");
    return sum.bad > 0 || sum.tried == 0;
}

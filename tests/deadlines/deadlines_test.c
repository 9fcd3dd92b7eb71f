/* SPDX-License-Identifier: BSD-3-Clause
 *
 * deadlines_test.c
 * Goal    every public function that waits comes back within its deadline and 100 ms when a peer takes no part, as it
 *         is elsewhere or its process is stopped; with TUTTI_E_TIMEOUT or TUTTI_E_PEER, and words that name the peer.
 * Method  two ranks: the caller calls, one after the other, all cases (deadlines.h), each on a group, world or store of
 *         its own, made before; the other one is the peer, which sleeps on a futex, or is stopped by SIGSTOP. The time-out
 *         of each is 100 ms from when the peer has stalled.
 * Late    The bound is one of the library, not of a machine that gives its cores to others: a case that misses it is done
 *         again, up to PASSES times, and has failed if it never keeps it. A late function is late each time. What a late case
 *         says is looked at when it is in time: who had no core until its time was up could ask nobody who is missing.
 * Shown   One line for each case that is late or wrong, and with TT_DEADLINES_ALL for all: how late it came, beyond its
 *         deadline, and with what. TT_DEADLINES_ONLY is the function of a single case. */
#include "deadlines.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PASSES = 6, CASES_MAX = 512, LARGE = 16 << 20, NAME_MAX_BYTES = 32 };
/* Marks: which cases are to be done in a pass, then who is where. */
enum { WANTED, GO = CASES_MAX / 32, READY, NEXT, PEER_PID, STORE_PORT };

_Static_assert((int)STORE_PORT < (int)TT_MARKS, "all of them fit");

typedef struct plan {
    tt_ctx  *t;
    int      caller;
    bool     stops;
    int      pass;
    int      n_cells, n_late, n_wrong;
    int64_t  worst_ms;
    tt_cell *cells; /* of the pass */
    tutti_store_server *server; /* of the peer */
} plan;

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

static int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- what cases share ---- */

tutti_span tt_large(void)
{
    static float *large;

    if (large == NULL)
        large = calloc(1, LARGE);
    return TUTTI_SPAN(large, large != NULL ? LARGE / (int64_t)sizeof *large : 0);
}

tutti_status tt_wait(tutti_status st, tutti_work *work)
{
    if (st == TUTTI_OK)
        st = tutti_work_wait(work);
    tutti_work_free(work);
    return st;
}

/* ---- which cases ---- */

static bool is_wanted(const plan *p, int i)
{
    return (atomic_load(&p->t->marks[WANTED + i / 32]) >> i % 32 & 1) != 0;
}

static void set_wanted(const plan *p, int i, bool wanted)
{
    if (wanted)
        atomic_fetch_or(&p->t->marks[WANTED + i / 32], UINT32_C(1) << i % 32);
    else
        atomic_fetch_and(&p->t->marks[WANTED + i / 32], ~(UINT32_C(1) << i % 32));
}

static bool any_wanted(const plan *p)
{
    int i;

    for (i = 0; i < tt_n_cases && !is_wanted(p, i); i++)
        continue;
    return i < tt_n_cases;
}

/* Stores are served where both ranks can reach them by loopback. */
static bool is_possible(const plan *p, const tt_case *what)
{
    if (what->on == TT_ON_STORE && (strcmp(p->t->addr, "127.0.0.1") != 0 || strcmp(p->t->transport, "shm") != 0))
        return false;
    return !what->needs_stop || p->stops;
}

static bool is_asked_for(const tt_case *what)
{
    const char *only = getenv("TT_DEADLINES_ONLY");

    return only == NULL || strcmp(only, what->function) == 0;
}

/* ---- before the peer stalls: both ranks ---- */

static void fill(tt_cell *c)
{
    c->parts_x[0] = TUTTI_SPAN(c->x, 4);
    c->parts_x[1] = TUTTI_SPAN(c->x + 4, 4);
    c->parts_y[0] = TUTTI_SPAN(c->y, 4);
    c->parts_y[1] = TUTTI_SPAN(c->y + 4, 4);
    c->whole_x = TUTTI_SPAN(c->x, 8);
    c->whole_y = TUTTI_SPAN(c->y, 8);
    c->counts[0] = c->counts[1] = 4;
}

static void make_world(const plan *p, tt_cell *c)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    char               name[NAME_MAX_BYTES];

    snprintf(name, sizeof name, "cell%d-%d", c->number, p->pass);
    opts.init_method = p->t->init_method;
    opts.group_name = name;
    opts.timeout_ms = p->t->limit_ms / 4;
    OK(tutti_create_process_group(&opts, &c->group));
}

static void make_store(const plan *p, tt_cell *c)
{
    tutti_tcp_store_options opts = TUTTI_TCP_STORE_OPTIONS;

    if (p->t->rank != p->caller)
        return;
    opts.host = "127.0.0.1";
    opts.port = (int)atomic_load(&p->t->marks[STORE_PORT]);
    OK(tutti_tcp_store_open(&opts, &c->store));
}

static void make_cell(const plan *p, int i)
{
    const tt_case *what = tt_cases[i];
    tt_cell       *c = &p->cells[i];

    *c = (tt_cell){ .t = p->t, .me = p->caller, .peer = 1 - p->caller, .number = i, .pass = p->pass };
    fill(c);
    if (what->on == TT_ON_GROUP)
        OK(tutti_new_group(NULL, 0, NULL, &c->group));
    else if (what->on == TT_ON_WORLD)
        make_world(p, c);
    else if (what->on == TT_ON_STORE)
        make_store(p, c);
    tutti_use_group(what->on == TT_ON_WORLD ? c->group : p->t->group);
    if (what->prepare != NULL)
        OK(what->prepare(c));
    tutti_use_group(p->t->group);
}

static void make_cells(const plan *p)
{
    int i;

    for (i = 0; i < tt_n_cases; i++)
        if (is_wanted(p, i))
            make_cell(p, i);
}

static void drop_cell(const plan *p, int i)
{
    tt_cell *c = &p->cells[i];

    tutti_store_close(c->store);
    if (tt_cases[i]->on == TT_ON_WORLD)
        OK(tutti_destroy_process_group(c->group));
}

static void drop_cells(const plan *p)
{
    int i;

    for (i = 0; i < tt_n_cases; i++)
        if (p->cells[i].t != NULL)
            drop_cell(p, i);
    memset(p->cells, 0, (size_t)tt_n_cases * sizeof *p->cells);
}

/* ---- the peer ---- */

static void serve(plan *p)
{
    tutti_store_server_options opts = TUTTI_STORE_SERVER_OPTIONS;

    OK(tutti_store_server_start(&opts, &p->server));
    atomic_store(&p->t->marks[STORE_PORT], (uint32_t)tutti_store_server_port(p->server));
}

static void play_peer(plan *p)
{
    const uint32_t turn = (uint32_t)p->pass + 1;

    tt_await(p->t, GO, turn);
    if (!any_wanted(p))
        return;
    make_cells(p);
    tt_post(p->t, READY);
    tt_await(p->t, NEXT, turn);
    drop_cells(p);
}

/* ---- the caller ---- */

static bool has_state(pid_t pid, char state)
{
    char  path[64], line[512] = "";
    FILE *file;
    char *at;

    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    at = fgets(line, sizeof line, file) != NULL ? strrchr(line, ')') : NULL;
    fclose(file);
    return at != NULL && at[1] == ' ' && at[2] == state;
}

static void stop_peer(const plan *p)
{
    const pid_t pid = (pid_t)atomic_load(&p->t->marks[PEER_PID]);

    assert_int_equal(kill(pid, SIGSTOP), 0);
    while (!has_state(pid, 'T'))
        sched_yield();
}

static void go_on_peer(const plan *p)
{
    kill((pid_t)atomic_load(&p->t->marks[PEER_PID]), SIGCONT);
}

/* Whether the words have the number of the peer in a list of ranks: "rank 1", "ranks 0, 1". */
static bool names(const char *words, int peer)
{
    const char *at = words;
    char       *end;

    while ((at = strstr(at, "rank")) != NULL) {
        at += 4;
        at += *at == 's';
        while (*at == ' ' || *at == ',') {
            const long n = strtol(at + 1, &end, 10);

            if (end == at + 1)
                break;
            if (n == peer)
                return true;
            at = end;
        }
    }
    return false;
}

/* A store's client knows where the store is, and not which rank serves it. */
static bool names_store(const plan *p, const char *words)
{
    return p->stops && p->caller != 0 && strstr(words, "store ") != NULL && strstr(words, p->t->addr) != NULL;
}

static const char *fault_of(const plan *p, const tt_case *what, tutti_status st)
{
    if (st == TUTTI_OK)
        return what->may_end ? NULL : "it ended well, without the peer";
    if (st != TUTTI_E_TIMEOUT && st != TUTTI_E_PEER)
        return "it is no time-out";
    if (what->names_nobody || names_store(p, tutti_last_error()))
        return NULL;
    return names(tutti_last_error(), 1 - p->caller) ? NULL : "the peer is not named";
}

static void set_deadline(const plan *p, const tt_case *what, const tt_cell *c)
{
    (void)p;
    if (c->group != NULL)
        OK(tutti_set_timeout(c->group, TT_DEADLINE_MS));
    if (c->store != NULL)
        OK(tutti_store_set_timeout(c->store, TT_DEADLINE_MS));
    if (what->on == TT_ON_WORLD)
        tutti_use_group(c->group);
}

static void run_cell(plan *p, int i)
{
    const tt_case *what = tt_cases[i];
    const char    *fault;
    int64_t        begun, took_ms;
    tutti_status   st;

    set_deadline(p, what, &p->cells[i]);
    begun = now_us();
    st = what->call(&p->cells[i]);
    took_ms = (now_us() - begun) / 1000;
    fault = fault_of(p, what, st);
    tutti_use_group(p->t->group);
    p->n_cells++;
    if (fault != NULL || took_ms > TT_BOUND_MS || getenv("TT_DEADLINES_ALL") != NULL)
        printf("%-46s %4lld ms past its deadline, %s%s\n", what->function, (long long)(took_ms - TT_DEADLINE_MS),
               tutti_status_name(st), took_ms > TT_BOUND_MS ? "  LATE" : "");
    if (took_ms - TT_DEADLINE_MS > p->worst_ms && took_ms <= TT_BOUND_MS)
        p->worst_ms = took_ms - TT_DEADLINE_MS;
    set_wanted(p, i, took_ms > TT_BOUND_MS);
    p->n_late += took_ms > TT_BOUND_MS;
    p->n_wrong += fault != NULL && took_ms <= TT_BOUND_MS; /* else it is done again, or has failed as late */
    if (fault != NULL)
        printf("  %s: %.600s\n", fault, tutti_last_error());
}

static void play_caller(plan *p)
{
    int i;

    p->n_late = 0;
    tt_post(p->t, GO);
    if (!any_wanted(p))
        return;
    make_cells(p);
    tt_await(p->t, READY, (uint32_t)p->pass + 1);
    if (p->stops)
        stop_peer(p);
    for (i = 0; i < tt_n_cases; i++)
        if (is_wanted(p, i))
            run_cell(p, i);
    if (p->stops)
        go_on_peer(p);
    tt_post(p->t, NEXT);
    drop_cells(p);
}

/* ---- both ---- */

static void begin(plan *p)
{
    int i;

    p->cells = calloc((size_t)tt_n_cases, sizeof *p->cells);
    assert_non_null(p->cells);
    assert_true(tt_n_cases <= CASES_MAX);
    if (p->t->rank != p->caller) {
        atomic_store(&p->t->marks[PEER_PID], (uint32_t)getpid());
        serve(p);
    }
    OK(tutti_barrier(p->t->group));
    for (i = 0; i < tt_n_cases && p->t->rank == p->caller; i++)
        set_wanted(p, i, is_possible(p, tt_cases[i]) && is_asked_for(tt_cases[i]));
}

/* A world that is not the process's, so that a case can make that one. */
static void join(tt_ctx *t)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    opts.init_method = t->init_method;
    opts.timeout_ms = t->limit_ms / 4;
    OK(tutti_create_process_group(&opts, &t->group));
    tutti_use_group(t->group);
}

static void leave(tt_ctx *t)
{
    tutti_use_group(NULL);
    OK(tutti_destroy_process_group(t->group));
}

static void run(tt_ctx *t, int caller, bool stops)
{
    plan p = { .t = t, .caller = caller, .stops = stops };

    join(t);
    begin(&p);
    for (p.pass = 0; p.pass < PASSES; p.pass++)
        if (t->rank == caller)
            play_caller(&p);
        else
            play_peer(&p);
    tutti_store_server_stop(p.server);
    free(p.cells);
    leave(t);
    if (t->rank != caller)
        return;
    printf("%d calls, the latest that was in time: %lld ms past its deadline\n", p.n_cells, (long long)p.worst_ms);
    if (p.n_late > 0 || p.n_wrong > 0)
        fail_msg("%d late in each of %d passes, %d with something else", p.n_late, PASSES, p.n_wrong);
}

static void an_absent_peer(tt_ctx *t)
{
    run(t, 0, false);
}

static void a_stopped_peer(tt_ctx *t)
{
    run(t, 0, true);
}

/* Rank 0 serves the store, where there are two hosts. */
static void an_absent_first_rank(tt_ctx *t)
{
    run(t, 1, false);
}

static void a_stopped_first_rank(tt_ctx *t)
{
    run(t, 1, true);
}

#define EVERYWHERE(body, ...) TT_TEST(body, .transports = "shm,tcp", __VA_ARGS__), TT_TEST(body, .hosts = 2, __VA_ARGS__)

int main(void)
{
    static const tt_test tests[] = {
        EVERYWHERE(an_absent_peer, .init = TT_INIT_NONE, .limit_ms = 120000, .waits = true),
        EVERYWHERE(a_stopped_peer, .init = TT_INIT_NONE, .limit_ms = 120000, .waits = true),
        TT_TEST(an_absent_first_rank, .hosts = 2, .init = TT_INIT_NONE, .limit_ms = 120000, .waits = true),
        TT_TEST(a_stopped_first_rank, .hosts = 2, .init = TT_INIT_NONE, .limit_ms = 120000, .waits = true),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ending_test.c
 * Goal    aborting and destroying groups and worlds returns within 100 ms, whatever is under way here, and whatever has
 *         become of the peer: it is in another call, stopped, dead, or behind a network that swallows all.
 * Method  rank 0 makes all the groups and worlds with rank 1 first, then rank 1 stalls, and rank 0 ends them one by
 *         one, each with something else under way. The clock runs around the one call.
 * Late    The bound is the library's, not that of a machine that gives its cores to others: what misses it is done again
 *         with another group, up to TRIES times. What waits for a peer is late each time. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

enum { TRIES = 3, BOUND_MS = 100, TURNS = 8, LARGE = 8 << 20, PEER = 1 };
enum { READY, OVER, PEER_PID, BEGUN };

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

/* What it comes to is nothing to this test: the peer may be dead. */
#define BEGIN(call) ((void)(call))

static int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- what is under way --------------------------------------------------------------------------------- */

enum { WORKS = 4 };

typedef struct load {
    tutti_group *group;
    float        x[8];
    float       *large;
    tutti_work  *works[WORKS];
    pthread_t    thread;
    bool         has_thread;
    _Atomic int  called; /* callbacks and hooks */
    bool         aborts; /* else it is destroyed */
    bool         is_world;
} load;

static void nothing(load *l)
{
    (void)l;
}

static void collectives(load *l)
{
    int i;

    for (i = 0; i < WORKS; i++)
        BEGIN(tutti_all_reduce_async(TUTTI_SPAN(&l->x[i], 1), TUTTI_SUM, l->group, &l->works[i]));
}

static void a_large_collective(load *l)
{
    BEGIN(tutti_all_reduce_async(TUTTI_SPAN(l->large, LARGE / 4), TUTTI_SUM, l->group, &l->works[0]));
}

static void messages(load *l)
{
    BEGIN(tutti_irecv(TUTTI_SPAN(&l->x[0], 1), PEER, 0, l->group, &l->works[0]));
    BEGIN(tutti_irecv(TUTTI_SPAN(&l->x[1], 1), TUTTI_ANY_SOURCE, 1, l->group, &l->works[1]));
    BEGIN(tutti_isend(TUTTI_SPAN(l->large, LARGE / 4), PEER, 2, l->group, &l->works[2]));
}

static void count_work(tutti_work *work, void *ctx)
{
    (void)work;
    atomic_fetch_add(&((load *)ctx)->called, 1);
}

static void count_event(const tutti_op_event *event, void *ctx)
{
    (void)event;
    atomic_fetch_add(&((load *)ctx)->called, 1);
}

/* A callback that is itself inside of a call on the group: of a world, which is there until it has run. */
static void wait_for_more(tutti_work *work, void *ctx)
{
    load *l = ctx;

    (void)work;
    (void)tutti_recv(TUTTI_SPAN(&l->x[7], 1), PEER, 9, l->group, NULL);
}

static void callbacks_and_hooks(load *l)
{
    int id, i;

    OK(tutti_register_hook(l->group, TUTTI_HOOK_ABORT, count_event, l, &id));
    collectives(l);
    for (i = 0; i < WORKS; i++)
        if (l->works[i] != NULL)
            OK(tutti_work_then(l->works[i], count_work, l));
        else
            atomic_fetch_add(&l->called, 1);
    tutti_work_free(l->works[0]);
    l->works[0] = NULL;
    BEGIN(tutti_irecv(TUTTI_SPAN(&l->x[5], 1), PEER, 3, l->group, &l->works[0]));
    if (l->works[0] != NULL && l->is_world)
        OK(tutti_work_then(l->works[0], wait_for_more, l));
}

static void *sum(void *ctx)
{
    load *l = ctx;

    (void)tutti_all_reduce(TUTTI_SPAN(l->large, LARGE / 4), TUTTI_SUM, l->group);
    return NULL;
}

/* A call that others are inside of may be aborted, not destroyed. */
static void a_thread_inside(load *l)
{
    if (!l->aborts)
        return;
    assert_int_equal(pthread_create(&l->thread, NULL, sum, l), 0);
    l->has_thread = true;
}

static const struct kind {
    const char *name;
    void (*begin)(load *l);
    bool lazy; /* the group was made by its members alone: the first collective looks for the others */
} kinds[] = {
    { "nothing", nothing, false },
    { "collectives", collectives, false },
    { "a large collective", a_large_collective, false },
    { "messages", messages, false },
    { "callbacks and hooks", callbacks_and_hooks, false },
    { "a thread inside", a_thread_inside, false },
    { "the first collective of a group", collectives, true },
};

enum { KINDS = sizeof kinds / sizeof kinds[0], ENDS = 3, ABORTED = 0, DESTROYED = 1, WORLD_DESTROYED = 2 };

static const char *const end_names[ENDS] = { "abort", "destroy", "destroy the world" };

/* ---- ending it ------------------------------------------------------------------------------------------ */

typedef struct stage {
    tt_ctx      *t;
    tutti_group *groups[ENDS][KINDS][TRIES];
    float       *large;
} stage;

static tutti_group *make_world(const stage *s, int kind, int try)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_group       *world = NULL;
    char               name[32];

    snprintf(name, sizeof name, "end%d-%d", kind, try);
    opts.init_method = s->t->init_method;
    opts.group_name = name;
    opts.timeout_ms = s->t->limit_ms / 2;
    OK(tutti_create_process_group(&opts, &world));
    return world;
}

static tutti_group *make_group(const stage *s, int end, int kind, int try)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;

    if (end == WORLD_DESTROYED)
        return make_world(s, kind, try);
    opts.use_local_synchronization = kinds[kind].lazy;
    OK(tutti_new_group(NULL, 0, &opts, &group));
    return group;
}

static void make_all(stage *s)
{
    int end, kind, try;

    for (end = 0; end < ENDS; end++)
        for (kind = 0; kind < KINDS; kind++)
            for (try = 0; try < TRIES; try++)
                if (end != WORLD_DESTROYED || !kinds[kind].lazy)
                    s->groups[end][kind][try] = make_group(s, end, kind, try);
}

/* Whether a thread is inside of a call cannot be seen: it has the time to be. */
static void let_it_begin(void)
{
    const struct timespec moment = { .tv_nsec = 20 * 1000 * 1000 };

    nanosleep(&moment, NULL);
}

static void clear(load *l)
{
    int i;

    if (l->has_thread)
        pthread_join(l->thread, NULL);
    for (i = 0; i < WORKS; i++)
        tutti_work_free(l->works[i]);
}

/* How long the end of a group took, in ms. */
static int64_t end_one(const stage *s, int end, int kind, int try)
{
    load    *l = tt_alloc(s->t, sizeof *l); /* it may be lent for longer than this lasts */
    int64_t  begun, took;

    *l = (load){ .group = s->groups[end][kind][try], .large = s->large, .aborts = end == ABORTED,
                   .is_world = end == WORLD_DESTROYED };
    kinds[kind].begin(l);
    if (l->has_thread || kinds[kind].lazy)
        let_it_begin();
    begun = now_us();
    if (end == ABORTED) {
        OK(tutti_abort_process_group(l->group));
        if (l->has_thread)
            pthread_join(l->thread, NULL); /* it comes out at once, too */
        l->has_thread = false;
    } else {
        OK(tutti_destroy_process_group(l->group));
    }
    took = now_us() - begun;
    if (end == ABORTED)
        OK(tutti_destroy_process_group(l->group));
    if (kinds[kind].begin == callbacks_and_hooks && end == WORLD_DESTROYED)
        assert_true(atomic_load(&l->called) >= WORKS); /* the end of each was told */
    clear(l);
    return took / 1000;
}

static void *do_nothing(void *arg)
{
    return arg;
}

/* How long it takes here, just now, until another thread has a core, and then this one again. */
static int64_t turn_ms(void)
{
    const int64_t begun = now_us();
    pthread_t     thread;

    assert_int_equal(pthread_create(&thread, NULL, do_nothing, NULL), 0);
    pthread_join(thread, NULL);
    return (now_us() - begun) / 1000;
}

/* The bound is one of the library's, not of a machine that has no core for it: an end takes a few turns of threads. */
static int64_t bound_ms(int64_t turn_before_ms)
{
    const int64_t turn_after_ms = turn_ms();

    return BOUND_MS + TURNS * (turn_after_ms > turn_before_ms ? turn_after_ms : turn_before_ms);
}

static void end_all(const stage *s)
{
    int64_t took = 0, turn;
    int     end, kind, try, n_late = 0;

    for (end = 0; end < ENDS; end++)
        for (kind = 0; kind < KINDS; kind++) {
            if (s->groups[end][kind][0] == NULL)
                continue;
            for (try = 0; try < TRIES; try++) {
                turn = turn_ms();
                took = end_one(s, end, kind, try);
                if (took <= bound_ms(turn))
                    break;
                printf("%s, %s: %lld ms\n", end_names[end], kinds[kind].name, (long long)took);
            }
            printf("%-18s with %-32s %4lld ms%s\n", end_names[end], kinds[kind].name, (long long)took,
                   try == TRIES ? "  LATE" : "");
            n_late += try == TRIES;
        }
    if (n_late > 0)
        fail_msg("%d ends are late in each of %d tries", n_late, TRIES);
}

/* ---- what becomes of the peer --------------------------------------------------------------------------- */

typedef enum fate { ELSEWHERE, STOPPED, DEAD, SWALLOWED } fate;

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

static void stop(tt_ctx *t)
{
    const pid_t pid = (pid_t)atomic_load(&t->marks[PEER_PID]);

    assert_int_equal(kill(pid, SIGSTOP), 0);
    while (!has_state(pid, 'T'))
        sched_yield();
}

static void be_the_peer(tt_ctx *t, fate what)
{
    char command[128];

    atomic_store(&t->marks[PEER_PID], (uint32_t)getpid());
    if (what == SWALLOWED) { /* nothing that this host sends arrives any more, and nobody is told */
        snprintf(command, sizeof command, "ip route replace blackhole %s/32", t->addr);
        assert_int_equal(system(command), 0);
    }
    tt_post(t, READY);
    if (what == DEAD)
        tt_die();
    tt_await(t, OVER, 1);
}

static void run(tt_ctx *t, fate what)
{
    stage *s = tt_alloc(t, sizeof *s);
    float  x = 1.0f;

    s->t = t;
    s->large = tt_floats(t, LARGE / sizeof *s->large, 1.0f);
    make_all(s);
    OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, t->group));
    tt_post(t, BEGUN);
    tt_await(t, BEGUN, (uint32_t)t->size); /* nobody is in the sum any more */
    if (t->rank == PEER) {
        be_the_peer(t, what);
        return;
    }
    tt_await(t, READY, 1);
    if (what == STOPPED)
        stop(t);
    end_all(s);
    if (what == STOPPED)
        kill((pid_t)atomic_load(&t->marks[PEER_PID]), SIGCONT);
    tt_post(t, OVER);
}

static void with_a_peer_elsewhere(tt_ctx *t)
{
    run(t, ELSEWHERE);
}

static void with_a_stopped_peer(tt_ctx *t)
{
    run(t, STOPPED);
}

static void with_a_dead_peer(tt_ctx *t)
{
    run(t, DEAD);
}

static void with_a_swallowed_peer(tt_ctx *t)
{
    run(t, SWALLOWED);
}

#define EVERYWHERE(body, ...) TT_TEST(body, .transports = "shm,tcp", __VA_ARGS__), TT_TEST(body, .hosts = 2, __VA_ARGS__)

int main(void)
{
    static const tt_test tests[] = {
        EVERYWHERE(with_a_peer_elsewhere, .limit_ms = 60000),
        EVERYWHERE(with_a_stopped_peer, .limit_ms = 60000),
        EVERYWHERE(with_a_dead_peer, .limit_ms = 60000, .dies = PEER),
        TT_TEST(with_a_swallowed_peer, .hosts = 2, .limit_ms = 60000),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}

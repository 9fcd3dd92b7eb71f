/* SPDX-License-Identifier: BSD-3-Clause
 *
 * connections_test.c
 * Goal    a connection between two ranks is made when the first message needs it, and only then; whoever is
 *         dead, stopped or elsewhere before there was a connection ends the wait of those who want one.
 * Method  real processes and threads over TCP, and two hosts with shared memory inside; connections are
 *         counted inside the library, at moments at which every message is known to have arrived. */
#include <arpa/inet.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "backend/native/native.h"
#include "group/group.h"
#include "gone.h"
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

/* Counters of the harness that ranks share. */
enum { BEGUN, ENDED, COUNTED, TOTAL, LATE, WAITED, DIED_AT };
enum { RANKS_MAX = 8, VICTIM = 2, LONG_MS = 100, SEEN_TO_LEAVE_MS = 3000 };
enum { ALONE_MS = 150 }; /* nobody who waits for somebody else ends his group for a death of which nobody has told him before */

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

_Noreturn static void die(tt_ctx *t)
{
    atomic_store(&t->marks[DIED_AT], (uint32_t)now_ms());
    tt_die();
}

/* How long this rank, which has waited since start_ms, has done so since the death: who is to die may get no core before. */
static int64_t ms_behind_death(const tt_ctx *t, int64_t start_ms)
{
    const int64_t now = now_ms(), since = (int64_t)((uint32_t)now - atomic_load(&t->marks[DIED_AT]));

    return since < now - start_ms ? since : now - start_ms;
}

static int connections(tt_ctx *t)
{
    tutti_group *group = NULL;

    OK(tti_group_resolve(t->group, "connections", &group));
    return tti_native_connections(group->backend);
}

/* Until all ranks are here; without a message. */
static void all_here(tt_ctx *t, int mark)
{
    tt_post(t, mark);
    tt_await(t, mark, (uint32_t)t->size);
}

/* Ranks of other hosts; over TCP only, all others. */
static int n_elsewhere(const tt_ctx *t)
{
    const bool one_host = strcmp(t->transport, "shm") == 0 || strcmp(t->transport, "threads") == 0;

    return one_host ? t->size / 2 : t->size - 1;
}

/* All are here, having called what they did at began_ms. Whoever has waited for longer than LONG_MS in it, because another
 * had no core, has asked everybody what it waits for, over connections of its own: then there may be more than what is
 * counted on, but no fewer. */
static void expect_connections(tt_ctx *t, int64_t began_ms, int n)
{
    if (now_ms() - began_ms >= LONG_MS)
        tt_post(t, LATE);
    all_here(t, ENDED);
    if (atomic_load(&t->marks[LATE]) == 0)
        assert_int_equal(connections(t), n);
    else
        assert_in_range(connections(t), n, n_elsewhere(t));
    all_here(t, COUNTED);
}

static void init_makes_none(tt_ctx *t)
{
    all_here(t, BEGUN);
    assert_int_equal(connections(t), 0);
    all_here(t, ENDED);
}

static void a_message_makes_one(tt_ctx *t)
{
    const int64_t began_ms = now_ms();
    float         x = (float)t->rank;

    if (t->rank == 0)
        OK(tutti_send(TUTTI_SPAN(&x, 1), t->size - 1, 0, t->group));
    if (t->rank == t->size - 1) {
        OK(tutti_recv(TUTTI_SPAN(&x, 1), 0, 0, t->group, NULL));
        assert_true(x == 0.0f);
    }
    expect_connections(t, began_ms, t->rank == 0 || t->rank == t->size - 1);
}

static void a_ring_makes_two_each(tt_ctx *t)
{
    const int     right = (t->rank + 1) % t->size, left = (t->rank + t->size - 1) % t->size;
    const int64_t began_ms = now_ms();
    float         out = (float)t->rank, in = -1.0f;
    tutti_work   *work = NULL;

    OK(tutti_isend(TUTTI_SPAN(&out, 1), right, 0, t->group, &work));
    OK(tutti_recv(TUTTI_SPAN(&in, 1), left, 0, t->group, NULL));
    OK(tutti_work_wait(work));
    tutti_work_free(work);
    assert_true(in == (float)left);
    expect_connections(t, began_ms, 2);
}

/* A tree of n ranks has n - 1 edges, and each has two ends. */
static void a_tree_makes_its_edges(tt_ctx *t)
{
    const int64_t began_ms = now_ms();
    float         x = t->rank == 0 ? 7.0f : 0.0f;
    uint32_t      edges;
    int           i, n;

    OK(tutti_broadcast(TUTTI_SPAN(&x, 1), 0, t->group));
    assert_true(x == 7.0f);
    if (now_ms() - began_ms >= LONG_MS)
        tt_post(t, LATE);
    all_here(t, ENDED);
    n = connections(t);
    for (i = 0; i < n; i++)
        tt_post(t, TOTAL);
    all_here(t, COUNTED);
    edges = atomic_load(&t->marks[TOTAL]) / 2;
    assert_true(atomic_load(&t->marks[LATE]) == 0 ? edges == (uint32_t)t->size - 1 : edges >= (uint32_t)t->size - 1);
}

/* Blocks that are longer than what carriers take for their hosts. */
static void all_to_all_makes_all(tt_ctx *t)
{
    enum { BLOCK = 4096 };
    int          half[RANKS_MAX], i;
    int         *out = malloc(sizeof *out * BLOCK * (size_t)t->size), *in = malloc(sizeof *in * BLOCK * (size_t)t->size);
    float        x = 1.0f;
    tutti_group *first = NULL;

    assert_true(out != NULL && in != NULL);
    for (i = 0; i < t->size * BLOCK; i++)
        out[i] = t->rank * 100 + i / BLOCK;
    OK(tutti_all_to_all_single(TUTTI_SPAN(in, t->size * BLOCK), TUTTI_SPAN(out, t->size * BLOCK), NULL, NULL, t->group));
    for (i = 0; i < t->size * BLOCK; i++)
        assert_int_equal(in[i], i / BLOCK * 100 + t->rank);
    free(out);
    free(in);
    assert_int_equal(connections(t), n_elsewhere(t));
    /* A group of some of them has the same connections. */
    for (i = 0; i < t->size - 1; i++)
        half[i] = i;
    OK(tutti_new_group(half, t->size - 1, NULL, &first));
    OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, first));
    all_here(t, ENDED);
    assert_int_equal(connections(t), n_elsewhere(t));
    all_here(t, COUNTED);
}

/* Every pair begins from both sides at the same moment. */
static void both_sides_begin_at_once(tt_ctx *t)
{
    int         out[RANKS_MAX], in[RANKS_MAX], peer, n = 0, i;
    tutti_work *works[2 * RANKS_MAX];

    all_here(t, BEGUN);
    for (peer = 0; peer < t->size; peer++) {
        if (peer == t->rank)
            continue;
        out[peer] = t->rank * 100 + peer;
        OK(tutti_isend(TUTTI_SPAN(&out[peer], 1), peer, 0, t->group, &works[n++]));
        OK(tutti_irecv(TUTTI_SPAN(&in[peer], 1), peer, 0, t->group, &works[n++]));
    }
    OK(tutti_wait_all(works, n, 0));
    for (i = 0; i < n; i++)
        tutti_work_free(works[i]);
    for (peer = 0; peer < t->size; peer++)
        assert_true(peer == t->rank || in[peer] == peer * 100 + t->rank);
    all_here(t, ENDED);
    assert_int_equal(connections(t), t->size - 1);
    all_here(t, COUNTED);
}

/* The last rank is in no call of the library, and takes the connection and the message all the same. */
static void who_computes_is_reached(tt_ctx *t)
{
    float   x = 3.0f;
    int64_t began_ms;

    if (t->rank == 0) {
        OK(tutti_send(TUTTI_SPAN(&x, 1), t->size - 1, 0, t->group));
        tt_post(t, ENDED);
    }
    tt_await(t, ENDED, 1);
    if (t->rank == t->size - 1) {
        began_ms = now_ms();
        OK(tutti_recv(TUTTI_SPAN(&x, 1), 0, 0, t->group, NULL));
        assert_in_range(connections(t), 1, now_ms() - began_ms < LONG_MS ? 1 : n_elsewhere(t)); /* as in expect_connections() */
    }
    all_here(t, COUNTED);
}

/* ---- failures -------------------------------------------------------------------------------------- */

static void expect_words(const char *part)
{
    if (strstr(tutti_last_error(), part) == NULL)
        fail_msg("'%s' is not in: %s", part, tutti_last_error());
}

/* A process that has ended has closed its sockets, also if nobody has waited for it yet. */
static bool has_ended(int pid)
{
    char  path[64], state = '?';
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    file = fopen(path, "r");
    if (file == NULL)
        return true;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = '?';
    fclose(file);
    return state == 'Z' || state == 'X';
}

/* The victim dies when all others know its process, and they go on when it has ended. */
static void await_death(tt_ctx *t)
{
    char  path[512];
    FILE *file;
    int   pid = 0;

    snprintf(path, sizeof path, "%s/victim", t->dir);
    if (t->rank == VICTIM) {
        file = fopen(path, "w");
        assert_non_null(file);
        fprintf(file, "%d\n", (int)getpid());
        fclose(file);
    }
    all_here(t, BEGUN);
    if (t->rank == VICTIM) {
        tt_await(t, COUNTED, (uint32_t)t->size - 1);
        tt_die();
    }
    file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    tt_post(t, COUNTED);
    while (!has_ended(pid))
        sched_yield(); /* the harness limits it */
}

/* Nobody has a connection to the victim when it dies. */
static void who_died_before_is_named(tt_ctx *t)
{
    float   x = 0.0f;
    int64_t start;

    await_death(t);
    start = now_ms();
    if (t->rank != 1)
        assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), VICTIM, 0, t->group, NULL), TUTTI_E_PEER);
    else
        assert_int_equal(tutti_send(TUTTI_SPAN(&x, 1), VICTIM, 0, t->group), TUTTI_E_PEER);
    assert_true(now_ms() - start < 1000);
    expect_words("rank 2");
}

/* Rank 1 is the only other one of its group, and dies. */
static void anybody_is_nobody(tt_ctx *t)
{
    float   x = 0.0f;
    int64_t start;

    all_here(t, BEGUN);
    if (t->rank == 1)
        die(t);
    start = now_ms();
    assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), TUTTI_ANY_SOURCE, 0, t->group, NULL), TUTTI_E_PEER);
    assert_true(ms_behind_death(t, start) < 1000);
    expect_words("rank 1");
}

/* What a box on the way does to the connections of this process, but those to the store: connecting to nowhere drops one with
 * a RST. As a bare system call: no thread of this process does it, as far as a thread sanitizer is concerned. */
static void reset_streams(const tt_ctx *t)
{
    const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
    int                   fd;

    for (fd = 3; fd < 1024; fd++) {
        struct sockaddr_in to;
        socklen_t          size = sizeof to;

        if (getpeername(fd, (struct sockaddr *)&to, &size) == 0 && to.sin_family == AF_INET && ntohs(to.sin_port) != t->port)
            (void)syscall(SYS_connect, fd, &nowhere, sizeof nowhere);
    }
}

/* Rank 1 lives, and what it had sent may be lost with its connection: nobody would send it again. Rank 2 could still send. */
static void who_was_cut_off_ends_a_wait_for_anybody(tt_ctx *t)
{
    float x = 0.0f;

    if (t->rank == 0)
        OK(tutti_recv(TUTTI_SPAN(&x, 1), 1, 0, t->group, NULL));
    if (t->rank == 1)
        OK(tutti_send(TUTTI_SPAN(&x, 1), 0, 0, t->group));
    all_here(t, BEGUN);
    if (t->rank == 1)
        reset_streams(t);
    if (t->rank == 0) { /* its time is up long after */
        const int64_t start = now_ms();

        assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), TUTTI_ANY_SOURCE, 0, t->group, NULL), TUTTI_E_PEER);
        assert_true(now_ms() - start < 6000);
        expect_words("rank 1");
    }
    all_here(t, ENDED);
}

/* The same when it has left: rank 2 is waited for, for longer than it takes to find that a connection is lost, and sends then. */
static void who_has_left_ends_no_wait_for_anybody(tt_ctx *t)
{
    float       x = 0.0f;
    tutti_work *work = NULL;

    if (t->rank == 0)
        OK(tutti_recv(TUTTI_SPAN(&x, 1), 1, 0, t->group, NULL));
    if (t->rank == 1)
        OK(tutti_send(TUTTI_SPAN(&x, 1), 0, 0, t->group));
    all_here(t, BEGUN);
    if (t->rank == 1) {
        OK(tutti_destroy_process_group(t->group));
        t->group = NULL;
        tt_post(t, ENDED);
    }
    if (t->rank == 0) {
        OK(tutti_irecv(TUTTI_SPAN(&x, 1), TUTTI_ANY_SOURCE, 0, t->group, &work));
        tt_await(t, ENDED, 1);
        assert_int_equal(tutti_work_wait_for(work, SEEN_TO_LEAVE_MS), TUTTI_E_TIMEOUT);
        tt_post(t, WAITED);
        OK(tutti_work_wait_for(work, TUTTI_INFINITE));
        assert_true(x == 2.0f);
        tutti_work_free(work);
    }
    if (t->rank == 2) {
        x = 2.0f;
        tt_await(t, WAITED, 1);
        OK(tutti_send(TUTTI_SPAN(&x, 1), 0, 0, t->group));
    }
}

/* Rank 0 waits for rank 1, which lives and does not listen; rank 3 finds that the victim is dead, and leaves.
 * Ranks 0 and 3 have never met. Where rank 3 gets no core for long rank 0 finds it by itself. */
static void who_waits_for_another_is_told(tt_ctx *t)
{
    float   x = 0.0f;
    int64_t start;

    all_here(t, BEGUN);
    if (t->rank == VICTIM)
        die(t);
    start = now_ms();
    if (t->rank == 0 || t->rank == 3) {
        assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), t->rank == 0 ? 1 : VICTIM, 0, t->group, NULL),
                         TUTTI_E_PEER);
        assert_true(ms_behind_death(t, start) < 2000);
        expect_words("rank 2");
        if (t->rank == 0 && strstr(tutti_last_error(), "rank 3 reported") == NULL)
            assert_true(ms_behind_death(t, 0) >= ALONE_MS);
    }
    if (t->rank == 0)
        tt_post(t, ENDED);
    if (t->rank == 1)
        tt_await(t, ENDED, 1);
}

/* Rank 1 is stopped, until ENDED is posted: the other one gets its pid, rank 1 itself 0 at the end. */
static int stop_rank_1(tt_ctx *t)
{
    char  path[512];
    FILE *file;
    int   pid = 0;

    snprintf(path, sizeof path, "%s/pid", t->dir);
    if (t->rank == 1) {
        file = fopen(path, "w");
        assert_non_null(file);
        fprintf(file, "%d\n", (int)getpid());
        fclose(file);
        tt_post(t, BEGUN);
        tt_await(t, ENDED, 1);
        return 0;
    }
    tt_await(t, BEGUN, 1);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    while (!tt_is_stopped(pid))
        sched_yield(); /* the harness limits it */
    return pid;
}

static void let_go(tt_ctx *t, int pid)
{
    assert_int_equal(kill(pid, SIGCONT), 0);
    tt_post(t, ENDED);
}

/* Its kernel answers, it does not. The time-out bounds that, and destroy waits for nothing. */
static void a_stopped_rank_is_waited_for_in_vain(tt_ctx *t)
{
    const int   pid = stop_rank_1(t);
    float       x = 0.0f;
    tutti_work *work = NULL;
    int64_t     start;

    if (pid == 0)
        return;
    OK(tutti_isend(TUTTI_SPAN(&x, 1), 1, 0, t->group, &work));
    start = now_ms();
    assert_int_equal(tutti_work_wait_for(work, 300), TUTTI_E_TIMEOUT);
    assert_true(now_ms() - start >= 250);
    assert_int_equal(connections(t), 0);
    start = now_ms();
    OK(tutti_destroy_process_group(t->group));
    t->group = NULL;
    assert_true(now_ms() - start < 1000);
    assert_int_equal(tutti_work_wait(work), TUTTI_E_ABORTED);
    tutti_work_free(work);
    let_go(t, pid);
}

/* The text tells it from one that is late, with which there would be a connection. */
static void a_stopped_rank_is_not_taken_for_a_late_one(tt_ctx *t)
{
    const int pid = stop_rank_1(t);
    float     x = 0.0f;

    if (pid == 0)
        return;
    OK(tutti_set_timeout(t->group, 1500)); /* making the world may take longer */
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, t->group), TUTTI_E_TIMEOUT);
    expect_words("no message from rank 1; no connection to rank 1");
    let_go(t, pid);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(init_makes_none, .ranks = 4, .transports = "tcp,threads-tcp,shm"),
        TT_TEST(init_makes_none, .ranks = 4, .hosts = 2),
        TT_TEST(a_message_makes_one, .ranks = 4, .transports = "tcp,threads-tcp"),
        TT_TEST(a_message_makes_one, .ranks = 4, .hosts = 2),
        TT_TEST(a_ring_makes_two_each, .ranks = 5, .transports = "tcp,threads-tcp"),
        TT_TEST(a_tree_makes_its_edges, .ranks = 8, .transports = "tcp,threads-tcp"),
        TT_TEST(all_to_all_makes_all, .ranks = 4, .transports = "tcp,threads-tcp"),
        TT_TEST(all_to_all_makes_all, .ranks = 6, .hosts = 2),
        TT_TEST(both_sides_begin_at_once, .ranks = 2, .transports = "tcp,threads-tcp"),
        TT_TEST(both_sides_begin_at_once, .ranks = 8, .transports = "tcp,threads-tcp"),
        TT_TEST(who_computes_is_reached, .ranks = 2, .transports = "tcp"),
        TT_TEST(who_computes_is_reached, .ranks = 4, .hosts = 2),
        TT_TEST(who_died_before_is_named, .ranks = 4, .transports = "tcp", .dies = VICTIM),
        TT_TEST(who_died_before_is_named, .ranks = 4, .hosts = 2, .dies = VICTIM),
        TT_TEST(anybody_is_nobody, .ranks = 2, .transports = "tcp", .dies = 1),
        TT_TEST(who_was_cut_off_ends_a_wait_for_anybody, .ranks = 3, .transports = "tcp", .waits = true),
        TT_TEST(who_has_left_ends_no_wait_for_anybody, .ranks = 3, .transports = "tcp", .waits = true),
        TT_TEST(who_waits_for_another_is_told, .ranks = 4, .transports = "tcp", .dies = VICTIM),
        TT_TEST(a_stopped_rank_is_waited_for_in_vain, .ranks = 2, .transports = "tcp"),
        TT_TEST(a_stopped_rank_is_not_taken_for_a_late_one, .ranks = 2, .transports = "tcp"),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}

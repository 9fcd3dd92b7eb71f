/* SPDX-License-Identifier: BSD-3-Clause
 *
 * failure_test.c
 * Goal    a rank that dies, does not come, or calls something else becomes an error on every other rank,
 *         in time, that names it.
 * Method  real processes over shared memory and TCP; the bound on waiting is part of each test. */
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

/* What a busy machine adds to the second in which calls that differ are told is not the library's. */
enum { VICTIM = 2, TIMEOUT_MS = 700, TOLD_MS = 1000, BUSY_MS = 3000 };
enum { BEGUN = TT_MARKS - 1, ALL_DONE = TT_MARKS - 2, DIED_AT = TT_MARKS - 3, WAITS_FROM = TT_MARKS - 4 }; /* marks */
enum { HAS_LEFT = TT_MARKS - 5, MAY_LOOK = TT_MARKS - 6, LOOKS = TT_MARKS - 7, VICTIMS_PID = TT_MARKS - 8 };

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void expect_words(const char *part)
{
    if (strstr(tutti_last_error(), part) == NULL)
        fail_msg("'%s' is not in: %s", part, tutti_last_error());
}

/* Nobody is late from here on because another one has come out of the making of its world before. */
static void all_are_here(tt_ctx *t)
{
    tt_post(t, BEGUN);
    tt_await(t, BEGUN, (uint32_t)t->size);
}

/* The world works, and nobody is inside the barrier any more that showed it. */
static void all_have_begun(tt_ctx *t)
{
    assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
    all_are_here(t);
}

/* Moments are the same for all: the clock is the machine's. */
static void note_moment(tt_ctx *t, int mark)
{
    atomic_store(&t->marks[mark], (uint32_t)now_ms());
}

static int64_t ms_since(const tt_ctx *t, int mark)
{
    return (int64_t)((uint32_t)now_ms() - atomic_load(&t->marks[mark]));
}

/* How long this rank, which has waited since start_ms, has done so since a moment of another one's, who may have had no core
 * before. */
static int64_t ms_behind(const tt_ctx *t, int mark, int64_t start_ms)
{
    const int64_t since = ms_since(t, mark), waited = now_ms() - start_ms;

    return since < waited ? since : waited;
}

_Noreturn static void die(tt_ctx *t)
{
    note_moment(t, DIED_AT);
    tt_die();
}

static void death_in_a_collective_names_the_rank(tt_ctx *t)
{
    const int64_t count = 1 << 20;
    float        *x = tt_floats(t, (size_t)count, 1.0f);
    int64_t       start;
    tutti_status  st;

    all_have_begun(t);
    if (t->rank == VICTIM)
        die(t);
    start = now_ms();
    st = tutti_all_reduce(TUTTI_SPAN(x, count), TUTTI_SUM, t->group);
    assert_true(st == TUTTI_E_PEER || st == TUTTI_E_ABORTED);
    assert_true(ms_behind(t, DIED_AT, start) < 1000);
    expect_words("rank 2");
    if (st == TUTTI_E_PEER) {
        expect_words("all_reduce #");
        expect_words("group '");
        expect_words("\n  next: ");
    }
    assert_int_equal(tutti_barrier(t->group), st); /* the group is finished */
}

/* It has destroyed its world, and did not die: what is to be looked for is another thing. */
static void who_leaves_early_is_told_as_such(tt_ctx *t)
{
    float x = 1.0f;

    all_have_begun(t);
    if (t->rank == VICTIM) {
        assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_OK);
        return;
    }
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL), TUTTI_E_PEER);
    expect_words("rank 2 (");
    expect_words(") has left");
    expect_words("\n  next: see why that rank destroyed its group, or its world, before the others were done with it");
}

/* Rank 0 has left before: it may have done so because of the death. */
static void the_dead_are_named_before_those_that_left(tt_ctx *t)
{
    struct pollfd end = { .events = POLLIN };
    float         x = 1.0f;

    all_have_begun(t);
    if (t->rank == 0) {
        assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_OK);
        tt_post(t, HAS_LEFT);
        return;
    }
    tt_await(t, HAS_LEFT, 1);
    if (t->rank == VICTIM) {
        atomic_store(&t->marks[VICTIMS_PID], (uint32_t)getpid());
        tt_post(t, MAY_LOOK);
        tt_await(t, LOOKS, 1);
        tt_die();
    }
    tt_await(t, MAY_LOOK, 1);
    end.fd = (int)syscall(SYS_pidfd_open, (pid_t)atomic_load(&t->marks[VICTIMS_PID]), 0);
    assert_true(end.fd >= 0);
    tt_post(t, LOOKS);
    assert_int_equal(poll(&end, 1, -1), 1); /* it has ended */
    close(end.fd);
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL), TUTTI_E_PEER);
    expect_words("rank 2 (");
    assert_null(strstr(tutti_last_error(), "has left"));
}

/* Nothing was ever sent to it: all there is to say is that it does not listen, and no firewall stands inside a host. */
static void death_before_a_link_is_no_firewall(tt_ctx *t)
{
    float x = 0.0f;

    tt_post(t, BEGUN);
    tt_await(t, BEGUN, (uint32_t)t->size);
    if (t->rank == VICTIM)
        tt_die();
    if (t->rank != 0)
        return;
    assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), VICTIM, 5, t->group, NULL), TUTTI_E_PEER);
    expect_words("recv from rank 2, tag 5 on group '");
    expect_words("\n  next: ");
    assert_null(strstr(tutti_last_error(), "firewall"));
}

static void death_while_receiving_names_the_rank(tt_ctx *t)
{
    float   x = 0.0f;
    int64_t start;

    all_have_begun(t);
    if (t->rank == VICTIM)
        die(t);
    if (t->rank == 0) {
        start = now_ms();
        assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), VICTIM, 5, t->group, NULL), TUTTI_E_PEER);
        assert_true(ms_behind(t, DIED_AT, start) < 1000);
        expect_words("recv from rank 2, tag 5 on group '");
        expect_words("ends the group: ");
        expect_words("rank 2 ("); /* it has ended; or the connection to it was closed, if that is seen first */
        expect_words("\n  next: ");
    }
}

/* ---- waits without a limit end with the rank they wait for ---- */

static tutti_status sum(tutti_group *group)
{
    float x = 1.0f;

    return tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, group);
}

static tutti_status sum_later(tutti_group *group)
{
    float        x = 1.0f;
    tutti_work  *work = NULL;
    tutti_status st = tutti_all_reduce_async(TUTTI_SPAN(&x, 1), TUTTI_SUM, group, &work);

    if (st == TUTTI_OK)
        st = tutti_work_wait_for(work, TUTTI_INFINITE);
    tutti_work_free(work);
    return st;
}

static tutti_status receive(tutti_group *group)
{
    float x = 1.0f;

    return tutti_recv(TUTTI_SPAN(&x, 1), VICTIM, 0, group, NULL);
}

static tutti_status receive_later(tutti_group *group)
{
    float        x = 1.0f;
    tutti_work  *work = NULL;
    int          index = -1;
    tutti_status st = tutti_irecv(TUTTI_SPAN(&x, 1), VICTIM, 0, group, &work);

    if (st == TUTTI_OK)
        st = tutti_wait_any(&work, 1, TUTTI_INFINITE, &index);
    if (st == TUTTI_OK)
        st = tutti_work_status(work);
    tutti_work_free(work);
    return st;
}

static tutti_status meet(tutti_group *group)
{
    return tutti_monitored_barrier(group, TUTTI_INFINITE, true);
}

/* Rank 1 waits for the one that has died, is told so, and does not come: those that make a group with it are told, too. */
static void who_makes_a_group_hears_of_the_world(tt_ctx *t)
{
    static const int left[] = { 0, 1, 3 };
    tutti_group     *group = NULL;
    float            x = 0.0f;
    int64_t          start;

    all_have_begun(t);
    if (t->rank == VICTIM)
        die(t);
    if (t->rank == 1) {
        assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), VICTIM, 5, t->group, NULL), TUTTI_E_PEER);
        tt_await(t, 0, 2);
        return;
    }
    start = now_ms();
    assert_int_equal(tutti_new_group(left, 3, NULL, &group), TUTTI_E_PEER);
    assert_true(ms_behind(t, DIED_AT, start) < 5000); /* rank 1 is told first, and who serves the store stays for a while */
    expect_words("group '1' cannot be made: ");
    expect_words("rank 2");
    tt_post(t, 0);
}

/* Rank 0 serves the store. It is told first, and leaves, before those that wait in the store have looked around. */
static void who_loses_the_store_hears_why(tt_ctx *t)
{
    static const int both[] = { 1, 3 };
    tutti_group     *group = NULL;
    float            x = 0.0f;

    all_have_begun(t);
    if (t->rank == VICTIM) {
        tt_await(t, 0, 1);
        tt_die();
    }
    if (t->rank == 0) {
        assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), VICTIM, 5, t->group, NULL), TUTTI_E_PEER);
        return;
    }
    if (t->rank == 1) {
        tt_await(t, 1, 1);
        return;
    }
    tt_post(t, 0);
    assert_int_equal(tutti_new_group(both, 2, NULL, &group), TUTTI_E_PEER);
    expect_words("group '1' cannot be made: ");
    expect_words("rank 2");
    tt_post(t, 1);
}

/* Who has been told has chosen to. */
static void those_that_are_left_make_a_group(tt_ctx *t)
{
    static const int left[] = { 0, 1, 3 };
    tutti_group     *group = NULL;

    all_have_begun(t);
    if (t->rank == VICTIM)
        tt_die();
    assert_int_equal(tutti_barrier(t->group), TUTTI_E_PEER);
    tt_await(t, 0, (uint32_t)(t->rank == 0 ? 0 : t->rank == 1 ? 1 : 2)); /* one after the other: each waits for the next */
    tt_post(t, 0);
    assert_int_equal(tutti_new_group(left, 3, NULL, &group), TUTTI_OK);
    assert_int_equal(sum(group), TUTTI_OK);
}

/* The group of all, once more, in which no wait has a limit. */
static tutti_group *patient_group(void)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;

    opts.timeout_ms = TUTTI_INFINITE;
    if (tutti_new_group(NULL, 0, &opts, &group) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    return group;
}

static void endless_waits_end_with_the_peer(tt_ctx *t)
{
    tutti_status (*const waits[])(tutti_group *) = { sum, sum_later, receive, receive_later, meet };
    enum { N = sizeof waits / sizeof waits[0] };
    tutti_group *groups[N];
    tutti_status st;
    int64_t      start;
    int          i;

    for (i = 0; i < N; i++)
        groups[i] = patient_group();
    all_have_begun(t);
    if (t->rank == VICTIM)
        raise(SIGKILL);
    for (i = 0; i < N; i++) {
        start = now_ms();
        st = waits[i](groups[i]);
        if (st != TUTTI_E_PEER && st != TUTTI_E_ABORTED)
            fail_msg("wait %d: %s: %s", i, tutti_status_name(st), tutti_last_error());
        assert_true(now_ms() - start < 5000);
        expect_words("rank 2");
    }
    tt_post(t, 0);
    tt_await(t, 0, (uint32_t)t->size - 1);
}

/* Time-outs are short only from where they are measured on: making the world takes what it takes on a busy machine. */
static void a_late_rank_is_named(tt_ctx *t)
{
    float   x = 1.0f;
    int64_t start;

    if (t->rank == 1) {
        tt_await(t, 0, 1); /* comes when rank 0 has given up */
        return;
    }
    assert_int_equal(tutti_set_timeout(t->group, TIMEOUT_MS), TUTTI_OK);
    start = now_ms();
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, t->group), TUTTI_E_TIMEOUT);
    assert_true(now_ms() - start >= TIMEOUT_MS - 50 && now_ms() - start < TIMEOUT_MS + 1000);
    expect_words("all_reduce #1");
    expect_words("1");
    tt_post(t, 0);
}

static void different_counts_are_a_mismatch(tt_ctx *t)
{
    const int64_t count = t->rank == 0 ? 10 : 20000;
    float        *x = tt_floats(t, 20000, 1.0f);
    int64_t       start;

    all_are_here(t);
    start = now_ms();
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(x, count), TUTTI_SUM, t->group), TUTTI_E_MISMATCH);
    assert_true(now_ms() - start < TOLD_MS + BUSY_MS);
}

static void different_operations_are_a_mismatch(tt_ctx *t)
{
    float        x = 1.0f;
    tutti_status st = t->rank == 0 ? tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, t->group)
                                   : tutti_reduce(TUTTI_SPAN(&x, 1), 1, TUTTI_SUM, t->group);

    assert_int_equal(st, TUTTI_E_MISMATCH);
    expect_words("reduce");
}

/* The words of what went wrong first, not of the cleaning up. */
static void a_failed_init_says_why(tt_ctx *t)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    opts.init_method = t->init_method;
    opts.timeout_ms = t->limit_ms; /* they are to meet first */
    setenv("TUTTI_ALGO", "all_reduce=nonsense", 1);
    assert_int_equal(tutti_init_process_group(&opts), TUTTI_E_ARG);
    expect_words("no algorithm 'nonsense'");
}

/* A receive that ran out of time on one rank ends what the others wait for, which had ten times as long. */
static void a_late_message_ends_the_group_everywhere(tt_ctx *t)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *all = NULL;
    float               x = 1.0f;
    int64_t             start;

    opts.timeout_ms = 10 * TIMEOUT_MS;
    assert_int_equal(tutti_new_group(NULL, 0, &opts, &all), TUTTI_OK);
    if (t->rank == 1)
        assert_int_equal(tutti_set_timeout(all, TIMEOUT_MS), TUTTI_OK);
    all_have_begun(t);
    if (t->rank == 1)
        note_moment(t, WAITS_FROM);
    start = now_ms();
    if (t->rank == 1)
        assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), TUTTI_ANY_SOURCE, 5, all, NULL), TUTTI_E_TIMEOUT);
    else
        assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, all), TUTTI_E_TIMEOUT);
    assert_true(ms_since(t, WAITS_FROM) >= TIMEOUT_MS - 50 && ms_behind(t, WAITS_FROM, start) < TIMEOUT_MS + 1000);
    if (t->rank != 1) {
        expect_words("rank 1");
        expect_words("reported");
    }
    assert_int_equal(tutti_send(TUTTI_SPAN(&x, 1), (t->rank + 1) % t->size, 0, all), TUTTI_E_TIMEOUT);
    assert_int_equal(tutti_barrier(t->group), TUTTI_OK); /* another group goes on */
}

/* The same for an asynchronous one that fails: whoever waits for it finishes the group everywhere. */
static void a_failed_work_ends_the_group_everywhere(tt_ctx *t)
{
    float       x = 1.0f, y = 1.0f;
    tutti_work *work = NULL;

    all_have_begun(t);
    if (t->rank == VICTIM)
        die(t);
    if (t->rank == 0) {
        assert_int_equal(tutti_irecv(TUTTI_SPAN(&x, 1), VICTIM, 0, t->group, &work), TUTTI_OK);
        assert_int_equal(tutti_work_wait(work), TUTTI_E_PEER);
        tutti_work_free(work);
        tt_await(t, 0, 1);
    } else {
        const int64_t start = now_ms();

        assert_int_equal(tutti_recv(TUTTI_SPAN(&y, 1), 0, 9, t->group, NULL), TUTTI_E_PEER);
        assert_true(ms_behind(t, DIED_AT, start) < 2000);
        expect_words("rank 2");
        tt_post(t, 0);
    }
}

/* The last rank believes to be the root as well as rank 0. What is called next tells all of them, or what follows: a rank may
 * have all it needs in the next call, too, before it hears of what another has found there. */
static void check_two_roots(tt_ctx *t, tutti_status st)
{
    const int64_t start = now_ms();

    while (st == TUTTI_OK && now_ms() - start < TOLD_MS + BUSY_MS)
        st = tutti_barrier(t->group);
    assert_int_equal(st, TUTTI_E_MISMATCH);
    assert_true(now_ms() - start < TOLD_MS + BUSY_MS);
    assert_int_equal(tutti_barrier(t->group), TUTTI_E_MISMATCH);
}

static int believed_root(const tt_ctx *t)
{
    return t->rank == t->size - 1 ? t->rank : 0;
}

static void two_roots_of_a_broadcast_are_a_mismatch(tt_ctx *t)
{
    float x = (float)t->rank;

    all_are_here(t);
    check_two_roots(t, tutti_broadcast(TUTTI_SPAN(&x, 1), believed_root(t), t->group));
}

static void two_roots_of_a_scatter_are_a_mismatch(tt_ctx *t)
{
    const int  root = believed_root(t);
    float      x = 0.0f, parts[8] = { 0 };
    tutti_span list[8];
    int        r;

    for (r = 0; r < t->size; r++)
        list[r] = TUTTI_SPAN(&parts[r], 1);
    all_are_here(t);
    check_two_roots(t, tutti_scatter(TUTTI_SPAN(&x, 1), root == t->rank ? list : NULL,
                                     root == t->rank ? t->size : 0, root, t->group));
}

static void two_roots_of_a_gather_are_a_mismatch(tt_ctx *t)
{
    const int  root = believed_root(t);
    float      x = 0.0f, parts[8] = { 0 };
    tutti_span list[8];
    int        r;

    for (r = 0; r < t->size; r++)
        list[r] = TUTTI_SPAN(&parts[r], 1);
    all_are_here(t);
    check_two_roots(t, tutti_gather(root == t->rank ? list : NULL, root == t->rank ? t->size : 0,
                                    TUTTI_SPAN(&x, 1), root, t->group));
}

static void two_roots_of_a_reduce_are_a_mismatch(tt_ctx *t)
{
    float x = 1.0f;

    all_are_here(t);
    check_two_roots(t, tutti_reduce(TUTTI_SPAN(&x, 1), believed_root(t), TUTTI_SUM, t->group));
}

static void two_roots_of_nothing_are_a_mismatch(tt_ctx *t)
{
    float x = 1.0f;

    all_are_here(t);
    check_two_roots(t, tutti_broadcast(TUTTI_SPAN(&x, 0), believed_root(t), t->group));
}

/* A collective has finished the group, which ends no message by itself. */
static void a_late_message_ends_in_a_finished_group(tt_ctx *t)
{
    float       x[2] = { 1.0f };
    tutti_work *work = NULL;

    all_have_begun(t);
    if (t->rank == 0) {
        assert_int_equal(tutti_set_timeout(t->group, TIMEOUT_MS), TUTTI_OK);
        assert_int_equal(tutti_all_reduce_async(TUTTI_SPAN(x, 1), TUTTI_SUM, t->group, &work), TUTTI_OK);
        assert_int_equal(tutti_work_wait_for(work, TIMEOUT_MS / 2), TUTTI_E_TIMEOUT);
        assert_int_equal(tutti_recv(TUTTI_SPAN(x + 1, 1), 1, 0, t->group, NULL), TUTTI_E_TIMEOUT);
        assert_int_equal(tutti_work_wait(work), TUTTI_E_TIMEOUT);
        tutti_work_free(work);
        tt_post(t, 0);
    }
    tt_await(t, 0, 1);
}

/* Works that are late have ended when the wait for them is over: what they worked on may go, and nobody reads or writes it
 * later, when the group ends, or the message comes after all. */
static void late_works_give_their_buffers_back(tt_ctx *t)
{
    const int64_t count = 1 << 20; /* it has begun to go, and cannot all be on its way */
    const size_t  bytes = 2 * (size_t)count * sizeof(float);
    tutti_work   *works[2] = { NULL };
    float        *x, y = 1.0f;
    int64_t       start;
    tutti_status  sent;

    all_have_begun(t);
    if (t->rank == 0) {
        x = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(x != MAP_FAILED);
        assert_int_equal(tutti_set_timeout(t->group, TIMEOUT_MS), TUTTI_OK);
        assert_int_equal(tutti_irecv(TUTTI_SPAN(x, 1), 1, 1, t->group, &works[0]), TUTTI_OK);
        assert_int_equal(tutti_isend(TUTTI_SPAN(x + count, count), 1, 0, t->group, &works[1]), TUTTI_OK);
        start = now_ms();
        assert_int_equal(tutti_wait_all(works, 2, 0), TUTTI_E_TIMEOUT);
        assert_true(tutti_work_is_completed(works[0]) && tutti_work_is_completed(works[1]));
        assert_true(now_ms() - start >= TIMEOUT_MS && now_ms() - start < TIMEOUT_MS + 1000);
        expect_words("irecv from rank 1, tag 1 on group '");
        expect_words("timed out after");
        sent = tutti_work_wait(works[1]);
        assert_true(sent == TUTTI_E_TIMEOUT || sent == TUTTI_OK); /* what comes by a socket is taken in, unasked */
        tutti_work_free(works[0]);
        tutti_work_free(works[1]);
        munmap(x, bytes);
        tt_post(t, 0);
        tt_await(t, 1, 1);
    } else {
        tt_await(t, 0, 1);
        (void)tutti_send(TUTTI_SPAN(&y, 1), 0, 1, t->group); /* it may not have heard yet */
        assert_int_equal(tutti_barrier(t->group), TUTTI_E_TIMEOUT);
        expect_words("rank 0");
        expect_words("reported");
        tt_post(t, 1);
    }
    tutti_abort_process_group(t->group);
}

static void destroy_does_not_wait(tt_ctx *t)
{
    float       x = 1.0f;
    tutti_work *work = NULL;
    int64_t     start;

    if (t->rank == 0) {
        assert_int_equal(tutti_all_reduce_async(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL, &work), TUTTI_OK);
        start = now_ms();
        assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_OK);
        assert_true(now_ms() - start < 1000);
        assert_int_equal(tutti_work_wait(work), TUTTI_E_ABORTED);
        tutti_work_free(work);
        tt_post(t, 0);
        return;
    }
    tt_await(t, 0, 1);
    assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_OK);
}

enum { LATE = 1 };
enum { TOLD, COMES, BY_ITSELF }; /* marks */

/* Rank 0 tells all; but where it gets no core for long another one finds by itself that the victim is dead, and tells. */
static void check_without_the_dead(tt_ctx *t)
{
    enum { ALONE_MS = 150 }; /* nobody does so before */

    expect_words("rank 2");
    if (strstr(tutti_last_error(), "gone: rank 2, on rank 0 after ") == NULL) {
        assert_true(t->rank == LATE ? atomic_load(&t->marks[BY_ITSELF]) > 0 : ms_since(t, DIED_AT) >= ALONE_MS);
        tt_post(t, BY_ITSELF);
        return;
    }
    expect_words("gone: rank 2, on rank 0 after ");
    if (strstr(tutti_last_error(), "not arrived by then: rank 1") == NULL)
        expect_words("not arrived by then: ranks 1, 3"); /* it got no core between saying that it comes and coming */
    expect_words("  rank 2: ");
}

/* One is late when another one dies: that ends the barrier on all at once, and is what they are told first. */
static void meet_without_the_dead(tt_ctx *t, bool wait_all)
{
    enum { COME_MS = 500, LONG_MS = 8000 };
    const struct timespec pause = { .tv_nsec = COME_MS * 1000000L };

    all_have_begun(t);
    if (t->rank == VICTIM) {
        tt_await(t, COMES, 2);
        nanosleep(&pause, NULL); /* so that both wait in it */
        die(t);
    }
    if (t->rank == LATE)
        tt_await(t, TOLD, 2);
    else
        tt_post(t, COMES);
    assert_int_equal(tutti_monitored_barrier(t->group, LONG_MS, wait_all), TUTTI_E_PEER);
    check_without_the_dead(t);
    assert_true(ms_since(t, DIED_AT) < LONG_MS / 2);
    assert_int_equal(tutti_barrier(t->group), TUTTI_E_PEER); /* it is finished */
    if (t->rank != LATE)
        tt_post(t, TOLD);
}

static void a_monitored_barrier_names_the_dead(tt_ctx *t)
{
    meet_without_the_dead(t, false);
}

static void a_monitored_barrier_of_all_names_the_dead(tt_ctx *t)
{
    meet_without_the_dead(t, true);
}

/* The last thing that the dead did is told with its group, which is another one than that of the call that fails of it; be it a call,
 * or a message. */
static void tell_the_last_deed(tt_ctx *t, bool is_message)
{
    tutti_group *second = NULL;
    float        x = 1.0f;

    all_have_begun(t);
    assert_int_equal(tutti_new_group(NULL, 0, NULL, &second), TUTTI_OK);
    if (is_message && t->rank == 0)
        assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), VICTIM, 3, second, NULL), TUTTI_OK);
    if (is_message && t->rank == VICTIM)
        assert_int_equal(tutti_send(TUTTI_SPAN(&x, 1), 0, 3, second), TUTTI_OK);
    if (!is_message)
        assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, second), TUTTI_OK);
    tt_post(t, ALL_DONE);
    tt_await(t, ALL_DONE, (uint32_t)t->size); /* what was sent is there */
    if (t->rank == VICTIM)
        tt_die();
    assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), VICTIM, 5, t->group, NULL), TUTTI_E_PEER);
    expect_words("rank 2");
    expect_words(is_message ? "it last began to send to rank 0, in the group called '1'" :
                              "it last entered all_reduce #1 of the group called '1'");
}

static void the_last_call_has_its_group(tt_ctx *t)
{
    tell_the_last_deed(t, false);
}

static void the_last_message_is_told(tt_ctx *t)
{
    tell_the_last_deed(t, true);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(death_in_a_collective_names_the_rank, .ranks = 4, .transports = "shm,tcp", .dies = VICTIM),
        TT_TEST(who_leaves_early_is_told_as_such, .ranks = 3, .transports = "shm"),
        TT_TEST(the_dead_are_named_before_those_that_left, .ranks = 3, .transports = "shm", .dies = VICTIM),
        TT_TEST(death_before_a_link_is_no_firewall, .ranks = 3, .transports = "shm,tcp", .dies = VICTIM),
        TT_TEST(death_while_receiving_names_the_rank, .ranks = 3, .transports = "shm,tcp", .dies = VICTIM),
        TT_TEST(endless_waits_end_with_the_peer, .ranks = 4, .transports = "shm,tcp", .dies = VICTIM),
        TT_TEST(endless_waits_end_with_the_peer, .ranks = 4, .hosts = 2, .dies = VICTIM),
        TT_TEST(who_makes_a_group_hears_of_the_world, .ranks = 4, .transports = "shm,tcp", .dies = VICTIM),
        TT_TEST(who_makes_a_group_hears_of_the_world, .ranks = 4, .hosts = 2, .dies = VICTIM),
        TT_TEST(who_loses_the_store_hears_why, .ranks = 4, .transports = "shm,tcp", .dies = VICTIM),
        TT_TEST(who_loses_the_store_hears_why, .ranks = 4, .hosts = 2, .dies = VICTIM),
        TT_TEST(those_that_are_left_make_a_group, .ranks = 4, .transports = "shm,tcp", .dies = VICTIM),
        TT_TEST(the_last_call_has_its_group, .ranks = 4, .transports = "shm", .dies = VICTIM),
        TT_TEST(the_last_message_is_told, .ranks = 4, .transports = "shm", .dies = VICTIM),
        TT_TEST(a_monitored_barrier_names_the_dead, .ranks = 4, .transports = "shm,tcp", .dies = VICTIM),
        TT_TEST(a_monitored_barrier_of_all_names_the_dead, .ranks = 4, .transports = "shm", .dies = VICTIM),
        TT_TEST(a_late_rank_is_named, .ranks = 2, .transports = "shm,tcp"),
        TT_TEST(different_counts_are_a_mismatch, .ranks = 2, .transports = "shm,tcp"),
        TT_TEST(different_operations_are_a_mismatch, .ranks = 2, .transports = "shm,tcp"),
        TT_TEST(a_failed_init_says_why, .ranks = 2, .transports = "shm,tcp", .init = TT_INIT_NONE),
        TT_TEST(a_late_message_ends_the_group_everywhere, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(a_failed_work_ends_the_group_everywhere, .ranks = 3, .transports = "shm,tcp",
                .dies = VICTIM),
        TT_TEST(two_roots_of_a_broadcast_are_a_mismatch, .ranks = 2, .transports = "shm,tcp"),
        TT_TEST(two_roots_of_a_broadcast_are_a_mismatch, .ranks = 3, .transports = "shm"),
        TT_TEST(two_roots_of_a_scatter_are_a_mismatch, .ranks = 2, .transports = "shm,tcp"),
        TT_TEST(two_roots_of_a_scatter_are_a_mismatch, .ranks = 3, .transports = "shm"),
        TT_TEST(two_roots_of_a_gather_are_a_mismatch, .ranks = 3, .transports = "shm"),
        TT_TEST(two_roots_of_a_reduce_are_a_mismatch, .ranks = 3, .transports = "shm"),
        TT_TEST(two_roots_of_nothing_are_a_mismatch, .ranks = 2, .transports = "shm"),
        TT_TEST(a_late_message_ends_in_a_finished_group, .ranks = 2, .transports = "shm,tcp"),
        TT_TEST(late_works_give_their_buffers_back, .ranks = 2, .transports = "shm,tcp"),
        TT_TEST(destroy_does_not_wait, .ranks = 2, .transports = "shm,tcp"),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}

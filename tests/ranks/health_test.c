/* SPDX-License-Identifier: BSD-3-Clause
 *
 * health_test.c
 * Goal    a death is known to every rank, whomever it waits for; a rank that is stopped is told from a dead one, and named
 *         as such; silence alone accuses nobody, unless the program says how long is too long.
 * Method  real processes on one host and on two, over shared memory and TCP. The waits of the living are for each other, so
 *         that nothing but news of the victim can end them. Signals come from rank 0, which is told the victim's number.
 *         Bounds are those of the promise, several times over: the machine may be busy. A time-out that is to say who is
 *         stopped is long enough for watch threads that get a core late to have seen that. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "gone.h"
#include "harness/harness.h"
#include <tutti/tutti.h>

enum { BEAT_MS = 200, SEEN_MS = 20 * BEAT_MS, KNOWN_MS = 5000 };
enum { VICTIM_PID = TT_MARKS - 1, BEGUN = TT_MARKS - 2, TOLD = TT_MARKS - 3, SIGNALLED_AT = TT_MARKS - 4 }; /* marks */

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Let so much time pass: what is tested is what becomes of it. */
static void pass_ms(int64_t ms)
{
    const struct timespec pause = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

    nanosleep(&pause, NULL);
}

static void expect_words(const char *part)
{
    if (strstr(tutti_last_error(), part) == NULL)
        fail_msg("'%s' is not in: %s", part, tutti_last_error());
}

static int victim_of(const tt_ctx *t)
{
    return t->size - 1;
}

/* A world with short heartbeats. Its watch threads have found each other when this returns. */
static void join(const tt_ctx *t, int64_t timeout_ms, const char *silent_ms)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    setenv("TUTTI_HEARTBEAT_MS", "200", 1);
    if (silent_ms != NULL)
        setenv("TUTTI_SILENT_MS", silent_ms, 1);
    opts.init_method = t->init_method;
    opts.timeout_ms = timeout_ms;
    if (tutti_init_process_group(&opts) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    pass_ms(5 * BEAT_MS);
    assert_int_equal(tutti_barrier(NULL), TUTTI_OK);
}

static void all_have_begun(tt_ctx *t)
{
    if (t->rank == victim_of(t))
        atomic_store(&t->marks[VICTIM_PID], (uint32_t)getpid());
    tt_post(t, BEGUN);
    tt_await(t, BEGUN, (uint32_t)t->size);
}

/* Who is to stop has when this returns. */
static void signal_it(tt_ctx *t, int number)
{
    const int pid = (int)atomic_load(&t->marks[VICTIM_PID]);

    atomic_store(&t->marks[SIGNALLED_AT], (uint32_t)now_ms());
    assert_int_equal(kill((pid_t)pid, number), 0);
    while (number == SIGSTOP && !tt_is_stopped(pid))
        sched_yield(); /* the harness limits it */
}

/* From rank 0, which goes on. */
static void signal_victim(tt_ctx *t, int number)
{
    if (t->rank == 0)
        signal_it(t, number);
}

/* Since the last signal, by a clock that is the machine's. */
static int64_t ms_since_signal(const tt_ctx *t)
{
    return (int64_t)((uint32_t)now_ms() - atomic_load(&t->marks[SIGNALLED_AT]));
}

_Noreturn static void wait_for_the_end(void)
{
    for (;;)
        pause();
}

/* Nobody leaves before all know: a rank that has left is another reason to end. */
static void part(tt_ctx *t)
{
    tt_post(t, TOLD);
    tt_await(t, TOLD, (uint32_t)t->size - 1);
    assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_OK);
}

/* All the living wait for a message of the next rank, the last of them for one of the victim. In a ring they would be told that
 * they wait for each other. */
static tutti_status wait_in_a_line(const tt_ctx *t)
{
    float x = 0.0f;

    return tutti_recv(TUTTI_SPAN(&x, 1), t->rank + 1, 7, NULL, NULL);
}

/* ---- death ---- */

static void a_death_ends_the_waits_of_all(tt_ctx *t)
{
    join(t, t->limit_ms, NULL);
    all_have_begun(t);
    if (t->rank == victim_of(t))
        wait_for_the_end();
    signal_victim(t, SIGKILL);
    assert_int_equal(wait_in_a_line(t), TUTTI_E_PEER);
    assert_true(ms_since_signal(t) < KNOWN_MS);
    expect_words("rank 3");
    expect_words("pid ");
    part(t);
}

/* The kernel tells the members of its host how it ended, and they tell the others. */
static void the_cause_is_told(tt_ctx *t)
{
    join(t, t->limit_ms, NULL);
    all_have_begun(t);
    if (t->rank == victim_of(t))
        wait_for_the_end();
    signal_victim(t, SIGKILL);
    assert_int_equal(wait_in_a_line(t), TUTTI_E_PEER);
    expect_words("rank 3");
    expect_words("signal 9 (Killed)");
    part(t);
}

/* In a collective, of which the dead has not done its part; with what it did before. */
static void a_death_in_a_collective_tells_its_last_call(tt_ctx *t)
{
    float x = 1.0f;

    join(t, t->limit_ms, NULL);
    all_have_begun(t);
    if (t->rank == victim_of(t))
        wait_for_the_end();
    signal_victim(t, SIGKILL);
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL), TUTTI_E_PEER);
    assert_true(ms_since_signal(t) < KNOWN_MS);
    expect_words("rank 3");
    if (strcmp(t->transport, "shm") == 0)
        expect_words("last entered barrier #1");
    part(t);
}

/* ---- silence ---- */

static void a_stopped_rank_is_named_as_such(tt_ctx *t)
{
    float x = 1.0f;

    join(t, t->limit_ms, NULL);
    assert_int_equal(tutti_set_timeout(NULL, SEEN_MS), TUTTI_OK);
    all_have_begun(t);
    if (t->rank == victim_of(t))
        wait_for_the_end();
    signal_victim(t, SIGSTOP);
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL), TUTTI_E_TIMEOUT);
    expect_words("rank 3");
    expect_words("stopped");
    part(t);
    signal_victim(t, SIGKILL);
}

/* ---- a group of which a member is stopped ---- */

/* Rank victim is stopped, and all others know its number. */
static void one_tt_is_stopped(tt_ctx *t, int victim)
{
    if (t->rank == victim)
        atomic_store(&t->marks[VICTIM_PID], (uint32_t)getpid());
    tt_post(t, BEGUN);
    tt_await(t, BEGUN, (uint32_t)t->size);
    if (t->rank == victim)
        wait_for_the_end();
    if (t->rank == (victim == 0))
        signal_it(t, SIGSTOP);
    tt_post(t, 0);
    tt_await(t, 0, (uint32_t)t->size - 1);
}

/* It is named, with what it is at and the step that helps; and nobody who is there is said not to have come, also where it serves the
 * store in which they meet, and so nobody can know who has come. */
static void make_a_group_without(tt_ctx *t, int victim)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;
    char                words[64];
    int                 r;

    join(t, t->limit_ms, NULL);
    one_tt_is_stopped(t, victim);
    opts.timeout_ms = SEEN_MS;
    assert_int_equal(tutti_new_group(NULL, 0, &opts, &group), TUTTI_E_TIMEOUT);
    snprintf(words, sizeof words, "rank %d (host '", victim);
    expect_words(words);
    expect_words("stopped");
    if (strcmp(t->transport, "shm") == 0 && t->host == 0) { /* the kernel of its host is asked */
        expect_words("has been stopped by a signal for ");
        snprintf(words, sizeof words, "\n  next: let rank %d (host '", victim);
        expect_words(words);
    }
    for (r = 0; r < t->size; r++) {
        snprintf(words, sizeof words, "not joined: rank %d", r);
        if (r != victim && strstr(tutti_last_error(), words) != NULL)
            fail_msg("%s has come: %s", words, tutti_last_error());
    }
    tt_post(t, TOLD);
    tt_await(t, TOLD, (uint32_t)t->size - 1);
    if (t->rank == (victim == 0))
        signal_it(t, SIGKILL);
    (void)tutti_destroy_process_group(NULL);
}

static void a_stopped_member_of_a_new_group_is_named(tt_ctx *t)
{
    make_a_group_without(t, 1);
}

static void a_stopped_store_of_a_new_group_is_named(tt_ctx *t)
{
    make_a_group_without(t, 0);
}

/* The others give up while one is stopped; then it goes on, and is told of that. */
static void who_is_woken_is_not_told_how(tt_ctx *t)
{
    enum { OVER = 0 };
    float x = 1.0f;

    join(t, t->limit_ms, NULL);
    all_have_begun(t);
    if (t->rank == victim_of(t)) {
        tt_await(t, OVER, (uint32_t)t->size - 1);
    } else {
        assert_int_equal(tutti_set_timeout(NULL, SEEN_MS), TUTTI_OK);
        signal_victim(t, SIGSTOP);
        assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL), TUTTI_E_TIMEOUT);
        expect_words(" go on: kill -CONT");
        tt_post(t, OVER);
        tt_await(t, OVER, (uint32_t)t->size - 1);
        signal_victim(t, SIGCONT);
    }
    if (t->rank == victim_of(t)) {
        assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL), TUTTI_E_TIMEOUT);
        expect_words("stopped by a signal");
        expect_words("\n  next: this rank had been stopped, and goes on");
        if (strstr(tutti_last_error(), "kill -CONT") != NULL)
            fail_msg("it is awake: %s", tutti_last_error());
    }
    tt_post(t, TOLD);
    tt_await(t, TOLD, (uint32_t)t->size);
    assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_OK);
}

/* Before three heartbeats have passed the kernel is asked. */
static void a_short_time_out_asks_the_kernel(tt_ctx *t)
{
    float x = 1.0f;

    join(t, t->limit_ms, NULL);
    assert_int_equal(tutti_set_timeout(NULL, 2 * BEAT_MS), TUTTI_OK);
    all_have_begun(t);
    if (t->rank == victim_of(t))
        wait_for_the_end();
    signal_victim(t, SIGSTOP);
    tt_post(t, 0);
    tt_await(t, 0, (uint32_t)t->size - 1);
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL), TUTTI_E_TIMEOUT);
    expect_words("stopped by a signal");
    expect_words("next: let rank "); /* one step, the one that helps */
    expect_words(" go on: kill -CONT");
    part(t);
    signal_victim(t, SIGKILL);
}

/* Rank 0 alone comes to the barrier: of the many that it waits for the last one is stopped. */
static void the_stopped_one_of_many_is_told(tt_ctx *t)
{
    join(t, t->limit_ms, NULL);
    all_have_begun(t);
    if (t->rank == victim_of(t))
        wait_for_the_end();
    if (t->rank == 0) {
        assert_int_equal(tutti_set_timeout(NULL, SEEN_MS), TUTTI_OK);
        signal_victim(t, SIGSTOP);
        assert_int_equal(tutti_barrier(NULL), TUTTI_E_TIMEOUT);
        expect_words("not arrived: ranks 1, 2, 3, 4, 5, 6;");
        expect_words("rank 6 (host ");
        expect_words("stopped by a signal");
    }
    part(t);
    signal_victim(t, SIGKILL);
}

/* Rank 1 waits for rank 0 of its host, which is well, and waits for the other host, where one is stopped: that one is told of
 * before rank 0's last call is, for what others are told is cut. */
static void the_stopped_one_of_another_host_comes_first(tt_ctx *t)
{
    const char *stopped, *waited_for;

    join(t, t->limit_ms, NULL);
    all_have_begun(t);
    if (t->rank == victim_of(t))
        wait_for_the_end();
    signal_victim(t, SIGSTOP);
    tt_post(t, 0);
    tt_await(t, 0, (uint32_t)t->size - 1);
    if (t->rank == 1)
        assert_int_equal(tutti_set_timeout(NULL, 20 * BEAT_MS), TUTTI_OK);
    assert_int_equal(tutti_barrier(NULL), TUTTI_E_TIMEOUT);
    expect_words("stopped by a signal");
    if (t->rank == 1) {
        expect_words("arrived but not finished: rank 0\n");
        stopped = strstr(tutti_last_error(), "rank 3 (host ");
        waited_for = strstr(tutti_last_error(), "rank 0 (host ");
        if (stopped == NULL || waited_for == NULL || stopped > waited_for)
            fail_msg("rank 3 does not come before rank 0: %s", tutti_last_error());
    }
    part(t);
    signal_victim(t, SIGKILL);
}

static void a_receive_from_anybody_names_the_silent(tt_ctx *t)
{
    float x = 1.0f;

    join(t, t->limit_ms, NULL);
    assert_int_equal(tutti_set_timeout(NULL, SEEN_MS), TUTTI_OK);
    all_have_begun(t);
    if (t->rank == victim_of(t))
        wait_for_the_end();
    signal_victim(t, SIGSTOP);
    assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), TUTTI_ANY_SOURCE, 9, NULL, NULL), TUTTI_E_TIMEOUT);
    expect_words("rank 3 (");
    expect_words("stopped");
    if (strcmp(t->transport, "shm") == 0) { /* the kernel of this host is asked; the step has the pid */
        expect_words("has been stopped by a signal for ");
        expect_words("\n  next: let rank 3 (host '");
        expect_words(") go on: kill -CONT");
    }
    part(t);
    signal_victim(t, SIGKILL);
}

static void too_long_a_silence_is_a_loss(tt_ctx *t)
{
    int64_t ms;

    join(t, t->limit_ms, "1500");
    all_have_begun(t);
    if (t->rank == victim_of(t))
        wait_for_the_end();
    signal_victim(t, SIGSTOP);
    assert_int_equal(wait_in_a_line(t), TUTTI_E_PEER);
    ms = ms_since_signal(t);
    assert_true(ms >= 1000 && ms < 2 * KNOWN_MS);
    expect_words("rank 3");
    expect_words("stopped");
    expect_words(strcmp(t->transport, "shm") == 0 ? "\n  next: let that rank go on: kill -CONT; " : "\n  next: see what holds that rank up");
    part(t);
    signal_victim(t, SIGKILL);
}

static void cut_the_network(void)
{
    if (system("ip link set tt0 down") != 0) {
        print_message("the machine refuses to take a link down\n");
        exit(TT_SKIPPED);
    }
}

/* Both sides say the same of each other: who took its own link down has nothing that waits for an answer. */
static void a_host_that_is_cut_off_is_unreachable(tt_ctx *t)
{
    const int other = (t->rank + 2) % t->size;
    float     x = 1.0f, y = 0.0f;

    join(t, t->limit_ms, NULL);
    if (t->rank < other) { /* so that there is a connection */
        assert_int_equal(tutti_send(TUTTI_SPAN(&x, 1), other, 5, NULL), TUTTI_OK);
    } else {
        assert_int_equal(tutti_recv(TUTTI_SPAN(&y, 1), other, 5, NULL, NULL), TUTTI_OK);
    }
    assert_int_equal(tutti_set_timeout(NULL, SEEN_MS), TUTTI_OK);
    all_have_begun(t);
    if (t->rank == victim_of(t))
        cut_the_network();
    tt_post(t, 0);
    tt_await(t, 0, (uint32_t)t->size);
    assert_int_equal(tutti_recv(TUTTI_SPAN(&y, 1), other, 7, NULL, NULL), TUTTI_E_TIMEOUT);
    expect_words("unreachable");
    tt_post(t, TOLD);
    tt_await(t, TOLD, (uint32_t)t->size);
    (void)tutti_destroy_process_group(NULL); /* without a network */
}

/* While rank 2 makes a group with all others its host, which is not the store's, has no way to anybody for a second: for its kernel
 * nothing can be reached then. The last rank, which is on that host, too, comes when there is a way again. */
static void a_way_that_is_lost_for_a_second_ends_no_group(tt_ctx *t)
{
    tutti_group *group = NULL;
    float        x = 1.0f;

    join(t, t->limit_ms, NULL);
    all_have_begun(t);
    if (t->rank == victim_of(t)) {
        pass_ms(BEAT_MS); /* so that the others wait already */
        cut_the_network();
        pass_ms(1000);
        assert_int_equal(system("ip link set tt0 up"), 0);
    }
    if (tutti_new_group(NULL, 0, NULL, &group) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, group), TUTTI_OK);
    assert_true(x == (float)t->size);
    assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_OK);
}

/* Silent for ten heartbeats, then it goes on, and so does everybody. */
static void who_was_stopped_goes_on(tt_ctx *t)
{
    float x = 1.0f;
    int   i;

    join(t, t->limit_ms, NULL);
    for (i = 0; i < 3; i++) {
        if (t->rank == victim_of(t))
            atomic_store(&t->marks[VICTIM_PID], (uint32_t)getpid());
        assert_int_equal(tutti_barrier(NULL), TUTTI_OK);
        signal_victim(t, SIGSTOP);
        if (t->rank == 0) {
            pass_ms(10 * BEAT_MS);
            signal_victim(t, SIGCONT);
        }
        x = 1.0f;
        assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL), TUTTI_OK);
        assert_true(x == (float)t->size);
    }
    assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_OK);
}

/* Who leaves ends nothing: two others go on talking in the world that it was in. */
static void who_has_left_ends_no_wait_of_others(tt_ctx *t)
{
    float x = (float)t->rank;

    join(t, t->limit_ms, NULL);
    if (t->rank == victim_of(t)) {
        assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_OK);
        tt_post(t, 0);
        return;
    }
    tt_await(t, 0, 1);
    if (t->rank == 1) {
        pass_ms(5 * BEAT_MS);
        assert_int_equal(tutti_send(TUTTI_SPAN(&x, 1), 0, 3, NULL), TUTTI_OK);
    } else if (t->rank == 0) {
        assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), 1, 3, NULL, NULL), TUTTI_OK);
        assert_true(x == 1.0f);
    }
    assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_OK);
}

/* ---- joining ---- */

/* Two processes believe to be rank 1, nobody is rank 2: who waits for that one is told what is wrong. */
static void a_rank_started_twice_is_told_to_all(tt_ctx *t)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    const int64_t      start = now_ms();
    char               url[512];

    snprintf(url, sizeof url, "file://%s/store", t->dir);
    opts.init_method = url;
    opts.rank = t->rank == 2 ? 1 : t->rank;
    opts.world_size = t->size;
    opts.timeout_ms = t->limit_ms / 2;
    assert_int_equal(tutti_init_process_group(&opts), TUTTI_E_ARG);
    assert_true(now_ms() - start < t->limit_ms / 3);
    expect_words("rank 1");
    expect_words("already");
}

static void another_world_size_is_told_to_all(tt_ctx *t)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    const int64_t      start = now_ms();
    char               url[512];

    snprintf(url, sizeof url, "file://%s/store", t->dir);
    opts.init_method = url;
    opts.rank = t->rank;
    opts.world_size = t->rank == 1 ? t->size + 1 : t->size;
    opts.timeout_ms = t->limit_ms / 2;
    assert_int_equal(tutti_init_process_group(&opts), TUTTI_E_MISMATCH);
    assert_true(now_ms() - start < t->limit_ms / 3);
    expect_words("world size");
    expect_words("rank 1");
}

int main(void)
{
    const tt_test tests[] = {
        TT_TEST(a_death_ends_the_waits_of_all, .name = "a_death_ends_the_waits_of_all_with_tls", .ranks = 4, .hosts = 2,
                .tls = true, .limit_ms = 30000, .dies = 3, .init = TT_INIT_NONE),
        TT_TEST(a_death_ends_the_waits_of_all, .ranks = 4, .transports = "shm,tcp", .limit_ms = 30000, .dies = 3,
                .init = TT_INIT_NONE, .waits = true),
        TT_TEST(a_death_ends_the_waits_of_all, .name = "a_death_ends_the_waits_of_all_on_two_hosts", .ranks = 4, .hosts = 2,
                .limit_ms = 30000, .dies = 3, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(the_cause_is_told, .ranks = 4, .limit_ms = 30000, .dies = 3, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(the_cause_is_told, .name = "the_cause_is_told_on_two_hosts", .ranks = 4, .hosts = 2, .limit_ms = 30000,
                .dies = 3, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(a_death_in_a_collective_tells_its_last_call, .ranks = 4, .transports = "shm,tcp", .limit_ms = 30000,
                .dies = 3, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(a_stopped_rank_is_named_as_such, .ranks = 4, .transports = "shm,tcp", .limit_ms = 30000, .dies = 3,
                .init = TT_INIT_NONE, .waits = true),
        TT_TEST(a_stopped_rank_is_named_as_such, .name = "a_stopped_rank_of_another_host_is_named", .ranks = 4, .hosts = 2,
                .limit_ms = 30000, .dies = 3, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(who_is_woken_is_not_told_how, .ranks = 3, .limit_ms = 30000, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(who_is_woken_is_not_told_how, .name = "who_is_woken_is_not_told_how_on_two_hosts", .ranks = 4, .hosts = 2, .limit_ms = 30000,
                .init = TT_INIT_NONE, .waits = true),
        TT_TEST(a_receive_from_anybody_names_the_silent, .ranks = 4, .transports = "shm,tcp", .limit_ms = 30000, .dies = 3,
                .init = TT_INIT_NONE, .waits = true),
        TT_TEST(a_short_time_out_asks_the_kernel, .ranks = 4, .limit_ms = 30000, .dies = 3, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(a_stopped_member_of_a_new_group_is_named, .ranks = 3, .transports = "shm,tcp", .limit_ms = 60000, .dies = 1,
                .init = TT_INIT_NONE, .waits = true),
        TT_TEST(a_stopped_member_of_a_new_group_is_named, .ranks = 4, .hosts = 2, .limit_ms = 60000, .dies = 1,
                .init = TT_INIT_NONE, .waits = true),
        TT_TEST(a_stopped_store_of_a_new_group_is_named, .ranks = 3, .transports = "shm,tcp", .limit_ms = 60000, .dies = 0,
                .init = TT_INIT_NONE, .waits = true),
        TT_TEST(a_stopped_store_of_a_new_group_is_named, .ranks = 4, .hosts = 2, .limit_ms = 60000, .dies = 0,
                .init = TT_INIT_NONE, .waits = true),
        TT_TEST(the_stopped_one_of_many_is_told, .ranks = 7, .limit_ms = 60000, .dies = 6, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(the_stopped_one_of_another_host_comes_first, .ranks = 4, .hosts = 2, .limit_ms = 60000, .dies = 3,
                .init = TT_INIT_NONE, .waits = true),
        TT_TEST(too_long_a_silence_is_a_loss, .ranks = 4, .transports = "shm,tcp", .limit_ms = 30000, .dies = 3,
                .init = TT_INIT_NONE, .waits = true),
        TT_TEST(too_long_a_silence_is_a_loss, .name = "too_long_a_silence_is_a_loss_on_two_hosts", .ranks = 4, .hosts = 2,
                .limit_ms = 30000, .dies = 3, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(a_way_that_is_lost_for_a_second_ends_no_group, .ranks = 4, .hosts = 2, .limit_ms = 60000, .init = TT_INIT_NONE,
                .waits = true),
        TT_TEST(a_host_that_is_cut_off_is_unreachable, .ranks = 4, .hosts = 2, .limit_ms = 30000, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(who_was_stopped_goes_on, .ranks = 4, .transports = "shm,tcp", .limit_ms = 30000, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(who_was_stopped_goes_on, .name = "who_was_stopped_goes_on_on_two_hosts", .ranks = 4, .hosts = 2,
                .limit_ms = 30000, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(who_has_left_ends_no_wait_of_others, .ranks = 4, .transports = "shm,tcp", .limit_ms = 30000,
                .init = TT_INIT_NONE, .waits = true),
        TT_TEST(a_rank_started_twice_is_told_to_all, .ranks = 3, .limit_ms = 40000, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(another_world_size_is_told_to_all, .ranks = 3, .limit_ms = 40000, .init = TT_INIT_NONE, .waits = true),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}

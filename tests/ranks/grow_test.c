/* SPDX-License-Identifier: BSD-3-Clause
 *
 * grow_test.c
 * Goal    processes come into a world that is at work: behind its members, also into the place of one that has died, and
 *         where the store has died as well; what fails leaves the world as it was.
 * Method  processes over shared memory and TCP; members and newcomers meet in a file store, or in the tcp store that rank 0
 *         serves. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "gone.h"
#include "harness/harness.h"
#include <tutti/tutti.h>

enum { MEMBERS = 3, PATH_BYTES = 4352, SHORT_MS = 1200, LATE_S = 6, BEGUN = 0, ENOUGH = 1 };
enum { ADDRESS_BYTES = 128 };

static bool said(const char *word)
{
    return strstr(tutti_last_error(), word) != NULL;
}

static void must(tutti_status st)
{
    if (st != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
}

static void expect_sum(tutti_group *group, int32_t mine, int32_t sum)
{
    must(tutti_all_reduce(TUTTI_SPAN(&mine, 1), TUTTI_SUM, group));
    assert_int_equal(mine, sum);
}

static tutti_store *open_store(tt_ctx *t)
{
    tutti_store *store = NULL;
    char         path[PATH_BYTES];

    snprintf(path, sizeof path, "%s/store", t->dir);
    must(tutti_file_store_open(path, -1, &store));
    return store;
}

/* The first MEMBERS ranks are one. */
static void found_world(tt_ctx *t, tutti_store *store, int64_t timeout_ms)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    opts.store = store;
    opts.rank = t->rank;
    opts.world_size = MEMBERS;
    opts.timeout_ms = timeout_ms;
    must(tutti_init_process_group(&opts));
}

/* The members have come, and nobody is inside the barrier any more: what ends the world from here on does not end that. */
static void members_have_begun(tt_ctx *t)
{
    must(tutti_barrier(NULL));
    tt_post(t, BEGUN);
    tt_await(t, BEGUN, MEMBERS);
}

static void come_in(tutti_store *store, tutti_group **world_out)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    opts.store = store;
    must(tutti_join_group(&opts, "crew", world_out));
}

static void two_come_in(tt_ctx *t)
{
    tutti_store *store = open_store(t);
    tutti_group *world = NULL;

    if (t->rank < MEMBERS) {
        found_world(t, store, 0);
        expect_sum(NULL, 1, MEMBERS);
        must(tutti_grow_group(NULL, "crew", 2, NULL, &world));
        assert_int_equal(tutti_get_rank(NULL), t->rank); /* members keep their ranks */
    } else {
        come_in(store, &world);
        assert_in_range(tutti_get_rank(NULL), MEMBERS, MEMBERS + 1);
    }
    assert_ptr_equal(tutti_find_group("0:grow"), world);
    assert_int_equal(tutti_get_world_size(NULL), MEMBERS + 2);
    expect_sum(NULL, tutti_get_rank(NULL), 10);
    must(tutti_barrier(NULL));
    must(tutti_destroy_process_group(NULL));
    tutti_store_close(store);
}

/* Rank 0 dies, another process takes part instead. */
static void one_is_replaced(tt_ctx *t)
{
    tutti_store *store = open_store(t);
    tutti_group *world = NULL;
    int32_t      x = 1;

    if (t->rank < MEMBERS) {
        found_world(t, store, 0);
        members_have_begun(t);
        if (t->rank == 0)
            kill(getpid(), SIGKILL);
        assert_int_not_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL), TUTTI_OK);
        must(tutti_shrink_group(NULL, 0, NULL, 0, NULL, &world));
        assert_int_equal(tutti_get_world_size(NULL), MEMBERS - 1);
        must(tutti_grow_group(NULL, "crew", 1, NULL, &world));
    } else {
        come_in(store, &world);
    }
    assert_int_equal(tutti_get_world_size(NULL), MEMBERS);
    expect_sum(NULL, tutti_get_rank(NULL), 3);
    expect_sum(NULL, t->rank, 1 + 2 + 3);
    must(tutti_barrier(NULL));
    must(tutti_destroy_process_group(NULL));
    tutti_store_close(store);
}

/* What is told of a number that stands behind word. */
static long number_behind(const char *word)
{
    const char *at = strstr(tutti_last_error(), word);

    return at != NULL ? strtol(at + strlen(word), NULL, 10) : -1;
}

/* The first MEMBERS ranks are one, which has met in a store that rank 0 serves, at an address that nobody else knows. */
static tutti_store *found_world_in_own_store(tt_ctx *t, tutti_store *board)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;
    tutti_store            *own = NULL;
    tutti_bytes             address = { 0 };
    char                    text[ADDRESS_BYTES];

    options.host = "127.0.0.1";
    options.is_master = t->rank == 0;
    if (t->rank > 0) {
        must(tutti_store_get(board, "first address", t->limit_ms, &address));
        options.port = atoi(address.data);
        tutti_bytes_free(&address);
    }
    must(tutti_tcp_store_open(&options, &own));
    snprintf(text, sizeof text, "%d", tutti_tcp_store_port(own));
    if (t->rank == 0)
        must(tutti_store_set(board, "first address", text, strlen(text) + 1));
    found_world(t, own, 0);
    return own;
}

/* Rank 0 dies, and the store with it. Nobody who is new could know where the fresh one is: who waits in vain is told, and tells. */
static tutti_store *lose_rank_0(tt_ctx *t, tutti_store *board)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_store        *own = found_world_in_own_store(t, board);
    tutti_group        *world = NULL;
    int32_t             x = 1;
    char                text[ADDRESS_BYTES];

    members_have_begun(t);
    if (t->rank == 0)
        kill(getpid(), SIGKILL);
    assert_int_not_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL), TUTTI_OK);
    must(tutti_shrink_group(NULL, 0, NULL, 0, NULL, &world));
    opts.timeout_ms = 4 * SHORT_MS;
    assert_int_equal(tutti_grow_group(NULL, "crew", 1, &opts, &world), TUTTI_E_TIMEOUT);
    if (!said("which rank 0 reaches at 127.0.0.1 port ") || number_behind("127.0.0.1 port ") != tutti_tcp_store_port(own))
        fail_msg("port %d is not in: %s", tutti_tcp_store_port(own), tutti_last_error());
    snprintf(text, sizeof text, "tcp://127.0.0.1:%ld", number_behind("127.0.0.1 port "));
    if (t->rank == 1)
        must(tutti_store_set(board, "fresh address", text, strlen(text) + 1));
    must(tutti_grow_group(NULL, "crew", 1, NULL, &world));
    return own;
}

static void the_fresh_store_is_told_of(tt_ctx *t)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_store       *board = open_store(t), *own = NULL;
    tutti_group       *world = NULL;
    tutti_bytes        address = { 0 };

    if (t->rank < MEMBERS) {
        own = lose_rank_0(t, board);
    } else {
        must(tutti_store_get(board, "fresh address", t->limit_ms, &address));
        opts.init_method = address.data;
        must(tutti_join_group(&opts, "crew", &world));
        tutti_bytes_free(&address);
    }
    assert_int_equal(tutti_get_world_size(NULL), MEMBERS);
    expect_sum(NULL, t->rank, 1 + 2 + 3);
    must(tutti_barrier(NULL));
    must(tutti_destroy_process_group(NULL));
    tutti_store_close(own);
    tutti_store_close(board);
}

/* How often words are in the text of the last failure. */
static int times_said(const char *words)
{
    const char *at = tutti_last_error();
    int         n = 0;

    while ((at = strstr(at, words)) != NULL) {
        n++;
        at += strlen(words);
    }
    return n;
}

/* How long rank 0 has waited, and of what: of all the members' time three quarters. */
static void expect_times(int64_t timeout_ms)
{
    const long waited = number_behind("asked to come in within "), of = number_behind(" of the ");

    if (of <= 0 || of > timeout_ms || waited != of / 4 * 3)
        fail_msg("%ld of %ld ms in: %s", waited, of, tutti_last_error());
}

/* Nobody comes: the world is as it was, and may ask again. All say why. */
static void nobody_comes(tt_ctx *t)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_store        *store = open_store(t);
    tutti_group        *world = NULL;

    found_world(t, store, 0);
    must(tutti_grow_group(NULL, NULL, 0, NULL, &world));
    assert_ptr_equal(world, tutti_current_group()); /* nobody has asked */
    opts.timeout_ms = 4 * SHORT_MS;                 /* a quarter of it is for telling the others */
    assert_int_equal(tutti_grow_group(NULL, NULL, 1, &opts, &world), TUTTI_E_TIMEOUT);
    assert_true(said("0 of 1 newcomers have asked"));
    assert_true(t->rank == 0 || said("rank 0 could not let anybody in"));
    assert_int_equal(times_said("grow_group:"), 1);
    assert_false(said("port")); /* a file has none */
    expect_times(opts.timeout_ms);
    assert_ptr_equal(world, TUTTI_NO_GROUP);
    expect_sum(NULL, 1, MEMBERS);
    must(tutti_barrier(NULL));
    must(tutti_destroy_process_group(NULL));
    tutti_store_close(store);
}

/* Rank 1 calls when the others do not yet: nobody comes, and rank 0 waits for that as long as rank 1 can wait for rank 0: so the
 * world is as it was, and nobody takes much longer than it may. */
static void members_come_at_different_times(tt_ctx *t)
{
    const struct timespec late = { .tv_sec = LATE_S };
    struct timespec       begin, end;
    tutti_group_options   opts = TUTTI_GROUP_OPTIONS;
    tutti_store          *store = open_store(t);
    tutti_group          *world = NULL;

    found_world(t, store, 0);
    members_have_begun(t);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (t->rank != 1)
        nanosleep(&late, NULL);
    opts.timeout_ms = 1000 * LATE_S * 2; /* three quarters of that, from when all are there, are longer than rank 1 has left */
    assert_int_equal(tutti_grow_group(NULL, NULL, 1, &opts, &world), TUTTI_E_TIMEOUT);
    assert_true(said("0 of 1 newcomers have asked"));
    clock_gettime(CLOCK_MONOTONIC, &end);
    assert_true(t->rank != 1 || end.tv_sec - begin.tv_sec <= LATE_S * 2 + 2);
    expect_sum(NULL, 1, MEMBERS);
    must(tutti_barrier(NULL));
    must(tutti_destroy_process_group(NULL));
    tutti_store_close(store);
}

/* The world's operations may take long, this call may not. */
static void rank_0_does_not_come(tt_ctx *t)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_store        *store = open_store(t);
    tutti_group        *world = NULL;

    found_world(t, store, 2 * t->limit_ms);
    members_have_begun(t);
    opts.timeout_ms = 2 * SHORT_MS; /* the other one has come by then, and rank 0 alone is missed */
    if (t->rank > 0) {
        assert_int_equal(tutti_grow_group(NULL, NULL, 1, &opts, &world), TUTTI_E_TIMEOUT);
        assert_true(said("rank 0"));
        tt_post(t, ENOUGH);
    }
    tt_await(t, ENOUGH, MEMBERS - 1);
    must(tutti_destroy_process_group(NULL));
    tutti_store_close(store);
}

static void expect_said(const char *word)
{
    if (!said(word))
        fail_msg("'%s' is not in: %s", word, tutti_last_error());
}

/* Nobody waits for newcomers, or for each other: all are told what two of them were given, and the world goes on. */
static void members_were_given_different_things(tt_ctx *t)
{
    tutti_store *store = open_store(t);
    tutti_group *world = NULL;

    found_world(t, store, 0);
    assert_int_equal(tutti_grow_group(NULL, "crew", t->rank == 1 ? 2 : 1, NULL, &world), TUTTI_E_MISMATCH);
    expect_said("rank 0 grow_group ('crew', 1 newcomer), rank 1 grow_group ('crew', 2 newcomers); the numbers of newcomers differ");
    assert_ptr_equal(world, TUTTI_NO_GROUP);
    assert_int_equal(tutti_grow_group(NULL, t->rank == 2 ? NULL : "crew", 0, NULL, &world), TUTTI_E_MISMATCH);
    expect_said("rank 0 grow_group ('crew', those that have asked), rank 2 grow_group ('default', those that have asked)");
    expect_said("the names differ");
    assert_int_equal(tutti_grow_group(NULL, NULL, t->rank == 0 ? 3 : -1, NULL, &world),
                     t->rank == 0 ? TUTTI_E_MISMATCH : TUTTI_E_ARG); /* wrong ones are told of as such */
    expect_said("n_new is -1");
    expect_sum(NULL, 1, MEMBERS);
    must(tutti_barrier(NULL));
    must(tutti_destroy_process_group(NULL));
    tutti_store_close(store);
}

/* One member calls something else: it is not told of a call of the library's that nobody knows. */
static void another_call(tt_ctx *t)
{
    tutti_store *store = open_store(t);
    tutti_group *world = NULL;
    tutti_status st;

    found_world(t, store, 0);
    members_have_begun(t);
    st = t->rank == 1 ? tutti_barrier(NULL) : tutti_grow_group(NULL, "crew", 2, NULL, &world);
    assert_int_equal(st, TUTTI_E_MISMATCH);
    expect_said("grow_group #2 (2 newcomers)");
    expect_said("barrier #2");
    assert_false(said("all_reduce"));
    tt_post(t, ENOUGH); /* who leaves does not wait for long until all have heard why */
    tt_await(t, ENOUGH, MEMBERS);
    must(tutti_destroy_process_group(NULL));
    tutti_store_close(store);
}

/* Rank 0 is killed while the others wait for what it has to say: they were in no broadcast that anybody has called. The last process is
 * no newcomer, and sees in the store that rank 0 looks for one. */
static void its_steps_are_not_told_of(tt_ctx *t)
{
    static const char *const looks[] = { "tutti/grow/crew/admitted" };
    tutti_store             *store = open_store(t);
    tutti_group             *world = NULL;
    char                     pid[24];
    tutti_bytes              first = { 0 };

    if (t->rank == MEMBERS) {
        must(tutti_store_wait(store, looks, 1, t->limit_ms));
        must(tutti_store_get(store, "first", t->limit_ms, &first));
        assert_int_equal(kill((pid_t)atoi(first.data), SIGKILL), 0);
        tutti_bytes_free(&first);
        tutti_store_close(store);
        return;
    }
    found_world(t, store, 0);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    if (t->rank == 0)
        must(tutti_store_set(store, "first", pid, strlen(pid)));
    must(tutti_barrier(NULL));
    assert_int_equal(tutti_grow_group(NULL, "crew", 1, NULL, &world), TUTTI_E_PEER);
    if (!said("grow_group #") || said("broadcast"))
        fail_msg("it says '%s'", tutti_last_error());
    if (strcmp(t->transport, "shm") == 0 && !said("; it last entered grow_group of the group called '")) /* and no all_reduce */
        fail_msg("of rank 0 it says '%s'", tutti_last_error());
    assert_int_equal(tutti_barrier(NULL), TUTTI_E_PEER); /* and what is said of it later */
    if (!said("grow_group #") || said("broadcast"))
        fail_msg("later it says '%s'", tutti_last_error());
    tt_post(t, ENOUGH);
    tt_await(t, ENOUGH, MEMBERS - 1); /* who ends before the other one has looked is lost as well */
    tutti_store_close(store);
}

static void wrong_calls(tt_ctx *t)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_group       *world = NULL, *part = NULL;
    char               name[80], url[PATH_BYTES + 64];

    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_int_equal(tutti_grow_group(t->group, NULL, -1, NULL, &world), TUTTI_E_ARG);
    assert_int_equal(tutti_grow_group(t->group, name, 1, NULL, &world), TUTTI_E_ARG);
    assert_true(said("longer than 64 bytes"));
    assert_int_equal(tutti_grow_group(t->group, NULL, 0, NULL, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_grow_group(TUTTI_NON_MEMBER, NULL, 0, NULL, &world), TUTTI_OK);
    assert_ptr_equal(world, TUTTI_NON_MEMBER);
    must(tutti_new_group(NULL, 0, NULL, &part));
    assert_int_equal(tutti_grow_group(part, NULL, 0, NULL, &world), TUTTI_E_UNSUPPORTED);
    opts.store = open_store(t);
    opts.timeout_ms = SHORT_MS / 4;
    assert_int_equal(tutti_join_group(&opts, "nobody", &world), TUTTI_E_TIMEOUT);
    assert_true(said("nobody has let this process in"));
    assert_int_equal(tutti_join_group(&opts, "", &world), TUTTI_E_ARG);
    tutti_store_close(opts.store);
    snprintf(url, sizeof url, "file://%s/store?rank=0&world_size=%d", t->dir, MEMBERS); /* as the members', for example */
    opts.store = NULL;
    opts.init_method = url;
    assert_int_equal(tutti_join_group(&opts, "nobody", &world), TUTTI_E_TIMEOUT);
    assert_true(said("nobody has let this process in"));
    must(tutti_barrier(t->group));
}

/* Rank 1 is stopped while the new world is made: the members of the old one know. */
static void a_member_is_stopped(tt_ctx *t)
{
    tutti_init_options  joins = TUTTI_INIT_OPTIONS;
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_store        *store = open_store(t);
    tutti_group        *world = NULL;
    pid_t               helper = 0;

    joins.store = store;
    joins.timeout_ms = opts.timeout_ms = 6 * SHORT_MS; /* three heartbeats, and more */
    if (t->rank == 1)
        assert_int_equal(setenv("TUTTI_LOG", "info", 1), 0);
    if (t->rank < MEMBERS) {
        found_world(t, store, 0);
        must(tutti_barrier(NULL));
    }
    tt_post(t, BEGUN);
    tt_await(t, BEGUN, MEMBERS + 1); /* a newcomer that is late would take from the time in which the stop is found */
    if (t->rank == 1) {
        helper = tt_wake_later(t, ENOUGH, MEMBERS); /* the other members, and the newcomer */
        must(tutti_log_set_sink("stop", tt_stop_when_met, NULL));
    }
    if (t->rank == 1)
        (void)tutti_grow_group(NULL, "crew", 1, &opts, &world); /* it may find all that the others have left for it */
    else if (t->rank < MEMBERS)
        assert_int_not_equal(tutti_grow_group(NULL, "crew", 1, &opts, &world), TUTTI_OK);
    else
        assert_int_not_equal(tutti_join_group(&joins, "crew", &world), TUTTI_OK);
    if (t->rank != 1 && t->rank < MEMBERS && (!said("rank 1 (host '") || !said("stopped") || !said("kill -CONT")))
        fail_msg("%s", tutti_last_error());
    if (t->rank == 1) {
        must(tutti_log_set_sink("stop", NULL, NULL));
        assert_int_equal(waitpid(helper, NULL, 0), helper);
    } else {
        tt_post(t, ENOUGH);
    }
    if (t->rank < MEMBERS)
        must(tutti_destroy_process_group(NULL));
    tutti_store_close(store);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(two_come_in, .ranks = MEMBERS + 2, .transports = "shm,tcp", .init = TT_INIT_NONE),
        TT_TEST(one_is_replaced, .ranks = MEMBERS + 1, .transports = "shm,tcp", .init = TT_INIT_NONE, .dies = 0),
        TT_TEST(the_fresh_store_is_told_of, .ranks = MEMBERS + 1, .transports = "shm,tcp", .init = TT_INIT_NONE, .dies = 0,
                .limit_ms = 60000),
        TT_TEST(nobody_comes, .ranks = MEMBERS, .init = TT_INIT_NONE),
        TT_TEST(members_come_at_different_times, .ranks = MEMBERS, .transports = "shm", .init = TT_INIT_NONE, .limit_ms = 40000),
        TT_TEST(rank_0_does_not_come, .ranks = MEMBERS, .transports = "shm,tcp", .init = TT_INIT_NONE),
        TT_TEST(members_were_given_different_things, .ranks = MEMBERS, .transports = "shm,tcp", .init = TT_INIT_NONE),
        TT_TEST(another_call, .ranks = MEMBERS, .transports = "shm,tcp", .init = TT_INIT_NONE),
        TT_TEST(its_steps_are_not_told_of, .ranks = MEMBERS + 1, .transports = "shm,tcp", .init = TT_INIT_NONE, .dies = 0),
        TT_TEST(a_member_is_stopped, .ranks = MEMBERS + 1, .transports = "shm,tcp", .init = TT_INIT_NONE),
        TT_TEST(wrong_calls, .transports = "shm,tcp"),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}

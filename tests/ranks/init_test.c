/* SPDX-License-Identifier: BSD-3-Clause
 *
 * init_test.c
 * Goal    joining between real processes: again and again on one port, two worlds at one port, with a late
 *         rank 0, after a failure, with two processes of the same rank, with one that dies while others are awaited, and
 *         between hosts without a secret.
 * Method  every body joins by itself; marks order what must not happen at once. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "harness/harness.h"
#include <tutti/private.h>
#include <tutti/tutti.h>

/* SHORT_MS is for who is there to be seen by the others, also where it gets no core for a while. */
enum { ROUNDS = 20, SHORT_MS = 1000, SOON_MS = 5000 };
enum { BEGUN = TT_MARKS - 1, DIED_AT = TT_MARKS - 2 }; /* marks */

/* The clock is the machine's, and the low bits of its ms are enough. */
static uint32_t moment(void)
{
    return (uint32_t)(tti_now_ns() / 1000000);
}

static tutti_status join(const char *url, int rank, int size, int64_t timeout_ms)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    opts.init_method = url;
    opts.rank = rank;
    opts.world_size = size;
    opts.timeout_ms = timeout_ms;
    return tutti_init_process_group(&opts);
}

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

/* Rank 0 serves the store and is the first to leave: nobody needs it any more by then. */
static void rank_0_leaves_at_once(tt_ctx *t)
{
    char url[64];
    int  i;

    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", t->port);
    for (i = 0; i < ROUNDS; i++) {
        OK(join(url, t->rank, t->size, t->limit_ms));
        OK(tutti_destroy_process_group(NULL));
        tt_post(t, i); /* all have left before the port is used again */
        tt_await(t, i, (uint32_t)t->size);
    }
}

/* Two worlds at once, both served at one port by rank 0: they share its server, which lives as long
 * as the longer one, though the other started it. */
static void two_worlds_share_a_port(tt_ctx *t)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_group       *first = NULL, *second = NULL;
    float              x = 1.0f, y = 2.0f;
    char               url[64];

    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", t->port);
    opts.init_method = url;
    opts.rank = t->rank;
    opts.world_size = t->size;
    opts.timeout_ms = t->limit_ms;
    OK(tutti_create_process_group(&opts, &first));
    OK(tutti_create_process_group(&opts, &second));
    OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, first));
    OK(tutti_all_reduce(TUTTI_SPAN(&y, 1), TUTTI_SUM, second));
    OK(tutti_destroy_process_group(first));
    OK(tutti_all_reduce(TUTTI_SPAN(&y, 1), TUTTI_SUM, second));
    OK(tutti_destroy_process_group(second));
    assert_true(x == (float)t->size);
    assert_true(y == 2.0f * (float)t->size * (float)t->size);
}

static void file_url(const tt_ctx *t, char *out, size_t bytes)
{
    snprintf(out, bytes, "file://%s/store", t->dir);
}

static void works(const tt_ctx *t)
{
    float x = 1.0f;

    OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL));
    assert_true(x == (float)t->size);
    OK(tutti_destroy_process_group(NULL));
}

static void rank_0_comes_late(tt_ctx *t)
{
    char url[512];

    file_url(t, url, sizeof url);
    if (t->rank == 1) {
        assert_int_equal(join(url, 1, t->size, SHORT_MS), TUTTI_E_TIMEOUT);
        assert_non_null(strstr(tutti_last_error(), "rank 0 did not come"));
        tt_post(t, 0);
    } else {
        tt_await(t, 0, 1);
    }
    OK(join(url, t->rank, t->size, t->limit_ms));
    works(t);
}

static void a_failed_join_is_repeated(tt_ctx *t)
{
    char url[512];

    file_url(t, url, sizeof url);
    if (t->rank == 2) {
        tt_await(t, 0, 2);
    } else {
        tt_post(t, BEGUN);
        tt_await(t, BEGUN, 2);
        assert_int_equal(join(url, t->rank, t->size, SHORT_MS), TUTTI_E_TIMEOUT);
        assert_non_null(strstr(tutti_last_error(), t->rank == 0 ? "rank" : "did not come"));
        tt_post(t, 0);
        tt_await(t, 0, 2);
    }
    OK(join(url, t->rank, t->size, t->limit_ms));
    works(t);
}

/* The world of two; the third process believes to be rank 1, too. */
static void two_processes_of_one_rank(tt_ctx *t)
{
    const int size = 2;
    char      url[512];

    file_url(t, url, sizeof url);
    if (t->rank == 2) {
        tt_await(t, 0, 2);
        assert_int_equal(join(url, 1, size, t->limit_ms), TUTTI_E_ARG);
        assert_non_null(strstr(tutti_last_error(), "rank 1 has joined this world already"));
        tt_post(t, 1);
        return;
    }
    OK(join(url, t->rank, size, t->limit_ms));
    tt_post(t, 0);
    tt_await(t, 1, 1);
    OK(tutti_barrier(NULL));
    OK(tutti_destroy_process_group(NULL));
}

/* Neither the server nor a client goes without a secret; told to, both do. */
static void hosts_need_a_secret(tt_ctx *t)
{
    assert_int_equal(unsetenv("TUTTI_SECRET_FILE"), 0);
    assert_int_equal(join(t->init_method, 0, 0, t->limit_ms), TUTTI_E_AUTH);
    assert_non_null(strstr(tutti_last_error(), "TUTTI_SECRET_FILE"));
    assert_non_null(strstr(tutti_last_error(), t->rank == 0 ? "will not serve a store at" : "will not speak to store"));
    assert_int_equal(setenv("TUTTI_AUTH", "none", 1), 0);
    OK(join(t->init_method, 0, 0, t->limit_ms));
    works(t);
}

/* Rank 1 has a secret, rank 0 has none: rank 1 is told at once, and rank 0, which waits for it in vain, says whom its store has seen
 * go. Then both have none. */
static void one_has_a_secret(tt_ctx *t)
{
    char file[] = "/tmp/tutti-secret-XXXXXX", key[65];
    char url[64];
    int  fd;

    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", t->port);
    memset(key, 'a', sizeof key - 1);
    key[sizeof key - 1] = '\n';
    if (t->rank == 1) {
        fd = mkstemp(file);
        assert_true(fd >= 0 && write(fd, key, sizeof key) == (ssize_t)sizeof key && close(fd) == 0);
        assert_int_equal(setenv("TUTTI_SECRET_FILE", file, 1), 0);
        assert_int_equal(join(url, t->rank, t->size, t->limit_ms), TUTTI_E_AUTH);
        assert_int_equal(unlink(file), 0);
        assert_int_equal(unsetenv("TUTTI_SECRET_FILE"), 0);
        tt_post(t, 0);
        tt_await(t, 1, 1);
        OK(join(url, t->rank, t->size, t->limit_ms));
        works(t);
        return;
    }
    assert_int_equal(join(url, t->rank, t->size, t->limit_ms / 3), TUTTI_E_TIMEOUT);
    if (strstr(tutti_last_error(), "; the store here has turned away the client at 127.0.0.1") == NULL ||
        strstr(tutti_last_error(), "which left when it saw that there is no secret here") == NULL ||
        strstr(tutti_last_error(), "; if that is of this job, give all processes the same TUTTI_SECRET_FILE") == NULL)
        fail_msg("it says '%s'", tutti_last_error());
    tt_await(t, 0, 1);
    tt_post(t, 1);
    OK(join(url, t->rank, t->size, t->limit_ms));
    works(t);
}

/* Until this rank waits for others, as far as the store can tell. */
static void *die_when_it_has_come(void *ctx)
{
    const tt_ctx           *t = ctx;
    tutti_tcp_store_options opts = TUTTI_TCP_STORE_OPTIONS;
    tutti_store            *store = NULL;
    tutti_bytes             card = { .data = NULL };

    opts.host = "127.0.0.1";
    opts.port = t->port;
    if (tutti_tcp_store_open(&opts, &store) == TUTTI_OK &&
        tutti_store_get(store, "default_pg/0//cpu//card/1", t->limit_ms, &card) == TUTTI_OK) {
        atomic_store(&t->marks[DIED_AT], moment());
        tt_die();
    }
    return NULL;
}

/* Rank 2 does not come. Rank 1 dies, of which no launcher tells, and rank 0 has no connection to it: the store has. */
static void a_death_is_told_by_the_store(tt_ctx *t)
{
    pthread_t death;
    char      url[64];

    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", t->port);
    if (t->rank == 1)
        assert_int_equal(pthread_create(&death, NULL, die_when_it_has_come, t), 0);
    if (t->rank == 2) {
        tt_await(t, 0, 1);
        return;
    }
    assert_int_equal(join(url, t->rank, t->size, t->limit_ms), TUTTI_E_PEER);
    if (strstr(tutti_last_error(), "rank 1 (host '") == NULL)
        fail_msg("%s", tutti_last_error());
    assert_true(moment() - atomic_load(&t->marks[DIED_AT]) < SOON_MS);
    tt_post(t, 0);
}

/* Rank 0 waits for rank 1, which was started as rank 0, too: both are told, long before their time is up. */
static void two_processes_of_rank_0(tt_ctx *t)
{
    char url[64];

    snprintf(url, sizeof url, "tcp://%s:%d", t->addr, t->port);
    assert_int_equal(join(url, 0, 2, 10 * t->limit_ms), TUTTI_E_ARG);
    if (strstr(tutti_last_error(), "rank 0 has joined this world already: pid ") == NULL ||
        strstr(tutti_last_error(), "\n  next: ") == NULL)
        fail_msg("%s", tutti_last_error());
}

/* The store at the port outlives the world of rank 0, which is dead: that is no second rank 0. */
static void *die_when_the_world_is_open(void *ctx)
{
    const tt_ctx           *t = ctx;
    tutti_tcp_store_options opts = TUTTI_TCP_STORE_OPTIONS;
    tutti_store            *store = NULL;
    tutti_bytes             size = { .data = NULL };

    opts.host = "127.0.0.1";
    opts.port = t->port;
    if (tutti_tcp_store_open(&opts, &store) == TUTTI_OK &&
        tutti_store_get(store, "tutti/world/1", t->limit_ms, &size) == TUTTI_OK)
        tt_die();
    return NULL;
}

static void a_store_that_stays_is_no_rank_0(tt_ctx *t)
{
    tutti_tcp_store_options at = TUTTI_TCP_STORE_OPTIONS;
    tutti_init_options      opts = TUTTI_INIT_OPTIONS;
    tutti_store            *store = NULL;
    pthread_t               death;
    char                    url[64];
    tutti_status            st;

    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", t->port);
    at.host = "127.0.0.1";
    at.port = t->port;
    at.is_master = t->rank == 1;
    if (t->rank == 1) {
        OK(tutti_tcp_store_open(&at, &store));
        tt_post(t, 0);
        tt_await(t, 1, 1);
        tutti_store_close(store);
    } else if (t->rank == 0) {
        tt_await(t, 0, 1);
        OK(tutti_tcp_store_open(&at, &store));
        opts.store = store;
        opts.rank = 0;
        opts.world_size = 2;
        assert_int_equal(pthread_create(&death, NULL, die_when_the_world_is_open, t), 0);
        (void)tutti_init_process_group(&opts);
        (void)pthread_join(death, NULL);
    } else {
        OK(tutti_tcp_store_open(&at, &store));
        OK(tutti_store_wait(store, (const char *const[]){ "tutti/world/1" }, 1, t->limit_ms));
        while ((st = join(url, 0, 2, t->limit_ms)) == TUTTI_E_ARG) /* it has yet to die */
            continue;
        tutti_store_close(store);
        assert_int_equal(st, TUTTI_E_NETWORK);
        tt_post(t, 1);
    }
}

/* One backend is looked for inside of the other's part of the store: neither would ever find the other. */
static void backends_differ(tt_ctx *t)
{
    static const char words[] = "rank 1 was started with backend 'cpu:%s,cuda:%s', rank 0 with 'cpu:%s,cuda:%s'";
    char              url[512], expected[200];
    int               round;

    file_url(t, url, sizeof url);
    for (round = 0; round < 2; round++) {
        const char *const of[] = { round == 0 ? "native" : "debug-native", round == 0 ? "debug-native" : "native" };

        setenv("TUTTI_BACKEND", of[t->rank], 1);
        assert_int_equal(join(url, t->rank, t->size, t->limit_ms), TUTTI_E_MISMATCH);
        snprintf(expected, sizeof expected, words, of[1], of[1], of[0], of[0]);
        if (strstr(tutti_last_error(), expected) == NULL)
            fail_msg("'%s' is not in: %s", expected, tutti_last_error());
        tt_post(t, round);
        tt_await(t, round, (uint32_t)t->size);
    }
    unsetenv("TUTTI_BACKEND");
    OK(join(url, t->rank, t->size, t->limit_ms));
    works(t);
}

/* Either one's turn to look inside of the other's part of the store; what is called next makes the same group on both. */
static void backends_of_a_group_differ(tt_ctx *t)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;
    char                url[512];
    float               x = 1.0f;
    int                 round;

    file_url(t, url, sizeof url);
    OK(join(url, t->rank, t->size, t->limit_ms));
    for (round = 0; round < 2; round++) {
        opts.backend = t->rank == round ? "native" : "debug-native";
        assert_int_equal(tutti_new_group(NULL, 0, &opts, &group), TUTTI_E_MISMATCH);
        assert_non_null(strstr(tutti_last_error(), "'cpu:native,cuda:native'"));
        assert_non_null(strstr(tutti_last_error(), "'cpu:debug-native,cuda:debug-native'"));
    }
    opts.backend = "debug-native";
    OK(tutti_new_group(NULL, 0, &opts, &group));
    OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, group));
    assert_true(x == (float)t->size);
    OK(tutti_destroy_process_group(NULL));
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(rank_0_leaves_at_once, .ranks = 3, .transports = "shm,tcp", .init = TT_INIT_NONE),
        TT_TEST(two_worlds_share_a_port, .ranks = 3, .transports = "shm,tcp", .init = TT_INIT_NONE),
        TT_TEST(rank_0_comes_late, .ranks = 2, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(a_failed_join_is_repeated, .ranks = 3, .transports = "shm,tcp", .init = TT_INIT_NONE, .waits = true),
        TT_TEST(two_processes_of_one_rank, .ranks = 3, .init = TT_INIT_NONE),
        TT_TEST(two_processes_of_rank_0, .ranks = 2, .init = TT_INIT_NONE),
        TT_TEST(two_processes_of_rank_0, .ranks = 2, .hosts = 2, .init = TT_INIT_NONE),
        TT_TEST(a_store_that_stays_is_no_rank_0, .ranks = 3, .dies = 0, .init = TT_INIT_NONE),
        TT_TEST(a_death_is_told_by_the_store, .ranks = 3, .transports = "shm,tcp", .dies = 1, .init = TT_INIT_NONE),
        TT_TEST(backends_differ, .ranks = 2, .init = TT_INIT_NONE),
        TT_TEST(backends_of_a_group_differ, .ranks = 2, .init = TT_INIT_NONE),
        TT_TEST(one_has_a_secret, .ranks = 2, .init = TT_INIT_NONE),
        TT_TEST(hosts_need_a_secret, .ranks = 2, .hosts = 2, .init = TT_INIT_NONE),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}

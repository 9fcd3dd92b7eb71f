/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group_test.c
 * Goal    worlds and groups are made, named, numbered and ended as promised, and NULL means the right
 *         one on every thread.
 * Method  ranks as threads, and the process's world over an explicit store. */
#include "fake_backend.h"
#include "watch/bulletin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/debug.h>
#include <tutti/private.h>
#include <tutti/plugin/store.h>

enum { LONG_MS = 30000, SHORT_MS = 300 };

static int setup(void **state)
{
    (void)state;
    fake_reset();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return fake_failures() + fake_alive() + tutti_is_initialized();
}

static bool said(const char *word)
{
    return strstr(tutti_last_error(), word) != NULL;
}

/* ---- new_group ---- */

static void numbering(fake_rank *r)
{
    const int    pair[] = { 2, 0 };
    const int    solo[] = { 1 };
    tutti_group *a = NULL;
    tutti_group *b = NULL;
    tutti_group *all = NULL;

    CHECK(tutti_new_group(pair, 2, NULL, &a) == TUTTI_OK);
    CHECK(tutti_new_group(solo, 1, NULL, &b) == TUTTI_OK);
    CHECK(tutti_new_group(NULL, 0, NULL, &all) == TUTTI_OK);
    CHECK(strcmp(all->name, "3") == 0 && all->id == 3); /* counted by non-members too */
    CHECK(all->size == 3 && tutti_get_rank(all) == r->rank);
    if (r->rank == 1) {
        CHECK(a == TUTTI_NON_MEMBER);
        CHECK(strcmp(b->name, "2") == 0 && tutti_get_rank(b) == 0);
    } else {
        CHECK(b == TUTTI_NON_MEMBER);
        CHECK(strcmp(a->name, "1") == 0);
        CHECK(tutti_get_rank(a) == r->rank / 2); /* sorted: 0 is group rank 0 */
        CHECK(tutti_get_world_size(a) == 2);
        CHECK(tutti_get_global_rank(a, 1) == 2 && tutti_get_global_rank(a, 2) == -1);
        CHECK(tutti_get_group_rank(a, 2) == 1 && tutti_get_group_rank(a, 1) == -1);
        CHECK(tutti_destroy_process_group(a) == TUTTI_OK); /* one by itself */
    }
    CHECK(tutti_barrier(all) == TUTTI_OK);
}

static void test_numbering(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(3, numbering, NULL), 0);
}

/* What NULL means, as an object; 0 as a world's time-out is the environment's, also where that is none. */
static void current_group(fake_rank *r)
{
    const int    all[] = { 0, 1 };
    tutti_group *group = NULL;

    CHECK(tutti_current_group() == r->world);
    CHECK(tutti_new_group(all, 2, NULL, &group) == TUTTI_OK);
    tutti_use_group(group);
    CHECK(tutti_current_group() == group);
    tutti_use_group(TUTTI_NON_MEMBER);
    CHECK(tutti_current_group() == NULL);
    tutti_use_group(r->world);
    CHECK(tutti_set_timeout(NULL, 0) == TUTTI_OK && r->world->timeout_ms == TUTTI_INFINITE);
    CHECK(tutti_destroy_process_group(group) == TUTTI_OK);
}

static void test_current_group(void **state)
{
    (void)state;
    setenv("TUTTI_TIMEOUT_MS", "-1", 1);
    assert_int_equal(fake_ranks(2, current_group, NULL), 0);
    unsetenv("TUTTI_TIMEOUT_MS");
    assert_null(tutti_current_group());
}

/* All hosts have the same mistake: none may wait for another, which has ended because of it. */
static void test_wrong_environment_waits_for_nobody(void **state)
{
    static const char *const wrong[][2] = {
        { "TUTTI_TRANSPORT", "tpc" }, { "TUTTI_TCP_STRIPES", "9" }, { "TUTTI_PORT_RANGE", "20000" }, { "TUTTI_LISTEN", "all" },
    };
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_group       *group = NULL;
    size_t             i;

    (void)state;
    opts.init_method = "tcp://127.0.0.1:1"; /* nobody serves there */
    opts.rank = 1;
    opts.world_size = 2;
    opts.timeout_ms = SHORT_MS;
    for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        setenv(wrong[i][0], wrong[i][1], 1);
        assert_int_equal(tutti_create_process_group(&opts, &group), TUTTI_E_ARG);
        assert_non_null(strstr(tutti_last_error(), wrong[i][0]));
        unsetenv(wrong[i][0]);
    }
    assert_int_equal(tutti_create_process_group(&opts, &group), TUTTI_E_NETWORK); /* else it goes on to look for rank 0 */
    assert_null(group);
}

static void refused(fake_rank *r)
{
    const int           twice[] = { 0, 1, 0 };
    const int           outside[] = { 0, 3 };
    const int           negative[] = { -1 };
    const int           many[] = { 0, 1, 2, 0 };
    tutti_group_options raw = { 0 };
    tutti_group_options late = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;
    struct {
        tutti_group_options known;
        bool                unknown;
    } newer = { .known = TUTTI_GROUP_OPTIONS };

    CHECK(tutti_new_group(twice, 3, NULL, &group) == TUTTI_E_ARG && said("rank 0 is there twice"));
    CHECK(group == TUTTI_NO_GROUP);
    CHECK(tutti_new_group(outside, 2, NULL, &group) == TUTTI_E_ARG && said("rank 3 is outside"));
    CHECK(tutti_new_group(negative, 1, NULL, &group) == TUTTI_E_ARG && said("rank -1"));
    CHECK(tutti_new_group(many, 4, NULL, &group) == TUTTI_E_ARG && said("the world has 3"));
    CHECK(tutti_new_group(twice, 0, NULL, &group) == TUTTI_E_ARG && said("empty"));
    CHECK(tutti_new_group(NULL, 2, NULL, &group) == TUTTI_E_ARG && said("NULL"));
    CHECK(tutti_new_group(NULL, 0, NULL, NULL) == TUTTI_E_ARG && said("group_out"));
    CHECK(tutti_new_group(NULL, 0, &raw, &group) == TUTTI_E_ARG && said("TUTTI_GROUP_OPTIONS"));
    late.timeout_ms = -2;
    CHECK(tutti_new_group(NULL, 0, &late, &group) == TUTTI_E_ARG && said("timeout_ms is -2"));
    newer.known.size = sizeof newer;
    newer.known.use_local_synchronization = newer.unknown = true;
    CHECK(tutti_new_group(NULL, 0, &newer.known, &group) == TUTTI_E_UNSUPPORTED); /* local: nobody counts it */
    CHECK(tutti_new_group(NULL, 0, NULL, &group) == TUTTI_OK);
    CHECK(strcmp(group->name, "9") == 0); /* what was refused has its number, but for a call without an output: others may have made it */
    CHECK(r->world->children == group);
}

static void test_refused(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(3, refused, NULL), 0);
}

/* A member that does not come: the others' creation ends in time, and nothing is left. */
static void missing_member(fake_rank *r)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;

    if (r->rank == 0)
        return;
    opts.timeout_ms = SHORT_MS;
    CHECK(tutti_new_group(NULL, 0, &opts, &group) == TUTTI_E_TIMEOUT);
    CHECK(said("did not come"));
    CHECK(group == TUTTI_NO_GROUP && r->world->children == NULL);
}

static void test_missing_member(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(2, missing_member, NULL), 0);
}

static void test_group_options(void **state)
{
    tutti_group        *world = fake_world_of_one(LONG_MS);
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *plain = NULL;
    tutti_group        *own = NULL;

    (void)state;
    assert_int_equal(tti_group_create(world, NULL, 0, NULL, &plain), TUTTI_OK);
    assert_int_equal(plain->timeout_ms, LONG_MS);
    opts.timeout_ms = TUTTI_INFINITE;
    opts.desc = "data parallel";
    assert_int_equal(tti_group_create(world, NULL, 0, &opts, &own), TUTTI_OK);
    assert_int_equal(own->timeout_ms, TUTTI_INFINITE);
    assert_int_equal(fake_create_timeout_ms(), -1);
    assert_string_equal(own->desc, "data parallel");
    assert_string_equal(fake_create_host(), "127.0.0.1");
    tutti_destroy_process_group(world);
}

/* 0 is the world's for a group, and for a world what joining would take: no limit, too. */
static void test_default_timeouts(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    tutti_group *group = NULL;

    (void)state;
    assert_int_equal(tti_group_create(world, NULL, 0, NULL, &group), TUTTI_OK);
    assert_int_equal(tutti_set_timeout(group, SHORT_MS), TUTTI_OK);
    assert_int_equal(tutti_set_timeout(group, 0), TUTTI_OK);
    assert_int_equal(group->timeout_ms, LONG_MS);
    assert_int_equal(setenv("TUTTI_TIMEOUT_MS", "-1", 1), 0);
    assert_int_equal(tutti_set_timeout(world, 0), TUTTI_OK);
    assert_int_equal(world->timeout_ms, TUTTI_INFINITE);
    assert_int_equal(setenv("TUTTI_TIMEOUT_MS", "0", 1), 0);
    assert_int_equal(tutti_set_timeout(world, 0), TUTTI_E_ARG);
    assert_int_equal(world->timeout_ms, TUTTI_INFINITE);
    assert_int_equal(unsetenv("TUTTI_TIMEOUT_MS"), 0);
    tutti_destroy_process_group(world);
}

/* ---- option structs of other versions ---- */

typedef struct newer_options {
    tutti_init_options known;
    int64_t            field;
} newer_options;

static void test_options_of_other_versions(void **state)
{
    tutti_init_options older = TUTTI_INIT_OPTIONS;
    tutti_init_options known = TUTTI_INIT_OPTIONS;
    newer_options      newer = { .known = TUTTI_INIT_OPTIONS };

    (void)state;
    older.size = offsetof(tutti_init_options, timeout_ms);
    older.rank = 3;
    older.timeout_ms = 77; /* beyond what that version has */
    assert_int_equal(tti_options_read(&known, sizeof known, &older, "X"), TUTTI_OK);
    assert_int_equal(known.rank, 3);
    assert_int_equal(known.timeout_ms, 0);
    newer.known.size = sizeof newer;
    assert_int_equal(tti_options_read(&known, sizeof known, &newer, "X"), TUTTI_OK);
    newer.field = 1;
    assert_int_equal(tti_options_read(&known, sizeof known, &newer, "X"), TUTTI_E_UNSUPPORTED);
    newer.known.size = 1 << 20;
    assert_int_equal(tti_options_read(&known, sizeof known, &newer, "MACRO"), TUTTI_E_ARG);
    assert_true(said("MACRO"));
}

/* ---- keys ---- */

static bool has(tutti_store *store, const char *key)
{
    bool all = false;

    assert_int_equal(tutti_store_check(store, &key, 1, &all), TUTTI_OK);
    return all;
}

static void join_once(tutti_store *store, bool user_store)
{
    tti_port          *port = tti_port_system();
    tutti_group       *world = NULL;
    tutti_group       *child = NULL;
    tti_join           join = { .store = store,
                                .user_store = user_store,
                                .world_size = 1,
                                .timeout_ms = LONG_MS,
                                .deadline_ns = tti_deadline(port, LONG_MS, 0),
                                .listen_host = "127.0.0.1" };

    assert_int_equal(tti_world_create(port, &(tti_backing){ .ops = &fake_ops }, &join, &world), TUTTI_OK);
    assert_int_equal(tti_group_create(world, NULL, 0, NULL, &child), TUTTI_OK);
    tutti_use_group(world);
    tutti_destroy_process_group(world);
}

static void test_key_layout(void **state)
{
    tutti_store *store = NULL;

    (void)state;
    assert_int_equal(tutti_hash_store_open(&store), TUTTI_OK);
    join_once(store, false);
    assert_true(has(store, "default_pg/0//cpu//hello"));
    assert_true(has(store, "default_pg/0//1//cpu//hello"));
    assert_false(has(store, "default_pg.2/0//cpu//hello"));
    join_once(store, false); /* a second world on the same store meets none of the first */
    assert_true(has(store, "default_pg.2/0//cpu//hello"));
    assert_true(has(store, "default_pg.2/0//1//cpu//hello"));
    tutti_store_close(store);

    assert_int_equal(tutti_hash_store_open(&store), TUTTI_OK);
    join_once(store, true);
    assert_true(has(store, "0//cpu//hello"));
    tutti_store_close(store);
}

/* A world that is not complete ends in time, with the words of the backend; the next try reads nothing of
 * it. */
static void test_incomplete_world(void **state)
{
    tutti_store *store = NULL;
    tutti_group *world = NULL;

    (void)state;
    assert_int_equal(tutti_hash_store_open(&store), TUTTI_OK);
    assert_int_equal(fake_world(store, 0, 2, SHORT_MS, &world), TUTTI_E_TIMEOUT);
    assert_true(said("somebody did not come"));
    assert_null(world);
    assert_in_range(fake_create_timeout_ms(), 1, SHORT_MS);
    assert_false(has(store, "default_pg.2/0//cpu//hello"));
    assert_int_equal(fake_world(store, 0, 2, SHORT_MS, &world), TUTTI_E_TIMEOUT);
    assert_true(has(store, "default_pg.2/0//cpu//hello"));
    tutti_store_close(store);
}

/* Ranks that were started with different sizes: those that differ from rank 0 say so. */
static void test_sizes_differ(void **state)
{
    tutti_store *store = NULL;
    tutti_group *world = NULL;

    (void)state;
    assert_int_equal(tutti_hash_store_open(&store), TUTTI_OK);
    assert_int_equal(tutti_store_set(store, "tutti/world/1", "3", 1), TUTTI_OK);
    assert_int_equal(fake_world(store, 1, 2, LONG_MS, &world), TUTTI_E_MISMATCH);
    assert_true(said("rank 1 was started with world size 2, rank 0 with 3"));
    tutti_store_close(store);
}

/* As for a large group with members that are stopped. */
static tutti_status wordy_create(const tutti_backend_config *config, tutti_backend **backend_out)
{
    char   lines[1400] = "";
    size_t used = 0;
    int    i;

    (void)config;
    (void)backend_out;
    for (i = 0; used < sizeof lines - 100; i++)
        used += (size_t)snprintf(lines + used, sizeof lines - used, "\n  rank %d has been stopped by a signal", i);
    return tti_fail(TUTTI_E_TIMEOUT, "group '%s' timed out%s\n  next: let rank 0 go on", "0", lines);
}

/* On its way to the program a failure is kept, and said again, a few times: all of it. */
static void test_long_words_are_kept(void **state)
{
    tutti_backend_ops ops = fake_ops;
    tutti_store      *store = NULL;
    tutti_group      *world = NULL;
    tti_join          join = { .user_store = true, .world_size = 1, .timeout_ms = LONG_MS,
                               .deadline_ns = tti_deadline(tti_port_system(), LONG_MS, -1), .listen_host = "127.0.0.1" };

    (void)state;
    ops.name = "wordy";
    ops.create = wordy_create;
    assert_int_equal(tutti_hash_store_open(&store), TUTTI_OK);
    join.store = store;
    assert_int_equal(tti_world_create(tti_port_system(), &(tti_backing){ .ops = &ops }, &join, &world), TUTTI_E_TIMEOUT);
    assert_true(said("\n  next: let rank 0 go on"));
    tutti_store_close(store);
}

/* Nobody sets the key: it waits as a plug-in does for those who do not come. */
static tutti_status waiting_create(const tutti_backend_config *config, tutti_backend **backend_out)
{
    (void)backend_out;
    return tutti_store_wait(config->store, (const char *const[]){ "never" }, 1, config->timeout_ms);
}

typedef struct waiting_rank {
    tutti_store *store;
    tutti_status status;
    bool         said;
} waiting_rank;

static void wait_as_rank_0(void *arg)
{
    waiting_rank     *waiting = arg;
    tutti_backend_ops ops = fake_ops;
    tutti_group      *world = NULL;
    tti_join          join = { .store = waiting->store, .user_store = true, .world_size = 2, .timeout_ms = LONG_MS,
                               .deadline_ns = tti_deadline(tti_port_system(), LONG_MS, -1), .listen_host = "127.0.0.1" };

    ops.name = "waiting";
    ops.create = waiting_create;
    waiting->status = tti_world_create(tti_port_system(), &(tti_backing){ .ops = &ops }, &join, &world);
    waiting->said = said("rank 1 was started with backend 'cpu:fake', rank 0 with 'cpu:waiting'");
}

/* Ranks that were started with different backends: who differs from rank 0 says so, and rank 0 hears of it, though its backend
 * is a program's, which looks for no such words. */
static void test_backends_differ(void **state)
{
    waiting_rank waiting = { .status = TUTTI_OK };
    tutti_group *world = NULL;
    tti_thread   thread = { 0 };

    (void)state;
    assert_int_equal(tutti_hash_store_open(&waiting.store), TUTTI_OK);
    assert_int_equal(tti_thread_start(&thread, "rank-0", wait_as_rank_0, &waiting), TUTTI_OK);
    assert_int_equal(fake_world(waiting.store, 1, 2, LONG_MS, &world), TUTTI_E_MISMATCH);
    assert_true(said("rank 1 was started with backend 'cpu:fake', rank 0 with 'cpu:waiting'"));
    tti_thread_join(&thread);
    assert_int_equal(waiting.status, TUTTI_E_MISMATCH);
    assert_true(waiting.said);
    tutti_store_close(waiting.store);
}

/* The least that a store may be: here with the entries of a hash store. */
typedef struct plain_store {
    tutti_store  base;
    tutti_store *inner;
} plain_store;

static tutti_status plain_set(tutti_store *store, const char *key, const void *val, size_t len,
                              int64_t deadline_ns)
{
    (void)deadline_ns;
    return tutti_store_set(((plain_store *)store)->inner, key, val, len);
}

static tutti_status plain_get(tutti_store *store, const char *key, int64_t deadline_ns,
                              tutti_bytes *val_out)
{
    (void)deadline_ns;
    return tutti_store_get(((plain_store *)store)->inner, key, 1, val_out);
}

static tutti_status plain_add(tutti_store *store, const char *key, int64_t delta,
                              int64_t deadline_ns, int64_t *sum_out)
{
    (void)deadline_ns;
    return tutti_store_add(((plain_store *)store)->inner, key, delta, sum_out);
}

static void plain_close(tutti_store *store)
{
    tutti_store_close(((plain_store *)store)->inner);
    free(store);
}

static const tutti_store_ops plain_ops = {
    .api = TUTTI_STORE_API,
    .size = sizeof(tutti_store_ops),
    .scheme = "plain",
    .set = plain_set,
    .get = plain_get,
    .add = plain_add,
    .close = plain_close,
};

static void test_plain_store(void **state)
{
    plain_store *store = calloc(1, sizeof *store);

    (void)state;
    assert_non_null(store);
    store->base.ops = &plain_ops;
    assert_int_equal(tutti_hash_store_open(&store->inner), TUTTI_OK);
    assert_int_equal(tutti_store_adopt(&store->base), TUTTI_OK);
    join_once(&store->base, true);
    tutti_store_close(&store->base);
}

/* ---- the process's world, the thread's world ---- */

static tutti_init_options options_over(tutti_store *store)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    opts.store = store;
    opts.world_size = 1;
    return opts;
}

static void see_world(void *arg)
{
    CHECK(tutti_is_initialized());
    CHECK(tutti_get_world_size(NULL) == 1);
    tutti_use_group(arg);
    CHECK(tutti_get_rank(NULL) == tutti_get_rank(arg));
}

static void test_process_world(void **state)
{
    tutti_store       *store = NULL;
    tutti_group       *other;
    tti_thread         thread = { 0 };
    tutti_init_options opts;
    int                round;

    (void)state;
    assert_int_equal(tutti_hash_store_open(&store), TUTTI_OK);
    opts = options_over(store);
    for (round = 0; round < 2; round++) { /* init is allowed again after destroy */
        assert_false(tutti_is_initialized());
        assert_int_equal(tti_init_with(&fake_ops, &opts), TUTTI_OK);
        assert_true(tutti_is_initialized());
        assert_int_equal(tutti_get_rank(NULL), 0);
        assert_int_equal(tti_init_with(&fake_ops, &opts), TUTTI_E_STATE);
        assert_true(said("has a world already"));
        assert_int_equal(tutti_init_process_group(&opts), TUTTI_E_STATE);
        assert_int_equal(tutti_barrier(NULL), TUTTI_OK);
        other = TUTTI_NO_GROUP;
        assert_int_equal(tutti_new_group(NULL, 0, NULL, &other), TUTTI_OK);
        assert_string_equal(other->name, "1");
        assert_int_equal(tti_thread_start(&thread, "see", see_world, other), TUTTI_OK);
        tti_thread_join(&thread);
        assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_OK);
        assert_int_equal(fake_alive(), 0); /* the child went with it */
        assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_E_STATE);
        assert_int_equal(tutti_barrier(NULL), TUTTI_E_STATE);
    }
    tutti_store_close(store);
}

static void test_thread_world(void **state)
{
    tutti_group *a = fake_world_of_one(LONG_MS);
    tutti_group *child = NULL;

    (void)state;
    assert_int_equal(tutti_get_rank(NULL), -1);
    tutti_use_group(a);
    assert_true(tutti_is_initialized());
    assert_int_equal(tutti_barrier(NULL), TUTTI_OK);
    assert_int_equal(tti_group_create(a, NULL, 0, NULL, &child), TUTTI_OK);
    tutti_use_group(child);
    assert_int_equal(tutti_barrier(NULL), TUTTI_OK);
    assert_int_equal(tti_queue_next(child), 2);
    assert_int_equal(tti_queue_next(a), 2);
    tutti_use_group(TUTTI_NON_MEMBER);
    assert_false(tutti_is_initialized());
    assert_int_equal(tutti_barrier(NULL), TUTTI_OK);
    assert_int_equal(tutti_new_group(NULL, 0, NULL, &child), TUTTI_E_STATE);
    tutti_use_group(NULL);
    assert_int_equal(tutti_barrier(NULL), TUTTI_E_STATE);
    tutti_use_group(a);
    tutti_destroy_process_group(a); /* and NULL means nothing again */
    assert_int_equal(tutti_barrier(NULL), TUTTI_E_STATE);
}

static void test_failed_init_leaves_nothing(void **state)
{
    tutti_store       *store = NULL;
    tutti_init_options opts;
    tutti_group       *untouched = NULL;

    (void)state;
    assert_int_equal(tutti_hash_store_open(&store), TUTTI_OK);
    opts = options_over(store);
    opts.world_size = 2;
    opts.timeout_ms = SHORT_MS;
    assert_int_equal(tti_init_with(&fake_ops, &opts), TUTTI_E_TIMEOUT);
    assert_false(tutti_is_initialized());
    opts.backend = "nowhere";
    assert_int_equal(tutti_create_process_group(&opts, &untouched), TUTTI_E_ARG);
    assert_true(said("'nowhere'"));
    assert_null(untouched);
    assert_int_equal(tutti_create_process_group(&opts, NULL), TUTTI_E_ARG);
    opts = options_over(store);
    assert_int_equal(tti_init_with(&fake_ops, &opts), TUTTI_OK); /* may be repeated */
    assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_OK);
    tutti_store_close(store);
}

static void test_destroy_of_no_group(void **state)
{
    (void)state;
    assert_int_equal(tutti_destroy_process_group(TUTTI_NON_MEMBER), TUTTI_OK);
    assert_int_equal(tutti_destroy_process_group(TUTTI_NO_GROUP), TUTTI_OK);
    assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_E_STATE);
}

/* ---- warnings ---- */

static void count_line(tutti_log_level level, const char *line, void *ctx)
{
    (void)level;
    *(int *)ctx += strstr(line, "is not in the group") != NULL;
}

/* A program that calls on a group in each step, in it or not, is told once, and again of another group. */
static void test_non_members_are_warned_once(void **state)
{
    int lines = 0, i;

    (void)state;
    assert_int_equal(tutti_log_set_sink("count", count_line, &lines), TUTTI_OK);
    tti_non_member_begins();
    for (i = 0; i < 3; i++) {
        assert_int_equal(tutti_barrier(TUTTI_NON_MEMBER), TUTTI_OK);
        assert_int_equal(tutti_set_timeout(TUTTI_NON_MEMBER, 1000), TUTTI_OK);
    }
    assert_int_equal(lines, 2); /* once for each kind */
    tti_non_member_begins();
    assert_int_equal(tutti_barrier(TUTTI_NON_MEMBER), TUTTI_OK);
    assert_int_equal(lines, 3);
    assert_int_equal(tutti_log_set_sink("count", NULL, NULL), TUTTI_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Whoever steps through a rank makes the others wait: time-outs grow, and never shrink. */
static void test_a_breakpoint_raises_time_outs(void **state)
{
    const int    members[] = { 0 };
    tutti_group *world = fake_world_of_one(1000);
    tutti_group *group = NULL;

    (void)state;
    setenv("TUTTI_DEBUGGER", "true", 1); /* it ends well, and looks at nothing */
    tutti_use_group(world);
    assert_int_equal(tutti_new_group(members, 1, NULL, &group), TUTTI_OK);
    assert_int_equal(tutti_breakpoint(0, 1, 0), TUTTI_OK); /* skipped */
    assert_int_equal(world->timeout_ms, 1000);
    assert_int_equal(tutti_breakpoint(0, 1, 50000), TUTTI_OK);
    assert_int_equal(world->timeout_ms, 50000);
    assert_int_equal(group->timeout_ms, 50000);
    assert_int_equal(tutti_breakpoint(0, 1, 10000), TUTTI_OK);
    assert_int_equal(world->timeout_ms, 50000);
    tutti_use_group(NULL);
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
    unsetenv("TUTTI_DEBUGGER");
}

/* ---- what a launcher says ---- */

/* A world that follows on another one hears the launcher as that did, and says that its ranks are others. */
static void test_a_successor_hears_the_launcher(void **state)
{
    const tti_ending first = { .version = TTI_ENDING_VERSION, .flags = TTI_ENDING_FIRST, .rank = 2, .local = 2, .pid = 4712,
                               .exit_code = 3, .host = "n1" };
    tutti_group     *old = fake_world_of_one(LONG_MS), *next = fake_world_of_one(LONG_MS);
    tti_bulletin    *launchers = NULL;
    char             text[16];
    int              fd = -1;

    (void)state;
    assert_int_equal(tti_bulletin_make(3, 3, &launchers, &fd), TUTTI_OK);
    snprintf(text, sizeof text, "%d", fd);
    setenv("TUTTI_LAUNCHER_FD", text, 1);
    old->bulletin = tti_bulletin_open();
    assert_non_null(old->bulletin);
    tti_world_succeed(old, next);
    assert_int_equal(tutti_destroy_process_group(old), TUTTI_OK);
    assert_int_equal(tti_group_blame(next, tti_fail(TUTTI_E_PEER, "rank 0 is gone")), TUTTI_E_PEER);
    assert_string_equal(tutti_last_error(), "rank 0 is gone"); /* nothing is known yet */
    tti_bulletin_post(launchers, &first);
    assert_int_equal(tti_group_blame(next, tti_fail(TUTTI_E_PEER, "rank 0 is gone")), TUTTI_E_PEER);
    assert_true(said("rank 2 (host 'n1', pid 4712) ended with exit code 3, as its launcher counts ranks"));
    assert_true(said("seen here: rank 0 is gone"));
    assert_int_equal(tutti_destroy_process_group(next), TUTTI_OK);
    unsetenv("TUTTI_LAUNCHER_FD");
    tti_bulletin_close(launchers);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_numbering),
        TEST(test_a_successor_hears_the_launcher),
        TEST(test_current_group),
        TEST(test_refused),
        TEST(test_missing_member),
        TEST(test_group_options),
        TEST(test_default_timeouts),
        TEST(test_options_of_other_versions),
        TEST(test_key_layout),
        TEST(test_incomplete_world), TEST(test_long_words_are_kept),
        TEST(test_wrong_environment_waits_for_nobody),
        TEST(test_sizes_differ),
        TEST(test_backends_differ),
        TEST(test_plain_store),
        TEST(test_process_world),
        TEST(test_thread_world),
        TEST(test_failed_init_leaves_nothing),
        TEST(test_destroy_of_no_group),
        TEST(test_non_members_are_warned_once),
        TEST(test_a_breakpoint_raises_time_outs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

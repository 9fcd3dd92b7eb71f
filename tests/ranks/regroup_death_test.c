/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regroup_death_test.c
 * Goal    while a world grows, is merged or is reconfigured, whoever ends is missed at once, and named, and whoever refuses is
 *         heard: nobody waits until time is up.
 * Method  processes over shared memory and TCP that may take PATIENT_MS for a call, and must be back in a part of that. They
 *         meet in a file store, which tells of no end, or in a tcp store that a rank serves. A process kills itself as soon as the
 *         store shows how far the others are; somebody who does not come is played by a rank that writes into the store itself what a
 *         newcomer writes. A backend of the program's own looks for nobody's words, and a store of the program's own fails when told
 *         to. */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "harness/harness.h"
#include <tutti/backends.h>
#include <tutti/plugin/backend.h>
#include <tutti/plugin/store.h>
#include <tutti/tutti.h>

enum { MEMBERS = 3, PATH_BYTES = 4352, PATIENT_MS = 40000, SOON_MS = 15000, LIMIT_MS = 60000, BEGUN = 0, ENOUGH = 1 };

static bool said(const char *word)
{
    return strstr(tutti_last_error(), word) != NULL;
}

static void must(tutti_status st)
{
    if (st != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The last call failed so, for that, and long before its time was up. */
static void expect(tutti_status st, tutti_status wanted, const char *word, int64_t began_ms)
{
    const int64_t took_ms = now_ms() - began_ms;

    if (st != wanted || !said(word) || took_ms > SOON_MS)
        fail_msg("status %d, not %d, after %" PRId64 " ms: '%s' should say '%s'", (int)st, (int)wanted, took_ms,
                 tutti_last_error(), word);
}

static void expect_sum(tutti_group *group, int32_t mine, int32_t sum)
{
    must(tutti_all_reduce(TUTTI_SPAN(&mine, 1), TUTTI_SUM, group));
    assert_int_equal(mine, sum);
}

static tutti_store *open_file(tt_ctx *t)
{
    tutti_store *store = NULL;
    char         path[PATH_BYTES];

    snprintf(path, sizeof path, "%s/store", t->dir);
    must(tutti_file_store_open(path, -1, &store));
    return store;
}

/* Rank server serves it. */
static tutti_store *open_tcp(tt_ctx *t, int server)
{
    tutti_tcp_store_options opts = TUTTI_TCP_STORE_OPTIONS;
    tutti_store            *store = NULL;

    opts.host = t->addr;
    opts.port = t->port;
    opts.is_master = t->rank == server;
    opts.timeout_ms = PATIENT_MS;
    must(tutti_tcp_store_open(&opts, &store));
    return store;
}

static void set(tutti_store *store, const char *key)
{
    must(tutti_store_set(store, key, "", 0));
}

static void await(tutti_store *store, const char *key)
{
    must(tutti_store_wait(store, &key, 1, PATIENT_MS));
}

/* ---- deaths ---- */

typedef struct doom {
    tt_ctx      *t;
    tutti_store *store; /* NULL: as soon as mark BEGUN is that high */
    const char  *key;
    uint32_t     mark;
    pthread_t    thread;
} doom;

static void *die(void *arg)
{
    doom *d = arg;

    if (d->store != NULL)
        (void)tutti_store_wait(d->store, &d->key, 1, PATIENT_MS);
    else
        tt_await(d->t, BEGUN, d->mark);
    kill(getpid(), SIGKILL);
    return NULL;
}

/* This process dies when that is there, whatever it is at. */
static void doomed(doom *d)
{
    assert_int_equal(pthread_create(&d->thread, NULL, die, d), 0);
}

/* ---- growing ---- */

static void found_world(tt_ctx *t, tutti_store *store, int members)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    opts.store = store;
    opts.rank = t->rank;
    opts.world_size = members;
    opts.timeout_ms = PATIENT_MS;
    must(tutti_init_process_group(&opts));
    must(tutti_barrier(NULL));
}

static tutti_status join(tutti_store *store, tutti_group **world_out)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    opts.store = store;
    opts.timeout_ms = PATIENT_MS;
    return tutti_join_group(&opts, "crew", world_out);
}

/* Ask as number n, as a newcomer does. */
static void ask_as(tutti_store *store, int n)
{
    char    key[64];
    int64_t number = 0;

    must(tutti_store_add(store, "tutti/grow/crew/asked", 1, &number));
    assert_int_equal(number, n);
    snprintf(key, sizeof key, "tutti/grow/crew/ask/%d", n);
    set(store, key);
}

/* Rank 0 waits in the store, the others in the world: all of them hear of it. */
static void a_member_dies_while_newcomers_are_awaited(tt_ctx *t)
{
    tutti_store  *store = open_file(t);
    tutti_group  *world = NULL;
    doom          d = { .t = t, .mark = MEMBERS - 1 };
    const int64_t began_ms = now_ms();

    found_world(t, store, MEMBERS);
    if (t->rank == 1)
        doomed(&d);
    else
        tt_post(t, BEGUN);
    expect(tutti_grow_group(NULL, "crew", 1, NULL, &world), TUTTI_E_PEER, "rank 1", began_ms);
    must(tutti_shrink_group(NULL, 0, NULL, 0, NULL, &world));
    expect_sum(NULL, 1, MEMBERS - 1);
    must(tutti_barrier(NULL));
    must(tutti_destroy_process_group(NULL));
    tutti_store_close(store);
}

/* Number 1 has a place, and waits for the others; number 2 never says that it is here; then a member dies: all hear of it. */
static void who_has_a_place_is_told(tt_ctx *t)
{
    tutti_store  *store = open_file(t);
    tutti_group  *world = NULL;
    doom          d = { .t = t, .mark = 1 };
    const int64_t began_ms = now_ms();

    if (t->rank < MEMBERS) {
        found_world(t, store, MEMBERS);
        if (t->rank == 1)
            doomed(&d);
        expect(tutti_grow_group(NULL, "crew", 2, NULL, &world), TUTTI_E_PEER, "rank 1", began_ms);
        must(tutti_destroy_process_group(NULL));
    } else if (t->rank == MEMBERS) {
        expect(join(store, &world), TUTTI_E_PEER, "rank 1", began_ms);
    } else {
        await(store, "tutti/grow/crew/ask/1");
        ask_as(store, 2);
        await(store, "tutti/grow/crew/here/1");
        tt_post(t, BEGUN);
    }
    tutti_store_close(store);
}

/* All are to come, and one never does: so the others are at it when a member dies. */
static void a_member_dies_while_the_world_is_made(tt_ctx *t, tutti_store *store)
{
    tutti_group  *world = NULL;
    doom          d = { .t = t, .mark = 1 };
    const int64_t began_ms = now_ms();

    if (t->rank < MEMBERS) {
        found_world(t, store, MEMBERS);
        if (t->rank == 1)
            doomed(&d);
        expect(tutti_grow_group(NULL, "crew", 1, NULL, &world), TUTTI_E_PEER, "rank 1", began_ms);
        assert_ptr_equal(world, TUTTI_NO_GROUP);
        must(tutti_shrink_group(NULL, 0, NULL, 0, NULL, &world)); /* the old one is there still */
        expect_sum(NULL, 1, MEMBERS - 1);
        tt_post(t, ENOUGH);
        tt_await(t, ENOUGH, MEMBERS - 1);
        must(tutti_destroy_process_group(NULL));
    } else {
        ask_as(store, 1);
        await(store, "tutti/grow/crew/place/1");
        set(store, "tutti/grow/crew/here/1");
        await(store, "tutti/grow/crew/1/0//cpu//card/1");
        tt_post(t, BEGUN);
        tt_await(t, ENOUGH, MEMBERS - 1);
    }
    tutti_store_close(store);
}

static void a_member_dies_in_a_file_store(tt_ctx *t)
{
    a_member_dies_while_the_world_is_made(t, open_file(t));
}

static void a_member_dies_in_a_tcp_store(tt_ctx *t)
{
    a_member_dies_while_the_world_is_made(t, open_tcp(t, 0));
}

/* Number 1 asks and dies: its place goes to the next. */
static void a_newcomer_dies_while_it_waits(tt_ctx *t)
{
    tutti_store *store = open_tcp(t, 0);
    tutti_group *world = NULL;
    doom         d = { .t = t, .store = store, .key = "tutti/grow/crew/ask/1" };
    const int    members = 2;

    if (t->rank < members) {
        found_world(t, store, members);
        await(store, "tutti/grow/crew/ask/2");
        must(tutti_grow_group(NULL, "crew", 1, NULL, &world));
    } else if (t->rank == members) {
        doomed(&d);
        (void)join(store, &world);
        fail_msg("it should be dead");
    } else {
        await(store, "tutti/grow/crew/gone/1"); /* the store says so */
        must(join(store, &world));
        assert_int_equal(tutti_get_rank(NULL), members);
    }
    expect_sum(NULL, 1, members + 1);
    must(tutti_barrier(NULL));
    must(tutti_destroy_process_group(NULL));
    tutti_store_close(store);
}

/* Number 1 is given a place, and ends before it is here. */
static void a_newcomer_that_has_a_place_ends(tt_ctx *t)
{
    tutti_store  *store = open_file(t);
    tutti_group  *world = NULL;
    const int64_t began_ms = now_ms();

    if (t->rank < MEMBERS) {
        found_world(t, store, MEMBERS);
        expect(tutti_grow_group(NULL, "crew", 1, NULL, &world), TUTTI_E_PEER, "newcomer 1", began_ms);
        expect_sum(NULL, 1, MEMBERS);
        must(tutti_barrier(NULL));
        must(tutti_destroy_process_group(NULL));
    } else {
        ask_as(store, 1);
        await(store, "tutti/grow/crew/place/1");
        set(store, "tutti/grow/crew/gone/1");
    }
    tutti_store_close(store);
}

/* What one member cannot do the others hear from it. */
static void one_refuses(tt_ctx *t)
{
    tutti_store  *store = open_file(t);
    tutti_group  *world = NULL;
    tutti_work   *work = NULL;
    const int64_t began_ms = now_ms();
    int32_t       x = 0;
    bool          refuses;

    found_world(t, store, MEMBERS);
    refuses = t->rank == 2;
    expect(tutti_grow_group(NULL, refuses ? "" : "crew", 1, NULL, &world), refuses ? TUTTI_E_ARG : TUTTI_E_MISMATCH,
           refuses ? "name is empty" : "rank 2 cannot take part: name is empty", began_ms);
    refuses = t->rank == 0;
    if (refuses)
        must(tutti_irecv(TUTTI_SPAN(&x, 1), 1, 9, NULL, &work));
    expect(tutti_grow_group(NULL, "crew", 1, NULL, &world), refuses ? TUTTI_E_STATE : TUTTI_E_REMOTE,
           refuses ? "operations are under way" : "rank 0 cannot take part", began_ms);
    if (t->rank == 1)
        must(tutti_send(TUTTI_SPAN(&x, 1), 0, 9, NULL));
    if (refuses)
        must(tutti_work_wait(work));
    tutti_work_free(work);
    expect_sum(NULL, 1, MEMBERS);
    must(tutti_barrier(NULL));
    must(tutti_destroy_process_group(NULL));
    tutti_store_close(store);
}

/* Number 1 is taken by somebody who then says nothing, in a store that tells of no end; number 2 finds its place taken, as if it had been
 * silent for too long, and so asks as number 3, which comes in. n: how many the members call for. */
static void who_is_silent_is_passed_over(tt_ctx *t, int n)
{
    tutti_store  *store = open_file(t);
    tutti_group  *world = NULL;
    const int64_t began_ms = now_ms();
    int64_t       number = 0;

    if (t->rank < MEMBERS) {
        found_world(t, store, MEMBERS);
        if (n == 0) { /* it is not waited for, and may still ask */
            await(store, "taken");
            must(tutti_grow_group(NULL, "crew", 0, NULL, &world));
            assert_ptr_equal(world, tutti_current_group());
            must(tutti_barrier(NULL));
            tt_post(t, BEGUN);
            await(store, "tutti/grow/crew/ask/3");
        }
        must(tutti_grow_group(NULL, "crew", n, NULL, &world));
    } else if (t->rank == MEMBERS) {
        must(tutti_store_add(store, "tutti/grow/crew/asked", 1, &number));
        assert_int_equal(number, 1);
        must(tutti_store_set(store, "tutti/grow/crew/ask/2", "passed over", strlen("passed over")));
        set(store, "taken");
    } else {
        await(store, "taken");
        if (n == 0)
            tt_await(t, BEGUN, MEMBERS);
        must(join(store, &world));
        assert_int_equal(tutti_get_rank(NULL), MEMBERS);
    }
    if (t->rank != MEMBERS) {
        expect_sum(NULL, 1, MEMBERS + 1);
        assert_true(now_ms() - began_ms < SOON_MS);
        must(tutti_barrier(NULL));
        must(tutti_destroy_process_group(NULL));
    }
    tutti_store_close(store);
}

static void who_is_silent_is_not_waited_for(tt_ctx *t)
{
    who_is_silent_is_passed_over(t, 1);
}

static void who_is_silent_when_all_may_come(tt_ctx *t)
{
    who_is_silent_is_passed_over(t, 0);
}

/* ---- a store that fails when places are given ---- */

typedef struct frail_store {
    tutti_store  base;
    tutti_store *inner;
} frail_store;

/* In ms: what is over looks once. */
static int64_t left_of(int64_t deadline_ns)
{
    const int64_t left_ms = deadline_ns == INT64_MAX ? PATIENT_MS : deadline_ns / 1000000 - now_ms();

    return left_ms > 0 ? left_ms : 1;
}

static tutti_status frail_set(tutti_store *store, const char *key, const void *val, size_t len, int64_t deadline_ns)
{
    static bool has_failed;

    (void)deadline_ns;
    if (!has_failed && strcmp(key, "tutti/grow/crew/place/2") == 0) {
        has_failed = true;
        return tutti_store_fail(TUTTI_E_STORE, "the store is full");
    }
    return tutti_store_set(((frail_store *)store)->inner, key, val, len);
}

static tutti_status frail_get(tutti_store *store, const char *key, int64_t deadline_ns, tutti_bytes *val_out)
{
    return tutti_store_get(((frail_store *)store)->inner, key, left_of(deadline_ns), val_out);
}

static tutti_status frail_add(tutti_store *store, const char *key, int64_t delta, int64_t deadline_ns, int64_t *sum_out)
{
    (void)deadline_ns;
    return tutti_store_add(((frail_store *)store)->inner, key, delta, sum_out);
}

static tutti_status frail_compare_set(tutti_store *store, const char *key, const void *expected, size_t expected_len,
                                      const void *desired, size_t desired_len, int64_t deadline_ns, tutti_bytes *val_out)
{
    (void)deadline_ns;
    return tutti_store_compare_set(((frail_store *)store)->inner, key, expected, expected_len, desired, desired_len, val_out);
}

static void frail_close(tutti_store *store)
{
    tutti_store_close(((frail_store *)store)->inner);
    free(store);
}

static const tutti_store_ops frail_ops = {
    .api = TUTTI_STORE_API, .size = sizeof(tutti_store_ops), .scheme = "frail", .set = frail_set, .get = frail_get, .add = frail_add,
    .close = frail_close, .compare_set = frail_compare_set,
};

static tutti_store *open_frail(tt_ctx *t)
{
    frail_store *store = calloc(1, sizeof *store);

    assert_true(store != NULL);
    store->base.ops = &frail_ops;
    store->inner = open_file(t);
    must(tutti_store_adopt(&store->base));
    return &store->base;
}

/* Rank 0 cannot write the second of two places: neither of the two newcomers waits for one. */
static void who_gets_no_place_is_told(tt_ctx *t)
{
    tutti_store  *store = t->rank == 0 ? open_frail(t) : open_file(t);
    tutti_group  *world = NULL;
    const int64_t began_ms = now_ms();

    if (t->rank < 2) {
        found_world(t, store, 2);
        expect(tutti_grow_group(NULL, "crew", 2, NULL, &world), TUTTI_E_STORE, "the store is full", began_ms);
        expect_sum(NULL, 1, 2);
        tt_post(t, ENOUGH);
        tt_await(t, ENOUGH, 4);
        must(tutti_destroy_process_group(NULL));
    } else {
        const tutti_status st = join(store, &world);

        if (st == TUTTI_OK || now_ms() - began_ms > SOON_MS)
            fail_msg("status %d: %s", (int)st, tutti_last_error());
        if (strstr(tutti_last_error(), "could not give this process a place") == NULL && !said("the store is full"))
            fail_msg("%s", tutti_last_error());
        tt_post(t, ENOUGH);
    }
    tutti_store_close(store);
}

/* ---- a backend that tells nobody ---- */

/* Its members meet in the store, and that is all they do; the last one refuses. */
static tutti_status mute_create(const tutti_backend_config *config, tutti_backend **backend_out)
{
    const char *last = "last";

    (void)backend_out;
    if (config->rank == config->n_ranks - 1)
        return TUTTI_E_UNSUPPORTED;
    return tutti_store_wait(config->store, &last, 1, config->timeout_ms);
}

static tutti_status mute_run(tutti_backend *backend, const tutti_call *call)
{
    (void)backend;
    (void)call;
    return TUTTI_E_UNSUPPORTED;
}

static void mute_nothing(tutti_backend *backend)
{
    (void)backend;
}

static const tutti_backend_ops mute_ops = {
    .api = TUTTI_BACKEND_API, .size = sizeof(tutti_backend_ops), .name = "mute", .create = mute_create, .run = mute_run,
    .abort = mute_nothing, .destroy = mute_nothing,
};

static void a_newcomer_cannot_make_the_world(tt_ctx *t)
{
    tutti_store        *store = open_file(t);
    tutti_init_options  init = TUTTI_INIT_OPTIONS;
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *world = NULL;
    const int64_t       began_ms = now_ms();

    must(tutti_register_backend("mute", &mute_ops, 1u << TUTTI_CPU));
    opts.backend = init.backend = "mute";
    if (t->rank < MEMBERS) {
        found_world(t, store, MEMBERS);
        expect(tutti_grow_group(NULL, "crew", 1, &opts, &world), TUTTI_E_REMOTE, "rank 3 cannot make it: ", began_ms);
        expect_sum(NULL, 1, MEMBERS);
        must(tutti_barrier(NULL));
        must(tutti_destroy_process_group(NULL));
    } else {
        init.store = store;
        init.timeout_ms = PATIENT_MS;
        assert_int_equal(tutti_join_group(&init, "crew", &world), TUTTI_E_UNSUPPORTED);
    }
    tutti_store_close(store);
}

static void one_cannot_make_what_is_merged(tt_ctx *t)
{
    tutti_store        *store = open_file(t);
    tutti_init_options  init = TUTTI_INIT_OPTIONS;
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *own = NULL, *whole = NULL;
    const int64_t       began_ms = now_ms();
    tutti_status        st;

    must(tutti_register_backend("mute", &mute_ops, 1u << TUTTI_CPU));
    must(tutti_hash_store_open(&init.store));
    init.rank = 0;
    init.world_size = 1;
    must(tutti_create_process_group(&init, &own));
    opts.backend = "mute";
    opts.timeout_ms = PATIENT_MS;
    st = tutti_merge_remote_group(own, store, 2, &opts, &whole); /* who comes second is the last */
    if (st != TUTTI_E_UNSUPPORTED)
        expect(st, TUTTI_E_REMOTE, "rank 1 cannot make it: ", began_ms);
    must(tutti_destroy_process_group(own));
    tutti_store_close(init.store);
    tutti_store_close(store);
}

/* ---- strangers ---- */

/* Three are to be one, rank 2 serves the store and does not come, rank 1 dies. */
static void one_dies_while_worlds_are_merged(tt_ctx *t)
{
    tutti_store        *store = open_tcp(t, 2);
    tutti_init_options  init = TUTTI_INIT_OPTIONS;
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *own = NULL, *whole = NULL;
    doom                d = { .t = t, .store = store, .key = "merge//cpu//card/1" };
    const int64_t       began_ms = now_ms();

    if (t->rank < 2) {
        must(tutti_hash_store_open(&init.store));
        init.rank = 0;
        init.world_size = 1;
        opts.timeout_ms = PATIENT_MS;
        must(tutti_create_process_group(&init, &own));
        if (t->rank == 1) {
            await(store, "merge//cpu//card/0"); /* rank 0 is the first */
            doomed(&d);
        }
        expect(tutti_merge_remote_group(own, store, 3, &opts, &whole), TUTTI_E_PEER, "rank 1", began_ms);
        must(tutti_destroy_process_group(own));
        tutti_store_close(init.store);
        tt_post(t, ENOUGH);
    }
    tt_await(t, ENOUGH, 1);
    tutti_store_close(store);
}

static void one_dies_while_a_world_is_reconfigured(tt_ctx *t)
{
    tutti_store              *store = open_tcp(t, 2);
    tutti_init_options        init = TUTTI_INIT_OPTIONS;
    tutti_reconfigure_options opts = TUTTI_RECONFIGURE_OPTIONS;
    const char               *handles[3];
    tutti_bytes               texts[3] = { { 0 } };
    tutti_group              *world = NULL;
    doom                      d = { .t = t, .store = store, .key = "tutti/reconfigure/7/0//cpu//card/1" };
    const int64_t             began_ms = now_ms();
    char                      key[2] = { (char)('0' + t->rank), '\0' };
    int                       r;

    init.store = store;
    init.rank = t->rank;
    init.world_size = 3;
    init.enable_reconfigure = true;
    must(tutti_create_process_group(&init, &world));
    handles[t->rank] = tutti_get_reconfigure_handle(world);
    must(tutti_store_set(store, key, handles[t->rank], strlen(handles[t->rank]) + 1));
    for (r = 0; r < 3; r++) {
        key[0] = (char)('0' + r);
        must(tutti_store_get(store, key, PATIENT_MS, &texts[r]));
        handles[r] = (const char *)texts[r].data;
    }
    opts.uuid = 7;
    opts.handles = handles;
    opts.n_handles = 3;
    opts.timeout_ms = PATIENT_MS;
    if (t->rank == 1)
        doomed(&d);
    if (t->rank < 2) {
        expect(tutti_reconfigure(world, &opts), TUTTI_E_PEER, "rank 1", began_ms);
        tt_post(t, ENOUGH);
    }
    tt_await(t, ENOUGH, 1);
    for (r = 0; r < 3; r++)
        tutti_bytes_free(&texts[r]);
    must(tutti_destroy_process_group(world));
    tutti_store_close(store);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(a_member_dies_while_newcomers_are_awaited, .ranks = MEMBERS, .transports = "shm,tcp", .init = TT_INIT_NONE,
                .dies = 1, .limit_ms = LIMIT_MS),
        TT_TEST(who_has_a_place_is_told, .ranks = MEMBERS + 2, .init = TT_INIT_NONE, .dies = 1, .limit_ms = LIMIT_MS),
        TT_TEST(a_member_dies_in_a_file_store, .ranks = MEMBERS + 1, .transports = "shm,tcp", .init = TT_INIT_NONE, .dies = 1,
                .limit_ms = LIMIT_MS),
        TT_TEST(a_member_dies_in_a_tcp_store, .ranks = MEMBERS + 1, .transports = "shm,tcp", .init = TT_INIT_NONE, .dies = 1,
                .limit_ms = LIMIT_MS),
        TT_TEST(a_newcomer_dies_while_it_waits, .ranks = 4, .transports = "shm,tcp", .init = TT_INIT_NONE, .dies = 2,
                .limit_ms = LIMIT_MS),
        TT_TEST(a_newcomer_that_has_a_place_ends, .ranks = MEMBERS + 1, .init = TT_INIT_NONE, .limit_ms = LIMIT_MS),
        TT_TEST(one_refuses, .ranks = MEMBERS, .transports = "shm,tcp", .init = TT_INIT_NONE, .limit_ms = LIMIT_MS),
        TT_TEST(who_is_silent_is_not_waited_for, .ranks = MEMBERS + 2, .transports = "shm", .init = TT_INIT_NONE, .limit_ms = LIMIT_MS),
        TT_TEST(who_is_silent_when_all_may_come, .ranks = MEMBERS + 2, .transports = "shm", .init = TT_INIT_NONE, .limit_ms = LIMIT_MS),
        TT_TEST(who_gets_no_place_is_told, .ranks = 4, .transports = "shm", .init = TT_INIT_NONE, .limit_ms = LIMIT_MS),
        TT_TEST(a_newcomer_cannot_make_the_world, .ranks = MEMBERS + 1, .transports = "shm", .init = TT_INIT_NONE,
                .limit_ms = LIMIT_MS),
        TT_TEST(one_cannot_make_what_is_merged, .ranks = 2, .transports = "shm", .init = TT_INIT_NONE, .limit_ms = LIMIT_MS),
        TT_TEST(one_dies_while_worlds_are_merged, .ranks = 3, .transports = "shm,tcp", .init = TT_INIT_NONE, .dies = 1,
                .limit_ms = LIMIT_MS),
        TT_TEST(one_dies_while_a_world_is_reconfigured, .ranks = 3, .transports = "shm,tcp", .init = TT_INIT_NONE, .dies = 1,
                .limit_ms = LIMIT_MS),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}

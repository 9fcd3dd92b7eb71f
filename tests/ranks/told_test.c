/* SPDX-License-Identifier: BSD-3-Clause
 *
 * told_test.c
 * Goal    what one rank does wrong is told to the others in words that they can use: their own operation, who did what
 *         instead, and a next step; and what was wrong once does no harm to what is called after it.
 * Method  one rank refuses a group for its arguments, is in a call while others make a group, gives up a receive, or has a
 *         receive that does not fit. Every wait has ten times as long as the test needs: who is told by its own time-out has
 *         not been told. */
#include <pthread.h>
#include <stdatomic.h>
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

enum { SHORT_MS = 500, TOLD_MS = 1000, BUSY_MS = 5000, LATE_MS = 1000, ROUNDS = 20, STAYS_MS = 8000, STEP_MS = 300 };
enum { COME, DONE, BEGUN }; /* marks */

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void expect_words(const char *words)
{
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, tutti_last_error());
}

static void expect_in_time(int64_t start_ms)
{
    if (now_ms() - start_ms > TOLD_MS + BUSY_MS)
        fail_msg("told after %lld ms", (long long)(now_ms() - start_ms));
}

/* The world works, and nobody is inside the barrier any more that showed it: what ends the world would end that, too. */
static void all_have_begun(tt_ctx *t)
{
    assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
    tt_post(t, BEGUN);
    tt_await(t, BEGUN, (uint32_t)t->size);
}

static void a_group_works(void)
{
    tutti_group *group = NULL;
    float        x = 1.0f;

    assert_int_equal(tutti_new_group(NULL, 0, NULL, &group), TUTTI_OK);
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, group), TUTTI_OK);
    assert_int_equal((int)x, tutti_get_world_size(group));
    assert_int_equal(tutti_destroy_process_group(group), TUTTI_OK);
}

/* ---- groups that one rank refuses ------------------------------------------------------------------- */

static void one_refuses_its_arguments(tt_ctx *t)
{
    const int    ranks[] = { 0, t->rank == 0 ? 0 : 1 };
    const int64_t start = now_ms();
    tutti_group *group = NULL;

    if (t->rank == 0) {
        assert_int_equal(tutti_new_group(ranks, 2, NULL, &group), TUTTI_E_ARG);
        expect_words("rank 0 is there twice");
        expect_words("\n  next: ");
    } else if (t->rank == 1) {
        assert_int_equal(tutti_new_group(ranks, 2, NULL, &group), TUTTI_E_MISMATCH);
        expect_words("group '1' cannot be made on rank 1: rank 0 cannot make it: new_group: rank 0 is there twice\n  next: ");
        expect_in_time(start);
    } else {
        assert_int_equal(tutti_new_group(ranks, 2, NULL, &group), TUTTI_OK);
        assert_ptr_equal(group, TUTTI_NON_MEMBER);
    }
    assert_int_equal(tutti_get_pg_count(), 2);
    a_group_works();
}

static void one_names_a_backend_that_is_not_there(tt_ctx *t)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;
    const int64_t       start = now_ms();

    if (t->rank == t->size - 1)
        opts.backend = "nonsense";
    if (t->rank == t->size - 1) {
        assert_int_not_equal(tutti_new_group(NULL, 0, &opts, &group), TUTTI_OK);
    } else {
        assert_int_equal(tutti_new_group(NULL, 0, &opts, &group), TUTTI_E_MISMATCH);
        expect_words("cannot make it: ");
        expect_words("nonsense");
        expect_in_time(start);
    }
    a_group_works();
}

/* Its plug-in is there, and broken, on that rank alone. */
static void one_cannot_load_its_backend(tt_ctx *t)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;
    const int64_t       start = now_ms();
    char                path[512];
    FILE               *file;

    if (t->rank == t->size - 1) {
        assert_int_equal(setenv("TUTTI_PLUGIN_PATH", t->dir, 1), 0);
        snprintf(path, sizeof path, "%s/tutti-backend-broken.so", t->dir);
        file = fopen(path, "w");
        assert_true(file != NULL && fputs("no library", file) >= 0 && fclose(file) == 0);
        opts.backend = "cuda:broken";
        assert_int_equal(tutti_new_group(NULL, 0, &opts, &group), TUTTI_E_BACKEND);
    } else {
        assert_int_equal(tutti_new_group(NULL, 0, &opts, &group), TUTTI_E_REMOTE);
        expect_words("cannot make it: ");
        expect_words("tutti-backend-broken.so' cannot be loaded");
        expect_in_time(start);
    }
    a_group_works();
}

/* Of four ranks rank 1 alone gives a size that cuts no world of four, and rank 2 no lists at all: who waits for one of them is told, the
 * others have their groups, and all go on counting alike. */
static void one_refuses_subgroups(tt_ctx *t)
{
    const int        crossed[] = { 3, 1 }, rest[] = { 2, 0 }, n[] = { 2, 2 };
    const int *const lists[] = { crossed, rest };
    tutti_group     *group = NULL;
    int64_t          start = now_ms();

    assert_int_equal(tutti_new_subgroups(t->rank == 1 ? 3 : 2, NULL, &group),
                     t->rank == 0 ? TUTTI_E_MISMATCH : t->rank == 1 ? TUTTI_E_ARG : TUTTI_OK);
    if (t->rank == 0)
        expect_words("rank 1 cannot make it: new_subgroups: group_size is 3, which does not divide the world of 4\n  next: ");
    expect_in_time(start);
    a_group_works();
    start = now_ms();
    assert_int_equal(tutti_new_subgroups_by_enumeration(t->rank == 2 ? NULL : lists, n, 2, NULL, &group),
                     t->rank == 0 ? TUTTI_E_MISMATCH : t->rank == 2 ? TUTTI_E_ARG : TUTTI_OK);
    if (t->rank == 0)
        expect_words("rank 2 cannot make it: new_subgroups_by_enumeration: there are no lists");
    expect_in_time(start);
    a_group_works();
}

/* Four ranks split in two pairs, of which one rank is given what it refuses: who waits for it is told, the other pair goes on. */
static void split_in_pairs(tt_ctx *t, int refuses, const int *const *lists, const int *n, const tutti_group_options *opts,
                           const char *words)
{
    const int     fellow = (refuses + 2) % 4;
    const int64_t start = now_ms();
    tutti_group  *group = NULL;
    char          who[40];

    assert_int_equal(tutti_split_group(t->group, lists, n, 2, opts, &group),
                     t->rank == refuses ? TUTTI_E_ARG : t->rank == fellow ? TUTTI_E_MISMATCH : TUTTI_OK);
    expect_in_time(start);
    if (t->rank != refuses && t->rank != fellow)
        return;
    assert_ptr_equal(group, TUTTI_NO_GROUP);
    expect_words(words);
    snprintf(who, sizeof who, "rank %d cannot make it: ", refuses);
    if (t->rank == fellow)
        expect_words(who);
}

/* For a list, for want of lists, for two lists, of which the second is its own, and for options; and all go on counting alike. */
static void one_refuses_a_split(tt_ctx *t)
{
    const int           crossed[] = { 3, 1 }, rest[] = { 2, 0 }, twice[] = { 1, 3, 3 }, more[] = { 3, 1, 2 };
    const int           n[] = { 2, 2 }, n_twice[] = { 3, 2 };
    const int *const    lists[] = { crossed, rest }, *const wrong[] = { twice, rest }, *const both[] = { more, rest };
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;
    float               x = 1.0f;

    split_in_pairs(t, 1, t->rank == 1 ? wrong : lists, t->rank == 1 ? n_twice : n, NULL, "split_group: rank 3 is in list 0 twice");
    split_in_pairs(t, 2, t->rank == 2 ? NULL : lists, n, NULL, "split_group: there are no lists");
    split_in_pairs(t, 2, t->rank == 2 ? both : lists, t->rank == 2 ? n_twice : n, NULL, "split_group: rank 2 is in list 0 and in list 1");
    opts.backend = "nonsense";
    split_in_pairs(t, 3, lists, n, t->rank == 3 ? &opts : NULL, "nonsense");
    opts = (tutti_group_options)TUTTI_GROUP_OPTIONS;
    opts.timeout_ms = -5;
    split_in_pairs(t, 0, lists, n, t->rank == 0 ? &opts : NULL, "split_group: timeout_ms is -5");
    assert_int_equal(tutti_split_group(t->group, lists, n, 2, NULL, &group), TUTTI_OK);
    assert_string_equal(tutti_get_group_name(group), t->rank % 2 == 1 ? "0:split:6.0" : "0:split:6.1");
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, group), TUTTI_OK);
    assert_int_equal((int)x, 2);
    a_group_works();
}

/* A backend of the program's own: its members meet in the group's store, unless none is to wait for the others, and that is all they do. */
static _Atomic bool meets_at_once; /* it refuses groups that wait for nobody */

/* For all keys: in the store, */
static tutti_status wait_in_store(const tutti_backend_config *config, const char *const *keys)
{
    return tutti_store_wait(config->store, keys, (size_t)config->n_ranks, config->timeout_ms);
}

/* or in a way that the library knows nothing of, and asks it. */
static tutti_status look_and_ask(const tutti_backend_config *config, const char *const *keys)
{
    const struct timespec pause = { .tv_nsec = 1000000 };
    const int64_t         until = now_ms() + config->timeout_ms;
    bool                  there = false;
    tutti_status          st = TUTTI_OK;

    while (st == TUTTI_OK && !there && !tutti_store_stops() && now_ms() < until) {
        st = tutti_store_check(config->store, keys, (size_t)config->n_ranks, &there);
        nanosleep(&pause, NULL);
    }
    return st != TUTTI_OK || there ? st : tutti_store_fail(TUTTI_E_TIMEOUT, "they do not come");
}

/* A member that has met the others, and does not come back before rank 0 has. */
static tt_ctx *stays_in;

static void stay(tt_ctx *t)
{
    const struct timespec pause = { .tv_nsec = 1000000 };
    const int64_t         until = now_ms() + STAYS_MS;

    while (atomic_load(&t->marks[COME]) == 0 && now_ms() < until)
        nanosleep(&pause, NULL);
}

/* Another comes late. */
static bool comes_late;

static void be_late(void)
{
    const struct timespec pause = { .tv_sec = LATE_MS / 1000 };

    nanosleep(&pause, NULL);
}

static tutti_status meets_create(const tutti_backend_config *config, tutti_backend **backend_out)
{
    tutti_backend *backend = malloc(sizeof *backend);
    char           keys[8][20];
    const char    *all[8];
    tutti_status   st;
    int            i;

    assert_true(backend != NULL && config->n_ranks <= 8);
    if (config->lazy && atomic_load(&meets_at_once)) {
        free(backend);
        return TUTTI_E_UNSUPPORTED;
    }
    for (i = 0; i < config->n_ranks; i++) {
        snprintf(keys[i], sizeof keys[i], "here/%d", i);
        all[i] = keys[i];
    }
    if (comes_late)
        be_late();
    st = tutti_store_set(config->store, keys[config->rank], "1", 1);
    if (st == TUTTI_OK && !config->lazy)
        st = strcmp(config->ops->name, "asks") == 0 ? look_and_ask(config, all) : wait_in_store(config, all);
    if (stays_in != NULL)
        stay(stays_in);
    backend->ops = config->ops;
    if (st == TUTTI_OK)
        *backend_out = backend;
    else
        free(backend);
    return st;
}

static tutti_status meets_run(tutti_backend *backend, const tutti_call *call)
{
    (void)backend;
    return call->kind == TUTTI_CALL_BARRIER ? TUTTI_OK : TUTTI_E_UNSUPPORTED;
}

static void meets_abort(tutti_backend *backend)
{
    (void)backend;
}

static void meets_destroy(tutti_backend *backend)
{
    free(backend);
}

static const tutti_backend_ops meets_ops = {
    .api = TUTTI_BACKEND_API, .size = sizeof(tutti_backend_ops), .name = "meets", .create = meets_create, .run = meets_run,
    .abort = meets_abort, .destroy = meets_destroy,
};

/* In a group of it rank 0 refuses its arguments, and the others, who wait in the backend, are told; in the next one somebody is only
 * late. */
static void one_refuses_where_they_wait(tt_ctx *t, const char *backend)
{
    const struct timespec pause = { .tv_sec = LATE_MS / 1000 };
    const int             twice[] = { 0, 0 };
    tutti_group_options   opts = TUTTI_GROUP_OPTIONS;
    tutti_group          *group = NULL;
    int64_t               start;

    opts.backend = backend;
    assert_int_equal(tutti_register_backend(backend, &meets_ops, 1u << TUTTI_CPU), TUTTI_OK);
    start = now_ms();
    if (t->rank == 0) {
        assert_int_equal(tutti_new_group(twice, 2, &opts, &group), TUTTI_E_ARG);
    } else {
        assert_int_equal(tutti_new_group(NULL, 0, &opts, &group), TUTTI_E_MISMATCH);
        expect_words("rank 0 cannot make it: new_group: rank 0 is there twice\n  next: ");
        expect_in_time(start);
    }
    if (t->rank == 1)
        nanosleep(&pause, NULL);
    assert_int_equal(tutti_new_group(NULL, 0, &opts, &group), TUTTI_OK);
    assert_int_equal(tutti_barrier(group), TUTTI_OK);
    assert_int_equal(tutti_destroy_process_group(group), TUTTI_OK);
    a_group_works();
}

/* Four ranks split with lists that are good. What it comes to, all in time. */
static tutti_status split_differently(const tt_ctx *t, const int (*pairs)[2])
{
    const int *const   lists[] = { pairs[0], pairs[1] };
    const int64_t      start = now_ms();
    tutti_group       *group = NULL;
    const tutti_status st = tutti_split_group(t->group, lists, (const int[]){ 2, 2 }, 2, NULL, &group);

    expect_in_time(start);
    if (st != TUTTI_OK && st != TUTTI_E_MISMATCH)
        fail_msg("%s", tutti_last_error());
    if ((st == TUTTI_OK) != (group != TUTTI_NO_GROUP))
        fail_msg("status %d does not fit the group", (int)st);
    return st;
}

/* Rank 3 has them in another order: it comes to the part of ranks 0 and 1, where that is seen, and rank 2 waits for it in the other one.
 * Late, when those have theirs; then, as a rule, first, so that it waits itself. */
static void lists_of_a_split_in_another_order(tt_ctx *t)
{
    static const int ours[][2] = { { 0, 1 }, { 2, 3 } }, swapped[][2] = { { 2, 3 }, { 0, 1 } };
    tutti_status     st;

    all_have_begun(t);
    if (t->rank == 3)
        tt_await(t, DONE, 2);
    st = split_differently(t, t->rank == 3 ? swapped : ours);
    assert_int_equal(st, t->rank < 2 ? TUTTI_OK : TUTTI_E_MISMATCH);
    if (t->rank < 2)
        tt_post(t, DONE);
    if (t->rank == 2)
        expect_words("group '0:split:1.1' cannot be made on rank 2: rank 3 cannot make it: ");
    if (t->rank >= 2) {
        expect_words("group '0:split:1.0': rank ");
        expect_words(" made it of ranks 0, 1, and rank 3 makes it of ranks 2, 3\n  next: give all ranks the same lists, in the same order");
    }
    a_group_works();
    if (t->rank < 2)
        usleep(STEP_MS * 1000);
    st = split_differently(t, t->rank == 3 ? swapped : ours);
    if (t->rank >= 2)
        assert_int_equal(st, TUTTI_E_MISMATCH);
    if (st != TUTTI_OK) {
        expect_words("group '0:split:2.0': rank ");
        expect_words(" ranks 0, 1");
        expect_words(" ranks 2, 3");
    }
    a_group_works();
}

/* The same, and rank 3 has left its world by the time that rank 2 comes: that is not the reason. */
static void who_finds_other_lists_may_leave(tt_ctx *t)
{
    static const int ours[][2] = { { 0, 1 }, { 2, 3 } }, swapped[][2] = { { 2, 3 }, { 0, 1 } };

    all_have_begun(t);
    if (t->rank == 3)
        tt_await(t, COME, 2);
    if (t->rank == 2) {
        tt_await(t, DONE, 1);
        usleep(STEP_MS * 1000); /* to hear of it */
    }
    assert_int_equal(split_differently(t, t->rank == 3 ? swapped : ours), t->rank < 2 ? TUTTI_OK : TUTTI_E_MISMATCH);
    if (t->rank == 2)
        expect_words("group '0:split:1.1' cannot be made on rank 2: rank 3 cannot make it: group '0:split:1.0': rank ");
    if (t->rank == 3)
        assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_OK);
    tt_post(t, t->rank < 2 ? COME : DONE);
    tt_await(t, DONE, 2);
}

/* Rank 3 has other pairs: two ranks disagree about the second part, and one of them waits there for a rank that never comes. */
static void lists_of_a_split_of_others(tt_ctx *t)
{
    static const int ours[][2] = { { 0, 1 }, { 2, 3 } }, others[][2] = { { 0, 2 }, { 1, 3 } };
    int              last;
    tutti_status     st;

    all_have_begun(t);
    for (last = 2; last < 4; last++) {
        if (t->rank == last)
            usleep(STEP_MS * 1000);
        st = split_differently(t, t->rank == 3 ? others : ours);
        assert_int_equal(st, t->rank < 2 ? TUTTI_OK : TUTTI_E_MISMATCH);
        if (t->rank >= 2) {
            expect_words(last == 2 ? "group '0:split:1.1'" : "group '0:split:2.1'");
            expect_words(" of ranks 1, 3");
            expect_words(" of ranks 2, 3");
        }
        a_group_works();
    }
}

static void one_refuses_a_backend_of_ours(tt_ctx *t)
{
    one_refuses_where_they_wait(t, "meets");
}

static void one_refuses_a_backend_that_asks(tt_ctx *t)
{
    one_refuses_where_they_wait(t, "asks");
}

/* ---- groups for which not all name a backend --------------------------------------------------------- */

#define NAMED   "makes it with backend 'cpu:meets', and who names none has '"
#define ANOTHER "\n  next: give all members the same options.backend"

static void register_meets(void)
{
    const tutti_status st = tutti_register_backend("meets", &meets_ops, 1u << TUTTI_CPU);

    assert_true(st == TUTTI_OK || st == TUTTI_E_STATE); /* other ranks may be threads of this process */
}

/* Some name one, and who names none has the world's: neither comes to where the others wait. */
static void some_name(bool names)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;
    const int64_t       start = now_ms();

    opts.backend = "meets";
    assert_int_equal(tutti_new_group(NULL, 0, names ? &opts : NULL, &group), TUTTI_E_MISMATCH);
    expect_words(names ? "cannot make it: " : NAMED);
    expect_words(NAMED);
    expect_words(ANOTHER);
    expect_in_time(start);
}

static void some_name_another_backend(tt_ctx *t)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;

    register_meets();
    some_name(t->rank == t->size - 1);
    a_group_works();
    some_name(t->rank > 0);
    a_group_works();
    opts.backend = "cpu:native"; /* as the world has for that memory: they meet */
    assert_int_equal(tutti_new_group(NULL, 0, t->rank == 1 ? &opts : NULL, &group), TUTTI_OK);
    assert_int_equal(tutti_barrier(group), TUTTI_OK);
    assert_int_equal(tutti_destroy_process_group(group), TUTTI_OK);
}

/* The world has a program's own, and one names ours, which makes connections for that group. */
static void one_names_ours(tt_ctx *t)
{
    tutti_init_options  init = TUTTI_INIT_OPTIONS;
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;
    int64_t             start;

    register_meets();
    init.init_method = t->init_method;
    init.backend = "meets";
    assert_int_equal(tutti_init_process_group(&init), TUTTI_OK);
    opts.backend = "native";
    start = now_ms();
    assert_int_equal(tutti_new_group(NULL, 0, t->rank == 1 ? &opts : NULL, &group), TUTTI_E_MISMATCH);
    expect_words("rank 1 makes it with backend 'cpu:native,cuda:native', and who names none has 'cpu:meets'" ANOTHER);
    expect_in_time(start);
    assert_int_equal(tutti_barrier(NULL), TUTTI_OK);
    assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_OK);
}

/* The same of groups that are made without waiting: the first call says it. refuses: the backend does not make such groups. */
static void one_names_for_a_local_group(tt_ctx *t, bool refuses)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;
    const bool          names = t->rank == t->size - 1;
    int64_t             start;
    float               x = 1.0f;

    atomic_store(&meets_at_once, refuses);
    opts.use_local_synchronization = true;
    opts.backend = names ? "meets" : NULL;
    assert_int_equal(tutti_new_group(NULL, 0, &opts, &group), names && refuses ? TUTTI_E_UNSUPPORTED : TUTTI_OK);
    start = now_ms();
    if (!names) {
        assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, group), TUTTI_E_MISMATCH);
        expect_words(refuses ? "cannot make it: " : NAMED);
        expect_in_time(start);
    }
    if (!names || !refuses)
        assert_int_equal(tutti_destroy_process_group(group), TUTTI_OK);
    a_group_works();
}

static void one_names_another_for_a_local_group(tt_ctx *t)
{
    register_meets();
    one_names_for_a_local_group(t, false);
    one_names_for_a_local_group(t, true);
}

/* Rank 1 is so late that rank 0 looks for a reason; what rank 3 refuses meanwhile is none, as it is no member. */
static void who_is_no_member_refuses_nothing(tt_ctx *t)
{
    const struct timespec pause = { .tv_sec = LATE_MS / 1000 };
    const int             ranks[] = { 0, t->rank == 3 ? 7 : 1 };
    tutti_group          *group = NULL;

    if (t->rank == 1)
        nanosleep(&pause, NULL);
    assert_int_equal(tutti_new_group(ranks, 2, NULL, &group), t->rank == 3 ? TUTTI_E_ARG : TUTTI_OK);
    if (t->rank < 2) {
        assert_int_equal(tutti_barrier(group), TUTTI_OK);
        assert_int_equal(tutti_destroy_process_group(group), TUTTI_OK);
    }
    a_group_works();
}

/* Who makes the same mistake everywhere is not told of others. */
static void all_refuse_alike(tt_ctx *t)
{
    const int    outside[] = { 0, t->size };
    tutti_group *group = NULL;

    assert_int_equal(tutti_new_group(outside, 2, NULL, &group), TUTTI_E_ARG);
    assert_ptr_equal(group, TUTTI_NO_GROUP);
    a_group_works();
}

/* ---- a shrink over a program's own backend, whose members meet in the store --------------------------- */

enum { LEAVES = 1, STALE_MS = 10000 };

/* Without that one. It may have read once more what a member has not taken back yet, which it does when it gets a core. */
static tutti_group *go_on_from(tutti_group *group)
{
    const struct timespec pause = { .tv_nsec = 10000000 };
    const int64_t         until = now_ms() + STALE_MS;
    const int             leaves = LEAVES;
    tutti_group          *left = NULL;
    tutti_status          st;

    while ((st = tutti_shrink_group(&leaves, 1, group, TUTTI_SHRINK_DEFAULT, NULL, &left)) == TUTTI_E_REMOTE && now_ms() < until)
        nanosleep(&pause, NULL);
    if (st != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    return left;
}

/* Of four the second leaves, and one that is to stay refuses at first: the others are told why. */
static tutti_group *go_on_behind_a_refusal(tt_ctx *t, tutti_group *group, int refuser)
{
    const int           leaves = LEAVES, outside = 9;
    const int64_t       start = now_ms();
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *left = NULL;
    char                words[64];

    opts.timeout_ms = 10 * TOLD_MS + BUSY_MS;
    if (t->rank == refuser) {
        assert_int_equal(tutti_shrink_group(&outside, 1, group, TUTTI_SHRINK_DEFAULT, &opts, &left), TUTTI_E_ARG);
    } else {
        assert_int_equal(tutti_shrink_group(&leaves, 1, group, TUTTI_SHRINK_DEFAULT, &opts, &left), TUTTI_E_REMOTE);
        snprintf(words, sizeof words, "rank %d, which is to stay, refuses it: ", refuser);
        expect_words(words);
        expect_words("rank 9 is outside of 0 .. 3");
        expect_in_time(start);
    }
    tt_post(t, COME); /* nobody calls it again before all have read what was refused */
    tt_await(t, COME, (uint32_t)t->size - 1);
    return go_on_from(group);
}

static void one_refuses_to_shrink_a_group(tt_ctx *t, int refuser)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;

    register_meets();
    opts.backend = "meets";
    assert_int_equal(tutti_new_group(NULL, 0, &opts, &group), TUTTI_OK);
    if (t->rank == LEAVES)
        return;
    group = go_on_behind_a_refusal(t, group, refuser);
    assert_int_equal(tutti_get_world_size(group), t->size - 1);
    assert_int_equal(tutti_barrier(group), TUTTI_OK);
}

/* It has the number in which they wait, */
static void the_first_refuses_to_shrink_a_group(tt_ctx *t)
{
    one_refuses_to_shrink_a_group(t, 0);
}

/* or they wait for it in one. */
static void the_last_refuses_to_shrink_a_group(tt_ctx *t)
{
    one_refuses_to_shrink_a_group(t, t->size - 1);
}

/* In a store that rank 0 serves. */
static void begin_world(tt_ctx *t, const char *backend)
{
    tutti_init_options init = TUTTI_INIT_OPTIONS;
    char               url[128];

    snprintf(url, sizeof url, "tcp://%s:%d?rank=%d&world_size=%d", t->addr, t->port, t->rank, t->size);
    init.init_method = url;
    init.backend = backend;
    assert_int_equal(tutti_init_process_group(&init), TUTTI_OK);
}

static void one_refuses_to_shrink_a_world(tt_ctx *t, const char *backend)
{
    tutti_group *world;

    begin_world(t, backend);
    if (t->rank != LEAVES) {
        world = go_on_behind_a_refusal(t, NULL, t->size - 1);
        assert_ptr_equal(tutti_find_group("0:shrink"), world);
        assert_int_equal(tutti_get_world_size(NULL), t->size - 1);
        assert_int_equal(tutti_barrier(NULL), TUTTI_OK);
    }
    tt_post(t, DONE);
    tt_await(t, DONE, (uint32_t)t->size); /* rank 0 serves their store */
    assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_OK);
}

static void one_refuses_to_shrink_the_world(tt_ctx *t)
{
    register_meets();
    one_refuses_to_shrink_a_world(t, "meets");
}

/* Ours, whose members meet in the store where they have not got four ports each. */
static void one_refuses_where_ports_are_few(tt_ctx *t)
{
    assert_int_equal(setenv("TUTTI_PORT_RANGE", "21000-21011", 1), 0);
    one_refuses_to_shrink_a_world(t, "native");
}

/* A word that the last rank has left, in the world's part of the store, as it stands there. */
static void leave_word(tutti_store *store, int rank)
{
    struct {
        int32_t status, who;
        char    words[504];
    } word = { .status = TUTTI_E_STATE, .words = "a word of the past" };
    char    key[64];
    int64_t n = 0;

    snprintf(key, sizeof key, "0//shrink/refused/%d", rank);
    assert_int_equal(tutti_store_set(store, key, &word, sizeof word), TUTTI_OK);
    assert_int_equal(tutti_store_add(store, "0//shrink/refusals", 1, &n), TUTTI_OK);
}

/* A mark that another one has left for it in the first number of those that stay, 0, 2 and 3: a status, and words. */
static void leave_mark(tutti_store *store)
{
    char words[64];

    snprintf(words, sizeof words, "%d a word of the past", (int)TUTTI_E_STATE);
    assert_int_equal(tutti_store_set(store, "0//shrink/945843e1e47897cf38048c0589fbca87660b0866/1/refused/3", words, strlen(words)), TUTTI_OK);
}

/* A world in a store that is not served, for whose keys see above. */
static tutti_store *begin_in_a_file(tt_ctx *t)
{
    tutti_init_options init = TUTTI_INIT_OPTIONS;
    char               path[512];

    register_meets();
    snprintf(path, sizeof path, "%s/own", t->dir);
    assert_int_equal(tutti_file_store_open(path, -1, &init.store), TUTTI_OK);
    init.rank = t->rank;
    init.world_size = t->size;
    init.backend = "meets";
    assert_int_equal(tutti_init_process_group(&init), TUTTI_OK);
    return init.store;
}

/* The others have read what one has said that has come since, while they wait for rank 2: it is not counted against it. */
static void who_has_come_refuses_nothing(tt_ctx *t)
{
    tutti_store *store = begin_in_a_file(t);

    if (t->rank == 0)
        leave_word(store, t->size - 1);
    tt_post(t, COME);
    tt_await(t, COME, (uint32_t)t->size);
    if (t->rank != LEAVES) {
        comes_late = t->rank == 2;
        (void)go_on_from(NULL);
        assert_int_equal(tutti_barrier(NULL), TUTTI_OK);
    }
    assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_OK);
    tutti_store_close(store);
}

/* They had read it before it came: it goes no further, and all of them begin anew. */
static void who_comes_too_late_begins_anew(tt_ctx *t)
{
    const int    leaves = LEAVES;
    tutti_store *store = begin_in_a_file(t);
    tutti_group *left = NULL;
    int64_t      start;

    if (t->rank == 0)
        leave_mark(store);
    tt_post(t, COME);
    tt_await(t, COME, (uint32_t)t->size);
    start = now_ms();
    if (t->rank != LEAVES) {
        assert_int_equal(tutti_shrink_group(&leaves, 1, NULL, TUTTI_SHRINK_DEFAULT, NULL, &left), TUTTI_E_REMOTE);
        expect_words("a word of the past");
        expect_in_time(start);
        (void)go_on_from(NULL);
        assert_int_equal(tutti_barrier(NULL), TUTTI_OK);
    }
    assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_OK);
    tutti_store_close(store);
}

/* Rank 2 is long in its backend when all have met: rank 0, which serves their store, does not wait for that, as the backend may need
 * what it calls next. */
static void who_serves_a_shrink_goes_on(tt_ctx *t)
{
    int64_t start;

    register_meets();
    begin_world(t, "meets");
    stays_in = t->rank == 2 ? t : NULL;
    start = now_ms();
    if (t->rank != LEAVES)
        (void)go_on_from(NULL);
    if (t->rank == 0) {
        if (now_ms() - start > STAYS_MS / 2)
            fail_msg("back after %lld ms", (long long)(now_ms() - start));
        tt_post(t, COME);
    }
    stays_in = NULL;
    tt_post(t, DONE);
    tt_await(t, DONE, (uint32_t)t->size);
    assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_OK);
}

/* ---- a call here, a group there --------------------------------------------------------------------- */

#ifndef __SANITIZE_THREAD__ /* which starts a thread in every process: nobody is told that nothing else goes on there */
static void a_call_against_a_new_group(tt_ctx *t)
{
    tutti_group  *group = NULL;
    int64_t       start;

    all_have_begun(t);
    start = now_ms();
    if (t->rank == 0)
        assert_int_equal(tutti_barrier(t->group), TUTTI_E_MISMATCH);
    else
        assert_int_equal(tutti_new_group(NULL, 0, NULL, &group), TUTTI_E_MISMATCH);
    expect_in_time(start);
    expect_words("\n  rank 0: barrier");
    expect_words("tutti_new_group(), which makes group '1'");
    expect_words("\n  next: let all ranks make groups and calls in the same order");
}

/* Rank 0 waits for a message of rank 1, which makes a group, as all others do. */
static void a_receive_against_a_new_group(tt_ctx *t)
{
    tutti_group *group = NULL;
    float        x = 1.0f;
    int64_t      start;

    all_have_begun(t);
    start = now_ms();
    if (t->rank == 0)
        assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), 1, 3, t->group, NULL), TUTTI_E_MISMATCH);
    else
        assert_int_equal(tutti_new_group(NULL, 0, NULL, &group), TUTTI_E_MISMATCH);
    expect_in_time(start);
    expect_words("\n  rank 0: recv with tag 3 from rank 1");
    expect_words("\n  rank 1: tutti_new_group(), which makes group '1'");
}
#endif

static void *send_late(void *group)
{
    const struct timespec pause = { .tv_nsec = 900000000 };
    float                 x = 1.0f;

    nanosleep(&pause, NULL);
    return (void *)(intptr_t)tutti_send(TUTTI_SPAN(&x, 1), 0, 3, group);
}

/* The same, but rank 1 has another thread, which sends; and rank 0 comes to the group then. */
static void another_thread_may_send(tt_ctx *t)
{
    tutti_group *group = NULL;
    pthread_t    thread;
    void        *st = NULL;
    float        x = 1.0f;

    if (t->rank == 0)
        assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), 1, 3, t->group, NULL), TUTTI_OK);
    if (t->rank == 1)
        assert_int_equal(pthread_create(&thread, NULL, send_late, t->group), 0);
    assert_int_equal(tutti_new_group(NULL, 0, NULL, &group), TUTTI_OK);
    if (t->rank == 1) {
        assert_int_equal(pthread_join(thread, &st), 0);
        assert_int_equal((int)(intptr_t)st, TUTTI_OK);
    }
    assert_int_equal(tutti_destroy_process_group(group), TUTTI_OK);
}

/* Groups and calls in turn, with somebody else who is late each time: nobody is accused. */
static void who_is_late_is_not_accused(tt_ctx *t)
{
    int i;

    for (i = 0; i < ROUNDS; i++) {
        struct timespec pause = { .tv_nsec = 700000000 }; /* for longer than two looks at whom a wait is for */

        if (t->rank == i % t->size && i % 4 == 0)
            nanosleep(&pause, NULL);
        a_group_works();
        assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
    }
}

static void *in_a_barrier(void *group)
{
    return (void *)(intptr_t)tutti_barrier(group);
}

/* Rank 0 waits in a call of its world for all others, whose threads have yet to make it, and comes to the group, too. */
static void another_thread_may_come(tt_ctx *t)
{
    tutti_group *group = NULL;
    pthread_t    thread;
    void        *st = NULL;

    assert_int_equal(pthread_create(&thread, NULL, in_a_barrier, t->group), 0);
    assert_int_equal(tutti_new_group(NULL, 0, NULL, &group), TUTTI_OK);
    assert_int_equal(pthread_join(thread, &st), 0);
    assert_int_equal((int)(intptr_t)st, TUTTI_OK);
    assert_int_equal(tutti_destroy_process_group(group), TUTTI_OK);
}

static void *come_late(void *group)
{
    const struct timespec pause = { .tv_nsec = 900000000 };

    nanosleep(&pause, NULL);
    return in_a_barrier(group);
}

/* Rank 0 is in a call of its world, and comes to the group behind it. Each other rank makes the group first, and the call is its other
 * thread's, which works on what it brings there and has called nothing before. */
static void another_thread_may_call(tt_ctx *t)
{
    tutti_group *group = NULL;
    pthread_t    thread;
    void        *st = NULL;

    if (t->rank == 0)
        assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
    else
        assert_int_equal(pthread_create(&thread, NULL, come_late, t->group), 0);
    assert_int_equal(tutti_new_group(NULL, 0, NULL, &group), TUTTI_OK);
    if (t->rank != 0) {
        assert_int_equal(pthread_join(thread, &st), 0);
        assert_int_equal((int)(intptr_t)st, TUTTI_OK);
    }
    assert_int_equal(tutti_destroy_process_group(group), TUTTI_OK);
}

/* Rank 0's thread waits in a call, and all others make the group that rank 0 comes to when it has worked for a while. */
static void another_thread_may_make_it(tt_ctx *t)
{
    const struct timespec pause = { .tv_nsec = 900000000 };
    tutti_group          *group = NULL;
    pthread_t             thread;
    void                 *st = NULL;

    if (t->rank == 0) {
        assert_int_equal(pthread_create(&thread, NULL, in_a_barrier, t->group), 0);
        nanosleep(&pause, NULL);
    }
    assert_int_equal(tutti_new_group(NULL, 0, NULL, &group), TUTTI_OK);
    if (t->rank == 0)
        assert_int_equal(pthread_join(thread, &st), 0);
    else
        st = in_a_barrier(t->group);
    assert_int_equal((int)(intptr_t)st, TUTTI_OK);
    assert_int_equal(tutti_destroy_process_group(group), TUTTI_OK);
}

/* Half of the ranks leave the world, in order, and the others make a group with all of them. */
static void who_has_left_comes_to_no_group(tt_ctx *t)
{
    tutti_group *group = NULL;
    int64_t      start;

    assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
    if (t->rank >= t->size / 2)
        return;
    start = now_ms();
    assert_int_equal(tutti_new_group(NULL, 0, NULL, &group), TUTTI_E_PEER);
    expect_in_time(start);
    expect_words("group '1' cannot be made: rank 2 has not joined, and rank 2 (");
    tt_post(t, DONE); /* rank 0 serves the store */
    tt_await(t, DONE, (uint32_t)t->size / 2);
}

/* ---- messages --------------------------------------------------------------------------------------- */

/* Rank 1 gives up a receive with a tag that nobody sends; the others are in a call, or in a receive, with much more time. */
static void what_ended_is_named(tt_ctx *t)
{
    float x = 1.0f;

    all_have_begun(t);
    if (t->rank == 1) {
        assert_int_equal(tutti_set_timeout(t->group, SHORT_MS), TUTTI_OK);
        assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), TUTTI_ANY_SOURCE, 7, t->group, NULL), TUTTI_E_TIMEOUT);
        return;
    }
    if (t->rank == 2) {
        assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), 1, 3, t->group, NULL), TUTTI_E_TIMEOUT);
        assert_int_equal(strncmp(tutti_last_error(), "recv from rank 1, tag 3 on group '0' failed", 43), 0);
    } else {
        assert_int_equal(tutti_barrier(t->group), TUTTI_E_TIMEOUT);
        expect_words("barrier #");
    }
    expect_words("rank 1");
    expect_words("reported");
    expect_words("recv from any rank, tag 7");
    expect_words("\n  next: ");
}

static void a_receive_that_does_not_fit_counts_elements(tt_ctx *t)
{
    float x[1000] = { 0 };

    if (t->rank == 0) {
        assert_int_equal(tutti_send(TUTTI_SPAN(x, 1000), 1, 4, t->group), TUTTI_OK);
    } else if (t->rank == 1) {
        assert_int_equal(tutti_recv(TUTTI_SPAN(x, 999), 0, 4, t->group, NULL), TUTTI_E_MISMATCH);
        expect_words("recv from rank 0, tag 4 on group '0'");
        expect_words("has 1000 f32, the receive is for 999 f32\n  next: ");
    }
    assert_int_equal(tutti_barrier(t->group), TUTTI_OK); /* only the message has failed */
}

/* ---- settings --------------------------------------------------------------------------------------- */

/* What is logged while this rank joins. */
static void join_and_read_log(tt_ctx *t, char *text_out, size_t bytes)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    const int          before = dup(STDERR_FILENO);
    FILE              *file = tmpfile();
    tutti_status       st;

    assert_true(file != NULL && before >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    opts.init_method = t->init_method;
    st = tutti_init_process_group(&opts);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    close(before);
    rewind(file);
    text_out[fread(text_out, 1, bytes - 1, file)] = '\0';
    fclose(file);
    assert_int_equal(st, TUTTI_OK);
}

static void a_transport_that_differs_is_told(tt_ctx *t)
{
    char text[4096];

    setenv("TUTTI_TRANSPORT", t->rank == 1 ? "tcp" : "auto", 1);
    join_and_read_log(t, text, sizeof text);
    if ((strstr(text, "TUTTI_TRANSPORT is 'auto' on rank 0 (host '") != NULL) != (t->rank == 0) ||
        (strstr(text, "'tcp' on rank 1 (host '") != NULL) != (t->rank == 0) ||
        (strstr(text, "differs on 0 more") != NULL) != (t->rank == 0))
        fail_msg("it says '%s'", text);
    assert_int_equal(tutti_barrier(NULL), TUTTI_OK);
    assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_OK);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(one_refuses_its_arguments, .ranks = 2, .transports = "shm,tcp,threads", .limit_ms = 60000, .waits = true),
        TT_TEST(one_refuses_its_arguments, .ranks = 4, .hosts = 2, .limit_ms = 60000, .waits = true),
        TT_TEST(one_names_a_backend_that_is_not_there, .ranks = 3, .limit_ms = 60000, .waits = true),
        TT_TEST(one_cannot_load_its_backend, .ranks = 3, .limit_ms = 60000, .waits = true),
        TT_TEST(one_refuses_subgroups, .ranks = 4, .transports = "shm,tcp,threads", .limit_ms = 60000, .waits = true),
        TT_TEST(one_refuses_subgroups, .ranks = 4, .hosts = 2, .limit_ms = 60000, .waits = true),
        TT_TEST(one_refuses_a_split, .ranks = 4, .transports = "shm,tcp,threads", .limit_ms = 60000, .waits = true),
        TT_TEST(one_refuses_a_split, .ranks = 4, .hosts = 2, .limit_ms = 60000, .waits = true),
        TT_TEST(lists_of_a_split_in_another_order, .ranks = 4, .transports = "shm,tcp,threads", .limit_ms = 60000, .waits = true),
        TT_TEST(lists_of_a_split_in_another_order, .ranks = 4, .hosts = 2, .limit_ms = 60000, .waits = true),
        TT_TEST(who_finds_other_lists_may_leave, .ranks = 4, .transports = "shm,tcp", .limit_ms = 60000, .waits = true),
        TT_TEST(who_finds_other_lists_may_leave, .ranks = 4, .hosts = 2, .limit_ms = 60000, .waits = true),
        TT_TEST(lists_of_a_split_of_others, .ranks = 4, .transports = "shm,tcp,threads", .limit_ms = 60000, .waits = true),
        TT_TEST(lists_of_a_split_of_others, .ranks = 4, .hosts = 2, .limit_ms = 60000, .waits = true),
        TT_TEST(one_refuses_a_backend_of_ours, .ranks = 3, .transports = "shm,tcp", .limit_ms = 60000, .waits = true),
        TT_TEST(one_refuses_a_backend_that_asks, .ranks = 3, .limit_ms = 60000, .waits = true),
        TT_TEST(some_name_another_backend, .ranks = 3, .transports = "shm,tcp,threads", .limit_ms = 60000, .waits = true),
        TT_TEST(some_name_another_backend, .ranks = 4, .hosts = 2, .limit_ms = 60000, .waits = true),
        TT_TEST(the_first_refuses_to_shrink_a_group, .ranks = 4, .transports = "shm,threads", .limit_ms = 60000, .waits = true),
        TT_TEST(the_last_refuses_to_shrink_a_group, .ranks = 4, .transports = "shm,threads", .limit_ms = 60000, .waits = true),
        TT_TEST(one_refuses_to_shrink_the_world, .ranks = 4, .limit_ms = 60000, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(one_refuses_where_ports_are_few, .ranks = 4, .hosts = 2, .limit_ms = 60000, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(who_has_come_refuses_nothing, .ranks = 4, .limit_ms = 60000, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(who_comes_too_late_begins_anew, .ranks = 4, .limit_ms = 60000, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(who_serves_a_shrink_goes_on, .ranks = 3, .limit_ms = 60000, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(one_names_ours, .ranks = 3, .limit_ms = 60000, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(one_names_another_for_a_local_group, .ranks = 3, .transports = "shm,tcp", .limit_ms = 60000, .waits = true),
        TT_TEST(who_is_no_member_refuses_nothing, .ranks = 4, .transports = "shm,tcp", .limit_ms = 60000),
        TT_TEST(all_refuse_alike, .ranks = 3),
#ifndef __SANITIZE_THREAD__
        TT_TEST(a_call_against_a_new_group, .ranks = 2, .transports = "shm,tcp", .limit_ms = 60000, .waits = true),
        TT_TEST(a_call_against_a_new_group, .ranks = 4, .hosts = 2, .limit_ms = 60000, .waits = true),
        TT_TEST(a_receive_against_a_new_group, .ranks = 2, .transports = "shm,tcp", .limit_ms = 60000, .waits = true),
        TT_TEST(a_receive_against_a_new_group, .ranks = 4, .hosts = 2, .limit_ms = 60000, .waits = true),
#endif
        TT_TEST(another_thread_may_send, .ranks = 3, .transports = "shm,tcp,threads", .limit_ms = 60000, .waits = true),
        TT_TEST(who_is_late_is_not_accused, .ranks = 4, .transports = "shm,tcp", .limit_ms = 60000, .waits = true),
        TT_TEST(another_thread_may_come, .ranks = 3, .transports = "shm,tcp", .limit_ms = 60000),
        TT_TEST(another_thread_may_call, .ranks = 3, .transports = "shm,tcp", .limit_ms = 60000, .waits = true),
        TT_TEST(another_thread_may_call, .ranks = 4, .hosts = 2, .limit_ms = 60000, .waits = true),
        TT_TEST(another_thread_may_make_it, .ranks = 3, .transports = "shm,tcp", .limit_ms = 60000, .waits = true),
        TT_TEST(who_has_left_comes_to_no_group, .ranks = 4, .transports = "shm,tcp", .limit_ms = 60000, .waits = true),
        TT_TEST(who_has_left_comes_to_no_group, .ranks = 4, .hosts = 2, .limit_ms = 60000, .waits = true),
        TT_TEST(what_ended_is_named, .ranks = 3, .transports = "shm,tcp", .limit_ms = 60000, .waits = true),
        TT_TEST(what_ended_is_named, .ranks = 4, .hosts = 2, .limit_ms = 60000, .waits = true),
        TT_TEST(a_transport_that_differs_is_told, .ranks = 3, .init = TT_INIT_NONE),
        TT_TEST(a_receive_that_does_not_fit_counts_elements, .ranks = 2, .transports = "shm,tcp,threads"),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}

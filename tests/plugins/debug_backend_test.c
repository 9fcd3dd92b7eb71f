/* SPDX-License-Identifier: BSD-3-Clause
 *
 * debug_backend_test.c
 * Goal    "debug-NAME" tells every rank which call another one is about to make, how much it gives, or who has not come; what
 *         agrees goes on as without it. That holds around a backend that looks at nothing itself (the plug-in "store") and
 *         around "native"; also for ranks that are threads.
 * Method  three ranks, of which one does something else. The words are looked at on all of them. */
#include <stdio.h>
#include <string.h>
#include "harness/harness.h"
#include <tutti/debug.h>
#include <tutti/tutti.h>

enum { ODD = 2, RANKS = 3, AWAY = 0, BEGUN = 1 /* marks */, SHORT_MS = 1500 };

static void assert_said(const char *word)
{
    if (strstr(tutti_last_error(), word) == NULL)
        fail_msg("'%s' is not in: %s", word, tutti_last_error());
}

/* Nobody is inside the call any more that was before: what comes next ends the group, and it with that. */
static void all_are_out(tt_ctx *t)
{
    tt_post(t, BEGUN);
    tt_await(t, BEGUN, RANKS);
}

static void agree(tt_ctx *t)
{
    int        x[2] = { 1 + t->rank, 10 }, y = t->rank, all[RANKS] = { 0, 0, 0 };
    tutti_span each[RANKS], bufs[] = { TUTTI_SPAN(&x[0], 1), TUTTI_SPAN(&x[1], 1) };
    int        i;

    assert_int_equal(tutti_all_reduce_coalesced(bufs, 2, TUTTI_SUM, t->group), TUTTI_OK);
    assert_int_equal(x[0], 6);
    assert_int_equal(x[1], 30);
    for (i = 0; i < RANKS; i++)
        each[i] = TUTTI_SPAN(&all[i], 1);
    assert_int_equal(tutti_all_gather(each, RANKS, TUTTI_SPAN(&y, 1), t->group), TUTTI_OK);
    for (i = 0; i < RANKS; i++)
        assert_int_equal(all[i], i);
    assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
}

/* Groups have meetings of their own, and messages go through. */
static void agree_on_native(tt_ctx *t)
{
    const int    ranks[] = { 0, 2 };
    tutti_group *pair = NULL;
    int          x = t->rank;

    agree(t);
    assert_int_equal(tutti_new_group(ranks, 2, NULL, &pair), TUTTI_OK);
    if (t->rank != 1) {
        assert_string_equal(tutti_get_backend(pair), "debug-native");
        assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, pair), TUTTI_OK);
        assert_int_equal(x, 2);
        assert_int_equal(tutti_destroy_process_group(pair), TUTTI_OK);
    }
    x = 7;
    if (t->rank == 0)
        assert_int_equal(tutti_send(TUTTI_SPAN(&x, 1), 1, 0, t->group), TUTTI_OK);
    else if (t->rank == 1)
        assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), 0, 0, t->group, NULL), TUTTI_OK);
    assert_int_equal(tutti_monitored_barrier(t->group, 0, false), TUTTI_OK);
}

static void another_call(tt_ctx *t)
{
    float        x[4] = { 0.0f };
    tutti_status st;

    assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
    all_are_out(t);
    if (t->rank == ODD)
        st = tutti_broadcast(TUTTI_SPAN(x, 4), ODD, t->group);
    else
        st = tutti_all_reduce(TUTTI_SPAN(x, 4), TUTTI_SUM, t->group);
    assert_int_equal(st, TUTTI_E_MISMATCH);
    assert_said("all_reduce #2 (sum, 4 f32)");
    assert_said("broadcast #2 (4 f32, root 2)");
    assert_said("the kinds of call differ");
    assert_int_equal(tutti_barrier(t->group), TUTTI_E_MISMATCH); /* it is finished */
}

/* Rank 2 gives rank 0 more than that expects. */
static void another_amount(tt_ctx *t)
{
    int          given[RANKS][2] = { { 1, 1 }, { 1, 1 }, { 1, 1 } }, taken[RANKS][2] = { { 0, 0 }, { 0, 0 }, { 0, 0 } };
    tutti_span   ins[RANKS], outs[RANKS];
    tutti_status st;
    int          r;

    for (r = 0; r < RANKS; r++) {
        ins[r] = TUTTI_SPAN(given[r], t->rank == ODD && r == 0 ? 2 : 1);
        outs[r] = TUTTI_SPAN(taken[r], 1);
    }
    assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
    all_are_out(t);
    assert_int_equal(tutti_set_timeout(t->group, SHORT_MS), TUTTI_OK); /* making the world may take longer */
    st = tutti_all_to_all(outs, RANKS, ins, RANKS, t->group);
    assert_int_not_equal(st, TUTTI_OK);
    if (t->rank == 0) {
        assert_int_equal(st, TUTTI_E_MISMATCH);
        assert_said("rank 2 gives rank 0 2 elements, and 1 are expected");
    }
}

static void somebody_is_away(tt_ctx *t)
{
    int x = 1;

    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_MAX, t->group), TUTTI_OK);
    all_are_out(t);
    assert_int_equal(tutti_set_timeout(t->group, SHORT_MS), TUTTI_OK); /* making the world may take longer */
    if (t->rank == ODD) {
        tt_await(t, AWAY, RANKS - 1);
        return;
    }
    assert_int_equal(tutti_barrier(t->group), TUTTI_E_TIMEOUT);
    assert_said("barrier #2");
    assert_said("not arrived: rank 2, last at all_reduce #1 (max, 1 i32)");
    tt_post(t, AWAY);
}

/* What the others wait for, what the one that has ended was at, and what to do. */
static void somebody_has_ended(tt_ctx *t)
{
    float        x[4] = { 0.0f };
    tutti_status st;

    assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
    all_are_out(t);
    if (t->rank == ODD)
        tt_die();
    st = tutti_all_reduce(TUTTI_SPAN(x, 4), TUTTI_SUM, t->group);
    assert_int_equal(st, TUTTI_E_PEER);
    assert_said("all_reduce #2 (sum, 4 f32)");
    assert_said("rank 2");
    assert_said("its last call was barrier #1");
    assert_said("\n  next: ");
}

static void make_world(tt_ctx *t, tutti_store *store)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    opts.backend = t->backend;
    opts.store = store;
    if (store == NULL)
        opts.init_method = t->init_method;
    opts.rank = store != NULL ? t->rank : 0;
    opts.world_size = store != NULL ? t->size : 0;
    assert_int_equal(tutti_init_process_group(&opts), TUTTI_OK);
}

/* The others have given up waiting for it, and have ended their worlds: it hears of that, and not that somebody has left. */
static void late(tt_ctx *t, tutti_store *store)
{
    float        x[4] = { 0.0f };
    tutti_status st;

    make_world(t, store);
    assert_int_equal(tutti_barrier(NULL), TUTTI_OK);
    all_are_out(t);
    if (t->rank != ODD)
        assert_int_equal(tutti_set_timeout(NULL, SHORT_MS), TUTTI_OK); /* making the world may take longer */
    if (t->rank == ODD)
        tt_await(t, AWAY, RANKS - 1);
    st = tutti_all_reduce(TUTTI_SPAN(x, 4), TUTTI_SUM, NULL);
    assert_int_not_equal(st, TUTTI_OK);
    assert_said("all_reduce #2 (sum, 4 f32)");
    assert_said("\n  next: ");
    if (t->rank == ODD) {
        assert_said("timed out after 1500 ms");
        assert_said("not arrived: rank 2");
    }
    assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_OK);
    tt_post(t, AWAY);
}

static void who_is_late_hears_why(tt_ctx *t)
{
    tutti_store *store = NULL;
    char         path[4352];

    snprintf(path, sizeof path, "%s/store", t->dir);
    assert_int_equal(tutti_file_store_open(path, -1, &store), TUTTI_OK);
    late(t, store);
    tutti_store_close(store);
}

/* Rank 0 serves the store, and takes it along. */
static void who_is_late_hears_why_without_the_store(tt_ctx *t)
{
    late(t, NULL);
}

/* Nobody has named the wrapper here. */
static void at_the_level_detail(tt_ctx *t)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    const int           ranks[] = { 0, 1, 2 };
    tutti_group        *group = NULL;
    float               x = 1.0f;

    assert_int_equal(tutti_set_debug_level(TUTTI_DEBUG_DETAIL), TUTTI_OK);
    opts.backend = "store";
    assert_int_equal(tutti_new_group(ranks, RANKS, &opts, &group), TUTTI_OK);
    assert_string_equal(tutti_get_backend(group), "store");
    assert_int_equal(tutti_barrier(group), TUTTI_OK);
    all_are_out(t);
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), t->rank == ODD ? TUTTI_MIN : TUTTI_MAX, group), TUTTI_E_MISMATCH);
    assert_said("the operations differ");
    assert_int_equal(tutti_destroy_process_group(group), TUTTI_OK);
}

/* The world is "native", the group is compared, and the other way round: they share connections. */
static void one_of_both(tt_ctx *t)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    const bool          is_compared = strcmp(tutti_get_backend(t->group), "native") != 0;
    const int           ranks[] = { 2, 0 };
    tutti_group        *pair = NULL;
    int                 x = t->rank;

    opts.backend = is_compared ? "native" : "debug-native";
    assert_int_equal(tutti_new_group(ranks, 2, &opts, &pair), TUTTI_OK);
    if (t->rank != 1) {
        assert_string_equal(tutti_get_backend(pair), opts.backend);
        assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, pair), TUTTI_OK);
        assert_int_equal(x, 2);
        if (t->rank == 0)
            assert_int_equal(tutti_send(TUTTI_SPAN(&x, 1), 2, 0, pair), TUTTI_OK);
        else
            assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), 0, 0, pair, NULL), TUTTI_OK);
        assert_int_equal(tutti_destroy_process_group(pair), TUTTI_OK);
    }
    assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
}

#define AROUND_STORE .ranks = RANKS, .transports = "shm,threads", .backend = "debug-store", .plugins = TT_PLUGINS
#define AROUND_NATIVE .ranks = RANKS, .transports = "shm,tcp", .backend = "debug-native"

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(agree, AROUND_STORE),
        TT_TEST(agree_on_native, AROUND_NATIVE),
        TT_TEST(one_of_both, AROUND_NATIVE),
        TT_TEST(one_of_both, .ranks = RANKS, .transports = "shm,tcp,threads", .backend = "native"),
        TT_TEST(another_call, AROUND_STORE),
        TT_TEST(another_call, AROUND_NATIVE),
        TT_TEST(at_the_level_detail, .ranks = RANKS, .plugins = TT_PLUGINS),
        TT_TEST(another_amount, AROUND_STORE),
        TT_TEST(somebody_is_away, AROUND_STORE, .waits = true),
        TT_TEST(somebody_is_away, AROUND_NATIVE, .waits = true),
        TT_TEST(somebody_has_ended, AROUND_NATIVE, .dies = ODD),
        TT_TEST(who_is_late_hears_why, AROUND_NATIVE, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(who_is_late_hears_why_without_the_store, AROUND_NATIVE, .init = TT_INIT_NONE, .waits = true),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reconfigure_test.c
 * Goal    worlds start without peers and get members, lose the dead, take in newcomers, in place; what fails
 *         leaves them as they were.
 * Method  processes and threads over shared memory and TCP; handles are handed on in a file store. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "harness/harness.h"
#include <tutti/recorder.h>
#include <tutti/tutti.h>

enum { PATH_BYTES = 4352, RANKS_MAX = 4, TIMEOUT_MS = 15000, SHORT_MS = 1500, BEGUN = 0, GONE = 1 };

typedef struct handles {
    const char *of[RANKS_MAX];
} handles;

static void must(tutti_status st)
{
    if (st != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
}

static bool said(const char *word)
{
    return strstr(tutti_last_error(), word) != NULL;
}

static void expect_sum(tutti_group *group, int32_t mine, int32_t sum)
{
    must(tutti_all_reduce(TUTTI_SPAN(&mine, 1), TUTTI_SUM, group));
    assert_int_equal(mine, sum);
}

/* Who reads the recorder sees the world as it is now: one group, with its members and what it has done. */
static void expect_recorded(const tutti_group *world)
{
    tutti_recorder      *r = NULL;
    tutti_recorder_group g = TUTTI_RECORDER_GROUP;
    const int            rank = tutti_get_rank(world);
    int                  i, n = 0;

    must(tutti_recorder_open_pid(0, &r));
    for (i = 0; i < tutti_recorder_count_groups(r); i++) {
        must(tutti_recorder_get_group(r, i, &g));
        if (!g.is_there || g.rank != rank || strcmp(g.name, tutti_get_group_name(world)) != 0)
            continue;
        n++;
        assert_int_equal(g.n_ranks, tutti_get_world_size(world));
        assert_true(g.ended > 0);
    }
    assert_int_equal(n, 1);
    tutti_recorder_close(r);
}

/* A world that has met nobody. */
static tutti_group *begin(tt_ctx *t)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_group       *world = NULL;

    opts.init_method = t->init_method;
    opts.timeout_ms = TIMEOUT_MS;
    opts.enable_reconfigure = true;
    must(tutti_create_process_group(&opts, &world));
    return world;
}

/* Everybody's handle, by rank in the test. */
static handles trade_handles(tt_ctx *t, const tutti_group *world)
{
    const char  *own = tutti_get_reconfigure_handle(world);
    tutti_store *store = NULL;
    handles      all;
    char         text[PATH_BYTES];
    int          r;

    assert_non_null(own);
    snprintf(text, sizeof text, "%s/handles", t->dir);
    must(tutti_file_store_open(text, -1, &store));
    snprintf(text, sizeof text, "%d", t->rank);
    must(tutti_store_set(store, text, own, strlen(own)));
    for (r = 0; r < t->size; r++) {
        tutti_bytes bytes = { 0 };
        char       *copy;

        snprintf(text, sizeof text, "%d", r);
        must(tutti_store_get(store, text, TIMEOUT_MS, &bytes));
        copy = tt_alloc(t, bytes.size + 1);
        memcpy(copy, bytes.data, bytes.size);
        all.of[r] = copy;
        tutti_bytes_free(&bytes);
    }
    tutti_store_close(store);
    return all;
}

static tutti_status reconfigure(tutti_group *world, int64_t uuid, const char *const *of, int n, int64_t timeout_ms)
{
    tutti_reconfigure_options opts = TUTTI_RECONFIGURE_OPTIONS;

    opts.uuid = uuid;
    opts.handles = of;
    opts.n_handles = n;
    opts.timeout_ms = timeout_ms;
    return tutti_reconfigure(world, &opts);
}

static void worlds_start_without_peers(tt_ctx *t)
{
    tutti_group              *world = begin(t), *pair = NULL, *late = NULL;
    const handles             all = trade_handles(t, world);
    tutti_reconfigure_options opts = TUTTI_RECONFIGURE_OPTIONS;

    assert_int_equal(tutti_barrier(world), TUTTI_E_STATE);
    assert_true(said("group '0' has not met anybody yet"));
    assert_int_equal(tutti_split_group_by_color(world, 0, NULL, &pair), TUTTI_E_STATE);
    tutti_use_group(world);
    assert_int_equal(tutti_new_group(NULL, 0, NULL, &pair), TUTTI_E_STATE);
    assert_int_equal(tutti_shrink_group((const int[]){ 0 }, 1, world, 0, NULL, &late), TUTTI_E_STATE);
    must(reconfigure(world, 1, (const char *const[]){ all.of[2], all.of[1], all.of[0] }, 3, 0));
    assert_int_equal(tutti_get_rank(world), 2 - t->rank);
    assert_int_equal(tutti_get_world_size(world), 3);
    assert_int_equal(tutti_get_process_group_ranks(world)[2], 2);
    expect_sum(world, 1 << tutti_get_rank(world), 7);
    must(tutti_new_group((const int[]){ 0, 2 }, 2, NULL, &pair));
    if (pair != TUTTI_NON_MEMBER) {
        expect_sum(pair, 1, 2);
        assert_int_equal(reconfigure(world, 2, all.of, 3, 0), TUTTI_E_STATE);
        assert_true(said("such as '1'"));
        assert_int_equal(reconfigure(pair, 2, all.of, 3, 0), TUTTI_E_UNSUPPORTED);
        must(tutti_destroy_process_group(pair));
    }
    opts.uuid = 3; /* as a set: the order of the texts decides, whatever was given */
    opts.handles = (const char *const[]){ all.of[t->rank], all.of[(t->rank + 1) % 3], all.of[(t->rank + 2) % 3] };
    opts.n_handles = 3;
    opts.as_set = true;
    must(tutti_reconfigure(NULL, &opts));
    expect_sum(world, 1 << tutti_get_rank(world), 7);
    must(tutti_new_group((const int[]){ 0, 2 }, 2, NULL, &pair));
    if (pair != TUTTI_NON_MEMBER)
        assert_string_equal(tutti_get_group_name(pair), "1"); /* counted anew */
    must(tutti_barrier(world));
    tutti_use_group(NULL);
    must(tutti_destroy_process_group(world));
}

/* Three work, one of them dies, a fourth takes its place; the program keeps its group object. */
static void a_newcomer_replaces_the_dead(tt_ctx *t)
{
    tutti_group  *world = begin(t);
    const handles all = trade_handles(t, world);
    tutti_status  st;
    int           i;

    if (t->rank != 3) {
        must(reconfigure(world, 1, all.of, 3, 0));
        for (i = 0; i < 5; i++)
            expect_sum(world, t->rank, 3);
        tt_post(t, BEGUN);
        tt_await(t, BEGUN, 3);
        if (t->rank == 1)
            kill(getpid(), SIGKILL);
        st = tutti_barrier(world);
        assert_true(st == TUTTI_E_PEER || st == TUTTI_E_ABORTED);
    }
    must(reconfigure(world, 2, (const char *const[]){ all.of[2], all.of[3], all.of[0] }, 3, 0));
    assert_int_equal(tutti_get_rank(world), t->rank == 2 ? 0 : t->rank == 3 ? 1 : 2);
    for (i = 0; i < 5; i++)
        expect_sum(world, t->rank, 5); /* the failure is forgotten, and all count from 1 */
    expect_recorded(world);
    must(tutti_barrier(world));
    must(tutti_destroy_process_group(world));
}

/* Any world will do; works under way end, the group object stays. */
static void an_ordinary_world_is_turned_around(tt_ctx *t)
{
    tutti_group  *world = t->group;
    const handles all = trade_handles(t, world);
    tutti_work   *work = NULL;
    int32_t       x = 0, got = -1;
    tutti_status  st;

    must(tutti_irecv(TUTTI_SPAN(&x, 1), 1 - t->rank, 9, world, &work));
    must(tutti_barrier(world));
    must(reconfigure(world, -5, (const char *const[]){ all.of[1], all.of[0] }, 2, 0));
    st = tutti_work_wait(work);
    assert_true(st == TUTTI_E_ABORTED || st == TUTTI_E_PEER); /* the other may have been faster */
    tutti_work_free(work);
    assert_int_equal(tutti_get_rank(world), 1 - t->rank);
    if (tutti_get_rank(world) == 0)
        must(tutti_send(TUTTI_SPAN(&x, 1), 1, 0, world));
    else
        must(tutti_recv(TUTTI_SPAN(&got, 1), 0, 0, world, NULL));
    must(tutti_barrier(world));
}

static void wrong_calls_change_nothing(tt_ctx *t)
{
    tutti_group              *world = begin(t);
    const handles             all = trade_handles(t, world);
    tutti_reconfigure_options raw = { 0 };

    must(reconfigure(world, 1, all.of, 2, 0));
    assert_int_equal(tutti_reconfigure(world, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_reconfigure(world, &raw), TUTTI_E_ARG);
    assert_int_equal(reconfigure(world, 2, NULL, 0, 0), TUTTI_E_ARG);
    assert_true(said("there are no handles"));
    assert_int_equal(reconfigure(world, 2, (const char *const[]){ all.of[t->rank], "tutti:native:x:1:0" }, 2, 0), TUTTI_E_ARG);
    assert_true(said("handle 1, 'tutti:native:x:1:0'"));
    assert_int_equal(reconfigure(world, 2, (const char *const[]){ all.of[0], all.of[0] }, 2, 0), TUTTI_E_ARG);
    assert_true(said("is there twice"));
    assert_int_equal(reconfigure(world, 2, &all.of[1 - t->rank], 1, 0), TUTTI_E_ARG);
    assert_true(said("own handle"));
    assert_int_equal(reconfigure(world, 1, all.of, 2, 0), TUTTI_E_STATE);
    assert_true(said("uuid 1 was used before"));
    expect_sum(world, 1, 2);
    if (t->rank == 1) { /* rank 0 does not come */
        assert_int_equal(reconfigure(world, 4, all.of, 2, SHORT_MS), TUTTI_E_TIMEOUT);
        assert_true(said("1 of 2 members did not come within ") && said("the new rank 0, 'tutti:native:"));
        assert_true(said("group_name"));
    }
    expect_sum(world, 1, 2);
    if (t->rank == 0) /* each with another order */
        assert_int_equal(reconfigure(world, 5, all.of, 2, SHORT_MS), TUTTI_E_TIMEOUT);
    expect_sum(world, 1, 2);
    if (t->rank == 0)
        assert_int_equal(reconfigure(world, 6, all.of, 1, 0), TUTTI_OK); /* alone */
    must(tutti_destroy_process_group(world));
}

/* Whoever finds it tells the others, also those that wait for it already. */
static void different_handles_are_a_mismatch(tt_ctx *t)
{
    tutti_group  *world = begin(t);
    const handles all = trade_handles(t, world);

    assert_int_equal(reconfigure(world, 1, all.of, t->rank == 0 ? 2 : 3, 0), TUTTI_E_MISMATCH);
    assert_true(said("was given other handles than"));
    must(tutti_destroy_process_group(world));
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(worlds_start_without_peers, .ranks = 3, .transports = "shm,tcp,threads", .init = TT_INIT_NONE),
        TT_TEST(a_newcomer_replaces_the_dead, .ranks = 4, .transports = "shm,tcp", .dies = 1,
                .init = TT_INIT_NONE),
        TT_TEST(an_ordinary_world_is_turned_around, .transports = "shm,tcp,threads"),
        TT_TEST(wrong_calls_change_nothing, .transports = "shm,tcp,threads", .init = TT_INIT_NONE),
        TT_TEST(different_handles_are_a_mismatch, .ranks = 3, .init = TT_INIT_NONE),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}

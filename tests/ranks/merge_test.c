/* SPDX-License-Identifier: BSD-3-Clause
 *
 * merge_test.c
 * Goal    two worlds become one over a store, and stay as they are; who is too many, or does not come, is an
 *         error.
 * Method  processes and threads; each half makes a world of its own, on a file store of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

enum { PATH_BYTES = 4352, LONG_MS = 15000, SHORT_MS = 700 };

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

/* The world of this rank's half. */
static tutti_group *make_half(tt_ctx *t)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_group       *half = NULL;
    char               url[PATH_BYTES];

    snprintf(url, sizeof url, "file://%s/half%d?rank=%d&world_size=%d", t->dir, t->rank / 2, t->rank % 2,
             t->size / 2);
    opts.init_method = url;
    opts.timeout_ms = LONG_MS;
    must(tutti_create_process_group(&opts, &half));
    return half;
}

static tutti_store *open_meeting(tt_ctx *t)
{
    tutti_store *store = NULL;
    char         path[PATH_BYTES];

    snprintf(path, sizeof path, "%s/meeting", t->dir);
    must(tutti_file_store_open(path, -1, &store));
    return store;
}

static void two_worlds_become_one(tt_ctx *t)
{
    tutti_group        *half = make_half(t), *whole = NULL, *odd = NULL;
    tutti_store        *store = open_meeting(t), *again = NULL;
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_work         *work = NULL;
    double              ms = -1;
    int32_t             seen = 0;

    opts.desc = "all of us";
    opts.enable_timing = true;
    opts.backend = "cpu:nosuch";
    assert_int_not_equal(tutti_merge_remote_group(half, store, t->size, &opts, &whole), TUTTI_OK);
    assert_true(said("nosuch")); /* and nobody has taken a place yet */
    opts.backend = "native";
    must(tutti_merge_remote_group(half, store, t->size, &opts, &whole));
    assert_int_equal(tutti_get_world_size(whole), t->size);
    assert_string_equal(tutti_get_group_name(whole), "0:merge");
    assert_string_equal(tutti_get_group_desc(whole), "all of us");
    expect_sum(whole, t->rank, 6);
    must(tutti_barrier_async(whole, &work));
    must(tutti_work_wait(work));
    must(tutti_work_duration(work, &ms));
    tutti_work_free(work);
    seen = 1 << tutti_get_rank(whole);
    expect_sum(whole, seen, 15); /* each rank is there once */
    expect_sum(half, 1, 2);      /* the halves go on */
    tutti_use_group(whole);      /* a world like any other */
    must(tutti_new_group((const int[]){ 1, 3 }, 2, NULL, &odd));
    if (odd != TUTTI_NON_MEMBER)
        expect_sum(odd, 1, 2);
    tutti_use_group(NULL);
    must(tutti_barrier(whole));
    assert_int_equal(tutti_merge_remote_group(half, store, t->size, NULL, &odd), TUTTI_E_ARG); /* all came */
    assert_true(said("a store, or a prefix, of its own"));
    assert_ptr_equal(odd, TUTTI_NO_GROUP);
    must(tutti_destroy_process_group(half)); /* in any order */
    half = NULL;
    must(tutti_prefix_store_open("second", store, &again));
    must(tutti_merge_remote_group(whole, again, t->size, NULL, &half)); /* and once more, from the whole */
    assert_string_equal(tutti_get_group_name(half), "0:merge:merge");
    must(tutti_destroy_process_group(whole));
    expect_sum(half, 1, t->size);
    must(tutti_destroy_process_group(half));
    tutti_store_close(again);
    tutti_store_close(store);
}

static void who_does_not_come(tt_ctx *t)
{
    tutti_group        *half = make_half(t), *whole = NULL;
    tutti_store        *store = open_meeting(t);
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;

    opts.timeout_ms = SHORT_MS;
    assert_int_equal(tutti_merge_remote_group(half, NULL, 4, NULL, &whole), TUTTI_E_ARG);
    assert_int_equal(tutti_merge_remote_group(half, store, 1, NULL, &whole), TUTTI_E_ARG);
    assert_int_equal(tutti_merge_remote_group(TUTTI_NON_MEMBER, store, 4, NULL, &whole), TUTTI_OK);
    assert_ptr_equal(whole, TUTTI_NON_MEMBER);
    if (t->rank < 2) {
        assert_int_equal(tutti_merge_remote_group(half, store, t->size, &opts, &whole), TUTTI_E_TIMEOUT);
        assert_ptr_equal(whole, TUTTI_NO_GROUP);
    }
    expect_sum(half, 1, 2);
    must(tutti_destroy_process_group(half));
    tutti_store_close(store);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(two_worlds_become_one, .ranks = 4, .transports = "shm,tcp,threads", .init = TT_INIT_NONE),
        TT_TEST(who_does_not_come, .ranks = 4, .transports = "shm,tcp", .init = TT_INIT_NONE),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}

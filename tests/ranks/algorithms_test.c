/* SPDX-License-Identifier: BSD-3-Clause
 *
 * algorithms_test.c
 * Goal    ranks that are told to take different algorithms are told so when they make a group, with the variable to
 *         look at; a table is obeyed, or refused with its line; the world goes on after each.
 * Method  real processes, each with an environment of its own; group after group is made in it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

enum { COUNT = 5000 };

static void expect_words(const char *part)
{
    if (strstr(tutti_last_error(), part) == NULL)
        fail_msg("'%s' is not in: %s", part, tutti_last_error());
}

/* The sum of ranks, over several sizes, in a group that is made now. */
static void expect_group_that_works(void)
{
    const int    size = tutti_get_world_size(NULL), rank = tutti_get_rank(NULL);
    tutti_group *group = NULL;
    float        x[COUNT];
    int          count, i;

    assert_int_equal(tutti_new_group(NULL, 0, NULL, &group), TUTTI_OK);
    for (count = 1; count <= COUNT; count *= 5) {
        for (i = 0; i < count; i++)
            x[i] = (float)(rank + i);
        assert_int_equal(tutti_all_reduce(TUTTI_SPAN(x, count), TUTTI_SUM, group), TUTTI_OK);
        for (i = 0; i < count; i++)
            assert_true(x[i] == (float)(size * (size - 1) / 2 + size * i));
    }
    assert_int_equal(tutti_destroy_process_group(group), TUTTI_OK);
}

static void write_table(const tt_ctx *t, const char *name, const char *text, char path[512])
{
    FILE *file;

    snprintf(path, 512, "%s/%s-%d.json", t->dir, name, t->rank);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(setenv("TUTTI_TUNE", path, 1), 0);
}

static void expect_mismatch(const char *says)
{
    tutti_group *group = NULL;

    assert_int_equal(tutti_new_group(NULL, 0, NULL, &group), TUTTI_E_MISMATCH);
    expect_words("were told to take different algorithms");
    expect_words(says);
}

static void different_wishes_are_a_mismatch(tt_ctx *t)
{
    assert_int_equal(setenv("TUTTI_ALGO", t->rank == 1 ? "all_reduce=sliced" : "all_reduce=direct", 1), 0);
    expect_mismatch("give TUTTI_ALGO the same value");
    assert_int_equal(setenv("TUTTI_ALGO", "all_reduce=direct", 1), 0);
    expect_group_that_works();
}

static void different_promises_are_a_mismatch(tt_ctx *t)
{
    assert_int_equal(setenv("TUTTI_REPRODUCIBLE", t->rank == 1 ? "1" : "0", 1), 0);
    expect_mismatch("give TUTTI_REPRODUCIBLE the same value");
    assert_int_equal(setenv("TUTTI_REPRODUCIBLE", "1", 1), 0);
    expect_group_that_works();
}

/* The files are the ranks' own: what counts is what stands in them, not how it is written. */
static void tables_are_compared_by_their_rows(tt_ctx *t)
{
    static const char *const same[] = {
        "{\"tutti_tune\":1,\"rows\":[{\"op\":\"all_reduce\",\"algorithm\":\"sliced\"}]}",
        "{ \"rows\": [\n {\"algorithm\": \"sliced\",\n \"op\": \"all_reduce\"}],\n \"tutti_tune\": 1}",
    };
    static const char other[] = "{\"tutti_tune\":1,\"rows\":[{\"op\":\"all_reduce\",\"algorithm\":\"direct\"}]}";
    char              path[512];

    write_table(t, "same", same[t->rank % 2], path);
    expect_group_that_works();
    write_table(t, "other", t->rank == 1 ? other : same[0], path);
    expect_mismatch("give TUTTI_TUNE the same table");
    assert_int_equal(unsetenv("TUTTI_TUNE"), 0);
    expect_group_that_works();
}

static void a_broken_table_is_refused(tt_ctx *t)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    char               path[512];

    opts.init_method = t->init_method;
    opts.timeout_ms = 5000;
    write_table(t, "broken", "{\"tutti_tune\":1,\n\"rows\":[\n{\"op\":\"all_reduce\",\"algorithm\":\"fast\"}]}", path);
    assert_int_equal(tutti_init_process_group(&opts), TUTTI_E_ARG);
    expect_words(path);
    expect_words("line 3: all_reduce has no algorithm 'fast'");
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(different_wishes_are_a_mismatch, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(different_promises_are_a_mismatch, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(tables_are_compared_by_their_rows, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(tables_are_compared_by_their_rows, .ranks = 4, .hosts = 2),
        TT_TEST(a_broken_table_is_refused, .ranks = 2, .transports = "shm", .init = TT_INIT_NONE),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}

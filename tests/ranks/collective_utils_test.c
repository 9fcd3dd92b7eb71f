/* SPDX-License-Identifier: BSD-3-Clause
 *
 * collective_utils_test.c
 * Goal    results of functions reach all ranks; the failure of one is told on all, with its rank and words, and
 *         nobody hangs; stages and types that differ are named; states that differ are sorted by ranks.
 * Method  functions that fail on some ranks; the group is used again after each. */
#include <stdlib.h>
#include <string.h>
#include "harness/harness.h"
#include <tutti/collective_utils.h>
#include <tutti/private.h>
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

#define REFUSED(call, status, word)                                                                    \
    do {                                                                                               \
        assert_int_equal((call), (status));                                                            \
        if (strstr(tutti_last_error(), (word)) == NULL)                                                \
            fail_msg("'%s' is not in: %s", (word), tutti_last_error());                                \
    } while (0)

/* rank + 1 letters, unless the rank is among those that fail. */
typedef struct plan {
    int  rank;
    int  fails_from; /* this rank and all above it fail */
    int  calls;
} plan;

static tutti_status letters(void *ctx, tutti_bytes *value_out)
{
    plan *p = ctx;

    p->calls++;
    if (p->rank >= p->fails_from)
        return tti_fail(TUTTI_E_IO, "the disk of rank %d is full", p->rank);
    value_out->data = malloc(8);
    assert_non_null(value_out->data);
    memset(value_out->data, 'a' + p->rank, 8);
    value_out->size = (size_t)p->rank + 1;
    return TUTTI_OK;
}

static void results_reach_all_ranks(tt_ctx *t)
{
    plan          p = { .rank = t->rank, .fails_from = 99 };
    tutti_bytes   value = { 0 };
    tutti_bytes   given = tutti_bytes_of("given", 5);
    tutti_objects all = TUTTI_OBJECTS_NONE;
    int           r;

    OK(tutti_broadcast_result("plan", letters, &p, 2, t->group, &value));
    assert_int_equal(value.size, 3);
    assert_string_equal(value.data, "ccc");
    assert_int_equal(p.calls, t->rank == 2 ? 1 : 0);
    tutti_bytes_free(&value);
    OK(tutti_broadcast_result("plan", NULL, t->rank == 1 ? &given : NULL, 1, t->group, &value));
    assert_string_equal(value.data, "given");
    tutti_bytes_free(&value);
    OK(tutti_all_gather_results("load", letters, &p, t->group, &all));
    assert_int_equal(all.n, t->size);
    for (r = 0; r < t->size; r++) {
        assert_int_equal(all.at[r].size, r + 1);
        assert_int_equal(((char *)all.at[r].data)[r], 'a' + r);
        assert_int_equal(((char *)all.at[r].data)[r + 1], 0);
    }
    tutti_objects_free(&all);
}

static void the_failure_of_one_is_told_on_all(tt_ctx *t)
{
    plan          p = { .rank = t->rank, .fails_from = 2 };
    tutti_bytes   value = { 0 };
    tutti_objects all = TUTTI_OBJECTS_NONE;

    if (t->rank == 3)
        REFUSED(tutti_broadcast_result("save", letters, &p, 3, t->group, &value), TUTTI_E_IO, "disk of rank 3");
    else
        REFUSED(tutti_broadcast_result("save", letters, &p, 3, t->group, &value), TUTTI_E_REMOTE,
                "stage 'save' failed on rank 3\n  rank 3 [TUTTI_E_IO]: the disk of rank 3 is full");
    if (t->rank >= 2)
        REFUSED(tutti_all_gather_results("save", letters, &p, t->group, &all), TUTTI_E_IO, "the disk of rank");
    else
        REFUSED(tutti_all_gather_results("save", letters, &p, t->group, &all), TUTTI_E_REMOTE,
                "failed on ranks 2:4:1\n  rank 2 [TUTTI_E_IO]: the disk of rank 2 is full");
    assert_null(value.data);
    assert_null(all.at);
    p.fails_from = 99;
    OK(tutti_all_gather_results("save", letters, &p, t->group, &all));
    tutti_objects_free(&all);
}

static void stages_and_types_have_to_agree(tt_ctx *t)
{
    plan          p = { .rank = t->rank, .fails_from = 99 };
    const char   *stage = t->rank == 2 ? "save" : "load";
    tutti_bytes   value = { 0 };
    tutti_objects all = TUTTI_OBJECTS_NONE;

    REFUSED(tutti_all_gather_results(stage, letters, &p, t->group, &all), TUTTI_E_MISMATCH,
            "the stage of index 2 (rank 2) is 'save', the first is 'load'");
    REFUSED(tutti_broadcast_result(stage, letters, &p, 0, t->group, &value), TUTTI_E_MISMATCH, "'save'");
    REFUSED(tutti_all_gather_object_enforce_type("x", 1, t->rank == 1 ? "text" : "int", t->group, &all),
            TUTTI_E_MISMATCH, "the type of index 1 (rank 1) is 'text', the first is 'int'");
    OK(tutti_all_gather_object_enforce_type("xyz", (size_t)t->rank, "text", t->group, &all));
    assert_int_equal(all.at[3].size, 3);
    assert_string_equal(all.at[3].data, "xyz");
    tutti_objects_free(&all);
    REFUSED(tutti_all_gather_results(NULL, letters, &p, t->group, &all), TUTTI_E_ARG, "stage is NULL");
    REFUSED(tutti_all_gather_results("x", NULL, NULL, t->group, &all), TUTTI_E_ARG, "neither");
    OK(tutti_barrier(t->group));
}

static void what_is_refused_has_its_name(tt_ctx *t)
{
    char          large[4098];
    tutti_objects all = TUTTI_OBJECTS_NONE;

    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    REFUSED(tutti_all_gather_object_enforce_type("x", 1, NULL, t->group, &all), TUTTI_E_ARG, "the type is NULL");
    REFUSED(tutti_all_gather_object_enforce_type("x", 1, large, t->group, &all), TUTTI_E_ARG, "the type has 4097 bytes");
    REFUSED(tutti_all_gather_results(large, letters, NULL, t->group, &all), TUTTI_E_ARG, "the stage has 4097 bytes");
    OK(tutti_barrier(t->group));
}

static void states_are_sorted_by_ranks(tt_ctx *t)
{
    uint64_t    state = t->rank == 1 ? 77 : 5;
    tutti_bytes report = { 0 };
    const char *text, *second;

    OK(tutti_report_random_states("same", 4, t->group, &report));
    assert_int_equal(report.size, 0);
    tutti_bytes_free(&report);
    OK(tutti_report_random_states(&state, sizeof state, t->group, &report));
    text = report.data;
    assert_non_null(strstr(text, ": ranks 0, 2:4:1\n"));
    second = strchr(text, '\n') + 1;
    assert_non_null(strstr(second, ": rank 1\n"));
    assert_int_equal(report.size, strlen(text));
    tutti_bytes_free(&report);
}

/* One rank makes another call that meets the same way: what it brings is no digest, shorter than one too. */
static void what_is_no_digest_is_refused(tt_ctx *t)
{
    tutti_objects all = TUTTI_OBJECTS_NONE;
    tutti_bytes   report = { 0 };

    if (t->rank == 2)
        OK(tutti_all_gather_object("abc", 3, t->group, &all));
    else
        REFUSED(tutti_report_random_states("same", 4, t->group, &report), TUTTI_E_MISMATCH, "rank 2 sent 3 bytes");
    assert_null(report.data);
    tutti_objects_free(&all);
    OK(tutti_barrier(t->group));
}

/* Makes an empty value by leaving it alone, or fails having written one. */
static tutti_status careless(void *ctx, tutti_bytes *value_out)
{
    if (ctx == NULL)
        return TUTTI_OK;
    *value_out = tutti_bytes_of("static", 6);
    return tti_fail(TUTTI_E_IO, "the disk is full");
}

static void alone_a_value_is_written_on_success_only(tt_ctx *t)
{
    int         here = 0;
    tutti_bytes value = tutti_bytes_of(&here, sizeof here);

    (void)t;
    REFUSED(tutti_broadcast_result("plan", careless, &here, 0, NULL, &value), TUTTI_E_IO, "disk");
    assert_ptr_equal(value.data, &here);
    OK(tutti_broadcast_result("plan", careless, NULL, 0, NULL, &value));
    assert_null(value.data);
    assert_int_equal(value.size, 0);
}

/* No world: only the caller runs. */
static void alone_the_caller_runs(tt_ctx *t)
{
    plan          p = { .rank = t->rank, .fails_from = 1 };
    tutti_bytes   value = { 0 };
    tutti_objects all = TUTTI_OBJECTS_NONE;

    if (t->rank == 0) {
        OK(tutti_broadcast_result("plan", letters, &p, 5, NULL, &value));
        OK(tutti_all_gather_results("plan", letters, &p, NULL, &all));
        assert_int_equal(all.n, 1);
        assert_string_equal(all.at[0].data, "a");
        assert_int_equal(p.calls, 2);
    } else {
        REFUSED(tutti_all_gather_results("plan", letters, &p, NULL, &all), TUTTI_E_IO, "disk of rank 1");
    }
    tutti_objects_free(&all);
    tutti_bytes_free(&value);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(results_reach_all_ranks, .ranks = 4, .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(results_reach_all_ranks, .ranks = 4, .hosts = 2, .limit_ms = 60000),
        TT_TEST(the_failure_of_one_is_told_on_all, .ranks = 4, .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(stages_and_types_have_to_agree, .ranks = 4, .transports = "shm,threads", .limit_ms = 60000),
        TT_TEST(what_is_refused_has_its_name, .ranks = 2, .transports = "shm", .limit_ms = 60000),
        TT_TEST(states_are_sorted_by_ranks, .ranks = 4, .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(what_is_no_digest_is_refused, .ranks = 3, .transports = "shm,threads", .limit_ms = 60000),
        TT_TEST(alone_a_value_is_written_on_success_only, .ranks = 1, .init = TT_INIT_NONE, .limit_ms = 60000),
        TT_TEST(alone_the_caller_runs, .ranks = 2, .init = TT_INIT_NONE, .limit_ms = 60000),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * algorithms_test.c
 * Goal    ranks that are told to take different algorithms are told so when they make a group, with the variable to
 *         look at; a table is obeyed, or refused with its line; the world goes on after each.
 *         Floating-point numbers are added in the order of the algorithm that is taken: the same bits on all ranks, in every
 *         run, and in every operation that has the order, however a call is cut.
 * Method  real processes, each with an environment of its own; group after group is made in it. Orders are compared bit by
 *         bit with loops over the inputs of all ranks, which every rank can compute. */
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

/* ---- orders of adding ---- */

enum { RANKS_MAX = 8, LONG_COUNT = 300001 };

typedef enum order { BY_RANK, ALONG_THE_TREE, AROUND_THE_RING } order;

typedef struct orders_case {
    const char *algo;
    order       all_reduce, reduce, reduce_scatter;
} orders_case;

static const orders_case orders[] = {
    { "all_reduce=one_shot,reduce=to_root,reduce_scatter=direct", BY_RANK, BY_RANK, BY_RANK },
    { "all_reduce=direct,reduce=direct,reduce_scatter=direct", BY_RANK, BY_RANK, BY_RANK },
    { "all_reduce=bruck,reduce=direct,reduce_scatter=bruck", BY_RANK, BY_RANK, BY_RANK },
    { "all_reduce=doubling,reduce=binomial,reduce_scatter=halving", ALONG_THE_TREE, ALONG_THE_TREE, ALONG_THE_TREE },
    { "all_reduce=halving,reduce=knomial4,reduce_scatter=direct_tree", ALONG_THE_TREE, ALONG_THE_TREE, ALONG_THE_TREE },
    { "all_reduce=direct_tree,reduce=direct_tree,reduce_scatter=direct_tree", ALONG_THE_TREE, ALONG_THE_TREE,
      ALONG_THE_TREE },
    { "all_reduce=one_shot_tree,reduce=chain,reduce_scatter=ring", ALONG_THE_TREE, AROUND_THE_RING, AROUND_THE_RING },
    { "all_reduce=ring,reduce=chain,reduce_scatter=ring", AROUND_THE_RING, AROUND_THE_RING, AROUND_THE_RING },
};

/* Of very different sizes, so that another order of adding gives other bits. */
static float input_of(int rank, int i)
{
    return (float)(1 + (rank * 7919LL + i * 104729LL) % 1009) * (rank % 3 == 0 ? 1e-3f : 1e4f) * (i % 2 ? 1.0f : -1.0f);
}

/* Pairs of neighbours until a power of two is left, then two by two. */
static float sum_along_the_tree(float *x, int n)
{
    int n_seats = 1, reach, i;

    while (2 * n_seats <= n)
        n_seats *= 2;
    for (i = 0; i < n_seats; i++)
        x[i] = i < n - n_seats ? x[2 * i] + x[2 * i + 1] : x[i + n - n_seats];
    for (reach = 1; reach < n_seats; reach *= 2)
        for (i = 0; i < n_seats; i += 2 * reach)
            x[i] += x[i + reach];
    return x[0];
}

static float sum_in(order how, int size, int owner, int i)
{
    float x[RANKS_MAX] = { 0 }, sum;
    int   r;

    for (r = 0; r < size; r++)
        x[r] = input_of(r, i);
    if (how == ALONG_THE_TREE)
        return sum_along_the_tree(x, size);
    owner = how == BY_RANK ? size - 1 : owner;
    for (sum = x[(owner + 1) % size], r = 2; r <= size; r++)
        sum += x[(owner + r) % size];
    return sum;
}

/* first: where x[0] stands among all elements; owner: who finishes them, -1: whoever, by the cut. */
static void expect_sums(const char *what, const float *x, int count, int first, order how, int owner, float scale)
{
    const int size = tutti_get_world_size(NULL);
    int       i;

    for (i = 0; i < count && (owner >= 0 || how != AROUND_THE_RING); i++) {
        const float want = sum_in(how, size, owner, first + i) / scale;

        if (memcmp(&want, &x[i], sizeof want) != 0)
            fail_msg("%s: element %d of %d is %.9g, not %.9g", what, i, count, (double)x[i], (double)want);
    }
}

/* The same bits on all ranks as on rank 0, and as they were. */
static void expect_agreement(const float *x, int count, tutti_group *group, float *room)
{
    memcpy(room, x, (size_t)count * sizeof *x);
    assert_int_equal(tutti_broadcast(TUTTI_SPAN(room, count), 0, group), TUTTI_OK);
    assert_memory_equal(room, x, (size_t)count * sizeof *x);
}

static void fill_with_inputs(float *x, int count)
{
    int i;

    for (i = 0; i < count; i++)
        x[i] = input_of(tutti_get_rank(NULL), i);
}

static void expect_order(const orders_case *c, int count, float *x, float *room, tutti_group *group)
{
    const int   size = tutti_get_world_size(NULL), rank = tutti_get_rank(NULL), part = count / size;
    const float n = (float)size;
    int         root;

    fill_with_inputs(x, count);
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(x, count), TUTTI_SUM, group), TUTTI_OK);
    expect_sums(c->algo, x, count, 0, c->all_reduce, -1, 1);
    expect_agreement(x, count, group, room);
    fill_with_inputs(x, count);
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(x, count), TUTTI_AVG, group), TUTTI_OK);
    expect_sums(c->algo, x, count, 0, c->all_reduce, -1, n);
    expect_agreement(x, count, group, room);
    for (root = 0; root < size; root++) {
        fill_with_inputs(x, count);
        assert_int_equal(tutti_reduce(TUTTI_SPAN(x, count), root, TUTTI_AVG, group), TUTTI_OK);
        if (rank == root)
            expect_sums(c->algo, x, count, 0, c->reduce, root, n);
    }
    fill_with_inputs(x, part * size);
    assert_int_equal(tutti_reduce_scatter_tensor(TUTTI_SPAN(room, part), TUTTI_SPAN(x, part * size), TUTTI_SUM, group),
                     TUTTI_OK);
    expect_sums(c->algo, room, part, part * rank, c->reduce_scatter, rank, 1);
}

static void algorithms_add_in_their_order(tt_ctx *t)
{
    static const int counts[] = { 1, 1000, LONG_COUNT };
    float           *x = malloc(LONG_COUNT * sizeof *x), *room = malloc(LONG_COUNT * sizeof *room);
    size_t           i, k;

    (void)t;
    assert_non_null(x);
    assert_non_null(room);
    for (i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        tutti_group *group = NULL;

        assert_int_equal(setenv("TUTTI_ALGO", orders[i].algo, 1), 0);
        assert_int_equal(tutti_new_group(NULL, 0, NULL, &group), TUTTI_OK);
        for (k = 0; k < sizeof counts / sizeof counts[0]; k++)
            expect_order(&orders[i], counts[k], x, room, group);
        assert_int_equal(tutti_destroy_process_group(group), TUTTI_OK);
    }
    free(x);
    free(room);
}

/* Who must sum in rank order does, whatever was asked for. */
static void who_promises_rank_order_keeps_it(tt_ctx *t)
{
    const orders_case promised = { "ring, in rank order", BY_RANK, BY_RANK, BY_RANK };
    float             x[COUNT], room[COUNT];
    tutti_group      *group = NULL;

    (void)t;
    assert_int_equal(setenv("TUTTI_ALGO", orders[6].algo, 1), 0);
    assert_int_equal(setenv("TUTTI_REPRODUCIBLE", "1", 1), 0);
    assert_int_equal(tutti_new_group(NULL, 0, NULL, &group), TUTTI_OK);
    expect_order(&promised, COUNT, x, room, group);
    assert_int_equal(tutti_destroy_process_group(group), TUTTI_OK);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(different_wishes_are_a_mismatch, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(different_promises_are_a_mismatch, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(tables_are_compared_by_their_rows, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(tables_are_compared_by_their_rows, .ranks = 4, .hosts = 2),
        TT_TEST(algorithms_add_in_their_order, .ranks = 5, .transports = "tcp", .limit_ms = 90000),
        TT_TEST(algorithms_add_in_their_order, .ranks = 6, .transports = "tcp", .limit_ms = 90000),
        TT_TEST(who_promises_rank_order_keeps_it, .ranks = 3, .transports = "tcp"),
        TT_TEST(a_broken_table_is_refused, .ranks = 2, .transports = "shm", .init = TT_INIT_NONE),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sparse_test.c
 * Goal    the sum of sparse tensors is the sum of the dense ones, with one block for each place that any rank
 *         has, in order, the same bits on all ranks; ranks that disagree get an error with their names, and
 *         wrong tensors are refused before anything is sent.
 * Method  blocks at drawn places, many of them twice and some on several ranks; small whole numbers, so that
 *         sums are exact, compared with a dense array. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)
#define REFUSED(call, st, word)                                                                        \
    do {                                                                                               \
        assert_int_equal((call), (st));                                                                \
        if (strstr(tutti_last_error(), (word)) == NULL)                                                \
            fail_msg("%s: no '%s' in: %s", #call, (word), tutti_last_error());                         \
    } while (0)

enum { ROWS = 7, COLS = 11, BLOCK = 3, MANY = 500 };

/* The blocks of a rank: places are drawn, the last rank has none. */
static tutti_sparse_coo make(tt_ctx *t, int rank, int64_t nnz)
{
    int64_t         *indices = tt_alloc(t, (size_t)nnz * 2 * sizeof *indices + 1);
    float           *values = tt_alloc(t, (size_t)nnz * BLOCK * sizeof *values + 1);
    uint32_t         state = (uint32_t)rank + 1;
    int64_t          k;
    tutti_sparse_coo made = { .sparse_dim = 2, .dense_dim = 1, .sizes = { ROWS, COLS, BLOCK }, .nnz = nnz };

    for (k = 0; k < nnz; k++) {
        state = state * 1664525u + 1013904223u;
        indices[k] = state >> 16 & 3 ? 2 : state >> 20 & 3;
        indices[nnz + k] = (state >> 8 & 255) % COLS;
    }
    for (k = 0; k < nnz * BLOCK; k++)
        values[k] = (float)((k + rank) % 5 - 2);
    made.indices = indices;
    made.values = TUTTI_SPAN(values, nnz * BLOCK);
    return made;
}

typedef struct dense {
    float sums[ROWS][COLS][BLOCK];
    bool  there[ROWS][COLS];
} dense;

static void add(dense *to, const tutti_sparse_coo *t)
{
    int64_t k;
    int     b;

    for (k = 0; k < t->nnz; k++) {
        const int64_t row = t->indices[k], col = t->indices[t->nnz + k];

        to->there[row][col] = true;
        for (b = 0; b < BLOCK; b++)
            to->sums[row][col][b] += ((const float *)t->values.data)[k * BLOCK + b];
    }
}

static void expect(const tutti_sparse_coo *got, const dense *want)
{
    int64_t places = 0, k;
    int     row, col;

    for (row = 0; row < ROWS; row++)
        for (col = 0; col < COLS; col++)
            places += want->there[row][col];
    assert_int_equal(got->nnz, places);
    assert_int_equal(got->values.count, places * BLOCK);
    for (k = 0; k < got->nnz; k++) {
        const int64_t r = got->indices[k], c = got->indices[got->nnz + k];

        assert_true(want->there[r][c]);
        assert_memory_equal((const float *)got->values.data + k * BLOCK, want->sums[r][c], sizeof want->sums[r][c]);
        if (k > 0) /* in order, each once */
            assert_true(got->indices[k - 1] * COLS + got->indices[got->nnz + k - 1] < r * COLS + c);
    }
}

static int64_t blocks_of(const tt_ctx *t, int rank, int64_t nnz)
{
    return rank == t->size - 1 && t->size > 1 ? 0 : nnz * (rank + 1);
}

static void sums_are_those_of_dense_tensors(tt_ctx *t)
{
    static const int64_t counts[] = { 0, 1, 5, MANY };
    size_t               c;
    int                  r;

    for (c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        dense           *want = tt_alloc(t, sizeof *want);
        tutti_sparse_coo mine = make(t, t->rank, blocks_of(t, t->rank, counts[c])), sum, again;

        for (r = 0; r < t->size; r++) {
            const tutti_sparse_coo theirs = make(t, r, blocks_of(t, r, counts[c]));

            add(want, &theirs);
        }
        OK(tutti_sparse_all_reduce(&mine, TUTTI_SUM, t->group, &sum));
        expect(&sum, want);
        OK(tutti_sparse_coalesce(&sum, &again)); /* it is coalesced */
        expect(&again, want);
        tutti_sparse_free(&again);
        tutti_sparse_free(&sum);
        assert_null(sum.owned);
    }
}

/* A scope that is open records nothing of it. */
static void scopes_do_not_record_it(tt_ctx *t)
{
    tutti_sparse_coo mine = make(t, t->rank, 4), sum;

    OK(tutti_coalescing_begin(t->group));
    OK(tutti_sparse_all_reduce(&mine, TUTTI_SUM, t->group, &sum));
    assert_true(sum.nnz > 0);
    OK(tutti_coalescing_end(t->group, NULL));
    tutti_sparse_free(&sum);
}

static void ranks_with_other_sizes_are_named(tt_ctx *t)
{
    tutti_sparse_coo mine = make(t, t->rank, 4), sum = { .nnz = -1 };
    float            x = 1;

    if (t->rank == 2)
        mine.sizes[0] = ROWS + 1;
    REFUSED(tutti_sparse_all_reduce(&mine, TUTTI_SUM, t->group, &sum), TUTTI_E_MISMATCH, "than rank 0: 2\n");
    assert_int_equal(sum.nnz, -1);
    OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, t->group)); /* the group goes on */
    assert_true(x == (float)t->size);
}

static void wrong_tensors_are_refused(tt_ctx *t)
{
    const tutti_sparse_coo good = make(t, t->rank, 4);
    tutti_sparse_coo       bad = good, sum;
    int64_t                outside[8] = { 0, 1, 2, ROWS, 0, 0, 0, 0 };

    REFUSED(tutti_sparse_all_reduce(&good, TUTTI_MAX, t->group, &sum), TUTTI_E_ARG, "TUTTI_SUM is the only one");
    REFUSED(tutti_sparse_all_reduce(&good, TUTTI_SUM, t->group, NULL), TUTTI_E_ARG, "out is NULL");
    REFUSED(tutti_sparse_all_reduce(NULL, TUTTI_SUM, t->group, &sum), TUTTI_E_ARG, "tensor is NULL");
    bad.sparse_dim = 5;
    REFUSED(tutti_sparse_all_reduce(&bad, TUTTI_SUM, t->group, &sum), TUTTI_E_ARG, "5 sparse");
    bad = good, bad.nnz = 5;
    REFUSED(tutti_sparse_all_reduce(&bad, TUTTI_SUM, t->group, &sum), TUTTI_E_ARG, "but values has 12");
    bad = good, bad.indices = outside;
    REFUSED(tutti_sparse_coalesce(&bad, &sum), TUTTI_E_ARG, "block 3 has an index outside");
    bad = good, bad.sizes[0] = INT64_MAX, bad.sizes[1] = 3;
    REFUSED(tutti_sparse_coalesce(&bad, &sum), TUTTI_E_ARG, "beyond 63 bits");
    bad = good, bad.indices = NULL;
    REFUSED(tutti_sparse_coalesce(&bad, &sum), TUTTI_E_ARG, "no indices");
    OK(tutti_barrier(t->group));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static rlim_t pages_now(void)
{
    FILE         *statm = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;

    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%lu", &pages), 1);
    fclose(statm);
    return pages;
}

/* A link may be the first thing that has no memory on that rank, or be reset with the word still in it. */
static void expect_told(tutti_status st)
{
    if (st != TUTTI_E_BACKEND && st != TUTTI_E_PEER)
        fail_msg("%d: %s", (int)st, tutti_last_error());
}

/* Each rank has a block of 16 MiB. The last one may have 32 MiB more than it has: enough for a coalesced copy
 * of its own, not for those of all. Whoever leaves stays until the others were told. */
static void a_rank_without_memory_does_not_keep_others_waiting(tt_ctx *t)
{
    const bool       short_of = t->rank == t->size - 1;
    const int64_t    block = 1 << 22, place = t->rank;
    const rlim_t     page = (rlim_t)sysconf(_SC_PAGESIZE);
    float           *values = tt_alloc(t, (size_t)block * sizeof *values);
    tutti_sparse_coo mine = { .sparse_dim = 1, .dense_dim = 1, .sizes = { 4, block }, .nnz = 1,
                              .indices = &place, .values = TUTTI_SPAN(values, block) };
    struct rlimit    before, tight;
    tutti_sparse_coo sum;

    OK(tutti_barrier(t->group)); /* what the group needs is there */
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    tight = before;
    tight.rlim_cur = (pages_now() + (32 << 20) / page) * page;
    if (short_of)
        assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
    if (short_of)
        REFUSED(tutti_sparse_all_reduce(&mine, TUTTI_SUM, t->group, &sum), TUTTI_E_NOMEM, "tensors of 3 ranks");
    else
        expect_told(tutti_sparse_all_reduce(&mine, TUTTI_SUM, t->group, &sum));
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    expect_told(tutti_barrier(t->group));
}
#endif

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(sums_are_those_of_dense_tensors, .ranks = 3, .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(sums_are_those_of_dense_tensors, .ranks = 1, .transports = "threads", .limit_ms = 60000),
        TT_TEST(scopes_do_not_record_it, .ranks = 2, .transports = "shm,threads", .limit_ms = 60000),
        TT_TEST(ranks_with_other_sizes_are_named, .ranks = 3, .transports = "shm,tcp", .limit_ms = 60000),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they need the addresses */
        TT_TEST(a_rank_without_memory_does_not_keep_others_waiting, .ranks = 3, .transports = "shm,tcp",
                .limit_ms = 20000),
#endif
        TT_TEST(wrong_tensors_are_refused, .ranks = 2, .transports = "threads", .limit_ms = 60000),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}

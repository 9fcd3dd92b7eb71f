/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tensor_comm_test.c
 * Goal    collectives on tensors see elements in the order of their shape, whatever the strides; results that
 *         are under way are waited for wherever they are looked at, and failures are told there.
 * Method  element (i, j) of rank r is 100 r + 10 i + j, in row-major, transposed and cut-out tensors. That a
 *         result is under way is made sure by a rank that begins only when another one says so. */
#include "harness/harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <tutti/train.h>
#include <tutti/tutti.h>

#define OK(call)                                           \
    do {                                                   \
        if ((call) != TUTTI_OK)                            \
            fail_msg("%s: %s", #call, tutti_last_error()); \
    } while (0)
#define REFUSED(call, st, word)                                                \
    do {                                                                       \
        assert_int_equal((call), (st));                                        \
        if (strstr(tutti_last_error(), (word)) == NULL)                        \
            fail_msg("%s: no '%s' in: %s", #call, (word), tutti_last_error()); \
    } while (0)
/* An expression that has to fail. */
#define POISONED(expression, st, word)           \
    do {                                         \
        assert_null(expression);                 \
        REFUSED(tutti_tensor_check(), st, word); \
    } while (0)
#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

enum { ROWS = 2, COLUMNS = 3 };
typedef enum strides { ROW_MAJOR, TRANSPOSED, CUT_OUT, N_STRIDES } strides;

/* [rows, columns], not filled. */
static tutti_tensor *blank(int64_t rows, int64_t columns, strides how)
{
    if (how == TRANSPOSED)
        return tutti_tensor_transpose(tutti_tensor_zeros(TUTTI_F32, 2, SHAPE(columns, rows)), 0, 1);
    if (how == CUT_OUT)
        return tutti_tensor_narrow(
            tutti_tensor_select(tutti_tensor_zeros(TUTTI_F32, 3, SHAPE(rows, 2, columns + 2)), 1,
                                1),
            1, 1, columns);
    return tutti_tensor_zeros(TUTTI_F32, 2, SHAPE(rows, columns));
}

static float *element(tutti_tensor *t, int64_t i, int64_t j)
{
    return (float *)tutti_tensor_data(t) + i * tutti_tensor_stride(t, 0) +
           j * tutti_tensor_stride(t, 1);
}

static tutti_tensor *filled(int rank, int64_t rows, strides how)
{
    tutti_tensor *t = blank(rows, COLUMNS, how);
    int64_t i, j;

    for (i = 0; i < rows; i++)
        for (j = 0; j < COLUMNS; j++)
            *element(t, i, j) = (float)(100 * rank + 10 * i + j);
    return t;
}

static void expect(tutti_tensor *t, int64_t i, int64_t j, int value)
{
    if (*element(t, i, j) != (float)value)
        fail_msg("(%d, %d) is %g, not %d", (int)i, (int)j, (double)*element(t, i, j), value);
}

/* Sum over ranks of element (i, j). */
static int summed(tt_ctx *t, int64_t i, int64_t j)
{
    return 50 * t->size * (t->size - 1) + t->size * (int)(10 * i + j);
}

/* ---- in place --------------------------------------------------------------------------------- */

static void one_tensor(tt_ctx *t, strides how)
{
    const int last = t->size - 1;
    tutti_tensor *a = filled(t->rank, ROWS, how), *b = filled(t->rank, ROWS, how),
                 *c = filled(t->rank, ROWS, how);
    int64_t i, j;

    OK(tutti_tensor_all_reduce_(a, TUTTI_SUM, t->group));
    OK(tutti_tensor_broadcast_(b, last, t->group));
    OK(tutti_tensor_reduce_(c, last, TUTTI_SUM, t->group));
    for (i = 0; i < ROWS; i++)
        for (j = 0; j < COLUMNS; j++) {
            expect(a, i, j, summed(t, i, j));
            expect(b, i, j, 100 * last + 10 * (int)i + (int)j);
            expect(c, i, j,
                   t->rank == last ? summed(t, i, j) : 100 * t->rank + 10 * (int)i + (int)j);
        }
}

/* Concatenated: [P * rows, columns]. Stacked: [P, rows * columns] seen through another stride. */
static void two_tensors(tt_ctx *t, strides how)
{
    const int64_t size = t->size;
    tutti_tensor *in = filled(t->rank, ROWS, how);
    tutti_tensor *joined = blank(ROWS * size, COLUMNS, how),
                 *stacked = blank(size, ROWS * COLUMNS, how);
    tutti_tensor *wide = filled(t->rank, ROWS * size, how), *cut = blank(ROWS, COLUMNS, how);
    tutti_tensor *swapped = blank(ROWS * size, COLUMNS, how);
    int64_t r, i, j;

    OK(tutti_tensor_all_gather_into_tensor_(joined, in, t->group));
    OK(tutti_tensor_all_gather_into_tensor_(stacked, in, t->group));
    OK(tutti_tensor_reduce_scatter_tensor_(cut, wide, TUTTI_SUM, t->group));
    OK(tutti_tensor_all_to_all_single_(swapped, wide, NULL, NULL, t->group));
    for (r = 0; r < size; r++)
        for (i = 0; i < ROWS; i++)
            for (j = 0; j < COLUMNS; j++) {
                expect(joined, r * ROWS + i, j, (int)(100 * r + 10 * i + j));
                expect(stacked, r, i * COLUMNS + j, (int)(100 * r + 10 * i + j));
                expect(swapped, r * ROWS + i, j, (int)(100 * r + 10 * (ROWS * t->rank + i) + j));
                expect(cut, i, j, summed(t, ROWS * t->rank + i, j));
            }
    in = tutti_tensor_view(tutti_tensor_contiguous(wide), 3,
                           SHAPE(size, ROWS, COLUMNS)); /* stacked input */
    OK(tutti_tensor_fill_(cut, 0.0));
    OK(tutti_tensor_reduce_scatter_tensor_(cut, in, TUTTI_SUM, t->group));
    expect(cut, 1, 2, summed(t, ROWS * t->rank + 1, 2));
}

/* Rank r gives rank d (r + d) % 2 rows: uneven, and none. */
static void splits_count_rows(tt_ctx *t, strides how)
{
    int64_t splits[8], rows = 0, r, at = 0;
    tutti_tensor *in, *out;

    for (r = 0; r < t->size; r++)
        rows += splits[r] = (t->rank + r) % 2;
    in = filled(t->rank, rows, how);
    out = blank(rows, COLUMNS, how);
    OK(tutti_tensor_all_to_all_single_(out, in, splits, splits, t->group));
    for (r = 0; r < t->size; r++)
        if (splits[r] != 0) {
            int64_t before = 0, k; /* rows that rank r gives to those in front of me */

            for (k = 0; k < t->rank; k++)
                before += (r + k) % 2;
            expect(out, at, 1, (int)(100 * r + 10 * before + 1));
            at++;
        }
}

static void lists(tt_ctx *t, strides how)
{
    tutti_tensor *in = filled(t->rank, ROWS, how), *outs[8], *ins[8],
                 *out = blank(ROWS, COLUMNS, how);
    const bool root = t->rank == 0;
    int r;

    for (r = 0; r < t->size; r++) {
        outs[r] = blank(ROWS, COLUMNS, (strides)((how + r) % N_STRIDES)); /* each its own */
        ins[r] = filled(10 * t->rank + r, ROWS, how);
    }
    OK(tutti_tensor_all_gather_(outs, t->size, in, t->group));
    for (r = 0; r < t->size; r++)
        expect(outs[r], 1, 2, 100 * r + 12);
    OK(tutti_tensor_all_to_all_(outs, t->size, ins, t->size, t->group));
    for (r = 0; r < t->size; r++)
        expect(outs[r], 1, 1, 100 * (10 * r + t->rank) + 11);
    OK(tutti_tensor_gather_(root ? outs : NULL, root ? t->size : 0, in, 0, t->group));
    for (r = 0; r < t->size && root; r++)
        expect(outs[r], 0, 2, 100 * r + 2);
    OK(tutti_tensor_scatter_(out, root ? ins : NULL, root ? t->size : 0, 0, t->group));
    expect(out, 1, 0, 100 * t->rank + 10);
    OK(tutti_tensor_reduce_scatter_(out, ins, t->size, TUTTI_MAX, t->group));
    expect(out, 1, 0, 100 * (10 * (t->size - 1) + t->rank) + 10);
}

static void messages(tt_ctx *t, strides how)
{
    tutti_tensor *to = blank(ROWS, COLUMNS, (strides)((how + 1) % N_STRIDES)),
                 *from = filled(t->rank, ROWS, how);
    int src = -1;

    if (t->rank == 1)
        OK(tutti_tensor_send(from, 0, 5, t->group));
    if (t->rank == 0) {
        OK(tutti_tensor_recv_(to, TUTTI_ANY_SOURCE, 5, t->group, &src));
        assert_int_equal(src, 1);
        expect(to, 1, 2, 112);
        expect(to, 0, 1, 101);
    }
}

static void strides_do_not_matter(tt_ctx *t)
{
    strides how;

    for (how = ROW_MAJOR; how < N_STRIDES; how++) {
        tutti_scope_begin();
        one_tensor(t, (strides)((how + t->rank) % N_STRIDES)); /* others on other ranks */
        two_tensors(t, (strides)((how + t->rank) % N_STRIDES));
        splits_count_rows(t, how);
        lists(t, how);
        messages(t, how);
        tutti_scope_end();
    }
    OK(tutti_tensor_check());
}

/* ---- out of place ----------------------------------------------------------------------------- */

static void inputs_stay_as_they_are(tt_ctx *t)
{
    strides how;

    for (how = ROW_MAJOR; how < N_STRIDES; how++) {
        tutti_tensor *x, *y, *columns, *cut, *none;

        tutti_scope_begin();
        x = filled(t->rank, ROWS, how);
        y = tutti_tensor_all_reduce(x, TUTTI_MAX, t->group);
        columns = tutti_tensor_all_gather_tensor(x, 1, t->group);
        cut = tutti_tensor_reduce_scatter_tensor(columns, TUTTI_SUM, 1, t->group);
        none = tutti_tensor_all_gather_tensor(tutti_tensor_narrow(x, 0, 0, 0), 1, t->group);
        OK(tutti_tensor_fill_(x, -1.0)); /* at once: what was passed is a copy */
        expect(y, 1, 2, 100 * (t->size - 1) + 12);
        expect(columns, 1, 3 * (t->size - 1) + 2, 100 * (t->size - 1) + 12);
        expect(columns, 0, 1, 1);
        expect(cut, 1, 1, t->size * (100 * t->rank + 11));
        assert_int_equal(tutti_tensor_size(none, 1), COLUMNS * t->size);
        assert_int_equal(tutti_tensor_numel(none), 0);
        OK(tutti_wait_tensor(none));
        OK(tutti_wait_tensor(x)); /* nothing is under way */
        tutti_scope_end();
    }
    OK(tutti_tensor_check());
}

static void lists_are_one_operation(tt_ctx *t)
{
    tutti_tensor *xs[3], *ys[3];
    const int dims[] = { 0, 1, 1 };
    int i;
    const int64_t before = tutti_get_sequence_number(t->group);

    tutti_scope_begin();
    for (i = 0; i < 3; i++)
        xs[i] = filled(t->rank + i, ROWS, (strides)i);
    OK(tutti_tensor_all_reduce_coalesced(xs, 3, TUTTI_SUM, t->group, ys));
    for (i = 0; i < 3; i++)
        expect(ys[i], 1, 2, summed(t, 1, 2) + 100 * t->size * i);
    OK(tutti_tensor_all_gather_into_tensor_coalesced(xs, 3, t->group, ys));
    for (i = 0; i < 3; i++) {
        expect(ys[i], ROWS * (t->size - 1) + 1, 2, 100 * (t->size - 1 + i) + 12);
        xs[i] = dims[i] == 0 ? ys[i] : tutti_tensor_transpose(ys[i], 0, 1);
    }
    OK(tutti_tensor_reduce_scatter_tensor_coalesced(xs, 3, TUTTI_AVG, dims, t->group, ys));
    assert_int_equal(tutti_tensor_size(ys[1], 0), COLUMNS);
    expect(ys[0], 1, 2, 100 * t->rank + 12);
    expect(ys[2], 2, 1, 100 * (t->rank + 2) + 12);
    assert_int_equal(tutti_get_sequence_number(t->group), before + 3);
    tutti_scope_end();
    OK(tutti_tensor_check());
}

/* Rank 0 waits with its part until rank 1 has gone through all that must not wait. */
static void results_are_waited_for_where_they_are_looked_at(tt_ctx *t)
{
    tutti_tensor *x, *y, *seen, *wide;
    float copy[COLUMNS];
    double value = 0.0;

    tutti_scope_begin();
    x = filled(t->rank, ROWS, ROW_MAJOR);
    if (t->rank == 0)
        tt_await(t, 0, 1);
    y = tutti_tensor_all_reduce(x, TUTTI_SUM, t->group);
    wide = tutti_tensor_all_gather_tensor(x, 1, t->group);
    seen = tutti_tensor_narrow(tutti_tensor_select(wide, 0, 1), 0, 3,
                               3); /* a view of what is not there */
    if (t->rank == 1)
        tt_post(t, 0);
    assert_int_equal(tutti_tensor_size(seen, 0), 3);
    memcpy(copy, tutti_tensor_data(seen), sizeof copy);
    assert_true(copy[2] == 112.0f);
    OK(tutti_tensor_item(tutti_tensor_select(tutti_tensor_select(y, 0, 1), 0, 2), &value));
    assert_true(value == 124.0);
    /* dropped without a look: dropping waits, and nothing is written to afterwards */
    if (t->rank == 0)
        tt_await(t, 1, 1);
    (void)tutti_tensor_all_reduce(x, TUTTI_SUM, t->group);
    if (t->rank == 1)
        tt_post(t, 1);
    tutti_scope_end();
    OK(tutti_tensor_check());
}

typedef struct looker {
    tutti_tensor *t;
    double sum;
} looker;

static void *look(void *arg)
{
    looker *l = arg;

    tutti_scope_begin();
    (void)tutti_tensor_item(tutti_tensor_sum(l->t, NULL, 0, false), &l->sum);
    tutti_scope_end();
    return NULL;
}

static void many_threads_may_look(tt_ctx *t)
{
    pthread_t threads[3];
    looker lookers[3];
    int round, i;

    for (round = 0; round < 20; round++) {
        tutti_scope_begin();
        tutti_tensor *y =
            tutti_tensor_all_gather_tensor(filled(t->rank, ROWS, ROW_MAJOR), 1, t->group);

        for (i = 0; i < 3; i++) {
            lookers[i] = (looker){ .t = y };
            assert_int_equal(pthread_create(&threads[i], NULL, look, &lookers[i]), 0);
        }
        for (i = 0; i < 3; i++) {
            pthread_join(threads[i], NULL);
            assert_true(lookers[i].sum == 36.0 * t->size + 300.0 * t->size * (t->size - 1));
        }
        tutti_scope_end();
    }
}

/* ---- what is refused, and what fails ---------------------------------------------------------- */

static void gradients_are_not_lost(tt_ctx *t)
{
    tutti_tensor *x, *y, *list[1];

    tutti_scope_begin();
    x = tutti_tensor_requires_grad_(filled(t->rank, ROWS, ROW_MAJOR), true);
    POISONED(tutti_tensor_all_reduce(x, TUTTI_MAX, t->group), TUTTI_E_UNSUPPORTED, "through 'max'");
    POISONED(tutti_tensor_reduce(x, 0, TUTTI_PRODUCT, t->group), TUTTI_E_UNSUPPORTED,
             "through 'product'");
    REFUSED(tutti_tensor_all_reduce_(x, TUTTI_SUM, t->group), TUTTI_E_STATE, "would be lost");
    REFUSED(tutti_tensor_check(), TUTTI_E_STATE, "all_reduce_");
    REFUSED(tutti_tensor_all_reduce_coalesced(&x, 1, TUTTI_SUM, t->group, list), TUTTI_E_STATE,
            "input 0");
    assert_null(list[0]);
    REFUSED(tutti_tensor_check(), TUTTI_E_STATE, "coalesced");
    OK(tutti_tensor_all_reduce_(tutti_tensor_detach(x), TUTTI_SUM, t->group));
    y = tutti_tensor_all_reduce(tutti_tensor_detach(x), TUTTI_MAX, t->group);
    assert_false(tutti_tensor_requires_grad(y));
    /* a value that a graph had saved, changed by a collective */
    y = filled(1, ROWS, TRANSPOSED);
    x = tutti_tensor_sum(tutti_tensor_mul(x, y), NULL, 0, false);
    OK(tutti_tensor_all_reduce_(y, TUTTI_SUM, t->group));
    assert_int_equal(tutti_tensor_backward(x), TUTTI_E_STATE);
    tutti_scope_end();
    OK(tutti_tensor_check());
}

static void wrong_arguments_are_refused(tt_ctx *t)
{
    const int64_t some[] = { 1, 1 }, none[] = { 3, -1 };
    const int twice[] = { 1, 1 }, outside[] = { 0, 2 };
    tutti_tensor *x, *row, *many;

    tutti_scope_begin();
    x = filled(t->rank, ROWS, ROW_MAJOR);
    row = tutti_tensor_select(x, 0, 0);
    many = tutti_tensor_expand(row, 2, SHAPE(2, 3));
    POISONED(tutti_tensor_all_reduce(NULL, TUTTI_SUM, t->group), TUTTI_E_ARG, "operand is NULL");
    POISONED(tutti_tensor_all_reduce(x, TUTTI_BOR, t->group), TUTTI_E_ARG, "'bor' is not defined");
    POISONED(tutti_tensor_all_gather_tensor(x, 2, t->group), TUTTI_E_ARG, "all_gather_tensor");
    POISONED(tutti_tensor_reduce_scatter_tensor(x, TUTTI_SUM, 1, t->group), TUTTI_E_ARG,
             "does not divide");
    POISONED(tutti_tensor_reduce_scatter(tutti_tensor_unsqueeze(x, 0), TUTTI_SUM, t->group),
             TUTTI_E_ARG, "does not begin with");
    POISONED(tutti_tensor_scatter(row, 0, t->group), TUTTI_E_ARG, "does not begin with");
    POISONED(tutti_tensor_all_to_all_single(x, some, NULL, t->group), TUTTI_E_ARG,
             "both are needed");
    POISONED(tutti_tensor_all_to_all_single(x, some, none, t->group), TUTTI_E_ARG, "split -1");
    POISONED(tutti_tensor_all_to_all_single(row, some, some, t->group), TUTTI_E_ARG, "2 of 3 rows");
    POISONED(tutti_tensor_all_to_all_single(row, NULL, NULL, t->group), TUTTI_E_ARG,
             "do not divide");
    POISONED(tutti_tensor_permute_tensor(x, twice, t->group), TUTTI_E_ARG, "another rank's, too");
    POISONED(tutti_tensor_permute_tensor(x, outside, t->group), TUTTI_E_ARG,
             "no rank of the group");
    POISONED(tutti_tensor_broadcast(x, 7, t->group), TUTTI_E_ARG, "broadcast: on group '");
    POISONED(tutti_tensor_all_reduce(x, TUTTI_SUM, TUTTI_NON_MEMBER), TUTTI_E_STATE,
             "not in the group");
    REFUSED(tutti_tensor_broadcast_(many, 0, t->group), TUTTI_E_ARG, "repeats elements");
    REFUSED(tutti_tensor_all_gather_into_tensor_(row, x, t->group), TUTTI_E_ARG, "all_gather");
    REFUSED(tutti_tensor_all_to_all_single_(x, x, none, none, t->group), TUTTI_E_ARG, "split");
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    OK(tutti_barrier(t->group));
    tutti_scope_end();
}

/* Ranks that disagree: who looks is told, each time, and every way to the elements tells. */
static void failures_are_told_to_who_looks(tt_ctx *t)
{
    tutti_tensor *y, *leaf;
    double value = 7.0;

    tutti_scope_begin();
    y = tutti_tensor_all_reduce(tutti_tensor_zeros(TUTTI_F32, 1, SHAPE(1 + t->rank)), TUTTI_SUM,
                                t->group);
    assert_int_equal(tutti_wait_tensor(y), TUTTI_E_MISMATCH);
    assert_int_equal(tutti_tensor_check(), TUTTI_E_MISMATCH);
    assert_int_equal(tutti_wait_tensor(y), TUTTI_E_MISMATCH);
    assert_null(tutti_tensor_data(y));
    assert_int_equal(tutti_tensor_span(y).count, -1);
    assert_false(tutti_tensor_equal(y, y));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_MISMATCH);
    assert_int_equal(tutti_tensor_item(tutti_tensor_select(y, 0, 0), &value), TUTTI_E_MISMATCH);
    assert_true(value == 7.0);
    (void)tutti_tensor_check();
    leaf = tutti_tensor_requires_grad_(tutti_tensor_ones(TUTTI_F32, 0, NULL), true);
    assert_int_equal(
        tutti_tensor_backward(tutti_tensor_sum(tutti_tensor_mul(leaf, y), NULL, 0, false)),
        TUTTI_E_MISMATCH);
    assert_null(tutti_tensor_grad(leaf));
    tutti_scope_end();
    (void)tutti_tensor_check();
}

/* Recorded, it is issued when the scope ends: a look before that is refused, and a later one sees it all. */
static void a_recorded_one_waits_for_its_scope(tt_ctx *t)
{
    tutti_tensor *x, *y;

    tutti_scope_begin();
    x = filled(t->rank, ROWS, ROW_MAJOR);
    OK(tutti_coalescing_begin(t->group));
    y = tutti_tensor_all_reduce(x, TUTTI_SUM, t->group);
    REFUSED(tutti_wait_tensor(y), TUTTI_E_STATE, "recorded");
    assert_null(tutti_tensor_data(y));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_STATE);
    OK(tutti_coalescing_end(t->group, NULL));
    expect(y, 1, 2, summed(t, 1, 2));
    tutti_scope_end();
    OK(tutti_tensor_check());
}

/* A program that ends with a result it never looked at says so. */
static void leave_one_behind(void)
{
    static tutti_tensor *left; /* for as long as the process lives */
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_store *store = NULL;

    opts.rank = 0;
    opts.world_size = 1;
    if (tutti_hash_store_open(&store) != TUTTI_OK)
        exit(2);
    opts.store = store;
    if (tutti_init_process_group(&opts) != TUTTI_OK)
        exit(3);
    tutti_scope_begin();
    left = tutti_tensor_retain(tutti_tensor_all_reduce(tutti_tensor_zeros(TUTTI_F32, 0, NULL), TUTTI_SUM, NULL));
    exit(left != NULL ? 0 : 4);
}

static void what_is_left_behind_is_counted(tt_ctx *t)
{
    char text[4096] = "";
    size_t used = 0;
    ssize_t n;
    int ends[2], status = -1;
    pid_t child;

    (void)t;
    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        leave_one_behind();
    }
    close(ends[1]);
    while ((n = read(ends[0], text + used, sizeof text - 1 - used)) > 0)
        used += (size_t)n;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 ||
        strstr(text, "1 collective on tensors had not been waited for") == NULL)
        fail_msg("status %d, said: %s", status, text);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(strides_do_not_matter, .ranks = 3, .transports = "shm,tcp,threads",
                .limit_ms = 60000),
        TT_TEST(inputs_stay_as_they_are, .ranks = 3, .transports = "shm,threads",
                .limit_ms = 60000),
        TT_TEST(inputs_stay_as_they_are, .ranks = 1, .transports = "threads", .limit_ms = 60000),
        TT_TEST(lists_are_one_operation, .ranks = 3, .transports = "shm,threads",
                .limit_ms = 60000),
        TT_TEST(results_are_waited_for_where_they_are_looked_at, .ranks = 2,
                .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(many_threads_may_look, .ranks = 2, .transports = "shm,threads", .limit_ms = 60000),
        TT_TEST(gradients_are_not_lost, .ranks = 2, .transports = "shm,threads", .limit_ms = 60000),
        TT_TEST(wrong_arguments_are_refused, .ranks = 2, .transports = "shm,threads",
                .limit_ms = 60000),
        TT_TEST(failures_are_told_to_who_looks, .ranks = 2, .transports = "shm,tcp,threads",
                .limit_ms = 60000),
        TT_TEST(a_recorded_one_waits_for_its_scope, .ranks = 2, .transports = "shm,threads", .limit_ms = 60000),
        TT_TEST(what_is_left_behind_is_counted, .ranks = 1, .transports = "shm",
                .init = TT_INIT_NONE, .limit_ms = 60000),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * measure_test.c
 * Goal    Statistics are right; sizes and expected results are what the operations promise; the loop notices a
 *         wrong result, and counts what it times; so it does where something is computed behind an operation.
 * Method  Known numbers; sides of one rank that are written here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "measure.h"
#include "overlap.h"
#include "product.h"
#include "sample.h"
#include "values.h"

static void quantiles_lie_between_their_neighbours(void **state)
{
    uint64_t values[] = { 50, 10, 40, 20, 30 };
    uint64_t one[] = { 7 };

    (void)state;
    bench_sort(values, 5);
    assert_int_equal(values[0], 10);
    assert_int_equal(values[4], 50);
    assert_true(bench_quantile(values, 5, 0.5) == 30);
    assert_true(bench_quantile(values, 5, 0) == 10);
    assert_true(bench_quantile(values, 5, 1) == 50);
    assert_true(bench_quantile(values, 4, 0.5) == 25); /* 10 20 30 40 */
    assert_true(bench_quantile(values, 5, 0.125) == 15);
    assert_true(bench_quantile(one, 1, 0.99) == 7);
}

static void lines_become_cells(void **state)
{
    bench_cell c;

    (void)state;
    assert_true(bench_cell_read("all_gather bf16 4096 pass-nt async cold 250 7\n", &c));
    assert_int_equal(c.op, BENCH_ALL_GATHER);
    assert_int_equal(c.dtype, BENCH_BF16);
    assert_int_equal(c.form, BENCH_PASS_NT);
    assert_int_equal(c.bytes, 4096);
    assert_int_equal(c.budget_ms, 250);
    assert_int_equal(c.seed, 7);
    assert_true(c.async && c.cold);
    assert_int_equal(c.memory, BENCH_ORDINARY);
    assert_true(bench_cell_read("reduce f32 4096 plain blocking warm 250 7 registered\n", &c));
    assert_int_equal(c.memory, BENCH_REGISTERED);
    assert_int_equal(c.products, 0);
    assert_true(bench_cell_read("all_reduce f32 4096 plain async warm 250 7 ordinary 12\n", &c));
    assert_int_equal(c.products, 12);
    assert_false(bench_cell_read("all_reduce f32 4096 plain async warm 250 7 ordinary -1\n", &c));
    assert_false(bench_cell_read("reduce f32 4096 plain blocking warm 250 7 borrowed\n", &c));
    assert_false(bench_cell_read("all_gather bf16 4096 pass-nt async cold 250", &c));
    assert_false(bench_cell_read("all_gathers bf16 4096 plain async cold 250 7", &c));
    assert_false(bench_cell_read("barrier f16 0 plain blocking warm 250 7", &c));
    assert_false(bench_cell_read("barrier f32 0 plain blocking warm 0 7", &c));
}

static void parts_have_an_element_at_least(void **state)
{
    bench_cell c = { .op = BENCH_ALL_GATHER, .dtype = BENCH_F32, .bytes = 4 };

    (void)state;
    assert_int_equal(bench_part_count(&c, 8), 1);
    assert_int_equal(bench_tensor_count(&c, 8), 8);
    assert_int_equal(bench_in_bytes(&c, 0, 8), 4);
    assert_int_equal(bench_out_bytes(&c, 0, 8), 32);
    c.bytes = 1000;
    c.op = BENCH_REDUCE_SCATTER;
    assert_int_equal(bench_in_bytes(&c, 0, 3), 996); /* 83 elements for each of three */
    assert_int_equal(bench_out_bytes(&c, 0, 3), 332);
    c.op = BENCH_ALL_REDUCE;
    assert_int_equal(bench_in_bytes(&c, 0, 3), 1000);
    assert_int_equal(bench_out_bytes(&c, 0, 3), 0);
    c.op = BENCH_BARRIER;
    assert_int_equal(bench_in_bytes(&c, 0, 3), 0);
}

static void parts_may_differ_by_rank(void **state)
{
    static const int64_t edges[] = { 0, 10, 30, 60 }, of_rank_1[] = { 0, 20, 50, 60 };
    bench_cell c = { .op = BENCH_GATHER_V, .dtype = BENCH_F32, .bytes = 240 };
    int rank, i;

    (void)state;
    for (i = 0; i <= 3; i++)
        assert_int_equal(bench_part_begin(&c, 1, 3, i), edges[i]);
    assert_int_equal(bench_in_bytes(&c, 2, 3), 120);
    assert_int_equal(bench_out_bytes(&c, 2, 3), 240);
    c.op = BENCH_SCATTER_V;
    assert_int_equal(bench_in_bytes(&c, 2, 3), 240);
    assert_int_equal(bench_out_bytes(&c, 2, 3), 120);
    c.op = BENCH_ALL_TO_ALL_V; /* rank 1 gives the second part, the third and the first */
    for (i = 0; i <= 3; i++)
        assert_int_equal(bench_part_begin(&c, 1, 3, i), of_rank_1[i]);
    c.bytes = 4;
    assert_int_equal(bench_tensor_count(&c, 3), 1);
    c.op = BENCH_ALL_GATHER_V;
    for (rank = 0; rank < 3; rank++)
        assert_int_equal(bench_in_bytes(&c, rank, 3), rank == 2 ? 4 : 0);
}

static bool is_gathered(bench_op op)
{
    return op == BENCH_ALL_GATHER || op == BENCH_GATHER || op == BENCH_ALL_GATHER_V || op == BENCH_GATHER_V;
}

/* Every rank's result is put together from the inputs by the definition, and must pass; then not any more. */
static void check_op(bench_op op, bench_dtype dtype)
{
    enum { RANKS = 3, ROOT = 2 };
    const bench_cell c = { .op = op, .dtype = dtype, .bytes = 240, .seed = 5 };
    const size_t size = bench_dtype_size(dtype);
    const int has_it = op == BENCH_GATHER || op == BENCH_GATHER_V ? ROOT : 1;
    char in[RANKS][480] = { { 0 } }, out[480] = { 0 };
    int q;

    for (q = 0; q < RANKS; q++)
        bench_fill(in[q], bench_tensor_count(&c, RANKS), &c, q);
    if (op == BENCH_BROADCAST)
        memcpy(out, in[ROOT], 240);
    else if (op == BENCH_SCATTER || op == BENCH_SCATTER_V)
        memcpy(out, in[ROOT] + (size_t)bench_part_begin(&c, has_it, RANKS, has_it) * size, bench_out_bytes(&c, has_it, RANKS));
    else
        for (q = 0; q < RANKS; q++) {
            const int64_t to = bench_part_begin(&c, has_it, RANKS, q), n = bench_part_begin(&c, has_it, RANKS, q + 1) - to;
            const int64_t from = is_gathered(op) ? 0 : bench_part_begin(&c, q, RANKS, has_it);

            memcpy(out + (size_t)to * size, in[q] + (size_t)from * size, (size_t)n * size);
        }
    assert_int_equal(bench_first_wrong(out, &c, has_it, RANKS, ROOT), -1);
    out[5 * size] ^= 1;
    assert_int_equal(bench_first_wrong(out, &c, has_it, RANKS, ROOT), 5);
}

static void moved_results_are_recognised(void **state)
{
    int dtype;

    (void)state;
    for (dtype = 0; dtype < BENCH_DTYPES; dtype++) {
        check_op(BENCH_BROADCAST, (bench_dtype)dtype);
        check_op(BENCH_ALL_GATHER, (bench_dtype)dtype);
        check_op(BENCH_ALL_TO_ALL, (bench_dtype)dtype);
        check_op(BENCH_GATHER, (bench_dtype)dtype);
        check_op(BENCH_SCATTER, (bench_dtype)dtype);
        check_op(BENCH_ALL_GATHER_V, (bench_dtype)dtype);
        check_op(BENCH_GATHER_V, (bench_dtype)dtype);
        check_op(BENCH_SCATTER_V, (bench_dtype)dtype);
        check_op(BENCH_ALL_TO_ALL_V, (bench_dtype)dtype);
    }
}

static void sums_are_recognised(void **state)
{
    bench_cell c = { .op = BENCH_ALL_REDUCE, .dtype = BENCH_F32, .bytes = 400, .seed = 9 };
    float in[4][100], sum[100];
    int q, i;

    (void)state;
    for (q = 0; q < 4; q++)
        bench_fill(in[q], 100, &c, q);
    for (i = 0; i < 100; i++)
        sum[i] = in[0][i] + in[1][i] + in[2][i] + in[3][i];
    assert_int_equal(bench_first_wrong(sum, &c, 3, 4, 0), -1);
    c.op = BENCH_REDUCE_SCATTER;
    assert_int_equal(bench_first_wrong(sum + 25, &c, 1, 4, 0), -1);
    assert_int_not_equal(bench_first_wrong(sum + 26, &c, 1, 4, 0), -1);
    c.op = BENCH_REDUCE;
    sum[99] += 1;
    assert_int_equal(bench_first_wrong(sum, &c, 1, 4, 1), 99);
    assert_int_equal(bench_first_wrong(sum, &c, 1, 4, 0), -1); /* not the root: whatever is there */
}

/* ---- the loop, with sides of one rank ---------------------------------------------------------- */

static int64_t n_calls; /* of the side under test */

static bool counted(const bench_call *c)
{
    (void)c;
    n_calls++;
    return true;
}

/* Of one rank an all_reduce has nothing to do; this one spoils the last element when it is looked at. */
static bool spoils(const bench_call *c)
{
    if (c->check != NULL)
        ((float *)c->in)[c->count - 1] += 1;
    return true;
}

static bool refuses(const bench_call *c)
{
    return bench_fail("no %s\ntoday", bench_op_names[c->cell->op]);
}

static bench_op_fn op_counted(const bench_cell *c)
{
    (void)c;
    return counted;
}

static bench_op_fn op_spoils(const bench_cell *c)
{
    (void)c;
    return spoils;
}

static bench_op_fn op_refuses(const bench_cell *c)
{
    (void)c;
    return refuses;
}

static bool measure(bench_op_fn (*op)(const bench_cell *), bench_cell cell, bench_figures *figures_out)
{
    const bench_side side = { .name = "test", .op = op };
    char path[] = "/tmp/tutti-measure-XXXXXX";
    bench_board board;
    const int fd = mkstemp(path);
    bool ok;

    assert_true(fd >= 0);
    close(fd);
    assert_true(bench_board_open(&board, path, 0, 1));
    unlink(path);
    ok = bench_measure(&side, &cell, &board, figures_out);
    bench_board_close(&board);
    return ok;
}

static void calls_are_counted(void **state)
{
    const bench_cell cell = { .op = BENCH_ALL_REDUCE, .bytes = 64, .budget_ms = 20 };
    bench_figures f = { .calls = 0 };

    (void)state;
    n_calls = 0;
    assert_true(measure(op_counted, cell, &f));
    assert_true(f.calls >= 1 && f.chained >= 1);
    assert_true(n_calls > f.calls + f.chained); /* and those of the check and of warming up */
    assert_true(f.least <= f.p10 && f.p10 <= f.median && f.median <= f.p90 && f.p90 <= f.p99);
    assert_int_equal(f.bytes, 64);
    assert_int_equal(f.buffers, 1);
}

static void cold_calls_go_through_buffers(void **state)
{
    const bench_cell cell = { .op = BENCH_ALL_TO_ALL, .bytes = 64, .budget_ms = 5, .cold = true };
    const bench_cell barrier = { .op = BENCH_BARRIER, .budget_ms = 5, .cold = true };
    bench_figures f = { .calls = 0 };

    (void)state;
    assert_false(measure(op_counted, cell, &f)); /* nothing was moved to out */
    assert_true(measure(op_counted, barrier, &f));
    assert_int_equal(f.bytes, 0);
    assert_true(f.buffers >= 2);
}

static void wrong_results_are_not_timed(void **state)
{
    const bench_cell cell = { .op = BENCH_ALL_REDUCE, .bytes = 64, .budget_ms = 5 };
    bench_figures f = { .calls = -1 };

    (void)state;
    assert_false(measure(op_spoils, cell, &f));
    assert_non_null(strstr(bench_words(), "wrong result: element 15 on rank 0"));
    assert_false(measure(op_refuses, cell, &f));
    assert_string_equal(bench_words(), "no all_reduce today");
    assert_int_equal(f.calls, -1);
}

/* ---- behind an operation ----------------------------------------------------------------------- */

static int n_begun, n_finished;

static bool begins(const bench_call *c)
{
    (void)c;
    n_begun++;
    return true;
}

static bool finishes(const bench_call *c)
{
    (void)c;
    n_finished++;
    return n_finished == n_begun || bench_fail("%d begun, %d finished", n_begun, n_finished);
}

static bool finishes_wrong(const bench_call *c)
{
    return spoils(c);
}

/* products 0: those that it finds; out NULL: only how many it finds. */
static bool overlap(bench_side side, bench_op op, int products, bench_overlapped *out, int *found)
{
    const bench_cell cell = { .op = op, .bytes = 64, .budget_ms = 5, .products = products };
    char path[] = "/tmp/tutti-measure-XXXXXX";
    bench_board board;
    const int fd = mkstemp(path);
    bool ok;

    assert_true(fd >= 0);
    close(fd);
    assert_true(bench_board_open(&board, path, 0, 1));
    unlink(path);
    ok = out != NULL ? bench_overlap(&side, &cell, &board, out) : bench_overlap_products(&side, &cell, &board, found);
    bench_board_close(&board);
    return ok;
}

static void something_is_computed_behind_an_operation(void **state)
{
    const bench_side side = { .name = "test", .begin = begins, .finish = finishes };
    const bench_side wrong = { .name = "test", .begin = begins, .finish = finishes_wrong };
    const bench_side none = { .name = "test" };
    bench_overlapped o = { .rounds = 0 };

    (void)state;
    n_begun = n_finished = 0;
    assert_true(overlap(side, BENCH_ALL_REDUCE, 0, &o, NULL));
    assert_true(o.rounds >= 3 && o.products >= 1);
    assert_int_equal(n_begun, 1 + 5 + 2 * o.rounds); /* the check, choosing how many products, alone and both */
    assert_int_equal(o.bytes, 64);
    assert_true(o.product > 0 && o.beside > 0 && o.both >= o.beside);
    o.rounds = -1;
    assert_false(overlap(wrong, BENCH_ALL_REDUCE, 0, &o, NULL));
    assert_non_null(strstr(bench_words(), "wrong result"));
    assert_false(overlap(none, BENCH_ALL_REDUCE, 0, &o, NULL));
    assert_string_equal(bench_words(), "nothing can be computed behind all_reduce of test");
    assert_false(overlap(side, BENCH_BROADCAST, 0, &o, NULL));
    assert_int_equal(o.rounds, -1);
}

static void as_much_is_computed_as_is_asked_for(void **state)
{
    const bench_side side = { .name = "test", .begin = begins, .finish = finishes };
    bench_overlapped o = { .rounds = 0 };
    int products = 0;

    (void)state;
    n_begun = n_finished = 0;
    assert_true(overlap(side, BENCH_ALL_REDUCE, 3, &o, NULL));
    assert_int_equal(o.products, 3);
    assert_int_equal(n_begun, 1 + 2 * o.rounds); /* nothing was chosen */
    n_begun = n_finished = 0;
    assert_true(overlap(side, BENCH_ALL_REDUCE, 3, NULL, &products));
    assert_int_equal(n_begun, 1 + 5); /* whatever the cell says */
    assert_true(products >= 1);
    assert_false(overlap(side, BENCH_BROADCAST, 0, NULL, &products));
}

static void products_are_right(void **state)
{
    (void)state;
    bench_product(1);
    assert_true(bench_product_is_right());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_lie_between_their_neighbours),
        cmocka_unit_test(lines_become_cells),
        cmocka_unit_test(parts_have_an_element_at_least),
        cmocka_unit_test(parts_may_differ_by_rank),
        cmocka_unit_test(moved_results_are_recognised),
        cmocka_unit_test(sums_are_recognised),
        cmocka_unit_test(calls_are_counted),
        cmocka_unit_test(cold_calls_go_through_buffers),
        cmocka_unit_test(wrong_results_are_not_timed),
        cmocka_unit_test(as_much_is_computed_as_is_asked_for),
        cmocka_unit_test(products_are_right),
        cmocka_unit_test(something_is_computed_behind_an_operation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

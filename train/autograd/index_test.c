/* SPDX-License-Identifier: BSD-3-Clause
 *
 * index_test.c
 * Goal    reductions along dimensions, joining, cutting, taking by number and products of many matrices
 *         have the right values and gradients, from contiguous memory and from views.
 * Method  values by definition, in f64; gradients by central differences, see gradcheck.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "autograd/gradcheck.h"

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

static int begin(void **state)
{
    (void)state;
    tutti_scope_begin();
    tutti_manual_seed(11);
    return 0;
}

static int end(void **state)
{
    (void)state;
    tutti_scope_end();
    return tutti_tensor_check() == TUTTI_OK ? 0 : -1;
}

static double item(tutti_tensor *t)
{
    double v = NAN;

    assert_int_equal(tutti_tensor_item(t, &v), TUTTI_OK);
    return v;
}

static double at3(tutti_tensor *t, int64_t i, int64_t j, int64_t k)
{
    return item(tutti_tensor_select(tutti_tensor_select(tutti_tensor_select(t, 0, i), 0, j), 0, k));
}

static tutti_tensor *numbers(int nd, const int64_t *shape, const int64_t *data)
{
    return tutti_tensor_from_data(data, TUTTI_I64, nd, shape);
}

typedef tutti_tensor *(*unary)(tutti_tensor *x);

static tutti_tensor *call(tutti_tensor *const *in, const void *ctx)
{
    return (*(const unary *)ctx)(in[0]);
}

/* The same of a view that is not contiguous and has the same shape. */
static tutti_tensor *call_view(tutti_tensor *const *in, const void *ctx)
{
    tutti_tensor *wide = tutti_tensor_permute(in[0], (const int[]){ 2, 0, 1 });

    return (*(const unary *)ctx)(tutti_tensor_narrow(wide, 2, 1, 4));
}

/* f at shape [2, 3, 4], contiguous and as a view of [3, 5, 2]. */
static void check_gradients(const char *what, unary f)
{
    tutti_tensor *x = tt_leaf(-1, 1, 3, SHAPE(2, 3, 4)), *wide = tt_leaf(-1, 1, 3, SHAPE(3, 5, 2));

    tt_gradcheck(what, call, &f, &x, 1);
    tt_gradcheck(what, call_view, &f, &wide, 1);
}

/* ---- reductions ------------------------------------------------------------------------------- */

static tutti_tensor *max_of_1(tutti_tensor *x)
{
    return tutti_tensor_max(x, 1, false, NULL);
}

static tutti_tensor *min_of_last(tutti_tensor *x)
{
    return tutti_tensor_min(x, -1, true, NULL);
}

static tutti_tensor *var_of_all(tutti_tensor *x)
{
    return tutti_tensor_var(x, NULL, 0, 1.0, false);
}

static tutti_tensor *var_of_two(tutti_tensor *x)
{
    return tutti_tensor_var(x, (const int[]){ 0, -1 }, 2, 0.0, true);
}

static tutti_tensor *norm_of_all(tutti_tensor *x)
{
    return tutti_tensor_norm(x, NULL, 0, false);
}

static tutti_tensor *norm_of_1(tutti_tensor *x)
{
    return tutti_tensor_norm(x, (const int[]){ 1 }, 1, true);
}

static tutti_tensor *logsumexp_of_0(tutti_tensor *x)
{
    return tutti_tensor_logsumexp(x, 0, false);
}

static tutti_tensor *logsumexp_of_last(tutti_tensor *x)
{
    return tutti_tensor_logsumexp(x, -1, true);
}

static void gradients_of_reductions(void **state)
{
    (void)state;
    check_gradients("max", max_of_1);
    check_gradients("min", min_of_last);
    check_gradients("var of all", var_of_all);
    check_gradients("var of two", var_of_two);
    check_gradients("norm of all", norm_of_all);
    check_gradients("norm of one", norm_of_1);
    check_gradients("logsumexp of 0", logsumexp_of_0);
    check_gradients("logsumexp of last", logsumexp_of_last);
}

static void extremes_by_definition(void **state)
{
    const double data[8] = { 1, 5, 5, -2, NAN, 0, 7, NAN };
    tutti_tensor *x = tutti_tensor_from_data(data, TUTTI_F64, 2, SHAPE(2, 4));
    tutti_tensor *at = NULL, *y = tutti_tensor_max(x, 1, false, &at);

    (void)state;
    assert_true(item(tutti_tensor_select(y, 0, 0)) == 5.0);
    assert_true(isnan(item(tutti_tensor_select(y, 0, 1))));
    assert_true(item(tutti_tensor_select(at, 0, 0)) == 1.0); /* the first of equals */
    assert_true(item(tutti_tensor_select(at, 0, 1)) == 0.0); /* the first NaN */
    y = tutti_tensor_min(x, 0, true, &at);
    assert_int_equal(tutti_tensor_dim(y), 2);
    assert_int_equal(tutti_tensor_dim(at), 2);
    assert_true(isnan(item(tutti_tensor_select(tutti_tensor_select(y, 1, 0), 0, 0))));
    assert_true(item(tutti_tensor_select(tutti_tensor_select(y, 1, 1), 0, 0)) == 0.0);
    assert_true(item(tutti_tensor_select(tutti_tensor_argmin(x, 1, false), 0, 0)) == 3.0);
    x = numbers(1, SHAPE(3), SHAPE(-4, 9, 2));
    assert_true(item(tutti_tensor_max(x, 0, false, NULL)) == 9.0);
    assert_true(item(tutti_tensor_argmin(x, 0, false)) == 0.0);
    at = x;
    assert_null(tutti_tensor_max(tutti_tensor_zeros(TUTTI_F32, 2, SHAPE(2, 0)), 1, false, &at));
    assert_null(at);
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
}

static void reductions_by_definition(void **state)
{
    const double data[6] = { 1, 2, 4, -3, 0.5, 0 };
    tutti_tensor *x = tutti_tensor_from_data(data, TUTTI_F64, 2, SHAPE(2, 3));
    tutti_tensor *f = tutti_tensor_to(x, TUTTI_F32), *zero;
    double mean = 0, var = 0, squares = 0, exps = 0;
    const int rows = 1;

    (void)state;
    for (int i = 0; i < 6; i++)
        mean += data[i] / 6;
    for (int i = 0; i < 6; i++) {
        var += (data[i] - mean) * (data[i] - mean);
        squares += data[i] * data[i];
        exps += i < 3 ? exp(data[i]) : 0.0;
    }
    assert_true(fabs(item(tutti_tensor_var(x, NULL, 0, 1.0, false)) - var / 5) < 1e-12);
    assert_true(fabs(item(tutti_tensor_var(f, NULL, 0, 0.0, false)) - var / 6) < 1e-6);
    assert_true(fabs(item(tutti_tensor_norm(x, NULL, 0, false)) - sqrt(squares)) < 1e-12);
    assert_true(fabs(item(tutti_tensor_select(tutti_tensor_logsumexp(x, 1, false), 0, 0)) -
                     log(exps)) < 1e-12);
    x = tutti_tensor_from_data((const double[]){ 1e4, 1e4, -INFINITY, -INFINITY, INFINITY, 0 },
                               TUTTI_F64, 2, SHAPE(3, 2));
    x = tutti_tensor_logsumexp(x, 1, false);
    assert_true(fabs(item(tutti_tensor_select(x, 0, 0)) - 1e4 - log(2.0)) < 1e-9);
    assert_true(item(tutti_tensor_select(x, 0, 1)) == -INFINITY);
    assert_true(item(tutti_tensor_select(x, 0, 2)) == INFINITY);
    zero = tutti_tensor_requires_grad_(tutti_tensor_zeros(TUTTI_F32, 2, SHAPE(2, 3)), true);
    x = tutti_tensor_sum(tutti_tensor_norm(zero, &rows, 1, false), NULL, 0, false);
    assert_int_equal(tutti_tensor_backward(x), TUTTI_OK);
    assert_true(item(tutti_tensor_sum(tutti_tensor_grad(zero), NULL, 0, false)) == 0.0);
    assert_true(
        isnan(item(tutti_tensor_var(tutti_tensor_ones(TUTTI_F32, 0, NULL), NULL, 0, 1.0, false))));
    assert_true(
        item(tutti_tensor_norm(tutti_tensor_zeros(TUTTI_F32, 1, SHAPE(0)), NULL, 0, false)) == 0.0);
}

/* ---- joining and cutting ---------------------------------------------------------------------- */

static tutti_tensor *joined(tutti_tensor *const *in, const void *ctx)
{
    return tutti_tensor_cat(in, 3, *(const int *)ctx);
}

static void cat_gradients(void **state)
{
    tutti_tensor *in[3] = { tt_leaf(-1, 1, 2, SHAPE(2, 3)), tt_leaf(-1, 1, 2, SHAPE(4, 3)),
                            tt_leaf(-1, 1, 2, SHAPE(0, 3)) };
    tutti_tensor *wide[3] = { tt_leaf(-1, 1, 2, SHAPE(2, 3)), tt_leaf(-1, 1, 2, SHAPE(2, 1)),
                              tutti_tensor_ones(TUTTI_F64, 2, SHAPE(2, 2)) };
    const int rows = 0, cols = -1;

    (void)state;
    tt_gradcheck("cat of rows", joined, &rows, in, 3);
    tt_gradcheck("cat of columns", joined, &cols, wide, 3);
    wide[0] = tutti_tensor_ones(TUTTI_F64, 2, SHAPE(2, 3)); /* the first one wants none */
    tt_gradcheck("cat of a constant", joined, &cols, wide, 3);
}

static void cat_by_definition(void **state)
{
    tutti_tensor *a = tutti_tensor_arange(TUTTI_F32, 0, 6, 1), *xs[2], *y;

    (void)state;
    xs[0] = tutti_tensor_transpose(tutti_tensor_view(a, 2, SHAPE(2, 3)), 0, 1); /* [3, 2] */
    xs[1] = tutti_tensor_to(tutti_tensor_view(a, 2, SHAPE(3, 2)), TUTTI_F64);
    y = tutti_tensor_cat(xs, 2, 1);
    assert_int_equal(tutti_tensor_dtype(y), TUTTI_F64);
    assert_true(memcmp(tutti_tensor_data(y), (const double[]){ 0, 3, 0, 1, 1, 4, 2, 3, 2, 5, 4, 5 },
                       12 * sizeof(double)) == 0);
    assert_null(tutti_tensor_cat(xs, 0, 0));
    xs[1] = tutti_tensor_zeros(TUTTI_F32, 2, SHAPE(3, 3));
    assert_null(tutti_tensor_cat(xs, 2, 0));
    xs[1] = NULL;
    assert_null(tutti_tensor_cat(xs, 2, 0));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
}

static tutti_tensor *cut_and_mixed(tutti_tensor *x)
{
    tutti_tensor *part[2], *third[3];

    assert_int_equal(tutti_tensor_split(x, 3, -1, 2, part), TUTTI_OK);
    assert_int_equal(tutti_tensor_chunk(x, 3, 1, third), TUTTI_OK);
    assert_int_equal(tutti_tensor_size(part[1], 2), 1);
    return tutti_tensor_mul(tutti_tensor_mul(part[0], part[1]),
                            tutti_tensor_narrow(tutti_tensor_add(third[0], third[2]), 2, 0, 3));
}

static void splits(void **state)
{
    tutti_tensor *x = tutti_tensor_zeros(TUTTI_F32, 2, SHAPE(4, 0)), *part[3] = { x, x, x };

    (void)state;
    check_gradients("split and chunk", cut_and_mixed);
    assert_int_equal(tutti_tensor_split(x, 2, 0, 3, part), TUTTI_E_ARG);
    assert_true(part[0] == NULL && part[1] == NULL && part[2] == NULL);
    assert_int_equal(tutti_tensor_split(x, 0, 0, 1, part), TUTTI_E_ARG);
    assert_int_equal(tutti_tensor_split(x, 5, 1, 1, part), TUTTI_OK);
    assert_int_equal(tutti_tensor_numel(part[0]), 0);
    assert_int_equal(tutti_tensor_chunk(x, 3, 0, part), TUTTI_E_ARG);
    assert_int_equal(tutti_tensor_chunk(NULL, 1, 0, part), TUTTI_E_ARG);
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
}

/* ---- taking by number ------------------------------------------------------------------------- */

static tutti_tensor *select_rows(tutti_tensor *x)
{
    return tutti_tensor_index_select(x, 0, numbers(1, SHAPE(4), SHAPE(1, 0, 1, 1)));
}

static tutti_tensor *select_middle(tutti_tensor *x)
{
    return tutti_tensor_index_select(x, -2, numbers(1, SHAPE(2), SHAPE(2, 2)));
}

static tutti_tensor *gather_last(tutti_tensor *x)
{
    return tutti_tensor_index_gather(x, 2, numbers(3, SHAPE(2, 3, 1), SHAPE(3, 0, 1, 2, 2, 0)));
}

/* Fewer rows and columns than x has, the same element twice. */
static tutti_tensor *gather_few(tutti_tensor *x)
{
    return tutti_tensor_index_gather(x, 1,
                                     numbers(3, SHAPE(1, 4, 2), SHAPE(2, 0, 2, 1, 1, 1, 0, 0)));
}

static void gradients_of_taking(void **state)
{
    (void)state;
    check_gradients("index_select of rows", select_rows);
    check_gradients("index_select of a middle", select_middle);
    check_gradients("gather", gather_last);
    check_gradients("gather of few", gather_few);
}

static void taking_by_definition(void **state)
{
    tutti_tensor *x =
        tutti_tensor_view(tutti_tensor_arange(TUTTI_F32, 0, 24, 1), 3, SHAPE(2, 3, 4));
    tutti_tensor *y = gather_few(x);
    const int64_t at[4][2] = { { 2, 0 }, { 2, 1 }, { 1, 1 }, { 0, 0 } };

    (void)state;
    for (int64_t i = 0; i < 4; i++)
        for (int64_t k = 0; k < 2; k++)
            assert_true(at3(y, 0, i, k) == (double)(at[i][k] * 4 + k));
    y = tutti_tensor_index_select(tutti_tensor_to(x, TUTTI_U8), 2, numbers(1, SHAPE(1), SHAPE(3)));
    assert_true(at3(y, 1, 2, 0) == 23.0);
    y = tutti_tensor_index_select(x, 1, numbers(1, SHAPE(0), SHAPE(0)));
    assert_int_equal(tutti_tensor_numel(y), 0);
    assert_int_equal(tutti_tensor_size(y, 2), 4);
}

static void indices_that_are_not_there(void **state)
{
    tutti_tensor *x = tutti_tensor_zeros(TUTTI_F32, 2, SHAPE(3, 2));

    (void)state;
    assert_null(tutti_tensor_index_select(x, 0, numbers(1, SHAPE(2), SHAPE(1, 3))));
    assert_string_equal(tutti_last_error(), "index_select: index 3 at 1 is not within 0 .. 2");
    assert_null(tutti_tensor_index_select(x, 0, numbers(1, SHAPE(1), SHAPE(-1))));
    assert_null(tutti_tensor_index_select(x, 2, numbers(1, SHAPE(1), SHAPE(0))));
    assert_null(tutti_tensor_index_select(x, 0, x));
    assert_null(tutti_tensor_index_select(x, 0, NULL));
    assert_null(tutti_tensor_index_gather(x, 1, numbers(2, SHAPE(1, 1), SHAPE(2))));
    assert_null(tutti_tensor_index_gather(x, 1, numbers(1, SHAPE(1), SHAPE(0))));
    assert_null(tutti_tensor_index_gather(x, 0, numbers(2, SHAPE(1, 3), SHAPE(0, 0, 0))));
    assert_null(tutti_tensor_index_gather(NULL, 0, x));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
}

/* ---- triangles -------------------------------------------------------------------------------- */

static tutti_tensor *lower(tutti_tensor *x)
{
    return tutti_tensor_tril(x, 1);
}

static tutti_tensor *upper(tutti_tensor *x)
{
    return tutti_tensor_triu(x, -1);
}

static void triangles(void **state)
{
    tutti_tensor *x = tutti_tensor_ones(TUTTI_BOOL, 2, SHAPE(3, 4));

    (void)state;
    check_gradients("tril", lower);
    check_gradients("triu", upper);
    for (int64_t diagonal = -5; diagonal <= 5; diagonal++)
        for (int64_t i = 0; i < 3; i++)
            for (int64_t j = 0; j < 4; j++) {
                tutti_tensor *l = tutti_tensor_tril(x, diagonal),
                             *u = tutti_tensor_triu(x, diagonal);

                l = tutti_tensor_select(tutti_tensor_select(l, 0, i), 0, j);
                u = tutti_tensor_select(tutti_tensor_select(u, 0, i), 0, j);
                assert_true(item(l) == (double)(j - i <= diagonal));
                assert_true(item(u) == (double)(j - i >= diagonal));
            }
    assert_null(tutti_tensor_tril(tutti_tensor_ones(TUTTI_F32, 1, SHAPE(3)), 0));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
}

/* ---- products of many matrices ---------------------------------------------------------------- */

typedef struct factors {
    int nd_a, nd_b;
    int64_t a[4], b[4];
} factors;

static const factors cases[] = {
    { 3, 3, { 2, 3, 4 }, { 2, 4, 5 } },    { 3, 2, { 2, 3, 4 }, { 4, 5 } },
    { 2, 3, { 3, 4 }, { 2, 4, 5 } },       { 4, 4, { 2, 1, 3, 4 }, { 1, 3, 4, 2 } },
    { 4, 3, { 2, 3, 1, 2 }, { 1, 2, 3 } }, { 3, 1, { 2, 3, 4 }, { 4 } },
    { 1, 3, { 4 }, { 2, 4, 3 } },          { 4, 2, { 2, 2, 3, 1 }, { 1, 3 } },
    { 3, 3, { 2, 3, 0 }, { 2, 0, 4 } },    { 3, 3, { 0, 3, 2 }, { 1, 2, 4 } },
    { 3, 2, { 2, 0, 3 }, { 3, 2 } },
};

static tutti_tensor *multiplied(tutti_tensor *const *in, const void *ctx)
{
    (void)ctx;
    return tutti_tensor_matmul(in[0], in[1]);
}

/* Both factors lie transposed. */
static tutti_tensor *multiplied_turned(tutti_tensor *const *in, const void *ctx)
{
    (void)ctx;
    return tutti_tensor_matmul(tutti_tensor_transpose(in[0], -2, -1),
                               tutti_tensor_transpose(in[1], -2, -1));
}

static void gradients_of_many_products(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const factors *c = &cases[i];
        tutti_tensor *in[2] = { tt_leaf(-1, 1, c->nd_a, c->a), tt_leaf(-1, 1, c->nd_b, c->b) };

        tt_gradcheck("matmul", multiplied, NULL, in, 2);
        if (c->nd_a < 2 || c->nd_b < 2)
            continue;
        for (int k = 0; k < 2; k++) {
            tutti_tensor *t = tutti_tensor_transpose(tutti_tensor_detach(in[k]), -2, -1);

            in[k] = tutti_tensor_requires_grad_(tutti_tensor_clone(t), true);
        }
        tt_gradcheck("matmul of transposed", multiplied_turned, NULL, in, 2);
    }
}

static double dot(tutti_tensor *a, tutti_tensor *b, const int64_t *at_a, const int64_t *at_b,
                  int64_t i, int64_t j)
{
    double sum = 0.0;

    a = tutti_tensor_select(tutti_tensor_select(a, 0, at_a[0]), 0, at_a[1]);
    b = tutti_tensor_select(tutti_tensor_select(b, 0, at_b[0]), 0, at_b[1]);
    for (int64_t k = 0; k < tutti_tensor_size(a, 1); k++)
        sum += item(tutti_tensor_select(tutti_tensor_select(a, 0, i), 0, k)) *
               item(tutti_tensor_select(tutti_tensor_select(b, 0, k), 0, j));
    return sum;
}

/* [2, 1, 3, 4] times [1, 3, 4, 2], each from memory in another order, f32. */
static void many_products_by_definition(void **state)
{
    tutti_tensor *a = tutti_tensor_randn(TUTTI_F32, 4, SHAPE(3, 4, 2, 1), NULL);
    tutti_tensor *b = tutti_tensor_randn(TUTTI_F32, 4, SHAPE(1, 3, 2, 4), NULL), *y;

    (void)state;
    a = tutti_tensor_permute(a, (const int[]){ 2, 3, 0, 1 });
    b = tutti_tensor_transpose(b, 2, 3);
    y = tutti_tensor_matmul(a, b);
    for (int64_t n = 0; n < 6; n++)
        for (int64_t i = 0; i < 3; i++)
            for (int64_t j = 0; j < 2; j++) {
                const double want = dot(a, b, SHAPE(n / 3, 0), SHAPE(0, n % 3), i, j);

                assert_true(fabs(at3(tutti_tensor_select(y, 0, n / 3), n % 3, i, j) - want) < 1e-5);
            }
}

static void products_refused(void **state)
{
    tutti_tensor *a = tutti_tensor_zeros(TUTTI_F32, 3, SHAPE(2, 3, 4));
    tutti_tensor *b = tutti_tensor_zeros(TUTTI_F32, 3, SHAPE(3, 4, 5));

    (void)state;
    assert_null(tutti_tensor_matmul(a, b));
    assert_null(tutti_tensor_bmm(a, b));
    assert_non_null(strstr(tutti_last_error(), "bmm: 2 matrices times 3"));
    assert_null(tutti_tensor_bmm(a, tutti_tensor_select(b, 0, 0)));
    assert_null(tutti_tensor_mm(a, b));
    assert_null(tutti_tensor_matmul(a, a));
    assert_null(tutti_tensor_matmul(a, NULL));
    assert_null(tutti_tensor_bmm(NULL, b));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    b = tutti_tensor_zeros(TUTTI_F64, 3, SHAPE(2, 4, 5));
    assert_null(tutti_tensor_bmm(a, b));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_UNSUPPORTED);
    assert_int_equal(tutti_tensor_size(tutti_tensor_bmm(a, tutti_tensor_to(b, TUTTI_F32)), 2), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gradients_of_reductions, begin, end),
        cmocka_unit_test_setup_teardown(extremes_by_definition, begin, end),
        cmocka_unit_test_setup_teardown(reductions_by_definition, begin, end),
        cmocka_unit_test_setup_teardown(cat_gradients, begin, end),
        cmocka_unit_test_setup_teardown(cat_by_definition, begin, end),
        cmocka_unit_test_setup_teardown(splits, begin, end),
        cmocka_unit_test_setup_teardown(gradients_of_taking, begin, end),
        cmocka_unit_test_setup_teardown(taking_by_definition, begin, end),
        cmocka_unit_test_setup_teardown(indices_that_are_not_there, begin, end),
        cmocka_unit_test_setup_teardown(triangles, begin, end),
        cmocka_unit_test_setup_teardown(gradients_of_many_products, begin, end),
        cmocka_unit_test_setup_teardown(many_products_by_definition, begin, end),
        cmocka_unit_test_setup_teardown(products_refused, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

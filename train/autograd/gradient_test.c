/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gradient_test.c
 * Goal    every operation with a gradient has the right one, for every pattern of broadcasting and
 *         through every kind of view.
 * Method  central differences in f64, see gradcheck.h. */
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
    tutti_manual_seed(7);
    return 0;
}

static int end(void **state)
{
    (void)state;
    tutti_scope_end();
    return tutti_tensor_check() == TUTTI_OK ? 0 : -1;
}

/* ---- one operand ------------------------------------------------------------------------------ */

typedef tutti_tensor *(*unary)(tutti_tensor *x);

static tutti_tensor *call_unary(tutti_tensor *const *in, const void *ctx)
{
    return (*(const unary *)ctx)(in[0]);
}

static tutti_tensor *plus(tutti_tensor *x)
{
    return tutti_tensor_add_scalar(x, 1.5);
}

static tutti_tensor *times(tutti_tensor *x)
{
    return tutti_tensor_mul_scalar(x, -2.5);
}

static tutti_tensor *there_and_back(tutti_tensor *x)
{
    return tutti_tensor_to(tutti_tensor_mul(x, x), TUTTI_F64);
}

static tutti_tensor *clamped(tutti_tensor *x)
{
    return tutti_tensor_clamp(x, -0.9, 1.1);
}

static tutti_tensor *cubed(tutti_tensor *x)
{
    return tutti_tensor_pow_scalar(x, 3.0);
}

static tutti_tensor *squares(tutti_tensor *x)
{
    return tutti_tensor_pow_scalar(x, 2.0);
}

static tutti_tensor *root(tutti_tensor *x)
{
    return tutti_tensor_pow_scalar(x, 0.5);
}

static tutti_tensor *below_root(tutti_tensor *x)
{
    return tutti_tensor_pow_scalar(x, -0.5);
}

static tutti_tensor *odd_power(tutti_tensor *x)
{
    return tutti_tensor_pow_scalar(x, -1.7);
}

static tutti_tensor *filled(tutti_tensor *x)
{
    return tutti_tensor_masked_fill(x, tutti_tensor_lt(x, tutti_tensor_scalar(TUTTI_F64, 0.9)),
                                    -2.0);
}

static void one_operand(void **state)
{
    const unary ops[] = { tutti_tensor_neg,
                          tutti_tensor_exp,
                          tutti_tensor_log,
                          tutti_tensor_sqrt,
                          tutti_tensor_tanh,
                          tutti_tensor_sigmoid,
                          tutti_tensor_relu,
                          plus,
                          times,
                          there_and_back,
                          tutti_tensor_clone,
                          tutti_tensor_rsqrt,
                          tutti_tensor_erf,
                          tutti_tensor_gelu,
                          tutti_tensor_gelu_tanh,
                          tutti_tensor_silu,
                          tutti_tensor_abs,
                          clamped,
                          cubed,
                          squares,
                          root,
                          below_root,
                          odd_power,
                          filled };
    const unary below_too[] = { tutti_tensor_exp,
                                tutti_tensor_tanh,
                                tutti_tensor_sigmoid,
                                tutti_tensor_relu,
                                tutti_tensor_erf,
                                tutti_tensor_gelu,
                                tutti_tensor_gelu_tanh,
                                tutti_tensor_silu,
                                tutti_tensor_abs,
                                clamped,
                                cubed,
                                squares,
                                filled };
    tutti_tensor *x = tt_leaf(0.2, 2.0, 2, SHAPE(3, 4));

    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        tt_gradcheck("one operand", call_unary, &ops[i], &x, 1);
    x = tt_leaf(-2.0, -0.1, 1, SHAPE(5));
    for (size_t i = 0; i < sizeof below_too / sizeof below_too[0]; i++)
        tt_gradcheck("one operand below 0", call_unary, &below_too[i], &x, 1);
    x = tt_leaf(0.0, 1.0, 2, SHAPE(0, 3));
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        assert_int_equal(tutti_tensor_numel(ops[i](x)), 0);
}

/* Rows that are not side by side, values and gradients. */
static tutti_tensor *of_a_view(tutti_tensor *const *in, const void *ctx)
{
    tutti_tensor *t = tutti_tensor_transpose(in[0], 0, 1);

    return (*(const unary *)ctx)(tutti_tensor_narrow(t, 1, 1, 2));
}

static void one_operand_of_views(void **state)
{
    const unary ops[] = { tutti_tensor_exp,  tutti_tensor_gelu, tutti_tensor_gelu_tanh,
                          tutti_tensor_silu, clamped,           filled };
    tutti_tensor *x = tt_leaf(-1.5, 1.5, 2, SHAPE(4, 5));

    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        tt_gradcheck("one operand of views", of_a_view, &ops[i], &x, 1);
}

/* Far out, where a careless formula would give NaN; and the corners of each. */
static void corners_of_one_operand(void **state)
{
    const float at[6] = { -INFINITY, -1e30f, 0.0f, 1e30f, INFINITY, NAN };
    tutti_tensor *x = tutti_tensor_from_data(at, TUTTI_F32, 1, SHAPE(6));
    tutti_tensor *far =
        tutti_tensor_requires_grad_(tutti_tensor_clone(tutti_tensor_narrow(x, 0, 1, 3)), true);
    const unary ops[] = { tutti_tensor_gelu, tutti_tensor_gelu_tanh, tutti_tensor_silu };
    const float *v;

    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        v = tutti_tensor_data(ops[i](far));
        assert_true(v[0] == 0.0f && v[1] == 0.0f && v[2] == 1e30f);
        assert_int_equal(tutti_tensor_backward(tutti_tensor_sum(ops[i](far), NULL, 0, false)),
                         TUTTI_OK);
        v = tutti_tensor_data(tutti_tensor_grad(far));
        assert_true(v[0] == 0.0f && v[1] == 0.5f && v[2] == 1.0f);
        assert_int_equal(tutti_tensor_set_grad(far, NULL), TUTTI_OK);
    }
    v = tutti_tensor_data(tutti_tensor_clamp(x, -2.0, 3.0));
    assert_true(v[0] == -2.0f && v[2] == 0.0f && v[4] == 3.0f && isnan(v[5]));
    v = tutti_tensor_data(tutti_tensor_clamp(x, 3.0, -2.0)); /* as torch: the upper bound */
    assert_true(v[0] == -2.0f && v[2] == -2.0f && v[4] == -2.0f);
    v = tutti_tensor_data(tutti_tensor_abs(x));
    assert_true(isinf(v[0]) && v[0] > 0 && v[2] == 0.0f && isnan(v[5]));
    v = tutti_tensor_data(tutti_tensor_pow_scalar(x, 0.0));
    assert_true(v[0] == 1.0f && v[2] == 1.0f && v[5] == 1.0f);
}

static void power_zero_has_no_slope(void **state)
{
    tutti_tensor *x = tutti_tensor_requires_grad_(tutti_tensor_zeros(TUTTI_F32, 1, SHAPE(2)), true);
    tutti_tensor *y = tutti_tensor_add(tutti_tensor_pow_scalar(x, 0.0), x);
    const float *g;

    (void)state;
    assert_int_equal(tutti_tensor_backward(tutti_tensor_sum(y, NULL, 0, false)), TUTTI_OK);
    g = tutti_tensor_data(tutti_tensor_grad(x));
    assert_true(g[0] == 1.0f && g[1] == 1.0f);
}

/* ---- two operands ----------------------------------------------------------------------------- */

typedef tutti_tensor *(*binary)(tutti_tensor *a, tutti_tensor *b);

static tutti_tensor *call_binary(tutti_tensor *const *in, const void *ctx)
{
    return (*(const binary *)ctx)(in[0], in[1]);
}

static tutti_tensor *add_half(tutti_tensor *a, tutti_tensor *b)
{
    return tutti_tensor_add_scaled(a, b, 0.5);
}

/* The condition has a's shape, so that all three broadcast. */
static tutti_tensor *where_larger(tutti_tensor *a, tutti_tensor *b)
{
    return tutti_tensor_where(tutti_tensor_lt(tutti_tensor_scalar(TUTTI_F64, 1.2), a), a, b);
}

static void two_operands_of_all_shapes(void **state)
{
    const binary ops[] = { tutti_tensor_add,     add_half,         tutti_tensor_sub,
                           tutti_tensor_mul,     tutti_tensor_div, tutti_tensor_maximum,
                           tutti_tensor_minimum, where_larger };
    const struct {
        int nd;
        int64_t shape[3];
    } shapes[] = { { 0, { 0 } },       { 1, { 1 } },       { 1, { 4 } },       { 2, { 3, 4 } },
                   { 2, { 3, 1 } },    { 2, { 1, 4 } },    { 3, { 2, 3, 4 } }, { 3, { 2, 1, 4 } },
                   { 3, { 2, 3, 1 } }, { 3, { 1, 1, 1 } }, { 3, { 2, 1, 1 } } };
    const size_t n = sizeof shapes / sizeof shapes[0];

    (void)state;
    for (size_t i = 0; i < n * n; i++) {
        tutti_tensor *in[2] = { tt_leaf(0.5, 2.0, shapes[i / n].nd, shapes[i / n].shape),
                                tt_leaf(0.5, 2.0, shapes[i % n].nd, shapes[i % n].shape) };

        for (size_t k = 0; k < sizeof ops / sizeof ops[0]; k++)
            tt_gradcheck("two operands", call_binary, &ops[k], in, 2);
    }
}

static void only_one_side_requires(void **state)
{
    const binary ops[] = { tutti_tensor_mul, tutti_tensor_div, tutti_tensor_mm };

    (void)state;
    for (size_t k = 0; k < sizeof ops / sizeof ops[0]; k++)
        for (int side = 0; side < 2; side++) {
            tutti_tensor *in[2] = { tt_leaf(0.5, 2.0, 2, SHAPE(3, 3)),
                                    tt_leaf(0.5, 2.0, 2, SHAPE(3, 3)) };

            assert_non_null(tutti_tensor_requires_grad_(in[side], false));
            tt_gradcheck("one side", call_binary, &ops[k], in, 2);
            assert_null(tutti_tensor_grad(in[side]));
        }
}

static void equals_share_and_nan_wins(void **state)
{
    const float va[4] = { 1.0f, 2.0f, NAN, 0.0f }, vb[4] = { 1.0f, 3.0f, 1.0f, NAN };
    tutti_tensor *a = tutti_tensor_from_data(va, TUTTI_F32, 1, SHAPE(4));
    tutti_tensor *b = tutti_tensor_from_data(vb, TUTTI_F32, 1, SHAPE(4));
    tutti_tensor *y;
    const float *v;

    (void)state;
    v = tutti_tensor_data(tutti_tensor_minimum(a, b));
    assert_true(v[0] == 1.0f && v[1] == 2.0f && isnan(v[2]) && isnan(v[3]));
    v = tutti_tensor_data(tutti_tensor_maximum(a, b));
    assert_true(v[0] == 1.0f && v[1] == 3.0f && isnan(v[2]) && isnan(v[3]));
    a = tutti_tensor_requires_grad_(tutti_tensor_narrow(a, 0, 0, 2), true);
    b = tutti_tensor_requires_grad_(tutti_tensor_narrow(b, 0, 0, 2), true);
    y = tutti_tensor_maximum(a, b);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_sum(y, NULL, 0, false)), TUTTI_OK);
    v = tutti_tensor_data(tutti_tensor_grad(a));
    assert_true(v[0] == 0.5f && v[1] == 0.0f);
    v = tutti_tensor_data(tutti_tensor_grad(b));
    assert_true(v[0] == 0.5f && v[1] == 1.0f);
}

static void where_takes_any_type(void **state)
{
    const tutti_dtype types[] = {
        TUTTI_BOOL, TUTTI_U8, TUTTI_I32, TUTTI_I64, TUTTI_F32, TUTTI_F64
    };
    const uint8_t cond[3] = { 1, 0, 7 };
    tutti_tensor *c = tutti_tensor_from_data(cond, TUTTI_U8, 1, SHAPE(3));
    double v;

    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        tutti_tensor *y = tutti_tensor_where(c, tutti_tensor_ones(types[i], 0, NULL),
                                             tutti_tensor_zeros(types[i], 1, SHAPE(3)));

        assert_int_equal(tutti_tensor_dtype(y), types[i]);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(tutti_tensor_item(tutti_tensor_select(y, 0, k), &v), TUTTI_OK);
            assert_true(v == (k == 1 ? 0.0 : 1.0));
        }
    }
    assert_null(tutti_tensor_where(tutti_tensor_to(c, TUTTI_F32), c, c));
    assert_non_null(strstr(tutti_last_error(), "where: the condition is f32, not bool"));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    assert_null(tutti_tensor_where(c, tutti_tensor_zeros(TUTTI_F32, 1, SHAPE(2)), c));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
}

/* NULL goes through every operation, and the first failure is what is kept. */
static void null_poisons(void **state)
{
    const unary ones[] = { tutti_tensor_rsqrt,
                           tutti_tensor_erf,
                           tutti_tensor_gelu,
                           tutti_tensor_gelu_tanh,
                           tutti_tensor_silu,
                           tutti_tensor_abs,
                           clamped,
                           cubed,
                           squares };
    const binary twos[] = { tutti_tensor_maximum, tutti_tensor_minimum };
    tutti_tensor *x = tutti_tensor_ones(TUTTI_F32, 1, SHAPE(2));

    (void)state;
    for (size_t i = 0; i < sizeof ones / sizeof ones[0]; i++) {
        assert_null(ones[i](NULL));
        assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    }
    for (size_t i = 0; i < sizeof twos / sizeof twos[0]; i++) {
        assert_null(twos[i](x, NULL));
        assert_null(twos[i](NULL, x));
        assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    }
    assert_null(tutti_tensor_where(NULL, x, x));
    assert_null(tutti_tensor_where(x, NULL, x));
    assert_null(tutti_tensor_masked_fill(x, NULL, 0.0));
    assert_null(tutti_tensor_gelu(tutti_tensor_mm(x, x)));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
}

/* The same tensor twice: its gradient is the sum of both. */
static tutti_tensor *squared(tutti_tensor *const *in, const void *ctx)
{
    (void)ctx;
    return tutti_tensor_mul(in[0], in[0]);
}

static void the_same_operand_twice(void **state)
{
    tutti_tensor *x = tt_leaf(-1.0, 1.0, 1, SHAPE(6));

    (void)state;
    tt_gradcheck("x * x", squared, NULL, &x, 1);
}

/* ---- products --------------------------------------------------------------------------------- */

static void products(void **state)
{
    const binary mm = tutti_tensor_mm, matmul = tutti_tensor_matmul;
    tutti_tensor *a = tt_leaf(-1, 1, 2, SHAPE(3, 4)), *b = tt_leaf(-1, 1, 2, SHAPE(4, 5));
    tutti_tensor *u = tt_leaf(-1, 1, 1, SHAPE(4)), *v = tt_leaf(-1, 1, 1, SHAPE(4));

    (void)state;
    tt_gradcheck("mm", call_binary, &mm, (tutti_tensor *[]){ a, b }, 2);
    tt_gradcheck("matrix by matrix", call_binary, &matmul, (tutti_tensor *[]){ a, b }, 2);
    tt_gradcheck("matrix by vector", call_binary, &matmul, (tutti_tensor *[]){ a, u }, 2);
    tt_gradcheck("vector by matrix", call_binary, &matmul, (tutti_tensor *[]){ u, b }, 2);
    tt_gradcheck("vector by vector", call_binary, &matmul, (tutti_tensor *[]){ u, v }, 2);
}

/* All ways in which a factor can lie in memory: transposed, a part of a larger matrix, every other
 * column, one row repeated. */
static tutti_tensor *odd_factors(tutti_tensor *const *in, const void *ctx)
{
    tutti_tensor *t = tutti_tensor_transpose(in[0], 0, 1);    /* [4, 6] */
    tutti_tensor *part = tutti_tensor_narrow(in[1], 1, 1, 4); /* [6, 4] of [6, 7] */
    tutti_tensor *cube = tutti_tensor_view(in[1], 3, SHAPE(3, 2, 7));
    tutti_tensor *slice = tutti_tensor_select(cube, 1, 1); /* [3, 7], rows apart */
    tutti_tensor *row = tutti_tensor_expand(tutti_tensor_narrow(in[0], 0, 2, 1), 2, SHAPE(3, 4));
    tutti_tensor *y = tutti_tensor_mm(t, part); /* [4, 4] */

    (void)ctx;
    y = tutti_tensor_mm(row, y); /* [3, 4] */
    return tutti_tensor_mm(tutti_tensor_transpose(y, 0, 1), slice);
}

static void products_of_views(void **state)
{
    tutti_tensor *in[2] = { tt_leaf(-1, 1, 2, SHAPE(6, 4)), tt_leaf(-1, 1, 2, SHAPE(6, 7)) };

    (void)state;
    tt_gradcheck("views as factors", odd_factors, NULL, in, 2);
}

/* ---- shapes ----------------------------------------------------------------------------------- */

static tutti_tensor *f_view(tutti_tensor *x)
{
    return tutti_tensor_view(x, 2, SHAPE(-1, 3));
}

static tutti_tensor *f_reshape(tutti_tensor *x)
{
    return tutti_tensor_reshape(tutti_tensor_transpose(x, 0, 2), 1, SHAPE(24));
}

static tutti_tensor *f_flatten(tutti_tensor *x)
{
    return tutti_tensor_flatten(tutti_tensor_permute(x, (const int[]){ 1, 2, 0 }), 1);
}

static tutti_tensor *f_flatten_scalar(tutti_tensor *x)
{
    tutti_tensor *y = tutti_tensor_flatten(tutti_tensor_sum(x, NULL, 0, false), 0);

    assert_int_equal(tutti_tensor_dim(y), 1);
    assert_int_equal(tutti_tensor_size(y, 0), 1);
    return y;
}

static tutti_tensor *f_permute(tutti_tensor *x)
{
    return tutti_tensor_permute(x, (const int[]){ 2, 0, -2 });
}

static tutti_tensor *f_narrow(tutti_tensor *x)
{
    return tutti_tensor_narrow(x, -1, 1, 2);
}

static tutti_tensor *f_select(tutti_tensor *x)
{
    return tutti_tensor_select(tutti_tensor_select(x, 1, -1), 0, 0);
}

static tutti_tensor *f_expand(tutti_tensor *x)
{
    return tutti_tensor_expand(tutti_tensor_narrow(x, 1, 2, 1), 4, SHAPE(3, -1, 5, 4));
}

static tutti_tensor *f_squeeze(tutti_tensor *x)
{
    return tutti_tensor_squeeze(tutti_tensor_unsqueeze(tutti_tensor_squeeze(x, 0), -1), 3);
}

static tutti_tensor *f_contiguous(tutti_tensor *x)
{
    return tutti_tensor_contiguous(tutti_tensor_transpose(x, 1, 2));
}

/* Overlapping views of one tensor meet again. */
static tutti_tensor *f_overlap(tutti_tensor *x)
{
    return tutti_tensor_mul(tutti_tensor_narrow(x, 2, 0, 3), tutti_tensor_narrow(x, 2, 1, 3));
}

static void shapes(void **state)
{
    const unary ops[] = { f_view,   f_reshape, f_flatten,    f_permute, f_narrow,        f_select,
                          f_expand, f_squeeze, f_contiguous, f_overlap, f_flatten_scalar };
    tutti_tensor *x = tt_leaf(-1, 1, 3, SHAPE(2, 3, 4));

    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        tt_gradcheck("shapes", call_unary, &ops[i], &x, 1);
}

/* ---- reductions ------------------------------------------------------------------------------- */

typedef struct reduction {
    int n_dims;
    int dims[3];
    bool keepdim, mean;
} reduction;

static tutti_tensor *reduce(tutti_tensor *const *in, const void *ctx)
{
    const reduction *r = ctx;

    return (r->mean ? tutti_tensor_mean : tutti_tensor_sum)(in[0], r->dims, r->n_dims, r->keepdim);
}

static void reductions(void **state)
{
    const reduction cases[] = { { 0, { 0 }, false, false },      { 0, { 0 }, true, true },
                                { 1, { 1 }, false, false },      { 1, { -1 }, true, true },
                                { 2, { 0, 2 }, false, true },    { 2, { 2, 0 }, true, false },
                                { 3, { 0, 1, 2 }, false, true }, { 1, { 0 }, false, true } };
    tutti_tensor *x = tt_leaf(-1, 1, 3, SHAPE(2, 3, 4));

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        tt_gradcheck("reductions", reduce, &cases[i], &x, 1);
}

/* Types meet: an f32 factor between f64 ones, whole numbers beside them. */
static void gradients_come_back_in_the_inputs_type(void **state)
{
    tutti_tensor *x = tutti_tensor_requires_grad_(tutti_tensor_ones(TUTTI_F32, 1, SHAPE(3)), true);
    tutti_tensor *w = tutti_tensor_arange(TUTTI_F64, 1, 4, 1);
    tutti_tensor *k = tutti_tensor_arange(TUTTI_I64, 0, 3, 1);
    tutti_tensor *y = tutti_tensor_mul(tutti_tensor_mul(x, w), k);
    const float *g;

    (void)state;
    assert_int_equal(tutti_tensor_dtype(y), TUTTI_F64);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_sum(y, NULL, 0, false)), TUTTI_OK);
    assert_int_equal(tutti_tensor_dtype(tutti_tensor_grad(x)), TUTTI_F32);
    g = tutti_tensor_data(tutti_tensor_grad(x));
    assert_true(g[0] == 0.0f && g[1] == 2.0f && g[2] == 6.0f);
}

static void relu_at_zero_and_nan(void **state)
{
    const double at[4] = { 0.0, -1.0, NAN, 2.0 };
    tutti_tensor *x =
        tutti_tensor_requires_grad_(tutti_tensor_from_data(at, TUTTI_F64, 1, SHAPE(4)), true);
    tutti_tensor *y = tutti_tensor_relu(x);
    const double *v = tutti_tensor_data(y), *g;

    (void)state;
    assert_true(v[0] == 0.0 && v[1] == 0.0 && isnan(v[2]) && v[3] == 2.0);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_sum(y, NULL, 0, false)), TUTTI_OK);
    g = tutti_tensor_data(tutti_tensor_grad(x));
    assert_true(g[0] == 0.0 && g[1] == 0.0 && g[2] == 1.0 && g[3] == 1.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_operand, begin, end),
        cmocka_unit_test_setup_teardown(one_operand_of_views, begin, end),
        cmocka_unit_test_setup_teardown(corners_of_one_operand, begin, end),
        cmocka_unit_test_setup_teardown(power_zero_has_no_slope, begin, end),
        cmocka_unit_test_setup_teardown(two_operands_of_all_shapes, begin, end),
        cmocka_unit_test_setup_teardown(equals_share_and_nan_wins, begin, end),
        cmocka_unit_test_setup_teardown(where_takes_any_type, begin, end),
        cmocka_unit_test_setup_teardown(null_poisons, begin, end),
        cmocka_unit_test_setup_teardown(only_one_side_requires, begin, end),
        cmocka_unit_test_setup_teardown(the_same_operand_twice, begin, end),
        cmocka_unit_test_setup_teardown(products, begin, end),
        cmocka_unit_test_setup_teardown(products_of_views, begin, end),
        cmocka_unit_test_setup_teardown(shapes, begin, end),
        cmocka_unit_test_setup_teardown(reductions, begin, end),
        cmocka_unit_test_setup_teardown(gradients_come_back_in_the_inputs_type, begin, end),
        cmocka_unit_test_setup_teardown(relu_at_zero_and_nan, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * module_test.c
 * Goal    the tree of modules: names, order, tied parameters, ownership, training and evaluation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>
#include "nn/nn.h"

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

static int begin(void **state)
{
    (void)state;
    tutti_scope_begin();
    tutti_manual_seed(0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    tutti_scope_end();
    return tutti_tensor_check() == TUTTI_OK ? 0 : -1;
}

/* A module of a user's own: two layers and a parameter. */
typedef struct own {
    tutti_module *first, *second;
    tutti_tensor *scale;
    int *freed;
} own;

static tutti_tensor *own_forward(tutti_module *m, tutti_tensor *x)
{
    own *o = tutti_module_context(m);

    x = tutti_tensor_relu(tutti_forward(o->first, x));
    return tutti_tensor_mul(tutti_forward(o->second, x), o->scale);
}

static void own_free(void *ctx)
{
    ++*((own *)ctx)->freed;
}

static tutti_module *own_make(own *o)
{
    tutti_module *m = tutti_module_create("own", own_forward, o, own_free);

    o->first = tutti_module_add(m, "first", tutti_linear(4, 3, true));
    o->second = tutti_module_add(m, "second", tutti_linear(3, 2, false));
    o->scale = tutti_tensor_ones(TUTTI_F32, 1, SHAPE(2));
    assert_int_equal(tutti_module_register_parameter(m, "scale", o->scale), TUTTI_OK);
    return m;
}

static void names_order_and_ownership(void **state)
{
    static const char *const want[] = { "own.scale",         "own.first.weight", "own.first.bias",
                                        "own.second.weight", "tail.weight",      "tail.bias" };
    int freed = 0, n, m;
    own o = { .freed = &freed };
    tutti_module *root = tutti_sequential();
    const char *const *names;
    tutti_tensor *const *params, *const *again;

    (void)state;
    assert_non_null(tutti_module_add(root, "own", own_make(&o)));
    assert_non_null(tutti_module_parameters(root, &n));
    assert_int_equal(n, 4);
    tutti_module_add(root, "tail", tutti_linear(2, 1, true)); /* the list is collected anew */
    params = tutti_module_parameters(root, &n);
    names = tutti_module_parameter_names(root, &m);
    assert_true(n == 6 && m == 6);
    for (int i = 0; i < n; i++) {
        assert_string_equal(names[i], want[i]);
        assert_ptr_equal(tutti_module_parameter(root, want[i]), params[i]);
        assert_true(tutti_tensor_requires_grad(params[i]));
    }
    again = tutti_module_parameters(root, &n);
    assert_ptr_equal(again, params);
    assert_null(tutti_module_parameter(root, "own.third.weight"));
    assert_null(tutti_module_parameter(root, "own.first"));
    assert_ptr_equal(tutti_module_child(tutti_module_child(root, "own"), "second"), o.second);
    tutti_module_free(o.second); /* somebody's child: nothing happens */
    assert_int_equal(
        tutti_tensor_numel(tutti_forward(root, tutti_tensor_ones(TUTTI_F32, 2, SHAPE(5, 4)))), 5);
    tutti_module_free(root);
    assert_int_equal(freed, 1);
}

static void tied_parameters_come_once(void **state)
{
    tutti_module *m = tutti_sequential();
    tutti_module *a = tutti_module_add(m, "a", tutti_linear(3, 3, false));
    tutti_module *b = tutti_module_add(m, "b", tutti_module_create("tied", NULL, NULL, NULL));
    int n;

    (void)state;
    assert_int_equal(
        tutti_module_register_parameter(b, "weight", tutti_module_parameter(a, "weight")),
        TUTTI_OK);
    (void)tutti_module_parameters(m, &n);
    assert_int_equal(n, 1);
    assert_string_equal(tutti_module_parameter_names(m, &n)[0], "a.weight");
    assert_ptr_equal(tutti_module_parameter(m, "b.weight"), tutti_module_parameter(m, "a.weight"));
    tutti_module_free(m);
}

/* A list is collected anew, whatever is put in the place of what was taken out. */
static void what_is_taken_out_is_gone_from_lists(void **state)
{
    tutti_module *m = tutti_sequential(), *inner = tutti_sequential(), *first;
    int n;

    (void)state;
    tutti_module_add(m, "inner", inner);
    first = tutti_module_add(inner, "first", tutti_linear(2, 2, true));
    (void)tutti_module_parameters(m, &n);
    assert_int_equal(n, 2);
    tti_module_take_out(first);
    tti_module_take_out(first); /* nobody's child: nothing happens */
    (void)tutti_module_parameters(m, &n);
    assert_int_equal(n, 0);
    assert_null(tutti_module_child(inner, "first"));
    tutti_module_add(inner, "first", tutti_linear(2, 2, false));
    assert_string_equal(tutti_module_parameter_names(m, &n)[0], "inner.first.weight");
    assert_int_equal(n, 1);
    tutti_module_free(m);
    (void)tutti_module_parameters(first, &n); /* it is whole, and ours */
    assert_int_equal(n, 2);
    tutti_module_free(first);
}

static void refusals(void **state)
{
    tutti_module *m = tutti_sequential(), *child = tutti_module_add(m, "child", tutti_relu());
    tutti_tensor *whole = tutti_tensor_zeros(TUTTI_I64, 0, NULL);

    (void)state;
    assert_null(tutti_module_add(m, "child", tutti_relu()));
    assert_non_null(strstr(tutti_last_error(), "the name 'child' is in use"));
    assert_null(tutti_module_add(m, "a.b", tutti_relu()));
    assert_null(tutti_module_add(m, "", tutti_relu()));
    assert_null(tutti_module_add(m, "again", child));
    assert_null(tutti_module_add(child, "circle", m));
    assert_null(tutti_module_add(m, "nothing", NULL));
    assert_null(tutti_module_add(NULL, "orphan", tutti_relu()));
    assert_int_equal(tutti_module_register_parameter(m, "w", whole), TUTTI_E_ARG);
    assert_int_equal(tutti_module_register_parameter(m, "w", NULL), TUTTI_E_ARG);
    assert_null(tutti_linear(0, 3, true));
    assert_null(tutti_conv2d(3, 4, 0, 5, NULL));
    assert_null(tutti_dropout(NAN));
    assert_null(tutti_max_pool2d(0));
    assert_null(tutti_forward(NULL, whole));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    tutti_module_free(m);
}

static void training_and_gradients_reach_everything_below(void **state)
{
    tutti_module *m = tutti_sequential(), *inner = tutti_sequential();
    tutti_tensor *x = tutti_tensor_ones(TUTTI_F32, 2, SHAPE(50, 4)), *y;

    (void)state;
    tutti_module_add(inner, "drop", tutti_dropout(0.5));
    tutti_module_add(m, "fc", tutti_linear(4, 4, true));
    tutti_module_add(m, "inner", inner);
    assert_true(tutti_module_is_training(inner));
    y = tutti_forward(m, x);
    assert_false(tutti_tensor_equal(y, tutti_forward(m, x)));
    tutti_module_train(m, false);
    assert_false(tutti_module_is_training(inner));
    y = tutti_forward(m, x);
    assert_true(tutti_tensor_equal(y, tutti_forward(m, x)));
    assert_int_equal(tutti_tensor_backward(tutti_tensor_sum(y, NULL, 0, false)), TUTTI_OK);
    assert_non_null(tutti_tensor_grad(tutti_module_parameter(m, "fc.bias")));
    tutti_module_zero_grad(m);
    assert_null(tutti_tensor_grad(tutti_module_parameter(m, "fc.bias")));
    tutti_module_free(m);
}

/* seed 0, Linear(2, 3) */
static void linear_starts_as_in_pytorch(void **state)
{
    static const double w[6] = { -0.0053, 0.3793, -0.5820, -0.5204, -0.2723, 0.1896 };
    static const double b[3] = { -0.0140, 0.5607, -0.0628 };
    tutti_module *m = tutti_linear(2, 3, true);
    const float *got_w = tutti_tensor_data(tutti_module_parameter(m, "weight"));
    const float *got_b = tutti_tensor_data(tutti_module_parameter(m, "bias"));

    (void)state;
    for (int i = 0; i < 6; i++)
        assert_true(fabs((double)got_w[i] - w[i]) < 5.1e-5);
    for (int i = 0; i < 3; i++)
        assert_true(fabs((double)got_b[i] - b[i]) < 5.1e-5);
    tutti_module_free(m);
}

/* ---- other types -------------------------------------------------------------------------------- */

/* Handles stay, tied tensors are one, gradients and buffers come along; what can not change does not. */
static void a_module_changes_its_type_in_place(void **state)
{
    const tutti_dtype types[] = { TUTTI_BF16, TUTTI_F64, TUTTI_F16, TUTTI_F32 };
    tutti_module *m = tutti_sequential(), *fc = tutti_linear(3, 2, true);
    tutti_tensor *w = tutti_module_parameter(fc, "weight"), *count, *mean, *first, *x;
    int n = 0;

    (void)state;
    (void)tutti_module_add(m, "fc", fc);
    count = tutti_tensor_full(TUTTI_I64, 0, NULL, 7);
    mean = tutti_tensor_full(TUTTI_F32, 1, SHAPE(2), 0.5);
    assert_int_equal(tutti_module_register_parameter(m, "tied", w), TUTTI_OK);
    assert_int_equal(tutti_module_register_buffer(m, "count", count, true), TUTTI_OK);
    assert_int_equal(tutti_module_register_buffer(m, "mean", mean, true), TUTTI_OK);
    assert_int_equal(tutti_tensor_set_grad(w, tutti_tensor_full(TUTTI_F32, 2, SHAPE(2, 3), 1.25)), TUTTI_OK);
    first = tutti_tensor_clone(tutti_tensor_to(tutti_tensor_detach(w), TUTTI_BF16));
    for (int k = 0; k < 4; k++) {
        assert_int_equal(tutti_module_to(m, types[k]), TUTTI_OK);
        assert_ptr_equal(tutti_module_parameter(fc, "weight"), w);
        assert_ptr_equal(tutti_module_parameters(m, &n)[0], w);
        assert_int_equal(n, 2);
        assert_int_equal(tutti_tensor_dtype(w), types[k]);
        assert_true(tutti_tensor_is_leaf(w) && tutti_tensor_requires_grad(w) && tutti_tensor_is_contiguous(w));
        assert_true(tutti_tensor_equal(tutti_tensor_to(tutti_tensor_detach(w), TUTTI_BF16), first)); /* rounded once */
        assert_int_equal(tutti_tensor_dtype(tutti_tensor_grad(w)), types[k]);
        assert_int_equal(tutti_tensor_dtype(mean), types[k]);
        assert_int_equal(tutti_tensor_dtype(count), TUTTI_I64);
        x = tutti_tensor_to(tutti_tensor_ones(TUTTI_F32, 2, SHAPE(4, 3)), types[k]);
        assert_int_equal(tutti_tensor_backward(tutti_tensor_sum(tutti_forward(fc, x), NULL, 0, false)), TUTTI_OK);
        assert_int_equal(tutti_tensor_dtype(tutti_tensor_grad(w)), types[k]);
        assert_int_equal(tutti_tensor_dtype(tutti_tensor_grad(tutti_module_parameter(fc, "bias"))), types[k]);
    }
    assert_int_equal(tutti_module_to(m, TUTTI_I64), TUTTI_E_ARG);
    assert_int_equal(tutti_module_to(NULL, TUTTI_F32), TUTTI_E_ARG);
    assert_int_equal(tutti_tensor_dtype(w), TUTTI_F32);
    tutti_module_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names_order_and_ownership, begin, end),
        cmocka_unit_test_setup_teardown(tied_parameters_come_once, begin, end),
        cmocka_unit_test_setup_teardown(what_is_taken_out_is_gone_from_lists, begin, end),
        cmocka_unit_test_setup_teardown(refusals, begin, end),
        cmocka_unit_test_setup_teardown(training_and_gradients_reach_everything_below, begin, end),
        cmocka_unit_test_setup_teardown(linear_starts_as_in_pytorch, begin, end),
        cmocka_unit_test_setup_teardown(a_module_changes_its_type_in_place, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

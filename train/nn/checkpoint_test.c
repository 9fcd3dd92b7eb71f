/* SPDX-License-Identifier: BSD-3-Clause
 *
 * checkpoint_test.c
 * Goal    a checkpointed region gives the same values and gradients, bit for bit, as a plain one, keeps
 *         less, and says when it cannot be computed again.
 * Method  a network with dropout and attention, with and without checkpoints, from the same seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <tutti/nn.h>

#include "autograd/gradcheck.h"

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

static int runs; /* of regions */

static int begin(void **state)
{
    (void)state;
    tutti_scope_begin();
    tutti_manual_seed(7);
    runs = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    tutti_scope_end();
    return tutti_tensor_check() == TUTTI_OK && tutti_is_grad_enabled() ? 0 : -1;
}

/* A region of many operations: in[0] [2, 3, 8], in[1] [8, 8]. */
static tutti_tensor *mixed(tutti_tensor *const *in, int n, void *ctx)
{
    tutti_attention_options opts = TUTTI_ATTENTION_OPTIONS;
    tutti_tensor *h = tutti_tensor_layer_norm(in[0], 1, SHAPE(8), NULL, NULL, 1e-5);

    (void)n, (void)ctx;
    runs++;
    opts.dropout_p = 0.2;
    h = tutti_tensor_gelu(tutti_tensor_matmul(h, in[1]));
    h = tutti_tensor_scaled_dot_product_attention(h, h, tutti_tensor_exp(h), &opts);
    h = tutti_tensor_dropout(h, 0.3, true);
    return tutti_tensor_add(tutti_tensor_mul(h, h), tutti_tensor_softmax(in[0], -1));
}

/* Two regions, and something after them. */
static tutti_tensor *network(bool checkpointed, tutti_tensor *const *in)
{
    tutti_tensor *next[2] = { NULL, in[1] };

    tutti_manual_seed(99);
    next[0] = checkpointed ? tutti_checkpoint(mixed, in, 2, NULL, NULL) : mixed(in, 2, NULL);
    next[0] = checkpointed ? tutti_checkpoint(mixed, next, 2, NULL, NULL) : mixed(next, 2, NULL);
    return tutti_tensor_tanh(next[0]);
}

static void operands(tutti_tensor **in)
{
    in[0] = tt_leaf(-1, 1, 3, SHAPE(2, 3, 8));
    in[1] = tt_leaf(-1, 1, 2, SHAPE(8, 8));
}

static void take_gradients(tutti_tensor **in, tutti_tensor **g)
{
    for (int k = 0; k < 2; k++) {
        g[k] = tutti_tensor_clone(tutti_tensor_grad(in[k]));
        assert_int_equal(tutti_tensor_set_grad(in[k], NULL), TUTTI_OK);
    }
}

static void same_as_without(void **state)
{
    tutti_tensor *in[2], *one[2], *two[2], *y, *z;
    uint64_t after_plain, after;

    (void)state;
    operands(in);
    y = network(false, in);
    after_plain = tutti_generator_random64(NULL);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_sum(y, NULL, 0, false)), TUTTI_OK);
    take_gradients(in, one);
    assert_int_equal(runs, 2);
    z = network(true, in);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_sum(z, NULL, 0, false)), TUTTI_OK);
    after = tutti_generator_random64(NULL); /* backward leaves the generator where it stood */
    take_gradients(in, two);
    assert_int_equal(runs, 6);
    assert_true(after == after_plain);
    assert_true(tutti_tensor_equal(y, z));
    assert_true(tutti_tensor_equal(one[0], two[0]));
    assert_true(tutti_tensor_equal(one[1], two[1]));
}

/* Nothing is recorded: the region runs, and that is all. */
static void without_recording(void **state)
{
    tutti_tensor *in[2];

    (void)state;
    operands(in);
    (void)tutti_set_grad_enabled(false);
    assert_false(tutti_tensor_requires_grad(network(true, in)));
    (void)tutti_set_grad_enabled(true);
    assert_int_equal(runs, 2);
}

/* A graph that is kept is computed again once; one that is dropped, never. */
static void kept_and_dropped_graphs(void **state)
{
    tutti_tensor *in[2], *one[2], *two[2], *y;

    (void)state;
    operands(in);
    assert_non_null(network(true, in));
    assert_int_equal(runs, 2);
    y = tutti_tensor_sum(network(true, in), NULL, 0, false);
    assert_int_equal(tutti_backward(&y, NULL, 1, TUTTI_RETAIN_GRAPH), TUTTI_OK);
    take_gradients(in, one);
    assert_int_equal(runs, 6);
    assert_int_equal(tutti_backward(&y, NULL, 1, 0), TUTTI_OK);
    take_gradients(in, two);
    assert_int_equal(runs, 6);
    assert_true(tutti_tensor_equal(one[0], two[0]) && tutti_tensor_equal(one[1], two[1]));
    assert_int_equal(tutti_backward(&y, NULL, 1, 0), TUTTI_E_STATE);
}

/* A region within a region. */
static tutti_tensor *nesting(tutti_tensor *const *in, int n, void *ctx)
{
    tutti_tensor *next[2] = { tutti_tensor_mul(in[0], in[0]), in[1] };

    next[0] = tutti_checkpoint(mixed, next, n, ctx, NULL);
    return tutti_tensor_mul(next[0], tutti_tensor_exp(in[0]));
}

static void nested(void **state)
{
    tutti_tensor *in[2], *one[2], *two[2], *y, *h[2];

    (void)state;
    operands(in);
    tutti_manual_seed(99);
    h[0] = tutti_tensor_mul(in[0], in[0]);
    h[1] = in[1];
    y = tutti_tensor_mul(mixed(h, 2, NULL), tutti_tensor_exp(in[0]));
    assert_int_equal(tutti_tensor_backward(tutti_tensor_sum(y, NULL, 0, false)), TUTTI_OK);
    take_gradients(in, one);
    tutti_manual_seed(99);
    y = tutti_checkpoint(nesting, in, 2, NULL, NULL);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_sum(y, NULL, 0, false)), TUTTI_OK);
    take_gradients(in, two);
    assert_true(tutti_tensor_equal(one[0], two[0]) && tutti_tensor_equal(one[1], two[1]));
}

/* An input that wants no gradient, a parameter that is no input. */
static tutti_tensor *with_parameter(tutti_tensor *const *in, int n, void *ctx)
{
    (void)n;
    runs++;
    return tutti_tensor_tanh(tutti_tensor_matmul(in[0], ctx));
}

static void parameters_that_are_no_inputs(void **state)
{
    tutti_tensor *x = tutti_tensor_ones(TUTTI_F64, 2, SHAPE(2, 3)), *y;
    tutti_tensor *w = tt_leaf(-1, 1, 2, SHAPE(3, 2)), *plain;

    (void)state;
    y = with_parameter(&x, 1, w);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_sum(y, NULL, 0, false)), TUTTI_OK);
    plain = tutti_tensor_clone(tutti_tensor_grad(w));
    assert_int_equal(tutti_tensor_set_grad(w, NULL), TUTTI_OK);
    y = tutti_checkpoint(with_parameter, &x, 1, w, NULL);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_sum(y, NULL, 0, false)), TUTTI_OK);
    assert_true(tutti_tensor_equal(plain, tutti_tensor_grad(w)));
    assert_int_equal(runs, 3);
}

static tutti_status change(tutti_tensor *t)
{
    tutti_status st;

    (void)tutti_set_grad_enabled(false);
    st = tutti_tensor_mul_scalar_(t, 2.0);
    (void)tutti_set_grad_enabled(true);
    return st;
}

static void what_changed_is_noticed(void **state)
{
    tutti_tensor *x = tt_leaf(-1, 1, 2, SHAPE(2, 3)), *w = tt_leaf(-1, 1, 2, SHAPE(3, 2)), *y;

    (void)state;
    y = tutti_tensor_sum(tutti_checkpoint(with_parameter, &x, 1, w, NULL), NULL, 0, false);
    assert_int_equal(change(w), TUTTI_OK);
    assert_int_equal(tutti_tensor_backward(y), TUTTI_E_STATE);
    assert_non_null(strstr(tutti_last_error(), "of shape [3, 2] that the region uses was changed"));
    y = tutti_tensor_sum(tutti_checkpoint(with_parameter, &x, 1, w, NULL), NULL, 0, false);
    assert_int_equal(change(x), TUTTI_OK);
    assert_int_equal(tutti_tensor_backward(y), TUTTI_E_STATE);
    assert_non_null(strstr(tutti_last_error(), "checkpoint: input 0 was changed in place"));
}

/* Another number of operations each time. */
static tutti_tensor *fickle(tutti_tensor *const *in, int n, void *ctx)
{
    int *times = ctx;
    tutti_tensor *y = tutti_tensor_exp(in[0]);

    (void)n;
    return (*times)++ == 0 ? y : tutti_tensor_exp(y);
}

static tutti_tensor *of_another_shape(tutti_tensor *const *in, int n, void *ctx)
{
    int *times = ctx;

    (void)n;
    return tutti_tensor_exp((*times)++ == 0 ? in[0] : tutti_tensor_narrow(in[0], 0, 0, 1));
}

static tutti_tensor *fails_again(tutti_tensor *const *in, int n, void *ctx)
{
    int *times = ctx;

    (void)n;
    return (*times)++ == 0 ? tutti_tensor_exp(in[0]) : tutti_tensor_select(in[0], 5, 0);
}

static void regions_that_do_not_repeat(void **state)
{
    const tutti_region_fn fns[] = { fickle, of_another_shape };
    tutti_tensor *x = tt_leaf(-1, 1, 1, SHAPE(3)), *y;
    int times;

    (void)state;
    for (int i = 0; i < 2; i++) {
        times = 0;
        y = tutti_tensor_sum(tutti_checkpoint(fns[i], &x, 1, &times, NULL), NULL, 0, false);
        assert_int_equal(tutti_tensor_backward(y), TUTTI_E_STATE);
        assert_non_null(strstr(tutti_last_error(), "computed again, the region saves other"));
    }
    times = 0;
    y = tutti_tensor_sum(tutti_checkpoint(fails_again, &x, 1, &times, NULL), NULL, 0, false);
    assert_int_equal(tutti_tensor_backward(y), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "select: there is no dimension 5"));
}

static int freed;

static void count_free(void *ctx)
{
    (void)ctx;
    freed++;
}

static tutti_tensor *poisoned(tutti_tensor *const *in, int n, void *ctx)
{
    (void)n, (void)ctx;
    return tutti_tensor_select(in[0], 9, 0);
}

static void contexts_are_freed(void **state)
{
    tutti_tensor *x = tt_leaf(-1, 1, 2, SHAPE(2, 2)), *w = tt_leaf(-1, 1, 2, SHAPE(2, 2)), *y;

    (void)state;
    freed = 0;
    tutti_scope_begin();
    y = tutti_checkpoint(with_parameter, &x, 1, w, count_free);
    assert_int_equal(freed, 0);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_sum(y, NULL, 0, false)), TUTTI_OK);
    tutti_scope_end();
    assert_int_equal(freed, 1);
    assert_null(tutti_checkpoint(poisoned, &x, 1, NULL, count_free));
    assert_int_equal(freed, 2);
    assert_null(tutti_checkpoint(with_parameter, (tutti_tensor *[]){ NULL }, 1, w, count_free));
    assert_int_equal(freed, 3);
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
}

static void count_data(void *data, void *ctx)
{
    (void)data, (void)ctx;
    freed++;
}

/* A factor in memory of the test's, which says when nobody holds it any more. */
static tutti_tensor *with_factor(tutti_tensor *const *in, int n, void *ctx)
{
    tutti_tensor *factor = tutti_tensor_from_ptr(ctx, TUTTI_F64, 1, SHAPE(3), count_data, NULL);

    (void)n;
    return tutti_tensor_mul(in[0], factor);
}

static void what_is_saved_is_dropped(void **state)
{
    tutti_tensor *x = tt_leaf(-1, 1, 1, SHAPE(3)), *y;
    double factor[3] = { 2, 3, 4 };
    const double *g;

    (void)state;
    freed = 0;
    tutti_scope_begin();
    y = tutti_tensor_retain(with_factor(&x, 1, factor));
    tutti_scope_end();
    assert_int_equal(freed, 0);
    tutti_tensor_release(y);
    assert_int_equal(freed, 1);
    y = tutti_checkpoint(with_factor, &x, 1, factor, NULL);
    assert_int_equal(freed, 2);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_sum(y, NULL, 0, false)), TUTTI_OK);
    assert_int_equal(freed, 3);
    g = tutti_tensor_data(tutti_tensor_grad(x));
    assert_true(g[0] == 2.0 && g[1] == 3.0 && g[2] == 4.0);
}

/* A module of a model. */
static void modules(void **state)
{
    tutti_module *m = tutti_multihead_attention(8, 2, NULL);
    tutti_tensor *x = tutti_tensor_randn(TUTTI_F32, 3, SHAPE(2, 5, 8), NULL), *y, *z, *g;
    tutti_tensor *w = tutti_module_parameter(m, "in_proj_weight");

    (void)state;
    y = tutti_forward(m, x);
    assert_int_equal(
        tutti_tensor_backward(tutti_tensor_sum(tutti_tensor_mul(y, y), NULL, 0, false)), TUTTI_OK);
    g = tutti_tensor_clone(tutti_tensor_grad(w));
    tutti_module_zero_grad(m);
    z = tutti_checkpoint_forward(m, x);
    assert_int_equal(
        tutti_tensor_backward(tutti_tensor_sum(tutti_tensor_mul(z, z), NULL, 0, false)), TUTTI_OK);
    assert_true(tutti_tensor_equal(y, z) && tutti_tensor_equal(g, tutti_tensor_grad(w)));
    assert_null(tutti_checkpoint_forward(m, NULL));
    assert_null(tutti_checkpoint_forward(NULL, x));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    tutti_module_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(same_as_without, begin, end),
        cmocka_unit_test_setup_teardown(without_recording, begin, end),
        cmocka_unit_test_setup_teardown(kept_and_dropped_graphs, begin, end),
        cmocka_unit_test_setup_teardown(nested, begin, end),
        cmocka_unit_test_setup_teardown(parameters_that_are_no_inputs, begin, end),
        cmocka_unit_test_setup_teardown(what_changed_is_noticed, begin, end),
        cmocka_unit_test_setup_teardown(regions_that_do_not_repeat, begin, end),
        cmocka_unit_test_setup_teardown(contexts_are_freed, begin, end),
        cmocka_unit_test_setup_teardown(what_is_saved_is_dropped, begin, end),
        cmocka_unit_test_setup_teardown(modules, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

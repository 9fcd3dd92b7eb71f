/* SPDX-License-Identifier: BSD-3-Clause
 *
 * grad_hooks_test.c
 * Goal    hooks see, and may replace, the gradients they are registered for, in a fixed order, once per
 *         backward; callbacks run at the end; what cannot be is refused.
 * Method  every hook writes its letter to a trace, and small graphs whose gradients are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <tutti/private.h>

#include "autograd/autograd.h"

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

static char trace[64];

/* A letter as a context for a hook. */
static char *word(char letter)
{
    static char words[128][2];

    words[(int)letter][0] = letter;
    return words[(int)letter];
}

static int begin(void **state)
{
    (void)state;
    tutti_scope_begin();
    trace[0] = '\0';
    return 0;
}

static int end(void **state)
{
    (void)state;
    tutti_scope_end();
    return tutti_tensor_check() == TUTTI_OK && tutti_is_grad_enabled() ? 0 : -1;
}

static tutti_tensor *leaf(double value)
{
    return tutti_tensor_requires_grad_(tutti_tensor_scalar(TUTTI_F64, value), true);
}

static double grad_of(const tutti_tensor *t)
{
    double v = NAN;

    assert_non_null(tutti_tensor_grad(t));
    assert_int_equal(tutti_tensor_item(tutti_tensor_grad(t), &v), TUTTI_OK);
    return v;
}

static void note(const char *letter)
{
    assert_true(strlen(trace) + 2 < sizeof trace);
    strcat(trace, letter);
}

static tutti_status leaf_note(tutti_tensor *t, void *ctx)
{
    (void)t;
    note(ctx);
    return TUTTI_OK;
}

static tutti_status tensor_note(tutti_tensor *grad, tutti_tensor **grad_out, void *ctx)
{
    (void)grad_out;
    assert_non_null(grad);
    assert_false(tutti_is_grad_enabled());
    note(ctx);
    return TUTTI_OK;
}

static tutti_status doubled(tutti_tensor *grad, tutti_tensor **grad_out, void *ctx)
{
    note(ctx);
    *grad_out = tutti_tensor_mul_scalar(grad, 2.0);
    return TUTTI_OK;
}

static tutti_status of_another_shape(tutti_tensor *grad, tutti_tensor **grad_out, void *ctx)
{
    (void)grad, (void)ctx;
    *grad_out = tutti_tensor_zeros(TUTTI_F64, 1, SHAPE(2));
    return TUTTI_OK;
}

static tutti_status refuses(tutti_tensor *grad, tutti_tensor **grad_out, void *ctx)
{
    (void)grad, (void)grad_out, (void)ctx;
    return tti_fail(TUTTI_E_ABORTED, "enough");
}

static void leaves_order(void **state)
{
    tutti_tensor *x = leaf(3.0);
    int removed;

    (void)state;
    assert_int_equal(tutti_tensor_register_backward_passed_hook(x, leaf_note, word('p'), NULL),
                     TUTTI_OK);
    assert_int_equal(tutti_tensor_register_post_accumulate_grad_hook(x, leaf_note, word('a'), NULL),
                     TUTTI_OK);
    assert_int_equal(tutti_tensor_register_hook(x, tensor_note, word('1'), NULL), TUTTI_OK);
    assert_int_equal(tutti_tensor_register_hook(x, tensor_note, word('-'), &removed), TUTTI_OK);
    assert_int_equal(tutti_tensor_register_hook(x, doubled, word('2'), NULL), TUTTI_OK);
    tutti_tensor_remove_hook(x, removed);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_mul(x, x)), TUTTI_OK);
    assert_string_equal(trace, "12ap");
    assert_true(grad_of(x) == 12.0);
}

/* exp of a leaf that is multiplied with what gets no gradient: a backward from elsewhere comes to the
 * leaf with nothing. */
static void leaf_that_gets_nothing(void **state)
{
    tutti_tensor *x = leaf(2.0), *y = leaf(3.0);
    tutti_tensor *nothing = tutti_tensor_pow_scalar(x, 0.0); /* its gradient is none at all */

    (void)state;
    assert_int_equal(tutti_tensor_register_backward_passed_hook(x, leaf_note, word('p'), NULL),
                     TUTTI_OK);
    assert_int_equal(tutti_tensor_register_post_accumulate_grad_hook(x, leaf_note, word('a'), NULL),
                     TUTTI_OK);
    assert_int_equal(tutti_tensor_register_hook(x, tensor_note, word('t'), NULL), TUTTI_OK);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_mul(nothing, y)), TUTTI_OK);
    assert_string_equal(trace, "p");
    assert_null(tutti_tensor_grad(x));
    assert_true(grad_of(y) == 1.0);
}

static void computed_tensors(void **state)
{
    tutti_tensor *x = leaf(3.0), *y = tutti_tensor_mul_scalar(x, 5.0);
    tutti_tensor *z = tutti_tensor_add(tutti_tensor_mul(y, y), y);
    int removed;

    (void)state;
    assert_int_equal(tutti_tensor_retain_grad(y), TUTTI_OK);
    assert_int_equal(tutti_tensor_register_hook(y, doubled, word('d'), NULL), TUTTI_OK);
    assert_int_equal(tutti_tensor_register_hook(y, tensor_note, word('-'), &removed), TUTTI_OK);
    assert_int_equal(tutti_tensor_register_hook(y, tensor_note, word('e'), NULL), TUTTI_OK);
    tutti_tensor_remove_hook(y, removed);
    assert_int_equal(tutti_backward(&z, NULL, 1, TUTTI_RETAIN_GRAPH), TUTTI_OK);
    assert_string_equal(trace, "de"); /* once, with the sum of both uses */
    assert_true(grad_of(y) == 62.0 && grad_of(x) == 310.0);
    assert_int_equal(tutti_tensor_backward(z), TUTTI_OK);
    assert_string_equal(trace, "dede");
    assert_true(grad_of(y) == 124.0 && grad_of(x) == 620.0);
    assert_int_equal(tutti_tensor_retain_grad(x), TUTTI_OK); /* leaves do anyway */
}

/* A tensor that keeps its gradient may go before its graph does. */
static void kept_gradient_of_a_tensor_that_is_gone(void **state)
{
    tutti_tensor *x = leaf(3.0), *z;

    (void)state;
    tutti_scope_begin();
    {
        tutti_tensor *y = tutti_tensor_exp(x);

        assert_int_equal(tutti_tensor_retain_grad(y), TUTTI_OK);
        assert_int_equal(tutti_tensor_register_hook(y, tensor_note, word('y'), NULL), TUTTI_OK);
        z = tutti_tensor_retain(tutti_tensor_mul(y, y));
    }
    tutti_scope_end();
    assert_int_equal(tutti_tensor_backward(z), TUTTI_OK);
    assert_string_equal(trace, "y");
    tutti_tensor_release(z);
}

static void failing_hooks_end_the_backward(void **state)
{
    tutti_tensor *x = leaf(3.0), *y = tutti_tensor_exp(x), *w = leaf(1.0);

    (void)state;
    assert_int_equal(tutti_tensor_register_hook(y, of_another_shape, NULL, NULL), TUTTI_OK);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_neg(y)), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "tensor hook: f64 of shape [2] in place of"));
    assert_null(tutti_tensor_grad(x));
    assert_int_equal(tutti_tensor_register_hook(w, refuses, NULL, NULL), TUTTI_OK);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_neg(w)), TUTTI_E_ABORTED);
    assert_string_equal(tutti_last_error(), "enough");
    assert_null(tutti_tensor_grad(w));
}

static void hooks_refused(void **state)
{
    tutti_tensor *plain = tutti_tensor_zeros(TUTTI_F32, 0, NULL), *y = tutti_tensor_exp(leaf(1.0));

    (void)state;
    assert_int_equal(tutti_tensor_register_hook(plain, tensor_note, NULL, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_tensor_register_hook(NULL, tensor_note, NULL, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_tensor_register_hook(y, NULL, NULL, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_tensor_register_backward_passed_hook(y, leaf_note, NULL, NULL),
                     TUTTI_E_ARG);
    assert_int_equal(tutti_tensor_retain_grad(plain), TUTTI_E_ARG);
    assert_int_equal(tutti_tensor_retain_grad(NULL), TUTTI_E_ARG);
}

/* ---- callbacks -------------------------------------------------------------------------------- */

static tutti_status call_note(void *ctx)
{
    note(ctx);
    return TUTTI_OK;
}

static tutti_status call_fail(void *ctx)
{
    (void)ctx;
    return tti_fail(TUTTI_E_ABORTED, "no");
}

static tutti_status call_queue(void *ctx)
{
    note("q");
    return tutti_backward_queue_callback(call_note, ctx);
}

static tutti_status leaf_queue(tutti_tensor *t, void *ctx)
{
    (void)t;
    note("l");
    return tutti_backward_queue_callback(call_queue, ctx);
}

static void callbacks_run_at_the_end(void **state)
{
    tutti_tensor *x = leaf(2.0), *w = leaf(4.0);

    (void)state;
    assert_int_equal(tutti_backward_queue_callback(call_note, word('-')), TUTTI_E_STATE);
    assert_int_equal(
        tutti_tensor_register_post_accumulate_grad_hook(x, leaf_queue, word('x'), NULL), TUTTI_OK);
    assert_int_equal(
        tutti_tensor_register_post_accumulate_grad_hook(w, leaf_queue, word('w'), NULL), TUTTI_OK);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_mul(x, tutti_tensor_exp(w))), TUTTI_OK);
    assert_string_equal(trace, "llqqxw");
    assert_int_equal(tutti_backward_queue_callback(call_note, word('-')), TUTTI_E_STATE);
}

static tutti_status leaf_queue_failure(tutti_tensor *t, void *ctx)
{
    (void)t, (void)ctx;
    assert_int_equal(tutti_backward_queue_callback(call_fail, NULL), TUTTI_OK);
    return tutti_backward_queue_callback(call_note, word('-'));
}

static void a_failing_callback_is_backwards_failure(void **state)
{
    tutti_tensor *x = leaf(2.0);

    (void)state;
    assert_int_equal(
        tutti_tensor_register_post_accumulate_grad_hook(x, leaf_queue_failure, NULL, NULL),
        TUTTI_OK);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_exp(x)), TUTTI_E_ABORTED);
    assert_string_equal(trace, "");
}

/* A backward inside of a hook is through, its callback too, before the outer one goes on. */
static tutti_status leaf_backward(tutti_tensor *t, void *ctx)
{
    tutti_tensor *other = ctx;
    tutti_status st;

    (void)t;
    (void)tutti_set_grad_enabled(true);
    tutti_scope_begin();
    assert_int_equal(tutti_backward_queue_callback(call_note, word('o')), TUTTI_OK);
    st = tutti_tensor_backward(tutti_tensor_mul(other, other));
    note("i");
    tutti_scope_end();
    (void)tutti_set_grad_enabled(false);
    return st;
}

static void a_backward_inside_a_backward(void **state)
{
    tutti_tensor *x = leaf(2.0), *other = leaf(5.0);

    (void)state;
    assert_int_equal(tutti_tensor_register_post_accumulate_grad_hook(x, leaf_backward, other, NULL),
                     TUTTI_OK);
    assert_int_equal(
        tutti_tensor_register_post_accumulate_grad_hook(other, leaf_queue, word('c'), NULL),
        TUTTI_OK);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_mul(x, x)), TUTTI_OK);
    assert_string_equal(trace, "lqcio");
    assert_true(grad_of(x) == 4.0 && grad_of(other) == 10.0);
}

static void reached_leaves(void **state)
{
    tutti_tensor *x = leaf(1.0), *y = leaf(2.0), *z = leaf(3.0), *far = tutti_tensor_exp(z);
    tutti_tensor *roots[3] = { tutti_tensor_mul(x, tutti_tensor_exp(x)), y,
                               tutti_tensor_zeros(TUTTI_F32, 0, NULL) };
    tutti_tensor *leaves[5] = { x, y, z, roots[2], NULL };
    bool reached[5];

    (void)state;
    assert_non_null(far);
    assert_int_equal(tutti_backward_reaches(roots, 3, leaves, 5, reached), TUTTI_OK);
    assert_true(reached[0] && reached[1] && !reached[2] && !reached[3] && !reached[4]);
    assert_int_equal(tutti_backward_reaches(&roots[2], 1, leaves, 5, reached), TUTTI_OK);
    assert_true(!reached[0] && !reached[1]);
    assert_int_equal(tutti_backward_reaches(&far, 1, leaves, 5, reached), TUTTI_OK);
    assert_true(!reached[0] && reached[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(leaves_order, begin, end),
        cmocka_unit_test_setup_teardown(leaf_that_gets_nothing, begin, end),
        cmocka_unit_test_setup_teardown(computed_tensors, begin, end),
        cmocka_unit_test_setup_teardown(kept_gradient_of_a_tensor_that_is_gone, begin, end),
        cmocka_unit_test_setup_teardown(failing_hooks_end_the_backward, begin, end),
        cmocka_unit_test_setup_teardown(hooks_refused, begin, end),
        cmocka_unit_test_setup_teardown(callbacks_run_at_the_end, begin, end),
        cmocka_unit_test_setup_teardown(a_failing_callback_is_backwards_failure, begin, end),
        cmocka_unit_test_setup_teardown(a_backward_inside_a_backward, begin, end),
        cmocka_unit_test_setup_teardown(reached_leaves, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

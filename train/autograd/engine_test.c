/* SPDX-License-Identifier: BSD-3-Clause
 *
 * engine_test.c
 * Goal    backward visits every node once, in a fixed order, refuses what it must, and leaves
 *         nothing behind; leaves collect as promised. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <tutti/private.h>

#include "autograd/autograd.h"

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

static int begin(void **state)
{
    (void)state;
    tutti_scope_begin();
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

static tutti_tensor *sum(tutti_tensor *t)
{
    return tutti_tensor_sum(t, NULL, 0, false);
}

/* ---- graphs ----------------------------------------------------------------------------------- */

/* y = x x; z = y y + y exp(y): y is used three times, x twice. */
static void diamonds(void **state)
{
    tutti_tensor *x = leaf(0.7), *y = tutti_tensor_mul(x, x);
    tutti_tensor *z =
        tutti_tensor_add(tutti_tensor_mul(y, y), tutti_tensor_mul(y, tutti_tensor_exp(y)));
    const double v = 0.49;

    (void)state;
    assert_false(tutti_tensor_is_leaf(z));
    assert_int_equal(tutti_tensor_backward(z), TUTTI_OK);
    assert_true(fabs(grad_of(x) - 1.4 * (2 * v + exp(v) + v * exp(v))) < 1e-12);
}

/* Each level uses the one before twice: 2^40 paths, 40 nodes. */
static void nodes_run_once(void **state)
{
    tutti_tensor *x = leaf(1.0), *y = x;

    (void)state;
    for (int i = 0; i < 40; i++)
        y = tutti_tensor_add(y, y);
    assert_int_equal(tutti_tensor_backward(y), TUTTI_OK);
    assert_true(grad_of(x) == 0x1p40);
}

static void gradients_add_up_in_the_same_object(void **state)
{
    tutti_tensor *x = leaf(3.0);
    tutti_tensor *first;

    (void)state;
    assert_int_equal(tutti_tensor_backward(tutti_tensor_mul_scalar(x, 2.0)), TUTTI_OK);
    first = tutti_tensor_grad(x);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_mul(x, x)), TUTTI_OK);
    assert_ptr_equal(tutti_tensor_grad(x), first);
    assert_true(grad_of(x) == 8.0);
}

static void several_roots_and_given_gradients(void **state)
{
    tutti_tensor *x = tutti_tensor_requires_grad_(tutti_tensor_ones(TUTTI_F64, 1, SHAPE(3)), true);
    tutti_tensor *y = tutti_tensor_mul_scalar(x, 2.0), *z = tutti_tensor_mul(y, y);
    tutti_tensor *g = tutti_tensor_arange(TUTTI_F64, 1, 4, 1);
    const double *got;

    (void)state;
    /* y is a root and lies below the root z; its gradient arrives from both sides. */
    assert_int_equal(tutti_backward((tutti_tensor *[]){ y, z }, (tutti_tensor *[]){ g, g }, 2, 0),
                     TUTTI_OK);
    got = tutti_tensor_data(tutti_tensor_grad(x));
    for (int i = 0; i < 3; i++)
        assert_true(got[i] == (i + 1) * (2.0 + 8.0));
    assert_true(((const double *)tutti_tensor_data(g))[1] == 2.0); /* only read */
}

static void a_leaf_can_be_a_root(void **state)
{
    tutti_tensor *x = leaf(3.0);

    (void)state;
    assert_int_equal(tutti_tensor_backward(x), TUTTI_OK);
    assert_true(grad_of(x) == 1.0);
}

/* Parts of a graph that lead nowhere, or from nowhere, do not disturb. */
static void unused_results(void **state)
{
    tutti_tensor *x = leaf(2.0), *unused = leaf(5.0), *plain = tutti_tensor_scalar(TUTTI_F64, 4.0);

    (void)state;
    (void)tutti_tensor_mul(x, unused);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_mul(x, plain)), TUTTI_OK);
    assert_true(grad_of(x) == 4.0);
    assert_null(tutti_tensor_grad(unused));
    assert_null(tutti_tensor_grad(plain));
}

/* A chain of 200,000 operations is freed without a recursion of that depth. */
static void long_chains(void **state)
{
    tutti_tensor *x = leaf(1.0);
    tutti_tensor *y = tutti_tensor_retain(x);

    (void)state;
    for (int i = 0; i < 200000; i++) {
        tutti_tensor *next;

        tutti_scope_begin();
        next = tutti_tensor_retain(tutti_tensor_mul(y, x));
        tutti_scope_end();
        tutti_tensor_release(y);
        y = next;
    }
    assert_int_equal(tutti_tensor_backward(y), TUTTI_OK);
    assert_true(grad_of(x) == 200001.0);
    tutti_tensor_release(y);
}

static void broadcast_gradients_of_leaves_have_their_shape(void **state)
{
    tutti_tensor *b =
        tutti_tensor_requires_grad_(tutti_tensor_ones(TUTTI_F32, 2, SHAPE(3, 1)), true);
    tutti_tensor *x = tutti_tensor_ones(TUTTI_F32, 3, SHAPE(2, 3, 4));
    const tutti_tensor *g;

    (void)state;
    assert_int_equal(tutti_tensor_backward(sum(tutti_tensor_add(x, b))), TUTTI_OK);
    g = tutti_tensor_grad(b);
    assert_true(tutti_tensor_size(g, 0) == 3 && tutti_tensor_size(g, 1) == 1);
    assert_true(((const float *)tutti_tensor_data(g))[2] == 8.0f);
}

/* ---- refusals --------------------------------------------------------------------------------- */

static void a_second_backward_needs_the_flag(void **state)
{
    tutti_tensor *x = leaf(3.0), *y = tutti_tensor_mul(x, x);

    (void)state;
    assert_int_equal(tutti_backward(&y, NULL, 1, TUTTI_RETAIN_GRAPH), TUTTI_OK);
    assert_int_equal(tutti_tensor_backward(y), TUTTI_OK);
    assert_true(grad_of(x) == 12.0);
    assert_int_equal(tutti_tensor_backward(y), TUTTI_E_STATE);
    assert_non_null(strstr(tutti_last_error(), "'mul' had saved was freed"));
    assert_true(grad_of(x) == 12.0);
}

static void saved_values_must_not_change(void **state)
{
    tutti_tensor *x = leaf(3.0), *factor = tutti_tensor_full(TUTTI_F64, 1, SHAPE(4), 2.0);
    tutti_tensor *part = tutti_tensor_narrow(factor, 0, 1, 2);
    tutti_tensor *y = sum(tutti_tensor_mul(part, x));

    (void)state;
    assert_int_equal(tutti_tensor_zero_(tutti_tensor_detach(factor)), TUTTI_OK); /* shared memory */
    assert_int_equal(tutti_tensor_backward(y), TUTTI_E_STATE);
    assert_non_null(strstr(tutti_last_error(), "'mul' had saved was changed in place"));
    assert_null(tutti_tensor_grad(x));
    y = tutti_tensor_exp(x); /* a saved result, changed through a detached alias */
    assert_int_equal(tutti_tensor_fill_(tutti_tensor_detach(y), 1.0), TUTTI_OK);
    assert_int_equal(tutti_tensor_backward(y), TUTTI_E_STATE);
    y = tutti_tensor_add(x, factor); /* saves nothing: a change is harmless */
    assert_int_equal(tutti_tensor_fill_(factor, 9.0), TUTTI_OK);
    assert_int_equal(tutti_tensor_backward(sum(y)), TUTTI_OK);
    assert_true(grad_of(x) == 4.0);
}

static void in_place_on_recorded_tensors_is_refused(void **state)
{
    tutti_tensor *x = leaf(3.0), *y = tutti_tensor_mul(x, x), *plain = tutti_tensor_detach(y);
    bool was;

    (void)state;
    assert_int_equal(tutti_tensor_zero_(x), TUTTI_E_STATE);
    assert_non_null(strstr(tutti_last_error(), "leaf that requires gradients"));
    assert_int_equal(tutti_tensor_mul_scalar_(y, 2.0), TUTTI_E_STATE);
    assert_int_equal(tutti_tensor_add_(plain, x, 1.0), TUTTI_E_STATE);
    assert_int_equal(tutti_tensor_check(), TUTTI_E_STATE);
    was = tutti_set_grad_enabled(false);
    assert_true(was);
    assert_int_equal(tutti_tensor_fill_(x, 4.0), TUTTI_OK);
    assert_false(tutti_tensor_requires_grad(tutti_tensor_mul(x, x)));
    tutti_set_grad_enabled(was);
}

static void bad_roots(void **state)
{
    tutti_tensor *v = tutti_tensor_requires_grad_(tutti_tensor_ones(TUTTI_F64, 1, SHAPE(2)), true);
    tutti_tensor *plain = tutti_tensor_ones(TUTTI_F64, 1, SHAPE(1)), *none = NULL;

    (void)state;
    assert_int_equal(tutti_backward(&v, NULL, 0, 0), TUTTI_E_ARG);
    assert_int_equal(tutti_backward(&none, NULL, 1, 0), TUTTI_E_ARG);
    assert_int_equal(tutti_tensor_backward(plain), TUTTI_E_ARG);
    assert_int_equal(tutti_tensor_backward(v), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "shape [2]"));
    assert_int_equal(tutti_backward(&v, &plain, 1, 0), TUTTI_E_ARG);
    assert_null(tutti_tensor_requires_grad_(tutti_tensor_zeros(TUTTI_I64, 0, NULL), true));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    assert_null(tutti_tensor_requires_grad_(tutti_tensor_exp(v), false));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_STATE);
}

/* An earlier failure comes out of backward, once, and nothing is done. */
static void the_kept_failure_comes_out_of_backward(void **state)
{
    tutti_tensor *x = leaf(3.0), *y = tutti_tensor_mul(x, x);

    (void)state;
    assert_null(tutti_tensor_view(x, 1, SHAPE(7)));
    assert_int_equal(tutti_tensor_backward(tutti_tensor_add(y, NULL)), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "view: "));
    assert_null(tutti_tensor_grad(x));
    assert_int_equal(tutti_tensor_backward(y), TUTTI_OK);
}

/* ---- leaves ----------------------------------------------------------------------------------- */

static void leaves_collect_into_a_given_buffer(void **state)
{
    tutti_tensor *bucket = tutti_tensor_zeros(TUTTI_F64, 1, SHAPE(5));
    tutti_tensor *x = tutti_tensor_requires_grad_(tutti_tensor_ones(TUTTI_F64, 1, SHAPE(2)), true);
    const double *b = tutti_tensor_data(bucket);

    (void)state;
    assert_int_equal(tutti_tensor_set_grad(x, tutti_tensor_narrow(bucket, 0, 2, 2)), TUTTI_OK);
    assert_int_equal(tutti_tensor_backward(sum(tutti_tensor_mul_scalar(x, 3.0))), TUTTI_OK);
    assert_true(b[1] == 0.0 && b[2] == 3.0 && b[3] == 3.0 && b[4] == 0.0);
    assert_int_equal(tutti_tensor_set_grad(x, bucket), TUTTI_E_ARG);
    bucket = tutti_tensor_expand(tutti_tensor_narrow(bucket, 0, 0, 1), 1, SHAPE(2));
    assert_int_equal(tutti_tensor_set_grad(x, bucket), TUTTI_E_ARG); /* would add both into one */
    assert_non_null(strstr(tutti_last_error(), "repeats elements"));
    assert_int_equal(tutti_tensor_set_grad(tutti_tensor_exp(x), NULL), TUTTI_OK);
}

/* A gradient that others see is copied, not adopted: the two leaves do not share memory. */
static void shared_gradients_are_copied(void **state)
{
    tutti_tensor *x = leaf(1.0), *y = leaf(2.0);

    (void)state;
    assert_int_equal(tutti_tensor_backward(tutti_tensor_add(x, y)), TUTTI_OK);
    assert_ptr_not_equal(tutti_tensor_data(tutti_tensor_grad(x)),
                         tutti_tensor_data(tutti_tensor_grad(y)));
}

typedef struct trace {
    char log[64];
    tutti_tensor *remove_from;
    int handle;
    tutti_status answer;
} trace;

static tutti_status hook_a(tutti_tensor *t, void *ctx)
{
    trace *tr = ctx;

    assert_false(tutti_is_grad_enabled());
    assert_non_null(tutti_tensor_grad(t));
    strcat(tr->log, "a");
    return tr->answer;
}

static tutti_status hook_once(tutti_tensor *t, void *ctx)
{
    trace *tr = ctx;

    strcat(tr->log, "o");
    tutti_tensor_remove_hook(t, tr->handle);
    return TUTTI_OK;
}

static tutti_status hook_scale(tutti_tensor *t, void *ctx)
{
    strcat(((trace *)ctx)->log, "s");
    return tutti_tensor_mul_scalar_(tutti_tensor_grad(t), 0.5);
}

static void hooks_run_after_the_sum_in_order(void **state)
{
    tutti_tensor *x = leaf(3.0), *y = leaf(1.0);
    trace tr = { .log = "" };
    int scale;

    (void)state;
    assert_int_equal(tutti_tensor_register_post_accumulate_grad_hook(x, hook_once, &tr, &tr.handle),
                     TUTTI_OK);
    assert_int_equal(tutti_tensor_register_post_accumulate_grad_hook(x, hook_a, &tr, NULL),
                     TUTTI_OK);
    assert_int_equal(tutti_tensor_register_post_accumulate_grad_hook(x, hook_scale, &tr, &scale),
                     TUTTI_OK);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_mul(x, x)), TUTTI_OK); /* x used twice */
    assert_string_equal(tr.log, "oas");
    assert_true(grad_of(x) == 3.0);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_exp(y)), TUTTI_OK); /* without x */
    assert_string_equal(tr.log, "oas");
    tutti_tensor_remove_hook(x, scale);
    tutti_tensor_remove_hook(x, 12345);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_mul(x, x)), TUTTI_OK);
    assert_string_equal(tr.log, "oasa");
    assert_true(grad_of(x) == 9.0);
    assert_int_equal(
        tutti_tensor_register_post_accumulate_grad_hook(tutti_tensor_exp(x), hook_a, &tr, NULL),
        TUTTI_E_ARG);
}

static tutti_status hook_both(tutti_tensor *t, void *ctx)
{
    trace *tr = ctx;

    strcat(tr->log, "b");
    for (int handle = tr->handle; handle > 0; handle--)
        tutti_tensor_remove_hook(t, handle);
    return TUTTI_OK;
}

/* A hook removes itself and the one before it: the two behind it still run, once each. */
static void no_hook_is_skipped_when_others_go(void **state)
{
    const tutti_grad_hook fn[4] = { hook_a, hook_both, hook_scale, hook_a };
    tutti_tensor *x = leaf(3.0);
    trace tr = { .log = "", .handle = 2 };

    (void)state;
    for (int i = 0, handle = 0; i < 4; i++) {
        assert_int_equal(tutti_tensor_register_post_accumulate_grad_hook(x, fn[i], &tr, &handle),
                         TUTTI_OK);
        assert_int_equal(handle, i + 1);
    }
    assert_int_equal(tutti_tensor_backward(tutti_tensor_exp(x)), TUTTI_OK);
    assert_string_equal(tr.log, "absa");
    assert_int_equal(tutti_tensor_backward(tutti_tensor_exp(x)), TUTTI_OK);
    assert_string_equal(tr.log, "absasa");
}

static void a_failing_hook_ends_the_pass(void **state)
{
    tutti_tensor *x = leaf(3.0), *y = tutti_tensor_mul(x, x);
    trace tr = { .answer = TUTTI_E_PEER };

    (void)state;
    assert_int_equal(tutti_tensor_register_post_accumulate_grad_hook(x, hook_a, &tr, NULL),
                     TUTTI_OK);
    assert_int_equal(tutti_tensor_register_post_accumulate_grad_hook(x, hook_scale, &tr, NULL),
                     TUTTI_OK);
    assert_int_equal(tutti_tensor_backward(y), TUTTI_E_PEER);
    assert_string_equal(tr.log, "a");
    assert_true(tutti_is_grad_enabled());
}

/* Later made nodes first, leaves as soon as they are ready: the order of a gradient reducer. */
static tutti_status log_name(tutti_tensor *t, void *ctx)
{
    double v = NAN;

    assert_int_equal(tutti_tensor_item(t, &v), TUTTI_OK);
    strcat((char *)ctx, (const char[]){ (char)('a' + (int)v), 0 });
    return TUTTI_OK;
}

static void leaves_finish_in_the_reverse_order_of_their_use(void **state)
{
    tutti_tensor *p[4], *y;
    char log[16] = "";

    (void)state;
    for (int i = 0; i < 4; i++) {
        p[i] = leaf(i);
        assert_int_equal(tutti_tensor_register_post_accumulate_grad_hook(p[i], log_name, log, NULL),
                         TUTTI_OK);
    }
    y = tutti_tensor_mul(p[0], p[1]);
    y = tutti_tensor_add(tutti_tensor_exp(p[2]), y);
    y = tutti_tensor_add(y, tutti_tensor_mul(p[3], p[0]));
    assert_int_equal(tutti_tensor_backward(y), TUTTI_OK);
    assert_string_equal(log, "dcab");
}

/* ---- threads ---------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 50 };

/* A graph of its own over a leaf shared by all threads. */
static void *add_to_shared_leaf(void *arg)
{
    tutti_tensor *x = arg;
    bool ok = true;

    for (int i = 0; i < ROUNDS; i++) {
        tutti_scope_begin();
        ok = ok && tutti_tensor_backward(sum(tutti_tensor_mul(x, x))) == TUTTI_OK;
        tutti_scope_end();
    }
    return ok ? arg : NULL;
}

static void threads_share_a_leaf(void **state)
{
    tutti_tensor *x =
        tutti_tensor_requires_grad_(tutti_tensor_ones(TUTTI_F64, 1, SHAPE(100)), true);
    pthread_t thread[THREADS];
    const double *g;

    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, add_to_shared_leaf, x), 0);
    for (int i = 0; i < THREADS; i++) {
        void *result = NULL;

        assert_int_equal(pthread_join(thread[i], &result), 0);
        assert_ptr_equal(result, x);
    }
    g = tutti_tensor_data(tutti_tensor_grad(x));
    for (int i = 0; i < 100; i++)
        assert_true(g[i] == 2.0 * THREADS * ROUNDS);
}

/* Failures and recording modes belong to their thread. */
static void *fail_here(void *arg)
{
    tutti_set_grad_enabled(false);
    (void)tutti_tensor_exp(NULL);
    return tutti_tensor_check() == TUTTI_E_ARG ? arg : NULL;
}

static void failures_belong_to_their_thread(void **state)
{
    pthread_t thread;
    void *result = NULL;
    int token = 0;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, fail_here, &token), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &token);
    assert_int_equal(tutti_tensor_check(), TUTTI_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(diamonds, begin, end),
        cmocka_unit_test_setup_teardown(nodes_run_once, begin, end),
        cmocka_unit_test_setup_teardown(gradients_add_up_in_the_same_object, begin, end),
        cmocka_unit_test_setup_teardown(several_roots_and_given_gradients, begin, end),
        cmocka_unit_test_setup_teardown(a_leaf_can_be_a_root, begin, end),
        cmocka_unit_test_setup_teardown(unused_results, begin, end),
        cmocka_unit_test_setup_teardown(long_chains, begin, end),
        cmocka_unit_test_setup_teardown(broadcast_gradients_of_leaves_have_their_shape, begin, end),
        cmocka_unit_test_setup_teardown(a_second_backward_needs_the_flag, begin, end),
        cmocka_unit_test_setup_teardown(saved_values_must_not_change, begin, end),
        cmocka_unit_test_setup_teardown(in_place_on_recorded_tensors_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(bad_roots, begin, end),
        cmocka_unit_test_setup_teardown(the_kept_failure_comes_out_of_backward, begin, end),
        cmocka_unit_test_setup_teardown(leaves_collect_into_a_given_buffer, begin, end),
        cmocka_unit_test_setup_teardown(shared_gradients_are_copied, begin, end),
        cmocka_unit_test_setup_teardown(hooks_run_after_the_sum_in_order, begin, end),
        cmocka_unit_test_setup_teardown(no_hook_is_skipped_when_others_go, begin, end),
        cmocka_unit_test_setup_teardown(a_failing_hook_ends_the_pass, begin, end),
        cmocka_unit_test_setup_teardown(leaves_finish_in_the_reverse_order_of_their_use, begin,
                                        end),
        cmocka_unit_test_setup_teardown(threads_share_a_leaf, begin, end),
        cmocka_unit_test_setup_teardown(failures_belong_to_their_thread, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

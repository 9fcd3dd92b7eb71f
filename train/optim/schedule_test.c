/* SPDX-License-Identifier: BSD-3-Clause
 *
 * schedule_test.c
 * Goal    schedules set the rates of the epoch whichever way it was reached, groups that come later take part,
 *         failures change nothing; norms are those of their definition for any layout, and clipping treats
 *         NaN, infinity and missing gradients as its header says. (PyTorch's numbers: tests/golden.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <tutti/autograd.h>
#include <tutti/optim.h>

#include "tensor/checks.h"

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

static tutti_tensor *leaf(int64_t n)
{
    return tutti_tensor_requires_grad_(tutti_tensor_zeros(TUTTI_F32, 1, SHAPE(n)), true);
}

static tutti_optim *sgd(tutti_tensor **p, double lr)
{
    tutti_optim *o = tutti_sgd(p, 1, NULL);

    assert_int_equal(tutti_optim_set_lr(o, lr), TUTTI_OK);
    return o;
}

/* ---- schedules -------------------------------------------------------------------------------- */

static void the_epoch_alone_decides(void **state)
{
    tutti_tensor *p = leaf(1);
    tutti_optim *o = sgd(&p, 1.0);
    tutti_lr_scheduler *s = tutti_warmup_cosine_lr(o, 3, 9, 0.1);
    double walked[12];

    (void)state;
    assert_true(tutti_optim_lr(o) == 1.0 / 3.0 && tutti_lr_scheduler_epoch(s) == 0);
    for (int e = 0; e < 12; e++) {
        walked[e] = tutti_optim_lr(o);
        assert_int_equal(tutti_optim_set_lr(o, 77.0), TUTTI_OK); /* is overwritten */
        assert_int_equal(tutti_lr_scheduler_step(s), TUTTI_OK);
    }
    assert_true(walked[2] == 1.0 && walked[3] == 1.0 && fabs(walked[6] - 0.55) < 1e-15);
    assert_true(walked[9] == 0.1 && walked[11] == 0.1);
    for (int e = 11; e >= 0; e--) {
        assert_int_equal(tutti_lr_scheduler_set_epoch(s, e), TUTTI_OK);
        assert_true(tutti_optim_lr(o) == walked[e] && tutti_lr_scheduler_epoch(s) == e);
    }
    tutti_lr_scheduler_free(s);
    assert_true(tutti_optim_lr(o) == walked[0]);
    tutti_optim_free(o);
}

static void later_groups_take_part(void **state)
{
    tutti_tensor *p[2] = { leaf(1), leaf(1) };
    tutti_optim *o = sgd(p, 1.0);
    tutti_lr_scheduler *s = tutti_exponential_lr(o, 0.5);
    const double eight = 8.0;
    double got = NAN;

    (void)state;
    assert_int_equal(tutti_lr_scheduler_step(s), TUTTI_OK);
    assert_int_equal(tutti_optim_add_param_group(o, p + 1, 1, NULL), TUTTI_OK);
    assert_int_equal(tutti_optim_set_option(o, 1, "lr", &eight, 1), TUTTI_OK);
    assert_int_equal(tutti_lr_scheduler_step(s), TUTTI_OK);
    assert_int_equal(tutti_optim_get_option(o, 1, "lr", 0, &got), TUTTI_OK);
    assert_true(tutti_optim_lr(o) == 0.25 && got == 2.0);
    tutti_lr_scheduler_free(s);
    tutti_optim_free(o);
}

static double until_three(int64_t epoch, void *ctx)
{
    return epoch < 3 ? (double)(epoch + 1) * *(const double *)ctx : -1.0;
}

static void a_rate_below_zero_changes_nothing(void **state)
{
    tutti_tensor *p = leaf(1);
    tutti_optim *o = sgd(&p, 1.0);
    double tenth = 0.1;
    tutti_lr_scheduler *s = tutti_lambda_lr(o, until_three, &tenth);

    (void)state;
    assert_int_equal(tutti_lr_scheduler_set_epoch(s, 2), TUTTI_OK);
    assert_true(tutti_optim_lr(o) == 3.0 * 0.1);
    assert_int_equal(tutti_lr_scheduler_step(s), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "learning rate of -1 for group 0 at epoch 3"));
    assert_true(tutti_optim_lr(o) == 3.0 * 0.1 && tutti_lr_scheduler_epoch(s) == 2);
    assert_int_equal(tutti_lr_scheduler_set_epoch(s, -1), TUTTI_E_ARG);
    assert_int_equal(tutti_lr_scheduler_step(NULL), TUTTI_E_ARG);
    assert_true(tutti_lr_scheduler_epoch(NULL) == -1);
    tutti_lr_scheduler_free(s);
    tutti_optim_free(o);
}

static void bad_schedules_are_refused(void **state)
{
    tutti_tensor *p = leaf(1);
    tutti_optim *o = sgd(&p, 1.0);
    double minus = -1.0;

    (void)state;
    assert_null(tutti_step_lr(NULL, 1, 0.5));
    assert_null(tutti_step_lr(o, 0, 0.5));
    assert_null(tutti_step_lr(o, 1, NAN));
    assert_null(tutti_multi_step_lr(o, NULL, 1, 0.5));
    assert_null(tutti_exponential_lr(o, -0.5));
    assert_null(tutti_linear_lr(o, 0.5, 1.0, 0));
    assert_null(tutti_cosine_annealing_lr(o, 0, 0.0));
    assert_null(tutti_warmup_cosine_lr(o, 5, 5, 0.0));
    assert_non_null(strstr(tutti_last_error(), "warmup is 5, but must be less than n, which is 5"));
    assert_null(tutti_warmup_cosine_lr(o, 1, 5, -2.0));
    assert_non_null(strstr(tutti_last_error(), "lr_min is -2, but must be 0 or more"));
    assert_null(tutti_step_lr(o, 0, 0.5));
    assert_non_null(strstr(tutti_last_error(), "step_size is 0, but must be 1 or more"));
    assert_null(tutti_lambda_lr(o, NULL, NULL));
    assert_null(tutti_lambda_lr(o, until_three, &minus));
    assert_true(tutti_optim_lr(o) == 1.0);
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    tutti_lr_scheduler_free(NULL);
    tutti_optim_free(o);
}

/* ---- clipping --------------------------------------------------------------------------------- */

static tutti_tensor *with_grad(tutti_tensor *grad)
{
    tutti_tensor *p = tutti_tensor_requires_grad_(
        tutti_tensor_zeros(tutti_tensor_dtype(grad), 2,
                           SHAPE(tutti_tensor_size(grad, 0), tutti_tensor_size(grad, 1))),
        true);

    assert_int_equal(tutti_tensor_set_grad(p, grad), TUTTI_OK);
    return p;
}

static double norm(tutti_tensor *t, double order)
{
    double got = NAN;

    assert_int_equal(tutti_get_total_norm(&t, 1, order, false, &got), TUTTI_OK);
    return got;
}

static void norms_are_those_of_their_definition(void **state)
{
    tutti_tensor *x = tutti_tensor_randn(TUTTI_F64, 2, SHAPE(29, 37), NULL);
    tutti_tensor *f = tutti_tensor_to(x, TUTTI_F32), *turned = tutti_tensor_transpose(x, 0, 1);
    const double *v = tutti_tensor_data(x);
    double one = 0, two = 0, five = 0, top = 0;

    (void)state;
    for (int k = 0; k < 29 * 37; k++) {
        one += fabs(v[k]);
        two += v[k] * v[k];
        five += pow(fabs(v[k]), 5);
        top = fmax(top, fabs(v[k]));
    }
    assert_true(fabs(norm(x, 1) / one - 1) < 1e-13 && fabs(norm(f, 1) / one - 1) < 1e-7);
    assert_true(fabs(norm(x, 2) / sqrt(two) - 1) < 1e-13);
    assert_true(fabs(norm(f, 2) / sqrt(two) - 1) < 1e-7);
    assert_true(fabs(norm(x, 5) / pow(five, 0.2) - 1) < 1e-13);
    assert_true(norm(x, INFINITY) == top && norm(turned, INFINITY) == top);
    assert_true(fabs(norm(turned, 2) / sqrt(two) - 1) < 1e-13);
    assert_true(norm(tutti_tensor_full(TUTTI_F32, 1, SHAPE(4), 3e38), 2) >
                5.9e38); /* no overflow */
    assert_true(norm(tutti_tensor_zeros(TUTTI_F32, 1, SHAPE(0)), 2) == 0.0);
    assert_true(isnan(norm(tutti_tensor_div(x, tutti_tensor_sub(x, x)), 2)) ||
                isinf(norm(tutti_tensor_div(x, tutti_tensor_sub(x, x)), 2)));
}

static void clipping_keeps_to_its_bound(void **state)
{
    tutti_tensor *g =
        tutti_tensor_transpose(tutti_tensor_randn(TUTTI_F32, 2, SHAPE(30, 40), NULL), 0, 1);
    tutti_tensor *p[3] = { with_grad(g), leaf(3), with_grad(tutti_tensor_clone(g)) };
    double before = NAN, after = NAN;

    (void)state;
    assert_int_equal(tutti_clip_grad_norm_(p, 3, 1.0, 2.0, true, &before), TUTTI_OK);
    assert_int_equal(tutti_clip_grad_norm_(p, 3, 10.0, 2.0, true, &after), TUTTI_OK);
    assert_true(before > 40.0 && fabs(after - 1.0) < 1e-6);
    assert_true(tutti_tensor_equal(tutti_tensor_grad(p[0]), tutti_tensor_grad(p[2])));
    assert_int_equal(tutti_clip_grad_norm_(p, 3, 10.0, 2.0, true, &before), TUTTI_OK);
    assert_true(before == after); /* below the bound nothing changes */
    assert_int_equal(tutti_clip_grad_value_(p, 3, 0.01), TUTTI_OK);
    assert_int_equal(tutti_clip_grad_norm_(p, 3, 10.0, INFINITY, true, &after), TUTTI_OK);
    assert_true(after == (double)0.01f);
    assert_true(tutti_tensor_equal(tutti_tensor_grad(p[0]), tutti_tensor_grad(p[2])));
    assert_null(tutti_tensor_grad(p[1]));
}

static void what_is_not_finite_is_an_error_if_asked(void **state)
{
    tutti_tensor *p = with_grad(tutti_tensor_full(TUTTI_F32, 2, SHAPE(2, 2), 2.0));
    float *g = tutti_tensor_data(tutti_tensor_grad(p));
    double got = 5.0;

    (void)state;
    g[3] = NAN;
    assert_int_equal(tutti_clip_grad_norm_(&p, 1, 1.0, 2.0, true, &got), TUTTI_E_STATE);
    assert_non_null(strstr(tutti_last_error(), "the norm of order 2 of 1 tensors is"));
    assert_true(g[0] == 2.0f && got == 5.0);
    assert_int_equal(tutti_clip_grad_value_(&p, 1, 1.0), TUTTI_OK);
    assert_true(g[0] == 1.0f && isnan(g[3]));
    assert_int_equal(tutti_clip_grad_norm_(&p, 1, 1.0, INFINITY, false, &got), TUTTI_OK);
    assert_true(isnan(got) && isnan(g[0]));
    assert_int_equal(tutti_clip_grad_norm_(&p, 1, -1.0, 2.0, false, &got), TUTTI_E_ARG);
    assert_int_equal(tutti_clip_grad_norm_(&p, 1, 1.0, 0.0, false, &got), TUTTI_E_ARG);
    assert_int_equal(tutti_clip_grad_norm_(NULL, 1, 1.0, 2.0, false, &got), TUTTI_E_ARG);
    assert_int_equal(tutti_clip_grads_with_norm_(&p, 1, NAN, 2.0), TUTTI_E_ARG);
}

/* Ranks that hold parts of the parameters combine norms themselves. */
static void a_norm_of_elsewhere_counts(void **state)
{
    tutti_tensor *p = with_grad(tutti_tensor_full(TUTTI_F64, 2, SHAPE(1, 1), 3.0));

    (void)state;
    assert_int_equal(tutti_clip_grads_with_norm_(&p, 1, 1.0, 6.0 - 1e-6), TUTTI_OK);
    assert_true(*(double *)tutti_tensor_data(tutti_tensor_grad(p)) == 3.0 * (1.0 / 6.0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_epoch_alone_decides, begin, end),
        cmocka_unit_test_setup_teardown(later_groups_take_part, begin, end),
        cmocka_unit_test_setup_teardown(a_rate_below_zero_changes_nothing, begin, end),
        cmocka_unit_test_setup_teardown(bad_schedules_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(norms_are_those_of_their_definition, begin, end),
        cmocka_unit_test_setup_teardown(clipping_keeps_to_its_bound, begin, end),
        cmocka_unit_test_setup_teardown(what_is_not_finite_is_an_error_if_asked, begin, end),
        cmocka_unit_test_setup_teardown(a_norm_of_elsewhere_counts, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sgd_test.c
 * Goal    trajectories of every variant equal those computed by hand, in f64; what must not move does
 *         not; bad options are refused. */
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

static tutti_tensor *leaf(double value)
{
    return tutti_tensor_requires_grad_(tutti_tensor_scalar(TUTTI_F64, value), true);
}

/* Three steps on x^2 from 3, beside the formula on plain numbers. */
static void check_trajectory(const tutti_sgd_options *o)
{
    tutti_tensor *x = leaf(3.0);
    tutti_optim *sgd = tutti_sgd(&x, 1, o);
    double p = 3.0, buf = 0.0;

    assert_non_null(sgd);
    for (int step = 0; step < 3; step++) {
        double g = (o->maximize ? -1.0 : 1.0) * 2.0 * p + o->weight_decay * p;

        if (o->momentum != 0.0) {
            buf = step == 0 ? g : o->momentum * buf + (1.0 - o->dampening) * g;
            g = o->nesterov ? g + o->momentum * buf : buf;
        }
        p -= o->lr * g;
        tutti_optim_zero_grad(sgd);
        assert_int_equal(tutti_tensor_backward(tutti_tensor_mul(x, x)), TUTTI_OK);
        assert_int_equal(tutti_optim_step(sgd), TUTTI_OK);
        assert_true(fabs(item(x) - p) < 1e-14);
    }
    tutti_optim_free(sgd);
}

static void trajectories(void **state)
{
    (void)state;
    for (int i = 0; i < 32; i++) {
        tutti_sgd_options o = TUTTI_SGD_OPTIONS;

        o.lr = 0.1;
        o.momentum = i & 1 ? 0.7 : 0.0;
        o.dampening = i & 2 ? 0.3 : 0.0;
        o.weight_decay = i & 4 ? 0.2 : 0.0;
        o.maximize = (i & 8) != 0;
        o.nesterov = (i & 16) != 0;
        if (!o.nesterov || (o.momentum != 0.0 && o.dampening == 0.0))
            check_trajectory(&o);
    }
}

static void a_parameter_without_a_gradient_stays(void **state)
{
    tutti_sgd_options o = TUTTI_SGD_OPTIONS;
    tutti_tensor *p[2] = { leaf(1.0), leaf(2.0) };
    tutti_optim *sgd;

    (void)state;
    o.weight_decay = 0.5;
    o.lr = 0.1;
    sgd = tutti_sgd(p, 2, &o);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_mul_scalar(p[0], 1.0)), TUTTI_OK);
    assert_int_equal(tutti_optim_step(sgd), TUTTI_OK);
    assert_true(item(p[0]) == 1.0 - 0.1 * 1.5 && item(p[1]) == 2.0);
    assert_true(item(tutti_tensor_grad(p[0])) == 1.0); /* only read */
    assert_int_equal(tutti_optim_set_lr(sgd, 0.0), TUTTI_OK);
    assert_int_equal(tutti_optim_step(sgd), TUTTI_OK);
    assert_true(item(p[0]) == 1.0 - 0.1 * 1.5);
    assert_true(tutti_optim_lr(sgd) == 0.0 && isnan(tutti_optim_lr(NULL)));
    assert_int_equal(tutti_optim_set_lr(sgd, -1.0), TUTTI_E_ARG);
    tutti_optim_free(sgd);
}

/* A step changes values that a graph had saved: its backward notices. */
static void a_step_is_seen_by_older_graphs(void **state)
{
    tutti_tensor *x = leaf(3.0), *y = tutti_tensor_mul(x, x);
    tutti_optim *sgd = tutti_sgd(&x, 1, NULL);

    (void)state;
    assert_int_equal(tutti_backward(&y, NULL, 1, TUTTI_RETAIN_GRAPH), TUTTI_OK);
    assert_int_equal(tutti_optim_step(sgd), TUTTI_OK);
    assert_int_equal(tutti_tensor_backward(y), TUTTI_E_STATE);
    tutti_optim_free(sgd);
}

static void the_kept_failure_comes_out_of_step(void **state)
{
    tutti_tensor *x = leaf(3.0);
    tutti_optim *sgd = tutti_sgd(&x, 1, NULL);

    (void)state;
    assert_int_equal(tutti_tensor_backward(tutti_tensor_mul(x, x)), TUTTI_OK);
    assert_null(tutti_tensor_exp(tutti_tensor_select(x, 0, 0)));
    assert_int_equal(tutti_optim_step(sgd), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "select: "));
    assert_true(item(x) == 3.0);
    assert_int_equal(tutti_optim_step(sgd), TUTTI_OK);
    assert_true(item(x) < 3.0);
    tutti_optim_free(sgd);
}

static void refusals(void **state)
{
    tutti_tensor *x = leaf(3.0), *twice[2] = { x, x }, *plain = tutti_tensor_scalar(TUTTI_F64, 1);
    const tutti_sgd_options defaults = TUTTI_SGD_OPTIONS;
    tutti_sgd_options o = defaults;

    (void)state;
    assert_null(tutti_sgd(&x, 0, NULL));
    assert_null(tutti_sgd(twice, 2, NULL));
    assert_null(tutti_sgd(&plain, 1, NULL));
    o.nesterov = true;
    assert_null(tutti_sgd(&x, 1, &o));
    o = defaults;
    o.lr = NAN;
    assert_null(tutti_sgd(&x, 1, &o));
    assert_null(tutti_sgd(&x, 1, &(tutti_sgd_options){ .lr = 1.0 }));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    assert_int_equal(tutti_optim_step(NULL), TUTTI_E_ARG);
    tutti_optim_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(trajectories, begin, end),
        cmocka_unit_test_setup_teardown(a_parameter_without_a_gradient_stays, begin, end),
        cmocka_unit_test_setup_teardown(a_step_is_seen_by_older_graphs, begin, end),
        cmocka_unit_test_setup_teardown(the_kept_failure_comes_out_of_step, begin, end),
        cmocka_unit_test_setup_teardown(refusals, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

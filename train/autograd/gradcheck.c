/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gradcheck.c - gradients against differences of function values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "autograd/gradcheck.h"

tutti_tensor *tt_leaf(double low, double high, int nd, const int64_t *shape)
{
    tutti_tensor *t = tutti_tensor_empty(TUTTI_F64, nd, shape);

    assert_int_equal(tutti_tensor_uniform_(t, low, high, NULL), TUTTI_OK);
    return tutti_tensor_requires_grad_(t, true);
}

/* sum of w * f(in), with w = 0.3, 1.0, 1.7, ... by element, so that all gradients differ. */
static tutti_tensor *weighted(tt_function f, const void *ctx, tutti_tensor *const *in)
{
    tutti_tensor *y = f(in, ctx);
    const int64_t n = tutti_tensor_numel(y);
    tutti_tensor *flat = tutti_tensor_reshape(y, 1, &n);
    tutti_tensor *w = tutti_tensor_arange(TUTTI_F64, 0.3, 0.3 + 0.7 * (double)n - 0.1, 0.7);

    return tutti_tensor_sum(tutti_tensor_mul(flat, w), NULL, 0, false);
}

static double value(tt_function f, const void *ctx, tutti_tensor *const *in)
{
    const bool was = tutti_set_grad_enabled(false);
    double v = NAN;

    tutti_scope_begin();
    if (tutti_tensor_item(weighted(f, ctx, in), &v) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    tutti_scope_end();
    tutti_set_grad_enabled(was);
    return v;
}

static void check_input(const char *what, tt_function f, const void *ctx, tutti_tensor *const *in,
                        int k)
{
    const double h = 1e-5;
    double *x = tutti_tensor_data(in[k]);
    const tutti_tensor *grad = tutti_tensor_grad(in[k]);
    const double *g = tutti_tensor_data(grad);

    if (g == NULL || !tutti_tensor_is_contiguous(grad))
        fail_msg("%s: input %d has no gradient, or none laid out row by row", what, k);
    for (int64_t i = 0; i < tutti_tensor_numel(in[k]); i++) {
        const double at = x[i];
        double up, down, slope;

        x[i] = at + h;
        up = value(f, ctx, in);
        x[i] = at - h;
        down = value(f, ctx, in);
        x[i] = at;
        slope = (up - down) / (2 * h);
        if (!(fabs(slope - g[i]) <= 1e-6 * fmax(1.0, fabs(slope))))
            fail_msg("%s: input %d, element %lld: backward %.10g, differences %.10g", what, k,
                     (long long)i, g[i], slope);
    }
}

void tt_gradcheck(const char *what, tt_function f, const void *ctx, tutti_tensor *const *in, int n)
{
    tutti_scope_begin();
    if (tutti_tensor_backward(weighted(f, ctx, in)) != TUTTI_OK)
        fail_msg("%s: %s", what, tutti_last_error());
    tutti_scope_end();
    for (int k = 0; k < n; k++)
        if (tutti_tensor_requires_grad(in[k]))
            check_input(what, f, ctx, in, k);
    for (int k = 0; k < n; k++)
        assert_int_equal(tutti_tensor_set_grad(in[k], NULL), TUTTI_OK);
}

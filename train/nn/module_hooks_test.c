/* SPDX-License-Identifier: BSD-3-Clause
 *
 * module_hooks_test.c
 * Goal    hooks of modules run in their order around forward and backward, see and may replace what they
 *         are promised, and fail as they should.
 * Method  every hook writes its letter to a trace; a chain of modules whose numbers are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <tutti/nn.h>
#include <tutti/private.h>

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

static char trace[64];

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
    return tutti_tensor_check() == TUTTI_OK ? 0 : -1;
}

static double item(const tutti_tensor *t)
{
    double v = NAN;

    assert_int_equal(tutti_tensor_item(t, &v), TUTTI_OK);
    return v;
}

static void note(char letter)
{
    const size_t n = strlen(trace);

    assert_true(n + 1 < sizeof trace);
    trace[n] = letter;
    trace[n + 1] = '\0';
}

/* A module that multiplies with 3. */
static tutti_tensor *thrice(tutti_module *m, tutti_tensor *x)
{
    (void)m;
    note('.');
    return tutti_tensor_mul_scalar(x, 3.0);
}

static tutti_status plus_one(tutti_module *m, tutti_tensor **x, void *ctx)
{
    (void)m, (void)ctx;
    note('p');
    *x = tutti_tensor_add_scalar(*x, 1.0);
    return TUTTI_OK;
}

static tutti_status negated(tutti_module *m, tutti_tensor *x, tutti_tensor **y, void *ctx)
{
    (void)m, (void)ctx;
    note('f');
    assert_true(item(x) * 3.0 == item(*y));
    *y = tutti_tensor_neg(*y);
    return TUTTI_OK;
}

static tutti_status see_output(tutti_module *m, tutti_tensor **grad_output, void *ctx)
{
    (void)m;
    note('b');
    *(double *)ctx = item(*grad_output);
    *grad_output = tutti_tensor_mul_scalar(*grad_output, 2.0);
    return TUTTI_OK;
}

static tutti_status see_input(tutti_module *m, tutti_tensor *grad_output, tutti_tensor **grad_input,
                              void *ctx)
{
    double *seen = ctx;

    (void)m;
    note('B');
    seen[0] = item(grad_output);
    seen[1] = *grad_input != NULL ? item(*grad_input) : 0.0;
    if (*grad_input != NULL)
        *grad_input = tutti_tensor_add_scalar(*grad_input, 0.5);
    return TUTTI_OK;
}

static tutti_tensor *leaf(double v)
{
    return tutti_tensor_requires_grad_(tutti_tensor_scalar(TUTTI_F64, v), true);
}

static void around_forward(void **state)
{
    tutti_module *m = tutti_module_create("thrice", thrice, NULL, NULL);
    tutti_tensor *x = leaf(2.0);
    int pre, post;

    (void)state;
    assert_int_equal(tutti_module_register_forward_hook(m, negated, NULL, &post), TUTTI_OK);
    assert_int_equal(tutti_module_register_forward_pre_hook(m, plus_one, NULL, &pre), TUTTI_OK);
    assert_true(item(tutti_forward(m, x)) == -9.0);
    assert_string_equal(trace, "p.f");
    tutti_module_remove_hook(m, post);
    tutti_module_remove_hook(m, 99);
    assert_true(item(tutti_forward(m, x)) == 9.0);
    tutti_module_remove_hook(m, pre);
    assert_true(item(tutti_forward(m, x)) == 6.0);
    tutti_module_free(m);
}

/* sequential(thrice, thrice), each with hooks: the later module comes first in backward. */
static void around_backward(void **state)
{
    tutti_module *both = tutti_sequential(), *one, *two;
    tutti_tensor *x = leaf(2.0);
    double out[2] = { 0 }, in[2][2] = { { 0 } };

    (void)state;
    one = tutti_module_add(both, "0", tutti_module_create("thrice", thrice, NULL, NULL));
    two = tutti_module_add(both, "1", tutti_module_create("thrice", thrice, NULL, NULL));
    assert_int_equal(tutti_module_register_full_backward_hook(one, see_input, in[0], NULL),
                     TUTTI_OK);
    assert_int_equal(tutti_module_register_full_backward_hook(two, see_input, in[1], NULL),
                     TUTTI_OK);
    assert_int_equal(tutti_module_register_full_backward_pre_hook(two, see_output, &out[1], NULL),
                     TUTTI_OK);
    assert_int_equal(tutti_tensor_backward(tutti_forward(both, x)), TUTTI_OK);
    assert_string_equal(trace, "..bBB");
    assert_true(out[1] == 1.0);
    assert_true(in[1][0] == 2.0 && in[1][1] == 6.0);  /* as the hook before it left it */
    assert_true(in[0][0] == 6.5 && in[0][1] == 19.5); /* as the hook of the later module left it */
    assert_true(item(tutti_tensor_grad(x)) == 20.0);
    trace[0] = '\0';
    assert_true(item(tutti_forward(both, tutti_tensor_detach(x))) == 18.0);
    assert_string_equal(trace, "..");
    tutti_module_free(both);
}

/* Two calls of one module in one graph keep their gradients apart. */
static void one_module_twice(void **state)
{
    tutti_module *m = tutti_module_create("thrice", thrice, NULL, NULL);
    tutti_tensor *x = leaf(2.0), *y;
    double seen[2];

    (void)state;
    assert_int_equal(tutti_module_register_full_backward_hook(m, see_input, seen, NULL), TUTTI_OK);
    y = tutti_forward(m, tutti_forward(m, x));
    assert_int_equal(tutti_tensor_backward(y), TUTTI_OK);
    assert_string_equal(trace, "..BB");
    assert_true(seen[0] == 3.5 && seen[1] == 10.5);
    tutti_module_free(m);
}

/* The input is data; only the parameter learns. */
static void an_input_that_wants_no_gradient(void **state)
{
    tutti_module *m = tutti_linear(1, 1, false);
    tutti_tensor *x = tutti_tensor_ones(TUTTI_F32, 2, SHAPE(1, 1)), *y;
    double seen[2] = { 0, 7.0 };

    (void)state;
    assert_int_equal(tutti_module_register_full_backward_hook(m, see_input, seen, NULL), TUTTI_OK);
    y = tutti_forward(m, x);
    assert_int_equal(tutti_tensor_backward(y), TUTTI_OK);
    assert_string_equal(trace, "B");
    assert_true(seen[0] == 1.0 && seen[1] == 0.0);
    assert_non_null(tutti_tensor_grad(tutti_module_parameter(m, "weight")));
    y = tutti_forward(m, x); /* a graph that is never run back */
    assert_non_null(y);
    tutti_module_free(m);
}

static tutti_status fails_before(tutti_module *m, tutti_tensor **x, void *ctx)
{
    (void)m, (void)x, (void)ctx;
    return tti_fail(TUTTI_E_ABORTED, "not today");
}

static tutti_status fails_back(tutti_module *m, tutti_tensor *g, tutti_tensor **in, void *ctx)
{
    (void)m, (void)g, (void)in, (void)ctx;
    return tti_fail(TUTTI_E_ABORTED, "not that way");
}

static void failing_hooks(void **state)
{
    tutti_module *m = tutti_module_create("thrice", thrice, NULL, NULL);
    tutti_tensor *x = leaf(2.0), *y;
    int handle;

    (void)state;
    assert_int_equal(tutti_module_register_forward_pre_hook(m, fails_before, NULL, &handle),
                     TUTTI_OK);
    assert_null(tutti_forward(m, x));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ABORTED);
    assert_string_equal(tutti_last_error(), "thrice: a hook failed: not today");
    tutti_module_remove_hook(m, handle);
    assert_int_equal(tutti_module_register_full_backward_hook(m, fails_back, NULL, NULL), TUTTI_OK);
    y = tutti_forward(m, x);
    assert_int_equal(tutti_tensor_backward(y), TUTTI_E_ABORTED);
    assert_non_null(strstr(tutti_last_error(), "not that way"));
    assert_null(tutti_tensor_grad(x));
    assert_int_equal(tutti_module_register_forward_hook(m, NULL, NULL, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_module_register_forward_hook(NULL, negated, NULL, NULL), TUTTI_E_ARG);
    tutti_module_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(around_forward, begin, end),
        cmocka_unit_test_setup_teardown(around_backward, begin, end),
        cmocka_unit_test_setup_teardown(one_module_twice, begin, end),
        cmocka_unit_test_setup_teardown(an_input_that_wants_no_gradient, begin, end),
        cmocka_unit_test_setup_teardown(failing_hooks, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

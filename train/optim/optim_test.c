/* SPDX-License-Identifier: BSD-3-Clause
 *
 * optim_test.c
 * Goal    what all optimizers share: three steps of each by hand, groups and their options, the forms of
 *         stepping give the same bits, strides do not matter, nothing moves in a step that fails, a steady
 *         step takes no memory.
 * Method  steps by hand are written out in f64 beside the formula of the header. Calls of the allocator are
 *         counted by wrapping them (CMakeLists.txt). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/autograd.h>
#include <tutti/optim.h>

#include "tensor/checks.h"

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

static const char *const names[] = { "sgd",     "adam",    "adamw",    "adamax",
                                     "adagrad", "rmsprop", "adadelta", "rprop" };

enum { NAMES = sizeof names / sizeof names[0] };

/* ---- the allocator, counted ------------------------------------------------------------------- */

static int allocations;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);

void *__wrap_malloc(size_t n)
{
    allocations++;
    return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    allocations++;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    allocations++;
    return __real_realloc(p, n);
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
    allocations++;
    return __real_aligned_alloc(align, n);
}

/* ---- help ------------------------------------------------------------------------------------- */

static tutti_tensor *leaf(double value)
{
    return tutti_tensor_requires_grad_(tutti_tensor_scalar(TUTTI_F64, value), true);
}

/* Normal numbers; types of 16 bits round those of f32. */
static tutti_tensor *drawn(tutti_dtype dtype, int nd, const int64_t *shape)
{
    const bool half = dtype == TUTTI_F16 || dtype == TUTTI_BF16;

    return tutti_tensor_to(tutti_tensor_randn(half ? TUTTI_F32 : dtype, nd, shape, NULL), dtype);
}

static tutti_tensor *random_leaf(tutti_dtype dtype, int nd, const int64_t *shape)
{
    return tutti_tensor_requires_grad_(drawn(dtype, nd, shape), true);
}

/* ---- three steps by hand ---------------------------------------------------------------------- */

/* A step of one number; s are its states, zero before the first step. */
typedef double (*by_hand)(double p, double g, double *s, int t);

static void check_three(tutti_optim *o, tutti_tensor *x, by_hand hand)
{
    static const double gradients[3] = { 0.5, -1.25, 2.0 };
    double p = item(x), s[3] = { 0.0 };

    assert_non_null(o);
    for (int t = 1; t <= 3; t++) {
        tutti_tensor *g = tutti_tensor_scalar(TUTTI_F64, gradients[t - 1]);

        assert_int_equal(tutti_tensor_set_grad(x, g), TUTTI_OK);
        assert_int_equal(tutti_optim_step(o), TUTTI_OK);
        p = hand(p, gradients[t - 1], s, t);
        if (!(fabs(item(x) - p) < 1e-14))
            fail_msg("%s, step %d: %.17g instead of %.17g", tutti_optim_name(o), t, item(x), p);
    }
    tutti_optim_free(o);
}

static double adam_by_hand(double p, double g, double *s, int t)
{
    g += 0.1 * p;
    s[0] = 0.8 * s[0] + 0.2 * g;
    s[1] = 0.9 * s[1] + 0.1 * g * g;
    return p - 0.05 / (1 - pow(0.8, t)) * s[0] / (sqrt(s[1]) / sqrt(1 - pow(0.9, t)) + 1e-3);
}

static double adamw_by_hand(double p, double g, double *s, int t)
{
    p *= 1 - 0.05 * 0.1;
    s[0] = 0.8 * s[0] + 0.2 * g;
    s[1] = 0.9 * s[1] + 0.1 * g * g;
    s[2] = fmax(s[2], s[1]);
    return p - 0.05 / (1 - pow(0.8, t)) * s[0] / (sqrt(s[2]) / sqrt(1 - pow(0.9, t)) + 1e-3);
}

static double adamax_by_hand(double p, double g, double *s, int t)
{
    s[0] = 0.9 * s[0] + 0.1 * g;
    s[1] = fmax(0.999 * s[1], fabs(g) + 1e-8);
    return p - 2e-3 / (1 - pow(0.9, t)) * s[0] / s[1];
}

static double adagrad_by_hand(double p, double g, double *s, int t)
{
    if (t == 1)
        s[0] = 0.25;
    s[0] += g * g;
    return p - 0.1 / (1 + (t - 1) * 0.5) * g / (sqrt(s[0]) + 1e-10);
}

static double rmsprop_by_hand(double p, double g, double *s, int t)
{
    (void)t;
    g = -g; /* climbs */
    s[0] = 0.9 * s[0] + 0.1 * g * g;
    s[2] = 0.9 * s[2] + 0.1 * g;
    s[1] = 0.5 * s[1] + g / (sqrt(s[0] - s[2] * s[2]) + 1e-8);
    return p - 0.01 * s[1];
}

static double adadelta_by_hand(double p, double g, double *s, int t)
{
    double d;

    (void)t;
    s[0] = 0.9 * s[0] + 0.1 * g * g;
    d = sqrt(s[1] + 1e-6) / sqrt(s[0] + 1e-6) * g;
    s[1] = 0.9 * s[1] + 0.1 * d * d;
    return p - d;
}

/* Signs +, -, + : the second step rests, and the third begins anew with the smaller step. */
static double rprop_by_hand(double p, double g, double *s, int t)
{
    (void)g, (void)s;
    return t == 1 ? p - 0.1 : t == 2 ? p : p - 0.05;
}

static void three_steps_by_hand(void **state)
{
    tutti_adam_options adam = TUTTI_ADAM_OPTIONS, adamw = TUTTI_ADAMW_OPTIONS;
    tutti_adagrad_options adagrad = TUTTI_ADAGRAD_OPTIONS;
    tutti_rmsprop_options rmsprop = TUTTI_RMSPROP_OPTIONS;
    tutti_rprop_options rprop = TUTTI_RPROP_OPTIONS;
    tutti_tensor *x = leaf(1.5);

    (void)state;
    adam.lr = adamw.lr = 0.05;
    adam.betas[0] = adamw.betas[0] = 0.8;
    adam.betas[1] = adamw.betas[1] = 0.9;
    adam.eps = adamw.eps = 1e-3;
    adam.weight_decay = adamw.weight_decay = 0.1;
    adamw.amsgrad = true;
    check_three(tutti_adam(&x, 1, &adam), x, adam_by_hand);
    check_three(tutti_adamw(&x, 1, &adamw), x, adamw_by_hand);
    check_three(tutti_adamax(&x, 1, NULL), x, adamax_by_hand);
    adagrad.lr = 0.1;
    adagrad.lr_decay = 0.5;
    adagrad.initial_accumulator_value = 0.25;
    check_three(tutti_adagrad(&x, 1, &adagrad), x, adagrad_by_hand);
    rmsprop.alpha = 0.9;
    rmsprop.momentum = 0.5;
    rmsprop.centered = rmsprop.maximize = true;
    check_three(tutti_rmsprop(&x, 1, &rmsprop), x, rmsprop_by_hand);
    check_three(tutti_adadelta(&x, 1, NULL), x, adadelta_by_hand);
    rprop.lr = 0.1;
    check_three(tutti_rprop(&x, 1, &rprop), x, rprop_by_hand);
}

/* ---- forms of stepping ------------------------------------------------------------------------ */

enum { PARAMS = 3 };

static void twin(tutti_tensor **p, tutti_dtype dtype, uint64_t seed)
{
    tutti_manual_seed(seed);
    p[0] = random_leaf(dtype, 2, SHAPE(33, 41)); /* more than a block, and no multiple of one */
    p[1] = random_leaf(dtype, 1, SHAPE(5));
    p[2] = random_leaf(dtype, 0, NULL);
}

/* Gradients of step t; in the second one the second parameter has none. */
static void gradients(tutti_tensor *const *p, int t, tutti_tensor **g)
{
    tutti_manual_seed(100 + (uint64_t)t);
    for (int i = 0; i < PARAMS; i++) {
        tutti_tensor *like = tutti_tensor_detach(p[i]);

        g[i] = drawn(tutti_tensor_dtype(p[i]), tutti_tensor_dim(p[i]),
                     SHAPE(tutti_tensor_size(like, 0), tutti_tensor_size(like, 1)));
    }
    if (t == 2)
        g[1] = NULL;
}

static tutti_optim *busy(const char *name, tutti_tensor *const *p, int n)
{
    tutti_optim_option decay = { "weight_decay", { 0.1 } }, climb = { "maximize", { 1.0 } };

    return tutti_optim_create(name, p, n, strcmp(name, "rprop") == 0 ? &climb : &decay, 1);
}

static void check_forms(const char *name, tutti_dtype dtype)
{
    tutti_tensor *p[3][PARAMS], *g[PARAMS];
    tutti_optim *o[3];

    for (int k = 0; k < 3; k++)
        twin(p[k], dtype, 7);
    o[0] = busy(name, p[0], PARAMS);
    o[1] = busy(name, p[1], PARAMS);
    o[2] = busy(name, NULL, 0);
    for (int t = 1; t <= 4; t++) {
        gradients(p[0], t, g);
        for (int i = 0; i < PARAMS; i++)
            assert_int_equal(tutti_tensor_set_grad(p[0][i], g[i]), TUTTI_OK);
        assert_int_equal(tutti_optim_step(o[0]), TUTTI_OK);
        assert_int_equal(tutti_optim_step_grads(o[1], g, PARAMS), TUTTI_OK);
        for (int i = PARAMS - 1; i >= 0; i--) /* as a backward would */
            assert_int_equal(tutti_optim_step_param(o[2], p[2][i], g[i]), TUTTI_OK);
    }
    for (int i = 0; i < PARAMS; i++) {
        assert_true(tutti_tensor_equal(p[0][i], p[1][i]));
        assert_true(tutti_tensor_equal(p[0][i], p[2][i]));
    }
    if (strcmp(name, "sgd") != 0) {
        assert_true(item(tutti_optim_state(o[0], p[0][0], "step")) == 4.0);
        assert_true(item(tutti_optim_state(o[0], p[0][1], "step")) == 3.0);
    }
    for (int k = 0; k < 3; k++)
        tutti_optim_free(o[k]);
}

static void all_forms_give_the_same_bits(void **state)
{
    (void)state;
    for (int k = 0; k < NAMES; k++) {
        check_forms(names[k], TUTTI_F32);
        check_forms(names[k], TUTTI_F64);
        check_forms(names[k], TUTTI_F16);
        check_forms(names[k], TUTTI_BF16);
    }
}

/* A parameter or a gradient that lies column by column steps as one that lies row by row. */
static void strides_do_not_matter(void **state)
{
    (void)state;
    for (int k = 0; k < NAMES; k++) {
        tutti_tensor *values = tutti_tensor_randn(TUTTI_F32, 2, SHAPE(40, 31), NULL);
        tutti_tensor *plain = tutti_tensor_requires_grad_(
            tutti_tensor_clone(tutti_tensor_transpose(values, 0, 1)), true);
        tutti_tensor *turned = tutti_tensor_requires_grad_(
            tutti_tensor_transpose(tutti_tensor_clone(values), 0, 1), true);
        tutti_tensor *p[2] = { plain, turned };
        tutti_optim *o = busy(names[k], p, 2);

        for (int t = 0; t < 3; t++) {
            tutti_tensor *g = tutti_tensor_randn(TUTTI_F32, 2, SHAPE(40, 31), NULL);
            tutti_tensor *across = tutti_tensor_transpose(g, 0, 1);
            tutti_tensor *list[2] = { t == 1 ? across : tutti_tensor_clone(across),
                                      t == 2 ? tutti_tensor_clone(across) : across };

            assert_int_equal(tutti_optim_step_grads(o, list, 2), TUTTI_OK);
        }
        assert_false(tutti_tensor_is_contiguous(turned));
        assert_true(tutti_tensor_equal(plain, turned));
        tutti_optim_free(o);
    }
}

/* A step of 16 bits is one in f32 from the same numbers, with states in f32, rounded; so are norms and clipping. */
static void steps_of_16_bits_are_those_of_f32_rounded(void **state)
{
    const tutti_dtype types[2] = { TUTTI_F16, TUTTI_BF16 };

    (void)state;
    for (int k = 0; k < 2 * NAMES; k++) {
        const tutti_dtype dtype = types[k % 2];
        tutti_tensor *p[2][PARAMS], *g[PARAMS], *wide_g[PARAMS];
        tutti_optim *o[2];
        double norm[2];

        twin(p[0], dtype, 5);
        for (int i = 0; i < PARAMS; i++)
            p[1][i] = tutti_tensor_requires_grad_(
                tutti_tensor_clone(tutti_tensor_to(tutti_tensor_detach(p[0][i]), TUTTI_F32)), true);
        o[0] = busy(names[k / 2], p[0], PARAMS);
        o[1] = busy(names[k / 2], p[1], PARAMS);
        for (int t = 1; t <= 3; t++) {
            gradients(p[0], t, g);
            for (int i = 0; i < PARAMS; i++) {
                wide_g[i] = g[i] != NULL ? tutti_tensor_to(g[i], TUTTI_F32) : NULL;
                assert_int_equal(tutti_tensor_set_grad(p[0][i], g[i]), TUTTI_OK);
                assert_int_equal(tutti_tensor_set_grad(p[1][i], wide_g[i]), TUTTI_OK);
            }
            for (int side = 0; side < 2; side++) {
                assert_int_equal(tutti_clip_grad_norm_(p[side], PARAMS, 1e9, 2.0, false, &norm[side]), TUTTI_OK);
                assert_int_equal(tutti_clip_grad_value_(p[side], PARAMS, 0.5), TUTTI_OK);
                assert_int_equal(tutti_optim_step(o[side]), TUTTI_OK);
            }
            assert_true(norm[0] == norm[1]);
            for (int i = 0; i < PARAMS; i++) {
                tutti_tensor *rounded = tutti_tensor_to(tutti_tensor_detach(p[1][i]), dtype);

                assert_true(tutti_tensor_equal(p[0][i], rounded));
                (void)tutti_set_grad_enabled(false);
                assert_int_equal(tutti_tensor_copy_(p[1][i], rounded), TUTTI_OK);
                (void)tutti_set_grad_enabled(true);
            }
        }
        tutti_optim_free(o[0]);
        tutti_optim_free(o[1]);
    }
}

/* Among very many parameters each is found, also in groups that came later, and strangers are not. */
static void parameters_are_found_among_many(void **state)
{
    enum { MANY = 5000, GROUPS = 3 };
    tutti_tensor **p = calloc(MANY, sizeof *p), *g = tutti_tensor_ones(TUTTI_F32, 0, NULL);
    tutti_sgd_options opts = TUTTI_SGD_OPTIONS;
    tutti_optim *o;

    (void)state;
    opts.lr = 1.0;
    for (int i = 0; i < MANY; i++)
        p[i] = tutti_tensor_requires_grad_(tutti_tensor_full(TUTTI_F32, 0, NULL, i), true);
    o = tutti_sgd(p, MANY / 2, &opts);
    for (int k = 0; k < GROUPS; k++)
        assert_int_equal(tutti_optim_add_param_group(o, p + MANY / 2 + k * 100, k < GROUPS - 1 ? 100 : 2300, NULL),
                         TUTTI_OK);
    for (int i = MANY - 1; i >= 0; i--)
        assert_int_equal(tutti_optim_step_param(o, p[i], g), TUTTI_OK);
    for (int i = 0; i < MANY; i++)
        assert_true(item(p[i]) == i - 1.0);
    assert_int_equal(tutti_optim_step_param(o, leaf(1.0), g), TUTTI_E_ARG);
    assert_int_equal(tutti_optim_add_param_group(o, &p[MANY - 1], 1, NULL), TUTTI_E_ARG);
    tutti_optim_free(o);
    free(p);
}

static void a_steady_step_takes_no_memory(void **state)
{
    (void)state;
    for (int k = 0; k < NAMES; k++) {
        tutti_tensor *p[PARAMS], *g[PARAMS];
        tutti_optim *o;
        int before;

        twin(p, TUTTI_F32, 3);
        gradients(p, 1, g);
        o = busy(names[k], p, PARAMS);
        assert_int_equal(tutti_optim_step_grads(o, g, PARAMS), TUTTI_OK);
        before = allocations;
        assert_true(before > 0);
        assert_int_equal(tutti_optim_step_grads(o, g, PARAMS), TUTTI_OK);
        assert_int_equal(allocations, before);
        tutti_optim_free(o);
    }
}

static void a_step_that_fails_moves_nothing(void **state)
{
    tutti_tensor *p[2] = { leaf(1.0), leaf(2.0) };
    tutti_tensor *one = tutti_tensor_scalar(TUTTI_F64, 1.0);
    tutti_tensor *wide[2] = { one, tutti_tensor_ones(TUTTI_F64, 1, SHAPE(2)) };
    tutti_tensor *other[2] = { one, tutti_tensor_scalar(TUTTI_F32, 1.0) };
    tutti_optim *o = tutti_adam(p, 2, NULL);

    (void)state;
    assert_int_equal(tutti_optim_step_grads(o, wide, 2), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "gradient 1 is f64 of shape [2]"));
    assert_int_equal(tutti_optim_step_grads(o, other, 2), TUTTI_E_ARG);
    assert_int_equal(tutti_optim_step_grads(o, wide, 1), TUTTI_E_ARG);
    assert_int_equal(tutti_optim_step_param(o, p[1], other[1]), TUTTI_E_ARG);
    assert_int_equal(tutti_optim_step_param(o, leaf(1.0), one), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "none of the 2"));
    assert_true(item(p[0]) == 1.0 && item(p[1]) == 2.0);
    assert_true(tutti_optim_state(o, p[0], "step") == NULL ||
                item(tutti_optim_state(o, p[0], "step")) == 0.0);
    assert_int_equal(tutti_tensor_check(), TUTTI_OK); /* calls with a status keep nothing */
    tutti_optim_free(o);
}

typedef struct parabola {
    tutti_tensor *x;
    tutti_optim *optim;
    tutti_status fails;
} parabola;

static tutti_status square(void *ctx, double *loss_out)
{
    parabola *q = ctx;
    tutti_tensor *loss = tutti_tensor_mul(q->x, q->x);

    tutti_optim_zero_grad(q->optim);
    *loss_out = item(loss);
    assert_int_equal(tutti_tensor_backward(loss), TUTTI_OK);
    return q->fails;
}

static void a_closure_computes_the_loss(void **state)
{
    tutti_tensor *x = leaf(3.0);
    parabola q = { .x = x, .optim = tutti_sgd(&x, 1, NULL) };
    double loss = NAN;
    bool recorded;

    (void)state;
    assert_int_equal(tutti_optim_set_lr(q.optim, 0.25), TUTTI_OK);
    recorded = tutti_set_grad_enabled(false); /* the closure records all the same */
    assert_int_equal(tutti_optim_step_closure(q.optim, square, &q, &loss), TUTTI_OK);
    assert_false(tutti_set_grad_enabled(recorded));
    assert_true(loss == 9.0 && item(x) == 1.5);
    q.fails = TUTTI_E_IO;
    loss = -1.0;
    assert_int_equal(tutti_optim_step_closure(q.optim, square, &q, &loss), TUTTI_E_IO);
    assert_true(loss == -1.0 && item(x) == 1.5);
    assert_int_equal(tutti_optim_step_closure(q.optim, NULL, &q, &loss), TUTTI_E_ARG);
    tutti_optim_free(q.optim);
}

static void zeroing_in_place_keeps_the_memory(void **state)
{
    tutti_tensor *p[2] = { leaf(1.0), leaf(2.0) }, *g = tutti_tensor_scalar(TUTTI_F64, 4.0);
    tutti_optim *o = tutti_sgd(p, 2, NULL);

    (void)state;
    assert_int_equal(tutti_tensor_set_grad(p[0], g), TUTTI_OK);
    assert_int_equal(tutti_optim_zero_grad_in_place(o), TUTTI_OK);
    assert_ptr_equal(tutti_tensor_grad(p[0]), g);
    assert_true(item(g) == 0.0);
    assert_null(tutti_tensor_grad(p[1]));
    tutti_optim_zero_grad(o);
    assert_null(tutti_tensor_grad(p[0]));
    assert_int_equal(tutti_optim_zero_grad_in_place(NULL), TUTTI_E_ARG);
    tutti_optim_free(o);
}

/* ---- groups ----------------------------------------------------------------------------------- */

static void groups_have_options_of_their_own(void **state)
{
    tutti_tensor *p[3] = { leaf(1.0), leaf(1.0), leaf(1.0) };
    tutti_tensor *one = tutti_tensor_scalar(TUTTI_F64, 1.0), *g[3] = { one, one, one };
    tutti_adam_options opts = TUTTI_ADAMW_OPTIONS;
    const double half = 0.5, none = 0.0, betas[2] = { 0.5, 0.75 };
    double got = NAN;
    tutti_optim *o;
    int group = -1, n = -1;

    (void)state;
    opts.lr = 0.25;
    o = tutti_adamw(p, 1, &opts);
    assert_int_equal(tutti_optim_add_param_group(o, p + 1, 2, &group), TUTTI_OK);
    assert_int_equal(group, 1);
    assert_int_equal(tutti_optim_n_groups(o), 2);
    assert_ptr_equal(tutti_optim_parameters(o, 1, &n)[0], p[1]);
    assert_int_equal(n, 2);
    assert_ptr_equal(tutti_optim_parameters(o, -1, &n)[2], p[2]);
    assert_int_equal(n, 3);
    assert_null(tutti_optim_parameters(o, 2, &n));
    assert_int_equal(n, 0);
    assert_int_equal(tutti_optim_set_option(o, 0, "lr", &half, 1), TUTTI_OK);
    assert_int_equal(tutti_optim_set_option(o, 1, "weight_decay", &none, 1), TUTTI_OK);
    assert_int_equal(tutti_optim_set_option(o, 1, "betas", betas, 2), TUTTI_OK);
    assert_int_equal(tutti_optim_get_option(o, 1, "betas", 1, &got), TUTTI_OK);
    assert_true(got == 0.75 && tutti_optim_lr(o) == 0.5);
    assert_int_equal(tutti_optim_get_option(o, 1, "lr", 0, &got), TUTTI_OK);
    assert_true(got == 0.25);
    assert_int_equal(tutti_optim_step_grads(o, g, 3), TUTTI_OK);
    assert_true(fabs(item(p[0]) - ((1.0 - 0.5 * 0.01) - 0.5)) < 1e-7);
    assert_true(fabs(item(p[1]) - 0.75) < 1e-7 && item(p[1]) == item(p[2]));
    assert_int_equal(tutti_optim_set_lr(o, 0.125), TUTTI_OK);
    assert_int_equal(tutti_optim_get_option(o, 1, "lr", 0, &got), TUTTI_OK);
    assert_true(got == 0.125);
    tutti_optim_free(o);
}

/* Options may change what is kept: it appears with the next step. */
static void momentum_can_be_switched_on(void **state)
{
    tutti_tensor *x = leaf(1.0), *g = tutti_tensor_scalar(TUTTI_F64, 2.0);
    tutti_optim *o = tutti_sgd(&x, 1, NULL);
    const double half = 0.5;

    (void)state;
    assert_int_equal(tutti_optim_step_param(o, x, g), TUTTI_OK);
    assert_null(tutti_optim_state(o, x, "momentum_buffer"));
    assert_int_equal(tutti_optim_set_option(o, 0, "momentum", &half, 1), TUTTI_OK);
    assert_int_equal(tutti_optim_step_param(o, x, g), TUTTI_OK);
    assert_true(item(tutti_optim_state(o, x, "momentum_buffer")) == 2.0);
    assert_int_equal(tutti_optim_step_param(o, x, g), TUTTI_OK);
    assert_true(item(tutti_optim_state(o, x, "momentum_buffer")) == 3.0);
    tutti_optim_free(o);
}

static void bad_options_of_groups_are_refused(void **state)
{
    tutti_tensor *p[2] = { leaf(1.0), leaf(2.0) };
    tutti_optim *o = tutti_adam(p, 1, NULL);
    const double two[2] = { 0.5, 1.0 }, less = -1.0, no = NAN;
    double got = 7.0;

    (void)state;
    assert_int_equal(tutti_optim_set_option(o, 0, "betas", two, 2), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "adam: betas is 1, and must be at least 0"));
    assert_int_equal(tutti_optim_set_option(o, 0, "betas", two, 1), TUTTI_E_ARG);
    assert_int_equal(tutti_optim_set_option(o, 0, "momentum", two, 1), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "no option 'momentum'"));
    assert_int_equal(tutti_optim_set_option(o, 1, "lr", two, 1), TUTTI_E_ARG);
    assert_int_equal(tutti_optim_set_option(o, 0, "lr", &less, 1), TUTTI_E_ARG);
    assert_int_equal(tutti_optim_set_option(o, 0, "eps", &no, 1), TUTTI_E_ARG);
    assert_int_equal(tutti_optim_set_option(o, 0, "amsgrad", two, 1), TUTTI_E_ARG);
    assert_int_equal(tutti_optim_get_option(o, 0, "lr", 1, &got), TUTTI_E_ARG);
    assert_int_equal(tutti_optim_get_option(o, 0, NULL, 0, &got), TUTTI_E_ARG);
    assert_true(got == 7.0);
    assert_int_equal(tutti_optim_get_option(o, 0, "betas", 1, &got), TUTTI_OK);
    assert_true(got == 0.999);
    assert_int_equal(tutti_optim_add_param_group(o, p, 2, NULL), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "in a group of the optimizer already"));
    assert_int_equal(tutti_optim_add_param_group(o, p, 0, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_optim_n_groups(o), 1);
    assert_int_equal(tutti_tensor_check(), TUTTI_OK);
    tutti_optim_free(o);
}

static void refuse_create(const char *name, tutti_tensor *const *params, int n,
                          const tutti_optim_option *options, const char *words)
{
    assert_null(tutti_optim_create(name, params, n, options, options != NULL));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' does not say '%s'", tutti_last_error(), words);
}

/* A name that there is not comes with those that there are. */
static void mistaken_names_are_answered(void **state)
{
    const tutti_optim_option wrong = { "moment", { 0.9 } }, nameless = { NULL, { 0.9 } };
    tutti_tensor *x = leaf(3.0);
    tutti_optim *o = tutti_optim_create("adam", &x, 1, NULL, 0);
    double value;

    (void)state;
    refuse_create("sgdd", &x, 1, NULL, "there is no optimizer 'sgdd', but sgd, adam, ");
    refuse_create(NULL, &x, 1, NULL, "the name is NULL\n  next: one of sgd, ");
    refuse_create("sgd", &x, -1, NULL, "'sgd' of -1 parameters");
    refuse_create("sgd", NULL, 1, NULL, "'sgd' with a NULL for its list of parameters");
    refuse_create("sgd", &x, 1, &wrong, "sgd: has no option 'moment', but lr, momentum, ");
    refuse_create("sgd", &x, 1, &nameless, "sgd: the name of an option is NULL");
    assert_null(tutti_optim_create("sgd", &x, 1, NULL, 1));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "'sgd' with a NULL for its list of options"));
    assert_int_equal(tutti_optim_get_option(o, 0, "beta", 0, &value), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "adam has no option 'beta', but lr, betas, "));
    assert_int_equal(tutti_optim_get_option(o, 0, "betas", 2, &value), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "option 'betas' of adam has 2 values, and no value 2"));
    assert_int_equal(tutti_optim_get_option(o, 0, NULL, 0, &value), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "the name of an option is NULL"));
    tutti_optim_free(o);
}

static void bad_constructions_are_refused(void **state)
{
    tutti_tensor *x = leaf(3.0);
    const tutti_optim_option slip = { "betas", { 0.9, 1.0 } }, wrong = { "moment", { 0.9 } };
    const tutti_rprop_options backwards = {
        .size = sizeof backwards, .lr = 0.1, .etas = { 1.2, 0.5 }, .step_sizes = { 0, 1 }
    };

    (void)state;
    assert_null(tutti_optim_create("sgdd", &x, 1, NULL, 0));
    assert_null(tutti_optim_create(NULL, &x, 1, NULL, 0));
    assert_null(tutti_optim_create("adam", &x, 1, &slip, 1));
    assert_null(tutti_optim_create("adam", &x, 1, &wrong, 1));
    assert_null(tutti_optim_create("adam", NULL, 1, NULL, 0));
    assert_null(tutti_rprop(&x, 1, &backwards));
    assert_null(tutti_adam(&x, 0, NULL));
    assert_null(tutti_adamw(&x, 1, &(tutti_adam_options){ .lr = 1.0 }));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "there is no optimizer 'sgdd'"));
    assert_null(tutti_optim_name(NULL));
    assert_int_equal(tutti_optim_n_groups(NULL), 0);
    assert_null(tutti_optim_state(NULL, x, "step"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(three_steps_by_hand, begin, end),
        cmocka_unit_test_setup_teardown(all_forms_give_the_same_bits, begin, end),
        cmocka_unit_test_setup_teardown(strides_do_not_matter, begin, end),
        cmocka_unit_test_setup_teardown(steps_of_16_bits_are_those_of_f32_rounded, begin, end),
        cmocka_unit_test_setup_teardown(parameters_are_found_among_many, begin, end),
        cmocka_unit_test_setup_teardown(a_steady_step_takes_no_memory, begin, end),
        cmocka_unit_test_setup_teardown(a_step_that_fails_moves_nothing, begin, end),
        cmocka_unit_test_setup_teardown(a_closure_computes_the_loss, begin, end),
        cmocka_unit_test_setup_teardown(zeroing_in_place_keeps_the_memory, begin, end),
        cmocka_unit_test_setup_teardown(groups_have_options_of_their_own, begin, end),
        cmocka_unit_test_setup_teardown(momentum_can_be_switched_on, begin, end),
        cmocka_unit_test_setup_teardown(bad_options_of_groups_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(mistaken_names_are_answered, begin, end),
        cmocka_unit_test_setup_teardown(bad_constructions_are_refused, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

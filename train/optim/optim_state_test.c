/* SPDX-License-Identifier: BSD-3-Clause
 *
 * optim_state_test.c
 * Goal    a run that is saved and goes on from the file has the bits of one that was never interrupted, for every
 *         optimizer; states are laid out as PyTorch's; what does not fit is an error that changes nothing; by names, the
 *         order of parameters does not matter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/autograd.h>
#include <tutti/optim.h>

#include "harness/scratch.h"

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

enum { PARAMS = 3 };

static const char *const optimizers[] = { "sgd",     "adam",    "adamw",    "adamax",
                                          "adagrad", "rmsprop", "adadelta", "rprop" };

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
    return tutti_tensor_check() == TUTTI_OK ? 0 : -1;
}

static void parameters(tutti_tensor **p)
{
    tutti_manual_seed(11);
    p[0] = tutti_tensor_requires_grad_(tutti_tensor_randn(TUTTI_F32, 2, SHAPE(4, 5), NULL), true);
    p[1] = tutti_tensor_requires_grad_(tutti_tensor_randn(TUTTI_F64, 1, SHAPE(3), NULL), true);
    p[2] = tutti_tensor_requires_grad_(tutti_tensor_randn(TUTTI_F32, 0, NULL, NULL), true);
}

/* Two groups, momentum where there is such a thing; the last parameter gets no gradient before step 4. */
static tutti_optim *optimizer(const char *name, tutti_tensor *const *p)
{
    const tutti_optim_option momentum = { "momentum", { 0.9 } };
    const bool has = strcmp(name, "sgd") == 0 || strcmp(name, "rmsprop") == 0;
    tutti_optim *o = tutti_optim_create(name, p, 2, &momentum, has);
    const double lr = 0.05;

    assert_non_null(o);
    assert_int_equal(tutti_optim_add_param_group(o, p + 2, 1, NULL), TUTTI_OK);
    assert_int_equal(tutti_optim_set_option(o, 1, "lr", &lr, 1), TUTTI_OK);
    return o;
}

static void steps(tutti_optim *o, tutti_tensor *const *p, int from, int to)
{
    for (int t = from; t <= to; t++) {
        tutti_tensor *g[PARAMS];

        tutti_manual_seed(50 + (uint64_t)t);
        g[0] = tutti_tensor_randn(TUTTI_F32, 2, SHAPE(4, 5), NULL);
        g[1] = tutti_tensor_randn(TUTTI_F64, 1, SHAPE(3), NULL);
        g[2] = t >= 4 ? tutti_tensor_randn(TUTTI_F32, 0, NULL, NULL) : NULL;
        assert_int_equal(tutti_optim_step_grads(o, g, PARAMS), TUTTI_OK);
    }
    (void)p;
}

/* Copy values of the parameters, as a model that is loaded does. */
static void take_over(tutti_tensor *const *to, tutti_tensor *const *from)
{
    const bool recorded = tutti_set_grad_enabled(false);

    for (int i = 0; i < PARAMS; i++)
        assert_int_equal(tutti_tensor_copy_(to[i], from[i]), TUTTI_OK);
    (void)tutti_set_grad_enabled(recorded);
}

static double item(const tutti_tensor *t)
{
    double v = -1.0;

    assert_non_null(t);
    assert_int_equal(tutti_tensor_item(t, &v), TUTTI_OK);
    return v;
}

/* ---- by numbers ------------------------------------------------------------------------------- */

static void check_resumed(const char *name, const char *file)
{
    tutti_tensor *p[PARAMS], *q[PARAMS];
    tutti_state_dict *sd = NULL;
    tutti_optim *o, *r;

    parameters(p);
    o = optimizer(name, p);
    steps(o, p, 1, 3);
    assert_int_equal(tutti_optim_state_dict(o, &sd), TUTTI_OK);
    assert_int_equal(tutti_safetensors_save(sd, file), TUTTI_OK);
    tutti_state_dict_free(sd);
    parameters(q);
    take_over(q, p);
    r = tutti_optim_create(name, q, 2, NULL, 0); /* other options */
    assert_int_equal(tutti_optim_add_param_group(r, q + 2, 1, NULL), TUTTI_OK);
    assert_int_equal(tutti_safetensors_load(file, &sd), TUTTI_OK);
    assert_int_equal(tutti_optim_load_state_dict(r, sd), TUTTI_OK);
    tutti_state_dict_free(sd);
    steps(o, p, 4, 6);
    steps(r, q, 4, 6);
    for (int i = 0; i < PARAMS; i++)
        if (!tutti_tensor_equal(p[i], q[i]))
            fail_msg("%s: parameter %d differs", name, i);
    tutti_optim_free(o);
    tutti_optim_free(r);
}

static void resumed_runs_have_the_same_bits(void **state)
{
    char dir[256], file[300];

    (void)state;
    assert_true(tt_dir_make(dir, sizeof dir));
    snprintf(file, sizeof file, "%s/optim.safetensors", dir);
    for (size_t k = 0; k < sizeof optimizers / sizeof optimizers[0]; k++)
        check_resumed(optimizers[k], file);
    tt_dir_remove(dir);
}

static void the_layout_is_pytorchs(void **state)
{
    static const char *const want[] = {
        "state.0.step",           "state.0.exp_avg",
        "state.0.exp_avg_sq",     "state.1.step",
        "state.1.exp_avg",        "state.1.exp_avg_sq",
        "param_groups.0.lr",      "param_groups.0.betas",
        "param_groups.0.eps",     "param_groups.0.weight_decay",
        "param_groups.0.amsgrad", "param_groups.0.maximize",
        "param_groups.0.params",
    };
    enum { WANT = sizeof want / sizeof want[0] };
    tutti_tensor *p[PARAMS], *t;
    tutti_state_dict *sd = NULL;
    tutti_optim *o;

    (void)state;
    parameters(p);
    o = optimizer("adam", p);
    steps(o, p, 1, 2);
    assert_int_equal(tutti_optim_state_dict(o, &sd), TUTTI_OK);
    assert_int_equal(tutti_state_dict_length(sd), WANT + 7);
    for (int i = 0; i < WANT; i++)
        assert_string_equal(tutti_state_dict_name(sd, i), want[i]);
    t = tutti_state_dict_get(sd, "state.0.step");
    assert_true(item(t) == 2.0 && tutti_tensor_dtype(t) == TUTTI_F32);
    t = tutti_state_dict_get(sd, "param_groups.0.betas");
    assert_true(tutti_tensor_numel(t) == 2 && ((double *)tutti_tensor_data(t))[1] == 0.999);
    assert_int_equal(tutti_tensor_dtype(tutti_state_dict_get(sd, "param_groups.1.amsgrad")),
                     TUTTI_BOOL);
    t = tutti_state_dict_get(sd, "param_groups.1.params");
    assert_true(tutti_tensor_numel(t) == 1 && *(int64_t *)tutti_tensor_data(t) == 2);
    /* Kept tensors are the optimizer's own. */
    assert_ptr_equal(tutti_tensor_data(tutti_state_dict_get(sd, "state.0.exp_avg")),
                     tutti_tensor_data(tutti_optim_state(o, p[0], "exp_avg")));
    tutti_state_dict_free(sd);
    tutti_optim_free(o);
}

/* PyTorch counts as it likes, stores more options, and may keep "step" as f64 or a vector of one. */
static void other_numbers_and_types_fit(void **state)
{
    tutti_tensor *x = tutti_tensor_requires_grad_(tutti_tensor_zeros(TUTTI_F32, 1, SHAPE(2)), true);
    tutti_optim *o = tutti_adam(&x, 1, NULL);
    tutti_state_dict *sd = NULL;
    const int64_t seven = 7;

    (void)state;
    assert_int_equal(tutti_state_dict_create(&sd), TUTTI_OK);
    tutti_state_dict_set(sd, "param_groups.0.params",
                         tutti_tensor_from_data(&seven, TUTTI_I64, 1, SHAPE(1)));
    tutti_state_dict_set(sd, "param_groups.0.foreach", tutti_tensor_zeros(TUTTI_BOOL, 0, NULL));
    tutti_state_dict_set(sd, "param_groups.0.lr", tutti_tensor_scalar(TUTTI_F32, 0.5));
    tutti_state_dict_set(sd, "state.7.step", tutti_tensor_full(TUTTI_F64, 1, SHAPE(1), 9));
    tutti_state_dict_set(sd, "state.7.exp_avg", tutti_tensor_full(TUTTI_F64, 1, SHAPE(2), 0.25));
    tutti_state_dict_set(sd, "state.7.exp_avg_sq", tutti_tensor_full(TUTTI_F64, 1, SHAPE(2), 4));
    assert_int_equal(tutti_optim_load_state_dict(o, sd), TUTTI_OK);
    assert_true(tutti_optim_lr(o) == 0.5 && item(tutti_optim_state(o, x, "step")) == 9.0);
    assert_int_equal(tutti_tensor_dtype(tutti_optim_state(o, x, "exp_avg")), TUTTI_F32);
    assert_true(((float *)tutti_tensor_data(tutti_optim_state(o, x, "exp_avg")))[1] == 0.25f);
    /* A state without the parameter: what was kept goes. */
    assert_true(tutti_state_dict_remove(sd, "state.7.step"));
    assert_true(tutti_state_dict_remove(sd, "state.7.exp_avg"));
    assert_true(tutti_state_dict_remove(sd, "state.7.exp_avg_sq"));
    assert_int_equal(tutti_optim_load_state_dict(o, sd), TUTTI_OK);
    assert_null(tutti_optim_state(o, x, "exp_avg"));
    tutti_state_dict_free(sd);
    tutti_optim_free(o);
}

static void refuse_load(tutti_optim *o, tutti_state_dict *sd, tutti_status status,
                        const char *words)
{
    const double step =
        item(tutti_optim_state(o, tutti_optim_parameters(o, 0, &(int){ 0 })[0], "step"));
    const double lr = tutti_optim_lr(o);

    assert_int_equal(tutti_optim_load_state_dict(o, sd), status);
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' does not say '%s'", tutti_last_error(), words);
    assert_true(tutti_optim_lr(o) == lr);
    assert_true(item(tutti_optim_state(o, tutti_optim_parameters(o, 0, &(int){ 0 })[0], "step")) ==
                step);
}

static void what_does_not_fit_changes_nothing(void **state)
{
    tutti_tensor *p[PARAMS], *kept;
    tutti_state_dict *sd = NULL;
    tutti_optim *o, *other;

    (void)state;
    parameters(p);
    o = optimizer("adam", p);
    steps(o, p, 1, 4);
    assert_int_equal(tutti_optim_state_dict(o, &sd), TUTTI_OK);
    assert_int_equal(tutti_optim_set_lr(o, 0.125), TUTTI_OK);
    kept = tutti_tensor_retain(tutti_state_dict_get(sd, "state.1.exp_avg"));
    tutti_state_dict_set(sd, "state.1.exp_avg", tutti_tensor_zeros(TUTTI_F64, 1, SHAPE(4)));
    refuse_load(o, sd, TUTTI_E_MISMATCH,
                "'exp_avg' of parameter 1 has shape [4], the parameter [3]");
    tutti_state_dict_set(sd, "state.1.exp_avg", kept);
    tutti_tensor_release(kept);
    tutti_state_dict_set(sd, "param_groups.1.betas",
                         tutti_tensor_full(TUTTI_F64, 1, SHAPE(2), 1.5));
    refuse_load(o, sd, TUTTI_E_ARG, "adam: betas is 1.5");
    tutti_state_dict_set(sd, "param_groups.1.betas",
                         tutti_tensor_full(TUTTI_F64, 1, SHAPE(3), 0.5));
    refuse_load(o, sd, TUTTI_E_MISMATCH, "has 3 numbers, not 2");
    assert_true(tutti_state_dict_remove(sd, "param_groups.1.betas"));
    tutti_state_dict_set(sd, "state.9.exp_avg", tutti_tensor_zeros(TUTTI_F32, 0, NULL));
    refuse_load(o, sd, TUTTI_E_MISMATCH, "'state.9.exp_avg' is nothing that adam keeps");
    assert_true(tutti_state_dict_remove(sd, "state.9.exp_avg"));
    tutti_state_dict_set(sd, "state.1.sum", tutti_tensor_zeros(TUTTI_F64, 1, SHAPE(3)));
    refuse_load(o, sd, TUTTI_E_MISMATCH, "'state.1.sum' is nothing");
    assert_true(tutti_state_dict_remove(sd, "state.1.sum"));
    other = tutti_adam(p, 3, NULL); /* one group of three */
    assert_int_equal(tutti_optim_load_state_dict(other, sd), TUTTI_E_MISMATCH);
    assert_non_null(strstr(tutti_last_error(), "more than 1 groups"));
    tutti_optim_free(other);
    assert_true(tutti_state_dict_remove(sd, "param_groups.1.params"));
    refuse_load(o, sd, TUTTI_E_MISMATCH, "group 1 of adam has 1 parameters, in the state 0");
    assert_int_equal(tutti_optim_load_state_dict(o, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_optim_load_state_dict(NULL, sd), TUTTI_E_ARG);
    assert_int_equal(tutti_optim_state_dict(NULL, &sd), TUTTI_E_ARG);
    tutti_state_dict_free(sd);
    tutti_optim_free(o);
}

/* State that was made without a step is no history: the first step is a first step still. */
static void making_state_is_no_step(void **state)
{
    tutti_tensor *x = tutti_tensor_requires_grad_(tutti_tensor_scalar(TUTTI_F64, 1.0), true);
    tutti_tensor *g = tutti_tensor_scalar(TUTTI_F64, 2.0);
    const tutti_optim_option options[] = { { "momentum", { 0.5 } }, { "dampening", { 0.5 } } };
    tutti_optim *o = tutti_optim_create("sgd", &x, 1, options, 2);
    tutti_state_dict *sd = NULL;

    (void)state;
    assert_int_equal(tutti_optim_init_state(o), TUTTI_OK);
    assert_true(item(tutti_optim_state(o, x, "momentum_buffer")) == 0.0 && item(x) == 1.0);
    assert_int_equal(tutti_optim_state_dict(o, &sd), TUTTI_OK);
    assert_null(tutti_state_dict_get(sd, "state.0.momentum_buffer"));
    assert_int_equal(tutti_optim_step_param(o, x, g), TUTTI_OK);
    assert_true(item(tutti_optim_state(o, x, "momentum_buffer")) == 2.0); /* not dampened */
    assert_int_equal(tutti_optim_init_state(NULL), TUTTI_E_ARG);
    tutti_state_dict_free(sd);
    tutti_optim_free(o);
}

/* What counts its steps is saved with a count of 0, and whoever loads that begins like everybody. */
static void made_state_is_saved(void **state)
{
    static const char *const kinds[] = { "adamw", "adam", "adamax", "adagrad", "rmsprop", "adadelta", "rprop" };

    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        tutti_tensor *p[PARAMS], *q[PARAMS];
        tutti_state_dict *made = NULL, *stepped = NULL;
        tutti_optim *o, *r;

        parameters(p);
        parameters(q);
        take_over(q, p);
        o = optimizer(kinds[k], p);
        r = optimizer(kinds[k], q);
        assert_int_equal(tutti_optim_init_state(o), TUTTI_OK);
        assert_int_equal(tutti_optim_state_dict(o, &made), TUTTI_OK);
        assert_true(item(tutti_state_dict_get(made, "state.0.step")) == 0.0);
        assert_int_equal(tutti_optim_load_state_dict(r, made), TUTTI_OK);
        steps(r, q, 1, 4);
        steps(o, p, 1, 4);
        for (int i = 0; i < PARAMS; i++)
            assert_true(tutti_tensor_equal(p[i], q[i]));
        assert_int_equal(tutti_optim_state_dict(o, &stepped), TUTTI_OK);
        assert_int_equal(tutti_state_dict_length(made), tutti_state_dict_length(stepped));
        tutti_state_dict_free(made);
        tutti_state_dict_free(stepped);
        tutti_optim_free(o);
        tutti_optim_free(r);
    }
}

static void schedules_go_on(void **state)
{
    tutti_tensor *p[PARAMS];
    tutti_optim *o, *r;
    tutti_lr_scheduler *s, *t;
    tutti_state_dict *sd = NULL;

    (void)state;
    parameters(p);
    o = optimizer("adam", p);
    r = optimizer("adam", p);
    s = tutti_cosine_annealing_lr(o, 10, 0.0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(tutti_lr_scheduler_step(s), TUTTI_OK);
    assert_int_equal(tutti_lr_scheduler_state_dict(s, &sd), TUTTI_OK);
    assert_int_equal(tutti_optim_set_lr(r, 7.0), TUTTI_OK);
    t = tutti_cosine_annealing_lr(r, 10, 0.0);
    assert_int_equal(tutti_lr_scheduler_load_state_dict(t, sd), TUTTI_OK);
    assert_int_equal(tutti_lr_scheduler_epoch(t), 4);
    assert_int_equal(tutti_lr_scheduler_step(s), TUTTI_OK);
    assert_int_equal(tutti_lr_scheduler_step(t), TUTTI_OK);
    for (int g = 0; g < 2; g++) {
        double a = 0, b = 1;

        assert_int_equal(tutti_optim_get_option(o, g, "lr", 0, &a), TUTTI_OK);
        assert_int_equal(tutti_optim_get_option(r, g, "lr", 0, &b), TUTTI_OK);
        assert_true(a == b);
    }
    assert_true(tutti_state_dict_remove(sd, "base_lrs"));
    assert_int_equal(tutti_lr_scheduler_load_state_dict(t, sd), TUTTI_E_MISMATCH);
    assert_int_equal(tutti_lr_scheduler_load_state_dict(NULL, sd), TUTTI_E_ARG);
    assert_int_equal(tutti_lr_scheduler_state_dict(NULL, &sd), TUTTI_E_ARG);
    tutti_lr_scheduler_free(s);
    tutti_lr_scheduler_free(t);
    tutti_state_dict_free(sd);
    tutti_optim_free(o);
    tutti_optim_free(r);
}

/* ---- by names --------------------------------------------------------------------------------- */

static const char *const names[PARAMS] = { "net.weight", "net.bias", "scale" };

static tutti_named_optim *name_them(tutti_optim *o, tutti_tensor *const *p)
{
    tutti_named_optim *named = NULL;

    assert_int_equal(tutti_named_optim_create(o, names, p, PARAMS, &named), TUTTI_OK);
    return named;
}

/* The other one has its parameters in another order, in other groups. */
static void by_names_the_order_does_not_matter(void **state)
{
    tutti_tensor *p[PARAMS], *q[PARAMS], *g[PARAMS], *turned[PARAMS];
    tutti_named_optim *a, *b;
    tutti_state_dict *sd = NULL;
    tutti_optim *o, *r;

    (void)state;
    parameters(p);
    parameters(q);
    o = tutti_adamw(p, 3, NULL);
    steps(o, p, 1, 5);
    take_over(q, p);
    r = tutti_adamw((tutti_tensor *[]){ q[2], q[0] }, 2, NULL);
    a = name_them(o, p);
    b = name_them(r, q);
    assert_int_equal(tutti_named_optim_add_param_group(b, q + 1, 1, NULL), TUTTI_OK);
    assert_int_equal(tutti_optim_set_lr(o, 0.01), TUTTI_OK);
    assert_int_equal(tutti_named_optim_state_dict(a, &sd), TUTTI_OK);
    assert_true(item(tutti_state_dict_get(sd, "param_groups.net.bias.lr")) == 0.01);
    assert_int_equal(tutti_named_optim_load_state_dict(b, sd), TUTTI_E_STATE);
    assert_non_null(strstr(tutti_last_error(), "tutti_optim_init_state()"));
    assert_int_equal(tutti_optim_init_state(r), TUTTI_OK);
    assert_int_equal(tutti_named_optim_load_state_dict(b, sd), TUTTI_OK);
    for (int i = 0; i < PARAMS; i++)
        g[i] = tutti_tensor_detach(tutti_tensor_clone(p[i]));
    turned[0] = g[2], turned[1] = g[0], turned[2] = g[1];
    assert_int_equal(tutti_optim_step_grads(o, g, PARAMS), TUTTI_OK);
    assert_int_equal(tutti_optim_step_grads(r, turned, PARAMS), TUTTI_OK);
    for (int i = 0; i < PARAMS; i++)
        assert_true(tutti_tensor_equal(p[i], q[i]));
    tutti_state_dict_free(sd);
    tutti_named_optim_free(a);
    tutti_named_optim_free(b);
    tutti_optim_free(o);
    tutti_optim_free(r);
}

static void by_names_what_is_absent_stays(void **state)
{
    tutti_tensor *p[PARAMS], *m;
    tutti_state_dict *sd = NULL;
    tutti_named_optim *named;
    tutti_optim *o;

    (void)state;
    parameters(p);
    o = optimizer("adam", p);
    named = name_them(o, p);
    steps(o, p, 1, 5);
    assert_int_equal(tutti_named_optim_state_dict(named, &sd), TUTTI_OK);
    /* Without "scale", the only one of its group. */
    for (int64_t i = tutti_state_dict_length(sd) - 1; i >= 0; i--) {
        char *name = strdup(tutti_state_dict_name(sd, i));

        if (strstr(name, ".scale.") != NULL)
            assert_true(tutti_state_dict_remove(sd, name));
        free(name);
    }
    m = tutti_tensor_full(TUTTI_F64, 1, SHAPE(3), 5.0);
    tutti_state_dict_set(sd, "state.net.bias.exp_avg", m);
    tutti_state_dict_set(sd, "state.elsewhere.exp_avg", m);
    assert_int_equal(tutti_named_optim_load_state_dict(named, sd), TUTTI_OK);
    assert_true(tutti_tensor_equal(tutti_optim_state(o, p[1], "exp_avg"), m));
    assert_true(item(tutti_optim_state(o, p[2], "step")) == 2.0);
    /* One tensor of three; one parameter of two; options that differ; a shape. */
    assert_true(tutti_state_dict_remove(sd, "state.net.bias.exp_avg"));
    assert_int_equal(tutti_named_optim_load_state_dict(named, sd), TUTTI_E_MISMATCH);
    assert_non_null(strstr(tutti_last_error(), "'net.bias' keeps 3 tensors, in the state 2"));
    tutti_state_dict_set(sd, "state.net.bias.exp_avg", tutti_tensor_zeros(TUTTI_F64, 1, SHAPE(2)));
    assert_int_equal(tutti_named_optim_load_state_dict(named, sd), TUTTI_E_MISMATCH);
    assert_non_null(
        strstr(tutti_last_error(), "'exp_avg' of 'net.bias' has shape [2], and here [3]"));
    tutti_state_dict_set(sd, "state.net.bias.exp_avg", m);
    tutti_state_dict_set(sd, "param_groups.net.bias.lr", tutti_tensor_scalar(TUTTI_F64, 3.0));
    assert_int_equal(tutti_named_optim_load_state_dict(named, sd), TUTTI_E_MISMATCH);
    assert_non_null(strstr(tutti_last_error(), "'net.bias' has other options"));
    assert_true(tutti_state_dict_remove(sd, "param_groups.net.bias.lr"));
    assert_int_equal(tutti_named_optim_load_state_dict(named, sd), TUTTI_E_MISMATCH);
    assert_non_null(strstr(tutti_last_error(), "5 of the 6 options of 'net.bias'"));
    assert_true(tutti_optim_lr(o) == 1e-3);
    tutti_state_dict_free(sd);
    tutti_named_optim_free(named);
    tutti_optim_free(o);
}

static void names_are_checked(void **state)
{
    static const char *const twice[PARAMS] = { "a", "b", "a" }, *const empty[PARAMS] = { "a", "",
                                                                                         "c" };
    tutti_tensor *p[PARAMS],
        *stranger = tutti_tensor_requires_grad_(tutti_tensor_scalar(TUTTI_F32, 1.0), true);
    tutti_named_optim *named = NULL;
    tutti_optim *o;

    (void)state;
    parameters(p);
    o = optimizer("sgd", p);
    assert_int_equal(tutti_named_optim_create(o, twice, p, PARAMS, &named), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "'a' comes twice"));
    assert_int_equal(tutti_named_optim_create(o, empty, p, PARAMS, &named), TUTTI_E_ARG);
    assert_int_equal(tutti_named_optim_create(o, names, p, 2, &named), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "parameter 2 of the optimizer has no name"));
    assert_int_equal(tutti_named_optim_create(NULL, names, p, 2, &named), TUTTI_E_ARG);
    assert_null(named);
    named = name_them(o, p);
    assert_int_equal(tutti_named_optim_add_param_group(named, &stranger, 1, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_optim_n_groups(o), 2);
    tutti_named_optim_free(named);
    tutti_named_optim_free(NULL);
    tutti_optim_free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(resumed_runs_have_the_same_bits, begin, end),
        cmocka_unit_test_setup_teardown(the_layout_is_pytorchs, begin, end),
        cmocka_unit_test_setup_teardown(other_numbers_and_types_fit, begin, end),
        cmocka_unit_test_setup_teardown(what_does_not_fit_changes_nothing, begin, end),
        cmocka_unit_test_setup_teardown(making_state_is_no_step, begin, end),
        cmocka_unit_test_setup_teardown(made_state_is_saved, begin, end),
        cmocka_unit_test_setup_teardown(schedules_go_on, begin, end),
        cmocka_unit_test_setup_teardown(by_names_the_order_does_not_matter, begin, end),
        cmocka_unit_test_setup_teardown(by_names_what_is_absent_stays, begin, end),
        cmocka_unit_test_setup_teardown(names_are_checked, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

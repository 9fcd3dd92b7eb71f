/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calls_train.c - training over ranks: averages of parameters, modules in a ddp, optimizers that are divided. */
#include "scenarios.h"

#include <tutti/train.h>

enum { SET = 3 };

/* Parameters of this body's: the elements of rank r are r + 1, the gradients zeros. */
typedef struct set {
    tutti_tensor *at[SET];
} set;

static tutti_tensor *row(double value)
{
    return tutti_tensor_full(TUTTI_F32, 1, (int64_t[]){ 4 }, value);
}

static bool make_set(tt_actor *a, set *s)
{
    int i;

    tutti_scope_begin();
    for (i = 0; i < SET; i++)
        s->at[i] = tutti_tensor_retain(tutti_tensor_requires_grad_(row(a->rank + 1), true));
    (void)THEN(tutti_tensor_check());
    for (i = 0; i < SET; i++)
        (void)THEN(tutti_tensor_set_grad(s->at[i], row(0.0)));
    tutti_scope_end();
    return !a->failed;
}

static void free_set(set *s)
{
    int i;

    for (i = 0; i < SET; i++)
        tutti_tensor_release(s->at[i]);
    (void)tutti_tensor_check();
}

static void must_be_all(tt_actor *a, const tutti_tensor *t, float want, const char *wrong)
{
    const float *data = a->failed ? NULL : tutti_tensor_data(t);

    if (data != NULL)
        tt_must_be(a, tt_all_are(data, 4, want), wrong);
}

/* ---- averages ---- */

static void averages(tt_actor *a)
{
    const tutti_averaging_level levels[] = { { 1, 1 }, { 2, a->size } };
    const float                 average = tt_sum_of(a) / (float)a->size;
    tutti_model_averager       *periodic = NULL, *hierarchical = NULL;
    set                         one = { { NULL } }, two = { { NULL } }, three = { { NULL } };

    if (make_set(a, &one) && TRY(tutti_average_parameters(one.at, SET, a->group)))
        must_be_all(a, one.at[0], average, "a wrong average of parameters");
    (void)THEN(tutti_periodic_model_averager(2, 0, a->group, &periodic));
    if (!a->failed && make_set(a, &two) && TRY(tutti_model_averager_average_parameters(periodic, two.at, SET)))
        must_be_all(a, two.at[1], average, "a wrong average of a period");
    (void)THEN(tutti_hierarchical_model_averager(levels, 2, 0, a->group, &hierarchical));
    if (!a->failed && make_set(a, &three) && TRY(tutti_model_averager_average_parameters(hierarchical, three.at, SET)))
        must_be_all(a, three.at[2], average, "a wrong average of a level");
    tutti_model_averager_free(hierarchical);
    tutti_model_averager_free(periodic);
    free_set(&one);
    free_set(&two);
    free_set(&three);
}

static void local_sgd(tt_actor *a)
{
    tutti_model_averager *averager = NULL;
    tutti_post_local_sgd *local = NULL;
    tutti_optim          *optim = NULL;
    set                   params = { { NULL } };

    if (make_set(a, &params)) {
        optim = tutti_sgd(params.at, SET, NULL);
        TRY(tutti_tensor_check());
    }
    (void)THEN(tutti_periodic_model_averager(2, 0, a->group, &averager));
    (void)THEN(tutti_post_local_sgd_create(optim, averager, &local));
    if (THEN(tutti_post_local_sgd_step(local)))
        must_be_all(a, params.at[0], tt_sum_of(a) / (float)a->size, "a wrong average after a step");
    (void)THEN(tutti_post_local_sgd_step(local));
    tutti_post_local_sgd_free(local);
    tutti_model_averager_free(averager);
    tutti_optim_free(optim);
    free_set(&params);
}

/* ---- ddp ---- */

static tutti_tensor *inputs(const tt_actor *a)
{
    return tutti_tensor_full(TUTTI_F32, 2, (int64_t[]){ 3, 2 }, a->rank + 1);
}

static tutti_tensor *loss_of(tutti_tensor *y)
{
    return tutti_tensor_sum(y, NULL, 0, false);
}

/* The gradient of a weight is the sum of 3 inputs, averaged over the ranks. */
static void check_gradient(tt_actor *a, tutti_module *module, int steps)
{
    const float   want = 3.0f * tt_sum_of(a) / (float)a->size * (float)steps;
    tutti_tensor *weight = a->failed ? NULL : tutti_module_parameter(module, "weight");

    if (!a->failed)
        must_be_all(a, tutti_tensor_grad(weight), want, "a wrong average of gradients in a module");
}

static void step(tt_actor *a, tutti_ddp *ddp)
{
    tutti_scope_begin();
    if (!a->failed)
        TRY(tutti_tensor_backward(loss_of(tutti_ddp_forward(ddp, inputs(a)))));
    tutti_scope_end();
}

/* The same with the parts of a forward, for modules of more than one input. */
static void step_in_parts(tt_actor *a, tutti_ddp *ddp)
{
    tutti_tensor *y;

    tutti_scope_begin();
    if (THEN(tutti_ddp_before_forward(ddp))) {
        y = tutti_forward(tutti_ddp_module(ddp), inputs(a));
        (void)TRY(tutti_ddp_after_forward(ddp, &y, 1));
        (void)THEN(tutti_tensor_backward(loss_of(y)));
    }
    tutti_scope_end();
}

static tutti_module *wrap(tt_actor *a, tutti_ddp **ddp_out)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_module     *module = tutti_linear(2, 2, true);

    opts.group = a->group;
    if (THEN(tutti_tensor_check()))
        TRY(tutti_ddp_create(module, &opts, ddp_out));
    return module;
}

static void unwrap(tutti_ddp *ddp, tutti_module *module)
{
    tutti_ddp_free(ddp);
    tutti_module_free(module);
    (void)tutti_tensor_check();
}

static void modules(tt_actor *a)
{
    tutti_ddp    *ddp = NULL;
    tutti_module *module = wrap(a, &ddp);

    step(a, ddp);
    check_gradient(a, module, 1);
    step_in_parts(a, ddp);
    check_gradient(a, module, 2);
    unwrap(ddp, module);
}

/* Rank 1 cannot make a step; then another group takes over. */
static void modules_again(tt_actor *a)
{
    tutti_ddp    *ddp = NULL;
    tutti_group  *group = NULL;
    tutti_module *module = wrap(a, &ddp);

    step(a, ddp);
    if (a->rank == 1 && !a->failed)
        tt_must_be(a, tutti_ddp_fail(ddp, TUTTI_E_IO, "no input") != TUTTI_OK, "a step that has failed has ended well");
    if (a->rank != 1 && !a->failed) {
        tutti_scope_begin();
        tt_must_be(a, tutti_tensor_backward(loss_of(tutti_ddp_forward(ddp, inputs(a)))) != TUTTI_OK,
                   "a step that another rank has failed in has ended well");
        tutti_scope_end();
    }
    (void)THEN(tutti_ddp_reset(ddp));
    (void)THEN(tutti_split_group_by_color(a->group, 0, NULL, &group));
    (void)THEN(tutti_ddp_update_process_group(ddp, group));
    step(a, ddp);
    unwrap(ddp, module);
}

/* ---- divided optimizers ---- */

static tutti_status closure(void *ctx, double *loss_out)
{
    (void)ctx;
    *loss_out = 0.0;
    return TUTTI_OK;
}

static tutti_optim *make_zero(tt_actor *a, set *params)
{
    tutti_zero_options opts = TUTTI_ZERO_OPTIONS;
    tutti_optim       *optim = NULL;

    opts.group = a->group;
    if (make_set(a, params))
        TRY(tutti_zero_create("adam", params->at, SET, NULL, 0, &opts, &optim));
    return optim;
}

static void divided(tt_actor *a)
{
    double       loss = 1.0;
    set          params = { { NULL } }, more = { { NULL } };
    tutti_optim *optim = make_zero(a, &params);

    (void)THEN(tutti_optim_step(optim));
    (void)THEN(tutti_optim_step_closure(optim, closure, NULL, &loss));
    if (!a->failed && make_set(a, &more) && TRY(tutti_optim_step_grads(optim, more.at, SET)))
        tt_must_be(a, loss == 0.0, "a wrong loss");
    (void)THEN(tutti_optim_add_param_group(optim, more.at, SET, NULL));
    (void)THEN(tutti_optim_step(optim));
    tutti_optim_free(optim);
    free_set(&params);
    free_set(&more);
}

static void divided_states(tt_actor *a)
{
    set               params = { { NULL } };
    tutti_state_dict *state = NULL;
    tutti_optim      *optim = make_zero(a, &params);

    (void)THEN(tutti_optim_step(optim));
    (void)THEN(tutti_zero_consolidate_state_dict(optim, 0));
    if (a->rank == 0)
        (void)THEN(tutti_zero_state_dict(optim, &state));
    else
        (void)THEN(tutti_optim_state_dict(optim, &state));
    if (a->rank == 0)
        (void)THEN(tutti_optim_load_state_dict(optim, state));
    tutti_state_dict_free(state);
    tutti_optim_free(optim);
    free_set(&params);
}

static const tt_scenario scenarios[] = {
    TT_PLAY("averages", 2, averages),
    TT_PLAY("local SGD", 2, local_sgd),
    TT_PLAY("modules", 2, modules),
    TT_PLAY("modules again", 2, modules_again),
    TT_PLAY("divided", 2, divided),
    TT_PLAY("divided states", 2, divided_states),
};

TT_FAMILY(tt_train_calls, "train", scenarios);

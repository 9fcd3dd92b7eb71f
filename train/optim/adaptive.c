/* SPDX-License-Identifier: BSD-3-Clause
 *
 * adaptive.c - Adagrad, RMSprop, Adadelta: each element has a rate of its own, from the squares of its
 * gradients.
 *
 * Source  Duchi, Hazan & Singer 2011; Hinton's lecture 6e, 2012, and Graves 2013 for centered; Zeiler
 *         2012. */
#include "optim/optim.h"

/* ---- Adagrad ---------------------------------------------------------------------------------- */

enum { G_LR, G_LR_DECAY, G_DECAY, G_INITIAL, G_EPS, G_MAXIMIZE };

static const tti_option adagrad_options[] = {
    { "lr", 1, TTI_NOT_NEGATIVE },           { "lr_decay", 1, TTI_NOT_NEGATIVE },
    { "weight_decay", 1, TTI_NOT_NEGATIVE }, { "initial_accumulator_value", 1, TTI_NOT_NEGATIVE },
    { "eps", 1, TTI_NOT_NEGATIVE },          { "maximize", 1, TTI_FLAG },
};

static double adagrad_initial(int state, const double *v)
{
    (void)state;
    return v[G_INITIAL];
}

static void adagrad_prepare(const double *v, double t, unsigned fresh, tti_step *step_out)
{
    (void)fresh;
    *step_out = (tti_step){ .loop = TTI_LOOP_ADAGRAD,
                            .sign = v[G_MAXIMIZE] != 0.0 ? -1.0 : 1.0,
                            .decay = v[G_DECAY],
                            .c = { v[G_LR] / (1.0 + (t - 1.0) * v[G_LR_DECAY]), v[G_EPS] } };
}

const tti_optim_class tti_adagrad_class = {
    .name = "adagrad",
    .options = adagrad_options,
    .n_options = sizeof adagrad_options / sizeof adagrad_options[0],
    .defaults = { [G_LR] = 1e-2, [G_EPS] = 1e-10 },
    .state = { "sum" },
    .n_states = 1,
    .counts = true,
    .initial = adagrad_initial,
    .prepare = adagrad_prepare,
};

tutti_optim *tutti_adagrad(tutti_tensor *const *params, int n, const tutti_adagrad_options *opts)
{
    tutti_adagrad_options o = TUTTI_ADAGRAD_OPTIONS;

    if (opts != NULL)
        o = *opts;
    if (o.size != sizeof o) {
        (void)tti_optim_size_refused("adagrad", o.size, "TUTTI_ADAGRAD_OPTIONS");
        return NULL;
    }
    return tti_optim_new(&tti_adagrad_class, params, n,
                         (const double[TTI_OPTIM_VALUES]){ o.lr, o.lr_decay, o.weight_decay,
                                                           o.initial_accumulator_value, o.eps,
                                                           o.maximize });
}

/* ---- RMSprop ---------------------------------------------------------------------------------- */

enum { R_LR, R_ALPHA, R_EPS, R_DECAY, R_MOMENTUM, R_CENTERED, R_MAXIMIZE };

static const tti_option rmsprop_options[] = {
    { "lr", 1, TTI_NOT_NEGATIVE },       { "alpha", 1, TTI_NOT_NEGATIVE },
    { "eps", 1, TTI_NOT_NEGATIVE },      { "weight_decay", 1, TTI_NOT_NEGATIVE },
    { "momentum", 1, TTI_NOT_NEGATIVE }, { "centered", 1, TTI_FLAG },
    { "maximize", 1, TTI_FLAG },
};

static unsigned rmsprop_wants(const double *v)
{
    return 1u | (v[R_MOMENTUM] > 0.0 ? 2u : 0u) | (v[R_CENTERED] != 0.0 ? 4u : 0u);
}

static tti_loop_kind rmsprop_loop(const double *v)
{
    if (v[R_CENTERED] != 0.0)
        return v[R_MOMENTUM] > 0.0 ? TTI_LOOP_RMSPROP_CENTERED_MOMENTUM : TTI_LOOP_RMSPROP_CENTERED;
    return v[R_MOMENTUM] > 0.0 ? TTI_LOOP_RMSPROP_MOMENTUM : TTI_LOOP_RMSPROP;
}

static void rmsprop_prepare(const double *v, double t, unsigned fresh, tti_step *step_out)
{
    (void)t, (void)fresh;
    *step_out =
        (tti_step){ .loop = rmsprop_loop(v),
                    .sign = v[R_MAXIMIZE] != 0.0 ? -1.0 : 1.0,
                    .decay = v[R_DECAY],
                    .c = { v[R_LR], v[R_ALPHA], 1.0 - v[R_ALPHA], v[R_EPS], v[R_MOMENTUM] } };
}

const tti_optim_class tti_rmsprop_class = {
    .name = "rmsprop",
    .options = rmsprop_options,
    .n_options = sizeof rmsprop_options / sizeof rmsprop_options[0],
    .defaults = { [R_LR] = 1e-2, [R_ALPHA] = 0.99, [R_EPS] = 1e-8 },
    .state = { "square_avg", "momentum_buffer", "grad_avg" },
    .n_states = 3,
    .counts = true,
    .wants = rmsprop_wants,
    .prepare = rmsprop_prepare,
};

tutti_optim *tutti_rmsprop(tutti_tensor *const *params, int n, const tutti_rmsprop_options *opts)
{
    tutti_rmsprop_options o = TUTTI_RMSPROP_OPTIONS;

    if (opts != NULL)
        o = *opts;
    if (o.size != sizeof o) {
        (void)tti_optim_size_refused("rmsprop", o.size, "TUTTI_RMSPROP_OPTIONS");
        return NULL;
    }
    return tti_optim_new(&tti_rmsprop_class, params, n,
                         (const double[TTI_OPTIM_VALUES]){ o.lr, o.alpha, o.eps, o.weight_decay,
                                                           o.momentum, o.centered, o.maximize });
}

/* ---- Adadelta --------------------------------------------------------------------------------- */

enum { D_LR, D_RHO, D_EPS, D_DECAY, D_MAXIMIZE };

static const tti_option adadelta_options[] = {
    { "lr", 1, TTI_NOT_NEGATIVE },  { "rho", 1, TTI_UNIT },
    { "eps", 1, TTI_NOT_NEGATIVE }, { "weight_decay", 1, TTI_NOT_NEGATIVE },
    { "maximize", 1, TTI_FLAG },
};

static void adadelta_prepare(const double *v, double t, unsigned fresh, tti_step *step_out)
{
    (void)t, (void)fresh;
    *step_out = (tti_step){ .loop = TTI_LOOP_ADADELTA,
                            .sign = v[D_MAXIMIZE] != 0.0 ? -1.0 : 1.0,
                            .decay = v[D_DECAY],
                            .c = { v[D_LR], v[D_RHO], 1.0 - v[D_RHO], v[D_EPS] } };
}

const tti_optim_class tti_adadelta_class = {
    .name = "adadelta",
    .options = adadelta_options,
    .n_options = sizeof adadelta_options / sizeof adadelta_options[0],
    .defaults = { [D_LR] = 1.0, [D_RHO] = 0.9, [D_EPS] = 1e-6 },
    .state = { "square_avg", "acc_delta" },
    .n_states = 2,
    .counts = true,
    .prepare = adadelta_prepare,
};

tutti_optim *tutti_adadelta(tutti_tensor *const *params, int n, const tutti_adadelta_options *opts)
{
    tutti_adadelta_options o = TUTTI_ADADELTA_OPTIONS;

    if (opts != NULL)
        o = *opts;
    if (o.size != sizeof o) {
        (void)tti_optim_size_refused("adadelta", o.size, "TUTTI_ADADELTA_OPTIONS");
        return NULL;
    }
    return tti_optim_new(
        &tti_adadelta_class, params, n,
        (const double[TTI_OPTIM_VALUES]){ o.lr, o.rho, o.eps, o.weight_decay, o.maximize });
}

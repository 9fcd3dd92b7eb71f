/* SPDX-License-Identifier: BSD-3-Clause
 *
 * adam.c - Adam, AdamW, Adamax: averages of gradients over averages of their sizes.
 *
 * How     Adam adds the decay to the gradient; AdamW takes it off the parameter, before the step. Both run
 *         the same loop. Corrections for averages that began at 0 come from "step", in f64.
 * Source  Kingma & Ba 2015; Loshchilov & Hutter 2019; Reddi, Kale & Kumar 2018 for amsgrad. */
#include "optim/optim.h"

#include <math.h>

enum { LR, BETA1, BETA2, EPS, DECAY, AMSGRAD, MAXIMIZE };

static const tti_option adam_options[] = {
    { "lr", 1, TTI_NOT_NEGATIVE },  { "betas", 2, TTI_BELOW_ONE },
    { "eps", 1, TTI_NOT_NEGATIVE }, { "weight_decay", 1, TTI_NOT_NEGATIVE },
    { "amsgrad", 1, TTI_FLAG },     { "maximize", 1, TTI_FLAG },
};

static unsigned adam_wants(const double *v)
{
    return v[AMSGRAD] != 0.0 ? 7u : 3u;
}

static void adam_numbers(const double *v, double t, double kept, double decay, tti_step *step_out)
{
    const double b1 = v[BETA1], b2 = v[BETA2];

    *step_out = (tti_step){ .loop = v[AMSGRAD] != 0.0 ? TTI_LOOP_AMSGRAD : TTI_LOOP_ADAM,
                            .sign = v[MAXIMIZE] != 0.0 ? -1.0 : 1.0,
                            .decay = decay,
                            .c = { kept, 1.0 - b1, b1, b2, 1.0 - b2, sqrt(1.0 - pow(b2, t)), v[EPS],
                                   v[LR] / (1.0 - pow(b1, t)) } };
}

static void adam_prepare(const double *v, double t, unsigned fresh, tti_step *step_out)
{
    (void)fresh;
    adam_numbers(v, t, 1.0, v[DECAY], step_out);
}

static void adamw_prepare(const double *v, double t, unsigned fresh, tti_step *step_out)
{
    (void)fresh;
    adam_numbers(v, t, 1.0 - v[LR] * v[DECAY], 0.0, step_out);
}

#define ADAM_CLASS(word, step, decay)                                                          \
    {                                                                                          \
        .name = word, .options = adam_options,                                                 \
        .n_options = sizeof adam_options / sizeof adam_options[0],                             \
        .defaults = { [LR] = 1e-3,                                                             \
                      [BETA1] = 0.9,                                                           \
                      [BETA2] = 0.999,                                                         \
                      [EPS] = 1e-8,                                                            \
                      [DECAY] = decay },                                                       \
        .state = { "exp_avg", "exp_avg_sq", "max_exp_avg_sq" }, .n_states = 3, .counts = true, \
        .wants = adam_wants, .prepare = step                                                   \
    }

const tti_optim_class tti_adam_class = ADAM_CLASS("adam", adam_prepare, 0.0);
const tti_optim_class tti_adamw_class = ADAM_CLASS("adamw", adamw_prepare, 1e-2);

static tutti_optim *make(const tti_optim_class *cls, tutti_tensor *const *params, int n,
                         const tutti_adam_options *o, const char *initialiser)
{
    if (o->size != sizeof *o) {
        (void)tti_optim_size_refused(cls->name, o->size, initialiser);
        return NULL;
    }
    return tti_optim_new(cls, params, n,
                         (const double[TTI_OPTIM_VALUES]){ o->lr, o->betas[0], o->betas[1], o->eps,
                                                           o->weight_decay, o->amsgrad,
                                                           o->maximize });
}

tutti_optim *tutti_adam(tutti_tensor *const *params, int n, const tutti_adam_options *opts)
{
    const tutti_adam_options defaults = TUTTI_ADAM_OPTIONS;

    return make(&tti_adam_class, params, n, opts != NULL ? opts : &defaults, "TUTTI_ADAM_OPTIONS");
}

tutti_optim *tutti_adamw(tutti_tensor *const *params, int n, const tutti_adam_options *opts)
{
    const tutti_adam_options defaults = TUTTI_ADAMW_OPTIONS;

    return make(&tti_adamw_class, params, n, opts != NULL ? opts : &defaults,
                "TUTTI_ADAMW_OPTIONS");
}

/* ---- Adamax ----------------------------------------------------------------------------------- */

enum { X_LR, X_BETA1, X_BETA2, X_EPS, X_DECAY, X_MAXIMIZE };

static const tti_option adamax_options[] = {
    { "lr", 1, TTI_NOT_NEGATIVE },  { "betas", 2, TTI_BELOW_ONE },
    { "eps", 1, TTI_NOT_NEGATIVE }, { "weight_decay", 1, TTI_NOT_NEGATIVE },
    { "maximize", 1, TTI_FLAG },
};

static void adamax_prepare(const double *v, double t, unsigned fresh, tti_step *step_out)
{
    const double b1 = v[X_BETA1];

    (void)fresh;
    *step_out =
        (tti_step){ .loop = TTI_LOOP_ADAMAX,
                    .sign = v[X_MAXIMIZE] != 0.0 ? -1.0 : 1.0,
                    .decay = v[X_DECAY],
                    .c = { 1.0 - b1, b1, v[X_BETA2], v[X_EPS], v[X_LR] / (1.0 - pow(b1, t)) } };
}

const tti_optim_class tti_adamax_class = {
    .name = "adamax",
    .options = adamax_options,
    .n_options = sizeof adamax_options / sizeof adamax_options[0],
    .defaults = { [X_LR] = 2e-3, [X_BETA1] = 0.9, [X_BETA2] = 0.999, [X_EPS] = 1e-8 },
    .state = { "exp_avg", "exp_inf" },
    .n_states = 2,
    .counts = true,
    .prepare = adamax_prepare,
};

tutti_optim *tutti_adamax(tutti_tensor *const *params, int n, const tutti_adamax_options *opts)
{
    tutti_adamax_options o = TUTTI_ADAMAX_OPTIONS;

    if (opts != NULL)
        o = *opts;
    if (o.size != sizeof o) {
        (void)tti_optim_size_refused("adamax", o.size, "TUTTI_ADAMAX_OPTIONS");
        return NULL;
    }
    return tti_optim_new(&tti_adamax_class, params, n,
                         (const double[TTI_OPTIM_VALUES]){ o.lr, o.betas[0], o.betas[1], o.eps,
                                                           o.weight_decay, o.maximize });
}

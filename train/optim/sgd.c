/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sgd.c - stochastic gradient descent with momentum.
 *
 * True    The first step of a parameter with momentum copies its gradient into the buffer: there is no
 *         dampening of a past that did not exist. */
#include "optim/optim.h"

enum { LR, MOMENTUM, DAMPENING, DECAY, NESTEROV, MAXIMIZE };

static const tti_option options[] = {
    { "lr", 1, TTI_NOT_NEGATIVE }, { "momentum", 1, TTI_NOT_NEGATIVE },
    { "dampening", 1, TTI_ANY },   { "weight_decay", 1, TTI_NOT_NEGATIVE },
    { "nesterov", 1, TTI_FLAG },   { "maximize", 1, TTI_FLAG },
};

static unsigned wants(const double *v)
{
    return v[MOMENTUM] != 0.0 ? 1u : 0u;
}

static tutti_status check(const char *op, const double *v)
{
    if (v[NESTEROV] != 0.0 && (v[MOMENTUM] == 0.0 || v[DAMPENING] != 0.0))
        return tti_refuse(TUTTI_E_ARG, op,
                          "nesterov with momentum %g and dampening %g: it needs momentum and no "
                          "dampening",
                          v[MOMENTUM], v[DAMPENING]);
    return TUTTI_OK;
}

static tti_loop_kind loop_of(const double *v, bool first)
{
    if (v[MOMENTUM] == 0.0)
        return TTI_LOOP_SGD;
    if (v[NESTEROV] != 0.0)
        return first ? TTI_LOOP_SGD_FIRST_NESTEROV : TTI_LOOP_SGD_NESTEROV;
    return first ? TTI_LOOP_SGD_FIRST : TTI_LOOP_SGD_MOMENTUM;
}

static void prepare(const double *v, double t, unsigned fresh, tti_step *step_out)
{
    (void)t;
    *step_out = (tti_step){ .loop = loop_of(v, fresh != 0),
                            .sign = v[MAXIMIZE] != 0.0 ? -1.0 : 1.0,
                            .decay = v[DECAY],
                            .c = { v[LR], v[MOMENTUM], 1.0 - v[DAMPENING] } };
}

const tti_optim_class tti_sgd_class = {
    .name = "sgd",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .defaults = { [LR] = 1e-3 },
    .state = { "momentum_buffer" },
    .n_states = 1,
    .wants = wants,
    .check = check,
    .prepare = prepare,
};

tutti_optim *tutti_sgd(tutti_tensor *const *params, int n, const tutti_sgd_options *opts)
{
    tutti_sgd_options o = TUTTI_SGD_OPTIONS;

    if (opts != NULL)
        o = *opts;
    if (o.size != sizeof o) {
        (void)tti_optim_size_refused("sgd", o.size, "TUTTI_SGD_OPTIONS");
        return NULL;
    }
    return tti_optim_new(&tti_sgd_class, params, n,
                         (const double[TTI_OPTIM_VALUES]){ o.lr, o.momentum, o.dampening,
                                                           o.weight_decay, o.nesterov,
                                                           o.maximize });
}

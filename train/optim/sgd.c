/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sgd.c - stochastic gradient descent with momentum.
 *
 * How     One buffer per parameter, made at its first step if momentum is wanted. All arithmetic is
 *         in place; gradients are read only, because others (reducers) may look at their memory.
 * True    A parameter without a gradient does not move and does not decay. */
#include "autograd/autograd.h"

#include <math.h>
#include <stdlib.h>
#include <tutti/optim.h>
#include <tutti/private.h>

typedef struct slot {
    tutti_tensor *param;    /* counted */
    tutti_tensor *momentum; /* counted; NULL before the first step */
} slot;

struct tutti_optim {
    tutti_sgd_options opts;
    int n;
    slot slots[];
};

static tutti_status check_options(const tutti_sgd_options *o)
{
    if (o->size != sizeof *o)
        return tti_refuse(TUTTI_E_ARG, "sgd",
                          "options of %zu bytes\n  next: begin with TUTTI_SGD_OPTIONS", o->size);
    if (!(o->lr >= 0.0) || !(o->momentum >= 0.0) || !(o->weight_decay >= 0.0))
        return tti_refuse(TUTTI_E_ARG, "sgd", "lr %g, momentum %g, weight_decay %g", o->lr,
                          o->momentum, o->weight_decay);
    if (o->nesterov && (o->momentum == 0.0 || o->dampening != 0.0))
        return tti_refuse(TUTTI_E_ARG, "sgd",
                          "nesterov with momentum %g and dampening %g: it needs momentum and no "
                          "dampening",
                          o->momentum, o->dampening);
    return TUTTI_OK;
}

static tutti_status check_params(tutti_tensor *const *params, int n)
{
    if (n < 1 || params == NULL)
        return tti_refuse(TUTTI_E_ARG, "sgd", "no parameters");
    for (int i = 0; i < n; i++) {
        if (params[i] == NULL)
            return tti_refuse_null("sgd");
        if (!tutti_tensor_is_leaf(params[i]) || !tutti_tensor_requires_grad(params[i]))
            return tti_refuse(TUTTI_E_ARG, "sgd", "parameter %d is no leaf that requires gradients",
                              i);
        for (int j = 0; j < i; j++)
            if (params[j] == params[i])
                return tti_refuse(TUTTI_E_ARG, "sgd", "parameters %d and %d are the same", j, i);
    }
    return TUTTI_OK;
}

tutti_optim *tutti_sgd(tutti_tensor *const *params, int n, const tutti_sgd_options *opts)
{
    tutti_sgd_options o = TUTTI_SGD_OPTIONS;
    tutti_optim *sgd;

    if (opts != NULL)
        o = *opts;
    if (check_options(&o) != TUTTI_OK || check_params(params, n) != TUTTI_OK)
        return NULL;
    sgd = calloc(1, sizeof *sgd + (size_t)n * sizeof sgd->slots[0]);
    if (sgd == NULL) {
        (void)tti_refuse(TUTTI_E_NOMEM, "sgd", "no memory for %d parameters", n);
        return NULL;
    }
    sgd->opts = o;
    sgd->n = n;
    for (int i = 0; i < n; i++)
        sgd->slots[i].param = tutti_tensor_retain(params[i]);
    return sgd;
}

/* Bring the momentum of a slot up to date with gradient g. */
static tutti_status update_momentum(slot *s, const tutti_tensor *g, const tutti_sgd_options *o)
{
    tutti_status st;

    if (s->momentum == NULL) {
        s->momentum = tti_raw_clone(g);
        return s->momentum != NULL ? TUTTI_OK : tti_refused();
    }
    st = tti_raw_op1_(TTI_MUL_C, s->momentum, o->momentum);
    return st != TUTTI_OK ? st : tti_raw_op2_(TTI_ADD, s->momentum, g, 1.0 - o->dampening);
}

/* Inside of a scope. */
static tutti_status step_one(slot *s, const tutti_sgd_options *o)
{
    const double sign = o->maximize ? -1.0 : 1.0;
    tutti_tensor *g = tutti_tensor_grad(s->param);
    double lr = -o->lr;
    tutti_status st = TUTTI_OK;

    if (g == NULL)
        return TUTTI_OK;
    if (o->weight_decay != 0.0)
        g = tti_temp(tti_raw_op2(TTI_ADD, o->maximize ? tti_temp(tti_raw_neg(g)) : g, s->param,
                                 o->weight_decay));
    else if (o->momentum != 0.0 && o->maximize)
        g = tti_temp(tti_raw_neg(g));
    else
        lr *= sign;
    if (g != NULL && o->momentum != 0.0) {
        st = update_momentum(s, g, o);
        g = o->nesterov ? tti_temp(tti_raw_op2(TTI_ADD, g, s->momentum, o->momentum)) : s->momentum;
    }
    if (st == TUTTI_OK && g != NULL)
        st = tti_raw_op2_(TTI_ADD, s->param, g, lr);
    return st != TUTTI_OK ? st : tti_kept();
}

tutti_status tutti_optim_step(tutti_optim *o)
{
    tutti_status st = tti_take_kept();

    if (st == TUTTI_OK && o == NULL)
        st = tti_fail(TUTTI_E_ARG, "optim_step: the optimizer is NULL");
    for (int i = 0; st == TUTTI_OK && i < o->n; i++) {
        tutti_scope_begin();
        st = step_one(&o->slots[i], &o->opts);
        tutti_scope_end();
        if (st != TUTTI_OK && tti_kept() != TUTTI_OK)
            st = tti_take_kept();
    }
    return st;
}

void tutti_optim_zero_grad(tutti_optim *o)
{
    for (int i = 0; o != NULL && i < o->n; i++)
        (void)tutti_tensor_set_grad(o->slots[i].param, NULL);
}

double tutti_optim_lr(const tutti_optim *o)
{
    return o != NULL ? o->opts.lr : NAN;
}

tutti_status tutti_optim_set_lr(tutti_optim *o, double lr)
{
    if (o == NULL)
        return tti_fail(TUTTI_E_ARG, "set_lr: the optimizer is NULL");
    if (!(lr >= 0.0))
        return tti_fail(TUTTI_E_ARG, "set_lr: a learning rate of %g", lr);
    o->opts.lr = lr;
    return TUTTI_OK;
}

void tutti_optim_free(tutti_optim *o)
{
    for (int i = 0; o != NULL && i < o->n; i++) {
        tutti_tensor_release(o->slots[i].param);
        tutti_tensor_release(o->slots[i].momentum);
    }
    free(o);
}

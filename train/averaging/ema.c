/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ema.c - averages of parameters over time.
 *
 * True    Averages are computed in the type of the parameter, element by element: the same bits on ranks that have
 *         the same parameters. */
#include "averaging/averaging.h"

#include <stdlib.h>
#include <tutti/private.h>

struct tutti_ema {
    double decay;
    bool has_begun;
    int n;
    tutti_tensor **params; /* [n] counted */
    tutti_tensor **averages; /* [n] counted */
};

static tutti_status fill(tutti_ema *ema, tutti_tensor *const *params, int n)
{
    ema->params = calloc((size_t)n, sizeof(tutti_tensor *));
    ema->averages = calloc((size_t)n, sizeof(tutti_tensor *));
    if (ema->params == NULL || ema->averages == NULL)
        return tti_fail(TUTTI_E_NOMEM, "ema: no memory for %d parameters", n);
    for (int i = 0; i < n; i++) {
        if (params[i] == NULL || !tti_is_floating(params[i]->dtype))
            return params[i] == NULL ? tti_fail(TUTTI_E_ARG, "ema: parameter %d is NULL", i)
                                     : tti_fail(TUTTI_E_ARG, "ema: parameter %d is %s", i,
                                                tutti_dtype_name(params[i]->dtype));
        ema->averages[i] = tti_raw_zeros(params[i]->dtype, params[i]->nd, params[i]->shape);
        if (ema->averages[i] == NULL)
            return tti_refused();
        ema->params[i] = tutti_tensor_retain(params[i]);
        ema->n++;
    }
    return TUTTI_OK;
}

tutti_status tutti_ema_create(tutti_tensor *const *params, int n, double decay, tutti_ema **ema_out)
{
    const tutti_status before = tti_kept();
    tutti_ema *ema;
    tutti_status st;

    if (ema_out == NULL || n < 1 || params == NULL)
        return tti_fail(TUTTI_E_ARG, "ema: %d parameters%s", n, params == NULL || ema_out == NULL ? ", and a NULL" : "");
    if (!(decay >= 0.0 && decay <= 1.0))
        return tti_fail(TUTTI_E_ARG, "ema: a decay of %g, and must be 0 to 1", decay);
    ema = calloc(1, sizeof *ema);
    if (ema == NULL)
        return tti_fail(TUTTI_E_NOMEM, "ema: no memory");
    ema->decay = decay;
    st = fill(ema, params, n);
    if (st == TUTTI_OK)
        *ema_out = ema;
    else
        tutti_ema_free(ema);
    return tti_unkeep(before, st);
}

void tutti_ema_free(tutti_ema *ema)
{
    if (ema == NULL)
        return;
    for (int i = 0; i < ema->n; i++) {
        tutti_tensor_release(ema->params[i]);
        tutti_tensor_release(ema->averages[i]);
    }
    free(ema->params);
    free(ema->averages);
    free(ema);
}

static tutti_status follow(tutti_tensor *average, const tutti_tensor *param, double decay, bool first)
{
    tutti_status st;

    if (first)
        return tti_raw_copy_(average, param);
    st = tti_raw_op1_(TTI_MUL_C, average, decay);
    return st == TUTTI_OK ? tti_raw_op2_(TTI_ADD, average, param, 1.0 - decay) : st;
}

tutti_status tutti_ema_update(tutti_ema *ema)
{
    const tutti_status before = tti_kept();
    tutti_status st = TUTTI_OK;

    if (ema == NULL)
        return tti_fail(TUTTI_E_ARG, "ema: it is NULL");
    for (int i = 0; i < ema->n && st == TUTTI_OK; i++)
        st = tti_ready(ema->params[i]);
    for (int i = 0; i < ema->n && st == TUTTI_OK; i++)
        st = follow(ema->averages[i], ema->params[i], ema->decay, !ema->has_begun);
    ema->has_begun = ema->has_begun || st == TUTTI_OK;
    return tti_unkeep(before, st);
}

tutti_tensor *const *tutti_ema_averages(const tutti_ema *ema, int *n_out)
{
    *n_out = ema != NULL ? ema->n : 0;
    return ema != NULL ? ema->averages : NULL;
}

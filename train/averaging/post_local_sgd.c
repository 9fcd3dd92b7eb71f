/* SPDX-License-Identifier: BSD-3-Clause
 *
 * post_local_sgd.c - an optimizer whose steps are followed by an averager.
 *
 * True    A step of the optimizer that fails is not counted by the averager, so that both count the same steps. */
#include "averaging/averaging.h"

#include <stdlib.h>
#include <tutti/private.h>

struct tutti_post_local_sgd {
    tutti_optim *optim;             /* both borrowed */
    tutti_model_averager *averager;
};

tutti_status tutti_post_local_sgd_create(tutti_optim *optim, tutti_model_averager *averager,
                                         tutti_post_local_sgd **local_out)
{
    tutti_post_local_sgd *local;

    if (optim == NULL || averager == NULL || local_out == NULL)
        return tti_fail(TUTTI_E_ARG, "post_local_sgd: the %s is NULL",
                        optim == NULL ? "optimizer" : averager == NULL ? "averager" : "output");
    local = calloc(1, sizeof *local);
    if (local == NULL)
        return tti_fail(TUTTI_E_NOMEM, "post_local_sgd: no memory");
    *local = (tutti_post_local_sgd){ .optim = optim, .averager = averager };
    *local_out = local;
    return TUTTI_OK;
}

void tutti_post_local_sgd_free(tutti_post_local_sgd *local)
{
    free(local);
}

tutti_status tutti_post_local_sgd_step(tutti_post_local_sgd *local)
{
    tutti_tensor *const *params;
    tutti_status st;
    int n;

    if (local == NULL)
        return tti_fail(TUTTI_E_ARG, "post_local_sgd: it is NULL");
    st = tutti_optim_step(local->optim);
    if (st != TUTTI_OK)
        return st;
    params = tutti_optim_parameters(local->optim, -1, &n);
    return tutti_model_averager_average_parameters(local->averager, params, n);
}

/* ---- state ------------------------------------------------------------------------------------ */

static tutti_status put_step(const tutti_post_local_sgd *local, tutti_state_dict *sd)
{
    tutti_tensor *step = tti_raw_empty(TUTTI_I64, 0, NULL);
    tutti_status st;

    if (step == NULL)
        return tti_refused();
    *(int64_t *)tti_at(step) = tutti_model_averager_step(local->averager);
    st = tutti_state_dict_set(sd, "step", step);
    tutti_tensor_release(step);
    return st;
}

tutti_status tutti_post_local_sgd_state_dict(const tutti_post_local_sgd *local, tutti_state_dict **sd_out)
{
    const tutti_status before = tti_kept();
    tutti_state_dict *sd = NULL;
    tutti_status st;

    if (local == NULL)
        return tti_fail(TUTTI_E_ARG, "post_local_sgd: it is NULL");
    st = tutti_optim_state_dict(local->optim, &sd);
    if (st == TUTTI_OK)
        st = put_step(local, sd);
    if (st == TUTTI_OK)
        *sd_out = sd;
    else
        tutti_state_dict_free(sd);
    return tti_unkeep(before, st);
}

/* The step of a state; -1: it has none. */
static tutti_status read_step(const tutti_state_dict *sd, int64_t *step_out)
{
    const tutti_tensor *step = sd != NULL ? tutti_state_dict_get(sd, "step") : NULL;
    tutti_status st;
    double value;

    *step_out = -1;
    if (step == NULL)
        return TUTTI_OK;
    st = tti_ready(step);
    if (st != TUTTI_OK)
        return st;
    value = step->numel == 1 ? tti_number_at(step, 0) : -1.0;
    if (!(value >= 0.0 && value < 9e15) || value != (double)(int64_t)value)
        return tti_fail(TUTTI_E_MISMATCH, "post_local_sgd: 'step' of the state is no number of steps");
    *step_out = (int64_t)value;
    return TUTTI_OK;
}

tutti_status tutti_post_local_sgd_load_state_dict(tutti_post_local_sgd *local, const tutti_state_dict *sd)
{
    const tutti_status before = tti_kept();
    int64_t step;
    tutti_status st;

    if (local == NULL)
        return tti_fail(TUTTI_E_ARG, "post_local_sgd: it is NULL");
    st = read_step(sd, &step);
    if (st == TUTTI_OK)
        st = tutti_optim_load_state_dict(local->optim, sd);
    if (st != TUTTI_OK)
        return tti_unkeep(before, st);
    if (step < 0)
        tti_log(TTI_LOG_WARN, "post_local_sgd: the state has no 'step' of the averager, which begins with 0");
    return tutti_model_averager_set_step(local->averager, step < 0 ? 0 : step);
}

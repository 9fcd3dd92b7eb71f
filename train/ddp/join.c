/* SPDX-License-Identifier: BSD-3-Clause
 *
 * join.c - a rank that has run out of inputs plays along: buffers, then what the reducer does in a step.
 *
 * How     The ddp is the joinable that the scope knows; the reducer is one behind it, and does its part when the
 *         ddp does. The ddp tells the scope of each step, so the reducer need not. */
#include "ddp/ddp.h"

#include <tutti/private.h>

tutti_status tti_ddp_notify(tutti_ddp *ddp)
{
    return tutti_join_notify(ddp->join, ddp);
}

static tutti_status main_hook(void *object, int n_active)
{
    tutti_ddp *ddp = object;
    tutti_status st = tti_ddp_sync_buffers(ddp, false, true);

    if (st == TUTTI_OK)
        st = tti_ddp_before_rebuild(ddp);
    if (st == TUTTI_OK)
        st = ddp->reducers.main_hook(ddp->reducers.object, n_active);
    tti_ddp_after_rebuild(ddp);
    return st;
}

/* The last joiners have made all steps: what they have is right. The highest of them gives it. */
static tutti_status post_hook(void *object, bool is_last_joiner)
{
    tutti_ddp *ddp = object;
    int32_t giver = is_last_joiner ? tutti_get_rank(ddp->group) : -1;
    tutti_status st = tutti_all_reduce(TUTTI_SPAN(&giver, 1), TUTTI_MAX, ddp->group);

    if (st == TUTTI_OK && giver < 0)
        st = tti_fail(TUTTI_E_STATE, "no rank was the last one to run out of inputs: they are in different scopes");
    return st == TUTTI_OK ? tti_ddp_give_state(ddp, tutti_get_global_rank(ddp->group, giver)) : st;
}

static void enter(void *object, tutti_join *join)
{
    tutti_ddp *ddp = object;

    ddp->join = join;
    ddp->reducers.enter(ddp->reducers.object, join);
}

tutti_status tutti_ddp_joinable(tutti_ddp *ddp, const tutti_ddp_join_options *opts, tutti_joinable *joinable_out)
{
    tutti_reducer_join_options reducers = TUTTI_REDUCER_JOIN_OPTIONS;
    tutti_status st;

    if (ddp == NULL || joinable_out == NULL)
        return tti_fail(TUTTI_E_ARG, "ddp_joinable: the %s is NULL", ddp == NULL ? "ddp" : "output");
    if (opts != NULL && opts->size != sizeof *opts)
        return tti_fail(TUTTI_E_ARG, "ddp_joinable: options of %zu bytes\n  next: begin with TUTTI_DDP_JOIN_OPTIONS",
                        opts->size);
    if (ddp->buffer_hook != NULL)
        return tti_fail(TUTTI_E_UNSUPPORTED, "ddp_joinable: with a buffer hook a rank without inputs could not play along");
    if (ddp->steps_at_end)
        return tti_fail(TUTTI_E_UNSUPPORTED, "ddp_joinable: an optimizer steps at the end of each backward, which a rank "
                                             "without inputs has none of\n  next: tutti_optim_step() after the backward");
    reducers.divide_by_active = opts != NULL && opts->divide_by_active;
    st = tutti_reducer_joinable(ddp->reducer, &reducers, &ddp->reducers);
    if (st != TUTTI_OK)
        return st;
    ddp->is_joinable = true;
    *joinable_out = (tutti_joinable){ .group = ddp->group, .object = ddp, .main_hook = main_hook,
                                      .post_hook = post_hook, .enter = enter };
    return TUTTI_OK;
}

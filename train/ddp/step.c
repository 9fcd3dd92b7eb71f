/* SPDX-License-Identifier: BSD-3-Clause
 *
 * step.c - a forward and its backward, seen from the ddp.
 *
 * How     before forward   the scope of uneven inputs is told, buffers are made equal, the reducer begins a step
 *         after forward    what the backward will not reach is looked up in the graph; the reducer awaits gradients
 *         hook             the first one of a backward asks for its end; each hands one gradient in
 *         end              the reducer finishes: all ranks have averages, or all have a failure
 *         The end comes after the outermost backward, so that backwards inside of hooks count to the step.
 * True    Whether a step averages is decided in its forward. A backward that fails on this rank finishes the
 *         reducer's step all the same: the others would wait. */
#include "ddp/ddp.h"

#include <string.h>
#include <tutti/private.h>

/* ---- the backward ----------------------------------------------------------------------------- */

static tutti_status at_end(tutti_status so_far, void *ctx)
{
    tutti_ddp *ddp = ctx;
    tutti_status st = tti_ddp_point_all(ddp);
    const tutti_status finished = tutti_reducer_finish(ddp->reducer);

    ddp->in_backward = false;
    if (st == TUTTI_OK)
        st = finished;
    if (finished == TUTTI_E_STATE && so_far == TUTTI_OK)
        tti_ddp_tell_missing(ddp);
    if (finished != TUTTI_OK)
        return st;
    if (ddp->static_graph && ddp->steps > 0 && !ddp->has_told)
        tti_ddp_tell_unused(ddp);
    ddp->has_told = ddp->steps > 0;
    return st == TUTTI_OK ? tti_ddp_take_results(ddp) : st;
}

tutti_status tti_ddp_in_backward(tutti_ddp *ddp)
{
    tutti_status st;

    if (ddp->in_backward)
        return TUTTI_OK;
    st = tti_backward_at_end(at_end, ddp);
    if (st != TUTTI_OK)
        return st;
    ddp->in_backward = true;
    for (int i = 0; i < ddp->n; i++)
        ddp->slots[i].fired = false;
    return tti_ddp_point_all(ddp);
}

tutti_status tti_ddp_on_gradient(tutti_tensor *param, void *ctx)
{
    tti_ddp_slot *s = ctx;
    tutti_status st = tti_ddp_in_backward(s->ddp);

    (void)param;
    if (st == TUTTI_OK)
        st = tti_ddp_point(s);
    if (st == TUTTI_OK)
        st = tutti_reducer_mark_ready(s->ddp->reducer, s->index);
    s->fired = true;
    return st == TUTTI_OK ? tti_ddp_settle(s) : st;
}

/* ---- the forward ------------------------------------------------------------------------------ */

tutti_status tutti_ddp_before_forward(tutti_ddp *ddp)
{
    const bool recording = tutti_is_grad_enabled();
    tutti_status st;

    if (ddp == NULL || ddp->net == NULL)
        return tti_fail(TUTTI_E_ARG, "ddp: %s", ddp == NULL ? "it is NULL" : "its module was freed");
    st = recording ? tti_ddp_notify(ddp) : TUTTI_OK;
    if (st == TUTTI_OK)
        st = tti_ddp_sync_buffers(ddp, true, recording);
    if (st != TUTTI_OK || !recording)
        return st;
    tutti_reducer_set_sync(ddp->reducer, ddp->sync);
    st = tti_ddp_before_rebuild(ddp);
    if (st == TUTTI_OK)
        st = tutti_reducer_prepare_for_forward(ddp->reducer);
    tti_ddp_after_rebuild(ddp);
    if (st == TUTTI_OK && ddp->sync)
        tti_ddp_tell_step(ddp);
    return st;
}

/* What a backward of the outputs does not reach. */
static tutti_status find_unused(tutti_ddp *ddp, tutti_tensor *const *outputs, int n, int *n_unused_out)
{
    tutti_status st = tutti_backward_reaches(outputs, n, ddp->params, ddp->n, ddp->reached);
    int n_unused = 0;

    for (int i = 0; i < ddp->n && st == TUTTI_OK; i++)
        if (!ddp->reached[i])
            ddp->unused[n_unused++] = i;
    *n_unused_out = n_unused;
    return st;
}

tutti_status tutti_ddp_after_forward(tutti_ddp *ddp, tutti_tensor **outputs, int n)
{
    const bool dynamic = ddp != NULL && ddp->find_unused && !ddp->static_graph;
    tutti_status st = tti_take_kept();
    int n_unused = 0;

    if (ddp == NULL || n < 0 || (n > 0 && outputs == NULL))
        return tti_fail(TUTTI_E_ARG, "ddp: %d outputs%s", n, ddp == NULL ? " of none" : "");
    if (st != TUTTI_OK)
        return st;
    ddp->buffers_due = tutti_is_grad_enabled() && ddp->sync;
    if (!tutti_is_grad_enabled())
        return TUTTI_OK;
    if (dynamic && ddp->sync)
        st = find_unused(ddp, outputs, n, &n_unused);
    if (st == TUTTI_OK)
        st = tutti_reducer_prepare_for_backward(ddp->reducer, ddp->unused, n_unused);
    if (st == TUTTI_OK && ddp->sync)
        ddp->steps++;
    return st == TUTTI_OK && (dynamic || ddp->static_graph) ? tti_ddp_sink(ddp, outputs, n) : st;
}

/* Keep a failure as that of an expression. */
static tutti_tensor *failed(tutti_status st)
{
    char words[1024];

    strncpy(words, tutti_last_error(), sizeof words - 1);
    words[sizeof words - 1] = '\0';
    return tti_poison(st, "ddp", "%s", words);
}

tutti_tensor *tutti_ddp_forward(tutti_ddp *ddp, tutti_tensor *x)
{
    tutti_status st;
    tutti_tensor *y;

    if (ddp == NULL || x == NULL)
        return tti_poisoned("ddp");
    st = tutti_ddp_before_forward(ddp);
    if (st != TUTTI_OK)
        return failed(st);
    y = tutti_forward(ddp->net, x);
    if (y == NULL)
        return NULL;
    st = tutti_ddp_after_forward(ddp, &y, 1);
    return st == TUTTI_OK ? y : failed(st);
}

bool tutti_ddp_set_sync(tutti_ddp *ddp, bool on)
{
    const bool was = ddp != NULL && ddp->sync;

    if (ddp != NULL)
        ddp->sync = on;
    return was;
}

tutti_status tutti_ddp_reset(tutti_ddp *ddp)
{
    tutti_status st;

    if (ddp == NULL)
        return tti_fail(TUTTI_E_ARG, "ddp: it is NULL");
    st = tti_ddp_point_all(ddp);
    if (st == TUTTI_OK)
        st = tutti_reducer_reset_state(ddp->reducer);
    ddp->buffers_due = true;
    ddp->rebuilt = ddp->in_backward = false;
    ddp->first_place = NULL;
    return st;
}

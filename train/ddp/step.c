/* SPDX-License-Identifier: BSD-3-Clause
 *
 * step.c - a forward and its backward, seen from the ddp.
 *
 * How     before forward   the scope of uneven inputs is told, buffers are made equal, the reducer begins a step
 *         after forward    what the backward will not reach is looked up in the graph; the reducer awaits gradients
 *         hook             the first one of a backward asks for its end; each hands one gradient in
 *         end              the reducer finishes: all ranks have averages, or all have a failure
 *         The end comes after the outermost backward, so that backwards inside of hooks count to the step.
 * True    Whether a step averages is decided in its forward. A step that fails on this rank, wherever between the
 *         beginning of its forward and the end of its backward, does what the others do in it, with what there is:
 *         they would wait. What they then hear has the words of the failure. */
#include "ddp/ddp.h"

#include <stdio.h>
#include <string.h>
#include <tutti/private.h>

enum { WORDS = 1024 };

/* ---- steps that fail -------------------------------------------------------------------------- */

void tti_ddp_stand_down(tutti_ddp *ddp)
{
    tti_backward_unawait(&ddp->awaiting);
    ddp->stage = TTI_DDP_BETWEEN;
}

/* Begin the rest of the step, so that the others hear why it is lost; tutti_reducer_finish() waits for it. */
static tutti_status begin_losing(tutti_ddp *ddp, tutti_status st, const char *words)
{
    (void)tti_ddp_raise_all(ddp);
    (void)tti_ddp_point_all(ddp); /* what does not come travels as zeros, and is not looked at */
    ddp->buffers_due = true;      /* as on the others, whose forward has averaged */
    tti_ddp_stand_down(ddp);
    return tutti_reducer_fail(ddp->reducer, st, words);
}

static tutti_status lose(tutti_ddp *ddp, tutti_status st, const char *words)
{
    const tutti_status begun = begin_losing(ddp, st, words);
    const tutti_status finished = tutti_reducer_finish(ddp->reducer);

    return finished != TUTTI_OK ? finished : begun;
}

/* The same of what has just failed. Returns that, whatever telling comes to. */
static tutti_status lost(tutti_ddp *ddp, tutti_status st)
{
    char words[WORDS];

    snprintf(words, sizeof words, "%s", tutti_last_error());
    if (ddp->stage != TTI_DDP_BETWEEN)
        (void)lose(ddp, st, words);
    else
        (void)tti_ddp_raise_all(ddp);
    return tti_fail(st, "%s", words);
}

/* The backward that is awaited cannot begin. Of several ddps that await it all begin before one is waited for, in the
 * order of a backward. */
static tutti_status missed(tutti_status st, void *ctx)
{
    char words[WORDS];

    snprintf(words, sizeof words, "%s", tutti_last_error());
    (void)begin_losing(ctx, st, words);
    return tti_fail(st, "%s", words);
}

static void missed_end(void *ctx)
{
    (void)tutti_reducer_finish(((tutti_ddp *)ctx)->reducer);
}

tutti_status tutti_ddp_fail(tutti_ddp *ddp, tutti_status status, const char *why)
{
    tutti_status st = TUTTI_OK;
    char words[WORDS];

    if (ddp == NULL || why == NULL || status == TUTTI_OK)
        return tti_fail(TUTTI_E_ARG, "ddp_fail: %s",
                        ddp == NULL ? "the ddp is NULL" : why == NULL ? "there are no words" : "the status is no failure");
    snprintf(words, sizeof words, "%s", why); /* it may be the last error itself */
    (void)tti_take_kept();
    if (ddp->stage == TTI_DDP_BETWEEN)
        st = tutti_ddp_before_forward(ddp);
    if (st != TUTTI_OK)
        return st;
    return ddp->stage == TTI_DDP_BETWEEN ? tti_fail(status, "%s", words) : lose(ddp, status, words);
}

/* ---- the backward ----------------------------------------------------------------------------- */

/* Whether the backward has come to every parameter. */
static bool is_through(const tutti_ddp *ddp)
{
    int i = 0;

    while (i < ddp->n && ddp->slots[i].fired)
        i++;
    return i == ddp->n;
}

/* Averages on all ranks, or none on any: a backward that has failed here, and not after all was handed in, tells the
 * others how. */
static tutti_status finish(tutti_ddp *ddp, tutti_status so_far)
{
    char words[WORDS];

    if (so_far != TUTTI_OK && ddp->averages && !is_through(ddp)) {
        snprintf(words, sizeof words, "%s", tutti_last_error());
        (void)tutti_reducer_fail(ddp->reducer, so_far, words);
    }
    return tutti_reducer_finish(ddp->reducer);
}

static tutti_status at_end(tutti_status so_far, void *ctx)
{
    tutti_ddp *ddp = ctx;
    tutti_status st = tti_ddp_raise_all(ddp), pointed = tti_ddp_point_all(ddp), finished = finish(ddp, so_far);

    st = st == TUTTI_OK ? pointed : st;
    ddp->in_backward = false;
    if (st == TUTTI_OK)
        st = finished;
    if (finished == TUTTI_E_STATE && so_far == TUTTI_OK)
        tti_ddp_tell_missing(ddp);
    if (finished == TUTTI_OK)
        finished = tti_ddp_await_buffers(ddp);
    if (finished != TUTTI_OK)
        return st == TUTTI_OK ? finished : st;
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
    ddp->averages = ddp->stage == TTI_DDP_BACKWARD;
    tti_ddp_stand_down(ddp);
    for (int i = 0; i < ddp->n; i++)
        ddp->slots[i].fired = false;
    return tti_ddp_point_all(ddp);
}

tutti_status tti_ddp_on_gradient(tutti_tensor *param, void *ctx)
{
    tti_ddp_slot *s = ctx;
    tutti_status st = tti_ddp_raise(s);

    (void)param;
    if (st == TUTTI_OK)
        st = tti_ddp_in_backward(s->ddp);
    if (st == TUTTI_OK)
        st = tti_ddp_point(s);
    if (st == TUTTI_OK)
        st = tutti_reducer_mark_ready(s->ddp->reducer, s->index);
    s->fired = true;
    return st == TUTTI_OK ? tti_ddp_settle(s) : st;
}

/* ---- the forward ------------------------------------------------------------------------------ */

/* What a step of the reducer begins with. */
static tutti_status begin_reducer(tutti_ddp *ddp)
{
    tutti_status st;

    tutti_reducer_set_sync(ddp->reducer, ddp->sync);
    st = tti_ddp_before_rebuild(ddp);
    if (st == TUTTI_OK)
        st = tutti_reducer_prepare_for_forward(ddp->reducer);
    tti_ddp_after_rebuild(ddp);
    if (st == TUTTI_OK && ddp->sync)
        tti_ddp_tell_step(ddp);
    return st;
}

/* There was a forward without a backward. */
static tutti_status forget_forward(tutti_ddp *ddp)
{
    tti_ddp_stand_down(ddp);
    return tti_ddp_raise_all(ddp);
}

tutti_status tutti_ddp_before_forward(tutti_ddp *ddp)
{
    const bool recording = tutti_is_grad_enabled();
    tutti_status st;

    if (ddp == NULL || ddp->net == NULL)
        return tti_fail(TUTTI_E_ARG, "ddp: %s", ddp == NULL ? "it is NULL" : "its module was freed");
    st = recording ? forget_forward(ddp) : TUTTI_OK;
    if (st == TUTTI_OK && recording)
        st = tti_ddp_notify(ddp);
    if (st != TUTTI_OK)
        return st;
    if (recording && ddp->sync) /* from here on the others count on this rank */
        ddp->stage = TTI_DDP_FORWARD;
    st = tti_ddp_sync_buffers(ddp, true, recording);
    if (st == TUTTI_OK && recording)
        st = begin_reducer(ddp);
    return st == TUTTI_OK ? tti_ddp_lower(ddp) : st;
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
    if (st == TUTTI_OK)
        st = tti_ddp_buffers_after(ddp);
    if (st != TUTTI_OK)
        return st;
    ddp->buffers_due = tutti_is_grad_enabled() && ddp->sync;
    if (!tutti_is_grad_enabled())
        return tti_ddp_raise_unrecorded(ddp);
    tti_ddp_recorded(ddp);
    if (dynamic && ddp->sync)
        st = find_unused(ddp, outputs, n, &n_unused);
    if (st == TUTTI_OK)
        st = tutti_reducer_prepare_for_backward(ddp->reducer, ddp->unused, n_unused);
    if (st == TUTTI_OK && ddp->sync) {
        ddp->steps++;
        ddp->stage = TTI_DDP_BACKWARD;
        tti_backward_await(&ddp->awaiting, missed, missed_end, ddp);
    }
    return st == TUTTI_OK && (dynamic || ddp->static_graph) ? tti_ddp_sink(ddp, outputs, n) : st;
}

/* Keep the failure of a forward as that of an expression. One that is not recorded is nobody else's. */
static tutti_tensor *failed(tutti_ddp *ddp, tutti_status st)
{
    char words[WORDS];

    if (tutti_is_grad_enabled())
        st = lost(ddp, st);
    snprintf(words, sizeof words, "%s", tutti_last_error());
    (void)tti_ddp_raise_unrecorded(ddp);
    return tti_poison(st, "ddp", "%s", words);
}

/* What should have made the input has failed: no more is known of it than that. */
static tutti_tensor *without_input(tutti_ddp *ddp)
{
    tutti_status st = tti_take_kept();
    char words[WORDS];

    if (st == TUTTI_OK)
        st = tti_fail(TUTTI_E_ARG, "an operand is NULL");
    snprintf(words, sizeof words, "%s", tutti_last_error());
    if (tutti_is_grad_enabled() && ddp->sync)
        (void)tutti_ddp_fail(ddp, st, words);
    return tti_poison(st, "ddp", "%s", words);
}

tutti_tensor *tutti_ddp_forward(tutti_ddp *ddp, tutti_tensor *x)
{
    tutti_status st;
    tutti_tensor *y;

    if (ddp == NULL)
        return tti_poisoned("ddp");
    if (x == NULL)
        return without_input(ddp);
    st = tutti_ddp_before_forward(ddp);
    if (st != TUTTI_OK)
        return failed(ddp, st);
    if (ddp->mixed != NULL && tutti_tensor_dtype(x) == TUTTI_F32)
        x = tutti_tensor_to(x, ddp->mixed->o.param_dtype);
    y = tutti_forward(ddp->net, x);
    st = y == NULL ? tti_take_kept() : tutti_ddp_after_forward(ddp, &y, 1);
    if (y == NULL && st == TUTTI_OK)
        st = tti_fail(TUTTI_E_STATE, "the forward of module '%s' gave no tensor", tti_module_kind(ddp->net));
    return st == TUTTI_OK ? y : failed(ddp, st);
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
    tti_ddp_stand_down(ddp);
    (void)tti_ddp_raise_all(ddp);
    st = tti_ddp_point_all(ddp);
    if (st == TUTTI_OK)
        st = tutti_reducer_reset_state(ddp->reducer);
    ddp->buffers_due = true;
    ddp->rebuilt = ddp->in_backward = false;
    ddp->first_place = NULL;
    return st;
}

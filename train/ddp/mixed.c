/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mixed.c - computing in 16 bits, with parameters, gradients and averages of f32.
 *
 * Why     The module's layers hold their parameters by address, so what they compute with has to change in place.
 * How     Before the forward each f32 parameter gets its elements rounded, and changes places with them; the graph
 *         saves what it was computed with. A parameter that the backward is through with, and whatever is left at the
 *         backward's end, changes back, and its gradient of 16 bits becomes one of f32, from where on the reducer knows
 *         nothing of it. A forward that nothing is recorded of changes back at its end, unless it came between another
 *         one and its backward, whose parameters it then computes with.
 *         Gradients that were there before stay f32: the engine adds to them what comes.
 * True    The f32 elements are never touched by a forward or a backward, and are back before anything reads them: the
 *         end of a backward, a failure, the next forward, the ddp's end. Versions go up with every change of places, so
 *         that a graph that is gone through once more notices. Changing back takes no memory but for gradients. */
#include "ddp/ddp.h"

#include <stdlib.h>
#include <tutti/private.h>

/* ---- what there is ---------------------------------------------------------------------------- */

static tutti_status check(const tutti_mixed_precision *o)
{
    if (o->size != sizeof *o)
        return tti_fail(TUTTI_E_ARG, "ddp: no options of mixed precision\n  next: begin with TUTTI_MIXED_PRECISION");
    if (!tti_is_half(o->param_dtype))
        return tti_fail(TUTTI_E_ARG, "ddp: mixed precision in %s: f16 and bf16 are offered",
                        tutti_dtype_name(o->param_dtype));
    if (!tti_is_half(o->reduce_dtype) && o->reduce_dtype != TUTTI_F32)
        return tti_fail(TUTTI_E_ARG, "ddp: gradients that are averaged in %s: f16, bf16 and f32 are offered",
                        tutti_dtype_name(o->reduce_dtype));
    if (!tti_is_floating(o->buffer_dtype))
        return tti_fail(TUTTI_E_ARG, "ddp: buffers in %s: f16, bf16, f32 and f64 are offered",
                        tutti_dtype_name(o->buffer_dtype));
    return TUTTI_OK;
}

/* The floating ones of a list that are not ignored, and not of dtype already; of f32 alone if only_f32. */
static int select_tensors(const tutti_ddp *ddp, tutti_tensor *const *from, const char *const *names, int n,
                          tutti_dtype dtype, bool only_f32, tti_ddp_twin *out)
{
    int found = 0;

    for (int i = 0; i < n; i++) {
        const tutti_dtype has = from[i]->dtype;

        if (!tti_ddp_ignores(ddp, names[i]) && tti_is_floating(has) && has != dtype && (!only_f32 || has == TUTTI_F32))
            out[found++] = (tti_ddp_twin){ .tensor = from[i] };
    }
    return found;
}

/* Slots and twins are both in the order of the module. */
static void tell_slots(tutti_ddp *ddp, tti_ddp_mixed *m)
{
    int k = 0;

    for (int i = 0; i < m->n_params; i++) {
        for (int at = k; at < ddp->n; at++)
            if (ddp->slots[at].param == m->params[i].tensor) {
                ddp->slots[at].twin = &m->params[i];
                k = at + 1;
                break;
            }
    }
}

static tutti_status find_tensors(tutti_ddp *ddp, tti_ddp_mixed *m)
{
    int n_params, n_buffers;
    tutti_tensor *const *params = tutti_module_parameters(ddp->net, &n_params);
    tutti_tensor *const *buffers = tutti_module_buffers(ddp->net, &n_buffers);
    tutti_status st = tti_take_kept();

    if (st != TUTTI_OK)
        return st;
    m->params = calloc((size_t)n_params + 1, sizeof *m->params);
    m->buffers = calloc((size_t)n_buffers + 1, sizeof *m->buffers);
    if (m->params == NULL || m->buffers == NULL)
        return tti_fail(TUTTI_E_NOMEM, "ddp: no memory for %d parameters in two types", n_params);
    m->n_params = select_tensors(ddp, params, tutti_module_parameter_names(ddp->net, &n_params), n_params,
                                 m->o.param_dtype, true, m->params);
    m->n_buffers = select_tensors(ddp, buffers, tutti_module_buffer_names(ddp->net, &n_buffers), n_buffers,
                                  m->o.buffer_dtype, false, m->buffers);
    for (int i = 0; i < m->n_params; i++)
        tutti_tensor_retain(m->params[i].tensor);
    for (int i = 0; i < m->n_buffers; i++)
        tutti_tensor_retain(m->buffers[i].tensor);
    tell_slots(ddp, m);
    return TUTTI_OK;
}

/* Buffers change once: all that can fail of it comes now. */
static tutti_status convert_buffers(tti_ddp_mixed *m)
{
    tutti_status st = TUTTI_OK;

    for (int i = 0; i < m->n_buffers && st == TUTTI_OK; i++) {
        m->buffers[i].other = tti_raw_to(m->buffers[i].tensor, m->o.buffer_dtype);
        st = m->buffers[i].other != NULL ? TUTTI_OK : tti_take_kept();
    }
    return st;
}

tutti_status tti_ddp_mixed_make(tutti_ddp *ddp, const tutti_mixed_precision *opts)
{
    tutti_status st = check(opts);

    if (st != TUTTI_OK)
        return st;
    ddp->mixed = calloc(1, sizeof *ddp->mixed);
    if (ddp->mixed == NULL)
        return tti_fail(TUTTI_E_NOMEM, "ddp: no memory for mixed precision");
    ddp->mixed->o = *opts;
    st = find_tensors(ddp, ddp->mixed);
    return st == TUTTI_OK ? convert_buffers(ddp->mixed) : st;
}

void tti_ddp_mixed_free(tutti_ddp *ddp)
{
    tti_ddp_mixed *m = ddp->mixed;

    if (m == NULL)
        return;
    (void)tti_ddp_raise_all(ddp);
    for (int i = 0; i < m->n_params; i++)
        tutti_tensor_release(m->params[i].tensor);
    for (int i = 0; i < m->n_buffers; i++) {
        tutti_tensor_release(m->buffers[i].tensor);
        tutti_tensor_release(m->buffers[i].other);
    }
    free(m->params);
    free(m->buffers);
    free(m);
    ddp->mixed = NULL;
}

/* ---- changing places -------------------------------------------------------------------------- */

static void swap(tti_ddp_twin *t)
{
    tti_swap_elements(t->tensor, t->other);
    tti_version_bump(t->tensor);
}

static void drop_other(tti_ddp_twin *t)
{
    tutti_tensor_release(t->other);
    t->other = NULL;
}

/* A gradient that came in 16 bits becomes one of the parameter's type. */
static tutti_status widen_gradient(tutti_tensor *param)
{
    tutti_tensor *grad = tutti_tensor_grad(param), *wide;
    tutti_status st;

    if (grad == NULL || grad->dtype == param->dtype)
        return TUTTI_OK;
    wide = tti_raw_to(grad, param->dtype);
    if (wide == NULL) {
        (void)tutti_tensor_set_grad(param, NULL);
        return tti_take_kept();
    }
    st = tutti_tensor_set_grad(param, wide);
    tutti_tensor_release(wide);
    return st;
}

static tutti_status raise_one(tti_ddp_twin *t)
{
    if (t->other == NULL)
        return TUTTI_OK;
    swap(t);
    drop_other(t);
    return widen_gradient(t->tensor);
}

void tti_ddp_mixed_begin(tutti_ddp *ddp)
{
    for (int i = 0; ddp->mixed != NULL && i < ddp->mixed->n_buffers; i++) {
        swap(&ddp->mixed->buffers[i]);
        drop_other(&ddp->mixed->buffers[i]);
    }
}

tutti_status tti_ddp_lower(tutti_ddp *ddp)
{
    tti_ddp_mixed *m = ddp->mixed;
    tutti_status st = TUTTI_OK;

    for (int i = 0; m != NULL && !m->recorded && i < m->n_params && st == TUTTI_OK; i++) {
        tti_ddp_twin *t = &m->params[i];

        t->other = tti_raw_to(t->tensor, m->o.param_dtype);
        if (t->other == NULL)
            st = tti_take_kept();
        else
            swap(t);
    }
    if (st != TUTTI_OK)
        (void)tti_ddp_raise_all(ddp);
    return st;
}

tutti_status tti_ddp_raise(tti_ddp_slot *s)
{
    return s->twin != NULL ? raise_one(s->twin) : TUTTI_OK;
}

void tti_ddp_recorded(tutti_ddp *ddp)
{
    if (ddp->mixed != NULL)
        ddp->mixed->recorded = true;
}

tutti_status tti_ddp_raise_unrecorded(tutti_ddp *ddp)
{
    return ddp->mixed != NULL && !ddp->mixed->recorded ? tti_ddp_raise_all(ddp) : TUTTI_OK;
}

tutti_status tti_ddp_raise_all(tutti_ddp *ddp)
{
    tti_ddp_mixed *m = ddp->mixed;
    tutti_status st = TUTTI_OK;

    if (m != NULL)
        m->recorded = false;
    for (int i = 0; m != NULL && i < m->n_params; i++) {
        const tutti_status now = raise_one(&m->params[i]);

        st = st == TUTTI_OK ? now : st;
    }
    return st;
}

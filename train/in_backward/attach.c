/* SPDX-License-Identifier: BSD-3-Clause
 *
 * attach.c - an optimizer that steps each parameter when a backward has collected its gradient.
 *
 * How     Two hooks on each leaf: one steps, after those that look at gradients; one drops the gradient, after all that
 *         step.
 * True    When a leaf has its gradient, every node that has saved it has been gone through. One that saved its values
 *         without a gradient for it (through a detached alias) notices by the version that they have changed. */
#include "in_backward/in_backward.h"

#include <stdlib.h>
#include <tutti/private.h>

typedef struct link {
    tutti_in_backward *handle;
    int index; /* of the parameter */
    int step, drop; /* hooks; 0: none */
} link;

struct tutti_in_backward {
    tutti_optim *optim; /* borrowed */
    int n;
    tutti_tensor **params; /* [n] counted */
    link *links;           /* [n] */
};

static tutti_status step(tutti_tensor *leaf, void *ctx)
{
    const link *l = ctx;
    const tutti_tensor *grad = tutti_tensor_grad(leaf);

    return grad != NULL ? tti_optim_step_at(l->handle->optim, l->index, grad) : TUTTI_OK;
}

static tutti_status drop(tutti_tensor *leaf, void *ctx)
{
    (void)ctx;
    return tutti_tensor_set_grad(leaf, NULL);
}

static tutti_status attach(tutti_in_backward *h, int i, bool keep)
{
    link *l = &h->links[i];
    tutti_tensor *p = h->optim->params[i];
    tutti_status st;

    if (tti_leaf_has_hook(p, TTI_HOOK_PASSED, tti_ddp_on_gradient))
        return tti_fail(TUTTI_E_STATE, "optimizer in backward: parameter %d belongs to a ddp\n"
                                       "  next: tutti_ddp_register_fused_optim()", i);
    l->handle = h;
    l->index = i;
    h->params[h->n++] = tutti_tensor_retain(p);
    st = tti_leaf_add_hook(p, TTI_HOOK_STEP, step, l, &l->step);
    return st == TUTTI_OK && !keep ? tti_leaf_add_hook(p, TTI_HOOK_PASSED, drop, l, &l->drop) : st;
}

static tutti_status fill(tutti_in_backward *h, bool keep)
{
    const int n = h->optim->n;
    tutti_status st = TUTTI_OK;

    h->params = calloc((size_t)n + 1, sizeof(tutti_tensor *));
    h->links = calloc((size_t)n + 1, sizeof *h->links);
    if (h->params == NULL || h->links == NULL)
        return tti_fail(TUTTI_E_NOMEM, "optimizer in backward: no memory for %d parameters", n);
    for (int i = 0; i < n && st == TUTTI_OK; i++)
        st = attach(h, i, keep);
    return st;
}

tutti_status tutti_apply_optimizer_in_backward(tutti_optim *optim, const tutti_in_backward_options *opts,
                                               tutti_in_backward **handle_out)
{
    tutti_in_backward *h;
    tutti_status st;

    if (optim == NULL || handle_out == NULL || (opts != NULL && opts->size != sizeof *opts))
        return tti_fail(TUTTI_E_ARG, "optimizer in backward: %s",
                        optim == NULL        ? "the optimizer is NULL"
                        : handle_out == NULL ? "handle_out is NULL"
                                             : "no options\n  next: begin with TUTTI_IN_BACKWARD_OPTIONS");
    if (optim->part != NULL)
        return tti_fail(TUTTI_E_ARG, "optimizer in backward: it is divided among ranks\n"
                                     "  next: tutti_zero_overlap_with_ddp()");
    h = calloc(1, sizeof *h);
    if (h == NULL)
        return tti_fail(TUTTI_E_NOMEM, "optimizer in backward: no memory");
    h->optim = optim;
    st = fill(h, opts != NULL && opts->keep_gradients);
    if (st == TUTTI_OK)
        *handle_out = h;
    else
        tutti_in_backward_free(h);
    return st;
}

void tutti_in_backward_free(tutti_in_backward *handle)
{
    if (handle == NULL)
        return;
    for (int i = 0; i < handle->n; i++) {
        if (handle->links[i].step != 0)
            tutti_tensor_remove_hook(handle->params[i], handle->links[i].step);
        if (handle->links[i].drop != 0)
            tutti_tensor_remove_hook(handle->params[i], handle->links[i].drop);
        tutti_tensor_release(handle->params[i]);
    }
    free(handle->params);
    free(handle->links);
    free(handle);
}

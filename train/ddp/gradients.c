/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gradients.c - where gradients are: with their leaves, and, with views, in buckets.
 *
 * How     The reducer knows addresses, a leaf has a tensor. Before gradients are handed in the reducer is told
 *         the address of each; after it has moved one to its place in a bucket, the leaf gets a tensor over that
 *         place, always the same one, to which the next backward adds.
 * True    What a leaf has is right: addresses are never kept from one step to the next, so that the program may drop,
 *         replace and keep gradients as it likes. Nobody looks at a bucket that is gone: before it goes, tensors
 *         over it, and views of them, whoever has them, get a copy. */
#include "ddp/ddp.h"

#include <string.h>
#include <tutti/private.h>

/* A gradient that does not lie row by row: take one that does. */
static tutti_status straighten(tti_ddp_slot *s, tutti_tensor *grad)
{
    tutti_tensor *copy = tti_raw_clone(grad);
    tutti_status st;

    if (copy == NULL)
        return tti_take_kept();
    if (!s->ddp->has_warned)
        tti_log(TTI_LOG_WARN,
                "ddp: the gradient of parameter %d ('%s') does not lie row by row; it is copied, in every step",
                s->index, s->name);
    s->ddp->has_warned = true;
    st = tutti_tensor_set_grad(s->param, copy);
    tutti_tensor_release(copy);
    return st;
}

tutti_status tti_ddp_point(tti_ddp_slot *s)
{
    tutti_tensor *grad = tutti_tensor_grad(s->param);
    tutti_status st = TUTTI_OK;

    if (grad != NULL && !tutti_tensor_is_contiguous(grad)) {
        st = straighten(s, grad);
        grad = tutti_tensor_grad(s->param);
    }
    if (st != TUTTI_OK)
        grad = NULL; /* rather none than an address of one step before */
    (void)tutti_reducer_set_grad(s->ddp->reducer, s->index, grad != NULL ? tti_at(grad) : NULL);
    return st;
}

tutti_status tti_ddp_point_all(tutti_ddp *ddp)
{
    tutti_status st = TUTTI_OK;

    for (int i = 0; i < ddp->n; i++) {
        const tutti_status now = tti_ddp_point(&ddp->slots[i]);

        st = st == TUTTI_OK ? now : st;
    }
    return st;
}

/* Give the leaf the tensor over its place in a bucket. */
static tutti_status bind(tti_ddp_slot *s, void *place)
{
    if (s->bound == NULL || tti_at(s->bound) != place) {
        tutti_tensor_release(s->bound);
        s->bound = tti_raw_external("ddp", place, s->param->dtype, s->param->nd, s->param->shape, NULL);
    }
    return s->bound != NULL ? tutti_tensor_set_grad(s->param, s->bound) : tti_take_kept();
}

tutti_status tti_ddp_settle(tti_ddp_slot *s)
{
    tutti_tensor *grad = tutti_tensor_grad(s->param);
    void *place = tutti_reducer_grad(s->ddp->reducer, s->index);

    if (!s->ddp->views || grad == NULL || place == NULL || tti_at(grad) == place)
        return TUTTI_OK;
    return bind(s, place);
}

/* The parameter had no gradient, and has one now as other ranks had. */
static tutti_status take_copy(tti_ddp_slot *s, const void *place)
{
    tutti_tensor *grad = tti_raw_empty(s->param->dtype, s->param->nd, s->param->shape);
    tutti_status st;

    if (grad == NULL)
        return tti_take_kept();
    if (grad->st->bytes > 0)
        memcpy(tti_at(grad), place, grad->st->bytes);
    st = tutti_tensor_set_grad(s->param, grad);
    tutti_tensor_release(grad);
    return st;
}

tutti_status tti_ddp_take_results(tutti_ddp *ddp)
{
    tutti_status st = TUTTI_OK;

    for (int i = 0; i < ddp->n && st == TUTTI_OK; i++) {
        tti_ddp_slot *s = &ddp->slots[i];
        void *place = tutti_reducer_grad(ddp->reducer, i);

        if (tutti_tensor_grad(s->param) != NULL)
            st = tti_ddp_settle(s);
        else if (place != NULL)
            st = ddp->views ? bind(s, place) : take_copy(s, place);
    }
    return st;
}

/* ---- buckets that go -------------------------------------------------------------------------- */

/* Whether anybody but us has it, or a view of it. */
static bool is_shared(const tutti_tensor *t)
{
    return atomic_load_explicit(&t->refs, memory_order_acquire) > 1 ||
           atomic_load_explicit(&t->st->refs, memory_order_acquire) > 1;
}

bool tti_ddp_move_out(tutti_ddp *ddp)
{
    bool ok = true;

    for (int i = 0; i < ddp->n; i++) {
        tti_ddp_slot *s = &ddp->slots[i];

        if (s->bound == NULL)
            continue;
        if (is_shared(s->bound) && !tti_keep_copy(s->bound)) {
            if (tutti_tensor_grad(s->param) == s->bound)
                (void)tutti_tensor_set_grad(s->param, NULL);
            ok = false;
        }
        tutti_tensor_release(s->bound);
        s->bound = NULL;
    }
    return ok;
}

tutti_status tti_ddp_before_rebuild(tutti_ddp *ddp)
{
    const bool is_due = !ddp->rebuilt && (ddp->static_graph || !ddp->find_unused);

    if (!ddp->views || !is_due)
        return TUTTI_OK;
    if (!tti_ddp_move_out(ddp))
        return tti_fail(TUTTI_E_NOMEM, "ddp: no memory for gradients whose buckets are rebuilt");
    ddp->first_place = tutti_reducer_bucket_view(ddp->reducer, 0).data;
    return tti_ddp_point_all(ddp);
}

void tti_ddp_after_rebuild(tutti_ddp *ddp)
{
    const void *place = tutti_reducer_bucket_view(ddp->reducer, 0).data;

    if (ddp->views && ddp->first_place != NULL && ddp->first_place != place)
        ddp->rebuilt = true;
}

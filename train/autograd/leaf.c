/* SPDX-License-Identifier: BSD-3-Clause
 *
 * leaf.c - what autograd hangs on a tensor, and how leaves collect their gradients.
 *
 * How     leaf <--counted-- accumulator node <--counted-- edges of the graphs that use the leaf.
 *         The leaf knows its accumulator only weakly: it is made when a graph needs it and is gone
 *         with the last graph, and neither keeps the other alive in a circle.
 * True    The gradient object of a leaf is replaced only by tutti_tensor_set_grad(); a backward adds
 *         to it in place, because others (buckets of a reducer) look at the same memory.
 *         The lock guards accumulator and gradient: graphs of several threads may share a leaf. */
#include "autograd/autograd.h"

#include <pthread.h>
#include <tutti/private.h>

typedef struct tti_leaf {
    pthread_mutex_t lock;
    tti_node *accumulator; /* not counted */
    tutti_tensor *grad;    /* counted */
    tti_hooks hooks;
} tti_leaf;

static void leaf_free(tti_leaf *leaf)
{
    if (leaf == NULL)
        return;
    tutti_tensor_release(leaf->grad);
    pthread_mutex_destroy(&leaf->lock);
    tti_hooks_free(&leaf->hooks);
    tti_mem_free(leaf, sizeof *leaf);
}

static void drop_info(tti_hanger *hanger)
{
    tti_grad_info *info = (tti_grad_info *)hanger;

    if (info->grad_fn != NULL && info->grad_fn->keeps_grad == info)
        info->grad_fn->keeps_grad = NULL;
    tti_node_release(info->grad_fn);
    leaf_free(info->leaf);
    tti_mem_free(info, sizeof *info);
}

tti_grad_info *tti_info(const tutti_tensor *t)
{
    return (tti_grad_info *)t->hanger;
}

tti_grad_info *tti_info_make(tutti_tensor *t)
{
    tti_grad_info *info = tti_info(t);

    if (info != NULL)
        return info;
    info = tti_mem_zalloc(sizeof *info);
    if (info == NULL) {
        (void)tti_refuse(TUTTI_E_NOMEM, "autograd", "no memory for the history of a tensor");
        return NULL;
    }
    info->hanger.drop = drop_info;
    t->hanger = &info->hanger;
    return info;
}

static tti_leaf *leaf_make(tutti_tensor *t)
{
    tti_grad_info *info = tti_info_make(t);

    if (info == NULL || info->leaf != NULL)
        return info == NULL ? NULL : info->leaf;
    info->leaf = tti_mem_zalloc(sizeof *info->leaf);
    if (info->leaf == NULL)
        (void)tti_refuse(TUTTI_E_NOMEM, "autograd", "no memory for the gradient of a tensor");
    else
        pthread_mutex_init(&info->leaf->lock, NULL);
    return info->leaf;
}

/* Another reference to a node that may be on its way out; false if it is. */
static bool retain_if_alive(tti_node *node)
{
    int refs = node == NULL ? 0 : atomic_load_explicit(&node->refs, memory_order_relaxed);

    while (refs > 0)
        if (atomic_compare_exchange_weak_explicit(&node->refs, &refs, refs + 1,
                                                  memory_order_acquire, memory_order_relaxed))
            return true;
    return false;
}

static const tti_node_class accumulator_class = { .name = "accumulate" };

tti_node *tti_gradient_node(tutti_tensor *t)
{
    tti_grad_info *info = tti_info(t);
    tti_leaf *leaf = info->leaf;
    tti_node *node;

    if (info->grad_fn != NULL)
        return tti_node_retain(info->grad_fn);
    pthread_mutex_lock(&leaf->lock);
    node = leaf->accumulator;
    if (!retain_if_alive(node)) {
        node = tti_node_make(&accumulator_class, 0);
        if (node != NULL) {
            node->seq = UINT64_MAX;
            node->leaf = tutti_tensor_retain(t);
        }
        leaf->accumulator = node;
    }
    pthread_mutex_unlock(&leaf->lock);
    return node;
}

void tti_leaf_forget(tutti_tensor *t, tti_node *accumulator)
{
    tti_leaf *leaf = tti_info(t)->leaf;

    pthread_mutex_lock(&leaf->lock);
    if (leaf->accumulator == accumulator)
        leaf->accumulator = NULL;
    pthread_mutex_unlock(&leaf->lock);
}

/* Take over grad, or copy it if others see it or it is not laid out row by row. */
static tutti_status collect(tti_leaf *leaf, tutti_tensor *grad)
{
    tutti_status st = TUTTI_OK;

    if (leaf->grad != NULL) {
        st = tti_raw_op2_(TTI_ADD, leaf->grad, grad, 1.0);
    } else if (tti_is_sole(grad) && tutti_tensor_is_contiguous(grad)) {
        leaf->grad = tutti_tensor_retain(grad);
    } else {
        leaf->grad = tti_raw_clone(grad);
        st = leaf->grad == NULL ? tti_refused() : TUTTI_OK;
    }
    return st;
}

static tutti_status run_hooks(const tti_leaf *leaf, tti_hook_kind kind, tutti_tensor *t)
{
    const tti_hook *next = tti_hooks_after(&leaf->hooks, kind, 0);
    tutti_status st = TUTTI_OK;

    while (next != NULL && st == TUTTI_OK) {
        const int done = next->handle;
        const uint32_t said = tti_words_said();

        st = next->fn.leaf(t, next->ctx);
        if (kind == TTI_HOOK_ACCUMULATE) /* the others may be ours, and pass on what has its words */
            st = tti_hook_said(st, said);
        next = tti_hooks_after(&leaf->hooks, kind, done);
    }
    return st;
}

tutti_status tti_accumulate(tutti_tensor *t, tutti_tensor *grad)
{
    tti_leaf *leaf = tti_info(t)->leaf;
    tutti_status st = TUTTI_OK;

    if (grad != NULL)
        st = tti_hooks_replace(&leaf->hooks, &grad);
    if (grad != NULL && st == TUTTI_OK) {
        pthread_mutex_lock(&leaf->lock);
        st = collect(leaf, grad);
        pthread_mutex_unlock(&leaf->lock);
    }
    if (grad != NULL && st == TUTTI_OK)
        st = run_hooks(leaf, TTI_HOOK_ACCUMULATE, t);
    if (grad != NULL && st == TUTTI_OK)
        st = run_hooks(leaf, TTI_HOOK_STEP, t);
    tutti_tensor_release(grad);
    return st == TUTTI_OK ? run_hooks(leaf, TTI_HOOK_PASSED, t) : st;
}

tutti_status tti_keep_grad(tti_grad_info *info, tutti_tensor *grad)
{
    tutti_status st;

    pthread_mutex_lock(&info->leaf->lock);
    st = collect(info->leaf, grad);
    pthread_mutex_unlock(&info->leaf->lock);
    return st;
}

const tti_node *tti_accumulator_of(const tutti_tensor *t)
{
    tti_leaf *leaf = t != NULL && tti_info(t) != NULL ? tti_info(t)->leaf : NULL;
    const tti_node *node;

    if (leaf == NULL)
        return NULL;
    pthread_mutex_lock(&leaf->lock);
    node = leaf->accumulator;
    pthread_mutex_unlock(&leaf->lock);
    return node;
}

/* ---- public ----------------------------------------------------------------------------------- */

bool tutti_tensor_requires_grad(const tutti_tensor *t)
{
    return t != NULL && tti_info(t) != NULL && tti_info(t)->requires_grad;
}

bool tutti_tensor_is_leaf(const tutti_tensor *t)
{
    return t != NULL && (tti_info(t) == NULL || tti_info(t)->grad_fn == NULL);
}

tutti_tensor *tutti_tensor_requires_grad_(tutti_tensor *t, bool on)
{
    if (t == NULL)
        return tti_poisoned("requires_grad_");
    if (on && !tti_is_floating(t->dtype))
        return tti_poison(TUTTI_E_ARG, "requires_grad_", "%s has no gradients, real types have",
                          tutti_dtype_name(t->dtype));
    if (!tutti_tensor_is_leaf(t)) {
        if (on)
            return t;
        return tti_poison(TUTTI_E_STATE, "requires_grad_",
                          "the tensor was computed from others that require gradients"
                          "\n  next: tutti_tensor_detach() cuts it off");
    }
    if (leaf_make(t) == NULL)
        return NULL;
    tti_info(t)->requires_grad = on;
    return t;
}

tutti_tensor *tutti_tensor_grad(const tutti_tensor *t)
{
    if (t == NULL || tti_info(t) == NULL || tti_info(t)->leaf == NULL)
        return NULL;
    return tti_info(t)->leaf->grad;
}

tutti_status tutti_tensor_set_grad(tutti_tensor *t, tutti_tensor *grad)
{
    tutti_tensor *old;
    tti_leaf *leaf;

    if (t == NULL)
        return tti_fail(TUTTI_E_ARG, "set_grad: the tensor is NULL");
    if (grad == NULL && (tti_info(t) == NULL || tti_info(t)->leaf == NULL))
        return TUTTI_OK;
    if (!tutti_tensor_is_leaf(t))
        return tti_fail(TUTTI_E_ARG, "set_grad: the tensor is no leaf");
    if (grad != NULL && (!tti_same_shape(t, grad) || t->dtype != grad->dtype))
        return tti_fail(TUTTI_E_ARG, "set_grad: %s of shape %s for a tensor of %s, shape %s",
                        tutti_dtype_name(grad->dtype), tti_shape_str(grad->nd, grad->shape).s,
                        tutti_dtype_name(t->dtype), tti_shape_str(t->nd, t->shape).s);
    if (grad != NULL && tti_repeats_elements(grad))
        return tti_fail(TUTTI_E_ARG,
                        "set_grad: a gradient of shape %s that repeats elements cannot collect"
                        "\n  next: give it a tutti_tensor_clone() of it",
                        tti_shape_str(grad->nd, grad->shape).s);
    leaf = leaf_make(t);
    if (leaf == NULL)
        return tti_take_kept();
    pthread_mutex_lock(&leaf->lock);
    old = leaf->grad;
    leaf->grad = tutti_tensor_retain(grad);
    pthread_mutex_unlock(&leaf->lock);
    tutti_tensor_release(old);
    return TUTTI_OK;
}

tutti_status tti_leaf_add_hook(tutti_tensor *t, tti_hook_kind kind, tutti_grad_hook fn, void *ctx,
                               int *handle_out)
{
    const tti_hook hook = { .kind = kind, .fn.leaf = fn, .ctx = ctx };

    if (t == NULL || fn == NULL)
        return tti_fail(TUTTI_E_ARG, "gradient hook: the %s is NULL",
                        t == NULL ? "tensor" : "hook");
    if (!tutti_tensor_is_leaf(t) || !tutti_tensor_requires_grad(t))
        return tti_fail(TUTTI_E_ARG,
                        "gradient hook: the tensor is no leaf that requires gradients");
    return tti_hooks_add(&tti_info(t)->leaf->hooks, &hook, handle_out);
}

bool tti_leaf_has_hook(const tutti_tensor *t, tti_hook_kind kind, tutti_grad_hook fn)
{
    const tti_grad_info *info = tti_info(t);
    const tti_hooks *hooks = info != NULL && info->leaf != NULL ? &info->leaf->hooks : NULL;

    for (int i = 0; hooks != NULL && i < hooks->n; i++)
        if (hooks->list[i].kind == kind && (fn == NULL || hooks->list[i].fn.leaf == fn))
            return true;
    return false;
}

tutti_status tutti_tensor_register_post_accumulate_grad_hook(tutti_tensor *t, tutti_grad_hook fn,
                                                             void *ctx, int *handle_out)
{
    return tti_leaf_add_hook(t, TTI_HOOK_ACCUMULATE, fn, ctx, handle_out);
}

tutti_status tutti_tensor_register_backward_passed_hook(tutti_tensor *t, tutti_grad_hook fn,
                                                        void *ctx, int *handle_out)
{
    return tti_leaf_add_hook(t, TTI_HOOK_PASSED, fn, ctx, handle_out);
}

/* Where the hooks of t are: with the leaf, or with the node that made it. NULL: nowhere. */
static tti_hooks *hooks_of(const tutti_tensor *t)
{
    tti_grad_info *info = t != NULL ? tti_info(t) : NULL;

    if (info == NULL)
        return NULL;
    if (info->grad_fn != NULL)
        return &info->grad_fn->hooks;
    return info->leaf != NULL ? &info->leaf->hooks : NULL;
}

tutti_status tutti_tensor_register_hook(tutti_tensor *t, tutti_tensor_hook fn, void *ctx,
                                        int *handle_out)
{
    const tti_hook hook = { .kind = TTI_HOOK_TENSOR, .fn.tensor = fn, .ctx = ctx };

    if (t == NULL || fn == NULL)
        return tti_fail(TUTTI_E_ARG, "tensor hook: the %s is NULL", t == NULL ? "tensor" : "hook");
    if (!tutti_tensor_requires_grad(t))
        return tti_fail(TUTTI_E_ARG, "tensor hook: the tensor requires no gradients");
    return tti_hooks_add(hooks_of(t), &hook, handle_out);
}

void tutti_tensor_remove_hook(tutti_tensor *t, int handle)
{
    tti_hooks *hooks = hooks_of(t);

    if (hooks != NULL)
        tti_hooks_remove(hooks, handle);
}

tutti_status tutti_tensor_retain_grad(tutti_tensor *t)
{
    if (t == NULL || !tutti_tensor_requires_grad(t))
        return tti_fail(TUTTI_E_ARG, "retain_grad: the tensor %s",
                        t == NULL ? "is NULL" : "requires no gradients");
    if (tutti_tensor_is_leaf(t))
        return TUTTI_OK; /* it does anyway */
    if (leaf_make(t) == NULL)
        return tti_take_kept();
    tti_info(t)->grad_fn->keeps_grad = tti_info(t);
    return TUTTI_OK;
}

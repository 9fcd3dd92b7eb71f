/* SPDX-License-Identifier: BSD-3-Clause
 *
 * module_hooks.c - functions that run around the forward of a module, and around its backward.
 *
 * How     Forward: hooks, the module, hooks. If there are hooks of backward, what goes in and what comes out
 *         become other tensors over the same memory, each with a node that changes nothing and calls the
 *         hooks when its gradient passes. Both nodes of a call share a `passage`, in which the gradient of
 *         the output waits for that of the input.
 * True    Gradients of the input are complete when its node runs: everything inside the module came before.
 *         A module whose input wants no gradient has its hooks called when the output's has come.
 * Fails   A hook that fails poisons the expression, or ends the backward. */
#include "nn/nn.h"

#include <stdio.h>
#include <stdlib.h>
#include <tutti/private.h>

typedef enum hook_kind { FORWARD_PRE, FORWARD, BACKWARD_PRE, BACKWARD } hook_kind;

typedef struct hook {
    hook_kind kind;
    union {
        tutti_module_forward_pre_hook forward_pre;
        tutti_module_forward_hook forward;
        tutti_module_backward_pre_hook backward_pre;
        tutti_module_backward_hook backward;
    } fn;
    void *ctx;
    int handle;
} hook;

struct tti_module_hooks {
    hook *list;
    int n, last_handle;
};

/* One call of a module, as its backward sees it. */
typedef struct passage {
    atomic_int refs; /* of the two nodes */
    tutti_module *module;
    tutti_tensor *grad_output; /* counted; NULL: not here yet */
    bool input_waits;          /* there is a node of the input */
} passage;

void tti_module_hooks_free(tti_module_hooks *hooks)
{
    if (hooks != NULL)
        free(hooks->list);
    free(hooks);
}

/* Handles only grow, so a walk keeps its place whichever hooks a hook removes. */
static const hook *hook_after(tutti_module *m, hook_kind kind, int handle)
{
    const tti_module_hooks *hooks = *tti_module_hooks_of(m);

    for (int i = 0; hooks != NULL && i < hooks->n; i++)
        if (hooks->list[i].kind == kind && hooks->list[i].handle > handle)
            return &hooks->list[i];
    return NULL;
}

/* Keep the failure of a hook as that of the expression. */
static tutti_status failed(tutti_module *m, tutti_status st)
{
    char words[512];

    if (st == TUTTI_OK || tti_kept() != TUTTI_OK)
        return st;
    snprintf(words, sizeof words, "%s", tutti_last_error());
    return tti_refuse(st, tti_module_kind(m), "a hook failed: %s", words);
}

/* ---- backward --------------------------------------------------------------------------------- */

static void passage_release(tti_node *node)
{
    passage *p = (passage *)(intptr_t)node->number[0];

    if (p == NULL || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
        return;
    tutti_tensor_release(p->grad_output);
    free(p);
}

/* The hooks of backward; *grad_input may be NULL, and is borrowed before and after. */
static tutti_status run_backward_hooks(passage *p, tutti_tensor **grad_input)
{
    const hook *next = hook_after(p->module, BACKWARD, 0);
    tutti_status st = TUTTI_OK;

    while (next != NULL && st == TUTTI_OK) {
        const int done = next->handle;

        st = next->fn.backward(p->module, p->grad_output, grad_input, next->ctx);
        next = hook_after(p->module, BACKWARD, done);
    }
    tutti_tensor_release(p->grad_output);
    p->grad_output = NULL;
    return failed(p->module, st);
}

static void output_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    passage *p = (passage *)(intptr_t)node->number[0];
    const hook *next = hook_after(p->module, BACKWARD_PRE, 0);
    tutti_tensor *none = NULL;
    tutti_status st = TUTTI_OK;

    while (next != NULL && st == TUTTI_OK) {
        const int done = next->handle;

        st = next->fn.backward_pre(p->module, &g, next->ctx);
        next = hook_after(p->module, BACKWARD_PRE, done);
    }
    if (failed(p->module, st) != TUTTI_OK)
        return;
    tutti_tensor_release(p->grad_output);
    p->grad_output = tutti_tensor_retain(g);
    out[0] = tutti_tensor_retain(g);
    if (!p->input_waits)
        (void)run_backward_hooks(p, &none);
}

static void input_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    passage *p = (passage *)(intptr_t)node->number[0];

    if (run_backward_hooks(p, &g) == TUTTI_OK)
        out[0] = tutti_tensor_retain(g);
}

static const tti_node_class output_class = { .name = "module output",
                                             .apply = output_apply,
                                             .release = passage_release };
static const tti_node_class input_class = { .name = "module input",
                                            .apply = input_apply,
                                            .release = passage_release };

/* t as another tensor whose gradient passes a node of p. t itself if nothing is recorded. */
static tutti_tensor *through(const tti_node_class *cls, tutti_tensor *t, passage *p)
{
    tutti_tensor *y = tti_raw_detach(t);
    tti_node *node = tti_record(&y, cls, 1, &t);

    if (node != NULL) {
        node->number[0] = (int64_t)(intptr_t)p;
        atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    }
    return tti_temp(y);
}

/* ---- forward ---------------------------------------------------------------------------------- */

static tutti_status run_forward_pre(tutti_module *m, tutti_tensor **x)
{
    const hook *next = hook_after(m, FORWARD_PRE, 0);
    tutti_status st = TUTTI_OK;

    while (next != NULL && st == TUTTI_OK) {
        const int done = next->handle;

        st = next->fn.forward_pre(m, x, next->ctx);
        next = hook_after(m, FORWARD_PRE, done);
    }
    return failed(m, st);
}

static tutti_status run_forward(tutti_module *m, tutti_tensor *x, tutti_tensor **y)
{
    const hook *next = hook_after(m, FORWARD, 0);
    tutti_status st = TUTTI_OK;

    while (next != NULL && st == TUTTI_OK && *y != NULL) {
        const int done = next->handle;

        st = next->fn.forward(m, x, y, next->ctx);
        next = hook_after(m, FORWARD, done);
    }
    return failed(m, st);
}

/* The module between two nodes. */
static tutti_tensor *forward_watched(tutti_module *m, tutti_tensor *x, tutti_forward_fn forward)
{
    passage *p = calloc(1, sizeof *p);
    tutti_tensor *y;

    if (p == NULL)
        return tti_poison(TUTTI_E_NOMEM, tti_module_kind(m), "no memory for its hooks");
    atomic_init(&p->refs, 1);
    p->module = m;
    p->input_waits = tutti_tensor_requires_grad(x) && tutti_is_grad_enabled();
    y = forward(m, p->input_waits ? through(&input_class, x, p) : x);
    if (y != NULL && tutti_tensor_requires_grad(y))
        y = through(&output_class, y, p);
    passage_release(&(tti_node){ .number = { (int64_t)(intptr_t)p } });
    return y;
}

tutti_tensor *tti_forward_hooked(tutti_module *m, tutti_tensor *x, tutti_forward_fn forward)
{
    tutti_tensor *y;

    if (run_forward_pre(m, &x) != TUTTI_OK)
        return NULL;
    if (x == NULL)
        return tti_poisoned(tti_module_kind(m));
    if (hook_after(m, BACKWARD_PRE, 0) != NULL || hook_after(m, BACKWARD, 0) != NULL)
        y = forward_watched(m, x, forward);
    else
        y = forward(m, x);
    return run_forward(m, x, &y) == TUTTI_OK ? y : NULL;
}

/* ---- registration ----------------------------------------------------------------------------- */

static tutti_status add(tutti_module *m, bool given, hook h, int *handle_out)
{
    tti_module_hooks **hooks = m != NULL ? tti_module_hooks_of(m) : NULL;
    hook *list;

    if (hooks == NULL || !given)
        return tti_fail(TUTTI_E_ARG, "module hook: the %s is NULL", m == NULL ? "module" : "hook");
    if (*hooks == NULL)
        *hooks = calloc(1, sizeof **hooks);
    list =
        *hooks == NULL ? NULL : realloc((*hooks)->list, (size_t)((*hooks)->n + 1) * sizeof *list);
    if (list == NULL)
        return tti_fail(TUTTI_E_NOMEM, "module hook: no memory for it");
    (*hooks)->list = list;
    h.handle = ++(*hooks)->last_handle;
    list[(*hooks)->n++] = h;
    if (handle_out != NULL)
        *handle_out = h.handle;
    return TUTTI_OK;
}

tutti_status tutti_module_register_forward_pre_hook(tutti_module *m,
                                                    tutti_module_forward_pre_hook fn, void *ctx,
                                                    int *handle_out)
{
    return add(m, fn != NULL, (hook){ .kind = FORWARD_PRE, .fn.forward_pre = fn, .ctx = ctx },
               handle_out);
}

tutti_status tutti_module_register_forward_hook(tutti_module *m, tutti_module_forward_hook fn,
                                                void *ctx, int *handle_out)
{
    return add(m, fn != NULL, (hook){ .kind = FORWARD, .fn.forward = fn, .ctx = ctx }, handle_out);
}

tutti_status tutti_module_register_full_backward_pre_hook(tutti_module *m,
                                                          tutti_module_backward_pre_hook fn,
                                                          void *ctx, int *handle_out)
{
    return add(m, fn != NULL, (hook){ .kind = BACKWARD_PRE, .fn.backward_pre = fn, .ctx = ctx },
               handle_out);
}

tutti_status tutti_module_register_full_backward_hook(tutti_module *m,
                                                      tutti_module_backward_hook fn, void *ctx,
                                                      int *handle_out)
{
    return add(m, fn != NULL, (hook){ .kind = BACKWARD, .fn.backward = fn, .ctx = ctx },
               handle_out);
}

void tutti_module_remove_hook(tutti_module *m, int handle)
{
    tti_module_hooks *hooks = m != NULL ? *tti_module_hooks_of(m) : NULL;
    int kept = 0;

    if (hooks == NULL)
        return;
    for (int i = 0; i < hooks->n; i++)
        if (hooks->list[i].handle != handle)
            hooks->list[kept++] = hooks->list[i];
    hooks->n = kept;
}

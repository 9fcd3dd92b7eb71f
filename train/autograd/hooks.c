/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hooks.c - lists of functions that want to know of a gradient.
 *
 * True    Handles only grow, so a walk keeps its place whichever hooks a hook removes. A hook that adds
 *         one sees it run in the same pass. */
#include "autograd/autograd.h"

#include <stdlib.h>
#include <tutti/private.h>

tutti_status tti_hooks_add(tti_hooks *hooks, const tti_hook *hook, int *handle_out)
{
    tti_hook *list = realloc(hooks->list, (size_t)(hooks->n + 1) * sizeof *list);

    if (list == NULL)
        return tti_fail(TUTTI_E_NOMEM, "hook: no memory for %d hooks", hooks->n + 1);
    hooks->list = list;
    list[hooks->n] = *hook;
    list[hooks->n++].handle = ++hooks->last_handle;
    if (handle_out != NULL)
        *handle_out = hooks->last_handle;
    return TUTTI_OK;
}

void tti_hooks_remove(tti_hooks *hooks, int handle)
{
    int kept = 0;

    for (int i = 0; i < hooks->n; i++)
        if (hooks->list[i].handle != handle)
            hooks->list[kept++] = hooks->list[i];
    hooks->n = kept;
}

void tti_hooks_free(tti_hooks *hooks)
{
    free(hooks->list);
    *hooks = (tti_hooks){ 0 };
}

const tti_hook *tti_hooks_after(const tti_hooks *hooks, tti_hook_kind kind, int handle)
{
    for (int i = 0; i < hooks->n; i++)
        if (hooks->list[i].kind == kind && hooks->list[i].handle > handle)
            return &hooks->list[i];
    return NULL;
}

static tutti_status check_replacement(const tutti_tensor *grad, const tutti_tensor *by)
{
    if (tti_same_shape(grad, by) && grad->dtype == by->dtype)
        return TUTTI_OK;
    return tti_fail(TUTTI_E_ARG,
                    "tensor hook: %s of shape %s in place of a gradient of %s, shape %s",
                    tutti_dtype_name(by->dtype), tti_shape_str(by->nd, by->shape).s,
                    tutti_dtype_name(grad->dtype), tti_shape_str(grad->nd, grad->shape).s);
}

tutti_status tti_hook_said(tutti_status st, uint32_t said)
{
    if (st == TUTTI_OK || tti_words_said() != said)
        return st;
    return tti_fail(st, "a gradient hook of the program failed with %s, and gave no words", tutti_status_name(st));
}

tutti_status tti_hooks_replace(const tti_hooks *hooks, tutti_tensor **grad)
{
    const tti_hook *next = tti_hooks_after(hooks, TTI_HOOK_TENSOR, 0);
    tutti_status st = TUTTI_OK;

    while (next != NULL && st == TUTTI_OK) {
        const int done = next->handle;
        const uint32_t said = tti_words_said();
        tutti_tensor *by = NULL;

        tutti_scope_begin();
        st = tti_hook_said(next->fn.tensor(*grad, &by, next->ctx), said);
        if (st == TUTTI_OK && by != NULL)
            st = check_replacement(*grad, by);
        if (st == TUTTI_OK && by != NULL) {
            tutti_tensor_retain(by);
            tutti_tensor_release(*grad);
            *grad = by;
        }
        tutti_scope_end();
        next = tti_hooks_after(hooks, TTI_HOOK_TENSOR, done);
    }
    return st;
}

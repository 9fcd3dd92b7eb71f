/* SPDX-License-Identifier: BSD-3-Clause
 *
 * module_to.c - a module in another type, in place.
 *
 * Why     Layers, optimizers and lists hold tensors by their address: it has to stay.
 * How     First every tensor gets its elements, and its gradient, converted; then each changes places with what it was
 *         converted to, which takes the old elements with it when it goes.
 * True    What can fail comes before the first change. Gradients are set without a failure, as one that was there makes
 *         room for another. Versions go up: a graph that saved a tensor notices. */
#include "nn/nn.h"

#include <string.h>
#include <tutti/private.h>

/* What a tensor will be. */
typedef struct change {
    tutti_tensor *of;         /* borrowed */
    tutti_tensor *data, *grad; /* counted; NULL: it has none */
} change;

typedef struct changes {
    change *at;
    int n;
} changes;

static tutti_status convert(changes *c, tutti_tensor *t, tutti_dtype dtype)
{
    const tutti_tensor *grad = tutti_tensor_grad(t);
    change *to = &c->at[c->n];

    if (!tti_is_floating(t->dtype) || t->dtype == dtype)
        return TUTTI_OK;
    *to = (change){ .of = t, .data = tti_raw_to(t, dtype) };
    c->n++;
    if (to->data != NULL && grad != NULL)
        to->grad = tti_raw_to(grad, dtype);
    return to->data == NULL || (grad != NULL && to->grad == NULL) ? tti_take_kept() : TUTTI_OK;
}

static void apply(const change *c)
{
    (void)tutti_tensor_set_grad(c->of, NULL);
    tti_swap_elements(c->of, c->data);
    tti_version_bump(c->of);
    if (c->grad != NULL)
        (void)tutti_tensor_set_grad(c->of, c->grad);
}

static tutti_status convert_all(changes *c, tutti_module *m, tutti_dtype dtype)
{
    int n_params, n_buffers;
    tutti_tensor *const *params = tutti_module_parameters(m, &n_params);
    tutti_tensor *const *buffers = tutti_module_buffers(m, &n_buffers);
    tutti_status st = tti_take_kept();

    if (st != TUTTI_OK)
        return st;
    c->at = tti_mem_zalloc((size_t)(n_params + n_buffers + 1) * sizeof *c->at);
    if (c->at == NULL)
        return tti_fail(TUTTI_E_NOMEM, "module_to: no memory for %d tensors", n_params + n_buffers);
    for (int i = 0; i < n_params && st == TUTTI_OK; i++)
        st = convert(c, params[i], dtype);
    for (int i = 0; i < n_buffers && st == TUTTI_OK; i++)
        st = convert(c, buffers[i], dtype);
    for (int i = 0; i < c->n && st == TUTTI_OK; i++)
        apply(&c->at[i]);
    for (int i = 0; i < c->n; i++) {
        tutti_tensor_release(c->at[i].data);
        tutti_tensor_release(c->at[i].grad);
    }
    tti_mem_free(c->at, (size_t)(n_params + n_buffers + 1) * sizeof *c->at);
    return st;
}

/* Whether a ddp has it, and knows its types. */
static bool is_wrapped(const tutti_module *m)
{
    for (; m != NULL; m = tti_module_parent(m))
        if (strcmp(tti_module_kind(m), "ddp") == 0)
            return true;
    return false;
}

tutti_status tutti_module_to(tutti_module *m, tutti_dtype dtype)
{
    changes c = { 0 };

    if (m == NULL)
        return tti_fail(TUTTI_E_ARG, "module_to: the module is NULL");
    if (!tti_is_floating(dtype))
        return tti_fail(TUTTI_E_ARG, "module_to: %s, and parameters are f16, bf16, f32 or f64", tutti_dtype_name(dtype));
    if (is_wrapped(m))
        return tti_fail(TUTTI_E_STATE, "module_to: a ddp has the module\n  next: convert it before it is wrapped");
    return convert_all(&c, m, dtype);
}

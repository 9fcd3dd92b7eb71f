/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ddp.c - wrapping a module, and taking everything off again.
 *
 * How     The parameters that require gradients are the reducer's, in the order of the module. All that this rank can do
 *         by itself is done before the reducer is made, so that its failures travel with the comparison of
 *         parameters, and no rank is left waiting for one that has failed.
 * True    A failed wrapping leaves the module as it was. */
#include "ddp/ddp.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

/* ---- the module that stands for the ddp ------------------------------------------------------- */

static tutti_tensor *wrapper_forward(tutti_module *m, tutti_tensor *x)
{
    return tutti_ddp_forward(tutti_module_context(m), x);
}

/* Whoever owns the wrapper frees it, and the module with it. */
static void wrapper_freed(void *ctx)
{
    ((tutti_ddp *)ctx)->wrapper = ((tutti_ddp *)ctx)->net = NULL;
}

static tutti_status wrap(tutti_ddp *ddp, tutti_module *module)
{
    tutti_module *wrapper;

    if (module == NULL)
        return tti_fail(TUTTI_E_ARG, "ddp: the module is NULL");
    if (tti_module_parent(module) != NULL)
        return strcmp(tti_module_kind(tti_module_parent(module)), "ddp") == 0
                   ? tti_fail(TUTTI_E_STATE, "ddp: the module is wrapped already\n  next: tutti_ddp_free() the other one")
                   : tti_fail(TUTTI_E_ARG, "ddp: the module is a child of '%s'\n  next: wrap it before it is added, and add "
                                           "tutti_ddp_module()", tti_module_kind(tti_module_parent(module)));
    wrapper = tutti_module_create("ddp", wrapper_forward, ddp, wrapper_freed);
    if (wrapper == NULL)
        return tti_take_kept();
    ddp->wrapper = wrapper;
    ddp->net = module;
    return tti_module_put_in(wrapper, "module", module);
}

static void unwrap(tutti_ddp *ddp)
{
    tutti_module *wrapper = ddp->wrapper;

    if (wrapper == NULL)
        return;
    tti_module_take_out(ddp->net);
    tti_module_take_out(wrapper);
    tutti_module_free(wrapper);
}

/* ---- parameters ------------------------------------------------------------------------------- */

bool tti_ddp_ignores(const tutti_ddp *ddp, const char *name)
{
    for (int i = 0; i < ddp->n_ignored; i++)
        if (strcmp(ddp->ignored[i], name) == 0)
            return true;
    return false;
}

static tutti_status take_names(tutti_ddp *ddp, const tutti_ddp_options *opts)
{
    if (opts->n_ignored < 0 || (opts->n_ignored > 0 && opts->ignored == NULL))
        return tti_fail(TUTTI_E_ARG, "ddp: a list of %d ignored names%s", opts->n_ignored,
                        opts->ignored == NULL ? " at NULL" : "");
    ddp->ignored = calloc((size_t)opts->n_ignored + 1, sizeof *ddp->ignored);
    for (int i = 0; i < opts->n_ignored && ddp->ignored != NULL; i++) {
        ddp->ignored[i] = opts->ignored[i] != NULL ? strdup(opts->ignored[i]) : NULL;
        if (ddp->ignored[i] == NULL)
            return tti_fail(opts->ignored[i] != NULL ? TUTTI_E_NOMEM : TUTTI_E_ARG, "ddp: ignored name %d is NULL", i);
        ddp->n_ignored++;
    }
    return ddp->ignored != NULL ? TUTTI_OK : tti_fail(TUTTI_E_NOMEM, "ddp: no memory for ignored names");
}

static tutti_status take_parameter(tutti_ddp *ddp, tutti_tensor *param, const char *name)
{
    tti_ddp_slot *s = &ddp->slots[ddp->n];

    if (tti_leaf_has_hook(param, TTI_HOOK_STEP, NULL))
        return tti_fail(TUTTI_E_STATE, "ddp: parameter '%s' is stepped in its backward, before it would be averaged\n"
                                       "  next: tutti_in_backward_free(), and tutti_ddp_register_fused_optim()", name);
    s->ddp = ddp;
    s->index = ddp->n;
    s->name = strdup(name);
    if (s->name == NULL)
        return tti_fail(TUTTI_E_NOMEM, "ddp: no memory for the name of parameter %d", ddp->n);
    s->param = tutti_tensor_retain(param);
    ddp->params[ddp->n++] = param;
    return tutti_tensor_register_backward_passed_hook(param, tti_ddp_on_gradient, s, &s->handle);
}

static tutti_status take_parameters(tutti_ddp *ddp)
{
    int n;
    tutti_tensor *const *params = tutti_module_parameters(ddp->net, &n);
    const char *const *names = tutti_module_parameter_names(ddp->net, &n);
    tutti_status st = tti_take_kept();

    if (st != TUTTI_OK)
        return st;
    ddp->slots = calloc((size_t)n + 1, sizeof *ddp->slots);
    ddp->params = calloc((size_t)n + 1, sizeof(tutti_tensor *));
    ddp->unused = calloc((size_t)n + 1, sizeof *ddp->unused);
    ddp->reached = calloc((size_t)n + 1, sizeof *ddp->reached);
    if (ddp->slots == NULL || ddp->params == NULL || ddp->unused == NULL || ddp->reached == NULL)
        return tti_fail(TUTTI_E_NOMEM, "ddp: no memory for %d parameters", n);
    for (int i = 0; i < n && st == TUTTI_OK; i++)
        if (tutti_tensor_requires_grad(params[i]) && !tti_ddp_ignores(ddp, names[i]))
            st = take_parameter(ddp, params[i], names[i]);
    return st;
}

/* ---- the reducer ------------------------------------------------------------------------------ */

/* Make it of the parameters, or, as this rank has failed, of none, so that the others hear of it. */
static tutti_status make_reducer(tutti_ddp *ddp, const tutti_ddp_options *opts, tutti_status ours)
{
    tutti_reducer_param *params = calloc((size_t)ddp->n + 1, sizeof *params);
    tutti_reducer_options ropts = TUTTI_REDUCER_OPTIONS;
    tutti_status st;

    for (int i = 0; i < ddp->n && params != NULL; i++)
        params[i] = (tutti_reducer_param){ .name = ddp->slots[i].name,
                                           .dtype = ddp->params[i]->dtype,
                                           .numel = ddp->params[i]->numel,
                                           .ndim = ddp->params[i]->nd,
                                           .sizes = ddp->params[i]->shape };
    ropts.group = ddp->group;
    ropts.bucket_cap_bytes = opts->bucket_cap_bytes;
    ropts.bucket_caps = opts->bucket_caps;
    ropts.n_bucket_caps = opts->n_bucket_caps;
    ropts.find_unused_parameters = opts->find_unused_parameters;
    ropts.static_graph = opts->static_graph;
    ropts.gradient_as_bucket_view = opts->gradient_as_bucket_view;
    ropts.skip_init_sync = opts->skip_init_sync;
    ropts.skip_all_reduce_unused_params = opts->skip_all_reduce_unused_params;
    ropts.name = ddp->net != NULL ? tti_module_kind(ddp->net) : NULL;
    st = tutti_reducer_create(params, ours == TUTTI_OK && params != NULL ? ddp->n : 0, &ropts, &ddp->reducer);
    free(params);
    return st;
}

/* Everything that can fail on this rank alone. */
static tutti_status prepare(tutti_ddp *ddp, tutti_module *module, const tutti_ddp_options *opts)
{
    tutti_status st = take_names(ddp, opts);

    if (st == TUTTI_OK)
        st = wrap(ddp, module);
    if (st == TUTTI_OK && (ddp->link = tti_ddp_link_make(ddp)) == NULL)
        st = tti_fail(TUTTI_E_NOMEM, "ddp: no memory for a handle");
    if (st == TUTTI_OK)
        st = take_parameters(ddp);
    return st == TUTTI_OK && opts->mixed_precision != NULL ? tti_ddp_mixed_make(ddp, opts->mixed_precision) : st;
}

/* With a type of its own for averages. The reducer is new, so all ranks come out of it alike. */
static tutti_status take_reduce_dtype(tutti_ddp *ddp)
{
    const tutti_dtype dtype = ddp->mixed != NULL ? ddp->mixed->o.reduce_dtype : TUTTI_F32;

    if (dtype == TUTTI_F32)
        return TUTTI_OK;
    return tutti_reducer_register_builtin_comm_hook(
        ddp->reducer, dtype == TUTTI_F16 ? TUTTI_HOOK_FP16_COMPRESS : TUTTI_HOOK_BF16_COMPRESS);
}

static void take_options(tutti_ddp *ddp, const tutti_ddp_options *opts)
{
    ddp->group = opts->group != NULL ? opts->group : tutti_current_group(); /* NULL may mean another one later */
    ddp->find_unused = opts->find_unused_parameters;
    ddp->static_graph = opts->static_graph;
    ddp->views = opts->gradient_as_bucket_view;
    ddp->broadcast_buffers = !opts->local_buffers;
    ddp->sync = ddp->buffers_due = true;
}

static tutti_status fill(tutti_ddp *ddp, tutti_module *module, const tutti_ddp_options *opts)
{
    char words[1024];
    tutti_status st, made;

    take_options(ddp, opts);
    st = prepare(ddp, module, opts);
    strncpy(words, tutti_last_error(), sizeof words - 1);
    words[sizeof words - 1] = '\0';
    made = make_reducer(ddp, opts, st);
    if (st != TUTTI_OK)
        return tti_fail(st, "%s", words);
    if (made == TUTTI_OK && !opts->skip_init_sync)
        made = tti_ddp_give_state(ddp, tutti_get_global_rank(ddp->group, 0));
    if (made == TUTTI_OK)
        made = take_reduce_dtype(ddp);
    if (made == TUTTI_OK)
        tti_ddp_mixed_begin(ddp);
    return made;
}

tutti_status tutti_ddp_create(tutti_module *module, const tutti_ddp_options *opts, tutti_ddp **ddp_out)
{
    const tutti_ddp_options none = TUTTI_DDP_OPTIONS;
    tutti_ddp *ddp;
    tutti_status st;

    if (ddp_out == NULL || (opts != NULL && opts->size != sizeof *opts))
        return tti_fail(TUTTI_E_ARG, "ddp: %s",
                        ddp_out == NULL ? "ddp_out is NULL" : "no options\n  next: begin with TUTTI_DDP_OPTIONS");
    ddp = calloc(1, sizeof *ddp);
    if (ddp == NULL)
        return tti_fail(TUTTI_E_NOMEM, "ddp: no memory");
    st = fill(ddp, module, opts != NULL ? opts : &none);
    if (st == TUTTI_OK)
        *ddp_out = ddp;
    else
        tutti_ddp_free(ddp);
    return st;
}

void tutti_ddp_free(tutti_ddp *ddp)
{
    if (ddp == NULL)
        return;
    tti_ddp_stand_down(ddp);
    tti_ddp_mixed_free(ddp);
    for (int i = 0; i < ddp->n; i++)
        if (ddp->slots[i].handle != 0)
            tutti_tensor_remove_hook(ddp->slots[i].param, ddp->slots[i].handle);
    if (ddp->link != NULL)
        ddp->link->ddp = NULL;
    tti_ddp_link_release(ddp->link);
    if (!tti_ddp_move_out(ddp))
        tti_log(TTI_LOG_ERROR, "ddp: no memory for gradients that lie in buckets: they are dropped");
    (void)tti_ddp_await_buffers(ddp);
    tutti_reducer_free(ddp->reducer);
    unwrap(ddp);
    for (int i = 0; i < ddp->n; i++) {
        tutti_tensor_release(ddp->slots[i].param);
        free(ddp->slots[i].name);
    }
    for (int i = 0; i < ddp->n_ignored; i++)
        free(ddp->ignored[i]);
    free(ddp->ignored);
    free(ddp->slots);
    free(ddp->params);
    free(ddp->unused);
    free(ddp->reached);
    free(ddp);
}

tutti_module *tutti_ddp_module(tutti_ddp *ddp)
{
    return ddp != NULL ? ddp->wrapper : NULL;
}

tutti_reducer *tutti_ddp_reducer(tutti_ddp *ddp)
{
    return ddp != NULL ? ddp->reducer : NULL;
}

tutti_status tutti_ddp_update_process_group(tutti_ddp *ddp, tutti_group *group)
{
    tutti_status st;

    if (ddp == NULL)
        return tti_fail(TUTTI_E_ARG, "ddp_update_process_group: the ddp is NULL");
    st = tutti_reducer_update_process_group(ddp->reducer, group);
    if (st != TUTTI_OK)
        return st;
    tti_ddp_stand_down(ddp);
    ddp->group = group != NULL ? group : tutti_current_group();
    ddp->buffers_due = true; /* the first of the new group gives its own */
    return TUTTI_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * buffers.c - the same values on all ranks: everything at first, buffers before the forwards that follow a step.
 *
 * How     What does not lie row by row travels as a copy that does. Inside of a scope of uneven inputs rank 0 may
 *         have run out: the highest rank that has inputs gives its buffers, and one number elects it, which says also
 *         whether they are due at all, as ranks that have run out cannot know.
 *         A hook of the program takes the place of the broadcast, before the forward or after it; what it has begun is
 *         waited for at the end of the backward, or, if there is none, before the next forward.
 * True    Whether buffers are due follows from the forward before, which is the same on all ranks. Lists are collected
 *         anew each time, as modules may get other buffers, in memory of the cache. */
#include "ddp/ddp.h"

#include <tutti/private.h>

/* ---- what there is ---------------------------------------------------------------------------- */

/* Tensors that are not ignored. */
typedef struct state_list {
    size_t bytes; /* of both arrays */
    tutti_tensor **tensors;
    const char **names;
    int n;
} state_list;

static void add(const tutti_ddp *ddp, state_list *list, tutti_tensor *const *tensors, const char *const *names, int n)
{
    for (int i = 0; i < n; i++) {
        if (tti_ddp_ignores(ddp, names[i]))
            continue;
        list->tensors[list->n] = tensors[i];
        list->names[list->n++] = names[i];
    }
}

/* Buffers, after all parameters if they are asked for. */
static tutti_status collect(tutti_ddp *ddp, bool parameters, state_list *list_out)
{
    int n_params = 0, n_buffers = 0;
    tutti_tensor *const *buffers = tutti_module_buffers(ddp->net, &n_buffers);
    tutti_tensor *const *params = parameters ? tutti_module_parameters(ddp->net, &n_params) : NULL;
    const size_t n = (size_t)(n_params + n_buffers) + 1;
    state_list list = { .bytes = 2 * n * sizeof(void *) };
    tutti_status st = tti_take_kept();

    if (st != TUTTI_OK)
        return st;
    list.tensors = tti_mem_alloc(list.bytes);
    if (list.tensors == NULL)
        return tti_fail(TUTTI_E_NOMEM, "ddp: no memory for a list of %zu tensors", n);
    list.names = (const char **)(list.tensors + n);
    if (parameters)
        add(ddp, &list, params, tutti_module_parameter_names(ddp->net, &n_params), n_params);
    add(ddp, &list, buffers, tutti_module_buffer_names(ddp->net, &n_buffers), n_buffers);
    *list_out = list;
    return TUTTI_OK;
}

static void release(state_list *list)
{
    tti_mem_free(list->tensors, list->bytes);
}

/* ---- on the way ------------------------------------------------------------------------------- */

/* A span over each tensor, or over a copy that lies row by row; rows get what is to be released. */
static tutti_status spans_of(tutti_tensor *const *tensors, int n, tutti_span *spans, tutti_tensor **rows)
{
    for (int i = 0; i < n; i++) {
        rows[i] = tti_raw_contiguous(tensors[i]);
        if (rows[i] == NULL)
            return tti_take_kept();
        spans[i] = tutti_tensor_span(rows[i]);
    }
    return TUTTI_OK;
}

static tutti_status take_back(tutti_tensor *const *tensors, int n, tutti_tensor *const *rows)
{
    for (int i = 0; i < n; i++) {
        if (rows[i] != tensors[i] && tti_raw_copy_(tensors[i], rows[i]) != TUTTI_OK)
            return tti_take_kept();
        tti_version_bump(tensors[i]);
    }
    return TUTTI_OK;
}

/* Give all ranks the tensors of one, a global rank. */
static tutti_status send_all(tutti_ddp *ddp, tutti_tensor *const *tensors, int n, int src)
{
    const size_t room = (size_t)n + 1;
    tutti_span *spans = tti_mem_zalloc(room * sizeof *spans);
    tutti_tensor **rows = tti_mem_zalloc(room * sizeof *rows);
    tutti_status st = TUTTI_OK;

    if (spans == NULL || rows == NULL)
        st = tti_fail(TUTTI_E_NOMEM, "ddp: no memory to send %d tensors", n);
    if (st == TUTTI_OK)
        st = spans_of(tensors, n, spans, rows);
    if (st == TUTTI_OK)
        st = tutti_broadcast_coalesced(spans, n, 0, src, ddp->group);
    if (st == TUTTI_OK)
        st = take_back(tensors, n, rows);
    for (int i = 0; i < n && rows != NULL; i++)
        tutti_tensor_release(rows[i]);
    tti_mem_free(rows, room * sizeof *rows);
    tti_mem_free(spans, room * sizeof *spans);
    return st;
}

tutti_status tti_ddp_give_state(tutti_ddp *ddp, int src)
{
    state_list list = { 0 };
    tutti_status st = collect(ddp, true, &list);

    if (st != TUTTI_OK)
        return st;
    st = send_all(ddp, list.tensors, list.n, src);
    release(&list);
    return st;
}

/* The rank whose buffers all take; -1: they are not due. */
static tutti_status elect(tutti_ddp *ddp, bool active, int *rank_out)
{
    int32_t rank = active && ddp->buffers_due ? tutti_get_rank(ddp->group) : -1;
    tutti_status st = TUTTI_OK;

    if (ddp->join != NULL)
        st = tutti_all_reduce(TUTTI_SPAN(&rank, 1), TUTTI_MAX, ddp->group);
    else if (rank > 0)
        rank = 0;
    *rank_out = rank;
    return st;
}

/* ---- hooks of the program --------------------------------------------------------------------- */

static tutti_status run_hook(tutti_ddp *ddp, const state_list *list)
{
    tutti_future *future = NULL;
    tutti_status st = tti_ddp_await_buffers(ddp); /* of a forward without a backward */

    if (st != TUTTI_OK)
        return st;
    st = ddp->buffer_hook(ddp->buffer_state, list->names, list->tensors, list->n, &future);
    if (st == TUTTI_OK)
        ddp->buffers_under_way = future;
    for (int i = 0; i < list->n; i++)
        tti_version_bump(list->tensors[i]);
    return st;
}

tutti_status tti_ddp_await_buffers(tutti_ddp *ddp)
{
    tutti_future *future = ddp->buffers_under_way;
    tutti_status st = future != NULL ? tutti_future_wait(future, 0) : TUTTI_OK;

    tutti_future_free(future);
    ddp->buffers_under_way = NULL;
    return st;
}

tutti_status tti_ddp_buffers_after(tutti_ddp *ddp)
{
    const bool asked = ddp->buffer_hook != NULL && ddp->buffer_place == TUTTI_BUFFER_HOOK_AFTER_FORWARD;
    state_list list = { 0 };
    tutti_status st;

    if (!asked || !ddp->broadcast_buffers || !ddp->buffers_due)
        return TUTTI_OK;
    st = collect(ddp, false, &list);
    if (st != TUTTI_OK)
        return st;
    if (list.n > 0)
        st = run_hook(ddp, &list);
    release(&list);
    return st;
}

tutti_status tutti_ddp_register_buffer_hook(tutti_ddp *ddp, tutti_buffer_hook hook, void *state,
                                            tutti_buffer_hook_place place)
{
    if (ddp == NULL || (place != TUTTI_BUFFER_HOOK_AFTER_FORWARD && place != TUTTI_BUFFER_HOOK_BEFORE_FORWARD))
        return tti_fail(TUTTI_E_ARG, "ddp_register_buffer_hook: %s", ddp == NULL ? "the ddp is NULL" : "no such place");
    if (hook != NULL && ddp->is_joinable)
        return tti_fail(TUTTI_E_UNSUPPORTED, "ddp_register_buffer_hook: inputs may be uneven, and a rank without some could "
                                             "not play along");
    ddp->buffer_hook = hook;
    ddp->buffer_state = state;
    ddp->buffer_place = place;
    return TUTTI_OK;
}

/* ---- before a forward ------------------------------------------------------------------------- */

/* The buffers of the rank that has to give them; nothing, if they are not due. */
static tutti_status take_elected(tutti_ddp *ddp, const state_list *list, bool active)
{
    int rank = -1;
    tutti_status st = elect(ddp, active, &rank);

    if (st != TUTTI_OK || rank < 0)
        return st;
    return ddp->buffer_hook != NULL ? run_hook(ddp, list)
                                    : send_all(ddp, list->tensors, list->n, tutti_get_global_rank(ddp->group, rank));
}

tutti_status tti_ddp_sync_buffers(tutti_ddp *ddp, bool active, bool recording)
{
    const bool later = ddp->buffer_hook != NULL && ddp->buffer_place == TUTTI_BUFFER_HOOK_AFTER_FORWARD;
    state_list list = { 0 };
    tutti_status st;

    if (!ddp->broadcast_buffers || later || (ddp->join != NULL && !recording))
        return TUTTI_OK;
    st = collect(ddp, false, &list);
    if (st != TUTTI_OK)
        return st;
    if (list.n > 0)
        st = take_elected(ddp, &list, active);
    release(&list);
    return st;
}

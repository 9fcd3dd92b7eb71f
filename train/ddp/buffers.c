/* SPDX-License-Identifier: BSD-3-Clause
 *
 * buffers.c - the same values on all ranks: everything at first, buffers before the forwards that follow a step.
 *
 * How     What does not lie row by row travels as a copy that does. Inside of a scope of uneven inputs rank 0 may
 *         have run out: the highest rank that has inputs gives its buffers, and one number elects it, which says also
 *         whether they are due at all, as ranks that have run out cannot know.
 * True    Whether buffers are due follows from the forward before, which is the same on all ranks. */
#include "ddp/ddp.h"

#include <stdlib.h>
#include <tutti/private.h>

/* ---- what there is ---------------------------------------------------------------------------- */

/* Add those of one kind that are not ignored. */
static int add(const tutti_ddp *ddp, tutti_tensor *const *tensors, const char *const *names, int n,
               tutti_tensor **list, int at)
{
    for (int i = 0; i < n; i++)
        if (!tti_ddp_ignores(ddp, names[i]))
            list[at++] = tensors[i];
    return at;
}

static tutti_status collect(tutti_ddp *ddp, bool parameters, tutti_tensor ***tensors_out, int *n_out)
{
    tutti_tensor **list;
    int n_params = 0, n_buffers, at = 0;

    (void)tutti_module_buffers(ddp->net, &n_buffers);
    if (parameters)
        (void)tutti_module_parameters(ddp->net, &n_params);
    list = calloc((size_t)(n_params + n_buffers) + 1, sizeof *list);
    if (list == NULL || tti_kept() != TUTTI_OK) {
        free(list);
        return tti_kept() != TUTTI_OK ? tti_take_kept() : tti_fail(TUTTI_E_NOMEM, "ddp: no memory for a list of buffers");
    }
    if (parameters)
        at = add(ddp, tutti_module_parameters(ddp->net, &n_params),
                 tutti_module_parameter_names(ddp->net, &n_params), n_params, list, at);
    at = add(ddp, tutti_module_buffers(ddp->net, &n_buffers), tutti_module_buffer_names(ddp->net, &n_buffers),
             n_buffers, list, at);
    *tensors_out = list;
    *n_out = at;
    return TUTTI_OK;
}

tutti_status tti_ddp_buffers(tutti_ddp *ddp, tutti_tensor ***buffers_out, int *n_out)
{
    return collect(ddp, false, buffers_out, n_out);
}

tutti_status tti_ddp_state(tutti_ddp *ddp, tutti_tensor ***tensors_out, int *n_out)
{
    return collect(ddp, true, tensors_out, n_out);
}

/* ---- on the way ------------------------------------------------------------------------------- */

tutti_status tti_ddp_broadcast(tutti_ddp *ddp, tutti_tensor *const *tensors, int n, int src)
{
    tutti_span *spans = calloc((size_t)n + 1, sizeof *spans);
    tutti_tensor **rows = calloc((size_t)n + 1, sizeof *rows); /* themselves, or copies */
    tutti_status st = TUTTI_OK;

    if (spans == NULL || rows == NULL) {
        st = tti_fail(TUTTI_E_NOMEM, "ddp: no memory to send %d tensors", n);
        goto out;
    }
    for (int i = 0; i < n && st == TUTTI_OK; i++) {
        rows[i] = tti_raw_contiguous(tensors[i]);
        if (rows[i] != NULL)
            spans[i] = tutti_tensor_span(rows[i]);
        st = tti_take_kept();
    }
    if (st == TUTTI_OK)
        st = tutti_broadcast_coalesced(spans, n, 0, src, ddp->group);
    for (int i = 0; i < n && st == TUTTI_OK; i++) {
        if (rows[i] != tensors[i] && tti_raw_copy_(tensors[i], rows[i]) != TUTTI_OK)
            st = tti_take_kept();
        tti_version_bump(tensors[i]);
    }

out:
    for (int i = 0; i < n && rows != NULL; i++)
        tutti_tensor_release(rows[i]);
    free(rows);
    free(spans);
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

tutti_status tti_ddp_sync_buffers(tutti_ddp *ddp, bool active, bool recording)
{
    tutti_tensor **buffers = NULL;
    tutti_status st = TUTTI_OK;
    int n = 0, rank = -1;

    if (!ddp->broadcast_buffers || (ddp->join != NULL && !recording))
        return TUTTI_OK;
    st = tti_ddp_buffers(ddp, &buffers, &n);
    if (st == TUTTI_OK && n > 0)
        st = elect(ddp, active, &rank);
    if (st == TUTTI_OK && rank >= 0)
        st = tti_ddp_broadcast(ddp, buffers, n, tutti_get_global_rank(ddp->group, rank));
    free(buffers);
    return st;
}

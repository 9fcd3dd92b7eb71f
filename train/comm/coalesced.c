/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coalesced.c - lists of tensors in one collective, out of place, without gradients.
 *
 * How     Each list is one operation of the group (tutti/coalesce.h) and one deferred, which all
 *         results share: whoever looks at the first waits for all. */
#include "autograd/autograd.h"
#include "comm/comm.h"

#include <stdlib.h>
#include <tutti/coalesce.h>

/* A list being made. */
typedef struct list {
    const char *what;
    int n;
    tutti_tensor **ys; /* the caller's, all NULL at first, owned until list_end() */
    tutti_span *spans; /* [n] of the results, [n] of the inputs */
    tti_deferred *d;
} list;

static tutti_status check_inputs(const char *what, tutti_tensor *const *xs, int n)
{
    if (xs == NULL || n < 1)
        return tti_refuse(TUTTI_E_ARG, what, "%d tensors%s", n, xs == NULL ? " at NULL" : "");
    for (int i = 0; i < n; i++) {
        if (xs[i] == NULL)
            return tti_refuse_null(what);
        if (tutti_is_grad_enabled() && tutti_tensor_requires_grad(xs[i]))
            return tti_refuse(TUTTI_E_STATE, what,
                              "input %d requires gradients, which would be lost"
                              "\n  next: tutti_tensor_detach() it, or reduce one by one",
                              i);
    }
    return TUTTI_OK;
}

static tutti_status list_begin(list *l, const char *what, tutti_tensor **ys,
                               tutti_tensor *const *xs, int n, tutti_group *group, tti_team *team)
{
    *l = (list){ .what = what, .n = n, .ys = ys };
    for (int i = 0; i < n && ys != NULL; i++)
        ys[i] = NULL;
    if (ys == NULL)
        return tti_refuse(TUTTI_E_ARG, what, "outs_out is NULL");
    if (check_inputs(what, xs, n) != TUTTI_OK || !tti_team_of(what, group, team))
        return tti_refused();
    l->spans = malloc(2 * (size_t)n * sizeof *l->spans);
    if (l->spans == NULL)
        return tti_refuse(TUTTI_E_NOMEM, what, "no memory for a list of %d", n);
    l->d = tti_deferred_make(what, n);
    return l->d != NULL ? TUTTI_OK : tti_refused();
}

/* y and keep, either of which may be NULL for a failure that is kept, become entry i. */
static bool put(list *l, int i, tutti_tensor *y, tutti_tensor *keep, bool needs_keep)
{
    l->ys[i] = y;
    l->d->keep[i] = keep;
    if (y == NULL || (needs_keep && keep == NULL))
        return false;
    l->spans[i] = tutti_tensor_span(y);
    if (keep != NULL)
        l->spans[l->n + i] = tutti_tensor_span(keep);
    return true;
}

/* The list was begun with status, or ok is false: it could not be. */
static tutti_status list_end(list *l, bool ok, tutti_status status)
{
    if (l->d != NULL && ok) {
        status = tti_deferred_end_list(l->d, status, l->ys, l->n);
    } else {
        for (int i = 0; i < l->n && l->ys != NULL; i++) {
            tutti_tensor_release(l->ys[i]);
            l->ys[i] = NULL;
        }
        (void)tti_deferred_give_up(l->d, NULL);
        status = tti_refused();
    }
    free(l->spans);
    for (int i = 0; i < l->n && status == TUTTI_OK; i++)
        if (tti_temp(l->ys[i]) == NULL) {
            l->ys[i] = NULL;
            status = tti_refused();
        }
    return status;
}

tutti_status tutti_tensor_all_reduce_coalesced(tutti_tensor *const *xs, int n, tutti_op op,
                                               tutti_group *group, tutti_tensor **ys_out)
{
    list l;
    tti_team team;
    bool ok = list_begin(&l, "all_reduce_coalesced", ys_out, xs, n, group, &team) == TUTTI_OK;
    tutti_status status = TUTTI_OK;

    for (int i = 0; i < n && ok; i++)
        ok = put(&l, i, tti_raw_clone(xs[i]), NULL, false);
    if (ok)
        status = tutti_all_reduce_coalesced_async(l.spans, n, op, group, &l.d->work);
    return list_end(&l, ok, status);
}

tutti_status tutti_tensor_all_gather_into_tensor_coalesced(tutti_tensor *const *xs, int n,
                                                           tutti_group *group,
                                                           tutti_tensor **ys_out)
{
    list l;
    tti_team team;
    bool ok =
        list_begin(&l, "all_gather_into_tensor_coalesced", ys_out, xs, n, group, &team) == TUTTI_OK;
    tutti_status status = TUTTI_OK;

    for (int i = 0; i < n && ok; i++) {
        int64_t shape[TUTTI_MAX_DIMS] = { 1 };

        for (int k = 0; k < xs[i]->nd; k++)
            shape[k] = xs[i]->shape[k];
        shape[0] *= team.size;
        ok = put(&l, i, tti_raw_empty(xs[i]->dtype, xs[i]->nd > 0 ? xs[i]->nd : 1, shape),
                 tti_raw_clone(xs[i]), true);
    }
    if (ok)
        status = tutti_all_gather_into_tensor_coalesced_async(l.spans, l.spans + n, n, group,
                                                              &l.d->work);
    return list_end(&l, ok, status);
}

tutti_status tutti_tensor_reduce_scatter_tensor_coalesced(tutti_tensor *const *xs, int n,
                                                          tutti_op op, const int *scatter_dims,
                                                          tutti_group *group, tutti_tensor **ys_out)
{
    static const char what[] = "reduce_scatter_tensor_coalesced";
    list l;
    tti_team team;
    bool ok = list_begin(&l, what, ys_out, xs, n, group, &team) == TUTTI_OK;
    tutti_status status = TUTTI_OK;

    for (int i = 0; i < n && ok; i++) {
        int64_t shape[TUTTI_MAX_DIMS];
        int nd, dim = scatter_dims != NULL ? scatter_dims[i] : 0;

        ok = tti_part_shape(what, xs[i], &dim, team.size, &nd, shape) &&
             put(&l, i, tti_raw_empty(xs[i]->dtype, nd, shape),
                 tti_scatter_parts(xs[i], dim, team.size), true);
    }
    if (ok)
        status = tutti_reduce_scatter_tensor_coalesced_async(l.spans, l.spans + n, n, op, group,
                                                             &l.d->work);
    return list_end(&l, ok, status);
}

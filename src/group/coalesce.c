/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coalesce.c - the public collectives of several buffers at once.
 *
 * Each entry goes the way of the collective of one buffer, with a bundle to be added to instead of a
 * queue to be issued on: so it has the same checks. */
#include "group/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <tutti/coalesce.h>
#include <tutti/private.h>

enum { NAME_MAX_BYTES = 64 };

static tutti_status begin(const char *what, tutti_group *group, int n, bool there, tti_how h,
                          tutti_group **group_out)
{
    tutti_status st = tti_collective_begin(what, group, h, group_out);

    if (st != TUTTI_OK || *group_out == NULL)
        return st;
    if (n < 1 || !there)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': there are %d buffers%s", what,
                        (*group_out)->name, n, there ? "" : " at NULL");
    return TUTTI_OK;
}

/* What entry i is called in words. */
static const char *name_entry(char out[NAME_MAX_BYTES], const char *what, int i)
{
    snprintf(out, NAME_MAX_BYTES, "%s[%d]", what, i);
    return out;
}

static tutti_status finish(tti_bundle *bundle, tutti_status st, tti_how h)
{
    if (st == TUTTI_OK)
        st = tti_bundle_issue(bundle, h);
    tti_bundle_release(bundle);
    return st;
}

static tutti_status all_reduce(const tutti_span *bufs, int n_bufs, tutti_op op, tutti_group *group,
                               tti_how h)
{
    const char  *what = "all_reduce_coalesced";
    tutti_group *g = NULL;
    tutti_status st = begin(what, group, n_bufs, bufs != NULL, h, &g);
    char         name[NAME_MAX_BYTES];
    tti_bundle   bundle;
    int          i;

    if (st != TUTTI_OK || g == NULL)
        return st;
    tti_bundle_init(&bundle, g);
    for (i = 0; i < n_bufs && st == TUTTI_OK; i++)
        st = tti_all_reduce_span(name_entry(name, what, i), g, bufs[i], op, tti_into_bundle(&bundle));
    return finish(&bundle, st, h);
}

tutti_status tutti_all_reduce_coalesced(const tutti_span *bufs, int n_bufs, tutti_op op,
                                        tutti_group *group)
{
    return all_reduce(bufs, n_bufs, op, group, tti_blocking());
}

tutti_status tutti_all_reduce_coalesced_async(const tutti_span *bufs, int n_bufs, tutti_op op,
                                              tutti_group *group, tutti_work **work_out)
{
    return all_reduce(bufs, n_bufs, op, group, tti_async(work_out));
}

/* ---- all_gather ---- */

static tutti_status check_lists(const tutti_group *group, const char *what,
                                const tutti_span *const *outs, int n_outs)
{
    int r;

    if (n_outs != group->size || outs == NULL)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': outs has %d lists%s, the group has %d members",
                        what, group->name, n_outs, outs == NULL ? " (NULL)" : "", group->size);
    for (r = 0; r < n_outs; r++)
        if (outs[r] == NULL)
            return tti_fail(TUTTI_E_ARG, "%s on group '%s': outs[%d] is NULL", what, group->name, r);
    return TUTTI_OK;
}

/* Entry i of every rank's list is what one all_gather fills. */
static tutti_status add_columns(tti_bundle *bundle, const char *what, const tutti_span *const *outs,
                                const tutti_span *ins, int n_ins)
{
    tutti_group *g = bundle->group;
    tutti_span  *column = malloc((size_t)g->size * sizeof *column);
    tutti_status st = TUTTI_OK;
    char         name[NAME_MAX_BYTES];
    int          i, r;

    if (column == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a list of %d buffers", g->size);
    for (i = 0; i < n_ins && st == TUTTI_OK; i++) {
        for (r = 0; r < g->size; r++)
            column[r] = outs[r][i];
        st = tti_all_gather_list(name_entry(name, what, i), "outs", g, column, g->size, ins[i],
                                 tti_into_bundle(bundle));
    }
    free(column);
    return st;
}

static tutti_status all_gather(const tutti_span *const *outs, int n_outs, const tutti_span *ins,
                               int n_ins, tutti_group *group, tti_how h)
{
    const char  *what = "all_gather_coalesced";
    tutti_group *g = NULL;
    tutti_status st = begin(what, group, n_ins, ins != NULL, h, &g);
    tti_bundle   bundle;

    if (st != TUTTI_OK || g == NULL)
        return st;
    tti_bundle_init(&bundle, g);
    st = check_lists(g, what, outs, n_outs);
    if (st == TUTTI_OK)
        st = add_columns(&bundle, what, outs, ins, n_ins);
    return finish(&bundle, st, h);
}

tutti_status tutti_all_gather_coalesced(const tutti_span *const *outs, int n_outs,
                                        const tutti_span *ins, int n_ins, tutti_group *group)
{
    return all_gather(outs, n_outs, ins, n_ins, group, tti_blocking());
}

tutti_status tutti_all_gather_coalesced_async(const tutti_span *const *outs, int n_outs,
                                              const tutti_span *ins, int n_ins, tutti_group *group,
                                              tutti_work **work_out)
{
    return all_gather(outs, n_outs, ins, n_ins, group, tti_async(work_out));
}

/* ---- pairs of buffers ---- */

static tutti_status all_gather_into(const tutti_span *outs, const tutti_span *ins, int n,
                                    tutti_group *group, tti_how h)
{
    const char  *what = "all_gather_into_tensor_coalesced";
    tutti_group *g = NULL;
    tutti_status st = begin(what, group, n, outs != NULL && ins != NULL, h, &g);
    char         name[NAME_MAX_BYTES];
    tti_bundle   bundle;
    int          i;

    if (st != TUTTI_OK || g == NULL)
        return st;
    tti_bundle_init(&bundle, g);
    for (i = 0; i < n && st == TUTTI_OK; i++)
        st = tti_all_gather_into_span(name_entry(name, what, i), g, outs[i], ins[i],
                                      tti_into_bundle(&bundle));
    return finish(&bundle, st, h);
}

tutti_status tutti_all_gather_into_tensor_coalesced(const tutti_span *outs, const tutti_span *ins,
                                                    int n, tutti_group *group)
{
    return all_gather_into(outs, ins, n, group, tti_blocking());
}

tutti_status tutti_all_gather_into_tensor_coalesced_async(const tutti_span *outs,
                                                          const tutti_span *ins, int n,
                                                          tutti_group *group, tutti_work **work_out)
{
    return all_gather_into(outs, ins, n, group, tti_async(work_out));
}

static tutti_status reduce_scatter(const tutti_span *outs, const tutti_span *ins, int n, tutti_op op,
                                   tutti_group *group, tti_how h)
{
    const char  *what = "reduce_scatter_tensor_coalesced";
    tutti_group *g = NULL;
    tutti_status st = begin(what, group, n, outs != NULL && ins != NULL, h, &g);
    char         name[NAME_MAX_BYTES];
    tti_bundle   bundle;
    int          i;

    if (st != TUTTI_OK || g == NULL)
        return st;
    tti_bundle_init(&bundle, g);
    for (i = 0; i < n && st == TUTTI_OK; i++)
        st = tti_reduce_scatter_span(name_entry(name, what, i), g, outs[i], ins[i], op,
                                     tti_into_bundle(&bundle));
    return finish(&bundle, st, h);
}

tutti_status tutti_reduce_scatter_tensor_coalesced(const tutti_span *outs, const tutti_span *ins,
                                                   int n, tutti_op op, tutti_group *group)
{
    return reduce_scatter(outs, ins, n, op, group, tti_blocking());
}

tutti_status tutti_reduce_scatter_tensor_coalesced_async(const tutti_span *outs,
                                                         const tutti_span *ins, int n, tutti_op op,
                                                         tutti_group *group, tutti_work **work_out)
{
    return reduce_scatter(outs, ins, n, op, group, tti_async(work_out));
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * uneven.c - collectives whose parts have other sizes from rank to rank: gather_v and scatter_v, and
 * the forms with one span and counts.
 *
 * Where every rank has all sizes (all_gather, reduce_scatter) they enter the call's fingerprint. Of
 * gather_v and scatter_v only the root has: they are an all_to_all in which one rank takes, or one
 * gives, and sizes are compared pair by pair before data moves. */
#include "group/lists.h"

#include <stdlib.h>
#include <tutti/private.h>

static const char *const into_v = "all_gather_into_tensor_v";
static const char *const scatter_tensor_v = "reduce_scatter_tensor_v";

/* ---- one span, and counts ---- */

static tutti_status check_counts(const tutti_group *group, const char *what, const int64_t *counts)
{
    if (counts != NULL)
        return TUTTI_OK;
    return tti_fail(TUTTI_E_ARG, "%s on group '%s': counts is NULL\n  next: pass one for each of %d members",
                    what, group->name, group->size);
}

/* part is a rank's own, whole has everybody's. */
static tutti_status check_flat(const tutti_group *group, const char *what, tutti_span out,
                               tutti_span in, const char *whole_name, const int64_t *counts)
{
    const tutti_span whole = whole_name[0] == 'o' ? out : in;
    tutti_status     st = tti_check_span(group, what, "out", out);

    if (st == TUTTI_OK)
        st = tti_check_span(group, what, "in", in);
    if (st == TUTTI_OK)
        st = tti_check_dtypes(group, what, out, in);
    if (st == TUTTI_OK)
        st = check_counts(group, what, counts);
    return st == TUTTI_OK ? tti_check_splits(group, what, whole_name, whole, "counts", counts) : st;
}

tutti_status tti_all_gather_into_v_span(const char *what, tutti_group *group, tutti_span out, tutti_span in,
                                        const int64_t *counts, tti_how h)
{
    tti_parts    parts;
    tutti_status st = check_flat(group, what, out, in, "out", counts);

    if (st == TUTTI_OK)
        st = tti_parts_init(&parts, group, out, counts);
    if (st != TUTTI_OK)
        return st;
    st = tti_all_gather_list(what, "part of out", group, parts.spans, group->size, in, h);
    tti_parts_release(&parts);
    return st;
}

static tutti_status all_gather_into_v(tutti_span out, tutti_span in, const int64_t *counts,
                                      tutti_group *group, tti_how h)
{
    tutti_group *g = NULL;
    tutti_status st = tti_collective_begin(into_v, group, h, &g);

    if (st != TUTTI_OK || g == NULL)
        return st;
    return tti_all_gather_into_v_span(into_v, g, out, in, counts, h);
}

tutti_status tutti_all_gather_into_tensor_v(tutti_span out, tutti_span in, const int64_t *counts,
                                            tutti_group *group)
{
    return all_gather_into_v(out, in, counts, group, tti_blocking());
}

tutti_status tutti_all_gather_into_tensor_v_async(tutti_span out, tutti_span in,
                                                  const int64_t *counts, tutti_group *group,
                                                  tutti_work **work_out)
{
    return all_gather_into_v(out, in, counts, group, tti_async(work_out));
}

static tutti_status reduce_scatter_v(tutti_span out, tutti_span in, const int64_t *counts,
                                     tutti_op op, tutti_group *group, tti_how h)
{
    tutti_group *g = NULL;
    tutti_status st = tti_collective_begin(scatter_tensor_v, group, h, &g);
    tti_parts    parts;

    if (st == TUTTI_OK && g != NULL)
        st = check_flat(g, scatter_tensor_v, out, in, "in", counts);
    if (st != TUTTI_OK || g == NULL)
        return st;
    st = tti_parts_init(&parts, g, in, counts);
    if (st != TUTTI_OK)
        return st;
    st = tti_reduce_scatter_list(scatter_tensor_v, "part of in", g, out, parts.spans, g->size, op, h);
    tti_parts_release(&parts);
    return st;
}

tutti_status tutti_reduce_scatter_tensor_v(tutti_span out, tutti_span in, const int64_t *counts,
                                           tutti_op op, tutti_group *group)
{
    return reduce_scatter_v(out, in, counts, op, group, tti_blocking());
}

tutti_status tutti_reduce_scatter_tensor_v_async(tutti_span out, tutti_span in,
                                                 const int64_t *counts, tutti_op op,
                                                 tutti_group *group, tutti_work **work_out)
{
    return reduce_scatter_v(out, in, counts, op, group, tti_async(work_out));
}

/* ---- gather_v and scatter_v ---- */

/* The part is given to the root, or taken from it; the list is the root's other side. */
static tutti_status issue_rooted(tutti_group *group, tutti_call_kind kind, tutti_span part,
                                 const tutti_span *list, int root, tti_how h)
{
    const bool   gathers = kind == TUTTI_CALL_GATHER_V;
    const int    n = group->size;
    tutti_call   call = tti_call_of(kind, part.dtype, 0, part.device);
    tti_arrays   a;
    tutti_status st = tti_arrays_init(&a, n);
    int          r;

    if (st != TUTTI_OK)
        return st;
    for (r = 0; r < n; r++) {
        const tutti_span own = r == root ? part : tutti_span_of(NULL, 0, part.dtype);
        const tutti_span other = root == group->rank ? list[r] : tutti_span_of(NULL, 0, part.dtype);

        a.ins[r] = gathers ? own.data : other.data;
        a.in_counts[r] = gathers ? own.count : other.count;
        a.list[r] = gathers ? other.data : own.data;
        a.list_counts[r] = gathers ? other.count : own.count;
    }
    call.root = root;
    call.n_parts = n;
    call.list = a.list;
    call.list_counts = a.list_counts;
    call.ins = a.ins;
    call.in_counts = a.in_counts;
    st = tti_collective_issue(group, &call, n, h);
    tti_arrays_release(&a);
    return st;
}

static tutti_status gather_v(const tutti_span *outs, int n_outs, tutti_span in, int dst,
                             tutti_group *group, tti_how h)
{
    tutti_group *g = NULL;
    tutti_status st = tti_collective_begin("gather_v", group, h, &g);
    int          root = -1;

    if (st == TUTTI_OK && g != NULL)
        st = tti_check_root(g, "gather_v", "dst", dst, &root);
    if (st == TUTTI_OK && g != NULL)
        st = tti_check_span(g, "gather_v", "in", in);
    if (st == TUTTI_OK && g != NULL)
        st = tti_check_rooted(g, "gather_v", "outs", outs, n_outs, in, root, tti_check_parts);
    if (st != TUTTI_OK || g == NULL)
        return st;
    return issue_rooted(g, TUTTI_CALL_GATHER_V, in, outs, root, h);
}

tutti_status tutti_gather_v(const tutti_span *outs, int n_outs, tutti_span in, int dst,
                            tutti_group *group)
{
    return gather_v(outs, n_outs, in, dst, group, tti_blocking());
}

tutti_status tutti_gather_v_async(const tutti_span *outs, int n_outs, tutti_span in, int dst,
                                  tutti_group *group, tutti_work **work_out)
{
    return gather_v(outs, n_outs, in, dst, group, tti_async(work_out));
}

static tutti_status scatter_v(tutti_span out, const tutti_span *ins, int n_ins, int src,
                              tutti_group *group, tti_how h)
{
    tutti_group *g = NULL;
    tutti_status st = tti_collective_begin("scatter_v", group, h, &g);
    int          root = -1;

    if (st == TUTTI_OK && g != NULL)
        st = tti_check_root(g, "scatter_v", "src", src, &root);
    if (st == TUTTI_OK && g != NULL)
        st = tti_check_span(g, "scatter_v", "out", out);
    if (st == TUTTI_OK && g != NULL)
        st = tti_check_rooted(g, "scatter_v", "ins", ins, n_ins, out, root, tti_check_parts);
    if (st != TUTTI_OK || g == NULL)
        return st;
    return issue_rooted(g, TUTTI_CALL_SCATTER_V, out, ins, root, h);
}

tutti_status tutti_scatter_v(tutti_span out, const tutti_span *ins, int n_ins, int src,
                             tutti_group *group)
{
    return scatter_v(out, ins, n_ins, src, group, tti_blocking());
}

tutti_status tutti_scatter_v_async(tutti_span out, const tutti_span *ins, int n_ins, int src,
                                   tutti_group *group, tutti_work **work_out)
{
    return scatter_v(out, ins, n_ins, src, group, tti_async(work_out));
}

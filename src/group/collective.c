/* SPDX-License-Identifier: BSD-3-Clause
 *
 * collective.c - the public collectives: arguments in, a checked call out.
 *
 * Every collective is one static function for its blocking and its asynchronous form: it resolves
 * the group, checks, fills a tutti_call in group ranks, and issues it. A failed check touches
 * nothing and takes no number, so the other ranks are left waiting, as in torch. */
#include "group/bundle.h"
#include "group/lists.h"
#include "group/scope.h"

#include <stdlib.h>
#include <tutti/private.h>

/* ---- shared steps ---- */

tutti_status tti_collective_begin(const char *what, tutti_group *group, tti_how h,
                                  tutti_group **group_out)
{
    tutti_status st;

    if (h.async && h.work_out == NULL)
        return tti_fail(TUTTI_E_ARG, "%s_async: work_out is NULL", what);
    st = tti_group_resolve(group, what, group_out);
    if (st == TUTTI_OK && *group_out == NULL && h.async)
        *h.work_out = tti_work_nothing();
    return st;
}

static tutti_status issue(tutti_group *group, tutti_call *call, int n_list, const tti_how *h)
{
    tti_observation *seen = NULL;
    tutti_status     st = tti_observe_call(group, call, n_list, h->async, &seen);

    if (st != TUTTI_OK)
        return st;
    st = h->async ? tti_queue_push(group, call, n_list, h->work_out) : tti_queue_run(group, call);
    if (seen == NULL)
        return st;
    if (!h->async)
        tti_observe_end(seen, st, call->seq, NULL);
    else if (st == TUTTI_OK)
        tti_observe_end(seen, st, tutti_work_sequence(*h->work_out), *h->work_out);
    else
        tti_observe_end(seen, st, 0, NULL);
    return st;
}

tutti_status tti_collective_issue_other(tutti_group *group, tutti_call *call, int n_list, const tti_how *h)
{
    if (h->bundle != NULL)
        return tti_bundle_add(h->bundle, h->what, call, n_list);
    if (h->turns != NULL)
        return tti_turns_run(h->turns, call);
    if (h->joins && tti_scope_is_mine(group))
        return tti_scope_record(group, call, n_list, h);
    return issue(group, call, n_list, h);
}

tutti_status tti_collective_issue_list(tutti_group *group, tutti_call *call,
                                       const tutti_span *spans, int n, tti_how h)
{
    void        *few[TTI_LIST_ON_STACK];
    void       **list = few;
    tutti_status st;
    int          i;

    if (n > TTI_LIST_ON_STACK) {
        list = malloc((size_t)n * sizeof *list);
        if (list == NULL)
            return tti_fail(TUTTI_E_NOMEM, "no memory for a list of %d buffers", n);
    }
    for (i = 0; i < n; i++)
        list[i] = spans[i].data;
    call->list = list;
    st = tti_collective_issue(group, call, n, h);
    if (list != few)
        free(list);
    return st;
}

tutti_status tti_check_root(const tutti_group *group, const char *what, const char *name, int root,
                            int *root_out)
{
    const int in_group = tutti_get_group_rank(group, root);

    if (in_group < 0)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': %s %d is not in the group of %d", what,
                        group->name, name, root, group->size);
    *root_out = in_group;
    return TUTTI_OK;
}

static tutti_status check_op(const tutti_group *group, const char *what, tutti_span buf,
                             tutti_op op)
{
    tutti_status st = tti_check_span(group, what, "buf", buf);

    return st != TUTTI_OK ? st : tutti_op_check(op, buf.dtype);
}

static tutti_call call_of(tutti_call_kind kind, tutti_span part)
{
    return tti_call_of(kind, part.dtype, part.count, part.device);
}

/* ---- all_reduce ---- */

tutti_status tti_all_reduce_span(const char *what, tutti_group *group, tutti_span buf, tutti_op op,
                                 tti_how h)
{
    tutti_call   call = call_of(TUTTI_CALL_ALL_REDUCE, buf);
    tutti_status st = check_op(group, what, buf, op);

    if (st != TUTTI_OK)
        return st;
    call.op = op;
    call.in = call.out = buf.data;
    h.what = what;
    return tti_collective_issue(group, &call, 0, h);
}

static tutti_status all_reduce(tutti_span buf, tutti_op op, tutti_group *group, tti_how h)
{
    const char  *what = "all_reduce";
    tutti_group *g = NULL;
    tutti_status st = tti_collective_begin(what, group, h, &g);

    if (st != TUTTI_OK || g == NULL)
        return st;
    return tti_all_reduce_span(what, g, buf, op, tti_joining(h));
}

tutti_status tutti_all_reduce(tutti_span buf, tutti_op op, tutti_group *group)
{
    return all_reduce(buf, op, group, tti_blocking());
}

tutti_status tutti_all_reduce_async(tutti_span buf, tutti_op op, tutti_group *group,
                                    tutti_work **work_out)
{
    return all_reduce(buf, op, group, tti_async(work_out));
}

/* ---- broadcast ---- */

static tutti_status broadcast(tutti_span buf, int src, tutti_group *group, tti_how h)
{
    tutti_call   call = call_of(TUTTI_CALL_BROADCAST, buf);
    tutti_group *g = NULL;
    tutti_status st;

    st = tti_collective_begin("broadcast", group, h, &g);
    if (st == TUTTI_OK && g != NULL)
        st = tti_check_span(g, "broadcast", "buf", buf);
    if (st == TUTTI_OK && g != NULL)
        st = tti_check_root(g, "broadcast", "src", src, &call.root);
    if (st != TUTTI_OK || g == NULL)
        return st;
    if (call.root == g->rank)
        call.in = buf.data;
    else
        call.out = buf.data;
    return tti_collective_issue(g, &call, 0, h);
}

tutti_status tutti_broadcast(tutti_span buf, int src, tutti_group *group)
{
    return broadcast(buf, src, group, tti_blocking());
}

tutti_status tutti_broadcast_async(tutti_span buf, int src, tutti_group *group,
                                   tutti_work **work_out)
{
    return broadcast(buf, src, group, tti_async(work_out));
}

/* ---- reduce ---- */

static tutti_status reduce(tutti_span buf, int dst, tutti_op op, tutti_group *group, tti_how h)
{
    tutti_call   call = call_of(TUTTI_CALL_REDUCE, buf);
    tutti_group *g = NULL;
    tutti_status st;

    st = tti_collective_begin("reduce", group, h, &g);
    if (st == TUTTI_OK && g != NULL)
        st = check_op(g, "reduce", buf, op);
    if (st == TUTTI_OK && g != NULL)
        st = tti_check_root(g, "reduce", "dst", dst, &call.root);
    if (st != TUTTI_OK || g == NULL)
        return st;
    call.op = op;
    call.in = buf.data;
    call.out = call.root == g->rank ? buf.data : NULL;
    return tti_collective_issue(g, &call, 0, h);
}

tutti_status tutti_reduce(tutti_span buf, int dst, tutti_op op, tutti_group *group)
{
    return reduce(buf, dst, op, group, tti_blocking());
}

tutti_status tutti_reduce_async(tutti_span buf, int dst, tutti_op op, tutti_group *group,
                                tutti_work **work_out)
{
    return reduce(buf, dst, op, group, tti_async(work_out));
}

/* ---- all_gather ---- */

tutti_status tti_all_gather_list(const char *what, const char *name, tutti_group *group,
                                 const tutti_span *outs, int n_outs, tutti_span in, tti_how h)
{
    tutti_call   call = call_of(TUTTI_CALL_ALL_GATHER, in);
    tti_arrays   arrays;
    tutti_status st = tti_check_span(group, what, "in", in);

    if (st == TUTTI_OK)
        st = tti_check_parts(group, what, name, outs, n_outs, in);
    if (st == TUTTI_OK)
        st = tti_arrays_init(&arrays, n_outs);
    if (st != TUTTI_OK)
        return st;
    call.in = in.data;
    h.what = what;
    tti_call_take_list(&call, &arrays, outs, n_outs);
    st = tti_collective_issue(group, &call, n_outs, h);
    tti_arrays_release(&arrays);
    return st;
}

static tutti_status all_gather(const tutti_span *outs, int n_outs, tutti_span in,
                               tutti_group *group, tti_how h)
{
    tutti_group *g = NULL;
    tutti_status st = tti_collective_begin("all_gather", group, h, &g);

    if (st != TUTTI_OK || g == NULL)
        return st;
    return tti_all_gather_list("all_gather", "outs", g, outs, n_outs, in, h);
}

tutti_status tutti_all_gather(const tutti_span *outs, int n_outs, tutti_span in, tutti_group *group)
{
    return all_gather(outs, n_outs, in, group, tti_blocking());
}

tutti_status tutti_all_gather_async(const tutti_span *outs, int n_outs, tutti_span in,
                                    tutti_group *group, tutti_work **work_out)
{
    return all_gather(outs, n_outs, in, group, tti_async(work_out));
}

/* ---- all_gather_into_tensor: all_gather into parts of out, which are checked one by one only where in meets it ---- */

/* Checked, and apart. */
static tutti_status issue_all_gather_into(tutti_group *group, tutti_span out, tutti_span in, tti_how h)
{
    tutti_call   call = call_of(TUTTI_CALL_ALL_GATHER, in);
    tti_arrays   arrays;
    tutti_status st = tti_arrays_init(&arrays, group->size);

    if (st != TUTTI_OK)
        return st;
    call.in = in.data;
    tti_call_take_whole(&call, &arrays, out, group->size, (size_t)in.count * tti_dtype_bytes(in.dtype));
    st = tti_collective_issue(group, &call, group->size, h);
    tti_arrays_release(&arrays);
    return st;
}

tutti_status tti_all_gather_into_span(const char *what, tutti_group *group, tutti_span out,
                                      tutti_span in, tti_how h)
{
    tti_parts    parts;
    tutti_status st = tti_check_cut(group, what, out, in, false);

    h.what = what;
    if (st == TUTTI_OK && tti_are_apart(out, in))
        return issue_all_gather_into(group, out, in, h);
    if (st == TUTTI_OK)
        st = tti_parts_init(&parts, group, out, NULL);
    if (st != TUTTI_OK)
        return st;
    st = tti_all_gather_list(what, "part of out", group, parts.spans, group->size, in, h);
    tti_parts_release(&parts);
    return st;
}

static tutti_status all_gather_into(tutti_span out, tutti_span in, tutti_group *group, tti_how h)
{
    const char  *what = "all_gather_into_tensor";
    tutti_group *g = NULL;
    tutti_status st = tti_collective_begin(what, group, h, &g);

    if (st != TUTTI_OK || g == NULL)
        return st;
    return tti_all_gather_into_span(what, g, out, in, tti_joining(h));
}

tutti_status tutti_all_gather_into_tensor(tutti_span out, tutti_span in, tutti_group *group)
{
    return all_gather_into(out, in, group, tti_blocking());
}

tutti_status tutti_all_gather_into_tensor_async(tutti_span out, tutti_span in, tutti_group *group,
                                                tutti_work **work_out)
{
    return all_gather_into(out, in, group, tti_async(work_out));
}

/* ---- gather and scatter: the list is the root's ---- */

static tutti_status gather(const tutti_span *outs, int n_outs, tutti_span in, int dst,
                           tutti_group *group, tti_how h)
{
    tutti_call   call = call_of(TUTTI_CALL_GATHER, in);
    tutti_group *g = NULL;
    tutti_status st;

    st = tti_collective_begin("gather", group, h, &g);
    if (st == TUTTI_OK && g != NULL)
        st = tti_check_span(g, "gather", "in", in);
    if (st == TUTTI_OK && g != NULL)
        st = tti_check_root(g, "gather", "dst", dst, &call.root);
    if (st == TUTTI_OK && g != NULL)
        st = tti_check_rooted(g, "gather", "outs", outs, n_outs, in, call.root, tti_check_list);
    if (st != TUTTI_OK || g == NULL)
        return st;
    call.in = in.data;
    if (call.root != g->rank)
        return tti_collective_issue(g, &call, 0, h);
    return tti_collective_issue_list(g, &call, outs, n_outs, h);
}

tutti_status tutti_gather(const tutti_span *outs, int n_outs, tutti_span in, int dst,
                          tutti_group *group)
{
    return gather(outs, n_outs, in, dst, group, tti_blocking());
}

tutti_status tutti_gather_async(const tutti_span *outs, int n_outs, tutti_span in, int dst,
                                tutti_group *group, tutti_work **work_out)
{
    return gather(outs, n_outs, in, dst, group, tti_async(work_out));
}

static tutti_status scatter(tutti_span out, const tutti_span *ins, int n_ins, int src,
                            tutti_group *group, tti_how h)
{
    tutti_call   call = call_of(TUTTI_CALL_SCATTER, out);
    tutti_group *g = NULL;
    tutti_status st;

    st = tti_collective_begin("scatter", group, h, &g);
    if (st == TUTTI_OK && g != NULL)
        st = tti_check_span(g, "scatter", "out", out);
    if (st == TUTTI_OK && g != NULL)
        st = tti_check_root(g, "scatter", "src", src, &call.root);
    if (st == TUTTI_OK && g != NULL)
        st = tti_check_rooted(g, "scatter", "ins", ins, n_ins, out, call.root, tti_check_list);
    if (st != TUTTI_OK || g == NULL)
        return st;
    call.out = out.data;
    if (call.root != g->rank)
        return tti_collective_issue(g, &call, 0, h);
    return tti_collective_issue_list(g, &call, ins, n_ins, h);
}

tutti_status tutti_scatter(tutti_span out, const tutti_span *ins, int n_ins, int src,
                           tutti_group *group)
{
    return scatter(out, ins, n_ins, src, group, tti_blocking());
}

tutti_status tutti_scatter_async(tutti_span out, const tutti_span *ins, int n_ins, int src,
                                 tutti_group *group, tutti_work **work_out)
{
    return scatter(out, ins, n_ins, src, group, tti_async(work_out));
}

/* ---- barrier ---- */

static tutti_status barrier(tutti_group *group, tti_how h)
{
    tutti_call   call = tti_call_of(TUTTI_CALL_BARRIER, TUTTI_BOOL, 0, (tutti_device){ TUTTI_CPU, -1 });
    tutti_group *g = NULL;
    tutti_status st;

    st = tti_collective_begin("barrier", group, h, &g);
    if (st != TUTTI_OK || g == NULL)
        return st;
    call.device = tti_control_device(g);
    return tti_collective_issue(g, &call, 0, h);
}

tutti_status tutti_barrier(tutti_group *group)
{
    return barrier(group, tti_blocking());
}

tutti_status tutti_barrier_async(tutti_group *group, tutti_work **work_out)
{
    return barrier(group, tti_async(work_out));
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * exchange.c - the public collectives in which every rank has something for every other:
 * reduce_scatter and all_to_all, with lists of spans or one span that is cut into parts.
 *
 * One span that is to be cut into equal parts, and lies apart from the other span, goes to the backend
 * as it is: its parts cannot lie wrong. Where the two meet, or there are splits, it becomes the list that
 * points into it and goes the way of lists, which checks each part. Sizes of all_to_all are this rank's
 * own; that they fit the others' is for the backend to find out. */
#include "group/lists.h"

#include <tutti/private.h>

/* ---- reduce_scatter ---- */

/* Checked: out and ins. */
static tutti_status issue_reduce_scatter(tutti_group *group, tutti_span out, const tutti_span *ins,
                                         tutti_op op, tti_how h)
{
    const int    n = group->size;
    tutti_call   call = tti_call_of(TUTTI_CALL_REDUCE_SCATTER, out.dtype, out.count, out.device);
    tti_arrays   a;
    tutti_status st = tti_arrays_init(&a, n);

    if (st != TUTTI_OK)
        return st;
    call.op = op;
    call.out = out.data;
    tti_call_take_list(&call, &a, ins, n);
    st = tti_collective_issue(group, &call, n, h);
    tti_arrays_release(&a);
    return st;
}

tutti_status tti_reduce_scatter_list(const char *what, const char *name, tutti_group *group,
                                     tutti_span out, const tutti_span *ins, int n_ins, tutti_op op,
                                     tti_how h)
{
    tutti_status st = tti_check_span(group, what, "out", out);

    if (st == TUTTI_OK)
        st = tutti_op_check(op, out.dtype);
    if (st == TUTTI_OK)
        st = tti_check_parts(group, what, name, ins, n_ins, out);
    return st == TUTTI_OK ? issue_reduce_scatter(group, out, ins, op, h) : st;
}

static tutti_status reduce_scatter(tutti_span out, const tutti_span *ins, int n_ins, tutti_op op,
                                   tutti_group *group, tti_how h)
{
    tutti_group *g = NULL;
    tutti_status st = tti_collective_begin("reduce_scatter", group, h, &g);

    if (st != TUTTI_OK || g == NULL)
        return st;
    return tti_reduce_scatter_list("reduce_scatter", "ins", g, out, ins, n_ins, op, h);
}

tutti_status tutti_reduce_scatter(tutti_span out, const tutti_span *ins, int n_ins, tutti_op op,
                                  tutti_group *group)
{
    return reduce_scatter(out, ins, n_ins, op, group, tti_blocking());
}

tutti_status tutti_reduce_scatter_async(tutti_span out, const tutti_span *ins, int n_ins,
                                        tutti_op op, tutti_group *group, tutti_work **work_out)
{
    return reduce_scatter(out, ins, n_ins, op, group, tti_async(work_out));
}

/* ---- reduce_scatter_tensor ---- */

/* Checked, and apart. */
static tutti_status issue_reduce_scatter_tensor(tutti_group *group, tutti_span out, tutti_span in, tutti_op op,
                                                tti_how h)
{
    tutti_call   call = tti_call_of(TUTTI_CALL_REDUCE_SCATTER, out.dtype, out.count, out.device);
    tti_arrays   a;
    tutti_status st = tutti_op_check(op, out.dtype);

    if (st == TUTTI_OK)
        st = tti_arrays_init(&a, group->size);
    if (st != TUTTI_OK)
        return st;
    call.op = op;
    call.out = out.data;
    tti_call_take_whole(&call, &a, in, group->size, (size_t)out.count * tti_dtype_bytes(out.dtype));
    st = tti_collective_issue(group, &call, group->size, h);
    tti_arrays_release(&a);
    return st;
}

tutti_status tti_reduce_scatter_span(const char *what, tutti_group *group, tutti_span out,
                                     tutti_span in, tutti_op op, tti_how h)
{
    tti_parts    p;
    tutti_status st = tti_check_cut(group, what, out, in, true);

    h.what = what;
    if (st == TUTTI_OK && tti_are_apart(out, in))
        return issue_reduce_scatter_tensor(group, out, in, op, h);
    if (st == TUTTI_OK)
        st = tti_parts_init(&p, group, in, NULL);
    if (st != TUTTI_OK)
        return st;
    st = tti_reduce_scatter_list(what, "part of in", group, out, p.spans, group->size, op, h);
    tti_parts_release(&p);
    return st;
}

static tutti_status reduce_scatter_tensor(tutti_span out, tutti_span in, tutti_op op,
                                          tutti_group *group, tti_how h)
{
    const char  *what = "reduce_scatter_tensor";
    tutti_group *g = NULL;
    tutti_status st = tti_collective_begin(what, group, h, &g);

    if (st != TUTTI_OK || g == NULL)
        return st;
    return tti_reduce_scatter_span(what, g, out, in, op, tti_joining(h));
}

tutti_status tutti_reduce_scatter_tensor(tutti_span out, tutti_span in, tutti_op op,
                                         tutti_group *group)
{
    return reduce_scatter_tensor(out, in, op, group, tti_blocking());
}

tutti_status tutti_reduce_scatter_tensor_async(tutti_span out, tutti_span in, tutti_op op,
                                               tutti_group *group, tutti_work **work_out)
{
    return reduce_scatter_tensor(out, in, op, group, tti_async(work_out));
}

/* ---- all_to_all ---- */

static tutti_status issue_blocks(tutti_group *group, tutti_span any, const tti_arrays *a, tti_how h)
{
    tutti_call call = tti_call_of(TUTTI_CALL_ALL_TO_ALL, any.dtype, 0, any.device);

    call.n_parts = group->size;
    call.list = a->list;
    call.list_counts = a->list_counts;
    call.ins = a->ins;
    call.in_counts = a->in_counts;
    return tti_collective_issue(group, &call, group->size, h);
}

/* Checked: outs and ins. */
static tutti_status issue_all_to_all(tutti_group *group, const tutti_span *outs,
                                     const tutti_span *ins, tti_how h)
{
    tti_arrays   a;
    tutti_status st = tti_arrays_init(&a, group->size);
    int          r;

    if (st != TUTTI_OK)
        return st;
    for (r = 0; r < group->size; r++) {
        a.list[r] = outs[r].data;
        a.list_counts[r] = outs[r].count;
        a.ins[r] = ins[r].data;
        a.in_counts[r] = ins[r].count;
    }
    st = issue_blocks(group, ins[0], &a, h);
    tti_arrays_release(&a);
    return st;
}

static tutti_status all_to_all(const tutti_span *outs, int n_outs, const tutti_span *ins, int n_ins,
                               tutti_group *group, tti_how h)
{
    const char  *what = "all_to_all";
    tutti_group *g = NULL;
    tutti_status st = tti_collective_begin(what, group, h, &g);

    if (st != TUTTI_OK || g == NULL)
        return st;
    st = tti_check_list_shape(g, what, "outs", outs, n_outs);
    if (st == TUTTI_OK)
        st = tti_check_list_shape(g, what, "ins", ins, n_ins);
    if (st == TUTTI_OK)
        st = tti_check_pair(g, what, "outs", outs, "ins", ins);
    return st == TUTTI_OK ? issue_all_to_all(g, outs, ins, h) : st;
}

tutti_status tutti_all_to_all(const tutti_span *outs, int n_outs, const tutti_span *ins, int n_ins,
                              tutti_group *group)
{
    return all_to_all(outs, n_outs, ins, n_ins, group, tti_blocking());
}

tutti_status tutti_all_to_all_async(const tutti_span *outs, int n_outs, const tutti_span *ins,
                                    int n_ins, tutti_group *group, tutti_work **work_out)
{
    return all_to_all(outs, n_outs, ins, n_ins, group, tti_async(work_out));
}

/* ---- all_to_all_single ---- */

static const char *const single = "all_to_all_single";

static tutti_status check_single(const tutti_group *group, tutti_span out, tutti_span in,
                                 const int64_t *out_splits, const int64_t *in_splits)
{
    tutti_status st = tti_check_span(group, single, "out", out);

    if (st == TUTTI_OK)
        st = tti_check_span(group, single, "in", in);
    if (st == TUTTI_OK)
        st = tti_check_dtypes(group, single, out, in);
    if (st == TUTTI_OK)
        st = tti_check_splits(group, single, "out", out, "out_splits", out_splits);
    if (st == TUTTI_OK)
        st = tti_check_splits(group, single, "in", in, "in_splits", in_splits);
    return st;
}

/* Checked, apart, and both to be cut into equal parts of one size. */
static tutti_status issue_equal_parts(tutti_group *group, tutti_span out, tutti_span in, tti_how h)
{
    const int64_t count = in.count / group->size;
    const size_t  bytes = (size_t)count * tti_dtype_bytes(in.dtype);
    tti_arrays    a;
    tutti_status  st = tti_arrays_init(&a, group->size);
    int           r;

    if (st != TUTTI_OK)
        return st;
    for (r = 0; r < group->size; r++) {
        a.list[r] = (char *)out.data + (size_t)r * bytes;
        a.ins[r] = (const char *)in.data + (size_t)r * bytes;
        a.list_counts[r] = a.in_counts[r] = count;
    }
    st = issue_blocks(group, in, &a, h);
    tti_arrays_release(&a);
    return st;
}

static tutti_status all_to_all_single(tutti_span out, tutti_span in, const int64_t *out_splits,
                                      const int64_t *in_splits, tutti_group *group, tti_how h)
{
    tutti_group *g = NULL;
    tutti_status st = tti_collective_begin(single, group, h, &g);
    tti_parts    outs, ins;

    if (st == TUTTI_OK && g != NULL)
        st = check_single(g, out, in, out_splits, in_splits);
    if (st != TUTTI_OK || g == NULL)
        return st;
    if (out_splits == NULL && in_splits == NULL && out.count == in.count && tti_are_apart(out, in))
        return issue_equal_parts(g, out, in, h);
    outs.spans = outs.few;
    ins.spans = ins.few;
    st = tti_parts_init(&outs, g, out, out_splits);
    if (st == TUTTI_OK)
        st = tti_parts_init(&ins, g, in, in_splits);
    if (st == TUTTI_OK)
        st = tti_check_pair(g, single, "part of out", outs.spans, "part of in", ins.spans);
    if (st == TUTTI_OK)
        st = issue_all_to_all(g, outs.spans, ins.spans, h);
    tti_parts_release(&outs);
    tti_parts_release(&ins);
    return st;
}

tutti_status tutti_all_to_all_single(tutti_span out, tutti_span in, const int64_t *out_splits,
                                     const int64_t *in_splits, tutti_group *group)
{
    return all_to_all_single(out, in, out_splits, in_splits, group, tti_blocking());
}

tutti_status tutti_all_to_all_single_async(tutti_span out, tutti_span in,
                                           const int64_t *out_splits, const int64_t *in_splits,
                                           tutti_group *group, tutti_work **work_out)
{
    return all_to_all_single(out, in, out_splits, in_splits, group, tti_async(work_out));
}

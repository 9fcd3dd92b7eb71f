/* SPDX-License-Identifier: BSD-3-Clause
 *
 * exchange.c - the public collectives in which every rank has something for every other:
 * reduce_scatter and all_to_all, with lists of spans or one span that is cut into parts.
 *
 * The forms with one span make the list that points into it and go the way of lists, so that both
 * have the same checks. Sizes of all_to_all are this rank's own; that they fit the others' is for
 * the backend to find out. */
#include "group/collective.h"

#include <stdlib.h>
#include <tutti/private.h>

/* What a call points to, on the stack unless there are many members. */
typedef struct arrays {
    void       **list;
    const void **ins;
    int64_t     *list_counts;
    int64_t     *in_counts;
    void        *heap; /* NULL: none */
    void        *few_list[TTI_LIST_ON_STACK];
    const void  *few_ins[TTI_LIST_ON_STACK];
    int64_t      few_list_counts[TTI_LIST_ON_STACK];
    int64_t      few_in_counts[TTI_LIST_ON_STACK];
} arrays;

static tutti_status fail_memory(int n)
{
    return tti_fail(TUTTI_E_NOMEM, "no memory for a list of %d buffers", n);
}

static tutti_status arrays_init(arrays *a, int n)
{
    const size_t row = (size_t)n * sizeof(int64_t);
    char        *heap;

    a->list = a->few_list;
    a->ins = a->few_ins;
    a->list_counts = a->few_list_counts;
    a->in_counts = a->few_in_counts;
    a->heap = NULL;
    if (n <= TTI_LIST_ON_STACK)
        return TUTTI_OK;
    heap = a->heap = malloc(4 * row);
    if (heap == NULL)
        return fail_memory(n);
    a->list = (void **)(void *)heap;
    a->ins = (const void **)(void *)(heap + row);
    a->list_counts = (int64_t *)(void *)(heap + 2 * row);
    a->in_counts = (int64_t *)(void *)(heap + 3 * row);
    return TUTTI_OK;
}

/* ---- one span as a list ---- */

typedef struct parts {
    tutti_span *spans;
    tutti_span  few[TTI_LIST_ON_STACK];
} parts;

/* Cut whole into one part for each member: as splits say, or (NULL) equal ones. */
static tutti_status parts_init(parts *p, const tutti_group *group, tutti_span whole,
                               const int64_t *splits)
{
    const size_t element = tutti_dtype_size(whole.dtype);
    char        *at = whole.data;
    int          r;

    p->spans = p->few;
    if (group->size > TTI_LIST_ON_STACK)
        p->spans = malloc((size_t)group->size * sizeof *p->spans);
    if (p->spans == NULL)
        return fail_memory(group->size);
    for (r = 0; r < group->size; r++) {
        p->spans[r] = whole;
        p->spans[r].count = splits != NULL ? splits[r] : whole.count / group->size;
        p->spans[r].data = p->spans[r].count > 0 ? at : NULL;
        if (p->spans[r].count > 0)
            at += (size_t)p->spans[r].count * element;
    }
    return TUTTI_OK;
}

static void parts_release(parts *p)
{
    if (p->spans != p->few)
        free(p->spans);
}

/* ---- reduce_scatter ---- */

static bool is_uneven(const tutti_span *ins, int n)
{
    int r;

    for (r = 1; r < n; r++)
        if (ins[r].count != ins[0].count)
            return true;
    return false;
}

/* Checked: out and ins. */
static tutti_status issue_reduce_scatter(tutti_group *group, tutti_span out, const tutti_span *ins,
                                         tutti_op op, tti_how h)
{
    const int    n = group->size;
    tutti_call   call = { .kind = TUTTI_CALL_REDUCE_SCATTER, .dtype = out.dtype, .op = op,
                          .root = -1, .count = out.count, .out = out.data };
    arrays       a;
    tutti_status st = arrays_init(&a, n);
    int          r;

    if (st != TUTTI_OK)
        return st;
    call.list = a.list;
    for (r = 0; r < n; r++) {
        a.list[r] = ins[r].data;
        a.list_counts[r] = ins[r].count;
    }
    if (is_uneven(ins, n)) {
        call.n_parts = n;
        call.list_counts = a.list_counts;
        for (call.count = 0, r = 0; r < n; r++)
            call.count += ins[r].count;
    }
    st = tti_collective_issue(group, &call, n, h);
    free(a.heap);
    return st;
}

static tutti_status reduce_scatter_list(const char *what, const char *name, tutti_group *group,
                                        tutti_span out, const tutti_span *ins, int n_ins,
                                        tutti_op op, tti_how h)
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
    return reduce_scatter_list("reduce_scatter", "ins", g, out, ins, n_ins, op, h);
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

static tutti_status check_tensor(const tutti_group *group, const char *what, tutti_span out,
                                 tutti_span in)
{
    tutti_status st = tti_check_span(group, what, "out", out);

    if (st == TUTTI_OK)
        st = tti_check_span(group, what, "in", in);
    if (st != TUTTI_OK)
        return st;
    if (out.dtype != in.dtype)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': out is %s, but in is %s", what, group->name,
                        tutti_dtype_name(out.dtype), tutti_dtype_name(in.dtype));
    if (in.count / group->size != out.count || in.count % group->size != 0)
        return tti_fail(TUTTI_E_ARG,
                        "%s on group '%s': in has %lld elements, not %d times the %lld of out",
                        what, group->name, (long long)in.count, group->size, (long long)out.count);
    return TUTTI_OK;
}

static tutti_status reduce_scatter_tensor(tutti_span out, tutti_span in, tutti_op op,
                                          tutti_group *group, tti_how h)
{
    const char  *what = "reduce_scatter_tensor";
    tutti_group *g = NULL;
    tutti_status st = tti_collective_begin(what, group, h, &g);
    parts        p;

    if (st != TUTTI_OK || g == NULL)
        return st;
    st = check_tensor(g, what, out, in);
    if (st == TUTTI_OK)
        st = parts_init(&p, g, in, NULL);
    if (st != TUTTI_OK)
        return st;
    st = reduce_scatter_list(what, "part of in", g, out, p.spans, g->size, op, h);
    parts_release(&p);
    return st;
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

/* Checked: outs and ins. */
static tutti_status issue_all_to_all(tutti_group *group, const tutti_span *outs,
                                     const tutti_span *ins, tti_how h)
{
    const int    n = group->size;
    tutti_call   call = { .kind = TUTTI_CALL_ALL_TO_ALL, .dtype = ins[0].dtype, .root = -1,
                          .n_parts = n };
    arrays       a;
    tutti_status st = arrays_init(&a, n);
    int          r;

    if (st != TUTTI_OK)
        return st;
    for (r = 0; r < n; r++) {
        a.list[r] = outs[r].data;
        a.list_counts[r] = outs[r].count;
        a.ins[r] = ins[r].data;
        a.in_counts[r] = ins[r].count;
    }
    call.list = a.list;
    call.list_counts = a.list_counts;
    call.ins = a.ins;
    call.in_counts = a.in_counts;
    st = tti_collective_issue(group, &call, n, h);
    free(a.heap);
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

static tutti_status check_splits(const tutti_group *group, const char *name, tutti_span span,
                                 const int64_t *splits)
{
    int64_t left = span.count;
    int     r;

    if (splits == NULL && span.count % group->size != 0)
        return tti_fail(TUTTI_E_ARG,
                        "%s on group '%s': %s has %lld elements, which %d members cannot share "
                        "equally\n  next: pass %s_splits",
                        single, group->name, name, (long long)span.count, group->size, name);
    for (r = 0; splits != NULL && r < group->size; r++) {
        if (splits[r] < 0)
            return tti_fail(TUTTI_E_ARG, "%s on group '%s': %s_splits[%d] is %lld", single,
                            group->name, name, r, (long long)splits[r]);
        if (splits[r] > left)
            return tti_fail(TUTTI_E_ARG,
                            "%s on group '%s': %s_splits add up to more than the %lld elements of "
                            "%s: [%d] is %lld, and %lld are left",
                            single, group->name, name, (long long)span.count, name, r,
                            (long long)splits[r], (long long)left);
        left -= splits[r];
    }
    if (splits != NULL && left != 0)
        return tti_fail(TUTTI_E_ARG,
                        "%s on group '%s': %s_splits add up to %lld, but %s has %lld elements",
                        single, group->name, name, (long long)(span.count - left), name,
                        (long long)span.count);
    return TUTTI_OK;
}

static tutti_status check_single(const tutti_group *group, tutti_span out, tutti_span in,
                                 const int64_t *out_splits, const int64_t *in_splits)
{
    tutti_status st = tti_check_span(group, single, "out", out);

    if (st == TUTTI_OK)
        st = tti_check_span(group, single, "in", in);
    if (st == TUTTI_OK && out.dtype != in.dtype)
        st = tti_fail(TUTTI_E_ARG, "%s on group '%s': out is %s, but in is %s", single, group->name,
                      tutti_dtype_name(out.dtype), tutti_dtype_name(in.dtype));
    if (st == TUTTI_OK)
        st = check_splits(group, "out", out, out_splits);
    return st == TUTTI_OK ? check_splits(group, "in", in, in_splits) : st;
}

static tutti_status all_to_all_single(tutti_span out, tutti_span in, const int64_t *out_splits,
                                      const int64_t *in_splits, tutti_group *group, tti_how h)
{
    tutti_group *g = NULL;
    tutti_status st = tti_collective_begin(single, group, h, &g);
    parts        outs, ins;

    if (st == TUTTI_OK && g != NULL)
        st = check_single(g, out, in, out_splits, in_splits);
    if (st != TUTTI_OK || g == NULL)
        return st;
    outs.spans = outs.few;
    ins.spans = ins.few;
    st = parts_init(&outs, g, out, out_splits);
    if (st == TUTTI_OK)
        st = parts_init(&ins, g, in, in_splits);
    if (st == TUTTI_OK)
        st = tti_check_pair(g, single, "part of out", outs.spans, "part of in", ins.spans);
    if (st == TUTTI_OK)
        st = issue_all_to_all(g, outs.spans, ins.spans, h);
    parts_release(&outs);
    parts_release(&ins);
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

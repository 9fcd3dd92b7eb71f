/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/lists.h"

#include <stdlib.h>
#include <tutti/private.h>

static tutti_status fail_memory(int n)
{
    return tti_fail(TUTTI_E_NOMEM, "no memory for a list of %d buffers", n);
}

tutti_status tti_arrays_init(tti_arrays *a, int n)
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

void tti_arrays_release(tti_arrays *arrays)
{
    free(arrays->heap);
}

tutti_status tti_parts_init(tti_parts *p, const tutti_group *group, tutti_span whole,
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

void tti_parts_release(tti_parts *p)
{
    if (p->spans != p->few)
        free(p->spans);
}

static tutti_status check_equal(const tutti_group *group, const char *what, const char *name,
                                tutti_span whole, const char *splits_name)
{
    if (whole.count % group->size == 0)
        return TUTTI_OK;
    return tti_fail(TUTTI_E_ARG,
                    "%s on group '%s': %s has %lld elements, which %d members cannot share "
                    "equally\n  next: pass %s",
                    what, group->name, name, (long long)whole.count, group->size, splits_name);
}

tutti_status tti_check_splits(const tutti_group *group, const char *what, const char *name,
                              tutti_span whole, const char *splits_name, const int64_t *splits)
{
    int64_t left = whole.count;
    int     r;

    if (splits == NULL)
        return check_equal(group, what, name, whole, splits_name);
    for (r = 0; r < group->size; r++) {
        if (splits[r] < 0)
            return tti_fail(TUTTI_E_ARG, "%s on group '%s': %s[%d] is %lld\n  next: count elements, 0 or more for each member", what,
                            group->name, splits_name, r, (long long)splits[r]);
        if (splits[r] > left)
            return tti_fail(TUTTI_E_ARG,
                            "%s on group '%s': %s add up to more than the %lld elements of "
                            "%s: [%d] is %lld, and %lld are left\n"
                            "  next: let them add up to all elements",
                            what, group->name, splits_name, (long long)whole.count, name, r,
                            (long long)splits[r], (long long)left);
        left -= splits[r];
    }
    if (left != 0)
        return tti_fail(TUTTI_E_ARG,
                        "%s on group '%s': %s add up to %lld, but %s has %lld elements\n"
                        "  next: let them add up to all elements", what,
                        group->name, splits_name, (long long)(whole.count - left), name,
                        (long long)whole.count);
    return TUTTI_OK;
}

static bool is_uneven(const tutti_span *spans, int n)
{
    int r;

    for (r = 1; r < n; r++)
        if (spans[r].count != spans[0].count)
            return true;
    return false;
}

void tti_call_take_whole(tutti_call *call, tti_arrays *arrays, tutti_span whole, int n, size_t part_bytes)
{
    char *at = whole.data;
    int   r;

    call->list = arrays->list;
    for (r = 0; r < n; r++, at += part_bytes)
        arrays->list[r] = at;
}

void tti_call_take_list(tutti_call *call, tti_arrays *arrays, const tutti_span *spans, int n)
{
    const bool uneven = is_uneven(spans, n);
    int        r;

    call->list = arrays->list;
    if (uneven)
        call->count = 0;
    for (r = 0; r < n; r++) {
        arrays->list[r] = spans[r].data;
        arrays->list_counts[r] = spans[r].count;
        if (uneven)
            call->count += spans[r].count;
    }
    if (uneven) {
        call->n_parts = n;
        call->list_counts = arrays->list_counts;
    }
}

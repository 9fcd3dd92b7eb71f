/* SPDX-License-Identifier: BSD-3-Clause
 *
 * average.c - parameters become their averages over a group.
 *
 * How     Type by type, in one order, all parameters that have a gradient are one operation, from where they lie.
 *         What does not lie row by row travels as a copy that does.
 * True    All ranks issue an operation for each type that parameters have, with a word of zeros at its end, also where
 *         none of them has a gradient here: ranks that disagree about gradients hear of it at once. */
#include "averaging/averaging.h"

#include <stdlib.h>
#include <tutti/coalesce.h>
#include <tutti/private.h>

static const tutti_dtype types[] = { TUTTI_F32, TUTTI_F64, TUTTI_F16, TUTTI_BF16 };

/* Parameters of one type on the way. */
typedef struct batch {
    int *index;          /* [n] of the parameters */
    tutti_tensor **rows; /* [n] counted: themselves, or copies */
    tutti_span *spans;   /* [n + 1] the last one: zero */
    double zero;
    int n;
} batch;

static bool has_type(tutti_tensor *const *params, int n, tutti_dtype dtype)
{
    for (int i = 0; i < n; i++)
        if (params[i]->dtype == dtype)
            return true;
    return false;
}

static tutti_status fill(batch *b, tutti_tensor *const *params, int n, tutti_dtype dtype)
{
    tutti_status st = TUTTI_OK;

    for (int i = 0; i < n && st == TUTTI_OK; i++) {
        if (params[i]->dtype != dtype || tutti_tensor_grad(params[i]) == NULL)
            continue;
        b->index[b->n] = i;
        b->rows[b->n] = tti_raw_contiguous(params[i]);
        st = b->rows[b->n] != NULL ? tti_ready(params[i]) : tti_refused();
        if (st == TUTTI_OK)
            b->spans[b->n] = tutti_tensor_span(b->rows[b->n]);
        b->n++;
    }
    return st;
}

static tutti_status put_back(const batch *b, tutti_tensor *const *params)
{
    tutti_status st = TUTTI_OK;

    for (int k = 0; k < b->n && st == TUTTI_OK; k++) {
        tutti_tensor *p = params[b->index[k]];

        if (b->rows[k] != p)
            st = tti_raw_copy_(p, b->rows[k]);
        tti_version_bump(p);
    }
    return st;
}

static void release(batch *b)
{
    for (int k = 0; k < b->n; k++)
        tutti_tensor_release(b->rows[k]);
    free(b->rows);
    free(b->spans);
    free(b->index);
}

static tutti_status average_type(tutti_tensor *const *params, int n, tutti_dtype dtype, tutti_group *group)
{
    batch b = { .index = calloc((size_t)n, sizeof *b.index),
                .rows = calloc((size_t)n, sizeof(tutti_tensor *)),
                .spans = calloc((size_t)n + 1, sizeof *b.spans) };
    tutti_status st = TUTTI_OK;

    if (b.index == NULL || b.rows == NULL || b.spans == NULL)
        st = tti_fail(TUTTI_E_NOMEM, "average_parameters: no memory for a list of %d", n);
    if (st == TUTTI_OK)
        st = fill(&b, params, n, dtype);
    if (st == TUTTI_E_NOMEM)
        (void)tutti_abort_process_group(group); /* the others wait for it */
    if (st == TUTTI_OK) {
        b.spans[b.n] = tutti_span_of(&b.zero, 1, dtype);
        st = tutti_all_reduce_coalesced(b.spans, b.n + 1, TUTTI_AVG, group);
    }
    if (st == TUTTI_OK)
        st = put_back(&b, params);
    release(&b);
    return st;
}

static tutti_status check(tutti_tensor *const *params, int n)
{
    if (n < 0 || (n > 0 && params == NULL))
        return tti_fail(TUTTI_E_ARG, "average_parameters: %d parameters%s", n, params == NULL ? " at NULL" : "");
    for (int i = 0; i < n; i++)
        if (params[i] == NULL)
            return tti_fail(TUTTI_E_ARG, "average_parameters: parameter %d is NULL", i);
    return TUTTI_OK;
}

tutti_status tutti_average_parameters(tutti_tensor *const *params, int n, tutti_group *group)
{
    const tutti_status before = tti_kept();
    tutti_status st = check(params, n);

    if (st != TUTTI_OK)
        return st;
    if (group == NULL)
        group = tutti_current_group();
    if (group == NULL)
        return tti_fail(TUTTI_E_STATE, "average_parameters: there is no group\n  next: tutti_init_process_group()");
    if (tutti_get_rank(group) < 0)
        return TUTTI_OK;
    for (size_t k = 0; k < sizeof types / sizeof types[0] && st == TUTTI_OK; k++)
        if (has_type(params, n, types[k]))
            st = average_type(params, n, types[k], group);
    return tti_unkeep(before, st);
}

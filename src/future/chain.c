/* SPDX-License-Identifier: BSD-3-Clause
 *
 * chain.c - a future whose value is what a function makes of another one's. */
#include "future/future.h"

#include <stdlib.h>
#include <tutti/private.h>

typedef struct link {
    tutti_future_fn fn;
    void           *ctx;
    tutti_future   *next; /* a reference */
} link;

/* Only the chain completes next, and its holders cannot tell that from a future of anybody: if one has set it
 * meanwhile, what fn made is released here. */
static void step(tutti_future *future, void *ctx)
{
    link               *l = ctx;
    void               *value = NULL;
    tutti_value_free_fn free_fn = NULL;
    tutti_status        st = tti_future_outcome(future);

    if (st == TUTTI_OK)
        st = l->fn(future, l->ctx, &value, &free_fn);
    if (st != TUTTI_OK)
        tutti_future_set_error(l->next, st, tutti_last_error());
    else if (tutti_future_set_result(l->next, value, free_fn) != TUTTI_OK && free_fn != NULL)
        free_fn(value);
    tutti_future_free(l->next);
    free(l);
}

tutti_status tutti_future_then(tutti_future *future, tutti_future_fn fn, void *ctx, tutti_future **next_out)
{
    tti_future_call *call = NULL;
    tutti_future    *next = NULL;
    link            *l;
    tutti_status     st;

    if (future == NULL || fn == NULL || next_out == NULL)
        return tti_fail(TUTTI_E_ARG, "future_then: the %s is NULL",
                        future == NULL ? "future" : fn == NULL ? "function" : "output");
    st = tti_future_check_own(future, "future_then");
    if (st != TUTTI_OK)
        return st;
    l = calloc(1, sizeof *l);
    if (l == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a function on a future");
    st = tutti_future_create(&next);
    if (st == TUTTI_OK)
        st = tti_future_call_create(step, l, &call);
    if (st != TUTTI_OK) {
        tutti_future_free(next);
        free(l);
        return st;
    }
    *l = (link){ .fn = fn, .ctx = ctx, .next = tutti_future_retain(next) };
    *next_out = next;
    tti_future_attach(future, call);
    return TUTTI_OK;
}

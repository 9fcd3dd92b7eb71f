/* SPDX-License-Identifier: BSD-3-Clause
 *
 * result.c - what a work that has ended well has written, and the future of it.
 *
 * A work keeps its call, and copies of the arrays that the call points to, for as long as it lives: after
 * it was issued only its number and deadline change. So the spans may be read without the lock once the work
 * is known to have ended. The calls of a coalescing scope are recorded elsewhere; their works have none. */
#include "future/future.h"
#include "group/group.h"

#include <stdlib.h>
#include <tutti/private.h>

/* Spans that are being counted, and kept as far as there is room. */
typedef struct listing {
    const tutti_call *call;
    tutti_span       *spans;
    int               max;
    int               n;
} listing;

static void add(listing *l, void *data, int64_t count)
{
    tutti_span span = tutti_span_of(data, count, l->call->dtype);

    span.device = tti_device_of(l->call->device, l->call->device_index);
    if (l->n < l->max)
        l->spans[l->n] = span;
    l->n++;
}

static void add_segments(const tutti_work *work, listing *l)
{
    const tutti_call *call = &work->call;
    const int         each = work->n_list / call->n_segments; /* members */
    int               i, r;

    for (i = 0; i < call->n_segments; i++) {
        if (call->kind != TUTTI_CALL_ALL_GATHER)
            add(l, call->segments[i].out, call->segments[i].count);
        for (r = 0; call->kind == TUTTI_CALL_ALL_GATHER && r < each; r++)
            add(l, call->list[i * each + r], call->segments[i].count);
    }
}

static void add_list(const tutti_work *work, listing *l)
{
    const tutti_call *call = &work->call;
    int               r;

    for (r = 0; r < work->n_list; r++)
        add(l, call->list[r], call->list_counts != NULL ? call->list_counts[r] : call->count);
}

static void add_collective(const tutti_work *work, listing *l)
{
    const tutti_call *call = &work->call;
    const bool        root = call->root == work->rank;

    switch (call->kind) {
    case TUTTI_CALL_BROADCAST:
        add(l, root ? (void *)(uintptr_t)call->in : call->out, call->count);
        return;
    case TUTTI_CALL_REDUCE:
        if (root)
            add(l, call->out, call->count);
        return;
    case TUTTI_CALL_REDUCE_SCATTER:
        add(l, call->out, call->list_counts != NULL ? call->list_counts[work->rank] : call->count);
        return;
    case TUTTI_CALL_ALL_REDUCE:
    case TUTTI_CALL_SCATTER: add(l, call->out, call->count); return;
    case TUTTI_CALL_GATHER:
    case TUTTI_CALL_GATHER_V:
        if (root)
            add_list(work, l);
        return;
    case TUTTI_CALL_SCATTER_V: add(l, call->list[call->root], call->list_counts[call->root]); return;
    case TUTTI_CALL_ALL_GATHER:
    case TUTTI_CALL_ALL_TO_ALL: add_list(work, l); return;
    default: return; /* a barrier */
    }
}

/* The spans of a work: how many there are. */
static int list_spans(const tutti_work *work, tutti_span *spans, int max)
{
    listing l = { .call = &work->call, .spans = spans, .max = max };

    if (work->is_nothing)
        return 0;
    if (work->ops != NULL) {
        if (work->call.out != NULL)
            add(&l, work->call.out, work->call.count);
    } else if (work->call.n_segments > 0) {
        add_segments(work, &l);
    } else {
        add_collective(work, &l);
    }
    return l.n;
}

/* Neither a collective of its own nor a message. */
static bool was_recorded(const tutti_work *work)
{
    return !work->is_nothing && work->ops == NULL && work->call.kind == 0;
}

tutti_status tutti_work_result(tutti_work *work, tutti_span *spans_out, int max, int *n_out)
{
    tutti_status st;

    if (work == NULL || n_out == NULL || max < 0 || (spans_out == NULL && max > 0))
        return tti_fail(TUTTI_E_ARG, "work_result: %s",
                        work == NULL ? "the work is NULL" : "there is no room for the spans");
    st = tutti_work_status(work);
    if (st != TUTTI_OK)
        return st;
    if (was_recorded(work))
        return tti_fail(TUTTI_E_UNSUPPORTED,
                        "%s of group '%s' has no result of its own\n"
                        "  next: tutti_work_result() of what tutti_coalescing_end() gave",
                        work->what, work->group_name);
    *n_out = list_spans(work, spans_out, max);
    return TUTTI_OK;
}

/* ---- the future ---- */

static tutti_spans *spans_of(const tutti_work *work)
{
    const int    n = was_recorded(work) ? 0 : list_spans(work, NULL, 0);
    tutti_spans *spans = malloc(sizeof *spans + (size_t)n * sizeof spans->at[0]);

    if (spans == NULL)
        return NULL;
    *spans = (tutti_spans){ .at = (tutti_span *)(void *)(spans + 1), .n = n };
    if (n > 0)
        list_spans(work, spans->at, n);
    return spans;
}

static void complete(tutti_work *work, void *ctx)
{
    tutti_future *future = ctx;
    tutti_spans  *spans = NULL;
    tutti_status  st = tutti_work_status(work);

    if (st == TUTTI_OK) {
        spans = spans_of(work);
        if (spans == NULL)
            st = tti_fail(TUTTI_E_NOMEM, "no memory for the result of %s", work->what);
    }
    if (st != TUTTI_OK)
        tutti_future_set_error(future, st, tutti_last_error());
    else if (tutti_future_set_result(future, spans, free) != TUTTI_OK)
        free(spans); /* one of its holders was faster */
    tutti_future_free(future);
}

tutti_status tutti_work_get_future(tutti_work *work, tutti_future **future_out)
{
    tutti_future *future = NULL;
    tutti_status  st;

    if (work == NULL || future_out == NULL)
        return tti_fail(TUTTI_E_ARG, "work_get_future: the %s is NULL", work == NULL ? "work" : "output");
    st = tti_future_create_on(work->is_nothing ? tti_port_system() : work->runner->port, &future);
    if (st != TUTTI_OK)
        return st;
    st = tutti_work_then(work, complete, tutti_future_retain(future));
    if (st != TUTTI_OK)
        tutti_future_free(future); /* the one that complete() would have dropped */
    if (st == TUTTI_OK)
        *future_out = future;
    else
        tutti_future_free(future);
    return st;
}

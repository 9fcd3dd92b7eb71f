/* SPDX-License-Identifier: BSD-3-Clause
 *
 * collect.c - several futures as one.
 *
 * A collection lives until the functions on all its members have run, which they do, at the latest when the
 * last holder of a member leaves. It takes references to members only as they complete: one that is held by
 * nobody else must be able to end. */
#include "future/future.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <tutti/private.h>

typedef struct collection collection;

typedef struct member {
    collection      *of;
    int              index;
    tti_future_call *call; /* until it is attached */
} member;

struct collection {
    tutti_future  *whole; /* a reference */
    _Atomic int    left;
    _Atomic bool   taken;    /* any: one has come */
    tutti_futures *complete; /* all: the value to be */
    int           *first;    /* any: the value to be */
    int            n;
    member         members[];
};

static void free_futures(void *value)
{
    tutti_futures *futures = value;
    int            i;

    for (i = 0; i < futures->n; i++)
        tutti_future_free(futures->at[i]);
    free(futures);
}

static void release(collection *c)
{
    int i;

    for (i = 0; i < c->n; i++)
        tti_future_call_free(c->members[i].call);
    tutti_future_free(c->whole);
    if (c->complete != NULL)
        free_futures(c->complete);
    free(c->first);
    free(c);
}

/* Room for everything that will be needed: what follows cannot fail. */
static tutti_status create(int n, bool all, tutti_future_done_fn fn, collection **collection_out)
{
    collection  *c = calloc(1, sizeof *c + (size_t)n * sizeof c->members[0]);
    tutti_status st;
    int          i;

    if (c == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to collect %d futures", n);
    c->n = n;
    atomic_init(&c->left, n);
    if (all)
        c->complete = calloc(1, sizeof *c->complete + (size_t)n * sizeof(tutti_future *));
    else
        c->first = calloc(1, sizeof *c->first);
    st = c->complete != NULL || c->first != NULL ? tutti_future_create(&c->whole)
                                                 : tti_fail(TUTTI_E_NOMEM, "no memory to collect %d futures", n);
    for (i = 0; i < n && st == TUTTI_OK; i++) {
        c->members[i] = (member){ .of = c, .index = i };
        st = tti_future_call_create(fn, &c->members[i], &c->members[i].call);
    }
    if (st != TUTTI_OK) {
        release(c);
        return st;
    }
    if (all)
        *c->complete = (tutti_futures){ .at = (tutti_future **)(void *)(c->complete + 1), .n = n };
    *collection_out = c;
    return TUTTI_OK;
}

static tutti_status check(const char *what, tutti_future *const *futures, int n, int least)
{
    int i;

    if (n < least || (futures == NULL && n > 0))
        return tti_fail(TUTTI_E_ARG, "%s: a list of %d futures%s", what, n, futures == NULL ? " that is NULL" : "");
    for (i = 0; i < n; i++)
        if (futures[i] == NULL)
            return tti_fail(TUTTI_E_ARG, "%s: future %d of %d is NULL", what, i, n);
    return TUTTI_OK;
}

/* The last call may free c: nothing of it is read after that. */
static void attach_all(collection *c, tutti_future *const *futures)
{
    const int        n = c->n;
    tti_future_call *call;
    int              i;

    for (i = 0; i < n; i++) {
        call = c->members[i].call;
        c->members[i].call = NULL;
        tti_future_attach(futures[i], call);
    }
}

/* ---- all ---- */

static void finish_all(collection *c)
{
    tutti_futures *value = c->complete;

    c->complete = NULL;
    if (tutti_future_set_result(c->whole, value, free_futures) != TUTTI_OK)
        free_futures(value);
    release(c);
}

/* Entries are written before left is counted down (release), and read by whoever counts it to 0 (acquire). */
static void one_of_all(tutti_future *future, void *ctx)
{
    member     *m = ctx;
    collection *c = m->of;

    c->complete->at[m->index] = tutti_future_retain(future);
    if (atomic_fetch_sub_explicit(&c->left, 1, memory_order_acq_rel) == 1)
        finish_all(c);
}

tutti_status tutti_collect_all(tutti_future *const *futures, int n, tutti_future **all_out)
{
    collection  *c = NULL;
    tutti_status st = check("collect_all", futures, n, 0);

    if (st == TUTTI_OK && all_out == NULL)
        st = tti_fail(TUTTI_E_ARG, "collect_all: all_out is NULL");
    if (st == TUTTI_OK)
        st = create(n, true, one_of_all, &c);
    if (st != TUTTI_OK)
        return st;
    *all_out = tutti_future_retain(c->whole);
    if (n == 0)
        finish_all(c);
    else
        attach_all(c, futures);
    return TUTTI_OK;
}

/* ---- any ---- */

static void one_of_any(tutti_future *future, void *ctx)
{
    member     *m = ctx;
    collection *c = m->of;
    int        *first;

    (void)future;
    if (!atomic_exchange(&c->taken, true)) {
        first = c->first; /* the one that takes it is the only one to touch it before the last leaves */
        c->first = NULL;
        *first = m->index;
        if (tutti_future_set_result(c->whole, first, free) != TUTTI_OK)
            free(first);
    }
    if (atomic_fetch_sub_explicit(&c->left, 1, memory_order_acq_rel) == 1)
        release(c);
}

tutti_status tutti_collect_any(tutti_future *const *futures, int n, tutti_future **any_out)
{
    collection  *c = NULL;
    tutti_status st = check("collect_any", futures, n, 1);

    if (st == TUTTI_OK && any_out == NULL)
        st = tti_fail(TUTTI_E_ARG, "collect_any: any_out is NULL");
    if (st == TUTTI_OK)
        st = create(n, false, one_of_any, &c);
    if (st != TUTTI_OK)
        return st;
    *any_out = tutti_future_retain(c->whole);
    attach_all(c, futures);
    return TUTTI_OK;
}

/* ---- waiting ---- */

tutti_status tutti_future_wait_all(tutti_future *const *futures, int n, int64_t timeout_ms)
{
    int64_t      deadline_ns = 0;
    tutti_status st = check("future_wait_all", futures, n, 0);
    int          i;

    if (st == TUTTI_OK && n > 0)
        st = tti_future_deadline(futures[0], timeout_ms, &deadline_ns);
    for (i = 0; i < n && st == TUTTI_OK; i++)
        if (!tti_future_await(futures[i], deadline_ns))
            st = tti_fail(TUTTI_E_TIMEOUT, "future %d of %d is not complete in time\n  next: wait again", i, n);
    for (i = 0; i < n && st == TUTTI_OK; i++)
        st = tti_future_outcome(futures[i]);
    return st;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * batch.c - several messages at once.
 *
 * A batch is all or nothing up to the first byte: every message is checked and has its work before
 * the first is posted. Posting never blocks and messages do not wait for each other, so the order
 * within a batch cannot deadlock. One that cannot be posted is a work that has failed: those before
 * it are under way and their owner needs their works.
 * A backend that can begins all of them at once (its entry post_all), and their works are listed at once. Where
 * hooks watch they are posted one by one, for hooks are called around each. */
#include "group/asked.h"
#include "group/hooks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

/* What goes with entry i stands at i. */
typedef struct batch {
    tutti_group    *group;
    int             n;
    tti_posting    *postings;
    tutti_message  *messages; /* those of postings, in a row */
    tutti_request **requests;
    tutti_work    **works;
} batch;

static tutti_status check_op(const tutti_group *group, const tutti_p2p_op *op, int i,
                             tti_posting *p)
{
    const char  *way = op->is_send ? "isend" : "irecv";
    char         what[64];
    tutti_status st;

    *p = (tti_posting){ .what = way, .message = { .is_send = op->is_send }, .peer = op->peer };
    st = tti_posting_check(group, op->span, op->tag, p);
    if (st == TUTTI_OK)
        return st;
    snprintf(what, sizeof what, "batch_isend_irecv: ops[%d], %s", i, way);
    p->what = what;
    return tti_posting_check(group, op->span, op->tag, p); /* again, for its words */
}

/* The message of work could not be posted. */
static void fail_work(tutti_group *group, tutti_work *work, tutti_status st)
{
    tti_lock(&group->runner->lock);
    tti_work_finish(work, st, tutti_last_error());
    tti_unlock(&group->runner->lock);
}

/* What the last one that failed came to, in this thread's words. */
static tutti_status begin_each(const batch *b)
{
    tutti_status failed = TUTTI_OK;
    tutti_status st;
    int          i;

    for (i = 0; i < b->n; i++) {
        st = tti_posting_begin(b->group, &b->postings[i], b->works[i]);
        if (st == TUTTI_OK)
            continue;
        failed = st;
        fail_work(b->group, b->works[i], st);
    }
    return failed;
}

/* Those from first on, up to end, that the same backend takes: how many were begun. */
static tutti_status post_some(const batch *b, int first, int end, int *n_out)
{
    const tti_route *route = &b->group->routes[b->messages[first].device];
    tutti_status     st;
    int              i;

    st = tti_asked_post_all(route, b->messages + first, end - first, b->requests + first, n_out);
    tti_lock(&b->group->runner->lock);
    for (i = first; i < first + *n_out; i++)
        tti_posting_begun(b->group, &b->postings[i], b->requests[i], b->works[i]);
    tti_unlock(&b->group->runner->lock);
    return st;
}

/* Messages behind first, itself included, of its device: where they end. */
static int end_of_device(const batch *b, int first)
{
    int end = first + 1;

    while (end < b->n && b->messages[end].device == b->messages[first].device)
        end++;
    return end;
}

/* The same as begin_each(), many at a time. */
static tutti_status begin_together(const batch *b)
{
    tutti_status failed = TUTTI_OK;
    tutti_status st;
    int          i, n = 0;

    for (i = 0; i < b->n; i++)
        tti_posting_name(b->group, &b->postings[i], b->works[i]);
    for (i = 0; i < b->n; i += n) {
        st = post_some(b, i, end_of_device(b, i), &n);
        if (st == TUTTI_OK)
            continue;
        failed = st;
        fail_work(b->group, b->works[i + n], st);
        n++;
    }
    return failed;
}

/* Hooks are told of every message before and after it is posted. */
static bool goes_together(const batch *b)
{
    bool can = !tti_hooks_any(b->group);
    int  i;

    for (i = 0; i < b->n && can; i++)
        can = b->group->routes[b->messages[i].device].ops->post_all != NULL;
    return can;
}

static tutti_status run_batch(const batch *b)
{
    tutti_status st;

    st = tti_group_enter(b->group);
    if (st != TUTTI_OK)
        return st;
    st = tti_works_create(b->group, b->n, b->works);
    if (st != TUTTI_OK) {
        tti_group_leave(b->group, "batch_isend_irecv", TUTTI_OK);
        return st;
    }
    tti_group_leave(b->group, "batch_isend_irecv", goes_together(b) ? begin_together(b) : begin_each(b));
    return TUTTI_OK;
}

static tutti_status take_arrays(batch *b)
{
    const size_t n = (size_t)b->n;

    b->postings = calloc(n, sizeof *b->postings);
    b->messages = calloc(n, sizeof *b->messages);
    b->requests = calloc(n, sizeof(tutti_request *));
    b->works = calloc(n, sizeof(tutti_work *));
    if (b->postings == NULL || b->messages == NULL || b->requests == NULL || b->works == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a batch of %d messages", b->n);
    return TUTTI_OK;
}

static tutti_status check_all(batch *b, const tutti_p2p_op *ops)
{
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 0; i < b->n && st == TUTTI_OK; i++) {
        st = check_op(b->group, &ops[i], i, &b->postings[i]);
        b->messages[i] = b->postings[i].message;
    }
    return st;
}

static tutti_status do_batch(tutti_group *group, const tutti_p2p_op *ops, int n, tutti_work **works_out)
{
    batch        b = { .group = group, .n = n };
    tutti_status st = take_arrays(&b);

    if (st == TUTTI_OK)
        st = check_all(&b, ops);
    if (st == TUTTI_OK)
        st = run_batch(&b);
    if (st == TUTTI_OK)
        memcpy(works_out, b.works, (size_t)n * sizeof(tutti_work *));
    free(b.postings);
    free(b.messages);
    free(b.requests);
    free(b.works);
    return st;
}

tutti_status tutti_batch_isend_irecv(const tutti_p2p_op *ops, int n_ops, tutti_group *group,
                                     tutti_work **works_out)
{
    tutti_group *g = NULL;
    tutti_status st;
    int          i;

    if (ops == NULL || n_ops < 1 || works_out == NULL)
        return tti_fail(TUTTI_E_ARG, "batch_isend_irecv: %s\n  next: pass one or more messages, and room for as many works",
                        works_out == NULL ? "works_out is NULL" : "there are no ops");
    st = tti_group_resolve(group, "batch_isend_irecv", &g);
    if (st != TUTTI_OK)
        return st;
    for (i = 0; g == NULL && i < n_ops; i++)
        works_out[i] = tti_work_nothing();
    return g == NULL ? TUTTI_OK : do_batch(g, ops, n_ops, works_out);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * batch.c - several messages at once.
 *
 * A batch is all or nothing up to the first byte: every message is checked and has its work before
 * the first is posted. Posting never blocks and messages do not wait for each other, so the order
 * within a batch cannot deadlock. One that cannot be posted is a work that has failed: those before
 * it are under way and their owner needs their works. */
#include "group/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

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

static tutti_status create_works(tutti_group *group, int n, tutti_work **works)
{
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 0; i < n && st == TUTTI_OK; i++)
        st = tti_work_create(group, 0, &works[i]);
    for (i = 0; i < n && st != TUTTI_OK && works[i] != NULL; i++)
        tti_work_drop(works[i]);
    return st;
}

/* What the last one that failed came to, in this thread's words. */
static tutti_status begin_all(tutti_group *group, const tti_posting *postings, int n,
                              tutti_work **works)
{
    tutti_status failed = TUTTI_OK;
    tutti_status st;
    int          i;

    for (i = 0; i < n; i++) {
        st = tti_posting_begin(group, &postings[i], works[i]);
        if (st == TUTTI_OK)
            continue;
        failed = st;
        tti_lock(&group->runner->lock);
        tti_work_finish(works[i], st, tutti_last_error());
        tti_unlock(&group->runner->lock);
    }
    return failed;
}

static tutti_status run_batch(tutti_group *group, const tti_posting *postings, int n,
                              tutti_work **works)
{
    tutti_status st;

    st = tti_group_enter(group);
    if (st != TUTTI_OK)
        return st;
    st = create_works(group, n, works);
    if (st != TUTTI_OK) {
        tti_group_leave(group, "batch_isend_irecv", TUTTI_OK);
        return st;
    }
    tti_group_leave(group, "batch_isend_irecv", begin_all(group, postings, n, works));
    return TUTTI_OK;
}

static tutti_status batch(tutti_group *group, const tutti_p2p_op *ops, int n,
                          tutti_work **works_out)
{
    tti_posting *postings = calloc((size_t)n, sizeof *postings);
    tutti_work **works = calloc((size_t)n, sizeof(tutti_work *));
    tutti_status st = TUTTI_OK;
    int          i;

    if (postings == NULL || works == NULL)
        st = tti_fail(TUTTI_E_NOMEM, "no memory for a batch of %d messages", n);
    for (i = 0; i < n && st == TUTTI_OK; i++)
        st = check_op(group, &ops[i], i, &postings[i]);
    if (st == TUTTI_OK)
        st = run_batch(group, postings, n, works);
    if (st == TUTTI_OK)
        memcpy(works_out, works, (size_t)n * sizeof(tutti_work *));
    free(postings);
    free(works);
    return st;
}

tutti_status tutti_batch_isend_irecv(const tutti_p2p_op *ops, int n_ops, tutti_group *group,
                                     tutti_work **works_out)
{
    tutti_group *g = NULL;
    tutti_status st;
    int          i;

    if (ops == NULL || n_ops < 1 || works_out == NULL)
        return tti_fail(TUTTI_E_ARG, "batch_isend_irecv: %s",
                        works_out == NULL ? "works_out is NULL" : "there are no ops");
    st = tti_group_resolve(group, "batch_isend_irecv", &g);
    if (st != TUTTI_OK)
        return st;
    for (i = 0; g == NULL && i < n_ops; i++)
        works_out[i] = tti_work_nothing();
    return g == NULL ? TUTTI_OK : batch(g, ops, n_ops, works_out);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hang_find.c - from operations to causes.
 *
 * Why     A job that hangs has many ranks that wait and few that are waited for. Those are to be named.
 * How     1. What each rank is at (hang_ranks.c), in one world, the one that is there now: numbers of former ones are others'
 *            by now.
 *         2. Whom it waits for. In a collective: members that have not issued that number, or something else under it, or
 *            that have failed, or are dead or stopped on the way. In a message: the other end, unless both are in it.
 *         3. A cause is a rank that is waited for and waits for nobody, or cannot go on. Ranks from which no cause is
 *            reached go round in a circle, which is then the cause. */
#include "hang_find.h"

#include <stdlib.h>

/* ---- whom it waits for ------------------------------------------------------------------------- */

static bool cannot_go_on(hang_at at)
{
    return at != HANG_WAITS && at != HANG_BUSY && at != HANG_JOINS;
}

static bool differs(const view_op *a, const view_op *b)
{
    return a->r.kind != b->r.kind || a->r.dtype != b->r.dtype || a->r.count != b->r.count || a->r.reduce != b->r.reduce ||
           a->r.peer != b->r.peer;
}

/* Whether a collective's member has come to it, and does it as the others do. */
static bool has_come(const hang_rank *m, const view_op *op)
{
    const view_op *its;

    if (m->seen == NULL || m->seen->own[op->group].name == NULL || m->seen->own[op->group].issued < op->r.seq)
        return false;
    its = view_find_op(m->seen, op->group, op->r.seq);
    return its == NULL || ((its->r.state != TUTTI_RECORD_FAILED || its->until_saved) && !differs(its, op));
}

/* Whether that rank is in an operation of this kind in this group, whatever its number. */
static bool is_in_kind(const hang_rank *m, const view_op *op)
{
    return m->wait != NULL && m->wait->group == op->group && m->wait->r.kind == op->r.kind;
}

/* Whether the other end of a message is in it, too. */
static bool is_other_end(const hang_rank *m, int rank, const view_op *op)
{
    const tutti_record_kind other = op->r.kind == TUTTI_RECORD_SEND ? TUTTI_RECORD_RECV : TUTTI_RECORD_SEND;
    int i;

    for (i = 0; m->seen != NULL && i < m->seen->n_ops; i++) {
        const view_op *its = &m->seen->ops[i];

        if (view_was_open(its) && its->r.kind == other && its->group == op->group && its->r.tag == op->r.tag &&
            (its->r.peer == rank || its->r.peer < 0))
            return true;
    }
    return false;
}

static bool is_awaited(const hang_rank *r, const hang_rank *m, const view_op *op)
{
    if (op->r.kind == TUTTI_RECORD_SEND || op->r.kind == TUTTI_RECORD_RECV)
        return (op->r.peer < 0 || op->r.peer == m->rank) && (cannot_go_on(m->at) || !is_other_end(m, r->rank, op));
    if (op->r.kind == TUTTI_RECORD_WAIT_SIGNAL)
        return op->r.peer < 0 || op->r.peer == m->rank;
    if (op->r.kind == TUTTI_RECORD_MONITORED_BARRIER || op->r.kind == TUTTI_RECORD_NEW_GROUP || (view_is_collective(op) && op->r.seq == 0))
        return cannot_go_on(m->at) || !is_in_kind(m, op);
    if (!view_is_collective(op)) /* on a window: nobody need be there for it, but alive */
        return op->r.peer == m->rank && cannot_go_on(m->at);
    if (!has_come(m, op))
        return true;
    return cannot_go_on(m->at) && m->at != HANG_LEFT && m->wait != NULL; /* stopped, or dead, on the way */
}

/* In a rooted operation the root, if it has not come, is enough to wait for. */
static bool is_rooted_elsewhere(const hang *h, const hang_rank *r)
{
    const view_op *op = r->wait;
    const int root = op->r.peer;

    return view_is_collective(op) && root >= 0 && root < h->n && root != r->rank && !has_come(&h->ranks[root], op);
}

/* A world is made when all have come. */
static void await_joining(hang *h, hang_rank *r)
{
    int m;

    for (m = 0; m < h->n; m++)
        if (m != r->rank && (h->ranks[m].seen == NULL || cannot_go_on(h->ranks[m].at)))
            r->awaits[r->n_awaits++] = m;
}

static bool find_awaited(hang *h, hang_rank *r)
{
    const view_group *g = r->wait != NULL && r->wait->group >= 0 ? &h->view->groups[r->wait->group] : NULL;
    int i, m;

    r->awaits = calloc((size_t)h->n, sizeof *r->awaits);
    if (r->awaits == NULL)
        return false;
    if (r->at == HANG_JOINS)
        await_joining(h, r);
    if (g == NULL)
        return true;
    if (is_rooted_elsewhere(h, r)) {
        r->awaits[r->n_awaits++] = r->wait->r.peer;
        return true;
    }
    for (i = 0; i < g->n_ranks && (g->ranks != NULL || g->n_ranks == h->n) && r->n_awaits < h->n; i++) {
        m = g->ranks != NULL ? g->ranks[i] : i; /* a damaged list may have somebody twice */
        if (m >= 0 && m < h->n && m != r->rank && is_awaited(r, &h->ranks[m], r->wait))
            r->awaits[r->n_awaits++] = m;
    }
    return true;
}

/* ---- causes ------------------------------------------------------------------------------------ */

/* Also who is in an operation in which nobody is missing: that one is slow, and it is no circle. */
static bool is_cause(const hang_rank *r)
{
    return (r->at != HANG_WAITS && r->at != HANG_JOINS) || r->n_awaits == 0;
}

/* Mark all ranks from which one of the marked is reached. */
static void spread(const hang *h, bool *marked)
{
    bool more = true;
    int i, k;

    while (more) {
        more = false;
        for (i = 0; i < h->n; i++)
            for (k = 0; k < h->ranks[i].n_awaits && !marked[i]; k++)
                if (marked[h->ranks[i].awaits[k]])
                    marked[i] = more = true;
    }
}

static hang_cause *add_cause(hang *h)
{
    hang_cause *more = realloc(h->causes, (size_t)(h->n_causes + 1) * sizeof *more), *c;

    if (more == NULL)
        return NULL;
    h->causes = more;
    c = &more[h->n_causes];
    *c = (hang_cause){ .ranks = calloc((size_t)h->n, sizeof *c->ranks), .waiters = calloc((size_t)h->n, sizeof *c->waiters) };
    h->n_causes++;
    return c->ranks != NULL && c->waiters != NULL ? c : NULL;
}

/* Who reaches the cause, its own ranks left out. */
static bool fill_waiters(const hang *h, hang_cause *c)
{
    bool *marked = calloc((size_t)h->n, sizeof *marked);
    int i;

    if (marked == NULL)
        return false;
    for (i = 0; i < c->n; i++)
        marked[c->ranks[i]] = true;
    spread(h, marked);
    for (i = 0; i < c->n; i++)
        marked[c->ranks[i]] = false;
    for (i = 0; i < h->n; i++)
        if (marked[i])
            c->waiters[c->n_waiters++] = i;
    free(marked);
    return true;
}

/* The circle that is run into from a rank from which no other cause is reached. */
static bool walk_circle(hang *h, int from, const bool *explained)
{
    hang_cause *c = add_cause(h);
    int at = from, next, k, steps;

    if (c == NULL)
        return false;
    c->circle = true;
    for (steps = 0; steps < 2 * h->n; steps++) { /* after n steps it is on the circle; the second n go round it */
        for (k = 0; k < h->ranks[at].n_awaits && explained[h->ranks[at].awaits[k]];)
            k++;
        next = k < h->ranks[at].n_awaits ? h->ranks[at].awaits[k] : at;
        if (steps >= h->n && c->n > 0 && at == c->ranks[0])
            break;
        if (steps >= h->n)
            c->ranks[c->n++] = at;
        at = next;
    }
    return fill_waiters(h, c);
}

/* Who is dead or stopped is one also when nobody waits for it, or does not yet. */
static bool is_single_cause(const hang_rank *r, bool awaited)
{
    return r->at == HANG_DEAD || r->at == HANG_STOPPED || r->at == HANG_FROZEN || r->at == HANG_TRACED || (is_cause(r) && awaited);
}

static bool add_single_cause(hang *h, int rank)
{
    hang_cause *c = add_cause(h);

    if (c == NULL)
        return false;
    c->ranks[c->n++] = rank;
    return fill_waiters(h, c);
}

static bool find_single_causes(hang *h, bool *explained)
{
    bool *awaited = calloc((size_t)h->n + 1, sizeof *awaited); /* by any */
    bool ok = awaited != NULL;
    int i, k;

    for (i = 0; i < h->n && ok; i++)
        for (k = 0; k < h->ranks[i].n_awaits; k++)
            awaited[h->ranks[i].awaits[k]] = true;
    for (i = 0; i < h->n && ok; i++)
        if (is_single_cause(&h->ranks[i], awaited[i])) {
            explained[i] = true;
            ok = add_single_cause(h, i);
        }
    free(awaited);
    if (ok)
        spread(h, explained);
    return ok;
}

static bool find_causes(hang *h)
{
    bool *explained = calloc((size_t)h->n + 1, sizeof *explained);
    bool ok = explained != NULL && find_single_causes(h, explained);
    int i, k;

    for (i = 0; i < h->n && ok; i++) {
        if (explained[i] || h->ranks[i].n_awaits == 0)
            continue;
        ok = walk_circle(h, i, explained);
        for (k = 0; ok && k < h->causes[h->n_causes - 1].n; k++)
            explained[h->causes[h->n_causes - 1].ranks[k]] = true;
        if (ok)
            spread(h, explained);
    }
    free(explained);
    return ok;
}

/* ---- all of it --------------------------------------------------------------------------------- */

/* Also who is stopped within an operation; but not who is no more. */
static bool is_waiting(const hang_rank *r)
{
    return (r->wait != NULL && r->at != HANG_DEAD && r->at != HANG_LEFT) || r->at == HANG_JOINS;
}

/* A death first, as its group ends with it; then the one that most wait for: it is in the first line. */
static int by_waiters(const void *a, const void *b)
{
    const hang_cause *x = a, *y = b;

    if (x->is_death != y->is_death)
        return x->is_death ? -1 : 1;
    if (x->n_waiters != y->n_waiters)
        return x->n_waiters > y->n_waiters ? -1 : 1;
    return (x->ranks[0] > y->ranks[0]) - (x->ranks[0] < y->ranks[0]);
}

bool hang_find(const job_view *view, int world, const hang_look *look, double least_s, hang *h)
{
    bool ok;
    int i;

    *h = (hang){ .view = view, .world = world };
    ok = hang_place_ranks(h);
    if (ok)
        hang_look_at_ranks(h, look, least_s);
    for (i = 0; i < h->n && ok; i++) {
        if (is_waiting(&h->ranks[i]))
            ok = find_awaited(h, &h->ranks[i]);
        h->n_joining += h->ranks[i].at == HANG_JOINS;
        if (h->ranks[i].at == HANG_WAITS) {
            h->n_waiting++;
            h->longest_s = h->ranks[i].since_s > h->longest_s ? h->ranks[i].since_s : h->longest_s;
        }
    }
    ok = ok && find_causes(h);
    for (i = 0; i < h->n_causes && ok; i++)
        h->causes[i].is_death = !h->causes[i].circle && h->ranks[h->causes[i].ranks[0]].at == HANG_DEAD;
    if (ok && h->n_causes > 1)
        qsort(h->causes, (size_t)h->n_causes, sizeof *h->causes, by_waiters);
    return ok;
}

bool hang_is_one(const hang *h)
{
    return h->n_causes > 0 || h->n_waiting > 0;
}

void hang_release(hang *h)
{
    int i;

    for (i = 0; i < h->n && h->ranks != NULL; i++)
        free(h->ranks[i].awaits);
    for (i = 0; i < h->n_causes; i++) {
        free(h->causes[i].ranks);
        free(h->causes[i].waiters);
    }
    free(h->ranks);
    free(h->others);
    free(h->causes);
    *h = (hang){ .n = 0 };
}

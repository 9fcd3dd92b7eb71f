/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hang_find.c - from operations to causes.
 *
 * Why     A job that hangs has many ranks that wait and few that are waited for. Those are to be named.
 * How     1. What each rank is at (hang_ranks.c), in one world, the one that is there now: numbers of former ones are others'
 *            by now.
 *         2. Whom it waits for. In a collective: members that have not issued that number, or something else under it, or
 *            that have failed, or are dead or stopped on the way. In a message: the other end, unless both are in it. In a
 *            call that makes a group of another one: members that are not in it; in a shrink not the dead, and not whom it leaves out.
 *            Of files that failures have written each tells of its own moment: who came when others had given up had not come.
 *         3. A cause is a rank that is waited for and waits for nobody, or cannot go on. Ranks from which no cause is
 *            reached go round in a circle, which is then the cause. */
#include "hang_find.h"

#include <stdlib.h>
#include <string.h>

/* What clocks of hosts may differ by: who came so much behind others may have come with them. */
#define CLOCKS_DIFFER_NS INT64_C(1000000000)

/* ---- whom it waits for ------------------------------------------------------------------------- */

static bool cannot_go_on(hang_at at)
{
    return at != HANG_WAITS && at != HANG_BUSY && at != HANG_JOINS;
}

/* Both in one time, where hosts have clocks of their own. */
static int64_t real_ns(const hang_rank *r, int64_t ns)
{
    return ns + r->seen->info.real_ns;
}

double hang_came_late_s(const hang_rank *m, const view_op *its, const hang_rank *r)
{
    const bool one_clock = m->seen != NULL && r->seen != NULL && strcmp(m->seen->info.host, r->seen->info.host) == 0;
    int64_t late_ns;

    if (m->seen == NULL || r->seen == NULL || its == NULL || r->seen->info.saved_for == 0)
        return 0;
    late_ns = real_ns(m, its->r.issued_ns) - real_ns(r, r->seen->info.read_ns);
    return late_ns > (one_clock ? 0 : CLOCKS_DIFFER_NS) ? 1e-9 * (double)late_ns : 0;
}

static bool differs(const view_op *a, const view_op *b)
{
    return a->r.kind != b->r.kind || a->r.dtype != b->r.dtype || a->r.count != b->r.count || a->r.reduce != b->r.reduce ||
           a->r.peer != b->r.peer;
}

/* Whether a collective's member has come to what r is in, op, and does it as the others do. */
static bool has_come(const hang_rank *m, const view_op *op, const hang_rank *r)
{
    const view_op *its;

    if (m->seen == NULL || m->seen->own[op->group].name == NULL || m->seen->own[op->group].issued < op->r.seq)
        return false;
    its = view_find_op(m->seen, op->group, op->r.seq);
    if (hang_came_late_s(m, its, r) > 0)
        return false;
    return its == NULL || ((its->r.state != TUTTI_RECORD_FAILED || its->until_saved) && !differs(its, op));
}

/* The operation of op's kind in op's group that rank m is in, whatever its number; NULL: none. */
static const view_op *find_kind(const hang_rank *m, const view_op *op)
{
    if (m->wait != NULL && m->wait->group == op->group && m->wait->r.kind == op->r.kind)
        return m->wait;
    return m->oldest != NULL && m->oldest->group == op->group && m->oldest->r.kind == op->r.kind ? m->oldest : NULL;
}

static bool is_in_kind(const hang_rank *m, const view_op *op, const hang_rank *r)
{
    const view_op *its = find_kind(m, op);

    return its != NULL && hang_came_late_s(m, its, r) == 0;
}

const view_op *hang_same_op(const hang_rank *m, const hang_rank *r)
{
    if (r->wait == NULL || m->seen == NULL || r->wait->group < 0)
        return NULL;
    return view_is_collective(r->wait) && r->wait->r.seq != 0 ? view_find_op(m->seen, r->wait->group, r->wait->r.seq)
                                                              : find_kind(m, r->wait);
}

static bool is_over(hang_at at)
{
    return at == HANG_DEAD || at == HANG_LEFT || at == HANG_PARTED;
}

/* Rank of the job that is member i of g; -1: none, as a damaged list may say. */
static int member_of(const hang *h, const view_group *g, int i)
{
    const int rank = g->ranks != NULL ? g->ranks[i] : i;

    return rank >= 0 && rank < h->n ? rank : -1;
}

/* Whether all members that are not in a shrink may be those that its list leaves out: in a large group that is not known. */
static bool may_all_be_left_out(const hang *h, const view_group *g, const hang_rank *r)
{
    int n = 0, i, rank;

    if (r->wait->r.peer >= 0 || r->wait->r.is_listed)
        return false;
    for (i = 0; i < g->n_ranks && (g->ranks != NULL || g->n_ranks == h->n); i++)
        n += (rank = member_of(h, g, i)) >= 0 && rank != r->rank && !is_in_kind(&h->ranks[rank], r->wait, r);
    return n <= r->wait->r.count;
}

/* In a shrink those are waited for that live, and are not left out by it. place: of m in the group. */
static bool is_awaited_to_shrink(const hang_rank *r, const hang_rank *m, int place)
{
    if (is_over(m->at) || m->rank == r->wait->r.peer || view_is_left_out(r->wait, place))
        return false;
    return cannot_go_on(m->at) || !is_in_kind(m, r->wait, r);
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

static bool is_awaited(const hang_rank *r, const hang_rank *m, int place)
{
    const view_op *op = r->wait;

    if (op->r.kind == TUTTI_RECORD_SEND || op->r.kind == TUTTI_RECORD_RECV)
        return (op->r.peer < 0 || op->r.peer == m->rank) && (cannot_go_on(m->at) || !is_other_end(m, r->rank, op));
    if (op->r.kind == TUTTI_RECORD_WAIT_SIGNAL)
        return op->r.peer < 0 || op->r.peer == m->rank;
    if (op->r.kind == TUTTI_RECORD_RECONFIGURE) /* whom it names stands nowhere */
        return false;
    if (op->r.kind == TUTTI_RECORD_SHRINK_GROUP)
        return is_awaited_to_shrink(r, m, place);
    if (op->r.kind == TUTTI_RECORD_MONITORED_BARRIER || view_is_regrouping(op) || (view_is_collective(op) && op->r.seq == 0))
        return cannot_go_on(m->at) || !is_in_kind(m, op, r);
    if (!view_is_collective(op)) /* on a window: nobody need be there for it, but alive */
        return op->r.peer == m->rank && cannot_go_on(m->at);
    if (!has_come(m, op, r))
        return true;
    return cannot_go_on(m->at) && m->at != HANG_LEFT && m->wait != NULL; /* stopped, or dead, on the way */
}

/* In a rooted operation the root, if it has not come, is enough to wait for. */
static bool is_rooted_elsewhere(const hang *h, const hang_rank *r)
{
    const view_op *op = r->wait;
    const int root = op->r.peer;

    return view_is_collective(op) && root >= 0 && root < h->n && root != r->rank && !has_come(&h->ranks[root], op, r);
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
    if (r->wait->r.kind == TUTTI_RECORD_SHRINK_GROUP && may_all_be_left_out(h, g, r))
        return true;
    if (is_rooted_elsewhere(h, r)) {
        r->awaits[r->n_awaits++] = r->wait->r.peer;
        return true;
    }
    for (i = 0; i < g->n_ranks && (g->ranks != NULL || g->n_ranks == h->n) && r->n_awaits < h->n; i++) {
        m = member_of(h, g, i); /* a damaged list may have somebody twice */
        if (m >= 0 && m != r->rank && is_awaited(r, &h->ranks[m], i))
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
    c->is_unread = h->ranks[rank].at == HANG_UNSEEN || h->ranks[rank].at == HANG_UNNAMED;
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

/* Whether somebody is at going on without the dead: they are no news then. */
static bool is_shrinking(const hang *h)
{
    int i;

    for (i = 0; i < h->n; i++)
        if (h->ranks[i].at == HANG_WAITS && h->ranks[i].wait->r.kind == TUTTI_RECORD_SHRINK_GROUP)
            return true;
    return false;
}

/* A death first, as its group ends with it; then the one that most wait for: it is in the first line. */
static int by_waiters(const void *a, const void *b)
{
    const hang_cause *x = a, *y = b;

    if (x->is_death != y->is_death)
        return x->is_death ? -1 : 1;
    if (x->is_unread != y->is_unread) /* of whom nothing was read it is only known that he is waited for: he may wait himself */
        return x->is_unread ? 1 : -1;
    if (x->n_waiters != y->n_waiters)
        return x->n_waiters > y->n_waiters ? -1 : 1;
    return (x->ranks[0] > y->ranks[0]) - (x->ranks[0] < y->ranks[0]);
}

bool hang_find(const job_view *view, const char *job, int world, const hang_look *look, double least_s, hang *h)
{
    bool ok;
    int i;

    *h = (hang){ .view = view, .job = job, .world = world };
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
        h->causes[i].is_death = !h->causes[i].circle && h->ranks[h->causes[i].ranks[0]].at == HANG_DEAD && !is_shrinking(h);
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

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hang_find.c - from operations to causes.
 *
 * Why     A job that hangs has many ranks that wait and few that are waited for. Those are to be named.
 * How     1. What each rank is at: its process's state, and the oldest operation that it is in and was in at the first
 *            look. An asynchronous one counts if the process does nothing else meanwhile.
 *         2. Whom it waits for. In a collective: members that have not issued that number, or something else under it, or
 *            that have failed, or are dead or stopped on the way. In a message: the other end, unless both are in it.
 *         3. A cause is a rank that is waited for and waits for nobody, or cannot go on. Ranks from which no cause is
 *            reached go round in a circle, which is then the cause.
 * True    Numbers are copies of what the ranks wrote while they went on, so two ranks may have been read some
 *         milliseconds apart: what moves between the two looks is left out. */
#include "hang.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define IDLE_SHARE 0.2

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- two looks --------------------------------------------------------------------------------- */

static tutti_recorder_info info_of(const tutti_recorder *recorder)
{
    tutti_recorder_info info = TUTTI_RECORDER_INFO;

    (void)tutti_recorder_get_info(recorder, &info); /* neither is NULL, and info is set */
    return info;
}

bool hang_look_begin(const job_view *view, hang_look *look)
{
    int i;

    *look = (hang_look){ .at_ns = now_ns() };
    look->cpu_s = calloc((size_t)view->n_recorders + 1, sizeof *look->cpu_s);
    for (i = 0; i < view->n_recorders && look->cpu_s != NULL; i++) {
        const tutti_recorder_info info = info_of(view->recorders[i]);

        look->cpu_s[i] = info.is_alive ? process_look((pid_t)info.pid).cpu_s : 0;
    }
    return look->cpu_s != NULL;
}

void hang_look_release(hang_look *look)
{
    free(look->cpu_s);
    *look = (hang_look){ .cpu_s = NULL };
}

/* ---- what a rank is at ------------------------------------------------------------------------- */

static int recorder_index(const job_view *view, const tutti_recorder *recorder)
{
    int i = 0;

    while (i < view->n_recorders && view->recorders[i] != recorder)
        i++;
    return i;
}

static void look_at_process(const job_view *view, const hang_look *look, hang_rank *r)
{
    const int at = recorder_index(view, r->seen->recorder);
    const double took_s = 1e-9 * (double)(now_ns() - look->at_ns);

    r->pid = r->seen->info.pid;
    r->cpu_share = -1;
    if (r->seen->info.is_alive && !view->from_files) {
        r->now = process_look((pid_t)r->pid);
        r->cpu_share = took_s > 0.05 ? (r->now.cpu_s - look->cpu_s[at]) / took_s : -1;
    }
}

static hang_at by_process(const job_view *view, const hang_rank *r)
{
    if (r->seen->info.has_left)
        return HANG_LEFT;
    if (view->from_files && !r->seen->info.is_alive)
        return HANG_BUSY; /* a file does not tell */
    if (!r->seen->info.is_alive || (!view->from_files && r->now.life == PROCESS_GONE))
        return HANG_DEAD;
    switch (r->now.life) {
    case PROCESS_STOPPED: return HANG_STOPPED;
    case PROCESS_TRACED: return HANG_TRACED;
    case PROCESS_FROZEN: return HANG_FROZEN;
    default: return HANG_BUSY;
    }
}

/* Whether the rank has issued anything since the first look. */
static bool has_moved(const hang_look *look, const hang_rank *r)
{
    return r->seen->n_ops > 0 && r->seen->ops[r->seen->n_ops - 1].r.issued_ns > look->at_ns;
}

/* Whether the rank may be in this operation, and nowhere else. */
static bool counts(const job_view *view, const hang_look *look, const hang_rank *r, const view_op *op)
{
    if (!view_is_open(op) || op->r.kind == TUTTI_RECORD_RANGE)
        return false;
    if (view->from_files)
        return true;
    if (op->r.issued_ns > look->at_ns)
        return false; /* it came between the looks */
    return !op->r.is_async || (!has_moved(look, r) && r->cpu_share < IDLE_SHARE);
}

static void find_operations(const job_view *view, const hang_look *look, double least_s, hang_rank *r)
{
    const double now_s = 1e-9 * (double)r->seen->info.read_ns;
    int i;

    r->last_s = -1;
    for (i = r->seen->n_ops - 1; i >= 0; i--) {
        const view_op *op = &r->seen->ops[i];
        const double since_s = now_s - 1e-9 * (double)op->r.issued_ns;

        if (counts(view, look, r, op) && since_s >= least_s) {
            r->wait = op;
            r->since_s = since_s;
        } else if (r->last == NULL && !view_is_open(op) && op->r.kind != TUTTI_RECORD_RANGE) {
            r->last = op;
            r->last_s = op->r.ended_ns != 0 ? now_s - 1e-9 * (double)op->r.ended_ns : since_s;
        }
    }
}

static void look_at_rank(const job_view *view, const hang_look *look, double least_s, hang_rank *r)
{
    look_at_process(view, look, r);
    r->at = by_process(view, r);
    find_operations(view, look, least_s, r);
    if (r->at == HANG_BUSY && r->wait != NULL)
        r->at = HANG_WAITS;
    else if (r->at == HANG_BUSY && tutti_recorder_count_groups(r->seen->recorder) == 0)
        r->at = HANG_JOINS;
}

/* Ranks of which nothing was read: does a process of theirs run here? */
static void look_for_unseen(hang *h)
{
    const char *job = h->view->n_recorders > 0 ? info_of(h->view->recorders[0]).job : "";
    pid_t *pids = calloc((size_t)VIEW_RANKS_MAX, sizeof *pids);
    int *ranks = calloc((size_t)VIEW_RANKS_MAX, sizeof *ranks);
    int n = 0, i;

    if (pids != NULL && ranks != NULL && job[0] != '\0' && !h->view->from_files)
        n = process_find(job, pids, ranks, VIEW_RANKS_MAX);
    for (i = 0; i < n; i++)
        if (ranks[i] < h->n && h->ranks[ranks[i]].seen == NULL && (pid_t)h->ranks[ranks[i]].pid < pids[i]) {
            h->ranks[ranks[i]].pid = pids[i];
            h->ranks[ranks[i]].at = HANG_NOT_JOINED;
            h->ranks[ranks[i]].now = process_look(pids[i]);
        }
    free(pids);
    free(ranks);
}

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
    return its == NULL || (its->r.state != TUTTI_RECORD_FAILED && !differs(its, op));
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

        if (view_is_open(its) && its->r.kind == other && its->group == op->group && its->r.tag == op->r.tag &&
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
    if (op->r.kind == TUTTI_RECORD_MONITORED_BARRIER || (view_is_collective(op) && op->r.seq == 0))
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

static bool is_awaited_by_any(const hang *h, int rank)
{
    int i, k;

    for (i = 0; i < h->n; i++)
        for (k = 0; k < h->ranks[i].n_awaits; k++)
            if (h->ranks[i].awaits[k] == rank)
                return true;
    return false;
}

/* Who is dead or stopped is one also when nobody waits for it, or does not yet. */
static bool is_single_cause(const hang *h, const hang_rank *r)
{
    return r->at == HANG_DEAD || r->at == HANG_STOPPED || r->at == HANG_FROZEN || r->at == HANG_TRACED ||
           (is_cause(r) && is_awaited_by_any(h, r->rank));
}

static bool find_single_causes(hang *h, bool *explained)
{
    int i;

    for (i = 0; i < h->n; i++) {
        hang_cause *c;

        if (!is_single_cause(h, &h->ranks[i]))
            continue;
        c = add_cause(h);
        if (c == NULL)
            return false;
        c->ranks[c->n++] = i;
        explained[i] = true;
        if (!fill_waiters(h, c))
            return false;
    }
    spread(h, explained);
    return true;
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

/* The rank that a process has, or was started as where it has made no world yet; -1: unknown. */
static int rank_of(const view_rank *r)
{
    char text[16];

    if (r->rank >= 0 || !r->info.is_alive || !process_variable((pid_t)r->info.pid, "RANK", text, sizeof text))
        return r->rank < VIEW_RANKS_MAX ? r->rank : -1;
    return atoi(text) >= 0 && atoi(text) < VIEW_RANKS_MAX ? atoi(text) : -1;
}

static int size_of(const job_view *view)
{
    int n = 0, i;

    for (i = 0; i < view->n_ranks; i++) {
        n = view->ranks[i].info.world_size > n ? view->ranks[i].info.world_size : n;
        n = rank_of(&view->ranks[i]) >= n ? rank_of(&view->ranks[i]) + 1 : n;
    }
    return n < VIEW_RANKS_MAX ? n : VIEW_RANKS_MAX;
}

bool hang_find(const job_view *view, const hang_look *look, double least_s, hang *h)
{
    bool ok;
    int i;

    *h = (hang){ .view = view, .n = size_of(view) };
    h->ranks = calloc((size_t)h->n + 1, sizeof *h->ranks);
    ok = h->ranks != NULL;
    for (i = 0; i < h->n && ok; i++)
        h->ranks[i] = (hang_rank){ .rank = i, .at = HANG_UNSEEN, .last_s = -1, .cpu_share = -1 };
    for (i = view->n_ranks - 1; i >= 0 && ok; i--)
        if (rank_of(&view->ranks[i]) >= 0)
            h->ranks[rank_of(&view->ranks[i])].seen = &view->ranks[i];
    for (i = 0; i < h->n && ok; i++)
        if (h->ranks[i].seen != NULL)
            look_at_rank(view, look, least_s, &h->ranks[i]);
    if (ok)
        look_for_unseen(h);
    for (i = 0; i < h->n && ok; i++) {
        if (h->ranks[i].wait != NULL || h->ranks[i].at == HANG_JOINS)
            ok = find_awaited(h, &h->ranks[i]);
        h->n_joining += h->ranks[i].at == HANG_JOINS;
        if (h->ranks[i].at == HANG_WAITS) {
            h->n_waiting++;
            h->longest_s = h->ranks[i].since_s > h->longest_s ? h->ranks[i].since_s : h->longest_s;
        }
    }
    return ok && find_causes(h);
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
    free(h->causes);
    *h = (hang){ .n = 0 };
}

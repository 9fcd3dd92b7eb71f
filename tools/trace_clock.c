/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trace_clock.c - one clock for all hosts, and when each operation was on it.
 *
 * Why     Times are those of each host's monotonic clock, whose zero is that host's boot. Wall clocks differ by
 *         milliseconds, which is longer than most operations.
 * How     Nobody ends an all_reduce before everybody has begun it. Each operation that two hosts share so bounds what one
 *         clock is ahead of the other, from both sides; the tightest bounds of all are some round trips apart, and the
 *         middle between them is taken. Of a broadcast only the root's beginning counts, of a reduce only the root's end,
 *         of a message the sender's beginning and the receiver's end.
 * True    Ranks of one host are not moved against each other. Where nothing matches, wall clocks have to do.
 * Source  The same bounds as in Cristian, "Probabilistic clock synchronization", 1989, from messages that were sent anyway. */
#include "trace.h"

#include <stdlib.h>
#include <string.h>

#define UNKNOWN INT64_MIN
#define QUICK_NS 1000 /* shown length of what has ended at once */

void trace_bounds(const int64_t (*begin_ns)[2], const int64_t (*end_ns)[2], int n, int64_t *least_out, int64_t *most_out)
{
    int64_t least = INT64_MIN, most = INT64_MAX;
    int i;

    for (i = 0; i < n; i++) { /* begin[0] <= end[1] + offset, and begin[1] + offset <= end[0] */
        if (begin_ns[i][0] != UNKNOWN && end_ns[i][1] != UNKNOWN && begin_ns[i][0] - end_ns[i][1] > least)
            least = begin_ns[i][0] - end_ns[i][1];
        if (begin_ns[i][1] != UNKNOWN && end_ns[i][0] != UNKNOWN && end_ns[i][0] - begin_ns[i][1] < most)
            most = end_ns[i][0] - begin_ns[i][1];
    }
    *least_out = least;
    *most_out = most;
}

int64_t trace_offset(int64_t least, int64_t most, int64_t guess)
{
    if (least != INT64_MIN && most != INT64_MAX)
        return least / 2 + most / 2 + (least % 2 + most % 2) / 2;
    if (least != INT64_MIN && guess < least)
        return least;
    return most != INT64_MAX && guess > most ? most : guess;
}

/* ---- which host -------------------------------------------------------------------------------- */

static bool find_clocks(trace *t)
{
    const job_view *view = t->view;
    int i, c;

    t->clocks = calloc((size_t)view->n_ranks + 1, sizeof *t->clocks);
    t->clock_of = calloc((size_t)view->n_ranks + 1, sizeof *t->clock_of);
    if (t->clocks == NULL || t->clock_of == NULL)
        return false;
    for (i = 0; i < view->n_ranks; i++) {
        const tutti_recorder_info *info = &view->ranks[i].info;

        for (c = 0; c < t->n_clocks && strcmp(t->clocks[c].host, info->host) != 0;)
            c++;
        if (c == t->n_clocks)
            t->clocks[t->n_clocks++] = (trace_clock){ .host = info->host, .offset_ns = info->real_ns, .least_ns = INT64_MIN,
                                                      .most_ns = INT64_MAX };
        t->clock_of[i] = c;
    }
    return true;
}

/* ---- operations that two hosts share ----------------------------------------------------------- */

/* One rank's part in an operation. */
typedef struct part {
    int group;
    uint64_t seq;
    int clock;
    int64_t begin_ns, end_ns; /* UNKNOWN: it says nothing to the others */
} part;

static int by_operation(const void *a, const void *b)
{
    const part *x = a, *y = b;

    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

/* Whether this rank's beginning is waited for by all members, and its end waits for all. */
static part part_of(const trace *t, int rank, const view_op *op)
{
    const tutti_record_kind kind = op->r.kind;
    const bool is_root = op->r.peer == view_rank_in(&t->view->ranks[rank], op->group);
    const bool from_root = kind == TUTTI_RECORD_BROADCAST || kind == TUTTI_RECORD_SCATTER || kind == TUTTI_RECORD_SCATTER_V;
    const bool to_root = kind == TUTTI_RECORD_REDUCE || kind == TUTTI_RECORD_GATHER || kind == TUTTI_RECORD_GATHER_V;
    part p = { .group = op->group, .seq = op->r.seq, .clock = t->clock_of[rank], .begin_ns = UNKNOWN, .end_ns = UNKNOWN };

    if (op->r.issued_ns != 0 && (!from_root || is_root))
        p.begin_ns = op->r.issued_ns;
    if (op->r.state == TUTTI_RECORD_DONE && op->r.ended_ns != 0 && (!to_root || is_root))
        p.end_ns = op->r.ended_ns;
    return p;
}

static int gather_parts(const trace *t, part **parts_out)
{
    const job_view *view = t->view;
    size_t most = 1;
    int n = 0, i, k;

    for (i = 0; i < view->n_ranks; i++)
        most += (size_t)view->ranks[i].n_ops;
    *parts_out = calloc(most, sizeof **parts_out);
    if (*parts_out == NULL)
        return -1;
    for (i = 0; i < view->n_ranks; i++)
        for (k = 0; k < view->ranks[i].n_ops; k++)
            if (view_is_collective(&view->ranks[i].ops[k]) && view->ranks[i].ops[k].group >= 0)
                (*parts_out)[n++] = part_of(t, i, &view->ranks[i].ops[k]);
    qsort(*parts_out, (size_t)n, sizeof **parts_out, by_operation);
    return n;
}

/* Of one operation, the latest beginning and the earliest end on a clock. */
static void sum_up(const part *parts, int n, int clock, int64_t *begin_ns, int64_t *end_ns)
{
    int i;

    *begin_ns = *end_ns = UNKNOWN;
    for (i = 0; i < n; i++) {
        if (parts[i].clock != clock)
            continue;
        if (parts[i].begin_ns != UNKNOWN && (*begin_ns == UNKNOWN || parts[i].begin_ns > *begin_ns))
            *begin_ns = parts[i].begin_ns;
        if (parts[i].end_ns != UNKNOWN && (*end_ns == UNKNOWN || parts[i].end_ns < *end_ns))
            *end_ns = parts[i].end_ns;
    }
}

static void bound_clocks(trace *t, const part *parts, int n)
{
    int from, to, c;

    for (from = 0; from < n; from = to) {
        int64_t begin[1][2], end[1][2], least, most;

        for (to = from + 1; to < n && by_operation(&parts[from], &parts[to]) == 0;)
            to++;
        sum_up(parts + from, to - from, 0, &begin[0][0], &end[0][0]);
        for (c = 1; c < t->n_clocks; c++) {
            sum_up(parts + from, to - from, c, &begin[0][1], &end[0][1]);
            trace_bounds((const int64_t(*)[2])begin, (const int64_t(*)[2])end, 1, &least, &most);
            t->clocks[c].least_ns = least > t->clocks[c].least_ns ? least : t->clocks[c].least_ns;
            t->clocks[c].most_ns = most < t->clocks[c].most_ns ? most : t->clocks[c].most_ns;
        }
    }
}

static bool set_clocks(trace *t)
{
    part *parts = NULL;
    const int n = t->n_clocks > 1 ? gather_parts(t, &parts) : 0;
    int c;

    if (n > 0)
        bound_clocks(t, parts, n);
    for (c = 1; c < t->n_clocks && n >= 0; c++)
        t->clocks[c].offset_ns =
            trace_offset(t->clocks[c].least_ns, t->clocks[c].most_ns, t->clocks[c].offset_ns - t->clocks[0].offset_ns);
    if (t->n_clocks > 0)
        t->clocks[0].offset_ns = 0;
    free(parts);
    return n >= 0;
}

/* ---- spans ------------------------------------------------------------------------------------- */

/* Until when it is drawn: its end, the moment of reading if there is none yet, or shortly where the end was not measured. */
static int64_t end_of(const view_rank *r, int at)
{
    const tutti_record *op = &r->ops[at].r;
    int64_t next_ns;

    if (op->ended_ns != 0)
        return op->ended_ns;
    if (view_is_open(&r->ops[at]))
        return r->info.read_ns > op->issued_ns ? r->info.read_ns : op->issued_ns;
    next_ns = at + 1 < r->n_ops ? r->ops[at + 1].r.issued_ns : INT64_MAX;
    return next_ns - op->issued_ns < QUICK_NS && next_ns > op->issued_ns ? next_ns : op->issued_ns + QUICK_NS;
}

static bool set_spans(trace *t)
{
    const job_view *view = t->view;
    int i, k;

    t->spans = calloc((size_t)view->n_ranks + 1, sizeof *t->spans);
    if (t->spans == NULL)
        return false;
    for (i = 0; i < view->n_ranks; i++) {
        const view_rank *r = &view->ranks[i];
        const int64_t offset_ns = t->clocks[t->clock_of[i]].offset_ns;

        t->spans[i] = calloc((size_t)r->n_ops + 1, sizeof **t->spans);
        if (t->spans[i] == NULL)
            return false;
        for (k = 0; k < r->n_ops; k++)
            t->spans[i][k] = (trace_span){ .begin_ns = r->ops[k].r.issued_ns + offset_ns, .end_ns = end_of(r, k) + offset_ns };
    }
    return true;
}

bool trace_make(const job_view *view, trace *t)
{
    *t = (trace){ .view = view };
    return find_clocks(t) && set_clocks(t) && set_spans(t);
}

void trace_release(trace *t)
{
    int i;

    for (i = 0; t->spans != NULL && i < t->view->n_ranks; i++)
        free(t->spans[i]);
    free(t->spans);
    free(t->clocks);
    free(t->clock_of);
    *t = (trace){ .view = NULL };
}

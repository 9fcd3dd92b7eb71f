/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trace_flow.c - which send goes with which recv.
 *
 * Messages from one rank to another with one tag and in one group arrive in the order they were sent in, so the n-th goes with
 * the n-th. Where a ring has lost its beginning they are counted from behind: the last one received is the latest that was
 * sent before it came. */
#include <stdlib.h>
#include <string.h>
#include "trace.h"

/* One end of a message. */
typedef struct end {
    int group, src, dst, tag;
    int rank, op; /* in the view */
} end;

static int by_way(const end *x, const end *y)
{
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    if (x->dst != y->dst)
        return x->dst < y->dst ? -1 : 1;
    return (x->tag > y->tag) - (x->tag < y->tag);
}

static int by_way_and_order(const void *a, const void *b)
{
    const end *x = a, *y = b;
    const int way = by_way(x, y);

    if (way != 0 || x->rank != y->rank)
        return way != 0 ? way : (x->rank > y->rank) - (x->rank < y->rank);
    return (x->op > y->op) - (x->op < y->op);
}

/* All sends, or all recvs that have ended. */
static int gather(const job_view *view, tutti_record_kind kind, end *ends)
{
    int n = 0, i, k;

    for (i = 0; i < view->n_ranks; i++)
        for (k = 0; k < view->ranks[i].n_ops; k++) {
            const view_op *op = &view->ranks[i].ops[k];
            const int own = view_rank_in(&view->ranks[i], op->group);

            if (op->r.kind != kind || op->group < 0 || op->r.peer < 0 || op->r.state == TUTTI_RECORD_FAILED ||
                (kind == TUTTI_RECORD_RECV && op->r.state != TUTTI_RECORD_DONE))
                continue;
            ends[n++] = (end){ .group = op->group, .src = kind == TUTTI_RECORD_SEND ? own : op->r.peer,
                               .dst = kind == TUTTI_RECORD_SEND ? op->r.peer : own, .tag = op->r.tag, .rank = i, .op = k };
        }
    qsort(ends, (size_t)n, sizeof *ends, by_way_and_order);
    return n;
}

/* Whether the ring still has its first record, so that nothing was written over. */
static bool is_whole(const job_view *view, int rank)
{
    const view_rank *r = &view->ranks[rank];
    int i = 0;

    while (i < r->n_ops && r->ops[i].r.id != 1)
        i++;
    return i < r->n_ops;
}

/* Which of the sends the last recv goes with. */
static int last_match(const trace *t, const end *sends, int n_sends, const end *recvs, int n_recvs)
{
    const end *last = &recvs[n_recvs - 1];
    int k = n_sends - 1;

    if (is_whole(t->view, sends[0].rank) && is_whole(t->view, last->rank))
        return n_recvs - 1;
    while (k >= 0 && t->spans[sends[k].rank][sends[k].op].begin_ns > t->spans[last->rank][last->op].end_ns)
        k--;
    return k;
}

static int match_way(const trace *t, const end *sends, int n_sends, const end *recvs, int n_recvs, trace_flow *flows)
{
    int shift = last_match(t, sends, n_sends, recvs, n_recvs) - (n_recvs - 1);
    int n = 0, i;

    for (i = 0; i < n_recvs; i++)
        if (i + shift >= 0 && i + shift < n_sends)
            flows[n++] = (trace_flow){ .from_rank = sends[i + shift].rank, .from_op = sends[i + shift].op,
                                       .to_rank = recvs[i].rank, .to_op = recvs[i].op };
    return n;
}

static int match_all(const trace *t, const end *sends, int n_sends, const end *recvs, int n_recvs, trace_flow *flows)
{
    int n = 0, s = 0, r = 0, s_end, r_end, way;

    while (s < n_sends && r < n_recvs) {
        way = by_way(&sends[s], &recvs[r]);
        for (s_end = s; s_end < n_sends && by_way(&sends[s], &sends[s_end]) == 0;)
            s_end++;
        for (r_end = r; r_end < n_recvs && by_way(&recvs[r], &recvs[r_end]) == 0;)
            r_end++;
        if (way == 0)
            n += match_way(t, sends + s, s_end - s, recvs + r, r_end - r, flows + n);
        s = way <= 0 ? s_end : s;
        r = way >= 0 ? r_end : r;
    }
    return n;
}

bool trace_match(const trace *t, trace_flow **flows_out, int *n_out)
{
    size_t most = 1;
    end *sends, *recvs;
    trace_flow *flows;
    int i;

    for (i = 0; i < t->view->n_ranks; i++)
        most += (size_t)t->view->ranks[i].n_ops;
    sends = calloc(most, sizeof *sends);
    recvs = calloc(most, sizeof *recvs);
    flows = calloc(most, sizeof *flows);
    if (sends != NULL && recvs != NULL && flows != NULL) {
        *n_out = match_all(t, sends, gather(t->view, TUTTI_RECORD_SEND, sends), recvs, gather(t->view, TUTTI_RECORD_RECV, recvs),
                           flows);
        *flows_out = flows;
    } else {
        free(flows);
        flows = NULL;
    }
    free(sends);
    free(recvs);
    return flows != NULL;
}

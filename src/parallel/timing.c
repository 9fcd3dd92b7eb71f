/* SPDX-License-Identifier: BSD-3-Clause
 *
 * timing.c - when the parts of a step began and ended, and how long they take on average. */
#include "parallel/parallel.h"

void tti_times_forward(tutti_reducer *r)
{
    r->times.forward_start = tti_port_now(r->port);
}

void tti_times_backward(tutti_reducer *r)
{
    r->times.backward_start = tti_port_now(r->port);
}

void tti_times_comm_start(tutti_reducer *r)
{
    r->times.comm_start = tti_port_now(r->port);
}

void tti_times_backward_end(tutti_reducer *r)
{
    r->times.backward_end = tti_port_now(r->port);
}

/* What lies between two moments, 0 where they are not in order, and its mean over n steps. */
static int64_t between(int64_t from, int64_t to, double *mean, int64_t n)
{
    const int64_t ns = to > from ? to - from : 0;

    *mean += ((double)ns - *mean) / (double)n;
    return ns;
}

void tti_times_comm_end(tutti_reducer *r)
{
    tti_reducer_times *t = &r->times;

    t->comm_end = tti_port_now(r->port);
    t->n++;
    t->forward = between(t->forward_start, t->backward_start, &t->avg_forward, t->n);
    t->backward = between(t->backward_start, t->backward_end, &t->avg_backward, t->n);
    t->comm = between(t->comm_start, t->comm_end, &t->avg_comm, t->n);
    t->overlap = between(t->comm_start, t->backward_end, &t->avg_overlap, t->n);
}

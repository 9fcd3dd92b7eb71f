/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trace.h - the operations of all ranks on one time line. */
#ifndef TUTTI_TRACE_H
#define TUTTI_TRACE_H

#include <stdint.h>
#include <stdio.h>
#include "job_view.h"

/** When each operation began and ended, on the clock that all share: ns. */
typedef struct trace_span {
    int64_t begin_ns, end_ns;
    int track; /* of its rank */
} trace_span;

typedef struct trace_clock {
    const char *host;
    int64_t offset_ns;            /* add it to the host's own time */
    int64_t least_ns, most_ns;    /* what matched operations leave; equal to INT64_MIN and INT64_MAX where they say nothing */
} trace_clock;

typedef struct trace {
    const job_view *view;
    int *clock_of;      /* [view->n_ranks] */
    trace_clock *clocks; /* of each host; the first is the one that all are moved to */
    int n_clocks;
    trace_span **spans; /* [view->n_ranks][n_ops] */
} trace;

/** A message: which operation of which rank sent it, and which received it. */
typedef struct trace_flow {
    int from_rank, from_op, to_rank, to_op; /* numbers in the view */
} trace_flow;

/** One host's clock may be moved by this much against that of the first so that no operation ends before another one that
 * it waited for has begun: from *least_out to *most_out, where an operation of the first host began at begin_ns[i][0] at
 * the latest and ended at end_ns[i][0] at the earliest, and one of the other host at [i][1]. INT64_MIN: not known. */
void trace_bounds(const int64_t (*begin_ns)[2], const int64_t (*end_ns)[2], int n, int64_t *least_out, int64_t *most_out);

/** The offset within bounds: the middle where both are known, else as near to guess as they allow. */
int64_t trace_offset(int64_t least, int64_t most, int64_t guess);

/** Clocks, then spans. False: no memory. */
bool trace_make(const job_view *view, trace *t);
void trace_release(trace *t);

/** Match what was sent with what was received; *flows_out is the caller's to free. False: no memory. */
bool trace_match(const trace *t, trace_flow **flows_out, int *n_out);

/** Write it as Chrome's trace events. False: it could not be written. */
bool trace_write(const trace *t, const trace_flow *flows, int n_flows, FILE *out);

#endif

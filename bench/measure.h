/* SPDX-License-Identifier: BSD-3-Clause
 *
 * measure.h - verify and time one cell, on all ranks of a contender together.
 *
 * Two measures. Synchronised: all ranks leave a barrier, each times one call, and the longest of them is the
 * time. Back to back: calls follow each other without a barrier, and the time is that of a block of them, from
 * the first rank's start to the last one's end, divided by their number. The root goes round in both. Nothing
 * is subtracted. */
#ifndef TUTTI_BENCH_MEASURE_H
#define TUTTI_BENCH_MEASURE_H

#include "side.h"

/* Times in microseconds; rank 0's only. */
typedef struct bench_figures {
    int calls; /* synchronised */
    double least, p10, median, p90, p99;
    int64_t chained; /* calls back to back */
    double each;     /* one of them: the median over blocks */
    int buffers;     /* that were gone through in turn */
    int64_t bytes;   /* of the whole tensor, as it was */
} bench_figures;

/** Every rank calls it with the same cell. The results are compared with what they must be before anything
 * is timed, with the first and the last rank as root. False: bench_words() says why; then the other ranks
 * may be stuck, unless all ranks return false, as after a wrong result. */
bool bench_measure(const bench_side *side, const bench_cell *cell, bench_board *board,
                   bench_figures *figures_out);

#endif

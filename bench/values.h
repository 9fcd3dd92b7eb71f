/* SPDX-License-Identifier: BSD-3-Clause
 *
 * values.h - what goes into the buffers, and what must come out.
 *
 * Elements are integers below 16, whose sums over up to 16 ranks every dtype holds exactly, and over as many as are
 * measured all but bf16, so that results do not depend on the order of adding and are compared bit by bit. */
#ifndef TUTTI_BENCH_VALUES_H
#define TUTTI_BENCH_VALUES_H

#include "cell.h"

/** This rank's input of a cell; `count` elements. */
void bench_fill(void *data, int64_t count, const bench_cell *cell, int rank);

/** The first element of a rank's result that is wrong; -1: none, or this rank has no result.
 * @param result  what the operation wrote: out, or in where it works in place */
int64_t bench_first_wrong(const void *result, const bench_cell *cell, int rank, int ranks, int root);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_options.h - what `tutti bench OP` was asked for, and its two halves. */
#ifndef TUTTI_BENCH_OPTIONS_H
#define TUTTI_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include "bench/cell.h"

enum { BENCH_LIST_MAX = 32 };

typedef struct bench_options {
    bench_cell cell; /* bytes: each of sizes in turn */
    int64_t sizes[BENCH_LIST_MAX];
    int n_sizes;
    int64_t ranks[BENCH_LIST_MAX];
    int n_ranks;
    const char *transport; /* NULL: as the environment says */
    const char *tsv;       /* NULL: no rows */
    const char *plot;      /* NULL: no picture */
    bool help;
    bool overlap; /* `tutti bench overlap`: an all_reduce behind something that is computed */
} bench_options;

/** Be one rank of a job that was started: measure all sizes; rank 0 prints the table and appends the rows.
 * Returns an exit code. */
int bench_rank(const bench_options *o);

/** Draw the rows that stand in the file `rows` from byte `from` on into o->plot, an .svg or .png, with
 * gnuplot; its commands stay beside it as FILE.gp. Returns an exit code. */
int bench_draw(const bench_options *o, const char *rows, long from);

#endif

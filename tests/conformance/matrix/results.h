/* SPDX-License-Identifier: BSD-3-Clause
 *
 * results.h - the file of results: rows as they come, one per launch and operation.
 *
 * How     A line of tab-separated words: commit, seed, sizes, world, transport, mode, operation, and the
 *         counts of cells: all, run, passed, failed, skipped. Lines are only ever added. The last line of a
 *         (sizes, world, transport, mode, operation) counts; where all of its cells passed it is done, and
 *         another run leaves it out. */
#ifndef TT_RESULTS_H
#define TT_RESULTS_H

#include "launch.h"

/* The largest size takes longer than all others together, and has lines of its own. */
enum { TT_SMALL, TT_LARGE, TT_PHASES };

typedef struct tt_results {
    const char *path;   /* NULL: no file */
    const char *commit;
    uint64_t    seed;
    tt_tally    last[TT_PHASES][TT_WORLDS][TT_TRANSPORTS][TT_MODES][TT_OPS_MAX];
} tt_results;

extern const char *const tt_phase_names[TT_PHASES];

int tt_phase_of(const tt_cell *cell);

/** Read what there is; a file that does not exist is empty. false: it cannot be read, or has a bad line. */
bool tt_results_read(tt_results *results);

/** The tally of a cell's launch and operation. */
tt_tally *tt_results_at(tt_results *results, const tt_cell *cell);
bool      tt_results_done(tt_results *results, const tt_cell *cell);

/** Add the lines of a launch, of which cell is one, and remember them. */
bool tt_results_add(tt_results *results, const tt_cell *cell, const tt_tally tallies[TT_OPS_MAX]);

/** Print what the lines come to: the product, what does not apply, and operations by launches. */
void tt_results_report(tt_results *results);

/** The product of a selection: cells by rule, and the sum of tallies. */
void tt_print_product(const tt_selection *selection);
void tt_print_sum(const char *what, const tt_tally *sum);
/** What a backend came to: cells, and operations that it does not offer, with why. */
void tt_print_backend(const char *backend, const tt_tally by_op[TT_OPS_MAX]);
void tt_tally_add(tt_tally *sum, const tt_tally *more);

#endif

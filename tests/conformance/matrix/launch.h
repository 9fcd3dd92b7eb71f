/* SPDX-License-Identifier: BSD-3-Clause
 *
 * launch.h - one set of ranks runs many cells.
 *
 * How     Ranks join once, then run the cells one after another with nothing in between, so that a fast rank
 *         is already in the next one. A cell is one to three tries of other data: one after the other when
 *         they block, all under way at once when they do not, waited for in an order of each rank's own.
 *         Ranks as threads take one form or the other by the cell's seed.
 * Fails   A wrong element leaves the group as it was: the ranks go on. A call that fails, a rank that dies
 *         or hangs ends the launch: the cell that was first left unfinished has failed, and another launch
 *         goes on with the next one. */
#ifndef TT_LAUNCH_H
#define TT_LAUNCH_H

#include "board.h"

typedef struct tt_tally {
    long cells, run, passed, failed, skipped;
    long refused;          /* of those that were run: the backend has no such call */
    char reason[TT_WORDS]; /* of the first of them */
} tt_tally;

/** How ranks reach each other. */
typedef struct tt_wires {
    bool        tls;     /* what goes by TCP is encrypted */
    int         stripes; /* connections of two ranks by TCP; 0: one */
    const char *backend; /* NULL: the default one */
    const char *plugins; /* where plug-ins are looked for; NULL: nothing is said */
    const char *carried; /* the transport that carries what would go by TCP; NULL: TCP does */
} tt_wires;

/** Run cells of one world, transport and mode; adds to the tallies of their operations. A failed cell is
 * printed with the command that runs it again. false: the ranks failed where no cell was to blame, or
 * could not be started. */
bool tt_launch(const tt_cell *cells, int n, int timeout_s, tt_wires wires, tt_tally tallies[TT_OPS_MAX]);

/** Run cells of one world as one of its ranks: the world is there, and the board is one file of all ranks, into which each
 * writes the same cells. The tallies are rank 0's alone. No other launch follows: a call that fails ends it. */
bool tt_run_launched(const tt_cell *cells, int n, tt_tally tallies[TT_OPS_MAX]);

#endif

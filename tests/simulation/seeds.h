/* SPDX-License-Identifier: BSD-3-Clause
 *
 * seeds.h - seed after seed, and what they came to.
 *
 *   simulation.c  options
 *   seeds.c       running them, in processes of some hundred each
 *   rows.c        blocks of seeds, by several processes, and a row of a table for each
 *   program.c     one seed */
#ifndef TT_SIMULATION_SEEDS_H
#define TT_SIMULATION_SEEDS_H

#include <stdatomic.h>
#include "simulation/program.h"

enum { TT_WRONG_KEPT = 16 };

typedef struct tt_options {
    const char *self;
    uint64_t    from, to;
    bool        trace, must_fail, agreements;
    int64_t     for_s;  /* begin nothing after so long; 0: no limit */
    const char *rows;   /* the table's file; NULL: none */
    const char *again;  /* a file of seeds; NULL: none */
    const char *commit; /* what the table says of the program */
    uint64_t    block;  /* seeds of a row */
    int         jobs;   /* processes side by side */
} tt_options;

/** What seeds came to. Shared with the processes that run them, of which one works at a time. */
typedef struct tt_tally {
    _Atomic uint64_t next; /* the seed that runs, or is to */
    _Atomic uint64_t wrong;
    _Atomic uint64_t wrong_seeds[TT_WRONG_KEPT]; /* the first of them */
    _Atomic uint64_t results, errors, shrunk, turns, harmless;
    _Atomic uint64_t virtual_ms;
    _Atomic uint64_t faults[TUTTI_FAULT_KINDS];
} tt_tally;

/** Memory that processes made from here on share. */
tt_tally *tt_tally_make(uint64_t from);
void      tt_tally_free(tt_tally *tally);

double tt_seconds(void);

/** One, in this process: whether it is right. */
bool tt_run_one(uint64_t seed, const tt_options *o, tt_tally *tally);
/** All from tally->next to `to`, unless `until` has passed (0: never), or one was wrong and that is enough. */
void tt_run_seeds(uint64_t to, double until, const tt_options *o, tt_tally *tally);

/** Blocks of o->block seeds that the table has no row for: o->jobs at a time, and a row for each. False: the file cannot
 * be read or written, with words on standard error. */
bool tt_run_blocks(const tt_options *o, double began, uint64_t *n_seeds_out, uint64_t *wrong_out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * program.h - what the ranks of a simulation do, and how what comes of it is judged.
 *
 * All of it follows from the seed: how many hosts, ranks and steps, what each step is, and every number in every buffer. So
 * each rank knows what each of its results must be. */
#ifndef TT_SIMULATION_PROGRAM_H
#define TT_SIMULATION_PROGRAM_H

#include <tutti/tutti.h>
#include <tutti/rehearse.h>

enum { TT_RANKS_MAX = 12, TT_WORDS_MAX = 2400 };

/** What a seed came to. */
typedef struct tt_verdict {
    bool                  wrong;
    char                  words[TT_WORDS_MAX]; /* what, if it is */
    tutti_rehearse_report report;
    int                   n_ranks;
    int                   n_results; /* calls that returned OK, each with the right result */
    int                   n_errors;  /* that returned an error */
    int                   n_shrunk;  /* ranks that went on in a smaller world */
    bool                  harmless;  /* nothing happened that may make a call fail */
} tt_verdict;

/** Run one seed; only_agrees: the ranks do nothing but agree who goes on; tells: everything that happens, on standard error. */
void tt_seed_run(uint64_t seed, bool only_agrees, bool tells, tt_verdict *out);

#endif

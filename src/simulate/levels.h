/* SPDX-License-Identifier: BSD-3-Clause
 *
 * simulate/levels.h - what ranks do in a call of two levels, as schedules that can be played. */
#ifndef TTI_SIMULATE_LEVELS_H
#define TTI_SIMULATE_LEVELS_H

#include "coll/choose.h"
#include "simulate/cluster.h"

/** A call in two levels. Ranks are numbered host by host, all hosts have as many; a root is rank 0. */
typedef struct tti_sim_levels {
    const tti_algorithm *row;
    tti_level_figures    figures;
    int                  carriers; /* in this call */
    size_t               element;
    const tti_decision  *across;   /* of the hosts among themselves */
    int64_t              per_piece; /* elements */
    int                  pieces;
    int64_t              half_ps; /* what a core works in each of the two halves of a piece on its host */
    int64_t             *counts;  /* [hosts] */
    tti_schedule         inner;   /* of one rank, across */
} tti_sim_levels;

/** The figures of a cluster's levels. */
tti_level_figures tti_sim_level_figures(const tti_cluster *cluster);
/** Carriers of a host in a call of a row. */
int tti_sim_carriers_of(const tti_algorithm *row, const tti_level_figures *figures);

/** For calls of count elements of one rank's part by a row that has levels. across is borrowed; zeroed memory may be released.
 * @errors TUTTI_E_NOMEM */
tutti_status tti_sim_levels_make(const tti_cluster *cluster, const tti_algorithm *row, const tti_decision *across,
                                 int64_t count, tutti_dtype dtype, tti_sim_levels *levels_out);
void         tti_sim_levels_release(tti_sim_levels *levels);

/** What rank sends and receives in a piece of count elements, appended to an empty schedule. The first phase is the first half
 * on its host, and has no messages; returns the number of the phase that is the second. */
int tti_sim_levels_plan(tti_sim_levels *levels, int rank, int64_t count, tti_schedule *schedule);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/net/plan.h - from a collective to one rank's schedule: pure arithmetic.
 *
 * S is the bytes of one rank's part, P the number of ranks. Empty slices are not sent (all_gather's are); in a plan
 * for a count of 0 nothing is. All plans send in shifted order (rank+1, rank+2, ...), so that no
 * rank is the first target of all, and whoever runs them may keep a window of messages under
 * way.
 *
 * A large call is cut into chunks (cut.h): each is a call over a range of the elements, or over the same range
 * of every block, planned by the same plan. A plan sees one of them: counts are the chunk's, blocks begin where
 * the chunk does (whoever binds the buffers moves them), and scratch memory is the chunk's own. So offsets need
 * nothing of the other chunks, and what a plan says of phases, order of summation and IN and OUT that are one memory
 * holds of each by itself. In chunks behind the first, blocks that both ends know to be empty need not be sent. */
#ifndef TTI_COLL_NET_PLAN_H
#define TTI_COLL_NET_PLAN_H

#include "coll/net/schedule.h"

typedef struct tti_plan_input {
    int     n_ranks;
    int     rank;
    int     root; /* -1: none */
    int64_t count;
    size_t  element; /* bytes of one */

    /* [n_ranks], of kinds whose blocks differ in size; NULL: count each */
    const int64_t *list_counts;
    const int64_t *in_counts;

    int chunk; /* number of the chunk, of a call that is cut; 0: the first, or the only one */
} tti_plan_input;

/** In TTI_PLACE_SIZES: [n_ranks] of what this rank tells each other, then [n_ranks] of what each other
 * tells this one. In elements. */
typedef struct tti_block_sizes {
    int64_t gives;
    int64_t wants;
} tti_block_sizes;

enum { TTI_PHASE_OF_SIZES = 0 };

/** Appends to an empty schedule. */
typedef void tti_plan(const tti_plan_input *input, tti_schedule *schedule);

/** Everybody sends everything to everybody. 1 phase, (P-1)S sent. */
tti_plan tti_plan_all_reduce_one_shot;
/** Slices to their owners, combined there, and back. 2 phases, 2S(P-1)/P sent. */
tti_plan tti_plan_all_reduce_direct;
/** Everything to the root. 1 phase, S sent, (P-1)S received by the root. */
tti_plan tti_plan_reduce_to_root;
/** Slices to their owners, combined there, and on to the root. 2 phases, at most S sent. */
tti_plan tti_plan_reduce_direct;
/** Down a binomial tree. log2 P phases, S log2 P sent by the root. */
tti_plan tti_plan_broadcast_binomial;
/** Own part to everybody. 1 phase, (P-1)S sent; empty parts go, too, so that ranks with other lists of
 * counts find out. */
tti_plan tti_plan_all_gather_direct;
tti_plan tti_plan_gather_direct;
tti_plan tti_plan_scatter_direct;
/** Each part to its owner, combined there. 1 phase, (P-1)S sent and received. */
tti_plan tti_plan_reduce_scatter_direct;
/** What each pair gives and expects, in TTI_PHASE_OF_SIZES, for whoever moves the data to compare;
 * then each block to its taker. 2 phases, of which the first is empty in chunks behind the first: only two ranks know
 * whether a block is empty. With a root
 * (gather_v, scatter_v) only pairs that it is in have to do with each other. */
tti_plan tti_plan_all_to_all_direct;
/** A token to 1, 2, 4, ... further, until all have heard of all. log2 P phases. */
tti_plan tti_plan_barrier_dissemination;

#endif

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

    int chunk;    /* number of the chunk, of a call that is cut; 0: the first, or the only one */
    int together; /* chunks of the call that are under way at a time; 0: this one */
} tti_plan_input;

/** In TTI_PLACE_SIZES: [n_ranks] of what this rank tells each other, then [n_ranks] of what each other
 * tells this one. In elements. */
typedef struct tti_block_sizes {
    int64_t gives;
    int64_t wants;
} tti_block_sizes;

/** Appends to an empty schedule. */
typedef void tti_plan(const tti_plan_input *input, tti_schedule *schedule);

/* In the comments: phases, and the bytes that the rank with most of them sends or receives. In which order is
 * summed is what choose.h calls it. A pair is there where P is no power of two: see pattern.h. */

/** Everybody sends everything to everybody. 1 phase, (P-1)S. Rank order, or the tree's. */
tti_plan tti_plan_all_reduce_one_shot, tti_plan_all_reduce_one_shot_tree;
/** The same by way of others: 1, 2, 4, ... contributions in a message. log2 P phases, (P-1)S. Rank order. */
tti_plan tti_plan_all_reduce_bruck;
/** Slices to their owners, combined there, and back. 2 phases, 2S(P-1)/P. Rank order, or the tree's. */
tti_plan tti_plan_all_reduce_direct, tti_plan_all_reduce_direct_tree;
/** Pairs, pairs of pairs, ... swap all they have. log2 P phases of S; with pairs 2 more. */
tti_plan tti_plan_all_reduce_doubling;
/** The same with half of what they have, then of that, and back. 2 log2 P phases, 2S(P-1)/P; with pairs 2 phases and S
 * more. */
tti_plan tti_plan_all_reduce_halving;
/** Slices around the circle, combined on the way, and around once more. 2(P-1) phases, 2S(P-1)/P. Ring order. */
tti_plan tti_plan_all_reduce_ring;

/** Everything to the root. 1 phase, (P-1)S. */
tti_plan tti_plan_reduce_to_root;
/** Slices to their owners, combined there, and on to the root, which owns none. 2 phases, S; 2 ranks: 2S. Rank order, or
 * the tree's. */
tti_plan tti_plan_reduce_direct, tti_plan_reduce_direct_tree;
/** Up a tree, two or four at a time. log2 P or log4 P phases, S received in each, or 3S; with pairs one more. */
tti_plan tti_plan_reduce_binomial, tti_plan_reduce_knomial4;
/** From the root's right neighbour around the circle to the root. P-1 phases, S. Ring order. */
tti_plan tti_plan_reduce_chain;

/** The root to all. 1 phase, (P-1)S. */
tti_plan tti_plan_broadcast_flat;
/** Down a tree in which whoever has it hands it to one, or to three, in each phase. log2 P or log4 P phases, S sent in each,
 * or 3S. */
tti_plan tti_plan_broadcast_binomial, tti_plan_broadcast_knomial4;
/** From neighbour to neighbour. P-1 phases, S. */
tti_plan tti_plan_broadcast_chain;
/** A slice to each, and from each to all others. 2 phases, S. */
tti_plan tti_plan_broadcast_sliced;

/** Own part to everybody. 1 phase, (P-1)S; empty parts go, too, so that ranks with other lists of
 * counts find out: here and below. */
tti_plan tti_plan_all_gather_direct;
/** Parts around the circle. P-1 phases, (P-1)S; of parts of different sizes all but the shortest one, at most, which sent directly would be
 * P-1 times the longest. */
tti_plan tti_plan_all_gather_ring;
/** 1, 2, 4, ... parts in a message. log2 P phases, (P-1)S; parts of different sizes are messages of their own. */
tti_plan tti_plan_all_gather_bruck;

/** To or from the root. 1 phase, (P-1)S; gather: of more than 1 MiB one for each turn (turns.h), P-1 at most. Parts may differ in size, here
 * and below: of which all know all sizes. */
tti_plan tti_plan_gather_direct, tti_plan_scatter_direct;
/** Up or down a binomial tree, a subtree's parts in one message. log2 P phases, to the root (P-1)S; scatter: one phase
 * without messages more. Parts of different sizes go directly. */
tti_plan tti_plan_gather_binomial, tti_plan_scatter_binomial;

/** Each part to its owner, combined there. 1 phase, (P-1)S. Rank order, or the tree's. */
tti_plan tti_plan_reduce_scatter_direct, tti_plan_reduce_scatter_direct_tree;
/** Contributions by way of others, as they are: with those that make the same step in a message. log2 P phases, and one without
 * messages, half of P S in each, or less. Rank order. Parts of different sizes go directly. */
tti_plan tti_plan_reduce_scatter_bruck;
/** Parts around the circle to their owners, combined on the way. P-1 phases, (P-1)S. Ring order. */
tti_plan tti_plan_reduce_scatter_ring;
/** As the first half of all_reduce's. log2 P phases, and one without messages, (P-1)S; with pairs 2 phases and P S more. The tree's
 * order. Parts of different sizes go directly. */
tti_plan tti_plan_reduce_scatter_halving;

/** Bytes of the longest block that goes in one message with its sizes, directly, among so many ranks. */
int64_t tti_short_block(int n_ranks);
/** What each pair gives and expects, and short blocks with it, told to whoever moves the data to compare
 * (tti_schedule_tells_sizes()); then long blocks to their takers. 2 phases, and one without messages before, of which the first two
 * are empty in chunks behind the first: only two ranks know how long a block is. With a root
 * (gather_v, scatter_v) only pairs that it is in have to do with each other, and long blocks to it have a phase for each turn
 * (turns.h), of which there are P-1, or 64. */
tti_plan tti_plan_all_to_all_direct;
/** The same with sizes and short blocks by way of others: log2 P phases instead of the first. Without a root. */
tti_plan tti_plan_all_to_all_bruck;
/** Blocks of which both ends know the sizes, and that some are empty, among ranks of which several share a link. 1 phase; without a root
 * one for each few ranks that blocks of 64 KiB or more go to, with a root one for each turn (turns.h); 64 at most. */
tti_plan tti_plan_blocks_known;
/** Messages of which only the giver knows how long they are: list_counts say how long at most. 1 phase. */
tti_plan tti_plan_blocks_packed;

/** A token to 1, 2, 4, ... further, until all have heard of all. log2 P phases. */
tti_plan tti_plan_barrier_dissemination;
/** A token from each to each. 1 phase. */
tti_plan tti_plan_barrier_flat;

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/host/one_phase.h - the collectives of one host that are done in one phase, through lines.
 *
 * What a member gives goes into its line, or its block, at once (lines.h), and each takes what it needs from the others'. S is
 * the bytes of one rank's part, P the ranks. Where it does not fit a block, the staged form of the same does the call:
 * sizes are a fact that all members share. */
#ifndef TTI_COLL_HOST_ONE_PHASE_H
#define TTI_COLL_HOST_ONE_PHASE_H

#include "coll/host/staged.h"

tti_staged tti_one_phase_barrier;
/** Everybody combines everything: PS read per rank. */
tti_staged tti_one_phase_all_reduce;
/** The root combines everything; the others only give. */
tti_staged tti_one_phase_reduce;
/** The root only gives. */
tti_staged tti_one_phase_broadcast;
/** Parts of any sizes, several segments; so reduce_scatter. */
tti_staged tti_one_phase_all_gather;
tti_staged tti_one_phase_gather;
/** The root's place has the parts of all, PS; the others take theirs. */
tti_staged tti_one_phase_scatter;
/** Everybody gives the parts of all others, (P-1)S, and combines its own. */
tti_staged tti_one_phase_reduce_scatter;
/** Blocks of any sizes: of one size, a member's line tells it, and has small blocks; else its block has a cell for each
 * member, with the sizes and a small block. Larger blocks follow in the block. Where any member's do not fit, or are
 * better read from their owner, rounds follow (staged_all_to_all.c). */
tti_staged tti_one_phase_all_to_all;

/** Whether form does call in one phase itself, and has given all that this rank gives before it first waits: the
 * same on all members, of n_ranks. */
bool tti_one_phase_does(tti_staged *form, const tutti_call *call, int n_ranks);

#endif

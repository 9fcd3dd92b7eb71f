/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/net/cut.h - how a large call is cut into chunks, and how many are under way: pure arithmetic.
 *
 * Chunk k of a call is the same call over elements [k * elements, (k + 1) * elements) of its buffer, or, where a call
 * has a block for each rank, over that range of every block; of a shorter block nothing is left then. */
#ifndef TTI_COLL_NET_CUT_H
#define TTI_COLL_NET_CUT_H

#include "coll/net/plan.h"
#include <tutti/plugin/backend.h>

typedef struct tti_cut {
    int64_t elements; /* of a chunk: of its range, which is a block's where there are blocks. The last may have less */
    int     n_chunks; /* at least 1 */
    int     window;   /* so many are under way at most */
    int     sends;    /* and of each so many messages to others */
} tti_cut;

/** Whether a byte to another host takes so many ns that a call waits for the link rather than for cores. */
bool tti_wire_is_dear(double wire);

/** How a call is cut that is done by plan: the same on all ranks, which all have its kind, dtype, count, and lists of counts
 * where they share those. wire: ns that a byte takes to another host, as all ranks take it; less than 2, and unknown (0): not
 * what a call waits for. */
tti_cut tti_cut_of(tti_plan *plan, const tutti_call *call, int n_ranks, double wire);

/** The same where a round trip to others takes that long, as this rank knows it: more chunks are under way then, on which ranks need not
 * agree. */
tti_cut tti_cut_over(tti_plan *plan, const tutti_call *call, int n_ranks, double wire, double trip_ns);

/** The same, of chunks of that many elements: for tests. In ALL_TO_ALL, GATHER_V and SCATTER_V a rank has so many chunks as
 * it has to do with anybody in. */
tti_cut tti_cut_into(const tutti_call *call, int n_ranks, int64_t elements, int window);

/** How many of a range of count elements lie in chunk number k. */
int64_t tti_cut_count(const tti_cut *cut, int64_t count, int k);

#endif

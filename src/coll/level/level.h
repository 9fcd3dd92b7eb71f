/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/level/level.h - calls in two levels: inside hosts through shared memory, between hosts by messages.
 *
 *   layout.c     which members share a host
 *   levels.c     the members of this host, and this rank's counterparts on the others
 *   half.c       what the members of a host do for each other
 *   shapes.c     what each kind of call is made of
 *   rooted.c     gather and scatter
 *   two_level.c  a call in pieces, several of them under way
 *   blocks.c     all_to_all and its rooted forms
 *   amounts.c    what that costs
 *
 * Of the members of a host the first K are carriers, K being the same on all hosts; each carries a part of what goes
 * between hosts, to and from the members with its place on the others. */
#ifndef TTI_COLL_LEVEL_LEVEL_H
#define TTI_COLL_LEVEL_LEVEL_H

#include "coll/team.h"

typedef struct tti_levels tti_levels;

/** Do call, which note describes and the board shows, to its end. After a failure every message of the group is aborted,
 * and no buffer is borrowed any more. */
typedef tutti_status tti_leveled(tti_levels *levels, const tutti_call *call, const tti_call_note *note);

/** As many carriers as the smallest host has members, or cores. */
tti_leveled tti_two_level;
/** One carrier: for few bytes. */
tti_leveled tti_leaders;
/** The same for all_to_all, gather_v and scatter_v. Of a large call no core has more to do for others than for itself: as many
 * carriers as the smallest host has members. */
tti_leveled tti_blocks_two_level;
tti_leveled tti_blocks_leaders;

enum { TTI_LEVEL_SHORT_MOST = 8 << 10 }; /* bytes of the longest block that goes by way of a carrier; less with many ranks */

/** What costs are made from. */
typedef struct tti_level_figures {
    int hosts;
    int least; /* members of a host */
    int most;
    int carriers;
} tti_level_figures;

/** Elements of a piece, of a call that has range elements in each of so many parts. */
int64_t tti_level_piece(int64_t range, size_t element, int parts);
/** Bytes of the longest block that goes by way of so many carriers; less than nothing: none does, there are too many ranks. */
double tti_level_short(const tti_level_figures *levels, int carriers);

/** The amounts of a call: bytes of one rank's part. What is sent is what a host sends, whose ranks share its link. */
typedef tti_amounts tti_level_amounts_of(const tti_level_figures *levels, double bytes);

tti_level_amounts_of tti_amounts_level_barrier;
tti_level_amounts_of tti_amounts_leaders;          /* one phase across, whatever the kind */
tti_level_amounts_of tti_amounts_level_all_reduce; /* slices, there and back */
tti_level_amounts_of tti_amounts_level_rooted;     /* slices, one way */
tti_level_amounts_of tti_amounts_level_all_gather;
tti_level_amounts_of tti_amounts_level_reduce_scatter;
tti_level_amounts_of tti_amounts_level_gather, tti_amounts_leaders_gather;
tti_level_amounts_of tti_amounts_level_scatter, tti_amounts_leaders_scatter;
tti_level_amounts_of tti_amounts_level_blocks, tti_amounts_leaders_blocks;

#endif

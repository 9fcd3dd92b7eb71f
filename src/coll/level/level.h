/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/level/level.h - calls in two levels: inside hosts through shared memory, between hosts by messages.
 *
 *   layout.c     which members share a host
 *   levels.c     the members of this host, and this rank's counterparts on the others
 *   half.c       what the members of a host do for each other
 *   shapes.c     what each kind of call is made of
 *   two_level.c  a call in pieces, several of them under way
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

/** What costs are made from. */
typedef struct tti_level_figures {
    int hosts;
    int most; /* members of a host */
    int carriers;
} tti_level_figures;

/** The amounts of a call: bytes of one rank's part. What is sent is what a host sends, whose ranks share its link. */
typedef tti_amounts tti_level_amounts_of(const tti_level_figures *levels, double bytes);

tti_level_amounts_of tti_amounts_level_barrier;
tti_level_amounts_of tti_amounts_leaders;          /* one phase across, whatever the kind */
tti_level_amounts_of tti_amounts_level_all_reduce; /* slices, there and back */
tti_level_amounts_of tti_amounts_level_rooted;     /* slices, one way */
tti_level_amounts_of tti_amounts_level_all_gather;
tti_level_amounts_of tti_amounts_level_reduce_scatter;

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/host/pulled.h - the collectives of one host, by members that read each other's buffers (pull.h).
 *
 * Where not every member can read the others' memory, and for several segments, they do as the forms in staged.h. */
#ifndef TTI_COLL_HOST_PULLED_H
#define TTI_COLL_HOST_PULLED_H

#include "coll/host/staged.h"

/* S bytes of one rank's part, P ranks. */

/** S read by each. */
tti_staged tti_pulled_broadcast;
/** (P-1)S read by each. */
tti_staged tti_pulled_all_gather;
/** (P-1)S read by the root. */
tti_staged tti_pulled_gather;
/** S read by each. */
tti_staged tti_pulled_scatter;
/** Each combines its part: (P-1)S read through the kernel, PS by the kernels. */
tti_staged tti_pulled_reduce_scatter;
/** Each combines its slice, all read all slices: twice S(P-1)/P read through the kernel, S by the kernels. */
tti_staged tti_pulled_all_reduce;
/** Sizes in a first round; from a size on each reads its blocks, S in all, from their owners. */
tti_staged tti_pulled_all_to_all;
/** The blocks of an all_to_all whose sizes were found to fit. told: channel->begins has their addresses. */
tutti_status tti_pulled_blocks(tti_host_channel *channel, const tutti_call *call, bool told);

#endif

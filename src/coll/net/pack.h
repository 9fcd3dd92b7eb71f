/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/net/pack.h - a call of several segments as one schedule: small ones packed, large ones in
 * place. */
#ifndef TTI_COLL_NET_PACK_H
#define TTI_COLL_NET_PACK_H

#include "coll/net/plan.h"
#include <tutti/plugin/backend.h>

/** Zeroed memory is ready for use; it keeps what it has from one call to the next. */
typedef struct tti_pack {
    const tutti_call *call;
    int               n_ranks;
    int               rank;
    int64_t           packed; /* elements of all packed segments */
    char             *room;   /* of the packed part: one lane, or one for each member */
    void            **lanes;  /* [n_ranks] the packed part's list */
    int               lanes_room;
    tti_schedule     *plans;  /* one for each part */
    tti_bound        *bounds; /* of the parts */
    int               n_parts;
    int               parts_room;
} tti_pack;

void tti_pack_release(tti_pack *pack);

/** Decide what is packed, from what all ranks share, and make the call's schedule by plan. input's count
 * is not looked at.
 * @errors TUTTI_E_NOMEM */
tutti_status tti_pack_plan(tti_pack *pack, const tutti_call *call, const tti_plan_input *input,
                           tti_plan *plan, tti_schedule *schedule);

/** Memory that the packed part needs, and, once it has some, the elements on their way in and out. */
size_t tti_pack_bytes(const tti_pack *pack);
void   tti_pack_fill(tti_pack *pack, char *room);
void   tti_pack_empty(const tti_pack *pack);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/net/run.h - moves the data of a schedule over the messenger. */
#ifndef TTI_COLL_NET_RUN_H
#define TTI_COLL_NET_RUN_H

#include "coll/net/pack.h"
#include "coll/team.h"

/** What a group keeps from one operation to the next, so that only the first of its size allocates.
 * Zeroed memory is ready for use. */
typedef struct tti_net {
    tti_schedule  schedule;
    tti_pack      pack; /* of calls with segments */
    char         *scratch;
    size_t        scratch_bytes;
    tti_request **requests; /* of the phase under way */
    int           requests_room;
} tti_net;

void tti_net_release(tti_net *net);

/** Do call, which note describes, to its end by plan. After a failure every message of the group is
 * aborted, and no buffer is borrowed any more. */
tutti_status tti_net_run(tti_net *net, const tti_team *team, tti_plan *plan, const tutti_call *call,
                         const tti_call_note *note);

#endif

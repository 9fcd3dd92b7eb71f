/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/net/run.h - moves the data of a schedule over the messenger. */
#ifndef TTI_COLL_NET_RUN_H
#define TTI_COLL_NET_RUN_H

#include "coll/net/pack.h"
#include "coll/team.h"

/** An operation under way, as run.c has it. */
typedef struct tti_motion {
    const tutti_call *call;
    tti_call_note     note;
    tti_binding       binding;
    int64_t           entered_ns; /* when this rank first had time to wait */
    int64_t           deadline_ns;

    int                 phase;
    const tti_transfer *recvs;
    const tti_transfer *sends;
    int                 n_recvs;
    int                 n_sends;
    int                 n_posted; /* requests that exist: receives, then sends */
    int                 n_ended;  /* sends that have been waited for */
} tti_motion;

/** What a group keeps from one operation to the next, so that only the first of its size allocates.
 * Zeroed memory is ready for use. */
typedef struct tti_net {
    tti_schedule  schedule;
    tti_pack      pack; /* of calls with segments */
    char         *scratch;
    size_t        scratch_bytes;
    tti_request **requests; /* of the phase under way */
    int           requests_room;
    tti_motion    motion;
} tti_net;

void tti_net_release(tti_net *net);

/** Begin call, which note describes, by plan: post its first messages. Waits for nobody. tti_net_end() follows, also
 * after a failure of another call: buffers are borrowed. If this fails, they are not. */
tutti_status tti_net_begin(tti_net *net, const tti_team *team, tti_plan *plan, const tutti_call *call,
                           const tti_call_note *note);
/** Whether all that others need of this rank in the call that was begun is on its way. */
bool tti_net_has_given(const tti_net *net);
/** Whether to end it waits for nobody. */
bool tti_net_may_end(const tti_net *net);
/** Do it to its end. Fails as tti_net_run(). */
tutti_status tti_net_end(tti_net *net, const tti_team *team);
/** Instead of ending it, where all messages of the group were ended by a failure: give its buffers back. */
void tti_net_let_go(tti_net *net);

/** Do call, which note describes, to its end by plan. After a failure every message of the group is
 * aborted, and no buffer is borrowed any more. */
tutti_status tti_net_run(tti_net *net, const tti_team *team, tti_plan *plan, const tutti_call *call,
                         const tti_call_note *note);

#endif

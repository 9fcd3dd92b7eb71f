/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/net/run.h - does a call by messages: chunk by chunk, phase by phase. */
#ifndef TTI_COLL_NET_RUN_H
#define TTI_COLL_NET_RUN_H

#include "coll/net/chunk.h"

enum { TTI_LANES = 8 };

/** A call under way, and what a group keeps from one to the next, so that only the first of its size allocates.
 * Zeroed memory is ready for use. */
typedef struct tti_net {
    int               lane;
    const tti_team   *team;
    const tutti_call *call;
    tti_call_note     note;
    tti_plan         *plan;
    tti_cut           cut;
    int               n_begun;     /* chunks, in their order */
    int               n_over;      /* those before have ended */
    bool              sizes_known; /* of blocks, to both ends of each */
    int64_t           entered_ns;  /* when this rank first had time to wait */
    int64_t           deadline_ns;
    int64_t           tell_ns;     /* when it next tells the others in which call it waits */
    bool              told;        /* it has */
    unsigned          n_waits; /* so often it has */

    tti_chunk *chunks; /* chunk k has place k % cut.window */
    int        chunks_room;
} tti_net;

void tti_net_release(tti_net *net);

/** Begin call, which note describes, by plan: post its first messages. Waits for nobody. tti_net_end() follows, also
 * after a failure of another call: buffers are borrowed. If this fails, they are not.
 *
 * @param lane  below TTI_LANES, the same on all members. Messages of different lanes are told apart, so that calls of
 *              a group that are under way side by side can be moved in any order. Of a call that is under way in the
 *              same lane all must be posted: tti_net_has_given() */
tutti_status tti_net_begin(tti_net *net, const tti_team *team, int lane, tti_plan *plan, const tutti_call *call,
                           const tti_call_note *note);
/** Do so much as waits for nobody, over all phases and chunks. Fails as tti_net_end(), and then has ended. */
tutti_status tti_net_advance(tti_net *net, const tti_team *team);
/** Whether all that others need of this rank in the call that was begun is on its way, and all it needs of them asked for,
 * as of the last advance. */
bool tti_net_has_given(const tti_net *net);
/** Whether it has ended: tti_net_end() then waits for nobody. As of the last advance. */
bool tti_net_may_end(const tti_net *net);
/** Do it to its end. Fails as tti_net_run(). */
tutti_status tti_net_end(tti_net *net, const tti_team *team);
/** tti_net_begin() or tti_net_advance() of a blocking call came to st, and has told the others if it has failed: then there is time
 * to find out more, as in tti_net_end(), until deadline_ns at most. Returns st. Where many calls are moved beside each other nobody
 * may wait so. */
tutti_status tti_net_learn(const tti_team *team, int64_t deadline_ns, tutti_status st);
/** Instead of ending it, where all messages of the group were ended by a failure: give its buffers back. */
void tti_net_let_go(tti_net *net);

/** Do call, which note describes, to its end by plan, in lane 0. After a failure every message of the group is
 * aborted, and no buffer is borrowed any more. */
tutti_status tti_net_run(tti_net *net, const tti_team *team, tti_plan *plan, const tutti_call *call,
                         const tti_call_note *note);

/** For tests: as tti_net_begin(), cut as it is told. */
tutti_status tti_net_begin_cut(tti_net *net, const tti_team *team, int lane, tti_plan *plan, const tutti_call *call,
                               const tti_call_note *note, const tti_cut *cut);

#endif

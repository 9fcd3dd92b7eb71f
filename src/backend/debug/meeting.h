/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backend/debug/meeting.h - members tell each other, through a store, which collective they are about to run. */
#ifndef TTI_BACKEND_DEBUG_MEETING_H
#define TTI_BACKEND_DEBUG_MEETING_H

#include <stdatomic.h>
#include <tutti/plugin/backend.h>
#include "base/site.h"

typedef struct tti_meeting {
    tutti_store     *store; /* a part of the group's for this alone */
    tutti_backend   *inner; /* asked who is alive, if inner_ops knows */
    const tutti_backend_ops *inner_ops;
    const char      *group; /* its name */
    int              rank, n_ranks;
    const int       *global_ranks; /* [n_ranks] */
    uint64_t         calls; /* met for so far; only by the thread that runs, as */
    char             site[TTI_SITE_TEXT]; /* where the program has made the call that is being met for */
    _Atomic uint32_t ended; /* tti_meeting_end() was called */
} tti_meeting;

/** Meet all other members before call, until its deadline.
 * @errors TUTTI_E_TIMEOUT   some have not come; the text names them, and what each came for last
 *         TUTTI_E_MISMATCH  one is about to run something else, or gives another amount than is expected; the text has both
 *         TUTTI_E_PEER      one that has not come is known to be gone
 *         TUTTI_E_ABORTED   tti_meeting_end() was called
 *         TUTTI_E_NOMEM; what the store fails with */
tutti_status tti_meeting_hold(tti_meeting *m, const tutti_call *call);

/** Have the one that is under way, and every later one, end with TUTTI_E_ABORTED soon. Any thread. */
void tti_meeting_end(tti_meeting *m);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regroup/gathering.h - while processes meet to be a new world: whoever of them ends is not waited for. */
#ifndef TTI_REGROUP_GATHERING_H
#define TTI_REGROUP_GATHERING_H

#include "group/make.h"
#include "watch/acquaintance.h"

/** From tti_gathering_begin() to tti_gathering_end() on one thread; not to be moved meanwhile. All zero: none. */
typedef struct tti_gathering {
    tti_port         *port;
    tutti_group      *old;   /* a world or group at work whose members come, too; NULL: none is known */
    const int        *ranks; /* [n] its ranks of those that come as 0 .. n-1; NULL: the same numbers */
    int               n;
    int              *ended; /* [n_ended] of the new ones, as it became known */
    uint32_t          n_ended;
    tti_making        making;
    tti_made          made; /* for whoever has met; zero: by our own */
    int64_t           deadline_ns;
    tti_store_will   *will;
    tti_acquaintance  known;
} tti_gathering;

/** This process comes as join says to the world whose keys will be in folder key of root: others that wait for it there hear of
 * its end, as far as the store can tell. Before anything is said that lets others wait for it.
 * Where old is there, this thread's waits hear of the end of its members: they come as the first n of the new world.
 * @param ranks  [n] borrowed
 * @errors TUTTI_E_NOMEM */
tutti_status tti_gathering_begin(tti_gathering *m, tti_port *port, const tti_join *join, tutti_store *root, const char *key,
                                 tutti_group *old, const int *ranks, int n);
/** They have met, or will not, with st, whose words stay. Fine without a beginning, and twice. */
void tti_gathering_end(tti_gathering *m, tutti_status st);

/** Fail if a member of group is known to have ended, or left. what: "grow_group"; the words say who it is.
 * @errors TUTTI_E_PEER */
tutti_status tti_members_check(const tutti_group *group, const char *what);

#endif

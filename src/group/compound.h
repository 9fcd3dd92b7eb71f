/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group/compound.h - an operation made of several collectives and messages that one thread does in turns of its own,
 * blocking or as a work of the group's queue. */
#ifndef TTI_GROUP_COMPOUND_H
#define TTI_GROUP_COMPOUND_H

#include "group/collective.h"

typedef struct tti_compound tti_compound;

/** Filled by whoever makes one, as the first member of what it needs; it is the group's from tti_compound_issue() on. */
struct tti_compound {
    const char *what;    /* "all_reduce_quantized"; a constant */
    tutti_call_whole whole; /* the same, for those who compare calls */
    int         n_turns; /* numbers of the group that it takes, the same on all members. Whoever sends messages of its
                            own has one that it does not use, so that its turn lasts until it returns */
    tutti_status ends;   /* what it leaves the group finished with, in the words of what it returns, where that alone
                            would not; TUTTI_OK: nothing */
    /* Do it, on any thread, with no lock held: collectives as tti_in_turns(turns), messages, arithmetic. Not called if the
     * group is finished before. */
    tutti_status (*run)(tti_compound *compound, tti_turns *turns);
    /* Free it, whether it was run or not; perhaps under the lock. Keeps the thread's last error. */
    void (*release)(tti_compound *compound);
};

/** Do it now, or queue it: how is blocking or asynchronous. To hooks it is one operation, which reads and writes buf. It
 * is released in any case. */
tutti_status tti_compound_issue(tutti_group *group, tti_compound *compound, tutti_op op, tutti_span buf, tti_how how);

/** Memory for whoever has a turn of group, aligned to 64 bytes, until it gives its turns back; contents are lost.
 * The group keeps it for the next one, unless it is large. NULL: there is none. */
void *tti_compound_room(tutti_group *group, size_t bytes);
/** What is kept of it goes. Nobody has a turn. */
void tti_compound_room_release(tutti_group *group);

/** Something of a compound failed with st, and messages of it are under way: the words of it as a whole, the group
 * finished, here and on the other members. All its requests end soon then.
 * @errors st */
tutti_status tti_compound_fail(const tti_compound *compound, tutti_group *group, tutti_status st);

#endif

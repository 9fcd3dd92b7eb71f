/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group/scope.h - a coalescing scope, as the calls that it may take see it. */
#ifndef TTI_GROUP_SCOPE_H
#define TTI_GROUP_SCOPE_H

#include "group/collective.h"

/** A number that only this thread has, while it lives; never 0. */
uintptr_t tti_this_thread(void);

/** Whether this thread has a scope open on group. */
static inline bool tti_scope_is_mine(tutti_group *group)
{
    return tti_scope_any(group) &&
           atomic_load_explicit(&group->scope_owner, memory_order_relaxed) == tti_this_thread();
}

/** Remember a checked call, whose list has n_list entries, in this thread's scope.
 * @errors TUTTI_E_NOMEM; what does not go together is told when the scope ends */
tutti_status tti_scope_record(tutti_group *group, const tutti_call *call, int n_list, const tti_how *how);

/** End the scope that a closing group has left, if any. */
void tti_scope_abandon(tutti_group *group);

#endif

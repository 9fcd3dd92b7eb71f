/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group/refusals.h - while a backend that is not the library's own waits for the members of a group: whether one of them has
 * refused to make it. */
#ifndef TTI_GROUP_REFUSALS_H
#define TTI_GROUP_REFUSALS_H

#include "group/group.h"

typedef struct tti_refusals tti_refusals;

/** Look at store, that of a group's backend, from now on: the calling thread's waits in it end when a member has refused. usual: the
 * backend is the world's, so a member that makes the group with another one has refused it, too. timeout_ms:
 * of the backend's making; -1: none. NULL: it is not looked for, as there is no memory for that, or nobody who might have. */
tti_refusals *tti_refusals_begin(const tutti_group *group, tutti_store *store, bool usual, int64_t timeout_ms);
/** Look no more. st is what the backend was made with: if it was not made, and a member has refused, that is why. NULL: st. */
tutti_status tti_refusals_end(tti_refusals *refusals, tutti_status st);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regroup/successor.h - the group that some members of another one go on in: making it, where they meet, undoing it. */
#ifndef TTI_REGROUP_SUCCESSOR_H
#define TTI_REGROUP_SUCCESSOR_H

#include "group/make.h"

/** What to make. Borrowed. */
typedef struct tti_successor_plan {
    tutti_group               *old;
    const int                 *ranks; /* [n] of old, ascending */
    int                        n;
    int                        rank; /* this one's place among them */
    tutti_store               *store; /* where they meet, this successor's alone */
    const tutti_group_options *opts;
    int64_t                    timeout_ms; /* of the operations */
    int64_t                    deadline_ns; /* of making it */
    const char                *listen_host;
} tti_successor_plan;

/** Make "<old>:shrink": a world where old is one, else a group of old's world with connections of its own. It is no
 * successor yet: old is as it was, and tti_group_destroy() undoes it. */
tutti_status tti_successor_make(const tti_successor_plan *plan, tutti_group **group_out);

/** It is decided: what NULL meant is it from now on, and old, which is destroyed, was left by former[size], which is taken
 * over. */
void tti_successor_take_over(tutti_group *old, tutti_group *group, int *former);

/* survivors.c */

/** Agree with the other members of old, without its store, on who goes on, and make the successor with them.
 * excluded: [old->size] the caller's list, or NULL.
 * @errors TUTTI_E_UNSUPPORTED  old's backend has no such way */
tutti_status tti_survivors_agree(tutti_group *old, const bool *excluded, bool minority, const tutti_group_options *opts,
                                 tutti_group **group_out, int **former_out);

/** Whether old's backend has a way to agree without a store. */
bool tti_survivors_can(const tutti_group *old);

/* by_store.c */

/** The same for other backends: the members meet in old's store, and must all pass the same list. */
tutti_status tti_survivors_by_store(tutti_group *old, const bool *excluded, const tutti_group_options *opts,
                                    tutti_group **group_out, int **former_out);

#endif

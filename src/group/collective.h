/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group/collective.h - the steps that all collectives share: resolve the group, check, issue. */
#ifndef TTI_GROUP_COLLECTIVE_H
#define TTI_GROUP_COLLECTIVE_H

#include "group/check.h"

enum { TTI_LIST_ON_STACK = 64 };

/** How a call is issued. Zeroed: blocking. */
typedef struct tti_how {
    bool         async;
    tutti_work **work_out;
} tti_how;

static inline tti_how tti_blocking(void)
{
    return (tti_how){ .async = false };
}

static inline tti_how tti_async(tutti_work **work_out)
{
    return (tti_how){ .async = true, .work_out = work_out };
}

/** The group to work on. *group_out NULL with TUTTI_OK: not a member, and the call is over.
 * @errors TUTTI_E_ARG    no work_out where one is needed
 *         TUTTI_E_STATE  no group */
tutti_status tti_collective_begin(const char *what, tutti_group *group, tti_how how,
                                  tutti_group **group_out);

/** Run or queue a checked call, whose list has n_list entries. */
tutti_status tti_collective_issue(tutti_group *group, tutti_call *call, int n_list, tti_how how);

/** The same with the call's list made of n spans; a small one needs no allocation. */
tutti_status tti_collective_issue_list(tutti_group *group, tutti_call *call,
                                       const tutti_span *spans, int n, tti_how how);

/** The group rank of a root that is given as a global rank.
 * @errors TUTTI_E_ARG  it is no member */
tutti_status tti_check_root(const tutti_group *group, const char *what, const char *name, int root,
                            int *root_out);
/** A rank that is not the root has no list.
 * @errors TUTTI_E_ARG */
tutti_status tti_check_no_list(const tutti_group *group, const char *what, const char *name,
                               const tutti_span *list, int n);

/** all_gather and reduce_scatter of lists, for the forms that make some: check and issue. name is the
 * list's, for words. */
tutti_status tti_all_gather_list(const char *what, const char *name, tutti_group *group,
                                 const tutti_span *outs, int n_outs, tutti_span in, tti_how how);
tutti_status tti_reduce_scatter_list(const char *what, const char *name, tutti_group *group,
                                     tutti_span out, const tutti_span *ins, int n_ins, tutti_op op,
                                     tti_how how);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group/collective.h - the steps that all collectives share: resolve the group, check, issue. */
#ifndef TTI_GROUP_COLLECTIVE_H
#define TTI_GROUP_COLLECTIVE_H

#include "group/check.h"
#include "group/hooks.h"

enum { TTI_LIST_ON_STACK = 64 };

typedef struct tti_bundle tti_bundle; /* bundle.h */

/** How a call is issued. Zeroed: blocking. */
typedef struct tti_how {
    bool         async;
    tutti_work **work_out;
    bool         joins;  /* this thread's coalescing scope takes it, if one is open */
    tti_bundle  *bundle; /* it is added there instead; what tells which it is, for words */
    const char  *what;
    tti_turns   *turns; /* it is run in the next of these, and no hook is told: the whole is observed */
} tti_how;

static inline tti_how tti_blocking(void)
{
    return (tti_how){ .async = false };
}

static inline tti_how tti_async(tutti_work **work_out)
{
    return (tti_how){ .async = true, .work_out = work_out };
}

/** The same call, open to a coalescing scope. */
static inline tti_how tti_joining(tti_how how)
{
    how.joins = true;
    return how;
}

static inline tti_how tti_into_bundle(tti_bundle *bundle)
{
    return (tti_how){ .bundle = bundle };
}

static inline tti_how tti_in_turns(tti_turns *turns)
{
    return (tti_how){ .turns = turns };
}

/** The group to work on. *group_out NULL with TUTTI_OK: not a member, and the call is over.
 * @errors TUTTI_E_ARG    no work_out where one is needed
 *         TUTTI_E_STATE  no group */
tutti_status tti_collective_begin(const char *what, tutti_group *group, tti_how how,
                                  tutti_group **group_out);

/** A call of one kind without buffers. Field by field: clearing it as a whole costs more than the rest of
 * what a small call does. */
static inline tutti_call tti_call_of(tutti_call_kind kind, tutti_dtype dtype, int64_t count,
                                     tutti_device device)
{
    tutti_call call;

    call.kind = kind;
    call.seq = 0;
    call.dtype = dtype;
    call.op.kind = TUTTI_OP_SUM;
    call.op.factor = 0;
    call.root = -1;
    call.count = count;
    call.in = NULL;
    call.out = NULL;
    call.list = NULL;
    call.deadline_ns = 0;
    call.n_parts = 0;
    call.ins = NULL;
    call.list_counts = NULL;
    call.in_counts = NULL;
    call.n_segments = 0;
    call.segments = NULL;
    call.device = device.type;
    call.timeout_ms = 0;
    call.in_background = false;
    call.record = 0;
    call.whole = TUTTI_WHOLE_CALL;
    call.device_index = device.index;
    call.ticket = NULL;
    call.site = NULL;
    return call;
}

/** tti_collective_issue() where there is more to do than to run it. */
tutti_status tti_collective_issue_other(tutti_group *group, tutti_call *call, int n_list, const tti_how *how);

/** Run or queue a checked call, whose list has n_list entries, or put it where how says. */
static inline tutti_status tti_collective_issue(tutti_group *group, tutti_call *call, int n_list, tti_how how)
{
    if (!how.async && how.bundle == NULL && how.turns == NULL && !tti_hooks_any(group) &&
        !(how.joins && tti_scope_any(group)))
        return tti_queue_run(group, call);
    return tti_collective_issue_other(group, call, n_list,
                                      &(const tti_how){ .async = how.async, .work_out = how.work_out,
                                                        .joins = how.joins, .bundle = how.bundle,
                                                        .what = how.what, .turns = how.turns });
}

/** The same with the call's list made of n spans; a small one needs no allocation. */
tutti_status tti_collective_issue_list(tutti_group *group, tutti_call *call,
                                       const tutti_span *spans, int n, tti_how how);

/** The group rank of a root that is given as a global rank.
 * @errors TUTTI_E_ARG  it is no member */
tutti_status tti_check_root(const tutti_group *group, const char *what, const char *name, int root,
                            int *root_out);

/** Collectives on a known group, for the forms that are made of them: check and issue. what is the call's
 * name and name the list's, for words. */
tutti_status tti_all_reduce_span(const char *what, tutti_group *group, tutti_span buf, tutti_op op,
                                 tti_how how);
tutti_status tti_all_gather_into_span(const char *what, tutti_group *group, tutti_span out,
                                      tutti_span in, tti_how how);
tutti_status tti_all_gather_into_v_span(const char *what, tutti_group *group, tutti_span out, tutti_span in,
                                        const int64_t *counts, tti_how how);
tutti_status tti_reduce_scatter_span(const char *what, tutti_group *group, tutti_span out,
                                     tutti_span in, tutti_op op, tti_how how);
tutti_status tti_all_gather_list(const char *what, const char *name, tutti_group *group,
                                 const tutti_span *outs, int n_outs, tutti_span in, tti_how how);
tutti_status tti_reduce_scatter_list(const char *what, const char *name, tutti_group *group,
                                     tutti_span out, const tutti_span *ins, int n_ins, tutti_op op,
                                     tti_how how);

#endif

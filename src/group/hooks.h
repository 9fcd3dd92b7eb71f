/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group/hooks.h - what the room tells hooks, and when.
 *
 * Whoever issues an operation brackets it:
 *
 *     st = tti_observe_call(group, call, n_list, async, &seen);     seen stays NULL without hooks
 *     if (st == TUTTI_OK) { st = ...; tti_observe_end(seen, st, work); } */
#ifndef TTI_GROUP_HOOKS_H
#define TTI_GROUP_HOOKS_H

#include "group/group.h"
#include <tutti/hooks.h>

typedef struct tti_observation tti_observation;

/** Whether the group has hooks of any kind: the one load that operations pay. Relaxed: a hook that another
 * thread registers meanwhile may miss an operation that has begun. */
static inline bool tti_hooks_any(tutti_group *group)
{
    return atomic_load_explicit(&group->hooked, memory_order_relaxed);
}

/** Begin to observe an operation that is made of several collectives, which nobody observes: it reads buf, and perhaps
 * writes it. */
tutti_status tti_observe_whole_begin(tutti_group *group, const char *op, tutti_op reduce, tutti_span buf, bool writes,
                                     bool async, tti_observation **seen_out);
/** Begin to observe a collective, whose list has n_list entries: its pre hooks are called.
 * @errors TUTTI_E_NOMEM */
tutti_status tti_observe_call_begin(tutti_group *group, const tutti_call *call, int n_list, bool async,
                                    tti_observation **seen_out);
/** The same for a message. */
tutti_status tti_observe_message_begin(tutti_group *group, const tti_posting *p, bool async,
                                       tti_observation **seen_out);
/** The operation was issued (async) or has ended: its post hooks, and completion hooks now or later. seq is
 * the number it got. The words of a failure stay. */
void tti_observe_finish(tti_observation *seen, tutti_status st, uint64_t seq, tutti_work *work);

static inline tutti_status tti_observe_call(tutti_group *group, const tutti_call *call, int n_list, bool async,
                                            tti_observation **seen_out)
{
    return tti_hooks_any(group) ? tti_observe_call_begin(group, call, n_list, async, seen_out) : TUTTI_OK;
}

static inline tutti_status tti_observe_whole(tutti_group *group, const char *op, tutti_op reduce, tutti_span buf,
                                             bool writes, bool async, tti_observation **seen_out)
{
    return tti_hooks_any(group) ? tti_observe_whole_begin(group, op, reduce, buf, writes, async, seen_out) : TUTTI_OK;
}

static inline tutti_status tti_observe_message(tutti_group *group, const tti_posting *p, bool async,
                                               tti_observation **seen_out)
{
    return tti_hooks_any(group) ? tti_observe_message_begin(group, p, async, seen_out) : TUTTI_OK;
}

static inline void tti_observe_end(tti_observation *seen, tutti_status st, uint64_t seq, tutti_work *work)
{
    if (seen != NULL)
        tti_observe_finish(seen, st, seq, work);
}

/** Call the abort hooks: what failed with st and this thread's words, which stay. No lock held. */
void tti_hooks_abort(tutti_group *group, const char *what, tutti_status st);

/** Register a hook; group is one. id_out may be NULL. */
tutti_status tti_hook_add(tutti_group *group, tutti_hook_kind kind, tutti_hook_fn fn, void *ctx, int *id_out);
/** Whether this thread is inside a hook of any group. */
bool tti_hooks_inside(void);

/** A group's table of hooks; observations that are still to be told of hold it, too. */
tti_hooks *tti_hooks_retain(tti_hooks *hooks);
void       tti_hooks_drop(tti_hooks *hooks);
/** Whether there is one of that kind. */
bool tti_hooks_have(tti_hooks *hooks, tutti_hook_kind kind);
/** Call all hooks of event->hook. No lock held. */
void tti_hooks_call(tti_hooks *hooks, const tutti_op_event *event);
/** The group's table, with a reference; NULL: none. */
tti_hooks *tti_hooks_of(tutti_group *group);

/** What operations of this thread are called now: the given name, else "backend:op", with the backend that
 * takes the spans of device. */
void tti_comm_name(const tutti_group *group, tutti_device_type device, const char *op,
                   char out[TUTTI_COMM_NAME_MAX]);

/** What a profiler calls a message: "send", "recv", "recvAnySource". */
const char *tti_message_title(const tti_posting *p);

/** Log every operation of group, with hashes of what it reads and writes, if the debug level is detail and
 * such lines are logged. */
tutti_status tti_detail_log_attach(tutti_group *group);

#endif

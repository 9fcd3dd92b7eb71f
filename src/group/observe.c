/* SPDX-License-Identifier: BSD-3-Clause
 *
 * observe.c - one operation as its hooks see it: from before it is issued to when it has ended.
 *
 * How     An observation is made where an operation is issued, if the group has hooks at all, with copies
 *         of whatever an asynchronous operation may outlive: names and the arrays of spans. The issuing
 *         thread calls pre and post hooks. Of a blocking operation it calls the completion hooks, too; of
 *         an asynchronous one the thread of tutti_work_then() does, so that they run under no lock and
 *         nobody waits for them.
 * True    An observation is owned by the issuing thread and, until its completion was told, by the work's
 *         callback; only one of them uses it at a time: the callback is attached last. */
#include "group/hooks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "watch/control.h"
#include <tutti/private.h>

struct tti_observation {
    tti_hooks     *hooks; /* a reference */
    tti_port      *port;
    tutti_op_event event;
    int64_t        began_ns;
    char           name[TUTTI_COMM_NAME_MAX];
    char           group_name[TTI_GROUP_NAME_MAX];
    tutti_span     spans[]; /* ins, then outs */
};

static tutti_status observation_create(tutti_group *group, const char *op, int n_spans,
                                       tti_observation **seen_out)
{
    tti_observation *seen = calloc(1, sizeof *seen + (size_t)n_spans * sizeof seen->spans[0]);

    if (seen == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to tell the hooks of group '%s' of %s", group->name, op);
    seen->hooks = tti_hooks_of(group);
    seen->port = group->runner->port;
    memcpy(seen->group_name, group->name, sizeof seen->group_name);
    seen->event = (tutti_op_event){ .size = sizeof seen->event,
                                    .hook = TUTTI_HOOK_PRE,
                                    .op = op,
                                    .name = seen->name,
                                    .group_name = seen->group_name,
                                    .peer = -1,
                                    .ins = seen->spans,
                                    .duration_ns = -1 };
    *seen_out = seen;
    return TUTTI_OK;
}

static void observation_drop(tti_observation *seen)
{
    tti_hooks_drop(seen->hooks);
    free(seen);
}

static void tell(tti_observation *seen, tutti_hook_kind hook)
{
    seen->event.hook = hook;
    tti_hooks_call(seen->hooks, &seen->event);
}

/* Number the operation and call its pre hooks. */
static void begin(tutti_group *group, tti_observation *seen, bool is_collective, bool async)
{
    tti_lock(&group->runner->lock);
    seen->event.id = ++group->n_observed;
    seen->event.seq = is_collective ? tti_queue_next(group) : 0;
    tti_unlock(&group->runner->lock);
    seen->event.is_async = async;
    tell(seen, TUTTI_HOOK_PRE);
    seen->began_ns = tti_port_now(seen->port);
}

/* ---- spans of a collective ---- */

/* Whether call's list is what it reads. */
static bool reads_list(const tutti_call *call)
{
    return call->kind == TUTTI_CALL_SCATTER || call->kind == TUTTI_CALL_REDUCE_SCATTER;
}

static tutti_span span_of(const tutti_call *call, const void *data, int64_t count)
{
    return (tutti_span){ .data = (void *)(uintptr_t)data, .count = count, .dtype = call->dtype,
                         .device = tti_device_of(call->device, call->device_index) };
}

static int64_t count_of(const tutti_call *call, const int64_t *counts, int i)
{
    return counts != NULL ? counts[i] : call->count;
}

/* The count of entry i of call's list; of several segments each has one entry for each member. */
static int64_t list_count(const tutti_group *group, const tutti_call *call, int i)
{
    if (call->n_segments > 0)
        return call->segments[i / group->size].count;
    return count_of(call, call->list_counts, i);
}

/* The buffers that are no lists: of every segment, else of the call; of uneven parts this rank's. */
static int single_spans(const tutti_group *group, const tutti_call *call, bool read, tutti_span *to)
{
    const void *data = read ? call->in : call->out;
    int         n = 0;
    int         i;

    for (i = 0; i < call->n_segments; i++) {
        data = read ? call->segments[i].in : call->segments[i].out;
        if (data != NULL)
            to[n++] = span_of(call, data, call->segments[i].count);
    }
    if (call->n_segments == 0 && data != NULL)
        to[n++] = span_of(call, data, count_of(call, call->list_counts, group->rank));
    return n;
}

/* The spans that call reads, or writes, to `to`: how many. */
static int spans_of(const tutti_group *group, const tutti_call *call, int n_list, bool read, tutti_span *to)
{
    int n = 0;
    int i;

    if (read && call->ins != NULL)
        for (i = 0; i < call->n_parts; i++)
            to[n++] = span_of(call, call->ins[i], count_of(call, call->in_counts, i));
    if (call->list != NULL && reads_list(call) == read)
        for (i = 0; i < n_list; i++)
            to[n++] = span_of(call, call->list[i], list_count(group, call, i));
    return n + single_spans(group, call, read, to + n);
}

tutti_status tti_observe_call_begin(tutti_group *group, const tutti_call *call, int n_list, bool async,
                                    tti_observation **seen_out)
{
    tti_observation *seen = NULL;
    tutti_op_event  *event;
    tutti_status     st;

    if (tti_hooks_inside())
        return TUTTI_OK;
    st = observation_create(group, tti_call_kind_name(call->kind),
                            n_list + call->n_parts + 2 * (call->n_segments + 1), &seen);
    if (st != TUTTI_OK)
        return st;
    event = &seen->event;
    tti_comm_name(group, call->device, event->op, seen->name);
    event->peer = call->root >= 0 ? group->ranks[call->root] : -1;
    event->reduce = call->op;
    event->n_ins = spans_of(group, call, n_list, true, seen->spans);
    event->outs = seen->spans + event->n_ins;
    event->n_outs = spans_of(group, call, n_list, false, seen->spans + event->n_ins);
    begin(group, seen, true, async);
    *seen_out = seen;
    return TUTTI_OK;
}

tutti_status tti_observe_whole_begin(tutti_group *group, const char *op, tutti_op reduce, tutti_span buf, bool writes,
                                     bool async, tti_observation **seen_out)
{
    tti_observation *seen = NULL;
    tutti_op_event  *event;
    tutti_status     st;

    if (tti_hooks_inside())
        return TUTTI_OK;
    st = observation_create(group, op, 2, &seen);
    if (st != TUTTI_OK || seen == NULL)
        return st;
    event = &seen->event;
    tti_comm_name(group, buf.device.type, op, seen->name);
    event->reduce = reduce;
    seen->spans[0] = seen->spans[1] = buf;
    event->n_ins = 1;
    event->outs = seen->spans + 1;
    event->n_outs = writes ? 1 : 0;
    begin(group, seen, true, async);
    *seen_out = seen;
    return TUTTI_OK;
}

const char *tti_message_title(const tti_posting *p)
{
    if (p->message.is_send)
        return "send";
    return p->message.peer < 0 ? "recvAnySource" : "recv";
}

tutti_status tti_observe_message_begin(tutti_group *group, const tti_posting *p, bool async,
                                       tti_observation **seen_out)
{
    const tutti_message *m = &p->message;
    tti_observation     *seen = NULL;
    tutti_op_event      *event;
    tutti_status         st;

    if (tti_hooks_inside())
        return TUTTI_OK;
    st = observation_create(group, p->what, 1, &seen);
    if (st != TUTTI_OK)
        return st;
    event = &seen->event;
    tti_comm_name(group, m->device, tti_message_title(p), seen->name);
    event->peer = p->peer;
    event->tag = m->tag;
    seen->spans[0] = (tutti_span){ .data = m->data, .count = m->count, .dtype = m->dtype,
                                   .device = tti_device_of(m->device, m->device_index) };
    event->n_ins = m->is_send ? 1 : 0;
    event->n_outs = m->is_send ? 0 : 1;
    event->outs = seen->spans + event->n_ins;
    begin(group, seen, false, async);
    *seen_out = seen;
    return TUTTI_OK;
}

/* ---- the end ---- */

/* On the thread of tutti_work_then(). */
static void on_completion(tutti_work *work, void *ctx)
{
    tti_observation *seen = ctx;
    double           ms;

    seen->event.work = work;
    if (tutti_work_status(work) == TUTTI_OK) {
        if (tutti_work_duration(work, &ms) == TUTTI_OK)
            seen->event.duration_ns = (int64_t)(ms * (double)TTI_MS);
        tell(seen, TUTTI_HOOK_COMPLETION);
    }
    observation_drop(seen);
}

static void finish_blocking(tti_observation *seen, tutti_status st, int64_t took_ns)
{
    tell(seen, TUTTI_HOOK_POST);
    seen->event.duration_ns = took_ns;
    if (st == TUTTI_OK)
        tell(seen, TUTTI_HOOK_COMPLETION);
    observation_drop(seen);
}

static void finish_async(tti_observation *seen, tutti_status st, tutti_work *work)
{
    seen->event.work = work;
    tell(seen, TUTTI_HOOK_POST);
    if (st != TUTTI_OK || work == NULL || !tti_hooks_have(seen->hooks, TUTTI_HOOK_COMPLETION) ||
        tutti_work_then(work, on_completion, seen) != TUTTI_OK)
        observation_drop(seen);
}

void tti_observe_finish(tti_observation *seen, tutti_status st, uint64_t seq, tutti_work *work)
{
    const int64_t took_ns = tti_port_now(seen->port) - seen->began_ns;
    char          words[TTI_GROUP_WORDS_MAX] = "";

    if (st != TUTTI_OK)
        snprintf(words, sizeof words, "%s", tutti_last_error());
    seen->event.status = st;
    if (seq != 0)
        seen->event.seq = seq;
    if (seen->event.is_async)
        finish_async(seen, st, work);
    else
        finish_blocking(seen, st, took_ns);
    if (st != TUTTI_OK)
        tti_fail(st, "%s", words);
}

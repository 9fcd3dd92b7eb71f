/* SPDX-License-Identifier: BSD-3-Clause
 *
 * p2p.c - send, recv, isend, irecv.
 *
 * Messages are outside of the group's sequence: they are posted at once, on the calling thread, and
 * never wait behind a collective. A blocking call posts, waits and releases. isend and irecv hand
 * out a work, which also stands in the group's list of messages until its outcome was taken: by the
 * first wait after its end, by the end of the group, or, for works that nobody holds any more, by a
 * later post, which looks at the two that have stood longest. */
#include "group/asked.h"
#include "group/hooks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "group/check.h"
#include "group/make.h"
#include "group/put.h"
#include "group/recorded.h"
#include "watch/advice.h"
#include <tutti/private.h>
#include <tutti/stream.h>

enum { REAP_MAX = 2 };

/* ---- checks ---- */

static tutti_status find_peer(const tutti_group *group, tti_posting *p)
{
    const bool any = !p->message.is_send && p->peer == TUTTI_ANY_SOURCE;

    p->message.peer = -1;
    if (any && group->size > 1)
        return TUTTI_OK;
    if (any)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': it is from any other rank, and there is none in a group of 1\n"
                                     "  next: leave the message out where a rank is alone",
                        p->what, group->name);
    p->message.peer = tti_group_find(group, p->peer);
    if (p->message.peer < 0)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': rank %d is not in the group of %d\n"
                                     "  next: name a member by its rank in the world, or use the twin that ends in _in_group",
                        p->what, group->name, p->peer, group->size);
    if (p->message.peer == group->rank)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': rank %d is this rank itself\n"
                                     "  next: copy the memory, or name another rank",
                        p->what, group->name, p->peer);
    return TUTTI_OK;
}

tutti_status tti_posting_check(const tutti_group *group, tutti_span buf, int tag, tti_posting *p)
{
    tutti_status st = tti_check_span(group, p->what, "buf", buf);

    if (st != TUTTI_OK)
        return st;
    if (tag < 0)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': tag %d is below 0\n  next: use 0 or more, the same on both ranks",
                        p->what, group->name, tag);
    st = find_peer(group, p);
    if (st != TUTTI_OK)
        return st;
    p->message.tag = tag;
    p->message.device = buf.device.type;
    p->message.device_index = buf.device.index;
    p->message.stream = buf.device.type != TUTTI_CPU ? tutti_get_stream(buf.device.type) : NULL;
    p->message.dtype = buf.dtype;
    p->message.count = buf.count;
    p->message.data = buf.data;
    return TUTTI_OK;
}

/* "recv from rank 3, tag 0". Ranks and tags are not negative. */
static void describe(const tti_posting *p, char out[TTI_GROUP_CAUSE_MAX])
{
    const char *end = out + TTI_GROUP_CAUSE_MAX - 1;
    char       *at = tti_put(out, end, p->what);

    if (p->message.peer < 0)
        at = tti_put(at, end, " from any rank");
    else
        at = tti_put_number(tti_put(at, end, p->message.is_send ? " to rank " : " from rank "), end,
                            (uint64_t)p->peer);
    at = tti_put_number(tti_put(at, end, ", tag "), end, (uint64_t)p->message.tag);
    *at = '\0';
}

/* Another member's words: "rank 1 reported: ...", of an operation of its own. */
static bool is_told(const char *words)
{
    return strncmp(words, "rank ", 5) == 0 && strstr(words, " reported: ") != NULL;
}

static const char *step_after(tutti_status st, bool told)
{
    if (st == TUTTI_E_PEER)
        return tti_advice_of_loss(tutti_last_error());
    return told ? "\n  next: see what that rank waited for, and let all ranks make the same calls and messages"
                : "\n  next: let all ranks make the same calls and messages";
}

tutti_status tti_message_failed(const tutti_group *group, const char *what, tutti_status st)
{
    const bool told = is_told(tutti_last_error());
    const bool has_next = strstr(tutti_last_error(), "\n  next: ") != NULL;
    const bool has_group = strstr(tutti_last_error(), "group '") != NULL;
    char       words[TTI_GROUP_WORDS_MAX];

    if (st != TUTTI_E_PEER && !(st == TUTTI_E_MISMATCH && !has_group) && !(st == TUTTI_E_TIMEOUT && told) &&
        !(st == TUTTI_E_MISMATCH && told))
        return st; /* it says of what already, or is of no peer's doing */
    if (!told && has_group && has_next)
        return tti_group_blame(group, st);
    snprintf(words, sizeof words, "%s", tutti_last_error());
    tti_advice_for_oneself(group->ranks[group->rank], words, sizeof words);
    tti_fail(st, "%s on group '%s' failed%s: %s%s", what, group->name, st == TUTTI_E_PEER || told ? ", and ends the group" : "",
             words, has_next ? "" : step_after(st, told));
    return tti_group_blame(group, st);
}

/* ---- blocking ---- */

/* A blocking call that ran out of time. */
typedef struct overdue {
    tutti_group       *group;
    const tti_posting *p;
    char               words[TTI_GROUP_WORDS_MAX];
} overdue;

void tti_message_give_up(tutti_group *group, const char *what, int64_t waited_ns, char words_out[TTI_GROUP_WORDS_MAX])
{
    const bool has_next = strstr(tutti_last_error(), "\n  next: ") != NULL;

    snprintf(words_out, TTI_GROUP_WORDS_MAX, "%s on group '%s' timed out after %lld ms on rank %d: %s%s", what,
             group->name, (long long)(waited_ns / TTI_MS), group->ranks[group->rank], tutti_last_error(),
             has_next ? "" : "\n  next: see what the other rank does instead, or give the group a longer time-out");
    tti_fail(TUTTI_E_TIMEOUT, "%s", words_out); /* the others are told so */
    if (group->finished == TUTTI_OK)
        tti_group_fail(group, what, TUTTI_E_TIMEOUT, words_out);
    else
        tti_routes_end(group, TUTTI_E_TIMEOUT); /* a collective has finished it, which ends no message by itself */
}

/* A blocking call must not leave its buffer in use: one that ran out of time ends the group, on all
 * members. */
static void give_up(void *ctx, int64_t waited_ns)
{
    overdue *o = ctx;
    char     what[TTI_GROUP_CAUSE_MAX];

    describe(o->p, what);
    tti_lock(&o->group->runner->lock);
    tti_message_give_up(o->group, what, waited_ns, o->words);
    tti_unlock(&o->group->runner->lock);
}

/* For backends that cannot transfer. */
static tutti_status post_and_wait(const tti_posting *p, overdue *o, int *source_out)
{
    const tti_route *route = &o->group->routes[p->message.device];
    tti_port        *port = o->group->runner->port;
    const int64_t    timeout_ms = o->group->timeout_ms;
    const int64_t    began_ns = tti_port_now(port);
    tutti_request   *request = NULL;
    tutti_status     st;

    st = tti_asked_post(route->ops, route->backend, &p->message, &request);
    *source_out = p->message.is_send ? -1 : p->message.peer;
    if (st != TUTTI_OK || request == NULL)
        return st;
    st = tti_asked_wait(route->ops, request, tti_deadline(port, timeout_ms, timeout_ms));
    if (st == TUTTI_E_TIMEOUT) {
        give_up(o, tti_port_now(port) - began_ns);
        route->ops->wait(request, TTI_FOREVER);
    }
    *source_out = tti_asked_member(route->ops->source(request), o->group->size);
    route->ops->release(request);
    return st;
}

static tutti_status transfer(tutti_group *group, const tti_posting *p, int *source_out)
{
    const tti_route *route = &group->routes[p->message.device];
    const uint32_t   said = route->is_foreign ? tti_words_said() : 0;
    overdue          o;
    tutti_status     st;

    o.group = group;
    o.p = p;
    o.words[0] = '\0'; /* but for the others it is a kilobyte to clear */
    if (route->ops->transfer != NULL) {
        st = route->ops->transfer(route->backend, &p->message, group->timeout_ms, give_up, &o, source_out);
        st = tti_asked_status(route->ops, "transfer", st, said);
        if (st == TUTTI_OK)
            *source_out = tti_asked_member(*source_out, group->size);
    } else
        st = post_and_wait(p, &o, source_out);
    return st == TUTTI_E_TIMEOUT && o.words[0] != '\0' ? tti_fail(TUTTI_E_TIMEOUT, "%s", o.words) : st;
}

/* source_out: group rank of the sender; -1 for a send. */
static tutti_status run_message(tutti_group *group, const tti_posting *p, int *source_out)
{
    tti_thread_facts *thread = tti_thread_facts_now();
    char              what[TTI_GROUP_CAUSE_MAX];
    uint64_t          record;
    tutti_status      st;

    st = tti_group_enter(group);
    if (st != TUTTI_OK)
        return st;
    record = tti_recorded_message(thread, group, p, 0);
    st = transfer(group, p, source_out);
    tti_recorded_message_end(thread, group, p, record, st);
    if (st != TUTTI_OK)
        describe(p, what);
    if (st != TUTTI_OK)
        st = tti_recorder_dump_failure(tti_message_failed(group, what, st));
    if (tti_group_finishes(st))
        tti_hooks_abort(group, what, st);
    tti_group_leave(group, st != TUTTI_OK ? what : p->what, st);
    return st;
}

static tutti_status run_observed(tutti_group *group, const tti_posting *p, int *source_out)
{
    tti_observation *seen = NULL;
    tutti_status     st = tti_observe_message(group, p, false, &seen);

    if (st == TUTTI_OK)
        st = run_message(group, p, source_out);
    tti_observe_end(seen, st, 0, NULL);
    return st;
}

tutti_status tutti_send(tutti_span buf, int dst, int tag, tutti_group *group)
{
    tti_posting      p = { .what = "send", .message = { .is_send = true }, .peer = dst };
    tutti_group *g = NULL;
    int          source = -1;
    tutti_status st;

    st = tti_group_resolve(group, p.what, &g);
    if (st != TUTTI_OK || g == NULL)
        return st;
    st = tti_posting_check(g, buf, tag, &p);
    if (st != TUTTI_OK)
        return st;
    return run_observed(g, &p, &source);
}

tutti_status tutti_recv(tutti_span buf, int src, int tag, tutti_group *group, int *src_out)
{
    tti_posting      p = { .what = "recv", .peer = src };
    tutti_group *g = NULL;
    int          source = -1;
    tutti_status st;

    st = tti_group_resolve(group, p.what, &g);
    if (st == TUTTI_OK && g != NULL)
        st = tti_posting_check(g, buf, tag, &p);
    if (st == TUTTI_OK && g != NULL)
        st = run_observed(g, &p, &source);
    if (st == TUTTI_OK && src_out != NULL)
        *src_out = g != NULL ? tutti_get_global_rank(g, source) : -1;
    return st;
}

/* ---- asynchronous ---- */

static void list_append(tutti_work **list, tutti_work *work)
{
    tutti_work *last = *list;

    work->next = NULL;
    if (last == NULL) {
        work->prev = work; /* the first one's prev is the last */
        *list = work;
        return;
    }
    last = (*list)->prev;
    last->next = work;
    work->prev = last;
    (*list)->prev = work;
}

static void list_remove(tutti_work **list, tutti_work *work)
{
    if (work->next != NULL)
        work->next->prev = work->prev;
    else if (*list != work)
        (*list)->prev = work->prev;
    if (*list == work)
        *list = work->next;
    else
        work->prev->next = work->next;
    work->next = work->prev = NULL;
}

int tti_message_source(const tutti_work *work)
{
    return tutti_get_global_rank(work->group, tti_asked_member(work->ops->source(work->request), work->group->size));
}

void tti_message_settle(tutti_work *work, tutti_status status, const char *words)
{
    tutti_group *group = work->group;
    char         own[TTI_GROUP_WORDS_MAX];

    if (status != TUTTI_OK) {
        tti_fail(status, "%s", words);
        tti_message_failed(group, work->what, status);
        snprintf(own, sizeof own, "%s", tutti_last_error());
        words = own;
    }
    if (status == TUTTI_OK)
        work->source = tti_message_source(work);
    else
        tti_group_fail(group, work->what, status, words);
    work->ops->release(work->request);
    work->request = NULL;
    list_remove(&group->messages, work);
    tti_work_finish(work, status, words);
    tti_work_drop(work); /* the list's reference; the caller has his own */
}

/* Settle old messages that nobody holds and that have ended. Lock held. */
static void reap(tutti_group *group)
{
    tutti_work *work;
    int         i;

    for (i = 0; i < REAP_MAX && group->messages != NULL; i++) {
        work = group->messages;
        if (atomic_load(&work->refs) == 1 && work->pins == 0 && work->ops->test(work->request)) {
            tti_message_settle(work, tti_asked_wait(work->ops, work->request, 0), tutti_last_error());
            continue;
        }
        list_remove(&group->messages, work); /* to the end: the next post looks at others */
        list_append(&group->messages, work);
    }
}

/* Lock held. */
static void adopt(tutti_group *group, const tutti_backend_ops *ops, tutti_request *request, tutti_work *work)
{
    work->request = request;
    work->ops = ops;
    reap(group);
    tti_work_retain(work);
    list_append(&group->messages, work);
}

void tti_message_adopt(tutti_group *group, const tutti_backend_ops *ops, tutti_request *request, tutti_work *work)
{
    tti_lock(&group->runner->lock);
    adopt(group, ops, request, work);
    tti_unlock(&group->runner->lock);
}

/* The message was done when it was begun. Nobody else knows its work yet. */
static void complete(tutti_work *work, const tti_posting *p, const tutti_backend_ops *ops)
{
    tti_record_mark_end(work->call.record);
    work->ops = ops;
    work->source = p->message.is_send ? -1 : p->peer;
    work->group = NULL;
    if (work->timed)
        work->ended_ns = tti_port_now(work->runner->port);
    work->done = true;
}

void tti_posting_name(tutti_group *group, const tti_posting *p, tutti_work *work)
{
    describe(p, work->what);
    tti_comm_name(group, p->message.device, tti_message_title(p), work->name);
    if (work->timed)
        work->began_ns = tti_port_now(group->runner->port);
}

void tti_posting_begun(tutti_group *group, const tti_posting *p, tutti_request *request, tutti_work *work)
{
    const tutti_backend_ops *ops = group->routes[p->message.device].ops;

    if (!p->message.is_send)
        work->call = (tutti_call){ .dtype = p->message.dtype, .count = p->message.count,
                                   .out = p->message.data, .device = p->message.device,
                                   .device_index = p->message.device_index };
    work->call.record = tti_recorded_message(tti_thread_facts_now(), group, p, TUTTI_RECORD_ASYNC);
    if (request != NULL)
        adopt(group, ops, request, work);
    else
        complete(work, p, ops);
}

static tutti_status post(tutti_group *group, const tti_posting *p, tutti_work *work)
{
    const tti_route *route = &group->routes[p->message.device];
    tutti_request   *request = NULL;
    tutti_status     st;

    tti_posting_name(group, p, work);
    st = tti_asked_post(route->ops, route->backend, &p->message, &request);
    if (st != TUTTI_OK)
        return st;
    tti_lock(&group->runner->lock);
    tti_posting_begun(group, p, request, work);
    tti_unlock(&group->runner->lock);
    return TUTTI_OK;
}

tutti_status tti_posting_begin(tutti_group *group, const tti_posting *p, tutti_work *work)
{
    tti_observation *seen = NULL;
    tutti_status     st = tti_observe_message(group, p, true, &seen);

    if (st == TUTTI_OK)
        st = post(group, p, work);
    tti_observe_end(seen, st, 0, st == TUTTI_OK ? work : NULL);
    return st;
}

static tutti_status post_work(tutti_group *group, const tti_posting *p, tutti_work **work_out)
{
    tutti_work  *work = NULL;
    tutti_status st;

    st = tti_work_create(group, 0, &work);
    if (st != TUTTI_OK)
        return st;
    st = tti_posting_begin(group, p, work);
    if (st != TUTTI_OK)
        tti_work_drop(work);
    else
        *work_out = work;
    return st;
}

static tutti_status issue(tutti_span buf, int tag, tutti_group *group, tti_posting *p,
                          tutti_work **work_out)
{
    tutti_group *g = NULL;
    tutti_status st;

    if (work_out == NULL)
        return tti_fail(TUTTI_E_ARG, "%s: work_out is NULL\n  next: pass where to put the work, which has to be waited for", p->what);
    st = tti_group_resolve(group, p->what, &g);
    if (st == TUTTI_OK && g == NULL)
        *work_out = tti_work_nothing();
    if (st != TUTTI_OK || g == NULL)
        return st;
    st = tti_posting_check(g, buf, tag, p);
    if (st == TUTTI_OK)
        st = tti_group_enter(g);
    if (st != TUTTI_OK)
        return st;
    st = post_work(g, p, work_out);
    tti_group_leave(g, p->what, st);
    return st;
}

tutti_status tutti_isend(tutti_span buf, int dst, int tag, tutti_group *group,
                         tutti_work **work_out)
{
    tti_posting p = { .what = "isend", .message = { .is_send = true }, .peer = dst };

    return issue(buf, tag, group, &p, work_out);
}

tutti_status tutti_irecv(tutti_span buf, int src, int tag, tutti_group *group,
                         tutti_work **work_out)
{
    tti_posting p = { .what = "irecv", .peer = src };

    return issue(buf, tag, group, &p, work_out);
}

/* ---- closing ---- */

tutti_work *tti_messages_take(tutti_group *group)
{
    tti_runner *runner = group->runner;
    tutti_work *work;

    tti_lock(&runner->lock);
    for (work = group->messages; work != NULL; work = work->next)
        while (work->pins > 0)
            tti_runner_sleep(runner, TTI_FOREVER);
    for (work = group->messages; work != NULL; work = work->next) {
        work->status = TUTTI_E_ABORTED;
        if (work->ops->test(work->request))
            work->status = tti_asked_wait(work->ops, work->request, 0);
        if (work->status == TUTTI_OK)
            work->source = tti_message_source(work);
        else if (work->status != TUTTI_E_ABORTED)
            work->words = strdup(tutti_last_error());
    }
    work = group->messages;
    group->messages = NULL;
    tti_unlock(&runner->lock);
    return work;
}

void tti_messages_give(tutti_work *first)
{
    tutti_work *work = first;
    tutti_work *next;

    for (; work != NULL; work = next) {
        tti_runner *runner = work->runner;
        char       *kept = work->words;
        char        words[TTI_GROUP_CAUSE_MAX * 3];

        next = work->next;
        snprintf(words, sizeof words, "%s on group '%s' was not complete: the group was destroyed",
                 work->what, work->group_name);
        tti_lock(&runner->lock);
        work->ops->release(work->request);
        work->request = NULL;
        tti_work_finish(work, work->status, kept != NULL ? kept : words);
        tti_unlock(&runner->lock);
        free(kept);
        tti_work_drop(work);
    }
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * window.c - one-sided access: puts, gets, signals.
 *
 * Outside of the group's sequence, as messages are: what a call begins ends in the backend, or with a work that
 * stands in the group's list of messages. A blocking call that runs out of time ends the group, because its buffer,
 * or the peer's memory, would stay in use; a wait for a signal borrows nothing, and is given up alone. */
#include "group/asked.h"
#include "group/one_sided.h"
#include "group/recorded.h"

#include <stdio.h>
#include "group/check.h"
#include "group/hooks.h"
#include <tutti/private.h>

/* One call: what it is for, and whom it reaches. */
typedef struct access {
    const char             *what;
    tutti_window           *window;
    tutti_group            *group;
    const tutti_window_ops *ops;
    int                     peer; /* group rank */
    uint64_t                offset; /* bytes */
    size_t                  bytes;
    tutti_span              buf;
    tutti_record_kind       kind;
    uint64_t                record; /* 0: none, or it is the work's */
} access;

typedef tutti_status begin_fn(const access *a, tutti_request **request_out);

/* ---- checks ---------------------------------------------------------------------------------------- */

tutti_status tti_window_enter(tutti_window *window, const char *what, bool needs_part, tutti_group **group_out)
{
    tutti_group *group;
    tutti_status st;

    if (window == NULL)
        return tti_fail(TUTTI_E_ARG, "%s: the window is NULL", what);
    if (tti_is_inherited(window->runner->age))
        return tti_fail_inherited(what, "a window of group", window->group_name);
    tti_lock(&window->runner->lock);
    group = window->group;
    tti_unlock(&window->runner->lock);
    if (group == NULL)
        return tti_fail(TUTTI_E_STATE, "%s: the window's group '%s' was destroyed", what, window->group_name);
    st = tti_group_enter(group);
    if (st != TUTTI_OK)
        return st;
    if (needs_part && window->handle == NULL) {
        tti_group_leave(group, what, TUTTI_OK);
        return tti_fail(TUTTI_E_STATE, "%s: nothing is registered in the window of group '%s'\n"
                                       "  next: tutti_window_register() on all members", what, window->group_name);
    }
    *group_out = group;
    return TUTTI_OK;
}

static tutti_status find_peer(access *a, int peer)
{
    a->peer = tutti_get_group_rank(a->group, peer);
    if (a->peer >= 0)
        return TUTTI_OK;
    return tti_fail(TUTTI_E_ARG, "%s on group '%s': rank %d is not in the group of %d", a->what, a->group->name, peer,
                    a->group->size);
}

static tutti_status check_copy(access *a, tutti_span buf, int64_t offset)
{
    const tti_window_part *part = &a->window->parts[a->peer];
    const size_t           item = tutti_dtype_size(buf.dtype);
    tutti_status           st = tti_check_span(a->group, a->what, "buf", buf);

    if (st != TUTTI_OK)
        return st;
    if (buf.device.type != TUTTI_CPU)
        return tti_fail(TUTTI_E_UNSUPPORTED, "%s on group '%s': buf is not memory of the host", a->what,
                        a->group->name);
    if (buf.dtype != part->dtype)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': buf has %s, the window %s", a->what, a->group->name,
                        tutti_dtype_name(buf.dtype), tutti_dtype_name(part->dtype));
    if (offset < 0 || offset > part->count || buf.count > part->count - offset)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': %lld elements from %lld on are not inside of what rank %d registered: %lld",
                        a->what, a->group->name, (long long)buf.count, (long long)offset,
                        a->group->ranks[a->peer], (long long)part->count);
    a->offset = (uint64_t)offset * item;
    a->bytes = (size_t)buf.count * item;
    a->buf = buf;
    return TUTTI_OK;
}

/* Enter the group of a call; the caller leaves it if this succeeds. */
static tutti_status enter(access *a, int peer)
{
    tutti_status st = tti_window_enter(a->window, a->what, true, &a->group);

    if (st != TUTTI_OK)
        return st;
    st = tti_window_ops_of(a->group, a->what, &a->ops);
    if (st == TUTTI_OK)
        st = find_peer(a, peer);
    if (st != TUTTI_OK)
        tti_group_leave(a->group, a->what, TUTTI_OK);
    return st;
}

static void describe(const access *a, char out[TTI_GROUP_CAUSE_MAX])
{
    snprintf(out, TTI_GROUP_CAUSE_MAX, "%s, rank %d", a->what, a->group->ranks[a->peer]);
}

/* The group of a call ends with what it failed with, if that is of the kind. */
static tutti_status leave(const access *a, tutti_status st)
{
    char what[TTI_GROUP_CAUSE_MAX];

    if (a->record != 0)
        tti_record_end_slowly(a->record, st);
    describe(a, what);
    if (tti_group_finishes(st))
        tti_hooks_abort(a->group, what, st);
    tti_group_leave(a->group, what, st);
    return st;
}

/* ---- waiting, or not ------------------------------------------------------------------------------- */

static const tutti_backend_ops *backend_ops(const tutti_group *group)
{
    return group->routes[TUTTI_CPU].ops;
}

static tutti_status give_up(const access *a, tutti_request *request)
{
    char what[TTI_GROUP_CAUSE_MAX];
    char words[TTI_GROUP_WORDS_MAX];

    describe(a, what);
    snprintf(words, sizeof words, "%s", tutti_last_error());
    tti_lock(&a->group->runner->lock);
    tti_group_fail(a->group, what, TUTTI_E_TIMEOUT, words);
    tti_unlock(&a->group->runner->lock);
    backend_ops(a->group)->wait(request, TTI_FOREVER);
    return tti_fail(TUTTI_E_TIMEOUT, "%s", words);
}

/* request NULL: it is done. */
static tutti_status await(const access *a, tutti_request *request)
{
    const tutti_backend_ops *ops = backend_ops(a->group);
    const int64_t            timeout_ms = a->group->timeout_ms;
    tutti_status             st;

    if (request == NULL)
        return TUTTI_OK;
    st = tti_asked_wait(ops, request, tti_deadline(a->group->runner->port, timeout_ms, timeout_ms));
    if (st == TUTTI_E_TIMEOUT)
        st = give_up(a, request);
    ops->release(request);
    return st;
}

/* It begins, and is waited for: leave() ends the record. */
static void record(access *a)
{
    a->record = tti_recorded_other(a->group, a->kind, a->peer, a->buf, 0);
}

static tutti_status run(access *a, begin_fn *begin)
{
    tutti_request *request = NULL;
    tutti_status   st;

    record(a);
    st = begin(a, &request);
    return leave(a, st == TUTTI_OK ? await(a, request) : st);
}

static tutti_status begin_put(const access *a, tutti_request **request_out)
{
    const uint32_t said = tti_words_said();

    return tti_asked_status(backend_ops(a->group), "put", a->ops->put(a->window->handle, a->peer, a->offset, a->buf.data, a->bytes, request_out),
                            said);
}

static tutti_status begin_get(const access *a, tutti_request **request_out)
{
    const uint32_t said = tti_words_said();

    return tti_asked_status(backend_ops(a->group), "get", a->ops->get(a->window->handle, a->peer, a->offset, a->buf.data, a->bytes, request_out),
                            said);
}

/* What a get has written is the result of its work. */
static void note_result(const access *a, begin_fn *begin, tutti_work *work)
{
    if (begin == begin_get)
        work->call = (tutti_call){ .dtype = a->buf.dtype, .count = a->buf.count, .out = a->buf.data };
}

static void finish_at_once(tutti_work *work)
{
    tti_lock(&work->runner->lock);
    tti_work_finish(work, TUTTI_OK, "");
    tti_unlock(&work->runner->lock);
}

static tutti_status issue(const access *a, begin_fn *begin, tutti_work **work_out)
{
    tutti_request *request = NULL;
    tutti_work    *work = NULL;
    tutti_status   st = tti_work_create(a->group, 0, &work);

    if (st == TUTTI_OK)
        st = begin(a, &request);
    if (st != TUTTI_OK) {
        if (work != NULL)
            tti_work_drop(work);
        return leave(a, st);
    }
    describe(a, work->what);
    tti_comm_name(a->group, TUTTI_CPU, a->what, work->name);
    note_result(a, begin, work);
    work->call.record = tti_recorded_other(a->group, a->kind, a->peer, a->buf, TUTTI_RECORD_ASYNC);
    work->ops = backend_ops(a->group); /* as of a message, also if it is done */
    if (request != NULL)
        tti_message_adopt(a->group, backend_ops(a->group), request, work);
    else
        finish_at_once(work);
    *work_out = work;
    return leave(a, TUTTI_OK);
}

/* ---- copies ---------------------------------------------------------------------------------------- */

static tutti_status enter_copy(access *a, tutti_span buf, int peer, int64_t offset)
{
    tutti_status st = enter(a, peer);

    if (st != TUTTI_OK)
        return st;
    st = check_copy(a, buf, offset);
    if (st != TUTTI_OK)
        tti_group_leave(a->group, a->what, TUTTI_OK);
    return st;
}

static tutti_status check_work_out(const char *what, tutti_work **work_out)
{
    return work_out != NULL ? TUTTI_OK : tti_fail(TUTTI_E_ARG, "%s: work_out is NULL", what);
}

tutti_status tutti_window_put(tutti_window *window, tutti_span buf, int peer, int64_t offset)
{
    access             a = { .what = "window_put", .kind = TUTTI_RECORD_PUT, .window = window };
    const tutti_status st = enter_copy(&a, buf, peer, offset);

    return st == TUTTI_OK ? run(&a, begin_put) : st;
}

tutti_status tutti_window_put_async(tutti_window *window, tutti_span buf, int peer, int64_t offset,
                                    tutti_work **work_out)
{
    access       a = { .what = "window_put", .kind = TUTTI_RECORD_PUT, .window = window };
    tutti_status st = check_work_out(a.what, work_out);

    if (st == TUTTI_OK)
        st = enter_copy(&a, buf, peer, offset);
    return st == TUTTI_OK ? issue(&a, begin_put, work_out) : st;
}

tutti_status tutti_window_get(tutti_window *window, tutti_span buf, int peer, int64_t offset)
{
    access             a = { .what = "window_get", .kind = TUTTI_RECORD_GET, .window = window };
    const tutti_status st = enter_copy(&a, buf, peer, offset);

    return st == TUTTI_OK ? run(&a, begin_get) : st;
}

tutti_status tutti_window_get_async(tutti_window *window, tutti_span buf, int peer, int64_t offset,
                                    tutti_work **work_out)
{
    access       a = { .what = "window_get", .kind = TUTTI_RECORD_GET, .window = window };
    tutti_status st = check_work_out(a.what, work_out);

    if (st == TUTTI_OK)
        st = enter_copy(&a, buf, peer, offset);
    return st == TUTTI_OK ? issue(&a, begin_get, work_out) : st;
}

/* ---- signals --------------------------------------------------------------------------------------- */

static tutti_status begin_wait(const access *a, tutti_request **request_out)
{
    const uint32_t said = tti_words_said();

    return tti_asked_status(backend_ops(a->group), "wait_signal", a->ops->wait_signal(a->window->handle, a->peer, request_out),
                            said);
}

tutti_status tutti_window_signal(tutti_window *window, int peer)
{
    access       a = { .what = "window_signal", .kind = TUTTI_RECORD_SIGNAL, .window = window };
    tutti_status st = enter(&a, peer);
    uint32_t     said;

    if (st != TUTTI_OK)
        return st;
    record(&a);
    said = tti_words_said();
    return leave(&a, tti_asked_status(backend_ops(a.group), "signal", a.ops->signal(window->handle, a.peer), said));
}

static tutti_status none_came(const access *a, int64_t began_ns)
{
    const int64_t waited_ms = (tti_port_now(a->group->runner->port) - began_ns) / TTI_MS;
    const int     rank = a->group->ranks[a->peer];

    return tti_fail(TUTTI_E_TIMEOUT, "%s on group '%s': no signal came from rank %d in %lld ms", a->what, a->group->name,
                    rank, (long long)waited_ms);
}

static tutti_status wait_signal(access *a, int64_t timeout_ms)
{
    tti_port      *port = a->group->runner->port;
    const int64_t  began_ns = tti_port_now(port);
    tutti_request *request = NULL;
    tutti_status   st;

    record(a);
    st = begin_wait(a, &request);
    if (st != TUTTI_OK || request == NULL)
        return leave(a, st);
    st = tti_asked_wait(backend_ops(a->group), request, tti_deadline(port, timeout_ms, a->group->timeout_ms));
    if (st == TUTTI_E_TIMEOUT && a->ops->cancel(a->window->handle, request)) {
        backend_ops(a->group)->release(request);
        tti_record_end_slowly(a->record, TUTTI_E_TIMEOUT);
        tti_group_leave(a->group, a->what, TUTTI_OK); /* nothing is in use: the group goes on */
        return none_came(a, began_ns);
    }
    if (st == TUTTI_E_TIMEOUT) /* it ended at the last moment */
        st = tti_asked_wait(backend_ops(a->group), request, TTI_FOREVER);
    backend_ops(a->group)->release(request);
    return leave(a, st);
}

tutti_status tutti_window_wait_signal(tutti_window *window, int peer, int64_t timeout_ms)
{
    access       a = { .what = "window_wait_signal", .kind = TUTTI_RECORD_WAIT_SIGNAL, .window = window };
    tutti_status st;

    if (timeout_ms < TUTTI_INFINITE)
        return tti_fail(TUTTI_E_ARG, "%s: timeout_ms is %lld\n  next: 0 for the group's, -1 for none", a.what,
                        (long long)timeout_ms);
    st = enter(&a, peer);
    return st == TUTTI_OK ? wait_signal(&a, timeout_ms) : st;
}

tutti_status tutti_window_wait_signal_async(tutti_window *window, int peer, tutti_work **work_out)
{
    access       a = { .what = "window_wait_signal", .kind = TUTTI_RECORD_WAIT_SIGNAL, .window = window };
    tutti_status st = check_work_out(a.what, work_out);

    if (st == TUTTI_OK)
        st = enter(&a, peer);
    return st == TUTTI_OK ? issue(&a, begin_wait, work_out) : st;
}

/* ---- flush ----------------------------------------------------------------------------------------- */

static tutti_status flush_one(access *a, int peer)
{
    const uint32_t said = tti_words_said();
    tutti_request *request = NULL;
    tutti_status   st;

    a->peer = peer;
    st = tti_asked_status(backend_ops(a->group), "flush", a->ops->flush(a->window->handle, peer, &request), said);
    return st == TUTTI_OK ? await(a, request) : st;
}

tutti_status tti_window_flush_peers(tutti_window *window, tutti_group *group, const char *what, int peer)
{
    access       a = { .what = what, .window = window, .group = group };
    tutti_status st = tti_window_ops_of(group, what, &a.ops);
    int          i;

    if (peer >= 0)
        return st == TUTTI_OK ? flush_one(&a, peer) : st;
    for (i = 0; i < group->size && st == TUTTI_OK; i++)
        st = flush_one(&a, i);
    return st;
}

tutti_status tutti_window_flush(tutti_window *window, int peer)
{
    access       a = { .what = "window_flush", .kind = TUTTI_RECORD_FLUSH, .window = window };
    tutti_status st = tti_window_enter(window, a.what, true, &a.group);

    if (st != TUTTI_OK)
        return st;
    a.peer = a.group->rank;
    if (peer != -1)
        st = find_peer(&a, peer);
    if (st != TUTTI_OK) {
        tti_group_leave(a.group, a.what, TUTTI_OK);
        return st;
    }
    a.peer = peer == -1 ? -1 : a.peer;
    record(&a);
    st = tti_window_flush_peers(window, a.group, a.what, a.peer);
    a.peer = a.peer < 0 ? a.group->rank : a.peer; /* for words */
    return leave(&a, st);
}

/* ---- looking --------------------------------------------------------------------------------------- */

tutti_status tutti_window_map_remote(tutti_window *window, int peer, tutti_span *span_out)
{
    access       a = { .what = "window_map_remote", .window = window };
    tutti_status st = span_out != NULL ? enter(&a, peer) : tti_fail(TUTTI_E_ARG, "%s: span_out is NULL", a.what);
    void        *memory;

    if (st != TUTTI_OK)
        return st;
    memory = a.ops->memory(window->handle, a.peer);
    if (memory == NULL && window->parts[a.peer].count > 0)
        st = tti_fail(TUTTI_E_UNSUPPORTED,
                      "%s on group '%s': rank %d is on another host\n  next: tutti_window_put(), tutti_window_get()",
                      a.what, a.group->name, peer);
    else
        *span_out = tutti_span_of(memory, window->parts[a.peer].count, window->parts[a.peer].dtype);
    tti_group_leave(a.group, a.what, TUTTI_OK);
    return st;
}

tutti_status tutti_window_get_attr(tutti_window *window, int peer, tutti_window_attr *attr_out)
{
    access       a = { .what = "window_get_attr", .window = window };
    tutti_status st = attr_out != NULL ? enter(&a, peer) : tti_fail(TUTTI_E_ARG, "%s: attr_out is NULL", a.what);

    if (st != TUTTI_OK)
        return st;
    *attr_out = (tutti_window_attr){ .access = a.ops->is_direct(window->handle, a.peer) ? TUTTI_WINDOW_UNIFIED
                                                                                       : TUTTI_WINDOW_SEPARATE,
                                     .count = window->parts[a.peer].count, .dtype = window->parts[a.peer].dtype };
    tti_group_leave(a.group, a.what, TUTTI_OK);
    return TUTTI_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * streamed.c - calls in the order of a device's streams.
 *
 * Why     A device works beside the program. What a call has to wait for is what the caller's stream was given before it, and
 *         who goes on behind it is a stream, too: no thread should wait for that.
 * How     When such a call is issued, on the caller's thread, the backend marks how far the thread's stream has come, and
 *         gives a ticket. The call is run in its turn as any other, by whoever comes to it, and ends for the queue when the
 *         device was told. After that the ticket stands for its end: a blocking call lets its thread's stream follow it, a
 *         work keeps it for those who wait.
 * True    A ticket belongs to one call, and outlives its backend. Works of one call share it, counted. work->streamed
 *         is written before anybody else knows the work, or under the runner's lock (tti_work_lead), and is read only after the
 *         work was seen done under that lock. */
#include "group/asked.h"
#include "group/streamed.h"

#include <stdlib.h>
#include <tutti/private.h>
#include <tutti/stream.h>
#include "watch/control.h"

struct tti_streamed {
    _Atomic int             refs;
    const tutti_backend_ops *ops; /* it has streams */
    tutti_ticket           *ticket;
    tti_port               *port;
    tutti_device_type       device;
    bool                    is_barrier; /* who is through it knows that all have come: a stream that waits knows nothing */
};

static _Thread_local void *streams[TTI_DEVICES];

tutti_status tutti_set_stream(tutti_device_type device, void *stream)
{
    if (device == TUTTI_CPU || (unsigned)device >= TTI_DEVICES)
        return tti_fail(TUTTI_E_ARG, "tutti_set_stream: device type %d has no streams, only TUTTI_CUDA has", (int)device);
    streams[device] = stream;
    return TUTTI_OK;
}

void *tutti_get_stream(tutti_device_type device)
{
    return (unsigned)device < TTI_DEVICES ? streams[device] : NULL;
}

static tutti_status mark(tutti_group *group, tutti_call *call)
{
    const tti_route *route = &group->routes[call->device];

    return tti_asked_mark(route, call, streams[call->device], &call->ticket);
}

tutti_status tti_streamed_run(tutti_group *group, tutti_call *call)
{
    const tutti_backend_ops *ops = group->routes[call->device].ops;
    tutti_status             st = tti_group_enter(group); /* the backend is there to mark, and stays */

    if (st != TUTTI_OK)
        return st;
    st = mark(group, call);
    if (st == TUTTI_OK) {
        st = tti_queue_run_marked(group, call);
        if (st == TUTTI_OK && call->kind == TUTTI_CALL_BARRIER)
            st = tti_asked_wait_ticket(ops, call->ticket, TTI_FOREVER); /* it has a deadline of its own */
        else if (st == TUTTI_OK)
            st = tti_asked_follow(ops, call->ticket, streams[call->device]);
        ops->streams->release(call->ticket);
    }
    tti_group_leave(group, tti_call_kind_name(call->kind), st == TUTTI_E_UNSUPPORTED ? TUTTI_OK : st);
    return st;
}

tutti_status tti_streamed_issue(tutti_group *group, tutti_work *work)
{
    tti_streamed *s = malloc(sizeof *s);
    tutti_status  st;

    if (s == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for an asynchronous operation on group '%s'", group->name);
    st = mark(group, &work->call);
    if (st != TUTTI_OK) {
        free(s);
        return st;
    }
    atomic_init(&s->refs, 1);
    s->ops = group->routes[work->call.device].ops;
    s->ticket = work->call.ticket;
    s->port = group->runner->port;
    s->device = work->call.device;
    s->is_barrier = work->call.kind == TUTTI_CALL_BARRIER;
    work->streamed = s;
    return TUTTI_OK;
}

tti_streamed *tti_streamed_retain(tti_streamed *s)
{
    if (s != NULL)
        atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void tti_streamed_drop(tti_streamed *s)
{
    if (s == NULL || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    s->ops->streams->release(s->ticket);
    free(s);
}

bool tti_streamed_ended(const tti_streamed *s)
{
    return s->ops->streams->test(s->ticket);
}

tutti_status tti_streamed_wait(const tti_streamed *s, int64_t timeout_ms)
{
    if (timeout_ms == 0 && !s->is_barrier)
        return tti_asked_follow(s->ops, s->ticket, streams[s->device]);
    return tti_asked_wait_ticket(s->ops, s->ticket, timeout_ms == 0 ? TTI_FOREVER : tti_deadline(s->port, timeout_ms, timeout_ms));
}

tutti_status tti_streamed_outcome(const tti_streamed *s)
{
    return tti_asked_wait_ticket(s->ops, s->ticket, 0);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ticket.c - the place of a call in streams: what it waits for, who waits for it.
 *
 * How     Two events: `before` is recorded on the caller's stream when the call is issued, `after` on the group's when the call was
 *         given to it. The group's stream waits for the first, the caller's for the second.
 * States  marked -> begun (in the list of those under way) -> ended. All under the group's lock. A ticket that was
 *         released while it is under way goes when it ends; before it was begun it goes at once, and its call never comes.
 * True    Whether a call has ended is asked of its event, by whoever looks: the watchdog now and then, those who wait. One that has
 *         ended before its group failed has ended well. But what looks like an end may be none, as NCCL's kernels also return when
 *         they give up: once an event has come NCCL is asked whether it has an error to tell, and only then is it an end. */
#include "nccl_backend.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- memory ---- */

static void destroy_ticket(tutti_ticket *t)
{
    if (t->before != NULL)
        tnccl.cudaEventDestroy(t->before);
    if (t->after != NULL)
        tnccl.cudaEventDestroy(t->after);
    free(t);
}

static tutti_status make_ticket(tnccl_backend *b, tutti_ticket **ticket_out)
{
    tutti_ticket *t = calloc(1, sizeof *t);
    cudaError_t   code;

    if (t == NULL)
        return tnccl_host->fail(TUTTI_E_NOMEM, "no memory for a call on group '%s'", b->name);
    code = tnccl.cudaEventCreateWithFlags(&t->before, cudaEventDisableTiming);
    if (code == cudaSuccess)
        code = tnccl.cudaEventCreateWithFlags(&t->after, cudaEventDisableTiming);
    if (code != cudaSuccess) {
        destroy_ticket(t);
        return tnccl_fail_cuda(code, "making an event", b->name);
    }
    *ticket_out = t;
    return TUTTI_OK;
}

tutti_status tnccl_ticket_new(tnccl_backend *b, tutti_ticket **ticket_out)
{
    tutti_ticket *t = b->spare;
    tutti_status  st = TUTTI_OK;

    if (t != NULL) {
        b->spare = t->next;
        b->n_spare--;
    } else {
        st = make_ticket(b, &t);
    }
    if (st != TUTTI_OK)
        return st;
    t->next = NULL;
    t->link = NULL;
    t->b = b;
    t->state = TNCCL_MARKED;
    t->released = false;
    t->status = TUTTI_OK;
    tnccl_hold(b);
    *ticket_out = t;
    return TUTTI_OK;
}

/* Nobody has it any more. The caller drops the group afterwards, without the lock. */
static void put_back(tutti_ticket *t)
{
    tnccl_backend *b = t->b;

    if (b->n_spare >= TNCCL_SPARE) {
        destroy_ticket(t);
        return;
    }
    t->next = b->spare;
    b->spare = t;
    b->n_spare++;
}

void tnccl_tickets_free(tnccl_backend *b)
{
    tutti_ticket *t;

    while ((t = b->spare) != NULL) {
        b->spare = t->next;
        destroy_ticket(t);
    }
}

/* ---- under way ---- */

tutti_status tnccl_ticket_begin(tutti_ticket *t, const tutti_call *call, const char *what)
{
    tnccl_backend    *b = t->b;
    const cudaError_t code = tnccl.cudaEventRecord(t->after, b->stream);

    if (code != cudaSuccess) {
        tnccl_fail_cuda(code, what, b->name);
        tnccl_finish(b, TUTTI_E_BACKEND, tnccl_host->last_error());
        return tnccl_say(b);
    }
    t->seq = call->seq;
    t->began_ns = tnccl_host->now_ns();
    t->deadline_ns = call->deadline_ns != 0 ? call->deadline_ns : INT64_MAX;
    snprintf(t->what, sizeof t->what, "%s", what);
    t->state = TNCCL_BEGUN;
    t->has_come = false;
    t->next = b->under_way;
    t->link = &b->under_way;
    if (t->next != NULL)
        t->next->link = &t->next;
    b->under_way = t;
    tnccl_news(b);
    return TUTTI_OK;
}

/* Whoever had it last has let go: the group is held by somebody else, so this is not its end. */
static void end_ticket(tutti_ticket *t, tutti_status status)
{
    *t->link = t->next;
    if (t->next != NULL)
        t->next->link = t->link;
    t->next = NULL;
    t->link = NULL;
    t->status = status;
    t->state = TNCCL_ENDED;
    if (t->released) {
        tnccl_backend *b = t->b;

        put_back(t);
        atomic_fetch_sub_explicit(&b->refs, 1, memory_order_relaxed);
    }
}

cudaError_t tnccl_query(cudaEvent_t event)
{
    const cudaError_t code = tnccl.cudaEventQuery(event);

    if (code != cudaSuccess)
        tnccl.cudaGetLastError(); /* "not ready" is an error, too, for whoever asks after a kernel of his */
    return code;
}

/* Also where the process exits, and the runtime is gone before its threads are: there is no end to be told of then. */
bool tnccl_is_pending(cudaError_t code)
{
    return code == cudaErrorNotReady || code == cudaErrorCudartUnloading;
}

static void look(tutti_ticket *t)
{
    cudaError_t code;

    if (t->state != TNCCL_BEGUN)
        return;
    code = tnccl_query(t->after);
    if (code == cudaSuccess && tnccl_has_error(t->b)) {
        return; /* which has ended this one, too */
    } else if (code == cudaSuccess) {
        end_ticket(t, TUTTI_OK);
    } else if (!tnccl_is_pending(code)) {
        tnccl_fail_cuda(code, t->what, t->b->name);
        end_ticket(t, TUTTI_E_BACKEND);
        tnccl_finish(t->b, TUTTI_E_BACKEND, tnccl_host->last_error());
    }
}

void tnccl_tickets_query(tnccl_backend *b)
{
    tutti_ticket *t;

    for (t = b->under_way; t != NULL; t = t->next)
        t->has_come = tnccl_query(t->after) == cudaSuccess;
}

void tnccl_tickets_end(tnccl_backend *b)
{
    tutti_ticket *t, *next;

    for (t = b->under_way; t != NULL; t = next) {
        next = t->next;
        if (t->has_come)
            end_ticket(t, TUTTI_OK);
    }
}

void tnccl_tickets_look(tnccl_backend *b)
{
    tutti_ticket *t, *next;

    tnccl_tickets_query(b);
    if (tnccl_has_error(b))
        return;
    tnccl_tickets_end(b);
    for (t = b->under_way; t != NULL && b->status == TUTTI_OK; t = next) { /* those that CUDA has failed */
        next = t->next;
        if (!tnccl_is_pending(tnccl_query(t->after)))
            look(t);
    }
}

void tnccl_tickets_fail(tnccl_backend *b)
{
    while (b->under_way != NULL)
        end_ticket(b->under_way, b->status);
}

/* ---- what callers do with one ---- */

static tutti_status mark(tutti_backend *backend, int device_index, void *stream, tutti_ticket **ticket_out)
{
    tnccl_backend *b = (tnccl_backend *)backend;
    tutti_ticket  *t = NULL;
    cudaError_t    code;
    tutti_status   st;
    int            device;

    if (device_index >= 0 && device_index != b->device)
        return tnccl_host->fail(TUTTI_E_ARG, "group '%s' works on GPU %d, and a buffer is of GPU %d\n"
                                             "  next: call cudaSetDevice() before the group is made", b->name, b->device, device_index);
    device = tnccl_enter(b);
    pthread_mutex_lock(&b->lock);
    st = b->status != TUTTI_OK ? tnccl_say(b) : tnccl_ticket_new(b, &t);
    pthread_mutex_unlock(&b->lock);
    if (st == TUTTI_OK) {
        code = tnccl.cudaEventRecord(t->before, (cudaStream_t)stream);
        if (code != cudaSuccess)
            st = tnccl_fail_cuda(code, "marking the caller's stream", b->name);
    }
    if (st != TUTTI_OK && t != NULL)
        tnccl_ticket_release(t);
    tnccl_leave(device);
    if (st == TUTTI_OK)
        *ticket_out = t;
    return st;
}

static tutti_status follow(tutti_ticket *t, void *stream)
{
    tnccl_backend *b = t->b;
    const int      device = tnccl_enter(b);
    cudaError_t    code = cudaSuccess;
    tutti_status   st = TUTTI_OK;

    pthread_mutex_lock(&b->lock);
    if (t->state == TNCCL_ENDED && t->status != TUTTI_OK)
        st = tnccl_say(b);
    else if (t->state == TNCCL_BEGUN)
        code = tnccl.cudaStreamWaitEvent((cudaStream_t)stream, t->after, 0);
    pthread_mutex_unlock(&b->lock);
    tnccl_leave(device);
    return code == cudaSuccess ? st : tnccl_fail_cuda(code, t->what, b->name);
}

static bool test(tutti_ticket *t)
{
    tnccl_backend *b = t->b;
    const int      device = tnccl_enter(b);
    bool           ended;

    pthread_mutex_lock(&b->lock);
    look(t);
    ended = t->state == TNCCL_ENDED;
    pthread_mutex_unlock(&b->lock);
    tnccl_leave(device);
    return ended;
}

tutti_status tnccl_await(tnccl_backend *b, int64_t deadline_ns, tnccl_look *look_at, tnccl_late *late, void *what)
{
    const int    device = tnccl_enter(b);
    tutti_status st = TUTTI_OK, ended = TUTTI_OK;
    uint32_t     rounds = 0;
    bool         through = false;

    while (!through) {
        pthread_mutex_lock(&b->lock);
        through = look_at(what, &ended);
        if (through && ended != TUTTI_OK)
            st = tnccl_say(b);
        pthread_mutex_unlock(&b->lock);
        if (!through && tnccl_host->now_ns() >= deadline_ns) {
            st = late(what);
            through = true;
        } else if (!through) {
            tnccl_host->idle(&rounds, false);
        }
    }
    tnccl_leave(device);
    return st;
}

static bool look_at_ticket(void *what, tutti_status *status_out)
{
    tutti_ticket *t = what;

    look(t);
    *status_out = t->status;
    return t->state == TNCCL_ENDED;
}

static tutti_status still_under_way(const void *what)
{
    const tutti_ticket *t = what;

    return tnccl_host->fail(TUTTI_E_TIMEOUT, "%s on group '%s' is still under way on GPU %d", t->what, t->b->name,
                            t->b->device);
}

tutti_status tnccl_ticket_wait(tutti_ticket *t, int64_t deadline_ns)
{
    return tnccl_await(t->b, deadline_ns, look_at_ticket, still_under_way, t);
}

void tnccl_ticket_release(tutti_ticket *t)
{
    tnccl_backend *b = t->b;
    const int      device = tnccl_enter(b);
    bool           gone;

    pthread_mutex_lock(&b->lock);
    look(t);
    gone = t->state != TNCCL_BEGUN;
    t->released = true;
    if (gone)
        put_back(t);
    pthread_mutex_unlock(&b->lock);
    if (gone)
        tnccl_drop(b);
    tnccl_leave(device);
}

const tutti_stream_ops tnccl_stream_ops = {
    .size = sizeof(tutti_stream_ops),
    .mark = mark,
    .follow = follow,
    .test = test,
    .wait = tnccl_ticket_wait,
    .release = tnccl_ticket_release,
};

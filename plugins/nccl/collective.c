/* SPDX-License-Identifier: BSD-3-Clause
 *
 * collective.c - one call, from its turn to the device.
 *
 * How     The group's stream waits for the event that marks the caller's place, then is given the call, then an event that is its
 *         end. NCCL may need a while to take a call (connections are made at the first of a kind): the event comes after
 *         that, or it would stand before the call. A call without a ticket is waited for here. */
#include "nccl_backend.h"

#include <stdio.h>

/* Lock held, also on return, and released in between. */
static tutti_status begin(tnccl_backend *b, const tutti_call *call, tutti_ticket *t, const char *what, bool waits)
{
    cudaError_t  code = cudaSuccess;
    tutti_status st;

    if (b->status != TUTTI_OK)
        return tnccl_say(b);
    b->begun_seq = call->seq;
    snprintf(b->begun, sizeof b->begun, "%s", what);
    if (waits)
        code = tnccl.cudaStreamWaitEvent(b->stream, t->before, 0);
    if (code != cudaSuccess) {
        tnccl_fail_cuda(code, what, b->name);
        tnccl_finish(b, TUTTI_E_BACKEND, tnccl_host->last_error());
        return tnccl_say(b);
    }
    st = tnccl_settle(b, tnccl_move(b, call), call->deadline_ns);
    return st == TUTTI_OK ? tnccl_ticket_begin(t, call, what) : st;
}

static tutti_status run_and_wait(tnccl_backend *b, const tutti_call *call, const char *what)
{
    tutti_ticket *t = NULL;
    tutti_status  st;

    pthread_mutex_lock(&b->lock);
    st = tnccl_ticket_new(b, &t);
    if (st == TUTTI_OK)
        st = begin(b, call, t, what, false);
    pthread_mutex_unlock(&b->lock);
    if (st == TUTTI_OK)
        st = tnccl_ticket_wait(t, INT64_MAX); /* the watchdog has its deadline */
    if (t != NULL)
        tnccl_ticket_release(t);
    return st;
}

tutti_status tnccl_run(tutti_backend *backend, const tutti_call *call)
{
    tnccl_backend *b = (tnccl_backend *)backend;
    char           what[TNCCL_WHAT];
    tutti_status   st = tnccl_check_call(b, call);
    int            device;

    if (st != TUTTI_OK)
        return st;
    tnccl_describe(call, what);
    device = tnccl_enter(b);
    if (call->ticket == NULL) {
        st = run_and_wait(b, call, what);
    } else {
        pthread_mutex_lock(&b->lock);
        st = begin(b, call, call->ticket, what, true);
        pthread_mutex_unlock(&b->lock);
    }
    tnccl_leave(device);
    return st;
}

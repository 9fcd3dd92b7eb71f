/* SPDX-License-Identifier: BSD-3-Clause
 *
 * message.c - messages as the library sees them.
 *
 * How      A message goes into its lane (lane.c), behind what the caller's stream had been given. Whoever waits asks the lanes to go on,
 *          and so does the watchdog. What is waited for is the device: memory that came may be used at once, anywhere.
 * Not      Tags other than 0, and receives of any source: NCCL takes messages of two ranks in their order. */
#include "nccl_backend.h"

#include <stdlib.h>

static tutti_status check_message(const tnccl_backend *b, const tutti_message *m)
{
    if (m->device != TUTTI_CUDA)
        return tnccl_host->fail(TUTTI_E_UNSUPPORTED, "group '%s': backend 'nccl' takes memory of GPUs only\n"
                                                     "  next: name a backend for the host, too, as \"cpu:native,cuda:nccl\"", b->name);
    if (m->peer < 0)
        return tnccl_host->fail(TUTTI_E_UNSUPPORTED, "group '%s': NCCL receives from a rank that is named, not from any\n"
                                                     "  next: say from whom", b->name);
    if (m->tag != 0)
        return tnccl_host->fail(TUTTI_E_UNSUPPORTED, "group '%s': NCCL has no tags, and tag %d was given\n"
                                                     "  next: take 0, and receive in the order of sending", b->name, m->tag);
    if (m->device_index != b->device)
        return tnccl_host->fail(TUTTI_E_ARG, "group '%s' works on GPU %d, and a buffer is of GPU %d\n"
                                             "  next: call cudaSetDevice() before the group is made", b->name, b->device,
                                m->device_index);
    return TUTTI_OK;
}

/* Without the group's hold on it. */
static void destroy_request(tutti_request *r)
{
    if (r->before != NULL)
        tnccl.cudaEventDestroy(r->before);
    if (r->after != NULL)
        tnccl.cudaEventDestroy(r->after);
    free(r);
}

/* The group is held by whoever has the lock, so this is not its end. */
void tnccl_request_free(tutti_request *r)
{
    atomic_fetch_sub_explicit(&r->b->refs, 1, memory_order_relaxed);
    destroy_request(r);
}

static tutti_status make_request(tnccl_backend *b, const tutti_message *m, tutti_request **request_out)
{
    tutti_request *r = calloc(1, sizeof *r);
    cudaError_t    code;

    if (r == NULL)
        return tnccl_host->fail(TUTTI_E_NOMEM, "group '%s': no memory for a message", b->name);
    code = tnccl.cudaEventCreateWithFlags(&r->before, cudaEventDisableTiming);
    if (code == cudaSuccess)
        code = tnccl.cudaEventCreateWithFlags(&r->after, cudaEventDisableTiming);
    if (code == cudaSuccess)
        code = tnccl.cudaEventRecord(r->before, (cudaStream_t)m->stream);
    if (code != cudaSuccess) {
        destroy_request(r);
        return tnccl_fail_cuda(code, m->is_send ? "send" : "recv", b->name);
    }
    r->b = b;
    r->data = m->data;
    r->bytes = (size_t)m->count * tnccl_host->dtype_size(m->dtype);
    *request_out = r;
    return TUTTI_OK;
}

/* Lock held. */
static tutti_status add(tnccl_backend *b, const tutti_message *m, tutti_request *r)
{
    tnccl_lane  *lane = NULL;
    tutti_status st = b->status != TUTTI_OK ? tnccl_say(b) : tnccl_lane_of(b, m->peer, m->is_send, &lane);

    if (st != TUTTI_OK)
        return st;
    tnccl_hold(b);
    tnccl_lane_add(lane, r);
    return TUTTI_OK;
}

tutti_status tnccl_post_all(tutti_backend *backend, const tutti_message *messages, int n, tutti_request **requests_out,
                            int *n_out)
{
    tnccl_backend *b = (tnccl_backend *)backend;
    const int      device = tnccl_enter(b);
    tutti_status   st = TUTTI_OK;
    int            i;

    pthread_mutex_lock(&b->lock);
    for (i = 0; i < n; i++) {
        st = check_message(b, &messages[i]);
        if (st == TUTTI_OK)
            st = make_request(b, &messages[i], &requests_out[i]);
        if (st != TUTTI_OK)
            break;
        st = add(b, &messages[i], requests_out[i]);
        if (st != TUTTI_OK) {
            destroy_request(requests_out[i]);
            break;
        }
    }
    tnccl_lanes_advance(b); /* all of a lane together */
    pthread_mutex_unlock(&b->lock);
    tnccl_news(b);
    tnccl_leave(device);
    *n_out = i;
    return st;
}

tutti_status tnccl_post(tutti_backend *backend, const tutti_message *message, tutti_request **request_out)
{
    int n = 0;

    return tnccl_post_all(backend, message, 1, request_out, &n);
}

static bool look(tutti_request *r)
{
    if (!r->ended)
        tnccl_lanes_advance(r->b);
    return r->ended;
}

static bool look_at_request(void *what, tutti_status *status_out)
{
    tutti_request *r = what;
    const bool     ended = look(r);

    *status_out = r->status;
    return ended;
}

static tutti_status still_waiting(const void *what)
{
    const tutti_request *r = what;
    const int            peer = r->b->global_ranks[tnccl_lane_peer(r->lane)];

    if (tnccl_lane_sends(r->lane))
        return tnccl_host->fail(TUTTI_E_TIMEOUT, "rank %d has not taken the message", peer);
    return tnccl_host->fail(TUTTI_E_TIMEOUT, "rank %d has not sent a message", peer);
}

tutti_status tnccl_request_wait(tutti_request *r, int64_t deadline_ns)
{
    return tnccl_await(r->b, deadline_ns, look_at_request, still_waiting, r);
}

bool tnccl_request_test(tutti_request *r)
{
    tnccl_backend *b = r->b;
    const int      device = tnccl_enter(b);
    bool           ended;

    pthread_mutex_lock(&b->lock);
    ended = look(r);
    pthread_mutex_unlock(&b->lock);
    tnccl_leave(device);
    return ended;
}

int tnccl_request_source(const tutti_request *r)
{
    tnccl_backend *b = r->b;
    int            source;

    pthread_mutex_lock(&b->lock);
    source = r->ended && r->status == TUTTI_OK && !tnccl_lane_sends(r->lane) ? tnccl_lane_peer(r->lane) : -1;
    pthread_mutex_unlock(&b->lock);
    return source;
}

void tnccl_request_release(tutti_request *r)
{
    tnccl_backend *b = r->b;
    const int      device = tnccl_enter(b);
    bool           ended;

    pthread_mutex_lock(&b->lock);
    ended = r->ended;
    r->released = true;
    pthread_mutex_unlock(&b->lock);
    if (ended) {
        destroy_request(r);
        tnccl_drop(b);
    }
    tnccl_leave(device);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * window_serve.c - one-sided access: what other members do to this one, waiting for signals, the end.
 *
 * How     Frames on the window plane are served by whoever drives the messenger: a thread that waits for
 *         something else, or the messenger's own, which drives all the time while there is a window with members
 *         on other hosts. A put's payload goes from the socket to its place. The answer to a get is a copy, made
 *         when the request is served, so that no later call has to wait until it is sent.
 * Waits   A request for a signal stands in its window's list; each turn compares the counters of those who are
 *         waited for with what was taken. The counter of a peer on another host is added to by this member itself.
 * Fails   A frame for a window that is not there, from somebody who is no member, or with an offset or length
 *         outside of the window, is nonsense: the connection it came on is lost, with these words, and so is the
 *         peer. Frames of a group that has failed never come here, they are dropped (lane.c). */
#include "transport/window_core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

enum { INSIDE_MS = 30000 }; /* copies are over before: a counter that still says otherwise was scribbled on */

/* ---- frames ---------------------------------------------------------------------------------------- */

static tti_window *find_window(const tti_messenger *m, const tti_frame *frame)
{
    tti_window *w = m->windows;

    while (w != NULL && (w->group != frame->group || (int32_t)w->id != frame->tag))
        w = w->next;
    return w;
}

static bool nonsense(const tti_lane *lane, const char *what, tti_cause *why)
{
    const tti_frame *frame = &lane->frame;

    tti_cause_set(why, TUTTI_E_PEER,
                  "rank %d (%s) %s: verb %d on window %d of group %u, offset %llu, %llu bytes", lane->peer, lane->where,
                  what, (int)frame->dtype, frame->tag, frame->group, (unsigned long long)frame->word,
                  (unsigned long long)(frame->dtype == TTI_VERB_GET ? frame->reserved : frame->bytes));
    return false;
}

static bool is_inside(const tti_window *w, uint64_t offset, uint64_t bytes)
{
    return offset <= w->bytes && bytes <= w->bytes - offset;
}

static bool check_frame(const tti_window *w, const tti_lane *lane, tti_cause *why)
{
    const tti_frame *frame = &lane->frame;

    if (w == NULL || !w->peers[lane->peer].member)
        return nonsense(lane, "reaches for a window that it has no part in", why);
    switch (frame->dtype) {
    case TTI_VERB_PUT:
        return is_inside(w, frame->word, frame->bytes) || nonsense(lane, "writes outside of a window", why);
    case TTI_VERB_GET:
        return (frame->bytes == 0 && is_inside(w, frame->word, frame->reserved)) ||
               nonsense(lane, "reads outside of a window", why);
    case TTI_VERB_SIGNAL:
    case TTI_VERB_FLUSH: return frame->bytes == 0 || nonsense(lane, "sends a payload with a signal", why);
    default: return nonsense(lane, "asks for something unknown", why);
    }
}

/* An answer has gone, or never will. */
static void end_answer(void *arg)
{
    const tti_request *request = arg;

    tti_let_go(request->held, sizeof *request + request->parcel.bytes);
}

/* Memory for an answer, with a copy; NULL: there is none, or it must not be. */
static tti_request *make_answer(tti_messenger *m, const tti_lane *lane, size_t bytes, tti_cause *why)
{
    tti_request *request = NULL;
    char         what[64];

    snprintf(what, sizeof what, "%zu bytes that it gets from a window", bytes);
    if (!tti_hold(&m->mailbox.held, lane->peer, sizeof *request + bytes, what, why))
        return NULL;
    request = calloc(1, sizeof *request);
    if (request != NULL && (request->copy = malloc(bytes + 1)) != NULL)
        return request;
    free(request);
    tti_let_go(&m->mailbox.held, sizeof *request + bytes);
    tti_cause_set(why, TUTTI_E_NOMEM, "no memory for %s, rank %d", what, lane->peer);
    return NULL;
}

/* A send of the messenger's own: its data is a copy, and nobody waits for it. */
static bool answer(tti_messenger *m, tti_lane *lane, const tti_window *w, tti_cause *why)
{
    const size_t bytes = lane->frame.dtype == TTI_VERB_GET ? lane->frame.reserved : 0;
    tti_request *request = make_answer(m, lane, bytes, why);

    if (request == NULL)
        return false;
    if (bytes > 0)
        memcpy(request->copy, w->data + lane->frame.word, bytes);
    request->is_send = true;
    request->under_way = &m->under_way;
    request->held = &m->mailbox.held;
    request->on_end = end_answer;
    request->on_end_ctx = request;
    request->channel = (tti_channel){ .group = w->group, .plane = TTI_PLANE_REPLY };
    request->parcel = (tti_parcel){ .peer = lane->peer, .tag = (int)w->id, .bytes = bytes };
    request->frame = (tti_frame){ .magic = TTI_FRAME_MAGIC, .version = TTI_FRAME_VERSION,
                                  .size = sizeof(tti_frame), .plane = TTI_PLANE_REPLY, .group = w->group,
                                  .tag = (int32_t)w->id, .bytes = bytes };
    atomic_init(&request->refs, 1);
    atomic_init(&request->ended, false);
    m->under_way++;
    tti_request_append(&lane->queue, request);
    return true;
}

bool tti_window_take_frame(tti_messenger *m, tti_lane *lane, tti_cause *why)
{
    tti_window *w = find_window(m, &lane->frame);

    if (!check_frame(w, lane, why))
        return false;
    if (lane->frame.dtype == TTI_VERB_GET || lane->frame.dtype == TTI_VERB_FLUSH)
        return answer(m, lane, w, why);
    if (lane->frame.dtype == TTI_VERB_SIGNAL)
        atomic_fetch_add(&w->control->signals[lane->peer].sent, 1);
    else if (!w->closed)
        lane->place = w->data + lane->frame.word;
    return true;
}

/* ---- signals --------------------------------------------------------------------------------------- */

static bool take_signal(tti_window *w, int peer)
{
    if (atomic_load(&w->control->signals[peer].sent) == w->taken[peer])
        return false;
    w->taken[peer]++;
    return true;
}

static bool look(tti_window *w)
{
    tti_request *request, *next;
    bool         any = false;

    for (request = w->waits.first; request != NULL; request = next) {
        next = request->next;
        if (!take_signal(w, request->parcel.peer))
            continue;
        tti_request_remove(&w->waits, request);
        tti_request_end(request, NULL);
        any = true;
    }
    return any;
}

bool tti_windows_look(tti_messenger *m)
{
    tti_window *w;
    bool        any = false;

    for (w = m->windows; w != NULL; w = w->next)
        any = look(w) || any;
    return any;
}

void tti_windows_lose(tti_messenger *m, int peer, const tti_cause *why)
{
    tti_window *w;

    tti_windows_look(m); /* what it sent before it went still counts */
    for (w = m->windows; w != NULL; w = w->next)
        tti_end_list(m, &w->waits, peer, why);
}

/* ---- the end --------------------------------------------------------------------------------------- */

/* Nobody reaches the memory any more when this returns. Those who are inside only copy. */
static void close_part(tti_window *w, bool agreed, const tti_cause *why)
{
    tti_messenger *m = w->m;
    const int64_t  until_ns = tti_deadline(m->port, INSIDE_MS, 0);
    int            i;

    tti_end_list(m, &w->waits, -1, why);
    if (w->closed)
        return;
    w->closed = true;
    atomic_store(&w->control->closed, 1);
    while (atomic_load(&w->control->inside) != 0 && tti_port_now(m->port) < until_ns)
        m->port->ops->yield(m->port);
    for (i = 0; i < m->n_ranks; i++)
        if (m->lanes[i].place != NULL && m->lanes[i].frame.group == w->group &&
            m->lanes[i].frame.tag == (int32_t)w->id)
            m->lanes[i].place = NULL; /* the rest goes nowhere */
    if (w->bytes > 0)
        tti_registered_take_back(w->data, agreed);
}

void tti_windows_finish(tti_messenger *m, uint32_t group, const tti_cause *why)
{
    tti_window *w;

    for (w = m->windows; w != NULL; w = w->next)
        if (w->group == group)
            close_part(w, false, why);
}

static bool never(void *region, uint64_t arg)
{
    (void)region;
    (void)arg;
    return false;
}

void tti_window_close(tti_window *w, bool agreed)
{
    static const tti_cause why = { .status = TUTTI_E_STATE, .words = "the window was closed while a signal was waited for" };
    tti_window           **at;
    tti_messenger         *m;
    tti_heap              *heap;

    if (w == NULL)
        return;
    m = w->m;
    tti_lock(&m->lock);
    agreed = agreed && !w->closed;
    close_part(w, agreed, &why);
    for (at = &m->windows; *at != w; at = &(*at)->next)
        continue;
    *at = w->next;
    m->n_serving -= w->serving;
    tti_unlock(&m->lock);
    heap = tti_mesh_heap(m->mesh, tti_mesh_rank(m->mesh));
    if (agreed)
        tti_heap_release(heap, w->control_at);
    else
        tti_heap_retire(heap, w->control_at, never, 0); /* somebody may still signal: it goes with the heap */
    tti_mutex_release(&w->order);
    free(w->taken);
    free(w->ranks);
    free(w->peers);
    free(w);
}

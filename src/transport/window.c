/* SPDX-License-Identifier: BSD-3-Clause
 *
 * window.c - one-sided access: opening, and what this member does to others.
 *
 * How     Inside a host the origin copies from and to the target's registered memory, which it has mapped, and
 *         counts a signal in the target's control block. Between hosts puts, signals, requests to get and to
 *         flush are frames in the stream to the target, which its messenger serves (window_serve.c) while the
 *         target computes; what comes back is a message on a plane of its own, in the order of the requests.
 * Order   Inside a host: copy, then add to the counter (sequentially consistent); the waiter loads the counter,
 *         then reads. Between hosts: a stream keeps its order, and the messenger writes the payload before it
 *         counts the signal behind it. So whoever takes a signal sees the puts that the same member made before it.
 * Sleep   A counter wakes nobody by itself: whoever adds to it looks at the target's `sleeping` afterwards, and
 *         rings its bell, as with rings (shm/publish.h has the argument).
 * Closed  The owner sets `closed` in its control block before it cuts its memory off. A thread of the owner's own
 *         process cannot be cut off by other pages, so it counts itself into `inside` before it looks at closed,
 *         and the owner waits until nobody is inside: one of the two sees the other's store. Both only copy there.
 * Trust   Offsets of peers become pointers by tti_heap_at() and tti_foreign_at() alone. What a peer writes into
 *         counters makes this member's waits end, no more. */
#include "transport/window_core.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "transport/connector.h"
#include "transport/mesh_links.h"

/* ---- opening --------------------------------------------------------------------------------------- */

static size_t control_bytes(const tti_messenger *m)
{
    return sizeof(tti_window_control) + (size_t)m->n_ranks * sizeof(tti_signals);
}

static tti_heap *own_heap(const tti_messenger *m)
{
    return tti_mesh_heap(m->mesh, tti_mesh_rank(m->mesh));
}

static void free_window(tti_window *w)
{
    tti_mutex_release(&w->order);
    free(w->taken);
    free(w->ranks);
    free(w->peers);
    free(w);
}

static tti_window *make_window(tti_messenger *m, const int *ranks, int n_ranks)
{
    tti_window *w = calloc(1, sizeof *w);
    int         i;

    if (w == NULL)
        return NULL;
    tti_mutex_init(&w->order);
    w->m = m;
    w->n_ranks = n_ranks;
    w->ranks = malloc((size_t)n_ranks * sizeof *ranks);
    w->taken = calloc((size_t)m->n_ranks, sizeof *w->taken);
    w->peers = calloc((size_t)m->n_ranks, sizeof *w->peers);
    if (w->ranks == NULL || w->taken == NULL || w->peers == NULL) {
        free_window(w);
        return NULL;
    }
    memcpy(w->ranks, ranks, (size_t)n_ranks * sizeof *ranks);
    for (i = 0; i < n_ranks; i++) {
        w->peers[ranks[i]].member = true;
        w->serving = w->serving || tti_mesh_heap(m->mesh, ranks[i]) == NULL;
    }
    return w;
}

/* The part that others reach: memory and counters. */
static tutti_status lend_part(tti_window *w, tti_window_card *card_out)
{
    tti_heap    *heap = own_heap(w->m);
    uint64_t     offset = 0;
    tutti_status st = w->bytes > 0 ? tti_registered_lend(w->data, w->bytes, &offset) : TUTTI_OK;

    if (st != TUTTI_OK)
        return st;
    st = tti_heap_alloc(heap, control_bytes(w->m), &w->control_at);
    if (st != TUTTI_OK) {
        if (w->bytes > 0)
            tti_registered_take_back(w->data, true);
        return st;
    }
    w->control = tti_heap_at(heap, w->control_at, control_bytes(w->m));
    *card_out = (tti_window_card){ .bytes = w->bytes, .offset = offset, .control = w->control_at };
    return TUTTI_OK;
}

enum { REASON_MS = 500 };

static tutti_status finished_words(tti_messenger *m, uint32_t group)
{
    const tti_cause *why = tti_mailbox_finished(&m->mailbox, group);

    return why != NULL ? tti_fail(why->status, "%s", why->words) : TUTTI_OK;
}

/* From here on frames for it are served, and the end of its group closes it. */
static tutti_status list_window(tti_window *w)
{
    tti_messenger *m = w->m;
    tutti_status   st;

    tti_lock(&m->lock);
    st = finished_words(m, w->group);
    if (st == TUTTI_OK) {
        w->next = m->windows;
        m->windows = w;
        m->n_serving += w->serving;
        tti_leave_to_others(m); /* the messenger's thread has something to serve */
    }
    tti_unlock(&m->lock);
    return st;
}

tutti_status tti_window_open(tti_messenger *m, uint32_t group, uint32_t id, const int *ranks, int n_ranks, void *data,
                             size_t bytes, tti_window_card *card_out, tti_window **window_out)
{
    tti_window  *w = make_window(m, ranks, n_ranks);
    tutti_status st;

    if (w == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a window of %d ranks", n_ranks);
    w->group = group;
    w->id = id;
    w->data = data;
    w->bytes = bytes;
    st = w->serving ? tti_messenger_need_thread(m) : TUTTI_OK;
    if (st == TUTTI_OK)
        st = lend_part(w, card_out);
    if (st != TUTTI_OK) {
        free_window(w);
        return st;
    }
    st = list_window(w);
    if (st != TUTTI_OK) {
        if (bytes > 0)
            tti_registered_take_back(data, true); /* nobody was told of it */
        tti_heap_release(own_heap(m), w->control_at);
        free_window(w);
        return st;
    }
    *window_out = w;
    return TUTTI_OK;
}

static tutti_status bad_card(const tti_window *w, int rank)
{
    return tti_fail(TUTTI_E_AUTH, "rank %d (%s) offers a window that is not inside of its memory", rank,
                    tti_mesh_whereabouts(w->m->mesh, rank));
}

static tutti_status attach_local(tti_window *w, int rank, const tti_window_card *card)
{
    tti_window_peer   *peer = &w->peers[rank];
    const tti_foreign *foreign = NULL;
    tutti_status       st;

    peer->control = tti_heap_at(tti_mesh_heap(w->m->mesh, rank), card->control, control_bytes(w->m));
    if (peer->control == NULL)
        return bad_card(w, rank);
    if (card->bytes == 0)
        return TUTTI_OK;
    st = tti_mesh_registered(w->m->mesh, rank, &foreign);
    if (st != TUTTI_OK)
        return st;
    peer->memory = tti_foreign_at(foreign, card->offset, card->bytes);
    peer->ours = tti_foreign_is_ours(foreign);
    return peer->memory != NULL ? TUTTI_OK : bad_card(w, rank);
}

tutti_status tti_window_attach(tti_window *w, const tti_window_card *cards)
{
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 0; i < w->n_ranks && st == TUTTI_OK; i++) {
        const int rank = w->ranks[i];

        w->peers[rank].bytes = cards[i].bytes;
        if (tti_mesh_heap(w->m->mesh, rank) != NULL)
            st = attach_local(w, rank, &cards[i]);
    }
    return st;
}

/* ---- inside a host --------------------------------------------------------------------------------- */

/* A peer closes its part when its group fails, and then tells why: the reason is on its way. */
static tutti_status hear_why(tti_window *w)
{
    tti_port     *port = w->m->port;
    const int64_t until_ns = tti_port_now(port) + REASON_MS * TTI_MS;
    tutti_status  st;

    while ((st = tti_messenger_heard(w->m, w->group)) == TUTTI_OK && tti_port_now(port) < until_ns)
        port->ops->sleep_until(port, tti_port_now(port) + TTI_MS);
    return st;
}

static tutti_status refuse(tti_window *w, int rank)
{
    const tutti_status st = hear_why(w);

    if (st != TUTTI_OK)
        return st;
    return tti_fail(TUTTI_E_PEER, "rank %d (%s) has closed its part of the window: the group has failed there, or was destroyed",
                    rank, tti_mesh_whereabouts(w->m->mesh, rank));
}

static void leave_peer(tti_window_peer *peer)
{
    if (peer->ours)
        atomic_fetch_sub(&peer->control->inside, 1);
}

static tutti_status enter_peer(tti_window *w, int rank)
{
    tti_window_peer *peer = &w->peers[rank];

    if (peer->ours)
        atomic_fetch_add(&peer->control->inside, 1);
    if (atomic_load(&peer->control->closed) == 0 && atomic_load(&w->control->closed) == 0)
        return TUTTI_OK;
    leave_peer(peer);
    return refuse(w, rank);
}

/* From data to the peer, or, with into not NULL, from the peer. */
static tutti_status copy_here(tti_window *w, int rank, uint64_t offset, const void *data, void *into, size_t bytes)
{
    tti_window_peer *peer = &w->peers[rank];
    tutti_status     st = enter_peer(w, rank);

    if (st != TUTTI_OK)
        return st;
    if (into != NULL)
        memmove(into, peer->memory + offset, bytes);
    else if (data != NULL)
        memmove(peer->memory + offset, data, bytes);
    leave_peer(peer);
    return TUTTI_OK;
}

static void wake(tti_window *w, int rank)
{
    tti_messenger *m = w->m;

    if (rank == tti_mesh_rank(m->mesh)) {
        tti_lock(&m->lock);
        if (tti_windows_look(m))
            tti_tell_waiters(m);
        tti_unlock(&m->lock);
    } else if (atomic_load(&tti_heap_head_of(tti_mesh_heap(m->mesh, rank))->sleeping) != 0) {
        m->port->ops->bell_ring(m->port, tti_mesh_bell_of(m->mesh, rank));
    }
}

/* ---- between hosts --------------------------------------------------------------------------------- */

typedef struct frame_plan {
    tti_window_verb verb;
    int             rank;
    uint64_t        offset;
    uint64_t        length; /* of a get */
    const void     *data;
    size_t          bytes;
} frame_plan;

static tti_channel replies(const tti_window *w)
{
    return (tti_channel){ .group = w->group, .plane = TTI_PLANE_REPLY };
}

static tutti_status send_frame(tti_window *w, const frame_plan *plan, tti_request **request_out)
{
    const tti_parcel parcel = { .peer = plan->rank, .tag = (int)w->id, .dtype = (uint8_t)plan->verb,
                                .word = plan->offset, .data = (void *)(uintptr_t)plan->data,
                                .bytes = plan->bytes };
    tti_request     *request = NULL;
    tutti_status     st = tti_request_make(w->m, replies(w), &parcel, true, &request);

    if (st != TUTTI_OK)
        return st;
    request->frame.plane = TTI_PLANE_WINDOW;
    request->frame.reserved = plan->length;
    tti_messenger_begin(w->m, request, tti_place);
    if (request_out != NULL)
        *request_out = request;
    else
        tti_request_release(request); /* it goes on */
    return TUTTI_OK;
}

/* Ask for something, and post the receive of the answer: answers are matched in the order of requests. */
static tutti_status ask(tti_window *w, const frame_plan *plan, void *data, size_t bytes, tti_request **request_out)
{
    const tti_parcel parcel = { .peer = plan->rank, .tag = (int)w->id, .data = data, .bytes = bytes };
    tti_request     *answer = NULL;
    tutti_status     st;

    tti_lock(&w->order);
    st = tti_messenger_recv(w->m, replies(w), &parcel, &answer);
    if (st == TUTTI_OK)
        st = send_frame(w, plan, NULL);
    tti_unlock(&w->order);
    if (st != TUTTI_OK) {
        tti_request_release(answer);
        return st;
    }
    *request_out = answer;
    return TUTTI_OK;
}

static bool is_here(const tti_window *w, int rank)
{
    return w->peers[rank].control != NULL;
}

/* ---- what this member does ------------------------------------------------------------------------- */

tutti_status tti_window_put(tti_window *w, int rank, uint64_t offset, const void *data, size_t bytes,
                            tti_request **request_out)
{
    const frame_plan plan = { .verb = TTI_VERB_PUT, .rank = rank, .offset = offset, .data = data, .bytes = bytes };
    tutti_status     st;

    *request_out = NULL;
    if (bytes == 0)
        return TUTTI_OK;
    if (is_here(w, rank))
        return copy_here(w, rank, offset, data, NULL, bytes);
    st = tti_messenger_need_thread(w->m);
    atomic_store_explicit(&w->peers[rank].used, true, memory_order_relaxed);
    return st == TUTTI_OK ? send_frame(w, &plan, request_out) : st;
}

tutti_status tti_window_get(tti_window *w, int rank, uint64_t offset, void *data, size_t bytes,
                            tti_request **request_out)
{
    const frame_plan plan = { .verb = TTI_VERB_GET, .rank = rank, .offset = offset, .length = bytes };
    tutti_status     st;

    *request_out = NULL;
    if (bytes == 0)
        return TUTTI_OK;
    if (is_here(w, rank))
        return copy_here(w, rank, offset, NULL, data, bytes);
    st = tti_messenger_need_thread(w->m);
    return st == TUTTI_OK ? ask(w, &plan, data, bytes, request_out) : st;
}

tutti_status tti_window_signal(tti_window *w, int rank)
{
    const frame_plan plan = { .verb = TTI_VERB_SIGNAL, .rank = rank };
    tutti_status     st;

    if (!is_here(w, rank)) {
        st = tti_messenger_need_thread(w->m);
        atomic_store_explicit(&w->peers[rank].used, true, memory_order_relaxed);
        return st == TUTTI_OK ? send_frame(w, &plan, NULL) : st;
    }
    st = enter_peer(w, rank);
    if (st != TUTTI_OK)
        return st;
    atomic_fetch_add(&w->peers[rank].control->signals[tti_mesh_rank(w->m->mesh)].sent, 1);
    leave_peer(&w->peers[rank]);
    wake(w, rank);
    return TUTTI_OK;
}

tutti_status tti_window_flush(tti_window *w, int rank, tti_request **request_out)
{
    const frame_plan plan = { .verb = TTI_VERB_FLUSH, .rank = rank };
    tutti_status     st;

    *request_out = NULL;
    if (!is_here(w, rank))
        return atomic_load_explicit(&w->peers[rank].used, memory_order_relaxed) ? ask(w, &plan, NULL, 0, request_out)
                                                                                : TUTTI_OK;
    st = enter_peer(w, rank);
    if (st != TUTTI_OK)
        return st;
    leave_peer(&w->peers[rank]);
    return rank == tti_mesh_rank(w->m->mesh) ? TUTTI_OK : tti_mesh_alive(w->m->mesh, rank);
}

static void place_wait(tti_messenger *m, tti_request *request)
{
    const tti_cause *finished = tti_mailbox_finished(&m->mailbox, request->channel.group);
    tti_lane        *lane = &m->lanes[request->parcel.peer];

    if (finished != NULL) {
        tti_request_end(request, finished);
        return;
    }
    tti_request_append(&request->window->waits, request);
    tti_windows_look(m);
    if (request->ended || lane->peer == tti_mesh_rank(m->mesh))
        return;
    if (lane->way != TTI_WAY_LOST) {
        tti_want_sender(m, request);
        return;
    }
    tti_request_remove(&request->window->waits, request);
    tti_request_end(request, &lane->gone);
}

tutti_status tti_window_wait_signal(tti_window *w, int rank, tti_request **request_out)
{
    const tti_parcel parcel = { .peer = rank, .tag = (int)w->id };
    tti_request     *request = NULL;
    tutti_status     st = tti_messenger_need_thread(w->m);

    if (st == TUTTI_OK)
        st = tti_request_make(w->m, replies(w), &parcel, false, &request);
    if (st != TUTTI_OK)
        return st;
    request->window = w;
    tti_messenger_begin(w->m, request, place_wait);
    *request_out = request;
    return TUTTI_OK;
}

bool tti_window_cancel(tti_window *w, tti_request *request)
{
    static const tti_cause why = { .status = TUTTI_E_ABORTED, .words = "nobody waits for the signal any more" };
    bool                   cancelled;

    tti_lock(&w->m->lock);
    cancelled = !tti_request_ended(request);
    if (cancelled) {
        tti_request_remove(&w->waits, request);
        tti_request_end(request, &why);
    }
    tti_unlock(&w->m->lock);
    return cancelled;
}

bool tti_window_is_direct(const tti_window *w, int rank)
{
    return is_here(w, rank);
}

void *tti_window_memory(tti_window *w, int rank)
{
    return w->peers[rank].memory;
}

size_t tti_window_bytes(const tti_window *w, int rank)
{
    return w->peers[rank].bytes;
}

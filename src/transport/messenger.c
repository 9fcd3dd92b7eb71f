/* SPDX-License-Identifier: BSD-3-Clause
 *
 * messenger.c - posting messages; the life of a messenger. Waiting is await.c's.
 *
 * Lock    One lock guards lanes, mailbox and every request that has not ended. It is held while bytes are
 *         copied, never while somebody sleeps.
 * Links   Those through shared memory are there from the start, TCP ones when a message needs them
 *         (connector.c): until then sends queue up in their lane.
 * End     A kernel delivers what a socket that is closed has taken, until its peer says another word: then it resets the stream,
 *         and throws away what waits to be sent, or to be sent again. A transport delivers only while this process
 *         drives it. So the end of a messenger waits up to DELIVER_MS for peers that have not taken what a transport sent to them, and
 *         as long for streams whose peer has not got all that was sent, or sent again, if it takes it, was heard of in the last
 *         HEARD_MS, and nothing was under way; unless a failure was told, for which it has lingered.
 * Loss    A broken link ends every request to its peer, and later ones, with the words of the first
 *         failure. A lane that is lost stays lost. */
#include "transport/window_core.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <tutti/private.h>
#include "transport/connector.h"
#include "transport/mesh_links.h"
#include "wire/addr.h"

enum { LINGER_MS = 70, DELIVER_MS = 2000, DELIVER_TOLD_MS = 20, HEARD_MS = 1000, ANSWER_LOOK_MS = 5 };

/* ---- posting --------------------------------------------------------------------------------------- */

tutti_status tti_request_make(tti_messenger *m, tti_channel channel, const tti_parcel *parcel, bool is_send,
                              tti_request **request_out)
{
    tti_request *request = malloc(sizeof *request);

    assert(parcel->peer < m->n_ranks);
    if (request == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a request");
    tti_request_init(request, m, channel, parcel, is_send);
    *request_out = request;
    return TUTTI_OK;
}

void tti_place(tti_messenger *m, tti_request *request)
{
    static const tti_cause deserted = { TUTTI_E_PEER, 0, 0, "every other rank of the group is gone", false };
    tti_lane              *lane = request->parcel.peer >= 0 ? &m->lanes[request->parcel.peer] : NULL;
    const tti_cause       *finished = tti_mailbox_finished(&m->mailbox, request->channel.group);

    if (finished != NULL) {
        tti_request_end(request, finished);
        return;
    }
    if (request->is_send && lane->way != TTI_WAY_LOST) {
        tti_request_append(&lane->queue, request);
        lane->n_sent += request->channel.plane == TTI_PLANE_P2P && request->sent == 0; /* what has begun was counted */
        tti_want_lane(m, lane, 0);
        return;
    }
    if (!request->is_send) {
        tti_mailbox_post(&m->mailbox, request); /* a message that was kept serves it even now */
        if (request->ended)
            return;
        if (lane != NULL ? lane->way != TTI_WAY_LOST : tti_somebody_is_there(m, request->channel.group)) {
            tti_want_sender(m, request);
            return;
        }
        tti_request_remove(&m->mailbox.posted, request);
    }
    tti_request_end(request, lane != NULL ? &lane->gone : &deserted);
}

tutti_status tti_need_driver(tti_messenger *m)
{
    return m->thread.running ? TUTTI_OK : tti_thread_start(&m->thread, "tutti-messages", tti_messenger_thread, m);
}

/* Point-to-point may have to move when nobody waits. */
tutti_status tti_messenger_need_thread(tti_messenger *m)
{
    tutti_status st;

    tti_lock(&m->lock);
    st = tti_need_driver(m);
    tti_unlock(&m->lock);
    return st;
}

void tti_messenger_begin(tti_messenger *m, tti_request *request, tti_placing *place)
{
    const int peer = request->window == NULL ? request->parcel.peer : -1;

    tti_lock(&m->lock);
    tti_count_call(m);
    m->under_way++;
    place(m, request); /* may end it, and drop the messenger's reference */
    if (!request->ended && peer >= 0)
        tti_messenger_turn_new(m, &m->lanes[peer], request);
    else if (!request->ended)
        (void)tti_messenger_turn(m, false);
    if (!request->ended)
        tti_leave_to_others(m);
    tti_unlock(&m->lock);
}

static tutti_status begin(tti_messenger *m, tti_channel channel, const tti_parcel *parcel, bool is_send,
                          tti_request **request_out)
{
    tti_request *request = NULL;
    tutti_status st = channel.plane == TTI_PLANE_P2P ? tti_messenger_need_thread(m) : TUTTI_OK;

    if (st == TUTTI_OK)
        st = tti_request_make(m, channel, parcel, is_send, &request);
    if (st != TUTTI_OK)
        return st;
    assert(parcel->peer != tti_mesh_rank(m->mesh));
    tti_messenger_begin(m, request, tti_place);
    *request_out = request;
    return TUTTI_OK;
}

tutti_status tti_messenger_send(tti_messenger *m, tti_channel channel, const tti_parcel *parcel,
                                tti_request **request_out)
{
    return begin(m, channel, parcel, true, request_out);
}

tutti_status tti_messenger_recv(tti_messenger *m, tti_channel channel, const tti_parcel *parcel,
                                tti_request **request_out)
{
    return begin(m, channel, parcel, false, request_out);
}

bool tti_messenger_at_once(tti_messenger *m, tti_channel channel, const tti_parcel *parcel, bool is_send)
{
    bool done;

    tti_lock(&m->lock);
    done = tti_post_at_once(m, channel, parcel, is_send);
    if (done)
        tti_count_call(m);
    tti_unlock(&m->lock);
    return done;
}

/* Several messages that are posted together. */
typedef struct posting {
    tti_messenger     *m;
    tti_channel        channel;
    tti_request_block *block; /* of their requests; NULL: none was needed yet */
    char              *next;  /* one, in it */
} posting;

/* A request in the block, which is made for n when the first is needed. */
static tutti_status take_request(posting *p, tti_post *post, int n)
{
    if (p->block == NULL) {
        p->block = malloc(sizeof *p->block + (size_t)n * sizeof *post->request);
        if (p->block == NULL)
            return tti_fail(TUTTI_E_NOMEM, "no memory for %d requests", n);
        atomic_init(&p->block->refs, 1);
        p->next = (char *)(p->block + 1);
    }
    post->request = (tti_request *)(void *)p->next;
    p->next += sizeof *post->request;
    tti_request_init(post->request, p->m, p->channel, &post->parcel, post->is_send);
    post->request->block = p->block;
    atomic_fetch_add_explicit(&p->block->refs, 1, memory_order_relaxed);
    return TUTTI_OK;
}

/* Begin the first of n; what can be moved is moved when all are begun. Lock held. */
static tutti_status post_first(posting *p, tti_post *post, int n)
{
    tti_messenger *m = p->m;
    tutti_status   st;

    post->request = NULL;
    tti_count_call(m);
    if (tti_post_at_once(m, p->channel, &post->parcel, post->is_send))
        return TUTTI_OK;
    st = tti_need_driver(m);
    if (st == TUTTI_OK)
        st = take_request(p, post, n);
    if (st != TUTTI_OK)
        return st;
    m->under_way++;
    tti_place(m, post->request); /* may end it; the caller's reference stays */
    return TUTTI_OK;
}

tutti_status tti_messenger_post_all(tti_messenger *m, tti_channel channel, tti_post *posts, int n, int *n_out)
{
    posting      p = { .m = m, .channel = channel };
    tutti_status st = TUTTI_OK;
    int          i;

    tti_lock(&m->lock);
    for (i = 0; i < n; i++) {
        st = post_first(&p, &posts[i], n - i);
        if (st != TUTTI_OK)
            break;
    }
    if (m->under_way > 0)
        (void)tti_messenger_turn(m, false);
    if (m->under_way > 0)
        tti_leave_to_others(m);
    tti_unlock(&m->lock);
    tti_request_block_drop(p.block);
    *n_out = i;
    return st;
}

/* ---- life ------------------------------------------------------------------------------------------ */

static tutti_status take_lanes(tti_messenger *m)
{
    int i;

    m->lanes = calloc((size_t)m->n_ranks, sizeof *m->lanes);
    m->poll_set = calloc(2 * (size_t)m->n_ranks + 1, sizeof *m->poll_set);
    if (m->lanes == NULL || m->poll_set == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the lanes to %d ranks", m->n_ranks);
    for (i = 0; i < m->n_ranks; i++) {
        m->lanes[i].peer = i;
        m->lanes[i].where = tti_mesh_whereabouts(m->mesh, i);
        m->lanes[i].link = tti_mesh_take_link(m->mesh, i);
        m->has_near = m->has_near || m->lanes[i].link != NULL;
        m->lanes[i].way = m->lanes[i].link != NULL         ? TTI_WAY_OPEN
                          : i == tti_mesh_rank(m->mesh) ? TTI_WAY_LOST
                                                        : TTI_WAY_NONE;
        tti_cause_set(&m->lanes[i].gone, TUTTI_E_PEER, "there is no link to rank %d", i);
    }
    return TUTTI_OK;
}

/* Messages of the library's own, which have tags that no program has, are parts of something else. */
void tti_messenger_note_message(tti_messenger *m, tti_channel channel, const tti_parcel *parcel, bool is_send)
{
    if (m->deed != NULL && parcel->tag >= 0)
        atomic_store_explicit(m->deed, tti_deed_of(is_send ? TTI_DEED_SEND : TTI_DEED_RECV, channel.group, (uint64_t)(parcel->peer + 1)),
                              memory_order_relaxed); /* the last of several threads' stands */
}

tutti_status tti_messenger_open(tti_mesh *mesh, tti_messenger **messenger_out)
{
    tti_messenger  *m = calloc(1, sizeof *m);
    const tti_door *door;
    tutti_status    st;

    if (m == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a messenger");
    m->mesh = mesh;
    m->port = tti_mesh_port(mesh);
    m->n_ranks = tti_mesh_size(mesh);
    m->bell = tti_mesh_bell(mesh);
    m->deed = tti_health_deed(tti_mesh_health(mesh));
    m->mailbox.m = m;
    m->mailbox.last_entered = -1;
    m->own_core = tti_mesh_has_own_cores(mesh);
    tti_mutex_init(&m->lock);
    tti_mutex_favour(&m->lock, m->port);
    st = tti_held_begin(&m->mailbox.held);
    if (st == TUTTI_OK)
        st = take_lanes(m);
    door = tti_mesh_door(mesh);
    if (st == TUTTI_OK && door != NULL && door->transport != NULL)
        st = tti_carrier_open(m->port, door->transport, tti_mesh_rank(mesh), m->n_ranks, &m->carrier);
    if (st == TUTTI_OK && door != NULL)
        st = tti_connector_open(m);
    if (st != TUTTI_OK) {
        tti_messenger_close(m);
        return st;
    }
    *messenger_out = m;
    return TUTTI_OK;
}

bool tti_messenger_connected(tti_messenger *m, int rank)
{
    bool connected;

    tti_lock(&m->lock);
    connected = m->lanes[rank].way == TTI_WAY_OPEN;
    tti_unlock(&m->lock);
    return connected;
}

int tti_messenger_connections(tti_messenger *m)
{
    int i, n = 0;

    tti_lock(&m->lock);
    for (i = 0; i < m->n_ranks; i++)
        n += m->lanes[i].link != NULL && m->lanes[i].link->ops->handle(m->lanes[i].link) != TTI_NO_HANDLE;
    tti_unlock(&m->lock);
    return n;
}

bool tti_messenger_unconnected(tti_messenger *m, int rank, char *text_out, size_t bytes)
{
    bool unconnected;

    if (rank == tti_mesh_rank(m->mesh) || tti_mesh_heap(m->mesh, rank) != NULL)
        return false;
    tti_lock(&m->lock);
    unconnected = m->lanes[rank].way < TTI_WAY_OPEN;
    tti_unlock(&m->lock);
    if (unconnected)
        tti_addr_format(tti_mesh_addr(m->mesh, rank), text_out, bytes);
    return unconnected;
}

const char *tti_messenger_describe(tti_messenger *m, int rank, char out[TTI_WAY_TEXT_MAX])
{
    tti_lock(&m->lock);
    (void)tti_lane_describe(&m->lanes[rank], out);
    tti_unlock(&m->lock);
    return out;
}

/* Everything that is still under way ends, wherever it stands. */
static void end_everything(tti_messenger *m)
{
    static const tti_cause why = { TUTTI_E_ABORTED, 0, 0,
                                   "the world was destroyed while a message was under way", true };
    int                    i;

    tti_end_list(m, &m->mailbox.posted, -1, &why);
    tti_windows_lose(m, -1, &why);
    for (i = 0; m->lanes != NULL && i < m->n_ranks; i++) {
        tti_lane *lane = &m->lanes[i];

        if (lane->link != NULL && lane->link->ops->retract != NULL)
            lane->link->ops->retract(lane->link);
        tti_end_list(m, &lane->queue, -1, &why);
        if (lane->into != NULL)
            tti_request_end(lane->into, &why);
        if (lane->kept != NULL && lane->kept->wanted != NULL)
            tti_request_end(lane->kept->wanted, &why);
        if (lane->link != NULL)
            lane->link->ops->close(lane->link);
    }
}

/* Whether a notice may not have arrived: it is queued, or its connection is being made, or it is in a socket whose peer
 * has not hung up. */
static bool is_telling(const tti_messenger *m)
{
    int i;

    for (i = 0; i < m->n_ranks; i++) {
        const tti_lane *lane = &m->lanes[i];

        if (lane->told && lane->way != TTI_WAY_LOST &&
            (lane->link == NULL || lane->queue.first != NULL || lane->link->ops->handle(lane->link) != TTI_NO_HANDLE))
            return true;
    }
    return false;
}

/* After a failure: a notice stands behind what was queued before it, and a socket that is closed with
 * unread bytes throws away what it has not sent. So stay a moment, taking in what comes, until those who
 * were told have hung up. Not longer than LINGER_MS from when they were told: the end of a world waits for nobody, and a
 * peer that hears nothing finds that this rank has left. */
static void linger(tti_messenger *m)
{
    int64_t until_ns;

    m->driving = true; /* the connector leaves the links alone that this sleeps on */
    while (m->told_ns != 0 && is_telling(m)) {
        until_ns = m->told_ns + LINGER_MS * TTI_MS;
        if (tti_port_now(m->port) >= until_ns)
            break;
        tti_messenger_sleep(m, until_ns);
    }
    m->driving = false;
}

static bool is_delivering(const tti_messenger *m)
{
    int i;

    for (i = 0; i < m->n_ranks; i++) {
        const tti_lane *lane = &m->lanes[i];

        if (lane->way != TTI_WAY_LOST && lane->link != NULL && lane->link->ops->is_delivering != NULL &&
            lane->link->ops->is_delivering(lane->link, HEARD_MS))
            return true;
    }
    return false;
}

/* After calls that have all ended well: what is on its way to a peer that waits for it, or was dropped there. That one may say so, to
 * a socket that had better be there, and what it has said by now is read: a socket that is closed with it resets the stream. Who has
 * left with something under way is in a hurry, and what it has sent is of no use. */
static void deliver(tti_messenger *m)
{
    const int64_t until_ns = tti_port_now(m->port) + DELIVER_MS * TTI_MS;

    if (m->cut_short || m->lanes == NULL)
        return;
    m->driving = true;
    while (m->told_ns == 0 && tti_port_now(m->port) < until_ns && is_delivering(m))
        tti_messenger_sleep(m, tti_port_now(m->port) + ANSWER_LOOK_MS * TTI_MS);
    m->driving = false;
}

void tti_messenger_close(tti_messenger *m)
{
    if (m == NULL)
        return;
    tti_lock(&m->lock);
    m->closing = true;
    tti_unlock(&m->lock);
    tti_event_signal(m->port, &m->todo);
    m->port->ops->bell_ring(m->port, m->bell);
    tti_thread_join(&m->thread);
    tti_lock(&m->lock);
    deliver(m);
    linger(m);
    tti_unlock(&m->lock);
    tti_connector_close(m->connector);
    tti_lock(&m->lock);
    end_everything(m);
    tti_unlock(&m->lock);
    tti_carrier_close(m->carrier, m->told_ns != 0 ? DELIVER_TOLD_MS : DELIVER_MS);
    tti_mailbox_release(&m->mailbox);
    tti_mutex_release(&m->lock);
    free(m->heard);
    free(m->circle);
    free(m->lanes);
    free(m->poll_set);
    free(m);
}

uint32_t tti_messenger_trip_us(tti_messenger *m, const int *ranks, int n)
{
    uint32_t longest = 0;
    int      i;

    tti_lock(&m->lock);
    for (i = 0; i < n; i++) {
        const tti_link *link = m->lanes[ranks[i]].link;
        const uint32_t  us = link != NULL && link->ops->trip_us != NULL ? link->ops->trip_us(link) : 0;

        longest = us > longest ? us : longest;
    }
    tti_unlock(&m->lock);
    return longest;
}

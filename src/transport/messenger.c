/* SPDX-License-Identifier: BSD-3-Clause
 *
 * messenger.c - posting messages, waiting for them, and who drives them meanwhile.
 *
 * Lock    One lock guards lanes, mailbox and every request that has not ended. It is held while bytes are
 *         copied, never while somebody sleeps.
 * Drive   Whoever waits for a request moves everybody's bytes: flush what is queued, drain what is
 *         wanted. Of several who wait one is the driver, who alone sleeps in poll; the others sleep on
 *         `changed`, which is signalled when a request has ended and when the driver leaves. When nobody
 *         waits and requests are under way, the messenger's own thread drives; it is made with the first
 *         point-to-point request that does not end at once.
 * Sleep   Before it sleeps, the driver sets `sleeping` in its heap, turns once more over all lanes, and
 *         polls the bell and all sockets. Peers ring after moving a ring's word (shm/ring_link.c has the
 *         argument); threads of this process ring after posting something that did not end at once. A
 *         sleep lasts at most SLICE_MS, after which peers on this host are asked for signs of life.
 * Loss    A broken link ends every request to its peer, and later ones, with the words of the first
 *         failure. A lane that is lost stays lost. */
#include "transport/messenger.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "base/thread.h"
#include "transport/lane.h"
#include "transport/mesh_links.h"

enum { SLICE_MS = 50, SPINS_SHARED_CORE = 16, SPINS_OWN_CORE = 1000 };

struct tti_messenger {
    tti_mesh   *mesh;
    tti_port   *port;
    int         n_ranks;
    int         spins;
    tti_handle  bell;
    tti_mutex   lock;
    tti_event   changed;
    tti_lane   *lanes; /* [n_ranks] */
    tti_mailbox mailbox;
    tti_poll   *poll_set; /* [n_ranks + 1]; the driver's */
    int         waiters;  /* threads inside tti_request_wait */
    int         under_way; /* requests that have not ended */
    bool        driving;
    bool        thread_drives; /* and leaves as soon as somebody waits */
    bool        closing;
    tti_thread  thread;
};

static bool turn(tti_messenger *m, bool all);

/* ---- requests that cannot end well ---------------------------------------------------------------- */

static void end_list_of(tti_messenger *m, tti_request_list *list, int peer, tutti_status status)
{
    tti_request *request, *next;

    for (request = list->first; request != NULL; request = next) {
        next = request->next;
        if (peer >= 0 && request->parcel.peer != peer)
            continue;
        tti_request_remove(list, request);
        tti_request_end(request, status);
    }
    tti_event_signal(m->port, &m->changed);
}

/* The thread's last error says why; it becomes the words of everything that waited for the peer. */
static void lose_lane(tti_messenger *m, tti_lane *lane)
{
    tti_kept *kept = lane->kept;

    snprintf(lane->gone, sizeof lane->gone, "%s", tutti_last_error());
    lane->link->ops->close(lane->link);
    lane->link = NULL;
    if (lane->into != NULL)
        tti_request_end(lane->into, TUTTI_E_PEER);
    if (kept != NULL) {
        if (kept->wanted != NULL)
            tti_request_end(kept->wanted, TUTTI_E_PEER);
        tti_kept_free(&m->mailbox, kept);
    }
    lane->into = NULL;
    lane->kept = NULL;
    end_list_of(m, &lane->queue, -1, TUTTI_E_PEER);
    end_list_of(m, &m->mailbox.posted, lane->peer, TUTTI_E_PEER);
}

/* A send that has begun must finish, or the stream is broken: its data moves to a copy that nobody waits
 * for, and the request ends. */
static void give_up_send(tti_messenger *m, tti_lane *lane, tti_request *request, tutti_status status)
{
    tti_request *rest = NULL;

    if (request->sent > 0) {
        rest = malloc(sizeof *rest);
        if (rest != NULL && (rest->copy = malloc(request->parcel.bytes + 1)) == NULL) {
            free(rest);
            rest = NULL;
        }
        if (rest == NULL) {
            lose_lane(m, lane);
            return;
        }
        memcpy(rest->copy, request->parcel.data, request->parcel.bytes);
        rest->is_send = true;
        rest->channel = request->channel;
        rest->parcel = request->parcel;
        rest->frame = request->frame;
        rest->sent = request->sent;
        rest->under_way = &m->under_way;
        atomic_init(&rest->refs, 1);
        atomic_init(&rest->ended, false);
    }
    tti_request_remove(&lane->queue, request);
    tti_request_end(request, status);
    if (rest != NULL) {
        m->under_way++;
        rest->next = lane->queue.first; /* only the first of a queue can have begun */
        rest->prev = NULL;
        if (lane->queue.first != NULL)
            lane->queue.first->prev = rest;
        else
            lane->queue.last = rest;
        lane->queue.first = rest;
    }
}

static void give_up_lane(tti_messenger *m, tti_lane *lane, uint32_t group, tutti_status status)
{
    tti_request *request, *next;

    for (request = lane->queue.first; request != NULL; request = next) {
        next = request->next;
        if (request->channel.group == group && request->copy == NULL)
            give_up_send(m, lane, request, status);
        if (lane->link == NULL)
            return;
    }
    if (lane->into != NULL && lane->into->channel.group == group) {
        tti_request_end(lane->into, status);
        lane->into = NULL; /* the rest of the body goes nowhere */
    }
    if (lane->kept != NULL && lane->kept->wanted != NULL && lane->kept->frame.group == group) {
        tti_request_end(lane->kept->wanted, status);
        lane->kept->wanted = NULL;
    }
}

static void give_up_posted(tti_messenger *m, uint32_t group, tutti_status status)
{
    tti_request *request, *next;

    for (request = m->mailbox.posted.first; request != NULL; request = next) {
        next = request->next;
        if (request->channel.group != group)
            continue;
        tti_request_remove(&m->mailbox.posted, request);
        tti_request_end(request, status);
    }
}

static void remember_dead(tti_mailbox *mailbox, uint32_t group, tutti_status status)
{
    tti_dead_group *grown;

    if (tti_mailbox_dead(mailbox, group) != NULL)
        return; /* the first cause stays */
    grown = realloc(mailbox->dead, (mailbox->n_dead + 1) * sizeof *grown);
    if (grown == NULL) {
        tti_log(TTI_LOG_WARN, "no memory to remember that group %u is finished", group);
        return;
    }
    mailbox->dead = grown;
    grown = &grown[mailbox->n_dead++];
    grown->group = group;
    grown->status = status;
    snprintf(grown->words, sizeof grown->words, "%s", tutti_last_error());
}

/* The thread's last error says why. */
static void finish_group(tti_messenger *m, uint32_t group, tutti_status status)
{
    int i;

    remember_dead(&m->mailbox, group, status);
    give_up_posted(m, group, status);
    for (i = 0; i < m->n_ranks; i++)
        if (m->lanes[i].link != NULL)
            give_up_lane(m, &m->lanes[i], group, status);
    tti_mailbox_drop_group(&m->mailbox, group);
    tti_event_signal(m->port, &m->changed);
}

void tti_messenger_abort(tti_messenger *m, uint32_t group)
{
    tti_lock(&m->lock);
    tti_fail(TUTTI_E_ABORTED, "the group was aborted or destroyed while a message was under way");
    finish_group(m, group, TUTTI_E_ABORTED);
    tti_unlock(&m->lock);
    m->port->ops->bell_ring(m->port, m->bell);
}

/* A send of the messenger's own: its data is a copy, and nobody waits for it. */
static void queue_notice(tti_messenger *m, tti_lane *lane, uint32_t group, tutti_status status,
                         const char *words)
{
    tti_request *request = calloc(1, sizeof *request);
    const size_t bytes = strnlen(words, TTI_NOTICE_MAX - 1);

    if (request == NULL || (request->copy = malloc(bytes + 1)) == NULL) {
        free(request);
        return;
    }
    memcpy(request->copy, words, bytes);
    request->is_send = true;
    request->under_way = &m->under_way;
    request->channel.group = group;
    request->parcel = (tti_parcel){ .peer = lane->peer, .bytes = bytes };
    request->frame = (tti_frame){ .magic = TTI_FRAME_MAGIC, .version = TTI_FRAME_VERSION,
                                  .size = sizeof(tti_frame), .plane = TTI_PLANE_NOTICE, .group = group,
                                  .tag = (int32_t)status, .bytes = bytes };
    atomic_init(&request->refs, 1);
    atomic_init(&request->ended, false);
    m->under_way++;
    tti_request_append(&lane->queue, request);
}

void tti_messenger_fail(tti_messenger *m, uint32_t group, tutti_status status, const int *peers,
                        int n_peers)
{
    char words[TTI_NOTICE_MAX];
    int  i;

    snprintf(words, sizeof words, "%s", tutti_last_error());
    tti_lock(&m->lock);
    if (tti_mailbox_dead(&m->mailbox, group) == NULL) { /* else the others know, or are told already */
        finish_group(m, group, status);
        for (i = 0; i < n_peers; i++)
            if (m->lanes[peers[i]].link != NULL)
                queue_notice(m, &m->lanes[peers[i]], group, status, words);
        turn(m, false);
    }
    tti_unlock(&m->lock);
    m->port->ops->bell_ring(m->port, m->bell);
    tti_fail(status, "%s", words);
}

/* ---- moving bytes ---------------------------------------------------------------------------------- */

static void act_on_notice(tti_messenger *m)
{
    const tti_dead_group notice = m->mailbox.notice;

    m->mailbox.has_notice = false;
    tti_fail(notice.status, "%s", notice.words);
    finish_group(m, notice.group, notice.status);
}

static tutti_status drain_lane(tti_messenger *m, tti_lane *lane, bool *moved)
{
    tutti_status st;

    for (;;) {
        st = tti_lane_drain(lane, &m->mailbox, m->mesh, moved);
        if (!m->mailbox.has_notice)
            return st;
        act_on_notice(m);
    }
}

/* Sending failed, because the peer is gone: what it said before it went, a notice above all, is still in
 * the link. The words of the send come back afterwards. */
static void hear_last_words(tti_messenger *m, tti_lane *lane, tutti_status *st)
{
    char words[TTI_REQUEST_WORDS_MAX];
    bool moved = false;

    snprintf(words, sizeof words, "%s", tutti_last_error());
    (void)drain_lane(m, lane, &moved);
    *st = tti_fail(*st, "%s", words);
}

static void turn_lane(tti_messenger *m, tti_lane *lane, bool drain, bool *moved)
{
    tutti_status st = TUTTI_OK;

    if (lane->link == NULL)
        return;
    if (lane->queue.first != NULL)
        st = tti_lane_flush(lane, moved);
    if (st == TUTTI_OK && drain)
        st = drain_lane(m, lane, moved);
    else if (st != TUTTI_OK)
        hear_last_words(m, lane, &st);
    if (st != TUTTI_OK)
        lose_lane(m, lane);
}

/* How many posted receives wait for each lane; any-source ones wait for all. */
static void mark_wanted(tti_messenger *m)
{
    tti_request *request;
    int          i, anybody = 0;

    for (i = 0; i < m->n_ranks; i++)
        m->lanes[i].wanted = m->lanes[i].into != NULL || m->lanes[i].kept != NULL;
    for (request = m->mailbox.posted.first; request != NULL; request = request->next)
        if (request->parcel.peer >= 0)
            m->lanes[request->parcel.peer].wanted++;
        else
            anybody++;
    for (i = 0; i < m->n_ranks; i++)
        m->lanes[i].wanted += anybody;
}

/* One turn over the lanes, all of them or those that something waits for. */
static bool turn(tti_messenger *m, bool all)
{
    bool moved = false;
    int  i;

    if (!all)
        mark_wanted(m);
    for (i = 0; i < m->n_ranks; i++)
        turn_lane(m, &m->lanes[i], all || m->lanes[i].wanted > 0, &moved);
    if (moved)
        tti_event_signal(m->port, &m->changed);
    return moved;
}

static void look_for_the_dead(tti_messenger *m)
{
    bool moved = false;
    int  i;

    for (i = 0; i < m->n_ranks; i++) {
        tti_lane *lane = &m->lanes[i];

        if (lane->link == NULL || tti_mesh_alive(m->mesh, i) == TUTTI_OK)
            continue;
        turn_lane(m, lane, true, &moved); /* what it sent before it went still counts */
        if (lane->link != NULL && tti_mesh_alive(m->mesh, i) != TUTTI_OK)
            lose_lane(m, lane);
    }
}

static int fill_poll_set(tti_messenger *m)
{
    int n = 1;
    int i;

    m->poll_set[0] = (tti_poll){ .handle = m->bell, .want = TTI_READ };
    for (i = 0; i < m->n_ranks; i++) {
        tti_lane  *lane = &m->lanes[i];
        tti_handle handle = lane->link != NULL ? lane->link->ops->handle(lane->link) : TTI_NO_HANDLE;

        if (handle != TTI_NO_HANDLE)
            m->poll_set[n++] = (tti_poll){
                .handle = handle,
                .want = (uint8_t)(TTI_READ | (lane->queue.first != NULL ? TTI_WRITE : 0)),
            };
    }
    return n;
}

/* Sleep until something may have moved. Called with the lock held by the driver; lets go meanwhile. */
static void sleep_a_little(tti_messenger *m, int64_t deadline_ns)
{
    const int64_t     slice = tti_port_now(m->port) + SLICE_MS * TTI_MS;
    _Atomic uint32_t *sleeping = &tti_heap_head_of(tti_mesh_heap(m->mesh, tti_mesh_rank(m->mesh)))->sleeping;
    int               n;

    atomic_store(sleeping, 1);
    if (!turn(m, true)) {
        n = fill_poll_set(m);
        tti_unlock(&m->lock);
        n = m->port->ops->poll(m->port, m->poll_set, n, deadline_ns < slice ? deadline_ns : slice);
        tti_lock(&m->lock);
        m->port->ops->bell_clear(m->port, m->bell);
        if (n == 0)
            look_for_the_dead(m);
        turn(m, true);
    }
    atomic_store_explicit(sleeping, 0, memory_order_release);
}

/* ---- waiting --------------------------------------------------------------------------------------- */

static tutti_status outcome(const tti_request *request)
{
    return request->status == TUTTI_OK ? TUTTI_OK : tti_fail(request->status, "%s", request->words);
}

static tutti_status timed_out(const tti_messenger *m, const tti_request *request)
{
    const int peer = request->parcel.peer;

    if (request->is_send)
        return tti_fail(TUTTI_E_TIMEOUT,
                        "sending %zu bytes with tag %d to rank %d (%s) is not finished: it does not receive",
                        request->parcel.bytes, request->parcel.tag, peer,
                        tti_mesh_whereabouts(m->mesh, peer));
    if (peer < 0)
        return tti_fail(TUTTI_E_TIMEOUT, "no message with tag %d came from any rank",
                        request->parcel.tag);
    return tti_fail(TUTTI_E_TIMEOUT, "no message with tag %d came from rank %d (%s)",
                    request->parcel.tag, peer, tti_mesh_whereabouts(m->mesh, peer));
}

static void pause_core(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* Turn until request has ended (NULL: nothing is under way) or the deadline. Lock held, and on return. */
static void drive(tti_messenger *m, const tti_request *request, int64_t deadline_ns)
{
    int spins = 0;

    m->driving = true;
    while (request != NULL ? !request->ended : m->under_way > 0 && m->waiters == 0 && !m->closing) {
        if (turn(m, false)) {
            spins = 0;
            continue;
        }
        if (tti_port_now(m->port) >= deadline_ns)
            break;
        if (request == NULL || spins++ >= m->spins) {
            sleep_a_little(m, deadline_ns);
            continue;
        }
        tti_unlock(&m->lock);
        if (m->spins == SPINS_OWN_CORE)
            pause_core();
        else
            m->port->ops->yield(m->port);
        tti_lock(&m->lock);
    }
    m->driving = false;
    tti_event_signal(m->port, &m->changed); /* somebody else may want to drive */
}

tutti_status tti_request_wait(tti_request *request, int64_t deadline_ns)
{
    tti_messenger *m = request->messenger;
    tutti_status   st = TUTTI_OK;

    if (tti_request_ended(request))
        return outcome(request);
    tti_lock(&m->lock);
    m->waiters++;
    while (!request->ended && tti_port_now(m->port) < deadline_ns) {
        uint32_t seen = tti_event_now(&m->changed);

        if (!m->driving) {
            drive(m, request, deadline_ns);
            continue;
        }
        if (m->thread_drives)
            m->port->ops->bell_ring(m->port, m->bell);
        tti_unlock(&m->lock);
        tti_event_wait(m->port, &m->changed, seen, deadline_ns);
        tti_lock(&m->lock);
    }
    m->waiters--;
    if (!request->ended)
        st = timed_out(m, request);
    tti_unlock(&m->lock);
    tti_event_signal(m->port, &m->changed);
    return st != TUTTI_OK ? st : outcome(request);
}

static void thread_main(void *arg)
{
    tti_messenger *m = arg;

    tti_lock(&m->lock);
    while (!m->closing) {
        uint32_t seen = tti_event_now(&m->changed);

        if (m->under_way > 0 && m->waiters == 0 && !m->driving) {
            m->thread_drives = true;
            drive(m, NULL, TTI_FOREVER);
            m->thread_drives = false;
            continue;
        }
        tti_unlock(&m->lock);
        tti_event_wait(m->port, &m->changed, seen, TTI_FOREVER);
        tti_lock(&m->lock);
    }
    tti_unlock(&m->lock);
}

/* ---- posting --------------------------------------------------------------------------------------- */

static tutti_status make_request(tti_messenger *m, tti_channel channel, const tti_parcel *parcel,
                                 bool is_send, tti_request **request_out)
{
    tti_request *request = calloc(1, sizeof *request);

    assert(parcel->peer < m->n_ranks && parcel->peer != tti_mesh_rank(m->mesh));
    if (request == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a request");
    request->messenger = m;
    request->under_way = &m->under_way;
    request->is_send = is_send;
    request->channel = channel;
    request->parcel = *parcel;
    atomic_init(&request->refs, 2);
    atomic_init(&request->ended, false);
    if (is_send)
        request->frame = (tti_frame){ .magic = TTI_FRAME_MAGIC, .version = TTI_FRAME_VERSION,
                                      .size = sizeof(tti_frame), .plane = (uint8_t)channel.plane,
                                      .dtype = parcel->dtype, .group = channel.group, .tag = parcel->tag,
                                      .word = parcel->word, .bytes = parcel->bytes };
    *request_out = request;
    return TUTTI_OK;
}

static bool everybody_is_gone(const tti_messenger *m)
{
    int i;

    for (i = 0; i < m->n_ranks; i++)
        if (m->lanes[i].link != NULL)
            return false;
    return true;
}

/* Queue it, or end it at once when it has no future. */
static void place(tti_messenger *m, tti_request *request)
{
    tti_lane             *lane = request->parcel.peer >= 0 ? &m->lanes[request->parcel.peer] : NULL;
    const tti_dead_group *dead = tti_mailbox_dead(&m->mailbox, request->channel.group);

    if (dead != NULL) {
        tti_fail(dead->status, "%s", dead->words);
        tti_request_end(request, dead->status);
        return;
    }
    if (request->is_send && lane->link != NULL) {
        tti_request_append(&lane->queue, request);
        return;
    }
    if (!request->is_send) {
        tti_mailbox_post(&m->mailbox, request);
        if (request->ended || (lane != NULL ? lane->link != NULL : !everybody_is_gone(m)))
            return;
        if (lane != NULL && lane->kept != NULL && lane->kept->wanted == request)
            return;
        tti_request_remove(&m->mailbox.posted, request);
    }
    tti_fail(TUTTI_E_PEER, "%s", lane != NULL ? lane->gone : "every other rank is gone");
    tti_request_end(request, TUTTI_E_PEER);
}

static tutti_status post(tti_messenger *m, tti_request *request, bool *kick_driver)
{
    tutti_status st = TUTTI_OK;
    bool         pending;

    /* The messenger's reference is dropped when the request ends, maybe inside place(). */
    tti_lock(&m->lock);
    m->under_way++;
    place(m, request);
    if (!request->ended && !m->driving)
        turn(m, false);
    pending = !request->ended;
    *kick_driver = pending && m->driving;
    if (pending && request->channel.plane == TTI_PLANE_P2P && !m->thread.running)
        st = tti_thread_start(&m->thread, "tutti-messages", thread_main, m);
    tti_unlock(&m->lock);
    return st;
}

static tutti_status begin(tti_messenger *m, tti_channel channel, const tti_parcel *parcel, bool is_send,
                          tti_request **request_out)
{
    tti_request *request = NULL;
    bool         kick_driver = false;
    tutti_status st = make_request(m, channel, parcel, is_send, &request);

    if (st != TUTTI_OK)
        return st;
    st = post(m, request, &kick_driver);
    if (st != TUTTI_OK) {
        tti_request_release(request); /* under way without a helper thread: ends with the group */
        return st;
    }
    tti_event_signal(m->port, &m->changed); /* the messenger's thread may have something to drive */
    if (kick_driver)
        m->port->ops->bell_ring(m->port, m->bell);
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

/* ---- life ------------------------------------------------------------------------------------------ */

static tutti_status take_lanes(tti_messenger *m)
{
    int i;

    m->lanes = calloc((size_t)m->n_ranks, sizeof *m->lanes);
    m->poll_set = calloc((size_t)m->n_ranks + 1, sizeof *m->poll_set);
    if (m->lanes == NULL || m->poll_set == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the lanes to %d ranks", m->n_ranks);
    for (i = 0; i < m->n_ranks; i++) {
        m->lanes[i].peer = i;
        m->lanes[i].where = tti_mesh_whereabouts(m->mesh, i);
        m->lanes[i].link = tti_mesh_take_link(m->mesh, i);
        snprintf(m->lanes[i].gone, sizeof m->lanes[i].gone, "there is no link to rank %d", i);
    }
    return TUTTI_OK;
}

tutti_status tti_messenger_open(tti_mesh *mesh, tti_messenger **messenger_out)
{
    tti_messenger *m = calloc(1, sizeof *m);
    tutti_status   st;

    if (m == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a messenger");
    m->mesh = mesh;
    m->port = tti_mesh_port(mesh);
    m->n_ranks = tti_mesh_size(mesh);
    m->bell = tti_mesh_bell(mesh);
    m->spins = m->n_ranks <= tti_usable_cores() ? SPINS_OWN_CORE : SPINS_SHARED_CORE;
    tti_mutex_init(&m->lock);
    st = take_lanes(m);
    if (st != TUTTI_OK) {
        tti_messenger_close(m);
        return st;
    }
    *messenger_out = m;
    return TUTTI_OK;
}

/* Everything that is still under way ends, wherever it stands. */
static void end_everything(tti_messenger *m)
{
    int i;

    tti_fail(TUTTI_E_ABORTED, "the world was destroyed while a message was under way");
    end_list_of(m, &m->mailbox.posted, -1, TUTTI_E_ABORTED);
    for (i = 0; m->lanes != NULL && i < m->n_ranks; i++) {
        tti_lane *lane = &m->lanes[i];

        end_list_of(m, &lane->queue, -1, TUTTI_E_ABORTED);
        if (lane->into != NULL)
            tti_request_end(lane->into, TUTTI_E_ABORTED);
        if (lane->kept != NULL && lane->kept->wanted != NULL)
            tti_request_end(lane->kept->wanted, TUTTI_E_ABORTED);
        if (lane->link != NULL)
            lane->link->ops->close(lane->link);
    }
}

void tti_messenger_close(tti_messenger *m)
{
    if (m == NULL)
        return;
    tti_lock(&m->lock);
    m->closing = true;
    tti_unlock(&m->lock);
    tti_event_signal(m->port, &m->changed);
    m->port->ops->bell_ring(m->port, m->bell);
    tti_thread_join(&m->thread);
    tti_lock(&m->lock);
    end_everything(m);
    tti_unlock(&m->lock);
    tti_mailbox_release(&m->mailbox);
    tti_mutex_release(&m->lock);
    free(m->lanes);
    free(m->poll_set);
    free(m);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * turn.c - moving bytes on all lanes, and sleeping when none moves.
 *
 * Sleep   Before it sleeps, the driver sets `sleeping` in its heap, turns once more over all lanes in shared memory,
 *         and polls the bell and all sockets; then it turns over those again, and over the sockets that are ready.
 *         Peers ring after moving a ring's word (shm/publish.h has the
 *         argument); threads of this process ring after posting something that did not end at once, and after taking in
 *         what the driver waits for, if it is asleep. A
 *         sleep lasts at most SLICE_MS; members of this host are asked for signs of life by the clock. */
#include "transport/window_core.h"

#include <stdio.h>
#include <tutti/private.h>

enum { SLICE_MS = 50, LOOK_MS = 50, CUT_MS = 2000, LAST_DRAINS = 4096, SOCKET_TURNS = 8 };

static void act_on_notice(tti_messenger *m)
{
    const tti_cause why = m->mailbox.notice;

    m->mailbox.has_notice = false;
    if (m->mailbox.notice_is_ours)
        tti_fail_group(m, m->mailbox.notice_group, &why);
    else
        tti_hear_failure(m, m->mailbox.notice_group, &why);
}

/* A notice may lose the lane that it came by: a send to there had begun, and there is no memory to finish it
 * without its buffer. */
static bool drain_lane(tti_messenger *m, tti_lane *lane, bool all, bool *moved, tti_cause *why)
{
    bool whole;

    for (;;) {
        whole = tti_lane_drain(lane, &m->mailbox, all, moved, why);
        if (!m->mailbox.has_notice)
            return whole;
        act_on_notice(m);
        if (lane->link == NULL)
            return true; /* it was seen to */
    }
}

void tti_messenger_drain_one(tti_messenger *m, tti_lane *lane)
{
    tti_cause why;
    bool      moved = false;
    const bool whole = tti_lane_drain(lane, &m->mailbox, true, &moved, &why);

    if (m->mailbox.has_notice)
        act_on_notice(m);
    if (!whole && lane->link != NULL)
        tti_lose_lane(m, lane, &why);
}

/* All that a peer said before it went, a notice above all: it is in the link, which is about to be closed. One drain need
 * not be all of it: it ends behind a large message, and a socket that was found empty says so once more, whatever has
 * come since. Bounded, because who cannot be sent to may go on sending. */
static void drain_last(tti_messenger *m, tti_lane *lane, bool *moved)
{
    tti_cause ignored;
    int       n, vain = 0; /* in a row */

    for (n = 0; n < LAST_DRAINS && vain < 2 && lane->link != NULL; n++) {
        bool       some = false;
        const bool whole = drain_lane(m, lane, true, &some, &ignored);

        *moved = *moved || some;
        vain = some ? 0 : vain + 1;
        if (!whole)
            return;
    }
}

typedef enum drain { DRAIN_NOTHING, DRAIN_WANTED, DRAIN_ALL } drain;

/* Which lanes a turn is about, and what of them. READY: all that can move without a vain system call. */
typedef enum reach { REACH_WANTED, REACH_ALL, REACH_READY } reach;

/* Flush and drain; a lane whose link is broken is lost. If sending failed, because the peer is gone, then
 * what it said before it went, a notice above all, is still in the link: it is drained first. */
static void turn_lane(tti_messenger *m, tti_lane *lane, drain how, bool *moved)
{
    tti_cause why;
    bool      whole = true;

    if (lane->link == NULL)
        return;
    if (lane->queue.first != NULL)
        whole = tti_lane_flush(lane, moved, &why);
    if (!whole)
        drain_last(m, lane, moved);
    else if (how != DRAIN_NOTHING)
        whole = drain_lane(m, lane, how == DRAIN_ALL, moved, &why);
    if (!whole && lane->link != NULL)
        tti_lose_lane(m, lane, &why);
}

/* How many posted receives wait for each lane; any-source ones wait for all. */
static void mark_wanted(tti_messenger *m)
{
    tti_request *request;
    int          i, anybody = 0;

    for (i = 0; i < m->n_ranks; i++)
        m->lanes[i].wanted = m->lanes[i].into != NULL || m->lanes[i].kept != NULL || m->n_serving > 0;
    for (request = m->mailbox.posted.first; request != NULL; request = request->next)
        if (request->parcel.peer >= 0)
            m->lanes[request->parcel.peer].wanted++;
        else
            anybody++;
    for (i = 0; i < m->n_ranks; i++)
        m->lanes[i].wanted += anybody;
}

static void note_moves(tti_messenger *m, bool moved)
{
    if (!moved)
        return;
    m->mourning.moves++;
    tti_tell_waiters(m);
}

/* Whether the end of a socket will tell all there is, behind what its peer sent before it died. */
static bool is_ending(const tti_messenger *m, const tti_lane *lane)
{
    return tti_lane_is_socket(lane) && tti_health_of(tti_mesh_health(m->mesh), lane->peer).life == TTI_LIFE_DEAD;
}

static void lose_cut(tti_messenger *m)
{
    tti_cause why;
    int       i;

    for (i = 0; i < m->n_ranks; i++)
        if (tti_lane_is_cut(&m->lanes[i], &why))
            tti_lose_lane(m, &m->lanes[i], &why);
}

void tti_messenger_look(tti_messenger *m, int64_t now_ns)
{
    tti_cause why = { .status = TUTTI_E_PEER };
    bool      moved = false;
    int       i;

    if (m->n_doubts > 0)
        tti_look_at_doubts(m, now_ns);
    if (now_ns - m->looked_ns < LOOK_MS * TTI_MS)
        return;
    m->looked_ns = now_ns;
    tti_messenger_mourn(m, now_ns);
    tti_messenger_miss(m);
    if (now_ns - m->cut_ns >= CUT_MS * TTI_MS) {
        m->cut_ns = now_ns;
        lose_cut(m);
    }
    for (i = 0; i < m->n_ranks; i++) {
        tti_lane *lane = &m->lanes[i];

        if (lane->link == NULL || is_ending(m, lane) || tti_mesh_is_alive(m->mesh, i, why.words, sizeof why.words))
            continue;
        turn_lane(m, lane, DRAIN_NOTHING, &moved);
        drain_last(m, lane, &moved); /* what it sent before it went still counts */
        if (lane->link != NULL)
            tti_lose_lane(m, lane, &why);
    }
    note_moves(m, moved);
}

bool tti_messenger_turn_one(tti_messenger *m, tti_lane *lane)
{
    bool moved = false;

    turn_lane(m, lane, DRAIN_WANTED, &moved);
    note_moves(m, moved);
    return moved;
}

/* Whether the last poll told something of a lane. */
static bool has_told(const tti_messenger *m, const tti_lane *lane)
{
    int i;

    for (i = lane->polled; i < lane->polled_end; i++)
        if (m->poll_set[i].got != 0)
            return true;
    return false;
}

/* A socket that is not in the poll set, before a poll or because its link is new, is tried if something is to be sent:
 * nobody may have done so. One that neither the last poll nor its own buffer has anything of is left alone: poll will tell. */
static bool is_ready(const tti_messenger *m, const tti_lane *lane)
{
    if (lane->link == NULL)
        return false;
    if (!tti_lane_is_socket(lane) || tti_lane_is_ahead(lane))
        return true;
    return lane->polled == lane->polled_end ? lane->queue.first != NULL : has_told(m, lane);
}

void tti_messenger_turn_new(tti_messenger *m, tti_lane *lane, const tti_request *request)
{
    bool moved = false;

    if (lane->link == NULL)
        return;
    if (!tti_lane_is_socket(lane) || tti_lane_is_ahead(lane) ||
        (!request->is_send && request->channel.plane != TTI_PLANE_COLLECTIVE))
        (void)tti_messenger_turn_one(m, lane);
    else if (request->is_send) /* who waits for it, or for something else, looks at what has come */
        turn_lane(m, lane, DRAIN_NOTHING, &moved);
    note_moves(m, moved);
}

static bool turn_all(tti_messenger *m, reach how)
{
    bool moved = false;
    int  i;

    if (how == REACH_WANTED)
        mark_wanted(m);
    for (i = 0; i < m->n_ranks; i++) {
        tti_lane  *lane = &m->lanes[i];
        const bool is_meant = how != REACH_READY || is_ready(m, lane);

        lane->polled = lane->polled_end = 0;
        if (is_meant)
            turn_lane(m, lane,
                      how != REACH_WANTED ? DRAIN_ALL
                      : lane->wanted > 0    ? DRAIN_WANTED
                                            : DRAIN_NOTHING,
                      &moved);
    }
    if (m->windows != NULL)
        moved = tti_windows_look(m) || moved;
    note_moves(m, moved);
    return moved;
}

bool tti_messenger_turn(tti_messenger *m, bool all)
{
    return turn_all(m, all ? REACH_ALL : REACH_WANTED);
}

void tti_messenger_turn_sockets(tti_messenger *m)
{
    bool moved = false, some = true;
    int  i, n;

    for (n = 0; n < SOCKET_TURNS && some; n++) {
        some = false;
        for (i = 0; i < m->n_ranks; i++)
            if (m->lanes[i].link != NULL && tti_lane_is_socket(&m->lanes[i]))
                turn_lane(m, &m->lanes[i], DRAIN_ALL, &some);
        moved = moved || some;
    }
    note_moves(m, moved);
}

static tti_handle out_handle(const tti_lane *lane)
{
    return (lane->link->ops->out_handle != NULL ? lane->link->ops->out_handle : lane->link->ops->handle)(lane->link);
}

/* A socket to be read from and one to be written to, which are the same as a rule: how many. */
static int poll_lane(const tti_lane *lane, tti_poll out[2])
{
    const tti_handle in = lane->link->ops->handle(lane->link);

    if (in == TTI_NO_HANDLE)
        return 0;
    out[0] = (tti_poll){ .handle = in, .want = TTI_READ };
    if (lane->queue.first == NULL)
        return 1;
    out[1] = (tti_poll){ .handle = out_handle(lane), .want = TTI_WRITE };
    if (out[1].handle != in)
        return 2;
    out[0].want |= TTI_WRITE;
    return 1;
}

static int fill_poll_set(tti_messenger *m)
{
    int n = 1;
    int i;

    m->poll_set[0] = (tti_poll){ .handle = m->bell, .want = TTI_READ };
    for (i = 0; i < m->n_ranks; i++) {
        tti_lane *lane = &m->lanes[i];

        lane->polled = n;
        n += lane->link != NULL ? poll_lane(lane, &m->poll_set[n]) : 0;
        lane->polled_end = n;
    }
    return n;
}

/* Called by the driver, who alone uses the poll set. */
void tti_messenger_sleep(tti_messenger *m, int64_t deadline_ns)
{
    int64_t           slice_ms = SLICE_MS, slice;
    tti_heap_head    *own = tti_heap_head_of(tti_mesh_heap(m->mesh, tti_mesh_rank(m->mesh)));
    _Atomic uint32_t *sleeping = &own->sleeping;
    int               n;

    atomic_store(sleeping, 1);
    if (own->fenced != 0 && m->has_near && !m->port->ops->fence_others(m->port))
        slice_ms = 1; /* the machine has come to refuse it: a wake-up may be lost */
    if (!turn_all(m, REACH_READY)) {
        n = fill_poll_set(m);
        slice = tti_port_now(m->port) + slice_ms * TTI_MS;
        m->asleep = true;
        tti_unlock(&m->lock);
        m->port->ops->poll(m->port, m->poll_set, n, deadline_ns < slice ? deadline_ns : slice);
        tti_lock(&m->lock);
        m->asleep = false;
        tti_close_parting(m);
        if (m->poll_set[0].got != 0)
            m->port->ops->bell_clear(m->port, m->bell);
        turn_all(m, REACH_READY);
    }
    atomic_store_explicit(sleeping, 0, memory_order_release);
    tti_messenger_look(m, tti_port_now(m->port));
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * await.c - waiting for messages, and who drives them meanwhile.
 *
 * Drive   Whoever waits for a request moves everybody's bytes: flush what is queued, drain what is
 *         wanted. Of several who wait one is the driver, who alone sleeps in poll; the others sleep on
 *         `changed`, which is signalled when a request has ended and when the driver leaves.
 * Spin    The driver first looks at the word in shared memory that its own message will change, without the lock,
 *         then at the lane of that message, then at all that are wanted; it reads the clock and looks for the dead
 *         once in such a round, the first time after some hundred looks. Ranks that share cores give theirs away,
 *         after a few glances without a pause between: what each look takes is taken from those who could make it
 *         come. A receive does so a few times even before it is a request. They do so more often in each round, where
 *         nothing else is under way that a turn over all lanes could move. A socket has no such word: a look is a system
 *         call, so the one that is waited for is looked at, the others now and then, and the core is given away
 *         between the looks, also where it is this rank's alone, which costs little then, and much where that is not
 *         true. Where cores are shared poll follows after a fifth of a millisecond: whoever sleeps before that is late by his
 *         waking up, which the sender of the message pays for. A driver whose send does not fit takes in whatever comes, asked for or not: its peer may be doing the
 *         same.
 * Company Where the core comes back late, as whoever had it meanwhile kept it for his slice of time (base/company.h), nobody
 *         gives it away for a while: a driver with a core of his own looks for as long as a quick answer takes, and all
 *         others sleep at once, to be woken by what comes, over sockets or from members of the own host.
 * Beside  A call beside what the program computes sleeps whenever nothing moves, and does not take the core when it wakes up: it
 *         comes when the program has had its turn, to find some hundred KiB at a time, where it would be woken for every few segments. What costs
 *         the program is less the bytes than how often its caches are taken from it. Links keep enough in the socket
 *         for the link to have something to do meanwhile (tcp_link.c).
 * Any     Who has many under way waits for one of them, whose lane is looked at first, or until the count of those that
 *         have ended is another than he saw. It changes after a request is marked, and both under the lock: so
 *         whoever reads the count, then looks at his requests, then waits, misses none.
 * Thread  When nobody waits and requests are under way, or windows have members on other hosts, the messenger's
 *         own thread drives; it is made with the first point-to-point request, such a window, or the first failure
 *         that could not be told at once, because its rank may never call again. Whoever posts usually waits soon:
 *         so it begins only when no call came for NAP_MS, naps while there are any, and then rests until a call
 *         leaves something under way. A call costs it no system call but the first after a rest. */
#include "transport/window_core.h"

#include <stdio.h>
#include <string.h>
#include <tutti/private.h>
#include "transport/mesh_links.h"
#include "wire/addr.h"

enum { UNWELL_TEXT_MAX = TTI_HEALTH_TEXT_MAX + 160 };

enum {
    LOOKS_OWN_CORE = 64,   /* between two rounds */
    GLANCES_SHARED_CORE = 16,
    YIELDS_AT_ONCE = 4, /* before there is a request */
    YIELDS_DOUBLE = 3, /* rounds in which their number does */
    SPIN_NS = 100 * 1000, /* own core: until sleeping, */
    SPIN_IN_COMPANY_NS = 20 * 1000, /* and beside somebody else, whose time it is */
    ROUNDS_SHARED_CORE = 8, /* of giving it away, and */
    YIELD_NS = 1000 * 1000,
    ROUNDS_OF_A_SOCKET = 8, /* of looking at that alone, */
    ROUNDS_OF_SEVERAL = 2,  /* and where more is under way */
    ROUNDS_SHARED_SOCKET = 4, /* of giving the core away, and */
    SOCKET_YIELD_NS = 200 * 1000, /* until sleeping: to be woken costs more than some looks */
    ROUNDS_OF_A_SEND = 4,  /* until a send that does not fit takes in everything */
    TURNS_TO_LOOK = 16,    /* while bytes move */
    NAP_MS = 1,
    TELL_MS = 100,
};

/* ---- words ----------------------------------------------------------------------------------------- */

static tutti_status outcome(const tti_request *request)
{
    return request->cause.status == TUTTI_OK ? TUTTI_OK
                                             : tti_fail(request->cause.status, "%s", request->cause.words);
}

/* Nothing was heard of the peer, not even that it is there. */
static tutti_status not_connected(const tti_messenger *m, int peer, const char *how)
{
    char text[TTI_ADDR_TEXT_MAX];

    return tti_fail(TUTTI_E_TIMEOUT,
                    "there is no connection yet to rank %d (%s)%s; it listens at %s\n"
                    "  next: let that port through between the hosts, or set TUTTI_PORT_RANGE to ports that are",
                    peer, tti_mesh_whereabouts(m->mesh, peer), how,
                    tti_addr_format(tti_mesh_addr(m->mesh, peer), text, sizeof text));
}

/* Tags below 0 are the library's own, and say nothing to a program. */
static const char *with_tag(int tag, char out[24])
{
    snprintf(out, 24, tag < 0 ? "" : " with tag %d", tag);
    return out;
}

/* ", which has been stopped by a signal for 3.2 s": what is known to be wrong with a peer. */
static const char *which_is(const tti_messenger *m, int peer, char out[TTI_HEALTH_TEXT_MAX + 16])
{
    char how[TTI_HEALTH_TEXT_MAX];

    tti_health_describe(tti_mesh_health(m->mesh), peer, how);
    snprintf(out, TTI_HEALTH_TEXT_MAX + 16, "%s%s", how[0] != '\0' ? ", which " : "", how);
    return out;
}

/* "; rank 2 (host 'n2', pid 40112) has been stopped by a signal for 3.2 s": the first of a group's members that is not well, if a
 * receive could have been from any of them. */
static const char *who_is_unwell(const tti_messenger *m, uint32_t group, char out[UNWELL_TEXT_MAX])
{
    const tti_known_group *known = tti_mailbox_group(&m->mailbox, group);
    const bool             told = known != NULL && known->n_ranks > 0;
    const int              n = told ? known->n_ranks : m->n_ranks;
    char                   how[TTI_HEALTH_TEXT_MAX] = "";
    int                    i;

    out[0] = '\0';
    for (i = 0; i < n && how[0] == '\0'; i++) {
        const int rank = told ? known->ranks[i] : i;

        if (tti_health_describe(tti_mesh_health(m->mesh), rank, how)[0] != '\0')
            snprintf(out, UNWELL_TEXT_MAX, "; rank %d (%s) %s", rank, tti_mesh_whereabouts(m->mesh, rank), how);
    }
    return out;
}

static tutti_status say_late(tti_messenger *m, const tti_request *request)
{
    const int peer = request->parcel.peer;
    char      tag[24], way[TTI_WAY_TEXT_MAX], how[TTI_HEALTH_TEXT_MAX + 16] = "", unwell[UNWELL_TEXT_MAX];
    char      instead[TTI_INSTEAD_TEXT_MAX] = "";

    if (peer >= 0) {
        (void)which_is(m, peer, how);
        (void)tti_waits_instead(m, peer, instead);
    }
    if (peer >= 0 && m->lanes[peer].way < TTI_WAY_OPEN)
        return not_connected(m, peer, how);
    if (request->window != NULL || request->channel.plane == TTI_PLANE_REPLY)
        return tti_fail(TUTTI_E_TIMEOUT, "%s rank %d (%s) %s window %d%s",
                        request->window != NULL ? "no signal came from" : "nothing was heard of", peer,
                        tti_mesh_whereabouts(m->mesh, peer),
                        request->window != NULL ? "in" : "about what was asked or sent to its", request->parcel.tag, how);
    if (request->is_send)
        return tti_fail(TUTTI_E_TIMEOUT,
                        "sending %zu bytes%s to rank %d (%s)%s is not finished: it does not receive%s%s",
                        request->parcel.bytes, with_tag(request->parcel.tag, tag), peer,
                        tti_mesh_whereabouts(m->mesh, peer), how, instead, tti_lane_describe(&m->lanes[peer], way));
    if (peer < 0)
        return tti_fail(TUTTI_E_TIMEOUT, "no message%s came from any rank%s", with_tag(request->parcel.tag, tag),
                        who_is_unwell(m, request->channel.group, unwell));
    return tti_fail(TUTTI_E_TIMEOUT, "no message%s came from rank %d (%s)%s%s%s",
                    with_tag(request->parcel.tag, tag), peer, tti_mesh_whereabouts(m->mesh, peer), how, instead,
                    tti_lane_describe(&m->lanes[peer], way));
}

/* The one without whom a message does not go on: its peer, or, of a receive from any rank, one of the group's; -1: none is
 * stopped. */
static int find_stopped(const tti_messenger *m, const tti_request *request)
{
    const tti_known_group *known = tti_mailbox_group(&m->mailbox, request->channel.group);
    const bool             told = known != NULL && known->n_ranks > 0;
    const int              n = told ? known->n_ranks : m->n_ranks;
    int                    i;

    for (i = 0; i < n; i++) {
        const int rank = told ? known->ranks[i] : i;

        if ((request->parcel.peer < 0 || request->parcel.peer == rank) && rank != tti_mesh_rank(m->mesh) &&
            tti_health_now(tti_mesh_health(m->mesh), rank).life == TTI_LIFE_STOPPED)
            return rank;
    }
    return -1;
}

/* With the step that lets it end, where that is known. */
static tutti_status timed_out(tti_messenger *m, const tti_request *request)
{
    const int    stopped = find_stopped(m, request);
    tutti_status st = say_late(m, request);
    char         words[TTI_WORDS_MAX];

    if (stopped < 0)
        return st;
    snprintf(words, sizeof words, "%.*s", (int)strcspn(tutti_last_error(), "\n"), tutti_last_error());
    return tti_fail(st, "%s\n  next: let rank %d (%s) go on: kill -CONT", words, stopped, tti_mesh_whereabouts(m->mesh, stopped));
}

/* ---- driving --------------------------------------------------------------------------------------- */

/* How long to wait. The clock is not read before it must be. */
typedef struct patience {
    int64_t timeout_ms; /* negative: for ever */
    int64_t began_ns;   /* 0: not begun */
    int64_t deadline_ns;
    bool     lies_down; /* sleep as soon as nothing moves: the core is wanted for something else */
    bool     tells; /* what is waited for, when that takes long */
    int64_t  told_ns; /* when it did last; 0: not yet */
    uint64_t number;  /* of what it told */
    bool     any; /* until any request has ended, since so many had */
    uint32_t seen;
} patience;

/* Whether what is waited for has come. */
static bool has_come(const tti_messenger *m, const tti_request *request, const patience *p)
{
    return request->ended || (p->any && atomic_load_explicit(&m->ended, memory_order_relaxed) != p->seen);
}

/* Whoever has not looked at the clock yet has all of its time. */
static int64_t deadline_of(const patience *p, tti_port *port)
{
    if (p->began_ns != 0)
        return p->deadline_ns;
    return p->timeout_ms < 0 ? TTI_FOREVER : tti_deadline(port, p->timeout_ms, -1);
}

static bool has_run_out(patience *p, tti_port *port, int64_t now_ns)
{
    if (p->began_ns == 0) {
        p->deadline_ns = deadline_of(p, port);
        p->began_ns = now_ns;
    }
    return now_ns >= p->deadline_ns;
}

/* Another thread may have taken in what the driver waits for, before its poll could see it. */
void tti_tell_waiters(tti_messenger *m)
{
    if (m->asleep && m->awaited != NULL && has_come(m, m->awaited, m->patience))
        m->port->ops->bell_ring(m->port, m->bell);
    if (m->sleepers > 0)
        tti_event_signal(m->port, &m->changed);
}

void tti_leave_to_others(tti_messenger *m)
{
    if (m->asleep)
        m->port->ops->bell_ring(m->port, m->bell);
    tti_tell_waiters(m);
    if (m->thread_rests)
        tti_event_signal(m->port, &m->todo);
}

/* Whether the messenger's thread is to drive. */
static bool needs_driving(const tti_messenger *m)
{
    return (m->under_way > 0 || m->n_serving > 0) && m->waiters == 0 && !m->closing;
}

/* The lane of what is waited for; NULL: it may be any. */
static tti_lane *lane_of(tti_messenger *m, const tti_request *request)
{
    return request->parcel.peer >= 0 && request->window == NULL ? &m->lanes[request->parcel.peer] : NULL;
}

/* Look at word until it is not what was seen, a few times: whether it changed. */
static bool changes(const _Atomic uint64_t *word, uint64_t seen, int looks)
{
    int i;

    for (i = 0; i < looks; i++) {
        if (word != NULL && atomic_load_explicit(word, memory_order_relaxed) != seen)
            return true;
        tti_pause();
    }
    return false;
}

/* The same without a pause between; NULL: there is nothing to be seen. */
static bool has_changed(const _Atomic uint64_t *word, uint64_t seen)
{
    int i;

    for (i = 0; i < GLANCES_SHARED_CORE && word != NULL; i++)
        if (atomic_load_explicit(word, memory_order_relaxed) != seen)
            return true;
    return false;
}

/* Give the core away until word is not what was seen, but at most so many times: how often that was. */
static int give_away(tti_port *port, const _Atomic uint64_t *word, uint64_t seen, int times)
{
    int i;

    for (i = 0; i < times && !has_changed(word, seen); i++)
        port->ops->yield(port);
    return i;
}

/* How often to do that before the next look at everything else, which is needed where more than this request is under
 * way; after so many rounds. Without a word there is nothing else to look at. */
static int times_to_yield(const tti_messenger *m, const _Atomic uint64_t *word, int rounds)
{
    if (word == NULL || m->under_way > 1 || m->n_serving > 0)
        return 1;
    return rounds < YIELDS_DOUBLE ? 2 << rounds : 2 << YIELDS_DOUBLE;
}

/* Let the peers work, without the lock, but look whether there is something to do. rounds: nothing was in as many. */
static void idle(tti_messenger *m, const tti_request *request, int rounds)
{
    tti_lane               *lane = lane_of(m, request);
    const tti_link         *link = lane != NULL ? lane->link : NULL;
    const _Atomic uint64_t *word = NULL;
    uint64_t                seen = 0;
    int64_t                 began_ns, ended_ns;
    int                     times;

    if (link != NULL && link->ops->watch != NULL)
        word = link->ops->watch(lane->link, request->is_send, &seen);
    if (m->own_core && (word != NULL || tti_company_is_here(&m->company, m->port))) {
        tti_unlock(&m->lock);
        (void)changes(word, seen, LOOKS_OWN_CORE);
        tti_lock(&m->lock);
        return;
    }
    times = times_to_yield(m, word, rounds);
    tti_unlock(&m->lock);
    began_ns = tti_port_now(m->port);
    times = give_away(m->port, word, seen, times);
    ended_ns = tti_port_now(m->port);
    tti_lock(&m->lock);
    (void)tti_company_gave(&m->company, times, began_ns, ended_ns);
}

/* A receive that takes long may be a mistake: the sender waits in a call for this rank. */
static void tell_receive(tti_messenger *m, const tti_request *request, patience *p, int64_t now_ns)
{
    if (p->told_ns == 0)
        p->told_ns = p->began_ns;
    if (now_ns - p->told_ns < TELL_MS * TTI_MS)
        return;
    p->told_ns = now_ns;
    p->number = tti_tell_receive(m, request, p->number);
}

static bool is_socket(const tti_lane *lane)
{
    return lane != NULL && lane->link != NULL && tti_lane_is_socket(lane);
}

/* Move the lane of what is waited for, or else all: whether anything moved. Looks at a socket are system calls, most of
 * which are for the one that is waited for. */
static bool move(tti_messenger *m, const tti_request *request, int rounds)
{
    const int rounds_alone = m->under_way > 2 ? ROUNDS_OF_SEVERAL : ROUNDS_OF_A_SOCKET;
    tti_lane *lane = lane_of(m, request);

    if (lane != NULL && tti_messenger_turn_one(m, lane))
        return true;
    if (lane != NULL && (rounds == 0 || (is_socket(lane) && rounds % rounds_alone != 0)))
        return false;
    return tti_messenger_turn(m, request->is_send && rounds >= ROUNDS_OF_A_SEND);
}

/* Whether to sleep in poll after so many rounds and ns in which nothing moved. */
static bool is_time_to_sleep(tti_messenger *m, const tti_request *request, int rounds, int64_t idle_ns)
{
    const bool in_company = tti_company_is_here(&m->company, m->port);

    if (m->own_core)
        return rounds >= 1 && idle_ns >= (in_company ? SPIN_IN_COMPANY_NS : SPIN_NS);
    if (in_company)
        return true;
    if (is_socket(lane_of(m, request)))
        return rounds >= ROUNDS_SHARED_SOCKET && idle_ns >= SOCKET_YIELD_NS;
    return rounds >= ROUNDS_SHARED_CORE && idle_ns >= YIELD_NS;
}

static void sleep_for(tti_messenger *m, const tti_request *request, const patience *p)
{
    m->awaited = request;
    m->patience = p;
    tti_messenger_sleep(m, p->deadline_ns);
    m->awaited = NULL;
}

/* Drive until request has ended: false, if patience has before. */
static bool drive_for(tti_messenger *m, const tti_request *request, patience *p)
{
    int64_t  now_ns = 0, idle_ns = 0; /* when idling was first seen by the clock */
    unsigned turns = 0;
    int      rounds = 0; /* in which nothing moved, in a row */

    while (!has_come(m, request, p)) {
        const bool moved = move(m, request, rounds);

        if (moved) {
            rounds = 0;
            idle_ns = 0;
        }
        if (++turns % TURNS_TO_LOOK == 0 || rounds > 0) {
            now_ns = tti_port_now(m->port);
            if (has_run_out(p, m->port, now_ns) && !has_come(m, request, p))
                return false;
            tti_messenger_look(m, now_ns);
            if (p->tells && !has_come(m, request, p))
                tell_receive(m, request, p, now_ns);
            idle_ns = idle_ns == 0 ? now_ns : idle_ns;
        }
        if (moved || has_come(m, request, p))
            continue;
        if (p->lies_down || is_time_to_sleep(m, request, rounds, now_ns - idle_ns))
            sleep_for(m, request, p);
        else
            idle(m, request, rounds);
        rounds++;
    }
    return true;
}

/* Wait until request has ended: false, if patience has before. */
static bool wait_for(tti_messenger *m, const tti_request *request, patience *p)
{
    bool in_time = true;

    m->waiters++;
    while (!has_come(m, request, p) && in_time) {
        const uint32_t seen = tti_event_now(&m->changed);

        if (!m->driving) {
            m->driving = true;
            in_time = drive_for(m, request, p);
            m->driving = false;
            tti_tell_waiters(m); /* somebody else may want to drive */
            continue;
        }
        in_time = !has_run_out(p, m->port, tti_port_now(m->port));
        if (m->thread_drives && m->asleep)
            m->port->ops->bell_ring(m->port, m->bell);
        m->sleepers++;
        tti_unlock(&m->lock);
        if (in_time)
            tti_event_wait(m->port, &m->changed, seen, p->deadline_ns);
        tti_lock(&m->lock);
        m->sleepers--;
    }
    m->waiters--;
    if (needs_driving(m))
        tti_leave_to_others(m);
    return has_come(m, request, p);
}

/* ---- calls ----------------------------------------------------------------------------------------- */

tutti_status tti_request_wait(tti_request *request, int64_t deadline_ns)
{
    tti_messenger *m = request->messenger;
    patience       p = { .began_ns = 1, .deadline_ns = deadline_ns };
    tutti_status   st = TUTTI_OK;

    if (tti_request_ended(request))
        return outcome(request);
    tti_lock(&m->lock);
    tti_count_call(m);
    if (!wait_for(m, request, &p))
        st = timed_out(m, request);
    tti_unlock(&m->lock);
    return st != TUTTI_OK ? st : outcome(request);
}

uint32_t tti_messenger_ended(const tti_messenger *m)
{
    return atomic_load_explicit(&m->ended, memory_order_acquire);
}

bool tti_request_wait_any(tti_request *request, uint32_t seen, int64_t deadline_ns, bool in_background)
{
    tti_messenger *m = request->messenger;
    patience       p = { .began_ns = 1, .deadline_ns = deadline_ns, .any = true, .seen = seen, .lies_down = in_background };
    bool           stands_back, in_time;

    if (tti_request_ended(request))
        return true;
    stands_back = in_background && m->port->ops->stand_back != NULL && m->port->ops->stand_back(m->port, true);
    tti_lock(&m->lock);
    tti_count_call(m);
    in_time = wait_for(m, request, &p);
    tti_unlock(&m->lock);
    if (stands_back)
        (void)m->port->ops->stand_back(m->port, false);
    return in_time;
}

/* Whether a send waits for room. */
static bool is_stuck(const tti_messenger *m)
{
    int i;

    for (i = 0; i < m->n_ranks; i++)
        if (m->lanes[i].link != NULL && m->lanes[i].queue.first != NULL)
            return true;
    return false;
}

void tti_messenger_advance(tti_messenger *m)
{
    tti_lock(&m->lock);
    if (m->under_way > 0 && !m->driving && !tti_messenger_turn(m, false) && is_stuck(m))
        (void)tti_messenger_turn(m, true); /* a peer may be stuck, too, until what it sends is taken in */
    tti_unlock(&m->lock);
}

/* Wait for a request of this thread's that has run out of patience, and that expired is to end. */
static tutti_status expire(tti_messenger *m, const tti_request *request, patience *p, const tti_expiry *expiry)
{
    tutti_status st = timed_out(m, request);

    p->deadline_ns = TTI_FOREVER;
    tti_unlock(&m->lock);
    expiry->expired(expiry->ctx, tti_port_now(m->port) - p->began_ns);
    tti_lock(&m->lock);
    wait_for(m, request, p);
    return st;
}

/* Go on with what was not done at once: sent bytes of a send, or what came of a receive. */
static void place_rest(tti_messenger *m, tti_request *request, size_t sent, tti_at_once took)
{
    tti_lane *lane;

    if (took == TTI_TAKEN_IN_PART) {
        lane = &m->lanes[request->parcel.peer];
        request->frame = lane->frame;
        lane->into = request;
        return;
    }
    request->sent = sent;
    tti_place(m, request);
}

/* The driver's poll set says nothing of a send that was placed while it sleeps, nor of what was read ahead meanwhile. */
static void wake_driver(tti_messenger *m, const tti_request *request)
{
    const tti_lane *lane = lane_of(m, request);
    const bool      ahead = lane != NULL && lane->link != NULL && tti_lane_is_ahead(lane);

    if (m->asleep && !request->ended && (request->is_send || ahead))
        m->port->ops->bell_ring(m->port, m->bell);
}

/* The same with a request. Lock held. */
static __attribute__((noinline)) tutti_status transfer_rest(tti_messenger *m, tti_request *request, size_t sent,
                                                            tti_at_once took, const tti_expiry *expiry, int64_t *deadline_out)
{
    const bool   has_begun = sent > 0 || took != TTI_NOT_THERE;
    patience     p = { .timeout_ms = expiry->timeout_ms,
                       .tells = !request->is_send && request->parcel.peer >= 0 && request->parcel.tag >= 0 };
    tutti_status st = TUTTI_OK;
    bool         in_time;

    if (!m->thread.running)
        st = tti_need_driver(m); /* of what may be left if this fails half-way */
    if (st != TUTTI_OK && !has_begun)
        return st;
    m->under_way++;
    place_rest(m, request, sent, took);
    wake_driver(m, request);
    in_time = request->ended || wait_for(m, request, &p);
    *deadline_out = deadline_of(&p, m->port);
    if (p.number != 0)
        tti_end_receive(m, request, p.number);
    return in_time ? TUTTI_OK : expire(m, request, &p, expiry);
}

/* Look at a message that is not there yet whenever the core has been given away. */
static tti_at_once recv_yielding(tti_messenger *m, tti_channel channel, const tti_parcel *parcel)
{
    const int64_t began_ns = tti_port_now(m->port);
    tti_at_once   took = TTI_NOTHING_THERE;
    int           i;

    for (i = 0; i < YIELDS_AT_ONCE && took == TTI_NOTHING_THERE && m->under_way == 0; i++) {
        tti_unlock(&m->lock);
        m->port->ops->yield(m->port);
        tti_lock(&m->lock);
        took = tti_recv_at_once(m, channel, parcel);
    }
    (void)tti_company_gave(&m->company, i, began_ns, tti_port_now(m->port));
    return took;
}

/* It may come as soon as the core is given away: it needs no request then. Where something else is under way, that has
 * to be moved meanwhile. */
static tti_at_once recv_soon(tti_messenger *m, tti_channel channel, const tti_parcel *parcel)
{
    tti_at_once took = tti_recv_at_once(m, channel, parcel);

    if (took == TTI_NOTHING_THERE && !m->own_core && !tti_company_is_here(&m->company, m->port))
        took = recv_yielding(m, channel, parcel);
    return took == TTI_NOTHING_THERE ? TTI_NOT_THERE : took;
}

tutti_status tti_messenger_transfer(tti_messenger *m, tti_channel channel, const tti_parcel *parcel, bool is_send,
                                    const tti_expiry *expiry, int *peer_out)
{
    const size_t whole = sizeof(tti_frame) + parcel->bytes;
    tti_at_once  took = TTI_NOT_THERE;
    tti_request  request;
    int64_t      deadline_ns = TTI_FOREVER;
    size_t       sent = 0;
    tutti_status st;

    *peer_out = parcel->peer;
    tti_lock(&m->lock);
    tti_count_call(m);
    if (is_send)
        sent = tti_send_at_once(m, channel, parcel);
    else
        took = recv_soon(m, channel, parcel);
    if (sent == whole || took == TTI_TAKEN) {
        tti_unlock(&m->lock);
        return TUTTI_OK;
    }
    tti_request_init(&request, m, channel, parcel, is_send);
    request.on_stack = true;
    st = transfer_rest(m, &request, sent, took, expiry, &deadline_ns);
    tti_unlock(&m->lock);
    *peer_out = request.parcel.peer;
    return st != TUTTI_OK ? st : tti_messenger_learn(m, channel.group, NULL, deadline_ns, outcome(&request));
}

void tti_request_notify(tti_request *request, void (*fn)(void *ctx), void *ctx)
{
    tti_messenger *m = request->messenger;
    bool           ended = tti_request_ended(request); /* then the messenger may be gone */

    if (!ended) {
        tti_lock(&m->lock);
        ended = tti_request_ended(request);
        if (!ended) {
            request->on_end_ctx = ctx;
            request->on_end = fn;
        }
        tti_unlock(&m->lock);
    }
    if (ended)
        fn(ctx);
}

/* ---- when nobody waits ----------------------------------------------------------------------------- */

static void drive_alone(tti_messenger *m)
{
    m->driving = m->thread_drives = true;
    while (needs_driving(m)) {
        if (!tti_messenger_turn(m, false))
            tti_messenger_sleep(m, TTI_FOREVER);
        else
            tti_messenger_look(m, tti_port_now(m->port));
    }
    m->driving = m->thread_drives = false;
    tti_tell_waiters(m); /* somebody who waits wants to drive */
}

/* Nap as long as calls come, without the lock: whoever has it should not be asked to share. calls is how many there
 * were at the last look. */
static uint32_t nap(tti_messenger *m, uint32_t seen, uint32_t calls)
{
    uint32_t now;

    for (;; calls = now) {
        tti_event_wait(m->port, &m->todo, seen, tti_port_now(m->port) + NAP_MS * TTI_MS);
        now = tti_calls(m);
        if (now == calls || tti_event_now(&m->todo) != seen)
            return calls;
    }
}

void tti_messenger_thread(void *messenger)
{
    tti_messenger *m = messenger;
    uint32_t       calls = 0; /* at the last look */

    tti_lock(&m->lock);
    while (!m->closing) {
        const uint32_t seen = tti_event_now(&m->todo);
        const bool     quiet = calls == tti_calls(m) || m->n_serving > 0;

        calls = tti_calls(m);
        if (quiet && needs_driving(m) && !m->driving) {
            drive_alone(m);
            continue;
        }
        m->thread_rests = quiet;
        tti_unlock(&m->lock);
        if (quiet)
            tti_event_wait(m->port, &m->todo, seen, TTI_FOREVER);
        else
            calls = nap(m, seen, calls);
        tti_lock(&m->lock);
        m->thread_rests = false;
    }
    tti_unlock(&m->lock);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * connector.c - TCP connections, made when the first message between two members needs them.
 *
 * Why     Most pairs of a large world never talk: a ring needs two connections per rank, a tree a few more.
 *         Both ends must be ready without being in a call of the library: the one that is connected to may
 *         compute for minutes, and the one that connects may only post a message and go on.
 * How     A world with members on other hosts has one thread for it, which sleeps in poll: on the listener,
 *         on connections on their way (tcp/greeter.c), and on a bell. Whoever posts a message marks the lane
 *         as wanted and rings; when messages may pass, the thread puts the link into the lane, flushes what
 *         has queued up if nobody drives, and rings the driver, whose poll set has changed.
 *         A send wants its connection now. A receive gives the sender a head start, so that one attempt
 *         of two is the rule; then it connects itself, because a stream is how it learns that the sender dies.
 * True    lane->way is read and written under the messenger's lock. NONE -> WANTED: any thread; the others,
 *         but for a link that breaks (OPEN -> LOST), are this thread's: it alone begins, welcomes, hands over
 *         and gives up. The greeter belongs to this thread and needs no lock; its hooks take it.
 * Told    Every wait for a dead rank ends within a second, because whoever waits for a rank has a connection
 *         to it or is making one: a dead peer refuses it, or resets it. Who waits for a living rank that will
 *         never answer, because something failed elsewhere, is told: who fails first connects to every
 *         member, in order to tell it (give_up.c), and this thread accepts that on a member that waits for
 *         somebody else. Who connects later to a member that has failed is told behind the welcome.
 * Rate    A congestion control that sends at a rate which it has found out, as bbr does, is wrong about a near way: a rank that says
 *         something short and then waits is answered when its peer's kernel likes, after 20 or 40 ms, and ten such rounds later
 *         that is all that is left of what was found out: half a megabit per second, at which the next block's first 64 KiB take
 *         a tenth of a second. So a near connection has "reno", unless the program has named another, and a long one the system's. It
 *         has to from its first packet on: pacing that has once begun stays, whatever the congestion control is then.
 * Idle    Ten times a second it sees to what others tell a rank that waits for nobody (agree.c).
 * Fails   An attempt that fails loses the lane, which ends what waits for it. A host that does not answer
 *         is asked again by the greeter; requests end before that, with their own time-outs. */
#include "transport/connector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "base/env.h"
#include "base/log.h"
#include "transport/mesh_links.h"
#include "transport/tcp/greeter.h"
#include "transport/tcp/tcp_link.h"

#define IDLE_LOOK_NS (100 * TTI_MS)

struct tti_connector {
    tti_messenger *m;
    tti_port      *port;
    tti_handle     bell;
    tti_thread     thread;
    tti_greeter   *greeter; /* the thread's from here on */
    int           *due;     /* [n_ranks] */
    bool          *to_watch;  /* [n_ranks] the watch thread wants a stream; the messenger's lock guards it */
    bool           has_to_watch; /* any of them; so does it this */
    tti_poll      *set;     /* of room for set_max */
    int            set_max;
    int            n_stripes;
    const char    *congestion; /* that connections begin with; NULL: the system's */
    char           far_congestion[16]; /* the system's, if only near connections go on with what they began with; else "" */
    bool           has_logged; /* at level info what connections there are like */
};

/* ---- what is wanted (lock held) -------------------------------------------------------------------- */

void tti_want_lane(tti_messenger *m, tti_lane *lane, int64_t in_ns)
{
    int64_t due_ns;

    if (lane->way > TTI_WAY_WANTED) /* as a rule: it costs a message nothing */
        return;
    due_ns = tti_port_now(m->port) + in_ns;
    if (lane->way == TTI_WAY_WANTED && due_ns >= lane->due_ns)
        return;
    lane->way = TTI_WAY_WANTED;
    lane->due_ns = due_ns;
    m->port->ops->bell_ring(m->port, m->connector->bell);
}

/* Who may send what a receive from anybody waits for: NULL is every member of the world. */
static const tti_known_group *senders(const tti_messenger *m, const tti_request *receive)
{
    const tti_known_group *known = tti_mailbox_group(&m->mailbox, receive->channel.group);

    return known != NULL && known->n_ranks > 0 ? known : NULL;
}

void tti_want_sender(tti_messenger *m, const tti_request *receive)
{
    const tti_known_group *from = receive->parcel.peer < 0 ? senders(m, receive) : NULL;
    const int              n = from != NULL ? from->n_ranks : m->n_ranks;
    int                    i;

    if (receive->parcel.peer >= 0) {
        tti_want_lane(m, &m->lanes[receive->parcel.peer], TTI_HEAD_START_NS);
        return;
    }
    for (i = 0; i < n; i++)
        tti_want_lane(m, &m->lanes[from != NULL ? from->ranks[i] : i], TTI_HEAD_START_NS);
}

bool tti_may_send(const tti_messenger *m, const tti_request *receive, int rank)
{
    const tti_known_group *from = senders(m, receive);
    int                    i;

    if (receive->parcel.peer >= 0 || from == NULL)
        return receive->parcel.peer < 0 || receive->parcel.peer == rank;
    for (i = 0; i < from->n_ranks && from->ranks[i] != rank; i++)
        continue;
    return i < from->n_ranks;
}

static bool is_needed(const tti_messenger *m, const tti_lane *lane)
{
    const tti_request *request = m->mailbox.posted.first;

    if (lane->queue.first != NULL)
        return true;
    while (request != NULL && !tti_may_send(m, request, lane->peer))
        request = request->next;
    return request != NULL;
}

void tti_want_less(tti_messenger *m)
{
    int i;

    for (i = 0; i < m->n_ranks; i++)
        if (m->lanes[i].way == TTI_WAY_MAKING) {
            m->wants_less = true;
            m->port->ops->bell_ring(m->port, m->connector->bell);
            return;
        }
}

/* Attempts that got no answer yet and that nothing needs any more. */
static void withdraw(tti_connector *c)
{
    tti_messenger *m = c->m;
    int            i;

    m->wants_less = false;
    for (i = 0; i < m->n_ranks; i++)
        if (m->lanes[i].way == TTI_WAY_MAKING && !is_needed(m, &m->lanes[i]) &&
            tti_greeter_withdraw(c->greeter, i))
            m->lanes[i].way = TTI_WAY_NONE;
}

/* Which attempts to begin now: how many, in due[]; and when the next one is. */
static int take_due(tti_connector *c, int64_t *next_ns_out)
{
    tti_messenger *m = c->m;
    const int64_t  now_ns = tti_port_now(c->port);
    int            i, n = 0;

    *next_ns_out = TTI_FOREVER;
    for (i = 0; i < m->n_ranks; i++) {
        tti_lane *lane = &m->lanes[i];

        if (lane->way != TTI_WAY_WANTED)
            continue;
        if (!is_needed(m, lane)) {
            lane->way = TTI_WAY_NONE;
        } else if (lane->due_ns <= now_ns) {
            lane->way = TTI_WAY_MAKING;
            c->due[n++] = i;
        } else if (lane->due_ns < *next_ns_out) {
            *next_ns_out = lane->due_ns;
        }
    }
    return n;
}

/* Whom the watch thread wants a stream to: how many, in due[]. */
static int take_watches(tti_connector *c)
{
    int i, n = 0;

    for (i = 0; i < c->m->n_ranks && c->has_to_watch; i++) {
        if (c->to_watch[i])
            c->due[n++] = i;
        c->to_watch[i] = false;
    }
    c->has_to_watch = false;
    return n;
}

/* ---- what the greeter asks and tells (no lock held) ------------------------------------------------ */

static tti_verdict judge(void *context, int rank, tti_attempt own)
{
    tti_messenger *m = ((tti_connector *)context)->m;
    tti_lane      *lane = &m->lanes[rank];
    tti_verdict    verdict;

    tti_lock(&m->lock);
    verdict = tti_judge_rival(tti_mesh_rank(m->mesh), rank, lane->way, own);
    if (verdict == TTI_WELCOME_IT)
        lane->way = TTI_WAY_MAKING;
    tti_unlock(&m->lock);
    return verdict;
}

/* A lane has changed: let somebody act on it. */
static void announce(tti_messenger *m)
{
    tti_event_signal(m->port, &m->changed);
    m->port->ops->bell_ring(m->port, m->bell);
}

static void lost(void *context, int rank, const tti_cause *why)
{
    tti_messenger *m = ((tti_connector *)context)->m;

    tti_log(TTI_LOG_DEBUG, "no connection to rank %d: %s", rank, why->words);
    tti_lock(&m->lock);
    tti_lose_lane(m, &m->lanes[rank], why);
    tti_unlock(&m->lock);
    announce(m);
}

/* Once for all at level info, for each at level debug. */
static void log_opened(tti_connector *c, int rank, tti_handle stream)
{
    const tti_log_level level = c->has_logged ? TTI_LOG_DEBUG : TTI_LOG_INFO;
    tti_stream_facts    facts;

    c->has_logged = true;
    if (!tti_log_wanted(level))
        return;
    if (c->port->ops->stream_facts == NULL || c->port->ops->stream_facts(c->port, stream, &facts) != 0)
        tti_log(level, "connected to rank %d", rank);
    else
        tti_log(level, "connected to rank %d: TCP with congestion control '%s', segments of %u bytes, round trip %.2f ms",
                rank, facts.congestion, facts.segment_bytes, facts.round_trip_us / 1e3);
}

/* Nobody has asked for another congestion control than the system's: on a long way it has that. */
static void give_back_congestion(tti_connector *c, int rank, tti_handle stream)
{
    if (c->far_congestion[0] != '\0' && !tti_tcp_is_near(c->port, stream) &&
        c->port->ops->set_congestion(c->port, stream, c->far_congestion) != TUTTI_OK)
        tti_log(TTI_LOG_WARN, "the connection to rank %d has another congestion control than the system's: %s", rank, tutti_last_error());
}

/* What goes over the connections: all, or what a transport has to be told. */
static tutti_status open_link(tti_connector *c, int rank, const tti_handle *streams, tti_link **link_out)
{
    tti_messenger *m = c->m;

    if (m->carrier != NULL)
        return tti_carrier_link(m->carrier, rank, streams[0], link_out);
    return tti_tcp_link_open(m->port, streams, c->n_stripes, rank, &tti_mesh_door(m->mesh)->rails, link_out);
}

static void opened(void *context, int rank, const tti_handle *streams)
{
    tti_connector *c = context;
    tti_messenger *m = c->m;
    tti_link      *link = NULL;
    tti_cause      why;
    int            i;

    for (i = 0; i < c->n_stripes; i++)
        give_back_congestion(c, rank, streams[i]);
    if (open_link(c, rank, streams, &link) != TUTTI_OK) {
        for (i = 0; i < c->n_stripes; i++)
            m->port->ops->close(m->port, streams[i]);
        tti_cause_set(&why, TUTTI_E_NOMEM, "%.400s", tutti_last_error());
        lost(context, rank, &why);
        return;
    }
    log_opened(c, rank, streams[0]);
    tti_lock(&m->lock);
    m->lanes[rank].link = link;
    m->lanes[rank].way = TTI_WAY_OPEN;
    tti_tell_failures(m, &m->lanes[rank]);
    if (!m->driving)
        (void)tti_messenger_turn(m, false);
    tti_unlock(&m->lock);
    announce(m);
}

/* The watch thread's wish, on that thread. */
static void dial(void *context, int rank)
{
    tti_connector *c = context;

    tti_lock(&c->m->lock);
    c->to_watch[rank] = c->has_to_watch = true;
    tti_unlock(&c->m->lock);
    c->port->ops->bell_ring(c->port, c->bell);
}

/* The watch thread asks, while nothing comes from rank's host by its own streams. */
static uint32_t data_ms(void *context, int rank)
{
    tti_messenger  *m = ((tti_connector *)context)->m;
    const tti_link *link;
    uint32_t        ms = UINT32_MAX;

    tti_lock(&m->lock);
    link = m->lanes[rank].way == TTI_WAY_OPEN ? m->lanes[rank].link : NULL;
    if (link != NULL && link->ops->data_ms != NULL)
        ms = link->ops->data_ms(link);
    tti_unlock(&m->lock);
    return ms;
}

static void watched(void *context, int rank, tti_handle stream)
{
    tti_connector *c = context;

    tti_health_adopt(tti_mesh_health(c->m->mesh), rank, stream);
}

static void shut(void *context, int rank)
{
    tti_connector *c = context;

    tti_health_is_shut(tti_mesh_health(c->m->mesh), rank);
}

static void reached(void *context, int rank)
{
    tti_connector *c = context;

    tti_health_is_reached(tti_mesh_health(c->m->mesh), rank);
}

static const char *whereabouts(void *context, int rank)
{
    return tti_mesh_whereabouts(((tti_connector *)context)->m->mesh, rank);
}

static const tti_addr *addr_on(void *context, int rank, int rail)
{
    return tti_mesh_rail_addr(((tti_connector *)context)->m->mesh, rank, rail);
}

/* ---- the thread ------------------------------------------------------------------------------------ */

static bool grow_set(tti_connector *c)
{
    const int need = tti_greeter_room(c->greeter) + 1;
    tti_poll *set;

    if (need <= c->set_max)
        return true;
    set = realloc(c->set, (size_t)need * 2 * sizeof *set);
    if (set == NULL)
        return false;
    c->set = set;
    c->set_max = need * 2;
    return true;
}

/* The bell comes last in the set. */
static void sleep_and_turn(tti_connector *c, int64_t until_ns)
{
    int64_t greeter_ns;
    int     n;

    if (!grow_set(c)) { /* without memory for the set nothing can be made: a little later */
        c->port->ops->sleep_until(c->port, tti_port_now(c->port) + TTI_HEAD_START_NS);
        return;
    }
    n = tti_greeter_fill(c->greeter, c->set, &greeter_ns);
    c->set[n] = (tti_poll){ .handle = c->bell, .want = TTI_READ };
    c->port->ops->poll(c->port, c->set, n + 1, greeter_ns < until_ns ? greeter_ns : until_ns);
    if (c->set[n].got != 0)
        c->port->ops->bell_clear(c->port, c->bell);
    tti_greeter_turn(c->greeter, c->set, n);
}

static void thread_main(void *arg)
{
    tti_connector *c = arg;
    tti_messenger *m = c->m;
    int64_t        next_ns, idle_ns = 0;
    int            i, n;
    bool           ending;

    for (;;) {
        const int64_t now_ns = tti_port_now(c->port);

        tti_lock(&m->lock);
        ending = m->connects_no_more;
        if (m->wants_less)
            withdraw(c);
        n = take_due(c, &next_ns);
        if (now_ns >= idle_ns && !ending) {
            idle_ns = now_ns + IDLE_LOOK_NS;
            tti_messenger_look_idle(m);
        }
        tti_unlock(&m->lock);
        if (ending)
            return;
        for (i = 0; i < n; i++)
            tti_greeter_connect(c->greeter, c->due[i], tti_mesh_addr(m->mesh, c->due[i]));
        tti_lock(&m->lock);
        n = take_watches(c);
        tti_unlock(&m->lock);
        for (i = 0; i < n; i++)
            tti_greeter_watch(c->greeter, c->due[i], tti_mesh_addr(m->mesh, c->due[i]));
        sleep_and_turn(c, next_ns < idle_ns ? next_ns : idle_ns);
    }
}

/* Nobody has said which: the system's, if it does not send at a rate that it has found out (bbr, whichever version). */
static void choose_for_near(tti_connector *c, tti_handle listener)
{
    static const char   paced[] = "bbr", unpaced[] = "reno"; /* that every kernel has, and lets everybody have */
    const tti_port_ops *ops = c->port->ops;
    tti_stream_facts    facts;

    if (ops->stream_facts == NULL || ops->connect_from == NULL || ops->stream_facts(c->port, listener, &facts) != 0 ||
        strncmp(facts.congestion, paced, sizeof paced - 1) != 0 || ops->set_congestion(c->port, listener, unpaced) != TUTTI_OK)
        return;
    snprintf(c->far_congestion, sizeof c->far_congestion, "%s", facts.congestion);
    c->congestion = unpaced;
}

/* What is asked for must be to be had: the listener tells, whose connections inherit it. */
static tutti_status choose_congestion(tti_connector *c, tti_handle listener)
{
    char         words[TTI_WORDS_MAX];
    tutti_status st = TUTTI_OK;

    if (c->port->ops->set_congestion == NULL)
        return TUTTI_OK;
    if (tti_env("TUTTI_TCP_CONGESTION") == NULL) {
        choose_for_near(c, listener);
        return TUTTI_OK;
    }
    c->congestion = tti_env("TUTTI_TCP_CONGESTION");
    st = c->port->ops->set_congestion(c->port, listener, c->congestion);
    if (st == TUTTI_OK)
        return st;
    snprintf(words, sizeof words, "%s", tutti_last_error());
    return tti_fail(st, "%s\n  next: set TUTTI_TCP_CONGESTION to one of those, or not at all", words);
}

static tutti_status prepare(tti_connector *c)
{
    tti_messenger     *m = c->m;
    const tti_door    *door = tti_mesh_door(m->mesh);
    tti_greeter_config config = { .port = c->port, .rank = tti_mesh_rank(m->mesh), .n_ranks = m->n_ranks, .n_stripes = door->n_stripes,
                                  .listener = door->listener, .secret = &door->secret,
                                  .rails = &door->rails, .rail_listeners = door->rail_listeners,
                                  .whereabouts = whereabouts, .addr_on = addr_on,
                                  .hooks = { .context = c, .judge = judge, .opened = opened, .lost = lost } };
    int                err = c->port->ops->bell_create(c->port, &c->bell);
    tutti_status       st;
    int                i;

    if (err != 0)
        return tti_fail_errno(-err, "cannot create a bell");
    c->n_stripes = door->n_stripes;
    if (tti_mesh_health(m->mesh) != NULL) {
        config.hooks.watched = watched;
        config.hooks.shut = shut;
        config.hooks.reached = reached;
    }
    c->due = calloc((size_t)m->n_ranks, sizeof *c->due);
    c->to_watch = calloc((size_t)m->n_ranks, sizeof *c->to_watch);
    if (c->due == NULL || c->to_watch == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to connect to %d ranks", m->n_ranks);
    st = choose_congestion(c, door->listener);
    for (i = 1; st == TUTTI_OK && i < door->rails.n; i++)
        st = choose_congestion(c, door->rail_listeners[i]);
    if (st != TUTTI_OK)
        return st;
    config.congestion = c->congestion;
    memcpy(config.scope, door->scope, sizeof config.scope);
    return tti_greeter_create(&config, &c->greeter);
}

tutti_status tti_connector_open(tti_messenger *m)
{
    tti_connector *c = calloc(1, sizeof *c);
    tutti_status   st;

    if (c == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to connect to other ranks");
    c->m = m;
    c->port = m->port;
    c->bell = TTI_NO_HANDLE;
    m->connector = c; /* before the thread is, which looks at it */
    st = prepare(c);
    if (st == TUTTI_OK)
        st = tti_thread_start(&c->thread, "tutti-connect", thread_main, c);
    if (st == TUTTI_OK)
        tti_health_set_dialer(tti_mesh_health(m->mesh), dial, c);
    if (st == TUTTI_OK)
        tti_health_set_ear(tti_mesh_health(m->mesh), data_ms, c);
    return st;
}

void tti_connector_close(tti_connector *c)
{
    if (c == NULL)
        return;
    tti_health_leave(tti_mesh_health(c->m->mesh)); /* while there is somebody who connects for it */
    tti_health_set_dialer(tti_mesh_health(c->m->mesh), NULL, NULL);
    tti_health_set_ear(tti_mesh_health(c->m->mesh), NULL, NULL);
    tti_lock(&c->m->lock);
    c->m->connects_no_more = true;
    tti_unlock(&c->m->lock);
    c->port->ops->bell_ring(c->port, c->bell);
    tti_thread_join(&c->thread);
    tti_greeter_free(c->greeter);
    c->port->ops->close(c->port, c->bell);
    free(c->due);
    free(c->to_watch);
    free(c->set);
    free(c);
}

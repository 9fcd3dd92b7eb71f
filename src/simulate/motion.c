/* SPDX-License-Identifier: BSD-3-Clause
 *
 * motion.c - ranks, cores and ports in virtual time.
 *
 * How     A message goes from one server to the next; each takes what comes to it one after the other, in the order of
 *         arrival:
 *           sender's core -> port out -> [rack out -> rack in ->] port in -> receiver's core
 *         A core works post + bytes * send_byte (recv_byte), or unevenly so (cluster.h); a port takes bytes * port_byte;
 *         latency lies before the port in. A server begins with a piece of a message when its head comes, not its tail, as switches do: alone
 *         on its way a message takes post + copy + latency + bytes / rate + copy + post. Inside a host there are no
 *         ports.
 *         A large message goes in quanta, of which its sender has two at most between its core and the end of the
 *         port: so messages to several peers share a port in turn, as connections do, and copying overlaps with sending.
 *         What comes together at one port in (incast) waits there, without limit: nothing is ever lost.
 *         A port may be a token bucket, as shapers are: it holds so many bytes, fills at the port's rate, and what it holds
 *         passes at once. So a port has two clocks: when it has passed on all that it was given, and when its bucket will
 *         be full again, if nothing more comes.
 *         Who shares a core with others pays for each change of hands.
 *         Ranks go through phases as run.c moves schedules: sends in the plan's order, so many of them under way; the
 *         phase ends when all have left the core and all that is expected has come; then its local steps, on the
 *         core. Pieces of a call are so many lanes, each with a phase of its own; lane l has the pieces l,
 *         l + window, ... (run.c begins them strictly in their order, which makes a difference only where a later one ends
 *         first).
 * Units   Where the tape has one unit of many that do the same, a message to another unit comes to this one, in its
 *         stead, from the unit that is as far away on the other side: at the same time, as all clocks are equal.
 * True    Times are whole picoseconds, equal ones in the order of their making: the same tape comes out the same. None
 *         is later than TTI_PS_MAX, whatever figures say; what comes to that is refused.
 *         A message is known by its piece and phase alone, which tell a rank which of its waits it ends; that the peer
 *         expects it is for the tests of plans to show. Messages that come before their phase wait in a list. */
#include "simulate/motion.h"

#include <stdlib.h>
#include <tutti/private.h>
#include "simulate/agenda.h"

enum {
    QUANTA_MAX = 16,              /* of a message */
    QUANTUM_LEAST = 64 * 1024,    /* bytes */
    QUANTA_OUT = 2,               /* of a message, from its sender's core to the end of the port */
    NOBODY = -1
};

/* What an event is about: the stage of a message's next quantum, or a lane whose local steps have ended. */
typedef enum stage {
    AT_PORT_OUT,
    LEFT_PORT,
    AT_RACK_OUT,
    AT_RACK_IN,
    AT_PORT_IN,
    AT_CORE,
    DELIVERED,
    STEPS_DONE
} stage;

enum { STAGE_BITS = 3, INDEX_MAX = (1 << (32 - STAGE_BITS)) - 1 };

/* A message under way; a place in the row is used again. */
typedef struct message {
    int32_t src, dst; /* ranks of the tape */
    int32_t piece;
    int32_t phase;
    int64_t bytes;
    int32_t n;        /* quanta */
    int32_t copied;   /* of them, by the sender's core; then each stage in turn */
    int32_t out, left, rack_out, rack_in, in, taken;
    int32_t next;     /* in a list: those that came early, or free places */
    bool    far;
    bool    other_rack;
} message;

/* One piece of a rank's call on its way. */
typedef struct lane {
    int32_t  piece;
    uint32_t phase;  /* of the tape's, */
    uint32_t number; /* and in the schedule */
    uint32_t recvs_left;
    uint32_t next_send, sends_end; /* in the tape's row */
    uint32_t sends_under_way;
    bool     steps;   /* its messages have ended, its local steps have not */
    bool     ended;
} lane;

typedef struct server {
    int64_t free_at;
    int64_t full_at; /* its bucket, if nothing more comes; without a bucket the same */
    int64_t bytes;
} server;

typedef struct core {
    int64_t free_at;
    int32_t last; /* rank that had it */
    bool    shared;
} core;

typedef struct player {
    const tti_cluster *cluster;
    const tti_tape    *tape;
    tti_agenda          agenda;
    int64_t            now;
    lane              *lanes;   /* [n_ranks * window] */
    int32_t           *early;   /* [n_ranks] first message that came before its phase, or NOBODY */
    core              *cores;
    server            *out, *in; /* of hosts */
    server            *rack_out, *rack_in;
    int                n_hosts, n_cores, n_racks;
    message           *messages;
    int64_t           *tails;   /* [room * QUANTA_MAX] when a quantum's last byte leaves the port; where there are buckets */
    int32_t            n_messages, room, free_place;
    bool               full;
    int64_t            latency_ps[2]; /* [far] */
    int64_t            give_ps;
    int64_t            burst_ps;
    int                first_host; /* whose ports are those of the tape's first host in this call */
    tti_played         played;
} player;

/* ---- servers ----------------------------------------------------------------------------------- */

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ps after begin, which is no later than a simulation may last, and so is this. */
static int64_t end_of(int64_t begin, int64_t ps)
{
    return ps < TTI_PS_MAX - begin ? begin + ps : TTI_PS_MAX;
}

/* The rank's core does what takes ps, after what it was given before. Returns when that is done. */
static int64_t work(player *p, int rank, int64_t ps)
{
    core         *c = &p->cores[tti_cluster_core(p->cluster, rank)];
    const bool    changes = c->shared && c->last != rank && c->last != NOBODY;
    const int64_t begin = end_of(later(p->now, c->free_at), changes ? p->give_ps : 0);

    c->last = rank;
    c->free_at = end_of(begin, ps);
    return c->free_at;
}

/* A server takes bytes, at byte_ns each, that begin to come now, but for what its bucket holds. Returns when it begins with
 * them. */
static int64_t serve(player *p, server *s, int64_t bytes, double byte_ns, int64_t burst_ps)
{
    const int64_t begin = later(p->now, s->free_at);

    s->full_at = end_of(later(p->now, s->full_at), tti_ps((double)bytes * byte_ns));
    s->free_at = later(begin, s->full_at - burst_ps);
    s->bytes += bytes;
    return begin;
}

static int64_t pass_port(player *p, server *port, int64_t bytes)
{
    return serve(p, port, bytes, p->cluster->figures.port_byte, p->burst_ps);
}

/* Of a rank's host, in this call. */
static server *port_of(const player *p, server *ports, int rank)
{
    return &ports[(tti_cluster_host(p->cluster, rank) + p->first_host) % p->n_hosts];
}

/* ---- messages ---------------------------------------------------------------------------------- */

static void add_event(player *p, int64_t at, stage what, int32_t index)
{
    tti_agenda_add(&p->agenda, at, (uint32_t)index << STAGE_BITS | (uint32_t)what);
}

static const tti_tier *tier_of(const player *p, const message *m)
{
    return m->far ? &p->cluster->figures.far : &p->cluster->figures.local;
}

static int64_t quantum_of(const message *m)
{
    const int64_t each = (m->bytes + QUANTA_MAX - 1) / QUANTA_MAX;

    return each > QUANTUM_LEAST ? each : QUANTUM_LEAST;
}

/* Bytes of the i-th quantum. */
static int64_t bytes_of(const message *m, int i)
{
    const int64_t each = quantum_of(m);

    return i + 1 < m->n ? each : m->bytes - each * (m->n - 1);
}

static bool grow_tails(player *p, int32_t room)
{
    int64_t *grown;

    if (p->burst_ps == 0)
        return true;
    grown = realloc(p->tails, (size_t)room * QUANTA_MAX * sizeof *grown);
    p->full = p->full || grown == NULL;
    p->tails = grown != NULL ? grown : p->tails;
    return grown != NULL;
}

static int32_t take_place(player *p)
{
    const int32_t room = p->room > 0 ? 2 * p->room : 1024;
    int32_t       place = p->free_place;
    message      *grown;

    if (place != NOBODY) {
        p->free_place = p->messages[place].next;
        return place;
    }
    if (p->n_messages == p->room) {
        grown = room < INDEX_MAX ? realloc(p->messages, (size_t)room * sizeof *grown) : NULL;
        p->full = p->full || grown == NULL;
        if (grown == NULL)
            return NOBODY;
        p->messages = grown;
        if (!grow_tails(p, room))
            return NOBODY;
        p->room = room;
    }
    return p->n_messages++;
}

static void give_place(player *p, int32_t i)
{
    p->messages[i].next = p->free_place;
    p->free_place = i;
}

/* The sender's core copies the next quantum of message i. */
static void copy_next(player *p, int32_t i)
{
    message        *m = &p->messages[i];
    const tti_tier *tier = tier_of(p, m);
    const double    ns = (m->copied == 0 ? tier->post + tier->uneven : 0) + (double)bytes_of(m, m->copied) * tier->send_byte;

    m->copied++;
    add_event(p, work(p, m->src, tti_ps(ns)), AT_PORT_OUT, i);
}

static void send_message(player *p, int rank, const lane *l, const tti_tape_send *send)
{
    const int32_t i = take_place(p);
    const int     n_here = p->tape->n_ranks;
    message      *m;

    if (i == NOBODY)
        return;
    m = &p->messages[i];
    *m = (message){ .src = rank, .dst = send->peer % n_here, .piece = l->piece, .phase = (int32_t)l->number,
                    .bytes = tti_tape_bytes(send),
                    .far = tti_cluster_host(p->cluster, rank) != tti_cluster_host(p->cluster, send->peer),
                    .other_rack = tti_cluster_rack(p->cluster, rank) != tti_cluster_rack(p->cluster, send->peer) };
    m->n = (int32_t)((m->bytes + quantum_of(m) - 1) / quantum_of(m));
    m->n = m->n > 0 ? m->n : 1;
    p->played.messages++;
    p->played.bytes += m->bytes;
    p->played.messages_far += m->far;
    p->played.bytes_far += m->far ? m->bytes : 0;
    copy_next(p, i);
}

/* ---- lanes ------------------------------------------------------------------------------------- */

static lane *lane_of(const player *p, int rank, int piece)
{
    return &p->lanes[rank * p->tape->window + piece % p->tape->window];
}

static bool is_at(const lane *l, const message *m)
{
    return !l->ended && l->piece == m->piece && (int32_t)l->number == m->phase;
}

/* Those of the messages that came early which belong to the phase that begins. */
static void take_early(player *p, int rank, lane *l)
{
    int32_t *link = &p->early[rank];

    while (*link != NOBODY) {
        const int32_t i = *link;

        if (is_at(l, &p->messages[i])) {
            *link = p->messages[i].next;
            give_place(p, i);
            l->recvs_left--;
        } else {
            link = &p->messages[i].next;
        }
    }
}

static void post_sends(player *p, int rank, lane *l)
{
    while (l->next_send < l->sends_end && l->sends_under_way < (uint32_t)p->tape->in_flight) {
        l->sends_under_way++;
        send_message(p, rank, l, &p->tape->sends[l->next_send++]);
    }
}

static const tti_tape_phase *phase_of(const player *p, int rank, const lane *l)
{
    return &p->tape->phases[tti_tape_part_of(p->tape, rank, l->piece)->phases_begin + l->phase];
}

static void begin_phase(player *p, int rank, lane *l)
{
    const tti_tape_part  *part = tti_tape_part_of(p->tape, rank, l->piece);
    const tti_tape_phase *phase = phase_of(p, rank, l);

    l->next_send = l->phase == 0 ? part->sends_begin : phase[-1].sends_end;
    l->number = phase->number;
    l->sends_end = phase->sends_end;
    l->recvs_left = phase->n_recvs;
    l->sends_under_way = 0;
    l->steps = false;
    take_early(p, rank, l);
    post_sends(p, rank, l);
}

/* The next phase, or the lane's next piece. False: there is none, the lane has ended. */
static bool go_on(player *p, int rank, lane *l)
{
    l->phase++;
    while (l->phase >= tti_tape_part_of(p->tape, rank, l->piece)->n_phases) {
        l->phase = 0;
        l->piece += p->tape->window;
        if (l->piece >= p->tape->n_pieces) {
            l->ended = true;
            return false;
        }
    }
    begin_phase(p, rank, l);
    return true;
}

/* End the phase if its messages have ended, and those behind it that have nothing to wait for. */
static void try_end(player *p, int rank, lane *l)
{
    while (!l->ended && !l->steps && l->recvs_left == 0 && l->sends_under_way == 0 && l->next_send == l->sends_end) {
        const int64_t ps = phase_of(p, rank, l)->work_ps;

        if (ps > 0) {
            l->steps = true;
            add_event(p, work(p, rank, ps), STEPS_DONE, (int32_t)(l - p->lanes));
        } else {
            go_on(p, rank, l);
        }
    }
}

/* ---- events ------------------------------------------------------------------------------------ */

/* As long as less than QUANTA_OUT of its quanta are between core and network. */
static void copy_more(player *p, int32_t i)
{
    const message *m = &p->messages[i];

    if (m->copied < m->n && (!m->far || m->copied - m->left < QUANTA_OUT))
        copy_next(p, i);
}

static void enter_port(player *p, int32_t i, int64_t bytes)
{
    const message *m = &p->messages[i];
    server        *port = port_of(p, p->out, m->src);
    const int64_t  head = pass_port(p, port, bytes);

    if (p->tails != NULL)
        p->tails[(int64_t)i * QUANTA_MAX + m->out - 1] = port->free_at;
    if (m->copied < m->n)
        add_event(p, port->free_at, LEFT_PORT, i);
    if (m->other_rack)
        add_event(p, head, AT_RACK_OUT, i);
    else
        add_event(p, end_of(head, p->latency_ps[1]), AT_PORT_IN, i);
}

static void on_port_out(player *p, int32_t i)
{
    message      *m = &p->messages[i];
    const int     rank = m->src;
    const int64_t bytes = bytes_of(m, m->out++);
    const bool    last = m->out == m->n;
    lane         *l = lane_of(p, rank, m->piece);

    if (m->far)
        enter_port(p, i, bytes);
    else
        add_event(p, end_of(p->now, p->latency_ps[0]), AT_CORE, i);
    copy_more(p, i);
    if (last) {
        l->sends_under_way--;
        post_sends(p, rank, l);
        try_end(p, rank, l);
    }
}

static void on_left_port(player *p, int32_t i)
{
    p->messages[i].left++;
    copy_more(p, i);
}

static double uplink_byte(const player *p)
{
    return p->cluster->figures.port_byte * p->cluster->taper / p->cluster->rack_hosts;
}

static void on_rack_out(player *p, int32_t i)
{
    message      *m = &p->messages[i];
    const int64_t head = serve(p, &p->rack_out[tti_cluster_rack(p->cluster, m->src)], bytes_of(m, m->rack_out++),
                               uplink_byte(p), 0);

    add_event(p, end_of(head, p->latency_ps[1]), AT_RACK_IN, i);
}

static void on_rack_in(player *p, int32_t i)
{
    message      *m = &p->messages[i];
    const int64_t head = serve(p, &p->rack_in[tti_cluster_rack(p->cluster, m->dst)], bytes_of(m, m->rack_in++),
                               uplink_byte(p), 0);

    add_event(p, head, AT_PORT_IN, i);
}

/* When the tail has left the sender's port, a latency later. Of equal ports without buckets that is never what counts. */
static int64_t tail_of(const player *p, int32_t i, int quantum)
{
    return p->tails == NULL ? 0 : end_of(p->tails[(int64_t)i * QUANTA_MAX + quantum], p->latency_ps[1]);
}

/* The tail comes when the slowest of its ways has passed it on. */
static void on_port_in(player *p, int32_t i)
{
    message      *m = &p->messages[i];
    server       *port = port_of(p, p->in, m->dst);
    const int64_t sent = tail_of(p, i, m->in);
    int64_t       bytes = bytes_of(m, m->in++), tail;

    pass_port(p, port, bytes);
    tail = end_of(p->now, m->other_rack ? tti_ps((double)bytes * uplink_byte(p)) : 0);
    add_event(p, later(later(port->free_at, tail), sent), AT_CORE, i);
}

static void on_core(player *p, int32_t i)
{
    message        *m = &p->messages[i];
    const tti_tier *tier = tier_of(p, m);
    const bool      last = m->taken + 1 == m->n;
    const double    ns = (last ? tier->post - tier->uneven : 0) + (double)bytes_of(m, m->taken++) * tier->recv_byte;
    const int64_t   done = work(p, m->dst, tti_ps(ns));

    if (last)
        add_event(p, done, DELIVERED, i);
}

static void on_delivered(player *p, int32_t i)
{
    message  *m = &p->messages[i];
    const int rank = m->dst;
    lane     *l = lane_of(p, rank, m->piece);

    p->played.received++;
    p->played.bytes_received += m->bytes;
    if (!is_at(l, m)) {
        m->next = p->early[rank];
        p->early[rank] = i;
        return;
    }
    give_place(p, i);
    l->recvs_left--;
    try_end(p, rank, l);
}

static void on_steps_done(player *p, int32_t i)
{
    const int rank = i / p->tape->window;
    lane     *l = &p->lanes[i];

    if (go_on(p, rank, l))
        try_end(p, rank, l);
}

static void handle(player *p, const tti_agenda_event *event)
{
    static void (*const on[])(player *, int32_t) = {
        [AT_PORT_OUT] = on_port_out, [LEFT_PORT] = on_left_port, [AT_RACK_OUT] = on_rack_out,
        [AT_RACK_IN] = on_rack_in,   [AT_PORT_IN] = on_port_in,  [AT_CORE] = on_core,
        [DELIVERED] = on_delivered,  [STEPS_DONE] = on_steps_done,
    };

    p->now = event->at;
    on[event->what & ((1 << STAGE_BITS) - 1)](p, (int32_t)(event->what >> STAGE_BITS));
}

/* ---- a play ------------------------------------------------------------------------------------ */

static void share_cores(player *p)
{
    int r;

    for (r = 0; r < p->tape->n_ranks; r++) {
        core *c = &p->cores[tti_cluster_core(p->cluster, r)];

        c->shared = c->last != NOBODY;
        c->last = r;
    }
    for (r = 0; r < p->n_cores; r++)
        p->cores[r].last = NOBODY;
}

static tutti_status set_up(player *p)
{
    const tti_cluster *c = p->cluster;
    const int          n = p->tape->n_ranks;
    int                i;

    p->n_hosts = tti_cluster_host(c, n - 1) + 1;
    p->n_racks = tti_cluster_rack(c, n - 1) + 1;
    p->n_cores = c->one_machine ? c->cores : p->n_hosts * c->cores;
    p->lanes = calloc((size_t)n * (size_t)p->tape->window, sizeof *p->lanes);
    p->early = malloc((size_t)n * sizeof *p->early);
    p->cores = calloc((size_t)p->n_cores, sizeof *p->cores);
    p->out = calloc((size_t)p->n_hosts, sizeof *p->out);
    p->in = calloc((size_t)p->n_hosts, sizeof *p->in);
    p->rack_out = calloc((size_t)p->n_racks, sizeof *p->rack_out);
    p->rack_in = calloc((size_t)p->n_racks, sizeof *p->rack_in);
    if (p->lanes == NULL || p->early == NULL || p->cores == NULL || p->out == NULL || p->in == NULL ||
        p->rack_out == NULL || p->rack_in == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a simulation of %d ranks", n);
    for (i = 0; i < n; i++)
        p->early[i] = NOBODY;
    for (i = 0; i < p->n_cores; i++)
        p->cores[i].last = NOBODY;
    share_cores(p);
    p->free_place = NOBODY;
    p->latency_ps[0] = tti_ps(c->figures.local.latency);
    p->latency_ps[1] = tti_ps(c->figures.far.latency);
    p->give_ps = tti_ps(c->figures.machine.give);
    p->burst_ps = tti_ps(c->burst * c->figures.port_byte);
    return TUTTI_OK;
}

static void tear_down(player *p)
{
    tti_agenda_release(&p->agenda);
    free(p->lanes);
    free(p->early);
    free(p->cores);
    free(p->out);
    free(p->in);
    free(p->rack_out);
    free(p->rack_in);
    free(p->messages);
    free(p->tails);
}

static void begin_lane(player *p, int rank, int w)
{
    lane *l = &p->lanes[rank * p->tape->window + w];

    *l = (lane){ .piece = w, .ended = w >= p->tape->n_pieces };
    if (l->ended)
        return;
    if (tti_tape_part_of(p->tape, rank, w)->n_phases > 0)
        begin_phase(p, rank, l);
    else
        go_on(p, rank, l);
    try_end(p, rank, l);
}

/* All at one time; until that is over nothing arrives. What cores and ports were given before counts on. */
static void begin(player *p)
{
    int rank, w;

    for (rank = 0; rank < p->tape->n_ranks; rank++)
        for (w = 0; w < p->tape->window; w++)
            begin_lane(p, rank, w);
}

static tutti_status see_to_the_end(const player *p)
{
    int i;

    if (p->now >= TTI_PS_MAX)
        return tti_fail(TUTTI_E_UNSUPPORTED,
                        "a simulation came to more than %lld days, which is too long\n"
                        "  next: look in the file of figures for one that is too large, or take fewer bytes or calls",
                        (long long)(TTI_PS_MAX / 1000000000000 / (24 * 60 * 60)));
    if (p->agenda.full || p->full)
        return tti_fail(TUTTI_E_UNSUPPORTED,
                        "a simulation came to more than %lld events, which is too many\n"
                        "  next: take fewer ranks, bytes or calls",
                        (long long)p->played.events);
    for (i = 0; i < p->tape->n_ranks * p->tape->window; i++)
        if (!p->lanes[i].ended)
            return tti_fail(TUTTI_E_STATE, "rank %d waits for %u messages in step %u that nobody sends",
                            i / p->tape->window, p->lanes[i].recvs_left, p->lanes[i].number + 1);
    return TUTTI_OK;
}

static void count_ports(player *p)
{
    int i;

    for (i = 0; i < p->n_hosts; i++)
        p->played.port_bytes = later(p->played.port_bytes, later(p->out[i].bytes, p->in[i].bytes));
    for (i = 0; i < p->n_racks; i++)
        p->played.uplink_bytes = later(p->played.uplink_bytes, later(p->rack_out[i].bytes, p->rack_in[i].bytes));
}

/* One call, from now on. */
static tutti_status play(player *p)
{
    tti_agenda_event event;

    begin(p);
    while (!p->full && p->now < TTI_PS_MAX && tti_agenda_take(&p->agenda, &event)) {
        handle(p, &event);
        p->played.events++;
    }
    return see_to_the_end(p);
}

/* The i-th call's place among the hosts. */
static int host_of_call(const player *p, const tti_calls *calls, int i)
{
    return calls->every > 0 ? i / calls->every % p->n_hosts : 0;
}

static tutti_status play_all(player *p, tti_calls *calls, tti_played *played_out)
{
    tutti_status st = TUTTI_OK;
    int64_t      begun;
    int          i;

    for (i = 0; i < calls->n && st == TUTTI_OK; i++) {
        p->first_host = host_of_call(p, calls, i);
        begun = p->now;
        st = play(p);
        calls->each_ps[i] = p->now - begun;
        p->now = end_of(p->now, calls->gap_ps);
        if (i == 0 && st == TUTTI_OK) {
            p->played.end_ps = calls->each_ps[0];
            count_ports(p);
            *played_out = p->played;
        }
    }
    return st;
}

tutti_status tti_motion_play_calls(const tti_cluster *cluster, const tti_tape *tape, tti_calls *calls, tti_played *played_out)
{
    player       p = { .cluster = cluster, .tape = tape };
    tti_played   played = { .end_ps = 0 };
    tutti_status st = set_up(&p);

    if (st == TUTTI_OK)
        st = play_all(&p, calls, &played);
    if (st == TUTTI_OK)
        *played_out = played;
    tear_down(&p);
    return st;
}

tutti_status tti_motion_play(const tti_cluster *cluster, const tti_tape *tape, tti_played *played_out)
{
    int64_t   each_ps;
    tti_calls once = { .n = 1, .each_ps = &each_ps };

    return tti_motion_play_calls(cluster, tape, &once, played_out);
}

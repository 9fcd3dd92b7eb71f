/* SPDX-License-Identifier: BSD-3-Clause
 *
 * greeter.c - connecting, accepting, shaking hands.
 *
 *   connect: CONNECT --- connected ---> SHAKE --- welcomed ------------------> handed over
 *                                        \--- closed before ---> REST --- after a pause ---> CONNECT
 *   accept:                             SHAKE --- asks ---> welcome it ------> handed over
 *                                                      \--> HELD --- our own attempt has won ---> closed
 *                                                                 \- our own attempt is lost --> welcome it
 *
 * Stripes A way of several connections begins with one, as above. Whoever made it makes the others, each with a hello
 *         that names its place among them, and the way is there when all are. Until then the first is a party that
 *         gathers. The end that was connected to looks at it meanwhile: no message can come by it before, so that what
 *         is to be read there is its end.
 * Rails   The connections of a way are dealt to the rails of this host by their place, and the first is on the first: so it
 *         leaves from there, and the others, which whoever made it makes, go each to where the other end listens on its rail.
 *         There is a listener on each; by which of them one came is not asked, its place is what it says.
 * Watch   A stream for the watch threads is made as others are, but nobody asks whether it is welcome: it is no way, has
 *         no rivals, and whether it can be had concerns only who wants it, who asks again. One that ends on its way says
 *         nothing about its rank: it may have been pushed out, as any that has not proved itself. A door that is shut does.
 *         But that is not told while somebody from there is at our door who has not proved himself: who leaves comes to say
 *         goodbye before it shuts its door, and what it says may be held up where a refusal is not. After LOOKS it is told
 *         nevertheless: who is at our door may be somebody else, and say nothing.
 * Silence The kernel asks a host that does not answer again after 1, 3, 7, ... 63 s. One that comes back may wait for a
 *         minute for that: so every AGAIN_MS the attempt is begun anew, for CONNECT_MS in all.
 * No way  A host that was cut off and is back has no way to the others for some seconds, nor they to it: the kernel remembers
 *         that nobody answered it. So an attempt that fails for want of a way is begun anew every NO_WAY_PAUSE_MS, and has failed
 *         after NO_WAY_MS, also if nobody says anything any more: who rejects it may do so once a second.
 * Refused A member listens from before its address is known to anybody until it has left the world, and a queue that is full
 *         does not refuse, it drops what comes. So who is refused knows that there is nobody, if no firewall says so.
 * User    Where a secret does not tell who is at the other end of loopback, the kernel is asked whose process answers an attempt of ours,
 *         before the proof goes: until then the other end waits, and behind it, it may send what it has to, and be gone.
 * True    At most one attempt of ours per rank, and opened or lost ends it, and everything else that is
 *         under way with the rank.
 * Fails   A failure of our own attempt is about its rank, and the hook hears of it, unless the rank has come
 *         by itself: its own way here may be open where ours to it is not. What fails on an
 *         accepted connection is a stranger's: it is turned away, and disturbs nobody. Strangers that have
 *         not proved themselves go after STRANGER_MS, however they divide their bytes. With too many under way each newcomer
 *         takes the place of one of them (make_place()). One warning in WARN_MS tells
 *         of them, with how many others there were; the log at level debug has each.
 *         A connection that ends before its hello is over is no stranger's: it may be a knock of another rank's watch thread, an
 *         attempt that was overtaken, or a scanner's. One word at level info in WARN_MS has how many there were.
 *         A member may be pushed out, too, for as long as its proof has not been read, which it knows by the welcome alone: an
 *         attempt of ours that ends before that is made again, TRIES times, each after a pause that others do not have.
 *         Who has really ended refuses it then. That somebody closes all of them is no proof of its end, so the words for it
 *         are the net's; whether it lives is for the watch threads to say. */
#include "transport/tcp/greeter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "wire/addr.h"
#include "wire/interfaces.h"
#include "wire/strangers.h"
#include "wire/tls_stream.h"

enum {
    ANYBODY = -1,
    STRANGER_MS = 30000, /* a member may be stopped, or have no core, for a while */
    STRANGERS_MAX = 64,
    TRIES = 10, /* with their rests less than a second, as a rule */
    REST_MS = 20,
    REST_MORE_MS = 80, /* at most, by chance */
    PAUSE_MS = 100,
    WORD_MS = 3000,
    LOOK_MS = 100, /* at who is at our door, where another one was found shut */
    LOOKS = 30,    /* and no time, for who has no core meanwhile hears nobody */
    WARN_MS = 10000
};

enum { AGAIN_MS = 2000, CONNECT_MS = 120000 }; /* the kernel, too, asks once more within the first */
enum { NO_WAY_PAUSE_MS = 250, NO_WAY_MS = 3000 }; /* from the first failure on; a firewall says the same for ever */

enum { STRIPE_SHIFT = 24 }; /* in a hello: the place of a connection stands above the rank */
enum { WATCH_STRIPE = 0x7f }; /* that of a stream for the watch threads, which belongs to no way */

_Static_assert((int)TTI_TCP_STRIPES_MAX < (int)WATCH_STRIPE, "places of connections differ from that of a watch's");

typedef enum meeting_state { REST, CONNECT, SHAKE, HELD, SHUT /* for the watch, and not told yet */, OVER } meeting_state;

/* One connection on its way. */
typedef struct meeting {
    meeting_state   state;
    bool            ours;
    int             rank; /* ANYBODY until an accepted one has proved itself */
    int             stripe; /* 0: the one that a way begins with */
    tti_handle      stream;
    bool            sealed;   /* it goes through TLS, whose handshake may be under way */
    int64_t         until_ns; /* an accepted one that has not proved itself by then goes */
    tti_addr        addr;     /* ours: where to; else from where */
    tti_addr_source source; /* of that, where it is not ours */
    int             tries;    /* ours: that ended before they were welcomed */
    int64_t         word_ns;  /* ours: when to say that nobody answers */
    int64_t         again_ns; /* ours, while it connects or rests: when to begin anew; SHUT: when to look again whether to tell it */
    int             looks;    /* so often was that done */
    int64_t         over_ns;  /* and when it has failed */
    int64_t         no_way_ns; /* the same where there is no way; TTI_FOREVER: none was missing yet */
    tti_handshake   shake;
} meeting;

/* A way of several connections, of which the first is there. */
typedef struct party {
    int        rank;
    bool       ours;
    int        have;
    tti_handle streams[TTI_TCP_STRIPES_MAX]; /* TTI_NO_HANDLE: not yet */
} party;

struct tti_greeter {
    tti_greeter_config config;
    int                n_rails; /* 1 at least: as many listeners */
    meeting          **list; /* [n] of room for n_max; each stays where it is */
    int                n, n_max;
    party             *parties; /* [n_parties] of room for [n_ranks]; NULL: ways have one connection each */
    int                n_parties;
    int                n_filled; /* meetings in the poll set; parties follow them, then the listeners */
    int64_t            accept_ns; /* after a failure: not before */
    int64_t            warn_ns;   /* of strangers: not before */
    int                n_unsaid;  /* of them since the last warning */
    int64_t            ended_ns;  /* of connections that ended before their hello was over: not before */
    int                n_ended;   /* of them in all */
};

tutti_status tti_greeter_create(const tti_greeter_config *config, tti_greeter **greeter_out)
{
    tti_greeter *g = calloc(1, sizeof *g);

    if (g == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to connect to other ranks");
    g->config = *config;
    g->n_rails = config->rails != NULL && config->rails->n > 0 ? config->rails->n : 1;
    if (config->n_stripes > 1 && (g->parties = calloc((size_t)config->n_ranks, sizeof *g->parties)) == NULL) {
        free(g);
        return tti_fail(TUTTI_E_NOMEM, "no memory to connect to other ranks");
    }
    *greeter_out = g;
    return TUTTI_OK;
}

/* It leaves the list with the next tti_greeter_fill(). */
static void end_meeting(tti_greeter *g, meeting *m)
{
    g->config.port->ops->close(g->config.port, m->stream);
    m->stream = TTI_NO_HANDLE;
    m->state = OVER;
}

static void free_meeting(meeting *m)
{
    tti_handshake_release(&m->shake);
    free(m);
}

static party *find_party(const tti_greeter *g, int rank)
{
    int i;

    for (i = 0; i < g->n_parties; i++)
        if (g->parties[i].rank == rank)
            return &g->parties[i];
    return NULL;
}

/* Take a party out of the list; its streams are the caller's. */
static party take_party(tti_greeter *g, party *p)
{
    const party taken = *p;

    *p = g->parties[--g->n_parties];
    return taken;
}

static void end_party(tti_greeter *g, party *p)
{
    const party ended = take_party(g, p);
    int         i;

    for (i = 0; i < g->config.n_stripes; i++)
        g->config.port->ops->close(g->config.port, ended.streams[i]);
}

void tti_greeter_free(tti_greeter *g)
{
    int i;

    if (g == NULL)
        return;
    while (g->n_parties > 0)
        end_party(g, g->parties);
    free(g->parties);
    for (i = 0; i < g->n; i++) {
        end_meeting(g, g->list[i]);
        free_meeting(g->list[i]);
    }
    free(g->list);
    free(g);
}

/* The interface that a connection is on; NULL: there are no rails. A stream for the watch threads is on the first. */
static const tti_rail *rail_of(const tti_greeter *g, int stripe)
{
    const int rail = stripe == WATCH_STRIPE ? 0 : stripe % g->n_rails;

    return g->n_rails > 1 ? &g->config.rails->rail[rail] : NULL;
}

/* The port's connect(), from where the connection belongs, and as it is to be. */
static int leave(const tti_greeter *g, int stripe, const tti_addr *to, tti_handle *stream_out)
{
    tti_port       *port = g->config.port;
    const tti_rail *rail = rail_of(g, stripe);

    if ((rail == NULL && g->config.congestion == NULL) || port->ops->connect_from == NULL)
        return port->ops->connect(port, to, stream_out);
    return port->ops->connect_from(port, rail != NULL ? &rail->addr : NULL, g->config.congestion, to, stream_out);
}

/* Room for one more, made; NULL without memory. */
static meeting *add_meeting(tti_greeter *g, tti_handle stream, int rank, int stripe)
{
    const int n_max = g->n_max * 2 + 8;
    meeting **list = g->list;
    meeting  *m;

    if (g->n == g->n_max) {
        list = realloc(g->list, (size_t)n_max * sizeof(meeting *));
        if (list == NULL)
            return NULL;
        g->list = list;
        g->n_max = n_max;
    }
    m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    *m = (meeting){ .state = rank == ANYBODY ? SHAKE : CONNECT, .ours = rank != ANYBODY, .rank = rank, .stripe = stripe,
                    .stream = stream, .until_ns = TTI_FOREVER, .word_ns = TTI_FOREVER, .no_way_ns = TTI_FOREVER };
    g->list[g->n++] = m;
    return m;
}

static meeting *find_ours(const tti_greeter *g, int rank)
{
    int i;

    for (i = 0; i < g->n; i++)
        if (g->list[i]->ours && g->list[i]->rank == rank && g->list[i]->stripe == 0 && g->list[i]->state != OVER)
            return g->list[i];
    return NULL;
}

static meeting *find_held(const tti_greeter *g, int rank)
{
    int i;

    for (i = 0; i < g->n; i++)
        if (g->list[i]->state == HELD && g->list[i]->rank == rank)
            return g->list[i];
    return NULL;
}

/* Whatever else is under way with rank has lost. */
static void end_rivals(tti_greeter *g, int rank)
{
    int i;

    for (i = 0; i < g->n; i++)
        if (g->list[i]->rank == rank && g->list[i]->state != OVER && g->list[i]->stripe != WATCH_STRIPE)
            end_meeting(g, g->list[i]);
}

/* Our attempt is over: the one that waited for it takes its place. If the rank has given that one up it has
 * closed it, which is found next. */
static void take_held(meeting *held)
{
    held->state = SHAKE;
    tti_handshake_welcome(&held->shake);
}

/* The way that was being made over an attempt of ours, or over one that was welcomed, is not to be had. */
static void lose(tti_greeter *g, int rank, const tti_cause *why)
{
    meeting *held = find_held(g, rank);
    meeting *ours = find_ours(g, rank);
    party   *gathering = find_party(g, rank);

    if (held != NULL) {
        if (ours != NULL)
            end_meeting(g, ours);
        take_held(held);
        return;
    }
    end_rivals(g, rank);
    if (gathering != NULL)
        end_party(g, gathering);
    g->config.hooks.lost(g->config.hooks.context, rank, why);
}

static const char *where(const tti_greeter *g, int rank)
{
    return g->config.whereabouts(g->config.hooks.context, rank);
}

static const char *advice_for(int err)
{
    if (err == -EHOSTUNREACH || err == -ENETUNREACH || err == -EHOSTDOWN)
        return "see that packets get there from here (ip route get, ping): if not, let that rank name another interface "
               "(TUTTI_SOCKET_IFNAME); if so, a firewall refuses: let that port through, or set TUTTI_PORT_RANGE to ports that are";
    return "let that port through between the hosts, or set TUTTI_PORT_RANGE to ports that are";
}

/* Nobody listens where the rank did: it has ended its world or its life, unless a firewall says so for it, which
 * none does inside a host. Anything else is the net's. */
static void lose_unreachable(tti_greeter *g, int rank, int stripe, const tti_addr *addr, int err)
{
    const tti_rail *rail = rail_of(g, stripe);
    char            text[TTI_ADDR_TEXT_MAX], by[TTI_INTERFACE_NAME_MAX + 24] = "", reason[64];
    tti_cause       why;

    tti_addr_format(addr, text, sizeof text);
    if (rail != NULL)
        snprintf(by, sizeof by, " by interface '%s'", rail->name);
    if ((err == -ECONNREFUSED || err == -ECONNRESET) && tti_addr_is_own(g->config.port, addr))
        tti_cause_set(&why, TUTTI_E_PEER,
                      "rank %d (%s) has left or died: nobody listens at %s any more\n"
                      "  next: see what it reported; that is an address of this host: if the rank is on another one, let it name an "
                      "interface that others reach (TUTTI_SOCKET_IFNAME, TUTTI_ADVERTISE)",
                      rank, where(g, rank), text);
    else if (err == -ECONNREFUSED || err == -ECONNRESET)
        tti_cause_set(&why, TUTTI_E_PEER,
                      "rank %d (%s) has left or died: nobody listens at %s any more\n"
                      "  next: see what it reported; if it still runs, a firewall refuses: set "
                      "TUTTI_PORT_RANGE to ports that are let through",
                      rank, where(g, rank), text);
    else
        tti_cause_set(&why, TUTTI_E_NETWORK, "rank %d cannot connect to rank %d (%s) at %s%s: %s\n  next: %s", g->config.rank, rank,
                      where(g, rank), text, by, strerror_r(-err, reason, sizeof reason), advice_for(err));
    lose(g, rank, &why);
}

/* One of ours is on its way. */
static void await_answer(const tti_greeter *g, meeting *m, const tti_addr *addr)
{
    m->addr = *addr;
    m->again_ns = tti_deadline(g->config.port, AGAIN_MS, 0);
    m->over_ns = tti_deadline(g->config.port, CONNECT_MS, 0);
}

/* Whether an attempt that has failed with err is to be begun anew a little later, as there is no way just now. Its stream is
 * closed then. */
static bool waits_for_way(const tti_greeter *g, meeting *m, int err)
{
    tti_port     *port = g->config.port;
    const int64_t now_ns = tti_port_now(port);

    if ((err != -EHOSTUNREACH && err != -ENETUNREACH && err != -EHOSTDOWN) || m->stripe == WATCH_STRIPE) /* who wants that asks again */
        return false;
    if (m->no_way_ns == TTI_FOREVER)
        m->no_way_ns = now_ns + NO_WAY_MS * TTI_MS;
    if (now_ns >= m->no_way_ns)
        return false;
    port->ops->close(port, m->stream);
    m->stream = TTI_NO_HANDLE;
    m->again_ns = now_ns + NO_WAY_PAUSE_MS * TTI_MS;
    return true;
}

/* False: the way is lost. */
static bool begin_connection(tti_greeter *g, int rank, int stripe, const tti_addr *addr)
{
    tti_port  *port = g->config.port;
    tti_handle stream = TTI_NO_HANDLE;
    int        err = leave(g, stripe, addr, &stream);
    meeting   *m = add_meeting(g, err == 0 ? stream : TTI_NO_HANDLE, rank, stripe);

    if (m != NULL) {
        await_answer(g, m, addr);
        m->word_ns = tti_deadline(port, WORD_MS, 0);
        if (err == 0 || waits_for_way(g, m, err))
            return true;
        end_meeting(g, m);
    } else {
        port->ops->close(port, err == 0 ? stream : TTI_NO_HANDLE);
    }
    lose_unreachable(g, rank, stripe, addr, err != 0 ? err : -ENOMEM);
    return false;
}

void tti_greeter_connect(tti_greeter *g, int rank, const tti_addr *addr)
{
    (void)begin_connection(g, rank, 0, addr);
}

/* Connecting for the watch thread has failed. That a door is shut is told at the end of a turn: tell_shut(). */
static void end_watch(tti_greeter *g, meeting *m, int err)
{
    end_meeting(g, m);
    if (err != -ECONNREFUSED || g->config.hooks.shut == NULL)
        return;
    m->state = SHUT;
    m->again_ns = 0;
}

/* 0, or what connecting failed with. */
static int connect_anew(tti_greeter *g, meeting *m)
{
    tti_port  *port = g->config.port;
    tti_handle stream = TTI_NO_HANDLE;
    const int  err = leave(g, m->stripe, &m->addr, &stream);

    port->ops->close(port, m->stream);
    m->stream = stream;
    m->again_ns = tti_deadline(port, AGAIN_MS, 0);
    return err;
}

static meeting *find_watch(const tti_greeter *g, int rank)
{
    int i;

    for (i = 0; i < g->n; i++)
        if (g->list[i]->ours && g->list[i]->rank == rank && g->list[i]->stripe == WATCH_STRIPE && g->list[i]->state != OVER)
            return g->list[i];
    return NULL;
}

void tti_greeter_watch(tti_greeter *g, int rank, const tti_addr *addr)
{
    tti_port  *port = g->config.port;
    tti_handle stream = TTI_NO_HANDLE;
    meeting   *m;
    int        err;

    if (find_watch(g, rank) != NULL)
        return;
    err = leave(g, WATCH_STRIPE, addr, &stream);
    m = add_meeting(g, err == 0 ? stream : TTI_NO_HANDLE, rank, WATCH_STRIPE);
    if (m != NULL) {
        await_answer(g, m, addr);
        if (err != 0)
            end_watch(g, m, err);
        return;
    }
    port->ops->close(port, err == 0 ? stream : TTI_NO_HANDLE);
}

bool tti_greeter_withdraw(tti_greeter *g, int rank)
{
    meeting *m = find_ours(g, rank);

    if (m == NULL || m->state == SHAKE || find_held(g, rank) != NULL)
        return false;
    end_meeting(g, m);
    return true;
}

/* What the hello of a connection says who is there. */
static uint32_t told_rank(int rank, int stripe)
{
    return (uint32_t)rank | (uint32_t)stripe << STRIPE_SHIFT;
}

static void begin_shake(tti_greeter *g, meeting *m)
{
    tti_hello_config config = { .client = m->ours, .purpose = TTI_PURPOSE_PEER,
                                .rank = told_rank(g->config.rank, m->stripe), .secret = g->config.secret,
                                .peer = "a rank of another host" };

    memcpy(config.scope, g->config.scope, sizeof config.scope);
    tti_handshake_begin(&m->shake, g->config.port, &config);
    m->state = SHAKE;
    m->no_way_ns = TTI_FOREVER; /* there was one */
    if (!m->ours)
        m->until_ns = tti_deadline(g->config.port, STRANGER_MS, 0);
}

/* ---- shaking hands ---- */

static bool is_closing(int err)
{
    return err == 0 || err == -ECONNRESET || err == -EPIPE;
}

/* An attempt of ours has ended before it was welcomed: later again. */
static void rest(tti_greeter *g, meeting *m)
{
    tti_port *port = g->config.port;
    uint32_t  dice;

    port->ops->random(port, &dice, sizeof dice);
    port->ops->close(port, m->stream);
    tti_handshake_release(&m->shake);
    m->stream = TTI_NO_HANDLE;
    m->sealed = false;
    m->tries++;
    m->again_ns = tti_deadline(port, REST_MS + dice % (REST_MORE_MS + 1), 0);
    m->state = REST;
}

/* All attempts have ended like this one. */
static void lose_unwelcome(tti_greeter *g, meeting *m, int err)
{
    char      text[TTI_ADDR_TEXT_MAX], reason[64];
    tti_cause why;

    tti_cause_set(&why, TUTTI_E_NETWORK,
                  "rank %d cannot join rank %d (%s): %d connections to %s ended before they were welcomed, last: %s\n"
                  "  next: see what it reported: strangers may crowd its port, or it may have given this rank up",
                  g->config.rank, m->rank, where(g, m->rank), m->tries + 1, tti_addr_format(&m->addr, text, sizeof text),
                  is_closing(err) ? "closed by the other side" : strerror_r(-err, reason, sizeof reason));
    end_meeting(g, m);
    lose(g, m->rank, &why);
}

/* The stream of one of ours has ended. Who waits for us meanwhile need not wait for another. */
static void end_ours(tti_greeter *g, meeting *m, int err)
{
    if (m->tries < TRIES && find_held(g, m->rank) == NULL)
        rest(g, m);
    else
        lose_unwelcome(g, m, err);
}

/* Whoever did it: the other end may see the same, and tell it of us. */
static void set_closed(const tti_greeter *g, int rank, tti_cause *why)
{
    tti_cause_set(why, TUTTI_E_PEER, TTI_NEW_CONNECTION_TO "%s) was closed: that rank has left or died, or something on the "
                  "way did it", rank, where(g, rank));
}

/* The stream of one that was welcomed has ended (err 0) or failed: the way was being made over it. */
static void end_welcomed(tti_greeter *g, meeting *m, int err)
{
    const int rank = m->rank;
    tti_cause why;

    if (is_closing(err))
        set_closed(g, rank, &why);
    else
        tti_cause_set_errno(&why, TUTTI_E_PEER, -err, "the new connection to rank %d (%s) failed", rank,
                            where(g, rank));
    end_meeting(g, m);
    if (m->stripe != WATCH_STRIPE)
        lose(g, rank, &why);
}

/* An accepted one has ended before its hello was over. */
static void tell_of_ended(tti_greeter *g)
{
    const int64_t now_ns = tti_port_now(g->config.port);
    const bool    is_said = now_ns >= g->ended_ns;

    g->n_ended++;
    if (is_said)
        g->ended_ns = now_ns + WARN_MS * TTI_MS;
    tti_log(is_said ? TTI_LOG_INFO : TTI_LOG_DEBUG, "connections that ended before their hello was over: %d", g->n_ended);
}

/* The stream of any has. */
static void end_broken(tti_greeter *g, meeting *m, int err)
{
    if (m->ours && m->stripe != WATCH_STRIPE) {
        end_ours(g, m, err);
    } else if (m->rank != ANYBODY) {
        end_welcomed(g, m, err);
    } else {
        end_meeting(g, m);
        tell_of_ended(g);
    }
}

/* A stranger was turned away, because of this. A crowd of them must not fill the log. */
static void tell_of_stranger(tti_greeter *g, const char *why)
{
    const int64_t now_ns = tti_port_now(g->config.port);

    if (now_ns < g->warn_ns) {
        g->n_unsaid++;
        tti_log(TTI_LOG_DEBUG, "turned away a stranger: %s", why);
        return;
    }
    if (g->n_unsaid > 0)
        tti_log(TTI_LOG_WARN, "turned away a stranger, and %d more before: %s", g->n_unsaid, why);
    else
        tti_log(TTI_LOG_WARN, "turned away a stranger: %s", why);
    g->n_unsaid = 0;
    g->warn_ns = now_ns + WARN_MS * TTI_MS;
}

/* The peer has said something it should not: st, with this thread's words. */
static void end_wrong(tti_greeter *g, meeting *m, tutti_status st)
{
    const int rank = m->rank;
    tti_cause why;

    if (!m->ours || m->stripe == WATCH_STRIPE) {
        tell_of_stranger(g, tutti_last_error());
        end_meeting(g, m);
        return;
    }
    tti_cause_set(&why, st, "rank %d cannot join rank %d (%s): %.300s", g->config.rank, rank, where(g, rank),
                  tutti_last_error());
    lose(g, rank, &why);
}

static tutti_status fail_unexpected(uint32_t told)
{
    return tti_fail(TUTTI_E_AUTH, "a peer says that it is rank %u, which was not expected there", told);
}

static tti_attempt attempt_of(const meeting *own)
{
    if (own == NULL)
        return TTI_ATTEMPT_NONE;
    return own->state == SHAKE ? TTI_ATTEMPT_TALKS : TTI_ATTEMPT_CALLS;
}

/* One more connection of a way that gathers is welcome, if it was made by whoever made the first. */
static void answer_stripe(tti_greeter *g, meeting *m, int rank, int stripe)
{
    const party *p = find_party(g, rank);

    if (p == NULL || p->ours || stripe >= g->config.n_stripes || p->streams[stripe] != TTI_NO_HANDLE) {
        end_meeting(g, m);
        return;
    }
    m->rank = rank;
    m->stripe = stripe;
    m->until_ns = TTI_FOREVER;
    tti_handshake_welcome(&m->shake);
}

/* One for the watch threads is welcome where there is one. */
static void answer_watch(tti_greeter *g, meeting *m, int rank)
{
    if (g->config.hooks.watched == NULL) {
        end_meeting(g, m);
        return;
    }
    m->rank = rank;
    m->stripe = WATCH_STRIPE;
    tti_handshake_welcome(&m->shake);
}

/* An accepted peer has proved itself. */
static void answer(tti_greeter *g, meeting *m)
{
    const int      stripe = (int)(tti_handshake_peer_rank(&m->shake) >> STRIPE_SHIFT);
    const uint32_t told = tti_handshake_peer_rank(&m->shake) & ((1U << STRIPE_SHIFT) - 1);
    meeting       *own;

    if (told >= (uint32_t)g->config.n_ranks || (int)told == g->config.rank) {
        end_wrong(g, m, fail_unexpected(told));
        return;
    }
    if (stripe == WATCH_STRIPE) {
        answer_watch(g, m, (int)told);
        return;
    }
    if (stripe > 0) {
        answer_stripe(g, m, (int)told, stripe);
        return;
    }
    own = find_ours(g, (int)told);
    switch (g->config.hooks.judge(g->config.hooks.context, (int)told, attempt_of(own))) {
    case TTI_WELCOME_IT:
        if (own != NULL)
            end_meeting(g, own);
        m->rank = (int)told;
        m->until_ns = TTI_FOREVER;
        tti_handshake_welcome(&m->shake);
        break;
    case TTI_HOLD_IT:
        m->rank = (int)told;
        m->until_ns = TTI_FOREVER;
        m->state = HELD;
        break;
    case TTI_REFUSE_IT: end_meeting(g, m); break;
    }
}

/* Where one connects to for a place, first being where for the first. */
static const tti_addr *addr_of_stripe(const tti_greeter *g, int rank, int stripe, const tti_addr *first)
{
    const int rail = stripe % g->n_rails;

    return rail == 0 ? first : g->config.addr_on(g->config.hooks.context, rank, rail);
}

/* The first connection is there: make the others, or wait for them. */
static void begin_party(tti_greeter *g, int rank, bool ours, const tti_addr *addr)
{
    party *p = &g->parties[g->n_parties++]; /* one for each rank at most */
    int    i;

    *p = (party){ .rank = rank, .ours = ours };
    for (i = 0; i < g->config.n_stripes; i++)
        p->streams[i] = TTI_NO_HANDLE;
    for (i = 1; ours && i < g->config.n_stripes; i++)
        if (!begin_connection(g, rank, i, addr_of_stripe(g, rank, i, addr)))
            return;
}

/* A connection may carry messages, once all of its way may. */
static void gather(tti_greeter *g, int rank, int stripe, tti_handle stream)
{
    party *p = find_party(g, rank);
    party  whole;

    if (p == NULL || p->streams[stripe] != TTI_NO_HANDLE) { /* the way was lost while its others were made */
        g->config.port->ops->close(g->config.port, stream);
        return;
    }
    p->streams[stripe] = stream;
    p->have++;
    if (p->have < g->config.n_stripes)
        return;
    whole = take_party(g, p);
    g->config.hooks.opened(g->config.hooks.context, rank, whole.streams);
}

static void conclude(tti_greeter *g, meeting *m)
{
    const uint32_t   told = tti_handshake_peer_rank(&m->shake);
    const int        rank = m->rank, stripe = m->stripe;
    const bool       ours = m->ours;
    const tti_addr   addr = m->addr;
    const tti_handle stream = m->stream;

    if (told != told_rank(rank, ours ? 0 : stripe)) {
        end_wrong(g, m, fail_unexpected(told));
        return;
    }
    m->stream = TTI_NO_HANDLE;
    if (stripe == WATCH_STRIPE) {
        end_meeting(g, m);
        g->config.hooks.watched(g->config.hooks.context, rank, stream);
        return;
    }
    if (stripe == 0)
        end_rivals(g, rank);
    else
        end_meeting(g, m);
    if (g->config.n_stripes <= 1) {
        g->config.hooks.opened(g->config.hooks.context, rank, &stream);
        return;
    }
    if (stripe == 0)
        begin_party(g, rank, ours, &addr);
    gather(g, rank, stripe, stream);
}

/* One send or receive: its result, as the port's; -EAGAIN also when something was wrong, and ended. */
static int64_t step(tti_greeter *g, meeting *m)
{
    tti_port    *port = g->config.port;
    uint8_t      in[TTI_HELLO_SERVER_BYTES];
    tti_part     part;
    tutti_status st;
    int64_t      n;

    part.data = tti_handshake_output(&m->shake, &part.size);
    if (part.size > 0) {
        n = port->ops->send(port, m->stream, &part, 1);
        if (n > 0)
            tti_handshake_sent(&m->shake, (size_t)n);
        return n;
    }
    n = port->ops->recv(port, m->stream, in, tti_handshake_wants(&m->shake));
    if (n <= 0)
        return n;
    st = tti_handshake_feed(&m->shake, in, (size_t)n);
    if (st == TUTTI_OK)
        return n;
    part.data = tti_handshake_last_words(&m->shake, &part.size);
    if (part.data != NULL)
        (void)port->ops->send(port, m->stream, &part, 1);
    end_wrong(g, m, st);
    return -EAGAIN;
}

/* Between the hello and the word. False: more has to come, or it is over. */
static bool seal(tti_greeter *g, meeting *m)
{
    tutti_status st = TUTTI_OK;
    bool         done = false;

    if (!m->sealed)
        st = tti_tls_attach(g->config.port, m->stream, tti_handshake_hello(&m->shake));
    m->sealed = true;
    if (st == TUTTI_OK)
        st = tti_tls_shake_on(m->stream, &done);
    if (done)
        tti_handshake_sealed(&m->shake);
    else if (st == TUTTI_E_NETWORK)
        end_broken(g, m, 0);
    else if (st != TUTTI_OK)
        end_wrong(g, m, st);
    return done;
}

/* Whose process has answered one of ours. False: it is over. */
static bool knows_user(tti_greeter *g, meeting *m)
{
    const tutti_status st = tti_secret_check_user(g->config.secret, g->config.port, m->stream, where(g, m->rank));

    if (st == TUTTI_E_NETWORK) /* it was closed meanwhile */
        end_broken(g, m, 0);
    else if (st != TUTTI_OK)
        end_wrong(g, m, st);
    return st == TUTTI_OK;
}

static void turn_shake(tti_greeter *g, meeting *m)
{
    int64_t n;

    while (m->state == SHAKE) {
        if (tti_handshake_done(&m->shake)) {
            conclude(g, m);
            return;
        }
        if (tti_handshake_seals(&m->shake)) {
            if (!seal(g, m))
                return;
            continue;
        }
        if (tti_handshake_asks(&m->shake)) {
            answer(g, m);
            continue;
        }
        if (tti_hello_is_answered(tti_handshake_hello(&m->shake)) && !knows_user(g, m))
            return;
        n = step(g, m);
        if (n == -EAGAIN)
            return;
        if (n <= 0)
            end_broken(g, m, (int)n);
    }
}

static void turn_meeting(tti_greeter *g, meeting *m)
{
    int err;

    if (m->state == CONNECT) {
        err = g->config.port->ops->connect_result(g->config.port, m->stream);
        if (err != 0) {
            if (waits_for_way(g, m, err))
                return;
            if (m->stripe == WATCH_STRIPE) {
                end_watch(g, m, err);
                return;
            }
            if (err == -ECONNRESET) { /* it was taken, and cut before this rank looked: one who has left refuses the next */
                end_ours(g, m, err);
                return;
            }
            end_meeting(g, m);
            lose_unreachable(g, m->rank, m->stripe, &m->addr, err);
            return;
        }
        if (m->stripe == WATCH_STRIPE && g->config.hooks.reached != NULL)
            g->config.hooks.reached(g->config.hooks.context, m->rank);
        begin_shake(g, m);
    }
    if (m->state == SHAKE)
        turn_shake(g, m);
    else if (m->state == HELD)
        end_meeting(g, m); /* its end: the peer welcomes ours. Bytes: it must not send any */
}

/* ---- accepting and polling ---- */

static bool is_crowded(const tti_greeter *g)
{
    const int stripes = g->config.n_stripes > 1 ? g->config.n_stripes : 1;

    return g->n >= g->config.n_ranks * stripes + STRANGERS_MAX;
}

static bool is_stranger(const meeting *m)
{
    return !m->ours && m->rank == ANYBODY && m->state == SHAKE;
}

static const tti_addr_source *stranger_at(const void *context, int i)
{
    const tti_greeter *g = context;

    return is_stranger(g->list[i]) ? &g->list[i]->source : NULL;
}

/* Too many are under way, and one more comes from there. */
static void make_place(tti_greeter *g, const tti_addr_source *from)
{
    const tti_strangers crowd = { .context = g, .n = g->n, .stranger_at = stranger_at };
    const int       victim = tti_stranger_to_go(&crowd, g->config.port, from);

    if (victim < 0)
        return;
    tell_of_stranger(g, "it had not proved itself when others came");
    end_meeting(g, g->list[victim]);
}

static void forget_ended(tti_greeter *g)
{
    int i, n = 0;

    for (i = 0; i < g->n; i++)
        if (g->list[i]->state != OVER)
            g->list[n++] = g->list[i];
        else
            free_meeting(g->list[i]);
    g->n = n;
}

/* One that was accepted may say who it is, if it is a process of this user as far as anybody can tell. */
static void take_in(tti_greeter *g, meeting *m)
{
    switch (tti_secret_check_user(g->config.secret, g->config.port, m->stream, "a process at this rank's port")) {
    case TUTTI_OK: begin_shake(g, m); return;
    case TUTTI_E_NETWORK: tell_of_ended(g); break; /* it was closed before this rank asked whose it is */
    default: tell_of_stranger(g, tutti_last_error()); break;
    }
    end_meeting(g, m);
}

static void accept_all(tti_greeter *g, tti_handle listener)
{
    tti_port  *port = g->config.port;
    tti_handle stream = -EAGAIN;
    tti_addr   from;
    meeting   *m;
    int        n;

    for (n = 0; n < TTI_STRANGERS_ACCEPTS_MAX && (stream = port->ops->accept(port, listener, &from)) >= 0; n++) {
        const tti_addr_source source = tti_addr_source_of(&from);

        if (is_crowded(g)) {
            make_place(g, &source);
            forget_ended(g);
        }
        m = add_meeting(g, stream, ANYBODY, 0);
        if (m == NULL) {
            port->ops->close(port, stream);
            return;
        }
        m->addr = from;
        m->source = source;
        take_in(g, m);
    }
    if (stream >= 0 || stream == -EAGAIN)
        return;
    /* No descriptor or no memory is left, and the listener stays readable: try again a little later. */
    tti_log(TTI_LOG_WARN, "cannot accept a connection of another rank: error %d; trying again", -stream);
    g->accept_ns = tti_port_now(port) + PAUSE_MS * TTI_MS;
}

int tti_greeter_room(const tti_greeter *g)
{
    return g->n + g->n_parties + g->n_rails;
}

/* Of ways that gather here the connections that nothing but the end can come by. */
static int fill_parties(const tti_greeter *g, tti_poll *set)
{
    int i;

    for (i = 0; i < g->n_parties; i++)
        set[i] = (tti_poll){ .handle = g->parties[i].ours ? TTI_NO_HANDLE : g->parties[i].streams[0],
                             .want = TTI_READ };
    return g->n_parties;
}

static void turn_party(tti_greeter *g, const tti_poll *polled)
{
    tti_cause why;
    int       i;

    for (i = 0; i < g->n_parties; i++)
        if (!g->parties[i].ours && g->parties[i].streams[0] == polled->handle) {
            const int rank = g->parties[i].rank;

            set_closed(g, rank, &why);
            lose(g, rank, &why);
            return;
        }
}

static uint8_t wants(const meeting *m)
{
    size_t bytes = 0;

    if (m->state == CONNECT)
        return TTI_WRITE;
    if (m->state == SHAKE)
        tti_handshake_output(&m->shake, &bytes);
    return bytes > 0 ? TTI_WRITE : TTI_READ;
}

/* The last in the set. Nobody is let in for a while where that has failed. */
static int fill_listeners(const tti_greeter *g, tti_poll *set, int64_t *until_ns)
{
    const bool rests = g->accept_ns > tti_port_now(g->config.port);
    int        i;

    if (rests && g->accept_ns < *until_ns)
        *until_ns = g->accept_ns;
    for (i = 0; i < g->n_rails; i++)
        set[i] = (tti_poll){ .handle = rests ? TTI_NO_HANDLE : i == 0 ? g->config.listener : g->config.rail_listeners[i],
                             .want = TTI_READ };
    return g->n_rails;
}

int tti_greeter_fill(tti_greeter *g, tti_poll *set, int64_t *until_ns_out)
{
    int i, n;

    forget_ended(g);
    *until_ns_out = TTI_FOREVER;
    for (i = 0; i < g->n; i++) {
        const int64_t until_ns = g->list[i]->until_ns;

        set[i] = (tti_poll){ .handle = g->list[i]->stream, .want = wants(g->list[i]) };
        if (until_ns < *until_ns_out)
            *until_ns_out = until_ns;
        if (g->list[i]->state == CONNECT && g->list[i]->word_ns < *until_ns_out)
            *until_ns_out = g->list[i]->word_ns;
        if ((g->list[i]->state <= CONNECT || g->list[i]->state == SHUT) && g->list[i]->again_ns < *until_ns_out)
            *until_ns_out = g->list[i]->again_ns;
        if (g->list[i]->state == CONNECT && g->list[i]->no_way_ns < *until_ns_out)
            *until_ns_out = g->list[i]->no_way_ns;
    }
    n = g->n + fill_parties(g, set + g->n);
    n += fill_listeners(g, set + n, until_ns_out);
    g->n_filled = g->n;
    return n;
}

static void dismiss_strangers(tti_greeter *g)
{
    const int64_t now_ns = tti_port_now(g->config.port);
    char          why[64];
    int           i;

    for (i = 0; i < g->n; i++)
        if (g->list[i]->state == SHAKE && now_ns >= g->list[i]->until_ns) {
            snprintf(why, sizeof why, "it did not prove itself within %d ms", STRANGER_MS);
            tell_of_stranger(g, why);
            end_meeting(g, g->list[i]);
        }
}

/* The kernel goes on for a while, and the caller may have half an hour: a word on what it waits for. */
static void say_unanswered(tti_greeter *g)
{
    const int64_t now_ns = tti_port_now(g->config.port);
    char          text[TTI_ADDR_TEXT_MAX];
    int           i;

    for (i = 0; i < g->n; i++) {
        meeting        *m = g->list[i];
        const tti_rail *rail = rail_of(g, m->stripe);

        if (m->state != CONNECT || now_ns < m->word_ns)
            continue;
        m->word_ns = TTI_FOREVER;
        tti_log(TTI_LOG_WARN,
                "rank %d (%s) does not answer at %s%s%s%s for %d ms: is that port let through between the hosts? "
                "TUTTI_PORT_RANGE names those that are",
                m->rank, where(g, m->rank), tti_addr_format(&m->addr, text, sizeof text), rail != NULL ? " by interface '" : "",
                rail != NULL ? rail->name : "", rail != NULL ? "'" : "", WORD_MS);
    }
}

/* Those that have rested. */
static void try_again(tti_greeter *g)
{
    const int64_t now_ns = tti_port_now(g->config.port);
    int           i, err;

    for (i = 0; i < g->n; i++) {
        meeting *m = g->list[i];

        if (m->state != REST || now_ns < m->again_ns)
            continue;
        m->state = CONNECT;
        await_answer(g, m, &m->addr);
        m->word_ns = tti_deadline(g->config.port, WORD_MS, 0);
        err = leave(g, m->stripe, &m->addr, &m->stream);
        if (err == 0)
            continue;
        m->stream = TTI_NO_HANDLE;
        if (waits_for_way(g, m, err))
            continue;
        end_meeting(g, m);
        lose_unreachable(g, m->rank, m->stripe, &m->addr, err);
    }
}

/* Those that nobody has answered for long. */
static void ask_again(tti_greeter *g)
{
    const int64_t now_ns = tti_port_now(g->config.port);
    int           i, err;

    for (i = 0; i < g->n; i++) {
        meeting *m = g->list[i];

        if (m->state != CONNECT || (now_ns < m->again_ns && now_ns < m->no_way_ns))
            continue;
        err = now_ns >= m->no_way_ns ? -EHOSTUNREACH : now_ns < m->over_ns ? connect_anew(g, m) : -ETIMEDOUT;
        if (err == 0 || waits_for_way(g, m, err))
            continue;
        if (m->stripe == WATCH_STRIPE) {
            end_watch(g, m, err);
            continue;
        }
        end_meeting(g, m);
        lose_unreachable(g, m->rank, m->stripe, &m->addr, err);
    }
}

/* Whether somebody from addr is at our door who has not proved himself. */
static bool is_visited_from(const tti_greeter *g, const tti_addr *addr)
{
    int i;

    for (i = 0; i < g->n; i++)
        if (!g->list[i]->ours && g->list[i]->state == SHAKE && g->list[i]->addr.family == addr->family &&
            memcmp(g->list[i]->addr.ip, addr->ip, sizeof addr->ip) == 0)
            return true;
    return false;
}

/* Doors that were found shut. Whoever came from there before it was shut is accepted by now. */
static void tell_shut(tti_greeter *g)
{
    const int64_t now_ns = tti_port_now(g->config.port);
    int           i;

    for (i = 0; i < g->n; i++) {
        meeting *m = g->list[i];

        if (m->state != SHUT)
            continue;
        if (now_ns >= m->again_ns) {
            m->looks++;
            m->again_ns = now_ns + LOOK_MS * TTI_MS;
        }
        if (m->looks <= LOOKS && is_visited_from(g, &m->addr))
            continue;
        end_meeting(g, m);
        g->config.hooks.shut(g->config.hooks.context, m->rank);
    }
}

void tti_greeter_turn(tti_greeter *g, const tti_poll *set, int n)
{
    int i;

    for (i = 0; i < g->n_filled; i++)
        if (set[i].got != 0 && g->list[i]->state != OVER)
            turn_meeting(g, g->list[i]);
    for (; i < n - g->n_rails; i++)
        if (set[i].got != 0)
            turn_party(g, &set[i]);
    for (; i < n; i++)
        if (set[i].got != 0)
            accept_all(g, set[i].handle);
    dismiss_strangers(g);
    say_unanswered(g);
    ask_again(g);
    try_again(g);
    tell_shut(g);
}

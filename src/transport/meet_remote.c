/* SPDX-License-Identifier: BSD-3-Clause
 *
 * meet_remote.c - one TCP connection to every member of another host, all made at once.
 *
 * Of two members the higher rank connects and the lower accepts; both say hello. Everything is in flight
 * together and one poll drives it. A stranger at the listener is turned away and does not disturb the
 * others; a member that cannot be reached is an error that names it. */
#include "transport/meet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "wire/addr.h"

enum { ANYBODY = -1, TEXT_MAX = 256, STRANGER_MS = 5000, STRANGERS_MAX = 64 };

typedef enum meeting_state { MEETING_CONNECT, MEETING_HELLO, MEETING_OVER } meeting_state;

/* One connection on its way. */
typedef struct meeting {
    meeting_state state;
    tti_handle    stream;
    int           rank; /* whom we connect to; ANYBODY until an accepted one has told */
    int64_t       until_ns; /* an accepted one must have said its hello */
    tti_hello     hello;
} meeting;

typedef struct meetings {
    tti_mesh              *mesh;
    const tti_mesh_config *config;
    meeting               *list;
    tti_poll              *polls; /* one each, and the listener last */
    int                    n, n_max;
    int                    n_missing; /* members not met yet */
} meetings;

static tutti_status grow(meetings *all)
{
    const int n_max = all->n_max * 2 + 8;
    meeting  *list = realloc(all->list, (size_t)n_max * sizeof *list);
    tti_poll *polls;

    if (list != NULL)
        all->list = list;
    polls = realloc(all->polls, ((size_t)n_max + 1) * sizeof *polls);
    if (polls != NULL)
        all->polls = polls;
    if (list == NULL || polls == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to connect to %d ranks", all->n_missing);
    all->n_max = n_max;
    return TUTTI_OK;
}

static tutti_status add_meeting(meetings *all, tti_handle stream, int rank)
{
    tutti_status st = all->n < all->n_max ? TUTTI_OK : grow(all);

    if (st != TUTTI_OK)
        return st;
    all->list[all->n++] = (meeting){
        .state = rank == ANYBODY ? MEETING_HELLO : MEETING_CONNECT, .stream = stream, .rank = rank,
        .until_ns = rank == ANYBODY ? tti_deadline(all->mesh->port, STRANGER_MS, 0) : TTI_FOREVER
    };
    return TUTTI_OK;
}

static void begin_hello(meetings *all, meeting *m)
{
    tti_hello_config config = { .client = m->rank != ANYBODY, .purpose = TTI_PURPOSE_PEER,
                                .rank = (uint32_t)all->mesh->rank, .secret = &all->mesh->secret,
                                .peer = "a rank of another host" };

    memcpy(config.scope, all->mesh->scope, sizeof config.scope);
    tti_hello_begin(&m->hello, all->mesh->port, &config);
    m->state = MEETING_HELLO;
}

static void end_meeting(meetings *all, meeting *m)
{
    all->mesh->port->ops->close(all->mesh->port, m->stream);
    m->stream = TTI_NO_HANDLE;
    m->state = MEETING_OVER;
}

static tutti_status unreachable(meetings *all, int rank, int err)
{
    const tti_addr addr = tti_card_addr(&all->mesh->cards[rank]);
    char           text[TTI_ADDR_TEXT_MAX];

    return tti_fail_errno_as(TUTTI_E_NETWORK, -err, "rank %d cannot connect to rank %d (%s) at %s",
                             all->mesh->rank, rank, all->mesh->members[rank].where,
                             tti_addr_format(&addr, text, sizeof text));
}

static tutti_status start_connects(meetings *all)
{
    tti_mesh    *mesh = all->mesh;
    tutti_status st = TUTTI_OK;
    int          rank;

    for (rank = 0; st == TUTTI_OK && rank < mesh->n_ranks; rank++) {
        const tti_addr addr = tti_card_addr(&mesh->cards[rank]);
        tti_handle     stream = TTI_NO_HANDLE;
        int            err;

        if (mesh->members[rank].host == mesh->members[mesh->rank].host)
            continue;
        all->n_missing++;
        if (rank > mesh->rank)
            continue;
        err = mesh->port->ops->connect(mesh->port, &addr, &stream);
        if (err != 0)
            return unreachable(all, rank, err);
        st = add_meeting(all, stream, rank);
        if (st != TUTTI_OK)
            mesh->port->ops->close(mesh->port, stream);
    }
    return st;
}

/* An accepted peer has told its rank: it must be one that connects to us, and not here yet. */
static bool is_expected(const meetings *all, uint32_t rank)
{
    const tti_mesh *mesh = all->mesh;

    return rank < (uint32_t)mesh->n_ranks && (int)rank > mesh->rank &&
           mesh->members[rank].host != mesh->members[mesh->rank].host &&
           mesh->members[rank].stream == TTI_NO_HANDLE;
}

static tutti_status conclude(meetings *all, meeting *m)
{
    const uint32_t told = tti_hello_peer_rank(&m->hello);
    const bool     accepted = m->rank == ANYBODY;

    if (accepted ? !is_expected(all, told) : told != (uint32_t)m->rank) {
        tti_fail(TUTTI_E_AUTH, "a peer says that it is rank %u, which was not expected there", told);
        return TUTTI_E_AUTH;
    }
    all->mesh->members[told].stream = m->stream;
    m->stream = TTI_NO_HANDLE;
    m->state = MEETING_OVER;
    all->n_missing--;
    return TUTTI_OK;
}

/* Move the hello as far as the stream lets it. */
static tutti_status turn_hello(meetings *all, meeting *m)
{
    tti_port   *port = all->mesh->port;
    uint8_t     bytes[TTI_HELLO_SERVER_BYTES];
    const void *out;
    size_t      n;
    int64_t     moved;
    tutti_status st;

    while (!tti_hello_done(&m->hello)) {
        out = tti_hello_output(&m->hello, &n);
        if (n > 0) {
            moved = port->ops->send(port, m->stream, &(tti_part){ out, n }, 1);
            if (moved > 0)
                tti_hello_sent(&m->hello, (size_t)moved);
        } else {
            n = tti_hello_wants(&m->hello);
            moved = port->ops->recv(port, m->stream, bytes, n);
            if (moved == 0)
                return tti_fail(TUTTI_E_NETWORK, "the peer closed the connection during its hello");
            st = moved > 0 ? tti_hello_feed(&m->hello, bytes, (size_t)moved) : TUTTI_OK;
            if (st != TUTTI_OK)
                return st;
        }
        if (moved == -EAGAIN)
            return TUTTI_OK;
        if (moved < 0)
            return tti_fail_errno_as(TUTTI_E_NETWORK, (int)-moved, "the connection failed during its hello");
    }
    return conclude(all, m);
}

/* A failure of an accepted connection is a stranger's, one of our own connections is the job's. */
static tutti_status judge(meetings *all, meeting *m, tutti_status st)
{
    char words[TEXT_MAX];

    if (st == TUTTI_OK)
        return TUTTI_OK;
    snprintf(words, sizeof words, "%s", tutti_last_error());
    end_meeting(all, m);
    if (m->rank != ANYBODY)
        return tti_fail(st, "rank %d cannot join rank %d (%s): %s", all->mesh->rank, m->rank,
                        all->mesh->members[m->rank].where, words);
    tti_log(TTI_LOG_WARN, "turned away a stranger: %s", words);
    return TUTTI_OK;
}

/* Accepted connections that say nothing do not hold their place for ever. */
static void dismiss_silent(meetings *all)
{
    const int64_t now_ns = tti_port_now(all->mesh->port);
    int           i;

    for (i = 0; i < all->n; i++)
        if (all->list[i].state != MEETING_OVER && now_ns >= all->list[i].until_ns) {
            tti_log(TTI_LOG_WARN, "turned away a stranger that did not finish its hello in %d ms",
                    STRANGER_MS);
            end_meeting(all, &all->list[i]);
        }
}

static tutti_status turn_meeting(meetings *all, meeting *m)
{
    tti_port *port = all->mesh->port;
    int       err;

    if (m->state == MEETING_CONNECT) {
        err = port->ops->connect_result(port, m->stream);
        if (err != 0) {
            end_meeting(all, m);
            return unreachable(all, m->rank, err);
        }
        begin_hello(all, m);
    }
    return judge(all, m, turn_hello(all, m));
}

static tutti_status accept_all(meetings *all)
{
    tti_port    *port = all->mesh->port;
    tti_handle   stream;
    tutti_status st;

    while ((stream = port->ops->accept(port, all->mesh->tcp_listener, NULL)) >= 0) {
        st = add_meeting(all, stream, ANYBODY);
        if (st != TUTTI_OK) {
            port->ops->close(port, stream);
            return st;
        }
        begin_hello(all, &all->list[all->n - 1]);
    }
    if (stream != -EAGAIN)
        return tti_fail_errno_as(TUTTI_E_NETWORK, -stream, "cannot accept connections of other ranks");
    return TUTTI_OK;
}

/* What each connection waits for now; those that are over leave the list. */
static int fill_polls(meetings *all)
{
    int i, n = 0;

    for (i = 0; i < all->n; i++)
        if (all->list[i].state != MEETING_OVER)
            all->list[n++] = all->list[i];
    all->n = n;
    for (i = 0; i < n; i++) {
        const meeting *m = &all->list[i];
        size_t         out_bytes = 0;

        if (m->state == MEETING_HELLO)
            tti_hello_output(&m->hello, &out_bytes);
        all->polls[i] = (tti_poll){ .handle = m->stream,
                                    .want = m->state == MEETING_CONNECT || out_bytes > 0 ? TTI_WRITE
                                                                                         : TTI_READ };
    }
    /* With too many under way the next ones wait in the kernel's queue. */
    all->polls[n] = (tti_poll){ .handle = n < all->mesh->n_ranks + STRANGERS_MAX ? all->mesh->tcp_listener
                                                                                : TTI_NO_HANDLE,
                                .want = TTI_READ };
    return n;
}

static tutti_status late(const meetings *all)
{
    char   text[TEXT_MAX] = "";
    size_t used = 0;
    int    rank;

    for (rank = 0; rank < all->mesh->n_ranks && used < sizeof text - 16; rank++)
        if (all->mesh->members[rank].host != all->mesh->members[all->mesh->rank].host &&
            all->mesh->members[rank].stream == TTI_NO_HANDLE)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", used > 0 ? ", " : "", rank);
    return tti_fail(TUTTI_E_TIMEOUT, "rank %d has no connection yet with ranks %s of other hosts",
                    all->mesh->rank, text);
}

static tutti_status meet_everybody(meetings *all)
{
    tti_port    *port = all->mesh->port;
    tutti_status st = start_connects(all);
    int64_t      until_ns;
    int          i, n;

    if (st == TUTTI_OK && all->polls == NULL)
        st = grow(all);
    while (st == TUTTI_OK && all->n_missing > 0) {
        n = fill_polls(all);
        until_ns = tti_deadline(port, STRANGER_MS, 0);
        if (all->config->deadline_ns < until_ns)
            until_ns = all->config->deadline_ns;
        if (port->ops->poll(port, all->polls, n + 1, until_ns) == 0 &&
            tti_port_now(port) >= all->config->deadline_ns)
            return late(all);
        for (i = 0; st == TUTTI_OK && i < n; i++)
            if (all->polls[i].got != 0)
                st = turn_meeting(all, &all->list[i]);
        if (st == TUTTI_OK && all->polls[n].got != 0)
            st = accept_all(all);
        dismiss_silent(all);
    }
    return st;
}

tutti_status tti_meet_remote(tti_mesh *mesh, const tti_mesh_config *config)
{
    meetings     all = { .mesh = mesh, .config = config };
    tutti_status st = meet_everybody(&all);
    int          i;

    for (i = 0; i < all.n; i++) {
        tti_hello_release(&all.list[i].hello);
        if (all.list[i].state != MEETING_OVER)
            mesh->port->ops->close(mesh->port, all.list[i].stream);
    }
    free(all.list);
    free(all.polls);
    return st;
}

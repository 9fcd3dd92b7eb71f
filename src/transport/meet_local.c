/* SPDX-License-Identifier: BSD-3-Clause
 *
 * meet_local.c - members of one host prove it, and exchange memory, bells and signs of life.
 *
 * How     Of the members with one host hint the lowest rank is the post office, or the clerk, where there is one (card.c). Each
 *         other connects to its abstract socket and says hello; when all have come, those who come for the cards get them
 *         (meet_cards.c), and everybody's descriptors go to everybody through the office (meet_signs.c).
 *
 * Proof   The socket is scoped by network namespace, its peer's user must be ours, the hello proves the
 *         job's secret, and the token on a member's card must be readable in the memory that it sent.
 *         Whoever has our hint and fails any of it is an error, never a guess.
 * Fails   Who waits for long says so on the board (here.c): on other hosts all of this one are missing, and one of them is the reason.
 *         Strangers at the socket are turned away and do not disturb the others. Who runs the office, and cannot go on
 *         because a member has ended, leaves its words on the board before it hangs up on the others, who would take it
 *         for the one that failed. So that they find words when their time is up, its own is up a little earlier. Whoever loses
 *         another looks for such words first. */
#include "transport/meet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <tutti/private.h>
#include "base/doubt.h"
#include "transport/trouble.h"

enum {
    STRANGER_MS = 2000,
    ENDING_MS = 500, /* of a process, between two of its descriptors */
    LISTED_MAX = 16,
    SPARE_FILES = 256,
    WHO_MAX = TTI_CARD_HOST_MAX + 96
};

#define LOOK_NS  (250 * TTI_MS)
#define AHEAD_NS (100 * TTI_MS)

_Static_assert(ENDING_MS < STRANGER_MS, "an office waits longer for what a stranger says than that one looks whether it has ended");

bool tti_same_host(const tti_mesh *mesh, int a, int b)
{
    return memcmp(mesh->cards[a].host_hint, mesh->cards[b].host_hint, TTI_CARD_HINT_BYTES) == 0;
}

/* For who accepts before anything is said: every process of the host can reach an abstract socket, and other users have no
 * business here. */
static tutti_status check_user(tti_port *port, tti_handle stream, const char *who, int own_rank)
{
    tti_peer_cred cred;
    int           err = port->ops->peer_cred(port, stream, &cred);

    if (err != 0)
        return tti_fail_errno_as(TUTTI_E_AUTH, -err, "cannot tell who is at the local socket");
    if (cred.uid != (int64_t)geteuid())
        return tti_fail(TUTTI_E_AUTH, "%s runs as user %lld, rank %d as user %lld", who, (long long)cred.uid, own_rank,
                        (long long)geteuid());
    return TUTTI_OK;
}

static tti_hello_config hello_config(const tti_mesh *mesh, bool client, const char *peer)
{
    tti_hello_config hello = { .client = client, .purpose = TTI_PURPOSE_LOCAL,
                               .rank = (uint32_t)mesh->rank, .secret = &mesh->door.secret, .peer = peer };

    memcpy(hello.scope, mesh->clerk.rank >= 0 ? mesh->clerk.scope : mesh->door.scope, sizeof hello.scope);
    return hello;
}

/* As tti_hello_run(), by who says in between that it is here. Inside a host nothing is encrypted. */
static tutti_status run_hello(tti_mesh *mesh, tti_handle stream, const tti_hello_config *config, int64_t deadline_ns,
                              uint32_t *rank_out)
{
    const bool   tells = mesh->here.board != NULL && mesh->here.say_ns < deadline_ns;
    tti_hello    hello;
    tutti_status st;

    tti_hello_begin(&hello, mesh->port, config);
    st = tti_hello_advance(mesh->port, stream, &hello, tells ? mesh->here.say_ns : deadline_ns);
    if (st == TUTTI_E_TIMEOUT && tells) {
        tti_here_say(mesh);
        st = tti_hello_advance(mesh->port, stream, &hello, deadline_ns);
    }
    if (st == TUTTI_OK && rank_out != NULL)
        *rank_out = tti_hello_peer_rank(&hello);
    tti_hello_release(&hello);
    return st;
}

/* The office's side of one connection: who is it? -1 for a stranger, who was turned away. */
static int greet(tti_office *office, tti_handle stream)
{
    tti_mesh              *mesh = office->mesh;
    const tti_hello_config hello = hello_config(mesh, false, "a process at the local socket");
    int64_t                deadline = tti_deadline(mesh->port, STRANGER_MS, 0);
    uint32_t               rank = 0;

    if (office->deadline_ns < deadline)
        deadline = office->deadline_ns;
    if (check_user(mesh->port, stream, "a process at the local socket", mesh->rank) != TUTTI_OK ||
        run_hello(mesh, stream, &hello, deadline, &rank) != TUTTI_OK ||
        rank >= (uint32_t)mesh->n_ranks || (int)rank == mesh->rank ||
        !tti_same_host(mesh, (int)rank, mesh->rank) || office->streams[rank] != TTI_NO_HANDLE) {
        tti_log(TTI_LOG_WARN, "turned away a stranger at the local socket: %s", tutti_last_error());
        return -1;
    }
    return (int)rank;
}

/* "5, 6, 7": those of this host that have not come; a long list is cut. */
static void list_missing(const tti_office *office, char *out, size_t size)
{
    const char *between = "";
    int         said = 0, i;
    size_t      used = 0;

    out[0] = '\0';
    for (i = 0; i < office->n; i++) {
        const int rank = office->ranks[i];

        if (rank == office->mesh->rank || office->streams[rank] != TTI_NO_HANDLE)
            continue;
        if (said++ == LISTED_MAX) {
            snprintf(out + used, size - used, ", ...");
            return;
        }
        used += (size_t)snprintf(out + used, size - used, "%s%d", between, rank);
        between = ", ";
    }
}

static tutti_status fail_missing(const tti_office *office, int n_missing)
{
    char list[LISTED_MAX * 12 + 8];

    list_missing(office, list, sizeof list);
    return tti_fail(TUTTI_E_TIMEOUT, "%s %s of this host did not come to the local socket of rank %d",
                    n_missing == 1 ? "rank" : "ranks", list, office->mesh->rank);
}

/* A member that has ended closes its local socket: nobody need wait for it. What was begun here stays in the queue of
 * one that lives, which finds it closed. */
static tutti_status look_for_the_gone(const tti_office *office)
{
    tti_mesh *mesh = office->mesh;
    tti_port *port = mesh->port;
    int       i;

    for (i = 0; i < office->n; i++) {
        const int  rank = office->ranks[i];
        tti_addr   at = { .family = TTI_ADDR_LOCAL };
        tti_handle probe = TTI_NO_HANDLE;
        int        err;

        if (rank == mesh->rank || office->streams[rank] != TTI_NO_HANDLE)
            continue;
        memcpy(at.name, mesh->cards[rank].local_name, sizeof at.name);
        err = port->ops->connect(port, &at, &probe);
        port->ops->close(port, err == 0 ? probe : TTI_NO_HANDLE);
        if (err == -ECONNREFUSED)
            return tti_fail(TUTTI_E_PEER, "rank %d (%s) has ended before it came to the others of this host", rank,
                            mesh->members[rank].where);
    }
    return TUTTI_OK;
}

static tutti_status accept_member(tti_office *office, int *n_missing)
{
    const int64_t look_ns = tti_port_now(office->mesh->port) + LOOK_NS;
    tti_mesh    *mesh = office->mesh;
    tti_port    *port = mesh->port;
    tti_poll     poll = { .handle = mesh->local_listener, .want = TTI_READ };
    tti_handle   stream;
    int          rank;

    if (tti_here_poll(mesh, &poll, 1, look_ns < office->deadline_ns ? look_ns : office->deadline_ns) == 0)
        return tti_doubt_is_vain()                         ? tti_doubt_fail("a rank of this host")
               : tti_port_now(port) >= office->deadline_ns ? fail_missing(office, *n_missing)
                                                           : look_for_the_gone(office);
    stream = port->ops->accept(port, mesh->local_listener, NULL);
    if (stream < 0)
        return stream == -EAGAIN ? TUTTI_OK
                                 : tti_fail_errno_as(TUTTI_E_NETWORK, -stream, "cannot accept a local peer");
    rank = greet(office, stream);
    if (rank < 0) {
        port->ops->close(port, stream);
        return TUTTI_OK;
    }
    office->streams[rank] = stream; /* closed with the others */
    --*n_missing;
    return TUTTI_OK;
}

/* The office's own end of waiting: a little before that of the others. */
static int64_t ahead_of(tti_port *port, int64_t deadline_ns)
{
    const int64_t left_ns = deadline_ns - tti_port_now(port);

    if (deadline_ns == TTI_FOREVER || left_ns <= 0)
        return deadline_ns;
    return deadline_ns - (left_ns / 8 < AHEAD_NS ? left_ns / 8 : AHEAD_NS);
}

static tutti_status run_office(tti_office *office, const tti_board *board)
{
    tti_port    *port = office->mesh->port;
    const int    n_ranks = office->mesh->n_ranks;
    int          n_missing = office->n - 1;
    tutti_status st = TUTTI_OK;
    int          rank;

    office->streams = malloc((size_t)n_ranks * sizeof *office->streams);
    if (office->streams == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to meet %d ranks of this host", office->n);
    for (rank = 0; rank < n_ranks; rank++)
        office->streams[rank] = TTI_NO_HANDLE;
    while (st == TUTTI_OK && n_missing > 0)
        st = accept_member(office, &n_missing);
    if (st == TUTTI_OK && office->mesh->clerk.rank >= 0)
        st = tti_office_hand_cards(office);
    if (st == TUTTI_OK)
        st = tti_office_exchange(office);
    if (st == TUTTI_E_PEER)
        st = tti_trouble_explain(board, port, st);
    if (st != TUTTI_OK)
        tti_trouble_leave(board, port, office->mesh->rank, st);
    for (rank = 0; rank < n_ranks; rank++)
        port->ops->close(port, office->streams[rank]);
    free(office->streams);
    return st;
}

/* Nobody listens at the office's socket: its rank listened there before its card was left. */
static tutti_status fail_closed(const char *who)
{
    return tti_fail(TUTTI_E_PEER, "%s, has ended or given up before the ranks of its host had met", who);
}

static tutti_status fail_unreachable(const tti_mesh *mesh, int office, int err)
{
    return tti_fail_errno_as(TUTTI_E_PEER, -err,
                             "rank %d cannot reach the local socket of rank %d, which says that it is on the same host\n"
                             "  next: TUTTI_TRANSPORT=tcp on all ranks",
                             mesh->rank, office);
}

/* name: of its socket. */
static int connect_to_office(const tti_mesh *mesh, const char *name, tti_handle *stream_out)
{
    tti_addr at = { .family = TTI_ADDR_LOCAL };

    snprintf(at.name, sizeof at.name, "%s", name);
    return mesh->port->ops->connect(mesh->port, &at, stream_out);
}

/* Whether the other end of a stream that was opened just now ends too, before it was answered. */
static bool ends_unanswered(tti_port *port, tti_handle stream, int64_t until_ns)
{
    tti_poll poll = { .handle = stream, .want = TTI_READ };
    char     byte;
    int64_t  got;

    if (tti_doubt_poll(port, &poll, 1, until_ns) == 0)
        return false;
    got = port->ops->recv(port, stream, &byte, sizeof byte);
    return got <= 0 && got != -EAGAIN;
}

/* The stream has ended, with those words: because the office has? A process that ends closes one descriptor after the other, the
 * stream perhaps before the socket where it listens. A second stream tells: nobody takes it any more, or it ends as well with
 * that socket. An office that lives, and did not know this rank, keeps it for longer, as long as nothing is said. */
static tutti_status fail_broken(const tti_mesh *mesh, const char *name, const char *who, int64_t deadline_ns, tutti_status st)
{
    const int64_t end_ns = tti_port_now(mesh->port) + ENDING_MS * TTI_MS;
    tti_handle    probe = TTI_NO_HANDLE;
    const int     err = connect_to_office(mesh, name, &probe);
    const bool    has_ended =
        err == -ECONNREFUSED ||
        (err == 0 && ends_unanswered(mesh->port, probe, end_ns < deadline_ns ? end_ns : deadline_ns));

    mesh->port->ops->close(mesh->port, err == 0 ? probe : TTI_NO_HANDLE);
    return has_ended ? fail_closed(who) : st;
}

/* Come to an office, and be sure of it. The stream is the caller's, also on failure, where there is one. */
static tutti_status enter_office(tti_mesh *mesh, int office, const char *name, const char *who, int64_t deadline_ns,
                                 tti_handle *stream_out)
{
    const tti_hello_config hello = hello_config(mesh, true, who);
    tti_handle             stream = TTI_NO_HANDLE;
    const int              err = connect_to_office(mesh, name, &stream);
    tutti_status           st;

    if (err != 0)
        return err == -ECONNREFUSED ? fail_closed(who) : fail_unreachable(mesh, office, err);
    *stream_out = stream;
    st = run_hello(mesh, stream, &hello, deadline_ns, NULL);
    if (st == TUTTI_E_NETWORK)
        st = fail_broken(mesh, name, who, deadline_ns, st);
    if (st == TUTTI_OK)
        st = check_user(mesh->port, stream, who, mesh->rank);
    return st;
}

/* Anew, by who has the cards. */
static tutti_status visit(tti_mesh *mesh, int office, int64_t deadline_ns, tti_handle *stream_out)
{
    char         who[WHO_MAX];
    tutti_status st;

    snprintf(who, sizeof who, "rank %d (%s), the first of this host", office, mesh->members[office].where);
    st = enter_office(mesh, office, mesh->cards[office].local_name, who, deadline_ns, stream_out);
    if (st == TUTTI_OK && mesh->clerk.rank >= 0)
        st = tti_office_ask_cards(mesh, *stream_out, office, NULL, deadline_ns);
    return st;
}

/* Who fails hangs up when it has left its words (tti_mesh_open): the office would ask for them first, and tell of a rank that has
 * just left. */
static tutti_status visit_office(tti_mesh *mesh, const tti_mesh_config *config, int office, int n_members)
{
    tutti_status st = TUTTI_OK;

    if (mesh->clerk_stream == TTI_NO_HANDLE)
        st = visit(mesh, office, config->deadline_ns, &mesh->clerk_stream);
    if (st == TUTTI_OK)
        st = tti_office_visit(mesh, mesh->clerk_stream, office, n_members, config->deadline_ns);
    if (st != TUTTI_OK)
        return st;
    mesh->port->ops->close(mesh->port, mesh->clerk_stream);
    mesh->clerk_stream = TTI_NO_HANDLE;
    return TUTTI_OK;
}

/* The cards, from the clerk; the stream stays for the visit. */
static tutti_status fetch_cards(tti_mesh *mesh, const tti_mesh_config *config)
{
    const tti_clerk *clerk = &mesh->clerk;
    char             who[WHO_MAX];
    tutti_status     st;

    tti_here_begin(mesh, config);
    snprintf(who, sizeof who, "rank %d, which reads for its host", clerk->rank);
    st = enter_office(mesh, clerk->rank, clerk->local_name, who, config->deadline_ns, &mesh->clerk_stream);
    if (st == TUTTI_OK)
        st = tti_office_ask_cards(mesh, mesh->clerk_stream, clerk->rank, mesh->cards, config->deadline_ns);
    return st;
}

tutti_status tti_meet_clerk(tti_mesh *mesh, const tti_mesh_config *config)
{
    tutti_status st = fetch_cards(mesh, config);

    if (st == TUTTI_OK)
        return tti_cards_check(config, mesh->cards);
    /* A clerk whose office has failed says why on the board before it hangs up: to read the cards alone would hide that. */
    if (tti_trouble_explains(config->board, mesh->port, &st) || st == TUTTI_E_TIMEOUT)
        return st;
    tti_log(TTI_LOG_INFO, "rank %d reads the cards of its world by itself: %s", mesh->rank, tutti_last_error());
    mesh->port->ops->close(mesh->port, mesh->clerk_stream);
    mesh->clerk_stream = TTI_NO_HANDLE;
    st = tti_cards_read_alone(config, mesh->cards);
    return st == TUTTI_E_TIMEOUT ? tti_trouble_explain(config->board, mesh->port, st) : st;
}

/* Who runs the office of this host: its first rank, or its clerk, which must be what its card says. */
static tutti_status find_office(const tti_mesh *mesh, int *office_out)
{
    const tti_clerk *clerk = &mesh->clerk;

    if (clerk->rank < 0) {
        *office_out = mesh->members[mesh->rank].host;
        return TUTTI_OK;
    }
    if (!tti_same_host(mesh, clerk->rank, mesh->rank) || strcmp(mesh->cards[clerk->rank].local_name, clerk->local_name) != 0)
        return tti_fail(TUTTI_E_STORE, "rank %d says that it reads for the host of rank %d, and its card says something else",
                        clerk->rank, mesh->rank);
    *office_out = clerk->rank;
    return TUTTI_OK;
}

typedef struct place {
    const uint8_t *hint;
    int            rank;
} place;

/* By host, then by rank. */
static int compare_places(const void *a, const void *b)
{
    const place *x = a, *y = b;
    const int    order = memcmp(x->hint, y->hint, TTI_CARD_HINT_BYTES);

    return order != 0 ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

/* Each member's host is the lowest rank with its hint. */
static tutti_status find_hosts(tti_mesh *mesh)
{
    place *places = malloc((size_t)mesh->n_ranks * sizeof *places);
    int    i;

    if (places == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to tell the hosts of %d ranks apart", mesh->n_ranks);
    for (i = 0; i < mesh->n_ranks; i++)
        places[i] = (place){ .hint = mesh->cards[i].host_hint, .rank = i };
    qsort(places, (size_t)mesh->n_ranks, sizeof *places, compare_places);
    for (i = 0; i < mesh->n_ranks; i++)
        mesh->members[places[i].rank].host =
            i > 0 && memcmp(places[i].hint, places[i - 1].hint, TTI_CARD_HINT_BYTES) == 0
                ? mesh->members[places[i - 1].rank].host
                : places[i].rank;
    free(places);
    return TUTTI_OK;
}

/* Whether four descriptors for each rank of the host, and one for a store's client, would leave little for others. */
static bool has_few_files(int n_here)
{
    struct rlimit files;

    return getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < (rlim_t)(5 * n_here + SPARE_FILES);
}

tutti_status tti_meet_local(tti_mesh *mesh, const tti_mesh_config *config)
{
    tti_office   office = { .mesh = mesh, .deadline_ns = ahead_of(mesh->port, config->deadline_ns) };
    tutti_status st = find_hosts(mesh);
    int          keeper = 0, rank;

    if (st == TUTTI_OK)
        st = find_office(mesh, &keeper);
    if (st != TUTTI_OK)
        return st;
    office.ranks = malloc((size_t)mesh->n_ranks * sizeof *office.ranks);
    if (office.ranks == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to meet the ranks of this host");
    for (rank = 0; rank < mesh->n_ranks; rank++)
        if (mesh->members[rank].host == mesh->members[mesh->rank].host)
            office.ranks[office.n++] = rank;
    mesh->few_files = has_few_files(office.n);
    tti_here_begin(mesh, config);
    if (office.n > 1)
        st = keeper == mesh->rank ? run_office(&office, config->board) : visit_office(mesh, config, keeper, office.n);
    if (st != TUTTI_OK && office.n > 1 && keeper != mesh->rank)
        st = tti_trouble_explain(config->board, mesh->port, st);
    free(office.ranks);
    return st;
}

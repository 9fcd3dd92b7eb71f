/* SPDX-License-Identifier: BSD-3-Clause
 *
 * meet_local.c - members of one host prove it, and exchange memory, bells and signs of life.
 *
 * How     Of the members with one host hint the lowest rank is the post office. Each other connects to its
 *         abstract socket, says hello, and hands over its four descriptors; when all have come, the
 *         office hands everybody everybody's.
 *
 *             member --- hello ---> office        one connection each
 *             member --- signs ---> office
 *             member <-- rank, signs of each other member --- office
 *
 * Proof   The socket is scoped by network namespace, its peer's user must be ours, the hello proves the
 *         job's secret, and the token on a member's card must be readable in the memory that it sent.
 *         Whoever has our hint and fails any of it is an error, never a guess.
 * Fails   Strangers at the socket are turned away and do not disturb the others. */
#include "transport/meet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <tutti/private.h>

enum { N_SIGNS = 4, STRANGER_MS = 2000, LISTED_MAX = 16 };

typedef struct signs {
    int fds[N_SIGNS];
} signs;

static signs signs_of(const tti_mesh *mesh, const tti_member *member)
{
    const tti_member *own = &mesh->members[mesh->rank];
    const int         registered_fd = member->registered_fd >= 0 ? member->registered_fd : own->registered_fd;

    return (signs){ { tti_heap_fd(member->heap), member->bell, member->pidfd, registered_fd } };
}

static bool same_host(const tti_mesh *mesh, int a, int b)
{
    return memcmp(mesh->cards[a].host_hint, mesh->cards[b].host_hint, TTI_CARD_HINT_BYTES) == 0;
}

static void close_signs(const int fds[N_SIGNS])
{
    int i;

    for (i = 0; i < N_SIGNS; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* Take over a member's descriptors: map its memory, keep the others. */
static tutti_status adopt(tti_mesh *mesh, int rank, const int fds[N_SIGNS])
{
    tti_member  *member = &mesh->members[rank];
    tutti_status st;

    st = tti_heap_map(fds[0], mesh->cards[rank].token, (size_t)mesh->n_ranks, &member->heap);
    if (st != TUTTI_OK) {
        close_signs(fds);
        return st;
    }
    member->bell = fds[1];
    member->pidfd = fds[2];
    member->registered_fd = fds[3];
    if (tti_registered_is(fds[3])) { /* a thread of this process */
        close(fds[3]);
        member->registered_fd = -1;
    }
    return TUTTI_OK;
}

static tutti_status wait_ready(tti_port *port, tti_handle handle, uint8_t want, int rank, int64_t deadline_ns)
{
    tti_poll poll = { .handle = handle, .want = want };

    if (port->ops->poll(port, &poll, 1, deadline_ns) > 0)
        return TUTTI_OK;
    return tti_fail(TUTTI_E_TIMEOUT, "rank %d did not finish the exchange of shared memory in time", rank);
}

static tutti_status send_signs(tti_mesh *mesh, tti_handle to, int to_rank, int32_t about,
                               const int fds[N_SIGNS], int64_t deadline_ns)
{
    tti_port    *port = mesh->port;
    tutti_status st;
    int          err;

    while ((err = port->ops->send_fds(port, to, &about, sizeof about, fds, N_SIGNS)) == -EAGAIN) {
        st = wait_ready(port, to, TTI_WRITE, to_rank, deadline_ns);
        if (st != TUTTI_OK)
            return st;
    }
    if (err != 0)
        return tti_fail_errno_as(TUTTI_E_PEER, -err, "cannot hand shared memory to rank %d", to_rank);
    return TUTTI_OK;
}

static tutti_status recv_signs(tti_mesh *mesh, tti_handle from, int from_rank, int64_t deadline_ns)
{
    tti_port    *port = mesh->port;
    int          fds[N_SIGNS] = { -1, -1, -1 };
    int32_t      about = -1;
    int          n = 0;
    int64_t      got;
    tutti_status st;

    while ((got = port->ops->recv_fds(port, from, &about, sizeof about, fds, N_SIGNS, &n)) == -EAGAIN) {
        st = wait_ready(port, from, TTI_READ, from_rank, deadline_ns);
        if (st != TUTTI_OK)
            return st;
    }
    if (got == sizeof about && n == N_SIGNS && about >= 0 && about < mesh->n_ranks &&
        about != mesh->rank && mesh->members[about].heap == NULL && same_host(mesh, about, mesh->rank))
        return adopt(mesh, about, fds);
    close_signs(fds);
    if (got < 0)
        return tti_fail_errno_as(TUTTI_E_PEER, (int)-got, "cannot receive shared memory from rank %d",
                                 from_rank);
    if (got == 0)
        return tti_fail(TUTTI_E_PEER, "rank %d left while shared memory was exchanged", from_rank);
    return tti_fail(TUTTI_E_AUTH, "rank %d sent no valid shared memory (%lld bytes, %d descriptors)",
                    from_rank, (long long)got, n);
}

static tutti_status check_user(tti_port *port, tti_handle stream, int rank)
{
    tti_peer_cred cred;
    int           err = port->ops->peer_cred(port, stream, &cred);

    if (err != 0)
        return tti_fail_errno_as(TUTTI_E_AUTH, -err, "cannot tell who is at the local socket");
    if (cred.uid != (int64_t)geteuid())
        return tti_fail(TUTTI_E_AUTH, "rank %d runs as user %lld, this rank as %lld", rank,
                        (long long)cred.uid, (long long)geteuid());
    return TUTTI_OK;
}

static tti_hello_config hello_config(const tti_mesh *mesh, bool client, const char *peer)
{
    tti_hello_config hello = { .client = client, .purpose = TTI_PURPOSE_LOCAL,
                               .rank = (uint32_t)mesh->rank, .secret = &mesh->door.secret, .peer = peer };

    memcpy(hello.scope, mesh->door.scope, sizeof hello.scope);
    return hello;
}

/* The office's side of one connection: who is it? -1 for a stranger, who was turned away. */
static int greet(tti_mesh *mesh, const tti_mesh_config *config, tti_handle stream)
{
    const tti_hello_config hello = hello_config(mesh, false, "a process at the local socket");
    int64_t                deadline = tti_deadline(mesh->port, STRANGER_MS, 0);
    uint32_t               rank = 0;

    if (config->deadline_ns < deadline)
        deadline = config->deadline_ns;
    if (tti_hello_run(mesh->port, stream, &hello, deadline, &rank) != TUTTI_OK ||
        rank >= (uint32_t)mesh->n_ranks || (int)rank == mesh->rank ||
        !same_host(mesh, (int)rank, mesh->rank) || mesh->members[rank].heap != NULL) {
        tti_log(TTI_LOG_WARN, "turned away a stranger at the local socket: %s", tutti_last_error());
        return -1;
    }
    return (int)rank;
}

/* "5, 6, 7": those of this host whose memory has not come; a long list is cut. */
static void list_missing(const tti_mesh *mesh, char *out, size_t size)
{
    const char *between = "";
    int         said = 0, rank;
    size_t      used = 0;

    out[0] = '\0';
    for (rank = 0; rank < mesh->n_ranks; rank++) {
        if (mesh->members[rank].heap != NULL || !same_host(mesh, rank, mesh->rank))
            continue;
        if (said++ == LISTED_MAX) {
            snprintf(out + used, size - used, ", ...");
            return;
        }
        used += (size_t)snprintf(out + used, size - used, "%s%d", between, rank);
        between = ", ";
    }
}

static tutti_status fail_missing(const tti_mesh *mesh, int n_missing)
{
    char list[LISTED_MAX * 12 + 8];

    list_missing(mesh, list, sizeof list);
    return tti_fail(TUTTI_E_TIMEOUT, "%s %s of this host did not come to the local socket of rank %d",
                    n_missing == 1 ? "rank" : "ranks", list, mesh->rank);
}

static tutti_status accept_member(tti_mesh *mesh, const tti_mesh_config *config, tti_handle *streams,
                                  int *n_missing)
{
    tti_port    *port = mesh->port;
    tti_poll     poll = { .handle = mesh->local_listener, .want = TTI_READ };
    tti_handle   stream;
    tutti_status st;
    int          rank;

    if (port->ops->poll(port, &poll, 1, config->deadline_ns) == 0)
        return fail_missing(mesh, *n_missing);
    stream = port->ops->accept(port, mesh->local_listener, NULL);
    if (stream < 0)
        return stream == -EAGAIN ? TUTTI_OK
                                 : tti_fail_errno_as(TUTTI_E_NETWORK, -stream, "cannot accept a local peer");
    rank = greet(mesh, config, stream);
    if (rank < 0) {
        port->ops->close(port, stream);
        return TUTTI_OK;
    }
    streams[rank] = stream; /* closed with the others */
    st = check_user(port, stream, rank);
    if (st == TUTTI_OK)
        st = recv_signs(mesh, stream, rank, config->deadline_ns);
    if (st == TUTTI_OK)
        --*n_missing;
    return st;
}

static tutti_status serve_member(tti_mesh *mesh, const tti_mesh_config *config, int to, tti_handle stream)
{
    tutti_status st = TUTTI_OK;
    int          about;

    for (about = 0; st == TUTTI_OK && about < mesh->n_ranks; about++) {
        const tti_member *member = &mesh->members[about];

        if (about == to || !same_host(mesh, about, to))
            continue;
        st = send_signs(mesh, stream, to, about, signs_of(mesh, member).fds, config->deadline_ns);
    }
    return st;
}

static tutti_status run_office(tti_mesh *mesh, const tti_mesh_config *config, int n_members)
{
    tti_handle  *streams = malloc((size_t)mesh->n_ranks * sizeof *streams);
    int          n_missing = n_members - 1;
    tutti_status st = TUTTI_OK;
    int          rank;

    if (streams == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to meet %d ranks of this host", n_members);
    for (rank = 0; rank < mesh->n_ranks; rank++)
        streams[rank] = TTI_NO_HANDLE;
    while (st == TUTTI_OK && n_missing > 0)
        st = accept_member(mesh, config, streams, &n_missing);
    for (rank = 0; st == TUTTI_OK && rank < mesh->n_ranks; rank++)
        if (streams[rank] != TTI_NO_HANDLE)
            st = serve_member(mesh, config, rank, streams[rank]);
    for (rank = 0; rank < mesh->n_ranks; rank++)
        mesh->port->ops->close(mesh->port, streams[rank]);
    free(streams);
    return st;
}

static tutti_status visit_office(tti_mesh *mesh, const tti_mesh_config *config, int office, int n_members)
{
    const tti_member      *own = &mesh->members[mesh->rank];
    const tti_hello_config hello = hello_config(mesh, true, "the first rank of this host");
    tti_port              *port = mesh->port;
    tti_addr               at = { .family = TTI_ADDR_LOCAL };
    tti_handle             stream = TTI_NO_HANDLE;
    tutti_status           st;
    int                    err, i;

    memcpy(at.name, mesh->cards[office].local_name, sizeof at.name);
    err = port->ops->connect(port, &at, &stream);
    if (err != 0)
        return tti_fail_errno_as(TUTTI_E_PEER, -err,
                                 "rank %d cannot reach the local socket of rank %d, which says that it is "
                                 "on the same host\n  next: TUTTI_TRANSPORT=tcp on all ranks",
                                 mesh->rank, office);
    st = tti_hello_run(port, stream, &hello, config->deadline_ns, NULL);
    if (st == TUTTI_OK)
        st = check_user(port, stream, office);
    if (st == TUTTI_OK)
        st = send_signs(mesh, stream, office, mesh->rank, signs_of(mesh, own).fds, config->deadline_ns);
    for (i = 1; st == TUTTI_OK && i < n_members; i++)
        st = recv_signs(mesh, stream, office, config->deadline_ns);
    port->ops->close(port, stream);
    return st;
}

tutti_status tti_meet_local(tti_mesh *mesh, const tti_mesh_config *config)
{
    int office = mesh->n_ranks;
    int n_members = 0;
    int rank, other;

    for (rank = mesh->n_ranks - 1; rank >= 0; rank--)
        if (same_host(mesh, rank, mesh->rank)) {
            office = rank;
            n_members++;
        }
    for (rank = 0; rank < mesh->n_ranks; rank++) {
        for (other = 0; !same_host(mesh, other, rank); other++)
            continue;
        mesh->members[rank].host = other;
    }
    if (n_members == 1)
        return TUTTI_OK;
    return office == mesh->rank ? run_office(mesh, config, n_members)
                                : visit_office(mesh, config, office, n_members);
}

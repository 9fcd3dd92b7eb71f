/* SPDX-License-Identifier: BSD-3-Clause
 *
 * meet_signs.c - everybody on a host gets everybody's descriptors: memory, bell, sign of life, registered memory.
 *
 * Why     N members need four descriptors of each other. Handed over one member at a time that is N x N messages
 *         through one process, which would also hold five descriptors for each member at once; and the kernel lets a
 *         user without privileges have no more descriptors on their way than one process may have open, 1024 as a rule.
 * How     The office asks the members of a portion for their signs, sends all of them to each member in one message, and
 *         goes on with the next portion when everybody has them. A member maps the memory and closes its descriptor.
 *
 *             office --- ask ---> each of a portion --- signs ---> office
 *             office --- signs of the portion, but its own ---> each member --- taken ---> office
 *
 *         With one portion the office keeps what it has seen. With more it would hold too much while all are
 *         connected: it closes what it has handed on, and at the end asks each member once more, and lets that one go.
 * True    There is one message at most on its way to a member, and it is answered, so that messages are never read as
 *         one. At most WINDOW of those with a portion are on their way, which is less than the kernel's limit. For each
 *         peer three descriptors stay, or two where they are scarce; the office holds one portion besides, and a stream to each that
 *         it has not adopted. So 256 ranks do with 1024 descriptors, of which rank 0 may need 256 to serve a store.
 * Fails   Descriptors of other programs of this user count as well: then the kernel refuses for a while, and we try
 *         again until the deadline. A process with too few descriptors is told how many it may have. */
#include "transport/meet.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <tutti/private.h>
#include "base/doubt.h"
#include "wire/addr.h"

enum { SIGNS = 4, PORTION = TTI_FDS_MAX / SIGNS, WINDOW = 4 };

#define PAUSE_NS TTI_MS

_Static_assert(WINDOW * PORTION * SIGNS < 1000, "portions on their way are fewer than descriptors that may be");

typedef enum what { ASK = 1, GIVE, TAKEN } what;

/* What goes over the local sockets; behind a GIVE the signs of ranks, four each. One host, one version. */
typedef struct notice {
    uint32_t what;
    int32_t  n;
    int32_t  ranks[PORTION];
} notice;

typedef struct signs {
    int fds[SIGNS];
} signs;

static signs own_signs(const tti_mesh *mesh)
{
    const tti_member *own = &mesh->members[mesh->rank];

    return (signs){ { tti_heap_fd(own->heap), own->bell, own->pidfd, own->registered_fd } };
}

static void close_signs(tti_port *port, const signs *s, int n)
{
    int i, k;

    for (i = 0; i < n; i++)
        for (k = 0; k < SIGNS; k++)
            port->ops->close(port, s[i].fds[k]);
}

/* Where descriptors are scarce registered memory is mapped at once, which takes a few system calls and address space, and
 * not when it is first asked for: then its descriptor need not be kept. */
static bool map_now(const tti_mesh *mesh, tti_member *member)
{
    return mesh->few_files && tti_foreign_map(member->registered_fd, &member->registered) == TUTTI_OK;
}

/* Take over a member's descriptors: map its memory, keep the others, but those of a thread of this process. */
static tutti_status adopt(tti_mesh *mesh, int rank, const signs *theirs)
{
    tti_member  *member = &mesh->members[rank];
    tutti_status st;

    st = tti_heap_map(theirs->fds[0], mesh->cards[rank].token, tti_directory_words(mesh->n_ranks), &member->heap);
    if (st != TUTTI_OK) {
        close_signs(mesh->port, theirs, 1);
        return st;
    }
    tti_heap_drop_fd(member->heap);
    member->bell = theirs->fds[1];
    member->pidfd = theirs->fds[2];
    member->registered_fd = theirs->fds[3];
    if (tti_registered_is(theirs->fds[3]) || map_now(mesh, member)) {
        mesh->port->ops->close(mesh->port, theirs->fds[3]);
        member->registered_fd = -1;
    }
    return TUTTI_OK;
}

static tutti_status wait_ready(tti_mesh *mesh, tti_handle handle, uint8_t want, int rank, int64_t deadline_ns)
{
    tti_poll poll = { .handle = handle, .want = want };
    char     who[48];

    if (tti_here_poll(mesh, &poll, 1, deadline_ns) > 0)
        return TUTTI_OK;
    if (tti_doubt_is_vain()) {
        snprintf(who, sizeof who, "rank %d at the local socket", rank);
        return tti_doubt_fail(who);
    }
    return tti_fail(TUTTI_E_TIMEOUT, "rank %d did not finish the exchange of shared memory in time", rank);
}

/* Others have to take descriptors first that this user has sent. */
static tutti_status pause_for_others(tti_port *port, const char *who, int64_t deadline_ns)
{
    const int64_t until = tti_port_now(port) + PAUSE_NS;

    if (tti_doubt_is_vain())
        return tti_doubt_fail(who);
    if (until >= deadline_ns)
        return tti_fail(TUTTI_E_TIMEOUT, "too many descriptors of this user were on their way between processes, until the "
                                         "time was up");
    port->ops->sleep_until(port, until);
    return TUTTI_OK;
}

static tutti_status say(tti_mesh *mesh, tti_handle to, int to_rank, const notice *said, const signs *with,
                        int64_t deadline_ns)
{
    tti_port    *port = mesh->port;
    tutti_status st = TUTTI_OK;
    int          err = -EAGAIN;
    char         who[48];

    snprintf(who, sizeof who, "rank %d at the local socket", to_rank);
    if (with == NULL) {
        st = tti_io_send_all(port, to, said, sizeof *said, who, deadline_ns);
        return st == TUTTI_E_NETWORK ? tti_fail(TUTTI_E_PEER, "%s", tutti_last_error()) : st; /* inside a host there is no net */
    }
    while (st == TUTTI_OK && (err == -EAGAIN || err == -ETOOMANYREFS)) {
        err = port->ops->send_fds(port, to, said, sizeof *said, with->fds, said->n * SIGNS);
        if (err == -EAGAIN)
            st = wait_ready(mesh, to, TTI_WRITE, to_rank, deadline_ns);
        else if (err == -ETOOMANYREFS)
            st = pause_for_others(port, who, deadline_ns);
    }
    if (st == TUTTI_OK && err != 0)
        return tti_fail_errno_as(TUTTI_E_PEER, -err, "cannot hand shared memory to rank %d", to_rank);
    return st;
}

static tutti_status fail_hearing(const tti_mesh *mesh, int from_rank, int64_t got, int n_fds)
{
    struct rlimit files = { .rlim_cur = 0 };

    if (got == -EMSGSIZE || got == -EMFILE || got == -ENFILE) {
        getrlimit(RLIMIT_NOFILE, &files);
        return tti_fail(TUTTI_E_NOMEM,
                        "rank %d has no room for the descriptors of the ranks of its host, three for each: it may have "
                        "%llu open\n  next: raise that limit (ulimit -n)",
                        mesh->rank, (unsigned long long)files.rlim_cur);
    }
    if (got < 0)
        return tti_fail_errno_as(TUTTI_E_PEER, (int)-got, "cannot receive shared memory from rank %d", from_rank);
    if (got == 0)
        return tti_fail(TUTTI_E_PEER, "rank %d left while shared memory was exchanged", from_rank);
    return tti_fail(TUTTI_E_AUTH, "rank %d sent no valid shared memory (%lld bytes, %d descriptors)", from_rank,
                    (long long)got, n_fds);
}

static bool names_twice(const notice *heard, int at)
{
    int i;

    for (i = 0; i < at; i++)
        if (heard->ranks[i] == heard->ranks[at])
            return true;
    return false;
}

/* Whether a notice is well-formed, and its ranks may be of this host, each once. */
static bool makes_sense(const tti_mesh *mesh, const notice *heard, int n_fds)
{
    int i;

    if (heard->what != GIVE)
        return (heard->what == ASK || heard->what == TAKEN) && n_fds == 0;
    if (heard->n < 1 || heard->n > PORTION || n_fds != heard->n * SIGNS)
        return false;
    for (i = 0; i < heard->n; i++)
        if (heard->ranks[i] < 0 || heard->ranks[i] >= mesh->n_ranks || heard->ranks[i] == mesh->rank ||
            mesh->members[heard->ranks[i]].heap != NULL || !tti_same_host(mesh, heard->ranks[i], mesh->rank) ||
            names_twice(heard, i))
            return false;
    return true;
}

/* The next notice; the signs behind a GIVE, PORTION at most, are the caller's. */
static tutti_status hear(tti_mesh *mesh, tti_handle from, int from_rank, int64_t deadline_ns, notice *heard_out,
                         signs *signs_out)
{
    tti_port    *port = mesh->port;
    int          fds[PORTION * SIGNS];
    int          n = 0, i;
    int64_t      got;
    tutti_status st;

    while ((got = port->ops->recv_fds(port, from, heard_out, sizeof *heard_out, fds, PORTION * SIGNS, &n)) == -EAGAIN) {
        st = wait_ready(mesh, from, TTI_READ, from_rank, deadline_ns);
        if (st != TUTTI_OK)
            return st;
    }
    if (got == sizeof *heard_out && makes_sense(mesh, heard_out, n)) {
        memcpy(signs_out, fds, (size_t)n * sizeof *fds);
        return TUTTI_OK;
    }
    for (i = 0; i < n; i++)
        port->ops->close(port, fds[i]);
    return fail_hearing(mesh, from_rank, got, n);
}

/* ---- the office ------------------------------------------------------------------------------------- */

static tutti_status fail_answer(int rank)
{
    return tti_fail(TUTTI_E_AUTH, "rank %d gave another answer than it was asked for in the exchange of shared memory",
                    rank);
}

static tutti_status ask(const tti_office *office, int rank)
{
    const notice asked = { .what = ASK };

    return say(office->mesh, office->streams[rank], rank, &asked, NULL, office->deadline_ns);
}

/* The signs of a member that was asked; they are the caller's. */
static tutti_status collect(const tti_office *office, int rank, signs *signs_out)
{
    notice       heard;
    signs        got[PORTION];
    tutti_status st = hear(office->mesh, office->streams[rank], rank, office->deadline_ns, &heard, got);

    if (st != TUTTI_OK)
        return st;
    if (heard.what == GIVE && heard.n == 1 && heard.ranks[0] == rank) {
        *signs_out = got[0];
        return TUTTI_OK;
    }
    if (heard.what == GIVE)
        close_signs(office->mesh->port, got, heard.n);
    return fail_answer(rank);
}

static tutti_status await_taken(const tti_office *office, int rank)
{
    notice       heard;
    signs        got[PORTION];
    tutti_status st = hear(office->mesh, office->streams[rank], rank, office->deadline_ns, &heard, got);

    if (st != TUTTI_OK || heard.what == TAKEN)
        return st;
    if (heard.what == GIVE)
        close_signs(office->mesh->port, got, heard.n);
    return fail_answer(rank);
}

/* Of n members: all but the receiver's own. */
static tutti_status give(const tti_office *office, int to, const int *ranks, const signs *theirs, int n)
{
    notice said = { .what = GIVE };
    signs  with[PORTION];
    int    i;

    for (i = 0; i < n; i++)
        if (ranks[i] != to) {
            with[said.n] = theirs[i];
            said.ranks[said.n++] = ranks[i];
        }
    return say(office->mesh, office->streams[to], to, &said, with, office->deadline_ns);
}

/* The office is given nothing. A portion that is one member alone has nothing
 * for that one. */
static bool is_given(const tti_office *office, int to, const int *ranks, int n)
{
    return to != office->mesh->rank && (n > 1 || ranks[0] != to);
}

static tutti_status give_all(const tti_office *office, const int *ranks, const signs *theirs, int n)
{
    tutti_status st = TUTTI_OK;
    int          gave, took = 0, on_way = 0;

    for (gave = 0; st == TUTTI_OK && (gave < office->n || on_way > 0); ) {
        if (gave < office->n && on_way < WINDOW) {
            if (is_given(office, office->ranks[gave], ranks, n)) {
                st = give(office, office->ranks[gave], ranks, theirs, n);
                on_way++;
            }
            gave++;
            continue;
        }
        if (is_given(office, office->ranks[took], ranks, n)) {
            st = await_taken(office, office->ranks[took]);
            on_way--;
        }
        took++;
    }
    return st;
}

/* Keep, or close, the signs of a portion, but our own. */
static tutti_status settle(const tti_office *office, const int *ranks, const signs *theirs, int n, bool keep)
{
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 0; i < n; i++) {
        if (ranks[i] == office->mesh->rank)
            continue;
        if (keep && st == TUTTI_OK)
            st = adopt(office->mesh, ranks[i], &theirs[i]);
        else
            close_signs(office->mesh->port, &theirs[i], 1);
    }
    return st;
}

/* From n members to all. */
static tutti_status pass_on(const tti_office *office, const int *ranks, int n, bool keep)
{
    tti_mesh    *mesh = office->mesh;
    signs        theirs[PORTION];
    tutti_status st = TUTTI_OK, settled;
    int          n_asked, n_got = 0;

    for (n_asked = 0; n_asked < n && st == TUTTI_OK; n_asked++)
        if (ranks[n_asked] != mesh->rank)
            st = ask(office, ranks[n_asked]);
    for (; n_got < n && st == TUTTI_OK; n_got++) {
        if (ranks[n_got] == mesh->rank)
            theirs[n_got] = own_signs(mesh);
        else
            st = collect(office, ranks[n_got], &theirs[n_got]);
        if (st != TUTTI_OK)
            break;
    }
    if (st == TUTTI_OK)
        st = give_all(office, ranks, theirs, n);
    settled = settle(office, ranks, theirs, n_got, keep && st == TUTTI_OK);
    return st == TUTTI_OK ? settled : st;
}

/* Once more, for ourselves; whoever has answered is done. */
static tutti_status keep_one(const tti_office *office, int rank)
{
    signs        theirs;
    tutti_status st = ask(office, rank);

    if (st == TUTTI_OK)
        st = collect(office, rank, &theirs);
    if (st == TUTTI_OK)
        st = adopt(office->mesh, rank, &theirs);
    office->mesh->port->ops->close(office->mesh->port, office->streams[rank]);
    office->streams[rank] = TTI_NO_HANDLE;
    return st;
}

tutti_status tti_office_exchange(const tti_office *office)
{
    const bool   one_portion = office->n <= PORTION;
    tutti_status st = TUTTI_OK;
    int          at, n, i;

    for (at = 0; at < office->n && st == TUTTI_OK; at += n) {
        n = office->n - at < PORTION ? office->n - at : PORTION;
        st = pass_on(office, office->ranks + at, n, one_portion);
    }
    for (i = 0; i < office->n && st == TUTTI_OK && !one_portion; i++)
        if (office->ranks[i] != office->mesh->rank)
            st = keep_one(office, office->ranks[i]);
    return st;
}

/* ---- the others ------------------------------------------------------------------------------------- */

static tutti_status adopt_all(tti_mesh *mesh, const notice *heard, const signs *theirs)
{
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 0; i < heard->n && st == TUTTI_OK; i++)
        st = adopt(mesh, heard->ranks[i], &theirs[i]);
    if (i < heard->n)
        close_signs(mesh->port, &theirs[i], heard->n - i);
    return st;
}

tutti_status tti_office_visit(tti_mesh *mesh, tti_handle stream, int office, int n_members, int64_t deadline_ns)
{
    const notice mine = { .what = GIVE, .n = 1, .ranks = { mesh->rank } };
    const notice taken = { .what = TAKEN };
    const signs  own = own_signs(mesh);
    int          asks = n_members <= PORTION ? 1 : 2, others = n_members - 1;
    signs        theirs[PORTION];
    notice       heard;
    tutti_status st = TUTTI_OK;

    while (st == TUTTI_OK && (asks > 0 || others > 0)) {
        st = hear(mesh, stream, office, deadline_ns, &heard, theirs);
        if (st != TUTTI_OK)
            return st;
        if (heard.what == ASK) {
            asks--;
            st = say(mesh, stream, office, &mine, &own, deadline_ns);
        } else if (heard.what == GIVE) {
            others -= heard.n;
            st = adopt_all(mesh, &heard, theirs);
            if (st == TUTTI_OK)
                st = say(mesh, stream, office, &taken, NULL, deadline_ns);
        } else {
            st = fail_answer(office);
        }
    }
    return st;
}

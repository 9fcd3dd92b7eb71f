/* SPDX-License-Identifier: BSD-3-Clause
 *
 * port_peer.c - who is at the other end of a connection inside of this host, as the kernel says.
 *
 * Why     A local socket tells its peer's user. TCP through loopback does not, and every user of the host can connect to it.
 * How     The other end is a socket of this kernel, too: the one whose addresses are ours the other way round. The kernel
 *         tells its owner by sock_diag, in one question; where that is not to be had, its list of all connections does.
 * True    Only an established connection counts: of one that is being closed the kernel no longer knows the owner. Ports belong
 *         to one socket as long as it lives, so there is no other one with these addresses. */
#include "base/port_system.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { ESTABLISHED = 1, ANSWER_MAX = 1024, LINE_MAX_BYTES = 512, ADDRESS_TEXT_MAX = 48 };

/* One end, as the kernel keeps it: addresses and ports in network order. */
typedef struct end {
    int      family;
    uint16_t port;
    uint32_t ip[4];
} end;

/* IPv4 in IPv6's clothes is IPv4: the other end may be dressed otherwise. */
static bool end_of(const struct sockaddr_storage *name, end *out)
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

    *out = (end){ .family = name->ss_family };
    if (name->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)name;

        out->port = in->sin_port;
        memcpy(out->ip, &in->sin_addr, sizeof in->sin_addr);
        return true;
    }
    if (name->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)name;

        out->port = in->sin6_port;
        memcpy(out->ip, &in->sin6_addr, sizeof in->sin6_addr);
        if (memcmp(out->ip, mapped, sizeof mapped) == 0)
            *out = (end){ .family = AF_INET, .port = in->sin6_port, .ip = { out->ip[3] } };
        return true;
    }
    return false;
}

/* ---- by asking -------------------------------------------------------------------------------------- */

typedef struct question {
    struct nlmsghdr         head;
    struct inet_diag_req_v2 what;
} question;

typedef union answer {
    struct nlmsghdr head;
    char            bytes[ANSWER_MAX];
} answer;

static question question_for(const end *here, const end *there)
{
    question q = { .head = { .nlmsg_len = sizeof q, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST },
                   .what = { .sdiag_family = (uint8_t)here->family, .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0U } };

    q.what.id.idiag_sport = there->port; /* the socket at the other end begins there */
    q.what.id.idiag_dport = here->port;
    memcpy(q.what.id.idiag_src, there->ip, sizeof there->ip);
    memcpy(q.what.id.idiag_dst, here->ip, sizeof here->ip);
    q.what.id.idiag_cookie[0] = q.what.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    return q;
}

static int read_answer(const answer *a, ssize_t bytes, int64_t *uid_out)
{
    struct inet_diag_msg found;
    struct nlmsgerr      refused;

    if (bytes < (ssize_t)sizeof a->head || (size_t)bytes < a->head.nlmsg_len)
        return -EPROTO;
    if (a->head.nlmsg_type == NLMSG_ERROR && a->head.nlmsg_len >= NLMSG_LENGTH(sizeof refused)) {
        memcpy(&refused, a->bytes + NLMSG_HDRLEN, sizeof refused);
        return refused.error < 0 ? refused.error : -EPROTO;
    }
    if (a->head.nlmsg_type != SOCK_DIAG_BY_FAMILY || a->head.nlmsg_len < NLMSG_LENGTH(sizeof found))
        return -EPROTO;
    memcpy(&found, a->bytes + NLMSG_HDRLEN, sizeof found);
    if (found.idiag_state != ESTABLISHED)
        return -ENOTCONN;
    *uid_out = (int64_t)found.idiag_uid;
    return 0;
}

static int ask(const end *here, const end *there, int64_t *uid_out)
{
    const struct timeval second = { .tv_sec = 1 };
    const question       q = question_for(here, there);
    answer               a;
    ssize_t              n;
    int                  err = 0;
    int                  fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second); /* it answers at once, or never */
    if (send(fd, &q, sizeof q, 0) != (ssize_t)sizeof q)
        err = -errno;
    while (err == 0 && (n = recv(fd, &a, sizeof a, 0)) < 0)
        err = errno == EINTR ? 0 : -errno;
    if (err == 0)
        err = read_answer(&a, n, uid_out);
    close(fd);
    return err;
}

/* ---- by reading ------------------------------------------------------------------------------------- */

/* "0100007F:92CD", as in the list. */
static void write_end(const end *e, char out[ADDRESS_TEXT_MAX])
{
    int used = 0, i;

    for (i = 0; i < (e->family == AF_INET ? 1 : 4); i++)
        used += snprintf(out + used, ADDRESS_TEXT_MAX - (size_t)used, "%08" PRIX32, e->ip[i]);
    snprintf(out + used, ADDRESS_TEXT_MAX - (size_t)used, ":%04X", (unsigned)ntohs(e->port));
}

static int look_up(const end *here, const end *there, int64_t *uid_out)
{
    FILE         *list = fopen(here->family == AF_INET ? "/proc/net/tcp" : "/proc/net/tcp6", "re");
    char          line[LINE_MAX_BYTES], from[ADDRESS_TEXT_MAX], to[ADDRESS_TEXT_MAX], wanted_from[ADDRESS_TEXT_MAX], wanted_to[ADDRESS_TEXT_MAX];
    unsigned      state;
    unsigned long uid;
    int           err = -ENOTCONN;

    if (list == NULL)
        return -errno;
    write_end(there, wanted_from);
    write_end(here, wanted_to);
    while (err != 0 && fgets(line, sizeof line, list) != NULL)
        if (sscanf(line, " %*u: %47s %47s %x %*s %*s %*s %lu", from, to, &state, &uid) == 4 && state == ESTABLISHED &&
            strcmp(from, wanted_from) == 0 && strcmp(to, wanted_to) == 0) {
            *uid_out = (int64_t)uid;
            err = 0;
        }
    fclose(list);
    return err;
}

int tti_socket_peer_user(int fd, int64_t *uid_out)
{
    struct sockaddr_storage local, remote;
    socklen_t               local_bytes = sizeof local, remote_bytes = sizeof remote;
    end                     here, there;
    int                     err;

    if (getsockname(fd, (struct sockaddr *)&local, &local_bytes) != 0 ||
        getpeername(fd, (struct sockaddr *)&remote, &remote_bytes) != 0)
        return -errno;
    if (!end_of(&local, &here) || !end_of(&remote, &there) || here.family != there.family)
        return -EAFNOSUPPORT;
    err = ask(&here, &there, uid_out);
    return err == 0 || err == -ENOTCONN ? err : look_up(&here, &there, uid_out);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * port_socket.c - sockets of the system port: TCP over IPv4 and IPv6, abstract Unix sockets.
 *
 * All sockets are close-on-exec and non-blocking; TCP ones send at once and probe silent peers. Listeners set
 * SO_REUSEADDR, so that a port in TIME_WAIT can be taken again, never SO_REUSEPORT, so that a port in use
 * is an error. */
#include "base/fork.h"
#include "base/port_system.h"

#include <assert.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/errqueue.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>
#include <tutti/private.h>

typedef union any_addr {
    struct sockaddr         any;
    struct sockaddr_in      in4;
    struct sockaddr_in6     in6;
    struct sockaddr_un      local;
    struct sockaddr_storage room;
} any_addr;

static socklen_t to_native(const tti_addr *addr, any_addr *out)
{
    size_t name_bytes;

    memset(out, 0, sizeof *out);
    switch (addr->family) {
    case TTI_ADDR_IP4:
        out->in4.sin_family = AF_INET;
        out->in4.sin_port = htons(addr->port);
        memcpy(&out->in4.sin_addr, addr->ip, 4);
        return sizeof out->in4;
    case TTI_ADDR_IP6:
        out->in6.sin6_family = AF_INET6;
        out->in6.sin6_port = htons(addr->port);
        out->in6.sin6_scope_id = addr->scope;
        memcpy(&out->in6.sin6_addr, addr->ip, 16);
        return sizeof out->in6;
    case TTI_ADDR_LOCAL:
        name_bytes = strnlen(addr->name, sizeof addr->name - 1);
        out->local.sun_family = AF_UNIX;
        memcpy(out->local.sun_path + 1, addr->name, name_bytes); /* [0] stays NUL: abstract */
        return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + name_bytes);
    case TTI_ADDR_NONE: break;
    }
    return 0;
}

static void from_native(const any_addr *native, tti_addr *out)
{
    memset(out, 0, sizeof *out);
    if (native->any.sa_family == AF_INET) {
        out->family = TTI_ADDR_IP4;
        out->port = ntohs(native->in4.sin_port);
        memcpy(out->ip, &native->in4.sin_addr, 4);
    } else if (native->any.sa_family == AF_INET6) {
        out->family = TTI_ADDR_IP6;
        out->port = ntohs(native->in6.sin6_port);
        out->scope = native->in6.sin6_scope_id;
        memcpy(out->ip, &native->in6.sin6_addr, 16);
    } else if (native->any.sa_family == AF_UNIX) {
        out->family = TTI_ADDR_LOCAL;
    }
}

/* Send at once; and notice within DEAD_PEER_SECONDS that a peer's host is gone without a word, whether we
 * wait for its bytes (keepalive) or it owes us acknowledgements (user time-out). A peer that is merely
 * stopped still acknowledges, until its buffers are full: let_wait is for streams where it may be. */
static void tune_tcp(int fd)
{
    enum { DEAD_PEER_SECONDS = 20, PROBE_SECONDS = 5, PROBES = 3 };
    const int          one = 1, idle = PROBE_SECONDS, probes = PROBES;
    const unsigned int unheard_ms = DEAD_PEER_SECONDS * 1000;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unheard_ms, sizeof unheard_ms);
}

static int open_socket(const tti_addr *addr, any_addr *native, socklen_t *bytes, tti_handle *fd_out)
{
    int fd;

    *bytes = to_native(addr, native);
    if (*bytes == 0)
        return -EAFNOSUPPORT;
    fd = socket(native->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (addr->family != TTI_ADDR_LOCAL)
        tune_tcp(fd);
    *fd_out = fd;
    return 0;
}

/* A host without /etc/hosts and without DNS still has a loopback. */
static tutti_status resolve_localhost(uint16_t tcp_port, tti_addr *out, int *n_out)
{
    *out = (tti_addr){ .family = TTI_ADDR_IP4, .port = tcp_port, .ip = { 127, 0, 0, 1 } };
    *n_out = 1;
    return TUTTI_OK;
}

tutti_status tti_socket_resolve(tti_port *port, const char *host, uint16_t tcp_port, tti_addr *out, int max,
                                int *n_out)
{
    const struct addrinfo  want = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct addrinfo       *found = NULL;
    const struct addrinfo *at;
    int                    err;
    int                    n = 0;

    (void)port;
    assert(max >= 1);
    err = getaddrinfo(host, NULL, &want, &found);
    if (err != 0 && strcmp(host, "localhost") == 0)
        return resolve_localhost(tcp_port, out, n_out);
    if (err != 0)
        return tti_fail(TUTTI_E_NETWORK,
                        "cannot resolve host '%s': %s\n"
                        "  next: enter it in DNS or in /etc/hosts of this host, or use an address (MASTER_ADDR)",
                        host, err == EAI_SYSTEM ? "system error" : gai_strerror(err));
    for (at = found; at != NULL && n < max; at = at->ai_next) {
        any_addr native;

        if (at->ai_addrlen > sizeof native)
            continue;
        memset(&native, 0, sizeof native);
        memcpy(&native, at->ai_addr, at->ai_addrlen);
        from_native(&native, &out[n]);
        out[n++].port = tcp_port;
    }
    freeaddrinfo(found);
    if (n == 0)
        return tti_fail(TUTTI_E_NETWORK, "host '%s' has no IPv4 or IPv6 address", host);
    *n_out = n;
    return TUTTI_OK;
}

/* Only while it is being made: later such a message would end it, and anybody can send one. */
static void keep_icmp6(tti_handle fd, bool on)
{
    const int value = on;

    (void)setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &value, sizeof value); /* of IPv4: refused, and not needed */
}

/* A port is chosen when it is known where to, so that many connections may have the same. */
static int leave_from(int fd, const tti_addr *from)
{
    const int one = 1;
    tti_addr  at = *from;
    any_addr  native;
    socklen_t bytes;

    at.port = 0;
    bytes = to_native(&at, &native);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    return bytes == 0 ? -EAFNOSUPPORT : bind(fd, &native.any, bytes) != 0 ? -errno : 0;
}

int tti_socket_connect_from(tti_port *port, const tti_addr *from, const char *congestion, const tti_addr *to, tti_handle *handle_out)
{
    any_addr   native;
    socklen_t  bytes;
    tti_handle fd = TTI_NO_HANDLE;
    int        err;

    (void)port;
    err = open_socket(to, &native, &bytes, &fd);
    if (err != 0)
        return err;
    if (from != NULL && (err = leave_from(fd, from)) != 0) {
        close(fd);
        return err;
    }
    if (to->family == TTI_ADDR_IP6)
        keep_icmp6(fd, true);
    if (congestion != NULL)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, (socklen_t)strlen(congestion));
    if (connect(fd, &native.any, bytes) != 0 && errno != EINPROGRESS && errno != EINTR) {
        err = -errno;
        close(fd);
        return err;
    }
    tti_fork_own(fd);
    *handle_out = fd;
    return 0;
}

int tti_socket_connect(tti_port *port, const tti_addr *to, tti_handle *handle_out)
{
    return tti_socket_connect_from(port, NULL, NULL, to, handle_out);
}

/* Whether a message that something on the way sent in the host's name ended a connection that was being made: the kernel keeps it
 * beside the error (IPv4: always; IPv6: if it is asked to). */
static bool was_ended_by_icmp(tti_handle handle)
{
    _Alignas(struct cmsghdr) char control[512];
    char                          packet[64]; /* the beginning of what was answered */
    struct iovec                  part = { .iov_base = packet, .iov_len = sizeof packet };
    struct msghdr                 msg = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
    const struct cmsghdr         *c;

    if (recvmsg(handle, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
        return false;
    for (c = CMSG_FIRSTHDR(&msg); c != NULL; c = CMSG_NXTHDR(&msg, (struct cmsghdr *)(uintptr_t)c)) {
        struct sock_extended_err facts;

        if (!(c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) &&
            !(c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))
            continue;
        memcpy(&facts, CMSG_DATA(c), sizeof facts);
        if (facts.ee_origin == SO_EE_ORIGIN_ICMP || facts.ee_origin == SO_EE_ORIGIN_ICMP6)
            return true;
    }
    return false;
}

/* Where nobody listens a host's kernel resets the connection. That a port is unreachable is what firewalls say ("reject"), and
 * errno is the same: but that one says nothing of who listens. */
int tti_socket_connect_result(tti_port *port, tti_handle handle)
{
    int       err = 0;
    socklen_t bytes = sizeof err;

    (void)port;
    if (getsockopt(handle, SOL_SOCKET, SO_ERROR, &err, &bytes) != 0)
        return -errno;
    if (err == 0)
        keep_icmp6(handle, false);
    return err == ECONNREFUSED && was_ended_by_icmp(handle) ? -EHOSTUNREACH : -err;
}

int tti_socket_listen(tti_port *port, const tti_addr *at, int backlog, tti_addr *bound_out,
                      tti_handle *handle_out)
{
    const int  one = 1, zero = 0;
    any_addr   native;
    socklen_t  bytes;
    tti_handle fd = TTI_NO_HANDLE;
    int        err;

    (void)port;
    err = open_socket(at, &native, &bytes, &fd);
    if (err != 0)
        return err;
    if (at->family != TTI_ADDR_LOCAL)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (at->family == TTI_ADDR_IP6) /* "::" takes IPv4 too, whatever the machine's default is */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    if (bind(fd, &native.any, bytes) != 0 || listen(fd, backlog) != 0)
        goto failed;
    *bound_out = *at;
    if (at->family != TTI_ADDR_LOCAL) {
        bytes = sizeof native;
        if (getsockname(fd, &native.any, &bytes) != 0)
            goto failed;
        from_native(&native, bound_out);
    }
    tti_fork_own(fd);
    *handle_out = fd;
    return 0;

failed:
    err = -errno;
    close(fd);
    return err;
}

int tti_socket_accept(tti_port *port, tti_handle listener, tti_addr *from_out)
{
    any_addr  native;
    socklen_t bytes = sizeof native;
    int       fd;

    (void)port;
    memset(&native, 0, sizeof native);
    do
        fd = accept4(listener, &native.any, &bytes, SOCK_CLOEXEC | SOCK_NONBLOCK);
    while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (fd < 0)
        return -errno;
    tti_fork_own(fd);
    if (native.any.sa_family != AF_UNIX)
        tune_tcp(fd);
    if (from_out != NULL)
        from_native(&native, from_out);
    return fd;
}

int tti_socket_local_addr(tti_port *port, tti_handle handle, tti_addr *addr_out)
{
    any_addr  native;
    socklen_t bytes = sizeof native;

    (void)port;
    memset(&native, 0, sizeof native);
    if (getsockname(handle, &native.any, &bytes) != 0)
        return -errno;
    from_native(&native, addr_out);
    return 0;
}

/* Connecting a UDP socket only asks the routing table. */
int tti_socket_route(tti_port *port, const tti_addr *to, tti_addr *local_out)
{
    tti_addr  target = *to;
    any_addr  native;
    socklen_t bytes;
    int       fd;
    int       err = 0;

    (void)port;
    if (to->family != TTI_ADDR_IP4 && to->family != TTI_ADDR_IP6)
        return -EAFNOSUPPORT;
    if (target.port == 0)
        target.port = 9; /* any will do, but 0 is refused */
    bytes = to_native(&target, &native);
    fd = socket(native.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, &native.any, bytes) != 0)
        err = -errno;
    bytes = sizeof native;
    memset(&native, 0, sizeof native);
    if (err == 0 && getsockname(fd, &native.any, &bytes) != 0)
        err = -errno;
    close(fd);
    if (err != 0)
        return err;
    from_native(&native, local_out);
    local_out->port = 0;
    return 0;
}

/* false: no address that TCP could use. */
static bool read_interface(const struct ifaddrs *at, tti_interface *out)
{
    any_addr native;

    if (at->ifa_addr == NULL)
        return false;
    memset(&native, 0, sizeof native);
    if (at->ifa_addr->sa_family == AF_INET)
        memcpy(&native.in4, at->ifa_addr, sizeof native.in4);
    else if (at->ifa_addr->sa_family == AF_INET6)
        memcpy(&native.in6, at->ifa_addr, sizeof native.in6);
    else
        return false;
    memset(out, 0, sizeof *out);
    from_native(&native, &out->addr);
    out->addr.port = 0;
    out->up = (at->ifa_flags & IFF_UP) != 0;
    out->loopback = (at->ifa_flags & IFF_LOOPBACK) != 0;
    snprintf(out->name, sizeof out->name, "%s", at->ifa_name);
    return true;
}

int tti_socket_interfaces(tti_port *port, tti_interface *out, int max)
{
    struct ifaddrs *all = NULL;
    struct ifaddrs *at;
    int             n = 0;

    (void)port;
    if (getifaddrs(&all) != 0)
        return -errno;
    for (at = all; at != NULL && n < max; at = at->ifa_next)
        n += read_interface(at, &out[n]);
    freeifaddrs(all);
    return n;
}

int64_t tti_socket_send(tti_port *port, tti_handle handle, const tti_part *parts, int n_parts)
{
    enum { PARTS_MAX = 16 };
    struct iovec  iov[PARTS_MAX];
    struct msghdr msg = { .msg_iov = iov };
    ssize_t       sent;
    int           i;

    (void)port;
    for (i = 0; i < n_parts && i < PARTS_MAX; i++)
        iov[i] = (struct iovec){ .iov_base = (void *)(uintptr_t)parts[i].data, .iov_len = parts[i].size };
    msg.msg_iovlen = (size_t)i;
    do
        sent = sendmsg(handle, &msg, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : sent;
}

int64_t tti_socket_recv(tti_port *port, tti_handle handle, void *out, size_t bytes)
{
    ssize_t got;

    (void)port;
    do
        got = recv(handle, out, bytes, 0);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

typedef union fd_control {
    struct cmsghdr head;
    char           room[CMSG_SPACE(sizeof(int) * TTI_FDS_MAX)];
} fd_control;

int tti_socket_send_fds(tti_port *port, tti_handle handle, const void *data, size_t bytes, const int *fds,
                        int n_fds)
{
    struct iovec    iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = bytes };
    fd_control      control;
    struct msghdr   msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control };
    struct cmsghdr *head;
    ssize_t         sent;

    (void)port;
    assert(n_fds >= 1 && n_fds <= TTI_FDS_MAX);
    memset(&control, 0, sizeof control);
    msg.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)n_fds);
    head = CMSG_FIRSTHDR(&msg);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)n_fds);
    memcpy(CMSG_DATA(head), fds, sizeof(int) * (size_t)n_fds);
    do
        sent = sendmsg(handle, &msg, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return -errno;
    return (size_t)sent == bytes ? 0 : -EMSGSIZE;
}

/* Take the descriptors out of a message; those beyond the maximum are closed. Returns how many came. */
static int take_fds(struct msghdr *msg, int *fds_out, int n_fds_max)
{
    struct cmsghdr *head;
    int             n = 0;

    for (head = CMSG_FIRSTHDR(msg); head != NULL; head = CMSG_NXTHDR(msg, head)) {
        size_t count, i;

        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
            continue;
        count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (i = 0; i < count; i++, n++) {
            int fd;

            memcpy(&fd, CMSG_DATA(head) + i * sizeof fd, sizeof fd);
            if (n < n_fds_max) {
                tti_fork_own(fd);
                fds_out[n] = fd;
            } else {
                close(fd);
            }
        }
    }
    return n;
}

int64_t tti_socket_recv_fds(tti_port *port, tti_handle handle, void *out, size_t bytes, int *fds_out,
                            int n_fds_max, int *n_fds_out)
{
    struct iovec  iov = { .iov_base = out, .iov_len = bytes };
    fd_control    control;
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
                          .msg_controllen = sizeof control };
    ssize_t       got;
    int           n, i;

    (void)port;
    do
        got = recvmsg(handle, &msg, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return -errno;
    n = take_fds(&msg, fds_out, n_fds_max);
    if (n > n_fds_max || (msg.msg_flags & MSG_CTRUNC)) {
        for (i = 0; i < n && i < n_fds_max; i++) {
            tti_fork_disown(fds_out[i]);
            close(fds_out[i]);
        }
        return -EMSGSIZE;
    }
    *n_fds_out = n;
    return got;
}

int tti_socket_peer_cred(tti_port *port, tti_handle handle, tti_peer_cred *cred_out)
{
    struct ucred cred;
    socklen_t    bytes = sizeof cred;
    int          domain = AF_UNIX;
    socklen_t    domain_bytes = sizeof domain;
    int64_t      uid = -1;
    int          err;

    (void)port;
    if (getsockopt(handle, SOL_SOCKET, SO_DOMAIN, &domain, &domain_bytes) != 0)
        return -errno;
    if (domain != AF_UNIX) {
        err = tti_socket_peer_user(handle, &uid);
        if (err == 0)
            *cred_out = (tti_peer_cred){ .uid = uid };
        return err;
    }
    if (getsockopt(handle, SOL_SOCKET, SO_PEERCRED, &cred, &bytes) != 0)
        return -errno;
    *cred_out = (tti_peer_cred){ .pid = cred.pid, .uid = cred.uid };
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_listen.c - finding, opening and taking over sockets; the design stands in store_listen.h. */
#include "store/store_listen.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <tutti/private.h>
#include "base/fork.h"
#include "wire/interfaces.h"
#include "wire/ports.h"

/* A free port of one address may be taken at the other: choose again so often. */
enum { PORT_TRIES = 16 };

#define ADDRESS_PATIENCE_NS (3 * TTI_SECOND)
#define ADDRESS_PAUSE_NS    (50 * TTI_MS)

static bool same_ip(const tti_addr *a, const tti_addr *b)
{
    return a->family == b->family && a->scope == b->scope &&
           memcmp(a->ip, b->ip, a->family == TTI_ADDR_IP4 ? 4 : 16) == 0;
}

/* ---- a socket that is given -------------------------------------------------------------------- */

static int option_of(int fd, int name)
{
    int       value = -1;
    socklen_t bytes = sizeof value;

    return getsockopt(fd, SOL_SOCKET, name, &value, &bytes) == 0 ? value : -1;
}

static tutti_status find_given(const tutti_store_server_options *options, tti_listen *out)
{
    const int               fd = options->listen_fd;
    const int               domain = option_of(fd, SO_DOMAIN);
    tti_port               *port = tti_port_system();
    struct sockaddr_storage peer;
    socklen_t               bytes = sizeof peer;

    if (fd < 0 || (domain != AF_INET && domain != AF_INET6) ||
        option_of(fd, SO_TYPE) != SOCK_STREAM || port->ops->local_addr(port, fd, &out->at[0]) != 0)
        return tti_fail(TUTTI_E_ARG, "cannot serve a store on descriptor %d: it is no TCP socket",
                        fd);
    if (getpeername(fd, (struct sockaddr *)&peer, &bytes) == 0)
        return tti_fail(TUTTI_E_ARG, "cannot serve a store on descriptor %d: it is connected", fd);
    if (out->at[0].port == 0)
        return tti_fail(TUTTI_E_ARG,
                        "cannot serve a store on descriptor %d: it is bound to no port", fd);
    if (options->port != 0 && options->port != out->at[0].port)
        return tti_fail(TUTTI_E_ARG,
                        "cannot serve a store on descriptor %d: it is bound to port %u, not %d", fd,
                        out->at[0].port, options->port);
    out->n = 1;
    return TUTTI_OK;
}

static tutti_status open_given(int fd, const tti_secret *secret, tti_listen *listen_at)
{
    tutti_status st = tti_secret_suffices_at(secret, &listen_at->at[0], "serve a store");
    int          own;

    if (st != TUTTI_OK)
        return st;
    own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (own < 0)
        return tti_fail_errno(errno, "cannot duplicate descriptor %d", fd);
    if (listen(own, TTI_LISTEN_BACKLOG) != 0) {
        const int err = errno;

        close(own);
        return tti_fail_errno_as(TUTTI_E_NETWORK, err, "cannot serve a store on descriptor %d", fd);
    }
    tti_fork_own(own);
    listen_at->fds[0] = own;
    return TUTTI_OK;
}

/* ---- sockets of our own ------------------------------------------------------------------------ */

static tutti_status find_named(const tutti_store_server_options *options, tti_listen *out)
{
    const char  *host = options->host != NULL ? options->host : "127.0.0.1";
    tti_port    *port = tti_port_system();
    tti_addr     found[TTI_LISTEN_MAX];
    int          n = 0, i, k;
    bool         any = false;
    tutti_status st;

    st = tti_listens_any(&any);
    if (st == TUTTI_OK && any) {
        out->at[out->n++] = tti_any_addr(port, (uint16_t)options->port);
        return TUTTI_OK;
    }
    if (st == TUTTI_OK)
        st = port->ops->resolve(port, host, (uint16_t)options->port, found, TTI_LISTEN_MAX - 1, &n);
    if (st != TUTTI_OK)
        return st;
    if (tti_addr_beyond_loopback(port, host, found, n, &found[n]))
        n++; /* what the name means on other hosts */
    for (i = 0; i < n; i++) {
        for (k = 0; k < out->n && !same_ip(&out->at[k], &found[i]); k++)
            continue;
        if (k == out->n)
            out->at[out->n++] = found[i];
    }
    return TUTTI_OK;
}

tutti_status tti_listen_find(const tutti_store_server_options *options, tti_listen *out)
{
    if (options->port < 0 || options->port > 65535)
        return tti_fail(TUTTI_E_ARG, "a store server's port is %d, not between 0 and 65535",
                        options->port);
    out->n = 0;
    return options->listen_fd != 0 ? find_given(options, out) : find_named(options, out);
}

/* Not this machine's, or of a kind it does not have: another address may do. */
static bool is_elsewhere(int err)
{
    return err == EADDRNOTAVAIL || err == EAFNOSUPPORT;
}

/* Listen at every address that can be, at the port of the first one. *err_out: why the last one that
 * cannot is not among out, 0 if all are. */
static tutti_status open_each(const tti_listen *wanted, const tti_secret *secret, tti_listen *out,
                              int *err_out)
{
    tti_port    *port = tti_port_system();
    tutti_status st = TUTTI_OK;
    int          i;

    out->n = 0;
    *err_out = 0;
    for (i = 0; i < wanted->n; i++) {
        tti_addr     at = wanted->at[i];
        tutti_status allowed = tti_secret_suffices_at(secret, &at, "serve a store");
        int          err;

        if (allowed != TUTTI_OK) {
            st = allowed;
            continue;
        }
        if (out->n > 0)
            at.port = out->at[0].port;
        err = tti_listen_in_range(port, &at, TTI_LISTEN_BACKLOG, &out->at[out->n],
                                  &out->fds[out->n]);
        if (err == 0) {
            out->n++;
            continue;
        }
        st = tti_listen_failed(err, &at, "serve a store");
        *err_out = err;
        if (!is_elsewhere(err))
            return st;
    }
    return out->n > 0 ? TUTTI_OK : st;
}

/* The same with other ports, where any may be chosen and the second address lacks the first's. */
static tutti_status open_all(const tti_listen *wanted, const tti_secret *secret, tti_listen *out,
                             int *err_out)
{
    const bool   any_port = wanted->at[0].port == 0;
    int          tries = 0;
    tutti_status st;

    do {
        st = open_each(wanted, secret, out, err_out);
        if (st != TUTTI_OK)
            tti_listen_close(out);
    } while (st != TUTTI_OK && any_port && *err_out == EADDRINUSE && ++tries < PORT_TRIES);
    return st;
}

static tutti_status not_here(const tti_addr *at, int64_t waited_ns)
{
    char text[TTI_ADDR_TEXT_MAX];

    return tti_fail(TUTTI_E_NETWORK,
                    "cannot serve a store at %s: this host has no such address, after %lld ms\n"
                    "  next: set MASTER_ADDR to an address of the host of rank 0; if it belongs to a "
                    "service or a NAT in front of this host, set TUTTI_LISTEN=any here",
                    tti_addr_format(at, text, sizeof text), (long long)(waited_ns / TTI_MS));
}

/* None of the addresses may be here yet, as interfaces come up late: waited for a while, since a wrong one
 * never comes. */
static tutti_status open_named(const tti_secret *secret, tti_listen *listen_at)
{
    tti_port     *port = tti_port_system();
    const int64_t began = tti_port_now(port);
    tti_listen    opened;
    int           err = 0;
    tutti_status  st;

    while ((st = open_all(listen_at, secret, &opened, &err)) == TUTTI_E_NETWORK && is_elsewhere(err)) {
        const int64_t now = tti_port_now(port);

        if (now - began >= ADDRESS_PATIENCE_NS)
            return not_here(&listen_at->at[0], now - began);
        port->ops->sleep_until(port, now + ADDRESS_PAUSE_NS);
    }
    if (st == TUTTI_OK)
        *listen_at = opened;
    return st;
}

tutti_status tti_listen_open(const tutti_store_server_options *options, const tti_secret *secret,
                             tti_listen *listen_at)
{
    return options->listen_fd != 0 ? open_given(options->listen_fd, secret, listen_at)
                                   : open_named(secret, listen_at);
}

void tti_listen_check_queue(int n_clients)
{
    FILE *file = fopen("/proc/sys/net/core/somaxconn", "re");
    int   most = INT_MAX;

    if (file == NULL)
        return;
    if (fscanf(file, "%d", &most) == 1 && n_clients > most)
        tti_log(TTI_LOG_WARN,
                "%d clients may connect at once, and this kernel queues %d, so that others try again seconds "
                "later: sysctl -w net.core.somaxconn=%d",
                n_clients, most, n_clients);
    fclose(file);
}

void tti_listen_close(tti_listen *listen_at)
{
    tti_port *port = tti_port_system();

    while (listen_at->n > 0)
        port->ops->close(port, listen_at->fds[--listen_at->n]);
}

/* ---- comparing --------------------------------------------------------------------------------- */

static bool is_wildcard(const tti_addr *a)
{
    static const uint8_t zeros[16];

    return memcmp(a->ip, zeros, a->family == TTI_ADDR_IP4 ? 4 : 16) == 0;
}

/* "::" listens on IPv4 too. */
static bool covers(const tti_addr *a, const tti_addr *b)
{
    return is_wildcard(a) ? a->family == b->family || a->family == TTI_ADDR_IP6 : same_ip(a, b);
}

bool tti_listen_clash(const tti_listen *a, const tti_listen *b)
{
    int i, k;

    for (i = 0; i < a->n; i++)
        for (k = 0; k < b->n; k++)
            if (a->at[i].port == b->at[k].port && a->at[i].port != 0 &&
                (covers(&a->at[i], &b->at[k]) || covers(&b->at[k], &a->at[i])))
                return true;
    return false;
}

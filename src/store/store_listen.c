/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_listen.c - finding, opening and taking over sockets; the design stands in store_listen.h. */
#include "store/store_listen.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <tutti/private.h>

/* A free port of one address may be taken at the other: choose again so often. */
enum { PORT_TRIES = 16 };

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
    tutti_status st = tti_secret_suffices(secret, &listen_at->at[0], "serve a store");
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
    tutti_status st;

    st = port->ops->resolve(port, host, (uint16_t)options->port, found, TTI_LISTEN_MAX, &n);
    if (st != TUTTI_OK)
        return st;
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

static tutti_status listen_failed(int err, const tti_addr *at)
{
    char text[TTI_ADDR_TEXT_MAX];

    tti_addr_format(at, text, sizeof text);
    if (err == EADDRINUSE)
        return tti_fail(TUTTI_E_NETWORK,
                        "cannot serve a store at %s: the port is taken\n"
                        "  next: choose another port, or 0 for any free one",
                        text);
    return tti_fail_errno_as(TUTTI_E_NETWORK, err, "cannot serve a store at %s", text);
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
        tutti_status allowed = tti_secret_suffices(secret, &at, "serve a store");
        int          err;

        if (allowed != TUTTI_OK) {
            st = allowed;
            continue;
        }
        if (out->n > 0)
            at.port = out->at[0].port;
        err = -port->ops->listen(port, &at, TTI_LISTEN_BACKLOG, &out->at[out->n],
                                 &out->fds[out->n]);
        if (err == 0) {
            out->n++;
            continue;
        }
        st = listen_failed(err, &at);
        *err_out = err;
        if (!is_elsewhere(err))
            return st;
    }
    return out->n > 0 ? TUTTI_OK : st;
}

static tutti_status open_named(const tti_secret *secret, tti_listen *listen_at)
{
    const bool   any_port = listen_at->at[0].port == 0;
    tti_listen   opened;
    int          err = 0, tries = 0;
    tutti_status st;

    do {
        st = open_each(listen_at, secret, &opened, &err);
        if (st != TUTTI_OK)
            tti_listen_close(&opened);
    } while (any_port && err == EADDRINUSE && ++tries < PORT_TRIES);
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

void tti_listen_close(tti_listen *listen_at)
{
    while (listen_at->n > 0)
        close(listen_at->fds[--listen_at->n]);
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

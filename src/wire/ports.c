/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ports.c - listening where the others will look, through ports that they are let through.
 *
 * True    The wildcard is listened on only with TUTTI_LISTEN=any, beyond loopback never without a secret
 *         (wire/secret.h). */
#include "wire/ports.h"

#include "base/env.h"
#include "wire/interfaces.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <tutti/private.h>

enum { ADDRS_MAX = 16 };

tutti_status tti_ports_wanted(tti_ports *out)
{
    const char  *text = tti_env("TUTTI_PORT_RANGE");
    unsigned int first = 0, last = 0;
    int          read = 0;

    if (text == NULL)
        return TUTTI_OK;
    if (sscanf(text, "%5u-%5u%n", &first, &last, &read) != 2 || text[read] != '\0' || first < 1 ||
        last < first || last > UINT16_MAX)
        return tti_fail(TUTTI_E_ARG,
                        "TUTTI_PORT_RANGE is '%.40s', not a range of ports between 1 and 65535\n"
                        "  next: write FIRST-LAST, 20000-20049 say",
                        text);
    *out = (tti_ports){ .first = (uint16_t)first, .last = (uint16_t)last };
    return TUTTI_OK;
}

tutti_status tti_listens_any(bool *any_out)
{
    const char *text = tti_env("TUTTI_LISTEN");

    if (strcmp(text, "any") != 0 && strcmp(text, "route") != 0)
        return tti_fail(TUTTI_E_ARG, "TUTTI_LISTEN is '%.40s', not 'route' or 'any'\n"
                                     "  next: set it to one of these, or unset it",
                        text);
    *any_out = strcmp(text, "any") == 0;
    return TUTTI_OK;
}

tti_addr tti_any_addr(tti_port *port, uint16_t tcp_port)
{
    tti_addr   any = { .family = TTI_ADDR_IP6 };
    tti_addr   bound;
    tti_handle probe = TTI_NO_HANDLE;

    if (port->ops->listen(port, &any, 1, &bound, &probe) == 0)
        port->ops->close(port, probe);
    else
        any.family = TTI_ADDR_IP4;
    any.port = tcp_port;
    return any;
}

/* Any free port of the range, beginning anywhere, so that ranks of one host do not queue up. 0 or an errno. */
static int listen_between(tti_port *port, const tti_addr *at, tti_ports ports, int backlog,
                          tti_addr *bound_out, tti_handle *handle_out)
{
    const uint32_t n = ports.last - ports.first + 1U;
    tti_addr       one = *at;
    uint32_t       dice, i;
    int            err = 0;

    port->ops->random(port, &dice, sizeof dice);
    for (i = 0; i < n; i++) {
        one.port = (uint16_t)(ports.first + (dice % n + i) % n);
        err = -port->ops->listen(port, &one, backlog, bound_out, handle_out);
        if (err != EADDRINUSE)
            break;
    }
    return err;
}

int tti_listen_in_range(tti_port *port, const tti_addr *at, int backlog, tti_addr *bound_out,
                        tti_handle *handle_out)
{
    tti_ports ports = { 0 };

    if (at->port != 0)
        return -port->ops->listen(port, at, backlog, bound_out, handle_out);
    if (tti_ports_wanted(&ports) != TUTTI_OK)
        return TTI_BAD_RANGE;
    if (ports.last != 0)
        return listen_between(port, at, ports, backlog, bound_out, handle_out);
    return -port->ops->listen(port, at, backlog, bound_out, handle_out);
}

tutti_status tti_listen_failed(int err, const tti_addr *at, const char *what)
{
    tti_ports ports = { 0 };
    char      text[TTI_ADDR_TEXT_MAX];

    tti_addr_format(at, text, sizeof text);
    if (err == TTI_BAD_RANGE)
        return tti_ports_wanted(&ports);
    if (err == EADDRINUSE && at->port == 0 && tti_ports_wanted(&ports) == TUTTI_OK && ports.last != 0)
        return tti_fail(TUTTI_E_NETWORK,
                        "cannot %s at %s: all ports of TUTTI_PORT_RANGE, %u to %u, are taken\n"
                        "  next: widen TUTTI_PORT_RANGE",
                        what, text, ports.first, ports.last);
    if (err == EADDRINUSE)
        return tti_fail(TUTTI_E_NETWORK,
                        "cannot %s at %s: the port is taken\n"
                        "  next: see who has it (ss -ltnp): where it is this job, two of it were started as its first; else "
                        "choose another port, or 0 for any free one",
                        what, text);
    if (err == EADDRNOTAVAIL)
        return tti_fail(TUTTI_E_NETWORK,
                        "cannot %s at %s: this host has no such address\n"
                        "  next: name one that it has (ip addr)",
                        what, text);
    return tti_fail_errno_as(TUTTI_E_NETWORK, err, "cannot %s at %s", what, text);
}

tutti_status tti_listen_tcp(tti_port *port, const tti_addr *at, int backlog, const tti_secret *secret,
                            tti_addr *bound_out, tti_handle *handle_out)
{
    static const char what[] = "listen for other ranks";
    tti_addr          here = *at;
    bool              any = false;
    tutti_status      st = tti_listens_any(&any);
    int               err;

    if (st == TUTTI_OK && any) {
        memset(here.ip, 0, sizeof here.ip);
        here.scope = 0;
    }
    if (st == TUTTI_OK)
        st = tti_secret_suffices_at(secret, &here, what);
    if (st != TUTTI_OK)
        return st;
    err = tti_listen_in_range(port, &here, backlog, bound_out, handle_out);
    if (err == EADDRNOTAVAIL)
        st = tti_interface_absent(port, &here);
    return err == 0 || st != TUTTI_OK ? st : tti_listen_failed(err, &here, what);
}

/* The resolver has told why; what to do depends on who asked for the name. */
static tutti_status bad_advertised(const char *host)
{
    char why[256];

    snprintf(why, sizeof why, "%.*s", (int)strcspn(tutti_last_error(), "\n"), tutti_last_error());
    return tti_fail(TUTTI_E_NETWORK,
                    "TUTTI_ADVERTISE is '%.200s': %s\n"
                    "  next: give the address under which the others reach this rank",
                    host, why);
}

tutti_status tti_advertised(tti_port *port, const tti_addr *at, const tti_addr *bound, tti_addr *addr_out)
{
    const char  *host = tti_env("TUTTI_ADVERTISE");
    tti_addr     addrs[ADDRS_MAX];
    tti_addr     addr = *at;
    char         bare[TTI_HOST_MAX];
    tutti_status st;
    int          n = 0, i;

    if (host != NULL) {
        st = port->ops->resolve(port, tti_host_bare(host, bare), 0, addrs, ADDRS_MAX, &n);
        if (st != TUTTI_OK)
            return bad_advertised(host);
        addr = addrs[0];
        for (i = n - 1; i >= 0; i--)
            if (addrs[i].family == at->family)
                addr = addrs[i];
    }
    addr.port = bound->port;
    *addr_out = addr;
    return TUTTI_OK;
}

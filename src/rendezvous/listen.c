/* SPDX-License-Identifier: BSD-3-Clause
 *
 * listen.c - where this rank listens, and lets the others know that it does. */
#include "rendezvous/listen.h"

#include "wire/interfaces.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <tutti/private.h>

enum { ADDRS_MAX = 16 };

/* "10.0.0.1:0" without its port, "[::1]:0" without brackets too. */
static void write_host(const tti_addr *addr, char host_out[TTI_HOST_MAX])
{
    char  text[TTI_ADDR_TEXT_MAX];
    char *start = text;
    char *end;

    tti_addr_format(addr, text, sizeof text);
    if (text[0] == '[') {
        start = text + 1;
        end = strchr(start, ']');
    } else {
        end = strrchr(start, ':');
    }
    assert(end != NULL);
    *end = '\0';
    snprintf(host_out, TTI_HOST_MAX, "%s", start);
}

static tutti_status no_route(const char *master, int err)
{
    return tti_fail_errno_as(TUTTI_E_NETWORK, err, "there is no route to the master '%.200s'", master);
}

/* The address that routes to the first of master's addresses that has a route. */
static tutti_status host_of_route(tti_port *port, const char *master, const tti_addr *to, int n,
                                  char host_out[TTI_HOST_MAX])
{
    tti_addr local;
    int      err = 0, i;

    if (tti_addr_beyond_loopback(port, master, to, n, &local)) {
        write_host(&local, host_out);
        return TUTTI_OK;
    }
    for (i = 0; i < n; i++) {
        if (tti_addr_is_loopback(&to[i])) {
            write_host(&to[i], host_out);
            return TUTTI_OK;
        }
        if (port->ops->route == NULL)
            return tti_fail(TUTTI_E_UNSUPPORTED, "port '%s' knows no routes", port->ops->name);
        err = port->ops->route(port, &to[i], &local);
        if (err != 0)
            continue;
        write_host(&local, host_out);
        return TUTTI_OK;
    }
    return no_route(master, -err);
}

tutti_status tti_listen_host(tti_port *port, const char *master, const tti_addr *way,
                             char host_out[TTI_HOST_MAX])
{
    tti_addr     to[ADDRS_MAX];
    tti_addr     wanted;
    bool         set = false;
    int          n = 0;
    tutti_status st = tti_interface_wanted(port, way, &set, &wanted);

    if (st != TUTTI_OK)
        return st;
    if (set) {
        write_host(&wanted, host_out);
    } else if (way != NULL && (master == NULL || !tti_addr_is_loopback(way))) {
        write_host(way, host_out);
    } else if (master == NULL) {
        snprintf(host_out, TTI_HOST_MAX, "127.0.0.1");
    } else { /* with TUTTI_LISTEN=any rank 0 reaches its own store by loopback, which tells nothing */
        st = port->ops->resolve(port, master, 0, to, ADDRS_MAX, &n);
        if (st == TUTTI_OK)
            st = host_of_route(port, master, to, n, host_out);
    }
    return st;
}

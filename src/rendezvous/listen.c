/* SPDX-License-Identifier: BSD-3-Clause
 *
 * listen.c - where this rank listens: never on the wildcard address. */
#include "rendezvous/listen.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <tutti/private.h>

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

static tutti_status host_of_setting(tti_port *port, const char *setting,
                                    char host_out[TTI_HOST_MAX])
{
    tti_addr addr;
    int      err;

    if (tti_addr_parse(setting, 0, &addr) == TUTTI_OK) {
        write_host(&addr, host_out);
        return TUTTI_OK;
    }
    if (port->ops->interface_addr == NULL)
        return tti_fail(TUTTI_E_UNSUPPORTED, "port '%s' knows no interfaces", port->ops->name);
    err = port->ops->interface_addr(port, setting, &addr);
    if (err != 0)
        return tti_fail_errno_as(TUTTI_E_ARG, -err,
                                 "TUTTI_SOCKET_IFNAME is '%.64s', neither a numeric address nor an "
                                 "interface that has one",
                                 setting);
    write_host(&addr, host_out);
    return TUTTI_OK;
}

static tutti_status host_of_route(tti_port *port, const char *master, char host_out[TTI_HOST_MAX])
{
    tti_addr     to;
    tti_addr     local;
    tutti_status st;
    int          n = 0;
    int          err;

    st = port->ops->resolve(port, master, 0, &to, 1, &n);
    if (st != TUTTI_OK)
        return st;
    if (tti_addr_is_loopback(&to)) {
        write_host(&to, host_out);
        return TUTTI_OK;
    }
    if (port->ops->route == NULL)
        return tti_fail(TUTTI_E_UNSUPPORTED, "port '%s' knows no routes", port->ops->name);
    err = port->ops->route(port, &to, &local);
    if (err != 0)
        return tti_fail_errno_as(TUTTI_E_NETWORK, -err, "there is no route to the master '%.200s'",
                                 master);
    write_host(&local, host_out);
    return TUTTI_OK;
}

tutti_status tti_listen_host(tti_port *port, const char *master, char host_out[TTI_HOST_MAX])
{
    const char *setting = tti_env("TUTTI_SOCKET_IFNAME");

    if (setting != NULL)
        return host_of_setting(port, setting, host_out);
    if (master != NULL)
        return host_of_route(port, master, host_out);
    snprintf(host_out, TTI_HOST_MAX, "127.0.0.1");
    return TUTTI_OK;
}

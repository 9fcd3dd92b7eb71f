/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tcp_link.c - the port's stream, as a link. */
#include "transport/tcp/tcp_link.h"

#include <stdlib.h>
#include <tutti/private.h>

typedef struct tcp_link {
    tti_link   base;
    tti_port  *port;
    tti_handle stream;
} tcp_link;

static int64_t tcp_send(tti_link *base, const tti_part *parts, int n_parts)
{
    tcp_link *link = (tcp_link *)base;

    return link->port->ops->send(link->port, link->stream, parts, n_parts);
}

static int64_t tcp_recv(tti_link *base, void *out, size_t bytes)
{
    tcp_link *link = (tcp_link *)base;

    return link->port->ops->recv(link->port, link->stream, out, bytes);
}

static tti_handle tcp_handle(const tti_link *base)
{
    return ((const tcp_link *)base)->stream;
}

static void tcp_close(tti_link *base)
{
    tcp_link *link = (tcp_link *)base;

    link->port->ops->close(link->port, link->stream);
    free(link);
}

static const tti_link_ops tcp_ops = {
    .name = "tcp", .send = tcp_send, .recv = tcp_recv, .handle = tcp_handle, .close = tcp_close,
};

tutti_status tti_tcp_link_open(tti_port *port, tti_handle stream, int peer_rank, tti_link **link_out)
{
    tcp_link *link = calloc(1, sizeof *link);

    if (link == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the link to rank %d", peer_rank);
    *link = (tcp_link){ .base = { .ops = &tcp_ops }, .port = port, .stream = stream };
    *link_out = &link->base;
    return TUTTI_OK;
}

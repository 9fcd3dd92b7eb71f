/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rendezvous/listen.h - the address of this host where the other ranks can reach it. */
#ifndef TTI_RENDEZVOUS_LISTEN_H
#define TTI_RENDEZVOUS_LISTEN_H

#include "wire/addr.h"

/** Write a numeric address. TUTTI_SOCKET_IFNAME (wire/interfaces.h) decides when it is set; else way, the
 * address that the connection to the store begins at; else the one that routes to master, loopback when
 * that is local. master NULL: the store is inside this host, and so is the job. way NULL: not known.
 *
 * @errors TUTTI_E_ARG          TUTTI_SOCKET_IFNAME is wrong, or nothing matches it
 *         TUTTI_E_NETWORK      master does not resolve, or there is no route
 *         TUTTI_E_UNSUPPORTED  the port cannot tell */
tutti_status tti_listen_host(tti_port *port, const char *master, const tti_addr *way,
                             char host_out[TTI_HOST_MAX]);

#endif

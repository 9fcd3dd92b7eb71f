/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire/ports.h - how this host listens: TUTTI_PORT_RANGE, TUTTI_LISTEN, TUTTI_ADVERTISE. */
#ifndef TTI_WIRE_PORTS_H
#define TTI_WIRE_PORTS_H

#include "wire/addr.h"
#include "wire/secret.h"

/** Ports that a firewall lets through, first to last. */
typedef struct tti_ports {
    uint16_t first, last;
} tti_ports;

/** Overwrite *out with TUTTI_PORT_RANGE; untouched where that is not set.
 * @errors TUTTI_E_ARG  it is not "FIRST-LAST" with 1 <= FIRST <= LAST <= 65535 */
tutti_status tti_ports_wanted(tti_ports *out);

/** Whether TUTTI_LISTEN is "any".
 * @errors TUTTI_E_ARG  it is neither "any" nor "route" */
tutti_status tti_listens_any(bool *any_out);

/** All addresses of this host: IPv6's wildcard, which takes IPv4 too, or IPv4's where there is no IPv6. */
tti_addr tti_any_addr(tti_port *port, uint16_t tcp_port);

/** The port's listen(), but that port 0 is any free one of TUTTI_PORT_RANGE where that is set. 0 or an
 * errno; TTI_BAD_RANGE: TUTTI_PORT_RANGE is wrong, which has been said. */
int tti_listen_in_range(tti_port *port, const tti_addr *at, int backlog, tti_addr *bound_out,
                        tti_handle *handle_out);

enum { TTI_BAD_RANGE = -1 };

/** Words for what tti_listen_in_range() returned. what: "serve a store". */
tutti_status tti_listen_failed(int err, const tti_addr *at, const char *what);

/** Listen for other ranks at one address. TUTTI_LISTEN=any: at all addresses of its family.
 *
 * @errors TUTTI_E_NETWORK  the port, or the whole range, is taken; or the address is none of this host's
 *         TUTTI_E_AUTH     secret does not suffice for the address
 *         TUTTI_E_ARG      TUTTI_PORT_RANGE or TUTTI_LISTEN is wrong, or TUTTI_SOCKET_IFNAME names an address that
 *                          this host has not */
tutti_status tti_listen_tcp(tti_port *port, const tti_addr *at, int backlog, const tti_secret *secret,
                            tti_addr *bound_out, tti_handle *handle_out);

/** What to tell others about a listener: TUTTI_ADVERTISE where that is set, else at; with bound's port.
 * @errors TUTTI_E_NETWORK  TUTTI_ADVERTISE does not resolve */
tutti_status tti_advertised(tti_port *port, const tti_addr *at, const tti_addr *bound, tti_addr *addr_out);

#endif

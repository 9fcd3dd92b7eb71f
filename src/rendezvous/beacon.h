/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rendezvous/beacon.h - on one host rank 0 tells the others which port its store has got. */
#ifndef TTI_RENDEZVOUS_BEACON_H
#define TTI_RENDEZVOUS_BEACON_H

#include "base/port.h"

typedef struct tti_beacon tti_beacon;

/** Tell tcp_port to every process of this user and host that asks for name, until closed.
 *
 * @errors TUTTI_E_NETWORK  somebody on this host does so under that name already
 *         TUTTI_E_NOMEM */
tutti_status tti_beacon_open(tti_port *port, const char *name, uint16_t tcp_port, tti_beacon **beacon_out);

/** Ask, with patience until the deadline: whoever serves it may start later.
 *
 * @errors TUTTI_E_NETWORK  nobody tells; the text has the name and the ms waited
 *         TUTTI_E_AUTH     another user has taken the name */
tutti_status tti_beacon_ask(tti_port *port, const char *name, int64_t deadline_ns, uint16_t *tcp_port_out);

/** NULL is fine. */
void tti_beacon_close(tti_beacon *beacon);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire/rails.h - several interfaces that are all to be used, because they are named one by one.
 *
 * Why     A host with two network cards has two links. Who names both ('=eth0,=ib0', or both in GLOO_SOCKET_IFNAME, where
 *         PyTorch's gloo opens a device on each) wants what both can carry.
 * How     Each name is a rail: an address of this host, of the interface that is called so. The first rail is where everything
 *         begins: the store, the heartbeats, the first connection to a rank. Connections to a rank are dealt to the rails in
 *         turn, from rail k here to rail k there (transport/meet_rails.c), so that all ranks have as many.
 * True    Beginnings of names, exclusions and addresses are no rails: of what they match one is chosen (interfaces.h), as one
 *         setting is often given to hosts that differ. Nor is a single name. */
#ifndef TTI_WIRE_RAILS_H
#define TTI_WIRE_RAILS_H

#include "wire/addr.h"

enum { TTI_RAILS_MAX = 8, TTI_RAILS_TEXT_MAX = TTI_RAILS_MAX * (TTI_INTERFACE_NAME_MAX + 2) };

typedef struct tti_rail {
    char     name[TTI_INTERFACE_NAME_MAX];
    tti_addr addr; /* port 0 */
} tti_rail;

typedef struct tti_rails {
    int      n; /* 0: interfaces are not named one by one; else 2 or more */
    tti_rail rail[TTI_RAILS_MAX];
} tti_rails;

/** The rails that TUTTI_SOCKET_IFNAME, else GLOO_SOCKET_IFNAME, names, in that order. Of an interface's addresses one of that
 * family, link-local ones last. A port that knows no interfaces has none.
 *
 * @errors TUTTI_E_ARG      one is not there, is down, or is named twice; there are too many; or TUTTI_LISTEN=any or
 *                          TUTTI_ADVERTISE say one address for all
 *         TUTTI_E_NETWORK  the interfaces of this host cannot be listed */
tutti_status tti_rails_wanted(tti_port *port, tti_addr_family family, tti_rails *rails_out);

/** Their names for a text: "eth0, ib0". Returns out. */
const char *tti_rails_text(const tti_rails *rails, char out[TTI_RAILS_TEXT_MAX]);

#endif

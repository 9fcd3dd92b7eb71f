/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire/interfaces.h - which of this host's addresses others are to use. */
#ifndef TTI_WIRE_INTERFACES_H
#define TTI_WIRE_INTERFACES_H

#include "wire/addr.h"

enum { TTI_NAMED_MAX = 32, TTI_NAMED_BYTES = 64 };

/** The address that TUTTI_SOCKET_IFNAME, else GLOO_SOCKET_IFNAME, asks for; *set_out false and nothing
 * else where neither is set.
 *
 *   eth,ib        interfaces whose names begin so
 *   =eth0,=ib0    whole names; '=' before the first entry holds for all of them, as '^' does
 *   ^docker,lo    all interfaces but these; 'eth,^eth9': those of the one without the other
 *   10.0.0.7      this address
 *
 * Loopback is chosen only where it is named. Of the interfaces that remain: one that routes to `to`
 * first, then by order of the list, whole names before beginnings; of one interface's addresses one of to's
 * family (IPv4 where to is NULL), link-local ones last. GLOO_SOCKET_IFNAME has whole names only.
 * Several whole names, and nothing else, are rails (rails.h): then it is the address of the first.
 *
 * @errors TUTTI_E_ARG  nothing remains; the text has the setting and the interfaces that there are */
tutti_status tti_interface_wanted(tti_port *port, const tti_addr *to, bool *set_out, tti_addr *addr_out);

/** Words for an address that this host has turned out not to have when somebody wanted to listen there: TUTTI_E_ARG if the
 * setting names it, with the interfaces that there are; TUTTI_OK, and no words, if it comes from elsewhere. */
tutti_status tti_interface_absent(tti_port *port, const tti_addr *addr);

/** An address of this host that others may know it by, where nothing tells more: what
 * tti_interface_wanted() says, else the one that default routes leave from, else that of the first
 * interface that is up, is not loopback and does not look like a bridge of containers. false: none. */
bool tti_own_addr(tti_port *port, tti_addr *addr_out);

/** The names of interfaces that TUTTI_SOCKET_IFNAME, else GLOO_SOCKET_IFNAME, has one by one. */
typedef struct tti_named {
    const char *variable, *value;
    int         n; /* 0: there are not several, or not whole names only */
    char        name[TTI_NAMED_MAX][TTI_NAMED_BYTES]; /* whatever is there, whether or not it is called so */
} tti_named;

/** Read that. rails.h has what it is for.
 * @errors TUTTI_E_ARG  the setting cannot be read */
tutti_status tti_interfaces_named(tti_named *named_out);

/** All interfaces, each name once, for a text: "lo, eth0, ib0 (down)". Returns out; what does not fit is left out. */
const char *tti_interfaces_text(const tti_interface *faces, int n, char *out, size_t bytes);

/** 169.254/16 or fe80::/10. */
bool tti_addr_is_link_local(const tti_addr *addr);

/** Whether addr is one of this host's own, loopback included. */
bool tti_addr_is_own(tti_port *port, const tti_addr *addr);

/** Whether this host's loopback interface is up; true where the port does not tell. */
bool tti_loopback_is_up(tti_port *port);

/** On many hosts their own name means 127.0.1.1, and others resolve it properly. Where all n addresses of
 * host, a name but localhost, are loopback, and the job may have ranks elsewhere (there is a secret, or none
 * is wanted; the launcher does not tell otherwise): true, and the address that the name has to mean. */
bool tti_addr_beyond_loopback(tti_port *port, const char *host, const tti_addr *addrs, int n,
                              tti_addr *addr_out);

#endif

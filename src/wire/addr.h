/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire/addr.h - addresses as text, connecting with patience, and whole messages over a stream. */
#ifndef TTI_WIRE_ADDR_H
#define TTI_WIRE_ADDR_H

#include "base/port.h"

enum {
    TTI_ADDR_TEXT_MAX = 80, /* longest text of an address, NUL included */
    TTI_HOST_MAX = 256      /* longest host name, NUL included */
};

/** Write addr as text: "10.0.0.1:29500", "[fe80::1%2]:29500", "local:name". Returns out; text that
 * does not fit is cut. */
const char *tti_addr_format(const tti_addr *addr, char *out, size_t bytes);

/** A numeric address without a name lookup: "10.0.0.1", "::1", "fe80::1%2" (interface index).
 * @errors TUTTI_E_ARG  not a numeric address */
tutti_status tti_addr_parse(const char *host, uint16_t tcp_port, tti_addr *out);

/** Whether bytes sent there stay on this host: 127/8, ::1, ::ffff:127/104, and LOCAL. */
bool tti_addr_is_loopback(const tti_addr *addr);

/** Split "host:port" and "[v6]:port" into host[TTI_HOST_MAX] and port 1..65535 (0 too if zero_ok).
 * @errors TUTTI_E_ARG  no host, no port, port not a number in range, "::1:80" without brackets */
tutti_status tti_addr_split(const char *text, bool zero_ok, char host_out[TTI_HOST_MAX],
                            uint16_t *port_out);

/** A host as a resolver wants it: "[fd99::10]", which is how an address is written before a port, without its brackets; any other one
 * as it is. Returns out, cut where it is too long. */
const char *tti_host_bare(const char *host, char out[TTI_HOST_MAX]);

/** Connect to host:tcp_port, trying all its addresses. Names that do not resolve, refused,
 * unreachable and reset connections are tried again, after 10 ms first and up to 2 s later, with
 * jitter, until the deadline; at least once.
 * @errors TUTTI_E_NETWORK  nobody answered; the text has host, port, ms, tries and the last cause
 *         TUTTI_E_NOMEM    out of descriptors and the like: not retried */
tutti_status tti_connect(tti_port *port, const char *host, uint16_t tcp_port, int64_t deadline_ns,
                         tti_handle *handle_out);

/** The same in one round: for a server that was there a moment ago, so that a refusal is told at once. While this host has no way
 * to it (no route, no address of its own, no answer about its name), which is no word of the server, it tries again for about 10 s,
 * which is how long it waits for one that is silent. */
tutti_status tti_connect_once(tti_port *port, const char *host, uint16_t tcp_port,
                              int64_t deadline_ns, tti_handle *handle_out);
/** Whether nobody listens there, as that host says itself: an address that cannot be reached, or a lack of descriptors here, is no such
 * answer. One round. */
bool tti_is_refused(tti_port *port, const char *host, uint16_t tcp_port, int64_t deadline_ns);

/** Send all, or receive exactly, bytes. Words name no peer: `who` does ("store 10.0.0.1:29500").
 * @errors TUTTI_E_TIMEOUT  the deadline passed; the text says how many bytes had gone
 *         TUTTI_E_NETWORK  closed or failed */
tutti_status tti_io_send_all(tti_port *port, tti_handle handle, const void *data, size_t bytes,
                             const char *who, int64_t deadline_ns);
tutti_status tti_io_recv_all(tti_port *port, tti_handle handle, void *out, size_t bytes,
                             const char *who, int64_t deadline_ns);

#endif

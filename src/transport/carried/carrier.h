/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/carried/carrier.h - links whose bytes a transport carries, tutti/plugin/transport.h: one carrier for each
 * messenger. */
#ifndef TTI_TRANSPORT_CARRIED_CARRIER_H
#define TTI_TRANSPORT_CARRIED_CARRIER_H

#include <tutti/plugin/transport.h>
#include "transport/link.h"

typedef struct tti_carrier tti_carrier;

/** Open an instance of a transport, and the thread that drives it when nobody else does. */
tutti_status tti_carrier_open(tti_port *port, const tutti_transport_ops *ops, int rank, int n_ranks, tti_carrier **carrier_out);
/** A link to peer, with which stream is a connection that has passed its handshake; it is taken over on success. One for
 * each peer. The link may be used at once, and after a while has room; after its close, and until the carrier's, it sees to
 * it that what was sent arrives. */
tutti_status tti_carrier_link(tti_carrier *carrier, int peer, tti_handle stream, tti_link **link_out);
/** All links are closed: end, once the peers have what was sent to them, and at the latest after wait_ms. NULL is fine. */
void tti_carrier_close(tti_carrier *carrier, int64_t wait_ms);

#endif

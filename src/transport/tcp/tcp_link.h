/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/tcp/tcp_link.h - a link over connected streams that have passed their hello. */
#ifndef TTI_TRANSPORT_TCP_LINK_H
#define TTI_TRANSPORT_TCP_LINK_H

#include "transport/link.h"

enum { TTI_TCP_STRIPES_MAX = 8, TTI_TCP_STRIPE_BYTES = 64 << 10 };

/** Takes the streams over on success. Both ends have them in the same order. */
tutti_status tti_tcp_link_open(tti_port *port, const tti_handle *streams, int n_streams, int peer_rank,
                               tti_link **link_out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/tcp/tcp_link.h - a link over connected streams that have passed their hello. */
#ifndef TTI_TRANSPORT_TCP_LINK_H
#define TTI_TRANSPORT_TCP_LINK_H

#include "transport/link.h"
#include "wire/rails.h"

enum { TTI_TCP_STRIPES_MAX = 8, TTI_TCP_STRIPE_BYTES = 64 << 10 };

/** Takes the streams over on success. Both ends have them in the same order. rails: those that they are dealt to, for texts;
 * it outlives the link. NULL, or n 0: there are none. */
tutti_status tti_tcp_link_open(tti_port *port, const tti_handle *streams, int n_streams, int peer_rank, const tti_rails *rails,
                               tti_link **link_out);

/** Whether the way of a connection that has been made, and is idle, is so short that the kernel's ideas of long ones do harm there:
 * less than half a millisecond there and back. */
bool tti_tcp_is_near(tti_port *port, tti_handle stream);

#endif

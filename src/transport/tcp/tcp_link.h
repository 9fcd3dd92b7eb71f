/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/tcp/tcp_link.h - a link over a connected stream that has passed its hello. */
#ifndef TTI_TRANSPORT_TCP_LINK_H
#define TTI_TRANSPORT_TCP_LINK_H

#include "transport/link.h"

/** Takes the stream over on success. */
tutti_status tti_tcp_link_open(tti_port *port, tti_handle stream, int peer_rank, tti_link **link_out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/shm/ring_link.h - a link through two rings, one in each member's heap. */
#ifndef TTI_TRANSPORT_SHM_RING_LINK_H
#define TTI_TRANSPORT_SHM_RING_LINK_H

#include "transport/heap.h"
#include "transport/link.h"

/** Make a link between two members. Heaps and bell are borrowed until it is closed; the directory word
 * of each heap at the other's rank says where the ring to it is. */
tutti_status tti_ring_link_open(tti_port *port, tti_heap *own, int own_rank, tti_heap *peer, int peer_rank,
                                tti_handle peer_bell, tti_link **link_out);

#endif

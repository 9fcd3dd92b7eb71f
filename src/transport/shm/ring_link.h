/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/shm/ring_link.h - a link through rings in each member's heap. */
#ifndef TTI_TRANSPORT_SHM_RING_LINK_H
#define TTI_TRANSPORT_SHM_RING_LINK_H

#include "transport/heap.h"
#include "transport/link.h"
#include "transport/shm/pull.h"

/** Heaps, bell and pidfd are borrowed until the link is closed; the directory word of each heap at the other's rank
 * says where the ring to it is. */
typedef struct tti_ring_ends {
    tti_port  *port;
    tti_heap  *own, *peer;
    int        own_rank, peer_rank;
    tti_handle peer_bell;
    int        peer_pidfd; /* of its process */
    size_t     bulk_size; /* tti_bulk_size(), the same at both ends */
    tti_pull_sizes pulled; /* which payloads are offered */
} tti_ring_ends;

/** Make a link between two members. */
tutti_status tti_ring_link_open(const tti_ring_ends *ends, tti_link **link_out);

#endif

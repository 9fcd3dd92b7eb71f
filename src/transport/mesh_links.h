/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/mesh_links.h - what the mesh hands to the messenger, and to nobody else. */
#ifndef TTI_TRANSPORT_MESH_LINKS_H
#define TTI_TRANSPORT_MESH_LINKS_H

#include "transport/link.h"
#include "transport/mesh.h"
#include "wire/hello.h"
#include "wire/rails.h"

/** The link to a rank of this host, once; the caller closes it before the mesh. NULL for others, and for
 * this member itself. */
tti_link *tti_mesh_take_link(tti_mesh *mesh, int rank);

/** Where a member of another host listens; NULL for one of this host. */
const tti_addr *tti_mesh_addr(const tti_mesh *mesh, int rank);

/** The same on a rail; rail 0 is where every way begins. */
const tti_addr *tti_mesh_rail_addr(const tti_mesh *mesh, int rank, int rail);

/** What connections to other hosts are made and taken with. */
typedef struct tti_door {
    tti_handle listener;
    tti_secret secret;
    uint8_t    scope[TTI_HELLO_SCOPE_BYTES]; /* the world's random number */
    int        n_stripes; /* connections to each member, the same on all: connection k is on rail k % rails.n */
    tti_rails  rails;     /* n 0: connections leave from wherever the route does */
    tti_handle rail_listeners[TTI_RAILS_MAX]; /* of rails from 1 on; TTI_NO_HANDLE: there is none. Rail 0 has the listener */
    const tutti_transport_ops *transport; /* what carries the bytes; NULL: the connections do */
} tti_door;

/** The mesh's own, constant; NULL when all members are on this host. */
const tti_door *tti_mesh_door(const tti_mesh *mesh);

/** Whether every rank of this host can have a core of its own. When the heaps are mapped. */
bool tti_mesh_has_own_cores(const tti_mesh *mesh);

/** What peers on this host ring when this member sleeps. */
tti_handle tti_mesh_bell(const tti_mesh *mesh);
/** What wakes a member of this host. */
tti_handle tti_mesh_bell_of(const tti_mesh *mesh, int rank);

#endif

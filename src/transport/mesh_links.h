/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/mesh_links.h - what the mesh hands to the messenger, and to nobody else. */
#ifndef TTI_TRANSPORT_MESH_LINKS_H
#define TTI_TRANSPORT_MESH_LINKS_H

#include "transport/link.h"
#include "transport/mesh.h"

/** The link to a rank, once; the caller closes it before the mesh. NULL for this member itself. */
tti_link *tti_mesh_take_link(tti_mesh *mesh, int rank);

/** What peers on this host ring when this member sleeps. */
tti_handle tti_mesh_bell(const tti_mesh *mesh);

#endif

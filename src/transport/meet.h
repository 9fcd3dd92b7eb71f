/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/meet.h - the bootstrap of a mesh: members of this host, then the others. */
#ifndef TTI_TRANSPORT_MEET_H
#define TTI_TRANSPORT_MEET_H

#include "transport/card.h"
#include "transport/link.h"

/** One member, as this rank sees it. */
typedef struct tti_member {
    int        host;  /* lowest rank on its host */
    tti_heap  *heap;  /* of this host's members: memory, bell, sign of life; NULL elsewhere */
    tti_handle bell;
    int        pidfd;
    tti_handle stream; /* TCP, to a member of another host, after its hello */
    tti_link  *link;   /* until the messenger takes it */
    char       where[TTI_CARD_HOST_MAX + 48];
} tti_member;

struct tti_mesh {
    tti_port   *port;
    int         rank;
    int         n_ranks;
    tti_member *members; /* [n_ranks] */
    tti_card   *cards;   /* [n_ranks]; until tti_mesh_open is done */
    uint8_t     scope[TTI_HELLO_SCOPE_BYTES];
    tti_secret  secret; /* until tti_mesh_open is done */
    tti_handle  local_listener;
    tti_handle  tcp_listener;
};

/** Exchange signs with every member whose host hint is ours, and map their heaps. */
tutti_status tti_meet_local(tti_mesh *mesh, const tti_mesh_config *config);

/** Connect to every member of another host. */
tutti_status tti_meet_remote(tti_mesh *mesh, const tti_mesh_config *config);

#endif

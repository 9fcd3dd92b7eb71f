/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/meet.h - the mesh as the files that make it see it. */
#ifndef TTI_TRANSPORT_MEET_H
#define TTI_TRANSPORT_MEET_H

#include "transport/card.h"
#include "base/thread.h"
#include "transport/health/health.h"
#include "transport/mesh_links.h"

/** One member, as this rank sees it. */
typedef struct tti_member {
    int        host;  /* lowest rank on its host */
    tti_heap  *heap;  /* of this host's members: memory, bell, sign of life; NULL elsewhere */
    tti_handle bell;
    int        pidfd;
    tti_addr   addr; /* of a member of another host: where it listens */
    tti_addr   assembly; /* where it can be asked to agree without a store; family NONE: nowhere */
    tti_link  *link; /* to a member of this host, until the messenger takes it */
    int          registered_fd; /* of a member of this host: its registered memory; -1: ours, or mapped */
    tti_foreign *registered;    /* guarded by registered_lock; NULL: not mapped yet */
    char       where[TTI_CARD_HOST_MAX + 48];
} tti_member;

struct tti_mesh {
    tti_port   *port;
    int         rank;
    int         n_ranks;
    int         on_machine; /* of them share its cores */
    int         together_from; /* as in tti_mesh_config, never 0 */
    bool        few_files; /* this process may not open as many as its host has ranks, some times over */
    tti_member *members; /* [n_ranks] */
    tti_card   *cards;   /* [n_ranks]; until tti_mesh_open is done */
    tti_handle  local_listener; /* members of this host come here, first to meet, then to agree */
    tti_handle  assembly_listener; /* members of other hosts come here to agree; none where all are on this one */
    tti_clerk   clerk;         /* of this host; until tti_mesh_open is done */
    tti_handle  clerk_stream;  /* to it, behind a hello; TTI_NO_HANDLE: not needed, or not yet */
    tti_door    door;           /* until then, or as long as there are members of other hosts */
    tti_mutex   registered_lock; /* guards the members' registered */
    bool        holds_registered;
    tti_health *health; /* NULL: all members are threads of this process, or not made yet */
    bool        can_assemble;
};

/** Words of a heap's directory: where rings lie, by rank, then the owner's page of health. */
size_t tti_directory_words(int n_ranks);
/** How the process behind a life has ended, as the kernel tells, where it is the kernel's. */
tti_end_cause tti_mesh_cause_of(void *mesh, tti_handle life);
/** Watch over the members, unless they are threads of this process; while there are cards. */
tutti_status tti_mesh_begin_watch(tti_mesh *mesh);

/** Fetch the cards from the clerk, which has said that it has them. Who cannot reads them himself.
 * @errors TUTTI_E_TIMEOUT, and what tti_cards_read_alone() fails with */
tutti_status tti_meet_clerk(tti_mesh *mesh, const tti_mesh_config *config);
/** Exchange signs with every member whose host hint is ours, and map their heaps. */
tutti_status tti_meet_local(tti_mesh *mesh, const tti_mesh_config *config);

/** Whether two members have the same host hint. */
bool tti_same_host(const tti_mesh *mesh, int a, int b);

/* ---- meet_signs.c ----------------------------------------------------------------------------------- */

/** The first rank of a host, or its clerk, while it hands the descriptors of all to all. */
typedef struct tti_office {
    tti_mesh   *mesh;
    int        *ranks;   /* [n] of this host, rising */
    int         n;
    tti_handle *streams; /* by rank; TTI_NO_HANDLE: none */
    int64_t     deadline_ns;
} tti_office;

/** The office's part, once all have come to it; may close streams. */
tutti_status tti_office_exchange(const tti_office *office);
/** Everybody else's, with the office, which is that rank, behind stream. */
tutti_status tti_office_visit(tti_mesh *mesh, tti_handle stream, int office, int n_members, int64_t deadline_ns);

/* ---- meet_cards.c ----------------------------------------------------------------------------------- */

/** The office hands the cards to those that have come to it for them. */
tutti_status tti_office_hand_cards(const tti_office *office);
/** Say whether this rank wants them, and take them: cards[n_ranks], or NULL. */
tutti_status tti_office_ask_cards(tti_mesh *mesh, tti_handle stream, int office, tti_card *cards, int64_t deadline_ns);

#endif

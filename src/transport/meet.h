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

/** What a member that meets the others of its host tells those that have met (here.c). */
typedef struct tti_here {
    const tti_board *board;  /* NULL: it has not begun to meet them */
    int64_t          say_ns; /* when it says that it is here; TTI_FOREVER: it has */
    int64_t          deadline_ns;
} tti_here;

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
    tti_handle  clerk_stream;  /* to it, or to the office, behind a hello; TTI_NO_HANDLE: not needed, or not yet. What has failed
                                * stays until the last words are left */
    tti_here    here;          /* until tti_mesh_open is done */
    tti_door    door;           /* until then, or as long as there are members of other hosts */
    tti_addr    at;             /* where this member listens: an address of the interface that others reach it by */
    _Atomic int64_t link_mbit, link_burst; /* tti_mesh_link(); mbit -1: nobody has asked yet */
    tti_addr   *rail_addrs;     /* [n_ranks x door.rails.n] where members listen; NULL: there are no rails */
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

/** How many connections two members have on each rail, or as such where there are none: TUTTI_TCP_STRIPES.
 * @errors TUTTI_E_ARG  it is no number, or all of them are too many */
tutti_status tti_stripes_wanted(const tti_rails *rails, int *stripes_out);
/** Find the rails of this host, where ways to others go by TCP, and how many connections there are on each; at: the address
 * that this member listens on.
 * @errors TUTTI_E_ARG, TUTTI_E_NETWORK */
tutti_status tti_rails_find(tti_mesh *mesh, const tti_addr *at, int *stripes_out);
/** Listen on them, but for the first, and leave them on the board, which is due before the card. */
tutti_status tti_rails_leave(tti_mesh *mesh, const tti_mesh_config *config);
/** Learn those of all members, who must have as many; when there are cards. */
tutti_status tti_rails_meet(tti_mesh *mesh, const tti_mesh_config *config);
void tti_rails_close(tti_mesh *mesh);

/** Whether two members have the same host hint. */
bool tti_same_host(const tti_mesh *mesh, int a, int b);

/* ---- here.c ----------------------------------------------------------------------------------------- */

/** From now on this member waits for others of its host; once. */
void tti_here_begin(tti_mesh *mesh, const tti_mesh_config *config);
/** Say it, which may take a second, unless it has been said. */
void tti_here_say(tti_mesh *mesh);
/** tti_doubt_poll() of a member that waits for others of its host, and says in between that it is here. */
int tti_here_poll(tti_mesh *mesh, tti_poll *set, int n, int64_t until_ns);

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

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * meet_cards.c - the ranks of a host have everybody's cards from one of them, its clerk.
 *
 * How     The clerk has read them (card.c), and is the office of its host (meet_local.c): whoever comes to it says hello, and
 *         whether it wants the cards. When all have come they are sent, as they are, to those who do; then come the
 *         descriptors, over the same connections.
 *
 *             member --- hello, wants ---> office, when all have come --- cards ---> member --- as in meet_signs.c
 *
 * True    What comes is checked by each member as if it had come from the board. A clerk that is a process of the job may say what
 *         it likes of others; it could also have left it on the board.
 * Fails   Who finds nobody at the clerk's socket, or loses it before it has all cards, reads them from the board: so it is told by
 *         them what is wrong, if they are what the clerk has failed with; if the clerk is gone it finds that out next. */
#include "transport/meet.h"

#include <stdio.h>
#include <tutti/private.h>
#include "wire/addr.h"

/* Over a local socket: four bytes, in the order of this host. */
enum { WANTS = 1, HAS = 2 };

/* Until something has come, or time is up, which the next read finds: who waits says in between that it is here. */
static void await(tti_mesh *mesh, tti_handle stream, int64_t deadline_ns)
{
    tti_poll poll = { .handle = stream, .want = TTI_READ };

    (void)tti_here_poll(mesh, &poll, 1, deadline_ns);
}

/* A connection inside a host is no network: that it ends tells of the other end. */
static tutti_status of_peer(tutti_status st)
{
    return st == TUTTI_E_NETWORK ? tti_fail(TUTTI_E_PEER, "%s", tutti_last_error()) : st;
}

static size_t cards_bytes(const tti_mesh *mesh)
{
    return (size_t)mesh->n_ranks * sizeof(tti_card);
}

static tutti_status hand_to(const tti_office *office, int rank)
{
    tti_mesh    *mesh = office->mesh;
    uint32_t     asked = 0;
    tutti_status st;
    char         who[48];

    snprintf(who, sizeof who, "rank %d at the local socket", rank);
    await(mesh, office->streams[rank], office->deadline_ns);
    st = tti_io_recv_all(mesh->port, office->streams[rank], &asked, sizeof asked, who, office->deadline_ns);
    if (st == TUTTI_OK && asked == WANTS)
        st = tti_io_send_all(mesh->port, office->streams[rank], mesh->cards, cards_bytes(mesh), who, office->deadline_ns);
    else if (st == TUTTI_OK && asked != HAS)
        return tti_fail(TUTTI_E_AUTH, "rank %d does not say whether it wants the cards of its world", rank);
    return of_peer(st);
}

tutti_status tti_office_hand_cards(const tti_office *office)
{
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 0; i < office->n && st == TUTTI_OK; i++)
        if (office->ranks[i] != office->mesh->rank)
            st = hand_to(office, office->ranks[i]);
    return st;
}

tutti_status tti_office_ask_cards(tti_mesh *mesh, tti_handle stream, int office, tti_card *cards, int64_t deadline_ns)
{
    const uint32_t asks = cards != NULL ? WANTS : HAS;
    tutti_status   st;
    char           who[48];

    snprintf(who, sizeof who, "rank %d, which reads for its host", office);
    st = tti_io_send_all(mesh->port, stream, &asks, sizeof asks, who, deadline_ns);
    if (st == TUTTI_OK && cards != NULL)
        await(mesh, stream, deadline_ns);
    if (st == TUTTI_OK && cards != NULL)
        st = tti_io_recv_all(mesh->port, stream, cards, cards_bytes(mesh), who, deadline_ns);
    return of_peer(st);
}

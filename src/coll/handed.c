/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handed.c - joins inside a host: read from the board by one member, copied by the others.
 *
 * Why     The joins of a large group are as much as the cards of a large world, for every group that is made (transport/scribe.h).
 *         By then the members of a host share memory.
 * How     The first member of each host is its scribe. It lays what it has read into a region of its heap, and says where that is
 *         in its last note. The others copy it, and look at it then, as if it had come from the board.
 * Order   The scribe fills the region, then stores its nonce with release order, then leaves the note. Another reads the note, loads
 *         the nonce with acquire order, and copies; then it adds itself to `takers`. Nobody else writes. The region is
 *         retired with the team, and used for something else when all have taken from it: one that never does, as it has
 *         read the board instead, keeps it until the heap goes.
 * True    Where the region is comes from another process, so that it is only used through tti_heap_at(); so does what is in it,
 *         which is copied before it is looked at. */
#include "coll/handed.h"

#include <string.h>
#include <tutti/private.h>

typedef struct handed {
    _Atomic uint64_t nonce; /* not 0: the joins are there */
    uint64_t         n;
    _Alignas(TTI_LINE) _Atomic uint64_t takers;
    _Alignas(TTI_LINE) tti_join all[];
} handed;

static size_t handed_bytes(const tti_team *team)
{
    return sizeof(handed) + (size_t)team->n_ranks * sizeof(tti_join);
}

static int host_of(const tti_team *team, int rank)
{
    return tti_mesh_host(team->mesh, team->ranks[rank]);
}

/* Members of this rank's host, and the first of them. */
static int count_here(const tti_team *team, int *first_out)
{
    const int here = host_of(team, team->rank);
    int       n = 0, r;

    for (r = team->n_ranks - 1; r >= 0; r--)
        if (host_of(team, r) == here) {
            *first_out = r;
            n++;
        }
    return n;
}

int tti_team_scribe(const tti_team *team)
{
    int first = -1;

    if (team->lazy || !tti_mesh_reads_together(team->mesh, team->n_ranks) || count_here(team, &first) < 2)
        return -1;
    return first;
}

bool tti_joins_hand(tti_team *team, const tti_join *all, uint64_t *at_out, uint64_t *nonce_out)
{
    tti_heap *heap = tti_mesh_heap(team->mesh, team->ranks[team->rank]);
    uint64_t  at = 0, nonce = 0;
    int       first;
    handed   *h;

    if (heap == NULL || tti_heap_alloc(heap, handed_bytes(team), &at) != TUTTI_OK)
        return false;
    team->port->ops->random(team->port, &nonce, sizeof nonce);
    nonce |= 1;
    h = tti_heap_at(heap, at, handed_bytes(team));
    h->n = (uint64_t)team->n_ranks;
    memcpy(h->all, all, (size_t)team->n_ranks * sizeof *all);
    atomic_store_explicit(&h->nonce, nonce, memory_order_release);
    team->handed_at = at;
    team->n_takers = count_here(team, &first) - 1;
    *at_out = at;
    *nonce_out = nonce;
    return true;
}

bool tti_joins_take(const tti_team *team, int scribe, const tti_scribe_note *note, tti_join *all_out)
{
    tti_heap *heap = tti_mesh_heap(team->mesh, team->ranks[scribe]);
    handed   *h = heap != NULL && note->at != 0 ? tti_heap_at(heap, note->at, handed_bytes(team)) : NULL;

    if (h == NULL || note->nonce == 0 || atomic_load_explicit(&h->nonce, memory_order_acquire) != note->nonce ||
        h->n != (uint64_t)team->n_ranks)
        return false;
    memcpy(all_out, h->all, (size_t)team->n_ranks * sizeof *all_out);
    atomic_fetch_add_explicit(&h->takers, 1, memory_order_release);
    return true;
}

static bool all_have_taken(void *region, uint64_t n)
{
    return atomic_load_explicit(&((handed *)region)->takers, memory_order_acquire) >= n;
}

void tti_joins_let_go(tti_team *team)
{
    if (team->handed_at != 0)
        tti_heap_retire(tti_mesh_heap(team->mesh, team->ranks[team->rank]), team->handed_at, all_have_taken,
                        (uint64_t)team->n_takers);
    team->handed_at = 0;
}

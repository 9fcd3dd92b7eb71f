/* SPDX-License-Identifier: BSD-3-Clause
 *
 * staged_all_gather.c - all_gather on one host, of parts of any sizes and of several segments.
 *
 * How     In a round every member fills its slot with the next piece of its part and copies the
 *         pieces of all others to their places. All sizes are known to all: the longest part counts
 *         the rounds, and a part that has ended takes no more of them; but all meet in the first, also
 *         for parts without elements, so that lists that differ are seen by all. Segments are one long part:
 *         a piece is gathered from them on its way into the slot, and spread on its way out. */
#include <string.h>
#include "coll/host/past.h"
#include "coll/host/staged.h"
#include "coll/pattern.h"
#include "coll/segments.h"

/* One round's piece of every part. */
typedef struct piece {
    tti_host_channel *channel;
    const tutti_call *call;
    tti_segments      segments;
    size_t            element;
    int64_t           first; /* element of each part */
    int64_t           per_round;
    bool              past; /* results go past the caches */
} piece;

/* Elements of rank's part in this round. */
static int64_t count_here(const piece *p, int rank)
{
    const int64_t left = tti_part_count(p->call, rank) - p->first;

    return left <= 0 ? 0 : left < p->per_round ? left : p->per_round;
}

static const char *own_at(const piece *p, tti_stretch s)
{
    return (const char *)p->segments.all[s.segment].in + (size_t)s.first * p->element;
}

static tutti_status give(const piece *p)
{
    const tti_team *team = p->channel->team;
    const int64_t   count = count_here(p, team->rank);
    char           *slot = tti_host_staging(p->channel, team->rank);
    tutti_status    st = tti_host_room(p->channel);

    if (st != TUTTI_OK)
        return st;
    TTI_EACH_STRETCH (s, &p->segments, p->first, count)
        memcpy(slot + (size_t)s.at * p->element, own_at(p, s), (size_t)s.count * p->element);
    tti_host_post(p->channel, TTI_STAGED);
    return TUTTI_OK;
}

/* With a core for each rank a piece comes out of another core's cache: that is what takes long, and stores past the
 * caches in between make it no quicker. */
static tutti_status take(const piece *p, int giver)
{
    const int     n_ranks = p->channel->team->n_ranks;
    const int64_t count = count_here(p, giver);
    const char   *slot = tti_host_staging(p->channel, giver);
    tutti_status  st = TUTTI_OK;

    if (count > 0 || p->first == 0)
        st = tti_host_await(p->channel, TTI_STAGED, giver);
    if (st != TUTTI_OK)
        return st;
    TTI_EACH_STRETCH (s, &p->segments, p->first, count)
        tti_host_put(tti_entry_at(p->call, n_ranks, giver, s), slot + (size_t)s.at * p->element,
                     (size_t)s.count * p->element, p->past && p->channel->crowded);
    return TUTTI_OK;
}

static void keep_own(const piece *p)
{
    const tti_team *team = p->channel->team;

    TTI_EACH_STRETCH (s, &p->segments, p->first, count_here(p, team->rank))
        tti_host_put(tti_entry_at(p->call, team->n_ranks, team->rank, s), own_at(p, s), (size_t)s.count * p->element,
                     p->past);
}

static tutti_status do_round(const piece *p)
{
    const tti_team *team = p->channel->team;
    tutti_status    st = TUTTI_OK;
    int             i;

    if (count_here(p, team->rank) > 0 || p->first == 0)
        st = give(p);
    for (i = 1; i < team->n_ranks && st == TUTTI_OK; i++)
        st = take(p, tti_shifted(team->rank, i, team->n_ranks));
    if (st == TUTTI_OK)
        keep_own(p);
    return st;
}

tutti_status tti_staged_all_gather(tti_host_channel *channel, const tutti_call *call)
{
    const int64_t longest = tti_part_longest(call, channel->team->n_ranks);
    piece         p = { .channel = channel, .call = call,
                        .element = tutti_dtype_size(call->dtype),
                        .past = tti_host_past_caches(channel, call),
                        .per_round = tti_staged_per_round(call, (int64_t)channel->chunk) };
    tutti_status  st = tti_host_begin(channel, tti_staged_rounds(longest, p.per_round));

    tti_segments_init(&p.segments, call);
    for (; p.first < longest && st == TUTTI_OK; p.first += p.per_round) {
        tti_segments_advance(&p.segments, p.first);
        st = do_round(&p);
        if (st == TUTTI_OK)
            tti_host_next(channel);
    }
    return st;
}

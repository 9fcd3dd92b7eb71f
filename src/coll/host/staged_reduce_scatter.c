/* SPDX-License-Identifier: BSD-3-Clause
 *
 * staged_reduce_scatter.c - reduce_scatter on one host.
 *
 * How     A slot has a lane for each member. In a round every member stages one lane's worth of
 *         each other member's part, and combines what the others have staged of its own part with
 *         its own elements, straight into out. Parts may have different sizes: the longest one
 *         counts the rounds, and a part that has ended takes no more of them. Segments are one long
 *         part, as in staged_reduce.c.
 * True    Contributions are combined in rank order 0..P-1 by one kernel call: the same bits as
 *         all_reduce gives. An own element is read in the kernel call that writes its place, so out
 *         may be the own entry of the list. PREMUL_SUM stages the own part too, scaled. */
#include <string.h>
#include "coll/host/past.h"
#include "coll/host/staged.h"
#include "coll/pattern.h"
#include "coll/segments.h"
#include "kernel/kernel.h"

/* One round's share of every part. */
typedef struct share {
    tti_host_channel *channel;
    const tutti_call *call;
    tti_segments      segments;
    bool              scales;
    bool              past; /* results go past the caches */
    size_t            element;
    size_t            lane;
    int64_t           first; /* element of each part */
    int64_t           per_round;
} share;

/* Elements of rank's part in this round. */
static int64_t count_here(const share *s, int rank)
{
    const int64_t left = tti_part_count(s->call, rank) - s->first;

    return left <= 0 ? 0 : left < s->per_round ? left : s->per_round;
}

static char *lane_of(const share *s, int rank, int owner)
{
    return tti_host_staging(s->channel, rank) + s->lane * (size_t)owner;
}

static void stage_for(const share *s, int owner)
{
    const tti_team *team = s->channel->team;
    char           *lane = lane_of(s, team->rank, owner);

    TTI_EACH_STRETCH (at, &s->segments, s->first, count_here(s, owner)) {
        const char *from = tti_entry_at(s->call, team->n_ranks, owner, at);
        char       *to = lane + (size_t)at.at * s->element;

        if (s->scales)
            tti_scale(to, from, at.count, s->call->op.factor, s->call->dtype);
        else
            memcpy(to, from, (size_t)at.count * s->element);
    }
}

static tutti_status stage(const share *s)
{
    const tti_team *team = s->channel->team;
    tutti_status    st = tti_host_room(s->channel);
    int             i;

    if (st != TUTTI_OK)
        return st;
    for (i = s->scales ? 0 : 1; i < team->n_ranks; i++)
        stage_for(s, tti_shifted(team->rank, i, team->n_ranks));
    tti_host_post(s->channel, TTI_STAGED);
    return TUTTI_OK;
}

/* A stretch of the own part, from everybody's lane. */
static void combine_stretch(const share *s, tti_stretch at)
{
    tti_host_channel *channel = s->channel;
    const int         own = channel->team->rank;
    const int         n_ranks = channel->team->n_ranks;
    char             *out = (char *)s->segments.all[at.segment].out + (size_t)at.first * s->element;
    int               r;

    for (r = 0; r < n_ranks; r++)
        channel->reads[r] = r == own && !s->scales
                                ? tti_entry_at(s->call, n_ranks, own, at)
                                : lane_of(s, r, own) + (size_t)at.at * s->element;
    tti_host_sum(tti_reduce_kernel_for(s->call->op.kind, s->call->dtype), out, channel->reads, n_ranks, at.count,
                 s->past && out != channel->reads[own]);
}

static tutti_status combine(const share *s)
{
    const int64_t count = count_here(s, s->channel->team->rank);
    tutti_status  st = TUTTI_OK;

    if (count > 0)
        st = tti_host_await_all(s->channel, TTI_STAGED);
    if (st != TUTTI_OK)
        return st;
    TTI_EACH_STRETCH (at, &s->segments, s->first, count)
        combine_stretch(s, at);
    return TUTTI_OK;
}

tutti_status tti_staged_reduce_scatter(tti_host_channel *channel, const tutti_call *call)
{
    const int64_t longest = tti_part_longest(call, channel->team->n_ranks);
    share         s = { .channel = channel, .call = call,
                        .past = tti_host_past_caches(channel, call),
                        .scales = call->op.kind == TUTTI_OP_PREMUL_SUM,
                        .element = tutti_dtype_size(call->dtype),
                        .lane = tti_staged_lane(channel) };
    tutti_status  st;

    tti_segments_init(&s.segments, call);
    s.per_round = tti_staged_per_round(call, (int64_t)s.lane);
    st = tti_host_begin(channel, tti_staged_rounds(longest, s.per_round));
    for (; s.first < longest && st == TUTTI_OK; s.first += s.per_round) {
        tti_segments_advance(&s.segments, s.first);
        st = stage(&s);
        if (st == TUTTI_OK)
            st = combine(&s);
        if (st == TUTTI_OK)
            tti_host_next(channel);
    }
    return st;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * staged_reduce_scatter.c - reduce_scatter on one host.
 *
 * How     A slot has a lane for each member. In a round every member stages one lane's worth of
 *         each other member's part, and combines what the others have staged of its own part with
 *         its own elements, straight into out. Parts may have different sizes: the longest one
 *         counts the rounds, and a part that has ended takes no more of them.
 * True    Contributions are combined in rank order 0..P-1 by one kernel call: the same bits as
 *         all_reduce gives. An own element is read in the kernel call that writes its place, so out
 *         may be the own entry of the list. PREMUL_SUM stages the own part too, scaled. */
#include <string.h>
#include "coll/host/staged.h"
#include "coll/pattern.h"
#include "kernel/kernel.h"

/* One round's share of every part. */
typedef struct share {
    tti_host_channel *channel;
    const tutti_call *call;
    bool              scales;
    size_t            element;
    size_t            lane;
    int64_t           first; /* element of each part */
    int64_t           per_round;
} share;

static int64_t count_of(const tutti_call *call, int rank)
{
    return call->n_parts > 0 ? call->list_counts[rank] : call->count;
}

/* Elements of rank's part in this round. */
static int64_t count_here(const share *s, int rank)
{
    const int64_t left = count_of(s->call, rank) - s->first;

    return left <= 0 ? 0 : left < s->per_round ? left : s->per_round;
}

static const char *own_elements(const share *s, int owner)
{
    return (const char *)s->call->list[owner] + (size_t)s->first * s->element;
}

static char *lane_of(const share *s, int rank, int owner)
{
    return tti_host_staging(s->channel, rank) + s->lane * (size_t)owner;
}

static void stage_for(const share *s, int owner)
{
    const int64_t count = count_here(s, owner);
    char         *to = lane_of(s, s->channel->team->rank, owner);

    if (count == 0)
        return;
    if (s->scales)
        tti_scale(to, own_elements(s, owner), count, s->call->op.factor, s->call->dtype);
    else
        memcpy(to, own_elements(s, owner), (size_t)count * s->element);
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

static tutti_status combine(const share *s)
{
    tti_host_channel *channel = s->channel;
    const int         own = channel->team->rank;
    const int         n_ranks = channel->team->n_ranks;
    const int64_t     count = count_here(s, own);
    tutti_status      st = TUTTI_OK;
    int               r;

    if (count > 0)
        st = tti_host_await_all(channel, TTI_STAGED);
    if (st != TUTTI_OK || count == 0)
        return st;
    for (r = 0; r < n_ranks; r++)
        channel->reads[r] = r == own && !s->scales ? own_elements(s, own) : lane_of(s, r, own);
    tti_reduce(tti_reduce_kernel_for(s->call->op.kind, s->call->dtype),
               (char *)s->call->out + (size_t)s->first * s->element, channel->reads, n_ranks, count,
               n_ranks);
    return TUTTI_OK;
}

static int64_t longest_part(const tutti_call *call, int n_ranks)
{
    int64_t longest = 0;
    int     r;

    for (r = 0; r < n_ranks; r++)
        if (count_of(call, r) > longest)
            longest = count_of(call, r);
    return longest;
}

tutti_status tti_staged_reduce_scatter(tti_host_channel *channel, const tutti_call *call)
{
    const int64_t longest = longest_part(call, channel->team->n_ranks);
    share         s = { .channel = channel, .call = call,
                        .scales = call->op.kind == TUTTI_OP_PREMUL_SUM,
                        .element = tutti_dtype_size(call->dtype),
                        .lane = tti_staged_lane(channel->team) };
    tutti_status  st = TUTTI_OK;

    s.per_round = tti_staged_per_round(call, (int64_t)s.lane);
    tti_host_begin(channel, tti_staged_rounds(longest, s.per_round));
    for (; s.first < longest && st == TUTTI_OK; s.first += s.per_round) {
        st = stage(&s);
        if (st == TUTTI_OK)
            st = combine(&s);
        if (st == TUTTI_OK)
            tti_host_next(channel);
    }
    return st;
}

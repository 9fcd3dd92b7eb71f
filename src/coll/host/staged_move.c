/* SPDX-License-Identifier: BSD-3-Clause
 *
 * staged_move.c - barrier, broadcast, gather and scatter on one host.
 *
 * How     All but the barrier cut a rank's part into pieces, one a round. A giver fills its slot
 *         and goes on; a taker waits for the givers and copies out. */
#include <string.h>
#include "coll/host/past.h"
#include "coll/host/staged.h"
#include "coll/pattern.h"

_Static_assert((int)TTI_BROADCAST_PIECE <= (int)TTI_HOST_CHUNK, "a piece fits a slot");

/* One round's piece of every part. */
typedef struct piece {
    tti_host_channel *channel;
    const tutti_call *call;
    size_t            offset; /* in a part */
    size_t            bytes;
    bool              past; /* results go past the caches */
} piece;

typedef tutti_status round_body(const piece *p);

static bool is_root(const piece *p)
{
    return p->call->root == p->channel->team->rank;
}

static void copy(const piece *p, void *to, const void *from)
{
    tti_host_put((char *)to + p->offset, (const char *)from + p->offset, p->bytes, p->past);
}

/* Fill the own slot with a piece of from. */
static tutti_status give(const piece *p, const void *from)
{
    tutti_status st = tti_host_room(p->channel);

    if (st != TUTTI_OK)
        return st;
    memcpy(tti_host_staging(p->channel, p->channel->team->rank), (const char *)from + p->offset,
           p->bytes);
    tti_host_post(p->channel, TTI_STAGED);
    return TUTTI_OK;
}

/* Take the piece at `at` of giver's slot. */
static tutti_status take(const piece *p, int giver, size_t at, void *to)
{
    tutti_status st = tti_host_await(p->channel, TTI_STAGED, giver);

    if (st == TUTTI_OK)
        tti_host_put((char *)to + p->offset, tti_host_staging(p->channel, giver) + at, p->bytes, p->past);
    return st;
}

static tutti_status take_all(const piece *p)
{
    const tti_team *team = p->channel->team;
    tutti_status    st = TUTTI_OK;
    int             i;

    for (i = 1; i < team->n_ranks && st == TUTTI_OK; i++) {
        const int giver = tti_shifted(team->rank, i, team->n_ranks);

        st = take(p, giver, 0, p->call->list[giver]);
    }
    copy(p, p->call->list[team->rank], p->call->in);
    return st;
}

static tutti_status broadcast(const piece *p)
{
    return is_root(p) ? give(p, p->call->in) : take(p, p->call->root, 0, p->call->out);
}

static tutti_status gather(const piece *p)
{
    return is_root(p) ? take_all(p) : give(p, p->call->in);
}

/* Each member's piece begins at a lane of the root's slot. */
static tutti_status scatter(const piece *p)
{
    const tti_team *team = p->channel->team;
    const size_t    lane = tti_staged_lane(p->channel);
    tutti_status    st;
    int             r;

    if (!is_root(p))
        return take(p, p->call->root, lane * (size_t)team->rank, p->call->out);
    st = tti_host_room(p->channel);
    if (st != TUTTI_OK)
        return st;
    for (r = 0; r < team->n_ranks; r++)
        if (r != team->rank)
            memcpy(tti_host_staging(p->channel, team->rank) + lane * (size_t)r,
                   (const char *)p->call->list[r] + p->offset, p->bytes);
    tti_host_post(p->channel, TTI_STAGED);
    copy(p, p->call->out, p->call->list[team->rank]);
    return TUTTI_OK;
}

static tutti_status in_rounds(tti_host_channel *channel, const tutti_call *call, size_t slot_bytes, round_body *body)
{
    const int64_t per_round = tti_staged_per_round(call, (int64_t)slot_bytes);
    const size_t  element = tutti_dtype_size(call->dtype);
    const size_t  total = (size_t)call->count * element;
    piece         p = { .channel = channel, .call = call, .past = tti_host_past_caches(channel, call) };
    tutti_status  st = tti_host_begin(channel, tti_staged_rounds(call->count, per_round));

    for (; p.offset < total && st == TUTTI_OK; p.offset += p.bytes) {
        p.bytes = (size_t)per_round * element;
        if (p.bytes > total - p.offset)
            p.bytes = total - p.offset;
        st = body(&p);
        if (st == TUTTI_OK)
            tti_host_next(channel);
    }
    return st;
}

tutti_status tti_staged_barrier(tti_host_channel *channel, const tutti_call *call)
{
    tutti_status st = tti_host_begin(channel, 1);

    (void)call; /* a barrier has no data */
    if (st != TUTTI_OK)
        return st;
    tti_host_post(channel, TTI_STAGED);
    st = tti_host_await_all(channel, TTI_STAGED);
    if (st == TUTTI_OK)
        tti_host_next(channel);
    return st;
}

tutti_status tti_staged_broadcast(tti_host_channel *channel, const tutti_call *call)
{
    return in_rounds(channel, call, channel->crowded ? channel->chunk : TTI_BROADCAST_PIECE, broadcast);
}

tutti_status tti_staged_gather(tti_host_channel *channel, const tutti_call *call)
{
    return in_rounds(channel, call, channel->chunk, gather);
}

tutti_status tti_staged_scatter(tti_host_channel *channel, const tutti_call *call)
{
    return in_rounds(channel, call, tti_staged_lane(channel), scatter);
}

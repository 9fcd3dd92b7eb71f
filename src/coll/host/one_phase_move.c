/* SPDX-License-Identifier: BSD-3-Clause
 *
 * one_phase_move.c - barrier, broadcast, gather, scatter and all_gather in one phase.
 *
 * A giver fills its place and goes on; a taker waits for the givers and copies out. */
#include <string.h>
#include "coll/host/lines.h"
#include "coll/host/one_phase.h"
#include "coll/segments.h"

tutti_status tti_one_phase_barrier(tti_host_channel *channel, const tutti_call *call)
{
    (void)call; /* a barrier has no data */
    if (!tti_lines_given(channel))
        tti_lines_post(channel);
    return tti_lines_await_all(channel);
}

static bool is_root(const tti_host_channel *channel, const tutti_call *call)
{
    return call->root == channel->team->rank;
}

static size_t bytes_of(const tutti_call *call)
{
    return (size_t)call->count * tti_dtype_bytes(call->dtype);
}

static tutti_status give(tti_host_channel *channel, const void *from, size_t bytes)
{
    char              *to = NULL;
    const tutti_status st = tti_lines_to_give(channel, bytes, &to);

    if (st != TUTTI_OK)
        return st;
    memcpy(to, from, bytes);
    tti_lines_post(channel);
    return TUTTI_OK;
}

tutti_status tti_one_phase_broadcast(tti_host_channel *channel, const tutti_call *call)
{
    const size_t bytes = bytes_of(call);
    tutti_status st;

    if (bytes > TTI_LINES_BYTES)
        return tti_staged_broadcast(channel, call);
    if (bytes == 0)
        return TUTTI_OK;
    if (is_root(channel, call))
        return give(channel, call->in, bytes);
    st = tti_lines_await(channel, call->root);
    if (st == TUTTI_OK)
        memcpy(call->out, tti_lines_at(channel, call->root, bytes), bytes);
    return st;
}

/* ---- gather ---- */

static void copy(void *to, const void *from, size_t bytes)
{
    if (to != from)
        memmove(to, from, bytes);
}

/* What the others give, bytes each. */
static tutti_status take_all(tti_host_channel *channel, void *const *list, size_t bytes)
{
    const tti_team *team = channel->team;
    tutti_status    st = tti_lines_await_all(channel);
    int             r;

    for (r = 0; r < team->n_ranks && st == TUTTI_OK; r++)
        if (r != team->rank)
            memcpy(list[r], tti_lines_at(channel, r, bytes), bytes);
    return st;
}

tutti_status tti_one_phase_gather(tti_host_channel *channel, const tutti_call *call)
{
    const size_t bytes = bytes_of(call);

    if (bytes > TTI_LINES_BYTES)
        return tti_staged_gather(channel, call);
    if (bytes == 0)
        return TUTTI_OK;
    if (!is_root(channel, call))
        return give(channel, call->in, bytes);
    copy(call->list[channel->team->rank], call->in, bytes);
    return take_all(channel, call->list, bytes);
}

/* ---- scatter ---- */

static tutti_status give_each(tti_host_channel *channel, const tutti_call *call, size_t bytes)
{
    const tti_team *team = channel->team;
    char           *to = NULL;
    tutti_status    st = tti_lines_to_give(channel, bytes * (size_t)team->n_ranks, &to);
    int             r;

    if (st != TUTTI_OK)
        return st;
    for (r = 0; r < team->n_ranks; r++)
        if (r != team->rank)
            memcpy(to + bytes * (size_t)r, call->list[r], bytes);
    tti_lines_post(channel);
    copy(call->out, call->list[team->rank], bytes);
    return TUTTI_OK;
}

tutti_status tti_one_phase_scatter(tti_host_channel *channel, const tutti_call *call)
{
    const tti_team *team = channel->team;
    const size_t    bytes = bytes_of(call);
    tutti_status    st = TUTTI_OK;

    if (bytes > TTI_LINES_BYTES / (size_t)team->n_ranks)
        return tti_staged_scatter(channel, call);
    if (bytes == 0)
        return TUTTI_OK;
    if (is_root(channel, call))
        return give_each(channel, call, bytes);
    st = tti_lines_await(channel, call->root);
    if (st == TUTTI_OK)
        memcpy(call->out, tti_lines_at(channel, call->root, bytes * (size_t)team->n_ranks) +
               bytes * (size_t)team->rank, bytes);
    return st;
}

/* ---- all_gather: every part may have a size of its own, and segments are one long part ---- */

static const char *own_at(const tti_segments *segments, tti_stretch s, size_t element)
{
    return (const char *)segments->all[s.segment].in + (size_t)s.first * element;
}

static tutti_status give_part(tti_host_channel *channel, const tutti_call *call, const tti_segments *segments)
{
    const size_t       element = tti_dtype_bytes(call->dtype);
    const int64_t      count = tti_part_count(call, channel->team->rank);
    char              *to = NULL;
    const tutti_status st = tti_lines_to_give(channel, (size_t)count * element, &to);

    if (st != TUTTI_OK)
        return st;
    TTI_EACH_STRETCH (s, segments, 0, count)
        memcpy(to + (size_t)s.at * element, own_at(segments, s, element), (size_t)s.count * element);
    tti_lines_post(channel);
    return TUTTI_OK;
}

static void take_part(tti_host_channel *channel, const tutti_call *call, const tti_segments *segments, int giver)
{
    const size_t  element = tti_dtype_bytes(call->dtype);
    const int64_t count = tti_part_count(call, giver);
    const char   *from = tti_lines_at(channel, giver, (size_t)count * element);

    TTI_EACH_STRETCH (s, segments, 0, count)
        memcpy(tti_entry_at(call, channel->team->n_ranks, giver, s), from + (size_t)s.at * element,
               (size_t)s.count * element);
}

static void keep_own(tti_host_channel *channel, const tutti_call *call, const tti_segments *segments)
{
    const int    own = channel->team->rank;
    const size_t element = tti_dtype_bytes(call->dtype);

    TTI_EACH_STRETCH (s, segments, 0, tti_part_count(call, own))
        copy(tti_entry_at(call, channel->team->n_ranks, own, s), own_at(segments, s, element),
             (size_t)s.count * element);
}

/* Nearly all calls: one segment, and parts of one size, that fit. */
static tutti_status gather_equal(tti_host_channel *channel, const tutti_call *call)
{
    const size_t bytes = bytes_of(call);

    if (!tti_lines_given(channel)) {
        const tutti_status st = give(channel, call->in, bytes);

        if (st != TUTTI_OK)
            return st;
        copy(call->list[channel->team->rank], call->in, bytes);
    }
    return take_all(channel, call->list, bytes);
}

/* All meet, also for parts without elements, so that lists that differ are seen by all. */
tutti_status tti_one_phase_all_gather(tti_host_channel *channel, const tutti_call *call)
{
    const tti_team *team = channel->team;
    const int64_t   longest = tti_part_longest(call, team->n_ranks);
    tti_segments    segments;
    tutti_status    st = TUTTI_OK;
    int             r;

    if (longest > (int64_t)(TTI_LINES_BYTES / tti_dtype_bytes(call->dtype)))
        return tti_staged_all_gather(channel, call);
    if (longest == 0)
        return TUTTI_OK;
    if (call->n_parts == 0 && call->n_segments == 0)
        return gather_equal(channel, call);
    tti_segments_init(&segments, call);
    if (!tti_lines_given(channel)) {
        st = give_part(channel, call, &segments);
        if (st == TUTTI_OK)
            keep_own(channel, call, &segments);
    }
    if (st == TUTTI_OK)
        st = tti_lines_await_all(channel);
    for (r = 0; r < team->n_ranks && st == TUTTI_OK; r++)
        if (r != team->rank)
            take_part(channel, call, &segments, r);
    return st;
}

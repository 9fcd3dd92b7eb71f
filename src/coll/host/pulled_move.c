/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pulled_move.c - broadcast, all_gather, gather, scatter and the blocks of all_to_all, read from their owners.
 *
 * How     Everybody reads in shifted order, from rank+1 or rank-1 on, so that no process is read by all at once.
 *         What is the rank's own is copied while the others' addresses are on their way. */
#include "coll/host/past.h"
#include "coll/host/pull.h"
#include "coll/host/pulled.h"
#include "coll/pattern.h"
#include "coll/segments.h"

static size_t bytes_of(const tutti_call *call, int64_t count)
{
    return (size_t)count * tutti_dtype_size(call->dtype);
}

static void keep(const tti_host_channel *channel, const tutti_call *call, void *to, const void *from, int64_t count)
{
    tti_host_put(to, from, bytes_of(call, count), tti_host_past_caches(channel, call));
}

/* Read the i-th thing that rank shows. Nothing is waited for where there is nothing to read. */
static tutti_status take(tti_host_channel *channel, int rank, int i, void *to, size_t bytes)
{
    uint64_t     from;
    tutti_status st = TUTTI_OK;

    if (bytes == 0)
        return TUTTI_OK;
    st = tti_host_pull_shown(channel, rank, i, &from);
    return st == TUTTI_OK ? tti_host_pull(channel, rank, from, to, bytes) : st;
}

/* Whether to do the call here; if not, it is done by the other form. */
static tutti_status start(tti_host_channel *channel, const tutti_call *call, bool *here_out)
{
    tutti_status st = TUTTI_OK;

    *here_out = false;
    if (call->n_segments == 0)
        st = tti_host_pull_ready(channel, here_out);
    if (st == TUTTI_OK && *here_out)
        st = tti_host_begin(channel, TTI_HOST_PULL_ROUNDS);
    return st;
}

tutti_status tti_pulled_broadcast(tti_host_channel *channel, const tutti_call *call)
{
    const int    own = channel->team->rank;
    bool         here;
    tutti_status st = start(channel, call, &here);

    if (st != TUTTI_OK || !here)
        return st != TUTTI_OK ? st : tti_staged_broadcast(channel, call);
    if (own == call->root)
        st = tti_host_pull_show(channel, &call->in, 1);
    else
        st = take(channel, call->root, 0, call->out, bytes_of(call, call->count));
    return st == TUTTI_OK ? tti_host_pull_end(channel, own == call->root ? -1 : own) : st;
}

tutti_status tti_pulled_all_gather(tti_host_channel *channel, const tutti_call *call)
{
    const tti_team *team = channel->team;
    bool            here;
    tutti_status    st = start(channel, call, &here);
    int             i;

    if (st != TUTTI_OK || !here)
        return st != TUTTI_OK ? st : tti_staged_all_gather(channel, call);
    st = tti_host_pull_show(channel, &call->in, 1);
    if (st == TUTTI_OK)
        keep(channel, call, call->list[team->rank], call->in, tti_part_count(call, team->rank));
    for (i = 1; i < team->n_ranks && st == TUTTI_OK; i++) {
        const int giver = tti_shifted(team->rank, i, team->n_ranks);

        st = take(channel, giver, 0, call->list[giver], bytes_of(call, tti_part_count(call, giver)));
    }
    return st == TUTTI_OK ? tti_host_pull_end(channel, -1) : st;
}

tutti_status tti_pulled_gather(tti_host_channel *channel, const tutti_call *call)
{
    const tti_team *team = channel->team;
    bool            here;
    tutti_status    st = start(channel, call, &here);
    int             i;

    if (st != TUTTI_OK || !here)
        return st != TUTTI_OK ? st : tti_staged_gather(channel, call);
    if (team->rank != call->root) {
        st = tti_host_pull_show(channel, &call->in, 1);
        return st == TUTTI_OK ? tti_host_pull_end(channel, call->root) : st;
    }
    keep(channel, call, call->list[team->rank], call->in, call->count);
    for (i = 1; i < team->n_ranks && st == TUTTI_OK; i++) {
        const int giver = tti_shifted(team->rank, i, team->n_ranks);

        st = take(channel, giver, 0, call->list[giver], bytes_of(call, call->count));
    }
    return st == TUTTI_OK ? tti_host_pull_end(channel, team->rank) : st;
}

tutti_status tti_pulled_scatter(tti_host_channel *channel, const tutti_call *call)
{
    const tti_team *team = channel->team;
    bool            here;
    tutti_status    st = start(channel, call, &here);

    if (st != TUTTI_OK || !here)
        return st != TUTTI_OK ? st : tti_staged_scatter(channel, call);
    if (team->rank != call->root) {
        st = take(channel, call->root, team->rank, call->out, bytes_of(call, call->count));
        return st == TUTTI_OK ? tti_host_pull_end(channel, team->rank) : st;
    }
    st = tti_host_pull_show(channel, (const void *const *)call->list, team->n_ranks);
    if (st == TUTTI_OK)
        keep(channel, call, call->out, call->list[team->rank], call->count);
    return st == TUTTI_OK ? tti_host_pull_end(channel, -1) : st;
}

tutti_status tti_pulled_blocks(tti_host_channel *channel, const tutti_call *call, bool told)
{
    const tti_team *team = channel->team;
    tutti_status    st = TUTTI_OK;
    int             i;

    tti_host_go_on(channel, TTI_HOST_PULL_ROUNDS);
    if (!told)
        st = tti_host_pull_show(channel, call->ins, team->n_ranks);
    for (i = 1; i < team->n_ranks && st == TUTTI_OK; i++) {
        const int    giver = tti_shifted(team->rank, -i, team->n_ranks);
        const size_t bytes = bytes_of(call, call->list_counts[giver]);
        uint64_t     from = channel->begins[giver];

        if (bytes > 0 && !told)
            st = tti_host_pull_shown(channel, giver, team->rank, &from);
        if (bytes > 0 && st == TUTTI_OK)
            st = tti_host_pull(channel, giver, from, call->list[giver], bytes);
    }
    return st == TUTTI_OK ? tti_host_pull_end(channel, -1) : st;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * one_phase_all_to_all.c - all_to_all on one host, with blocks of any sizes: small ones in one phase.
 *
 * Why     Only two ranks know the size of a block, so all must first be told something. What is small goes with it.
 * How     A place begins with a cell for each member: what its owner gives it, what it expects of it, and the
 *         block, if it is small. Larger blocks stand behind the cells, in shifted order (to rank+1, rank+2, ...),
 *         each beginning on a line: the member's stream, of which the line tells the length.
 * True    A copy ends where the caller's memory ends: its bounds come from the own counts, which were compared with
 *         the other's. Where a block begins the other has told: it is not read beyond the place.
 *         All read all lines, so that all know the longest stream, and whether every one fits its place; if not,
 *         all go on in rounds (staged_all_to_all.c).
 * Fails   A pair that does not fit is TUTTI_E_MISMATCH on both its ranks before any of its data moves; whoever depends
 *         on them finds that they have failed. */
#include <string.h>
#include "coll/host/lines.h"
#include "coll/host/one_phase.h"
#include "coll/pattern.h"

enum { CELL_DATA = 40, RANKS_MAX = TTI_LINES_BYTES / 2 / 64 };

/* What a member tells another. */
typedef struct cell {
    int64_t  gives; /* elements */
    int64_t  wants; /* elements */
    uint64_t begin; /* of the block in the member's stream */
    char     data[CELL_DATA];
} cell;

_Static_assert(sizeof(cell) == 64, "a cell is a line");

typedef struct exchange {
    tti_host_channel *channel;
    const tutti_call *call;
    size_t            element;
    uint64_t          longest; /* stream */
} exchange;

static cell *cell_of(const exchange *x, int giver, int taker)
{
    return (cell *)(void *)tti_lines_place(x->channel, giver)->block + taker;
}

static char *stream_of(const exchange *x, int giver)
{
    return (char *)cell_of(x, giver, x->channel->team->n_ranks);
}

static uint64_t *length_of(const exchange *x, int giver)
{
    return (uint64_t *)(void *)tti_lines_place(x->channel, giver)->line;
}

static bool fits(const exchange *x, uint64_t stream_bytes)
{
    return stream_bytes <= TTI_LINES_BYTES - (size_t)x->channel->team->n_ranks * sizeof(cell);
}

/* Whether a block that another member says begins at begin lies in what a place has room for. */
static bool lies_in(const exchange *x, uint64_t begin, size_t bytes)
{
    return fits(x, begin) && fits(x, bytes) && fits(x, begin + bytes);
}

static size_t bytes_of(const exchange *x, int64_t count)
{
    return (size_t)count * x->element;
}

static uint64_t own_stream(const exchange *x)
{
    const tti_team *team = x->channel->team;
    uint64_t        length = 0;
    int             r;

    for (r = 0; r < team->n_ranks; r++)
        if (r != team->rank)
            length += tti_staged_stream_room(bytes_of(x, x->call->in_counts[r]));
    return length;
}

static void give(exchange *x)
{
    const tti_team *team = x->channel->team;
    uint64_t        at = 0;
    int             i;

    *length_of(x, team->rank) = x->longest = own_stream(x);
    for (i = 1; i < team->n_ranks; i++) {
        const int     peer = tti_shifted(team->rank, i, team->n_ranks);
        const int64_t count = x->call->in_counts[peer];
        const size_t  bytes = bytes_of(x, count);
        cell         *to = cell_of(x, team->rank, peer);

        to->gives = count;
        to->wants = x->call->list_counts[peer];
        to->begin = at;
        if (bytes > 0 && bytes <= CELL_DATA)
            memcpy(to->data, x->call->ins[peer], bytes);
        else if (bytes > 0 && fits(x, x->longest))
            memcpy(stream_of(x, team->rank) + at, x->call->ins[peer], bytes);
        at += tti_staged_stream_room(bytes);
    }
    tti_lines_post(x->channel);
}

/* What the others tell this rank. */
static tutti_status compare(exchange *x)
{
    const tti_team *team = x->channel->team;
    tutti_status    st = tti_lines_await_all(x->channel);
    int             i;

    for (i = 1; i < team->n_ranks && st == TUTTI_OK; i++) {
        const int   peer = tti_shifted(team->rank, i, team->n_ranks);
        const cell *from = cell_of(x, peer, team->rank);

        st = tti_staged_compare_block(x->channel, x->call, peer, from->gives, from->wants);
        x->channel->begins[peer] = from->begin;
        if (*length_of(x, peer) > x->longest)
            x->longest = *length_of(x, peer);
    }
    return st;
}

static void take(const exchange *x)
{
    const tti_team *team = x->channel->team;
    int             i;

    for (i = 1; i < team->n_ranks; i++) {
        const int    peer = tti_shifted(team->rank, -i, team->n_ranks);
        const size_t bytes = bytes_of(x, x->call->list_counts[peer]);

        if (bytes > 0 && bytes <= CELL_DATA)
            memcpy(x->call->list[peer], cell_of(x, peer, team->rank)->data, bytes);
        else if (bytes > 0 && lies_in(x, x->channel->begins[peer], bytes))
            memcpy(x->call->list[peer], stream_of(x, peer) + x->channel->begins[peer], bytes);
    }
}

tutti_status tti_one_phase_all_to_all(tti_host_channel *channel, const tutti_call *call)
{
    const int    own = channel->team->rank;
    exchange     x = { .channel = channel, .call = call, .element = tutti_dtype_size(call->dtype) };
    tutti_status st;

    if (channel->team->n_ranks > RANKS_MAX)
        return tti_staged_all_to_all(channel, call);
    give(&x);
    if (call->in_counts[own] > 0 && call->list[own] != call->ins[own])
        memcpy(call->list[own], call->ins[own], bytes_of(&x, call->in_counts[own]));
    st = compare(&x);
    if (st != TUTTI_OK)
        return st;
    if (!fits(&x, x.longest))
        return tti_staged_all_to_all_rounds(channel, call, x.longest);
    take(&x);
    return TUTTI_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * staged_all_to_all.c - all_to_all on one host, with blocks of any sizes.
 *
 * Why     Only two ranks know the size of a block, but all must count the same rounds, and a block
 *         must never be longer than its place.
 * How     The first round shows sizes: every member's slot says what it gives to each other, what
 *         it expects of each, and how long all it gives is. Each compares the entries that concern
 *         it. Then each member's blocks, in shifted order (to rank+1, rank+2, ...), each beginning
 *         on a line, are one stream, and round k moves the k-th slot's worth of every stream: with
 *         blocks of one size all read from different members at a time. The longest stream counts
 *         the rounds, a member whose stream has ended only reads.
 * True    A copy ends where the place ends: its bounds come from the own count and the slot, and a
 *         stream's positions, which another member has told, only shift it inside of the slot.
 * Fails   A pair that does not fit is TUTTI_E_MISMATCH on both its ranks before any data moves;
 *         whoever depends on them finds that they have failed. */
#include <string.h>
#include <tutti/private.h>
#include "coll/host/past.h"
#include "coll/host/pull.h"
#include "coll/host/pulled.h"
#include "coll/pattern.h"

/* What a member tells about one other. */
typedef struct pair_entry {
    uint64_t begin; /* of the block in the member's stream */
    int64_t  gives; /* elements */
    int64_t  wants; /* elements */
} pair_entry;

typedef struct table {
    uint64_t   stream_bytes;
    pair_entry to[];
} table;

_Static_assert(sizeof(table) + TTI_HOST_RANKS_MAX * sizeof(pair_entry) <= TTI_HOST_CHUNK,
               "a table fits a slot");

/* One round's window of all streams. */
typedef struct window {
    tti_host_channel *channel;
    const tutti_call *call;
    size_t            element;
    uint64_t          begin;
    uint64_t          longest; /* stream */
    bool              past;    /* results go past the caches */
} window;

/* The part of a block that lies in the window: [from, from + bytes) of the block, at `at` of the
 * slot. */
typedef struct piece {
    uint64_t from;
    uint64_t at;
    size_t   bytes;
} piece;

static piece piece_of(const window *w, uint64_t block_begin, uint64_t block_bytes)
{
    const uint64_t window_end = w->begin + w->channel->chunk;
    const uint64_t block_end = block_begin + block_bytes;
    const uint64_t lo = block_begin > w->begin ? block_begin : w->begin;
    const uint64_t hi = block_end < window_end ? block_end : window_end;

    if (lo >= hi)
        return (piece){ .bytes = 0 };
    return (piece){ .from = lo - block_begin, .at = lo - w->begin, .bytes = (size_t)(hi - lo) };
}

static uint64_t bytes_of(const window *w, int64_t count)
{
    return (uint64_t)count * w->element;
}

static uint64_t room_of(const window *w, int64_t count)
{
    return tti_staged_stream_room(bytes_of(w, count));
}

/* ---- the first round: sizes ---- */

/* Bytes of the own stream. */
static uint64_t write_table(const window *w)
{
    const tti_team *team = w->channel->team;
    table          *mine = (table *)(void *)tti_host_staging(w->channel, team->rank);
    uint64_t        at = 0;
    int             i;

    for (i = 1; i < team->n_ranks; i++) {
        const int peer = tti_shifted(team->rank, i, team->n_ranks);

        mine->to[peer] = (pair_entry){ .begin = at, .gives = w->call->in_counts[peer],
                                       .wants = w->call->list_counts[peer] };
        at += room_of(w, w->call->in_counts[peer]);
    }
    mine->stream_bytes = at;
    return at;
}

tutti_status tti_staged_refuse_block(tti_host_channel *channel, const tutti_call *call, int peer, int64_t gives,
                                     int64_t wants)
{
    const int    own = channel->team->rank;
    tutti_status st;

    if (gives != call->list_counts[peer])
        st = tti_team_fail_block(channel->team, &channel->note, peer, own, gives, call->list_counts[peer]);
    else
        st = tti_team_fail_block(channel->team, &channel->note, own, peer, call->in_counts[peer], wants);
    tti_host_raise_own(channel, st, peer);
    return st;
}

tutti_status tti_staged_refuse_stream(tti_host_channel *channel, int peer, uint64_t bytes)
{
    const tti_team *team = channel->team;
    char            call[TTI_CALL_TEXT_MAX];
    tutti_status    st;

    tti_team_describe(team, &channel->note, call);
    st = tti_fail(TUTTI_E_BACKEND, "%s on group '%s': rank %d (%s) says that it gives %llu bytes", call, team->name,
                  team->ranks[peer], tti_mesh_whereabouts(team->mesh, team->ranks[peer]), (unsigned long long)bytes);
    tti_host_raise_own(channel, st, peer);
    return st;
}

/* Compare what peer says about this rank with what this rank says about peer. */
static tutti_status read_table(window *w, int peer)
{
    tti_host_channel *channel = w->channel;
    const table      *theirs = (const table *)(const void *)tti_host_staging(channel, peer);
    const pair_entry *entry = &theirs->to[channel->team->rank];
    const uint64_t    length = tti_host_read_u64(&theirs->stream_bytes);
    tutti_status      st = tti_staged_compare_block(channel, w->call, peer, tti_host_read_i64(&entry->gives),
                                                    tti_host_read_i64(&entry->wants));

    if (st == TUTTI_OK)
        st = tti_staged_check_stream(channel, peer, length);
    if (st != TUTTI_OK)
        return st;
    channel->begins[peer] = tti_host_read_u64(&entry->begin);
    if (length > w->longest)
        w->longest = length;
    return TUTTI_OK;
}

static tutti_status exchange_tables(window *w)
{
    const tti_team *team = w->channel->team;
    tutti_status    st = tti_host_room(w->channel);
    int             i;

    if (st != TUTTI_OK)
        return st;
    w->longest = write_table(w);
    tti_host_post(w->channel, TTI_STAGED);
    st = tti_host_await_all(w->channel, TTI_STAGED);
    for (i = 1; i < team->n_ranks && st == TUTTI_OK; i++)
        st = read_table(w, tti_shifted(team->rank, i, team->n_ranks));
    if (st == TUTTI_OK)
        tti_host_next(w->channel);
    return st;
}

/* ---- the rounds after it: data ---- */

/* Fill the own slot with the own stream's window. */
static tutti_status give(const window *w)
{
    const tti_team *team = w->channel->team;
    char           *slot = tti_host_staging(w->channel, team->rank);
    tutti_status    st = tti_host_room(w->channel);
    uint64_t        begin = 0;
    int             i;

    for (i = 1; i < team->n_ranks && st == TUTTI_OK; i++) {
        const int     peer = tti_shifted(team->rank, i, team->n_ranks);
        const int64_t count = w->call->in_counts[peer];
        const piece   p = piece_of(w, begin, bytes_of(w, count));

        if (p.bytes > 0)
            memcpy(slot + p.at, (const char *)w->call->ins[peer] + p.from, p.bytes);
        begin += room_of(w, count);
    }
    if (st == TUTTI_OK)
        tti_host_post(w->channel, TTI_STAGED);
    return st;
}

static tutti_status take(const window *w, int giver)
{
    const uint64_t bytes = bytes_of(w, w->call->list_counts[giver]);
    const piece    p = piece_of(w, w->channel->begins[giver], bytes);
    tutti_status   st = TUTTI_OK;

    if (p.bytes > 0)
        st = tti_host_await(w->channel, TTI_STAGED, giver);
    if (st == TUTTI_OK && p.bytes > 0)
        tti_host_put((char *)w->call->list[giver] + p.from, tti_host_staging(w->channel, giver) + p.at, p.bytes,
                     w->past);
    return st;
}

static tutti_status move_data(window *w)
{
    const tti_team *team = w->channel->team;
    tutti_status    st = TUTTI_OK;
    int             i;

    tti_host_go_on(w->channel, tti_staged_rounds((int64_t)w->longest, (int64_t)w->channel->chunk));
    for (; w->begin < w->longest && st == TUTTI_OK; w->begin += w->channel->chunk) {
        st = give(w);
        for (i = 1; i < team->n_ranks && st == TUTTI_OK; i++)
            st = take(w, tti_shifted(team->rank, -i, team->n_ranks));
        if (st == TUTTI_OK)
            tti_host_next(w->channel);
    }
    return st;
}

tutti_status tti_staged_wants_pull(tti_host_channel *channel, uint64_t longest, bool *wants_out)
{
    const uint64_t least = channel->crowded ? TTI_PULL_BLOCKS_SHARED_CORE : TTI_PULL_BLOCKS_OWN_CORE;

    *wants_out = false;
    return longest >= least ? tti_host_pull_ready(channel, wants_out) : TUTTI_OK;
}

tutti_status tti_staged_all_to_all_rounds(tti_host_channel *channel, const tutti_call *call, uint64_t longest)
{
    window       w = { .channel = channel, .call = call, .element = tutti_dtype_size(call->dtype), .longest = longest,
                       .past = tti_host_past_caches(channel, call) };
    bool         pulls;
    tutti_status st = tti_staged_wants_pull(channel, longest, &pulls);

    if (st == TUTTI_OK)
        st = tti_host_begin(channel, 0);
    if (st != TUTTI_OK)
        return st;
    return pulls ? tti_pulled_blocks(channel, call, false) : move_data(&w);
}

static tutti_status run(tti_host_channel *channel, const tutti_call *call, bool pulls)
{
    const int    own = channel->team->rank;
    window       w = { .channel = channel, .call = call,
                       .element = tutti_dtype_size(call->dtype), .past = tti_host_past_caches(channel, call) };
    tutti_status st = tti_host_begin(channel, 1);

    if (st == TUTTI_OK)
        st = exchange_tables(&w);
    if (st == TUTTI_OK)
        tti_host_put(call->list[own], call->ins[own], (size_t)bytes_of(&w, call->in_counts[own]), w.past);
    if (st == TUTTI_OK && pulls)
        st = tti_staged_wants_pull(channel, w.longest, &pulls);
    if (st != TUTTI_OK)
        return st;
    return pulls ? tti_pulled_blocks(channel, call, false) : move_data(&w);
}

tutti_status tti_staged_all_to_all(tti_host_channel *channel, const tutti_call *call)
{
    return run(channel, call, false);
}

tutti_status tti_pulled_all_to_all(tti_host_channel *channel, const tutti_call *call)
{
    return run(channel, call, true);
}

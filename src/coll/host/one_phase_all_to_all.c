/* SPDX-License-Identifier: BSD-3-Clause
 *
 * one_phase_all_to_all.c - all_to_all on one host, with blocks of any sizes: small ones in one phase.
 *
 * Why     Only two ranks know the size of a block, so all must first be told something. What is small goes with it.
 * How     A member whose blocks for all others, and those it expects, are of one size says so in its line: it is even.
 *         That size tells all there is to know, and blocks that fit beside it stand there: one line to write, and one of
 *         each other member to read. Else its place begins with a cell for each member: what its owner gives it,
 *         what it expects of it, and the block, if it is small.
 *         Larger blocks follow (behind the cells, where there are any), in shifted order (to rank+1, rank+2, ...),
 *         each beginning on a line: the member's stream, of which the line tells the length. Where blocks are to be
 *         read from their owner (pull.h), addresses stand in place of their data.
 * True    A copy ends where the caller's memory ends: its bounds come from the own counts, which were compared with
 *         the other's. Where a block begins the other has told: it is not read beyond the place. Each thing that is told is
 *         loaded once, or leads to no other memory than its owner's region whatever it has become.
 *         All read all lines, so that all know the longest stream, and whether every one goes through its block; if not,
 *         all go on in rounds, or read blocks from their owners (staged_all_to_all.c). Whether a member is even is its own matter: others read it there.
 * Fails   A pair that does not fit is TUTTI_E_MISMATCH on both its ranks before any of its data moves; whoever depends
 *         on them finds that they have failed. */
#include <string.h>
#include "base/dtype.h"
#include "coll/host/fused.h"
#include "coll/host/lines.h"
#include "coll/host/one_phase.h"
#include "coll/host/pulled.h"
#include "coll/pattern.h"

enum { LINE_DATA = 40, LINE_ADDRESSES = 5, CELL_DATA = 40, RANKS_MAX = TTI_LINES_BYTES / 2 / 64, UNEVEN = -1 };

/* What a member tells all, beside its word. */
typedef struct header {
    uint64_t stream; /* bytes of all its blocks, each from a line on */
    int64_t  count;  /* elements of every block that it gives or expects; UNEVEN: the cells tell */
    union {
        char     data[LINE_DATA]; /* its blocks, if it is even and all fit; in shifted order */
        uint64_t addresses[LINE_ADDRESSES];
    };
} header;

/* What a member that is not even tells another. */
typedef struct cell {
    int64_t  gives; /* elements */
    int64_t  wants; /* elements */
    uint64_t begin; /* of the block in the member's stream */
    union {
        char     data[CELL_DATA];
        uint64_t address;
    };
} cell;

_Static_assert(sizeof(header) == TTI_LINES_SHORT, "a header stands beside the word");
_Static_assert(sizeof(cell) == 64, "a cell is a line");

typedef struct exchange {
    tti_host_channel *channel;
    const tutti_call *call;
    size_t            element;
    uint64_t          longest; /* stream */
    bool              here;    /* streams as long as that go through blocks */
    bool              pulls;   /* or are read from their owners */
} exchange;

static header *header_of(const exchange *x, int giver)
{
    return (header *)(void *)tti_lines_place(x->channel, giver)->line;
}

static bool is_even(const exchange *x, int giver)
{
    return tti_host_read_i64(&header_of(x, giver)->count) != UNEVEN;
}

static cell *cell_of(const exchange *x, int giver, int taker)
{
    return (cell *)(void *)x->channel->members[giver].blocks[x->channel->turn].bytes + taker;
}

static char *stream_of(const exchange *x, int giver)
{
    return (char *)cell_of(x, giver, is_even(x, giver) ? 0 : x->channel->team->n_ranks);
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

/* Whether the longest stream known goes through blocks, or in rounds: it does not fit, or is better read from its owner. */
static tutti_status settle_here(exchange *x)
{
    const tutti_status st = tti_staged_wants_pull(x->channel, x->longest, &x->pulls);

    if (st == TUTTI_OK)
        x->here = fits(x, x->longest) && !x->pulls;
    return st;
}

/* Blocks of even members that fit into the line. */
static bool are_short(const exchange *x, size_t bytes)
{
    return bytes <= LINE_DATA && bytes * ((size_t)x->channel->team->n_ranks - 1) <= LINE_DATA;
}

/* Blocks of one size, or of any. */
static uint64_t own_stream(const exchange *x, int64_t even)
{
    const tti_team *team = x->channel->team;
    uint64_t        length = 0;
    int             r;

    if (even != UNEVEN)
        return tti_staged_stream_room(bytes_of(x, even)) * (uint64_t)(team->n_ranks - 1);
    for (r = 0; r < team->n_ranks; r++)
        if (r != team->rank)
            length += tti_staged_stream_room(bytes_of(x, x->call->in_counts[r]));
    return length;
}

/* The elements of each block that this rank gives to others or expects of them, if all have as many. */
static int64_t even_count(const exchange *x)
{
    const tti_team *team = x->channel->team;
    const int64_t   count = x->call->in_counts[team->rank == 0 ? 1 : 0];
    int             r;

    for (r = 0; r < team->n_ranks; r++)
        if (r != team->rank && (x->call->in_counts[r] != count || x->call->list_counts[r] != count))
            return UNEVEN;
    return count;
}

/* ---- giving ---- */

static void put(char *to, const void *from, size_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, bytes);
}

static void give_addresses(const exchange *x)
{
    const tti_team *team = x->channel->team;
    header         *own = header_of(x, team->rank);
    int             i;

    for (i = 1; i < team->n_ranks; i++)
        own->addresses[i - 1] = (uint64_t)(uintptr_t)x->call->ins[tti_shifted(team->rank, i, team->n_ranks)];
}

static void give_even(const exchange *x, int64_t count)
{
    const tti_team *team = x->channel->team;
    const size_t    bytes = bytes_of(x, count);
    const bool      beside = are_short(x, bytes);
    const size_t    step = beside ? bytes : tti_staged_stream_room(bytes);
    char           *to = beside ? header_of(x, team->rank)->data : stream_of(x, team->rank);
    int             i;

    if (x->pulls)
        give_addresses(x);
    if (!beside && !x->here)
        return;
    if (!beside)
        tti_lines_ask(to, step * (size_t)(team->n_ranks - 1));
    for (i = 1; i < team->n_ranks; i++, to += step)
        put(to, x->call->ins[tti_shifted(team->rank, i, team->n_ranks)], bytes);
}

static void give_cells(const exchange *x)
{
    const tti_team *team = x->channel->team;
    uint64_t        at = 0;
    int             i;

    for (i = 1; i < team->n_ranks; i++) {
        const int     peer = tti_shifted(team->rank, i, team->n_ranks);
        const int64_t count = x->call->in_counts[peer];
        const size_t  bytes = bytes_of(x, count);
        cell         *to = cell_of(x, team->rank, peer);

        to->gives = count;
        to->wants = x->call->list_counts[peer];
        to->begin = at;
        if (x->pulls)
            to->address = (uint64_t)(uintptr_t)x->call->ins[peer];
        else if (bytes <= CELL_DATA)
            put(to->data, x->call->ins[peer], bytes);
        else if (x->here)
            put(stream_of(x, team->rank) + at, x->call->ins[peer], bytes);
        at += tti_staged_stream_room(bytes);
    }
}

static tutti_status give(exchange *x)
{
    header      *own = header_of(x, x->channel->team->rank);
    int64_t      count = even_count(x);
    tutti_status st;

    x->longest = own_stream(x, count);
    st = settle_here(x);
    if (x->pulls && x->channel->team->n_ranks - 1 > LINE_ADDRESSES)
        count = UNEVEN;
    if (st == TUTTI_OK && (count == UNEVEN || !are_short(x, bytes_of(x, count))))
        st = tti_host_catch_up(x->channel); /* before the block is written */
    if (st != TUTTI_OK)
        return st;
    own->stream = x->longest;
    own->count = count;
    if (count != UNEVEN)
        give_even(x, count);
    else
        give_cells(x);
    tti_lines_post(x->channel);
    return TUTTI_OK;
}

/* ---- taking ---- */

/* Whether all members have told addresses: they knew from their own stream alone that blocks are to be read. */
static tutti_status all_tell_addresses(const exchange *x, bool *tell_out)
{
    tutti_status st = TUTTI_OK;
    bool         tell = true;
    int          r;

    for (r = 0; r < x->channel->team->n_ranks && tell && st == TUTTI_OK; r++)
        st = tti_staged_wants_pull(x->channel, tti_host_read_u64(&header_of(x, r)->stream), &tell);
    *tell_out = tell && st == TUTTI_OK;
    return st;
}

/* Who is even with more others than that has not told the truth: there is nothing at 0, and reading it fails. */
static uint64_t address_told_by(const exchange *x, int giver, int i)
{
    if (!is_even(x, giver))
        return tti_host_read_u64(&cell_of(x, giver, x->channel->team->rank)->address);
    return i <= LINE_ADDRESSES ? tti_host_read_u64(&header_of(x, giver)->addresses[i - 1]) : 0;
}

/* Sizes, and where the block begins in the stream. */
typedef struct terms {
    int64_t  gives, wants;
    uint64_t begin;
} terms;

/* What giver tells this rank, which is the i-th to its right. */
static terms told_by(const exchange *x, int giver, int i)
{
    const int64_t count = tti_host_read_i64(&header_of(x, giver)->count);
    const cell   *from;

    if (count != UNEVEN)
        return (terms){ count, count, (uint64_t)(i - 1) * tti_staged_stream_room(bytes_of(x, count)) };
    from = cell_of(x, giver, x->channel->team->rank);
    return (terms){ tti_host_read_i64(&from->gives), tti_host_read_i64(&from->wants), tti_host_read_u64(&from->begin) };
}

/* What the others tell this rank. */
static tutti_status compare(exchange *x)
{
    const tti_team *team = x->channel->team;
    tutti_status    st = tti_lines_await_all(x->channel);
    int             i;

    for (i = 1; i < team->n_ranks && st == TUTTI_OK; i++) {
        const int      peer = tti_shifted(team->rank, -i, team->n_ranks);
        const terms    from = told_by(x, peer, i);
        const uint64_t length = tti_host_read_u64(&header_of(x, peer)->stream);

        st = tti_staged_compare_block(x->channel, x->call, peer, from.gives, from.wants);
        if (st == TUTTI_OK)
            st = tti_staged_check_stream(x->channel, peer, length);
        x->channel->begins[peer] = from.begin;
        if (length > x->longest)
            x->longest = length;
    }
    return st;
}

/* Where giver has the block of bytes for this rank, which is the i-th to its right. */
static const char *block_at(const exchange *x, int giver, int i, size_t bytes)
{
    if (is_even(x, giver) && are_short(x, bytes))
        return header_of(x, giver)->data + bytes * (size_t)(i - 1);
    if (!is_even(x, giver) && bytes <= CELL_DATA)
        return cell_of(x, giver, x->channel->team->rank)->data;
    return lies_in(x, x->channel->begins[giver], bytes) ? stream_of(x, giver) + x->channel->begins[giver] : NULL;
}

static void take(const exchange *x)
{
    const tti_team *team = x->channel->team;
    int             i;

    for (i = 1; i < team->n_ranks; i++) {
        const int    peer = tti_shifted(team->rank, -i, team->n_ranks);
        const size_t bytes = bytes_of(x, x->call->list_counts[peer]);
        const char  *from = bytes > 0 ? block_at(x, peer, i, bytes) : NULL;

        if (from != NULL)
            memcpy(x->call->list[peer], from, bytes);
    }
}

/* In rounds, or by reading from the owners. */
static tutti_status go_on(exchange *x)
{
    tti_host_channel *channel = x->channel;
    const tti_team   *team = channel->team;
    bool              told = false;
    tutti_status      st = x->pulls ? all_tell_addresses(x, &told) : TUTTI_OK;
    int               i;

    for (i = 1; i < team->n_ranks && told; i++) {
        const int giver = tti_shifted(team->rank, -i, team->n_ranks);

        channel->begins[giver] = address_told_by(x, giver, i);
    }
    if (st != TUTTI_OK || !told)
        return st != TUTTI_OK ? st : tti_staged_all_to_all_rounds(channel, x->call, x->longest);
    st = tti_host_begin(channel, 0);
    return st == TUTTI_OK ? tti_pulled_blocks(channel, x->call, true) : st;
}

tutti_status tti_one_phase_all_to_all(tti_host_channel *channel, const tutti_call *call)
{
    const int    own = channel->team->rank;
    exchange     x = { .channel = channel, .call = call, .element = tti_dtype_bytes(call->dtype) };
    tutti_status st;

    if (channel->team->n_ranks > RANKS_MAX)
        return tti_staged_all_to_all(channel, call);
    st = give(&x);
    if (st != TUTTI_OK)
        return st;
    if (call->in_counts[own] > 0 && call->list[own] != call->ins[own])
        memcpy(call->list[own], call->ins[own], bytes_of(&x, call->in_counts[own]));
    st = compare(&x);
    if (st == TUTTI_OK)
        st = settle_here(&x);
    if (st != TUTTI_OK)
        return st;
    tti_fused_note_blocks(channel, (int64_t)x.longest / (channel->team->n_ranks - 1) * channel->team->n_ranks);
    if (!x.here)
        return go_on(&x);
    take(&x);
    return TUTTI_OK;
}

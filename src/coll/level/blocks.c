/* SPDX-License-Identifier: BSD-3-Clause
 *
 * blocks.c - all_to_all, gather_v and scatter_v in two levels: blocks of which only two ranks know the size.
 *
 * Why     Blocks are often short, and then it is the messages that take the time: a host with L ranks has L^2 of them for
 *         each other host where one for each carrier would do.
 * How     For each pair of ranks there is an entry: what the giver gives and wants, and behind it the block, if that is
 *         short enough. Each member stages its entries for all ranks. Those for its own host's members lie there for them to
 *         take. A carrier takes those for the members of other hosts that are at its place, at its place + K, ..., and
 *         sends its counterpart there all that its own host has for them, one behind the other, in one message. What comes is
 *         for itself, or is staged for the members that it carries for. Then each knows all sizes, and long blocks go from
 *         rank to rank, as they would without levels.
 *         With as many carriers as the smallest host has members nearly all that comes is for whoever gets it; with one, a
 *         pair of hosts has one message each way, and members wait for each other once more.
 * True    1. Lanes have one length on all hosts, which is arithmetic of the layout: so giver and taker agree on what is
 *            short. Where slots have no room for so many lanes blocks go directly, of all members.
 *         2. Nothing is written to a block before its sizes were compared, by its taker; an entry is copied by the size that
 *            it tells, read once, and never beyond its lane.
 *         3. Nobody waits in a circle: what is staged waits for no message, messages wait for what is staged, and what is
 *            staged again waits for messages.
 * Fails   As two_level.c. Two ranks whose sizes differ both find out, in the same words. */
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "coll/host/wait.h"
#include "coll/level/shapes.h"

enum {
    HEAD = sizeof(tti_block_sizes),
    ROUND = 16, /* entries in a message begin at multiples of it */
    LANE_LEAST = 64,
    ACROSS = 0, /* flights, and lanes of messages */
    LONG = 1,
};

_Static_assert((int)HEAD % (int)ROUND == 0, "a block begins where numbers of all types may");

typedef struct blocks {
    tti_levels          *levels;
    const tti_hosts     *layout;
    const tutti_call    *call;
    const tti_call_note *note;
    int                  carriers;
    int                  me; /* group rank */
    size_t               element;
    size_t               each;       /* bytes of a lane */
    int64_t              short_most; /* elements of a block that fits */
    int                  n_remote;   /* ranks of other hosts */
    /* in scratch memory */
    char          *out, *in;      /* messages to and from the counterparts */
    const void   **ins;           /* [n_hosts] */
    int64_t       *in_counts;     /* [n_hosts] */
    const char   **kept;          /* entries for those that this rank carries for: [their number * n_remote] */
    int64_t       *gives, *wants; /* [n_ranks] elements of long blocks */
} blocks;

/* ---- arithmetic ------------------------------------------------------------------------------------ */

/* Members of a host that a carrier carries for, itself included. */
static int carried(const tti_hosts *layout, int carriers, int host, int carrier)
{
    return (tti_hosts_local(layout, host) - carrier + carriers - 1) / carriers;
}

/* A slot has a lane for each rank, and has room for all that the carrier with most of it stages for others. 0: it has not. */
static size_t lane_bytes(const tti_hosts *layout, int carriers)
{
    int64_t lanes = layout->n_ranks;
    size_t  each;
    int     host;

    for (host = 0; host < layout->n_hosts; host++) {
        const int64_t staged = (int64_t)(carried(layout, carriers, host, 0) - 1) *
                               (layout->n_ranks - tti_hosts_local(layout, host));

        lanes = staged > lanes ? staged : lanes;
    }
    each = TTI_HOST_CHUNK / (size_t)lanes & ~(size_t)(LANE_LEAST - 1);
    return each < HEAD + TTI_LEVEL_SHORT_MOST ? each : HEAD + TTI_LEVEL_SHORT_MOST;
}

/* Whether two ranks may have anything for each other: where there is a root, it is one of them. */
static bool is_pair(const blocks *b, int x, int y)
{
    return b->call->root < 0 || x == b->call->root || y == b->call->root;
}

static bool is_short(const blocks *b, int64_t count)
{
    return count >= 0 && count <= b->short_most;
}

/* What an entry takes in a message, by what it says is given. */
static size_t entry_bytes(const blocks *b, int64_t gives)
{
    const size_t body = is_short(b, gives) ? (size_t)gives * b->element : 0;

    return (HEAD + body + ROUND - 1) / ROUND * ROUND;
}

static bool carries(const blocks *b)
{
    return b->levels->place < b->carriers;
}

/* Members of this host that a carrier has to stage entries for. */
static int others_carried(const blocks *b, int carrier)
{
    return carried(b->layout, b->carriers, b->levels->host, carrier) - 1;
}

/* Pairs, as is_pair(), of a member of host `from` and one of another host `to` that is the carrier's there. */
static int64_t pairs(const blocks *b, int from, int to)
{
    const tti_hosts *layout = b->layout;
    const int        place = b->levels->place, root = b->call->root;
    const int64_t    givers = tti_hosts_local(layout, from), takers = carried(layout, b->carriers, to, place);

    if (root < 0)
        return givers * takers;
    if (layout->host[root] == from)
        return takers;
    return layout->host[root] == to && layout->place[root] % b->carriers == place ? givers : 0;
}

/* Whether members of this host get anything by way of others. */
static bool spreads(const blocks *b)
{
    return others_carried(b, 0) > 0;
}

/* ---- memory ---------------------------------------------------------------------------------------- */

static size_t take(size_t *total, size_t bytes)
{
    const size_t at = *total;

    *total += (bytes + 63) & ~(size_t)63;
    return at;
}

static size_t message_bytes(const blocks *b, bool goes_out)
{
    const int own = b->levels->host;
    size_t    bytes = 0;
    int       host;

    for (host = 0; host < b->layout->n_hosts && carries(b); host++)
        if (host != own)
            bytes += (size_t)(goes_out ? pairs(b, own, host) : pairs(b, host, own)) * b->each;
    return bytes;
}

static tutti_status make_room(blocks *b)
{
    const size_t n_hosts = (size_t)b->layout->n_hosts, n = (size_t)b->layout->n_ranks;
    const size_t n_kept = carries(b) ? (size_t)others_carried(b, b->levels->place) * (size_t)b->n_remote : 0;
    size_t       total = 0;
    const size_t out = take(&total, message_bytes(b, true)), in = take(&total, message_bytes(b, false));
    const size_t ins = take(&total, n_hosts * sizeof *b->ins), counts = take(&total, n_hosts * sizeof *b->in_counts);
    const size_t kept = take(&total, n_kept * sizeof *b->kept);
    const size_t gives = take(&total, n * sizeof *b->gives), wants = take(&total, n * sizeof *b->wants);
    const tutti_status st = tti_levels_room(b->levels, total);
    char              *base = b->levels->scratch;

    if (st != TUTTI_OK)
        return st;
    b->out = base + out;
    b->in = base + in;
    b->ins = (const void **)(void *)(base + ins);
    b->in_counts = (int64_t *)(void *)(base + counts);
    b->kept = (const char **)(void *)(base + kept);
    b->gives = (int64_t *)(void *)(base + gives);
    b->wants = (int64_t *)(void *)(base + wants);
    return TUTTI_OK;
}

/* ---- entries --------------------------------------------------------------------------------------- */

/* This rank's entry for another. Returns its bytes. */
static size_t write_entry(const blocks *b, char *to, int rank)
{
    const tti_block_sizes head = { .gives = b->call->in_counts[rank], .wants = b->call->list_counts[rank] };

    memcpy(to, &head, HEAD);
    if (head.gives > 0 && is_short(b, head.gives))
        memcpy(to + HEAD, b->call->ins[rank], (size_t)head.gives * b->element);
    return entry_bytes(b, head.gives);
}

/* An entry that another process has written, or may write still. */
static size_t copy_entry(const blocks *b, char *to, const char *from)
{
    const int64_t gives = tti_host_read_i64((const int64_t *)(const void *)from);
    const size_t  bytes = entry_bytes(b, gives);

    memcpy(to, from, bytes);
    memcpy(to, &gives, sizeof gives);
    return bytes;
}

/* The entry that a rank has for this one: sizes are compared, a short block is put where it belongs. */
static tutti_status take_entry(const blocks *b, int rank, const char *entry)
{
    const tti_block_sizes *head = (const tti_block_sizes *)(const void *)entry;
    const int64_t          gives = tti_host_read_i64(&head->gives), wants = tti_host_read_i64(&head->wants);
    const int64_t          expected = b->call->list_counts[rank], given = b->call->in_counts[rank];

    if (gives != expected)
        return tti_team_fail_block(b->levels->whole, b->note, rank, b->me, gives, expected);
    if (wants != given)
        return tti_team_fail_block(b->levels->whole, b->note, b->me, rank, given, wants);
    if (expected > 0 && is_short(b, expected))
        memcpy(b->call->list[rank], entry + HEAD, (size_t)expected * b->element);
    return TUTTI_OK;
}

/* ---- on the host ----------------------------------------------------------------------------------- */

/* In a member's slot, the lane for a rank. */
static char *lane_at(const blocks *b, int place, int rank)
{
    return tti_host_staging(b->levels->channel, place) + (size_t)rank * b->each;
}

static tutti_status stage(const blocks *b)
{
    tti_host_channel *channel = b->levels->channel;
    tutti_status      st;
    int               r;

    if (channel == NULL)
        return TUTTI_OK;
    st = tti_host_room(channel);
    if (st != TUTTI_OK)
        return st;
    for (r = 0; r < b->layout->n_ranks; r++)
        if (r != b->me && is_pair(b, b->me, r))
            (void)write_entry(b, lane_at(b, b->levels->place, r), r);
    tti_host_post(channel, TTI_STAGED);
    return TUTTI_OK;
}

/* What members of this host have for this rank; then it needs nothing more of the round. */
static tutti_status take_here(const blocks *b)
{
    tti_host_channel *channel = b->levels->channel;
    const int         local = b->levels->here.n_ranks;
    tutti_status      st = TUTTI_OK;
    int               i;

    for (i = 1; i < local && st == TUTTI_OK; i++) {
        const int place = (b->levels->place + i) % local, rank = tti_hosts_rank(b->layout, b->levels->host, place);

        if (!is_pair(b, b->me, rank))
            continue;
        st = tti_host_await(channel, TTI_STAGED, place);
        if (st == TUTTI_OK)
            st = take_entry(b, rank, lane_at(b, place, b->me));
    }
    if (st == TUTTI_OK && channel != NULL)
        tti_host_next(channel);
    return st;
}

/* ---- across ---------------------------------------------------------------------------------------- */

/* All that this host has for those of another that are this carrier's there. */
static char *pack(const blocks *b, int host, char *to)
{
    const int own = b->levels->host;
    int       i, q;

    for (i = 0; i < b->levels->here.n_ranks; i++)
        for (q = b->levels->place; q < tti_hosts_local(b->layout, host); q += b->carriers) {
            const int giver = tti_hosts_rank(b->layout, own, i), taker = tti_hosts_rank(b->layout, host, q);

            if (is_pair(b, giver, taker))
                to += giver == b->me ? write_entry(b, to, taker) : copy_entry(b, to, lane_at(b, i, taker));
        }
    return to;
}

static void pack_all(const blocks *b)
{
    tti_flight *flight = &b->levels->flights[ACROSS];
    char       *out = b->out, *in = b->in;
    int         host;

    for (host = 0; host < b->layout->n_hosts; host++) {
        char *begin = out;

        b->ins[host] = begin;
        flight->list[host] = in;
        flight->counts[host] = 0;
        if (host != b->levels->host) {
            out = pack(b, host, out);
            flight->counts[host] = pairs(b, host, b->levels->host) * (int64_t)b->each;
            in += flight->counts[host];
        }
        b->in_counts[host] = out - begin;
    }
}

static tutti_status begin(const blocks *b, int number, const tti_team *team, tti_plan *plan)
{
    tti_flight  *flight = &b->levels->flights[number];
    tutti_status st = tti_net_begin(&flight->net, team, number, plan, &flight->across, b->note);

    flight->begun = st == TUTTI_OK;
    return tti_net_learn(team, flight->across.deadline_ns, st);
}

static tutti_status end(const blocks *b, int number, const tti_team *team)
{
    tti_flight *flight = &b->levels->flights[number];

    flight->begun = false; /* ended, one way or the other */
    return tti_net_end(&flight->net, team);
}

static tutti_status begin_across(const blocks *b)
{
    const tutti_call *call = b->call;
    tti_flight       *flight = &b->levels->flights[ACROSS];
    tutti_status      st = TUTTI_OK;

    if (b->levels->channel != NULL)
        st = tti_host_await_all(b->levels->channel, TTI_STAGED);
    if (st != TUTTI_OK)
        return st;
    pack_all(b);
    flight->across = (tutti_call){ .kind = call->kind, .seq = call->seq, .dtype = TUTTI_U8, .root = -1,
                                   .n_parts = b->layout->n_hosts, .ins = b->ins, .in_counts = b->in_counts,
                                   .list = flight->list, .list_counts = flight->counts,
                                   .deadline_ns = call->deadline_ns, .timeout_ms = call->timeout_ms,
                                   .in_background = call->in_background };
    return begin(b, ACROSS, &b->levels->across, tti_plan_blocks_packed);
}

/* Ranks of other hosts are numbered host by host. */
static int remote_number(const blocks *b, int host, int place)
{
    const tti_hosts *layout = b->layout;

    return layout->begins[host] + place - (host > b->levels->host ? b->levels->here.n_ranks : 0);
}

static int remote_rank(const blocks *b, int number)
{
    const int begin = b->layout->begins[b->levels->host];

    return b->layout->members[number < begin ? number : number + b->levels->here.n_ranks];
}

/* What a host has sent: this rank's own entries are taken, those of others are kept in mind. */
static tutti_status unpack(const blocks *b, int host)
{
    const int    own = b->levels->host, place = b->levels->place;
    const char  *at = b->levels->flights[ACROSS].list[host];
    tutti_status st = TUTTI_OK;
    int          i, q;

    for (i = 0; i < tti_hosts_local(b->layout, host); i++)
        for (q = place; q < b->levels->here.n_ranks; q += b->carriers) {
            const int giver = tti_hosts_rank(b->layout, host, i), taker = tti_hosts_rank(b->layout, own, q);
            const int row = (q - place) / b->carriers - 1;

            if (!is_pair(b, giver, taker))
                continue;
            if (taker == b->me)
                st = take_entry(b, giver, at);
            else
                b->kept[(int64_t)row * b->n_remote + remote_number(b, host, i)] = at;
            if (st != TUTTI_OK)
                return st;
            at += entry_bytes(b, tti_host_read_i64((const int64_t *)(const void *)at));
        }
    return TUTTI_OK;
}

static tutti_status end_across(const blocks *b)
{
    tutti_status st = end(b, ACROSS, &b->levels->across);
    int          host;

    for (host = 0; host < b->layout->n_hosts && st == TUTTI_OK; host++)
        if (host != b->levels->host)
            st = unpack(b, host);
    return st;
}

/* ---- on the host again ----------------------------------------------------------------------------- */

/* The taker of a kept entry, and the rank that it comes from. */
static bool is_kept(const blocks *b, int carrier, int64_t number)
{
    const int place = carrier + (1 + (int)(number / b->n_remote)) * b->carriers;

    return is_pair(b, tti_hosts_rank(b->layout, b->levels->host, place), remote_rank(b, (int)(number % b->n_remote)));
}

static char *spread_lane(const blocks *b, int carrier, int64_t number)
{
    return tti_host_staging(b->levels->channel, carrier) + (size_t)number * b->each;
}

static tutti_status give_kept(const blocks *b)
{
    const int     carrier = b->levels->place;
    const int64_t n = (int64_t)others_carried(b, carrier) * b->n_remote;
    tutti_status  st;
    int64_t       i;

    if (n == 0)
        return TUTTI_OK;
    st = tti_host_room(b->levels->channel);
    if (st != TUTTI_OK)
        return st;
    for (i = 0; i < n; i++)
        if (is_kept(b, carrier, i))
            (void)copy_entry(b, spread_lane(b, carrier, i), b->kept[i]);
    tti_host_post(b->levels->channel, TTI_STAGED);
    return TUTTI_OK;
}

/* Those of them that are for this rank, which another one carries for. */
static tutti_status take_kept(const blocks *b)
{
    const int     carrier = b->levels->place % b->carriers, row = b->levels->place / b->carriers - 1;
    const int64_t begin = (int64_t)row * b->n_remote;
    tutti_status  st = tti_host_await(b->levels->channel, TTI_STAGED, carrier);
    int           i;

    for (i = 0; i < b->n_remote && st == TUTTI_OK; i++)
        if (is_kept(b, carrier, begin + i))
            st = take_entry(b, remote_rank(b, i), spread_lane(b, carrier, begin + i));
    return st;
}

static tutti_status spread(const blocks *b)
{
    tutti_status st;

    if (!spreads(b))
        return TUTTI_OK;
    st = carries(b) ? give_kept(b) : take_kept(b);
    if (st == TUTTI_OK)
        tti_host_next(b->levels->channel);
    return st;
}

/* ---- long blocks ----------------------------------------------------------------------------------- */

static void move_own(const blocks *b)
{
    const size_t bytes = (size_t)b->call->in_counts[b->me] * b->element;

    if (bytes > 0 && b->call->list[b->me] != b->call->ins[b->me])
        memcpy(b->call->list[b->me], b->call->ins[b->me], bytes);
}

/* Elements that go by themselves. */
static int64_t long_ones(const blocks *b, int rank, int64_t count)
{
    return rank == b->me || is_short(b, count) ? 0 : count;
}

/* From rank to rank. Both know how long they are, and whether there are any. */
static tutti_status move_long(const blocks *b)
{
    tti_flight  *flight = &b->levels->flights[LONG];
    bool         any = false;
    tutti_status st;
    int          r;

    for (r = 0; r < b->layout->n_ranks; r++) {
        b->gives[r] = long_ones(b, r, b->call->in_counts[r]);
        b->wants[r] = long_ones(b, r, b->call->list_counts[r]);
        any = any || b->gives[r] > 0 || b->wants[r] > 0;
    }
    if (!any)
        return TUTTI_OK;
    flight->across = *b->call;
    flight->across.in_counts = b->gives;
    flight->across.list_counts = b->wants;
    st = begin(b, LONG, b->levels->whole, tti_plan_blocks_known);
    return st == TUTTI_OK ? end(b, LONG, b->levels->whole) : st;
}

/* ---- */

/* All members of the host have called the same, as far as they have come. */
static tutti_status enter(const blocks *b)
{
    tti_host_channel *channel = b->levels->channel;
    tutti_status      st;

    if (channel == NULL)
        return TUTTI_OK;
    tti_host_wait_in_background(channel, b->call->in_background);
    st = tti_host_enter(channel, b->call, b->note);
    return st == TUTTI_OK ? tti_host_begin(channel, spreads(b) ? 2 : 1) : st;
}

static tutti_status run(const blocks *b)
{
    tutti_status st = enter(b);

    if (st == TUTTI_OK)
        st = stage(b);
    if (st == TUTTI_OK && carries(b))
        st = begin_across(b);
    if (st == TUTTI_OK)
        st = take_here(b);
    if (st == TUTTI_OK && carries(b))
        st = end_across(b);
    if (st == TUTTI_OK)
        st = spread(b);
    if (st != TUTTI_OK)
        return st;
    move_own(b);
    return move_long(b);
}

static tutti_status do_blocks(tti_levels *levels, const tutti_call *call, const tti_call_note *note, int carriers)
{
    tutti_call   timed = *call;
    blocks       b = { .levels = levels, .layout = &levels->layout, .call = &timed, .note = note, .carriers = carriers,
                       .me = levels->whole->rank, .element = tutti_dtype_size(call->dtype),
                       .each = lane_bytes(&levels->layout, carriers),
                       .n_remote = levels->layout.n_ranks - levels->here.n_ranks };
    tutti_status st;

    if (b.each == 0) /* of very many ranks */
        return tti_net_run(&levels->flights[ACROSS].net, levels->whole, tti_plan_all_to_all_direct, call, note);
    b.short_most = (int64_t)((b.each - HEAD) / b.element);
    timed.deadline_ns = tti_call_deadline(call, tti_port_now(levels->whole->port));
    st = make_room(&b);
    if (st == TUTTI_OK)
        st = run(&b);
    if (st != TUTTI_OK)
        return tti_levels_give_up(levels, st);
    if (levels->channel != NULL)
        tti_host_finish(levels->channel);
    return TUTTI_OK;
}

tutti_status tti_blocks_two_level(tti_levels *levels, const tutti_call *call, const tti_call_note *note)
{
    return do_blocks(levels, call, note, levels->layout.least);
}

tutti_status tti_blocks_leaders(tti_levels *levels, const tutti_call *call, const tti_call_note *note)
{
    return do_blocks(levels, call, note, 1);
}

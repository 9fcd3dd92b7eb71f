/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shapes.c - the kinds of calls in two levels.
 *
 * How     kind            before, on each host             across, each carrier    after, on each host
 *         all_reduce      slices are collected             all_reduce of a slice   slices are spread
 *         reduce          the same                         reduce to root's host   there they are spread to the root
 *         broadcast       root's host: all is spread       broadcast of a slice    elsewhere slices are spread
 *         all_gather      the parts of its members spread  all_gather of parts     the parts of others are spread
 *         reduce_scatter  parts of all ranks are collected reduce_scatter of them  each member takes its part
 *         barrier         all have come to the carrier     barrier                 it has come to all
 *         gather, scatter are in rooted.c; all_to_all and its kin, of which only two ranks know a size, in blocks.c.
 *         A slice is one of as many as there are carriers. Parts are carried by the carrier whose place is that of
 *         their owner, around: parts of hosts with as many members as carriers by their owners.
 * True    Contributions are combined inside each host in rank order, then host by host, in the order of their lowest ranks:
 *         one order for a kind, whatever the sizes, carriers and pieces. A contribution is rounded twice at most, once
 *         in each level. AVG divides across, once; PREMUL_SUM scales before, once. */
#include "coll/level/shapes.h"

#include <string.h>
#include "coll/pattern.h"

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void tti_half_among_carriers(const tti_piece *p, tti_half *half, bool collects, tti_length *length, tti_bits *bits)
{
    *half = (tti_half){ .channel = p->flow->levels->channel, .call = p->flow->call, .context = p, .collects = collects,
                        .takes = true, .place = p->flow->levels->place, .n_streams = p->flow->carriers,
                        .length = length, .bits = bits };
}

void tti_half_nothing(const tti_piece *p, tti_half *half)
{
    *half = (tti_half){ .channel = p->flow->levels->channel, .call = p->flow->call, .context = p };
}

/* ---- one buffer, in slices ----------------------------------------------------------------------- */

static int one_part(const tti_flow *f)
{
    (void)f;
    return 1;
}

static tti_slice slice_of(const tti_piece *p, int stream)
{
    return tti_slice_of(p->flight->count, p->flow->element, p->flow->carriers, stream);
}

static int64_t slice_length(const tti_half *half, int stream)
{
    const tti_slice slice = slice_of(tti_piece_of(half), stream);

    return slice.end - slice.begin;
}

static size_t slice_bytes(const tti_piece *p)
{
    const tti_slice slice = slice_of(p, p->flow->levels->place);

    return (size_t)(slice.end - slice.begin) * p->flow->element;
}

/* Elements of the buffer from `at` of the piece on. */
static tti_stretch stretch_at(const tti_piece *p, int64_t at)
{
    return tti_stretch_first(&p->flow->segments, p->flight->first + at, p->flight->count - at);
}

static tti_bit slice_in(const tti_half *half, int stream, int64_t at)
{
    const tti_piece  *p = tti_piece_of(half);
    const tti_stretch s = stretch_at(p, slice_of(p, stream).begin + at);

    return (tti_bit){ (char *)p->flow->segments.all[s.segment].in + (size_t)s.first * p->flow->element, s.count };
}

static tti_bit slice_out(const tti_half *half, int stream, int64_t at)
{
    const tti_piece  *p = tti_piece_of(half);
    const tti_stretch s = stretch_at(p, slice_of(p, stream).begin + at);

    return (tti_bit){ (char *)p->flow->segments.all[s.segment].out + (size_t)s.first * p->flow->element, s.count };
}

static void collect_slices(const tti_piece *p, tti_half *half)
{
    tti_half_among_carriers(p, half, true, slice_length, slice_in);
    half->own = p->flight->scratch;
}

static void spread_slices(const tti_piece *p, tti_half *half)
{
    tti_half_among_carriers(p, half, false, slice_length, slice_out);
    half->own = p->flight->scratch;
}

/* The elements have been scaled, each once. */
static tutti_op op_across(const tutti_call *call)
{
    return call->op.kind == TUTTI_OP_PREMUL_SUM ? TUTTI_SUM : call->op;
}

static void slices_across(const tti_piece *p, tutti_call *across)
{
    const tti_slice slice = slice_of(p, p->flow->levels->place);

    across->op = op_across(p->flow->call);
    across->count = slice.end - slice.begin;
    across->in = across->out = p->flight->scratch;
}

static const tti_shape all_reduce = { one_part, slice_bytes, collect_slices, spread_slices, NULL, slices_across };

/* ---- to and from a root -------------------------------------------------------------------------- */

static bool is_roots_host(const tti_piece *p)
{
    return p->flow->levels->host == p->flow->root_host;
}

static bool is_root(const tti_piece *p)
{
    return p->flow->levels->whole->rank == p->flow->call->root;
}

static void slices_to_root(const tti_piece *p, tti_half *half)
{
    if (!is_roots_host(p)) {
        tti_half_nothing(p, half);
        return;
    }
    spread_slices(p, half);
    half->takes = is_root(p);
}

static const tti_shape reduce = { one_part, slice_bytes, collect_slices, slices_to_root, NULL, slices_across };

static size_t no_scratch(const tti_piece *p)
{
    (void)p;
    return 0;
}

static int64_t whole_length(const tti_half *half, int stream)
{
    (void)stream;
    return tti_piece_of(half)->flight->count;
}

/* The root only reads its buffer. */
static char *buffer_at(const tti_piece *p, int64_t at)
{
    const tutti_call *call = p->flow->call;

    return (is_root(p) ? (char *)call->in : (char *)call->out) + (size_t)(p->flight->first + at) * p->flow->element;
}

static tti_bit whole_bits(const tti_half *half, int stream, int64_t at)
{
    const tti_piece *p = tti_piece_of(half);

    (void)stream;
    return (tti_bit){ buffer_at(p, at), p->flight->count - at };
}

static void root_to_host(const tti_piece *p, tti_half *half)
{
    if (!is_roots_host(p)) {
        tti_half_nothing(p, half);
        return;
    }
    tti_half_among_carriers(p, half, false, whole_length, whole_bits);
    half->first = p->flow->levels->layout.place[p->flow->call->root];
    half->n_streams = 1;
}

static tti_bit slice_in_place(const tti_half *half, int stream, int64_t at)
{
    const tti_piece *p = tti_piece_of(half);
    const tti_slice  slice = slice_of(p, stream);

    return (tti_bit){ buffer_at(p, slice.begin + at), slice.end - slice.begin - at };
}

static void slices_to_others(const tti_piece *p, tti_half *half)
{
    if (is_roots_host(p))
        tti_half_nothing(p, half);
    else
        tti_half_among_carriers(p, half, false, slice_length, slice_in_place);
}

static void slices_from_root(const tti_piece *p, tutti_call *across)
{
    const tti_slice slice = slice_of(p, p->flow->levels->place);

    across->count = slice.end - slice.begin;
    if (is_roots_host(p))
        across->in = buffer_at(p, slice.begin);
    else
        across->out = buffer_at(p, slice.begin);
}

static const tti_shape broadcast = { one_part, no_scratch, root_to_host, slices_to_others, NULL, slices_from_root };

/* ---- a part for each member ---------------------------------------------------------------------- */

/* Of which hosts a stream has the parts. */
typedef enum whose { OF_ALL, OF_THIS_HOST, OF_OTHER_HOSTS } whose;

static int all_parts(const tti_flow *f)
{
    return f->levels->layout.n_ranks;
}

/* Elements of rank's part in this piece. */
static int64_t part_length(const tti_piece *p, int rank)
{
    const int64_t left = tti_part_count(p->flow->call, rank) - p->flight->first;

    return left <= 0 ? 0 : smaller(left, p->flight->count);
}

static bool has(const tti_piece *p, whose of, int host)
{
    return of == OF_ALL || (of == OF_THIS_HOST) == (host == p->flow->levels->host);
}

/* A part in a stream. */
typedef struct place_in {
    int     rank;
    int64_t at;   /* element of the part in this piece */
    int64_t left; /* from there on */
} place_in;

/* Go through the parts of a host that the stream has, until `at` elements are behind: those that are still to go. */
static int64_t go_through(const tti_piece *p, int host, int stream, int64_t at, place_in *out)
{
    const tti_hosts *layout = &p->flow->levels->layout;
    int               place;

    for (place = stream; place < tti_hosts_local(layout, host); place += p->flow->carriers) {
        const int     rank = tti_hosts_rank(layout, host, place);
        const int64_t length = part_length(p, rank);

        if (at < length) {
            *out = (place_in){ rank, at, length - at };
            return -1;
        }
        at -= length;
    }
    return at;
}

/* Element `at` of a stream, which has one. */
static place_in find(const tti_piece *p, whose of, int stream, int64_t at)
{
    place_in found = { .rank = -1 };
    int      host;

    for (host = 0; host < p->flow->levels->layout.n_hosts && at >= 0; host++)
        if (has(p, of, host))
            at = go_through(p, host, stream, at, &found);
    return found;
}

/* Elements of a host's parts that a stream has. */
static int64_t length_of_host(const tti_piece *p, int host, int stream)
{
    const tti_hosts *layout = &p->flow->levels->layout;
    int64_t           length = 0;
    int               place;

    for (place = stream; place < tti_hosts_local(layout, host); place += p->flow->carriers)
        length += part_length(p, tti_hosts_rank(layout, host, place));
    return length;
}

static int64_t length_of(const tti_piece *p, whose of, int stream)
{
    int64_t length = 0;
    int     host;

    for (host = 0; host < p->flow->levels->layout.n_hosts; host++)
        length += has(p, of, host) ? length_of_host(p, host, stream) : 0;
    return length;
}

static size_t parts_bytes(const tti_piece *p)
{
    return (size_t)length_of(p, OF_ALL, p->flow->levels->place) * p->flow->element;
}

/* Where a part's elements lie in the list. */
static tti_bit entry_bit(const tti_piece *p, place_in in)
{
    const tti_flow   *f = p->flow;
    const tti_stretch s = tti_stretch_first(&f->segments, p->flight->first + in.at, in.left);

    return (tti_bit){ tti_entry_at(f->call, f->levels->layout.n_ranks, in.rank, s), s.count };
}

/* Parts of one size are what plans with fewer messages can take along, and what the choice is made for. Lists that a program
 * gives stay lists: ranks that were given others must find out. */
static void make_even(tutti_call *across)
{
    int i;

    for (i = 1; i < across->n_parts; i++)
        if (across->list_counts[i] != across->list_counts[0])
            return;
    across->count = across->list_counts[0];
    across->list_counts = NULL;
    across->n_parts = 0;
}

/* How much a carrier has of each host: of hosts with equally many members, of which each has as much, the same. */
static void counts_across(const tti_piece *p, tutti_call *across)
{
    const tti_flow *f = p->flow;
    int             host;

    across->count = 0;
    across->n_parts = f->levels->layout.n_hosts;
    across->list = p->flight->list;
    across->list_counts = p->flight->counts;
    for (host = 0; host < across->n_parts; host++) {
        p->flight->counts[host] = length_of_host(p, host, f->levels->place);
        across->count += p->flight->counts[host];
    }
    if (f->call->n_parts == 0)
        make_even(across);
}

/* The hosts' lanes of the scratch memory: that of first_host, then those of the others in their order. */
static void make_lanes(const tti_piece *p, int first_host)
{
    const tti_flow *f = p->flow;
    char           *lane = p->flight->scratch;
    int             i;

    for (i = 0; i < f->levels->layout.n_hosts; i++) {
        const int host = i == 0 ? first_host : i <= first_host ? i - 1 : i;

        p->flight->list[host] = lane;
        lane += (size_t)p->flight->counts[host] * f->element;
    }
}

/* ---- reduce_scatter ---- */

static int64_t length_of_all(const tti_half *half, int stream)
{
    return length_of(tti_piece_of(half), OF_ALL, stream);
}

static tti_bit bits_of_all(const tti_half *half, int stream, int64_t at)
{
    return entry_bit(tti_piece_of(half), find(tti_piece_of(half), OF_ALL, stream, at));
}

static void collect_parts(const tti_piece *p, tti_half *half)
{
    tti_half_among_carriers(p, half, true, length_of_all, bits_of_all);
    half->own = p->flight->scratch;
}

static int64_t length_here(const tti_half *half, int stream)
{
    return length_of(tti_piece_of(half), OF_THIS_HOST, stream);
}

/* Of the parts of this host's members this rank wants its own. */
static tti_bit own_part(const tti_half *half, int stream, int64_t at)
{
    const tti_piece *p = tti_piece_of(half);
    const place_in   in = find(p, OF_THIS_HOST, stream, at);
    const tti_stretch s = tti_stretch_first(&p->flow->segments, p->flight->first + in.at, in.left);

    if (in.rank != p->flow->levels->whole->rank)
        return (tti_bit){ NULL, in.left };
    return (tti_bit){ (char *)p->flow->segments.all[s.segment].out + (size_t)s.first * p->flow->element, s.count };
}

static void spread_own_parts(const tti_piece *p, tti_half *half)
{
    const tti_levels *levels = p->flow->levels;

    tti_half_among_carriers(p, half, false, length_here, own_part);
    half->own = levels->place < p->flow->carriers ? p->flight->list[levels->host] : NULL;
    if (levels->here.n_ranks <= p->flow->carriers)
        half->channel = NULL; /* each has its own already, and nobody else wants it */
}

static void parts_reduced_across(const tti_piece *p, tutti_call *across)
{
    counts_across(p, across);
    make_lanes(p, 0);
    across->op = op_across(p->flow->call);
    across->out = p->flight->list[p->flow->levels->host];
}

static const tti_shape reduce_scatter = { all_parts, parts_bytes, collect_parts, spread_own_parts, NULL,
                                          parts_reduced_across };

/* ---- all_gather ---- */

static int64_t length_of_member(const tti_half *half, int stream)
{
    const tti_levels *levels = tti_piece_of(half)->flow->levels;

    return part_length(tti_piece_of(half), tti_hosts_rank(&levels->layout, levels->host, stream));
}

static tti_bit bits_of_member(const tti_half *half, int stream, int64_t at)
{
    const tti_piece  *p = tti_piece_of(half);
    const tti_levels *levels = p->flow->levels;

    return entry_bit(p, (place_in){ tti_hosts_rank(&levels->layout, levels->host, stream), at,
                                    length_of_member(half, stream) - at });
}

static void keep_own_part(const tti_piece *p)
{
    const tti_flow *f = p->flow;
    const int       rank = f->levels->whole->rank;

    TTI_EACH_STRETCH (s, &f->segments, p->flight->first, part_length(p, rank)) {
        const char *from = (const char *)f->segments.all[s.segment].in + (size_t)s.first * f->element;
        char       *to = tti_entry_at(f->call, f->levels->layout.n_ranks, rank, s);

        if (to != from)
            memcpy(to, from, (size_t)s.count * f->element);
    }
}

static void spread_members(const tti_piece *p, tti_half *half)
{
    tti_half_among_carriers(p, half, false, length_of_member, bits_of_member);
    half->n_streams = p->flow->levels->here.n_ranks;
}

static int64_t length_of_others(const tti_half *half, int stream)
{
    return length_of(tti_piece_of(half), OF_OTHER_HOSTS, stream);
}

static tti_bit bits_of_others(const tti_half *half, int stream, int64_t at)
{
    return entry_bit(tti_piece_of(half), find(tti_piece_of(half), OF_OTHER_HOSTS, stream, at));
}

/* All members carry their own parts: those lie in one place each, and are sent from there and received to there. */
static bool lies_in_list(const tti_flow *f)
{
    const tti_hosts *layout = &f->levels->layout;

    return layout->least == layout->most && layout->most == f->carriers && f->call->n_segments == 0;
}

static size_t gathered_bytes(const tti_piece *p)
{
    return lies_in_list(p->flow) ? 0 : parts_bytes(p);
}

static void spread_others(const tti_piece *p, tti_half *half)
{
    const tti_levels *levels = p->flow->levels;

    tti_half_among_carriers(p, half, false, length_of_others, bits_of_others);
    if (lies_in_list(p->flow))
        return;
    half->own = p->flight->scratch;
    if (levels->place < p->flow->carriers)
        half->own += (size_t)length_of_host(p, levels->host, levels->place) * p->flow->element;
}

/* The list of the counterparts' entries. */
static void entries_across(const tti_piece *p)
{
    const tti_flow *f = p->flow;
    int             host;

    for (host = 0; host < f->levels->layout.n_hosts; host++) {
        const int rank = tti_hosts_rank(&f->levels->layout, host, f->levels->place);

        p->flight->list[host] = (char *)f->call->list[rank] + (size_t)p->flight->first * f->element;
    }
}

/* The own host's lane comes first, so that those of the others lie together. */
static void parts_gathered_across(const tti_piece *p, tutti_call *across)
{
    const tti_levels *levels = p->flow->levels;
    const int64_t     length = length_of_host(p, levels->host, levels->place);
    char             *lane = p->flight->scratch;
    int64_t           at;
    tti_bit           bit;

    counts_across(p, across);
    if (lies_in_list(p->flow)) {
        entries_across(p);
        across->in = p->flight->list[levels->host];
        return;
    }
    make_lanes(p, levels->host);
    for (at = 0; at < length; at += bit.count) {
        bit = entry_bit(p, find(p, OF_THIS_HOST, levels->place, at));
        memcpy(lane + (size_t)at * p->flow->element, bit.at, (size_t)bit.count * p->flow->element);
    }
    across->in = lane;
}

static const tti_shape all_gather = { all_parts, gathered_bytes, spread_members, spread_others, keep_own_part,
                                      parts_gathered_across };

/* ---- barrier ------------------------------------------------------------------------------------- */

static int64_t no_length(const tti_half *half, int stream)
{
    (void)half;
    (void)stream;
    return 0;
}

static void come(const tti_piece *p, tti_half *half)
{
    tti_half_among_carriers(p, half, true, no_length, NULL);
    half->meets = true;
}

static void go(const tti_piece *p, tti_half *half)
{
    tti_half_among_carriers(p, half, false, no_length, NULL);
    half->meets = true;
}

static void barrier_across(const tti_piece *p, tutti_call *across)
{
    (void)p;
    (void)across;
}

static const tti_shape barrier = { one_part, no_scratch, come, go, NULL, barrier_across };

/* ---- */

const tti_shape *tti_shape_of(tutti_call_kind kind)
{
    switch (kind) {
    case TUTTI_CALL_ALL_REDUCE: return &all_reduce;
    case TUTTI_CALL_REDUCE: return &reduce;
    case TUTTI_CALL_BROADCAST: return &broadcast;
    case TUTTI_CALL_REDUCE_SCATTER: return &reduce_scatter;
    case TUTTI_CALL_ALL_GATHER: return &all_gather;
    case TUTTI_CALL_GATHER: return &tti_gather_shape;
    case TUTTI_CALL_SCATTER: return &tti_scatter_shape;
    case TUTTI_CALL_BARRIER: return &barrier;
    default: return NULL;
    }
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rooted.c - gather and scatter in two levels: a part of each member, to the root or from it.
 *
 * Why     Each byte has one taker, so that a host sends as much as it would anyway; but not as many messages: one for each
 *         carrier of a host instead of one for each member.
 * How     kind     root's host                        other hosts                          across
 *         gather   members give the root their parts  members give carriers their parts    to root's host
 *                  carriers give it what came
 *         scatter  the root gives all its host sees   carriers give members what came      from root's host
 *         A carrier has the parts of the members at its place, at its place + K, ... of each host, one behind the other.
 *         Hosts with no more members than carriers have nothing to do among themselves: each carries its own part, from and
 *         to where it lies.
 * True    All parts have one length, so that part i of a stream begins at i times that. What a carrier sends, and its
 *         counterpart expects, is arithmetic of the layout. */
#include "coll/level/shapes.h"

#include <string.h>

static const tti_hosts *layout_of(const tti_piece *p)
{
    return &p->flow->levels->layout;
}

static bool is_roots_host(const tti_piece *p)
{
    return p->flow->levels->host == p->flow->root_host;
}

static bool is_root(const tti_piece *p)
{
    return p->flow->levels->whole->rank == p->flow->call->root;
}

/* Parts of a host's members that a carrier has. */
static int carried(const tti_piece *p, int host, int carrier)
{
    return (tti_hosts_local(layout_of(p), host) - carrier + p->flow->carriers - 1) / p->flow->carriers;
}

static bool each_carries_its_own(const tti_piece *p)
{
    return p->flow->levels->here.n_ranks <= p->flow->carriers;
}

static bool carries(const tti_piece *p)
{
    return p->flow->levels->place < p->flow->carriers;
}

static int64_t parts_of_others(const tti_piece *p, int carrier)
{
    int64_t n = 0;
    int     host;

    for (host = 0; host < layout_of(p)->n_hosts; host++)
        n += host != p->flow->root_host ? carried(p, host, carrier) : 0;
    return n;
}

/* Parts that lie in a carrier's scratch memory. */
static int64_t parts_kept(const tti_piece *p)
{
    if (is_roots_host(p))
        return parts_of_others(p, p->flow->levels->place);
    return each_carries_its_own(p) ? 0 : carried(p, p->flow->levels->host, p->flow->levels->place);
}

static size_t bytes_of(const tti_piece *p, int64_t elements)
{
    return (size_t)elements * p->flow->element;
}

static size_t kept_bytes(const tti_piece *p)
{
    return bytes_of(p, parts_kept(p) * p->flight->count);
}

/* Element `at` of the i-th part in scratch memory, of those that begin at lane. */
static char *kept_at(const tti_piece *p, char *lane, int64_t i, int64_t at)
{
    return lane + bytes_of(p, i * p->flight->count + at);
}

/* Element `at` of the piece, in a buffer that has one part. */
static char *part_at(const tti_piece *p, const void *part, int64_t at)
{
    return (char *)(uintptr_t)part + bytes_of(p, p->flight->first + at);
}

static char *entry_at(const tti_piece *p, int rank, int64_t at)
{
    return part_at(p, p->flow->call->list[rank], at);
}

static int all_parts(const tti_flow *f)
{
    return f->levels->layout.n_ranks;
}

/* ---- gather -------------------------------------------------------------------------------------- */

static int64_t part_length(const tti_half *half, int stream)
{
    (void)stream;
    return tti_piece_of(half)->flight->count;
}

/* The own part lies where the caller has it; a carrier keeps those of others behind the place of its own. */
static tti_bit to_carrier(const tti_half *half, int stream, int64_t at)
{
    const tti_piece *p = tti_piece_of(half);
    const int        carriers = p->flow->carriers;
    const int64_t    left = p->flight->count - at;

    if (stream == half->place)
        return (tti_bit){ part_at(p, p->flow->call->in, at), left };
    if (!carries(p) || stream % carriers != half->place)
        return (tti_bit){ NULL, left };
    return (tti_bit){ kept_at(p, p->flight->scratch, stream / carriers, at), left };
}

/* The root takes all; the others give. */
static tti_bit to_root(const tti_half *half, int stream, int64_t at)
{
    const tti_piece *p = tti_piece_of(half);
    const int64_t    left = p->flight->count - at;

    if (stream == half->place)
        return (tti_bit){ part_at(p, p->flow->call->in, at), left };
    return (tti_bit){ entry_at(p, tti_hosts_rank(layout_of(p), p->flow->levels->host, stream), at), left };
}

static void members_give(const tti_piece *p, tti_half *half)
{
    if (!is_roots_host(p) && each_carries_its_own(p)) {
        tti_half_nothing(p, half);
        return;
    }
    tti_half_among_carriers(p, half, false, part_length, is_roots_host(p) ? to_root : to_carrier);
    half->n_streams = p->flow->levels->here.n_ranks;
    half->takes = is_roots_host(p) ? is_root(p) : carries(p);
}

static void keep_own_entry(const tti_piece *p)
{
    const tutti_call *call = p->flow->call;
    const char       *from;
    char             *to;

    if (!is_root(p))
        return;
    from = part_at(p, call->in, 0);
    to = entry_at(p, call->root, 0);
    if (to != from)
        memcpy(to, from, bytes_of(p, p->flight->count));
}

/* What each host's carrier at this place sends to root's host, or gets from there; and where it lies there. */
static void counts_across(const tti_piece *p, tutti_call *across)
{
    const int n_hosts = layout_of(p)->n_hosts, place = p->flow->levels->place;
    int       host;

    across->count = 0;
    across->n_parts = n_hosts;
    across->list_counts = p->flight->counts;
    across->list = p->flight->list;
    for (host = 0; host < n_hosts; host++) {
        p->flight->counts[host] = host == p->flow->root_host ? 0 : carried(p, host, place) * p->flight->count;
        across->count += p->flight->counts[host];
    }
}

/* The hosts' lanes in a carrier's scratch memory, on root's host. */
static void make_lanes(const tti_piece *p)
{
    const int place = p->flow->levels->place;
    char     *lane = p->flight->scratch;
    int       host;

    for (host = 0; host < layout_of(p)->n_hosts; host++) {
        p->flight->list[host] = lane;
        if (host != p->flow->root_host)
            lane = kept_at(p, lane, carried(p, host, place), 0);
    }
}

static void parts_to_root(const tti_piece *p, tutti_call *across)
{
    char *own = part_at(p, p->flow->call->in, 0);

    counts_across(p, across);
    if (is_roots_host(p)) {
        make_lanes(p);
    } else if (each_carries_its_own(p)) {
        across->in = own;
    } else {
        memcpy(p->flight->scratch, own, bytes_of(p, p->flight->count));
        across->in = p->flight->scratch;
    }
}

static int64_t length_of_others(const tti_half *half, int stream)
{
    const tti_piece *p = tti_piece_of(half);

    return parts_of_others(p, stream) * p->flight->count;
}

/* Whose part is the i-th of those of other hosts than root's that a carrier has. */
static int owner_of(const tti_piece *p, int carrier, int64_t i)
{
    int host = 0;

    for (;; host++) {
        const int n = host != p->flow->root_host ? carried(p, host, carrier) : 0;

        if (i < n)
            return tti_hosts_rank(layout_of(p), host, carrier + (int)i * p->flow->carriers);
        i -= n;
    }
}

static tti_bit others_to_root(const tti_half *half, int stream, int64_t at)
{
    const tti_piece *p = tti_piece_of(half);
    const int64_t    count = p->flight->count, in_part = at % count;

    return (tti_bit){ entry_at(p, owner_of(p, stream, at / count), in_part), count - in_part };
}

static void carriers_give_root(const tti_piece *p, tti_half *half)
{
    if (!is_roots_host(p)) {
        tti_half_nothing(p, half);
        return;
    }
    tti_half_among_carriers(p, half, false, length_of_others, others_to_root);
    half->own = p->flight->scratch;
    half->takes = is_root(p);
}

const tti_shape tti_gather_shape = { all_parts, kept_bytes, members_give, carriers_give_root, keep_own_entry, parts_to_root };

/* ---- scatter ------------------------------------------------------------------------------------- */

/* The root's one stream: the parts of all but the root, host by host. */
static int64_t length_of_root(const tti_half *half, int stream)
{
    const tti_piece *p = tti_piece_of(half);

    (void)stream;
    return (layout_of(p)->n_ranks - 1) * p->flight->count;
}

static int member_but_root(const tti_piece *p, int64_t i)
{
    const tti_hosts *layout = layout_of(p);
    const int        root = layout->begins[p->flow->root_host] + layout->place[p->flow->call->root];

    return layout->members[i < root ? i : i + 1];
}

/* Where this rank, which is not the root, takes element `at` of rank's part to; NULL: nowhere. */
static char *taken_to(const tti_piece *p, int rank, int64_t at)
{
    const tti_hosts *layout = layout_of(p);
    const int        host = layout->host[rank], place = layout->place[rank], carriers = p->flow->carriers;

    if (rank == p->flow->levels->whole->rank)
        return part_at(p, p->flow->call->out, at);
    if (host == p->flow->root_host || !carries(p) || place % carriers != p->flow->levels->place)
        return NULL;
    return kept_at(p, p->flight->list[host], place / carriers, at);
}

static tti_bit from_root(const tti_half *half, int stream, int64_t at)
{
    const tti_piece *p = tti_piece_of(half);
    const int64_t    count = p->flight->count, in_part = at % count;
    const int        rank = member_but_root(p, at / count);

    (void)stream;
    return (tti_bit){ is_root(p) ? entry_at(p, rank, in_part) : taken_to(p, rank, in_part), count - in_part };
}

static void root_gives(const tti_piece *p, tti_half *half)
{
    if (!is_roots_host(p)) {
        tti_half_nothing(p, half);
        return;
    }
    tti_half_among_carriers(p, half, false, length_of_root, from_root);
    half->first = layout_of(p)->place[p->flow->call->root];
    half->n_streams = 1;
}

static void take_own_entry(const tti_piece *p)
{
    const tutti_call *call = p->flow->call;
    const char       *from;
    char             *to;

    if (is_roots_host(p) && carries(p))
        make_lanes(p);
    if (!is_root(p))
        return;
    from = entry_at(p, call->root, 0);
    to = part_at(p, call->out, 0);
    if (to != from)
        memcpy(to, from, bytes_of(p, p->flight->count));
}

/* A root that carries has what it sends in its list only. */
static void pack_entries(const tti_piece *p)
{
    const int64_t n = parts_kept(p);
    int64_t       i;

    for (i = 0; i < n; i++)
        memcpy(kept_at(p, p->flight->scratch, i, 0), entry_at(p, owner_of(p, p->flow->levels->place, i), 0),
               bytes_of(p, p->flight->count));
}

static void parts_from_root(const tti_piece *p, tutti_call *across)
{
    counts_across(p, across);
    if (is_root(p))
        pack_entries(p);
    if (!is_roots_host(p))
        across->out = each_carries_its_own(p) ? part_at(p, p->flow->call->out, 0) : p->flight->scratch;
}

static int64_t length_of_carrier(const tti_half *half, int stream)
{
    const tti_piece *p = tti_piece_of(half);

    return carried(p, p->flow->levels->host, stream) * p->flight->count;
}

static tti_bit own_of_carrier(const tti_half *half, int stream, int64_t at)
{
    const tti_piece *p = tti_piece_of(half);
    const int64_t    count = p->flight->count, in_part = at % count;
    const bool       own = stream + at / count * p->flow->carriers == half->place;

    return (tti_bit){ own ? part_at(p, p->flow->call->out, in_part) : NULL, count - in_part };
}

static void carriers_give_members(const tti_piece *p, tti_half *half)
{
    if (is_roots_host(p) || each_carries_its_own(p)) {
        tti_half_nothing(p, half);
        return;
    }
    tti_half_among_carriers(p, half, false, length_of_carrier, own_of_carrier);
    half->own = p->flight->scratch;
}

const tti_shape tti_scatter_shape = { all_parts, kept_bytes, root_gives, carriers_give_members, take_own_entry,
                                      parts_from_root };

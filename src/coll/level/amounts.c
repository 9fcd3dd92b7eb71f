/* SPDX-License-Identifier: BSD-3-Clause
 *
 * amounts.c - what calls in two levels do, for the cost model. "All" ranks are those of a host here: where one speaks for
 * the others, it has all of the host's messages. */
#include <math.h>
#include <stdbool.h>
#include "coll/host/channel.h"
#include "coll/level/level.h"
#include "coll/pattern.h"

tti_amounts tti_amounts_level_barrier(const tti_level_figures *levels, double bytes)
{
    const double steps = tti_doubling_steps(levels->hosts);

    (void)bytes;
    return (tti_amounts){ .meets = 2, .messages = steps, .posts = 2 * steps, .posts_all = 2 * steps };
}

tti_amounts tti_amounts_leaders(const tti_level_figures *levels, double bytes)
{
    const double others = levels->hosts - 1, local = levels->most;

    return (tti_amounts){ .meets = 2, .copied = 2 * bytes, .fetched = bytes, .alone_fetched = (local - 1) * bytes,
                          .alone_combined = local * bytes, .messages = 1, .posts = 2 * others,
                          .posts_all = 2 * others, .sent = others * bytes };
}

/* Both halves in a host: each stages all but its slice, combines its slice of all, and copies the slices of others. */
static tti_amounts in_slices(const tti_level_figures *levels, double bytes)
{
    const double slice = bytes / levels->carriers, local = levels->most;

    return (tti_amounts){ .meets = 2, .hears = levels->carriers - 1, .copied = bytes + slice,
                          .fetched = (local - 1) * slice + bytes, .combined = local * slice };
}

tti_amounts tti_amounts_level_all_reduce(const tti_level_figures *levels, double bytes)
{
    const double hosts = levels->hosts;
    tti_amounts  a = in_slices(levels, bytes);

    /* Two hosts swap; more combine slices of slices, and hand them round. */
    a.messages = hosts == 2 ? 1 : 2;
    a.posts = 2 * a.messages * (hosts - 1);
    a.sent = hosts == 2 ? bytes : 2 * bytes * (hosts - 1) / hosts;
    return a;
}

/* Bytes of the first of the pieces that follow each other. */
static double first_piece(double bytes)
{
    const double piece = (double)tti_level_piece((int64_t)bytes, 1, 1);

    return piece < bytes ? piece : bytes;
}

/* The first piece takes the steps of a tree; behind it pieces come as fast as the link of root's host lets them, which all bytes pass
 * once. */
tti_amounts tti_amounts_level_rooted(const tti_level_figures *levels, double bytes)
{
    const double hosts = levels->hosts;
    tti_amounts  a = in_slices(levels, bytes);

    a.messages = tti_doubling_steps(levels->hosts);
    a.posts = 2 * (hosts - 1);
    a.sent = bytes + first_piece(bytes) * (a.messages - 1);
    return a;
}

/* Each part is staged by its owner and copied by all others here; those of other hosts once more, by their carriers. */
tti_amounts tti_amounts_level_all_gather(const tti_level_figures *levels, double bytes)
{
    const double others = levels->hosts - 1, local = levels->most, shares = local / levels->carriers;

    return (tti_amounts){ .meets = 2, .hears = levels->carriers - 1, .copied = (1 + shares * (1 + others)) * bytes,
                          .fetched = ((1 + others) * local - 1) * bytes, .messages = 1, .posts = 2 * others,
                          .sent = others * local * bytes };
}

/* Each stages its contributions to the parts of all, and the carriers combine them. */
tti_amounts tti_amounts_level_reduce_scatter(const tti_level_figures *levels, double bytes)
{
    const double others = levels->hosts - 1, local = levels->most;
    tti_amounts  a = in_slices(levels, bytes * local * levels->hosts);

    a.fetched -= bytes * local * levels->hosts; /* of the results each takes its own only */
    a.messages = 1;
    a.posts = 2 * others;
    a.sent = others * local * bytes;
    return a;
}

/* ---- to and from a root -------------------------------------------------------------------------- */

/* Messages of all hosts, as many as fall to one: to root's host, or from it, from each carrier of each other. */
static double rooted_posts(const tti_level_figures *levels, int carriers)
{
    return 2.0 * carriers * (levels->hosts - 1) / levels->hosts;
}

/* Parts that a carrier has of one host. */
static double parts_carried(const tti_level_figures *levels, int carriers)
{
    return (double)levels->most / carriers;
}

/* On another host a carrier copies what it carries, on root's host it stages what came, and the root copies everything. Who
 * carries its own part only has it where it is sent from. Nothing goes across before all members of a host have come, and the
 * root needs all of its own; of a scatter one waits for the other once. */
static tti_amounts gathered(const tti_level_figures *levels, double bytes, int carriers)
{
    const double others = levels->hosts - 1, local = levels->most, parts = parts_carried(levels, carriers);

    return (tti_amounts){ .meets = 2, .yields = 2, .copied = (1 + others * parts) * bytes, .fetched = (parts - 1) * bytes,
                          .alone_fetched = (local * levels->hosts - 1) * bytes, .messages = 1, .posts = others,
                          .posts_all = rooted_posts(levels, carriers), .sent = others * local * bytes, .rooted = 1 };
}

tti_amounts tti_amounts_level_gather(const tti_level_figures *levels, double bytes)
{
    return gathered(levels, bytes, levels->carriers);
}

tti_amounts tti_amounts_leaders_gather(const tti_level_figures *levels, double bytes)
{
    return gathered(levels, bytes, 1);
}

/* The root stages all parts, the carriers beside it copy those that they carry; on other hosts they stage them for their
 * members. */
static tti_amounts scattered(const tti_level_figures *levels, double bytes, int carriers)
{
    const double others = levels->hosts - 1, local = levels->most, parts = parts_carried(levels, carriers);

    return (tti_amounts){ .meets = 2, .yields = 1, .copied = local * levels->hosts * bytes + (parts - 1) * bytes,
                          .fetched = (1 + others * parts) * bytes, .messages = 1, .posts = others,
                          .posts_all = rooted_posts(levels, carriers), .sent = others * local * bytes, .rooted = 1 };
}

tti_amounts tti_amounts_level_scatter(const tti_level_figures *levels, double bytes)
{
    return scattered(levels, bytes, levels->carriers);
}

tti_amounts tti_amounts_leaders_scatter(const tti_level_figures *levels, double bytes)
{
    return scattered(levels, bytes, 1);
}

/* ---- blocks -------------------------------------------------------------------------------------- */

enum { BLOCK_HEAD = 16 }; /* blocks.c */

double tti_level_short(const tti_level_figures *levels, int carriers)
{
    const double local = levels->most, ranks = local * levels->hosts;
    const double staged = (ceil(local / carriers) - 1) * (ranks - local), lanes = staged > ranks ? staged : ranks;
    const double lane = floor(TTI_HOST_CHUNK / lanes / 64) * 64 - BLOCK_HEAD;

    return lane < TTI_LEVEL_SHORT_MOST ? lane : TTI_LEVEL_SHORT_MOST;
}

/* Entries of all pairs of hosts, staged, packed, and staged again by a carrier that has others to give them to; then long
 * blocks, as directly: those that stay on the host are no messages to another. */
static tti_amounts dealt(const tti_level_figures *levels, double bytes, int carriers)
{
    const double others = levels->hosts - 1, local = levels->most, ranks = local * levels->hosts;
    const double fits = tti_level_short(levels, carriers);
    const bool   is_short = bytes <= fits, hands_on = carriers < levels->most;
    const double entry = BLOCK_HEAD + (is_short ? bytes : 0), through = others * local * local / carriers * entry;
    tti_amounts  a = { .meets = hands_on ? 2 : 1, .copied = ranks * entry + through + (hands_on ? through : 0),
                       .fetched = through + ranks * entry, .messages = 1, .posts = 2 * others,
                       .posts_all = 2 * others * carriers, .sent = others * local * local * entry };

    if (fits < 0)
        return tti_amounts_net_blocks(ranks, bytes);
    if (is_short)
        return a;
    a.messages += 1;
    a.posts += 2 * (ranks - 1);
    a.posts_all += 2 * (ranks - 1) * local;
    a.sent += others * local * local * bytes;
    return a;
}

tti_amounts tti_amounts_level_blocks(const tti_level_figures *levels, double bytes)
{
    return dealt(levels, bytes, levels->least);
}

tti_amounts tti_amounts_leaders_blocks(const tti_level_figures *levels, double bytes)
{
    return dealt(levels, bytes, 1);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * amounts.c - what calls in two levels do, for the cost model. "All" ranks are those of a host here: where one speaks for
 * the others, it has all of the host's messages. */
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

tti_amounts tti_amounts_level_rooted(const tti_level_figures *levels, double bytes)
{
    const double hosts = levels->hosts;
    tti_amounts  a = in_slices(levels, bytes);

    a.messages = tti_doubling_steps(levels->hosts);
    a.posts = 2 * (hosts - 1);
    a.sent = bytes * a.messages;
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

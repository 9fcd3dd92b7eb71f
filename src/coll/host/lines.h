/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/host/lines.h - small calls in one phase: what a member gives and that it is there, in one cache line.
 *
 * Every member has two places for what it gives, which the calls of the channel take by turns. A place is
 * a line whose last word is the call's control word, stored last; what does not fit beside it stands before it.
 *
 *      block, TTI_LINES_BYTES          line
 *     |            ... payload > 56 | payload <= 56 | word |
 *
 * What may be written when, and why that is enough, stands in lines.c. */
#ifndef TTI_COLL_HOST_LINES_H
#define TTI_COLL_HOST_LINES_H

#include "coll/host/wait.h"

/** This call's place of a member. */
static inline tti_host_place *tti_lines_place(const tti_host_channel *channel, int rank)
{
    return &channel->members[rank].places[channel->place];
}

/** Where rank's payload of bytes, at most TTI_LINES_BYTES, begins in this call: aligned to 8, and to a line
 * where it does not fit in one. */
static inline char *tti_lines_at(const tti_host_channel *channel, int rank, size_t bytes)
{
    tti_host_place *place = tti_lines_place(channel, rank);

    if (bytes <= sizeof place->line)
        return place->line;
    return place->line - ((bytes + 63) & ~(size_t)63);
}

/** Ask for lines that others have read, all at once before they are written one by one. */
void tti_lines_ask(const char *at, size_t bytes);
/** Ask for the lines of this rank's payload,; where it begins. */
char *tti_lines_to_give(const tti_host_channel *channel, size_t bytes);
/** What this rank gives is in its place. */
void tti_lines_post(tti_host_channel *channel);
/** Until what rank gives is in its place; it has called the same. */
tutti_status tti_lines_await(tti_host_channel *channel, int rank);
/** Until that of all is. */
tutti_status tti_lines_await_all(tti_host_channel *channel);

#endif

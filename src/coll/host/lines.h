/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/host/lines.h - small calls in one phase: what a member gives and that it is there, in one cache line.
 *
 * Every member has places for what it gives, which the calls of the channel take by turns. A place is a line whose last
 * word is the call's, stored last, and a packet for what does not fit beside that word; what does not fit there stands in
 * a block, of which there are two.
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
    if (bytes <= TTI_LINES_SHORT)
        return tti_lines_place(channel, rank)->line;
    if (bytes <= TTI_LINES_MIDDLE)
        return channel->members[rank].packets[channel->place].bytes;
    return channel->members[rank].blocks[channel->turn].bytes;
}

/** Ask for lines that others have read, all at once before they are written one by one. */
void tti_lines_ask(const char *at, size_t bytes);
/** Where this rank's payload begins; its lines are asked for. Who gives more than a packet has catches up; TTI_NOT_YET
 * instead of waiting for that, in haste. */
tutti_status tti_lines_to_give(tti_host_channel *channel, size_t bytes, char **at_out);
/** What this rank gives is in its place. */
void tti_lines_post(tti_host_channel *channel);
/** Whether this rank has given all that it gives: a call that was begun does not give again. */
static inline bool tti_lines_given(const tti_host_channel *channel)
{
    return channel->given;
}
/** Until what rank gives is in its place; it has called the same. TTI_NOT_YET instead of waiting, in haste. */
tutti_status tti_lines_await(tti_host_channel *channel, int rank);
/** Until that of all is. */
tutti_status tti_lines_await_all(tti_host_channel *channel);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/net/blocks.h - the blocks that plans are made of. */
#ifndef TTI_COLL_NET_BLOCKS_H
#define TTI_COLL_NET_BLOCKS_H

#include "coll/net/plan.h"
#include "coll/net/turns.h"
#include "coll/pattern.h"

/** The elements [begin, end) of a buffer. */
static inline tti_block tti_range(tti_place place, const tti_plan_input *p, int64_t begin, int64_t end)
{
    return (tti_block){ .place = place, .offset = begin * (int64_t)p->element,
                        .bytes = (end - begin) * (int64_t)p->element };
}

static inline tti_block tti_whole(tti_place place, const tti_plan_input *p)
{
    return tti_range(place, p, 0, p->count);
}

/** n slices of a buffer of n_parts, from first on. */
static inline tti_block tti_slices(tti_place place, const tti_plan_input *p, int n_parts, int first, int n)
{
    return tti_range(place, p, tti_slice_of(p->count, p->element, n_parts, first).begin,
                     tti_slice_of(p->count, p->element, n_parts, first + n - 1).end);
}

/** Rank's part of a list of which all ranks know all sizes. */
static inline tti_block tti_part(int rank, const tti_plan_input *p)
{
    const int64_t count = p->list_counts != NULL ? p->list_counts[rank] : p->count;

    return (tti_block){ .place = TTI_PLACE_LIST, .index = rank, .bytes = count * (int64_t)p->element };
}

/** An entry of a list of which all have one size. */
static inline tti_block tti_entry(int index, const tti_plan_input *p)
{
    return (tti_block){ .place = TTI_PLACE_LIST, .index = index, .bytes = p->count * (int64_t)p->element };
}

/** The block, from offset on, so many bytes of it. */
static inline tti_block tti_within(tti_block block, int64_t offset, int64_t bytes)
{
    block.offset += offset;
    block.bytes = bytes;
    return block;
}

/** Messages without bytes are not sent, where both sides know it. */
static inline void tti_send_some(tti_schedule *schedule, int peer, tti_block block)
{
    if (block.bytes > 0)
        tti_schedule_send(schedule, peer, block);
}

static inline void tti_recv_some(tti_schedule *schedule, int peer, tti_block block)
{
    if (block.bytes > 0)
        tti_schedule_recv(schedule, peer, block);
}

/** With how many others a message of so many bytes shares a link, where each rank sends about as much to all others, or all to one, or one to
 * all (turns.h). */
static inline int tti_among(const tti_plan_input *p, int64_t bytes)
{
    return tti_beside(p->n_ranks, bytes, p->together > 1 ? p->together : 1);
}

/** tti_send_some() of such a message. */
static inline void tti_send_among(const tti_plan_input *p, tti_schedule *schedule, int peer, tti_block block)
{
    if (block.bytes > 0)
        tti_schedule_send_beside(schedule, peer, block, tti_among(p, block.bytes));
}

/** Parts of all_gather: empty ones go once, so that ranks with other lists of counts find out. */
static inline bool tti_is_told(const tti_plan_input *p, tti_block block)
{
    return block.bytes > 0 || p->chunk == 0;
}

static inline void tti_send_told(const tti_plan_input *p, tti_schedule *schedule, int peer, tti_block block)
{
    if (tti_is_told(p, block))
        tti_schedule_send(schedule, peer, block);
}

static inline void tti_recv_told(const tti_plan_input *p, tti_schedule *schedule, int peer, tti_block block)
{
    if (tti_is_told(p, block))
        tti_schedule_recv(schedule, peer, block);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/net/turns.h - who sends when, where all send to one, and what shares a link: pure arithmetic.
 *
 * Why     What all ranks send to a root at once waits in front of its link, and is more than a port of a switch keeps: the rest
 *         is dropped. Where the end of a block is, its sender learns of it when a timer ends, 200 ms later as a rule, which is as long as
 *         200 MB take at 10 Gb/s.
 * How     Ranks are numbered by how far they are to the right of the root. Up to AT_ONCE bytes go at once. Of more a turn has TURN bytes,
 *         or 8 blocks, whose senders share what may be on the way (tti_schedule_send_beside). Fewer at a time were slower: whoever is
 *         told to begin has to come to his core first. The root tells the ranks of a turn to begin when that before them
 *         begins: so two turns are on their way, and the link has something to do while the root's word is.
 * Dealt   What a root sends to all waits in front of its own link, which keeps no more either; the kernel tries again what was dropped
 *         there when a timer ends, too. So those parts share what may be on the way. They need no turns: all go when the root says so.
 * All     Where each sends a slice, a part or a block to all others both happen: they wait in front of the own link, and in front of each
 *         taker's. They share as well; those of all chunks that are under way together, which follow each other on the same ways. Without
 *         that a call of 16 MiB among 8 ranks took 190 ms longer now and then, as if for a timer.
 * True    All that a giver and the root need to agree on is how long the giver's block is; and where all know
 *         all lengths they come to the same turns. */
#ifndef TTI_COLL_NET_TURNS_H
#define TTI_COLL_NET_TURNS_H

#include <stdint.h>

enum {
    TTI_TURN_BYTES = 512 << 10,
    TTI_TURN_BLOCKS = 8,
    TTI_AT_ONCE_BYTES = 1 << 20,
    TTI_BESIDE_UNKNOWN = 5,
};

/** How much of a turn a block takes: of longer ones there are a few in it. */
static inline int64_t tti_of_a_turn(int64_t bytes)
{
    const int64_t most = TTI_TURN_BYTES / TTI_TURN_BLOCKS;

    return bytes < most ? bytes : most;
}

/** In which turn a block goes to the root behind blocks that take so much of turns: tti_of_a_turn() of each. */
static inline int tti_turn_behind(int64_t taken)
{
    return (int)(taken / TTI_TURN_BYTES);
}

/** In which turn the rank number i to the right of the root has a block of so many bytes, if all others were as long: where
 * nobody else knows how long they are. */
static inline int tti_turn_of(int n_ranks, int i, int64_t bytes)
{
    if ((n_ranks - 1) * bytes <= TTI_AT_ONCE_BYTES)
        return 0;
    return tti_turn_behind((i - 1) * tti_of_a_turn(bytes));
}

/** How many others send to the root beside one that has so many bytes for it, or get something from it: 0, if all is little. times: so often,
 * in chunks that are under way together. */
static inline int tti_beside(int n_ranks, int64_t bytes, int times)
{
    const int others = n_ranks - 2 < 2 * TTI_TURN_BLOCKS ? n_ranks - 2 : 2 * TTI_TURN_BLOCKS;

    return bytes < TTI_TURN_BYTES / TTI_TURN_BLOCKS || (n_ranks - 1) * times * bytes <= TTI_AT_ONCE_BYTES ? 0 : others;
}

/** The same where nobody else knows how many bytes that one has. The others may have as many, or nothing, and then the one has the link
 * to itself: so it counts on few of them, and what it may have on the way is some more than its share would be. */
static inline int tti_beside_unknown(int n_ranks, int64_t bytes)
{
    const int others = tti_beside(n_ranks, bytes, 1);

    return others < TTI_BESIDE_UNKNOWN ? others : TTI_BESIDE_UNKNOWN;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/host/staged.h - the collectives of one host, through staging slots.
 *
 * S is the bytes of one rank's part, P the ranks, c the bytes of a slot. count may be 0: no rounds.
 * Buffers are only read and written by their own rank. */
#ifndef TTI_COLL_HOST_STAGED_H
#define TTI_COLL_HOST_STAGED_H

#include "coll/host/channel.h"

/** Do call, which the channel has entered, to its end. */
typedef tutti_status tti_staged(tti_host_channel *channel, const tutti_call *call);

/** All come, all go. */
tti_staged tti_staged_barrier;
/** Everybody combines everything. S/c rounds, PS read per rank. */
tti_staged tti_staged_all_reduce_one_phase;
/** Each combines its slice, all copy all slices. S/c rounds, (3-2/P)S read and 2S written per rank. */
tti_staged tti_staged_all_reduce_sliced;
/** The root combines everything. PS read by the root. */
tti_staged tti_staged_reduce_one_phase;
/** Each combines its slice, the root copies all slices. S/c rounds, (2-1/P)S read per rank, by the root (3-2/P)S. */
tti_staged tti_staged_reduce_sliced;
/** S read and written per rank. With a core for each rank in pieces of a quarter of a slot. */
tti_staged tti_staged_broadcast;
/** Parts may have different sizes: as many rounds as the longest one takes. */
tti_staged tti_staged_all_gather;
tti_staged tti_staged_gather;
/** The root's slot holds a piece for each: PS/c rounds, at most TTI_HOST_RANKS_MAX members. */
tti_staged tti_staged_scatter;
/** Each combines its own part, from a lane of everybody's slot: PS/c rounds of the longest part, PS
 * read and written per rank. At most TTI_HOST_RANKS_MAX members. */
tti_staged tti_staged_reduce_scatter;
/** Sizes in a first round, then as many rounds as the member that gives most has slots' worth. All
 * that is given is read twice and written twice. At most TTI_HOST_RANKS_MAX members. */
tti_staged tti_staged_all_to_all;

/** With a core for each rank the others copy one piece of a broadcast out while the root copies the next one in: the
 * smaller it is, the sooner they begin. */
enum { TTI_BROADCAST_PIECE = 32 * 1024 };

/** Bytes of the longest stream of an all_to_all from which on it pays to read blocks from their owners (pull.h). */
enum { TTI_PULL_BLOCKS_OWN_CORE = 32 * 1024, TTI_PULL_BLOCKS_SHARED_CORE = 128 * 1024 };

/** What a block takes of a member's stream: whole lines. */
static inline uint64_t tti_staged_stream_room(uint64_t bytes)
{
    return (bytes + 63) & ~UINT64_C(63);
}

/** What peer says it gives to and wants of this rank is not what the call says: TUTTI_E_MISMATCH in words, the others told. */
tutti_status tti_staged_refuse_block(tti_host_channel *channel, const tutti_call *call, int peer, int64_t gives,
                                     int64_t wants) __attribute__((cold));
static inline tutti_status tti_staged_compare_block(tti_host_channel *channel, const tutti_call *call, int peer, int64_t gives,
                                                    int64_t wants)
{
    if (gives == call->list_counts[peer] && wants == call->in_counts[peer])
        return TUTTI_OK;
    return tti_staged_refuse_block(channel, call, peer, gives, wants);
}
/** No stream is longer: whoever says so is wrong, TUTTI_E_BACKEND in words, the others told. */
#define TTI_STAGED_STREAM_MAX (UINT64_C(1) << 46)
tutti_status tti_staged_refuse_stream(tti_host_channel *channel, int peer, uint64_t bytes) __attribute__((cold));
static inline tutti_status tti_staged_check_stream(tti_host_channel *channel, int peer, uint64_t bytes)
{
    return bytes <= TTI_STAGED_STREAM_MAX ? TUTTI_OK : tti_staged_refuse_stream(channel, peer, bytes);
}
/** Whether streams of which the longest has so many bytes are read from their owners (pull.h). */
tutti_status tti_staged_wants_pull(tti_host_channel *channel, uint64_t longest, bool *wants_out);
/** The rounds of an all_to_all whose sizes all know: channel->begins says where the others' blocks for this rank
 * begin in their streams, and longest is the longest stream of all. */
tutti_status tti_staged_all_to_all_rounds(tti_host_channel *channel, const tutti_call *call, uint64_t longest);

/** Bytes of a slot that each member has where a slot is shared out: whole lines. */
static inline size_t tti_staged_lane(const tti_host_channel *channel)
{
    return channel->chunk / (size_t)channel->team->n_ranks & ~(size_t)63;
}

/** Elements that go through a slot of bytes in one round, and rounds that count elements take. */
static inline int64_t tti_staged_per_round(const tutti_call *call, int64_t bytes)
{
    return bytes / (int64_t)tutti_dtype_size(call->dtype);
}

static inline uint64_t tti_staged_rounds(int64_t count, int64_t per_round)
{
    return (uint64_t)(count / per_round + (count % per_round != 0));
}

#endif

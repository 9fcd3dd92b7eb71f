/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/host/fused.h - the collectives of one host on registered memory: one pass over the members' own buffers.
 *
 * Where every member's buffers lie in registered memory (transport/registered.h), members read and write each
 * other's: nothing is staged, and each byte is loaded and stored once. fused.c has the rules. */
#ifndef TTI_COLL_HOST_FUSED_H
#define TTI_COLL_HOST_FUSED_H

#include "coll/host/channel.h"

/** When a call is to take this way, of those that could. */
typedef enum tti_fused_wish {
    TTI_FUSED_NEVER,
    TTI_FUSED_WHERE_BEST, /* from a size on where it pays */
    TTI_FUSED_ALWAYS      /* where it is possible at all */
} tti_fused_wish;

/** Before a call is entered: say from which call on this rank may have registered memory. */
void tti_fused_tell(tti_host_channel *channel, uint64_t seq);

/** Whether members may show what they have for call, which the channel has entered. Waits for nobody; false is the
 * same on all. */
bool tti_fused_may_ask(tti_host_channel *channel, const tutti_call *call, tti_fused_wish wish);

/** Do call, which the channel has entered, if all members' buffers are registered. Whether it is done is the same
 * on all; if not, nothing was read or written. wish is equal on all members.
 *
 * After a failure no member can write into this rank's buffers any more, and those that others could have written
 * to are not registered any more. */
tutti_status tti_fused_run(tti_host_channel *channel, const tutti_call *call, tti_fused_wish wish, bool *done_out);

/** After a call whose sizes nobody knew before: what the members have learnt alike of the bytes of one rank's blocks. */
void tti_fused_note_blocks(tti_host_channel *channel, int64_t bytes);
/** How many calls were done so. */
uint64_t tti_fused_count(const tti_host_channel *channel);
/** For a channel that opens. */
tutti_status tti_fused_make(int n_ranks, tti_fused **fused_out);
/** Of a channel that closes. NULL is fine. */
void tti_fused_free(tti_fused *fused);

#endif

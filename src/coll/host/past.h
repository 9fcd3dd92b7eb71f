/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/host/past.h - which results go past the caches.
 *
 * A store to a line that is in no cache of the core fetches it first, although all of it is overwritten. Where results
 * do not fit there anyway, stores that go around the caches save that, a third of what memory moves. Where they
 * fit, or are read soon, such stores cost several times as much. */
#ifndef TTI_COLL_HOST_PAST_H
#define TTI_COLL_HOST_PAST_H

#include <string.h>
#include "coll/host/channel.h"
#include "kernel/copy.h"
#include "kernel/kernel.h"

/** Whether this member is to store past the caches what it copies, or combines, into results of call, which the channel
 * has entered. It need not be the same on all. */
bool tti_host_past_caches(const tti_host_channel *channel, const tutti_call *call);

/** Whether they go past the caches in a call in which each of the ranks that share a core, turns of them, touches so many bytes
 * of its own buffers: of a broadcast those of the buffer, and 0 where sums are in place. */
bool tti_past_of(const tti_machine *machine, double turns, tutti_call_kind kind, double touched_bytes);
/** The same of a core's cache of near bytes and its part last of the last one, which turns ranks share. */
bool tti_past_caches(const tti_machine *machine, int turns, const tutti_call *call, int rank, int n_ranks);

/** bytes from `from` to `to`, which may be the same, or else be apart. */
static inline void tti_host_put(void *to, const void *from, size_t bytes, bool past)
{
    if (bytes == 0 || to == from)
        return;
    if (past)
        tti_copy_nt(to, from, bytes);
    else
        memcpy(to, from, bytes);
}

/** All n of in into out, which is none of them if past. */
static inline void tti_host_sum(const tti_reduce_kernel *kernel, void *out, const void *const *in, int n, int64_t count,
                                bool past)
{
    if (past)
        tti_reduce_to_nt(kernel, &out, 1, in, n, count, n);
    else
        tti_reduce(kernel, out, in, n, count, n);
}

#endif

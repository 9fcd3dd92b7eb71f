/* SPDX-License-Identifier: BSD-3-Clause
 *
 * past.c - when results go past the caches.
 *
 * How     What the ranks of a core read and write of their own buffers in a call goes through that core's cache. Where
 *         that is more than the cache holds, results are written past it: the next call finds nothing of them anyway.
 *         A result that lies where the rank has just read, or its next call reads, as in a broadcast, is not fetched in
 *         vain as long as some cache holds it: then it has to be larger than the part of the last cache by far, for
 *         a core that is not alone may use the parts of others. In sums in place the stores hit lines that were just
 *         read: never.
 *         Both limits were measured on two cores with 2 MiB each: with stores past the caches, copies from 2 MiB on took
 *         0.8 of the time, and those of 32 MiB among 8 ranks 0.6; broadcasts took up to 4 times as long below 128 MiB
 *         for each core, and 0.6 of the time there. */
#include "coll/host/past.h"

#include "coll/segments.h"

enum { PARTS_OF_LAST = 16 }; /* that one core may come to use */

static double sum_of(const int64_t *counts, int n)
{
    double sum = 0;
    int    r;

    for (r = 0; r < n; r++)
        sum += (double)counts[r];
    return sum;
}

/* Elements of everybody's parts. */
static double all_parts(const tutti_call *call, int n_ranks)
{
    return call->n_parts > 0 ? sum_of(call->list_counts, n_ranks) : (double)call->count * n_ranks;
}

/* Elements of its own buffers that a member reads and writes in call. */
static double touched(const tutti_call *call, int rank, int n_ranks)
{
    switch (call->kind) {
    case TUTTI_CALL_ALL_GATHER:
    case TUTTI_CALL_REDUCE_SCATTER:
        return all_parts(call, n_ranks) + (double)tti_part_count(call, rank);
    case TUTTI_CALL_GATHER:
    case TUTTI_CALL_SCATTER: /* one of them all, the others their own */
        return 2 * (double)call->count;
    case TUTTI_CALL_ALL_TO_ALL:
    case TUTTI_CALL_GATHER_V:
    case TUTTI_CALL_SCATTER_V:
        return sum_of(call->in_counts, n_ranks) + sum_of(call->list_counts, n_ranks);
    default:
        return 0;
    }
}

bool tti_past_of(const tti_machine *machine, double turns, tutti_call_kind kind, double touched_bytes)
{
    if (kind == TUTTI_CALL_BROADCAST)
        return turns * touched_bytes >= PARTS_OF_LAST * machine->last_bytes;
    return turns * touched_bytes > machine->near_bytes;
}

bool tti_past_caches(const tti_machine *machine, int turns, const tutti_call *call, int rank, int n_ranks)
{
    const double elements = call->kind == TUTTI_CALL_BROADCAST ? (double)call->count : touched(call, rank, n_ranks);

    return tti_past_of(machine, turns, call->kind, elements * (double)tti_dtype_bytes(call->dtype));
}

bool tti_host_past_caches(const tti_host_channel *channel, const tutti_call *call)
{
    return tti_past_caches(&channel->machine, channel->turns, call, channel->team->rank, channel->team->n_ranks);
}

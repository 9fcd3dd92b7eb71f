/* SPDX-License-Identifier: BSD-3-Clause
 *
 * held.c - how much memory other members may have this process take.
 *
 * Why     A message that comes before its receive is kept, since what follows on the same stream may be what everybody waits for;
 *         and the answer to a get is a copy. Both are as much as the other end likes: a member that went wild, or that
 *         is far ahead of this one, would end this process for lack of memory, and then the kernel says nothing of who it was.
 * How     What is held is counted, for all members together, and bounded; the member that would go beyond is lost, with
 *         words that name it.
 * True    Runs under the messenger's lock. What a rank keeps for members through shared memory is nothing: those wait. */
#include "transport/lane.h"

#include <inttypes.h>
#include <tutti/private.h>
#include "base/env.h"
#include "base/machine.h"

bool tti_hold(tti_held *held, int peer, uint64_t bytes, const char *what, tti_cause *why)
{
    if (held->most == 0 || (bytes <= held->most && held->bytes <= held->most - bytes)) {
        held->bytes += bytes;
        return true;
    }
    tti_cause_set(why, TUTTI_E_NOMEM,
                  "rank %d would have this process hold too much: %s, beside %" PRIu64 " bytes that it holds for others already; %" PRIu64
                  " are the most\n  next: ask for messages sooner (tutti_recv, tutti_irecv), or raise TUTTI_HELD_MAX",
                  peer, what, held->bytes, held->most);
    return false;
}

void tti_let_go(tti_held *held, uint64_t bytes)
{
    held->bytes -= bytes;
}

tutti_status tti_held_begin(tti_held *held)
{
    int64_t      most = tti_memory_bytes() / 2;
    tutti_status st = tti_env("TUTTI_HELD_MAX") != NULL ? tti_env_int("TUTTI_HELD_MAX", 1, INT64_MAX, &most) : TUTTI_OK;

    *held = (tti_held){ .most = (uint64_t)most };
    return st;
}

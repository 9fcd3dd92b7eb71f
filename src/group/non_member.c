/* SPDX-License-Identifier: BSD-3-Clause
 *
 * non_member.c - the warning for calls on a group that this rank is not in.
 *
 * Why     torch warns at every such call, and programs that make them do so in every step: what else the log says
 *         drowns. The first of a kind says it all.
 * How     A set of the kinds that were warned about, by the fingerprint of their names. It is emptied when this rank
 *         comes to be no member of another group, so that each group has its warnings.
 * State   Of the process: TUTTI_NON_MEMBER is one constant, and knows neither its group nor its world.
 * True    A slot goes from 0 to a fingerprint by one exchange, and back when the set is emptied. Threads that race with
 *         that may warn once more, or once less. A set that is full says nothing more. */
#include "group/make.h"

#include <stdatomic.h>
#include <string.h>
#include "base/fnv.h"
#include <tutti/private.h>

enum { KINDS_MAX = 128 };

static _Atomic uint64_t warned[KINDS_MAX];

/* Whether what is new in the set. */
static bool add(const char *what)
{
    const uint64_t print = tti_fnv(TTI_FNV_BEGIN, what, strlen(what)) | 1; /* never 0 */
    int            i;

    for (i = 0; i < KINDS_MAX; i++) {
        _Atomic uint64_t *slot = &warned[(print + (uint64_t)i) % KINDS_MAX];
        uint64_t          found = 0;

        if (atomic_compare_exchange_strong_explicit(slot, &found, print, memory_order_relaxed, memory_order_relaxed))
            return true;
        if (found == print)
            return false;
    }
    return false;
}

void tti_non_member_warn(const char *what)
{
    if (add(what))
        tti_log(TTI_LOG_WARN, "%s: this rank is not in the group; nothing is done (said once for calls of this kind)",
                what);
}

void tti_non_member_begins(void)
{
    int i;

    for (i = 0; i < KINDS_MAX; i++)
        atomic_store_explicit(&warned[i], 0, memory_order_relaxed);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * strangers.c - who makes room, where a few dozen strangers may stand at a door.
 *
 * Why     Whoever reaches a port can open connections and say nothing. If newcomers were refused when there are too many,
 *         or the oldest of all went, those would keep out the members of the job for as long as they like.
 * How     The oldest stranger from where the newcomer comes goes, or from one of two addresses that are drawn, whichever has
 *         more of them. So a flood drops its own, and whoever comes from elsewhere has time.
 *         What counts as one address is said by base/addr_source.h.
 *         To draw looks at two of them only, and no list of addresses is kept; a flood is drawn almost always, for it is
 *         almost all that stands there. (The store has thousands of them, and keeps such lists: store_half_open.c.) */
#include "wire/strangers.h"

#include <stddef.h>
#include "base/addr_source.h"

enum { DRAWS = 2 };

/* The strangers from addr: how many, and the oldest. */
static int count_from(const tti_strangers *crowd, const tti_addr *addr, int *oldest_out)
{
    int i, n = 0;

    for (i = crowd->n - 1; i >= 0; i--) {
        const tti_addr *from = crowd->stranger_at(crowd->context, i);

        if (from == NULL || !tti_addr_same_source(from, addr))
            continue;
        *oldest_out = i;
        n++;
    }
    return n;
}

int tti_stranger_to_go(const tti_strangers *crowd, tti_port *port, const tti_addr *addr)
{
    int      victim = -1, oldest = -1, turn;
    int      most = count_from(crowd, addr, &victim);
    uint32_t dice[DRAWS];

    if (crowd->n == 0)
        return -1;
    port->ops->random(port, dice, sizeof dice);
    for (turn = 0; turn < DRAWS; turn++) {
        const tti_addr *drawn = crowd->stranger_at(crowd->context, (int)(dice[turn] % (uint32_t)crowd->n));
        const int       n = drawn != NULL ? count_from(crowd, drawn, &oldest) : 0;

        if (n <= most)
            continue;
        most = n;
        victim = oldest;
    }
    return victim;
}

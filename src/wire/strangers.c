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

enum { DRAWS = 2 };

/* The strangers from one source: how many, and the oldest. */
typedef struct tally {
    const tti_addr_source *source;
    int                    n, oldest;
} tally;

/* All in one pass: a flood has this done for each of its connections. */
static void count(const tti_strangers *crowd, tally *tallies, int n_tallies)
{
    int i, k;

    for (i = crowd->n - 1; i >= 0; i--) {
        const tti_addr_source *from = crowd->stranger_at(crowd->context, i);

        for (k = 0; from != NULL && k < n_tallies; k++)
            if (tti_same_source(tallies[k].source, from)) {
                tallies[k].oldest = i;
                tallies[k].n++;
            }
    }
}

int tti_stranger_to_go(const tti_strangers *crowd, tti_port *port, const tti_addr_source *from)
{
    tally    tallies[1 + DRAWS] = { { .source = from, .oldest = -1 } };
    int      n = 1, most = 0, i;
    uint32_t dice[DRAWS];

    if (crowd->n == 0)
        return -1;
    port->ops->random(port, dice, sizeof dice);
    for (i = 0; i < DRAWS; i++) {
        const tti_addr_source *drawn = crowd->stranger_at(crowd->context, (int)(dice[i] % (uint32_t)crowd->n));

        if (drawn != NULL)
            tallies[n++] = (tally){ .source = drawn, .oldest = -1 };
    }
    count(crowd, tallies, n);
    for (i = 1; i < n; i++)
        if (tallies[i].n > tallies[most].n)
            most = i;
    return tallies[most].oldest;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * link_rate.c - adds up what links carry. */
#include "wire/link_rate.h"

#include <inttypes.h>
#include <stdio.h>

/* What one carries; 0 Mb/s: not known. */
static tti_link_facts add_link(tti_port *port, const tti_addr *at, tti_link_rate *rate, size_t *used)
{
    tti_link_facts facts = { .mbit = 0 };
    const char    *between = *used > 0 ? ", " : "";
    const size_t   left = sizeof rate->text - *used;

    if (port->ops->link_facts == NULL || port->ops->link_facts(port, at, &facts) != 0)
        return (tti_link_facts){ .mbit = 0 };
    if (facts.mbit > 0)
        *used += (size_t)snprintf(rate->text + *used, left, "%s%s %" PRId64 " Mb/s (%s)", between, facts.name, facts.mbit, facts.source);
    else
        *used += (size_t)snprintf(rate->text + *used, left, "%s%s unknown", between, facts.name);
    return facts;
}

void tti_link_rate_of(tti_port *port, const tti_addr *at, const tti_rails *rails, tti_link_rate *rate_out)
{
    const int     n = rails->n > 0 ? rails->n : 1;
    tti_link_rate rate = { .mbit = 0 };
    int64_t       least = INT64_MAX, burst = INT64_MAX;
    size_t        used = 0;
    int           i;

    for (i = 0; i < n; i++) {
        const tti_link_facts one = add_link(port, rails->n > 0 ? &rails->rail[i].addr : at, &rate, &used);

        least = one.mbit < least ? one.mbit : least;
        burst = one.burst < burst ? one.burst : burst;
    }
    rate.mbit = least * n;
    rate.burst = rate.mbit > 0 ? burst * n : 0;
    *rate_out = rate;
}

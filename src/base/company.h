/* SPDX-License-Identifier: BSD-3-Clause
 *
 * company.h - whether a thread shares its core with somebody who keeps it.
 *
 * Why     Who waits gives his core away between two looks, and has it back at once if nobody else wants it, or if those
 *         who do are waiting, too. Beside a thread that computes he has it back when that one's slice of time is over,
 *         some milliseconds later, as whoever can run all the time has no claim to be heard sooner. Who sleeps has: what he waits
 *         for wakes him, and he gets the core within some microseconds, for he has used little of it.
 * How     What it takes to have the core back is what tells: LONG_NS is more than ranks that share a core need for their turns, and
 *         less than a slice of time. From then on, for a while, waiting is sleeping. Behind that the core is given away
 *         once more, which shows whether the other one is still there: then the while is twice as long, up to
 *         PAUSE_MOST_NS, so that looking costs one slice in a hundred. After CALM_ENOUGH times in a row that
 *         he was not it is half as long: who shares his core with another rank as well often has it back from that one. It does not
 *         go by the time between, as there are programs that wait a few times in a second.
 * State   Of one who waits: no two threads may use one at the same time. Zeroed memory is one who is alone. */
#ifndef TTI_BASE_COMPANY_H
#define TTI_BASE_COMPANY_H

#include <stdbool.h>
#include <stdint.h>
#include "base/port.h"

typedef struct tti_company {
    int64_t until_ns; /* somebody else has the core, as far as is known; 0: nobody has */
    int64_t pause_ns; /* that this was believed for, last time, halved for every so many times that nobody was found; 0: it is forgotten */
    int      calm;     /* times in a row, since he was found or that was halved */
} tti_company;

/** The core was given away so many times from then to then, and hardly anything else was done, as a few looks. Whether somebody kept it. */
bool tti_company_gave(tti_company *company, int times, int64_t began_ns, int64_t ended_ns);

/** The same by the clock, once it has shown that somebody is there. */
bool tti_company_is_still_here(tti_company *company, tti_port *port);

/** Whether to sleep, where one would give the core away. The clock is read only where somebody was there. */
static inline bool tti_company_is_here(tti_company *company, tti_port *port)
{
    return company->until_ns != 0 && tti_company_is_still_here(company, port);
}

#endif

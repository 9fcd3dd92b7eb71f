/* SPDX-License-Identifier: BSD-3-Clause
 *
 * company.c - who is found to share a core, and for how long that is believed. */
#include "base/company.h"

#define LONG_NS        (1 * TTI_MS)
#define PAUSE_LEAST_NS (10 * TTI_MS)
#define PAUSE_MOST_NS  (640 * TTI_MS)

/* Found again soon after it was last believed: it has been there all the time, most likely. */
static int64_t next_pause(const tti_company *company, int64_t now_ns)
{
    if (company->pause_ns == 0 || now_ns - company->ended_ns > company->pause_ns)
        return PAUSE_LEAST_NS;
    return company->pause_ns < PAUSE_MOST_NS / 2 ? 2 * company->pause_ns : PAUSE_MOST_NS;
}

bool tti_company_gave(tti_company *company, int times, int64_t began_ns, int64_t ended_ns)
{
    if (times == 0 || ended_ns - began_ns < times * LONG_NS)
        return false;
    company->pause_ns = next_pause(company, ended_ns);
    company->until_ns = company->ended_ns = ended_ns + company->pause_ns;
    return true;
}

bool tti_company_is_still_here(tti_company *company, tti_port *port)
{
    if (tti_port_now(port) < company->until_ns)
        return true;
    company->until_ns = 0;
    return false;
}

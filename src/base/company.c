/* SPDX-License-Identifier: BSD-3-Clause
 *
 * company.c - who is found to share a core, and for how long that is believed. */
#include "base/company.h"

#define LONG_NS        (1 * TTI_MS)
#define PAUSE_LEAST_NS (10 * TTI_MS)
#define PAUSE_MOST_NS  (640 * TTI_MS)

enum { CALM_ENOUGH = 64 };

static int64_t longer(int64_t pause_ns)
{
    if (pause_ns == 0)
        return PAUSE_LEAST_NS;
    return pause_ns < PAUSE_MOST_NS / 2 ? 2 * pause_ns : PAUSE_MOST_NS;
}

static int64_t shorter(int64_t pause_ns)
{
    return pause_ns > PAUSE_LEAST_NS ? pause_ns / 2 : 0;
}

static void be_calm(tti_company *company, int times)
{
    company->calm += times;
    if (company->calm < CALM_ENOUGH)
        return;
    company->calm = 0;
    company->pause_ns = shorter(company->pause_ns);
}

bool tti_company_gave(tti_company *company, int times, int64_t began_ns, int64_t ended_ns)
{
    if (times == 0)
        return false;
    if (ended_ns - began_ns < times * LONG_NS) {
        if (company->pause_ns != 0)
            be_calm(company, times);
        return false;
    }
    company->calm = 0;
    company->pause_ns = longer(company->pause_ns);
    company->until_ns = ended_ns + company->pause_ns;
    return true;
}

bool tti_company_is_still_here(tti_company *company, tti_port *port)
{
    if (tti_port_now(port) < company->until_ns)
        return true;
    company->until_ns = 0;
    return false;
}

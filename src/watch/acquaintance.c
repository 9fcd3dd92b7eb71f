/* SPDX-License-Identifier: BSD-3-Clause
 *
 * acquaintance.c - whom this thread knows of those it waits for; acquaintance.h has the design. */
#include "watch/acquaintance.h"

static _Thread_local const tti_acquaintance *heeded;

void tti_acquaintance_heed(const tti_acquaintance *known)
{
    heeded = known;
}

const tti_acquaintance *tti_acquaintance_heeded(void)
{
    return heeded;
}

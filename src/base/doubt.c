/* SPDX-License-Identifier: BSD-3-Clause
 *
 * doubt.c - what this thread's waits look at besides the clock; doubt.h has the design. */
#include "base/doubt.h"

#include <tutti/private.h>

#define LOOK_NS (20 * TTI_MS)

static _Thread_local const tti_doubt *doubted;

void tti_doubt_waits(const tti_doubt *doubt)
{
    doubted = doubt;
}

bool tti_doubt_is_vain(void)
{
    return doubted != NULL && doubted->is_vain(doubted->context);
}

static int64_t slice(tti_port *port, int64_t until_ns)
{
    const int64_t look_ns = tti_port_now(port) + LOOK_NS;

    return look_ns < until_ns ? look_ns : until_ns;
}

int tti_doubt_poll(tti_port *port, tti_poll *set, int n, int64_t until_ns)
{
    int got;

    if (doubted == NULL)
        return port->ops->poll(port, set, n, until_ns);
    do
        got = port->ops->poll(port, set, n, slice(port, until_ns));
    while (got == 0 && tti_port_now(port) < until_ns && !tti_doubt_is_vain());
    return got;
}

tutti_status tti_doubt_fail(const char *who)
{
    return tti_fail(TUTTI_E_NETWORK, "%s is not waited for any more: somebody who is needed as well has fallen silent", who);
}

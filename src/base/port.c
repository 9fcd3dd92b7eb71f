/* SPDX-License-Identifier: BSD-3-Clause
 *
 * port.c - deadlines, for any port. */
#include "base/port.h"

int64_t tti_later(int64_t now_ns, int64_t timeout_ms)
{
    if (timeout_ms < 0 || timeout_ms > (TTI_FOREVER - now_ns) / TTI_MS)
        return TTI_FOREVER;
    return now_ns + timeout_ms * TTI_MS;
}

int64_t tti_deadline(tti_port *port, int64_t timeout_ms, int64_t default_ms)
{
    return tti_later(tti_port_now(port), timeout_ms != 0 ? timeout_ms : default_ms);
}

int64_t tti_left_ms(tti_port *port, int64_t deadline_ns)
{
    int64_t left;

    if (deadline_ns == TTI_FOREVER)
        return -1;
    left = deadline_ns - tti_port_now(port);
    return left <= 0 ? 0 : (left + TTI_MS - 1) / TTI_MS;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * addr_source.c - addresses cut down to what nobody has many of; addr_source.h says why. */
#include "base/addr_source.h"

#include <string.h>

enum kind { NOWHERE, LOOPBACK, IP4, NET_IP6, LOCAL };
enum { IP4_BYTES = 4, NET_BYTES = 8, MAPPED_BYTES = 12 };

_Static_assert(TTI_ADDR_SOURCE_BYTES == 1 + NET_BYTES, "a kind, and the longest of what follows");

static tti_addr_source source(enum kind kind, const uint8_t *ip, size_t bytes)
{
    tti_addr_source s = { { (uint8_t)kind } };

    memcpy(s.bytes + 1, ip, bytes);
    return s;
}

static tti_addr_source of_ip4(const uint8_t *ip)
{
    return ip[0] == 127 ? source(LOOPBACK, ip, 0) : source(IP4, ip, IP4_BYTES);
}

static tti_addr_source of_ip6(const uint8_t *ip)
{
    static const uint8_t mapped[MAPPED_BYTES] = { [10] = 0xff, [11] = 0xff };
    static const uint8_t loopback[16] = { [15] = 1 };

    if (memcmp(ip, mapped, sizeof mapped) == 0)
        return of_ip4(ip + MAPPED_BYTES);
    if (memcmp(ip, loopback, sizeof loopback) == 0) /* whoever has 127/8 has this, too */
        return source(LOOPBACK, ip, 0);
    return source(NET_IP6, ip, NET_BYTES);
}

tti_addr_source tti_addr_source_of(const tti_addr *addr)
{
    switch (addr->family) {
    case TTI_ADDR_IP4: return of_ip4(addr->ip);
    case TTI_ADDR_IP6: return of_ip6(addr->ip);
    case TTI_ADDR_LOCAL: return source(LOCAL, addr->ip, 0);
    case TTI_ADDR_NONE: break;
    }
    return source(NOWHERE, addr->ip, 0);
}

bool tti_same_source(const tti_addr_source *a, const tti_addr_source *b)
{
    uint64_t one, other; /* a flood has this done some hundred times for each of its connections */

    memcpy(&one, a->bytes + 1, sizeof one);
    memcpy(&other, b->bytes + 1, sizeof other);
    return a->bytes[0] == b->bytes[0] && one == other;
}

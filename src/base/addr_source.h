/* SPDX-License-Identifier: BSD-3-Clause
 *
 * base/addr_source.h - which addresses are one and the same source of connections.
 *
 * Why     Where many come, each source gets its part, so that a flood pushes out its own (the doors of ranks and of the store).
 *         That protects nobody from whoever can have as many addresses as it likes: every process of a host may use all
 *         of 127/8, and every host of a net of IPv6 all of its /64.
 * How     So these are one source each. An address of IPv4 that is written as one of IPv6 (::ffff:0:0/96) is what it was. */
#ifndef TTI_BASE_ADDR_SOURCE_H
#define TTI_BASE_ADDR_SOURCE_H

#include "base/port.h"

enum { TTI_ADDR_SOURCE_BYTES = 9 };

/** A kind, then what tells sources of that kind apart; the rest is zeros. Equal bytes are one source. */
typedef struct tti_addr_source {
    uint8_t bytes[TTI_ADDR_SOURCE_BYTES];
} tti_addr_source;

/** Of addr; its port does not count. */
tti_addr_source tti_addr_source_of(const tti_addr *addr);
/** Whether two are one source. */
bool tti_same_source(const tti_addr_source *a, const tti_addr_source *b);

#endif

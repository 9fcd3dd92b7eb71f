/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire/strangers.h - connections that have not proved themselves, and which of them goes when there are too many. */
#ifndef TTI_WIRE_STRANGERS_H
#define TTI_WIRE_STRANGERS_H

#include "base/addr_source.h"

/** What stands in a line, the oldest first, strangers among others. */
typedef struct tti_strangers {
    const void *context;
    int         n;
    /* Where the i-th has come from; NULL: it is no stranger. */
    const tti_addr_source *(*stranger_at)(const void *context, int i);
} tti_strangers;

enum { TTI_STRANGERS_ACCEPTS_MAX = 16 }; /* in one turn, so that whoever comes is looked at some times before it may have to go */

/** One more comes from there: who goes for it; -1: there is no stranger. */
int tti_stranger_to_go(const tti_strangers *crowd, tti_port *port, const tti_addr_source *from);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire/link_rate.h - what this host's links to others carry, as its kernel tells of the interfaces that are used. */
#ifndef TTI_WIRE_LINK_RATE_H
#define TTI_WIRE_LINK_RATE_H

#include "wire/rails.h"

enum { TTI_LINK_TEXT_MAX = TTI_RAILS_MAX * 80 };

typedef struct tti_link_rate {
    int64_t mbit;                    /* all together; 0: not known */
    int64_t burst;                   /* bytes that shapers let through at once, all together, before that counts */
    char    text[TTI_LINK_TEXT_MAX]; /* "tt0 1000 Mb/s (tbf), tt1 unknown"; "": there is no interface with that address */
} tti_link_rate;

/** Of the interface with the address at, or of all rails where there are any. What goes to a rank is dealt to rails by turns, and so
 * goes as fast as the slowest, times their number; one that is not known leaves the whole unknown. A port that knows no links tells
 * nothing. */
void tti_link_rate_of(tti_port *port, const tti_addr *at, const tti_rails *rails, tti_link_rate *rate_out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * simulate/agenda.h - what happens next: events in the order of their times, and of their making within one. */
#ifndef TTI_SIMULATE_AGENDA_H
#define TTI_SIMULATE_AGENDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tti_agenda_event {
    int64_t  at; /* ps */
    uint32_t made;
    uint32_t what; /* the owner's */
} tti_agenda_event;

/** Zeroed memory is an empty agenda. */
typedef struct tti_agenda {
    tti_agenda_event *events;
    size_t     n;
    size_t     room;
    uint32_t   made; /* events so far: 2^32 at most */
    bool       full; /* memory ran out, or numbers did; nothing is kept from then on */
} tti_agenda;

void tti_agenda_release(tti_agenda *agenda);
void tti_agenda_add(tti_agenda *agenda, int64_t at, uint32_t what);
/** The earliest event; of several the one that was added first. False: there is none. */
bool tti_agenda_take(tti_agenda *agenda, tti_agenda_event *event_out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agenda.c - a heap with four children to a node.
 *
 * Why     All that a simulation does goes through here, some million times a second. Four events are one cache line:
 *         a heap of four has half the levels of one of two, and its comparisons are of neighbours.
 * True    The order is a total one, time and then number, so that a simulation comes out the same each time. */
#include "simulate/agenda.h"

#include <stdlib.h>

enum { CHILDREN = 4, ROOM_FIRST = 1024 };

void tti_agenda_release(tti_agenda *agenda)
{
    free(agenda->events);
    *agenda = (tti_agenda){ .events = NULL };
}

static bool earlier(const tti_agenda_event *a, const tti_agenda_event *b)
{
    return a->at < b->at || (a->at == b->at && a->made < b->made);
}

static bool grow(tti_agenda *agenda)
{
    const size_t room = agenda->room > 0 ? 2 * agenda->room : ROOM_FIRST;
    tti_agenda_event   *grown = realloc(agenda->events, room * sizeof *grown);

    if (grown == NULL)
        return false;
    agenda->events = grown;
    agenda->room = room;
    return true;
}

void tti_agenda_add(tti_agenda *agenda, int64_t at, uint32_t what)
{
    const tti_agenda_event event = { .at = at, .made = agenda->made, .what = what };
    size_t          i = agenda->n;

    if (agenda->made == UINT32_MAX || (agenda->n == agenda->room && !grow(agenda)))
        agenda->full = true;
    if (agenda->full)
        return;
    agenda->made++;
    agenda->n++;
    while (i > 0 && earlier(&event, &agenda->events[(i - 1) / CHILDREN])) {
        agenda->events[i] = agenda->events[(i - 1) / CHILDREN];
        i = (i - 1) / CHILDREN;
    }
    agenda->events[i] = event;
}

/* The earliest child of node i; there is one. */
static size_t earliest_child(const tti_agenda *agenda, size_t i)
{
    const size_t first = CHILDREN * i + 1;
    const size_t end = first + CHILDREN < agenda->n ? first + CHILDREN : agenda->n;
    size_t       best = first, child;

    for (child = first + 1; child < end; child++)
        if (earlier(&agenda->events[child], &agenda->events[best]))
            best = child;
    return best;
}

bool tti_agenda_take(tti_agenda *agenda, tti_agenda_event *event_out)
{
    tti_agenda_event last;
    size_t    i = 0;

    if (agenda->n == 0)
        return false;
    *event_out = agenda->events[0];
    last = agenda->events[--agenda->n];
    while (CHILDREN * i + 1 < agenda->n) {
        const size_t child = earliest_child(agenda, i);

        if (!earlier(&agenda->events[child], &last))
            break;
        agenda->events[i] = agenda->events[child];
        i = child;
    }
    agenda->events[i] = last; /* of an empty agenda: a place that nobody reads */
    return true;
}

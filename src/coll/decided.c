/* SPDX-License-Identifier: BSD-3-Clause
 *
 * decided.c - questions that were answered before.
 *
 * Why     To answer one takes about a millisecond, and groups of one shape ask the same: those of a mesh of ranks, one
 *         behind the other, or the ranks of a process that has many.
 * True    An answer is a pure function of its question, so it may be another group's. What is kept is the process's:
 *         the first KEPT questions, for good. Whoever takes a place (FREE -> TAKEN, one of those that try) writes it, then
 *         says so (TAKEN -> KEPT, release); whoever sees that (acquire) sees what was written, which never changes
 *         again. Nobody waits: where a place is being written the question is answered once more.
 * Fails   A table of TUTTI_TUNE is a part of the question that has no end: with one nothing is kept. */
#include "coll/choose.h"

#include <stdatomic.h>
#include <string.h>

enum { PLACES = 64 };

/* A question as memory that can be compared: zeroed first, so that what is between its members is equal. */
typedef struct asked {
    tti_wishes        wishes;
    tti_machine       machine;
    double            wire, turns;
    tti_level_figures levels;
    int               n_ranks;
    bool              reproducible, one_host, has_levels;
} asked;

_Static_assert(sizeof(tti_machine) == 17 * sizeof(double), "a machine has no padding");
_Static_assert(sizeof(tti_level_figures) == 4 * sizeof(int), "nor have the figures of levels");

typedef enum place_state { FREE, TAKEN, KEPT } place_state;

typedef struct place {
    _Atomic int  state;
    asked        question;
    tti_decision answer;
} place;

static place places[PLACES];

static void write_down(const tti_question *q, asked *out)
{
    memset(out, 0, sizeof *out);
    out->wishes = *q->wishes;
    out->machine = *q->machine;
    out->wire = q->wire;
    out->turns = q->turns;
    out->n_ranks = q->n_ranks;
    out->reproducible = q->reproducible;
    out->one_host = q->one_host;
    out->has_levels = q->levels != NULL;
    if (q->levels != NULL)
        out->levels = *q->levels;
}

static void answer(const tti_question *q, tti_decision *out)
{
    int                  n;
    const tti_algorithm *rows = tti_algorithms(&n);

    tti_decide(q, rows, n, out);
}

/* The first place that is free is this thread's from now on; NULL: none is, or another thread was faster. */
static place *take_place(place *from)
{
    place *at;
    int    state = FREE;

    for (at = from; at < places + PLACES; at++)
        if (atomic_load_explicit(&at->state, memory_order_relaxed) == FREE)
            return atomic_compare_exchange_strong(&at->state, &state, TAKEN) ? at : NULL;
    return NULL;
}

void tti_decide_once(const tti_question *q, tti_decision *decision_out)
{
    asked  question;
    place *at;
    int    i;

    if (q->tune->n > 0) {
        answer(q, decision_out);
        return;
    }
    write_down(q, &question);
    for (i = 0; i < PLACES && atomic_load_explicit(&places[i].state, memory_order_acquire) == KEPT; i++)
        if (memcmp(&places[i].question, &question, sizeof question) == 0) {
            *decision_out = places[i].answer;
            return;
        }
    answer(q, decision_out);
    at = take_place(places + i);
    if (at == NULL)
        return;
    memcpy(&at->question, &question, sizeof question);
    at->answer = *decision_out;
    atomic_store_explicit(&at->state, KEPT, memory_order_release);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * suspects.c - who may be dead. A handful at a time: a list that is gone through. */
#include "transport/health/suspects.h"

#include <stddef.h>
#include "base/port.h"

static tti_suspect *find(tti_suspects *s, int rank)
{
    int i;

    for (i = 0; i < s->n; i++)
        if (s->list[i].rank == rank)
            return &s->list[i];
    return NULL;
}

bool tti_suspects_add(tti_suspects *s, const tti_suspect *suspect)
{
    tti_suspect *known = find(s, suspect->rank);

    if (known != NULL) {
        known->ask_ns = suspect->ask_ns < known->ask_ns ? suspect->ask_ns : known->ask_ns;
        known->in_time = known->in_time || suspect->in_time;
        return true;
    }
    if (s->n == TTI_SUSPECTS_MAX)
        return false;
    s->list[s->n++] = *suspect;
    return true;
}

bool tti_suspects_drop(tti_suspects *s, int rank, tti_suspect *out)
{
    tti_suspect *known = find(s, rank);

    if (known == NULL)
        return false;
    *out = *known;
    *known = s->list[--s->n];
    return true;
}

int tti_suspects_ask(tti_suspects *s, int64_t now_ns)
{
    int i;

    for (i = 0; i < s->n; i++)
        if (s->list[i].ask_ns <= now_ns) {
            s->list[i].ask_ns = TTI_FOREVER;
            return s->list[i].rank;
        }
    return -1;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * names.c - an index of names: their positions, in the order of the alphabet. */
#include "state/state.h"

#include <stdlib.h>
#include <string.h>

bool tti_names_find(const tti_names *names, tti_name_at at, const void *of, const char *name,
                    int64_t *where_out)
{
    int64_t low = 0, high = names->n;

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const int order = strcmp(at(of, names->order[middle]), name);

        if (order == 0) {
            *where_out = middle;
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *where_out = low;
    return false;
}

static bool have_room(tti_names *names, int64_t n)
{
    const int64_t room = n > 2 * names->room ? n : 2 * names->room;
    int64_t *order;

    if (n <= names->room)
        return true;
    order = realloc(names->order, (size_t)room * sizeof *order);
    if (order == NULL)
        return false;
    names->order = order;
    names->room = room;
    return true;
}

bool tti_names_insert(tti_names *names, int64_t where)
{
    if (!have_room(names, names->n + 1))
        return false;
    memmove(names->order + where + 1, names->order + where,
            (size_t)(names->n - where) * sizeof *names->order);
    names->order[where] = names->n++;
    return true;
}

typedef struct sorting {
    tti_name_at at;
    const void *of;
} sorting;

static int by_name(const void *a, const void *b, void *arg)
{
    const sorting *s = arg;

    return strcmp(s->at(s->of, *(const int64_t *)a), s->at(s->of, *(const int64_t *)b));
}

bool tti_names_sort(tti_names *names, tti_name_at at, const void *of, int64_t n)
{
    sorting s = { .at = at, .of = of };

    if (!have_room(names, n))
        return false;
    for (int64_t i = 0; i < n; i++)
        names->order[i] = i;
    names->n = n;
    if (n > 0)
        qsort_r(names->order, (size_t)n, sizeof *names->order, by_name, &s);
    return true;
}

void tti_names_clear(tti_names *names)
{
    free(names->order);
    *names = (tti_names){ 0 };
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lookup.c - where a parameter stands among those of an optimizer.
 *
 * Why     Whoever steps parameter by parameter, as hooks of a backward do, asks for each of them in each step.
 * How     A table of numbers by the address of the tensor, one more than the place so that 0 is free; at most half full,
 *         the next free entry after the one that the address asks for. Parameters that go, which is
 *         rare, have the table filled anew. */
#include "optim/optim.h"

#include <stdlib.h>
#include <string.h>

static size_t entry_of(const tutti_optim *o, const tutti_tensor *param)
{
    const uint64_t mixed = (uint64_t)(uintptr_t)param * 0x9e3779b97f4a7c15u;
    size_t at = (size_t)(mixed >> 32) & (o->table_size - 1);

    while (o->table[at] != 0 && o->params[o->table[at] - 1] != param)
        at = (at + 1) & (o->table_size - 1);
    return at;
}

int tti_optim_find(const tutti_optim *o, const tutti_tensor *param)
{
    return o->table_size > 0 ? o->table[entry_of(o, param)] - 1 : -1;
}

void tti_optim_note(tutti_optim *o, int i)
{
    o->table[entry_of(o, o->params[i])] = i + 1;
}

bool tti_optim_reserve(tutti_optim *o, size_t all)
{
    size_t size = 16;
    int *table;

    while (size < 2 * all)
        size *= 2;
    if (size <= o->table_size)
        return true;
    table = calloc(size, sizeof *table);
    if (table == NULL)
        return false;
    free(o->table);
    o->table = table;
    o->table_size = size;
    for (int i = 0; i < o->n; i++)
        tti_optim_note(o, i);
    return true;
}

void tti_optim_note_all(tutti_optim *o)
{
    memset(o->table, 0, o->table_size * sizeof *o->table);
    for (int i = 0; i < o->n; i++)
        tti_optim_note(o, i);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * partition.c - who gets which parameter: the largest first, each to the rank that has least so far.
 *
 * True    Loads are counted on from group to group, so that a group that comes later changes nothing before it. Equal
 *         sizes stay in their order, of equal ranks the lowest is taken: the answer is the same on all ranks. */
#include "zero/zero.h"

#include <stdlib.h>

typedef struct item {
    int64_t numel;
    int index;
} item;

static int larger_first(const void *a, const void *b)
{
    const item *x = a, *y = b;

    if (x->numel != y->numel)
        return x->numel > y->numel ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

bool tti_zero_partition(const int64_t *numel, int n, int size, int64_t *load, int *owner_out)
{
    item *items = malloc(((size_t)n + 1) * sizeof *items);

    if (items == NULL)
        return false;
    for (int i = 0; i < n; i++)
        items[i] = (item){ .numel = numel[i], .index = i };
    qsort(items, (size_t)n, sizeof *items, larger_first);
    for (int i = 0; i < n; i++) {
        int least = 0;

        for (int r = 1; r < size; r++)
            if (load[r] < load[least])
                least = r;
        load[least] += items[i].numel;
        owner_out[items[i].index] = least;
    }
    free(items);
    return true;
}

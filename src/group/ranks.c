/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ranks.c - which rank is which, of the group, of the world; which group has a name. */
#include "group/make.h"

#include <stdlib.h>
#include <string.h>

static int compare_ranks(const void *a, const void *b)
{
    const int x = *(const int *)a;
    const int y = *(const int *)b;

    return (x > y) - (x < y);
}

void tti_ranks_sort(int *ranks, int n)
{
    qsort(ranks, (size_t)n, sizeof ranks[0], compare_ranks);
}

int tti_rank_find(const int *sorted, int n, int rank)
{
    const int *at = bsearch(&rank, sorted, (size_t)n, sizeof sorted[0], compare_ranks);

    return at != NULL ? (int)(at - sorted) : -1;
}

int tti_group_find(const tutti_group *group, int global_rank)
{
    if (global_rank >= 0 && global_rank < group->size && group->ranks[global_rank] == global_rank)
        return global_rank; /* as in every world */
    return tti_rank_find(group->ranks, group->size, global_rank);
}

int tutti_get_rank(const tutti_group *group)
{
    const tutti_group *g = tti_group_peek(group);

    return g != NULL ? g->rank : -1;
}

int tutti_get_world_size(const tutti_group *group)
{
    const tutti_group *g = tti_group_peek(group);

    return g != NULL ? g->size : -1;
}

int tutti_get_global_rank(const tutti_group *group, int group_rank)
{
    const tutti_group *g = tti_group_peek(group);

    return g != NULL && group_rank >= 0 && group_rank < g->size ? g->ranks[group_rank] : -1;
}

int tutti_get_group_rank(const tutti_group *group, int global_rank)
{
    const tutti_group *g = tti_group_peek(group);

    return g != NULL ? tti_group_find(g, global_rank) : -1;
}

tutti_group *tutti_find_group(const char *name)
{
    const tutti_group *g = tti_group_peek(NULL);
    tutti_group       *found;

    if (g == NULL || name == NULL)
        return TUTTI_NO_GROUP;
    if (strcmp(g->world->name, name) == 0)
        return g->world;
    tti_lock(&g->runner->lock);
    for (found = g->world->children; found != NULL && strcmp(found->name, name) != 0;)
        found = found->next;
    tti_unlock(&g->runner->lock);
    return found != NULL ? found : TUTTI_NO_GROUP;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * new_group.c - groups of some ranks of the world. */
#include "group/make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

static tutti_status check_counts(const tutti_group *world, const int *ranks, int n_ranks)
{
    if (ranks == NULL && n_ranks != 0)
        return tti_fail(TUTTI_E_ARG, "new_group: ranks is NULL, but n_ranks is %d", n_ranks);
    if (ranks != NULL && n_ranks <= 0)
        return tti_fail(TUTTI_E_ARG,
                        "new_group: the list of ranks is empty (n_ranks is %d)\n"
                        "  next: NULL and 0 mean all ranks",
                        n_ranks);
    if (n_ranks > world->size)
        return tti_fail(TUTTI_E_ARG, "new_group: %d ranks, but the world has %d", n_ranks,
                        world->size);
    return TUTTI_OK;
}

/* Fill sorted[n] (all ranks of the world when ranks is NULL) and check it. */
static tutti_status sort_ranks(const tutti_group *world, const int *ranks, int *sorted, int n)
{
    int i;

    for (i = 0; i < n; i++)
        sorted[i] = ranks != NULL ? ranks[i] : i;
    tti_ranks_sort(sorted, n);
    for (i = 0; i < n; i++) {
        if (sorted[i] < 0 || sorted[i] >= world->size)
            return tti_fail(TUTTI_E_ARG, "new_group: rank %d is outside of 0 .. %d", sorted[i],
                            world->size - 1);
        if (i > 0 && sorted[i] == sorted[i - 1])
            return tti_fail(TUTTI_E_ARG, "new_group: rank %d is there twice", sorted[i]);
    }
    return TUTTI_OK;
}

/* Inherit from world, then apply opts; group->ranks is filled. Takes the next number. */
static tutti_status fill_child(tutti_group *group, tutti_group *world, uint32_t id,
                               const tutti_group_options *opts)
{
    group->world = world;
    group->runner = world->runner;
    group->ops = world->ops;
    group->id = id;
    group->timeout_ms = opts->timeout_ms != 0 ? opts->timeout_ms : world->timeout_ms;
    snprintf(group->name, sizeof group->name, "%u", id);
    snprintf(group->listen_host, sizeof group->listen_host, "%s", world->listen_host);
    if (opts->desc == NULL)
        return TUTTI_OK;
    group->desc = strdup(opts->desc);
    return group->desc != NULL ? TUTTI_OK : tti_fail(TUTTI_E_NOMEM, "no memory for a group's name");
}

uint32_t tti_group_take_number(tutti_group *world)
{
    uint32_t id;

    tti_lock(&world->runner->lock);
    id = world->n_made++;
    tti_unlock(&world->runner->lock);
    return id;
}

/* The rest of a child whose ranks are known to be good. */
static tutti_status open_child(tutti_group *group, tutti_group *world, uint32_t id,
                               const tutti_group_options *opts)
{
    tti_port    *port = world->runner->port;
    tutti_status st;

    st = fill_child(group, world, id, opts);
    if (st == TUTTI_OK)
        st = tti_group_open_stores(group, world->store);
    if (st != TUTTI_OK)
        return st;
    return tti_group_open_backend(group, tti_deadline(port, group->timeout_ms, group->timeout_ms));
}

tutti_status tti_group_create(tutti_group *world, const int *ranks, int n_ranks,
                              const tutti_group_options *opts, tutti_group **group_out)
{
    const int           n = ranks != NULL ? n_ranks : world->size;
    tutti_group_options known = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;
    tutti_status        st;
    uint32_t            id;

    st = tti_group_options_read("new_group", opts, &known);
    if (st == TUTTI_OK)
        st = check_counts(world, ranks, n_ranks);
    if (st == TUTTI_OK)
        st = tti_group_alloc(-1, n, &group);
    if (st != TUTTI_OK)
        return st;
    st = sort_ranks(world, ranks, group->ranks, n);
    if (st != TUTTI_OK)
        goto out;
    id = tti_group_take_number(world);
    group->rank = tti_rank_find(group->ranks, n, world->rank);
    if (group->rank < 0) {
        *group_out = TUTTI_NON_MEMBER;
        goto out;
    }
    st = open_child(group, world, id, &known);
    if (st != TUTTI_OK)
        goto out;
    tti_group_link(group);
    *group_out = group;
    return TUTTI_OK;

out:
    tti_group_free(group);
    return st;
}

tutti_status tutti_new_group(const int *ranks, int n_ranks, const tutti_group_options *opts,
                             tutti_group **group_out)
{
    tutti_group *world = NULL;
    tutti_status st;

    if (group_out == NULL)
        return tti_fail(TUTTI_E_ARG, "new_group: group_out is NULL");
    st = tti_group_world("new_group", &world);
    if (st == TUTTI_OK)
        st = tti_group_create(world, ranks, n_ranks, opts, group_out);
    if (st != TUTTI_OK)
        *group_out = TUTTI_NO_GROUP;
    return st;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * successor.c - making the group that some members of another one go on in.
 *
 * How     It has connections and shared memory of its own, and a random number of its own that every hello carries:
 *         whatever an excluded rank still does, say after it was stopped for an hour, happens in memory and on streams that
 *         nobody reads any more.
 *             a world     becomes a new world, which NULL means where it meant the old one
 *             a subgroup  becomes a group of the same world, and a carrier */
#include "regroup/successor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

static tti_join join_of(const tti_successor_plan *plan)
{
    tti_join join = { .store = plan->store, .user_store = true, .rank = plan->rank, .world_size = plan->n,
                      .timeout_ms = plan->timeout_ms, .deadline_ns = plan->deadline_ns,
                      .generation = plan->old->generation + 1 };

    snprintf(join.listen_host, sizeof join.listen_host, "%s", plan->listen_host);
    return join;
}

static tutti_status make_world(const tti_successor_plan *plan, const char *name, tutti_group **group_out)
{
    const tti_join    join = join_of(plan);
    const tti_backing backing = tti_backing_like(plan->old, plan->opts);
    tutti_group      *world = NULL;
    char             *desc = plan->opts->desc != NULL ? strdup(plan->opts->desc) : NULL;
    tutti_status      st;

    if (plan->opts->desc != NULL && desc == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a group's name");
    st = tti_world_found(plan->old->runner->port, &backing, &join, name, "0", plan->store, &world);
    if (st != TUTTI_OK) {
        free(desc);
        return st;
    }
    world->desc = desc;
    tutti_store_close(world->root); /* strangers know the old one's */
    world->root = tutti_store_retain(plan->old->root);
    snprintf(world->listen_host, sizeof world->listen_host, "%s", plan->old->listen_host);
    *group_out = world;
    return TUTTI_OK;
}

/* A group of the same world with connections of its own. */
static tutti_status open_carrier(tutti_group *group, const tti_successor_plan *plan, const char *name)
{
    tutti_group *old = plan->old;
    tutti_status st = tti_group_inherit(group, old, plan->opts);
    int          i;

    group->carrier = group;
    for (i = 0; i < plan->n; i++)
        group->ranks[i] = old->ranks[plan->ranks[i]];
    if (st == TUTTI_OK)
        st = tti_group_name_by_text(group, name);
    if (st == TUTTI_OK)
        st = tti_group_open_stores(group, "0", plan->store);
    snprintf(group->listen_host, sizeof group->listen_host, "%s", plan->listen_host);
    if (st == TUTTI_OK)
        st = tti_group_open_backend(group, plan->deadline_ns, TTI_OPEN_ALONE);
    snprintf(group->listen_host, sizeof group->listen_host, "%s", old->listen_host);
    return st;
}

static tutti_status make_subgroup(const tti_successor_plan *plan, const char *name, tutti_group **group_out)
{
    tutti_group *group = NULL;
    tutti_status st = tti_group_alloc(plan->rank, plan->n, &group);

    if (st == TUTTI_OK)
        st = open_carrier(group, plan, name);
    if (st != TUTTI_OK) {
        tti_group_free(group);
        return st;
    }
    tti_group_link(group);
    *group_out = group;
    return TUTTI_OK;
}

tutti_status tti_successor_make(const tti_successor_plan *plan, tutti_group **group_out)
{
    char name[TTI_GROUP_NAME_MAX + 8];

    snprintf(name, sizeof name, "%s:shrink", plan->old->name);
    return plan->old->world == plan->old ? make_world(plan, name, group_out) : make_subgroup(plan, name, group_out);
}

void tti_successor_take_over(tutti_group *old, tutti_group *group, int *former)
{
    group->former = former;
    if (old->world == old) {
        if (group->root_server == NULL)
            group->root_server = tutti_store_retain(old->root_server);
        tti_world_succeed(old, group);
    } else { /* its members have left it */
        tti_served_free(old->served);
        old->served = NULL;
    }
    tti_group_destroy(old);
}

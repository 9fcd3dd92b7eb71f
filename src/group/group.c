/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group.c - the object: what a group has, how its parts are opened, its end.
 *
 * Names   A world is "0". Its children are "1", "2", ... in the order of creation: every rank of the
 *         world counts every one, also those it is not in, so that all agree without asking.
 * Keys    What a group puts into the store stands below its name, inside of its world's, with the
 *         device before a backend's own (route.c): "default_pg/0//cpu//k", "default_pg/0//1//cpu//k".
 * Carrier A group uses the connections of its world, unless it has its own (shrink.c): then it is a
 *         carrier, too, and groups made out of it use those.
 * True    A child holds its world's runner by being in the world: children end before it, and before
 *         their carrier.
 * Source  torch.distributed's names and layout, so that what a store holds looks familiar. */
#include "group/make.h"
#include "backend/registry.h"
#include "group/compound.h"
#include "group/recorded.h"
#include "group/scope.h"
#include "watch/bulletin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

/* ---- its parts ---- */

tutti_status tti_group_alloc(int rank, int size, tutti_group **group_out)
{
    tutti_group *group = calloc(1, sizeof *group);
    int         *ranks = calloc((size_t)size, sizeof *ranks);

    if (group == NULL || ranks == NULL) {
        free(group);
        free(ranks);
        return tti_fail(TUTTI_E_NOMEM, "no memory for a group of %d", size);
    }
    tti_fork_watch();
    group->age = tti_fork_age();
    group->world = group;
    group->carrier = group;
    group->rank = rank;
    group->size = size;
    group->ranks = ranks;
    group->numbers = group->n_made = 1;
    tti_queue_init(group);
    *group_out = group;
    return TUTTI_OK;
}

void tti_served_free(tti_served *served)
{
    tti_served *next;

    for (; served != NULL; served = next) {
        next = served->next;
        tutti_store_close(served->store);
        free(served);
    }
}

void tti_group_free(tutti_group *group)
{
    if (group == NULL)
        return;
    tti_recorded_group_end(group);
    tti_hooks_drop(group->hooks);
    tutti_store_close(group->store);
    tutti_store_close(group->root);
    tutti_store_close(group->root_server);
    tti_served_free(group->served);
    tti_bulletin_close(group->bulletin);
    tti_local_names_free(group->local_names);
    tti_compound_room_release(group);
    free(group->straggler);
    free(group->former);
    free(group->ranks);
    free(group->desc);
    free(group);
}

tutti_status tti_group_open_stores(tutti_group *group, const char *key, tutti_store *parent)
{
    char         prefix[TTI_GROUP_NAME_MAX + 2];
    tutti_status st;

    snprintf(prefix, sizeof prefix, "%s/", key);
    st = tutti_prefix_store_open(prefix, parent, &group->store);
    if (st != TUTTI_OK)
        return st;
    return TUTTI_OK;
}

tutti_status tti_group_inherit(tutti_group *group, const tutti_group *like,
                               const tutti_group_options *opts)
{
    const tti_backing backing = tti_backing_like(like, opts);
    tutti_status      st;

    group->world = like->world;
    group->carrier = like->carrier;
    group->runner = like->runner;
    group->timed = opts->enable_timing;
    group->timeout_ms = opts->timeout_ms != 0 ? opts->timeout_ms : like->timeout_ms;
    snprintf(group->listen_host, sizeof group->listen_host, "%s", like->listen_host);
    st = tti_routes_find(group, &backing);
    if (st != TUTTI_OK || opts->desc == NULL)
        return st;
    group->desc = strdup(opts->desc);
    return group->desc != NULL ? TUTTI_OK : tti_fail(TUTTI_E_NOMEM, "no memory for a group's name");
}

/* The members as ranks of the connections. */
static void fill_carried(const tutti_group *group, int *ranks)
{
    const bool carried = group->carrier != group && tti_backend_inside(group->ops) == tti_backend_inside(group->carrier->ops);
    int        i;

    for (i = 0; i < group->size; i++)
        ranks[i] = carried ? tti_group_find(group->carrier, group->ranks[i]) : i;
}

tutti_status tti_group_open_backend(tutti_group *group, int64_t deadline_ns, tti_opening opening)
{
    const int64_t        left_ms = tti_left_ms(group->runner->port, deadline_ns);
    int                 *carried = malloc((size_t)group->size * sizeof *carried);
    tutti_backend_config config = {
        .size = sizeof config,
        .rank = group->rank,
        .n_ranks = group->size,
        .global_ranks = carried,
        .group_id = group->id,
        .name = group->name,
        .timeout_ms = left_ms != 0 ? left_ms : 1, /* too late: let the backend say who is missing */
        .listen_host = group->listen_host,
        .lazy = opening == TTI_OPEN_LAZILY,
        .heeds_parent = opening == TTI_OPEN_IN_WORLD,
    };
    tutti_status st;

    if (carried == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a group of %d", group->size);
    fill_carried(group, carried);
    tti_lock(&group->runner->lock);
    config.has_queued = group->runner->has_compounds;
    tti_unlock(&group->runner->lock);
    st = tti_detail_log_attach(group);
    if (st == TUTTI_OK)
        st = tti_routes_open(group, &config);
    if (st == TUTTI_OK && (group->world == group || group->place.slot == NULL)) /* else its maker has */
        tti_recorded_group_begin(group);
    free(carried);
    return st;
}

/* ---- among its world's ---- */

void tti_group_link(tutti_group *group)
{
    tutti_group *world = group->world;

    tti_lock(&world->runner->lock);
    group->next = world->children;
    world->children = group;
    tti_unlock(&world->runner->lock);
}

static void unlink_child(tutti_group *world, const tutti_group *group)
{
    tutti_group **at;

    tti_lock(&world->runner->lock);
    for (at = &world->children; *at != group; at = &(*at)->next)
        continue;
    *at = group->next;
    tti_unlock(&world->runner->lock);
}

/* ---- ending ---- */

static void destroy_one(tutti_group *group)
{
    tutti_work *messages;

    tti_scope_abandon(group);
    tti_queue_close(group, &tti_closing_destroyed);
    messages = tti_messages_take(group);
    tti_windows_end(group);
    if (group->world == group)
        tti_runner_stop(group->runner);
    tti_routes_close(group);
    tti_messages_give(messages);
    if (group->world == group)
        tti_callbacks_stop(group->runner);
    tti_group_free(group);
}

/* The newest child of world, or (carrier not NULL) the newest that uses carrier's connections. */
static tutti_group *find_child(tutti_group *world, const tutti_group *carrier)
{
    tutti_group *child;

    tti_lock(&world->runner->lock);
    child = world->children;
    while (child != NULL && carrier != NULL && (child == carrier || child->carrier != carrier))
        child = child->next;
    tti_unlock(&world->runner->lock);
    return child;
}

static void destroy_children(tutti_group *world, const tutti_group *carrier)
{
    tutti_group *child;

    while ((child = find_child(world, carrier)) != NULL) {
        unlink_child(world, child);
        destroy_one(child);
    }
}

/* Leave the store that is served for group to its world. */
static void hand_over_store(tutti_group *group)
{
    tutti_group *world = group->world;

    if (group->served == NULL)
        return;
    tti_lock(&world->runner->lock);
    group->served->next = world->served;
    world->served = group->served;
    tti_unlock(&world->runner->lock);
    group->served = NULL;
}

void tti_group_end_meshes(tutti_group *world)
{
    if (world->meshes != NULL)
        world->end_meshes(world);
}

void tti_group_destroy(tutti_group *group)
{
    tti_runner *runner = group->runner;

    if (group->world != group) {
        if (group->carrier == group)
            destroy_children(group->world, group);
        unlink_child(group->world, group);
        hand_over_store(group);
        destroy_one(group);
        return;
    }
    tti_group_end_meshes(group);
    destroy_children(group, NULL);
    destroy_one(group);
    tti_runner_drop(runner);
}

void tti_group_close_all(tutti_group *group, const tti_closing *why)
{
    tutti_group *child;

    tti_lock(&group->runner->lock);
    for (child = group->world->children; child != NULL; child = child->next) {
        if (child == group || (group->world != group && child->carrier != group))
            continue;
        tti_unlock(&group->runner->lock);
        tti_queue_close(child, why);
        tti_lock(&group->runner->lock);
    }
    tti_unlock(&group->runner->lock);
    tti_queue_close(group, why);
}

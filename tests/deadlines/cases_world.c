/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cases_world.c - making worlds, groups and meshes. Each has a world of its own, since it counts what is made. */
#include "deadlines.h"

#include <stdio.h>

/* ---- worlds ---- */

static tutti_status join_alone(tt_cell *c, tutti_status (*join)(const tutti_init_options *opts, tt_cell *c))
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    char               name[32];

    snprintf(name, sizeof name, "alone%d-%d", c->number, c->pass);
    opts.init_method = c->t->init_method;
    opts.group_name = name;
    opts.timeout_ms = TT_DEADLINE_MS;
    return join(&opts, c);
}

static tutti_status create(const tutti_init_options *opts, tt_cell *c)
{
    (void)c;
    return tutti_create_process_group(opts, &(tutti_group *){ NULL });
}

/* The process has a world: it is taken away meanwhile. */
static tutti_status init(const tutti_init_options *opts, tt_cell *c)
{
    (void)c;
    return tutti_init_process_group(opts);
}

TT_CASE(tutti_create_process_group, .on = TT_ON_NOTHING)
{
    return join_alone(c, create);
}

TT_CASE(tutti_init_process_group, .on = TT_ON_NOTHING)
{
    return join_alone(c, init);
}

TT_CASE(tutti_reconfigure, .on = TT_ON_WORLD)
{
    tutti_reconfigure_options opts = TUTTI_RECONFIGURE_OPTIONS;
    const char               *handles[2];

    handles[c->me] = tutti_get_reconfigure_handle(c->group);
    handles[c->peer] = "tutti:native:nowhere:1:0123456789abcdef0123456789abcdef";
    opts.uuid = 1 + c->number * 8 + c->pass;
    opts.handles = handles;
    opts.n_handles = 2;
    opts.timeout_ms = TT_DEADLINE_MS;
    return tutti_reconfigure(c->group, &opts);
}

/* ---- groups ---- */

static tutti_status dropped(tutti_status st, tutti_group *made)
{
    if (st == TUTTI_OK)
        tutti_destroy_process_group(made);
    return st;
}

TT_CASE(tutti_new_group, .on = TT_ON_WORLD)
{
    tutti_group *made = NULL;

    (void)c;
    return dropped(tutti_new_group(NULL, 0, NULL, &made), made);
}

TT_CASE(tutti_new_subgroups, .on = TT_ON_WORLD)
{
    tutti_group *made = NULL;

    (void)c;
    return dropped(tutti_new_subgroups(2, NULL, &made), made);
}

TT_CASE(tutti_new_subgroups_by_enumeration, .on = TT_ON_WORLD)
{
    static const int  both[2] = { 0, 1 }, n = 2;
    const int *const  lists[1] = { both };
    tutti_group      *made = NULL;

    (void)c;
    return dropped(tutti_new_subgroups_by_enumeration(lists, &n, 1, NULL, &made), made);
}

TT_CASE(tutti_split_group, .on = TT_ON_WORLD)
{
    static const int  both[2] = { 0, 1 }, n = 2;
    const int *const  lists[1] = { both };
    tutti_group      *made = NULL;

    return dropped(tutti_split_group(c->group, lists, &n, 1, NULL, &made), made);
}

TT_CASE(tutti_split_group_by_color, .on = TT_ON_WORLD)
{
    tutti_group *made = NULL;

    return dropped(tutti_split_group_by_color(c->group, 1, NULL, &made), made);
}

TT_CASE(tutti_merge_remote_group, .on = TT_ON_WORLD)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_store        *store = NULL;
    tutti_group        *made = NULL;
    tutti_status        st = tutti_hash_store_open(&store);

    opts.timeout_ms = TT_DEADLINE_MS;
    if (st == TUTTI_OK)
        st = dropped(tutti_merge_remote_group(c->group, store, 4, &opts, &made), made);
    tutti_store_close(store);
    return st;
}

TT_CASE(tutti_grow_group, .on = TT_ON_WORLD)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *made = NULL;

    opts.timeout_ms = TT_DEADLINE_MS;
    return dropped(tutti_grow_group(c->group, NULL, 1, &opts, &made), made);
}

/* There are no members: whom it waits for it cannot know. */
TT_CASE(tutti_join_group, .on = TT_ON_STORE, .names_nobody = true)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_group       *made = NULL;

    opts.store = c->store;
    opts.timeout_ms = TT_DEADLINE_MS;
    return dropped(tutti_join_group(&opts, "nobody", &made), made);
}

/* ---- meshes ---- */

static tutti_status made_mesh(tutti_status st, tutti_device_mesh *mesh)
{
    if (st == TUTTI_OK)
        tutti_device_mesh_free(mesh);
    return st;
}

static tutti_status make_mesh(tt_cell *c)
{
    static const int         shape[2] = { 1, 2 };
    static const char *const names[2] = { "a", "b" };

    return tutti_init_device_mesh(TUTTI_CPU, shape, 2, names, (tutti_device_mesh **)&c->made);
}

TT_CASE(tutti_init_device_mesh, .on = TT_ON_WORLD)
{
    static const int   shape[1] = { 2 };
    tutti_device_mesh *mesh = NULL;

    (void)c;
    return made_mesh(tutti_init_device_mesh(TUTTI_CPU, shape, 1, NULL, &mesh), mesh);
}

TT_CASE(tutti_device_mesh_create, .on = TT_ON_WORLD)
{
    static const int   ranks[2] = { 0, 1 }, shape[1] = { 2 };
    tutti_device_mesh *mesh = NULL;

    (void)c;
    return made_mesh(tutti_device_mesh_create(TUTTI_CPU, ranks, shape, 1, NULL, NULL, &mesh), mesh);
}

TT_CASE(tutti_device_mesh_flatten, .on = TT_ON_WORLD, .prepare = make_mesh)
{
    tutti_device_mesh *mesh = NULL;

    return made_mesh(tutti_device_mesh_flatten(c->made, "flat", &mesh), mesh);
}

TT_CASE(tutti_device_mesh_unflatten, .on = TT_ON_WORLD, .prepare = make_mesh)
{
    static const int   sizes[2] = { 2, 1 };
    static const char *const names[2] = { "c", "d" };
    tutti_device_mesh *mesh = NULL;

    return made_mesh(tutti_device_mesh_unflatten(c->made, 1, sizes, 2, names, &mesh), mesh);
}

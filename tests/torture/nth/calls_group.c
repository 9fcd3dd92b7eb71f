/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calls_group.c - groups of a world, and meshes. NULL means the actor's world meanwhile. */
#include "scenarios.h"

static void a_sum(tt_actor *a, tutti_group *group, const char *wrong)
{
    float *x = tt_room(a, 1);

    *x = 1.0f;
    if (THEN(tutti_all_reduce(TUTTI_SPAN(x, 1), TUTTI_SUM, group)))
        tt_must_be(a, *x == (float)tutti_get_world_size(group), wrong);
}

static void drop(tt_actor *a, tutti_group *group)
{
    if (!a->failed)
        TRY(tutti_destroy_process_group(group));
}

static void more_groups(tt_actor *a)
{
    const int           all[] = { 0, 1, 2 };
    tutti_group_options local = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL, *part = NULL, *here = NULL;

    local.use_local_synchronization = true;
    tutti_use_group(a->group);
    (void)THEN(tutti_new_group(all, a->size, NULL, &group));
    a_sum(a, group, "wrong sum in a new group");
    if (THEN(tutti_split_group_by_color(a->group, a->rank == 0, NULL, &part)))
        TRY(tutti_barrier(part));
    (void)THEN(tutti_new_group(all, a->size, &local, &here));
    a_sum(a, here, "wrong sum in a group that its members alone have made");
    drop(a, group);
    tutti_use_group(NULL);
}

static void subgroups(tt_actor *a)
{
    static const int  both[2] = { 0, 1 }, n = 2;
    const int *const  lists[1] = { both };
    tutti_group      *pair = NULL, *named = NULL, *split = NULL;

    tutti_use_group(a->group);
    (void)THEN(tutti_new_subgroups(2, NULL, &pair));
    a_sum(a, pair, "wrong sum in a subgroup");
    (void)THEN(tutti_new_subgroups_by_enumeration(lists, &n, 1, NULL, &named));
    a_sum(a, named, "wrong sum in a subgroup of a list");
    (void)THEN(tutti_split_group(a->group, lists, &n, 1, NULL, &split));
    a_sum(a, split, "wrong sum in a split");
    drop(a, split);
    drop(a, named);
    drop(a, pair);
    tutti_use_group(NULL);
}

/* ---- meshes ---- */

static void sum_along(tt_actor *a, tutti_device_mesh *mesh, int dim, const char *wrong)
{
    tutti_group *group = NULL;

    if (THEN(tutti_device_mesh_get_group(mesh, dim, &group)))
        a_sum(a, group, wrong);
}

static void meshes(tt_actor *a)
{
    const int          shape[] = { 1, a->size };
    const char *const  names[] = { "one", "all" };
    tutti_device_mesh *mesh = NULL;

    tutti_use_group(a->group);
    (void)THEN(tutti_init_device_mesh(TUTTI_CPU, shape, 2, names, &mesh));
    sum_along(a, mesh, 1, "wrong sum along a mesh");
    tutti_device_mesh_free(mesh);
    tutti_use_group(NULL);
}

static void meshes_of_meshes(tt_actor *a)
{
    const int                shape[] = { a->size, 1 }, ranks[] = { 0, 1 }, sizes[] = { 1, a->size };
    const char *const        names[] = { "dp", "tp" }, *const parts[] = { "a", "b" }, *const one[] = { "whole" };
    tutti_device_mesh       *mesh = NULL, *flat = NULL, *split = NULL, *slices[2] = { NULL }, *both = NULL, *around = NULL;

    tutti_use_group(a->group);
    (void)THEN(tutti_device_mesh_create(TUTTI_CPU, ranks, shape, 2, names, NULL, &mesh));
    (void)THEN(tutti_device_mesh_flatten(mesh, "flat", &flat));
    sum_along(a, flat, 0, "wrong sum along what was flattened");
    (void)THEN(tutti_device_mesh_unflatten(mesh, 0, sizes, 2, parts, &split));
    sum_along(a, split, 1, "wrong sum along what was split");
    (void)THEN(tutti_device_mesh_slice(mesh, &names[0], 1, &slices[0]));
    (void)THEN(tutti_device_mesh_slice(mesh, &names[1], 1, &slices[1]));
    (void)THEN(tutti_device_mesh_concatenate(slices, 2, &both));
    sum_along(a, both, 0, "wrong sum along what was put together");
    (void)THEN(tutti_device_mesh_from_group(&a->group, 1, TUTTI_CPU, NULL, NULL, one, &around));
    sum_along(a, around, 0, "wrong sum along a mesh of a group");
    tutti_device_mesh_free(around);
    tutti_device_mesh_free(both);
    tutti_device_mesh_free(slices[0]);
    tutti_device_mesh_free(slices[1]);
    tutti_device_mesh_free(split);
    tutti_device_mesh_free(flat);
    tutti_device_mesh_free(mesh);
    tutti_use_group(NULL);
}

static const tt_scenario scenarios[] = {
    TT_PLAY("groups", 2, more_groups),
    TT_PLAY("subgroups", 2, subgroups),
    TT_PLAY("meshes", 2, meshes),
    TT_PLAY("meshes of meshes", 2, meshes_of_meshes),
};

TT_FAMILY(tt_group_calls, "groups", scenarios);

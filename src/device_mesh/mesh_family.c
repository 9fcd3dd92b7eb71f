/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mesh_family.c - the ranks of a mesh, its dimensions, and when its groups end.
 *
 * True    A family is in its world's list until one of the two ends: then either the groups are
 *         ended by the family, or the family has none any more. */
#include "device_mesh/mesh_family.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

/* ---- axes ---- */

tutti_status tti_mesh_axis_create(tti_mesh_dims dims, const char *name, tti_mesh_axis **axis_out)
{
    tti_mesh_axis *axis = calloc(1, sizeof *axis);
    char          *copy = name != NULL ? strdup(name) : NULL;

    if (axis == NULL || (name != NULL && copy == NULL)) {
        free(axis);
        free(copy);
        return tti_fail(TUTTI_E_NOMEM, "no memory for a dimension of a device mesh");
    }
    *axis = (tti_mesh_axis){ .dims = dims, .name = copy, .group = TUTTI_NON_MEMBER };
    *axis_out = axis;
    return TUTTI_OK;
}

void tti_mesh_axis_free(tti_mesh_axis *axis)
{
    if (axis->owned && axis->group != TUTTI_NO_GROUP)
        tutti_destroy_process_group(axis->group);
    free(axis->name);
    free(axis);
}

void tti_mesh_family_append(tti_mesh_family *family, tti_mesh_axis *axis)
{
    tti_mesh_axis **at;

    tti_lock(&family->lock);
    for (at = &family->axes; *at != NULL; at = &(*at)->next)
        continue;
    *at = axis;
    tti_unlock(&family->lock);
}

tti_mesh_axis *tti_mesh_family_find(tti_mesh_family *family, tti_mesh_dims within, const char *name)
{
    tti_mesh_axis *axis;

    tti_lock(&family->lock);
    for (axis = family->axes; axis != NULL; axis = axis->next)
        if ((axis->dims & ~within) == 0 && axis->name != NULL && strcmp(axis->name, name) == 0)
            break;
    tti_unlock(&family->lock);
    return axis;
}

/* ---- checks of a plan ---- */

static tutti_status check_names(const tti_mesh_plan *plan)
{
    int i;
    int j;

    if (plan->names == NULL)
        return TUTTI_OK;
    for (i = 0; i < plan->ndim; i++) {
        if (plan->names[i] == NULL || plan->names[i][0] == '\0')
            return tti_fail(TUTTI_E_ARG,
                            "device mesh: dimension %d has no name\n"
                            "  next: name all dimensions or, with NULL, none",
                            i);
        for (j = 0; j < i; j++)
            if (strcmp(plan->names[i], plan->names[j]) == 0)
                return tti_fail(TUTTI_E_ARG,
                                "device mesh: dimensions %d and %d are both named '%s'", j, i,
                                plan->names[i]);
    }
    return TUTTI_OK;
}

static tutti_status check_size(const tutti_group *world, int size)
{
    if (size > world->size)
        return tti_fail(TUTTI_E_ARG,
                        "device mesh: its shape has %d ranks, but the world has %d\n"
                        "  next: start %d ranks, or make the mesh smaller",
                        size, world->size, size);
    return TUTTI_OK;
}

static tutti_status check_plan(const tutti_group *world, const tti_mesh_plan *plan,
                               tti_mesh_layout *layout)
{
    tutti_status st;

    st = tti_route_check(world, "device mesh", "the mesh", plan->device_type);
    if (st != TUTTI_OK)
        return st;
    st = tti_mesh_layout_init(layout, plan->shape, plan->ndim);
    if (st == TUTTI_OK)
        st = check_names(plan);
    if (st == TUTTI_OK)
        st = check_size(world, layout->size);
    return st;
}

/* Copy the ranks; each must be of the world, and be there once. */
static tutti_status fill_ranks(tti_mesh_family *family, const int *ranks)
{
    tutti_status st = TUTTI_OK;
    const int    n_world = family->world->size;
    bool        *seen = calloc((size_t)n_world, sizeof *seen);
    int          i;

    family->ranks = malloc((size_t)family->layout.size * sizeof family->ranks[0]);
    if (seen == NULL || family->ranks == NULL)
        st = tti_fail(TUTTI_E_NOMEM, "no memory for a device mesh of %d", family->layout.size);
    for (i = 0; i < family->layout.size && st == TUTTI_OK; i++) {
        const int rank = ranks != NULL ? ranks[i] : i;

        family->ranks[i] = rank;
        if (rank < 0 || rank >= n_world)
            st = tti_fail(TUTTI_E_ARG, "device mesh: rank %d is outside of 0 .. %d", rank,
                          n_world - 1);
        else if (seen[rank])
            st = tti_fail(TUTTI_E_ARG, "device mesh: rank %d is there twice", rank);
        else
            seen[rank] = true;
        if (rank == family->rank)
            family->position = i;
    }
    free(seen);
    return st;
}

/* ---- the object ---- */

/* The world ends: its groups are no more. */
static void end_families(tutti_group *world)
{
    tti_mesh_family *family = world->meshes;
    tti_mesh_axis   *axis;

    for (; family != NULL; family = family->next) {
        family->world = NULL;
        for (axis = family->axes; axis != NULL; axis = axis->next)
            axis->group = TUTTI_NO_GROUP;
    }
    world->meshes = NULL;
}

static void link_family(tti_mesh_family *family)
{
    tutti_group *world = family->world;

    tti_lock(&world->runner->lock);
    family->next = world->meshes;
    world->meshes = family;
    world->end_meshes = end_families;
    tti_unlock(&world->runner->lock);
}

static void unlink_family(tti_mesh_family *family)
{
    tutti_group      *world = family->world;
    tti_mesh_family **at;

    tti_lock(&world->runner->lock);
    for (at = &world->meshes; *at != family; at = &(*at)->next)
        continue;
    *at = family->next;
    tti_unlock(&world->runner->lock);
}

static tutti_status fill_family(tti_mesh_family *family, const tti_mesh_plan *plan,
                                const tutti_group_options *opts)
{
    tti_mesh_axis *axis = NULL;
    tutti_status   st = fill_ranks(family, plan->ranks);
    int            d;

    for (d = 0; d < plan->ndim && st == TUTTI_OK; d++) {
        st = tti_mesh_axis_create((tti_mesh_dims)1 << d,
                                  plan->names != NULL ? plan->names[d] : NULL, &axis);
        if (st == TUTTI_OK)
            tti_mesh_family_append(family, axis);
    }
    if (st != TUTTI_OK)
        return st;
    family->timeout_ms = opts->timeout_ms;
    family->desc = strdup(opts->desc != NULL ? opts->desc : "mesh");
    return family->desc != NULL ? TUTTI_OK
                                : tti_fail(TUTTI_E_NOMEM, "no memory for a mesh's description");
}

tutti_status tti_mesh_family_create(tutti_group *world, const tti_mesh_plan *plan,
                                    tti_mesh_family **family_out)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tti_mesh_family    *family;
    tti_mesh_layout     layout;
    tutti_status        st;

    st = tti_group_options_read("device mesh", plan->opts, &opts);
    if (st == TUTTI_OK)
        st = check_plan(world, plan, &layout);
    if (st != TUTTI_OK)
        return st;
    family = calloc(1, sizeof *family);
    if (family == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a device mesh");
    *family = (tti_mesh_family){
        .refs = 1,
        .device_type = plan->device_type,
        .layout = layout,
        .rank = world->rank,
        .position = -1,
        .world = world,
    };
    tti_mutex_init(&family->lock);
    link_family(family);
    st = fill_family(family, plan, &opts);
    if (st != TUTTI_OK)
        return tti_mesh_family_give_up(family, st);
    *family_out = family;
    return TUTTI_OK;
}

void tti_mesh_family_retain(tti_mesh_family *family)
{
    atomic_fetch_add_explicit(&family->refs, 1, memory_order_relaxed);
}

tutti_status tti_mesh_check_world(const tti_mesh_family *family)
{
    if (family->world == NULL)
        return tti_fail(TUTTI_E_STATE, "device mesh: its world was destroyed");
    if (tti_is_inherited(family->world->age))
        return tti_fail_inherited("device mesh", "group", family->world->name);
    return TUTTI_OK;
}

void tti_mesh_family_drop(tti_mesh_family *family)
{
    tti_mesh_family *parent = family->parent;
    tti_mesh_axis   *axis;
    tti_mesh_axis   *next;

    if (atomic_fetch_sub_explicit(&family->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (family->world != NULL && !tti_is_inherited(family->world->age))
        unlink_family(family); /* what a parent made a child of fork() leaves alone */
    for (axis = family->axes; axis != NULL; axis = next) {
        next = axis->next;
        tti_mesh_axis_free(axis);
    }
    tti_mutex_release(&family->lock);
    free(family->ranks);
    free(family->desc);
    free(family);
    if (parent != NULL)
        tti_mesh_family_drop(parent);
}

tutti_status tti_mesh_family_give_up(tti_mesh_family *family, tutti_status status)
{
    char words[TTI_GROUP_WORDS_MAX];

    snprintf(words, sizeof words, "%s", tutti_last_error());
    tti_mesh_family_drop(family);
    return tti_fail(status, "%s", words);
}

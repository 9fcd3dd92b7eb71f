/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mesh_derive.c - meshes out of meshes: one dimension into several, several meshes into one.
 *
 * How     Slices that are put together are a list of axes of the family they share: nothing is made.
 *         Splitting a dimension needs a finer grid, so it makes a new family: one dimension for all
 *         that the mesh leaves out, which nobody sees or has a group along, and then the dimensions
 *         of the mesh, with the parts in place of the one that is split. All ranks of the old root are
 *         in it, each list of them once, so all ranks of the world describe the same thing.
 * True    Dimensions that stay as they are share their groups; the new family holds the old one, whose
 *         groups they are. Only the new dimensions get groups. */
#include "device_mesh/mesh_object.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

/* ---- several into one ---- */

static tutti_status append_axes(const tutti_device_mesh *mesh, const tti_mesh_axis **axes, int *n)
{
    int d;

    for (d = 0; d < mesh->ndim; d++) {
        if (*n > 0 && !tti_mesh_before(axes[*n - 1]->dims, mesh->axes[d]->dims))
            return tti_fail(
                TUTTI_E_ARG,
                "device mesh: dimension '%s' does not come after '%s' in their root\n"
                "  next: concatenate meshes of different dimensions, in the order of the root",
                mesh->axes[d]->name != NULL ? mesh->axes[d]->name : "(no name)",
                axes[*n - 1]->name != NULL ? axes[*n - 1]->name : "(no name)");
        axes[(*n)++] = mesh->axes[d]; /* in order, so no more of them than the root has */
    }
    return TUTTI_OK;
}

tutti_status tutti_device_mesh_concatenate(tutti_device_mesh *const *meshes, int n_meshes,
                                           tutti_device_mesh **mesh_out)
{
    const tti_mesh_axis *axes[TUTTI_MESH_DIMS_MAX] = { 0 };
    tutti_status st = TUTTI_OK;
    int n = 0;
    int i;

    if (mesh_out == NULL || meshes == NULL || n_meshes < 1)
        return tti_fail(TUTTI_E_ARG, "device mesh: meshes or mesh_out is NULL, or n_meshes is %d",
                        n_meshes);
    for (i = 0; i < n_meshes && st == TUTTI_OK; i++) {
        if (meshes[i] == NULL || meshes[i]->family != meshes[0]->family)
            return tti_fail(TUTTI_E_ARG,
                            "device mesh: mesh %d is not of the same root as the first", i);
        st = append_axes(meshes[i], axes, &n);
    }
    if (st != TUTTI_OK)
        return st;
    if (n_meshes > 1)
        return tti_mesh_create(meshes[0]->family, axes, n, mesh_out);
    *mesh_out = tti_mesh_retain(meshes[0]);
    return TUTTI_OK;
}

/* ---- one into several ---- */

/* What is to be split into what. */
typedef struct split {
    const tutti_device_mesh *mesh;
    int dim;
    const int *sizes;
    const char *const *names; /* NULL: none */
    int n;
} split;

/* The grid of the new family. */
typedef struct grid {
    int hidden; /* 1: its first dimension is all that the mesh leaves out */
    int ndim;
    int shape[TUTTI_MESH_DIMS_MAX];
    const char *names[TUTTI_MESH_DIMS_MAX];
    int *ranks; /* owned */
} grid;

static tutti_status check_split(const split *s)
{
    const tutti_device_mesh *mesh = s->mesh;
    int64_t size = 1;
    int i;

    if (s->dim < 0 || s->dim >= mesh->ndim)
        return tti_fail(TUTTI_E_ARG, "device mesh: dimension %d is outside of 0 .. %d", s->dim,
                        mesh->ndim - 1);
    if (s->sizes == NULL || s->n < 1)
        return tti_fail(TUTTI_E_ARG, "device mesh: a dimension cannot be split into %d", s->n);
    for (i = 0; i < s->n; i++) {
        size = s->sizes[i] >= 1 && size <= mesh->size ? size * s->sizes[i] : 0;
        if (size == 0)
            break;
    }
    if (size != mesh->shape[s->dim])
        return tti_fail(TUTTI_E_ARG,
                        "device mesh: the sizes of the parts do not multiply to %d, the size of "
                        "dimension %d",
                        mesh->shape[s->dim], s->dim);
    if ((s->names != NULL) != (mesh->axes[0]->name != NULL))
        return tti_fail(TUTTI_E_ARG, "device mesh: the mesh has %s names, and its parts have %s",
                        s->names != NULL ? "no" : "", s->names != NULL ? "some" : "none");
    if (mesh->ndim + s->n > TUTTI_MESH_DIMS_MAX) /* one less, and perhaps the hidden one */
        return tti_fail(TUTTI_E_UNSUPPORTED, "device mesh: %d dimensions, %d are the most",
                        mesh->ndim - 1 + s->n, TUTTI_MESH_DIMS_MAX - 1);
    return tti_mesh_check_world(mesh->family);
}

static void add_dim(grid *g, int size, const char *name)
{
    g->shape[g->ndim] = size;
    g->names[g->ndim++] = name;
}

static tutti_status lay_out(const split *s, grid *g)
{
    const tutti_device_mesh *mesh = s->mesh;
    const tti_mesh_layout *layout = &mesh->family->layout;
    const tti_mesh_dims others = tti_mesh_all(layout) & ~mesh->dims;
    const int n_others = tti_mesh_extent(layout, others);
    int d;
    int i;

    g->hidden = n_others > 1 ? 1 : 0;
    if (g->hidden)
        add_dim(g, n_others, "(others)");
    for (d = 0; d < mesh->ndim; d++) {
        if (d != s->dim)
            add_dim(g, mesh->shape[d], mesh->axes[d]->name);
        for (i = 0; i < s->n && d == s->dim; i++)
            add_dim(g, s->sizes[i], s->names != NULL ? s->names[i] : NULL);
    }
    g->ranks = malloc((size_t)n_others * (size_t)mesh->size * sizeof g->ranks[0]);
    if (g->ranks == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a device mesh of %d", layout->size);
    for (i = 0; i < n_others * mesh->size; i++)
        g->ranks[i] = mesh->family->ranks[tti_mesh_at(layout, others, i / mesh->size) +
                                          tti_mesh_at(layout, mesh->dims, i % mesh->size)];
    return TUTTI_OK;
}

/* Give the new family's dimensions their groups: those of the mesh, and new ones for the parts. */
static tutti_status connect_grid(tti_mesh_family *family, const split *s, const grid *g)
{
    tti_mesh_axis *axis = family->axes;
    tti_mesh_dims parts = 0;
    int d = -g->hidden;

    for (; axis != NULL; axis = axis->next, d++) {
        if (d >= s->dim && d < s->dim + s->n)
            parts |= axis->dims;
        else if (d >= 0)
            axis->group = s->mesh->axes[d < s->dim ? d : d - s->n + 1]->group;
    }
    return tti_mesh_family_connect(family, parts);
}

/* The mesh of all dimensions of family that are seen. */
static tutti_status create_seen(tti_mesh_family *family, const grid *g,
                                tutti_device_mesh **mesh_out)
{
    const tti_mesh_axis *axes[TUTTI_MESH_DIMS_MAX] = { 0 };
    const tti_mesh_axis *axis = family->axes;
    int d;

    for (d = -g->hidden; d < g->ndim - g->hidden; d++, axis = axis->next)
        if (d >= 0)
            axes[d] = axis;
    return tti_mesh_create(family, axes, g->ndim - g->hidden, mesh_out);
}

static tutti_status make_split(const split *s, const grid *g, tutti_device_mesh **mesh_out)
{
    tti_mesh_family *old = s->mesh->family;
    tti_mesh_family *family = NULL;
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    const tti_mesh_plan plan = { .device_type = old->device_type,
                                 .ranks = g->ranks,
                                 .shape = g->shape,
                                 .ndim = g->ndim,
                                 .names = s->names != NULL ? g->names : NULL,
                                 .opts = &opts };
    tutti_status st;

    opts.timeout_ms = old->timeout_ms;
    opts.desc = old->desc;
    st = tti_mesh_family_create(old->world, &plan, &family);
    if (st != TUTTI_OK)
        return tti_mesh_refuse(old->world, st);
    tti_mesh_family_retain(old);
    family->parent = old;
    st = connect_grid(family, s, g);
    if (st == TUTTI_OK)
        st = create_seen(family, g, mesh_out);
    if (st != TUTTI_OK)
        return tti_mesh_family_give_up(family, st);
    tti_mesh_family_drop(family); /* the mesh has its own reference */
    return TUTTI_OK;
}

tutti_status tutti_device_mesh_unflatten(tutti_device_mesh *mesh, int dim, const int *sizes,
                                         int n_sizes, const char *const *dim_names,
                                         tutti_device_mesh **mesh_out)
{
    const split s = { .mesh = mesh, .dim = dim, .sizes = sizes, .names = dim_names, .n = n_sizes };
    grid g = { 0 };
    tutti_status st;

    if (mesh_out == NULL)
        return tti_fail(TUTTI_E_ARG, "device mesh: mesh_out is NULL");
    if (mesh == NULL)
        return tti_fail(TUTTI_E_ARG, "device mesh: mesh is NULL");
    st = check_split(&s);
    if (st == TUTTI_OK)
        st = lay_out(&s, &g);
    if (st == TUTTI_OK)
        st = make_split(&s, &g, mesh_out);
    else
        st = tti_mesh_refuse(mesh->family->world, st);
    free(g.ranks);
    return st;
}

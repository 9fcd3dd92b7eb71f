/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device_mesh.c - meshes as the caller holds them.
 *
 * A mesh is a list of dimensions of its family, lowest first, and what follows from it for this
 * rank: shape, coordinate, and the ranks that share its coordinates in all other dimensions. It is
 * constant; slicing and flattening make another one, which holds the same family. */
#include "device_mesh/mesh_object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

/* ---- making one of axes ---- */

static void fill_axes(tutti_device_mesh *mesh, const tti_mesh_axis *const *axes, int n)
{
    const tti_mesh_layout *layout = &mesh->family->layout;
    const int              position = mesh->family->position;
    int                    d;

    mesh->ndim = n;
    for (d = 0; d < n; d++) {
        mesh->axes[d] = axes[d];
        mesh->dims |= axes[d]->dims;
        mesh->shape[d] = tti_mesh_extent(layout, axes[d]->dims);
        mesh->coordinate[d] = position >= 0 ? tti_mesh_index(layout, axes[d]->dims, position) : -1;
    }
    mesh->size = tti_mesh_extent(layout, mesh->dims);
}

/* The ranks through this one's position; of all dimensions there is only one such list. */
static tutti_status fill_ranks(tutti_device_mesh *mesh)
{
    const tti_mesh_family *family = mesh->family;
    const tti_mesh_layout *layout = &family->layout;
    const tti_mesh_dims    others = tti_mesh_all(layout) & ~mesh->dims;
    int                    start = 0;
    int                    i;

    if (family->position < 0 && others != 0)
        return TUTTI_OK;
    if (family->position >= 0)
        start = tti_mesh_at(layout, others, tti_mesh_index(layout, others, family->position));
    mesh->ranks = malloc((size_t)mesh->size * sizeof mesh->ranks[0]);
    if (mesh->ranks == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a device mesh of %d", mesh->size);
    for (i = 0; i < mesh->size; i++)
        mesh->ranks[i] = family->ranks[start + tti_mesh_at(layout, mesh->dims, i)];
    return TUTTI_OK;
}

tutti_status tti_mesh_create(tti_mesh_family *family, const tti_mesh_axis *const *axes, int n,
                                tutti_device_mesh **mesh_out)
{
    tutti_device_mesh *mesh = calloc(1, sizeof *mesh);
    tutti_status       st;

    if (mesh == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a device mesh");
    mesh->refs = 1;
    mesh->family = family;
    tti_mesh_family_retain(family);
    fill_axes(mesh, axes, n);
    st = fill_ranks(mesh);
    if (st != TUTTI_OK) {
        tutti_device_mesh_free(mesh);
        return st;
    }
    *mesh_out = mesh;
    return TUTTI_OK;
}

static tutti_status create_root(tti_mesh_family *family, tutti_device_mesh **mesh_out)
{
    const tti_mesh_axis *axes[TUTTI_MESH_DIMS_MAX] = { 0 };
    const tti_mesh_axis *axis = family->axes;
    int                  d;

    for (d = 0; d < family->layout.ndim; d++, axis = axis->next)
        axes[d] = axis;
    return tti_mesh_create(family, axes, d, mesh_out);
}

tutti_device_mesh *tti_mesh_retain(tutti_device_mesh *mesh)
{
    atomic_fetch_add_explicit(&mesh->refs, 1, memory_order_relaxed);
    return mesh;
}

void tutti_device_mesh_free(tutti_device_mesh *mesh)
{
    if (mesh == NULL || atomic_fetch_sub_explicit(&mesh->refs, 1, memory_order_acq_rel) != 1)
        return;
    tti_mesh_family_drop(mesh->family);
    free(mesh->ranks);
    free(mesh);
}

/* ---- roots ---- */

/* A root of world after plan, over groups, or over new ones where groups is NULL. */
static tutti_status make_root(tutti_group *world, const tti_mesh_plan *plan,
                              tutti_group *const *groups, tutti_device_mesh **mesh_out)
{
    tti_mesh_family *family = NULL;
    tutti_status     st;

    st = tti_mesh_family_create(world, plan, &family);
    if (st != TUTTI_OK)
        return groups != NULL ? st : tti_mesh_refuse(world, st);
    st = groups != NULL ? tti_mesh_family_adopt(family, groups)
                        : tti_mesh_family_connect(family, tti_mesh_all(&family->layout));
    if (st == TUTTI_OK)
        st = create_root(family, mesh_out);
    if (st != TUTTI_OK)
        return tti_mesh_family_give_up(family, st);
    tti_mesh_family_drop(family); /* the mesh has its own reference */
    return TUTTI_OK;
}

tutti_status tutti_device_mesh_create(tutti_device_type device_type, const int *ranks,
                                      const int *shape, int ndim, const char *const *dim_names,
                                      const tutti_group_options *opts, tutti_device_mesh **mesh_out)
{
    const tti_mesh_plan plan = { .device_type = device_type,
                                 .ranks = ranks,
                                 .shape = shape,
                                 .ndim = ndim,
                                 .names = dim_names,
                                 .opts = opts };
    tutti_group        *world = NULL;
    tutti_status        st;

    if (mesh_out == NULL)
        return tti_fail(TUTTI_E_ARG, "device mesh: mesh_out is NULL");
    st = tti_group_world("device mesh", &world);
    return st == TUTTI_OK ? make_root(world, &plan, NULL, mesh_out) : st;
}

tutti_status tutti_init_device_mesh(tutti_device_type device_type, const int *shape, int ndim,
                                    const char *const *dim_names, tutti_device_mesh **mesh_out)
{
    return tutti_device_mesh_create(device_type, NULL, shape, ndim, dim_names, NULL, mesh_out);
}

/* ---- roots around groups ---- */

/* What each group is (TUTTI_NON_MEMBER stays), and the world of the first that is one. */
static tutti_status resolve_groups(tutti_group *const *groups, int n, tutti_group **out,
                                   tutti_group **world_out)
{
    const char  *what = "device mesh";
    tutti_group *world = NULL;
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 0; i < n && st == TUTTI_OK; i++) {
        out[i] = groups[i];
        if (groups[i] != TUTTI_NON_MEMBER)
            st = tti_group_resolve(groups[i], what, &out[i]);
        if (st == TUTTI_OK && out[i] == NULL) /* NULL meant it */
            out[i] = TUTTI_NON_MEMBER;
        if (st == TUTTI_OK && out[i] != TUTTI_NON_MEMBER && world == NULL)
            world = out[i]->world;
    }
    if (st == TUTTI_OK && world == NULL)
        st = tti_group_world(what, &world);
    if (st == TUTTI_OK)
        *world_out = world;
    return st;
}

/* The members of a single group as the plan. */
static tutti_status plan_of_group(const tutti_group *group, tti_mesh_plan *plan)
{
    if (plan->ndim != 1)
        return tti_fail(TUTTI_E_ARG,
                        "device mesh: ranks is NULL, but there are %d groups\n"
                        "  next: give the ranks and the shape",
                        plan->ndim);
    if (group == TUTTI_NON_MEMBER)
        return tti_fail(TUTTI_E_ARG, "device mesh: this rank is not in the group\n"
                                     "  next: give the ranks and the shape");
    plan->ranks = group->ranks;
    plan->shape = &group->size;
    return TUTTI_OK;
}

tutti_status tutti_device_mesh_from_group(tutti_group *const *groups, int n_groups,
                                          tutti_device_type device_type, const int *ranks,
                                          const int *shape, const char *const *dim_names,
                                          tutti_device_mesh **mesh_out)
{
    tti_mesh_plan plan = { .device_type = device_type,
                           .ranks = ranks,
                           .shape = shape,
                           .ndim = n_groups,
                           .names = dim_names };
    tutti_group  *known[TUTTI_MESH_DIMS_MAX];
    tutti_group  *world = NULL;
    tutti_status  st;

    if (groups == NULL || mesh_out == NULL || n_groups < 1 || n_groups > TUTTI_MESH_DIMS_MAX)
        return tti_fail(TUTTI_E_ARG,
                        "device mesh: groups or mesh_out is NULL, or n_groups, %d, is "
                        "outside of 1 .. %d",
                        n_groups, TUTTI_MESH_DIMS_MAX);
    st = resolve_groups(groups, n_groups, known, &world);
    if (st == TUTTI_OK && ranks == NULL)
        st = plan_of_group(known[0], &plan);
    return st == TUTTI_OK ? make_root(world, &plan, known, mesh_out) : st;
}

static tutti_status no_mesh(void)
{
    return tti_fail(TUTTI_E_ARG, "device mesh: mesh is NULL");
}

/* ---- names ---- */

/* The dimension of mesh that name is of, or that dimensions of it were flattened to. */
static tutti_status find_axis(const tutti_device_mesh *mesh, const char *name,
                              const tti_mesh_axis **axis_out)
{
    const tti_mesh_axis *axis = NULL;
    char                 known[256] = "";
    size_t               used = 0;
    int                  d;

    if (name != NULL)
        axis = tti_mesh_family_find(mesh->family, mesh->dims, name);
    if (axis != NULL) {
        *axis_out = axis;
        return TUTTI_OK;
    }
    for (d = 0; d < mesh->ndim && mesh->axes[d]->name != NULL && used < sizeof known; d++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s'%s'", d > 0 ? ", " : "",
                                 mesh->axes[d]->name);
    return tti_fail(TUTTI_E_ARG, "device mesh: there is no dimension '%s', this mesh has %s",
                    name != NULL ? name : "(NULL)", known[0] != '\0' ? known : "no names");
}

/* ---- slices ---- */

static bool same_axes(const tutti_device_mesh *mesh, const tti_mesh_axis *const *axes, int n)
{
    return n == mesh->ndim && memcmp(mesh->axes, axes, (size_t)n * sizeof axes[0]) == 0;
}

static tutti_status collect_axes(const tutti_device_mesh *mesh, const char *const *names, int n,
                                 const tti_mesh_axis **axes)
{
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 0; i < n && st == TUTTI_OK; i++) {
        st = find_axis(mesh, names[i], &axes[i]);
        if (st == TUTTI_OK && i > 0 && !tti_mesh_before(axes[i - 1]->dims, axes[i]->dims))
            st = tti_fail(TUTTI_E_ARG,
                          "device mesh: dimension '%s' does not come after '%s' in the mesh\n"
                          "  next: name different dimensions, in the order of the mesh",
                          names[i], names[i - 1]);
    }
    return st;
}

tutti_status tutti_device_mesh_slice(tutti_device_mesh *mesh, const char *const *dim_names,
                                     int n_names, tutti_device_mesh **mesh_out)
{
    const tti_mesh_axis *axes[TUTTI_MESH_DIMS_MAX] = { 0 };
    tutti_status         st;

    if (mesh_out == NULL)
        return tti_fail(TUTTI_E_ARG, "device mesh: mesh_out is NULL");
    if (mesh == NULL)
        return no_mesh();
    if (dim_names == NULL || n_names < 1 || n_names > TUTTI_MESH_DIMS_MAX)
        return tti_fail(TUTTI_E_ARG, "device mesh: a slice by %d names", n_names);
    st = collect_axes(mesh, dim_names, n_names, axes);
    if (st != TUTTI_OK)
        return st;
    if (!same_axes(mesh, axes, n_names))
        return tti_mesh_create(mesh->family, axes, n_names, mesh_out);
    *mesh_out = tti_mesh_retain(mesh);
    return TUTTI_OK;
}

/* ---- flattening ---- */

/* "dp_tp", for the caller to free. */
static tutti_status join_names(const tutti_device_mesh *mesh, char **name_out)
{
    size_t size = 1;
    size_t used = 0;
    char  *name;
    int    d;

    for (d = 0; d < mesh->ndim; d++) {
        if (mesh->axes[d]->name == NULL)
            return tti_fail(TUTTI_E_ARG, "device mesh: its dimensions have no names to join\n"
                                         "  next: flatten to a name");
        size += strlen(mesh->axes[d]->name) + 1;
    }
    name = malloc(size);
    if (name == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a name of %zu bytes", size);
    for (d = 0; d < mesh->ndim; d++)
        used += (size_t)snprintf(name + used, size - used, "%s%s", d > 0 ? "_" : "",
                                 mesh->axes[d]->name);
    *name_out = name;
    return TUTTI_OK;
}

static tutti_status flatten_to(tutti_device_mesh *mesh, const char *name,
                               tutti_device_mesh **mesh_out)
{
    const char          *own = mesh->ndim == 1 ? mesh->axes[0]->name : NULL;
    tti_mesh_axis       *flat = NULL;
    const tti_mesh_axis *axes[1];
    tutti_status         st;

    if (own != NULL && strcmp(own, name) == 0) {
        *mesh_out = tti_mesh_retain(mesh);
        return TUTTI_OK;
    }
    if (name[0] == '\0')
        return tti_mesh_family_refuse_flat(mesh->family, mesh->dims,
                                           tti_fail(TUTTI_E_ARG, "device mesh: flattening to an empty name"));
    st = tti_mesh_check_world(mesh->family);
    if (st != TUTTI_OK)
        return st;
    st = tti_mesh_family_flatten(mesh->family, mesh->dims, name, &flat);
    if (st != TUTTI_OK)
        return st;
    axes[0] = flat;
    return tti_mesh_create(mesh->family, axes, 1, mesh_out);
}

tutti_status tutti_device_mesh_flatten(tutti_device_mesh *mesh, const char *dim_name,
                                       tutti_device_mesh **mesh_out)
{
    char        *joined = NULL;
    tutti_status st = TUTTI_OK;

    if (mesh_out == NULL)
        return tti_fail(TUTTI_E_ARG, "device mesh: mesh_out is NULL");
    if (mesh == NULL)
        return no_mesh();
    if (dim_name == NULL)
        st = join_names(mesh, &joined);
    if (st == TUTTI_OK)
        st = flatten_to(mesh, joined != NULL ? joined : dim_name, mesh_out);
    else
        st = tti_mesh_family_refuse_flat(mesh->family, mesh->dims, st);
    free(joined);
    return st;
}

/* ---- groups ---- */

static tutti_status group_of(const tti_mesh_axis *axis, tutti_group **group_out)
{
    if (axis->group == TUTTI_NO_GROUP)
        return tti_fail(TUTTI_E_STATE,
                        "device mesh: its world was destroyed, and its groups with it");
    *group_out = axis->group;
    return TUTTI_OK;
}

tutti_status tutti_device_mesh_get_group(const tutti_device_mesh *mesh, int dim,
                                         tutti_group **group_out)
{
    if (group_out == NULL)
        return tti_fail(TUTTI_E_ARG, "device mesh: group_out is NULL");
    if (mesh == NULL)
        return no_mesh();
    if (dim < 0 || dim >= mesh->ndim)
        return tti_fail(TUTTI_E_ARG, "device mesh: dimension %d is outside of 0 .. %d", dim,
                        mesh->ndim - 1);
    return group_of(mesh->axes[dim], group_out);
}

tutti_status tutti_device_mesh_get_group_by_name(const tutti_device_mesh *mesh,
                                                 const char *dim_name, tutti_group **group_out)
{
    const tti_mesh_axis *axis = NULL;
    tutti_status         st;

    if (group_out == NULL)
        return tti_fail(TUTTI_E_ARG, "device mesh: group_out is NULL");
    if (mesh == NULL)
        return no_mesh();
    st = find_axis(mesh, dim_name, &axis);
    return st == TUTTI_OK ? group_of(axis, group_out) : st;
}

tutti_status tutti_device_mesh_get_all_groups(const tutti_device_mesh *mesh,
                                              tutti_group            **groups_out)
{
    tutti_status st = TUTTI_OK;
    int          d;

    if (groups_out == NULL)
        return tti_fail(TUTTI_E_ARG, "device mesh: groups_out is NULL");
    if (mesh == NULL)
        return no_mesh();
    for (d = 0; d < mesh->ndim && st == TUTTI_OK; d++)
        st = group_of(mesh->axes[d], &groups_out[d]);
    return st;
}

/* ---- queries ---- */

int tutti_device_mesh_ndim(const tutti_device_mesh *mesh)
{
    return mesh != NULL ? mesh->ndim : 0;
}

int tutti_device_mesh_size(const tutti_device_mesh *mesh)
{
    return mesh != NULL ? mesh->size : 0;
}

const int *tutti_device_mesh_shape(const tutti_device_mesh *mesh)
{
    return mesh != NULL ? mesh->shape : NULL;
}

const int *tutti_device_mesh_ranks(const tutti_device_mesh *mesh)
{
    return mesh != NULL ? mesh->ranks : NULL;
}

const char *tutti_device_mesh_dim_name(const tutti_device_mesh *mesh, int dim)
{
    return mesh != NULL && dim >= 0 && dim < mesh->ndim ? mesh->axes[dim]->name : NULL;
}

int tutti_device_mesh_find_dim(const tutti_device_mesh *mesh, const char *dim_name)
{
    const int n = mesh != NULL && dim_name != NULL ? mesh->ndim : 0;
    int       d;

    for (d = 0; d < n; d++)
        if (mesh->axes[d]->name != NULL && strcmp(mesh->axes[d]->name, dim_name) == 0)
            return d;
    return -1;
}

tutti_device_type tutti_device_mesh_device_type(const tutti_device_mesh *mesh)
{
    return mesh != NULL ? mesh->family->device_type : TUTTI_CPU;
}

int tutti_device_mesh_get_rank(const tutti_device_mesh *mesh)
{
    return mesh != NULL ? mesh->family->rank : -1;
}

/* How many ranks of this one's line are lower: groups are sorted. */
int tutti_device_mesh_get_local_rank(const tutti_device_mesh *mesh, int dim)
{
    const tti_mesh_family *family = mesh != NULL ? mesh->family : NULL;
    const tti_mesh_layout *layout;
    int                    lower = 0;
    int                    start;
    int                    i;

    if (family == NULL || dim < 0 || dim >= mesh->ndim || family->position < 0)
        return -1;
    layout = &family->layout;
    start = family->position - tti_mesh_at(layout, mesh->axes[dim]->dims, mesh->coordinate[dim]);
    for (i = 0; i < mesh->shape[dim]; i++)
        if (family->ranks[start + tti_mesh_at(layout, mesh->axes[dim]->dims, i)] < family->rank)
            lower++;
    return lower;
}

const int *tutti_device_mesh_get_coordinate(const tutti_device_mesh *mesh)
{
    return mesh != NULL && mesh->family->position >= 0 ? mesh->coordinate : NULL;
}

static bool equal_names(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool equal_families(const tti_mesh_family *a, const tti_mesh_family *b)
{
    return a->device_type == b->device_type && a->layout.ndim == b->layout.ndim &&
           memcmp(a->layout.shape, b->layout.shape, sizeof a->layout.shape) == 0 &&
           memcmp(a->ranks, b->ranks, (size_t)a->layout.size * sizeof a->ranks[0]) == 0;
}

bool tutti_device_mesh_equal(const tutti_device_mesh *a, const tutti_device_mesh *b)
{
    int d;

    if (a == NULL || b == NULL)
        return a == b;
    if (a->ndim != b->ndim || !equal_families(a->family, b->family))
        return false;
    for (d = 0; d < a->ndim; d++)
        if (a->axes[d]->dims != b->axes[d]->dims ||
            !equal_names(a->axes[d]->name, b->axes[d]->name))
            return false;
    return true;
}

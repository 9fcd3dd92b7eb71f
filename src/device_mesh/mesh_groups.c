/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mesh_groups.c - the groups along the dimensions of a mesh.
 *
 * How     A dimension cuts the grid into lines: the points that agree in all other dimensions. Each
 *         line becomes a group, in the order of those other dimensions, and every rank of the world
 *         takes part in making every line, as new_group wants it. Dimensions that are flattened are
 *         a set of root dimensions, and their lines are the planes of that set. A line that is the
 *         whole world needs no group: it is the world.
 * Agree   Before anything is made all ranks compare what they are about to make, in words: mesh_agree.c.
 * True    Groups are made once for each set of dimensions, whatever names it gets.
 * Fails   When a group of this rank cannot be made, the remaining ones only take their numbers. */
#include "device_mesh/mesh_family.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/fnv.h"
#include <tutti/private.h>

enum { TEXT_MAX = TTI_MESH_TEXT_MAX };

/* ---- what ranks must agree on ---- */

/* dims are to get groups. */
static uint64_t fingerprint(const tti_mesh_family *family, tti_mesh_dims dims)
{
    const size_t         n = (size_t)family->layout.size;
    const uint32_t       device = (uint32_t)family->device_type;
    const uint32_t       timed = family->timeout_ms != 0; /* then no group is the world */
    uint64_t             h = TTI_FNV_BEGIN;
    const tti_mesh_axis *axis = family->axes;
    int                  d;

    h = tti_fnv(h, &device, sizeof device);
    h = tti_fnv(h, &timed, sizeof timed);
    h = tti_fnv(h, &dims, sizeof dims);
    h = tti_fnv(h, family->layout.shape, sizeof family->layout.shape);
    h = tti_fnv(h, family->ranks, n * sizeof family->ranks[0]);
    for (d = 0; d < family->layout.ndim; d++, axis = axis->next)
        if (axis->name != NULL)
            h = tti_fnv(h, axis->name, strlen(axis->name) + 1);
    return h;
}

/* Append to text, as much as there is room for. */
TUTTI_PRINTF(2, 3) static void put(char text[TEXT_MAX], const char *fmt, ...)
{
    const size_t used = strlen(text);
    va_list      args;

    va_start(args, fmt);
    vsnprintf(text + used, TEXT_MAX - used, fmt, args);
    va_end(args);
}

/* "cpu groups along 0 1". */
static void put_groups(const tti_mesh_family *family, tti_mesh_dims dims, char text[TEXT_MAX])
{
    int d;

    put(text, "%s groups%s along", family->device_type == TUTTI_CPU ? "cpu" : "cuda",
        family->timeout_ms != 0 ? " with a time-out of their own" : "");
    for (d = 0; d < family->layout.ndim; d++)
        if ((dims >> d & 1) != 0)
            put(text, " %d", d);
}

/* "2 x 4 (dp, tp) of ranks 0, 1, 2, ...". */
static void put_grid(const tti_mesh_family *family, char text[TEXT_MAX])
{
    enum { SHOWN = 8 };
    const int            n = family->layout.size;
    const tti_mesh_axis *axis = family->axes;
    int                  i;

    for (i = 0; i < family->layout.ndim; i++)
        put(text, "%s%d", i > 0 ? " x " : "", family->layout.shape[i]);
    for (i = 0; i < family->layout.ndim && axis->name != NULL; i++, axis = axis->next)
        put(text, "%s%s", i > 0 ? ", " : " (", axis->name);
    put(text, "%s of ranks ", i > 0 && family->axes->name != NULL ? ")" : "");
    for (i = 0; i < n && i < SHOWN; i++)
        put(text, "%s%d", i > 0 ? ", " : "", family->ranks[i]);
    if (n > SHOWN)
        put(text, ", ...");
}

/* All that decides which groups are made, with a number that stands for all of it in front, so that also texts that were
 * cut differ. */
static void describe(const tti_mesh_family *family, tti_mesh_dims dims, char text[TEXT_MAX])
{
    snprintf(text, TEXT_MAX, "[%016llx] ", (unsigned long long)fingerprint(family, dims));
    put_groups(family, dims, text);
    put(text, " of ");
    put_grid(family, text);
}

/* The same for flattening dims of it to name; known: they have groups already. */
static void describe_flatten(const tti_mesh_family *family, tti_mesh_dims dims, const char *name, bool known,
                             char text[TEXT_MAX])
{
    const char     *what = known ? "a name for " : "";
    const uint64_t  h = tti_fnv(tti_fnv(fingerprint(family, dims), what, strlen(what) + 1), name, strlen(name));

    snprintf(text, TEXT_MAX, "[%016llx] %s", (unsigned long long)h, what);
    put_groups(family, dims, text);
    put(text, ", flattened to %s, of ", name);
    put_grid(family, text);
}

/* ---- lines ---- */

/* Fill ranks with line number i along dims, in the order of the grid. */
static void fill_line(const tti_mesh_family *family, tti_mesh_dims dims, int i, int *ranks)
{
    const tti_mesh_layout *layout = &family->layout;
    const int              start = tti_mesh_at(layout, tti_mesh_all(layout) & ~dims, i);
    const int              n = tti_mesh_extent(layout, dims);
    int                    k;

    for (k = 0; k < n; k++)
        ranks[k] = family->ranks[start + tti_mesh_at(layout, dims, k)];
}

/* "mesh_dp", "mesh_dim_1". */
static void name_groups(const tti_mesh_family *family, const tti_mesh_axis *axis,
                        char text[TEXT_MAX])
{
    int d = 0;

    if (axis->name != NULL) {
        snprintf(text, TEXT_MAX, "%s_%s", family->desc, axis->name);
        return;
    }
    while ((axis->dims >> d & 1) == 0)
        d++;
    snprintf(text, TEXT_MAX, "%s_dim_%d", family->desc, d);
}

static void make_lines(tti_mesh_family *family, tti_mesh_axis *axis, tutti_status *status)
{
    const tti_mesh_dims others = tti_mesh_all(&family->layout) & ~axis->dims;
    const int           n_lines = tti_mesh_extent(&family->layout, others);
    const int           n = tti_mesh_extent(&family->layout, axis->dims);
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *mine = NULL;
    char                desc[TEXT_MAX];
    int                *ranks = malloc((size_t)n * sizeof *ranks);
    int                 i;

    if (ranks == NULL && *status == TUTTI_OK)
        *status = tti_fail(TUTTI_E_NOMEM, "no memory for a list of %d ranks", n);
    name_groups(family, axis, desc);
    opts.timeout_ms = family->timeout_ms;
    opts.desc = desc;
    for (i = 0; i < n_lines; i++) {
        if (ranks != NULL)
            fill_line(family, axis->dims, i, ranks);
        tti_group_create_next(family->world, ranks, n, &opts, status, &mine);
    }
    if (mine != NULL) {
        axis->group = mine;
        axis->owned = true;
    }
    free(ranks);
}

/* Give axis its group; *status is as in tti_group_create_next(). */
static void connect_axis(tti_mesh_family *family, tti_mesh_axis *axis, tutti_status *status)
{
    const int n = tti_mesh_extent(&family->layout, axis->dims);

    if (n == family->world->size && family->timeout_ms == 0)
        axis->group = family->world;
    else
        make_lines(family, axis, status);
}

tutti_status tti_mesh_family_connect(tti_mesh_family *family, tti_mesh_dims dims)
{
    char           text[TEXT_MAX];
    tti_mesh_axis *axis;
    tutti_status   st;

    describe(family, dims, text);
    st = tti_mesh_agree(family, text);
    if (st != TUTTI_OK)
        return st;
    for (axis = family->axes; axis != NULL; axis = axis->next)
        if ((axis->dims & dims) != 0)
            connect_axis(family, axis, &st);
    return st;
}

/* ---- groups that are there ---- */

static int compare_ints(const void *a, const void *b)
{
    const int x = *(const int *)a;
    const int y = *(const int *)b;

    return (x > y) - (x < y);
}

/* group, along dimension d of n, must have the ranks of this rank's line, which are sorted here. */
static tutti_status check_line(const tti_mesh_family *family, int d, const tutti_group *group,
                               int *ranks, int n)
{
    int i = 0;

    if (group->world != family->world)
        return tti_fail(TUTTI_E_ARG, "device mesh: the group of dimension %d is of another world",
                        d);
    qsort(ranks, (size_t)n, sizeof ranks[0], compare_ints);
    while (i < n && i < group->size && ranks[i] == group->ranks[i])
        i++;
    if (i < n && i < group->size)
        return tti_fail(TUTTI_E_ARG,
                        "device mesh: the mesh has rank %d along dimension %d, but group '%s' has "
                        "rank %d",
                        ranks[i], d, group->name, group->ranks[i]);
    if (n != group->size)
        return tti_fail(TUTTI_E_ARG,
                        "device mesh: the mesh has %d ranks along dimension %d, but group '%s' has "
                        "%d",
                        n, d, group->name, group->size);
    return TUTTI_OK;
}

static tutti_status adopt_axis(tti_mesh_family *family, int d, tti_mesh_axis *axis,
                               tutti_group *group)
{
    const tti_mesh_dims others = tti_mesh_all(&family->layout) & ~axis->dims;
    const int           n = tti_mesh_extent(&family->layout, axis->dims);
    tutti_status        st;
    int                *ranks;

    if ((family->position < 0) != (group == TUTTI_NON_MEMBER))
        return tti_fail(TUTTI_E_ARG,
                        "device mesh: rank %d is%s in the mesh, but%s in the group of "
                        "dimension %d",
                        family->rank, family->position < 0 ? " not" : "",
                        group == TUTTI_NON_MEMBER ? " not" : "", d);
    if (group == TUTTI_NON_MEMBER)
        return TUTTI_OK;
    ranks = malloc((size_t)n * sizeof *ranks);
    if (ranks == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a list of %d ranks", n);
    fill_line(family, axis->dims, tti_mesh_index(&family->layout, others, family->position), ranks);
    st = check_line(family, d, group, ranks, n);
    if (st == TUTTI_OK)
        axis->group = group;
    free(ranks);
    return st;
}

tutti_status tti_mesh_family_adopt(tti_mesh_family *family, tutti_group *const *groups)
{
    tti_mesh_axis *axis = family->axes;
    tutti_status   st = TUTTI_OK;
    int            d;

    for (d = 0; axis != NULL && st == TUTTI_OK; d++, axis = axis->next)
        st = adopt_axis(family, d, axis, groups[d]);
    return st;
}

/* ---- flattening ---- */

/* One that has a group for dims already. */
static tti_mesh_axis *find_dims(tti_mesh_family *family, tti_mesh_dims dims)
{
    tti_mesh_axis *axis;

    tti_lock(&family->lock);
    for (axis = family->axes; axis != NULL && axis->dims != dims; axis = axis->next)
        continue;
    tti_unlock(&family->lock);
    return axis;
}

static tti_mesh_axis *find_name(tti_mesh_family *family, const char *name)
{
    return tti_mesh_family_find(family, tti_mesh_all(&family->layout), name);
}

static tutti_status make_flat(tti_mesh_family *family, tti_mesh_axis *axis)
{
    const tti_mesh_axis *known = find_dims(family, axis->dims);
    char                 text[TEXT_MAX];
    tutti_status         st;

    describe_flatten(family, axis->dims, axis->name, known != NULL, text);
    st = tti_mesh_agree(family, text);
    if (st != TUTTI_OK)
        return st;
    if (known != NULL)
        axis->group = known->group;
    else
        connect_axis(family, axis, &st);
    return st;
}

/* What is there under this name already; *axis_out NULL: nothing. */
static tutti_status find_flat(tti_mesh_family *family, tti_mesh_dims dims, const char *name,
                              tti_mesh_axis **axis_out)
{
    tti_mesh_axis *axis = find_name(family, name);

    if (axis != NULL && axis->dims != dims)
        return tti_fail(TUTTI_E_ARG,
                        "device mesh: '%s' is the name of other dimensions already\n"
                        "  next: flatten to another name",
                        name);
    *axis_out = axis;
    return TUTTI_OK;
}

tutti_status tti_mesh_family_refuse_flat(tti_mesh_family *family, tti_mesh_dims dims, tutti_status st)
{
    return find_dims(family, dims) == NULL ? tti_mesh_refuse(family->world, st) : st;
}

tutti_status tti_mesh_family_flatten(tti_mesh_family *family, tti_mesh_dims dims, const char *name,
                                     tti_mesh_axis **axis_out)
{
    tti_mesh_axis *axis = NULL;
    tutti_status   st;

    st = find_flat(family, dims, name, &axis);
    if (st == TUTTI_OK && axis != NULL) {
        *axis_out = axis;
        return TUTTI_OK;
    }
    if (st == TUTTI_OK)
        st = tti_mesh_axis_create(dims, name, &axis);
    if (st != TUTTI_OK)
        return tti_mesh_family_refuse_flat(family, dims, st);
    st = make_flat(family, axis);
    if (st != TUTTI_OK) {
        tti_mesh_axis_free(axis);
        return st;
    }
    tti_mesh_family_append(family, axis);
    *axis_out = axis;
    return TUTTI_OK;
}

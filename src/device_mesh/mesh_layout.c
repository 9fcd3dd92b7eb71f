/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mesh_layout.c - the arithmetic of a grid. */
#include "device_mesh/mesh_layout.h"

#include <limits.h>
#include <tutti/private.h>

static tutti_status check_shape(const int *shape, int ndim)
{
    int64_t size = 1;
    int     d;

    if (shape == NULL || ndim < 1)
        return tti_fail(TUTTI_E_ARG, "device mesh: it has no dimensions (ndim is %d)", ndim);
    if (ndim > TUTTI_MESH_DIMS_MAX)
        return tti_fail(TUTTI_E_UNSUPPORTED, "device mesh: %d dimensions, %d are the most", ndim,
                        TUTTI_MESH_DIMS_MAX);
    for (d = 0; d < ndim; d++) {
        if (shape[d] < 1)
            return tti_fail(TUTTI_E_ARG, "device mesh: dimension %d has size %d", d, shape[d]);
        size *= shape[d];
        if (size > INT_MAX)
            return tti_fail(TUTTI_E_ARG, "device mesh: more than %d ranks", INT_MAX);
    }
    return TUTTI_OK;
}

tutti_status tti_mesh_layout_init(tti_mesh_layout *layout, const int *shape, int ndim)
{
    tutti_status st = check_shape(shape, ndim);
    int          d;

    if (st != TUTTI_OK)
        return st;
    *layout = (tti_mesh_layout){ .ndim = ndim, .size = 1 };
    for (d = ndim - 1; d >= 0; d--) {
        layout->shape[d] = shape[d];
        layout->stride[d] = layout->size;
        layout->size *= shape[d];
    }
    return TUTTI_OK;
}

tti_mesh_dims tti_mesh_all(const tti_mesh_layout *layout)
{
    return ((tti_mesh_dims)1 << layout->ndim) - 1;
}

static bool has(tti_mesh_dims dims, int d)
{
    return (dims >> d & 1) != 0;
}

int tti_mesh_extent(const tti_mesh_layout *layout, tti_mesh_dims dims)
{
    int extent = 1;
    int d;

    for (d = 0; d < layout->ndim; d++)
        if (has(dims, d))
            extent *= layout->shape[d];
    return extent;
}

int tti_mesh_at(const tti_mesh_layout *layout, tti_mesh_dims dims, int index)
{
    int position = 0;
    int d;

    for (d = layout->ndim - 1; d >= 0; d--) {
        if (!has(dims, d))
            continue;
        position += index % layout->shape[d] * layout->stride[d];
        index /= layout->shape[d];
    }
    return position;
}

int tti_mesh_index(const tti_mesh_layout *layout, tti_mesh_dims dims, int position)
{
    int index = 0;
    int d;

    for (d = 0; d < layout->ndim; d++)
        if (has(dims, d))
            index = index * layout->shape[d] + position / layout->stride[d] % layout->shape[d];
    return index;
}

bool tti_mesh_before(tti_mesh_dims a, tti_mesh_dims b)
{
    const tti_mesh_dims lowest = b & (~b + 1);

    return a < lowest;
}

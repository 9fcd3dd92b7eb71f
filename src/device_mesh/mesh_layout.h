/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device_mesh/mesh_layout.h - the arithmetic of a grid: positions, coordinates, and sets of dimensions.
 *
 * A position counts the points of the grid row by row. A set of dimensions is a grid of its own: its
 * points are counted row by row too, over the dimensions in it, the lowest one running slowest. A
 * point of the whole is then an index over a set and an index over all other dimensions:
 *
 *     position = tti_mesh_at(set, index(set)) + tti_mesh_at(rest, index(rest)) */
#ifndef TTI_DEVICE_MESH_MESH_LAYOUT_H
#define TTI_DEVICE_MESH_MESH_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>
#include <tutti/device_mesh.h>

typedef uint32_t tti_mesh_dims; /* bit d: dimension d */

typedef struct tti_mesh_layout {
    int ndim;
    int size;
    int shape[TUTTI_MESH_DIMS_MAX];
    int stride[TUTTI_MESH_DIMS_MAX]; /* positions from one point to the next along a dimension */
} tti_mesh_layout;

/** @errors TUTTI_E_ARG          no dimension, or one of no points; more than an int can count
 *          TUTTI_E_UNSUPPORTED  too many dimensions */
tutti_status tti_mesh_layout_init(tti_mesh_layout *layout, const int *shape, int ndim);

/** All dimensions. */
tti_mesh_dims tti_mesh_all(const tti_mesh_layout *layout);
/** Points of the grid of dims; 1 for no dimensions. */
int tti_mesh_extent(const tti_mesh_layout *layout, tti_mesh_dims dims);
/** The position of point number index of dims, where all other coordinates are 0. */
int tti_mesh_at(const tti_mesh_layout *layout, tti_mesh_dims dims, int index);
/** Which point of dims position is, whatever its other coordinates are. */
int tti_mesh_index(const tti_mesh_layout *layout, tti_mesh_dims dims, int position);
/** Whether every dimension of a comes before every one of b, so that a, then b is row by row. */
bool tti_mesh_before(tti_mesh_dims a, tti_mesh_dims b);

#endif

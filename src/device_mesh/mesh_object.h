/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device_mesh/mesh_object.h - a mesh as the caller holds it; shared by device_mesh.c and what derives meshes. */
#ifndef TTI_DEVICE_MESH_MESH_OBJECT_H
#define TTI_DEVICE_MESH_MESH_OBJECT_H

#include "device_mesh/mesh_family.h"

struct tutti_device_mesh {
    _Atomic uint32_t refs;
    tti_mesh_family *family;
    int ndim;
    int size;
    tti_mesh_dims dims; /* of all axes together */
    const tti_mesh_axis *axes[TUTTI_MESH_DIMS_MAX];
    int shape[TUTTI_MESH_DIMS_MAX];
    int coordinate[TUTTI_MESH_DIMS_MAX];
    int *ranks; /* [size]; NULL: a slice, and this rank is not in the root */
};

/** A mesh of n axes of family, each before the next; it holds a reference of family. */
tutti_status tti_mesh_create(tti_mesh_family *family, const tti_mesh_axis *const *axes, int n,
                             tutti_device_mesh **mesh_out);
/** One more reference. */
tutti_device_mesh *tti_mesh_retain(tutti_device_mesh *mesh);

#endif

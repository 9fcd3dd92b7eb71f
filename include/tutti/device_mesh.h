/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/device_mesh.h - ranks as points of a grid, and a group along each of its dimensions.
 *
 * A mesh of 2 x 4 with the names "dp" and "tp" puts eight ranks into two rows of four:
 *
 *              tp 0  1  2  3        along "tp" rank 5 is in the group 4, 5, 6, 7,
 *      dp 0       0  1  2  3        along "dp" in the group 1, 5;
 *      dp 1       4  5  6  7        its coordinate is 1, 1
 *
 * What holds for all of it:
 * - Making a mesh, and flattening or splitting one, makes groups: every rank of the calling thread's world does it, also
 *   one that is not in the mesh, in the same order, with the same arguments. All meet and compare before
 *   anything is made: if one differs, all get TUTTI_E_MISMATCH, and none has made a group. Names, the device, and whether there
 *   is a time-out are compared, too; how long it is, and desc, are not. What one rank refuses fails on all: there with
 *   its own status, elsewhere with TUTTI_E_MISMATCH, or TUTTI_E_REMOTE if something was lacking there; the next call is the same
 *   one for all. Only calls whose mesh_out or mesh is NULL, or whose world is not there, are told to nobody. Everything
 *   else is local.
 * - A mesh that is NULL is refused with TUTTI_E_ARG; what returns a value returns -1, NULL, 0 or false.
 * - Slices and flattened meshes share the groups of the mesh that they come from, their root: a group is
 *   made once. Where a dimension is the whole world, and no time-out of its own is asked for, it is the world.
 * - The root owns the groups that it made: do not destroy them. They end when the last mesh of a root is freed,
 *   or with the world. Meshes are freed before the world's end or after it; after it they still tell their
 *   shape, ranks and coordinates, and have no groups. A world must not end while a thread is in a call on one
 *   of its meshes.
 * - Groups keep their ranks in ascending order: where the ranks along a dimension do not ascend, the rank in
 *   the group (tutti_device_mesh_get_local_rank) is not the coordinate.
 * - Queries may run on any threads at once, also during a flatten. */
#ifndef TUTTI_DEVICE_MESH_H
#define TUTTI_DEVICE_MESH_H

#include <tutti/group.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TUTTI_MESH_DIMS_MAX = 16, TUTTI_MESH_CONTEXTS_MAX = 16 };

typedef struct tutti_device_mesh tutti_device_mesh;

/* ---- making --------------------------------------------------------------------------------------- */

/** Make a mesh of the ranks 0, 1, 2, ..., the last dimension running fastest.
 *
 * @param device_type  whose memory its groups are used for: TUTTI_CPU or TUTTI_CUDA. No device is chosen by it
 * @param shape        [ndim] ranks along each dimension; the product may be smaller than the world
 * @param dim_names    [ndim] different from each other, copied; NULL: the dimensions have no names
 * @param mesh_out     free it with tutti_device_mesh_free()
 *
 * @errors   TUTTI_E_ARG          a size below 1, more ranks than the world has, a name that is empty or there twice
 *           TUTTI_E_UNSUPPORTED  the world has no backend for device_type, or more than TUTTI_MESH_DIMS_MAX dimensions
 *           TUTTI_E_STATE        there is no world
 *           TUTTI_E_MISMATCH     a rank makes another mesh than rank 0, on all ranks; the text names it, and has
 *                                both. Or another rank refuses its arguments; the text has its words
 *           TUTTI_E_REMOTE       another rank has no memory for its call, or not the backend; the text has its words
 *           TUTTI_E_TIMEOUT      a rank did not come; the text names it
 *           TUTTI_E_PEER         one of this host is gone, and had not come
 * @threads  one at a time per world
 * @source   torch.distributed.device_mesh.init_device_mesh */
TUTTI_API tutti_status tutti_init_device_mesh(tutti_device_type device_type, const int *shape, int ndim,
                                              const char *const *dim_names, tutti_device_mesh **mesh_out);

/** The same of any ranks, each at most once.
 *
 * @param ranks  [product of shape] global ranks, row by row; NULL: 0, 1, 2, ...
 * @param opts   of every group: timeout_ms, and as desc the first word of theirs ("mesh": "mesh_dp",
 *               "mesh_dim_0"); the other fields are not read: groups are made as the world was. NULL: every default
 *
 * @errors   as tutti_init_device_mesh; TUTTI_E_ARG also for a rank out of range or twice
 * @threads  one at a time per world
 * @source   torch.distributed.device_mesh.DeviceMesh */
TUTTI_API tutti_status tutti_device_mesh_create(tutti_device_type device_type, const int *ranks,
                                                const int *shape, int ndim, const char *const *dim_names,
                                                const tutti_group_options *opts,
                                                tutti_device_mesh **mesh_out);

/** Make a mesh around groups that are there; none is made, and no rank is waited for.
 *
 * The groups stay the caller's, and outlive the meshes' use. What is flattened later is the mesh's.
 *
 * @param groups     [n_groups] this rank's group along each dimension; of a rank that is not in the mesh
 *                   TUTTI_NON_MEMBER each
 * @param ranks      global ranks, row by row; NULL, of one group: its members
 * @param shape      [n_groups]; not read if ranks is NULL
 * @param dim_names  [n_groups]; NULL: none
 *
 * @errors   TUTTI_E_ARG  a group is not what ranks and shape say it is; the groups are of different worlds;
 *                        ranks is NULL with several groups
 *           as tutti_device_mesh_create
 * @threads  one at a time per world
 * @source   torch.distributed.device_mesh.DeviceMesh.from_group */
TUTTI_API tutti_status tutti_device_mesh_from_group(tutti_group *const *groups, int n_groups,
                                                    tutti_device_type device_type, const int *ranks,
                                                    const int *shape, const char *const *dim_names,
                                                    tutti_device_mesh **mesh_out);

/** The part of a mesh along some of its dimensions: the ranks that agree with this one in all others.
 *
 * All names of a mesh give the mesh itself, as one more reference. A name that a dimension got by flattening
 * dimensions of this mesh is a name of the mesh too.
 *
 * @param dim_names  [n_names] in the order of the mesh
 * @param mesh_out   free it with tutti_device_mesh_free()
 *
 * @errors   TUTTI_E_ARG  mesh is NULL; no names, an unknown one (the text has those that are there), or not in order
 * @threads  any
 * @source   torch.distributed.device_mesh.DeviceMesh.__getitem__ */
TUTTI_API tutti_status tutti_device_mesh_slice(tutti_device_mesh *mesh, const char *const *dim_names,
                                               int n_names, tutti_device_mesh **mesh_out);

/** All dimensions of a mesh as a single one, with a group of its own.
 *
 * The root remembers it: flattening the same dimensions to the same name again waits for nobody. A mesh of
 * one dimension that has this name already is given as one more reference.
 *
 * @param dim_name  NULL: the names of the dimensions, joined by '_'
 * @param mesh_out  free it with tutti_device_mesh_free()
 *
 * @errors   TUTTI_E_ARG    the name is one of the root's dimensions, or of other flattened ones; NULL, and
 *                          the dimensions have no names
 *           TUTTI_E_STATE  the world of this mesh was destroyed
 *           as tutti_init_device_mesh, and if mesh is NULL
 * @threads  one at a time per world
 * @source   torch.distributed.device_mesh.DeviceMesh._flatten */
TUTTI_API tutti_status tutti_device_mesh_flatten(tutti_device_mesh *mesh, const char *dim_name,
                                                 tutti_device_mesh **mesh_out);

/** The mesh with one dimension split into several, which get groups; all others keep theirs.
 *
 * Also of a slice, and of a flattened mesh, whichever dimensions it came from.
 *
 * @param dim        0 .. ndim-1
 * @param sizes      [n_sizes] their product is the size of the dimension; the last one runs fastest
 * @param dim_names  [n_sizes] different from each other and from those that stay; NULL if, and only if, the mesh has
 *                   no names
 * @param mesh_out   free it with tutti_device_mesh_free(). It is a root of its own: what is flattened of it is not
 *                   known to the mesh that it came from, and is equal to no part of that
 *
 * @errors   TUTTI_E_ARG          mesh is NULL, no such dimension, sizes that do not multiply to its size, names that do not fit
 *           TUTTI_E_UNSUPPORTED  more than TUTTI_MESH_DIMS_MAX - 1 dimensions
 *           TUTTI_E_STATE        the world of this mesh was destroyed
 *           as tutti_init_device_mesh
 * @threads  one at a time per world
 * @source   torch.distributed.device_mesh.DeviceMesh._unflatten */
TUTTI_API tutti_status tutti_device_mesh_unflatten(tutti_device_mesh *mesh, int dim, const int *sizes, int n_sizes,
                                                   const char *const *dim_names, tutti_device_mesh **mesh_out);

/** The dimensions of several slices and flattened meshes of one root, one after the other, as one mesh. Local:
 * the groups are those that they have.
 *
 * @param meshes    [n_meshes] of different dimensions, in the order of the root
 * @param mesh_out  free it with tutti_device_mesh_free(); one mesh is given back as one more reference
 *
 * @errors   TUTTI_E_ARG  none, another root, or dimensions that are not in order
 * @threads  any
 * @source   torch.distributed.device_mesh.DeviceMesh._concatenate */
TUTTI_API tutti_status tutti_device_mesh_concatenate(tutti_device_mesh *const *meshes, int n_meshes,
                                                     tutti_device_mesh **mesh_out);

/** Drop a reference; the last one of a root and all that came from it ends the groups that it made. Local.
 *
 * @param mesh  NULL does nothing
 * @threads  any, if no other thread uses the mesh or makes groups of its world
 * @source   ours */
TUTTI_API void tutti_device_mesh_free(tutti_device_mesh *mesh);

/* ---- groups --------------------------------------------------------------------------------------- */

/** This rank's group along a dimension. It belongs to the mesh.
 *
 * @param dim        0 .. ndim-1
 * @param group_out  TUTTI_NON_MEMBER for a rank that is not in the mesh
 *
 * @errors   TUTTI_E_ARG    mesh is NULL, or dim is out of range
 *           TUTTI_E_STATE  the world of this mesh was destroyed
 * @threads  any
 * @source   torch.distributed.device_mesh.DeviceMesh.get_group */
TUTTI_API tutti_status tutti_device_mesh_get_group(const tutti_device_mesh *mesh, int dim,
                                                   tutti_group **group_out);

/** The same by name, also one that dimensions of this mesh were flattened to.
 *
 * @errors   TUTTI_E_ARG    mesh is NULL, or has no such name; the text has those that are there
 *           TUTTI_E_STATE  the world of this mesh was destroyed
 * @threads  any
 * @source   torch.distributed.device_mesh.DeviceMesh.get_group("name") */
TUTTI_API tutti_status tutti_device_mesh_get_group_by_name(const tutti_device_mesh *mesh,
                                                           const char *dim_name,
                                                           tutti_group **group_out);

/** This rank's groups along all dimensions.
 *
 * @param groups_out  [ndim]
 * @errors   TUTTI_E_ARG    mesh is NULL
 *           TUTTI_E_STATE  the world of this mesh was destroyed
 * @threads  any
 * @source   torch.distributed.device_mesh.DeviceMesh.get_all_groups */
TUTTI_API tutti_status tutti_device_mesh_get_all_groups(const tutti_device_mesh *mesh,
                                                        tutti_group **groups_out);

/* ---- what a mesh is ------------------------------------------------------------------------------- */

/** Dimensions; 0 if mesh is NULL.
 * @threads any
 * @source torch.distributed.device_mesh.DeviceMesh.ndim */
TUTTI_API int tutti_device_mesh_ndim(const tutti_device_mesh *mesh);

/** Ranks in the mesh: the product of its shape; 0 if mesh is NULL.
 * @threads any
 * @source torch.distributed.device_mesh.DeviceMesh.size */
TUTTI_API int tutti_device_mesh_size(const tutti_device_mesh *mesh);

/** Ranks along each dimension: [ndim], of the mesh. NULL if mesh is NULL.
 * @threads any
 * @source torch.distributed.device_mesh.DeviceMesh.shape, size(dim) */
TUTTI_API const int *tutti_device_mesh_shape(const tutti_device_mesh *mesh);

/** The global ranks of the mesh, row by row: [size], of the mesh. NULL for a slice, on a rank that is not in
 * the root, and if mesh is NULL.
 * @threads any
 * @source torch.distributed.device_mesh.DeviceMesh.mesh */
TUTTI_API const int *tutti_device_mesh_ranks(const tutti_device_mesh *mesh);

/** The name of a dimension; NULL if it has none, dim is out of range, or mesh is NULL.
 * @threads any; the string lives as long as the mesh
 * @source torch.distributed.device_mesh.DeviceMesh.mesh_dim_names */
TUTTI_API const char *tutti_device_mesh_dim_name(const tutti_device_mesh *mesh, int dim);

/** The dimension of a name; -1 if the mesh has no such dimension, or is NULL.
 * @threads any
 * @source ours: torch.distributed.device_mesh.DeviceMesh.mesh_dim_names.index */
TUTTI_API int tutti_device_mesh_find_dim(const tutti_device_mesh *mesh, const char *dim_name);

/** The kind of memory that the mesh's groups work on; TUTTI_CPU if mesh is NULL.
 * @threads any
 * @source torch.distributed.device_mesh.DeviceMesh.device_type */
TUTTI_API tutti_device_type tutti_device_mesh_device_type(const tutti_device_mesh *mesh);

/** This process's global rank, in the mesh or not; -1 if mesh is NULL.
 * @threads any
 * @source torch.distributed.device_mesh.DeviceMesh.get_rank */
TUTTI_API int tutti_device_mesh_get_rank(const tutti_device_mesh *mesh);

/** This process's rank in its group along a dimension; -1 outside of the mesh, or if dim is out of range or mesh
 * NULL.
 * @threads any
 * @source torch.distributed.device_mesh.DeviceMesh.get_local_rank */
TUTTI_API int tutti_device_mesh_get_local_rank(const tutti_device_mesh *mesh, int dim);

/** Where this process is in the mesh: [ndim], of the mesh. NULL outside of it, and if mesh is NULL.
 * @threads any
 * @source torch.distributed.device_mesh.DeviceMesh.get_coordinate */
TUTTI_API const int *tutti_device_mesh_get_coordinate(const tutti_device_mesh *mesh);

/** Whether two meshes are the same grid of the same ranks with the same names; groups do not count. A mesh that is NULL
 * equals only NULL.
 * @threads any
 * @source torch.distributed.device_mesh.DeviceMesh.__eq__ */
TUTTI_API bool tutti_device_mesh_equal(const tutti_device_mesh *a, const tutti_device_mesh *b);

/** A mesh in words: "DeviceMesh((dp=2, tp=4), 'cpu', stride=(4, 1))"; at the debug level "detail" its ranks, too. A
 * stride counts positions in the root; of flattened dimensions that are no even steps it is a list.
 *
 * @param text_out  as much as fits, always ended by a zero byte; NULL if bytes is 0
 * @return   the length of all of it, without the zero byte; 0 if mesh is NULL
 * @threads  any
 * @source   torch.distributed.device_mesh.DeviceMesh.__repr__ */
TUTTI_API size_t tutti_device_mesh_to_string(const tutti_device_mesh *mesh, char *text_out, size_t bytes);

/* ---- the mesh that a thread works on -------------------------------------------------------------- */

/** Make mesh the calling thread's current one, until the pop that belongs to this push.
 *
 * @param mesh  gets one more reference
 *
 * @errors   TUTTI_E_ARG          mesh is NULL
 *           TUTTI_E_UNSUPPORTED  TUTTI_MESH_CONTEXTS_MAX are pushed
 * @threads  each thread has its own, and pops what it pushed before it ends
 * @source   torch.distributed.device_mesh.DeviceMesh.__enter__ */
TUTTI_API tutti_status tutti_device_mesh_push(tutti_device_mesh *mesh);

/** Make the one before current again.
 * @errors   TUTTI_E_STATE  none is pushed
 * @threads  each thread has its own
 * @source   torch.distributed.device_mesh.DeviceMesh.__exit__ */
TUTTI_API tutti_status tutti_device_mesh_pop(void);

/** The calling thread's current mesh, borrowed until it is popped.
 * @errors   TUTTI_E_STATE  none is pushed
 * @threads  each thread has its own
 * @source   torch.distributed.device_mesh._mesh_resources.get_current_mesh */
TUTTI_API tutti_status tutti_device_mesh_current(tutti_device_mesh **mesh_out);

#ifdef __cplusplus
}
#endif
#endif

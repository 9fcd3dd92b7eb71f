/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device_mesh/mesh_family.h - what a root mesh and all slices of it share: ranks, layout, groups. */
#ifndef TTI_DEVICE_MESH_MESH_FAMILY_H
#define TTI_DEVICE_MESH_MESH_FAMILY_H

#include "group/group.h"
#include "device_mesh/mesh_layout.h"

/** A dimension of a mesh: one of the root, or several of them flattened. Constant once it is in the
 * family's list, but for group, which the world's end changes. */
typedef struct tti_mesh_axis {
    struct tti_mesh_axis *next;
    tti_mesh_dims         dims;
    char                 *name;  /* NULL: none */
    tutti_group          *group; /* this rank's; TUTTI_NON_MEMBER; TUTTI_NO_GROUP: no more */
    bool                  owned; /* the family made group, and ends it */
} tti_mesh_axis;

struct tti_mesh_family {
    _Atomic uint32_t  refs; /* one of each mesh */
    tutti_device_type device_type;
    tti_mesh_layout   layout;
    int              *ranks;      /* [layout.size] position -> global rank */
    int               rank;       /* of this process in the world */
    int               position;   /* of this process; -1: not in the mesh */
    int64_t           timeout_ms; /* of its groups; 0: the world's */
    char             *desc;       /* the first word of theirs */
    tutti_group      *world;      /* NULL once it has ended */
    tti_mesh_family  *parent;     /* counted: whose groups some dimensions have; NULL: none */
    tti_mesh_family  *next;       /* among the world's, guarded by its runner's lock */
    tti_mutex         lock;       /* guards axes, the list */
    tti_mesh_axis    *axes;       /* the root's dimensions first, in order; only ever grows */
};

/** What a mesh is to be of. */
typedef struct tti_mesh_plan {
    tutti_device_type          device_type;
    const int                 *ranks; /* NULL: 0, 1, 2, ... */
    const int                 *shape;
    int                        ndim;
    const char *const         *names; /* NULL: none */
    const tutti_group_options *opts;  /* NULL: every default */
} tti_mesh_plan;

/* mesh_family.c */

/** Check plan and make a family of one reference, without groups yet. Local. */
tutti_status tti_mesh_family_create(tutti_group *world, const tti_mesh_plan *plan,
                                    tti_mesh_family **family_out);
void         tti_mesh_family_retain(tti_mesh_family *family);
/** Whether groups can be made of family's world.
 * @errors TUTTI_E_STATE  it was destroyed, or is that of the process that this one was forked from */
tutti_status tti_mesh_check_world(const tti_mesh_family *family);
/** Drop a reference; the last one ends the groups that the family made. */
void tti_mesh_family_drop(tti_mesh_family *family);
/** The same after a failure, whose words stay this thread's last error; returns status. */
tutti_status tti_mesh_family_give_up(tti_mesh_family *family, tutti_status status);

/** A dimension without a group (TUTTI_NON_MEMBER); name is copied. */
tutti_status tti_mesh_axis_create(tti_mesh_dims dims, const char *name, tti_mesh_axis **axis_out);
/** Free it, and end its group if it is owned. */
void tti_mesh_axis_free(tti_mesh_axis *axis);
/** Put axis at the end of the list, whose it is from now on. */
void tti_mesh_family_append(tti_mesh_family *family, tti_mesh_axis *axis);
/** The dimension called name that is made of none but those of within; NULL: there is none. */
tti_mesh_axis *tti_mesh_family_find(tti_mesh_family *family, tti_mesh_dims within,
                                    const char *name);
/* mesh_agree.c */

enum { TTI_MESH_TEXT_MAX = 256 };

/** All ranks of the world say here what they are about to make, in fewer bytes than TTI_MESH_TEXT_MAX.
 * @errors TUTTI_E_MISMATCH, TUTTI_E_TIMEOUT, TUTTI_E_PEER, what finished the world: on all of them */
tutti_status tti_mesh_agree(tti_mesh_family *family, const char *ours);
/** This rank fails its call with st, its last error, before it comes to tti_mesh_agree(): the call counts, and the others are told.
 * Returns st, and the words stay. world: NULL, or inherited, does nothing. */
tutti_status tti_mesh_refuse(tutti_group *world, tutti_status st);

/* mesh_groups.c */

/** Make the groups of those of the root's dimensions that are in dims; all ranks of the world call it. */
tutti_status tti_mesh_family_connect(tti_mesh_family *family, tti_mesh_dims dims);
/** Take these instead, one for each dimension, after checking who is in them. */
tutti_status tti_mesh_family_adopt(tti_mesh_family *family, tutti_group *const *groups);

/** The dimension called name that dims are flattened to; made, by all ranks of the world, when it is
 * not there yet. name is copied. */
tutti_status tti_mesh_family_flatten(tti_mesh_family *family, tti_mesh_dims dims, const char *name,
                                     tti_mesh_axis **axis_out);
/** This rank cannot flatten dims, for st, its last error. Where nothing has groups for them yet the others are about to make some: as
 * tti_mesh_refuse(). Else theirs need nobody, as a rule, so that the call does not count. Returns st. */
tutti_status tti_mesh_family_refuse_flat(tti_mesh_family *family, tti_mesh_dims dims, tutti_status st);

#endif

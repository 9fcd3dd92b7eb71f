/* SPDX-License-Identifier: BSD-3-Clause
 *
 * deed.c - over backends of others nobody watches, and nothing is noted. */
#include "regroup/deed.h"

#include "backend/native/native.h"
#include "transport/mesh.h"

/* NULL: nobody watches this rank, or no longer. */
static tti_health *health_of(const tutti_group *group)
{
    tti_mesh *mesh = tti_native_mesh(group->backend);

    return mesh != NULL ? tti_mesh_health(mesh) : NULL;
}

void tti_regroup_begins(const tutti_group *group, unsigned kind)
{
    tti_health_note_whole(health_of(group), tti_deed_of(kind, group->id, 0));
}

void tti_regroup_ends(const tutti_group *group)
{
    tti_health_note_whole(health_of(group), 0);
}

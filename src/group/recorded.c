/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recorded.c - a group's place in the flight recorder. */
#include "group/recorded.h"

#include <tutti/private.h>

static uint64_t id_of(const tutti_group *world)
{
    return world->backend != NULL && world->ops->world_id != NULL ? world->ops->world_id(world->backend) : 0;
}

void tti_recorded_group_begin(tutti_group *group)
{
    const uint64_t former = tti_recorder_age(&group->place); /* a world that was reconfigured has had one */

    tti_recorded_group_end(group);
    if (group->runner->port != tti_port_system() || tti_port_stand_in() != NULL)
        return;
    group->place = tti_recorder_add_group(&(tti_group_facts){
        .name = group->name,
        .desc = group->desc,
        .backend = group->backend_config,
        .world = group->world->handle,
        .number = group->id,
        .rank = group->rank,
        .world_rank = group->world->rank,
        .size = group->size,
        .ranks = group->ranks,
        .world_id = id_of(group->world),
        .generation = group->world->generation,
        .world_size = group->world->size,
        .follows = former,
    });
}

void tti_recorded_group_end(tutti_group *group)
{
    if (group->place.slot != NULL)
        tti_recorder_drop_group(&group->place);
}

/* Elements of all parts; NULL: none. */
static uint64_t sum(const int64_t *counts, int n)
{
    uint64_t all = 0;
    int      i;

    for (i = 0; counts != NULL && i < n; i++)
        all += (uint64_t)counts[i];
    return all;
}

void tti_recorded_parts(const tutti_group *group, const tutti_call *call)
{
    const uint64_t size = tutti_dtype_size(call->dtype);
    const uint64_t all = sum(call->list_counts, call->n_parts) * size;
    const uint64_t mine = call->list_counts != NULL ? (uint64_t)call->list_counts[group->rank] * size : 0;

    if (call->kind == TUTTI_CALL_ALL_GATHER)
        tti_record_bytes(call->record, mine, all);
    else if (call->kind == TUTTI_CALL_REDUCE_SCATTER)
        tti_record_bytes(call->record, all, mine);
    else
        tti_record_bytes(call->record, sum(call->in_counts, call->n_parts) * size, all);
}

uint64_t tti_recorded_regrouping(const tutti_group *group, tutti_record_kind kind, int peer, int64_t count)
{
    return tti_recorded_other(group, kind, peer, (tutti_span){ .count = count }, 0);
}

void tti_recorded_left_out(uint64_t record, const uint64_t left_out[2])
{
    tti_record_left_out(record, left_out);
}

tutti_status tti_recorded_regrouping_end(uint64_t record, tutti_status st)
{
    tti_record_end_slowly(record, st);
    return st;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native_device.c - calls on memory of a device: through backend/detour, whose own backend is another one of this table.
 *
 * What    All kinds of collective. Messages and windows are refused, as the reference has none for gloo on GPUs.
 * Numbers The detour's backend has a number that no group has: the number of the one beside it, moved to where the counters of
 *         numbered and of agreed groups (group/agreed.c) do not come in the life of a process. */
#include "backend/native/native_core.h"

#include <tutti/private.h>
#include "backend/plugin/device.h"
#include "backend/plugin/plugin.h"

enum { NUMBER_BITS = 29, AGREED_BIT = 31 };

#define DETOURS UINT32_C(0xc0000000)

static uint32_t detour_number(uint32_t group_id)
{
    return DETOURS | (group_id >> AGREED_BIT & 1) << NUMBER_BITS | (group_id & ((UINT32_C(1) << NUMBER_BITS) - 1));
}

static tutti_status find_device(const tutti_device_ops **ops_out)
{
    return tti_device_ops_of(TUTTI_CUDA, ops_out);
}

tutti_status tti_native_open_detour(tti_native *nat, const tutti_backend_config *config)
{
    const tti_native     *parent = (const tti_native *)config->parent;
    tutti_backend_config  its = *config;
    const tti_detour_plan plan = { .config = &its, .beside = &nat->base, .like = parent != NULL ? parent->detour : NULL,
                                   .group_id = detour_number(config->group_id), .find = find_device,
                                   .idle = tti_plugin_host.idle };

    its.global_ranks = nat->members->ranks; /* stay as long as nat */
    return tti_detour_open(&plan, &nat->detour);
}

/* Members that are in other calls of the group have to hear of a failure, too. */
tutti_status tti_native_run_on_device(tti_native *nat, const tutti_call *call)
{
    const tutti_status st = tti_detour_run(nat->detour, call);

    if (st != TUTTI_OK && st != TUTTI_E_UNSUPPORTED)
        tti_coll_fail(nat->coll, st);
    return st;
}

tutti_status tti_native_refuse_message(const tutti_message *message)
{
    return tti_fail(TUTTI_E_UNSUPPORTED,
                    "backend 'native' has no messages of memory of a GPU, so none can be %s there\n  next: copy it to the host "
                    "first, use a collective, or name a backend that has them, as \"cpu:native,cuda:nccl\"",
                    message->is_send ? "sent from" : "received");
}

static tutti_status mark(tutti_backend *backend, int device_index, void *stream, tutti_ticket **ticket_out)
{
    return tti_detour_mark(((tti_native *)backend)->detour, device_index, stream, ticket_out);
}

const tutti_stream_ops tti_native_stream_ops = {
    .size = sizeof(tutti_stream_ops),
    .mark = mark,
    .follow = tti_detour_follow,
    .test = tti_detour_test,
    .wait = tti_detour_wait,
    .release = tti_detour_release,
};

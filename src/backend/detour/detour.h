/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backend/detour/detour.h - memory of a device, by way of memory of the host.
 *
 * A backend that works in memory of the host opens a detour beside itself. The first call on memory of a device makes a
 * second backend of the same table, the detour's own, which is given host memory only: so the numbers of its calls are its
 * own, one for each piece. Entries are those of tutti_backend_ops and tutti_stream_ops, with their contracts. */
#ifndef TTI_BACKEND_DETOUR_DETOUR_H
#define TTI_BACKEND_DETOUR_DETOUR_H

#include <tutti/plugin/backend.h>
#include <tutti/plugin/device.h>

typedef struct tti_detour tti_detour;

typedef struct tti_detour_plan {
    const tutti_backend_config *config;   /* of the backend beside; its store and global_ranks are borrowed until close */
    tutti_backend              *beside;   /* whose connections the detour's own backend uses */
    tti_detour                 *like;     /* has pinned memory that this one shares; NULL: its own */
    uint32_t                    group_id; /* of the detour's own backend */
    /* Find the device's table; asked when the first call comes. Words its failures. */
    tutti_status (*find)(const tutti_device_ops **ops_out);
    void (*idle)(uint32_t *rounds, bool in_background); /* of tutti_plugin_host */
} tti_detour_plan;

/** Waits for nobody, and finds no device yet.
 * @errors TUTTI_E_NOMEM, TUTTI_E_ARG (TUTTI_PINNED_MAX) */
tutti_status tti_detour_open(const tti_detour_plan *plan, tti_detour **detour_out);

/** A call with device memory, which is no barrier. */
tutti_status tti_detour_run(tti_detour *detour, const tutti_call *call);

/** The backend beside it has failed with this thread's last error, or was aborted: nothing of the detour waits any more. */
void tti_detour_fail(tti_detour *detour, tutti_status status);
void tti_detour_abort(tti_detour *detour);

/** Nobody is inside run. Waits for copies that are under way, unless it has failed. NULL is fine. */
void tti_detour_close(tti_detour *detour);

tutti_status tti_detour_mark(tti_detour *detour, int device_index, void *stream, tutti_ticket **ticket_out);
tutti_status tti_detour_follow(tutti_ticket *ticket, void *stream);
bool tti_detour_test(tutti_ticket *ticket);
tutti_status tti_detour_wait(tutti_ticket *ticket, int64_t deadline_ns);
void tti_detour_release(tutti_ticket *ticket);

#endif

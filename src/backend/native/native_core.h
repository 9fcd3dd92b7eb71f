/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backend/native/native_core.h - the backend as its files see it. */
#ifndef TTI_BACKEND_NATIVE_CORE_H
#define TTI_BACKEND_NATIVE_CORE_H

#include <stdatomic.h>
#include "backend/detour/detour.h"
#include "backend/native/native.h"
#include "coll/coll.h"

/** Group rank -> rank of the world. Outlives the backend when requests do. */
typedef struct tti_membership {
    _Atomic int refs;
    int         n;
    int         ranks[];
} tti_membership;

typedef struct tti_native {
    tutti_backend   base;
    bool            owns_mesh;
    tti_mesh       *mesh;
    tti_messenger  *messenger;
    tti_coll       *coll;
    tti_membership *members;
    tti_detour     *detour; /* of calls on memory of a device */
    uint32_t        group_id;
} tti_native;

/** Lies in the room of its message. */
struct tutti_request {
    tti_request    *message;
    tti_membership *members;
    bool            is_send;
};

_Static_assert(sizeof(tutti_request) <= TTI_REQUEST_ROOM, "a message has room for what the backend knows of it");

extern const tutti_window_ops tti_native_window_ops; /* native_window.c */
extern const tutti_stream_ops tti_native_stream_ops; /* native_device.c */

/** Have a detour; waits for nobody, and finds no device yet. */
tutti_status tti_native_open_detour(tti_native *nat, const tutti_backend_config *config);
/** A call on memory of a device. */
tutti_status tti_native_run_on_device(tti_native *nat, const tutti_call *call);
/** Words that a message on memory of a device cannot be. */
tutti_status tti_native_refuse_message(const tutti_message *message);

/** What stands for one of the messenger's, which is taken over. */
tutti_request *tti_native_wrap(const tti_native *nat, tti_request *message, bool is_send);

#endif

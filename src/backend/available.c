/* SPDX-License-Identifier: BSD-3-Clause
 *
 * available.c - which backends there are, for programs that ask. */
#include <string.h>
#include <tutti/backends.h>
#include <tutti/private.h>
#include "backend/device_map.h"
#include "backend/registry.h"

tutti_status tutti_get_default_backend_for_device(const char *device, const char **name_out)
{
    tutti_device_type type;

    if (device == NULL || name_out == NULL)
        return tti_fail(TUTTI_E_ARG, "tutti_get_default_backend_for_device: %s is NULL",
                        device == NULL ? "device" : "name_out");
    if (!tti_device_find(device, strcspn(device, ":"), &type))
        return tti_fail(TUTTI_E_ARG, "there is no device '%.64s', only 'cpu' and 'cuda'", device);
    *name_out = tti_backend_default_of(type);
    return TUTTI_OK;
}

/* Every failure here is an answer, not one to report. */
bool tutti_is_backend_available(const char *backend)
{
    const tutti_backend_ops *ops;
    tti_device_map           map;
    int                      i;

    if (backend == NULL || tti_device_map_parse(backend, &map) != TUTTI_OK)
        return false;
    for (i = 0; i < TTI_DEVICES; i++)
        if (map.names[i][0] != '\0' && tti_backend_find(map.names[i], &ops) != TUTTI_OK)
            return false;
    return true;
}

bool tutti_is_available(void)
{
    return true;
}

bool tutti_is_mpi_available(void)
{
    return tutti_is_backend_available("mpi");
}

bool tutti_is_nccl_available(void)
{
    return tutti_is_backend_available("nccl");
}

bool tutti_is_gloo_available(void)
{
    return false;
}

bool tutti_is_ucc_available(void)
{
    return tutti_is_backend_available("ucc");
}

bool tutti_is_xccl_available(void)
{
    return tutti_is_backend_available("xccl");
}

bool tutti_supports_complex(tutti_op op)
{
    switch (op.kind) {
    case TUTTI_OP_MAX:
    case TUTTI_OP_MIN:
    case TUTTI_OP_PRODUCT:
    case TUTTI_OP_BAND:
    case TUTTI_OP_BOR:
    case TUTTI_OP_BXOR: return false;
    default: return true;
    }
}

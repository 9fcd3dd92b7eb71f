/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backend/registry.h - from a backend's name to its table. */
#ifndef TTI_BACKEND_REGISTRY_H
#define TTI_BACKEND_REGISTRY_H

#include <tutti/plugin/backend.h>

#define TTI_BACKEND_DEFAULT "native"

/** The table of the backend called name, in any case of letters; NULL: the default one. The table
 * has passed tti_backend_check() and is constant.
 * @errors TUTTI_E_ARG          no such backend; the text lists those there are
 *         TUTTI_E_UNSUPPORTED  it would be a plug-in, which is not there; the text names it */
tutti_status tti_backend_find(const char *name, const tutti_backend_ops **ops_out);

/** Whose memory a backend takes: a bit for each tutti_device_type. It may be that of a plug-in that is not
 * there.
 * @errors TUTTI_E_ARG  no such backend */
tutti_status tti_backend_devices(const char *name, unsigned *devices_out);

/** The backend that is meant for a device when none is named. */
const char *tti_backend_default_of(tutti_device_type device);

/** Whether this library can drive a table: its version, and every required entry.
 * @errors TUTTI_E_UNSUPPORTED  made for another version of the table
 *         TUTTI_E_ARG          no name, or a required entry is missing; the text says which */
tutti_status tti_backend_check(const tutti_backend_ops *ops);

/** Whether the environment says things to a backend that can be meant, before anybody is waited for.
 * @errors TUTTI_E_ARG  a variable has a wrong value; the text names it */
tutti_status tti_backend_check_env(const tutti_backend_ops *ops);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backend/plugin/device.h - devices that are plug-ins. */
#ifndef TTI_BACKEND_PLUGIN_DEVICE_H
#define TTI_BACKEND_PLUGIN_DEVICE_H

#include <tutti/plugin/device.h>
#include "backend/plugin/search.h"

/** The table of the device called name, as "cuda": known already, or from its plug-in, which is loaded. NULL in *ops_out:
 * there is none; places_out names the directories that were looked at.
 * @errors as tti_plugin_find() */
tutti_status tti_device_ops_find(const char *name, const tutti_device_ops **ops_out, char places_out[TTI_PLACES_TEXT]);
/** The table of a kind of device.
 * @errors TUTTI_E_ARG          there are no plug-ins for that kind
 *         TUTTI_E_UNSUPPORTED  its plug-in is not there
 *         as tti_plugin_find() */
tutti_status tti_device_ops_of(tutti_device_type type, const tutti_device_ops **ops_out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backend/plugin/transport.h - transports that are plug-ins. */
#ifndef TTI_BACKEND_PLUGIN_TRANSPORT_H
#define TTI_BACKEND_PLUGIN_TRANSPORT_H

#include <tutti/plugin/transport.h>
#include "backend/plugin/search.h"

/** The table of the transport called name: known already, or from its plug-in, which is loaded. NULL in *ops_out: there is
 * none of that name, or no plug-in can have it; places_out names the directories that were looked at, "" in the second case.
 * @errors as tti_plugin_find() */
tutti_status tti_transport_find(const char *name, const tutti_transport_ops **ops_out, char places_out[TTI_PLACES_TEXT]);

#endif

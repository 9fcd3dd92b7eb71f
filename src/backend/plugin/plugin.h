/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backend/plugin/plugin.h - backends that are not the library's own. */
#ifndef TTI_BACKEND_PLUGIN_PLUGIN_H
#define TTI_BACKEND_PLUGIN_PLUGIN_H

#include <tutti/plugin/plugin.h>
#include "backend/plugin/search.h"
#include "backend/plugin/table.h"

/** The backend called name: known already, or from its plug-in, which is loaded. NULL in *adopted_out: there is none of that
 * name; places_out names the directories that were looked at.
 * @errors TUTTI_E_AUTH         the plug-in is there, and might be somebody else's
 *         TUTTI_E_UNSUPPORTED  it is too old or too new
 *         TUTTI_E_BACKEND      it cannot be loaded, is no plug-in, or is broken
 *         TUTTI_E_ARG          TUTTI_PLUGIN_PATH is no list of directories
 *         TUTTI_E_NOMEM; and whatever the plug-in's own init comes to */
tutti_status tti_plugin_find(const char *name, const tti_adopted **adopted_out, char places_out[TTI_PLACES_TEXT]);

/** Make a program's table known, if its name is free.
 * @errors TUTTI_E_STATE  there is one of that name already
 *         as tti_backend_check(); TUTTI_E_NOMEM */
tutti_status tti_plugin_register(const char *name, unsigned devices, const tutti_backend_ops *ops);

/** What plug-ins are given. */
extern const tutti_plugin_host tti_plugin_host;

#endif

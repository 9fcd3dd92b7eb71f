/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backend/registry.h - from a backend's name to its table. */
#ifndef TTI_BACKEND_REGISTRY_H
#define TTI_BACKEND_REGISTRY_H

#include <tutti/plugin/backend.h>

#define TTI_BACKEND_DEFAULT "native"

/** The table of the backend called name, in any case of letters; NULL: the default one. A plug-in is loaded. The table
 * has passed tti_backend_check() and is constant.
 * @errors TUTTI_E_ARG          no such backend; the text lists those there are
 *         TUTTI_E_UNSUPPORTED  it would be a plug-in, which is not there; the text names where it was looked for
 *         and those of tti_plugin_find(), if the plug-in is there */
tutti_status tti_backend_find(const char *name, const tutti_backend_ops **ops_out);

/** Whose memory a backend takes: a bit for each tutti_device_type. Of some names this is known, be their plug-ins there or
 * not; others are found.
 * @errors as tti_backend_find() */
tutti_status tti_backend_devices(const char *name, unsigned *devices_out);

/** The backend that is meant for a device when none is named. */
const char *tti_backend_default_of(tutti_device_type device);

/** Whether a table that tti_backend_find() gave is one of this build, or a wrapper around one: it knows what the library's rooms tell
 * each other. Others are plug-ins, or a program's own. */
bool tti_backend_is_own(const tutti_backend_ops *ops);

/** Whether a table that tti_backend_find() gave has messages. */
bool tti_backend_has_messages(const tutti_backend_ops *ops);

/** Whether the environment says things to a backend that can be meant, before anybody is waited for. store: the program's, in which
 * more than one rank will meet; NULL: none.
 * @errors TUTTI_E_ARG          a variable has a wrong value; the text names it
 *         TUTTI_E_UNSUPPORTED  not with that store
 *         and what a backend of others says of this process (usable) */
tutti_status tti_backend_check_env(const tutti_backend_ops *ops, tutti_store *store);

/** Whether a backend string names backends with which a group could be made; NULL: the default one. A plug-in is loaded. As a group
 * would, it takes one whose device's memory nobody may ever hand over, "cuda:nccl" beside "cpu:native", be it there or not.
 * @errors as tti_device_map_parse() */
tutti_status tti_backend_check_text(const char *text);

/** Whether TUTTI_PLUGIN_PATH says what can be meant.
 * @errors TUTTI_E_ARG      it is no list of directories
 *         TUTTI_E_AUTH     one of them might be somebody else's: nothing of it is ever loaded
 *         TUTTI_E_BACKEND  one cannot be looked at */
tutti_status tti_backend_check_places(void);

/** Whether a table that tti_backend_find() gave has worlds of the ranks only that its job was started with. */
bool tti_backend_is_fixed(const tutti_backend_ops *ops);

/** The table that moves the data: what a wrapper is around, any other itself. Backends with one inside share connections. */
const tutti_backend_ops *tti_backend_inside(const tutti_backend_ops *ops);
/** The backend of that table, of one that ops has made: the parent of others. NULL: NULL. */
tutti_backend *tti_backend_inner(const tutti_backend_ops *ops, tutti_backend *backend);

#endif

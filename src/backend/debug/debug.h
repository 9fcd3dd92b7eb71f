/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backend/debug/debug.h - a backend in which every collective is compared before it is run. */
#ifndef TTI_BACKEND_DEBUG_DEBUG_H
#define TTI_BACKEND_DEBUG_DEBUG_H

#include <tutti/plugin/backend.h>

#define TTI_DEBUG_PREFIX "debug-" /* of the names of such backends */

/** The table of "debug-NAME" around the one of NAME, which stays. The same one for the same table; constant, never freed.
 * @errors TUTTI_E_NOMEM */
tutti_status tti_debug_around(const tutti_backend_ops *inner, const tutti_backend_ops **ops_out);
/** The table that one of these is around; any other is its own. */
const tutti_backend_ops *tti_debug_inside(const tutti_backend_ops *ops);
/** The backend, made by ops, or by what ops is around; that is what config->parent of either table's create is. NULL: NULL. */
tutti_backend *tti_debug_inner_backend(const tutti_backend_ops *ops, tutti_backend *backend);

#endif

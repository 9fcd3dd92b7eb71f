/* SPDX-License-Identifier: BSD-3-Clause
 *
 * base/options.h - option structs, which only grow at the end. */
#ifndef TTI_BASE_OPTIONS_H
#define TTI_BASE_OPTIONS_H

#include <stddef.h>
#include <tutti/status.h>

/** Read an option struct of size bytes into known (known_size, filled with defaults).
 * @errors TUTTI_E_ARG          never initialised
 *         TUTTI_E_UNSUPPORTED  a newer one whose new fields are set */
tutti_status tti_options_read(void *known, size_t known_size, const void *opts, const char *macro);

#endif

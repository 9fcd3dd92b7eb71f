/* SPDX-License-Identifier: BSD-3-Clause
 *
 * base/foreign.h - what code that is not the library's says that it has come to: entries of plug-ins, and of tables of programs. */
#ifndef TTI_BASE_FOREIGN_H
#define TTI_BASE_FOREIGN_H

#include <tutti/private.h>

/** What entry of the kind ("backend") called name has returned, as what it may be taken for: a status that there is not is
 * TUTTI_E_BACKEND, and a failure without words, said being what tti_words_said() was before, gets some. */
tutti_status tti_foreign_status(const char *kind, const char *name, const char *entry, tutti_status st, uint32_t said);

/** TUTTI_E_BACKEND: it has returned TUTTI_OK, or what stands for that, and then `what` does not hold: "gives no backend". */
tutti_status tti_foreign_broken(const char *kind, const char *name, const char *entry, const char *what);

#endif

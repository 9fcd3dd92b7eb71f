/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backend/plugin/table.h - tables that others have made: which are driven, and as what. */
#ifndef TTI_BACKEND_PLUGIN_TABLE_H
#define TTI_BACKEND_PLUGIN_TABLE_H

#include <tutti/plugin/backend.h>

enum { TTI_ADOPTED_NAME_MAX = 32 };

/** A backend of a program or of a plug-in. Constant once it is known, and never freed. */
typedef struct tti_adopted {
    tutti_backend_ops   ops; /* of this library's version, and complete; its name is the one below */
    tutti_stream_ops    streams; /* what ops.streams points at, if there are any */
    tutti_window_ops    windows; /* the same for ops.windows */
    unsigned            devices;
    char                name[TTI_ADOPTED_NAME_MAX];
    struct tti_adopted *next;
} tti_adopted;

/** Whether this library can drive a table: its version, and every required entry. whose is for words: "backend 'x'".
 * @errors TUTTI_E_UNSUPPORTED  made for a version that is not driven
 *         TUTTI_E_ARG          its size is not that of its version, it has no name, or an entry is missing; the text
 *                              says which */
tutti_status tti_backend_check(const char *whose, const tutti_backend_ops *ops);

/** Make a table, which has passed the check, known as name. It is copied. Of two who come with one name the first wins.
 * @errors TUTTI_E_STATE  there is one of that name already
 *         TUTTI_E_NOMEM */
tutti_status tti_adopt(const char *name, unsigned devices, const tutti_backend_ops *ops);

/** NULL: not known. In any case of letters. */
const tti_adopted *tti_adopted_find(const char *name);
/** The one that was made known last, and so on by next. NULL: none. */
const tti_adopted *tti_adopted_all(void);

/** Whether a table that was adopted has messages. */
bool tti_table_has_messages(const tutti_backend_ops *ops);

/** A name that a backend may have: small letters, digits, '_' and '-', fewer than TTI_ADOPTED_NAME_MAX. */
bool tti_backend_is_name(const char *name);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/health/names.h - what the groups of this rank are called, for words about what others did last.
 *
 * A word of a rank has room for a short number of a group, and none for its name: whoever reads it looks the name up among its own
 * groups. Any thread, any time; the lock is held for a few steps, and nothing is called under it. */
#ifndef TTI_TRANSPORT_HEALTH_NAMES_H
#define TTI_TRANSPORT_HEALTH_NAMES_H

#include "base/thread.h"

typedef struct tti_deed_name tti_deed_name;

typedef struct tti_deed_names {
    tti_mutex      lock;
    tti_deed_name *first; /* newest first */
} tti_deed_names;

void tti_deed_names_init(tti_deed_names *names);
void tti_deed_names_release(tti_deed_names *names);
/** Without memory the group has no name. */
void tti_deed_names_add(tti_deed_names *names, uint32_t group, const char *name);
void tti_deed_names_remove(tti_deed_names *names, uint32_t group);
/** The name of the newest group with that tti_deed_group(), as far as it fits. */
bool tti_deed_names_find(tti_deed_names *names, unsigned short_group, char *out, size_t bytes);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * names.c - a list of groups, as there are few, and it is read only when something is wrong. */
#include "transport/health/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "transport/health/health.h"

struct tti_deed_name {
    tti_deed_name *next;
    uint32_t       group;
    char           text[];
};

void tti_deed_names_init(tti_deed_names *names)
{
    tti_mutex_init(&names->lock);
    names->first = NULL;
}

void tti_deed_names_release(tti_deed_names *names)
{
    tti_deed_name *next;

    for (; names->first != NULL; names->first = next) {
        next = names->first->next;
        free(names->first);
    }
}

void tti_deed_names_add(tti_deed_names *names, uint32_t group, const char *name)
{
    const size_t   bytes = strlen(name) + 1;
    tti_deed_name *added = malloc(sizeof *added + bytes);

    if (added == NULL)
        return;
    added->group = group;
    memcpy(added->text, name, bytes);
    tti_lock(&names->lock);
    added->next = names->first;
    names->first = added;
    tti_unlock(&names->lock);
}

void tti_deed_names_remove(tti_deed_names *names, uint32_t group)
{
    tti_deed_name **at = &names->first, *removed;

    tti_lock(&names->lock);
    while (*at != NULL && (*at)->group != group)
        at = &(*at)->next;
    removed = *at;
    if (removed != NULL)
        *at = removed->next;
    tti_unlock(&names->lock);
    free(removed);
}

bool tti_deed_names_find(tti_deed_names *names, unsigned short_group, char *out, size_t bytes)
{
    const tti_deed_name *name;

    tti_lock(&names->lock);
    name = names->first;
    while (name != NULL && tti_deed_group(name->group) != short_group)
        name = name->next;
    if (name != NULL)
        snprintf(out, bytes, "%s", name->text);
    tti_unlock(&names->lock);
    return name != NULL;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * objects.c - several byte strings in one block of memory.
 *
 *     tutti_bytes[n] | object 0, NUL, zeros to a multiple of 16 | object 1, ...
 *
 * What stands behind the table is the same on all ranks for the same sizes: a list travels as it lies. */
#include "object/object.h"

#include <stdlib.h>
#include <tutti/private.h>

enum { ALIGN = 16 };

static size_t rounded(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

int64_t tti_objects_payload_bytes(const int64_t *sizes, int n)
{
    int64_t bytes = 0;
    int     i;

    for (i = 0; i < n; i++)
        bytes += (int64_t)rounded((size_t)sizes[i] + 1);
    return bytes;
}

tutti_status tti_objects_create(const int64_t *sizes, int n, tutti_objects *objects_out)
{
    const size_t table = rounded((size_t)n * sizeof(tutti_bytes));
    const size_t payload = (size_t)tti_objects_payload_bytes(sizes, n);
    char        *block;
    char        *at;
    int          i;

    if (n == 0) {
        *objects_out = (tutti_objects){ 0 };
        return TUTTI_OK;
    }
    block = calloc(1, table + payload);
    if (block == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for %d objects of %zu bytes", n, payload);
    *objects_out = (tutti_objects){ .at = (tutti_bytes *)(void *)block, .n = n };
    at = block + table;
    for (i = 0; i < n; i++) {
        objects_out->at[i] = (tutti_bytes){ .data = at, .size = (size_t)sizes[i] };
        at += rounded((size_t)sizes[i] + 1);
    }
    return TUTTI_OK;
}

tutti_span tti_objects_payload(const tutti_objects *objects)
{
    const tutti_bytes *last;
    uint8_t           *begin;

    if (objects->n == 0)
        return tutti_span_of(NULL, 0, TUTTI_U8);
    last = &objects->at[objects->n - 1];
    begin = objects->at[0].data;
    return tutti_span_of(begin, ((uint8_t *)last->data - begin) + (int64_t)rounded(last->size + 1), TUTTI_U8);
}

tutti_status tti_objects_check(const tutti_group *group, const char *what, const tutti_bytes *list, int n)
{
    int i;

    if (n < 0 || n > TUTTI_OBJECT_LIST_MAX)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': a list of %d objects, not of 0 .. %d", what,
                        group->name, n, TUTTI_OBJECT_LIST_MAX);
    if (list == NULL && n > 0)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': the list of %d objects is NULL", what, group->name, n);
    for (i = 0; i < n; i++) {
        if (list[i].data == NULL && list[i].size > 0)
            return tti_fail(TUTTI_E_ARG, "%s on group '%s': object %d has %zu bytes, but its data is NULL", what,
                            group->name, i, list[i].size);
    }
    return TUTTI_OK;
}

void tutti_objects_free(tutti_objects *objects)
{
    if (objects == NULL)
        return;
    free(objects->at);
    *objects = (tutti_objects){ 0 };
}

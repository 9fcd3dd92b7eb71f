/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ops_object.c - objects: byte strings of any sizes, which come as memory of the library.
 *
 * How     What is given are spans of the try. For each object that must come there is a buffer, too: settle()
 *         compares number and sizes, and copies the bytes there, where the common check finds them. */
#include "ops.h"

#include <string.h>

static tutti_bytes bytes_of(tutti_span span)
{
    return tutti_bytes_of(span.data, (size_t)span.count);
}

static void give(tt_try *t, int part)
{
    t->ins[part] = tt_make(t, tt_any_count(t, 50, t->rank, part), tt_part(t->rank, part),
                           tt_part(t->rank, part));
}

static void expect(tt_try *t, int from, int part)
{
    t->outs[t->n_entries++] =
        tt_make(t, tt_any_count(t, 50, from, part), tt_blank(), tt_part(from, part));
}

static bool check_object(tt_try *t, int i)
{
    const tutti_bytes *at = &t->objects.at[i];
    const size_t size = (size_t)t->outs[i].count;

    if (at->size != size)
        return tt_wrong(t, "object %d has %zu bytes, not %zu", i, at->size, size);
    if (at->data == NULL || (uintptr_t)at->data % 16 != 0 || ((const char *)at->data)[size] != '\0')
        return tt_wrong(
            t, "object %d does not begin at a multiple of 16 bytes, or has no NUL behind it", i);
    memcpy(t->outs[i].data, at->data, size);
    return true;
}

bool tt_objects_settle(tt_try *t)
{
    int i;

    if (t->objects.n != t->n_entries)
        return tt_wrong(t, "%d objects came, not %d", t->objects.n, t->n_entries);
    for (i = 0; i < t->n_entries; i++)
        if (!check_object(t, i))
            return false;
    return true;
}

/* ---- all_gather_object, gather_object ---- */

static void gather(tt_try *t, bool receives)
{
    int r;

    give(t, 0);
    for (r = 0; receives && r < t->size; r++)
        expect(t, r, 0);
}

void tt_all_gather_object_prepare(tt_try *t)
{
    gather(t, true);
}

tutti_status tt_all_gather_object_block(tt_try *t)
{
    return tutti_all_gather_object(t->ins[0].data, (size_t)t->ins[0].count, t->group, &t->objects);
}

void tt_gather_object_prepare(tt_try *t)
{
    gather(t, tt_is_root(t));
}

tutti_status tt_gather_object_block(tt_try *t)
{
    return tutti_gather_object(t->ins[0].data, (size_t)t->ins[0].count, tt_global(t, t->root),
                               t->group, tt_is_root(t) ? &t->objects : NULL);
}

tutti_status tt_gather_object_in_group_block(tt_try *t)
{
    return tutti_gather_object_in_group(t->ins[0].data, (size_t)t->ins[0].count, t->root, t->group,
                                        tt_is_root(t) ? &t->objects : NULL);
}

/* ---- lists ---- */

static int list_length(const tt_try *t)
{
    return tt_roll(t, 52, 0, 0, TT_WORLD_MAX + 1);
}

static void list_of(const tt_try *t, int n, tutti_bytes list[TT_WORLD_MAX])
{
    int i;

    for (i = 0; i < n; i++)
        list[i] = bytes_of(t->ins[i]);
}

void tt_broadcast_object_list_prepare(tt_try *t)
{
    int i;

    for (i = 0; i < list_length(t); i++)
        if (tt_is_root(t))
            give(t, i);
        else
            expect(t, t->root, i);
}

tutti_status tt_broadcast_object_list_block(tt_try *t)
{
    const int n = list_length(t);
    tutti_bytes list[TT_WORLD_MAX];

    if (!tt_is_root(t))
        return tutti_broadcast_object_list(NULL, n, tt_global(t, t->root), t->group, &t->objects);
    list_of(t, n, list);
    return tutti_broadcast_object_list(list, n, tt_global(t, t->root), t->group, NULL);
}

tutti_status tt_broadcast_object_list_in_group_block(tt_try *t)
{
    const int n = list_length(t);
    tutti_bytes list[TT_WORLD_MAX];

    if (!tt_is_root(t))
        return tutti_broadcast_object_list_in_group(NULL, n, t->root, t->group, &t->objects);
    list_of(t, n, list);
    return tutti_broadcast_object_list_in_group(list, n, t->root, t->group, NULL);
}

void tt_scatter_object_list_prepare(tt_try *t)
{
    int r;

    for (r = 0; tt_is_root(t) && r < t->size; r++)
        give(t, r);
    expect(t, t->root, t->rank);
}

tutti_status tt_scatter_object_list_block(tt_try *t)
{
    tutti_bytes list[TT_WORLD_MAX];

    if (!tt_is_root(t))
        return tutti_scatter_object_list(NULL, 0, tt_global(t, t->root), t->group, &t->objects);
    list_of(t, t->size, list);
    return tutti_scatter_object_list(list, t->size, tt_global(t, t->root), t->group, &t->objects);
}

tutti_status tt_scatter_object_list_in_group_block(tt_try *t)
{
    tutti_bytes list[TT_WORLD_MAX];

    if (!tt_is_root(t))
        return tutti_scatter_object_list_in_group(NULL, 0, t->root, t->group, &t->objects);
    list_of(t, t->size, list);
    return tutti_scatter_object_list_in_group(list, t->size, t->root, t->group, &t->objects);
}

/* ---- messages: from each even rank to the next one, which takes it from that rank or from anybody ---- */

static int next_rank(const tt_try *t)
{
    return t->rank + 1;
}

static bool sends(const tt_try *t)
{
    return t->rank % 2 == 0 && next_rank(t) < t->size;
}

void tt_send_recv_object_list_prepare(tt_try *t)
{
    int i;

    for (i = 0; i < list_length(t); i++)
        if (sends(t))
            give(t, i);
        else if (t->rank % 2 == 1)
            expect(t, t->rank - 1, i);
}

static tutti_status came_from(tt_try *t, tutti_status st, int source)
{
    if (st == TUTTI_OK && source != tt_global(t, t->rank - 1))
        tt_wrong(t, "a list from rank %d came from rank %d", tt_global(t, t->rank - 1), source);
    return st;
}

tutti_status tt_send_recv_object_list_block(tt_try *t)
{
    const int n = list_length(t);
    tutti_bytes list[TT_WORLD_MAX];
    tutti_status st;
    int source = -1;

    if (sends(t)) {
        list_of(t, n, list);
        return tutti_send_object_list(list, n, tt_global(t, next_rank(t)), t->tag, t->group);
    }
    if (t->rank % 2 == 0)
        return TUTTI_OK;
    st = tutti_recv_object_list(t->in_place ? TUTTI_ANY_SOURCE : tt_global(t, t->rank - 1), t->tag,
                                t->group, &t->objects, &source);
    return came_from(t, st, source);
}

tutti_status tt_send_recv_object_list_in_group_block(tt_try *t)
{
    const int n = list_length(t);
    tutti_bytes list[TT_WORLD_MAX];
    tutti_status st;
    int source = -1;

    if (sends(t)) {
        list_of(t, n, list);
        return tutti_send_object_list_in_group(list, n, next_rank(t), t->tag, t->group);
    }
    if (t->rank % 2 == 0)
        return TUTTI_OK;
    st = tutti_recv_object_list_in_group(t->in_place ? TUTTI_ANY_SOURCE : t->rank - 1, t->tag,
                                         t->group, &t->objects, &source);
    return came_from(t, st, source);
}

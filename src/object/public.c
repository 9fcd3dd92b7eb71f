/* SPDX-License-Identifier: BSD-3-Clause
 *
 * public.c - the object collectives as callers see them: groups, roots and arguments checked, global
 * ranks and ranks of the group. */
#include "object/object.h"

#include "group/collective.h"
#include <tutti/private.h>

/* A root as it was given. */
typedef struct root_arg {
    const char *name; /* "src", "group_dst" */
    int         rank;
    bool        in_group;
} root_arg;

static tutti_status find_root(const tutti_group *group, const char *what, root_arg root, int *root_out)
{
    if (!root.in_group)
        return tti_check_root(group, what, root.name, root.rank, root_out);
    if (root.rank < 0 || root.rank >= group->size)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': %s %d is outside of 0 .. %d", what, group->name,
                        root.name, root.rank, group->size - 1);
    *root_out = root.rank;
    return TUTTI_OK;
}

/* An output is there where something comes, and only there. */
static tutti_status check_output(const tutti_group *group, const char *what, const void *out, bool wanted)
{
    if (wanted == (out != NULL))
        return TUTTI_OK;
    return tti_fail(TUTTI_E_ARG, "%s on group '%s': objects_out is %s on rank %d, which gets %s", what,
                    group->name, wanted ? "NULL" : "given", group->ranks[group->rank],
                    wanted ? "the objects" : "none\n  next: pass NULL there");
}

static tutti_status check_input(const tutti_group *group, const char *what, const tutti_bytes *list, bool wanted)
{
    if (wanted || list == NULL)
        return TUTTI_OK;
    return tti_fail(TUTTI_E_ARG,
                    "%s on group '%s': a list is given on rank %d, which is not the root\n"
                    "  next: pass NULL there",
                    what, group->name, group->ranks[group->rank]);
}

/* ---- all_gather_object ---- */

tutti_status tutti_all_gather_object(const void *data, size_t size, tutti_group *group,
                                     tutti_objects *objects_out)
{
    const char       *what = "all_gather_object";
    const tutti_bytes own = tutti_bytes_of(data, size);
    const tti_offer   offer = { .list = &own, .n = 1 };
    tutti_group      *g = NULL;
    tutti_status      st = tti_group_resolve(group, what, &g);

    if (st != TUTTI_OK || g == NULL)
        return st;
    st = tti_objects_check(g, what, &own, 1);
    if (st == TUTTI_OK)
        st = check_output(g, what, objects_out, true);
    return st == TUTTI_OK ? tti_object_all_gather(g, what, &offer, objects_out) : st;
}

/* ---- gather_object ---- */

static tutti_status gather(const char *what, const void *data, size_t size, root_arg dst, tutti_group *group,
                           tutti_objects *objects_out)
{
    const tutti_bytes own = tutti_bytes_of(data, size);
    const tti_offer   offer = { .list = &own, .n = 1 };
    tutti_group      *g = NULL;
    int               root = -1;
    tutti_status      st = tti_group_resolve(group, what, &g);

    if (st != TUTTI_OK || g == NULL)
        return st;
    st = find_root(g, what, dst, &root);
    if (st == TUTTI_OK)
        st = tti_objects_check(g, what, &own, 1);
    if (st == TUTTI_OK)
        st = check_output(g, what, objects_out, g->rank == root);
    return st == TUTTI_OK ? tti_object_gather(g, what, &offer, root, objects_out) : st;
}

tutti_status tutti_gather_object(const void *data, size_t size, int dst, tutti_group *group,
                                 tutti_objects *objects_out)
{
    return gather("gather_object", data, size, (root_arg){ "dst", dst, false }, group, objects_out);
}

tutti_status tutti_gather_object_in_group(const void *data, size_t size, int group_dst, tutti_group *group,
                                          tutti_objects *objects_out)
{
    return gather("gather_object_in_group", data, size, (root_arg){ "group_dst", group_dst, true }, group,
                  objects_out);
}

/* ---- broadcast_object_list ---- */

static tutti_status broadcast(const char *what, const tutti_bytes *list, int n, root_arg src,
                              tutti_group *group, tutti_objects *objects_out)
{
    const tti_offer offer = { .list = list, .n = n };
    tutti_group    *g = NULL;
    int             root = -1;
    tutti_status    st = tti_group_resolve(group, what, &g);

    if (st != TUTTI_OK || g == NULL)
        return st;
    st = find_root(g, what, src, &root);
    if (st == TUTTI_OK)
        st = check_input(g, what, list, g->rank == root);
    if (st == TUTTI_OK && (g->rank == root || n < 0 || n > TUTTI_OBJECT_LIST_MAX))
        st = tti_objects_check(g, what, list, n);
    if (st == TUTTI_OK)
        st = check_output(g, what, objects_out, g->rank != root);
    return st == TUTTI_OK ? tti_object_broadcast(g, what, &offer, root, objects_out) : st;
}

tutti_status tutti_broadcast_object_list(const tutti_bytes *list, int n, int src, tutti_group *group,
                                         tutti_objects *objects_out)
{
    return broadcast("broadcast_object_list", list, n, (root_arg){ "src", src, false }, group, objects_out);
}

tutti_status tutti_broadcast_object_list_in_group(const tutti_bytes *list, int n, int group_src,
                                                  tutti_group *group, tutti_objects *objects_out)
{
    return broadcast("broadcast_object_list_in_group", list, n, (root_arg){ "group_src", group_src, true },
                     group, objects_out);
}

/* ---- scatter_object_list ---- */

static tutti_status check_scattered(const tutti_group *group, const char *what, const tutti_bytes *list, int n,
                                    bool root)
{
    tutti_status st = check_input(group, what, list, root);

    if (st == TUTTI_OK && n != (root ? group->size : 0))
        st = tti_fail(TUTTI_E_ARG, "%s on group '%s': a list of %d objects on rank %d, not of %d", what,
                      group->name, n, group->ranks[group->rank], root ? group->size : 0);
    return st == TUTTI_OK ? tti_objects_check(group, what, list, n) : st;
}

static tutti_status scatter(const char *what, const tutti_bytes *list, int n, root_arg src, tutti_group *group,
                            tutti_objects *objects_out)
{
    const tti_offer offer = { .list = list, .n = n };
    tutti_group    *g = NULL;
    int             root = -1;
    tutti_status    st = tti_group_resolve(group, what, &g);

    if (st != TUTTI_OK || g == NULL)
        return st;
    st = find_root(g, what, src, &root);
    if (st == TUTTI_OK)
        st = check_scattered(g, what, list, n, g->rank == root);
    if (st == TUTTI_OK)
        st = check_output(g, what, objects_out, true);
    return st == TUTTI_OK ? tti_object_scatter(g, what, &offer, root, objects_out) : st;
}

tutti_status tutti_scatter_object_list(const tutti_bytes *list, int n, int src, tutti_group *group,
                                       tutti_objects *objects_out)
{
    return scatter("scatter_object_list", list, n, (root_arg){ "src", src, false }, group, objects_out);
}

tutti_status tutti_scatter_object_list_in_group(const tutti_bytes *list, int n, int group_src,
                                                tutti_group *group, tutti_objects *objects_out)
{
    return scatter("scatter_object_list_in_group", list, n, (root_arg){ "group_src", group_src, true }, group,
                   objects_out);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * split.c - groups out of a group: its members, and nobody else, divide themselves.
 *
 * How     All members of the parent call, and count: the n-th split of "3" makes "3:split:n.0",
 *         "3:split:n.1", ... The parent may be any group, so that other ranks of the world do not hear
 *         of it, and numbers are agreed through the store (agreed.c). The parent's connections are
 *         used; making a group waits for its members.
 * Turn    A backend may make the parts out of what the parent has (backend.h: split_from), which all members of the parent
 *         have to come to. Where the parent has one, the division has a turn among the parent's collectives: what was issued
 *         before it has been run, what is issued later comes after it, alike on all members. And a rank that is in no part
 *         waits for the others; one that fails has its turn, too, and tells the backends that it makes no part.
 * True    Lists are checked before the first step that others can see: bad ones make nothing, also not on other ranks, which
 *         have the same arguments.
 * Source  torch.distributed.split_group; the split by colours is MPI's, without its key. */
#include "group/make.h"
#include "group/recorded.h"
#include "regroup/deed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include <tutti/regroup.h>

/* This rank's part of a split. */
typedef struct share {
    const int *members; /* [n] ranks of the parent, in any order */
    int        n;
    int        index; /* of the part */
} share;

/* ---- one part ---- */

static tutti_status fail_memory(int n)
{
    return tti_fail(TUTTI_E_NOMEM, "no memory to split a group of %d", n);
}

static uint32_t take_split_number(tutti_group *parent)
{
    uint32_t n;

    tti_lock(&parent->runner->lock);
    n = ++parent->n_splits;
    tti_unlock(&parent->runner->lock);
    return n;
}

static tutti_status name_part(tutti_group *group, const tutti_group *parent, uint32_t split, int part)
{
    char text[TTI_GROUP_NAME_MAX + 40];

    snprintf(text, sizeof text, "%s:split:%u.%d", parent->name, split, part);
    return tti_group_name_by_text(group, text);
}

static void fill_ranks(tutti_group *group, const tutti_group *parent, const share *mine)
{
    int i;

    for (i = 0; i < mine->n; i++)
        group->ranks[i] = parent->ranks[mine->members[i]];
    tti_ranks_sort(group->ranks, mine->n);
    group->rank = tti_group_find(group, parent->ranks[parent->rank]);
}

/* The name and the ranks are there. */
static tutti_status open_named(tutti_group *group, tutti_group *world, int64_t deadline_ns)
{
    tti_making   making;
    uint64_t     record = 0;
    tutti_status st;

    tti_making_begin(&making, world->runner->port, world->store, group->name, world->rank, world);
    st = tti_group_agree_number(group, deadline_ns); /* it comes from the store: no member waits for another one there */
    if (st == TUTTI_OK) {
        tti_recorded_group_begin(group); /* before the others are waited for: who looks from outside sees for whom */
        record = tti_recorded_regrouping(group, TUTTI_RECORD_SPLIT_GROUP, -1, 0);
        st = tti_group_open_backend(group, deadline_ns, TTI_OPEN_ALONE);
    }
    return tti_recorded_regrouping_end(record, tti_making_end(&making, tti_made_by(group), deadline_ns, st));
}

/* The routes are there. */
static tutti_status open_part(tutti_group *group, tutti_group *parent, const share *mine)
{
    const int64_t deadline_ns = tti_deadline(group->runner->port, group->timeout_ms, group->timeout_ms);
    tutti_status  st = name_part(group, parent, group->division.step, mine->index);

    if (st == TUTTI_OK)
        st = tti_group_open_stores(group, group->name, parent->world->store);
    if (st != TUTTI_OK)
        return st;
    fill_ranks(group, parent, mine);
    return open_named(group, parent->world, deadline_ns);
}

/* Be in the part, or in none. */
static tutti_status take_part(tutti_group *group, tutti_group *parent, const share *mine)
{
    tutti_status st;

    if (mine->n == 0)
        return tti_routes_sit_out(group, group->timeout_ms, false);
    st = open_part(group, parent, mine);
    if (st != TUTTI_OK && group->division.from != NULL)
        (void)tti_routes_sit_out(group, 0, true);
    return st;
}

/* As far as this rank comes in step of the parent's divisions. Where it comes to no backends they are told all the same: those of
 * other members may wait for it. group_out: NULL if it has no part. */
static tutti_status come(tutti_group *parent, const share *mine, uint32_t step, const tutti_group_options *opts,
                         tutti_group **group_out)
{
    tutti_group *group = NULL;
    tutti_status st = tti_group_alloc(-1, mine->n > 0 ? mine->n : 1, &group);

    if (st == TUTTI_OK)
        st = tti_group_inherit(group, parent, opts);
    if (st == TUTTI_OK) {
        group->division = (tti_division){ .from = parent, .step = step, .color = mine->index };
        st = take_part(group, parent, mine);
    } else {
        tti_routes_leave(parent, step);
    }
    if (st == TUTTI_OK && mine->n > 0)
        *group_out = group;
    else
        tti_group_free(group);
    return st;
}

/* The same, in the parent's turn where it has a backend that wants all of its members: on all of them or on none, also on one that
 * fails, as the parent's calls are counted. */
static tutti_status come_in_turn(tutti_group *parent, const share *mine, uint32_t step, const tutti_group_options *opts,
                                 tutti_group **group_out)
{
    tti_turns    turns;
    tutti_status st;

    if (!tti_routes_divide(parent))
        return come(parent, mine, step, opts, group_out);
    st = tti_turns_take(parent, 1, &turns);
    if (st != TUTTI_OK)
        return st;
    st = come(parent, mine, step, opts, group_out);
    tti_turns_give(&turns, "split_group", TUTTI_OK); /* what fails is the part */
    return st;
}

/* Make this rank's part; one without members: it has none. */
static tutti_status make_part(tutti_group *parent, const share *mine, const tutti_group_options *opts,
                              tutti_group **group_out)
{
    const uint32_t      split = take_split_number(parent);
    tutti_group_options own = *opts;
    tutti_group        *group = NULL;
    char                desc[TTI_GROUP_NAME_MAX + 24];
    tutti_status        st;

    snprintf(desc, sizeof desc, "%s:split:%u", parent->name, split);
    if (own.desc == NULL)
        own.desc = desc;
    st = come_in_turn(parent, mine, split, &own, &group);
    if (st != TUTTI_OK)
        return st;
    if (group == NULL) {
        tti_non_member_begins();
        *group_out = TUTTI_NON_MEMBER;
        return TUTTI_OK;
    }
    tti_group_link(group);
    *group_out = group;
    return TUTTI_OK;
}

/* ---- by lists ---- */

/* The list that this rank stands in; none: no members. */
static share find_share(const tutti_group *parent, const int *const *lists, const int *n_ranks,
                        int n_lists)
{
    int i, j;

    for (i = 0; i < n_lists; i++)
        for (j = 0; j < n_ranks[i]; j++)
            if (lists[i][j] == parent->rank)
                return (share){ .members = lists[i], .n = n_ranks[i], .index = i };
    return (share){ .n = 0 };
}

/* The parent of a split: not NULL if this rank is a member, and not finished. */
static tutti_status begin_split(const char *what, tutti_group *parent,
                                const tutti_group_options *opts, tutti_group_options *known,
                                tutti_group **group_out)
{
    tutti_group *g = NULL;
    tutti_status st = tti_group_resolve(parent, what, &g);

    if (st == TUTTI_OK)
        st = tti_joint_options_read(what, opts, known);
    if (st == TUTTI_OK && g != NULL) {
        st = tti_group_enter(g); /* is it alive? */
        if (st == TUTTI_OK)
            tti_group_leave(g, what, TUTTI_OK);
    }
    if (st == TUTTI_OK)
        *group_out = g;
    return st;
}

static tutti_status split_by_lists(tutti_group *parent, const int *const *lists, const int *n_ranks,
                                   int n_lists, const tutti_group_options *opts,
                                   tutti_group **group_out)
{
    tutti_group_options known = TUTTI_GROUP_OPTIONS;
    tutti_group        *g = NULL;
    share               mine;
    tutti_status        st = begin_split("split_group", parent, opts, &known, &g);

    if (st != TUTTI_OK)
        return st;
    if (g == NULL) {
        tti_non_member_begins();
        *group_out = TUTTI_NON_MEMBER;
        return TUTTI_OK;
    }
    st = tti_lists_check("split_group", g->size, lists, n_ranks, n_lists);
    if (st != TUTTI_OK)
        return st;
    mine = find_share(g, lists, n_ranks, n_lists);
    tti_regroup_begins(g, TTI_DEED_SPLIT_GROUP);
    st = make_part(g, &mine, &known, group_out);
    tti_regroup_ends(g);
    return st;
}

tutti_status tutti_split_group(tutti_group *parent, const int *const *split_ranks,
                               const int *n_ranks, int n_lists, const tutti_group_options *opts,
                               tutti_group **group_out)
{
    tutti_status st;

    if (group_out == NULL)
        return tti_fail(TUTTI_E_ARG, "split_group: group_out is NULL");
    st = split_by_lists(parent, split_ranks, n_ranks, n_lists, opts, group_out);
    if (st != TUTTI_OK)
        *group_out = TUTTI_NO_GROUP;
    return st;
}

/* ---- by colours ---- */

/* Fill members[] with the ranks that have the caller's colour; the lowest is the part's index. */
static share gather_share(const tutti_group *g, const int32_t *colors, int *members)
{
    share mine = { .members = members };
    int   r;

    for (r = 0; r < g->size && colors[g->rank] >= 0; r++)
        if (colors[r] == colors[g->rank])
            members[mine.n++] = r;
    mine.index = mine.n > 0 ? members[0] : 0;
    return mine;
}

static tutti_status exchange_colors(tutti_group *g, int32_t color, const tutti_group_options *opts,
                                    tutti_group **group_out)
{
    const size_t n = (size_t)g->size;
    int32_t     *colors = malloc(n * sizeof *colors);
    int         *members = malloc(n * sizeof *members);
    tutti_status st = TUTTI_OK;
    uint64_t     record;
    share        mine;

    tti_regroup_begins(g, TTI_DEED_SPLIT_GROUP);
    if (colors == NULL || members == NULL)
        st = fail_memory(g->size);
    if (st == TUTTI_OK) {
        record = tti_recorded_regrouping(g, TUTTI_RECORD_SPLIT_GROUP, -1, 0);
        st = tti_recorded_regrouping_end(record, tutti_all_gather_into_tensor(TUTTI_SPAN(colors, g->size), TUTTI_SPAN(&color, 1), g));
    }
    if (st == TUTTI_OK) {
        mine = gather_share(g, colors, members);
        st = make_part(g, &mine, opts, group_out);
    }
    tti_regroup_ends(g);
    free(colors);
    free(members);
    return st;
}

tutti_status tutti_split_group_by_color(tutti_group *parent, int32_t color,
                                        const tutti_group_options *opts, tutti_group **group_out)
{
    const char         *what = "split_group_by_color";
    tutti_group_options known = TUTTI_GROUP_OPTIONS;
    tutti_group        *g = NULL;
    tutti_status        st;

    if (group_out == NULL)
        return tti_fail(TUTTI_E_ARG, "%s: group_out is NULL", what);
    st = begin_split(what, parent, opts, &known, &g);
    if (st == TUTTI_OK && g == NULL)
        *group_out = TUTTI_NON_MEMBER; /* of parent, too: warned about already */
    else if (st == TUTTI_OK)
        st = exchange_colors(g, color, &known, group_out);
    if (st != TUTTI_OK)
        *group_out = TUTTI_NO_GROUP;
    return st;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * split.c - groups out of a group: its members, and nobody else, divide themselves.
 *
 * How     All members of the parent call, and count: the n-th split of "3" makes "3:split:n.0",
 *         "3:split:n.1", ... The parent may be any group, so that other ranks of the world do not hear
 *         of it, and numbers are agreed through the store (group/agreed.c). The parent's connections are
 *         used; making a group waits for its members.
 * Turn    A backend may make the parts out of what the parent has (backend.h: split_from), which all members of the parent
 *         have to come to. Where the parent has one, the division has a turn among the parent's collectives: what was issued
 *         before it has been run, what is issued later comes after it, alike on all members. And a rank that is in no part
 *         waits for the others; one that fails has its turn, too, and tells the backends that it makes no part.
 * True    Lists are checked before the first step that others can see: bad ones make nothing.
 * Refused A call that this rank refuses, for its lists or its options, counts, too, and has its turn: the next one has the same number
 *         on all members. Those that were given other arguments may wait for it in a part: they find the refusal there, as those
 *         of a new_group do. Its part is that of the list in which it stands. Where its lists do not tell which one that is it
 *         refuses the first TOLD_PARTS_MAX parts, and who waits in a later one does so until time is up. By colours
 *         nothing is counted before all have exchanged them.
 * Differ  Lists that are good, and not the same on all ranks, are seen where a part of one name is made of different members
 *         (group/proposal.c). Who finds that, or is told of it there, was given other lists than somebody who may wait for it in another part:
 *         it refuses the first TOLD_PARTS_MAX of them. Where no part has ranks that disagree about it nobody finds anything: those
 *         that wait for each other in different ones do so until time is up. A part whose members have all met stays.
 * Source  torch.distributed.split_group; the split by colours is MPI's, without its key. */
#include "group/make.h"
#include "group/recorded.h"
#include "regroup/deed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include <tutti/regroup.h>

enum { TOLD_PARTS_MAX = 16, TOLD_SECONDS = 3, ANY_PART = -1 };

/* This rank's part of a split. */
typedef struct share {
    const int *members; /* [n] ranks of the parent, in any order */
    int        n;
    int        index; /* of the part; ANY_PART: nobody knows, as the lists are wrong */
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

/* Whether anybody can be told. */
static bool hears(tutti_group *parent)
{
    return parent->size > 1 && parent->world->store != NULL && !tti_group_is_finished(parent);
}

static int told_parts(const tutti_group *parent)
{
    return parent->size < TOLD_PARTS_MAX ? parent->size : TOLD_PARTS_MAX;
}

/* This rank comes to none of n parts from first on, but for the one to be skipped: who may wait for it there is told. st and the last
 * error stay. */
static tutti_status tell_parts(tutti_group *parent, int first, int n, int skipped, uint32_t step, tutti_status st)
{
    tutti_group  *world = parent->world;
    tti_port     *port = world->runner->port;
    const int64_t began_ns = tti_port_now(port);
    tutti_group   part = { .size = 0 }; /* for its name */
    tti_making    makings[TOLD_PARTS_MAX];
    char          words[TTI_GROUP_WORDS_MAX];
    int           i, n_told = 0;

    snprintf(words, sizeof words, "%s", tutti_last_error());
    for (i = first; i < first + n && tti_port_now(port) < began_ns + TTI_SECOND; i++) {
        if (i == skipped)
            continue;
        if (name_part(&part, parent, step, i) != TUTTI_OK)
            break;
        tti_making_begin(&makings[n_told++], port, world->store, part.name, world->rank, world);
        tti_fail(st, "%s", words);
        if (st == TUTTI_E_MISMATCH)
            tti_group_tell_in(world, part.name, st, st);
        else
            tti_group_refuse(world, part.name, st);
    }
    tti_fail(st, "%s", words);
    for (i = 0; i < n_told; i++) /* who serves the store stays until they have heard it */
        st = tti_making_end(&makings[i], TTI_MADE_BY_OURS, began_ns + TOLD_SECONDS * TTI_SECOND, st);
    return st;
}

/* This rank will not come to its part, whatever the others do: they are told where they may wait for it. st and the last error stay. */
static tutti_status refuse(tutti_group *parent, const share *mine, uint32_t step, tutti_status st)
{
    if (!hears(parent))
        return st;
    if (mine->n > 0)
        return tell_parts(parent, mine->index, 1, ANY_PART, step, st);
    return mine->index == ANY_PART ? tell_parts(parent, 0, told_parts(parent), ANY_PART, step, st) : st;
}

/* The name and the ranks are there. */
static tutti_status open_named(tutti_group *group, tutti_group *parent, const share *mine, int64_t deadline_ns)
{
    tutti_group   *world = parent->world;
    const uint32_t step = group->division.step;
    const bool     divides = tti_routes_divide(group->division.from); /* such a backend tells its fellows by itself */
    tti_making     making;
    uint64_t       record = 0;
    bool           differ;
    tutti_status   st;

    tti_making_begin(&making, world->runner->port, world->store, group->name, world->rank, world);
    st = tti_group_agree_number(group, deadline_ns); /* it comes from the store: no member waits for another one there */
    differ = st == TUTTI_E_MISMATCH;
    if (st == TUTTI_OK) {
        tti_recorded_group_begin(group); /* before the others are waited for: who looks from outside sees for whom */
        record = tti_recorded_regrouping(group, TUTTI_RECORD_SPLIT_GROUP, -1, 0);
        st = tti_group_open_backend(group, deadline_ns, TTI_OPEN_ALONE);
        differ = st == TUTTI_E_MISMATCH && tti_group_is_disputed(group, st);
    }
    if (group->size > 1 && !divides)
        tti_group_refuse(world, group->name, st);
    if (differ && !divides && hears(parent)) /* by the lists of others this rank may be in another part */
        st = tell_parts(parent, 0, told_parts(parent), mine->index, step, st);
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
        return refuse(parent, mine, group->division.step, st);
    fill_ranks(group, parent, mine);
    return open_named(group, parent, mine, deadline_ns);
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

/* As far as this rank comes in step of the parent's divisions; not at all with arguments that were refused, as st and the last error
 * say. Where it comes to no backends they are told all the same: those of other members may wait for it. group_out: NULL if it has no
 * part. */
static tutti_status come(tutti_group *parent, const share *mine, uint32_t step, const tutti_group_options *opts, tutti_status st,
                         tutti_group **group_out)
{
    tutti_group *group = NULL;

    if (st == TUTTI_OK)
        st = tti_group_alloc(-1, mine->n > 0 ? mine->n : 1, &group);
    if (st == TUTTI_OK)
        st = tti_group_inherit(group, parent, opts);
    if (st == TUTTI_OK) {
        group->division = (tti_division){ .from = parent, .step = step, .color = mine->index };
        st = take_part(group, parent, mine);
    } else {
        tti_routes_leave(parent, step);
        st = refuse(parent, mine, step, st);
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
                                 tutti_status st, tutti_group **group_out)
{
    char         words[TTI_GROUP_WORDS_MAX];
    tti_turns    turns;
    tutti_status taken;

    if (!tti_routes_divide(parent))
        return come(parent, mine, step, opts, st, group_out);
    snprintf(words, sizeof words, "%s", tutti_last_error());
    taken = tti_turns_take(parent, 1, &turns);
    if (taken != TUTTI_OK)
        return taken;
    if (st != TUTTI_OK)
        tti_fail(st, "%s", words);
    st = come(parent, mine, step, opts, st, group_out);
    tti_turns_give(&turns, "split_group", TUTTI_OK); /* what fails is the part */
    return st;
}

/* Make this rank's part; one without members: it has none. st: what came of reading the arguments. Where they are refused it takes
 * its number and its turn, and no more. */
static tutti_status make_part(tutti_group *parent, const share *mine, const tutti_group_options *opts, tutti_status st,
                              tutti_group **group_out)
{
    const uint32_t      split = take_split_number(parent);
    tutti_group_options own = *opts;
    tutti_group        *group = NULL;
    char                desc[TTI_GROUP_NAME_MAX + 24];

    snprintf(desc, sizeof desc, "%s:split:%u", parent->name, split);
    if (own.desc == NULL)
        own.desc = desc;
    st = come_in_turn(parent, mine, split, &own, st, &group);
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

/* The same of lists that may be wrong. Who stands in two of them may be awaited in either: nobody knows its part. */
static share guess_share(const tutti_group *parent, const int *const *lists, const int *n_ranks, int n_lists)
{
    const bool are_there = lists != NULL && n_ranks != NULL;
    share      found = { .index = ANY_PART }, mine;
    int        i;

    for (i = 0; are_there && i < n_lists && i < parent->size; i++) {
        if (lists[i] == NULL || n_ranks[i] < 1 || n_ranks[i] > parent->size)
            continue;
        mine = find_share(parent, &lists[i], &n_ranks[i], 1);
        if (mine.n > 0 && found.n > 0)
            return (share){ .index = ANY_PART };
        if (mine.n > 0)
            found = (share){ .members = mine.members, .n = mine.n, .index = i };
    }
    return found;
}

static tutti_status check_alive(tutti_group *parent, const char *what)
{
    const tutti_status st = tti_group_enter(parent);

    if (st == TUTTI_OK)
        tti_group_leave(parent, what, TUTTI_OK);
    return st;
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
    if (st == TUTTI_OK && g != NULL)
        st = check_alive(g, what);
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
    tutti_status        st = tti_group_resolve(parent, "split_group", &g);

    if (st != TUTTI_OK)
        return st;
    st = tti_joint_options_read("split_group", opts, &known);
    if (g == NULL) {
        if (st == TUTTI_OK) {
            tti_non_member_begins();
            *group_out = TUTTI_NON_MEMBER;
        }
        return st;
    }
    if (st == TUTTI_OK) {
        st = check_alive(g, "split_group");
        if (st != TUTTI_OK) /* nobody divides it any more: nothing to be counted */
            return st;
        st = tti_lists_check("split_group", g->size, lists, n_ranks, n_lists);
    }
    mine = st == TUTTI_OK ? find_share(g, lists, n_ranks, n_lists) : guess_share(g, lists, n_ranks, n_lists);
    tti_regroup_begins(g, TTI_DEED_SPLIT_GROUP);
    st = make_part(g, &mine, &known, st, group_out);
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
        st = make_part(g, &mine, opts, TUTTI_OK, group_out);
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

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * subgroups.c - several groups in one call, and what a group can be asked about itself.
 *
 * True    All lists are checked before the first group is made, so that a bad argument makes none.
 * Numbers Such a call may make as many groups as the world has ranks, for each group has one of its own, and keeps so many numbers,
 *         whatever its arguments are and whether it takes them: the next group has the same number everywhere, also where one
 *         rank alone was given arguments that say of no number of groups at all. Groups take those numbers in their order.
 * Told    Once one of this rank's groups could not be made, those who wait for this rank in the remaining ones are told. Who
 *         refuses arguments does not know in which group the others wait for it: it tells in all in which they may. A
 *         refusal is looked for by those alone who wait for the one that left it, and nobody else has these numbers. */
#include "group/make.h"

#include <stdlib.h>
#include <tutti/private.h>

/* ---- one after the other ---- */

/* Whether this rank may be awaited in a group of these; ranks NULL: they are not known. */
static bool may_be_in(const tutti_group *world, const int *ranks, int n_ranks)
{
    int i;

    for (i = 0; i < n_ranks && ranks != NULL; i++)
        if (ranks[i] == world->rank)
            return true;
    return ranks == NULL;
}

/* One of several, with its number; the rest is as in tti_group_create_next(). */
static void create_numbered(tutti_group *world, uint32_t id, const int *ranks, int n_ranks, const tutti_group_options *opts,
                            tutti_status *status, tutti_group **mine)
{
    tutti_group *group = NULL;

    if (*status == TUTTI_OK) {
        *status = tti_group_create_numbered(world, id, ranks, n_ranks, opts, &group);
        if (*status == TUTTI_OK && group != TUTTI_NON_MEMBER)
            *mine = group;
    } else if (may_be_in(world, ranks, n_ranks)) {
        tti_group_tell_left_out(world, id, *status);
    }
}

void tti_group_create_next(tutti_group *world, const int *ranks, int n_ranks,
                           const tutti_group_options *opts, tutti_status *status,
                           tutti_group **mine)
{
    create_numbered(world, tti_group_take_number(world), ranks, n_ranks, opts, status, mine);
}

/* How long a rank that refuses goes on telling: a store that does not answer is not asked for each group. */
static int64_t telling_ends(const tutti_group *world)
{
    return tti_port_now(world->runner->port) + TTI_SECOND;
}

/* This rank does not make group number id, because of the last error, which stays. */
static void tell(tutti_group *world, uint32_t id, tutti_status failure, int64_t until_ns)
{
    if (tti_port_now(world->runner->port) < until_ns)
        tti_group_tell_left_out(world, id, failure);
}

/* ---- checks ---- */

tutti_status tti_group_world(const char *what, tutti_group **world_out)
{
    tutti_group *g = NULL;
    tutti_status st;

    st = tti_group_resolve(NULL, what, &g);
    if (st == TUTTI_OK && g == NULL)
        st = tti_fail(TUTTI_E_STATE, "%s: this thread's group is TUTTI_NON_MEMBER", what);
    if (st == TUTTI_OK)
        *world_out = g->world;
    return st;
}

tutti_status tti_joint_options_read(const char *what, const tutti_group_options *opts,
                                    tutti_group_options *known)
{
    tutti_status st = tti_group_options_read(what, opts, known);

    if (st == TUTTI_OK && known->use_local_synchronization)
        st = tti_fail(TUTTI_E_ARG, "%s: use_local_synchronization is for tutti_new_group\n"
                                   "  next: leave it out here, or make the groups one by one",
                      what);
    return st;
}

/* Note in owner[] (list number + 1, 0: none) who is in list number i. */
static tutti_status claim_list(const char *what, int size, const int *ranks, int n, int i, int *owner)
{
    int j;

    if (ranks == NULL || n <= 0)
        return tti_fail(TUTTI_E_ARG, "%s: list %d is empty\n  next: give each list a rank, or leave it out", what, i);
    for (j = 0; j < n; j++) {
        const int rank = ranks[j];

        if (rank < 0 || rank >= size)
            return tti_fail(TUTTI_E_ARG, "%s: rank %d in list %d is outside of 0 .. %d\n  next: list ranks of the world", what, rank,
                            i, size - 1);
        if (owner[rank] == i + 1)
            return tti_fail(TUTTI_E_ARG, "%s: rank %d is in list %d twice\n  next: name each rank once", what, rank, i);
        if (owner[rank] != 0)
            return tti_fail(TUTTI_E_ARG, "%s: rank %d is in list %d and in list %d\n  next: name each rank in one list only", what, rank,
                            owner[rank] - 1, i);
        owner[rank] = i + 1;
    }
    return TUTTI_OK;
}

tutti_status tti_lists_check(const char *what, int size, const int *const *lists,
                             const int *n_ranks, int n_lists)
{
    tutti_status st = TUTTI_OK;
    int         *owner;
    int          i;

    if (lists == NULL || n_ranks == NULL || n_lists <= 0)
        return tti_fail(TUTTI_E_ARG, "%s: there are no lists (n_lists %d)\n  next: pass one or more, and the length of each", what,
                        n_lists);
    owner = calloc((size_t)size, sizeof *owner);
    if (owner == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to check lists of %d ranks", size);
    for (i = 0; i < n_lists && st == TUTTI_OK; i++)
        st = claim_list(what, size, lists[i], n_ranks[i], i, owner);
    free(owner);
    return st;
}

/* ---- new_subgroups ---- */

static tutti_status create_blocks(tutti_group *world, uint32_t id, int block, const tutti_group_options *opts,
                                  tutti_group **group_out)
{
    tutti_group *mine = NULL;
    tutti_status st = TUTTI_OK;
    int         *ranks = malloc((size_t)block * sizeof *ranks);
    int          first;
    int          i;

    if (ranks == NULL)
        st = tti_fail(TUTTI_E_NOMEM, "no memory for a list of %d ranks", block);
    tti_group_count(world, world->size / block);
    for (first = 0; first < world->size; first += block) {
        for (i = 0; i < block && ranks != NULL; i++)
            ranks[i] = first + i;
        create_numbered(world, id++, ranks, block, opts, &st, &mine);
    }
    free(ranks);
    if (st == TUTTI_OK)
        *group_out = mine;
    return st;
}

/* The others may have cut the world in any way that is possible: each puts this rank in one group. */
static void tell_blocks(tutti_group *world, uint32_t first, tutti_status failure)
{
    const int64_t until_ns = telling_ends(world);
    int           told = -1;
    int           block;

    for (block = world->size; block >= 1; block--) {
        const int at = world->rank / block;

        if (world->size % block != 0 || at == told)
            continue;
        tell(world, first + (uint32_t)at, failure, until_ns);
        told = at;
    }
}

static tutti_status subgroups(int block, const tutti_group_options *opts, tutti_group **group_out)
{
    tutti_group_options known = TUTTI_GROUP_OPTIONS;
    tutti_group        *world = NULL;
    uint32_t            first = 0;
    tutti_status        st;

    st = tti_group_world("new_subgroups", &world);
    if (st == TUTTI_OK)
        st = tti_group_take_numbers(world, world->size, &first);
    if (st != TUTTI_OK)
        return st;
    st = tti_joint_options_read("new_subgroups", opts, &known);
    if (st == TUTTI_OK && (block < 1 || world->size % block != 0))
        st = tti_fail(TUTTI_E_ARG,
                      "new_subgroups: group_size is %d, which does not divide the world of %d\n"
                      "  next: choose one that does, or name the ranks with tutti_new_subgroups_by_enumeration()",
                      block, world->size);
    if (st == TUTTI_OK)
        return create_blocks(world, first, block, &known, group_out);
    tell_blocks(world, first, st);
    return st;
}

tutti_status tutti_new_subgroups(int group_size, const tutti_group_options *opts,
                                 tutti_group **group_out)
{
    tutti_status st;

    if (group_out == NULL)
        return tti_fail(TUTTI_E_ARG, "new_subgroups: group_out is NULL\n  next: pass where to put this rank's group");
    st = subgroups(group_size, opts, group_out);
    if (st != TUTTI_OK)
        *group_out = TUTTI_NO_GROUP;
    return st;
}

/* ---- new_subgroups_by_enumeration ---- */

static tutti_status create_lists(tutti_group *world, uint32_t first, const int *const *lists, const int *n_ranks, int n_lists,
                                 const tutti_group_options *opts, tutti_group **group_out)
{
    tutti_group *mine = TUTTI_NON_MEMBER;
    tutti_status st = TUTTI_OK;
    int          i;

    tti_group_count(world, n_lists);
    for (i = 0; i < n_lists; i++)
        create_numbered(world, first + (uint32_t)i, lists[i], n_ranks[i], opts, &st, &mine);
    if (st == TUTTI_OK)
        *group_out = mine;
    return st;
}

/* The others may have other lists: who is in none here may be in any of theirs. Lists are read no further than one list
 * for each rank, and none of them further than the ranks that there are. */
static void tell_lists(tutti_group *world, uint32_t first, const int *const *lists, const int *n_ranks, int n_lists,
                       tutti_status failure)
{
    const int64_t until_ns = telling_ends(world);
    const int     n = lists == NULL || n_ranks == NULL ? 0 : n_lists < world->size ? n_lists : world->size;
    bool          is_told = false;
    int           i;

    for (i = 0; i < n; i++)
        if (lists[i] != NULL && n_ranks[i] <= world->size && may_be_in(world, lists[i], n_ranks[i])) {
            tell(world, first + (uint32_t)i, failure, until_ns);
            is_told = true;
        }
    for (i = 0; i < world->size && !is_told; i++)
        tell(world, first + (uint32_t)i, failure, until_ns);
}

static tutti_status enumerated(const int *const *lists, const int *n_ranks, int n_lists,
                               const tutti_group_options *opts, tutti_group **group_out)
{
    const char         *what = "new_subgroups_by_enumeration";
    tutti_group_options known = TUTTI_GROUP_OPTIONS;
    tutti_group        *world = NULL;
    uint32_t            first = 0;
    tutti_status        st;

    st = tti_group_world(what, &world);
    if (st == TUTTI_OK)
        st = tti_group_take_numbers(world, world->size, &first);
    if (st != TUTTI_OK)
        return st;
    st = tti_joint_options_read(what, opts, &known);
    if (st == TUTTI_OK)
        st = tti_lists_check(what, world->size, lists, n_ranks, n_lists);
    if (st == TUTTI_OK)
        return create_lists(world, first, lists, n_ranks, n_lists, &known, group_out);
    tell_lists(world, first, lists, n_ranks, n_lists, st);
    return st;
}

tutti_status tutti_new_subgroups_by_enumeration(const int *const *lists, const int *n_ranks,
                                                int n_lists, const tutti_group_options *opts,
                                                tutti_group **group_out)
{
    tutti_status st;

    if (group_out == NULL)
        return tti_fail(TUTTI_E_ARG, "new_subgroups_by_enumeration: group_out is NULL\n  next: pass where to put this rank's group");
    st = enumerated(lists, n_ranks, n_lists, opts, group_out);
    if (st != TUTTI_OK)
        *group_out = TUTTI_NO_GROUP;
    return st;
}

/* ---- queries ---- */

const int *tutti_get_process_group_ranks(const tutti_group *group)
{
    const tutti_group *g = tti_group_peek(group);

    return g != NULL ? g->ranks : NULL;
}

const char *tutti_get_group_name(const tutti_group *group)
{
    const tutti_group *g = tti_group_peek(group);

    return g != NULL ? g->name : NULL;
}

const char *tutti_get_group_desc(const tutti_group *group)
{
    const tutti_group *g = tti_group_peek(group);

    if (g == NULL)
        return NULL;
    return g->desc != NULL ? g->desc : "";
}

int tutti_get_pg_count(void)
{
    const tutti_group *g = tti_group_peek(NULL);
    uint32_t           n;

    if (g == NULL)
        return -1;
    tti_lock(&g->runner->lock);
    n = g->world->n_made;
    tti_unlock(&g->runner->lock);
    return (int)n;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shrink.c - a group goes on without some of its members.
 *
 * Why     After a rank has died its groups are finished on all others. Those that are left want to go
 *         on in the same processes.
 * How     The survivors agree who they are, or confirm the list that all of them pass, make a new group among
 *         themselves, and have a store again (survivors.c). Only when all of them have it the old one is
 *         destroyed, with the groups that use its connections. Over backends that cannot talk any more when a
 *         group is finished they meet in the old store, with a list (by_store.c).
 * Lists   Who meets another list tells all (agreement_lists.c; where only the store tells, refused.c).
 * Refuses Who cannot even begin tells the others where there is a list, as they would wait for it (refused.c). Without one they go on
 *         without who does not come. Backends that have no world of fewer ranks are refused before anybody is met.
 * Fails   The old group stays as it is, unless its works were to be aborted; the survivors may try
 *         again, and exclude more. Later calls on a group whose works were aborted hear of what the attempt failed.
 * Source  torch.distributed.shrink_group; agreeing without a list is ours. */
#include "regroup/deed.h"
#include "regroup/refused.h"
#include "regroup/successor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include <tutti/regroup.h>
#include "group/recorded.h"

enum { LISTED_MAX = 128 }; /* bits that a record has for them */

static const tti_closing aborting = { "tutti_shrink_group", "with TUTTI_SHRINK_ABORT it ended what was under way", "aborted" };

/* ---- checks ---- */

static tutti_status check_call(const tutti_group *old, const int *excluded, int n, unsigned flags)
{
    if ((excluded == NULL) != (n == 0) || n < 0)
        return tti_fail(TUTTI_E_ARG,
                        "shrink_group on group '%s': %s ranks to exclude, but their number is %d\n"
                        "  next: NULL and 0 mean whoever is dead, as the members agree",
                        old->name, excluded == NULL ? "there are no" : "there are", n);
    if ((flags & ~(unsigned)(TUTTI_SHRINK_ABORT | TUTTI_SHRINK_MINORITY)) != 0)
        return tti_fail(TUTTI_E_ARG, "shrink_group on group '%s': flags are 0x%x\n"
                                     "  next: TUTTI_SHRINK_ABORT, TUTTI_SHRINK_MINORITY, both or neither",
                        old->name, flags);
    if (excluded == NULL && !tti_survivors_can(old))
        return tti_fail(TUTTI_E_UNSUPPORTED,
                        "shrink_group on group '%s': its members cannot talk to each other without a store: backend '%s', or "
                        "too few ports\n  next: pass the ranks to exclude, or a TUTTI_PORT_RANGE of 4 ports for each rank",
                        old->name, old->ops->name);
    if (old->size <= 1)
        return tti_fail(TUTTI_E_ARG, "shrink_group: group '%s' has one member", old->name);
    if (n >= old->size)
        return tti_fail(TUTTI_E_ARG, "shrink_group: %d ranks to exclude would leave nobody of the %d in "
                                     "group '%s'", n, old->size, old->name);
    return TUTTI_OK;
}

static tutti_status mark_excluded(const tutti_group *old, const int *excluded, int n, bool *out)
{
    int i;

    for (i = 0; i < n; i++) {
        const int rank = excluded[i];

        if (rank < 0 || rank >= old->size)
            return tti_fail(TUTTI_E_ARG, "shrink_group on group '%s': rank %d is outside of 0 .. %d",
                            old->name, rank, old->size - 1);
        if (out[rank])
            return tti_fail(TUTTI_E_ARG, "shrink_group on group '%s': rank %d is there twice",
                            old->name, rank);
        out[rank] = true;
    }
    if (out[old->rank])
        return tti_fail(TUTTI_E_STATE, "shrink_group on group '%s': this rank, %d, is to be excluded\n"
                                       "  next: only those call it that go on",
                        old->name, old->rank);
    return TUTTI_OK;
}

/* The list as marks; NULL where there is none. */
static tutti_status read_list(const tutti_group *old, const int *excluded, int n, bool **out)
{
    bool        *marks;
    tutti_status st;

    if (excluded == NULL)
        return TUTTI_OK;
    marks = calloc((size_t)old->size, sizeof *marks);
    if (marks == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to shrink a group of %d", old->size);
    st = mark_excluded(old, excluded, n, marks);
    if (st == TUTTI_OK)
        *out = marks;
    else
        free(marks);
    return st;
}

/* Works of a group that is finished end anyway. */
static tutti_status check_idle(tutti_group *old)
{
    tutti_status finished;

    tti_lock(&old->runner->lock);
    finished = old->finished;
    tti_unlock(&old->runner->lock);
    if (finished == TUTTI_OK && tti_group_is_busy(old))
        return tti_fail(TUTTI_E_STATE, "shrink_group on group '%s': operations are under way\n"
                                       "  next: wait for them, or pass TUTTI_SHRINK_ABORT",
                        old->name);
    return TUTTI_OK;
}

/* ---- the call ---- */

/* The flight recorder's record of the call: who reads it learns how many are left out by a list, and who, unless the group is large. */
static uint64_t begin_record(const tutti_group *old, const bool *excluded)
{
    uint64_t left_out[2] = { 0, 0 }, record;
    int      n = 0, one = -1, rank;

    for (rank = 0; excluded != NULL && rank < old->size; rank++)
        if (excluded[rank]) {
            n++;
            one = rank;
            if (rank < LISTED_MAX)
                left_out[rank / 64] |= UINT64_C(1) << rank % 64;
        }
    record = tti_recorded_regrouping(old, TUTTI_RECORD_SHRINK_GROUP, n == 1 ? one : -1, n);
    if (n > 0 && old->size <= LISTED_MAX)
        tti_recorded_left_out(record, left_out);
    return record;
}

/* The group stays, and is finished: later calls on it are told of what the attempt failed, unless it was finished before. */
static void tell_later_calls(tutti_group *old)
{
    tti_lock(&old->runner->lock);
    if (strcmp(old->finished_by, aborting.by) == 0)
        snprintf(old->finished_words, sizeof old->finished_words, "%s, and then failed: %s", aborting.words, tutti_last_error());
    tti_unlock(&old->runner->lock);
}

/* old is destroyed if this succeeds. */
static tutti_status replace(tutti_group *old, const bool *excluded, unsigned flags,
                            const tutti_group_options *opts, tutti_group **group_out)
{
    const bool     minority = (flags & TUTTI_SHRINK_MINORITY) != 0;
    const uint64_t record = begin_record(old, excluded);
    tutti_group   *group = NULL;
    int           *former = NULL;
    tutti_status   st;

    tti_regroup_begins(old, TTI_DEED_SHRINK_GROUP);
    tti_refused_take_back(old);
    st = tti_survivors_can(old) ? tti_survivors_agree(old, excluded, minority, opts, &group, &former)
                                : tti_survivors_by_store(old, excluded, opts, &group, &former);
    tti_regroup_ends(old);
    st = tti_recorded_regrouping_end(record, st);
    if (st != TUTTI_OK) {
        tell_later_calls(old);
        return st;
    }
    group->timed = old->timed || opts->enable_timing;
    tti_successor_take_over(old, group, former);
    *group_out = group;
    return TUTTI_OK;
}

/* Whether the call could be made, which looks at nobody else; known: the options. */
static tutti_status check(tutti_group *old, const int *excluded, int n, unsigned flags, const tutti_group_options *known)
{
    const tti_backing backing = tti_backing_like(old, known);
    tutti_status      st = tti_backing_check(&backing);

    if (st == TUTTI_OK)
        st = tti_backing_check_members("shrink_group", &backing, TTI_NAME_ANOTHER);
    if (st == TUTTI_OK)
        st = check_call(old, excluded, n, flags);
    if (st == TUTTI_OK && tti_group_calls_us(old))
        st = tti_fail(TUTTI_E_STATE, "shrink_group: called by a hook, or by a callback of the same world");
    return st;
}

static tutti_status shrink(const int *excluded, int n, tutti_group *group, unsigned flags,
                           const tutti_group_options *opts, tutti_group **group_out)
{
    tutti_group_options known = TUTTI_GROUP_OPTIONS;
    tutti_group        *old = NULL;
    bool               *marks = NULL;
    tutti_status        st = tti_group_resolve(group, "shrink_group", &old);

    if (st == TUTTI_OK && old == NULL) {
        *group_out = TUTTI_NON_MEMBER;
        return TUTTI_OK;
    }
    if (st == TUTTI_OK) {
        atomic_fetch_add(&old->shrinks, 1);
        st = tti_joint_options_read("shrink_group", opts, &known);
    }
    if (st == TUTTI_OK)
        st = check(old, excluded, n, flags, &known);
    if (st == TUTTI_OK)
        st = read_list(old, excluded, n, &marks);
    if (st == TUTTI_OK && (flags & TUTTI_SHRINK_ABORT) != 0)
        tti_group_close_all(old, &aborting);
    else if (st == TUTTI_OK)
        st = check_idle(old);
    if (st == TUTTI_OK)
        st = replace(old, marks, flags, &known, group_out);
    else if (old != NULL && excluded != NULL)
        tti_refused_tell(old, st, false, TTI_FOREVER);
    free(marks);
    return st;
}

tutti_status tutti_shrink_group(const int *ranks_to_exclude, int n_ranks, tutti_group *group,
                                unsigned flags, const tutti_group_options *opts,
                                tutti_group **group_out)
{
    tutti_status st;

    if (group_out == NULL)
        return tti_fail(TUTTI_E_ARG, "shrink_group: group_out is NULL");
    st = shrink(ranks_to_exclude, n_ranks, group, flags, opts, group_out);
    if (st != TUTTI_OK)
        *group_out = TUTTI_NO_GROUP;
    return st;
}

int tutti_get_former_rank(const tutti_group *group, int group_rank)
{
    const tutti_group *g = tti_group_peek(group);

    if (g == NULL || g->former == NULL || group_rank < 0 || group_rank >= g->size)
        return -1;
    return g->former[group_rank];
}

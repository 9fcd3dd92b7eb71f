/* SPDX-License-Identifier: BSD-3-Clause
 *
 * compound.c - issuing operations that are made of several.
 *
 * Why     What computes between two collectives cannot be left to a backend, nor be issued in two halves: the second one
 *         would come at a moment of each rank's own, among other collectives of the group.
 * How     It takes as many numbers as it needs, in a row, when it is issued; so its place in the group's order is the same
 *         on all members. A blocking one is done by the caller, in those turns; an asynchronous one is a work that has the
 *         compound in the place of a call, and is run by whoever runs works (progress.c).
 * True    It is released once: after run, or when its work is taken out of the queue, or by who could not queue it. */
#include "group/compound.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "group/queue.h"
#include <tutti/private.h>

enum { KEEP_MAX = 32 << 20, ROOM_ALIGN = 64 };

void *tti_compound_room(tutti_group *group, size_t bytes)
{
    if (bytes <= group->room_bytes)
        return group->room;
    tti_compound_room_release(group);
    group->room = aligned_alloc(ROOM_ALIGN, (bytes + ROOM_ALIGN - 1) / ROOM_ALIGN * ROOM_ALIGN);
    group->room_bytes = group->room != NULL ? bytes : 0;
    return group->room;
}

void tti_compound_room_release(tutti_group *group)
{
    free(group->room);
    group->room = NULL;
    group->room_bytes = 0;
}

tutti_status tti_compound_run(tutti_group *group, tti_compound *compound, tti_turns *turns)
{
    const tutti_status st = compound->run(compound, turns);

    if (group->room_bytes > KEEP_MAX)
        tti_compound_room_release(group);
    return st;
}

static tutti_status run_here(tutti_group *group, tti_compound *compound, uint64_t *seq_out)
{
    tti_turns    turns;
    tutti_status st = tti_turns_take(group, compound->n_turns, &turns);

    if (st == TUTTI_OK) {
        *seq_out = turns.first;
        turns.whole = compound->whole;
        st = tti_compound_run(group, compound, &turns);
        tti_turns_give(&turns, compound->what, compound->ends != TUTTI_OK ? compound->ends : st);
    }
    compound->release(compound);
    return st;
}

static tutti_status queue(tutti_group *group, tti_compound *compound, tutti_span buf, uint64_t *seq_out,
                          tutti_work **work_out)
{
    tutti_status st = tti_queue_push_compound(group, compound, buf, work_out);

    if (st == TUTTI_OK)
        *seq_out = tutti_work_sequence(*work_out);
    else
        compound->release(compound);
    return st;
}

tutti_status tti_compound_issue(tutti_group *group, tti_compound *compound, tutti_op op, tutti_span buf, tti_how how)
{
    tti_observation *seen = NULL;
    uint64_t         seq = 0;
    tutti_status     st = tti_observe_whole(group, compound->what, op, buf, true, how.async, &seen);

    if (st != TUTTI_OK) {
        compound->release(compound);
        return st;
    }
    st = how.async ? queue(group, compound, buf, &seq, how.work_out)
                   : run_here(group, compound, &seq);
    tti_observe_end(seen, st, seq, how.async && st == TUTTI_OK ? *how.work_out : NULL);
    return st;
}

static tutti_status say_late(const tti_compound *compound, const tutti_group *group)
{
    char       words[TTI_GROUP_WORDS_MAX];
    const bool has_next = strstr(tutti_last_error(), "\n  next: ") != NULL;

    snprintf(words, sizeof words, "%s", tutti_last_error());
    return tti_fail(TUTTI_E_TIMEOUT, "%s on group '%s' timed out after %lld ms on rank %d: %s%s", compound->what,
                    group->name, (long long)group->timeout_ms, group->ranks[group->rank], words,
                    has_next ? "" : "\n  next: see what that rank does instead, or give the group a longer time-out");
}

tutti_status tti_compound_fail(const tti_compound *compound, tutti_group *group, tutti_status st)
{
    tti_runner *runner = group->runner;
    bool        is_first;

    st = tti_message_failed(group, compound->what, st);
    if (st == TUTTI_E_TIMEOUT && strncmp(tutti_last_error(), compound->what, strlen(compound->what)) != 0)
        st = say_late(compound, group); /* this rank's own time is over */
    tti_lock(&runner->lock);
    is_first = group->finished == TUTTI_OK;
    if (is_first)
        tti_group_fail(group, compound->what, tti_group_finishes(st) ? st : TUTTI_E_BACKEND, tutti_last_error());
    else
        tti_routes_end(group, st); /* a collective has finished it, which ends no message by itself */
    tti_unlock(&runner->lock);
    if (is_first)
        tti_hooks_abort(group, compound->what, st);
    return st;
}

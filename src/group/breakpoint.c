/* SPDX-License-Identifier: BSD-3-Clause
 *
 * breakpoint.c - one rank in a debugger, the others waiting for it.
 *
 * How     All ranks of the world count their calls, so that they agree which ones to skip. Time-outs are
 *         raised first: whoever steps through a rank makes all others wait, here and in what they do
 *         next. The rank that is looked at goes to base/debugger.c; then all meet in a barrier, also if no
 *         debugger could be had: the others would wait for the hour that debugging may take. */
#include "group/group.h"

#include <stdio.h>
#include <tutti/debug.h>
#include <tutti/private.h>
#include "base/debugger.h"

enum { DEFAULT_MS = 60 * 60 * 1000 };

static void raise_one(tutti_group *group, int64_t timeout_ms)
{
    const int64_t now_ms = group->timeout_ms;

    if (now_ms != TUTTI_INFINITE && (timeout_ms == TUTTI_INFINITE || now_ms < timeout_ms))
        group->timeout_ms = timeout_ms;
}

/* Count the call; if it counts, raise the time-outs of the world and all its groups. */
static bool is_due(tutti_group *world, int skip, int64_t timeout_ms)
{
    tutti_group *child;
    bool         due;

    tti_lock(&world->runner->lock);
    due = world->n_breakpoints >= skip;
    if (!due)
        world->n_breakpoints++;
    for (child = due ? world->children : NULL; child != NULL; child = child->next)
        raise_one(child, timeout_ms);
    if (due)
        raise_one(world, timeout_ms);
    tti_unlock(&world->runner->lock);
    return due;
}

/* The rank that is looked at. What failed in that is its result, whatever becomes of the barrier. */
static tutti_status attend(tutti_group *world, int64_t deadline_ns)
{
    const tutti_status st = tti_debugger_attend(world->runner->port, deadline_ns);
    char               words[TTI_GROUP_WORDS_MAX];

    if (st == TUTTI_OK)
        return tutti_barrier(world);
    snprintf(words, sizeof words, "%s", tutti_last_error());
    (void)tutti_barrier(world);
    return tti_fail(st, "%s", words);
}

tutti_status tutti_breakpoint(int rank, int skip, int64_t timeout_ms)
{
    tutti_group *world = NULL;
    tutti_status st = tti_group_world("breakpoint", &world);
    int64_t      limit_ms = timeout_ms != 0 ? timeout_ms : DEFAULT_MS;

    if (st != TUTTI_OK)
        return st;
    if (rank < 0 || rank >= world->size || skip < 0 || timeout_ms < TUTTI_INFINITE)
        return tti_fail(TUTTI_E_ARG, "breakpoint: rank %d of %d, skip %d, timeout_ms %lld", rank, world->size, skip,
                        (long long)timeout_ms);
    if (!is_due(world, skip, limit_ms))
        return TUTTI_OK;
    tti_log(TTI_LOG_WARN, "breakpoint: rank %d is looked at; %s", rank,
            rank == world->rank ? "this is it" : "this one pauses until it goes on");
    return rank == world->rank ? attend(world, tti_deadline(world->runner->port, limit_ms, -1))
                               : tutti_barrier(world);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comm_name.c - what operations are called, how they are numbered, how long they took.
 *
 * A name that a program gives holds for what the thread issues, not for a group, as in torch: so it is kept
 * with the thread, one inside of the other. */
#include "group/hooks.h"

#include <stdio.h>
#include <string.h>
#include <tutti/private.h>

enum { PART_MAX = TUTTI_COMM_NAME_MAX / 2 - 2 };

static _Thread_local char given[TUTTI_COMM_DEPTH_MAX][TUTTI_COMM_NAME_MAX];
static _Thread_local int  n_given;

/* The recorder writes the number of the name that holds now. */
static void tell_recorder(void)
{
    tti_facts_of_thread.name = n_given > 0 ? tti_record_name(given[n_given - 1]) : 0;
}

tutti_status tutti_record_comm_begin(const char *name)
{
    if (name == NULL || name[0] == '\0' || strlen(name) >= TUTTI_COMM_NAME_MAX)
        return tti_fail(TUTTI_E_ARG, "tutti_record_comm_begin: a name has 1 to %d bytes",
                        TUTTI_COMM_NAME_MAX - 1);
    if (n_given == TUTTI_COMM_DEPTH_MAX)
        return tti_fail(TUTTI_E_STATE,
                        "tutti_record_comm_begin: '%s' would be name %d, one inside of the other", name,
                        n_given + 1);
    snprintf(given[n_given++], TUTTI_COMM_NAME_MAX, "%s", name);
    tell_recorder();
    return TUTTI_OK;
}

tutti_status tutti_record_comm_end(void)
{
    if (n_given == 0)
        return tti_fail(TUTTI_E_STATE, "tutti_record_comm_end: this thread has given no name");
    n_given--;
    tell_recorder();
    return TUTTI_OK;
}

/* "native:send". Every operation that is not waited for has a name: no snprintf(). */
static void join(const char *backend, const char *op, char out[TUTTI_COMM_NAME_MAX])
{
    const size_t first = strnlen(backend, PART_MAX), second = strnlen(op, PART_MAX);

    memcpy(out, backend, first);
    out[first] = ':';
    memcpy(out + first + 1, op, second);
    out[first + 1 + second] = '\0';
}

void tti_comm_name(const tutti_group *group, tutti_device_type device, const char *op,
                   char out[TUTTI_COMM_NAME_MAX])
{
    if (n_given > 0)
        memcpy(out, given[n_given - 1], TUTTI_COMM_NAME_MAX);
    else
        join(group->routes[device].ops->name, op, out);
}

const char *tutti_work_name(const tutti_work *work)
{
    return work != NULL && !work->is_nothing ? work->name : "";
}

uint64_t tutti_work_sequence(const tutti_work *work)
{
    uint64_t seq;

    if (work == NULL || work->is_nothing || tti_work_is_inherited(work))
        return 0;
    tti_lock(&work->runner->lock); /* one that was recorded gets its number later */
    seq = work->seq;
    tti_unlock(&work->runner->lock);
    return seq;
}

uint64_t tutti_get_sequence_number(tutti_group *group)
{
    tutti_group *g = (tutti_group *)(uintptr_t)tti_group_peek(group);
    uint64_t     issued;

    if (g == NULL)
        return 0;
    tti_lock(&g->runner->lock);
    issued = tti_queue_next(g) - 1;
    tti_unlock(&g->runner->lock);
    return issued;
}

static tutti_status duration_of(const tutti_work *work, double *ms_out)
{
    if (!work->timed)
        return tti_fail(TUTTI_E_UNSUPPORTED,
                        "%s on group '%s' was not timed\n  next: make the group with enable_timing",
                        work->what, work->group_name);
    if (!work->done)
        return tti_fail(TUTTI_E_STATE, "%s on group '%s' has not ended\n  next: tutti_work_wait()",
                        work->what, work->group_name);
    if (work->began_ns == 0)
        return tti_fail(TUTTI_E_STATE, "%s on group '%s' never began to run", work->what, work->group_name);
    *ms_out = (double)(work->ended_ns - work->began_ns) / (double)TTI_MS;
    return TUTTI_OK;
}

tutti_status tutti_work_duration(const tutti_work *work, double *ms_out)
{
    tutti_status st;

    if (work == NULL || ms_out == NULL)
        return tti_fail(TUTTI_E_ARG, "tutti_work_duration: %s is NULL", work == NULL ? "work" : "ms_out");
    if (work->is_nothing)
        return tti_fail(TUTTI_E_UNSUPPORTED, "tutti_work_duration: this rank is not in the group");
    if (tti_work_is_inherited(work))
        return tti_fail_inherited("tutti_work_duration", "work", work->what);
    tti_lock(&work->runner->lock);
    st = duration_of(work, ms_out);
    tti_unlock(&work->runner->lock);
    return st;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * queue_end.c - the end of a group's collectives: aborting them, closing the group.
 *
 * How     The group is finished, so that nothing begins any more. Works that were not begun end at once. Then the
 *         backend is told: what runs in it fails soon, and what it has begun is run, for it has the
 *         buffers of that until then (progress.c).
 * True    Who closes waits until nobody is inside; who aborts waits for nobody, so a worker ends what was begun. */
#include "group/hooks.h"
#include "group/queue.h"

#include <tutti/private.h>

/* Whether somebody depends on what the group still has to do. Lock held. */
static bool is_busy(const tutti_group *group)
{
    const tutti_work *work;

    for (work = group->runner->first; work != NULL; work = work->next)
        if (work->group == group)
            return true;
    for (work = group->messages; work != NULL; work = work->next)
        if (work->pins > 0)
            return true;
    return group->inside > 0 || (!group->held && (tti_gate_look(&group->gate) & TTI_GATE_BUSY) != 0);
}

bool tti_group_is_busy(tutti_group *group)
{
    tutti_work *work;
    tutti_work *next;
    bool        busy;

    tti_lock(&group->runner->lock);
    for (work = group->messages; work != NULL; work = next) {
        next = work->next;
        tti_work_look(work); /* one that has ended leaves the list */
    }
    tti_queue_advance(group);
    busy = is_busy(group) || group->messages != NULL;
    tti_unlock(&group->runner->lock);
    return busy;
}

/* Whatever was begun ends, now that the backend does. Lock held, also on return, and released in between. */
static void run_begun(tutti_group *group)
{
    while (tti_queue_help(group))
        continue;
}

void tti_queue_abort(tutti_group *group)
{
    tti_queue_finish(group, "tutti_abort_process_group", TUTTI_E_ABORTED, "it was aborted in this process");
    tti_queue_abort_works(group, "aborted");
    tti_runner_tell(group->runner);
    tti_fail(TUTTI_E_ABORTED, "rank %d aborted group '%s'", group->ranks[group->rank], group->name);
    tti_routes_end(group, TUTTI_E_ABORTED);
    tti_queue_want(group);
}

const tti_closing tti_closing_destroyed = { "tutti_destroy_process_group", "it is being destroyed in this process", "destroyed" };

void tti_queue_close(tutti_group *group, const tti_closing *why)
{
    tti_runner *runner = group->runner;
    bool        busy;

    tti_lock(&runner->lock);
    tti_queue_advance(group);
    tti_queue_hold(group); /* whoever is inside is counted from here on */
    busy = is_busy(group);
    group->closing = true;
    tti_queue_finish(group, why->by, TUTTI_E_ABORTED, why->words);
    tti_queue_abort_works(group, why->happened);
    tti_runner_tell(runner);
    tti_unlock(&runner->lock);

    /* An idle group leaves quietly: abort would also reach members that are still inside the last
     * operation, which this rank has done its part of. */
    if (busy) {
        tti_hooks_abort(group, why->by, TUTTI_E_ABORTED);
        tti_routes_end(group, TUTTI_OK);
    }

    tti_lock(&runner->lock);
    run_begun(group);
    while (group->inside > 0) {
        tti_runner_sleep(runner, TTI_FOREVER);
        run_begun(group);
    }
    tti_unlock(&runner->lock);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * progress.c - asynchronous collectives: the queue of a world's works, and the thread that runs them.
 *
 * Why     An asynchronous call must make progress even if nobody waits for it, and whoever waits for it should do
 *         it himself where nobody does yet.
 * How     An asynchronous call becomes a work in the world's queue, with a number of its group's (queue.c). Three
 *         kinds of thread take from it, each under the lock, so that a work is run once:
 *           the worker           the oldest work of all, when its turn has come
 *           a blocking caller    works of its group that stand before it
 *           tutti_work_wait()    the same, up to its own, unless its time-out is shorter than the
 *                                group's: what it runs has the group's
 *         The worker follows the order of issue across groups, so ranks that issue on several
 *         groups in one order do not block each other; a caller that helps only adds progress.
 *         Where a helper runs what stands before the oldest work, the worker waits for it and takes
 *         no younger work of another group instead: it could get stuck there, on a rank that does
 *         the older one first, and nobody would be left for that.
 * True    The queue and every work are read and written under runner->lock, and never without. A work that runs is
 *         counted inside its group, which stays until it has ended.
 *         Nobody waits under the lock: sleepers take the event's count under it, release it, sleep,
 *         and look again. Whoever changes something signals before releasing it; an event nobody
 *         sleeps on costs one atomic addition. After unlocking a thread touches neither group nor
 *         runner, unless it holds a reference of its own. */
#include "group/hooks.h"
#include "group/queue.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "watch/control.h"
#include <tutti/private.h>

/* ---- the runner ---- */

tutti_status tti_runner_create(tti_port *port, tti_runner **runner_out)
{
    tti_runner *runner = calloc(1, sizeof *runner);

    if (runner == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the queue of a world");
    runner->port = port;
    atomic_init(&runner->refs, 1);
    tti_mutex_init(&runner->lock);
    *runner_out = runner;
    return TUTTI_OK;
}

tti_runner *tti_runner_retain(tti_runner *runner)
{
    atomic_fetch_add_explicit(&runner->refs, 1, memory_order_relaxed);
    return runner;
}

void tti_runner_stop(tti_runner *runner)
{
    tti_lock(&runner->lock);
    runner->stop = true;
    tti_event_signal(runner->port, &runner->todo);
    tti_unlock(&runner->lock);
    tti_thread_join(&runner->worker);
}

void tti_runner_drop(tti_runner *runner)
{
    if (atomic_fetch_sub_explicit(&runner->refs, 1, memory_order_acq_rel) != 1)
        return;
    assert(runner->first == NULL && !runner->worker.running && !runner->caller.running);
    tti_mutex_release(&runner->lock);
    free(runner);
}

void tti_runner_sleep(tti_runner *runner, int64_t deadline_ns)
{
    const uint32_t seen = tti_event_now(&runner->changed);

    tti_unlock(&runner->lock);
    tti_event_wait(runner->port, &runner->changed, seen, deadline_ns);
    tti_lock(&runner->lock);
}

/* ---- the queue ---- */

static void queue_append(tti_runner *runner, tutti_work *work)
{
    work->prev = runner->last;
    work->next = NULL;
    if (runner->last != NULL)
        runner->last->next = work;
    else
        runner->first = work;
    runner->last = work;
}

static void queue_remove(tti_runner *runner, tutti_work *work)
{
    if (work->prev != NULL)
        work->prev->next = work->next;
    else
        runner->first = work->next;
    if (work->next != NULL)
        work->next->prev = work->prev;
    else
        runner->last = work->prev;
    work->next = work->prev = NULL;
}

/* The work of a group whose turn it is. */
static tutti_work *find_ready(tti_runner *runner, const tutti_group *group)
{
    tutti_work *work;

    for (work = runner->first; work != NULL; work = work->next)
        if (work->group == group && work->call.seq == group->turn)
            return work;
    return NULL;
}

/* Run a work that find_ready() gave. Lock held, also on return. */
static void run_work(tti_runner *runner, tutti_work *work, bool in_background)
{
    tutti_group *group = work->group;
    tutti_status st;

    queue_remove(runner, work);
    work->call.in_background = in_background;
    group->inside++;
    if (work->timed)
        work->began_ns = tti_port_now(runner->port);
    st = tti_queue_run_turn(group, &work->call);
    tti_work_finish(work, st, st != TUTTI_OK ? tutti_last_error() : NULL);
    group->inside--;
    tti_work_drop(work); /* the queue's reference */
}

bool tti_queue_help(tutti_group *group)
{
    tutti_work *work = find_ready(group->runner, group);

    if (work == NULL)
        return false;
    run_work(group->runner, work, false);
    return true;
}

static void worker_main(void *arg)
{
    tti_runner *runner = arg;
    tutti_work *work;
    uint32_t    seen;

    tti_lock(&runner->lock);
    while (!runner->stop) {
        work = runner->first;
        if (work != NULL && work->call.seq == work->group->turn) {
            run_work(runner, work, true);
            continue;
        }
        seen = tti_event_now(&runner->todo);
        tti_unlock(&runner->lock);
        tti_event_wait(runner->port, &runner->todo, seen, TTI_FOREVER);
        tti_lock(&runner->lock);
    }
    tti_unlock(&runner->lock);
}

/* ---- queueing ---- */

static tutti_status start_worker(tti_runner *runner)
{
    if (runner->worker.running)
        return TUTTI_OK;
    return tti_thread_start(&runner->worker, "tutti-work", worker_main, runner);
}

/* Give work its number and its place. Lock held. */
static tutti_status admit(tutti_group *group, tutti_work *work)
{
    tutti_status st;

    if (group->finished != TUTTI_OK)
        return tti_queue_refuse(group);
    st = start_worker(group->runner);
    if (st != TUTTI_OK)
        return st;
    tti_queue_hold(group);
    work->call.seq = group->next_seq++;
    snprintf(work->what, sizeof work->what, "%s #%llu", tti_call_kind_name(work->call.kind),
             (unsigned long long)work->call.seq);
    work->seq = work->call.seq;
    tti_work_retain(work);
    queue_append(group->runner, work);
    tti_event_signal(group->runner->port, &group->runner->todo);
    return TUTTI_OK;
}

/* Of a segment, counted in pointers as all of a work's room is. */
enum { SEGMENT_ENTRIES = sizeof(tutti_segment) / sizeof(void *) };

_Static_assert(sizeof(void *) == sizeof(int64_t), "counts and pointers share a work's room");
_Static_assert(sizeof(tutti_segment) % sizeof(void *) == 0, "segments follow each other in it");


/* Copy an array of n entries to *room_io, and step on. NULL stays NULL. */
static void *keep(void ***room_io, const void *array, int n)
{
    void **room = *room_io;

    if (array == NULL || n == 0)
        return NULL;
    memcpy(room, array, (size_t)n * sizeof *room);
    *room_io += n;
    return room;
}

static int arrays_of(const tutti_call *call)
{
    return 3 * call->n_parts + call->n_segments * SEGMENT_ENTRIES;
}

/* The arrays that call points to may go when the asynchronous call returns: the work has its own. */
static void keep_arrays(tutti_work *work, const tutti_call *call, int n_list)
{
    void **room = work->list;

    work->call = *call;
    work->call.list = keep(&room, call->list, n_list);
    work->call.ins = keep(&room, call->ins, call->n_parts);
    work->call.list_counts = keep(&room, call->list_counts, call->n_parts);
    work->call.in_counts = keep(&room, call->in_counts, call->n_parts);
    work->call.segments = keep(&room, call->segments, call->n_segments * SEGMENT_ENTRIES);
}

tutti_status tti_queue_push(tutti_group *group, const tutti_call *call, int n_list,
                            tutti_work **work_out)
{
    tti_runner  *runner = group->runner;
    tutti_work  *work = NULL;
    tutti_status st;

    st = tti_work_create(group, n_list + arrays_of(call), &work);
    if (st != TUTTI_OK)
        return st;
    keep_arrays(work, call, n_list);
    work->n_list = n_list;
    tti_comm_name(group, call->device, tti_call_kind_name(call->kind), work->name);
    tti_lock(&runner->lock);
    st = admit(group, work);
    tti_unlock(&runner->lock);
    if (st == TUTTI_OK)
        *work_out = work;
    else
        tti_work_drop(work);
    return st;
}

/* ---- closing ---- */

void tti_queue_abort_works(tutti_group *group, const char *happened)
{
    tti_runner *runner = group->runner;
    tutti_work *work = runner->first;
    tutti_work *next;
    char        words[TTI_GROUP_CAUSE_MAX * 3];

    for (; work != NULL; work = next) {
        next = work->next;
        if (work->group != group)
            continue;
        queue_remove(runner, work);
        snprintf(words, sizeof words, "%s on group '%s' was not begun: the group was %s", work->what,
                 group->name, happened);
        tti_work_finish(work, TUTTI_E_ABORTED, words);
        tti_work_drop(work);
    }
    if (runner->first != NULL)
        tti_event_signal(runner->port, &runner->todo); /* another work may be the oldest now */
}

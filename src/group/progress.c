/* SPDX-License-Identifier: BSD-3-Clause
 *
 * progress.c - asynchronous collectives: the queue of a world's works, and the threads that run them.
 *
 * Why     An asynchronous call must make progress even if nobody waits for it, and whoever waits for it should do
 *         it himself where nobody does yet. A group that waits for a late member must not hold up another group.
 * How     An asynchronous call becomes a work in the world's queue, with a number of its group's (queue.c). Three
 *         kinds of thread take from it, each under the lock, so that a work is run once:
 *           a worker             the oldest work of those whose turn has come
 *           a blocking caller    works of its group that stand before it
 *           tutti_work_wait()    the same, up to its own, unless its time-out is shorter than the
 *                                group's: what it runs has the group's
 *         There is a worker from the first asynchronous call on. It does a work to its end, and that may be long, on a
 *         late member. So beside one that is busy another one watches: if the first is still at the same work after
 *         GRACE_MS, it takes the next, and all that come after it. Not at once: several that copy large buffers at one
 *         time would only take cores from each other and from the program. At most one work of a group runs, so there are
 *         never more workers busy than groups that have works. Those that have had nothing to do for a while end.
 *         An asynchronous call on a group that does nothing else begins on the caller's thread, if the backend can do
 *         a part of it that waits for nobody (its entry advance). It may have ended with that. Or it has given all that
 *         other members need of this one: then no worker is woken for it, for whoever asks for its end can do the
 *         rest at that moment, and the program's computing is not disturbed. Who asks without being able to
 *         run it makes it wanted, and a worker comes: callbacks, times, short waits, works behind it that cannot begin
 *         yet. Those that can, because all before them have given all, begin as well, and end in their order.
 * True    The queue and every work are read and written under runner->lock, and never without. A work that runs is
 *         counted inside its group, which stays until it has ended.
 *         No work whose turn has come is left alone, but one that has given all and is not wanted. Whoever queues it, or ends the turn before it, wakes
 *         or starts a worker. One that sleeps, or was just started, may be meant for two works: so who takes
 *         one looks for the next, and wakes or starts another for it, before it begins. While a work is queued the
 *         last worker does not end; if no further one can be started, it does what is left when it comes to it.
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

enum { WORKERS_MAX = 64, IDLE_MS = 1000, GRACE_MS = 50 };

/** A thread that runs works. */
struct tti_worker {
    tti_thread  thread;
    tti_runner *runner;
    tti_worker *next;
    int64_t     busy_since_ns; /* with its work; 0: it has none. Guarded by the lock, as is */
    bool        ended; /* it touches nothing any more; guarded by the lock */
};

/* ---- the runner ---- */

tutti_status tti_runner_create(tti_port *port, tti_runner **runner_out)
{
    tti_runner *runner = calloc(1, sizeof *runner);

    if (runner == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the queue of a world");
    runner->port = port;
    runner->workers_max = WORKERS_MAX;
    runner->idle_ns = IDLE_MS * TTI_MS;
    atomic_init(&runner->refs, 1);
    tti_mutex_init(&runner->lock);
    tti_mutex_favour(&runner->lock, port);
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
    tti_worker *worker;

    tti_lock(&runner->lock);
    runner->stop = true; /* nobody starts one any more */
    tti_event_signal(runner->port, &runner->todo);
    tti_unlock(&runner->lock);
    while ((worker = runner->workers) != NULL) {
        runner->workers = worker->next;
        tti_thread_join(&worker->thread);
        free(worker);
    }
}

void tti_runner_drop(tti_runner *runner)
{
    if (atomic_fetch_sub_explicit(&runner->refs, 1, memory_order_acq_rel) != 1)
        return;
    assert(runner->first == NULL && runner->workers == NULL && !runner->caller.running);
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

/* The work of a group's number seq. */
static tutti_work *find_number(const tutti_group *group, uint64_t seq)
{
    tutti_work *work;

    for (work = group->runner->first; work != NULL; work = work->next)
        if (work->group == group && work->call.seq == seq)
            return work;
    return NULL;
}

/* The work of a group whose turn it is, unless a thread has the backend begin some. */
static tutti_work *find_ready(const tutti_group *group)
{
    return group->advancing ? NULL : find_number(group, group->turn);
}

/* Whether a worker is to come for a work. */
static bool needs_worker(const tutti_work *work)
{
    return work->call.seq == work->group->turn && !work->group->advancing && (!work->given || work->wanted);
}

/* The oldest one. */
static tutti_work *find_oldest(const tti_runner *runner)
{
    tutti_work *work;

    for (work = runner->first; work != NULL; work = work->next)
        if (needs_worker(work))
            return work;
    return NULL;
}

/* Run a work that find_ready() or find_oldest() gave, on a worker, or, NULL, on another thread. Lock held, also on
 * return. */
static void run_work(tti_runner *runner, tutti_work *work, tti_worker *worker)
{
    tutti_group *group = work->group;
    tutti_status st;

    queue_remove(runner, work);
    if (worker != NULL) {
        worker->busy_since_ns = tti_port_now(runner->port);
        tti_queue_rouse(runner);
    }
    work->call.in_background = worker != NULL;
    group->inside++;
    if (work->timed && work->began_ns == 0)
        work->began_ns = tti_port_now(runner->port);
    st = tti_queue_run_turn(group, &work->call, work->advanced);
    tti_work_finish(work, st, st != TUTTI_OK ? tutti_last_error() : NULL);
    group->inside--;
    if (worker != NULL)
        worker->busy_since_ns = 0;
    tti_work_drop(work); /* the queue's reference */
}

/* Do so much of a work as waits for nobody: true if it has ended. Lock held, also on return, and released in
 * between. */
static bool advance_work(tti_runner *runner, tutti_work *work)
{
    tutti_group   *group = work->group;
    tutti_progress progress;
    tutti_status   st;
    bool           ended;

    group->advancing = true;
    group->inside++;
    if (work->timed && work->began_ns == 0)
        work->began_ns = tti_port_now(runner->port);
    ended = tti_queue_advance_turn(group, &work->call, &progress, &st);
    group->advancing = false;
    if (ended) {
        queue_remove(runner, work);
        tti_work_finish(work, st, st != TUTTI_OK ? tutti_last_error() : NULL);
        tti_work_drop(work); /* the queue's reference */
    } else {
        work->advanced = work->advanced || progress != TUTTI_PROGRESS_NONE;
        work->given = progress == TUTTI_PROGRESS_GIVEN;
    }
    if (group->finished != TUTTI_OK)
        tti_queue_want(group); /* whoever ended it has left to this thread what it was at */
    tti_event_signal(runner->port, &runner->changed); /* who waits may go on with what is left */
    group->inside--;
    return ended;
}

static bool can_advance(const tutti_group *group, const tutti_work *work)
{
    return group->finished == TUTTI_OK && !group->advancing &&
           group->routes[work->call.device].ops->advance != NULL;
}

void tti_queue_advance(tutti_group *group)
{
    uint64_t    seq = group->turn;
    tutti_work *work;

    for (;;) {
        work = find_number(group, seq);
        if (work == NULL || !can_advance(group, work) || (work->advanced && !work->given))
            return;
        if (work->given && seq != group->turn) {
            seq++; /* it ends in its turn */
            continue;
        }
        if (advance_work(group->runner, work)) { /* it is gone */
            seq = group->turn;
            continue;
        }
        if (!work->given)
            return;
        seq++;
    }
}

void tti_queue_want(tutti_group *group)
{
    tutti_work *work;

    for (work = group->runner->first; work != NULL; work = work->next)
        if (work->group == group)
            work->wanted = true;
    tti_queue_rouse(group->runner);
}

bool tti_queue_help(tutti_group *group)
{
    tutti_work *work = find_ready(group);

    if (work == NULL)
        return false;
    run_work(group->runner, work, NULL);
    return true;
}

/* ---- workers ---- */

/* Sleep until there may be a work, or the time comes. Lock held, also on return. */
static void await_work(tti_runner *runner, int64_t until_ns)
{
    const uint32_t seen = tti_event_now(&runner->todo);

    runner->n_idle++;
    tti_unlock(&runner->lock);
    tti_event_wait(runner->port, &runner->todo, seen, until_ns);
    tti_lock(&runner->lock);
    runner->n_idle--;
}

/* Nothing to do: false if this worker has been so for long, and can be done without. Lock held, also on return,
 * and released in between. */
static bool stays_idle(tti_runner *runner, int64_t *until_ns, uint64_t *n_pushed)
{
    if (*until_ns == 0) {
        *until_ns = tti_port_now(runner->port) + runner->idle_ns;
        *n_pushed = runner->n_pushed;
    }
    await_work(runner, *until_ns);
    if (find_oldest(runner) != NULL || tti_port_now(runner->port) < *until_ns)
        return true; /* who has counted on this one, asleep, did not start another */
    *until_ns = 0;
    return runner->n_workers == 1 && (runner->first != NULL || runner->n_pushed != *n_pushed);
}

/* When an idle worker may take a work: at once, unless others are busy that may come to it; whoever has been at one work
 * for long is stuck, and does not count. Lock held. */
static int64_t due_ns(const tti_runner *runner)
{
    const tti_worker *worker;
    int64_t           latest_ns = 0;

    for (worker = runner->workers; worker != NULL; worker = worker->next)
        if (worker->busy_since_ns > latest_ns)
            latest_ns = worker->busy_since_ns;
    return latest_ns != 0 ? latest_ns + GRACE_MS * TTI_MS : 0;
}

static bool is_due(const tti_runner *runner)
{
    const int64_t at_ns = due_ns(runner);

    return at_ns == 0 || tti_port_now(runner->port) >= at_ns;
}

static void worker_main(void *arg)
{
    tti_worker *worker = arg;
    tti_runner *runner = worker->runner;
    int64_t     until_ns = 0;
    uint64_t    n_pushed = 0;
    tutti_work *work;

    tti_lock(&runner->lock);
    runner->n_idle--; /* it was counted when it was started */
    while (!runner->stop) {
        work = find_oldest(runner);
        if (work != NULL && is_due(runner)) {
            run_work(runner, work, worker);
            until_ns = 0;
        } else if (work != NULL) {
            runner->n_watching++;
            await_work(runner, due_ns(runner));
            runner->n_watching--;
        } else if (!stays_idle(runner, &until_ns, &n_pushed)) {
            break;
        }
    }
    runner->n_workers--;
    worker->ended = true;
    tti_unlock(&runner->lock);
}

/* The place of a worker that has ended, or a new one; NULL: no memory. Lock held: who has ended is about to return
 * from its thread, so that joining it is no wait. */
static tti_worker *take_place(tti_runner *runner)
{
    tti_worker *worker;

    for (worker = runner->workers; worker != NULL; worker = worker->next)
        if (worker->ended) {
            tti_thread_join(&worker->thread);
            return worker;
        }
    worker = calloc(1, sizeof *worker);
    if (worker == NULL)
        return NULL;
    worker->runner = runner;
    worker->ended = true;
    worker->next = runner->workers;
    runner->workers = worker;
    return worker;
}

static tutti_status start_worker(tti_runner *runner)
{
    tti_worker  *worker = take_place(runner);
    tutti_status st;

    if (worker == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a thread for asynchronous operations");
    st = tti_thread_start(&worker->thread, "tutti-work", worker_main, worker);
    if (st != TUTTI_OK)
        return st;
    worker->ended = false;
    runner->n_workers++;
    runner->n_idle++;
    return TUTTI_OK;
}

void tti_queue_rouse(tti_runner *runner)
{
    if (runner->stop || find_oldest(runner) == NULL || (runner->n_watching > 0 && due_ns(runner) != 0))
        return;
    if (runner->n_idle > 0)
        tti_event_signal(runner->port, &runner->todo);
    else if (runner->n_workers < runner->workers_max)
        start_worker(runner); /* else those that are there come to it */
}

/* ---- queueing ---- */

/* Give work its number and its place. Lock held. */
static tutti_status admit(tutti_group *group, tutti_work *work)
{
    tti_runner  *runner = group->runner;
    tutti_status st;

    if (group->finished != TUTTI_OK)
        return tti_queue_refuse(group);
    if (runner->n_workers == 0) {
        st = start_worker(runner);
        if (st != TUTTI_OK)
            return st;
    }
    runner->n_pushed++;
    tti_queue_hold(group);
    work->call.seq = group->next_seq++;
    snprintf(work->what, sizeof work->what, "%s #%llu", tti_call_kind_name(work->call.kind),
             (unsigned long long)work->call.seq);
    work->seq = work->call.seq;
    tti_work_retain(work);
    queue_append(runner, work);
    work->wanted = work->timed;
    tti_queue_advance(group);
    if (!work->done && !work->given && work->call.seq != group->turn)
        tti_queue_want(group); /* what stands before it is to end */
    else
        tti_queue_rouse(runner);
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
        if (work->advanced || group->advancing)
            continue; /* the backend has its buffers: it is run, and fails */
        queue_remove(runner, work);
        snprintf(words, sizeof words, "%s on group '%s' was not begun: the group was %s", work->what, group->name,
                 happened);
        tti_work_finish(work, TUTTI_E_ABORTED, words);
        tti_work_drop(work);
    }
}

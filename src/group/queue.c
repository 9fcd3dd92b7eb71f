/* SPDX-License-Identifier: BSD-3-Clause
 *
 * queue.c - in which order a group's collectives run, and on which thread.
 *
 * Why     All members must run a group's collectives in the same order, one at a time. A blocking
 *         call should cost no thread hop and no allocation; an asynchronous one must make progress
 *         even if nobody waits for it.
 * How     A blocking call on an idle group takes its number from the group's gate (gate.h), runs, and
 *         gives the turn back there: no lock, no signal. Whoever finds the gate taken, or has more to do
 *         than that, holds it: then numbers and turns stand under the lock, until all that were given
 *         out have run, and the gate is opened again.
 *         Under the lock every collective takes a number (next_seq), and may run when turn is that
 *         number; whoever ran it raises turn. A blocking call waits for its turn and runs itself.
 *         An asynchronous one becomes a work in the world's queue, which three kinds of thread take
 *         from, each under the lock, so that a work is run once:
 *           the worker           the oldest work of all, when its turn has come
 *           a blocking caller    works of its group that stand before it
 *           tutti_work_wait()    the same, up to its own, unless its time-out is shorter than the
 *                                group's: what it runs has the group's
 *         The worker follows the order of issue across groups, so ranks that issue on several
 *         groups in one order do not block each other; a caller that helps only adds progress.
 *         Where a helper runs what stands before the oldest work, the worker waits for it and takes
 *         no younger work of another group instead: it could get stuck there, on a rank that does
 *         the older one first, and nobody would be left for that.
 * True    held, next_seq, turn, inside, finished, the queue and every work are read and written under
 *         runner->lock, and never without. next_seq and turn only mean something while held, and a gate
 *         is not open while any of this is so: somebody waits for a turn, a work is queued, the group is
 *         finished or closing. So a turn that the gate takes back concerns nobody.
 *         A backend runs with the lock released; its group stays, because inside counts the thread, and
 *         tti_queue_close() waits for inside to be 0. Who is inside by the gate is counted when the gate
 *         is held, which closing does first; from then on that thread ends under the lock.
 *         Nobody waits under the lock: sleepers take the event's count under it, release it, sleep,
 *         and look again. Whoever changes something signals before releasing it; an event nobody
 *         sleeps on costs one atomic addition. After unlocking a thread touches neither group nor
 *         runner, unless it holds a reference of its own.
 *         A barrier is a collective like others: earlier works are complete when its turn comes.
 *         Who holds several turns in a row (tti_turns) has the numbers first .. end-1, so nobody else's
 *         number is turn until they are given back; all members give back as many unused.
 * Fails   The first failure finishes the group: works behind it and later calls fail with the same
 *         status, and with the words of the operation that broke it. A collective tells the other
 *         members itself; for a message that failed tti_group_fail() does. */
#include "group/hooks.h"

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

/* ---- the gate ---- */

void tti_queue_init(tutti_group *group)
{
    group->held = false;
    group->next_seq = group->turn = 1;
    group->inside = 0;
    group->closing = false;
    group->finished = TUTTI_OK;
    tti_gate_open(&group->gate, 1);
}

uint64_t tti_queue_next(const tutti_group *group)
{
    const uint64_t word = tti_gate_look(&group->gate);

    return group->held ? group->next_seq : tti_gate_number(word) + (word & TTI_GATE_BUSY);
}

/* From here on the lock has the order. Lock held. */
static void hold(tutti_group *group)
{
    uint64_t word;
    int      running;

    if (group->held)
        return;
    word = tti_gate_hold(&group->gate);
    running = (word & TTI_GATE_BUSY) != 0;
    group->held = true;
    group->turn = tti_gate_number(word);
    group->next_seq = group->turn + (uint64_t)running;
    group->inside += running;
}

/* Open the gate again, if nothing is left that the lock has to order. Lock held. */
static void settle(tutti_group *group)
{
    if (!group->held || group->turn != group->next_seq || group->closing || group->finished != TUTTI_OK)
        return;
    group->held = false;
    tti_gate_open(&group->gate, group->turn);
}

/* ---- finished groups ---- */

static tutti_status refuse(const tutti_group *group)
{
    return tti_fail(group->finished, "group '%s' is finished since %s: %s", group->name,
                    group->finished_by, group->finished_words);
}

/* The first failure stays. */
static void finish_group(tutti_group *group, const char *by, tutti_status st, const char *words)
{
    if (group->finished != TUTTI_OK)
        return;
    hold(group); /* for good: later calls come to the lock to be refused */
    group->finished = st;
    snprintf(group->finished_by, sizeof group->finished_by, "%s", by);
    snprintf(group->finished_words, sizeof group->finished_words, "%s", words);
}

/* The others only concern the call. */
bool tti_group_finishes(tutti_status st)
{
    switch (st) {
    case TUTTI_E_TIMEOUT:
    case TUTTI_E_PEER:
    case TUTTI_E_ABORTED:
    case TUTTI_E_BACKEND:
    case TUTTI_E_NETWORK:
    case TUTTI_E_AUTH: return true;
    default: return false;
    }
}

void tti_group_fail(tutti_group *group, const char *what, tutti_status st, const char *words)
{
    if (group->finished != TUTTI_OK || !tti_group_finishes(st))
        return;
    finish_group(group, what, st, words);
    if (st != TUTTI_E_ABORTED) /* else the backend knows */
        tti_routes_end(group, st); /* whatever else waits in the group ends, on all members */
}

tutti_status tti_group_enter(tutti_group *group)
{
    tutti_status st = TUTTI_OK;

    tti_lock(&group->runner->lock);
    if (group->finished != TUTTI_OK)
        st = refuse(group);
    else
        group->inside++;
    tti_unlock(&group->runner->lock);
    return st;
}

void tti_group_leave(tutti_group *group, const char *what, tutti_status st)
{
    tti_runner *runner = group->runner;

    tti_lock(&runner->lock);
    tti_group_fail(group, what, st, tutti_last_error());
    group->inside--;
    if (group->closing)
        tti_event_signal(runner->port, &runner->changed);
    tti_unlock(&runner->lock);
}

/* ---- running ---- */

/* What has finished the group goes to its hooks: only then, so that one that uses the group is refused, and
 * does not wait for the turn after this one. Lock held, also on return, and released in between; the caller is
 * counted inside. */
static void tell_abort(tutti_group *group, const char *what, tutti_status st)
{
    tti_unlock(&group->runner->lock);
    tti_hooks_abort(group, what, st);
    tti_lock(&group->runner->lock);
}

/* call, whose turn it is, has failed. Lock held, also on return, and released in between. */
static void fail_turn(tutti_group *group, const tutti_call *call, tutti_status st)
{
    char what[TTI_GROUP_CAUSE_MAX];

    snprintf(what, sizeof what, "%s #%llu", tti_call_kind_name(call->kind),
             (unsigned long long)call->seq);
    finish_group(group, what, st, tutti_last_error());
    tell_abort(group, what, st);
}

/* Hand call, which has its number, to its backend. No lock held. */
static tutti_status run_call(tutti_group *group, tutti_call *call)
{
    const tti_route *route = &group->routes[call->device];
    const int64_t    ms = atomic_load_explicit(&group->timeout_ms, memory_order_relaxed);

    call->timeout_ms = ms;
    call->deadline_ns = route->ops->late_deadlines ? 0 : tti_deadline(group->runner->port, ms, ms);
    return route->ops->run(route->backend, call);
}

/* n turns have ended. Lock held. */
static void end_turns(tutti_group *group, uint64_t n)
{
    tti_runner *runner = group->runner;

    group->turn += n;
    settle(group);
    tti_event_signal(runner->port, &runner->changed);
    if (runner->first != NULL)
        tti_event_signal(runner->port, &runner->todo);
}

/* Run call, whose turn it is. The lock is held, also on return, and released in between; group
 * stays, the caller is counted inside. */
static tutti_status run_turn(tutti_group *group, tutti_call *call)
{
    tti_runner  *runner = group->runner;
    tutti_status st;

    assert(group->held && (group->turn == call->seq || group->closing));
    if (group->finished != TUTTI_OK) {
        st = refuse(group);
    } else {
        tti_unlock(&runner->lock);
        st = run_call(group, call);
        tti_lock(&runner->lock);
        if (st != TUTTI_OK)
            fail_turn(group, call, st);
    }
    end_turns(group, 1);
    return st;
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
    st = run_turn(group, &work->call);
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

/* Wait, inside, until the collective with number seq may run. Lock held, also on return. */
static void await_turn(tutti_group *group, uint64_t seq)
{
    while (group->turn != seq && !group->closing)
        if (!tti_queue_help(group))
            tti_runner_sleep(group->runner, TTI_FOREVER); /* what runs ahead has a deadline */
}

/* A call that did not get in by the gate. */
static __attribute__((noinline, cold)) tutti_status run_in_turn(tutti_group *group, tutti_call *call)
{
    tti_runner  *runner = group->runner;
    tutti_status st;

    tti_lock(&runner->lock);
    if (group->finished != TUTTI_OK) {
        st = refuse(group);
        tti_unlock(&runner->lock);
        return st;
    }
    hold(group);
    call->seq = group->next_seq++;
    group->inside++;
    await_turn(group, call->seq);
    st = run_turn(group, call);
    group->inside--;
    tti_unlock(&runner->lock);
    return st;
}

/* A call that got in by the gate has failed, or somebody holds the gate by now: its turn ends here. */
static __attribute__((noinline, cold)) tutti_status end_in_turn(tutti_group *group, const tutti_call *call,
                                                                tutti_status st)
{
    tti_runner *runner = group->runner;

    tti_lock(&runner->lock);
    hold(group); /* whoever did it first, this thread is inside since then */
    assert(group->turn == call->seq || group->closing);
    if (st != TUTTI_OK)
        fail_turn(group, call, st);
    end_turns(group, 1);
    group->inside--;
    tti_unlock(&runner->lock);
    return st;
}

tutti_status tti_queue_run(tutti_group *group, tutti_call *call)
{
    tutti_status st;

    if (!tti_gate_enter(&group->gate, &call->seq))
        return run_in_turn(group, call);
    st = run_call(group, call);
    if (st == TUTTI_OK && tti_gate_leave(&group->gate, call->seq))
        return TUTTI_OK;
    return end_in_turn(group, call, st);
}

/* ---- several turns in a row ---- */

tutti_status tti_turns_take(tutti_group *group, int n, tti_turns *turns_out)
{
    tti_runner  *runner = group->runner;
    tutti_status st = TUTTI_OK;

    tti_lock(&runner->lock);
    if (group->finished != TUTTI_OK) {
        st = refuse(group);
    } else {
        hold(group);
        *turns_out = (tti_turns){ .group = group, .first = group->next_seq, .next = group->next_seq,
                                  .end = group->next_seq + (uint64_t)n };
        group->next_seq = turns_out->end;
        group->inside++;
        await_turn(group, turns_out->first);
    }
    tti_unlock(&runner->lock);
    return st;
}

tutti_status tti_turns_run(tti_turns *turns, tutti_call *call)
{
    tti_runner  *runner = turns->group->runner;
    tutti_status st;

    assert(turns->next < turns->end);
    tti_lock(&runner->lock);
    call->seq = turns->next++;
    st = run_turn(turns->group, call);
    tti_unlock(&runner->lock);
    return st;
}

void tti_turns_give(tti_turns *turns, const char *what, tutti_status st)
{
    tutti_group *group = turns->group;
    tti_runner  *runner = group->runner;

    tti_lock(&runner->lock);
    if (group->finished == TUTTI_OK && tti_group_finishes(st)) {
        tti_group_fail(group, what, st, tutti_last_error());
        tell_abort(group, what, st);
    }
    hold(group); /* after the last turn it may have been opened */
    end_turns(group, turns->end - turns->next);
    group->inside--;
    tti_unlock(&runner->lock);
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
        return refuse(group);
    st = start_worker(group->runner);
    if (st != TUTTI_OK)
        return st;
    hold(group);
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

/* End the works of group that nobody runs, because it was "destroyed" or so. Lock held. */
static void abort_queued(tutti_group *group, const char *happened)
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
    busy = is_busy(group) || group->messages != NULL;
    tti_unlock(&group->runner->lock);
    return busy;
}

void tti_queue_abort(tutti_group *group)
{
    finish_group(group, "tutti_abort_process_group", TUTTI_E_ABORTED, "it was aborted in this process");
    abort_queued(group, "aborted");
    tti_event_signal(group->runner->port, &group->runner->changed);
    tti_fail(TUTTI_E_ABORTED, "rank %d aborted group '%s'", group->ranks[group->rank], group->name);
    tti_routes_end(group, TUTTI_E_ABORTED);
}

void tti_queue_close(tutti_group *group)
{
    tti_runner *runner = group->runner;
    bool        busy;

    tti_lock(&runner->lock);
    hold(group); /* whoever is inside is counted from here on */
    busy = is_busy(group);
    group->closing = true;
    finish_group(group, "tutti_destroy_process_group", TUTTI_E_ABORTED,
                 "it is being destroyed in this process");
    abort_queued(group, "destroyed");
    tti_event_signal(runner->port, &runner->changed);
    tti_unlock(&runner->lock);

    /* An idle group leaves quietly: abort would also reach members that are still inside the last
     * operation, which this rank has done its part of. */
    if (busy) {
        tti_hooks_abort(group, "tutti_destroy_process_group", TUTTI_E_ABORTED);
        tti_routes_end(group, TUTTI_OK);
    }

    tti_lock(&runner->lock);
    while (group->inside > 0)
        tti_runner_sleep(runner, TTI_FOREVER);
    tti_unlock(&runner->lock);
}

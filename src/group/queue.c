/* SPDX-License-Identifier: BSD-3-Clause
 *
 * queue.c - in which order a group's collectives run.
 *
 * Why     All members must run a group's collectives in the same order, one at a time. A blocking
 *         call should cost no thread hop and no allocation.
 * How     A blocking call on an idle group takes its number from the group's gate (gate.h), runs, and
 *         gives the turn back there: no lock, no signal. Whoever finds the gate taken, or has more to do
 *         than that, holds it: then numbers and turns stand under the lock, until all that were given
 *         out have run, and the gate is opened again.
 *         Under the lock every collective takes a number (next_seq), and may run when turn is that
 *         number; whoever ran it raises turn. A blocking call waits for its turn and runs itself; an
 *         asynchronous one is a work, and progress.c has who runs it.
 * True    held, next_seq, turn, inside, finished, the works and their queue are read and written under
 *         runner->lock, and never without. next_seq and turn only mean something while held, and a gate
 *         is not open while any of this is so: somebody waits for a turn, a work is queued, the group is
 *         finished or closing. So a turn that the gate takes back concerns nobody.
 *         turn goes from number to number, each raised by whoever had it. Works that an abort or the end of the group
 *         takes out of the queue leave a gap, which no turn crosses: who waits behind it is refused instead. What the
 *         backend has begun stands before the gap, and gets its turn.
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
#include "group/asked.h"
#include "group/compound.h"
#include "group/queue.h"
#include "group/recorded.h"
#include "group/streamed.h"

#include <assert.h>
#include <stdio.h>
#include "watch/control.h"
#include <tutti/private.h>

/* ---- the gate ---- */

void tti_queue_init(tutti_group *group)
{
    group->held = false;
    group->next_seq = group->turn = 1;
    group->inside = 0;
    group->closing = group->gaps = false;
    group->finished = TUTTI_OK;
    tti_gate_open(&group->gate, 1);
}

uint64_t tti_queue_next(const tutti_group *group)
{
    const uint64_t word = tti_gate_look(&group->gate);

    return group->held ? group->next_seq : tti_gate_number(word) + (word & TTI_GATE_BUSY);
}

void tti_queue_hold(tutti_group *group)
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

/* What it was for may have become known meanwhile. */
tutti_status tti_queue_refuse(const tutti_group *group)
{
    return tti_group_blame(group, tti_fail(group->finished, "group '%s' is finished since %s: %s", group->name,
                                           group->finished_by, group->finished_words));
}

void tti_queue_finish(tutti_group *group, const char *by, tutti_status st, const char *words)
{
    if (group->finished != TUTTI_OK)
        return;
    tti_queue_hold(group); /* for good: later calls come to the lock to be refused */
    group->finished = st;
    snprintf(group->finished_by, sizeof group->finished_by, "%s", by);
    snprintf(group->finished_words, sizeof group->finished_words, "%s", words);
    if (!group->closing)
        tti_recorder_fail_group(&group->place, st, words);
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
    tti_queue_finish(group, what, st, words);
    if (st != TUTTI_E_ABORTED) /* else the backend knows */
        tti_routes_end(group, st); /* whatever else waits in the group ends, on all members */
}

bool tti_group_is_finished(tutti_group *group)
{
    bool is;

    tti_lock(&group->runner->lock);
    is = group->finished != TUTTI_OK;
    tti_unlock(&group->runner->lock);
    return is;
}

tutti_status tti_group_enter(tutti_group *group)
{
    tutti_status st = TUTTI_OK;

    tti_lock(&group->runner->lock);
    if (group->finished != TUTTI_OK)
        st = tti_queue_refuse(group);
    else
        group->inside++;
    tti_unlock(&group->runner->lock);
    return st;
}

void tti_group_leave(tutti_group *group, const char *what, tutti_status st)
{
    tti_runner *runner = group->runner;

    tti_lock(&runner->lock);
    if (st != TUTTI_OK)
        tti_group_fail(group, what, st, tutti_last_error());
    group->inside--;
    if (group->closing)
        tti_runner_tell(runner);
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

/* call, whose turn it is, has failed. One that the backend does not offer was refused by all members alike, before
 * anything was done: the group goes on behind it. Lock held, also on return, and released in between. */
static void fail_turn(tutti_group *group, const tutti_call *call, tutti_status st)
{
    const char *name = call->whole == TUTTI_WHOLE_GROW ? "grow_group" : tti_call_kind_name(call->kind);
    char        what[TTI_GROUP_CAUSE_MAX];

    if (st == TUTTI_E_UNSUPPORTED)
        return;
    snprintf(what, sizeof what, "%s #%llu", name, (unsigned long long)call->seq);
    tti_queue_finish(group, what, st, tutti_last_error());
    tell_abort(group, what, st);
}

/* The call is about to begin, or to go on. */
static void set_time(const tutti_group *group, const tti_route *route, tutti_call *call)
{
    const int64_t ms = atomic_load_explicit(&group->timeout_ms, memory_order_relaxed);

    call->timeout_ms = ms;
    call->deadline_ns = route->ops->late_deadlines ? 0 : tti_deadline(group->runner->port, ms, ms);
}

/* For a backend that takes one buffer at a time. If one is refused, those before it are done, on all members alike. */
static tutti_status run_segments(const tti_route *route, const tutti_call *call, int n_ranks)
{
    tutti_call   one = *call;
    tutti_status st = TUTTI_OK;
    int          i;

    one.n_segments = 0;
    one.segments = NULL;
    for (i = 0; i < call->n_segments && st == TUTTI_OK; i++) {
        one.count = call->segments[i].count;
        one.in = call->segments[i].in;
        one.out = call->segments[i].out;
        one.list = call->list != NULL ? call->list + (size_t)i * (size_t)n_ranks : NULL;
        st = tti_asked_run(route, &one);
    }
    return st;
}

/* Hand call, which has its number and was issued at moment, to its backend. No lock held. */
static inline tutti_status run_call(tutti_group *group, tutti_call *call, uint64_t moment)
{
    const tti_route  *route = &group->routes[call->device];
    const bool        blocking = call->record == 0;
    tti_thread_facts *thread = tti_thread_facts_now();
    tutti_status      st;

    set_time(group, route, call);
    tti_recorded_begin(thread, group, call, moment);
    if (__builtin_expect(call->n_segments > 0, 0) && !route->ops->takes_segments)
        st = run_segments(route, call, group->size);
    else
        st = tti_asked_run(route, call);
    tti_recorded_end(thread, group, call, st, blocking);
    return st == TUTTI_OK ? st : tti_recorder_dump_failure(tti_group_blame(group, st));
}

/* n turns have ended, on a worker or another thread. Lock held. */
static void end_turns(tutti_group *group, uint64_t n, bool is_worker)
{
    tti_runner *runner = group->runner;

    group->turn += n;
    settle(group);
    tti_runner_tell(runner);
    if (!is_worker)
        tti_queue_rouse(runner); /* a worker looks for its next work itself */
}

tutti_status tti_queue_run_turn(tutti_group *group, tutti_call *call, bool is_begun)
{
    tti_runner  *runner = group->runner;
    const bool   late = group->finished != TUTTI_OK;
    tutti_status st = TUTTI_OK;

    assert(group->held && group->turn == call->seq);
    if (!late || is_begun) {
        tti_unlock(&runner->lock);
        st = run_call(group, call, 0);
        tti_lock(&runner->lock);
        if (st != TUTTI_OK && !late)
            fail_turn(group, call, st);
    }
    if (late)
        st = tti_queue_refuse(group); /* what was begun has its buffers back now */
    end_turns(group, 1, call->in_background);
    return st;
}

bool tti_queue_advance_turn(tutti_group *group, tutti_call *call, tutti_progress *progress_out, tutti_status *st_out)
{
    const tti_route  *route = &group->routes[call->device];
    const bool        in_turn = group->turn == call->seq;
    tti_thread_facts *thread = tti_thread_facts_now();
    tutti_progress    progress = TUTTI_PROGRESS_NONE;
    tutti_status      st;

    assert(group->held);
    tti_unlock(&group->runner->lock);
    set_time(group, route, call);
    tti_recorded_begin(thread, group, call, 0);
    st = tti_asked_advance(route, call, in_turn, &progress);
    if (st != TUTTI_OK || progress == TUTTI_PROGRESS_DONE)
        tti_recorded_end(thread, group, call, st, false);
    st = st == TUTTI_OK ? st : tti_group_blame(group, st);
    tti_lock(&group->runner->lock);
    assert(in_turn || progress != TUTTI_PROGRESS_DONE);
    if (st != TUTTI_OK)
        fail_turn(group, call, st);
    *progress_out = st == TUTTI_OK ? progress : TUTTI_PROGRESS_NONE;
    if (!in_turn || (st == TUTTI_OK && progress != TUTTI_PROGRESS_DONE))
        return false;
    end_turns(group, 1, false);
    *st_out = st;
    return true;
}

/* Wait until the collective with number seq may run, and be inside then. Whose turn does not come any more, because
 * works before it are gone with the group, is refused; its number is nobody's. Lock held, also on return. */
static tutti_status await_turn(tutti_group *group, uint64_t seq)
{
    group->inside++;
    while (group->turn != seq && !group->gaps)
        if (!tti_queue_help(group))
            tti_runner_sleep(group->runner, TTI_FOREVER); /* what runs ahead has a deadline */
    if (group->turn == seq)
        return TUTTI_OK;
    group->inside--;
    tti_runner_tell(group->runner); /* who closes waits for it */
    return tti_queue_refuse(group);
}

/* A call that did not get in by the gate. */
static __attribute__((noinline, cold)) tutti_status run_in_turn(tutti_group *group, tutti_call *call)
{
    tti_runner  *runner = group->runner;
    tutti_status st;

    tti_lock(&runner->lock);
    if (group->finished != TUTTI_OK) {
        st = tti_queue_refuse(group);
        tti_unlock(&runner->lock);
        return st;
    }
    tti_queue_hold(group);
    call->seq = group->next_seq++;
    st = await_turn(group, call->seq);
    if (st == TUTTI_OK) {
        st = tti_queue_run_turn(group, call, false);
        group->inside--;
    }
    tti_unlock(&runner->lock);
    return st;
}

/* A call that got in by the gate has failed, or somebody holds the gate by now: its turn ends here. */
static __attribute__((noinline, cold)) tutti_status end_in_turn(tutti_group *group, const tutti_call *call,
                                                                tutti_status st)
{
    tti_runner *runner = group->runner;

    tti_lock(&runner->lock);
    tti_queue_hold(group); /* whoever did it first, this thread is inside since then */
    assert(group->turn == call->seq);
    if (st != TUTTI_OK)
        fail_turn(group, call, st);
    end_turns(group, 1, false);
    group->inside--;
    tti_unlock(&runner->lock);
    return st;
}

static inline tutti_status run_marked(tutti_group *group, tutti_call *call)
{
    const uint64_t moment = tti_record_moment();
    tutti_status   st;

    call->record = 0;
    if (!tti_gate_enter(&group->gate, &call->seq))
        return run_in_turn(group, call);
    st = run_call(group, call, moment);
    if (st == TUTTI_OK && tti_gate_leave(&group->gate, call->seq))
        return TUTTI_OK;
    return end_in_turn(group, call, st);
}

tutti_status tti_queue_run_marked(tutti_group *group, tutti_call *call)
{
    return run_marked(group, call);
}

tutti_status tti_queue_run(tutti_group *group, tutti_call *call)
{
    if (__builtin_expect(tti_is_streamed(group, call->device), 0))
        return tti_streamed_run(group, call);
    return run_marked(group, call);
}

/* ---- several turns in a row ---- */

tutti_status tti_turns_take(tutti_group *group, int n, tti_turns *turns_out)
{
    tti_runner  *runner = group->runner;
    uint64_t     first;
    tutti_status st = TUTTI_OK;

    tti_lock(&runner->lock);
    if (group->finished != TUTTI_OK) {
        st = tti_queue_refuse(group);
    } else {
        tti_queue_hold(group);
        first = group->next_seq;
        group->next_seq += (uint64_t)n;
        st = await_turn(group, first);
        if (st == TUTTI_OK)
            *turns_out = (tti_turns){ .group = group, .first = first, .next = first, .end = first + (uint64_t)n };
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
    call->in_background = turns->in_background;
    call->record = 0;
    call->whole = turns->whole;
    st = tti_queue_run_turn(turns->group, call, false);
    tti_unlock(&runner->lock);
    return st;
}

/* Lock held, also on return, and released in between. */
static void give_back(tti_turns *turns, const char *what, tutti_status st)
{
    tutti_group *group = turns->group;

    if (group->finished == TUTTI_OK && tti_group_finishes(st)) {
        tti_group_fail(group, what, st, tutti_last_error());
        tell_abort(group, what, st);
    }
    tti_queue_hold(group); /* after the last turn it may have been opened */
    end_turns(group, turns->end - turns->next, turns->in_background);
}

void tti_turns_give(tti_turns *turns, const char *what, tutti_status st)
{
    tutti_group *group = turns->group;
    tti_runner  *runner = group->runner;

    tti_lock(&runner->lock);
    give_back(turns, what, st);
    group->inside--;
    tti_unlock(&runner->lock);
}

tutti_status tti_queue_run_compound(tutti_group *group, tti_compound *compound, uint64_t first, bool is_worker)
{
    tti_runner  *runner = group->runner;
    const bool   late = group->finished != TUTTI_OK;
    const char  *what = compound->what;
    tti_turns    turns = { .group = group, .first = first, .next = first,
                           .end = first + (uint64_t)compound->n_turns, .in_background = is_worker,
                           .whole = compound->whole };
    tutti_status st, ends;

    assert(group->held && group->turn == first);
    tti_unlock(&runner->lock);
    st = late ? TUTTI_OK : tti_compound_run(group, compound, &turns);
    ends = compound->ends != TUTTI_OK ? compound->ends : st;
    compound->release(compound);
    tti_lock(&runner->lock);
    if (late)
        st = ends = tti_queue_refuse(group);
    give_back(&turns, what, ends);
    return st;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * progress.c - asynchronous collectives: the queue of a world's works, and who does what of them.
 *
 * Why     An asynchronous call must make progress even if nobody waits for it, and whoever waits for it should do
 *         it himself where nobody does yet. While the program computes, no thread should come between that need not.
 * How     An asynchronous call becomes a work in the world's queue, with a number of its group's (queue.c). Three
 *         kinds of thread take from it, each under the lock, so that a work is run once:
 *           a worker             the oldest work of those whose turn has come (workers.c)
 *           a blocking caller    works of its group that stand before it
 *           tutti_work_wait()    the same, up to its own, unless its time-out is shorter than the
 *                                group's: what it runs has the group's
 *         An asynchronous call on a group that does nothing else begins on the caller's thread, if the backend can do
 *         a part of it that waits for nobody (its entry advance). It may have ended with that. Or it has given all that
 *         other members need of this one: then no worker is woken for it, for whoever asks for its end can do the
 *         rest at that moment, and the program's computing is not disturbed. Who asks without being able to
 *         run it makes it wanted, and a worker comes: callbacks, times, short waits, works behind it that cannot begin
 *         yet. Those that can, because all before them have given all, begin as well, and end in their order.
 * Soon    To wake a worker costs more than a call of some KiB takes, and more still when it comes in between. A program that
 *         waits for its works at once needs none. So a group notes how many of its works in a row were waited for
 *         within SOON_NS of the program's last being here; from SOON on its works are put off: no worker is woken,
 *         but one naps instead of sleeping (workers.c), and takes what nobody has come for when it looks. Then
 *         twice as many in a row are needed next time. Who asks for the end of one without running it wants it.
 * True    The queue and every work are read and written under runner->lock, and never without. A work that runs is
 *         counted inside its group, which stays until it has ended.
 *         No work whose turn has come is left alone, but one that has given all and is not wanted: whoever queues it,
 *         ends the turn before it, or wants it, rouses a worker. A work is put off only while a worker naps, or was woken
 *         to, and no longer.
 *         While a thread has the backend begin works of a group (advancing), none of them is run, and none begins on
 *         another thread: a worker that looks meanwhile finds none, and is roused again afterwards. What was begun is
 *         run in any case, also after the group has failed: then the backend gives the buffers back, and the work
 *         ends after that. */
#include "base/site.h"
#include "group/compound.h"
#include "group/put.h"
#include "group/queue.h"
#include "group/recorded.h"
#include "group/streamed.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "watch/control.h"
#include <tutti/private.h>

enum { SOON = 4, SOON_MOST = 4096 };

static const int64_t SOON_NS = 20 * 1000;

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
    return work->call.seq == work->group->turn && !work->group->advancing && (!work->given || work->wanted) &&
           !work->put_off;
}

tutti_work *tti_queue_oldest(const tti_runner *runner)
{
    tutti_work *work;

    for (work = runner->first; work != NULL; work = work->next)
        if (needs_worker(work))
            return work;
    return NULL;
}

void tti_queue_run_work(tti_runner *runner, tutti_work *work, bool is_worker)
{
    tutti_group *group = work->group;
    tutti_status st;

    queue_remove(runner, work);
    if (is_worker)
        tti_queue_rouse(runner); /* this one is busy from here on */
    work->call.in_background = is_worker;
    group->inside++;
    if (work->timed && work->began_ns == 0)
        work->began_ns = tti_port_now(runner->port);
    if (work->compound != NULL)
        st = tti_queue_run_compound(group, work->compound, work->call.seq, is_worker);
    else
        st = tti_queue_run_turn(group, &work->call, work->advanced);
    work->compound = NULL;
    tti_work_finish(work, st, st != TUTTI_OK ? tutti_last_error() : NULL);
    group->inside--;
    tti_work_drop(work); /* the queue's reference */
}

/* Do so much of a work as waits for nobody: true if it has ended. Lock held, also on return, and released in
 * between. */
static bool advance_work(tti_runner *runner, tutti_work *work)
{
    tutti_group   *group = work->group;
    tutti_progress progress;
    tutti_status   st;
    const bool     was_begun = work->advanced;
    bool           ended;

    group->advancing = work->advanced = true; /* the backend may have its buffers from here on */
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
        work->advanced = was_begun || progress != TUTTI_PROGRESS_NONE;
        work->given = progress == TUTTI_PROGRESS_GIVEN;
    }
    if (group->finished != TUTTI_OK)
        tti_queue_want(group); /* whoever ended it has left to this thread what it was at */
    tti_runner_tell(runner); /* who waits may go on with what is left */
    group->inside--;
    return ended;
}

static bool can_advance(const tutti_group *group, const tutti_work *work)
{
    return group->finished == TUTTI_OK && !group->advancing && work->compound == NULL &&
           group->routes[work->call.device].ops->advance != NULL;
}

/* Works from the turn on, as far as they can; whether there were any. */
static bool advance_works(tutti_group *group)
{
    uint64_t    seq = group->turn;
    bool        any = false;
    tutti_work *work;

    for (;;) {
        work = find_number(group, seq);
        if (work == NULL || !can_advance(group, work) || (work->advanced && !work->given))
            return any;
        if (work->given && seq != group->turn) {
            seq++; /* it ends in its turn */
            continue;
        }
        any = true;
        if (advance_work(group->runner, work)) { /* it is gone */
            seq = group->turn;
            continue;
        }
        if (!work->given)
            return true;
        seq++;
    }
}

void tti_queue_advance(tutti_group *group)
{
    if (advance_works(group))
        tti_queue_rouse(group->runner); /* a worker that looked meanwhile found nothing */
}

void tti_queue_want(tutti_group *group)
{
    tutti_work *work;

    for (work = group->runner->first; work != NULL; work = work->next)
        if (work->group == group) {
            work->wanted = true;
            work->put_off = false;
        }
    tti_queue_rouse(group->runner);
}

bool tti_queue_help(tutti_group *group)
{
    tutti_work *work = find_ready(group);

    if (work == NULL)
        return false;
    tti_queue_run_work(group->runner, work, false);
    return true;
}

/* ---- soon ---- */

void tti_queue_touch(tti_runner *runner)
{
    runner->touched_ns = tti_port_now(runner->port);
}

/* Somebody comes to wait for a work that a worker is to run: was the program away for long? */
static void note_wait(tutti_group *group)
{
    const tti_runner *runner = group->runner;
    const bool        at_once = tti_port_now(runner->port) - runner->touched_ns < SOON_NS;

    if (group->soon_from == 0)
        group->soon_from = SOON;
    group->soon = at_once ? group->soon + (group->soon < group->soon_from) : 0;
}

bool tti_queue_take(tutti_work *work)
{
    tti_runner *runner = work->runner;
    const bool  given = work->given; /* then nobody is to be woken, and no clock needs to be read */

    if (!given)
        note_wait(work->group);
    if (find_ready(work->group) != work)
        return false;
    tti_queue_run_work(runner, work, false); /* the caller has a reference of his own */
    if (!given && runner->first != NULL) /* else the next one that is issued does */
        tti_queue_touch(runner);
    return true;
}

/* Whether to leave a new work to whoever will wait for it. */
static bool put_off(tutti_work *work)
{
    tti_runner *runner = work->runner;

    if (work->done || work->given || work->wanted || work->group->soon == 0 || work->group->soon < work->group->soon_from)
        return false;
    if (runner->n_idle == runner->n_watching)
        return false;
    runner->n_soon++;
    work->put_off = true;
    if (runner->n_napping == 0)
        tti_event_signal(runner->port, &runner->todo); /* to nap from now on */
    return true;
}

bool tti_queue_any_put_off(const tti_runner *runner)
{
    const tutti_work *work;

    for (work = runner->first; work != NULL; work = work->next)
        if (work->put_off)
            return true;
    return false;
}

/* Nobody has come for a work of group that was put off. */
static void doubt(tutti_group *group)
{
    if (group->soon > 0 && group->soon_from < SOON_MOST)
        group->soon_from *= 2;
    group->soon = 0;
}

void tti_queue_recall(tti_runner *runner, bool all)
{
    const bool  away = tti_port_now(runner->port) - runner->touched_ns >= SOON_NS;
    tutti_work *work;

    for (work = runner->first; work != NULL && (away || all); work = work->next) {
        const bool left = away && work->call.seq == work->group->turn; /* who is inside may be in a receive that needs it */

        if (work->put_off && left)
            doubt(work->group);
        work->put_off = work->put_off && !left && !all;
    }
}

/* ---- queueing ---- */

static const char *kind_name(const tutti_work *work)
{
    return work->compound != NULL ? work->compound->what : tti_call_kind_name(work->call.kind);
}

/* "all_reduce #12" */
static void describe(tutti_work *work)
{
    const char *end = work->what + sizeof work->what - 1;
    char       *at = tti_put(work->what, end, kind_name(work));

    *tti_put_number(tti_put(at, end, " #"), end, work->call.seq) = '\0';
}

/* Give work its number and its place. Lock held. */
static tutti_status admit(tutti_group *group, tutti_work *work)
{
    tti_runner  *runner = group->runner;
    const char  *name = kind_name(work);
    tutti_status st;

    if (group->finished != TUTTI_OK)
        return tti_queue_refuse(group);
    if (runner->n_workers == 0) {
        st = tti_worker_start(runner);
        if (st != TUTTI_OK)
            return st;
    }
    runner->n_pushed++;
    runner->has_compounds = runner->has_compounds || work->compound != NULL;
    tti_queue_hold(group);
    work->call.seq = work->seq = group->next_seq;
    group->next_seq += work->compound != NULL ? (uint64_t)work->compound->n_turns : 1;
    tti_work_retain(work);
    queue_append(runner, work);
    work->wanted = work->timed;
    describe(work);
    if (work->compound == NULL)
        tti_recorded_issue(group, &work->call);
    advance_works(group); /* what is not needed for that comes behind it: others wait for what it gives */
    tti_comm_name(group, work->call.device, name, work->name);
    if (!work->done && !work->given && work->call.seq != group->turn)
        tti_queue_want(group); /* what stands before it is to end */
    else if (!put_off(work))
        tti_queue_rouse(runner);
    if (!work->done && !work->given)
        tti_queue_touch(runner);
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

/* A new work, which is the caller's from here on, or gone. */
static tutti_status push(tutti_group *group, tutti_work *work, tutti_work **work_out)
{
    tti_runner  *runner = group->runner;
    tutti_status st;

    tti_lock(&runner->lock);
    st = admit(group, work);
    tti_unlock(&runner->lock);
    if (st == TUTTI_OK)
        *work_out = work;
    else
        tti_work_drop(work);
    return st;
}

tutti_status tti_queue_push(tutti_group *group, const tutti_call *call, int n_list,
                            tutti_work **work_out)
{
    tutti_work  *work = NULL;
    tutti_status st;

    st = tti_work_create(group, n_list + arrays_of(call), &work);
    if (st != TUTTI_OK)
        return st;
    keep_arrays(work, call, n_list);
    work->n_list = n_list;
    if (group->routes[call->device].compares)
        work->call.site = tti_site_now(); /* it runs elsewhere */
    if (tti_is_streamed(group, call->device))
        st = tti_streamed_issue(group, work);
    if (st != TUTTI_OK) {
        tti_work_drop(work);
        return st;
    }
    return push(group, work, work_out);
}

tutti_status tti_queue_push_compound(tutti_group *group, tti_compound *compound, tutti_span buf,
                                     tutti_work **work_out)
{
    tutti_work  *work = NULL;
    tutti_status st = tti_work_create(group, 0, &work);

    if (st != TUTTI_OK)
        return st;
    work->call = tti_call_of(TUTTI_CALL_ALL_REDUCE, buf.dtype, buf.count, buf.device);
    work->call.in = work->call.out = buf.data;
    work->n_list = 0;
    work->compound = compound;
    return push(group, work, work_out);
}

/* ---- closing ---- */

void tti_queue_abort_works(tutti_group *group, const char *happened)
{
    tti_runner *runner = group->runner;
    tutti_work *work = runner->first;
    tutti_work *next;
    char        words[TTI_GROUP_CAUSE_MAX * 3];

    group->gaps = true;
    for (; work != NULL; work = next) {
        next = work->next;
        if (work->group != group)
            continue;
        if (work->advanced)
            continue; /* the backend has its buffers: it is run, and fails */
        queue_remove(runner, work);
        if (work->compound != NULL)
            work->compound->release(work->compound);
        work->compound = NULL;
        snprintf(words, sizeof words, "%s on group '%s' was not begun: the group was %s", work->what, group->name,
                 happened);
        tti_work_finish(work, TUTTI_E_ABORTED, words);
        tti_work_drop(work);
    }
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * callback.c - what is called when a work has ended, and on which thread.
 *
 * Why     User code must not run under the lock, and not on a thread that others wait for: the
 *         worker has operations to run, and whoever waits wants to go on.
 * How     A thread of the world, the caller, started by the first tutti_work_then(). A callback
 *         hangs on its work; when the work ends (tti_work_finish) it moves to the runner's list of
 *         those that are ready, from which the caller takes one after the other.
 *         The end of a message is known to the backend alone, which tells the caller, who looks at
 *         all watched messages and completes those that have ended. A backend that cannot tell is
 *         asked every LOOK_NS while messages of it have callbacks.
 * True    The work is complete before its callbacks run. A callback holds a reference to its work
 *         until it has run. A work in the list of watched ones has callbacks that have not run: the
 *         caller takes it out before it takes the first of them.
 * End     A world that ends has ended all its works; then the caller runs what is left and stops. A
 *         callback that would end its own world would wait for itself: refused. */
#include "group/group.h"

#include <assert.h>
#include <stdlib.h>
#include <tutti/private.h>
#include "base/last.h"

static const int64_t LOOK_NS = TTI_MS;

struct tti_callback {
    tti_callback *next;
    tutti_work   *work; /* a reference */
    tutti_work_fn fn;
    void         *ctx;
};

/* Whose callbacks this thread runs: only its own thread can be asked whether it is inside one. */
static _Thread_local const tti_runner *calling;

bool tti_callbacks_inside(const tti_runner *runner)
{
    return calling == runner;
}

static void make_ready(tti_runner *runner, tti_callback *callback)
{
    callback->next = NULL;
    if (runner->ready_last != NULL)
        runner->ready_last->next = callback;
    else
        runner->ready = callback;
    runner->ready_last = callback;
}

void tti_callbacks_ready(tutti_work *work)
{
    tti_runner   *runner = work->runner;
    tti_callback *callback = work->callbacks;
    tti_callback *next;

    if (callback == NULL)
        return;
    for (; callback != NULL; callback = next) {
        next = callback->next;
        make_ready(runner, callback);
    }
    work->callbacks = NULL;
    tti_event_signal(runner->port, &runner->called);
}

/* ---- the caller ---- */

/* Complete watched messages that have ended, and forget those that are complete: whether the end of all
 * others will be told. Lock held. */
static bool look_at_watched(tti_runner *runner)
{
    tutti_work **at = &runner->watched;
    tutti_work  *work;
    bool         told = true;

    while ((work = *at) != NULL) {
        tti_work_look(work); /* its callbacks hold it */
        if (!work->done) {
            told = tti_work_hear(work) && told;
            at = &work->watch_next;
            continue;
        }
        *at = work->watch_next;
        work->watched = false;
    }
    return told;
}

/* Run the oldest that is ready: false if there is none. Lock held, and on return. */
static bool run_one(tti_runner *runner)
{
    tti_callback *callback = runner->ready;

    if (callback == NULL)
        return false;
    runner->ready = callback->next;
    if (runner->ready == NULL)
        runner->ready_last = NULL;
    tti_unlock(&runner->lock);
    callback->fn(callback->work, callback->ctx);
    tti_work_drop(callback->work);
    free(callback);
    tti_lock(&runner->lock);
    return true;
}

static void caller_main(void *arg)
{
    tti_runner *runner = arg;
    int64_t     until_ns;
    uint32_t    seen;
    bool        told;

    calling = runner;
    tti_lock(&runner->lock);
    for (;;) {
        seen = tti_event_now(&runner->called); /* before looking: a message may end meanwhile */
        told = look_at_watched(runner);
        if (run_one(runner))
            continue;
        if (runner->calls_end)
            break;
        until_ns = told ? TTI_FOREVER : tti_port_now(runner->port) + LOOK_NS;
        tti_unlock(&runner->lock);
        tti_event_wait(runner->port, &runner->called, seen, until_ns);
        tti_lock(&runner->lock);
    }
    tti_unlock(&runner->lock);
}

void tti_callbacks_stop(tti_runner *runner)
{
    tti_lock(&runner->lock);
    runner->calls_end = true;
    tti_event_signal(runner->port, &runner->called);
    tti_unlock(&runner->lock);
    if (runner->caller.running) {
        tti_thread_join(&runner->caller);
        tti_lending_ends();
    }
    assert(runner->ready == NULL && runner->watched == NULL);
}

/* ---- attaching ---- */

static void attach(tti_runner *runner, tti_callback *callback)
{
    tutti_work    *work = callback->work;
    tti_callback **at = &work->callbacks;

    tti_work_retain(work);
    if (work->done) {
        make_ready(runner, callback);
    } else {
        while (*at != NULL)
            at = &(*at)->next;
        *at = callback;
    }
    if (!work->done && work->ops == NULL && !work->recorded)
        tti_queue_want(work->group);
    if (!work->done && work->ops != NULL && !work->watched) {
        work->watched = true;
        work->watch_next = runner->watched;
        runner->watched = work;
    }
    tti_event_signal(runner->port, &runner->called);
}

/* Attach, if the world is still there. Lock held. */
static tutti_status admit(tti_runner *runner, tti_callback *callback)
{
    tutti_status st = TUTTI_OK;

    if (!runner->caller.running) {
        tti_lending_begins(); /* before there is such a thread, and until there is none */
        st = tti_thread_start(&runner->caller, "tutti-calls", caller_main, runner);
        if (st != TUTTI_OK)
            tti_lending_ends();
    }
    if (st == TUTTI_OK)
        attach(runner, callback);
    return st;
}

tutti_status tutti_work_then(tutti_work *work, tutti_work_fn fn, void *ctx)
{
    tti_runner   *runner;
    tti_callback *callback;
    tutti_status  st = TUTTI_OK;
    bool          is_over;

    if (work == NULL || fn == NULL)
        return tti_fail(TUTTI_E_ARG, "tutti_work_then: the %s is NULL",
                        work == NULL ? "work" : "function");
    if (work->is_nothing) {
        fn(work, ctx);
        return TUTTI_OK;
    }
    if (tti_work_is_inherited(work))
        return tti_fail_inherited("tutti_work_then", "work", work->what);
    callback = calloc(1, sizeof *callback);
    if (callback == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a callback on %s", work->what);
    *callback = (tti_callback){ .work = work, .fn = fn, .ctx = ctx };
    runner = work->runner;
    tti_lock(&runner->lock);
    is_over = runner->calls_end;
    if (!is_over)
        st = admit(runner, callback);
    tti_unlock(&runner->lock);
    if (is_over || st != TUTTI_OK)
        free(callback);
    if (is_over)
        fn(work, ctx); /* it has ended: works end before their world does */
    return st;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * workers.c - the threads of a world that run asynchronous collectives (progress.c).
 *
 * Why     A group that waits for a late member must not hold up another group; and threads that copy large buffers at
 *         the same time take cores from each other and from the program (docs/decisions/0010-progress.md).
 * How     There is a worker from the first asynchronous call on. It does a work to its end, and that may be long, on a
 *         late member. So beside one that is busy another one watches: if the first is still at the same work
 *         after GRACE_MS, it takes the next, and all that come after it. At most one work of a group runs, so there
 *         are never more workers busy than groups that have works. Those that have had nothing to do for a while
 *         end. While calls come that their callers will soon wait for (progress.c), one idle worker naps: it looks
 *         every NAP_MS whether one of them was left.
 * True    All is read and written under runner->lock. No work that needs a worker is left alone: whoever makes it so
 *         rouses one. A worker that sleeps, or was just started, may be meant for two works: so who takes one
 *         rouses another for the next before it begins. While a work is queued the last worker does not end; if no
 *         further one can be started, it does what is left when it comes to it. */
#include "group/queue.h"

#include <assert.h>
#include <stdlib.h>
#include <tutti/private.h>

enum { WORKERS_MAX = 64, IDLE_MS = 1000, GRACE_MS = 50, NAP_MS = 10 };

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
    runner->age = tti_fork_age();
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

    runner->n_listening++;
    tti_unlock(&runner->lock);
    tti_event_wait(runner->port, &runner->changed, seen, deadline_ns);
    tti_lock(&runner->lock);
    runner->n_listening--;
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
    if (tti_queue_oldest(runner) != NULL || tti_port_now(runner->port) < *until_ns)
        return true; /* who has counted on this one, asleep, did not start another */
    *until_ns = 0;
    return runner->n_workers == 1 && (runner->first != NULL || runner->n_pushed != *n_pushed);
}

/* Whether to nap: there are works put off, or there were calls since the last look that would be. Lock held. */
static bool should_nap(const tti_runner *runner, uint64_t *n_soon)
{
    const bool more = runner->n_soon != *n_soon;

    *n_soon = runner->n_soon;
    return runner->n_napping == 0 && (more || tti_queue_any_put_off(runner));
}

/* Who is woken from a nap is about to be busy: nothing is put off meanwhile. Lock held, also on return, and released in
 * between. */
static void nap(tti_runner *runner)
{
    const uint32_t seen = tti_event_now(&runner->todo);

    runner->n_napping++;
    await_work(runner, tti_port_now(runner->port) + NAP_MS * TTI_MS);
    runner->n_napping--;
    tti_queue_recall(runner, tti_event_now(&runner->todo) != seen);
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
    uint64_t    n_pushed = 0, n_soon = 0;
    tutti_work *work;

    tti_lock(&runner->lock);
    runner->n_idle--; /* it was counted when it was started */
    while (!runner->stop) {
        work = tti_queue_oldest(runner);
        if (work != NULL && runner->n_napping == 0)
            tti_queue_recall(runner, true); /* this one was perhaps woken to nap, and will not */
        if (work != NULL && is_due(runner)) {
            worker->busy_since_ns = tti_port_now(runner->port);
            tti_queue_run_work(runner, work, true);
            worker->busy_since_ns = 0;
            until_ns = 0;
        } else if (work != NULL) {
            runner->n_watching++;
            await_work(runner, due_ns(runner));
            runner->n_watching--;
        } else if (should_nap(runner, &n_soon)) {
            nap(runner);
            until_ns = 0;
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

tutti_status tti_worker_start(tti_runner *runner)
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
    if (runner->stop || tti_queue_oldest(runner) == NULL || (runner->n_watching > 0 && due_ns(runner) != 0))
        return;
    if (runner->n_idle > 0)
        tti_event_signal(runner->port, &runner->todo);
    else if (runner->n_workers < runner->workers_max)
        tti_worker_start(runner); /* else those that are there come to it */
}

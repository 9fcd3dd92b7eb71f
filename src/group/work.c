/* SPDX-License-Identifier: BSD-3-Clause
 *
 * work.c - one asynchronous operation: waiting for it, its words, its references.
 *
 * A work is held by its user and, until it is done, by the world's queue or its group's list of
 * messages. It keeps its own status and words, and a reference to the runner for the lock; once it
 * is done its group pointer is gone, so that a work may be asked after its group was destroyed.
 *
 * Time    A wait with a time-out of its own only waits. One with the operation's own returns when the operation has ended,
 *         and not before: whoever has it back frees what the operation worked on, whatever it came to. So a message that
 *         has not ended by then is ended, with its group, as a blocking one is; a collective ends by itself, for it and
 *         all that run ahead of it have a deadline each. */
#include "group/asked.h"
#include "group/hooks.h"
#include "group/streamed.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

static const tutti_work nothing = { .is_nothing = true, .done = true, .source = -1 };

tutti_work *tti_work_nothing(void)
{
    return (tutti_work *)(uintptr_t)&nothing; /* every function here looks at is_nothing first */
}

/* Many works that come together go together: an allocation for each would be most of what small messages cost. */
struct tti_work_block {
    _Alignas(max_align_t) _Atomic int refs; /* works in it that are left */
};

static void init(tutti_group *group, tutti_work *work)
{
    /* Not calloc(), which takes nothing that was just freed, nor a memset() that becomes one. */
    *work = (tutti_work){ .runner = group->runner, .group = group, .timeout_ms = group->timeout_ms,
                          .timed = group->timed, .source = -1, .rank = group->rank };
    atomic_init(&work->refs, 1);
    memcpy(work->group_name, group->name, sizeof work->group_name);
}

tutti_status tti_works_create(tutti_group *group, int n, tutti_work **works_out)
{
    tti_work_block *block = malloc(sizeof *block + (size_t)n * sizeof(tutti_work));
    char           *at = (char *)(block + 1);
    int             i;

    if (block == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for %d asynchronous operations on group '%s'", n, group->name);
    atomic_init(&block->refs, n);
    atomic_fetch_add_explicit(&group->runner->refs, (uint32_t)n, memory_order_relaxed);
    for (i = 0; i < n; i++, at += sizeof(tutti_work)) {
        works_out[i] = (tutti_work *)(void *)at;
        init(group, works_out[i]);
        works_out[i]->block = block;
    }
    return TUTTI_OK;
}

tutti_status tti_work_create(tutti_group *group, int n_list, tutti_work **work_out)
{
    tutti_work *work = malloc(sizeof *work + (size_t)n_list * sizeof work->list[0]);

    if (work == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for an asynchronous operation on group '%s'",
                        group->name);
    init(group, work);
    tti_runner_retain(group->runner);
    *work_out = work;
    return TUTTI_OK;
}

void tti_work_retain(tutti_work *work)
{
    atomic_fetch_add_explicit(&work->refs, 1, memory_order_relaxed);
}

void tti_work_drop(tutti_work *work)
{
    if (atomic_load_explicit(&work->refs, memory_order_acquire) != 1 && /* who has the last one need not take it off */
        atomic_fetch_sub_explicit(&work->refs, 1, memory_order_acq_rel) != 1)
        return;
    tti_streamed_drop(work->streamed);
    tti_runner_drop(work->runner);
    free(work->words);
    if (work->block == NULL)
        free(work);
    else if (atomic_fetch_sub_explicit(&work->block->refs, 1, memory_order_acq_rel) == 1)
        free(work->block);
}

void tti_works_finish(tutti_work *first, tutti_status status, const char *words)
{
    tutti_work *work = first;
    tutti_work *next;

    for (; work != NULL; work = next) {
        next = work->next;
        work->next = NULL;
        work->recorded = false;
        tti_work_finish(work, status, words);
        tti_work_drop(work);
    }
}

/* Work, which has ended, takes its followers along. Lock held. */
static void finish_followers(tutti_work *work, tutti_work *followers, tutti_status status, const char *words)
{
    tutti_work *f;

    for (f = followers; f != NULL; f = f->next)
        f->began_ns = work->began_ns;
    tti_works_finish(followers, status, words);
}

void tti_work_lead(tutti_work *work, tutti_work *followers)
{
    tutti_work *f;

    tti_lock(&work->runner->lock);
    for (f = followers; f != NULL; f = f->next) {
        f->recorded = false;
        f->seq = work->seq;
        f->streamed = tti_streamed_retain(work->streamed);
        memcpy(f->what, work->what, sizeof f->what);
    }
    if (work->done)
        finish_followers(work, followers, work->status, work->words != NULL ? work->words : "");
    else
        work->followers = followers;
    if (!work->done)
        tti_queue_want(work->group); /* somebody may have attached a callback to one of them */
    tti_unlock(&work->runner->lock);
}

void tti_work_finish(tutti_work *work, tutti_status status, const char *words)
{
    assert(!work->done);
    if (work->call.record != 0)
        tti_record_end_slowly(work->call.record, status);
    finish_followers(work, work->followers, status, words);
    work->followers = NULL;
    work->status = status;
    work->words = status != TUTTI_OK ? strdup(words) : NULL;
    work->group = NULL;
    if (work->timed)
        work->ended_ns = tti_port_now(work->runner->port);
    work->done = true;
    tti_callbacks_ready(work);
    tti_runner_tell(work->runner);
}

/* A message has ended, perhaps with the backend's locks held. The runner is there: this holds it. */
static void end_was_heard(void *ctx)
{
    tti_runner *runner = ctx;

    tti_event_signal(runner->port, &runner->changed);
    tti_event_signal(runner->port, &runner->called);
    tti_runner_drop(runner);
}

bool tti_work_hear(tutti_work *work)
{
    if (!work->done && work->ops == NULL && !work->recorded)
        tti_queue_want(work->group);
    if (work->streamed != NULL)
        return false; /* the device says nothing: it is asked */
    if (work->done || work->ops == NULL || work->heard || work->group->closing)
        return true; /* tti_work_finish() signals what the backend does not */
    if (work->ops->notify == NULL)
        return false;
    work->heard = true;
    work->ops->notify(work->request, end_was_heard, tti_runner_retain(work->runner));
    return true;
}

/* The outcome of a work that is done, worded again for the thread that asks. */
static tutti_status outcome(const tutti_work *work)
{
    if (work->status == TUTTI_OK)
        return TUTTI_OK;
    if (work->words == NULL)
        return tti_fail(work->status, "%s on group '%s' failed, without memory to say how",
                        work->what, work->group_name);
    return tti_fail(work->status, "%s", work->words);
}

static tutti_status not_issued(const tutti_work *work)
{
    return tti_fail(TUTTI_E_STATE,
                    "%s of group '%s' is recorded, not issued\n  next: tutti_coalescing_end()",
                    work->what, work->group_name);
}

tutti_status tti_work_check_issued(tutti_work *work)
{
    tutti_status st;

    tti_lock(&work->runner->lock);
    st = work->recorded ? not_issued(work) : TUTTI_OK;
    tti_unlock(&work->runner->lock);
    return st;
}

static tutti_status out_of_time(const tutti_work *work, int64_t began_ns)
{
    const int64_t waited_ms = (tti_port_now(work->runner->port) - began_ns) / TTI_MS;

    return tti_fail(TUTTI_E_TIMEOUT,
                    "%s on group '%s' is not complete after waiting %lld ms; it goes on\n"
                    "  next: wait again, or destroy the group",
                    work->what, work->group_name, (long long)waited_ms);
}

/* Whether a wait of timeout_ms is long enough to run operations itself. */
static bool may_help(int64_t timeout_ms, int64_t group_ms)
{
    return timeout_ms <= 0 || (group_ms > 0 && timeout_ms >= group_ms);
}

/* This thread is about to sleep until work has ended, which perhaps runs on a worker. Lock held. */
static void hasten(const tutti_work *work)
{
    const tti_route *route = &work->group->routes[work->call.device];

    if (route->ops->hasten != NULL)
        route->ops->hasten(route->backend, work->call.seq);
}

/* Until when to wait: with the operation's own time-out as long as it takes, for what runs has a deadline. */
static int64_t end_of_wait(const tutti_work *work, int64_t timeout_ms)
{
    return timeout_ms == 0 ? TTI_FOREVER : tti_deadline(work->runner->port, timeout_ms, work->timeout_ms);
}

/* Wait for a work that has not ended, and that this thread cannot just run. Lock held, also on return. */
static tutti_status await_collective(tutti_work *work, int64_t timeout_ms, bool help)
{
    tti_runner   *runner = work->runner;
    const int64_t began_ns = tti_port_now(runner->port);
    const int64_t deadline_ns = end_of_wait(work, timeout_ms);

    while (!work->done) {
        if (help && tti_queue_help(work->group))
            continue;
        if (tti_port_now(runner->port) >= deadline_ns)
            return out_of_time(work, began_ns);
        hasten(work);
        tti_runner_sleep(runner, deadline_ns);
    }
    tti_queue_touch(runner);
    return outcome(work);
}

static tutti_status wait_collective(tutti_work *work, int64_t timeout_ms)
{
    const bool   help = may_help(timeout_ms, work->timeout_ms);
    tutti_status st;

    tti_lock(&work->runner->lock);
    if (work->done || (!work->recorded && help && tti_queue_take(work))) {
        st = outcome(work);
    } else if (work->recorded) {
        st = not_issued(work);
    } else {
        if (!help)
            tti_queue_want(work->group);
        st = await_collective(work, timeout_ms, help);
    }
    tti_unlock(&work->runner->lock);
    return st;
}

/* A message that was given up has ended: late says how, where it has not ended well after all. */
static tutti_status word_late(tutti_status st, const char *late)
{
    return st == TUTTI_OK ? TUTTI_OK : tti_recorder_dump_failure(tti_fail(TUTTI_E_TIMEOUT, "%s", late));
}

/* One wait inside the backend, with the lock released meanwhile. The thread that leaves last takes
 * the outcome of a message that has ended. Whatever is returned, look at done first. late: NULL, or what is said of it,
 * for it was given up. */
static tutti_status wait_request(tutti_work *work, int64_t deadline_ns, const char *late)
{
    tti_runner  *runner = work->runner;
    bool         ended;
    tutti_status st;

    work->pins++;
    tti_unlock(&runner->lock);
    st = tti_asked_wait(work->ops, work->request, deadline_ns);
    ended = work->ops->test(work->request);
    if (ended && st == TUTTI_E_TIMEOUT)
        st = tti_asked_wait(work->ops, work->request, deadline_ns); /* it ended at the last moment */
    if (ended && late != NULL)
        st = word_late(st, late);
    if (ended && st != TUTTI_OK)
        st = tti_message_failed(work->group, work->what, st);
    if (ended && tti_group_finishes(st))
        tti_hooks_abort(work->group, work->what, st);
    tti_lock(&runner->lock);
    work->pins--;
    if (work->group->closing)
        tti_runner_tell(runner); /* the closing thread waits for pins */
    else if (ended && work->pins == 0)
        tti_message_settle(work, st, tutti_last_error());
    else if (work->watched)
        tti_event_signal(runner->port, &runner->called); /* it may have ended while this thread had it pinned */
    while (!work->done && (ended || work->group->closing))
        tti_runner_sleep(runner, TTI_FOREVER);
    return st;
}

/* The operation's own time is over: what it works on is given back, as a blocking call does. What this thread's last error
 * says is why it has not ended. Lock held, also on return, and released in between. */
static __attribute__((noinline)) tutti_status end_message(tutti_work *work, int64_t began_ns)
{
    const int64_t waited_ns = tti_port_now(work->runner->port) - began_ns;
    char          words[TTI_GROUP_WORDS_MAX];

    tti_message_give_up(work->group, work->what, waited_ns, words);
    return wait_request(work, TTI_FOREVER, words);
}

/* Lock held, also on return. */
static tutti_status await_message(tutti_work *work, int64_t timeout_ms)
{
    tti_runner   *runner = work->runner;
    const int64_t began_ns = tti_port_now(runner->port);
    const int64_t deadline_ns = tti_deadline(runner->port, timeout_ms, work->timeout_ms);
    tutti_status  st = TUTTI_OK;

    while (!work->done && (st == TUTTI_OK || st == TUTTI_E_TIMEOUT)) {
        const bool late = st == TUTTI_E_TIMEOUT && tti_port_now(runner->port) >= deadline_ns;

        if (work->group->closing)
            tti_runner_sleep(runner, TTI_FOREVER);
        else if (late && timeout_ms != 0)
            break;
        else if (late)
            st = end_message(work, began_ns);
        else
            st = wait_request(work, deadline_ns, NULL);
    }
    if (work->done)
        st = outcome(work);
    else if (st == TUTTI_E_TIMEOUT)
        st = out_of_time(work, began_ns);
    return st;
}

static tutti_status wait_message(tutti_work *work, int64_t timeout_ms)
{
    tti_runner  *runner = work->runner;
    tutti_status st;

    tti_lock(&runner->lock);
    tti_work_look(work); /* of several that were begun most have ended by now */
    st = work->done ? outcome(work) : await_message(work, timeout_ms);
    tti_unlock(&runner->lock);
    return st;
}

/* The device was told of a collective that goes by streams, by now_ns; what is left of the time is for its end there. */
static tutti_status wait_on_device(const tutti_work *work, int64_t timeout_ms, int64_t began_ns)
{
    int64_t      left_ms = timeout_ms;
    tutti_status st;

    if (timeout_ms > 0) {
        left_ms = timeout_ms - (tti_port_now(work->runner->port) - began_ns) / TTI_MS;
        left_ms = left_ms > 1 ? left_ms : 1;
    }
    st = tti_streamed_wait(work->streamed, left_ms);
    return st == TUTTI_E_TIMEOUT && !tti_streamed_ended(work->streamed) ? out_of_time(work, began_ns) : st;
}

/* A work has its ticket when it is done, if it ever has one: wait_collective() has seen that under the lock. */
static tutti_status wait_for_collective(tutti_work *work, int64_t timeout_ms)
{
    const int64_t began_ns = timeout_ms > 0 ? tti_port_now(work->runner->port) : 0;
    tutti_status  st = wait_collective(work, timeout_ms);

    return st == TUTTI_OK && work->streamed != NULL ? wait_on_device(work, timeout_ms, began_ns) : st;
}

tutti_status tutti_work_wait_for(tutti_work *work, int64_t timeout_ms)
{
    if (work == NULL)
        return tti_fail(TUTTI_E_ARG, "tutti_work_wait: the work is NULL");
    if (timeout_ms < TUTTI_INFINITE)
        return tti_fail(TUTTI_E_ARG,
                        "tutti_work_wait_for: timeout_ms is %lld\n"
                        "  next: 0 for the group's, -1 for none",
                        (long long)timeout_ms);
    if (work->is_nothing)
        return TUTTI_OK;
    if (tti_work_is_inherited(work))
        return tti_fail_inherited("tutti_work_wait", "work", work->what);
    if (work->ops != NULL)
        return wait_message(work, timeout_ms);
    return wait_for_collective(work, timeout_ms);
}

tutti_status tutti_work_wait(tutti_work *work)
{
    return tutti_work_wait_for(work, 0);
}

void tti_work_look(tutti_work *work)
{
    if (work->done || work->ops == NULL || work->group->closing || work->pins > 0)
        return;
    if (work->ops->test(work->request)) /* then wait only tells the outcome */
        tti_message_settle(work, tti_asked_wait(work->ops, work->request, 0), tutti_last_error());
}

/* Complete a work that has ended, or that only has to be looked at to end; one that is wanted is a worker's. Lock held,
 * also on return, and released in between. */
static void look(tutti_work *work)
{
    if (work->ops != NULL)
        tti_work_look(work);
    else if (!work->done && !work->recorded && work->put_off)
        tti_queue_want(work->group); /* this thread asks, and does not wait */
    else if (!work->done && !work->recorded && !work->wanted)
        tti_queue_advance(work->group);
}

/* Whether the device was told of it, and knows more of its end than the work. Lock held. */
static bool is_on_device(const tutti_work *work)
{
    return work->done && work->status == TUTTI_OK && work->streamed != NULL;
}

/* Whether a message has ended that somebody else is about to settle. Lock held. */
static bool has_ended(tutti_work *work)
{
    return work->ops != NULL && !work->group->closing && work->ops->test(work->request);
}

tutti_status tutti_work_status(tutti_work *work)
{
    tutti_status st;

    if (work == NULL)
        return tti_fail(TUTTI_E_ARG, "tutti_work_status: the work is NULL");
    if (work->is_nothing)
        return TUTTI_OK;
    if (tti_work_is_inherited(work))
        return tti_fail_inherited("tutti_work_status", "work", work->what);
    tti_lock(&work->runner->lock);
    look(work);
    if (is_on_device(work) && tti_streamed_ended(work->streamed))
        st = tti_streamed_outcome(work->streamed);
    else if (work->done && !is_on_device(work))
        st = outcome(work);
    else if (has_ended(work))
        st = tti_asked_wait(work->ops, work->request, 0);
    else
        st = tti_fail(TUTTI_E_STATE,
                      "%s on group '%s' has not ended\n"
                      "  next: tutti_work_wait()",
                      work->what, work->group_name);
    tti_unlock(&work->runner->lock);
    return st;
}

bool tutti_work_is_completed(tutti_work *work)
{
    bool done;

    if (work == NULL || work->is_nothing || tti_work_is_inherited(work))
        return true; /* in a child of fork() nothing more comes of it; tutti_work_status() says so */
    tti_lock(&work->runner->lock);
    if (work->ops == NULL)
        look(work);
    done = is_on_device(work) ? tti_streamed_ended(work->streamed)
                              : work->done || has_ended(work); /* never blocks */
    tti_unlock(&work->runner->lock);
    return done;
}

int tutti_work_source_rank(const tutti_work *work)
{
    int source;

    if (work == NULL || work->is_nothing || tti_work_is_inherited(work))
        return -1;
    tti_lock(&work->runner->lock);
    source = work->source;
    if (!work->done && work->ops != NULL && !work->group->closing && work->ops->test(work->request))
        source = tti_message_source(work);
    tti_unlock(&work->runner->lock);
    return source;
}

void tutti_work_free(tutti_work *work)
{
    if (work != NULL && !work->is_nothing && !tti_work_is_inherited(work))
        tti_work_drop(work);
}

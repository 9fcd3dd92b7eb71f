/* SPDX-License-Identifier: BSD-3-Clause
 *
 * future.c - one value that comes later: completing it, waiting for it, functions attached to it.
 *
 * How     The lock guards the list of functions and the step from not complete to complete. Whoever completes
 *         writes status, words and value, takes the list, sets done (release), lets go of the lock, and runs
 *         the list. Whoever reads done (acquire) as true may read the rest without the lock: nothing of it
 *         changes any more.
 * True    Each function runs once, outside of the lock, with a reference that its call holds. Functions are
 *         not run inside each other: a thread has a list of those that are due, and only the outermost run
 *         takes from it (or a wait inside of a function, which would else wait for what is behind itself).
 * Ends    Attached functions hold no reference while they are not due, so that a future whose last holder
 *         leaves can tell them. */
#include "future/future.h"

#include <stdlib.h>
#include <string.h>
#include "base/env.h"
#include "base/fork.h"
#include "base/thread.h"
#include <tutti/private.h>

struct tti_future_call {
    tti_future_call     *next;
    tutti_future        *future; /* a reference, once due */
    tutti_future_done_fn fn;
    void                *ctx;
};

struct tutti_future {
    _Atomic uint32_t refs;
    uint32_t         age; /* of the process that made it (base/fork.h) */
    tti_port        *port;
    tti_mutex        lock;
    tti_event        changed;
    _Atomic bool     done;

    /* Guarded by lock until done, constant after. */
    tutti_status        status;
    char               *words; /* NULL: none were given, or no memory for them */
    void               *value;
    tutti_value_free_fn free_fn;

    tti_future_call *calls; /* guarded by lock; oldest first */
};

/* What this thread has to run, oldest first: only its own thread reads and writes it. */
static _Thread_local struct due {
    tti_future_call *first;
    tti_future_call *last;
    bool             running;
} due;

/* ---- running ---- */

static void make_due(tutti_future *future, tti_future_call *call)
{
    call->future = tutti_future_retain(future);
    call->next = NULL;
    if (due.first != NULL)
        due.last->next = call;
    else
        due.first = call;
    due.last = call;
}

static bool run_one(void)
{
    tti_future_call *call = due.first;

    if (call == NULL)
        return false;
    due.first = call->next;
    call->fn(call->future, call->ctx);
    tutti_future_free(call->future);
    free(call);
    return true;
}

static void run_due(void)
{
    if (due.running)
        return;
    due.running = true;
    while (run_one())
        ;
    due.running = false;
}

/* ---- completing ---- */

tutti_status tti_future_check_own(const tutti_future *future, const char *what)
{
    return tti_is_inherited(future->age) ? tti_fail_inherited(what, "a future", "") : TUTTI_OK;
}

static tutti_status complete(tutti_future *future, tutti_status status, const char *words, void *value,
                             tutti_value_free_fn free_fn)
{
    tti_future_call *call;
    tti_future_call *next;
    tutti_status     st = tti_future_check_own(future, "completing a future");

    if (st != TUTTI_OK)
        return st;
    tti_lock(&future->lock);
    if (atomic_load_explicit(&future->done, memory_order_relaxed)) {
        tti_unlock(&future->lock);
        return tti_fail(TUTTI_E_STATE, "the future is complete already");
    }
    future->status = status;
    future->words = words != NULL ? strdup(words) : NULL;
    future->value = value;
    future->free_fn = free_fn;
    call = future->calls;
    future->calls = NULL;
    atomic_store_explicit(&future->done, true, memory_order_release);
    tti_unlock(&future->lock);
    tti_event_signal(future->port, &future->changed);
    for (; call != NULL; call = next) {
        next = call->next;
        make_due(future, call);
    }
    run_due();
    return TUTTI_OK;
}

tutti_status tutti_future_set_result(tutti_future *future, void *value, tutti_value_free_fn free_fn)
{
    if (future == NULL)
        return tti_fail(TUTTI_E_ARG, "future_set_result: the future is NULL");
    return complete(future, TUTTI_OK, NULL, value, free_fn);
}

tutti_status tutti_future_set_error(tutti_future *future, tutti_status status, const char *words)
{
    if (future == NULL || status == TUTTI_OK)
        return tti_fail(TUTTI_E_ARG, "future_set_error: the %s",
                        future == NULL ? "future is NULL" : "status is TUTTI_OK");
    return complete(future, status, words, NULL, NULL);
}

/* ---- references ---- */

tutti_status tti_future_create_on(tti_port *port, tutti_future **future_out)
{
    tutti_future *future = calloc(1, sizeof *future);

    if (future == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a future");
    tti_fork_watch();
    future->age = tti_fork_age();
    atomic_init(&future->refs, 1);
    tti_mutex_init(&future->lock);
    future->port = port;
    *future_out = future;
    return TUTTI_OK;
}

tutti_status tutti_future_create(tutti_future **future_out)
{
    if (future_out == NULL)
        return tti_fail(TUTTI_E_ARG, "future_create: future_out is NULL");
    return tti_future_create_on(tti_port_system(), future_out);
}

tutti_future *tutti_future_retain(tutti_future *future)
{
    if (future != NULL)
        atomic_fetch_add_explicit(&future->refs, 1, memory_order_relaxed);
    return future;
}

static void destroy(tutti_future *future)
{
    if (future->free_fn != NULL)
        future->free_fn(future->value);
    tti_mutex_release(&future->lock);
    free(future->words);
    free(future);
}

void tutti_future_free(tutti_future *future)
{
    if (future == NULL || tti_is_inherited(future->age) ||
        atomic_fetch_sub_explicit(&future->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (future->calls == NULL) { /* nobody else has it: no lock is needed */
        destroy(future);
        return;
    }
    /* Functions wait for it: they hear that nothing comes, with references of their own. */
    atomic_store_explicit(&future->refs, 1, memory_order_relaxed);
    complete(future, TUTTI_E_ABORTED, "the future was dropped before it was complete", NULL, NULL);
    tutti_future_free(future);
}

/* ---- waiting and reading ---- */

bool tutti_future_is_done(const tutti_future *future)
{
    return future != NULL && atomic_load_explicit(&future->done, memory_order_acquire);
}

tutti_status tti_future_outcome(const tutti_future *future)
{
    if (future->status == TUTTI_OK)
        return TUTTI_OK;
    if (future->words == NULL)
        return tti_fail(future->status, "the future was completed with %s", tutti_status_name(future->status));
    return tti_fail(future->status, "%s", future->words);
}

bool tti_future_await(tutti_future *future, int64_t deadline_ns)
{
    uint32_t seen;

    for (;;) {
        seen = tti_event_now(&future->changed);
        if (tutti_future_is_done(future))
            return true;
        if (run_one())
            continue; /* inside of a function: what is due may be what is waited for */
        if (tti_port_now(future->port) >= deadline_ns)
            return false;
        tti_event_wait(future->port, &future->changed, seen, deadline_ns);
    }
}

tutti_status tti_future_deadline(tutti_future *future, int64_t timeout_ms, int64_t *deadline_ns_out)
{
    int64_t      default_ms = 0;
    tutti_status st = tti_future_check_own(future, "waiting for a future");

    if (st != TUTTI_OK)
        return st;
    if (timeout_ms < TUTTI_INFINITE)
        return tti_fail(TUTTI_E_ARG, "waiting for a future: timeout_ms is %lld\n  next: 0 for the default, -1 for none",
                        (long long)timeout_ms);
    if (timeout_ms == 0)
        st = tti_env_timeout(&default_ms);
    if (st == TUTTI_OK)
        *deadline_ns_out = tti_deadline(future->port, timeout_ms, default_ms);
    return st;
}

tutti_status tutti_future_wait(tutti_future *future, int64_t timeout_ms)
{
    int64_t      began_ns, deadline_ns = 0;
    tutti_status st;

    if (future == NULL)
        return tti_fail(TUTTI_E_ARG, "future_wait: the future is NULL");
    st = tti_future_deadline(future, timeout_ms, &deadline_ns);
    if (st != TUTTI_OK)
        return st;
    began_ns = tti_port_now(future->port);
    if (tti_future_await(future, deadline_ns))
        return tti_future_outcome(future);
    return tti_fail(TUTTI_E_TIMEOUT, "the future is not complete after waiting %lld ms\n  next: wait again",
                    (long long)((tti_port_now(future->port) - began_ns) / TTI_MS));
}

tutti_status tutti_future_value(tutti_future *future, void **value_out)
{
    tutti_status st;

    if (future == NULL || value_out == NULL)
        return tti_fail(TUTTI_E_ARG, "future_value: the %s is NULL", future == NULL ? "future" : "output");
    if (!tutti_future_is_done(future))
        return tti_fail(TUTTI_E_STATE, "the future is not complete\n  next: tutti_future_wait()");
    st = tti_future_outcome(future);
    if (st == TUTTI_OK)
        *value_out = future->value;
    return st;
}

/* ---- attaching ---- */

tutti_status tti_future_call_create(tutti_future_done_fn fn, void *ctx, tti_future_call **call_out)
{
    tti_future_call *call = calloc(1, sizeof *call);

    if (call == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a function on a future");
    call->fn = fn;
    call->ctx = ctx;
    *call_out = call;
    return TUTTI_OK;
}

void tti_future_call_free(tti_future_call *call)
{
    free(call);
}

void tti_future_attach(tutti_future *future, tti_future_call *call)
{
    tti_future_call **at = &future->calls;
    bool              done;

    tti_lock(&future->lock);
    done = atomic_load_explicit(&future->done, memory_order_relaxed);
    if (!done) {
        while (*at != NULL)
            at = &(*at)->next;
        *at = call;
    }
    tti_unlock(&future->lock);
    if (done) {
        make_due(future, call);
        run_due();
    }
}

tutti_status tutti_future_add_done_callback(tutti_future *future, tutti_future_done_fn fn, void *ctx)
{
    tti_future_call *call = NULL;
    tutti_status     st;

    if (future == NULL || fn == NULL)
        return tti_fail(TUTTI_E_ARG, "future_add_done_callback: the %s is NULL",
                        future == NULL ? "future" : "function");
    st = tti_future_check_own(future, "future_add_done_callback");
    if (st == TUTTI_OK)
        st = tti_future_call_create(fn, ctx, &call);
    if (st == TUTTI_OK)
        tti_future_attach(future, call);
    return st;
}

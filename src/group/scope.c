/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scope.c - calls that are recorded and then done as one.
 *
 * How     A scope is a bundle (bundle.h) that belongs to one thread, and the works of asynchronous calls
 *         in it. When it ends the bundle is issued; its works follow the operation's: they are complete
 *         when it is, with its status and words.
 * True    A group's scope is read and written only by the thread whose number stands in scope_owner,
 *         which it puts there and takes away itself; other threads compare the number with their own
 *         and go on. Only a group that is being destroyed, and used by nobody, loses its scope to
 *         another thread.
 *         A work is `recorded` from its making until its scope ends, guarded by the runner's lock.
 * Fails   What cannot go into the bundle is kept, words included, and returned by the end of the scope:
 *         nothing of it has run then. */
#include "group/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <tutti/coalesce.h>
#include <tutti/private.h>
#include "group/bundle.h"
#include "group/hooks.h"
#include "watch/control.h"

struct tti_scope {
    tti_bundle   bundle;
    int          n_calls;
    tutti_status failed; /* of the first call that could not be taken */
    char         words[TTI_GROUP_WORDS_MAX];
    tutti_work  *works; /* of asynchronous calls; each is a reference */
};

uintptr_t tti_this_thread(void)
{
    static _Thread_local char here;

    return (uintptr_t)&here;
}

/* ---- begin ---- */

static tutti_status open_scope(tutti_group *group)
{
    uintptr_t  owner = 0;
    tti_scope *scope = calloc(1, sizeof *scope);

    if (scope == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a coalescing scope");
    tti_bundle_init(&scope->bundle, group);
    if (!atomic_compare_exchange_strong(&group->scope_owner, &owner, tti_this_thread())) {
        free(scope);
        return tti_fail(TUTTI_E_STATE,
                        "coalescing_begin on group '%s': a scope is open already, %s\n"
                        "  next: tutti_coalescing_end() first",
                        group->name,
                        owner == tti_this_thread() ? "on this thread" : "on another thread");
    }
    group->scope = scope;
    return TUTTI_OK;
}

tutti_status tutti_coalescing_begin(tutti_group *group)
{
    tutti_group *g = NULL;
    tutti_status st = tti_group_resolve(group, "coalescing_begin", &g);

    return st == TUTTI_OK && g != NULL ? open_scope(g) : st;
}

/* ---- record ---- */

static tutti_status make_work(tutti_group *group, const tutti_call *call, tutti_work **work_out)
{
    tutti_work  *work = NULL;
    tutti_status st = tti_work_create(group, 0, &work);

    if (st != TUTTI_OK)
        return st;
    snprintf(work->what, sizeof work->what, "%s in a coalescing scope",
             tti_call_kind_name(call->kind));
    tti_comm_name(group, call->device, tti_call_kind_name(call->kind), work->name);
    work->recorded = true;
    work->call.device = call->device; /* whose backend is asked to hurry */
    work->next = group->scope->works;
    group->scope->works = work;
    tti_work_retain(work); /* the scope's */
    *work_out = work;
    return TUTTI_OK;
}

tutti_status tti_scope_record(tutti_group *group, const tutti_call *call, int n_list, const tti_how *h)
{
    tti_scope   *scope = group->scope;
    char         name[TTI_GROUP_CAUSE_MAX];
    tutti_status st = h->async ? make_work(group, call, h->work_out) : TUTTI_OK;

    if (st != TUTTI_OK)
        return st; /* told at once, so nothing is recorded */
    snprintf(name, sizeof name, "%s, call %d of a coalescing scope", tti_call_kind_name(call->kind),
             scope->n_calls++);
    if (scope->failed == TUTTI_OK)
        st = tti_bundle_add(&scope->bundle, name, call, n_list);
    if (st != TUTTI_OK) {
        scope->failed = st;
        snprintf(scope->words, sizeof scope->words, "%s", tutti_last_error());
    }
    return TUTTI_OK;
}

/* ---- end ---- */

static tti_scope *take_scope(tutti_group *group)
{
    tti_scope *scope = group->scope;

    group->scope = NULL;
    atomic_store(&group->scope_owner, 0);
    return scope;
}

static void free_scope(tti_scope *scope)
{
    tti_bundle_release(&scope->bundle);
    free(scope);
}

/* The works of a scope have come to this, in this thread's words; they began, if at all, at began_ns. */
static void finish_works(tti_scope *scope, tti_runner *runner, tutti_status st, int64_t began_ns)
{
    tutti_work *w;

    tti_lock(&runner->lock);
    for (w = scope->works; w != NULL; w = w->next) {
        w->began_ns = began_ns;
        w->seq = scope->bundle.like.seq;
    }
    tti_works_finish(scope->works, st, tutti_last_error());
    tti_unlock(&runner->lock);
}

static tutti_status run_scope(tti_scope *scope, tutti_group *group, tutti_work **work_out)
{
    tti_runner  *runner = group->runner;
    tutti_work  *work = NULL;
    tutti_status st = scope->failed;
    int64_t      began_ns = 0;

    if (st != TUTTI_OK) {
        st = tti_fail(st, "%s", scope->words);
    } else if (scope->n_calls == 0) {
        work = tti_work_nothing();
    } else if (work_out == NULL) {
        began_ns = group->timed && scope->works != NULL ? tti_port_now(runner->port) : 0;
        st = tti_bundle_issue(&scope->bundle, tti_blocking());
    } else {
        st = tti_bundle_issue(&scope->bundle, tti_async(&work));
        if (st == TUTTI_OK)
            tti_work_lead(work, scope->works);
    }
    if (work == NULL)
        finish_works(scope, runner, st, began_ns);
    if (st == TUTTI_OK && work_out != NULL)
        *work_out = work;
    return st;
}

tutti_status tutti_coalescing_end(tutti_group *group, tutti_work **work_out)
{
    tutti_group *g = NULL;
    tutti_status st = tti_group_resolve(group, "coalescing_end", &g);
    tti_scope   *scope;

    if (st == TUTTI_OK && g == NULL && work_out != NULL)
        *work_out = tti_work_nothing();
    if (st != TUTTI_OK || g == NULL)
        return st;
    if (!tti_scope_is_mine(g))
        return tti_fail(TUTTI_E_STATE,
                        "coalescing_end on group '%s': this thread has no scope open on it\n"
                        "  next: tutti_coalescing_begin(), on the same thread",
                        g->name);
    scope = take_scope(g);
    st = run_scope(scope, g, work_out);
    free_scope(scope);
    return st;
}

void tti_scope_abandon(tutti_group *group)
{
    tti_scope *scope;

    if (group->scope == NULL)
        return;
    scope = take_scope(group);
    tti_fail(TUTTI_E_ABORTED, "a coalescing scope of group '%s' was not ended: the group was destroyed",
             group->name);
    finish_works(scope, group->runner, TUTTI_E_ABORTED, 0);
    free_scope(scope);
}

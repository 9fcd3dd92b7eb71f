/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hooks.c - the table of a group's hooks: registering, calling, removing.
 *
 * How     A list per group, made by the first registration. Whoever calls hooks walks the list under its
 *         lock, which is let go around each call; a hook that is being called is counted busy, so that it
 *         stays in the list, and with it the way to the next one.
 * True    A removed hook is called no more. It leaves the list when its last caller has come back; whoever
 *         removed it waits for that, unless it is itself inside a hook, of whatever group: two hooks that
 *         remove each other, or themselves, would wait for ever.
 *         The list is guarded by hooks->lock, group->hooks by the runner's. group->hooked is a hint,
 *         written under the latter and read without: it never becomes false again.
 *         A thread that is inside a hook observes nothing: hooks may use the group. */
#include "group/hooks.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <tutti/private.h>
#include "base/last.h"

typedef struct hook {
    struct hook    *next;
    int             id;
    tutti_hook_kind kind;
    tutti_hook_fn   fn;
    void           *ctx;
    int             busy; /* threads inside fn */
    bool            removed;
} hook;

struct tti_hooks {
    _Atomic uint32_t refs;
    tti_runner      *runner; /* for its port */
    tti_mutex        lock;
    tti_event        changed; /* a removed hook has left the list */
    hook            *first;   /* guarded by lock, as the rest */
    int              last_id;
};

/* How many hooks this thread is inside of: a fact about the thread, which only it asks for. */
static _Thread_local int depth;

bool tti_hooks_inside(void)
{
    return depth > 0;
}

/* ---- the table ---- */

static tti_hooks *hooks_create(tti_runner *runner)
{
    tti_hooks *hooks = calloc(1, sizeof *hooks);

    if (hooks == NULL)
        return NULL;
    atomic_init(&hooks->refs, 1);
    hooks->runner = tti_runner_retain(runner);
    tti_mutex_init(&hooks->lock);
    tti_lending_begins(); /* whatever thread finds what they are for calls them */
    return hooks;
}

tti_hooks *tti_hooks_retain(tti_hooks *hooks)
{
    atomic_fetch_add_explicit(&hooks->refs, 1, memory_order_relaxed);
    return hooks;
}

void tti_hooks_drop(tti_hooks *hooks)
{
    hook *next;

    if (hooks == NULL || atomic_fetch_sub_explicit(&hooks->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (; hooks->first != NULL; hooks->first = next) {
        next = hooks->first->next;
        free(hooks->first);
    }
    tti_mutex_release(&hooks->lock);
    tti_runner_drop(hooks->runner);
    free(hooks);
    tti_lending_ends();
}

tti_hooks *tti_hooks_of(tutti_group *group)
{
    tti_hooks *hooks;

    tti_lock(&group->runner->lock);
    hooks = group->hooks != NULL ? tti_hooks_retain(group->hooks) : NULL;
    tti_unlock(&group->runner->lock);
    return hooks;
}

/* The group's table, made if there is none; with a reference. */
static tti_hooks *hooks_need(tutti_group *group)
{
    tti_hooks *fresh = hooks_create(group->runner);
    tti_hooks *hooks;

    tti_lock(&group->runner->lock);
    if (group->hooks == NULL) {
        group->hooks = fresh;
        fresh = NULL;
    }
    hooks = group->hooks != NULL ? tti_hooks_retain(group->hooks) : NULL;
    tti_unlock(&group->runner->lock);
    tti_hooks_drop(fresh);
    return hooks;
}

/* ---- registering ---- */

static void append(tti_hooks *hooks, hook *h)
{
    hook **at = &hooks->first;

    tti_lock(&hooks->lock);
    h->id = ++hooks->last_id;
    while (*at != NULL)
        at = &(*at)->next;
    *at = h;
    tti_unlock(&hooks->lock);
}

tutti_status tti_hook_add(tutti_group *group, tutti_hook_kind kind, tutti_hook_fn fn, void *ctx, int *id_out)
{
    tti_hooks *hooks = hooks_need(group);
    hook      *h = calloc(1, sizeof *h);

    if (hooks == NULL || h == NULL) {
        tti_hooks_drop(hooks);
        free(h);
        return tti_fail(TUTTI_E_NOMEM, "no memory for a hook on group '%s'", group->name);
    }
    *h = (hook){ .kind = kind, .fn = fn, .ctx = ctx };
    append(hooks, h);
    if (id_out != NULL)
        *id_out = h->id;
    atomic_store_explicit(&group->hooked, true, memory_order_relaxed);
    tti_hooks_drop(hooks);
    return TUTTI_OK;
}

tutti_status tutti_register_hook(tutti_group *group, tutti_hook_kind kind, tutti_hook_fn fn, void *ctx,
                                 int *id_out)
{
    tutti_group *g = NULL;
    tutti_status st;

    if ((int)kind < 0 || kind >= TUTTI_HOOK_KIND_COUNT || fn == NULL || id_out == NULL)
        return tti_fail(TUTTI_E_ARG, "tutti_register_hook: %s",
                        fn == NULL       ? "fn is NULL"
                        : id_out == NULL ? "id_out is NULL"
                                         : "there is no such kind of hook");
    st = tti_group_resolve(group, "tutti_register_hook", &g);
    if (st == TUTTI_OK && g != NULL)
        st = tti_hook_add(g, kind, fn, ctx, id_out);
    else if (st == TUTTI_OK)
        *id_out = 0;
    return st;
}

/* ---- removing ---- */

static hook **find(tti_hooks *hooks, int id)
{
    hook **at = &hooks->first;

    while (*at != NULL && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

/* Take a removed hook that nobody is inside of out of the list. Lock held. */
static void leave_list(tti_hooks *hooks, hook *h)
{
    hook **at = find(hooks, h->id);

    assert(*at == h && h->removed && h->busy == 0);
    *at = h->next;
    free(h);
    tti_event_signal(hooks->runner->port, &hooks->changed);
}

/* Sleep until the hook with that id is gone. Lock held. */
static void await_gone(tti_hooks *hooks, int id)
{
    uint32_t seen;

    while (*find(hooks, id) != NULL) {
        seen = tti_event_now(&hooks->changed);
        tti_unlock(&hooks->lock);
        tti_event_wait(hooks->runner->port, &hooks->changed, seen, TTI_FOREVER);
        tti_lock(&hooks->lock);
    }
}

static bool remove_hook(tti_hooks *hooks, int id)
{
    hook *h;
    bool  found;

    tti_lock(&hooks->lock);
    h = *find(hooks, id);
    found = h != NULL && !h->removed;
    if (found) {
        h->removed = true;
        if (h->busy == 0)
            leave_list(hooks, h);
        else if (!tti_hooks_inside())
            await_gone(hooks, id);
    }
    tti_unlock(&hooks->lock);
    return found;
}

tutti_status tutti_remove_hook(tutti_group *group, int id)
{
    tutti_group *g = NULL;
    tti_hooks   *hooks;
    tutti_status st = tti_group_resolve(group, "tutti_remove_hook", &g);
    bool         found;

    if (st != TUTTI_OK || g == NULL)
        return st;
    hooks = tti_hooks_of(g);
    found = hooks != NULL && remove_hook(hooks, id);
    tti_hooks_drop(hooks);
    return found ? TUTTI_OK
                 : tti_fail(TUTTI_E_ARG, "tutti_remove_hook: group '%s' has no hook %d", g->name, id);
}

/* ---- calling ---- */

/* Call h with the lock let go. Returns the next one. */
static hook *call_one(tti_hooks *hooks, hook *h, const tutti_op_event *event)
{
    hook *next;

    h->busy++;
    tti_unlock(&hooks->lock);
    depth++;
    h->fn(event, h->ctx);
    depth--;
    tti_lock(&hooks->lock);
    h->busy--;
    next = h->next;
    if (h->removed && h->busy == 0)
        leave_list(hooks, h);
    return next;
}

void tti_hooks_call(tti_hooks *hooks, const tutti_op_event *event)
{
    hook *h;

    tti_lock(&hooks->lock);
    for (h = hooks->first; h != NULL;)
        h = h->kind == event->hook && !h->removed ? call_one(hooks, h, event) : h->next;
    tti_unlock(&hooks->lock);
}

bool tti_hooks_have(tti_hooks *hooks, tutti_hook_kind kind)
{
    const hook *h;
    bool        found = false;

    tti_lock(&hooks->lock);
    for (h = hooks->first; h != NULL; h = h->next)
        found = found || (h->kind == kind && !h->removed);
    tti_unlock(&hooks->lock);
    return found;
}

void tti_hooks_abort(tutti_group *group, const char *what, tutti_status st)
{
    char           words[TTI_GROUP_WORDS_MAX];
    char           name[TUTTI_COMM_NAME_MAX];
    tti_hooks     *hooks;
    tutti_op_event event = { .size = sizeof event, .hook = TUTTI_HOOK_ABORT, .op = what, .name = name,
                             .group_name = group->name, .peer = -1, .status = st, .duration_ns = -1 };

    if (!tti_hooks_any(group) || tti_hooks_inside())
        return;
    snprintf(words, sizeof words, "%s", tutti_last_error());
    tti_comm_name(group, tti_control_device(group), "abort", name);
    hooks = tti_hooks_of(group);
    if (hooks != NULL)
        tti_hooks_call(hooks, &event);
    tti_hooks_drop(hooks);
    if (words[0] != '\0')
        tti_fail(st, "%s", words);
}

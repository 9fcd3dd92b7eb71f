/* SPDX-License-Identifier: BSD-3-Clause
 *
 * world.c - which group NULL means, and the process's world.
 *
 * Two things here outlive a call, because torch's calls name no group: the process's world, made by
 * tutti_init_process_group(), and a thread's own default, set by tutti_use_group(). Nothing else of
 * the library looks at them, and a program that passes its groups never touches them.
 *
 * process.world is read by every call with NULL, on any thread, without the lock, with acquire
 * order: it is stored, with release order, once the world is whole. Only init and destroy write it,
 * under process.lock; process.joining keeps a second init out while the first one, which waits for
 * other ranks, has let go of the lock. */
#include "group/hooks.h"
#include "group/make.h"

#include <stdio.h>
#include <string.h>
#include "backend/registry.h"
#include "base/env.h"
#include "base/log.h"
#include "watch/bulletin.h"

enum { NAME_MAX_BYTES = 128 }; /* of tutti_init_options.group_name */

static struct {
    tti_mutex              lock;
    _Atomic(tutti_group *) world;
    bool                   joining; /* guarded by lock */
} process = { .lock = { .m = PTHREAD_MUTEX_INITIALIZER } };

static _Thread_local tutti_group *thread_default;

static void before_fork(void)
{
    tti_lock(&process.lock);
}

/* A world of the parent's stays what NULL means, to be refused in words, until there is one of the child's own. */
static void after_fork(bool in_child)
{
    if (in_child)
        process.joining = false;
    tti_unlock(&process.lock);
}

static tti_fork_part fork_part = { .before = before_fork, .after = after_fork };

/* ---- what NULL means ---- */

static bool is_object(const tutti_group *group)
{
    return group != NULL && group != TUTTI_NO_GROUP && group != TUTTI_NON_MEMBER;
}

/* Whether it is the group of a process that this one was forked from. */
static bool is_inherited(const tutti_group *group)
{
    return is_object(group) && tti_is_inherited(group->age);
}

static tutti_group *meant(const tutti_group *group)
{
    if (group != NULL)
        return (tutti_group *)(uintptr_t)group;
    if (thread_default != NULL)
        return thread_default;
    return atomic_load_explicit(&process.world, memory_order_acquire);
}

tutti_status tti_group_resolve_any(tutti_group *group, const char *what, tutti_group **group_out)
{
    tutti_group *g = meant(group);

    if (is_inherited(g))
        return tti_fail_inherited(what, "group", g->name);
    if (g == NULL)
        return tti_fail(TUTTI_E_STATE,
                        "%s: there is no world\n"
                        "  next: call tutti_init_process_group() first",
                        what);
    if (g == TUTTI_NO_GROUP)
        return tti_fail(TUTTI_E_STATE, "%s: this group was never made, tutti_new_group() failed",
                        what);
    if (g == TUTTI_NON_MEMBER) {
        tti_non_member_warn(what);
        g = NULL;
    }
    *group_out = g;
    return TUTTI_OK;
}

tutti_status tti_group_resolve(tutti_group *group, const char *what, tutti_group **group_out)
{
    tutti_group *g = NULL;
    tutti_status st = tti_group_resolve_any(group, what, &g);

    if (st == TUTTI_OK && g != NULL && g->backend == NULL)
        st = tti_fail(TUTTI_E_STATE,
                      "%s: group '%s' has not met anybody yet\n"
                      "  next: call tutti_reconfigure() first",
                      what, g->name);
    if (st == TUTTI_OK)
        *group_out = g;
    return st;
}

const tutti_group *tti_group_peek(const tutti_group *group)
{
    const tutti_group *g = meant(group);

    return !is_object(g) || is_inherited(g) ? NULL : g;
}

void tutti_use_group(tutti_group *group)
{
    thread_default = group;
}

tutti_group *tutti_current_group(void)
{
    return (tutti_group *)(uintptr_t)tti_group_peek(NULL);
}

bool tutti_is_initialized(void)
{
    return tti_group_peek(NULL) != NULL;
}

/* ---- making ---- */

/* Look at the backend string, and at what the backend reads from the environment, before anybody is waited for; and
 * whether anybody need be: not for a backend without peers, if rank and size are told, and no way to find others. */
static tutti_status check_backend(const tutti_init_options *opts, bool *alone_out)
{
    tutti_group  probe = { .size = 0 };
    tutti_status st = tti_routes_find(&probe, &(tti_backing){ .text = opts->backend });

    if (st == TUTTI_OK)
        st = tti_routes_check_env(&probe, opts->world_size > 1 ? opts->store : NULL);
    if (st == TUTTI_OK)
        *alone_out = probe.ops->needs_no_peers && opts->store == NULL && opts->init_method == NULL &&
                     opts->world_size > 0;
    return st;
}

/* Join a world in which there is nobody else, whatever its size. */
static tutti_status rendezvous_alone(tti_rendezvous_config *config, tti_join *join_out)
{
    tutti_status st = tutti_hash_store_open(&config->store);

    if (st != TUTTI_OK)
        return st;
    st = tti_rendezvous(config, join_out);
    tutti_store_close(config->store); /* the join has its own reference */
    config->store = NULL;
    if (st == TUTTI_OK)
        join_out->alone = true;
    return st;
}

/* Let join meet only those that give the same name: they have a part of the store to themselves. */
static tutti_status set_apart(const char *name, tti_join *join)
{
    char         prefix[NAME_MAX_BYTES + 16];
    tutti_store *part = NULL;
    tutti_status st;

    if (name[0] == '\0' || strnlen(name, NAME_MAX_BYTES + 1) > NAME_MAX_BYTES)
        return tti_fail(TUTTI_E_ARG, "group_name is empty, or longer than %d bytes\n  next: use another one, or NULL for none",
                        NAME_MAX_BYTES);
    snprintf(prefix, sizeof prefix, "tutti/named/%s", name);
    st = tutti_prefix_store_open(prefix, join->store, &part);
    if (st != TUTTI_OK)
        return st;
    tutti_store_close(join->store); /* part has a reference of its own */
    join->store = part;
    return TUTTI_OK;
}

/* ops NULL: the backend that the options name. */
static tutti_status join(const tutti_backend_ops *ops, const tutti_init_options *opts,
                         tutti_group **group_out)
{
    tutti_init_options    known = TUTTI_INIT_OPTIONS;
    tti_rendezvous_config config = { .port = tti_port_system() };
    tti_join              joined;
    bool                  alone = false;
    tti_backing           backing = { .ops = ops };
    tutti_status          st;

    tti_fork_guard(&fork_part);
    st = tti_log_check_env();
    if (st == TUTTI_OK)
        tti_env_tell_unknown();
    if (st == TUTTI_OK && opts != NULL)
        st = tti_options_read(&known, sizeof known, opts, "TUTTI_INIT_OPTIONS");
    if (known.backend == NULL)
        known.backend = tti_env("TUTTI_BACKEND");
    if (st == TUTTI_OK && ops == NULL)
        st = check_backend(&known, &alone);
    if (st != TUTTI_OK)
        return st;
    config.url = known.init_method;
    config.store = known.store;
    config.store_host = known.store_host;
    config.rank = known.rank;
    config.world_size = known.world_size;
    config.timeout_ms = known.timeout_ms;
    backing.text = known.backend;
    st = alone ? rendezvous_alone(&config, &joined) : tti_rendezvous(&config, &joined);
    if (st != TUTTI_OK)
        return st;
    if (known.group_name != NULL)
        st = set_apart(known.group_name, &joined);
    if (st == TUTTI_OK)
        st = (known.enable_reconfigure ? tti_world_begin
                                       : tti_world_create)(config.port, &backing, &joined, group_out);
    if (st == TUTTI_OK)
        (*group_out)->timed = known.enable_timing;
    tti_join_release(&joined);
    return st;
}

tutti_status tutti_create_process_group(const tutti_init_options *opts, tutti_group **group_out)
{
    if (group_out == NULL)
        return tti_fail(TUTTI_E_ARG, "tutti_create_process_group: group_out is NULL\n  next: pass where to put the group");
    return join(NULL, opts, group_out);
}

/* Take the right to make the process's world. */
static tutti_status claim(void)
{
    tutti_status st = TUTTI_OK;

    tti_lock(&process.lock);
    if (process.joining || (atomic_load(&process.world) != NULL && !is_inherited(atomic_load(&process.world))))
        st = tti_fail(TUTTI_E_STATE, "this process has a world already\n"
                                     "  next: call tutti_destroy_process_group(NULL) first");
    else
        process.joining = true;
    tti_unlock(&process.lock);
    return st;
}

tutti_status tti_init_with(const tutti_backend_ops *ops, const tutti_init_options *opts)
{
    tutti_group *world = NULL;
    tutti_status st;

    st = claim();
    if (st != TUTTI_OK)
        return st;
    st = join(ops, opts, &world);
    tti_lock(&process.lock);
    process.joining = false;
    if (st == TUTTI_OK)
        atomic_store_explicit(&process.world, world, memory_order_release);
    tti_unlock(&process.lock);
    if (st == TUTTI_OK && is_inherited(thread_default))
        thread_default = NULL;
    return st;
}

tutti_status tutti_init_process_group(const tutti_init_options *opts)
{
    return tti_init_with(NULL, opts);
}

/* ---- ending ---- */

/* A world waits for its callbacks, so one of them cannot end it; a hook stands in a call on its group. */
bool tti_group_calls_us(const tutti_group *group)
{
    return tti_hooks_inside() || (group->world == group && tti_callbacks_inside(group->runner));
}

/* The launcher's words go on: a page of its own for the successor, before anybody else sees it, as other threads may still read
 * the old one's. */
void tti_world_succeed(const tutti_group *old, tutti_group *successor)
{
    if (old->bulletin != NULL && successor->bulletin == NULL) {
        successor->bulletin = tti_bulletin_open();
        successor->renumbered = true;
        successor->endings_told = old->endings_told;
    }
    tti_recorder_succeed(&old->place, &successor->place);
    tti_lock(&process.lock);
    if (atomic_load(&process.world) == old)
        atomic_store_explicit(&process.world, successor, memory_order_release);
    tti_unlock(&process.lock);
    if (thread_default == old)
        thread_default = successor;
}

void tti_world_adopt(tutti_group *world)
{
    tutti_group *before;

    tti_fork_guard(&fork_part);
    tti_lock(&process.lock);
    before = atomic_load(&process.world);
    if (!process.joining && (before == NULL || is_inherited(before)))
        atomic_store_explicit(&process.world, world, memory_order_release);
    tti_unlock(&process.lock);
    if (is_inherited(thread_default))
        thread_default = NULL;
}

tutti_status tutti_destroy_process_group(tutti_group *group)
{
    tutti_group *g = group;
    bool         own_callback;

    if (g == TUTTI_NON_MEMBER || g == TUTTI_NO_GROUP)
        return TUTTI_OK;
    if (g == NULL)
        g = atomic_load_explicit(&process.world, memory_order_acquire);
    if (is_inherited(g))
        return tti_fail_inherited("tutti_destroy_process_group", "group", g->name);
    g = group;
    tti_lock(&process.lock);
    if (g == NULL)
        g = atomic_load(&process.world);
    own_callback = g != NULL && tti_group_calls_us(g);
    if (g != NULL && !own_callback && g == atomic_load(&process.world))
        atomic_store(&process.world, NULL);
    tti_unlock(&process.lock);
    if (g == NULL)
        return tti_fail(TUTTI_E_STATE, "tutti_destroy_process_group: there is no world");
    if (own_callback)
        return tti_fail(TUTTI_E_STATE,
                        "tutti_destroy_process_group: called by a hook, or by a callback of the same world\n"
                        "  next: let another thread end it");
    if (thread_default != NULL && thread_default == g)
        thread_default = NULL;
    tti_group_destroy(g);
    return TUTTI_OK;
}

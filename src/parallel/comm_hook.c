/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comm_hook.c - having a hook reduce the buckets. */
#include "parallel/parallel.h"

#include <stddef.h>
#include <tutti/private.h>

/* What every table has. */
static const size_t SIZE_MIN = offsetof(tutti_comm_hook, group_changed);

tutti_status tti_comm_hook_check(const tutti_comm_hook *hook)
{
    if (hook == NULL)
        return tti_fail(TUTTI_E_ARG, "reducer_register_comm_hook: the hook is NULL");
    if (hook->api != TUTTI_COMM_HOOK_API || hook->size < SIZE_MIN || hook->run == NULL)
        return tti_fail(TUTTI_E_ARG,
                        "reducer_register_comm_hook: a table of version %u and %u bytes%s, where version %d has %zu",
                        hook->api, hook->size, hook->run == NULL ? " without run" : "", TUTTI_COMM_HOOK_API, SIZE_MIN);
    return TUTTI_OK;
}

void tti_comm_hook_tell_group(const tutti_comm_hook *hook, void *state)
{
    if (hook != NULL && hook->size >= sizeof *hook && hook->group_changed != NULL)
        hook->group_changed(state);
}

tutti_status tti_comm_hook_check_place(const tutti_reducer *r)
{
    if (r->hook != NULL)
        return tti_fail(TUTTI_E_STATE,
                        "reducer_register_comm_hook: it can only be called once, and '%s' is registered already",
                        tti_hook_name(r));
    if (r->iterations > 0)
        return tti_fail(TUTTI_E_STATE, "reducer_register_comm_hook: step %lld has begun\n"
                                       "  next: register it before the first step",
                        (long long)r->iterations);
    return TUTTI_OK;
}

tutti_status tutti_reducer_register_comm_hook(tutti_reducer *reducer, const tutti_comm_hook *hook, void *state)
{
    tutti_reducer *r = reducer;
    tutti_status   st = r != NULL ? tti_comm_hook_check(hook)
                                  : tti_fail(TUTTI_E_ARG, "reducer_register_comm_hook: the reducer is NULL");

    if (st == TUTTI_OK)
        st = tti_comm_hook_check_place(r);
    if (st != TUTTI_OK)
        return st;
    r->hook = hook;
    r->hook_state = state;
    return TUTTI_OK;
}

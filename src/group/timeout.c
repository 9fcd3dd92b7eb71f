/* SPDX-License-Identifier: BSD-3-Clause
 *
 * timeout.c - changing how long the operations of a group may take.
 *
 * One number, read once by each operation when it begins, and by each work when it is made: what is under
 * way keeps what it began with. */
#include "group/group.h"

#include "base/env.h"
#include <tutti/debug.h>
#include <tutti/private.h>

/* What 0 stands for: a world's default, else what the world has. */
static tutti_status default_of(const tutti_group *group, int64_t *timeout_ms_out)
{
    if (group->world != group) {
        *timeout_ms_out = group->world->timeout_ms;
        return TUTTI_OK;
    }
    return tti_env_timeout(timeout_ms_out);
}

tutti_status tutti_set_timeout(tutti_group *group, int64_t timeout_ms)
{
    tutti_group *g = NULL;
    tutti_status st = tti_group_resolve(group, "tutti_set_timeout", &g);

    if (st != TUTTI_OK || g == NULL)
        return st;
    if (timeout_ms < TUTTI_INFINITE)
        return tti_fail(TUTTI_E_ARG,
                        "tutti_set_timeout on group '%s': timeout_ms is %lld\n"
                        "  next: 0 for the default, -1 for none",
                        g->name, (long long)timeout_ms);
    if (timeout_ms == 0)
        st = default_of(g, &timeout_ms);
    if (st == TUTTI_OK)
        g->timeout_ms = timeout_ms;
    return st;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * launched.c - what a process knows about its place before there is a world. */
#include <stdlib.h>
#include <tutti/init.h>
#include <tutti/private.h>
#include "base/env.h"
#include "rendezvous/scheduler.h"

/* -1: the scheduler does not tell, or there is none. */
static tutti_status scheduler_local_rank(int *local_out)
{
    tti_scheduler scheduler = { .local_rank = -1 };
    tutti_status  st = TUTTI_OK;

    if (tti_env("RANK") == NULL)
        st = tti_scheduler_find(tti_port_system(), &scheduler);
    if (st == TUTTI_OK)
        *local_out = scheduler.local_rank;
    return st;
}

int tutti_get_node_local_rank(int fallback)
{
    int64_t value = 0;
    int     local = -1;

    if (tti_env("LOCAL_RANK") != NULL)
        return tti_env_int("LOCAL_RANK", 0, INT32_MAX, &value) == TUTTI_OK ? (int)value : -1;
    if (scheduler_local_rank(&local) != TUTTI_OK)
        return -1;
    if (local >= 0)
        return local;
    if (fallback < 0) {
        tti_fail(TUTTI_E_ARG, "LOCAL_RANK is not set, no scheduler tells a local rank, and there is no fallback\n"
                              "  next: start the program with 'tutti run', or pass a fallback");
        return -1;
    }
    return fallback;
}

bool tutti_is_torchelastic_launched(void)
{
    return tti_env("TORCHELASTIC_RUN_ID") != NULL;
}

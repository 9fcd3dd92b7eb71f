/* SPDX-License-Identifier: BSD-3-Clause
 *
 * debug_level.c - the debug level of the process.
 *
 * One number for the process, as in torch, where programs and libraries set it from anywhere; it is read
 * from the environment once, by whoever asks first. Relaxed: nothing else hangs on it, and a thread that
 * sees the old level for a moment logs by the old level. */
#include <stdatomic.h>
#include <stddef.h>
#include <strings.h>
#include "base/log.h"

enum { NOT_READ = -1 };

static _Atomic int current = NOT_READ;

static const char *const level_names[] = { "off", "info", "detail" };

static const char *variable(void)
{
    return tti_env("TUTTI_DEBUG") != NULL ? "TUTTI_DEBUG" : "TORCH_DISTRIBUTED_DEBUG";
}

tutti_status tti_debug_level_read(tutti_debug_level *level_out)
{
    const char *name = variable();
    const char *text = tti_env(name);
    int         i;

    for (i = TUTTI_DEBUG_OFF; i <= TUTTI_DEBUG_DETAIL; i++) {
        if (strcasecmp(text, level_names[i]) == 0) {
            *level_out = (tutti_debug_level)i;
            return TUTTI_OK;
        }
    }
    return tti_fail(TUTTI_E_ARG, "%s is '%.64s', not 'off', 'info' or 'detail'\n"
                                 "  next: set it to one of these, or unset it",
                    name, text);
}

tutti_debug_level tutti_get_debug_level(void)
{
    tutti_debug_level level = TUTTI_DEBUG_OFF;
    int               seen = atomic_load_explicit(&current, memory_order_relaxed);

    if (seen != NOT_READ)
        return (tutti_debug_level)seen;
    if (tti_debug_level_read(&level) != TUTTI_OK)
        level = TUTTI_DEBUG_OFF;
    seen = NOT_READ; /* somebody may have set it meanwhile: that stays */
    if (!atomic_compare_exchange_strong(&current, &seen, (int)level))
        level = (tutti_debug_level)seen;
    return level;
}

tutti_status tutti_set_debug_level(tutti_debug_level level)
{
    if ((int)level < TUTTI_DEBUG_OFF || (int)level > TUTTI_DEBUG_DETAIL)
        return tti_fail(TUTTI_E_ARG, "tutti_set_debug_level: %d is no debug level", (int)level);
    atomic_store_explicit(&current, (int)level, memory_order_relaxed);
    return TUTTI_OK;
}

tutti_status tutti_set_debug_level_from_env(void)
{
    tutti_debug_level level = TUTTI_DEBUG_OFF;
    tutti_status      st = tti_debug_level_read(&level);

    return st == TUTTI_OK ? tutti_set_debug_level(level) : st;
}

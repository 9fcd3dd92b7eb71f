/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tell.c - what is logged of a ddp, by debug level: info, parameters that were not used; detail, the logging data, too. */
#include "ddp/ddp.h"

#include <stdio.h>
#include <string.h>
#include <tutti/debug.h>
#include <tutti/private.h>

enum { SAMPLED_FIRST = 10, SAMPLED_EVERY = 100, SUMMARY = 4096 };

/* A line in the making; what does not fit is left out. */
typedef struct summary {
    char text[SUMMARY];
    size_t bytes;
} summary;

static void add_entry(const char *key, const char *value, void *ctx)
{
    summary *s = ctx;
    const int n = snprintf(s->text + s->bytes, sizeof s->text - s->bytes, "%s%s=%s", s->bytes > 0 ? "; " : "", key, value);

    if (n > 0 && s->bytes + (size_t)n < sizeof s->text)
        s->bytes += (size_t)n;
    else
        s->text[s->bytes] = '\0';
}

void tti_ddp_tell_step(tutti_ddp *ddp)
{
    const int64_t step = ddp->steps + 1;
    summary s = { .bytes = 0 };

    if (tutti_get_debug_level() < TUTTI_DEBUG_DETAIL || (step > SAMPLED_FIRST && step % SAMPLED_EVERY != 0))
        return;
    tutti_ddp_logging_data(ddp, add_entry, &s);
    tti_log(TTI_LOG_INFO, "ddp: step %lld: %s", (long long)step, s.text);
}

void tti_ddp_tell_unused(const tutti_ddp *ddp)
{
    if (tutti_get_debug_level() < TUTTI_DEBUG_INFO)
        return;
    for (int i = 0; i < ddp->n; i++)
        if (!ddp->slots[i].fired)
            tti_log(TTI_LOG_INFO, "ddp: unused in the first step of a static graph: {%s, %d}", ddp->slots[i].name, i);
}

void tti_ddp_tell_missing(const tutti_ddp *ddp)
{
    if (tutti_get_debug_level() < TUTTI_DEBUG_INFO)
        return;
    for (int i = 0; i < ddp->n; i++)
        if (!ddp->slots[i].fired)
            tti_log(TTI_LOG_WARN, "ddp: parameter %d ('%s') did not receive a gradient", i, ddp->slots[i].name);
}

static void tell_number(tutti_logging_fn fn, void *ctx, const char *key, int value)
{
    char text[16];

    snprintf(text, sizeof text, "%d", value);
    fn(key, text, ctx);
}

void tutti_ddp_logging_data(tutti_ddp *ddp, tutti_logging_fn fn, void *ctx)
{
    int n = 0;

    if (ddp == NULL || fn == NULL)
        return;
    tutti_reducer_logging_data(ddp->reducer, fn, ctx);
    tell_number(fn, ctx, "broadcast_buffers", ddp->broadcast_buffers);
    if (ddp->net != NULL)
        (void)tutti_module_buffers(ddp->net, &n);
    tell_number(fn, ctx, "num_buffers", n);
    tell_number(fn, ctx, "join_uneven_inputs", ddp->join != NULL);
}

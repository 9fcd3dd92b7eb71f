/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ends.c - what must be done when a backward is over, whatever it came to.
 *
 * Why     Callbacks of tutti_backward_queue_callback() are for backwards that went well, and belong to the one that
 *         is running. Who reduces gradients with other ranks has to know of the end of the outermost one, and of
 *         failures, too: the others wait.
 * How     One line per thread, worked off by the outermost backward. Who is called may queue more.
 * True    Each is called once. The first failure is what the backward returns, in its own words. */
#include "autograd/autograd.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

typedef struct queued {
    tti_backward_end_fn fn;
    void *ctx;
} queued;

/* Per thread: a backward runs on one. */
static _Thread_local struct {
    queued *at;
    int n, cap;
    int depth; /* backwards inside of one another */
} line;

tutti_status tti_backward_at_end(tti_backward_end_fn fn, void *ctx)
{
    const int cap = line.cap == 0 ? 8 : 2 * line.cap;
    queued *at;

    if (line.depth == 0)
        return tti_fail(TUTTI_E_STATE, "no backward is running on this thread");
    if (line.n == line.cap) {
        at = tti_mem_grow(line.at, (size_t)line.cap * sizeof *at, (size_t)cap * sizeof *at);
        if (at == NULL)
            return tti_fail(TUTTI_E_NOMEM, "backward: no memory for %d callbacks", cap);
        line.at = at;
        line.cap = cap;
    }
    line.at[line.n++] = (queued){ .fn = fn, .ctx = ctx };
    return TUTTI_OK;
}

void tti_backward_begins(void)
{
    line.depth++;
}

/* Work off the line; st is what the backward came to so far. */
static tutti_status work_off(tutti_status st)
{
    char *words = NULL;

    for (int i = 0; i < line.n; i++) {
        const queued next = line.at[i];
        tutti_status now;

        if (st != TUTTI_OK && words == NULL)
            words = strdup(tutti_last_error());
        now = next.fn(st, next.ctx);
        st = st == TUTTI_OK ? now : st;
    }
    if (words != NULL)
        (void)tti_fail(st, "%s", words);
    free(words);
    tti_mem_free(line.at, (size_t)line.cap * sizeof *line.at);
    line.at = NULL;
    line.n = line.cap = 0;
    return st;
}

tutti_status tti_backward_ends(tutti_status st)
{
    if (line.depth == 1)
        st = work_off(st);
    line.depth--;
    return st;
}

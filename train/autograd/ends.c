/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ends.c - what must be done when a backward is over, whatever it came to, or when it could not even begin.
 *
 * Why     Callbacks of tutti_backward_queue_callback() are for backwards that went well, and belong to the one that
 *         is running. Who reduces gradients with other ranks has to know of the end of the outermost one, and of
 *         failures, too: the others wait. They also wait if a loss could not be computed: there is no graph then from
 *         which anybody could be found.
 * How     One line per thread, worked off by the outermost backward. Who is called may queue more.
 *         Who awaits a backward stands in a list of all threads, with the number of his: he may be gone, or be used
 *         by another thread, when this one ends. The list holds the few that are between a forward and its backward.
 * True    Each is called once. The first failure is what the backward returns, in its own words. */
#include "autograd/autograd.h"

#include <pthread.h>
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

bool tti_backward_is_running(void)
{
    return line.depth > 0;
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

/* ---- backwards that do not begin ------------------------------------------------------------------ */

/* Of the process, as the file's head says; lock guards it. */
static struct {
    pthread_mutex_t lock;
    tti_awaiting *latest;
} awaited = { PTHREAD_MUTEX_INITIALIZER, NULL };

/* The calling thread, by a number that no other one gets. */
static uint64_t this_thread(void)
{
    static _Atomic uint64_t last;
    static _Thread_local uint64_t number;

    if (number == 0)
        number = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    return number;
}

static void take_out_locked(tti_awaiting *w)
{
    for (tti_awaiting **at = &awaited.latest; *at != NULL; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            return;
        }
}

void tti_backward_await(tti_awaiting *w, tti_backward_end_fn fn, void (*then)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&awaited.lock);
    take_out_locked(w);
    *w = (tti_awaiting){ .fn = fn, .then = then, .ctx = ctx, .thread = this_thread(), .next = awaited.latest };
    awaited.latest = w;
    pthread_mutex_unlock(&awaited.lock);
}

void tti_backward_unawait(tti_awaiting *w)
{
    pthread_mutex_lock(&awaited.lock);
    take_out_locked(w);
    pthread_mutex_unlock(&awaited.lock);
}

/* The one of this thread that came last, which is in the list no more; NULL: there is none. */
static tti_awaiting *take_latest(void)
{
    const uint64_t thread = this_thread();
    tti_awaiting *w;

    pthread_mutex_lock(&awaited.lock);
    for (w = awaited.latest; w != NULL && w->thread != thread;)
        w = w->next;
    if (w != NULL)
        take_out_locked(w);
    pthread_mutex_unlock(&awaited.lock);
    return w;
}

tutti_status tti_backward_missed(tutti_status st)
{
    tti_awaiting *w = line.depth == 0 ? take_latest() : NULL; /* inside of another one that one tells */
    tti_awaiting *told = NULL, **last = &told;
    char *words = w != NULL ? strdup(tutti_last_error()) : NULL;

    for (; w != NULL; w = take_latest()) { /* which are in our list now */
        w->next = NULL;
        *last = w;
        last = &w->next;
        (void)w->fn(st, w->ctx);
    }
    for (w = told; w != NULL; w = w->next)
        w->then(w->ctx);
    if (words != NULL)
        (void)tti_fail(st, "%s", words);
    free(words);
    return st;
}

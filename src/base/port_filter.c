/* SPDX-License-Identifier: BSD-3-Clause
 *
 * port_filter.c - which handles have a filter, and polling them.
 *
 * State   One table for the process, because its keys are descriptors, which are the process's. Its lock guards the
 *         table and is held for a few instructions; a filter that was taken out of it lives on until it is dropped.
 * Fork    A child has its parent's table and none of its streams, which it has closed. What is older than the process is
 *         passed over, and replaced when the number comes back.
 * Poll    A poll that is woken only because a filter could move something goes on: callers see what they asked for. */
#include "base/port_filter.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/fork.h"

enum { ON_STACK = 64 };

_Atomic uint32_t tti_filter_count;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tti_filter    **table; /* [size] by handle */
static int             size;

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(bool in_child)
{
    (void)in_child;
    pthread_mutex_unlock(&lock);
}

static tti_fork_part fork_part = { .before = before_fork, .after = after_fork };

/* Lock held. */
static bool make_room(tti_handle handle)
{
    const int    want = (handle / 256 + 1) * 256;
    tti_filter **more;

    if (handle < size)
        return true;
    more = realloc(table, (size_t)want * sizeof(tti_filter *));
    if (more == NULL)
        return false;
    memset(more + size, 0, (size_t)(want - size) * sizeof(tti_filter *));
    table = more;
    size = want;
    return true;
}

bool tti_filter_attach(tti_handle handle, tti_filter *filter)
{
    bool done;

    tti_fork_guard(&fork_part);
    filter->handle = handle;
    filter->age = tti_fork_age();
    atomic_store_explicit(&filter->refs, 1, memory_order_relaxed); /* the lock publishes it */
    pthread_mutex_lock(&lock);
    done = make_room(handle);
    if (done)
        table[handle] = filter;
    pthread_mutex_unlock(&lock);
    if (done)
        atomic_fetch_add_explicit(&tti_filter_count, 1, memory_order_relaxed);
    return done;
}

/* Lock held. */
static tti_filter *filter_of(tti_handle handle)
{
    tti_filter *filter = handle >= 0 && handle < size ? table[handle] : NULL;

    return filter != NULL && !tti_is_inherited(filter->age) ? filter : NULL;
}

tti_filter *tti_filter_take(tti_handle handle)
{
    tti_filter *filter;

    pthread_mutex_lock(&lock);
    filter = filter_of(handle);
    if (filter != NULL)
        atomic_fetch_add_explicit(&filter->refs, 1, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
    return filter;
}

void tti_filter_drop(tti_filter *filter)
{
    /* Release: what was done with it comes before its end; acquire: for whoever ends it. */
    if (atomic_fetch_sub_explicit(&filter->refs, 1, memory_order_acq_rel) == 1)
        filter->ops->free(filter);
}

void tti_filter_end(tti_handle handle)
{
    tti_filter *filter;

    pthread_mutex_lock(&lock);
    filter = filter_of(handle);
    if (filter != NULL)
        table[handle] = NULL;
    pthread_mutex_unlock(&lock);
    if (filter == NULL)
        return;
    atomic_fetch_sub_explicit(&tti_filter_count, 1, memory_order_relaxed);
    filter->ops->end(filter);
    tti_filter_drop(filter);
}

/* ---- poll ---- */

typedef struct asked {
    tti_filter *filter; /* NULL: as it stands in the set */
    uint8_t     want;
    uint8_t     ready; /* without a poll */
} asked;

/* Ask the filters, and put into the set what they want of their sockets. Whether something is ready already. */
static bool ask(asked *all, tti_poll *set, int n)
{
    bool ready = false;
    int  i;

    for (i = 0; i < n; i++) {
        all[i] = (asked){ .filter = tti_filter_take(set[i].handle), .want = set[i].want };
        if (all[i].filter == NULL)
            continue;
        set[i].want = all[i].filter->ops->before_poll(all[i].filter, all[i].want, &all[i].ready);
        ready = ready || all[i].ready != 0;
    }
    return ready;
}

/* Tell the filters, and put into the set what is ready of what was asked for: of how many. */
static int tell(asked *all, tti_poll *set, int n)
{
    int count = 0, i;

    for (i = 0; i < n; i++) {
        if (all[i].filter != NULL) {
            set[i].want = all[i].want;
            if (set[i].got != 0)
                set[i].got = all[i].filter->ops->after_poll(all[i].filter, all[i].want, set[i].got);
            set[i].got |= all[i].ready;
            tti_filter_drop(all[i].filter);
        }
        count += set[i].got != 0;
    }
    return count;
}

int tti_filter_poll(tti_port *port, tti_poll *set, int n, int64_t deadline_ns,
                    int (*raw_poll)(tti_port *port, tti_poll *set, int n, int64_t deadline_ns))
{
    asked  few[ON_STACK];
    asked *all = few;
    int    polled, count;

    if (n > ON_STACK && (all = malloc((size_t)n * sizeof *all)) == NULL)
        return 0; /* a spurious empty answer: every caller looks again */
    do {
        const bool ready = ask(all, set, n);

        polled = raw_poll(port, set, n, ready ? 0 : deadline_ns);
        count = tell(all, set, n);
    } while (polled > 0 && count == 0 && tti_port_now(port) < deadline_ns);
    if (all != few)
        free(all);
    return count;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fork.c - what fork() does to the library.
 *
 * Why     A child has its parent's objects and none of the threads behind them. Locks that a thread held at that
 *         moment stay held; connections and shared memory are the parent's, and what a child writes there its
 *         parent's peers read. A connection that a child keeps open hides from its peer that the parent has died.
 * How     Objects keep the age of the process that made them (tti_fork_age()), and calls compare it first: before any
 *         lock. State of the process is made whole by tti_fork_parts, whose locks are held across the fork. The
 *         library's descriptors are marked in a map, and a child closes them before it goes on.
 * True    The map has no descriptor that is not open and ours: it is entered after it was opened, and taken out
 *         before it is closed. One that is just being opened or closed is missed, and stays open in the child: no harm
 *         but that. Nothing here allocates, or needs a lock, in the child.
 *         held is written under forking, which is taken before the fork and let go after it, on both sides.
 * Fails   A child that was made without the handlers of pthread_atfork() (a bare clone(), vfork()) is not noticed:
 *         such a child may only exec. */
#include "base/fork.h"

#include <pthread.h>
#include <unistd.h>
#include <tutti/private.h>
#include "base/last.h"
#include "base/log.h"

enum { FDS_KNOWN = 1 << 16, BITS = 64 };

_Atomic uint32_t tti_fork_generation;

/* All of the process, as fork() is. */
static _Atomic uint64_t         owned[FDS_KNOWN / BITS];
static _Atomic(tti_fork_part *) parts;
static pthread_mutex_t          forking = PTHREAD_MUTEX_INITIALIZER;
static tti_fork_part           *held; /* those whose before was called, by this fork */
static pthread_once_t           once = PTHREAD_ONCE_INIT;

/* ---- descriptors ---- */

void tti_fork_own(int fd)
{
    if (fd >= 0 && fd < FDS_KNOWN)
        atomic_fetch_or_explicit(&owned[fd / BITS], UINT64_C(1) << fd % BITS, memory_order_relaxed);
}

void tti_fork_disown(int fd)
{
    if (fd >= 0 && fd < FDS_KNOWN)
        atomic_fetch_and_explicit(&owned[fd / BITS], ~(UINT64_C(1) << fd % BITS), memory_order_relaxed);
}

static void close_owned(void)
{
    int word, bit;

    for (word = 0; word < FDS_KNOWN / BITS; word++) {
        const uint64_t bits = atomic_exchange_explicit(&owned[word], 0, memory_order_relaxed);

        for (bit = 0; bits != 0 && bit < BITS; bit++)
            if ((bits >> bit & 1) != 0)
                close(word * BITS + bit);
    }
}

/* ---- the moment itself ---- */

static void before(void)
{
    tti_fork_part *part;

    pthread_mutex_lock(&forking);
    held = atomic_load_explicit(&parts, memory_order_acquire);
    for (part = held; part != NULL; part = part->next)
        part->before();
}

static void after(bool in_child)
{
    tti_fork_part *part;

    for (part = held; part != NULL; part = part->next)
        part->after(in_child);
    held = NULL;
    pthread_mutex_unlock(&forking);
}

static void after_in_parent(void)
{
    after(false);
}

static void after_in_child(void)
{
    atomic_fetch_add_explicit(&tti_fork_generation, 1, memory_order_relaxed);
    tti_own_threads_gone();
    close_owned();
    after(true);
}

/* The log is the part of base: first in, so that its lock is the last that is taken. */
static void begin(void)
{
    atomic_store_explicit(&parts, tti_log_fork_part(), memory_order_release);
    (void)pthread_atfork(before, after_in_parent, after_in_child); /* without memory for it forks go unnoticed */
}

void tti_fork_watch(void)
{
    (void)pthread_once(&once, begin);
}

void tti_fork_guard(tti_fork_part *part)
{
    tti_fork_watch();
    if (atomic_load_explicit(&part->known, memory_order_relaxed) || atomic_exchange(&part->known, true))
        return;
    part->next = atomic_load_explicit(&parts, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&parts, &part->next, part, memory_order_release,
                                                  memory_order_relaxed))
        continue;
}

tutti_status tti_fail_inherited(const char *what, const char *noun, const char *name)
{
    return tti_fail(TUTTI_E_STATE,
                    "%s: %s '%s' belongs to the process that this one, pid %ld, was forked from\n"
                    "  next: fork before joining, exec() in the child, or have the child join a world of its own",
                    what, noun, name, (long)getpid());
}

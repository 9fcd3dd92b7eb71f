/* SPDX-License-Identifier: BSD-3-Clause
 *
 * last.c - whose the threads of a process are: the end of one that only the library's threads are left of.
 *
 * Why     main() may leave by pthread_exit(): the process then lasts as long as its threads, and ends as by exit(0) when
 *         the last one has. Threads of a world that nobody ends never do; such a program would hang for ever, on a core
 *         that it was not asked to keep.
 * How     Threads that make worlds, or start our threads, are noted by a key, whose destructor runs when they end, and
 *         not when the process does. If the main thread has ended by then, a thread is started that looks every
 *         LOOK_NS how many threads the process has, and ends it when all of them are ours.
 * True    n_ours counts threads that have begun and not come to their end, so the kernel never counts fewer of ours than
 *         are counted here: the program's are over-estimated for a moment, and never missed. A count during which one of ours
 *         came to its end does not count: who is in n_ours may be missing in it. It is one number that the kernel keeps: a
 *         list of the threads is made one by one while they begin and end, and what of it can be missed is the kernel's matter.
 *         The main thread is in it still when it has ended.
 * Alone   The same count tells whether there is one more thread than ours: then nothing of the program goes on while that one waits,
 *         as only it could start another. Where the program has given functions to be called (callbacks, hooks, a backend) our
 *         threads may do its work, and nothing is said. Over-estimating is right here, too. Where a port stands in for the machine
 *         a rank is one fiber, whatever threads the process has.
 * Fails   Threads of other libraries count as the program's: with them the process lasts, as it would without us. Without
 *         /proc, or the memory for a thread, it lasts, too. */
#include "base/last.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/thread.h"

static const int64_t LOOK_NS = 20 * TTI_MS;

enum { LINE_MAX_BYTES = 1024 /* of a thread's "stat": some 50 numbers */ };

/* Of the process, as its end is. */
static pthread_key_t    key;
static pthread_once_t   once = PTHREAD_ONCE_INIT;
static bool             has_key; /* written inside once */
static _Atomic int      n_ours;
static _Atomic uint32_t n_ended; /* of ours: after it is no longer counted */
static _Atomic int      n_lent;  /* how often threads of ours were lent to the program; a child of fork() keeps it */
static _Atomic bool     looking;
static _Thread_local bool is_ours; /* this thread */
static tti_thread       looker; /* of the one thread that set looking; never joined: it ends with the process */

void tti_own_thread_begins(void)
{
    atomic_fetch_add(&n_ours, 1);
    is_ours = true;
}

bool tti_is_own_thread(void)
{
    return is_ours;
}

void tti_own_thread_ends(void)
{
    atomic_fetch_sub(&n_ours, 1);
    atomic_fetch_add(&n_ended, 1);
}

void tti_own_threads_gone(void)
{
    atomic_store(&n_ours, 0);
    atomic_store(&looking, false);
    looker.running = false;
}

/* What the kernel says of a thread behind its name, which may hold anything; path: of its "stat". NULL: nothing is known. */
static const char *facts_of(const char *path, char *line, size_t bytes)
{
    FILE *file = fopen(path, "re");
    char *at;

    if (file == NULL)
        return NULL;
    at = fgets(line, (int)bytes, file) != NULL ? strrchr(line, ')') : NULL;
    fclose(file);
    return at;
}

/* How many threads the process has; -1: nobody knows. */
static int count_threads(void)
{
    char        line[LINE_MAX_BYTES];
    const char *at = facts_of("/proc/self/stat", line, sizeof line);
    int         n;

    if (at == NULL || sscanf(at, ") %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d", &n) != 1)
        return -1;
    return n > 0 ? n : -1;
}

/* Whether at most one thread is the program's. */
static bool has_one_thread(void)
{
    const uint32_t ended = atomic_load(&n_ended);
    const int      ours = atomic_load(&n_ours); /* before the count: who begins meanwhile counts as the program's */
    const int      n = count_threads();

    return n >= 0 && n <= ours + 1 && atomic_load(&n_ended) == ended;
}

void tti_lending_begins(void)
{
    atomic_fetch_add(&n_lent, 1);
}

void tti_lending_ends(void)
{
    atomic_fetch_sub(&n_lent, 1);
}

bool tti_is_only_thread(void)
{
    return atomic_load(&n_lent) == 0 && (tti_port_stand_in() != NULL || has_one_thread());
}

/* The main thread is a zombie from its end to the process's. */
static bool main_has_ended(void)
{
    char        path[64], line[LINE_MAX_BYTES];
    const char *at;

    if (gettid() == getpid())
        return true; /* this is it, on its way out */
    snprintf(path, sizeof path, "/proc/self/task/%ld/stat", (long)getpid());
    at = facts_of(path, line, sizeof line);
    return at != NULL && strncmp(at, ") Z", 3) == 0;
}

static void look(void *arg)
{
    tti_port *port = tti_port_system();

    (void)arg;
    for (;;) {
        if (has_one_thread()) /* the main one, which has ended */
            exit(0);
        port->ops->sleep_until(port, tti_port_now(port) + LOOK_NS);
    }
}

static void on_thread_end(void *arg)
{
    (void)arg;
    if (atomic_load(&n_ours) > 0 && main_has_ended() && !atomic_exchange(&looking, true))
        (void)tti_thread_start(&looker, "tutti-last", look, NULL);
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, on_thread_end) == 0;
}

void tti_note_thread(void)
{
    (void)pthread_once(&once, make_key);
    if (has_key)
        (void)pthread_setspecific(key, &n_ours); /* anything but NULL */
}

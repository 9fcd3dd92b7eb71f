/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lock.c - mutexes, and those that favour a thread.
 *
 * Why     Most locks of a communicating process are taken by one thread, a few times for each message, and hardly ever
 *         by another. What they cost is the atomic operations: each waits until the stores before it are out, and those
 *         are to lines that another process reads. Without them the stores of several messages are under way at
 *         a time.
 * How     A thread that took the mutex ROW times in a row is favoured, for good. While the mutex is open it says
 *         that it is inside by a store, looks whether the mutex is still open, and leaves by a store. Another thread
 *         takes m, closes the mutex, has all threads of the process go through a barrier, and waits until the
 *         favoured one is not inside. Now m has the order, until the favoured thread took it ROW times in a row
 *         again: it opens the mutex then.
 *
 *           favoured:  inside = 1, open?  -> in                      other:  m, open = 0, barrier, until inside == 0
 *                                 closed? -> inside = 0, then by m
 *
 * True    1. One at a time. The barrier falls somewhere in the favoured thread's instructions: before its look at
 *            open, which then finds it closed; or after it, and then whoever closed it finds it inside. Who opens
 *            holds m, and is the favoured thread itself, so it is not on its way in by the other door.
 *         2. What one did the next one sees. Leaving releases inside, waiting for it acquires it; from the others to
 *            the favoured thread it goes by m, which that must have had before it opens.
 *         3. Who leaves touches nothing afterwards: the next one may free the mutex. So it looks whether somebody
 *            waits before it leaves, and a wake-up can be missed: who waits looks again every LOOK_NS. The address that
 *            is woken need not be anybody's by then.
 *         4. inside and open are words of the favoured thread's cache until another thread comes.
 * Fails   Where the machine comes to refuse the barrier: a store leaves its core's buffer within microseconds, and in any
 *         case when the core takes an interrupt. Whoever closed waits REFUSED_NS instead, and nobody opens again. */
#include <tutti/private.h>
#include "base/thread.h"

enum {
    ROW = 1024, /* what they save is more than a barrier */
    LOOKS = 64,
};

static const int64_t LOOK_NS = 50 * 1000;
static const int64_t REFUSED_NS = 50 * TTI_MS;

void tti_mutex_init(tti_mutex *mutex)
{
    *mutex = (tti_mutex){ .port = NULL };
    pthread_mutex_init(&mutex->m, NULL);
}

void tti_mutex_favour(tti_mutex *mutex, tti_port *port)
{
    const tti_port_ops *ops = port->ops;

    if (ops->fence_own != NULL && ops->fence_join != NULL && ops->fence_join(port))
        mutex->port = port;
}

void tti_mutex_release(tti_mutex *mutex)
{
    pthread_mutex_destroy(&mutex->m);
}

void tti_lock_let_in(tti_mutex *mutex)
{
    tti_port *port = mutex->port;

    atomic_store_explicit(&mutex->inside, 0, memory_order_release);
    port->ops->wake_word(port, &mutex->inside);
}

/* m is held: let nobody in without it any more, and wait for who is. */
static void close_door(tti_mutex *mutex)
{
    tti_port *port = mutex->port;
    int       i;

    atomic_store(&mutex->open, 0);
    if (!port->ops->fence_own(port)) {
        mutex->refused = true;
        port->ops->sleep_until(port, tti_port_now(port) + REFUSED_NS);
    }
    for (i = 0; atomic_load_explicit(&mutex->inside, memory_order_acquire) != 0; i++)
        if (i < LOOKS)
            tti_pause();
        else
            port->ops->wait_word(port, &mutex->inside, 1, tti_port_now(port) + LOOK_NS);
}

/* m is held: who comes most? */
static void count(tti_mutex *mutex)
{
    const uintptr_t favoured = atomic_load_explicit(&mutex->favoured, memory_order_relaxed);
    const uintptr_t self = tti_self();

    mutex->row = mutex->last == self ? mutex->row + 1 : 1;
    mutex->last = self;
    if (favoured != 0 && favoured != self) {
        if (atomic_load_explicit(&mutex->open, memory_order_relaxed) != 0)
            close_door(mutex);
    } else if (mutex->row >= ROW) {
        atomic_store_explicit(&mutex->favoured, self, memory_order_relaxed);
        atomic_store_explicit(&mutex->open, 1, memory_order_relaxed);
        mutex->row = 0;
    }
}

/* Threads of a port that stands in for the machine are one thread of the machine's, which must not wait for itself. */
static void lock_by_turns(tti_port *port, tti_mutex *mutex)
{
    port->ops->preempt(port);
    while (pthread_mutex_trylock(&mutex->m) != 0)
        port->ops->yield(port);
}

void tti_lock_slowly(tti_mutex *mutex)
{
    tti_port *port = tti_port_stand_in();

    if (port != NULL) {
        lock_by_turns(port, mutex);
        return;
    }
    pthread_mutex_lock(&mutex->m);
    if (mutex->port != NULL && !mutex->refused)
        count(mutex);
}

void tti_unlock_slowly(tti_mutex *mutex)
{
    pthread_mutex_unlock(&mutex->m);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * event.pml - the event count: src/base/thread.c, and how it is used under a lock.
 *
 * Model   One thread makes CHANGES changes, each under a lock, and signals; the others wait for all of them, as
 *         everybody does who waits for an event: take the count under the lock, look, let go, sleep.
 * Checks
 *
 *   holds  -DTHREADS=2
 *   holds  -DTHREADS=2 -DPSO
 *   holds  -DTHREADS=3
 *   holds  -DTHREADS=3 -DPSO
 *   stuck  -DTHREADS=2 -DRELAXED          the signaller's addition is still in its buffer when it looks for waiters
 *   stuck  -DTHREADS=2 -DCOUNT_TOO_LATE   the waiter takes the count when it has let go of the lock
 *   stuck  -DTHREADS=2 -DLOOK_TOO_EARLY   and looks at it before it says that it waits
 */
#ifndef CHANGES
#define CHANGES 2
#endif
#define DEPTH 2
#define COUNT 0
#define WAITERS 1
#define WORDS 2
#include "memory.pml"

bit  locked;  /* a mutex: whoever takes it sees what was written under it */
byte changes; /* under it */

inline lock() { atomic { !locked -> locked = 1 } }
inline unlock() { atomic { drained -> locked = 0 } }

inline signal()
{
#ifdef RELAXED
    load(COUNT, n);
    store_release(COUNT, n + 1);
    load(WAITERS, n);
#else
    add(COUNT, 1, n);         /* = base/thread.c: atomic_fetch_add(&event->count, 1); */
    load_seq_cst(WAITERS, n); /* = base/thread.c: if (atomic_load(&event->waiters) != 0) */
#endif
    if
    :: n != 0 -> wake_word(COUNT) /* = base/thread.c: port->ops->wake_word(port, &event->count); */
    :: else
    fi
}

inline event_wait(seen)
{
#ifdef LOOK_TOO_EARLY
    load_seq_cst(COUNT, n);
    add(WAITERS, 1, waiting);
    if
    :: n == seen -> sleeps_on[me] = COUNT + 1; sleeps_on[me] == 0
    :: else
    fi;
#else
    add(WAITERS, 1, waiting); /* = base/thread.c: atomic_fetch_add(&event->waiters, 1); */
    load_seq_cst(COUNT, n);   /* = base/thread.c: if (atomic_load(&event->count) == seen) */
    if
    :: n == seen -> wait_word(COUNT, seen) /* = base/thread.c: port->ops->wait_word(port, &event->count, seen, deadline_ns); */
    :: else
    fi;
#endif
    add(WAITERS, -1, waiting); /* = base/thread.c: atomic_fetch_sub(&event->waiters, 1); */
    waiting = 0;
    n = 0
}

proctype changer(byte me)
{
    byte i, n;

    for (i : 1 .. CHANGES) {
        lock();
        changes++;
#ifndef RELAXED
        signal();
        unlock()
#else
        unlock();
        signal()
#endif
    }
}

/* As tti_runner_sleep() and its callers. */
proctype waiter(byte me)
{
    byte seen, n, waiting;

    lock();
    do
    :: changes == CHANGES -> break
    :: changes < CHANGES ->
#ifdef COUNT_TOO_LATE
        unlock();
        load(COUNT, seen);
#else
        load(COUNT, seen); /* = group/workers.c: const uint32_t seen = tti_event_now(&runner->changed); */
        unlock();          /* = group/workers.c: tti_unlock(&runner->lock); tti_event_wait(runner->port, &runner->changed, seen, deadline_ns); */
#endif
        event_wait(seen);
        lock()
    od;
    unlock()
}

init {
    byte t;

    atomic {
        for (t : 0 .. THREADS - 1) {
            run memory(t)
        }
        run changer(0);
        for (t : 1 .. THREADS - 1) {
            run waiter(t)
        }
    }
}

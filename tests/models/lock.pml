/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lock.pml - a mutex that favours a thread: src/base/lock.c, src/base/thread.h.
 *
 * Model   Thread 0 is favoured, and the mutex is open; it takes it TURNS times, and opens it again whenever it had to take
 *         m. The others take it once each. m itself is a variable here, the words of the favoured thread are memory, and
 *         so is what the mutex guards: a count. Waits are looks, as those of the code end by themselves.
 * Says    One at a time, each sees what the one before it wrote, and all get in.
 * Checks
 *
 *   holds  -DTHREADS=2
 *   holds  -DTHREADS=2 -DPSO
 *   holds  -DTHREADS=3 -DTURNS=2
 *   holds  -DTHREADS=3 -DTURNS=2 -DPSO
 *   wrong  -DTHREADS=2 -DNO_BARRIER             who closes looks at a word that is still in a buffer
 *   wrong  -DTHREADS=2 -DLOOK_ONCE              the favoured thread does not look again once it is inside
 *   wrong  -DTHREADS=2 -DNO_WAIT                who closes does not wait for who is inside
 *   wrong  -DTHREADS=3 -DTURNS=2 -DOPEN_TOO_LATE  it is opened by who has let go of m
 *   wrong  -DTHREADS=2 -DPSO -DLEAVE_RELAXED    what was written inside comes out later
 */
#ifndef TURNS
#define TURNS 3
#endif
#define DEPTH 4
#define OPEN 0
#define INSIDE 1
#define COUNT 2
#define WORDS 3
#include "memory.pml"

bit  locked; /* m: whoever takes it sees what was written under it */
byte inside; /* threads that have the mutex */
byte done;

inline lock_m() { atomic { !locked -> locked = 1 } }
inline unlock_m() { atomic { drained -> locked = 0 } }

inline work()
{
    atomic { assert(inside == 0); inside++ };
    load(COUNT, n);
    store(COUNT, n + 1);
    inside--;
    n = 0
}

proctype favoured(byte me)
{
    byte i, n;
    bit  by_m;

    for (i : 1 .. TURNS) {
        by_m = 1;
        load(OPEN, n); /* = base/thread.h: atomic_load_explicit(&mutex->open, memory_order_relaxed) == 0) return false; */
        if
        :: n != 0 ->
            store(INSIDE, 1); /* = base/thread.h: atomic_store_explicit(&mutex->inside, 1, memory_order_relaxed); */
#ifndef LOOK_ONCE
            load(OPEN, n); /* = base/thread.h: if (atomic_load_explicit(&mutex->open, memory_order_relaxed) != 0) return true; */
#endif
            if
            :: n != 0 -> by_m = 0
            :: else -> store_release(INSIDE, 0) /* = base/lock.c: atomic_store_explicit(&mutex->inside, 0, memory_order_release); */
            fi
        :: else
        fi;
        if
        :: by_m ->
            lock_m(); /* = base/lock.c: pthread_mutex_lock(&mutex->m); if (mutex->port != NULL && !mutex->refused) count(mutex); */
#ifndef OPEN_TOO_LATE
            store(OPEN, 1); /* = base/lock.c: atomic_store_explicit(&mutex->open, 1, memory_order_relaxed); */
#endif
            work();
            unlock_m();
#ifdef OPEN_TOO_LATE
            store(OPEN, 1)
#endif
        :: else ->
            work();
#ifdef LEAVE_RELAXED
            store(INSIDE, 0)
#else
            store_release(INSIDE, 0) /* = base/thread.h: atomic_store_explicit(&mutex->inside, 0, memory_order_release); */
#endif
        fi
    };
    atomic { drained -> done++ }
}

proctype another(byte me)
{
    byte n;

    lock_m();
    load(OPEN, n); /* = base/lock.c: if (atomic_load_explicit(&mutex->open, memory_order_relaxed) != 0) close_door(mutex); */
    if
    :: n != 0 ->
        store_seq_cst(OPEN, 0); /* = base/lock.c: atomic_store(&mutex->open, 0); */
        drained;
#ifndef NO_BARRIER
        fence_others(n); /* = base/lock.c: if (!port->ops->fence_own(port)) { */
#endif
#ifndef NO_WAIT
        mem[INSIDE] == 0 /* = base/lock.c: for (i = 0; atomic_load_explicit(&mutex->inside, memory_order_acquire) != 0; i++) */
#endif
    :: else
    fi;
    work();
    unlock_m();
    atomic { drained -> done++ }
}

init {
    byte t;

    atomic {
        mem[OPEN] = 1;
        for (t : 0 .. THREADS - 1) {
            run memory(t)
        }
        run favoured(0);
        for (t : 1 .. THREADS - 1) {
            run another(t)
        }
    };
    done == THREADS;
    assert(mem[COUNT] == TURNS + THREADS - 1)
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wait.pml - no wake-up is lost between members that post and sleep: src/coll/host/wait.c.
 *
 * Model   Each member posts ROUNDS times in a word of its own, and after each post waits until all others have come
 *         as far. All are posters and sleepers. Sleeps have no end of their own: after a lost wake-up nobody moves.
 * Checks  runs, and what must come of each; the mutants take one thing away that the argument needs:
 *
 *   holds  -DFENCED                         the poster only keeps its order, the sleeper has the barrier
 *   holds  -DFENCED -DPSO
 *   holds  -DFENCED -DTHREADS=3             two may sleep on one word
 *   holds  -DPSO -DFENCED -DTHREADS=3 -DROUNDS=1
 *   holds  -DFALLBACK                       all four accesses are sequentially consistent
 *   holds  -DFALLBACK -DPSO
 *   stuck  -DFENCED -DNO_BARRIER            the store waits in the buffer while the poster looks for sleepers
 *   stuck  -DFENCED -DBARRIER_TOO_EARLY     before the sleeper says that it sleeps
 *   stuck  -DFENCED -DPOSTER_SWAPPED        as a compiler may without the signal fence
 *   stuck  -DFENCED -DNO_COMPARE            the port sleeps whatever the word is by now
 *   stuck  -DFALLBACK -DRELAXED_POSTER      the fast poster on a port without the barrier
 */
#ifndef THREADS
#define THREADS 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#define DEPTH 2
#define VALUE(r) (r)              /* lines->counters[kind].at */
#define WAITERS(r) (THREADS + (r)) /* lines->counters[kind].waiters */
#define WORDS (2 * THREADS)
#include "memory.pml"

#if defined FENCED || defined RELAXED_POSTER
inline post(v)
{
#ifdef POSTER_SWAPPED
    load(WAITERS(me), n);
    store_release(VALUE(me), v);
#else
    store_release(VALUE(me), v); /* = coll/host/wait.c: atomic_store_explicit(&word->value, value, memory_order_release); */
    /* = coll/host/wait.c: atomic_signal_fence(memory_order_seq_cst); */
    load(WAITERS(me), n);        /* = coll/host/wait.c: n = atomic_load_explicit(waiters, memory_order_relaxed); */
#endif
    if
    :: n != 0 -> wake_word(VALUE(me)) /* = coll/host/wait.c: port->ops->wake_word(port, &word->half[LOW_HALF]); */
    :: else
    fi
}
#else
inline post(v)
{
    store_seq_cst(VALUE(me), v);  /* = coll/host/wait.c: atomic_store(&word->value, value); */
    load_seq_cst(WAITERS(me), n); /* = coll/host/wait.c: n = atomic_load(waiters); */
    if
    :: n != 0 -> wake_word(VALUE(me))
    :: else
    fi
}
#endif

/* sleep_on() */
inline sleep_on(r, v)
{
#ifdef BARRIER_TOO_EARLY
    fence_others(left);
#endif
    add(WAITERS(r), 1, n); /* = coll/host/wait.c: atomic_fetch_add(w->waiters, 1); */
#if defined FENCED && !defined NO_BARRIER && !defined BARRIER_TOO_EARLY
    fence_others(left);    /* = coll/host/wait.c: sure = port->ops->fence_others(port); */
#endif
    load_seq_cst(VALUE(r), seen); /* = coll/host/wait.c: seen = atomic_load(&w->word->value); */
    if
    :: seen < v -> /* = coll/host/wait.c: if (!satisfies(w, seen, value)) */
#ifdef NO_COMPARE
        sleeps_on[me] = VALUE(r) + 1;
        sleeps_on[me] == 0
#else
        wait_word(VALUE(r), seen) /* = coll/host/wait.c: port->ops->wait_word(port, &w->word->half[LOW_HALF], (uint32_t)seen, until); */
#endif
    :: else
    fi;
    add(WAITERS(r), -1, n) /* = coll/host/wait.c: atomic_fetch_sub(w->waiters, 1); */
}

/* wait_long(), which sleeps at once */
inline await(r, v)
{
    do
    :: load(VALUE(r), seen);
        if
        :: seen >= v -> break
        :: else -> sleep_on(r, v)
        fi
    od
}

proctype member(byte me)
{
    byte round, r, n, seen, left;

    for (round : 1 .. ROUNDS) {
        post(round);
        r = 0;
        do
        :: r < THREADS && r != me -> await(r, round); r++
        :: r == me -> r++
        :: r == THREADS && r != me -> break
        od;
        seen = 0; n = 0
    }
}

init {
    byte t;

    atomic {
        for (t : 0 .. THREADS - 1) {
            run memory(t);
            run member(t)
        }
    }
}

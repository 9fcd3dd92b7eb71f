/* SPDX-License-Identifier: BSD-3-Clause
 *
 * base/thread.h - threads, short locks, and the event count that replaces condition variables.
 *
 * A mutex guards a few instructions and is never held across a wait. Whoever waits for a change takes the
 * event's count under the lock, lets go, and sleeps in tti_event_wait(); whoever changes something signals.
 * The sleep goes through the port, so a virtual clock sees it. */
#ifndef TTI_BASE_THREAD_H
#define TTI_BASE_THREAD_H

#include <pthread.h>
#include "base/port.h"

/** lock.c has the protocol of a mutex that favours a thread. */
typedef struct tti_mutex {
    pthread_mutex_t   m;
    tti_port         *port;     /* constant; NULL: nobody is favoured */
    _Atomic uintptr_t favoured; /* written once, under m; 0: nobody yet */
    _Atomic uint32_t  open;     /* written under m: the favoured thread needs no m */
    _Atomic uint32_t  inside;   /* written by the favoured thread alone: it is in, without m */
    uintptr_t         last;     /* under m: who took it last, */
    uint32_t          row;      /* and how often in a row */
    bool              refused;  /* under m: there is no barrier any more */
} tti_mutex;

void tti_mutex_init(tti_mutex *mutex);
/** Let the thread that takes it most have it without atomic operations. Others pay a system call when they take it in
 * between. Before it is used; does nothing where the port has no fence_own(). */
void tti_mutex_favour(tti_mutex *mutex, tti_port *port);
void tti_mutex_release(tti_mutex *mutex);
/** What tti_lock() and tti_unlock() do where it is not all done here. */
void tti_lock_slowly(tti_mutex *mutex);
void tti_unlock_slowly(tti_mutex *mutex);
/** The favoured thread steps back, or leaves, and somebody waits for that. */
void tti_lock_let_in(tti_mutex *mutex);

/** Names the calling thread. */
static inline uintptr_t tti_self(void)
{
    return (uintptr_t)__builtin_thread_pointer();
}

static inline bool tti_lock_favoured(tti_mutex *mutex)
{
    if (atomic_load_explicit(&mutex->favoured, memory_order_relaxed) != tti_self() ||
        atomic_load_explicit(&mutex->open, memory_order_relaxed) == 0)
        return false;
    (void)atomic_load_explicit(&mutex->inside, memory_order_acquire); /* of a thread that had this name before */
    atomic_store_explicit(&mutex->inside, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* of the compiler only: the processor's is the other thread's */
    if (atomic_load_explicit(&mutex->open, memory_order_relaxed) != 0)
        return true;
    tti_lock_let_in(mutex);
    return false;
}

static inline void tti_lock(tti_mutex *mutex)
{
    if (!tti_lock_favoured(mutex))
        tti_lock_slowly(mutex);
}

static inline void tti_unlock(tti_mutex *mutex)
{
    if (atomic_load_explicit(&mutex->favoured, memory_order_relaxed) != tti_self() ||
        atomic_load_explicit(&mutex->inside, memory_order_relaxed) == 0)
        tti_unlock_slowly(mutex);
    else if (atomic_load_explicit(&mutex->open, memory_order_relaxed) == 0)
        tti_lock_let_in(mutex);
    else
        atomic_store_explicit(&mutex->inside, 0, memory_order_release); /* it may be freed from here on */
}

/** Counts changes. Zeroed memory is a fresh event; it may lie in memory that processes share. */
typedef struct tti_event {
    _Atomic uint32_t count;
    _Atomic uint32_t waiters;
} tti_event;

/** The count to hand to tti_event_wait(); take it before looking at what the event announces. */
static inline uint32_t tti_event_now(const tti_event *event)
{
    return atomic_load_explicit(&event->count, memory_order_acquire);
}

/** Sleep until the count differs from seen or the deadline; may return early. */
void tti_event_wait(tti_port *port, tti_event *event, uint32_t seen, int64_t deadline_ns);

/** Announce a change made before; costs no system call when nobody sleeps. */
void tti_event_signal(tti_port *port, tti_event *event);

/** Between two looks at a flag: lets the other thread of a core work, and the flag's line arrive. */
static inline void tti_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

enum { TTI_CPU_WORDS = 4 };

/** Which cores these are: core c is bit c of the words, counted round behind the last one. */
void tti_usable_cpus(uint64_t words_out[TTI_CPU_WORDS]);
/** Cores that the machine has running, whoever may use them; as many as a quota leaves to this process's
 * control group, if that is fewer. At least 1. */
int tti_running_cores(void);

typedef struct tti_thread {
    pthread_t id;
    void     *of_port; /* on a port that stands in for the machine: what it calls the thread */
    bool      running;
} tti_thread;

/** Start body(arg) on a thread with all signals blocked, named name (at most 15 characters). */
tutti_status tti_thread_start(tti_thread *thread, const char *name, void (*body)(void *arg), void *arg);
/** Wait for its end; a thread that was never started is fine. */
void tti_thread_join(tti_thread *thread);
/** The same two, of the machine also where a port stands in for it: for what waits in other ways than the port's. */
tutti_status tti_thread_start_real(tti_thread *thread, const char *name, void (*body)(void *arg), void *arg);
void tti_thread_join_real(tti_thread *thread);

#endif

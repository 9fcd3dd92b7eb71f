/* SPDX-License-Identifier: BSD-3-Clause
 *
 * thread.c - event counts, threads. Mutexes are lock.c's.
 *
 * The event's protocol: a waiter raises `waiters`, then sleeps only if `count` is still what it saw; a
 * signaller raises `count`, then wakes only if `waiters` is not zero. Both sides use sequentially
 * consistent operations on the two words, so at least one of them sees the other's store: either the
 * signaller sees the waiter and wakes it, or the waiter sees the new count and does not sleep. */
#include "base/thread.h"

#include <assert.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <tutti/private.h>
#include "base/last.h"
#include "base/log.h"
#include "base/quota.h"

void tti_event_wait(tti_port *port, tti_event *event, uint32_t seen, int64_t deadline_ns)
{
    atomic_fetch_add(&event->waiters, 1);
    if (atomic_load(&event->count) == seen)
        port->ops->wait_word(port, &event->count, seen, deadline_ns);
    atomic_fetch_sub(&event->waiters, 1);
}

void tti_event_signal(tti_port *port, tti_event *event)
{
    atomic_fetch_add(&event->count, 1);
    if (atomic_load(&event->waiters) != 0)
        port->ops->wake_word(port, &event->count);
}

void tti_usable_cpus(uint64_t words_out[TTI_CPU_WORDS])
{
    cpu_set_t set;
    int       c;

    memset(words_out, 0, TTI_CPU_WORDS * sizeof *words_out);
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        CPU_SET(0, &set);
    for (c = 0; c < CPU_SETSIZE; c++)
        if (CPU_ISSET(c, &set))
            words_out[c / 64 % TTI_CPU_WORDS] |= UINT64_C(1) << c % 64;
}

int tti_running_cores(void)
{
    const long     n = sysconf(_SC_NPROCESSORS_ONLN);
    const uint64_t quota = tti_port_stand_in() != NULL ? 1 : tti_cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup");

    if (quota != 0 && quota < (uint64_t)n)
        return (int)quota;
    return n >= 1 ? (int)n : 1;
}

typedef struct thread_start {
    void (*body)(void *arg);
    void *arg;
} thread_start;

static void *thread_main(void *raw)
{
    thread_start start = *(thread_start *)raw;

    free(raw);
    tti_own_thread_begins();
    start.body(start.arg);
    tti_own_thread_ends();
    return NULL;
}

tutti_status tti_thread_start_real(tti_thread *thread, const char *name, void (*body)(void *arg), void *arg)
{
    thread_start *start = malloc(sizeof *start);
    sigset_t      all, before;
    int           err;

    assert(!thread->running);
    if (start == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to start thread '%s'", name);
    *start = (thread_start){ .body = body, .arg = arg };
    tti_note_thread();
    tti_log_keep_env();

    /* Signals belong to the program's own threads: ours start with all of them blocked. */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    err = pthread_create(&thread->id, NULL, thread_main, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err != 0) {
        free(start);
        return tti_fail_errno_as(TUTTI_E_NOMEM, err, "cannot start thread '%s'", name);
    }
    pthread_setname_np(thread->id, name);
    thread->running = true;
    return TUTTI_OK;
}

tutti_status tti_thread_start(tti_thread *thread, const char *name, void (*body)(void *arg), void *arg)
{
    tti_port    *port = tti_port_stand_in();
    tutti_status st;

    if (port == NULL)
        return tti_thread_start_real(thread, name, body, arg);
    assert(!thread->running);
    st = port->ops->thread_start(port, name, body, arg, &thread->of_port);
    thread->running = st == TUTTI_OK;
    return st;
}

void tti_thread_join_real(tti_thread *thread)
{
    if (!thread->running)
        return;
    pthread_join(thread->id, NULL);
    thread->running = false;
}

void tti_thread_join(tti_thread *thread)
{
    tti_port *port = tti_port_stand_in();

    if (port == NULL) {
        tti_thread_join_real(thread);
    } else if (thread->running) {
        port->ops->thread_join(port, thread->of_port);
        thread->running = false;
    }
}

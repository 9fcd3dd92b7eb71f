/* SPDX-License-Identifier: BSD-3-Clause
 *
 * port_system.c - the machine itself: clock, futex, random numbers, poll, bells.
 *
 * A handle is a descriptor. There is no state: the port is one constant that all threads share. Sockets
 * stand in port_socket.c. */
#include "base/fork.h"
#include "base/port_filter.h"
#include "base/port_system.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <tutti/private.h>

int64_t tti_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * TTI_SECOND + now.tv_nsec;
}

static int64_t system_now(tti_port *port)
{
    (void)port;
    return tti_now_ns();
}

static struct timespec timespec_of(int64_t ns)
{
    return (struct timespec){ .tv_sec = ns / TTI_SECOND, .tv_nsec = ns % TTI_SECOND };
}

static void system_sleep_until(tti_port *port, int64_t deadline_ns)
{
    struct timespec until = timespec_of(deadline_ns);

    (void)port;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        continue;
}

static void system_random(tti_port *port, void *out, size_t bytes)
{
    uint8_t *at = out;
    ssize_t  got;

    (void)port;
    while (bytes > 0) {
        got = getrandom(at, bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            abort(); /* nonces and secrets must never be guessable */
        at += got;
        bytes -= (size_t)got;
    }
}

static void system_yield(tti_port *port)
{
    (void)port;
    sched_yield();
}

/* A thread of the batch class gets its turns as others do, but waking up does not take the core from one of the ordinary class.
 * System calls, because a C library may take the number for that of a process. */
static bool system_stand_back(tti_port *port, bool back)
{
    const struct sched_param none = { .sched_priority = 0 };

    (void)port;
    return syscall(SYS_sched_getscheduler, 0) == (back ? SCHED_OTHER : SCHED_BATCH) &&
           syscall(SYS_sched_setscheduler, 0, back ? SCHED_BATCH : SCHED_OTHER, &none) == 0;
}

/* FUTEX_WAIT_BITSET takes an absolute monotonic time. Not FUTEX_PRIVATE: the word may be shared. */
static void system_wait_word(tti_port *port, const _Atomic uint32_t *word, uint32_t seen,
                             int64_t deadline_ns)
{
    struct timespec until = timespec_of(deadline_ns);

    (void)port;
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET, seen, deadline_ns == TTI_FOREVER ? NULL : &until, NULL,
            FUTEX_BITSET_MATCH_ANY);
}

static void system_wake_word(tti_port *port, const _Atomic uint32_t *word)
{
    (void)port;
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* The expedited kind: it interrupts the cores that run such a process, and waits for nothing else. */
static bool system_fence_join(tti_port *port)
{
    const long known = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

    (void)port;
    return known > 0 && (known & MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0 &&
           (known & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
           syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0 &&
           syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static bool system_fence_others(tti_port *port)
{
    (void)port;
    return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
}

static bool system_fence_own(tti_port *port)
{
    (void)port;
    return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

/* poll(2) in slices of whole ns through ppoll; a caller's set is small, so the copy lives on the stack. */
static int poll_once(struct pollfd *fds, int n, int64_t deadline_ns)
{
    struct timespec left;
    int64_t         ns;

    if (deadline_ns == TTI_FOREVER)
        return ppoll(fds, (nfds_t)n, NULL, NULL);
    ns = deadline_ns - tti_now_ns();
    left = timespec_of(ns > 0 ? ns : 0);
    return ppoll(fds, (nfds_t)n, &left, NULL);
}

static uint8_t events_got(short revents)
{
    return (uint8_t)(((revents & (POLLIN | POLLHUP | POLLERR)) ? TTI_READ : 0) |
                     ((revents & (POLLOUT | POLLHUP | POLLERR)) ? TTI_WRITE : 0) |
                     ((revents & (POLLHUP | POLLERR | POLLNVAL)) ? TTI_HANGUP : 0));
}

static int poll_sockets(tti_port *port, tti_poll *set, int n, int64_t deadline_ns)
{
    enum { ON_STACK = 64 };
    struct pollfd  few[ON_STACK];
    struct pollfd *fds = few;
    int            ready;
    int            i;

    (void)port;
    if (n > ON_STACK && (fds = calloc((size_t)n, sizeof *fds)) == NULL)
        return 0; /* a spurious empty answer: every caller looks again */
    for (i = 0; i < n; i++) {
        fds[i].fd = set[i].handle;
        fds[i].events = (short)(((set[i].want & TTI_READ) ? POLLIN : 0) |
                                ((set[i].want & TTI_WRITE) ? POLLOUT : 0));
        fds[i].revents = 0;
    }
    do
        ready = poll_once(fds, n, deadline_ns);
    while (ready < 0 && errno == EINTR);
    for (i = 0; i < n; i++)
        set[i].got = ready > 0 ? events_got(fds[i].revents) : 0;
    if (fds != few)
        free(fds);
    return ready > 0 ? ready : 0;
}

static int system_poll(tti_port *port, tti_poll *set, int n, int64_t deadline_ns)
{
    if (tti_filters_in_use())
        return tti_filter_poll(port, set, n, deadline_ns, poll_sockets);
    return poll_sockets(port, set, n, deadline_ns);
}

/* ---- streams, and what some of them go through ---- */

static int64_t system_send(tti_port *port, tti_handle handle, const tti_part *parts, int n_parts)
{
    tti_filter *filter = tti_filters_in_use() ? tti_filter_take(handle) : NULL;
    int64_t     sent;

    if (filter == NULL)
        return tti_socket_send(port, handle, parts, n_parts);
    sent = filter->ops->send(filter, parts, n_parts);
    tti_filter_drop(filter);
    return sent;
}

static int64_t system_recv(tti_port *port, tti_handle handle, void *out, size_t bytes)
{
    tti_filter *filter = tti_filters_in_use() ? tti_filter_take(handle) : NULL;
    int64_t     got;

    if (filter == NULL)
        return tti_socket_recv(port, handle, out, bytes);
    got = filter->ops->recv(filter, out, bytes);
    tti_filter_drop(filter);
    return got;
}

static int system_attach_filter(tti_port *port, tti_handle handle, tti_filter *filter)
{
    (void)port;
    filter->raw_send = tti_socket_send;
    filter->raw_recv = tti_socket_recv;
    filter->raw_poll = poll_sockets;
    return tti_filter_attach(handle, filter) ? 0 : -ENOMEM;
}

static int system_bell_create(tti_port *port, tti_handle *bell_out)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    (void)port;
    if (fd < 0)
        return -errno;
    tti_fork_own(fd);
    *bell_out = fd;
    return 0;
}

static void system_bell_ring(tti_port *port, tti_handle bell)
{
    const uint64_t one = 1;
    ssize_t        written;

    (void)port;
    written = write(bell, &one, sizeof one);
    (void)written; /* EAGAIN: rung 2^64-2 times already, so it is readable */
}

static void system_bell_clear(tti_port *port, tti_handle bell)
{
    uint64_t count;
    ssize_t  got;

    (void)port;
    got = read(bell, &count, sizeof count);
    (void)got; /* EAGAIN: nobody rang */
}

/* A pidfd. */
static int system_life_create(tti_port *port, tti_handle *life_out)
{
    const int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

    (void)port;
    if (fd < 0)
        return -errno;
    tti_fork_own(fd);
    *life_out = fd;
    return 0;
}

static void system_close(tti_port *port, tti_handle handle)
{
    (void)port;
    if (tti_filters_in_use())
        tti_filter_end(handle);
    tti_fork_disown(handle);
    if (handle >= 0)
        close(handle);
}

static const tti_port_ops system_ops = {
    .name = "system",
    .now_ns = system_now,
    .sleep_until = system_sleep_until,
    .random = system_random,
    .yield = system_yield,
    .stand_back = system_stand_back,
    .wait_word = system_wait_word,
    .wake_word = system_wake_word,
    .resolve = tti_socket_resolve,
    .connect = tti_socket_connect,
    .connect_from = tti_socket_connect_from,
    .connect_result = tti_socket_connect_result,
    .listen = tti_socket_listen,
    .accept = tti_socket_accept,
    .local_addr = tti_socket_local_addr,
    .route = tti_socket_route,
    .interfaces = tti_socket_interfaces,
    .link_facts = tti_socket_link_facts,
    .send = system_send,
    .recv = system_recv,
    .poll = system_poll,
    .close = system_close,
    .send_fds = tti_socket_send_fds,
    .recv_fds = tti_socket_recv_fds,
    .peer_cred = tti_socket_peer_cred,
    .bell_create = system_bell_create,
    .bell_ring = system_bell_ring,
    .bell_clear = system_bell_clear,
    .fence_join = system_fence_join,
    .fence_others = system_fence_others,
    .fence_own = system_fence_own,
    .set_congestion = tti_socket_set_congestion,
    .stream_facts = tti_socket_stream_facts,
    .let_wait = tti_socket_let_wait,
    .make_room = tti_socket_make_room,
    .bound_room = tti_socket_bound_room,
    .resend_after = tti_socket_resend_after,
    .attach_filter = system_attach_filter,
    .life_create = system_life_create,
};

static tti_port system_port = { .ops = &system_ops };

/* State of a thread, and must be: who rehearses a program (src/rehearse) calls the library as the program does, which names
 * no port. The count keeps locks from looking at it in all other processes; it is only a hint to other threads, and a
 * thread always sees its own change. */
static _Thread_local tti_port *stand_in;
static _Atomic uint32_t        n_stand_ins;

void tti_port_let_stand_in(tti_port *port)
{
    if (stand_in == NULL && port != NULL)
        atomic_fetch_add(&n_stand_ins, 1);
    else if (stand_in != NULL && port == NULL)
        atomic_fetch_sub(&n_stand_ins, 1);
    stand_in = port;
}

tti_port *tti_port_stand_in(void)
{
    return atomic_load_explicit(&n_stand_ins, memory_order_relaxed) != 0 ? stand_in : NULL;
}

tti_port *tti_port_system(void)
{
    tti_port *other = tti_port_stand_in();

    return other != NULL ? other : &system_port;
}

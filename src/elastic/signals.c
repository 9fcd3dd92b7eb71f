/* SPDX-License-Identifier: BSD-3-Clause
 *
 * signals.c - a handler that writes the signal's number into a pipe.
 *
 * Why     A signalfd needs the signals blocked in every thread of the process, and a library cannot
 *         see to that; a handler works whatever thread the kernel chooses.
 * State   A handler has no argument, and signal actions belong to the process: so does this state. It
 *         is taken by one launch at a time (`taken`); the handler sees only `bell` and `inside`.
 * True    After tti_signals_give_back() no handler of ours runs or will run. */
#include "elastic/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sched.h>
#include <unistd.h>
#include <tutti/private.h>

static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD };
enum { N_NUMBERS = sizeof numbers / sizeof numbers[0] };

static atomic_bool taken;
static atomic_int bell = -1; /* the pipe's end to write to */
static atomic_int inside;    /* handlers running at this moment */
static struct sigaction before[N_NUMBERS];

static void ring(int number)
{
    unsigned char byte = (unsigned char)number;
    int saved = errno;
    ssize_t done = 0;
    int fd;

    atomic_fetch_add(&inside, 1);
    fd = atomic_load(&bell);
    if (fd >= 0)
        done = write(fd, &byte, 1);
    (void)done; /* a full pipe has signals enough */
    atomic_fetch_sub(&inside, 1);
    errno = saved;
}

static bool was_ignored(int i)
{
    return (before[i].sa_flags & SA_SIGINFO) == 0 && before[i].sa_handler == SIG_IGN;
}

static void take_one(int i)
{
    struct sigaction action = { .sa_handler = ring };

    sigfillset(&action.sa_mask);
    sigaction(numbers[i], NULL, &before[i]);
    if (numbers[i] == SIGPIPE)
        action.sa_handler = SIG_IGN;
    else if (numbers[i] == SIGCHLD && !was_ignored(i) && (before[i].sa_flags & SA_NOCLDWAIT) == 0)
        return;
    else if (numbers[i] == SIGCHLD)
        action.sa_handler = SIG_DFL; /* ignored, children would vanish before they are waited for */
    else if (numbers[i] != SIGTERM && was_ignored(i))
        return;
    sigaction(numbers[i], &action, NULL);
}

tutti_status tti_signals_take(int *fd_out)
{
    int ends[2];
    int i;

    if (atomic_exchange(&taken, true))
        return tti_fail(TUTTI_E_STATE, "a launch is running in this process already");
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        atomic_store(&taken, false);
        return tti_fail_errno(errno, "cannot make a pipe for signals");
    }
    atomic_store(&bell, ends[1]);
    for (i = 0; i < N_NUMBERS; i++)
        take_one(i);
    *fd_out = ends[0];
    return TUTTI_OK;
}

int tti_signals_next(int fd)
{
    unsigned char byte;
    ssize_t n;

    do
        n = read(fd, &byte, 1);
    while (n < 0 && errno == EINTR);
    return n == 1 ? byte : 0;
}

void tti_signals_give_back(int fd)
{
    int write_end;
    int i;

    for (i = 0; i < N_NUMBERS; i++)
        sigaction(numbers[i], &before[i], NULL);
    write_end = atomic_exchange(&bell, -1);
    while (atomic_load(&inside) > 0)
        sched_yield();
    close(write_end);
    close(fd);
    atomic_store(&taken, false);
}

void tti_signals_in_child(void)
{
    struct sigaction action = { .sa_handler = SIG_DFL };
    sigset_t none;
    int i;

    for (i = 0; i < N_NUMBERS; i++)
        if (!was_ignored(i))
            sigaction(numbers[i], &action, NULL);
        else
            sigaction(numbers[i], &before[i], NULL);
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * keeper.c - outlives its parent by a moment.
 *
 * Why     A launcher that gets SIGKILL cannot remove its secret file, nor end its ranks: the kernel sends
 *         them SIGTERM, but not their children, and not twice. Somebody else has to.
 * How     A pipe of which only the launcher holds the writing end. Numbers come through it: a process
 *         group to watch, the negative of one to forget, or 0 to forget all. Its end is the launcher's,
 *         by intention (after a 0) or not. Then the files are removed, and the groups that are left get
 *         SIGTERM and SIGCONT, GRACE_MS later SIGKILL. A group seen to be gone is not signalled again,
 *         so a number that a stranger gets meanwhile is his.
 *         The keeper is forked without exec and makes only async-signal-safe calls; it blocks all
 *         signals, leads its own session so that the terminal does not reach it, and holds no descriptor
 *         but the pipe's, so that it delays nobody. */
#include "elastic/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <tutti/private.h>

enum { GRACE_MS = 2000, LOOK_MS = 10 };

static void close_from(int first, int end)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, (unsigned)first, ~0U, 0) == 0)
        return;
#endif
    for (; first < end; first++)
        close(first);
}

/* ---- in the keeper ----------------------------------------------------------------------------- */

typedef struct groups {
    int n;
    pid_t leader[TTI_KEEPER_GROUPS_MAX];
} groups;

static void forget(groups *g, pid_t group)
{
    int kept = 0;
    int i;

    for (i = 0; i < g->n; i++)
        if (g->leader[i] != group)
            g->leader[kept++] = g->leader[i];
    g->n = kept;
}

/* Until the launcher is gone: which groups there are. */
static void listen_to_launcher(groups *g)
{
    pid_t group;
    ssize_t n;

    do {
        n = read(STDIN_FILENO, &group, sizeof group); /* written at once, so read at once */
        if (n != (ssize_t)sizeof group)
            continue;
        if (group == 0)
            g->n = 0;
        else if (group < 0)
            forget(g, -group);
        else if (g->n < TTI_KEEPER_GROUPS_MAX)
            g->leader[g->n++] = group;
    } while (n > 0 || (n < 0 && errno == EINTR));
}

/* Send to all, and forget those that are gone. */
static void signal_all(groups *g, int number)
{
    int kept = 0;
    int i;

    for (i = 0; i < g->n; i++)
        if (kill(-g->leader[i], number) == 0)
            g->leader[kept++] = g->leader[i];
    g->n = kept;
}

static void end_all(groups *g)
{
    int left_ms;

    signal_all(g, SIGTERM);
    signal_all(g, SIGCONT);
    for (left_ms = GRACE_MS; left_ms > 0 && g->n > 0; left_ms -= LOOK_MS) {
        poll(NULL, 0, LOOK_MS);
        signal_all(g, 0);
    }
    signal_all(g, SIGKILL);
}

static _Noreturn void keep(const char *file, const char *dir, int fd, int fd_end)
{
    groups g;

    setsid();
    prctl(PR_SET_NAME, "tutti-keeper");
    if (dup2(fd, STDIN_FILENO) < 0)
        _exit(1);
    close_from(STDIN_FILENO + 1, fd_end);
    g.n = 0;
    listen_to_launcher(&g);
    unlink(file);
    rmdir(dir);
    end_all(&g);
    _exit(0);
}

/* ---- in the launcher --------------------------------------------------------------------------- */

tutti_status tti_keeper_start(const char *file, const char *dir, tti_keeper *keeper_out)
{
    int fd_end = (int)sysconf(_SC_OPEN_MAX);
    sigset_t all;
    sigset_t mask;
    int ends[2];
    pid_t pid;
    int err;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return tti_fail_errno(errno, "cannot make a pipe to the job's keeper");
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    pid = fork();
    if (pid == 0)
        keep(file, dir, ends[0], fd_end);
    err = errno;
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        return tti_fail_errno(err, "cannot start the job's keeper");
    }
    *keeper_out = (tti_keeper){ .pid = pid, .fd = ends[1] };
    return TUTTI_OK;
}

static void tell(const tti_keeper *keeper, pid_t group)
{
    ssize_t n;

    if (keeper->pid == 0)
        return;
    do
        n = write(keeper->fd, &group, sizeof group);
    while (n < 0 && errno == EINTR);
}

void tti_keeper_watch(const tti_keeper *keeper, pid_t group)
{
    tell(keeper, group);
}

void tti_keeper_forget(const tti_keeper *keeper, pid_t group)
{
    tell(keeper, -group);
}

void tti_keeper_release(const tti_keeper *keeper)
{
    tell(keeper, 0);
}

void tti_keeper_end(tti_keeper *keeper)
{
    if (keeper->pid == 0)
        return;
    close(keeper->fd);
    while (waitpid(keeper->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    keeper->pid = 0;
}

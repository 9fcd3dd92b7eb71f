/* SPDX-License-Identifier: BSD-3-Clause
 *
 * keeper.c - outlives its parent by a moment.
 *
 * Why     A launcher that gets SIGKILL cannot remove its secret file. Somebody else has to.
 * How     A pipe of which only the launcher holds the writing end; nothing is ever written. Its end is
 *         the launcher's, by intention or not. The keeper is forked without exec and makes only
 *         async-signal-safe calls; it blocks all signals, leads its own session so that the terminal
 *         does not reach it, and holds no descriptor but the pipe's, so that it delays nobody. */
#include "elastic/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <tutti/private.h>

static void close_from(int first, int end)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, (unsigned)first, ~0U, 0) == 0)
        return;
#endif
    for (; first < end; first++)
        close(first);
}

static _Noreturn void keep(const char *file, const char *dir, int fd, int fd_end)
{
    char byte;
    ssize_t n;

    setsid();
    prctl(PR_SET_NAME, "tutti-keeper");
    if (dup2(fd, STDIN_FILENO) < 0)
        _exit(1);
    close_from(STDIN_FILENO + 1, fd_end);
    do
        n = read(STDIN_FILENO, &byte, 1);
    while (n > 0 || (n < 0 && errno == EINTR));
    unlink(file);
    rmdir(dir);
    _exit(0);
}

tutti_status tti_keeper_start(const char *file, const char *dir, tti_keeper *keeper_out)
{
    int fd_end = (int)sysconf(_SC_OPEN_MAX);
    sigset_t all;
    sigset_t mask;
    int ends[2];
    pid_t pid;
    int err;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return tti_fail_errno(errno, "cannot make a pipe to the keeper of '%s'", dir);
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
        return tti_fail_errno(err, "cannot start the keeper of '%s'", dir);
    }
    *keeper_out = (tti_keeper){ .pid = pid, .fd = ends[1] };
    return TUTTI_OK;
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

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_process.c - starting, telling, hearing and ending helpers. */
#include "bench_process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { SILENT_MS = 300000, END_MS = 5000 };

static bool cannot(const char *what)
{
    fprintf(stderr, "tutti bench: cannot %s: %s\n", what, strerror(errno));
    return false;
}

/* In the parent: true with p filled in. In the child: p->pid is 0, and the pipes are 0 and 1. */
static bool split(bench_process *p)
{
    const pid_t parent = getpid();
    int to[2], from[2];

    if (pipe2(to, O_CLOEXEC) != 0)
        return cannot("make a pipe");
    if (pipe2(from, O_CLOEXEC) != 0) {
        close(to[0]);
        close(to[1]);
        return cannot("make a pipe");
    }
    fflush(stdout);
    p->pid = fork();
    if (p->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing is left over when this command is killed */
        if (getppid() != parent || dup2(to[0], STDIN_FILENO) < 0 || dup2(from[1], STDOUT_FILENO) < 0)
            _exit(126);
        closefrom(STDERR_FILENO + 1); /* the pipes of others, which would not end while they are here */
    }
    close(to[0]);
    close(from[1]);
    if (p->pid <= 0) {
        close(to[1]);
        close(from[0]);
        return p->pid == 0 || cannot("start a process");
    }
    p->to = to[1];
    p->from = from[0];
    return true;
}

bool bench_fork(bench_process *p, int (*body)(void *arg), void *arg)
{
    if (!split(p))
        return false;
    if (p->pid == 0)
        _exit(body(arg));
    return true;
}

bool bench_exec(bench_process *p, char *const argv[])
{
    if (!split(p))
        return false;
    if (p->pid == 0) {
        execvp(argv[0], argv);
        fprintf(stderr, "tutti bench: cannot run '%s': %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    return true;
}

bool bench_tell(const bench_process *p, const char *word)
{
    char line[BENCH_LINE_MAX];
    const int n = snprintf(line, sizeof line, "%s\n", word);

    return write(p->to, line, (size_t)n) == n;
}

bool bench_hear(const bench_process *p, char line[BENCH_LINE_MAX])
{
    struct pollfd set = { .fd = p->from, .events = POLLIN };
    size_t n = 0;

    while (n < BENCH_LINE_MAX && poll(&set, 1, SILENT_MS) == 1 && read(p->from, line + n, 1) == 1)
        if (line[n++] == '\n') {
            line[n - 1] = '\0';
            return true;
        }
    return false;
}

void bench_end(bench_process *p)
{
    struct pollfd ends = { .fd = -1, .events = POLLIN };

    if (p->pid <= 0)
        return;
    close(p->to);
    close(p->from);
    ends.fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    if (ends.fd < 0 || poll(&ends, 1, END_MS) != 1)
        kill(p->pid, SIGKILL);
    if (ends.fd >= 0)
        close(ends.fd);
    waitpid(p->pid, NULL, 0);
    *p = (bench_process){ .pid = 0 };
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * child.c - find a program, fork, exec.
 *
 * How     Everything that can fail or allocate is done before fork(): the process may have threads (the
 *         store's server), and the child may then only make async-signal-safe calls.
 *           child   group of its own, no terminal; "SIGTERM when my parent dies", and a look whether it has already;
 *                   pipes to 1 and 2; a word to the keeper; signals as a fresh program expects them; execve
 *           parent  reads the status pipe: its end means that execve has closed it, an errno that it
 *                   failed. So when tti_child_start() returns the process group exists.
 * True    All descriptors of ours are close-on-exec. The two that the child keeps lie above 2, even when
 *         the launcher was started with 0, 1 or 2 closed, so that dup2() never meets its own argument.
 *         All children stay in the launcher's session: with sched_autogroup_enabled, as Debian has it, the scheduler
 *         shares a core among sessions first, and who yields in one hands nothing to another. Ranks that share a
 *         core live from that. Without a controlling terminal they may read it, as if they led sessions.
 * Fails   A child that cannot exec says why and exits with 127; it is collected here. */
#include "elastic/child.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <tutti/private.h>
#include "elastic/signals.h"

enum { INTERPRETER_MAX = 256 }; /* of a script's first line; what the kernel reads */

/* 0 if path can be executed, else why not. */
static int why_not_executable(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return errno;
    if (S_ISDIR(st.st_mode))
        return EISDIR;
    if (!S_ISREG(st.st_mode))
        return EACCES;
    return access(path, X_OK) == 0 ? 0 : errno;
}

/* The next entry of a PATH as "dir/program", allocated; an empty entry is the working directory. */
static char *next_candidate(const char **dirs, const char *program)
{
    size_t len = strcspn(*dirs, ":");
    char *path = NULL;

    if (asprintf(&path, "%.*s/%s", len > 0 ? (int)len : 1, len > 0 ? *dirs : ".", program) < 0)
        return NULL;
    *dirs += len;
    return path;
}

static tutti_status search_path(const char *program, char **path_out)
{
    const char *dirs = tti_env("PATH");
    const char *all = dirs;
    bool seen = false; /* there is one, but it cannot be executed */

    for (;;) {
        char *path = next_candidate(&dirs, program);
        int why;

        if (path == NULL)
            return tti_fail(TUTTI_E_NOMEM, "no memory for the path of '%s'", program);
        why = why_not_executable(path);
        if (why == 0) {
            *path_out = path;
            return TUTTI_OK;
        }
        seen = seen || why == EACCES;
        free(path);
        if (*dirs++ == '\0')
            break;
    }
    if (seen)
        return tti_fail(TUTTI_E_IO, "program '%s' is in PATH, but not executable", program);
    return tti_fail(TUTTI_E_IO, "program '%s' not found in PATH (%s)%s", program, all,
                    access(program, F_OK) == 0 ? "\n  next: write './' before it" : "");
}

static tutti_status take_path(const char *program, char **path_out)
{
    const int why = why_not_executable(program);

    if (why == EISDIR)
        return tti_fail(TUTTI_E_IO, "program '%s' is a directory", program);
    if (why == EACCES)
        return tti_fail(TUTTI_E_IO, "program '%s' is not executable", program);
    if (why != 0)
        return tti_fail_errno_as(TUTTI_E_IO, why, "program '%s' not found", program);
    *path_out = strdup(program);
    if (*path_out == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the path of '%s'", program);
    return TUTTI_OK;
}

/* The interpreter that a script's first line names, or "" for anything else. */
static void read_interpreter(const char *path, char name[INTERPRETER_MAX])
{
    char line[INTERPRETER_MAX] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, line, sizeof line - 1) : -1;
    size_t begin;

    name[0] = '\0';
    if (fd >= 0)
        close(fd);
    if (n < 2 || strncmp(line, "#!", 2) != 0)
        return;
    begin = 2 + strspn(line + 2, " \t");
    line[begin + strcspn(line + begin, " \t\n")] = '\0';
    memcpy(name, line + begin, strlen(line + begin) + 1);
}

/* execve() would only say that something was not found, and leave open that it was not the program. */
static tutti_status check_interpreter(const char *program, const char *path)
{
    char name[INTERPRETER_MAX];
    size_t len;

    read_interpreter(path, name);
    len = strlen(name);
    if (len == 0 || access(name, F_OK) == 0)
        return TUTTI_OK;
    if (name[len - 1] == '\r')
        return tti_fail(
            TUTTI_E_IO,
            "program '%s' cannot be run: its first line ends with a carriage return, which "
            "becomes part of the interpreter's name",
            program);
    return tti_fail(TUTTI_E_IO, "program '%s' cannot be run: its interpreter '%s' does not exist",
                    program, name);
}

tutti_status tti_find_program(const char *program, char **path_out)
{
    char *path = NULL;
    tutti_status st;

    if (program[0] == '\0')
        return tti_fail(TUTTI_E_IO, "the program's name is empty");
    if (strchr(program, '/') == NULL)
        st = search_path(program, &path);
    else
        st = take_path(program, &path);
    if (st == TUTTI_OK)
        st = check_interpreter(program, path);
    if (st == TUTTI_OK)
        *path_out = path;
    else
        free(path);
    return st;
}

/* The descriptors of one start: [0] to read, [1] to write. */
typedef struct pipes {
    int out[2];
    int err[2];
    int status[2];
} pipes;

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int move_up(int *fd)
{
    int high = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

    if (high < 0)
        return -1;
    close(*fd);
    *fd = high;
    return 0;
}

static tutti_status open_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) != 0) {
        ends[0] = ends[1] = -1;
        return tti_fail_errno(errno, "cannot make a pipe for a rank");
    }
    if (ends[1] <= STDERR_FILENO && move_up(&ends[1]) != 0)
        return tti_fail_errno(errno, "cannot move a rank's pipe");
    return TUTTI_OK;
}

static tutti_status open_pipes(pipes *p)
{
    tutti_status st = open_pipe(p->out);

    if (st == TUTTI_OK)
        st = open_pipe(p->err);
    if (st == TUTTI_OK)
        st = open_pipe(p->status);
    if (st == TUTTI_OK) {
        fcntl(p->out[0], F_SETFL, O_NONBLOCK);
        fcntl(p->err[0], F_SETFL, O_NONBLOCK);
    }
    return st;
}

static void close_pipes(pipes *p)
{
    close_fd(&p->out[0]);
    close_fd(&p->out[1]);
    close_fd(&p->err[0]);
    close_fd(&p->err[1]);
    close_fd(&p->status[0]);
    close_fd(&p->status[1]);
}

/* Who is in the background of a terminal is stopped when it reads, unless it is not its own. */
static void leave_terminal(void)
{
    const int terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

    if (terminal < 0)
        return;
    ioctl(terminal, TIOCNOTTY);
    close(terminal);
}

/* The child's side: only async-signal-safe calls from here to execve. */
static _Noreturn void become(const tti_command *command, const pipes *p, pid_t parent)
{
    ssize_t done = 0;
    int err;

    setpgid(0, 0);
    leave_terminal();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(127);
    if (dup2(p->out[1], STDOUT_FILENO) >= 0 && dup2(p->err[1], STDERR_FILENO) >= 0) {
        tti_keeper_watch(command->keeper, getpid());
        tti_signals_in_child();
        if (command->recorder_fd >= 0)
            fcntl(command->recorder_fd, F_SETFD, 0);
        if (command->bulletin_fd >= 0)
            fcntl(command->bulletin_fd, F_SETFD, 0);
        if (command->files != NULL)
            setrlimit(RLIMIT_NOFILE, command->files);
        execve(command->path, command->argv, command->envp);
    }
    err = errno;
    done = write(p->status[1], &err, sizeof err);
    (void)done;
    _exit(127);
}

/* Fork with all signals blocked, so that no handler runs in the child. */
static pid_t fork_child(const tti_command *command, const pipes *p)
{
    sigset_t all;
    sigset_t mask;
    pid_t parent = getpid();
    pid_t pid;
    int err;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    pid = fork();
    if (pid == 0)
        become(command, p, parent);
    err = errno;
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    errno = err;
    return pid;
}

/* 0 when the program runs, else the errno of its execve. */
static int read_exec_errno(int fd)
{
    int err = 0;
    ssize_t n;

    do
        n = read(fd, &err, sizeof err);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof err ? err : 0;
}

static void collect(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

tutti_status tti_child_start(const tti_command *command, tti_child *child_out, int *exec_errno_out)
{
    pipes p = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
    tutti_status st = open_pipes(&p);
    int pidfd = -1;
    int err;
    pid_t pid;

    if (st != TUTTI_OK)
        goto out;
    pid = fork_child(command, &p);
    if (pid < 0) {
        st = tti_fail_errno(errno, "cannot start a process for '%s'", command->path);
        goto out;
    }
    close_fd(&p.status[1]);
    err = read_exec_errno(p.status[0]);
    if (err != 0) {
        tti_keeper_forget(command->keeper, pid);
        collect(pid);
        *child_out = (tti_child){ .pid = pid, .pidfd = -1, .out_fd = -1, .err_fd = -1 };
        *exec_errno_out = err;
        goto out;
    }
    pidfd = (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by itself */
    if (pidfd < 0) {
        st = tti_fail_errno(errno, "cannot watch process %ld", (long)pid);
        kill(-pid, SIGKILL);
        tti_keeper_forget(command->keeper, pid);
        collect(pid);
        goto out;
    }
    *child_out = (tti_child){ .pid = pid, .pidfd = pidfd, .out_fd = p.out[0], .err_fd = p.err[0] };
    *exec_errno_out = 0;
    p.out[0] = p.err[0] = -1;

out:
    close_pipes(&p);
    return st;
}

void tti_child_close(tti_child *child)
{
    close_fd(&child->pidfd);
    close_fd(&child->out_fd);
    close_fd(&child->err_fd);
}

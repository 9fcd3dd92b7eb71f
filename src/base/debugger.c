/* SPDX-License-Identifier: BSD-3-Clause
 *
 * debugger.c - attaching a debugger to this process, from inside.
 *
 * How     A shell that is nobody's child for long starts the debugger beside this process and writes what
 *         it came to into a pipe. This process looks, twenty times a second, whether it is being traced
 *         (/proc/self/status) or the debugger has ended. A debugger stops the process when it attaches;
 *         when it lets it continue, the wait is over, and the debugger stays.
 * True    The handler of SIGCONT is there only while nobody could be started, and only sets a flag, atomic
 *         because any thread may take the signal: signals have no context but the process. Any process may
 *         trace this one while it waits; whoever may signal it could do as much.
 * Terminal  The debugger shares the process group with the program, so that it may read the terminal: an
 *         interrupt typed there reaches both. */
#include "base/debugger.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <tutti/private.h>

extern char **environ;

enum { LOOK_MS = 50, REPORT_FD = 3, CANNOT_RUN = 126, SCRIPT_MAX = 1024 };

static _Atomic int continued;

static void on_continue(int sig)
{
    (void)sig;
    atomic_store(&continued, 1);
}

/* Whether somebody traces this process. */
static bool traced(void)
{
    char  line[128];
    bool  yes = false;
    FILE *status = fopen("/proc/self/status", "re");

    if (status == NULL)
        return false;
    while (fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "TracerPid:", 10) == 0)
            yes = atoi(line + 10) != 0;
    fclose(status);
    return yes;
}

/* Run the script in a shell whose descriptor REPORT_FD is report. */
static int spawn_shell(char *script, int report)
{
    char                      *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, script, NULL };
    posix_spawn_file_actions_t actions;
    pid_t                      pid;
    int                        sys = posix_spawn_file_actions_init(&actions);

    if (sys != 0)
        return sys;
    sys = posix_spawn_file_actions_adddup2(&actions, report, REPORT_FD);
    if (sys == 0)
        sys = posix_spawn(&pid, "/bin/sh", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (sys != 0)
        return sys;
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return 0;
}

/* Start the debugger; its exit code will come out of *report_out. */
static tutti_status start(int *report_out)
{
    static const char form[] = "( if true </dev/tty; then %s -p %ld </dev/tty >/dev/tty 2>&1; "
                               "else %s -p %ld </dev/null; fi 2>/dev/null; echo $? >&3 ) 2>/dev/null &";
    const char       *command = tti_env("TUTTI_DEBUGGER");
    char              script[SCRIPT_MAX];
    int               ends[2];
    int               sys;

    if (snprintf(script, sizeof script, form, command, (long)getpid(), command, (long)getpid()) >= SCRIPT_MAX)
        return tti_fail(TUTTI_E_ARG, "TUTTI_DEBUGGER is longer than a command may be");
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return tti_fail_errno(errno, "cannot make a pipe to the debugger");
    sys = spawn_shell(script, ends[1]);
    close(ends[1]);
    if (sys != 0) {
        close(ends[0]);
        return tti_fail_errno(sys, "cannot start a shell for the debugger");
    }
    *report_out = ends[0];
    return TUTTI_OK;
}

/* Whether the debugger has ended; with which code, -1 if nobody said. */
static bool has_ended(int report, int *code_out)
{
    char          text[16] = "";
    const ssize_t got = read(report, text, sizeof text - 1);

    if (got < 0)
        return errno != EAGAIN && errno != EINTR;
    *code_out = got > 0 ? atoi(text) : -1;
    return true;
}

static tutti_status pause_look(tti_port *port, int64_t deadline_ns)
{
    const int64_t now_ns = tti_port_now(port);

    if (now_ns >= deadline_ns)
        return tti_fail(TUTTI_E_TIMEOUT, "no debugger came to process %ld in time", (long)getpid());
    port->ops->sleep_until(port, now_ns + LOOK_MS * TTI_MS);
    return TUTTI_OK;
}

/* Nothing could be started: whoever reads the log may come. */
static tutti_status await_somebody(tti_port *port, int64_t deadline_ns)
{
    const struct sigaction wake = { .sa_handler = on_continue, .sa_flags = SA_RESTART };
    struct sigaction       before;
    char                   host[64] = "?";
    tutti_status           st = TUTTI_OK;

    atomic_store(&continued, 0);
    if (sigaction(SIGCONT, &wake, &before) != 0)
        return tti_fail_errno(errno, "cannot wait for SIGCONT");
    gethostname(host, sizeof host - 1);
    tti_log(TTI_LOG_WARN,
            "breakpoint: '%.64s' did not run; process %ld on host '%s' waits: attach a debugger (gdb -p %ld), or "
            "let it go on (kill -CONT %ld)",
            tti_env("TUTTI_DEBUGGER"), (long)getpid(), host, (long)getpid(), (long)getpid());
    while (st == TUTTI_OK && atomic_load(&continued) == 0 && !traced())
        st = pause_look(port, deadline_ns);
    sigaction(SIGCONT, &before, NULL);
    return st;
}

static tutti_status await_debugger(tti_port *port, int report, int64_t deadline_ns)
{
    tutti_status st = TUTTI_OK;
    int          code = -1;

    while (st == TUTTI_OK && !traced()) {
        if (has_ended(report, &code))
            return code >= 0 && code < CANNOT_RUN ? TUTTI_OK : await_somebody(port, deadline_ns);
        st = pause_look(port, deadline_ns);
    }
    return st;
}

tutti_status tti_debugger_attend(tti_port *port, int64_t deadline_ns)
{
    int          report = -1;
    tutti_status st;

    if (traced()) { /* the one that is there stops here */
        raise(SIGTRAP);
        return TUTTI_OK;
    }
    st = start(&report);
    if (st != TUTTI_OK)
        return st;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* refused where nothing restricts tracing */
    st = await_debugger(port, report, deadline_ns);
    prctl(PR_SET_PTRACER, 0, 0, 0, 0);
    close(report);
    return st;
}

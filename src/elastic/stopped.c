/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stopped.c - says that a job waits for processes that a signal has stopped.
 *
 * Why     The others of a stopped rank time out, or go on without it and end. Then the launcher has nothing to do but to wait
 *         for it, and whoever looks at the terminal sees a job that hangs.
 * How     The kernel's state of a process is in /proc. 'T' is stopped by a signal; 't', by a debugger, is somebody's wish.
 * Time    Between two looks as much counts as two looks are apart, at the most: a launcher that was stopped itself, with all of
 *         its job, wakes to find that much time has passed, in which nobody could run, and may look before they do. */
#include "elastic/stopped.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/port.h"

#define SAY_NS    (10 * TTI_SECOND)
#define COUNTS_NS (2 * TTI_STOPPED_LOOK_MS * TTI_MS) /* of the time between two looks */

enum { LISTED_MAX = 8 };

static bool is_stopped(pid_t pid)
{
    char        path[32], text[512];
    const char *state;
    ssize_t     n;
    int         fd;

    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    state = strrchr(text, ')'); /* the name before it may have anything in it */
    return state != NULL && strncmp(state, ") T", 3) == 0;
}

static void say(const tti_left *left, int n, int64_t for_ns, int64_t limit_ns)
{
    char   text[1024];
    size_t used = (size_t)snprintf(text, sizeof text, "tutti: waiting for");
    int    i;

    for (i = 0; i < n && i < LISTED_MAX; i++)
        if (left[i].rank >= 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s rank %d (pid %ld)", i > 0 ? "," : "", left[i].rank,
                                     (long)left[i].pid);
        else
            used += (size_t)snprintf(text + used, sizeof text - used, "%s a replacement (pid %ld)", i > 0 ? "," : "",
                                     (long)left[i].pid);
    if (n > LISTED_MAX)
        used += (size_t)snprintf(text + used, sizeof text - used, " and %d more", n - LISTED_MAX);
    used += (size_t)snprintf(text + used, sizeof text - used, ", stopped by a signal; all others have ended, %lld s ago or more",
                             (long long)(for_ns / TTI_SECOND));
    if (limit_ns > for_ns)
        used += (size_t)snprintf(text + used, sizeof text - used, "; ended in %lld s",
                                 (long long)((limit_ns - for_ns + TTI_SECOND - 1) / TTI_SECOND));
    else if (limit_ns > 0)
        used += (size_t)snprintf(text + used, sizeof text - used, ": ended");
    dprintf(STDERR_FILENO, "%s\n", text);
}

int64_t tti_stopped_look(tti_stopped *stopped, const tti_left *left, int n, int64_t now_ns, int64_t limit_ns)
{
    int64_t passed_ns = 0;
    int     i;

    for (i = 0; i < n; i++)
        if (!is_stopped(left[i].pid)) {
            *stopped = (tti_stopped){ .looked_ns = 0 };
            return 0;
        }
    if (stopped->looked_ns != 0)
        passed_ns = now_ns - stopped->looked_ns;
    stopped->looked_ns = now_ns;
    stopped->for_ns += passed_ns < COUNTS_NS ? passed_ns : COUNTS_NS;
    if (stopped->for_ns - stopped->said_ns >= SAY_NS || (limit_ns > 0 && stopped->for_ns >= limit_ns)) {
        stopped->said_ns = stopped->for_ns;
        say(left, n, stopped->for_ns, limit_ns);
    }
    return stopped->for_ns + 1;
}

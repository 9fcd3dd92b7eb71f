/* SPDX-License-Identifier: BSD-3-Clause
 *
 * leaving.c - sees the end of a process before it can be waited for.
 *
 * Why     The end of a process takes time: its memory goes, then its files and connections, and only then its parent is
 *         told. On a busy machine tens of milliseconds lie between the last two. A neighbour that saw the connections close
 *         may have failed, and be gone, before.
 * How     The kernel marks a thread as exiting before it takes anything from it: PF_EXITING in the flags that are the ninth
 *         field of /proc/PID/task/TID/stat. A process leaves when all its threads do.
 * True    Files belong to all threads, and are closed when the last one lets go of them. So all threads of a process have the
 *         mark before anybody can see a connection close because of its end. A process whose main thread has called
 *         pthread_exit() has another one without the mark: it does not leave. */
#include "elastic/leaving.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PF_EXITING 0x4UL

/* A thread that is gone between two looks has left, too. */
static bool thread_leaves(int tasks_fd, const char *thread)
{
    char          path[64], text[512];
    const char   *end;
    unsigned long flags;
    ssize_t       n;
    int           fd;

    snprintf(path, sizeof path, "%.32s/stat", thread);
    fd = openat(tasks_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return true;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return true;
    text[n] = '\0';
    end = strrchr(text, ')'); /* the name before it may have anything in it */
    return end != NULL && sscanf(end, ") %*c %*d %*d %*d %*d %*d %lu", &flags) == 1 && (flags & PF_EXITING) != 0;
}

bool tti_is_leaving(pid_t pid)
{
    const struct dirent *entry;
    char                 path[32];
    DIR                 *tasks;
    bool                 leaves = true;
    int                  n = 0;

    snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    tasks = opendir(path);
    if (tasks == NULL)
        return false;
    while (leaves && (entry = readdir(tasks)) != NULL)
        if (entry->d_name[0] != '.') {
            leaves = thread_leaves(dirfd(tasks), entry->d_name);
            n++;
        }
    closedir(tasks);
    return leaves && n > 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernel.c - what the kernel tells of a process by its pidfd.
 *
 * How     While it is there, /proc has the state, and of one that has ended and was not collected by its parent how it
 *         ended. Once it is collected, kernels from 6.15 on tell that by the descriptor, which all that hold one may
 *         ask. Before that, and where /proc is another's, nothing is known.
 * Between One that is collected after the descriptor was asked, and before /proc is read, is in neither: so both are asked again.
 * Source  proc_pid_stat(5), linux/pidfd.h. The request is declared here, for headers are older than kernels. */
#include "transport/health/health.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STAT_BYTES = 1024, FIELD_STATE = 3, FIELD_EXIT_CODE = 52, INFO_HAS_EXIT = 1 << 3, ASKS = 3 };

typedef struct pidfd_facts {
    uint64_t mask;
    uint64_t cgroup;
    uint32_t ids[11];
    int32_t  exit_code;
} pidfd_facts;

_Static_assert(sizeof(pidfd_facts) == 64, "the first version of the kernel's struct");

#define PIDFD_FACTS _IOWR(0xFF, 11, pidfd_facts)

static ssize_t read_small(const char *path, char *out, size_t bytes)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t   got = -1;

    if (fd < 0)
        return -1;
    got = read(fd, out, bytes - 1);
    close(fd);
    if (got >= 0)
        out[got] = '\0';
    return got;
}

/* /proc/PID/stat of the process behind a pidfd; false: there is none any more. */
static bool read_stat(tti_handle pidfd, char out[STAT_BYTES])
{
    char        path[64], info[512];
    const char *line;
    long        pid;

    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    if (read_small(path, info, sizeof info) <= 0 || (line = strstr(info, "Pid:")) == NULL)
        return false;
    pid = strtol(line + 4, NULL, 10);
    if (pid <= 0)
        return false;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    return read_small(path, out, STAT_BYTES) > 0;
}

/* The field of that number, counted from 1; the second is a name in parentheses, which may hold anything. */
static const char *field_of(const char *stat, int field)
{
    const char *at = strrchr(stat, ')');
    int         n;

    for (n = 2; at != NULL && n < field; n++)
        at = strchr(at + 1, ' ');
    return at != NULL ? at + 1 : "";
}

char tti_kernel_state_of(tti_handle pidfd)
{
    char stat[STAT_BYTES];

    return read_stat(pidfd, stat) ? field_of(stat, FIELD_STATE)[0] : 0;
}

/* 'X': its parent is just collecting it. */
static bool has_ended(char state)
{
    return state == 'Z' || state == 'X';
}

static tti_end_cause cause_of_status(int status)
{
    if (WIFSIGNALED(status))
        return (tti_end_cause){ TTI_CAUSE_SIGNAL, WTERMSIG(status) };
    return (tti_end_cause){ TTI_CAUSE_EXIT, WEXITSTATUS(status) };
}

static tti_end_cause ask_for_cause(tti_handle pidfd)
{
    pidfd_facts facts = { .mask = INFO_HAS_EXIT };
    char        stat[STAT_BYTES];

    if (ioctl(pidfd, PIDFD_FACTS, &facts) == 0 && (facts.mask & INFO_HAS_EXIT) != 0)
        return cause_of_status(facts.exit_code);
    if (read_stat(pidfd, stat) && has_ended(field_of(stat, FIELD_STATE)[0]))
        return cause_of_status((int)strtol(field_of(stat, FIELD_EXIT_CODE), NULL, 10));
    return (tti_end_cause){ .kind = TTI_CAUSE_UNKNOWN };
}

tti_end_cause tti_kernel_cause_of(tti_handle pidfd)
{
    tti_end_cause cause = ask_for_cause(pidfd);
    int           i;

    for (i = 1; i < ASKS && cause.kind == TTI_CAUSE_UNKNOWN; i++)
        cause = ask_for_cause(pidfd);
    return cause;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * far_hosts.c - hosts joined by a relay, which is a process of its own. */
#include "harness/hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RELAY_LIFE_S = 1800 };

/* In the forked process: say that the hosts are joined, or why not, and carry packets. */
static _Noreturn void be_relay(const tt_hosts *hosts, const tt_relay_link *link, int life_fd, int words_fd, pid_t parent)
{
    char      reason[160] = "ready";
    tt_relay *relay = NULL;
    bool      joined;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it was gone before the line above */
        _exit(1);
    joined = tt_relay_open(hosts->fd, hosts->n, link, &relay, reason, sizeof reason);
    if (write(words_fd, reason, strlen(reason)) < 0 || !joined)
        _exit(1);
    close(words_fd);
    tt_relay_run(relay, life_fd, RELAY_LIFE_S);
    _exit(0);
}

static bool start(tt_hosts *hosts, const tt_relay_link *link, char *words, size_t bytes)
{
    const pid_t parent = getpid();
    int         life[2] = { -1, -1 }, said[2] = { -1, -1 };
    size_t      used = 0;
    ssize_t     got;

    if (pipe2(life, O_CLOEXEC) != 0 || pipe2(said, O_CLOEXEC) != 0 || (hosts->relay = fork()) < 0) {
        snprintf(words, bytes, "cannot start a relay: %s", strerror(errno));
        hosts->relay = 0;
        goto out;
    }
    if (hosts->relay == 0) {
        close(life[1]);
        close(said[0]);
        be_relay(hosts, link, life[0], said[1], parent);
    }
    hosts->life_fd = life[1];
    life[1] = -1;
    close(said[1]);
    said[1] = -1;
    while (used + 1 < bytes && (got = read(said[0], words + used, bytes - used - 1)) > 0)
        used += (size_t)got;
    words[used] = '\0';

out:
    if (life[0] >= 0)
        close(life[0]);
    if (life[1] >= 0)
        close(life[1]);
    if (said[0] >= 0)
        close(said[0]);
    if (said[1] >= 0)
        close(said[1]);
    return strcmp(words, "ready") == 0;
}

bool tt_hosts_open_far(const tt_relay_link *link, tt_hosts *hosts_out, char *reason_out, size_t reason_bytes)
{
    tt_hosts hosts;

    if (!tt_hosts_bare(TT_HOSTS, &hosts, reason_out, reason_bytes))
        return false;
    if (!start(&hosts, link, reason_out, reason_bytes)) {
        tt_hosts_close(&hosts);
        return false;
    }
    *hosts_out = hosts;
    return true;
}

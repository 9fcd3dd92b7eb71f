/* SPDX-License-Identifier: BSD-3-Clause
 *
 * net.c - hosts on a bridge: as many namespaces as there can be ranks, and one that has the bridge and the store.
 *
 * A host is cut off by taking its port of the bridge down: from then on nothing reaches it or leaves it, and nothing
 * tells anybody. */
#include "faults.h"

#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BRIDGE = RANKS_MAX, UP_TRIES = 3000 };

const char *tt_net_store_host(void)
{
    return "10.78.0.254";
}

static bool make_bridge(const tt_hosts *hosts, char *words, size_t bytes)
{
    return tt_hosts_script(hosts, BRIDGE, "ip",
                           "link set lo up\nlink add br0 type bridge stp_state 0 forward_delay 0\n"
                           "link set br0 up\naddr add 10.78.0.254/24 dev br0\n", words, bytes);
}

static bool join(const tt_hosts *hosts, int host, char *words, size_t bytes)
{
    char script[512];

    snprintf(script, sizeof script,
             "link add p%d type veth peer name tt0 netns @%d/\nlink set p%d master br0\nlink set p%d up\n",
             host, host, host, host);
    if (!tt_hosts_script(hosts, BRIDGE, "ip", script, words, bytes))
        return false;
    snprintf(script, sizeof script, "link set lo up\nlink set tt0 up\naddr add 10.78.0.%d/24 dev tt0\n", host + 1);
    return tt_hosts_script(hosts, host, "ip", script, words, bytes);
}

/* A socket of the bridge's namespace. */
static int socket_there(const tt_hosts *hosts)
{
    const int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    int       fd = -1;

    if (home >= 0 && tt_hosts_enter(hosts, BRIDGE)) {
        fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (setns(home, CLONE_NEWNET) != 0)
            _exit(1);
    }
    if (home >= 0)
        close(home);
    return fd;
}

bool tt_net_plug(int switch_fd, int host, bool in)
{
    struct ifreq link = { .ifr_flags = 0 };
    int          tries = 0;

    snprintf(link.ifr_name, sizeof link.ifr_name, "p%d", host);
    if (ioctl(switch_fd, SIOCGIFFLAGS, &link) != 0)
        return false;
    link.ifr_flags = (short)(in ? link.ifr_flags | IFF_UP : link.ifr_flags & ~IFF_UP);
    if (ioctl(switch_fd, SIOCSIFFLAGS, &link) != 0)
        return false;
    while (in && tries++ < UP_TRIES && ioctl(switch_fd, SIOCGIFFLAGS, &link) == 0 &&
           (link.ifr_flags & IFF_RUNNING) == 0)
        poll(NULL, 0, 1); /* the kernel has not seen the carrier yet: a SYN would be lost */
    return true;
}

bool tt_net_open(tt_net *net_out, char *reason_out, size_t bytes)
{
    tt_net n = { .switch_fd = -1 };
    char words[160] = "";
    int  host;

    if (!tt_hosts_bare(BRIDGE + 1, &n.hosts, reason_out, bytes))
        return false;
    if (!make_bridge(&n.hosts, words, sizeof words))
        goto failed;
    for (host = 0; host < BRIDGE; host++)
        if (!join(&n.hosts, host, words, sizeof words))
            goto failed;
    n.switch_fd = socket_there(&n.hosts);
    for (host = 0; host < BRIDGE && n.switch_fd >= 0; host++)
        tt_net_plug(n.switch_fd, host, true);
    *net_out = n;
    return n.switch_fd >= 0;

failed:
    snprintf(reason_out, bytes, "cannot make hosts on a bridge: %s", words);
    tt_hosts_close(&n.hosts);
    return false;
}

void tt_net_close(tt_net *net)
{
    if (net->switch_fd >= 0)
        close(net->switch_fd);
    net->switch_fd = -1;
    tt_hosts_close(&net->hosts);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * relay.c - the devices, and the loop that reads from one and writes to another. */
#include "harness/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <net/if.h>
#include <linux/if_tun.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

enum { MTU_DEFAULT = 1500, BATCH = 64, TX_QUEUE = 4096, SLACK_NS = 1000 };
enum { IP4_DESTINATION_END = 19, IP6_DESTINATION_END = 39 };

#define NS_PER_S INT64_C(1000000000)

struct tt_relay {
    int           n;
    int           fds[TT_RELAY_HOSTS_MAX];
    tt_line      *lines[TT_RELAY_HOSTS_MAX]; /* to each host */
    tt_relay_link link;
};

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* ---- devices ----------------------------------------------------------------------------------- */

static bool set_up(struct ifreq *device, int host, int mtu)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    struct ifreq       loop = { .ifr_name = "lo", .ifr_flags = IFF_UP };
    const int          fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool               fine = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &loop) == 0;

    at.sin_addr.s_addr = htonl(0x0a4d0001u + (uint32_t)host); /* 10.77.0.1 and on */
    memcpy(&device->ifr_addr, &at, sizeof at);
    fine = fine && ioctl(fd, SIOCSIFADDR, device) == 0;
    at.sin_addr.s_addr = htonl(0xffffff00u);
    memcpy(&device->ifr_netmask, &at, sizeof at);
    fine = fine && ioctl(fd, SIOCSIFNETMASK, device) == 0;
    device->ifr_mtu = mtu;
    fine = fine && ioctl(fd, SIOCSIFMTU, device) == 0;
    device->ifr_qlen = TX_QUEUE;
    fine = fine && ioctl(fd, SIOCSIFTXQLEN, device) == 0;
    device->ifr_flags = IFF_UP | IFF_RUNNING;
    fine = fine && ioctl(fd, SIOCSIFFLAGS, device) == 0;
    if (fd >= 0)
        close(fd);
    return fine;
}

/* A device in the namespace that this thread is in; -1: errno tells. */
static int device_open(int host, int mtu)
{
    struct ifreq device = { .ifr_name = "tt0" };
    const int    fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
    int          err;

    if (fd < 0)
        return -1;
    device.ifr_flags = IFF_TUN | IFF_NO_PI;
    if (ioctl(fd, TUNSETIFF, &device) == 0 && set_up(&device, host, mtu))
        return fd;
    err = errno;
    close(fd);
    errno = err;
    return -1;
}

static int device_in(int namespace_fd, int host, int mtu)
{
    const int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    int       fd = -1, err;

    if (home < 0)
        return -1;
    if (setns(namespace_fd, CLONE_NEWNET) == 0) {
        fd = device_open(host, mtu);
        err = errno;
        if (setns(home, CLONE_NEWNET) != 0)
            _exit(1); /* nobody must go on in a world that is another one's */
        errno = err;
    }
    err = errno;
    close(home);
    errno = err;
    return fd;
}

bool tt_relay_open(const int *namespace_fds, int n, const tt_relay_link *link, tt_relay **relay_out, char *reason_out,
                   size_t reason_bytes)
{
    tt_relay *relay = calloc(1, sizeof *relay);
    const int mtu = link->mtu != 0 ? link->mtu : MTU_DEFAULT;

    if (relay == NULL || n > TT_RELAY_HOSTS_MAX || mtu > TT_RELAY_PACKET_MAX) {
        snprintf(reason_out, reason_bytes, "no memory, or more than %d hosts, or packets of more than %d bytes",
                 TT_RELAY_HOSTS_MAX, TT_RELAY_PACKET_MAX);
        free(relay);
        return false;
    }
    relay->link = *link;
    for (; relay->n < n; relay->n++) {
        const int fd = device_in(namespace_fds[relay->n], relay->n, mtu);

        if (fd < 0) {
            snprintf(reason_out, reason_bytes, "no TUN device to be had: %s", strerror(errno));
            tt_relay_close(relay);
            return false;
        }
        relay->fds[relay->n] = fd;
        relay->lines[relay->n] = tt_line_open(link, (uint64_t)relay->n);
        if (relay->lines[relay->n] == NULL) {
            snprintf(reason_out, reason_bytes, "no memory");
            relay->n++;
            tt_relay_close(relay);
            return false;
        }
    }
    *relay_out = relay;
    return true;
}

void tt_relay_close(tt_relay *relay)
{
    int i;

    for (i = 0; relay != NULL && i < relay->n; i++) {
        close(relay->fds[i]);
        tt_line_close(relay->lines[i]);
    }
    free(relay);
}

void tt_relay_count(const tt_relay *relay, tt_relay_counts *out)
{
    int i;

    *out = (tt_relay_counts){ 0 };
    for (i = 0; i < relay->n; i++)
        tt_line_count(relay->lines[i], out);
}

/* ---- the loop ---------------------------------------------------------------------------------- */

/* The host that a packet goes to; -1: none of ours, as what is for everybody. */
static int host_of(const tt_relay *relay, const unsigned char *packet, size_t bytes)
{
    const int version = bytes > 0 ? packet[0] >> 4 : 0;
    size_t    end = version == 4 ? IP4_DESTINATION_END : IP6_DESTINATION_END;
    int       host;

    if ((version != 4 && version != 6) || bytes <= end)
        return -1;
    if (version == 6 && packet[end - 15] == 0xff) /* multicast */
        return -1;
    host = packet[end] - 1;
    return host >= 0 && host < relay->n ? host : -1;
}

/* Up to a batch of packets from one host into the lines of others; whether there may be more. */
static bool read_some(tt_relay *relay, int from)
{
    unsigned char packet[TT_RELAY_PACKET_MAX];
    int           i, to;
    ssize_t       got;

    for (i = 0; i < BATCH; i++) {
        got = read(relay->fds[from], packet, sizeof packet);
        if (got <= 0)
            return false;
        to = host_of(relay, packet, (size_t)got);
        if (to >= 0)
            tt_line_put(relay->lines[to], now_ns(), packet, (size_t)got);
    }
    return true;
}

/* What is due goes to its host; what that does not take is lost, as on a wire. */
static int64_t write_due(tt_relay *relay)
{
    int64_t next = INT64_MAX;
    int     i;

    for (i = 0; i < relay->n; i++) {
        while (tt_line_due(relay->lines[i]) <= now_ns()) {
            const void  *packet;
            const size_t bytes = tt_line_take(relay->lines[i], &packet);
            ssize_t      unused = write(relay->fds[i], packet, bytes);

            (void)unused;
        }
        if (tt_line_due(relay->lines[i]) < next)
            next = tt_line_due(relay->lines[i]);
    }
    return next;
}

static void sleep_until(struct pollfd *wanted, int n, int64_t when)
{
    const int64_t   left = when - now_ns();
    struct timespec t = { 0 };

    if (left > 0) {
        t.tv_sec = (time_t)(left / NS_PER_S);
        t.tv_nsec = (long)(left % NS_PER_S);
    }
    ppoll(wanted, (nfds_t)n, &t, NULL);
}

void tt_relay_run(tt_relay *relay, int life_fd, double seconds)
{
    const int64_t end = now_ns() + (int64_t)(seconds * 1e9);
    struct pollfd wanted[TT_RELAY_HOSTS_MAX + 1];
    int64_t       next;
    int           i;

    prctl(PR_SET_TIMERSLACK, SLACK_NS);
    for (i = 0; i < relay->n; i++)
        wanted[i] = (struct pollfd){ .fd = relay->fds[i], .events = POLLIN };
    wanted[relay->n] = (struct pollfd){ .fd = life_fd, .events = POLLIN };
    while (now_ns() < end && wanted[relay->n].revents == 0) {
        bool more = false;

        for (i = 0; i < relay->n; i++)
            more = read_some(relay, i) || more;
        next = write_due(relay);
        if (!more)
            sleep_until(wanted, relay->n + 1, next < end ? next : end);
    }
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * socket_peers.c - connections, and one loop over them. */
#include "socket_peers.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include "side.h"

enum { CONNECT_TRIES = 2000, CONNECT_PAUSE_MS = 10, POLL_MS = 60000, ROUNDS_BEFORE_SLEEP = 400 };

typedef struct peer {
    int fd; /* -1: ourselves, or nobody yet */
    const char *out;
    size_t out_left;
    char *in;
    size_t in_left;
} peer;

/* A contender's process is one thread of the loop; one that computes beside a transfer leaves these alone meanwhile. */
static struct {
    peer all[BENCH_RANKS_MAX];
    int ranks;
} peers;

static bool read_address(const char *addresses, int which, struct sockaddr_in *out)
{
    char host[64];
    int port;

    for (; which > 0 && addresses != NULL; which--) {
        addresses = strchr(addresses, ',');
        addresses = addresses == NULL ? NULL : addresses + 1;
    }
    *out = (struct sockaddr_in){ .sin_family = AF_INET };
    if (addresses == NULL || sscanf(addresses, "%63[^:]:%d", host, &port) != 2 || inet_pton(AF_INET, host, &out->sin_addr) != 1)
        return bench_fail("there is no address for every rank");
    out->sin_port = htons((uint16_t)port);
    return true;
}

static int listen_at(const struct sockaddr_in *at)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        bind(fd, (const struct sockaddr *)at, sizeof *at) == 0 && listen(fd, BENCH_RANKS_MAX) == 0)
        return fd;
    bench_fail("cannot listen: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

/* The other rank may not listen yet. */
static int connect_to(const struct sockaddr_in *to)
{
    int tries, fd;

    for (tries = 0; tries < CONNECT_TRIES; tries++) {
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, (const struct sockaddr *)to, sizeof *to) == 0)
            return fd;
        if (fd >= 0)
            close(fd);
        poll(NULL, 0, CONNECT_PAUSE_MS);
    }
    bench_fail("cannot connect: %s", strerror(errno));
    return -1;
}

static bool connect_below(const char *addresses, int rank)
{
    struct sockaddr_in to;
    int below, fd;

    for (below = 0; below < rank; below++) {
        if (!read_address(addresses, below, &to) || (fd = connect_to(&to)) < 0)
            return false;
        peers.all[below].fd = fd;
        if (write(fd, &rank, sizeof rank) != sizeof rank)
            return bench_fail("cannot say who this is: %s", strerror(errno));
    }
    return true;
}

static bool accept_above(int door, int rank)
{
    struct pollfd ready = { .fd = door, .events = POLLIN };
    int left, who, fd;

    for (left = peers.ranks - 1 - rank; left > 0; left--) {
        if (poll(&ready, 1, CONNECT_TRIES * CONNECT_PAUSE_MS) != 1 || (fd = accept(door, NULL, NULL)) < 0)
            return bench_fail("%d ranks did not connect", left);
        if (recv(fd, &who, sizeof who, MSG_WAITALL) != sizeof who || who <= rank || who >= peers.ranks)
            return bench_fail("whoever connected is no rank");
        peers.all[who].fd = fd;
    }
    return true;
}

bool bench_peers_open(const char *addresses, int rank, int ranks)
{
    const int on = 1;
    struct sockaddr_in mine;
    int door, i;
    bool fine;

    if (ranks > BENCH_RANKS_MAX)
        return bench_fail("%d ranks; at most %d are measured", ranks, BENCH_RANKS_MAX);
    peers.ranks = ranks;
    for (i = 0; i < ranks; i++)
        peers.all[i] = (peer){ .fd = -1 };
    if (!read_address(addresses, rank, &mine) || (door = listen_at(&mine)) < 0)
        return false;
    fine = connect_below(addresses, rank) && accept_above(door, rank);
    close(door);
    for (i = 0; fine && i < ranks; i++)
        if (i != rank && setsockopt(peers.all[i].fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
            fine = bench_fail("cannot set TCP_NODELAY: %s", strerror(errno));
    if (!fine)
        bench_peers_close();
    return fine;
}

void bench_peers_close(void)
{
    int i;

    for (i = 0; i < peers.ranks; i++)
        if (peers.all[i].fd >= 0)
            close(peers.all[i].fd);
    peers.ranks = 0;
}

void bench_peers_send(int rank, const void *data, size_t bytes)
{
    peers.all[rank].out = data;
    peers.all[rank].out_left = bytes;
}

void bench_peers_receive(int rank, void *data, size_t bytes)
{
    peers.all[rank].in = data;
    peers.all[rank].in_left = bytes;
}

static bool nothing_yet(ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* As much as a peer's socket takes and has; *moved_out becomes true when that is anything. */
static bool step(peer *p, bool *moved_out)
{
    ssize_t n;

    if (p->out_left > 0) {
        n = send(p->fd, p->out, p->out_left, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && !nothing_yet(n))
            return bench_fail("cannot send: %s", strerror(errno));
        if (n > 0) {
            p->out += n;
            p->out_left -= (size_t)n;
            *moved_out = true;
        }
    }
    if (p->in_left > 0) {
        n = recv(p->fd, p->in, p->in_left, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && !nothing_yet(n)))
            return bench_fail("cannot receive: %s", n == 0 ? "the other end has closed" : strerror(errno));
        if (n > 0) {
            p->in += n;
            p->in_left -= (size_t)n;
            *moved_out = true;
        }
    }
    return true;
}

static bool sleep_until_ready(void)
{
    struct pollfd wanted[BENCH_RANKS_MAX];
    int i, n = 0;

    for (i = 0; i < peers.ranks; i++) {
        const peer *p = &peers.all[i];
        const short events = (short)((p->in_left > 0 ? POLLIN : 0) | (p->out_left > 0 ? POLLOUT : 0));

        if (events != 0)
            wanted[n++] = (struct pollfd){ .fd = p->fd, .events = events };
    }
    return poll(wanted, (nfds_t)n, POLL_MS) != 0 || bench_fail("nothing came for a minute");
}

bool bench_peers_move(bool spins)
{
    int idle = 0, i;
    bool more = true;

    while (more) {
        bool moved = false;

        more = false;
        for (i = 0; i < peers.ranks; i++) {
            if (!step(&peers.all[i], &moved))
                return false;
            more = more || peers.all[i].out_left > 0 || peers.all[i].in_left > 0;
        }
        idle = moved ? 0 : idle + 1;
        if (more && idle > (spins ? ROUNDS_BEFORE_SLEEP : 0) && !sleep_until_ready())
            return false;
    }
    return true;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * relay_test.c
 * Goal    Packets between two hosts take as long as the relay was told and no packet less, in order; as many are lost as it was told;
 *         with nothing of both all arrive, also large ones; and when hosts are closed the relay is gone.
 * Method  Datagrams between sockets of two namespaces, sent and received by this process. Upper bounds are wide: the machine
 *         may be busy. */
#include "harness/harness.h"
#include "harness/hosts.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { MS = 1000000, PORT = 9000, DELAY_MS = 20, TIMED = 40, LATE_MS = 400, BATCHES = 40, BATCH = 100, QUIET_MS = 50, ROOM = 16 << 20 };

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 * MS + t.tv_nsec;
}

/* Two hosts with such a link, and a socket of each that is connected to the other's. */
typedef struct pair {
    tt_hosts hosts;
    int      fds[2];
} pair;

static int socket_in(const tt_hosts *hosts, int host)
{
    struct sockaddr_in mine = { .sin_family = AF_INET, .sin_port = htons(PORT) }, other = mine;
    const int          home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), room = ROOM;
    int                fd;

    assert_true(home >= 0 && tt_hosts_enter(hosts, host));
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    /* for all that a test sends: a relay that had no core for a while brings it at once, and what has no place is gone */
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    inet_pton(AF_INET, tt_hosts_addr(host), &mine.sin_addr);
    inet_pton(AF_INET, tt_hosts_addr(1 - host), &other.sin_addr);
    assert_return_code(bind(fd, (struct sockaddr *)&mine, sizeof mine), errno);
    assert_return_code(connect(fd, (struct sockaddr *)&other, sizeof other), errno);
    if (setns(home, CLONE_NEWNET) != 0)
        _exit(1);
    close(home);
    return fd;
}

static void open_pair(const tt_relay_link *link, pair *p)
{
    char reason[256];
    int  i;

    if (!tt_hosts_open_far(link, &p->hosts, reason, sizeof reason)) {
        print_message("SKIP: %s\n", reason);
        exit(TT_SKIPPED);
    }
    for (i = 0; i < 2; i++)
        p->fds[i] = socket_in(&p->hosts, i);
}

static void close_pair(pair *p)
{
    const pid_t relay = p->hosts.relay;

    close(p->fds[0]);
    close(p->fds[1]);
    tt_hosts_close(&p->hosts);
    assert_true(waitpid(relay, NULL, WNOHANG) < 0 && errno == ECHILD); /* it was waited for: its number may be another's by now */
}

/* The number in the next datagram; -1: none came within ms. */
static int heard(int fd, int ms)
{
    struct pollfd ready = { .fd = fd, .events = POLLIN };
    int           number = -1;

    return poll(&ready, 1, ms) == 1 && recv(fd, &number, sizeof number, 0) >= (ssize_t)sizeof number ? number : -1;
}

static int by_size(const void *a, const void *b)
{
    return *(const int64_t *)a < *(const int64_t *)b ? -1 : *(const int64_t *)a > *(const int64_t *)b;
}

static void a_packet_takes_its_time(void **state)
{
    int64_t took[TIMED], start;
    pair    p;
    int     i;

    (void)state;
    open_pair(&(tt_relay_link){ .delay_ns = DELAY_MS * (int64_t)MS }, &p);
    for (i = 0; i < TIMED; i++) {
        start = now_ns();
        assert_int_equal(send(p.fds[i % 2], &i, sizeof i, 0), sizeof i);
        assert_int_equal(heard(p.fds[1 - i % 2], DELAY_MS + 10 * LATE_MS), i);
        took[i] = now_ns() - start;
    }
    qsort(took, TIMED, sizeof took[0], by_size);
    assert_true(took[0] >= DELAY_MS * (int64_t)MS);
    assert_true(took[TIMED / 2] < (DELAY_MS + LATE_MS) * (int64_t)MS);
    close_pair(&p);
}

/* How many of BATCHES x BATCH datagrams come, each larger than the one before. Behind them goes a last one until it comes: the relay
 * keeps their order, so none is on its way then. */
static int arrived(pair *p)
{
    const int end = BATCHES * BATCH;
    int       batch, i, number, last = -1, n = 0;

    for (batch = 0; batch < BATCHES; batch++) {
        for (i = 0; i < BATCH; i++) {
            number = batch * BATCH + i;
            assert_int_equal(send(p->fds[0], &number, sizeof number, 0), sizeof number);
        }
        while ((number = heard(p->fds[1], QUIET_MS)) >= 0) {
            assert_true(number > last);
            last = number;
            n++;
        }
    }
    while (last < end) {
        assert_int_equal(send(p->fds[0], &end, sizeof end, 0), sizeof end);
        while (last < end && (number = heard(p->fds[1], QUIET_MS)) >= 0) {
            assert_true(number > last);
            last = number;
            n += number < end;
        }
    }
    return n;
}

static void as_many_are_lost_as_told(void **state)
{
    const double share = 0.1, mean = BATCHES * BATCH * share, deviation = sqrt(mean * (1 - share));
    pair         p;
    int          lost;

    (void)state;
    open_pair(&(tt_relay_link){ .loss = share, .jitter_ns = MS, .delay_ns = MS, .seed = 5 }, &p);
    lost = BATCHES * BATCH - arrived(&p);
    print_message("lost %d of %d\n", lost, BATCHES * BATCH);
    assert_true(fabs(lost - mean) < 5 * deviation);
    close_pair(&p);
}

static void without_loss_all_arrive(void **state)
{
    unsigned char large[1400] = { 7 }, got[sizeof large + 1];
    pair          p;

    (void)state;
    open_pair(&(tt_relay_link){ .jitter_ns = MS }, &p);
    assert_int_equal(arrived(&p), BATCHES * BATCH);
    assert_int_equal(send(p.fds[1], large, sizeof large, 0), sizeof large);
    assert_true(poll(&(struct pollfd){ .fd = p.fds[0], .events = POLLIN }, 1, 10 * LATE_MS) == 1);
    assert_int_equal(recv(p.fds[0], got, sizeof got, 0), sizeof large);
    assert_memory_equal(got, large, sizeof large);
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_packet_takes_its_time),
        cmocka_unit_test(as_many_are_lost_as_told),
        cmocka_unit_test(without_loss_all_arrive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * port_tcp.c - what the kernel does with a TCP connection, and what it knows of it. */
#include "base/port_system.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <tutti/private.h>

#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK 72 /* headers that are older than it; its number on all machines that we build for */
#endif

#ifndef TCP_RTO_MIN_US
#define TCP_RTO_MIN_US 45 /* the same */
#endif

enum { NAMES_MAX = 256, SENDS_LOCKED = 1 /* SOCK_SNDBUF_LOCK */ };

/* What Linux tells, and headers may not know of: places of it never change. */
typedef union tcp_facts {
    struct tcp_info info;
    struct {
        uint8_t  before[144];
        uint32_t unsent_bytes;
        uint32_t least_trip_us; /* its largest number: nothing was measured yet */
    } more;
} tcp_facts;

/* The first line of a file of the kernel's, or "". */
static void read_line(const char *path, char *out, size_t bytes)
{
    FILE *file = fopen(path, "re");

    out[0] = '\0';
    if (file == NULL)
        return;
    if (fgets(out, (int)bytes, file) == NULL)
        out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    fclose(file);
}

tutti_status tti_socket_set_congestion(tti_port *port, tti_handle handle, const char *name)
{
    char names[NAMES_MAX];
    int  err;

    (void)port;
    if (setsockopt(handle, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0)
        return TUTTI_OK;
    err = errno;
    if (err != ENOENT && err != EPERM)
        return tti_fail_errno(err, "cannot set the congestion control '%s'", name);
    read_line("/proc/sys/net/ipv4/tcp_allowed_congestion_control", names, sizeof names);
    return tti_fail(TUTTI_E_ARG, "this kernel %s no congestion control '%s' for TCP; it allows: %s",
                    err == ENOENT ? "has" : "allows", name, names[0] != '\0' ? names : "unknown");
}

int tti_socket_stream_facts(tti_port *port, tti_handle handle, tti_stream_facts *facts_out)
{
    tti_stream_facts facts = { .congestion = "" };
    tcp_facts        told;
    struct tcp_info  info;
    socklen_t        bytes = sizeof told;
    socklen_t        name_bytes = sizeof facts.congestion - 1;

    (void)port;
    memset(&told, 0, sizeof told);
    if (getsockopt(handle, IPPROTO_TCP, TCP_INFO, &told, &bytes) != 0)
        return -errno;
    info = told.info;
    if (getsockopt(handle, IPPROTO_TCP, TCP_CONGESTION, facts.congestion, &name_bytes) != 0)
        facts.congestion[0] = '\0';
    facts.round_trip_us = info.tcpi_rtt;
    facts.least_trip_us = told.more.least_trip_us != UINT32_MAX ? told.more.least_trip_us : 0;
    facts.retransmits = info.tcpi_total_retrans;
    facts.in_a_row = info.tcpi_retransmits;
    facts.probes = info.tcpi_probes;
    facts.unheard = info.tcpi_unacked;
    facts.unsent_bytes = info.tcpi_state != TCP_CLOSE ? told.more.unsent_bytes : 0; /* what a reset has thrown away stays in it */
    facts.window = info.tcpi_snd_cwnd;
    facts.segment_bytes = info.tcpi_snd_mss;
    facts.heard_ms = info.tcpi_last_ack_recv < info.tcpi_last_data_recv ? info.tcpi_last_ack_recv
                                                                         : info.tcpi_last_data_recv;
    facts.data_ms = info.tcpi_last_data_recv;
    *facts_out = facts;
    return 0;
}

/* The kernel's time-out (port_socket.c) is also for a window that stays shut, though the peer answers. */
void tti_socket_let_wait(tti_port *port, tti_handle handle)
{
    const unsigned int none = 0;

    (void)port;
    setsockopt(handle, IPPROTO_TCP, TCP_USER_TIMEOUT, &none, sizeof none);
}

/* What a socket that asks for so many bytes is granted: the kernel has a limit (net.core.wmem_max), which a namespace of its own
 * may not show, and what a stream has had until then may be more, and is not to be had again. So another one asks. 0: unknown. */
static int granted(tti_handle like, int bytes)
{
    int       family = AF_INET, grants = 0, probe;
    socklen_t size = sizeof family;

    (void)getsockopt(like, SOL_SOCKET, SO_DOMAIN, &family, &size);
    probe = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe < 0)
        return 0;
    size = sizeof grants;
    if (setsockopt(probe, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) != 0 ||
        getsockopt(probe, SOL_SOCKET, SO_SNDBUF, &grants, &size) != 0)
        grants = 0;
    close(probe);
    return grants;
}

/* A send buffer is made a few times as large as what is on the way, which between neighbours is less than a millisecond's worth.
 * Who asks for another size ends that, unless it is unlocked again (Linux 5.14); where it cannot be, it stays as it is. One that was
 * bounded is unlocked even where no more is to be had: it grows by itself again. */
void tti_socket_make_room(tti_port *port, tti_handle handle, int bytes)
{
    int       locks, have;
    socklen_t size = sizeof locks;

    (void)port;
    if (getsockopt(handle, SOL_SOCKET, SO_BUF_LOCK, &locks, &size) != 0 ||
        getsockopt(handle, SOL_SOCKET, SO_SNDBUF, &have, &size) != 0)
        return;
    if (have / 2 < bytes && granted(handle, bytes) > have)
        setsockopt(handle, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    else if ((locks & SENDS_LOCKED) == 0)
        return;
    locks &= ~SENDS_LOCKED;
    setsockopt(handle, SOL_SOCKET, SO_BUF_LOCK, &locks, sizeof locks);
}

/* Locked, or the kernel would make it larger as soon as a loss is long ago; only where it can be unlocked again. */
void tti_socket_bound_room(tti_port *port, tti_handle handle, int bytes)
{
    int       locks;
    socklen_t size = sizeof locks;

    (void)port;
    if (getsockopt(handle, SOL_SOCKET, SO_BUF_LOCK, &locks, &size) == 0)
        setsockopt(handle, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

/* The kernel waits for 200 ms at least, which is meant for ways around the world: between neighbours it is a thousand round trips. Linux
 * 6.15 lets a socket ask for less; that it answers in less itself follows from it there. On older ones nothing happens. */
void tti_socket_resend_after(tti_port *port, tti_handle handle, int ms)
{
    int       us = 1000 * ms, have;
    socklen_t size = sizeof have;

    (void)port;
    if (getsockopt(handle, IPPROTO_TCP, TCP_RTO_MIN_US, &have, &size) == 0 && have > us)
        setsockopt(handle, IPPROTO_TCP, TCP_RTO_MIN_US, &us, sizeof us);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hosts.h - a second host on this machine: network namespaces joined by a veth pair, or by a relay that is far away.
 *
 * How     Each host is a network namespace without a name, held by a descriptor: host i has the address
 *         10.77.0.(i+1)/24 on the interface "tt0", and its own loopback.
 * True    Nothing has to be removed. The namespaces, the pair and the addresses end with the last
 *         descriptor and the last process inside, also after kill -9.
 * Fails   The machine may refuse (no CAP_SYS_ADMIN, no veth, no ip program): that is no error but a
 *         reason to skip. */
#ifndef TT_HOSTS_H
#define TT_HOSTS_H

#include "harness/relay.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { TT_HOSTS = 2, TT_NAMESPACES_MAX = 9 };

typedef struct tt_hosts {
    int n;                     /* 0: closed */
    int fd[TT_NAMESPACES_MAX]; /* the namespaces */
    pid_t relay;   /* 0: there is none */
    int   life_fd; /* it ends when this is closed */
} tt_hosts;

/** Make two hosts. false: the machine refuses, reason_out says what and why. The caller has one thread. */
bool tt_hosts_open(tt_hosts *hosts_out, char *reason_out, size_t reason_bytes);

/** Join two hosts that a veth pair joins by another one: "tt1", 10.78.0.(i+1)/24. false: as tt_hosts_open(). */
bool tt_hosts_join_again(const tt_hosts *hosts, char *reason_out, size_t reason_bytes);

/** Make two hosts joined by a relay (relay.h), which runs until tt_hosts_close(), or until this process ends. */
bool tt_hosts_open_far(const tt_relay_link *link, tt_hosts *hosts_out, char *reason_out, size_t reason_bytes);

/** Make n namespaces that nothing joins: not even their loopback is up. false: as tt_hosts_open(). */
bool tt_hosts_bare(int n, tt_hosts *hosts_out, char *reason_out, size_t reason_bytes);

/** Let a program read script inside a namespace: "ip" (-batch) or "nft" (-f). "@0/", "@1/", ... in
 * script become the paths of the namespaces' descriptors, as `ip link ... netns` wants them.
 * false: words_out has the first line of what it said. */
bool tt_hosts_script(const tt_hosts *hosts, int host, const char *program, const char *script, char *words_out,
                     size_t words_bytes);

/** Move the calling thread, and what it forks from now on, to a host. false: errno tells. */
bool tt_hosts_enter(const tt_hosts *hosts, int host);
/** Once there: let this process see the host's network devices in /sys too, as one that was started there would. */
bool tt_hosts_show_devices(void);
/** Whether a process there could; no: errno tells. */
bool tt_hosts_can_show_devices(const tt_hosts *hosts);

/** The address of a host. */
const char *tt_hosts_addr(int host);

void tt_hosts_close(tt_hosts *hosts);

#endif

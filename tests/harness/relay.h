/* SPDX-License-Identifier: BSD-3-Clause
 *
 * relay.h - a switch in user space, between hosts that are namespaces: with delay, jitter, loss and a rate.
 *
 * Why     Not every kernel can delay packets or lose some of them (netem). What a job does when the others are 10 ms away, and
 *         one packet of a thousand is gone, must be tried all the same.
 * How     Each host has a TUN device "tt0" with the address 10.77.0.(i+1)/24, whose other end is a descriptor here. A
 *         packet is read whole, looked at for the host that it goes to (the last byte of its address), and put into
 *         that host's line, unless it is to be lost or the line is full:
 *
 *             arrival --[lost?]--[queue full?]-- takes its turn at the host's rate -- + delay +- jitter -- written
 *
 *         One thread, asleep until a packet comes or is due.
 * True    What is lost, and how long a packet is delayed, is decided by a generator with a seed, one draw per packet and
 *         kind, so that the same packets meet the same fate. Packets of a line keep their order whatever the jitter,
 *         unless reorder is asked for. Packets are as large as the MTU, never the kernel's large segments, so that
 *         one loss is one packet's.
 * Clean   The devices end with the relay, or its host. A relay that is run as a process ends with whoever holds its life, and after
 *         its time in any case. */
#ifndef TT_RELAY_H
#define TT_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TT_RELAY_HOSTS_MAX = 16, TT_RELAY_PACKET_MAX = 9216 };

/** What happens on the way. All zero: nothing. */
typedef struct tt_relay_link {
    int64_t  delay_ns;    /* one way */
    int64_t  jitter_ns;   /* the delay varies by at most so much, evenly */
    double   loss;        /* share of packets, 0 .. 1 */
    int64_t  rate_bps;    /* bits per second that a host receives at; 0: no limit */
    int64_t  queue_bytes; /* that wait for their turn before packets are dropped; 0: 1 MiB */
    uint64_t seed;
    bool     reorder; /* a packet with less delay overtakes */
    int      mtu;     /* 0: 1500 */
} tt_relay_link;

/** What has happened, of all lines together. */
typedef struct tt_relay_counts {
    uint64_t packets, bytes; /* that came */
    uint64_t lost;           /* on purpose */
    uint64_t dropped;        /* because a queue was full */
    uint64_t delivered;
} tt_relay_counts;

/* ---- a line: no clock and no devices, for tests that have their own ---- */

typedef struct tt_line tt_line;

/** A line to one host; NULL: no memory. */
tt_line *tt_line_open(const tt_relay_link *link, uint64_t which);
void     tt_line_close(tt_line *line);

/** A packet comes at now_ns. true: it is in the line, and leaves when tt_line_due() says; false: it was lost or
 * dropped, as the counts say. */
bool tt_line_put(tt_line *line, int64_t now_ns, const void *packet, size_t bytes);

/** When the next packet is due; INT64_MAX: there is none. */
int64_t tt_line_due(const tt_line *line);

/** Take the next packet out, whether it is due or not; its bytes are valid until the next call. 0: there is none. */
size_t tt_line_take(tt_line *line, const void **packet_out);

void tt_line_count(const tt_line *line, tt_relay_counts *add_to);

/* ---- the relay ---- */

typedef struct tt_relay tt_relay;

/** Make a device in each namespace, give it its address, and set it up. namespace_fds stay the caller's. false: the machine
 * refuses; reason_out says what and why. The caller has one thread. */
bool tt_relay_open(const int *namespace_fds, int n, const tt_relay_link *link, tt_relay **relay_out, char *reason_out,
                   size_t reason_bytes);

/** Carry packets until life_fd can be read from, or its other end is closed, or seconds have passed; life_fd -1: for seconds. */
void tt_relay_run(tt_relay *relay, int life_fd, double seconds);

void tt_relay_count(const tt_relay *relay, tt_relay_counts *out);

void tt_relay_close(tt_relay *relay);

#endif

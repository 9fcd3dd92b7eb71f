/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mem_port.h - a world in one process: several hosts, their wires, and a clock of its own.
 *
 * Why     Time-outs of minutes, deaths in the middle of a wait and back-off are tested in
 *         milliseconds, and every run of a seed is the same run.
 * How     Each host is a tti_port. Its programs are threads, but only one of all threads runs at a
 *         time: it has the baton and keeps it until it waits (sleep, poll, wait_word, yield). Then
 *         one of those that can go on, chosen by the seed, gets it. If nobody can, the clock jumps
 *         to the next moment at which somebody can: a deadline, or bytes that arrive.
 *         Streams carry bytes in order, each latency later; connecting takes a round trip.
 * True    Everything here is touched only by the thread that has the baton, so there are no locks
 *         but that of the baton, and sanitizers see a sequential program.
 * Fails   When all threads wait for ever, or virtual time passes a day, the world prints who waits
 *         for what and aborts: a test that hangs is a test that fails. */
#ifndef TT_HARNESS_MEM_PORT_H
#define TT_HARNESS_MEM_PORT_H

#include "base/port.h"

typedef struct tt_mem_world tt_mem_world;

/** A new world whose clock stands at one second. Latency is 100 us. */
tt_mem_world *tt_mem_world_new(uint64_t seed);
/** After tt_mem_run(), or before it. */
void tt_mem_world_free(tt_mem_world *world);

/** The port of a host, made when it is first named. Its name resolves in the whole world. */
tti_port *tt_mem_host(tt_mem_world *world, const char *name);
/** A program: body(arg) on a thread that begins when the clock shows start_ns; before the run. */
void tt_mem_spawn(tt_mem_world *world, const char *name, int64_t start_ns, void (*body)(void *arg),
                  void *arg);
/** Run until all programs have returned. */
void tt_mem_run(tt_mem_world *world);

/** One hash over everything that happened and when: equal runs have equal hashes. */
uint64_t tt_mem_trace(const tt_mem_world *world);
int64_t  tt_mem_now(const tt_mem_world *world);

/* What goes wrong; called by a program of the world. */

/** From now on bytes take so long. */
void tt_mem_latency(tt_mem_world *world, int64_t latency_ns);
/** From now on a host connects from that address, its port aside; nobody can connect to it. */
void tt_mem_place(tt_mem_world *world, const char *name, const tti_addr *at);
/** Reset all streams of a host, as a killed process or a firewall does. */
void tt_mem_cut(tt_mem_world *world, const char *host);
/** The same as soon as the host has sent so many more bytes. */
void tt_mem_cut_after(tt_mem_world *world, const char *host, int64_t bytes);
/** While on, nothing leaves or reaches the host: bytes are held back, connecting gets no answer. */
void tt_mem_isolate(tt_mem_world *world, const char *host, bool on);

/** While on, there is no way to the host: connecting fails after a round trip. */
void tt_mem_unroute(tt_mem_world *world, const char *host, bool on);

#endif

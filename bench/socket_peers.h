/* SPDX-License-Identifier: BSD-3-Clause
 *
 * socket_peers.h - plain TCP connections between all ranks of a program, and bytes that move on all of them at once.
 *
 * How     Rank r listens on the r-th address of a list that all have, connects to the ranks below it, and is connected to
 *         by those above. move() sends and receives whatever was posted, in whatever order it comes; a rank that has a
 *         core of its own asks the sockets again for a while before it sleeps in poll(). No frames, no copies, nobody
 *         between the caller and the kernel: what is left is what sockets take.
 * True    The same rank posts to a peer what that peer expects, in the same order: there is nothing else to tell messages apart. */
#ifndef TUTTI_BENCH_SOCKET_PEERS_H
#define TUTTI_BENCH_SOCKET_PEERS_H

#include <stdbool.h>
#include <stddef.h>

/** Join the others. addresses: "HOST:PORT,HOST:PORT,...", numeric, one for each rank. */
bool bench_peers_open(const char *addresses, int rank, int ranks);
void bench_peers_close(void);

/** What is to be sent to a rank, and received from it, by the next bench_peers_move(); once for each. */
void bench_peers_send(int rank, const void *data, size_t bytes);
void bench_peers_receive(int rank, void *data, size_t bytes);

/** Move everything that was posted. spins: whether this thread has a core to wait on. */
bool bench_peers_move(bool spins);

#endif

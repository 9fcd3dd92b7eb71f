/* SPDX-License-Identifier: BSD-3-Clause
 *
 * board.h - a file that the ranks of a contender share: a barrier that belongs to none of the contenders,
 * what rank 0 decides, and everybody's times.
 *
 * Why     A barrier of the library under test would leave its own skew in the times: ranks that leave it
 *         late make the others look slow. All contenders start from this one.
 * How     Each rank has a line of its own, which only it writes: the number of barriers it has come to, and
 *         its word for the barrier. A barrier is over when all lines are there.
 * True    Words and times are written before the line's number is stored with release, and read after it was
 *         loaded with acquire. Words have two places, by the parity of the barrier: to write one again a rank
 *         must have passed the next barrier, to which all came after they had read it. Times are read by
 *         rank 0 alone, between two barriers.
 * Fails   A rank that does not come for two minutes ends the wait: bench_board_barrier() returns false. */
#ifndef TUTTI_BENCH_BOARD_H
#define TUTTI_BENCH_BOARD_H

#include "cell.h"

enum { BENCH_SAMPLES_MAX = 8192 };

typedef struct bench_shared bench_shared;

typedef struct bench_board {
    bench_shared *shared;
    int rank, ranks;
    uint64_t turn; /* barriers so far */
    bool crowded;  /* more ranks than cores: waiting gives the core away */
} bench_board;

/** Map the file at path, which was empty when the first rank came. False: errno says why. */
bool bench_board_open(bench_board *board, const char *path, int rank, int ranks);
void bench_board_close(bench_board *board);

/** Wait for all ranks. */
bool bench_board_barrier(bench_board *board);
/** A barrier that brings rank 0's word to all. */
bool bench_board_tell(bench_board *board, uint64_t word, uint64_t *word_out);
/** A barrier that brings the largest of all ranks' words to all. */
bool bench_board_largest(bench_board *board, uint64_t word, uint64_t *word_out);

/** Room for BENCH_SAMPLES_MAX times of a rank. */
uint64_t *bench_board_samples(const bench_board *board, int rank);

/** Run on the rank-th of the cores that this process may use, counted round. False: errno says why. */
bool bench_pin(int rank);
/** How many cores this process could use before it was pinned. */
int bench_cores(void);
uint64_t bench_now_ns(void);

#endif

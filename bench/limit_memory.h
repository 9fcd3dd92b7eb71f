/* SPDX-License-Identifier: BSD-3-Clause
 *
 * limit_memory.h - buffers of all ranks, mapped by all ranks. */
#ifndef TUTTI_BENCH_LIMIT_MEMORY_H
#define TUTTI_BENCH_LIMIT_MEMORY_H

#include "board.h"

enum { LIMIT_STAGE_BYTES = 256 * 1024 };

/** Map the buffers of a cell: rank 0 makes the memory, the others find it through rank 0's descriptors. */
bool limit_take(const bench_cell *cell, bench_board *board, size_t in_bytes, size_t out_bytes, char **in_out,
                char **out_out);
void limit_give(const bench_cell *cell, char *in, size_t in_bytes, char *out, size_t out_bytes);

/* Between limit_take() and limit_give(): what a rank has. Staging is LIMIT_STAGE_BYTES, and there are two. */
char *limit_in(int rank);
char *limit_out(int rank);
char *limit_stage(int rank);
char *limit_result(int rank);

/** From now on limit_stage() and limit_result() are the other halves of those of all ranks. */
void limit_turn_stages(void);

/** A line of each rank: each writes its own and waits for all others to be as far. */
void limit_meet(int rank, int ranks);

#endif

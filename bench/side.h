/* SPDX-License-Identifier: BSD-3-Clause
 *
 * side.h - what a contender is to the measuring loop: a table of operations. */
#ifndef TUTTI_BENCH_SIDE_H
#define TUTTI_BENCH_SIDE_H

#include <stdio.h>
#include "board.h"
#include "cell.h"

/* One call of an operation, ready to be made. */
typedef struct bench_call {
    const bench_cell *cell;
    int rank, ranks, root;
    void *in, *out; /* out is NULL where the result replaces in */
    int64_t count;  /* elements of the whole tensor */
    int64_t part;   /* elements of this rank's part */
    const int64_t *begins; /* [ranks + 1] where parts begin in a buffer that has one for each, and where the last one ends */
    bench_board *check; /* NULL while times are taken; else the result will be looked at */
} bench_call;

typedef bool (*bench_op_fn)(const bench_call *call);

/* Every rank of a contender runs the same table. A function that returns false has written its words into
 * bench_words(); a side whose optional entries are NULL has nothing to do there. */
typedef struct bench_side {
    const char *name;
    /** Join the others. */
    bool (*join)(int *rank_out, int *ranks_out);
    /** Optional. What is measured, with its version; after join. */
    void (*version)(char *text, size_t size);
    /** Optional. NULL: it can do the cell, else why not. */
    const char *(*cannot)(const bench_cell *cell, int ranks);
    /** Optional, both or none. This rank's buffers, where they do not all lie in fresh pages: NULL for none of
     * 0 bytes. give() takes back what take() put out, also when it failed after a part. */
    bool (*take)(const bench_cell *cell, bench_board *board, size_t in_bytes, size_t out_bytes, char **in_out,
                 char **out_out);
    void (*give)(const bench_cell *cell, char *in, size_t in_bytes, char *out, size_t out_bytes);
    /** The operation of a cell. */
    bench_op_fn (*op)(const bench_cell *cell);
    /** Optional, both or none. An all_reduce that goes on while the caller computes, and waiting for it. */
    bool (*begin)(const bench_call *call);
    bool (*finish)(const bench_call *call);
    /** Optional. A contender that does other things than cells: a line, on all ranks the same, and what to answer,
     * a line that begins with "ok", or false. */
    bool (*answer)(bench_board *board, const char *line, FILE *control);
    void (*leave)(void);
} bench_side;

/** The last failure of this process: BENCH_WORDS_MAX bytes, one line. */
char *bench_words(void);
/** Write into it; returns false. */
bool bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Fresh pages of this process, which nobody else sees; NULL for 0 bytes, and back. */
bool bench_take_pages(size_t bytes, char **at_out);
void bench_give_pages(char *at, size_t bytes);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cell.h - what is measured at a time: an operation, an element type, a size, and how.
 *
 * bytes is the size of the whole tensor: what all_reduce, broadcast, reduce and send_recv move, and the side
 * of all_gather, reduce_scatter, all_to_all, gather and scatter that has a part for each rank. A part has at least one
 * element, so that those are larger than asked for where ranks are more than elements. Of an exchange bytes
 * are those of one message.
 *
 * In the forms with sizes of their own, whose names end in _v, rank r's part is (r+1) / (1 + 2 + ... + P) of the tensor: the last
 * rank has P times as much as the first one. With fewer elements than that some have nothing; of a single element all but the last
 * rank. In all_to_all_v rank r gives that much to the rank d for which the part (r + d) mod P is it: blocks differ, but every rank
 * gives and takes the whole tensor, and what d gets from r is as long as what r gets from d. */
#ifndef TUTTI_BENCH_CELL_H
#define TUTTI_BENCH_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_RANKS_MAX = 32, BENCH_WORDS_MAX = 512 };

typedef enum bench_op {
    BENCH_ALL_REDUCE,
    BENCH_BROADCAST,
    BENCH_REDUCE,
    BENCH_ALL_GATHER,
    BENCH_REDUCE_SCATTER,
    BENCH_ALL_TO_ALL,
    BENCH_GATHER,
    BENCH_SCATTER,
    BENCH_ALL_GATHER_V,
    BENCH_GATHER_V,
    BENCH_SCATTER_V,
    BENCH_ALL_TO_ALL_V,
    BENCH_BARRIER,
    BENCH_SEND_RECV, /* one message from each even rank to the next one */
    BENCH_EXCHANGE_16, /* a batch: 8 messages to the next rank, and 8 from the one before; so the next one */
    BENCH_EXCHANGE_64,
    BENCH_LINE,      /* limits only: two processes, each writes a line and reads the other's */
    BENCH_YIELD,     /* limits only: every process gives its core to the next one once */
    BENCH_EMPTY,     /* limits only: nothing; what the loop and the clock cost */
    BENCH_OPS
} bench_op;

typedef enum bench_dtype { BENCH_F32, BENCH_F64, BENCH_BF16, BENCH_DTYPES } bench_dtype;

/* How a limit moves bytes; PLAIN is the only one of those who really communicate. */
typedef enum bench_form {
    BENCH_PLAIN,
    BENCH_PASS,      /* every byte loaded once and stored once, from and to the memory of others */
    BENCH_PASS_NT,   /* the same with stores that bypass the caches */
    BENCH_STAGED,    /* through a piece of shared memory that stays in the caches */
    BENCH_STAGED_NT, /* the same, the last stores bypassing the caches */
    BENCH_BARE,      /* staged, and ranks wait for each other where they have to */
    BENCH_BARE_PASS, /* a pass, and ranks wait for each other before and after it */
    BENCH_FORMS
} bench_form;

/* Where the buffers lie: pages of the process, or memory that the library has given out and all ranks may map. */
typedef enum bench_memory { BENCH_ORDINARY, BENCH_REGISTERED, BENCH_MEMORIES } bench_memory;

typedef struct bench_cell {
    bench_op op;
    bench_dtype dtype;
    bench_form form;
    int64_t bytes;
    bool async;    /* begun, then waited for; of an exchange: message by message */
    bool cold;     /* buffers change from call to call, so that they are not in the caches */
    int budget_ms; /* of warming up and of both measures together */
    uint64_t seed;
    bench_memory memory;
    int products; /* to be computed behind the operation (overlap.h); 0: as many as are found to be right */
} bench_cell;

extern const char *const bench_op_names[BENCH_OPS];
extern const char *const bench_dtype_names[BENCH_DTYPES];
extern const char *const bench_form_names[BENCH_FORMS];
extern const char *const bench_memory_names[BENCH_MEMORIES];

/** The index of name among n names; -1: it is none of them. */
int bench_find_name(const char *const *names, int n, const char *name);

size_t bench_dtype_size(bench_dtype dtype);

/** "OP DTYPE BYTES FORM blocking|async warm|cold BUDGET_MS SEED [ordinary|registered [PRODUCTS]]" to a cell. */
bool bench_cell_read(const char *line, bench_cell *cell_out);

/** Messages that a rank sends in an operation, and receives; 0: it is no exchange. */
int bench_messages(bench_op op);

/** Elements of one rank's part where all have as many, or of a message, at least one; of all parts where ops have parts, else of
 * the tensor. */
int64_t bench_part_count(const bench_cell *cell, int ranks);
int64_t bench_tensor_count(const bench_cell *cell, int ranks);

/** Where the i-th part begins, in elements, in a buffer of rank's that has one for each; of i = ranks the end. */
int64_t bench_part_begin(const bench_cell *cell, int rank, int ranks, int i);

/** Bytes of a rank's buffers; 0: it has nothing to put in, or no such buffer, and what is in `in` is overwritten in place. */
size_t bench_in_bytes(const bench_cell *cell, int rank, int ranks);
size_t bench_out_bytes(const bench_cell *cell, int rank, int ranks);

#endif

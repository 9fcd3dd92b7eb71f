/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/compressed.h - sums over a group that send less: 8 bits in the place of a number, or no blocks of zeros.
 *
 * Nothing here is ever taken by itself: who wants it calls it. It pays where bytes are slow, between hosts; inside a host
 * a dense all_reduce is quicker (docs/performance.md has both). */
#ifndef TUTTI_COMPRESSED_H
#define TUTTI_COMPRESSED_H

#include <tutti/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 8 bits --------------------------------------------------------------------------------------- */

/** Options of tutti_all_reduce_quantized. Initialise with TUTTI_QUANTIZE_OPTIONS; zero fields mean the default. */
typedef struct tutti_quantize_options {
    size_t size;
    int    block; /* numbers that share a scale: 64, 128, 256, 512 or 1024, the same on all ranks; 0: 256 */
    float *error; /* [count] error feedback: what this rank's roundings left out the last time, zeros at first, is added to
                     its numbers, and replaced by what they leave out now. Each rank's own; NULL: it is lost */
} tutti_quantize_options;

#define TUTTI_QUANTIZE_OPTIONS                                                                         \
    {                                                                                                  \
        sizeof(tutti_quantize_options), 0, 0                                                           \
    }

/** Sum or average buf across the group, in place, with 8 bits for each number that is sent, and a scale for each block.
 *
 * Every rank owns a slice. Each sends the others' slices to them as codes; the owner adds up what they stand for and its own
 * numbers, in f32 and in rank order, and sends the codes of the sum to all: two roundings, whatever the number of ranks,
 * and none by whom a slice belongs to in the first. Cut into pieces, so that what is computed and what is sent overlap.
 *
 * @param buf   f32, f16 or bf16; count and dtype equal on all ranks
 * @param op    TUTTI_SUM or TUTTI_AVG
 * @param opts  NULL: every default. What error points to is borrowed like buf
 *
 * @shapes   [count] -> [count]
 * @errors   TUTTI_E_ARG          data is NULL and count > 0, another dtype, op or block
 *           TUTTI_E_MISMATCH     ranks have other counts, dtypes, operations or blocks: all ranks get it, with the name of one
 *                                that differs from rank 0; buf is as it was, and the group goes on
 *           TUTTI_E_NOMEM        here; TUTTI_E_REMOTE on the others: buf is as it was, the group goes on
 * @threads  any; a second caller on the same group waits for the first. It is one operation in the group's order, which
 *           takes two numbers (tutti_get_sequence_number); to hooks it is "all_reduce_quantized"
 * @numbers  the same bits on all ranks, whatever instructions they have. A rounding is off by at most 1/254 of the largest
 *           magnitude in its block: in all at most (P - 1) such errors of ranks, and one of the sum. A block in which any rank's
 *           number, or the sum (in f32), is NaN or infinite is NaN, all of it, on all ranks; a sum that
 *           f32 holds and f16 does not is infinite alone; blocks below 2^-119 in magnitude are zeros.
 *           With error, what is left out of both roundings is made up for in later calls, but for rounding in f32.
 *           One rank alone keeps its numbers
 * @cost     (P-1)/P of 2 (1 + 4/block) bytes per number sent per rank, an exchange of some words before them; 4 MiB of
 *           memory for two ranks, 11 MiB for many, which the group keeps
 * @source   ours */
TUTTI_API tutti_status tutti_all_reduce_quantized(tutti_span buf, tutti_op op, const tutti_quantize_options *opts,
                                                  tutti_group *group);
/** tutti_all_reduce_quantized, not waited for. opts may go when the call returns.
 * @source ours */
TUTTI_API tutti_status tutti_all_reduce_quantized_async(tutti_span buf, tutti_op op, const tutti_quantize_options *opts,
                                                        tutti_group *group, tutti_work **work_out);

/* ---- blocks of zeros ------------------------------------------------------------------------------ */

/** Options of tutti_all_reduce_block_sparse. Initialise with TUTTI_BLOCK_SPARSE_OPTIONS; zero fields mean the default. */
typedef struct tutti_block_sparse_options {
    size_t   size;
    int      block;       /* numbers that are sent or not: 32 to 65536, the same on all ranks; 0: 256 */
    double   dense_above; /* all of buf is sent where more than this share of its blocks would be, above 0, at most 1;
                             the same on all ranks; 0: 0.75 */
    int64_t *sent;        /* NULL, or written before the operation ends: blocks that were sent; all of them: it went dense */
} tutti_block_sparse_options;

#define TUTTI_BLOCK_SPARSE_OPTIONS                                                                     \
    {                                                                                                  \
        sizeof(tutti_block_sparse_options), 0, 0, 0                                                    \
    }

/** Sum or average buf across the group, in place, and send only blocks in which any rank has something: tutti_all_reduce
 * of those that are left, one behind the other. Which they are is found out first, by a bit for each block.
 *
 * @param buf   f32, f64, f16 or bf16; count and dtype equal on all ranks
 * @param op    TUTTI_SUM or TUTTI_AVG
 * @param opts  NULL: every default
 *
 * @shapes   [count] -> [count]
 * @errors   TUTTI_E_ARG       data is NULL and count > 0, another dtype or op, or an option out of range
 *           TUTTI_E_MISMATCH  ranks have other counts, dtypes, operations or options: all ranks get it, with the name of one
 *                             that differs from rank 0; buf is as it was, and the group goes on
 *           TUTTI_E_NOMEM     before anything is sent; else the group fails, TUTTI_E_BACKEND for the others
 * @threads  any; a second caller on the same group waits for the first. It is one operation in the group's order, which
 *           takes three numbers (tutti_get_sequence_number); to hooks it is "all_reduce_block_sparse"
 * @numbers  -0.0 counts as zero, and a block of zeros on all ranks becomes 0.0 of plain bits; all other blocks have the bits
 *           of a tutti_all_reduce of as many numbers as are sent. So where sums are made in rank order (always, with
 *           TUTTI_REPRODUCIBLE=1) buf has the bits of a dense one, but for a -0.0 that all ranks have in a block of zeros
 * @cost     a reading of buf, and a bit per block in an all_reduce, in two of them from 3969 blocks on; then what
 *           tutti_all_reduce costs for blocks that are sent, and a copy of those to one place and back
 * @source   ours */
TUTTI_API tutti_status tutti_all_reduce_block_sparse(tutti_span buf, tutti_op op, const tutti_block_sparse_options *opts,
                                                     tutti_group *group);
/** tutti_all_reduce_block_sparse, not waited for. opts may go when the call returns, what sent points to when the work has
 * ended.
 * @source ours */
TUTTI_API tutti_status tutti_all_reduce_block_sparse_async(tutti_span buf, tutti_op op,
                                                           const tutti_block_sparse_options *opts, tutti_group *group,
                                                           tutti_work **work_out);

#ifdef __cplusplus
}
#endif
#endif

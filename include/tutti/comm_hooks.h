/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/comm_hooks.h - communication hooks with options and a memory: PowerSGD, which sends a few columns in the
 * place of a gradient, post-local SGD, which soon averages inside hosts alone, and averages of 8 bits in blocks.
 *
 * One is made for a reducer (a ddp's: tutti_ddp_reducer()) and registered like a hook of the program:
 *
 *     tutti_powersgd_options opts = TUTTI_POWERSGD_OPTIONS;
 *     tutti_powersgd        *sgd;
 *     opts.matrix_approximation_rank = 2;
 *     tutti_powersgd_create(reducer, &opts, &sgd);
 *     tutti_reducer_register_comm_hook(reducer, tutti_powersgd_hook(sgd), sgd);
 *
 * From there on it is the reducer's, which frees it; the pointer stays good for tutti_powersgd_get_stats() and the
 * like until then. tutti_reducer_register_compressed_comm_hook() takes it as well: then it sees 16 bits.
 *
 * With usual options tutti_reducer_register_builtin_comm_hook() does all that in one call. */
#ifndef TUTTI_COMM_HOOKS_H
#define TUTTI_COMM_HOOKS_H

#include <tutti/parallel.h>
#include <tutti/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- PowerSGD ------------------------------------------------------------------------------------- */

/** PowerSGD of one reducer: its options, errors and columns, from step to step. */
typedef struct tutti_powersgd tutti_powersgd;

/** A matrix whose Q is wanted. */
typedef struct tutti_powersgd_matrix {
    size_t  size;  /* of this struct, as the library was built */
    int64_t iter;  /* the step */
    int     index; /* of the parameter; batched: of the bucket */
    int64_t rows;  /* of Q: the columns of the gradient, as a matrix */
    int     cols;
} tutti_powersgd_matrix;

/** Fill q, [rows][cols] row by row, in the place of random numbers. The same on all ranks. */
typedef void (*tutti_powersgd_draw_fn)(void *ctx, const tutti_powersgd_matrix *matrix, double *q);

/** Options of tutti_powersgd_create. Initialise with TUTTI_POWERSGD_OPTIONS; zero fields mean the default. */
typedef struct tutti_powersgd_options {
    size_t   size;
    int      matrix_approximation_rank; /* columns that are sent for a matrix; 0: 1 */
    int64_t  start_iter;                /* plain averages before this step; 0: 1000, TUTTI_POWERSGD_AT_ONCE: none */
    double   min_compression_rate;      /* a matrix is sent whole that would not shrink by more; 0: 2 */
    bool     no_error_feedback;         /* what a step leaves out is lost, else added to the next gradient */
    bool     no_warm_start;             /* columns are drawn in every step, else they begin where the last ones were */
    double   orthogonalization_epsilon; /* added to lengths that are divided by */
    uint64_t random_seed;
    int64_t  compression_stats_logging_frequency; /* in steps; 0: 10000, below 1: 1 */
    bool     batched;                   /* a bucket is one square matrix: faster, and further from the gradient */
    tutti_powersgd_draw_fn draw;        /* NULL: random numbers of random_seed, step and parameter */
    void                  *draw_ctx;
} tutti_powersgd_options;

#define TUTTI_POWERSGD_OPTIONS                                                                         \
    {                                                                                                  \
        sizeof(tutti_powersgd_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                \
    }

/** tutti_powersgd_options.start_iter: from the first step on. */
#define TUTTI_POWERSGD_AT_ONCE (-1)

/** Make PowerSGD for a reducer, before the first step. Every member of its group does, with the same options; in the first
 * step they compare them, and make a group for messages of the hook.
 *
 * A gradient M of two dimensions or more, [first][all others], is sent as P Q^T of so many columns: P = M Q, summed and
 * made orthonormal, Q = M^T P, averaged. What is smaller without stays whole, and so do all others. All of them are
 * sums over the group, so that the result is the same on all ranks. f16 and bf16 are computed in f32.
 *
 * @param opts       NULL: every default
 * @param state_out  to be registered with tutti_powersgd_hook(), or freed by tutti_powersgd_free()
 *
 * @errors   TUTTI_E_ARG          an option makes no sense. Error feedback and warm start need start_iter above 1, as
 *                                buckets are rebuilt after the first step: or both no_... and AT_ONCE
 *           TUTTI_E_UNSUPPORTED  a parameter is complex
 *           TUTTI_E_NOMEM
 *           A step fails with TUTTI_E_MISMATCH if ranks have different options, or have loaded different steps; once it
 *           has failed it fails on and on, until the reducer gets another group. The reducer's group stays good
 *           by it: ranks that have failed still issue what those wait for that have not heard of it
 * @threads  one
 * @numbers  the same bits on all ranks, whatever buckets the parameters are in. Where a gradient is not finite
 *           the result is NaN on all ranks, and what was kept of the matrix begins anew. A direction in which
 *           all gradients are zero is left out, and drawn again
 * @cost     per matrix [n][m] and k columns: 3 readings of it, (n + m) k elements in the place of n m; two all_reduces per
 *           bucket, one after the other, the second in the background. Memory: with error feedback as much as the matrices
 *           that shrink; batched: that, and the bucket once more
 * @source   torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook.PowerSGDState */
TUTTI_API tutti_status tutti_powersgd_create(const tutti_reducer *reducer, const tutti_powersgd_options *opts,
                                             tutti_powersgd **state_out);

/** The table to register it with: batched, if it was made so.
 * @threads  any; it lives as long as the state
 * @source   torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook.powerSGD_hook,
 *           torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook.batched_powerSGD_hook */
TUTTI_API const tutti_comm_hook *tutti_powersgd_hook(const tutti_powersgd *state);

/** Free one that was not registered. NULL does nothing.
 * @threads one
 * @source  ours */
TUTTI_API void tutti_powersgd_free(tutti_powersgd *state);

/** What PowerSGD has saved so far. */
typedef struct tutti_powersgd_stats {
    size_t  size;      /* of this struct, as the library was built */
    int64_t iter;      /* steps that were begun */
    int64_t n_before;  /* elements of gradients, in steps that compressed, */
    int64_t n_after;   /* and elements in their place */
    double  rate;      /* n_before / n_after; 0: none yet */
} tutti_powersgd_stats;

/** How much is saved. It is logged, too (info), in every compression_stats_logging_frequency steps.
 * @errors   TUTTI_E_ARG  an argument is NULL
 * @threads  one, not inside a step
 * @source   torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook.PowerSGDState.compression_stats */
TUTTI_API tutti_status tutti_powersgd_get_stats(const tutti_powersgd *state, tutti_powersgd_stats *stats_out);

/** All that is kept from step to step, for a checkpoint: steps, errors, columns. Each rank keeps its own: errors differ.
 *
 * @param bytes_out  the caller frees it with tutti_bytes_free()
 * @errors   TUTTI_E_ARG, TUTTI_E_NOMEM
 * @threads  one, not inside a step
 * @cost     a copy: as large as what is kept
 * @source   torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook.PowerSGDState.__getstate__ */
TUTTI_API tutti_status tutti_powersgd_save(const tutti_powersgd *state, tutti_bytes *bytes_out);

/** Go on where tutti_powersgd_save() was called, in this process or another one: the same bits come. Not inside a step.
 * Buckets may differ; batched forgets then what it cannot take along: its columns, and errors behind the bucket's end.
 *
 * @param data  [bytes] from a reducer with the same parameters, and the same rank and form of PowerSGD
 * @errors   TUTTI_E_ARG       it is not what tutti_powersgd_save() has made; nothing has changed
 *           TUTTI_E_MISMATCH  of other parameters or options; the text tells which; nothing has changed
 *           TUTTI_E_NOMEM     nothing is kept: as after tutti_powersgd_create()
 * @threads  one
 * @source   torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook.PowerSGDState.__setstate__ */
TUTTI_API tutti_status tutti_powersgd_load(tutti_powersgd *state, const void *data, size_t bytes);

/* ---- post-local SGD ------------------------------------------------------------------------------- */

/** Averages over all ranks at first, over some of them later: of one reducer. */
typedef struct tutti_post_local_hook tutti_post_local_hook;

/** Options of tutti_post_local_hook_create. Initialise with TUTTI_POST_LOCAL_HOOK_OPTIONS; zero fields mean the default. */
typedef struct tutti_post_local_hook_options {
    size_t       size;
    int64_t      start_iter;              /* averages over all ranks before this step */
    tutti_group *subgroup;                /* averages over these after it; NULL: the ranks of this host. It must live as long
                                             as the hook, also when the reducer gets another group */
    bool         no_gradient_all_reduce;  /* after it gradients stay this rank's own */
} tutti_post_local_hook_options;

#define TUTTI_POST_LOCAL_HOOK_OPTIONS                                                                   \
    {                                                                                                  \
        sizeof(tutti_post_local_hook_options), 0, 0, 0                                                 \
    }

/** Make post-local SGD for a reducer. Who uses it averages parameters over all ranks now and then, from start_iter on
 * (tutti/averaging.h).
 * The group of a host's ranks is made when the first step needs it.
 *
 * @param opts       NULL: every default
 * @param state_out  to be registered with tutti_post_local_hook_table(), or freed by tutti_post_local_hook_free()
 * @errors   TUTTI_E_ARG    start_iter is negative, or this rank is not in the subgroup
 *           TUTTI_E_NOMEM
 * @threads  one
 * @numbers  the same bits on the ranks that average together
 * @source   torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook.PostLocalSGDState */
TUTTI_API tutti_status tutti_post_local_hook_create(const tutti_reducer *reducer,
                                                    const tutti_post_local_hook_options *opts,
                                                    tutti_post_local_hook **state_out);

/** The table to register it with.
 * @threads  any; it lives as long as the state
 * @source   torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook.post_localSGD_hook */
TUTTI_API const tutti_comm_hook *tutti_post_local_hook_table(const tutti_post_local_hook *state);

/** Free one that was not registered. NULL does nothing.
 * @threads one
 * @source  ours */
TUTTI_API void tutti_post_local_hook_free(tutti_post_local_hook *state);

/** The steps so far, for a checkpoint: without them a run that goes on averages over all ranks until start_iter once more.
 * They are the same on all ranks, so that one rank may save them for all.
 *
 * @param bytes_out  a few bytes; the caller frees it with tutti_bytes_free()
 * @errors   TUTTI_E_ARG, TUTTI_E_NOMEM
 * @threads  one, not inside a step
 * @source   ours; torch pickles torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook.PostLocalSGDState */
TUTTI_API tutti_status tutti_post_local_hook_save(const tutti_post_local_hook *state, tutti_bytes *bytes_out);

/** Go on where tutti_post_local_hook_save() was called, in this process or another one: the same bits come. All ranks do,
 * with the same steps: they average with the same ranks then. Not inside a step. Options, the subgroup among them,
 * stay those that it was made with.
 *
 * @param data  [bytes] from any post-local SGD
 * @errors   TUTTI_E_ARG  it is not what tutti_post_local_hook_save() has made; nothing has changed
 * @threads  one
 * @source   ours; torch unpickles torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook.PostLocalSGDState */
TUTTI_API tutti_status tutti_post_local_hook_load(tutti_post_local_hook *state, const void *data, size_t bytes);

/* ---- 8 bits in blocks ----------------------------------------------------------------------------- */

/** Averages of 8 bits of one reducer, with what their roundings left out. */
typedef struct tutti_quantized_hook tutti_quantized_hook;

/** Options of tutti_quantized_hook_create. Initialise with TUTTI_QUANTIZED_HOOK_OPTIONS; zero fields mean the default. */
typedef struct tutti_quantized_hook_options {
    size_t size;
    int    block;          /* gradients that share a scale: 64, 128, 256, 512 or 1024; 0: 256. The same on all ranks */
    bool   error_feedback; /* what roundings leave out is added to the next gradients, else it is lost */
} tutti_quantized_hook_options;

#define TUTTI_QUANTIZED_HOOK_OPTIONS                                                                   \
    {                                                                                                  \
        sizeof(tutti_quantized_hook_options), 0, 0                                                     \
    }

/** Make averages of 8 bits for a reducer: tutti_all_reduce_quantized() of every bucket (tutti/compressed.h), in the order of
 * buckets and beside the backward.
 *
 * @param opts       NULL: every default
 * @param state_out  to be registered with tutti_quantized_hook_table(), or freed by tutti_quantized_hook_free()
 * @errors   TUTTI_E_ARG          block is none of those
 *           TUTTI_E_UNSUPPORTED  a parameter is none of f32, f16, bf16; the text names it
 *           TUTTI_E_NOMEM
 *           A step fails with TUTTI_E_MISMATCH if ranks have different blocks
 * @threads  one
 * @numbers  as tutti_all_reduce_quantized: the same bits on all ranks, a block of buckets is NaN where one gradient is not
 *           finite. A gradient that is small beside others of its block is rounded away: without error feedback it is
 *           lost for good. Kept errors begin anew when buckets are rebuilt, which is after the first step
 * @cost     a quarter of the bytes of f32, half of those of 16 bits. Error feedback: an f32 for every element, in memory
 * @source   ours */
TUTTI_API tutti_status tutti_quantized_hook_create(const tutti_reducer *reducer,
                                                   const tutti_quantized_hook_options *opts,
                                                   tutti_quantized_hook **state_out);

/** The table to register it with.
 * @threads  any; it lives as long as the state
 * @source   ours */
TUTTI_API const tutti_comm_hook *tutti_quantized_hook_table(const tutti_quantized_hook *state);

/** Free one that was not registered. NULL does nothing.
 * @threads one
 * @source  ours */
TUTTI_API void tutti_quantized_hook_free(tutti_quantized_hook *state);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/parallel.h - averaging gradients while they are still being computed: the reducer of
 * DistributedDataParallel, for any engine that can say "the gradient of parameter i is ready".
 *
 * No tensor library is needed: a parameter is a number of elements of a type, its gradient is plain memory. The
 * program drives the reducer, where torch hooks it into autograd. A step of the loop is
 *
 *     tutti_reducer_prepare_for_forward(r);              counts the step, rebuilds buckets once
 *     ... forward ...
 *     tutti_reducer_prepare_for_backward(r, NULL, 0);    from here on gradients are awaited
 *     ... backward: for each parameter, as soon as its gradient is there:
 *         tutti_reducer_mark_ready(r, i);
 *     tutti_reducer_finish(r);                           every gradient is the average over the group
 *     ... optimizer; zero the gradients ...
 *
 * Gradients are collected in buckets; a bucket is reduced, while the backward goes on, when all of its gradients are
 * ready and all buckets before it were begun. That order is the same on all ranks, whatever the order of mark_ready
 * on each; bits of the results are, too. Every member makes the same steps; NULL is the calling thread's world when
 * the reducer is made.
 *
 * Gradients are floating or complex, and whole: no bucket is divided before it is summed, but the finished sum is,
 * before it is rounded to the dtype (TUTTI_AVG).
 *
 * Failures are told to all: a rank that has marked a parameter twice, or not at all, gets TUTTI_E_STATE of its
 * finish(), and the others TUTTI_E_REMOTE with its words, unless everything had been reduced by then. So finish() is
 * called also after mark_ready() has failed. Averages are undefined then; the reducer and the group go on. When the group
 * itself fails, as a rank has died, it is finished (tutti/group.h).
 *
 * Ranks may have different numbers of inputs: tutti/join.h.
 *
 * mark_ready may be called by several threads at once. Everything else is for one thread at a time, and not while
 * another is inside mark_ready. */
#ifndef TUTTI_PARALLEL_H
#define TUTTI_PARALLEL_H

#include <tutti/future.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_reducer tutti_reducer;

/** A parameter whose gradient is to be averaged. Its index is its place in the table, the same on all ranks. */
typedef struct tutti_reducer_param {
    const char    *name;    /* for people, in errors; copied. NULL: it has none */
    tutti_dtype    dtype;   /* of its gradient: anything that TUTTI_AVG takes */
    int64_t        numel;   /* elements; 0 is legal */
    int            ndim;    /* 0: sizes and strides are not told, [numel] is meant */
    const int64_t *sizes;   /* [ndim] compared between ranks; their product is numel */
    const int64_t *strides; /* [ndim] in elements, of a gradient without gaps; NULL: row-major */
    void          *grad;    /* numel elements without gaps, borrowed; NULL: undefined, or, with
                               gradient_as_bucket_view, the place in its bucket, zeroed */
} tutti_reducer_param;

/** Options of tutti_reducer_create. Initialise with TUTTI_REDUCER_OPTIONS; zero fields mean the default. */
typedef struct tutti_reducer_options {
    size_t         size;
    tutti_group   *group;            /* NULL: the world */
    int64_t        bucket_cap_bytes; /* 0: 25 MiB, and the first bucket 1 MiB; anything else holds for all */
    const int64_t *bucket_caps;      /* [n_bucket_caps] one for each bucket, the last one for those that follow; */
    int            n_bucket_caps;    /* 0: bucket_cap_bytes */
    bool           find_unused_parameters;  /* prepare_for_backward tells which ones */
    bool           static_graph;            /* every step marks the same parameters the same number of times */
    bool           gradient_as_bucket_view; /* gradients live in the buckets: nothing is copied */
    bool           skip_init_sync;          /* do not compare the parameters of the ranks */
    const char    *name;                    /* of the module, in logging data; copied */
    bool           skip_all_reduce_unused_params; /* find_unused_parameters: a bucket of unused ones alone is not
                                                     reduced. All ranks must leave out the same parameters. One that
                                                     fails before it knows which (tutti_reducer_fail()) ends in
                                                     TUTTI_E_MISMATCH on all of them, and the group with it */
} tutti_reducer_options;

#define TUTTI_REDUCER_OPTIONS                                                                          \
    {                                                                                                  \
        sizeof(tutti_reducer_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                    \
    }

/** Make a reducer. Every member of the group calls it with the same parameters and options.
 *
 * @param params       [n_params] in the order of the model; the table may go when the call returns
 * @param opts         NULL: every default
 * @param reducer_out  to be freed by tutti_reducer_free(), before its group is destroyed
 *
 * @errors   TUTTI_E_ARG       a parameter or an option makes no sense; the text tells which. The others get
 *                             TUTTI_E_REMOTE, unless skip_init_sync
 *           TUTTI_E_MISMATCH  ranks have different parameters or modes: on all of them, with the parameter's name,
 *                             two ranks and both values. Names are not compared, the layout of gradients is
 *           TUTTI_E_NOMEM
 * @cost     one all_gather of 32 bytes, a second one where ranks differ. Memory for all gradients, registered
 *           (tutti/memory.h) as far as there is some
 * @threads  one
 * @source   torch.distributed.Reducer, torch.distributed._verify_params_across_processes */
TUTTI_API tutti_status tutti_reducer_create(const tutti_reducer_param *params, int n_params,
                                            const tutti_reducer_options *opts, tutti_reducer **reducer_out);

/** Free a reducer; reductions that are under way are waited for. NULL does nothing. With gradient_as_bucket_view the
 * gradients go with it.
 * @threads one
 * @source  ours */
TUTTI_API void tutti_reducer_free(tutti_reducer *reducer);

/* ---- a step --------------------------------------------------------------------------------------- */

/** Begin a step: count it, and, once in the reducer's life, rebuild the buckets in the order in which gradients came
 * in the first step (with static_graph: the second), rank 0's order for all. Gradients that live in buckets move then:
 * ask for them again.
 *
 * @errors   TUTTI_E_STATE  the step before was not finished; the text names the parameters that were not marked
 *           TUTTI_E_NOMEM, on the others TUTTI_E_REMOTE: the buckets stay as they are on all ranks
 *           what tutti_broadcast fails with
 * @threads  one
 * @source   torch.distributed.Reducer.prepare_for_forward, torch.distributed.Reducer._rebuild_buckets */
TUTTI_API tutti_status tutti_reducer_prepare_for_forward(tutti_reducer *reducer);

/** From here on gradients are awaited. Does nothing while tutti_reducer_set_sync() says so: gradients then stay local.
 * Calls tutti_reducer_prepare_for_forward() if nobody has since the last step.
 *
 * @param unused  [n_unused] indices of parameters that this backward will not mark; counts with
 *                find_unused_parameters alone. Ranks may have different ones. They are marked with the first gradient
 *
 * @errors   TUTTI_E_ARG    an index is out of range
 *           as tutti_reducer_prepare_for_forward
 * @threads  one
 * @source   torch.distributed.Reducer.prepare_for_backward (which finds unused parameters in the autograd graph) */
TUTTI_API tutti_status tutti_reducer_prepare_for_backward(tutti_reducer *reducer, const int *unused, int n_unused);

/** The gradient of a parameter is complete: hand it over, and begin what can be reduced now. Until finish() the gradient
 * may be read, not written.
 *
 * A gradient that is undefined counts as zeros. Outside of prepare_for_backward() and finish(), or without sync, it is
 * only remembered that the parameter was used. With static_graph a parameter may be marked several times a step,
 * as often as in the first that this rank makes.
 *
 * @errors   TUTTI_E_ARG    index is out of range
 *           TUTTI_E_STATE  marked already, or the graph is not that of the first step
 *           TUTTI_E_NOMEM
 *           What a reduction or a communication hook fails with when it begins comes out of finish()
 * @threads  any, several at once; one index by one of them
 * @cost     a copy of the gradient; none if it lives in its bucket, unless it may be unused by all
 * @source   torch.distributed.Reducer.autograd_hook */
TUTTI_API tutti_status tutti_reducer_mark_ready(tutti_reducer *reducer, int index);

/** Wait for everything that was begun, and put the averages where the gradients are. Does nothing outside of a step.
 *
 * A parameter that no rank has used keeps its gradient as it was (find_unused_parameters, static_graph). One that
 * another rank has used gets the average also where it was not used. Undefined gradients become the place in the bucket,
 * in every mode.
 *
 * @errors   TUTTI_E_STATE   a parameter was not marked, or mark_ready() had failed; the text names it
 *           TUTTI_E_REMOTE  that happened on another rank: its words
 *           what the reductions fail with
 * @threads  one, after every mark_ready() of the step has returned
 * @source   torch.distributed.Reducer.finalize_backward */
TUTTI_API tutti_status tutti_reducer_finish(tutti_reducer *reducer);

/** This rank cannot make the step that the others make, or not to its end: begin what they wait for, with what there
 * is, to tell them so. Anywhere in a step, or before it; then tutti_reducer_finish(), which fails with the same, and on
 * the others with TUTTI_E_REMOTE and these words.
 *
 * @param status  what has failed, not TUTTI_OK
 * @param why     words for the others; they may be tutti_last_error()
 * @errors   status, with the words; TUTTI_E_ARG; what tutti_reducer_prepare_for_forward() fails with. Without sync
 *           nobody is told
 * @threads  one, not while another is inside mark_ready
 * @source   ours */
TUTTI_API tutti_status tutti_reducer_fail(tutti_reducer *reducer, tutti_status status, const char *why);

/** Whether steps that are prepared from now on average gradients. Without, gradients accumulate where they are, and the
 * next step with sync averages their sum. The same on all ranks.
 * @threads one
 * @source  torch.nn.parallel.DistributedDataParallel.no_sync */
TUTTI_API void tutti_reducer_set_sync(tutti_reducer *reducer, bool sync);

/** Give up a step in the middle, so that training can go on: reductions are begun and waited for as in
 * tutti_reducer_finish(); what was recorded is dropped, buckets will be rebuilt once more. All ranks call it, or none.
 * @errors  what the reductions fail with, but for parameters that were not marked
 * @threads one
 * @source  torch.distributed.Reducer.reset_state */
TUTTI_API tutti_status tutti_reducer_reset_state(tutti_reducer *reducer);

/** Average over another group from the next step on: one without the ranks that have gone (tutti/regroup.h), say. After a
 * step that has failed, tutti_reducer_reset_state() comes first. Nothing is sent, parameters are not compared: the
 * members come from the group before, and have its buckets. Communication hooks are told (group_changed).
 *
 * @param group  borrowed; NULL: the world. The world in which the reducer was made stays until the reducer is freed
 * @errors   TUTTI_E_STATE  a step, or a scope of uneven inputs, is under way; this rank is not in the group
 *           TUTTI_E_ARG, TUTTI_E_NOMEM
 * @threads  one
 * @source   torch.nn.parallel.DistributedDataParallel._update_process_group */
TUTTI_API tutti_status tutti_reducer_update_process_group(tutti_reducer *reducer, tutti_group *group);

/* ---- gradients ------------------------------------------------------------------------------------ */

/** Where the gradient of a parameter is: what was given, or its place in the bucket; NULL when it is undefined, or
 * there is no such parameter.
 * @threads any, not while the same one is marked
 * @source  torch.Tensor.grad */
TUTTI_API void *tutti_reducer_grad(const tutti_reducer *reducer, int index);

/** Say where the gradient of a parameter is from now on. Not between its mark_ready() and finish(). With
 * gradient_as_bucket_view it moves to its bucket when it is marked next.
 *
 * @param grad  numel elements, borrowed; NULL: undefined
 * @errors   TUTTI_E_ARG  there is no such parameter
 * @threads  one per parameter
 * @source   torch.Tensor.grad */
TUTTI_API tutti_status tutti_reducer_set_grad(tutti_reducer *reducer, int index, void *grad);

/** The place of a parameter in its bucket, until the buckets are rebuilt: no memory if there is no such parameter.
 * @threads any
 * @source  ours */
TUTTI_API tutti_span tutti_reducer_bucket_view(const tutti_reducer *reducer, int index);

/* ---- communication hooks -------------------------------------------------------------------------- */

/** A bucket as a hook sees it. The struct is for the call; what it points to is the reducer's, and holds until the
 * hook's future is complete. */
typedef struct tutti_grad_bucket {
    size_t         size;     /* of this struct, as the library was built */
    int            index;    /* in the order of reduction */
    bool           is_last;  /* of this step */
    int            n_params;
    const int     *params;   /* [n_params] their indices, */
    const int64_t *offsets;  /* [n_params] where each begins in buffer, in elements, */
    const int64_t *counts;   /* [n_params] and how many it has */
    tutti_span     buffer;   /* the gradients of this rank, not divided */
    tutti_group   *group;
} tutti_grad_bucket;

enum { TUTTI_COMM_HOOK_API = 1 };

/** What reduces a bucket in the place of the average. */
typedef struct tutti_comm_hook {
    uint32_t    api;  /* TUTTI_COMM_HOOK_API of the build that made this table */
    uint32_t    size; /* sizeof(tutti_comm_hook) of that build */
    const char *name; /* for logging data */

    /* Required. Begin the reduction of a bucket, and give a future, a new reference. Its value is a tutti_spans whose
     * first span has the result, as many elements as the bucket, of the same or, if both are real, of another floating
     * dtype; or NULL or no span: the bucket's own memory has it. Called in the order of buckets, one at a time, by any
     * thread that calls mark_ready() or finish(), under no lock; on every rank, also when the step is about to fail.
     * It must not call the reducer. Nothing is divided by the reducer: averaging is the hook's.
     * Where it fails on all ranks alike, in the same bucket, only the step is lost. Where it fails on one, and has not issued
     * what it issues on the others, the group is finished on all ranks: finish() gives the hook's failure on this one, and
     * TUTTI_E_MISMATCH on the others, which names it. One that can issue its part all the same should, and let the
     * future fail: the group stays good then, and this rank's step is lost. */
    tutti_status (*run)(void *state, const tutti_grad_bucket *bucket, tutti_future **future_out);
    /* Optional. The reducer is freed. */
    void (*free_state)(void *state);
    /* Optional. The reducer averages over another group from now on, which comes with the next bucket; the one before, and
     * groups made from it, may be gone. A table may end before this. */
    void (*group_changed)(void *state);
} tutti_comm_hook;

/** Have a hook reduce the buckets. Once, before the first step, on all ranks the same.
 *
 * @param hook  the table, which must live as long as the reducer
 * @errors   TUTTI_E_STATE  there is a hook already, or a step has begun
 *           TUTTI_E_ARG    no table, or one of another version
 * @threads  one
 * @source   torch.distributed._register_comm_hook */
TUTTI_API tutti_status tutti_reducer_register_comm_hook(tutti_reducer *reducer, const tutti_comm_hook *hook,
                                                        void *state);

/** Hooks of the library. */
typedef enum tutti_builtin_comm_hook {
    TUTTI_HOOK_ALLREDUCE = 0,     /* the average, as without a hook */
    TUTTI_HOOK_FP16_COMPRESS = 1, /* rounded to f16, averaged (in f32, rounded once), and back */
    TUTTI_HOOK_BF16_COMPRESS = 2, /* the same with bf16 */
    TUTTI_HOOK_NOOP = 3,          /* nothing: gradients stay local. For measuring what communication costs */
    TUTTI_HOOK_QUANTIZE_PER_TENSOR = 4, /* rounded to 8 bits between the extremes of a bucket, then averaged in f32 */
    TUTTI_HOOK_QUANTIZE_PER_CHANNEL = 5, /* the same for each 512 elements of it */
    TUTTI_HOOK_POWER_SGD = 6, /* PowerSGD of 1 column from step 1000 on (tutti/comm_hooks.h, for other options) */
    TUTTI_HOOK_POWER_SGD_RANK2 = 7,   /* of 2 columns */
    TUTTI_HOOK_BATCHED_POWER_SGD = 8, /* a bucket as one matrix, 1 column from step 1000 on */
    TUTTI_HOOK_BATCHED_POWER_SGD_RANK2 = 9
} tutti_builtin_comm_hook;

/** Have one of the library's hooks reduce the buckets.
 *
 * @errors   TUTTI_E_ARG          there is no such hook
 *           TUTTI_E_UNSUPPORTED  a hook that compresses, and a parameter is complex
 *           TUTTI_E_STATE        there is a hook already, or a step has begun
 *           PowerSGD             as tutti_powersgd_create()
 * @threads  one
 * @numbers  compressed: half the bytes, 11 or 8 bits of precision; a gradient beyond 65504 is infinity in f16. Quantized:
 *           off by half a step of (largest - smallest) / 255 on each rank; the same bits on all ranks
 * @cost     quantized: an all_gather, P - 1 times a quarter of the bytes sent
 * @source   torch.distributed.BuiltinCommHookType, torch.distributed.algorithms.ddp_comm_hooks.default_hooks,
 *           torch.distributed.algorithms.ddp_comm_hooks.quantization_hooks */
TUTTI_API tutti_status tutti_reducer_register_builtin_comm_hook(tutti_reducer *reducer, tutti_builtin_comm_hook kind);

/** The hook that torch calls so: "POWER_SGD" is TUTTI_HOOK_POWER_SGD, and so on.
 * @errors   TUTTI_E_ARG  there is none
 * @threads  any
 * @source   torch.distributed.algorithms.ddp_comm_hooks.DDPCommHookType */
TUTTI_API tutti_status tutti_builtin_comm_hook_from_name(const char *name, tutti_builtin_comm_hook *kind_out);

/** Have a hook reduce buckets that were rounded to 16 bits: it sees a bucket whose buffer is of that dtype.
 *
 * @param dtype  TUTTI_F16 or TUTTI_BF16
 * @param hook   the inner one; its free_state is called with the reducer's end
 * @errors   as tutti_reducer_register_comm_hook; the inner state stays the caller's then
 *           TUTTI_E_UNSUPPORTED  a parameter is complex
 * @threads  one
 * @source   torch.distributed.algorithms.ddp_comm_hooks.default_hooks.fp16_compress_wrapper, bf16_compress_wrapper */
TUTTI_API tutti_status tutti_reducer_register_compressed_comm_hook(tutti_reducer *reducer, tutti_dtype dtype,
                                                                   const tutti_comm_hook *hook, void *state);

/* ---- what is inside ------------------------------------------------------------------------------- */

/** How many buckets there are now.
 * @threads any, not while buckets are rebuilt
 * @source  ours */
TUTTI_API int tutti_reducer_bucket_count(const tutti_reducer *reducer);

/** A bucket, in the order of reduction; one of no parameters if there is none. It holds until the buckets are rebuilt.
 * @threads any, not while buckets are rebuilt
 * @source  torch.distributed.GradBucket */
TUTTI_API tutti_grad_bucket tutti_reducer_bucket(const tutti_reducer *reducer, int index);

/** What tutti_reducer_logging_data() calls for each entry: both are borrowed for the call. */
typedef void (*tutti_logging_fn)(const char *key, const char *value, void *ctx);

/** Call fn for every entry of the logging data, in the names of torch: module_name, world_size, rank, iteration,
 * num_parameter_tensors, total_parameter_size_bytes, dtypes, bucket_sizes, bucket_cap_bytes, modes, backend_name,
 * rebuilt_bucket_sizes, prev_iteration_grad_ready_order_indices, times, comm_hook, has_error, error, and more. Times are
 * of the last step with sync, avg_ of all.
 * @units    bytes; ns
 * @threads  one, not while another is inside mark_ready
 * @source   torch.distributed.Logger */
TUTTI_API void tutti_reducer_logging_data(tutti_reducer *reducer, tutti_logging_fn fn, void *ctx);

/* ---- the same values everywhere, to begin with ------------------------------------------------------ */

/** Copy src's spans to every rank: parameters and buffers, before the first step.
 *
 * Spans of one dtype travel together, in groups of about cap_bytes; two groups are on the way at a time.
 *
 * @param spans      [n_spans] of any dtypes; counts and dtypes equal on all ranks
 * @param cap_bytes  0: 250 MiB
 * @param src        global rank
 * @errors   TUTTI_E_ARG, TUTTI_E_NOMEM, and what tutti_broadcast fails with
 * @threads  one per group
 * @cost     a copy of what travels, beside the broadcast; none for a span that travels alone
 * @source   torch.distributed._broadcast_coalesced */
TUTTI_API tutti_status tutti_broadcast_coalesced(const tutti_span *spans, int n_spans, int64_t cap_bytes, int src,
                                                 tutti_group *group);

#ifdef __cplusplus
}
#endif
#endif

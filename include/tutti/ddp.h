/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/ddp.h - DistributedDataParallel: the same module on every rank, trained on different inputs, with
 * gradients that are averaged while the backward goes on.
 *
 *     tutti_ddp *ddp;
 *     tutti_ddp_create(net, NULL, &ddp);                 every rank has rank 0's parameters and buffers now
 *     for each batch {
 *         loss = ... tutti_ddp_forward(ddp, x) ...;
 *         tutti_optim_zero_grad(optim);
 *         tutti_tensor_backward(loss);                   gradients are averages when it returns
 *         tutti_optim_step(optim);
 *     }
 *     tutti_ddp_free(ddp);                               the module is as it was, with what it has learned
 *
 * Below is a reducer (tutti/parallel.h): tutti_ddp_reducer() gives it, for communication hooks and what else can be
 * asked of it. Gradients reach it by hooks on the parameters, and the end of the backward waits for the averages;
 * tutti_backward() fails as the reducer does: a rank that has failed, in its forward, its loss or its backward, or does
 * not use a parameter that it should, tells the others, and all fail at once.
 *
 * A step is one forward and one backward. The forward decides whether gradients are averaged (tutti_ddp_set_sync(), and
 * whether operations are recorded), whatever holds when the backward runs. A second backward through the same
 * forward only adds to the gradients of this rank.
 *
 * With gradient_as_bucket_view gradients lie in the buckets from the first backward on. Who keeps a reference to such a
 * gradient beyond the ddp, or beyond the second step, when buckets are rebuilt, keeps a copy. Dropping gradients
 * (tutti_optim_zero_grad() with set_to_none) costs a copy in the next step, making them zero does not.
 *
 * Gradients travel row by row. One that lies otherwise becomes a copy that does, in every step, which is warned of once.
 *
 * With mixed_precision parameters of f32 are rounded to 16 bits for a forward and its backward, in place, so that modules need not
 * know of it. Whenever no step is under way they have their f32 elements, which no rounding has touched, and their gradients are
 * f32. Hooks of the program on gradients of parameters see 16 bits in between. Who calls tutti_ddp_before_forward() converts
 * inputs himself.
 *
 * Used by one thread at a time: forward and backward too. */
#ifndef TUTTI_DDP_H
#define TUTTI_DDP_H

#include <tutti/join.h>
#include <tutti/nn.h>
#include <tutti/parallel.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_ddp tutti_ddp;

/** Types of a module that computes in 16 bits. Initialise with TUTTI_MIXED_PRECISION: bf16, averages and buffers in f32. */
typedef struct tutti_mixed_precision {
    size_t size;
    tutti_dtype param_dtype;  /* of parameters of f32 between the beginning of a forward and the end of its backward, and
                                 of what tutti_ddp_forward() is given; f16 or bf16 */
    tutti_dtype reduce_dtype; /* of gradients on the way: f32, or f16 or bf16, by a communication hook that compresses */
    tutti_dtype buffer_dtype; /* of floating buffers from now on */
} tutti_mixed_precision;

#define TUTTI_MIXED_PRECISION                                              \
    {                                                                      \
        sizeof(tutti_mixed_precision), TUTTI_BF16, TUTTI_F32, TUTTI_F32    \
    }

/** Options of tutti_ddp_create. Initialise with TUTTI_DDP_OPTIONS; zero fields mean the default. */
typedef struct tutti_ddp_options {
    size_t size;
    tutti_group *group;            /* NULL: the world */
    int64_t bucket_cap_bytes;      /* these three as in tutti_reducer_options */
    const int64_t *bucket_caps;
    int n_bucket_caps;
    bool find_unused_parameters;   /* steps may leave parameters out, ranks different ones */
    bool static_graph;             /* every step uses the same parameters the same number of times */
    bool gradient_as_bucket_view;  /* gradients live in buckets */
    bool skip_init_sync;           /* neither compare the parameters of the ranks nor give them rank 0's */
    bool local_buffers;            /* after the beginning each rank keeps its own buffers: broadcast_buffers=False */
    const char *const *ignored;    /* [n_ignored] names of parameters and buffers that are left alone */
    int n_ignored;
    bool skip_all_reduce_unused_params; /* as in tutti_reducer_options */
    const tutti_mixed_precision *mixed_precision; /* NULL: compute in the parameters' types */
} tutti_ddp_options;

#define TUTTI_DDP_OPTIONS                                                 \
    {                                                                     \
        sizeof(tutti_ddp_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0  \
    }

/** Wrap a module. Every member of the group calls it with the same module and options.
 *
 * The parameters that require gradients now are averaged, each once, wherever it stands. All parameters and buffers
 * become rank 0's, also with local_buffers; with skip_init_sync none do.
 *
 * @param module   borrowed, nobody's child; it belongs to the ddp until tutti_ddp_free(), and must not be freed before.
 *                 It must not get other parameters meanwhile
 * @param opts     NULL: every default
 * @param ddp_out  to be freed by tutti_ddp_free(), before its group is destroyed
 *
 * @errors   TUTTI_E_ARG       the module is NULL, somebody's child, has no parameter that requires a gradient, or one of a
 *                             type that cannot be averaged; an option makes no sense. The others get TUTTI_E_REMOTE,
 *                             unless skip_init_sync
 *           TUTTI_E_STATE     the module is wrapped already; the others as before
 *           TUTTI_E_MISMATCH  as tutti_reducer_create(): on all ranks
 *           TUTTI_E_NOMEM, and what collectives fail with. The module is as it was, and can be wrapped again
 * @threads  one
 * @cost     as tutti_reducer_create(), and a broadcast of all parameters and buffers
 * @source   torch.nn.parallel.DistributedDataParallel */
TUTTI_API tutti_status tutti_ddp_create(tutti_module *module, const tutti_ddp_options *opts,
                                        tutti_ddp **ddp_out);

/** Take everything off the module that was put on it. Gradients stay, also those that lie in buckets. NULL does nothing.
 * @threads one
 * @source  ours */
TUTTI_API void tutti_ddp_free(tutti_ddp *ddp);

/* ---- steps ------------------------------------------------------------------------------------ */

/** What the module makes of x, and all that belongs to a step of all ranks.
 *
 * Buffers become rank 0's before, if the forward before this one averaged gradients (the first one does), and neither
 * the forwards without, nor those that were not recorded, lie in between.
 *
 * A forward whose backward never came is no mistake: the next one begins the step anew.
 *
 * @errors   NULL and kept: of the module's forward; TUTTI_E_STATE  it gave no tensor; what collectives fail with
 * @threads  one
 * @source   torch.nn.parallel.DistributedDataParallel.forward */
TUTTI_API tutti_tensor *tutti_ddp_forward(tutti_ddp *ddp, tutti_tensor *x);

/** The part of tutti_ddp_forward() before the module computes, for modules that take more than one tensor.
 * @errors   as tutti_ddp_forward(), not kept
 * @threads  one
 * @source   torch.nn.parallel.DistributedDataParallel._pre_forward */
TUTTI_API tutti_status tutti_ddp_before_forward(tutti_ddp *ddp);

/** The part of tutti_ddp_forward() after the module has computed, for modules that give more than one tensor.
 *
 * With find_unused_parameters or static_graph the loss may leave some of the outputs out: what only they depend on is
 * then unused, too.
 *
 * @param outputs  [n] everything that a loss may be made of; NULL entries are left alone. With the two options they are
 *                 replaced by tensors of the same elements: make the loss of those
 * @errors   TUTTI_E_ARG, TUTTI_E_NOMEM, and a failure that is kept; not kept by this
 * @threads  one
 * @source   torch.nn.parallel.DistributedDataParallel._post_forward */
TUTTI_API tutti_status tutti_ddp_after_forward(tutti_ddp *ddp, tutti_tensor **outputs, int n);

/** Whether forwards from now on average gradients in their backward. Without, gradients accumulate where they are, and
 * the next step with averages their sum. The same on all ranks. Returns what it was, to put it back.
 * @threads one
 * @source  torch.nn.parallel.DistributedDataParallel.no_sync */
TUTTI_API bool tutti_ddp_set_sync(tutti_ddp *ddp, bool on);

/** Give up a step in the middle, so that training can go on. All ranks call it, or none.
 * @errors   what the reductions fail with
 * @threads  one
 * @source   torch.distributed.Reducer.reset_state */
TUTTI_API tutti_status tutti_ddp_reset(tutti_ddp *ddp);

/** This rank cannot make the step that all others make: no input could be read, or something between the two parts
 * of a forward has failed. The others hear of it now, in their backward, as TUTTI_E_REMOTE with these words, where
 * they would wait for this rank until their time-out. The next step may be a good one.
 *
 * Needs not be called where the ddp can see the failure: tutti_ddp_forward() that gives NULL has told the others, and
 * so does a tutti_backward() whose loss is NULL, or cannot be gone back from, after the forward of a step that averages
 * on the same thread.
 *
 * @param status  what has failed, not TUTTI_OK
 * @param why     words for the others; they may be tutti_last_error()
 * @errors   status, with the words, when all know; nothing is told if this step would not have averaged. What
 *           collectives fail with, if they do
 * @threads  one. Waits until the others come to the end of their backward
 * @source   ours */
TUTTI_API tutti_status tutti_ddp_fail(tutti_ddp *ddp, tutti_status status, const char *why);

/** Average over another group from the next step on, and send buffers to it: as tutti_reducer_update_process_group(). The
 * step before has ended, well or not, or tutti_ddp_reset() was called.
 * @errors   as tutti_reducer_update_process_group()
 * @threads  one
 * @source   torch.nn.parallel.DistributedDataParallel._update_process_group */
TUTTI_API tutti_status tutti_ddp_update_process_group(tutti_ddp *ddp, tutti_group *group);

/* ---- buffers ---------------------------------------------------------------------------------- */

/** What makes buffers equal, or otherwise what the program wants, in the place of the broadcast from rank 0.
 *
 * @param names    [n] and
 * @param buffers  [n] all that are not ignored; borrowed. Their elements may be changed until the future is complete
 * @param future_out  NULL at first: everything is done. Else a new reference; the end of the backward waits for it,
 *                 its value is not looked at */
typedef tutti_status (*tutti_buffer_hook)(void *state, const char *const *names, tutti_tensor *const *buffers, int n,
                                          tutti_future **future_out);

/** When a buffer hook is called, in the forwards in which buffers would be sent. */
typedef enum tutti_buffer_hook_place {
    TUTTI_BUFFER_HOOK_AFTER_FORWARD = 0,
    TUTTI_BUFFER_HOOK_BEFORE_FORWARD = 1
} tutti_buffer_hook_place;

/** Have a hook take care of the buffers, on all ranks the same. Another one replaces it; NULL: the broadcast again.
 *
 * @errors   TUTTI_E_ARG          no ddp, no such place
 *           TUTTI_E_UNSUPPORTED  the ddp is in a scope of uneven inputs, or was made a joinable: ranks without inputs
 *                                could not play along
 *           What a hook fails with comes out of the forward, and the step is lost on all ranks; what its future fails
 *           with, out of the backward
 * @threads  one
 * @source   torch.nn.parallel.DistributedDataParallel._register_buffer_comm_hook */
TUTTI_API tutti_status tutti_ddp_register_buffer_hook(tutti_ddp *ddp, tutti_buffer_hook hook, void *state,
                                                      tutti_buffer_hook_place place);

/* ---- inputs of different lengths ---------------------------------------------------------------- */

/** Options of tutti_ddp_joinable. Initialise with TUTTI_DDP_JOIN_OPTIONS; zero fields mean the default. */
typedef struct tutti_ddp_join_options {
    size_t size;
    bool divide_by_active; /* averages are over the ranks that have inputs; else over all */
} tutti_ddp_join_options;

#define TUTTI_DDP_JOIN_OPTIONS                    \
    {                                             \
        sizeof(tutti_ddp_join_options), 0         \
    }

/** A ddp as a joinable (tutti/join.h), for inputs of different lengths. When all have run out, all have the parameters
 * and buffers of the last one that did. In the scope buffers come from the highest rank that has inputs; forwards that
 * are not recorded have no part in it.
 *
 * @param opts  NULL: every default
 * @errors   TUTTI_E_ARG, TUTTI_E_NOMEM
 *           TUTTI_E_UNSUPPORTED  the ddp has a buffer hook, or skip_all_reduce_unused_params, or an optimizer steps at the
 *                                end of its backwards (tutti_ddp_register_fused_optim())
 * @threads  one
 * @source   torch.nn.parallel.DistributedDataParallel.join (whose divide_by_initial_world_size is the opposite of
 *           divide_by_active) */
TUTTI_API tutti_status tutti_ddp_joinable(tutti_ddp *ddp, const tutti_ddp_join_options *opts,
                                          tutti_joinable *joinable_out);

/* ---- what is inside --------------------------------------------------------------------------- */

/** A module that stands for the ddp: tutti_forward() of it is tutti_ddp_forward(), and the wrapped module is its child
 * "module", so that names of parameters, and of a state dict, begin with "module.". Borrowed, until
 * tutti_ddp_free(); it may be made a child. NULL if whoever owned it has freed it.
 * @threads one
 * @source  torch.nn.parallel.DistributedDataParallel, which is a module itself */
TUTTI_API tutti_module *tutti_ddp_module(tutti_ddp *ddp);

/** The reducer, borrowed: for communication hooks (before the first step), buckets and their places. Steps are the ddp's.
 * @threads any
 * @source  torch.nn.parallel.DistributedDataParallel.reducer */
TUTTI_API tutti_reducer *tutti_ddp_reducer(tutti_ddp *ddp);

/** tutti_reducer_logging_data(), and: broadcast_buffers, num_buffers, join_uneven_inputs.
 * @threads  one
 * @source   torch.nn.parallel.DistributedDataParallel._get_ddp_logging_data */
TUTTI_API void tutti_ddp_logging_data(tutti_ddp *ddp, tutti_logging_fn fn, void *ctx);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/zero.h - ZeroRedundancyOptimizer: an optimizer of which each rank keeps and steps a part.
 *
 *     tutti_zero_create("adamw", params, n, options, 1, NULL, &optim);    on all ranks
 *     for each batch {
 *         ... a backward that averages gradients, as of a ddp ...;
 *         tutti_optim_step(optim);               each rank steps its parameters, and gives them to the others
 *     }
 *
 * Averages of gradients are the same on all ranks, and so would be their steps. Here every parameter belongs to one rank,
 * which alone remembers what the optimizer needs for it ("exp_avg", ...) and steps it; then it sends what it has come
 * to. Memory for that is divided by the number of ranks; parameters have the bits that they have without.
 *
 * What comes is a tutti_optim, and all calls of tutti/optim.h are for it: options, schedules, closures, named optimizers,
 * state. What differs:
 * - tutti_optim_step() and its forms, and tutti_optim_add_param_group(), are made by all ranks together. A rank that fails
 *   in its step, also as its closure or an expression before has failed, says so: the others get TUTTI_E_REMOTE, and its
 *   parameters have not moved. tutti_optim_step_param() is refused.
 * - tutti_optim_state_dict() has the state of this rank's parameters, under the numbers that they have among all.
 *   tutti_zero_state_dict() has all of it, after tutti_zero_consolidate_state_dict().
 * - tutti_optim_load_state_dict() takes this rank's part out of a whole state, as of any optimizer of the same groups.
 * - tutti_optim_free() ends it, before its group ends. */
#ifndef TUTTI_ZERO_H
#define TUTTI_ZERO_H

#include <tutti/ddp.h>
#include <tutti/optim.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Options of tutti_zero_create. Initialise with TUTTI_ZERO_OPTIONS; zero fields mean the default. */
typedef struct tutti_zero_options {
    size_t       size;
    tutti_group *group;                     /* NULL: the world */
    bool         parameters_as_bucket_view; /* parameters live in one buffer, and travel in one operation */
} tutti_zero_options;

#define TUTTI_ZERO_OPTIONS                      \
    {                                           \
        sizeof(tutti_zero_options), 0, 0        \
    }

/** Make an optimizer by name, whose parameters are divided among the ranks of a group. All members call it, with the same
 * parameters and options.
 *
 * A parameter is never divided. Those of a group are given away from the largest to the smallest, each to the rank that
 * has the fewest elements so far, of all groups; the lowest of equals.
 *
 * With parameters_as_bucket_view parameters move to registered memory (tutti/memory.h), those of a rank side by side, and
 * a step ends with one all_gather. Views of parameters that were made before look at the old memory. A parameter that
 * does not require gradients when a step begins has a place of its own then, and rests, also if it has a gradient left.
 *
 * @param optimizer   as of tutti_optim_create()
 * @param params      [n] 1 or more, leaves that require gradients, all of one type; the first group
 * @param options     those that are not the default
 * @param opts        NULL: every default
 * @param optim_out   to be freed by tutti_optim_free()
 * @errors   TUTTI_E_ARG       as tutti_optim_create(), and: parameters of different types. The others get TUTTI_E_REMOTE,
 *                             with the words of the first that failed
 *           TUTTI_E_MISMATCH  ranks have other parameters, options or modes: on all of them, with the first that differs
 *           TUTTI_E_STATE     there is no group, or this rank is not in it
 *           TUTTI_E_NOMEM, and what collectives fail with
 * @threads  one
 * @cost     an all_gather of 32 bytes, one or two more where ranks differ, a broadcast where one has failed. A step: a
 *           broadcast of each parameter, or the all_gather, and an all_reduce of a number
 * @numbers  a step gives the bits that the optimizer gives that is not divided
 * @source   torch.distributed.optim.ZeroRedundancyOptimizer */
TUTTI_API tutti_status tutti_zero_create(const char *optimizer, tutti_tensor *const *params, int n,
                                         const tutti_optim_option *options, int n_options,
                                         const tutti_zero_options *opts, tutti_optim **optim_out);

/** The rank of the group that keeps and steps a parameter; -1: it is none of a divided optimizer's.
 * @threads one at a time
 * @source  torch.distributed.optim.ZeroRedundancyOptimizer._param_to_rank */
TUTTI_API int tutti_zero_owner(const tutti_optim *optim, const tutti_tensor *param);

/** Bring the states of all ranks together on one, as copies. All ranks call it.
 * @param to  rank of the group
 * @errors   TUTTI_E_ARG     optim is not divided, or there is no such rank
 *           TUTTI_E_MISMATCH  another rank gives another rank: on all of them, with both. Nothing has changed
 *           TUTTI_E_NOMEM   on that rank; the others get TUTTI_E_REMOTE. What was there before stays
 *           what messages fail with
 * @threads  one
 * @cost     an all_gather of 4 bytes, an all_reduce of 4 bytes for each parameter; each tensor is sent once, to that rank
 *           alone
 * @source   torch.distributed.optim.ZeroRedundancyOptimizer.consolidate_state_dict */
TUTTI_API tutti_status tutti_zero_consolidate_state_dict(tutti_optim *optim, int to);

/** The whole state as it was when it was last brought together on this rank: names, order and bits are those of the
 * optimizer that is not divided.
 * @param sd_out  end it with tutti_state_dict_free()
 * @errors   TUTTI_E_ARG    optim is not divided
 *           TUTTI_E_STATE  the last tutti_zero_consolidate_state_dict() was for another rank, or there was none
 *           TUTTI_E_NOMEM
 * @threads  one at a time
 * @source   torch.distributed.optim.ZeroRedundancyOptimizer.state_dict */
TUTTI_API tutti_status tutti_zero_state_dict(const tutti_optim *optim, tutti_state_dict **sd_out);

/** A divided optimizer as a joinable (tutti/join.h), for inputs of different lengths: a rank that has none any more goes
 * on to step its parameters, with the gradients that they have. In a scope together with a ddp the ddp comes first; its
 * averages reach the steps of such a rank where these are made inside of the backward: tutti_zero_overlap_with_ddp().
 * @errors   TUTTI_E_ARG  optim is not divided, or a NULL
 * @threads  one
 * @source   torch.distributed.optim.ZeroRedundancyOptimizer.join_hook */
TUTTI_API tutti_status tutti_zero_joinable(tutti_optim *optim, tutti_joinable *joinable_out);

/* ---- inside of the backward -------------------------------------------------------------------- */

/** Options of tutti_zero_overlap_with_ddp. Initialise with TUTTI_ZERO_OVERLAP_OPTIONS; zero fields mean the default. */
typedef struct tutti_zero_overlap_options {
    size_t                 size;
    bool                   interleaved;   /* each bucket is worked off when the next one has begun, else all with the last */
    bool                   shard_buckets; /* buckets are cut into runs for several ranks, else rank b % P has bucket b */
    const tutti_comm_hook *hook;          /* what averages; NULL: the average. Must live as long as the ddp */
    void                  *hook_state;
} tutti_zero_overlap_options;

#define TUTTI_ZERO_OVERLAP_OPTIONS                      \
    {                                                   \
        sizeof(tutti_zero_overlap_options), 0, 0, 0, 0  \
    }

/** Have a divided optimizer step inside of the backward of a ddp, as its communication hook: on each rank those of a
 * bucket's parameters that it owns, which then go from their owners to all. When the backward returns all have moved, from
 * the first step on. On all ranks, before the first step of the ddp.
 *
 * Parameters get other owners, by buckets; when the ddp rebuilds its buckets, after the first step, once more, and what is
 * remembered for them moves along. With shard_buckets the smallest bucket comes first; a run ends before the parameter
 * with which it would reach the share of a rank, and goes to the rank that has least, and nothing of this bucket yet.
 *
 * From then on tutti_optim_step() does nothing, and warns once; no parameters can be added, and what requires gradients must
 * not change. State can be brought together at any time between steps. When the ddp is freed the optimizer is as before.
 * Free the ddp first.
 *
 * @param ddp    of the group of the optimizer, with all of its parameters; others are only averaged
 * @param opts   NULL: every default
 * @errors   TUTTI_E_ARG          a NULL, optim is not divided or has several groups, another group, a parameter that is none
 *                                of the ddp's. The others get TUTTI_E_REMOTE
 *           TUTTI_E_UNSUPPORTED  the ddp has find_unused_parameters or mixed_precision. In a static graph what no rank uses is stepped
 *                                with zeros
 *           TUTTI_E_MISMATCH     ranks have other options: on all of them
 *           TUTTI_E_STATE        the ddp has a hook already, or has made a step; the optimizer has a ddp already
 *           TUTTI_E_NOMEM. Of a backward: what a step fails with, on the others TUTTI_E_REMOTE; TUTTI_E_STATE  the ddp has
 *                                got another group: the optimizer stays with its own
 * @threads  one; all is done by the thread of the backward
 * @cost     interleaved: the backward waits for the averages of a bucket when the next one is complete
 * @numbers  the bits of steps after the backward
 * @source   torch.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook.hook_with_zero_step,
 *           torch.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook.hook_with_zero_step_interleaved */
TUTTI_API tutti_status tutti_zero_overlap_with_ddp(tutti_optim *optim, tutti_ddp *ddp,
                                                   const tutti_zero_overlap_options *opts);

#ifdef __cplusplus
}
#endif
#endif

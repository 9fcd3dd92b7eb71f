/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/averaging.h - parameters that are averaged over ranks now and then, in the place of gradients in every step.
 *
 *     tutti_periodic_model_averager(4, 100, NULL, &averager);        every 4th step, from step 100 on
 *     tutti_post_local_sgd_create(optim, averager, &local);
 *     for each batch {
 *         ... a backward, whose gradients are averaged in the first 100 steps only ...;
 *         tutti_post_local_sgd_step(local);                         a step of this rank, then perhaps an average
 *     }
 *
 * This is post-local SGD: gradients of all ranks in the first steps, then steps of each rank, or host, alone. The averages
 * before are those of a ddp with the communication hook of post-local SGD (tutti/comm_hooks.h), whose start_iter is the
 * warmup_steps of the averager.
 *
 * An averager only counts and averages; it knows no parameters, they are given to each call. All members of its group
 * call it in the same steps, with the same parameters. Averagers whose settings differ are an error: of a periodic one
 * before its first average, of one with levels when it is made. */
#ifndef TUTTI_AVERAGING_H
#define TUTTI_AVERAGING_H

#include <tutti/group.h>
#include <tutti/optim.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Make each parameter that has a gradient the average over the ranks of a group. The others stay as they are.
 *
 * @param params  [n] of any types and strides; those with a gradient are the same ones on all ranks
 * @param group   NULL: the world. On a rank that is no member nothing is done
 * @errors   TUTTI_E_ARG       a list or a parameter is NULL
 *           TUTTI_E_MISMATCH  other parameters have gradients on another rank, on all of them
 *           TUTTI_E_NOMEM     the group is ended, as the others wait
 *           what tutti_all_reduce_coalesced fails with
 * @threads  one
 * @numbers  sums are divided, then rounded once, in the type of each parameter; the same bits on all ranks
 * @cost     one all_reduce of all parameters of a type; a copy of those that do not lie row by row
 * @source   torch.distributed.algorithms.model_averaging.utils.average_parameters */
TUTTI_API tutti_status tutti_average_parameters(tutti_tensor *const *params, int n, tutti_group *group);

/* ---- averagers -------------------------------------------------------------------------------- */

/** A count of steps, and when to average. Used by one thread at a time. */
typedef struct tutti_model_averager tutti_model_averager;

/** An averager that averages at step warmup_steps, counted from 0, and at every period-th after it.
 *
 * @param period        1 or more; 1 averages in every step, as averaging gradients does for less: it is warned of
 * @param warmup_steps  0 or more
 * @param group         NULL: the world
 * @param averager_out  free it by tutti_model_averager_free(), before its group ends
 * @errors   TUTTI_E_ARG    period or warmup_steps are out of range
 *           TUTTI_E_STATE  there is no group; TUTTI_E_NOMEM
 * @threads  any
 * @source   torch.distributed.algorithms.model_averaging.averagers.PeriodicModelAverager */
TUTTI_API tutti_status tutti_periodic_model_averager(int64_t period, int64_t warmup_steps, tutti_group *group,
                                                     tutti_model_averager **averager_out);

/** How often groups of a size average: of consecutive ranks, in the order of the group. */
typedef struct tutti_averaging_level {
    int64_t period;
    int     group_size;
} tutti_averaging_level;

/** An averager with several periods: small groups, whose ranks are near to each other, average often, all ranks seldom.
 * From warmup_steps on, step by step, the largest period that divides the step (not the steps since warmup_steps)
 * says which groups average; step 0 is divided by all of them. Every member of the group calls it.
 *
 * @param levels        [n] periods and sizes grow; the first period is above 0, sizes divide the group's, and the last
 *                      one is the group's
 * @errors   TUTTI_E_ARG  a level or warmup_steps make no sense
 *           TUTTI_E_MISMATCH  a rank has other levels or warmup_steps: on all of them, with what differs
 *           TUTTI_E_STATE, TUTTI_E_NOMEM, and what tutti_split_group_by_color fails with
 * @threads  one
 * @cost     an all_gather of 528 bytes; makes groups for all levels but the last
 * @source   torch.distributed.algorithms.model_averaging.hierarchical_model_averager.HierarchicalModelAverager */
TUTTI_API tutti_status tutti_hierarchical_model_averager(const tutti_averaging_level *levels, int n,
                                                         int64_t warmup_steps, tutti_group *group,
                                                         tutti_model_averager **averager_out);

/** Free it, and the groups that it made. NULL does nothing.
 * @threads one
 * @source  ours */
TUTTI_API void tutti_model_averager_free(tutti_model_averager *averager);

/** Average if it is time to, then count the step.
 * @errors   TUTTI_E_ARG  the averager is NULL; as tutti_average_parameters(): the step is not counted
 *           TUTTI_E_MISMATCH  in the first average of a periodic one: a rank has another period, warmup_steps or step, on all
 *           of them, with both
 * @threads  one
 * @cost     the first average of a periodic one: an all_gather of 528 bytes more
 * @source   torch.distributed.algorithms.model_averaging.averagers.ModelAverager.average_parameters */
TUTTI_API tutti_status tutti_model_averager_average_parameters(tutti_model_averager *averager,
                                                               tutti_tensor *const *params, int n);

/** How many steps it has counted; of NULL: 0.
 * @threads one
 * @source  torch.distributed.algorithms.model_averaging.averagers.ModelAverager.step */
TUTTI_API int64_t tutti_model_averager_step(const tutti_model_averager *averager);

/** Have it go on from a step.
 * @errors  TUTTI_E_ARG  it is NULL, or step is negative
 * @threads one
 * @source  torch.distributed.algorithms.model_averaging.averagers.ModelAverager.step */
TUTTI_API tutti_status tutti_model_averager_set_step(tutti_model_averager *averager, int64_t step);

/** How many ranks the next call averages over; 0: it does not average.
 * @threads one
 * @source  ours */
TUTTI_API int tutti_model_averager_next_size(const tutti_model_averager *averager);

/* ---- an optimizer with an averager ------------------------------------------------------------ */

/** An optimizer whose steps are followed by an averager. Used by one thread at a time. */
typedef struct tutti_post_local_sgd tutti_post_local_sgd;

/** Put an averager behind an optimizer. Gradients, groups, options and schedules stay the optimizer's affair.
 * @param optim     of any kind; it and the averager stay the caller's, and must outlive this
 * @errors   TUTTI_E_ARG  one of them is NULL; TUTTI_E_NOMEM
 * @threads  one
 * @source   torch.distributed.optim.PostLocalSGDOptimizer */
TUTTI_API tutti_status tutti_post_local_sgd_create(tutti_optim *optim, tutti_model_averager *averager,
                                                   tutti_post_local_sgd **local_out);

/** Free it; optimizer and averager stay. NULL does nothing.
 * @threads one
 * @source  ours */
TUTTI_API void tutti_post_local_sgd_free(tutti_post_local_sgd *local);

/** A step of the optimizer, then tutti_model_averager_average_parameters() of all its parameters.
 * @errors   TUTTI_E_ARG  it is NULL; as tutti_optim_step(), and then nothing is averaged; as
 *           tutti_average_parameters()
 * @threads  one
 * @source   torch.distributed.optim.PostLocalSGDOptimizer.step */
TUTTI_API tutti_status tutti_post_local_sgd_step(tutti_post_local_sgd *local);

/** tutti_optim_state_dict(), and "step": what the averager has counted, i64.
 * @errors   TUTTI_E_ARG  it is NULL; as tutti_optim_state_dict()
 * @threads  one
 * @source   torch.distributed.optim.PostLocalSGDOptimizer.state_dict */
TUTTI_API tutti_status tutti_post_local_sgd_state_dict(const tutti_post_local_sgd *local, tutti_state_dict **sd_out);

/** tutti_optim_load_state_dict(), and the averager goes on from "step"; without it a warning is logged, and it is 0.
 * @errors   as tutti_optim_load_state_dict(); TUTTI_E_MISMATCH  "step" is no whole number above or equal to 0.
 *           Nothing has changed
 * @threads  one
 * @source   torch.distributed.optim.PostLocalSGDOptimizer.load_state_dict */
TUTTI_API tutti_status tutti_post_local_sgd_load_state_dict(tutti_post_local_sgd *local, const tutti_state_dict *sd);

/* ---- averages over time ------------------------------------------------------------------------ */

/** For each parameter a tensor that follows it slowly. Used by one thread at a time. */
typedef struct tutti_ema tutti_ema;

/** Averages of n parameters over time, which are theirs after the first tutti_ema_update(). Ranks that have the same
 * parameters have the same averages: nothing is sent.
 * @param params  [n] of any floating types, retained
 * @param decay   0 to 1: what an average keeps in each update
 * @errors   TUTTI_E_ARG  a list or a parameter is NULL, a parameter is not floating, decay is out of range; TUTTI_E_NOMEM
 * @threads  one
 * @source   torch.optim.swa_utils.AveragedModel(multi_avg_fn=get_ema_multi_avg_fn(decay)) */
TUTTI_API tutti_status tutti_ema_create(tutti_tensor *const *params, int n, double decay, tutti_ema **ema_out);

/** Free it, with the averages that nobody else holds. NULL does nothing.
 * @threads one
 * @source  ours */
TUTTI_API void tutti_ema_free(tutti_ema *ema);

/** average = decay * average + (1 - decay) * parameter; the first time: average = parameter.
 * @errors   TUTTI_E_ARG  it is NULL; what the collective that was to bring a parameter failed with
 * @threads  one
 * @source   torch.optim.swa_utils.AveragedModel.update_parameters */
TUTTI_API tutti_status tutti_ema_update(tutti_ema *ema);

/** The averages, in the order of the parameters: borrowed, and the same tensors for the whole of its life.
 * @param n_out  how many; 0 of NULL
 * @threads  one
 * @source   torch.optim.swa_utils.AveragedModel.module */
TUTTI_API tutti_tensor *const *tutti_ema_averages(const tutti_ema *ema, int *n_out);

#ifdef __cplusplus
}
#endif
#endif

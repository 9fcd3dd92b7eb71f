/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/in_backward.h - optimizers that step while the backward is still under way.
 *
 * A parameter may move as soon as its gradient is complete: nothing in this backward needs it any more. Its gradient can
 * go then, too, so that no more than a few exist at a time; and under a ddp the step of one bucket is done while others
 * are still computed and averaged. Parameters have the bits of a step after the backward.
 *
 *     tutti_apply_optimizer_in_backward(optim, NULL, &handle);      one process: each backward is a step
 *     tutti_ddp_register_fused_optim(ddp, optim, NULL);             the same under a ddp, with averages
 *
 * A backward that fails may have moved some parameters already; under a ddp the same ones on all ranks. A graph that is
 * kept (TUTTI_RETAIN_GRAPH) cannot be gone through again: parameters that it needs have changed. */
#ifndef TUTTI_IN_BACKWARD_H
#define TUTTI_IN_BACKWARD_H

#include <tutti/ddp.h>
#include <tutti/optim.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An optimizer that is attached to its parameters. */
typedef struct tutti_in_backward tutti_in_backward;

/** Options of tutti_apply_optimizer_in_backward. Initialise with TUTTI_IN_BACKWARD_OPTIONS; zero fields mean the default. */
typedef struct tutti_in_backward_options {
    size_t size;
    bool   keep_gradients; /* they stay, and the next backward adds to them; else each is dropped after its step */
} tutti_in_backward_options;

#define TUTTI_IN_BACKWARD_OPTIONS                      \
    {                                                  \
        sizeof(tutti_in_backward_options), 0           \
    }

/** Attach an optimizer to its parameters: each is stepped in every backward that brings it a gradient, after its other
 * hooks. Several optimizers may be attached to one parameter, and step it in the order in which they were.
 *
 * @param optim       not stepped otherwise; options and schedules are as ever. It must outlive the handle. Parameters that
 *                    are added to it later are not attached
 * @param opts        NULL: every default
 * @param handle_out  free it by tutti_in_backward_free()
 * @errors   TUTTI_E_ARG    a NULL, options without a beginning, or the optimizer is divided among ranks
 *           TUTTI_E_STATE  a parameter belongs to a ddp
 *                          next: tutti_ddp_register_fused_optim()
 *           TUTTI_E_NOMEM. Of a backward: what a step fails with
 * @threads  one; a step runs on the thread of its backward
 * @source   torch.distributed.optim._apply_optimizer_in_backward (which makes one optimizer for each parameter) */
TUTTI_API tutti_status tutti_apply_optimizer_in_backward(tutti_optim *optim, const tutti_in_backward_options *opts,
                                                         tutti_in_backward **handle_out);

/** Take it off the parameters; the optimizer stays. NULL does nothing.
 * @threads one, not during a backward
 * @source  ours */
TUTTI_API void tutti_in_backward_free(tutti_in_backward *handle);

/** Options of tutti_ddp_register_fused_optim. Initialise with TUTTI_FUSED_OPTIM_OPTIONS; zero fields mean the default. */
typedef struct tutti_fused_optim_options {
    size_t                 size;
    bool                   drop_gradients; /* at the end of the backward; where they live in buckets they become zero */
    const tutti_comm_hook *hook;           /* what averages; NULL: the average. Must live as long as the ddp */
    void                  *hook_state;
} tutti_fused_optim_options;

#define TUTTI_FUSED_OPTIM_OPTIONS                               \
    {                                                           \
        sizeof(tutti_fused_optim_options), 0, 0, 0              \
    }

/** Have an optimizer step the parameters of each bucket of a ddp as soon as its averages are there, as its communication
 * hook. When the backward returns all are stepped. On all ranks the same, before the first step of the ddp.
 *
 * Steps without sync only accumulate; the next one with sync steps with the average of the sums. With
 * find_unused_parameters or static_graph it is known at the end of the backward only which parameters nobody has used:
 * all are stepped then; inputs of different lengths (tutti_ddp_joinable()) are refused with them. Without them a rank that
 * has run out of inputs makes the steps of the others, too.
 *
 * @param optim  of parameters that the ddp averages, all or some of them; the others are only averaged. Not stepped
 *               otherwise. It must outlive the ddp
 * @param opts   NULL: every default
 * @errors   TUTTI_E_ARG    a NULL, options without a beginning, a parameter that is none of the ddp's, or the optimizer is
 *                          divided among ranks: tutti_zero_overlap_with_ddp()
 *           TUTTI_E_STATE  the ddp has a hook already, or a step has begun
 *           TUTTI_E_UNSUPPORTED  inputs of different lengths, as above
 *           TUTTI_E_NOMEM. Of a backward: what a step fails with
 * @threads  one; steps run on the thread that learns of the averages, one at a time
 * @cost     nothing that the step costs otherwise; it runs beside the backward, where there is a core for it
 * @source   torch.distributed.algorithms.ddp_comm_hooks.optimizer_overlap_hooks, DDP._register_fused_optim */
TUTTI_API tutti_status tutti_ddp_register_fused_optim(tutti_ddp *ddp, tutti_optim *optim,
                                                      const tutti_fused_optim_options *opts);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/optim.h - optimizers: how parameters follow their gradients. */
#ifndef TUTTI_OPTIM_H
#define TUTTI_OPTIM_H

#include <tutti/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Parameters and what their steps remember. Used by one thread at a time. */
typedef struct tutti_optim tutti_optim;

/** Begin with TUTTI_SGD_OPTIONS, which holds the defaults. */
typedef struct tutti_sgd_options {
    size_t size;
    double lr;           /* default 0.001 */
    double momentum;     /* 0: none, and no memory for it */
    double dampening;    /* of the gradient, from the second step on */
    double weight_decay; /* times the parameter, added to its gradient */
    bool nesterov;       /* needs momentum and no dampening */
    bool maximize;       /* climb instead of descend */
} tutti_sgd_options;

#ifdef __cplusplus
#define TUTTI_SGD_OPTIONS                                            \
    {                                                                \
        sizeof(tutti_sgd_options), 1e-3, 0.0, 0.0, 0.0, false, false \
    }
#else
#define TUTTI_SGD_OPTIONS                             \
    {                                                 \
        .size = sizeof(tutti_sgd_options), .lr = 1e-3 \
    }
#endif

/** Stochastic gradient descent.
 *
 *     g   = gradient + weight_decay * p
 *     buf = momentum * buf + (1 - dampening) * g      (first step: buf = g)
 *     p  -= lr * (nesterov ? g + momentum * buf : buf)
 *
 * @param params  n leaves that require gradients, retained
 * @param opts    NULL: TUTTI_SGD_OPTIONS
 * @errors  NULL and kept: TUTTI_E_ARG  no parameters, one twice, one that is no leaf, a negative
 *          hyper-parameter; TUTTI_E_NOMEM
 * @threads one at a time
 * @source  torch.optim.SGD */
TUTTI_API tutti_optim *tutti_sgd(tutti_tensor *const *params, int n, const tutti_sgd_options *opts);

/** Move every parameter that has a gradient by one step. The others stay as they are.
 * @errors  a kept failure of an earlier expression, which is then forgotten; nothing has moved
 *          TUTTI_E_ARG  o is NULL
 *          TUTTI_E_NOMEM  parameters before the one that failed have moved
 * @threads one at a time
 * @source  torch.optim.Optimizer.step */
TUTTI_API tutti_status tutti_optim_step(tutti_optim *o);

/** Drop the gradients of all parameters. NULL does nothing.
 * @threads one at a time
 * @source  torch.optim.Optimizer.zero_grad */
TUTTI_API void tutti_optim_zero_grad(tutti_optim *o);

/** The learning rate; of NULL: NaN.
 * @threads one at a time
 * @source  torch.optim.Optimizer.param_groups["lr"] */
TUTTI_API double tutti_optim_lr(const tutti_optim *o);

/** Change the learning rate from the next step on.
 * @errors  TUTTI_E_ARG  o is NULL, lr is negative or NaN
 * @threads one at a time
 * @source  torch.optim.Optimizer.param_groups["lr"] */
TUTTI_API tutti_status tutti_optim_set_lr(tutti_optim *o, double lr);

/** Free it and drop its parameters. NULL does nothing.
 * @threads one at a time
 * @source  ours */
TUTTI_API void tutti_optim_free(tutti_optim *o);

#ifdef __cplusplus
}
#endif
#endif

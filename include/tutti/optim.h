/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/optim.h - optimizers: how parameters follow their gradients.
 *
 * One type for all of them: parameters in groups, each group with options of its own ("lr", "weight_decay",
 * ...), and for each parameter the tensors that its steps remember ("momentum_buffer", "exp_avg", ...).
 * Constructors differ in their options; every other call is for all optimizers.
 *
 * A step takes the gradients that backward left with the parameters, or those that the caller gives: for
 * all parameters (tutti_optim_step_grads) or for one (tutti_optim_step_param), as hooks that step while
 * a backward is still under way do. All forms share state and arithmetic, so that they may be mixed.
 *
 * Constructors are expressions: they return NULL when they failed, which is kept (tutti/tensor.h). Numbers
 * that come from options are computed in f64, elements in the type of the parameter, those of f16 and bf16 in f32,
 * in which their states are, too, and rounded once; the bits are the same on every processor. A step takes memory
 * only for what a parameter's first step begins to remember. */
#ifndef TUTTI_OPTIM_H
#define TUTTI_OPTIM_H

#include <tutti/state.h>
#include <tutti/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Parameters and what their steps remember. Used by one thread at a time. */
typedef struct tutti_optim tutti_optim;

/* ---- the optimizers --------------------------------------------------------------------------- */

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
 * @errors  NULL and kept: TUTTI_E_ARG  no parameters, one twice, one that is no leaf, an option out of its
 *          range; TUTTI_E_NOMEM. The same for all optimizers below.
 * @threads one at a time
 * @source  torch.optim.SGD */
TUTTI_API tutti_optim *tutti_sgd(tutti_tensor *const *params, int n, const tutti_sgd_options *opts);

/** Begin with TUTTI_ADAM_OPTIONS or TUTTI_ADAMW_OPTIONS, which hold the defaults. */
typedef struct tutti_adam_options {
    size_t size;
    double lr;           /* default 0.001 */
    double betas[2];     /* what averages keep: of gradients, of their squares; default 0.9, 0.999 */
    double eps;          /* default 1e-8 */
    double weight_decay; /* default 0; of AdamW 0.01 */
    bool amsgrad;        /* divide by the largest average of squares so far */
    bool maximize;       /* climb instead of descend */
} tutti_adam_options;

#ifdef __cplusplus
#define TUTTI_ADAM_OPTIONS                                                        \
    {                                                                             \
        sizeof(tutti_adam_options), 1e-3, { 0.9, 0.999 }, 1e-8, 0.0, false, false \
    }
#define TUTTI_ADAMW_OPTIONS                                                        \
    {                                                                              \
        sizeof(tutti_adam_options), 1e-3, { 0.9, 0.999 }, 1e-8, 1e-2, false, false \
    }
#else
#define TUTTI_ADAM_OPTIONS                                                                     \
    {                                                                                          \
        .size = sizeof(tutti_adam_options), .lr = 1e-3, .betas = { 0.9, 0.999 }, .eps = 1e-8   \
    }
#define TUTTI_ADAMW_OPTIONS                                                                     \
    {                                                                                           \
        .size = sizeof(tutti_adam_options), .lr = 1e-3, .betas = { 0.9, 0.999 }, .eps = 1e-8,   \
        .weight_decay = 1e-2                                                                    \
    }
#endif

/** Adam.
 *
 *     g  = gradient + weight_decay * p
 *     m  = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2
 *     p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
 *
 * with the largest v so far in place of v if amsgrad is set.
 * @param opts  NULL: TUTTI_ADAM_OPTIONS
 * @errors  as tutti_sgd()
 * @threads one at a time
 * @source  torch.optim.Adam */
TUTTI_API tutti_optim *tutti_adam(tutti_tensor *const *params, int n,
                                  const tutti_adam_options *opts);

/** Adam with the decay apart from the gradient: p *= 1 - lr * weight_decay, then Adam's step without it.
 * @param opts  NULL: TUTTI_ADAMW_OPTIONS
 * @errors  as tutti_sgd()
 * @threads one at a time
 * @source  torch.optim.AdamW */
TUTTI_API tutti_optim *tutti_adamw(tutti_tensor *const *params, int n,
                                   const tutti_adam_options *opts);

/** Begin with TUTTI_ADAMAX_OPTIONS, which holds the defaults. */
typedef struct tutti_adamax_options {
    size_t size;
    double lr;       /* default 0.002 */
    double betas[2]; /* default 0.9, 0.999 */
    double eps;      /* default 1e-8 */
    double weight_decay;
    bool maximize;
} tutti_adamax_options;

#ifdef __cplusplus
#define TUTTI_ADAMAX_OPTIONS                                                 \
    {                                                                        \
        sizeof(tutti_adamax_options), 2e-3, { 0.9, 0.999 }, 1e-8, 0.0, false \
    }
#else
#define TUTTI_ADAMAX_OPTIONS                                                                   \
    {                                                                                          \
        .size = sizeof(tutti_adamax_options), .lr = 2e-3, .betas = { 0.9, 0.999 }, .eps = 1e-8 \
    }
#endif

/** Adam with the largest size of a gradient in place of the average of squares:
 * u = max(beta2 * u, |g| + eps); p -= lr / (1 - beta1^t) * m / u.
 * @param opts  NULL: TUTTI_ADAMAX_OPTIONS
 * @errors  as tutti_sgd()
 * @threads one at a time
 * @source  torch.optim.Adamax */
TUTTI_API tutti_optim *tutti_adamax(tutti_tensor *const *params, int n,
                                    const tutti_adamax_options *opts);

/** Begin with TUTTI_ADAGRAD_OPTIONS, which holds the defaults. */
typedef struct tutti_adagrad_options {
    size_t size;
    double lr;       /* default 0.01 */
    double lr_decay; /* the t-th step has lr / (1 + (t - 1) * lr_decay) */
    double weight_decay;
    double initial_accumulator_value; /* what sums begin with */
    double eps;                       /* default 1e-10 */
    bool maximize;
} tutti_adagrad_options;

#ifdef __cplusplus
#define TUTTI_ADAGRAD_OPTIONS                                               \
    {                                                                       \
        sizeof(tutti_adagrad_options), 1e-2, 0.0, 0.0, 0.0, 1e-10, false    \
    }
#else
#define TUTTI_ADAGRAD_OPTIONS                                           \
    {                                                                   \
        .size = sizeof(tutti_adagrad_options), .lr = 1e-2, .eps = 1e-10 \
    }
#endif

/** Adagrad: sum += g^2; p -= lr_t * g / (sqrt(sum) + eps).
 * @param opts  NULL: TUTTI_ADAGRAD_OPTIONS
 * @errors  as tutti_sgd()
 * @threads one at a time
 * @source  torch.optim.Adagrad */
TUTTI_API tutti_optim *tutti_adagrad(tutti_tensor *const *params, int n,
                                     const tutti_adagrad_options *opts);

/** Begin with TUTTI_RMSPROP_OPTIONS, which holds the defaults. */
typedef struct tutti_rmsprop_options {
    size_t size;
    double lr;    /* default 0.01 */
    double alpha; /* what the average of squares keeps; default 0.99 */
    double eps;   /* default 1e-8 */
    double weight_decay;
    double momentum; /* 0: none, and no memory for it */
    bool centered;   /* squares about the average gradient, which is kept, too */
    bool maximize;
} tutti_rmsprop_options;

#ifdef __cplusplus
#define TUTTI_RMSPROP_OPTIONS                                                   \
    {                                                                           \
        sizeof(tutti_rmsprop_options), 1e-2, 0.99, 1e-8, 0.0, 0.0, false, false \
    }
#else
#define TUTTI_RMSPROP_OPTIONS                                                          \
    {                                                                                  \
        .size = sizeof(tutti_rmsprop_options), .lr = 1e-2, .alpha = 0.99, .eps = 1e-8  \
    }
#endif

/** RMSprop: v = alpha * v + (1 - alpha) * g^2; p -= lr * g / (sqrt(v) + eps), through a buffer if there is
 * momentum: buf = momentum * buf + g / (sqrt(v) + eps).
 * @param opts  NULL: TUTTI_RMSPROP_OPTIONS
 * @errors  as tutti_sgd()
 * @threads one at a time
 * @source  torch.optim.RMSprop */
TUTTI_API tutti_optim *tutti_rmsprop(tutti_tensor *const *params, int n,
                                     const tutti_rmsprop_options *opts);

/** Begin with TUTTI_ADADELTA_OPTIONS, which holds the defaults. */
typedef struct tutti_adadelta_options {
    size_t size;
    double lr;  /* default 1 */
    double rho; /* what averages of squares keep; default 0.9 */
    double eps; /* default 1e-6 */
    double weight_decay;
    bool maximize;
} tutti_adadelta_options;

#ifdef __cplusplus
#define TUTTI_ADADELTA_OPTIONS                                        \
    {                                                                 \
        sizeof(tutti_adadelta_options), 1.0, 0.9, 1e-6, 0.0, false    \
    }
#else
#define TUTTI_ADADELTA_OPTIONS                                                       \
    {                                                                                \
        .size = sizeof(tutti_adadelta_options), .lr = 1.0, .rho = 0.9, .eps = 1e-6   \
    }
#endif

/** Adadelta: v = rho * v + (1 - rho) * g^2; d = sqrt(a + eps) / sqrt(v + eps) * g;
 * a = rho * a + (1 - rho) * d^2; p -= lr * d.
 * @param opts  NULL: TUTTI_ADADELTA_OPTIONS
 * @errors  as tutti_sgd()
 * @threads one at a time
 * @source  torch.optim.Adadelta */
TUTTI_API tutti_optim *tutti_adadelta(tutti_tensor *const *params, int n,
                                      const tutti_adadelta_options *opts);

/** Begin with TUTTI_RPROP_OPTIONS, which holds the defaults. */
typedef struct tutti_rprop_options {
    size_t size;
    double lr;            /* the first step of each element; default 0.01 */
    double etas[2];       /* factors after a change of sign, and without; default 0.5, 1.2 */
    double step_sizes[2]; /* smallest and largest step; default 1e-6, 50 */
    bool maximize;
} tutti_rprop_options;

#ifdef __cplusplus
#define TUTTI_RPROP_OPTIONS                                                        \
    {                                                                              \
        sizeof(tutti_rprop_options), 1e-2, { 0.5, 1.2 }, { 1e-6, 50.0 }, false     \
    }
#else
#define TUTTI_RPROP_OPTIONS                                                             \
    {                                                                                   \
        .size = sizeof(tutti_rprop_options), .lr = 1e-2, .etas = { 0.5, 1.2 },          \
        .step_sizes = { 1e-6, 50.0 }                                                    \
    }
#endif

/** Rprop: a step of each element that grows while its gradient keeps the sign and shrinks when it changes,
 * whatever the gradient's size; after a change the element rests for one step.
 * @param opts  NULL: TUTTI_RPROP_OPTIONS
 * @errors  as tutti_sgd()
 * @threads one at a time
 * @source  torch.optim.Rprop */
TUTTI_API tutti_optim *tutti_rprop(tutti_tensor *const *params, int n,
                                   const tutti_rprop_options *opts);

/** An option by name: "lr", "betas" (two values), "amsgrad" (0 or 1), ..., as in torch's param_groups. */
typedef struct tutti_optim_option {
    const char *name;
    double value[2]; /* the second one counts for pairs only */
} tutti_optim_option;

/** An optimizer by name, for those who learn at run time which one it is: "sgd", "adam", "adamw", "adamax",
 * "adagrad", "rmsprop", "adadelta", "rprop".
 *
 * @param n        may be 0: tutti_optim_step_param() then takes in each parameter at its first gradient, and
 *                 groups can be added
 * @param options  those that are not the default; the others are the constructor's
 * @errors  NULL and kept: TUTTI_E_ARG also for names that there are not
 * @threads one at a time
 * @source  torch.distributed.optim.as_functional_optim, functional_optim_map */
TUTTI_API tutti_optim *tutti_optim_create(const char *name, tutti_tensor *const *params, int n,
                                          const tutti_optim_option *options, int n_options);

/** Free it and drop its parameters. NULL does nothing.
 * @threads one at a time
 * @source  ours */
TUTTI_API void tutti_optim_free(tutti_optim *o);

/* ---- steps ------------------------------------------------------------------------------------ */

/** Move every parameter that has a gradient by one step. The others stay as they are: no decay, no state.
 * @errors  a kept failure of an earlier expression, which is then forgotten; nothing has moved
 *          TUTTI_E_ARG  o is NULL
 *          TUTTI_E_NOMEM, and what the collective that was to bring a gradient failed with: nothing has moved
 * @threads one at a time
 * @cost    each array that takes part is read, and written, once
 * @source  torch.optim.Optimizer.step */
TUTTI_API tutti_status tutti_optim_step(tutti_optim *o);

/** What tutti_optim_step_closure() calls: clear the gradients, compute the loss, call backward. */
typedef tutti_status (*tutti_closure)(void *ctx, double *loss_out);

/** Call closure with recording on, then step with the gradients that it left.
 * @param loss_out  what the closure wrote; may be NULL
 * @errors  what the closure returned, then nothing has moved; as tutti_optim_step()
 * @threads one at a time
 * @source  torch.optim.Optimizer.step(closure) */
TUTTI_API tutti_status tutti_optim_step_closure(tutti_optim *o, tutti_closure closure, void *ctx,
                                                double *loss_out);

/** tutti_optim_step() with gradients of the caller's: the i-th for the i-th parameter, in the order of groups.
 * @param grads  n tensors of shape and dtype of the parameters, only read; NULL: the parameter stays
 * @param n      as many as there are parameters
 * @errors  as tutti_optim_step(); TUTTI_E_ARG  another number of gradients, another shape or dtype
 * @threads one at a time
 * @source  the functional optimizers of torch.distributed.optim, their step(gradients) */
TUTTI_API tutti_status tutti_optim_step_grads(tutti_optim *o, tutti_tensor *const *grads, int n);

/** Move one parameter, with a gradient of the caller's. Its first state is made now.
 * @param grad  of the parameter's shape and dtype, only read; NULL: nothing is done
 * @errors  as tutti_optim_step_grads(); TUTTI_E_STATE  the optimizer is divided among ranks (tutti/zero.h);
 *          TUTTI_E_ARG  param is none of the optimizer's, which was not made
 *          without parameters (tutti_optim_create)
 * @threads one at a time
 * @source  the functional optimizers of torch.distributed.optim, their step_param(param, grad) */
TUTTI_API tutti_status tutti_optim_step_param(tutti_optim *o, tutti_tensor *param,
                                              tutti_tensor *grad);

/** Drop the gradients of all parameters. NULL does nothing.
 * @threads one at a time
 * @source  torch.optim.Optimizer.zero_grad */
TUTTI_API void tutti_optim_zero_grad(tutti_optim *o);

/** Set the gradients that there are to zero and keep their memory, which may be part of a larger buffer.
 * @errors  TUTTI_E_ARG  o is NULL; what the collective that was to bring a gradient failed with
 * @threads one at a time
 * @source  torch.optim.Optimizer.zero_grad(set_to_none=False) */
TUTTI_API tutti_status tutti_optim_zero_grad_in_place(tutti_optim *o);

/* ---- groups ----------------------------------------------------------------------------------- */

/** The name that tutti_optim_create() knows it by; of NULL: NULL.
 * @threads any
 * @source  ours */
TUTTI_API const char *tutti_optim_name(const tutti_optim *o);

/** One more group, with the options that the optimizer was made with; tutti_optim_set_option() changes them.
 * @param params     n >= 1 leaves that require gradients and are in no group yet, retained
 * @param group_out  its number; may be NULL
 * @errors  as tutti_sgd(), but not kept
 * @threads one at a time
 * @source  torch.optim.Optimizer.add_param_group */
TUTTI_API tutti_status tutti_optim_add_param_group(tutti_optim *o, tutti_tensor *const *params,
                                                   int n, int *group_out);

/** How many groups there are, at least 1; of NULL: 0.
 * @threads one at a time
 * @source  len(torch.optim.Optimizer.param_groups) */
TUTTI_API int tutti_optim_n_groups(const tutti_optim *o);

/** The parameters of a group, or with group -1 of all of them, in order.
 * @param n_out  how many; 0 if there is no such group
 * @return  borrowed until parameters are added; NULL if there is no such group
 * @threads one at a time
 * @source  torch.optim.Optimizer.param_groups["params"] */
TUTTI_API tutti_tensor *const *tutti_optim_parameters(const tutti_optim *o, int group, int *n_out);

/** The i-th value of an option of a group; i is 0 unless the option is a pair.
 * @errors  TUTTI_E_ARG  o is NULL, no such group, option or value
 * @threads one at a time
 * @source  torch.optim.Optimizer.param_groups */
TUTTI_API tutti_status tutti_optim_get_option(const tutti_optim *o, int group, const char *name,
                                              int i, double *value_out);

/** Change an option of a group from the next step on.
 * @param value  n values: 1, or 2 for a pair; 0 or 1 for what is yes or no
 * @errors  TUTTI_E_ARG  o is NULL, no such group or option, another number of values, out of range; nothing
 *          has changed
 * @threads one at a time
 * @source  torch.optim.Optimizer.param_groups */
TUTTI_API tutti_status tutti_optim_set_option(tutti_optim *o, int group, const char *name,
                                              const double *value, int n);

/** The learning rate of the first group; of NULL: NaN.
 * @threads one at a time
 * @source  torch.optim.Optimizer.param_groups["lr"] */
TUTTI_API double tutti_optim_lr(const tutti_optim *o);

/** Change the learning rate of all groups from the next step on.
 * @errors  TUTTI_E_ARG  o is NULL, lr is negative or NaN
 * @threads one at a time
 * @source  torch.optim.Optimizer.param_groups["lr"] */
TUTTI_API tutti_status tutti_optim_set_lr(tutti_optim *o, double lr);

/** What the steps of a parameter remember under a name: "step" (f32, no dimensions), "exp_avg", ...; borrowed,
 * and the same tensor from the first step on.
 * @return  NULL: no such parameter or name, or no step has needed it yet
 * @threads one at a time
 * @source  torch.optim.Optimizer.state */
TUTTI_API tutti_tensor *tutti_optim_state(const tutti_optim *o, const tutti_tensor *param,
                                          const char *name);

/* ---- state ------------------------------------------------------------------------------------ */

/** What an optimizer remembers, as named tensors that can be saved:
 *
 *     state.0.exp_avg            of parameter 0, counted in the order of groups; shares its memory
 *     param_groups.0.lr          of group 0: f64, two numbers for a pair, bool for what is yes or no; copies
 *     param_groups.0.params      i64: which parameters the group has
 *
 * @param sd_out  end it with tutti_state_dict_free()
 * @errors  TUTTI_E_ARG  o is NULL; TUTTI_E_NOMEM
 * @threads one at a time
 * @source  torch.optim.Optimizer.state_dict, its dicts joined by dots */
TUTTI_API tutti_status tutti_optim_state_dict(const tutti_optim *o, tutti_state_dict **sd_out);

/** Go on from a state: copy all of it into the optimizer, converted to the types of the parameters. The groups must
 * be as many and as large as those that were saved; parameters are matched in order. What is kept for a parameter
 * without an entry is dropped. Options that the state does not have stay; options that the optimizer does not have are
 * left out (torch's "foreach" and the like).
 * @errors  TUTTI_E_ARG       o or sd is NULL, an option out of its range
 *          TUTTI_E_MISMATCH  other groups, a name that this optimizer does not keep, another shape
 *          TUTTI_E_NOMEM; after each of them the optimizer is as before
 * @threads one at a time
 * @source  torch.optim.Optimizer.load_state_dict */
TUTTI_API tutti_status tutti_optim_load_state_dict(tutti_optim *o, const tutti_state_dict *sd);

/** Make all tensors that steps of the parameters remember, as they are before the first step, without a step.
 * For those who load in place what others saved. It is in the state dict then, with a step of 0, and makes no
 * difference to the steps that come; a momentum of SGD, which has no count, comes into tutti_optim_state_dict() with its
 * first step.
 * @errors  TUTTI_E_ARG  o is NULL; TUTTI_E_NOMEM
 * @threads one at a time
 * @source  torch.distributed.optim._NamedOptimizer.init_state */
TUTTI_API tutti_status tutti_optim_init_state(tutti_optim *o);

/** An optimizer whose state goes by the names of parameters in place of numbers, so that it fits whatever the order
 * of parameters and whichever of them a rank has. */
typedef struct tutti_named_optim tutti_named_optim;

/** Give the parameters of an optimizer names.
 * @param o       stays the caller's, is stepped as before, and must outlive this
 * @param names   n different names, copied
 * @param params  n parameters, also more than the optimizer has so far
 * @errors  TUTTI_E_ARG  a NULL, a name twice or empty, a parameter of the optimizer that is not among params;
 *          TUTTI_E_NOMEM
 * @threads one at a time
 * @source  torch.distributed.optim._NamedOptimizer */
TUTTI_API tutti_status tutti_named_optim_create(tutti_optim *o, const char *const *names,
                                                tutti_tensor *const *params, int n,
                                                tutti_named_optim **named_out);

/** Free the names; the optimizer stays. NULL does nothing.
 * @threads one at a time
 * @source  ours */
TUTTI_API void tutti_named_optim_free(tutti_named_optim *named);

/** tutti_optim_state_dict() by names: "state.<name>.exp_avg", "param_groups.<name>.lr", the options of its group for
 * each parameter.
 * @errors  as tutti_optim_state_dict()
 * @threads one at a time
 * @source  torch.distributed.optim._NamedOptimizer.state_dict, flattened as
 *          torch.distributed.checkpoint.state_dict does */
TUTTI_API tutti_status tutti_named_optim_state_dict(const tutti_named_optim *named,
                                                    tutti_state_dict **sd_out);

/** Copy a state by names into what the optimizer keeps, in place. Parameters that it does not name keep their state,
 * groups none of whose parameters it names keep their options; names that nobody has here are left out.
 * @errors  TUTTI_E_STATE     a parameter has no state yet: tutti_optim_init_state() makes it
 *          TUTTI_E_MISMATCH  of a parameter it names another set of tensors, or another shape; it names some of the
 *                            parameters of a group, or gives them options that differ, or other options
 *          TUTTI_E_ARG       a NULL, an option out of its range; after each of them the optimizer is as before
 * @threads one at a time
 * @source  torch.distributed.optim._NamedOptimizer.load_state_dict */
TUTTI_API tutti_status tutti_named_optim_load_state_dict(tutti_named_optim *named,
                                                         const tutti_state_dict *sd);

/** tutti_optim_add_param_group() of parameters that have names.
 * @errors  as tutti_optim_add_param_group(); TUTTI_E_ARG  a parameter without a name
 * @threads one at a time
 * @source  torch.distributed.optim._NamedOptimizer.add_param_group */
TUTTI_API tutti_status tutti_named_optim_add_param_group(tutti_named_optim *named,
                                                         tutti_tensor *const *params, int n,
                                                         int *group_out);

/* ---- gradients between backward and step ------------------------------------------------------- */

/** The norm of all elements of n tensors together. Entries that are NULL are left out.
 * @param norm_type           2; 1: the sum of sizes; INFINITY: the largest size; any other number above 0
 * @param error_if_nonfinite  a norm that is no finite number is TUTTI_E_STATE
 * @errors  TUTTI_E_ARG  a NULL, not of a floating type, norm_type is not above 0; TUTTI_E_STATE
 * @threads one at a time
 * @numbers added up in f64, in an order that depends on the shapes alone
 * @source  torch.nn.utils.get_total_norm */
TUTTI_API tutti_status tutti_get_total_norm(tutti_tensor *const *tensors, int n, double norm_type,
                                            bool error_if_nonfinite, double *norm_out);

/** Multiply the gradients of n parameters with max_norm / (total_norm + 1e-6), or leave them where that is 1 or
 * more. A total_norm that is NaN makes them NaN.
 * @param total_norm  of all gradients, also of those that other ranks hold
 * @errors  TUTTI_E_ARG  a NULL, max_norm is negative or NaN; what the collective that was to bring a gradient
 *          failed with: nothing has changed
 * @threads one at a time
 * @source  torch.nn.utils.clip_grads_with_norm_ */
TUTTI_API tutti_status tutti_clip_grads_with_norm_(tutti_tensor *const *params, int n,
                                                   double max_norm, double total_norm);

/** tutti_get_total_norm() of the gradients of n parameters, then tutti_clip_grads_with_norm_(): afterwards the
 * norm of all gradients is at most max_norm. Parameters without a gradient are left out.
 * @param norm_out  the norm before; may be NULL
 * @errors  as those two; nothing has changed
 * @threads one at a time
 * @source  torch.nn.utils.clip_grad_norm_ */
TUTTI_API tutti_status tutti_clip_grad_norm_(tutti_tensor *const *params, int n, double max_norm,
                                             double norm_type, bool error_if_nonfinite,
                                             double *norm_out);

/** Bring each element of the gradients of n parameters into -clip_value .. clip_value. NaN stays.
 * @errors  TUTTI_E_ARG  a NULL, clip_value is negative or NaN; as tutti_clip_grads_with_norm_()
 * @threads one at a time
 * @source  torch.nn.utils.clip_grad_value_ */
TUTTI_API tutti_status tutti_clip_grad_value_(tutti_tensor *const *params, int n,
                                              double clip_value);

/* ---- learning rates over time ------------------------------------------------------------------
 *
 * A schedule gives every group of an optimizer a learning rate for each epoch (or step: it counts what the caller
 * counts), from the rate that the group had when the schedule was made. Epoch 0 is set at once; call
 * tutti_lr_scheduler_step() after tutti_optim_step(). Rates come from the epoch alone, not from the rates
 * before: what set_lr() did in between is overwritten. */

/** Used by one thread at a time; the optimizer must outlive it. */
typedef struct tutti_lr_scheduler tutti_lr_scheduler;

/** base * gamma^(epoch / step_size), the division rounded down.
 * @errors  NULL and kept, as for all schedules: TUTTI_E_ARG  o is NULL, step_size below 1, gamma negative or
 *          NaN; TUTTI_E_NOMEM
 * @threads one at a time
 * @source  torch.optim.lr_scheduler.StepLR */
TUTTI_API tutti_lr_scheduler *tutti_step_lr(tutti_optim *o, int64_t step_size, double gamma);

/** base * gamma^(milestones that the epoch has reached).
 * @param milestones  n epochs, in any order, copied
 * @errors  as tutti_step_lr()
 * @threads one at a time
 * @source  torch.optim.lr_scheduler.MultiStepLR */
TUTTI_API tutti_lr_scheduler *tutti_multi_step_lr(tutti_optim *o, const int64_t *milestones, int n,
                                                  double gamma);

/** base * gamma^epoch.
 * @errors  as tutti_step_lr()
 * @threads one at a time
 * @source  torch.optim.lr_scheduler.ExponentialLR */
TUTTI_API tutti_lr_scheduler *tutti_exponential_lr(tutti_optim *o, double gamma);

/** base times a factor that goes in a straight line from first to last over n epochs and stays there.
 * @errors  as tutti_step_lr(); TUTTI_E_ARG  n below 1, a factor negative or NaN
 * @threads one at a time
 * @source  torch.optim.lr_scheduler.LinearLR */
TUTTI_API tutti_lr_scheduler *tutti_linear_lr(tutti_optim *o, double first, double last, int64_t n);

/** From base down to lr_min along half a cosine of n epochs, and up again in the next n.
 * @errors  as tutti_step_lr(); TUTTI_E_ARG  n below 1, lr_min negative or NaN
 * @threads one at a time
 * @source  torch.optim.lr_scheduler.CosineAnnealingLR */
TUTTI_API tutti_lr_scheduler *tutti_cosine_annealing_lr(tutti_optim *o, int64_t n, double lr_min);

/** Up in a straight line over warmup epochs, base * (epoch + 1) / warmup, then down to lr_min along half a
 * cosine that ends at epoch n, and lr_min from then on.
 * @errors  as tutti_step_lr(); TUTTI_E_ARG  warmup is negative or not below n, lr_min negative or NaN
 * @threads one at a time
 * @source  ours: in torch a LinearLR and a CosineAnnealingLR in a SequentialLR */
TUTTI_API tutti_lr_scheduler *tutti_warmup_cosine_lr(tutti_optim *o, int64_t warmup, int64_t n,
                                                     double lr_min);

/** What base is multiplied with at an epoch. */
typedef double (*tutti_lr_lambda)(int64_t epoch, void *ctx);

/** base * factor(epoch, ctx), the same for all groups.
 * @errors  as tutti_step_lr(); a factor that is negative or NaN: then tutti_lr_scheduler_step() fails
 * @threads one at a time
 * @source  torch.optim.lr_scheduler.LambdaLR */
TUTTI_API tutti_lr_scheduler *tutti_lambda_lr(tutti_optim *o, tutti_lr_lambda factor, void *ctx);

/** Go to the next epoch and set its learning rates.
 * @errors  TUTTI_E_ARG  s is NULL, a rate is negative or NaN: the epoch has not changed, no rate has
 * @threads one at a time
 * @source  torch.optim.lr_scheduler.LRScheduler.step */
TUTTI_API tutti_status tutti_lr_scheduler_step(tutti_lr_scheduler *s);

/** Go to an epoch and set its learning rates, for instance to resume.
 * @errors  as tutti_lr_scheduler_step(); TUTTI_E_ARG  epoch is negative
 * @threads one at a time
 * @source  torch.optim.lr_scheduler.LRScheduler.last_epoch */
TUTTI_API tutti_status tutti_lr_scheduler_set_epoch(tutti_lr_scheduler *s, int64_t epoch);

/** The epoch whose rates are set, 0 at first; of NULL: -1.
 * @threads one at a time
 * @source  torch.optim.lr_scheduler.LRScheduler.last_epoch */
TUTTI_API int64_t tutti_lr_scheduler_epoch(const tutti_lr_scheduler *s);

/** Where a schedule stands: "last_epoch" (i64) and "base_lrs" (f64, one for each group).
 * @errors  TUTTI_E_ARG  s is NULL; TUTTI_E_NOMEM
 * @threads one at a time
 * @source  torch.optim.lr_scheduler.LRScheduler.state_dict */
TUTTI_API tutti_status tutti_lr_scheduler_state_dict(const tutti_lr_scheduler *s,
                                                     tutti_state_dict **sd_out);

/** Go on from there, and set the learning rates of that epoch.
 * @errors  TUTTI_E_ARG  s or sd is NULL, a rate is negative; TUTTI_E_MISMATCH  a name is missing, or rates of
 *          another number of groups; the schedule is as before
 * @threads one at a time
 * @source  torch.optim.lr_scheduler.LRScheduler.load_state_dict */
TUTTI_API tutti_status tutti_lr_scheduler_load_state_dict(tutti_lr_scheduler *s,
                                                          const tutti_state_dict *sd);

/** Free it; the optimizer keeps its rates. NULL does nothing.
 * @threads one at a time
 * @source  ours */
TUTTI_API void tutti_lr_scheduler_free(tutti_lr_scheduler *s);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/nn.h - layers as functions, and modules that keep their parameters.
 *
 * The functions follow the rules of tutti/autograd.h. A module is a named tree: parameters and
 * children under the names that PyTorch gives them ("conv1.weight"), a switch between training and
 * evaluation, and a forward function. Constructors draw their parameters from the thread's default
 * generator exactly as PyTorch does, so the order of construction matters. A failed constructor
 * returns NULL and is kept like a failed expression; modules take NULL for an operand likewise. */
#ifndef TUTTI_NN_H
#define TUTTI_NN_H

#include <tutti/autograd.h>
#include <tutti/state.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- layers as functions ---------------------------------------------------------------------- */

/** How a convolution steps; a zero field means its default. Begin with TUTTI_CONV2D_OPTIONS. */
typedef struct tutti_conv2d_options {
    size_t size;
    int stride[2];   /* rows, columns; default 1 */
    int padding[2];  /* zeros around the image; default 0 */
    int dilation[2]; /* distance of kernel elements; default 1 */
    int groups;      /* input channels in so many separate groups; default 1 */
} tutti_conv2d_options;

#ifdef __cplusplus
#define TUTTI_CONV2D_OPTIONS                        \
    {                                               \
        sizeof(tutti_conv2d_options), {}, {}, {}, 0 \
    }
#else
#define TUTTI_CONV2D_OPTIONS                 \
    {                                        \
        .size = sizeof(tutti_conv2d_options) \
    }
#endif

/** x times the transpose of weight, plus bias (NULL: none).
 * @shapes  [.., I], [O, I], [O] -> [.., O]; any of the sizes may be 0
 * @threads any
 * @source  torch.nn.functional.linear */
TUTTI_API tutti_tensor *tutti_tensor_linear(tutti_tensor *x, tutti_tensor *weight,
                                            tutti_tensor *bias);

/** Cross-correlation of images with kernels, plus bias (NULL: none). opts NULL: all defaults.
 * @shapes  [N, C, H, W], [O, C/groups, kh, kw], [O] -> [N, O, H', W'],
 *          H' = floor((H + 2 padding - dilation (kh - 1) - 1) / stride) + 1
 * @cost    a matrix product per image and group; the columns it needs are made again in backward
 * @threads any
 * @source  torch.nn.functional.conv2d */
TUTTI_API tutti_tensor *tutti_tensor_conv2d(tutti_tensor *x, tutti_tensor *weight,
                                            tutti_tensor *bias, const tutti_conv2d_options *opts);

/** How a pooling window moves; a zero field means its default. Begin with TUTTI_POOL2D_OPTIONS. */
typedef struct tutti_pool2d_options {
    size_t size;
    int stride[2];   /* default: the window's size */
    int padding[2];  /* -inf around the image, at most half the window; default 0 */
    int dilation[2]; /* default 1 */
} tutti_pool2d_options;

#ifdef __cplusplus
#define TUTTI_POOL2D_OPTIONS                  \
    {                                         \
        sizeof(tutti_pool2d_options), {}, {}, \
        {                                     \
        }                                     \
    }
#else
#define TUTTI_POOL2D_OPTIONS                 \
    {                                        \
        .size = sizeof(tutti_pool2d_options) \
    }
#endif

/** The largest element of each kh x kw window, the first of equals; a NaN in a window wins.
 * opts NULL: all defaults, windows side by side.
 * @shapes  [N, C, H, W] -> [N, C, H', W'], sizes as in tutti_tensor_conv2d()
 * @threads any
 * @source  torch.nn.functional.max_pool2d */
TUTTI_API tutti_tensor *tutti_tensor_max_pool2d(tutti_tensor *x, int kh, int kw,
                                                const tutti_pool2d_options *opts);

/** Training: each element zero with probability p, the others divided by 1 - p, drawn from the
 * thread's default generator in memory order. Otherwise x itself, retained.
 * @errors  also TUTTI_E_ARG  p outside of 0..1
 * @threads any
 * @source  torch.nn.functional.dropout */
TUTTI_API tutti_tensor *tutti_tensor_dropout(tutti_tensor *x, double p, bool training);

/** As tutti_tensor_dropout(), whole channels at a time.
 * @shapes  [N, C, ..] -> the same; one draw for each [n, c]
 * @threads any
 * @source  torch.nn.functional.dropout2d */
TUTTI_API tutti_tensor *tutti_tensor_dropout2d(tutti_tensor *x, double p, bool training);

/** x minus the logarithm of the sum of e^x along dim, safe for large x.
 * @shapes  any -> the same; a scalar is a vector of one element, dimension 0
 * @threads any
 * @source  torch.nn.functional.log_softmax */
TUTTI_API tutti_tensor *tutti_tensor_log_softmax(tutti_tensor *x, int dim);

/** What a loss does with the terms of a batch. */
typedef enum tutti_reduction {
    TUTTI_REDUCTION_MEAN = 0, /* divide by the sum of the weights of the targets that count */
    TUTTI_REDUCTION_SUM,
    TUTTI_REDUCTION_NONE
} tutti_reduction;

/** How a loss counts; a zero field means its default. Begin with TUTTI_LOSS_OPTIONS. */
typedef struct tutti_loss_options {
    size_t size;
    tutti_tensor *weight; /* [C], a weight for each class; default: all 1 */
    tutti_reduction reduction;
    bool has_ignore_index; /* false: targets of -100 do not count */
    int64_t ignore_index;  /* if true: targets of this value do not count */
    /* Cross entropy only: this share of the target's weight is dealt out to all classes; 0..1. */
    double label_smoothing;
} tutti_loss_options;

#ifdef __cplusplus
#define TUTTI_LOSS_OPTIONS                                                       \
    {                                                                            \
        sizeof(tutti_loss_options), nullptr, TUTTI_REDUCTION_MEAN, false, 0, 0.0 \
    }
#else
#define TUTTI_LOSS_OPTIONS                 \
    {                                      \
        .size = sizeof(tutti_loss_options) \
    }
#endif

/** Minus the log-probability of each target. opts NULL: the mean, all classes alike. A mean over
 * no targets is NaN.
 * @shapes  [N, C, ..] and i64 [N, ..] -> [], or [N, ..] with TUTTI_REDUCTION_NONE; [C] and [] alike
 * @errors  also TUTTI_E_ARG  a target is no class; the text says which and where
 * @threads any
 * @source  torch.nn.functional.nll_loss */
TUTTI_API tutti_tensor *tutti_tensor_nll_loss(tutti_tensor *log_probs, tutti_tensor *target,
                                              const tutti_loss_options *opts);

/** tutti_tensor_nll_loss() of tutti_tensor_log_softmax() over the classes, in one pass; keeps the scores
 * and two numbers a row for backward, and no probabilities.
 * @shapes  as tutti_tensor_nll_loss()
 * @threads any
 * @source  torch.nn.functional.cross_entropy */
TUTTI_API tutti_tensor *tutti_tensor_cross_entropy(tutti_tensor *logits, tutti_tensor *target,
                                                   const tutti_loss_options *opts);

/* ---- layers of transformers --------------------------------------------------------------------- */

/** e^x divided by its sum along dim, safe for large x.
 * @shapes  any -> the same; a scalar is a vector of one element, dimension 0
 * @threads any
 * @source  torch.nn.functional.softmax */
TUTTI_API tutti_tensor *tutti_tensor_softmax(tutti_tensor *x, int dim);

/** Each run of the last nd dimensions less its mean, divided by the root of its variance plus eps, times
 * weight plus bias (NULL: without).
 * @param shape  the last nd sizes of x; weight and bias have this shape
 * @numbers mean and variance in f64, in an order that depends on the shape alone
 * @threads any
 * @source  torch.nn.functional.layer_norm */
TUTTI_API tutti_tensor *tutti_tensor_layer_norm(tutti_tensor *x, int nd, const int64_t *shape,
                                                tutti_tensor *weight, tutti_tensor *bias,
                                                double eps);

/** Each run of the last nd dimensions divided by the root of its mean square plus eps, times weight
 * (NULL: without).
 * @param eps  below 0: the distance from 1 to the next number of x's type
 * @numbers as tutti_tensor_layer_norm()
 * @threads any
 * @source  torch.nn.functional.rms_norm */
TUTTI_API tutti_tensor *tutti_tensor_rms_norm(tutti_tensor *x, int nd, const int64_t *shape,
                                              tutti_tensor *weight, double eps);

/** The rows of weight that index names.
 * @param index        i64, of any shape
 * @param padding_idx  a row that gets no gradient; below 0: none
 * @shapes  [V, D], [..] -> [.., D]
 * @errors  also TUTTI_E_ARG  an index is no row; the text says which and where
 * @threads any
 * @source  torch.nn.functional.embedding */
TUTTI_API tutti_tensor *tutti_tensor_embedding(tutti_tensor *weight, const tutti_tensor *index,
                                               int64_t padding_idx);

/** What attention does besides; a zero field means its default. Begin with TUTTI_ATTENTION_OPTIONS. */
typedef struct tutti_attention_options {
    size_t size;
    bool is_causal;   /* query i sees keys 0 .. i only */
    double dropout_p; /* each probability is zero with this chance, the others grow; 0..1 */
    double scale;     /* of the products; 0: 1 / sqrt(E) */
} tutti_attention_options;

#ifdef __cplusplus
#define TUTTI_ATTENTION_OPTIONS                          \
    {                                                    \
        sizeof(tutti_attention_options), false, 0.0, 0.0 \
    }
#else
#define TUTTI_ATTENTION_OPTIONS                 \
    {                                           \
        .size = sizeof(tutti_attention_options) \
    }
#endif

/** softmax(q k' scale) v, without ever holding all products: blocks of queries meet blocks of keys, and
 * two numbers a query are kept for backward. opts NULL: all defaults.
 * @shapes  [.., T, E], [.., S, E], [.., S, V] -> [.., T, V]; leading dimensions are equal. Of four, the
 *          result lies in memory as [B, T, H, V], so that joining the heads needs no copy
 * @threads any; draws from the thread's default generator if dropout_p is not 0
 * @numbers blocks and their order depend on the shape alone
 * @source  torch.nn.functional.scaled_dot_product_attention */
TUTTI_API tutti_tensor *
tutti_tensor_scaled_dot_product_attention(tutti_tensor *q, tutti_tensor *k, tutti_tensor *v,
                                          const tutti_attention_options *opts);

/* ---- modules ---------------------------------------------------------------------------------- */

/** A node of a tree of layers. Used by one thread at a time. */
typedef struct tutti_module tutti_module;

/** What a module computes from x; it calls tutti_forward() of its children and returns an
 * expression, made in the scope of the caller. */
typedef tutti_tensor *(*tutti_forward_fn)(tutti_module *self, tutti_tensor *x);

/** A module of the caller's own making, without parameters or children at first, in training.
 * @param kind     a word for error texts, copied
 * @param forward  computes; NULL: children one after another, in the order they were added
 * @param ctx      given back by tutti_module_context()
 * @param free_fn  called with ctx when the module is freed; may be NULL
 * @errors  NULL and kept: TUTTI_E_NOMEM
 * @threads any
 * @source  torch.nn.Module */
TUTTI_API tutti_module *tutti_module_create(const char *kind, tutti_forward_fn forward, void *ctx,
                                            void (*free_fn)(void *ctx));

/** Free a module that is nobody's child, and its children. NULL does nothing.
 * @threads one at a time
 * @source  ours */
TUTTI_API void tutti_module_free(tutti_module *m);

/** The ctx of tutti_module_create(); of NULL: NULL.
 * @threads any
 * @source  ours */
TUTTI_API void *tutti_module_context(const tutti_module *m);

/** Make child a part of m, which frees it from now on, also if this call fails. Returns child.
 * @param name  copied; not empty, no dot in it
 * @errors  NULL and kept: TUTTI_E_ARG  NULL, a name in use, a child that has a parent;
 *          TUTTI_E_NOMEM
 * @threads one at a time
 * @source  torch.nn.Module.add_module */
TUTTI_API tutti_module *tutti_module_add(tutti_module *m, const char *name, tutti_module *child);

/** Make t a parameter of m and have it require gradients; m keeps a reference of its own.
 * @param name  copied; not empty, no dot in it
 * @errors  TUTTI_E_ARG  NULL, a name in use, no leaf of a floating type; TUTTI_E_NOMEM. Also kept.
 * @threads one at a time
 * @source  torch.nn.Module.register_parameter */
TUTTI_API tutti_status tutti_module_register_parameter(tutti_module *m, const char *name,
                                                       tutti_tensor *t);

/** Make t a buffer of m: a tensor that belongs to the module but is not learned, such as running means. m keeps a
 * reference of its own.
 * @param name        copied; not empty, no dot in it
 * @param persistent  false: it is no part of the module's state
 * @errors  TUTTI_E_ARG  NULL, a name in use, a tensor that requires gradients; TUTTI_E_NOMEM. Also kept.
 * @threads one at a time
 * @source  torch.nn.Module.register_buffer */
TUTTI_API tutti_status tutti_module_register_buffer(tutti_module *m, const char *name,
                                                    tutti_tensor *t, bool persistent);

/** The child of that name, borrowed; NULL if there is none.
 * @threads any
 * @source  torch.nn.Module.get_submodule */
TUTTI_API tutti_module *tutti_module_child(const tutti_module *m, const char *name);

/** All parameters below m: its own first, then those of its children in the order they were added;
 * one that stands in two places comes once.
 * @param n_out  how many; 0 on failure
 * @return  an array that belongs to m, valid until parameters or children are added below it
 * @errors  NULL and kept: TUTTI_E_NOMEM
 * @threads one at a time
 * @source  torch.nn.Module.parameters */
TUTTI_API tutti_tensor *const *tutti_module_parameters(tutti_module *m, int *n_out);

/** The names of tutti_module_parameters(), in the same order: "conv1.weight", "conv1.bias", ...
 * @param n_out  how many; 0 on failure
 * @return  as tutti_module_parameters()
 * @threads one at a time
 * @source  torch.nn.Module.named_parameters */
TUTTI_API const char *const *tutti_module_parameter_names(tutti_module *m, int *n_out);

/** The parameter of that dotted name, borrowed; NULL if there is none.
 * @threads one at a time
 * @source  torch.nn.Module.get_parameter */
TUTTI_API tutti_tensor *tutti_module_parameter(tutti_module *m, const char *name);

/** All buffers below m, as tutti_module_parameters() lists parameters; also those that are not persistent.
 * @param n_out  how many; 0 on failure
 * @return  as tutti_module_parameters()
 * @threads one at a time
 * @source  torch.nn.Module.buffers */
TUTTI_API tutti_tensor *const *tutti_module_buffers(tutti_module *m, int *n_out);

/** The names of tutti_module_buffers(), in the same order.
 * @param n_out  how many; 0 on failure
 * @return  as tutti_module_parameters()
 * @threads one at a time
 * @source  torch.nn.Module.named_buffers */
TUTTI_API const char *const *tutti_module_buffer_names(tutti_module *m, int *n_out);

/** The buffer of that dotted name, borrowed; NULL if there is none.
 * @threads one at a time
 * @source  torch.nn.Module.get_buffer */
TUTTI_API tutti_tensor *tutti_module_buffer(tutti_module *m, const char *name);

/** The parameters and persistent buffers of m under their names. Tensors that stand in two places come with both
 * names. The tensors share the module's memory: what changes later is seen.
 * @param sd_out  end it with tutti_state_dict_free()
 * @errors  TUTTI_E_ARG  m is NULL; TUTTI_E_NOMEM
 * @threads one at a time
 * @source  torch.nn.Module.state_dict */
TUTTI_API tutti_status tutti_module_state_dict(tutti_module *m, tutti_state_dict **sd_out);

/** Names that a state and a module do not have in common. */
typedef struct tutti_incompatible_keys {
    int n_missing;                 /* the module has them, the state has not */
    int n_unexpected;              /* the state has them, the module has not */
    const char *const *missing;    /* in the order of the module */
    const char *const *unexpected; /* in the order of the state */
} tutti_incompatible_keys;

/** Copy the tensors of a state into those of m, in place, converted to their types. Either all that they have in
 * common is copied, or nothing.
 * @param strict    the names must be the same on both sides
 * @param keys_out  end it with tutti_incompatible_keys_free(); NULL: not wanted
 * @errors  TUTTI_E_ARG       m or sd is NULL
 *          TUTTI_E_MISMATCH  shapes differ, or with strict names; the text has the first ones of each kind
 *          TUTTI_E_NOMEM, and what the collective that was to bring a tensor failed with
 * @threads one at a time
 * @source  torch.nn.Module.load_state_dict */
TUTTI_API tutti_status tutti_module_load_state_dict(tutti_module *m, const tutti_state_dict *sd,
                                                    bool strict,
                                                    tutti_incompatible_keys **keys_out);

/** Make all floating parameters, their gradients, and buffers of m and below dtype, in place: handles stay. Before m is
 * wrapped by a ddp, and while no graph over it waits for its backward; views of its tensors keep the old elements.
 * Optimizers may be there already, but not between f64 and others once they have stepped.
 * @param dtype  f16, bf16, f32 or f64
 * @errors  TUTTI_E_ARG, TUTTI_E_NOMEM: nothing is changed; TUTTI_E_STATE: a ddp has the module
 * @threads one at a time
 * @source  torch.nn.Module.to(dtype), torch.nn.Module.bfloat16, torch.nn.Module.half, torch.nn.Module.float,
 *          torch.nn.Module.double */
TUTTI_API tutti_status tutti_module_to(tutti_module *m, tutti_dtype dtype);

/** Free what tutti_module_load_state_dict() wrote. NULL does nothing.
 * @threads any
 * @source  ours */
TUTTI_API void tutti_incompatible_keys_free(tutti_incompatible_keys *keys);

/** Switch m and everything below it to training, or to evaluation.
 * @threads one at a time
 * @source  torch.nn.Module.train, torch.nn.Module.eval */
TUTTI_API void tutti_module_train(tutti_module *m, bool on);

/** True while m is in training; of NULL: false.
 * @threads any
 * @source  torch.nn.Module.training */
TUTTI_API bool tutti_module_is_training(const tutti_module *m);

/** Drop the gradients of all parameters.
 * @threads one at a time
 * @source  torch.nn.Module.zero_grad */
TUTTI_API void tutti_module_zero_grad(tutti_module *m);

/** What m makes of x.
 * @errors  NULL and kept: of what forward did, or NULL operands
 * @threads one at a time
 * @source  torch.nn.Module.__call__ */
TUTTI_API tutti_tensor *tutti_forward(tutti_module *m, tutti_tensor *x);

/** tutti_forward() as the region of tutti_checkpoint(): what m saves for backward is computed again then. m
 * must live, and stay in training or evaluation, until then.
 * @errors  as tutti_checkpoint()
 * @threads one at a time
 * @source  torch.utils.checkpoint.checkpoint */
TUTTI_API tutti_tensor *tutti_checkpoint_forward(tutti_module *m, tutti_tensor *x);

/** Before m computes: *x may be replaced. Anything but TUTTI_OK poisons the expression with that status. */
typedef tutti_status (*tutti_module_forward_pre_hook)(tutti_module *m, tutti_tensor **x, void *ctx);

/** After m computed *y, which may be replaced, from x. Failures as before. */
typedef tutti_status (*tutti_module_forward_hook)(tutti_module *m, tutti_tensor *x,
                                                  tutti_tensor **y, void *ctx);

/** In backward, when the gradient of m's output is there, which may be replaced, and nothing of m has
 * been computed back. Anything but TUTTI_OK ends the backward. */
typedef tutti_status (*tutti_module_backward_pre_hook)(tutti_module *m, tutti_tensor **grad_output,
                                                       void *ctx);

/** In backward, when the gradient of m's input is complete, which may be replaced; if the input wants none,
 * it is NULL, and this is called as soon as that of the output is there. Failures as before. */
typedef tutti_status (*tutti_module_backward_hook)(tutti_module *m, tutti_tensor *grad_output,
                                                   tutti_tensor **grad_input, void *ctx);

/** Have fn called in every tutti_forward() of m, in the order of registration, before it computes.
 * @param handle_out  for tutti_module_remove_hook(); may be NULL
 * @errors  TUTTI_E_ARG  m or fn is NULL; TUTTI_E_NOMEM
 * @threads one at a time
 * @source  torch.nn.Module.register_forward_pre_hook */
TUTTI_API tutti_status tutti_module_register_forward_pre_hook(tutti_module *m,
                                                              tutti_module_forward_pre_hook fn,
                                                              void *ctx, int *handle_out);

/** The same, after it has computed. @errors as tutti_module_register_forward_pre_hook()
 * @threads one at a time @source torch.nn.Module.register_forward_hook */
TUTTI_API tutti_status tutti_module_register_forward_hook(tutti_module *m,
                                                          tutti_module_forward_hook fn, void *ctx,
                                                          int *handle_out);

/** Have fn called in every backward through a call of m that is made from now on, before m's part of it.
 * m must live until then.
 * @errors as tutti_module_register_forward_pre_hook()
 * @threads one at a time
 * @source  torch.nn.Module.register_full_backward_pre_hook */
TUTTI_API tutti_status tutti_module_register_full_backward_pre_hook(
    tutti_module *m, tutti_module_backward_pre_hook fn, void *ctx, int *handle_out);

/** The same, after m's part of it. @errors as tutti_module_register_forward_pre_hook()
 * @threads one at a time @source torch.nn.Module.register_full_backward_hook */
TUTTI_API tutti_status tutti_module_register_full_backward_hook(tutti_module *m,
                                                                tutti_module_backward_hook fn,
                                                                void *ctx, int *handle_out);

/** Forget a hook. A handle that is not (or no longer) known does nothing; a hook may remove itself.
 * @threads one at a time
 * @source  torch.utils.hooks.RemovableHandle.remove */
TUTTI_API void tutti_module_remove_hook(tutti_module *m, int handle);

/** Parameters weight [out, in] and, if wanted, bias [out].
 * @threads draws from the thread's default generator
 * @source  torch.nn.Linear */
TUTTI_API tutti_module *tutti_linear(int64_t in, int64_t out, bool bias);

/** Parameters weight [out, in/groups, kh, kw] and bias [out]. opts NULL: all defaults.
 * @threads draws from the thread's default generator
 * @source  torch.nn.Conv2d */
TUTTI_API tutti_module *tutti_conv2d(int64_t in, int64_t out, int kh, int kw,
                                     const tutti_conv2d_options *opts);

/** tutti_tensor_dropout() as a module. @threads any @source torch.nn.Dropout */
TUTTI_API tutti_module *tutti_dropout(double p);

/** tutti_tensor_dropout2d() as a module. @threads any @source torch.nn.Dropout2d */
TUTTI_API tutti_module *tutti_dropout2d(double p);

/** tutti_tensor_max_pool2d() with square windows side by side. @threads any
 * @source torch.nn.MaxPool2d */
TUTTI_API tutti_module *tutti_max_pool2d(int k);

/** tutti_tensor_relu() as a module. @threads any @source torch.nn.ReLU */
TUTTI_API tutti_module *tutti_relu(void);

/** tutti_tensor_flatten() from dimension 1 on. @threads any @source torch.nn.Flatten */
TUTTI_API tutti_module *tutti_flatten(void);

/** tutti_tensor_log_softmax() as a module. @threads any @source torch.nn.LogSoftmax */
TUTTI_API tutti_module *tutti_log_softmax(int dim);

/** Parameter weight [count, dim], normal numbers; row padding_idx (below 0: none) is zero and stays it.
 * Takes i64 numbers of rows.
 * @threads draws from the thread's default generator
 * @source  torch.nn.Embedding */
TUTTI_API tutti_module *tutti_embedding(int64_t count, int64_t dim, int64_t padding_idx);

/** Parameters weight, ones, and bias, zeros, of that shape; eps 1e-5 is usual. @threads any
 * @source torch.nn.LayerNorm */
TUTTI_API tutti_module *tutti_layer_norm(int nd, const int64_t *shape, double eps);

/** Parameter weight, ones, of that shape; eps as of tutti_tensor_rms_norm(). @threads any
 * @source torch.nn.RMSNorm */
TUTTI_API tutti_module *tutti_rms_norm(int nd, const int64_t *shape, double eps);

/** How a module of attention is built; a zero field means its default. */
typedef struct tutti_multihead_options {
    size_t size;
    double dropout; /* of the probabilities, while in training; default 0 */
    bool no_bias;   /* no in_proj_bias, no out_proj.bias */
    bool is_causal; /* each place sees itself and those before it */
} tutti_multihead_options;

#ifdef __cplusplus
#define TUTTI_MULTIHEAD_OPTIONS                            \
    {                                                      \
        sizeof(tutti_multihead_options), 0.0, false, false \
    }
#else
#define TUTTI_MULTIHEAD_OPTIONS                 \
    {                                           \
        .size = sizeof(tutti_multihead_options) \
    }
#endif

/** Self-attention with several heads, batch first: parameters in_proj_weight [3 dim, dim] (queries, keys,
 * values), in_proj_bias, and a linear child out_proj. opts NULL: all defaults.
 * @shapes  [B, T, dim] -> the same
 * @threads draws from the thread's default generator
 * @source  torch.nn.MultiheadAttention(batch_first=True) */
TUTTI_API tutti_module *tutti_multihead_attention(int64_t dim, int heads,
                                                  const tutti_multihead_options *opts);

/** tutti_tensor_gelu() as a module, or tutti_tensor_gelu_tanh(). @threads any @source torch.nn.GELU */
TUTTI_API tutti_module *tutti_gelu(bool tanh);

/** tutti_tensor_silu() as a module. @threads any @source torch.nn.SiLU */
TUTTI_API tutti_module *tutti_silu(void);

/** tutti_tensor_softmax() as a module. @threads any @source torch.nn.Softmax */
TUTTI_API tutti_module *tutti_softmax(int dim);

/** Children one after another; add them under any names. @threads any @source torch.nn.Sequential */
TUTTI_API tutti_module *tutti_sequential(void);

#ifdef __cplusplus
}
#endif
#endif

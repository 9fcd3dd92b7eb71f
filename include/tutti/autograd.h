/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/autograd.h - operations that gradients flow through, and the way back through them.
 *
 * Every operation on a tensor that requires gradients records one node; tutti_backward() walks the
 * nodes in the reverse order of their making and adds what it finds to the leaves' gradients. First
 * derivatives only: the gradients themselves are recorded nowhere. Operations whose name ends in
 * "_" change their first operand in place and are never recorded: on a tensor that a graph needs
 * they are refused while recording is on.
 *
 * Operands of different types meet in the wider one: bool < u8 < i32 < i64 < f16, bf16 < f32 < f64, and
 * f16 and bf16 in f32; a scalar tensor counts only if its kind (bool, whole, real) is higher. Shapes broadcast: aligned at the
 * right, sizes are equal or 1. Errors of all operations: NULL, kept (see tutti/tensor.h),
 * TUTTI_E_ARG for shapes and dimensions that do not fit, TUTTI_E_UNSUPPORTED for types,
 * TUTTI_E_NOMEM. */
#ifndef TUTTI_AUTOGRAD_H
#define TUTTI_AUTOGRAD_H

#include <tutti/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- gradients -------------------------------------------------------------------------------- */

enum { TUTTI_RETAIN_GRAPH = 1 };

/** Add the gradients of the roots to the leaves they were computed from.
 *
 * @param roots  n tensors that require gradients
 * @param grads  one gradient for each root, of its shape; NULL, or an entry NULL: one, which only a
 *               root of one element may have
 * @param flags  TUTTI_RETAIN_GRAPH keeps what the nodes saved, for another backward
 *
 * @errors  a kept failure of an earlier expression, which is then forgotten; nothing is done
 *          TUTTI_E_ARG    a root requires no gradient, a gradient of the wrong shape
 *          TUTTI_E_STATE  a second backward without the flag; a saved value changed in place since
 *          whatever a hook returned: it ends the pass, leaves reached before have their gradients
 * @threads any; graphs on different threads may share leaves
 * @numbers same graph, same order, same bits
 * @source  torch.autograd.backward */
TUTTI_API tutti_status tutti_backward(tutti_tensor *const *roots, tutti_tensor *const *grads, int n,
                                      unsigned flags);

/** tutti_backward() of one root with the gradient one.
 * @errors  as tutti_backward()
 * @threads any
 * @source  Tensor.backward */
TUTTI_API tutti_status tutti_tensor_backward(tutti_tensor *root);

/** True while operations are recorded on this thread, as they are at first.
 * @threads each thread has its own
 * @source  torch.is_grad_enabled */
TUTTI_API bool tutti_is_grad_enabled(void);

/** Switch recording on this thread; returns what it was, to put it back.
 * @threads each thread has its own
 * @source  torch.set_grad_enabled, torch.no_grad */
TUTTI_API bool tutti_set_grad_enabled(bool on);

/** Make a leaf require gradients, or no longer. Returns t.
 * @errors  NULL and kept: TUTTI_E_ARG not of a real type; TUTTI_E_STATE switching off a computed tensor
 * @threads one at a time per tensor
 * @source  Tensor.requires_grad_ */
TUTTI_API tutti_tensor *tutti_tensor_requires_grad_(tutti_tensor *t, bool on);

/** True if gradients flow to t; of NULL: false.
 * @threads any
 * @source  Tensor.requires_grad */
TUTTI_API bool tutti_tensor_requires_grad(const tutti_tensor *t);

/** True if t was computed by nothing that is recorded; of NULL: false.
 * @threads any
 * @source  Tensor.is_leaf */
TUTTI_API bool tutti_tensor_is_leaf(const tutti_tensor *t);

/** The gradient of a leaf, borrowed; NULL while there is none. The object stays the same from one
 * backward to the next, which add to it in place.
 * @threads one at a time per tensor
 * @source  Tensor.grad */
TUTTI_API tutti_tensor *tutti_tensor_grad(const tutti_tensor *t);

/** Replace the gradient of a leaf; NULL drops it. grad is retained, not copied: a leaf may so be
 * given a view of a larger buffer to collect in.
 * @errors  TUTTI_E_ARG  no leaf, or another shape or dtype, or an expanded tensor, whose elements
 *                       stand for several each
 * @threads one at a time per tensor
 * @source  Tensor.grad */
TUTTI_API tutti_status tutti_tensor_set_grad(tutti_tensor *t, tutti_tensor *grad);

/** Called on the thread of a backward, with recording off, right after it has added to leaf's
 * gradient. Anything but TUTTI_OK ends the backward with that status; word it with the call that
 * failed. */
typedef tutti_status (*tutti_grad_hook)(tutti_tensor *leaf, void *ctx);

/** Have fn called whenever a backward has finished a leaf's gradient; hooks run in the order of
 * their registration. Once per backward, however often the leaf was used; not at all in a backward
 * that brings it none.
 *
 * @param handle_out  for tutti_tensor_remove_hook(); may be NULL
 * @errors  TUTTI_E_ARG  t is no leaf that requires gradients; TUTTI_E_NOMEM
 * @threads one at a time per tensor, not during a backward over it
 * @source  Tensor.register_post_accumulate_grad_hook */
TUTTI_API tutti_status tutti_tensor_register_post_accumulate_grad_hook(tutti_tensor *t,
                                                                       tutti_grad_hook fn,
                                                                       void *ctx, int *handle_out);

/** As tutti_tensor_register_post_accumulate_grad_hook(), but called in every backward that comes to the
 * leaf, also in one that brings it no gradient, and after those hooks: this leaf is done.
 * @errors  TUTTI_E_ARG  t is no leaf that requires gradients; TUTTI_E_NOMEM
 * @threads one at a time per tensor, not during a backward over it
 * @source  torch.autograd.graph.Node.register_hook, of an AccumulateGrad node */
TUTTI_API tutti_status tutti_tensor_register_backward_passed_hook(tutti_tensor *t,
                                                                  tutti_grad_hook fn, void *ctx,
                                                                  int *handle_out);

/** Called on the thread of a backward, with recording off, inside a scope, with the whole gradient of a
 * tensor before it goes on. A tensor of the same shape and type in *grad_out takes its place; as it is,
 * NULL, grad stays. Do not change grad in place. Anything but TUTTI_OK ends the backward with that status. */
typedef tutti_status (*tutti_tensor_hook)(tutti_tensor *grad, tutti_tensor **grad_out, void *ctx);

/** Have fn called with the gradient of t, a leaf or not, in every backward that brings it one; in the order
 * of registration. Of a computed tensor the hook belongs to what computed it, and goes with the graph.
 * @param handle_out  for tutti_tensor_remove_hook(); may be NULL
 * @errors  TUTTI_E_ARG  t requires no gradients; TUTTI_E_NOMEM
 * @threads one at a time per tensor, not during a backward over it
 * @source  Tensor.register_hook */
TUTTI_API tutti_status tutti_tensor_register_hook(tutti_tensor *t, tutti_tensor_hook fn, void *ctx,
                                                  int *handle_out);

/** Have a computed tensor keep its gradient, as leaves do: tutti_tensor_grad() has it after backward, as its
 * hooks left it.
 * @errors  TUTTI_E_ARG  t requires no gradients; TUTTI_E_NOMEM
 * @threads one at a time per tensor
 * @source  Tensor.retain_grad */
TUTTI_API tutti_status tutti_tensor_retain_grad(tutti_tensor *t);

/** From inside a hook: have fn called when the backward that runs on this thread is through, after those
 * queued before. A callback may queue others; what it returns, if not TUTTI_OK, is what backward returns.
 * After a failure callbacks are not called.
 * @errors  TUTTI_E_STATE  no backward is running on this thread; TUTTI_E_NOMEM
 * @threads each thread has its own
 * @source  torch.autograd.Variable._execution_engine.queue_callback */
TUTTI_API tutti_status tutti_backward_queue_callback(tutti_status (*fn)(void *ctx), void *ctx);

/** Which leaves a backward from the roots would come to. Nothing is computed.
 * @param roots        n tensors; those that require no gradients reach nothing
 * @param reached_out  n_leaves answers
 * @errors  TUTTI_E_NOMEM
 * @threads any
 * @cost    a walk over the graph
 * @source  ours: what find_unused_parameters of DistributedDataParallel asks */
TUTTI_API tutti_status tutti_backward_reaches(tutti_tensor *const *roots, int n,
                                              tutti_tensor *const *leaves, int n_leaves,
                                              bool *reached_out);

/** Forget a hook. A handle that is not (or no longer) known does nothing.
 * @threads one at a time per tensor; a hook may remove itself and others
 * @source  torch.utils.hooks.RemovableHandle.remove */
TUTTI_API void tutti_tensor_remove_hook(tutti_tensor *t, int handle);

/* ---- checkpoints ------------------------------------------------------------------------------ */

/** A part of a computation: one tensor out of n. It depends on its inputs, on parameters that stay as they
 * are, and on the thread's default generator only, for it runs twice. */
typedef tutti_tensor *(*tutti_region_fn)(tutti_tensor *const *in, int n, void *ctx);

/** fn(in, n, ctx), of whose operations nothing is kept for backward but the inputs: the first of them that
 * backward comes to has fn run once more, with the generator as it stood, which costs time and saves
 * memory. Regions may be nested; the inputs of inner ones are kept.
 *
 * @param in       n tensors, kept
 * @param free_fn  called with ctx when the graph needs it no more, or on failure; NULL: nobody is called
 * @errors  those of fn. Of backward: TUTTI_E_STATE if an input or a parameter was changed in place, or fn
 *          did other things when it ran again; and what fn fails with then
 * @numbers the same bits as without
 * @threads as operations
 * @source  torch.utils.checkpoint.checkpoint(use_reentrant=False) */
TUTTI_API tutti_tensor *tutti_checkpoint(tutti_region_fn fn, tutti_tensor *const *in, int n,
                                         void *ctx, void (*free_fn)(void *ctx));

/* ---- element by element ----------------------------------------------------------------------- */

/** a + b. @shapes broadcast @threads any @source torch.add */
TUTTI_API tutti_tensor *tutti_tensor_add(tutti_tensor *a, tutti_tensor *b);

/** a + alpha * b. @shapes broadcast @threads any @source torch.add(alpha=) */
TUTTI_API tutti_tensor *tutti_tensor_add_scaled(tutti_tensor *a, tutti_tensor *b, double alpha);

/** a - b. @shapes broadcast @threads any @source torch.sub */
TUTTI_API tutti_tensor *tutti_tensor_sub(tutti_tensor *a, tutti_tensor *b);

/** a * b. @shapes broadcast @threads any @source torch.mul */
TUTTI_API tutti_tensor *tutti_tensor_mul(tutti_tensor *a, tutti_tensor *b);

/** a / b; whole numbers give f32. @shapes broadcast @threads any @source torch.div */
TUTTI_API tutti_tensor *tutti_tensor_div(tutti_tensor *a, tutti_tensor *b);

/** x + c; whole numbers give f32, because c is real. @threads any @source torch.add */
TUTTI_API tutti_tensor *tutti_tensor_add_scalar(tutti_tensor *x, double c);

/** c * x; whole numbers give f32, because c is real. @threads any @source torch.mul */
TUTTI_API tutti_tensor *tutti_tensor_mul_scalar(tutti_tensor *x, double c);

/** -x. @threads any @source torch.neg */
TUTTI_API tutti_tensor *tutti_tensor_neg(tutti_tensor *x);

/** e to the power of x. Whole numbers give f32, here and below.
 * @numbers f32, here, for log, tanh and erf: at most 2 units in the last place from the exact value, for
 *          sigmoid 3; the same bits on every processor. f64: what the C library gives
 * @threads any
 * @source  torch.exp */
TUTTI_API tutti_tensor *tutti_tensor_exp(tutti_tensor *x);

/** Natural logarithm. @threads any @source torch.log */
TUTTI_API tutti_tensor *tutti_tensor_log(tutti_tensor *x);

/** Square root. @threads any @source torch.sqrt */
TUTTI_API tutti_tensor *tutti_tensor_sqrt(tutti_tensor *x);

/** 1 / sqrt(x). @threads any @source torch.rsqrt */
TUTTI_API tutti_tensor *tutti_tensor_rsqrt(tutti_tensor *x);

/** Hyperbolic tangent. @threads any @source torch.tanh */
TUTTI_API tutti_tensor *tutti_tensor_tanh(tutti_tensor *x);

/** The error function. @threads any @source torch.erf */
TUTTI_API tutti_tensor *tutti_tensor_erf(tutti_tensor *x);

/** 1 / (1 + e^-x). @threads any @source torch.sigmoid */
TUTTI_API tutti_tensor *tutti_tensor_sigmoid(tutti_tensor *x);

/** The larger of x and 0; NaN stays; the gradient at 0 is 0. @threads any @source torch.relu */
TUTTI_API tutti_tensor *tutti_tensor_relu(tutti_tensor *x);

/** x times the share of a normal distribution that lies below x.
 * @numbers f32: within 2e-7 |x| of the exact value; its left tail keeps about 19 of its 24 bits
 * @threads any
 * @source  torch.nn.functional.gelu */
TUTTI_API tutti_tensor *tutti_tensor_gelu(tutti_tensor *x);

/** x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2, which GPT-2 takes for gelu.
 * @threads any
 * @source  torch.nn.functional.gelu(approximate="tanh") */
TUTTI_API tutti_tensor *tutti_tensor_gelu_tanh(tutti_tensor *x);

/** x / (1 + e^-x). @threads any @source torch.nn.functional.silu */
TUTTI_API tutti_tensor *tutti_tensor_silu(tutti_tensor *x);

/** Without its sign; the gradient at 0 is 0. @threads any @source torch.abs */
TUTTI_API tutti_tensor *tutti_tensor_abs(tutti_tensor *x);

/** x, but low where it is below, and high where it is above; NaN stays; gradients flow where
 * low <= x <= high.
 * @threads any
 * @source  torch.clamp */
TUTTI_API tutti_tensor *tutti_tensor_clamp(tutti_tensor *x, double low, double high);

/** x to the power of p. @threads any @source torch.pow */
TUTTI_API tutti_tensor *tutti_tensor_pow_scalar(tutti_tensor *x, double p);

/** The larger of a and b; a NaN wins; equals share the gradient.
 * @shapes broadcast
 * @threads any
 * @source  torch.maximum */
TUTTI_API tutti_tensor *tutti_tensor_maximum(tutti_tensor *a, tutti_tensor *b);

/** The smaller of a and b; as tutti_tensor_maximum(). @shapes broadcast @threads any
 * @source torch.minimum */
TUTTI_API tutti_tensor *tutti_tensor_minimum(tutti_tensor *a, tutti_tensor *b);

/** a where cond, of bool or u8, is not 0, else b. What is not taken gets no gradient, NaN or not.
 * @shapes broadcast, all three
 * @threads any
 * @source  torch.where */
TUTTI_API tutti_tensor *tutti_tensor_where(const tutti_tensor *cond, tutti_tensor *a,
                                           tutti_tensor *b);

/** value where mask, of bool or u8, is not 0, else x. @shapes broadcast @threads any
 * @source torch.masked_fill */
TUTTI_API tutti_tensor *tutti_tensor_masked_fill(tutti_tensor *x, const tutti_tensor *mask,
                                                 double value);

/** A copy with elements converted to dtype; if they are of it already, x itself, retained.
 * @threads any
 * @source  Tensor.to */
TUTTI_API tutti_tensor *tutti_tensor_to(tutti_tensor *x, tutti_dtype dtype);

/* ---- reductions ------------------------------------------------------------------------------- */

/** The sum over n_dims dimensions; n_dims 0: over all of them. Whole numbers and bool add up in
 * i64.
 * @param keepdim  keep the dimensions summed over, with size 1
 * @numbers pairwise in blocks, in an order that depends on the shape alone
 * @threads any
 * @source  torch.sum */
TUTTI_API tutti_tensor *tutti_tensor_sum(tutti_tensor *x, const int *dims, int n_dims,
                                         bool keepdim);

/** The sum divided by the number of its terms; real types.
 * @numbers as tutti_tensor_sum()
 * @threads any
 * @source  torch.mean */
TUTTI_API tutti_tensor *tutti_tensor_mean(tutti_tensor *x, const int *dims, int n_dims,
                                          bool keepdim);

/** The largest elements along dim, and where they stand: the first of equals; a NaN counts as largest.
 * @param index_out  i64, of the result's shape; may be NULL, and is NULL after a failure
 * @shapes  [.., n, ..] -> [.., ..]; keepdim: [.., 1, ..]
 * @threads any
 * @source  torch.max(dim) */
TUTTI_API tutti_tensor *tutti_tensor_max(tutti_tensor *x, int dim, bool keepdim,
                                         tutti_tensor **index_out);

/** The smallest; as tutti_tensor_max(). @threads any @source torch.min(dim) */
TUTTI_API tutti_tensor *tutti_tensor_min(tutti_tensor *x, int dim, bool keepdim,
                                         tutti_tensor **index_out);

/** The mean squared distance from the mean over n_dims dimensions (0: all): the sum is divided by the
 * number of its terms less correction (1 is usual); real types.
 * @numbers as tutti_tensor_sum()
 * @threads any
 * @source  torch.var */
TUTTI_API tutti_tensor *tutti_tensor_var(tutti_tensor *x, const int *dims, int n_dims,
                                         double correction, bool keepdim);

/** The square root of the sum of squares over n_dims dimensions (0: all); its gradient at 0 is 0.
 * @numbers as tutti_tensor_sum()
 * @threads any
 * @source  torch.linalg.vector_norm */
TUTTI_API tutti_tensor *tutti_tensor_norm(tutti_tensor *x, const int *dims, int n_dims,
                                          bool keepdim);

/** The logarithm of the sum of e^x along dim, safe for large x; -inf over nothing.
 * @threads any
 * @source  torch.logsumexp */
TUTTI_API tutti_tensor *tutti_tensor_logsumexp(tutti_tensor *x, int dim, bool keepdim);

/* ---- shape: views share memory with x --------------------------------------------------------- */

/** The same elements in another shape; one size may be -1 and follows from the others.
 * @errors  also where no strides can express it: TUTTI_E_ARG, next: tutti_tensor_reshape()
 * @threads any
 * @source  Tensor.view */
TUTTI_API tutti_tensor *tutti_tensor_view(tutti_tensor *x, int nd, const int64_t *shape);

/** tutti_tensor_view() where possible, otherwise of a copy.
 * @threads any
 * @source  torch.reshape */
TUTTI_API tutti_tensor *tutti_tensor_reshape(tutti_tensor *x, int nd, const int64_t *shape);

/** All dimensions from start on made one: [N, C, H, W] from 1 is [N, C*H*W]; [] from 0 is [1].
 * @threads any
 * @source  torch.flatten */
TUTTI_API tutti_tensor *tutti_tensor_flatten(tutti_tensor *x, int start);

/** Dimensions d0 and d1 swapped. @threads any @source torch.transpose */
TUTTI_API tutti_tensor *tutti_tensor_transpose(tutti_tensor *x, int d0, int d1);

/** Dimension i of the result is order[i] of x; order has one entry per dimension.
 * @threads any
 * @source  torch.permute */
TUTTI_API tutti_tensor *tutti_tensor_permute(tutti_tensor *x, const int *order);

/** Elements start .. start+length-1 along dim. @threads any @source torch.narrow */
TUTTI_API tutti_tensor *tutti_tensor_narrow(tutti_tensor *x, int dim, int64_t start,
                                            int64_t length);

/** Element index along dim, which disappears. A negative index counts from the end.
 * @threads any
 * @source  torch.select */
TUTTI_API tutti_tensor *tutti_tensor_select(tutti_tensor *x, int dim, int64_t index);

/** Sizes of 1 repeated to those of shape, without a copy; -1 keeps a size; new dimensions in front.
 * @threads any
 * @source  Tensor.expand */
TUTTI_API tutti_tensor *tutti_tensor_expand(tutti_tensor *x, int nd, const int64_t *shape);

/** A dimension of size 1 put in at dim. @threads any @source torch.unsqueeze */
TUTTI_API tutti_tensor *tutti_tensor_unsqueeze(tutti_tensor *x, int dim);

/** Dimension dim taken out if its size is 1. @threads any @source torch.squeeze */
TUTTI_API tutti_tensor *tutti_tensor_squeeze(tutti_tensor *x, int dim);

/** The same memory and version counter, cut off from the graph. @threads any @source Tensor.detach */
TUTTI_API tutti_tensor *tutti_tensor_detach(tutti_tensor *x);

/** x itself, retained, if it is contiguous; otherwise a row-major copy.
 * @threads any
 * @source  Tensor.contiguous */
TUTTI_API tutti_tensor *tutti_tensor_contiguous(tutti_tensor *x);

/** A row-major copy in memory of its own. @threads any @source torch.clone */
TUTTI_API tutti_tensor *tutti_tensor_clone(tutti_tensor *x);

/* ---- joining, cutting, taking by number -------------------------------------------------------- */

/** n tensors one after another along dim, copied; of different types the widest.
 * @shapes  equal but along dim
 * @threads any
 * @source  torch.cat */
TUTTI_API tutti_tensor *tutti_tensor_cat(tutti_tensor *const *xs, int n, int dim);

/** Views of x of size elements each along dim, the last one smaller if need be.
 * @param n          how many that makes
 * @param parts_out  n tensors; all NULL after a failure, which is also kept
 * @errors  TUTTI_E_ARG  no such dimension, size below 1, another number of parts than n
 * @threads any
 * @source  torch.split */
TUTTI_API tutti_status tutti_tensor_split(tutti_tensor *x, int64_t size, int dim, int n,
                                          tutti_tensor **parts_out);

/** n equal parts of x along dim, as views.
 * @param parts_out  as of tutti_tensor_split()
 * @errors  TUTTI_E_ARG  no such dimension, or n equal parts are not possible
 * @threads any
 * @source  torch.chunk */
TUTTI_API tutti_status tutti_tensor_chunk(tutti_tensor *x, int n, int dim,
                                          tutti_tensor **parts_out);

/** The elements of x at the numbers in index along dim, copied. What is taken more than once gets the
 * sum of the gradients, added up in the order of index.
 * @param index  a vector of i64, each 0 .. n-1
 * @errors  also TUTTI_E_ARG  an index is not there; the text says which and where
 * @shapes  [.., n, ..], [k] -> [.., k, ..]
 * @threads any
 * @source  torch.index_select */
TUTTI_API tutti_tensor *tutti_tensor_index_select(tutti_tensor *x, int dim,
                                                  const tutti_tensor *index);

/** One element for each number in index: y[i][j] = x[index[i][j]][j] for dim 0, and so on.
 * @param index  i64, as many dimensions as x, no larger but along dim
 * @errors  as tutti_tensor_index_select()
 * @threads any
 * @source  torch.gather */
TUTTI_API tutti_tensor *tutti_tensor_index_gather(tutti_tensor *x, int dim,
                                                  const tutti_tensor *index);

/** Matrices with zeros above the diagonal that lies `diagonal` columns to the right of the main one.
 * @shapes  [.., M, N] -> the same
 * @threads any
 * @source  torch.tril */
TUTTI_API tutti_tensor *tutti_tensor_tril(tutti_tensor *x, int64_t diagonal);

/** Matrices with zeros below that diagonal. @threads any @source torch.triu */
TUTTI_API tutti_tensor *tutti_tensor_triu(tutti_tensor *x, int64_t diagonal);

/* ---- matrix products, through CBLAS ----------------------------------------------------------- */

/** Matrix product of two matrices.
 * @shapes  [M, K] x [K, N] -> [M, N]
 * @errors  also TUTTI_E_UNSUPPORTED  not both of one real type
 * @threads any; inside as many as the CBLAS takes (OMP_NUM_THREADS)
 * @source  torch.mm */
TUTTI_API tutti_tensor *tutti_tensor_mm(tutti_tensor *a, tutti_tensor *b);

/** Matrix products one by one.
 * @shapes  [B, M, K] x [B, K, N] -> [B, M, N]
 * @errors  as tutti_tensor_mm()
 * @threads as tutti_tensor_mm()
 * @source  torch.bmm */
TUTTI_API tutti_tensor *tutti_tensor_bmm(tutti_tensor *a, tutti_tensor *b);

/** Product of vectors, matrices, and many matrices at a time: dimensions before the last two broadcast.
 * @shapes  [.., M, K] x [.., K, N] -> [.., M, N]; [K] x [.., K, N] -> [.., N];
 *          [.., M, K] x [K] -> [.., M]; [K] x [K] -> []
 * @errors  as tutti_tensor_mm()
 * @cost    transposed views are not copied; many matrices times one are one product
 * @threads as tutti_tensor_mm()
 * @source  torch.matmul */
TUTTI_API tutti_tensor *tutti_tensor_matmul(tutti_tensor *a, tutti_tensor *b);

/* ---- in place, never recorded ----------------------------------------------------------------- */

/** All elements zero. Errors and threads of all operations in place are these:
 * @errors  TUTTI_E_STATE  recording is on, and the target or a source requires gradients
 *          TUTTI_E_ARG    the source does not broadcast to the target, the target repeats elements
 *                         (an expanded view), or the result would lose its fraction
 *          A failure is also kept, as for expressions.
 * @threads one at a time per memory
 * @source  Tensor.zero_ */
TUTTI_API tutti_status tutti_tensor_zero_(tutti_tensor *t);

/** All elements value. @errors as tutti_tensor_zero_() @source Tensor.fill_ */
TUTTI_API tutti_status tutti_tensor_fill_(tutti_tensor *t, double value);

/** Elements of src, broadcast and converted. @errors as tutti_tensor_zero_() @source Tensor.copy_ */
TUTTI_API tutti_status tutti_tensor_copy_(tutti_tensor *t, tutti_tensor *src);

/** t += alpha * b. @errors as tutti_tensor_zero_() @source Tensor.add_ */
TUTTI_API tutti_status tutti_tensor_add_(tutti_tensor *t, tutti_tensor *b, double alpha);

/** t *= b. @errors as tutti_tensor_zero_() @source Tensor.mul_ */
TUTTI_API tutti_status tutti_tensor_mul_(tutti_tensor *t, tutti_tensor *b);

/** t /= b. @errors as tutti_tensor_zero_() @source Tensor.div_ */
TUTTI_API tutti_status tutti_tensor_div_(tutti_tensor *t, tutti_tensor *b);

/** t *= c. @errors as tutti_tensor_zero_() @source Tensor.mul_ */
TUTTI_API tutti_status tutti_tensor_mul_scalar_(tutti_tensor *t, double c);

/** t /= c. @errors as tutti_tensor_zero_() @source Tensor.div_ */
TUTTI_API tutti_status tutti_tensor_div_scalar_(tutti_tensor *t, double c);

/** Uniform numbers over [low, high). @errors as tutti_tensor_zero_() @source Tensor.uniform_ */
TUTTI_API tutti_status tutti_tensor_uniform_(tutti_tensor *t, double low, double high,
                                             tutti_generator *gen);

/** Normal numbers. @errors as tutti_tensor_zero_() @source Tensor.normal_ */
TUTTI_API tutti_status tutti_tensor_normal_(tutti_tensor *t, double mean, double std,
                                            tutti_generator *gen);

/** One with probability p, else zero: a draw of 64 bits each, compared as f64.
 * @errors as tutti_tensor_zero_(), and TUTTI_E_ARG for p outside of 0..1 @source Tensor.bernoulli_ */
TUTTI_API tutti_status tutti_tensor_bernoulli_(tutti_tensor *t, double p, tutti_generator *gen);

#ifdef __cplusplus
}
#endif
#endif

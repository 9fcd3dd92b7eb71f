/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/comm.h - collectives on tensors: out of place with gradients, and in place on any strides.
 *
 * Out of place, a collective is an expression (tutti/tensor.h): it returns a new tensor, NULL after a
 * failure that is kept, and leaves its input as it was. What holds for all of them:
 * - They return at once. The result can be viewed, passed on and hung into a graph while the data is
 *   under way; whatever looks at its elements, in arithmetic, by tutti_tensor_data() or _item(), waits
 *   until they are there. Dropping the last reference waits, too. tutti_wait_tensor() waits in so many
 *   words. An operation that fails is a kept failure of the thread that looks, every time it looks, and
 *   the elements are then anything; backward, step and tutti_tensor_check() tell.
 * - The input is copied, with any strides, and may change as soon as the call returns.
 * - Gradients: the loss of a job is the sum of all ranks' losses, and backward gives each rank that sum's
 *   gradient. Backward through a collective is a collective: every rank has to run backward through the
 *   same ones, in the same order, or the others wait until their time is up. So every rank's loss must
 *   depend on the results, also where they are zeros. The group must live until then.
 * - A rank whose arguments are refused, or NULL, issues nothing, and the others' time-out names it. Ranks compare counts and
 *   types, not shapes: elements of a tensor that has another shape and as many of them are taken row by row.
 * - group is as in tutti/group.h, NULL the world. Of a mesh: tutti_device_mesh_get_group(); by name:
 *   tutti_find_group(). A rank that is no member is refused.
 * - Element types and ops are those that both tensors and tutti/dtype.h have. Peers are global ranks.
 *
 * The forms that end in "_" work in place and return a status, which is also kept; they are tutti/group.h's
 * calls on tensors of any strides, wait until they are done, and are never recorded: with recording on,
 * a tensor that requires gradients is refused (TUTTI_E_STATE). One that is not contiguous is packed and
 * unpacked, at the price of two copies; contiguous or not may differ between ranks. */
#ifndef TUTTI_COMM_H
#define TUTTI_COMM_H

#include <tutti/group.h>
#include <tutti/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Wait until the elements of t are there. A tensor that no collective is under way for is there.
 * @errors  what the operation failed with, each time; it is also kept. t is NULL: the kept failure
 * @threads any, several at once
 * @source  torch.distributed._functional_collectives.wait_tensor */
TUTTI_API tutti_status tutti_wait_tensor(tutti_tensor *t);

/* ---- out of place, with gradients ------------------------------------------------------------- */

/** The sum (or what op says) of all ranks' x, on every rank.
 * @shapes  x -> the same
 * @errors  as tutti_all_reduce(); TUTTI_E_UNSUPPORTED where x requires gradients and op is not SUM, AVG or
 *          PREMUL_SUM, the only ones that a gradient goes back through
 * @numbers as tutti_all_reduce(). Backward: the gradients' sum, times what op multiplies with
 * @threads any; the order on one group is that of the calls
 * @source  torch.distributed._functional_collectives.all_reduce, torch.distributed.nn.functional.all_reduce */
TUTTI_API tutti_tensor *tutti_tensor_all_reduce(tutti_tensor *x, tutti_op op, tutti_group *group);

/** The x of rank src, on every rank. Backward: the gradients' sum on src, zeros elsewhere.
 * @param x    elsewhere only its shape and type count
 * @shapes  x -> the same
 * @threads any
 * @source  torch.distributed._functional_collectives.broadcast, torch.distributed.nn.functional.broadcast */
TUTTI_API tutti_tensor *tutti_tensor_broadcast(tutti_tensor *x, int src, tutti_group *group);

/** The sum (or what op says) of all ranks' x on dst; zeros elsewhere. Backward: dst's gradient, times what op
 * multiplies with, on every rank.
 * @shapes  x -> the same
 * @errors  as tutti_tensor_all_reduce()
 * @threads any
 * @source  torch.distributed.nn.functional.reduce */
TUTTI_API tutti_tensor *tutti_tensor_reduce(tutti_tensor *x, int dst, tutti_op op, tutti_group *group);

/** All ranks' x, one after the other along a dimension. Backward: each rank gets the sum of the gradients of
 * its part.
 * @param gather_dim  counted from the end if negative
 * @shapes  [.., n, ..] -> [.., P * n, ..]; a scalar tensor counts as [1]
 * @threads any
 * @cost    along another dimension than the outermost one: one more copy, when the data has come
 * @source  torch.distributed._functional_collectives.all_gather_tensor, all_gather_tensor_autograd,
 *          torch.distributed.nn.functional._all_gather_base */
TUTTI_API tutti_tensor *tutti_tensor_all_gather_tensor(tutti_tensor *x, int gather_dim,
                                                       tutti_group *group);

/** All ranks' x along a new outermost dimension: tutti_tensor_select(y, 0, r) is rank r's.
 * @shapes  [..] -> [P, ..]
 * @threads any
 * @source  torch.distributed.nn.functional.all_gather (which gives a tuple) */
TUTTI_API tutti_tensor *tutti_tensor_all_gather(tutti_tensor *x, tutti_group *group);

/** This rank's part of the sum (or what op says) of all ranks' x, cut along a dimension. Backward: the gradients
 * of all parts, joined, times what op multiplies with.
 * @param scatter_dim  P divides its size
 * @shapes  [.., P * n, ..] -> [.., n, ..]
 * @errors  as tutti_tensor_all_reduce(); TUTTI_E_ARG also where P does not divide
 * @threads any
 * @source  torch.distributed._functional_collectives.reduce_scatter_tensor, reduce_scatter_tensor_autograd */
TUTTI_API tutti_tensor *tutti_tensor_reduce_scatter_tensor(tutti_tensor *x, tutti_op op,
                                                           int scatter_dim, tutti_group *group);

/** The same of parts along the outermost dimension, which goes.
 * @shapes  [P, ..] -> [..]
 * @errors  as tutti_tensor_reduce_scatter_tensor()
 * @threads any
 * @source  torch.distributed.nn.functional.reduce_scatter (whose input is a list) */
TUTTI_API tutti_tensor *tutti_tensor_reduce_scatter(tutti_tensor *x, tutti_op op,
                                                    tutti_group *group);

/** All ranks' x on dst, zeros elsewhere. Backward: each rank gets its part of dst's gradient.
 * @shapes  [..] -> [P, ..]
 * @threads any
 * @source  torch.distributed.nn.functional.gather (which gives a tuple) */
TUTTI_API tutti_tensor *tutti_tensor_gather(tutti_tensor *x, int dst, tutti_group *group);

/** Each rank its own of src's x. Backward: all gradients on src, zeros elsewhere.
 * @param x  elsewhere only its shape and type count
 * @shapes  [P, ..] -> [..]
 * @threads any
 * @source  torch.distributed.nn.functional.scatter (whose input is a list) */
TUTTI_API tutti_tensor *tutti_tensor_scatter(tutti_tensor *x, int src, tutti_group *group);

/** Hand each rank its rows of every rank's x. Backward: the gradients go back where the rows came from.
 * @param out_splits  [P] rows that come from each rank
 * @param in_splits   [P] rows that go to each rank; either both are given or, for equal ones, both NULL.
 *                    The arrays may go when the call returns
 * @shapes  [sum of in_splits, ..] -> [sum of out_splits, ..]
 * @units   rows of dimension 0
 * @errors  TUTTI_E_ARG       one list only, splits that are negative or do not add up
 *          TUTTI_E_MISMATCH  as tutti_all_to_all_single()
 * @threads any
 * @source  torch.distributed._functional_collectives.all_to_all_single, all_to_all_single_autograd,
 *          torch.distributed.nn.functional.all_to_all_single */
TUTTI_API tutti_tensor *tutti_tensor_all_to_all_single(tutti_tensor *x, const int64_t *out_splits,
                                                       const int64_t *in_splits,
                                                       tutti_group *group);

/** The x of the rank that has this one as destination. Backward: the way back.
 * @param destinations  [P] group ranks, each once; the same on all ranks. Rank i's x goes to destinations[i]
 * @shapes  x -> the same; on all ranks
 * @threads any
 * @source  torch.distributed._functional_collectives.permute_tensor */
TUTTI_API tutti_tensor *tutti_tensor_permute_tensor(tutti_tensor *x, const int *destinations,
                                                    tutti_group *group);

/* ---- lists, out of place, without gradients --------------------------------------------------- */

/** tutti_tensor_all_reduce() of n tensors in one operation (tutti/coalesce.h). Returns at once, as all above;
 * who looks at one result waits for all.
 * @param xs      of one type; with recording on none may require gradients
 * @param ys_out  [n] owned as results of expressions are; all NULL on failure, which is also kept
 * @errors  TUTTI_E_STATE  an input requires gradients; else as tutti_all_reduce_coalesced()
 * @threads any
 * @source  torch.distributed._functional_collectives.all_reduce_coalesced */
TUTTI_API tutti_status tutti_tensor_all_reduce_coalesced(tutti_tensor *const *xs, int n, tutti_op op,
                                                         tutti_group *group, tutti_tensor **ys_out);

/** tutti_tensor_all_gather_tensor() along dimension 0 of n tensors in one operation.
 * @errors  as tutti_tensor_all_reduce_coalesced()
 * @threads any
 * @source  torch.distributed._functional_collectives.all_gather_into_tensor_coalesced */
TUTTI_API tutti_status tutti_tensor_all_gather_into_tensor_coalesced(tutti_tensor *const *xs, int n,
                                                                     tutti_group *group,
                                                                     tutti_tensor **ys_out);

/** tutti_tensor_reduce_scatter_tensor() of n tensors in one operation. The list of inputs stays as it is.
 * @param scatter_dims  [n], one for each; NULL: dimension 0 of all
 * @errors  as tutti_tensor_all_reduce_coalesced()
 * @threads any
 * @source  torch.distributed._functional_collectives.reduce_scatter_tensor_coalesced (which replaces entries of
 *          the list of inputs) */
TUTTI_API tutti_status tutti_tensor_reduce_scatter_tensor_coalesced(
    tutti_tensor *const *xs, int n, tutti_op op, const int *scatter_dims, tutti_group *group,
    tutti_tensor **ys_out);

/* ---- in place, on any strides, never recorded -------------------------------------------------- */

/** tutti_all_reduce() of a tensor. Errors of all of these, besides those of the call they are named after:
 * @errors  TUTTI_E_STATE  with recording on, a tensor requires gradients
 *          TUTTI_E_ARG    an output repeats elements (an expanded view)
 * @threads any
 * @source  torch.distributed.all_reduce */
TUTTI_API tutti_status tutti_tensor_all_reduce_(tutti_tensor *t, tutti_op op, tutti_group *group);

/** tutti_broadcast() of a tensor. @threads any @source torch.distributed.broadcast */
TUTTI_API tutti_status tutti_tensor_broadcast_(tutti_tensor *t, int src, tutti_group *group);

/** tutti_reduce() of a tensor. @threads any @source torch.distributed.reduce */
TUTTI_API tutti_status tutti_tensor_reduce_(tutti_tensor *t, int dst, tutti_op op, tutti_group *group);

/** tutti_all_gather() into a list of tensors. @threads any @source torch.distributed.all_gather */
TUTTI_API tutti_status tutti_tensor_all_gather_(tutti_tensor *const *outs, int n_outs, tutti_tensor *in,
                                                tutti_group *group);

/** tutti_all_gather_into_tensor() of tensors.
 * @shapes  any in -> an out of P times as many elements, row by row: [P, ..], as well as [P * n, ..] of [n, ..]
 * @threads any
 * @source  torch.distributed.all_gather_into_tensor */
TUTTI_API tutti_status tutti_tensor_all_gather_into_tensor_(tutti_tensor *out, tutti_tensor *in,
                                                            tutti_group *group);

/** tutti_gather() into a list of tensors. @threads any @source torch.distributed.gather */
TUTTI_API tutti_status tutti_tensor_gather_(tutti_tensor *const *outs, int n_outs, tutti_tensor *in,
                                            int dst, tutti_group *group);

/** tutti_scatter() of a list of tensors. @threads any @source torch.distributed.scatter */
TUTTI_API tutti_status tutti_tensor_scatter_(tutti_tensor *out, tutti_tensor *const *ins, int n_ins,
                                             int src, tutti_group *group);

/** tutti_reduce_scatter() of a list of tensors. @threads any @source torch.distributed.reduce_scatter */
TUTTI_API tutti_status tutti_tensor_reduce_scatter_(tutti_tensor *out, tutti_tensor *const *ins,
                                                    int n_ins, tutti_op op, tutti_group *group);

/** tutti_reduce_scatter_tensor() of tensors.
 * @shapes  an in of P times as many elements as out, row by row: [P, ..], as well as [P * n, ..] for [n, ..]
 * @threads any
 * @source  torch.distributed.reduce_scatter_tensor */
TUTTI_API tutti_status tutti_tensor_reduce_scatter_tensor_(tutti_tensor *out, tutti_tensor *in,
                                                           tutti_op op, tutti_group *group);

/** tutti_all_to_all() of lists of tensors. @threads any @source torch.distributed.all_to_all */
TUTTI_API tutti_status tutti_tensor_all_to_all_(tutti_tensor *const *outs, int n_outs,
                                                tutti_tensor *const *ins, int n_ins,
                                                tutti_group *group);

/** tutti_all_to_all_single() of tensors.
 * @param out_splits  [P] rows, NULL: equal ones; and in_splits: either may be given without the other
 * @units   rows of dimension 0
 * @threads any
 * @source  torch.distributed.all_to_all_single */
TUTTI_API tutti_status tutti_tensor_all_to_all_single_(tutti_tensor *out, tutti_tensor *in,
                                                       const int64_t *out_splits,
                                                       const int64_t *in_splits,
                                                       tutti_group *group);

/** tutti_send() of a tensor. @threads any @source torch.distributed.send */
TUTTI_API tutti_status tutti_tensor_send(tutti_tensor *t, int dst, int tag, tutti_group *group);

/** tutti_recv() into a tensor; strides may differ from the sender's. @threads any @source torch.distributed.recv */
TUTTI_API tutti_status tutti_tensor_recv_(tutti_tensor *t, int src, int tag, tutti_group *group,
                                          int *src_out);

#ifdef __cplusplus
}
#endif
#endif

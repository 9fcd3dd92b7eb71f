/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/coalesce.h - several buffers in one collective: as lists, or by recording calls in a scope.
 *
 * Either way all buffers are one operation of the group: one number, one agreement, one pattern of messages
 * and synchronisations, whose time depends on the bytes and hardly on how many buffers they are in. Small
 * buffers travel together, large ones from where they lie. All are of one dtype and one op, and every rank
 * has the same sizes in the same order: TUTTI_E_MISMATCH else. Results have the same bits as one call for each
 * buffer gives. Entries do not overlap each other, which is not checked; an entry's own in and out may, as its
 * single form allows. At most TUTTI_COALESCED_MAX entries. What tutti/group.h says at its top holds here. */
#ifndef TUTTI_COALESCE_H
#define TUTTI_COALESCE_H

#include <tutti/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Buffers that one operation can have. */
#define TUTTI_COALESCED_MAX 65536

/** tutti_all_reduce of several buffers at once.
 *
 * @param bufs    each as in tutti_all_reduce; the array may go when the call returns, also the asynchronous one
 * @param n_bufs  1 or more
 *
 * @shapes   n spans [count_i] -> the same
 * @errors   TUTTI_E_ARG  no bufs, too many, dtypes that differ, or what tutti_all_reduce refuses; the text
 *                        tells which entry, nothing was sent
 * @threads  any; a second caller on the same group waits for the first
 * @numbers  the same bits as tutti_all_reduce of each
 * @cost     one host: as tutti_all_reduce of all elements in one buffer; several hosts: buffers of up to 64 KiB
 *           share messages, at the price of two copies
 * @source   torch.distributed.all_reduce_coalesced */
TUTTI_API tutti_status tutti_all_reduce_coalesced(const tutti_span *bufs, int n_bufs, tutti_op op,
                                                  tutti_group *group);
/** tutti_all_reduce_coalesced, not waited for.
 * @source torch.distributed.all_reduce_coalesced(async_op=True) */
TUTTI_API tutti_status tutti_all_reduce_coalesced_async(const tutti_span *bufs, int n_bufs, tutti_op op,
                                                        tutti_group *group, tutti_work **work_out);

/** tutti_all_gather of several buffers at once.
 *
 * @param outs    outs[i][j] receives rank i's ins[j]: for each member, in group order, a list as long as ins.
 *                The arrays may go when the call returns, also the asynchronous one
 * @param n_outs  members of the group
 * @param ins     sizes may differ from entry to entry, not from rank to rank
 * @param n_ins   1 or more
 *
 * @shapes   n spans [count_j] -> P lists of n spans [count_j]
 * @errors   TUTTI_E_ARG  n_outs is not the group's size, a list is NULL, n_ins is below 1 or too many, dtypes
 *                        that differ, or what tutti_all_gather refuses; the text tells which entry
 * @threads  any; a second caller on the same group waits for the first
 * @source   torch.distributed.all_gather_coalesced */
TUTTI_API tutti_status tutti_all_gather_coalesced(const tutti_span *const *outs, int n_outs,
                                                  const tutti_span *ins, int n_ins, tutti_group *group);
/** tutti_all_gather_coalesced, not waited for.
 * @source torch.distributed.all_gather_coalesced(async_op=True) */
TUTTI_API tutti_status tutti_all_gather_coalesced_async(const tutti_span *const *outs, int n_outs,
                                                        const tutti_span *ins, int n_ins, tutti_group *group,
                                                        tutti_work **work_out);

/** tutti_all_gather_into_tensor of several pairs of buffers at once: outs[i] from ins[i].
 *
 * @param n  entries of each array, 1 or more; the arrays may go when the call returns, also the asynchronous one
 *
 * @shapes   n spans [count_i] -> n spans [P * count_i]
 * @errors   TUTTI_E_ARG  n is below 1 or too many, dtypes that differ, or what tutti_all_gather_into_tensor
 *                        refuses; the text tells which entry
 * @threads  any; a second caller on the same group waits for the first
 * @source   torch.distributed.ProcessGroup.allgather_into_tensor_coalesced */
TUTTI_API tutti_status tutti_all_gather_into_tensor_coalesced(const tutti_span *outs, const tutti_span *ins, int n,
                                                              tutti_group *group);
/** tutti_all_gather_into_tensor_coalesced, not waited for.
 * @source torch.distributed.ProcessGroup.allgather_into_tensor_coalesced */
TUTTI_API tutti_status tutti_all_gather_into_tensor_coalesced_async(const tutti_span *outs,
                                                                    const tutti_span *ins, int n,
                                                                    tutti_group *group, tutti_work **work_out);

/** tutti_reduce_scatter_tensor of several pairs of buffers at once: outs[i] from ins[i].
 *
 * @param n  entries of each array, 1 or more; the arrays may go when the call returns, also the asynchronous one
 *
 * @shapes   n spans [P * count_i] -> n spans [count_i]
 * @errors   TUTTI_E_ARG  n is below 1 or too many, dtypes that differ, or what tutti_reduce_scatter_tensor
 *                        refuses; the text tells which entry
 * @threads  any; a second caller on the same group waits for the first
 * @numbers  the same bits as tutti_reduce_scatter_tensor of each
 * @source   torch.distributed.ProcessGroup.reduce_scatter_tensor_coalesced */
TUTTI_API tutti_status tutti_reduce_scatter_tensor_coalesced(const tutti_span *outs, const tutti_span *ins, int n,
                                                             tutti_op op, tutti_group *group);
/** tutti_reduce_scatter_tensor_coalesced, not waited for.
 * @source torch.distributed.ProcessGroup.reduce_scatter_tensor_coalesced */
TUTTI_API tutti_status tutti_reduce_scatter_tensor_coalesced_async(const tutti_span *outs, const tutti_span *ins,
                                                                   int n, tutti_op op, tutti_group *group,
                                                                   tutti_work **work_out);

/** Begin to record: until tutti_coalescing_end(), this thread's tutti_all_reduce, tutti_all_gather_into_tensor
 * and tutti_reduce_scatter_tensor on group, blocking or not, are checked and remembered instead of run, and
 * their spans are borrowed. All other calls, and calls of other threads, run at once.
 *
 * A recorded _async call gives a work that is complete when the scope's operation is; until the scope has ended
 * waiting for it is TUTTI_E_STATE. A recorded blocking call returns at once.
 *
 * @errors   TUTTI_E_STATE  a scope is open on this group, here or on another thread
 * @threads  a scope belongs to the thread that began it, which has to end it; one per group at a time.
 *           Destroying the group ends it, too: its works fail with TUTTI_E_ABORTED
 * @source   torch.distributed._coalescing_manager (which allows to begin again while nothing is recorded) */
TUTTI_API tutti_status tutti_coalescing_begin(tutti_group *group);

/** End the scope, and do all that was recorded as one operation. The scope is over whatever this returns.
 *
 * @param work_out  NULL: waits until the operation is complete. Else it is queued, and *work_out is its work,
 *                  a new reference; complete already if nothing was recorded
 *
 * @errors   TUTTI_E_ARG    the calls were of different kinds, ops or dtypes; nothing was run, and the recorded
 *                          works fail with this
 *           TUTTI_E_STATE  this thread has no scope open on group
 *           else as the operation's
 * @threads  the one that began the scope
 * @source   torch.distributed._coalescing_manager (which takes the first call's op for all) */
TUTTI_API tutti_status tutti_coalescing_end(tutti_group *group, tutti_work **work_out);

#ifdef __cplusplus
}
#endif
#endif

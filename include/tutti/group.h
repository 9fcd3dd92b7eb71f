/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/group.h - process groups: who is in them, collectives, point-to-point, works.
 *
 * What holds for all of them, so that no doc block repeats it:
 * - group NULL is the calling thread's world, else the process's (tutti/init.h). TUTTI_NON_MEMBER makes a
 *   call warn, once for each kind of call, and return TUTTI_OK with no buffer touched (work_out is then a work
 *   that is complete, src_out -1); TUTTI_NO_GROUP makes it fail with TUTTI_E_STATE.
 * - Every member issues a group's collectives in the same order, with arguments that agree. Ranks that
 *   disagree get TUTTI_E_MISMATCH within a second, all of them, with both calls in the text: in the call where a rank
 *   waits for another, in a later one where it does not (tutti/debug.h says what is compared when).
 * - A collective or message that is refused for its arguments (TUTTI_E_ARG) has not begun: it takes no number, and nobody is
 *   told. The others wait for this rank's next call, and find there whether it is the one that they have issued. Functions here
 *   that make groups do tell, as their doc blocks say.
 * - Peers and roots are global ranks, as in torch; calls that end in _in_group take ranks of the group.
 * - A group's collectives end in the order in which they were issued, asynchronous ones too.
 * - A blocking call is done by the calling thread. X_async borrows its spans until the work completes: do
 *   not read, write or free them before. Its work_out is a new reference; tutti_work_free() drops it and
 *   cancels nothing.
 * - Every wait ends by the group's time-out (TUTTI_E_TIMEOUT, naming who has not arrived), and at once
 *   when a rank it needs is gone (TUTTI_E_PEER, naming it). After either, and after TUTTI_E_MISMATCH, the
 *   contents of the output spans are undefined and the group fails every later call: destroy it.
 * - A member that enters a call which has failed on another fails in it, with that member's words: late
 *   comers do not find an old result. Only a member that has all it needs before it hears of the failure
 *   ends the call well, and fails in the next one.
 * - Spans are host memory, or memory of a device that the group has a backend for (tutti/backends.h); the order of what
 *   a device does is told in tutti/stream.h. Zero elements are legal, in their turn.
 * - In a child of fork() groups and works from before it are refused with TUTTI_E_STATE (tutti/init.h). */
#ifndef TUTTI_GROUP_H
#define TUTTI_GROUP_H

#include <tutti/dtype.h>
#include <tutti/init.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_work tutti_work;

/** What tutti_new_group gives to ranks that are not in the group. */
#define TUTTI_NON_MEMBER ((tutti_group *)(intptr_t)-100)
/** What a group variable holds after a failed tutti_new_group: every call refuses it. */
#define TUTTI_NO_GROUP ((tutti_group *)(intptr_t)-101)
/** recv from whoever sends first. */
#define TUTTI_ANY_SOURCE (-1)

/** Options of tutti_new_group. Initialise with TUTTI_GROUP_OPTIONS; zero fields mean the default. */
typedef struct tutti_group_options {
    size_t      size;
    int64_t     timeout_ms; /* 0: as the world */
    const char *desc;       /* a name for people, copied; NULL: none */
    bool        use_local_synchronization; /* tutti_new_group: only the members call */
    bool        enable_timing; /* its works take times: tutti_work_duration() */
    const char *backend;       /* "cpu:native,cuda:nccl" (tutti/backends.h); NULL: as the world */
} tutti_group_options;

#define TUTTI_GROUP_OPTIONS                                                                            \
    {                                                                                                  \
        sizeof(tutti_group_options), 0, 0, 0, 0, 0                                                     \
    }

/** Make a group of some ranks of the world. Every rank of the world calls it, members or not, in the same order; ranks are sorted,
 * the order given does not matter. Returns when all members have come; on a member that serves the store, as rank 0 does without a
 * launcher, when all that have come have the group, which is 5 s later at most, and 200 ms where a plug-in makes it. A group of one rank waits for nobody: if another was given more ranks and comes later, that
 * one gets TUTTI_E_MISMATCH, and the first collective in the group of one after it. A call that fails counts as one: what is called
 * next meets the others' next call.
 *
 * With use_local_synchronization only the members call, and nobody waits: the first collective meets the
 * others, and reports who has not come, and which members the group has on this rank: with another list a rank makes another
 * group, and does not come to this one; messages may go at once. Members make the groups that the same
 * ranks share in one order; groups that overlap may be made in any. A rank that is no member may call, and
 * gets TUTTI_NON_MEMBER.
 *
 * @param ranks      global ranks; NULL with n_ranks 0: all
 * @param opts       NULL: every default
 * @param group_out  the group, or TUTTI_NON_MEMBER when this rank is not in it; TUTTI_NO_GROUP on failure
 *
 * @errors   TUTTI_E_ARG      a rank out of range or twice, or an empty list
 *           TUTTI_E_STATE    there is no world
 *           TUTTI_E_MISMATCH a member was given another list of ranks or names another backend, makes another group now, has refused its arguments
 *                            (both only if all ranks call), or waits in a call, or a receive, for this rank
 *           TUTTI_E_REMOTE   a member has not the memory for it, or cannot load its backend
 *           TUTTI_E_TIMEOUT  a member did not come; the text names it
 *           TUTTI_E_PEER     a member is gone, and had not come, or gave up before all had
 *           what the world has failed with meanwhile, unless only the members call: who is told so elsewhere does not come.
 *                            A call of this rank that was told of it before is another thing: those that are left may make groups
 * @threads  one at a time per world
 * @cost     local: two requests to the store more than otherwise
 * @source   torch.distributed.new_group */
TUTTI_API tutti_status tutti_new_group(const int *ranks, int n_ranks, const tutti_group_options *opts,
                                       tutti_group **group_out);

/** This process's rank in group, -1 for a non-member or without a world.
 * @threads any
 * @source torch.distributed.get_rank */
TUTTI_API int tutti_get_rank(const tutti_group *group);

/** Members of group, -1 for a non-member or without a world.
 * @threads any
 * @source torch.distributed.get_world_size */
TUTTI_API int tutti_get_world_size(const tutti_group *group);

/** The global rank of a group rank, -1 if there is none.
 * @threads any
 * @source torch.distributed.get_global_rank */
TUTTI_API int tutti_get_global_rank(const tutti_group *group, int group_rank);

/** The group rank of a global rank, -1 if it is no member.
 * @threads any
 * @source torch.distributed.get_group_rank */
TUTTI_API int tutti_get_group_rank(const tutti_group *group, int global_rank);

/** Combine buf across the group, in place; every rank ends with the same bits.
 *
 * @param buf    read and overwritten; count and dtype equal on all ranks
 * @param op     TUTTI_SUM, TUTTI_MAX, ... or tutti_premul_sum(x); the table stands in tutti/dtype.h
 *
 * @shapes   [count] -> [count]
 * @errors   TUTTI_E_ARG  data is NULL and count > 0, or op is not defined for the dtype
 * @threads  any; a second caller on the same group waits for the first
 * @numbers  summed in rank order, on several hosts with several ranks on one inside each host first, and then host by host in
 *           the order of their lowest ranks, f16, bf16 and f8 being rounded once in each; more than 16 hosts, or ranks of
 *           several hosts with one each, along a tree, of which those types round each level; same bits on all ranks, and in
 *           every run with the same layout; in rank order whatever the layout with TUTTI_REPRODUCIBLE=1 (tutti/tune.h)
 * @cost     one host: one exchange of cache lines up to some KiB; beyond, each rank reads 3 and writes 2 times the bytes,
 *           two synchronisations per 128 KiB at most, and on registered memory once each (tutti/memory.h);
 *           several hosts: two ranks swap all; small ones in one or log2 P steps; beyond, 2(P-1)/P of the bytes sent per
 *           rank; with several ranks on each, 2(H-1)/H of them per host, or
 *           all of them between two, in pieces of up to 1 MiB of which three are under way
 * @source   torch.distributed.all_reduce */
TUTTI_API tutti_status tutti_all_reduce(tutti_span buf, tutti_op op, tutti_group *group);
/** tutti_all_reduce, not waited for.
 * @source torch.distributed.all_reduce(async_op=True) */
TUTTI_API tutti_status tutti_all_reduce_async(tutti_span buf, tutti_op op, tutti_group *group,
                                              tutti_work **work_out);

/** Copy src's buf to every rank.
 *
 * @param buf    read on src, overwritten elsewhere; count and dtype equal on all ranks
 * @param src    global rank
 *
 * @shapes   [count] -> [count]
 * @errors   TUTTI_E_ARG  data is NULL and count > 0, or src is no member
 * @threads  any; a second caller on the same group waits for the first
 * @cost     one host: every byte is copied twice; several hosts: small ones in one step or down a tree, large ones in slices
 *           that ranks hand each other, so that each sends and receives all bytes once
 * @source   torch.distributed.broadcast */
TUTTI_API tutti_status tutti_broadcast(tutti_span buf, int src, tutti_group *group);
/** tutti_broadcast, not waited for.
 * @source torch.distributed.broadcast(async_op=True) */
TUTTI_API tutti_status tutti_broadcast_async(tutti_span buf, int src, tutti_group *group,
                                             tutti_work **work_out);

/** Combine buf across the group into dst's buf. On other ranks buf is only read, and left as it was.
 *
 * @shapes   [count] -> [count] on dst
 * @errors   as tutti_all_reduce; TUTTI_E_ARG also when dst is no member
 * @threads  any; a second caller on the same group waits for the first
 * @numbers  the same bits as tutti_all_reduce
 * @source   torch.distributed.reduce (which leaves buf undefined on other ranks) */
TUTTI_API tutti_status tutti_reduce(tutti_span buf, int dst, tutti_op op, tutti_group *group);
/** tutti_reduce, not waited for.
 * @source torch.distributed.reduce(async_op=True) */
TUTTI_API tutti_status tutti_reduce_async(tutti_span buf, int dst, tutti_op op, tutti_group *group,
                                          tutti_work **work_out);

/** Collect every rank's in on every rank. Parts may have different sizes.
 *
 * @param outs    one span per rank, in group order: outs[i].count is rank i's in.count, any number, and the
 *                counts are the same on all ranks. outs[r], r being this rank, may be in itself. The array may
 *                go when the call returns, also the asynchronous one
 * @param n_outs  members of the group
 *
 * @shapes   [count_r] -> P spans of [count_0] ... [count_P-1]
 * @errors   TUTTI_E_ARG       n_outs is not the group's size, a span has another dtype than in or overlaps it,
 *                             or outs[r] has another count
 *           TUTTI_E_MISMATCH  ranks have different counts in their lists
 * @threads  any; a second caller on the same group waits for the first
 * @cost     one host: every byte is copied once where members may read each other's memory, else twice; several hosts: each
 *           part is sent P-1 times. Nothing is padded
 * @source   torch.distributed.all_gather */
TUTTI_API tutti_status tutti_all_gather(const tutti_span *outs, int n_outs, tutti_span in,
                                        tutti_group *group);
/** tutti_all_gather, not waited for.
 * @source torch.distributed.all_gather(async_op=True) */
TUTTI_API tutti_status tutti_all_gather_async(const tutti_span *outs, int n_outs, tutti_span in,
                                              tutti_group *group, tutti_work **work_out);

/** Collect every rank's in on every rank, one after the other in one span. in may be out's own part.
 *
 * @shapes   [count] -> [P * count]
 * @errors   TUTTI_E_ARG  out.count is not P times in.count, or the dtypes differ
 * @threads  any; a second caller on the same group waits for the first
 * @source   torch.distributed.all_gather_into_tensor */
TUTTI_API tutti_status tutti_all_gather_into_tensor(tutti_span out, tutti_span in, tutti_group *group);
/** tutti_all_gather_into_tensor, not waited for.
 * @source torch.distributed.all_gather_into_tensor(async_op=True) */
TUTTI_API tutti_status tutti_all_gather_into_tensor_async(tutti_span out, tutti_span in,
                                                          tutti_group *group, tutti_work **work_out);

/** tutti_all_gather into one span, parts of different sizes one after the other.
 *
 * @param out     room for all parts, without gaps; in may be its own part
 * @param counts  [P] elements of each rank's in, the same on all ranks; may go when the call returns, also the
 *                asynchronous one
 *
 * @shapes   [counts[r]] -> [sum of counts]
 * @errors   TUTTI_E_ARG       counts is NULL, one is negative, they do not add up to out's count, counts[r] is
 *                             not in's, the dtypes differ, or in overlaps out elsewhere
 *           TUTTI_E_MISMATCH  ranks have different counts
 * @threads  any; a second caller on the same group waits for the first
 * @source   ours */
TUTTI_API tutti_status tutti_all_gather_into_tensor_v(tutti_span out, tutti_span in, const int64_t *counts,
                                                      tutti_group *group);
/** tutti_all_gather_into_tensor_v, not waited for.
 * @source ours */
TUTTI_API tutti_status tutti_all_gather_into_tensor_v_async(tutti_span out, tutti_span in,
                                                            const int64_t *counts, tutti_group *group,
                                                            tutti_work **work_out);

/** Collect every rank's in on dst.
 *
 * @param outs    on dst one span per rank, each like in; elsewhere NULL with n_outs 0
 *
 * @shapes   [count] -> P spans of [count] on dst
 * @errors   TUTTI_E_ARG  outs missing or wrong on dst, or present elsewhere; dst is no member
 * @threads  any; a second caller on the same group waits for the first
 * @cost     P ranks: P-1 messages to dst. Of more than 9 ranks by messages, and more than 1 MiB in all, they go in turns: a rank
 *           that is not dst may then wait for dst, and for the ranks of turns before its own
 * @source   torch.distributed.gather */
TUTTI_API tutti_status tutti_gather(const tutti_span *outs, int n_outs, tutti_span in, int dst,
                                    tutti_group *group);
/** tutti_gather, not waited for.
 * @source torch.distributed.gather(async_op=True) */
TUTTI_API tutti_status tutti_gather_async(const tutti_span *outs, int n_outs, tutti_span in, int dst,
                                          tutti_group *group, tutti_work **work_out);

/** Hand each rank its own of src's ins.
 *
 * @param ins    on src one span per rank, each like out; elsewhere NULL with n_ins 0
 *
 * @shapes   P spans of [count] on src -> [count]
 * @errors   TUTTI_E_ARG  ins missing or wrong on src, or present elsewhere; src is no member
 * @threads  any; a second caller on the same group waits for the first
 * @source   torch.distributed.scatter */
TUTTI_API tutti_status tutti_scatter(tutti_span out, const tutti_span *ins, int n_ins, int src,
                                     tutti_group *group);
/** tutti_scatter, not waited for.
 * @source torch.distributed.scatter(async_op=True) */
TUTTI_API tutti_status tutti_scatter_async(tutti_span out, const tutti_span *ins, int n_ins, int src,
                                           tutti_group *group, tutti_work **work_out);

/** tutti_gather of parts of different sizes, which only dst and each part's rank have to know.
 *
 * @param outs    on dst one span per rank, outs[i].count being rank i's in.count; elsewhere NULL with n_outs 0
 *
 * @shapes   [count_r] -> P spans of [count_0] ... [count_P-1] on dst
 * @errors   TUTTI_E_ARG       as tutti_gather, but for the counts of others
 *           TUTTI_E_MISMATCH  a rank's count is not what dst expects; whoever of the two sees it first names
 *                             the rank and both counts. Found before data moves between them
 * @threads  any; a second caller on the same group waits for the first
 * @cost     one exchange of sizes more than tutti_gather
 * @source   ours */
TUTTI_API tutti_status tutti_gather_v(const tutti_span *outs, int n_outs, tutti_span in, int dst,
                                      tutti_group *group);
/** tutti_gather_v, not waited for.
 * @source ours */
TUTTI_API tutti_status tutti_gather_v_async(const tutti_span *outs, int n_outs, tutti_span in, int dst,
                                            tutti_group *group, tutti_work **work_out);

/** tutti_scatter of parts of different sizes, which only src and each part's rank have to know.
 *
 * @param ins    on src one span per rank, ins[i].count being rank i's out.count; elsewhere NULL with n_ins 0
 *
 * @shapes   P spans of [count_0] ... [count_P-1] on src -> [count_r]
 * @errors   as tutti_gather_v
 * @threads  any; a second caller on the same group waits for the first
 * @cost     one exchange of sizes more than tutti_scatter
 * @source   ours */
TUTTI_API tutti_status tutti_scatter_v(tutti_span out, const tutti_span *ins, int n_ins, int src,
                                       tutti_group *group);
/** tutti_scatter_v, not waited for.
 * @source ours */
TUTTI_API tutti_status tutti_scatter_v_async(tutti_span out, const tutti_span *ins, int n_ins, int src,
                                             tutti_group *group, tutti_work **work_out);

/** Combine every rank's ins, entry by entry, each on the rank that it is for: out is the combination of all
 * ranks' ins[r], r being this rank.
 *
 * @param out    count and dtype as ins[r]; may be ins[r] itself, and overlaps no other entry
 * @param ins    one span per rank, in group order, only read otherwise. Counts may differ from entry to
 *               entry, and are the same on all ranks; the array may go when the call returns, also the
 *               asynchronous one
 * @param n_ins  members of the group
 * @param op     as in tutti_all_reduce
 *
 * @shapes   P spans of [count_0] ... [count_P-1] -> [count_r]
 * @errors   TUTTI_E_ARG  n_ins is not the group's size, an entry has another dtype than out or overlaps it,
 *                        ins[r] has another count, or op is not defined for the dtype
 * @threads  any; a second caller on the same group waits for the first
 * @numbers  the same bits as tutti_all_reduce of ins[r] on every rank
 * @cost     one host: each rank reads and writes all of ins once, and on registered memory reads its part of each; several
 *           hosts: (P-1)/P of it sent per rank
 * @source   torch.distributed.reduce_scatter */
TUTTI_API tutti_status tutti_reduce_scatter(tutti_span out, const tutti_span *ins, int n_ins, tutti_op op,
                                            tutti_group *group);
/** tutti_reduce_scatter, not waited for.
 * @source torch.distributed.reduce_scatter(async_op=True) */
TUTTI_API tutti_status tutti_reduce_scatter_async(tutti_span out, const tutti_span *ins, int n_ins,
                                                  tutti_op op, tutti_group *group, tutti_work **work_out);

/** tutti_reduce_scatter of one span that has the parts of all ranks one after the other. out may be in's own
 * part.
 *
 * @shapes   [P * count] -> [count]
 * @errors   TUTTI_E_ARG  in.count is not P times out.count, the dtypes differ, out overlaps in elsewhere, or
 *                        op is not defined for the dtype
 * @threads  any; a second caller on the same group waits for the first
 * @numbers  the same bits as tutti_all_reduce of in
 * @source   torch.distributed.reduce_scatter_tensor */
TUTTI_API tutti_status tutti_reduce_scatter_tensor(tutti_span out, tutti_span in, tutti_op op,
                                                   tutti_group *group);
/** tutti_reduce_scatter_tensor, not waited for.
 * @source torch.distributed.reduce_scatter_tensor(async_op=True) */
TUTTI_API tutti_status tutti_reduce_scatter_tensor_async(tutti_span out, tutti_span in, tutti_op op,
                                                         tutti_group *group, tutti_work **work_out);

/** tutti_reduce_scatter of one span that has parts of different sizes one after the other.
 *
 * @param in      all parts, without gaps; out may be its own part
 * @param counts  [P] elements of each part, the same on all ranks; may go when the call returns, also the
 *                asynchronous one
 *
 * @shapes   [sum of counts] -> [counts[r]]
 * @errors   TUTTI_E_ARG       counts is NULL, one is negative, they do not add up to in's count, counts[r] is
 *                             not out's, the dtypes differ, out overlaps in elsewhere, or op is not defined for
 *                             the dtype
 *           TUTTI_E_MISMATCH  ranks have different counts
 * @threads  any; a second caller on the same group waits for the first
 * @numbers  the same bits as tutti_all_reduce of in
 * @source   ours */
TUTTI_API tutti_status tutti_reduce_scatter_tensor_v(tutti_span out, tutti_span in, const int64_t *counts,
                                                     tutti_op op, tutti_group *group);
/** tutti_reduce_scatter_tensor_v, not waited for.
 * @source ours */
TUTTI_API tutti_status tutti_reduce_scatter_tensor_v_async(tutti_span out, tutti_span in,
                                                           const int64_t *counts, tutti_op op,
                                                           tutti_group *group, tutti_work **work_out);

/** Hand each rank its entry of every rank's ins: outs[i] is what rank i has in its ins[r], r being this rank.
 *
 * @param outs    one span per rank, in group order. outs[i].count is rank i's ins[r].count, any number, 0
 *                included. The arrays may go when the call returns, also the asynchronous one
 * @param n_outs  members of the group
 * @param ins     one span per rank, only read; of outs' dtype. An entry of outs overlaps none of ins, but
 *                outs[r] may be ins[r] itself
 * @param n_ins   members of the group
 *
 * @shapes   P spans of any sizes -> P spans of the sizes that the others have for this rank
 * @errors   TUTTI_E_ARG       n_outs or n_ins is not the group's size, dtypes differ, outs[r] and ins[r] have
 *                             different counts, or an entry of outs overlaps one of ins
 *           TUTTI_E_MISMATCH  what one rank gives is not what the other expects; the text names both ranks
 *                             and both counts. Found before data moves between the two
 * @threads  any; a second caller on the same group waits for the first
 * @cost     one host: an exchange of sizes that small blocks go along with, larger ones are copied once where members may
 *           read each other's memory, else twice; several hosts: an exchange of sizes, and each block is sent once
 * @source   torch.distributed.all_to_all */
TUTTI_API tutti_status tutti_all_to_all(const tutti_span *outs, int n_outs, const tutti_span *ins, int n_ins,
                                        tutti_group *group);
/** tutti_all_to_all, not waited for.
 * @source torch.distributed.all_to_all(async_op=True) */
TUTTI_API tutti_status tutti_all_to_all_async(const tutti_span *outs, int n_outs, const tutti_span *ins,
                                              int n_ins, tutti_group *group, tutti_work **work_out);

/** tutti_all_to_all of two spans that are cut into one block per rank, in group order and without gaps.
 *
 * @param out_splits  elements of each of out's blocks, one per rank; NULL: equal blocks
 * @param in_splits   elements of each of in's blocks, one per rank; NULL: equal blocks. Either may be given
 *                    without the other; the arrays may go when the call returns, also the asynchronous one
 *
 * @shapes   [sum of in_splits] -> [sum of out_splits]
 * @units    splits count elements. A span is flat, so for rows of n elements a split is n times the rows
 * @errors   TUTTI_E_ARG       the dtypes differ; a split is negative; splits do not add up to the count; a
 *                             count that P does not divide without splits; the own blocks have different
 *                             counts; out overlaps in, other than by the own blocks exactly
 *           TUTTI_E_MISMATCH  as in tutti_all_to_all
 * @threads  any; a second caller on the same group waits for the first
 * @source   torch.distributed.all_to_all_single (whose splits count rows of dimension 0) */
TUTTI_API tutti_status tutti_all_to_all_single(tutti_span out, tutti_span in, const int64_t *out_splits,
                                               const int64_t *in_splits, tutti_group *group);
/** tutti_all_to_all_single, not waited for.
 * @source torch.distributed.all_to_all_single(async_op=True) */
TUTTI_API tutti_status tutti_all_to_all_single_async(tutti_span out, tutti_span in, const int64_t *out_splits,
                                                     const int64_t *in_splits, tutti_group *group,
                                                     tutti_work **work_out);

/** Wait until every rank has come. Earlier asynchronous collectives of the group are complete then; messages, which are in no
 * order with collectives, need not be. It goes to the backend of the control traffic (tutti/backends.h), as it has no span.
 *
 * @errors   none of its own
 * @threads  any; a second caller on the same group waits for the first
 * @source   torch.distributed.barrier */
TUTTI_API tutti_status tutti_barrier(tutti_group *group);
/** tutti_barrier, not waited for.
 * @source torch.distributed.barrier(async_op=True) */
TUTTI_API tutti_status tutti_barrier_async(tutti_group *group, tutti_work **work_out);

/** Send buf to a rank, and return when buf may be used again (not: when it was received).
 *
 * Messages of one sender, receiver, group and tag arrive in order; different tags may be received in any
 * order.
 *
 * @param dst    global rank, not this one
 * @param tag    0 or more
 * @errors   TUTTI_E_ARG   dst is no member or this rank, tag is negative
 *           TUTTI_E_PEER  the receiver is gone; the group is finished on all ranks
 * @threads  any
 * @source   torch.distributed.send */
TUTTI_API tutti_status tutti_send(tutti_span buf, int dst, int tag, tutti_group *group);

/** Receive into buf from a rank.
 *
 * @param buf      count and dtype as sent
 * @param src      global rank, or TUTTI_ANY_SOURCE
 * @param src_out  the sender's global rank; may be NULL
 * @errors   TUTTI_E_ARG       src is no member or this rank, or any in a group of one; tag is negative
 *           TUTTI_E_PEER      the sender is gone; the group is finished on all ranks
 *           TUTTI_E_MISMATCH  the message has another number of bytes or another dtype; buf is
 *                             untouched, the message is consumed, the group goes on; or the sender
 *                             waits for this rank, in a call, a receive, or where it makes a group,
 *                             and neither can go on: then the group is finished on all ranks
 * @threads  any
 * @source   torch.distributed.recv (which accepts shorter messages) */
TUTTI_API tutti_status tutti_recv(tutti_span buf, int src, int tag, tutti_group *group, int *src_out);

/** tutti_send, not waited for: buf is borrowed until the work completes.
 * @errors  as tutti_send, before anything is sent; later ones are the work's
 * @threads any
 * @source torch.distributed.isend */
TUTTI_API tutti_status tutti_isend(tutti_span buf, int dst, int tag, tutti_group *group,
                                   tutti_work **work_out);
/** tutti_recv, not waited for; tutti_work_source_rank() tells the sender.
 * @errors  TUTTI_E_ARG as in tutti_recv, before anything is posted; others are the work's
 * @threads any
 * @source torch.distributed.irecv */
TUTTI_API tutti_status tutti_irecv(tutti_span buf, int src, int tag, tutti_group *group,
                                   tutti_work **work_out);

/** Wait until a work has ended; its own failure, words included, is returned. Whatever that is: the operation is over, and
 * what it worked on may be freed.
 *
 * A collective that nobody runs yet is run by this thread, after those before it: each then has the
 * group's time-out from its own start. A message has it from the beginning of this wait, and if it has not ended by then,
 * it does so, with its group, as in tutti_send and tutti_recv. Legal after the group was destroyed.
 *
 * @errors   TUTTI_E_TIMEOUT  it took longer than the group's time-out; the group is finished on all ranks
 *           anything the operation failed with, each time it is asked
 * @threads  any, several at once
 * @source   torch.distributed.Work.wait */
TUTTI_API tutti_status tutti_work_wait(tutti_work *work);

/** The same with a time-out of its own, which ends nothing: it only waits. 0: as tutti_work_wait, TUTTI_INFINITE: none.
 * @units    ms
 * @errors   TUTTI_E_TIMEOUT  not complete in time; the operation goes on, and its spans stay borrowed: wait again, or
 *                            destroy the group
 *           else as tutti_work_wait
 * @threads  any, several at once
 * @source   torch.distributed.Work.wait(timeout) */
TUTTI_API tutti_status tutti_work_wait_for(tutti_work *work, int64_t timeout_ms);

/** Whether the operation has ended, well or not. Never blocks.
 * @threads  any
 * @source   torch.distributed.Work.is_completed */
TUTTI_API bool tutti_work_is_completed(tutti_work *work);

/** The global rank that a completed receive came from; -1 for anything else.
 * @threads  any
 * @source   torch.distributed.Work.source_rank (which gives a group rank) */
TUTTI_API int tutti_work_source_rank(const tutti_work *work);

/** Drop a reference. The operation is not cancelled; its spans stay borrowed until it completes.
 * @param work  NULL does nothing
 * @threads  any
 * @source   ours */
TUTTI_API void tutti_work_free(tutti_work *work);

/* ---- more groups, and what they are called -------------------------------------------------------- */

/** Make groups of consecutive ranks: 0 .. group_size-1, then the next ones, over the whole world. Every
 * rank of the world calls it. A call whose arguments are refused makes none: who was given others, and waits for this rank, is told
 * so, and what is called next meets the others' next call. For that such a call keeps as many numbers as the world has ranks,
 * whatever comes of it: other groups have the numbers behind them. So tutti_new_group() for each list is another thing, and no
 * rank may call that in its place.
 *
 * @param group_size  divides the world's size
 * @param opts        of every group; NULL: every default
 * @param group_out   the one that this rank is in; TUTTI_NO_GROUP on failure
 *
 * @errors   TUTTI_E_ARG  group_size is below 1, or does not divide the size of the world
 *           as tutti_new_group; ranks whose own group was made do not hear of another's failure
 * @threads  one at a time per world
 * @source   torch.distributed.new_subgroups (which also returns the list of all handles) */
TUTTI_API tutti_status tutti_new_subgroups(int group_size, const tutti_group_options *opts,
                                           tutti_group **group_out);

/** Make groups of lists of ranks, of which no two have a rank in common. Every rank of the world calls it
 * with the same lists. It keeps as many numbers as the world has ranks, and one that refuses its arguments tells the others, as
 * of tutti_new_subgroups.
 *
 * @param lists       [n_lists] global ranks of each group
 * @param n_ranks     [n_lists] how many each list has
 * @param opts        of every group; NULL: every default
 * @param group_out   the one that this rank is in, or TUTTI_NON_MEMBER; TUTTI_NO_GROUP on failure
 *
 * @errors   TUTTI_E_ARG  no lists, an empty list, a rank out of range, twice, or in two lists; found
 *                        before anything is made
 *           as tutti_new_group; ranks whose own group was made do not hear of another's failure
 * @threads  one at a time per world
 * @source   torch.distributed.new_subgroups_by_enumeration */
TUTTI_API tutti_status tutti_new_subgroups_by_enumeration(const int *const *lists, const int *n_ranks,
                                                          int n_lists, const tutti_group_options *opts,
                                                          tutti_group **group_out);

/** The global ranks of group's members, in group order: tutti_get_world_size(group) of them.
 *
 * @errors   none; NULL for a non-member or without a world
 * @threads  any; the array is the group's and lives as long
 * @source   torch.distributed.get_process_group_ranks */
TUTTI_API const int *tutti_get_process_group_ranks(const tutti_group *group);

/** The name that the library gave a group: "0" a world, "1", "2", ... what was made from it, in order. Calls that make several
 * groups may leave some out. One that only its members make (use_local_synchronization) has 40 hexadecimal digits
 * that follow from its ranks; parts of "3" are called "3:split:1.0", and what else is made of a group as tutti/regroup.h tells. Where
 * that would have more than 63 bytes, 40 such digits stand for it.
 *
 * @errors   none; NULL for a non-member or without a world
 * @threads  any; the string is the group's and lives as long
 * @source   torch.distributed.ProcessGroup.group_name */
TUTTI_API const char *tutti_get_group_name(const tutti_group *group);

/** The name that the program gave a group in tutti_group_options.desc, "" where it gave none.
 *
 * @errors   none; NULL for a non-member or without a world
 * @threads  any; the string is the group's and lives as long
 * @source   torch.distributed.ProcessGroup.group_desc */
TUTTI_API const char *tutti_get_group_desc(const tutti_group *group);

/** The group that tutti_get_group_name() calls so, among the calling thread's world and the groups made from
 * it of which this rank is a member.
 *
 * @errors   none; TUTTI_NO_GROUP, which every call refuses, where there is none of that name
 * @threads  any, as long as no other one destroys the group
 * @cost     grows with the number of groups
 * @source   torch.distributed.distributed_c10d._resolve_process_group */
TUTTI_API tutti_group *tutti_find_group(const char *name);

/** How many groups the calling thread's world has counted so far: itself, and every one that all its ranks were called for, in
 * whichever of them this rank is. Groups that only their members make (use_local_synchronization, tutti/regroup.h) are not counted,
 * and of a call for several that this rank has refused none is. -1 without a world.
 * @threads  any
 * @source   torch.distributed.get_pg_count */
TUTTI_API int tutti_get_pg_count(void);

/* ---- the peer as a rank of the group ---------------------------------------------------------------
 *
 * The functions below are those without _in_group, whose doc blocks hold for them, with one difference:
 * the peer or root is a rank of the group, 0 .. size-1, as with torch's group_src and group_dst. One out
 * of range is TUTTI_E_ARG. A sender that is reported (src_out, tutti_work_source_rank) is a global rank
 * all the same. */

/** tutti_broadcast from a rank of the group.
 * @source torch.distributed.broadcast(group_src=) */
TUTTI_API tutti_status tutti_broadcast_in_group(tutti_span buf, int group_src, tutti_group *group);
/** tutti_broadcast_in_group, not waited for.
 * @source torch.distributed.broadcast(group_src=, async_op=True) */
TUTTI_API tutti_status tutti_broadcast_in_group_async(tutti_span buf, int group_src, tutti_group *group,
                                                      tutti_work **work_out);

/** tutti_reduce to a rank of the group.
 * @source torch.distributed.reduce(group_dst=) */
TUTTI_API tutti_status tutti_reduce_in_group(tutti_span buf, int group_dst, tutti_op op,
                                             tutti_group *group);
/** tutti_reduce_in_group, not waited for.
 * @source torch.distributed.reduce(group_dst=, async_op=True) */
TUTTI_API tutti_status tutti_reduce_in_group_async(tutti_span buf, int group_dst, tutti_op op,
                                                   tutti_group *group, tutti_work **work_out);

/** tutti_gather to a rank of the group.
 * @source torch.distributed.gather(group_dst=) */
TUTTI_API tutti_status tutti_gather_in_group(const tutti_span *outs, int n_outs, tutti_span in,
                                             int group_dst, tutti_group *group);
/** tutti_gather_in_group, not waited for.
 * @source torch.distributed.gather(group_dst=, async_op=True) */
TUTTI_API tutti_status tutti_gather_in_group_async(const tutti_span *outs, int n_outs, tutti_span in,
                                                   int group_dst, tutti_group *group,
                                                   tutti_work **work_out);

/** tutti_scatter from a rank of the group.
 * @source torch.distributed.scatter(group_src=) */
TUTTI_API tutti_status tutti_scatter_in_group(tutti_span out, const tutti_span *ins, int n_ins,
                                              int group_src, tutti_group *group);
/** tutti_scatter_in_group, not waited for.
 * @source torch.distributed.scatter(group_src=, async_op=True) */
TUTTI_API tutti_status tutti_scatter_in_group_async(tutti_span out, const tutti_span *ins, int n_ins,
                                                    int group_src, tutti_group *group,
                                                    tutti_work **work_out);

/** tutti_gather_v to a rank of the group.
 * @source ours */
TUTTI_API tutti_status tutti_gather_v_in_group(const tutti_span *outs, int n_outs, tutti_span in,
                                               int group_dst, tutti_group *group);
/** tutti_gather_v_in_group, not waited for.
 * @source ours */
TUTTI_API tutti_status tutti_gather_v_in_group_async(const tutti_span *outs, int n_outs, tutti_span in,
                                                     int group_dst, tutti_group *group,
                                                     tutti_work **work_out);

/** tutti_scatter_v from a rank of the group.
 * @source ours */
TUTTI_API tutti_status tutti_scatter_v_in_group(tutti_span out, const tutti_span *ins, int n_ins,
                                                int group_src, tutti_group *group);
/** tutti_scatter_v_in_group, not waited for.
 * @source ours */
TUTTI_API tutti_status tutti_scatter_v_in_group_async(tutti_span out, const tutti_span *ins, int n_ins,
                                                      int group_src, tutti_group *group,
                                                      tutti_work **work_out);

/** tutti_send to a rank of the group.
 * @source torch.distributed.send(group_dst=) */
TUTTI_API tutti_status tutti_send_in_group(tutti_span buf, int group_dst, int tag, tutti_group *group);
/** tutti_recv from a rank of the group, or TUTTI_ANY_SOURCE.
 * @source torch.distributed.recv(group_src=) */
TUTTI_API tutti_status tutti_recv_in_group(tutti_span buf, int group_src, int tag, tutti_group *group,
                                           int *src_out);
/** tutti_isend to a rank of the group.
 * @source torch.distributed.isend(group_dst=) */
TUTTI_API tutti_status tutti_isend_in_group(tutti_span buf, int group_dst, int tag, tutti_group *group,
                                            tutti_work **work_out);
/** tutti_irecv from a rank of the group, or TUTTI_ANY_SOURCE.
 * @source torch.distributed.irecv(group_src=) */
TUTTI_API tutti_status tutti_irecv_in_group(tutti_span buf, int group_src, int tag, tutti_group *group,
                                            tutti_work **work_out);

/* ---- several messages, several works -------------------------------------------------------------- */

/** One message of a batch. */
typedef struct tutti_p2p_op {
    bool       is_send;
    tutti_span span; /* sent from, or received into */
    int        peer; /* global rank; TUTTI_ANY_SOURCE on a receive: any */
    int        tag;
} tutti_p2p_op;

/** Begin several messages at once: tutti_isend and tutti_irecv for each entry of ops, after all of them
 * were checked. Messages never wait for each other, so any order of ops, on any rank, is free of deadlock.
 *
 * @param ops        the array may go when the call returns; the spans are borrowed until their works end
 * @param works_out  [n_ops] one work for each op, in the order of ops, each a new reference. A message
 *                   that could not be begun is a work that has failed.
 *
 * @errors   TUTTI_E_ARG  no ops, or one that is wrong: the text tells which, nothing was sent
 *           TUTTI_E_NOMEM  nothing was sent
 * @threads  any
 * @source   torch.distributed.batch_isend_irecv (which takes the group from each P2POp, and may return one
 *           work for all) */
TUTTI_API tutti_status tutti_batch_isend_irecv(const tutti_p2p_op *ops, int n_ops, tutti_group *group,
                                               tutti_work **works_out);

/** Wait until all works have ended, whatever each came to.
 *
 * @param works       may be of several groups; NULL entries are skipped
 * @param timeout_ms  for all of them together, TUTTI_INFINITE none; 0: each is waited for as by tutti_work_wait, so that
 *                    all have ended in any case
 *
 * @errors   TUTTI_E_TIMEOUT  one had not ended in time, the text says which; unless timeout_ms is 0 they go on
 *           else what the first one of them, in the order of works, failed with
 * @units    ms
 * @threads  any, several at once
 * @source   torch.futures.wait_all */
TUTTI_API tutti_status tutti_wait_all(tutti_work *const *works, int n_works, int64_t timeout_ms);

/** Wait until one of works has ended, well or not: tutti_work_status() tells.
 *
 * @param works       may be of several groups; NULL entries are skipped, so that what was dealt with can
 *                    be set to NULL
 * @param timeout_ms  0: the time-out of the first one's group, TUTTI_INFINITE none
 * @param index_out   the lowest index of those that have ended; -1 if all entries are NULL
 *
 * @errors   TUTTI_E_TIMEOUT  none has ended in time; they go on
 * @units    ms
 * @threads  any, several at once
 * @cost     the end of a message is noticed within 1 ms
 * @source   ours */
TUTTI_API tutti_status tutti_wait_any(tutti_work *const *works, int n_works, int64_t timeout_ms,
                                      int *index_out);

/** What tutti_work_wait() would return, words included, without waiting.
 *
 * @errors   TUTTI_E_STATE  the operation has not ended
 *           anything the operation failed with, each time it is asked
 * @threads  any
 * @source   torch.distributed.Work.is_success, Work.exception */
TUTTI_API tutti_status tutti_work_status(tutti_work *work);

/** What tutti_work_then() calls: work is complete, and borrowed for the call. */
typedef void (*tutti_work_fn)(tutti_work *work, void *ctx);

/** Have fn(work, ctx) called once when work has ended, well or not; at once if it has already.
 *
 * The operation is complete first: in fn, and in any other thread, waiting returns at once; a wait
 * elsewhere may return before fn has run. fn runs on a thread that the world keeps for this, one at a
 * time, never under a lock of the library, and never on the thread that calls tutti_work_then(). Functions
 * of one work run in the order they were attached; between works there is no order. fn may issue and wait,
 * also attach more; while it runs, others of the same world wait. For fn NULL means the process's world:
 * hand it the group. Ending the world waits for functions whose works have ended, and ends works first:
 * those under way fail with TUTTI_E_ABORTED and are told of it. Called by fn, it is refused.
 * Two exceptions are called on the thread that attaches, before this returns: works of non-members, and
 * works whose world is gone.
 *
 * @errors   TUTTI_E_ARG    work or fn is NULL
 *           TUTTI_E_NOMEM  no memory, or no thread; fn is never called
 * @threads  any
 * @cost     the end of a message is noticed within 1 ms while nobody waits for it
 * @source   torch.distributed.Work.get_future().then (which calls before the work is complete, on the
 *           thread that completes it) */
TUTTI_API tutti_status tutti_work_then(tutti_work *work, tutti_work_fn fn, void *ctx);

#ifdef __cplusplus
}
#endif
#endif

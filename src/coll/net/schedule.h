/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/net/schedule.h - what one rank does in a collective, as data.
 *
 * A schedule is a row of phases. In a phase a rank sends and receives messages, in any order and
 * all under way at once; when they have ended it does the local steps, in their order. Every rank's
 * schedule of an operation has the same number of phases, and what is sent in phase k is received
 * in phase k: the phase's number is the message's tag. Blocks are places and offsets, never
 * addresses: a schedule is made without seeing the buffers, and whoever moves the data (run.c, a
 * test, a simulator) binds it to some. */
#ifndef TTI_COLL_NET_SCHEDULE_H
#define TTI_COLL_NET_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kernel/kernel.h"

typedef enum tti_place {
    TTI_PLACE_IN,      /* only read */
    TTI_PLACE_OUT,     /* may be the same memory as IN */
    TTI_PLACE_LIST,    /* entry index of the list */
    TTI_PLACE_INS,     /* entry index of the list of inputs; only read */
    TTI_PLACE_SIZES,   /* of blocks, as ranks tell each other: whoever moves the data fills it */
    TTI_PLACE_SCRATCH, /* the schedule's own, scratch_bytes long */
} tti_place;

typedef struct tti_block {
    tti_place place;
    int       index; /* TTI_PLACE_LIST and TTI_PLACE_INS only */
    int64_t   offset;
    int64_t   bytes;
    int       part; /* IN, OUT and LIST of which part; a schedule of one buffer has only part 0 */
} tti_block;

typedef struct tti_transfer {
    int       peer; /* group rank */
    tti_block block;
    bool      at_most; /* a receive of which only the sender knows how long it is: no longer than the block */
    int       beside;  /* a send that is not little: in this phase so many others send about as much to its peer, or get it from this rank */
} tti_transfer;

/** to = the n inputs from first on, combined from left to right; copied if it is no reduction. */
typedef struct tti_step {
    bool      reduces;
    bool      partial; /* others will be combined with it: an average is not divided yet */
    tti_block to;
    int       first;
    int       n;
} tti_step;

/** Where a phase's parts end in the schedule's rows; they begin where those of the phase before
 * end. */
typedef struct tti_phase {
    int sends_end;
    int recvs_end;
    int steps_end;
} tti_phase;

/** A row that grows and is used again. */
typedef struct tti_row {
    void *items;
    int   n;
    int   room;
} tti_row;

/** Zeroed memory is an empty schedule. */
typedef struct tti_schedule {
    tti_row phases; /* of tti_phase */
    tti_row sends;  /* of tti_transfer */
    tti_row recvs;  /* of tti_transfer */
    tti_row steps;  /* of tti_step */
    tti_row inputs; /* of tti_block: what steps read */
    tti_row reads;  /* of const void *: room for the inputs of one step */
    int64_t scratch_bytes;
    int     sizes_phase; /* after whose steps TTI_PLACE_SIZES has what others have told */
    bool    full; /* memory ran out while it was made */
} tti_schedule;

/** Forget the phases, keep the memory. */
void tti_schedule_clear(tti_schedule *schedule);
void tti_schedule_release(tti_schedule *schedule);

/** Begin the next phase; what follows belongs to it. */
void tti_schedule_phase(tti_schedule *schedule);
void tti_schedule_send(tti_schedule *schedule, int peer, tti_block block);
/** The same, where so many others send about as much to that peer, or this rank sends it to so many others. */
void tti_schedule_send_beside(tti_schedule *schedule, int peer, tti_block block, int beside);
void tti_schedule_recv(tti_schedule *schedule, int peer, tti_block block);
/** The same, of a message that may be shorter than the block, which it begins. */
void tti_schedule_recv_at_most(tti_schedule *schedule, int peer, tti_block block);
void tti_schedule_copy(tti_schedule *schedule, tti_block to, tti_block from);
/** Begin a reduction into to; tti_schedule_input() adds what it reads, in order. */
void tti_schedule_reduce(tti_schedule *schedule, tti_block to);
/** The same, of a result that others will be combined with. */
void tti_schedule_partial(tti_schedule *schedule, tti_block to);
void tti_schedule_input(tti_schedule *schedule, tti_block from);
/** With the last phase this rank knows the sizes of all blocks. */
void tti_schedule_tells_sizes(tti_schedule *schedule);
/** A fresh piece of scratch memory, aligned to 64 bytes. */
tti_block tti_schedule_scratch(tti_schedule *schedule, int64_t bytes);

/** Append the parts of phase k of `from` to the last phase, as those of another part, whose scratch memory
 * begins at scratch_at. */
void tti_schedule_join(tti_schedule *schedule, const tti_schedule *from, int k, int part,
                       int64_t scratch_at);

/** The buffers of a part. */
typedef struct tti_bound {
    const void  *in;
    void        *out;
    void *const *list;
} tti_bound;

/** The buffers a schedule is bound to, and how to combine them. */
typedef struct tti_binding {
    const tti_bound         *parts; /* NULL: there is one, in, out and list */
    const void              *in;
    void                    *out;
    void *const             *list;
    const void *const       *ins;
    void                    *sizes;
    void                    *scratch;
    const tti_reduce_kernel *kernel; /* NULL if nothing is combined */
    const tti_reduce_kernel *partial; /* the same for partial results: tti_partial_kernel() */
    size_t                   element;
    int                      n_ranks; /* whose contributions are in a finished sum: AVG */
} tti_binding;

/** The parts of phase number k, for whoever moves the data. */
const tti_transfer *tti_phase_sends(const tti_schedule *schedule, int k, int *n_out);
const tti_transfer *tti_phase_recvs(const tti_schedule *schedule, int k, int *n_out);
/** Do the local steps of phase k. */
void tti_phase_steps(const tti_schedule *schedule, int k, const tti_binding *binding);

/** What partial results of an operation are made with: averages are sums, until they are divided. */
static inline const tti_reduce_kernel *tti_partial_kernel(tutti_op_kind op, tutti_dtype dtype)
{
    return tti_reduce_kernel_for(op == TUTTI_OP_AVG ? TUTTI_OP_SUM : op, dtype);
}

void *tti_block_at(const tti_binding *binding, const tti_block *block);

#endif

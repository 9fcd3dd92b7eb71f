/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/hooks.h - watching a group's operations: functions that are called around each, and what an
 * operation is called, numbered and timed.
 *
 * A group without hooks pays one relaxed load for each operation. Hooks see what the program issues:
 * collectives, and messages one by one. What a hook itself issues is not seen by any hook. */
#ifndef TUTTI_HOOKS_H
#define TUTTI_HOOKS_H

#include <tutti/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/** When a hook is called. */
typedef enum tutti_hook_kind {
    TUTTI_HOOK_PRE = 0,        /* before an operation is issued, on the thread that issues it */
    TUTTI_HOOK_POST = 1,       /* after it was issued; a blocking one has ended then, well or not */
    TUTTI_HOOK_ABORT = 2,      /* the group has failed in this process, or is ended with operations under way */
    TUTTI_HOOK_COMPLETION = 3, /* once for each operation that has ended well: a blocking one on its thread,
                                  an asynchronous one on the thread of tutti_work_then() */
    TUTTI_HOOK_KIND_COUNT
} tutti_hook_kind;

/** What a hook is told. Everything is borrowed for the call; fields that do not apply are 0, NULL, or as
 * said. New fields come at the end, size tells how far this one goes. */
typedef struct tutti_op_event {
    size_t            size;
    tutti_hook_kind   hook;
    uint64_t          id;         /* from 1, per group: the same in all hooks of one operation; abort: 0 */
    const char       *op;         /* "all_reduce", "isend"; abort: what failed, "all_reduce #12" */
    const char       *name;       /* tutti_record_comm_begin(), else "native:all_reduce" */
    const char       *group_name; /* tutti_get_group_name() */
    uint64_t          seq;        /* of a collective, 0 of a message. In PRE the number it gets unless another
                                     thread issues on the group meanwhile */
    bool              is_async;
    int               peer;   /* global rank of the root, or of a message's other end; -1: none, or any */
    int               tag;    /* of a message */
    tutti_op          reduce; /* of a reduction */
    const tutti_span *ins;    /* [n_ins] what is read */
    int               n_ins;
    const tutti_span *outs; /* [n_outs] what is written. Of a completion they may be gone already: an
                               asynchronous operation gives its spans back when it is complete */
    int          n_outs;
    tutti_work  *work;        /* of an asynchronous one, in POST and COMPLETION; NULL if it was not issued */
    tutti_status status;      /* POST: what issuing, or all of a blocking one, came to; ABORT: of the failure */
    int64_t      duration_ns; /* COMPLETION: as tutti_work_duration(); -1 where it was not timed */
} tutti_op_event;

/** What is called. It may issue operations and wait, unless the operation that it waits for needs this one.
 * It must not end the group. */
typedef void (*tutti_hook_fn)(const tutti_op_event *event, void *ctx);

/** Have fn(event, ctx) called at every operation of group, from the next one on.
 *
 * Hooks of one kind are called in the order they were registered, never under a lock of the library. An abort
 * hook may be called several times, on several threads: once for each operation that fails. Where a collective
 * has failed the group is finished by then, and refuses what a hook issues on it. A message that
 * nobody waits for fails unseen by it, until a later call finds the group finished.
 *
 * @param id_out  what tutti_remove_hook() takes; 1 or more, never used again in this group
 * @errors   TUTTI_E_ARG    kind is none, fn or id_out is NULL
 *           TUTTI_E_NOMEM  no memory
 * @threads  any
 * @source   torch.distributed.ProcessGroup hooks (pre, post, abort, completion) */
TUTTI_API tutti_status tutti_register_hook(tutti_group *group, tutti_hook_kind kind, tutti_hook_fn fn, void *ctx,
                                           int *id_out);

/** Remove a hook. When this returns nobody is inside it, and nobody will be. Called from inside a hook, this
 * one or any other, it does not wait for those who are inside: nobody will be called any more, but somebody
 * may still be, and what the hook uses must stay until they have come back.
 *
 * @errors   TUTTI_E_ARG  the group has no hook with that id
 * @threads  any
 * @source   torch.distributed.ProcessGroup hooks */
TUTTI_API tutti_status tutti_remove_hook(tutti_group *group, int id);

enum { TUTTI_COMM_NAME_MAX = 64, TUTTI_COMM_DEPTH_MAX = 8 };

/** Give the operations that this thread issues a name, until tutti_record_comm_end(): in hooks, logs and
 * tutti_work_name().
 *
 * @param name  1 .. TUTTI_COMM_NAME_MAX-1 bytes, copied
 * @errors   TUTTI_E_ARG    name is NULL, empty or too long
 *           TUTTI_E_STATE  TUTTI_COMM_DEPTH_MAX names are given already, one inside of the other
 * @threads  of the calling thread
 * @source   torch.distributed.record_comm */
TUTTI_API tutti_status tutti_record_comm_begin(const char *name);

/** Take back the name given last: the one before it holds again.
 * @errors   TUTTI_E_STATE  this thread has given none
 * @threads  of the calling thread
 * @source   torch.distributed.record_comm */
TUTTI_API tutti_status tutti_record_comm_end(void);

/** What an asynchronous operation is called: "native:all_reduce", or what tutti_record_comm_begin() said.
 * @errors   none; "" for NULL and for the work of a non-member
 * @threads  any; the string is the work's
 * @source   torch.distributed.Work (profiling title) */
TUTTI_API const char *tutti_work_name(const tutti_work *work);

/** The number of a collective among its group's, from 1; 0 for a message and the work of a non-member.
 * @threads  any
 * @source   torch.distributed.Work._get_sequence_number */
TUTTI_API uint64_t tutti_work_sequence(const tutti_work *work);

/** How many collectives have been issued on group in this process: equal on all members at equal points of
 * the program. 0 for a non-member or without a world.
 * @threads  any
 * @source   torch.distributed.ProcessGroup._get_sequence_number_for_group */
TUTTI_API uint64_t tutti_get_sequence_number(tutti_group *group);

/** How long an operation took: a collective from the moment it began to run, a message from when it was
 * posted, to when its end was seen. The group must have been made with enable_timing.
 *
 * @param ms_out  milliseconds
 * @units    ms
 * @errors   TUTTI_E_ARG          work or ms_out is NULL
 *           TUTTI_E_STATE        it has not ended, or never began
 *           TUTTI_E_UNSUPPORTED  the group was made without enable_timing, or this rank is no member
 * @threads  any
 * @source   torch.distributed.Work._get_duration */
TUTTI_API tutti_status tutti_work_duration(const tutti_work *work, double *ms_out);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group/group.h - what the files of this room share: the group, the work, the order of operations.
 *
 *   world.c       which group NULL means; init and destroy of the process's world
 *   group.c       the object: its parts, its end
 *   world_create.c, new_group.c   making one, over make.h
 *   agreed.c      names and numbers of groups whose members alone make them
 *   proposal.c    the number of one, and lists of members that differ
 *   non_member.c  the warning for calls on groups that this rank is not in
 *   handle.c      what names a world among all processes
 *   options.c     reading and checking the options of a group
 *   ranks.c       ranks and their translation
 *   subgroups.c   several groups in one call; names and lists of ranks
 *   in_group.c    peers and roots as ranks of the group
 *   collective.c  public collectives: arguments in, a checked tutti_call out
 *   exchange.c    the same for reduce_scatter and all_to_all
 *   uneven.c      parts of different sizes: gather_v, scatter_v, one span with counts
 *   lists.c       the arrays of a call; one span as a list
 *   coalesce.c    several buffers in one call; bundle.c makes one of many, scope.c records them
 *   sparse.c      sums of sparse tensors, over coo.c
 *   compound.c    operations made of several, of this room and of those above
 *   p2p.c         send, recv, isend, irecv
 *   batch.c       several messages at once
 *   queue.c       in which order a group's collectives run; gate.h: without the lock
 *   queue_end.c   the end of what a group does
 *   progress.c    asynchronous collectives: their queue, and who does what of them; workers.c: the threads that do
 *   work.c        waiting for works, their words, their references
 *   wait_many.c   waiting for all or any of several works
 *   abort.c       ending what is under way, at once
 *   callback.c    what is called when a work has ended, and on which thread
 *   monitored_barrier.c  a barrier that says who is missing
 *   timeout.c     changing a group's time-out; breakpoint.c: one rank in a debugger
 *   route.c       which backend a device's spans go to
 *   hooks.c       what is called around operations; observe.c: one operation as hooks see it
 *   window.c, window_make.c  memory that members read and write, over one_sided.h
 *   recorded.c    what the flight recorder is told of
 *   straggler.c   who is always the last to come
 *   comm_name.c   what operations are called, how they are numbered and timed
 *   detail_log.c  a log line for each operation */
#ifndef TTI_GROUP_GROUP_H
#define TTI_GROUP_GROUP_H

#include "backend/device_map.h"
#include "base/clip.h"
#include "base/fork.h"
#include "base/options.h"
#include "base/thread.h"
#include "group/gate.h"
#include "recorder/recorder.h"
#include "rendezvous/rendezvous.h"
#include <tutti/group.h>
#include <tutti/hooks.h>
#include <tutti/plugin/backend.h>

enum { TTI_GROUP_NAME_MAX = 64, TTI_GROUP_WORDS_MAX = TTI_LAST_ERROR_MAX, TTI_GROUP_CAUSE_MAX = 64, TTI_HANDLE_MAX = 192 };

typedef struct tti_callback tti_callback;
typedef struct tti_worker   tti_worker; /* workers.c */
typedef struct tti_scope    tti_scope; /* scope.c */
typedef struct tti_straggler tti_straggler; /* straggler.h */
typedef struct tti_work_block tti_work_block; /* work.c */
typedef struct tti_compound   tti_compound; /* compound.h */
typedef struct tutti_window tutti_window;
typedef struct tti_hooks    tti_hooks; /* hooks.h */

/** The lock and the worker threads that all groups of a world share. Reference counted, by the world
 * and by every work, because a work may be asked after its group is gone. progress.c has the rules. */
typedef struct tti_runner {
    tti_port        *port;
    uint32_t         age; /* of the process that made it: works and windows are its */
    _Atomic uint32_t refs;
    tti_mutex        lock;
    tti_event changed; /* an operation ended, a group is closing: all that callers wait for */
    tti_event todo;    /* there may be work for a worker */

    /* Guarded by lock. */
    int         n_listening; /* threads that sleep on changed, or are about to: it is signalled if there are any */
    tti_worker *workers; /* the first is started by the first asynchronous call; some may have ended */
    int         n_workers; /* that have not */
    int         n_idle;    /* of them, asleep or not come to their first work yet */
    int         n_watching; /* of them, whether those that are busy are stuck */
    int         n_napping;  /* of them, at most one: it looks for works that are put off */
    uint64_t    n_soon;     /* asynchronous calls so far that could be put off */
    int64_t     touched_ns; /* when the program last issued a work that a worker is to run, or had waited for one */
    int         workers_max;
    int64_t     idle_ns;   /* after which they end */
    uint64_t    n_pushed;  /* asynchronous calls so far */
    bool        stop;
    bool        has_compounds; /* some were queued: no backend knows of one before a worker begins it */
    tutti_work *first; /* queued collectives of all groups, oldest first */
    tutti_work *last;

    /* callback.c; guarded by lock. */
    tti_thread    caller;    /* started by the first tutti_work_then() */
    tti_event     called;    /* there may be something for the caller */
    bool          calls_end; /* the world is gone: whoever attaches calls by himself */
    tti_callback *ready;     /* their works have ended; oldest first */
    tti_callback *ready_last;
    tutti_work   *watched; /* messages with callbacks, looked at by the caller */
} tti_runner;

/** A store that this process serves for a group. Who serves may be done with the group before the others are, who still make
 * parts of it there: so it stays until the world of who serves it ends. */
typedef struct tti_served {
    tutti_store       *store;
    struct tti_served *next; /* among the world's; guarded by runner->lock */
} tti_served;

typedef struct tti_mesh_family tti_mesh_family; /* device_mesh/mesh_family.h */
typedef struct tti_local_name  tti_local_name;  /* agreed.c */

/** What takes the memory of a kind of device. */
typedef struct tti_route {
    char                     name[TTI_BACKEND_NAME_MAX]; /* "": nothing does */
    const tutti_backend_ops *ops;                        /* NULL: a plug-in that is not there */
    tutti_backend           *backend;                    /* equal ops in a group are one backend */
    tutti_store             *store;                      /* the backend's keys, below the group's */
    bool                     is_foreign;                 /* the backend is not the library's own: what it comes to is looked at */
    bool                     compares;                   /* the backend is a wrapper that compares calls: it tells where they are made */
} tti_route;

/** Which backends a group gets: those of like, else ops for the CPU, else what text says. */
typedef struct tti_backing {
    const tutti_group       *like;
    const tutti_backend_ops *ops;
    const char              *text; /* NULL: the default */
} tti_backing;

/** What a group is a part of while it is made: a division of from, all of whose members are in this call. */
typedef struct tti_division {
    tutti_group *from; /* NULL: only its own members make the group, or the backends have been asked */
    uint32_t     step; /* of from's divisions */
    int          color; /* of the part */
} tti_division;

struct tutti_group {
    tutti_group             *world;   /* itself for a world */
    tutti_group             *carrier; /* whose backend owns the connections: the world, or itself */
    tti_runner              *runner;
    const tutti_backend_ops *ops;     /* of the control traffic; routes has those of devices */
    tutti_backend           *backend; /* of ops; NULL: a world that waits to be reconfigured */
    tti_route                routes[TTI_DEVICES];
    tti_division             division;
    char                     backend_text[TTI_DEVICE_MAP_TEXT];   /* as it was asked for */
    char                     backend_config[TTI_DEVICE_MAP_TEXT]; /* "cpu:native,cuda:nccl" */
    tutti_store             *store;         /* this group's keys; its children's stand below */
    tutti_store             *root;          /* of a world: where others find it (reconfigure.c) */
    tutti_store             *root_server;   /* of a world: what serves root, if this process has done so since a failure */
    tti_served              *served;        /* of a carrier that is no world: what serves its store, if this process does; NULL.
                                               Of a world: of those that were destroyed. successor.c */
    struct tti_bulletin     *bulletin;      /* of a world: what the launcher says of its ranks; NULL: nothing. blame.c */
    uint32_t                 endings_told;  /* regroup/unasked.c: of bulletin's, how many are no news. Rank 0's, in its call */
    bool                     refuses;       /* regroup/refused.c: its members were told that this one does not shrink it */
    _Atomic uint64_t         shrinks;       /* calls of tutti_shrink_group() on it here, or more where others had more: grows, by their
                                               thread and by the one that looks for refusals */
    _Atomic uint64_t         parted;        /* regroup/refused.c: calls of it up to this number have failed here because lists differed */
    bool                     renumbered;    /* whose ranks are other ones than the launcher counts */
    bool                     root_is_partial; /* of a world: a subgroup has led root to a store that the others do not know */
    _Atomic int64_t          timeout_ms;    /* -1: none; never 0. Read without the lock: one number */
    tti_gate                 gate;          /* the order of collectives, unless held: see queue.c */
    tti_ring_place                place;         /* in the flight recorder; constant once the backends are there */
    uint32_t                 id;            /* 0: a carrier */
    uint32_t                 age;           /* of the process that made it (base/fork.h) */
    uint32_t                 generation;    /* of a world: 1, or one more than that of the world whose place it took */
    int                      rank;
    int                      size;
    int                     *ranks;  /* [size] group rank -> global rank, ascending */
    int                     *former; /* [size] ranks in the group that it was shrunk from; NULL: none */
    char                     name[TTI_GROUP_NAME_MAX];
    char                    *desc; /* NULL: none */
    char                     listen_host[TTI_HOST_MAX];
    char                     handle[TTI_HANDLE_MAX]; /* of a world: names it among all processes */
    bool                     timed;  /* its works take times */
    _Atomic bool             hooked; /* hooks.c: there may be hooks */
    void                    *room;   /* compound.c; whoever has the turn uses it. NULL: none yet */
    size_t                   room_bytes;
    tti_straggler           *straggler; /* the same; NULL: nobody was waited for yet */
    _Atomic uintptr_t        scope_owner; /* scope.c: the thread that has a scope open; 0: none */
    tti_scope               *scope;       /* its own */

    /* Guarded by runner->lock. */
    int          n_breakpoints; /* of a world: calls of tutti_breakpoint() that were skipped */
    uint32_t     numbers;  /* of a world: those below it are given to groups, or kept for some that need not be made */
    uint32_t     n_made;   /* of a world: groups counted so far, itself included */
    tutti_group *children; /* of a world: newest first */
    tutti_group *next;     /* among the world's children */
    uint32_t     n_splits; /* times it was split */
    bool         held;     /* the lock has the order of collectives, and not the gate: */
    uint64_t     next_seq; /* the next collective gets it; from 1 */
    uint64_t     turn;     /* the collective that may run or is running */
    bool         advancing; /* a thread has the backend begin works: none is run meanwhile */
    int          soon;      /* of its latest works, how many in a row were waited for at once; progress.c */
    int          soon_from; /* so many of them, and works are put off */
    int          inside;   /* callers that use the backend or wait for a turn; the gate's, too, when held */
    bool         closing;
    bool         gaps;     /* works that were not begun were taken out: turns behind them do not come */
    tti_hooks   *hooks;                            /* NULL: none yet */
    uint64_t     n_observed;                       /* operations that hooks were told of */
    tutti_window *windows;                         /* newest first */
    uint32_t     n_windows;                        /* registrations so far, the same on all members */
    tutti_work  *messages;                         /* isend and irecv that have not been settled */
    tutti_status finished;                         /* what later calls fail with; TUTTI_OK: alive */
    char         finished_by[TTI_GROUP_CAUSE_MAX]; /* "all_reduce #12" */
    char         finished_words[TTI_GROUP_WORDS_MAX];

    /* Of a world, guarded by runner->lock. */
    tti_local_name  *local_names;
    tti_mesh_family *meshes;
    void (*end_meshes)(tutti_group *world); /* set with the first of meshes: they live in a room above */
    uint32_t         n_meshes; /* calls so far that make, flatten or split one; refused ones, too */
};

struct tutti_work {
    bool             is_nothing; /* the constant that non-members get: complete, never freed */
    _Atomic uint32_t refs;       /* the user's, and the queue's or the list of messages' */
    tti_work_block  *block; /* the memory that it has with others of its batch; NULL: its own */
    tti_runner      *runner;
    int64_t          timeout_ms; /* of the group */
    char             group_name[TTI_GROUP_NAME_MAX];
    char             what[TTI_GROUP_CAUSE_MAX]; /* "all_reduce #12", "irecv from rank 3" */
    char             name[TUTTI_COMM_NAME_MAX]; /* "native:all_reduce" */
    uint64_t         seq;                       /* of a collective; 0 */
    bool             timed;                     /* as the group */

    /* Guarded by runner->lock. */
    bool         done;
    int64_t      began_ns; /* if timed: when it began to run, or was posted; 0: not yet */
    int64_t      ended_ns; /* once done */
    tutti_status status;   /* once done */
    char        *words;  /* once done and failed; NULL: no memory for them */
    int          source; /* global rank a completed receive came from; -1 */
    tutti_group *group;  /* NULL once done */
    tutti_work  *next;   /* in the runner's queue, or among the group's messages */
    tutti_work  *prev;

    bool    advanced; /* the backend has begun it, and has its buffers until it is run */
    bool    given;    /* no other member waits for it: it is run when somebody here asks for its end */
    bool    wanted;   /* somebody does who does not run it himself */
    bool    put_off;  /* it will soon be waited for, and if not, a worker that naps finds it */

    bool        recorded;  /* in a coalescing scope that has not ended */
    tutti_work *followers; /* end as this one does; each is a reference. Linked by next */

    bool          heard;      /* the backend will say when the message has ended */
    tti_callback *callbacks;  /* attached, in order; each holds a reference */
    tutti_work   *watch_next; /* in the runner's list */
    bool          watched;

    tutti_request           *request; /* a message; NULL once settled, and of a collective */
    const tutti_backend_ops *ops;     /* a message */
    int                      pins;    /* threads inside an entry of ops with request */

    tutti_call call;   /* a collective; of a receive dtype, count, out and device */
    struct tti_streamed *streamed; /* a collective that goes by streams: its end on the device (streamed.h); else NULL */
    tti_compound *compound; /* is run in the place of call, which has its number; NULL: none, or it was */
    int        rank;   /* of this process in the group */
    int        n_list; /* entries of call.list */
    void      *list[]; /* what call.list and the call's other arrays point to */
};

/** Whether work is one of a process that this one was forked from. */
static inline bool tti_work_is_inherited(const tutti_work *work)
{
    return !work->is_nothing && tti_is_inherited(work->runner->age);
}

/** The device of buffers, as a span says it, that a call or a message says in two fields. The host is one device. */
static inline tutti_device tti_device_of(tutti_device_type type, int index)
{
    return (tutti_device){ .type = type, .index = type != TUTTI_CPU ? index : 0 };
}

/** Whether a thread has a coalescing scope open on group. The owner's number is only ever equal to a thread's
 * own if that thread wrote it, so the order of the load does not matter. */
static inline bool tti_scope_any(tutti_group *group)
{
    return atomic_load_explicit(&group->scope_owner, memory_order_relaxed) != 0;
}

/* world.c */

/** The group that a public call means; NULL: TUTTI_NON_MEMBER, already warned about. what is the
 * call's name, for words.
 * @errors TUTTI_E_STATE  no world, or TUTTI_NO_GROUP */
tutti_status tti_group_resolve(tutti_group *group, const char *what, tutti_group **group_out);
/** The same for calls that a world which has met nobody yet does not refuse. */
tutti_status tti_group_resolve_any(tutti_group *group, const char *what, tutti_group **group_out);
/** The same without words or warnings; NULL where there is no group of which this rank is a member. */
const tutti_group *tti_group_peek(const tutti_group *group);

/* non_member.c */

/** Warn of a call on TUTTI_NON_MEMBER, the first of its kind. */
void tti_non_member_warn(const char *what);
/** This rank comes to be no member of a group: what was warned about is warned about again. */
void tti_non_member_begins(void);

/* world.c */

/** Whether the calling thread is inside user code that the end of group waits for. */
bool tti_group_calls_us(const tutti_group *group);
/** Wherever this process or thread meant old by NULL, it means its successor. */
void tti_world_succeed(const tutti_group *old, tutti_group *successor);
/** The process's world is this one, if it has none. */
void tti_world_adopt(tutti_group *world);

/** tutti_init_process_group() over a table of the caller's; NULL: the one that opts name. */
tutti_status tti_init_with(const tutti_backend_ops *ops, const tutti_init_options *opts);

/* world_create.c, new_group.c, options.c, group.c */

/** Make a world over backing. join is only read. */
tutti_status tti_world_create(tti_port *port, const tti_backing *backing, const tti_join *join,
                              tutti_group **group_out);
/** Make a child of world: tutti_new_group() without globals. */
tutti_status tti_group_create(tutti_group *world, const int *ranks, int n_ranks,
                              const tutti_group_options *opts, tutti_group **group_out);
/** Read and check the options of a group into known, which has the defaults; opts NULL: leave them. */
tutti_status tti_group_options_read(const char *what, const tutti_group_options *opts,
                                    tutti_group_options *known);
/** Count one more group of world: its number. */
uint32_t tti_group_take_number(tutti_group *world);
/** n numbers in a row for groups of one call, of which none is counted yet: the first.
 * @errors TUTTI_E_STATE  so many are not left */
tutti_status tti_group_take_numbers(tutti_group *world, int n, uint32_t *first_out);
/** Count n groups that have such numbers. */
void tti_group_count(tutti_group *world, int n);
/** End and free a group; a world with all its children. */
void tti_group_destroy(tutti_group *group);

/* route.c */

/** Give group its backends.
 * @errors TUTTI_E_ARG, TUTTI_E_UNSUPPORTED  backing's text cannot be read, or the backend of the control
 *                                           traffic is not there */
tutti_status tti_routes_find(tutti_group *group, const tti_backing *backing);
/** Whether each that was found can be used in this process, before anybody is met. store: the program's, in which the members will
 * meet; NULL: none.
 * @errors as tti_backend_check_env() */
tutti_status tti_routes_check_env(const tutti_group *group, tutti_store *store);
/** Make the backends, each of config, with a store of its own. */
tutti_status tti_routes_open(tutti_group *group, tutti_backend_config *config);
/** Destroy the backends that there are. */
void tti_routes_close(tutti_group *group);
/** Whether from, which is divided, has a backend that parts can be split from: the same on all of its members, whatever backends
 * each of them names for its part. */
bool tti_routes_divide(const tutti_group *from);
/** This rank could not come as far as a part's routes in a division of from, because of this thread's last error, which stays.
 * For all backends that parts can be split from. */
void tti_routes_leave(tutti_group *from, uint32_t step);
/** This rank makes no part, by its arguments or (has_failed) because of this thread's last error, which stays. For the backends
 * that can be split and have not been asked.
 * @errors what has broken a backend of the group that is divided; none if has_failed */
tutti_status tti_routes_sit_out(tutti_group *group, int64_t timeout_ms, bool has_failed);
/** The route of a device's spans. name is the argument's, for words.
 * @errors TUTTI_E_ARG          device is none
 *         TUTTI_E_UNSUPPORTED  no backend takes it, or its plug-in is not there */
tutti_status tti_route_check(const tutti_group *group, const char *what, const char *name,
                             tutti_device_type device);
/** Whether the backend of a device, which has one, has messages: for what is made of them.
 * @errors TUTTI_E_UNSUPPORTED */
tutti_status tti_messages_check(const tutti_group *group, const char *what, tutti_device_type device);
/** The device whose backend has the control traffic. */
tutti_device_type tti_control_device(const tutti_group *group);
/** Abort all backends; or, with st not TUTTI_OK, let them fail with it and this thread's words. */
void tti_routes_end(const tutti_group *group, tutti_status st);

/* subgroups.c */

/** The calling thread's world, to make groups of.
 * @errors TUTTI_E_STATE  there is none */
tutti_status tti_group_world(const char *what, tutti_group **world_out);
/** One of several groups that are made in a row: tti_group_create(), whose failure goes to *status,
 * or only a number if *status has one already, which those are told that wait for this rank; ranks NULL: whoever they are. *mine is set if this rank is in it. */
void tti_group_create_next(tutti_group *world, const int *ranks, int n_ranks,
                           const tutti_group_options *opts, tutti_status *status,
                           tutti_group **mine);

/** Take the groups from the meshes of a world that ends. */
void tti_group_end_meshes(tutti_group *world);

/* workers.c, progress.c */

tutti_status tti_runner_create(tti_port *port, tti_runner **runner_out);
tti_runner  *tti_runner_retain(tti_runner *runner);
/** Ends the workers; nothing may be queued any more. */
void tti_runner_stop(tti_runner *runner);
void tti_runner_drop(tti_runner *runner);
/** Something that callers wait for has changed. Lock held. */
static inline void tti_runner_tell(tti_runner *runner)
{
    if (runner->n_listening > 0)
        tti_event_signal(runner->port, &runner->changed);
}

/** Sleep until something changes or the deadline. Lock held, also on return. */
void tti_runner_sleep(tti_runner *runner, int64_t deadline_ns);

/** Queue call, with n_list entries of its list and its other arrays copied; work_out has a reference of the caller's. */
tutti_status tti_queue_push(tutti_group *group, const tutti_call *call, int n_list,
                            tutti_work **work_out);
/** Queue a compound, which is the caller's again if this fails. buf is the result of its work. */
tutti_status tti_queue_push_compound(tutti_group *group, tti_compound *compound, tutti_span buf,
                                     tutti_work **work_out);
/** Run the oldest work of group whose turn it is, if nobody does. Lock held, also on return. */
bool tti_queue_help(tutti_group *group);
/** Somebody comes to wait for work, which has not ended, and helps: run it, if its turn has come and nobody does. Lock
 * held as above. */
bool tti_queue_take(tutti_work *work);
/** The program was here for a work that a worker was to run. Lock held. */
void tti_queue_touch(tti_runner *runner);
/** Do what is left of the works of group that have given all, as far as it waits for nobody. Lock held, also on
 * return, and released in between. */
void tti_queue_advance(tutti_group *group);
/** Somebody waits for the end of works of group without helping. Lock held. */
void tti_queue_want(tutti_group *group);

/* queue.c */

/** Do call in its turn, on this thread. Sets seq, timeout_ms and deadline_ns. */
tutti_status tti_queue_run(tutti_group *group, tutti_call *call);
/** The same for one whose place in the streams of its device is marked, or that has none. */
tutti_status tti_queue_run_marked(tutti_group *group, tutti_call *call);
/** A group without operations: numbers begin at 1. Nobody uses it. */
void tti_queue_init(tutti_group *group);
/** The number of the next collective. Lock held. */
uint64_t tti_queue_next(const tutti_group *group);
/** Turns in a row that one thread holds: no other collective of the group comes between. */
typedef struct tti_turns {
    tutti_group *group;
    uint64_t     first; /* what the operation as a whole is called by */
    uint64_t     next;
    uint64_t     end;
    bool         in_background; /* as of a call */
    tutti_call_whole whole;     /* what is done in them */
} tti_turns;

/** Take n numbers, and wait until it is their turn. tti_turns_give() must follow.
 * @errors whatever finished the group, with its words */
tutti_status tti_turns_take(tutti_group *group, int n, tti_turns *turns_out);
/** tti_queue_run() in the next one of them. No user code may run on this thread meanwhile that uses the group. */
tutti_status tti_turns_run(tti_turns *turns, tutti_call *call);
/** Let others go on, whether all were used or not. st and this thread's words finish the group as those of a
 * message do: a failure that only this rank has must be one that finishes, or the others wait for it. */
void tti_turns_give(tti_turns *turns, const char *what, tutti_status st);

/** Whether a call of this rank has failed in a way that finished the group. */
bool tti_group_is_finished(tutti_group *group);
/** Enter group to use its backend: it stays until tti_group_leave().
 * @errors whatever finished the group, with its words */
tutti_status tti_group_enter(tutti_group *group);
/** Leave; st other than TUTTI_OK is what the message `what` failed with, in this thread's words, and
 * finishes the group, here and on the other members, if it is of that kind. */
void tti_group_leave(tutti_group *group, const char *what, tutti_status st);
/** The same with words, which are this thread's, and without leaving. Lock held. */
void tti_group_fail(tutti_group *group, const char *what, tutti_status st, const char *words);
/** Whether a message that failed with st takes its group along. */
bool tti_group_finishes(tutti_status st);
/** Whether somebody depends on what the group still has to do. */
bool tti_group_is_busy(tutti_group *group);
/** End everything under way, here and on the other members, and let nothing begin any more. Nobody is waited
 * for. Leaves words of its own in this thread. Lock held. */
void tti_queue_abort(tutti_group *group);
/** Why a group is closed: the call that does it, words for later calls, and what works hear that were not begun. */
typedef struct tti_closing {
    const char *by, *words, *happened;
} tti_closing;

/** It is being destroyed. */
extern const tti_closing tti_closing_destroyed;

/** End everything under way: queued works, then, through the backend's abort, running ones. Nobody
 * is inside when it returns. Messages are left: see tti_messages_take(). */
void tti_queue_close(tutti_group *group, const tti_closing *why);

/* work.c */

/** A new work with one reference, not yet linked anywhere. */
tutti_status tti_work_create(tutti_group *group, int n_list, tutti_work **work_out);
/** n of them at once, with no room for lists. */
tutti_status tti_works_create(tutti_group *group, int n, tutti_work **works_out);
void         tti_work_retain(tutti_work *work);
/** Drop a reference. The lock may be held or not. */
void tti_work_drop(tutti_work *work);
/** Complete a work: status, and a copy of words when it failed. Lock held. */
void tti_work_finish(tutti_work *work, tutti_status status, const char *words);
/** Complete several works, linked by next, and drop a reference to each. Lock held. */
void tti_works_finish(tutti_work *first, tutti_status status, const char *words);
/** @errors TUTTI_E_STATE  work is recorded in a scope that has not ended */
tutti_status tti_work_check_issued(tutti_work *work);
/** Have works that were recorded, linked by next, a reference each, end as work does. */
void tti_work_lead(tutti_work *work, tutti_work *followers);
/** Complete a message that has ended, unless a thread that waits for it will. Lock held. */
void tti_work_look(tutti_work *work);
/** Let the end of work be signalled through its runner's events: false if the backend cannot tell, and must
 * be asked again and again. Lock held. */
bool tti_work_hear(tutti_work *work);
/** What non-members get: a constant that is complete. */
tutti_work *tti_work_nothing(void);

/* callback.c */

/** The callbacks of work, which has ended, may run. Lock held. */
void tti_callbacks_ready(tutti_work *work);
/** Run what is ready and end the thread. All works of the runner have ended. */
void tti_callbacks_stop(tti_runner *runner);
/** Whether this thread is inside a callback of runner. */
bool tti_callbacks_inside(const tti_runner *runner);

/* p2p.c */

/** A message on its way to the backend. */
typedef struct tti_posting {
    const char   *what; /* "send" */
    tutti_message message;
    int           peer; /* global; -1: any */
} tti_posting;

/** Check a message whose what, is_send and peer are set, and fill in the rest.
 * @errors TUTTI_E_ARG, TUTTI_E_UNSUPPORTED */
tutti_status tti_posting_check(const tutti_group *group, tutti_span buf, int tag, tti_posting *p);
/** st, with which an operation of group fails. Where a peer is lost, because a launcher ends its ranks, this thread's words
 * begin with the reason. */
tutti_status tti_group_blame(const tutti_group *group, tutti_status st);
/** A message failed with st, which is returned: where its peer is gone, or another member has told of a failure of its own, or
 * sender and receiver differ, this thread's words say of which message, and what now. Said twice it is said once. */
tutti_status tti_message_failed(const tutti_group *group, const char *what, tutti_status st);
/** A message has not ended in its time: end it, and the group with it, on all members. The caller has said why, as this
 * thread's last error; words_out: the same, of which message. Lock held. */
void tti_message_give_up(tutti_group *group, const char *what, int64_t waited_ns, char words_out[TTI_GROUP_WORDS_MAX]);
/** Hand a checked message to the backend: work, new and not linked anywhere, becomes its work. The
 * caller is inside group. */
tutti_status tti_posting_begin(tutti_group *group, const tti_posting *p, tutti_work *work);

/** What the work of a checked message is called; before it is handed to the backend. */
void tti_posting_name(tutti_group *group, const tti_posting *p, tutti_work *work);
/** A message was posted: request is its work's from here on; NULL: it is done. Lock held. */
void tti_posting_begun(tutti_group *group, const tti_posting *p, tutti_request *request, tutti_work *work);

/** A message that was begun in request becomes work's, whose what and name are set. The caller is inside group. */
void tti_message_adopt(tutti_group *group, const tutti_backend_ops *ops, tutti_request *request, tutti_work *work);

/** End the messages of a closing group, in two steps around the backend's destroy: take decides
 * how each one ends, give marks them complete, when no buffer is in use any more. */
tutti_work *tti_messages_take(tutti_group *group);
void        tti_messages_give(tutti_work *first);
/** Complete a message that has ended with status (and words), and unlink it. Lock held, no pins. */
void tti_message_settle(tutti_work *work, tutti_status status, const char *words);
/** The global rank a message that has ended came from; -1 for a send or a failure. Lock held. */
int tti_message_source(const tutti_work *work);

/* window_make.c */

/** Close what windows of a group whose backend is about to end have registered. Nobody is inside. */
void tti_windows_end(tutti_group *group);

#endif

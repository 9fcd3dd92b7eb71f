/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/messenger_core.h - the messenger as its files see it.
 *
 *   messenger.c  posting, life
 *   await.c      waiting, who drives; at_once.c: messages that need not wait
 *   mailbox.c    which message is for which receive; lane.c: the way to one peer
 *   turn.c       one turn over the lanes, and sleeping until another may help
 *   give_up.c    requests that cannot end well: lost links, finished groups
 *   mourn.c      groups of which a member is dead
 *   agree.c      whether the members of a group are in the same calls; waits.c: what those say who wait for long
 *   connector.c  the thread that makes TCP connections when they are needed
 *   window.c, window_serve.c  memory that others read and write
 *
 * Everything declared here is called with the lock held, unless it says otherwise. */
#ifndef TTI_TRANSPORT_MESSENGER_CORE_H
#define TTI_TRANSPORT_MESSENGER_CORE_H

#include "base/company.h"
#include "base/thread.h"
#include "transport/carried/carrier.h"
#include "transport/lane.h"

typedef struct tti_connector tti_connector;

/** What is known of those that were given up, and when something last moved here. */
typedef struct tti_mourning {
    uint32_t moves;      /* how often something moved, as counted so far; it wraps */
    uint32_t seen_moves; /* at the last look */
    uint32_t verdicts;   /* tti_health_verdicts() that were acted on */
    uint32_t known;      /* and that were seen */
    int64_t  known_ns;   /* when the first of those that were not acted on was seen */
    int64_t  moved_ns;   /* when moves was last seen to have changed */
} tti_mourning;

struct tti_messenger {
    tti_mesh   *mesh;
    tti_port   *port;
    int         n_ranks;
    bool        own_core; /* every rank of the host can have one: waiting may spin */
    _Atomic uint64_t *deed; /* where this rank notes what it does; NULL: nobody watches */
    bool        has_near; /* some members are reached through shared memory */
    tti_handle  bell;
    tti_mutex   lock;    /* guards everything below, and requests that have not ended */
    tti_event   changed; /* a request ended, or somebody else may drive: for those who wait */
    tti_event   todo;    /* there is something for the messenger's thread, which rests */
    tti_lane   *lanes;   /* [n_ranks] */
    tti_mailbox mailbox;
    tti_window *windows;   /* those that are open */
    int         n_serving; /* of them have members on other hosts: somebody must drive all the time */
    tti_poll   *poll_set;  /* [2 * n_ranks + 1]; the driver's, also while it sleeps without the lock */
    int         waiters;   /* threads that wait for a request */
    int         sleepers;  /* of them sleep on changed */
    _Atomic uint32_t calls; /* of this rank so far, by which the thread knows that nobody drives any more; written
                             * under the lock, and only a hint to those without it */
    int         under_way; /* requests that have not ended */
    _Atomic uint32_t ended; /* requests that have; written under the lock, after they are marked */
    int64_t     told_ns;   /* when the last notice was queued; 0: none */
    bool        cut_short; /* a group was given up, or left, with something under way */
    int64_t     cut_ns;    /* when connections were last asked whether they are cut */
    int64_t     looked_ns; /* when the members of this host were last asked for signs of life */
    tti_mourning mourning; /* mourn.c's */
    int         n_doubts;  /* groups that are in doubt: agree.c */
    tti_wait   *heard;      /* [2 * n_ranks] what each of other hosts has told last, and was told; NULL: nothing yet */
    uint32_t    shown_group; /* the call whose wait this rank shows; seq 0: none */
    uint64_t    shown_seq;
    uint64_t    n_receives; /* that were told */
    unsigned    n_looks;    /* at what others wait in */
    struct tti_circle *circle; /* of three and more that this rank was found to be in: waits.c's; NULL: none */
    uintptr_t   last_caller; /* the thread that made the last call of the messenger */
    _Atomic uintptr_t caller; /* the first thread that made calls, tti_self(); with or without the lock */
    _Atomic bool several_callers; /* there are others */
    bool        driving;
    bool        asleep;        /* the driver is in poll: its bell wakes it */
    int         n_parting;     /* links that it is to close then */
    const tti_request     *awaited;  /* what the driver waits for, while it sleeps; NULL: nothing of its own */
    const struct patience *patience; /* and how, where there is such a thing */
    tti_company company;       /* of whoever waits: all have the cores of this process */
    bool        thread_rests;  /* until todo, without an end */
    bool        thread_drives; /* and leaves as soon as somebody waits */
    bool        closing;
    bool        wants_less;       /* requests were ended: attempts to connect may be vain */
    bool        connects_no_more; /* the connector is to end */
    tti_thread  thread;
    tti_connector *connector; /* constant; NULL: every member is on this host */
    tti_carrier   *carrier;   /* constant; NULL: what goes to other hosts goes by TCP */
};

/** Count a call of this rank's. */
static inline void tti_count_call(tti_messenger *m)
{
    if (m->last_caller != tti_self()) {
        m->last_caller = tti_self();
        tti_messenger_note_caller(m, m->last_caller);
    }
    atomic_store_explicit(&m->calls, atomic_load_explicit(&m->calls, memory_order_relaxed) + 1, memory_order_relaxed);
}

/** Count a request that has ended: who sees the number sees that. */
static inline void tti_count_end(tti_messenger *m)
{
    atomic_store_explicit(&m->ended, atomic_load_explicit(&m->ended, memory_order_relaxed) + 1, memory_order_release);
}

/** How many there were. With or without the lock. */
static inline uint32_t tti_calls(const tti_messenger *m)
{
    return atomic_load_explicit(&m->calls, memory_order_relaxed);
}

/** A new request, allocated, not placed anywhere. Without the lock. */
tutti_status tti_request_make(tti_messenger *m, tti_channel channel, const tti_parcel *parcel, bool is_send,
                              tti_request **request_out);
/** Put it where it belongs, or end it at once when it has no future. */
typedef void tti_placing(tti_messenger *m, tti_request *request);
tti_placing tti_place;
/** Place a new request, and move what can be moved. Without the lock. */
void tti_messenger_begin(tti_messenger *m, tti_request *request, tti_placing *place);
/** Have the messenger's own thread: something may have to move when nobody waits. Without the lock. */
tutti_status tti_messenger_need_thread(tti_messenger *m);

/** What came of a receive that looked before it was posted. */
typedef enum tti_at_once {
    TTI_NOT_THERE,
    TTI_NOTHING_THERE, /* nor anything else: it may be what comes next */
    TTI_TAKEN_IN_PART, /* its frame stands in the lane; the request goes into lane->into */
    TTI_TAKEN,
} tti_at_once;

/** Send what fits now, before anything waits in the lane: how many bytes of frame and payload. */
size_t tti_send_at_once(tti_messenger *m, tti_channel channel, const tti_parcel *parcel);
/** Take the next message of a lane, if it is asked for and no other receive could have a claim to it. */
tti_at_once tti_recv_at_once(tti_messenger *m, tti_channel channel, const tti_parcel *parcel);

/** Do a message as a whole, now: false if that cannot be. */
bool tti_post_at_once(tti_messenger *m, tti_channel channel, const tti_parcel *parcel, bool is_send);

/** Move what can be moved now, on all lanes or on those that something waits for: whether any did. */
bool tti_messenger_turn(tti_messenger *m, bool all);
/** The same on one lane. */
bool tti_messenger_turn_one(tti_messenger *m, tti_lane *lane);
/** The same on all that are sockets, whether anything of them is waited for or not: what is not is kept. What is told stands
 * behind it. */
void tti_messenger_turn_sockets(tti_messenger *m);
/** The same for a request that was posted there just now. */
void tti_messenger_turn_new(tti_messenger *m, tti_lane *lane, const tti_request *request);
/** Ask the members of this host for signs of life, now and then, whatever else goes on. */
void tti_messenger_look(tti_messenger *m, int64_t now_ns);
/** Finish the groups of those that were given up, if nothing moves any more. */
void tti_messenger_mourn(tti_messenger *m, int64_t now_ns);
/** And receives from anybody, where the way of one who may send was lost, and that one lives. */
void tti_messenger_miss(tti_messenger *m);
/** Sleep until something may have moved, at most to the deadline. Lets go of the lock meanwhile. */
void tti_messenger_sleep(tti_messenger *m, int64_t deadline_ns);

/** Have somebody who drives when nobody waits. */
tutti_status tti_need_driver(tti_messenger *m);
/** Something is under way and this thread will not wait for it now: let others see to it. */
void tti_leave_to_others(tti_messenger *m);
/** Something ended, or moved: wake those who wait for it without driving. */
void tti_tell_waiters(tti_messenger *m);
/** The messenger's thread, until the messenger is closing. Without the lock. */
void tti_messenger_thread(void *messenger);

/** End the requests of a list that are for peer (-1: all). */
void tti_end_list(tti_messenger *m, tti_request_list *list, int peer, const tti_cause *why);
/** The link is broken, or cannot be made: end everything that waited for the peer, or for anybody when it
 * was the last. */
void tti_lose_lane(tti_messenger *m, tti_lane *lane, const tti_cause *why);
/** The driver has slept: close the links that were lost meanwhile. */
void tti_close_parting(tti_messenger *m);
/** End a group here, for ever. */
void tti_finish_group(tti_messenger *m, uint32_t group, const tti_cause *why);
/** A link was made: tell its peer which of the groups it is in have failed here meanwhile. */
void tti_tell_failures(tti_messenger *m, tti_lane *lane);
/** End a group because of what this rank has found while nobody may be in a call: tell all members, too. */
void tti_fail_group(tti_messenger *m, uint32_t group, const tti_cause *why);
/** The same with what another member has told: the others are told so, unless this rank has ended its part itself. */
void tti_hear_failure(tti_messenger *m, uint32_t group, const tti_cause *why);
/** The entry of a group, made if there is none; NULL without memory. */
tti_known_group *tti_know_group(tti_mailbox *mailbox, uint32_t group);
/** A send of the messenger's own, whose data is copied, and for which nobody waits: false without memory. */
bool tti_queue_own(tti_messenger *m, tti_lane *lane, const tti_frame *frame, const void *data);
/** Where rank stands in a list of n; n: nowhere. */
int tti_index_of(const int *ranks, int n, int rank);
/** Whether members i and j of n are 1, 2, 4, ... apart in either direction. */
bool tti_are_neighbours(int i, int j, int n);

/* agree.c */

/** A message of a collective that was not asked for, or came in the place of another: whether it is of another call than
 * this rank's of that number, of which all are told soon. */
bool tti_compare_frame(tti_messenger *m, int peer, const tti_frame *frame, bool in_place);
/** The group, if it is alive and its calls are compared; else NULL. */
tti_known_group *tti_compared_group(tti_messenger *m, uint32_t group);
/** Whether the group is about to be finished, and messages of its collectives are worth nothing any more. */
bool tti_is_in_doubt(const tti_messenger *m, uint32_t group);
/** Those that nobody has answered in time are certain. */
void tti_look_at_doubts(tti_messenger *m, int64_t now_ns);
/** The end of a look at what has come: doubts, and how group has ended, if it has. Lock held, and released. */
tutti_status tti_messenger_end_look(tti_messenger *m, uint32_t group);
/** The group is finished. */
void tti_end_doubt(tti_messenger *m, tti_known_group *known);
/** The connector's thread, ten times a second: see to what others tell a rank that waits for nobody. */
void tti_messenger_look_idle(tti_messenger *m);
/** Take what stands first in a lane: a notice, or a wait that is told. */
void tti_messenger_drain_one(tti_messenger *m, tti_lane *lane);

/* waits.c */

/** Tell a wait to a member. */
void tti_queue_wait(tti_messenger *m, tti_lane *lane, const tti_wait *wait);
enum { TTI_INSTEAD_TEXT_MAX = 216 };
/** "; it waits in all_reduce #7 (sum, 3 f32) on group 'world'": the call that rank is known to wait in now; "": none is. */
const char *tti_waits_instead(tti_messenger *m, int rank, char out[TTI_INSTEAD_TEXT_MAX]);
/** This rank has waited for long in a blocking receive from a member: as tti_messenger_tell_wait(). number: what this said
 * when it was first told; 0: now. */
uint64_t tti_tell_receive(tti_messenger *m, const tti_request *request, uint64_t number);
void     tti_end_receive(tti_messenger *m, const tti_request *request, uint64_t number);
/** A wait that a member has told has come as a whole. */
void tti_take_wait(tti_messenger *m, const tti_lane *lane);

/** Whether a message of the group can still come from anybody. */
bool tti_somebody_is_there(const tti_messenger *m, uint32_t group);

#endif

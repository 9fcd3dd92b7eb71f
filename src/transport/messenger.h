/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/messenger.h - tagged messages between the members of a mesh.
 *
 * A message is matched by (channel, sender, tag): equal keys arrive in the order sent, others in any
 * order. Sending is eager: a message nobody has asked for yet is kept in the receiver's memory, however
 * many there are, as it comes: 4 MiB, or twice what has come, are taken for one. Calls of any thread
 * drive all messages under way; while some are and nobody waits, a thread of the messenger's own does. */
#ifndef TTI_TRANSPORT_MESSENGER_H
#define TTI_TRANSPORT_MESSENGER_H

#include "transport/mesh.h"
#include "watch/waits.h"
#include <tutti/dtype.h>

typedef struct tti_messenger tti_messenger;
typedef struct tti_request   tti_request;
typedef struct tti_window    tti_window; /* window.h */

/** Keeps the messages of a group's collectives apart from its point-to-point, and groups apart. */
typedef enum tti_plane {
    TTI_PLANE_P2P = 0,
    TTI_PLANE_COLLECTIVE = 1,
    TTI_PLANE_REPLY = 4, /* what a window's owner answers */
} tti_plane;

typedef struct tti_channel {
    uint32_t  group;
    tti_plane plane;
} tti_channel;

/** What both ends must agree on besides the key. */
typedef struct tti_parcel {
    int         peer; /* rank in the mesh; receive: -1 is any member */
    int         tag;
    uint8_t     dtype;
    uint64_t    word; /* collectives: the control word; 0 otherwise */
    uint64_t    what; /* collectives: what it is, for texts of a peer that called another; 0 otherwise */
    void       *data; /* borrowed until the request has ended */
    size_t      bytes;
    bool        at_most; /* receive: the message may be shorter */
    int         beside;  /* send: so many others send as much to the same peer, or get as much from this rank, as far as is known */
} tti_parcel;

tutti_status tti_messenger_open(tti_mesh *mesh, tti_messenger **messenger_out);
/** Ends every request with TUTTI_E_ABORTED. The mesh outlives it. NULL is fine. */
void tti_messenger_close(tti_messenger *messenger);
/** Whether there is a link to a member now. Where one was needed and is not made, its process does not run
 * or cannot be reached: it would have been taken without a call of that member's. */
bool tti_messenger_connected(tti_messenger *messenger, int rank);
/** How many TCP connections to other members there are now. For tests and tools. */
int tti_messenger_connections(tti_messenger *messenger);

enum { TTI_LISTENS_TEXT_MAX = 80 };

/** Whether nothing has connected us with a member of another host yet; then text_out is where it listens. */
bool tti_messenger_unconnected(tti_messenger *messenger, int rank, char *text_out, size_t bytes);

enum { TTI_WAY_TEXT_MAX = 384 };

/** What is known of the TCP connection with a member, for the end of a text: "\n  connection: 3 retransmissions, ...";
 * "" where there is none. */
const char *tti_messenger_describe(tti_messenger *messenger, int rank, char out[TTI_WAY_TEXT_MAX]);

/** This rank is about to begin a message of the program's, for those that ask what it did last. */
void tti_messenger_note_message(tti_messenger *messenger, tti_channel channel, const tti_parcel *parcel, bool is_send);

/** Begin to send or receive; never blocks. The request is the caller's until tti_request_release(). */
tutti_status tti_messenger_send(tti_messenger *messenger, tti_channel channel, const tti_parcel *parcel,
                                tti_request **request_out);
tutti_status tti_messenger_recv(tti_messenger *messenger, tti_channel channel, const tti_parcel *parcel,
                                tti_request **request_out);

/** Whether a message could be done now, as a whole, and is: then there is no request. Never blocks. */
bool tti_messenger_at_once(tti_messenger *messenger, tti_channel channel, const tti_parcel *parcel, bool is_send);

/** One of several messages. */
typedef struct tti_post {
    tti_parcel   parcel;
    bool         is_send;
    tti_request *request; /* once it is begun; NULL: it is done, as tti_messenger_at_once() says */
} tti_post;

/** Begin n messages in their order, under one lock; never blocks. n_out: how many were; if not all, why the next one was
 * not. */
tutti_status tti_messenger_post_all(tti_messenger *messenger, tti_channel channel, tti_post *posts, int n, int *n_out);

/** When a transfer has lasted too long. */
typedef struct tti_expiry {
    int64_t timeout_ms; /* negative: never */
    /* Called once, without a lock, this thread's last error naming the peer: it must have the request ended, as
     * by tti_messenger_fail(). */
    void (*expired)(void *ctx, int64_t waited_ns);
    void *ctx;
} tti_expiry;

/** Send or receive on the calling thread, to the end: what tti_request_wait() says, and after expired() was called
 * TUTTI_E_TIMEOUT. parcel's data is in use by nobody when this returns. Allocates nothing, and reads no clock unless
 * it has to wait. peer_out: mesh rank of the sender, or the receiver. */
tutti_status tti_messenger_transfer(tti_messenger *messenger, tti_channel channel, const tti_parcel *parcel,
                                    bool is_send, const tti_expiry *expiry, int *peer_out);

/** A call of the group has failed with st, this thread's last error saying why. If that is that a connection has ended, wait for a
 * moment, to deadline_ns at most, whether its rank is found to have died or left, and have that for the words: the cause, and what it
 * did last. aborted: ends the wait; NULL: the group's own abort does. Without a lock; never on the thread that drives for others.
 * Returns st. */
tutti_status tti_messenger_learn(tti_messenger *messenger, uint32_t group, const _Atomic bool *aborted, int64_t deadline_ns,
                                 tutti_status st);

/** Wait for a request to end: what it came to, words included, every time it is asked; TUTTI_E_TIMEOUT at
 * the deadline, naming the peer, with the request still under way. A receive ends with TUTTI_E_MISMATCH
 * when bytes, unless those are at most, dtype or word differ from the message's (which is consumed), with TUTTI_E_PEER when the
 * peer is gone. Legal after tti_messenger_close(). */
tutti_status tti_request_wait(tti_request *request, int64_t deadline_ns);
bool         tti_request_ended(tti_request *request);

/** The longest round trip to any of ranks[n], of those that there are connections to, in microseconds: the shortest that was seen on
 * each. 0: there are none, or nobody knows. A system call for each; any thread. */
uint32_t tti_messenger_trip_us(tti_messenger *messenger, const int *ranks, int n);

/** How many requests have ended so far, of all there were; it wraps. For tti_request_wait_any(). */
uint32_t tti_messenger_ended(const tti_messenger *messenger);
/** Wait until request has ended, or any other since tti_messenger_ended() was seen: what has is for the caller to find
 * out, who looked after that. False at the deadline. in_background: leave the core to others as soon as nothing moves. */
bool tti_request_wait_any(tti_request *request, uint32_t seen, int64_t deadline_ns, bool in_background);
/** Move what can be moved now, unless another thread sees to it. Never blocks. */
void tti_messenger_advance(tti_messenger *messenger);

/** Call fn(ctx) once, after the request has ended, on whatever thread ends it, or at once if it has. fn runs
 * with the messenger's lock held, or none: it must be short and call nothing of the messenger. Once per
 * request, before its release, which does not take it back. Not after tti_messenger_close(), unless the
 * request has ended. */
void tti_request_notify(tti_request *request, void (*fn)(void *ctx), void *ctx);
enum { TTI_REQUEST_ROOM = 32 };

/** Memory for whoever holds a request, TTI_REQUEST_ROOM bytes, aligned for anything; it goes when he releases it. */
void *tti_request_room(tti_request *request);
/** Mesh rank of the sender of a completed receive, the peer otherwise. */
int tti_request_peer(const tti_request *request);
/** Control word that came with the message a receive was matched with; 0 before. */
uint64_t tti_request_word(const tti_request *request);
uint64_t tti_request_what(const tti_request *request);
/** Drop a request. One under way goes on; its data stays borrowed until it has ended. NULL is fine. */
void tti_request_release(tti_request *request);

/** Numbers below it are entered in growing order; from it on in any order, which costs 4 bytes each for the
 * life of the messenger. */
#define TTI_GROUP_ANY_ORDER UINT32_C(0x80000000)

/** Say who is in a group, before its first message; peers[] are mesh ranks. A group that is not entered
 * works too, but nobody knows when it is deserted. */
tutti_status tti_messenger_enter(tti_messenger *messenger, uint32_t group, const int *ranks, int n_ranks);
/** Finish a group and forget it. */
void tti_messenger_leave(tti_messenger *messenger, uint32_t group);

/** Finish a group: every request of it (both planes) ends with TUTTI_E_ABORTED, and every later one;
 * messages that still come for it are dropped. Its number must not be used again. */
void tti_messenger_abort(tti_messenger *messenger, uint32_t group);

/** Finish a group because this rank has failed in it, and tell peers[n_peers] (mesh ranks, this one is
 * skipped): there too every request ends, now and later, with status and the words of this thread's last
 * error. Never blocks; a peer that cannot be told finds out by itself. status may be TUTTI_E_ABORTED:
 * unlike after tti_messenger_abort() the others are told so. */
void tti_messenger_fail(tti_messenger *messenger, uint32_t group, tutti_status status, const int *peers,
                        int n_peers);

/** Whether a member's call is another than this rank's of that number: then words_out says so. theirs is what is known of it:
 * its count may be TTI_CALL_COUNT_UNKNOWN, and its number of 40 bits. in_place: its message came in the place of one of
 * this rank's latest call, so that they differ in any case. ours_out: what it was compared with. Called with the messenger's
 * lock held, on any thread: short, and calls nothing of it. */
typedef bool tti_differs(void *ctx, int peer, const tti_call_note *theirs, bool in_place, tti_call_note *ours_out,
                         char *words_out, size_t bytes);

/** What compares the calls of a group. All is used with the messenger's lock held, as differs is. */
typedef struct tti_comparer {
    tti_differs          *differs;
    void (*describe)(void *ctx, const tti_call_note *note, char *out, size_t bytes); /* a call, and the group, for texts */
    const tti_call_board *board; /* of this rank's calls */
    _Atomic bool         *finished; /* set, with release order, when the group is, but for an abort of this rank's */
    const char           *name; /* the group's: numbers that have one name in common are ways of one group, whose calls come one by one */
    void                 *ctx;
} tti_comparer;

/** Compare what is heard of the calls of a group, until it is left, or comparer, which is copied, is NULL. Where calls differ
 * the group is finished with TUTTI_E_MISMATCH, on all members.
 * @errors TUTTI_E_NOMEM */
tutti_status tti_messenger_compare(tti_messenger *messenger, uint32_t group, const tti_comparer *comparer);
/** A thread makes calls of groups: tti_self(); TTI_OTHERS: some do that nobody knows yet. */
void tti_messenger_note_caller(tti_messenger *messenger, uintptr_t thread);
#define TTI_OTHERS ((uintptr_t)1)
/** This rank has waited for long in a call: show it and tell the members, and look at what they have told. The call does not
 * end without the part of rank needs of the mesh, or as tti_needs says. To be said again every 100 ms or so. Never blocks. */
void tti_messenger_tell_wait(tti_messenger *messenger, uint32_t group, const tti_call_note *note, int needs);
/** That wait has ended, one way or the other: before this rank does anything else. */
void tti_messenger_wait_over(tti_messenger *messenger, uint32_t group, uint64_t seq);
/** This rank makes a group, `making`, called name, for which it waits for rank: whether that one waits for this one meanwhile, in a
 * call of another group that this rank has not come to. TUTTI_E_MISMATCH says so, once and for all only if rank has not come to the
 * group either, which the caller looks at; then tti_messenger_end_crossed() ends that other group, on all members, with this
 * thread's last error.
 * @errors TUTTI_E_MISMATCH */
tutti_status tti_messenger_look_crossed(tti_messenger *messenger, int rank, uint32_t making, const char *name, uint32_t *group_out);
void         tti_messenger_end_crossed(tti_messenger *messenger, uint32_t group);

/** Who waits in a call of a group that this rank does not come to. */
typedef struct tti_missed {
    int      index; /* among those that this one waits for */
    uint64_t seq;   /* of the call */
} tti_missed;

/** This rank has left the calls of group for what `instead` says, for which it waits for those of ranks[n] that are awaited: whether one
 * of them waits in a call of the group that this one has not come to. TUTTI_E_MISMATCH says so, with both: the call may end yet by
 * somebody's death. If it does not, tti_messenger_end_crossed() ends the group, on all members. Moves what others tell; never blocks.
 * @errors TUTTI_E_MISMATCH */
tutti_status tti_messenger_look_missed(tti_messenger *messenger, const int *ranks, const bool *awaited, int n, uint32_t group,
                                       const char *instead, tti_missed *missed_out);

/** As tti_messenger_heard(), but takes no messages, only what members tell. */
tutti_status tti_messenger_listen(tti_messenger *messenger, uint32_t group);

/** For those who wait for members of a group in other ways than by its messages: TUTTI_OK, or what another member was
 * heard to have failed with, in its words. Moves what can be moved; never blocks. */
tutti_status tti_messenger_heard(tti_messenger *messenger, uint32_t group);

#endif

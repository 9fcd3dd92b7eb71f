/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/lane.h - the way to one peer: what waits to be sent, and the message that is arriving.
 *
 * Everything here runs under the messenger's lock. */
#ifndef TTI_TRANSPORT_LANE_H
#define TTI_TRANSPORT_LANE_H

#include "transport/link.h"
#include "transport/request.h"
#include "transport/tcp/handshake.h"

/** A message that came before anybody asked for it. */
typedef struct tti_kept {
    struct tti_kept *prev, *next;
    int              peer;
    tti_frame        frame;
    size_t           room;   /* of data: grows with what comes, whatever the frame says */
    size_t           have;   /* payload bytes that have come */
    tti_request     *wanted; /* matched while still arriving */
    bool             given_up; /* offered to nobody any more; goes when it is complete */
    uint8_t          data[];
} tti_kept;

/** Frames on these planes carry no message. NOTICE: a peer has failed in the group, tag is the status, the
 * payload its words. WINDOW: one-sided access, window_core.h has the verbs. CALL: in which call a peer waits, the payload is
 * a tti_wait. */
enum { TTI_PLANE_NOTICE = 2, TTI_PLANE_WINDOW = 3, TTI_PLANE_CALL = 5, TTI_NOTICE_MAX = 448 };

/** A group that this member has entered, or that has failed here. Numbers only grow. */
typedef struct tti_known_group {
    uint32_t  group;
    tti_cause finished; /* TUTTI_OK: alive; else its requests end with this, its messages are dropped */
    bool      told;     /* this member has told the others, or passed on what it was told */
    bool      aborted;  /* here, also where another cause was the first: who waits for more words stops */
    int       n_ranks;  /* 0: not told */
    int      *ranks;    /* [n_ranks] mesh ranks */

    /* agree.c */
    bool         compared; /* by comparer */
    tti_comparer comparer;
    tti_cause   *doubt;    /* why the group is finished soon; NULL: it is not */
    int64_t      doubt_ns; /* when, at the latest */
} tti_known_group;

/** Memory that other members have this process take: messages that nobody has asked for yet, and answers to gets that have not
 * gone. held.c. */
struct tti_held {
    uint64_t bytes; /* so far */
    uint64_t most;  /* 0: no bound */
};
typedef struct tti_held tti_held;

/** So many bytes more, for a peer, which are for `what` ("a message of 7 bytes that nobody has asked for"). False: that would be too
 * much, and why says so. */
bool tti_hold(tti_held *held, int peer, uint64_t bytes, const char *what, tti_cause *why);
/** They are free again. */
void tti_let_go(tti_held *held, uint64_t bytes);
/** What TUTTI_HELD_MAX says, or half of the memory that there is.
 * @errors TUTTI_E_ARG */
tutti_status tti_held_begin(tti_held *held);

/** Receives that were posted and messages that were kept, each in order. */
typedef struct tti_mailbox {
    tti_messenger   *m; /* whose it is */
    tti_request_list posted;
    tti_kept        *first, *last;
    tti_held         held;
    tti_known_group *groups; /* [n_groups] */
    size_t           n_groups;
    int64_t          last_entered; /* the highest number below TTI_GROUP_ANY_ORDER ever entered; -1: none */
    uint32_t        *left;         /* those from there on that were left, ascending */
    size_t           n_left;
    bool             has_notice;   /* one came and has not been acted on: draining stops there */
    bool             notice_is_ours; /* or this rank has found it: the others are to be told */
    uint32_t         notice_group;
    tti_cause        notice;
} tti_mailbox;

typedef struct tti_lane {
    int              peer;
    const char      *where; /* its host and pid, for texts */
    tti_way          way;
    tti_link        *link;   /* there is one while way is OPEN */
    tti_link        *parting; /* the one that was lost while somebody slept on it, who closes it; NULL: none */
    int64_t          due_ns; /* of a way that is WANTED: when an attempt begins */
    tti_request_list queue;
    int              wanted; /* receives that wait for this peer */
    uint64_t         n_sent;  /* point-to-point messages to the peer that were begun, from the first on: waits.c */
    uint64_t         n_taken; /* and those of the peer that have come as a whole */
    int              polled, polled_end; /* where in the poll set its sockets stand; equal: nowhere */
    /* The message that is arriving: its frame, then into a receive, a kept message or nowhere. */
    tti_frame    frame;
    size_t       frame_have;
    size_t       body_have;
    tti_request *into;
    tti_kept    *kept;
    uint8_t     *place; /* of a put's payload, in a window */
    bool         hands_over; /* what has come is to be looked at before more is read */
    char         notice[TTI_NOTICE_MAX];
    bool         told; /* a notice has been queued for the peer */
    tti_cause    gone; /* why way is LOST */
    int64_t      lost_stamp_ms; /* when the peer's host had last spoken then: mourn.c */
} tti_lane;

/** Whether the way is a socket: a look at it is a system call, and poll tells when one is worth while. There is a
 * link. */
static inline bool tti_lane_is_socket(const tti_lane *lane)
{
    return lane->link->ops->watch == NULL;
}

/** Whether something of it was read ahead, of which poll tells nothing. There is a link. */
static inline bool tti_lane_is_ahead(const tti_lane *lane)
{
    return lane->link->ops->is_ahead != NULL && lane->link->ops->is_ahead(lane->link);
}

/** What is known of the way, as tti_messenger_describe() says. */
const char *tti_lane_describe(const tti_lane *lane, char out[TTI_WAY_TEXT_MAX]);
/** Whether the net takes nothing of it any more; why, as below. */
bool tti_lane_is_cut(const tti_lane *lane, tti_cause *why);
/** Send what fits now, and end what has gone. Moved is set when bytes went. False: the link is broken, why
 * says how; the caller drops the lane. */
bool tti_lane_flush(tti_lane *lane, bool *moved, tti_cause *why);
/** Take what has come, at most a bounded number of bytes; messages that no receive waits for only if all is
 * asked for. As above. */
bool tti_lane_drain(tti_lane *lane, tti_mailbox *mailbox, bool all, bool *moved, tti_cause *why);

/** The oldest posted receive for a frame of peer's, or NULL. */
tti_request *tti_mailbox_find(const tti_mailbox *mailbox, int peer, const tti_frame *frame);
/** Whether a message of peer's is waited for, or whatever peer sends is served. */
bool tti_mailbox_wants(const tti_mailbox *mailbox, int peer);
/** A receive, in no list any more, takes a message on; it fails here if it asked for something else. */
bool tti_accept_match(tti_request *request, int peer, const tti_frame *frame);
/** Post a receive: serve it from the kept messages, or append it. */
void tti_mailbox_post(tti_mailbox *mailbox, tti_request *request);
/** The group of that number if it is known, else NULL. */
tti_known_group *tti_mailbox_group(const tti_mailbox *mailbox, uint32_t group);
/** Why messages of a group are dropped; NULL: they are not. */
const tti_cause *tti_mailbox_finished(const tti_mailbox *mailbox, uint32_t group);
/** Remember that a group from TTI_GROUP_ANY_ORDER on was left; false: no memory. */
bool tti_mailbox_note_left(tti_mailbox *mailbox, uint32_t group);
/** Drop the kept messages of a group. */
void tti_mailbox_drop_group(tti_mailbox *mailbox, uint32_t group);
void tti_mailbox_release(tti_mailbox *mailbox);
void tti_kept_free(tti_mailbox *mailbox, tti_kept *kept);

#endif

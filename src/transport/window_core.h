/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/window_core.h - windows as the files of the messenger see them.
 *
 * Every function here is called with the messenger's lock held. */
#ifndef TTI_TRANSPORT_WINDOW_CORE_H
#define TTI_TRANSPORT_WINDOW_CORE_H

#include "transport/messenger_core.h"
#include "transport/window.h"

/** Frames on TTI_PLANE_WINDOW: tag is the window's number in the group, dtype one of these. */
typedef enum tti_window_verb {
    TTI_VERB_PUT = 1,    /* word: byte offset; the payload goes there */
    TTI_VERB_GET = 2,    /* word: byte offset, reserved: bytes; answered on TTI_PLANE_REPLY */
    TTI_VERB_SIGNAL = 3, /* no payload */
    TTI_VERB_FLUSH = 4,  /* answered with a message of 0 bytes */
} tti_window_verb;

/** One counter: how many signals a member has sent here. On lines of their own. */
typedef struct tti_signals {
    _Alignas(TTI_LINE) _Atomic uint64_t sent;
} tti_signals;

/** Of each member's part, in its heap, zeroed. */
typedef struct tti_window_control {
    _Alignas(TTI_LINE) _Atomic uint32_t closed; /* written by the owner, once */
    _Alignas(TTI_LINE) _Atomic uint32_t inside; /* threads of the owner's process, of other ranks, that copy */
    tti_signals signals[]; /* [mesh size], by mesh rank of the sender */
} tti_window_control;

/** A peer as this member sees it. Constant after attach, but for used. */
typedef struct tti_window_peer {
    bool                member;
    bool                ours;    /* a thread of this process */
    _Atomic bool        used;    /* on another host: it was sent a put or a signal */
    uint64_t            bytes;
    uint8_t            *memory;  /* NULL: on another host, or no bytes */
    tti_window_control *control; /* NULL: on another host */
} tti_window_peer;

struct tti_window {
    tti_messenger   *m;
    /* Guarded by the messenger's lock. */
    tti_window      *next;   /* among the messenger's */
    bool             closed; /* nothing is served any more; no thread of another rank is inside */
    uint64_t        *taken;  /* [mesh size] of each peer's signals */
    tti_request_list waits;  /* for signals, in order */
    /* Constant. */
    uint32_t         group;
    uint32_t         id;
    bool             serving; /* it has members on other hosts */
    int              n_ranks;
    int             *ranks; /* [n_ranks] mesh ranks */
    uint8_t         *data;
    size_t           bytes;
    uint64_t         control_at; /* in the own heap */
    tti_window_control *control;
    tti_window_peer *peers; /* [mesh size] */
    tti_mutex        order; /* a get's receive and its request go out together */
};

/** A frame on the window plane has come: serve it, and set the lane's place if a payload follows. False: it is
 * nonsense, and why says how. */
bool tti_window_take_frame(tti_messenger *m, tti_lane *lane, tti_cause *why);
/** End the waits whose signals have come: whether any did. */
bool tti_windows_look(tti_messenger *m);
/** A group is finished: no peer writes into its windows any more when this returns. */
void tti_windows_finish(tti_messenger *m, uint32_t group, const tti_cause *why);
/** A peer is lost (-1: all are): nobody waits for its signals any more. */
void tti_windows_lose(tti_messenger *m, int peer, const tti_cause *why);

#endif

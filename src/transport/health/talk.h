/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/health/talk.h - a stream of digests with a rank of another host. */
#ifndef TTI_TRANSPORT_HEALTH_TALK_H
#define TTI_TRANSPORT_HEALTH_TALK_H

#include "transport/health/digest.h"

typedef struct tti_talk {
    int        rank;
    tti_handle stream;
    int64_t    heard_ns; /* awake_ns of the book when something last came, or it began */
    int64_t    due_ns;   /* when the next digest goes */
    bool       urgent;   /* one goes as soon as it can */
    uint8_t   *in, *out; /* of room for the largest digest */
    size_t     have;     /* bytes of in */
    size_t     size, sent; /* of out */
} tti_talk;

/** How a stream has ended. */
typedef enum tti_talk_end {
    TTI_TALK_GOES_ON,
    TTI_TALK_GOODBYE, /* the rank has left */
    TTI_TALK_HUNG_UP, /* the rank does not want this stream */
    TTI_TALK_CUT,     /* it ended without a goodbye: the rank's process may have */
    TTI_TALK_RESET,   /* the other end knows nothing of it: the same, if the net was well */
    TTI_TALK_FAILED   /* the net has failed, or nonsense came */
} tti_talk_end;

/** Take a stream over. False: no memory, and the stream is the caller's. */
bool tti_talk_begin(tti_talk *talk, const tti_book *book, int rank, tti_handle stream);
/** Close it. */
void tti_talk_release(tti_talk *talk, tti_port *port);

/** Send what is due, and what is left of it. */
tti_talk_end tti_talk_send(tti_talk *talk, tti_port *port, const tti_book *book);
/** Take in what is there. */
tti_talk_end tti_talk_receive(tti_talk *talk, tti_port *port, tti_book *book);
/** Send a last digest of that kind, if there is room for it now: false, if there is none. */
bool tti_talk_say_last(tti_talk *talk, tti_port *port, const tti_book *book, tti_digest_kind kind);
/** Whether a part of a digest waits for room. */
bool tti_talk_is_stuck(const tti_talk *talk);

#endif

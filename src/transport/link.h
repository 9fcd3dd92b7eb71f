/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/link.h - a reliable stream of bytes in both directions between two members.
 *
 * Three implementations: shm/ring_link.c (rings in shared heaps), tcp/tcp_link.c (a socket) and carried/carried.c (a transport of
 * a plug-in). One thread at a time uses a link; the messenger's lock sees to that. */
#ifndef TTI_TRANSPORT_LINK_H
#define TTI_TRANSPORT_LINK_H

#include "base/port.h"
#include "transport/frame.h"

typedef struct tti_link tti_link;

typedef struct tti_link_ops {
    const char *name; /* "shm", "tcp" */
    size_t whole_max; /* payloads up to it are taken, and handed over, with their frame or not at all; 0: none are */
    /* Take as many bytes as fit now: their number, or -EAGAIN, or -errno when the link is broken. Parts are what
     * is left of a frame and its payload; a frame that was begun must be gone on with. */
    int64_t (*send)(tti_link *link, const tti_part *parts, int n_parts);
    /* Bytes that are here now: their number, 0 at the end of the stream, -EAGAIN, or -errno. At most what is left
     * of a frame, or of its payload, is asked for. */
    int64_t (*recv)(tti_link *link, void *out, size_t bytes);
    /* What to poll while waiting; TTI_NO_HANDLE: the peer rings this member's bell instead. */
    tti_handle (*handle)(const tti_link *link);
    void (*close)(tti_link *link);
    /* Optional; NULL: there is none. The word in shared memory that changes when more can be received, or sent
     * (for_send), and what it said when that was not so. It may be looked at without the lock, as long as there is
     * the mesh. NULL: look by sending or receiving. */
    const _Atomic uint64_t *(*watch)(tti_link *link, bool for_send, uint64_t *seen_out);
    /* Optional; NULL: sending copies. The buffer of a payload that was begun goes back to its user: from here on
     * nothing is read from it, and send is called with another that holds the same. */
    void (*retract)(tti_link *link);
    /* Optional, both or none. The frame that recv would begin now, which stays in the link; NULL: none is there as a
     * whole. Take it out, and what is here of its payload: as recv, but 0 if the payload is empty. */
    const tti_frame *(*next)(tti_link *link);
    int64_t (*body)(tti_link *link, void *out, size_t bytes);
    /* Optional; NULL: never. Whether recv has something that the handle does not tell of, because it was read ahead. */
    bool (*is_ahead)(const tti_link *link);
    /* Optional; NULL: handle. What to poll for room to send. Both may change with every send and recv. */
    tti_handle (*out_handle)(const tti_link *link);
    /* Optional. What is known of the way, for texts: "3 retransmissions, ..." in at most bytes, "" for nothing. */
    void (*describe)(const tti_link *link, char *out, size_t bytes);
    /* Optional; NULL: never. Whether a part of the way, which has several, has not been heard of for long: then describe tells of
     * that one, whatever else has ended. */
    bool (*is_quiet)(const tti_link *link);
    /* Optional; NULL: never. Whether the net takes nothing any more, which no send or recv tells: a system call. */
    bool (*is_cut)(const tti_link *link);
    /* Optional; NULL: never. Whether something that was sent has not arrived, and goes on: to a peer that was heard of in the last
     * heard_ms, and takes it. A few segments that had no answer yet count when they are sent again. System calls. */
    bool (*is_delivering)(const tti_link *link, uint32_t heard_ms);
    /* Optional. What is sent next goes to a member to whom so many send at a time, this one included; 1: nobody else is known
     * to. It is told of each message, before its first byte. */
    void (*share)(tti_link *link, int n_senders);
    /* Optional; NULL: unknown. How long ago, in ms, bytes last came from the peer; UINT32_MAX: unknown. System calls. */
    uint32_t (*data_ms)(const tti_link *link);
    /* Optional; NULL: unknown. The shortest round trip that was seen, in microseconds; 0: unknown. A system call. */
    uint32_t (*trip_us)(const tti_link *link);
} tti_link_ops;

struct tti_link {
    const tti_link_ops *ops; /* first member of every implementation */
};

#endif

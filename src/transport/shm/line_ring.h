/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/shm/line_ring.h - frames from one member to another of its host, small payloads with them.
 *
 * One writer, one reader. line_ring.c has the layout and the memory order. */
#ifndef TTI_TRANSPORT_SHM_LINE_RING_H
#define TTI_TRANSPORT_SHM_LINE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include "transport/frame.h"
#include "transport/heap.h"
#include "transport/shm/pull.h"

enum {
    TTI_LINE_RING_LINES = 1024,
    TTI_LINE_BYTES = 64,
    TTI_LINE_DATA = TTI_LINE_BYTES - 8,
    /** Larger payloads go through the bulk ring. */
    TTI_NEAR_MAX = 512,
};

typedef struct tti_line {
    _Atomic uint64_t word; /* of a record's first line: its number, with facts of the frame; of others: old */
    uint8_t          data[TTI_LINE_DATA];
} tti_line;

_Static_assert(sizeof(tti_line) == TTI_LINE_BYTES, "a line is a cache line");
_Static_assert((TTI_LINE_RING_LINES & (TTI_LINE_RING_LINES - 1)) == 0, "wrapping an index is a mask");

/** In the writer's heap, zeroed when it is made. */
typedef struct tti_line_ring {
    _Alignas(TTI_LINE) _Atomic uint64_t head;    /* written by the reader: lines before it are free again */
    _Alignas(TTI_LINE) _Atomic uint64_t bulk_at; /* written by the writer, once: where its bulk ring is */
    uint64_t proof_at; /* written by the writer before the ring is published: where it has its heap's token */
    _Alignas(TTI_LINE) tti_offer_word offer; /* pull.c */
    _Alignas(TTI_LINE) tti_line lines[TTI_LINE_RING_LINES];
} tti_line_ring;

typedef struct tti_line_writer {
    tti_line_ring *ring;
    uint64_t       tail;
    uint64_t       head; /* as it was last read: shared memory is looked at only when room seems to end */
    bool           fenced; /* publish.h */
} tti_line_writer;

typedef struct tti_line_reader {
    tti_line_ring *ring;
    uint64_t       head;
    uint64_t       told; /* what the ring's head says */
    uint64_t       seen; /* the word of the next line when there was no frame in it */
    bool           fenced; /* publish.h */
    uint64_t       address; /* of a far frame: what the writer gave */
    bool           open; /* a frame was taken, its record not yet */
    unsigned       lines; /* of the open record */
    unsigned       near;  /* its payload bytes here */
    unsigned       taken; /* of those */
    unsigned       skip;  /* bytes before the payload */
    unsigned       in_row; /* frames taken since there was none */
} tti_line_reader;

/** Whether a frame's payload comes with it. */
static inline bool tti_frame_is_near(const tti_frame *frame)
{
    return frame->bytes <= TTI_NEAR_MAX;
}

/** Write a frame, and its payload if it is near, or else address, for the reader. 0, -EAGAIN without room, -EPROTO
 * if the reader's word is impossible. */
int tti_lines_put(tti_line_writer *writer, const tti_frame *frame, const void *payload, uint64_t address);
/** Take the next frame. 0, -EAGAIN if none is there, -EPROTO if it is impossible. */
int tti_lines_frame(tti_line_reader *reader, tti_frame *frame_out);
/** Copy at most bytes of the payload that came with the frame: how many. The record ends with them. */
size_t tti_lines_take(tti_line_reader *reader, void *out, size_t bytes);

/** The word that changes when the next frame comes. */
static inline const _Atomic uint64_t *tti_lines_next(const tti_line_reader *reader)
{
    return &reader->ring->lines[reader->head & (TTI_LINE_RING_LINES - 1)].word;
}

#endif

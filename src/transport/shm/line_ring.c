/* SPDX-License-Identifier: BSD-3-Clause
 *
 * line_ring.c - frames from one member to another of its host, small payloads with them.
 *
 * Why     What a small message costs is the cache lines that have to move between two cores. Here a frame, its
 *         flag and 48 bytes of payload are one line; no counter lies beside it.
 * How     A record is one line, or several in a row, around the end if need be:
 *
 *           word | group, tag | [word, what] | [bytes, address] | payload ...  first line, 8 + 56 bytes
 *           old  | payload ...                                                others, 8 + 56 bytes
 *
 *         The word of a first line is the number of the line since the beginning, by which a reader knows that it
 *         is new, and facts of the frame: near bytes, dtype, plane, whether word and what follow, whether the
 *         payload comes another way. Payload never lies where a word is looked for, so no payload can pass
 *         for a record: what stands there is the word of an earlier round, which has a smaller number.
 * Order   Writer: payload, then the first line's word (release). Reader: the word (acquire), then the payload,
 *         then head (release). Writer: head (acquire) before it writes over what was read. head is moved only
 *         when a quarter of the ring was read, so that its line stays where it is most of the time; a writer that
 *         waits for room finds at least three quarters when everything was read.
 * Ahead   What moves a line is the first touch of it. The writer fetches lines long before it writes them: the reader
 *         is done with those. A reader that has found several frames in a row is behind, and fetches the next ones,
 *         which the writer is done with; one that waits for each would only take them away from the writer.
 * Trust   Of what the other side writes head must lie within a round behind tail, near bytes within a record. */
#include "transport/shm/line_ring.h"

#include <errno.h>
#include <string.h>
#include "transport/shm/publish.h"

enum {
    MASK = TTI_LINE_RING_LINES - 1,
    TELL = TTI_LINE_RING_LINES / 4,
    AHEAD = 8,       /* lines that come to the writer before it needs them */
    AHEAD_READ = 4,  /* and to a reader that is that far behind */
    NUMBER_BITS = 38,
    NEAR_SHIFT = NUMBER_BITS,
    NEAR_BITS = 12,
    DTYPE_SHIFT = NEAR_SHIFT + NEAR_BITS,
    PLANE_SHIFT = DTYPE_SHIFT + 8,
    PLANE_BITS = 3,
    WIDE_SHIFT = PLANE_SHIFT + PLANE_BITS,
    FAR_SHIFT = WIDE_SHIFT + 1,
    KEY_BYTES = 8,   /* group, tag */
    WIDE_BYTES = 16, /* word, what */
    FAR_BYTES = 16,  /* how many come another way, and the address */
    RECORD_MAX = (KEY_BYTES + WIDE_BYTES + TTI_NEAR_MAX + TTI_LINE_DATA - 1) / TTI_LINE_DATA,
};

#define NUMBER_MASK ((UINT64_C(1) << NUMBER_BITS) - 1)
#define BITS_OF(word, shift, bits) ((unsigned)((word) >> (shift)) & ((1U << (bits)) - 1))

_Static_assert(FAR_SHIFT < 64, "the word has room for all");
_Static_assert(TTI_NEAR_MAX < 1 << NEAR_BITS, "the word says how long a payload is");
_Static_assert(RECORD_MAX < TTI_LINE_RING_LINES - TELL, "a record fits what a reader gives back");

static unsigned lines_of(unsigned bytes)
{
    return (bytes + TTI_LINE_DATA - 1) / TTI_LINE_DATA;
}

/* ---- writing --------------------------------------------------------------------------------------- */

/* Room for n lines more: 0, -EAGAIN or -EPROTO. */
static int find_room(tti_line_writer *w, unsigned n)
{
    if (w->tail + n - w->head <= TTI_LINE_RING_LINES)
        return 0;
    w->head = atomic_load_explicit(&w->ring->head, memory_order_acquire);
    if (w->tail - w->head > TTI_LINE_RING_LINES)
        return -EPROTO;
    return w->tail + n - w->head <= TTI_LINE_RING_LINES ? 0 : -EAGAIN;
}

/* Most payloads are a few bytes, and calling for them costs more. */
static inline void copy(void *to, const void *from, size_t bytes)
{
    if (bytes == 4)
        memcpy(to, from, 4);
    else if (bytes == 8)
        memcpy(to, from, 8);
    else
        memcpy(to, from, bytes);
}

static void write_payload(tti_line_writer *w, unsigned skip, const uint8_t *from, size_t bytes)
{
    uint64_t at = w->tail;
    size_t   first = TTI_LINE_DATA - skip;

    if (first > bytes)
        first = bytes;
    copy(w->ring->lines[at & MASK].data + skip, from, first);
    for (from += first, bytes -= first; bytes >= TTI_LINE_DATA; from += TTI_LINE_DATA, bytes -= TTI_LINE_DATA)
        memcpy(w->ring->lines[++at & MASK].data, from, TTI_LINE_DATA);
    if (bytes > 0)
        memcpy(w->ring->lines[++at & MASK].data, from, bytes);
}

/* What stands before the payload, in the first line: how many bytes. */
static unsigned write_facts(uint8_t *data, const tti_frame *frame, bool wide, bool far, uint64_t address)
{
    unsigned at = KEY_BYTES;

    memcpy(data, &frame->group, sizeof frame->group);
    memcpy(data + sizeof frame->group, &frame->tag, sizeof frame->tag);
    if (wide) {
        memcpy(data + at, &frame->word, sizeof frame->word);
        memcpy(data + at + sizeof frame->word, &frame->what, sizeof frame->what);
        at += WIDE_BYTES;
    }
    if (far) {
        memcpy(data + at, &frame->bytes, sizeof frame->bytes);
        memcpy(data + at + sizeof frame->bytes, &address, sizeof address);
        at += FAR_BYTES;
    }
    return at;
}

static inline void fetch_line_to_write(const tti_line_writer *w, unsigned i)
{
    tti_line *line = &w->ring->lines[(w->tail + i) & MASK];

#if defined(__x86_64__)
    __asm__ __volatile__("prefetchw %0" : : "m"(*(const uint8_t *)line)); /* does nothing where there is none */
#else
    __builtin_prefetch(line, 1);
#endif
}

/* Lines of a record are the reader's when it is written: have them all come at once. */
static void fetch_to_write(const tti_line_writer *w, unsigned n)
{
    unsigned i;

    for (i = 0; i < n; i++)
        fetch_line_to_write(w, i);
}

int tti_lines_put(tti_line_writer *w, const tti_frame *frame, const void *payload, uint64_t address)
{
    const bool     far = !tti_frame_is_near(frame), wide = frame->word != 0 || frame->what != 0;
    const unsigned near = far ? 0 : (unsigned)frame->bytes;
    const unsigned lines = lines_of(KEY_BYTES + (wide ? WIDE_BYTES : 0) + (far ? FAR_BYTES : 0) + near);
    const int      err = find_room(w, lines);
    tti_line      *first = &w->ring->lines[w->tail & MASK];
    unsigned       skip;

    if (err != 0)
        return err;
    if (lines > 1)
        fetch_to_write(w, lines);
    skip = write_facts(first->data, frame, wide, far, address);
    if (near > 0)
        write_payload(w, skip, payload, near);
    tti_publish(&first->word,
                ((w->tail + 1) & NUMBER_MASK) | (uint64_t)near << NEAR_SHIFT | (uint64_t)frame->dtype << DTYPE_SHIFT |
                    (uint64_t)frame->plane << PLANE_SHIFT | (uint64_t)wide << WIDE_SHIFT |
                    (uint64_t)far << FAR_SHIFT,
                w->fenced);
    w->tail += lines;
    fetch_line_to_write(w, AHEAD);
    return 0;
}

/* ---- reading --------------------------------------------------------------------------------------- */

static void end_record(tti_line_reader *r)
{
    r->open = false;
    r->head += r->lines;
    if (r->head - r->told < TELL)
        return;
    r->told = r->head;
    tti_publish(&r->ring->head, r->head, r->fenced);
}

static unsigned read_facts(tti_line_reader *r, const uint8_t *data, bool wide, bool far, tti_frame *frame)
{
    unsigned at = KEY_BYTES;

    memcpy(&frame->group, data, sizeof frame->group);
    memcpy(&frame->tag, data + sizeof frame->group, sizeof frame->tag);
    if (wide) {
        memcpy(&frame->word, data + at, sizeof frame->word);
        memcpy(&frame->what, data + at + sizeof frame->word, sizeof frame->what);
        at += WIDE_BYTES;
    }
    if (far) {
        memcpy(&frame->bytes, data + at, sizeof frame->bytes);
        memcpy(&r->address, data + at + sizeof frame->bytes, sizeof r->address);
        at += FAR_BYTES;
    }
    return at;
}

int tti_lines_frame(tti_line_reader *r, tti_frame *frame_out)
{
    const tti_line *first = &r->ring->lines[r->head & MASK];
    const uint64_t  word = atomic_load_explicit(&first->word, memory_order_acquire);
    const bool      far = BITS_OF(word, FAR_SHIFT, 1) != 0;

    if (((word ^ (r->head + 1)) & NUMBER_MASK) != 0) {
        r->seen = word;
        r->in_row = 0;
        return -EAGAIN;
    }
    if (++r->in_row > AHEAD_READ)
        __builtin_prefetch(&r->ring->lines[(r->head + AHEAD_READ) & MASK]);
    r->near = BITS_OF(word, NEAR_SHIFT, NEAR_BITS);
    if (r->near > TTI_NEAR_MAX)
        return -EPROTO;
    *frame_out = (tti_frame){ .magic = TTI_FRAME_MAGIC, .version = TTI_FRAME_VERSION, .size = sizeof *frame_out,
                              .plane = (uint8_t)BITS_OF(word, PLANE_SHIFT, PLANE_BITS),
                              .dtype = (uint8_t)BITS_OF(word, DTYPE_SHIFT, 8), .bytes = r->near };
    r->skip = read_facts(r, first->data, BITS_OF(word, WIDE_SHIFT, 1) != 0, far, frame_out);
    if (far && (tti_frame_is_near(frame_out) || r->near > 0))
        return -EPROTO;
    r->lines = lines_of(r->skip + r->near);
    r->taken = 0;
    r->open = true;
    if (r->near == 0)
        end_record(r);
    return 0;
}

size_t tti_lines_take(tti_line_reader *r, void *out, size_t bytes)
{
    uint8_t *to = out;
    size_t   left;

    if (bytes > r->near - r->taken)
        bytes = r->near - r->taken;
    for (left = bytes; left > 0;) {
        const unsigned at = r->skip + r->taken;
        const unsigned in_line = at % TTI_LINE_DATA;
        const size_t   piece = left < TTI_LINE_DATA - in_line ? left : TTI_LINE_DATA - in_line;

        copy(to, r->ring->lines[(r->head + at / TTI_LINE_DATA) & MASK].data + in_line, piece);
        to += piece;
        left -= piece;
        r->taken += (unsigned)piece;
    }
    if (r->taken == r->near)
        end_record(r);
    return bytes;
}

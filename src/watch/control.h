/* SPDX-License-Identifier: BSD-3-Clause
 *
 * watch/control.h - what a rank says about the call it is in, so that others can compare.
 *
 * Control word: the first thing a rank publishes in any collective, whatever path follows.
 *
 *      63                    24 23                     0
 *     | low 40 bits of sequence | fingerprint of the call |
 *
 * The fingerprint covers kind, dtype, op, root, what it is a part of, count, and sizes of parts and segments where ranks must agree on
 * them: two ranks in the same step of a group have equal words or have called different things. What ranks need
 * not agree on, the sizes of all_to_all, gather_v and scatter_v, is not in it. The whole call goes to a small ring beside it, so that the text
 * of a mismatch can quote both. */
#ifndef TTI_WATCH_CONTROL_H
#define TTI_WATCH_CONTROL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <tutti/plugin/backend.h>

enum { TTI_CALL_RING = 32, TTI_CALL_TEXT_MAX = 160, TTI_CALL_MARK_BITS = 24 /* of a word: the fingerprint */ };

/** A call in four words, as it is kept in shared memory. */
typedef struct tti_call_note {
    uint64_t word;  /* control word */
    uint64_t what;  /* kind | dtype << 8 | op << 16 | mark of sizes << 24 | (root, or newcomers, + 1) << 32 | whole << 56 | has segments << 63 */
    uint64_t count; /* elements */
    uint64_t seq;
} tti_call_note;

/** One rank's board: written by its owner only, read by anybody at any time. */
typedef struct tti_call_board {
    _Atomic uint64_t word; /* of the call the owner is in, or was in last; 0: none yet */
    _Atomic uint64_t published; /* how many calls; the n-th is entry (n - 1) % TTI_CALL_RING, for numbers have gaps */
    _Atomic uint64_t ring[TTI_CALL_RING][4];
} tti_call_board;

tti_call_note tti_call_note_of(const tutti_call *call);

/** Publish a call: the ring entry, then the word with release order. Numbers grow. */
void tti_call_publish(tti_call_board *board, const tti_call_note *note);

/** The note of sequence seq, if board still has it. */
bool tti_call_find(const tti_call_board *board, uint64_t seq, tti_call_note *note_out);
/** The note of the call whose number has the 40 bits that word tells, and that of the last call, if board has it. */
bool tti_call_find_near(const tti_call_board *board, uint64_t word, tti_call_note *note_out);
bool tti_call_last(const tti_call_board *board, tti_call_note *note_out);

/** The 40 bits of the number that a word tells, and whether that of word a is later than that of b, which is near. */
static inline uint64_t tti_call_number_of(uint64_t word)
{
    return word >> TTI_CALL_MARK_BITS;
}

static inline bool tti_call_is_later(uint64_t a, uint64_t b)
{
    return (int64_t)((tti_call_number_of(a) - tti_call_number_of(b)) << TTI_CALL_MARK_BITS) > 0;
}

tutti_call_kind tti_call_kind_of(const tti_call_note *note);
/** Whether it has parts that differ from rank to rank. */
bool tti_call_has_parts(const tti_call_note *note);

/** In place of a count that is not known. */
#define TTI_CALL_COUNT_UNKNOWN UINT64_MAX

/** "all_reduce #12 (sum, 1000 f32)", "all_gather #13 (5 i64) of all_reduce_quantized", "grow_group #14 (2 newcomers)". */
void tti_call_describe(const tti_call_note *note, char out[TTI_CALL_TEXT_MAX]);

/** The root of the call, -1 if it has none; and the same call with its root in other numbers. */
int           tti_call_root(const tti_call_note *note);
tti_call_note tti_call_with_root(const tti_call_note *note, int root);

/** What differs between two calls of one number: "the roots". */
const char *tti_call_difference(const tti_call_note *a, const tti_call_note *b);

const char *tti_call_kind_name(tutti_call_kind kind);

/** Whether the owner of board has called something else than mine at mine's sequence; says what. False
 * while it has not come that far. */
bool tti_call_differs(const tti_call_board *board, const tti_call_note *mine, tti_call_note *other_out);

#endif

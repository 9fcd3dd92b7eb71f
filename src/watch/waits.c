/* SPDX-License-Identifier: BSD-3-Clause
 *
 * waits.c - a wait in eight words, and where it is shown.
 *
 * True    The version is odd from before the first word is written until after the last one, both by release order, so a
 *         reader who finds the same even version before and after its loads has what one show wrote. All are atomics:
 *         a torn wait is seen as one. */
#include "watch/waits.h"

enum { NEEDS = 4, FLAGS = 5, ANSWERS_GROUP = 6, ANSWERS_SEQ = 7 };

void tti_wait_pack(const tti_wait *wait, uint64_t out[TTI_WAIT_WORDS])
{
    out[0] = wait->note.word;
    out[1] = wait->note.what;
    out[2] = wait->note.count;
    out[3] = wait->note.seq;
    out[NEEDS] = (uint64_t)wait->group << 32 | (uint32_t)wait->needs;
    out[FLAGS] = wait->alone;
    out[ANSWERS_GROUP] = wait->answers_group;
    out[ANSWERS_SEQ] = wait->answers_seq;
}

void tti_wait_unpack(const uint64_t words[TTI_WAIT_WORDS], tti_wait *out)
{
    *out = (tti_wait){ .note = { .word = words[0], .what = words[1], .count = words[2], .seq = words[3] },
                       .group = (uint32_t)(words[NEEDS] >> 32), .needs = (int32_t)(uint32_t)words[NEEDS],
                       .alone = words[FLAGS] != 0, .answers_group = (uint32_t)words[ANSWERS_GROUP],
                       .answers_seq = words[ANSWERS_SEQ] };
}

void tti_wait_show(tti_wait_board *board, const tti_wait *wait)
{
    const uint64_t version = atomic_load_explicit(&board->version, memory_order_relaxed);
    uint64_t       words[TTI_WAIT_WORDS];
    int            i;

    tti_wait_pack(wait, words);
    atomic_store_explicit(&board->version, version + 1, memory_order_relaxed);
    for (i = 0; i < TTI_WAIT_WORDS; i++)
        atomic_store_explicit(&board->words[i], words[i], memory_order_release);
    atomic_store_explicit(&board->version, version + 2, memory_order_release);
}

void tti_wait_hide(tti_wait_board *board)
{
    const tti_wait nothing = { .needs = -1 };

    tti_wait_show(board, &nothing);
}

bool tti_wait_read(const tti_wait_board *board, tti_wait *out)
{
    const uint64_t version = atomic_load_explicit(&board->version, memory_order_acquire);
    uint64_t       words[TTI_WAIT_WORDS];
    int            i;

    for (i = 0; i < TTI_WAIT_WORDS; i++)
        words[i] = atomic_load_explicit(&board->words[i], memory_order_acquire);
    if (version % 2 != 0 || atomic_load_explicit(&board->version, memory_order_relaxed) != version)
        return false;
    tti_wait_unpack(words, out);
    return out->note.seq != 0;
}

bool tti_call_needs_all(const tti_call_note *note)
{
    switch (tti_call_kind_of(note)) {
    case TUTTI_CALL_BARRIER: return true;
    case TUTTI_CALL_ALL_REDUCE:
    case TUTTI_CALL_ALL_GATHER:
    case TUTTI_CALL_REDUCE_SCATTER: return note->count > 0 && !tti_call_has_parts(note); /* some may be empty */
    default: return false;
    }
}

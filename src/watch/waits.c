/* SPDX-License-Identifier: BSD-3-Clause
 *
 * waits.c - a wait in ten words, where it is shown, and when two of them are a circle.
 *
 * Circle  I am in wait a, which needs your part; you are in b, which needs mine. One thread makes all calls of each of us.
 *         You have said that you are in b, and have not come to a: so you come to it only behind b. I am in a, and have not
 *         come to b: so I come to it only behind a. If one of the two ended before the other, the other would have ended
 *         before it: neither ends, whenever each of us said its part, and whichever way that went.
 *         Who waits for a message has not come to nothing: the message may be on its way, or lost with a connection. So both
 *         count the messages from one to the other, from the first on: the sender when it begins to send one, the receiver
 *         when all of it has come. Who is in a wait sends nothing, so if the sender's number, said of the wait that it is in,
 *         and the receiver's, said of its receive, are the same, then all have come that are sent before that wait ends,
 *         and the receive has taken none of them. Nothing is assumed of what order anything comes in. A message that
 *         was lost keeps the numbers apart for ever: then nothing is said, and the receive ends otherwise.
 * True    The version is odd from before the first word is written until after the last one, both by release order, so a
 *         reader who finds the same even version before and after its loads has what one show wrote. All are atomics:
 *         a torn wait is seen as one. */
#include "watch/waits.h"

enum { NEEDS = 4, FLAGS = 5, ANSWERS_GROUP = 6, ANSWERS_SEQ = 7, SENT = 8, TAKEN = 9 };

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
    out[SENT] = wait->sent;
    out[TAKEN] = wait->taken;
}

void tti_wait_unpack(const uint64_t words[TTI_WAIT_WORDS], tti_wait *out)
{
    *out = (tti_wait){ .note = { .word = words[0], .what = words[1], .count = words[2], .seq = words[3] },
                       .group = (uint32_t)(words[NEEDS] >> 32), .needs = (int32_t)(uint32_t)words[NEEDS],
                       .alone = words[FLAGS] != 0, .answers_group = (uint32_t)words[ANSWERS_GROUP],
                       .answers_seq = words[ANSWERS_SEQ], .sent = words[SENT], .taken = words[TAKEN] };
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

bool tti_waits_close(const tti_wait *own, uint64_t sent, const tti_wait *theirs)
{
    if (!own->alone || !theirs->alone)
        return false;
    if (theirs->answers_group != own->group || theirs->answers_seq != own->note.seq)
        return false;
    if (tti_wait_is_receive(own) && own->taken != theirs->sent)
        return false;
    return !tti_wait_is_receive(theirs) || theirs->taken == sent;
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

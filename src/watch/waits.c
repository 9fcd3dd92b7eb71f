/* SPDX-License-Identifier: BSD-3-Clause
 *
 * waits.c - a wait in some words, where it is shown, and when waits are a circle.
 *
 * Circle  I am in wait a, and needed for b, in which you are. Each of us is the only thread of its program, and I have not come to
 *         b: so I come to it only behind a, and b does not end before a. I say so: a answers b. What does not end before b
 *         does not end before a either: a answers that, too, if you said that b does. So an answer goes from rank to rank,
 *         along what they wait for; if it comes back to b, then b does not end before b.
 *         Each of these facts stays true, whenever it was said and whichever way it went: that b ended before a could
 *         only be if I had come to it, behind a.
 *         Who waits for a message has not come to nothing: it may be on its way, or lost with a connection. So both
 *         count the messages from one to the other, from the first on: the sender when it begins to send one, the receiver
 *         when all of it has come. Who is in a wait sends nothing, so if the sender's number, said of the wait that it is in,
 *         and the receiver's, said of its receive, are the same, then all have come that are sent before that wait ends,
 *         and the receive has taken none of them. A message that was lost keeps the numbers apart for ever: then nothing is
 *         said, and the receive ends otherwise.
 *         To send, or to come to b, is what another thread of my program may be for, which has made no call yet: one waits, one
 *         computes and comes. So I answer only where my program has no other thread at all, not even to call its functions,
 *         such as callbacks. A message that was posted before, and not waited for, was counted when it was posted.
 * Room    A wait has room for few answers. More of them are said in turns.
 * True    The version is odd from before the first word is written until after the last one, both by release order, so a
 *         reader who finds the same even version before and after its loads has what one show wrote. All are atomics:
 *         a torn wait is seen as one. */
#include "watch/waits.h"

enum { NEEDS = 4, FLAGS = 5, TAKEN = 6, ANSWERS = 7, STEPS_MAX = 255 };

#define RANK_BITS 24
#define IS_ALONE UINT64_C(1)
#define IS_ONLY  UINT64_C(2)

static uint64_t pack_two(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

void tti_wait_pack(const tti_wait *wait, uint64_t out[TTI_WAIT_WORDS])
{
    int i;

    out[0] = wait->note.word;
    out[1] = wait->note.what;
    out[2] = wait->note.count;
    out[3] = wait->note.seq;
    out[NEEDS] = pack_two(wait->group, (uint32_t)wait->needs);
    out[FLAGS] = (wait->alone ? IS_ALONE : 0) | (wait->only ? IS_ONLY : 0);
    out[TAKEN] = wait->taken;
    for (i = 0; i < TTI_WAIT_ANSWERS; i++) {
        const tti_wait_answer *answer = &wait->answers[i];

        out[ANSWERS + 3 * i] = answer->seq;
        out[ANSWERS + 3 * i + 1] = pack_two(answer->group, (uint32_t)answer->steps << RANK_BITS | (uint32_t)answer->rank);
        out[ANSWERS + 3 * i + 2] = answer->sent;
    }
}

void tti_wait_unpack(const uint64_t words[TTI_WAIT_WORDS], tti_wait *out)
{
    int i;

    *out = (tti_wait){ .note = { .word = words[0], .what = words[1], .count = words[2], .seq = words[3] },
                       .group = (uint32_t)(words[NEEDS] >> 32), .needs = (int32_t)(uint32_t)words[NEEDS],
                       .alone = (words[FLAGS] & IS_ALONE) != 0, .only = (words[FLAGS] & IS_ONLY) != 0, .taken = words[TAKEN] };
    for (i = 0; i < TTI_WAIT_ANSWERS; i++) {
        const uint64_t who = words[ANSWERS + 3 * i + 1];

        out->answers[i] = (tti_wait_answer){ .seq = words[ANSWERS + 3 * i], .group = (uint32_t)(who >> 32),
                                             .rank = (int32_t)(who & ((1u << RANK_BITS) - 1)),
                                             .steps = (int)((uint32_t)who >> RANK_BITS), .sent = words[ANSWERS + 3 * i + 2] };
    }
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
    const tti_wait nothing = { .needs = TTI_NEEDS_ANY };

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

bool tti_wait_follows(const tti_wait *theirs, const tti_wait *own, uint64_t sent)
{
    return own->alone && theirs->alone && (!tti_wait_is_receive(theirs) || theirs->taken == sent);
}

static bool is_same(const tti_wait_answer *a, const tti_wait_answer *b)
{
    return a->seq == b->seq && a->group == b->group && a->rank == b->rank && a->sent == b->sent;
}

static void add_answer(tti_wait *own, tti_wait_answer answer)
{
    int i;

    if (answer.steps > STEPS_MAX)
        return;
    for (i = 0; i < TTI_WAIT_ANSWERS && own->answers[i].seq != 0; i++)
        if (is_same(&own->answers[i], &answer)) {
            if (answer.steps < own->answers[i].steps)
                own->answers[i].steps = answer.steps;
            return;
        }
    if (i < TTI_WAIT_ANSWERS)
        own->answers[i] = answer;
}

void tti_wait_answer_to(tti_wait *own, int rank, const tti_wait *theirs, uint64_t sent)
{
    int i;

    add_answer(own, (tti_wait_answer){ .seq = theirs->note.seq, .group = theirs->group, .rank = rank, .steps = 1, .sent = sent });
    if (!tti_wait_follows(theirs, own, sent))
        return;
    for (i = 0; i < TTI_WAIT_ANSWERS && theirs->answers[i].seq != 0; i++) {
        tti_wait_answer further = theirs->answers[i];

        further.steps++;
        add_answer(own, further);
    }
}

int tti_wait_steps(const tti_wait *own, int rank, const tti_wait *theirs)
{
    int i, steps = 0;

    for (i = 0; i < TTI_WAIT_ANSWERS; i++) {
        const tti_wait_answer *answer = &theirs->answers[i];

        if (answer->seq == own->note.seq && answer->seq != 0 && answer->group == own->group && answer->rank == rank &&
            answer->steps > 0 && (steps == 0 || answer->steps < steps) &&
            (!tti_wait_is_receive(own) || answer->sent == own->taken))
            steps = answer->steps;
    }
    return steps;
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

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * watch/waits.h - in which call a rank has waited for long, for whom, and what it says to others about their waits.
 *
 * Written where others can read it on one host, and sent as it is to those of other hosts: some words. */
#ifndef TTI_WATCH_WAITS_H
#define TTI_WATCH_WAITS_H

#include "watch/control.h"

enum { TTI_WAIT_ANSWERS = 6, TTI_WAIT_WORDS = 7 + 3 * TTI_WAIT_ANSWERS };

/** The numbers of receives are in this half of all numbers, and no two ranks have the same. */
#define TTI_WAIT_RECEIVE (UINT64_C(1) << 63)

/** TTI_NEEDS_ANY: the call does not end without the part of any member. TTI_NEEDS_NOBODY: it may end although nobody comes
 * to it, as where only sends are under way. */
typedef enum tti_needs { TTI_NEEDS_ANY = -1, TTI_NEEDS_NOBODY = -2 } tti_needs;

/** A wait of another rank that does not end before this one's: it needs this one's part, or that of one whose wait does not end
 * before this one's, and so on. */
typedef struct tti_wait_answer {
    uint64_t seq;   /* of the call, or the receive, that it waits in; 0: none */
    uint32_t group;
    int32_t  rank;
    int      steps; /* 1: it needs this rank's part */
    uint64_t sent;  /* if it is a receive: messages that the one it needs has begun to send to it, from the first on */
} tti_wait_answer;

/** A rank's wait. */
typedef struct tti_wait {
    tti_call_note note;  /* seq 0: it waits in no call */
    uint32_t      group; /* whose call it is */
    int32_t       needs; /* without whose part, of the world's ranks, the call does not end; or one of tti_needs */
    bool          alone; /* one thread makes all calls of this rank, and waits: it makes no other before this one ends */
    bool          only;  /* nor is there another thread of the program that could come to make one */
    uint64_t      taken; /* if this is a receive: messages of `needs` that have come as a whole, from the first on */
    tti_wait_answer answers[TTI_WAIT_ANSWERS]; /* those that are known; of more, some */
} tti_wait;

/** Where it is shown: written by its owner, one thread at a time, read by anybody at any time. */
typedef struct tti_wait_board {
    _Atomic uint64_t version; /* odd while it is written */
    _Atomic uint64_t words[TTI_WAIT_WORDS];
} tti_wait_board;

void tti_wait_pack(const tti_wait *wait, uint64_t words_out[TTI_WAIT_WORDS]);
void tti_wait_unpack(const uint64_t words[TTI_WAIT_WORDS], tti_wait *wait_out);

void tti_wait_show(tti_wait_board *board, const tti_wait *wait);
void tti_wait_hide(tti_wait_board *board);
/** What its owner shows; false: nothing, or it is just being written. */
bool tti_wait_read(const tti_wait_board *board, tti_wait *wait_out);

/** Whether it is a blocking receive, from `needs`. */
static inline bool tti_wait_is_receive(const tti_wait *wait)
{
    return (wait->note.seq & TTI_WAIT_RECEIVE) != 0;
}

/** Whether theirs, which needs this rank's part, does not end before own, this rank's. It has not come to theirs, and has begun
 * to send `sent` messages to the other. */
bool tti_wait_follows(const tti_wait *theirs, const tti_wait *own, uint64_t sent);
/** Note that in own, theirs being rank's, and what does not end before theirs. */
void tti_wait_answer_to(tti_wait *own, int rank, const tti_wait *theirs, uint64_t sent);
/** Over how many ranks own, which is rank's, does not end before theirs; 0: nothing is said of that. */
int tti_wait_steps(const tti_wait *own, int rank, const tti_wait *theirs);

/** Whether no member's part of the call ends before all have come to it, whatever way it goes. */
bool tti_call_needs_all(const tti_call_note *note);

#endif

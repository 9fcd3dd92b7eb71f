/* SPDX-License-Identifier: BSD-3-Clause
 *
 * watch/waits.h - in which call a rank has waited for long, for whom, and what it says to others about their waits.
 *
 * Written where others can read it on one host, and sent as it is to those of other hosts: ten words. */
#ifndef TTI_WATCH_WAITS_H
#define TTI_WATCH_WAITS_H

#include "watch/control.h"

enum { TTI_WAIT_WORDS = 10 };

/** The numbers of receives are in this half of all numbers, and no two ranks have the same. */
#define TTI_WAIT_RECEIVE (UINT64_C(1) << 63)

/** TTI_NEEDS_ANY: the call does not end without the part of any member. TTI_NEEDS_NOBODY: it may end although nobody comes
 * to it, as where only sends are under way. */
typedef enum tti_needs { TTI_NEEDS_ANY = -1, TTI_NEEDS_NOBODY = -2 } tti_needs;

/** A rank's wait. */
typedef struct tti_wait {
    tti_call_note note;  /* seq 0: it waits in no call */
    uint32_t      group; /* whose call it is */
    int32_t       needs; /* without whose part, of the world's ranks, the call does not end; or one of tti_needs */
    bool          alone; /* one thread makes all calls of this rank, and waits: it makes no other before this one ends */
    uint32_t      answers_group; /* a call that another rank waits in for this one, */
    uint64_t      answers_seq;   /* which has not come to it; 0: none that is known */
    uint64_t      sent;  /* if that is a receive: messages that this rank has begun to send to the other, from the first on */
    uint64_t      taken; /* if this is a receive: messages of `needs` that have come as a whole, from the first on */
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

/** Whether two waits, in which each of two ranks needs the other's part, never end. own is this rank's, now, and it has not
 * come to theirs; theirs may have been said at any time. sent: as in a wait, of this rank's messages to the other. */
bool tti_waits_close(const tti_wait *own, uint64_t sent, const tti_wait *theirs);

/** Whether no member's part of the call ends before all have come to it, whatever way it goes. */
bool tti_call_needs_all(const tti_call_note *note);

#endif

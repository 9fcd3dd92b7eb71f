/* SPDX-License-Identifier: BSD-3-Clause
 *
 * watch/waits.h - in which call a rank has waited for long, for whom, and what it says to others about their waits.
 *
 * Written where others can read it on one host, and sent as it is to those of other hosts: eight words. */
#ifndef TTI_WATCH_WAITS_H
#define TTI_WATCH_WAITS_H

#include "watch/control.h"

enum { TTI_WAIT_WORDS = 8 };

/** A rank's wait. */
typedef struct tti_wait {
    tti_call_note note;  /* seq 0: it waits in no call */
    uint32_t      group; /* whose call it is */
    int32_t       needs; /* without whose part, of the world's ranks, the call does not end; -1: that of any member */
    bool          alone; /* one thread makes all calls of this rank, and waits: it makes no other before this one ends */
    uint32_t      answers_group; /* a call that another rank waits in for this one, */
    uint64_t      answers_seq;   /* which has not come to it; 0: none that is known */
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

/** Whether no member's part of the call ends before all have come to it, whatever way it goes. */
bool tti_call_needs_all(const tti_call_note *note);

#endif

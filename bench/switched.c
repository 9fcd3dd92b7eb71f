/* SPDX-License-Identifier: BSD-3-Clause
 *
 * switched.c - a libtutti in which the flight recorder and the comparing of calls can be switched off and on, to measure what they
 * cost: in one process, so that code and memory lie where they lie in both cases.
 *
 * Recorder  The library looks for its ring through one pointer (recorder/recorder.h). Where that is NULL nothing is recorded,
 *           but for two stores of the group's own place.
 * Checks    Nothing switches them off in the library itself. Here the linker (--wrap) puts two functions in the places of
 *           tti_call_note_of() and tti_call_publish() of watch/control.h, whose struct this is. Switched off calls have their
 *           numbers, and say that they have come, but not what they are. The jump to the real ones is there in both cases, and
 *           part of neither cost. */
#include "switched.h"

#include <stdatomic.h>
#include <tutti/plugin/backend.h>

typedef struct note {
    uint64_t word, what, count, seq;
} note;

enum { MARK_BITS = 24 };

extern _Atomic(void *) switched_ring; /* tti_ring_of_process: the linker says so (--defsym) */

note __real_tti_call_note_of(const tutti_call *call);
void __real_tti_call_publish(_Atomic uint64_t *board_word, const note *n);
note __wrap_tti_call_note_of(const tutti_call *call);
void __wrap_tti_call_publish(_Atomic uint64_t *board_word, const note *n);

static bool is_unchecked;
static void *ring; /* while it is switched off */

__attribute__((visibility("default"))) void tutti_switch(bool recorder, bool checks)
{
    void *now = atomic_load(&switched_ring);

    is_unchecked = !checks;
    if (now != NULL)
        ring = now;
    atomic_store(&switched_ring, recorder ? ring : NULL);
}

note __wrap_tti_call_note_of(const tutti_call *call)
{
    if (is_unchecked)
        return (note){ .word = call->seq << MARK_BITS, .seq = call->seq };
    return __real_tti_call_note_of(call);
}

/* The word is the first of a board. */
void __wrap_tti_call_publish(_Atomic uint64_t *board_word, const note *n)
{
    if (is_unchecked)
        atomic_store_explicit(board_word, n->word, memory_order_release);
    else
        __real_tti_call_publish(board_word, n);
}

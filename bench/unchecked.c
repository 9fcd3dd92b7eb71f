/* SPDX-License-Identifier: BSD-3-Clause
 *
 * unchecked.c - a libtutti in which calls are not compared, to measure what comparing costs.
 *
 * Nothing switches that off in the library itself. Here the linker (--wrap) puts these two in the places of
 * tti_call_note_of() and tti_call_publish() of src/watch/control.h, whose struct this is: calls have their numbers, and say
 * that they have come, but not what they are. */
#include <stdatomic.h>
#include <tutti/plugin/backend.h>

typedef struct note {
    uint64_t word, what, count, seq;
} note;

enum { MARK_BITS = 24 };

note __wrap_tti_call_note_of(const tutti_call *call);
void __wrap_tti_call_publish(_Atomic uint64_t *board_word, const note *n);

note __wrap_tti_call_note_of(const tutti_call *call)
{
    return (note){ .word = call->seq << MARK_BITS, .seq = call->seq };
}

/* The word is the first of a board. */
void __wrap_tti_call_publish(_Atomic uint64_t *board_word, const note *n)
{
    atomic_store_explicit(board_word, n->word, memory_order_release);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group/gate.h - the word that lets a blocking collective begin and end without the lock.
 *
 * Why     A blocking collective on an idle group takes a number, runs, and lets the next one run. Two
 *         atomic operations on one word are enough for that, if nobody else is there; where somebody is,
 *         the lock has the order (queue.c).
 * How     The word has the number of the next collective to run, above two bits:
 *
 *             63                  2    1      0
 *            | number              | HELD | BUSY |
 *
 *         enter   neither bit  ->  BUSY              compare and swap; the number is the caller's
 *         leave   BUSY         ->  number + 1        compare and swap; not if HELD came meanwhile
 *         hold    anything     ->  HELD, BUSY stays  under the lock: from now on the lock has the order
 *         open    HELD         ->  number            under the lock, when all numbers given out have run
 * True    1. One at a time. Between enter and leave the word is BUSY, so nobody else enters; who holds
 *            finds BUSY, and counts its owner as inside, in the turn that is running. A word that is HELD
 *            lets nobody enter or leave: the owner of BUSY, refused, takes the lock and ends its turn
 *            there. Nobody else would: hold leaves BUSY where it was, once.
 *         2. Nothing is touched after leave succeeded: nobody held the gate before, so nobody waits for
 *            this turn and there is nothing to signal; and who holds it after, finds it not BUSY, waits
 *            for nobody, and may free the group at once.
 *         3. What one turn wrote the next one reads. leave and open release, enter and hold acquire, and
 *            all but open are read-modify-writes, so a later one reads from an earlier one or from what
 *            followed it. Where the turns change between gate and lock, the lock orders them: open is
 *            under it, and an owner who was refused goes through it.
 *         4. No number is given out twice. The gate gives out the number in its word, which grows with
 *            leave; hold takes it over, with one more if it is running; open puts it back. */
#ifndef TTI_GROUP_GATE_H
#define TTI_GROUP_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct tti_gate {
    _Atomic uint64_t word;
} tti_gate;

#define TTI_GATE_BUSY UINT64_C(1)
#define TTI_GATE_HELD UINT64_C(2)
#define TTI_GATE_ONE UINT64_C(4)

static inline uint64_t tti_gate_number(uint64_t word)
{
    return word / TTI_GATE_ONE;
}

/** Take the number whose turn it is, if nobody is there: tti_gate_leave() must follow. */
static inline bool tti_gate_enter(tti_gate *gate, uint64_t *seq_out)
{
    uint64_t word = atomic_load_explicit(&gate->word, memory_order_relaxed);

    if ((word & (TTI_GATE_BUSY | TTI_GATE_HELD)) != 0 ||
        !atomic_compare_exchange_strong_explicit(&gate->word, &word, word | TTI_GATE_BUSY,
                                                 memory_order_acquire, memory_order_relaxed))
        return false;
    *seq_out = tti_gate_number(word);
    return true;
}

/** End the turn of number seq: false, and it has to end under the lock, if somebody holds the gate. */
static inline bool tti_gate_leave(tti_gate *gate, uint64_t seq)
{
    uint64_t word = seq * TTI_GATE_ONE | TTI_GATE_BUSY;

    return atomic_compare_exchange_strong_explicit(&gate->word, &word, (seq + 1) * TTI_GATE_ONE,
                                                   memory_order_release, memory_order_relaxed);
}

/** Let nobody enter or leave: the word as it was. Lock held; not if it is held already. */
static inline uint64_t tti_gate_hold(tti_gate *gate)
{
    return atomic_fetch_or_explicit(&gate->word, TTI_GATE_HELD, memory_order_acq_rel);
}

/** Let the next one enter, with number seq. Lock held; the gate is, too, and its turn has ended. */
static inline void tti_gate_open(tti_gate *gate, uint64_t seq)
{
    atomic_store_explicit(&gate->word, seq * TTI_GATE_ONE, memory_order_release);
}

/** The word, to look at. */
static inline uint64_t tti_gate_look(const tti_gate *gate)
{
    return atomic_load_explicit(&gate->word, memory_order_relaxed);
}

#endif

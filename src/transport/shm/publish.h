/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/shm/publish.h - moving a word that somebody may sleep over.
 *
 * Whoever sleeps sets `sleeping` in its heap's head, then looks once more, then sleeps; whoever moves a word looks
 * at the other's `sleeping` afterwards. If each did so in an order that all agree on, one of the two would see the
 * other's store. But a store waits in the buffer of its core while later loads overtake it, and draining that
 * buffer costs each message a transfer of a line. So, where both ends have joined the port's fence_others(), who
 * moves a word keeps the order in its instructions alone, and who sleeps, who has time, has every thread of the
 * other end go through a barrier between its two steps (turn.c). That falls somewhere in those instructions: before
 * the look at `sleeping`, which then sees it, or after it, and then the sleeper's own look sees the word.
 * Where one end has not joined, all of this is sequentially consistent. */
#ifndef TTI_TRANSPORT_SHM_PUBLISH_H
#define TTI_TRANSPORT_SHM_PUBLISH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/** Store value, with release order, before a look at whether the other end sleeps. fenced: both have joined. */
static inline void tti_publish(_Atomic uint64_t *word, uint64_t value, bool fenced)
{
    if (!fenced) {
        atomic_store(word, value);
        return;
    }
    atomic_store_explicit(word, value, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst); /* of the compiler only: the processor's is the sleeper's */
}

#endif

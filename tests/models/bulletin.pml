/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bulletin.pml - the page on which a launcher tells its ranks who has ended: src/watch/bulletin.c.
 *
 * Model   The launcher puts up the ends of two ranks, and says that one of them was the first, at once or later. A rank
 *         reads the page at any time. An ending is two words, which say its number.
 * Says    What is read of an ending is whole; the first reason can be read when it is known; who sees the last ending
 *         sees that all have ended.
 * Not     Several threads of the launcher: a lock keeps them apart.
 * Checks
 *
 *   holds
 *   holds  -DPSO
 *   wrong  -DPSO -DRELAXED       the number of endings overtakes the ending
 *   wrong  -DFIRST_EARLY         the reason is named before it is there
 *   wrong  -DLEFT_LATE           the last ending is there before it is counted
 *   wrong  -DREAD_EARLY          an ending is read before it is looked whether it is there
 */
#define RANKS 2
#define THREADS 2
#define DEPTH 4
#define N 0
#define FIRST 1
#define LEFT 2
#define ENDING(i) (3 + 2 * (i))
#define WORDS (3 + 2 * RANKS)
#include "memory.pml"

inline name_first()
{
    if
    :: first == 0 ->
        first = i + 1;
        store_release(FIRST, first) /* = watch/bulletin.c: atomic_store_explicit(&p->first, at, memory_order_release); */
    :: true
    fi
}

inline count_left()
{
    store_release(LEFT, RANKS - 1 - i) /* = watch/bulletin.c: atomic_fetch_sub_explicit(&bulletin->page->left, 1, memory_order_release); */
}

proctype launcher(byte me)
{
    byte i, first;

    for (i : 0 .. RANKS - 1) {
#ifdef FIRST_EARLY
        name_first();
#endif
#ifndef LEFT_LATE
        count_left();
#endif
        store(ENDING(i), i + 1); /* = watch/bulletin.c: p->endings[n] = *ending; */
        store(ENDING(i) + 1, i + 1);
#ifdef RELAXED
        store(N, i + 1);
#else
        store_release(N, i + 1); /* = watch/bulletin.c: atomic_store_explicit(&p->n, n + 1, memory_order_release); */
#endif
#ifdef LEFT_LATE
        count_left();
#endif
#ifndef FIRST_EARLY
        name_first();
#endif
    }
}

inline read_ending(p_i)
{
#ifdef READ_EARLY
    load(ENDING(p_i), a);
    load(ENDING(p_i) + 1, b);
    load(N, n);
#else
    load(N, n); /* = watch/bulletin.c: if (i >= p->room || i >= atomic_load_explicit(&p->n, memory_order_acquire)) */
    load(ENDING(p_i), a); /* = watch/bulletin.c: *out = p->endings[i]; */
    load(ENDING(p_i) + 1, b);
#endif
    assert(n <= p_i || (a == p_i + 1 && b == p_i + 1))
}

proctype rank(byte me)
{
    byte i, n, first, left, a, b;

    if
    :: true ->
        select(i : 0 .. RANKS - 1);
        read_ending(i);
        load(LEFT, left); /* = watch/bulletin.c: return (int)atomic_load_explicit(&bulletin->page->left, memory_order_acquire); */
        assert(n < RANKS || left == 0)
    :: true ->
        load(FIRST, first); /* = watch/bulletin.c: const uint32_t first = atomic_load_explicit(&bulletin->page->first, memory_order_acquire); */
        if
        :: first != 0 ->
            read_ending(first - 1);
            assert(n >= first) /* = watch/bulletin.c: return first != 0 && tti_bulletin_read(bulletin, first - 1, out); */
        :: else
        fi
    fi
}

init {
    byte t;

    atomic {
        mem[LEFT] = RANKS;
        for (t : 0 .. THREADS - 1) {
            run memory(t)
        }
        run launcher(0);
        run rank(1)
    }
}

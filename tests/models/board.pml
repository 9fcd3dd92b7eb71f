/* SPDX-License-Identifier: BSD-3-Clause
 *
 * board.pml - the ring of calls that a member shows: src/watch/control.c, and who compares when (coll/host/channel.c).
 *
 * Model   One member publishes calls, of numbers with gaps, and enters them; another one enters its own, and looks for
 *         those that it compares: the last AHEAD + 1 that it has entered, once the first has entered them, too. Neither
 *         goes on before the other has entered the call AHEAD before (channel.pml). A third looks for any call at any
 *         time. An entry is its number and two words that say it once more.
 * Says    What is found is whole; and who compares finds what it looks for.
 * Checks
 *
 *   holds  -DCALLS=5
 *   holds  -DCALLS=5 -DPSO
 *   wrong  -DCALLS=6 -DRING=3                a ring of 2 AHEAD + 1: what is compared may be overwritten
 *   wrong  -DCALLS=6 -DNO_CLEAR              an entry keeps its old number while it is overwritten
 *   wrong  -DCALLS=6 -DNO_SECOND_LOOK        at the number, after the words were read
 *   wrong  -DCALLS=5 -DPSO -DRELAXED         words overtake the clearing of the number
 *   wrong  -DCALLS=5 -DPSO -DCOUNT_TOO_EARLY the number of calls is told before the call
 */
#ifndef RING
#define RING 4
#endif
#define AHEAD 1
#define THREADS 3
#define DEPTH 4
#define PUBLISHED 0
#define ENTERED(r) (1 + (r))
#define SEQ(e) (3 + 3 * (e))
#define WORD(e) (4 + 3 * (e))
#define WHAT(e) (5 + 3 * (e))
#define WORDS (3 + 3 * RING)
#include "memory.pml"

#define NUMBER(n) (2 * (n))

#ifdef RELAXED
#define put(w, v) store(w, v)
#else
#define put(w, v) store_release(w, v) /* = watch/control.c: atomic_store_explicit(&entry[NOTE_WORD], note->word, memory_order_release); */
#endif

/* tti_call_publish() */
inline publish()
{
    e = (n - 1) % RING; /* = watch/control.c: _Atomic uint64_t *entry = board->ring[before % TTI_CALL_RING]; */
#ifdef COUNT_TOO_EARLY
    store_release(PUBLISHED, n);
#endif
#ifndef NO_CLEAR
    store(SEQ(e), 0); /* = watch/control.c: atomic_store_explicit(&entry[NOTE_SEQ], 0, memory_order_relaxed); */
#endif
    put(WORD(e), NUMBER(n));
    put(WHAT(e), NUMBER(n));
    store_release(SEQ(e), NUMBER(n)); /* = watch/control.c: atomic_store_explicit(&entry[NOTE_SEQ], note->seq, memory_order_release); */
#ifndef COUNT_TOO_EARLY
    store_release(PUBLISHED, n); /* = watch/control.c: atomic_store_explicit(&board->published, before + 1, memory_order_release); */
#endif
    e = 0
}

/* tti_call_find(): seq, or 0, in found */
inline find(seq)
{
    found = 0;
    load(PUBLISHED, p); /* = watch/control.c: const uint64_t published = atomic_load_explicit(&board->published, memory_order_acquire); */
    back = 1;
    do
    :: back <= RING && back <= p -> /* = watch/control.c: for (back = 1; back <= TTI_CALL_RING && back <= published; back++) { */
        e = (p - back) % RING;
        load(SEQ(e), x);
        if
        :: x == seq -> found = seq; break /* = watch/control.c: if (found == seq) return entry; */
        :: x != 0 && x < seq -> break /* = watch/control.c: if (found != 0 && found < seq) break; */
        :: else -> back++
        fi
    :: else -> break
    od;
    if
    :: found != 0 ->
        load(WORD(e), word);
        load(WHAT(e), what);
#ifndef NO_SECOND_LOOK
        load(SEQ(e), x);
        found = (x == seq -> found : 0); /* = watch/control.c: if (note.seq != seq) return false; */
#endif
        assert(found == 0 || (word == seq && what == seq));
    :: else
    fi;
    p = 0; back = 0; e = 0; x = 0; word = 0; what = 0
}

proctype publisher(byte me)
{
    byte n, e;

    for (n : 1 .. CALLS) {
        publish();
        store_release(ENTERED(0), n); /* it enters after it was published: coll/coll.c */
        n <= AHEAD || mem[ENTERED(1)] >= n - AHEAD
    }
}

proctype comparer(byte me)
{
    byte n, q, p, back, e, x, found, word, what;

    for (n : 1 .. CALLS) {
        store_release(ENTERED(1), n);
        n <= AHEAD || mem[ENTERED(0)] >= n - AHEAD;
        for (q : 1 .. CALLS) {
            if
            :: q <= n && q + AHEAD >= n && mem[ENTERED(0)] >= q ->
                find(NUMBER(q));
                assert(found == NUMBER(q))
            :: else
            fi
        }
        q = 0
    }
}

proctype anybody(byte me)
{
    byte q, p, back, e, x, found, word, what;

    select(q : 1 .. CALLS);
    find(NUMBER(q))
}

init {
    byte t;

    atomic {
        for (t : 0 .. THREADS - 1) {
            run memory(t)
        }
        run publisher(0);
        run comparer(1);
        run anybody(2)
    }
}

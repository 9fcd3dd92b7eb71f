/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recorder.pml - the ring of the flight recorder: src/recorder/recorder.h, record.c, and who reads it in image.c.
 *
 * Model   One thread writes records one after the other into a ring, and ends some of them. Another one ends the first
 *         record, which it looked at before, at any later time: when its entry may be another's. A third reads an entry
 *         at any time. A record is its id, its state, which has the id in it, and a word that says the id once more.
 * Says    What is taken is of one record, and has ended only if it has.
 * Not     Two writers in one entry: the check in a record is for them, and is a matter of chance.
 * Checks
 *
 *   holds  -DRECORDS=4
 *   holds  -DRECORDS=4 -DPSO
 *   wrong  -DRECORDS=4 -DNO_CLEAR            an entry keeps its old id while it is overwritten
 *   wrong  -DRECORDS=4 -DNO_SECOND_LOOK      at the id, after the words were read
 *   wrong  -DRECORDS=4 -DNO_ID_IN_STATE      an end that comes too late is taken for the present record's
 *   wrong  -DRECORDS=4 -DPSO -DRELAXED       words overtake the clearing of the id
 */
#define RING 2
#define THREADS 3
#define DEPTH 4
#define ID(e) (3 * (e))
#define STATE(e) (3 * (e) + 1)
#define CALL(e) (3 * (e) + 2)
#define WORDS (3 * RING)
#include "memory.pml"

#define STARTED(n) (2 * (n))
#define DONE(n) (2 * (n) + 1)

#ifdef RELAXED
#define put(w, v) store(w, v)
#else
#define put(w, v) store_release(w, v) /* = recorder/layout.h: __atomic_store_n(word, value, __ATOMIC_RELEASE); */
#endif

bool ended[RECORDS + 1];

proctype writer(byte me)
{
    byte n, e;

    for (n : 1 .. RECORDS) {
        e = (n - 1) % RING; /* = recorder/recorder.h: return &ring->records[(id - 1) & ring->mask]; */
#ifndef NO_CLEAR
        store(ID(e), 0); /* = recorder/recorder.h: tti_word_put(&slot->id, 0); */
#endif
        put(STATE(e), STARTED(n)); /* = recorder/recorder.h: tti_word_set(&slot->state, tti_record_state_word(id, flags, TUTTI_OK, state)); */
        put(CALL(e), n); /* = recorder/recorder.h: tti_word_set(&slot->call, call); */
        store_release(ID(e), n); /* = recorder/recorder.h: tti_word_set(&slot->id, id); */
        if
        :: n != 1 -> /* of the fast path: no look at the id, for nobody else has come meanwhile */
            ended[n] = true;
            put(STATE(e), DONE(n)) /* = recorder/recorder.h: tti_word_set(&slot->state, tti_record_state_word(id, flags, TUTTI_OK, TUTTI_RECORD_DONE)); */
        :: true
        fi
    }
}

/* tti_record_end_slowly() on another thread */
proctype ender(byte me)
{
    byte x;

    load(ID(0), x);
    if
    :: x == 1 -> /* = recorder/record.c: return tti_word_peek(&slot->id) == id ? slot : NULL; */
        ended[1] = true;
        put(STATE(0), DONE(1)) /* = recorder/record.c: tti_word_set(&slot->state, tti_record_state_word(id, flags_of(slot) | flags, status, state)); */
    :: else
    fi
}

proctype reader(byte me)
{
    byte e, a, s, c, b;

    select(e : 0 .. RING - 1);
    load(ID(e), a); /* = recorder/image.c: const uint64_t before = tti_word_get(&shared[0]); */
    load(STATE(e), s);
    load(CALL(e), c);
    b = a;
#ifndef NO_SECOND_LOOK
    load(ID(e), b); /* = recorder/image.c: return tti_word_get(&shared[0]) == before; */
#endif
    if
#ifdef NO_ID_IN_STATE
    :: a != 0 && a == b ->
#else
    :: a != 0 && a == b && s / 2 == a -> /* = recorder/image.c: if (s.id == 0 || (s.id - 1) % head->record_count != i || s.state >> 32 != (s.id & UINT32_MAX) || */
#endif
        assert(c == a);
        assert(s % 2 == 0 || ended[a])
    :: else
    fi
}

init {
    byte t;

    atomic {
        for (t : 0 .. THREADS - 1) {
            run memory(t)
        }
        run writer(0);
        run ender(1);
        run reader(2)
    }
}

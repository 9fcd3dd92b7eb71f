/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pull.pml - payloads that the receiver copies out of the sender's memory: src/transport/shm/pull.c.
 *
 * Model   MESSAGES payloads of two pieces. The receiver reads pieces and counts them in the offer's word, or refuses;
 *         the sender withdraws the offer when it likes, keeps what is left, and gives its buffer back to its user, who
 *         writes over it at once. What an offer leaves comes through the bulk ring, which has room here. An offer may
 *         be undone before its frame goes out. Waits are looks: ring.pml has the sleep.
 * Says    What the receiver takes is what was sent, each piece once, and both agree about what comes which way.
 * Checks
 *
 *   holds  -DMESSAGES=2
 *   holds  -DMESSAGES=2 -DPSO
 *   holds  -DMESSAGES=3
 *   wrong  -DMESSAGES=1 -DCOUNT_TOO_EARLY   a piece is counted before it is read
 *   wrong  -DMESSAGES=2 -DNO_NUMBER         a late step of the receiver meets the next offer
 *   wrong  -DMESSAGES=1 -DNO_WITHDRAWAL     the buffer goes back while the offer is open
 *   wrong  -DMESSAGES=2 -DWITHDRAW_BLIND    by a store, over what was counted meanwhile
 *   wrong  -DMESSAGES=1 -DPSO -DRELAXED     the frame overtakes the payload
 */
#define THREADS 2
#define DEPTH 4
#define OFFER 0
#define FRAME 1 /* the number of the last frame in the ring of lines */
#define TAIL 2
#define BUFFER(i) (3 + (i))
#define BULK(i) (5 + (i))
#define WORDS (5 + 2 * MESSAGES)
#define TAKEN_BACK 99
#define OPEN 1
#define WITHDRAWN 2
#define REFUSED 3
#define STATE(w) ((w) / 4 % 4)
#define COUNTED(w) ((w) % 4)
#ifdef NO_NUMBER
#define WORD_OF(number, state, done) ((state) * 4 + (done))
#else
#define WORD_OF(number, state, done) ((number) % 4 * 16 + (state) * 4 + (done))
/* = transport/shm/pull.c: return number << NUMBER_SHIFT | (uint64_t)state << STATE_SHIFT | done; */
#endif
#include "memory.pml"

/* What the sender has still to hand over, when its buffer is the user's again. */
inline keep()
{
    i = told;
    do
    :: i < 2 -> load(BUFFER(i), kept[i]); i++
    :: else -> break
    od;
    i = 0;
    has_kept = 1;
    store(BUFFER(0), TAKEN_BACK);
    store(BUFFER(1), TAKEN_BACK)
}

/* tti_offer_progress() */
inline progress()
{
    if
    :: open -> load(OFFER, seen) /* = transport/shm/pull.c: if (o->open) o->seen = atomic_load_explicit(o->word, memory_order_acquire); */
    :: else
    fi;
    assert(COUNTED(seen) >= told || !open);
    if
    :: COUNTED(seen) > told -> told = COUNTED(seen)
    :: else
    fi;
    if
    :: told == 2 || STATE(seen) == REFUSED -> open = 0 /* = transport/shm/pull.c: if (o->told == o->bytes || o->refused) o->open = false; */
    :: else
    fi
}

/* tti_offer_retract() */
inline retract()
{
    open = 0;
    do
#ifdef NO_WITHDRAWAL
    :: break
#elif defined WITHDRAW_BLIND
    :: store(OFFER, WORD_OF(m, WITHDRAWN, COUNTED(seen))); break
#else
    :: STATE(seen) != OPEN -> break /* = transport/shm/pull.c: while (state_of(o->seen) == OPEN && !atomic_compare_exchange_weak(o->word, &o->seen, word_of(o->seen >> NUMBER_SHIFT, WITHDRAWN, o->seen & DONE_MASK))) */
    :: STATE(seen) == OPEN ->
        d_step {
            drained ->
            if
            :: mem[OFFER] == seen -> seen = WORD_OF(m, WITHDRAWN, COUNTED(seen)); mem[OFFER] = seen
            :: else -> seen = mem[OFFER]
            fi
        }
#endif
    od;
    progress()
}

proctype sender(byte me)
{
    byte m, i, seen, told, put, value;
    byte kept[2];
    bit  open, has_kept;

    for (m : 1 .. MESSAGES) {
        store(BUFFER(0), 2 * m);
        store(BUFFER(1), 2 * m + 1);
        told = 0;
        has_kept = 0;
        do
        :: seen = WORD_OF(m, OPEN, 0);
            open = 1;
            store(OFFER, seen); /* = transport/shm/pull.c: atomic_store_explicit(o->word, o->seen, memory_order_relaxed); */
            if
            :: break
            :: skip /* undone: there was no room for the frame */
            fi
        od;
#ifdef RELAXED
        store(FRAME, m);
#else
        store_release(FRAME, m);
#endif
        do
        :: told < 2 && open -> progress()
        :: told < 2 && open && !has_kept -> retract(); keep()
        :: told < 2 && !open ->
            if
            :: has_kept -> value = kept[told]
            :: else -> load(BUFFER(told), value)
            fi;
            store(BULK(put), value);
            put++;
            store_release(TAIL, put);
            value = 0;
            told++
        :: told == 2 -> break
        od;
        store(BUFFER(0), TAKEN_BACK); /* it is the user's */
        store(BUFFER(1), TAKEN_BACK);
        kept[0] = 0;
        kept[1] = 0
    }
}

/* A step from what this side knows: tti_pull's step() */
inline step(state, counted)
{
    d_step {
        drained ->
        if
        :: mem[OFFER] == expected -> mem[OFFER] = WORD_OF(m, state, counted); expected = WORD_OF(m, state, counted)
            /* = transport/shm/pull.c: p->open = atomic_compare_exchange_strong(p->word, &p->seen, next); */
        :: else -> is_open = 0
        fi
    }
}

proctype receiver(byte me)
{
    byte m, x, expected, done, from_bulk, left;
    bit  is_open;

    for (m : 1 .. MESSAGES) {
        mem[FRAME] >= m;
        expected = WORD_OF(m, OPEN, 0); /* = transport/shm/pull.c: p->seen = word_of(p->number, OPEN, 0); */
        is_open = 1;
        done = 0;
        left = 2;
        if
        :: step(REFUSED, 0); is_open = 0 /* = transport/shm/pull.c: (void)step(p, REFUSED, p->done); p->open = false; */
        :: skip
        fi;
        do
        :: left > 0 && is_open ->
#ifdef COUNT_TOO_EARLY
            step(OPEN, done + 1);
            x = mem[BUFFER(done)];
#else
            x = mem[BUFFER(done)];
            step(OPEN, done + 1); /* = transport/shm/pull.c: if (!step(p, OPEN, p->done + (uint64_t)got)) return 0; p->done += (uint64_t)got; */
#endif
            if
            :: is_open -> assert(x == 2 * m + 2 - left); done++; left--
            :: else
            fi;
            x = 0
        :: left > 0 && !is_open && mem[TAIL] > from_bulk ->
            assert(mem[BULK(from_bulk)] == 2 * m + 2 - left);
            from_bulk++;
            left--
        :: left == 0 -> break
        od
    }
}

init {
    atomic {
        run memory(0);
        run memory(1);
        run sender(0);
        run receiver(1)
    }
}

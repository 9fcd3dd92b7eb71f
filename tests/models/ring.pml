/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ring.pml - messages through a ring of lines, with room and bell: src/transport/shm/line_ring.c, publish.h, turn.c.
 *
 * Model   One thread writes RECORDS records of one or two lines, as it likes, the other reads them. Both sleep by the
 *         bell when they can do nothing. A ring of LINES lines whose reader gives back a quarter at a time; a line is
 *         the word and one of payload. Payload is the number of the line: a reader finds that, or has read what is
 *         old, torn or too new.
 * Checks
 *
 *   holds  -DFENCED
 *   holds  -DFENCED -DPSO
 *   holds  -DFALLBACK
 *   holds  -DFALLBACK -DPSO
 *   wrong  -DFENCED -DNO_ROOM            the writer does not look at head
 *   wrong  -DFENCED -DHEAD_TOO_EARLY     the reader gives back what it still reads
 *   wrong  -DFENCED -DREAD_TOO_EARLY     payload is read before the word
 *   wrong  -DFENCED -DPSO -DRELAXED      the word overtakes the payload
 *   wrong  -DFENCED -DFIRST_LINE_FIRST   the word is written before the other lines
 *   stuck  -DFENCED -DNO_BARRIER
 *   stuck  -DFENCED -DNO_LOOK_AGAIN      between `sleeping` and the sleep
 *   stuck  -DFENCED -DNO_WAKE_FOR_ROOM
 */
#define THREADS 2
#define DEPTH 3
#define WRITER 0
#define READER 1
#ifndef RECORDS
#define RECORDS 4
#endif
#define LINES 4
#define TELL 1
#define WORD(i) ((i) % LINES)
#define PAYLOAD(i) (LINES + (i) % LINES)
#define HEAD (2 * LINES)
#define SLEEPING(t) (2 * LINES + 1 + (t)) /* in the heap of each */
#define FIRST(i, lines) (2 * ((i) + 1) + (lines) - 1) /* the word: number, and how long the record is */
#define NUMBER(word) ((word) / 2)
#define WORDS (2 * LINES + 3)
#include "memory.pml"

bit bell[THREADS]; /* eventfd: stays rung until it is cleared */

/* tti_publish(), then wake_peer() */
inline publish(w, v)
{
#ifdef FALLBACK
    store_seq_cst(w, v);     /* = transport/shm/publish.h: if (!fenced) { atomic_store(word, value); return; } */
#elif defined RELAXED
    store(w, v);
#else
    store_release(w, v);     /* = transport/shm/publish.h: atomic_store_explicit(word, value, memory_order_release); */
#endif
}

inline wake_peer()
{
#ifdef FALLBACK
    load_seq_cst(SLEEPING(1 - me), n);
#else
    load(SLEEPING(1 - me), n); /* = transport/shm/ring_link.c: if (atomic_load(&link->peer_head->sleeping) != 0) */
#endif
    if
    :: n != 0 -> atomic { drained -> bell[1 - me] = 1 } /* = transport/shm/ring_link.c: link->port->ops->bell_ring(link->port, link->peer_bell); */
    :: else
    fi;
    n = 0
}

/* tti_messenger_sleep(): `can` is whether there is something to do. */
inline sleep(can)
{
#if defined FALLBACK
    store_seq_cst(SLEEPING(me), 1); /* = transport/turn.c: atomic_store(sleeping, 1); */
#else
    store_seq_cst(SLEEPING(me), 1);
    drained; /* fence_others() is a barrier for its caller, too */
#ifndef NO_BARRIER
    fence_others(n); /* = transport/turn.c: if (own->fenced != 0 && m->has_near && !m->port->ops->fence_others(m->port)) */
#endif
#endif
#ifndef NO_LOOK_AGAIN
#ifdef FALLBACK
    none_seq_cst;
#endif
    if
    :: can /* = transport/turn.c: if (!turn_all(m, REACH_READY)) { */
    :: else ->
#endif
        bell[me] == 1; /* = transport/turn.c: m->port->ops->poll(m->port, m->poll_set, n, deadline_ns < slice ? deadline_ns : slice); */
        bell[me] = 0   /* = transport/turn.c: m->port->ops->bell_clear(m->port, m->bell); turn_all(m, REACH_READY); */
#ifndef NO_LOOK_AGAIN
    fi;
#endif
    store_release(SLEEPING(me), 0) /* = transport/turn.c: atomic_store_explicit(sleeping, 0, memory_order_release); */
}

/* tti_lines_put() */
proctype writer(byte me)
{
    byte i, n, tail, head, lines;

    for (i : 1 .. RECORDS) {
        if
        :: lines = 1
        :: lines = 2
        fi;
#ifndef NO_ROOM
        do
        :: tail + lines - head <= LINES -> break /* = transport/shm/line_ring.c: if (w->tail + n - w->head <= TTI_LINE_RING_LINES) return 0; */
        :: else ->
            head = mem[HEAD]; /* = transport/shm/line_ring.c: w->head = atomic_load_explicit(&w->ring->head, memory_order_acquire); */
            assert(tail - head <= LINES); /* = transport/shm/line_ring.c: if (w->tail - w->head > TTI_LINE_RING_LINES) return -EPROTO; */
            if
            :: tail + lines - head > LINES -> sleep(tail + lines - mem[HEAD] <= LINES)
            :: else
            fi
        od;
#endif
#ifdef FIRST_LINE_FIRST
        store(PAYLOAD(tail), tail + 1);
        publish(WORD(tail), FIRST(tail, lines));
        if
        :: lines == 2 -> store(PAYLOAD(tail + 1), tail + 2)
        :: else
        fi;
#else
        store(PAYLOAD(tail), tail + 1);
        if
        :: lines == 2 -> store(PAYLOAD(tail + 1), tail + 2)
        :: else
        fi;
        publish(WORD(tail), FIRST(tail, lines)); /* = transport/shm/line_ring.c: tti_publish(&first->word, */
#endif
        tail = tail + lines; /* = transport/shm/line_ring.c: w->tail += lines; */
        wake_peer()
    }
}

/* tti_lines_frame(), tti_lines_take() */
proctype reader(byte me)
{
    byte i, n, x, head, told, lines;

    for (i : 1 .. RECORDS) {
        do
#ifdef READ_TOO_EARLY
        :: x = mem[PAYLOAD(head)];
            if
            :: NUMBER(mem[WORD(head)]) == head + 1 -> assert(x == head + 1); break
            :: else -> sleep(NUMBER(mem[WORD(head)]) == head + 1)
            fi
#else
        :: NUMBER(mem[WORD(head)]) == head + 1 -> break /* = transport/shm/line_ring.c: if (((word ^ (r->head + 1)) & NUMBER_MASK) != 0) { r->seen = word; r->in_row = 0; return -EAGAIN; } */
        :: else -> sleep(NUMBER(mem[WORD(head)]) == head + 1)
#endif
        od;
        x = 0;
        lines = 1 + mem[WORD(head)] % 2; /* = transport/shm/line_ring.c: r->near = BITS_OF(word, NEAR_SHIFT, NEAR_BITS); */
#ifdef HEAD_TOO_EARLY
        publish(HEAD, head + lines);
#endif
        assert(mem[PAYLOAD(head)] == head + 1);
        if
        :: lines == 2 -> assert(mem[PAYLOAD(head + 1)] == head + 2)
        :: else
        fi;
        head = head + lines; /* = transport/shm/line_ring.c: r->head += r->lines; if (r->head - r->told < TELL) return; r->told = r->head; tti_publish(&r->ring->head, r->head, r->fenced); */
        if
        :: head - told >= TELL -> told = head; publish(HEAD, head)
#ifndef NO_WAKE_FOR_ROOM
            ; wake_peer() /* = transport/shm/ring_link.c: if (link->in.told != told) wake_peer(link); */
#endif
        :: else
        fi
    }
}

init {
    atomic {
        run memory(0);
        run memory(1);
        run writer(WRITER);
        run reader(READER)
    }
}

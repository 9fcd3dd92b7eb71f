/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bulk.pml - payloads through a ring of bytes, in pieces: src/transport/shm/bulk_ring.c, publish.h, transport/turn.c.
 *
 * Model   One thread writes BYTES bytes through a ring of SIZE, the other reads them. Each call moves what is there or
 *         has room when it begins, or only one byte of it (its payload ends); it does so in pieces of one or two bytes,
 *         which are chosen freely at each end, and tells of each piece. Both sleep by the bell when they can do
 *         nothing. What is in a byte is its number: a reader finds that, or has read what is old or too new.
 * Note    Without fence_others() the sleeper's own look is made by acquire loads. ACQUIRED lets one overtake the store
 *         to `sleeping`, as the rules of C11 and a few processors do, and a wake-up is lost: the sleeper looks again
 *         when its slice of time is over.
 * Checks
 *
 *   holds  -DFENCED                      a ring of two pieces
 *   holds  -DFENCED -DPSO
 *   holds  -DFALLBACK
 *   holds  -DFALLBACK -DPSO
 *   holds  -DFENCED -DSIZE=4 -DBYTES=6   a ring of two larger pieces, or four
 *   holds  -DFENCED -DSIZE=4 -DBYTES=6 -DPSO
 *   wrong  -DFENCED -DNO_ROOM            the writer does not look at head
 *   wrong  -DFENCED -DTAIL_TOO_EARLY     tail is published before the bytes are written
 *   wrong  -DFENCED -DHEAD_TOO_EARLY     the reader gives back what it still reads
 *   wrong  -DFENCED -DREAD_TOO_EARLY     the bytes are read before tail
 *   wrong  -DFENCED -DPSO -DRELAXED      tail overtakes the bytes
 *   stuck  -DFENCED -DNO_SIGNAL_FENCE    the compiler has moved the look at `sleeping` before the word
 *   stuck  -DFENCED -DNO_BARRIER         the sleeper's, on which the fast way of publish stands
 *   stuck  -DFALLBACK -DRELEASED         no barrier at all: the word waits in the buffer when `sleeping` is looked at
 *   stuck  -DFALLBACK -DPSO -DRELEASED
 *   stuck  -DFALLBACK -DPSO -DACQUIRED   the sleeper's own look overtakes its store to `sleeping`
 *   stuck  -DFENCED -DNO_LOOK_AGAIN      between `sleeping` and the sleep
 *   stuck  -DFENCED -DNO_WAKE_FOR_ROOM
 */
#define THREADS 2
#define DEPTH 3
#define WRITER 0
#define READER 1
#ifndef SIZE
#define SIZE 2
#endif
#ifndef BYTES
#define BYTES 5
#endif
#define DATA(i) ((i) % SIZE)
#define TAIL SIZE
#define HEAD (SIZE + 1)
#define SLEEPING(t) (SIZE + 2 + (t)) /* in the heap of each */
#define WORDS (SIZE + 4)
#include "memory.pml"

bit bell[THREADS]; /* eventfd: stays rung until it is cleared */

/* tti_publish() */
inline publish(w, v)
{
#if defined FALLBACK && !defined RELEASED
    store_seq_cst(w, v);     /* = transport/shm/publish.h: if (!fenced) { atomic_store(word, value); return; } */
#elif defined RELAXED
    store(w, v);
#else
    store_release(w, v)      /* = transport/shm/publish.h: atomic_store_explicit(word, value, memory_order_release); */
#endif
}

inline look_at_sleeping()
{
#ifdef FALLBACK
    load_seq_cst(SLEEPING(1 - me), n)
#else
    load(SLEEPING(1 - me), n) /* = transport/shm/ring_link.c: if (atomic_load(&link->peer_head->sleeping) != 0) */
#endif
}

inline ring_bell()
{
    if
    :: n != 0 -> atomic { drained -> bell[1 - me] = 1 } /* = transport/shm/ring_link.c: link->port->ops->bell_ring(link->port, link->peer_bell); */
    :: else
    fi;
    n = 0
}

/* tti_publish(), then tell(), which is wake_peer() */
inline publish_and_tell(w, v)
{
#ifdef NO_SIGNAL_FENCE
    look_at_sleeping();
    publish(w, v);
#else
    publish(w, v);           /* = transport/shm/publish.h: atomic_signal_fence(memory_order_seq_cst); */
    look_at_sleeping();
#endif
    ring_bell()
}

/* tti_messenger_sleep(): `can` is whether there is something to do. */
inline sleep(can)
{
    store_seq_cst(SLEEPING(me), 1); /* = transport/turn.c: atomic_store(sleeping, 1); */
#ifndef FALLBACK
    drained; /* fence_others() is a barrier for its caller, too */
#ifndef NO_BARRIER
    fence_others(n); /* = transport/turn.c: if (own->fenced != 0 && m->has_near && !m->port->ops->fence_others(m->port)) */
#endif
#endif
#ifndef NO_LOOK_AGAIN
#if defined FALLBACK && !defined ACQUIRED
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

/* piece_of(): never beyond the end of the ring, nor more than is left. */
inline choose_piece()
{
    if
    :: piece = 1
    :: left >= 2 && own % SIZE + 2 <= SIZE -> piece = 2 /* = transport/shm/bulk_ring.c: piece = piece < bytes ? piece : bytes; return piece < to_end ? piece : to_end; */
    fi
}

inline write_piece()
{
    store(DATA(own), own + 1); /* = transport/shm/bulk_ring.c: memcpy(w->ring->data + (w->own & (w->size - 1)), from, piece); */
    if
    :: piece == 2 -> store(DATA(own + 1), own + 2)
    :: else
    fi
}

/* tti_bulk_put() */
proctype writer(byte me)
{
    byte n, own, used, left, piece;

    do
    :: own == BYTES -> break
    :: else ->
        left = BYTES - own;
#ifndef NO_ROOM
        used = own - mem[HEAD]; /* = transport/shm/bulk_ring.c: const uint64_t used = w->own - atomic_load_explicit(&w->ring->head, memory_order_acquire); */
        assert(used <= SIZE); /* = transport/shm/bulk_ring.c: if (used > w->size) return -EPROTO; */
        if
        :: left > SIZE - used -> left = SIZE - used /* = transport/shm/bulk_ring.c: if (bytes > w->size - used) bytes = w->size - used; */
        :: else
        fi;
        used = 0;
#endif
        if
        :: left == 0 -> sleep(own - mem[HEAD] < SIZE) /* = transport/shm/ring_link.c: *seen_out = link->out_bulk.own - link->out_bulk.size; */
        :: left > 1 -> left = 1
        :: left > 0
        fi;
        do
        :: left == 0 -> break
        :: else ->
            choose_piece();
#ifdef TAIL_TOO_EARLY
            publish_and_tell(TAIL, own + piece);
            write_piece();
            own = own + piece;
#else
            write_piece();
            own = own + piece;
            publish_and_tell(TAIL, own); /* = transport/shm/bulk_ring.c: w->own += piece; tti_publish(&w->ring->tail, w->own, w->fenced); tell(ctx); */
#endif
            left = left - piece;
            piece = 0
        od
    od
}

inline give_back(v)
{
#ifdef NO_WAKE_FOR_ROOM
    publish(HEAD, v)
#else
    publish_and_tell(HEAD, v)
#endif
}

inline read_piece()
{
    assert(mem[DATA(own)] == own + 1); /* = transport/shm/bulk_ring.c: memcpy(to, r->ring->data + (r->own & (r->size - 1)), piece); */
    if
    :: piece == 2 -> assert(mem[DATA(own + 1)] == own + 2)
    :: else
    fi
}

/* tti_bulk_take() */
proctype reader(byte me)
{
    byte n, x, own, left, piece;

    do
    :: own == BYTES -> break
    :: else ->
#ifdef READ_TOO_EARLY
        x = mem[DATA(own)];
#endif
        left = mem[TAIL] - own; /* = transport/shm/bulk_ring.c: const uint64_t there = atomic_load_explicit(&r->ring->tail, memory_order_acquire) - r->own; */
        assert(left <= SIZE); /* = transport/shm/bulk_ring.c: if (there > r->size) return -EPROTO; if (bytes > there) bytes = (size_t)there; */
#ifdef READ_TOO_EARLY
        assert(left == 0 || x == own + 1);
        x = 0;
#endif
        if
        :: left == 0 -> sleep(mem[TAIL] != own) /* = transport/shm/ring_link.c: *seen_out = link->in_bulk.own; */
        :: left > 1 -> left = 1
        :: left > 0
        fi;
        do
        :: left == 0 -> break
        :: else ->
            choose_piece();
#ifdef HEAD_TOO_EARLY
            give_back(own + piece);
            read_piece();
            own = own + piece;
#else
            read_piece();
            own = own + piece;
            give_back(own); /* = transport/shm/bulk_ring.c: r->own += piece; tti_publish(&r->ring->head, r->own, r->fenced); tell(ctx); */
#endif
            left = left - piece;
            piece = 0
        od
    od
}

init {
    atomic {
        run memory(0);
        run memory(1);
        run writer(WRITER);
        run reader(READER)
    }
}

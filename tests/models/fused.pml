/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fused.pml - members that work on each other's buffers, and how they leave: src/coll/host/fused.c, fused_share.c.
 *
 * Model   A call on registered memory after all cards were read: an all_reduce of ones in PIECES pieces, each read from
 *         all inputs and written to all outputs; with CLAIMED who runs takes the next piece, else each has its own.
 *         Whoever waits may fail (time is up, an abort); whoever finds a failure fails. A member that leaves, either
 *         way, gives its buffers back to its user, who writes to them at once. THREADS_HERE: members are threads of
 *         one process; else a member that fails replaces what others write to by other pages, but not what they read.
 * Says    Who leaves with success has the sum of what was given; nobody writes to buffers that were given back.
 * Checks
 *
 *   holds  -DCLAIMED -DTHREADS_HERE
 *   holds  -DCLAIMED -DTHREADS_HERE -DPSO
 *   holds  -DCLAIMED -DPSO
 *   holds  -DTHREADS_HERE
 *   holds  -DTHREADS_HERE -DPSO
 *   holds  -DRANKS=3 -DPIECES=1 -DCLAIMED
 *   wrong  -DCLAIMED -DTHREADS_HERE -DNO_LOOK_BEFORE
 *   wrong  -DCLAIMED -DNO_LOOK_AFTER                  what a failed member's user wrote is in the sum
 *   wrong  -DCLAIMED -DTHREADS_HERE -DNO_AWAIT        who fails does not wait for those in a piece
 *   wrong  -DCLAIMED -DTHREADS_HERE -DPIECE_RELAXED   in_piece is still in the buffer at the look
 *   holds  -DCLAIMED -DPSO -DFINISHED_RELAXED         not needed: the look after a piece has it out already
 *   wrong  -DCLAIMED -DCOUNT_TOO_EARLY                a piece counts before it is done
 *   wrong  -DLEAVE_AT_ONCE                            nobody awaits the end
 *   wrong  -DCLAIMED -DPSO -DNO_LOOK_AT_IT            the user's stores overtake `failed`
 */
#ifndef RANKS
#define RANKS 2
#endif
#ifndef PIECES
#define PIECES RANKS
#endif
#define THREADS RANKS
#define DEPTH 4
#define TAKEN 0
#define FINISHED 1
#define BASE(r) (2 + (r) * (3 + 2 * PIECES))
#define FAILED(r) BASE(r)
#define IN_PIECE(r) (BASE(r) + 1)
#define RESULT(r) (BASE(r) + 2)
#define IN(r, p) (BASE(r) + 3 + (p))
#define OUT(r, p) (BASE(r) + 3 + PIECES + (p))
#define WORDS BASE(RANKS)
#define OF_THE_USER 50
#include "memory.pml"

byte gone;    /* members that have left */
bit  cut[RANKS]; /* other pages, where others write */

inline look_at_all() /* = coll/host/fused_share.c: if (rank == f->rank || atomic_load(&f->channel->members[rank].lines->failed) == TUTTI_OK) return TUTTI_OK; */
{
    r = 0;
    do
    :: r < RANKS && r != me ->
        load_seq_cst(FAILED(r), x);
        if
        :: x != 0 -> fails = 1
        :: else
        fi;
        r++
    :: r == me -> r++
    :: r == RANKS && r != me -> break
    od;
    r = 0;
    x = 0
}

inline say_in_piece(v)
{
#ifdef PIECE_RELAXED
    store_release(IN_PIECE(me), v)
#else
    store_seq_cst(IN_PIECE(me), v) /* = coll/host/fused_share.c: atomic_store(&f->channel->members[f->rank].lines->in_piece, in_piece); */
#endif
}

/* All inputs to all outputs. */
inline combine()
{
    sum = 0;
    for (r : 0 .. RANKS - 1) {
        load(IN(r, piece), x);
        sum = sum + x
    }
    for (r : 0 .. RANKS - 1) {
        if
        :: !cut[r] -> store(OUT(r, piece), sum)
        :: cut[r]
        fi
    }
    x = 0;
    r = 0;
    sum = 0
}

inline do_piece() /* = coll/host/fused_share.c: say_in_piece(f, 1); st = look_at_all(f); if (st == TUTTI_OK) what(f, piece); say_in_piece(f, 0); return st == TUTTI_OK ? look_at_all(f) : st; */
{
    say_in_piece(1);
#ifndef NO_LOOK_BEFORE
    look_at_all();
#endif
#ifdef COUNT_TOO_EARLY
    add(FINISHED, 1, x);
#endif
    if
    :: !fails -> combine()
    :: else
    fi;
    say_in_piece(0);
#ifndef NO_LOOK_AFTER
    if
    :: !fails -> look_at_all()
    :: else
    fi
#endif
}

inline take_pieces()
{
    do
    :: fails -> break
    :: else ->
        d_step {
#ifndef PSO
            drained ->
#endif
            piece = mem[TAKEN]; /* = coll/host/fused_share.c: i = atomic_fetch_add_explicit(&shared->taken, 1, memory_order_relaxed); */
            mem[TAKEN] = piece + 1
        };
        if
        :: piece >= PIECES -> break
        :: else ->
            do_piece();
#ifndef COUNT_TOO_EARLY
            if
            :: !fails ->
#ifdef FINISHED_RELAXED
                d_step { mem[FINISHED] = mem[FINISHED] + 1 }
#else
                add(FINISHED, 1, x) /* = coll/host/fused_share.c: atomic_fetch_add_explicit(&shared->finished, 1, memory_order_acq_rel); */
#endif
            :: else
            fi;
#endif
            x = 0
        fi
    od;
    piece = 0
}

#if RANKS == 2
#define all_have_ended (mem[RESULT(1 - me)] == 1)
#define somebody_failed (mem[FAILED(1 - me)] != 0)
#else
#define all_have_ended (mem[RESULT(0)] + mem[RESULT(1)] + mem[RESULT(2)] - mem[RESULT(me)] == 2)
#define somebody_failed (mem[FAILED(0)] + mem[FAILED(1)] + mem[FAILED(2)] - mem[FAILED(me)] != 0)
#endif

/* await_end() */
inline await_end()
{
    store_release(RESULT(me), 1); /* = coll/host/fused.c: tti_host_post(f->channel, TTI_RESULT); */
    if
#ifdef LEAVE_AT_ONCE
    :: skip
#else
#ifdef CLAIMED
    :: mem[FINISHED] >= PIECES /* = coll/host/fused_share.c: if (atomic_load_explicit(&shared->finished, memory_order_acquire) >= f->pieces) return true; */
#endif
    :: all_have_ended /* = coll/host/fused.c: return tti_host_await_all(f->channel, TTI_RESULT); */
    :: fails = 1
    :: somebody_failed -> fails = 1
#endif
    fi
}

/* take_back() */
inline fail()
{
    store_seq_cst(FAILED(me), 1); /* = coll/host/channel.c: atomic_store(&own->failed, (uint32_t)status | (uint32_t)(culprit + 1) << 8); */
#ifndef NO_LOOK_AT_IT
    load_seq_cst(FAILED(me), x);  /* = coll/host/channel.c: while (!atomic_load(&channel->has_failed)) */
#endif
#if defined THREADS_HERE && !defined NO_AWAIT
    for (r : 0 .. RANKS - 1) {
        do
        :: r == me -> break
        :: r != me ->
            load_seq_cst(IN_PIECE(r), x); /* = coll/host/fused.c: atomic_load(&f->channel->members[r].lines->in_piece) != 0) */
            if
            :: x == 0 -> break
            :: else -> mem[IN_PIECE(r)] == 0
            fi
        od
    }
    r = 0;
#endif
#ifndef THREADS_HERE
    cut[me] = 1;
#endif
    x = 0
}

proctype member(byte me)
{
    byte piece, r, x, sum;
    bit  fails;

#ifdef CLAIMED
    take_pieces();
#else
    piece = me;
    do_piece();
#endif
    if
    :: !fails -> await_end()
    :: else
    fi;
    if
    :: fails -> fail()
    :: else ->
        for (piece : 0 .. PIECES - 1) {
            load(OUT(me, piece), x);
            assert(x == RANKS)
        }
    fi;
    for (piece : 0 .. PIECES - 1) { /* what the user does next */
        store(IN(me, piece), OF_THE_USER);
        if
        :: !cut[me] -> store(OUT(me, piece), OF_THE_USER)
        :: cut[me]
        fi
    }
    atomic { drained -> gone++ };
    gone == RANKS;
    for (piece : 0 .. PIECES - 1) {
        assert(cut[me] || mem[OUT(me, piece)] == OF_THE_USER)
    }
}

init {
    byte t, p;

    atomic {
        for (t : 0 .. RANKS - 1) {
            for (p : 0 .. PIECES - 1) {
                mem[IN(t, p)] = 1
            }
        }
        for (t : 0 .. RANKS - 1) {
            run memory(t);
            run member(t)
        }
    }
}

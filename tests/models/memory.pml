/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memory.pml - memory that shows stores late: what the other models are written on.
 *
 * How     A thread's store goes into its own buffer, and from there to memory when the buffer likes: process memory()
 *         of each thread. The thread itself reads its own stores back.
 *           TSO   (x86)    buffers are first in, first out
 *           PSO   (-DPSO)  a store overtakes earlier ones to other words, as on processors with weaker orders;
 *                          a release store overtakes nothing, but later plain stores overtake it
 *         A read-modify-write waits until the buffer is empty; under PSO one without release order does not. A
 *         sequentially consistent store (PSO) is a release store, and sequentially consistent loads wait until it
 *         is out; under TSO it empties the buffer.
 * Not     Loads are made in the order of the program. An acquire load is one that later loads do not overtake, and a
 *         release store one that earlier loads do not fall behind; a model shows what either is for by a mutant
 *         that swaps the two. Stores reach all other threads at one time.
 * Bound   A thread waits at a full buffer of DEPTH stores.
 * Use     Set THREADS, WORDS and DEPTH, include this, run memory(t) for each thread t beside it. In a thread `me` is
 *         its number. */
#ifndef DEPTH
#define DEPTH 3
#endif

#define PLAIN 0
#define RELEASE 1
#define SEQ_CST 2

typedef store_buffer {
    byte n;
    byte word[DEPTH];
    byte value[DEPTH];
    byte kind[DEPTH];
};

byte         mem[WORDS];
store_buffer buf[THREADS];
byte         sleeps_on[THREADS]; /* the word, plus one; 0: it does not sleep */
hidden byte  mi; /* of a step; a d_step may not end with a loop */

#define drained (buf[me].n == 0)

inline put_store(p_w, p_v, p_k)
{
    buf[me].word[buf[me].n] = p_w;
    buf[me].value[buf[me].n] = p_v;
    buf[me].kind[buf[me].n] = p_k;
    buf[me].n++;
}

inline store(p_w, p_v) { d_step { buf[me].n < DEPTH -> put_store(p_w, p_v, PLAIN) } }
inline store_release(p_w, p_v) { d_step { buf[me].n < DEPTH -> put_store(p_w, p_v, RELEASE) } }

#ifdef PSO
inline store_seq_cst(p_w, p_v) { d_step { buf[me].n < DEPTH -> put_store(p_w, p_v, SEQ_CST) } }
#else
inline store_seq_cst(p_w, p_v) { d_step { drained -> mem[p_w] = p_v } }
#endif

inline see(p_w, p_x)
{
    p_x = mem[p_w];
    mi = 0;
    do
    :: mi < buf[me].n ->
        if
        :: buf[me].word[mi] == p_w -> p_x = buf[me].value[mi]
        :: else
        fi;
        mi++
    :: else -> break
    od
}

/* Plain, relaxed and acquire. */
inline load(p_w, p_x) { d_step { see(p_w, p_x); mi = 0 } }

#if DEPTH > 4
#error "none_seq_cst looks at four"
#endif
#define is_sc(k) (buf[me].n > k && buf[me].kind[k] == SEQ_CST)
#if DEPTH == 1
#define none_seq_cst (!is_sc(0))
#elif DEPTH == 2
#define none_seq_cst (!is_sc(0) && !is_sc(1))
#elif DEPTH == 3
#define none_seq_cst (!is_sc(0) && !is_sc(1) && !is_sc(2))
#else
#define none_seq_cst (!is_sc(0) && !is_sc(1) && !is_sc(2) && !is_sc(3))
#endif

inline load_seq_cst(p_w, p_x) { d_step { none_seq_cst -> see(p_w, p_x); mi = 0 } }

/* A read-modify-write in one step: acquire and release, or more. */
inline add(p_w, p_d, p_before) { d_step { drained -> p_before = mem[p_w]; mem[p_w] = mem[p_w] + p_d } }

/* One store goes from the buffer of t to memory. */
inline commit(p_t, p_k)
{
    mem[buf[p_t].word[p_k]] = buf[p_t].value[p_k];
    mi = p_k;
    do
    :: mi + 1 < buf[p_t].n ->
        buf[p_t].word[mi] = buf[p_t].word[mi + 1];
        buf[p_t].value[mi] = buf[p_t].value[mi + 1];
        buf[p_t].kind[mi] = buf[p_t].kind[mi + 1];
        mi++
    :: else -> break
    od;
    buf[p_t].n--;
    buf[p_t].word[buf[p_t].n] = 0;
    buf[p_t].value[buf[p_t].n] = 0;
    buf[p_t].kind[buf[p_t].n] = 0
}

#define other(t, k, j) (buf[t].word[k] != buf[t].word[j])
#define overtakes(t, k) (buf[t].n > k && buf[t].kind[k] == PLAIN)

proctype memory(byte t)
{
end:
    do
    :: d_step { buf[t].n > 0 -> commit(t, 0) }
#ifdef PSO
#if DEPTH > 1
    :: d_step { overtakes(t, 1) && other(t, 1, 0) -> commit(t, 1) }
#endif
#if DEPTH > 2
    :: d_step { overtakes(t, 2) && other(t, 2, 0) && other(t, 2, 1) -> commit(t, 2) }
#endif
#if DEPTH > 3
    :: d_step { overtakes(t, 3) && other(t, 3, 0) && other(t, 3, 1) && other(t, 3, 2) -> commit(t, 3) }
#endif
#endif
    od
}

/* The kernel's: it compares behind a barrier of its own, and whoever wakes has one, too. Nobody is woken by the
 * clock here: a wake-up that is lost is a state that nobody leaves. */
inline wait_word(p_w, p_seen)
{
    atomic {
        drained ->
        if
        :: mem[p_w] == p_seen -> sleeps_on[me] = p_w + 1
        :: else
        fi
    };
    sleeps_on[me] == 0
}

inline wake_word(p_w)
{
    d_step {
        drained ->
        mi = 0;
        do
        :: mi < THREADS ->
            if
            :: sleeps_on[mi] == p_w + 1 -> sleeps_on[mi] = 0
            :: else
            fi;
            mi++
        :: else -> break
        od;
        mi = 0
    }
}

/* The port's fence_others(): between its begin and its end each other thread is at some moment behind a barrier, in
 * any order. left is a byte of the caller's. */
inline fence_others(p_left)
{
    p_left = ((1 << THREADS) - 1) & ~(1 << me);
    do
    :: atomic { (p_left & 1) != 0 && buf[0].n == 0 -> p_left = p_left & ~1 }
#if THREADS > 1
    :: atomic { (p_left & 2) != 0 && buf[1].n == 0 -> p_left = p_left & ~2 }
#endif
#if THREADS > 2
    :: atomic { (p_left & 4) != 0 && buf[2].n == 0 -> p_left = p_left & ~4 }
#endif
#if THREADS > 3
    :: atomic { (p_left & 8) != 0 && buf[3].n == 0 -> p_left = p_left & ~8 }
#endif
    :: p_left == 0 -> break
    od
}

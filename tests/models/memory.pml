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
hidden byte  mi, mj;

#define drained (buf[me].n == 0)

inline put_store(w, v, k)
{
    buf[me].word[buf[me].n] = w;
    buf[me].value[buf[me].n] = v;
    buf[me].kind[buf[me].n] = k;
    buf[me].n++;
}

inline store(w, v) { d_step { buf[me].n < DEPTH -> put_store(w, v, PLAIN) } }
inline store_release(w, v) { d_step { buf[me].n < DEPTH -> put_store(w, v, RELEASE) } }

#ifdef PSO
inline store_seq_cst(w, v) { d_step { buf[me].n < DEPTH -> put_store(w, v, SEQ_CST) } }
#else
inline store_seq_cst(w, v) { d_step { drained -> mem[w] = v } }
#endif

inline see(w, x)
{
    x = mem[w];
    mi = 0;
    do
    :: mi < buf[me].n ->
        if
        :: buf[me].word[mi] == w -> x = buf[me].value[mi]
        :: else
        fi;
        mi++
    :: else -> break
    od
}

/* Plain, relaxed and acquire. */
inline load(w, x) { d_step { see(w, x) } }

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

inline load_seq_cst(w, x) { d_step { none_seq_cst -> see(w, x) } }

/* A read-modify-write in one step: acquire and release, or more. */
inline add(w, d, before) { d_step { drained -> before = mem[w]; mem[w] = mem[w] + d } }

/* One store goes from the buffer of t to memory. */
inline commit(t, k)
{
    mem[buf[t].word[k]] = buf[t].value[k];
    mi = k;
    do
    :: mi + 1 < buf[t].n ->
        buf[t].word[mi] = buf[t].word[mi + 1];
        buf[t].value[mi] = buf[t].value[mi + 1];
        buf[t].kind[mi] = buf[t].kind[mi + 1];
        mi++
    :: else -> break
    od;
    buf[t].n--;
    buf[t].word[buf[t].n] = 0;
    buf[t].value[buf[t].n] = 0;
    buf[t].kind[buf[t].n] = 0
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
inline wait_word(w, seen)
{
    atomic {
        drained ->
        if
        :: mem[w] == seen -> sleeps_on[me] = w + 1
        :: else
        fi
    };
    sleeps_on[me] == 0
}

inline wake_word(w)
{
    d_step {
        drained ->
        mi = 0;
        do
        :: mi < THREADS ->
            if
            :: sleeps_on[mi] == w + 1 -> sleeps_on[mi] = 0
            :: else
            fi;
            mi++
        :: else -> break
        od
    }
}

/* The port's fence_others(): between its begin and its end each other thread is at some moment behind a barrier, in
 * any order. left is a byte of the caller's. */
inline fence_others(left)
{
    left = ((1 << THREADS) - 1) & ~(1 << me);
    do
    :: atomic { (left & 1) != 0 && buf[0].n == 0 -> left = left & ~1 }
#if THREADS > 1
    :: atomic { (left & 2) != 0 && buf[1].n == 0 -> left = left & ~2 }
#endif
#if THREADS > 2
    :: atomic { (left & 4) != 0 && buf[2].n == 0 -> left = left & ~4 }
#endif
#if THREADS > 3
    :: atomic { (left & 8) != 0 && buf[3].n == 0 -> left = left & ~8 }
#endif
    :: left == 0 -> break
    od
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * told.pml - from which call on members ask each other for cards: `Asked` in src/coll/host/fused.c.
 *
 * Model   Each member has registered memory from some call on, freely chosen, says so, and enters the call; in each call
 *         it decides whether all have said so for this call.
 * Says    All members decide alike in each call, and ask when all have told.
 * Checks
 *
 *   holds  -DRANKS=2
 *   holds  -DRANKS=2 -DPSO
 *   holds  -DRANKS=3 -DCALLS=2
 *   wrong  -DRANKS=2 -DFROM_THIS_CALL     it counts from the call in which it is said
 *   wrong  -DRANKS=2 -DNO_ENTRY_RULE      members begin a call when they like
 *   wrong  -DRANKS=2 -DTOLD_TOO_LATE      after the call was entered
 *   wrong  -DRANKS=2 -DPSO -DRELAXED      `entered` overtakes it
 */
#ifndef CALLS
#define CALLS 4
#endif
#define THREADS RANKS
#define DEPTH 3
#define ENTERED(r) (r)
#define FROM(r) (RANKS + (r))
#define WORDS (2 * RANKS)
#include "memory.pml"

byte asked[CALLS + 1]; /* by how many members, in this call */
byte silent[CALLS + 1];

inline tell()
{
    if
    :: has && from == 0 -> /* = coll/host/fused.c: if (tti_registered_any() && atomic_load_explicit(from, memory_order_relaxed) == 0) */
#ifdef FROM_THIS_CALL
        from = n;
#else
        from = n + 1;
#endif
        store_release(FROM(me), from) /* = coll/host/fused.c: atomic_store_explicit(from, seq + 1, memory_order_release); */
    :: else
    fi
}

/* all_have_told() */
inline decide()
{
    all = 1;
    for (r : 0 .. RANKS - 1) {
        load(FROM(r), x);
        all = all && x != 0 && x <= n /* = coll/host/fused.c: if (from == 0 || from > channel->note.seq) return false; */
    }
    atomic {
        if
        :: all -> asked[n]++
        :: else -> silent[n]++
        fi;
        assert(asked[n] == 0 || silent[n] == 0)
    };
    x = 0;
    r = 0;
    all = 0
}

proctype member(byte me)
{
    byte n, r, x, from;
    bit  has, all;

    for (n : 1 .. CALLS) {
        if
        :: has = 1
        :: skip
        fi;
#ifndef TOLD_TOO_LATE
        tell();
#endif
#ifdef RELAXED
        store(ENTERED(me), n);
#else
        store_release(ENTERED(me), n);
#endif
#ifndef NO_ENTRY_RULE
        for (r : 0 .. RANKS - 1) {
            r == me || mem[ENTERED(r)] >= n - 1 /* channel.pml */
        }
        r = 0;
#endif
#ifdef TOLD_TOO_LATE
        tell();
#endif
        decide()
    }
}

init {
    byte t;

    atomic {
        for (t : 0 .. RANKS - 1) {
            run memory(t);
            run member(t)
        }
    }
}

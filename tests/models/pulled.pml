/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pulled.pml - members that copy straight out of each other's buffers: src/coll/host/pull.c.
 *
 * Model   An all_gather: each shows its buffer in round 0, copies those of all others, says in round 1 that it has, and
 *         awaits that of all others. Whoever waits may fail (time is up, an abort), whoever finds a failure fails. A
 *         member that leaves, either way, gives its buffer back to its user, who writes to it at once. Waits are looks.
 * Says    Who leaves with success has what was given.
 * Checks
 *
 *   holds  -DRANKS=2
 *   holds  -DRANKS=2 -DPSO
 *   holds  -DRANKS=3
 *   holds  -DRANKS=2 -DABORTER                    two threads of a member say that it has failed
 *   holds  -DRANKS=2 -DABORTER -DPSO
 *   wrong  -DRANKS=2 -DABORTER -DNO_AWAIT_FIRST   the second one leaves while the first has not said so yet
 *   wrong  -DRANKS=2 -DNO_CHECK                   nobody looks for failures after the last copy
 *   wrong  -DRANKS=2 -DCHECK_TOO_EARLY            but before it
 *   wrong  -DRANKS=2 -DLEAVE_AT_ONCE              the owner awaits no reader
 *   wrong  -DRANKS=2 -DSAID_TOO_EARLY             a reader says that it is done, and reads
 *   wrong  -DRANKS=2 -DPSO -DNO_AWAIT_FIRST       the user's stores overtake `failed`
 */
#ifdef ABORTER
#define THREADS (RANKS + 1)
#else
#define THREADS RANKS
#endif
#define DEPTH 3
#define STAGED(r) (r)
#define FAILED(r) (RANKS + (r))
#define BUFFER(r) (2 * RANKS + (r))
#define FAILING(r) (3 * RANKS + (r))
#define WORDS (4 * RANKS)
#define OF_THE_USER 50
#include "memory.pml"

#if RANKS == 2
#define somebody_failed (mem[FAILED(1 - me)] != 0)
#else
#define somebody_failed (mem[FAILED(0)] + mem[FAILED(1)] + mem[FAILED(2)] - mem[FAILED(me)] != 0)
#endif

/* tti_host_raise() */
inline raise(rank)
{
    add(FAILING(rank), 1, x); /* = coll/host/channel.c: if (!atomic_exchange(&channel->failing, true)) { */
    if
    :: x == 0 -> store_seq_cst(FAILED(rank), 1) /* = coll/host/channel.c: atomic_store(&own->failed, (uint32_t)status | (uint32_t)(culprit + 1) << 8); */
    :: x != 0
    fi;
#ifndef NO_AWAIT_FIRST
    do
    :: load_seq_cst(FAILED(rank), x); /* = coll/host/channel.c: while (!atomic_load(&channel->has_failed)) */
        if
        :: x != 0 -> break
        :: else -> mem[FAILED(rank)] != 0
        fi
    od;
#endif
    x = 0
}

/* Until all others have staged v. */
inline await_all(v)
{
    r = 0;
    do
    :: r < RANKS && r != me && !fails ->
        if
        :: mem[STAGED(r)] >= v
        :: fails = 1
        :: somebody_failed -> fails = 1
        fi;
        r++
    :: r == me -> r++
    :: (r == RANKS && r != me) || fails -> break
    od;
    r = 0
}

inline check_failed()
{
    for (r : 0 .. RANKS - 1) {
        if
        :: r != me -> load_seq_cst(FAILED(r), x) /* = coll/host/pull.c: atomic_load(&channel->members[r].lines->failed) != TUTTI_OK) */
        :: r == me -> x = 0
        fi;
        fails = fails || x != 0
    }
    x = 0;
    r = 0
}

inline copy_all()
{
    for (r : 0 .. RANKS - 1) {
        load(BUFFER(r), copies[r]) /* = coll/host/pull.c: const ssize_t n = read_memory(pid, from + done, (char *)to + done, piece); */
    }
    r = 0
}

proctype member(byte me)
{
    byte r, x;
    byte copies[RANKS];
    bit  fails;

    store(BUFFER(me), me + 1);
    store_release(STAGED(me), 1); /* = coll/host/pull.c: table[i] = (uint64_t)(uintptr_t)addresses[i]; tti_host_post(channel, TTI_STAGED); */
    await_all(1); /* = coll/host/pull.c: const tutti_status st = tti_host_await(channel, TTI_STAGED, rank); */
    if
    :: !fails ->
#ifdef CHECK_TOO_EARLY
        check_failed();
#endif
#ifndef SAID_TOO_EARLY
        copy_all();
#endif
        store_release(STAGED(me), 2); /* = coll/host/pull.c: tti_host_next(channel); st = tti_host_room(channel); if (st != TUTTI_OK) return st; tti_host_post(channel, TTI_STAGED); */
#ifdef SAID_TOO_EARLY
        copy_all();
#endif
#ifndef LEAVE_AT_ONCE
        await_all(2); /* = coll/host/pull.c: st = tti_host_await_all(channel, TTI_STAGED); */
#endif
#if !defined NO_CHECK && !defined CHECK_TOO_EARLY
        check_failed() /* = coll/host/pull.c: if (st == TUTTI_OK) st = check_failed(channel); if (st == TUTTI_OK) tti_host_next(channel); */
#endif
    :: else
    fi;
    if
    :: fails -> raise(me)
    :: else ->
        for (r : 0 .. RANKS - 1) {
            assert(copies[r] == r + 1)
        }
    fi;
    store(BUFFER(me), OF_THE_USER)
}

#ifdef ABORTER
/* Another thread of member 0 aborts the call. */
proctype aborter(byte me)
{
    byte x;

    raise(0)
}
#endif

init {
    byte t;

    atomic {
        for (t : 0 .. RANKS - 1) {
            run memory(t);
            run member(t)
        }
#ifdef ABORTER
        run memory(RANKS);
        run aborter(RANKS)
#endif
    }
}

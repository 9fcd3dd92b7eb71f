/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gate.pml - turns of a group's collectives, by the gate and under the lock: src/group/gate.h, queue.c, queue_end.c, progress.c, workers.c.
 *
 * Model   CALLERS threads make CALLS blocking calls each. With PUSHER one more issues WORKS works, which it, a caller or
 *         the worker runs; with LEAVES it does not wait for them. With CLOSER one more closes the group at some moment, and
 *         frees it when nobody is inside; with ABORTER one aborts it. Works are taken out of the queue then, but with
 *         BEGUN, where the backend has begun them: those are run, also in a group that is finished.
 *         What the lock guards are variables here; the gate, the event, and what a collective writes are memory.
 *         Who is on its way into a call, and not yet counted, is the program's to know of: nobody frees before.
 * Says    One collective at a time, in the order of their numbers, each sees what the one before it wrote; all come to
 *         their end; nobody uses a group that was freed.
 * Checks
 *
 *   holds  -DCALLERS=2 -DCALLS=2
 *   holds  -DCALLERS=2 -DCALLS=2 -DPSO
 *   holds  -DCALLERS=3 -DCALLS=1
 *   holds  -DCALLERS=2 -DCALLS=2 -DCLOSER
 *   holds  -DCALLERS=2 -DCALLS=1 -DCLOSER -DPSO
 *   holds  -DCALLERS=1 -DCALLS=2 -DPUSHER
 *   holds  -DCALLERS=1 -DCALLS=1 -DPUSHER -DPSO
 *   holds  -DCALLERS=1 -DCALLS=1 -DPUSHER -DCLOSER
 *   holds  -DCALLERS=1 -DCALLS=1 -DPUSHER -DLEAVES -DCLOSER -DWORKS=2 -DBEGUN
 *   holds  -DCALLERS=1 -DCALLS=1 -DPUSHER -DLEAVES -DABORTER -DWORKS=2
 *   holds  -DCALLERS=1 -DCALLS=1 -DPUSHER -DLEAVES -DABORTER -DWORKS=2 -DBEGUN
 *   wrong  -DCALLERS=2 -DCALLS=2 -DPSO -DLEAVE_RELAXED   the next one enters before the data is out
 *   stuck  -DCALLERS=2 -DCALLS=2 -DLEAVE_BLIND           without looking whether somebody holds the gate
 *   stuck  -DCALLERS=2 -DCALLS=1 -DNO_SIGNAL
 *   stuck  -DCALLERS=2 -DCALLS=1 -DCOUNT_TOO_LATE        the event's count is taken after the lock is let go
 *   stuck  -DCALLERS=2 -DCALLS=1 -DLISTENS_TOO_LATE      who is about to sleep says so after the lock is let go
 *   wrong  -DCALLERS=2 -DCALLS=1 -DCLOSER -DHOLD_FORGETS who is inside by the gate is not counted
 *   wrong  -DCALLERS=1 -DCALLS=1 -DCLOSER -DTOUCH_AFTER  the group is used after leave
 *   wrong  -DCALLERS=3 -DCALLS=1 -DOPEN_TOO_EARLY        while numbers given out have not run
 *   wrong  -DCALLERS=2 -DCALLS=1 -DCLOSER -DNO_HOLD_TO_CLOSE
 *   wrong  -DCALLERS=1 -DCALLS=1 -DPUSHER -DLEAVES -DCLOSER -DWORKS=2 -DBEGUN -DREFUSED_RAISES  who is refused behind a gap raises the turn
 *   stuck  -DCALLERS=1 -DCALLS=1 -DPUSHER -DLEAVES -DABORTER -DWORKS=2 -DNO_GAPS  nobody is refused behind a gap
 */
#ifdef PUSHER
#define N_PUSHERS 2 /* and the worker */
#else
#define N_PUSHERS 0
#endif
#if defined CLOSER || defined ABORTER
#define N_CLOSERS 1
#else
#define N_CLOSERS 0
#endif
#define THREADS (CALLERS + N_PUSHERS + N_CLOSERS)
#define DEPTH 2
#define GATE 0
#define DATA 1 /* what collectives work on */
#define CHANGED 2
#define CHANGED_WAITERS 3
#define TODO 4
#define TODO_WAITERS 5
#define WORDS 6
#define BUSY 1
#define HELD 2
#define ONE 4
#define NUMBER(w) ((w) / ONE)
#ifndef WORKS
#define WORKS 1
#endif
#ifdef BEGUN
#define IS_BEGUN true
#else
#define IS_BEGUN false
#endif
#include "memory.pml"

/* Under the lock. */
bit  locked, held, closing, aborted, gaps, stop;
byte next_seq = 1, turn = 1, inside;
byte work, last_work; /* the numbers of those that are queued; 0: none */
byte works_done;
byte listening; /* threads that sleep on CHANGED, or are about to */

/* Of the model. */
byte running, last, entering;
bit  closed, freed;

#define use() assert(!freed)
#define finished (closing || aborted)

inline lock() { atomic { !locked -> locked = 1 } }
inline unlock() { atomic { drained -> locked = 0 } }

/* ---- the event: event.pml ---- */

inline signal(event)
{
    add(event, 1, n);
    load_seq_cst(event + 1, n);
    if
    :: n != 0 -> wake_word(event)
    :: else
    fi;
    n = 0
}

inline listen(event, by)
{
    if
    :: event == CHANGED -> listening = listening + by
    :: else
    fi
}

/* tti_runner_tell() */
inline tell()
{
    if
    :: listening > 0 -> signal(CHANGED) /* = group/group.h: if (runner->n_listening > 0) tti_event_signal(runner->port, &runner->changed); */
    :: else
    fi
}

inline runner_sleep(event) /* = group/workers.c: runner->n_listening++; tti_unlock(&runner->lock); tti_event_wait(runner->port, &runner->changed, seen, deadline_ns); tti_lock(&runner->lock); runner->n_listening--; */
{
#ifdef COUNT_TOO_LATE
    listen(event, 1);
    unlock();
    load(event, seen);
#elif defined LISTENS_TOO_LATE
    load(event, seen);
    unlock();
    listen(event, 1);
#else
    load(event, seen);
    listen(event, 1);
    unlock();
#endif
    add(event + 1, 1, n);
    load_seq_cst(event, n);
    if
    :: n == seen -> wait_word(event, seen)
    :: else
    fi;
    add(event + 1, -1, n);
    n = 0;
    seen = 0;
    lock();
    listen(event, -1)
}

/* ---- the gate: gate.h ---- */

inline gate_enter()
{
    use();
    load(GATE, w); /* = group/gate.h: uint64_t word = atomic_load_explicit(&gate->word, memory_order_relaxed); */
    d_step {
#ifndef PSO
        drained -> /* with acquire order only, earlier stores may still be on their way */
#endif
        ok = 0;
        if
        :: (w & (BUSY | HELD)) == 0 && mem[GATE] == w -> mem[GATE] = w | BUSY; ok = 1
            /* = group/gate.h: word | TTI_GATE_BUSY, memory_order_acquire, memory_order_relaxed */
        :: else
        fi
    }
}

inline gate_leave()
{
    use();
    d_step {
#ifndef LEAVE_RELAXED
        drained ->
#endif
        ok = 0;
        if
#ifdef LEAVE_BLIND
        :: true -> mem[GATE] = (seq + 1) * ONE; ok = 1
#else
        :: mem[GATE] == (seq * ONE | BUSY) -> mem[GATE] = (seq + 1) * ONE; ok = 1
            /* = group/gate.h: uint64_t word = seq * TTI_GATE_ONE | TTI_GATE_BUSY; */
            /* = group/gate.h: (seq + 1) * TTI_GATE_ONE, memory_order_release, memory_order_relaxed */
        :: else
#endif
        fi
    }
}

/* Lock held. */
inline hold()
{
    d_step {
        drained && locked ->
        use();
        if
        :: !held -> /* = group/queue.c: if (group->held) return; word = tti_gate_hold(&group->gate); */
            w = mem[GATE];
            mem[GATE] = w | HELD; /* = group/gate.h: atomic_fetch_or_explicit(&gate->word, TTI_GATE_HELD, memory_order_acq_rel) */
            held = 1;
            turn = NUMBER(w); /* = group/queue.c: group->turn = tti_gate_number(word); */
            next_seq = turn + (w & BUSY); /* = group/queue.c: group->next_seq = group->turn + (uint64_t)running; */
#ifndef HOLD_FORGETS
            inside = inside + (w & BUSY) /* = group/queue.c: group->inside += running; */
#endif
        :: else
        fi;
        w = 0
    }
}

/* ---- turns: queue.c ---- */

inline end_turn()
{
    use();
    turn++;
    if
#ifdef OPEN_TOO_EARLY
    :: held && !finished ->
#else
    :: held && turn == next_seq && !finished ->
#endif
        /* = group/queue.c: if (!group->held || group->turn != group->next_seq || group->closing || group->finished != TUTTI_OK) return; */
        held = 0;
        store_release(GATE, turn * ONE) /* = group/gate.h: atomic_store_explicit(&gate->word, seq * TTI_GATE_ONE, memory_order_release); */
    :: else
    fi;
#ifndef NO_SIGNAL
    tell(); /* = group/queue.c: tti_runner_tell(runner); if (!is_worker) tti_queue_rouse(runner); */
#endif
    if
    :: work != 0 -> signal(TODO)
    :: else
    fi
}

/* What a backend does: one at a time, in order, on what the one before it has written. */
inline run_call(q)
{
    atomic { running++; assert(running == 1); assert(q == last + 1); assert(!freed) };
    load(DATA, n);
    assert(n == q - 1);
    n = 0;
    store(DATA, q);
    atomic { last = q; running-- }
}

/* Lock held, also afterwards. */
inline run_turn(q, begun)
{
    assert(held && turn == q); /* = group/queue.c: assert(group->held && group->turn == call->seq); */
    if
    :: finished && !begun /* = group/queue.c: if (!late || is_begun) { */
    :: else ->
        unlock();
        run_call(q);
        lock()
    fi;
    end_turn()
}

inline run_work()
{
    q = work;
    work = (work == last_work -> 0 : work + 1);
    inside++;
    run_turn(q, IS_BEGUN);
    works_done++;
    tell(); /* tti_work_finish() */
    inside--;
    q = 0
}

inline await_turn(s)
{
    do
#ifdef NO_GAPS
    :: turn == s -> break
#else
    :: turn == s || gaps -> break /* = group/queue.c: while (group->turn != seq && !group->gaps) if (!tti_queue_help(group)) tti_runner_sleep(group->runner, TTI_FOREVER); */
#endif
    :: else ->
        if
        :: work != 0 && work == turn -> run_work()
        :: else -> runner_sleep(CHANGED)
        fi
    od
}

inline run_in_turn()
{
    lock();
    use();
    if
    :: finished -> entering--
    :: else ->
        hold();
        seq = next_seq; /* = group/queue.c: call->seq = group->next_seq++; st = await_turn(group, call->seq); if (st == TUTTI_OK) { st = tti_queue_run_turn(group, call, false); group->inside--; } */
        next_seq++;
        inside++;
        entering--;
        await_turn(seq);
        if
        :: turn == seq -> run_turn(seq, false)
#ifdef REFUSED_RAISES
        :: else -> end_turn()
#else
        :: else -> tell() /* = group/queue.c: if (group->turn == seq) return TUTTI_OK; group->inside--; tti_runner_tell(group->runner); */
#endif
        fi;
        inside--
    fi;
    unlock()
}

/* tti_queue_run() */
inline call()
{
    atomic {
        if
        :: closed -> goto over
        :: else -> entering++
        fi
    };
    gate_enter();
    if
    :: ok ->
        entering--;
        seq = NUMBER(w);
        w = 0;
        run_call(seq);
        gate_leave();
        if
        :: ok
#ifdef TOUCH_AFTER
            -> use()
#endif
        :: else -> /* end_in_turn() */
            lock();
            hold();
            assert(turn == seq); /* = group/queue.c: assert(group->turn == call->seq); */
            end_turn(); /* = group/queue.c: end_turns(group, 1, false); group->inside--; tti_unlock(&runner->lock); */
            inside--;
            unlock()
        fi
    :: else -> w = 0; run_in_turn()
    fi;
    seq = 0;
    ok = 0
}

proctype caller(byte me)
{
    byte i, w, seq, n, q, seen;
    bit  ok;

    for (i : 1 .. CALLS) {
        call()
    }
over:
    skip
}

#ifdef PUSHER
/* Issues works and waits for them; helps, or not, as with a shorter time-out. */
proctype pusher(byte me)
{
    byte w, n, q, seen;

    atomic {
        if
        :: closed -> works_done = WORKS
        :: else -> entering++
        fi
    };
    if
    :: works_done == WORKS -> goto over
    :: else
    fi;
    lock();
    use();
    if
    :: finished -> entering--; unlock(); goto over
    :: else
    fi;
    hold();
    entering--;
    work = next_seq; /* = group/progress.c: tti_queue_hold(group); work->call.seq = work->seq = group->next_seq; */
    next_seq = next_seq + WORKS;
    last_work = next_seq - 1;
    signal(TODO);
    unlock();
#ifdef LEAVES
    works_done == WORKS;
    goto over;
#endif
    lock();
    do
    :: works_done == WORKS -> break
    :: works_done < WORKS && work != 0 && work == turn -> run_work()
    :: works_done < WORKS -> runner_sleep(CHANGED)
    od;
    unlock();
over:
    lock();
    stop = 1;
    signal(TODO);
    unlock()
}

/* worker_main() */
proctype worker(byte me)
{
    byte w, n, q, seen;

    lock();
    do
    :: stop -> break
    :: !stop && work != 0 && work == turn -> run_work() /* = group/workers.c: work = tti_queue_oldest(runner); if (work != NULL && runner->n_napping == 0) */
    :: !stop && (work == 0 || work != turn) -> runner_sleep(TODO) /* = group/workers.c: const uint32_t seen = tti_event_now(&runner->todo); runner->n_idle++; tti_unlock(&runner->lock); */
    od;
    unlock()
}
#endif

/* tti_queue_abort_works() */
inline abort_works()
{
    gaps = 1; /* = group/progress.c: group->gaps = true; */
#ifndef BEGUN
    if
    :: work != 0 -> works_done = works_done + last_work + 1 - work; work = 0
    :: else
    fi
#endif
}

/* run_begun() */
inline run_begun()
{
    do
    :: work != 0 && work == turn -> run_work()
    :: else -> break
    od
}

#ifdef CLOSER
/* tti_queue_close(), and what its caller does then */
proctype closer(byte me)
{
    byte w, n, q, seen;

    lock();
#ifndef NO_HOLD_TO_CLOSE
    hold(); /* = group/queue_end.c: tti_queue_hold(group); /* whoever is inside is counted from here on */
#endif
    closing = 1;
    abort_works();
    tell();
    unlock();
    lock();
    run_begun();
    do
    :: inside > 0 -> runner_sleep(CHANGED); run_begun() /* = group/queue_end.c: while (group->inside > 0) { tti_runner_sleep(runner, TTI_FOREVER); run_begun(group); } */
    :: inside == 0 -> break
    od;
    assert(work == 0);
    unlock();
    atomic { entering == 0 -> closed = 1; freed = 1 }
}
#endif

#ifdef ABORTER
/* tti_queue_abort() */
proctype aborter(byte me)
{
    byte w, n;

    lock();
    hold();
    aborted = 1;
    abort_works();
    tell();
    if
    :: work != 0 -> signal(TODO) /* = group/queue_end.c: tti_routes_end(group, TUTTI_E_ABORTED); tti_queue_want(group); */
    :: else
    fi;
    unlock()
}
#endif

init {
    byte t;

    atomic {
        mem[GATE] = ONE;
        for (t : 0 .. THREADS - 1) {
            run memory(t)
        }
        for (t : 0 .. CALLERS - 1) {
            run caller(t)
        }
#ifdef PUSHER
        run pusher(CALLERS);
        run worker(CALLERS + 1);
#endif
#ifdef CLOSER
        run closer(THREADS - 1);
#endif
#ifdef ABORTER
        run aborter(THREADS - 1);
#endif
    }
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * channel.pml - calls, places, cards, rounds and slots: src/coll/host/channel.c, lines.c, and the order of fused.c.
 *
 * Model   RANKS members make CALLS calls; which ones is chosen freely, the same for all:
 *           NOTHING    no elements
 *           BLOCKS     all give through blocks and take from all
 *           LINES      the same through lines
 *           ONE_LINE   member 0 gives through its line, and waits for nobody
 *           SLICES     a round: all stage, all make a result of what is staged, all read all results
 *           STREAM     two rounds, in which member 0 stages, and waits for room only
 *           CARDS      all show cards and read them; member 0 awaits the end of all, the others leave at once
 *           FLOW       with K > 2: FLOW_ROUNDS rounds as in SLICES, of which three are under way at a time
 *         AHEAD stands for TTI_HOST_AHEAD: a member has one place more than that (a line, a packet), and two blocks.
 *         Payload is one word, and has the number of its call or round: a reader finds its own, or has read what is
 *         old, torn or too new. Waits are looks: wait.pml has how they sleep. Whoever is awaited has entered the call.
 * Checks
 *
 *   holds  -DRANKS=2 -DCALLS=3
 *   holds  -DRANKS=2 -DCALLS=3 -DPSO
 *   holds  -DRANKS=3 -DCALLS=2 -DPSO
 *   holds  -DRANKS=2 -DCALLS=3 -DGAPS                     calls have the numbers 2, 4, 6, ...
 *   holds  -DRANKS=2 -DCALLS=6 -DLINES_ONLY               members far ahead
 *   holds  -DRANKS=2 -DCALLS=4 -DLINES_ONLY -DPSO
 *   stuck  -DRANKS=2 -DCALLS=4 -DNO_ENTRY_RULE            members begin a call when they like
 *   wrong  -DRANKS=2 -DCALLS=4 -DLINES_ONLY -DENTRY_TOO_EARLY  when all have entered the call AHEAD + 1 before it
 *   wrong  -DRANKS=2 -DCALLS=3 -DNO_CATCH_UP              and write to blocks, cards and slots when they like
 *   wrong  -DRANKS=2 -DCALLS=3 -DNO_ROOM                  nobody waits before a slot is filled again
 *   wrong  -DRANKS=2 -DCALLS=3 -DROOM_TOO_SOON            done of the round after the one that had the slot
 *   wrong  -DRANKS=2 -DCALLS=3 -DUNREAD_TOO_FAR           all is read of the call before
 *   wrong  -DRANKS=2 -DCALLS=2 -DDONE_TOO_EARLY           done before the last read
 *   wrong  -DRANKS=2 -DCALLS=2 -DREAD_TOO_EARLY           a load overtakes the acquiring look at the flag
 *   wrong  -DRANKS=2 -DCALLS=2 -DPSO -DRELAXED_POST       a flag overtakes what it is for
 *   wrong  -DRANKS=2 -DCALLS=3 -DGAPS -DTURN_BY_NUMBER    a block, or card, by the number of the call and not by turns
 *   holds  -DRANKS=2 -DCALLS=2 -DK=3                      three slots, for rounds under way at a time
 *   holds  -DRANKS=2 -DCALLS=1 -DK=3 -DPSO -DDEPTH=4
 *   wrong  -DRANKS=2 -DCALLS=2 -DK=3 -DROOM_TOO_SOON
 *   stuck  -DRANKS=2 -DCALLS=1 -DK=2 -DFLOWS              a member waits for itself
 */
#define THREADS RANKS
#ifndef DEPTH
#define DEPTH 3
#endif
#ifndef K
#define K 2 /* channel->depth */
#endif
#if K > 2
#define FLOWS
#endif
#define FLOW_ROUNDS 4
#ifndef AHEAD
#define AHEAD 2
#endif
#define PLACES (AHEAD + 1)
#define BASE(r) ((r) * (10 + 2 * PLACES + 2 * K))
#define ENTERED(r) BASE(r)
#define STAGED(r) (BASE(r) + 1)
#define RESULT(r) (BASE(r) + 2)
#define DONE(r) (BASE(r) + 3)
#define CARD(r) (BASE(r) + 4 + turn)
#define CARD_WORD(r) (BASE(r) + 6 + turn)
#define BLOCK(r) (BASE(r) + 8 + turn)
#define LINE(r) (BASE(r) + 10 + place)
#define LINE_WORD(r) (BASE(r) + 10 + PLACES + place)
#define STAGING(r) (BASE(r) + 10 + 2 * PLACES + round % K)
#define RESULTS(r) (BASE(r) + 10 + 2 * PLACES + K + round % K)
#define WORDS BASE(RANKS)
#include "memory.pml"

#ifdef GAPS
#define SEQ(n) (2 * (n))
#else
#define SEQ(n) (n)
#endif

mtype = { NOTHING, BLOCKS, LINES, ONE_LINE, SLICES, STREAM, CARDS, FLOW };
mtype kinds[CALLS + 1];

#ifdef RELAXED_POST
#define post(w, v) store(w, v)
#else
#define post(w, v) store_release(w, v) /* = coll/host/wait.c: atomic_store_explicit(&word->value, value, memory_order_release); */
#endif

/* for each other member, in the order of ranks */
#define each_other(body) \
    r = 0; \
    do \
    :: r < RANKS && r != me -> body; r++ \
    :: r == me -> r++ \
    :: r == RANKS && r != me -> break \
    od; \
    r = 0

#define has_agreed agreed[r] = n; assert(mem[ENTERED(r)] >= n) /* = coll/host/channel.c: member->agreed = channel->note.seq; */

/* What a reader finds behind a flag. */
#ifdef READ_TOO_EARLY
#define take(flag, w, v) atomic { x = mem[w] }; atomic { flag -> assert(x == v); x = 0; has_agreed }
#else
#define take(flag, w, v) atomic { flag -> has_agreed }; assert(mem[w] == v)
#endif

inline await_entered(back)
{
    if
    :: n <= back || all_agreed >= n - back /* = coll/host/channel.c: if (channel->all_agreed >= seq) return TUTTI_OK; */
    :: else ->
        each_other(atomic { agreed[r] >= n - back || mem[ENTERED(r)] >= n - back -> skip })
        /* = coll/host/channel.c: if (r == team->rank || channel->members[r].agreed >= seq) continue; st = tti_host_wait(channel, r, TTI_ENTERED, seq); */
    fi
}

inline catch_up()
{
#ifdef NO_CATCH_UP
    skip
#else
    await_entered(1) /* = coll/host/channel.c: return await_entered(channel, 1); */
#endif
}

/* tti_host_enter() */
inline enter()
{
    unread = begin; /* = coll/host/channel.c: channel->unread = channel->begin; channel->begin = channel->round; */
    begin = round;
    place = (place + 1) % PLACES; /* = coll/host/channel.c: channel->calls++; channel->place = channel->calls % TTI_HOST_PLACES; */
#ifdef TURN_BY_NUMBER
    turn = SEQ(n) % 2;
#else
    turn = (turn + 1) % 2; /* = coll/host/channel.c: channel->turn = channel->calls % TTI_HOST_TURNS; */
#endif
    post(ENTERED(me), n); /* = coll/host/channel.c: move(channel, &channel->members[channel->team->rank].lines->counters[TTI_ENTERED], note->seq); */
#ifndef NO_ENTRY_RULE
#ifdef ENTRY_TOO_EARLY
    await_entered((AHEAD + 1))
#else
    await_entered(AHEAD) /* = coll/host/channel.c: return st == TUTTI_OK ? await_entered(channel, TTI_HOST_AHEAD) : st; */
#endif
#endif
}

/* tti_host_room() */
inline room()
{
#ifdef UNREAD_TOO_FAR
    unread = begin;
#endif
    if
#ifdef NO_ROOM
    :: true
#else
    :: round < unread + K /* = coll/host/channel.c: if (channel->round < channel->unread + channel->depth) return TUTTI_OK; */
    :: else ->
#ifdef FLOWS
        load(DONE(me), x);
        x >= round - K + 1; /* its own, too */
        x = 0;
#endif
#ifdef ROOM_TOO_SOON
        each_other(mem[DONE(r)] >= round - K)
#else
        each_other(mem[DONE(r)] >= round - K + 1)
        /* = coll/host/channel.c: st = tti_host_wait(channel, r, TTI_DONE, channel->round - channel->depth + 1); */
#endif
#endif
    fi
}

/* tti_host_next() */
inline next()
{
    post(DONE(me), round + 1); /* = coll/host/channel.c: tti_host_post(channel, TTI_DONE); channel->round++; */
    round++
}

/* What all give and take, at. */
#define exchange(at) \
    store(at(me), n); \
    post(LINE_WORD(me), n); /* = coll/host/lines.c: tti_host_store(channel, &tti_lines_place(channel, channel->team->rank)->word, &own->place_waiters, */ \
    each_other(take(mem[LINE_WORD(r)] == n, at(r), n)); /* = coll/host/lines.c: atomic_load_explicit(&place->word.value, memory_order_acquire) == channel->word */ \
    all_agreed = n /* = coll/host/lines.c: channel->all_agreed = channel->note.seq; */

inline blocks()
{
    catch_up(); /* = coll/host/lines.c: if (bytes > TTI_LINES_MIDDLE) st = channel->in_haste && !tti_host_has_caught_up(channel) ? TTI_NOT_YET : tti_host_catch_up(channel); */
    exchange(BLOCK)
}

inline lines()
{
    exchange(LINE)
}

inline one_line()
{
    if
    :: me == 0 ->
        store(LINE(me), n);
        post(LINE_WORD(me), n)
    :: else ->
        take(mem[LINE_WORD(r)] == n, LINE(r), n)
    fi
}

inline slices()
{
    catch_up(); /* = coll/host/channel.c: const tutti_status st = tti_host_catch_up(channel); if (st == TUTTI_OK) channel->end = channel->round + n_rounds; */
    room();
#ifdef DONE_TOO_EARLY
    post(DONE(me), round + 1);
#endif
    store(STAGING(me), round);
    post(STAGED(me), round + 1);
    each_other(take(mem[STAGED(r)] >= round + 1, STAGING(r), round)); /* = coll/host/channel.c: tutti_status st = tti_host_wait(channel, rank, kind, channel->round + 1); */
    store(RESULTS(me), round);
    post(RESULT(me), round + 1);
    each_other(take(mem[RESULT(r)] >= round + 1, RESULTS(r), round));
    next()
}

#ifdef FLOWS
/* staged_slices.c: stage t, combine t-1, copy t-2 */
inline flow()
{
    catch_up();
    first = round;
    t = 0;
    do
    :: t < FLOW_ROUNDS + 2 ->
        if
        :: t < FLOW_ROUNDS -> /* = coll/host/staged_slices.c: if (t < n) st = stage(f, t); */
            round = first + t;
            room();
            store(STAGING(me), round);
            post(STAGED(me), round + 1)
        :: else
        fi;
        if
        :: t >= 1 && t - 1 < FLOW_ROUNDS -> /* = coll/host/staged_slices.c: if (st == TUTTI_OK && t >= lag && t - lag < n) st = combine(f, t - lag); */
            round = first + t - 1;
            each_other(take(mem[STAGED(r)] >= round + 1, STAGING(r), round));
            store(RESULTS(me), round);
            post(RESULT(me), round + 1)
        :: else
        fi;
        if
        :: t >= 2 -> /* = coll/host/staged_slices.c: if (st == TUTTI_OK && t >= 2 * lag) st = copy(f, t - 2 * lag); */
            round = first + t - 2;
            each_other(take(mem[RESULT(r)] >= round + 1, RESULTS(r), round));
            next()
        :: else
        fi;
        t++
    :: else -> break
    od;
    t = 0;
    first = 0
}
#endif

/* Of two rounds the first. */
inline stream_round()
{
    if
    :: me == 0 ->
        room();
        store(STAGING(me), round);
        post(STAGED(me), round + 1)
    :: else ->
#ifdef DONE_TOO_EARLY
        post(DONE(me), round + 1);
#endif
        take(mem[STAGED(r)] >= round + 1, STAGING(r), round)
    fi;
    next()
}

/* tti_fused_run(), where only one member's buffers are used: gather. */
inline cards()
{
    catch_up();
    room();
    store(CARD(me), n);
    post(CARD_WORD(me), n); /* = coll/host/fused_cards.c: tti_host_store(f->channel, &card->word, &f->channel->members[f->rank].lines->place_waiters, */
    each_other(take(mem[CARD_WORD(r)] == n, CARD(r), n)); /* = coll/host/fused_cards.c: st = tti_host_wait(f->channel, rank, TTI_CARDED, f->channel->word); */
    all_agreed = n;
    post(RESULT(me), round + 1); /* = coll/host/fused.c: tti_host_post(f->channel, TTI_RESULT); if ((kind == TUTTI_CALL_GATHER || kind == TUTTI_CALL_SCATTER) && !tti_fused_is_root(f)) return TUTTI_OK; */
    if
    :: me == 0 -> each_other(mem[RESULT(r)] >= round + 1)
    :: else
    fi;
    next()
}

proctype member(byte me)
{
#ifdef FLOWS
    byte first, t;
#endif
    byte n, r, x, place, turn, round, unread, begin, all_agreed;
    byte agreed[RANKS];

    next(); /* the connecting */
    n = 1;
    do
    :: n <= CALLS ->
        enter();
        if
        :: kinds[n] == NOTHING
        :: kinds[n] == BLOCKS -> blocks()
        :: kinds[n] == LINES -> lines()
        :: kinds[n] == ONE_LINE -> one_line()
        :: kinds[n] == SLICES -> slices()
        :: kinds[n] == STREAM -> catch_up(); stream_round(); stream_round()
        :: kinds[n] == CARDS -> cards()
#ifdef FLOWS
        :: kinds[n] == FLOW -> flow()
#endif
        fi;
        n++
    :: else -> break
    od
}

init {
    byte t;

    atomic {
        for (t : 1 .. CALLS) {
            if
#ifdef FLOWS
            :: kinds[t] = FLOW
            :: kinds[t] = STREAM
#elif defined LINES_ONLY
            :: kinds[t] = NOTHING
            :: kinds[t] = LINES
            :: kinds[t] = ONE_LINE
#else
            :: kinds[t] = NOTHING
            :: kinds[t] = BLOCKS
            :: kinds[t] = LINES
            :: kinds[t] = ONE_LINE
            :: kinds[t] = SLICES
            :: kinds[t] = STREAM
            :: kinds[t] = CARDS
#endif
            fi
        }
        for (t : 0 .. RANKS - 1) {
            run memory(t);
            run member(t)
        }
    }
}

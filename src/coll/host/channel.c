/* SPDX-License-Identifier: BSD-3-Clause
 *
 * channel.c - regions, rounds and slots: how the members of one host hand data to each other.
 *
 * Why     Data goes through the sender's own region and is copied out by those who need it: nobody
 *         ever writes to a buffer of another process, and what a round costs is two copies and one
 *         line per flag.
 * How     Round t uses slot t % K (K = depth) of every member. In it member r
 *           room    waits until done[q] >= t-K+1 for all q
 *           stage   fills its staging slot, sets staged[r] = t+1
 *           read    waits for staged[q] >= t+1, reads q's staging slot; sliced operations then fill
 *                   the result slot, set result[r] = t+1, wait for result[q] >= t+1, read q's
 *                   result slot
 *           next    sets done[r] = t+1, and goes on to round t+1
 *         An operation leaves out what it has no use for, never `next`. Round 0 is the connecting:
 *         after it a member has found all regions.
 *         Calls of a few KiB do without rounds: lines.c.
 * True    Counters are set by their owner with release order (at least) and read with acquire
 *         order.
 *         1. A slot is not overwritten while it is read. r writes slot t % K only after done[q] >=
 *            t-K+1 of all q; q sets that after its last read in round t-K, the round that used the
 *            slot before.
 *         2. A reader gets round t's data. It reads q's slot after staged[q] >= t+1 (result
 *            likewise), so after q filled it; q fills it again in round t+K at the earliest, where
 *            it waits for the reader's done >= t+1, which the reader sets after reading.
 *         3. Nobody waits in a circle. In round t a member waits only for done of t-K, staged of t,
 *            then result of t, each of which its owner sets after waits that come earlier in this
 *            order. Whoever has rounds t, t-1 and t-2 under way (staged_slices.c) waits for done of t-K, then staged of
 *            t-1, then result of t-2, and so do all others; with K > 2 done of t-K comes before all of these.
 *         4. None of this asks what operation a round belongs to, only that all members count the
 *            same rounds. Operations of different kinds follow each other without anything between
 *            them, and a counter that an operation does not set catches up with the next that does.
 *         A root that only writes may run ahead of the others by K rounds, no more. Rounds of the call before the
 *         last are known to be done by all (below), so that `room` of a call's first rounds looks at no counter.
 * Calls   Nobody begins call n before all have entered call n-A (TTI_HOST_AHEAD) and were found to have called the
 *         same up to there: `entered` of each. And nobody writes anything but a place (lines.c), or begins rounds, in
 *         call n before all have entered call n-1: it catches up. So givers of places, who wait for nobody, run ahead by
 *         A calls, and the others need not be scheduled for each of them. Whoever awaited a member in call n has
 *         compared with it there, so that all this costs a look at memory of one's own; it is for calls that wait for
 *         nobody, such as two members who both believe to be the root, or for nothing, such as those without
 *         elements. Who enters n has left n-1, so the member in the lowest call never waits for this. A board's
 *         ring of calls never wraps before it was compared: who is in call n compares n-A .. n, and nobody has published
 *         more than n+A+1.
 * Words   What stands beside counters and behind lines is the word of a call and of all that came before: its number,
 *         and a mark that is made of the call's fingerprint and of the mark before. So who finds its own has found
 *         that the other called the same up to there, in calls too in which neither has waited for the other.
 * Fails   Members that call different things count different rounds. Whoever reads a staging slot
 *         compares the word beside the counter with its own; whoever waits compares boards
 *         (trouble.c). A member that fails says so in `failed`, and what it was in `report`, which is
 *         written once, by the thread that turned `failing`, before `failed`. The others see it when they
 *         enter a call, which costs no transfer, for these lines are written once, and when they wait. `finished`
 *         says that a member has come to a call's end, and cannot spoil it any more. So whoever comes late to a
 *         call that has failed for the others fails, too, although their parts may lie ready. What no look can
 *         see is a failure raised after it, by a member whose part was ready before: such a call ends well here,
 *         and the next one fails.
 * Gone    `door` at the head of a region says whose it is, who came, and who has left:
 *
 *             63      25  24          23       12  11          0
 *            | nonce    | withdrawn | how many left | how many came |
 *
 *         Each other member comes once, when it connects, and leaves once, when it closes; after
 *         that it touches the region no more. So it is given back when all others have left; until
 *         then it stays retired in the heap (transport/heap.h), whatever the member that owns it
 *         does meanwhile. A member that could not connect withdraws: from then on nobody comes in,
 *         and who came in is all that must leave. Members who find that at their own end withdraw,
 *         too: the one that gave up will never come to them. Coming is one compare-and-swap of the
 *         whole word, which fails on memory that has become something else. A member that dies
 *         never leaves: what it has come into stays until the heap goes. */
#include "coll/host/channel.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "base/clip.h"
#include "coll/host/crowd.h"
#include "coll/host/fused.h"
#include "coll/host/pull.h"
#include "coll/host/wait.h"
#include "coll/told.h"

enum {
    VERSION = 10,
    /* With a core for each rank slots are small, so that they stay in its cache, and many, so that ranks need
     * not go in step. Where ranks share cores a round costs as many changes of hands as ranks share one: few
     * rounds, and nobody runs ahead. */
    CHUNK_OWN_CORE = TTI_HOST_CHUNK,
    CHUNK_SHARED_CORE = TTI_HOST_SLOTS / 2,
    /* Slots of different members begin in different sets of a first-level cache (64 sets of 64
     * bytes): 65 lines further for each rank, around after 64. */
    STAGGER = 65 * 64,
    STAGGER_AROUND = 64,
    /* Large buffers begin on pages. Blocks and slots begin half a page further on: a processor takes a load for one of
     * what was just stored when the two differ in the number of their page alone, and a copy should not have its
     * loads close behind such stores. */
    PAGE = 4096,
};

_Static_assert(sizeof(tti_counter) == TTI_LINE, "a counter has a line of its own");
_Static_assert(sizeof(tti_host_lines) % TTI_LINE == 0, "places begin on a line");
_Static_assert(sizeof(tti_host_place) % TTI_LINE == 0 && sizeof(tti_host_packet) % TTI_LINE == 0 &&
                   sizeof(tti_host_block) % TTI_LINE == 0,
               "packets, blocks and slots begin on a line");
_Static_assert(offsetof(tti_host_place, word) + sizeof(tti_host_word) == offsetof(tti_host_place, line) + 64,
               "the word ends the line");

#define MARK ((UINT64_C(1) << 24) - 1) /* of a call's word; above it is the number (watch/control.h) */

#define DOOR_CAME UINT64_C(1)
#define DOOR_LEFT (UINT64_C(1) << 12)
#define DOOR_WITHDRAWN (UINT64_C(1) << 24)
#define DOOR_NONCE (~UINT64_C(0) << 25)
#define DOOR_NONCE_SET (UINT64_C(1) << 25) /* in every nonce: fresh memory is zero */

_Static_assert(TTI_CALL_RING >= 2 * TTI_HOST_AHEAD + 2, "what is compared is still on the board");
_Static_assert(TTI_HOST_RANKS_MAX < 1 << 12, "the door counts all members");

static uint64_t came(uint64_t door)
{
    return door / DOOR_CAME % (1 << 12);
}

static uint64_t left(uint64_t door)
{
    return door / DOOR_LEFT % (1 << 12);
}

static size_t stagger(int rank)
{
    return (size_t)(rank % STAGGER_AROUND) * STAGGER;
}

static size_t places_at(int rank)
{
    return sizeof(tti_host_lines) + stagger(rank);
}

static size_t packets_at(int rank)
{
    return places_at(rank) + TTI_HOST_PLACES * sizeof(tti_host_place);
}

static size_t blocks_at(int rank)
{
    const size_t heads = packets_at(0) + TTI_HOST_PLACES * sizeof(tti_host_packet);

    return (heads + PAGE - 1) / PAGE * PAGE + PAGE / 2 + stagger(rank);
}

static size_t slots_at(int rank)
{
    return blocks_at(rank) + TTI_HOST_TURNS * sizeof(tti_host_block);
}

static size_t region_bytes(int rank)
{
    return slots_at(rank) + 2 * (size_t)TTI_HOST_SLOTS;
}

static void adopt(tti_host_channel *channel, int rank, void *region, uint64_t nonce)
{
    channel->members[rank] = (tti_host_member){ .lines = region, .nonce = nonce,
                                                .places = (void *)((char *)region + places_at(rank)),
                                                .packets = (void *)((char *)region + packets_at(rank)),
                                                .blocks = (void *)((char *)region + blocks_at(rank)),
                                                .slots = (char *)region + slots_at(rank) };
}

static tutti_status make_region(tti_host_channel *channel)
{
    tti_team       *team = channel->team;
    tti_host_lines *lines;
    uint64_t        nonce, offset;
    tutti_status    st;

    channel->heap = tti_mesh_heap(team->mesh, team->ranks[team->rank]);
    assert(channel->heap != NULL); /* one's own host is one's own */
    st = tti_heap_alloc(channel->heap, region_bytes(team->rank), &offset);
    if (st != TUTTI_OK)
        return st;
    channel->region = offset;
    lines = tti_heap_at(channel->heap, offset, region_bytes(team->rank));
    team->port->ops->random(team->port, &nonce, sizeof nonce);
    nonce = (nonce & DOOR_NONCE) | DOOR_NONCE_SET;
    adopt(channel, team->rank, lines, nonce);
    lines->version = VERSION;
    lines->region_bytes = region_bytes(team->rank);
    atomic_store_explicit(&lines->door, nonce, memory_order_release);
    return TUTTI_OK;
}

tutti_status tti_host_channel_create(tti_team *team, const tti_host_patience *patience,
                                     tti_host_channel **channel_out)
{
    const size_t      n = (size_t)team->n_ranks;
    tti_host_channel *channel = calloc(1, sizeof *channel);
    tutti_status      st = TUTTI_OK;

    if (channel == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the shared channel of group '%s'",
                        team->name);
    channel->team = team;
    if (patience != NULL)
        channel->patience = *patience;
    channel->members = calloc(n, sizeof *channel->members);
    channel->reads = calloc(n, sizeof *channel->reads);
    channel->begins = calloc(n, sizeof *channel->begins);
    if (channel->members == NULL || channel->reads == NULL || channel->begins == NULL)
        st = tti_fail(TUTTI_E_NOMEM, "no memory for %zu members of group '%s'", n, team->name);
    if (st == TUTTI_OK)
        st = tti_fused_make(team->n_ranks, &channel->fused);
    if (st == TUTTI_OK)
        st = make_region(channel);
    if (st != TUTTI_OK) {
        tti_host_channel_close(channel);
        return st;
    }
    team->board = &channel->members[team->rank].lines->board;
    *channel_out = channel;
    return TUTTI_OK;
}

/* Come into a member's region; it stays from then on until this rank leaves. */
static bool come_in(tti_host_lines *lines, uint64_t nonce)
{
    uint64_t door = atomic_load_explicit(&lines->door, memory_order_acquire);

    do {
        if ((door & (DOOR_NONCE | DOOR_WITHDRAWN)) != nonce)
            return false;
    } while (!atomic_compare_exchange_weak(&lines->door, &door, door + DOOR_CAME));
    return true;
}

static tutti_status find_region(tti_host_channel *channel, int rank, const tti_join *join)
{
    const tti_team *team = channel->team;
    tti_heap       *heap = tti_mesh_heap(team->mesh, team->ranks[rank]);
    tti_host_lines *lines = NULL;

    if (heap != NULL)
        lines = tti_heap_at(heap, join->region, region_bytes(rank));
    if (lines == NULL || (join->nonce & DOOR_NONCE) != join->nonce)
        return tti_fail(TUTTI_E_BACKEND, "group '%s': rank %d named memory that is not in its heap",
                        team->name, team->ranks[rank]);
    if (!come_in(lines, join->nonce))
        return tti_fail(TUTTI_E_PEER, TTI_GAVE_UP_WORDS, team->name, team->ranks[rank],
                        tti_mesh_whereabouts(team->mesh, team->ranks[rank]), team->ranks[rank]);
    adopt(channel, rank, lines, join->nonce);
    if (lines->version != VERSION || lines->region_bytes != region_bytes(rank))
        return tti_fail(TUTTI_E_BACKEND,
                        "group '%s': the shared memory of rank %d is of another kind\n"
                        "  next: run the same version of tutti on all ranks", team->name, rank);
    return TUTTI_OK;
}

tutti_status tti_host_channel_connect(tti_host_channel *channel, const tti_join *joins)
{
    const int    n_here = tti_mesh_ranks_on_machine(channel->team->mesh);
    const int    cores = tti_crowd_cores(joins, channel->team->n_ranks, n_here);
    tutti_status st = TUTTI_OK;
    int          r;

    channel->crowded = n_here > cores;
    channel->turns = (n_here + cores - 1) / cores;
    channel->machine = joins[0].machine;
    if (channel->patience.checks == 0)
        channel->patience = tti_host_patience_of(channel->crowded);
    channel->chunk = channel->crowded ? CHUNK_SHARED_CORE : CHUNK_OWN_CORE;
    channel->depth = TTI_HOST_SLOTS / channel->chunk;
    for (r = 0; r < channel->team->n_ranks && st == TUTTI_OK; r++)
        if (r != channel->team->rank)
            st = find_region(channel, r, &joins[r]);
    if (st != TUTTI_OK)
        return st;
    channel->fenced = !channel->crowded; /* wait.c */
    for (r = 0; r < channel->team->n_ranks; r++)
        channel->fenced = channel->fenced && joins[r].fenced != 0;
    tti_host_pull_probe(channel, joins);
    atomic_store_explicit(&channel->connected, true, memory_order_release);
    tti_host_next(channel);
    return TUTTI_OK;
}

/* Whether all have left the region who could come: all n_others, or those who came before it was
 * withdrawn. Each leaves with release order, after its last read and write. */
static bool all_have_left(void *region, uint64_t n_others)
{
    tti_host_lines *lines = region;
    const uint64_t  door = atomic_load_explicit(&lines->door, memory_order_acquire);

    return left(door) == ((door & DOOR_WITHDRAWN) != 0 ? came(door) : n_others);
}

/* Leave the others' regions; whether the group came to be. */
static bool leave_all(tti_host_channel *channel)
{
    bool complete = channel->connected;
    int  r;

    for (r = 0; r < channel->team->n_ranks; r++) {
        tti_host_lines *lines = channel->members[r].lines;

        if (r != channel->team->rank && lines != NULL)
            complete &= (atomic_fetch_add(&lines->door, DOOR_LEFT) & DOOR_WITHDRAWN) == 0;
    }
    return complete;
}

void tti_host_channel_close(tti_host_channel *channel)
{
    tti_team *team;

    if (channel == NULL)
        return;
    team = channel->team;
    if (channel->region != 0) {
        team->board = &team->own_board;
        if (!leave_all(channel))
            atomic_fetch_or(&channel->members[team->rank].lines->door, DOOR_WITHDRAWN);
        tti_heap_retire(channel->heap, channel->region, all_have_left,
                        (uint64_t)team->n_ranks - 1);
    }
    free(channel->members);
    free(channel->reads);
    free(channel->begins);
    tti_fused_free(channel->fused);
    free(channel);
}

void tti_host_raise(tti_host_channel *channel, tutti_status status, int culprit,
                    const tti_host_report *report)
{
    const tti_team *team = channel->team;
    tti_host_lines *own = channel->members[team->rank].lines;
    int             r;

    if (!atomic_exchange(&channel->failing, true)) {
        if (report != NULL)
            own->report = *report;
        atomic_store(&own->failed, (uint32_t)status | (uint32_t)(culprit + 1) << 8);
        atomic_store(&channel->has_failed, true);
    }
    /* Another thread of this rank may be about to: who returns a failure has said so, for others look at `failed`
     * before they use its buffers, and after they have read them (fused.c, pull.c). */
    while (!atomic_load(&channel->has_failed))
        team->port->ops->yield(team->port);
    /* Before all were found nobody waits for this rank's counters that would not look around. */
    if (!atomic_load_explicit(&channel->connected, memory_order_acquire))
        return;
    for (r = 0; r < team->n_ranks; r++)
        tti_host_wake(channel, r);
}

void tti_host_raise_own(tti_host_channel *channel, tutti_status status, int culprit)
{
    tti_host_report report = { .origin = channel->team->rank };

    tti_clip(report.words, sizeof report.words, "%s", tutti_last_error());
    tti_host_raise(channel, status, culprit, &report);
}

static void move(const tti_host_channel *channel, tti_counter *counter, uint64_t value)
{
    atomic_store_explicit(&counter->word, channel->word, memory_order_relaxed);
    tti_host_store(channel, &counter->at, &counter->waiters, value);
}

/* The call that was entered `back` calls ago. */
static tti_host_entry *past_of(tti_host_channel *channel, uint64_t back)
{
    return &channel->past[(channel->calls - back) % TTI_HOST_PLACES];
}

/* The last call up to `entered` in which the word is one of ours; 0: none is. */
static uint64_t call_of_word(tti_host_channel *channel, uint64_t word, uint64_t entered)
{
    uint64_t back;

    for (back = 0; back < TTI_HOST_PLACES && back < channel->calls; back++)
        if (past_of(channel, back)->word == word)
            return past_of(channel, back)->note.seq < entered ? past_of(channel, back)->note.seq : entered;
    return 0;
}

/* If rank has come to the call of number seq, compare what it has called up to there with ours. */
static tutti_status agree(tti_host_channel *channel, int rank, uint64_t seq)
{
    tti_host_member   *member = &channel->members[rank];
    const tti_counter *counter = &member->lines->counters[TTI_ENTERED];
    const uint64_t     entered = atomic_load_explicit(&counter->at.value, memory_order_acquire);
    uint64_t           agreed;
    tutti_status       st = TUTTI_OK;

    if (member->agreed >= seq || entered < seq)
        return TUTTI_OK;
    agreed = call_of_word(channel, atomic_load_explicit(&counter->word, memory_order_relaxed), entered);
    if (agreed < seq) { /* it is further on than this rank, or has called something else: the board knows which */
        st = tti_host_compare(channel, rank);
        agreed = seq;
    }
    if (st == TUTTI_OK)
        member->agreed = agreed;
    return st;
}

static uint64_t least_agreed(const tti_host_channel *channel)
{
    uint64_t least = channel->note.seq;
    int      r;

    for (r = 0; r < channel->team->n_ranks; r++)
        if (r != channel->team->rank && channel->members[r].agreed < least)
            least = channel->members[r].agreed;
    return least;
}

/* Whether all have entered the call `back` calls ago. */
static bool all_have_entered(tti_host_channel *channel, uint64_t back)
{
    const uint64_t seq = channel->calls > back ? past_of(channel, back)->note.seq : 0;
    int            r;

    for (r = 0; r < channel->team->n_ranks && channel->all_agreed < seq; r++)
        if (r != channel->team->rank && channel->members[r].agreed < seq && !tti_host_entered(channel, r, seq))
            return false;
    return true;
}

bool tti_host_may_enter(tti_host_channel *channel)
{
    return all_have_entered(channel, TTI_HOST_AHEAD - 1);
}

bool tti_host_has_caught_up(tti_host_channel *channel)
{
    return all_have_entered(channel, 1);
}

/* Until all have entered the call `back` calls ago, and were found to have called the same up to there. */
static tutti_status await_entered(tti_host_channel *channel, uint64_t back)
{
    const tti_team *team = channel->team;
    const uint64_t  seq = channel->calls > back ? past_of(channel, back)->note.seq : 0;
    tutti_status    st = TUTTI_OK;
    int             r;

    if (channel->all_agreed >= seq)
        return TUTTI_OK;
    channel->entering = seq;
    for (r = 0; r < team->n_ranks && st == TUTTI_OK; r++) {
        if (r == team->rank || channel->members[r].agreed >= seq)
            continue;
        st = tti_host_wait(channel, r, TTI_ENTERED, seq);
        if (st == TUTTI_OK)
            st = agree(channel, r, seq);
    }
    channel->entering = 0;
    if (st == TUTTI_OK)
        channel->all_agreed = least_agreed(channel);
    return st;
}

/* What a call's flags say: its number, and a mark of it and of all calls before. */
static uint64_t word_after(uint64_t word, const tti_call_note *note)
{
    const uint64_t mixed = ((word & MARK) ^ note->word) * UINT64_C(0x9e3779b97f4a7c15);

    return (note->word & ~MARK) | (mixed >> 40 & MARK);
}

tutti_status tti_host_enter(tti_host_channel *channel, const tutti_call *call,
                            const tti_call_note *note)
{
    tutti_status st;

    channel->calls++;
    channel->place = channel->calls % TTI_HOST_PLACES;
    channel->turn = channel->calls % TTI_HOST_TURNS;
    channel->note = *note;
    channel->given = false;
    channel->word = word_after(channel->word, note);
    *past_of(channel, 0) = (tti_host_entry){ .note = *note, .word = channel->word };
    channel->timeout_ms = call->timeout_ms;
    channel->deadline_ns = call->deadline_ns;
    channel->waiting_ns = channel->told_ns = 0;
    channel->unread = channel->begin;
    channel->begin = channel->round;
    channel->end = 0;
    move(channel, &channel->members[channel->team->rank].lines->counters[TTI_ENTERED], note->seq);
    st = tti_host_look_back(channel);
    return st == TUTTI_OK ? await_entered(channel, TTI_HOST_AHEAD) : st;
}

tutti_status tti_host_catch_up(tti_host_channel *channel)
{
    return await_entered(channel, 1);
}

void tti_host_finish(tti_host_channel *channel)
{
    move(channel, &channel->members[channel->team->rank].lines->counters[TTI_FINISHED], channel->note.seq);
}

tutti_status tti_host_begin(tti_host_channel *channel, uint64_t n_rounds)
{
    const tutti_status st = tti_host_catch_up(channel);

    if (st == TUTTI_OK)
        channel->end = channel->round + n_rounds;
    return st;
}

void tti_host_go_on(tti_host_channel *channel, uint64_t n_rounds)
{
    channel->end = channel->round + n_rounds;
}

tutti_status tti_host_room(tti_host_channel *channel)
{
    tutti_status st = TUTTI_OK;
    int          r;

    if (channel->round < channel->unread + channel->depth)
        return TUTTI_OK;
    for (r = 0; r < channel->team->n_ranks && st == TUTTI_OK; r++) {
        st = tti_host_wait(channel, r, TTI_DONE, channel->round - channel->depth + 1);
        /* Who has done a round of this call has entered it. */
        if (st == TUTTI_OK && r != channel->team->rank &&
            channel->round - channel->begin >= channel->depth)
            st = agree(channel, r, channel->note.seq);
    }
    return st;
}

void tti_host_post(tti_host_channel *channel, tti_counter_kind kind)
{
    tti_host_lines *own = channel->members[channel->team->rank].lines;

    move(channel, &own->counters[kind], channel->round + 1);
}

tutti_status tti_host_await(tti_host_channel *channel, tti_counter_kind kind, int rank)
{
    tti_host_member *member = &channel->members[rank];
    tutti_status     st = tti_host_wait(channel, rank, kind, channel->round + 1);

    /* The word is of this call or a later one; where it is not ours, the board knows which. */
    if (st == TUTTI_OK && atomic_load_explicit(&member->lines->counters[kind].word,
                                               memory_order_relaxed) != channel->word)
        return agree(channel, rank, channel->note.seq);
    if (st == TUTTI_OK)
        member->agreed = channel->note.seq;
    return st;
}

tutti_status tti_host_await_all(tti_host_channel *channel, tti_counter_kind kind)
{
    const tti_team *team = channel->team;
    tutti_status    st = TUTTI_OK;
    int             i;

    for (i = 1; i < team->n_ranks && st == TUTTI_OK; i++)
        st = tti_host_await(channel, kind, (team->rank + i) % team->n_ranks);
    return st;
}

void tti_host_next(tti_host_channel *channel)
{
    tti_host_post(channel, TTI_DONE);
    channel->round++;
}

void tti_host_turn(tti_host_channel *channel, uint64_t round)
{
    channel->round = round;
}

static char *slot(const tti_host_channel *channel, int rank, size_t sort)
{
    return channel->members[rank].slots + sort * TTI_HOST_SLOTS +
           (channel->round % channel->depth) * channel->chunk;
}

char *tti_host_staging(const tti_host_channel *channel, int rank)
{
    return slot(channel, rank, 0);
}

char *tti_host_result(const tti_host_channel *channel, int rank)
{
    return slot(channel, rank, 1);
}

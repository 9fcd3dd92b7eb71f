/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plan_blocks.c - plans of all_to_all and its rooted forms, in which only two ranks know of a block.
 *
 * Why     What one rank gives must be what the other expects, and both must find out. Blocks are often small: then a
 *         round of messages for their sizes would take as long as they do.
 * How     For each pair there is a slot: what the giver gives and wants, and behind it the block, if that is short
 *         enough. Everybody packs; slots go to their takers; sizes are taken out and compared by whoever moves the data; then long
 *         blocks follow, and short ones are taken out, too.
 *         Slots go directly, P - 1 messages, as long as what is in them: a copy of some KiB costs less than the way there and back,
 *         for sizes and then the block. Or
 *         by way of others, log2 P: what has d ranks to go makes the steps of d's bits, P/2 slots of SLOT bytes in a message.
 *         Where several ranks share a link, long blocks of theirs go to a few ranks after the other, a phase for each such few: all at
 *         once are more than the link's queue holds, and what is dropped at the end of a block is missed late. Nobody sends the
 *         next before he has what he gets in this phase: so what is on its way has a bound, which those of a phase share (turns.h). With
 *         one rank in each the link of a host whose pairs are over had nothing to do until others' were. A rank with a link of its own has no
 *         need of phases, and would wait for whoever is late; it shares as well. Long blocks that all go to one root take turns whoever has which
 *         link (turns.h).
 * True    Nothing is written to a block before its sizes were compared. All phases are there whatever the sizes are, but for long
 *         blocks of known sizes that take turns: in which phase one goes is a matter of its length, and of how far its taker is to
 *         the right of its giver, which both know. */
#include "coll/net/blocks.h"
#include "coll/net/turns.h"

enum {
    SIZES = sizeof(tti_block_sizes),
    SLOT = 256, /* by way of others, and the shortest */
    SHORT_LEAST = 8 << 10, /* what is copied sooner than a message comes and goes, however many there are */
    SHORT_MOST = 64 << 10,
    AT_ONCE = 128 << 10,   /* what all may send to one before he has said that he wants it: more fills the queue of his link */
    SLOTS_BYTES = 1 << 20, /* of all ranks, before they become shorter */
    LONG_LEAST = 64 << 10, /* shorter blocks cost less at once than phases do */
    SHARES_MOST = 12,      /* long blocks that share a link at a time: with more each could have little on the way */
    ROUNDS_MOST = 64,      /* phases of long blocks: with more ranks some go together */
};

/* A row of slots in scratch memory, of equal length. */
typedef struct slot_row {
    tti_block row;
    int64_t   each;
} slot_row;

static tti_block block(tti_place place, int index, const int64_t *counts, const tti_plan_input *p)
{
    return (tti_block){ .place = place, .index = index, .bytes = counts[index] * (int64_t)p->element };
}

static tti_block given_to(int rank, const tti_plan_input *p)
{
    return block(TTI_PLACE_INS, rank, p->in_counts, p);
}

static tti_block taken_from(int rank, const tti_plan_input *p)
{
    return block(TTI_PLACE_LIST, rank, p->list_counts, p);
}

static tti_block sizes(int row)
{
    return (tti_block){ .place = TTI_PLACE_SIZES, .offset = (int64_t)row * SIZES, .bytes = SIZES };
}

/* Whether this rank and peer may have anything for each other: where there is a root, it is one of
 * them. */
static bool is_pair(const tti_plan_input *p, int peer)
{
    return p->root < 0 || p->rank == p->root || peer == p->root;
}

int64_t tti_short_block(int n_ranks)
{
    const int64_t room = SLOTS_BYTES / n_ranks / 64 * 64 - SIZES, share = AT_ONCE / n_ranks;
    const int64_t wanted = share > SHORT_MOST ? SHORT_MOST : share > SHORT_LEAST ? share : SHORT_LEAST;

    return room > wanted ? wanted : room > SLOT - SIZES ? room : SLOT - SIZES;
}

static slot_row take_slots(tti_schedule *schedule, int n, int64_t each)
{
    return (slot_row){ .row = tti_schedule_scratch(schedule, each * n), .each = each };
}

/* Ranks that have a phase together at least, so that there are not too many phases. */
static int together(const tti_plan_input *p)
{
    return (p->n_ranks - 1 + ROUNDS_MOST - 1) / ROUNDS_MOST;
}

/* Only the first chunk tells sizes, and has slots. */
static bool is_short(const tti_plan_input *p, const slot_row *slots, tti_block block)
{
    return p->chunk == 0 && block.bytes <= slots->each - SIZES;
}

static tti_block slot_of(const slot_row *slots, int i)
{
    return tti_within(slots->row, slots->each * i, slots->each);
}

static tti_block head(tti_block slot)
{
    return tti_within(slot, 0, SIZES);
}

static tti_block body(tti_block slot, int64_t bytes)
{
    return tti_within(slot, SIZES, bytes);
}

/* The i-th slot, with what the rank i to the right gets. */
static void fill_slot(const tti_plan_input *p, tti_schedule *schedule, const slot_row *slots, int i)
{
    const int       to = tti_shifted(p->rank, i, p->n_ranks);
    const tti_block given = given_to(to, p), slot = slot_of(slots, i);

    tti_schedule_copy(schedule, head(slot), sizes(to));
    if (is_short(p, slots, given) && given.bytes > 0)
        tti_schedule_copy(schedule, body(slot, given.bytes), given);
}

static void tell_sizes(const tti_plan_input *p, tti_schedule *schedule, tti_block slot, int from)
{
    tti_schedule_copy(schedule, sizes(p->n_ranks + from), head(slot));
}

/* What did not fit into slots, and what did. The slot of the i-th to the left is the i-th. */
static void move_all(const tti_plan_input *p, tti_schedule *schedule, const slot_row *slots)
{
    int i;

    tti_schedule_phase(schedule);
    for (i = 1; i < p->n_ranks; i++) {
        const int       to = tti_shifted(p->rank, i, p->n_ranks);
        const int       from = tti_shifted(p->rank, -i, p->n_ranks);
        const tti_block given = given_to(to, p), taken = taken_from(from, p);

        if (!is_short(p, slots, given) && given.bytes > 0)
            tti_schedule_send_beside(schedule, to, given, tti_beside_unknown(p->n_ranks, given.bytes));
        if (!is_short(p, slots, taken))
            tti_recv_some(schedule, from, taken);
        else if (taken.bytes > 0)
            tti_schedule_copy(schedule, taken, body(slot_of(slots, i), taken.bytes));
    }
    tti_schedule_copy(schedule, taken_from(p->rank, p), given_to(p->rank, p));
}

/* ---- with a root: in turns (turns.h) ---- */

/* In which turn a block of so many bytes goes to the root, which this rank is, or peer; from it all go at once. */
static int turn_of(const tti_plan_input *p, int peer, bool to_root, int64_t bytes)
{
    const int i = tti_shifted(p->rank == p->root ? peer : p->rank, -p->root, p->n_ranks), last = (i - 1) / together(p);
    const int turn = bytes < LONG_LEAST || !to_root ? 0 : tti_turn_of(p->n_ranks, i, bytes);

    return turn < last ? turn : last;
}

static int turns_of(const tti_plan_input *p)
{
    return p->n_ranks > 2 ? (p->n_ranks - 2) / together(p) + 1 : 1;
}

/* Of what this rank gives to peer; and gets from it. */
static int turn_given(const tti_plan_input *p, int peer)
{
    return turn_of(p, peer, p->rank != p->root, given_to(peer, p).bytes);
}

static int turn_taken(const tti_plan_input *p, int peer)
{
    return turn_of(p, peer, p->rank == p->root, taken_from(peer, p).bytes);
}

/* "Begin": a message of nothing, in the turn before. */
static void tell(const tti_plan_input *p, tti_schedule *schedule, int peer, int turn)
{
    const tti_block word = { .place = TTI_PLACE_SCRATCH };

    if (p->rank == p->root && turn_taken(p, peer) == turn + 1)
        tti_schedule_send(schedule, peer, word);
    if (p->rank != p->root && turn_given(p, peer) == turn + 1)
        tti_schedule_recv(schedule, peer, word);
}

/* What the root and another one move in a turn. */
static void move_pair(const tti_plan_input *p, tti_schedule *schedule, const slot_row *slots, int peer, int turn)
{
    const tti_block given = given_to(peer, p), taken = taken_from(peer, p);
    const tti_block slot = slot_of(slots, tti_shifted(p->rank, -peer, p->n_ranks));
    const int       beside = p->rank != p->root ? tti_beside_unknown(p->n_ranks, given.bytes) : 0;

    tell(p, schedule, peer, turn);
    if (!is_short(p, slots, given) && turn_given(p, peer) == turn && given.bytes > 0)
        tti_schedule_send_beside(schedule, peer, given, beside);
    if (!is_short(p, slots, taken) && turn_taken(p, peer) == turn)
        tti_recv_some(schedule, peer, taken);
    if (is_short(p, slots, taken) && taken.bytes > 0 && turn == 0)
        tti_schedule_copy(schedule, taken, body(slot, taken.bytes));
}

static int later(int a, int b)
{
    return a > b ? a : b;
}

static int last_turn(const tti_plan_input *p)
{
    int i, last = 0;

    if (p->rank != p->root)
        return later(turn_given(p, p->root), turn_taken(p, p->root));
    for (i = 1; i < p->n_ranks; i++) {
        const int peer = tti_shifted(p->rank, i, p->n_ranks);

        last = later(last, later(turn_given(p, peer), turn_taken(p, peer)));
    }
    return last;
}

/* Phases up to this rank's last turn. */
static void move_in_turns(const tti_plan_input *p, tti_schedule *schedule, const slot_row *slots)
{
    const int last = last_turn(p);
    int       turn, i;

    for (turn = 0; turn <= last; turn++) {
        tti_schedule_phase(schedule);
        for (i = 1; i < p->n_ranks && p->rank == p->root; i++)
            move_pair(p, schedule, slots, tti_shifted(p->root, i, p->n_ranks), turn);
        if (p->rank != p->root)
            move_pair(p, schedule, slots, p->root, turn);
        if (turn == 0)
            tti_schedule_copy(schedule, taken_from(p->rank, p), given_to(p->rank, p));
    }
}

/* The last phases. */
static void move_blocks(const tti_plan_input *p, tti_schedule *schedule, const slot_row *slots)
{
    int phases = schedule->phases.n + turns_of(p);

    if (p->root < 0) {
        move_all(p, schedule, slots);
        return;
    }
    move_in_turns(p, schedule, slots);
    for (phases -= schedule->phases.n; phases > 0; phases--)
        tti_schedule_phase(schedule);
}

/* Of a slot, what is in it. */
static tti_block filled(const tti_plan_input *p, const slot_row *slots, int i)
{
    const tti_block given = given_to(tti_shifted(p->rank, i, p->n_ranks), p);

    return tti_within(slot_of(slots, i), 0, SIZES + (is_short(p, slots, given) ? given.bytes : 0));
}

/* Only the giver knows how long its slot is, until sizes are compared. */
static void swap_slots(const tti_plan_input *p, tti_schedule *schedule, const slot_row *out, const slot_row *in)
{
    int i;

    for (i = 1; i < p->n_ranks; i++) {
        const int to = tti_shifted(p->rank, i, p->n_ranks);
        const int from = tti_shifted(p->rank, -i, p->n_ranks);

        if (is_pair(p, to))
            tti_schedule_send(schedule, to, filled(p, out, i));
        if (!is_pair(p, from))
            continue;
        tti_schedule_recv_at_most(schedule, from, slot_of(in, i));
        tell_sizes(p, schedule, slot_of(in, i), from);
    }
}

void tti_plan_all_to_all_direct(const tti_plan_input *p, tti_schedule *schedule)
{
    const int64_t each = SIZES + tti_short_block(p->n_ranks);
    slot_row      out = { .each = each }, in = { .each = each };
    int           i;

    if (p->chunk == 0) {
        out = take_slots(schedule, p->n_ranks, each);
        in = take_slots(schedule, p->n_ranks, each);
    }
    tti_schedule_phase(schedule);
    for (i = 1; i < p->n_ranks && p->chunk == 0; i++)
        if (is_pair(p, tti_shifted(p->rank, i, p->n_ranks)))
            fill_slot(p, schedule, &out, i);
    tti_schedule_phase(schedule);
    if (p->chunk == 0)
        swap_slots(p, schedule, &out, &in);
    tti_schedule_tells_sizes(schedule);
    move_blocks(p, schedule, &in);
}

/* ---- by way of others -------------------------------------------------------------------------- */

typedef struct journey {
    const tti_plan_input *p;
    tti_schedule         *schedule;
    slot_row              slots; /* the i-th is of whom it came from i to the left, once all steps are made */
    slot_row              out, in;
} journey;

/* Slots that make the step of a bit, put one behind the other, or back to their places. */
static int pack(const journey *j, int bit)
{
    int i, n = 0;

    for (i = 1; i < j->p->n_ranks; i++)
        if (i & bit)
            tti_schedule_copy(j->schedule, slot_of(&j->out, n++), slot_of(&j->slots, i));
    return n;
}

static void unpack(const journey *j, int bit)
{
    int i, n = 0;

    for (i = 1; i < j->p->n_ranks; i++)
        if (i & bit)
            tti_schedule_copy(j->schedule, slot_of(&j->slots, i), slot_of(&j->in, n++));
}

/* What was packed in the phase before goes on. */
static void step(const journey *j, int bit, int n)
{
    const int64_t bytes = (int64_t)SLOT * n;

    tti_schedule_phase(j->schedule);
    tti_schedule_send(j->schedule, tti_shifted(j->p->rank, bit, j->p->n_ranks), tti_within(j->out.row, 0, bytes));
    tti_schedule_recv(j->schedule, tti_shifted(j->p->rank, -bit, j->p->n_ranks), tti_within(j->in.row, 0, bytes));
    unpack(j, bit);
}

void tti_plan_all_to_all_bruck(const tti_plan_input *p, tti_schedule *schedule)
{
    journey j = { .p = p, .schedule = schedule };
    int     bit, i, n;

    if (p->chunk > 0 || p->n_ranks == 1 || p->root >= 0) {
        tti_plan_all_to_all_direct(p, schedule);
        return;
    }
    j.slots = take_slots(schedule, p->n_ranks, SLOT);
    j.out = take_slots(schedule, p->n_ranks, SLOT); /* a little more than half of them at most */
    j.in = take_slots(schedule, p->n_ranks, SLOT);
    tti_schedule_phase(schedule);
    for (i = 1; i < p->n_ranks; i++)
        fill_slot(p, schedule, &j.slots, i);
    for (bit = 1; bit < p->n_ranks; bit *= 2) {
        n = pack(&j, bit);
        step(&j, bit, n);
    }
    for (i = 1; i < p->n_ranks; i++)
        tell_sizes(p, schedule, slot_of(&j.slots, i), tti_shifted(p->rank, -i, p->n_ranks));
    tti_schedule_tells_sizes(schedule);
    move_blocks(p, schedule, &j.slots);
}

/* ---- where sizes are known ----------------------------------------------------------------------- */

/* Ranks that each sends long blocks to in a phase. A link may be that of half of all ranks. */
static int at_a_time(const tti_plan_input *p)
{
    const int share = 2 * SHARES_MOST / p->n_ranks, least = together(p);

    return share > least ? share : least;
}

/* In which phase a block goes to the i-th rank to the right. */
static int round_of(const tti_plan_input *p, int i, int64_t bytes)
{
    return bytes < LONG_LEAST ? 0 : (i - 1) / at_a_time(p);
}

/* How many others share the link with a block, at most. */
static int beside(const tti_plan_input *p, int64_t bytes)
{
    const int most = at_a_time(p) < p->n_ranks - 1 ? at_a_time(p) : p->n_ranks - 1, flows = most * (p->n_ranks / 2);

    return bytes < LONG_LEAST ? 0 : (flows < SHARES_MOST ? flows : SHARES_MOST) - 1;
}

static void move_round(const tti_plan_input *p, tti_schedule *schedule, int round)
{
    int i;

    tti_schedule_phase(schedule);
    for (i = 1; i < p->n_ranks; i++) {
        const int       to = tti_shifted(p->rank, i, p->n_ranks), from = tti_shifted(p->rank, -i, p->n_ranks);
        const tti_block given = given_to(to, p), taken = taken_from(from, p);

        if (round_of(p, i, given.bytes) == round && given.bytes > 0)
            tti_schedule_send_beside(schedule, to, given, beside(p, given.bytes));
        if (round_of(p, i, taken.bytes) == round)
            tti_recv_some(schedule, from, taken);
    }
}

void tti_plan_blocks_known(const tti_plan_input *p, tti_schedule *schedule)
{
    const slot_row none = { .each = 0 };
    int            i, round, last = 0;

    if (p->root >= 0) {
        move_in_turns(p, schedule, &none);
        return;
    }
    for (i = 1; i < p->n_ranks; i++) {
        const tti_block given = given_to(tti_shifted(p->rank, i, p->n_ranks), p);
        const tti_block taken = taken_from(tti_shifted(p->rank, -i, p->n_ranks), p);

        round = round_of(p, i, given.bytes > taken.bytes ? given.bytes : taken.bytes);
        last = round > last ? round : last;
    }
    for (round = 0; round <= last; round++)
        move_round(p, schedule, round);
}

void tti_plan_blocks_packed(const tti_plan_input *p, tti_schedule *schedule)
{
    int i;

    tti_schedule_phase(schedule);
    for (i = 1; i < p->n_ranks; i++) {
        const int to = tti_shifted(p->rank, i, p->n_ranks), from = tti_shifted(p->rank, -i, p->n_ranks);

        tti_send_some(schedule, to, given_to(to, p));
        if (p->list_counts[from] > 0)
            tti_schedule_recv_at_most(schedule, from, taken_from(from, p));
    }
}

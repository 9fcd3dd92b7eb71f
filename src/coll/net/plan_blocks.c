/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plan_blocks.c - plans of all_to_all and its rooted forms, in which only two ranks know of a block.
 *
 * Why     What one rank gives must be what the other expects, and both must find out. Blocks are often small: then a
 *         round of messages for their sizes would take as long as they do.
 * How     For each pair there is a slot of SLOT bytes: what the giver gives and wants, and behind it the block, if that is short
 *         enough. Everybody packs; slots go to their takers; sizes are taken out and compared by whoever moves the data; then long
 *         blocks follow, and short ones are taken out, too.
 *         Slots go directly, P - 1 messages; or by way of others, log2 P: what has d ranks to go makes the steps of d's
 *         bits, P/2 slots in a message.
 * True    Nothing is written to a block before its sizes were compared. All phases are there whatever the sizes are. */
#include "coll/net/blocks.h"

enum { SLOT = 256, SIZES = sizeof(tti_block_sizes), SHORT = SLOT - SIZES };

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

/* Only the first chunk tells sizes, and has slots. */
static bool is_short(const tti_plan_input *p, tti_block block)
{
    return p->chunk == 0 && block.bytes <= SHORT;
}

static tti_block slot_of(tti_block slots, int i)
{
    return tti_within(slots, (int64_t)SLOT * i, SLOT);
}

static tti_block head(tti_block slot)
{
    return tti_within(slot, 0, SIZES);
}

static tti_block body(tti_block slot, int64_t bytes)
{
    return tti_within(slot, SIZES, bytes);
}

static void fill_slot(const tti_plan_input *p, tti_schedule *schedule, tti_block slot, int to)
{
    const tti_block given = given_to(to, p);

    tti_schedule_copy(schedule, head(slot), sizes(to));
    if (is_short(p, given))
        tti_schedule_copy(schedule, body(slot, given.bytes), given);
}

static void tell_sizes(const tti_plan_input *p, tti_schedule *schedule, tti_block slot, int from)
{
    tti_schedule_copy(schedule, sizes(p->n_ranks + from), head(slot));
}

/* The last phase: what did not fit into slots, and what did. The slot of the i-th to the left is the i-th. */
static void move_blocks(const tti_plan_input *p, tti_schedule *schedule, tti_block slots)
{
    int i;

    tti_schedule_phase(schedule);
    for (i = 1; i < p->n_ranks; i++) {
        const int       to = tti_shifted(p->rank, i, p->n_ranks);
        const int       from = tti_shifted(p->rank, -i, p->n_ranks);
        const tti_block given = given_to(to, p), taken = taken_from(from, p);

        if (!is_short(p, given))
            tti_send_some(schedule, to, given);
        if (!is_short(p, taken))
            tti_recv_some(schedule, from, taken);
        else if (taken.bytes > 0)
            tti_schedule_copy(schedule, taken, body(slot_of(slots, i), taken.bytes));
    }
    tti_schedule_copy(schedule, taken_from(p->rank, p), given_to(p->rank, p));
}

static void swap_slots(const tti_plan_input *p, tti_schedule *schedule, tti_block out, tti_block in)
{
    int i;

    for (i = 1; i < p->n_ranks; i++) {
        const int to = tti_shifted(p->rank, i, p->n_ranks);
        const int from = tti_shifted(p->rank, -i, p->n_ranks);

        if (is_pair(p, to))
            tti_schedule_send(schedule, to, slot_of(out, i));
        if (!is_pair(p, from))
            continue;
        tti_schedule_recv(schedule, from, slot_of(in, i));
        tell_sizes(p, schedule, slot_of(in, i), from);
    }
}

void tti_plan_all_to_all_direct(const tti_plan_input *p, tti_schedule *schedule)
{
    tti_block out = { .bytes = 0 }, in = { .bytes = 0 };
    int       i;

    if (p->chunk == 0) {
        out = tti_schedule_scratch(schedule, (int64_t)SLOT * p->n_ranks);
        in = tti_schedule_scratch(schedule, (int64_t)SLOT * p->n_ranks);
    }
    tti_schedule_phase(schedule);
    for (i = 1; i < p->n_ranks && p->chunk == 0; i++)
        if (is_pair(p, tti_shifted(p->rank, i, p->n_ranks)))
            fill_slot(p, schedule, slot_of(out, i), tti_shifted(p->rank, i, p->n_ranks));
    tti_schedule_phase(schedule);
    if (p->chunk == 0)
        swap_slots(p, schedule, out, in);
    tti_schedule_tells_sizes(schedule);
    move_blocks(p, schedule, in);
}

/* ---- by way of others -------------------------------------------------------------------------- */

typedef struct journey {
    const tti_plan_input *p;
    tti_schedule         *schedule;
    tti_block             slots; /* the i-th is of whom it came from i to the left, once all steps are made */
    tti_block             out, in;
} journey;

/* Slots that make the step of a bit, put one behind the other, or back to their places. */
static int pack(const journey *j, int bit)
{
    int i, n = 0;

    for (i = 1; i < j->p->n_ranks; i++)
        if (i & bit)
            tti_schedule_copy(j->schedule, slot_of(j->out, n++), slot_of(j->slots, i));
    return n;
}

static void unpack(const journey *j, int bit)
{
    int i, n = 0;

    for (i = 1; i < j->p->n_ranks; i++)
        if (i & bit)
            tti_schedule_copy(j->schedule, slot_of(j->slots, i), slot_of(j->in, n++));
}

/* What was packed in the phase before goes on. */
static void step(const journey *j, int bit, int n)
{
    const int64_t bytes = (int64_t)SLOT * n;

    tti_schedule_phase(j->schedule);
    tti_schedule_send(j->schedule, tti_shifted(j->p->rank, bit, j->p->n_ranks), tti_within(j->out, 0, bytes));
    tti_schedule_recv(j->schedule, tti_shifted(j->p->rank, -bit, j->p->n_ranks), tti_within(j->in, 0, bytes));
    unpack(j, bit);
}

void tti_plan_all_to_all_bruck(const tti_plan_input *p, tti_schedule *schedule)
{
    const int64_t all = (int64_t)SLOT * p->n_ranks;
    journey       j = { .p = p, .schedule = schedule };
    int           bit, i, n;

    if (p->chunk > 0 || p->n_ranks == 1 || p->root >= 0) {
        tti_plan_all_to_all_direct(p, schedule);
        return;
    }
    j.slots = tti_schedule_scratch(schedule, all);
    j.out = tti_schedule_scratch(schedule, all); /* a little more than half of them at most */
    j.in = tti_schedule_scratch(schedule, all);
    tti_schedule_phase(schedule);
    for (i = 1; i < p->n_ranks; i++)
        fill_slot(p, schedule, slot_of(j.slots, i), tti_shifted(p->rank, i, p->n_ranks));
    for (bit = 1; bit < p->n_ranks; bit *= 2) {
        n = pack(&j, bit);
        step(&j, bit, n);
    }
    for (i = 1; i < p->n_ranks; i++)
        tell_sizes(p, schedule, slot_of(j.slots, i), tti_shifted(p->rank, -i, p->n_ranks));
    tti_schedule_tells_sizes(schedule);
    move_blocks(p, schedule, j.slots);
}

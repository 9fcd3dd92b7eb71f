/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plan_bruck.c - plans that take parts along the way, in log2 P phases: all_gather, all_reduce, gather, scatter,
 * reduce_scatter.
 *
 * Why     A message has a price of its own: P - 1 small parts of one rank cost more than log2 P messages of many.
 * How     Parts lie in scratch memory in the order of a circle that begins at the rank itself (all_gather, all_reduce) or at
 *         the root, so that what goes in one message lies in one piece; at the end each is copied to its place. The way
 *         up to the root, and back, is the binomial tree: subtrees are neighbours on the circle.
 *         A contribution to the part of the rank d to the right makes the steps of d's bits, beside all others that make
 *         them. Nothing is combined with it on its way: whoever owns the part has all contributions as they were, and
 *         combines them in the order of ranks.
 * True    Where parts differ in size every part is a message: then whoever has another list of sizes finds out. */
#include "coll/net/blocks.h"

static int64_t part_bytes(const tti_plan_input *p)
{
    return p->count * (int64_t)p->element;
}

static int fewer(int a, int b)
{
    return a < b ? a : b;
}

/* ---- all_gather -------------------------------------------------------------------------------- */

/* Before step s a rank has the parts of 2^s ranks, from its own on to the right; after all steps those of all. */
static tti_block travel_packed(const tti_plan_input *p, tti_schedule *schedule, tti_block own)
{
    const int64_t   each = own.bytes;
    const tti_block room = tti_schedule_scratch(schedule, each * p->n_ranks);
    int             reach;

    for (reach = 1; reach < p->n_ranks; reach *= 2) {
        const int n = fewer(reach, p->n_ranks - reach);

        tti_schedule_phase(schedule);
        tti_schedule_send(schedule, tti_shifted(p->rank, -reach, p->n_ranks),
                          reach == 1 ? own : tti_within(room, 0, each * n));
        tti_schedule_recv(schedule, tti_shifted(p->rank, reach, p->n_ranks), tti_within(room, each * reach, each * n));
        if (reach == 1)
            tti_schedule_copy(schedule, tti_within(room, 0, each), own);
    }
    return room;
}

static void gather_packed(const tti_plan_input *p, tti_schedule *schedule)
{
    const int64_t   each = part_bytes(p);
    const tti_block room = travel_packed(p, schedule, (tti_block){ .place = TTI_PLACE_IN, .bytes = each });
    int             i;

    for (i = 1; i < p->n_ranks; i++)
        tti_schedule_copy(schedule, tti_part(tti_shifted(p->rank, i, p->n_ranks), p), tti_within(room, each * i, each));
}

static void gather_one_by_one(const tti_plan_input *p, tti_schedule *schedule)
{
    const tti_block own = { .place = TTI_PLACE_IN, .bytes = tti_part(p->rank, p).bytes };
    int             reach, i;

    for (reach = 1; reach < p->n_ranks; reach *= 2) {
        const int to = tti_shifted(p->rank, -reach, p->n_ranks);
        const int from = tti_shifted(p->rank, reach, p->n_ranks);

        tti_schedule_phase(schedule);
        for (i = 0; i < fewer(reach, p->n_ranks - reach); i++) {
            tti_send_told(p, schedule, to, i == 0 ? own : tti_part(tti_shifted(p->rank, i, p->n_ranks), p));
            tti_recv_told(p, schedule, from, tti_part(tti_shifted(from, i, p->n_ranks), p));
        }
    }
}

void tti_plan_all_gather_bruck(const tti_plan_input *p, tti_schedule *schedule)
{
    const tti_block own = { .place = TTI_PLACE_IN, .bytes = tti_part(p->rank, p).bytes };

    if (p->count == 0)
        return;
    if (p->n_ranks == 1)
        tti_schedule_phase(schedule);
    else if (p->list_counts != NULL)
        gather_one_by_one(p, schedule);
    else
        gather_packed(p, schedule);
    tti_schedule_copy(schedule, tti_part(p->rank, p), own); /* the last, for IN may lie there already */
}

/* ---- all_reduce -------------------------------------------------------------------------------- */

/* As parts of an all_gather, contributions lie behind each other from the own one on. */
void tti_plan_all_reduce_bruck(const tti_plan_input *p, tti_schedule *schedule)
{
    const tti_block own = tti_whole(TTI_PLACE_IN, p);
    tti_block       room = { .bytes = 0 };
    int             r;

    if (p->count == 0)
        return;
    if (p->n_ranks == 1)
        tti_schedule_phase(schedule);
    else
        room = travel_packed(p, schedule, own);
    tti_schedule_reduce(schedule, tti_whole(TTI_PLACE_OUT, p));
    for (r = 0; r < p->n_ranks; r++)
        tti_schedule_input(schedule, r == p->rank ? own : tti_within(room, own.bytes * tti_shifted(r, -p->rank, p->n_ranks), own.bytes));
}

/* ---- gather and scatter ------------------------------------------------------------------------ */

/* A rank's place in the tree, and the parts of its subtree, its own one first. */
typedef struct branch {
    const tti_plan_input *p;
    tti_schedule         *schedule;
    int                   away;  /* from the root */
    int                   n;     /* ranks of its subtree, itself included */
    int64_t               each;
    tti_block             room;
} branch;

static branch branch_of(const tti_plan_input *p, tti_schedule *schedule)
{
    branch b = { .p = p, .schedule = schedule, .away = tti_shifted(p->rank, -p->root, p->n_ranks),
                 .each = part_bytes(p) };

    b.n = b.away == 0 ? p->n_ranks : fewer(b.away & -b.away, p->n_ranks - b.away);
    if (b.n > 1)
        b.room = tti_schedule_scratch(schedule, b.each * b.n);
    return b;
}

static tti_block some(const branch *b, int first, int n)
{
    return tti_within(b->room, b->each * first, b->each * n);
}

static int further(const branch *b, int by)
{
    return tti_shifted(b->p->rank, by, b->p->n_ranks);
}

/* Ranks of the child's subtree that is reach away; 0: there is no such child. */
static int child_size(const branch *b, int reach)
{
    return reach < b->n ? fewer(reach, b->n - reach) : 0;
}

static void pass_up(const branch *b, int reach)
{
    const tti_block own = tti_whole(TTI_PLACE_IN, b->p);
    const int       n = child_size(b, reach);

    tti_schedule_phase(b->schedule);
    if ((b->away & -b->away) == reach)
        tti_schedule_send(b->schedule, further(b, -reach), b->n == 1 ? own : b->room);
    if (n > 0)
        tti_schedule_recv(b->schedule, further(b, reach), some(b, reach, n));
    if (n > 0 && reach == 1 && b->away != 0)
        tti_schedule_copy(b->schedule, some(b, 0, 1), own);
}

void tti_plan_gather_binomial(const tti_plan_input *p, tti_schedule *schedule)
{
    branch b;
    int    reach, i;

    if (p->list_counts != NULL) {
        tti_plan_gather_direct(p, schedule);
        return;
    }
    if (p->count == 0)
        return;
    b = branch_of(p, schedule);
    if (p->n_ranks == 1)
        tti_schedule_phase(schedule);
    for (reach = 1; reach < p->n_ranks; reach *= 2)
        pass_up(&b, reach);
    for (i = 1; b.away == 0 && i < p->n_ranks; i++)
        tti_schedule_copy(schedule, tti_entry(further(&b, i), p), some(&b, i, 1));
    if (b.away == 0)
        tti_schedule_copy(schedule, tti_entry(p->rank, p), tti_whole(TTI_PLACE_IN, p));
}

static void pass_down(const branch *b, int reach)
{
    const int n = child_size(b, reach);

    tti_schedule_phase(b->schedule);
    if (n > 0)
        tti_schedule_send(b->schedule, further(b, reach), some(b, reach, n));
    if ((b->away & -b->away) == reach)
        tti_schedule_recv(b->schedule, further(b, -reach), b->n == 1 ? tti_whole(TTI_PLACE_OUT, b->p) : b->room);
}

void tti_plan_scatter_binomial(const tti_plan_input *p, tti_schedule *schedule)
{
    branch b;
    int    reach = 1, i;

    if (p->list_counts != NULL) {
        tti_plan_scatter_direct(p, schedule);
        return;
    }
    if (p->count == 0)
        return;
    b = branch_of(p, schedule);
    tti_schedule_phase(schedule); /* nobody sends before the root has put the parts in order */
    for (i = 1; b.away == 0 && i < p->n_ranks; i++)
        tti_schedule_copy(schedule, some(&b, i, 1), tti_entry(further(&b, i), p));
    if (b.away == 0)
        tti_schedule_copy(schedule, tti_whole(TTI_PLACE_OUT, p), tti_entry(p->rank, p));
    while (reach < p->n_ranks)
        reach *= 2;
    for (reach /= 2; reach > 0; reach /= 2)
        pass_down(&b, reach);
    if (b.away != 0 && b.n > 1)
        tti_schedule_copy(schedule, tti_whole(TTI_PLACE_OUT, p), some(&b, 0, 1));
}

/* ---- reduce_scatter ---------------------------------------------------------------------------- */

/* Rows of P lanes, each of one contribution. The i-th lane is for the rank i to the right before the steps, and from the rank i to
 * the left after them. */
typedef struct travel {
    const tti_plan_input *p;
    tti_schedule         *schedule;
    int64_t               each;
    tti_block             lanes;
    tti_block             out, in; /* those that make a step, one behind the other */
} travel;

static tti_block lane(const travel *t, tti_block row, int i)
{
    return tti_within(row, t->each * i, t->each);
}

static int pack(const travel *t, int bit)
{
    int i, n = 0;

    for (i = 1; i < t->p->n_ranks; i++)
        if (i & bit)
            tti_schedule_copy(t->schedule, lane(t, t->out, n++), lane(t, t->lanes, i));
    return n;
}

static void unpack(const travel *t, int bit)
{
    int i, n = 0;

    for (i = 1; i < t->p->n_ranks; i++)
        if (i & bit)
            tti_schedule_copy(t->schedule, lane(t, t->lanes, i), lane(t, t->in, n++));
}

/* What was packed in the phase before goes on. */
static void travel_on(const travel *t, int bit, int n)
{
    tti_schedule_phase(t->schedule);
    tti_schedule_send(t->schedule, tti_shifted(t->p->rank, bit, t->p->n_ranks), tti_within(t->out, 0, t->each * n));
    tti_schedule_recv(t->schedule, tti_shifted(t->p->rank, -bit, t->p->n_ranks), tti_within(t->in, 0, t->each * n));
    unpack(t, bit);
}

static void combine_what_came(const travel *t)
{
    int r;

    tti_schedule_reduce(t->schedule, tti_whole(TTI_PLACE_OUT, t->p));
    for (r = 0; r < t->p->n_ranks; r++)
        tti_schedule_input(t->schedule, r == t->p->rank ? tti_part(r, t->p)
                                                        : lane(t, t->lanes, tti_shifted(t->p->rank, -r, t->p->n_ranks)));
}

void tti_plan_reduce_scatter_bruck(const tti_plan_input *p, tti_schedule *schedule)
{
    travel t = { .p = p, .schedule = schedule, .each = part_bytes(p) };
    int    bit, i, n;

    if (p->count == 0 || p->n_ranks == 1 || p->list_counts != NULL) {
        tti_plan_reduce_scatter_direct(p, schedule);
        return;
    }
    t.lanes = tti_schedule_scratch(schedule, t.each * p->n_ranks);
    t.out = tti_schedule_scratch(schedule, t.each * p->n_ranks);
    t.in = tti_schedule_scratch(schedule, t.each * p->n_ranks);
    tti_schedule_phase(schedule);
    for (i = 1; i < p->n_ranks; i++)
        tti_schedule_copy(schedule, lane(&t, t.lanes, i), tti_part(tti_shifted(p->rank, i, p->n_ranks), p));
    for (bit = 1; bit < p->n_ranks; bit *= 2) {
        n = pack(&t, bit);
        travel_on(&t, bit, n);
    }
    combine_what_came(&t);
}

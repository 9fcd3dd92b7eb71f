/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plan_tree.c - plans in which sums grow along a tree: all_reduce by doubling and by halving, reduce, reduce_scatter.
 *
 * Why     log2 P phases instead of P - 1 messages in each: for many ranks.
 * How     Ranks are brought to a power of two of seats (pattern.h): the second rank of a pair hands everything to the
 *         first one, and gets the result in the end. In step s seats meet whose numbers differ in bit s. By doubling
 *         both send all they have; by halving each sends the half that the other one goes on with, and the way back
 *         spreads the finished slices: half as many bytes as doubling for two steps, and less for more.
 * True    One tree whatever the plan, the root and the owner: pairs of seats, pairs of pairs, the lower ranks on the left.
 *         All plans of this file, and those of plan_reduce.c that end in _tree, round in the same places: the same bits.
 *         A number of 16 bits or less is rounded once for each level, log2 P times; around a ring it would be P - 1 times.
 *         IN and OUT may be one buffer: IN is read for the last time in the step that first writes OUT, after its
 *         messages have left. */
#include "coll/net/blocks.h"

typedef struct tree {
    const tti_plan_input *p;
    tti_schedule         *schedule;
    tti_seats             seats;
    int                   seat;
    bool                  sits; /* acts for its seat */
    int                   pair; /* the other rank of its seat, or -1 */
    tti_block             lane; /* what another seat sends */
    tti_place             held; /* IN, until something was combined to OUT */
} tree;

static tree tree_of(const tti_plan_input *p, tti_schedule *schedule)
{
    tree t = { .p = p, .schedule = schedule, .seats = tti_seats_of(p->n_ranks), .held = TTI_PLACE_IN };

    t.seat = tti_seat_of(&t.seats, p->rank);
    t.sits = tti_sitting(&t.seats, t.seat) == p->rank;
    t.pair = tti_pair_of(&t.seats, p->rank);
    return t;
}

/* to = what seats on the left have and what those on the right have; the last one of all finishes. */
static void combine_two(tti_schedule *schedule, tti_block to, tti_block left, tti_block right, bool last)
{
    if (last)
        tti_schedule_reduce(schedule, to);
    else
        tti_schedule_partial(schedule, to);
    tti_schedule_input(schedule, left);
    tti_schedule_input(schedule, right);
}

/* Combine what is held, in its place in OUT, with what has come to the lane in step s. */
static void add(const tree *t, tti_block held, int s)
{
    const tti_block came = tti_within(t->lane, 0, held.bytes);
    const bool      on_left = (t->seat >> s & 1) == 0;
    tti_block       to = held;

    to.place = TTI_PLACE_OUT;
    if (held.bytes > 0)
        combine_two(t->schedule, to, on_left ? held : came, on_left ? came : held, s == t->seats.steps - 1);
}

static int peer_in(const tree *t, int s)
{
    return tti_sitting(&t->seats, t->seat ^ 1 << s);
}

static tti_block all_of(const tree *t, tti_place place)
{
    return tti_whole(place, t->p);
}

/* The second of a pair hands over what it has. */
static void sit_down(tree *t)
{
    if (t->seats.n_pairs == 0)
        return;
    tti_schedule_phase(t->schedule);
    if (t->pair >= 0 && !t->sits) {
        tti_schedule_send(t->schedule, t->pair, all_of(t, TTI_PLACE_IN));
    } else if (t->pair >= 0) {
        tti_schedule_recv(t->schedule, t->pair, t->lane);
        combine_two(t->schedule, all_of(t, TTI_PLACE_OUT), all_of(t, TTI_PLACE_IN), t->lane, false);
        t->held = TTI_PLACE_OUT;
    }
}

static void stand_up(const tree *t)
{
    if (t->seats.n_pairs == 0)
        return;
    tti_schedule_phase(t->schedule);
    if (t->pair >= 0 && t->sits)
        tti_schedule_send(t->schedule, t->pair, all_of(t, TTI_PLACE_OUT));
    else if (t->pair >= 0)
        tti_schedule_recv(t->schedule, t->pair, all_of(t, TTI_PLACE_OUT));
}

static void alone(const tti_plan_input *p, tti_schedule *schedule)
{
    tti_schedule_phase(schedule);
    tti_schedule_reduce(schedule, tti_whole(TTI_PLACE_OUT, p));
    tti_schedule_input(schedule, tti_whole(TTI_PLACE_IN, p));
}

/* ---- all_reduce -------------------------------------------------------------------------------- */

static void meet(tree *t, int s)
{
    tti_schedule_phase(t->schedule);
    if (!t->sits)
        return;
    tti_schedule_send(t->schedule, peer_in(t, s), all_of(t, t->held));
    tti_schedule_recv(t->schedule, peer_in(t, s), t->lane);
    add(t, all_of(t, t->held), s);
    t->held = TTI_PLACE_OUT;
}

void tti_plan_all_reduce_doubling(const tti_plan_input *p, tti_schedule *schedule)
{
    tree t = tree_of(p, schedule);
    int  s;

    if (p->count == 0)
        return;
    if (p->n_ranks == 1) {
        alone(p, schedule);
        return;
    }
    if (t.sits)
        t.lane = tti_schedule_scratch(schedule, all_of(&t, TTI_PLACE_IN).bytes);
    sit_down(&t);
    for (s = 0; s < t.seats.steps; s++)
        meet(&t, s);
    stand_up(&t);
}

/* n of as many slices as there are seats. */
static tti_block slices(const tree *t, tti_place place, int first, int n)
{
    return tti_slices(place, t->p, t->seats.n, first, n);
}

/* Of the 2n slices that both seats have, each goes on with n: the first of them that this one does. */
static int give_half(tree *t, int s, int first, int n)
{
    const int mine = first + (t->seat >> s & 1) * n;
    const int theirs = mine ^ n;

    tti_schedule_phase(t->schedule);
    if (!t->sits)
        return mine;
    tti_send_some(t->schedule, peer_in(t, s), slices(t, t->held, theirs, n));
    tti_recv_some(t->schedule, peer_in(t, s), tti_within(t->lane, 0, slices(t, t->held, mine, n).bytes));
    add(t, slices(t, t->held, mine, n), s);
    t->held = TTI_PLACE_OUT;
    return mine;
}

/* Both have n finished slices, beside each other, and then both. */
static void swap_halves(const tree *t, int s, int mine, int n)
{
    tti_schedule_phase(t->schedule);
    if (!t->sits)
        return;
    tti_send_some(t->schedule, peer_in(t, s), slices(t, TTI_PLACE_OUT, mine, n));
    tti_recv_some(t->schedule, peer_in(t, s), slices(t, TTI_PLACE_OUT, mine ^ n, n));
}

void tti_plan_all_reduce_halving(const tti_plan_input *p, tti_schedule *schedule)
{
    tree t = tree_of(p, schedule);
    int  s, first = 0;

    if (p->count == 0)
        return;
    if (p->n_ranks == 1) {
        alone(p, schedule);
        return;
    }
    if (t.sits)
        t.lane = tti_schedule_scratch(schedule, slices(&t, TTI_PLACE_IN, 0, t.pair >= 0 ? t.seats.n
                                                                                        : t.seats.n / 2).bytes);
    sit_down(&t);
    for (s = 0; s < t.seats.steps; s++)
        first = give_half(&t, s, first, t.seats.n >> (s + 1));
    for (s = t.seats.steps - 1; s >= 0; s--) {
        swap_halves(&t, s, first, t.seats.n >> (s + 1));
        first &= ~(t.seats.n >> (s + 1));
    }
    stand_up(&t);
}

/* ---- reduce ------------------------------------------------------------------------------------ */

enum { RADIX_MAX = 4 };

/* A rank's way up to the root, wherever that is in the tree: of those seats that have come together the root has what
 * they came to, if it is among them, or else the first rank. */
typedef struct climb {
    tree      t;
    int       root_seat;
    tti_block held;
    tti_block to; /* where sums are made: OUT at the root; no bytes: nowhere yet */
    tti_block lanes[RADIX_MAX];
} climb;

/* Who has what the group-th 2^level seats came to. */
static int holder(const climb *c, int level, int group)
{
    return c->root_seat >> level == group ? c->t.p->root : tti_sitting(&c->t.seats, group << level);
}

static climb climb_of(const tti_plan_input *p, tti_schedule *schedule)
{
    climb c = { .t = tree_of(p, schedule), .held = tti_whole(TTI_PLACE_IN, p) };

    c.root_seat = tti_seat_of(&c.t.seats, p->root);
    if (p->rank == p->root)
        c.to = tti_whole(TTI_PLACE_OUT, p);
    return c;
}

/* Those that only hand over need none. */
static tti_block some_scratch(climb *c, tti_block *block)
{
    if (block->bytes == 0)
        *block = tti_schedule_scratch(c->t.schedule, c->held.bytes);
    return *block;
}

/* n contributions in rank order, of which the own one is held; each level of the tree is rounded. */
static void combine_few(climb *c, tti_block *few, int n, int own, bool last)
{
    int i;

    for (; n > 1; n /= 2, own /= 2)
        for (i = 0; i < n; i += 2) {
            const tti_block to = own / 2 == i / 2 ? c->to : few[i];

            combine_two(c->t.schedule, to, few[i], few[i + 1], last && n == 2);
            few[i / 2] = to;
        }
    c->held = c->to;
}

/* Ranks from[0] .. from[n-1], in their order, to whom of them is to have it. */
static void come_together(climb *c, const int *from, int n, int to, bool last)
{
    const int rank = c->t.p->rank;
    tti_block few[RADIX_MAX];
    int       i, own = -1, used = 0;

    for (i = 0; i < n; i++)
        own = from[i] == rank ? i : own;
    if (own >= 0 && rank != to)
        tti_schedule_send(c->t.schedule, to, c->held);
    if (rank != to)
        return;
    for (i = 0; i < n; i++) {
        few[i] = i == own ? c->held : some_scratch(c, &c->lanes[used++]);
        if (i != own)
            tti_schedule_recv(c->t.schedule, from[i], few[i]);
    }
    some_scratch(c, &c->to);
    combine_few(c, few, n, own, last);
}

static void climb_pair(climb *c)
{
    const int first = tti_sitting(&c->t.seats, c->t.seat);
    const int both[2] = { first, first + 1 };

    if (c->t.seats.n_pairs == 0)
        return;
    tti_schedule_phase(c->t.schedule);
    if (c->t.pair >= 0)
        come_together(c, both, 2, holder(c, 0, c->t.seat), false);
}

/* From groups of 2^level seats to groups of 2^next. */
static void climb_levels(climb *c, int level, int next)
{
    const int group = c->t.seat >> next;
    int       from[RADIX_MAX], i;

    tti_schedule_phase(c->t.schedule);
    for (i = 0; i < 1 << (next - level); i++)
        from[i] = holder(c, level, (group << (next - level)) + i);
    come_together(c, from, i, holder(c, next, group), next == c->t.seats.steps);
}

static void climb_by(const tti_plan_input *p, tti_schedule *schedule, int levels)
{
    climb c;
    int   level, next;

    if (p->count == 0)
        return;
    if (p->n_ranks == 1) {
        alone(p, schedule);
        return;
    }
    c = climb_of(p, schedule);
    climb_pair(&c);
    for (level = 0; level < c.t.seats.steps; level = next) {
        next = level + levels < c.t.seats.steps ? level + levels : c.t.seats.steps;
        climb_levels(&c, level, next);
    }
}

void tti_plan_reduce_binomial(const tti_plan_input *p, tti_schedule *schedule)
{
    climb_by(p, schedule, 1);
}

void tti_plan_reduce_knomial4(const tti_plan_input *p, tti_schedule *schedule)
{
    climb_by(p, schedule, 2);
}

/* ---- reduce_scatter ---------------------------------------------------------------------------- */

/* All parts, in the order in which halves are given away: seat by seat, by their numbers read from the lowest bit on. */
typedef struct parts {
    tree      t;
    int64_t   bytes; /* of one */
    tti_block all;
} parts;

static int parts_of_seat(const tree *t, int seat)
{
    return seat < t->seats.n_pairs ? 2 : 1;
}

static int64_t offset_of(const parts *x, int place)
{
    int n = 0, i;

    for (i = 0; i < place; i++)
        n += parts_of_seat(&x->t, tti_reversed(i, x->t.seats.steps));
    return n * x->bytes;
}

static tti_block places(const parts *x, int first, int n)
{
    const int64_t from = offset_of(x, first);

    return tti_within(x->all, from, offset_of(x, first + n) - from);
}

/* The part of one of a seat's ranks. */
static tti_block part_in(const parts *x, int rank)
{
    const int seat = tti_seat_of(&x->t.seats, rank);
    const int second = rank - tti_sitting(&x->t.seats, seat);

    return tti_within(x->all, offset_of(x, tti_reversed(seat, x->t.seats.steps)) + second * x->bytes, x->bytes);
}

static void put_in_order(const parts *x)
{
    int r;

    tti_schedule_phase(x->t.schedule);
    for (r = 0; r < x->t.p->n_ranks; r++)
        tti_schedule_copy(x->t.schedule, part_in(x, r), tti_part(r, x->t.p));
}

/* Combine what is held with what has come to the lane; left: the own is. */
static void add_parts(const parts *x, tti_block held, bool left, bool last)
{
    const tti_block came = tti_within(x->t.lane, 0, held.bytes);

    combine_two(x->t.schedule, held, left ? held : came, left ? came : held, last);
}

static void sit_down_with_parts(const parts *x)
{
    const tree *t = &x->t;

    if (t->seats.n_pairs == 0)
        return;
    tti_schedule_phase(t->schedule);
    if (t->pair >= 0 && !t->sits) {
        tti_schedule_send(t->schedule, t->pair, x->all);
    } else if (t->pair >= 0) {
        tti_schedule_recv(t->schedule, t->pair, t->lane);
        add_parts(x, x->all, true, false);
    }
}

static int give_half_of_parts(const parts *x, int s, int first, int n)
{
    const tree     *t = &x->t;
    const int       mine = first + (t->seat >> s & 1) * n;
    const tti_block held = places(x, mine, n);

    tti_schedule_phase(t->schedule);
    if (!t->sits)
        return mine;
    tti_schedule_send(t->schedule, peer_in(t, s), places(x, mine ^ n, n));
    tti_schedule_recv(t->schedule, peer_in(t, s), tti_within(t->lane, 0, held.bytes));
    add_parts(x, held, (t->seat >> s & 1) == 0, s == t->seats.steps - 1);
    return mine;
}

/* A phase of its own only where there are pairs. */
static void take_part(const parts *x)
{
    const tree     *t = &x->t;
    const tti_block out = { .place = TTI_PLACE_OUT, .bytes = x->bytes };

    if (t->sits)
        tti_schedule_copy(t->schedule, out, part_in(x, t->p->rank));
    if (t->seats.n_pairs == 0)
        return;
    tti_schedule_phase(t->schedule);
    if (t->pair >= 0 && t->sits)
        tti_schedule_send(t->schedule, t->pair, part_in(x, t->pair));
    else if (t->pair >= 0)
        tti_schedule_recv(t->schedule, t->pair, out);
}

void tti_plan_reduce_scatter_halving(const tti_plan_input *p, tti_schedule *schedule)
{
    parts x = { .t = tree_of(p, schedule), .bytes = p->count * (int64_t)p->element };
    int   s, first = 0;

    /* Where parts differ in size messages of several would not tell whether all ranks have the same list. */
    if (p->count == 0 || p->n_ranks == 1 || p->list_counts != NULL) {
        tti_plan_reduce_scatter_direct_tree(p, schedule);
        return;
    }
    x.all = tti_schedule_scratch(schedule, x.bytes * p->n_ranks);
    if (x.t.sits)
        x.t.lane = tti_schedule_scratch(schedule, x.t.pair >= 0 ? x.all.bytes : places(&x, 0, x.t.seats.n / 2).bytes);
    put_in_order(&x);
    sit_down_with_parts(&x);
    for (s = 0; s < x.t.seats.steps; s++)
        first = give_half_of_parts(&x, s, first, x.t.seats.n >> (s + 1));
    take_part(&x);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cost.c - the cost model: T = waits + bytes moved and combined, each at what it takes on this machine.
 *
 * How     An algorithm says what its busiest rank does, as arithmetic of P and S; nothing here knows what
 *         a byte takes. Inside a host a rank has its core for itself, or ranks take turns: then all that
 *         a core does adds up, and waiting for all means giving the core away once for each rank that
 *         shares it, and some more, for whoever comes too early comes again. Rounds overlap,
 *         the next is staged while the last is read: each costs half of its waits.
 *         Where hosts are one machine, and ranks share its cores, those carry the bytes of all, too.
 *         Between hosts phases follow each other, of the first chunk of a call; behind it chunks come one after the other,
 *         as fast as the busiest link or the core with most to do lets them.
 * True    A pure function of sums, products and whole numbers, which every machine rounds alike: the same
 *         amounts and figures give the same cost on every rank. It only ranks the algorithms of a kind
 *         against one another. */
#include "coll/cost.h"

#include <math.h>
#include <stdbool.h>
#include "coll/host/staged.h"
#include "coll/net/plan.h"
#include "coll/net/turns.h"
#include "coll/pattern.h"

/* Measured on servers with two to sixteen cores of one socket; TCP between virtual machines. */
const tti_machine tti_machine_default = {
    .line = 100, .give = 900, .copy = 0.04, .copy_far = 0.12, .fetch = 0.06, .combine = 0.03,
    .pull = 0.10, .pull_call = 900, .message = 30000, .post = 3000, .wire = 1.0,
    .cache_bytes = 1024 * 1024, .near_bytes = 2 * 1024 * 1024, .last_bytes = 4 * 1024 * 1024,
};

/* Between namespaces joined by veth, four ranks on two cores: a message takes the kernel's time of sending, switching and
 * receiving it, all of it on the cores of those who wait for it. */
tti_machine tti_machine_of_hosts(double crowd)
{
    tti_machine machine = tti_machine_default;

    machine.message = 12000;
    machine.post = 4500;
    machine.crowd = crowd;
    return machine;
}

static double at_least(double value, double least)
{
    return value > least ? value : least;
}

void tti_machine_know_link(tti_machine *machine, double wire, double at_once)
{
    if (wire <= machine->wire && machine->crowd <= 0)
        return;
    machine->at_once = at_once;
    machine->wire_at_once = machine->wire;
    machine->wire = at_least(wire, machine->wire);
}

/* Where ranks share cores a meeting was seen to take so many times what it takes to give the core away once for each. */
#define COMES_AGAIN 2.5

/* Messages of the rank with most of them, or, where ranks share a core, of those that share one. */
static double posts_of(const tti_amounts *a, const tti_machine *m, double ranks)
{
    const double each = a->posts_all > 0 ? a->posts_all / ranks : a->posts;

    return at_least(a->posts, m->crowd * each);
}

/* A byte to another host, of the cores that send and receive it: the usual figures of simulations, from messages between two
 * processes. */
#define CARRY (0.2 + 0.2)

/* What the cores that ranks share take for the bytes of all of them, or the one that takes in most. */
static double carrying(const tti_amounts *a, const tti_machine *m)
{
    return m->crowd > 0 ? at_least(m->crowd * a->carried * CARRY, a->from_all * CARRY / 2) : 0;
}

/* What is sent takes on links. Where all send in each call, a shaper's bucket is as empty as the call before has left it. Between hosts
 * that are one machine, what several send at once and no shaper holds up takes the cores alone (carrying). */
static double crossing(const tti_amounts *a, const tti_machine *m)
{
    const double at_once = a->has_root <= 0 ? 0 : a->sent < m->at_once ? a->sent : m->at_once;
    const double wire_at_once = a->from_all > 0 && m->crowd > 0 ? 0 : m->wire_at_once;

    return at_once * wire_at_once + (a->sent - at_once) * m->wire;
}

static double cost_of_one(const tti_amounts *a, const tti_machine *m, double turns, double ranks, double bytes)
{
    const bool   far = 2 * bytes > m->cache_bytes; /* the user's buffers; slots stay near */
    const double copy = far ? m->copy_far : m->copy;
    const double fetch = far ? at_least(m->fetch, m->copy_far) : m->fetch;
    /* What several ranks of a core read from one slot they find in its cache. */
    const double pull = turns > 1 ? 2 * m->pull : m->pull;
    /* All lines of a round are read at the same time, nearly: the second costs a quarter. */
    const double one = turns > 1 ? turns * m->give : m->line;
    const double all = turns > 1 ? COMES_AGAIN * one : m->line * (1 + (ranks - 2) / 4);

    /* The second rank of a core finds what the first has fetched, as long as it stays in its cache. */
    const double fetches = far ? turns * fetch : fetch + (turns - 1) * copy;

    return a->meets * all + a->hears * one + a->yields * m->crowd * COMES_AGAIN * m->give + a->fetched * fetches +
           turns * (a->copied * copy + a->combined * m->combine + a->pulled * pull + a->pulls * m->pull_call) +
           a->alone_fetched * fetch + a->alone_combined * m->combine +
           a->messages * m->message + posts_of(a, m, ranks) * m->post +
           at_least(carrying(a, m), crossing(a, m));
}

/* What one chunk more takes, behind the first. */
static double cost_of_next(const tti_amounts *chunk, const tti_machine *m, double turns, double ranks)
{
    const double link = chunk->link > 0 ? chunk->link : chunk->sent;

    return at_least(turns * chunk->combined * m->combine + posts_of(chunk, m, ranks) * m->post + carrying(chunk, m),
                    link * m->wire);
}

double tti_cost(const tti_amounts *amounts, const tti_machine *machine, double turns, double ranks, double bytes)
{
    const double n = at_least(amounts->chunks, 1);
    tti_amounts  chunk = *amounts;

    if (n <= 1)
        return cost_of_one(amounts, machine, turns, ranks, bytes);
    if (amounts->from_all > 0) /* long calls empty what passes at once */
        chunk.carried = chunk.from_all = 0;
    chunk.copied /= n;
    chunk.combined /= n;
    chunk.sent /= n;
    chunk.link /= n;
    chunk.carried /= n;
    return cost_of_one(&chunk, machine, turns, ranks, bytes) + (n - 1) * cost_of_next(&chunk, machine, turns, ranks);
}

/* ---- inside a host ----------------------------------------------------------------------------- */

static double doublings(double ranks)
{
    return tti_doubling_steps((int)ranks);
}

/* Rounds as waits of one: those behind the first are half hidden. */
static double rounds(double bytes, double slot)
{
    const double n = ceil(bytes / slot);

    return n <= 1 ? 1 : (n + 1) / 2;
}

static double lane(double ranks)
{
    return TTI_HOST_CHUNK / ranks;
}

tti_amounts tti_amounts_meet(double ranks, double bytes)
{
    (void)ranks;
    (void)bytes;
    return (tti_amounts){ .meets = 1 };
}

tti_amounts tti_amounts_all_one_phase(double ranks, double bytes)
{
    return (tti_amounts){ .meets = rounds(bytes, TTI_HOST_CHUNK), .copied = bytes,
                          .fetched = (ranks - 1) * bytes, .combined = ranks * bytes };
}

tti_amounts tti_amounts_all_sliced(double ranks, double bytes)
{
    const double others = bytes * (ranks - 1) / ranks;

    return (tti_amounts){ .meets = 2 * rounds(bytes, TTI_HOST_CHUNK), .copied = bytes + bytes / ranks,
                          .fetched = 2 * others, .combined = bytes };
}

tti_amounts tti_amounts_root_one_phase(double ranks, double bytes)
{
    return (tti_amounts){ .meets = rounds(bytes, TTI_HOST_CHUNK), .copied = bytes,
                          .alone_fetched = (ranks - 1) * bytes, .alone_combined = ranks * bytes };
}

tti_amounts tti_amounts_root_sliced(double ranks, double bytes)
{
    const double others = bytes * (ranks - 1) / ranks;

    return (tti_amounts){ .meets = 2 * rounds(bytes, TTI_HOST_CHUNK), .copied = bytes + bytes / ranks,
                          .fetched = others, .combined = bytes, .alone_fetched = others };
}

tti_amounts tti_amounts_one_to_all(double ranks, double bytes)
{
    (void)ranks;
    return (tti_amounts){ .hears = rounds(bytes, TTI_HOST_CHUNK), .copied = bytes, .fetched = bytes };
}

tti_amounts tti_amounts_one_in_pieces(double ranks, double bytes)
{
    const double n = ceil(bytes / TTI_BROADCAST_PIECE);

    (void)ranks;
    return (tti_amounts){ .hears = n <= 1 ? 1 : (n + 1) / 2, .copied = n <= 1 ? bytes : bytes / n, .fetched = bytes };
}

tti_amounts tti_amounts_all_parts(double ranks, double bytes)
{
    return (tti_amounts){ .meets = rounds(bytes, TTI_HOST_CHUNK), .copied = 2 * bytes,
                          .fetched = (ranks - 1) * bytes };
}

tti_amounts tti_amounts_root_parts(double ranks, double bytes)
{
    return (tti_amounts){ .meets = rounds(bytes, lane(ranks)), .copied = bytes,
                          .fetched = (ranks - 1) * bytes };
}

tti_amounts tti_amounts_own_slices(double ranks, double bytes)
{
    return (tti_amounts){ .meets = rounds(bytes, lane(ranks)), .copied = (ranks - 1) * bytes,
                          .fetched = (ranks - 1) * bytes, .combined = ranks * bytes };
}

tti_amounts tti_amounts_blocks(double ranks, double bytes)
{
    return (tti_amounts){ .meets = 1 + rounds(bytes, lane(ranks)), .copied = ranks * bytes,
                          .fetched = (ranks - 1) * bytes };
}

enum { PULL_ALL_BYTES = 3 * 1024 * 1024 };

static double pulls_of(double ranks, double bytes)
{
    return (ranks - 1) * ceil(bytes / TTI_HOST_CHUNK);
}

tti_amounts tti_amounts_one_pulled(double ranks, double bytes)
{
    (void)ranks;
    return (tti_amounts){ .meets = 2, .pulled = bytes, .pulls = 1 };
}

tti_amounts tti_amounts_parts_pulled(double ranks, double bytes)
{
    return (tti_amounts){ .meets = 2, .copied = bytes, .pulled = (ranks - 1) * bytes, .pulls = ranks - 1 };
}

tti_amounts tti_amounts_own_pulled(double ranks, double bytes)
{
    return (tti_amounts){ .meets = 2, .pulled = (ranks - 1) * bytes, .pulls = pulls_of(ranks, bytes),
                          .combined = ranks * bytes };
}

/* Up to some MiB slices that go through slots stay in caches, and their lines come before they are asked for, which
 * the kernel's copies do not. One figure for a byte cannot tell: so the other form is taken to be a little better. */
tti_amounts tti_amounts_all_pulled(double ranks, double bytes)
{
    if (bytes < PULL_ALL_BYTES) {
        tti_amounts slices = tti_amounts_all_sliced(ranks, bytes);

        slices.pulls = 1;
        return slices;
    }
    /* Several who read one process wait for each other in its page tables. */
    return (tti_amounts){ .meets = 3, .pulled = 2 * bytes * (ranks - 1) / ranks * ranks / 2,
                          .pulls = pulls_of(ranks, bytes / ranks) + ranks - 1, .combined = bytes };
}

/* ---- between hosts ----------------------------------------------------------------------------- */

/* With each other rank so many messages both ways in all phases together. */
static tti_amounts exchange(double ranks, double phases, double sent, double combined)
{
    return (tti_amounts){ .messages = phases, .posts = 2 * phases * (ranks - 1), .sent = sent,
                          .carried = sent, .combined = combined };
}

/* A message from each rank but the root, or to each. */
static double once_for_each(double ranks)
{
    return 2 * (ranks - 1);
}

/* One message to one rank and one from another in each phase. */
static tti_amounts one_by_one(double phases, double sent, double combined)
{
    return (tti_amounts){ .messages = phases, .posts = 2 * phases, .sent = sent, .carried = sent, .combined = combined };
}

/* What all others have, where bytes are those of one rank. */
static double of_others(double ranks, double bytes)
{
    return (ranks - 1) * bytes;
}

/* All slices of bytes but one. */
static double but_one(double ranks, double bytes)
{
    return bytes * (ranks - 1) / ranks;
}

tti_amounts tti_amounts_net_dissemination(double ranks, double bytes)
{
    (void)bytes;
    return one_by_one(doublings(ranks), 0, 0);
}

tti_amounts tti_amounts_net_tokens(double ranks, double bytes)
{
    (void)bytes;
    return exchange(ranks, 1, 0, 0);
}

tti_amounts tti_amounts_net_all_to_all_one(double ranks, double bytes)
{
    return exchange(ranks, 1, of_others(ranks, bytes), ranks * bytes);
}

tti_amounts tti_amounts_net_all_to_all_tree(double ranks, double bytes)
{
    return exchange(ranks, 1, of_others(ranks, bytes), 2 * of_others(ranks, bytes));
}

tti_amounts tti_amounts_net_all_by_others(double ranks, double bytes)
{
    tti_amounts a = one_by_one(doublings(ranks), of_others(ranks, bytes), ranks * bytes);

    a.copied = bytes;
    return a;
}

/* Of few lines only some ranks have a slice: all others to and from each of those, twice. Such an owner waits for each of them while
 * all look for its answer, on the same cores: LOOKS is from four and eight ranks on two. */
#define LOOKS 6

static tti_amounts deal(double ranks, double bytes, double combined)
{
    const double lines = ceil(bytes / TTI_SLICE_ALIGN), owners = lines < 1 ? 1 : lines < ranks ? lines : ranks;
    tti_amounts  a = exchange(ranks, 2, 2 * but_one(ranks, bytes), combined);

    a.posts = 2 * (ranks - 1) + 2 * (owners - 1);
    a.posts_all = 4 * owners * (ranks - 1);
    a.yields = owners < ranks ? (ranks - 1) * (ranks - 1) / LOOKS : 0;
    return a;
}

tti_amounts tti_amounts_net_slices(double ranks, double bytes)
{
    return deal(ranks, bytes, bytes);
}

tti_amounts tti_amounts_net_slices_tree(double ranks, double bytes)
{
    return deal(ranks, bytes, 2 * but_one(ranks, bytes));
}

/* Phases that ranks need to share seats, each of all the bytes, before and after the steps. */
static double sharing(double ranks)
{
    const tti_seats seats = tti_seats_of((int)ranks);

    return seats.n_pairs > 0 ? 2 : 0;
}

tti_amounts tti_amounts_net_doubling(double ranks, double bytes)
{
    const double steps = tti_seats_of((int)ranks).steps, shares = sharing(ranks);

    return (tti_amounts){ .messages = steps + shares, .posts = 2 * steps + shares, .sent = (steps + shares) * bytes,
                          .link = (steps + shares / 2) * bytes, .carried = steps * bytes, .combined = (2 * steps + shares) * bytes };
}

tti_amounts tti_amounts_net_halving(double ranks, double bytes)
{
    const tti_seats seats = tti_seats_of((int)ranks);
    const double    shares = sharing(ranks), slices = 2 * but_one(seats.n, bytes);

    return (tti_amounts){ .messages = 2 * seats.steps + shares, .posts = 4 * seats.steps + shares,
                          .sent = slices + shares * bytes, .link = slices + shares / 2 * bytes,
                          .carried = slices, .combined = slices + shares * bytes };
}

tti_amounts tti_amounts_net_ring(double ranks, double bytes)
{
    return one_by_one(2 * (ranks - 1), 2 * but_one(ranks, bytes), 2 * but_one(ranks, bytes));
}

tti_amounts tti_amounts_net_to_root(double ranks, double bytes)
{
    return (tti_amounts){ .messages = 1, .posts = ranks - 1, .posts_all = once_for_each(ranks),
                          .sent = of_others(ranks, bytes), .carried = but_one(ranks, bytes), .rooted = 1,
                          .from_all = of_others(ranks, bytes), .combined = ranks * bytes };
}

/* All bytes pass the links of the P-1 owners, and then the root's. Of what the cores take for that the first step is counted: with the
 * second, too, 128 KiB among four ranks on two cores would go to their root, which was slower. */
tti_amounts tti_amounts_net_slices_to_root(double ranks, double bytes)
{
    return (tti_amounts){ .messages = 2, .posts = 3 * ranks - 4, .posts_all = ranks * once_for_each(ranks),
                          .sent = 2 * bytes, .link = bytes, .carried = but_one(ranks, bytes), .from_all = 2 * bytes,
                          .combined = ranks * bytes / (ranks - 1) };
}

tti_amounts tti_amounts_net_slices_to_root_tree(double ranks, double bytes)
{
    tti_amounts a = tti_amounts_net_slices_to_root(ranks, bytes);

    a.combined = 2 * bytes;
    return a;
}

tti_amounts tti_amounts_net_climb(double ranks, double bytes)
{
    const double steps = tti_seats_of((int)ranks).steps + sharing(ranks) / 2;

    return (tti_amounts){ .messages = steps, .posts = steps, .posts_all = once_for_each(ranks), .sent = steps * bytes,
                          .combined = 2 * steps * bytes };
}

/* Two levels of the tree in a phase; where their number is odd, one in the last. */
tti_amounts tti_amounts_net_climb4(double ranks, double bytes)
{
    const int    steps = tti_seats_of((int)ranks).steps;
    const double received = 3 * (steps / 2) + steps % 2 + sharing(ranks) / 2;

    return (tti_amounts){ .messages = steps / 2 + steps % 2 + sharing(ranks) / 2, .posts = received,
                          .posts_all = once_for_each(ranks), .sent = received * bytes, .combined = 2 * received * bytes };
}

tti_amounts tti_amounts_net_chain_up(double ranks, double bytes)
{
    return (tti_amounts){ .messages = ranks - 1, .posts = ranks - 1, .posts_all = once_for_each(ranks),
                          .sent = of_others(ranks, bytes), .link = bytes, .combined = 2 * of_others(ranks, bytes) };
}

tti_amounts tti_amounts_net_tree(double ranks, double bytes)
{
    const double steps = doublings(ranks);

    return (tti_amounts){ .messages = steps, .posts = steps, .posts_all = once_for_each(ranks), .sent = steps * bytes };
}

tti_amounts tti_amounts_net_tree4(double ranks, double bytes)
{
    const int steps = tti_radix_steps((int)ranks, 4);
    double    sent = 0, reached = 1;
    int       step;

    for (step = 0; step < steps; step++, reached *= 4)
        sent += ranks >= 4 * reached ? 3 : ceil(ranks / reached) - 1;
    return (tti_amounts){ .messages = steps, .posts = sent, .posts_all = once_for_each(ranks), .sent = sent * bytes };
}

tti_amounts tti_amounts_net_from_root(double ranks, double bytes)
{
    return (tti_amounts){ .messages = 1, .posts = ranks - 1, .posts_all = once_for_each(ranks),
                          .sent = of_others(ranks, bytes), .rooted = 1 };
}

tti_amounts tti_amounts_net_slices_from_root(double ranks, double bytes)
{
    return (tti_amounts){ .messages = ranks > 2 ? 2 : 1, .posts = 3 * ranks - 5,
                          .posts_all = (ranks - 1) * once_for_each(ranks), .sent = bytes + bytes * (ranks - 2) / (ranks - 1), .link = bytes };
}

tti_amounts tti_amounts_net_chain(double ranks, double bytes)
{
    return (tti_amounts){ .messages = ranks - 1, .posts = ranks - 1, .posts_all = once_for_each(ranks),
                          .sent = of_others(ranks, bytes), .link = bytes };
}

tti_amounts tti_amounts_net_parts(double ranks, double bytes)
{
    return exchange(ranks, 1, of_others(ranks, bytes), 0);
}

tti_amounts tti_amounts_net_parts_ring(double ranks, double bytes)
{
    return one_by_one(ranks - 1, of_others(ranks, bytes), 0);
}

tti_amounts tti_amounts_net_bruck(double ranks, double bytes)
{
    tti_amounts a = one_by_one(doublings(ranks), of_others(ranks, bytes), 0);

    a.copied = ranks * bytes;
    return a;
}

tti_amounts tti_amounts_net_root_parts(double ranks, double bytes)
{
    return (tti_amounts){ .messages = 1, .posts = ranks - 1, .posts_all = once_for_each(ranks),
                          .sent = of_others(ranks, bytes), .rooted = 1 };
}

/* Words of the root's, where not all parts go at once: to all but the ranks of the first turn. What such a turn waits for comes
 * while the one before is on the link: so turns are no phases that follow each other. */
static double words_of_root(double ranks, double bytes)
{
    const double most = (double)TTI_TURN_BYTES / TTI_TURN_BLOCKS, first = bytes > 0 ? ceil(TTI_TURN_BYTES / (bytes < most ? bytes : most)) : ranks;

    return of_others(ranks, bytes) <= TTI_AT_ONCE_BYTES ? 0 : at_least(ranks - 1 - first, 0);
}

tti_amounts tti_amounts_net_parts_to_root(double ranks, double bytes)
{
    tti_amounts a = tti_amounts_net_root_parts(ranks, bytes);

    a.posts += words_of_root(ranks, bytes);
    a.posts_all += 2 * words_of_root(ranks, bytes);
    return a;
}

tti_amounts tti_amounts_net_subtrees(double ranks, double bytes)
{
    const double steps = doublings(ranks);

    return (tti_amounts){ .messages = steps, .posts = steps, .posts_all = once_for_each(ranks),
                          .sent = of_others(ranks, bytes), .rooted = 1, .copied = ranks * bytes };
}

tti_amounts tti_amounts_net_own_slices(double ranks, double bytes)
{
    return exchange(ranks, 1, of_others(ranks, bytes), ranks * bytes);
}

tti_amounts tti_amounts_net_own_slices_tree(double ranks, double bytes)
{
    return exchange(ranks, 1, of_others(ranks, bytes), 2 * of_others(ranks, bytes));
}

/* The bits that are set in the numbers below that of ranks: steps that parts make. */
static double steps_of_parts(int ranks)
{
    double n = 0;
    int    bit;

    for (bit = 1; bit < ranks; bit *= 2)
        n += ranks / (2 * bit) * bit + (ranks % (2 * bit) > bit ? ranks % (2 * bit) - bit : 0);
    return n;
}

tti_amounts tti_amounts_net_own_bruck(double ranks, double bytes)
{
    const double moved = steps_of_parts((int)ranks) * bytes;
    tti_amounts  a = one_by_one(doublings(ranks), moved, ranks * bytes);

    a.copied = of_others(ranks, bytes) + 2 * moved;
    return a;
}

/* Two ranks of a seat: all parts from one to the other before the steps, one part back after them. */
tti_amounts tti_amounts_net_halving_parts(double ranks, double bytes)
{
    const tti_seats seats = tti_seats_of((int)ranks);
    const double    halves = but_one(seats.n, ranks * bytes), shares = sharing(ranks) > 0 ? ranks * bytes : 0;

    return (tti_amounts){ .messages = seats.steps + sharing(ranks), .posts = 2 * seats.steps + sharing(ranks),
                          .sent = halves + shares + (shares > 0 ? bytes : 0), .carried = halves, .combined = 2 * (halves + shares),
                          .copied = (ranks + 1) * bytes };
}

tti_amounts tti_amounts_net_ring_parts(double ranks, double bytes)
{
    return one_by_one(ranks - 1, of_others(ranks, bytes), 2 * of_others(ranks, bytes));
}

enum { BLOCK_SLOT = 256, BLOCK_SIZES = 16 }; /* plan_blocks.c */

/* What did not fit into slots, which no two ranks but a block's know. */
static tti_amounts with_long_blocks(tti_amounts a, double ranks, double bytes, double fits)
{
    if (bytes <= fits)
        return a;
    a.messages += 1;
    a.posts += 2 * (ranks - 1);
    a.sent += of_others(ranks, bytes);
    a.carried += of_others(ranks, bytes);
    return a;
}

tti_amounts tti_amounts_net_blocks(double ranks, double bytes)
{
    const double fits = (double)tti_short_block((int)ranks), with = bytes <= fits ? bytes : 0;
    tti_amounts  a = exchange(ranks, 1, of_others(ranks, BLOCK_SIZES + with), 0);

    a.copied = 2 * of_others(ranks, with);
    return with_long_blocks(a, ranks, bytes, fits);
}

tti_amounts tti_amounts_net_journeys(double ranks, double bytes)
{
    const double steps = doublings(ranks), moved = steps * ranks / 2 * BLOCK_SLOT;
    tti_amounts  a = one_by_one(steps, moved, 0);

    /* Whoever chooses knows no sizes: where every message counts, the long blocks of every second call are its, too. */
    a.posts_all = ranks * (a.posts + ranks - 1);
    a.copied = 2 * moved;
    return with_long_blocks(a, ranks, bytes, BLOCK_SLOT - BLOCK_SIZES);
}

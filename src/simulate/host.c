/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - what a call takes in memory that the ranks of a host share.
 *
 * Why     The choice of algorithms goes by what one core takes while it is alone (coll/cost.c): that ranks. A time depends on
 *         three things more, each of which is measured by itself (fit.c).
 * How     The amounts of the choice, in other prices:
 *           stores   A line that the other core has read is that core's, too, until it is taken from it: as long as it lies in
 *                    the other's cache a store costs several times a copy. Whether it still lies there is told by what a core
 *                    touches from one use of a slot to the next: more than its own cache, and it has fallen out.
 *           memory   Buffers that outgrow the last cache come from memory, which all cores share. Who copies waits for the
 *                    slower one of the two ends.
 *           turns    Ranks of a core are processes: whoever waits gives the core to all others of it, one after the other,
 *                    and each of them has its own page tables. A meeting is one round of that.
 *         What a core's ranks copy adds up.
 * True    What a rank reads of one on its own core is in that core's cache: it costs a copy.
 *         What a reduction reads of others it reads once, on the way into the sum.
 * Limits  Turns are taken to come in the worst order: of a root's call it depends on who had the core last whether anybody
 *         waits at all. Rounds do not drift apart. */
#include "simulate/host.h"

#include <string.h>
#include "coll/host/channel.h"
#include "coll/host/past.h"
#include "coll/host/staged.h"

static bool has_root(tutti_call_kind kind)
{
    return kind == TUTTI_CALL_BROADCAST || kind == TUTTI_CALL_REDUCE || kind == TUTTI_CALL_GATHER || kind == TUTTI_CALL_SCATTER;
}

enum { SHARED_CHUNK = TTI_HOST_SLOTS / 2 }; /* of ranks that share cores: channel.c */

/* Amounts of a call, told apart by what their bytes cost. */
typedef struct work {
    tti_amounts a;
    double      staged; /* into slots, by each rank; */
    double      staged_once; /* or by one of them, while the others wait for it */
    double      kept;   /* from buffer to buffer */
    double      taken;  /* out of slots into buffers, by each */
    double      summed; /* out of slots into sums */
    double      piece;  /* the bytes of staged_once that nobody has anything to take of yet; 0: all */
    double      made;   /* by sums, into buffers that were not read */
    double      own;    /* of its own buffers, that a rank touches */
} work;

static double least_of(double a, double b)
{
    return a < b ? a : b;
}

static bool has_parts_for_all(tutti_call_kind kind)
{
    return kind == TUTTI_CALL_ALL_GATHER || kind == TUTTI_CALL_GATHER || kind == TUTTI_CALL_SCATTER ||
           kind == TUTTI_CALL_REDUCE_SCATTER;
}

static double own_bytes(tutti_call_kind kind, double ranks, double bytes)
{
    if (kind == TUTTI_CALL_ALL_TO_ALL)
        return 2 * ranks * bytes;
    return has_parts_for_all(kind) ? (ranks + 1) * bytes : bytes; /* others are in place */
}

/* A rank's own part goes from buffer to buffer. */
static bool keeps_own(tutti_call_kind kind)
{
    return kind == TUTTI_CALL_ALL_GATHER || kind == TUTTI_CALL_GATHER || kind == TUTTI_CALL_SCATTER ||
           kind == TUTTI_CALL_ALL_TO_ALL;
}

/* Blocks are read from their owner when the streams they are in are long, whichever way was asked for; a short one comes
 * together with its size. */
static tti_amounts amounts_of_blocks(const tti_algorithm *row, double ranks, double bytes, double turns)
{
    tti_amounts a = row->amounts(ranks, bytes);

    if ((ranks - 1) * bytes >= (turns > 1 ? TTI_PULL_BLOCKS_SHARED_CORE : TTI_PULL_BLOCKS_OWN_CORE))
        return tti_amounts_parts_pulled(ranks, bytes);
    a.meets = (ranks - 1) * bytes <= TTI_LINES_BYTES ? 1 : a.meets;
    return a;
}

/* The root fills a slot, the others empty it. With a core for each rank they do so side by side, piece after piece. */
static void broadcast_work(work *w, double turns)
{
    w->staged_once = w->a.fetched;
    w->piece = turns > 1 ? 0 : w->a.copied;
    w->taken = w->a.fetched;
}

static void other_work(work *w, tutti_call_kind kind, double ranks, double bytes, double turns)
{
    w->kept = keeps_own(kind) ? least_of(bytes, w->a.copied) : 0;
    w->staged = w->a.copied - w->kept;
    if (kind == TUTTI_CALL_ALL_REDUCE || kind == TUTTI_CALL_REDUCE)
        w->staged = least_of(w->staged, bytes); /* nobody stages its own slice, and shows what it has made of it */
    if (w->a.alone_fetched > 0 && w->a.alone_combined == 0 && turns <= 1)
        w->staged = bytes * (ranks - 1) / ranks; /* that is shown while the root copies what is there */
    w->summed = least_of(w->a.fetched, w->a.combined * (ranks - 1) / ranks);
    w->taken = w->a.fetched - w->summed;
    w->made = kind == TUTTI_CALL_REDUCE_SCATTER ? bytes : 0;
}

/* coll/host/past.c. Beside copies out of another core's cache, as all_gather has, stores past the caches would gain nothing. */
static bool goes_past(const tti_machine *m, tutti_call_kind kind, const work *w, double bytes, double turns)
{
    const bool   in_place = kind == TUTTI_CALL_ALL_REDUCE || kind == TUTTI_CALL_REDUCE;
    const double rooted = kind == TUTTI_CALL_GATHER || kind == TUTTI_CALL_SCATTER ? 2 * bytes : w->own;

    return !in_place && tti_past_of(m, turns, kind, rooted);
}

static work work_of(const tti_algorithm *row, double ranks, double bytes, double turns)
{
    work w = { .a = row->kind == TUTTI_CALL_ALL_TO_ALL ? amounts_of_blocks(row, ranks, bytes, turns) : row->amounts(ranks, bytes) };

    if (row->kind == TUTTI_CALL_BROADCAST)
        broadcast_work(&w, turns);
    else
        other_work(&w, row->kind, ranks, bytes, turns);
    w.own = own_bytes(row->kind, ranks, bytes);
    return w;
}

/* Slots that are used in turn, and what goes into one of them at most. A call that goes through lines has blocks. */
static double slots_of(const tti_algorithm *row, double bytes, double turns, double *chunk_out)
{
    const bool lines = strcmp(row->name, "lines") == 0 && bytes <= TTI_LINES_BYTES;

    *chunk_out = turns > 1 ? SHARED_CHUNK : TTI_HOST_CHUNK;
    if (row->kind == TUTTI_CALL_BROADCAST && turns <= 1)
        *chunk_out = TTI_BROADCAST_PIECE;
    return lines || turns > 1 ? 2 : (double)TTI_HOST_SLOTS / TTI_HOST_CHUNK;
}

/* What a core touches from one use of a slot to the next. */
static double between_uses(const tti_algorithm *row, const work *w, double bytes, double turns)
{
    const double moved = w->staged + w->staged_once + w->a.fetched;
    double       chunk = 0, rounds;
    const double slots = slots_of(row, bytes, turns, &chunk);

    rounds = ceil(bytes / chunk);
    if (rounds > slots)
        return turns * (w->own + moved) * slots / rounds;
    return turns * (w->own + moved * slots / (rounds > 0 ? rounds : 1));
}

/* ---- prices ------------------------------------------------------------------------------------ */

/* What a byte costs in a call, in ns. */
typedef struct prices {
    double stage, take, keep;    /* from a buffer into a slot, from a slot into a buffer, from buffer to buffer */
    double fetch;                /* from a slot into a sum, beyond combining it */
    double combine, own_combine; /* input of a sum; the rank's own, beyond that */
    double made;                 /* what goes from a sum into a buffer */
    double pull;
} prices;

static double beyond(double price, double usual)
{
    return fmax(price - usual, 0);
}

/* Of what is touched again and again a cache holds the part that it has room for. */
static double missed(double touched, double cache)
{
    return touched > cache ? 1 - cache / touched : 0;
}

static double between(double least, double most, double share)
{
    return least + share * beyond(most, least);
}

/* in_memory: the share of the ranks' buffers that is in no cache. past: results are stored past them all. */
static prices prices_of(const tti_figures *f, bool is_out, double in_memory, double from_others, bool past, bool takes_past)
{
    const tti_machine *m = &f->machine;
    const double       store = is_out ? f->store_out : f->store;
    const double       load = from_others * f->load + (1 - from_others) * least_of(m->copy, f->load);

    return (prices){
        .stage = between(store, f->read_main, in_memory),
        .take = between(load, f->write_main, takes_past ? 1 : in_memory),
        .keep = between(past ? fmax(m->copy, f->write_main) : m->copy, f->copy_all, in_memory),
        .fetch = beyond(load, m->copy),
        .combine = m->combine,
        .own_combine = in_memory * beyond(f->combine_all, m->combine),
        .made = (past ? 1 : in_memory) * beyond(f->write_main, m->copy),
        .pull = m->pull + in_memory * (beyond(f->read_main, m->copy) + beyond(f->write_main, m->copy)),
    };
}

/* In pieces the slower one of both sides counts for all of them, and the other one for one. */
static double one_side_time(const work *w, const prices *p, double turns)
{
    if (w->piece == 0)
        return w->staged_once * p->stage + turns * w->taken * p->take;
    return w->taken * fmax(p->stage, p->take) + w->piece * least_of(p->stage, p->take);
}

static double bytes_time(const work *w, const prices *p, double ranks, double turns)
{
    const tti_amounts *a = &w->a;
    const double       sums = turns * (a->combined * (p->combine + p->own_combine / ranks) + w->summed * p->fetch + w->made * p->made);
    const double       alone = a->alone_combined * p->combine + a->alone_fetched * (a->alone_combined > 0 ? p->fetch : p->take);

    return sums + alone + turns * (w->staged * p->stage + w->kept * p->keep + a->pulled * p->pull) + one_side_time(w, p, turns);
}

/* ---- waits ------------------------------------------------------------------------------------- */

/* Of a call as it is where slots are as large as if each rank had a core: where ranks share cores there are fewer and larger
 * ones (channel.c), so that a call takes as many rounds as one of so much less there. */
static double bytes_of_rounds(const tti_algorithm *row, double bytes, double turns)
{
    const double chunk = row->kind == TUTTI_CALL_BROADCAST ? TTI_BROADCAST_PIECE : TTI_HOST_CHUNK;

    return turns > 1 ? bytes * chunk / SHARED_CHUNK : bytes;
}

/* From one process to the next of a core, of so many: two and four were measured. */
static double pass_time(const tti_figures *f, double turns)
{
    const double many = f->pass_many > 0 ? f->pass_many : f->pass;

    return turns <= 2 ? f->pass : f->pass + (many - f->pass) * (least_of(turns, 4) - 2) / 2;
}

static double waits_time(const tti_algorithm *row, const work *w, const tti_figures *f, double ranks, double bytes, double turns)
{
    const double      line = f->machine.line;
    const tti_amounts in_rounds = row->amounts(ranks, bytes_of_rounds(row, bytes, turns));
    const tti_amounts *a = row->kind == TUTTI_CALL_ALL_TO_ALL || turns <= 1 ? &w->a : &in_rounds;

    if (turns > 1)
        return (a->meets + a->hears) * turns * pass_time(f, turns);
    return a->meets * line * (1 + (ranks - 2) / 4) + a->hears * line;
}

double tti_sim_host_time(const tti_cluster *cluster, const tti_algorithm *row, int64_t bytes)
{
    const tti_figures *f = &cluster->figures;
    const double       ranks = tti_cluster_ranks(cluster), turns = tti_cluster_turns(cluster);
    const work         w = work_of(row, ranks, (double)bytes, turns);
    const bool         is_out = between_uses(row, &w, (double)bytes, turns) > f->machine.near_bytes;
    const double       in_memory = missed(turns * w.own, f->machine.last_bytes);
    const double       ends = has_root(row->kind) ? 1 : 2; /* a rank gives, or takes, or both */
    const bool         past = goes_past(&f->machine, row->kind, &w, (double)bytes, turns);
    const prices       p = prices_of(f, is_out, in_memory, (ranks - turns) / (ranks - 1), past,
                                     past && (turns > 1 || row->kind != TUTTI_CALL_ALL_GATHER));

    return waits_time(row, &w, f, ranks, (double)bytes, turns) + bytes_time(&w, &p, ranks, turns) + turns * w.a.pulls * f->machine.pull_call +
           turns * ends * f->local.post;
}
